//! The columns of checkpoints: actions as structs, statistics as JSON and typed ("Checkpoint Schema").

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, StringArray, StructArray, new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields, Int32Type, Schema, SchemaRef};
use arrow::json::ReaderBuilder;

use super::checkpoint_writer::Choices;
use crate::error::{Error, Result};
use crate::log::reading::line::FileKind;
use crate::log::schema::{ADD, REMOVE, map, map_values, nested, text, text_map};
use crate::log::skipping::statistics::{StatisticsColumn, leniently, parse_as_written};
use crate::log::state::snapshot::Snapshot;
use crate::schema::partition_values::parse_array;
use crate::schema::{TableSchema, types};

/// The columns of a checkpoint.
pub(super) struct Plan {
    /// The columns of a checkpoint, one for each kind of action.
    pub schema: SchemaRef,
    stats_as_json: bool,
    typed: Option<TypedSchema>,
}

/// The physical names and types of the table's columns that the typed columns need.
#[derive(Clone)]
struct TypedSchema {
    partitions: Vec<(Vec<String>, DataType)>,
    leaves: Vec<StatisticsField>,
}

/// A table column that has typed statistics in a checkpoint.
#[derive(Clone)]
struct StatisticsField {
    path: Vec<String>,
    data_type: DataType,
    was_float: bool,
}

impl StatisticsField {
    fn wanted(&self) -> StatisticsColumn<'_> {
        StatisticsColumn { path: &self.path, data_type: &self.data_type, was_float: self.was_float }
    }
}

impl TypedSchema {
    fn of(schema: &TableSchema) -> Self {
        let partitions = schema
            .partition_fields()
            .map(|field| (vec![schema.physical_name(field).to_owned()], field.data_type.to_arrow(false)))
            .collect();
        let mut leaves = Vec::new();
        for (_, field) in schema.fields().iter().enumerate().filter(|(index, _)| !schema.is_partition(*index))
        {
            gather(schema, field, Vec::new(), &mut leaves);
        }
        Self { partitions, leaves }
    }
}

fn gather(
    schema: &TableSchema,
    field: &types::Field,
    mut path: Vec<String>,
    leaves: &mut Vec<StatisticsField>,
) {
    path.push(schema.physical_name(field).to_owned());
    match &field.data_type {
        types::Type::Struct(fields) => {
            fields.iter().for_each(|field| gather(schema, field, path.clone(), leaves))
        }
        types::Type::Primitive(types::Primitive::Void) => {}
        other => leaves.push(StatisticsField {
            path,
            data_type: other.to_arrow(false),
            was_float: field.was_float(),
        }),
    }
}

/// True for types that have a minimum and a maximum in statistics.
fn has_bounds(data_type: &DataType) -> bool {
    !data_type.is_nested() && !matches!(data_type, DataType::Binary | DataType::Boolean | DataType::Null)
}

impl Plan {
    /// Makes the columns of a checkpoint in one file. `second`: true for a V2 checkpoint ("V2 Spec"), which
    /// also has columns for its own action and for those of its sidecars.
    pub fn new(choices: &Choices, second: bool) -> Result<Self> {
        let mut plan = Self {
            schema: Arc::new(Schema::empty()),
            stats_as_json: choices.stats_as_json,
            typed: choices.stats_as_struct.as_deref().map(TypedSchema::of),
        };
        let mut types = vec![
            ("txn", DataType::Struct(transaction_fields())),
            ("add", plan.adds(&RecordBatch::new_empty(Arc::clone(&ADD)))?.data_type().clone()),
            ("remove", plan.removes(&RecordBatch::new_empty(Arc::clone(&REMOVE)))?.data_type().clone()),
            ("metaData", DataType::Struct(metadata_fields())),
            ("protocol", DataType::Struct(protocol_fields())),
            ("domainMetadata", DataType::Struct(domain_fields())),
        ];
        if second {
            types.push(("checkpointMetadata", DataType::Struct(checkpoint_fields())));
            types.push(("sidecar", DataType::Struct(sidecar_fields())));
        }
        plan.schema = Arc::new(Schema::new(
            types.into_iter().map(|(name, of)| Field::new(name, of, true)).collect::<Vec<_>>(),
        ));
        Ok(plan)
    }

    /// Returns the columns of a sidecar: only actions on files ("Sidecar Files").
    pub fn of_sidecar(&self) -> Result<Self> {
        let columns = ["add", "remove"].map(|name| self.schema.field_with_name(name).cloned());
        let schema = Arc::new(Schema::new(columns.into_iter().collect::<std::result::Result<Vec<_>, _>>()?));
        Ok(Self { schema, stats_as_json: self.stats_as_json, typed: self.typed.clone() })
    }

    /// Returns a hash of the columns of `add`. All sidecars of a checkpoint have the same one.
    pub fn fingerprint(&self) -> Result<String> {
        let add = format!("{:?}", self.schema.field_with_name("add")?.data_type());
        Ok(format!("{:08x}", crc32fast::hash(add.as_bytes())))
    }

    /// Returns rows of one action, in which all other actions are null.
    pub fn place(&self, name: &str, rows: ArrayRef) -> Result<RecordBatch> {
        let count = rows.len();
        let columns = self.schema.fields().iter().map(|field| {
            if field.name() == name { Arc::clone(&rows) } else { new_null_array(field.data_type(), count) }
        });
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns.collect())?)
    }

    /// Returns actions on files as rows of the checkpoint.
    pub fn actions(&self, kind: FileKind, batch: &RecordBatch) -> Result<RecordBatch> {
        match kind {
            FileKind::Add => self.place("add", Arc::new(self.adds(batch)?)),
            FileKind::Remove => self.place("remove", Arc::new(self.removes(batch)?)),
        }
    }

    fn adds(&self, batch: &RecordBatch) -> Result<StructArray> {
        let mut columns: Vec<(Field, ArrayRef)> = without_change(batch);
        columns.retain(|(field, _)| self.stats_as_json || field.name() != "stats");
        if let Some(typed) = &self.typed {
            for (name, rows) in [
                ("partitionValues_parsed", typed.partition_values(batch)?),
                ("stats_parsed", typed.statistics(batch)?),
            ] {
                if rows.num_columns() > 0 {
                    columns.push((Field::new(name, rows.data_type().clone(), true), Arc::new(rows)));
                }
            }
        }
        struct_of(columns, batch.num_rows())
    }

    fn removes(&self, batch: &RecordBatch) -> Result<StructArray> {
        let mut columns = without_change(batch);
        columns.retain(|(field, _)| !matches!(field.name().as_str(), "stats" | "tags"));
        struct_of(columns, batch.num_rows())
    }
}

fn struct_of(columns: Vec<(Field, ArrayRef)>, rows: usize) -> Result<StructArray> {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    Ok(StructArray::try_new_with_length(Fields::from(fields), arrays, None, rows)?)
}

/// Returns the columns with dataChange false, as a checkpoint does not change data.
fn without_change(batch: &RecordBatch) -> Vec<(Field, ArrayRef)> {
    let column = |(field, column): (&Arc<Field>, &ArrayRef)| match field.name().as_str() {
        "dataChange" => {
            (field.as_ref().clone(), Arc::new(BooleanArray::from(vec![false; batch.num_rows()])) as ArrayRef)
        }
        _ => (field.as_ref().clone(), Arc::clone(column)),
    };
    batch.schema_ref().fields().iter().zip(batch.columns()).map(column).collect()
}

impl TypedSchema {
    fn partition_values(&self, batch: &RecordBatch) -> Result<StructArray> {
        let maps = map(batch, "partitionValues")?;
        let typed = self.partitions.iter().map(|(path, data_type)| -> Result<(&[String], ArrayRef)> {
            let texts = map_values(maps, &path[0]);
            // A text that is no value of the type is null here, and stays in partitionValues.
            let values = parse_array(&texts, data_type).or_else(|_| leniently(&texts, data_type))?;
            Ok((path.as_slice(), values))
        });
        nested(&typed.collect::<Result<Vec<_>>>()?, batch.num_rows())
    }

    fn statistics(&self, batch: &RecordBatch) -> Result<StructArray> {
        let rows = batch.num_rows();
        let json = text(batch, "stats")?;
        let wanted: Vec<StatisticsColumn<'_>> = self.leaves.iter().map(StatisticsField::wanted).collect();
        let known = parse_as_written(json, &wanted)?;
        let of_bounds =
            || self.leaves.iter().zip(&known.columns).filter(|(leaf, _)| has_bounds(&leaf.data_type));
        let min: Vec<_> =
            of_bounds().map(|(leaf, column)| (leaf.path.as_slice(), Arc::clone(&column.min))).collect();
        let max: Vec<_> =
            of_bounds().map(|(leaf, column)| (leaf.path.as_slice(), Arc::clone(&column.max))).collect();
        let nulls = self.leaves.iter().zip(&known.columns);
        let nulls: Vec<_> = nulls
            .map(|(leaf, column)| (leaf.path.as_slice(), Arc::new(column.null_count.clone()) as ArrayRef))
            .collect();
        let mut columns: Vec<(Field, ArrayRef)> = vec![
            (Field::new("numRecords", DataType::Int64, true), Arc::new(known.num_records)),
            (Field::new("tightBounds", DataType::Boolean, true), Arc::new(tight_bounds(json))),
        ];
        for (name, leaves) in [("minValues", min), ("maxValues", max), ("nullCount", nulls)] {
            if !leaves.is_empty() {
                let values = nested(&leaves, rows)?;
                columns.push((Field::new(name, values.data_type().clone(), true), Arc::new(values)));
            }
        }
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
        let present = NullBuffer::from_iter((0..rows).map(|row| json.is_valid(row)));
        Ok(StructArray::try_new_with_length(Fields::from(fields), arrays, Some(present), rows)?)
    }
}

fn tight_bounds(json: &StringArray) -> BooleanArray {
    #[derive(serde::Deserialize)]
    struct Tight {
        #[serde(rename = "tightBounds")]
        tight: Option<bool>,
    }
    json.iter().map(|text| serde_json::from_str::<Tight>(text?).ok()?.tight).collect()
}

/// Returns protocol, metaData, txn and domainMetadata, one batch for each kind that the snapshot has.
pub(super) fn single_actions(
    snapshot: &Snapshot,
    choices: &Choices,
    plan: &Plan,
) -> Result<Vec<RecordBatch>> {
    let mut batches = Vec::new();
    for (name, action) in [("protocol", snapshot.protocol()), ("metaData", snapshot.metadata())] {
        let action = action.ok_or_else(|| {
            Error::protocol("a checkpoint needs the table's protocol and metadata").expected(name)
        })?;
        batches.push(plan.place(name, from_json(plan, name, &[action])?)?);
    }
    let (mut names, mut versions, mut updated) = (Vec::new(), Vec::new(), Vec::new());
    for (name, (version, time)) in kept_transactions(snapshot, choices) {
        names.push(name.as_str());
        versions.push(*version);
        updated.push(*time);
    }
    if !names.is_empty() {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(names)),
            Arc::new(Int64Array::from(versions)),
            Arc::new(Int64Array::from(updated)),
        ];
        batches
            .push(plan.place("txn", Arc::new(StructArray::try_new(transaction_fields(), columns, None)?))?);
    }
    let domains: Vec<&str> = snapshot.domains().values().map(String::as_str).collect();
    if !domains.is_empty() {
        batches.push(plan.place("domainMetadata", from_json(plan, "domainMetadata", &domains)?)?);
    }
    Ok(batches)
}

/// Returns the transactions that have not expired.
pub(super) fn kept_transactions<'a>(
    snapshot: &'a Snapshot,
    choices: &'a Choices,
) -> impl Iterator<Item = (&'a String, &'a (i64, Option<i64>))> {
    let min = choices.min_transaction_timestamp;
    snapshot
        .transactions()
        .iter()
        .filter(move |(_, (_, updated))| min.is_none_or(|min| updated.is_none_or(|updated| updated >= min)))
}

/// Parses the JSON of actions to the type of their column. Fields that the type does not have are omitted.
pub(super) fn from_json(plan: &Plan, name: &str, actions: &[&str]) -> Result<ArrayRef> {
    let field = plan.schema.field_with_name(name)?;
    let malformed = |error| Error::protocol("an action of the log is malformed").at(name).caused_by(error);
    let DataType::Struct(fields) = field.data_type() else {
        return Err(Error::protocol("an action without columns").at(name));
    };
    let mut decoder = ReaderBuilder::new(Arc::new(Schema::new(fields.clone())))
        .with_batch_size(actions.len())
        .build_decoder()
        .map_err(malformed)?;
    for action in actions {
        decoder.decode(action.as_bytes()).map_err(malformed)?;
    }
    let rows = decoder
        .flush()
        .map_err(malformed)?
        .ok_or_else(|| Error::protocol("an action of the log is malformed").at(name))?;
    let rows = StructArray::from(rows);
    check_versions(name, &rows)?;
    Ok(Arc::new(rows))
}

fn check_versions(name: &str, rows: &StructArray) -> Result<()> {
    let whole = |column: &str| {
        rows.column_by_name(column).is_some_and(|column| column.as_primitive::<Int32Type>().null_count() == 0)
    };
    if name == "protocol" && !(whole("minReaderVersion") && whole("minWriterVersion")) {
        return Err(Error::protocol("a protocol action without its versions"));
    }
    Ok(())
}

fn list() -> DataType {
    DataType::List(Arc::new(Field::new("element", DataType::Utf8, true)))
}

fn transaction_fields() -> Fields {
    Fields::from(vec![
        Field::new("appId", DataType::Utf8, true),
        Field::new("version", DataType::Int64, true),
        Field::new("lastUpdated", DataType::Int64, true),
    ])
}

fn protocol_fields() -> Fields {
    Fields::from(vec![
        Field::new("minReaderVersion", DataType::Int32, true),
        Field::new("minWriterVersion", DataType::Int32, true),
        Field::new("readerFeatures", list(), true),
        Field::new("writerFeatures", list(), true),
    ])
}

fn metadata_fields() -> Fields {
    let format = Fields::from(vec![
        Field::new("provider", DataType::Utf8, true),
        Field::new("options", text_map(), true),
    ]);
    Fields::from(vec![
        Field::new("id", DataType::Utf8, true),
        Field::new("name", DataType::Utf8, true),
        Field::new("description", DataType::Utf8, true),
        Field::new("format", DataType::Struct(format), true),
        Field::new("schemaString", DataType::Utf8, true),
        Field::new("partitionColumns", list(), true),
        Field::new("configuration", text_map(), true),
        Field::new("createdTime", DataType::Int64, true),
    ])
}

fn domain_fields() -> Fields {
    Fields::from(vec![
        Field::new("domain", DataType::Utf8, true),
        Field::new("configuration", DataType::Utf8, true),
        Field::new("removed", DataType::Boolean, true),
    ])
}

fn checkpoint_fields() -> Fields {
    Fields::from(vec![Field::new("version", DataType::Int64, true), Field::new("tags", text_map(), true)])
}

fn sidecar_fields() -> Fields {
    Fields::from(vec![
        Field::new("path", DataType::Utf8, true),
        Field::new("sizeInBytes", DataType::Int64, true),
        Field::new("modificationTime", DataType::Int64, true),
        Field::new("tags", text_map(), true),
    ])
}
