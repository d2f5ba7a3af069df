//! System calls of the local store on Linux and macOS.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::System;
use crate::store::FoundFile;

mod lookup;

/// The calls of [`System`] on Linux and macOS.
#[derive(Debug)]
pub(super) struct Posix;

impl System for Posix {
    fn spelled(&self, location: &str) -> String {
        location.to_owned()
    }

    fn is_drive(&self, _scheme: &str) -> bool {
        false
    }

    fn refused<'a>(&self, _path: &'a str) -> Option<&'a str> {
        None
    }

    #[cfg(target_os = "linux")]
    fn open_below(&self, root: &Path, path: &str) -> Option<File> {
        use rustix::fs::ResolveFlags;
        // The kernel follows links only below the root. A link that it refuses may lead to an allowed root,
        // so the caller checks it.
        let folder =
            rustix::fs::open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let open = |folder| rustix::fs::openat2(folder, path, flags, Mode::empty(), ResolveFlags::BENEATH);
        folder.and_then(open).ok().map(File::from)
    }

    #[cfg(not(target_os = "linux"))]
    fn open_below(&self, _root: &Path, _path: &str) -> Option<File> {
        None
    }

    fn look_up(&self, folder: &Path, names: &[String]) -> io::Result<Option<Vec<Option<FoundFile>>>> {
        lookup::look_up(folder, names).map(Some)
    }

    fn has_no_links(&self, error: &io::Error) -> bool {
        let code = error.raw_os_error().map(Errno::from_raw_os_error);
        matches!(code, Some(Errno::PERM | Errno::NOTSUP | Errno::NOSYS | Errno::MLINK | Errno::XDEV))
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<Option<bool>> {
        match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(Some(true)),
            Err(Errno::EXIST) => Ok(Some(false)),
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens each folder below `root` without following links, then removes the name in the last one.
    fn unlink(&self, root: &Path, path: &str) -> io::Result<bool> {
        let folder_flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut folder = match rustix::fs::open(root, folder_flags, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let (above, name) = path.rsplit_once('/').map_or(("", path), |(above, name)| (above, name));
        for segment in above.split('/').filter(|segment| !segment.is_empty()) {
            folder =
                match rustix::fs::openat(&folder, segment, folder_flags | OFlags::NOFOLLOW, Mode::empty()) {
                    Ok(next) => next,
                    Err(Errno::NOENT) => return Ok(false),
                    Err(Errno::LOOP | Errno::NOTDIR) => {
                        return Err(io::Error::other(format!(
                            "'{segment}' is a link or no folder: nothing behind it is deleted"
                        )));
                    }
                    Err(error) => return Err(error.into()),
                };
        }
        match rustix::fs::unlinkat(&folder, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    /// Syncs the folder, which has the name as an entry.
    fn sync_name(&self, path: &Path) -> io::Result<()> {
        path.parent().map_or(Ok(()), |folder| self.sync(folder))
    }

    fn modified(&self, file: &Metadata) -> (i64, i64) {
        (file.mtime(), file.mtime_nsec())
    }

    fn identity(&self, file: &Metadata) -> u64 {
        file.ino()
    }

    fn names(&self, file: &Metadata) -> u64 {
        file.nlink()
    }

    fn shared_with(&self, folder: &Metadata) -> Option<String> {
        let is_own = folder.uid() == rustix::process::geteuid().as_raw() && folder.mode() & 0o077 == 0;
        match folder.is_dir() {
            true if is_own => None,
            true => Some(format!("mode {:o} of user {}", folder.mode() & 0o7777, folder.uid())),
            false => Some("a file".to_owned()),
        }
    }

    fn make_private_folder(&self, folder: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)
    }

    fn private<'a>(&self, options: &'a mut OpenOptions) -> &'a mut OpenOptions {
        options.mode(0o600)
    }
}
