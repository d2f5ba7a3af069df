//! Statistics of existing files: from their footers, or tight ones from their live rows.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field as ArrowField, Schema};
use parquet::arrow::arrow_reader::ArrowReaderMetadata;

use super::files::Files;
use super::open::{OpenFile, Plan, Request};
use super::options::WriteOptions;
use super::physical::data_columns;
use super::projection::Finder;
use super::prune::Pruner;
use super::queue::QueueItem;
use super::reader::Reader;
use super::statistics::{GatheredStatistics, Leaf, NamedStatistics, StatisticsShape, to_json};
use super::writer::{form, indexed};
use crate::error::{Error, Kind, Result};
use crate::interrupt::Interrupt;
use crate::parallel::{on_at_most, processors};
use crate::predicate::Column;
use crate::schema::{Field, TableSchema, Type};
use crate::store::{Store, resolve};

/// Where the statistics of a file are taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatisticsSource {
    /// From the footers of any writer.
    Footers,
    /// From the footers of parquet-mr, whose bounds of floats treat NaN as the greatest value.
    JavasFooters,
    /// From the rows that are not deleted: tight bounds.
    LiveRows,
}

/// Returns the `add` rows with `stats` (and `size`, if it is missing).
pub fn measure(
    store: &Arc<dyn Store>,
    schema: &Arc<TableSchema>,
    batch: RecordBatch,
    options: &WriteOptions,
    how: StatisticsSource,
    interrupt: &Interrupt,
) -> Result<RecordBatch> {
    let measurer =
        Measurer { store, files: Files::new(batch)?, footers: FooterStatistics::new(schema, options)? };
    let measured = measurer.all(how, interrupt)?;
    with_columns(&measurer.files.batch, measured)
}

/// Finds the files that still hold dropped columns, or dropped fields of structs, from their footers.
pub fn has_dropped_columns(
    store: &Arc<dyn Store>,
    schema: &Arc<TableSchema>,
    batch: RecordBatch,
    interrupt: &Interrupt,
) -> Result<BooleanArray> {
    let files = Files::new(batch)?;
    let dropped = each_file(files.len(), None, interrupt, &|index| {
        let request = Request::unpruned(Vec::new());
        let plan = Plan::new(
            Arc::clone(store),
            Arc::clone(schema),
            Files::new(files.batch.slice(index, 1))?,
            request,
        )?;
        let file = OpenFile::open(&plan, 0)?;
        Ok(file.mask(schema.fields()).1.len() < file.metadata.parquet_schema().num_columns())
    })?;
    Ok(BooleanArray::from(dropped))
}

/// Calls `work` with the number of each file, on `threads` threads (`None`: one for each processor), and
/// returns the results.
pub(super) fn each_file<T: Send>(
    count: usize,
    threads: Option<usize>,
    interrupt: &Interrupt,
    work: &(dyn Fn(usize) -> Result<T> + Sync),
) -> Result<Vec<T>> {
    let threads = threads.unwrap_or_else(processors).clamp(1, 64);
    on_at_most(threads, &(0..count).collect::<Vec<_>>(), interrupt, &|index| work(*index))
}

/// A file's size in bytes, and its statistics as JSON.
type Measured = (i64, String);

/// Statistics of files from their footers.
pub(super) struct FooterStatistics<'a> {
    schema: &'a Arc<TableSchema>,
    fields: Vec<&'a Field>,
    wanted: Vec<StatisticsShape>,
    options: &'a WriteOptions,
}

impl<'a> FooterStatistics<'a> {
    /// Prepares statistics of the data files of a table with this schema.
    pub fn new(schema: &'a Arc<TableSchema>, options: &'a WriteOptions) -> Result<Self> {
        let columns = data_columns(schema, false)?;
        let fields: Vec<&Field> = columns.iter().map(|&index| &schema.fields()[index]).collect();
        let wanted = StatisticsShape::of(schema, &fields, &indexed(options))?;
        Ok(Self { schema, fields, wanted, options })
    }

    /// Returns the statistics as JSON. A column that does not fit is an error of [`Kind::SchemaMismatch`].
    /// `vector`: rows are deleted, so bounds may be wide.
    pub fn of(
        &self,
        metadata: &ArrowReaderMetadata,
        path: &str,
        vector: bool,
        how: StatisticsSource,
    ) -> Result<String> {
        let finder = Finder::new(self.schema.mapping(), metadata.schema());
        let found = metadata.schema().fields();
        for field in &self.fields {
            if let Some(at) = finder.find(field, found) {
                let target = field.data_type.to_arrow(false);
                finder.adapt(&field.data_type, &target, found[at].data_type(), &field.name).map_err(
                    |error| {
                        let (found, expected) = error.found_expected();
                        let wrong = Error::new(Kind::SchemaMismatch, error.message().to_owned()).at(path);
                        wrong.found(found.unwrap_or_default()).expected(expected.unwrap_or_default())
                    },
                )?;
            }
        }
        let pruner = Pruner { schema: self.schema, finder, metadata };
        let rows = metadata.metadata().file_metadata().num_rows();
        let rows = u64::try_from(rows)
            .map_err(|_| Error::protocol("a file has a negative number of rows").at(path).found(rows))?;
        let gathered = self.fields.iter().zip(&self.wanted);
        let gathered = gathered
            .map(|(field, wanted)| {
                bounds_of(&pruner, wanted, &field.data_type, &mut vec![field.name.clone()], how)
            })
            .collect::<Result<Vec<_>>>()
            .map_err(|error| error.at(path))?;
        let mut form = form(self.options);
        if vector {
            form.tight = Some(false);
        }
        Ok(to_json(rows, &self.named(&gathered), self.schema, form))
    }

    fn named<'b>(&'b self, gathered: &'b [GatheredStatistics]) -> Vec<NamedStatistics<'b>> {
        let named = |(field, gathered): (&&'b Field, &'b GatheredStatistics)| NamedStatistics {
            name: self.schema.physical_name(field),
            data_type: &field.data_type,
            gathered,
        };
        self.fields.iter().zip(gathered).map(named).collect()
    }
}

struct Measurer<'a> {
    store: &'a Arc<dyn Store>,
    files: Files,
    footers: FooterStatistics<'a>,
}

impl Measurer<'_> {
    fn all(&self, how: StatisticsSource, interrupt: &Interrupt) -> Result<Vec<Measured>> {
        if how == StatisticsSource::LiveRows {
            // The reader's threads already share the row groups of each file.
            return (0..self.files.len()).map(|index| self.live_rows(index, interrupt)).collect();
        }
        each_file(self.files.len(), self.footers.options.threads, interrupt, &|index| self.footer(index, how))
    }

    fn plan(&self, index: usize) -> Result<Plan> {
        let columns = self.footers.fields.iter().map(|field| field.name.clone()).collect();
        let files = Files::new(self.files.batch.slice(index, 1))?;
        Plan::new(Arc::clone(self.store), Arc::clone(self.footers.schema), files, Request::unpruned(columns))
    }

    fn size(&self, index: usize) -> Result<i64> {
        let size = match self.files.size(index)?.filter(|size| *size > 0) {
            Some(size) => size,
            None => {
                let (store, path) = resolve(self.store, self.files.path(index)?)?;
                let found = store
                    .head(&path)?
                    .ok_or_else(|| Error::new(Kind::NotFound, "there is no such data file").at(path))?;
                found.size
            }
        };
        i64::try_from(size).map_err(|_| Error::protocol("a file is too large").found(size))
    }

    /// Returns size and statistics of a file from its footer. Bounds may be wide if rows are deleted.
    fn footer(&self, index: usize, how: StatisticsSource) -> Result<Measured> {
        let plan = self.plan(index)?;
        let file = OpenFile::open(&plan, 0)?;
        let statistics = self.footers.of(&file.metadata, &file.path, plan.files.vector(0)?.is_some(), how)?;
        Ok((self.size(index)?, statistics))
    }

    fn live_rows(&self, index: usize, interrupt: &Interrupt) -> Result<Measured> {
        let plan = self.plan(index)?;
        let rows = OpenFile::open(&plan, 0)?.metadata.metadata().file_metadata().num_rows();
        let rows = u64::try_from(rows)
            .map_err(|_| Error::protocol("a file has a negative number of rows").found(rows))?;
        let FooterStatistics { schema, wanted, options, .. } = &self.footers;
        let mut gathered: Vec<GatheredStatistics> = wanted.iter().map(GatheredStatistics::new).collect();
        let mut reader = Reader::new(plan, options.threads, None);
        loop {
            interrupt.check()?;
            match reader.next(Duration::from_millis(100))? {
                QueueItem::Batch(batch) => gathered
                    .iter_mut()
                    .zip(batch.columns())
                    .for_each(|(gathered, column)| gathered.add(column, None)),
                QueueItem::Waiting => {}
                QueueItem::End => break,
            }
        }
        Ok((self.size(index)?, to_json(rows, &self.footers.named(&gathered), schema, form(options))))
    }
}

/// Returns the bounds of a column from the statistics of all row groups, or none if a row group has none.
fn bounds_of(
    pruner: &Pruner<'_>,
    wanted: &StatisticsShape,
    data_type: &Type,
    path: &mut Vec<String>,
    how: StatisticsSource,
) -> Result<GatheredStatistics> {
    match (wanted, data_type) {
        (StatisticsShape::Struct(inner), Type::Struct(fields)) => {
            let child = |(wanted, field): (&StatisticsShape, &Field)| {
                path.push(field.name.clone());
                let found = bounds_of(pruner, wanted, &field.data_type, path, how);
                path.pop();
                found
            };
            Ok(GatheredStatistics::Struct(inner.iter().zip(fields).map(child).collect::<Result<_>>()?))
        }
        (StatisticsShape::Leaf(primitive), _) => {
            let column = Column::resolve(pruner.schema, path)?;
            let rows: i64 = pruner.metadata.metadata().file_metadata().num_rows();
            if pruner.is_absent(&column) {
                return Ok(GatheredStatistics::Leaf(Leaf::all_null(*primitive, rows.unsigned_abs())));
            }
            let Some(bounds) = pruner.bounds(&column)? else { return Ok(GatheredStatistics::Nothing) };
            let Some(nulls) = bounds.null_count.iter().collect::<Option<Vec<i64>>>() else {
                return Ok(GatheredStatistics::Nothing);
            };
            let silent = |index: usize| {
                nulls[index] < bounds.row_count.value(index)
                    && (bounds.min.is_null(index) || bounds.max.is_null(index))
            };
            let known = !(0..nulls.len()).any(silent);
            let mut leaf = Leaf::all_null(*primitive, nulls.iter().sum::<i64>().unsigned_abs());
            if known {
                leaf.widen_by(&bounds.min, &bounds.max, how == StatisticsSource::JavasFooters);
            }
            Ok(GatheredStatistics::Leaf(leaf))
        }
        _ => Ok(GatheredStatistics::Nothing),
    }
}

fn with_columns(batch: &RecordBatch, measured: Vec<Measured>) -> Result<RecordBatch> {
    let (sizes, stats): (Vec<i64>, Vec<String>) = measured.into_iter().unzip();
    let mut fields: Vec<Arc<ArrowField>> = batch.schema().fields().to_vec();
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    let mut put = |name: &str, data_type: DataType, array: ArrayRef| {
        let field = Arc::new(ArrowField::new(name, data_type, true));
        match fields.iter().position(|other| other.name() == name) {
            Some(at) => (fields[at], columns[at]) = (field, array),
            None => {
                fields.push(field);
                columns.push(array);
            }
        }
    };
    put("size", DataType::Int64, Arc::new(Int64Array::from(sizes)));
    put("stats", DataType::Utf8, Arc::new(StringArray::from(stats)));
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}
