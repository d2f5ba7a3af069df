//! Actions of one kind, and which of them still count. Their rows are held, or stay where they are stored until they are asked for.

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
use crate::log::schema::{ADD, REMOVE, long};
use crate::parallel::PIECE;

/// Columns of actions that are asked for.
#[derive(Debug, Clone, Copy)]
pub enum Columns {
    /// All of [`ADD`] or [`REMOVE`].
    All,
    /// These of them.
    Of(&'static [&'static str]),
}

impl Columns {
    /// Whether this one is among them.
    pub fn has(self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Of(names) => names.contains(&name),
        }
    }

    /// Their schema.
    pub fn schema(self, kind: FileKind) -> Result<SchemaRef> {
        let all: &SchemaRef = match kind {
            FileKind::Add => &ADD,
            FileKind::Remove => &REMOVE,
        };
        Ok(match self {
            Self::All => Arc::clone(all),
            Self::Of(_) => {
                let fields: Vec<Arc<Field>> = all.fields().iter().filter(|field| self.has(field.name())).map(Arc::clone).collect();
                Arc::new(Schema::new(fields))
            }
        })
    }
}

/// Where rows stay.
#[derive(Debug)]
pub enum Source {
    /// In a checkpoint.
    Slice(Slice),
    /// In a commit.
    Lines(Lines),
}

impl Source {
    fn read(&self, columns: Columns, keep: &BooleanBuffer, interrupt: &Interrupt) -> Result<Vec<RecordBatch>> {
        if keep.count_set_bits() == 0 {
            return Ok(Vec::new());
        }
        match self {
            Self::Slice(slice) => slice.read(columns, keep, interrupt),
            Self::Lines(lines) => held(&lines.read(interrupt)?, columns, keep),
        }
    }
}

/// What is known of rows that stay where they are.
#[derive(Debug)]
pub struct SegmentSource {
    /// Where.
    pub source: Source,
    /// How many.
    pub count: usize,
    /// Their keys, unless they are read when they are asked for.
    pub keys: Option<Vec<Key>>,
    /// Bytes of their files; empty for removes.
    pub sizes: Vec<i64>,
}

#[derive(Debug)]
enum Rows {
    Held(RecordBatch),
    Stored { source: Source, sizes: Vec<i64> },
}

/// Actions of one kind, and which of them still count.
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
    /// Of rows in [`ADD`] or [`REMOVE`].
    pub fn held(root: &str, kind: FileKind, rows: RecordBatch) -> Result<Self> {
        let keys = keys::of_batch(root, &rows)?;
        Ok(Self::new(kind, Rows::Held(rows), keys.len(), Some(keys)))
    }

    /// Of rows that stay where they are.
    pub fn stored(kind: FileKind, known: SegmentSource) -> Self {
        let SegmentSource { source, count, keys, sizes } = known;
        Self::new(kind, Rows::Stored { source, sizes }, count, keys)
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

    /// Adds or removes.
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// Whether the keys of its rows are known.
    pub fn has_keys(&self) -> bool {
        self.keys.get().is_some()
    }

    /// Keys of all its rows.
    pub fn keys(&self, root: &str, interrupt: &Interrupt) -> Result<&Keys> {
        if let Some(known) = self.keys.get() {
            return Ok(known);
        }
        let keys = match &*self.rows {
            Rows::Held(rows) => keys::of_batch(root, rows)?,
            Rows::Stored { source: Source::Slice(slice), .. } => slice.keys(root, self.len, interrupt)?,
            Rows::Stored { source: Source::Lines(lines), .. } => keys::of_batch(root, &lines.read(interrupt)?)?,
        };
        Ok(self.keys.get_or_init(|| Keys::new(keys)))
    }

    /// Rows, also those that do not count.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Without a row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether its rows are in memory.
    pub fn is_held(&self) -> bool {
        self.rows().is_some()
    }

    /// Where its rows are written already.
    pub fn origin(&self) -> Option<Origin> {
        self.origin.lock().ok().and_then(|origin| origin.clone())
    }

    /// Notes where its rows are written now.
    pub fn came_from(&self, origin: Origin) {
        if let Ok(mut known) = self.origin.lock() {
            *known = Some(origin);
        }
    }

    /// Rows that count.
    pub fn live_count(&self) -> usize {
        self.live_count
    }

    /// Whether this row counts.
    pub fn is_live(&self, row: u32) -> bool {
        self.live[row as usize / 64] >> (row % 64) & 1 == 1
    }

    /// From now on this row, which counted, does not.
    pub fn forget(&mut self, row: u32) {
        Arc::make_mut(&mut self.live)[row as usize / 64] &= !(1 << (row % 64));
        self.live_count -= 1;
    }

    /// Bytes of the file of a row; 0 where a remove does not say it.
    pub fn size(&self, row: u32) -> Result<i64> {
        Ok(match &*self.rows {
            Rows::Stored { sizes, .. } => sizes.get(row as usize).copied().unwrap_or(0),
            Rows::Held(rows) => {
                let sizes = long(rows, "size")?;
                if sizes.is_valid(row as usize) { sizes.value(row as usize) } else { 0 }
            }
        })
    }

    /// Bytes of all files together.
    pub fn sizes(&self) -> Result<i64> {
        Ok(match &*self.rows {
            Rows::Stored { sizes, .. } => sizes.iter().fold(0, |sum, size| sum.saturating_add(*size)),
            Rows::Held(rows) => long(rows, "size")?.iter().flatten().fold(0, i64::saturating_add),
        })
    }

    /// The size of each row, in order.
    pub fn each_size(&self, take: &mut dyn FnMut(u32, i64)) -> Result<()> {
        match &*self.rows {
            Rows::Stored { sizes, .. } => (0..).zip(sizes).for_each(|(row, size)| take(row, *size)),
            Rows::Held(rows) => (0..).zip(long(rows, "size")?).for_each(|(row, size)| take(row, size.unwrap_or(0))),
        }
        Ok(())
    }

    /// Its rows, where they are in memory.
    pub fn rows(&self) -> Option<&RecordBatch> {
        match &*self.rows {
            Rows::Held(rows) => Some(rows),
            Rows::Stored { .. } => None,
        }
    }

    /// The rows that count, as bits.
    pub fn live(&self) -> BooleanBuffer {
        BooleanBuffer::new(Buffer::from(self.live.as_slice().to_vec()), 0, self.len())
    }

    /// The slice of a checkpoint that has its rows.
    pub fn slice(&self) -> Option<&Slice> {
        match &*self.rows {
            Rows::Stored { source: Source::Slice(slice), .. } => Some(slice),
            _ => None,
        }
    }

    /// What counts, all columns.
    pub fn living(&self, interrupt: &Interrupt) -> Result<Vec<RecordBatch>> {
        self.read(Columns::All, &self.live(), interrupt)
    }

    /// Columns of these of its rows.
    pub fn read(&self, columns: Columns, keep: &BooleanBuffer, interrupt: &Interrupt) -> Result<Vec<RecordBatch>> {
        match &*self.rows {
            Rows::Stored { source, .. } => source.read(columns, keep, interrupt),
            Rows::Held(rows) => held(rows, columns, keep),
        }
    }

    /// Its rows in parts, each for one thread at a time: bits over all its rows, of those that count.
    pub fn pieces(&self) -> Vec<Piece<'_>> {
        let step = if self.is_held() { PIECE } else { self.len().max(1) };
        let ranges = (0..self.len()).step_by(step).map(|from| (from, step.min(self.len() - from)));
        ranges.map(|(from, rows)| Piece { segment: self, from, rows }).collect()
    }
}

/// Some consecutive rows of a segment.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    segment: &'a Segment,
    from: usize,
    rows: usize,
}

impl<'a> Piece<'a> {
    /// The segment.
    pub fn segment(&self) -> &'a Segment {
        self.segment
    }

    /// Which rows of it count, as bits over its own.
    pub fn live(&self) -> BooleanBuffer {
        self.segment.live().slice(self.from, self.rows)
    }

    /// Columns of these of its rows.
    pub fn read(&self, columns: Columns, keep: &BooleanBuffer, interrupt: &Interrupt) -> Result<Vec<RecordBatch>> {
        match &*self.segment.rows {
            Rows::Stored { source, .. } => source.read(columns, keep, interrupt),
            Rows::Held(rows) => {
                let rows = rows.slice(self.from, self.rows);
                held(&rows, columns, keep)
            }
        }
    }
}

fn held(rows: &RecordBatch, columns: Columns, keep: &BooleanBuffer) -> Result<Vec<RecordBatch>> {
    let wanted = rows.schema_ref().fields().iter().enumerate().filter(|(_, field)| columns.has(field.name())).map(|(at, _)| at);
    let rows = rows.project(&wanted.collect::<Vec<_>>())?;
    match keep.count_set_bits() {
        0 => Ok(Vec::new()),
        count if count == rows.num_rows() => Ok(vec![rows]),
        _ => Ok(vec![filter_record_batch(&rows, &BooleanArray::new(keep.clone(), None))?]),
    }
}
