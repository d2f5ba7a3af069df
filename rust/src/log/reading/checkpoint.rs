//! Reads checkpoints to Arrow ("Checkpoints"): classic, multi-part, and V2 with sidecars. Only the columns of
//! the state are decoded. In a large checkpoint, the actions on files stay in their files until they are
//! needed.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::buffer::NullBuffer;

use super::checkpoint_file::{CheckpointFile, open, open_columns};
use super::checkpoint_rows::{Rows, take_batch};
use super::commit::{Commit, twice};
use super::line::FileKind;
use super::segment::Segment;
use super::sidecar::{Origin, Sidecar};
use super::slice::{self, Slice};
use super::volume::{self, DecodedVolume};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::pages::{self, PageRequest};
use crate::parallel::on_threads;
use crate::store::Store;

/// The actions of a checkpoint.
#[derive(Debug, Default)]
pub struct Checkpoint {
    /// All actions except those on files.
    pub state: Commit,
    /// The actions on files: adds, then removes.
    pub files: Vec<Segment>,
}

impl Checkpoint {
    fn take(&mut self, root: &str, mut part: Commit, sidecar: Option<&Arc<Sidecar>>) -> Result<()> {
        let files = [
            (FileKind::Add, std::mem::take(&mut part.adds)),
            (FileKind::Remove, std::mem::take(&mut part.removes)),
        ];
        merge(&mut self.state, part)?;
        for (kind, batches) in files {
            for batch in batches {
                self.push(Segment::in_memory(root, kind, batch)?, sidecar);
            }
        }
        Ok(())
    }

    fn push(&mut self, segment: Segment, sidecar: Option<&Arc<Sidecar>>) {
        if let Some(sidecar) = sidecar {
            segment.came_from(Origin {
                sidecar: Arc::clone(sidecar),
                live: segment.len(),
                written: segment.len(),
            });
        }
        self.files.push(segment);
    }
}

/// Reads a checkpoint. `parts`: the paths of all its files, relative to the table, without its sidecars,
/// which its actions name. `eager_limit`: Parquet files of at most this many bytes together are decoded
/// completely (those of `parts` and the sidecars are added up separately); the actions on files of larger
/// ones are decoded when needed.
pub fn read(
    store: &Arc<dyn Store>,
    parts: &[String],
    eager_limit: u64,
    interrupt: &Interrupt,
) -> Result<Checkpoint> {
    let mut checkpoint = Checkpoint::default();
    let mut parquet = Vec::new();
    for part in parts {
        if part.ends_with(".json") {
            let lines = Commit::read_lines(store.as_ref(), part, interrupt)?;
            checkpoint.take(store.location(), lines, None).map_err(|error| error.within(part))?;
        } else {
            parquet.push((part.clone(), None));
        }
    }
    read_files(store, &parquet, eager_limit, &mut checkpoint, interrupt)?;
    let named = std::mem::take(&mut checkpoint.state.sidecars);
    let top = parts.first().map_or("", String::as_str);
    let sidecars = sidecars_of(store.location(), &named).map_err(|error| error.within(top))?;
    if !sidecars.is_empty() {
        let mut files = Checkpoint::default();
        read_files(store, &sidecars, eager_limit, &mut files, interrupt)?;
        only_files(&files.state, &sidecars)?;
        checkpoint.files.append(&mut files.files);
        merge(&mut checkpoint.state, files.state)?;
    }
    checkpoint.files.sort_by_key(|segment| segment.kind() == FileKind::Remove);
    Ok(checkpoint)
}

/// Reads protocol and metadata of a checkpoint, and decodes nothing else.
pub fn read_definition(store: &Arc<dyn Store>, parts: &[String], interrupt: &Interrupt) -> Result<Commit> {
    let mut state = Commit::default();
    for part in parts {
        if part.ends_with(".json") {
            let lines = Commit::read_definition(store.as_ref(), part, interrupt)?;
            merge(
                &mut state,
                Commit {
                    protocol: lines.protocol,
                    metadata: lines.metadata,
                    places: lines.places,
                    ..Commit::default()
                },
            )
            .map_err(|error| error.within(part))?;
            continue;
        }
        let file = open_columns(store, part, &|path| {
            path.first().is_some_and(|action| action == "protocol" || action == "metaData")
        })?;
        for group in (0..file.parquet().num_row_groups()).filter(|group| file.may_define(*group)) {
            merge(&mut state, file.read_alone(group, interrupt)?).map_err(|error| error.within(part))?;
        }
    }
    Ok(state)
}

/// Reads the names of a checkpoint's sidecars, without its actions on files.
pub fn sidecar_names(store: &Arc<dyn Store>, parts: &[String], interrupt: &Interrupt) -> Result<Vec<String>> {
    let mut named = Vec::new();
    for part in parts {
        if part.ends_with(".json") {
            named.extend(Commit::read_lines(store.as_ref(), part, interrupt)?.sidecars);
            continue;
        }
        let file = open_columns(store, part, &|path| path.first().is_some_and(|action| action == "sidecar"))?;
        if !file.has_column("sidecar") {
            continue;
        }
        for group in 0..file.parquet().num_row_groups() {
            named.extend(file.read_alone(group, interrupt)?.sidecars);
        }
    }
    named.iter().map(|text| Sidecar::parse(store.location(), text).map(|sidecar| sidecar.name)).collect()
}

/// Returns the files that these actions name, each once.
fn sidecars_of(root: &str, named: &[String]) -> Result<Vec<(String, Option<Sidecar>)>> {
    let mut files = Vec::with_capacity(named.len());
    let mut known = HashSet::with_capacity(named.len());
    for text in named {
        let sidecar = Sidecar::parse(root, text)?;
        if !known.insert(sidecar.name.clone()) {
            return Err(twice(format!("two sidecars {}", sidecar.name)));
        }
        files.push((sidecar.place(), Some(sidecar)));
    }
    Ok(files)
}

/// Checks that sidecars hold only actions on files: "The sidecar files can have only add file and remove file
/// entries."
fn only_files(files: &Commit, sidecars: &[(String, Option<Sidecar>)]) -> Result<()> {
    let others = [
        ("protocol", files.protocol.is_some()),
        ("metaData", files.metadata.is_some()),
        ("sidecar", !files.sidecars.is_empty()),
        ("txn", !files.transactions.is_empty()),
        ("domainMetadata", !files.domains.is_empty()),
    ];
    match others.iter().find(|(_, there)| *there) {
        Some((name, _)) => {
            let first = sidecars.first().map(|(path, _)| path);
            let place = files.places.protocol.as_ref().or(files.places.metadata.as_ref()).or(first);
            let error = Error::protocol("a sidecar holds what belongs into its checkpoint")
                .at(place.cloned().unwrap_or_default());
            Err(error.found(name).expected("add and remove alone"))
        }
        None => Ok(()),
    }
}

fn merge(state: &mut Commit, part: Commit) -> Result<()> {
    for (slot, value, name) in
        [(&mut state.protocol, part.protocol, "protocol"), (&mut state.metadata, part.metadata, "metaData")]
    {
        if let Some(value) = value
            && slot.replace(value).is_some()
        {
            return Err(twice(format!("two of {name}")));
        }
    }
    state.places = part.places.or(std::mem::take(&mut state.places));
    state.transactions.extend(part.transactions);
    state.domains.extend(part.domains);
    state.sidecars.extend(part.sidecars);
    state.adds.extend(part.adds);
    state.removes.extend(part.removes);
    Ok(())
}

fn read_files(
    store: &Arc<dyn Store>,
    files: &[(String, Option<Sidecar>)],
    eager_limit: u64,
    checkpoint: &mut Checkpoint,
    interrupt: &Interrupt,
) -> Result<()> {
    let mut opened = Vec::with_capacity(files.len());
    let mut bytes = 0;
    for (path, sidecar) in files {
        let file = open(store, path)?;
        bytes += file.stored().size();
        let actions = usize::try_from(file.parquet().file_metadata().num_rows()).unwrap_or_default();
        opened
            .push((Arc::new(file), sidecar.clone().map(|sidecar| Arc::new(Sidecar { actions, ..sidecar }))));
    }
    if bytes > eager_limit {
        return leave_there(&opened, checkpoint, interrupt);
    }
    let groups = |(file, sidecar): &(Arc<CheckpointFile>, Option<Arc<Sidecar>>)| {
        let (file, sidecar) = (Arc::clone(file), sidecar.clone());
        (0..file.parquet().num_row_groups()).map(move |group| (Arc::clone(&file), group, sidecar.clone()))
    };
    let tasks: Vec<_> = opened.iter().flat_map(groups).collect();
    let decoded = DecodedVolume::of(bytes);
    let read =
        on_threads(&tasks, interrupt, &|(file, group, _)| read_group(file, *group, &decoded, interrupt))?;
    for (part, (file, _, sidecar)) in read.into_iter().zip(&tasks) {
        checkpoint
            .take(store.location(), part, sidecar.as_ref())
            .map_err(|error| error.within(file.path()))?;
    }
    Ok(())
}

/// Actions that are not on files, each with a required field.
const OTHERS: [[&str; 2]; 5] = [
    ["protocol", "minReaderVersion"],
    ["metaData", "id"],
    ["txn", "appId"],
    ["domainMetadata", "domain"],
    ["sidecar", "path"],
];
/// Number of rows that are read at a time when few are searched for.
const AT_A_TIME: usize = 1024;

/// A part of a file that one thread reads.
enum Task<'a> {
    /// The actions of a row group that are not on files. The number is that of the row group.
    Others(&'a Arc<CheckpointFile>, usize),
    /// A slice of a row group: its actions on files of one kind in a range of rows.
    Files(&'a Arc<CheckpointFile>, usize, Range<usize>, FileKind, Option<&'a Arc<Sidecar>>),
}

fn leave_there(
    files: &[(Arc<CheckpointFile>, Option<Arc<Sidecar>>)],
    checkpoint: &mut Checkpoint,
    interrupt: &Interrupt,
) -> Result<()> {
    let mut tasks = Vec::new();
    for (file, sidecar) in files {
        for (group, described) in file.parquet().row_groups().iter().enumerate() {
            tasks.push(Task::Others(file, group));
            let rows = usize::try_from(described.num_rows()).unwrap_or_default();
            for from in (0..rows).step_by(slice::ROWS) {
                for kind in [FileKind::Add, FileKind::Remove] {
                    tasks.push(Task::Files(
                        file,
                        group,
                        from..rows.min(from + slice::ROWS),
                        kind,
                        sidecar.as_ref(),
                    ));
                }
            }
        }
    }
    let read = on_threads(&tasks, interrupt, &|task| match task {
        Task::Others(file, group) => Ok((file.read_others(*group, interrupt)?, None)),
        Task::Files(file, group, rows, kind, _) => {
            let known = Slice::open(file, (*group, rows.clone()), *kind, interrupt)?;
            Ok((Commit::default(), known.map(|known| Segment::in_files(*kind, known))))
        }
    })?;
    for ((others, segment), task) in read.into_iter().zip(&tasks) {
        let (Task::Others(file, _) | Task::Files(file, ..)) = task;
        merge(&mut checkpoint.state, others).map_err(|error| error.within(file.path()))?;
        if let (Some(segment), Task::Files(_, _, _, _, sidecar)) = (segment, task) {
            checkpoint.push(segment, *sidecar);
        }
    }
    Ok(())
}

impl CheckpointFile {
    /// Reads the actions of a row group that are not on files, if nothing else of the checkpoint is read.
    fn read_alone(&self, group: usize, interrupt: &Interrupt) -> Result<Commit> {
        read_group(self, group, &DecodedVolume::of(self.stored().size()), interrupt)
    }

    /// Reads the actions of a row group that are not on files.
    fn read_others(&self, group: usize, interrupt: &Interrupt) -> Result<Commit> {
        let there: Vec<&str> =
            OTHERS.iter().filter(|path| self.may_have(group, *path)).map(|path| path[0]).collect();
        if there.is_empty() {
            return Ok(Commit::default());
        }
        let mask = self.mask_of(&|path| path.first().is_some_and(|action| there.contains(&action.as_str())));
        let mut others = self.clone();
        others.mask = mask;
        others.read_alone(group, interrupt)
    }

    /// Returns false if the statistics of a row group show that it has neither protocol nor metadata.
    fn may_define(&self, group: usize) -> bool {
        self.may_have(group, &["protocol", "minReaderVersion"]) || self.may_have(group, &["metaData", "id"])
    }
}

impl CheckpointFile {
    /// Returns the number of actions in a row group that are not on files. `None` if its statistics do not
    /// have it, or if a column that is read belongs to actions on files.
    fn others(&self, group: usize) -> Option<u64> {
        let read = |action: &str| {
            let columns = self.parquet().file_metadata().schema_descr().columns();
            let is_read = |(leaf, _): &(usize, _)| self.mask.leaf_included(*leaf);
            columns
                .iter()
                .enumerate()
                .filter(is_read)
                .any(|(_, column)| column.path().parts().first().is_some_and(|name| name == action))
        };
        if read("add") || read("remove") {
            return None;
        }
        let rows = self.parquet().row_group(group).num_rows().unsigned_abs();
        let there = OTHERS.iter().filter(|path| read(path[0]));
        there.map(|path| rows.checked_sub(self.nulls(group, self.leaf(path)?)?)).sum()
    }
}

/// Returns the number of actions in a batch that are not on files.
fn others_in(batch: &RecordBatch) -> usize {
    let count = |[action, field]: &[&str; 2]| {
        let actions = batch.column_by_name(action)?.as_struct_opt()?;
        let missing = NullBuffer::union(actions.nulls(), actions.column_by_name(field)?.nulls());
        Some(batch.num_rows() - missing.map_or(0, |missing| missing.null_count()))
    };
    OTHERS.iter().filter_map(count).sum()
}

fn read_group(
    file: &CheckpointFile,
    group: usize,
    decoded: &DecodedVolume,
    interrupt: &Interrupt,
) -> Result<Commit> {
    let place = |error: Error| error.within(format_args!("{} (row group {group})", file.path()));
    let described = file.parquet().row_group(group);
    let stored = file.stored().near(described, &file.mask).map_err(place)?;
    decoded.expect(&stored, described, &file.mask).map_err(place)?;
    let rows = volume::batch_rows(&stored, described, &file.mask).map_err(place)?;
    let mut missing = file.others(group);
    let batch = if missing.is_some() { rows.min(AT_A_TIME) } else { rows };
    let wanted = PageRequest { group, mask: file.mask.clone(), batch, rows: None };
    let reader = pages::record_batches(stored, file.footer(), wanted).map_err(|error| place(error.into()))?;
    let mut first = file.first_row(group);
    let mut state = Commit::default();
    for batch in reader {
        interrupt.check()?;
        let batch = batch.map_err(|error| place(error.into()))?;
        decoded.add(&batch).map_err(place)?;
        take_batch(&mut state, &Rows { batch: &batch, first, path: file.path() })?;
        first += batch.num_rows();
        missing = missing.map(|missing| missing.saturating_sub(others_in(&batch) as u64));
        if missing == Some(0) {
            break; // all further actions are on files
        }
    }
    Ok(state)
}
