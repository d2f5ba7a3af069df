//! `to_base32`, `from_base32`: RFC 4648, decoded as leniently as Spark does with Apache Commons Codec.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, StringArray};

use super::arguments::Arguments;
use crate::error::Result;

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Encodes bytes as text of base 32, padded to a multiple of eight characters.
pub fn encode(given: &Arguments) -> Result<ArrayRef> {
    let values = given.binary(0)?;
    Ok(Arc::new(values.iter().map(|value| value.map(encoded)).collect::<StringArray>()))
}

fn encoded(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(5) * 8);
    for chunk in bytes.chunks(5) {
        let bits = chunk
            .iter()
            .enumerate()
            .fold(0_u64, |bits, (place, byte)| bits | u64::from(*byte) << (32 - 8 * place));
        let used = (chunk.len() * 8).div_ceil(5);
        out.extend((0..8).map(|place| {
            if place < used { char::from(ALPHABET[(bits >> (35 - 5 * place)) as usize & 31]) } else { '=' }
        }));
    }
    out
}

/// Decodes text of base 32 to bytes. Characters outside of its alphabet are skipped, and `=` ends the text.
pub fn decode(given: &Arguments) -> Result<ArrayRef> {
    let values = given.text(0)?;
    Ok(Arc::new(values.iter().map(|value| value.map(decoded)).collect::<BinaryArray>()))
}

fn decoded(text: &str) -> Vec<u8> {
    let digit = |byte: u8| ALPHABET.iter().position(|one| *one == byte.to_ascii_uppercase());
    let digits: Vec<u64> = text
        .bytes()
        .take_while(|byte| *byte != b'=')
        .filter_map(|byte| digit(byte).map(|digit| digit as u64))
        .collect();
    let mut out = Vec::with_capacity(digits.len() * 5 / 8 + 1);
    for chunk in digits.chunks(8) {
        let bits = chunk.iter().fold(0, |bits, digit| bits << 5 | digit);
        // A single digit has five bits: the first three of them become a byte.
        let (dropped, bytes) =
            if chunk.len() == 1 { (2, 1) } else { (chunk.len() * 5 % 8, chunk.len() * 5 / 8) };
        out.extend_from_slice(&(bits >> dropped).to_be_bytes()[8 - bytes..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways() {
        for (bytes, text) in
            [("", ""), ("a", "ME======"), ("foobar", "MZXW6YTBOI======"), ("fooba", "MZXW6YTB")]
        {
            assert_eq!(encoded(bytes.as_bytes()), text);
            assert_eq!(decoded(&text.to_lowercase()), bytes.as_bytes());
        }
        assert_eq!((decoded("M"), decoded("1"), decoded("MZ XW")), (vec![3], vec![], b"fo".to_vec()));
    }
}
