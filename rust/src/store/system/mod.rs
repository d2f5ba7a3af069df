//! Calls of the operating system that [`super::local`] needs. `posix` has those of Linux and macOS, and
//! `portable` uses little more than the standard library, for Windows.

use std::fmt::Debug;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

use super::FoundFile;

mod names;
mod portable;
#[cfg(unix)]
mod posix;

pub use names::{is_drive, spelled};

/// Set to `portable` in the tests of Linux, so that they run on the calls that Windows uses.
const VARIABLE: &str = "DELTAIC_LOCAL_STORE";

/// What differs between operating systems.
pub trait System: Debug + Send + Sync {
    /// Returns a location in the one spelling that stores and logs use: `C:\data` becomes `C:/data`.
    fn spelled(&self, location: &str) -> String;
    /// True if text before a colon names a drive: `C` in `C:/data`. Elsewhere it is the scheme of a URL.
    fn is_drive(&self, scheme: &str) -> bool;
    /// Returns the first name in a path that no file or folder may have.
    fn refused<'a>(&self, path: &'a str) -> Option<&'a str>;
    /// Opens a file for reading if the system ensures that no link leads out of `root`. `None` if the caller
    /// must check the links.
    fn open_below(&self, root: &Path, path: &str) -> Option<File>;
    /// Looks up names in a folder. `None` if a listing is as fast.
    fn look_up(&self, folder: &Path, names: &[String]) -> io::Result<Option<Vec<Option<FoundFile>>>>;
    /// True for the errors of file systems without hard links.
    fn has_no_links(&self, error: &io::Error) -> bool;
    /// Renames a file if nothing has the new name; returns false if something has. `None` if the system or
    /// the file system cannot.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<Option<bool>>;
    /// Deletes a file below `root`; returns false if there is none. Links are deleted, and never followed.
    fn unlink(&self, root: &Path, path: &str) -> io::Result<bool>;
    /// Makes a file, or the entries of a folder, durable.
    fn sync(&self, path: &Path) -> io::Result<()>;
    /// Makes the newest name of a durable file, or of a folder, durable. `path`: this name, or an older one
    /// in the same folder.
    fn sync_name(&self, path: &Path) -> io::Result<()>;
    /// Returns the seconds since 1970 and the nanoseconds of the last change.
    fn modified(&self, file: &Metadata) -> (i64, i64);
    /// Returns a number that differs between two files of the same size and time, if the system has one.
    fn identity(&self, file: &Metadata) -> u64;
    /// Returns the number of names (hard links) of a file, if the system reports it.
    fn names(&self, file: &Metadata) -> u64;
    /// Returns who may use a folder, if others than the process's user may: "mode 755 of user 0".
    fn shared_with(&self, folder: &Metadata) -> Option<String>;
    /// Creates a folder, and those above it, that only the process's user can read and write.
    fn make_private_folder(&self, folder: &Path) -> io::Result<()>;
    /// Makes files that these options create readable and writable by the process's user alone.
    fn private<'a>(&self, options: &'a mut OpenOptions) -> &'a mut OpenOptions;
}

#[cfg(unix)]
const NATIVE: &dyn System = &posix::Posix;
#[cfg(not(unix))]
const NATIVE: &dyn System = &portable::Portable;

/// Returns the calls of this operating system.
pub fn native() -> &'static dyn System {
    if std::env::var_os(VARIABLE).is_some_and(|value| value == "portable") {
        &portable::Portable
    } else {
        NATIVE
    }
}
