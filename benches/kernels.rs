//! Measures the kernels of deletion vectors and clustering, each beside a rival that it cannot beat:
//! crc32fast and roaring alone, and memcpy.
//!
//!     cargo bench --no-default-features --bench kernels [-- --record benches/records/kernels.json]
//!
//! Every kernel and its rival run in turns on the same data, at least seven times each; the minimum of each
//! counts. Their results are compared before they are measured. If a kernel has less than its share of the
//! rival's speed, the bench ends with exit code 1.

#![allow(clippy::expect_used, clippy::indexing_slicing, missing_docs)] // a panic ends the bench

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use deltaic::deletion_vector::{DeletionVector, file};
use deltaic::{z85, zorder};
use roaring::RoaringBitmap;

const TURNS: usize = 15;
const CHECKSUM_BYTES: usize = 16 << 20;
const TEXT_BYTES: usize = 4 << 20;
const ROWS: u64 = 4_000_000;
const CLUSTERED_ROWS: usize = 1 << 20;

/// One line of the output.
struct Line {
    name: String,
    bytes: usize,
    ours: Duration,
    rival: &'static str,
    theirs: Duration,
    /// The least share of the rival's speed; `None` if the kernel is only recorded.
    share: Option<f64>,
}

impl Line {
    fn reached(&self) -> f64 {
        self.theirs.as_secs_f64() / self.ours.as_secs_f64()
    }
    fn missed(&self) -> bool {
        self.share.is_some_and(|share| self.reached() < share)
    }
    fn rate(&self, time: Duration) -> f64 {
        self.bytes as f64 / time.as_secs_f64()
    }
    fn show(&self) {
        let wanted = match self.share {
            None => "recorded".to_owned(),
            Some(share) => {
                format!("at least {:.0} %: {}", share * 100.0, if self.missed() { "MISSED" } else { "met" })
            }
        };
        println!(
            "{:28} {:9.0} MB/s | {:9} {:9.0} MB/s | {:6.1} % ({wanted})",
            self.name,
            self.rate(self.ours) / 1e6,
            self.rival,
            self.rate(self.theirs) / 1e6,
            self.reached() * 100.0
        );
    }
    fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "kernel": self.name, "bytes": self.bytes, "bytes_per_second": self.rate(self.ours),
            "rival": self.rival, "rival_bytes_per_second": self.rate(self.theirs),
            "share": self.reached(), "wanted": self.share, "met": !self.missed(),
        })
    }
}

/// Pseudo-random numbers, which are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// Returns the best times of two pieces of work that take turns.
fn duel<A, B>(mut ours: impl FnMut() -> A, mut theirs: impl FnMut() -> B) -> (Duration, Duration) {
    let clock = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    let mut best = (Duration::MAX, Duration::MAX);
    for _ in 0..TURNS {
        best.0 = best.0.min(clock(&mut || {
            black_box(ours());
        }));
        best.1 = best.1.min(clock(&mut || {
            black_box(theirs());
        }));
    }
    best
}

fn line<A, B>(
    name: &str,
    bytes: usize,
    rival: &'static str,
    share: Option<f64>,
    ours: impl FnMut() -> A,
    theirs: impl FnMut() -> B,
) -> Line {
    let (ours, theirs) = duel(ours, theirs);
    let line = Line { name: name.to_owned(), bytes, ours, rival, theirs, share };
    line.show();
    line
}

/// Measures opening a vector's frame: size, checksum, bounds.
fn checksum(numbers: &mut Numbers) -> Vec<Line> {
    let data = numbers.bytes(CHECKSUM_BYTES);
    let mut builder = file::FileBuilder::default();
    builder.append(&data).expect("one vector");
    let frame = builder.finish().split_off(1);
    assert_eq!(file::open_frame(&frame, data.len() as u64).expect("a right checksum"), data);
    let opened = || file::open_frame(black_box(&frame), CHECKSUM_BYTES as u64).map(<[u8]>::len);
    vec![line("crc-32 of a frame", data.len(), "crc32fast", Some(0.8), opened, || {
        crc32fast::hash(black_box(&data))
    })]
}

/// Measures encoding and decoding vectors, and their union, beside roaring's own bitmap of the same rows.
fn bitmaps(numbers: &mut Numbers) -> Vec<Line> {
    let mut lines = Vec::new();
    for (name, one_in) in [("10 %", 10), ("0.1 %", 1000)] {
        let mut some =
            || -> Vec<u64> { (0..ROWS).filter(|_| numbers.next().is_multiple_of(one_in)).collect() };
        let (rows, more) = (some(), some());
        let vector = DeletionVector::from_rows(rows.clone()).expect("rows in range");
        let other = DeletionVector::from_rows(more.clone()).expect("rows in range");
        let plain: RoaringBitmap = rows.iter().map(|row| *row as u32).collect();
        let others: RoaringBitmap = more.iter().map(|row| *row as u32).collect();
        let bytes = vector.to_bytes();
        let written = |bitmap: &RoaringBitmap| {
            let mut smallest = bitmap.clone();
            smallest.optimize();
            let mut bytes = Vec::with_capacity(smallest.serialized_size());
            smallest.serialize_into(&mut bytes).expect("memory");
            bytes
        };
        let theirs = written(&plain);
        assert_eq!(&bytes[16..], theirs, "the format's own encoding, after magic, count and key");
        assert_eq!(vector.union(&other).cardinality(), (&plain | &others).len());
        let read = || DeletionVector::from_bytes(black_box(&bytes)).map(|vector| vector.cardinality());
        let read_plain =
            || RoaringBitmap::deserialize_from(black_box(&theirs[..])).map(|bitmap| bitmap.len());
        let written_plain = || written(black_box(&plain));
        lines.push(line(
            &format!("bitmap, {name}: read"),
            bytes.len(),
            "roaring",
            Some(0.8),
            read,
            read_plain,
        ));
        lines.push(line(
            &format!("bitmap, {name}: write"),
            bytes.len(),
            "roaring",
            Some(0.8),
            || vector.to_bytes(),
            written_plain,
        ));
        let union = || black_box(&vector).union(&other);
        lines.push(line(&format!("bitmap, {name}: union"), bytes.len(), "roaring", Some(0.8), union, || {
            black_box(&plain) | &others
        }));
        // Each of the two gets a copy of the rows.
        let sorted = || RoaringBitmap::from_sorted_iter(rows.clone().into_iter().map(|row| row as u32));
        let size = rows.len() * 8;
        lines.push(line(
            &format!("bitmap, {name}: from rows"),
            size,
            "roaring",
            Some(0.8),
            || DeletionVector::from_rows(rows.clone()),
            sorted,
        ));
    }
    lines
}

fn text(numbers: &mut Numbers) -> Vec<Line> {
    let data = numbers.bytes(TEXT_BYTES);
    let text = z85::encode(&data);
    assert_eq!(z85::decode(&text).expect("our own text"), data);
    let copied = || black_box(&data).clone();
    vec![
        line("z85: encode", data.len(), "memcpy", None, || z85::encode(black_box(&data)), copied),
        line("z85: decode", data.len(), "memcpy", None, || z85::decode(black_box(&text)), copied),
    ]
}

fn curves(numbers: &mut Numbers) -> Vec<Line> {
    let mut lines = Vec::new();
    for count in [2, 4, 16] {
        let columns: Vec<Vec<u32>> =
            (0..count).map(|_| (0..CLUSTERED_ROWS).map(|_| numbers.next() as u32).collect()).collect();
        let rows = zorder::interleave::rows(&columns);
        let whole = columns
            .iter()
            .enumerate()
            .map(|(at, column)| u64::from(column[0] >> 31) << (count - 1 - at))
            .sum::<u64>();
        let first = u16::from_be_bytes([rows[0], rows[1]]);
        assert_eq!(u64::from(first) >> (16 - count), whole, "the highest bit of every column leads");
        let bytes = columns.len() * CLUSTERED_ROWS * 4;
        let copied = || black_box(&columns).clone();
        lines.push(line(
            &format!("interleave, {count} columns"),
            bytes,
            "memcpy",
            None,
            || zorder::interleave::rows(black_box(&columns)),
            copied,
        ));
        if count <= 4 {
            let hilbert = || {
                let mut columns = columns.clone();
                zorder::hilbert::transpose(&mut columns, 32);
                columns
            };
            lines.push(line(&format!("hilbert, {count} columns"), bytes, "memcpy", None, hilbert, copied));
        }
    }
    lines
}

fn record(path: &str, lines: &[Line]) -> std::io::Result<()> {
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processor
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map(|(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let document = serde_json::json!({
        "command": "cargo bench --no-default-features --bench kernels",
        "machine": { "processor": processor, "cores": cores, "system": std::env::consts::OS },
        "versions": { "deltaic": env!("CARGO_PKG_VERSION") },
        "results": lines.iter().map(Line::json).collect::<Vec<_>>(),
    });
    std::fs::write(path, format!("{document:#}\n"))
}

fn main() -> ExitCode {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let lines: Vec<Line> =
        [checksum, bitmaps, text, curves].iter().flat_map(|kernel| kernel(&mut numbers)).collect();
    let mut arguments = std::env::args().skip_while(|argument| argument != "--record").skip(1);
    let path = arguments
        .next()
        .unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/benches/records/kernels.json").to_owned());
    if let Err(error) = record(&path, &lines) {
        eprintln!("no record at {path}: {error}");
        return ExitCode::FAILURE;
    }
    if lines.iter().any(Line::missed) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
