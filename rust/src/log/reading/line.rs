//! Parses one line of a commit: its action and the fields, which borrow from the text if possible.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{ArrayBuilder, BooleanArray};
use arrow::array::{
    ArrayRef, BooleanBuilder, Int32Builder, Int64Builder, MapBuilder, RecordBatch, StringBuilder,
    StructArray, StructBuilder,
};
use arrow::datatypes::SchemaRef;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::commit::VectorId;
use crate::error::{Error, Result};
use crate::log::schema;

/// Maximum depth of nesting in an action.
const MAX_DEPTH: usize = 128;

/// Text that borrows from the line, unless it contains escapes.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

/// A JSON object of texts, in order, without repeated keys.
#[derive(Debug, Default)]
pub struct Pairs<'a>(Vec<(Cow<'a, str>, Option<Cow<'a, str>>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Gather;
        impl<'de> Visitor<'de> for Gather {
            type Value = Pairs<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of texts")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs: Vec<(Cow<'de, str>, Option<Cow<'de, str>>)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<Text<'de>, Option<Text<'de>>>()? {
                    if pairs.iter().any(|(known, _)| *known == key.0) {
                        return Err(A::Error::custom(format_args!("the key '{}' twice", key.0)));
                    }
                    pairs.push((key.0, value.map(|text| text.0)));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Gather)
    }
}

/// Descriptor of a deletion vector.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Vector<'a> {
    #[serde(borrow)]
    storage_type: Text<'a>,
    #[serde(borrow)]
    path_or_inline_dv: Text<'a>,
    offset: Option<i32>,
    size_in_bytes: i32,
    cardinality: i64,
}

/// Text whose presence is checked, but not its content.
#[derive(Debug)]
pub struct SkippedText;

impl<'de> Deserialize<'de> for SkippedText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value: &'de RawValue = Deserialize::deserialize(deserializer)?;
        if value.get().starts_with('"') { Ok(Self) } else { Err(D::Error::custom("no text")) }
    }
}

/// The fields of `add` and `remove`. `S`: the type of the statistics, [`Text`] or [`SkippedText`].
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "S: Deserialize<'de>"))]
pub struct FileAction<'a, S> {
    #[serde(borrow)]
    path: Text<'a>,
    #[serde(borrow)]
    partition_values: Option<Pairs<'a>>,
    size: Option<i64>,
    modification_time: Option<i64>,
    deletion_timestamp: Option<i64>,
    data_change: Option<bool>,
    extended_file_metadata: Option<bool>,
    stats: Option<S>,
    #[serde(borrow)]
    tags: Option<Pairs<'a>>,
    #[serde(borrow)]
    deletion_vector: Option<Vector<'a>>,
    base_row_id: Option<i64>,
    default_row_commit_version: Option<i64>,
    #[serde(borrow)]
    clustering_provider: Option<Text<'a>>,
}

impl<S> FileAction<'_, S> {
    /// Returns the path as written in the log.
    pub fn path(&self) -> &str {
        &self.path.0
    }

    /// Returns the parts that identify the file's vector in a key.
    pub fn vector_id(&self) -> Option<VectorId<'_>> {
        self.deletion_vector.as_ref().map(|vector| {
            (vector.storage_type.0.as_ref(), vector.path_or_inline_dv.0.as_ref(), vector.offset)
        })
    }

    /// Returns the size of the file in bytes; 0 if a remove does not have it.
    pub fn size(&self) -> i64 {
        self.size.unwrap_or(0)
    }

    /// Returns an error if the action is invalid.
    pub fn check(&self, kind: FileKind) -> Result<()> {
        match self.fault(kind) {
            Some((found, expected)) => {
                Err(Error::protocol("the action on a file is malformed").found(found).expected(expected))
            }
            None => Ok(()),
        }
    }

    /// Returns (found, expected) if the action is invalid.
    fn fault(&self, kind: FileKind) -> Option<(String, &'static str)> {
        if self.path.0.is_empty() {
            return Some(("an empty path".to_owned(), "a path"));
        }
        if let Some(size) = self.size.filter(|size| *size < 0) {
            return Some((format!("size {size}"), "a size of 0 or more"));
        }
        if let Some(vector) = &self.deletion_vector
            && (vector.size_in_bytes < 0
                || vector.cardinality < 0
                || vector.offset.is_some_and(|offset| offset < 0))
        {
            return Some(("a negative number in deletionVector".to_owned(), "sizes of 0 or more"));
        }
        let lacks = |missing: bool, name: &'static str| missing.then(|| ("no such field".to_owned(), name));
        match kind {
            FileKind::Add => lacks(self.partition_values.is_none(), "partitionValues")
                .or_else(|| lacks(self.size.is_none(), "size"))
                .or_else(|| lacks(self.modification_time.is_none(), "modificationTime"))
                .or_else(|| lacks(self.data_change.is_none(), "dataChange")),
            FileKind::Remove => lacks(self.data_change.is_none(), "dataChange"),
        }
    }
}

/// The two kinds of actions on files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// `add`
    Add,
    /// `remove`
    Remove,
}

impl FileKind {
    /// Returns the name of the action.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Remove => "remove",
        }
    }
    /// Returns the columns of a table of these actions.
    pub fn schema(self) -> &'static SchemaRef {
        match self {
            Self::Add => &schema::ADD,
            Self::Remove => &schema::REMOVE,
        }
    }
}

/// The actions that are kept as JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// `commitInfo`
    CommitInfo,
    /// `protocol`
    Protocol,
    /// `metaData`
    Metadata,
    /// `txn`
    Transaction,
    /// `domainMetadata`
    Domain,
    /// `sidecar`, in V2 checkpoints
    Sidecar,
}

/// The action in a line.
#[derive(Debug)]
pub enum Action<'a, S> {
    /// `add` or `remove`
    File(FileKind, Box<FileAction<'a, S>>),
    /// `cdc`
    ChangeFile(&'a RawValue),
    /// An action kept as text.
    Text(TextKind, &'a RawValue),
    /// The action is not known.
    Other,
}

impl<'de: 'a, 'a, S: Deserialize<'de>> Deserialize<'de> for Action<'a, S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Top<S>(PhantomData<S>);
        impl<'de, S: Deserialize<'de>> Visitor<'de> for Top<S> {
            type Value = Action<'de, S>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an action: an object with one field")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut found = None;
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    let action = read_action(&key.0, &mut map)?;
                    if let Some(action) = action
                        && found.replace(action).is_some()
                    {
                        return Err(A::Error::custom("two actions on one line"));
                    }
                }
                Ok(found.unwrap_or(Action::Other))
            }
        }
        deserializer.deserialize_map(Top(PhantomData))
    }
}

fn read_action<'de, A: MapAccess<'de>, S: Deserialize<'de>>(
    name: &str,
    map: &mut A,
) -> Result<Option<Action<'de, S>>, A::Error> {
    let mut file = |kind| {
        Ok(map.next_value::<Option<Box<FileAction<'de, S>>>>()?.map(|action| Action::File(kind, action)))
    };
    let kind = match name {
        "add" => return file(FileKind::Add),
        "remove" => return file(FileKind::Remove),
        "commitInfo" => Some(TextKind::CommitInfo),
        "protocol" => Some(TextKind::Protocol),
        "metaData" => Some(TextKind::Metadata),
        "txn" => Some(TextKind::Transaction),
        "domainMetadata" => Some(TextKind::Domain),
        "sidecar" => Some(TextKind::Sidecar),
        _ => None,
    };
    let value: &'de RawValue = map.next_value()?;
    if too_deep(value.get()) {
        return Err(A::Error::custom(format_args!("'{name}' is nested deeper than {MAX_DEPTH}")));
    }
    Ok(match (kind, value.get()) {
        (_, "null") => None,
        (Some(kind), text) if text.starts_with('{') => Some(Action::Text(kind, value)),
        (Some(_), _) => return Err(A::Error::custom(format_args!("'{name}' is no object"))),
        (None, text) if name == "cdc" && text.starts_with('{') => Some(Action::ChangeFile(value)),
        (None, _) if name == "cdc" => return Err(A::Error::custom("'cdc' is no object")),
        (None, _) => None, // an action of a later release is ignored, alone or beside a known action
    })
}

fn too_deep(json: &str) -> bool {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return true;
                }
            }
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Collects actions on files in columns.
pub struct FileActions {
    kind: FileKind,
    path: StringBuilder,
    partition_values: MapBuilder<StringBuilder, StringBuilder>,
    size: Int64Builder,
    time: Int64Builder,
    data_change: BooleanBuilder,
    extended: BooleanBuilder,
    stats: StringBuilder,
    tags: MapBuilder<StringBuilder, StringBuilder>,
    vector: StructBuilder,
    base_row_id: Int64Builder,
    default_row_commit_version: Int64Builder,
    clustering_provider: StringBuilder,
}

fn append_map(
    builder: &mut MapBuilder<StringBuilder, StringBuilder>,
    pairs: Option<&Pairs<'_>>,
) -> Result<()> {
    for (key, value) in pairs.iter().flat_map(|pairs| &pairs.0) {
        builder.keys().append_value(key);
        builder.values().append_option(value.as_deref());
    }
    Ok(builder.append(pairs.is_some())?)
}

impl FileActions {
    /// Makes an empty collection.
    pub fn new(kind: FileKind) -> Self {
        Self {
            kind,
            path: StringBuilder::new(),
            partition_values: schema::text_map_builder(),
            size: Int64Builder::new(),
            time: Int64Builder::new(),
            data_change: BooleanBuilder::new(),
            extended: BooleanBuilder::new(),
            stats: StringBuilder::new(),
            tags: schema::text_map_builder(),
            vector: StructBuilder::from_fields(schema::vector_fields(), 0),
            base_row_id: Int64Builder::new(),
            default_row_commit_version: Int64Builder::new(),
            clustering_provider: StringBuilder::new(),
        }
    }

    /// Returns the number of actions.
    pub fn len(&self) -> usize {
        self.path.len()
    }

    /// True if there are no actions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends an action, or returns an error if it is invalid.
    pub fn append(&mut self, action: &FileAction<'_, Text<'_>>) -> Result<()> {
        action.check(self.kind)?;
        self.path.append_value(&action.path.0);
        append_map(&mut self.partition_values, action.partition_values.as_ref())?;
        self.size.append_option(action.size);
        self.time.append_option(match self.kind {
            FileKind::Add => action.modification_time,
            FileKind::Remove => action.deletion_timestamp,
        });
        self.data_change.append_option(action.data_change);
        self.extended.append_option(action.extended_file_metadata);
        self.stats.append_option(action.stats.as_ref().map(|text| &text.0));
        append_map(&mut self.tags, action.tags.as_ref())?;
        self.append_vector(action.deletion_vector.as_ref())?;
        self.base_row_id.append_option(action.base_row_id);
        self.default_row_commit_version.append_option(action.default_row_commit_version);
        self.clustering_provider.append_option(action.clustering_provider.as_ref().map(|text| &text.0));
        Ok(())
    }

    fn append_vector(&mut self, vector: Option<&Vector<'_>>) -> Result<()> {
        let wrong = || Error::protocol("the columns of a vector are mixed up");
        let builder = &mut self.vector;
        builder
            .field_builder::<StringBuilder>(0)
            .ok_or_else(wrong)?
            .append_option(vector.map(|v| &v.storage_type.0));
        builder
            .field_builder::<StringBuilder>(1)
            .ok_or_else(wrong)?
            .append_option(vector.map(|v| &v.path_or_inline_dv.0));
        builder
            .field_builder::<Int32Builder>(2)
            .ok_or_else(wrong)?
            .append_option(vector.and_then(|v| v.offset));
        builder
            .field_builder::<Int32Builder>(3)
            .ok_or_else(wrong)?
            .append_option(vector.map(|v| v.size_in_bytes));
        builder
            .field_builder::<Int64Builder>(4)
            .ok_or_else(wrong)?
            .append_option(vector.map(|v| v.cardinality));
        builder.append(vector.is_some());
        Ok(())
    }

    /// Returns the columns in [`schema::ADD`] or [`schema::REMOVE`].
    pub fn finish(mut self) -> Result<RecordBatch> {
        let schema = self.kind.schema();
        let time: ArrayRef = Arc::new(self.time.finish());
        let extended: BooleanArray = self.extended.finish();
        let vector: StructArray = self.vector.finish();
        let named: [(&str, ArrayRef); 13] = [
            ("path", Arc::new(self.path.finish())),
            ("partitionValues", Arc::new(self.partition_values.finish())),
            ("size", Arc::new(self.size.finish())),
            ("modificationTime", Arc::clone(&time)),
            ("deletionTimestamp", time),
            ("dataChange", Arc::new(self.data_change.finish())),
            ("extendedFileMetadata", Arc::new(extended)),
            ("stats", Arc::new(self.stats.finish())),
            ("tags", Arc::new(self.tags.finish())),
            ("deletionVector", Arc::new(vector)),
            ("baseRowId", Arc::new(self.base_row_id.finish())),
            ("defaultRowCommitVersion", Arc::new(self.default_row_commit_version.finish())),
            ("clusteringProvider", Arc::new(self.clustering_provider.finish())),
        ];
        let of =
            |name: &str| named.iter().find(|(known, _)| *known == name).map(|(_, column)| Arc::clone(column));
        let columns = schema.fields().iter().filter_map(|field| of(field.name())).collect();
        Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
    }
}
