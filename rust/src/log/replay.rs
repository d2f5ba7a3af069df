//! Which rows newer ones take the place of ("Action Reconciliation": for each key the newest action counts).
//!
//! The newer rows are few, or all there are: their keys make a table; older segments are asked for each of them, or asked row by row
//! where that is less. No index over all files of a version is made, and none is kept from one version to the next.

use hashbrown::HashTable;

use super::keys::{Key, slot};
use super::segment::Segment;
use super::skipping::on_threads;
use crate::error::Result;
use crate::interrupt::Interrupt;

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
pub fn replaced(segments: &[Segment], first: usize, spans: &[Span], interrupt: &Interrupt) -> Result<Vec<Position>> {
    let rows: usize = spans.iter().map(|span| span.rows).sum();
    let shards: Vec<usize> = (0..if rows > MANY { SHARDS } else { 1 }).collect();
    let made = on_threads(&shards, interrupt, &|shard| Ok(newest(segments, spans, rows, (*shard, shards.len()))))?;
    let (tables, gone): (Vec<Table>, Vec<Vec<Position>>) = made.into_iter().unzip();
    let mut gone: Vec<Position> = gone.into_iter().flatten().collect();
    let older: Vec<usize> = (0..first).filter(|number| segments[*number].live_count() > 0).collect();
    let ask = |number: &usize| Ok(replaced_in(segments, *number, rows, &tables));
    let found: Vec<Vec<Position>> = if rows.saturating_mul(older.len()) > MANY {
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

/// The newest row of each key, and those that it replaced.
fn newest(segments: &[Segment], spans: &[Span], rows: usize, (shard, shards): (usize, usize)) -> (Table, Vec<Position>) {
    let key = |at: &Position| segments[at.segment].keys().all()[at.row as usize];
    let mut table = Table::with_capacity(rows / shards);
    let mut gone = Vec::new();
    for span in spans {
        for row in span.from..span.from + span.rows {
            let at = Position { segment: span.segment, row: row as u32 };
            let mine = key(&at);
            if shards > 1 && shard_of(mine, shards) != shard {
                continue;
            }
            match table.find_mut(slot(mine), |known| key(known) == mine) {
                Some(known) => gone.push(std::mem::replace(known, at)),
                None => {
                    table.insert_unique(slot(mine), at, |known| slot(key(known)));
                }
            }
        }
    }
    (table, gone)
}

/// The rows of an older segment that are replaced.
fn replaced_in(segments: &[Segment], number: usize, rows: usize, tables: &[Table]) -> Vec<Position> {
    let key = |at: &Position| segments[at.segment].keys().all()[at.row as usize];
    let segment = &segments[number];
    let live = |row: &u32| segment.is_live(*row);
    let found: Vec<u32> = if rows * ROWS_PER_KEY < segment.len() {
        tables.iter().flatten().flat_map(|at| segment.keys().rows_of(key(at))).filter(live).collect()
    } else {
        let is_replaced = |row: &u32| {
            let mine = segment.keys().all()[*row as usize];
            tables[shard_of(mine, tables.len())].find(slot(mine), |known| key(known) == mine).is_some()
        };
        (0..segment.len() as u32).filter(live).filter(is_replaced).collect()
    };
    found.into_iter().map(|row| Position { segment: number, row }).collect()
}
