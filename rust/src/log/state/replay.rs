//! Finds the rows that newer rows replace ("Action Reconciliation": the newest action for each key is valid).
//!
//! The keys of the newer rows are put into a table. Older segments are then searched for each of these keys,
//! or, if that is less work, each of their rows is looked up in the table. No index over all files of a
//! version is built or kept.

use hashbrown::HashTable;

use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::log::reading::keys::{Key, Keys, slot};
use crate::log::reading::segment::{FEW, Segment};
use crate::parallel::on_threads;

/// Number of rows above which several threads are used.
const MANY: usize = 64 * 1024;
/// Number of parts of the table of keys, if there are many.
const SHARDS: usize = 8;
/// A segment is searched for each key if it has at least this many rows per key; otherwise each of its rows
/// is looked up.
const ROWS_PER_KEY: usize = 8;

/// A row of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The number of the segment.
    pub segment: usize,
    /// The row within the segment.
    pub row: u32,
}

/// Consecutive rows of a segment from one commit.
#[derive(Debug, Clone)]
pub struct Span {
    /// The number of the segment.
    pub segment: usize,
    /// The first row.
    pub from: usize,
    /// The number of rows.
    pub rows: usize,
}

/// Returns the rows that newer rows replace. `spans`: the newer rows, in the order of their commits. All
/// segments before `first` are older.
pub fn replaced(
    root: &str,
    segments: &[Segment],
    first: usize,
    spans: &[Span],
    interrupt: &Interrupt,
) -> Result<Vec<Position>> {
    let rows: usize = spans.iter().map(|span| span.rows).sum();
    if rows == 0 {
        return Ok(Vec::new());
    }
    let asked: Vec<usize> =
        (0..segments.len()).filter(|number| *number >= first || segments[*number].live_count() > 0).collect();
    let read = |number: &usize| segments[*number].keys(root, interrupt);
    let unread: usize = asked
        .iter()
        .map(|number| &segments[*number])
        .filter(|segment| !segment.has_keys())
        .map(Segment::len)
        .sum();
    let unread = unread > FEW;
    let found = if unread {
        on_threads(&asked, interrupt, &read)?
    } else {
        asked.iter().map(read).collect::<Result<_>>()?
    };
    let mut keys: Vec<Option<&Keys>> = vec![None; segments.len()];
    for (number, found) in asked.iter().zip(found) {
        keys[*number] = Some(found);
    }
    let replay = Replay { segments, keys, rows };
    let shards: Vec<usize> = (0..if rows > MANY { SHARDS } else { 1 }).collect();
    let made = on_threads(&shards, interrupt, &|shard| Ok(replay.newest(spans, (*shard, shards.len()))))?;
    let (tables, gone): (Vec<Table>, Vec<Vec<Position>>) = made.into_iter().unzip();
    let mut gone: Vec<Position> = gone.into_iter().flatten().collect();
    let older: Vec<usize> = asked.into_iter().filter(|number| *number < first).collect();
    let ask = |number: &usize| Ok(replay.replaced_in(*number, &tables));
    let found: Vec<Vec<Position>> = if unread || rows.saturating_mul(older.len()) > MANY {
        on_threads(&older, interrupt, &ask)?
    } else {
        older.iter().map(ask).collect::<Result<_>>()?
    };
    gone.extend(found.into_iter().flatten());
    Ok(gone)
}

type Table = HashTable<Position>;

fn shard_of(key: Key, shards: usize) -> usize {
    (key >> 96) as usize % shards
}

/// What a replay works on: the segments, the keys of the segments that are needed, and the number of new
/// rows.
struct Replay<'a> {
    segments: &'a [Segment],
    keys: Vec<Option<&'a Keys>>,
    rows: usize,
}

impl Replay<'_> {
    fn all(&self, number: usize) -> &[Key] {
        self.keys[number].map_or(&[], Keys::all)
    }

    fn key(&self, at: &Position) -> Key {
        self.all(at.segment)[at.row as usize]
    }

    /// Returns the newest row of each key, and the rows that it replaces.
    fn newest(&self, spans: &[Span], (shard, shards): (usize, usize)) -> (Table, Vec<Position>) {
        let mut table = Table::with_capacity(self.rows / shards);
        let mut gone = Vec::new();
        for span in spans {
            for row in span.from..span.from + span.rows {
                let at = Position { segment: span.segment, row: row as u32 };
                let mine = self.key(&at);
                if shards > 1 && shard_of(mine, shards) != shard {
                    continue;
                }
                match table.find_mut(slot(mine), |known| self.key(known) == mine) {
                    Some(known) => gone.push(std::mem::replace(known, at)),
                    None => {
                        table.insert_unique(slot(mine), at, |known| slot(self.key(known)));
                    }
                }
            }
        }
        (table, gone)
    }

    /// Returns the rows of an older segment that are replaced.
    fn replaced_in(&self, number: usize, tables: &[Table]) -> Vec<Position> {
        let segment = &self.segments[number];
        let live = |row: &u32| segment.is_live(*row);
        let few = self.rows * ROWS_PER_KEY < segment.len();
        let found: Vec<u32> = match self.keys[number] {
            Some(keys) if few && keys.is_quick() => {
                tables.iter().flatten().flat_map(|at| keys.rows_of(self.key(at))).filter(live).collect()
            }
            _ => {
                let is_replaced = |(_, mine): &(u32, &Key)| {
                    tables[shard_of(**mine, tables.len())]
                        .find(slot(**mine), |known| self.key(known) == **mine)
                        .is_some()
                };
                (0..).zip(self.all(number)).filter(is_replaced).map(|(row, _)| row).filter(live).collect()
            }
        };
        found.into_iter().map(|row| Position { segment: number, row }).collect()
    }
}
