//! A snapshot: one version of a table, with its files and the newest action of each other kind. A snapshot
//! does not change; a newer version is made from it and the commits since then.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::filter_record_batch;
use serde::Deserialize;

use super::files::{Changes, Files, LiveSegments};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::log::reading::checkpoint::{self, Checkpoint};
use crate::log::reading::commit::{Commit, Places, Transactions};
use crate::log::reading::compacted::first_version;
use crate::log::reading::line::FileKind;
use crate::log::reading::segment::Columns;
use crate::log::reading::sidecar::newer;
use crate::log::skipping::selection::{Selection, select_live};
use crate::parallel::{in_order, on_threads};
use crate::predicate::Predicate;
use crate::store::Store;

/// A version of a table.
#[derive(Debug, Clone)]
pub struct Snapshot {
    version: u64,
    files: Files,
    /// Maximum number of bytes of a log file whose actions on files are held in memory; those of a larger one
    /// stay in the file.
    eager_limit: u64,
    protocol: Option<String>,
    metadata: Option<String>,
    places: Places,
    transactions: Transactions,
    domains: BTreeMap<String, String>,
}

impl Snapshot {
    /// Loads a version. `checkpoint`: the parts of a checkpoint (empty: begin at the first commit);
    /// `commits`: (version, path), ascending, without a gap, up to `version`. `eager_limit`: actions on files
    /// of a larger checkpoint are decoded when needed.
    pub fn load(
        store: &Arc<dyn Store>,
        version: u64,
        parts: &[String],
        commits: &[(u64, String)],
        eager_limit: u64,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        check_versions(version, parts.is_empty(), commits)?;
        let before = commits.first().map_or(version, |first| first_version(first).saturating_sub(1));
        let mut snapshot = Self::empty(store.location(), before)?;
        snapshot.eager_limit = eager_limit;
        if !parts.is_empty() {
            snapshot.take_checkpoint(checkpoint::read(store, parts, eager_limit, interrupt)?)?;
        }
        if commits.is_empty() {
            return Ok(snapshot);
        }
        snapshot.refresh(store, commits, interrupt)
    }

    /// Makes a snapshot of these commits alone, without the actions before them.
    pub fn of_commits(root: &str, commits: Vec<Commit>) -> Result<Self> {
        let mut snapshot = Self::empty(root, commits.last().map_or(0, |commit| commit.version))?;
        let changes = snapshot.take_commits(commits)?;
        snapshot.files = snapshot.files.after(changes, &Interrupt::default())?;
        Ok(snapshot)
    }

    /// Makes the first version of a table. `commit`: its actions that are not on files; `adds`: its add
    /// actions, in [`crate::log::schema::ADD`], none twice. `eager_limit`: as in `load`, for later commits.
    pub fn first(root: &str, commit: Commit, adds: RecordBatch, eager_limit: u64) -> Result<Self> {
        let files = Files::first(root, adds)?;
        Ok(Self { files, eager_limit, ..Self::of_commits(root, vec![commit])? })
    }

    fn empty(root: &str, version: u64) -> Result<Self> {
        Ok(Self {
            version,
            files: Files::new(root, Vec::new())?,
            eager_limit: u64::MAX,
            protocol: None,
            metadata: None,
            places: Places::default(),
            transactions: Transactions::new(),
            domains: BTreeMap::new(),
        })
    }

    fn take_checkpoint(&mut self, checkpoint: Checkpoint) -> Result<()> {
        let Checkpoint { state, files } = checkpoint;
        (self.protocol, self.metadata, self.transactions) =
            (state.protocol, state.metadata, state.transactions);
        self.places = state.places;
        self.take_domains(state.domains)?;
        self.files = Files::new(self.root(), files)?;
        Ok(())
    }

    fn take_domains(&mut self, domains: BTreeMap<String, String>) -> Result<()> {
        #[derive(Deserialize)]
        struct Removed {
            #[serde(default)]
            removed: bool,
        }
        for (domain, text) in domains {
            let Removed { removed } = serde_json::from_str(&text).map_err(|error| {
                Error::protocol("a domain's metadata is malformed").at(domain.clone()).caused_by(error)
            })?;
            if removed {
                self.domains.remove(&domain);
            } else {
                self.domains.insert(domain, text);
            }
        }
        Ok(())
    }

    /// Returns the version after these commits: (version, path), ascending, the first is the next version. A
    /// compacted range has its last version.
    pub fn refresh(
        &self,
        store: &Arc<dyn Store>,
        commits: &[(u64, String)],
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let Some((last, _)) = commits.last() else { return Ok(self.clone()) };
        check_versions(*last, false, commits)?;
        if let Some(first) = commits.first().map(first_version)
            && first != self.version + 1
            && !(self.files.is_empty() && first == 0)
        {
            return Err(Error::protocol("commits that do not follow this version")
                .found(first)
                .expected(self.version + 1));
        }
        let read = |(version, path): &(u64, String)| {
            Commit::read_or_leave(store, *version, path, self.eager_limit, interrupt)
        };
        let read = if are_short(store.as_ref(), commits) {
            in_order(commits, interrupt, &read)
        } else {
            on_threads(commits, interrupt, &read)
        }?;
        let mut next = Self { version: *last, ..self.clone() };
        let changes = next.take_commits(read)?;
        next.files = self.files.after(changes, interrupt)?;
        Ok(next)
    }

    /// Applies all actions of commits that are not on files, in order, and returns those on files.
    fn take_commits(&mut self, commits: Vec<Commit>) -> Result<Vec<Changes>> {
        let take = |commit: Commit| {
            self.protocol = commit.protocol.or(self.protocol.take());
            self.metadata = commit.metadata.or(self.metadata.take());
            self.places = commit.places.or(std::mem::take(&mut self.places));
            self.transactions.extend(commit.transactions);
            self.take_domains(commit.domains)?;
            Ok(Changes { removes: commit.removes, adds: commit.adds, stored: commit.files })
        };
        commits.into_iter().map(take).collect()
    }

    /// Returns the snapshot's version.
    pub fn version(&self) -> u64 {
        self.version
    }
    /// Returns the JSON of the newest `protocol`.
    pub fn protocol(&self) -> Option<&str> {
        self.protocol.as_deref()
    }
    /// Returns the JSON of the newest `metaData`.
    pub fn metadata(&self) -> Option<&str> {
        self.metadata.as_deref()
    }
    /// Returns the places of `protocol` and `metaData`.
    pub fn places(&self) -> &Places {
        &self.places
    }
    /// Returns the newest `txn` of each application.
    pub fn transactions(&self) -> &Transactions {
        &self.transactions
    }
    /// Returns the JSON of the newest `domainMetadata` of each domain that is not removed.
    pub fn domains(&self) -> &BTreeMap<String, String> {
        &self.domains
    }

    /// Returns the snapshot's files. The call may read files of the log, and returns their errors.
    pub fn live(&self, interrupt: &Interrupt) -> Result<&LiveSegments> {
        self.files.now(interrupt)
    }

    /// True if the snapshot's files are known without reading the log again.
    pub fn is_decoded(&self) -> bool {
        self.files.is_decoded()
    }

    /// Returns the live files that may hold a match, ordered by path.
    pub fn files(
        &self,
        predicate: Option<&Predicate>,
        skipping: bool,
        interrupt: &Interrupt,
    ) -> Result<Selection> {
        let live = self.live(interrupt)?;
        let totals =
            Selection { total_files: live.count(), total_bytes: live.bytes(), ..Selection::default() };
        select_live(self.root(), &live.pieces(FileKind::Add), totals, predicate, skipping, interrupt)
    }

    /// Returns the location of the table.
    pub fn root(&self) -> &str {
        self.files.root()
    }

    /// Returns live adds, or tombstones, without empty batches.
    pub fn living(&self, kind: FileKind, interrupt: &Interrupt) -> Result<Vec<RecordBatch>> {
        let read = on_threads(&self.live(interrupt)?.pieces(kind), interrupt, &|piece| {
            piece.read(Columns::All, &piece.live(), interrupt)
        })?;
        Ok(read.into_iter().flatten().collect())
    }

    /// Returns the tombstones. With `after` (ms since 1970), only those deleted later; one without a time
    /// counts as deleted in 1970.
    pub fn tombstones(&self, after: Option<i64>, interrupt: &Interrupt) -> Result<Vec<RecordBatch>> {
        let all = self.living(FileKind::Remove, interrupt)?;
        let Some(after) = after else { return Ok(all) };
        all.iter().map(|batch| Ok(filter_record_batch(batch, &newer(batch, after)?)?)).collect()
    }
}

/// Maximum number of commits that are read in a few milliseconds.
const MOST_SHORT: usize = 32;
/// Maximum number of bytes of these commits.
const SHORT: u64 = 256 << 10;

/// True if the commits are read and parsed in a few milliseconds.
pub fn are_short(store: &dyn Store, commits: &[(u64, String)]) -> bool {
    let size = |(_, path): &(u64, String)| store.head(path).ok().flatten().map(|found| found.size);
    store.is_brief()
        && commits.len() <= MOST_SHORT
        && commits.iter().map(size).sum::<Option<u64>>().is_some_and(|bytes| bytes <= SHORT)
}

fn check_versions(version: u64, from_zero: bool, commits: &[(u64, String)]) -> Result<()> {
    for pair in commits.windows(2) {
        let (next, expected) = (first_version(&pair[1]), pair[0].0.saturating_add(1));
        if next != expected {
            return Err(Error::protocol("versions are missing in the log")
                .at(pair[1].1.clone())
                .found(next)
                .expected(expected));
        }
    }
    match commits {
        [] if from_zero => Err(Error::protocol("a version without checkpoint and commits").found(version)),
        [first, ..] if from_zero && first_version(first) != 0 => {
            Err(Error::protocol("versions are missing in the log")
                .at(first.1.clone())
                .found(first_version(first))
                .expected("0, or a checkpoint"))
        }
        [.., (last, path)] if *last != version => Err(Error::protocol("the commits end at another version")
            .at(path.clone())
            .found(last)
            .expected(version)),
        _ => Ok(()),
    }
}
