#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, StructArray,
};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Int32Type, TimeUnit};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection};
use parquet::basic::{BrotliLevel, GzipLevel};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::properties::{WriterProperties, WriterVersion};
use proptest::prelude::*;

use super::inflate::inflate;
use super::*;

fn codecs() -> [Compression; 3] {
    [Compression::GZIP(GzipLevel::default()), Compression::BROTLI(BrotliLevel::default()), Compression::LZ4]
}

const ROWS: i64 = 5000;

fn rows() -> RecordBatch {
    let numbers: ArrayRef =
        Arc::new(Int64Array::from_iter((0..ROWS).map(|row| (row % 7 > 0).then_some(row))));
    let texts: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..ROWS).map(|row| format!("text {}", row % 100))));
    let nulls: ArrayRef = Arc::new(Int64Array::from(vec![None::<i64>; ROWS as usize]));
    RecordBatch::try_from_iter([("n", numbers), ("t", texts), ("x", nulls)]).unwrap()
}

fn written(codec: Compression, version: WriterVersion) -> Bytes {
    let properties = WriterProperties::builder()
        .set_compression(codec)
        .set_writer_version(version)
        .set_data_page_row_count_limit(500);
    let properties = properties.set_write_batch_size(100).set_max_row_group_row_count(Some(3000)).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), rows().schema(), Some(properties)).unwrap();
    writer.write(&rows()).unwrap();
    writer.into_inner().unwrap().into()
}

fn read(
    file: &Bytes,
    index: PageIndexPolicy,
    select: Option<&[std::ops::Range<usize>]>,
) -> Result<RecordBatch, String> {
    let options = ArrowReaderOptions::new().with_page_index_policy(index);
    let metadata = ArrowReaderMetadata::load(file, options).map_err(|error| error.to_string())?;
    let mut batches = Vec::new();
    for group in 0..metadata.metadata().num_row_groups() {
        let all = metadata.metadata().row_group(group).num_rows() as usize;
        let rows = select.map(|ranges| RowSelection::from_consecutive_ranges(ranges.iter().cloned(), all));
        let wanted = PageRequest { group, mask: ProjectionMask::all(), batch: 700, rows };
        for batch in record_batches(file.clone(), &metadata, wanted).map_err(|error| error.to_string())? {
            batches.push(batch.map_err(|error| error.to_string())?);
        }
    }
    concat_batches(metadata.schema(), &batches).map_err(|error| error.to_string())
}

#[test]
fn files_of_each_codec() {
    for codec in codecs() {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let file = written(codec, version);
            for index in [PageIndexPolicy::Skip, PageIndexPolicy::Required] {
                assert_eq!(read(&file, index, None).unwrap(), rows(), "{codec} {version:?} {index:?}");
                let some = read(&file, index, Some(&[3..4, 1200..1300, 1999..2000])).unwrap();
                let numbers: Vec<i64> =
                    some.column(0).as_any().downcast_ref::<Int64Array>().unwrap().iter().flatten().collect();
                let expected = [0, 3000].into_iter().flat_map(|first| {
                    [3..4, 1200..1300, 1999..2000].into_iter().flatten().map(move |row| first + row)
                });
                assert_eq!(
                    numbers,
                    expected.filter(|row| row % 7 > 0).collect::<Vec<i64>>(),
                    "{codec} {version:?} {index:?}"
                );
            }
        }
    }
}

fn packed(codec: Compression, bytes: &[u8]) -> Vec<u8> {
    match codec {
        Compression::GZIP(_) => {
            let mut into = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
            into.write_all(bytes).unwrap();
            into.finish().unwrap()
        }
        Compression::BROTLI(_) => {
            let mut into = brotli::CompressorWriter::new(Vec::new(), 4096, 1, 22);
            into.write_all(bytes).unwrap();
            into.into_inner()
        }
        _ => framed(bytes),
    }
}

fn framed(bytes: &[u8]) -> Vec<u8> {
    let mut into = lz4_flex::frame::FrameEncoder::new(Vec::new());
    into.write_all(bytes).unwrap();
    into.finish().unwrap()
}

/// Compresses a page as Hadoop does: to several blocks, the last of which is short.
fn blocks(bytes: &[u8], of: usize) -> Vec<u8> {
    let block = |bytes: &[u8]| {
        let packed = lz4_flex::block::compress(bytes);
        [&(bytes.len() as u32).to_be_bytes()[..], &(packed.len() as u32).to_be_bytes(), &packed].concat()
    };
    bytes.chunks(of).flat_map(block).collect()
}

#[test]
fn what_unfolds_to_more_or_less_than_claimed() {
    let page = vec![b'x'; 100_000];
    for codec in codecs() {
        let packed = packed(codec, &page);
        assert_eq!(inflate(codec, &[], &packed, page.len()).unwrap(), page);
        assert_eq!(inflate(codec, b"ab", &packed, page.len() + 2).unwrap(), [b"ab", &page[..]].concat());
        assert_eq!(inflate(codec, &[], &packed, 5000).unwrap_err(), "more than 5000 bytes", "{codec}");
        assert!(inflate(codec, &[], &packed, page.len() + 1).is_err(), "{codec}");
        assert!(inflate(codec, b"ab", &packed, 1).is_err(), "{codec}");
        assert!(inflate(codec, &[], &packed[..packed.len() / 2], page.len()).is_err(), "{codec}");
        assert_eq!(inflate(codec, b"ab", &[], 2).unwrap(), b"ab");
    }
}

#[test]
fn zstandard_with_one_context() {
    let (codec, page) = (Compression::ZSTD(parquet::basic::ZstdLevel::default()), vec![b'x'; 100_000]);
    let packed = zstd::bulk::compress(&page, 1).unwrap();
    for _ in 0..2 {
        assert_eq!(inflate(codec, &[], &packed, page.len()).unwrap(), page);
        assert_eq!(inflate(codec, b"ab", &packed, page.len() + 2).unwrap(), [b"ab", &page[..]].concat());
        for size in [5000, page.len() - 1, page.len() + 1] {
            assert!(inflate(codec, &[], &packed, size).is_err(), "{size}");
        }
        assert!(inflate(codec, &[], &packed[..packed.len() / 2], page.len()).is_err());
        assert!(inflate(codec, b"ab", &packed, 1).is_err());
    }
}

#[test]
fn the_three_that_are_called_lz4() {
    let page: Vec<u8> = (0..100_000_u32).flat_map(|number| (number / 7).to_le_bytes()).collect();
    for packed in
        [blocks(&page, 262_144), blocks(&page, page.len()), framed(&page), lz4_flex::block::compress(&page)]
    {
        assert_eq!(inflate(Compression::LZ4, &[], &packed, page.len()).unwrap(), page);
        assert!(inflate(Compression::LZ4, &[], &packed, 1000).is_err());
    }
    assert_eq!(inflate(Compression::LZ4, &[], &[1; 100], 1 << 31).unwrap_err(), "100 bytes of LZ4");
}

#[test]
fn a_page_whose_header_lies() {
    for codec in codecs() {
        let file = written(codec, WriterVersion::PARQUET_1_0).to_vec();
        let metadata =
            ArrowReaderMetadata::load(&Bytes::from(file.clone()), ArrowReaderOptions::new()).unwrap();
        let at = metadata.metadata().row_group(0).column(0).byte_range().0 as usize;
        let header = headers::header_at(&Bytes::from(file.clone()), at as u64).unwrap();
        assert!(header.uncompressed > 1000);
        let mut lying = file;
        assert!(lying[at + 3] > 0x7f); // a number of several bytes
        lying[at + 3] ^= 1 << 3;
        let error = read(&lying.into(), PageIndexPolicy::Skip, None).unwrap_err();
        assert!(error.contains("does not decompress to the size in its header"), "{codec}: {error}");
        assert!(error.contains("column n, "), "{error}");
    }
}

/// Makes numbers of each type, with nulls, beside a text and a struct.
fn numbers(values: &[Option<i32>]) -> RecordBatch {
    let whole: ArrayRef = Arc::new(Int32Array::from(values.to_vec()));
    let long: ArrayRef =
        Arc::new(Int64Array::from_iter(values.iter().map(|value| value.map(|value| i64::from(value) << 20))));
    let of = |array: &ArrayRef, data_type: &DataType| arrow::compute::cast(array, data_type).unwrap();
    let texts: ArrayRef = Arc::new(StringArray::from_iter(
        values.iter().map(|value| value.map(|value| format!("text {value}"))),
    ));
    let inner =
        StructArray::from(vec![(Arc::new(Field::new("whole", DataType::Int32, true)), Arc::clone(&whole))]);
    RecordBatch::try_from_iter([
        ("days", of(&whole, &DataType::Date32)),
        ("text", texts),
        ("float", of(&whole, &DataType::Float32)),
        ("double", of(&long, &DataType::Float64)),
        ("inner", Arc::new(inner) as ArrayRef),
        (
            "short",
            of(
                &(Arc::new(whole.as_primitive::<Int32Type>().unary::<_, Int32Type>(|v| v % 100)) as ArrayRef),
                &DataType::Int16,
            ),
        ),
        ("at", of(&long, &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())))),
        ("money", of(&of(&whole, &DataType::Int64), &DataType::Decimal64(18, 2))),
        ("whole", whole),
        ("long", long),
    ])
    .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// The values that are read here equal those that Parquet's own reader reads.
    #[test]
    fn numbers_with_nulls(
        values in prop::collection::vec(prop::option::weighted(0.8, -3000..3000_i32), 1..900),
        runs in any::<u64>(),
        dictionary in any::<bool>(),
        second in any::<bool>(),
        batch in 1_usize..400,
        columns in 1_u32..1024,
        selected in any::<bool>(),
        index in any::<bool>(),
    ) {
        let rows = numbers(&values);
        let version = if second { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 };
        let properties =
            WriterProperties::builder().set_dictionary_enabled(dictionary).set_writer_version(version);
        let properties = properties.set_data_page_row_count_limit(90).set_write_batch_size(30).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), Some(properties)).unwrap();
        writer.write(&rows).unwrap();
        let file: Bytes = writer.into_inner().unwrap().into();

        let policy = if index { PageIndexPolicy::Required } else { PageIndexPolicy::Skip };
        let options = ArrowReaderOptions::new().with_page_index_policy(policy);
        let metadata = ArrowReaderMetadata::load(&file, options).unwrap();
        let some: BooleanArray = (0..values.len()).map(|row| Some(runs >> (row / 9 % 64) & 1 == 1)).collect();
        let selection = selected.then(|| RowSelection::from_filters(&[some]));
        let chosen = (0..rows.num_columns()).filter(|column| columns >> column & 1 == 1);
        let mask = ProjectionMask::roots(metadata.metadata().file_metadata().schema_descr(), chosen);

        let wanted = PageRequest { group: 0, mask: mask.clone(), batch, rows: selection.clone() };
        let found = record_batches(file.clone(), &metadata, wanted).unwrap();
        let schema = Arc::clone(found.schema());
        let found = found.collect::<Result<Vec<_>, _>>().unwrap();

        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
            .with_projection(mask)
            .with_batch_size(batch);
        let reader = match selection {
            Some(rows) => reader.with_row_selection(rows),
            None => reader,
        };
        let reader = reader.build().unwrap();
        prop_assert_eq!(&schema, &arrow::array::RecordBatchReader::schema(&reader));
        let expected = reader.collect::<Result<Vec<_>, _>>().unwrap();
        let found = concat_batches(&schema, &found).unwrap();
        prop_assert_eq!(found, concat_batches(&schema, &expected).unwrap());
    }
}
