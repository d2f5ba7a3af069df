//! A folder of local copies of byte ranges of objects: limited in bytes, shared by processes, and checked
//! whenever a copy is read.
//!
//! `xx/yyyy.../start-end` holds bytes `start..end` of the object whose digest is `xxyyyy...`. A copy is
//! written under another name and then renamed, so readers need no lock. Any error counts as a missing copy:
//! the folder may be deleted, truncated or full at any time.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::hash::Hasher;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use twox_hash::XxHash64;

use super::ObjectMeta;
use super::system::native;

/// The first bytes of every copy; another format will have others.
const MAGIC: &[u8; 8] = b"DLTCACH1";
/// Number of bytes before the copied ones.
const HEADER: usize = 96;
/// A copy may take at most 1/LARGEST_PART of the limit; larger pieces are not kept.
const LARGEST_PART: u64 = 4;
/// A larger copy is used for a range if it has at most eight times the bytes of the range plus this many: a
/// copy is always read as a whole, to verify its checksum.
const LARGEST_COVER: u64 = 8 << 20;
/// Number of bytes to read at a time and then hash, while they are in the processor's cache.
const BLOCK: usize = 256 << 10;
/// Copies used within this time count as equally recent, so that not every read updates a file's time.
const RECENT: Duration = Duration::from_secs(10);
/// Temporary files older than this were left by a process that was killed.
const ABANDONED: Duration = Duration::from_secs(3600);
/// Number of milliseconds without writing after a failed write, such as on a full disk.
const REST_MS: u64 = 1000;
/// The attempts of a writer to lock the folder's size before it gives up, and the pause between them.
const LOCK_ATTEMPTS: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_micros(200);
/// The file with the total size of all copies; writers lock it.
const USAGE: &str = ".usage";
/// Prefix of the names of files that are being written.
const TEMPORARY: &str = ".tmp-";

/// The SHA-256 digest that identifies one version of an object.
pub type Digest = [u8; 32];

/// The part of an object that a copy holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece(u64, u64);

impl Piece {
    /// The whole object, if its size was unknown before.
    pub const WHOLE: Self = Self(u64::MAX, u64::MAX);
    /// Makes the piece with the bytes `start..end`.
    pub fn range(start: u64, end: u64) -> Self {
        Self(start, end)
    }
    /// Makes the piece with the last `length` bytes, or with the whole object if it is shorter.
    pub fn tail(length: u64) -> Self {
        Self(u64::MAX, length)
    }
    fn name(self) -> String {
        format!("{:x}-{:x}", self.0, self.1)
    }
    fn parse(name: &str) -> Option<Self> {
        let (start, end) = name.split_once('-')?;
        let piece = Self(u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
        (piece.name() == name).then_some(piece)
    }
    /// True if a copy of this piece may have this many bytes.
    fn fits(self, length: u64) -> bool {
        if self.0 != u64::MAX { Some(length) == self.1.checked_sub(self.0) } else { length <= self.1 }
    }
}

/// The folder of local copies, as one opened table uses it.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    limit: u64,
    born: Instant,
    rests_until: AtomicU64,
}

impl Folder {
    /// Makes a folder `root` with at most `limit` bytes of copies. It is created with the first copy.
    pub fn new(root: PathBuf, limit: u64) -> Self {
        Self { root, limit, born: Instant::now(), rests_until: AtomicU64::new(0) }
    }

    /// Returns the piece and its object's metadata, if there is a valid copy.
    pub fn get(&self, object: &Digest, piece: Piece) -> Option<(ObjectMeta, Bytes)> {
        if !self.is_private() {
            return None;
        }
        self.read(object, piece)
    }

    /// Returns bytes `start..end`, also from a copy that is a little larger.
    pub fn range(&self, object: &Digest, start: u64, end: u64) -> Option<Bytes> {
        if let Some((_, bytes)) = self.get(object, Piece::range(start, end)) {
            return Some(bytes);
        }
        let most = (end - start).saturating_mul(8).saturating_add(LARGEST_COVER);
        let holds = |piece: &Piece| piece.0 <= start && end <= piece.1 && piece.1 - piece.0 <= most;
        let names = fs::read_dir(self.folder(object)).ok()?;
        let pieces = names.flatten().filter_map(|entry| Piece::parse(entry.file_name().to_str()?));
        let best = pieces.filter(holds).min_by_key(|piece| piece.1 - piece.0)?;
        let (meta, bytes) = self.get(object, best)?;
        let bytes = bytes.slice((start - best.0) as usize..(end - best.0) as usize);
        if best.1 - best.0 > 2 * (end - start) {
            // The next read needs only this smaller copy.
            self.put(object, Piece::range(start, end), &meta, &bytes);
        }
        Some(bytes)
    }

    /// Writes a copy, unless it is too large or a write has just failed. An error is only logged.
    pub fn put(&self, object: &Digest, piece: Piece, meta: &ObjectMeta, data: &Bytes) {
        let size = (data.len() + HEADER) as u64;
        let now = self.born.elapsed().as_millis() as u64;
        if size > self.limit / LARGEST_PART
            || !piece.fits(data.len() as u64)
            || now < self.rests_until.load(Ordering::Relaxed)
        {
            return;
        }
        if let Err(error) = self.write(object, piece, meta, data) {
            self.rests_until.store(now + REST_MS, Ordering::Relaxed);
            let root = self.root.display();
            log::debug!(target: "deltaic.store", "the cache cannot keep a copy in {root}: {error}");
        }
    }

    /// True if the folder exists and only the user can read and write it: otherwise other users could change
    /// the rows that are read.
    fn is_private(&self) -> bool {
        fs::metadata(&self.root).is_ok_and(|found| native().shared_with(&found).is_none())
    }

    fn folder(&self, object: &Digest) -> PathBuf {
        let name: String = object.iter().map(|byte| format!("{byte:02x}")).collect();
        self.root.join(&name[..2]).join(&name[2..])
    }

    fn read(&self, object: &Digest, piece: Piece) -> Option<(ObjectMeta, Bytes)> {
        let path = self.folder(object).join(piece.name());
        let file = File::open(&path).ok()?;
        let found = file.metadata().ok()?;
        let read = self.checked(&file, &found, object, piece);
        if read.is_none() {
            let _ = fs::remove_file(&path); // it was truncated or changed, or belongs to another object
        } else if found.modified().ok().and_then(|time| time.elapsed().ok()).is_some_and(|age| age > RECENT) {
            let _ = file.set_modified(SystemTime::now()); // if this fails, the copy is only deleted earlier
        }
        read
    }

    fn checked(
        &self,
        file: &File,
        found: &Metadata,
        object: &Digest,
        piece: Piece,
    ) -> Option<(ObjectMeta, Bytes)> {
        let length = found.len().checked_sub(HEADER as u64)?;
        if !found.is_file() || !piece.fits(length) || length > self.limit {
            return None;
        }
        let mut header = [0; HEADER];
        (&*file).read_exact(&mut header).ok()?;
        let mut data = Vec::with_capacity(usize::try_from(length).ok()?);
        let mut checksum = checksum_after(&header);
        while (data.len() as u64) < length {
            let start = data.len();
            file.take((length - start as u64).min(BLOCK as u64)).read_to_end(&mut data).ok()?;
            if data.len() == start {
                return None;
            }
            checksum.write(&data[start..]);
        }
        let number = |at: usize| header[at..at + 8].try_into().map(u64::from_le_bytes).unwrap_or_default();
        let meta = ObjectMeta {
            path: String::new(),
            size: number(56),
            modified_ms: number(64).cast_signed(),
            symlink: false,
            identity: number(72),
        };
        (header == header_of(object, piece, &meta, data.len(), checksum)).then(|| (meta, Bytes::from(data)))
    }

    fn write(&self, object: &Digest, piece: Piece, meta: &ObjectMeta, data: &Bytes) -> io::Result<()> {
        native().make_private_folder(&self.root)?;
        if !self.is_private() {
            return Err(io::Error::new(ErrorKind::PermissionDenied, "others may use the folder"));
        }
        self.make_room((data.len() + HEADER) as u64)?;
        let folder = self.folder(object);
        let temporary = folder.join(format!("{TEMPORARY}{}", uuid::Uuid::new_v4().simple()));
        let create = || {
            native().make_private_folder(&folder)?;
            native().private(OpenOptions::new().write(true).create_new(true)).open(&temporary)
        };
        // Another process may remove the empty folder before a file is in it.
        let mut file = create().or_else(|_| create())?;
        let mut checksum = checksum_after(&header_of(object, piece, meta, data.len(), XxHash64::default()));
        checksum.write(data);
        let written = file
            .write_all(&header_of(object, piece, meta, data.len(), checksum))
            .and_then(|()| file.write_all(data));
        let renamed = written.and_then(|()| fs::rename(&temporary, folder.join(piece.name())));
        if renamed.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        renamed
    }

    /// Adds `size` to the total size, after deleting the least recently used copies if there is no room.
    /// Returns an error if other processes keep the lock.
    fn make_room(&self, size: u64) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut usage = native().private(options).open(self.root.join(USAGE))?;
        let mut attempts = 0;
        while let Err(error) = usage.try_lock() {
            attempts += 1;
            match error {
                TryLockError::Error(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                error if attempts == LOCK_ATTEMPTS => return Err(error.into()),
                _ => {}
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        let mut text = Vec::new();
        usage.read_to_end(&mut text)?;
        let known = <[u8; 16]>::try_from(text)
            .ok()
            .map(u128::from_le_bytes)
            .filter(|both| (both >> 64) as u64 == !(*both as u64));
        let mut total = known.map_or_else(|| self.evict(self.limit), |both| Ok(both as u64))?;
        if total.saturating_add(size) > self.limit {
            total = self.evict((self.limit / 10 * 9).saturating_sub(size))?;
        }
        total = total.saturating_add(size);
        usage.seek(SeekFrom::Start(0))?;
        usage.write_all(&(u128::from(total) | u128::from(!total) << 64).to_le_bytes())?;
        if total <= self.limit {
            Ok(())
        } else {
            Err(io::Error::new(ErrorKind::StorageFull, "copies that are being written take all of it"))
        }
    }

    /// Deletes copies, the least recently used first, until at most `most` bytes are left. Returns how many
    /// are left.
    fn evict(&self, most: u64) -> io::Result<u64> {
        let mut copies = Vec::new();
        for outer in fs::read_dir(&self.root)?.flatten().filter(|entry| is_hex(entry.file_name().to_str(), 2))
        {
            for inner in
                fs::read_dir(outer.path())?.flatten().filter(|entry| is_hex(entry.file_name().to_str(), 62))
            {
                for entry in fs::read_dir(inner.path()).into_iter().flatten().flatten() {
                    let name = entry.file_name();
                    let Some(name) = name.to_str() else { continue };
                    let Ok(found) = entry.metadata() else { continue };
                    let is_temporary = name.starts_with(TEMPORARY);
                    if is_temporary || Piece::parse(name).is_some() {
                        let used = found.modified().unwrap_or(UNIX_EPOCH);
                        let is_abandoned = used.elapsed().is_ok_and(|age| age > ABANDONED);
                        // A file that is being written is deleted only if its writer has gone.
                        let order = if !is_temporary {
                            used
                        } else if is_abandoned {
                            UNIX_EPOCH
                        } else {
                            SystemTime::now()
                        };
                        copies.push((order, is_temporary && !is_abandoned, found.len(), entry.path()));
                    }
                }
            }
        }
        copies.sort_unstable();
        let mut total = copies.iter().map(|(_, _, size, _)| size).sum::<u64>();
        for (_, is_written, size, path) in &copies {
            if total <= most {
                break;
            }
            if !is_written && fs::remove_file(path).is_ok() {
                total -= size;
                for folder in path.ancestors().skip(1).take(2) {
                    let _ = fs::remove_dir(folder); // fails unless the folder is empty
                }
            }
        }
        Ok(total)
    }
}

/// Returns an error if an existing folder cannot be used for copies.
pub fn check(root: &Path) -> crate::error::Result<()> {
    match fs::metadata(root).ok().and_then(|found| native().shared_with(&found)) {
        Some(what) => {
            let error = crate::error::Error::new(
                crate::error::Kind::InvalidArgument,
                "others may use the folder of the cache",
            );
            Err(error
                .at(root.display().to_string())
                .found(what)
                .expected("a folder of this user with mode 700, or none, which is made"))
        }
        None => Ok(()),
    }
}

fn is_hex(name: Option<&str>, length: usize) -> bool {
    name.is_some_and(|name| name.len() == length && name.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Returns the header of a copied piece: the object, the piece, the object's metadata, the length, and a
/// checksum of all. `checksum`: from [`checksum_after`], continued with the piece's bytes.
fn header_of(
    object: &Digest,
    piece: Piece,
    meta: &ObjectMeta,
    length: usize,
    checksum: XxHash64,
) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(MAGIC);
    header[8..40].copy_from_slice(object);
    let numbers = [
        piece.0,
        piece.1,
        meta.size,
        meta.modified_ms.cast_unsigned(),
        meta.identity,
        length as u64,
        checksum.finish(),
    ];
    for (at, number) in numbers.into_iter().enumerate() {
        header[40 + at * 8..48 + at * 8].copy_from_slice(&number.to_le_bytes());
    }
    header
}

/// Returns the checksum of a header, to be continued with the piece's bytes.
fn checksum_after(header: &[u8; HEADER]) -> XxHash64 {
    let mut checksum = XxHash64::with_seed(0);
    checksum.write(&header[..HEADER - 8]);
    checksum
}
