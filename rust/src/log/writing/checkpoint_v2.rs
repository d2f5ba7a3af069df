//! Writes a snapshot as a V2 checkpoint ("V2 Spec"): one file that refers to sidecars. Sidecars whose actions
//! have not changed are not written again. The file is JSON lines or Parquet, by the end of its name.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use super::checkpoint_columns::{Plan, from_json, kept_transactions, single_actions};
use super::checkpoint_writer::{Choices, Sink, WrittenCheckpoint};
use crate::error::{Error, Kind, Result};
use crate::interrupt::Interrupt;
use crate::log::json_text::write_text;
use crate::log::reading::segment::Segment;
use crate::log::reading::sidecar::{FOLDER, Origin, Sidecar, divide, gather, unexpired};
use crate::log::state::snapshot::Snapshot;
use crate::parallel::on_threads;
use crate::store::Store;

/// A new sidecar, with the number of live rows and of written rows of each of its segments.
struct NewSidecar<'a> {
    sidecar: Arc<Sidecar>,
    segments: Counted<'a>,
}

type Counted<'a> = Vec<(&'a Segment, usize, usize)>;

/// Writes the V2 checkpoint at `path`. `id`: a fresh name for its sidecars; `now` (ms since 1970): their time
/// of modification.
///
/// If anything fails, there is no checkpoint with a missing sidecar.
pub fn write(
    snapshot: &Snapshot,
    store: &dyn Store,
    path: &str,
    (id, now): (&str, i64),
    choices: &Choices,
    interrupt: &Interrupt,
) -> Result<WrittenCheckpoint> {
    let plan = Plan::new(choices, true)?;
    let format = plan.fingerprint()?;
    let live = snapshot.live(interrupt)?;
    let division =
        divide(live.segments(), &format, choices.min_deletion_timestamp, &names(store)?, interrupt)?;
    let groups: Vec<(String, Vec<&Segment>)> = gather(&division.fresh)
        .into_iter()
        .enumerate()
        .map(|(number, group)| {
            (format!("{:020}.checkpoint.{:010}.{id}.parquet", snapshot.version(), number + 1), group)
        })
        .collect();
    let rows = plan.of_sidecar()?;
    let undo = |error| {
        for (name, _) in &groups {
            // If this fails, a cleanup of the log deletes it later.
            let _ = store.delete(&format!("{FOLDER}/{name}"));
        }
        error
    };
    let fresh = on_threads(&groups, interrupt, &|(name, group)| {
        let (segments, size_in_bytes, actions) =
            write_sidecar(store, name, group, &rows, choices, interrupt)?;
        let (path, name, format) = (name.clone(), name.clone(), Some(format.clone()));
        Ok(NewSidecar {
            sidecar: Arc::new(Sidecar { path, name, size_in_bytes, modification_time: now, format, actions }),
            segments,
        })
    })
    .map_err(undo)?;
    let sidecars: Vec<Arc<Sidecar>> =
        division.kept.iter().chain(fresh.iter().map(|fresh| &fresh.sidecar)).map(Arc::clone).collect();
    let top = write_top(snapshot, store, path, &sidecars, &plan, choices)
        .and_then(|top| check_kept(store, &division.kept).map(|()| top));
    let (top_bytes, singles) = match top {
        Ok(top) => top,
        // The file may exist in spite of the error: its sidecars are deleted only after it is deleted. A file
        // of another writer stays.
        Err(error) => {
            return Err(if path.contains(id) && store.delete(path).is_ok() { undo(error) } else { error });
        }
    };
    for NewSidecar { sidecar, segments } in fresh {
        for (segment, live, written) in segments {
            segment.came_from(Origin { sidecar: Arc::clone(&sidecar), live, written });
        }
    }
    Ok(WrittenCheckpoint {
        actions: singles + sidecars.iter().map(|sidecar| 1 + sidecar.actions).sum::<usize>(),
        adds: live.count(),
        bytes: top_bytes + sidecars.iter().map(|sidecar| sidecar.size_in_bytes.max(0) as u64).sum::<u64>(),
        top_bytes,
        kept: division.kept.len(),
        sidecars,
        schema: plan.schema,
    })
}

fn names(store: &dyn Store) -> Result<HashSet<String>> {
    let listed = store.list_from(FOLDER, None, false)?;
    Ok(listed.into_iter().filter_map(|object| object.path.rsplit('/').next().map(str::to_owned)).collect())
}

/// Returns an error if another process's cleanup deleted a sidecar that this checkpoint refers to.
fn check_kept(store: &dyn Store, kept: &[Arc<Sidecar>]) -> Result<()> {
    if kept.is_empty() {
        return Ok(());
    }
    let there = names(store)?;
    match kept.iter().find(|sidecar| !there.contains(&sidecar.name)) {
        None => Ok(()),
        Some(gone) => {
            Err(Error::new(Kind::Io, "a sidecar of the checkpoint was deleted while it was written")
                .at(gone.place()))
        }
    }
}

fn write_sidecar<'a>(
    store: &dyn Store,
    name: &str,
    group: &[&'a Segment],
    plan: &Plan,
    choices: &Choices,
    interrupt: &Interrupt,
) -> Result<(Counted<'a>, i64, usize)> {
    let mut file = Sink::create(store, &format!("{FOLDER}/{name}"), &plan.schema)?;
    let mut counted = Vec::with_capacity(group.len());
    for segment in group {
        let mut written = 0;
        for piece in segment.pieces() {
            for batch in unexpired(&piece, choices.min_deletion_timestamp, interrupt)? {
                interrupt.check()?;
                file.push(&plan.actions(segment.kind(), &batch)?)?;
                written += batch.num_rows();
            }
        }
        counted.push((*segment, segment.live_count(), written));
    }
    let actions = counted.iter().map(|(_, _, written)| written).sum();
    Ok((counted, file.finish()? as i64, actions))
}

/// Writes the file that refers to the sidecars. Returns its size, and the number of its other actions.
fn write_top(
    snapshot: &Snapshot,
    store: &dyn Store,
    path: &str,
    sidecars: &[Arc<Sidecar>],
    plan: &Plan,
    choices: &Choices,
) -> Result<(u64, usize)> {
    let itself = format!("{{\"version\":{}}}", snapshot.version());
    if path.ends_with(".json") {
        let lines = lines(snapshot, choices, &itself, sidecars)?;
        let data = Bytes::from(lines.join("\n") + "\n");
        let size = data.len() as u64;
        store.put(path, data)?;
        return Ok((size, lines.len() - sidecars.len()));
    }
    let mut file = Sink::create(store, path, &plan.schema)?;
    let mut batches = single_actions(snapshot, choices, plan)?;
    batches.push(plan.place("checkpointMetadata", from_json(plan, "checkpointMetadata", &[&itself])?)?);
    let actions = batches.iter().map(|batch| batch.num_rows()).sum();
    let named: Vec<String> = sidecars.iter().map(|sidecar| sidecar.to_json()).collect();
    if !named.is_empty() {
        let named: Vec<&str> = named.iter().map(String::as_str).collect();
        batches.push(plan.place("sidecar", from_json(plan, "sidecar", &named)?)?);
    }
    for batch in batches {
        file.push(&batch)?;
    }
    Ok((file.finish()?, actions))
}

fn lines(
    snapshot: &Snapshot,
    choices: &Choices,
    itself: &str,
    sidecars: &[Arc<Sidecar>],
) -> Result<Vec<String>> {
    let missing = |name: &'static str| {
        Error::protocol("a checkpoint needs the table's protocol and metadata").expected(name)
    };
    let (protocol, metadata) = (
        snapshot.protocol().ok_or_else(|| missing("protocol"))?,
        snapshot.metadata().ok_or_else(|| missing("metaData"))?,
    );
    let mut lines = vec![format!("{{\"checkpointMetadata\":{itself}}}")];
    lines.extend(sidecars.iter().map(|sidecar| format!("{{\"sidecar\":{}}}", sidecar.to_json())));
    lines.push(format!("{{\"protocol\":{protocol}}}"));
    lines.push(format!("{{\"metaData\":{metadata}}}"));
    for (app_id, (version, updated)) in kept_transactions(snapshot, choices) {
        lines.push(transaction(app_id, *version, *updated));
    }
    lines.extend(snapshot.domains().values().map(|domain| format!("{{\"domainMetadata\":{domain}}}")));
    Ok(lines)
}

/// Returns the line of a `txn` action.
pub(super) fn transaction(app_id: &str, version: i64, updated: Option<i64>) -> String {
    let mut line = String::from("{\"txn\":{\"appId\":");
    write_text(&mut line, app_id);
    line.push_str(&format!(",\"version\":{version}"));
    if let Some(updated) = updated {
        line.push_str(&format!(",\"lastUpdated\":{updated}"));
    }
    line.push_str("}}");
    line
}
