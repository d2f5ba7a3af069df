#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use crate::deletion_vector::file::FileBuilder;
use crate::store::{ObjectMeta, ObjectWriter, PutOutcome};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Mutex;

/// Files in memory, with a list of the ranges that were requested of them.
#[derive(Debug, Default)]
struct Files {
    files: HashMap<String, Bytes>,
    asked: Mutex<Vec<Vec<Range<u64>>>>,
}

impl Files {
    fn of<const N: usize>(files: [(&str, Vec<u8>); N]) -> Self {
        Self {
            files: files.into_iter().map(|(path, data)| (path.to_owned(), data.into())).collect(),
            asked: Mutex::default(),
        }
    }
}

impl Store for Files {
    fn location(&self) -> &str {
        "memory://files"
    }
    fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.asked.lock().unwrap().push(ranges.to_vec());
        let file = self.files.get(path).ok_or_else(|| Error::new(Kind::NotFound, "no such file").at(path))?;
        let slice = |range: &Range<u64>| {
            let fits = range.end <= file.len() as u64;
            fits.then(|| file.slice(range.start as usize..range.end as usize))
                .ok_or_else(|| Error::new(Kind::Io, "range past the end"))
        };
        ranges.iter().map(slice).collect()
    }
    fn outside(&self, location: &str) -> Result<(Arc<dyn Store>, String)> {
        Err(Error::new(Kind::PathOutsideTable, "not allowed").found(location))
    }
    fn list_from(&self, _: &str, _: Option<&str>, _: bool) -> Result<Vec<ObjectMeta>> {
        unreachable!()
    }
    fn head(&self, _: &str) -> Result<Option<ObjectMeta>> {
        unreachable!()
    }
    fn get(&self, _: &str) -> Result<Bytes> {
        unreachable!("vectors are read by ranges")
    }
    fn put_if_absent(&self, _: &str, _: Bytes) -> Result<PutOutcome> {
        unreachable!()
    }
    fn put(&self, _: &str, _: Bytes) -> Result<()> {
        unreachable!()
    }
    fn writer(&self, _: &str) -> Result<Box<dyn ObjectWriter>> {
        unreachable!()
    }
    fn delete(&self, _: &str) -> Result<bool> {
        unreachable!()
    }
    fn remove_empty_directories(&self, _: &str) -> Result<u64> {
        unreachable!()
    }
}

fn rows(rows: &[u64]) -> DeletionVector {
    DeletionVector::from_rows(rows.to_vec()).unwrap()
}

fn descriptor(
    storage_type: StorageType,
    path: &str,
    offset: Option<i32>,
    size_in_bytes: i32,
    cardinality: i64,
) -> Descriptor {
    Descriptor { storage_type, path_or_inline: path.into(), offset, size_in_bytes, cardinality }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T>, message: &str) {
    let text = result.unwrap_err().to_string();
    assert!(text.contains(message), "{text}");
}

const ID: Uuid = Uuid::from_u128(0xd2c639aa_8816_431a_aaf6_d3fe2512ff61);

/// The case is JSON 1 of *Deletion Vectors High Level Design*.
#[test]
fn a_uuid_with_a_prefix() {
    let vector = descriptor(StorageType::Uuid, "ab^-aqEH.-t@S}K{vb[*k^", Some(4), 40, 6);
    let path = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin";
    assert_eq!(vector.location().unwrap(), Some(Location::InTable(path.into())));
    assert_eq!(vector.unique_id(), "uab^-aqEH.-t@S}K{vb[*k^@4");
    assert_eq!(Descriptor::in_file("ab", ID, (4, 40), 6), vector);
}

/// The case is JSON 3 of *Deletion Vectors High Level Design*.
#[test]
fn an_inline_vector() {
    let text = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L";
    let vector = descriptor(StorageType::Inline, text, None, 44, 6);
    assert_eq!(vector.read(&Files::default(), Some(30)).unwrap(), rows(&[3, 4, 7, 11, 18, 29]));
    assert_eq!(Descriptor::inline(&rows(&[3, 4, 7, 11, 18, 29])).unwrap(), vector);
    assert_eq!(vector.unique_id(), format!("i{text}"));
    assert_eq!(vector.location().unwrap(), None);
}

#[test]
fn rejects_the_older_format_that_circulates_in_examples() {
    let text = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L";
    refused(
        descriptor(StorageType::Inline, text, None, 40, 6).read(&Files::default(), None),
        "older format 1681511376, in big-endian order",
    );
}

#[test]
fn rejects_inline_vectors_that_lie() {
    let read = |text: &str, size, cardinality, num_records| {
        descriptor(StorageType::Inline, text, None, size, cardinality).read(&Files::default(), num_records)
    };
    let text = &Descriptor::inline(&rows(&[3, 4, 7, 11, 18, 29])).unwrap().path_or_inline;
    refused(read("", 0, 0, None), "deletion vector is cut off (byte 0 of the vector)");
    refused(read("00000", 3, 0, None), "inline deletion vector: deletion vector is cut off");
    refused(read("0 000", 4, 0, None), "outside the alphabet");
    refused(read(text, 40, 6, None), "does not have the length of 40 bytes");
    refused(read(text, -1, 6, None), "negative sizeInBytes");
    refused(read(text, i32::MAX, 6, None), "larger than the limit for vectors");
    refused(
        read(text, 44, 7, None),
        "does not have the cardinality that its descriptor says; found 6; expected 7",
    );
    refused(read(text, 44, -6, None), "found 6; expected -6");
    refused(
        read(text, 44, 6, Some(29)),
        "a row that its data file lacks; found row 29; expected rows below 29",
    );
}

#[test]
fn rejects_storage_types() {
    assert_eq!(StorageType::parse("p").unwrap(), StorageType::Path);
    refused(StorageType::parse("x"), "unknown storage type; found \"x\"; expected u, i or p");
}

#[test]
fn rejects_names_that_are_none() {
    let location = |text: &str| descriptor(StorageType::Uuid, text, Some(1), 40, 6).location();
    refused(
        location("short"),
        "does not name its file; found \"short\"; expected an optional prefix and 20 letters of Z85",
    );
    refused(location("é-aqEH.-t@S}K{vb[*k^"), "does not name its file");
    refused(location("~-aqEH.-t@S}K{vb[*k^"), "outside the alphabet");
    for prefix in ["..", ".", "a/b", "/", "\\", "\0", "a\n"] {
        let error = location(&format!("{prefix}^-aqEH.-t@S}}K{{vb[*k^")).unwrap_err();
        assert_eq!(error.kind(), Kind::PathOutsideTable, "{prefix:?}");
    }
}

#[test]
fn an_absolute_path_is_decoded_once() {
    let location = |text: &str| descriptor(StorageType::Path, text, Some(1), 40, 6).location();
    assert_eq!(
        location("s3://b/a%20b%2525.bin").unwrap(),
        Some(Location::Absolute("s3://b/a b%25.bin".into()))
    );
    refused(location("/a%2"), "bad escape at position 2; found /a%2");
    refused(location("/a%zz"), "bad escape");
    refused(location("/a%ff"), "not UTF-8");
    let outside =
        descriptor(StorageType::Path, "/elsewhere/v.bin", Some(1), 40, 6).read(&Files::default(), None);
    assert_eq!(outside.unwrap_err().kind(), Kind::PathOutsideTable);
}

fn packed(vectors: &[DeletionVector]) -> (Files, Vec<Descriptor>) {
    let mut file = FileBuilder::default();
    let descriptors = vectors
        .iter()
        .map(|rows| {
            Descriptor::in_file("", ID, file.append(&rows.to_bytes()).unwrap(), rows.cardinality() as i64)
        })
        .collect();
    (Files::of([(&file::name(ID), file.finish())]), descriptors)
}

#[test]
fn reads_just_the_vector() {
    let vectors = [rows(&[1]), rows(&[2, 3]), rows(&(0..200_000).step_by(3).collect::<Vec<_>>()), rows(&[9])];
    let (store, descriptors) = packed(&vectors);
    for (vector, descriptor) in vectors.iter().zip(&descriptors) {
        assert_eq!(&descriptor.read(&store, Some(200_000)).unwrap(), vector);
        assert_eq!(
            &Descriptor { offset: None, ..descriptors[0].clone() }.read(&store, None).unwrap(),
            &vectors[0]
        );
    }
    // The version byte and the first vector are one range.
    assert_eq!(store.asked.lock().unwrap()[0], vec![0..43]);
}

#[test]
fn reads_many_of_a_file_at_once() {
    let vectors: Vec<_> = (1..40).map(|i| rows(&(0..100_000).step_by(i).collect::<Vec<_>>())).collect();
    let (store, descriptors) = packed(&vectors);
    let mut wanted: Vec<_> = descriptors
        .into_iter()
        .rev()
        .map(|descriptor| Some(VectorRequest { descriptor, num_records: Some(100_000) }))
        .collect();
    wanted.insert(3, None);
    wanted.push(Some(VectorRequest {
        descriptor: Descriptor::inline(&rows(&[5])).unwrap(),
        num_records: None,
    }));
    let read = read_all(&store, &wanted).unwrap();
    assert!(read[3].is_none());
    assert_eq!(read.last().unwrap(), &Some(rows(&[5])));
    assert!(read.into_iter().flatten().take(39).eq(vectors.into_iter().rev()));
    let asked = store.asked.lock().unwrap();
    assert_eq!((asked.len(), asked[0].len()), (1, 1));
}

#[test]
fn rejects_places_in_a_file() {
    let (store, descriptors) = packed(&[rows(&[1])]);
    let with = |offset, size_in_bytes| {
        Descriptor { offset: Some(offset), size_in_bytes, ..descriptors[0].clone() }.read(&store, None)
    };
    refused(with(0, 34), "an offset before the first one of a file; found 0; expected at least 1");
    refused(with(-5, 34), "found -5");
    refused(with(1, 30), ".bin, offset 1: deletion vector does not have the size that its descriptor says");
    refused(with(2, 34), "range past the end");
    refused(with(1, i32::MAX), "larger than the limit for vectors");
    let (_, elsewhere) = packed(&[rows(&[1])]);
    refused(elsewhere[0].read(&Files::default(), None), "no such file");
}

#[test]
fn rejects_file_versions() {
    let (store, descriptors) = packed(&[rows(&[1])]);
    let mut file = store.files[&file::name(ID)].to_vec();
    file[0] = 2;
    let store = Files::of([(&file::name(ID), file)]);
    refused(descriptors[0].read(&store, None), ".bin: deletion vector file has an unknown version; found 2");
}

#[test]
fn ranges_far_apart_stay_apart() {
    assert_eq!(
        coalesce(vec![200_000..200_010, 0..1, 5..9, 7..8, 65_545..65_600], GAP),
        [0..65_600, 200_000..200_010]
    );
}

proptest! {
    /// For any bytes of a file and any descriptor, reading gives the right rows or an error.
    #[test]
    fn changed_files(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        offset in 0..20i32,
        size in 0..60i32,
    ) {
        let vectors = [rows(&[1, 5]), rows(&[2])];
        let (store, mut descriptors) = packed(&vectors);
        let mut data = store.files[&file::name(ID)].to_vec();
        for (at, byte) in changes {
            *at.get_mut(&mut data) = byte;
        }
        let store = Files::of([(&file::name(ID), data)]);
        for (descriptor, rows) in descriptors.iter().zip(&vectors) {
            prop_assert!(descriptor.read(&store, None).map_or(true, |read| read == *rows));
        }
        descriptors[0].offset = Some(offset);
        descriptors[0].size_in_bytes = size;
        prop_assert!(descriptors[0].read(&store, None).map_or(true, |read| read == vectors[0]));
    }
}
