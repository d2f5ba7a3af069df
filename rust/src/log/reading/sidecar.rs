//! Sidecars: files that hold a part of a checkpoint's actions on files ("Sidecar Files"). A later checkpoint
//! refers again to the sidecars whose actions have not changed.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use serde::Deserialize;

use super::line::FileKind;
use super::segment::{Columns, Piece, Segment};
use crate::error::{Error, Kind, Result};
use crate::interrupt::Interrupt;
use crate::log::json_text::write_text;
use crate::log::schema::long;
use crate::store::path::{Place, locate_encoded};

/// The folder of sidecars.
pub const FOLDER: &str = "_delta_log/_sidecars";
/// Number of actions of a new sidecar, which gets whole segments until it has as many.
pub const ROWS: usize = 50_000;
/// Maximum number of sidecars with less than half of [`ROWS`] that a checkpoint refers to again; more are
/// merged into a new one.
const MOST_SMALL: usize = 8;
/// The tag with the hash of the columns of `add`.
const FORMAT: &str = "deltaic.format";

/// A sidecar, as a checkpoint refers to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sidecar {
    /// The path as written in the log.
    pub path: String,
    /// The file's name in [`FOLDER`].
    pub name: String,
    /// Size in bytes.
    pub size_in_bytes: i64,
    /// Time of modification, in ms since 1970.
    pub modification_time: i64,
    /// Hash of the columns of its `add` actions, if deltaic wrote it.
    pub format: Option<String>,
    /// Number of actions. The log does not have it: it is 0 until the sidecar's file is opened.
    pub actions: usize,
}

impl Sidecar {
    /// Parses the JSON of a `sidecar` action.
    pub fn parse(root: &str, text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Named {
            path: String,
            size_in_bytes: Option<i64>,
            modification_time: Option<i64>,
            tags: Option<BTreeMap<String, Option<String>>>,
        }
        let malformed = |error| {
            Error::protocol("a sidecar action is malformed")
                .at("sidecar")
                .found(error)
                .expected("an object with a path")
        };
        let named: Named = serde_json::from_str(text).map_err(malformed)?;
        let name = name_of(root, &named.path)?;
        Ok(Self {
            name,
            path: named.path,
            size_in_bytes: named.size_in_bytes.unwrap_or(0),
            modification_time: named.modification_time.unwrap_or(0),
            format: named.tags.and_then(|mut tags| tags.remove(FORMAT).flatten()),
            actions: 0,
        })
    }

    /// Returns the JSON of the `sidecar` action.
    pub fn to_json(&self) -> String {
        let mut text = String::from("{\"path\":");
        write_text(&mut text, &self.path);
        text.push_str(&format!(
            ",\"sizeInBytes\":{},\"modificationTime\":{},\"tags\":{{",
            self.size_in_bytes, self.modification_time
        ));
        if let Some(format) = &self.format {
            text.push_str(&format!("\"{FORMAT}\":"));
            write_text(&mut text, format);
        }
        text.push_str("}}");
        text
    }

    /// Returns the path below the table's root.
    pub fn place(&self) -> String {
        format!("{FOLDER}/{}", self.name)
    }
}

/// Returns the file name in an action. The action has either the name alone or the whole path, which must be
/// in the table's own folder.
fn name_of(root: &str, text: &str) -> Result<String> {
    let elsewhere = || {
        let error = Error::new(Kind::PathOutsideTable, "a sidecar lies in the table's folder _sidecars")
            .at("sidecar.path");
        error.found(format!("{text:?}")).expected("the name of a file in it")
    };
    let Ok(Place::Inside(path)) = locate_encoded(root, text) else { return Err(elsewhere()) };
    let name = path.strip_prefix(FOLDER).and_then(|rest| rest.strip_prefix('/')).unwrap_or(&path);
    if name.is_empty() || name.contains('/') { Err(elsewhere()) } else { Ok(name.to_owned()) }
}

/// The sidecar that holds the rows of a segment.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The sidecar.
    pub sidecar: Arc<Sidecar>,
    /// Number of live rows of the segment when the sidecar was written. Rows never become live again, so an
    /// equal number means the same rows.
    pub live: usize,
    /// Number of rows in the sidecar: without tombstones that had expired.
    pub written: usize,
}

/// A segment's origin, shared by all versions that share the segment.
pub type Provenance = Arc<Mutex<Option<Origin>>>;

/// Rows of segments to be merged, separated by the sidecar that holds them, so that the merged segment still
/// belongs to this sidecar.
#[derive(Default)]
pub struct SidecarRows(BTreeMap<Option<String>, (Option<Origin>, Vec<RecordBatch>)>);

impl SidecarRows {
    /// Adds the live rows of a segment.
    pub fn push(&mut self, segment: &Segment, interrupt: &Interrupt) -> Result<()> {
        let origin = segment.origin().filter(|origin| origin.live == segment.live_count());
        let name = origin.as_ref().map(|origin| origin.sidecar.name.clone());
        let (known, batches) = self.0.entry(name).or_default();
        *known = match (known.take(), origin) {
            (Some(known), Some(more)) => {
                Some(Origin { live: known.live + more.live, written: known.written + more.written, ..known })
            }
            (None, more) => more,
            (known, None) => known,
        };
        batches.extend(segment.living(interrupt)?);
        Ok(())
    }
}

impl IntoIterator for SidecarRows {
    type Item = (Option<Origin>, Vec<RecordBatch>);
    type IntoIter = std::collections::btree_map::IntoValues<Option<String>, Self::Item>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_values()
    }
}

/// The parts of a checkpoint: existing sidecars that it refers to, and segments to write.
pub struct Division<'a> {
    /// Sidecars whose rows are all still live.
    pub kept: Vec<Arc<Sidecar>>,
    /// All other segments, adds first.
    pub fresh: Vec<&'a Segment>,
}

/// Divides the segments of a version into sidecars that exist and segments to write. `format`: hash of the
/// checkpoint's columns; `after`: tombstones deleted up to this time (ms since 1970) have expired; `there`:
/// names of the sidecars in the store.
pub fn divide<'a>(
    segments: &'a [Segment],
    format: &str,
    after: i64,
    there: &HashSet<String>,
    interrupt: &Interrupt,
) -> Result<Division<'a>> {
    let mut covered: BTreeMap<String, (Arc<Sidecar>, usize)> = BTreeMap::new();
    let mut living: Vec<(&Segment, Option<Origin>)> = Vec::new();
    for segment in segments.iter().filter(|segment| segment.live_count() > 0) {
        let unexpired = unexpired_count(segment, after, interrupt)?;
        if unexpired == 0 {
            continue;
        }
        let same = |origin: &Origin| segment.live_count() == origin.live && unexpired == origin.written;
        let origin = segment.origin().filter(same);
        if let Some(origin) = &origin {
            covered
                .entry(origin.sidecar.name.clone())
                .or_insert_with(|| (Arc::clone(&origin.sidecar), 0))
                .1 += origin.written;
        }
        living.push((segment, origin));
    }
    let usable = |sidecar: &Sidecar, rows: usize| {
        rows == sidecar.actions && sidecar.format.as_deref() == Some(format) && there.contains(&sidecar.name)
    };
    let mut kept: Vec<Arc<Sidecar>> = covered
        .into_values()
        .filter(|(sidecar, rows)| usable(sidecar, *rows))
        .map(|(sidecar, _)| sidecar)
        .collect();
    let is_small = |sidecar: &Arc<Sidecar>| sidecar.actions * 2 < ROWS;
    if kept.iter().filter(|sidecar| is_small(sidecar)).count() > MOST_SMALL {
        kept.retain(|sidecar| !is_small(sidecar));
    }
    let names: HashSet<&str> = kept.iter().map(|sidecar| sidecar.name.as_str()).collect();
    let is_kept = |origin: &Option<Origin>| {
        origin.as_ref().is_some_and(|origin| names.contains(origin.sidecar.name.as_str()))
    };
    let mut fresh: Vec<&Segment> =
        living.iter().filter(|(_, origin)| !is_kept(origin)).map(|(segment, _)| *segment).collect();
    fresh.sort_by_key(|segment| segment.kind() == FileKind::Remove);
    Ok(Division { kept, fresh })
}

fn unexpired_count(segment: &Segment, after: i64, interrupt: &Interrupt) -> Result<usize> {
    if segment.kind() == FileKind::Add {
        return Ok(segment.live_count());
    }
    let times = segment.read(Columns::Of(&["deletionTimestamp"]), &segment.live(), interrupt)?;
    times.iter().map(|batch| Ok(newer(batch, after)?.true_count())).sum()
}

/// Returns for each tombstone if it was deleted after this time (ms since 1970); one without a time counts as
/// deleted in 1970.
pub fn newer(tombstones: &RecordBatch, after: i64) -> Result<BooleanArray> {
    Ok(long(tombstones, "deletionTimestamp")?.iter().map(|time| Some(time.unwrap_or(0) > after)).collect())
}

/// Reads the live rows of a piece, without expired tombstones: a checkpoint gets these rows.
pub fn unexpired(piece: &Piece<'_>, after: i64, interrupt: &Interrupt) -> Result<Vec<RecordBatch>> {
    let rows = piece.read(Columns::All, &piece.live(), interrupt)?;
    if piece.segment().kind() == FileKind::Add {
        return Ok(rows);
    }
    rows.iter().map(|batch| Ok(filter_record_batch(batch, &newer(batch, after)?)?)).collect()
}

/// Groups whole segments until a group has [`ROWS`] rows. Adds and tombstones are separate, as tombstones
/// expire.
pub fn gather<'a>(segments: &[&'a Segment]) -> Vec<Vec<&'a Segment>> {
    let mut groups: Vec<Vec<&'a Segment>> = Vec::new();
    let mut rows = 0;
    for segment in segments {
        match groups.last_mut() {
            Some(group) if rows < ROWS && group.iter().all(|other| other.kind() == segment.kind()) => {
                group.push(segment)
            }
            _ => {
                rows = 0;
                groups.push(vec![segment]);
            }
        }
        rows += segment.live_count();
    }
    groups
}
