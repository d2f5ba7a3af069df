//! The live files of one version: segments of actions, a bitmap of what lives in each, totals, and the newest of everything else.
//!
//! Immutable. A newer version shares the segments and the index of the older one and adds what its commits say
//! ("Action Reconciliation": for each key the newest action counts; an add makes the file live, a remove leaves a tombstone).

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{concat_batches, filter_record_batch};
use serde::Deserialize;

use super::checkpoint::Checkpoint;
use super::commit::{Commit, Places, Transactions};
use super::compaction::first_version;
use super::index::{Index, Keys, Position};
use super::line::FileKind;
use super::schema::{ADD, REMOVE, long};
use super::sidecar::{Gathered, Origin, Provenance};
use super::skipping::{Selection, on_threads, select};
use super::{actions, checkpoint};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::predicate::Predicate;
use crate::store::Store;

/// So many segments after the shared ones before they are merged into one.
const MAX_RECENT_SEGMENTS: usize = 16;
/// Segments of a first load that are left as they were read.
const MAX_SEGMENTS: usize = 256;
/// Recent entries that are always cheap to copy with each version.
const CHEAP_TO_COPY: usize = 4096;

/// Actions of one kind, and which of them still count.
#[derive(Debug, Clone)]
pub struct Segment {
    kind: FileKind,
    rows: Arc<RecordBatch>,
    live: Arc<Vec<u64>>,
    origin: Provenance,
}

impl Segment {
    fn new(kind: FileKind, rows: RecordBatch) -> Self {
        let mut live = vec![u64::MAX; rows.num_rows().div_ceil(64)];
        if let Some(last) = live.last_mut().filter(|_| !rows.num_rows().is_multiple_of(64)) {
            *last = (1 << (rows.num_rows() % 64)) - 1;
        }
        Self { kind, rows: Arc::new(rows), live: Arc::new(live), origin: Provenance::default() }
    }

    /// Adds or removes.
    pub fn kind(&self) -> FileKind {
        self.kind
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
        self.live.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn forget(&mut self, row: u32) {
        Arc::make_mut(&mut self.live)[row as usize / 64] &= !(1 << (row % 64));
    }

    /// They themselves.
    pub fn living(&self) -> Result<RecordBatch> {
        let rows = self.rows.num_rows();
        if self.live_count() == rows {
            return Ok(self.rows.as_ref().clone());
        }
        let mask = BooleanBuffer::collect_bool(rows, |row| self.live[row / 64] >> (row % 64) & 1 == 1);
        Ok(filter_record_batch(&self.rows, &BooleanArray::new(mask, None))?)
    }
}

/// Consecutive rows of a segment that came from one commit.
struct Span {
    segment: usize,
    from: usize,
    rows: usize,
}

/// One version of a table.
#[derive(Debug, Clone)]
pub struct Snapshot {
    root: String,
    version: u64,
    segments: Vec<Segment>,
    /// Segments below this belong to the index's shared layer.
    shared: usize,
    index: OnceLock<Index>,
    protocol: Option<String>,
    metadata: Option<String>,
    places: Places,
    transactions: Transactions,
    domains: BTreeMap<String, String>,
    file_count: usize,
    size_in_bytes: i64,
    num_records: OnceLock<Option<i64>>,
}

impl Snapshot {
    /// `checkpoint`: its parts (none: from the first commit); `commits`: (version, path), ascending, no gap, up to `version`.
    pub fn load(store: &Arc<dyn Store>, version: u64, parts: &[String], commits: &[(u64, String)], interrupt: &Interrupt) -> Result<Self> {
        check_versions(version, parts.is_empty(), commits)?;
        let mut snapshot = Self::empty(store.location(), commits.first().map_or(version, |first| first_version(first).saturating_sub(1)));
        if !parts.is_empty() {
            snapshot.take_checkpoint(checkpoint::read(store, parts, interrupt)?)?;
        }
        if commits.is_empty() {
            return Ok(snapshot);
        }
        snapshot.refresh(store, commits, interrupt)
    }

    /// What these commits say, whatever came before them.
    pub fn of_commits(root: &str, commits: Vec<Commit>) -> Result<Self> {
        let mut snapshot = Self::empty(root, commits.last().map_or(0, |commit| commit.version));
        snapshot.apply(commits)?;
        Ok(snapshot)
    }

    fn empty(root: &str, version: u64) -> Self {
        Self {
            root: root.to_owned(),
            version,
            segments: Vec::new(),
            shared: 0,
            index: OnceLock::new(),
            protocol: None,
            metadata: None,
            places: Places::default(),
            transactions: Transactions::new(),
            domains: BTreeMap::new(),
            file_count: 0,
            size_in_bytes: 0,
            num_records: OnceLock::new(),
        }
    }

    fn take_checkpoint(&mut self, checkpoint: Checkpoint) -> Result<()> {
        let Checkpoint { state, add_origins, remove_origins } = checkpoint;
        (self.protocol, self.metadata, self.transactions) = (state.protocol, state.metadata, state.transactions);
        self.places = state.places;
        self.take_domains(state.domains)?;
        for (kind, batches, origins) in [(FileKind::Add, state.adds, add_origins), (FileKind::Remove, state.removes, remove_origins)] {
            for (rows, sidecar) in batches.into_iter().zip(origins) {
                if kind == FileKind::Add {
                    self.file_count += rows.num_rows();
                    self.size_in_bytes = sizes(&rows)?.fold(self.size_in_bytes, i64::saturating_add);
                }
                let count = rows.num_rows();
                let segment = Segment::new(kind, rows);
                if let Some(sidecar) = sidecar {
                    segment.came_from(Origin { sidecar, live: count, written: count });
                }
                self.segments.push(segment);
            }
        }
        self.shared = self.segments.len();
        Ok(())
    }

    fn take_domains(&mut self, domains: BTreeMap<String, String>) -> Result<()> {
        #[derive(Deserialize)]
        struct Removed {
            #[serde(default)]
            removed: bool,
        }
        for (domain, text) in domains {
            let Removed { removed } = serde_json::from_str(&text)
                .map_err(|error| Error::protocol("a domain's metadata is malformed").at(domain.clone()).caused_by(error))?;
            if removed {
                self.domains.remove(&domain);
            } else {
                self.domains.insert(domain, text);
            }
        }
        Ok(())
    }

    /// The version after these commits: (version, path), ascending, the first right after this one. A compacted range stands as its last.
    pub fn refresh(&self, store: &Arc<dyn Store>, commits: &[(u64, String)], interrupt: &Interrupt) -> Result<Self> {
        let Some((last, _)) = commits.last() else { return Ok(self.clone()) };
        check_versions(*last, false, commits)?;
        if let Some(first) = commits.first().map(first_version)
            && first != self.version + 1
            && !(self.segments.is_empty() && first == 0)
        {
            return Err(Error::protocol("commits that do not follow this version").found(first).expected(self.version + 1));
        }
        let read = on_threads(commits, interrupt, &|(version, path)| Commit::read(store.as_ref(), *version, path, interrupt))?;
        let mut next = self.next(*last)?;
        next.apply(read)?;
        next.compact()?;
        Ok(next)
    }

    fn next(&self, version: u64) -> Result<Self> {
        let index = match self.index.get() {
            Some(index) => index.clone(),
            None => {
                let index = self.build_index()?;
                self.index.get_or_init(|| index).clone()
            }
        };
        Ok(Self { version, index: OnceLock::from(index), num_records: OnceLock::new(), ..self.clone() })
    }

    /// An index of all segments, in the shared layer.
    fn build_index(&self) -> Result<Index> {
        let mut index = Index::default();
        let keys = self.keys()?;
        index.reserve(self.segments.iter().map(Segment::live_count).sum());
        self.enter(&mut index, &keys, 0..self.segments.len());
        index.seal();
        Ok(index)
    }

    fn keys(&self) -> Result<Vec<Keys<'_>>> {
        self.segments.iter().map(|segment| Keys::of(&self.root, &segment.rows)).collect()
    }

    fn enter(&self, index: &mut Index, keys: &[Keys<'_>], segments: std::ops::Range<usize>) {
        for number in segments {
            for row in 0..keys[number].len() {
                if self.segments[number].live[row / 64] >> (row % 64) & 1 == 1 {
                    let at = Position { segment: number as u32, row: row as u32 };
                    index.replace(&keys[number], row, at, |segment| keys.get(segment as usize));
                }
            }
        }
    }

    /// Applies commits in order. Rows of small ones are gathered into one segment of adds and one of removes.
    fn apply(&mut self, commits: Vec<Commit>) -> Result<()> {
        let first = self.segments.len();
        let mut spans: Vec<Span> = Vec::new();
        let mut small: [Vec<RecordBatch>; 2] = Default::default();
        let mut gathered = [0_usize; 2];
        let mut large = Vec::new();
        for commit in commits {
            self.protocol = commit.protocol.or(self.protocol.take());
            self.metadata = commit.metadata.or(self.metadata.take());
            self.places = commit.places.or(std::mem::take(&mut self.places));
            self.transactions.extend(commit.transactions);
            self.take_domains(commit.domains)?;
            for (which, kind, batches) in [(0, FileKind::Remove, commit.removes), (1, FileKind::Add, commit.adds)] {
                for batch in batches {
                    let rows = batch.num_rows();
                    if rows > CHEAP_TO_COPY {
                        spans.push(Span { segment: first + 2 + large.len(), from: 0, rows });
                        large.push(Segment::new(kind, batch));
                    } else {
                        spans.push(Span { segment: first + which, from: gathered[which], rows });
                        gathered[which] += rows;
                        small[which].push(batch);
                    }
                }
            }
        }
        self.segments.push(Segment::new(FileKind::Remove, concat_batches(&REMOVE, &small[0])?));
        self.segments.push(Segment::new(FileKind::Add, concat_batches(&ADD, &small[1])?));
        self.segments.extend(large);
        let mut index = self.index.take().unwrap_or_default();
        let gone = self.replace_in_order(&mut index, &spans)?;
        self.index = OnceLock::from(index);
        for segment in self.segments[first..].iter().filter(|segment| segment.kind == FileKind::Add) {
            self.file_count += segment.rows.num_rows();
            self.size_in_bytes = sizes(&segment.rows)?.fold(self.size_in_bytes, i64::saturating_add);
        }
        for (at, size) in gone {
            let segment = &mut self.segments[at.segment as usize];
            segment.forget(at.row);
            if segment.kind == FileKind::Add {
                self.file_count -= 1;
                self.size_in_bytes = self.size_in_bytes.saturating_sub(size);
            }
        }
        Ok(())
    }

    /// Rows that no longer count, with their sizes.
    fn replace_in_order(&self, index: &mut Index, spans: &[Span]) -> Result<Vec<(Position, i64)>> {
        let keys = self.keys()?;
        let mut gone = Vec::new();
        for span in spans {
            for row in span.from..span.from + span.rows {
                let at = Position { segment: span.segment as u32, row: row as u32 };
                if let Some(before) = index.replace(&keys[span.segment], row, at, |segment| keys.get(segment as usize)) {
                    let sizes = long(&self.segments[before.segment as usize].rows, "size")?;
                    let row = before.row as usize;
                    gone.push((before, if sizes.is_valid(row) { sizes.value(row) } else { 0 }));
                }
            }
        }
        Ok(gone)
    }

    /// Keeps the number of segments, and what is copied with each version, small.
    fn compact(&mut self) -> Result<()> {
        let Some(index) = self.index.get() else { return Ok(()) };
        let recent = index.recent_len();
        let rows = |segments: &[Segment]| segments.iter().map(|segment| segment.rows.num_rows()).sum::<usize>();
        let live: usize = self.segments.iter().map(Segment::live_count).sum();
        let below = rows(&self.segments[..self.shared]);
        if self.shared == 0 && recent > CHEAP_TO_COPY && live * 2 > rows(&self.segments) && self.segments.len() <= MAX_SEGMENTS {
            let mut index = index.clone();
            index.seal();
            self.shared = self.segments.len();
            self.index = OnceLock::from(index);
        } else if recent > CHEAP_TO_COPY.max(below / 4) {
            self.merge_from(0)?;
            self.shared = self.segments.len();
            self.index = OnceLock::from(self.build_index()?);
        } else if self.segments.len() - self.shared > MAX_RECENT_SEGMENTS {
            let mut index = index.clone();
            self.merge_from(self.shared)?;
            index.clear_recent();
            self.enter(&mut index, &self.keys()?, self.shared..self.segments.len());
            self.index = OnceLock::from(index);
        }
        Ok(())
    }

    /// Merges segments from `from` on, dropping what no longer counts; large ones that are mostly alive stay as they are.
    fn merge_from(&mut self, from: usize) -> Result<()> {
        let mut kept = self.segments[..from].to_vec();
        for (kind, schema) in [(FileKind::Add, &ADD), (FileKind::Remove, &REMOVE)] {
            let mut small = Gathered::default();
            for segment in self.segments[from..].iter().filter(|segment| segment.kind == kind) {
                let live = segment.live_count();
                if live > 2 * CHEAP_TO_COPY && live * 2 > segment.rows.num_rows() {
                    kept.push(segment.clone());
                } else if live > 0 {
                    small.push(segment)?;
                }
            }
            for (origin, batches) in small {
                let merged = Segment::new(kind, concat_batches(schema, &batches)?);
                if let Some(origin) = origin {
                    merged.came_from(origin);
                }
                kept.push(merged);
            }
        }
        self.segments = kept;
        Ok(())
    }

    /// Its version.
    pub fn version(&self) -> u64 {
        self.version
    }
    /// JSON of the newest `protocol`.
    pub fn protocol(&self) -> Option<&str> {
        self.protocol.as_deref()
    }
    /// JSON of the newest `metaData`.
    pub fn metadata(&self) -> Option<&str> {
        self.metadata.as_deref()
    }
    /// Where these two stand.
    pub fn places(&self) -> &Places {
        &self.places
    }
    /// The newest `txn` of each application.
    pub fn transactions(&self) -> &Transactions {
        &self.transactions
    }
    /// JSON of the newest `domainMetadata` of each domain that is not removed.
    pub fn domains(&self) -> &BTreeMap<String, String> {
        &self.domains
    }
    /// Live files.
    pub fn file_count(&self) -> usize {
        self.file_count
    }
    /// Their bytes.
    pub fn size_in_bytes(&self) -> i64 {
        self.size_in_bytes
    }

    /// Logical rows of all live files; `None` where one has no numRecords.
    pub fn num_records(&self, interrupt: &Interrupt) -> Result<Option<i64>> {
        if let Some(known) = self.num_records.get() {
            return Ok(*known);
        }
        let pieces: Vec<RecordBatch> = self.living(FileKind::Add)?.iter().flat_map(super::skipping::cut).collect();
        let counts = on_threads(&pieces, interrupt, &actions::logical_rows)?;
        let all: Option<i64> = counts.into_iter().sum();
        Ok(*self.num_records.get_or_init(|| all))
    }

    /// The live files that may hold a match, ordered by path.
    pub fn files(&self, predicate: Option<&Predicate>, skipping: bool, interrupt: &Interrupt) -> Result<Selection> {
        select(&self.living(FileKind::Add)?, predicate, skipping, &ADD, interrupt)
    }

    /// All segments, also those of which nothing counts.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Location of the table.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// What counts of one kind: live adds, or tombstones; no empty batch.
    pub fn living(&self, kind: FileKind) -> Result<Vec<RecordBatch>> {
        let of_kind = self.segments.iter().filter(|segment| segment.kind == kind && segment.live_count() > 0);
        of_kind.map(Segment::living).collect()
    }

    /// Tombstones; with a limit (ms since 1970) only those deleted after it. One without a time counts as deleted in 1970.
    pub fn tombstones(&self, after: Option<i64>) -> Result<Vec<RecordBatch>> {
        let all = self.living(FileKind::Remove)?;
        let Some(after) = after else { return Ok(all) };
        let newer = all.iter().map(|batch| {
            let mask: BooleanArray = long(batch, "deletionTimestamp")?.iter().map(|time| Some(time.unwrap_or(0) > after)).collect();
            Ok(filter_record_batch(batch, &mask)?)
        });
        newer.collect()
    }
}

fn sizes(adds: &RecordBatch) -> Result<impl Iterator<Item = i64> + '_> {
    Ok(long(adds, "size")?.iter().flatten())
}

fn check_versions(version: u64, from_zero: bool, commits: &[(u64, String)]) -> Result<()> {
    for pair in commits.windows(2) {
        let (next, expected) = (first_version(&pair[1]), pair[0].0.saturating_add(1));
        if next != expected {
            return Err(Error::protocol("versions are missing in the log").at(pair[1].1.clone()).found(next).expected(expected));
        }
    }
    match commits {
        [] if from_zero => Err(Error::protocol("a version without checkpoint and commits").found(version)),
        [first, ..] if from_zero && first_version(first) != 0 => Err(Error::protocol("versions are missing in the log")
            .at(first.1.clone())
            .found(first_version(first))
            .expected("0, or a checkpoint")),
        [.., (last, path)] if *last != version => {
            Err(Error::protocol("the commits end at another version").at(path.clone()).found(last).expected(version))
        }
        _ => Ok(()),
    }
}
