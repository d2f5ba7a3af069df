//! Limits of variants that are read, whose bytes may be anything: a megabyte may be a hundred thousand arrays
//! within each other, and the fields of an object may all be the same bytes, so that forty objects within
//! each other have 2^40 values.

use parquet_variant::{EMPTY_VARIANT_METADATA, Variant};

use super::failure;
use super::json::DEPTH;
use crate::error::{Error, Result};
use crate::guard;

/// Counts levels and values of a variant.
pub(super) struct Limits {
    depth: usize,
    values: usize,
    most_values: usize,
}

impl Default for Limits {
    /// Returns the limits for a variant that is written: its values are limited by the bytes written.
    fn default() -> Self {
        Self { depth: 0, values: 0, most_values: usize::MAX }
    }
}

impl Limits {
    /// Returns the limits for a variant that is read, where each value has a byte of its own.
    pub(super) fn of(value: &Variant) -> Self {
        let bytes = match value {
            Variant::List(items) => items.value.len(),
            Variant::Object(object) => object.value.len(),
            _ => 0,
        };
        Self { most_values: bytes, ..Self::default() }
    }

    /// Notes that an array or object with this number of items begins. Only as many levels as JSON may have
    /// can be read without running out of stack.
    pub(super) fn enter(&mut self, items: usize) -> Result<()> {
        self.depth += 1;
        self.values = self.values.saturating_add(items);
        if self.depth > DEPTH {
            return Err(failure("VARIANT_SIZE_LIMIT", format!("a variant of more than {DEPTH} levels")));
        }
        if self.values > self.most_values {
            return Err(failure("MALFORMED_VARIANT", "a variant with more values than bytes"));
        }
        Ok(())
    }

    /// Notes that an array or object ends.
    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Visits all values, but no names, and returns an error if they exceed the limits.
    fn walk(&mut self, value: &Variant) -> Result<()> {
        match value {
            Variant::List(items) => {
                self.enter(items.len())?;
                items.iter().try_for_each(|item| self.walk(&item))?;
                self.leave();
            }
            Variant::Object(object) => {
                self.enter(object.len())?;
                (0..object.len())
                    .filter_map(|place| object.field(place))
                    .try_for_each(|item| self.walk(&item))?;
                self.leave();
            }
            _ => {}
        }
        Ok(())
    }
}

/// Returns an error for a value of a variant with more levels or values than can be read. The functions of
/// `parquet_variant` that check or copy a whole value do not limit them.
pub(crate) fn check_value(value: &[u8]) -> Result<()> {
    guard::caught(|| {
        let value = Variant::new_with_metadata(EMPTY_VARIANT_METADATA, value);
        Limits::of(&value).walk(&value)
    })
    .unwrap_or_else(|_| Err(malformed()))
}

/// Returns an error for more bytes than an array of binary values or texts can have.
pub(super) fn check_bytes(bytes: usize) -> Result<()> {
    if i32::try_from(bytes).is_err() {
        return Err(failure("VARIANT_SIZE_LIMIT", "the variants of a batch have more than 2 GB"));
    }
    Ok(())
}

pub(super) fn malformed() -> Error {
    failure("MALFORMED_VARIANT", "the bytes are no variant")
}
