//! Regular expressions with Java's meaning: `rlike` and similar functions. Each row may have another
//! pattern.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, Int32Array, ListBuilder, StringArray, StringBuilder};
use fancy_regex::{Captures, Regex, RegexBuilder};

use super::arguments::Arguments;
use super::failure;
use super::java_regex::{Refusal, translate};
use crate::error::Result;

/// Number of compiled patterns that a thread keeps.
const KEPT: usize = 16;
/// Maximum number of steps of backtracking; above it, the match is an error.
const STEPS: usize = 10_000_000;

struct CompiledPattern {
    regex: Regex,
    names: Vec<(String, usize)>,
}

thread_local! {
    static COMPILED: RefCell<Vec<(String, Rc<CompiledPattern>)>> = const { RefCell::new(Vec::new()) };
}

fn compiled(pattern: &str) -> Result<Rc<CompiledPattern>> {
    COMPILED.with_borrow_mut(|kept| {
        if let Some(place) = kept.iter().position(|(known, _)| known == pattern) {
            kept[..=place].rotate_right(1);
        } else {
            kept.insert(0, (pattern.to_owned(), Rc::new(compile(pattern)?)));
            kept.truncate(KEPT);
        }
        Ok(Rc::clone(&kept[0].1))
    })
}

fn compile(pattern: &str) -> Result<CompiledPattern> {
    let unsupported =
        |why: &str| failure("UNSUPPORTED_REGEX", format!("the regular expression {pattern}: {why}"));
    let translation = translate(pattern).map_err(|refusal| match refusal {
        Refusal::Invalid => failure(
            "INVALID_PARAMETER_VALUE.PATTERN",
            format!("the regular expression {pattern} is not valid"),
        ),
        Refusal::Unsupported(what) => unsupported(what),
    })?;
    let regex = RegexBuilder::new(&translation.pattern).backtrack_limit(STEPS).build();
    Ok(CompiledPattern {
        regex: regex.map_err(|_| unsupported("too large, or a look behind of any length"))?,
        names: translation.names,
    })
}

impl CompiledPattern {
    /// Visits the matches as Java's `Matcher.find` returns them, also an empty match directly after another
    /// match.
    fn each<'t>(
        &self,
        text: &'t str,
        mut visit: impl FnMut(&Captures<'t, str>, (usize, usize)) -> Result<bool>,
    ) -> Result<()> {
        let mut from = 0;
        while from <= text.len() {
            let found = self
                .regex
                .captures_from_pos(text, from)
                .map_err(|_| failure("UNSUPPORTED_REGEX", "a match of too many steps"))?;
            let Some((found, range)) = found.and_then(|found| {
                found.get(0).map(|whole| (whole.start(), whole.end())).map(|range| (found, range))
            }) else {
                break;
            };
            if !visit(&found, range)? {
                break;
            }
            from = range.1;
            if range.0 == range.1 {
                let next = text[from..].chars().next();
                if next.is_some_and(|one| one.len_utf16() > 1) {
                    // Java continues after the first of the two units, in the middle of the character.
                    return Err(failure(
                        "UNSUPPORTED_REGEX",
                        "an empty match before a character of two UTF-16 units",
                    ));
                }
                from += next.map_or(1, char::len_utf8);
            }
        }
        Ok(())
    }

    fn first<'t>(&self, text: &'t str) -> Result<Option<Captures<'t, str>>> {
        self.regex.captures(text).map_err(|_| failure("UNSUPPORTED_REGEX", "a match of too many steps"))
    }

    /// Returns the index of a group. A group that the pattern does not have is an error of InvalidArgument.
    fn group(&self, group: i32) -> Result<usize> {
        let groups = self.regex.captures_len() - 1;
        let known = usize::try_from(group).ok().filter(|group| *group <= groups);
        known.ok_or_else(|| {
            failure("INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX", format!("group {group} of {groups}"))
        })
    }
}

fn group_text<'t>(found: &Captures<'t, str>, group: usize) -> &'t str {
    found.get(group).map_or("", |one| one.as_str())
}

/// The texts and patterns of a kernel's rows.
struct Rows {
    texts: StringArray,
    patterns: StringArray,
}

impl Rows {
    fn of(given: &Arguments) -> Result<Self> {
        Ok(Self { texts: given.text(0)?, patterns: given.text(1)? })
    }

    fn map<T>(
        &self,
        mut value: impl FnMut(usize, &str, &CompiledPattern) -> Result<Option<T>>,
    ) -> Result<Vec<Option<T>>> {
        let mut last: Option<(&str, Rc<CompiledPattern>)> = None;
        let mut out = Vec::with_capacity(self.texts.len());
        for (row, pair) in self.texts.iter().zip(&self.patterns).enumerate() {
            let (Some(text), Some(pattern)) = pair else {
                out.push(None);
                continue;
            };
            if last.as_ref().is_none_or(|(known, _)| *known != pattern) {
                last = Some((pattern, compiled(pattern)?));
            }
            out.push(match &last {
                Some((_, compiled)) => value(row, text, compiled)?,
                None => None,
            });
        }
        Ok(out)
    }
}

/// Evaluates `regex_matches(text, pattern)`: true if a part of the text matches.
pub fn matches(given: &Arguments) -> Result<ArrayRef> {
    let found = Rows::of(given)?.map(|_, text, compiled| {
        compiled
            .regex
            .is_match(text)
            .map(Some)
            .map_err(|_| failure("UNSUPPORTED_REGEX", "a match of too many steps"))
    })?;
    Ok(Arc::new(BooleanArray::from(found)))
}

/// Evaluates `regex_extract(text, pattern, group)`: the group of the first match; empty text without a match.
pub fn extract(given: &Arguments) -> Result<ArrayRef> {
    let groups = given.integers(2)?;
    let found = Rows::of(given)?.map(|row, text, compiled| {
        if groups.is_null(row) {
            return Ok(None);
        }
        let Some(found) = compiled.first(text)? else { return Ok(Some(String::new())) };
        Ok(Some(group_text(&found, compiled.group(groups.value(row))?).to_owned()))
    })?;
    Ok(Arc::new(StringArray::from(found)))
}

fn lists(found: Vec<Option<Vec<String>>>) -> ArrayRef {
    let mut out = ListBuilder::new(StringBuilder::new());
    for list in found {
        match list {
            Some(items) => out.append_value(items.into_iter().map(Some)),
            None => out.append_null(),
        }
    }
    Arc::new(out.finish())
}

/// Evaluates `regex_extract_all(text, pattern, group)`: a list with the group of every match.
pub fn extract_all(given: &Arguments) -> Result<ArrayRef> {
    let groups = given.integers(2)?;
    let found = Rows::of(given)?.map(|row, text, compiled| {
        if groups.is_null(row) {
            return Ok(None);
        }
        let mut items = Vec::new();
        compiled.each(text, |found, _| {
            items.push(group_text(found, compiled.group(groups.value(row))?).to_owned());
            Ok(true)
        })?;
        Ok(Some(items))
    })?;
    Ok(lists(found))
}

/// Evaluates `regex_count(text, pattern)`: the number of matches.
pub fn count(given: &Arguments) -> Result<ArrayRef> {
    let found = Rows::of(given)?.map(|_, text, compiled| {
        let mut number = 0;
        compiled.each(text, |_, _| {
            number += 1;
            Ok(true)
        })?;
        Ok(Some(number))
    })?;
    Ok(Arc::new(Int32Array::from(found)))
}

/// Evaluates `regex_instr(text, pattern)`: the position of the first match in characters, counted from 1; 0
/// without a match.
pub fn instr(given: &Arguments) -> Result<ArrayRef> {
    let found = Rows::of(given)?.map(|_, text, compiled| {
        let start = compiled.first(text)?.and_then(|found| found.get(0)).map(|whole| whole.start());
        Ok(Some(start.map_or(0, |start| text[..start].chars().count() as i32 + 1)))
    })?;
    Ok(Arc::new(Int32Array::from(found)))
}

/// Evaluates `regex_split(text, pattern, limit)`: splits as Java's `String.split`, but keeps empty parts at
/// the end. A positive `limit` is the maximum number of parts.
pub fn split(given: &Arguments) -> Result<ArrayRef> {
    let limits = given.integers(2)?;
    let found = Rows::of(given)?.map(|row, text, compiled| {
        if limits.is_null(row) {
            return Ok(None);
        }
        let limit = limits.value(row);
        let (mut parts, mut from) = (Vec::new(), 0);
        compiled.each(text, |_, (start, end)| {
            if limit > 0 && parts.len() as i32 >= limit - 1 {
                return Ok(false);
            }
            if end > 0 {
                parts.push(text[from..start].to_owned()); // an empty match at the beginning does not split
                from = end;
            }
            Ok(true)
        })?;
        parts.push(text[from..].to_owned());
        Ok(Some(parts))
    })?;
    Ok(lists(found))
}

/// Evaluates `regex_replace(text, pattern, replacement, position)`: replaces all matches from a position on;
/// `$1` and `${name}` are groups.
pub fn replace(given: &Arguments) -> Result<ArrayRef> {
    let (replacements, positions) = (given.text(2)?, given.integers(3)?);
    let found = Rows::of(given)?.map(|row, text, compiled| {
        if replacements.is_null(row) || positions.is_null(row) {
            return Ok(None);
        }
        let replacement = replacements.value(row);
        let skipped = text
            .char_indices()
            .nth((positions.value(row).max(1) - 1) as usize)
            .map_or(text.len(), |(place, _)| place);
        let (before, rest) = text.split_at(skipped);
        if rest.is_empty() && positions.value(row) > 1 {
            return Ok(Some(text.to_owned()));
        }
        let (mut out, mut from) = (before.to_owned(), 0);
        compiled.each(rest, |found, (start, end)| {
            out.push_str(&rest[from..start]);
            from = end;
            push_replacement(replacement, found, compiled, &mut out).ok_or_else(|| {
                failure(
                    "INVALID_REGEXP_REPLACE",
                    format!("the replacement {replacement} does not fit the regular expression"),
                )
            })?;
            Ok(true)
        })?;
        out.push_str(&rest[from..]);
        Ok(Some(out))
    })?;
    Ok(Arc::new(StringArray::from(found)))
}

/// Appends a replacement as Java's `Matcher.appendReplacement`. `None` for an unknown group, or an escape
/// without a character.
fn push_replacement(
    replacement: &str,
    found: &Captures<'_, str>,
    compiled: &CompiledPattern,
    out: &mut String,
) -> Option<()> {
    let mut rest = replacement.chars().peekable();
    while let Some(one) = rest.next() {
        match one {
            '\\' => out.push(rest.next()?),
            '$' if rest.peek() == Some(&'{') => {
                rest.next();
                let name: String = rest.by_ref().take_while(|one| *one != '}').collect();
                out.push_str(group_text(found, compiled.names.iter().find(|(known, _)| *known == name)?.1));
            }
            '$' => {
                let mut group = rest.next()?.to_digit(10)? as usize;
                let groups = compiled.regex.captures_len() - 1;
                if group > groups {
                    return None;
                }
                while let Some(digit) = rest.peek().and_then(|one| one.to_digit(10)) {
                    if group * 10 + digit as usize > groups {
                        break;
                    }
                    group = group * 10 + digit as usize;
                    rest.next();
                }
                out.push_str(group_text(found, group));
            }
            one => out.push(one),
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;

    use super::super::evaluate;
    use super::*;

    fn column(value: &str) -> ArrayRef {
        Arc::new(StringArray::from(vec![value]))
    }

    fn number(value: i32) -> ArrayRef {
        Arc::new(Int32Array::from(vec![value]))
    }

    #[test]
    fn replacements() {
        for (text, pattern, replacement, position, expected) in [
            ("abc", "x*", "-", 1, "-a-b-c-"),
            ("axb", "x*", "-", 1, "-a--b-"),
            ("abc", "(b)", "$12", 1, "ab2c"),
            ("abc", "(?<n>b)", "<${n}\\$>", 1, "a<b$>c"),
            ("aaa", "a", "x", 2, "axx"),
            ("", "a*", "x", 1, "x"),
            ("", "^$", "x", 2, ""),
        ] {
            let result = evaluate(
                "regex_replace",
                &[column(text), column(pattern), column(replacement), number(position)],
            )
            .unwrap();
            assert_eq!(result.as_string::<i32>().value(0), expected, "{text} {pattern}");
        }
        assert!(evaluate("regex_replace", &[column("b"), column("b"), column("$1"), number(1)]).is_err());
    }

    #[test]
    fn parts() {
        for (text, pattern, limit, expected) in [
            ("abc", "x*", -1, vec!["a", "b", "c", ""]),
            ("a1b22c", "(?=[0-9])", -1, vec!["a", "1b", "2", "2c"]),
            ("a1b2c3d", "[0-9]", 2, vec!["a", "b2c3d"]),
            ("a,b,,", ",", 0, vec!["a", "b", "", ""]),
        ] {
            let result = evaluate("regex_split", &[column(text), column(pattern), number(limit)]).unwrap();
            let items = result.as_list::<i32>().value(0);
            assert_eq!(
                items.as_string::<i32>().iter().map(|one| one.unwrap()).collect::<Vec<_>>(),
                expected,
                "{text} {pattern}"
            );
        }
    }
}
