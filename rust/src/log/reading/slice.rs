//! Actions on files that stay in their checkpoint until their columns are needed.
//!
//! The size of each add is read once; so is the key, when an action is looked up by key. All other columns
//! are decoded again each time, only for the rows that are needed.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch, StructArray};
use arrow::buffer::{BooleanBuffer, MutableBuffer};
use arrow::compute::filter_record_batch;
use arrow::util::bit_iterator::BitSliceIterator;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::RowSelection;

use super::checkpoint_file::CheckpointFile;
use super::checkpoint_rows::{Rows, actions_of};
use super::keys::{self, Key};
use super::line::FileKind;
use super::segment::{Columns, SegmentSource, Source};
use super::volume::{self, DecodedVolume};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::log::schema::{KEYED, long, text, vectors};
use crate::pages::{self, PageRequest};

/// Number of rows of a row group in a slice, which a thread decodes at once.
pub const ROWS: usize = 64 * 1024;
/// Rows are selected while decoding if less than 1/FEW of them is needed; otherwise all rows are decoded and
/// then filtered.
const FEW: usize = 4;

/// Some rows of a row group: its adds or its removes.
#[derive(Debug, Clone)]
pub struct Slice {
    file: Arc<CheckpointFile>,
    group: usize,
    range: Range<usize>,
    kind: FileKind,
    /// The rows of the slice that are actions of its kind; `None`: all.
    present: Option<BooleanBuffer>,
}

impl Slice {
    /// Opens the rows of a row group that are actions of a kind, and reads what reconciliation needs of them.
    /// `None` if there are none.
    pub fn open(
        file: &Arc<CheckpointFile>,
        (group, range): (usize, Range<usize>),
        kind: FileKind,
        interrupt: &Interrupt,
    ) -> Result<Option<SegmentSource>> {
        let name = kind.name();
        if !file.may_have(group, &[name, "path"]) {
            return Ok(None);
        }
        let mut slice = Self { file: Arc::clone(file), group, range, kind, present: None };
        // Any required leaf shows if a row has the action; the narrowest is read.
        let (leaf, wanted) = match kind {
            FileKind::Add => ("size", Columns::Of(&["size"])),
            FileKind::Remove => ("deletionTimestamp", Columns::Of(&["deletionTimestamp"])),
        };
        let (whole, schema) = (
            file.leaf(&[name, "path"]).is_some() && file.leaf(&[name, leaf]).is_some(),
            wanted.schema(kind)?,
        );
        let mask = file.mask_of(&|path| {
            path.first().is_some_and(|action| action == name)
                && (!whole || path.get(1).is_some_and(|name| name == leaf))
        });
        let (mut sizes, mut present) = (Vec::new(), MutableBuffer::new(0));
        let mut seen = 0;
        slice.decode(&mask, None, interrupt, &mut |rows| {
            let valid = rows.batch.column_by_name(name).and_then(|column| column.nulls().cloned());
            let bits = valid
                .map_or_else(|| BooleanBuffer::new_set(rows.batch.num_rows()), |nulls| nulls.into_inner());
            append_bits(&mut present, seen, &bits);
            seen += bits.len();
            let Some(actions) = actions_of(rows, name, if whole { &schema } else { &KEYED })? else {
                return Ok(());
            };
            if kind == FileKind::Add {
                sizes.extend_from_slice(long(&actions, "size")?.values());
            }
            Ok(())
        })?;
        let present = BooleanBuffer::new(present.into(), 0, seen);
        let count = present.count_set_bits();
        if count == 0 {
            return Ok(None);
        }
        slice.present = (count < seen).then_some(present);
        Ok(Some(SegmentSource { source: Source::Slice(slice), count, keys: None, sizes }))
    }

    /// Reads the keys of the slice's `count` actions.
    pub fn keys(&self, root: &str, count: usize, interrupt: &Interrupt) -> Result<Vec<Key>> {
        let name = self.kind.name();
        let with_vectors = self.may_have_vectors();
        let mask = self.file.mask_of(&|path: &[String]| {
            path.first().is_some_and(|action| action == name)
                && match path.get(1).map(String::as_str) {
                    Some("path") => true,
                    Some("deletionVector") => with_vectors,
                    _ => false,
                }
        });
        let schema = Columns::Of(&["path", "deletionVector"]).schema(self.kind)?;
        let mut keys = Vec::with_capacity(count);
        self.decode(&mask, None, interrupt, &mut |rows| {
            let Some(actions) = actions_of(rows, name, &schema)? else { return Ok(()) };
            let vectors = vectors(&actions)?;
            keys::append(
                &mut keys,
                root,
                text(&actions, "path")?,
                (vectors.null_count() < vectors.len()).then_some(vectors),
            );
            Ok(())
        })?;
        if keys.len() != count {
            return Err(Error::protocol(format!(
                "the columns of `{name}` in the checkpoint have different numbers of actions"
            ))
            .at(self.file.path())
            .found(format!("{} in `path`", keys.len()))
            .expected(count));
        }
        Ok(keys)
    }

    /// Returns false if no file of the slice has a vector.
    pub fn may_have_vectors(&self) -> bool {
        self.file.may_have(self.group, &[self.kind.name(), "deletionVector", "storageType"])
    }

    /// Reads columns of the rows in `keep`.
    pub fn read(
        &self,
        columns: Columns,
        keep: &BooleanBuffer,
        interrupt: &Interrupt,
    ) -> Result<Vec<RecordBatch>> {
        let mut batches = Vec::new();
        let schema = columns.schema(self.kind)?;
        let mask = self.file.columns(self.kind, columns);
        self.select(&mask, keep, interrupt, &mut |rows| {
            batches.extend(actions_of(rows, self.kind.name(), &schema)?);
            Ok(())
        })?;
        Ok(batches)
    }

    /// Reads these leaves of the rows in `keep`, as structs with the file's own columns.
    pub fn read_leaves(
        &self,
        leaves: &[usize],
        keep: &BooleanBuffer,
        interrupt: &Interrupt,
    ) -> Result<Vec<StructArray>> {
        let mask = self.file.leaves(leaves);
        let mut structs = Vec::new();
        self.select(&mask, keep, interrupt, &mut |rows| {
            structs.extend(
                rows.batch
                    .column_by_name(self.kind.name())
                    .and_then(|column| column.as_struct_opt().cloned()),
            );
            Ok(())
        })?;
        Ok(structs)
    }

    /// Returns the file and the row group.
    pub fn place(&self) -> (&CheckpointFile, usize) {
        (&self.file, self.group)
    }

    fn select(
        &self,
        mask: &ProjectionMask,
        keep: &BooleanBuffer,
        interrupt: &Interrupt,
        take: &mut dyn FnMut(&Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        let wanted = keep.count_set_bits();
        if wanted == 0 {
            return Ok(());
        }
        let bits = self.of_all_rows(keep);
        if wanted * FEW < bits.len() {
            return match self.decode(mask, Some(&bits), interrupt, take) {
                // Decoding all rows gives the error the number of its row.
                Err(error) => self.decode(mask, None, interrupt, take).and(Err(error)),
                done => done,
            };
        }
        let mut from = 0;
        self.decode(mask, None, interrupt, &mut |rows| {
            let count = rows.batch.num_rows();
            let some = bits.slice(from, count);
            from += count;
            if some.count_set_bits() == count {
                return take(rows);
            }
            let batch = filter_record_batch(rows.batch, &BooleanArray::new(some, None))?;
            take(&Rows { batch: &batch, ..*rows }).or_else(|error| take(rows).and(Err(error))) // as above
        })
    }

    /// Converts bits over the actions of the slice to bits over all its rows.
    fn of_all_rows(&self, keep: &BooleanBuffer) -> BooleanBuffer {
        let Some(present) = &self.present else { return keep.clone() };
        let mut bits = MutableBuffer::from_len_zeroed(present.len().div_ceil(8));
        for (row, _) in present.set_indices().zip(keep.iter()).filter(|(_, keep)| *keep) {
            arrow::util::bit_util::set_bit(bits.as_slice_mut(), row);
        }
        BooleanBuffer::new(bits.into(), 0, present.len())
    }

    /// Decodes all rows of the slice, or those in `chosen`, one batch at a time.
    fn decode(
        &self,
        mask: &ProjectionMask,
        chosen: Option<&BooleanBuffer>,
        interrupt: &Interrupt,
        take: &mut dyn FnMut(&Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        match self.decode_there(mask, chosen, interrupt, take) {
            Ok(()) => self.file.unchanged(),
            // If the file was replaced, that is the error to report.
            Err(error) => Err(self.file.unchanged().err().unwrap_or(error)),
        }
    }

    fn decode_there(
        &self,
        mask: &ProjectionMask,
        chosen: Option<&BooleanBuffer>,
        interrupt: &Interrupt,
        take: &mut dyn FnMut(&Rows<'_>) -> Result<()>,
    ) -> Result<()> {
        let (file, group) = (&self.file, self.group);
        let place = |error: Error| error.within(format_args!("{} (row group {group})", file.path()));
        let described = file.parquet().row_group(group);
        let stored = file.stored().near(described, mask).map_err(place)?;
        let decoded = DecodedVolume::of(stored.size());
        decoded.expect(&stored, described, mask).map_err(place)?;
        let all = usize::try_from(described.num_rows()).unwrap_or(0);
        let ranges: Vec<Range<usize>> = match chosen {
            None => vec![self.range.clone()],
            Some(bits) => BitSliceIterator::new(bits.values(), bits.offset(), bits.len())
                .map(|(from, to)| self.range.start + from..self.range.start + to)
                .collect(),
        };
        let rows = volume::batch_rows(&stored, described, mask).map_err(place)?;
        let some =
            (ranges != [0..all]).then(|| RowSelection::from_consecutive_ranges(ranges.into_iter(), all));
        let reader = pages::record_batches(
            stored,
            file.footer(),
            PageRequest { group, mask: mask.clone(), batch: rows, rows: some },
        );
        let mut first = file.first_row(group).saturating_add(self.range.start);
        for batch in reader.map_err(|error| place(error.into()))? {
            interrupt.check()?;
            let batch = batch.map_err(|error| place(error.into()))?;
            decoded.add(&batch).map_err(place)?;
            take(&Rows { batch: &batch, first, path: file.path() })?;
            first += batch.num_rows();
        }
        Ok(())
    }
}

fn append_bits(buffer: &mut MutableBuffer, len: usize, bits: &BooleanBuffer) {
    buffer.resize((len + bits.len()).div_ceil(8), 0);
    for at in bits.set_indices() {
        arrow::util::bit_util::set_bit(buffer.as_slice_mut(), len + at);
    }
}
