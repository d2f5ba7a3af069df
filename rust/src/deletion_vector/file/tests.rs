#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use proptest::prelude::*;

fn frame(data: &[u8]) -> Vec<u8> {
    let mut file = FileBuilder::default();
    file.append(data).unwrap();
    file.finish()[1..].to_vec()
}

#[track_caller]
fn refused(result: Result<&[u8]>, message: &str) {
    let text = result.unwrap_err().to_string();
    assert!(text.contains(message), "{text}");
}

#[test]
fn rejects_version() {
    assert!(check_version(&[1]).is_ok());
    assert!(check_version(&[2]).unwrap_err().to_string().contains("unknown version; found 2; expected 1"));
    assert!(check_version(&[]).unwrap_err().to_string().contains("file is empty"));
}

#[test]
fn rejects_size() {
    refused(
        open_frame(&frame(b"abcd"), 5),
        "does not have the size that its descriptor says; found 4 bytes; expected 5 bytes",
    );
}

#[test]
fn rejects_cut_off_frames() {
    let whole = frame(b"abcd");
    assert_eq!(open_frame(&whole, 4).unwrap(), b"abcd");
    for length in 0..whole.len() {
        refused(open_frame(&whole[..length], 4), "cut off in its file");
    }
}

#[test]
fn rejects_checksum() {
    let mut changed = frame(b"abcd");
    changed[5] ^= 1;
    refused(open_frame(&changed, 4), "wrong CRC-32");
}

#[test]
fn rejects_places_outside_any_file() {
    assert_eq!(frame_range(1, 34).unwrap(), 1..43);
    for (offset, size) in [(1, u64::MAX), (u64::MAX, 0), (u64::MAX - 20, 20)] {
        assert!(frame_range(offset, size).unwrap_err().to_string().contains("lies outside any file"));
    }
}

proptest! {
    #[test]
    fn many_in_one_file(vectors: Vec<Vec<u8>>) {
        let mut file = FileBuilder::default();
        prop_assert!(file.is_empty());
        let places: Vec<_> = vectors.iter().map(|data| file.append(data).unwrap()).collect();
        let length = file.len();
        let bytes = file.finish();
        prop_assert_eq!(length, bytes.len());
        for (data, (offset, size)) in vectors.iter().zip(places) {
            let range = frame_range(offset as u64, size as u64).unwrap();
            let frame = &bytes[range.start as usize..range.end as usize];
            prop_assert_eq!(open_frame(frame, size as u64).unwrap(), data.as_slice());
        }
    }
}
