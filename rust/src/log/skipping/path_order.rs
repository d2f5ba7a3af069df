//! Orders the selected files by path, and finds a path that occurs twice among them.

use std::collections::HashSet;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::{concat, interleave_record_batch, sort_to_indices};

use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::log::reading::keys::{Key, of_path};
use crate::log::schema::text;
use crate::parallel::{PIECE, on_threads};
use crate::store::path::is_plain;

/// Returns the rows of all batches ordered by path, and a path that occurs twice. Ordered batches are
/// returned as they are; otherwise the new batches have [`PIECE`] rows.
pub fn ordered(batches: &[RecordBatch], interrupt: &Interrupt) -> Result<(Vec<RecordBatch>, Option<String>)> {
    let paths = batches.iter().map(|batch| text(batch, "path")).collect::<Result<Vec<_>>>()?;
    let mut last: Option<&str> = None;
    let (mut sorted, mut twice) = (true, None);
    for path in paths.iter().flat_map(|paths| paths.iter().flatten()) {
        if last == Some(path) {
            twice = Some(path.to_owned());
        }
        sorted = sorted && last.is_none_or(|last| last <= path);
        last = Some(path);
    }
    if sorted {
        return Ok((batches.to_vec(), twice));
    }
    let all = concat(&paths.iter().map(|paths| *paths as &dyn Array).collect::<Vec<_>>())?;
    let order = sort_to_indices(&all, None, None)?;
    let path = |index: &u32| all.as_string::<i32>().value(*index as usize);
    let twice = order
        .values()
        .windows(2)
        .find(|pair| path(&pair[0]) == path(&pair[1]))
        .map(|pair| path(&pair[0]).to_owned());
    let mut starts = Vec::with_capacity(batches.len());
    let mut rows = 0;
    for batch in batches {
        starts.push(rows);
        rows += batch.num_rows();
    }
    let place = |index: &u32| {
        let batch = starts.partition_point(|start| *start <= *index as usize) - 1;
        (batch, *index as usize - starts[batch])
    };
    let sources: Vec<&RecordBatch> = batches.iter().collect();
    let chunks: Vec<&[u32]> = order.values().chunks(PIECE).collect();
    let rows = on_threads(&chunks, interrupt, &|chunk| {
        Ok(interleave_record_batch(&sources, &chunk.iter().map(place).collect::<Vec<_>>())?)
    })?;
    Ok((rows, twice))
}

/// Returns a path that occurs in two spellings. Replay treats both as one file if a commit adds the second; a
/// checkpoint may hold both.
pub fn spelled_twice(batches: &[RecordBatch], root: &str) -> Result<Option<String>> {
    let paths = batches.iter().map(|batch| text(batch, "path")).collect::<Result<Vec<_>>>()?;
    let all = || paths.iter().flat_map(|paths| paths.iter().flatten());
    let mut special: HashSet<Key> = HashSet::new();
    let twice = all().filter(|path| !is_plain(path)).find(|path| !special.insert(of_path(root, path)));
    let plain = || all().filter(|path| is_plain(path)).find(|path| special.contains(&of_path(root, path)));
    let twice = if special.is_empty() { None } else { twice.or_else(plain) };
    Ok(twice.map(str::to_owned))
}
