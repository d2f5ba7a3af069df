//! Writes manifests: entries for the files of add actions, and entries copied from older manifests.

use std::collections::{BTreeMap, HashMap, HashSet};

use arrow::array::{Array, Int64Array, RecordBatch, StringArray};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::avro::{self, Container, Cursor, Layout, malformed};
use super::values;
use crate::deletion_vector::columns;
use crate::error::{Error, Kind, Result};
use crate::log::schema::{long, map, map_values, text, vectors};
use crate::log::skipping::statistics::Side;
use crate::schema::{Field, TableSchema, Type};

const EXISTING: i64 = 0;
const ADDED: i64 = 1;
const DELETED: i64 = 2;
/// Number of bytes of a vector's frame besides the vector: the length before it, the checksum after it.
const FRAME: i64 = 8;

/// The settings of a manifest.
#[derive(Debug, Deserialize)]
pub struct Options {
    /// The version of the format: 2 or 3.
    pub version: u8,
    /// The entries are deletion vectors, not data files.
    pub deletes: bool,
    /// The snapshot that adds and deletes entries.
    pub snapshot_id: i64,
    /// Its sequence number.
    pub sequence_number: i64,
    /// The partition spec: a name for Avro and an id for each partition column.
    pub partition: Vec<(String, i32)>,
    /// Metadata of the file.
    pub header: BTreeMap<String, String>,
}

/// Totals of a manifest's entries.
#[derive(Debug, Default, Serialize)]
pub struct Counts {
    added_files_count: i64,
    existing_files_count: i64,
    deleted_files_count: i64,
    added_rows_count: i64,
    existing_rows_count: i64,
    deleted_rows_count: i64,
    /// Number of bytes of added files, and of deleted files.
    added_bytes: i64,
    deleted_bytes: i64,
    min_sequence_number: Option<i64>,
}

/// Writes a manifest, and returns it with its totals.
///
/// `adds`: add actions with the addresses of their files (`location`) and vectors (`vectorLocation`); each
/// becomes an added entry. `former`: older manifests whose entries are copied: as deleted if `gone` has the
/// address of their data file, else as existing. Entries that are already deleted there are omitted.
pub fn manifest(
    adds: &RecordBatch,
    schema: &TableSchema,
    former: &[&[u8]],
    gone: &[String],
    options: &Options,
) -> Result<(Vec<u8>, Counts)> {
    let avro_schema = avro_schema(schema, options)?;
    let layout = Layout::parse(&avro_schema)?;
    let mut metadata: Vec<_> =
        options.header.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    metadata.push(("avro.schema", &avro_schema));
    let mut writer =
        ManifestWriter { container: Container::new(&metadata), counts: Counts::default(), options };
    let gone: HashSet<&str> = gone.iter().map(String::as_str).collect();
    for data in former {
        writer.carry_over(data, &layout, &gone)?;
    }
    let files = Files::of(adds, schema)?;
    for row in 0..adds.num_rows() {
        writer.add(&files, row)?;
    }
    Ok((writer.container.finish()?, writer.counts))
}

fn avro_schema(schema: &TableSchema, options: &Options) -> Result<String> {
    let optional = |name: &str, kind: Value, id: i32| {
        let kind = json!(["null", kind]);
        json!({"name": name, "type": kind, "default": null, "field-id": id})
    };
    if schema.partition_fields().len() != options.partition.len() {
        return Err(Error::new(Kind::InvalidArgument, "the partition spec has other columns than the table"));
    }
    let partition = schema.partition_fields().zip(&options.partition);
    let partition: Vec<_> = partition
        .map(|(field, (name, id))| Ok(optional(name, values::avro_type(&field.data_type, *id)?, *id)))
        .collect::<Result<_>>()?;
    let counts = |name: &str, kind: &str, id: i32, key: i32| {
        let entry = json!({"type": "record", "name": format!("k{key}_v{}", key + 1), "fields": [
            {"name": "key", "type": "int", "field-id": key},
            {"name": "value", "type": kind, "field-id": key + 1}]});
        optional(name, json!({"type": "array", "logicalType": "map", "items": entry}), id)
    };
    let mut data_file = vec![
        json!({"name": "content", "type": "int", "field-id": 134}),
        json!({"name": "file_path", "type": "string", "field-id": 100}),
        json!({"name": "file_format", "type": "string", "field-id": 101}),
        json!({"name": "partition", "type": {"type": "record", "name": "r102", "fields": partition},
            "field-id": 102}),
        json!({"name": "record_count", "type": "long", "field-id": 103}),
        json!({"name": "file_size_in_bytes", "type": "long", "field-id": 104}),
        counts("value_counts", "long", 109, 119),
        counts("null_value_counts", "long", 110, 121),
        counts("lower_bounds", "bytes", 125, 126),
        counts("upper_bounds", "bytes", 128, 129),
    ];
    if options.version >= 3 {
        data_file.push(optional("first_row_id", json!("long"), 142));
        data_file.push(optional("referenced_data_file", json!("string"), 143));
        data_file.push(optional("content_offset", json!("long"), 144));
        data_file.push(optional("content_size_in_bytes", json!("long"), 145));
    }
    let entry = json!({"type": "record", "name": "manifest_entry", "fields": [
        {"name": "status", "type": "int", "field-id": 0},
        optional("snapshot_id", json!("long"), 1),
        optional("sequence_number", json!("long"), 3),
        optional("file_sequence_number", json!("long"), 4),
        {"name": "data_file", "type": {"type": "record", "name": "r2", "fields": data_file}, "field-id": 2},
    ]});
    Ok(entry.to_string())
}

/// The columns of add actions that entries need.
struct Files<'a> {
    locations: &'a StringArray,
    vector_locations: &'a StringArray,
    sizes: &'a Int64Array,
    statistics: &'a StringArray,
    first_row_ids: &'a Int64Array,
    versions: &'a Int64Array,
    partition: Vec<(StringArray, &'a Type)>,
    vectors: Vec<Option<crate::deletion_vector::Descriptor>>,
    leaves: Vec<Column<'a>>,
    ends: HashMap<String, i64>,
}

/// A column with statistics.
struct Column<'a> {
    id: i32,
    physical: Vec<&'a str>,
    data_type: &'a Type,
    was_float: bool,
}

impl<'a> Files<'a> {
    fn of(adds: &'a RecordBatch, schema: &'a TableSchema) -> Result<Self> {
        let values = map(adds, "partitionValues")?;
        let vector_locations = text(adds, "vectorLocation")?;
        let vectors = columns::read(vectors(adds)?)?;
        let mut ends = HashMap::new();
        for (place, vector) in vector_locations.iter().zip(&vectors) {
            if let (Some(place), Some(vector)) = (place, vector) {
                let end = i64::from(vector.offset.unwrap_or(0)) + i64::from(vector.size_in_bytes) + FRAME;
                let known = ends.entry(place.to_owned()).or_insert(0_i64);
                *known = end.max(*known);
            }
        }
        let mut leaves = Vec::new();
        collect(schema.fields(), &mut Vec::new(), &mut leaves);
        Ok(Self {
            locations: text(adds, "location")?,
            vector_locations,
            sizes: long(adds, "size")?,
            statistics: text(adds, "stats")?,
            first_row_ids: long(adds, "baseRowId")?,
            versions: long(adds, "defaultRowCommitVersion")?,
            partition: schema
                .partition_fields()
                .map(|field| (map_values(values, field.physical_name()), &field.data_type))
                .collect(),
            vectors,
            leaves,
            ends,
        })
    }
}

fn collect<'a>(fields: &'a [Field], above: &mut Vec<&'a str>, leaves: &mut Vec<Column<'a>>) {
    for field in fields {
        above.push(field.physical_name());
        match (&field.data_type, field.id()) {
            (Type::Struct(inner), _) => collect(inner, above, leaves),
            (Type::Primitive(_), Some(id)) => {
                leaves.push(Column {
                    id,
                    physical: above.clone(),
                    data_type: &field.data_type,
                    was_float: field.was_float(),
                });
            }
            _ => {}
        }
        above.pop();
    }
}

type Object<'a> = HashMap<&'a str, &'a RawValue>;

/// Statistics of a file in JSON, with numbers as text.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Statistics<'a> {
    num_records: Option<i64>,
    #[serde(borrow)]
    min_values: Option<Object<'a>>,
    #[serde(borrow)]
    max_values: Option<Object<'a>>,
    #[serde(borrow)]
    null_count: Option<Object<'a>>,
}

/// Returns the value for a column in statistics: 1 for `a.b` in `{"a": {"b": 1}}`.
fn stated<'a>(object: Option<&Object<'a>>, path: &[&str]) -> Option<&'a str> {
    let (first, rest) = path.split_first()?;
    let value = object?.get(first)?.get();
    if rest.is_empty() { Some(value) } else { stated(Some(&serde_json::from_str(value).ok()?), rest) }
}

struct ManifestWriter<'a> {
    container: Container,
    counts: Counts,
    options: &'a Options,
}

impl ManifestWriter<'_> {
    fn carry_over(&mut self, data: &[u8], layout: &Layout, gone: &HashSet<&str>) -> Result<()> {
        let contents = avro::read(data)?;
        if contents.layout != *layout {
            return Err(malformed("its entries have other fields than those that are written with it"));
        }
        let Layout::Record(fields) = layout else { return Err(malformed("a manifest without records")) };
        let Some((_, Layout::Record(file))) = fields.get(4) else {
            return Err(malformed("an entry without data file"));
        };
        for (count, block) in &contents.blocks {
            let mut cursor = Cursor(block);
            for _ in 0..*count {
                let entry = Entry::read(&mut cursor, fields, file, self.options.deletes)?;
                if entry.status == DELETED {
                    continue;
                }
                self.push_former(&entry, gone.contains(entry.data_location))?;
            }
        }
        Ok(())
    }

    fn push_former(&mut self, entry: &Entry<'_>, is_gone: bool) -> Result<()> {
        let counts = &mut self.counts;
        if is_gone {
            counts.deleted_files_count += 1;
            add_to(&mut counts.deleted_rows_count, entry.rows, "record_count")?;
            add_to(&mut counts.deleted_bytes, entry.size, "file_size_in_bytes")?;
        } else {
            counts.existing_files_count += 1;
            add_to(&mut counts.existing_rows_count, entry.rows, "record_count")?;
        }
        self.note(entry.sequence);
        let (status, snapshot) =
            if is_gone { (DELETED, Some(self.options.snapshot_id)) } else { (EXISTING, entry.snapshot) };
        self.container.push(|out| {
            avro::long(out, status);
            avro::optional_long(out, snapshot);
            avro::optional_long(out, entry.sequence);
            avro::optional_long(out, entry.file_sequence);
            out.extend_from_slice(entry.data_file);
            Ok(())
        })
    }

    fn note(&mut self, sequence: Option<i64>) {
        if let Some(sequence) = sequence {
            let least = self.counts.min_sequence_number.map_or(sequence, |known| known.min(sequence));
            self.counts.min_sequence_number = Some(least);
        }
    }

    fn add(&mut self, files: &Files<'_>, row: usize) -> Result<()> {
        let place = files.locations.value(row);
        let parsed = files
            .statistics
            .is_valid(row)
            .then(|| serde_json::from_str(files.statistics.value(row)))
            .transpose();
        let statistics: Statistics<'_> = parsed
            .map_err(|error| Error::protocol("malformed statistics").at(place).caused_by(error))?
            .unwrap_or_default();
        let records = statistics.num_records.filter(|count| *count >= 0);
        let records = records.ok_or_else(|| {
            Error::protocol("a file's statistics do not say how many rows it has")
                .at(place)
                .expected("numRecords")
        })?;
        let (rows, size) = match (&files.vectors[row], self.options.deletes) {
            (Some(vector), true) => (vector.cardinality, vector_size(vector)),
            (None, true) => {
                return Err(Error::new(Kind::InvalidArgument, "a file without deletion vector").at(place));
            }
            (_, false) => (records, if files.sizes.is_valid(row) { files.sizes.value(row) } else { 0 }),
        };
        self.counts.added_files_count += 1;
        self.counts.added_rows_count += rows;
        self.counts.added_bytes += size;
        // Row commit versions are sequence numbers in Iceberg: a file that was copied from another table
        // keeps its own.
        let version = files
            .versions
            .is_valid(row)
            .then(|| files.versions.value(row))
            .filter(|_| self.options.version >= 3);
        let sequence = if self.options.deletes { None } else { version }
            .unwrap_or(self.options.sequence_number)
            .min(self.options.sequence_number);
        self.note(Some(sequence));
        let options = self.options;
        self.container.push(|out| {
            avro::long(out, ADDED);
            avro::optional_long(out, Some(options.snapshot_id));
            avro::optional_long(out, Some(sequence));
            avro::optional_long(out, Some(options.sequence_number));
            data_file(out, files, row, &statistics, rows, options)
        })
    }
}

/// Adds a number of an older manifest to a total. A sum that exceeds 64 bits is an error.
fn add_to(total: &mut i64, number: i64, name: &str) -> Result<()> {
    let sum = total.checked_add(number).filter(|_| number >= 0);
    *total = sum.ok_or_else(|| {
        malformed("an entry has an impossible number")
            .found(format!("{name} {number}"))
            .expected("0 or more, with a total below 2^63")
    })?;
    Ok(())
}

fn vector_size(vector: &crate::deletion_vector::Descriptor) -> i64 {
    i64::from(vector.size_in_bytes) + FRAME
}

/// Appends the record `data_file`.
fn data_file(
    out: &mut Vec<u8>,
    files: &Files<'_>,
    row: usize,
    statistics: &Statistics<'_>,
    rows: i64,
    options: &Options,
) -> Result<()> {
    let place = files.locations.value(row);
    let vector = files.vectors[row].as_ref().filter(|_| options.deletes);
    let vector_place = files.vector_locations.is_valid(row).then(|| files.vector_locations.value(row));
    let vector = vector.map(|vector| {
        let in_file = Error::new(
            Kind::UnsupportedFeature,
            "a deletion vector in the log itself, which Iceberg cannot refer to",
        )
        .at(place);
        vector_place
            .zip(vector.offset)
            .ok_or(in_file)
            .map(|(path, offset)| (path, i64::from(offset), vector_size(vector)))
    });
    let vector = vector.transpose()?;
    avro::long(out, i64::from(options.deletes));
    avro::bytes(out, vector.map_or(place, |(path, _, _)| path).as_bytes());
    avro::bytes(out, if options.deletes { b"PUFFIN" } else { b"PARQUET" });
    for (texts, data_type) in &files.partition {
        let value = texts.is_valid(row).then(|| texts.value(row));
        values::partition(out, value, data_type).map_err(|error| error.at(place))?;
    }
    avro::long(out, rows);
    let size = vector.and_then(|(path, _, _)| files.ends.get(path).copied());
    avro::long(out, size.unwrap_or(if files.sizes.is_valid(row) { files.sizes.value(row) } else { 0 }));
    bounds(out, files, statistics, vector.is_some());
    if options.version >= 3 {
        let first = files.first_row_ids.is_valid(row).then(|| files.first_row_ids.value(row));
        avro::optional_long(out, first.filter(|_| vector.is_none()));
        match vector {
            None => (0..3).for_each(|_| avro::long(out, 0)),
            Some((_, offset, size)) => {
                avro::long(out, 1);
                avro::bytes(out, place.as_bytes());
                avro::optional_long(out, Some(offset));
                avro::optional_long(out, Some(size));
            }
        }
    }
    Ok(())
}

/// Appends the four maps of statistics by column: values, nulls, lower and upper bounds; four nulls for a
/// deletion vector.
fn bounds(out: &mut Vec<u8>, files: &Files<'_>, statistics: &Statistics<'_>, is_vector: bool) {
    let (mut values, mut nulls, mut lower, mut upper) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let records = statistics.num_records.unwrap_or(0);
    let leaves: &[Column<'_>] = if is_vector { &[] } else { &files.leaves };
    for column in leaves {
        let count = stated(statistics.null_count.as_ref(), &column.physical)
            .and_then(|text| text.parse::<i64>().ok());
        if let Some(count) = count {
            values.push((column.id, records));
            nulls.push((column.id, count));
        }
        let of = |object: Option<&Object<'_>>, side| {
            let text = stated(object, &column.physical)?;
            values::bound(text, column.data_type, column.was_float, side).map(|bytes| (column.id, bytes))
        };
        lower.extend(of(statistics.min_values.as_ref(), Side::Low));
        upper.extend(of(statistics.max_values.as_ref(), Side::High));
    }
    for counts in [values, nulls] {
        entries(out, &counts, |out, value| avro::long(out, *value));
    }
    for sides in [lower, upper] {
        entries(out, &sides, |out, value| avro::bytes(out, value));
    }
}

/// Appends a map from column ids, or null if it is empty.
fn entries<T>(out: &mut Vec<u8>, items: &[(i32, T)], write: impl Fn(&mut Vec<u8>, &T)) {
    if items.is_empty() {
        return avro::long(out, 0);
    }
    avro::long(out, 1);
    avro::long(out, items.len() as i64);
    for (id, value) in items {
        avro::long(out, i64::from(*id));
        write(out, value);
    }
    avro::long(out, 0);
}

/// An entry of an older manifest.
struct Entry<'a> {
    status: i64,
    snapshot: Option<i64>,
    sequence: Option<i64>,
    file_sequence: Option<i64>,
    /// Address of the data file; for a deletion vector, of the file whose rows it deletes.
    data_location: &'a str,
    rows: i64,
    size: i64,
    /// Bytes of the record `data_file`.
    data_file: &'a [u8],
}

impl<'a> Entry<'a> {
    fn read(
        cursor: &mut Cursor<'a>,
        fields: &[(String, Layout)],
        file: &[(String, Layout)],
        deletes: bool,
    ) -> Result<Self> {
        let mut numbers = [None; 4];
        for (number, (_, layout)) in numbers.iter_mut().zip(fields) {
            *number = match layout {
                Layout::Union(branches) if *cursor.branch(branches)? == Layout::Null => None,
                _ => Some(cursor.long()?),
            };
        }
        let whole = cursor.0;
        let (mut data_location, mut rows, mut size) = ("", 0, 0);
        for (name, layout) in file {
            match name.as_str() {
                "file_path" if !deletes => data_location = cursor.text()?,
                "referenced_data_file" if deletes => {
                    cursor.long()?;
                    data_location = cursor.text()?;
                }
                "record_count" => rows = cursor.long()?,
                "file_size_in_bytes" => size = cursor.long()?,
                _ => cursor.skip(layout)?,
            }
        }
        let data_file = &whole[..whole.len() - cursor.0.len()];
        let [status, snapshot, sequence, file_sequence] = numbers;
        Ok(Self {
            status: status.unwrap_or(EXISTING),
            snapshot,
            sequence,
            file_sequence,
            data_location,
            rows,
            size,
            data_file,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_of_older_entries_are_bounded() {
        let mut total = 0;
        add_to(&mut total, i64::MAX, "record_count").unwrap();
        for number in [1, -1] {
            let error = add_to(&mut total, number, "record_count").unwrap_err().to_string();
            let expected =
                format!("found record_count {number}; expected 0 or more, with a total below 2^63");
            assert!(error.ends_with(&expected), "{error}");
        }
        assert_eq!(total, i64::MAX);
    }
}
