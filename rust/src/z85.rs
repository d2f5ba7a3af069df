//! Converts between Z85 text and bytes (ZeroMQ RFC 32). Inline vectors, and the UUIDs that name vector files,
//! are stored as such text. PROTOCOL.md, "Deletion Vector Descriptor Schema" and "Derived Fields".
//!
//! ```text
//! 4 bytes, one big-endian number n  ->  5 digits of n in base 85, most significant first
//! ```
//! Bytes that do not fill the last group are padded with zeros, as Delta does; the true length is kept
//! elsewhere (`sizeInBytes`).
#![warn(clippy::indexing_slicing)]

use crate::error::{Error, Result};

const ALPHABET: &[u8; 85] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
const NO_DIGIT: u8 = 0xFF;
const DIGITS: [u8; 256] = digits();
/// Two digits at once: 85² pairs of letters.
const PAIR: u32 = 85 * 85;
static PAIRS: [[u8; 2]; PAIR as usize] = pairs();

/// Returns the length of the text for `bytes` bytes. `None` if it does not fit.
pub fn encoded_len(bytes: usize) -> Option<usize> {
    bytes.div_ceil(4).checked_mul(5)
}

/// Encodes `data`, padded with zero bytes to a multiple of 4.
pub fn encode(data: &[u8]) -> String {
    let (groups, rest) = data.as_chunks::<4>();
    let mut text = vec![0; data.len().div_ceil(4) * 5];
    let (out, _) = text.as_chunks_mut::<5>();
    let mut last = [0; 4];
    last.iter_mut().zip(rest).for_each(|(padded, byte)| *padded = *byte);
    for (letters, group) in out.iter_mut().zip(groups.iter().chain([&last])) {
        *letters = encode_group(u32::from_be_bytes(*group));
    }
    // Every letter is ASCII.
    String::from_utf8_lossy(&text).into_owned()
}

/// Decodes `text` to bytes including the padding, a multiple of 4.
///
/// # Errors
/// The length is not a multiple of 5, a letter is outside the alphabet (with its position), or a group is
/// above 2³² − 1.
pub fn decode(text: &str) -> Result<Vec<u8>> {
    let (groups, rest) = text.as_bytes().as_chunks::<5>();
    check_length(text, rest)?;
    let mut data = vec![0; groups.len() * 4];
    let (out, _) = data.as_chunks_mut::<4>();
    let mut wrong = false;
    for (bytes, letters) in out.iter_mut().zip(groups) {
        let (value, bad) = decode_group(*letters);
        wrong |= bad | (value > u64::from(u32::MAX));
        *bytes = (value as u32).to_be_bytes();
    }
    // The loop only records that there was an error; its details are searched for afterwards.
    if wrong {
        check_alphabet(text)?;
        check_overflow(groups)?;
    }
    Ok(data)
}

/// Decodes the first `len` bytes of `text`. Its length must be that of `len` padded bytes, and the padding
/// must be zeros.
///
/// # Errors
/// The errors of [`decode`], and an error for a text that is too long or too short for `len`.
pub fn decode_exact(text: &str, len: usize) -> Result<Vec<u8>> {
    check_expected_length(text, len)?;
    let mut data = decode(text)?;
    check_padding(data.get(len..).unwrap_or_default())?;
    data.truncate(len);
    Ok(data)
}

fn encode_group(value: u32) -> [u8; 5] {
    let (high, low) = (value / PAIR, value % PAIR);
    let [b, c] = letters(high % PAIR);
    let [d, e] = letters(low);
    let [_, a] = letters(high / PAIR);
    [a, b, c, d, e]
}

#[inline(always)]
#[expect(
    clippy::indexing_slicing,
    reason = "callers pass remainders of a division by PAIR, or a quotient below 85"
)]
fn letters(pair: u32) -> [u8; 2] {
    PAIRS[pair as usize]
}

#[inline(always)]
fn decode_group([a, b, c, d, e]: [u8; 5]) -> (u64, bool) {
    let digits = [digit(a), digit(b), digit(c), digit(d), digit(e)];
    let value =
        digits.iter().fold(0u64, |value, digit| value.wrapping_mul(85).wrapping_add(u64::from(*digit)));
    // A digit is below 85; only NO_DIGIT has the highest bit.
    (value, digits.iter().fold(0, |all, digit| all | digit) & 0x80 != 0)
}

#[inline(always)]
#[expect(clippy::indexing_slicing, reason = "256 entries, indexed by a byte")]
fn digit(letter: u8) -> u8 {
    DIGITS[letter as usize]
}

fn check_length(text: &str, rest: &[u8]) -> Result<()> {
    if rest.is_empty() {
        return Ok(());
    }
    Err(Error::protocol("Z85 text has the wrong length")
        .found(format!("{} letters", text.len()))
        .expected("a multiple of 5"))
}

fn check_expected_length(text: &str, len: usize) -> Result<()> {
    if encoded_len(len) == Some(text.len()) {
        return Ok(());
    }
    Err(Error::protocol(format!("Z85 text does not have the length of {len} bytes"))
        .found(format!("{} letters", text.len()))
        .expected(encoded_len(len).map_or_else(|| "less".to_owned(), |n| format!("{n} letters"))))
}

fn check_alphabet(text: &str) -> Result<()> {
    match text
        .char_indices()
        .find(|(_, c)| !u8::try_from(*c).is_ok_and(|b| c.is_ascii() && digit(b) != NO_DIGIT))
    {
        None => Ok(()),
        Some((at, c)) => {
            Err(Error::protocol(format!("Z85 text has a letter outside the alphabet at position {at}"))
                .found(format!("{c:?}")))
        }
    }
}

fn check_overflow(groups: &[[u8; 5]]) -> Result<()> {
    match groups.iter().position(|group| decode_group(*group).0 > u64::from(u32::MAX)) {
        None => Ok(()),
        Some(group) => {
            Err(Error::protocol(format!("Z85 group at position {} is larger than 4 bytes", group * 5))
                .found(groups.get(group).map(|g| String::from_utf8_lossy(g).into_owned()).unwrap_or_default())
                .expected("at most %nSc0"))
        }
    }
}

fn check_padding(padding: &[u8]) -> Result<()> {
    if padding.iter().all(|byte| *byte == 0) {
        return Ok(());
    }
    Err(Error::protocol("Z85 text has bytes after its end")
        .found(format!("{padding:?}"))
        .expected("padding of zeros"))
}

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler, which checks the bounds")]
const fn digits() -> [u8; 256] {
    let mut table = [NO_DIGIT; 256];
    let mut value = 0;
    while value < ALPHABET.len() {
        table[ALPHABET[value] as usize] = value as u8;
        value += 1;
    }
    table
}

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler, which checks the bounds")]
const fn pairs() -> [[u8; 2]; PAIR as usize] {
    let mut table = [[0; 2]; PAIR as usize];
    let mut pair = 0;
    while pair < PAIR as usize {
        table[pair] = [ALPHABET[pair / 85], ALPHABET[pair % 85]];
        pair += 1;
    }
    table
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Encodes one letter after the other, as RFC 32 defines it.
    fn naive_encode(data: &[u8]) -> String {
        let mut text = String::new();
        for group in data.chunks(4) {
            let value = (0..4).fold(0u32, |n, i| (n << 8) | u32::from(group.get(i).copied().unwrap_or(0)));
            text.extend((0..5).rev().map(|i| char::from(ALPHABET[(value / 85u32.pow(i) % 85) as usize])));
        }
        text
    }

    /// The example is that of ZeroMQ RFC 32, "Test case".
    #[test]
    fn rfc_32() {
        let data = [0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B];
        assert_eq!(encode(&data), "HelloWorld");
        assert_eq!(decode("HelloWorld").unwrap(), data);
    }

    fn message(result: Result<Vec<u8>>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn rejects_length() {
        assert!(
            message(decode("Hello!")).contains("wrong length; found 6 letters; expected a multiple of 5")
        );
    }

    #[test]
    fn rejects_letters() {
        assert!(message(decode("Hell Worl~")).contains("outside the alphabet at position 4; found ' '"));
        assert!(message(decode("Helloab\u{e9}a")).contains("outside the alphabet at position 7; found 'é'"));
        assert!(message(decode("Hello\0\0\0\0\0")).contains("position 5"));
    }

    #[test]
    fn rejects_overflow() {
        assert_eq!(decode("%nSc0").unwrap(), [0xFF; 4]);
        assert!(message(decode("00000%nSc1")).contains("position 5 is larger than 4 bytes; found %nSc1"));
        assert!(message(decode("#####")).contains("larger than 4 bytes"));
    }

    #[test]
    fn rejects_other_lengths() {
        assert_eq!(decode_exact("00000", 1).unwrap(), [0]);
        assert!(message(decode_exact("00000", 5)).contains("found 5 letters; expected 10 letters"));
        assert!(message(decode_exact("00000", usize::MAX)).contains("found 5 letters"));
        assert!(message(decode_exact("0000000000", 4)).contains("found 10 letters; expected 5 letters"));
    }

    #[test]
    fn rejects_padding() {
        assert!(message(decode_exact("00001", 2)).contains("bytes after its end"));
    }

    proptest! {
        #[test]
        fn round_trip(data: Vec<u8>) {
            let text = encode(&data);
            prop_assert_eq!(&text, &naive_encode(&data));
            prop_assert_eq!(Some(text.len()), encoded_len(data.len()));
            prop_assert_eq!(decode_exact(&text, data.len()).unwrap(), data);
        }

        #[test]
        fn any_text_is_decoded_or_refused(text: String) {
            if let Ok(data) = decode(&text) {
                prop_assert_eq!(encode(&data), text);
            }
        }
    }
}
