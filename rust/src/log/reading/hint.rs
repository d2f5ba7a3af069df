//! The checksum of `_last_checkpoint`: writes its JSON in the canonical form. The file holds the MD5 of this
//! form (PROTOCOL.md: JSON checksum).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::error::{Error, Result};

/// The characters that are escaped: all except the unreserved ones of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Maximum number of bytes of the paths and values in a canonical form; a larger document is an error. A path
/// repeats all names above it: one name of 1 MB above a list of 100,000 numbers gives 100 GB of paths. A hint
/// has at most 4 MB, and its canonical form is about six times as long.
const MOST_BYTES: usize = 64 << 20;

/// Returns the canonical form: each leaf as path=value, with the parts of the path joined by `+`, ordered by
/// the bytes of the path, without the top-level field `checksum`.
pub fn canonical(document: &str) -> Result<String> {
    let parsed: Value =
        serde_json::from_str(document).map_err(|error| Error::protocol("not JSON").found(error))?;
    let mut leaves = Leaves::default();
    if let Value::Object(fields) = &parsed {
        for (name, value) in fields.iter().filter(|(name, _)| *name != "checksum") {
            leaves.collect(value, text(name))?;
        }
    }
    leaves.found.sort();
    let shown: Vec<String> =
        leaves.found.into_iter().map(|(path, value)| format!("{path}={value}")).collect();
    Ok(shown.join(","))
}

/// The leaves of a document as (path, value), and the number of bytes of all paths and values so far.
#[derive(Default)]
struct Leaves {
    found: Vec<(String, String)>,
    bytes: usize,
}

impl Leaves {
    fn collect(&mut self, value: &Value, path: String) -> Result<()> {
        self.count(path.len())?;
        match value {
            Value::Object(fields) => fields
                .iter()
                .try_for_each(|(name, item)| self.collect(item, format!("{path}+{}", text(name)))),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .try_for_each(|(index, item)| self.collect(item, format!("{path}+{index}"))),
            Value::String(found) => self.push(path, text(found)),
            literal => self.push(path, literal.to_string()),
        }
    }

    fn push(&mut self, path: String, value: String) -> Result<()> {
        self.count(value.len())?;
        self.found.push((path, value));
        Ok(())
    }

    fn count(&mut self, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        if self.bytes > MOST_BYTES {
            let error = Error::protocol("the canonical form of a JSON document is too long");
            return Err(error
                .found(format!("{} bytes and more", self.bytes))
                .expected(format!("at most {MOST_BYTES} bytes")));
        }
        Ok(())
    }
}

fn text(value: &str) -> String {
    format!("\"{}\"", utf8_percent_encode(value, RESERVED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_are_ordered_by_path_and_the_checksum_is_left_out() {
        let form = canonical(r#"{"b":[1,"x y"],"a":{"c":true},"checksum":"x"}"#).unwrap();
        assert_eq!(form, r#""a"+"c"=true,"b"+0=1,"b"+1="x%20y""#);
    }

    #[test]
    fn numbers_keep_their_digits() {
        for number in ["122.41629403378658", "31.245270191439438", "121.48791951161945"] {
            assert_eq!(canonical(&format!(r#"{{"a":{number}}}"#)).unwrap(), format!(r#""a"={number}"#));
        }
    }

    #[test]
    fn a_long_name_above_many_leaves_is_refused() {
        for item in ["1", "[]"] {
            let document = format!(r#"{{"{}":[{}]}}"#, "k".repeat(1 << 20), vec![item; 100].join(","));
            let error = canonical(&document).unwrap_err().to_string();
            assert!(
                error.starts_with("the canonical form of a JSON document is too long; found "),
                "{error}"
            );
            assert!(error.ends_with(" bytes and more; expected at most 67108864 bytes"), "{error}");
        }
    }
}
