//! The files of a scan: rows of `add` actions as Arrow. A row is read only when its file is opened.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Int32Array, Int64Array, MapArray, RecordBatch,
    StringArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use serde::Deserialize;

use crate::deletion_vector::columns::Descriptors;
use crate::deletion_vector::row_ids::FILE_COLUMN;
use crate::deletion_vector::{DeletionVector, Descriptor};
use crate::error::{Error, Kind, Result};
use crate::log::schema::text_map;

/// Rows of `add` actions, with their columns resolved.
#[derive(Debug, Clone)]
pub struct Files {
    /// All columns of the input.
    pub batch: RecordBatch,
    path: StringArray,
    size: Option<Int64Array>,
    modified: Option<Int64Array>,
    partition_values: Option<MapArray>,
    vector: Option<Descriptors>,
    stats: Option<StringArray>,
    selection: Option<BinaryArray>,
    keep_selected: Option<BooleanArray>,
    ordinal: Option<Int32Array>,
}

impl Files {
    /// Resolves the columns, and casts them to plain types.
    pub fn new(batch: RecordBatch) -> Result<Self> {
        let text = |name: &str| {
            typed(&batch, name, &DataType::Utf8)
                .map(|found| found.map(|array| array.as_string::<i32>().clone()))
        };
        let path = text("path")?
            .ok_or_else(|| Error::new(Kind::InvalidArgument, "the files have no column \"path\""))?;
        Ok(Self {
            path,
            size: typed(&batch, "size", &DataType::Int64)?
                .map(|array| array.as_primitive::<Int64Type>().clone()),
            modified: typed(&batch, "modificationTime", &DataType::Int64)?
                .map(|array| array.as_primitive::<Int64Type>().clone()),
            partition_values: typed(&batch, "partitionValues", &text_map())?
                .map(|array| array.as_map().clone()),
            vector: batch
                .column_by_name("deletionVector")
                .map(|column| Descriptors::of(column))
                .transpose()?,
            stats: text("stats")?,
            selection: typed(&batch, "selection", &DataType::Binary)?
                .map(|array| array.as_binary::<i32>().clone()),
            keep_selected: typed(&batch, "keep_selected", &DataType::Boolean)?
                .map(|array| array.as_boolean().clone()),
            ordinal: typed(&batch, FILE_COLUMN, &DataType::Int32)?
                .map(|array| array.as_primitive::<Int32Type>().clone()),
            batch,
        })
    }
    /// Returns the number of files.
    pub fn len(&self) -> usize {
        self.batch.num_rows()
    }
    /// True if there is no file.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns the path as the log spells it.
    pub fn path(&self, index: usize) -> Result<&str> {
        if self.path.is_null(index) {
            return Err(Error::protocol("a file has no path").at(format!("file {index}")));
        }
        Ok(self.path.value(index))
    }
    /// Returns the size in bytes, if it is known.
    pub fn size(&self, index: usize) -> Result<Option<u64>> {
        match self.size.as_ref().filter(|size| size.is_valid(index)).map(|size| size.value(index)) {
            None => Ok(None),
            Some(size) => u64::try_from(size).map(Some).map_err(|_| {
                Error::protocol("a file has a negative size").at(self.path.value(index)).found(size)
            }),
        }
    }
    /// Returns the time of modification in milliseconds since 1970, if it is known and not before 1970.
    pub fn modified(&self, index: usize) -> Option<u64> {
        self.modified
            .as_ref()
            .filter(|times| times.is_valid(index))
            .and_then(|times| u64::try_from(times.value(index)).ok())
    }
    /// Returns the value of the partition column with this physical name; `None` for null. A missing value is
    /// an error.
    pub fn partition_value(&self, index: usize, physical: &str) -> Result<Option<String>> {
        if let Some(map) = self.partition_values.as_ref().filter(|map| map.is_valid(index)) {
            let entries = map.value(index);
            let (keys, values) = (entries.column(0).as_string::<i32>(), entries.column(1).as_string::<i32>());
            if let Some(at) = (0..keys.len()).find(|&at| keys.value(at) == physical) {
                return Ok(values.is_valid(at).then(|| values.value(at).to_owned()));
            }
        }
        Err(Error::protocol("a file has no value for a partition column")
            .at(self.path(index)?)
            .found("no value")
            .expected(physical))
    }
    /// Returns the descriptor of the file's deletion vector.
    pub fn vector(&self, index: usize) -> Result<Option<Descriptor>> {
        match &self.vector {
            Some(vectors) => Ok(vectors.get(index).map_err(|error| error.at(self.path.value(index)))?),
            None => Ok(None),
        }
    }
    /// Returns `numRecords` of the file's statistics, if it is known.
    pub fn num_records(&self, index: usize) -> Option<u64> {
        #[derive(Deserialize)]
        struct Counted {
            #[serde(rename = "numRecords")]
            num_records: Option<u64>,
        }
        let stats = self.stats.as_ref().filter(|stats| stats.is_valid(index))?.value(index);
        serde_json::from_str::<Counted>(stats).ok()?.num_records
    }
    /// Returns the selected rows, and true if only these rows are read, or false if all others are read.
    pub fn selection(&self, index: usize) -> Result<Option<(DeletionVector, bool)>> {
        let Some(selection) = self.selection.as_ref().filter(|selection| selection.is_valid(index)) else {
            return Ok(None);
        };
        let keep = self.keep_selected.as_ref().is_none_or(|keep| keep.is_null(index) || keep.value(index));
        Ok(Some((
            DeletionVector::from_bytes(selection.value(index)).map_err(|error| error.at("selection"))?,
            keep,
        )))
    }
    /// True if several entries may be the same file, each with a few of its rows.
    pub fn may_repeat(&self) -> bool {
        self.selection.is_some() && self.keep_selected.is_some()
    }
    /// True if the entry has a selection, and its `keep_selected` is true: only the selected rows are read.
    pub fn names_rows(&self, index: usize) -> bool {
        let selected = self.selection.as_ref().is_some_and(|selection| selection.is_valid(index));
        selected && self.keep_selected.as_ref().is_some_and(|keep| keep.is_valid(index) && keep.value(index))
    }
    /// Returns the entry's first row id (`baseRowId`), or the version that added it
    /// (`defaultRowCommitVersion`), as an array of one.
    pub fn row_tracking(&self, name: &str, index: usize) -> Result<ArrayRef> {
        match typed(&self.batch, name, &DataType::Int64)?.filter(|column| column.is_valid(index)) {
            Some(column) => Ok(column.slice(index, 1)),
            None => Err(Error::protocol("row tracking is on and a file has no row ids")
                .at(self.path(index)?)
                .expected(name)),
        }
    }
    /// Returns the value of `__deltaic_file` for the file's rows.
    pub fn ordinal(&self, index: usize) -> i32 {
        match &self.ordinal {
            Some(ordinal) if ordinal.is_valid(index) => ordinal.value(index),
            _ => i32::try_from(index).unwrap_or(i32::MAX),
        }
    }
}

/// Returns the column with this name, cast to `target`. `None` if there is none, or all its values are null.
fn typed(batch: &RecordBatch, name: &str, target: &DataType) -> Result<Option<ArrayRef>> {
    let Some(column) = batch.column_by_name(name) else { return Ok(None) };
    if column.data_type() == &DataType::Null {
        return Ok(None);
    }
    let wrong = |found: &DataType| {
        Error::new(Kind::InvalidArgument, format!("column \"{name}\" of the files has a wrong type"))
            .found(found)
            .expected(target)
    };
    if column.data_type() == target {
        return Ok(Some(Arc::clone(column)));
    }
    cast(column, target).map(Some).map_err(|_| wrong(column.data_type()))
}
