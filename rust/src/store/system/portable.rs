//! Operations of the local store by calls of the standard library alone. Windows uses them, with one call of
//! its own: a rename that replaces no file.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{System, names};
use crate::store::FoundFile;

/// The calls of [`System`] by the standard library.
#[derive(Debug)]
pub(super) struct Portable;

impl System for Portable {
    fn spelled(&self, location: &str) -> String {
        names::spelled(location)
    }

    fn is_drive(&self, scheme: &str) -> bool {
        names::is_drive(scheme)
    }

    fn refused<'a>(&self, path: &'a str) -> Option<&'a str> {
        path.split('/').find(|name| !names::takes(name))
    }

    fn open_below(&self, _root: &Path, _path: &str) -> Option<File> {
        None
    }

    fn look_up(&self, _folder: &Path, _names: &[String]) -> io::Result<Option<Vec<Option<FoundFile>>>> {
        Ok(None)
    }

    fn has_no_links(&self, error: &io::Error) -> bool {
        const CODES: [i32; 2] = [1, 50]; // ERROR_INVALID_FUNCTION (on Linux EPERM) and ERROR_NOT_SUPPORTED
        let is_known = matches!(
            error.kind(),
            ErrorKind::Unsupported | ErrorKind::TooManyLinks | ErrorKind::CrossesDevices
        );
        is_known || error.raw_os_error().is_some_and(|code| CODES.contains(&code))
    }

    /// Renames by `MoveFileEx`, which replaces a file only with the flag `MOVEFILE_REPLACE_EXISTING`. The
    /// standard library's `fs::rename` always replaces, so other systems than Windows have no such call here.
    #[cfg(windows)]
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<Option<bool>> {
        // Paths that begin with `\\?\` may have more than 260 characters.
        let (from, mut target) = (fs::canonicalize(from)?, fs::canonicalize(to.parent().unwrap_or(to))?);
        target.push(to.file_name().unwrap_or_default());
        let mut staged = tempfile::TempPath::try_from_path(from)?;
        staged.disable_cleanup(true); // after an error the staged file is needed for another attempt
        match staged.persist_noclobber(target) {
            Ok(()) => Ok(Some(true)),
            Err(failed) if failed.error.kind() == ErrorKind::AlreadyExists => Ok(Some(false)),
            Err(failed) => Err(failed.error),
        }
    }

    #[cfg(not(windows))]
    fn rename_new(&self, _from: &Path, _to: &Path) -> io::Result<Option<bool>> {
        Ok(None)
    }

    /// Checks each folder, and then deletes. A folder that another process replaces by a link in between is
    /// followed, as the standard library opens no file in an opened folder.
    fn unlink(&self, root: &Path, path: &str) -> io::Result<bool> {
        let mut place = root.to_owned();
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        for segment in above.split('/').filter(|segment| !segment.is_empty()) {
            place.push(segment);
            match fs::symlink_metadata(&place) {
                Ok(found) if found.is_dir() => {}
                Ok(_) => {
                    return Err(io::Error::other(format!(
                        "'{segment}' is a link or no folder: nothing behind it is deleted"
                    )));
                }
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        place.push(name);
        let removed = fs::remove_file(&place).or_else(|error| match fs::symlink_metadata(&place) {
            Ok(found) if found.is_symlink() => fs::remove_dir(&place), // Windows: a link to a folder
            _ => Err(error),
        });
        match removed {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Syncs a file. Windows has no such call for folders: NTFS writes their entries to its journal, and
    /// `sync_name` makes it write the journal.
    fn sync(&self, path: &Path) -> io::Result<()> {
        if fs::metadata(path)?.is_dir() {
            return Ok(());
        }
        // Windows syncs only files that are opened for writing.
        OpenOptions::new().write(true).open(path)?.sync_all()
    }

    fn sync_name(&self, path: &Path) -> io::Result<()> {
        self.sync(path)
    }

    fn modified(&self, file: &Metadata) -> (i64, i64) {
        since_1970(file.modified())
    }

    fn identity(&self, file: &Metadata) -> u64 {
        let (seconds, nanoseconds) = since_1970(file.created());
        seconds.cast_unsigned().rotate_left(30) ^ nanoseconds.cast_unsigned()
    }

    fn names(&self, _file: &Metadata) -> u64 {
        1
    }

    /// Returns `None` for a folder: it has the rights of the folder above it, which the standard library does
    /// not show.
    fn shared_with(&self, folder: &Metadata) -> Option<String> {
        (!folder.is_dir()).then(|| "a file".to_owned())
    }

    fn make_private_folder(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)
    }

    fn private<'a>(&self, options: &'a mut OpenOptions) -> &'a mut OpenOptions {
        options
    }
}

/// Returns seconds and nanoseconds since 1970; before it, the seconds are negative. 0 if the file system has
/// no such time.
fn since_1970(time: io::Result<SystemTime>) -> (i64, i64) {
    let time = time.unwrap_or(UNIX_EPOCH);
    let parts = |since: std::time::Duration| {
        (i64::try_from(since.as_secs()).unwrap_or(i64::MAX), i64::from(since.subsec_nanos()))
    };
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => parts(since),
        Err(before) => match parts(before.duration()) {
            (seconds, 0) => (-seconds, 0),
            (seconds, nanoseconds) => (-seconds - 1, 1_000_000_000 - nanoseconds),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_before_1970_count_back() {
        assert_eq!(since_1970(Ok(UNIX_EPOCH + Duration::from_millis(1_500))), (1, 500_000_000));
        assert_eq!(since_1970(Ok(UNIX_EPOCH - Duration::from_millis(1_500))), (-2, 500_000_000));
        assert_eq!(since_1970(Ok(UNIX_EPOCH - Duration::from_secs(3))), (-3, 0));
        assert_eq!(since_1970(Err(io::Error::other("none"))), (0, 0));
    }

    #[cfg(windows)]
    #[test]
    fn a_rename_replaces_no_file() {
        let root = tempfile::tempdir().unwrap();
        let (staged, target) = (root.path().join(".staged"), root.path().join("1.json"));
        std::fs::write(&staged, b"new").unwrap();
        std::fs::write(&target, b"old").unwrap();
        assert_eq!(Portable.rename_new(&staged, &target).unwrap(), Some(false));
        assert_eq!(
            (std::fs::read(&staged).unwrap(), std::fs::read(&target).unwrap()),
            (b"new".to_vec(), b"old".to_vec())
        );
        assert_eq!(Portable.rename_new(&staged, &root.path().join("2.json")).unwrap(), Some(true));
        assert!(!staged.exists() && std::fs::read(root.path().join("2.json")).unwrap() == b"new");
        assert!(Portable.rename_new(&staged, &root.path().join("3.json")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn it_finds_what_the_calls_of_the_system_find() {
        use super::super::posix::Posix;
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a");
        std::fs::write(&file, b"1").unwrap();
        let found = std::fs::metadata(&file).unwrap();
        assert_eq!(Portable.modified(&found), Posix.modified(&found));
        assert_ne!(Portable.identity(&found), 0);
        Portable.sync(&file).unwrap();
        Portable.sync(root.path()).unwrap();
        assert_eq!(Portable.sync(&root.path().join("gone")).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[cfg(unix)]
    #[test]
    fn deletes_follow_no_link() {
        use std::os::unix::fs::symlink;
        let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (folder, name) in [(root.path(), "own"), (other.path(), "kept")] {
            std::fs::create_dir(folder.join("folder")).unwrap();
            std::fs::write(folder.join("folder").join(name), b"1").unwrap();
        }
        symlink(other.path().join("folder"), root.path().join("linked")).unwrap();
        symlink(other.path().join("folder/kept"), root.path().join("link")).unwrap();
        let unlink = |path: &str| Portable.unlink(root.path(), path);
        assert!(unlink("linked/kept").unwrap_err().to_string().contains("is a link"));
        assert!(unlink("link").unwrap() && unlink("linked").unwrap() && unlink("folder/own").unwrap());
        assert!(!unlink("folder/own").unwrap() && !unlink("missing/own").unwrap());
        assert!(unlink("folder").is_err());
        assert!(other.path().join("folder/kept").exists());
    }
}
