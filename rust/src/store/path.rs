//! Paths in the log: decoded once, made relative to the table's root, and refused if outside of it ("Add File
//! and Remove File": `path` is a URI).

use std::borrow::Cow;
use std::sync::Arc;

use percent_encoding::percent_decode_str;

use super::Store;
use crate::error::{Error, Kind, Result};

/// Where a path of the log points.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Below the root: relative, decoded.
    Inside(String),
    /// Elsewhere: an absolute path or a URL, decoded.
    Outside(String),
}

/// The one way from a log's path to bytes: decodes it once and finds the store that holds it.
///
/// [`Kind::PathOutsideTable`] where it leaves the root and no allowed root holds it, or where its text is hostile.
pub fn resolve(store: &Arc<dyn Store>, text: &str) -> Result<(Arc<dyn Store>, String)> {
    match locate_encoded(store.location(), text)? {
        Place::Inside(path) => Ok((Arc::clone(store), path)),
        Place::Outside(location) => store.outside(&location),
    }
}

/// The text by which replay knows a file: equal for all spellings of one place. A malformed path stays as it is: it is refused when opened.
pub fn canonical<'a>(root: &str, text: &'a str) -> Cow<'a, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    match locate_encoded(root, text) {
        Ok(Place::Inside(path) | Place::Outside(path)) => Cow::Owned(path),
        Err(_) => Cow::Borrowed(text),
    }
}

/// A path without anything to decode, resolve or refuse: most are.
pub fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    // Without an early end, so that many bytes are looked at at once: replay asks this of each path.
    let special = bytes.iter().fold(false, |found, byte| found | matches!(byte, b'%' | b':' | b'\\' | 0));
    let pairs = bytes.iter().zip(&bytes[1..]);
    let dotted = pairs.fold(false, |found, (byte, next)| found | (*byte == b'/' && matches!(next, b'/' | b'.')));
    !special && !dotted && !matches!(first, b'/' | b'.') && *last != b'/'
}

/// A path as the log spells it (percent-encoded).
pub fn locate_encoded(root: &str, text: &str) -> Result<Place> {
    let decoded = percent_decode_str(text).decode_utf8().map_err(|error| outside("the path is not UTF-8 once decoded", error, text))?;
    let absolute = text.starts_with('/') || scheme(text).is_some();
    if !absolute && decoded.starts_with('/') {
        return Err(outside("the path has an encoded slash at its start", "%2F", text));
    }
    locate(root, if absolute { &decoded } else { checked(&decoded, text)? })
}

/// A decoded path: relative ones are inside, absolute ones and URLs where `root` holds them.
pub fn locate(root: &str, decoded: &str) -> Result<Place> {
    let absolute = match scheme(decoded) {
        Some("file") => local_part(decoded)?,
        Some(_) => decoded,
        None if decoded.starts_with('/') => decoded,
        None => return Ok(Place::Inside(relative(decoded, decoded)?)),
    };
    let root = if scheme(root) == Some("file") { local_part(root)? } else { root };
    if let Some(rest) = absolute.strip_prefix(root.trim_end_matches('/')).and_then(|rest| rest.strip_prefix('/')) {
        return Ok(Place::Inside(relative(rest, decoded)?));
    }
    // What follows the scheme at the start; a later `://` is part of a path: `/a/../b://c` climbs.
    let body = scheme(absolute).map_or(absolute, |scheme| &absolute[scheme.len() + 1..]);
    relative(body.trim_start_matches('/'), decoded)?;
    Ok(Place::Outside(absolute.to_owned()))
}

fn checked<'a>(decoded: &'a str, text: &str) -> Result<&'a str> {
    // What decodes to a URL or begins with a slash only after decoding is hostile: encoded once more, it would be a file's name.
    if scheme(decoded).is_some() && scheme(text).is_none() {
        return Err(outside("the path hides a URL behind percent signs", decoded, text));
    }
    Ok(decoded)
}

/// Segments of a relative path: `.` is dropped; `..`, empty ones and NUL are refused.
fn relative(path: &str, shown: &str) -> Result<String> {
    if path.contains('\0') {
        return Err(outside("the path holds a NUL", "\\0", shown));
    }
    if path.split(['/', '\\']).any(|segment| segment == "..") {
        return Err(outside("the path climbs with '..'", "a segment '..'", shown));
    }
    let mut kept = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" => return Err(outside("the path has an empty segment", "two slashes, or one at an end", shown)),
            "." => {}
            other => kept.push(other),
        }
    }
    if kept.is_empty() {
        return Err(outside("the path names no file", "no segment that is a name", shown));
    }
    Ok(kept.join("/"))
}

/// Refuses a path that is not plain and relative, whoever asks: the last line of defence of every store.
pub fn check_relative(path: &str) -> Result<()> {
    if path.starts_with('/') || relative(path, path)? != path {
        return Err(outside("not a plain relative path", path, path));
    }
    Ok(())
}

fn outside(message: &str, found: impl std::fmt::Display, path: &str) -> Error {
    let place = without_query(path).replace('\0', "\\0");
    Error::new(Kind::PathOutsideTable, message).at(place).found(found).expected("a path below the table's root")
}

/// A URL without its query, which may hold a signature: for messages.
pub fn without_query(location: &str) -> &str {
    if scheme(location).is_some() { location.split(['?', '#']).next().unwrap_or(location) } else { location }
}

/// The scheme of a URL; `None` for a path. A colon is a URL's only before a slash.
pub fn scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    let mut bytes = scheme.bytes();
    let named = bytes.next().is_some_and(|b| b.is_ascii_alphabetic()) && bytes.all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    (named && rest.starts_with('/')).then_some(scheme)
}

/// The absolute path of a `file:` URL; a host is refused.
pub fn local_part(url: &str) -> Result<&str> {
    let rest = url.strip_prefix("file:").unwrap_or(url);
    let Some(after) = rest.strip_prefix("//") else { return Ok(rest) };
    let path = after.strip_prefix("localhost").unwrap_or(after);
    if path.starts_with('/') { Ok(path) } else { Err(outside("a file URL with a host", "a host other than localhost", url)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_outside_climbs_nowhere_even_before_a_later_scheme() {
        for text in ["s3:/../bucket/t://x", "/data/other/../../etc/a://b", "s3://bucket/../x", "/other/.."] {
            let error = locate_encoded("/data/table", text).unwrap_err();
            assert_eq!(error.kind(), Kind::PathOutsideTable);
            assert!(error.message().contains("climbs with '..'"), "{error}");
        }
        for text in ["s3://bucket/a/b", "/data/tables/a"] {
            assert_eq!(locate_encoded("/data/table", text).unwrap(), Place::Outside(text.to_owned()));
        }
        assert!(locate_encoded("/data/table", "/other/a://b").unwrap_err().message().contains("empty segment"));
    }
}
