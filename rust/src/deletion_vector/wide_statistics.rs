//! Changes a file's statistics to wide bounds when it gets a deletion vector. PROTOCOL.md, "Per-file
//! Statistics": numRecords stays the number of rows in the file, minima and maxima become wide bounds
//! (`tightBounds` false), and a nullCount then means "all null" only if it equals numRecords.

use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

use crate::error::{Error, Result};

/// The statistics of a data file.
#[derive(Debug)]
pub struct Statistics {
    /// The members of the JSON object, as written: numbers keep their digits.
    members: BTreeMap<String, Box<RawValue>>,
}

impl Statistics {
    /// Parses the `stats` of an `add`. `None` and an empty text: no statistics.
    ///
    /// # Errors
    /// `stats` is not a JSON object.
    pub fn parse(stats: Option<&str>) -> Result<Self> {
        let members = match stats {
            None | Some("") => BTreeMap::new(),
            Some(text) => serde_json::from_str(text).map_err(|error| {
                Error::protocol("statistics of a file are no JSON object").found(text).caused_by(error)
            })?,
        };
        Ok(Self { members })
    }

    /// Returns the number of physical rows, if it is known.
    pub fn num_records(&self) -> Option<u64> {
        self.members.get("numRecords")?.get().parse().ok()
    }

    /// Returns the statistics as JSON for the file with a new vector. `deleted`: number of rows that its
    /// vector deleted so far.
    pub fn widen(mut self, num_records: u64, deleted: u64) -> Result<String> {
        let is_wide = self.members.get("tightBounds").is_some_and(|tight| tight.get() == "false");
        if !is_wide && deleted > 0 {
            self.widen_null_counts(num_records, num_records.saturating_sub(deleted))?;
        }
        self.set("numRecords", num_records.to_string())?;
        self.set("tightBounds", "false".to_owned())?;
        serde_json::to_string(&self.members).map_err(|error| unwritable().caused_by(error))
    }

    fn set(&mut self, name: &str, json: String) -> Result<()> {
        let value = RawValue::from_string(json).map_err(|error| unwritable().caused_by(error))?;
        self.members.insert(name.to_owned(), value);
        Ok(())
    }

    /// Sets the null count of columns that are null in all `logical` rows to `num_records`. In a file of 10
    /// rows, 3 of them deleted, a count of 7 becomes 10: with wide bounds, only 10 means that all are null.
    fn widen_null_counts(&mut self, num_records: u64, logical: u64) -> Result<()> {
        let Some(counts) = self.members.get("nullCount") else { return Ok(()) };
        let mut counts: Value =
            serde_json::from_str(counts.get()).map_err(|error| unwritable().caused_by(error))?;
        replace_all_null(&mut counts, logical, num_records);
        self.set("nullCount", counts.to_string())
    }
}

fn replace_all_null(counts: &mut Value, logical: u64, physical: u64) {
    match counts {
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| replace_all_null(field, logical, physical))
        }
        count if count.as_u64() == Some(logical) => *count = physical.into(),
        _ => {}
    }
}

fn unwritable() -> Error {
    Error::protocol("statistics of a file cannot be written again")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn widen(stats: Option<&str>, num_records: u64, deleted: u64) -> String {
        Statistics::parse(stats).unwrap().widen(num_records, deleted).unwrap()
    }

    #[test]
    fn the_first_vector_keeps_everything_else() {
        let stats = concat!(
            r#"{"numRecords":4,"minValues":{"d":-99999999999999999999999999999999999.999,"é":"a\"b"},"#,
            r#""maxValues":{},"nullCount":{"d":4,"e":0},"tightBounds":true}"#,
        );
        let wide = widen(Some(stats), 4, 0);
        assert!(
            wide.contains(r#""minValues":{"d":-99999999999999999999999999999999999.999,"é":"a\"b"}"#),
            "{wide}"
        );
        assert!(
            wide.contains(r#""nullCount":{"d":4,"e":0}"#)
                && wide.contains(r#""tightBounds":false"#)
                && !wide.contains("true")
        );
    }

    /// If a column is null in all 8 live rows of a file of 10 rows, a reader may take it to be null in all
    /// rows.
    #[test]
    fn tight_statistics_beside_a_vector() {
        let stats = r#"{"numRecords":10,"nullCount":{"a":8,"b":3,"s":{"x":8,"y":0}},"tightBounds":true}"#;
        assert!(widen(Some(stats), 10, 2).contains(r#""nullCount":{"a":10,"b":3,"s":{"x":10,"y":0}}"#));
        assert!(widen(Some(&stats.replace("true", "false")), 10, 2).contains(r#""a":8"#));
    }

    #[test]
    fn without_statistics() {
        assert_eq!(widen(None, 7, 0), r#"{"numRecords":7,"tightBounds":false}"#);
        assert_eq!(widen(Some(""), 7, 3), r#"{"numRecords":7,"tightBounds":false}"#);
        assert_eq!(Statistics::parse(Some(r#"{"numRecords":null}"#)).unwrap().num_records(), None);
        assert!(Statistics::parse(Some("[")).unwrap_err().to_string().contains("no JSON object; found ["));
    }
}
