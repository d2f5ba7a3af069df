//! Range ids: boundaries from a sample divide a column into ranges with about as many rows each. The id of a
//! value is the number of boundaries below it.
//!
//! A value with more rows than a range has a range of its own, and the other values share the remaining
//! ranges. Null has the id 0, as in delta-spark's `range_partition_id`. Floats compare as in rows: -0.0 =
//! 0.0, NaN is greatest.

use std::cmp::Ordering;

use arrow::array::{
    Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray,
    RecordBatch, StringArray, UInt32Array, downcast_primitive_array, make_comparator,
};
use arrow::compute::{SortOptions, concat, filter, sort, take};

use crate::error::{Error, Kind, Result};
use crate::predicate::statistics::normalise;

/// Ascending boundaries of one column. Range i ends with boundary i, inclusive.
#[derive(Debug, Clone)]
pub struct Bounds(ArrayRef);

impl Bounds {
    /// Makes boundaries of values from the caller: they are sorted, and nulls are removed.
    pub fn of(values: &ArrayRef) -> Result<Self> {
        let values = present(&normalise(values))?;
        Ok(Self(sort(&values, None).map_err(without_order)?))
    }

    /// Makes boundaries of at most `ranges` ranges with about as many of these values each.
    pub fn from_sample(values: &ArrayRef, ranges: usize) -> Result<Self> {
        let sorted = Self::of(values)?.0;
        let compare = make_comparator(&sorted, &sorted, SortOptions::default()).map_err(without_order)?;
        let (mut chosen, mut at) = (Vec::new(), 0);
        while at < sorted.len() && chosen.len() + 1 < ranges {
            let weight = (sorted.len() - at).div_ceil(ranges - chosen.len());
            let mut last = (at + weight - 1).min(sorted.len() - 1);
            while last + 1 < sorted.len() && compare(last, last + 1).is_eq() {
                last += 1;
            }
            chosen.push(last as u32);
            at = last + 1;
        }
        if at == sorted.len() {
            chosen.pop(); // there are no values above the last boundary
        }
        Ok(Self(take(&sorted, &UInt32Array::from(chosen), None).map_err(without_order)?))
    }

    /// Returns the boundaries.
    pub fn values(&self) -> &ArrayRef {
        &self.0
    }

    /// Returns the number of boundaries. Ids are from 0 to this number.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if all values are in one range.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the id of each value.
    pub fn ids(&self, values: &ArrayRef) -> Result<Vec<u32>> {
        if values.data_type() != self.0.data_type() {
            return Err(Error::new(Kind::InvalidArgument, "values and boundaries of different types")
                .found(values.data_type())
                .expected(self.0.data_type()));
        }
        let (all, bounds) = (normalise(values), &self.0);
        let values: &dyn Array = &all;
        let limits: &dyn Array = bounds;
        downcast_primitive_array! {
            (values, limits) => Ok(primitive_ids(values, limits)),
            (arrow::datatypes::DataType::Utf8, arrow::datatypes::DataType::Utf8) => {
                Ok(text_ids(values.as_string(), limits.as_string()))
            },
            _ => compared_ids(&all, bounds)
        }
    }
}

fn primitive_ids<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>, bounds: &PrimitiveArray<T>) -> Vec<u32> {
    let bounds = bounds.values();
    let id = |v: T::Native| bounds.partition_point(|b| b.compare(v) == Ordering::Less) as u32;
    match values.null_count() {
        0 => values.values().iter().map(|&v| id(v)).collect(),
        _ => values.iter().map(|v| v.map_or(0, id)).collect(),
    }
}

fn text_ids(values: &StringArray, bounds: &StringArray) -> Vec<u32> {
    let bounds: Vec<&str> = bounds.iter().flatten().collect();
    values.iter().map(|v| v.map_or(0, |v| bounds.partition_point(|b| *b < v) as u32)).collect()
}

fn compared_ids(values: &ArrayRef, bounds: &ArrayRef) -> Result<Vec<u32>> {
    let compare = make_comparator(bounds, values, SortOptions::default()).map_err(without_order)?;
    let id = |row: usize| {
        let (mut from, mut to) = (0, bounds.len());
        while from < to {
            let middle = from + (to - from) / 2;
            if compare(middle, row).is_lt() { from = middle + 1 } else { to = middle }
        }
        from as u32
    };
    Ok((0..values.len()).map(|row| if values.is_null(row) { 0 } else { id(row) }).collect())
}

fn present(values: &ArrayRef) -> Result<ArrayRef> {
    let mask = BooleanArray::from_iter((0..values.len()).map(|i| Some(values.is_valid(i))));
    filter(values, &mask).map_err(without_order)
}

fn without_order(error: arrow::error::ArrowError) -> Error {
    Error::new(Kind::InvalidArgument, "a column that cannot be clustered by: its type has no order")
        .caused_by(error)
}

/// Keeps a uniform sample of the rows of a stream: each row gets a random number, and the rows with the
/// smallest numbers stay.
#[derive(Debug)]
pub struct Sampler {
    kept: Vec<Vec<ArrayRef>>,
    draws: Vec<u64>,
    size: usize,
    limit: u64,
    state: u64,
}

impl Sampler {
    /// Makes a sampler of `columns` columns, which keeps at least `size` rows (or all rows of a shorter
    /// stream). Equal seeds give equal samples.
    pub fn new(columns: usize, size: usize, seed: u64) -> Self {
        Self {
            kept: vec![Vec::new(); columns],
            draws: Vec::new(),
            size: size.max(1),
            limit: u64::MAX,
            state: seed,
        }
    }

    /// Adds the rows of these columns.
    pub fn add(&mut self, batch: &RecordBatch, columns: &[usize]) -> Result<()> {
        let mut mask = Vec::with_capacity(batch.num_rows());
        for _ in 0..batch.num_rows() {
            let draw = self.next();
            mask.push(draw <= self.limit);
            if draw <= self.limit {
                self.draws.push(draw);
            }
        }
        let mask = BooleanArray::from(mask);
        for (kept, &column) in self.kept.iter_mut().zip(columns) {
            kept.push(filter(batch.column(column), &mask).map_err(without_order)?);
        }
        if self.draws.len() > 4 * self.size { self.shrink() } else { Ok(()) }
    }

    /// Returns the sampled values of each column.
    pub fn finish(self) -> Result<Vec<ArrayRef>> {
        self.kept.iter().map(|arrays| joined(arrays)).collect()
    }

    fn shrink(&mut self) -> Result<()> {
        let mut draws = self.draws.clone();
        let (_, limit, _) = draws.select_nth_unstable(self.size - 1);
        self.limit = *limit;
        let mask = BooleanArray::from_iter(self.draws.iter().map(|draw| Some(*draw <= self.limit)));
        for kept in &mut self.kept {
            *kept = vec![filter(&joined(kept)?, &mask).map_err(without_order)?];
        }
        self.draws.retain(|draw| *draw <= self.limit);
        Ok(())
    }

    /// Returns the next number of SplitMix64 (Steele, Lea, Flood 2014).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }
}

fn joined(arrays: &[ArrayRef]) -> Result<ArrayRef> {
    match arrays {
        [] => Err(Error::new(Kind::InvalidArgument, "a sample of a stream without batches")),
        [one] => Ok(one.clone()),
        many => concat(&many.iter().map(AsRef::as_ref).collect::<Vec<_>>()).map_err(without_order),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Float64Array, Int64Array, StringArray};
    use std::sync::Arc;

    fn counts(ids: &[u32]) -> Vec<usize> {
        let mut counts = vec![0; ids.iter().max().map_or(0, |m| *m as usize + 1)];
        ids.iter().for_each(|&id| counts[id as usize] += 1);
        counts
    }

    #[test]
    fn ranges_weigh_the_same() {
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values((0..10_000).rev()));
        let bounds = Bounds::from_sample(&values, 100).unwrap();
        assert_eq!(counts(&bounds.ids(&values).unwrap()), vec![100; 100]);
    }

    #[test]
    fn a_heavy_value_wastes_no_range() {
        let values: ArrayRef =
            Arc::new(Int64Array::from_iter_values((0..900).map(|_| 50).chain(0..50).chain(51..101)));
        let bounds = Bounds::from_sample(&values, 101).unwrap();
        let ids = bounds.ids(&values).unwrap();
        assert!(bounds.len() > 50, "{}", bounds.len());
        assert!(ids[..900].iter().all(|id| *id == ids[0]));
    }

    #[test]
    fn null_is_zero_and_nan_is_last() {
        let values: ArrayRef = Arc::new(Float64Array::from(vec![
            Some(f64::NAN),
            None,
            Some(-0.0),
            Some(1.0),
            Some(0.0),
            Some(-f64::NAN),
        ]));
        let bounds = Bounds::of(&(Arc::new(Float64Array::from(vec![-1.0, 0.0, 5.0])) as ArrayRef)).unwrap();
        assert_eq!(bounds.ids(&values).unwrap(), [3, 0, 1, 2, 1, 3]);
    }

    #[test]
    fn text_and_other_types_compare_alike() {
        let texts: ArrayRef =
            Arc::new(StringArray::from(vec![Some("b"), None, Some("a"), Some("zz"), Some("m")]));
        let bounds = Bounds::of(&(Arc::new(StringArray::from(vec!["m", "b"])) as ArrayRef)).unwrap();
        assert_eq!(bounds.ids(&texts).unwrap(), [0, 0, 0, 2, 1]);
        let bytes = |a: &ArrayRef| arrow::compute::cast(a, &arrow::datatypes::DataType::Binary).unwrap();
        assert_eq!(Bounds(bytes(&bounds.0)).ids(&bytes(&texts)).unwrap(), [0, 0, 0, 2, 1]);
    }

    #[test]
    fn the_sample_is_of_the_whole_stream() {
        let batch = |from: i64| {
            RecordBatch::try_from_iter([(
                "a",
                Arc::new(Int64Array::from_iter_values(from..from + 1000)) as ArrayRef,
            )])
            .unwrap()
        };
        let mut sampler = Sampler::new(1, 500, 7);
        (0..100).for_each(|i| sampler.add(&batch(i * 1000), &[0]).unwrap());
        let sample = sampler.finish().unwrap().remove(0);
        let values = sample.as_primitive::<arrow::datatypes::Int64Type>();
        assert!((500..=2000).contains(&values.len()), "{}", values.len());
        let mean = values.values().iter().sum::<i64>() / values.len() as i64;
        assert!((45_000..55_000).contains(&mean), "{mean}");
    }
}
