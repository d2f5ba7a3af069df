//! The files of one version: segments of actions, a bitmap of what lives in each, totals.
//!
//! What commits say of files is reconciled with what came before ("Action Reconciliation": for each key the newest action counts; an add
//! makes the file live, a remove leaves a tombstone): at once, or, where that means to read the keys of a large checkpoint, when somebody
//! asks for it. A newer version shares the segments of the older one.

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
use crate::log::reading::segment::{Columns, Piece, Segment};
use crate::log::reading::sidecar::SidecarRows;
use crate::log::schema::{ADD, REMOVE};
use crate::parallel::on_threads;

/// So many small segments are merged into one.
const MAX_SMALL: usize = 16;
/// A segment of no more rows is small: it is cheap to write anew with its neighbours.
const SMALL: usize = 4096;
/// So many segments of middle size are merged into one.
const MAX_MIDDLE: usize = 64;
/// One of more rows is large: it stays as it is while half of them count.
const LARGE: usize = 128 * 1024;

/// Upper bound of commits whose removes have not been applied yet.
const MAX_WAITING: usize = 1000;

/// What a commit says of files.
#[derive(Debug)]
pub struct Changes {
    /// Batches in [`REMOVE`].
    pub removes: Vec<RecordBatch>,
    /// Batches in [`ADD`].
    pub adds: Vec<RecordBatch>,
    /// What stays in the commit.
    pub stored: Vec<Segment>,
}

/// The files of one version, reconciled when they are asked for.
#[derive(Debug, Clone)]
pub struct Files {
    base: Arc<LiveSegments>,
    /// Commits after `base`, in order.
    waiting: Vec<Arc<Changes>>,
    now: OnceLock<Arc<LiveSegments>>,
}

impl Files {
    /// Those of a checkpoint; all of its rows count.
    pub fn new(root: &str, segments: Vec<Segment>) -> Result<Self> {
        let mut live = LiveSegments { root: root.to_owned(), ..LiveSegments::default() };
        live.push(segments)?;
        Ok(Self { base: Arc::new(live), waiting: Vec::new(), now: OnceLock::new() })
    }

    /// Whether nothing was ever said of a file.
    pub fn is_empty(&self) -> bool {
        self.base.segments.is_empty() && self.waiting.is_empty()
    }

    /// Location of the table.
    pub fn root(&self) -> &str {
        &self.base.root
    }

    /// What there is; errors are those of the files of the log that are read for it.
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

    /// Whether `now` has nothing to read, and all keys are there that `after` looks up.
    pub fn is_decoded(&self) -> bool {
        let live = if self.waiting.is_empty() { Some(&self.base) } else { self.now.get() };
        live.is_some_and(|live| live.segments.iter().all(Segment::has_keys))
    }

    /// After these commits.
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

/// Segments, and what lives of them.
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
    /// Live files.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Their bytes.
    pub fn bytes(&self) -> i64 {
        self.bytes
    }

    /// All segments, also those of which nothing counts.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// What counts of one kind, in parts for several threads.
    pub fn pieces(&self, kind: FileKind) -> Vec<Piece<'_>> {
        let of_kind = self.segments.iter().filter(|segment| segment.kind() == kind && segment.live_count() > 0);
        of_kind.flat_map(Segment::pieces).collect()
    }

    /// Logical rows of all live files; `None` where one has no numRecords.
    pub fn num_records(&self, interrupt: &Interrupt) -> Result<Option<i64>> {
        if let Some(known) = self.num_records.get() {
            return Ok(*known);
        }
        let count = |piece: &Piece<'_>| {
            let read = piece.read(Columns::Of(&["stats", "deletionVector"]), &piece.live(), interrupt)?;
            read.iter().map(actions::logical_rows).sum::<Result<Option<i64>>>()
        };
        let counts = on_threads(&self.pieces(FileKind::Add), interrupt, &count)?;
        let all: Option<i64> = counts.into_iter().sum();
        Ok(*self.num_records.get_or_init(|| all))
    }

    /// Live files with a deletion vector.
    pub fn with_vectors(&self, interrupt: &Interrupt) -> Result<VectorFiles> {
        if let Some(known) = self.with_vectors.get() {
            return Ok(*known);
        }
        let count = |piece: &Piece<'_>| {
            let read = piece.read(Columns::Of(&["size", "deletionVector"]), &piece.live(), interrupt)?;
            read.iter().try_fold(VectorFiles::default(), |sum, batch| Ok(sum.plus(VectorFiles::of(batch)?)))
        };
        let counts = on_threads(&self.pieces(FileKind::Add), interrupt, &count)?;
        let all = counts.into_iter().fold(VectorFiles::default(), VectorFiles::plus);
        Ok(*self.with_vectors.get_or_init(|| all))
    }

    /// How many files there are of which size, in the usual bins.
    pub fn sizes(&self) -> Result<&Sizes> {
        if let Some(known) = self.sizes.get() {
            return Ok(known);
        }
        let sizes = self.sizes_in(usual_bounds())?;
        Ok(self.sizes.get_or_init(|| sizes))
    }

    /// The same in bins that begin at these sizes, ascending.
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

    /// What vectors delete of them.
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
        let parts = on_threads(&self.pieces(FileKind::Add), interrupt, &of_piece)?;
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

    /// From now on this row, which counted, does not.
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

    /// Applies commits in order. Rows of small ones are gathered into one segment of adds and one of removes.
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
            for (which, kind, batches) in [(0, FileKind::Remove, &commit.removes), (1, FileKind::Add, &commit.adds)] {
                for batch in batches {
                    let rows = batch.num_rows();
                    if rows > SMALL {
                        spans.push(Span { segment: first + 2 + large.len(), from: 0, rows });
                        large.push(Segment::held(&self.root, kind, batch.clone())?);
                    } else {
                        spans.push(Span { segment: first + which, from: gathered[which], rows });
                        gathered[which] += rows;
                        small[which].push(batch.clone());
                    }
                }
            }
        }
        let mut segments = Vec::with_capacity(2 + large.len());
        for (kind, schema, batches) in [(FileKind::Remove, &REMOVE, &small[0]), (FileKind::Add, &ADD, &small[1])] {
            segments.push(Segment::held(&self.root, kind, concat_batches(schema, batches)?)?);
        }
        segments.extend(large);
        self.push(segments)?;
        for at in replaced(&self.root, &self.segments, first, &spans, interrupt)? {
            self.forget(at.segment, at.row)?;
        }
        Ok(())
    }

    /// Keeps the number of segments small: small ones are merged, then those of middle size that come of it. What lies in a checkpoint
    /// stays there.
    fn compact(&mut self, interrupt: &Interrupt) -> Result<()> {
        self.segments.retain(|segment| segment.live_count() > 0);
        for (most, rows) in [(MAX_SMALL, SMALL), (MAX_MIDDLE, LARGE)] {
            let fits = |segment: &Segment| segment.is_held() && segment.live_count() <= rows;
            let fitting: Vec<&Segment> = self.segments.iter().filter(|segment| fits(segment)).collect();
            // Those of two sidecars are never merged, so that the sidecars can be named again.
            let name = |segment: &Segment| segment.origin().map(|origin| origin.sidecar.name.clone());
            let left: BTreeSet<_> = fitting.iter().map(|segment| (segment.kind() == FileKind::Add, name(segment))).collect();
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

    /// Makes one segment of each kind of those that are chosen, without what no longer counts.
    fn merge(&mut self, chosen: &dyn Fn(&Segment) -> bool, interrupt: &Interrupt) -> Result<()> {
        let (merged, mut kept): (Vec<Segment>, Vec<Segment>) = std::mem::take(&mut self.segments).into_iter().partition(chosen);
        for (kind, schema) in [(FileKind::Add, &ADD), (FileKind::Remove, &REMOVE)] {
            let mut gathered = SidecarRows::default();
            for segment in merged.iter().filter(|segment| segment.kind() == kind) {
                gathered.push(segment, interrupt)?;
            }
            for (origin, batches) in gathered {
                let segment = Segment::held(&self.root, kind, concat_batches(schema, &batches)?)?;
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
