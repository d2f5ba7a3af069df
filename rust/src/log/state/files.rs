//! The files of one version: segments of actions, a bitmap of the live files in each, and totals.
//!
//! The actions of new commits are reconciled with those of older ones ("Action Reconciliation": the newest
//! action for each key is valid; an add makes the file live, a remove leaves a tombstone). If this requires
//! reading the keys of a large checkpoint, it is done later, when the result is needed. A newer version
//! shares the segments of the older one.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;

use super::actions::{self, VectorFiles};
use super::replay::{Span, replaced};
use super::totals::{DeletedTotals, Sizes, deleted_of, usual_bounds};
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::log::reading::line::FileKind;
use crate::log::reading::segment::{Columns, Piece, Segment, each_piece};
use crate::log::reading::sidecar::SidecarRows;
use crate::log::schema::{ADD, REMOVE};

/// Maximum number of small segments; more are merged into one.
const MAX_SMALL: usize = 16;
/// Maximum number of rows of a small segment, which is cheap to merge with others.
const SMALL: usize = 4096;
/// Maximum number of segments of middle size; more are merged into one.
const MAX_MIDDLE: usize = 64;
/// Maximum number of rows of a segment of middle size. A larger segment is not merged while at least half of
/// its rows are live.
const LARGE: usize = 128 * 1024;

/// Maximum number of commits whose removes are not yet applied; one more commit applies them all.
const MAX_WAITING: usize = 1000;

/// The actions on files of one commit.
#[derive(Debug)]
pub struct Changes {
    /// The `remove` actions, in the columns of [`REMOVE`].
    pub removes: Vec<RecordBatch>,
    /// The `add` actions, in the columns of [`ADD`].
    pub adds: Vec<RecordBatch>,
    /// The actions that stay in the commit's file.
    pub stored: Vec<Segment>,
}

/// The files of one version, reconciled when they are needed.
#[derive(Debug, Clone)]
pub struct Files {
    base: Arc<LiveSegments>,
    /// Commits after `base`, in order.
    waiting: Vec<Arc<Changes>>,
    now: OnceLock<Arc<LiveSegments>>,
}

impl Files {
    /// Makes the files of a checkpoint, all of whose rows are valid.
    pub fn new(root: &str, segments: Vec<Segment>) -> Result<Self> {
        let mut live = LiveSegments { root: root.to_owned(), ..LiveSegments::default() };
        live.push(segments)?;
        Ok(Self { base: Arc::new(live), waiting: Vec::new(), now: OnceLock::new() })
    }

    /// Makes the files of a table's first commit, in which no file occurs twice. If there are many, their
    /// keys are computed when a later commit needs them.
    pub fn first(root: &str, adds: RecordBatch) -> Result<Self> {
        let has_few = adds.num_rows() <= SMALL;
        let adds = if has_few {
            Segment::in_memory(root, FileKind::Add, adds)?
        } else {
            Segment::in_memory_without_keys(FileKind::Add, adds)
        };
        Self::new(root, vec![adds])
    }

    /// True if the version has no actions on files.
    pub fn is_empty(&self) -> bool {
        self.base.segments.is_empty() && self.waiting.is_empty()
    }

    /// Returns the location of the table.
    pub fn root(&self) -> &str {
        &self.base.root
    }

    /// Returns the reconciled segments. May read files of the log, and returns their errors.
    pub fn now(&self, interrupt: &Interrupt) -> Result<&LiveSegments> {
        if self.waiting.is_empty() {
            return Ok(&self.base);
        }
        if let Some(now) = self.now.get() {
            return Ok(now);
        }
        let now = Arc::new(self.base.after(&self.waiting, interrupt)?);
        Ok(self.now.get_or_init(|| now))
    }

    /// True if `now` and `after` need not read files of the log.
    pub fn is_decoded(&self) -> bool {
        let live = if self.waiting.is_empty() { Some(&self.base) } else { self.now.get() };
        live.is_some_and(|live| live.segments.iter().all(Segment::has_keys))
    }

    /// Returns the files after these commits.
    pub fn after(&self, changes: Vec<Changes>, interrupt: &Interrupt) -> Result<Self> {
        let mut next = match self.now.get() {
            Some(now) => Self { base: Arc::clone(now), waiting: Vec::new(), now: OnceLock::new() },
            None => self.clone(),
        };
        next.waiting.extend(changes.into_iter().map(Arc::new));
        if next.waiting.len() <= MAX_WAITING && next.base.segments.iter().any(|segment| !segment.has_keys()) {
            return Ok(next);
        }
        let base = Arc::new(next.base.after(&next.waiting, interrupt)?);
        Ok(Self { base, waiting: Vec::new(), now: OnceLock::new() })
    }
}

/// The segments of a version, and which of their rows are live.
#[derive(Debug, Clone, Default)]
pub struct LiveSegments {
    root: String,
    segments: Vec<Segment>,
    count: usize,
    bytes: i64,
    num_records: OnceLock<Option<i64>>,
    with_vectors: OnceLock<VectorFiles>,
    sizes: OnceLock<Sizes>,
    deleted: OnceLock<DeletedTotals>,
}

impl LiveSegments {
    /// Returns the number of live files.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the total size of the live files in bytes.
    pub fn bytes(&self) -> i64 {
        self.bytes
    }

    /// Returns all segments, including those without a live row.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Returns the live rows of one kind, in pieces for several threads.
    pub fn pieces(&self, kind: FileKind) -> Vec<Piece<'_>> {
        let of_kind =
            self.segments.iter().filter(|segment| segment.kind() == kind && segment.live_count() > 0);
        of_kind.flat_map(Segment::pieces).collect()
    }

    /// Returns the number of logical rows of all live files. `None` if a file has no numRecords.
    pub fn num_records(&self, interrupt: &Interrupt) -> Result<Option<i64>> {
        if let Some(known) = self.num_records.get() {
            return Ok(*known);
        }
        let count = |piece: &Piece<'_>| {
            let read = piece.read(Columns::Of(&["stats", "deletionVector"]), &piece.live(), interrupt)?;
            read.iter().map(actions::logical_rows).sum::<Result<Option<i64>>>()
        };
        let counts = each_piece(&self.pieces(FileKind::Add), interrupt, &count)?;
        let all: Option<i64> = counts.into_iter().sum();
        Ok(*self.num_records.get_or_init(|| all))
    }

    /// Counts the live files with a deletion vector.
    pub fn with_vectors(&self, interrupt: &Interrupt) -> Result<VectorFiles> {
        if let Some(known) = self.with_vectors.get() {
            return Ok(*known);
        }
        let count = |piece: &Piece<'_>| {
            let read = piece.read(Columns::Of(&["size", "deletionVector"]), &piece.live(), interrupt)?;
            read.iter().try_fold(VectorFiles::default(), |sum, batch| Ok(sum.plus(VectorFiles::of(batch)?)))
        };
        let counts = each_piece(&self.pieces(FileKind::Add), interrupt, &count)?;
        let all = counts.into_iter().fold(VectorFiles::default(), VectorFiles::plus);
        Ok(*self.with_vectors.get_or_init(|| all))
    }

    /// Returns the histogram of file sizes, in the usual bins.
    pub fn sizes(&self) -> Result<&Sizes> {
        if let Some(known) = self.sizes.get() {
            return Ok(known);
        }
        let sizes = self.sizes_in(usual_bounds())?;
        Ok(self.sizes.get_or_init(|| sizes))
    }

    /// Returns the histogram of file sizes, in bins that begin at these sizes (ascending).
    pub fn sizes_in(&self, bounds: Vec<i64>) -> Result<Sizes> {
        let mut sizes = Sizes::new(bounds);
        for segment in self.segments.iter().filter(|segment| segment.kind() == FileKind::Add) {
            segment.each_size(&mut |row, size| {
                if segment.is_live(row) {
                    sizes.count(size, false);
                }
            })?;
        }
        Ok(sizes)
    }

    /// Returns the totals of rows that vectors delete.
    pub fn deleted(&self, interrupt: &Interrupt) -> Result<&DeletedTotals> {
        if let Some(known) = self.deleted.get() {
            return Ok(known);
        }
        let of_piece = |piece: &Piece<'_>| {
            let mut deleted = DeletedTotals::default();
            let (live, slice) = (piece.live(), piece.segment().slice());
            if slice.is_some_and(|slice| !slice.may_have_vectors()) {
                deleted.count_whole(live.count_set_bits());
                return Ok(deleted);
            }
            let read = piece.read(Columns::Of(&["deletionVector"]), &live, interrupt)?;
            read.iter().try_for_each(|batch| deleted.count_all(batch))?;
            Ok(deleted)
        };
        let parts = each_piece(&self.pieces(FileKind::Add), interrupt, &of_piece)?;
        let all = parts.iter().fold(DeletedTotals::default(), DeletedTotals::plus);
        Ok(self.deleted.get_or_init(|| all))
    }

    fn after(&self, changes: &[Arc<Changes>], interrupt: &Interrupt) -> Result<Self> {
        let mut next = Self { num_records: OnceLock::new(), with_vectors: OnceLock::new(), ..self.clone() };
        next.apply(changes, interrupt)?;
        next.compact(interrupt)?;
        Ok(next)
    }

    fn push(&mut self, segments: Vec<Segment>) -> Result<()> {
        for segment in segments.iter().filter(|segment| segment.kind() == FileKind::Add) {
            self.count += segment.len();
            self.bytes = self.bytes.saturating_add(segment.sizes()?);
            if let Some(sizes) = self.sizes.get_mut() {
                segment.each_size(&mut |_, size| sizes.count(size, false))?;
            }
            match (self.deleted.get_mut(), segment.rows()) {
                (Some(deleted), Some(rows)) => deleted.count_all(rows)?,
                _ => self.deleted = OnceLock::new(),
            }
        }
        self.segments.extend(segments);
        Ok(())
    }

    /// Marks a live row as no longer live.
    fn forget(&mut self, at: usize, row: u32) -> Result<()> {
        let segment = &mut self.segments[at];
        segment.forget(row);
        if segment.kind() == FileKind::Remove {
            return Ok(());
        }
        let size = segment.size(row)?;
        self.count -= 1;
        self.bytes = self.bytes.saturating_sub(size);
        if let Some(sizes) = self.sizes.get_mut() {
            sizes.count(size, true);
        }
        match (self.deleted.get_mut(), segment.rows()) {
            (Some(deleted), Some(rows)) => deleted.count(deleted_of(rows, row as usize)?, true),
            _ => self.deleted = OnceLock::new(),
        }
        Ok(())
    }

    /// Applies commits in order. The rows of small commits are collected in one segment of adds and one of
    /// removes.
    fn apply(&mut self, changes: &[Arc<Changes>], interrupt: &Interrupt) -> Result<()> {
        let first = self.segments.len();
        let mut spans: Vec<Span> = Vec::new();
        let mut small: [Vec<RecordBatch>; 2] = Default::default();
        let mut gathered = [0_usize; 2];
        let mut large = Vec::new();
        for commit in changes {
            for segment in &commit.stored {
                spans.push(Span { segment: first + 2 + large.len(), from: 0, rows: segment.len() });
                large.push(segment.clone());
            }
            for (which, kind, batches) in
                [(0, FileKind::Remove, &commit.removes), (1, FileKind::Add, &commit.adds)]
            {
                for batch in batches {
                    let rows = batch.num_rows();
                    if rows > SMALL {
                        spans.push(Span { segment: first + 2 + large.len(), from: 0, rows });
                        large.push(Segment::in_memory(&self.root, kind, batch.clone())?);
                    } else {
                        spans.push(Span { segment: first + which, from: gathered[which], rows });
                        gathered[which] += rows;
                        small[which].push(batch.clone());
                    }
                }
            }
        }
        let mut segments = Vec::with_capacity(2 + large.len());
        for (kind, schema, batches) in
            [(FileKind::Remove, &REMOVE, &small[0]), (FileKind::Add, &ADD, &small[1])]
        {
            segments.push(Segment::in_memory(&self.root, kind, concat_batches(schema, batches)?)?);
        }
        segments.extend(large);
        self.push(segments)?;
        for at in replaced(&self.root, &self.segments, first, &spans, interrupt)? {
            self.forget(at.segment, at.row)?;
        }
        Ok(())
    }

    /// Merges small segments, and then segments of middle size, to keep their number small. Rows that stay in
    /// a checkpoint are not merged.
    fn compact(&mut self, interrupt: &Interrupt) -> Result<()> {
        self.segments.retain(|segment| segment.live_count() > 0);
        for (most, rows) in [(MAX_SMALL, SMALL), (MAX_MIDDLE, LARGE)] {
            let fits = |segment: &Segment| segment.is_held() && segment.live_count() <= rows;
            let fitting: Vec<&Segment> = self.segments.iter().filter(|segment| fits(segment)).collect();
            // Segments of two sidecars are not merged, so that later checkpoints can refer to the sidecars.
            let name = |segment: &Segment| segment.origin().map(|origin| origin.sidecar.name.clone());
            let left: BTreeSet<_> =
                fitting.iter().map(|segment| (segment.kind() == FileKind::Add, name(segment))).collect();
            if fitting.len() > most + left.len() {
                self.merge(&fits, interrupt)?;
            }
        }
        let wasteful = |segment: &Segment| segment.is_held() && segment.live_count() * 2 < segment.len();
        if self.segments.iter().any(|segment| wasteful(segment) && segment.len() > SMALL) {
            self.merge(&wasteful, interrupt)?;
        }
        Ok(())
    }

    /// Merges the segments for which `chosen` is true to one of each kind, without rows that are no longer
    /// live.
    fn merge(&mut self, chosen: &dyn Fn(&Segment) -> bool, interrupt: &Interrupt) -> Result<()> {
        let (merged, mut kept): (Vec<Segment>, Vec<Segment>) =
            std::mem::take(&mut self.segments).into_iter().partition(chosen);
        for (kind, schema) in [(FileKind::Add, &ADD), (FileKind::Remove, &REMOVE)] {
            let mut gathered = SidecarRows::default();
            for segment in merged.iter().filter(|segment| segment.kind() == kind) {
                gathered.push(segment, interrupt)?;
            }
            for (origin, batches) in gathered {
                let segment = Segment::in_memory(&self.root, kind, concat_batches(schema, &batches)?)?;
                if let Some(origin) = origin {
                    segment.came_from(origin);
                }
                kept.push(segment);
            }
        }
        self.segments = kept;
        Ok(())
    }
}
