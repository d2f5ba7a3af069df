//! Evaluates a predicate on decoded rows, exactly: in three-valued logic, with Spark's rules for floats (-0.0
//! equals 0.0, NaN equals NaN and is greatest).

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, Scalar, StringArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::kernels::{cmp, comparison::starts_with};
use arrow::compute::{and_kleene, cast, is_null, not, or_kleene, take};
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};

use super::literals::Literals;
use super::statistics::normalise;
use super::{Column, Operator, Predicate};
use crate::error::{Error, Kind, Result};

/// Maximum number of literals of an IN list that are compared one by one.
const FEW_LITERALS: usize = 8;

/// Returns the predicate's value for each row of `batch`, which has the predicate's columns under their
/// logical names; null if the predicate is null.
pub fn evaluate(predicate: &Predicate, batch: &RecordBatch) -> Result<BooleanArray> {
    let rows = batch.num_rows();
    match predicate {
        Predicate::Constant(value) => Ok(constant(*value, rows)),
        Predicate::And(args) => combine(args, batch, true, |a, b| Ok(and_kleene(a, b)?)),
        Predicate::Or(args) => combine(args, batch, false, |a, b| Ok(or_kleene(a, b)?)),
        Predicate::Not(arg) => Ok(not(&evaluate(arg, batch)?)?),
        Predicate::IsNull(column) => {
            let (values, above) = find(column, batch)?;
            let own = if values.data_type() == &DataType::Null {
                constant(Some(true), rows)
            } else {
                is_null(&values)?
            };
            match above {
                None => Ok(own),
                Some(above) => Ok(BooleanArray::new(own.values() | &!above.inner(), None)),
            }
        }
        Predicate::Compare(column, operator, literal) => {
            on_values(column, batch, |values| compare(values, *operator, literal))
        }
        Predicate::In(column, literals, with_null) => on_values(column, batch, |values| {
            let found = among(values, literals)?;
            // x in (1, null) is true or null, never false
            if *with_null { Ok(or_kleene(&found, &BooleanArray::new_null(rows))?) } else { Ok(found) }
        }),
        Predicate::StartsWith(column, prefix) => on_values(column, batch, |values| {
            let prefix: ArrayRef = Arc::new(StringArray::from(vec![prefix.as_str()]));
            Ok(starts_with(&values, &Scalar::new(like(&prefix, values)?))?)
        }),
    }
}

/// Returns the rows for which the predicate is true; null counts as false.
pub fn matching(predicate: &Predicate, batch: &RecordBatch) -> Result<BooleanBuffer> {
    let found = evaluate(predicate, batch)?;
    Ok(match found.nulls() {
        Some(nulls) if nulls.null_count() > 0 => found.values() & nulls.inner(),
        _ => found.values().clone(),
    })
}

fn constant(value: Option<bool>, rows: usize) -> BooleanArray {
    match value {
        Some(true) => BooleanArray::new(BooleanBuffer::new_set(rows), None),
        Some(false) => BooleanArray::new(BooleanBuffer::new_unset(rows), None),
        None => BooleanArray::new_null(rows),
    }
}

fn combine(
    args: &[Predicate],
    batch: &RecordBatch,
    start: bool,
    join: impl Fn(&BooleanArray, &BooleanArray) -> Result<BooleanArray>,
) -> Result<BooleanArray> {
    let Some((first, rest)) = args.split_first() else { return Ok(constant(Some(start), batch.num_rows())) };
    rest.iter().try_fold(evaluate(first, batch)?, |all, arg| join(&all, &evaluate(arg, batch)?))
}

/// Returns the column's values, and the rows in which a struct above it is null.
fn find(column: &Column, batch: &RecordBatch) -> Result<(ArrayRef, Option<NullBuffer>)> {
    let missing = || {
        Error::new(Kind::InvalidArgument, "a predicate names a column that is not there")
            .found(column.path.join("."))
    };
    let (first, rest) = column.path.split_first().ok_or_else(missing)?;
    let mut values = Arc::clone(batch.column_by_name(first).ok_or_else(missing)?);
    let mut above: Option<NullBuffer> = None;
    for name in rest {
        let parent = values.as_struct_opt().ok_or_else(missing)?.clone();
        above = NullBuffer::union(above.as_ref(), parent.nulls());
        values = Arc::clone(parent.column_by_name(name).ok_or_else(missing)?);
    }
    Ok((values, above))
}

fn on_values(
    column: &Column,
    batch: &RecordBatch,
    decide: impl Fn(&ArrayRef) -> Result<BooleanArray>,
) -> Result<BooleanArray> {
    let (values, above) = find(column, batch)?;
    let found = match values.as_any_dictionary_opt() {
        // Decided once for each value of the dictionary, not for each row.
        Some(dictionary) => {
            take(&decide(dictionary.values())?, dictionary.keys(), None)?.as_boolean().clone()
        }
        None => decide(&values)?,
    };
    match above {
        None => Ok(found),
        Some(above) => {
            let nulls = NullBuffer::union(Some(&above), found.nulls());
            Ok(BooleanArray::new(found.values().clone(), nulls))
        }
    }
}

fn compare(values: &ArrayRef, operator: Operator, literal: &ArrayRef) -> Result<BooleanArray> {
    let values = normalise(values);
    let literal = Scalar::new(normalise(&like(literal, &values)?));
    Ok(match operator {
        Operator::Eq => cmp::eq(&values, &literal),
        Operator::NotEq => cmp::neq(&values, &literal),
        Operator::Lt => cmp::lt(&values, &literal),
        Operator::LtEq => cmp::lt_eq(&values, &literal),
        Operator::Gt => cmp::gt(&values, &literal),
        Operator::GtEq => cmp::gt_eq(&values, &literal),
    }?)
}

/// Returns literals in the type of the column's values: its own type, or the encoded one.
fn like(literals: &ArrayRef, values: &ArrayRef) -> Result<ArrayRef> {
    Ok(if literals.data_type() == values.data_type() {
        Arc::clone(literals)
    } else {
        cast(literals, values.data_type())?
    })
}

fn among(values: &ArrayRef, literals: &Literals) -> Result<BooleanArray> {
    if literals.len() > FEW_LITERALS
        && let Some(found) = literals.among_numbers(values)
    {
        return Ok(found);
    }
    let literals = &like(literals, values)?;
    if literals.len() <= FEW_LITERALS {
        let none = BooleanArray::new(BooleanBuffer::new_unset(values.len()), values.logical_nulls());
        return (0..literals.len()).try_fold(none, |all, index| {
            Ok(or_kleene(&all, &compare(values, Operator::Eq, &literals.slice(index, 1))?)?)
        });
    }
    let converter = RowConverter::new(vec![SortField::new(values.data_type().clone())])?;
    let literals = converter.convert_columns(&[normalise(literals)])?;
    let wanted: HashSet<&[u8]> = literals.iter().map(|row| row.data()).collect();
    let rows = converter.convert_columns(&[normalise(values)])?;
    let found = BooleanBuffer::from_iter(rows.iter().map(|row| wanted.contains(row.data())));
    Ok(BooleanArray::new(found, values.logical_nulls()))
}

#[cfg(test)]
mod tests;
