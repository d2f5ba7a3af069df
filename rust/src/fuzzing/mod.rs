//! Entry points of the fuzz targets in `fuzz/`, one for each parser of bytes. Compiled for fuzzing
//! and tests only.
//!
//! Each takes any bytes (the input in its comment) and checks the property in its comment. The parser may
//! return an error. A panic, more memory than the fuzzer's limit, or more than a few seconds is a bug.

#![allow(clippy::expect_used, clippy::panic)] // a broken property ends the fuzzer with its message

mod one_file;
#[cfg(test)]
mod tests;
mod three_files;

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray, new_null_array};
use arrow::compute::kernels::cmp::lt;
use arrow::datatypes::{DataType, TimeUnit};

use self::one_file::OneFile;
use self::three_files::FILES;
use crate::data_file::files::Files;
use crate::data_file::layout;
use crate::data_file::open::{Plan, Request};
use crate::data_file::queue::QueueItem;
use crate::data_file::reader::Reader;
use crate::data_file::source::{FileBytes, arrow_metadata, read_footer};
use crate::deletion_vector::descriptor::StorageType;
use crate::deletion_vector::{DeletionVector, Descriptor};
use crate::error::Result;
use crate::guard::guarded;
use crate::iceberg;
use crate::interrupt::Interrupt;
use crate::log::reading::commit::Commit;
use crate::log::reading::{checkpoint as log_checkpoint, hint};
use crate::log::schema::text;
use crate::log::skipping::selection;
use crate::log::skipping::statistics::{StatisticsColumn, num_records, parse, parse_as_written};
use crate::log::state::snapshot::Snapshot;
use crate::log::writing::body::action_lines;
use crate::log::writing::compaction::compact;
use crate::predicate::Column;
use crate::predicate::parse::{from_json, to_json};
use crate::predicate::rows::evaluate;
use crate::schema::arrow_types::UTC;
use crate::schema::partition_values::{format_array, parse_scalar};
use crate::schema::{TableSchema, from_arrow, json};
use crate::store::Store;
use crate::store::path::{Place, canonical, check_relative, is_plain, locate_encoded, scheme};
use crate::z85;

const TABLE: &str = "memory://table/x";
const COMMIT: &str = "_delta_log/00000000000000000000.json";
/// Maximum number of rows that are read of a data file, as a few bytes may hold billions of equal rows.
const MOST_ROWS: usize = 1 << 17;

/// Returns the first `N` bytes, and the rest.
fn head<const N: usize>(data: &[u8]) -> Option<([u8; N], &[u8])> {
    data.split_first_chunk::<N>().map(|(first, rest)| (*first, rest))
}

/// Takes the bytes of a deletion vector. Property: a vector that is read equals the vector that is read after
/// writing it.
pub fn vector(data: &[u8]) {
    let Ok(rows) = DeletionVector::from_bytes(data) else { return };
    let again = DeletionVector::from_bytes(&rows.to_bytes()).expect("what was written can be read");
    assert_eq!(rows, again);
    assert_eq!(rows.count_within(0..u64::MAX), rows.cardinality());
    assert_eq!(rows.max(), again.max());
}

/// Takes the Z85 text of a deletion vector. Property: a vector that is read equals the vector that is read
/// after writing it. The input is also taken for a descriptor: 1 byte of storage type, 4 of size and 4 of
/// cardinality, then its text. Property: a vector that the descriptor finds has its cardinality.
pub fn vector_text(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(rows) = DeletionVector::from_inline(text)
    {
        assert_eq!(
            rows,
            DeletionVector::from_inline(&z85::encode(&rows.to_bytes()))
                .expect("what was written can be read")
        );
    }
    let Some(([kind, s0, s1, s2, s3, c0, c1, c2, c3], rest)) = head(data) else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let size_in_bytes = i32::from_le_bytes([s0, s1, s2, s3]);
    let cardinality = i64::from(i32::from_le_bytes([c0, c1, c2, c3]));
    let storage_type = [StorageType::Inline, StorageType::Uuid, StorageType::Path][usize::from(kind % 3)];
    let descriptor = Descriptor {
        storage_type,
        path_or_inline: text.to_owned(),
        offset: None,
        size_in_bytes,
        cardinality,
    };
    let _ = descriptor.location();
    if let Ok(rows) = descriptor.read(OneFile::with("none", b"").as_ref(), None) {
        assert_eq!(rows.cardinality() as i64, cardinality);
    }
}

/// Takes 4 bytes of offset, 4 of size and 4 of cardinality, then a file of deletion vectors. The file is read
/// as it is, and again with the correct size and checksum of the vector, so that the fuzzer gets past these
/// checks. Property: a vector that is read has the cardinality of its descriptor.
pub fn vector_file(data: &[u8]) {
    let Some(([o0, o1, o2, o3, s0, s1, s2, s3, c0, c1, c2, c3], file)) = head(data) else { return };
    let (offset, size) = (i32::from_le_bytes([o0, o1, o2, o3]), i32::from_le_bytes([s0, s1, s2, s3]));
    let cardinality = i64::from(i32::from_le_bytes([c0, c1, c2, c3]));
    let path_or_inline = format!("{TABLE}/deletion_vector.bin");
    let descriptor = Descriptor {
        storage_type: StorageType::Path,
        path_or_inline,
        offset: Some(offset),
        size_in_bytes: size,
        cardinality,
    };
    let read = |file: &[u8]| {
        if let Ok(rows) = descriptor.read(OneFile::with("deletion_vector.bin", file).as_ref(), None) {
            assert_eq!(rows.cardinality() as i64, cardinality);
        }
    };
    read(file);
    let (Ok(start), Ok(size)) = (usize::try_from(offset), usize::try_from(size)) else { return };
    let mut whole = file.to_vec();
    let (Some(body), Some(end)) =
        (start.checked_add(4), start.checked_add(4).and_then(|body| body.checked_add(size)))
    else {
        return;
    };
    if whole.get(body..end).is_some() && end + 4 <= whole.len() {
        let checksum = crc32fast::hash(&whole[body..end]);
        whole[start..body].copy_from_slice(&(size as u32).to_be_bytes());
        whole[end..end + 4].copy_from_slice(&checksum.to_be_bytes());
        read(&whole);
    }
}

/// Takes the lines of a commit. Properties: actions on files that are read equal those that are read after
/// writing them; a reader that leaves them in the log (docs/decisions/actions-left-in-the-log.md) finds the
/// same files; and so does a reader of the commit as a compacted file.
pub fn commit(data: &[u8]) {
    let go_on = Interrupt::default();
    let store = OneFile::with(COMMIT, data);
    let _ = Commit::read_definition(store.as_ref(), COMMIT, &go_on);
    let _ = Commit::read_info(store.as_ref(), COMMIT);
    let left_in_log = live_paths(&store, &[], 0);
    let Ok(commit) = Commit::parse(data, COMMIT, &go_on) else { return };
    for (name, batches) in [("add", &commit.adds), ("remove", &commit.removes)] {
        for batch in batches {
            let lines =
                action_lines(name, batch, &go_on).expect("actions that were read can be written").concat();
            let again =
                Commit::parse(lines.as_bytes(), COMMIT, &go_on).expect("what was written can be read");
            assert_eq!(if name == "add" { again.adds } else { again.removes }, std::slice::from_ref(batch));
        }
    }
    let Ok((paths, count)) = live_paths(&store, &[], u64::MAX) else { return };
    assert_eq!(paths.len(), count);
    assert_eq!(
        left_in_log.expect("what is read at once can be read when it is asked for"),
        (paths.clone(), count)
    );
    let compacted =
        compact(&store, &[(0, COMMIT.to_owned())], &go_on).expect("what was read can be compacted");
    if !compacted.is_empty() {
        assert_eq!(
            live_paths(&OneFile::with(COMMIT, &compacted), &[], u64::MAX)
                .expect("what was written can be read"),
            (paths, count)
        );
    }
}

/// Returns the paths of the files of a version that has one commit, or one checkpoint of these parts, and the
/// number of files that the snapshot reports.
fn live_paths(store: &Arc<dyn Store>, parts: &[String], hold: u64) -> Result<(Vec<String>, usize)> {
    let go_on = Interrupt::default();
    let commits = if parts.is_empty() { vec![(0, COMMIT.to_owned())] } else { Vec::new() };
    let snapshot = Snapshot::load(store, 0, parts, &commits, hold, &go_on)?;
    let selected = snapshot.files(None, true, &go_on)?;
    let mut paths = Vec::new();
    for batch in &selected.files {
        paths.extend(text(batch, "path")?.iter().flatten().map(str::to_owned));
    }
    Ok((paths, selected.total_files))
}

/// Takes a Parquet checkpoint. Property: a reader that leaves actions in the checkpoint finds the same files
/// as a reader that decodes all of them at once.
pub fn checkpoint(data: &[u8]) {
    const NAME: &str = "_delta_log/00000000000000000000.checkpoint.parquet";
    let go_on = Interrupt::default();
    let store = OneFile::with(NAME, data);
    let parts = [NAME.to_owned()];
    let what = "the checkpoint cannot be read"; // as in the binding: the decoders of Parquet may panic
    let _ = guarded(what, || log_checkpoint::read_definition(&store, &parts, &go_on));
    let _ = guarded(what, || log_checkpoint::sidecar_names(&store, &parts, &go_on));
    let [at_once, left] = [u64::MAX, 0].map(|hold| guarded(what, || live_paths(&store, &parts, hold)));
    if let (Ok(at_once), Ok(left)) = (at_once, left) {
        assert_eq!(at_once, left);
    }
}

/// Takes the JSON of `_last_checkpoint`. Property: its canonical form does not change if the JSON is parsed
/// and written again.
pub fn last_checkpoint(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(form) = hint::canonical(text) else { return };
    let value: serde_json::Value = serde_json::from_str(text).expect("it was read before");
    assert_eq!(hint::canonical(&value.to_string()).expect("what was written can be read"), form);
}

/// Takes a line with the names of partition columns, then the JSON of a schema. Property: a schema that is
/// read equals the schema that is read after writing it, in each mode of column mapping.
pub fn schema_json(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (first, schema) = text.split_once('\n').unwrap_or(("", text));
    let partition: Vec<String> =
        first.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    for mode in ["none", "name", "id"] {
        let Ok(table) = TableSchema::parse(schema, &partition, mode) else { continue };
        let written = json::struct_json(table.fields()).to_string();
        let again = TableSchema::parse(&written, &partition, mode).expect("what was written can be read");
        assert_eq!(table.fields(), again.fields());
        let arrow = table.to_arrow(None).expect("each type has one in Arrow");
        let _ = from_arrow::fields_from_arrow(&arrow);
        for field in table.fields() {
            assert!(table.column(&field.name).is_ok());
        }
    }
}

/// Returns the types whose values can be partition values, which are text.
fn primitive_types() -> [DataType; 13] {
    [
        DataType::Utf8,
        DataType::Binary,
        DataType::Boolean,
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::Float32,
        DataType::Float64,
        DataType::Date32,
        DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Decimal128(38, 10),
    ]
}

/// Takes 1 byte of the type, then the text of a partition value, whose first 8 bytes are also taken for a
/// value of each type of numbers and times. Property: a value that is written as text and read again is the
/// same value, and no value except null becomes null.
pub fn partition_value(data: &[u8]) {
    let Some(([kind], rest)) = head(data) else { return };
    let types = primitive_types();
    let data_type = &types[usize::from(kind) % types.len()];
    if let Ok(text) = std::str::from_utf8(rest)
        && let Ok(value) = parse_scalar(Some(text), data_type)
    {
        assert_eq!(value.is_null(0), text.is_empty());
        written_again(&value, true);
    }
    let Some((bytes, _)) = head::<8>(rest) else { return };
    let long: ArrayRef = Arc::new(Int64Array::from(vec![i64::from_le_bytes(bytes)]));
    let int = arrow::array::Int32Array::from(vec![i64::from_le_bytes(bytes) as i32]);
    for data_type in &types {
        let value = match data_type {
            DataType::Timestamp(_, _) | DataType::Int64 => arrow::compute::cast(&long, data_type),
            DataType::Date32 | DataType::Int32 => arrow::compute::cast(&int, data_type),
            DataType::Float64 => {
                Ok(Arc::new(arrow::array::Float64Array::from(vec![f64::from_le_bytes(bytes)])) as ArrayRef)
            }
            _ => continue,
        };
        written_again(&value.expect("as many bytes"), false);
    }
}

/// Checks that a value, written as text and read again, is the same value. `must`: true if it has a text.
fn written_again(value: &ArrayRef, must: bool) {
    let texts = match format_array(value) {
        Ok(texts) => texts,
        Err(error) if must => panic!("what was read can be written: {error}"),
        Err(_) => return,
    };
    let text = texts.is_valid(0).then(|| texts.value(0));
    assert_eq!(text.is_none(), value.is_null(0), "{value:?} has the text {text:?}");
    let again = parse_scalar(text, value.data_type())
        .unwrap_or_else(|error| panic!("what was written can be read: {error}"));
    // NaN has many forms of bits and one text.
    assert_eq!(format_array(&again).expect("it was written before"), texts);
}

/// Takes the JSON of a file's statistics. Properties: no text of statistics is an error; the bounds by which
/// files are skipped are not narrower than the bounds in the text.
pub fn file_statistics(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let types = primitive_types();
    let names: Vec<Vec<String>> = (0..types.len()).map(|at| vec![format!("c{at}")]).collect();
    let inner = [vec!["st".to_owned(), "x".to_owned()], vec!["st".to_owned()]];
    let of_inner = [DataType::Int32, DataType::Null];
    let columns = names.iter().zip(&types).chain(inner.iter().zip(&of_inner));
    for was_float in [false, true] {
        let wanted: Vec<_> = columns
            .clone()
            .map(|(path, data_type)| StatisticsColumn { path, data_type, was_float })
            .collect();
        let texts = StringArray::from(vec![Some(text)]);
        let wide = parse(&texts, &wanted).expect("statistics are hints");
        let plain = parse_as_written(&texts, &wanted).expect("statistics are hints");
        assert_eq!(wide.num_records, plain.num_records);
        if let (true, false) = (wide.num_records.is_valid(0), num_records(&texts).is_null(0)) {
            assert_eq!(wide.num_records, num_records(&texts));
        }
        for (wide, plain) in wide.columns.iter().zip(&plain.columns) {
            assert_eq!(wide.null_count, plain.null_count);
            for (low, high) in [(&wide.min, &plain.min), (&plain.max, &wide.max)] {
                if low.is_valid(0) && high.is_valid(0) && !matches!(low.data_type(), DataType::Null) {
                    assert!(!lt(high, low).is_ok_and(|below| below.value(0)), "{low:?} {high:?} of {text}");
                }
            }
        }
    }
}

/// Takes a path as written in the log. Properties: a path inside the table is plain and relative, and its
/// encoded form leads to the same path; a path outside the table has no segment `..`.
pub fn path(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for root in ["/data/table", "file:///data/table", "s3://bucket/table", "C:/data/table", TABLE] {
        let _ = canonical(root, text);
        let place = locate_encoded(root, text);
        if is_plain(text) {
            assert_eq!(place.as_ref().expect("a plain path needs no look"), &Place::Inside(text.to_owned()));
        }
        match place {
            Ok(Place::Inside(path)) => {
                check_relative(&path).expect("a path inside the table is plain and relative");
                // A name that looks like a URL, such as `a:/b`, can be reached only by its whole address.
                if scheme(&path).is_none() {
                    assert_eq!(
                        locate_encoded(root, &layout::encode(&path)).expect("it was found before"),
                        Place::Inside(path)
                    );
                }
            }
            Ok(Place::Outside(path)) => {
                assert!(path.split(['/', '\\']).all(|segment| segment != ".."), "{path}")
            }
            Err(_) => {}
        }
    }
}

/// Takes the JSON of a predicate. Properties: a predicate that is read equals the predicate that is read
/// after writing it; no file with a matching row is skipped.
pub fn predicate(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (schema, adds, files) = &*FILES;
    let resolve = |path: &[String]| Column::resolve(schema, path);
    let Ok(predicate) = from_json(text, &resolve) else { return };
    let Ok(written) = to_json(&predicate) else { return };
    let again =
        from_json(&written, &resolve).unwrap_or_else(|error| panic!("what was written can be read: {error}"));
    assert_eq!(to_json(&again).expect("it was written before"), written);
    let selected = selection::select(adds, Some(&predicate), true, &Interrupt::default());
    for (number, rows) in files.iter().enumerate() {
        let Ok(matches) = evaluate(&predicate, rows) else { return };
        let Ok(selected) = &selected else { return };
        let is_selected = selected.files.iter().any(|batch| {
            let paths = batch.column(0).as_string::<i32>();
            paths.iter().flatten().any(|path| path == number.to_string())
        });
        assert!(
            is_selected || matches.true_count() == 0,
            "file {number} is skipped and has a match of {written}"
        );
    }
}

/// Takes a data file. Property: the first rows of all columns have the schema that follows from the footer.
pub fn data_file(data: &[u8]) {
    const NAME: &str = "part.parquet";
    let store = OneFile::with(NAME, data);
    let bytes = FileBytes::new(Arc::clone(&store), NAME.to_owned(), data.len() as u64, Arc::default());
    let what = "the Parquet file cannot be decoded"; // as in the binding: the decoders of Parquet may panic
    let fields = guarded(what, || {
        let metadata = arrow_metadata(Arc::new(read_footer(&bytes, true)?))?;
        from_arrow::fields_from_arrow(metadata.schema())
    });
    let Ok(fields) = fields else { return };
    let Ok(schema) = TableSchema::parse(&json::struct_json(&fields).to_string(), &[], "none") else { return };
    let columns = fields.iter().map(|field| format!("`{}`", field.name.replace('`', "``"))).collect();
    let _ = read_rows(store, Arc::new(schema), columns, NAME); // it guards its decoders itself
}

fn read_rows(
    store: Arc<dyn Store>,
    schema: Arc<TableSchema>,
    columns: Vec<String>,
    name: &str,
) -> Result<()> {
    let path: ArrayRef = Arc::new(StringArray::from(vec![name]));
    let size = store.head(name)?.map(|found| found.size as i64);
    let size: ArrayRef = Arc::new(Int64Array::from(vec![size]));
    let files = Files::new(RecordBatch::try_from_iter([("path", path), ("size", size)])?)?;
    let request = Request { limit: Some(MOST_ROWS), row_ids: true, ..Request::unpruned(columns) };
    let mut reader = Reader::new(Plan::new(store, schema, files, request)?, Some(1), Some(64 << 20));
    let mut rows = 0;
    loop {
        match reader.next(Duration::from_secs(1))? {
            QueueItem::Batch(batch) => {
                rows += batch.num_rows();
                assert_eq!(batch.schema_ref(), reader.schema());
            }
            QueueItem::End => break,
            QueueItem::Waiting => {}
        }
    }
    assert!(rows <= MOST_ROWS);
    Ok(())
}

/// Takes a manifest list of Iceberg. Property: a list that is read equals the list that is read after writing
/// it. The input is also taken for a manifest. Property: a manifest made of its entries can be read.
pub fn manifest_list(data: &[u8]) {
    if let Ok(manifests) = iceberg::read_list(data)
        && let Ok(written) = iceberg::write_list(&manifests, "{}", 3)
    {
        let again = iceberg::read_list(&written).expect("what was written can be read");
        let written = iceberg::write_list(&again, "{}", 3).expect("it was written before");
        assert_eq!(iceberg::read_list(&written).expect("it was read before"), again);
    }
    static EMPTY: LazyLock<(TableSchema, RecordBatch)> = LazyLock::new(|| {
        let schema = concat!(
            r#"{"type":"struct","fields":["#,
            r#"{"name":"i","type":"integer","metadata":{"delta.columnMapping.id":1}}]}"#,
        );
        let adds = crate::log::schema::ADD.fields().iter();
        let adds = adds.map(|field| (field.name().as_str(), new_null_array(field.data_type(), 0)));
        let places = ["location", "vectorLocation"].map(|name| (name, new_null_array(&DataType::Utf8, 0)));
        let adds = RecordBatch::try_from_iter(adds.chain(places)).expect("no rows");
        (TableSchema::parse(schema, &[], "none").expect("a schema"), adds)
    });
    let (schema, adds) = &*EMPTY;
    for deletes in [false, true] {
        let options = iceberg::Options {
            version: 3,
            deletes,
            snapshot_id: 2,
            sequence_number: 2,
            partition: Vec::new(),
            header: Default::default(),
        };
        if let Ok((written, _)) = iceberg::manifest(adds, schema, &[data], &[], &options) {
            let again = iceberg::manifest(adds, schema, &[&written], &[], &options);
            again.expect("what was written can be read");
        }
    }
}
