//! Values that are the same for all rows of a file: partition values, and columns from the file's action.

use std::sync::{Mutex, PoisonError};

use arrow::array::{ArrayRef, Int32Array};
use arrow::compute::take;

use crate::error::Result;

/// A value that is the same in all rows of a file. The file's batches have slices of one shared array.
#[derive(Debug)]
pub struct Constant {
    value: ArrayRef,
    repeated: Mutex<Option<ArrayRef>>,
}

impl Constant {
    /// `value`: an array of one element.
    pub fn new(value: ArrayRef) -> Self {
        Self { value, repeated: Mutex::new(None) }
    }

    /// The array of one element.
    pub fn value(&self) -> &ArrayRef {
        &self.value
    }

    /// Returns an array with the value `count` times.
    pub fn rows(&self, count: usize) -> Result<ArrayRef> {
        let mut repeated = self.repeated.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = repeated.as_ref().filter(|known| known.len() >= count) {
            return Ok(known.slice(0, count));
        }
        let made = take(&self.value, &Int32Array::from(vec![0; count]), None)?;
        *repeated = Some(made.clone());
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Array, StringArray};

    use super::*;

    #[test]
    fn batches_share_one_array() {
        let constant = Constant::new(Arc::new(StringArray::from(vec!["insert"])));
        let buffer = |count| constant.rows(count).unwrap().to_data().buffers()[1].as_ptr();
        let first = buffer(3);
        assert_eq!(buffer(2), first);
        for count in [0, 1, 3, 5, 4] {
            assert_eq!(constant.rows(count).unwrap().as_ref(), &StringArray::from(vec!["insert"; count]));
        }
        assert_eq!(Constant::new(Arc::new(StringArray::new_null(1))).rows(2).unwrap().null_count(), 2);
    }
}
