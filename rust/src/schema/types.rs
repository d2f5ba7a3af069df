//! `Type` and `Field`: Delta's data types in Rust.

use serde_json::{Map, Value};

/// Key of a field's id in its metadata.
pub const FIELD_ID: &str = "delta.columnMapping.id";
/// Key of a field's name in data files, statistics and partition values.
pub const PHYSICAL_NAME: &str = "delta.columnMapping.physicalName";
/// Marks, in the metadata, a field without column mapping, which is found by its name: a column that is not
/// one of the table's own, such as `_change_type`, and the fields within a user-defined type.
pub const UNMAPPED: &str = "__deltaic_unmapped";
/// Key of the ids of elements, keys and values below a field, `{"col-1.element": 7}`, which Iceberg
/// compatibility requires.
pub const NESTED_IDS: &str = "delta.columnMapping.nested.ids";
/// Key of the field id of a hidden column in data files.
pub const PARQUET_FIELD_ID: &str = "parquet.field.id";
/// Key of the changes that type widening made to a field's type.
const TYPE_CHANGES: &str = "delta.typeChanges";

/// A type that has no other types in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Primitive {
    /// UTF-8 text
    String,
    /// 8 bytes, signed
    Long,
    /// 4 bytes, signed
    Integer,
    /// 2 bytes, signed
    Short,
    /// 1 byte, signed
    Byte,
    /// 4 bytes, floating point
    Float,
    /// 8 bytes, floating point
    Double,
    /// Precision 1 to 38 and scale 0 to precision
    Decimal(u8, i8),
    /// true, false
    Boolean,
    /// Bytes
    Binary,
    /// Days since 1970
    Date,
    /// An instant, in microseconds since 1970
    Timestamp,
    /// A local time without time zone, in microseconds since 1970
    TimestampNtz,
    /// A type of nulls only; such a column is in no data file
    Void,
}

/// A data type of Delta.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// A type that has no other types in it
    Primitive(Primitive),
    /// Named fields
    Struct(Vec<Field>),
    /// Elements, and whether they may be null
    Array(Box<Type>, bool),
    /// Keys, values, and whether values may be null
    Map(Box<Type>, Box<Type>, bool),
    /// A value of any type, in the encoding of Parquet's variant: a group of `metadata` and `value`
    Variant,
    /// A geographic value: bytes in WKB (well-known binary), which are not parsed
    Shape(Shape),
}

/// The type of a geographic column (`protocol_rfcs/geospatial-types.md` of delta-io/delta).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Coordinate reference system, such as `OGC:CRS84`
    pub crs: String,
    /// The course of edges between the points of a `geography`, such as `spherical`; `None`: a `geometry`, on
    /// a plane
    pub edges: Option<String>,
}

/// The algorithms for the edges of a geography.
pub const EDGES: [&str; 5] = ["spherical", "vincenty", "thomas", "andoyer", "karney"];

impl Shape {
    /// Parses `geometry(OGC:CRS84)` or `geography(OGC:CRS84, spherical)`; `None` for any other text.
    pub fn parse(name: &str) -> Option<Self> {
        let (kind, rest) = name.split_once('(')?;
        let inside = rest.strip_suffix(')')?;
        let (crs, edges) = match (kind, inside.split_once(',')) {
            ("geometry", None) => (inside.trim(), None),
            ("geography", Some((crs, edges))) if EDGES.contains(&edges.trim()) => {
                (crs.trim(), Some(edges.trim().to_owned()))
            }
            _ => return None,
        };
        let is_whole =
            crs.split_once(':').is_some_and(|(authority, id)| !authority.is_empty() && !id.is_empty())
                && !crs.contains(|c: char| "(),".contains(c) || c.is_whitespace());
        is_whole.then(|| Self { crs: crs.to_owned(), edges })
    }
    /// Returns Delta's name of the type.
    pub fn name(&self) -> String {
        match &self.edges {
            None => format!("geometry({})", self.crs),
            Some(edges) => format!("geography({}, {edges})", self.crs),
        }
    }
}

impl Type {
    /// Returns the fields of a variant in files and in Arrow.
    pub fn variant_fields() -> Vec<Field> {
        let part = |name: &str| Field {
            name: name.to_owned(),
            data_type: Self::Primitive(Primitive::Binary),
            nullable: false,
            metadata: Map::new(),
        };
        vec![part("metadata"), part("value")]
    }
}

/// A field of a struct, or a column.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Logical name
    pub name: String,
    /// The field's type
    pub data_type: Type,
    /// True if it may be null.
    pub nullable: bool,
    /// Metadata, as JSON
    pub metadata: Map<String, Value>,
}

impl Field {
    /// Makes a hidden column of whole numbers, which is found by its name in any mode of column mapping.
    /// `id`: its field id in written files.
    pub fn hidden(name: &str, id: Option<i32>) -> Self {
        let metadata = id.map(|id| (PARQUET_FIELD_ID.to_owned(), Value::from(id))).into_iter().collect();
        Self { name: name.to_owned(), data_type: Type::Primitive(Primitive::Long), nullable: true, metadata }
    }
    /// Returns the field's id of column mapping, if it has one.
    pub fn id(&self) -> Option<i32> {
        self.metadata.get(FIELD_ID)?.as_i64().and_then(|id| i32::try_from(id).ok())
    }
    /// True if its type was float before it was widened: statistics of older files then have the shortest
    /// text of a float.
    pub fn was_float(&self) -> bool {
        let changes = self.metadata.get(TYPE_CHANGES).and_then(Value::as_array);
        let is_float = |change: &Value| {
            change.get("fieldPath").is_none() && change.get("fromType").is_some_and(|from| from == "float")
        };
        changes.is_some_and(|changes| changes.iter().any(is_float))
    }
    /// Returns the name in data files, statistics and partition values: the logical name, unless the metadata
    /// has another.
    pub fn physical_name(&self) -> &str {
        self.metadata.get(PHYSICAL_NAME).and_then(Value::as_str).unwrap_or(&self.name)
    }
}

/// Finds the field with this name in any case, but prefers a field with exactly this spelling.
pub fn find<'a>(fields: &'a [Field], name: &str) -> Option<(usize, &'a Field)> {
    let exact = fields.iter().position(|field| field.name == name);
    let index = exact.or_else(|| {
        let wanted = name.to_lowercase();
        fields.iter().position(|field| field.name.to_lowercase() == wanted)
    })?;
    Some((index, &fields[index]))
}
