//! The canonical form of a JSON document, of which `_last_checkpoint` has the MD5 (PROTOCOL.md: JSON checksum).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::error::{Error, Result};

/// All but RFC 3986's unreserved characters.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Each leaf as path=value, the path's parts joined by `+`, ordered by the bytes of the path; without the document's own field `checksum`.
pub fn canonical(document: &str) -> Result<String> {
    let parsed: Value = serde_json::from_str(document).map_err(|error| Error::protocol("not JSON").found(error))?;
    let mut leaves = Vec::new();
    if let Value::Object(fields) = &parsed {
        for (name, value) in fields.iter().filter(|(name, _)| *name != "checksum") {
            collect(value, text(name), &mut leaves);
        }
    }
    leaves.sort();
    let shown: Vec<String> = leaves.into_iter().map(|(path, value)| format!("{path}={value}")).collect();
    Ok(shown.join(","))
}

fn collect(value: &Value, path: String, leaves: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, item)| collect(item, format!("{path}+{}", text(name)), leaves)),
        Value::Array(items) => items.iter().enumerate().for_each(|(index, item)| collect(item, format!("{path}+{index}"), leaves)),
        Value::String(found) => leaves.push((path, text(found))),
        literal => leaves.push((path, literal.to_string())),
    }
}

fn text(value: &str) -> String {
    format!("\"{}\"", utf8_percent_encode(value, RESERVED))
}
