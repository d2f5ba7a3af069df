//! Actions on files that stay in their commit until they are needed. All lines are checked, but only the
//! fields that replay needs are kept. For the other fields the file is read again, one block at a time.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use bytes::Bytes;

use super::commit::{Chunk, Commit, MAX_LINE, parse_line, too_long};
use super::compacted::is_compacted;
use super::keys::{self, Key};
use super::line::{Action, FileKind, SkippedText, TextKind};
use super::once::FileKeys;
use super::segment::{Segment, SegmentSource, Source};
use crate::error::{Error, Kind, Result};
use crate::interrupt::Interrupt;
use crate::parallel::on_threads;
use crate::store::{ObjectMeta, Store};

/// Number of bytes of a block. Each line belongs to the block in which the line begins.
const BLOCK: u64 = 4 << 20;
/// Number of further bytes to read at a time for the end of a block's last line.
const MORE: u64 = 64 << 10;

/// A commit in a store.
#[derive(Debug)]
struct StoredLines {
    store: Arc<dyn Store>,
    path: String,
    found: ObjectMeta,
}

/// A block of whole lines of a commit, and one kind of the actions in it.
#[derive(Debug)]
pub struct Lines {
    file: Arc<StoredLines>,
    bytes: Range<u64>,
    kind: FileKind,
    rows: usize,
}

impl StoredLines {
    fn range(&self, range: Range<u64>) -> Result<Bytes> {
        let mut read = self.store.get_ranges(&self.path, &[range])?;
        read.pop().ok_or_else(|| Error::protocol("the store returned no bytes").at(self.path.as_str()))
    }

    /// Returns the lines that begin in a block, and the position of the first.
    fn lines_of(&self, block: Range<u64>) -> Result<(u64, Bytes)> {
        let from = block.start.saturating_sub(1); // the end of the line before, if it ends there
        let mut read = self.found.size.min(block.end + MORE);
        let mut data = self.range(from..read)?;
        let begin = |at: Option<usize>| at.map(|at| at + 1).filter(|at| from + (*at as u64) < block.end);
        let first = if block.start == 0 { Some(0) } else { begin(memchr::memchr(b'\n', &data)) };
        let Some(first) = first else { return Ok((block.end, Bytes::new())) };
        // The last line ends at, or after, the block's last byte.
        let within = (block.end - from) as usize - 1;
        let mut ends =
            memchr::memchr(b'\n', data.get(within..).unwrap_or_default()).map(|at| within + at + 1);
        if ends.is_none() && read < self.found.size {
            let mut whole = data.to_vec();
            while ends.is_none() && read < self.found.size {
                if whole.len() > BLOCK as usize + MAX_LINE {
                    return Err(too_long(whole.len()));
                }
                let more = self.range(read..self.found.size.min(read + MORE))?;
                ends = memchr::memchr(b'\n', &more).map(|at| whole.len() + at + 1);
                whole.extend_from_slice(&more);
                read += more.len() as u64;
            }
            data = Bytes::from(whole);
        }
        let end = ends.unwrap_or(data.len());
        Ok((from + first as u64, data.slice(first..end)))
    }
}

impl Lines {
    /// Reads all columns of the actions in these lines.
    pub fn read(&self, interrupt: &Interrupt) -> Result<RecordBatch> {
        let path = self.file.path.as_str();
        let gone = || {
            let error = Error::new(
                Kind::Gone,
                "a file of the log was deleted or replaced after the version was opened",
            )
            .at(path);
            error.found("no such file, or another").expected("the file that was opened")
        };
        if self.file.store.head(path)?.as_ref() != Some(&self.file.found) {
            return Err(gone());
        }
        let data = self
            .file
            .range(self.bytes.clone())
            .map_err(|error| if error.kind() == Kind::NotFound { gone() } else { error })?;
        let chunk = Chunk::parse(&data, 0, interrupt).map_err(|fault| {
            fault.error.at(format!("{path}, in the line at byte {}", self.bytes.start + fault.offset as u64))
        })?;
        let actions = if self.kind == FileKind::Add { chunk.adds } else { chunk.removes };
        if actions.len() != self.rows { Err(gone()) } else { actions.finish() }
    }
}

/// The fields that replay needs, of the actions of one kind in some lines.
#[derive(Debug, Default)]
struct LineKeys {
    keys: Vec<(Key, Key)>,
    sizes: Vec<i64>,
}

/// The fields that replay needs, of all lines of a block.
#[derive(Debug, Default)]
struct BlockKeys {
    adds: LineKeys,
    removes: LineKeys,
    texts: Vec<(TextKind, usize, String)>,
    has_cdc: bool,
    actions: usize,
    lines: usize,
    bytes: Range<u64>,
}

impl BlockKeys {
    fn of(file: &StoredLines, block: Range<u64>, interrupt: &Interrupt) -> Result<Self> {
        let (start, data) = file.lines_of(block)?;
        let mut scanned = Self { bytes: start..start + data.len() as u64, ..Self::default() };
        let mut from = 0;
        for end in memchr::memchr_iter(b'\n', &data).chain([data.len()]) {
            if scanned.lines.is_multiple_of(1024) {
                interrupt.check()?;
            }
            scanned.take(file.store.location(), scanned.lines, &data[from..end])?;
            scanned.lines += usize::from(end < data.len());
            from = end + 1;
        }
        Ok(scanned)
    }

    fn take(&mut self, root: &str, number: usize, line: &[u8]) -> Result<()> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        self.actions += 1;
        match parse_line::<SkippedText>(line)? {
            Action::File(kind, action) => {
                action.check(kind)?;
                let path = keys::of_path(root, action.path());
                let rows = if kind == FileKind::Add { &mut self.adds } else { &mut self.removes };
                rows.keys.push((keys::with_vector(path, action.vector_id()), path));
                rows.sizes.push(action.size());
            }
            Action::ChangeFile(_) => self.has_cdc = true,
            Action::Text(kind, value) => self.texts.push((kind, number, value.get().to_owned())),
            Action::Other => {}
        }
        Ok(())
    }
}

/// Reads a commit or a compacted range, whose actions on files stay in the file. An invalid file is an error
/// without details; [`Commit::read`] returns the details.
pub fn read_keys(
    store: &Arc<dyn Store>,
    path: &str,
    found: ObjectMeta,
    interrupt: &Interrupt,
) -> Result<Commit> {
    let file = Arc::new(StoredLines { store: Arc::clone(store), path: path.to_owned(), found });
    let size = file.found.size;
    let blocks: Vec<u64> = (0..size).step_by(BLOCK as usize).collect();
    let scanned = on_threads(&blocks, interrupt, &|start| {
        BlockKeys::of(&file, *start..size.min(start + BLOCK), interrupt)
    })?;
    let (mut commit, mut keys, mut before) = (Commit::default(), FileKeys::default(), 0);
    for block in scanned {
        commit.actions += block.actions;
        commit.has_cdc |= block.has_cdc;
        for (kind, number, text) in block.texts {
            let place = || Some(format!("{path}:{}", before + number + 1));
            match kind {
                TextKind::Protocol => commit.places.protocol = place(),
                TextKind::Metadata => commit.places.metadata = place(),
                _ => {}
            }
            commit.take_text(kind, text)?;
        }
        for (kind, rows, all) in [
            (FileKind::Add, block.adds, &mut keys.adds),
            (FileKind::Remove, block.removes, &mut keys.removes),
        ] {
            if rows.keys.is_empty() {
                continue;
            }
            let lines =
                Lines { file: Arc::clone(&file), bytes: block.bytes.clone(), kind, rows: rows.keys.len() };
            let own: Vec<Key> = rows.keys.iter().map(|(key, _)| *key).collect();
            commit.files.push(Segment::in_files(
                kind,
                SegmentSource {
                    source: Source::Lines(lines),
                    count: own.len(),
                    keys: Some(own),
                    sizes: rows.sizes,
                },
            ));
            all.extend(rows.keys);
        }
        before += block.lines;
    }
    let nameless = |_: FileKind, _: usize| String::new();
    if is_compacted(path) {
        keys.check_reconciled(path, &nameless)
    } else {
        keys.check_once(path, &nameless)
    }?;
    commit.not_empty(path, size)
}
