//! `to_number` and `to_char` of numbers: parses formats such as `S$99,990.00` as Spark's `ToNumberParser`
//! does.

use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, StringArray};

use super::arguments::Arguments;
use super::failure;
use crate::error::Result;

#[derive(Debug, Clone, PartialEq)]
enum Token {
    /// Runs of digits between separators: the length of each, and whether all its digits are required.
    Digits(Vec<(usize, bool)>),
    Point,
    Dollar,
    /// `S`, the sign `+` or `-`.
    Sign,
    /// `MI`, the sign `-` of negative numbers only.
    Minus,
    Open,
    Close,
}

/// Returns the tokens of a format, which the Python layer has checked.
fn tokens(format: &str) -> Vec<Token> {
    let format = format.to_ascii_uppercase();
    let bytes = format.as_bytes();
    let (mut found, mut at, mut point) = (Vec::new(), 0, false);
    while at < bytes.len() {
        at += 1;
        match bytes[at - 1] {
            first @ (b'0' | b'9') => {
                let start = at - 1;
                while matches!(bytes.get(at), Some(b'0' | b'9')) {
                    at += 1;
                }
                let run = (at - start, first == b'0' && !point);
                match found.last_mut() {
                    Some(Token::Digits(runs)) => runs.push(run),
                    _ => found.push(Token::Digits(vec![run])),
                }
            }
            b'.' | b'D' => {
                point = true;
                found.push(Token::Point);
            }
            b'$' => found.push(Token::Dollar),
            b'S' => found.push(Token::Sign),
            b'M' => {
                at += 1;
                found.push(Token::Minus);
            }
            b'P' => {
                at += 1;
                found.insert(0, Token::Open);
                found.push(Token::Close);
            }
            _ => {} // a separator of thousands is between two runs of digits
        }
    }
    found
}

fn digits(tokens: &[Token], behind_point: bool) -> usize {
    let mut point = false;
    let mut number = 0;
    for token in tokens {
        match token {
            Token::Point => point = true,
            Token::Digits(runs) if point == behind_point => {
                number += runs.iter().map(|(length, _)| length).sum::<usize>()
            }
            _ => {}
        }
    }
    number
}

/// Evaluates `to_number(text, format, safe)`: the digits of the number, with as many after the point as in
/// the format. Text that does not match the format is null if `safe` is 1, else an error.
pub fn to_number(given: &Arguments) -> Result<ArrayRef> {
    let (texts, formats, safe) = (given.text(0)?, given.text(1)?, given.integers(2)?);
    let mut values = Vec::with_capacity(given.rows());
    let format = if given.rows() > 0 { formats.value(0) } else { "" };
    let tokens = tokens(format);
    for text in &texts {
        let Some(text) = text else {
            values.push(None);
            continue;
        };
        let number = parse(text, &tokens);
        if number.is_none() && safe.value(0) == 0 {
            return Err(failure(
                "INVALID_FORMAT.MISMATCH_INPUT",
                format!("the text {text} does not fit the format {format}"),
            ));
        }
        values.push(number);
    }
    Ok(Arc::new(values.into_iter().collect::<Decimal128Array>().with_precision_and_scale(38, 0)?))
}

fn parse(text: &str, tokens: &[Token]) -> Option<i128> {
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut point, mut negative, mut opened) = (0, false, false, false);
    let (mut before, mut behind) = (String::new(), String::new());
    for token in tokens {
        while !matches!(token, Token::Digits(_)) && text.get(at).is_some_and(|one| one.is_whitespace()) {
            at += 1;
        }
        let next = text.get(at).copied();
        match token {
            Token::Digits(runs) => {
                let out = if point { &mut behind } else { &mut before };
                at = take_digits(&text, at, runs, !point, out)?;
            }
            Token::Point => {
                if next == Some('.') {
                    point = true;
                    at += 1;
                }
            }
            Token::Dollar => {
                (next == Some('$')).then_some(())?;
                at += 1;
            }
            Token::Sign | Token::Minus => {
                if next == Some('-') || (next == Some('+') && *token == Token::Sign) {
                    negative ^= next == Some('-');
                    at += 1;
                }
            }
            Token::Open => {
                opened = next == Some('<');
                at += usize::from(opened);
            }
            Token::Close => {
                let closed = next == Some('>');
                if closed != opened {
                    return None;
                }
                negative ^= closed;
                at += usize::from(closed);
            }
        }
    }
    while text.get(at).is_some_and(|one| one.is_whitespace()) {
        at += 1;
    }
    if at < text.len() || (before.is_empty() && behind.is_empty()) {
        return None;
    }
    let zeros = digits(tokens, true).checked_sub(behind.len())?;
    let number: i128 = format!("{before}{behind}{}", "0".repeat(zeros)).parse().ok()?;
    Some(if negative { -number } else { number })
}

/// Appends the digits of `text` from position `at` on, and returns the position after them. `groups`: true if
/// a comma ends a group of digits. Returns `None` if the groups do not fit `runs`, the groups of the format:
/// each with its length, and whether it must be full.
fn take_digits(
    text: &[char],
    mut at: usize,
    runs: &[(usize, bool)],
    groups: bool,
    out: &mut String,
) -> Option<usize> {
    let mut found = vec![0_usize];
    while let Some(one) = text.get(at) {
        match one {
            '0'..='9' => {
                out.push(*one);
                *found.last_mut()? += 1;
            }
            ',' if groups => found.push(0),
            one if one.is_whitespace() => {}
            _ => break,
        }
        at += 1;
    }
    let missing = runs.len().checked_sub(found.len())?;
    let fits = |(place, (length, exactly)): (usize, &(usize, bool))| {
        let digits = if place < missing { 0 } else { found[place - missing] };
        if *exactly { digits == *length } else { digits <= *length }
    };
    runs.iter().enumerate().all(fits).then_some(at)
}

/// Evaluates `number_to_char(number as plain text, format)`: the formatted number, with `#` in place of all
/// digits if it has too many.
pub fn number_to_char(given: &Arguments) -> Result<ArrayRef> {
    let (texts, formats) = (given.text(0)?, given.text(1)?);
    let tokens = tokens(if given.rows() > 0 { formats.value(0) } else { "" });
    Ok(Arc::new(texts.iter().map(|text| text.map(|text| shown(text, &tokens))).collect::<StringArray>()))
}

fn shown(number: &str, tokens: &[Token]) -> String {
    let (before, behind) = number.split_once('.').unwrap_or((number, ""));
    let (before, behind) = (before.trim_start_matches(['-', '0']), behind.trim_end_matches('0'));
    let negative = number.starts_with('-') && !(before.is_empty() && behind.is_empty());
    let (wide, deep) = (digits(tokens, false), digits(tokens, true));
    let (before, behind) = if before.len() > wide || behind.len() > deep {
        ("#".repeat(wide), "#".repeat(deep))
    } else {
        (format!("{before:>wide$}"), format!("{behind:0<deep$}"))
    };
    let (mut before, mut behind) = (before.chars(), behind.chars());
    let mut out: Vec<char> = Vec::new();
    let mut point = false;
    for token in tokens {
        match token {
            Token::Digits(runs) => {
                for (number, (length, zeros)) in runs.iter().enumerate() {
                    if number > 0 {
                        let digit = out.last().is_some_and(char::is_ascii_digit);
                        push(if digit { ',' } else { ' ' }, &mut out);
                    }
                    for digit in (if point { &mut behind } else { &mut before }).by_ref().take(*length) {
                        push(if digit == ' ' && *zeros { '0' } else { digit }, &mut out);
                    }
                }
            }
            Token::Point => {
                if let Some(last) = out.last_mut().filter(|last| **last == ' ') {
                    *last = '0';
                }
                out.push('.');
                point = true;
            }
            Token::Dollar => out.push('$'),
            Token::Sign => push_behind(if negative { '-' } else { '+' }, &mut out),
            Token::Minus if negative => push_behind('-', &mut out),
            Token::Open if negative => out.push('<'),
            Token::Close if negative => push_behind('>', &mut out),
            Token::Minus => out.push(' '),
            Token::Open => {}
            Token::Close => {
                without_lone_point(&mut out);
                out.extend([' ', ' ']);
            }
        }
    }
    without_lone_point(&mut out);
    out.into_iter().collect()
}

/// Appends a character. If it is a space, it is put before a sign or bracket at the end of `out`.
fn push(one: char, out: &mut Vec<char>) {
    let place = out.len() - usize::from(one == ' ' && matches!(out.last(), Some('+' | '-' | '<')));
    out.insert(place, one);
}

/// Puts a sign or bracket behind the last character that is no space.
fn push_behind(one: char, out: &mut Vec<char>) {
    without_lone_point(out);
    let place = out.iter().rposition(|last| *last != ' ').map_or(0, |last| last + 1);
    out.insert(place, one);
}

fn without_lone_point(out: &mut [char]) {
    if let Some(last) = out.last_mut().filter(|last| **last == '.') {
        *last = ' ';
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_text() {
        for (number, format, expected) in [
            ("454", "99999", "  454"),
            ("454", "S9999", " +454"),
            ("-454", "99999PR", "  <454>"),
            ("567", "0,999,999", "0,    567"),
            ("-567", "S9,999,999", "      -567"),
            ("78.12", "S$999.99", "+$ 78.12"),
            ("78.126", "$99.99", "$##.##"),
            ("12345", "S9,999", "+# ###"),
            ("0", "9S", "+ "),
            ("5", "9.S", "5+ "),
            ("0", "S9", " +"),
            ("5", ".9", ".#"),
            ("5", "9.", "5 "),
            ("5", "9.PR", "5   "),
        ] {
            assert_eq!(shown(number, &tokens(format)), expected, "{number} {format}");
        }
    }

    #[test]
    fn text_as_numbers() {
        for (text, format, expected) in [
            ("12,454.8-", "99,999.9S", Some(-124_548)),
            ("454", "99,999", Some(454)),
            (",454", "99,999", Some(454)),
            ("12454", "99,999", None),
            ("454", "00,999", None),
            ("<5>", "9PR", Some(-5)),
            ("<5", "9PR", None),
            ("", "9", None),
            ("1 234", "9999", Some(1234)),
            ("78", "99.99", Some(7800)),
        ] {
            assert_eq!(parse(text, &tokens(format)), expected, "{text} {format}");
        }
    }
}
