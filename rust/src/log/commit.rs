//! A commit file: JSON lines -> Arrow, cut at line ends and read on several threads. Every fault names file and line.

use std::collections::BTreeMap;

use arrow::array::{Array, RecordBatch};
use hashbrown::HashTable;
use serde::Deserialize;

use super::compaction::{check_reconciled, is_compacted};
use super::line::{Action, FileActions, FileKind, TextKind};
use super::schema::{self, text};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::store::{Store, canonical};

/// Longest line.
const MAX_LINE: usize = 64 << 20;
/// Least bytes that are worth a thread.
const MIN_CHUNK: usize = 1 << 20;

/// appId -> (version, lastUpdated in ms).
pub type Transactions = BTreeMap<String, (i64, Option<i64>)>;

/// One parsed commit, or the lines of a JSON checkpoint.
#[derive(Debug, Default)]
pub struct Commit {
    /// Its version.
    pub version: u64,
    /// JSON of the action; so the two below.
    pub commit_info: Option<String>,
    /// `protocol`
    pub protocol: Option<String>,
    /// `metaData`
    pub metadata: Option<String>,
    /// `txn` by application.
    pub transactions: Transactions,
    /// JSON of `domainMetadata` by domain.
    pub domains: BTreeMap<String, String>,
    /// JSON of `sidecar` actions.
    pub sidecars: Vec<String>,
    /// Batches in [`schema::ADD`].
    pub adds: Vec<RecordBatch>,
    /// Batches in [`schema::REMOVE`].
    pub removes: Vec<RecordBatch>,
    /// It has change files.
    pub has_cdc: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Transaction {
    app_id: String,
    version: i64,
    last_updated: Option<i64>,
}

#[derive(Deserialize)]
struct Domain {
    domain: String,
}

impl Commit {
    /// Reads and parses the commit, or the compacted range, at `path`.
    pub fn read(store: &dyn Store, version: u64, path: &str, interrupt: &Interrupt) -> Result<Self> {
        let data = store.get(path)?;
        let commit = Self { version, ..Self::parse(&data, path, interrupt)? };
        if is_compacted(path) {
            check_reconciled(store.location(), path, &commit)?;
        } else {
            check_once(store.location(), path, &commit.adds, &commit.removes)?;
        }
        Ok(commit)
    }

    /// Parses the lines of a commit; `path` is for messages.
    pub fn parse(data: &[u8], path: &str, interrupt: &Interrupt) -> Result<Self> {
        if data.starts_with(b"\xef\xbb\xbf") {
            return Err(Error::protocol("the file begins with a byte order mark").at(format!("{path}:1")).expected("a JSON object"));
        }
        let chunks = cut(data, std::thread::available_parallelism().map_or(1, usize::from).min(8));
        let mut parsed: Vec<Result<Chunk, Fault>> = Vec::new();
        if let [only] = chunks.as_slice() {
            parsed.push(Chunk::parse(&data[only.clone()], only.start, interrupt));
        } else {
            std::thread::scope(|scope| {
                let workers: Vec<_> =
                    chunks.iter().map(|chunk| scope.spawn(move || Chunk::parse(&data[chunk.clone()], chunk.start, interrupt))).collect();
                parsed.extend(workers.into_iter().map(|worker| {
                    worker.join().unwrap_or_else(|_| Err(Fault { offset: 0, error: Error::protocol("the commit could not be read") }))
                }));
            });
        }
        let mut commit = Self::default();
        let mut lines = 0;
        for chunk in parsed {
            let chunk = chunk.map_err(|fault| fault.locate(data, path))?;
            lines += chunk.lines;
            commit.take(chunk).map_err(|fault| fault.locate(data, path))?;
        }
        if lines == 0 {
            return Err(Error::protocol("the file is empty").at(path).found(format!("{} bytes", data.len())).expected("JSON lines"));
        }
        Ok(commit)
    }

    /// Of the lines of a commit only those that are no actions on files.
    pub fn parse_definition(data: &[u8], path: &str, interrupt: &Interrupt) -> Result<Self> {
        const FILES: [&[u8]; 3] = [b"{\"add\":", b"{\"remove\":", b"{\"cdc\":"];
        let mut commit = Self::default();
        for line in data.split(|byte| *byte == b'\n').filter(|line| !FILES.iter().any(|name| line.starts_with(name))) {
            let offset = line.as_ptr() as usize - data.as_ptr() as usize;
            let chunk = Chunk::parse(line, offset, interrupt).map_err(|fault| fault.locate(data, path))?;
            commit.take(chunk).map_err(|fault| fault.locate(data, path))?;
        }
        Ok(commit)
    }

    fn take(&mut self, chunk: Chunk) -> Result<(), Fault> {
        let Chunk { adds, removes, texts, has_cdc, .. } = chunk;
        for (into, actions) in [(&mut self.adds, adds), (&mut self.removes, removes)] {
            if !actions.is_empty() {
                into.push(actions.finish().map_err(|error| Fault { offset: 0, error })?);
            }
        }
        self.has_cdc |= has_cdc;
        for (kind, offset, text) in texts {
            self.take_text(kind, text).map_err(|error| Fault { offset, error })?;
        }
        Ok(())
    }

    fn take_text(&mut self, kind: TextKind, text: String) -> Result<()> {
        match kind {
            TextKind::CommitInfo => {
                self.commit_info.get_or_insert(text);
            }
            TextKind::Protocol => once(&mut self.protocol, text, "protocol")?,
            TextKind::Metadata => once(&mut self.metadata, text, "metaData")?,
            TextKind::Sidecar => self.sidecars.push(text),
            TextKind::Transaction => {
                let txn: Transaction = serde_json::from_str(&text).map_err(malformed)?;
                self.transactions.insert(txn.app_id, (txn.version, txn.last_updated));
            }
            TextKind::Domain => {
                let Domain { domain } = serde_json::from_str(&text).map_err(malformed)?;
                if self.domains.insert(domain.clone(), text).is_some() {
                    return Err(Error::protocol("a domain's metadata twice in one commit").found(domain));
                }
            }
        }
        Ok(())
    }

    /// commitInfo's JSON, found without reading the other actions.
    pub fn find_info(data: &[u8], path: &str) -> Result<Option<String>> {
        let name = b"\"commitInfo\"";
        for line in data.split(|byte| *byte == b'\n') {
            if !line.windows(name.len()).take(64).any(|window| window == name) {
                continue;
            }
            let offset = line.as_ptr() as usize - data.as_ptr() as usize;
            let action = parse_line(line).map_err(|error| Fault { offset, error }.locate(data, path))?;
            if let Action::Text(TextKind::CommitInfo, value) = action {
                return Ok(Some(value.get().to_owned()));
            }
        }
        Ok(None)
    }
}

fn once(slot: &mut Option<String>, text: String, name: &str) -> Result<()> {
    if slot.replace(text).is_some() {
        return Err(Error::protocol("an action twice in one commit").found(format!("two of {name}")).expected("at most one"));
    }
    Ok(())
}

fn malformed(error: serde_json::Error) -> Error {
    // The parser saw one line: its own line number would mislead.
    Error::protocol("the line is no valid action").found(error.to_string().replace(" at line 1 column", ", column"))
}

/// An error and the byte at which its line begins.
struct Fault {
    offset: usize,
    error: Error,
}

impl Fault {
    fn locate(self, data: &[u8], path: &str) -> Error {
        let before = data.get(..self.offset).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        self.error.at(format!("{path}:{line}"))
    }
}

/// About equal ranges of whole lines.
fn cut(data: &[u8], most: usize) -> Vec<std::ops::Range<usize>> {
    let count = (data.len() / MIN_CHUNK).clamp(1, most);
    let mut chunks = Vec::with_capacity(count);
    let mut start = 0;
    for index in 1..=count {
        let about = data.len() * index / count;
        let end = if index == count {
            data.len()
        } else {
            data[about.max(start)..].iter().position(|byte| *byte == b'\n').map_or(data.len(), |at| about.max(start) + at + 1)
        };
        chunks.push(start..end);
        start = end;
    }
    chunks
}

struct Chunk {
    adds: FileActions,
    removes: FileActions,
    texts: Vec<(TextKind, usize, String)>,
    has_cdc: bool,
    lines: usize,
}

impl Chunk {
    fn parse(data: &[u8], start: usize, interrupt: &Interrupt) -> Result<Self, Fault> {
        let mut chunk = Self {
            adds: FileActions::new(FileKind::Add),
            removes: FileActions::new(FileKind::Remove),
            texts: Vec::new(),
            has_cdc: false,
            lines: 0,
        };
        let mut offset = start;
        for line in data.split(|byte| *byte == b'\n') {
            if chunk.lines.is_multiple_of(1024) {
                interrupt.check().map_err(|error| Fault { offset, error })?;
            }
            chunk.take_line(line, offset).map_err(|error| Fault { offset, error })?;
            offset += line.len() + 1;
        }
        Ok(chunk)
    }

    fn take_line(&mut self, line: &[u8], offset: usize) -> Result<()> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        self.lines += 1;
        match parse_line(line)? {
            Action::File(FileKind::Add, action) => self.adds.append(&action)?,
            Action::File(FileKind::Remove, action) => self.removes.append(&action)?,
            Action::ChangeFile => self.has_cdc = true,
            Action::Text(kind, value) => self.texts.push((kind, offset, value.get().to_owned())),
            Action::Other => {}
        }
        Ok(())
    }
}

fn parse_line(line: &[u8]) -> Result<Action<'_>> {
    if line.len() > MAX_LINE {
        return Err(Error::protocol("the line is too long").found(format!("{} bytes", line.len())).expected(format!("at most {MAX_LINE}")));
    }
    let text = std::str::from_utf8(line).map_err(|error| Error::protocol("the line is not UTF-8").caused_by(error))?;
    serde_json::from_str(text).map_err(malformed)
}

/// Identity of a vector in a key: its storage type, place and offset; nothing for a file without one.
pub fn vector_id(vectors: &arrow::array::StructArray, row: usize) -> Option<(&str, &str, Option<i32>)> {
    use arrow::array::AsArray;
    use arrow::datatypes::Int32Type;
    if vectors.is_null(row) {
        return None;
    }
    let (kind, place) = (vectors.column(0).as_string::<i32>(), vectors.column(1).as_string::<i32>());
    let offset = vectors.column(2).as_primitive::<Int32Type>();
    (kind.is_valid(row) && place.is_valid(row))
        .then(|| (kind.value(row), place.value(row), offset.is_valid(row).then(|| offset.value(row))))
}

/// No path is added twice or removed twice in one commit, and no file (path and vector) both added and removed.
pub fn check_once(root: &str, place: &str, adds: &[RecordBatch], removes: &[RecordBatch]) -> Result<()> {
    let hasher = ahash::RandomState::with_seeds(1, 2, 3, 4);
    let mut added: HashTable<(usize, usize)> = HashTable::new();
    for (batches, name, table) in [(adds, "added", &mut added), (removes, "removed", &mut HashTable::new())] {
        for (index, batch) in batches.iter().enumerate() {
            let paths = text(batch, "path")?;
            for row in 0..paths.len() {
                let path = canonical(root, paths.value(row));
                let hash = hasher.hash_one(path.as_ref());
                let same = |&(b, r): &(usize, usize)| text(&batches[b], "path").is_ok_and(|known| canonical(root, known.value(r)) == path);
                if table.find(hash, same).is_some() {
                    return Err(Error::protocol(format!("a file is {name} twice in one commit")).at(place).found(path));
                }
                table.insert_unique(hash, (index, row), |&(b, r)| hash_again(&hasher, root, batches, b, r));
            }
        }
    }
    check_disjoint(root, place, adds, removes, &added, &hasher)
}

fn hash_again(hasher: &ahash::RandomState, root: &str, batches: &[RecordBatch], index: usize, row: usize) -> u64 {
    text(&batches[index], "path").map_or(0, |paths| hasher.hash_one(canonical(root, paths.value(row)).as_ref()))
}

fn check_disjoint(
    root: &str,
    place: &str,
    adds: &[RecordBatch],
    removes: &[RecordBatch],
    added: &HashTable<(usize, usize)>,
    hasher: &ahash::RandomState,
) -> Result<()> {
    for batch in removes {
        let (paths, vectors) = (text(batch, "path")?, schema::vectors(batch)?);
        for row in 0..paths.len() {
            let path = canonical(root, paths.value(row));
            let same = |&(b, r): &(usize, usize)| {
                text(&adds[b], "path").is_ok_and(|known| canonical(root, known.value(r)) == path)
                    && schema::vectors(&adds[b]).is_ok_and(|known| vector_id(known, r) == vector_id(vectors, row))
            };
            if added.find(hasher.hash_one(path.as_ref()), same).is_some() {
                return Err(Error::protocol("one commit both adds and removes a file").at(place).found(path));
            }
        }
    }
    Ok(())
}
