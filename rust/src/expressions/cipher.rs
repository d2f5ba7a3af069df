//! `aes_encrypt`, `aes_decrypt`: AES in the modes that Spark has, with keys of 16, 24 and 32 bytes.
//!
//! GCM: a nonce of 12 bytes, the text, a tag of 16 bytes. CBC: a first block of 16 bytes, then the text with
//! the padding of PKCS#7. ECB: the padded text.

use std::sync::Arc;

use aes::cipher::block_padding::Pkcs7;
use aes::cipher::consts::{U12, U16};
use aes::cipher::{
    BlockCipher, BlockDecrypt, BlockDecryptMut, BlockEncrypt, BlockEncryptMut, BlockSizeUser, KeyInit,
    KeyIvInit,
};
use aes::{Aes128, Aes192, Aes256};
use aes_gcm::AesGcm;
use aes_gcm::aead::rand_core::RngCore;
use aes_gcm::aead::{Aead, Nonce, OsRng, Payload};
use arrow::array::{Array, ArrayRef, BinaryArray, BinaryBuilder, StringArray};

use super::arguments::Arguments;
use super::failure;
use crate::error::{Error, Result};

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Gcm,
    Cbc,
    Ecb,
}

impl Mode {
    fn of(mode: &str, padding: &str) -> Result<Self> {
        match (mode.to_uppercase().as_str(), padding.to_uppercase().as_str()) {
            ("GCM", "NONE" | "DEFAULT") => Ok(Self::Gcm),
            ("CBC", "PKCS" | "DEFAULT") => Ok(Self::Cbc),
            ("ECB", "PKCS" | "DEFAULT") => Ok(Self::Ecb),
            _ => Err(failure(
                "UNSUPPORTED_FEATURE.AES_MODE",
                format!("AES-{mode} with the padding {padding} is not supported."),
            )),
        }
    }

    /// Returns the number of bytes before the encrypted text: a nonce or a first block.
    fn start(self) -> usize {
        match self {
            Self::Gcm => 12,
            Self::Cbc => 16,
            Self::Ecb => 0,
        }
    }
}

/// The arguments of a row besides its text and key.
struct Row<'a> {
    mode: Mode,
    start: &'a [u8],
    aad: &'a [u8],
}

fn crypto_error() -> Error {
    failure(
        "INVALID_PARAMETER_VALUE.AES_CRYPTO_ERROR",
        "the text cannot be encrypted or decrypted with this key and mode",
    )
}

fn key_length(found: usize) -> Error {
    failure(
        "INVALID_PARAMETER_VALUE.AES_KEY_LENGTH",
        format!("expects a binary value with 16, 24 or 32 bytes, but got {found} bytes."),
    )
}

trait Cipher: BlockCipher + BlockSizeUser<BlockSize = U16> + BlockEncrypt + BlockDecrypt + KeyInit {}
impl<C: BlockCipher + BlockSizeUser<BlockSize = U16> + BlockEncrypt + BlockDecrypt + KeyInit> Cipher for C {}

fn encrypted<C: Cipher + BlockEncryptMut + Clone>(text: &[u8], key: &[u8], row: &Row) -> Result<Vec<u8>> {
    let invalid = |_| crypto_error();
    let body = match row.mode {
        Mode::Gcm => {
            let cipher = AesGcm::<C, U12>::new_from_slice(key).map_err(|_| key_length(key.len()))?;
            let nonce = Nonce::<AesGcm<C, U12>>::from_slice(row.start);
            cipher.encrypt(nonce, Payload { msg: text, aad: row.aad }).map_err(|_| crypto_error())?
        }
        Mode::Cbc => {
            let cipher = cbc::Encryptor::<C>::new_from_slices(key, row.start).map_err(|_| crypto_error())?;
            cipher.encrypt_padded_vec_mut::<Pkcs7>(text)
        }
        Mode::Ecb => {
            let cipher = ecb::Encryptor::<C>::new_from_slice(key).map_err(invalid)?;
            cipher.encrypt_padded_vec_mut::<Pkcs7>(text)
        }
    };
    Ok([row.start, &body].concat())
}

fn decrypted<C: Cipher + BlockDecryptMut + Clone>(text: &[u8], key: &[u8], row: &Row) -> Result<Vec<u8>> {
    let found = match row.mode {
        Mode::Gcm => {
            let cipher = AesGcm::<C, U12>::new_from_slice(key).map_err(|_| key_length(key.len()))?;
            let nonce = Nonce::<AesGcm<C, U12>>::from_slice(row.start);
            return cipher.decrypt(nonce, Payload { msg: text, aad: row.aad }).map_err(|_| crypto_error());
        }
        Mode::Cbc => {
            let cipher = cbc::Decryptor::<C>::new_from_slices(key, row.start).map_err(|_| crypto_error())?;
            cipher.decrypt_padded_vec_mut::<Pkcs7>(text)
        }
        Mode::Ecb => {
            let cipher = ecb::Decryptor::<C>::new_from_slice(key).map_err(|_| key_length(key.len()))?;
            cipher.decrypt_padded_vec_mut::<Pkcs7>(text)
        }
    };
    found.map_err(|_| crypto_error())
}

/// Evaluates `aes_encrypt(text, key, mode, padding, iv, aad)`. If `iv` is empty, random bytes are taken for
/// it.
pub fn encrypt(given: &Arguments) -> Result<ArrayRef> {
    let columns = Columns::new(given)?;
    let starts = given.binary(4)?;
    let aads = given.binary(5)?;
    let mut out = BinaryBuilder::new();
    for row in 0..given.rows() {
        if columns.is_null(row) || starts.is_null(row) || aads.is_null(row) {
            out.append_null();
            continue;
        }
        let (text, key) = (columns.texts.value(row), columns.keys.value(row));
        let mode = Mode::of(columns.modes.value(row), columns.paddings.value(row))?;
        let (given_start, aad) = (starts.value(row), aads.value(row));
        check(key, mode, given_start, aad)?;
        let mut random = vec![0; mode.start()];
        if given_start.is_empty() {
            OsRng.fill_bytes(&mut random);
        }
        let row = Row { mode, start: if given_start.is_empty() { &random } else { given_start }, aad };
        out.append_value(match key.len() {
            16 => encrypted::<Aes128>(text, key, &row)?,
            24 => encrypted::<Aes192>(text, key, &row)?,
            _ => encrypted::<Aes256>(text, key, &row)?,
        });
    }
    Ok(Arc::new(out.finish()))
}

/// Evaluates `aes_decrypt(text, key, mode, padding, aad, safe)`. Bytes that cannot be decrypted become null
/// if `safe` is 1, and are an error otherwise.
pub fn decrypt(given: &Arguments) -> Result<ArrayRef> {
    let columns = Columns::new(given)?;
    let (aads, safe) = (given.binary(4)?, given.integers(5)?);
    let mut out = BinaryBuilder::new();
    for row in 0..given.rows() {
        if columns.is_null(row) || aads.is_null(row) {
            out.append_null();
            continue;
        }
        match columns.decrypted(row, aads.value(row)) {
            Ok(text) => out.append_value(text),
            Err(_) if safe.value(row) == 1 => out.append_null(),
            Err(error) => return Err(error),
        }
    }
    Ok(Arc::new(out.finish()))
}

fn check(key: &[u8], mode: Mode, start: &[u8], aad: &[u8]) -> Result<()> {
    if !matches!(key.len(), 16 | 24 | 32) {
        return Err(key_length(key.len()));
    }
    if !aad.is_empty() && mode != Mode::Gcm {
        return Err(failure(
            "UNSUPPORTED_FEATURE.AES_MODE_AAD",
            "additional authenticated data goes with the mode GCM alone",
        ));
    }
    if !start.is_empty() && mode == Mode::Ecb {
        return Err(failure(
            "UNSUPPORTED_FEATURE.AES_MODE_IV",
            "the mode ECB takes no initialization vector",
        ));
    }
    if !start.is_empty() && start.len() != mode.start() {
        let (expected, found) = (mode.start(), start.len());
        return Err(failure(
            "INVALID_PARAMETER_VALUE.AES_IV_LENGTH",
            format!("an initialization vector has {expected} bytes, not {found}."),
        ));
    }
    Ok(())
}

struct Columns {
    texts: BinaryArray,
    keys: BinaryArray,
    modes: StringArray,
    paddings: StringArray,
}

impl Columns {
    fn new(given: &Arguments) -> Result<Self> {
        Ok(Self {
            texts: given.binary(0)?,
            keys: given.binary(1)?,
            modes: given.text(2)?,
            paddings: given.text(3)?,
        })
    }

    fn is_null(&self, row: usize) -> bool {
        self.texts.is_null(row)
            || self.keys.is_null(row)
            || self.modes.is_null(row)
            || self.paddings.is_null(row)
    }

    fn decrypted(&self, row: usize, aad: &[u8]) -> Result<Vec<u8>> {
        let (text, key) = (self.texts.value(row), self.keys.value(row));
        let mode = Mode::of(self.modes.value(row), self.paddings.value(row))?;
        check(key, mode, &[], aad)?;
        let (start, text) = text.split_at_checked(mode.start()).ok_or_else(crypto_error)?;
        let row = Row { mode, start, aad };
        match key.len() {
            16 => decrypted::<Aes128>(text, key, &row),
            24 => decrypted::<Aes192>(text, key, &row),
            _ => decrypted::<Aes256>(text, key, &row),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;

    use super::super::evaluate;
    use super::*;

    fn bytes(values: &[&[u8]]) -> Vec<ArrayRef> {
        values.iter().map(|value| Arc::new(BinaryArray::from_iter_values([*value])) as ArrayRef).collect()
    }

    fn words(values: &[&str]) -> Vec<ArrayRef> {
        values.iter().map(|value| Arc::new(StringArray::from(vec![*value])) as ArrayRef).collect()
    }

    #[test]
    fn there_and_back() {
        let safe: ArrayRef = Arc::new(arrow::array::Int32Array::from(vec![0]));
        for (mode, key) in [
            ("GCM", &b"0000111122223333"[..]),
            ("CBC", b"abcdefghijklmnop12345678"),
            ("ecb", b"abcdefghijklmnop12345678ABCDEFGH"),
        ] {
            let given = [bytes(&[b"Spark", key]), words(&[mode, "DEFAULT"]), bytes(&[b"", b""])].concat();
            let secret = evaluate("aes_encrypt", &given).unwrap();
            let given = [
                vec![Arc::clone(&secret)],
                bytes(&[key]),
                words(&[mode, "DEFAULT"]),
                bytes(&[b""]),
                vec![Arc::clone(&safe)],
            ]
            .concat();
            let text = evaluate("aes_decrypt", &given).unwrap();
            assert_eq!(text.as_binary::<i32>().value(0), b"Spark");
        }
    }
}
