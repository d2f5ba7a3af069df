#![allow(clippy::unwrap_used)]
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields};

use super::*;

fn column(path: &[&str], data_type: DataType) -> Arc<Column> {
    let path: Vec<String> = path.iter().map(|name| (*name).to_owned()).collect();
    Arc::new(Column { physical: path.clone(), path, data_type, partition: false, was_float: false })
}

fn values(found: &BooleanArray) -> Vec<Option<bool>> {
    found.iter().collect()
}

fn batch(name: &str, array: ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([(name, array, true)]).unwrap()
}

#[test]
fn floats_compare_as_spark_does() {
    let data = batch(
        "d",
        Arc::new(Float64Array::from(vec![
            Some(-0.0),
            Some(0.0),
            Some(-f64::NAN),
            Some(f64::NAN),
            Some(f64::INFINITY),
            None,
        ])),
    );
    let d = column(&["d"], DataType::Float64);
    let compare = |operator, literal: f64| {
        let literal: ArrayRef = Arc::new(Float64Array::from(vec![literal]));
        values(&evaluate(&Predicate::Compare(d.clone(), operator, literal), &data).unwrap())
    };
    let t = Some(true);
    let f = Some(false);
    assert_eq!(compare(Operator::Eq, -0.0), [t, t, f, f, f, None]);
    assert_eq!(compare(Operator::Lt, 0.0), [f, f, f, f, f, None]);
    assert_eq!(compare(Operator::Eq, f64::NAN), [f, f, t, t, f, None]);
    assert_eq!(compare(Operator::Gt, f64::INFINITY), [f, f, t, t, f, None]);
    assert_eq!(compare(Operator::LtEq, -f64::NAN), [t, t, t, t, t, None]);
    for repeat in [1, 10] {
        let literals: ArrayRef = Arc::new(Float64Array::from([0.0, -f64::NAN].repeat(repeat)));
        assert_eq!(
            values(&evaluate(&Predicate::In(d.clone(), literals.into(), false), &data).unwrap()),
            [t, t, t, t, f, None]
        );
    }
}

#[test]
fn in_with_a_null_is_never_false() {
    let data = batch("i", Arc::new(Int64Array::from(vec![Some(1), Some(2), None])));
    let i = column(&["i"], DataType::Int64);
    for repeat in [1, 20] {
        let literals: ArrayRef = Arc::new(Int64Array::from(vec![1; repeat]));
        let found = Predicate::In(i.clone(), literals.clone().into(), true);
        assert_eq!(values(&evaluate(&found, &data).unwrap()), [Some(true), None, None]);
        assert_eq!(
            values(&evaluate(&Predicate::Not(Box::new(found)), &data).unwrap()),
            [Some(false), None, None]
        );
    }
    let nothing: ArrayRef = Arc::new(Int64Array::new_null(0));
    assert_eq!(
        values(&evaluate(&Predicate::In(i, nothing.into(), false), &data).unwrap()),
        [Some(false), Some(false), None]
    );
}

#[test]
fn a_field_of_a_null_struct_is_null() {
    let inner: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), Some(1), None]));
    let fields = Fields::from(vec![Field::new("x", DataType::Int64, true)]);
    let data: ArrayRef =
        Arc::new(StructArray::new(fields, vec![inner], Some(NullBuffer::from(vec![true, false, true]))));
    let data = batch("s", data);
    let x = column(&["s", "x"], DataType::Int64);
    let one: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let equal = Predicate::Compare(x.clone(), Operator::Eq, one);
    assert_eq!(values(&evaluate(&equal, &data).unwrap()), [Some(true), None, None]);
    assert_eq!(
        values(&evaluate(&Predicate::IsNull(x), &data).unwrap()),
        [Some(false), Some(true), Some(true)]
    );
    assert_eq!(matching(&Predicate::Not(Box::new(equal)), &data).unwrap().count_set_bits(), 0);
}

#[test]
fn logic_has_three_values() {
    let data = batch("s", Arc::new(StringArray::from(vec![Some("abc"), Some("x"), None])));
    let starts = Predicate::StartsWith(column(&["s"], DataType::Utf8), "ab".to_owned());
    let or = Predicate::Or(vec![starts.clone(), Predicate::Constant(None)]);
    assert_eq!(values(&evaluate(&or, &data).unwrap()), [Some(true), None, None]);
    let and = Predicate::And(vec![starts, Predicate::Constant(None)]);
    assert_eq!(values(&evaluate(&and, &data).unwrap()), [None, Some(false), None]);
    assert_eq!(values(&evaluate(&Predicate::And(vec![]), &data).unwrap()), [Some(true); 3]);
    assert_eq!(values(&evaluate(&Predicate::Or(vec![]), &data).unwrap()), [Some(false); 3]);
}
