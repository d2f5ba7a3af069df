//! Converts the arguments of a kernel to the Arrow types that it needs.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Float64Array, Int32Array, Int64Array, StringArray, StringBuilder,
};
use arrow::compute::cast;
use arrow::datatypes::DataType;

use crate::error::{Error, Kind, Result};

/// The arguments of a kernel: arrays of one length.
pub struct Arguments<'a> {
    arrays: &'a [ArrayRef],
    rows: usize,
}

impl<'a> Arguments<'a> {
    /// Makes arguments of arrays. No array, or arrays of different lengths, are an error of InvalidArgument.
    pub fn new(arrays: &'a [ArrayRef]) -> Result<Self> {
        let rows = arrays.first().map_or(0, |array| array.len());
        match arrays.iter().find(|array| array.len() != rows) {
            Some(array) => Err(Error::new(Kind::InvalidArgument, "arguments of different lengths")
                .found(array.len())
                .expected(rows)),
            None if arrays.is_empty() => Err(Error::new(Kind::InvalidArgument, "a kernel without arguments")),
            None => Ok(Self { arrays, rows }),
        }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of arguments.
    pub fn count(&self) -> usize {
        self.arrays.len()
    }

    /// Returns the arrays from position `first` on.
    pub fn from(&self, first: usize) -> &'a [ArrayRef] {
        &self.arrays[first.min(self.arrays.len())..]
    }

    /// Returns an argument as it is.
    pub fn array(&self, place: usize) -> Result<&'a ArrayRef> {
        self.arrays.get(place).ok_or_else(|| {
            Error::new(Kind::InvalidArgument, "too few arguments of a kernel").found(self.arrays.len())
        })
    }

    fn cast(&self, place: usize, kind: &DataType) -> Result<ArrayRef> {
        let array = self.array(place)?;
        if array.data_type() == kind { Ok(Arc::clone(array)) } else { Ok(cast(array, kind)?) }
    }

    /// Returns an argument as text.
    pub fn text(&self, place: usize) -> Result<StringArray> {
        Ok(self.cast(place, &DataType::Utf8)?.as_string::<i32>().clone())
    }

    /// Returns an argument as bytes.
    pub fn binary(&self, place: usize) -> Result<BinaryArray> {
        Ok(self.cast(place, &DataType::Binary)?.as_binary::<i32>().clone())
    }

    /// Returns an argument as 32-bit integers.
    pub fn integers(&self, place: usize) -> Result<Int32Array> {
        Ok(self.cast(place, &DataType::Int32)?.as_primitive().clone())
    }

    /// Returns an argument as 64-bit integers.
    pub fn longs(&self, place: usize) -> Result<Int64Array> {
        Ok(self.cast(place, &DataType::Int64)?.as_primitive().clone())
    }

    /// Returns an argument as doubles.
    pub fn doubles(&self, place: usize) -> Result<Float64Array> {
        Ok(self.cast(place, &DataType::Float64)?.as_primitive().clone())
    }
}

/// Applies a function from text to text: `write` appends the result for one value; a null stays null.
pub fn map_text(values: &StringArray, mut write: impl FnMut(&str, &mut String)) -> ArrayRef {
    let mut out = StringBuilder::with_capacity(values.len(), values.value_data().len());
    let mut buffer = String::new();
    for value in values {
        match value {
            Some(value) => {
                buffer.clear();
                write(value, &mut buffer);
                out.append_value(&buffer);
            }
            None => out.append_null(),
        }
    }
    Arc::new(out.finish())
}
