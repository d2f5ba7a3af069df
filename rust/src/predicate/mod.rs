//! The one small typed predicate tree, and its two readings.
//!
//! - [`rows`]: on decoded batches, exactly, with Spark's values for floats (-0.0 = 0.0, NaN equals NaN and is greatest)
//! - [`statistics`]: may a file, row group or page hold a match? Three-valued, conservative
//! - [`parse`]: from JSON and from pyarrow expressions

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;

pub mod parse;
pub mod rows;
pub mod statistics;

/// A column that a predicate names, resolved against a table's schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Logical names from the top, as the schema spells them.
    pub path: Vec<String>,
    /// Physical names from the top: keys of statistics and of partition values.
    pub physical: Vec<String>,
    /// Arrow type of the leaf, as [`crate::schema`] maps it.
    pub data_type: DataType,
    /// A partition column: its values are in the log, not in data files.
    pub partition: bool,
}

/// Comparison operators; null compared with anything is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// =
    Eq,
    /// !=
    NotEq,
    /// <
    Lt,
    /// <=
    LtEq,
    /// >
    Gt,
    /// >=
    GtEq,
}

/// The tree. Three-valued logic: a row matches where the whole is true.
#[derive(Debug, Clone)]
pub enum Predicate {
    /// Column against a literal: an array of length 1 in the column's own type, never null.
    Compare(Arc<Column>, Operator, ArrayRef),
    /// Column in literals: an array in the column's own type; `true` where the list also held a null.
    In(Arc<Column>, ArrayRef, bool),
    /// String column begins with.
    StartsWith(Arc<Column>, String),
    /// Column (of any type) is null.
    IsNull(Arc<Column>),
    /// not
    Not(Box<Predicate>),
    /// and; empty is true
    And(Vec<Predicate>),
    /// or; empty is false
    Or(Vec<Predicate>),
    /// A constant; `None` is null.
    Constant(Option<bool>),
}
