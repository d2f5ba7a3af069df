//! Makes many files of a local disk durable at once: one write of the file system's journal serves the
//! requests of several threads.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Maximum number of threads that wait for the disk. Measured with 3,000 files on ext4: 5.9 s one after the
/// other, 0.3 s on 8 threads, 0.13 s on 32, and the same on 64.
const THREADS: usize = 32;
/// Maximum number of files of a call that are synced one after the other while other calls run: the first
/// sync of any of them writes the journal for all, so threads would only cost processor time. Measured with
/// 8 writers of 4 files each on ext4: 1,700 calls a second, against 580 with a thread for each file.
const FEW: usize = 8;

/// Number of calls of `sync` that are running.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Counts a call of `sync` while it runs.
struct Running {
    /// True if other calls were running when this one began.
    beside_others: bool,
}

impl Running {
    fn enter() -> Self {
        Self { beside_others: RUNNING.fetch_add(1, Ordering::Relaxed) > 0 }
    }

    /// Returns the number of threads for `jobs` files and folders.
    fn threads(&self, jobs: usize) -> usize {
        if self.beside_others && jobs <= FEW { 1 } else { jobs.min(THREADS) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A file or folder to sync.
enum Job {
    Opened(File),
    Named(PathBuf),
}

/// Syncs the files at `paths` below `root`, all folders from theirs up to the parent of `root` once, and
/// `staged`.
///
/// A missing file is skipped: it was deleted. Returns the first error.
pub fn sync(root: &Path, paths: &[String], staged: Option<File>) -> io::Result<()> {
    let mut folders: BTreeSet<&Path> = paths.iter().flat_map(|path| Path::new(path).ancestors().skip(1)).collect();
    let above = if folders.remove(Path::new("")) { [Some(root), root.parent()] } else { [None, None] };
    let below = folders.into_iter().map(|folder| root.join(folder));
    let mut jobs: Vec<Job> = paths.iter().map(|path| root.join(path)).chain(below).map(Job::Named).collect();
    jobs.extend(above.into_iter().flatten().map(|folder| Job::Named(folder.to_owned())));
    jobs.extend(staged.map(Job::Opened));
    let (next, stop, failure) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(None));
    let work = || {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed))
            && !stop.load(Ordering::Relaxed)
        {
            if let Err(error) = job.sync() {
                stop.store(true, Ordering::Relaxed);
                failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
            }
        }
    };
    let running = Running::enter();
    std::thread::scope(|scope| {
        for _ in 1..running.threads(jobs.len()) {
            scope.spawn(work);
        }
        work();
    });
    failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).map_or(Ok(()), Err)
}

impl Job {
    fn sync(&self) -> io::Result<()> {
        match self {
            Self::Opened(file) => file.sync_all(),
            Self::Named(path) => match File::open(path) {
                Ok(file) => file.sync_all(),
                Err(error) if matches!(error.kind(), ErrorKind::NotFound) => Ok(()),
                Err(error) => Err(error),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_many_folders_are_synced_and_missing_ones_passed_over() {
        let root = std::env::temp_dir().join(format!("deltaic-durable-{}", uuid::Uuid::new_v4().simple()));
        let mut paths = Vec::new();
        for number in 0..50 {
            let path = format!("p={}/q={number}/file", number % 3);
            std::fs::create_dir_all(root.join(&path).parent().unwrap_or(&root)).unwrap();
            std::fs::write(root.join(&path), b"1").unwrap();
            paths.push(path);
        }
        paths.push("p=0/gone".to_owned());
        let staged = File::create(root.join(".staged")).unwrap();
        sync(&root, &paths, Some(staged)).unwrap();
        sync(&root, &[], None).unwrap();
        {
            let other = Running::enter(); // one thread has the same result
            assert_eq!((Running::enter().threads(4), Running::enter().threads(1000)), (1, THREADS));
            sync(&root, &paths[..2], None).unwrap();
            drop(other);
        }
        // A file that cannot be opened is an error; it does not count as deleted.
        std::os::unix::fs::symlink(root.join("loop"), root.join("loop")).unwrap();
        assert!(sync(&root, &["loop".to_owned()], None).is_err());
        std::fs::remove_dir_all(&root).unwrap();
    }
}
