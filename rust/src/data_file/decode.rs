//! Decodes one row group to batches of logical columns. The predicate's columns are decoded first, all others
//! only for the rows that match.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder, Int64Array, RecordBatch,
    RecordBatchOptions, new_null_array,
};
use arrow::compute::take;
use arrow::datatypes::{DataType, Int64Type};

use super::budget::Allowance;
use super::chunk::{Chunk, ChunkQueue};
use super::encoded::{self, Texts, encode};
use super::open::{Group, OpenFile, Output, Plan};
use super::projection::Adaptation;
use super::row_selection::{Positions, Rows};
use super::source::FileBytes;
use crate::error::{Error, Result};
use crate::pages::{self, Batches, PageRequest};
use crate::predicate::Predicate;
use crate::predicate::rows::matching;
use crate::schema::Field;

/// Maximum number of bytes of a window of a column chunk; larger reads are no faster.
const LARGEST_WINDOW: u64 = 8 << 20;
/// Minimum number of bytes of a window, also with less memory: a page and its header are read at once.
const SMALLEST_WINDOW: u64 = 64 << 10;

/// Number of columns to read at a time when only the first few rows are needed, so that memory is used again
/// for the next columns.
const COLUMNS_AT_A_TIME: usize = 32;

/// Receives batches. Returns false if no more are needed.
pub type Sink<'a> = dyn FnMut(RecordBatch) -> Result<bool> + 'a;

/// Decodes one row group, and passes its batches to `sink` until that needs no more.
pub fn decode(
    plan: &Plan,
    file: &OpenFile,
    group: &Group,
    allowance: Allowance,
    sink: &mut Sink<'_>,
) -> Result<()> {
    plan.metrics.row_groups_read.fetch_add(1, Ordering::Relaxed);
    let job = Job { plan, file, group, allowance, wanted: file.rows(group) };
    match &file.predicate {
        None => job.all(sink),
        Some(predicate) => job.filtered(predicate, sink),
    }
}

struct Job<'a> {
    plan: &'a Plan,
    file: &'a OpenFile,
    group: &'a Group,
    allowance: Allowance,
    wanted: Rows,
}

impl<'a> Job<'a> {
    fn all(&self, sink: &mut Sink<'_>) -> Result<()> {
        if let Some(chunk) = self.first_rows()? {
            return self.emit(chunk, sink).map(drop);
        }
        for chunk in self.scan(&self.plan.data, &self.wanted, self.positions(), true)? {
            if !self.emit(chunk?, sink)? {
                break;
            }
        }
        Ok(())
    }

    /// Reads the first few rows of a local file with many columns, if no more are needed. `None`: the row
    /// group must be read in the usual way.
    fn first_rows(&self) -> Result<Option<Chunk>> {
        let (data, request) = (&self.plan.data, &self.plan.request);
        let Some(limit) = request.limit.filter(|limit| *limit <= request.batch_size) else { return Ok(None) };
        if data.len() <= COLUMNS_AT_A_TIME || self.plan.store.is_remote() {
            return Ok(None);
        }
        let mut first = BooleanBufferBuilder::new(self.wanted.count());
        first.append_n(limit.min(self.wanted.count()), true);
        first.append_n(self.wanted.count() - first.len(), false);
        let rows = self.wanted.refine(&first.finish());
        let (mut columns, mut positions) = (Vec::with_capacity(data.len()), None);
        for (number, fields) in data.chunks(COLUMNS_AT_A_TIME).enumerate() {
            let parts = self
                .scan(fields, &rows, number == 0 && self.positions(), true)?
                .collect::<Result<Vec<_>>>()?;
            let chunk = Chunk::join(&parts, rows.count())?;
            columns.extend(chunk.columns);
            positions = positions.or(chunk.positions);
        }
        Ok(Some(Chunk { columns, rows: rows.count(), positions }))
    }

    fn filtered(&self, predicate: &Predicate, sink: &mut Sink<'_>) -> Result<()> {
        let asked = &self.file.predicate_fields;
        let place = |field: &Field| asked.iter().position(|other| other == field);
        let rest: Vec<Field> =
            self.plan.data.iter().filter(|field| place(field).is_none()).cloned().collect();
        let mut survivors = BooleanBufferBuilder::new(self.wanted.count());
        let mut kept = ChunkQueue::default();
        for chunk in self.scan(asked, &self.wanted, self.positions(), true)? {
            let chunk = chunk?;
            let batch = chunk.named(asked)?;
            let mask = BooleanArray::new(matching(predicate, &batch)?, None);
            survivors.append_buffer(mask.values());
            let columns =
                self.plan.data.iter().filter_map(place).map(|at| Arc::clone(&chunk.columns[at])).collect();
            let found = Chunk { columns, ..chunk }.keep(&mask)?;
            if !rest.is_empty() {
                kept.push(found);
            } else if found.rows > 0 && !self.emit(found, sink)? {
                return Ok(());
            }
        }
        if rest.is_empty() || kept.is_empty() {
            return Ok(());
        }
        let rows = self.wanted.refine(&survivors.finish());
        for chunk in self.scan(&rest, &rows, false, false)? {
            let chunk = chunk?;
            let early = kept.take(chunk.rows)?;
            let (mut first, mut second) = (early.columns.into_iter(), chunk.columns.into_iter());
            let columns = self
                .plan
                .data
                .iter()
                .filter_map(|field| if place(field).is_some() { first.next() } else { second.next() })
                .collect();
            if !self.emit(Chunk { columns, rows: chunk.rows, positions: early.positions }, sink)? {
                break;
            }
        }
        Ok(())
    }

    /// True if the positions of rows in the file are needed.
    fn positions(&self) -> bool {
        self.plan.request.positions() || self.file.owners.is_some()
    }

    /// Adds the columns that are not in data files, and passes the batch on.
    fn emit(&self, chunk: Chunk, sink: &mut Sink<'_>) -> Result<bool> {
        let (chunk, entries) = match (&self.file.owners, &chunk.positions) {
            (Some(owners), Some(positions)) => {
                let (places, entries) = owners.of_rows(positions.values());
                (
                    if places.len() == chunk.rows { chunk } else { chunk.take(&places)? },
                    Some((owners, entries)),
                )
            }
            _ => (chunk, None),
        };
        let constant = |position: usize| match &entries {
            Some((owners, entries)) => Ok(take(&owners.constants[&position], entries, None)?),
            None => self.file.constants[&position].rows(chunk.rows),
        };
        let column = |(position, output): (usize, &Output)| -> Result<ArrayRef> {
            match output {
                Output::Data(index) => Ok(Arc::clone(&chunk.columns[*index])),
                Output::Row => match &chunk.positions {
                    Some(positions) => Ok(Arc::new(positions.clone())),
                    None => Err(Error::protocol("row indexes were not followed")),
                },
                Output::RowId(index) => {
                    let positions = chunk
                        .positions
                        .as_ref()
                        .ok_or_else(|| Error::protocol("row indexes were not followed"))?;
                    let first: i64 =
                        self.file.constants[&position].value().as_primitive::<Int64Type>().value(0);
                    Ok(completed(
                        &chunk.columns[*index],
                        positions.values().iter().map(|row| first.saturating_add(*row)),
                    ))
                }
                Output::RowVersion(index) => {
                    let version: i64 =
                        self.file.constants[&position].value().as_primitive::<Int64Type>().value(0);
                    Ok(completed(&chunk.columns[*index], std::iter::repeat_n(version, chunk.rows)))
                }
                _ => constant(position),
            }
        };
        let columns = self.plan.outputs.iter().enumerate().map(column).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(chunk.rows));
        sink(RecordBatch::try_new_with_options(Arc::clone(&self.plan.output), columns, &options)?)
    }

    /// Makes an iterator that decodes `rows` of these columns, chunk by chunk. `positions`: chunks have the
    /// positions of their rows; `now`: the bytes are fetched at once, and not when they are first read.
    fn scan(&self, fields: &'a [Field], rows: &'a Rows, positions: bool, now: bool) -> Result<Scan<'a>> {
        let (mask, leaves) = self.file.mask(fields);
        let mut scan = Scan {
            path: &self.file.path,
            fields,
            adapts: Vec::new(),
            reader: None,
            bytes: self.file.bytes.again(),
            rows,
            positions: positions.then(|| Positions::new(rows)),
            first: self.group.first,
            batch: self.batch_rows(&leaves),
            decoded: 0,
            emitted: 0,
            encoded: &self.plan.request.encoded,
        };
        if leaves.is_empty() {
            scan.adapts.resize_with(fields.len(), || None);
            return Ok(scan);
        }
        let bytes = scan.bytes.clone();
        self.fetch(&bytes, rows, &leaves, now)?;
        let wanted = PageRequest { group: self.group.index, mask, batch: scan.batch, rows: rows.selection() };
        let wished =
            fields.iter().filter_map(|field| Some((field, *self.plan.request.encoded.get(&field.name)?)));
        let encoded = encoded::reading(&self.file.metadata, self.group.index, self.file.finder, wished)?;
        let reader = pages::record_batches(bytes, encoded.as_ref().unwrap_or(&self.file.metadata), wanted);
        let reader = reader.map_err(|error| scan.bytes.failure().unwrap_or_else(|| error.into()))?;
        let found = reader.schema();
        for field in fields {
            scan.adapts.push(match self.file.finder.find(field, found.fields()) {
                None => None,
                Some(index) => {
                    let (target, found) = (field.data_type.to_arrow(false), found.field(index).data_type());
                    let adapt = match &encoded {
                        Some(_)
                            if scan
                                .encoded
                                .get(&field.name)
                                .is_some_and(|texts| encoded::encoded(&target, *texts) == *found) =>
                        {
                            Adaptation::Same
                        }
                        _ => self.file.finder.adapt(&field.data_type, &target, found, &field.name)?,
                    };
                    Some((index, adapt))
                }
            });
        }
        scan.reader = Some(reader);
        Ok(scan)
    }

    /// Fetches the bytes of the pages that have `rows`: at once if `now`, else when one of them is first
    /// read. If the pages are larger than the allowance, they are fetched window by window.
    fn fetch(&self, bytes: &FileBytes, rows: &Rows, leaves: &[usize], now: bool) -> Result<()> {
        let ranges = self.file.ranges(self.group, rows, leaves);
        if ranges.iter().map(|range| range.end - range.start).sum::<u64>() > self.allowance.fetched {
            let group = self.file.metadata.metadata().row_group(self.group.index);
            let chunks = leaves
                .iter()
                .map(|leaf| group.column(*leaf).byte_range())
                .map(|(start, length)| start..start + length);
            let window =
                (self.allowance.fetched / leaves.len() as u64).clamp(SMALLEST_WINDOW, LARGEST_WINDOW);
            bytes.fetch_by_windows(chunks.collect(), ranges, window);
        } else if now {
            bytes.fetch(ranges)?
        } else {
            bytes.fetch_when_touched(ranges)
        }
        Ok(())
    }

    /// Returns the number of rows of a batch: as requested, or fewer if rows are wide.
    fn batch_rows(&self, leaves: &[usize]) -> usize {
        let group = self.file.metadata.metadata().row_group(self.group.index);
        let bytes = |leaf: &usize| {
            let column = group.column(*leaf);
            let stored = u64::try_from(column.uncompressed_size()).unwrap_or(0);
            column
                .unencoded_byte_array_data_bytes()
                .and_then(|plain| u64::try_from(plain).ok())
                .unwrap_or(0)
                .max(stored)
        };
        let width = leaves.iter().map(bytes).sum::<u64>() / (group.num_rows() as u64).max(1);
        let fitting = self.allowance.batch / width.max(1);
        self.plan.request.batch_size.min(usize::try_from(fitting).unwrap_or(usize::MAX)).max(1)
    }
}

/// Returns the values of a hidden column, with `others` in place of nulls.
fn completed(column: &ArrayRef, others: impl Iterator<Item = i64>) -> ArrayRef {
    if column.null_count() == 0 {
        return Arc::clone(column);
    }
    let kept = column.as_primitive::<Int64Type>();
    Arc::new(Int64Array::from_iter_values(kept.iter().zip(others).map(|(kept, other)| kept.unwrap_or(other))))
}

/// An iterator over the decoded chunks of a row group.
struct Scan<'a> {
    path: &'a str,
    fields: &'a [Field],
    adapts: Vec<Option<(usize, Adaptation)>>,
    reader: Option<Batches>,
    bytes: FileBytes,
    rows: &'a Rows,
    positions: Option<Positions<'a>>,
    first: u64,
    batch: usize,
    decoded: usize,
    emitted: usize,
    encoded: &'a HashMap<String, Texts>,
}

impl Scan<'_> {
    fn read(&mut self) -> Result<Option<Chunk>> {
        loop {
            let Some(reader) = &mut self.reader else { return self.without_columns() };
            let Some(batch) = reader.next() else {
                return if self.decoded == self.rows.read_count() { Ok(None) } else { Err(self.cut_off()) };
            };
            let batch = batch.map_err(|error| self.bytes.failure().unwrap_or_else(|| error.into()))?;
            let first = self.decoded;
            self.decoded += batch.num_rows();
            if self.decoded > self.rows.read_count() {
                return Err(self.cut_off());
            }
            let keep = self.rows.keep(first, batch.num_rows());
            let mut chunk = Chunk { columns: self.logical(&batch)?, rows: batch.num_rows(), positions: None };
            match keep {
                Some(mask) if mask.true_count() == 0 => continue,
                Some(mask) if mask.true_count() < mask.len() => chunk = chunk.keep(&mask)?,
                _ => {}
            }
            chunk.positions = self.positions.as_mut().map(|positions| positions.take(self.first, chunk.rows));
            return Ok(Some(chunk));
        }
    }

    /// Returns the next chunk if no requested column is in the file: nulls, in the number of its rows.
    fn without_columns(&mut self) -> Result<Option<Chunk>> {
        let rows = (self.rows.count() - self.emitted).min(self.batch);
        if rows == 0 {
            return Ok(None);
        }
        self.emitted += rows;
        let nulls = |field: &Field| {
            let target = field.data_type.to_arrow(false);
            let encoded = self.encoded.get(&field.name).map(|texts| encoded::encoded(&target, *texts));
            new_null_array(&encoded.unwrap_or(target), rows)
        };
        let columns = self.fields.iter().map(nulls).collect();
        let positions = self.positions.as_mut().map(|positions| positions.take(self.first, rows));
        Ok(Some(Chunk { columns, rows, positions }))
    }

    fn logical(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let column = |(field, adapt): (&Field, &Option<(usize, Adaptation)>)| {
            let target: DataType = field.data_type.to_arrow(false);
            let column = match adapt {
                None => new_null_array(&target, batch.num_rows()),
                Some((index, adapt)) => adapt.apply(batch.column(*index), &target)?,
            };
            self.encoded
                .get(&field.name)
                .map_or_else(|| Ok(Arc::clone(&column)), |texts| encode(&column, *texts))
        };
        self.fields.iter().zip(&self.adapts).map(column).collect()
    }

    fn cut_off(&self) -> Error {
        Error::protocol("a row group does not have the number of rows in its footer")
            .at(self.path)
            .found(self.decoded)
            .expected(self.rows.read_count())
    }
}

impl Iterator for Scan<'_> {
    type Item = Result<Chunk>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}
