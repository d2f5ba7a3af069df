//! Makes and reads the entries of a manifest: their Avro schema, the record `data_file` of an add action, and
//! the entries of older manifests.

use std::collections::HashMap;

use arrow::array::{Array, Int64Array, RecordBatch, StringArray};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::avro::{self, Cursor, Layout};
use super::manifest::Options;
use super::values;
use crate::deletion_vector::{Descriptor, columns};
use crate::error::{Error, Kind, Result};
use crate::log::schema::{long, map, map_values, text, vectors};
use crate::log::skipping::statistics::Side;
use crate::schema::{Field, TableSchema, Type};

/// `status` of a file that an older snapshot added.
pub const EXISTING: i64 = 0;
/// `status` of a file that this snapshot adds.
pub const ADDED: i64 = 1;
/// `status` of a file that this snapshot deletes.
pub const DELETED: i64 = 2;
/// Number of bytes of a vector's frame besides the vector: the length before it, the checksum after it.
const FRAME: i64 = 8;

/// Returns the Avro schema of an entry, as JSON.
pub fn avro_schema(schema: &TableSchema, options: &Options) -> Result<String> {
    let optional = |name: &str, kind: Value, id: i32| {
        let kind = json!(["null", kind]);
        json!({"name": name, "type": kind, "default": null, "field-id": id})
    };
    if schema.partition_fields().len() != options.partition.len() {
        return Err(Error::new(Kind::InvalidArgument, "the partition spec has other columns than the table"));
    }
    let partition = schema.partition_fields().zip(&options.partition);
    let partition: Vec<_> = partition
        .map(|(field, (name, id))| Ok(optional(name, values::avro_type(&field.data_type, *id)?, *id)))
        .collect::<Result<_>>()?;
    let counts = |name: &str, kind: &str, id: i32, key: i32| {
        let entry = json!({"type": "record", "name": format!("k{key}_v{}", key + 1), "fields": [
            {"name": "key", "type": "int", "field-id": key},
            {"name": "value", "type": kind, "field-id": key + 1}]});
        optional(name, json!({"type": "array", "logicalType": "map", "items": entry}), id)
    };
    let mut data_file = vec![
        json!({"name": "content", "type": "int", "field-id": 134}),
        json!({"name": "file_path", "type": "string", "field-id": 100}),
        json!({"name": "file_format", "type": "string", "field-id": 101}),
        json!({"name": "partition", "type": {"type": "record", "name": "r102", "fields": partition},
            "field-id": 102}),
        json!({"name": "record_count", "type": "long", "field-id": 103}),
        json!({"name": "file_size_in_bytes", "type": "long", "field-id": 104}),
        counts("value_counts", "long", 109, 119),
        counts("null_value_counts", "long", 110, 121),
        counts("lower_bounds", "bytes", 125, 126),
        counts("upper_bounds", "bytes", 128, 129),
    ];
    if options.version >= 3 {
        data_file.push(optional("first_row_id", json!("long"), 142));
        data_file.push(optional("referenced_data_file", json!("string"), 143));
        data_file.push(optional("content_offset", json!("long"), 144));
        data_file.push(optional("content_size_in_bytes", json!("long"), 145));
    }
    let entry = json!({"type": "record", "name": "manifest_entry", "fields": [
        {"name": "status", "type": "int", "field-id": 0},
        optional("snapshot_id", json!("long"), 1),
        optional("sequence_number", json!("long"), 3),
        optional("file_sequence_number", json!("long"), 4),
        {"name": "data_file", "type": {"type": "record", "name": "r2", "fields": data_file}, "field-id": 2},
    ]});
    Ok(entry.to_string())
}

/// The columns of add actions that entries need.
pub struct AddedFiles<'a> {
    locations: &'a StringArray,
    vector_locations: &'a StringArray,
    sizes: &'a Int64Array,
    statistics: &'a StringArray,
    first_row_ids: &'a Int64Array,
    versions: &'a Int64Array,
    partition: Vec<(StringArray, &'a Type)>,
    vectors: Vec<Option<Descriptor>>,
    leaves: Vec<Column<'a>>,
    ends: HashMap<String, i64>,
}

/// A table column that may have statistics.
struct Column<'a> {
    id: i32,
    physical: Vec<&'a str>,
    data_type: &'a Type,
    was_float: bool,
}

impl<'a> AddedFiles<'a> {
    /// Reads the columns of add actions with the addresses of their files (`location`) and vectors
    /// (`vectorLocation`).
    pub fn of(adds: &'a RecordBatch, schema: &'a TableSchema) -> Result<Self> {
        let values = map(adds, "partitionValues")?;
        let vector_locations = text(adds, "vectorLocation")?;
        let vectors = columns::read(vectors(adds)?)?;
        let mut ends = HashMap::new();
        for (place, vector) in vector_locations.iter().zip(&vectors) {
            if let (Some(place), Some(vector)) = (place, vector) {
                let end = i64::from(vector.offset.unwrap_or(0)) + i64::from(vector.size_in_bytes) + FRAME;
                let known = ends.entry(place.to_owned()).or_insert(0_i64);
                *known = end.max(*known);
            }
        }
        let mut leaves = Vec::new();
        collect(schema.fields(), &mut Vec::new(), &mut leaves);
        Ok(Self {
            locations: text(adds, "location")?,
            vector_locations,
            sizes: long(adds, "size")?,
            statistics: text(adds, "stats")?,
            first_row_ids: long(adds, "baseRowId")?,
            versions: long(adds, "defaultRowCommitVersion")?,
            partition: schema
                .partition_fields()
                .map(|field| (map_values(values, field.physical_name()), &field.data_type))
                .collect(),
            vectors,
            leaves,
            ends,
        })
    }

    /// Returns the address of a file.
    pub fn location(&self, row: usize) -> &str {
        self.locations.value(row)
    }

    /// Returns the size of a file, or 0 if its action does not have it.
    pub fn size(&self, row: usize) -> i64 {
        number(self.sizes, row).unwrap_or(0)
    }

    /// Returns `defaultRowCommitVersion` of a file, if the table tracks rows.
    pub fn version(&self, row: usize) -> Option<i64> {
        number(self.versions, row)
    }

    /// Returns the deletion vector of a file.
    pub fn vector(&self, row: usize) -> Option<&Descriptor> {
        self.vectors[row].as_ref()
    }

    /// Parses the statistics of a file.
    pub fn statistics(&self, row: usize) -> Result<Statistics<'_>> {
        let parsed = self
            .statistics
            .is_valid(row)
            .then(|| serde_json::from_str(self.statistics.value(row)))
            .transpose();
        let malformed =
            |error| Error::protocol("malformed statistics").at(self.location(row)).caused_by(error);
        Ok(parsed.map_err(malformed)?.unwrap_or_default())
    }

    /// Appends the record `data_file` of a file, or of its vector. `rows`: its number of rows, or of deleted
    /// rows.
    pub fn write(
        &self,
        out: &mut Vec<u8>,
        row: usize,
        statistics: &Statistics<'_>,
        rows: i64,
        options: &Options,
    ) -> Result<()> {
        let place = self.location(row);
        let vector = self.vector(row).filter(|_| options.deletes);
        let vector_place = self.vector_locations.is_valid(row).then(|| self.vector_locations.value(row));
        let vector = vector.map(|vector| {
            let in_file = Error::new(
                Kind::UnsupportedFeature,
                "a deletion vector in the log itself, which Iceberg cannot refer to",
            )
            .at(place);
            vector_place
                .zip(vector.offset)
                .ok_or(in_file)
                .map(|(path, offset)| (path, i64::from(offset), vector_size(vector)))
        });
        let vector = vector.transpose()?;
        avro::long(out, i64::from(options.deletes));
        avro::bytes(out, vector.map_or(place, |(path, _, _)| path).as_bytes());
        avro::bytes(out, if options.deletes { b"PUFFIN" } else { b"PARQUET" });
        for (texts, data_type) in &self.partition {
            let value = texts.is_valid(row).then(|| texts.value(row));
            values::partition(out, value, data_type).map_err(|error| error.at(place))?;
        }
        avro::long(out, rows);
        let size = vector.and_then(|(path, _, _)| self.ends.get(path).copied());
        avro::long(out, size.unwrap_or(self.size(row)));
        let leaves: &[Column<'_>] = if vector.is_some() { &[] } else { &self.leaves };
        bounds(out, leaves, statistics);
        if options.version >= 3 {
            let first = number(self.first_row_ids, row);
            avro::optional_long(out, first.filter(|_| vector.is_none()));
            match vector {
                None => (0..3).for_each(|_| avro::long(out, 0)),
                Some((_, offset, size)) => {
                    avro::long(out, 1);
                    avro::bytes(out, place.as_bytes());
                    avro::optional_long(out, Some(offset));
                    avro::optional_long(out, Some(size));
                }
            }
        }
        Ok(())
    }
}

fn number(column: &Int64Array, row: usize) -> Option<i64> {
    column.is_valid(row).then(|| column.value(row))
}

fn collect<'a>(fields: &'a [Field], above: &mut Vec<&'a str>, leaves: &mut Vec<Column<'a>>) {
    for field in fields {
        above.push(field.physical_name());
        match (&field.data_type, field.id()) {
            (Type::Struct(inner), _) => collect(inner, above, leaves),
            (Type::Primitive(_), Some(id)) => {
                leaves.push(Column {
                    id,
                    physical: above.clone(),
                    data_type: &field.data_type,
                    was_float: field.was_float(),
                });
            }
            _ => {}
        }
        above.pop();
    }
}

type Object<'a> = HashMap<&'a str, &'a RawValue>;

/// The statistics of a file, parsed from JSON, with numbers as text.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Statistics<'a> {
    /// Number of rows of the file, deleted rows included.
    pub num_records: Option<i64>,
    #[serde(borrow)]
    min_values: Option<Object<'a>>,
    #[serde(borrow)]
    max_values: Option<Object<'a>>,
    #[serde(borrow)]
    null_count: Option<Object<'a>>,
}

/// Returns the value that an object of statistics has for a column: 1 for `a.b` in `{"a": {"b": 1}}`.
fn stated<'a>(object: Option<&Object<'a>>, path: &[&str]) -> Option<&'a str> {
    let (first, rest) = path.split_first()?;
    let value = object?.get(first)?.get();
    if rest.is_empty() { Some(value) } else { stated(Some(&serde_json::from_str(value).ok()?), rest) }
}

/// Returns the number of bytes of a vector with its frame.
pub fn vector_size(vector: &Descriptor) -> i64 {
    i64::from(vector.size_in_bytes) + FRAME
}

/// Appends the four maps of statistics by column: values, nulls, lower and upper bounds; four nulls if there
/// are no columns.
fn bounds(out: &mut Vec<u8>, leaves: &[Column<'_>], statistics: &Statistics<'_>) {
    let (mut values, mut nulls, mut lower, mut upper) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let records = statistics.num_records.unwrap_or(0);
    for column in leaves {
        let count = stated(statistics.null_count.as_ref(), &column.physical)
            .and_then(|text| text.parse::<i64>().ok());
        if let Some(count) = count {
            values.push((column.id, records));
            nulls.push((column.id, count));
        }
        let of = |object: Option<&Object<'_>>, side| {
            let text = stated(object, &column.physical)?;
            values::bound(text, column.data_type, column.was_float, side).map(|bytes| (column.id, bytes))
        };
        lower.extend(of(statistics.min_values.as_ref(), Side::Low));
        upper.extend(of(statistics.max_values.as_ref(), Side::High));
    }
    for counts in [values, nulls] {
        entries(out, &counts, |out, value| avro::long(out, *value));
    }
    for sides in [lower, upper] {
        entries(out, &sides, |out, value| avro::bytes(out, value));
    }
}

/// Appends a map from column ids, or null if it is empty.
fn entries<T>(out: &mut Vec<u8>, items: &[(i32, T)], write: impl Fn(&mut Vec<u8>, &T)) {
    if items.is_empty() {
        return avro::long(out, 0);
    }
    avro::long(out, 1);
    avro::long(out, items.len() as i64);
    for (id, value) in items {
        avro::long(out, i64::from(*id));
        write(out, value);
    }
    avro::long(out, 0);
}

/// An entry of an older manifest.
pub struct FormerEntry<'a> {
    /// `EXISTING`, `ADDED` or `DELETED`.
    pub status: i64,
    /// The snapshot that added or deleted the file.
    pub snapshot: Option<i64>,
    /// Sequence number of the rows.
    pub sequence: Option<i64>,
    /// Sequence number of the snapshot that added the file.
    pub file_sequence: Option<i64>,
    /// Address of the data file; for a deletion vector, of the file whose rows it deletes.
    pub data_location: &'a str,
    /// Number of rows of the file, or of deleted rows.
    pub rows: i64,
    /// Size of the file in bytes.
    pub size: i64,
    /// Bytes of the record `data_file`.
    pub data_file: &'a [u8],
}

impl<'a> FormerEntry<'a> {
    /// Reads the next entry. `fields`: the fields of an entry; `file`: the fields of its record `data_file`;
    /// `deletes`: true if the entries are deletion vectors.
    pub fn read(
        cursor: &mut Cursor<'a>,
        fields: &[(String, Layout)],
        file: &[(String, Layout)],
        deletes: bool,
    ) -> Result<Self> {
        let mut numbers = [None; 4];
        for (number, (_, layout)) in numbers.iter_mut().zip(fields) {
            *number = match layout {
                Layout::Union(branches) if *cursor.branch(branches)? == Layout::Null => None,
                _ => Some(cursor.long()?),
            };
        }
        let whole = cursor.0;
        let (mut data_location, mut rows, mut size) = ("", 0, 0);
        for (name, layout) in file {
            match name.as_str() {
                "file_path" if !deletes => data_location = cursor.text()?,
                "referenced_data_file" if deletes => {
                    cursor.long()?;
                    data_location = cursor.text()?;
                }
                "record_count" => rows = cursor.long()?,
                "file_size_in_bytes" => size = cursor.long()?,
                _ => cursor.skip(layout)?,
            }
        }
        let data_file = &whole[..whole.len() - cursor.0.len()];
        let [status, snapshot, sequence, file_sequence] = numbers;
        Ok(Self {
            status: status.unwrap_or(EXISTING),
            snapshot,
            sequence,
            file_sequence,
            data_location,
            rows,
            size,
            data_file,
        })
    }
}
