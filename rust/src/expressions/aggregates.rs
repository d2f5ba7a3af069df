//! Computes the last step of aggregate functions that DuckDB does not have, such as a weighted percentile,
//! from the list of a group's values.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Float64Builder, ListBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};

use super::arguments::Arguments;
use crate::error::Result;

fn doubles(list: &ArrayRef) -> Result<Vec<f64>> {
    Ok(cast(list, &DataType::Float64)?.as_primitive::<Float64Type>().values().to_vec())
}

/// Evaluates `weighted_percentile(values, frequencies, place)`: the value at a position from 0 to 1 of
/// ascending values, each repeated as often as its frequency. Between two values, it is interpolated.
pub fn weighted_percentile(given: &Arguments) -> Result<ArrayRef> {
    let (values, frequencies, places) =
        (given.array(0)?.as_list::<i32>(), given.array(1)?.as_list::<i32>(), given.doubles(2)?);
    let found = (0..given.rows()).map(|row| {
        if values.is_null(row) || values.value(row).is_empty() {
            return Ok(None);
        }
        let (values, frequencies) = (doubles(&values.value(row))?, doubles(&frequencies.value(row))?);
        let at = |place: f64| {
            let mut seen = 0.0;
            let place = frequencies.iter().position(|frequency| {
                seen += frequency;
                seen > place
            });
            values[place.unwrap_or(values.len() - 1)]
        };
        let position = (frequencies.iter().sum::<f64>() - 1.0) * places.value(row);
        let (low, high) = (position.floor(), position.ceil());
        let (below, above) = (at(low), at(high));
        Ok(Some(if low == high || below == above {
            below
        } else {
            (high - position) * below + (position - low) * above
        }))
    });
    Ok(Arc::new(found.collect::<Result<Float64Array>>()?))
}

/// Evaluates `histogram(values, bins)`: centre and height of each bin, by the algorithm of Ben-Haim and
/// Tom-Tov, as in Hive and Spark.
pub fn histogram(given: &Arguments) -> Result<ArrayRef> {
    let (values, bins) = (given.array(0)?.as_list::<i32>(), given.integers(1)?);
    let mut out = ListBuilder::new(Float64Builder::new());
    for row in 0..given.rows() {
        if values.is_null(row) || values.value(row).is_empty() {
            out.append_null();
            continue;
        }
        let mut histogram =
            Histogram { bins: Vec::new(), most: bins.value(row).max(1) as usize, random: Random::new(31183) };
        for value in doubles(&values.value(row))? {
            histogram.add(value);
        }
        out.append_value(histogram.bins.iter().flat_map(|(centre, height)| [Some(*centre), Some(*height)]));
    }
    Ok(Arc::new(out.finish()))
}

struct Histogram {
    bins: Vec<(f64, f64)>,
    most: usize,
    random: Random,
}

impl Histogram {
    fn add(&mut self, value: f64) {
        let place = self.bins.partition_point(|(centre, _)| *centre < value);
        match self.bins.get_mut(place).filter(|(centre, _)| *centre == value) {
            Some(bin) => bin.1 += 1.0,
            None => self.bins.insert(place, (value, 1.0)),
        }
        while self.bins.len() > self.most {
            self.merge();
        }
    }

    /// Merges the two nearest bins; of several such pairs, a random one.
    fn merge(&mut self) {
        let gap = |place: usize| self.bins[place + 1].0 - self.bins[place].0;
        let (mut least, mut chosen, mut equal) = (gap(0), 0, 1.0);
        for place in 1..self.bins.len() - 1 {
            let found = gap(place);
            if found < least {
                (least, chosen, equal) = (found, place, 1.0);
            } else if found == least {
                equal += 1.0;
                if self.random.next() <= 1.0 / equal {
                    chosen = place;
                }
            }
        }
        let ((one, height), (other, more)) = (self.bins[chosen], self.bins.remove(chosen + 1));
        let sum = height + more;
        self.bins[chosen] = (one * (height / sum) + other / sum * more, sum);
    }
}

/// A random number generator with the numbers of `java.util.Random`.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self((seed ^ 0x5_DEEC_E66D) & ((1 << 48) - 1))
    }

    fn bits(&mut self, bits: u32) -> u64 {
        self.0 = self.0.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & ((1 << 48) - 1);
        self.0 >> (48 - bits)
    }

    fn next(&mut self) -> f64 {
        let high = self.bits(26) << 27;
        (high + self.bits(27)) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins() {
        let mut histogram = Histogram { bins: Vec::new(), most: 3, random: Random::new(31183) };
        for value in [0.0, 1.0, 2.5, 10.0, 11.0, 11.5] {
            histogram.add(value);
        }
        assert_eq!(histogram.bins, vec![(0.5, 2.0), (2.5, 1.0), (10.833333333333334, 3.0)]);
    }

    #[test]
    fn chance_as_in_java() {
        assert_eq!(Random::new(0).next(), 0.730967787376657); // new java.util.Random(0).nextDouble()
    }
}
