//! Kernels of Spark's SQL functions on Arrow arrays, for functions that DuckDB does not have or computes
//! differently.
//!
//! A kernel takes whole arrays and returns one array with the same number of rows; it does not use Python.
//! If Spark fails on a row, the call returns an error that begins with Spark's error condition in brackets,
//! such as `[ARITHMETIC_OVERFLOW]`.

mod aggregates;
mod arguments;
mod base32;
mod casts;
mod cipher;
mod csv;
mod decimal;
mod digest;
mod hash;
mod java_regex;
mod json;
mod json_read;
mod json_write;
mod number_format;
mod numbers;
mod regex;
mod text;
mod title_case;
mod url;
mod variant;
mod variant_bytes;
mod variant_change;
mod variant_limits;
mod variant_schema;
mod variant_text;
mod zones;

use arrow::array::ArrayRef;

pub use arguments::Arguments;
pub(crate) use variant_limits::check_value;

use crate::error::{Error, Kind, Result};
use crate::guard;

/// Evaluates the kernel `name` on `arguments`, all of the same length.
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::{ArrayRef, AsArray, StringArray, types::Int32Type};
/// let words = ["kitten", "sitting"].map(|word| Arc::new(StringArray::from(vec![word])) as ArrayRef);
/// let distance = deltaic::expressions::evaluate("levenshtein", &words).unwrap();
/// assert_eq!(distance.as_primitive::<Int32Type>().value(0), 3);
/// ```
#[allow(clippy::too_many_lines, reason = "a table: one line for each kernel")]
pub fn evaluate(name: &str, arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let given = Arguments::new(arguments)?;
    if name.starts_with("variant_") {
        return guard::caught(|| of_variants(name, &given))
            .unwrap_or_else(|_| Err(variant_limits::malformed()));
    }
    match name {
        "make_date" => casts::make_date(&given),
        "make_timestamp" => casts::make_timestamp(&given),
        "text_to_whole" => casts::whole(&given),
        "text_to_double" => casts::double(&given),
        "text_to_float" => casts::float(&given),
        "text_to_boolean" => casts::boolean(&given),
        "text_to_date" => casts::date(&given),
        "text_to_timestamp" => casts::timestamp(&given),
        "text_to_timestamp_ntz" => casts::timestamp_ntz(&given),
        "upper" => text::upper(&given),
        "lower" => text::lower(&given),
        "initcap" => text::initcap(&given),
        "levenshtein" => text::levenshtein(&given),
        "jaro_winkler" => text::jaro_winkler(&given),
        "soundex" => text::soundex(&given),
        "mask" => text::mask(&given),
        "decimal" => decimal::calculate(&given),
        "hypot" => numbers::hypot(&given),
        "conv" => numbers::conv(&given),
        "double_to_string" => numbers::double_to_string(&given),
        "float_to_string" => numbers::float_to_string(&given),
        "fixed" => numbers::fixed(&given),
        "crc32" => hash::crc32(&given),
        "sha2" => digest::sha2(&given),
        "hmac" => digest::hmac(&given),
        "encode" => digest::encode(&given),
        "decode" => digest::decode(&given),
        "aes_encrypt" => cipher::encrypt(&given),
        "aes_decrypt" => cipher::decrypt(&given),
        "hash" => hash::murmur3(&given),
        "xxhash64" => hash::xxhash64(&given),
        "get_json_object" => json::get_json_object(&given),
        "json_array_length" => json::array_length(&given),
        "json_object_keys" => json::object_keys(&given),
        "from_json" => json_read::from_json(&given),
        "schema_of_json" => json_read::schema_of_json(&given),
        "format_number" => numbers::format_number(&given),
        "to_json" => json_write::to_json(&given),
        "weighted_percentile" => aggregates::weighted_percentile(&given),
        "histogram" => aggregates::histogram(&given),
        "to_base32" => base32::encode(&given),
        "from_base32" => base32::decode(&given),
        "from_csv" => csv::from_csv(&given),
        "schema_of_csv" => csv::schema_of_csv(&given),
        "to_csv" => csv::to_csv(&given),
        "to_number" => number_format::to_number(&given),
        "number_to_char" => number_format::number_to_char(&given),
        "regex_matches" => regex::matches(&given),
        "regex_extract" => regex::extract(&given),
        "regex_extract_all" => regex::extract_all(&given),
        "regex_count" => regex::count(&given),
        "regex_instr" => regex::instr(&given),
        "regex_split" => regex::split(&given),
        "regex_replace" => regex::replace(&given),
        "url_encode" => url::encode(&given),
        "url_decode" => url::decode(&given),
        "parse_url" => url::parse(&given),
        "parse_json" => variant::parse_json(&given),
        "to_variant" => variant::to_variant(&given),
        _ => Err(Error::new(Kind::InvalidArgument, "unknown kernel").found(name)),
    }
}

/// Evaluates a kernel that reads variants, whose bytes may be anything.
fn of_variants(name: &str, given: &Arguments) -> Result<ArrayRef> {
    match name {
        "variant_get" => variant::get(given),
        "variant_is_null" => variant::is_null(given),
        "variant_is_valid" => variant::is_valid(given),
        "variant_to_json" => variant_text::to_json(given),
        "variant_to_text" => variant_text::to_text(given),
        "variant_parts" => variant::parts(given),
        "variant_items" => variant::items(given),
        "variant_change" => variant_change::change(given),
        "variant_delete" => variant_change::delete(given),
        "variant_strip_nulls" => variant_change::strip_nulls(given),
        "variant_schema" => variant::schema(given),
        "variant_common_schema" => variant::common_schema(given),
        _ => Err(Error::new(Kind::InvalidArgument, "unknown kernel").found(name)),
    }
}

/// Returns the error of a row, with Spark's error condition.
fn failure(condition: &str, message: impl std::fmt::Display) -> Error {
    Error::new(Kind::InvalidArgument, format!("[{condition}] {message}"))
}
