//! Values that are the same for all rows of a file: partition values, and columns from the file's action.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, Int32Array, PrimitiveArray, StringArray, new_null_array,
};
use arrow::buffer::{Buffer, OffsetBuffer};
use arrow::compute::take;
use arrow::datatypes::DataType;
use arrow::downcast_primitive_array;

use crate::error::Result;

/// The last array that was made for an output column, in whichever file. Files often have the value of the
/// file before them: `insert` in the change data feed, or the same partition.
pub type LastRepeated = Arc<Mutex<Option<ArrayRef>>>;

/// A value that is the same in all rows of a file. The batches of the file, and of files with the same value
/// that follow each other, have slices of one shared array.
#[derive(Debug)]
pub struct Constant {
    value: ArrayRef,
    repeated: Mutex<Option<ArrayRef>>,
    last: LastRepeated,
}

impl Constant {
    /// Makes a constant of `value`, an array of one element.
    pub fn new(value: ArrayRef, last: LastRepeated) -> Self {
        Self { value, repeated: Mutex::new(None), last }
    }

    /// Returns the value as an array of one element.
    pub fn value(&self) -> &ArrayRef {
        &self.value
    }

    /// Returns an array with the value `count` times.
    pub fn rows(&self, count: usize) -> Result<ArrayRef> {
        let mut repeated = self.repeated.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = repeated.as_ref().filter(|known| known.len() >= count) {
            return Ok(known.slice(0, count));
        }
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = last
            .filter(|known| known.len() >= count && !known.is_empty() && *known.slice(0, 1) == *self.value)
        {
            *repeated = Some(Arc::clone(&known));
            return Ok(known.slice(0, count));
        }
        let made = repeat(&self.value, count)?;
        *repeated = Some(Arc::clone(&made));
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&made));
        Ok(made)
    }
}

/// Returns an array with the only value of `value`, `count` times.
fn repeat(value: &ArrayRef, count: usize) -> Result<ArrayRef> {
    if value.is_null(0) {
        return Ok(new_null_array(value.data_type(), count));
    }
    let array = value.as_ref();
    downcast_primitive_array! {
        array => Ok(repeat_primitive(array, count)),
        DataType::Utf8 if fits(array.as_string::<i32>().value(0), count) => {
            let text = array.as_string::<i32>().value(0);
            let offsets = OffsetBuffer::from_repeated_length(text.len(), count);
            let bytes = Buffer::from_vec(text.as_bytes().repeat(count));
            Ok(Arc::new(StringArray::try_new(offsets, bytes, None)?))
        }
        _ => Ok(take(array, &Int32Array::from(vec![0; count]), None)?),
    }
}

/// True if the bytes of `count` copies of the text can be addressed by 32-bit offsets.
fn fits(text: &str, count: usize) -> bool {
    text.len().checked_mul(count).is_some_and(|bytes| i32::try_from(bytes).is_ok())
}

fn repeat_primitive<T: ArrowPrimitiveType>(value: &PrimitiveArray<T>, count: usize) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::from_value(value.value(0), count).with_data_type(value.data_type().clone()))
}

#[cfg(test)]
mod tests {
    use arrow::array::{BinaryArray, Decimal128Array, DictionaryArray, TimestampMicrosecondArray};
    use arrow::datatypes::Int32Type;

    use super::*;

    fn buffer(constant: &Constant, count: usize) -> *const u8 {
        constant.rows(count).unwrap().to_data().buffers()[1].as_ptr()
    }

    #[test]
    fn batches_share_one_array() {
        let constant = Constant::new(Arc::new(StringArray::from(vec!["insert"])), Arc::default());
        let first = buffer(&constant, 3);
        assert_eq!(buffer(&constant, 2), first);
        for count in [0, 1, 3, 5, 4] {
            assert_eq!(constant.rows(count).unwrap().as_ref(), &StringArray::from(vec!["insert"; count]));
        }
    }

    #[test]
    fn files_with_one_value_share_one_array() {
        let last = LastRepeated::default();
        let of = |text| Constant::new(Arc::new(StringArray::from(vec![text])), Arc::clone(&last));
        let first = buffer(&of(Some("insert")), 3);
        assert_eq!(buffer(&of(Some("insert")), 2), first);
        for text in [Some("delete"), None, Some("insert"), None] {
            assert_eq!(of(text).rows(2).unwrap().as_ref(), &StringArray::from(vec![text; 2]));
        }
    }

    #[test]
    fn every_type_is_repeated_as_take_repeats_it() {
        let keys = Int32Array::from(vec![1]);
        let values: [ArrayRef; 8] = [
            Arc::new(Int32Array::from(vec![-7])),
            Arc::new(TimestampMicrosecondArray::from(vec![5]).with_timezone("UTC")),
            Arc::new(Decimal128Array::from(vec![12]).with_precision_and_scale(9, 2).unwrap()),
            Arc::new(StringArray::from(vec!["ä b"])),
            Arc::new(StringArray::from(vec![""])),
            Arc::new(BinaryArray::from(vec![&b"xy"[..]])),
            Arc::new(arrow::array::BooleanArray::from(vec![true])),
            Arc::new(
                DictionaryArray::<Int32Type>::try_new(keys, Arc::new(StringArray::from(vec!["a", "b"])))
                    .unwrap(),
            ),
        ];
        for value in values {
            let null = new_null_array(value.data_type(), 1);
            for value in [value, null] {
                for count in [0, 1, 9] {
                    let expected = take(&value, &Int32Array::from(vec![0; count]), None).unwrap();
                    let found = Constant::new(Arc::clone(&value), Arc::default()).rows(count).unwrap();
                    assert_eq!((found.data_type(), &found), (expected.data_type(), &expected));
                }
            }
        }
    }
}
