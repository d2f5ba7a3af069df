//! The types that `schema_of_variant` returns, and the common type of two of them.

use std::collections::BTreeMap;
use std::fmt;

/// A type of variants.
pub(super) enum Schema {
    /// The type of `null`, and of items of an empty array.
    Void,
    /// The type of values without a common type.
    Variant,
    /// A scalar type by its kind, such as `long`.
    Scalar(&'static str),
    /// Number of digits, and how many of them are after the point.
    Decimal(u8, u8),
    /// An array of items of one type.
    Array(Box<Schema>),
    /// An object by its fields' names.
    Object(BTreeMap<String, Schema>),
}

impl Schema {
    /// Returns the type of a decimal, without zeros at its end.
    pub(super) fn decimal(mut digits: i128, mut scale: u8) -> Self {
        while scale > 0 && digits % 10 == 0 {
            digits /= 10;
            scale -= 1;
        }
        let precision = digits.unsigned_abs().checked_ilog10().map_or(1, |most| most as u8 + 1);
        Self::Decimal(precision.max(scale), scale)
    }

    /// Returns the common type of both, or `Variant` if there is none.
    pub(super) fn merged(self, other: Self) -> Self {
        use Schema::{Array, Decimal, Object, Scalar, Void};
        match (self, other) {
            (Void, kind) | (kind, Void) => kind,
            (Object(mut fields), Object(others)) => {
                for (name, kind) in others {
                    let known = fields.remove(&name).unwrap_or(Void);
                    fields.insert(name, known.merged(kind));
                }
                Object(fields)
            }
            (Array(one), Array(other)) => Array(Box::new(one.merged(*other))),
            (Decimal(precision, scale), Decimal(digits, places)) => {
                common_decimal((precision, scale), (digits, places))
            }
            (Decimal(precision, scale), Scalar("long")) | (Scalar("long"), Decimal(precision, scale)) => {
                common_decimal((precision, scale), (20, 0))
            }
            (Decimal(..), Scalar("double")) | (Scalar("double"), Decimal(..)) => Scalar("double"),
            (Scalar(one), Scalar(other)) => common_scalar(one, other),
            _ => Self::Variant,
        }
    }
}

fn common_decimal(one: (u8, u8), other: (u8, u8)) -> Schema {
    let (scale, whole) = (one.1.max(other.1), (one.0 - one.1).max(other.0 - other.1));
    if scale + whole > 38 { Schema::Scalar("double") } else { Schema::Decimal(scale + whole, scale) }
}

fn common_scalar(one: &'static str, other: &'static str) -> Schema {
    let rank = |kind: &str| ["long", "float", "double"].iter().position(|known| *known == kind);
    match (rank(one), rank(other)) {
        (Some(left), Some(right)) => return Schema::Scalar(if left < right { other } else { one }),
        _ if one == other => return Schema::Scalar(one),
        _ => {}
    }
    match (one, other) {
        ("date", "timestamp_ntz") | ("timestamp_ntz", "date") => Schema::Scalar("timestamp_ntz"),
        ("date" | "timestamp_ntz", "timestamp") | ("timestamp", "date" | "timestamp_ntz") => {
            Schema::Scalar("timestamp")
        }
        _ => Schema::Variant,
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Void => out.write_str("VOID"),
            Self::Variant => out.write_str("VARIANT"),
            Self::Scalar("long") => out.write_str("BIGINT"),
            Self::Scalar(kind) => out.write_str(&kind.to_uppercase()),
            Self::Decimal(precision, scale) => write!(out, "DECIMAL({precision},{scale})"),
            Self::Array(element) => write!(out, "ARRAY<{element}>"),
            Self::Object(fields) => {
                out.write_str("OBJECT<")?;
                for (place, (name, kind)) in fields.iter().enumerate() {
                    let plain = name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_')
                        && !name.starts_with(|one: char| one.is_ascii_digit());
                    let shown = if plain && !name.is_empty() {
                        name.clone()
                    } else {
                        format!("`{}`", name.replace('`', "``"))
                    };
                    write!(out, "{}{shown}: {kind}", if place > 0 { ", " } else { "" })?;
                }
                out.write_str(">")
            }
        }
    }
}
