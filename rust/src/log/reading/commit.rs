//! Parses a commit file from JSON lines to Arrow. The text is cut at line ends and parsed by several threads.
//! Each error has file and line.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::Builder;

use arrow::array::{Array, RecordBatch};
use serde::Deserialize;

use super::compacted::is_compacted;
use super::line::{Action, FileActions, FileKind, SkippedText, Text, TextKind};
use super::lines;
use super::once::check;
use super::segment::Segment;
use crate::error::{Error, Result};
use crate::guard;
use crate::interrupt::Interrupt;
use crate::parallel::threads_for;
use crate::store::Store;

/// Maximum number of bytes of a line; a longer line is an error.
pub(super) const MAX_LINE: usize = 64 << 20;
/// Minimum number of bytes for which a thread is started.
const MIN_CHUNK: usize = 1 << 20;
/// Maximum number of bytes of a commit that is read as a whole. A longer commit is read in blocks, so that a
/// commit of gigabytes with few actions takes little memory.
const AT_ONCE: u64 = 128 << 20;
/// Number of bytes of such a block.
const BLOCK: u64 = 32 << 20;

/// Application transactions (`txn`): application id -> (version, time of the last update in ms since 1970).
pub type Transactions = BTreeMap<String, (i64, Option<i64>)>;

/// The places of the actions that define the table: file and line, or file and row.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// The place of `protocol`, for errors.
    pub protocol: Option<String>,
    /// The place of `metaData`, for errors.
    pub metadata: Option<String>,
}

impl Places {
    /// Returns these places, and those of `before` if one is missing.
    #[must_use]
    pub fn or(self, before: Self) -> Self {
        Self { protocol: self.protocol.or(before.protocol), metadata: self.metadata.or(before.metadata) }
    }
}

/// A parsed commit, or the lines of a JSON checkpoint.
#[derive(Debug, Default)]
pub struct Commit {
    /// The commit's version.
    pub version: u64,
    /// JSON of `commitInfo`.
    pub commit_info: Option<String>,
    /// JSON of `protocol`.
    pub protocol: Option<String>,
    /// JSON of `metaData`.
    pub metadata: Option<String>,
    /// Places of `protocol` and `metaData`.
    pub places: Places,
    /// The `txn` action of each application.
    pub transactions: Transactions,
    /// JSON of the `domainMetadata` of each domain.
    pub domains: BTreeMap<String, String>,
    /// JSON of `sidecar` actions.
    pub sidecars: Vec<String>,
    /// The `add` actions, in the columns of [`schema::ADD`].
    pub adds: Vec<RecordBatch>,
    /// The `remove` actions, in the columns of [`schema::REMOVE`].
    pub removes: Vec<RecordBatch>,
    /// The actions on files of a large commit, which stay in its file.
    pub files: Vec<Segment>,
    /// True if the commit has change files.
    pub has_cdc: bool,
    /// JSON of the `cdc` actions. Empty if the actions on files stay in the commit's file.
    pub change_files: Vec<String>,
    /// Number of lines that are not blank.
    pub actions: usize,
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
    #[serde(rename = "removed")]
    _removed: Option<bool>, // only the type is checked; replay reads the value later
}

impl Commit {
    /// Reads and parses the commit, or the compacted range, at `path`.
    pub fn read(store: &dyn Store, version: u64, path: &str, interrupt: &Interrupt) -> Result<Self> {
        Self::read_lines(store, path, interrupt)?.checked(store.location(), version, path, interrupt)
    }

    /// Reads and parses the commit at `path`. If it has more than `eager_limit` bytes, actions on files stay
    /// in its file, and only the fields that replay needs are read.
    pub fn read_or_leave(
        store: &Arc<dyn Store>,
        version: u64,
        path: &str,
        eager_limit: u64,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        if eager_limit >= AT_ONCE {
            return Self::read(store.as_ref(), version, path, interrupt);
        }
        if let Some(data) = store.get_at_most(path, eager_limit)? {
            return Self::parse(&data, path, interrupt)?.checked(store.location(), version, path, interrupt);
        }
        match store.head(path)?.map(|found| lines::read_keys(store, path, found, interrupt)) {
            Some(Ok(commit)) if commit.sidecars.is_empty() => Ok(Self { version, ..commit }),
            // Reading the whole commit gives the error its details.
            _ => interrupt.check().and_then(|()| Self::read(store.as_ref(), version, path, interrupt)),
        }
    }

    fn checked(self, root: &str, version: u64, path: &str, interrupt: &Interrupt) -> Result<Self> {
        let commit = Self { version, ..self };
        if let Some(sidecar) = commit.sidecars.first() {
            let error = Error::protocol("a commit names a file of a checkpoint").at(path);
            return Err(error.found(format!("sidecar {sidecar}")).expected("sidecars in a checkpoint alone"));
        }
        check(root, path, &commit.adds, &commit.removes, is_compacted(path), interrupt)?;
        Ok(commit)
    }

    /// Reads and parses a file of JSON lines, in blocks of whole lines.
    pub fn read_lines(store: &dyn Store, path: &str, interrupt: &Interrupt) -> Result<Self> {
        if let Some(data) = store.get_at_most(path, AT_ONCE)? {
            return Self::parse(&data, path, interrupt);
        }
        let size = store.head(path)?.map_or(0, |found| found.size);
        let mut commit = Self::default();
        let (mut rest, mut before, mut at) = (Vec::new(), 0, 0);
        while at < size {
            let end = size.min(at + BLOCK);
            for piece in store.get_ranges(path, &[at..end])? {
                rest.extend_from_slice(&piece);
            }
            at = end;
            let whole = if at == size {
                rest.len()
            } else {
                rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1)
            };
            before += commit.take_lines(rest.get(..whole).unwrap_or_default(), path, before, interrupt)?;
            rest.drain(..whole);
            if rest.len() > MAX_LINE {
                return Err(too_long(rest.len()).at(format!("{path}:{}", before + 1)));
            }
        }
        commit.not_empty(path, size)
    }

    /// Parses the lines of a commit. `path`: for error messages.
    pub fn parse(data: &[u8], path: &str, interrupt: &Interrupt) -> Result<Self> {
        let mut commit = Self::default();
        commit.take_lines(data, path, 0, interrupt)?;
        commit.not_empty(path, data.len() as u64)
    }

    pub(super) fn not_empty(self, path: &str, size: u64) -> Result<Self> {
        if self.actions == 0 {
            return Err(Error::protocol("the file is empty")
                .at(path)
                .found(format!("{size} bytes"))
                .expected(AN_ACTION));
        }
        Ok(self)
    }

    /// Parses lines and returns their number. `before`: the number of lines before them.
    fn take_lines(&mut self, data: &[u8], path: &str, before: usize, interrupt: &Interrupt) -> Result<usize> {
        if before == 0 && data.starts_with(b"\xef\xbb\xbf") {
            let error = Error::protocol("the file does not begin with a line").at(format!("{path}:1"));
            return Err(error.found("a byte order mark").expected(AN_ACTION));
        }
        let place = |fault: Fault| fault.locate(data, path, before);
        let chunks = cut(data);
        let mut parsed: Vec<Result<Chunk, Fault>> = Vec::new();
        if let [only] = chunks.as_slice() {
            parsed.push(Chunk::parse(&data[only.clone()], only.start, interrupt));
        } else {
            std::thread::scope(|scope| {
                let parse = |chunk: std::ops::Range<usize>| {
                    guard::caught(|| Chunk::parse(&data[chunk.clone()], chunk.start, interrupt))
                        .unwrap_or_else(|panic| {
                            Err(Fault {
                                offset: chunk.start,
                                error: Error::protocol("the commit cannot be parsed").found(panic),
                            })
                        })
                };
                let start = |chunk: &std::ops::Range<usize>| {
                    let chunk = chunk.clone();
                    Builder::new().spawn_scoped(scope, move || parse(chunk))
                };
                let workers: Vec<_> = chunks.iter().map(|chunk| (chunk, start(chunk))).collect();
                parsed.extend(workers.into_iter().filter_map(|(chunk, worker)| match worker {
                    Ok(worker) => worker.join().ok(),     // a worker cannot panic
                    Err(_) => Some(parse(chunk.clone())), // the system starts no more threads
                }));
            });
        }
        for chunk in parsed {
            self.take(chunk.map_err(place)?, &|offset| line_of(data, path, before, offset)).map_err(place)?;
        }
        Ok(data.iter().filter(|byte| **byte == b'\n').count())
    }

    /// Reads only the actions of a file that are not on files.
    pub fn read_definition(store: &dyn Store, path: &str, interrupt: &Interrupt) -> Result<Self> {
        const FILES: [&[u8]; 3] = [b"{\"add\":", b"{\"remove\":", b"{\"cdc\":"];
        let Some(data) = store.get_at_most(path, AT_ONCE)? else {
            return Err(Error::protocol("the file is too long to be read for a few lines").at(path));
        };
        let place = |fault: Fault| fault.locate(&data, path, 0);
        let mut commit = Self::default();
        for line in
            data.split(|byte| *byte == b'\n').filter(|line| !FILES.iter().any(|name| line.starts_with(name)))
        {
            let offset = line.as_ptr() as usize - data.as_ptr() as usize;
            let chunk = Chunk::parse(line, offset, interrupt).map_err(place)?;
            commit.take(chunk, &|offset| line_of(&data, path, 0, offset)).map_err(place)?;
        }
        Ok(commit)
    }

    fn take(&mut self, chunk: Chunk, place: &dyn Fn(usize) -> String) -> Result<(), Fault> {
        let Chunk { adds, removes, texts, has_cdc, change_files, lines } = chunk;
        self.actions += lines;
        for (into, actions) in [(&mut self.adds, adds), (&mut self.removes, removes)] {
            if !actions.is_empty() {
                into.push(actions.finish().map_err(|error| Fault { offset: 0, error })?);
            }
        }
        self.has_cdc |= has_cdc;
        self.change_files.extend(change_files);
        for (kind, offset, text) in texts {
            match kind {
                TextKind::Protocol => self.places.protocol = Some(place(offset)),
                TextKind::Metadata => self.places.metadata = Some(place(offset)),
                _ => {}
            }
            self.take_text(kind, text).map_err(|error| Fault { offset, error })?;
        }
        Ok(())
    }

    /// Adds an action that is kept as text.
    pub fn take_text(&mut self, kind: TextKind, text: String) -> Result<()> {
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
                let Domain { domain, .. } = serde_json::from_str(&text).map_err(malformed)?;
                if self.domains.insert(domain.clone(), text).is_some() {
                    return Err(twice(format!("two of domainMetadata for '{domain}'")));
                }
            }
        }
        Ok(())
    }

    /// Reads the JSON of commitInfo without parsing the other actions. In a very long commit, it is found
    /// only near the beginning.
    pub fn read_info(store: &dyn Store, path: &str) -> Result<Option<String>> {
        match store.get_at_most(path, AT_ONCE)? {
            Some(data) => Self::find_info(&data, path),
            None => store
                .get_ranges(path, &[0..BLOCK])?
                .iter()
                .find_map(|data| Self::find_info(data, path).transpose())
                .transpose(),
        }
    }

    fn find_info(data: &[u8], path: &str) -> Result<Option<String>> {
        let name = b"\"commitInfo\"";
        for line in data.split(|byte| *byte == b'\n') {
            if !line.windows(name.len()).take(64).any(|window| window == name) {
                continue;
            }
            let offset = line.as_ptr() as usize - data.as_ptr() as usize;
            let action = parse_line::<SkippedText>(line)
                .map_err(|error| Fault { offset, error }.locate(data, path, 0))?;
            if let Action::Text(TextKind::CommitInfo, value) = action {
                return Ok(Some(value.get().to_owned()));
            }
        }
        Ok(None)
    }
}

fn once(slot: &mut Option<String>, text: String, name: &str) -> Result<()> {
    if slot.replace(text).is_some() {
        return Err(twice(format!("two of {name}")));
    }
    Ok(())
}

/// Returns the error for an action that may occur only once in a commit or checkpoint.
pub fn twice(found: String) -> Error {
    Error::protocol("an action that may occur only once occurs twice").found(found).expected("at most one")
}

fn malformed(error: serde_json::Error) -> Error {
    // The parser gets a single line, so its line number is always 1 and is removed.
    Error::protocol("the line is no valid action")
        .found(error.to_string().replace(" at line 1 column", ", column"))
        .expected(AN_ACTION)
}

/// The expected form of a line of a commit, for error messages.
const AN_ACTION: &str = "a JSON object with one action on each line";

pub(super) fn too_long(bytes: usize) -> Error {
    Error::protocol("the line is too long")
        .found(format!("{bytes} bytes"))
        .expected(format!("at most {MAX_LINE}"))
}

fn line_of(data: &[u8], path: &str, before: usize, offset: usize) -> String {
    let earlier = data.get(..offset).unwrap_or_default().iter().filter(|byte| **byte == b'\n').count();
    format!("{path}:{}", before + earlier + 1)
}

/// An error in a line, and the position at which the line begins.
pub(super) struct Fault {
    pub offset: usize,
    pub error: Error,
}

impl Fault {
    fn locate(self, data: &[u8], path: &str, before: usize) -> Error {
        self.error.at(line_of(data, path, before, self.offset))
    }
}

/// Divides the text into ranges of whole lines of about equal size.
fn cut(data: &[u8]) -> Vec<std::ops::Range<usize>> {
    let count = threads_for(data.len() / MIN_CHUNK).max(1);
    let mut chunks = Vec::with_capacity(count);
    let mut start = 0;
    for index in 1..=count {
        let about = data.len() * index / count;
        let end = if index == count {
            data.len()
        } else {
            data[about.max(start)..]
                .iter()
                .position(|byte| *byte == b'\n')
                .map_or(data.len(), |at| about.max(start) + at + 1)
        };
        chunks.push(start..end);
        start = end;
    }
    chunks
}

pub(super) struct Chunk {
    pub adds: FileActions,
    pub removes: FileActions,
    texts: Vec<(TextKind, usize, String)>,
    has_cdc: bool,
    change_files: Vec<String>,
    lines: usize,
}

impl Chunk {
    pub fn parse(data: &[u8], start: usize, interrupt: &Interrupt) -> Result<Self, Fault> {
        let mut chunk = Self {
            adds: FileActions::new(FileKind::Add),
            removes: FileActions::new(FileKind::Remove),
            texts: Vec::new(),
            has_cdc: false,
            change_files: Vec::new(),
            lines: 0,
        };
        let mut offset = start;
        for line in lines_in(data) {
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
        match parse_line::<Text<'_>>(line)? {
            Action::File(FileKind::Add, action) => self.adds.append(&action)?,
            Action::File(FileKind::Remove, action) => self.removes.append(&action)?,
            Action::ChangeFile(value) => {
                self.has_cdc = true;
                self.change_files.push(value.get().to_owned());
            }
            Action::Text(kind, value) => self.texts.push((kind, offset, value.get().to_owned())),
            Action::Other => {}
        }
        Ok(())
    }
}

/// Returns the lines of a text, without their line ends.
fn lines_in(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = memchr::memchr_iter(b'\n', data).chain([data.len()]);
    ends.scan(0, |from, end| Some(data.get(std::mem::replace(from, end + 1)..end).unwrap_or_default()))
}

pub(super) fn parse_line<'a, S: Deserialize<'a>>(line: &'a [u8]) -> Result<Action<'a, S>> {
    if line.len() > MAX_LINE {
        return Err(too_long(line.len()));
    }
    let text = std::str::from_utf8(line).map_err(|error| {
        let at = error.valid_up_to();
        let found =
            line.get(at).map_or_else(String::new, |byte| format!("byte {byte:#04x} at column {}", at + 1));
        Error::protocol("the line is no valid text").found(found).expected("UTF-8")
    })?;
    serde_json::from_str(text).map_err(malformed)
}

/// The parts that identify a vector in a key: storage type, path or inline data, and offset.
pub type VectorId<'a> = (&'a str, &'a str, Option<i32>);

/// Returns the identity of a row's vector. `None` if the file has no vector.
pub fn vector_id(vectors: &arrow::array::StructArray, row: usize) -> Option<VectorId<'_>> {
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
