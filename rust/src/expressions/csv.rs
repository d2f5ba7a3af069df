//! `from_csv`, `schema_of_csv`, `to_csv`: parses and writes one record as Spark's CSV parser and writer do.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{Array, ArrayRef, AsArray, StringArray, StringBuilder};
use arrow::datatypes::DataType;

use super::arguments::Arguments;
use super::casts::{float_text, is_timestamp};
use super::failure;
use super::json::{Json, push_quoted};
use super::json_read::{Type, push_number, text as member};
use super::json_write::{self, Writing};
use crate::error::Result;

/// The options by which a record is parsed and written.
struct Format {
    separator: char,
    quote: char,
    escape: char,
    null: String,
    ignore_leading: bool,
    ignore_trailing: bool,
    quote_all: bool,
}

impl Format {
    /// Parses the options, a JSON object such as `{"sep": ",", "quote": "\""}`.
    fn of(options: &str) -> Result<Self> {
        let json = Json::parse(options);
        let option = |name: &str| json.as_ref().and_then(|json| member(json, name)).unwrap_or_default();
        let character = |name: &str| {
            let mut characters = option(name).chars();
            match (characters.next(), characters.next()) {
                (Some(one), None) => Ok(one),
                _ => Err(failure("UNSUPPORTED_CSV", format!("the option {name} that is not one character"))),
            }
        };
        Ok(Self {
            separator: character("sep")?,
            quote: character("quote")?,
            escape: character("escape")?,
            null: option("nullValue").to_owned(),
            ignore_leading: option("ignoreLeadingWhiteSpace") == "true",
            ignore_trailing: option("ignoreTrailingWhiteSpace") == "true",
            quote_all: option("quoteAll") == "true",
        })
    }

    /// Returns the values of a record; `None` for a null.
    fn values(&self, record: &str) -> Vec<Option<String>> {
        let characters: Vec<char> = record.chars().collect();
        let (mut found, mut at) = (Vec::new(), 0);
        loop {
            let start = self.without_leading(&characters, at);
            let (value, quoted) = if characters.get(start) == Some(&self.quote) {
                at = start + 1;
                (self.quoted(&characters, &mut at), true)
            } else {
                at = start;
                let value = self.until_separator(&characters, &mut at);
                (
                    if self.ignore_trailing { value.trim_end_matches(is_space).to_owned() } else { value },
                    false,
                )
            };
            found.push(Some(value).filter(|value| *value != self.null && (quoted || !value.is_empty())));
            if at >= characters.len() {
                return found;
            }
            at += 1; // the separator
        }
    }

    fn without_leading(&self, characters: &[char], at: usize) -> usize {
        let spaces =
            characters[at..].iter().take_while(|one| is_space(**one) && **one != self.separator).count();
        if self.ignore_leading { at + spaces } else { at }
    }

    fn until_separator(&self, characters: &[char], at: &mut usize) -> String {
        let start = *at;
        while characters.get(*at).is_some_and(|one| *one != self.separator) {
            *at += 1;
        }
        characters[start..*at].iter().collect()
    }

    /// Parses a value after its opening quote. If text follows the closing quote, the value keeps its
    /// quotes: `"a"b` is `"a"b`.
    fn quoted(&self, characters: &[char], at: &mut usize) -> String {
        let (mut value, mut last) = (String::new(), None);
        while let Some(&one) = characters.get(*at) {
            if last == Some(self.quote) && (one == self.separator || is_space(one)) {
                break;
            }
            if last == Some(self.quote) && one != self.quote {
                return self.unescaped(value, characters, at);
            }
            *at += 1;
            let mut now = Some(one);
            if one == self.escape && last == Some(self.escape) && self.escape != self.quote {
                value.push(self.escape);
                now = None;
            } else if last == Some(self.escape) && self.escape != self.quote {
                value.push(if one == self.quote { one } else { self.escape });
                if one == self.quote {
                    now = None;
                } else {
                    value.push(one);
                }
            } else if one == self.quote && last == Some(self.quote) {
                value.push(one);
                now = Some(one).filter(|_| self.escape != self.quote);
            } else if one != self.quote && one != self.escape {
                value.push(one);
            }
            last = now;
        }
        let end = *at;
        while characters.get(*at).is_some_and(|one| *one != self.separator && is_space(*one)) {
            *at += 1;
        }
        if characters.get(*at).is_some_and(|one| *one != self.separator) {
            *at = end;
            return self.unescaped(value, characters, at);
        }
        value
    }

    fn unescaped(&self, value: String, characters: &[char], at: &mut usize) -> String {
        format!("{0}{value}{0}{1}", self.quote, self.until_separator(characters, at))
    }

    /// Appends a value. `first`: it is the first of the record, in which `#` begins a comment.
    fn push(&self, value: &str, first: bool, out: &mut String) {
        let special = |one: char| one == self.separator || one == self.quote || one == '\n' || one == '\r';
        let quoted = self.quote_all || (first && value.starts_with('#')) || value.contains(special);
        let start = if self.ignore_leading { value.trim_start_matches(is_space) } else { value };
        let value = if self.ignore_trailing { start.trim_end_matches(is_space) } else { start };
        if value.is_empty() {
            return out.push_str("\"\"");
        }
        if !quoted {
            return out.push_str(value);
        }
        out.push(self.quote);
        for one in value.chars() {
            if one == self.quote || one == self.escape {
                out.push(self.escape);
            }
            out.push(one);
        }
        out.push(self.quote);
    }
}

fn is_space(one: char) -> bool {
    one <= ' '
}

/// Evaluates `from_csv(text, schema, options)`: a JSON object with just the fields of the schema, each value
/// of its type or null. DuckDB casts it to a struct.
pub fn from_csv(given: &Arguments) -> Result<ArrayRef> {
    let (texts, schemas, options) = (given.text(0)?, given.text(1)?, given.text(2)?);
    let mut out = StringBuilder::with_capacity(given.rows(), texts.value_data().len());
    if given.rows() == 0 {
        return Ok(Arc::new(out.finish()));
    }
    let format = Format::of(options.value(0))?;
    let Some(Type::Struct(fields)) = Json::parse(schemas.value(0)).as_ref().and_then(Type::of) else {
        return Err(failure("UNSUPPORTED_CSV", format!("from_csv of the type {}", schemas.value(0))));
    };
    let mut buffer = String::new();
    for text in &texts {
        let Some(text) = text else {
            out.append_null();
            continue;
        };
        let values = format.values(text);
        buffer.clear();
        for (number, (name, kind)) in fields.iter().enumerate() {
            buffer.push(if number == 0 { '{' } else { ',' });
            push_quoted(name, &mut buffer);
            buffer.push(':');
            if values
                .get(number)
                .and_then(Option::as_deref)
                .and_then(|value| push_value(value, kind, &mut buffer))
                .is_none()
            {
                buffer.push_str("null");
            }
        }
        buffer.push('}');
        out.append_value(&buffer);
    }
    Ok(Arc::new(out.finish()))
}

/// Appends a value as JSON of a type. Returns `None`, and appends nothing, if it is no value of the type.
fn push_value(value: &str, kind: &Type, out: &mut String) -> Option<()> {
    match kind {
        Type::Text | Type::Date | Type::Timestamp | Type::LocalTimestamp => push_quoted(value, out),
        Type::Boolean if value.eq_ignore_ascii_case("true") => out.push_str("true"),
        Type::Boolean if value.eq_ignore_ascii_case("false") => out.push_str("false"),
        Type::Whole(bits) => {
            let number = value.parse::<i64>().ok().filter(|number| matches!(number >> (bits - 1), 0 | -1))?;
            out.push_str(&number.to_string());
        }
        Type::Float | Type::Double => {
            let number = number_of(value)?;
            if number.is_nan() {
                out.push_str("\"NaN\"");
            } else if matches!(kind, Type::Float) {
                let number = value.parse::<f32>().unwrap_or(number as f32);
                push_number(f64::from(number), &format!("{number:e}"), out);
            } else {
                push_number(number, &format!("{number:e}"), out);
            }
        }
        Type::Decimal => {
            let plain = value.replace(',', "");
            is_decimal(&plain).then_some(())?;
            push_quoted(&plain, out);
        }
        _ => return None,
    }
    Some(())
}

/// Parses a number as Java's `Double.parseDouble`, or `Inf` and `-Inf`.
fn number_of(value: &str) -> Option<f64> {
    let plain = value.trim_matches(is_space).trim_start_matches(['+', '-']);
    match value {
        "Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        _ if plain.starts_with(|one: char| one.is_ascii_alphabetic())
            && plain != "NaN"
            && plain != "Infinity" =>
        {
            None
        }
        _ => float_text(value)?.parse().ok(),
    }
}

fn is_decimal(text: &str) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    mantissa.contains(|one: char| one.is_ascii_digit())
        && text.parse::<f64>().is_ok()
        && text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte))
}

/// Evaluates `schema_of_csv(text, options)`: the schema of a record as DDL.
pub fn schema_of_csv(given: &Arguments) -> Result<ArrayRef> {
    let (texts, options) = (given.text(0)?, given.text(1)?);
    let mut out = StringBuilder::new();
    for text in &texts {
        let Some(text) = text else {
            out.append_null();
            continue;
        };
        let values = Format::of(options.value(0))?.values(text);
        let fields: Vec<String> = values
            .iter()
            .enumerate()
            .map(|(at, value)| format!("_c{at}: {}", type_of(value.as_deref())))
            .collect();
        out.append_value(format!("STRUCT<{}>", fields.join(", ")));
    }
    Ok(Arc::new(out.finish()))
}

fn type_of(value: Option<&str>) -> String {
    let Some(value) = value.filter(|value| !value.is_empty()) else { return "STRING".to_owned() };
    let digits = value.trim_start_matches(['+', '-']);
    let whole = !digits.is_empty()
        && value.len() - digits.len() <= 1
        && digits.bytes().all(|byte| byte.is_ascii_digit());
    let significant = digits.trim_start_matches('0').len().max(1);
    let known = if value.parse::<i32>().is_ok() {
        "INT"
    } else if value.parse::<i64>().is_ok() {
        "BIGINT"
    } else if whole && significant <= 38 {
        return format!("DECIMAL({significant},0)");
    } else if number_of(value).is_some() {
        "DOUBLE"
    } else if is_date(value) {
        "DATE"
    } else if is_timestamp(value) {
        "TIMESTAMP"
    } else if value.eq_ignore_ascii_case("true") || value.eq_ignore_ascii_case("false") {
        "BOOLEAN"
    } else {
        "STRING"
    };
    known.to_owned()
}

/// True for a day such as `2024-03-01`.
fn is_date(value: &str) -> bool {
    value.len() == 10 && chrono::NaiveDate::parse_from_str(value, "%Y-%m-%d").is_ok()
}

/// Evaluates `to_csv(zone, options, value)`: a struct as a record; null if the record is empty.
pub fn to_csv(given: &Arguments) -> Result<ArrayRef> {
    let (zones, options, rows) = (given.text(0)?, given.text(1)?, given.array(2)?);
    if given.rows() == 0 {
        return Ok(Arc::new(StringArray::from(Vec::<&str>::new())));
    }
    let zone: Tz = zones
        .value(0)
        .parse()
        .map_err(|_| failure("UNSUPPORTED_TIME_ZONE", format!("the time zone {}", zones.value(0))))?;
    let writing = Writing { zone, nulls: false };
    let format = Format::of(options.value(0))?;
    let columns = rows.as_struct().columns();
    let mut out = StringBuilder::with_capacity(given.rows(), 16 * given.rows());
    let (mut record, mut value) = (String::new(), String::new());
    for row in 0..given.rows() {
        record.clear();
        for (number, column) in columns.iter().enumerate() {
            if number > 0 {
                record.push(format.separator);
            }
            if column.is_null(row) {
                if !format.null.is_empty() || format.quote_all {
                    format.push(&format.null, number == 0, &mut record);
                }
                continue;
            }
            value.clear();
            match column.data_type() {
                DataType::Date32 | DataType::Timestamp(..) => {
                    json_write::push(column, row, &writing, &mut value)?;
                    value.retain(|one| one != '"');
                }
                _ => json_write::push_key(column, row, &mut value)?,
            }
            format.push(&value, number == 0, &mut record);
        }
        if rows.is_null(row) || record.is_empty() { out.append_null() } else { out.append_value(&record) }
    }
    Ok(Arc::new(out.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: &str = r#"{"sep":",","quote":"\"","escape":"\\","nullValue":""}"#;

    #[test]
    fn records() {
        let format = Format::of(OPTIONS).unwrap();
        for (record, expected) in [
            (r#""a,b",c"#, vec![Some("a,b"), Some("c")]),
            (r#""a""b",c"#, vec![Some(r#""a""b""#), Some("c")]),
            (r#""a\"b",c"#, vec![Some("a\"b"), Some("c")]),
            (r#""a\\",b"#, vec![Some("a\\"), Some("b")]),
            (r#""a\n",b"#, vec![Some("a\\n"), Some("b")]),
            (r#""a"b,c"#, vec![Some(r#""a"b"#), Some("c")]),
            (r#""a"  x,b"#, vec![Some(r#""a"  x"#), Some("b")]),
            (r#""a" ,b"#, vec![Some("a"), Some("b")]),
            (r#""a"",b"#, vec![Some("a\""), Some("b")]),
            (r#""ab,c"#, vec![Some("ab,c")]),
            (r#""",x,"#, vec![None, Some("x"), None]),
            ("a\nb, c ", vec![Some("a\nb"), Some(" c ")]),
        ] {
            assert_eq!(
                format.values(record).iter().map(Option::as_deref).collect::<Vec<_>>(),
                expected,
                "{record}"
            );
        }
    }

    #[test]
    fn types() {
        for (value, expected) in [
            ("1", "INT"),
            ("99999999999", "BIGINT"),
            ("999999999999999999999", "DECIMAL(21,0)"),
            ("1e3", "DOUBLE"),
            ("Inf", "DOUBLE"),
            ("2024-01-01", "DATE"),
            ("2024-1-1", "TIMESTAMP"),
            ("12:30", "TIMESTAMP"),
            ("True", "BOOLEAN"),
            ("t", "STRING"),
        ] {
            assert_eq!(type_of(Some(value)), expected, "{value}");
        }
    }
}
