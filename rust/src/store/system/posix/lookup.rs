//! Looks up files of a local folder by their names. The cost depends on the number of names, not on the
//! number of files in the folder, as it does for a listing.

use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::store::FoundFile;

/// Looks up the names in `folder`, and returns what was found in their order; `None` for a missing file and
/// for a folder. A missing folder is empty. Like a listing, the look-up follows links, and a link that leads
/// nowhere is a file.
///
/// The folder is opened first: a client of NFS then requests the folder's changes from its server, and so
/// does not answer from its cache that a new file is missing.
pub(super) fn look_up(folder: &Path, names: &[String]) -> io::Result<Vec<Option<FoundFile>>> {
    let folder =
        match rustix::fs::open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(vec![None; names.len()]),
            Err(error) => return Err(error.into()),
        };
    let look = |name: &String| match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(link) if FileType::from_raw_mode(link.st_mode) == FileType::Symlink => {
            Ok(describe(&rustix::fs::statat(&folder, name, AtFlags::empty()).unwrap_or(link)))
        }
        Ok(file) => Ok(describe(&file)),
        Err(Errno::NOENT | Errno::NAMETOOLONG) => Ok(None),
        Err(error) => Err(error.into()),
    };
    names.iter().map(look).collect()
}

#[allow(clippy::unnecessary_cast, clippy::useless_conversion)] // the fields' types differ between systems
fn describe(file: &Stat) -> Option<FoundFile> {
    if FileType::from_raw_mode(file.st_mode) == FileType::Directory {
        return None;
    }
    let modified_ms =
        (file.st_mtime as i64).saturating_mul(1000).saturating_add(file.st_mtime_nsec as i64 / 1_000_000);
    Some(FoundFile { size: u64::try_from(file.st_size).unwrap_or_default(), modified_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_up_as_a_listing_shows_them() {
        let root = std::env::temp_dir().join(format!("deltaic-lookup-{}", uuid::Uuid::new_v4().simple()));
        let names = ["a", "b", "folder", "nothing", "lost", "linked"].map(str::to_owned);
        assert_eq!(look_up(&root, &names).unwrap(), [None; 6]);
        std::fs::create_dir_all(root.join("folder")).unwrap();
        std::fs::write(root.join("a"), b"12345").unwrap();
        std::fs::write(root.join("b"), b"").unwrap();
        std::os::unix::fs::symlink(root.join("gone"), root.join("lost")).unwrap();
        std::os::unix::fs::symlink(root.join("a"), root.join("linked")).unwrap();
        let found = look_up(&root, &names).unwrap();
        assert_eq!(
            found.iter().map(Option::is_some).collect::<Vec<_>>(),
            [true, true, false, false, true, true]
        );
        let modified = std::fs::metadata(root.join("a")).unwrap().modified().unwrap();
        let modified = modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
        assert_eq!(
            found[0].map(|file| (file.size, file.modified_ms)),
            Some((5, i64::try_from(modified).unwrap()))
        );
        assert_eq!((found[1].map(|file| file.size), found[5]), (Some(0), found[0]));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
