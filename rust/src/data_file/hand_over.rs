//! What another engine's Parquet reader needs for each file: the path, the partition values, and which rows
//! are live.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, Int8Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Field as ArrowField, Schema};

use super::files::Files;
use super::row_selection::FileRows;
use crate::deletion_vector::DeletionVector;
use crate::deletion_vector::descriptor::{VectorRequest, read_all};
use crate::error::{Error, Kind, Result};
use crate::schema::{TableSchema, partition_values};
use crate::store::path::path_in_url;
use crate::store::{Store, resolve};

/// A set is passed as bits if they have at most this many times the bytes of the roaring form, as a look-up
/// in bits takes a third of the time.
const BITS_PER_ROARING: usize = 8;
/// A set with at most this many bytes of bits is always passed as bits.
const FEW_BYTES: usize = 1024;

/// Which rows of a file are read: all, all except those in the set, or only those in the set.
const ALL: i8 = 0;
const EXCEPT: i8 = 1;
const ONLY: i8 = 2;

/// Returns a row for each file, in order; the columns are described in the stub. `bits`: pass all sets of
/// rows as bits.
pub fn hand_over(
    store: &Arc<dyn Store>,
    schema: &TableSchema,
    batch: RecordBatch,
    bits: bool,
) -> Result<RecordBatch> {
    let files = Files::new(batch)?;
    let (mut places, mut sizes, mut statuses) = (Vec::new(), Vec::new(), Vec::new());
    for index in 0..files.len() {
        let (place, size) = place(store, &files, index)?;
        statuses.push(status(&place, size, files.modified(index).unwrap_or(0)));
        sizes.push(
            i64::try_from(size)
                .map_err(|_| Error::protocol("a file is too large").at(place.as_str()).found(size))?,
        );
        places.push(place);
    }
    let rows = Rows::of(store, &files, bits)?;
    let shown = StringArray::from_iter_values(places.iter().map(|place| shown(place)));
    let mut columns: Vec<(String, ArrayRef)> = vec![
        ("__deltaic_place".into(), Arc::new(StringArray::from(places))),
        ("__deltaic_shown".into(), Arc::new(shown)),
        ("__deltaic_size".into(), Arc::new(Int64Array::from(sizes))),
        ("__deltaic_status".into(), Arc::new(BinaryArray::from_iter_values(&statuses))),
        ("__deltaic_rows".into(), Arc::new(Int8Array::from(rows.kinds))),
        ("__deltaic_bits".into(), Arc::new(BinaryArray::from_iter(rows.bits))),
        ("__deltaic_roaring".into(), Arc::new(BinaryArray::from_iter(rows.roaring))),
    ];
    for field in schema.partition_fields() {
        let physical = schema.physical_name(field);
        let texts = (0..files.len())
            .map(|index| files.partition_value(index, physical))
            .collect::<Result<StringArray>>()?;
        let values = partition_values::parse_array(&texts, &field.data_type.to_arrow(false));
        columns.push((
            physical.to_owned(),
            values.map_err(|error| error.at(format!("partition column {}", field.name)))?,
        ));
    }
    let fields: Vec<_> =
        columns.iter().map(|(name, array)| ArrowField::new(name, array.data_type().clone(), true)).collect();
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns.into_iter().map(|(_, array)| array).collect(),
    )?)
}

/// Returns the file's location in the form of Hadoop's `Path` (a URI without escapes), and its size.
fn place(store: &Arc<dyn Store>, files: &Files, index: usize) -> Result<(String, u64)> {
    let (holder, path) = resolve(store, files.path(index)?)?;
    let size = match files.size(index)? {
        Some(size) => size,
        None => holder.head(&path)?.ok_or_else(|| Error::lost(path.as_str(), "a data file"))?.size,
    };
    let root = holder.location();
    let root = match path_in_url(root)? {
        Some(path) => format!("file://{}", path.trim_end_matches('/')),
        None => root.trim_end_matches('/').to_owned(),
    };
    Ok((format!("{root}/{path}"), size))
}

/// Returns the location as Hadoop's `Path` prints its URI: `file:/` with one slash, and the path escaped as
/// by `java.net.URI`.
fn shown(place: &str) -> String {
    let place = place.strip_prefix("file://").map_or_else(|| place.to_owned(), |path| format!("file:{path}"));
    let mut escaped = String::with_capacity(place.len());
    for letter in place.chars() {
        if !letter.is_ascii() || letter.is_ascii_alphanumeric() || "_-!.~'()*,;:$&+=/@".contains(letter) {
            escaped.push(letter);
        } else {
            escaped.push_str(&format!("%{:02X}", u32::from(letter)));
        }
    }
    escaped
}

/// Returns Hadoop's `FileStatus` in its serialized form: a length in 4 bytes, big-endian, and
/// `FileStatusProto` (type, path, length, time of modification in milliseconds).
fn status(place: &str, size: u64, modified: u64) -> Vec<u8> {
    let mut message = vec![0x08, 0x02, 0x12];
    varint(&mut message, place.len() as u64);
    message.extend(place.as_bytes());
    message.push(0x18);
    varint(&mut message, size);
    message.push(0x38);
    varint(&mut message, modified);
    let mut framed = (message.len() as u32).to_be_bytes().to_vec();
    framed.extend(message);
    framed
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The rows of each file to read: one of `ALL`, `EXCEPT` and `ONLY`, and the set in one of two forms.
#[derive(Default)]
struct Rows {
    kinds: Vec<i8>,
    bits: Vec<Option<Vec<u8>>>,
    roaring: Vec<Option<Vec<u8>>>,
}

impl Rows {
    fn of(store: &Arc<dyn Store>, files: &Files, bits: bool) -> Result<Self> {
        let wanted = |index| {
            let descriptor = files.vector(index)?;
            Ok(descriptor
                .map(|descriptor| VectorRequest { descriptor, num_records: files.num_records(index) }))
        };
        let wanted = (0..files.len()).map(wanted).collect::<Result<Vec<_>>>()?;
        let mut rows = Self::default();
        for (index, deleted) in read_all(store.as_ref(), &wanted)?.into_iter().enumerate() {
            let (kind, set) = match FileRows::new(deleted, files.selection(index)?) {
                FileRows::All => (ALL, None),
                FileRows::Except(set) if set.is_empty() => (ALL, None),
                FileRows::Except(set) => (EXCEPT, Some(set)),
                FileRows::Only(set) => (ONLY, Some(set)),
            };
            rows.kinds.push(kind);
            let form = set
                .map(|set| form(&set, bits))
                .transpose()
                .map_err(|error| error.at(files.path(index).unwrap_or_default()))?;
            let (bits, roaring) = match form {
                None => (None, None),
                Some(Form::Bits(bytes)) => (Some(bytes), None),
                Some(Form::Roaring(bytes)) => (None, Some(bytes)),
            };
            rows.bits.push(bits);
            rows.roaring.push(roaring);
        }
        Ok(rows)
    }
}

/// A set of rows in a form that classes of the JVM can read.
#[derive(Debug, PartialEq)]
enum Form {
    /// 64-bit words, little-endian, up to the last row.
    Bits(Vec<u8>),
    /// A 32-bit roaring bitmap.
    Roaring(Vec<u8>),
}

fn form(rows: &DeletionVector, only_bits: bool) -> Result<Form> {
    let last = rows.max().unwrap_or(0);
    if last > i32::MAX as u64 {
        let error =
            Error::new(Kind::UnsupportedFeature, "the row index of a deleted row is too large for Spark")
                .found(last);
        return Err(error.expected(format!("at most {}", i32::MAX)));
    }
    let words = last as usize / 64 + 1;
    // All rows are below 2³², so there is one bitmap at most.
    if let Some((_, bitmap)) = rows.bitmaps().next().filter(|_| !only_bits && words * 8 > FEW_BYTES)
        && words * 8 > BITS_PER_ROARING * bitmap.serialized_size()
    {
        let mut bitmap = bitmap.clone();
        bitmap.optimize();
        let mut bytes = Vec::with_capacity(bitmap.serialized_size());
        // Writing into a Vec cannot fail.
        let _ = bitmap.serialize_into(&mut bytes);
        return Ok(Form::Roaring(bytes));
    }
    Ok(Form::Bits(bits(rows, words)))
}

fn bits(rows: &DeletionVector, words: usize) -> Vec<u8> {
    let mut others = vec![u64::MAX; words];
    rows.clear_deleted(0, words * 64, &mut others);
    others.into_iter().flat_map(|word| (!word).to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use roaring::RoaringBitmap;

    use super::*;

    fn set(rows: Vec<u64>) -> DeletionVector {
        DeletionVector::from_rows(rows).unwrap()
    }

    #[test]
    fn few_rows_far_behind_are_roaring_and_many_are_bits() {
        let Form::Roaring(bytes) = form(&set(vec![3, 10_000_000]), false).unwrap() else { panic!("bits") };
        assert_eq!(
            RoaringBitmap::deserialize_from(&bytes[..]).unwrap().iter().collect::<Vec<_>>(),
            [3, 10_000_000]
        );
        let many = form(&set((0..1_000_000).step_by(10).collect()), false).unwrap();
        assert!(matches!(many, Form::Bits(bytes) if bytes.len() == 125_000));
    }

    #[test]
    fn bits_end_with_the_word_of_the_last_row() {
        let mut words = [0_u8; 16];
        (words[0], words[8]) = (0b1000_0001, 1);
        assert_eq!(form(&set(vec![0, 7, 64]), false).unwrap(), Form::Bits(words.to_vec()));
        assert_eq!(form(&set(Vec::new()), false).unwrap(), Form::Bits(vec![0; 8]));
    }

    #[test]
    fn a_row_that_the_jvm_cannot_name_is_refused() {
        assert_eq!(form(&set(vec![1 << 31]), true).unwrap_err().kind(), Kind::UnsupportedFeature);
    }

    #[test]
    fn places_are_shown_as_java_does() {
        assert_eq!(shown("file:///a b/c%20d#é[x]\"^|`"), "file:/a%20b/c%2520d%23é%5Bx%5D%22%5E%7C%60");
        assert_eq!(shown("s3a://bucket/i+j&k,l@m!n$o(p)~;'="), "s3a://bucket/i+j&k,l@m!n$o(p)~;'=");
    }

    #[test]
    fn a_status_is_framed() {
        let framed = status("file:///a", 300, 5);
        assert_eq!(framed[..4], 18_u32.to_be_bytes());
        assert_eq!(&framed[4..], b"\x08\x02\x12\x09file:///a\x18\xac\x02\x38\x05");
    }
}
