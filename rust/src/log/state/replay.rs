//! Which rows newer ones take the place of ("Action Reconciliation": for each key the newest action counts).
//!
//! The newer rows are few, or all there are: their keys make a table; older segments are asked for each of them, or asked row by row
//! where that is less. No index over all files of a version is made, and none is kept from one version to the next.

use hashbrown::HashTable;

use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::log::reading::keys::{Key, Keys, slot};
use crate::log::reading::segment::Segment;
use crate::parallel::on_threads;

/// More rows than these are worth several threads.
const MANY: usize = 64 * 1024;
/// Parts in which the table of many keys is made.
const SHARDS: usize = 8;
/// A segment is asked for each key unless there are more keys than one for so many of its rows.
const ROWS_PER_KEY: usize = 8;

/// A row of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Which segment.
    pub segment: usize,
    /// Which row of it.
    pub row: u32,
}

/// Consecutive rows of a segment that came from one commit.
#[derive(Debug, Clone)]
pub struct Span {
    /// Which segment.
    pub segment: usize,
    /// The first of them.
    pub from: usize,
    /// How many.
    pub rows: usize,
}

/// Rows that count no longer: those of `spans`, which stand in the order of their commits, speak for their files instead. The segments
/// below `first` are older than all of them.
pub fn replaced(root: &str, segments: &[Segment], first: usize, spans: &[Span], interrupt: &Interrupt) -> Result<Vec<Position>> {
    let rows: usize = spans.iter().map(|span| span.rows).sum();
    if rows == 0 {
        return Ok(Vec::new());
    }
    let asked: Vec<usize> = (0..segments.len()).filter(|number| *number >= first || segments[*number].live_count() > 0).collect();
    let read = |number: &usize| segments[*number].keys(root, interrupt);
    let unread = asked.iter().any(|number| !segments[*number].has_keys());
    let found = if unread { on_threads(&asked, interrupt, &read)? } else { asked.iter().map(read).collect::<Result<_>>()? };
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

/// The segments, the keys of those that matter, and how many rows are new.
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

    /// The newest row of each key, and those that it replaced.
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

    /// The rows of an older segment that are replaced.
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
                    tables[shard_of(**mine, tables.len())].find(slot(**mine), |known| self.key(known) == **mine).is_some()
                };
                (0..).zip(self.all(number)).filter(is_replaced).map(|(row, _)| row).filter(live).collect()
            }
        };
        found.into_iter().map(|row| Position { segment: number, row }).collect()
    }
}
