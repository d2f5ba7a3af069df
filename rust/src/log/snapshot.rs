//! The live files of one version: segments of actions, a bitmap of what lives in each, totals, and the newest of everything else.
//!
//! Immutable. A newer version shares the segments of the older one and adds what its commits say
//! ("Action Reconciliation": for each key the newest action counts; an add makes the file live, a remove leaves a tombstone).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::{concat_batches, filter_record_batch};
use serde::Deserialize;

use super::actions;
use super::checkpoint::{self, Checkpoint};
use super::commit::{Commit, Places, Transactions};
use super::compaction::first_version;
use super::line::FileKind;
use super::replay::{Span, replaced};
use super::schema::{ADD, REMOVE, long};
use super::segment::{Columns, Piece, Segment};
use super::sidecar::Gathered;
use super::skipping::{Selection, on_threads, select_live};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::predicate::Predicate;
use crate::store::Store;

/// So many small segments are merged into one.
const MAX_SMALL: usize = 16;
/// A segment of no more rows is small: it is cheap to write anew with its neighbours.
const SMALL: usize = 4096;
/// So many segments of middle size are merged into one.
const MAX_MIDDLE: usize = 64;
/// One of more rows is large: it stays as it is while half of them count.
const LARGE: usize = 128 * 1024;

/// One version of a table.
#[derive(Debug, Clone)]
pub struct Snapshot {
    root: String,
    version: u64,
    segments: Vec<Segment>,
    /// Of files of the log with more bytes, actions stay there.
    hold: u64,
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
    /// `checkpoint`: its parts (none: from the first commit); `commits`: (version, path), ascending, no gap, up to `version`. `hold`: of a
    /// checkpoint of more bytes the files stay there until they are asked for.
    pub fn load(
        store: &Arc<dyn Store>,
        version: u64,
        parts: &[String],
        commits: &[(u64, String)],
        hold: u64,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        check_versions(version, parts.is_empty(), commits)?;
        let mut snapshot = Self::empty(store.location(), commits.first().map_or(version, |first| first_version(first).saturating_sub(1)));
        snapshot.hold = hold;
        if !parts.is_empty() {
            snapshot.take_checkpoint(checkpoint::read(store, parts, hold, interrupt)?)?;
        }
        if commits.is_empty() {
            return Ok(snapshot);
        }
        snapshot.refresh(store, commits, interrupt)
    }

    /// What these commits say, whatever came before them.
    pub fn of_commits(root: &str, commits: Vec<Commit>) -> Result<Self> {
        let mut snapshot = Self::empty(root, commits.last().map_or(0, |commit| commit.version));
        snapshot.apply(commits, &Interrupt::default())?;
        Ok(snapshot)
    }

    fn empty(root: &str, version: u64) -> Self {
        Self {
            root: root.to_owned(),
            version,
            segments: Vec::new(),
            hold: u64::MAX,
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
        let Checkpoint { state, files } = checkpoint;
        (self.protocol, self.metadata, self.transactions) = (state.protocol, state.metadata, state.transactions);
        self.places = state.places;
        self.take_domains(state.domains)?;
        for segment in files.iter().filter(|segment| segment.kind() == FileKind::Add) {
            self.file_count += segment.len();
            self.size_in_bytes = self.size_in_bytes.saturating_add(segment.sizes()?);
        }
        self.segments = files;
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
        let read = on_threads(commits, interrupt, &|(version, path)| Commit::read_or_leave(store, *version, path, self.hold, interrupt))?;
        let mut next = Self { version: *last, num_records: OnceLock::new(), ..self.clone() };
        next.apply(read, interrupt)?;
        next.compact(interrupt)?;
        Ok(next)
    }

    /// Applies commits in order. Rows of small ones are gathered into one segment of adds and one of removes.
    fn apply(&mut self, commits: Vec<Commit>, interrupt: &Interrupt) -> Result<()> {
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
            for segment in commit.files {
                spans.push(Span { segment: first + 2 + large.len(), from: 0, rows: segment.len() });
                large.push(segment);
            }
            for (which, kind, batches) in [(0, FileKind::Remove, commit.removes), (1, FileKind::Add, commit.adds)] {
                for batch in batches {
                    let rows = batch.num_rows();
                    if rows > SMALL {
                        spans.push(Span { segment: first + 2 + large.len(), from: 0, rows });
                        large.push(Segment::held(&self.root, kind, batch)?);
                    } else {
                        spans.push(Span { segment: first + which, from: gathered[which], rows });
                        gathered[which] += rows;
                        small[which].push(batch);
                    }
                }
            }
        }
        for (kind, schema, batches) in [(FileKind::Remove, &REMOVE, &small[0]), (FileKind::Add, &ADD, &small[1])] {
            self.segments.push(Segment::held(&self.root, kind, concat_batches(schema, batches)?)?);
        }
        self.segments.extend(large);
        for segment in self.segments[first..].iter().filter(|segment| segment.kind() == FileKind::Add) {
            self.file_count += segment.len();
            self.size_in_bytes = self.size_in_bytes.saturating_add(segment.sizes()?);
        }
        for at in replaced(&self.segments, first, &spans, interrupt)? {
            let segment = &mut self.segments[at.segment];
            segment.forget(at.row);
            if segment.kind() == FileKind::Add {
                self.file_count -= 1;
                self.size_in_bytes = self.size_in_bytes.saturating_sub(segment.size(at.row)?);
            }
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
            let mut gathered = Gathered::default();
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
        let count = |piece: &Piece<'_>| {
            let read = piece.read(Columns::Of(&["stats", "deletionVector"]), &piece.live(), interrupt)?;
            read.iter().map(actions::logical_rows).sum::<Result<Option<i64>>>()
        };
        let counts = on_threads(&self.pieces(FileKind::Add), interrupt, &count)?;
        let all: Option<i64> = counts.into_iter().sum();
        Ok(*self.num_records.get_or_init(|| all))
    }

    /// What counts of one kind, in parts for several threads.
    pub fn pieces(&self, kind: FileKind) -> Vec<Piece<'_>> {
        let of_kind = self.segments.iter().filter(|segment| segment.kind() == kind && segment.live_count() > 0);
        of_kind.flat_map(Segment::pieces).collect()
    }

    /// The live files that may hold a match, ordered by path.
    pub fn files(&self, predicate: Option<&Predicate>, skipping: bool, interrupt: &Interrupt) -> Result<Selection> {
        let (total_files, total_bytes) = (self.file_count, self.size_in_bytes);
        select_live(
            &self.pieces(FileKind::Add),
            Selection { total_files, total_bytes, ..Selection::default() },
            predicate,
            skipping,
            interrupt,
        )
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
    pub fn living(&self, kind: FileKind, interrupt: &Interrupt) -> Result<Vec<RecordBatch>> {
        let read = on_threads(&self.pieces(kind), interrupt, &|piece| piece.read(Columns::All, &piece.live(), interrupt))?;
        Ok(read.into_iter().flatten().collect())
    }

    /// Tombstones; with a limit (ms since 1970) only those deleted after it. One without a time counts as deleted in 1970.
    pub fn tombstones(&self, after: Option<i64>, interrupt: &Interrupt) -> Result<Vec<RecordBatch>> {
        let all = self.living(FileKind::Remove, interrupt)?;
        let Some(after) = after else { return Ok(all) };
        let newer = all.iter().map(|batch| {
            let mask: BooleanArray = long(batch, "deletionTimestamp")?.iter().map(|time| Some(time.unwrap_or(0) > after)).collect();
            Ok(filter_record_batch(batch, &mask)?)
        });
        newer.collect()
    }
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
