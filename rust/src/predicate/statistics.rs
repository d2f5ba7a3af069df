//! Finds out if a container of rows (a file, a row group, a page) may hold a match, for many containers at
//! once.
//!
//! For each container, the set of truth values that its rows may give is computed from the bounds of its
//! values and from whether nulls are possible. Sets are combined by three-valued logic. A container is
//! skipped only if its set does not contain *true*, so unknown values (no statistics, a type without an
//! order) never skip it. PROTOCOL.md, "Per-file Statistics": bounds may be wide, a maximum may be the
//! successor of a truncated string, and statistics say nothing about NaN.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, StringArray, make_comparator};
use arrow::compute::{SortOptions, sort};
use arrow::datatypes::{DataType, Float32Type, Float64Type};

use super::{Column, Operator, Predicate};
use crate::error::{Error, Kind, Result};

/// The statistics of one column in each container.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// Lower bounds in the column's type; a null is unknown.
    pub min: ArrayRef,
    /// Upper bounds; a null is unknown.
    pub max: ArrayRef,
    /// Number of nulls, counted like `row_count` with or without deleted rows; a null is unknown.
    pub null_count: Int64Array,
    /// Number of rows of the container; a null is unknown.
    pub row_count: Int64Array,
    /// True if the bounds are the container's only value (a partition value), so that they include NaN.
    pub exact: bool,
}

impl Bounds {
    /// Makes bounds of a partition column's values, one per container.
    pub fn of_partition(values: ArrayRef) -> Self {
        let null_count = (0..values.len()).map(|i| i64::from(values.is_null(i))).collect();
        let row_count = std::iter::repeat_n(1, values.len()).collect();
        Self { min: values.clone(), max: values, null_count, row_count, exact: true }
    }
}

/// Statistics of a number of containers.
pub trait Containers {
    /// Returns the number of containers.
    fn len(&self) -> usize;
    /// True if there are no containers.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns the statistics of a column, or `None` if there are none.
    fn bounds(&self, column: &Column) -> Result<Option<Bounds>>;
}

/// A set of truth values: those that the rows of a container may give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PossibleTruths(u8);

impl PossibleTruths {
    const TRUE: u8 = 1;
    const FALSE: u8 = 2;
    const NULL: u8 = 4;
    const ANY: Self = Self(7);

    /// True if a row may match.
    pub fn may_match(self) -> bool {
        self.0 & Self::TRUE != 0
    }
    /// True if every row matches.
    pub fn all_match(self) -> bool {
        self.0 == Self::TRUE
    }
    fn not(self) -> Self {
        Self(self.0 & Self::NULL | (self.0 & Self::TRUE) << 1 | (self.0 & Self::FALSE) >> 1)
    }
    fn and(self, other: Self) -> Self {
        let (a, b) = (self.0, other.0);
        let mut out = (a & b & Self::TRUE) | ((a | b) & Self::FALSE);
        // null and (true or null) = null
        if a & Self::NULL != 0 && b & (Self::TRUE | Self::NULL) != 0
            || b & Self::NULL != 0 && a & (Self::TRUE | Self::NULL) != 0
        {
            out |= Self::NULL;
        }
        Self(out)
    }
    fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }
}

/// Returns for each container if a row may match.
pub fn may_match(predicate: &Predicate, containers: &dyn Containers) -> Result<BooleanArray> {
    Ok(possible(predicate, containers)?.into_iter().map(|p| Some(p.may_match())).collect())
}

/// Returns the truth values that each container's rows may give.
pub fn possible(predicate: &Predicate, containers: &dyn Containers) -> Result<Vec<PossibleTruths>> {
    let n = containers.len();
    let fold =
        |args: &[Predicate], start: u8, combine: fn(PossibleTruths, PossibleTruths) -> PossibleTruths| {
            args.iter().try_fold(vec![PossibleTruths(start); n], |all, arg| {
                Ok(all.into_iter().zip(possible(arg, containers)?).map(|(a, b)| combine(a, b)).collect())
            })
        };
    match predicate {
        Predicate::Constant(value) => Ok(vec![
            PossibleTruths(match value {
                Some(true) => PossibleTruths::TRUE,
                Some(false) => PossibleTruths::FALSE,
                None => PossibleTruths::NULL,
            });
            n
        ]),
        Predicate::And(args) => fold(args, PossibleTruths::TRUE, PossibleTruths::and),
        Predicate::Or(args) => fold(args, PossibleTruths::FALSE, PossibleTruths::or),
        Predicate::Not(arg) => Ok(possible(arg, containers)?.into_iter().map(PossibleTruths::not).collect()),
        Predicate::IsNull(column) => match containers.bounds(column)? {
            None => Ok(vec![PossibleTruths(PossibleTruths::TRUE | PossibleTruths::FALSE); n]),
            Some(bounds) => Ok((0..n)
                .map(|i| {
                    let (nulls, values) = presence(&bounds, i);
                    PossibleTruths(
                        (u8::from(nulls) * PossibleTruths::TRUE) | (u8::from(values) * PossibleTruths::FALSE),
                    )
                })
                .collect()),
        },
        Predicate::Compare(column, operator, literal) => on_values(column, containers, |bounds| {
            let interval = Interval::new(bounds, normalise(literal))?;
            let (operator, nan) = (*operator, hidden_nan(bounds, || nan_compares(*operator, literal)));
            Ok(Box::new(move |i| interval.compare(i, operator) | nan))
        }),
        Predicate::In(column, literals, has_null) => on_values(column, containers, |bounds| {
            let literals = sort(&normalise(literals), None).map_err(without_order)?;
            let miss = if *has_null { PossibleTruths::NULL } else { PossibleTruths::FALSE };
            let holds_nan = (0..literals.len()).any(|i| is_nan(&literals, i));
            let nan = hidden_nan(bounds, || if holds_nan { PossibleTruths::TRUE } else { miss });
            let interval = Interval::new(bounds, literals)?;
            Ok(Box::new(move |i| interval.is_in(i, miss) | nan))
        }),
        Predicate::StartsWith(column, prefix) => on_values(column, containers, |bounds| {
            let (min, max) = (bounds.min.as_string::<i32>().clone(), bounds.max.as_string::<i32>().clone());
            let text = |array: &StringArray, i: usize| array.is_valid(i).then(|| array.value(i).to_owned());
            Ok(Box::new(move |i| prefix_outcomes(text(&min, i).as_deref(), text(&max, i).as_deref(), prefix)))
        }),
    }
}

/// Returns whether a container may have nulls, and whether it may have values. With deleted rows, counts are
/// of all physical rows, or of the live rows if bounds were made tight again. Zero and "as many as rows" mean
/// the same for both; any other count decides nothing.
fn presence(bounds: &Bounds, i: usize) -> (bool, bool) {
    if bounds.null_count.is_null(i) {
        return (true, true);
    }
    let nulls = bounds.null_count.value(i);
    (nulls != 0, bounds.row_count.is_null(i) || bounds.row_count.value(i) != nulls)
}

type OfValues<'a> = Box<dyn Fn(usize) -> u8 + 'a>;

/// Returns the possible results of a comparison in each container: null if it may have nulls, and the results
/// of `make` if it may have values; all results if nothing is known.
fn on_values<'a>(
    column: &Column,
    containers: &dyn Containers,
    make: impl FnOnce(&Bounds) -> Result<OfValues<'a>>,
) -> Result<Vec<PossibleTruths>> {
    let n = containers.len();
    let Some(bounds) = containers.bounds(column)? else { return Ok(vec![PossibleTruths::ANY; n]) };
    let bounds = Bounds { min: normalise(&bounds.min), max: normalise(&bounds.max), ..bounds };
    let of_values = make(&bounds)?;
    let outcomes = |i| {
        let (nulls, values) = presence(&bounds, i);
        let of_nulls = if nulls { PossibleTruths::NULL } else { 0 };
        let of_values = if values { of_values(i) } else { 0 };
        PossibleTruths(of_nulls | of_values)
    };
    Ok((0..n).map(outcomes).collect())
}

/// Returns the result for a NaN among the values, which statistics of floats do not show. For a partition
/// value, which is exact, there is none.
fn hidden_nan(bounds: &Bounds, outcome: impl FnOnce() -> u8) -> u8 {
    if bounds.exact || !bounds.min.data_type().is_floating() { 0 } else { outcome() }
}

fn nan_compares(operator: Operator, literal: &ArrayRef) -> u8 {
    let order = if is_nan(literal, 0) { Ordering::Equal } else { Ordering::Greater };
    truth(holds(operator, order))
}

fn truth(value: bool) -> u8 {
    if value { PossibleTruths::TRUE } else { PossibleTruths::FALSE }
}

fn holds(operator: Operator, order: Ordering) -> bool {
    match operator {
        Operator::Eq => order.is_eq(),
        Operator::NotEq => order.is_ne(),
        Operator::Lt => order.is_lt(),
        Operator::LtEq => order.is_le(),
        Operator::Gt => order.is_gt(),
        Operator::GtEq => order.is_ge(),
    }
}

type Comparator = Box<dyn Fn(usize, usize) -> Ordering + Send + Sync>;

/// Compares each container's interval with sorted literals, in one total order (-0.0 = 0.0, NaN is greatest).
struct Interval {
    min: ArrayRef,
    max: ArrayRef,
    min_to_literal: Comparator,
    max_to_literal: Comparator,
    literals: usize,
}

impl Interval {
    fn new(bounds: &Bounds, literals: ArrayRef) -> Result<Self> {
        let (min, max) = (bounds.min.clone(), bounds.max.clone());
        let compare =
            |side: &ArrayRef| make_comparator(side, &literals, SortOptions::default()).map_err(without_order);
        Ok(Self {
            min_to_literal: compare(&min)?,
            max_to_literal: compare(&max)?,
            min,
            max,
            literals: literals.len(),
        })
    }

    /// Compares the minimum with a literal; an unknown bound is below all literals.
    fn low(&self, i: usize, literal: usize) -> Ordering {
        if self.min.is_null(i) { Ordering::Less } else { (self.min_to_literal)(i, literal) }
    }

    /// Compares the maximum with a literal; an unknown bound is above all literals.
    fn high(&self, i: usize, literal: usize) -> Ordering {
        if self.max.is_null(i) { Ordering::Greater } else { (self.max_to_literal)(i, literal) }
    }

    fn compare(&self, i: usize, operator: Operator) -> u8 {
        let (low, high) = (self.low(i, 0), self.high(i, 0));
        let below = low.is_lt(); // true if there may be a value below the literal; the others likewise
        let above = high.is_gt();
        let equal = low.is_le() && high.is_ge();
        let mut outcomes = 0;
        for (may_be, order) in [(below, Ordering::Less), (equal, Ordering::Equal), (above, Ordering::Greater)]
        {
            if may_be {
                outcomes |= truth(holds(operator, order));
            }
        }
        outcomes
    }

    /// Decides IN with a sorted list, for one container: true is possible if a literal is in its interval,
    /// and `miss` if a value may be none of the literals.
    fn is_in(&self, i: usize, miss: u8) -> u8 {
        let (mut from, mut to) = (0, self.literals);
        while from < to {
            let middle = from + (to - from) / 2;
            if self.low(i, middle).is_gt() { from = middle + 1 } else { to = middle }
        }
        let hit = from < self.literals && self.high(i, from).is_ge();
        let only_hit = hit && self.low(i, from).is_eq() && self.high(i, from).is_eq();
        match (hit, only_hit) {
            (_, true) => PossibleTruths::TRUE,
            (true, false) => PossibleTruths::TRUE | miss,
            (false, _) => miss,
        }
    }
}

fn without_order(error: arrow::error::ArrowError) -> Error {
    Error::new(Kind::InvalidArgument, "a comparison of values that have no order").caused_by(error)
}

fn prefix_outcomes(min: Option<&str>, max: Option<&str>, prefix: &str) -> u8 {
    let cut = |text: &str| text.as_bytes().iter().take(prefix.len()).copied().collect::<Vec<_>>();
    let starts = |text: Option<&str>| text.is_some_and(|t| t.starts_with(prefix));
    let min_not_above = min.is_none_or(|t| cut(t).as_slice() <= prefix.as_bytes());
    let max_not_below = max.is_none_or(|t| t.as_bytes() >= prefix.as_bytes());
    let hit = if min_not_above && max_not_below { PossibleTruths::TRUE } else { 0 };
    let miss = if starts(min) && starts(max) { 0 } else { PossibleTruths::FALSE };
    hit | miss
}

/// Normalises floats to the order that rows are compared in: -0.0 becomes 0.0, and every NaN the positive
/// one.
pub fn normalise(values: &ArrayRef) -> ArrayRef {
    match values.data_type() {
        DataType::Float32 => Arc::new(
            values
                .as_primitive::<Float32Type>()
                .unary::<_, Float32Type>(|v| if v.is_nan() { f32::NAN } else { v + 0.0 }),
        ),
        DataType::Float64 => Arc::new(
            values
                .as_primitive::<Float64Type>()
                .unary::<_, Float64Type>(|v| if v.is_nan() { f64::NAN } else { v + 0.0 }),
        ),
        _ => values.clone(),
    }
}

fn is_nan(values: &ArrayRef, i: usize) -> bool {
    match values.data_type() {
        DataType::Float32 => values.as_primitive::<Float32Type>().value(i).is_nan(),
        DataType::Float64 => values.as_primitive::<Float64Type>().value(i).is_nan(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predicate::parse::{from_json, tests::resolve};
    use arrow::array::{Float64Array, Int32Array};
    use proptest::prelude::*;

    /// A container for each entry; only columns i, d and s are known.
    struct Files {
        i: Vec<Vec<Option<i32>>>,
        d: Vec<Vec<Option<f64>>>,
        s: Vec<Vec<Option<String>>>,
    }

    fn counts<T>(rows: &[Vec<Option<T>>]) -> (Int64Array, Int64Array) {
        let nulls = rows.iter().map(|r| r.iter().filter(|v| v.is_none()).count() as i64).collect();
        (nulls, rows.iter().map(|r| r.len() as i64).collect())
    }

    impl Containers for Files {
        fn len(&self) -> usize {
            self.i.len()
        }
        fn bounds(&self, column: &Column) -> Result<Option<Bounds>> {
            let ((min, max), (null_count, row_count)): ((ArrayRef, ArrayRef), _) =
                match column.path[0].as_str() {
                    "i" => {
                        let side = |f: fn(&Vec<Option<i32>>) -> Option<i32>| {
                            Arc::new(self.i.iter().map(f).collect::<Int32Array>()) as ArrayRef
                        };
                        (
                            (
                                side(|r| r.iter().flatten().min().copied()),
                                side(|r| r.iter().flatten().max().copied()),
                            ),
                            counts(&self.i),
                        )
                    }
                    "d" => {
                        // NaN is left out, as writers do.
                        let pick = |r: &Vec<Option<f64>>, f: fn(f64, f64) -> f64| {
                            r.iter().flatten().copied().filter(|v| !v.is_nan()).reduce(f)
                        };
                        let low = self.d.iter().map(|r| pick(r, f64::min)).collect::<Float64Array>();
                        let high = self.d.iter().map(|r| pick(r, f64::max)).collect::<Float64Array>();
                        ((Arc::new(low), Arc::new(high)), counts(&self.d))
                    }
                    "s" => {
                        // The bounds are truncated to one character, and the maximum is then raised.
                        let low = self
                            .s
                            .iter()
                            .map(|r| r.iter().flatten().min().map(|t| t.chars().take(1).collect::<String>()));
                        let high = self.s.iter().map(|r| {
                            r.iter().flatten().max().map(|t| {
                                if t.chars().count() > 1 {
                                    t.chars().take(1).chain(['\u{10ffff}']).collect()
                                } else {
                                    t.clone()
                                }
                            })
                        });
                        let (low, high) = (low.collect::<StringArray>(), high.collect::<StringArray>());
                        ((Arc::new(low), Arc::new(high)), counts(&self.s))
                    }
                    _ => return Ok(None),
                };
            Ok(Some(Bounds { min, max, null_count, row_count, exact: false }))
        }
    }

    /// Evaluates the predicate on one row in three-valued logic, with Spark's order of floats. It is the
    /// oracle.
    fn row(p: &Predicate, i: Option<i32>, d: Option<f64>, s: Option<&str>) -> Option<bool> {
        let order = |column: &Column, literal: &ArrayRef, k: usize| match column.path[0].as_str() {
            "i" => i.map(|v| v.cmp(&literal.as_primitive::<arrow::datatypes::Int32Type>().value(k))),
            "d" => {
                let (l, key) = (literal.as_primitive::<Float64Type>().value(k), |v: f64| {
                    if v.is_nan() { f64::NAN } else { v + 0.0 }
                });
                d.map(|v| key(v).total_cmp(&key(l)))
            }
            _ => s.map(|v| v.cmp(literal.as_string::<i32>().value(k))),
        };
        match p {
            Predicate::Constant(v) => *v,
            Predicate::Compare(c, op, l) => order(c, l, 0).map(|o| holds(*op, o)),
            Predicate::In(c, ..) if row(&Predicate::IsNull(c.clone()), i, d, s) == Some(true) => None,
            Predicate::In(c, l, has_null) => {
                let hits = (0..l.len()).map(|k| order(c, l, k)).collect::<Option<Vec<_>>>()?;
                if hits.iter().any(|o| o.is_eq()) {
                    Some(true)
                } else if *has_null {
                    None
                } else {
                    Some(false)
                }
            }
            Predicate::StartsWith(_, prefix) => s.map(|v| v.starts_with(prefix.as_str())),
            Predicate::IsNull(c) => Some(match c.path[0].as_str() {
                "i" => i.is_none(),
                "d" => d.is_none(),
                _ => s.is_none(),
            }),
            Predicate::Not(a) => row(a, i, d, s).map(|v| !v),
            Predicate::And(args) => decided(args.iter().map(|a| row(a, i, d, s)), false),
            Predicate::Or(args) => decided(args.iter().map(|a| row(a, i, d, s)), true),
        }
    }

    /// Computes SQL's AND (`by` false) or OR (`by` true): one answer equal to `by` decides; otherwise, one
    /// unknown answer makes the result unknown.
    fn decided(mut answers: impl Iterator<Item = Option<bool>> + Clone, by: bool) -> Option<bool> {
        if answers.clone().any(|answer| answer == Some(by)) {
            Some(by)
        } else {
            answers.all(|answer| answer.is_some()).then_some(!by)
        }
    }

    fn double() -> impl Strategy<Value = f64> {
        prop_oneof![Just(f64::NAN), Just(-f64::NAN), Just(0.0), Just(-0.0), Just(f64::INFINITY), -3.0..3.0f64]
    }

    fn leaf() -> impl Strategy<Value = String> {
        let op = || prop::sample::select(vec!["=", "!=", "<", "<=", ">", ">="]);
        let float = |v: f64| {
            if v.is_nan() {
                "NaN".into()
            } else if v.is_infinite() {
                "Infinity".into()
            } else {
                format!("{v:?}")
            }
        };
        prop_oneof![
            (op(), -4..4i32).prop_map(|(op, v)| format!(r#"{{"op":"{op}","column":["i"],"literal":"{v}"}}"#)),
            (op(), double()).prop_map(move |(op, v)| format!(
                r#"{{"op":"{op}","column":["d"],"literal":"{}"}}"#,
                float(v)
            )),
            (op(), "[a-c]{0,3}")
                .prop_map(|(op, v)| format!(r#"{{"op":"{op}","column":["s"],"literal":"{v}"}}"#)),
            (prop::collection::vec(-4..4i32, 0..4), any::<bool>()).prop_map(|(v, n)| {
                let mut all: Vec<String> = v.iter().map(|v| format!("\"{v}\"")).collect();
                all.extend(n.then(|| "null".to_owned()));
                format!(r#"{{"op":"in","column":["i"],"literals":[{}]}}"#, all.join(","))
            }),
            "[a-c]{0,2}".prop_map(|v| format!(r#"{{"op":"starts_with","column":["s"],"literal":"{v}"}}"#)),
            prop::sample::select(vec!["i", "d", "s"])
                .prop_map(|c| format!(r#"{{"op":"is_null","column":["{c}"]}}"#)),
            Just(r#"{"op":"null"}"#.to_owned()),
        ]
    }

    fn tree() -> impl Strategy<Value = String> {
        leaf().prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                inner.clone().prop_map(|a| format!(r#"{{"op":"not","arg":{a}}}"#)),
                prop::collection::vec(inner.clone(), 0..3)
                    .prop_map(|a| format!(r#"{{"op":"and","args":[{}]}}"#, a.join(","))),
                prop::collection::vec(inner, 0..3)
                    .prop_map(|a| format!(r#"{{"op":"or","args":[{}]}}"#, a.join(","))),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 2000,
            failure_persistence: None,
            ..ProptestConfig::default()
        })]
        #[test]
        fn what_a_row_gives_is_always_possible(
            text in tree(),
            rows in prop::collection::vec(
                (prop::option::of(-4..4i32), prop::option::of(double()), prop::option::of("[a-c]{0,3}")),
                1..5,
            ),
        ) {
            let predicate = from_json(&text, &resolve).unwrap();
            let files = Files {
                i: vec![rows.iter().map(|r| r.0).collect()],
                d: vec![rows.iter().map(|r| r.1).collect()],
                s: vec![rows.iter().map(|r| r.2.clone()).collect()],
            };
            let outcomes = possible(&predicate, &files).unwrap()[0];
            for (i, d, s) in &rows {
                let bit = match row(&predicate, *i, *d, s.as_deref()) {
                    Some(true) => PossibleTruths::TRUE,
                    Some(false) => PossibleTruths::FALSE,
                    None => PossibleTruths::NULL,
                };
                prop_assert!(
                    outcomes.0 & bit != 0,
                    "{text} on {i:?} {d:?} {s:?} gives {bit}, said to be possible: {}",
                    outcomes.0
                );
            }
        }
    }

    #[test]
    fn what_can_be_skipped_is() {
        let files = Files {
            i: vec![vec![Some(1), Some(3)], vec![None, None], vec![Some(7), None]],
            d: vec![vec![Some(1.0)], vec![Some(2.0)], vec![None]],
            s: vec![vec![Some("ab".into())], vec![Some("b".into())], vec![Some("c".into())]],
        };
        let kept = |text: &str| -> Vec<bool> {
            may_match(&from_json(text, &resolve).unwrap(), &files)
                .unwrap()
                .iter()
                .map(|v| v.unwrap_or_default())
                .collect()
        };
        assert_eq!(kept(r#"{"op":"=","column":["i"],"literal":"2"}"#), [true, false, false]);
        assert_eq!(kept(r#"{"op":">","column":["i"],"literal":"3"}"#), [false, false, true]);
        assert_eq!(kept(r#"{"op":"is_null","column":["i"]}"#), [false, true, true]);
        assert_eq!(kept(r#"{"op":"not","arg":{"op":"is_null","column":["i"]}}"#), [true, false, true]);
        assert_eq!(kept(r#"{"op":"in","column":["i"],"literals":["4","8"]}"#), [false, false, false]);
        assert_eq!(kept(r#"{"op":"starts_with","column":["s"],"literal":"b"}"#), [false, true, false]);
        // NaN may hide behind a float's maximum, but not below a bound
        assert_eq!(kept(r#"{"op":">","column":["d"],"literal":"5"}"#), [true, true, false]);
        assert_eq!(kept(r#"{"op":"<","column":["d"],"literal":"1.5"}"#), [true, false, false]);
    }
}
