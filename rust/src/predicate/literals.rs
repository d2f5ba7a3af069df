//! Looks up the value of each row in a list of literals.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{ArrowPrimitiveType, DataType, Date32Type, Int8Type, Int16Type, Int32Type, Int64Type};

/// Maximum number of bits (8 KB) of a table that is built for any number of literals.
const FEW_BITS: u64 = 1 << 16;
/// Maximum number of bits of a table per literal: the table takes as much memory as the literals themselves.
const BITS_OF_A_LITERAL: u64 = 64;

/// Literals in their column's type, without nulls. Clones share the prepared table for look-ups.
#[derive(Debug, Clone)]
pub struct Literals(Arc<(ArrayRef, OnceLock<Option<Numbers>>)>);

impl From<ArrayRef> for Literals {
    fn from(values: ArrayRef) -> Self {
        Self(Arc::new((values, OnceLock::new())))
    }
}

impl Deref for Literals {
    type Target = ArrayRef;
    fn deref(&self) -> &ArrayRef {
        &self.0.0
    }
}

impl Literals {
    /// True if values are looked up in a table of bits, which takes the same time for any number of literals.
    pub fn are_dense(&self) -> bool {
        matches!(self.numbers(), Some(Numbers::Dense { .. }))
    }

    fn numbers(&self) -> Option<&Numbers> {
        self.0.1.get_or_init(|| Numbers::new(self)).as_ref()
    }

    /// Returns which values are among the literals, null for a null. `None` unless the values are integers or
    /// dates of the literals' type.
    pub fn among_numbers(&self, values: &ArrayRef) -> Option<BooleanArray> {
        if values.data_type() != self.data_type() {
            return None;
        }
        let numbers = self.numbers()?;
        let found = match values.data_type() {
            DataType::Int8 => numbers.of::<Int8Type>(values),
            DataType::Int16 => numbers.of::<Int16Type>(values),
            DataType::Int32 => numbers.of::<Int32Type>(values),
            DataType::Int64 => numbers.of::<Int64Type>(values),
            DataType::Date32 => numbers.of::<Date32Type>(values),
            _ => return None,
        };
        Some(BooleanArray::new(found, values.nulls().cloned()))
    }
}

/// Distinct integers, prepared for look-ups.
#[derive(Debug)]
enum Numbers {
    /// The bits of integers from `first` on, one for each.
    Dense { first: i64, bits: BooleanBuffer },
    /// The values in ascending order.
    Sparse(Vec<i64>),
}

impl Numbers {
    fn new(literals: &ArrayRef) -> Option<Self> {
        let mut numbers = integers(literals)?;
        numbers.sort_unstable();
        numbers.dedup();
        let (first, last) = (*numbers.first().unwrap_or(&0), *numbers.last().unwrap_or(&0));
        let most = FEW_BITS.max(BITS_OF_A_LITERAL * numbers.len() as u64);
        let span = last.abs_diff(first);
        if span >= most {
            return Some(Self::Sparse(numbers));
        }
        let mut next = numbers.iter().map(|number| number.abs_diff(first)).peekable();
        let bits = BooleanBuffer::collect_bool(usize::try_from(span).ok()? + 1, |bit| {
            next.next_if_eq(&(bit as u64)).is_some()
        });
        Some(Self::Dense { first, bits })
    }

    fn of<T: ArrowPrimitiveType>(&self, values: &ArrayRef) -> BooleanBuffer
    where
        T::Native: Into<i64>,
    {
        let values = values.as_primitive::<T>().values();
        match self {
            Self::Dense { first, bits } => BooleanBuffer::collect_bool(values.len(), |row| {
                let number: i64 = values[row].into();
                // A number below `first` wraps around to one above all others.
                let place =
                    usize::try_from(number.wrapping_sub(*first).cast_unsigned()).unwrap_or(usize::MAX);
                place < bits.len() && bits.value(place)
            }),
            Self::Sparse(numbers) => BooleanBuffer::collect_bool(values.len(), |row| {
                numbers.binary_search(&values[row].into()).is_ok()
            }),
        }
    }
}

fn integers(literals: &ArrayRef) -> Option<Vec<i64>> {
    fn of<T: ArrowPrimitiveType>(literals: &ArrayRef) -> Vec<i64>
    where
        T::Native: Into<i64>,
    {
        literals.as_primitive::<T>().values().iter().map(|value| (*value).into()).collect()
    }
    match literals.data_type() {
        DataType::Int8 => Some(of::<Int8Type>(literals)),
        DataType::Int16 => Some(of::<Int16Type>(literals)),
        DataType::Int32 => Some(of::<Int32Type>(literals)),
        DataType::Int64 => Some(of::<Int64Type>(literals)),
        DataType::Date32 => Some(of::<Date32Type>(literals)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::HashSet;

    use arrow::array::{Date32Array, Int8Array, Int64Array, StringArray};
    use proptest::prelude::*;

    use super::*;

    fn found(literals: Vec<i64>, values: Vec<Option<i64>>) -> Vec<Option<bool>> {
        let literals = Literals::from(Arc::new(Int64Array::from(literals)) as ArrayRef);
        let values: ArrayRef = Arc::new(Int64Array::from(values));
        literals.among_numbers(&values).unwrap().iter().collect()
    }

    proptest! {
        #[test]
        fn a_number_is_found_where_a_set_has_it(
            literals in prop_oneof![
                prop::collection::vec(-50..50_i64, 0..40),
                prop::collection::vec(any::<i64>(), 0..40),
            ],
            values in prop::collection::vec(prop::option::of(prop_oneof![-60..60_i64, any::<i64>()]), 0..80),
        ) {
            let wanted: HashSet<i64> = literals.iter().copied().collect();
            let values = values.into_iter().chain(literals.iter().copied().map(Some)).collect::<Vec<_>>();
            let is_wanted = |value: &Option<i64>| value.map(|number| wanted.contains(&number));
            let expected = values.iter().map(is_wanted).collect::<Vec<_>>();
            prop_assert_eq!(found(literals, values), expected);
        }
    }

    #[test]
    fn the_ends_of_a_type_are_numbers_like_others() {
        let (t, f) = (Some(true), Some(false));
        let ends = vec![Some(i64::MIN), Some(i64::MAX), Some(0), None];
        assert_eq!(found(vec![i64::MIN, i64::MAX], ends.clone()), [t, t, f, None]);
        assert_eq!(found(vec![i64::MAX - 3, i64::MAX], ends.clone()), [f, t, f, None]);
        assert_eq!(found(vec![i64::MIN], ends.clone()), [t, f, f, None]);
        assert_eq!(found(vec![], ends), [f, f, f, None]);
        let dense =
            |literals: Vec<i64>| Literals::from(Arc::new(Int64Array::from(literals)) as ArrayRef).are_dense();
        assert!(dense((0..5000).map(|number| 60 * number).collect()));
        assert!(!dense((0..5000).map(|number| 70 * number).collect()));
        assert!(!dense(vec![i64::MIN, i64::MAX]));
    }

    #[test]
    fn dates_and_small_integers_are_numbers_and_texts_are_not() {
        let days: ArrayRef = Arc::new(Date32Array::from(vec![Some(7), None, Some(-8)]));
        let literals = Literals::from(Arc::new(Date32Array::from(vec![-8])) as ArrayRef);
        assert_eq!(
            literals.among_numbers(&days).unwrap().iter().collect::<Vec<_>>(),
            [Some(false), None, Some(true)]
        );
        let small: ArrayRef = Arc::new(Int8Array::from(vec![-128, 127]));
        assert!(literals.among_numbers(&small).is_none());
        let literals = Literals::from(Arc::new(Int8Array::from(vec![127])) as ArrayRef);
        assert_eq!(literals.among_numbers(&small).unwrap().true_count(), 1);
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        assert!(Literals::from(Arc::clone(&texts)).among_numbers(&texts).is_none());
    }
}
