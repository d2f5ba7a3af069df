//! Actions of one kind, and which of them are still valid. Their rows are in memory, or stay in the log's
//! files and are read when needed.

use std::sync::{Arc, OnceLock};

use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::buffer::{BooleanBuffer, Buffer};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{Field, Schema, SchemaRef};

use super::keys::{self, Key, Keys};
use super::line::FileKind;
use super::lines::Lines;
use super::sidecar::{Origin, Provenance};
use super::slice::Slice;
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::log::schema::long;
use crate::parallel::PIECE;
use crate::parallel::{in_order, on_threads};

/// The columns of actions to read.
#[derive(Debug, Clone, Copy)]
pub enum Columns {
    /// All of [`ADD`] or [`REMOVE`].
    All,
    /// Only these columns.
    Of(&'static [&'static str]),
}

impl Columns {
    /// True if this column is to be read.
    pub fn has(self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Of(names) => names.contains(&name),
        }
    }

    /// Returns the schema of these columns.
    pub fn schema(self, kind: FileKind) -> Result<SchemaRef> {
        let all = kind.schema();
        Ok(match self {
            Self::All => Arc::clone(all),
            Self::Of(_) => {
                let fields: Vec<Arc<Field>> =
                    all.fields().iter().filter(|field| self.has(field.name())).map(Arc::clone).collect();
                Arc::new(Schema::new(fields))
            }
        })
    }
}

/// The place of rows that are not in memory.
#[derive(Debug)]
pub enum Source {
    /// The rows of a checkpoint.
    Slice(Slice),
    /// The rows of a commit.
    Lines(Lines),
}

impl Source {
    fn read(
        &self,
        columns: Columns,
        keep: &BooleanBuffer,
        interrupt: &Interrupt,
    ) -> Result<Vec<RecordBatch>> {
        if keep.count_set_bits() == 0 {
            return Ok(Vec::new());
        }
        match self {
            Self::Slice(slice) => slice.read(columns, keep, interrupt),
            Self::Lines(lines) => filtered(&lines.read(interrupt)?, columns, keep),
        }
    }
}

/// Rows that are not in memory, with their number, keys and sizes.
#[derive(Debug)]
pub struct SegmentSource {
    /// Where the rows are read from.
    pub source: Source,
    /// Number of rows.
    pub count: usize,
    /// Keys of the rows. `None`: they are read when needed.
    pub keys: Option<Vec<Key>>,
    /// Sizes of their files in bytes; empty for the removes of a checkpoint, whose sizes are not read.
    pub sizes: Vec<i64>,
}

#[derive(Debug)]
enum Rows {
    InMemory(RecordBatch),
    InFiles { source: Source, sizes: Vec<i64> },
}

/// Actions of one kind, and which of them are live.
#[derive(Debug, Clone)]
pub struct Segment {
    kind: FileKind,
    rows: Arc<Rows>,
    keys: Arc<OnceLock<Keys>>,
    len: usize,
    live: Arc<Vec<u64>>,
    live_count: usize,
    origin: Provenance,
}

impl Segment {
    /// Makes a segment of rows in memory, in [`ADD`] or [`REMOVE`].
    pub fn in_memory(root: &str, kind: FileKind, rows: RecordBatch) -> Result<Self> {
        let keys = keys::of_batch(root, &rows)?;
        Ok(Self::new(kind, Rows::InMemory(rows), keys.len(), Some(keys)))
    }

    /// Makes a segment of rows in memory, whose keys are computed when they are needed.
    pub fn in_memory_without_keys(kind: FileKind, rows: RecordBatch) -> Self {
        let len = rows.num_rows();
        Self::new(kind, Rows::InMemory(rows), len, None)
    }

    /// Makes a segment of rows that are not in memory.
    pub fn in_files(kind: FileKind, known: SegmentSource) -> Self {
        let SegmentSource { source, count, keys, sizes } = known;
        Self::new(kind, Rows::InFiles { source, sizes }, count, keys)
    }

    fn new(kind: FileKind, rows: Rows, len: usize, keys: Option<Vec<Key>>) -> Self {
        let mut live = vec![u64::MAX; len.div_ceil(64)];
        if let Some(last) = live.last_mut().filter(|_| !len.is_multiple_of(64)) {
            *last = (1 << (len % 64)) - 1;
        }
        let keys = keys.map_or_else(OnceLock::new, |keys| OnceLock::from(Keys::new(keys)));
        let (rows, keys, live) = (Arc::new(rows), Arc::new(keys), Arc::new(live));
        Self { kind, rows, keys, len, live, live_count: len, origin: Provenance::default() }
    }

    /// Returns whether the actions are adds or removes.
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// True if the keys of the segment's rows are known.
    pub fn has_keys(&self) -> bool {
        self.keys.get().is_some()
    }

    /// Returns the keys of all rows of the segment.
    pub fn keys(&self, root: &str, interrupt: &Interrupt) -> Result<&Keys> {
        if let Some(known) = self.keys.get() {
            return Ok(known);
        }
        let keys = match &*self.rows {
            Rows::InMemory(rows) => keys::of_batch(root, rows)?,
            Rows::InFiles { source: Source::Slice(slice), .. } => slice.keys(root, self.len, interrupt)?,
            Rows::InFiles { source: Source::Lines(lines), .. } => {
                keys::of_batch(root, &lines.read(interrupt)?)?
            }
        };
        Ok(self.keys.get_or_init(|| Keys::new(keys)))
    }

    /// Returns the number of rows, including those that are no longer live.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if the segment's rows are in memory.
    pub fn is_held(&self) -> bool {
        self.rows().is_some()
    }

    /// Returns the sidecar that holds the segment's rows.
    pub fn origin(&self) -> Option<Origin> {
        self.origin.lock().ok().and_then(|origin| origin.clone())
    }

    /// Sets the sidecar that holds the segment's rows.
    pub fn came_from(&self, origin: Origin) {
        if let Ok(mut known) = self.origin.lock() {
            *known = Some(origin);
        }
    }

    /// Returns the number of live rows.
    pub fn live_count(&self) -> usize {
        self.live_count
    }

    /// True if this row is live.
    pub fn is_live(&self, row: u32) -> bool {
        self.live[row as usize / 64] >> (row % 64) & 1 == 1
    }

    /// Marks a live row as no longer live.
    pub fn forget(&mut self, row: u32) {
        Arc::make_mut(&mut self.live)[row as usize / 64] &= !(1 << (row % 64));
        self.live_count -= 1;
    }

    /// Returns the size of a row's file in bytes; 0 if it is unknown (see [`SegmentSource::sizes`]).
    pub fn size(&self, row: u32) -> Result<i64> {
        Ok(match &*self.rows {
            Rows::InFiles { sizes, .. } => sizes.get(row as usize).copied().unwrap_or(0),
            Rows::InMemory(rows) => {
                let sizes = long(rows, "size")?;
                if sizes.is_valid(row as usize) { sizes.value(row as usize) } else { 0 }
            }
        })
    }

    /// Returns the total size of all files in bytes.
    pub fn sizes(&self) -> Result<i64> {
        Ok(match &*self.rows {
            Rows::InFiles { sizes, .. } => sizes.iter().fold(0, |sum, size| sum.saturating_add(*size)),
            Rows::InMemory(rows) => long(rows, "size")?.iter().flatten().fold(0, i64::saturating_add),
        })
    }

    /// Calls `take` with each row and its size, in order.
    pub fn each_size(&self, take: &mut dyn FnMut(u32, i64)) -> Result<()> {
        match &*self.rows {
            Rows::InFiles { sizes, .. } => (0..).zip(sizes).for_each(|(row, size)| take(row, *size)),
            Rows::InMemory(rows) => {
                (0..).zip(long(rows, "size")?).for_each(|(row, size)| take(row, size.unwrap_or(0)))
            }
        }
        Ok(())
    }

    /// Returns the segment's rows, if they are in memory.
    pub fn rows(&self) -> Option<&RecordBatch> {
        match &*self.rows {
            Rows::InMemory(rows) => Some(rows),
            Rows::InFiles { .. } => None,
        }
    }

    /// Returns the live rows as bits.
    pub fn live(&self) -> BooleanBuffer {
        BooleanBuffer::new(Buffer::from(self.live.as_slice().to_vec()), 0, self.len())
    }

    /// Returns the slice of a checkpoint that has the segment's rows.
    pub fn slice(&self) -> Option<&Slice> {
        match &*self.rows {
            Rows::InFiles { source: Source::Slice(slice), .. } => Some(slice),
            _ => None,
        }
    }

    /// Reads all columns of the live rows.
    pub fn living(&self, interrupt: &Interrupt) -> Result<Vec<RecordBatch>> {
        self.read(Columns::All, &self.live(), interrupt)
    }

    /// Reads columns of the rows in `keep`.
    pub fn read(
        &self,
        columns: Columns,
        keep: &BooleanBuffer,
        interrupt: &Interrupt,
    ) -> Result<Vec<RecordBatch>> {
        match &*self.rows {
            Rows::InFiles { source, .. } => source.read(columns, keep, interrupt),
            Rows::InMemory(rows) => filtered(rows, columns, keep),
        }
    }

    /// Divides the segment's rows into pieces, each for one thread.
    pub fn pieces(&self) -> Vec<Piece<'_>> {
        let step = if self.is_held() { PIECE } else { self.len().max(1) };
        let ranges = (0..self.len()).step_by(step).map(|from| (from, step.min(self.len() - from)));
        ranges.map(|(from, rows)| Piece { segment: self, from, rows }).collect()
    }
}

/// Consecutive rows of a segment.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    segment: &'a Segment,
    from: usize,
    rows: usize,
}

impl<'a> Piece<'a> {
    /// Returns the segment of the piece.
    pub fn segment(&self) -> &'a Segment {
        self.segment
    }

    /// Returns the number of the segment's rows, including those that are no longer live.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the live rows of the piece, as bits.
    pub fn live(&self) -> BooleanBuffer {
        self.segment.live().slice(self.from, self.rows)
    }

    /// Reads columns of the rows in `keep`.
    pub fn read(
        &self,
        columns: Columns,
        keep: &BooleanBuffer,
        interrupt: &Interrupt,
    ) -> Result<Vec<RecordBatch>> {
        match &*self.segment.rows {
            Rows::InFiles { source, .. } => source.read(columns, keep, interrupt),
            Rows::InMemory(rows) => {
                let rows = rows.slice(self.from, self.rows);
                filtered(&rows, columns, keep)
            }
        }
    }
}

/// Maximum number of rows that take less time than the start of a thread.
pub const FEW: usize = 1000;

/// Calls `work` for each piece, on several threads if they have many rows. Returns the results in the order
/// of the pieces.
pub fn each_piece<T: Send>(
    pieces: &[Piece<'_>],
    interrupt: &Interrupt,
    work: &(dyn Fn(&Piece<'_>) -> Result<T> + Sync),
) -> Result<Vec<T>> {
    let rows: usize = pieces.iter().map(|piece| piece.rows).sum();
    if rows <= FEW { in_order(pieces, interrupt, work) } else { on_threads(pieces, interrupt, work) }
}

fn filtered(rows: &RecordBatch, columns: Columns, keep: &BooleanBuffer) -> Result<Vec<RecordBatch>> {
    let wanted = rows
        .schema_ref()
        .fields()
        .iter()
        .enumerate()
        .filter(|(_, field)| columns.has(field.name()))
        .map(|(at, _)| at);
    let rows = rows.project(&wanted.collect::<Vec<_>>())?;
    match keep.count_set_bits() {
        0 => Ok(Vec::new()),
        count if count == rows.num_rows() => Ok(vec![rows]),
        _ => Ok(vec![filter_record_batch(&rows, &BooleanArray::new(keep.clone(), None))?]),
    }
}
