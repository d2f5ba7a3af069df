//! Paths in the log: decoded once, made relative to the table's root, and refused if outside of it ("Add File
//! and Remove File": `path` is a URI).

use std::borrow::Cow;
use std::sync::Arc;

use percent_encoding::percent_decode_str;

use super::{Store, system};
use crate::error::{Error, Kind, Result};

/// The place that a path in the log refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Below the root: a relative, decoded path.
    Inside(String),
    /// Elsewhere: an absolute path or a URL, decoded.
    Outside(String),
}

/// Resolves a path in the log: decodes it once, and returns the store that holds it and the path there.
///
/// A path outside of the root and of all allowed roots, or a malicious path, is an error of
/// [`Kind::PathOutsideTable`].
pub fn resolve(store: &Arc<dyn Store>, text: &str) -> Result<(Arc<dyn Store>, String)> {
    match locate_encoded(store.location(), text)? {
        Place::Inside(path) => Ok((Arc::clone(store), path)),
        Place::Outside(location) => store.outside(&location),
    }
}

/// Returns the canonical text of a path, which is equal for all spellings of one place. A malformed path is
/// returned unchanged, and is an error when it is opened.
pub fn canonical<'a>(root: &str, text: &'a str) -> Cow<'a, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    match locate_encoded(root, text) {
        Ok(Place::Inside(path) | Place::Outside(path)) => Cow::Owned(path),
        Err(_) => Cow::Borrowed(text),
    }
}

/// True for a path that needs no decoding and no checks, as most do not.
pub fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    // Without an early exit, so that many bytes are compared at once: replay calls this for each path.
    let special = bytes.iter().fold(false, |found, byte| found | matches!(byte, b'%' | b':' | b'\\' | 0));
    let pairs = bytes.iter().zip(&bytes[1..]);
    let dotted =
        pairs.fold(false, |found, (byte, next)| found | (*byte == b'/' && matches!(next, b'/' | b'.')));
    !special && !dotted && !matches!(first, b'/' | b'.') && *last != b'/'
}

/// Locates a path as written in the log (percent-encoded).
pub fn locate_encoded(root: &str, text: &str) -> Result<Place> {
    let decoded = percent_decode_str(text)
        .decode_utf8()
        .map_err(|error| outside("the path is not UTF-8 once decoded", error, text))?;
    let absolute = text.starts_with('/') || scheme(text).is_some();
    if !absolute && decoded.starts_with('/') {
        return Err(outside("the path has an encoded slash at its start", "%2F", text));
    }
    locate(root, if absolute { &decoded } else { checked(&decoded, text)? })
}

/// Locates a decoded path: a relative path is inside; an absolute path or URL is inside if it is below
/// `root`.
pub fn locate(root: &str, decoded: &str) -> Result<Place> {
    let absolute = match scheme(decoded) {
        Some("file") => local_part(decoded)?,
        Some(_) => decoded,
        None if decoded.starts_with('/') => decoded,
        None => return Ok(Place::Inside(relative(decoded, decoded)?)),
    };
    let root = if scheme(root) == Some("file") { local_part(root)? } else { root };
    let spelled;
    let absolute = if scheme(root).is_some_and(system::is_drive) {
        spelled = system::spelled(absolute); // `/c:/data/t` of `file:///c:/data/t` becomes `C:/data/t`
        spelled.as_str()
    } else {
        absolute
    };
    if let Some(rest) =
        absolute.strip_prefix(root.trim_end_matches('/')).and_then(|rest| rest.strip_prefix('/'))
    {
        return Ok(Place::Inside(relative(rest, decoded)?));
    }
    // The text after the scheme. A later `://` is part of the path, so the `..` in `/a/../b://c` is checked
    // too.
    let body = scheme(absolute).map_or(absolute, |scheme| &absolute[scheme.len() + 1..]);
    relative(body.trim_start_matches('/'), decoded)?;
    Ok(Place::Outside(absolute.to_owned()))
}

fn checked<'a>(decoded: &'a str, text: &str) -> Result<&'a str> {
    // A path that is a URL, or begins with a slash, only after decoding is malicious.
    if scheme(decoded).is_some() && scheme(text).is_none() {
        return Err(outside("the path hides a URL behind percent signs", decoded, text));
    }
    Ok(decoded)
}

/// Checks the segments of a relative path: `.` is removed; `..`, empty segments and NUL are errors.
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
            "" => {
                return Err(outside("the path has an empty segment", "two slashes, or one at an end", shown));
            }
            "." => {}
            other => kept.push(other),
        }
    }
    if kept.is_empty() {
        return Err(outside("the path names no file", "no segment that is a name", shown));
    }
    Ok(kept.join("/"))
}

/// Returns an error for a path that is not plain and relative. Every store calls it, as a last check.
pub fn check_relative(path: &str) -> Result<()> {
    if path.starts_with('/') || relative(path, path)? != path {
        return Err(outside("not a plain relative path", path, path));
    }
    Ok(())
}

fn outside(message: &str, found: impl std::fmt::Display, path: &str) -> Error {
    let place = without_query(path).replace('\0', "\\0");
    Error::new(Kind::PathOutsideTable, message)
        .at(place)
        .found(found)
        .expected("a path below the table's root")
}

/// Returns a URL without its query, which may contain a signature, for messages.
pub fn without_query(location: &str) -> &str {
    if scheme(location).is_some() { location.split(['?', '#']).next().unwrap_or(location) } else { location }
}

/// Returns the scheme of a URL, or `None` for a path. A colon ends a scheme only before a slash.
pub fn scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    let mut bytes = scheme.bytes();
    let named = bytes.next().is_some_and(|b| b.is_ascii_alphabetic())
        && bytes.all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    (named && rest.starts_with('/')).then_some(scheme)
}

/// Returns the path that a `file:` URL of this location has: `/C:/data` for `C:/data`. `None` for a URL of
/// another kind.
pub fn path_in_url(location: &str) -> Result<Option<Cow<'_, str>>> {
    match scheme(location) {
        None | Some("file") => local_part(location).map(|path| Some(Cow::Borrowed(path))),
        Some(drive) if system::is_drive(drive) => Ok(Some(Cow::Owned(format!("/{location}")))),
        Some(_) => Ok(None),
    }
}

/// Returns the absolute path of a `file:` URL. A host is an error.
pub fn local_part(url: &str) -> Result<&str> {
    let rest = url.strip_prefix("file:").unwrap_or(url);
    let Some(after) = rest.strip_prefix("//") else { return Ok(rest) };
    let path = after.strip_prefix("localhost").unwrap_or(after);
    if path.starts_with('/') {
        Ok(path)
    } else {
        Err(outside("a file URL with a host", "a host other than localhost", url))
    }
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
        assert!(
            locate_encoded("/data/table", "/other/a://b").unwrap_err().message().contains("empty segment")
        );
    }

    #[test]
    fn a_root_on_a_drive_has_its_files_by_every_spelling() {
        for text in [
            "a/b",
            "C:/data/table/a/b",
            "c:/data/table/a/b",
            "file:///C:/data/table/a/b",
            "file:/c:/data/table/a/b",
        ] {
            assert_eq!(
                locate_encoded("C:/data/table", text).unwrap(),
                Place::Inside("a/b".to_owned()),
                "{text}"
            );
        }
        assert_eq!(
            locate_encoded("C:/data/table", "file:///c:/data/a").unwrap(),
            Place::Outside("C:/data/a".to_owned())
        );
        assert_eq!(
            locate_encoded("C:/data/table", "D:/data/table/a").unwrap(),
            Place::Outside("D:/data/table/a".to_owned())
        );
        assert_eq!(
            locate_encoded("//server/share/t", "//server/share/t/a").unwrap(),
            Place::Inside("a".to_owned())
        );
        for text in ["C:/data/table/../a", r"C:/data/table\..\a", r"..\a", "C:%2Fdata%2Ftable%2Fa"] {
            assert_eq!(
                locate_encoded("C:/data/table", text).unwrap_err().kind(),
                Kind::PathOutsideTable,
                "{text}"
            );
        }
    }
}
