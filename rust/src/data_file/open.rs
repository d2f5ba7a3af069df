//! Opens a file for a scan: its footer, deletion vector and partition values, and the parts that must be
//! read.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Array, ArrayRef, Int32Array, RecordBatch, UInt32Array};
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field as ArrowField, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;

use super::constant::{Constant, LastRepeated};
use super::encoded::{Texts, encode, encoded_field};
use super::files::Files;
use super::projection::{Finder, leaves};
use super::prune::Pruner;
use super::row_selection::{FileRows, Rows};
use super::source::{self, FileBytes};
use crate::deletion_vector::DeletionVector;
use crate::deletion_vector::row_ids::{FILE_COLUMN, ROW_COLUMN};
use crate::error::{Error, Kind, Result};
use crate::predicate::Predicate;
use crate::predicate::parse::to_json;
use crate::predicate::rows::evaluate;
use crate::schema::{Field, TableSchema, partition_values};
use crate::store::{Store, resolve};

/// The columns and rows that a scan returns.
#[derive(Debug, Clone)]
pub struct Request {
    /// Top-level columns or fields in them, in output order.
    pub columns: Vec<String>,
    /// The predicate; only rows for which it is true are returned.
    pub predicate: Option<Predicate>,
    /// True to append the columns of file ordinal and row index.
    pub row_ids: bool,
    /// Names of columns of [`Files`] to append to the rows: each row gets the value of its file.
    pub constants: Vec<String>,
    /// Names of the columns that keep row ids and row commit versions: both are output, after the data, for
    /// every row.
    pub row_tracking: Option<(String, String)>,
    /// Maximum number of rows of a batch.
    pub batch_size: usize,
    /// Maximum number of rows in total.
    pub limit: Option<usize>,
    /// True to skip row groups and pages whose statistics show that no row matches.
    pub pruning: bool,
    /// Columns to return in the types of [`super::encoded`], and the form of their texts.
    pub encoded: HashMap<String, Texts>,
}

impl Request {
    /// Makes a request for all rows of these columns, without skipping by statistics.
    pub fn unpruned(columns: Vec<String>) -> Self {
        let (predicate, constants, row_tracking) = (None, Vec::new(), None);
        Self {
            columns,
            predicate,
            row_ids: false,
            constants,
            row_tracking,
            batch_size: 1 << 16,
            limit: None,
            pruning: false,
            encoded: HashMap::new(),
        }
    }
    /// True if the positions of rows in their files are needed.
    pub fn positions(&self) -> bool {
        self.row_ids || self.row_tracking.is_some()
    }
}

/// An output column.
#[derive(Debug, Clone)]
pub enum Output {
    /// A column of data files, by its position in [`Plan::data`].
    Data(usize),
    /// The row id (of row tracking): from the hidden column at this position of [`Plan::data`], or, if that
    /// is null, the file's first row id plus the row's index.
    RowId(usize),
    /// The version that last changed the row: from the hidden column at this position, or, if that is null,
    /// the file's own.
    RowVersion(usize),
    /// A partition column.
    Partition(Field),
    /// A column of [`Files`], with one value for each file.
    Constant(ArrayRef),
    /// The file's ordinal.
    File,
    /// The row's index in its file.
    Row,
}

/// The part of a scan that all its files share.
#[derive(Debug)]
pub struct Plan {
    /// The store of the files.
    pub store: Arc<dyn Store>,
    /// The table's schema.
    pub schema: Arc<TableSchema>,
    /// The files to read.
    pub files: Files,
    /// The output's columns.
    pub outputs: Vec<Output>,
    /// Columns of data files in the output, pruned to the requested fields.
    pub data: Vec<Field>,
    /// The output's schema.
    pub output: SchemaRef,
    /// The request from which the plan was made.
    pub request: Request,
    /// Positions of entries to read together because they are one file with several selections. `None`: each
    /// entry is read by itself.
    units: Option<Vec<Vec<usize>>>,
    /// The last array that repeats a constant, for each output column.
    repeated: Vec<LastRepeated>,
    /// What the scan has read so far.
    pub metrics: Metrics,
}

/// Counters of a scan.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Number of opened files.
    pub files: AtomicU64,
    /// Number of row groups in the opened files.
    pub row_groups: AtomicU64,
    /// Number of decoded row groups.
    pub row_groups_read: AtomicU64,
    /// Number of fetched bytes.
    pub bytes_read: Arc<AtomicU64>,
    /// Number of rows in the output.
    pub rows: AtomicU64,
}

impl Metrics {
    /// Returns the counters so far, by name.
    pub fn named(&self) -> [(&'static str, u64); 5] {
        [
            ("files", self.files.load(Ordering::Relaxed)),
            ("row_groups", self.row_groups.load(Ordering::Relaxed)),
            ("row_groups_read", self.row_groups_read.load(Ordering::Relaxed)),
            ("bytes_read", self.bytes_read.load(Ordering::Relaxed)),
            ("rows", self.rows.load(Ordering::Relaxed)),
        ]
    }
}

impl Plan {
    /// Makes the plan of a scan: resolves the requested columns, and makes the output's schema.
    pub fn new(
        store: Arc<dyn Store>,
        schema: Arc<TableSchema>,
        files: Files,
        request: Request,
    ) -> Result<Self> {
        let (mut outputs, mut data, mut fields) = (Vec::new(), Vec::new(), Vec::new());
        for field in schema.select(&request.columns)? {
            let column = field.to_arrow(false);
            fields.push(match request.encoded.get(&field.name) {
                Some(texts) => encoded_field(column, *texts),
                None => column,
            });
            if schema.is_partition(schema.column(&field.name)?.0) {
                outputs.push(Output::Partition(field));
            } else {
                outputs.push(Output::Data(data.len()));
                data.push(field);
            }
        }
        if let Some((id, version)) = &request.row_tracking {
            for (name, output) in
                [(id, Output::RowId(data.len())), (version, Output::RowVersion(data.len() + 1))]
            {
                let field = Field::hidden(name, None);
                fields.push(field.to_arrow(false));
                outputs.push(output);
                data.push(field);
            }
        }
        for name in &request.constants {
            let column = files.batch.column_by_name(name);
            let column = column.ok_or_else(|| {
                Error::new(Kind::InvalidArgument, "no such column of the files").found(name)
            })?;
            fields.push(ArrowField::new(name, column.data_type().clone(), true));
            outputs.push(Output::Constant(Arc::clone(column)));
        }
        if request.row_ids {
            fields.extend([
                ArrowField::new(FILE_COLUMN, DataType::Int32, false),
                ArrowField::new(ROW_COLUMN, DataType::Int64, false),
            ]);
            outputs.extend([Output::File, Output::Row]);
        }
        let output = Arc::new(Schema::new(fields));
        let repeated = outputs.iter().map(|_| LastRepeated::default()).collect();
        let mut plan = Self {
            store,
            schema,
            files,
            outputs,
            data,
            output,
            request,
            units: None,
            repeated,
            metrics: Metrics::default(),
        };
        plan.units = plan.shared()?;
        Ok(plan)
    }

    /// Returns the number of files to open.
    pub fn unit_count(&self) -> usize {
        self.units.as_ref().map_or(self.files.len(), Vec::len)
    }

    /// Returns the positions in [`Self::files`] of the entries of file number `unit`: the first entry, and
    /// all entries.
    pub fn unit(&self, unit: usize) -> (usize, &[usize]) {
        match self.units.as_ref().and_then(|units| units[unit].split_first()) {
            Some((first, others)) => (*first, others),
            None => (unit, &[]),
        }
    }

    /// Groups entries with the same path that each select a few rows, as in the change data feed, where each
    /// DELETE selects further rows of a file.
    fn shared(&self) -> Result<Option<Vec<Vec<usize>>>> {
        if !self.files.may_repeat() || self.request.row_tracking.is_some() {
            return Ok(None);
        }
        let mut units: Vec<Vec<usize>> = Vec::new();
        let mut known: HashMap<(&str, String), usize> = HashMap::new();
        for index in 0..self.files.len() {
            let key = self.shared_key(index)?;
            match key.as_ref().and_then(|key| known.get(key)) {
                Some(unit) => units[*unit].push(index),
                None => {
                    known.extend(key.map(|key| (key, units.len())));
                    units.push(vec![index]);
                }
            }
        }
        Ok((units.len() < self.files.len()).then_some(units))
    }

    /// Returns what entries must share to be read together: the path, and the predicate after partition
    /// values are put in.
    fn shared_key(&self, index: usize) -> Result<Option<(&str, String)>> {
        if !self.files.names_rows(index) || self.files.vector(index)?.is_some() {
            return Ok(None);
        }
        let predicate = self
            .request
            .predicate
            .as_ref()
            .map(|predicate| on_partition(self, index, predicate))
            .transpose()?;
        let predicate = predicate.map(|predicate| to_json(&predicate)).transpose()?.unwrap_or_default();
        Ok(Some((self.files.path(index)?, predicate)))
    }
}

/// The entry to which each row belongs, for a file with several entries.
#[derive(Debug)]
pub struct Owners {
    /// Pairs of a row and an entry that selects it, ascending.
    rows: Vec<(u64, u32)>,
    /// For each output column that is constant within an entry, by its position: an array with a value for
    /// each entry.
    pub constants: HashMap<usize, ArrayRef>,
}

impl Owners {
    /// Returns the owners of the rows that these entries select, and the set of all these rows.
    fn of(plan: &Plan, entries: impl Iterator<Item = usize>) -> Result<(Self, DeletionVector)> {
        let (mut rows, mut all) = (Vec::new(), DeletionVector::default());
        let mut values: HashMap<usize, Vec<ArrayRef>> = HashMap::new();
        for (entry, index) in (0_u32..).zip(entries) {
            let (selected, _) = plan.files.selection(index)?.unwrap_or_default();
            rows.extend(selected.iter().map(|row| (row, entry)));
            all = all.union(&selected);
            for (position, value) in constants_of(plan, index)? {
                values.entry(position).or_default().push(value);
            }
        }
        rows.sort_unstable();
        let joined = |(position, values): (usize, Vec<ArrayRef>)| {
            let values: Vec<&dyn Array> = values.iter().map(AsRef::as_ref).collect();
            Ok((position, concat(&values)?))
        };
        Ok((Self { rows, constants: values.into_iter().map(joined).collect::<Result<_>>()? }, all))
    }

    /// Returns, for each of these rows (ascending) and each of its entries, the row's position among them and
    /// the entry.
    pub fn of_rows(&self, rows: &[i64]) -> (UInt32Array, UInt32Array) {
        let first = rows.first().and_then(|row| u64::try_from(*row).ok()).unwrap_or_default();
        let mut at = self.rows.partition_point(|(row, _)| *row < first);
        let (mut places, mut entries) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
        for (place, row) in (0_u32..).zip(rows) {
            while let Some((owned, entry)) =
                self.rows.get(at).filter(|(owned, _)| i64::try_from(*owned).is_ok_and(|owned| owned <= *row))
            {
                if i64::try_from(*owned) == Ok(*row) {
                    places.push(place);
                    entries.push(*entry);
                }
                at += 1;
            }
        }
        (UInt32Array::from(places), UInt32Array::from(entries))
    }
}

/// A row group to read.
#[derive(Debug)]
pub struct Group {
    /// The row group's number in the file.
    pub index: usize,
    /// Absolute index of its first row.
    pub first: u64,
    /// The number of its rows.
    pub total: usize,
    /// Runs of its rows in pages that may hold a match, ascending. `None`: all rows.
    pub pages: Option<Vec<Range<usize>>>,
}

/// A file opened for a scan.
#[derive(Debug)]
pub struct OpenFile {
    /// Position in the plan's files.
    pub index: usize,
    /// The path, for error messages.
    pub path: String,
    /// The file's bytes.
    pub bytes: FileBytes,
    /// The file's footer.
    pub metadata: ArrowReaderMetadata,
    /// Finds the table's columns in the file.
    pub finder: Finder,
    /// The predicate after partition values are put in. `None`: it is true for all rows.
    pub predicate: Option<Predicate>,
    /// Columns of the data file that the predicate needs, pruned to the fields in it.
    pub predicate_fields: Vec<Field>,
    /// The rows that remain after deletion vector and selection.
    pub wanted: FileRows,
    /// The row groups to read.
    pub groups: Vec<Group>,
    /// The values of the output columns that are the same in each row.
    pub constants: HashMap<usize, Constant>,
    /// The owners of rows, if several entries are this file: each entry has its own constants.
    pub owners: Option<Owners>,
}

impl OpenFile {
    /// Opens the `unit`th file of the plan.
    pub fn open(plan: &Plan, unit: usize) -> Result<Self> {
        let (index, others) = plan.unit(unit);
        let text = plan.files.path(index)?;
        Self::open_at(plan, index, others).map_err(|error| match error.kind() {
            Kind::NotFound => Error::lost(text, "a data file").caused_by(error),
            _ => error.at(text),
        })
    }

    fn open_at(plan: &Plan, index: usize, others: &[usize]) -> Result<Self> {
        let shared = |(at, value)| (at, Constant::new(value, Arc::clone(&plan.repeated[at])));
        let constants = constants_of(plan, index)?.into_iter().map(shared).collect();
        let predicate = match &plan.request.predicate {
            None => None,
            Some(predicate) => Some(on_partition(plan, index, predicate)?),
        };
        let (store, path) = resolve(&plan.store, plan.files.path(index)?)?;
        if matches!(predicate, Some(Predicate::Constant(Some(false) | None))) {
            // The partition values rule out the file, so it is not opened.
            return Self::nothing(plan, index, store, path);
        }
        let predicate = predicate.filter(|predicate| !matches!(predicate, Predicate::Constant(Some(true))));
        let num_records = plan.files.num_records(index);
        let descriptor = plan.files.vector(index)?;
        let deleted = descriptor.as_ref().map(|vector| vector.read(&*plan.store, num_records)).transpose();
        let deleted = deleted.map_err(|error| error.within(plan.files.path(index).unwrap_or_default()))?;
        let (owners, wanted) = if others.is_empty() {
            (None, FileRows::new(deleted, plan.files.selection(index)?))
        } else {
            let (owners, rows) = Owners::of(plan, std::iter::once(index).chain(others.iter().copied()))?;
            (Some(owners), FileRows::Only(rows))
        };
        let pages = predicate.is_some() || wanted.may_miss_pages(num_records);
        let (bytes, metadata) = open_footer(plan, index, store, &path, pages)?;
        let rows = metadata.metadata().file_metadata().num_rows() as u64;
        if let Some(counted) = num_records.filter(|counted| *counted != rows && descriptor.is_some()) {
            return Err(Error::protocol(
                "a file with a deletion vector does not have the number of rows in its statistics",
            )
            .found(rows)
            .expected(counted));
        }
        if let Some(row) = wanted.max().filter(|row| *row >= rows) {
            return Err(Error::protocol("a deletion vector or selection names a row beyond the file's end")
                .found(row)
                .expected(format!("below {rows}")));
        }
        let finder = Finder::new(plan.schema.mapping(), metadata.schema());
        let (predicate_fields, groups) = (Vec::new(), Vec::new());
        let mut file = Self {
            index,
            path,
            bytes,
            metadata,
            finder,
            predicate,
            predicate_fields,
            wanted,
            groups,
            constants,
            owners,
        };
        if let Some(predicate) = &file.predicate {
            let branches: Vec<Vec<String>> =
                predicate.columns().iter().map(|column| column.path.clone()).collect();
            file.predicate_fields = plan.schema.select_at(&branches)?;
        }
        file.groups = file.plan_groups(plan)?;
        Ok(file)
    }

    fn nothing(plan: &Plan, index: usize, store: Arc<dyn Store>, path: String) -> Result<Self> {
        let bytes = FileBytes::new(store, path.clone(), 0, Arc::clone(&plan.metrics.bytes_read));
        let metadata = source::empty_metadata()?;
        let finder = Finder::new(plan.schema.mapping(), metadata.schema());
        let (predicate_fields, groups, constants) = (Vec::new(), Vec::new(), HashMap::new());
        let (predicate, wanted, owners) = (None, FileRows::All, None);
        Ok(Self {
            index,
            path,
            bytes,
            metadata,
            finder,
            predicate,
            predicate_fields,
            wanted,
            groups,
            constants,
            owners,
        })
    }

    fn plan_groups(&self, plan: &Plan) -> Result<Vec<Group>> {
        let metadata = self.metadata.metadata();
        let pruner = Pruner { schema: &plan.schema, finder: self.finder, metadata: &self.metadata };
        let predicate = self.predicate.as_ref().filter(|_| plan.request.pruning);
        let may = predicate.map(|predicate| pruner.row_groups(predicate)).transpose()?;
        plan.metrics.files.fetch_add(1, Ordering::Relaxed);
        plan.metrics.row_groups.fetch_add(metadata.num_row_groups() as u64, Ordering::Relaxed);
        let (mut groups, mut first) = (Vec::new(), 0_u64);
        for (index, group) in metadata.row_groups().iter().enumerate() {
            let total = group.num_rows() as usize;
            let start = first;
            first += total as u64;
            if may.as_ref().is_some_and(|may| !may[index]) || self.wanted.count_within(start, total) == 0 {
                continue;
            }
            let pages = predicate.map(|predicate| pruner.pages(predicate, index)).transpose()?.flatten();
            let group = Group { index, first: start, total, pages };
            // If both pages and rows are skipped, only both together show if a row remains.
            if group.pages.is_none() || self.rows(&group).count() > 0 {
                groups.push(group);
            }
        }
        Ok(groups)
    }

    /// Returns the rows of a group to read, as far as known before decoding. The decoding thread calls it.
    pub fn rows(&self, group: &Group) -> Rows {
        let rows = Rows::of_file(&self.wanted, group.first, group.total);
        match &group.pages {
            Some(pages) => rows.within(pages),
            None => rows,
        }
    }

    /// Returns the leaves of the file that these columns need.
    pub fn mask(&self, fields: &[Field]) -> (ProjectionMask, Vec<usize>) {
        let found = self.metadata.schema().fields();
        let mut wanted = vec![false; self.metadata.parquet_schema().num_columns()];
        for field in fields {
            if let Some(index) = self.finder.find(field, found) {
                let first = found[..index].iter().map(|other| leaves(other.data_type())).sum();
                self.finder.mark(&field.data_type, found[index].data_type(), first, &mut wanted);
            }
        }
        let chosen: Vec<usize> =
            wanted.iter().enumerate().filter(|(_, wanted)| **wanted).map(|(leaf, _)| leaf).collect();
        (ProjectionMask::leaves(self.metadata.parquet_schema(), chosen.iter().copied()), chosen)
    }

    /// Returns the byte ranges with these rows of these leaves: whole column chunks, or single pages.
    pub fn ranges(&self, group: &Group, rows: &Rows, leaves: &[usize]) -> Vec<Range<u64>> {
        let metadata = self.metadata.metadata();
        let columns = metadata.row_group(group.index);
        let selection = rows.selection();
        let pages = metadata.offset_index().and_then(|index| index.get(group.index));
        let mut ranges = Vec::new();
        for &leaf in leaves {
            let (start, length) = columns.column(leaf).byte_range();
            let locations = pages.and_then(|pages| pages.get(leaf)).map(|pages| pages.page_locations());
            match (&selection, locations) {
                (Some(selection), Some(locations)) if !locations.is_empty() => {
                    let first = locations[0].offset as u64;
                    if first > start {
                        ranges.push(start..first); // the dictionary
                    }
                    ranges.extend(selection.scan_ranges(locations));
                }
                _ => ranges.push(start..start + length),
            }
        }
        ranges
    }
}

/// Reads the footer of file `index` of the plan, and makes a finder for its columns.
pub fn footer(plan: &Plan, index: usize) -> Result<(ArrowReaderMetadata, Finder)> {
    let (store, path) = resolve(&plan.store, plan.files.path(index)?)?;
    let (_, metadata) = open_footer(plan, index, store, &path, false)?;
    let finder = Finder::new(plan.schema.mapping(), metadata.schema());
    Ok((metadata, finder))
}

/// Reads the footer, and the size of the file: from the log, unless there is no footer at the position that
/// follows from it.
fn open_footer(
    plan: &Plan,
    index: usize,
    store: Arc<dyn Store>,
    path: &str,
    pages: bool,
) -> Result<(FileBytes, ArrowReaderMetadata)> {
    let actual = |store: &Arc<dyn Store>| -> Result<u64> {
        Ok(store.head(path)?.ok_or_else(|| Error::lost(path, "a data file"))?.size)
    };
    let counter = || Arc::clone(&plan.metrics.bytes_read);
    let read = |size: u64| -> Result<(FileBytes, ArrowReaderMetadata)> {
        let bytes = FileBytes::new(Arc::clone(&store), path.to_owned(), size, counter());
        let metadata = source::read_footer(&bytes, pages)?;
        Ok((bytes, source::arrow_metadata(Arc::new(metadata))?))
    };
    let Some(size) = plan.files.size(index)?.filter(|size| *size > 0) else { return read(actual(&store)?) };
    match read(size) {
        Ok(found) => Ok(found),
        Err(error) if error.kind() == Kind::NotFound => Err(error),
        Err(error) => match actual(&store)? {
            found if found != size => read(found),
            _ => Err(error),
        },
    }
}

fn constants_of(plan: &Plan, index: usize) -> Result<HashMap<usize, ArrayRef>> {
    let mut constants = HashMap::new();
    for (position, output) in plan.outputs.iter().enumerate() {
        let value: ArrayRef = match output {
            Output::Partition(field) => {
                let value = partition_scalar(plan, index, field)?;
                plan.request
                    .encoded
                    .get(&field.name)
                    .map_or_else(|| Ok(Arc::clone(&value)), |texts| encode(&value, *texts))?
            }
            Output::Constant(column) => column.slice(index, 1),
            Output::File => Arc::new(Int32Array::from(vec![plan.files.ordinal(index)])),
            Output::RowId(_) => plan.files.row_tracking("baseRowId", index)?,
            Output::RowVersion(_) => plan.files.row_tracking("defaultRowCommitVersion", index)?,
            Output::Data(_) | Output::Row => continue,
        };
        constants.insert(position, value);
    }
    Ok(constants)
}

fn partition_scalar(plan: &Plan, index: usize, field: &Field) -> Result<ArrayRef> {
    let text = plan.files.partition_value(index, plan.schema.physical_name(field))?;
    let value = partition_values::parse_scalar(text.as_deref(), &field.data_type.to_arrow(false));
    let path = plan.files.path(index)?;
    value.map_err(|error| error.within(format_args!("{path}, partition column {}", field.name)))
}

/// Returns the predicate with the values of partition columns put in.
fn on_partition(plan: &Plan, index: usize, predicate: &Predicate) -> Result<Predicate> {
    let columns: Vec<_> = predicate.columns().into_iter().filter(|column| column.partition).collect();
    if columns.is_empty() {
        return Ok(predicate.clone());
    }
    let mut values = Vec::with_capacity(columns.len());
    for column in columns {
        let (_, field) = plan.schema.column(&column.path[0])?;
        values.push((field.name.clone(), partition_scalar(plan, index, field)?, true));
    }
    fold(predicate, &RecordBatch::try_from_iter_with_nullable(values)?)
}

/// Replaces comparisons of partition columns by constants, and simplifies the predicate.
fn fold(predicate: &Predicate, values: &RecordBatch) -> Result<Predicate> {
    let args = |args: &[Predicate]| args.iter().map(|arg| fold(arg, values)).collect::<Result<Vec<_>>>();
    let is = |predicate: &Predicate, wanted: bool| match predicate {
        Predicate::Constant(Some(value)) => *value == wanted,
        _ => false,
    };
    Ok(match predicate {
        Predicate::And(all) | Predicate::Or(all) => {
            let conjunction = matches!(predicate, Predicate::And(_));
            let mut kept = args(all)?;
            if kept.iter().any(|arg| is(arg, !conjunction)) {
                return Ok(Predicate::Constant(Some(!conjunction)));
            }
            kept.retain(|arg| !is(arg, conjunction));
            match kept.len() {
                0 => Predicate::Constant(Some(conjunction)),
                1 => kept.remove(0),
                _ if conjunction => Predicate::And(kept),
                _ => Predicate::Or(kept),
            }
        }
        Predicate::Not(arg) => match fold(arg, values)? {
            Predicate::Constant(value) => Predicate::Constant(value.map(|value| !value)),
            other => Predicate::Not(Box::new(other)),
        },
        Predicate::Constant(_) => predicate.clone(),
        leaf if leaf.is_partition_only() => {
            Predicate::Constant(evaluate(leaf, values)?.iter().next().flatten())
        }
        leaf => leaf.clone(),
    })
}
