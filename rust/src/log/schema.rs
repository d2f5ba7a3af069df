//! The columns of tables of `add` and `remove`, with the names and types of PROTOCOL.md, so that they are
//! written to JSON and Parquet without conversion.

use std::sync::{Arc, LazyLock};

use arrow::array::{
    Array, ArrayRef, AsArray, MapArray, MapBuilder, MapFieldNames, RecordBatch, StringArray, StringBuilder,
    StructArray, new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};

use crate::error::{Error, Kind, Result};
use crate::schema::arrow_types::map_of;

/// The columns of `add`, one row per file.
pub static ADD: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema([
        Field::new("path", DataType::Utf8, false),
        Field::new("partitionValues", text_map(), true),
        Field::new("size", DataType::Int64, true),
        Field::new("modificationTime", DataType::Int64, true),
        Field::new("dataChange", DataType::Boolean, true),
        Field::new("stats", DataType::Utf8, true),
        Field::new("tags", text_map(), true),
        Field::new("deletionVector", DataType::Struct(vector_fields()), true),
        Field::new("baseRowId", DataType::Int64, true),
        Field::new("defaultRowCommitVersion", DataType::Int64, true),
        Field::new("clusteringProvider", DataType::Utf8, true),
    ])
});

/// The columns that replay needs of `add` and `remove`.
pub static KEYED: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema([
        Field::new("path", DataType::Utf8, false),
        Field::new("size", DataType::Int64, true),
        Field::new("deletionVector", DataType::Struct(vector_fields()), true),
    ])
});

/// The columns of `remove`, one row per tombstone.
pub static REMOVE: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema([
        Field::new("path", DataType::Utf8, false),
        Field::new("deletionTimestamp", DataType::Int64, true),
        Field::new("dataChange", DataType::Boolean, true),
        Field::new("extendedFileMetadata", DataType::Boolean, true),
        Field::new("partitionValues", text_map(), true),
        Field::new("size", DataType::Int64, true),
        Field::new("stats", DataType::Utf8, true),
        Field::new("tags", text_map(), true),
        Field::new("deletionVector", DataType::Struct(vector_fields()), true),
        Field::new("baseRowId", DataType::Int64, true),
        Field::new("defaultRowCommitVersion", DataType::Int64, true),
    ])
});

/// The columns of `cdc`, one row per change file.
pub static CDC: LazyLock<SchemaRef> = LazyLock::new(|| {
    schema([
        Field::new("path", DataType::Utf8, false),
        Field::new("partitionValues", text_map(), true),
        Field::new("size", DataType::Int64, true),
        Field::new("dataChange", DataType::Boolean, true),
        Field::new("tags", text_map(), true),
    ])
});

fn schema<const N: usize>(fields: [Field; N]) -> SchemaRef {
    Arc::new(Schema::new(Vec::from(fields)))
}

/// Returns the type of a map of text to text, whose values may be null. The children have the names of
/// Parquet.
pub fn text_map() -> DataType {
    map_of(DataType::Utf8, DataType::Utf8, true)
}

/// Builds a column of [`text_map`].
pub fn text_map_builder() -> MapBuilder<StringBuilder, StringBuilder> {
    let names =
        MapFieldNames { entry: "key_value".to_owned(), key: "key".to_owned(), value: "value".to_owned() };
    MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new())
}

/// Returns the fields of a deletion vector's descriptor.
pub fn vector_fields() -> Fields {
    Fields::from(vec![
        Field::new("storageType", DataType::Utf8, true),
        Field::new("pathOrInlineDv", DataType::Utf8, true),
        Field::new("offset", DataType::Int32, true),
        Field::new("sizeInBytes", DataType::Int32, true),
        Field::new("cardinality", DataType::Int64, true),
    ])
}

/// Converts a table of actions to a schema: columns are matched by name; missing ones become null, further
/// ones are omitted.
pub fn conform(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.schema_ref().fields() == schema.fields() {
        return Ok(RecordBatch::try_new(Arc::clone(schema), batch.columns().to_vec())?);
    }
    let columns = schema.fields().iter().map(|field| match batch.column_by_name(field.name()) {
        Some(column) => conform_column(column, field.data_type(), field.name()),
        None if field.is_nullable() => Ok(new_null_array(field.data_type(), batch.num_rows())),
        None => Err(Error::new(Kind::InvalidArgument, "a table of actions without a column it needs")
            .expected(field.name())),
    });
    Ok(RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<_>>()?)?)
}

/// Converts a column of actions to its type. Structs and maps are converted field by field, as the names of
/// their children may differ.
pub fn conform_column(column: &ArrayRef, wanted: &DataType, name: &str) -> Result<ArrayRef> {
    if column.data_type() == wanted {
        return Ok(Arc::clone(column));
    }
    match (column.data_type(), wanted) {
        (DataType::Null, _) => Ok(new_null_array(wanted, column.len())),
        (DataType::Struct(_), DataType::Struct(fields)) => conform_struct(column.as_struct(), fields, name),
        (DataType::Map(_, _), DataType::Map(entry, sorted)) => {
            conform_map(column.as_map(), entry, *sorted, name)
        }
        (from, _) => {
            let wrong = || {
                Error::protocol("a column of the log has the wrong type")
                    .at(name)
                    .found(from)
                    .expected(wanted)
            };
            if !fits(from, wanted) {
                return Err(wrong());
            }
            let exact = CastOptions { safe: false, ..CastOptions::default() };
            cast_with_options(column, wanted, &exact).map_err(|error| wrong().caused_by(error))
        }
    }
}

/// True if the types hold the same kind of values, such as two types of text. Numbers as text are an error of
/// the writer.
fn fits(from: &DataType, wanted: &DataType) -> bool {
    let from = match from {
        DataType::Dictionary(_, values) => values,
        other => other,
    };
    match wanted {
        DataType::Utf8 => from.is_string() || from.is_binary(),
        _ => from.is_integer() && wanted.is_integer(),
    }
}

fn conform_struct(column: &StructArray, fields: &Fields, name: &str) -> Result<ArrayRef> {
    let children = fields.iter().map(|field| match column.column_by_name(field.name()) {
        Some(child) => conform_column(child, field.data_type(), &format!("{name}.{}", field.name())),
        None => Ok(new_null_array(field.data_type(), column.len())),
    });
    Ok(Arc::new(StructArray::try_new_with_length(
        fields.clone(),
        children.collect::<Result<_>>()?,
        column.nulls().cloned(),
        column.len(),
    )?))
}

fn conform_map(column: &MapArray, entry: &Arc<Field>, sorted: bool, name: &str) -> Result<ArrayRef> {
    let DataType::Struct(fields) = entry.data_type() else {
        return Err(Error::protocol("a map without entries").at(name));
    };
    let keys = conform_column(column.keys(), fields[0].data_type(), name)?;
    let values = conform_column(column.values(), fields[1].data_type(), name)?;
    let entries = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
    Ok(Arc::new(MapArray::try_new(
        Arc::clone(entry),
        column.offsets().clone(),
        entries,
        column.nulls().cloned(),
        sorted,
    )?))
}

/// Returns a text column of a batch in one of this module's schemas.
pub fn text<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a StringArray> {
    batch.column_by_name(name).and_then(|column| column.as_string_opt()).ok_or_else(|| lacks(name))
}

/// Returns a column of 64-bit integers of a batch in one of this module's schemas.
pub fn long<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a arrow::array::Int64Array> {
    batch.column_by_name(name).and_then(|column| column.as_primitive_opt()).ok_or_else(|| lacks(name))
}

/// Returns a map column of a batch in one of this module's schemas.
pub fn map<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a MapArray> {
    batch.column_by_name(name).and_then(|column| column.as_map_opt()).ok_or_else(|| lacks(name))
}

/// Returns the column of deletion vectors of a batch in one of this module's schemas.
pub fn vectors(batch: &RecordBatch) -> Result<&StructArray> {
    batch
        .column_by_name("deletionVector")
        .and_then(|column| column.as_struct_opt())
        .ok_or_else(|| lacks("deletionVector"))
}

fn lacks(name: &str) -> Error {
    Error::new(Kind::InvalidArgument, "a table of actions without a column it needs").expected(name)
}

/// Returns each row's value for `key`: null if the map is null, has no such key, or has null.
pub fn map_values(map: &MapArray, key: &str) -> StringArray {
    let (keys, values, offsets) =
        (map.keys().as_string::<i32>(), map.values().as_string::<i32>(), map.offsets());
    let find = |row: usize| {
        let (from, to) = (offsets[row] as usize, offsets[row + 1] as usize);
        (from..to)
            .find(|&at| keys.value(at) == key)
            .filter(|&at| values.is_valid(at))
            .map(|at| values.value(at))
    };
    (0..map.len()).map(|row| if map.is_valid(row) { find(row) } else { None }).collect()
}

/// Returns a map column of `rows` empty maps.
pub fn empty_maps(rows: usize) -> Result<ArrayRef> {
    let DataType::Map(entry, sorted) = text_map() else {
        return Err(Error::protocol("a map without entries"));
    };
    let DataType::Struct(fields) = entry.data_type() else {
        return Err(Error::protocol("a map without entries"));
    };
    let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(0, rows));
    let entries = StructArray::new_empty_fields(0, None);
    let entries = if fields.is_empty() { entries } else { StructArray::new_null(fields.clone(), 0) };
    Ok(Arc::new(MapArray::try_new(entry, offsets, entries, None::<NullBuffer>, sorted)?))
}

/// Builds a struct of `rows` rows from columns named by paths. Paths with a common beginning must be
/// consecutive, and share an inner struct.
pub fn nested(columns: &[(&[String], ArrayRef)], rows: usize) -> Result<StructArray> {
    let (mut fields, mut arrays, mut at) = (Vec::new(), Vec::new(), 0);
    while let Some((path, array)) = columns.get(at) {
        let name = path.first().map(String::as_str).unwrap_or_default();
        let same = columns[at..]
            .iter()
            .take_while(|(other, _)| other.first().is_some_and(|first| first == name))
            .count()
            .max(1);
        let array = if path.len() <= 1 {
            Arc::clone(array)
        } else {
            let inner: Vec<_> =
                columns[at..at + same].iter().map(|(path, array)| (&path[1..], Arc::clone(array))).collect();
            Arc::new(nested(&inner, rows)?)
        };
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
        at += same;
    }
    Ok(StructArray::try_new_with_length(Fields::from(fields), arrays, None, rows)?)
}
