//! Finds the row groups and pages that may hold a matching row, by the statistics in the Parquet file.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, UInt64Array, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field as ArrowField, Fields};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::basic::Type as PhysicalType;
use parquet::file::metadata::ParquetMetaData;

use super::cast::cast_for;
use super::projection::{Finder, leaves};
use super::row_selection::intersect;
use crate::error::Result;
use crate::predicate::statistics::{Bounds, Containers, may_match};
use crate::predicate::{Column, Predicate};
use crate::schema::{Field, TableSchema, Type};

/// A file with what is needed to find a predicate's columns in it.
#[derive(Debug, Clone, Copy)]
pub struct Pruner<'a> {
    /// The table's columns.
    pub schema: &'a TableSchema,
    /// Finds the table's columns in the file.
    pub finder: Finder,
    /// The file's footer.
    pub metadata: &'a ArrowReaderMetadata,
}

impl Pruner<'_> {
    /// Returns for each row group if it may hold a match.
    pub fn row_groups(&self, predicate: &Predicate) -> Result<Vec<bool>> {
        let found = may_match(predicate, &RowGroups(self))?;
        Ok(found.iter().map(|may| may != Some(false)).collect())
    }

    /// Returns a column's bounds in all row groups, in the table's type.
    pub fn bounds(&self, column: &Column) -> Result<Option<Bounds>> {
        RowGroups(self).bounds(column)
    }

    /// True if the file has neither the column nor a struct above it.
    pub fn is_absent(&self, column: &Column) -> bool {
        let mut fields: &[Field] = self.schema.fields();
        let mut children: &Fields = self.metadata.schema().fields();
        for name in &column.path {
            let Some((_, field)) = crate::schema::types::find(fields, name) else { return false };
            let Some(index) = self.finder.find(field, children) else { return true };
            match (&field.data_type, children[index].data_type()) {
                (Type::Struct(inner), DataType::Struct(found)) => (fields, children) = (inner, found),
                _ => return false,
            }
        }
        false
    }

    /// Returns the rows of a row group in pages that may hold a match. `None`: unknown.
    pub fn pages(&self, predicate: &Predicate, group: usize) -> Result<Option<Vec<Range<usize>>>> {
        let mut rows: Option<Vec<Range<usize>>> = None;
        let conjuncts = match predicate {
            Predicate::And(args) => args.as_slice(),
            one => std::slice::from_ref(one),
        };
        for conjunct in conjuncts {
            // Pages of different columns have different boundaries, so only conditions on one column are
            // used.
            let [column] = &conjunct.columns()[..] else { continue };
            let Some(pages) = Pages::of(self, column, group)? else { continue };
            let may = may_match(conjunct, &pages)?;
            let runs = pages
                .rows
                .iter()
                .zip(may.iter())
                .filter(|(_, may)| *may != Some(false))
                .map(|(run, _)| run.clone());
            let mut joined: Vec<Range<usize>> = Vec::new();
            for run in runs {
                match joined.last_mut() {
                    Some(last) if last.end == run.start => last.end = run.end,
                    _ => joined.push(run),
                }
            }
            rows = Some(match rows {
                None => joined,
                Some(before) => intersect(&before, &joined),
            });
        }
        Ok(rows)
    }

    /// Returns the Parquet leaf of a column, with its Arrow type there.
    fn leaf(&self, column: &Column) -> Option<(usize, Arc<ArrowField>)> {
        let mut fields: &[Field] = self.schema.fields();
        let mut children: &Fields = self.metadata.schema().fields();
        let mut first = 0;
        for (depth, name) in column.path.iter().enumerate() {
            let (_, field) = crate::schema::types::find(fields, name)?;
            let index = self.finder.find(field, children)?;
            first += children[..index].iter().map(|child| leaves(child.data_type())).sum::<usize>();
            let last = depth + 1 == column.path.len();
            match (&field.data_type, children[index].data_type()) {
                (Type::Struct(inner), DataType::Struct(found)) if !last => {
                    (fields, children) = (inner, found)
                }
                (Type::Primitive(_), found) if last && !found.is_nested() => {
                    return Some((first, Arc::clone(&children[index])));
                }
                _ => return None,
            }
        }
        None
    }
}

/// Converts bounds from the file's type to the table's; unknown if that is not possible.
fn bounds_as(found: ArrayRef, target: &DataType) -> ArrayRef {
    let unknown = || new_null_array(target, found.len());
    if found.data_type() == target {
        return Arc::clone(&found);
    }
    match cast_for(found.data_type(), target) {
        // Bounds in nanoseconds are rounded down, as values are.
        Some(super::cast::Cast::Micros) => super::cast::micros(&found, target).unwrap_or_else(|_| unknown()),
        Some(super::cast::Cast::Checked) => cast(&found, target).unwrap_or_else(|_| unknown()),
        None => unknown(),
    }
}

fn signed(counts: &UInt64Array) -> Int64Array {
    counts.iter().map(|count| count.and_then(|count| i64::try_from(count).ok())).collect()
}

struct RowGroups<'a>(&'a Pruner<'a>);

impl Containers for RowGroups<'_> {
    fn len(&self) -> usize {
        self.0.metadata.metadata().num_row_groups()
    }

    fn bounds(&self, column: &Column) -> Result<Option<Bounds>> {
        let Some((leaf, field)) = self.0.leaf(column) else { return Ok(None) };
        let metadata: &ParquetMetaData = self.0.metadata.metadata();
        let groups = metadata.row_groups();
        if groups.iter().any(|group| has_old_bounds(group.column(leaf))) {
            return Ok(None);
        }
        let converter =
            StatisticsConverter::from_column_index(leaf, &field, self.0.metadata.parquet_schema())?
                .with_missing_null_counts_as_zero(false);
        Ok(Some(Bounds {
            min: bounds_as(converter.row_group_mins(groups)?, &column.data_type),
            max: bounds_as(converter.row_group_maxes(groups)?, &column.data_type),
            null_count: signed(&converter.row_group_null_counts(groups)?),
            row_count: groups.iter().map(|group| group.num_rows()).collect(),
            exact: false,
        }))
    }
}

/// True for bounds from before Parquet defined an order of values. They are used only for types that have a
/// single order.
fn has_old_bounds(column: &parquet::file::metadata::ColumnChunkMetaData) -> bool {
    let ordered = matches!(
        column.column_type(),
        PhysicalType::INT32 | PhysicalType::INT64 | PhysicalType::FLOAT | PhysicalType::DOUBLE
    );
    column.statistics().is_some_and(|statistics| statistics.is_min_max_deprecated()) && !ordered
}

/// Pages of one column in one row group.
struct Pages {
    column: Arc<Column>,
    rows: Vec<Range<usize>>,
    bounds: Bounds,
}

impl Pages {
    fn of(pruner: &Pruner<'_>, column: &Arc<Column>, group: usize) -> Result<Option<Self>> {
        let Some((leaf, field)) = pruner.leaf(column) else { return Ok(None) };
        let metadata: &ParquetMetaData = pruner.metadata.metadata();
        let descriptor = metadata.file_metadata().schema_descr().column(leaf);
        let (Some(columns), Some(offsets)) = (metadata.column_index(), metadata.offset_index()) else {
            return Ok(None);
        };
        let present = columns.get(group).is_some_and(|group| leaf < group.len())
            && offsets.get(group).is_some_and(|group| leaf < group.len());
        if !present || descriptor.max_rep_level() > 0 {
            return Ok(None);
        }
        let total = metadata.row_group(group).num_rows() as usize;
        let starts: Vec<usize> =
            offsets[group][leaf].page_locations().iter().map(|page| page.first_row_index as usize).collect();
        if starts.first() != Some(&0)
            || !starts.is_sorted()
            || starts.last().is_some_and(|last| *last > total)
        {
            return Ok(None);
        }
        let ends = starts.iter().skip(1).copied().chain([total]);
        let rows: Vec<Range<usize>> =
            starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect();
        let converter =
            StatisticsConverter::from_column_index(leaf, &field, pruner.metadata.parquet_schema())?;
        let min = bounds_as(converter.data_page_mins(columns, offsets, [&group])?, &column.data_type);
        let max = bounds_as(converter.data_page_maxes(columns, offsets, [&group])?, &column.data_type);
        let null_count = signed(&converter.data_page_null_counts(columns, offsets, [&group])?);
        if [min.len(), max.len(), null_count.len()] != [rows.len(); 3] {
            return Ok(None);
        }
        let row_count = rows.iter().map(|run| run.len() as i64).collect();
        let bounds = Bounds { min, max, null_count, row_count, exact: false };
        Ok(Some(Self { column: Arc::clone(column), rows, bounds }))
    }
}

impl Containers for Pages {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn bounds(&self, column: &Column) -> Result<Option<Bounds>> {
        Ok((column == self.column.as_ref()).then(|| self.bounds.clone()))
    }
}
