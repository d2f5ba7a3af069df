//! The predicate tree: typed comparisons and boolean logic, evaluated on rows or on statistics.
//!
//! - [`rows`]: evaluates it on decoded batches, exactly, with Spark's rules for floats (-0.0 = 0.0, NaN
//!   equals NaN and is greatest)
//! - [`statistics`]: finds out if a file, row group or page may hold a match, in three-valued logic
//! - [`parse`]: conversion from and to JSON; [`pyarrow`]: conversion from pyarrow's expressions

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::{filter, is_not_null};
use arrow::datatypes::DataType;

use self::literals::Literals;
use crate::error::{Error, Kind, Result};
use crate::schema::TableSchema;

pub mod literals;
pub mod parse;
pub mod pyarrow;
pub mod rows;
pub mod statistics;

/// A column in a predicate, resolved by a table's schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Logical names from the top level down, in the case of the schema.
    pub path: Vec<String>,
    /// Physical names from the top level down: keys of statistics and of partition values.
    pub physical: Vec<String>,
    /// Arrow type of the leaf, as [`crate::schema`] maps it.
    pub data_type: DataType,
    /// True for a partition column: its values are in the log, not in data files.
    pub partition: bool,
    /// True if the type was float before it was widened, so statistics as text may be those of a float.
    pub was_float: bool,
}

impl Column {
    /// Finds a column by its logical path, in any case.
    pub fn resolve(schema: &TableSchema, path: &[String]) -> Result<Arc<Self>> {
        let leaf = schema.leaf_at(path)?;
        Ok(Arc::new(Self {
            path: leaf.path,
            physical: leaf.physical,
            data_type: leaf.data_type,
            partition: leaf.partition,
            was_float: leaf.was_float,
        }))
    }
}

/// Comparison operators; null compared with anything is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `=`
    Eq,
    /// `!=`
    NotEq,
    /// `<`
    Lt,
    /// `<=`
    LtEq,
    /// `>`
    Gt,
    /// `>=`
    GtEq,
}

/// The tree, in three-valued logic: a row matches if the predicate is true.
#[derive(Debug, Clone)]
pub enum Predicate {
    /// Compares a column with a literal: an array of length 1 in the column's type, not null.
    Compare(Arc<Column>, Operator, ArrayRef),
    /// The column is one of the literals; null for a null in the column. With the flag, the list also has a
    /// null, so that the result is null instead of false.
    In(Arc<Column>, Literals, bool),
    /// The text column begins with this text.
    StartsWith(Arc<Column>, String),
    /// The column (of any type) is null.
    IsNull(Arc<Column>),
    /// The negation of a predicate.
    Not(Box<Predicate>),
    /// The conjunction (AND) of predicates; true if there are none.
    And(Vec<Predicate>),
    /// The disjunction (OR) of predicates; false if there are none.
    Or(Vec<Predicate>),
    /// A constant; `None` is null.
    Constant(Option<bool>),
}

impl Operator {
    /// Returns the operator for swapped sides: `<` for `>`.
    pub fn flipped(self) -> Self {
        match self {
            Self::Lt => Self::Gt,
            Self::LtEq => Self::GtEq,
            Self::Gt => Self::Lt,
            Self::GtEq => Self::LtEq,
            same => same,
        }
    }
}

impl Predicate {
    /// Makes the predicate that the column is one of these values, which have its type; nulls are omitted.
    /// `None` for more than `most` values in which a look-up takes long ([`Literals::are_dense`]).
    pub fn among(column: Arc<Column>, values: &ArrayRef, most: usize) -> Result<Option<Self>> {
        if values.data_type() != &column.data_type {
            return Err(Error::new(Kind::InvalidArgument, "values of another type than their column")
                .at(column.path.join("."))
                .found(values.data_type())
                .expected(&column.data_type));
        }
        let literals = Literals::from(filter(values, &is_not_null(values)?)?);
        Ok((literals.len() <= most || literals.are_dense()).then_some(Self::In(column, literals, false)))
    }

    /// Joins two predicates by AND, without nested conjunctions.
    pub fn and(self, other: Self) -> Self {
        let mut all = match self {
            Self::And(all) => all,
            one => vec![one],
        };
        match other {
            Self::And(more) => all.extend(more),
            one => all.push(one),
        }
        Self::And(all)
    }

    /// Returns all columns in the predicate, each once, in the order of first use.
    pub fn columns(&self) -> Vec<Arc<Column>> {
        let mut found = Vec::new();
        self.visit_columns(&mut |column| {
            if !found.contains(column) {
                found.push(column.clone());
            }
        });
        found
    }

    fn visit_columns(&self, visit: &mut impl FnMut(&Arc<Column>)) {
        match self {
            Self::Compare(column, ..)
            | Self::In(column, ..)
            | Self::StartsWith(column, _)
            | Self::IsNull(column) => visit(column),
            Self::Not(inner) => inner.visit_columns(visit),
            Self::And(args) | Self::Or(args) => args.iter().for_each(|arg| arg.visit_columns(visit)),
            Self::Constant(_) => {}
        }
    }

    /// True if the predicate has only partition columns, so that the log alone decides.
    pub fn is_partition_only(&self) -> bool {
        let mut all = true;
        self.visit_columns(&mut |column| all &= column.partition);
        all
    }

    /// Returns the conjuncts of the top level.
    pub fn conjuncts(self) -> Vec<Self> {
        match self {
            Self::And(args) => args.into_iter().flat_map(Self::conjuncts).collect(),
            one => vec![one],
        }
    }
}
