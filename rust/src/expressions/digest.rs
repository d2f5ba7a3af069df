//! `sha2`, `hmac`, and `encode` and `decode` for the character sets that Spark supports besides UTF-8, as
//! Java's coders convert them.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, StringArray};
use hmac::{Hmac, Mac};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::arguments::Arguments;
use super::failure;
use crate::error::{Error, Kind, Result};

/// Evaluates `sha2(bytes, bits)`: the digest as hexadecimal text; null for an unsupported number of bits.
pub fn sha2(given: &Arguments) -> Result<ArrayRef> {
    let (values, bits) = (given.binary(0)?, given.integers(1)?);
    let digest = |(value, bits): (Option<&[u8]>, Option<i32>)| {
        let (value, bits) = (value?, bits?);
        Some(match bits {
            224 => hexadecimal(&Sha224::digest(value)),
            0 | 256 => hexadecimal(&Sha256::digest(value)),
            384 => hexadecimal(&Sha384::digest(value)),
            512 => hexadecimal(&Sha512::digest(value)),
            _ => return None,
        })
    };
    Ok(Arc::new(values.iter().zip(&bits).map(digest).collect::<StringArray>()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]))
        .collect()
}

/// Evaluates `hmac(key, message, function)`: the authentication code of RFC 2104, with a hash function such
/// as `sha256`.
pub fn hmac(given: &Arguments) -> Result<ArrayRef> {
    let (keys, messages, names) = (given.binary(0)?, given.binary(1)?, given.text(2)?);
    let mut found = Vec::with_capacity(given.rows());
    for ((key, message), name) in keys.iter().zip(&messages).zip(&names) {
        let (Some(key), Some(message), Some(name)) = (key, message, name) else {
            found.push(None);
            continue;
        };
        if key.is_empty() {
            return Err(failure("INVALID_PARAMETER_VALUE.HMAC_CRYPTO_ERROR", "the key of hmac is empty"));
        }
        macro_rules! code {
            ($hash:ty) => {{
                let mut code = Hmac::<$hash>::new_from_slice(key)
                    .map_err(|error| Error::new(Kind::InvalidArgument, error.to_string()))?;
                code.update(message);
                code.finalize().into_bytes().to_vec()
            }};
        }
        found.push(Some(match name {
            "md5" => code!(Md5),
            "sha1" => code!(Sha1),
            "sha224" => code!(Sha224),
            "sha256" => code!(Sha256),
            "sha384" => code!(Sha384),
            "sha512" => code!(Sha512),
            other => return Err(Error::new(Kind::InvalidArgument, "no such hash function").found(other)),
        }));
    }
    Ok(Arc::new(found.into_iter().collect::<BinaryArray>()))
}

/// Evaluates `encode(text, charset)`: the text's bytes in a character set, whose name is in capitals.
pub fn encode(given: &Arguments) -> Result<ArrayRef> {
    let found = coded("encode", given.text(0)?.iter(), &given.text(1)?, encoded)?;
    Ok(Arc::new(found.into_iter().collect::<BinaryArray>()))
}

/// Evaluates `decode(bytes, charset)`: the text of bytes in a character set, whose name is in capitals.
pub fn decode(given: &Arguments) -> Result<ArrayRef> {
    let found = coded("decode", given.binary(0)?.iter(), &given.text(1)?, decoded)?;
    Ok(Arc::new(found.into_iter().collect::<StringArray>()))
}

/// Converts each value to or from its character set. The first value that cannot be converted is an error.
fn coded<V, R>(
    function: &str,
    values: impl Iterator<Item = Option<V>>,
    sets: &StringArray,
    code: fn(V, &str) -> Option<R>,
) -> Result<Vec<Option<R>>> {
    let malformed = |set: &str| {
        failure(
            "MALFORMED_CHARACTER_CODING",
            format!("invalid value found when performing `{function}` with {set}"),
        )
    };
    let one = |(value, set): (Option<V>, Option<&str>)| match (value, set) {
        (Some(value), Some(set)) => code(value, set).map(Some).ok_or_else(|| malformed(set)),
        _ => Ok(None),
    };
    values.zip(sets).map(one).collect()
}

fn encoded(text: &str, set: &str) -> Option<Vec<u8>> {
    let units = || text.encode_utf16();
    Some(match set {
        "US-ASCII" => text.is_ascii().then(|| text.as_bytes().to_vec())?,
        "ISO-8859-1" => {
            text.chars().map(|letter| u8::try_from(u32::from(letter)).ok()).collect::<Option<_>>()?
        }
        "UTF-8" => text.as_bytes().to_vec(),
        "UTF-16BE" => units().flat_map(u16::to_be_bytes).collect(),
        "UTF-16LE" => units().flat_map(u16::to_le_bytes).collect(),
        // Java begins with a byte order mark, except for empty text.
        "UTF-16" if text.is_empty() => Vec::new(),
        "UTF-16" => [0xFEFF].into_iter().chain(units()).flat_map(u16::to_be_bytes).collect(),
        "UTF-32" => text.chars().flat_map(|letter| u32::from(letter).to_be_bytes()).collect(),
        _ => return None,
    })
}

fn decoded(bytes: &[u8], set: &str) -> Option<String> {
    match set {
        "US-ASCII" => bytes.is_ascii().then(|| bytes.iter().copied().map(char::from).collect()),
        "ISO-8859-1" => Some(bytes.iter().copied().map(char::from).collect()),
        "UTF-8" => std::str::from_utf8(bytes).ok().map(str::to_owned),
        "UTF-16BE" => of_units(bytes, u16::from_be_bytes),
        "UTF-16LE" => of_units(bytes, u16::from_le_bytes),
        "UTF-16" => match bytes {
            [0xFE, 0xFF, rest @ ..] => of_units(rest, u16::from_be_bytes),
            [0xFF, 0xFE, rest @ ..] => of_units(rest, u16::from_le_bytes),
            _ => of_units(bytes, u16::from_be_bytes),
        },
        "UTF-32" => match bytes {
            [0, 0, 0xFE, 0xFF, rest @ ..] => of_letters(rest, u32::from_be_bytes),
            [0xFF, 0xFE, 0, 0, rest @ ..] => of_letters(rest, u32::from_le_bytes),
            _ => of_letters(bytes, u32::from_be_bytes),
        },
        _ => None,
    }
}

fn of_units(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (units, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    char::decode_utf16(units.iter().map(|bytes| unit(*bytes))).collect::<std::result::Result<_, _>>().ok()
}

fn of_letters(bytes: &[u8], letter: fn([u8; 4]) -> u32) -> Option<String> {
    let (letters, rest) = bytes.as_chunks::<4>();
    if rest.is_empty() { letters.iter().map(|bytes| char::from_u32(letter(*bytes))).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Int32Array};

    use super::*;

    #[test]
    fn digests_of_rfc_6234() {
        let text: ArrayRef = Arc::new(BinaryArray::from(vec![b"abc".as_slice(); 6]));
        let bits: ArrayRef =
            Arc::new(Int32Array::from(vec![Some(224), Some(0), Some(384), Some(512), Some(1), None]));
        let found = sha2(&Arguments::new(&[text, bits]).unwrap()).unwrap();
        let found: Vec<_> =
            found.as_string::<i32>().iter().map(|text| text.map(|text| text[..8].to_owned())).collect();
        assert_eq!(
            found,
            [Some("23097d22"), Some("ba7816bf"), Some("cb00753f"), Some("ddaf35a1"), None, None]
                .map(|text| text.map(str::to_owned))
        );
    }

    #[test]
    fn codes_of_rfc_4231() {
        let (key, message): (ArrayRef, ArrayRef) = (
            Arc::new(BinaryArray::from(vec![b"Jefe".as_slice(); 2])),
            Arc::new(BinaryArray::from(vec![b"what do ya want for nothing?".as_slice(); 2])),
        );
        let names: ArrayRef = Arc::new(StringArray::from(vec!["sha224", "sha512"]));
        let found = hmac(&Arguments::new(&[key, message, names]).unwrap()).unwrap();
        assert_eq!(found.as_binary::<i32>().value(0)[..4], [0xa3, 0x0e, 0x01, 0x09]);
        assert_eq!(found.as_binary::<i32>().value(1)[..4], [0x16, 0x4b, 0x7a, 0x7b]);
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        for set in ["UTF-8", "UTF-16", "UTF-16BE", "UTF-16LE", "UTF-32"] {
            for text in ["", "abc", "é𝄞\u{feff}z"] {
                assert_eq!(decoded(&encoded(text, set).unwrap(), set).as_deref(), Some(text), "{set} {text}");
            }
        }
        assert_eq!(encoded("a", "UTF-16").unwrap(), [0xFE, 0xFF, 0, b'a']);
        assert_eq!(encoded("é", "ISO-8859-1").unwrap(), [0xE9]);
        assert!(encoded("é", "US-ASCII").is_none() && encoded("€", "ISO-8859-1").is_none());
        assert!(
            decoded(&[0xD8, 0], "UTF-16BE").is_none()
                && decoded(&[0], "UTF-16").is_none()
                && decoded(&[0; 3], "UTF-32").is_none()
        );
    }
}
