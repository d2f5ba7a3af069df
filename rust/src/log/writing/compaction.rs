//! Writes compacted ranges: one file of JSON lines with the reconciled actions of several commits ("Log
//! Compaction Files").

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::body::action_lines;
use super::checkpoint_v2::transaction;
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::log::reading::commit::Commit;
use crate::log::reading::line::FileKind;
use crate::log::state::snapshot::Snapshot;
use crate::parallel::on_threads;
use crate::store::Store;

/// Returns the lines of a compacted range. `commits`: (version, path), ascending, without a gap.
pub fn compact(store: &Arc<dyn Store>, commits: &[(u64, String)], interrupt: &Interrupt) -> Result<Bytes> {
    let read = on_threads(commits, interrupt, &|(version, path)| {
        Commit::read(store.as_ref(), *version, path, interrupt)
    })?;
    let mut domains: BTreeMap<String, String> = BTreeMap::new();
    for commit in &read {
        domains.extend(commit.domains.clone()); // also removed domains: they remove those of older versions
    }
    let range = Snapshot::of_commits(store.location(), read)?;
    let mut lines = Vec::new();
    lines.extend(range.protocol().map(|action| format!("{{\"protocol\":{action}}}")));
    lines.extend(range.metadata().map(|action| format!("{{\"metaData\":{action}}}")));
    lines.extend(
        range
            .transactions()
            .iter()
            .map(|(app_id, (version, updated))| transaction(app_id, *version, *updated)),
    );
    lines.extend(domains.values().map(|action| format!("{{\"domainMetadata\":{action}}}")));
    let mut out = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    for (name, kind) in [("remove", FileKind::Remove), ("add", FileKind::Add)] {
        for batch in range.living(kind, interrupt)? {
            out.extend(action_lines(name, &batch, interrupt)?);
        }
    }
    Ok(Bytes::from(out))
}
