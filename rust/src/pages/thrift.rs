//! Skips values in Thrift's compact protocol, in which footers and headers of Parquet files are written.

/// Numbers of the protocol's types.
pub(super) const BYTE: u8 = 3;
pub(super) const I16: u8 = 4;
pub(super) const I32: u8 = 5;
pub(super) const I64: u8 = 6;
pub(super) const DOUBLE: u8 = 7;
pub(super) const BINARY: u8 = 8;
pub(super) const LIST: u8 = 9;
const SET: u8 = 10;
pub(super) const STRUCT: u8 = 12;

/// Maximum depth of lists and structs within each other whose fields are unknown.
const MAX_DEPTH: usize = 16;

/// The fields of a known struct. Parquet's own reader takes a known field to be of its type, even if the
/// bytes declare another type; such bytes would be understood differently there.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    Value(u8),
    Bool,
    List(&'static Shape),
    /// A struct with the fields 1, 2, 3 and so on. Other fields are skipped by the type that the bytes
    /// declare.
    Struct(&'static [Shape]),
    /// A struct without fields.
    Empty,
}

/// Bytes in the compact protocol. Methods return `None` if the bytes are truncated or invalid.
pub(super) struct Input<'a> {
    pub(super) rest: &'a [u8],
}

impl Input<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn pass(&mut self, count: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub(super) fn zigzag(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some(((value >> 1) as i64) ^ -((value & 1) as i64))
    }

    /// Returns a number of 32 bits. A larger one is invalid: Parquet's own reader takes its lower 32 bits, so
    /// that a page would have two sizes.
    pub(super) fn int(&mut self) -> Option<i64> {
        i32::try_from(self.zigzag()?).ok().map(i64::from)
    }

    /// Returns the type of the next field, and sets `number` to the field's number, of 16 bits. `Some(None)`
    /// at the end of the struct.
    pub(super) fn field(&mut self, number: &mut i64) -> Option<Option<u8>> {
        let head = self.byte()?;
        if head == 0 {
            return Some(None);
        }
        *number = if head >> 4 == 0 { self.zigzag()? } else { number.checked_add(i64::from(head >> 4))? };
        i16::try_from(*number).ok()?;
        Some(Some(head & 0x0f))
    }

    /// Returns the number of items of a list, and their type.
    pub(super) fn list(&mut self) -> Option<(u64, u8)> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        Some((count, head & 0x0f))
    }

    /// Skips a value of this type.
    pub(super) fn skip(&mut self, kind: u8) -> Option<()> {
        self.skip_nested(kind, MAX_DEPTH)
    }

    fn skip_nested(&mut self, kind: u8, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            1 | 2 => Some(()), // the type itself is the value of a boolean
            BYTE => self.pass(1),
            I16 | I32 | I64 => self.varint().map(drop),
            DOUBLE => self.pass(8),
            BINARY => self.varint().and_then(|length| self.pass(length)),
            LIST | SET => {
                let (count, kind) = self.list()?;
                // Parquet's own reader passes over no bytes for a list of booleans.
                let is_known = count == 0 || !matches!(kind, 1 | 2);
                is_known.then_some(())?;
                (0..count).try_for_each(|_| self.skip_nested(kind, depth))
            }
            STRUCT => {
                let mut number = 0;
                while let Some(kind) = self.field(&mut number)? {
                    self.skip_nested(kind, depth)?;
                }
                Some(())
            }
            _ => None, // Parquet has no maps
        }
    }

    /// Skips a value of a known type. `kind`: the type that the bytes declare.
    pub(super) fn known(&mut self, kind: u8, shape: Shape) -> Option<()> {
        match (shape, kind) {
            (Shape::Value(known), _) if known == kind => self.skip(kind),
            (Shape::Bool, 1 | 2) => Some(()),
            (Shape::List(item), LIST) => {
                let (count, kind) = self.list()?;
                (0..count).try_for_each(|_| self.known(kind, *item))
            }
            (Shape::Struct(fields), STRUCT) => {
                let mut number = 0;
                while let Some(kind) = self.field(&mut number)? {
                    self.known_field(number, kind, fields)?;
                }
                Some(())
            }
            (Shape::Empty, STRUCT) => (self.byte()? == 0).then_some(()),
            _ => None,
        }
    }

    /// Skips a field of a struct with these known fields.
    pub(super) fn known_field(&mut self, number: i64, kind: u8, fields: &[Shape]) -> Option<()> {
        match number.checked_sub(1).and_then(|place| fields.get(usize::try_from(place).ok()?)) {
            Some(shape) => self.known(kind, *shape),
            None => self.skip(kind),
        }
    }
}
