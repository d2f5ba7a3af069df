//! Functions on text: case, distances of texts, phonetic codes, masks.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Float64Array, Int32Array, StringArray};

use super::arguments::{Arguments, map_text};
use super::title_case;
use crate::error::Result;

/// Converts to upper case by Unicode's full mapping: `straße` becomes `STRASSE`.
pub fn upper(given: &Arguments) -> Result<ArrayRef> {
    Ok(map_text(&given.text(0)?, |value, out| out.push_str(&value.to_uppercase())))
}

/// Converts to lower case by Unicode's full mapping, with its own form for a final sigma.
pub fn lower(given: &Arguments) -> Result<ArrayRef> {
    Ok(map_text(&given.text(0)?, |value, out| out.push_str(&value.to_lowercase())))
}

/// Converts the first character of each word to title case, and the rest to lower case. Words are separated
/// by spaces.
pub fn initcap(given: &Arguments) -> Result<ArrayRef> {
    Ok(map_text(&given.text(0)?, |value, out| {
        if value.is_ascii() {
            let mut first = true;
            for byte in value.bytes() {
                out.push(char::from(if first {
                    byte.to_ascii_uppercase()
                } else {
                    byte.to_ascii_lowercase()
                }));
                first = byte == b' ';
            }
            return;
        }
        for (number, word) in value.split(' ').enumerate() {
            if number > 0 {
                out.push(' ');
            }
            if let Some(first) = word.chars().next() {
                title_case::push(first, out);
                // The lower case is that of the whole word, as the form of a sigma depends on the letters
                // before it.
                out.extend(word.to_lowercase().chars().skip(first.to_lowercase().count()));
            }
        }
    }))
}

/// Returns the number of characters to insert, delete or replace to turn one text into the other. If there is
/// a third argument, a number above it becomes -1.
pub fn levenshtein(given: &Arguments) -> Result<ArrayRef> {
    let (left, right) = (given.text(0)?, given.text(1)?);
    let limits = if given.count() > 2 { Some(given.integers(2)?) } else { None };
    let distances = left.iter().zip(right.iter()).enumerate().map(|(row, pair)| {
        let (Some(a), Some(b)) = pair else { return None };
        let distance = if a.is_ascii() && b.is_ascii() {
            rapidfuzz::distance::levenshtein::distance(a.bytes(), b.bytes())
        } else {
            rapidfuzz::distance::levenshtein::distance(a.chars(), b.chars())
        } as i32;
        match &limits {
            Some(limits) if limits.is_null(row) => None,
            Some(limits) if distance > limits.value(row) => Some(-1),
            _ => Some(distance),
        }
    });
    Ok(Arc::new(distances.collect::<Int32Array>()))
}

/// Returns the Jaro-Winkler similarity: 1 for equal texts. A common beginning always counts; in DuckDB's
/// function, it counts only for similar texts.
pub fn jaro_winkler(given: &Arguments) -> Result<ArrayRef> {
    let (left, right) = (given.text(0)?, given.text(1)?);
    let similarities = left.iter().zip(right.iter()).map(|pair| {
        let (Some(a), Some(b)) = pair else { return None };
        let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
        let jaro = jaro(&a, &b);
        let prefix = a.iter().zip(&b).take(4).take_while(|(one, other)| one == other).count();
        Some(jaro + prefix as f64 * 0.1 * (1.0 - jaro))
    });
    Ok(Arc::new(similarities.collect::<Float64Array>()))
}

fn jaro(a: &[char], b: &[char]) -> f64 {
    if a == b {
        return 1.0;
    }
    let window = (a.len().max(b.len()) / 2).saturating_sub(1);
    let mut taken = vec![false; b.len()];
    let mut matched = Vec::new();
    for (place, one) in a.iter().enumerate() {
        let range = place.saturating_sub(window)..(place + window + 1).min(b.len());
        if let Some(other) = range.into_iter().find(|other| !taken[*other] && b[*other] == *one) {
            taken[other] = true;
            matched.push(*one);
        }
    }
    if matched.is_empty() {
        return 0.0;
    }
    let ordered = b.iter().zip(&taken).filter(|(_, taken)| **taken).map(|(one, _)| one);
    let moved = matched.iter().zip(ordered).filter(|(one, other)| one != other).count();
    let (found, swaps) = (matched.len() as f64, moved as f64 / 2.0);
    (found / a.len() as f64 + found / b.len() as f64 + (found - swaps) / found) / 3.0
}

/// Soundex's digit of each letter; `7` for letters that are skipped.
const SOUNDS: &[u8; 26] = b"01230127022455012623017202";

/// Returns the American Soundex code. Text that does not begin with an ASCII letter is returned unchanged.
pub fn soundex(given: &Arguments) -> Result<ArrayRef> {
    Ok(map_text(&given.text(0)?, |value, out| {
        let Some(first) = value.bytes().next().filter(u8::is_ascii_alphabetic) else {
            return out.push_str(value);
        };
        let code = |letter: u8| SOUNDS[usize::from(letter.to_ascii_uppercase() - b'A')];
        out.push(char::from(first.to_ascii_uppercase()));
        let mut last = code(first);
        for byte in value.bytes().skip(1) {
            if !byte.is_ascii_alphabetic() {
                last = b'0';
                continue;
            }
            let digit = code(byte);
            if digit == b'7' {
                continue;
            }
            if digit != b'0' && digit != last {
                out.push(char::from(digit));
                if out.len() > 3 {
                    break;
                }
            }
            last = digit;
        }
        while out.len() < 4 {
            out.push('0');
        }
    }))
}

/// Evaluates `mask(text, upper, lower, digit, other)`: replaces the characters of each class by one
/// character, or keeps them if that is null.
pub fn mask(given: &Arguments) -> Result<ArrayRef> {
    let values = given.text(0)?;
    let masks = (1..5).map(|place| given.text(place)).collect::<Result<Vec<_>>>()?;
    let mut row = 0;
    let by = |row: usize, class: usize, character: char, out: &mut String| {
        let replacement: &StringArray = &masks[class];
        if replacement.is_null(row) { out.push(character) } else { out.push_str(replacement.value(row)) }
    };
    let mut place = values
        .iter()
        .enumerate()
        .filter_map(|(row, value)| value.map(|_| row))
        .collect::<Vec<_>>()
        .into_iter();
    Ok(map_text(&values, |value, out| {
        row = place.next().unwrap_or(row);
        for character in value.chars() {
            let class = match character {
                _ if character.is_uppercase() => 0,
                _ if character.is_lowercase() => 1,
                _ if character.is_numeric() && character.is_ascii_digit() => 2,
                _ => 3,
            };
            by(row, class, character, out);
        }
    }))
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::Int32Type;

    use super::super::evaluate;
    use super::*;

    fn column(values: &[Option<&str>]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    fn shown(kernel: &str, value: &str) -> String {
        evaluate(kernel, &[column(&[Some(value)])]).unwrap().as_string::<i32>().value(0).to_owned()
    }

    #[test]
    fn case_follows_unicode() {
        assert_eq!(shown("upper", "straße"), "STRASSE");
        assert_eq!(shown("lower", "ΑΣ ΟΔΟΣ"), "ας οδος");
        assert_eq!(shown("initcap", "hello wORLD  ßa"), "Hello World  Ssa");
        assert_eq!(shown("initcap", "a-b c"), "A-b C");
    }

    #[test]
    fn nulls_stay_null() {
        let result = evaluate("upper", &[column(&[None, Some("a")])]).unwrap();
        assert!(result.is_null(0));
        assert_eq!(result.as_string::<i32>().value(1), "A");
    }

    #[test]
    fn distances_count_characters() {
        let (a, b) =
            (column(&[Some("añb😀"), Some(""), None]), column(&[Some("anb"), Some("abc"), Some("x")]));
        let result = evaluate("levenshtein", &[a, b]).unwrap();
        let distances = result.as_primitive::<Int32Type>();
        assert_eq!((distances.value(0), distances.value(1), distances.is_null(2)), (2, 3, true));
    }

    #[test]
    fn sounds() {
        for (word, code) in [
            ("Robert", "R163"),
            ("Rupert", "R163"),
            ("Tymczak", "T522"),
            ("Pfister", "P236"),
            ("1a", "1a"),
            ("a", "A000"),
        ] {
            assert_eq!(shown("soundex", word), code, "{word}");
        }
    }
}
