#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use proptest::prelude::*;

/// A container in any of the format's forms, to make bytes that no writer makes.
enum Container {
    Array(Vec<u16>),
    Bits(u16, Box<[u64; 1024]>),
    Runs(u16, Vec<(u16, u16)>),
}

impl Container {
    fn cardinality_less_one(&self) -> u16 {
        match self {
            Self::Array(rows) => rows.len() as u16 - 1,
            Self::Bits(declared, _) | Self::Runs(declared, _) => *declared,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Array(rows) => rows.iter().flat_map(|row| row.to_le_bytes()).collect(),
            Self::Bits(_, words) => words.iter().flat_map(|word| word.to_le_bytes()).collect(),
            Self::Runs(_, runs) => {
                let runs = runs
                    .iter()
                    .flat_map(|(first, length)| [first.to_le_bytes(), length.to_le_bytes()].concat());
                (self.run_count().to_le_bytes()).into_iter().chain(runs).collect()
            }
        }
    }

    fn run_count(&self) -> u16 {
        if let Self::Runs(_, runs) = self { runs.len() as u16 } else { 0 }
    }
}

fn bitmap(containers: &[(u16, Container)]) -> Vec<u8> {
    let runs = containers.iter().any(|(_, container)| matches!(container, Container::Runs(..)));
    let count = containers.len() as u32;
    let mut data = if runs {
        (12347 | (count - 1) << 16).to_le_bytes().to_vec()
    } else {
        [12346, count].map(u32::to_le_bytes).concat()
    };
    if runs {
        for flags in containers.chunks(8) {
            let flag = |(i, (_, container)): (usize, &(u16, Container))| {
                u8::from(matches!(container, Container::Runs(..))) << i
            };
            data.push(flags.iter().enumerate().map(flag).sum());
        }
    }
    for (key, container) in containers {
        data.extend([key.to_le_bytes(), container.cardinality_less_one().to_le_bytes()].concat());
    }
    if !runs || count >= 4 {
        let mut offset = data.len() as u32 + 4 * count;
        for (_, container) in containers {
            data.extend(offset.to_le_bytes());
            offset += container.bytes().len() as u32;
        }
    }
    data.extend(containers.iter().flat_map(|(_, container)| container.bytes()));
    data
}

fn vector(bitmaps: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut data = [MAGIC.to_le_bytes().as_slice(), &(bitmaps.len() as u64).to_le_bytes()].concat();
    for (key, bitmap) in bitmaps {
        data.extend(key.to_le_bytes());
        data.extend(bitmap);
    }
    data
}

fn one(container: Container) -> Vec<u8> {
    vector(&[(0, bitmap(&[(0, container)]))])
}

fn small() -> Vec<u8> {
    one(Container::Array(vec![3, 4, 7]))
}

#[track_caller]
fn refused(data: &[u8], message: &str) {
    let error = decode(data).unwrap_err();
    assert_eq!(error.kind(), crate::error::Kind::Protocol);
    assert!(error.to_string().contains(message), "{error}");
}

#[test]
fn each_kind_of_container() {
    let mut words = Box::new([0; 1024]);
    words[..80].fill(u64::MAX);
    let bits = Container::Bits(80 * 64 - 1, words);
    let runs = || Container::Runs(12, vec![(5, 9), (20, 2)]);
    let data = vector(&[
        (0, bitmap(&[(0, Container::Array(vec![1, 9])), (2, bits), (7, runs()), (9, runs())])),
        (3, bitmap(&[])),
    ]);
    let rows = decode(&data).unwrap();
    let run_rows = |key: u64| (5..15).chain(20..23).map(move |row| (key << 16) + row);
    let expected = [1, 9]
        .into_iter()
        .chain((0..80 * 64).map(|row| (2 << 16) + row))
        .chain(run_rows(7))
        .chain(run_rows(9));
    assert!(rows.iter().eq(expected));
    assert_eq!(decode(&encode(&rows)).unwrap(), rows);
}

#[test]
fn no_bitmaps() {
    assert!(decode(&vector(&[])).unwrap().is_empty());
    assert_eq!(encode(&DeletionVector::new()), vector(&[]));
}

#[test]
fn padding_only_where_it_is_allowed() {
    for (padding, allowed) in [(&[0][..], true), (&[0; 3], true), (&[0; 4], false), (&[0, 1], false)] {
        let data = [small().as_slice(), padding].concat();
        assert_eq!(decode_padded(&data).is_ok(), allowed);
        refused(&data, "goes on after its last bitmap");
    }
}

#[test]
fn rejects_size() {
    let data = vec![0; limit::DEFAULT_BYTES as usize + 1];
    refused(
        &data,
        "larger than the limit for vectors; found 67108865 bytes; expected at most 67108864 bytes",
    );
}

#[test]
fn rejects_short() {
    for length in 0..small().len() {
        refused(
            &small()[..length],
            if (12..24).contains(&length) { "more bitmaps than it has bytes for" } else { "cut off" },
        );
    }
    refused(&[], "deletion vector is cut off (byte 0 of the vector); found 0 bytes left; expected 4");
    refused(&[0xD1, 0xD3, 0x39], "cut off");
}

#[test]
fn rejects_magic() {
    let with = |magic: [u8; 4]| [magic.as_slice(), &small()[4..]].concat();
    refused(
        &with(1_681_511_376u32.to_le_bytes()),
        "older format 1681511376 (a bitmap array that is not portable)",
    );
    refused(&with(1_681_511_376u32.to_be_bytes()), "older format 1681511376, in big-endian order");
    refused(&with(MAGIC.to_be_bytes()), "deletion vector is in big-endian order");
    refused(
        &with([0; 4]),
        "wrong magic number (byte 0 of the vector); found 0; expected 1681511377, little-endian",
    );
}

#[test]
fn rejects_bitmap_count() {
    let mut data = small();
    data[4..12].copy_from_slice(&u64::MAX.to_le_bytes());
    refused(
        &data,
        "counts more bitmaps than it has bytes for (byte 4 of the vector); found 18446744073709551615; \
         expected at most 2",
    );
    data[4..12].copy_from_slice(&2u64.to_le_bytes());
    refused(&data, "cut off");
}

#[test]
fn rejects_bitmap_keys() {
    let rows = || bitmap(&[(0, Container::Array(vec![0]))]);
    refused(&vector(&[(1, rows()), (1, rows())]), "keys of the bitmaps of a deletion vector do not ascend");
    refused(&vector(&[(2, rows()), (1, rows())]), "found 1 after 2; expected strictly ascending keys");
    refused(
        &vector(&[(1 << 31, rows())]),
        "beyond the largest row index (byte 12 of the vector); found key 2147483648",
    );
    assert_eq!(decode(&vector(&[((1 << 31) - 1, rows())])).unwrap().max(), Some(0x7FFF_FFFF << 32));
}

#[test]
fn rejects_cookie() {
    let mut data = small();
    data[16] = 0;
    refused(
        &data,
        "begins with an unknown cookie (byte 16 of the vector); found 12288; expected 12346, or 12347 in its \
         lower half",
    );
}

#[test]
fn rejects_container_count() {
    let mut data = small();
    data[20..24].copy_from_slice(&65_537u32.to_le_bytes());
    refused(&data, "too many containers (byte 16 of the vector); found 65537; expected at most 65536");
    data[20..24].copy_from_slice(&65_536u32.to_le_bytes());
    refused(&data, "cut off (byte 24 of the vector); found 14 bytes left; expected 262144");
}

#[test]
fn rejects_container_keys() {
    let array = || Container::Array(vec![0]);
    refused(
        &vector(&[(0, bitmap(&[(1, array()), (1, array())]))]),
        "keys of the containers of a deletion vector do not ascend",
    );
    refused(&vector(&[(0, bitmap(&[(1, array()), (0, array())]))]), "found 0 after 1");
}

#[test]
fn rejects_offsets() {
    let mut data = small();
    data[28] += 1;
    refused(&data, "not where its offset points (byte 16 of the vector); found 17; expected 16");
}

#[test]
fn rejects_array_order() {
    refused(&one(Container::Array(vec![3, 3])), "rows of a container of a deletion vector do not ascend");
    refused(&one(Container::Array(vec![1, 2, 5, 4])), "do not ascend (byte 32 of the vector)");
}

#[test]
fn rejects_runs() {
    for (declared, runs) in [
        (3, vec![(0, 1), (1, 1)]),
        (3, vec![(0, 1), (2, 1)]),
        (3, vec![(9, 1), (2, 1)]),
        (1, vec![(65535, 1)]),
    ] {
        refused(
            &one(Container::Runs(declared, runs)),
            "runs of a deletion vector overlap, touch or leave their container",
        );
    }
    refused(&one(Container::Runs(0, vec![(1, 1)])), "does not have the rows that its header declares");
}

#[test]
fn rejects_cardinality() {
    let words = Box::new([u64::MAX; 1024]);
    refused(&one(Container::Bits(5000, words)), "found 65536 rows; expected 5001 rows");
    refused(&one(Container::Runs(6, vec![(0, 4)])), "found 5 rows; expected 7 rows");
    refused(&one(Container::Runs(6, vec![])), "found 0 rows; expected 7 rows");
}

/// The input has 65,536 full containers in 0.9 MB, each declared with one row.
#[test]
fn rejects_a_bomb_of_runs() {
    let lie: Vec<_> = (0..=u16::MAX).map(|key| (key, Container::Runs(0, vec![(0, u16::MAX)]))).collect();
    refused(&vector(&[(0, bitmap(&lie))]), "found 65536 rows; expected 1 rows");
    let honest: Vec<_> =
        (0..=u16::MAX).map(|key| (key, Container::Runs(u16::MAX, vec![(0, u16::MAX)]))).collect();
    let rows = decode(&vector(&[(0, bitmap(&honest))])).unwrap();
    assert_eq!(rows.cardinality(), 1 << 32);
    assert_eq!(rows.runs_within(0..u64::MAX).collect::<Vec<_>>(), [0..1 << 32]);
}

fn valid() -> impl Strategy<Value = DeletionVector> {
    let part = prop_oneof![
        prop::collection::vec(0..300_000u64, 0..50),
        (0..200_000u64, 1..9000u64).prop_map(|(first, length)| (first..first + length).collect()),
        (0..9u64).prop_map(|step| (0..60_000).map(|row| row * (step + 1)).collect()),
        Just(vec![1 << 33, (1 << 33) + 1]),
    ];
    prop::collection::vec(part, 0..4).prop_map(|parts| DeletionVector::from_rows(parts.concat()).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn round_trip(rows in valid()) {
        let data = encode(&rows);
        let again = decode(&data).unwrap();
        prop_assert_eq!(&again, &rows);
        prop_assert_eq!(encode(&again), data);
    }

    /// A vector that this module accepts has the rows that roaring reads; roaring checks much less.
    #[test]
    fn changed_bytes_are_refused_or_read_as_roaring_reads_them(
        rows in valid(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut data = encode(&rows);
        for (at, byte) in changes {
            *at.get_mut(&mut data) = byte;
        }
        if let Ok(rows) = decode(&data) {
            let treemap = roaring::RoaringTreemap::deserialize_from(&data[4..]).unwrap();
            prop_assert!(rows.iter().eq(treemap.iter()));
        }
    }

    #[test]
    fn any_bytes(data: Vec<u8>) {
        let _ = decode(&[&MAGIC.to_le_bytes(), data.as_slice()].concat());
    }
}
