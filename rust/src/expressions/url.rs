//! `url_encode`, `url_decode`, `parse_url`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringBuilder};

use super::arguments::{Arguments, map_text};
use super::failure;
use crate::error::Result;

/// Encodes text as `java.net.URLEncoder`: a space becomes `+`.
pub fn encode(given: &Arguments) -> Result<ArrayRef> {
    Ok(map_text(&given.text(0)?, |value, out| {
        for byte in value.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'*' | b'_' => {
                    out.push(char::from(byte))
                }
                b' ' => out.push('+'),
                _ => out.push_str(&format!("%{byte:02X}")),
            }
        }
    }))
}

/// Evaluates `url_decode(text, safe)`: decodes as `java.net.URLDecoder`. Invalid text raises
/// CANNOT_DECODE_URL if `safe` is 0, else it gives null.
pub fn decode(given: &Arguments) -> Result<ArrayRef> {
    let (values, safe) = (given.text(0)?, given.integers(1)?);
    let mut out = StringBuilder::with_capacity(values.len(), values.value_data().len());
    for (row, value) in values.iter().enumerate() {
        match value.map(decoded) {
            Some(Some(text)) => out.append_value(text),
            Some(None) if safe.is_valid(row) && safe.value(row) == 0 => {
                let shown = value.unwrap_or_default();
                return Err(failure(
                    "CANNOT_DECODE_URL",
                    format!("The provided URL cannot be decoded: {shown}."),
                ));
            }
            _ => out.append_null(),
        }
    }
    Ok(Arc::new(out.finish()))
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
                rest = &tail[2..];
            }
            other => bytes.push(*other),
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Evaluates `parse_url(url, part, key, safe)`: a part of a URL as parsed by `java.net.URI`; null if the URL
/// does not have it.
///
/// `part`: HOST, PATH, QUERY, REF, PROTOCOL, FILE, AUTHORITY or USERINFO. `key` (null for none): the name in
/// a QUERY whose value is returned. A text that is no URL raises INVALID_URL if `safe` is 0, else it gives
/// null.
pub fn parse(given: &Arguments) -> Result<ArrayRef> {
    let (urls, parts, keys, safe) = (given.text(0)?, given.text(1)?, given.text(2)?, given.integers(3)?);
    let mut out = StringBuilder::with_capacity(urls.len(), urls.value_data().len());
    for row in 0..given.rows() {
        if urls.is_null(row) || parts.is_null(row) {
            out.append_null();
            continue;
        }
        match Url::new(urls.value(row)) {
            Some(url) => {
                out.append_option(url.part(parts.value(row), keys.is_valid(row).then(|| keys.value(row))))
            }
            None if safe.is_valid(row) && safe.value(row) == 0 => {
                let message =
                    format!("The url is invalid: {}. Use `try_parse_url` to tolerate it.", urls.value(row));
                return Err(failure("INVALID_URL", message));
            }
            None => out.append_null(),
        }
    }
    Ok(Arc::new(out.finish()))
}

#[derive(Default)]
struct Url<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: Option<&'a str>,
    query: Option<&'a str>,
    fragment: Option<&'a str>,
}

impl<'a> Url<'a> {
    /// Parses a URL. `None` if `java.net.URI` refuses it.
    fn new(text: &'a str) -> Option<Self> {
        if !is_escaped(text) {
            return None;
        }
        let (rest, fragment) = split(text, '#');
        let scheme_end = rest.find([':', '/', '?']).filter(|&end| rest[end..].starts_with(':'));
        let mut url = Self { fragment, ..Self::default() };
        let mut rest = rest;
        if let Some(end) = scheme_end {
            let scheme = &rest[..end];
            let proper = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
            rest = &rest[end + 1..];
            if !proper || rest.is_empty() {
                return None;
            }
            url.scheme = Some(scheme);
            if !rest.starts_with('/') {
                return Some(url); // opaque: it has no other parts
            }
        }
        let (rest, query) = split(rest, '?');
        url.query = query;
        let mut path = rest;
        if let Some(after) = rest.strip_prefix("//") {
            let end = after.find('/').unwrap_or(after.len());
            if end == 0 && (after.is_empty() && query.is_none()) {
                return None; // "http://" alone
            }
            url.authority = Some(&after[..end]).filter(|authority| !authority.is_empty());
            path = &after[end..];
        }
        url.path = Some(path);
        Some(url)
    }

    fn user_and_host(&self) -> Option<(Option<&'a str>, &'a str)> {
        let authority = self.authority?;
        let (user, address) =
            authority.rsplit_once('@').map_or((None, authority), |(user, address)| (Some(user), address));
        let host = if address.starts_with('[') {
            &address[..=address.find(']')?]
        } else {
            address.split(':').next()?
        };
        let port = &address[host.len()..];
        let proper_port =
            port.is_empty() || (port.starts_with(':') && port[1..].bytes().all(|b| b.is_ascii_digit()));
        (proper_port && is_host(host)).then_some((user, host))
    }

    fn part(&self, part: &str, key: Option<&str>) -> Option<String> {
        if key.is_some() && part != "QUERY" {
            return None;
        }
        match part {
            "HOST" => self.user_and_host().map(|(_, host)| host.to_owned()),
            "PATH" => self.path.map(str::to_owned),
            "QUERY" => match key {
                None => self.query.map(str::to_owned),
                Some(key) => self
                    .query?
                    .split('&')
                    .find_map(|pair| pair.split_once('=').filter(|(name, _)| *name == key))
                    .map(|(_, v)| v.to_owned()),
            },
            "REF" => self.fragment.map(str::to_owned),
            "PROTOCOL" => self.scheme.map(str::to_owned),
            "FILE" => match (self.path, self.query) {
                (Some(path), Some(query)) => Some(format!("{path}?{query}")),
                (path, _) => path.map(str::to_owned),
            },
            "AUTHORITY" => self.authority.map(str::to_owned),
            "USERINFO" => self.user_and_host().and_then(|(user, _)| user).map(str::to_owned),
            _ => None,
        }
    }
}

fn split(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, after)| (before, Some(after)))
}

/// True if the text has no character that a URL must escape.
fn is_escaped(text: &str) -> bool {
    let bytes = text.as_bytes();
    text.char_indices().all(|(place, character)| match character {
        '%' => bytes.get(place + 1..place + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)),
        ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}' => false,
        _ => !character.is_control() && (character.is_ascii() || !character.is_whitespace()),
    }) && text.matches('#').count() <= 1
}

/// True if Java accepts it as the name of a host, or as an address.
fn is_host(host: &str) -> bool {
    if host.starts_with('[') {
        return true;
    }
    let labels: Vec<&str> = host.strip_suffix('.').unwrap_or(host).split('.').collect();
    let proper = |label: &&str| {
        !label.is_empty()
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let address = labels.len() == 4 && labels.iter().all(|label| label.parse::<u8>().is_ok());
    labels.iter().all(proper)
        && (address || labels.last().is_some_and(|last| last.starts_with(|c: char| c.is_ascii_alphabetic())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        let url = Url::new("http://user:pw@spark.apache.org:80/path/a?query=1&b=%20#Ref").unwrap();
        for (part, key, expected) in [
            ("HOST", None, Some("spark.apache.org")),
            ("PATH", None, Some("/path/a")),
            ("QUERY", None, Some("query=1&b=%20")),
            ("QUERY", Some("query"), Some("1")),
            ("QUERY", Some("x"), None),
            ("REF", None, Some("Ref")),
            ("PROTOCOL", None, Some("http")),
            ("FILE", None, Some("/path/a?query=1&b=%20")),
            ("AUTHORITY", None, Some("user:pw@spark.apache.org:80")),
            ("USERINFO", None, Some("user:pw")),
            ("host", None, None),
        ] {
            assert_eq!(url.part(part, key).as_deref(), expected, "{part}");
        }
        assert!(Url::new("http://a b").is_none());
        assert!(Url::new("inva lid://spark").is_none());
    }

    #[test]
    fn decoding() {
        assert_eq!(decoded("https%3A%2F%2Fspark+x").as_deref(), Some("https://spark x"));
        assert_eq!(decoded("%4"), None);
    }
}
