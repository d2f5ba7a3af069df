//! Tests that a version is the same whichever files of the log it is read from, and the same as when its
//! actions are applied one by one ("Action Reconciliation" of PROTOCOL.md), and that lines that are no commit
//! are refused with their place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use proptest::prelude::*;

use super::reading::commit::{Commit, vector_id};
use super::reading::line::FileKind;
use super::schema::{long, text, vectors};
use super::state::snapshot::Snapshot;
use super::writing::checkpoint_writer::Choices;
use super::writing::{checkpoint_v2, checkpoint_writer, compaction};
use crate::interrupt::Interrupt;
use crate::store::{OpenOptions, Store, open};

/// Path, and offset of the deletion vector within its file; None: no vector.
type File = (String, Option<i32>);

const PROTOCOL: &str = r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#;
/// Fields that each `add` has.
const ADDED: &str = r#""partitionValues":{},"modificationTime":1,"dataChange":true"#;

/// The state of a version.
#[derive(Debug, Clone, Default, PartialEq)]
struct State {
    /// Live files and their sizes.
    live: BTreeMap<File, i64>,
    tombstones: BTreeSet<File>,
    /// appId -> version
    transactions: BTreeMap<String, i64>,
    domains: BTreeSet<String>,
}

/// One change of a commit.
#[derive(Debug, Clone)]
enum Change {
    /// Gives the file this vector; `None`: no vector.
    Put(u8, Option<i32>),
    Remove(u8),
    Transaction(u8),
    Domain(u8, bool),
}

/// Generates commits, each of which changes a file, an application or a domain at most once.
fn histories() -> impl Strategy<Value = Vec<Vec<Change>>> {
    let change = prop_oneof![
        4 => (0..6_u8, proptest::option::of(1..4_i32)).prop_map(|(path, vector)| Change::Put(path, vector)),
        2 => (0..6_u8).prop_map(Change::Remove),
        1 => (0..2_u8).prop_map(Change::Transaction),
        1 => (0..2_u8, any::<bool>()).prop_map(|(domain, removed)| Change::Domain(domain, removed)),
    ];
    let once = |changes: Vec<Change>| {
        let key = |change: &Change| match change {
            Change::Put(path, _) | Change::Remove(path) => (0, *path),
            Change::Transaction(app) => (1, *app),
            Change::Domain(domain, _) => (2, *domain),
        };
        changes
            .into_iter()
            .map(|change| (key(&change), change))
            .collect::<BTreeMap<_, _>>()
            .into_values()
            .collect()
    };
    proptest::collection::vec(proptest::collection::vec(change, 1..8).prop_map(once), 2..9)
}

impl State {
    /// Applies a commit, and returns its lines.
    fn apply(&mut self, version: i64, changes: &[Change]) -> Vec<String> {
        let mut lines = vec![r#"{"commitInfo":{"operation":"WRITE"}}"#.to_owned()];
        for change in changes {
            match change {
                Change::Put(path, vector) => {
                    let file = (format!("part-{path}.parquet"), *vector);
                    if let Some(old) = self.live_of(&file.0).filter(|old| *old != file) {
                        lines.push(self.remove(&old, version));
                    }
                    let size = version * 10 + i64::from(*path);
                    lines.push(format!(
                        r#"{{"add":{{"path":"{}","size":{size},{ADDED}{}}}}}"#,
                        file.0,
                        descriptor(*vector),
                    ));
                    self.tombstones.remove(&file);
                    self.live.insert(file, size);
                }
                Change::Remove(path) => {
                    if let Some(old) = self.live_of(&format!("part-{path}.parquet")) {
                        lines.push(self.remove(&old, version));
                    }
                }
                Change::Transaction(app) => {
                    lines.push(format!(r#"{{"txn":{{"appId":"app-{app}","version":{version}}}}}"#));
                    self.transactions.insert(format!("app-{app}"), version);
                }
                Change::Domain(domain, removed) => {
                    let rest = format!(r#""configuration":"{{}}","removed":{removed}"#);
                    lines.push(format!(r#"{{"domainMetadata":{{"domain":"domain-{domain}",{rest}}}}}"#));
                    self.domains.remove(&format!("domain-{domain}"));
                    self.domains.extend((!removed).then(|| format!("domain-{domain}")));
                }
            }
        }
        lines
    }

    fn live_of(&self, path: &str) -> Option<File> {
        self.live.keys().find(|(live, _)| live == path).cloned()
    }

    fn remove(&mut self, file: &File, version: i64) -> String {
        self.live.remove(file);
        self.tombstones.insert(file.clone());
        format!(
            r#"{{"remove":{{"path":"{}","deletionTimestamp":{},"dataChange":true{}}}}}"#,
            file.0,
            version + 1,
            descriptor(file.1),
        )
    }

    /// Returns the state of a snapshot.
    fn of(snapshot: &Snapshot) -> Self {
        let batches = |kind| snapshot.living(kind, &Interrupt::default()).unwrap();
        let live: Vec<_> = batches(FileKind::Add)
            .iter()
            .flat_map(|batch| files(batch).into_iter().zip(long(batch, "size").unwrap().values().to_vec()))
            .collect();
        let tombstones: Vec<_> = batches(FileKind::Remove).iter().flat_map(files).collect();
        let found = Self {
            live: live.iter().cloned().collect(),
            tombstones: tombstones.iter().cloned().collect(),
            transactions: snapshot
                .transactions()
                .iter()
                .map(|(app, (version, _))| (app.clone(), *version))
                .collect(),
            domains: snapshot.domains().keys().cloned().collect(),
        };
        assert_eq!((found.live.len(), found.tombstones.len()), (live.len(), tombstones.len()), "none twice");
        let totals = snapshot.live(&Interrupt::default()).unwrap();
        assert_eq!((totals.count(), totals.bytes()), (live.len(), live.iter().map(|(_, size)| size).sum()));
        found
    }
}

fn descriptor(vector: Option<i32>) -> String {
    vector.map_or_else(String::new, |offset| {
        let place = r#""storageType":"u","pathOrInlineDv":"ab^-aqEH.-t@S}K{vb[*k^""#;
        format!(r#","deletionVector":{{{place},"offset":{offset},"sizeInBytes":4,"cardinality":1}}"#)
    })
}

fn files(batch: &RecordBatch) -> Vec<File> {
    let (paths, vectors) = (text(batch, "path").unwrap(), vectors(batch).unwrap());
    let offset = |row| vector_id(vectors, row).and_then(|(_, _, offset)| offset);
    (0..batch.num_rows()).map(|row| (paths.value(row).to_owned(), offset(row))).collect()
}

/// Returns an empty store.
fn store() -> Arc<dyn Store> {
    static OPENED: AtomicU64 = AtomicU64::new(0);
    let number = OPENED.fetch_add(1, Ordering::Relaxed);
    open(&format!("memory://log-tests-{number}/table"), &OpenOptions::default()).unwrap()
}

fn path(version: u64) -> String {
    format!("_delta_log/{version:020}.json")
}

/// Writes a history to a store, and returns the state of each version.
fn written(store: &Arc<dyn Store>, history: &[Vec<Change>]) -> Vec<State> {
    let mut state = State::default();
    let mut states = Vec::new();
    for (version, changes) in history.iter().enumerate() {
        let mut lines = state.apply(version as i64, changes);
        if version == 0 {
            lines.push(PROTOCOL.to_owned());
            let rest = r#""format":{"provider":"parquet"},"partitionColumns":[],"configuration":{}"#;
            lines.push(format!(r#"{{"metaData":{{"id":"a","schemaString":"{{}}",{rest}}}}}"#));
        }
        store.put(&path(version as u64), lines.join("\n").into()).unwrap();
        states.push(state.clone());
    }
    states
}

fn commits(versions: std::ops::RangeInclusive<u64>) -> Vec<(u64, String)> {
    versions.map(|version| (version, path(version))).collect()
}

/// Loads a version from a checkpoint (`None`: from the first commit) and commits. `hold`: number of bytes
/// above which actions stay in their files.
fn load(
    store: &Arc<dyn Store>,
    parts: &[String],
    commits: &[(u64, String)],
    version: u64,
    hold: u64,
) -> Snapshot {
    Snapshot::load(store, version, parts, commits, hold, &Interrupt::default()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn each_version_is_what_its_commits_say(history in histories()) {
        let store = store();
        let states = written(&store, &history);
        let mut refreshed: Option<Snapshot> = None;
        for (version, state) in (0_u64..).zip(&states) {
            for hold in [u64::MAX, 0] {
                prop_assert_eq!(&State::of(&load(&store, &[], &commits(0..=version), version, hold)), state);
            }
            let next = match refreshed {
                None => load(&store, &[], &commits(0..=0), 0, u64::MAX),
                Some(before) => {
                    before.refresh(&store, &commits(version..=version), &Interrupt::default()).unwrap()
                }
            };
            prop_assert_eq!(&State::of(&next), state);
            refreshed = Some(next);
        }
    }

    #[test]
    fn a_checkpoint_stands_for_the_commits_before_it(
        history in histories(), at in any::<prop::sample::Index>()
    ) {
        let store = store();
        let states = written(&store, &history);
        let (last, at) = (states.len() as u64 - 1, at.index(states.len()) as u64);
        let before = load(&store, &[], &commits(0..=at), at, u64::MAX);
        let choices = Choices { stats_as_json: true, ..Choices::default() };
        let [classic, second] =
            ["classic", "second"].map(|kind| format!("_delta_log/{at:020}.{kind}.checkpoint.parquet"));
        checkpoint_writer::write(&before, &*store, &classic, &choices, &Interrupt::default()).unwrap();
        checkpoint_v2::write(&before, &*store, &second, ("id", 1), &choices, &Interrupt::default()).unwrap();
        for parts in [[classic], [second]] {
            for hold in [u64::MAX, 0] {
                let after = if at == last { Vec::new() } else { commits(at + 1..=last) };
                let found = load(&store, &parts, &after, last, hold);
                prop_assert_eq!(&State::of(&found), &states[last as usize]);
                // The next checkpoint of the second form keeps sidecars of this one.
                let again = format!("_delta_log/{last:020}.again.checkpoint.parquet");
                let id = ("again", 2);
                checkpoint_v2::write(&found, &*store, &again, id, &choices, &Interrupt::default()).unwrap();
                let found = load(&store, std::slice::from_ref(&again), &[], last, hold);
                prop_assert_eq!(&State::of(&found), &states[last as usize]);
                store.delete(&again).unwrap();
            }
        }
    }

    #[test]
    fn a_compacted_range_stands_for_its_commits(
        history in histories(), first in any::<prop::sample::Index>(), end in any::<prop::sample::Index>()
    ) {
        let store = store();
        let states = written(&store, &history);
        let (one, other) = (first.index(states.len()) as u64, end.index(states.len()) as u64);
        let (from, to, last) = (one.min(other), one.max(other), states.len() as u64 - 1);
        let lines = compaction::compact(&store, &commits(from..=to), &Interrupt::default()).unwrap();
        prop_assume!(!lines.is_empty()); // commits that change nothing have no actions to keep
        let range = format!("_delta_log/{from:020}.{to:020}.compacted.json");
        store.put(&range, lines).unwrap();
        let mut listed = if from == 0 { Vec::new() } else { commits(0..=from - 1) };
        listed.push((to, range));
        listed.extend(if to == last { Vec::new() } else { commits(to + 1..=last) });
        for hold in [u64::MAX, 0] {
            prop_assert_eq!(&State::of(&load(&store, &[], &listed, last, hold)), &states[last as usize]);
        }
    }
}

#[test]
fn lines_that_are_no_commit_are_refused_with_their_place() {
    let add = format!(r#"{{"add":{{"path":"a","size":1,{ADDED}}}}}"#);
    let deep = format!(r#"{{"metaData":{{"a":{}1{}}}}}"#, "[".repeat(2_000), "]".repeat(2_000));
    for (lines, place, words) in [
        (String::new(), "c.json", "the file is empty"),
        (format!("\u{feff}{add}"), "c.json:1", "byte order mark"),
        (format!("{add}\n{{\"add\":"), "c.json:2", "no valid action"),
        (format!("{add}\n[]"), "c.json:2", "no valid action"),
        (format!("{PROTOCOL}\n{PROTOCOL}"), "c.json:2", "two of protocol"),
        (format!("{PROTOCOL}\n{deep}"), "c.json:2", "nested deeper"),
        (r#"{"add":{"path":"","dataChange":true}}"#.to_owned(), "c.json:1", "an empty path"),
        (r#"{"add":{"path":"a"}}"#.to_owned(), "c.json:1", "partitionValues"),
        (add.replace(r#""size":1"#, r#""size":-1"#), "c.json:1", "size -1"),
        (r#"{"remove":{"path":"a"}}"#.to_owned(), "c.json:1", "dataChange"),
        (r#"{"add":{"path":"a"},"remove":{"path":"a"}}"#.to_owned(), "c.json:1", "two actions"),
        (r#"{"txn":{"appId":"a"}}"#.to_owned(), "c.json:1", "version"),
        (r#"{"domainMetadata":3}"#.to_owned(), "c.json:1", "is no object"),
    ] {
        let error = Commit::parse(lines.as_bytes(), "c.json", &Interrupt::default()).unwrap_err();
        assert_eq!(error.location(), Some(place), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn what_a_later_release_adds_is_ignored() {
    let lines = [
        r#"{"newAction":{"a":[1,2]}}"#,
        "\r\n\n",
        r#"{"add":{"path":"a","size":1,"modificationTime":1,"dataChange":true,"#,
        r#""partitionValues":{"p":null},"new":{}}}"#,
        "\n",
        r#"{"remove":null,"txn":{"appId":"a","version":3,"new":1}}"#,
    ]
    .concat();
    let commit = Commit::parse(lines.as_bytes(), "c.json", &Interrupt::default()).unwrap();
    assert_eq!((commit.adds[0].num_rows(), commit.removes.len(), commit.actions), (1, 0, 3));
    assert_eq!(commit.transactions["a"], (3, None));
}

#[test]
fn commits_with_a_gap_are_no_version() {
    let store = store();
    written(&store, &[vec![Change::Put(0, None)], vec![Change::Remove(0)], vec![Change::Put(1, None)]]);
    let gap = [(0, path(0)), (2, path(2))];
    for (version, listed, words) in [
        (2, &gap[..], "versions are missing in the log"),
        (1, &gap[1..], "versions are missing in the log"),
        (1, &gap[..1], "the commits end at another version"),
        (1, &[], "a version without checkpoint and commits"),
    ] {
        let error = Snapshot::load(&store, version, &[], listed, 0, &Interrupt::default()).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}
