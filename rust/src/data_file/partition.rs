//! Groups the rows of a batch by their partition values.

use std::collections::HashMap;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::row::{RowConverter, SortField};

use crate::error::Result;
use crate::predicate::statistics::normalise;
use crate::schema::{TableSchema, partition_values};

/// The partition values of a file as text, each with the physical name of its column.
pub type Values = Vec<(String, Option<String>)>;

/// Splits batches by partition. Each partition gets a number when it first occurs.
#[derive(Debug)]
pub struct Splitter {
    columns: Vec<usize>,
    names: Vec<String>,
    logical: Vec<String>,
    converter: Option<RowConverter>,
    numbers: HashMap<Box<[u8]>, usize>,
    /// The values of each partition, by its number.
    pub values: Vec<Values>,
}

impl Splitter {
    /// Makes a splitter by the table's partition columns.
    pub fn new(schema: &TableSchema) -> Result<Self> {
        let mut columns = Vec::new();
        for field in schema.partition_fields() {
            columns.push(schema.column(&field.name)?.0);
        }
        let fields = || columns.iter().map(|&index| &schema.fields()[index]);
        let sort = fields().map(|field| SortField::new(field.data_type.to_arrow(false))).collect::<Vec<_>>();
        let converter = if columns.is_empty() { None } else { Some(RowConverter::new(sort)?) };
        let names = fields().map(|field| schema.physical_name(field).to_owned()).collect();
        let logical = fields().map(|field| field.name.clone()).collect();
        Ok(Self { columns, names, logical, converter, numbers: HashMap::new(), values: Vec::new() })
    }
    /// Returns the number of each partition in the batch, and its rows, in the order in which partitions
    /// first occur.
    pub fn split(&mut self, batch: &RecordBatch) -> Result<Vec<(usize, RecordBatch)>> {
        let Some(converter) = &self.converter else {
            if self.values.is_empty() {
                self.values.push(Vec::new());
            }
            return Ok(vec![(0, batch.clone())]);
        };
        // Values with the same stored form share a partition: an empty text is null, and floats have one zero
        // and one NaN.
        let keys: Vec<ArrayRef> =
            self.columns.iter().map(|&index| stored(batch.column(index))).collect::<Result<_>>()?;
        let rows = converter.convert_columns(&keys)?;
        let mut members: Vec<(usize, Vec<u32>)> = Vec::new();
        let mut places: HashMap<usize, usize> = HashMap::new();
        let mut before: Option<(&[u8], usize)> = None;
        let mut fresh: Vec<(usize, usize)> = Vec::new();
        for (index, row) in (0_u32..).zip(rows.iter()) {
            let bytes = row.data();
            let place = match before {
                Some((same, place)) if same == bytes => place,
                _ => {
                    let number = match self.numbers.get(bytes) {
                        Some(number) => *number,
                        None => {
                            let number = self.numbers.len();
                            self.numbers.insert(bytes.into(), number);
                            fresh.push((number, index as usize));
                            number
                        }
                    };
                    *places.entry(number).or_insert_with(|| {
                        members.push((number, Vec::new()));
                        members.len() - 1
                    })
                }
            };
            before = Some((bytes, place));
            members[place].1.push(index);
        }
        for (_, index) in fresh {
            let values = self.names.iter().zip(&keys).map(|(name, key)| {
                let text = partition_values::format_array(key.slice(index, 1).as_ref())?;
                Ok((name.clone(), text.iter().next().flatten().map(str::to_owned)))
            });
            self.values.push(values.collect::<Result<_>>()?);
        }
        if let [(number, _)] = members[..] {
            return Ok(vec![(number, batch.clone())]);
        }
        members
            .into_iter()
            .map(|(number, rows)| Ok((number, take_record_batch(batch, &UInt32Array::from(rows))?)))
            .collect()
    }
    /// Returns the values of a partition under the columns' logical names, for folders.
    pub fn folder_values(&self, number: usize) -> Values {
        self.logical.iter().cloned().zip(self.values[number].iter().map(|(_, value)| value.clone())).collect()
    }
}

/// Returns values in their stored form: one zero, one NaN, and null for an empty text.
pub fn stored(array: &ArrayRef) -> Result<ArrayRef> {
    empty_as_null(&normalise(array))
}

fn empty_as_null(array: &ArrayRef) -> Result<ArrayRef> {
    use arrow::array::{AsArray, BooleanArray};
    use arrow::datatypes::DataType;
    let empty: BooleanArray = match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().map(|text| text.map(str::is_empty)).collect(),
        DataType::Binary => {
            array.as_binary::<i32>().iter().map(|bytes| bytes.map(<[u8]>::is_empty)).collect()
        }
        _ => return Ok(array.clone()),
    };
    if empty.true_count() == 0 { Ok(array.clone()) } else { Ok(arrow::compute::nullif(array, &empty)?) }
}
