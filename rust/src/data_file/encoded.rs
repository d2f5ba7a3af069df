//! Columns in the types closest to a file's own bytes, for an engine that accepts them: text as dictionaries
//! or as views of the pages, decimals of few digits as integers of 32 or 64 bits. This avoids a copy of the
//! text for each row, and casts of numbers to a wider type and back.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, DictionaryArray, Int32Array};
use arrow::buffer::ScalarBuffer;
use arrow::compute::cast;
use arrow::datatypes::{
    DECIMAL32_MAX_PRECISION, DECIMAL64_MAX_PRECISION, DataType, Field as ArrowField, FieldRef, Int32Type,
    Schema,
};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::{Encoding, PageType, Type as PhysicalType};
use parquet::file::metadata::ColumnChunkMetaData;

use super::open::{Plan, footer};
use super::projection::{Finder, leaves};
use crate::error::Result;
use crate::schema::Field;

/// Number of keys in a dictionary that has one value per row.
const KEYS: usize = 1 << 16;
static ASCENDING: LazyLock<ScalarBuffer<i32>> = LazyLock::new(|| (0..KEYS as i32).collect());

/// The form in which the texts of an encoded column are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Texts {
    /// As a dictionary: each row has the key of its text.
    Keys,
    /// As views: each row refers to the place of its text in memory.
    Views,
}

/// Returns the encoded type of a column.
pub fn encoded(data_type: &DataType, texts: Texts) -> DataType {
    match data_type {
        DataType::Utf8 if texts == Texts::Views => DataType::Utf8View,
        DataType::Utf8 => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        DataType::Decimal128(precision, scale) if *precision <= DECIMAL32_MAX_PRECISION => {
            DataType::Decimal32(*precision, *scale)
        }
        DataType::Decimal128(precision, scale) if *precision <= DECIMAL64_MAX_PRECISION => {
            DataType::Decimal64(*precision, *scale)
        }
        other => other.clone(),
    }
}

/// Returns the column with its encoded type.
pub fn encoded_field(field: ArrowField, texts: Texts) -> ArrowField {
    let data_type = encoded(field.data_type(), texts);
    field.with_data_type(data_type)
}

/// Converts an array of a table's type to the encoded type; an encoded array stays as it is. Texts become a
/// dictionary with one value per row, or views, without a copy of their bytes.
pub fn encode(array: &ArrayRef, texts: Texts) -> Result<ArrayRef> {
    let target = encoded(array.data_type(), texts);
    if target == *array.data_type() {
        return Ok(Arc::clone(array));
    }
    if !matches!(target, DataType::Dictionary(_, _)) {
        return Ok(cast(array, &target)?);
    }
    let rows = array.len();
    let keys = if rows <= KEYS { ASCENDING.slice(0, rows) } else { (0..rows as i32).collect() };
    Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(
        Int32Array::new(keys, array.nulls().cloned()),
        Arc::clone(array),
    )?))
}

/// Returns the footer with the schema by which a row group is read so that these columns are encoded. `None`
/// if none of them can be encoded there.
pub fn reading<'a>(
    metadata: &ArrowReaderMetadata,
    group: usize,
    finder: Finder,
    fields: impl Iterator<Item = (&'a Field, Texts)>,
) -> Result<Option<ArrowReaderMetadata>> {
    let found = metadata.schema().fields();
    let columns = metadata.metadata().row_group(group).columns();
    let mut changed: Option<Vec<FieldRef>> = None;
    for (field, texts) in fields {
        let target = field.data_type.to_arrow(false);
        let Some(index) = finder.find(field, found) else { continue };
        let hint = encoded(&target, texts);
        if found[index].data_type() != &target || hint == target {
            continue;
        }
        let leaf: usize = found[..index].iter().map(|other| leaves(other.data_type())).sum();
        let suits = match hint {
            DataType::Dictionary(_, _) => only_dictionary(&columns[leaf]),
            DataType::Utf8View => true,
            _ => matches!(columns[leaf].column_type(), PhysicalType::INT32 | PhysicalType::INT64),
        };
        if suits {
            let changed = changed.get_or_insert_with(|| found.iter().cloned().collect());
            changed[index] = Arc::new(found[index].as_ref().clone().with_data_type(hint));
        }
    }
    let Some(fields) = changed else { return Ok(None) };
    let options =
        ArrowReaderOptions::new().with_skip_arrow_metadata(true).with_schema(Arc::new(Schema::new(fields)));
    Ok(Some(ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options)?))
}

/// Returns the text columns of a plan that are fully dictionary-encoded in its largest file. The other files
/// are probably encoded in the same way.
pub fn dictionary_columns(plan: &Plan) -> Result<Vec<String>> {
    let mut largest = (0, 0);
    for index in 0..plan.files.len() {
        largest = largest.max((plan.files.size(index)?.unwrap_or(0), index));
    }
    if largest.0 == 0 {
        return Ok(Vec::new());
    }
    // If the footer cannot be read, the scan returns the error.
    let Ok((metadata, finder)) = footer(plan, largest.1) else { return Ok(Vec::new()) };
    let found = metadata.schema().fields();
    let is = |field: &&Field| {
        let Some(index) = finder.find(field, found) else { return false };
        let leaf: usize = found[..index].iter().map(|other| leaves(other.data_type())).sum();
        let groups = metadata.metadata().row_groups();
        found[index].data_type() == &DataType::Utf8
            && groups.iter().all(|group| only_dictionary(group.column(leaf)))
    };
    Ok(plan.data.iter().filter(is).map(|field| field.name.clone()).collect())
}

/// True if all data pages of the column chunk are dictionary-encoded.
fn only_dictionary(column: &ColumnChunkMetaData) -> bool {
    let keys = |encoding: Encoding| matches!(encoding, Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY);
    if let Some(pages) = column.page_encoding_stats() {
        let mut data = pages
            .iter()
            .filter(|page| matches!(page.page_type, PageType::DATA_PAGE | PageType::DATA_PAGE_V2));
        return column.dictionary_page_offset().is_some() && data.all(|page| keys(page.encoding));
    }
    let pages = column.page_encoding_stats_mask();
    pages.is_some_and(|mask| {
        mask.is_only(Encoding::PLAIN_DICTIONARY) || mask.is_only(Encoding::RLE_DICTIONARY)
    })
}
