//! Functions on JSON text: `get_json_object`, `json_array_length`, `json_object_keys`.
//!
//! Text is parsed as Jackson parses it for Spark: strings may be in single quotes and contain unescaped
//! control characters, and text after the first value is ignored.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int32Array, ListBuilder, StringBuilder};

use super::arguments::Arguments;
use super::numbers::push_double;
use crate::error::Result;

/// Maximum depth of nesting, as in Jackson; deeper values are an error.
pub(super) const DEPTH: usize = 1000;

/// A value of JSON.
#[derive(Debug, PartialEq)]
pub enum Json<'a> {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number as written in the text.
    Number(&'a str),
    /// A string without its quotes and escapes.
    Text(Cow<'a, str>),
    /// An array's items.
    Array(Vec<Json<'a>>),
    /// Names and values, in the order of the text. Names may repeat.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl<'a> Json<'a> {
    /// Parses the first value of a text. `None` if it is malformed or missing.
    pub fn parse(text: &'a str) -> Option<Self> {
        Parser { text, place: 0, strict: false }.value(0)
    }

    /// Parses like `parse`, but without Jackson's extensions: single quotes, control characters in strings.
    pub fn parse_strict(text: &'a str) -> Option<Self> {
        Parser { text, place: 0, strict: true }.value(0)
    }

    /// Appends the value as Jackson writes it.
    pub fn push(&self, out: &mut String) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Json::Number(text) => push_number(text, out),
            Json::Text(text) => push_as_utf8(text, out),
            Json::Array(items) => {
                out.push('[');
                for (number, item) in items.iter().enumerate() {
                    if number > 0 {
                        out.push(',');
                    }
                    item.push(out);
                }
                out.push(']');
            }
            Json::Object(fields) => {
                out.push('{');
                for (number, (name, value)) in fields.iter().enumerate() {
                    if number > 0 {
                        out.push(',');
                    }
                    push_as_utf8(name, out);
                    out.push(':');
                    value.push(out);
                }
                out.push('}');
            }
        }
    }
}

/// Appends a whole number as it is, any other number as Java writes the double.
fn push_number(text: &str, out: &mut String) {
    if text.contains(['.', 'e', 'E']) {
        let value = text.parse::<f64>().unwrap_or(f64::NAN);
        if value.is_finite() {
            return push_double(value, out);
        }
        let mut shown = String::new();
        push_double(value, &mut shown);
        return push_quoted(&shown, out);
    }
    out.push_str(text.strip_prefix("-0").filter(|rest| rest.is_empty()).map_or(text, |_| "0"));
}

/// Appends like `push_quoted`, with characters of two UTF-16 units escaped, as Jackson does when it writes
/// UTF-8.
fn push_as_utf8(text: &str, out: &mut String) {
    let start = out.len();
    push_quoted(text, out);
    if out[start..].chars().any(|character| character.len_utf16() == 2) {
        let quoted = out.split_off(start);
        for character in quoted.chars() {
            let mut units = [0; 2];
            match character.encode_utf16(&mut units) {
                [high, low] => out.push_str(&format!("\\u{high:04X}\\u{low:04X}")),
                _ => out.push(character),
            }
        }
    }
}

/// Appends a string of JSON with Jackson's escapes.
pub fn push_quoted(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if control < ' ' => out.push_str(&format!("\\u{:04X}", control as u32)),
            other => out.push(other),
        }
    }
    out.push('"');
}

struct Parser<'a> {
    text: &'a str,
    place: usize,
    strict: bool,
}

impl<'a> Parser<'a> {
    fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.text.as_bytes().get(self.place) {
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(*byte);
            }
            self.place += 1;
        }
        None
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.place += 1)
    }

    fn value(&mut self, depth: usize) -> Option<Json<'a>> {
        if depth > DEPTH {
            return None;
        }
        match self.peek()? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' | b'\'' => self.string().map(Json::Text),
            b't' => self.word("true", Json::Bool(true)),
            b'f' => self.word("false", Json::Bool(false)),
            b'n' => self.word("null", Json::Null),
            _ => self.number(),
        }
    }

    fn ends(&self) -> bool {
        self.text
            .as_bytes()
            .get(self.place)
            .is_none_or(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b']' | b'}' | b':'))
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Option<Json<'a>> {
        if !self.text[self.place..].starts_with(word) {
            return None;
        }
        self.place += word.len();
        self.ends().then_some(value)
    }

    fn number(&mut self) -> Option<Json<'a>> {
        let bytes = self.text.as_bytes();
        let start = self.place;
        let digits = |place: &mut usize| {
            let first = *place;
            while bytes.get(*place).is_some_and(u8::is_ascii_digit) {
                *place += 1;
            }
            *place - first
        };
        let mut place = start + usize::from(bytes[start] == b'-');
        let leading_zero = bytes.get(place) == Some(&b'0');
        let whole = digits(&mut place);
        if whole == 0 || (leading_zero && whole > 1) {
            return None;
        }
        if bytes.get(place) == Some(&b'.') {
            place += 1;
            if digits(&mut place) == 0 {
                return None;
            }
        }
        if bytes.get(place).is_some_and(|byte| matches!(byte, b'e' | b'E')) {
            place += 1;
            place += usize::from(bytes.get(place).is_some_and(|byte| matches!(byte, b'+' | b'-')));
            if digits(&mut place) == 0 {
                return None;
            }
        }
        self.place = place;
        self.ends().then(|| Json::Number(&self.text[start..place]))
    }

    fn string(&mut self) -> Option<Cow<'a, str>> {
        let begin = self.place;
        let found = self.quoted()?;
        let written = self.text[begin..self.place].trim_start().as_bytes();
        (!self.strict || (written[0] == b'"' && written.iter().all(|&byte| byte >= b' '))).then_some(found)
    }

    fn quoted(&mut self) -> Option<Cow<'a, str>> {
        let quote = self.peek().filter(|&byte| matches!(byte, b'"' | b'\''))?;
        self.place += 1;
        let start = self.place;
        let length = memchr::memchr2(quote, b'\\', &self.text.as_bytes()[start..])?;
        self.place = start + length + 1;
        if self.text.as_bytes()[start + length] == quote {
            return Some(Cow::Borrowed(&self.text[start..start + length]));
        }
        self.place -= 1;
        let mut out = self.text[start..start + length].to_owned();
        loop {
            let rest = &self.text[self.place..];
            let mut characters = rest.chars();
            match characters.next()? {
                end if end == char::from(quote) => {
                    self.place += 1;
                    return Some(Cow::Owned(out));
                }
                '\\' => {
                    self.place += 2;
                    match characters.next()? {
                        'n' => out.push('\n'),
                        't' => out.push('\t'),
                        'r' => out.push('\r'),
                        'b' => out.push('\u{8}'),
                        'f' => out.push('\u{c}'),
                        'u' => out.push(self.unicode()?),
                        same @ ('"' | '\\' | '/' | '\'') => out.push(same),

                        _ => return None,
                    }
                }
                other => {
                    out.push(other);
                    self.place += other.len_utf8();
                }
            }
        }
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self
            .text
            .get(self.place..self.place + 4)
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
        self.place += 4;
        u32::from_str_radix(digits, 16).ok()
    }

    /// Parses the character of `\uXXXX`, or of a pair of surrogates. Half of a pair is `?`, as Java encodes
    /// it.
    fn unicode(&mut self) -> Option<char> {
        let high = self.four_digits()?;
        if (0xd800..0xdc00).contains(&high) && self.text[self.place..].starts_with("\\u") {
            let back = self.place;
            self.place += 2;
            let low = self.four_digits()?;
            if (0xdc00..0xe000).contains(&low) {
                return char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
            }
            self.place = back;
        }
        Some(char::from_u32(high).unwrap_or('?'))
    }

    fn array(&mut self, depth: usize) -> Option<Json<'a>> {
        self.expect(b'[')?;
        let mut items = Vec::new();
        if self.peek()? == b']' {
            self.place += 1;
            return Some(Json::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            match self.peek()? {
                b',' => self.place += 1,
                b']' => {
                    self.place += 1;
                    return Some(Json::Array(items));
                }
                _ => return None,
            }
        }
    }

    fn object(&mut self, depth: usize) -> Option<Json<'a>> {
        self.expect(b'{')?;
        let mut fields = Vec::new();
        if self.peek()? == b'}' {
            self.place += 1;
            return Some(Json::Object(fields));
        }
        loop {
            self.peek()?;
            let name = self.string()?;
            self.expect(b':')?;
            fields.push((name, self.value(depth + 1)?));
            match self.peek()? {
                b',' => self.place += 1,
                b'}' => {
                    self.place += 1;
                    return Some(Json::Object(fields));
                }
                _ => return None,
            }
        }
    }
}

/// A step of a path such as `$.a[0][*]`.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Named(String),
    AnyName,
    Index(usize),
    AnyIndex,
}

fn path_of(text: &str) -> Option<Vec<Step>> {
    let mut rest = text.trim_start().strip_prefix('$')?;
    let mut steps = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return Some(steps);
        }
        if let Some(after) = rest.strip_prefix(".*").or_else(|| rest.strip_prefix("['*']")) {
            steps.push(Step::AnyName);
            rest = after;
        } else if let Some(after) = rest.strip_prefix('.') {
            let after = after.trim_start();
            let end = after.find(['.', '[']).unwrap_or(after.len());
            if end == 0 {
                return None;
            }
            steps.push(Step::Named(after[..end].to_owned()));
            rest = &after[end..];
        } else if let Some(after) = rest.strip_prefix("['") {
            let end = after.find("']").filter(|&end| end > 0 && !after[..end].contains(['\'', '?']))?;
            steps.push(Step::Named(after[..end].to_owned()));
            rest = &after[end + 2..];
        } else {
            let after = rest.strip_prefix('[')?;
            let (inside, tail) = after.split_once(']')?;
            steps.push(match inside.trim() {
                "*" => Step::AnyIndex,
                number if number.bytes().all(|b| b.is_ascii_digit()) => Step::Index(number.parse().ok()?),
                _ => return None,
            });
            rest = tail;
        }
    }
}

/// How matches are written: text without quotes, text with quotes, or the items of arrays one by one.
#[derive(Clone, Copy, PartialEq)]
enum Style {
    Raw,
    Quoted,
    Flat,
}

/// Writes values with commas between them.
#[derive(Default)]
struct Writer {
    out: String,
    many: bool,
}

impl Writer {
    fn value(&mut self, text: &str) {
        if self.many {
            self.out.push(',');
        }
        self.out.push_str(text);
        self.many = true;
    }

    fn json(&mut self, value: &Json) {
        if self.many {
            self.out.push(',');
        }
        value.push(&mut self.out);
        self.many = true;
    }
}

/// Writes the values that a path finds, and returns true if there are any. The cases are those of Spark's
/// `evaluatePath`, in its order.
fn walk(value: &Json, path: &[Step], style: Style, out: &mut Writer) -> bool {
    match (value, path) {
        (Json::Text(text), []) if style == Style::Raw => {
            out.value(text);
            true
        }
        (Json::Array(items), []) if style == Style::Flat => {
            items.iter().fold(false, |any, item| walk(item, &[], style, out) | any)
        }
        (_, []) => {
            out.json(value);
            true
        }
        (Json::Object(fields), [Step::Named(name), rest @ ..]) => fields
            .iter()
            .any(|(field, value)| field == name && *value != Json::Null && walk(value, rest, style, out)),
        (Json::Array(items), [Step::AnyIndex, Step::AnyIndex, rest @ ..]) => {
            listed(items, rest, Style::Flat, out)
        }
        (Json::Array(items), [Step::AnyIndex, rest @ ..]) if style != Style::Quoted => {
            let next = if style == Style::Raw { Style::Quoted } else { Style::Flat };
            let mut inner = Writer::default();
            let matches = items.iter().filter(|item| walk(item, rest, next, &mut inner)).count();
            match matches {
                0 => return false,
                1 => out.value(&inner.out),
                _ => out.value(&format!("[{}]", inner.out)),
            }
            true
        }
        (Json::Array(items), [Step::AnyIndex, rest @ ..]) => listed(items, rest, Style::Quoted, out),
        (Json::Array(items), [Step::Index(place), rest @ ..]) => {
            let style = if rest.first() == Some(&Step::AnyIndex) { Style::Quoted } else { style };
            items.get(*place).is_some_and(|item| walk(item, rest, style, out))
        }
        _ => false,
    }
}

/// Writes an array of the values that `rest` finds in each item, which may be empty. Returns true if there
/// are any.
fn listed(items: &[Json], rest: &[Step], style: Style, out: &mut Writer) -> bool {
    let mut inner = Writer::default();
    let any = items.iter().fold(false, |any, item| walk(item, rest, style, &mut inner) | any);
    out.value(&format!("[{}]", inner.out));
    any
}

/// Evaluates `get_json_object(text, path)`: the value at a path; null if there is none or the text is
/// malformed.
pub fn get_json_object(given: &Arguments) -> Result<ArrayRef> {
    let (texts, paths) = (given.text(0)?, given.text(1)?);
    let mut out = StringBuilder::with_capacity(given.rows(), texts.value_data().len() / 2);
    let mut known: (&str, Option<Vec<Step>>) = ("", None);
    for row in 0..given.rows() {
        if texts.is_null(row) || paths.is_null(row) {
            out.append_null();
            continue;
        }
        if paths.value(row) != known.0 {
            known = (paths.value(row), path_of(paths.value(row)));
        }
        let found = known.1.as_ref().and_then(|path| {
            let value = Json::parse(texts.value(row))?;
            let mut writer = Writer::default();
            walk(&value, path, Style::Raw, &mut writer).then_some(writer.out)
        });
        out.append_option(found);
    }
    Ok(Arc::new(out.finish()))
}

/// Returns the number of items of an array; null for any other text.
pub fn array_length(given: &Arguments) -> Result<ArrayRef> {
    let texts = given.text(0)?;
    let lengths = texts.iter().map(|text| match Json::parse(text?)? {
        Json::Array(items) => Some(items.len() as i32),
        _ => None,
    });
    Ok(Arc::new(lengths.collect::<Int32Array>()))
}

/// Returns the names of an object; null for any other text.
pub fn object_keys(given: &Arguments) -> Result<ArrayRef> {
    let mut out = ListBuilder::new(StringBuilder::new());
    for text in &given.text(0)? {
        let value = text.and_then(Json::parse);
        match &value {
            Some(Json::Object(fields)) => {
                fields.iter().for_each(|(name, _)| out.values().append_value(name));
                out.append(true);
            }
            _ => out.append(false),
        }
    }
    Ok(Arc::new(out.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, path: &str) -> Option<String> {
        let mut writer = Writer::default();
        walk(&Json::parse(text)?, &path_of(path)?, Style::Raw, &mut writer).then_some(writer.out)
    }

    #[test]
    fn paths() {
        let text = r#"{"a":{"b":[1,{"c":"x"},{"c":"y"},null]},"d":"t\"\u0041","e":1.50,"a b":[[1,2],[3]]}"#;
        for (path, expected) in [
            ("$.a.b[0]", Some("1")),
            ("$.a.b[*].c", Some(r#"["x","y"]"#)),
            ("$.a.b[1].c", Some("x")),
            ("$.a.b[3]", Some("null")),
            ("$.a.b[9]", None),
            ("$['a b'][*][0]", Some("[1,3]")),
            ("$['a b'][*][*]", Some("[1,2,3]")),
            ("$.d", Some("t\"A")),
            ("$.e", Some("1.5")),
            ("$.x", None),
            ("a", None),
            ("$.a.b[1]", Some(r#"{"c":"x"}"#)),
        ] {
            assert_eq!(found(text, path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn malformed_text() {
        for text in ["{", "", "{\"a\":}", "[1,]", "01", "tru", "\"a", "[1 2]", "nullx", "-"] {
            assert_eq!(Json::parse(text), None, "{text}");
        }
        assert_eq!(Json::parse(&"[".repeat(5000)), None);
        assert_eq!(Json::parse("1 x"), Some(Json::Number("1")));
    }
}
