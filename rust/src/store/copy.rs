//! Copies objects from one store to another: by the storage system itself if possible, else in pieces.

use std::io::Write;
use std::sync::Arc;

use super::path::locate;
use super::{Place, Store};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::parallel::on_at_most;

/// Number of bytes of a piece.
const PIECE: u64 = 8 << 20;
/// Number of objects that are copied at a time.
const AT_ONCE: usize = 16;

/// Copies each `from` (in `source`, or an absolute path or URL that it may read) to its `to`, on several
/// threads. Returns the number of bytes.
///
/// On a local disk, the copies become durable only with the commit that names them.
pub fn copy_objects(
    source: &Arc<dyn Store>,
    target: &Arc<dyn Store>,
    objects: &[(String, String)],
    interrupt: &Interrupt,
) -> Result<u64> {
    let copied =
        on_at_most(AT_ONCE, objects, interrupt, &|(from, to)| one(source, target, from, to, interrupt));
    Ok(copied?.into_iter().sum())
}

fn one(
    source: &Arc<dyn Store>,
    target: &Arc<dyn Store>,
    from: &str,
    to: &str,
    interrupt: &Interrupt,
) -> Result<u64> {
    let (store, path) = match locate(source.location(), from)? {
        Place::Inside(path) => (Arc::clone(source), path),
        Place::Outside(place) => source.outside(&place)?,
    };
    let size = store.head(&path)?.ok_or_else(|| Error::lost(from, "a file of the table"))?.size;
    if target.copy(&store.copy_source(&path)?, to)? {
        return Ok(size);
    }
    let mut writer = target.writer(to)?;
    let mut at = 0;
    while at < size {
        let end = size.min(at + PIECE);
        let piece = interrupt.check().and_then(|()| store.get_ranges(&path, &[at..end]));
        let written = piece.and_then(|pieces| {
            let mut write = |piece| writer.write_all(piece).map_err(|error| Error::of_write(error, to));
            pieces.iter().try_for_each(|piece| write(piece))
        });
        if let Err(error) = written {
            writer.abort();
            return Err(error);
        }
        at = end;
    }
    writer.finish_unsynced()
}
