//! Writes manifests and their totals: entries for the files of add actions, and entries copied from older
//! manifests.

use std::collections::{BTreeMap, HashSet};

use arrow::array::RecordBatch;
use serde::{Deserialize, Serialize};

use super::avro::{self, Container, Cursor, Layout, malformed};
use super::entry::{ADDED, AddedFiles, DELETED, EXISTING, FormerEntry, avro_schema, vector_size};
use crate::error::{Error, Kind, Result};
use crate::schema::TableSchema;

/// The settings of a manifest.
#[derive(Debug, Deserialize)]
pub struct Options {
    /// The version of the format: 2 or 3.
    pub version: u8,
    /// True if the entries are deletion vectors, and not data files.
    pub deletes: bool,
    /// The snapshot that adds and deletes entries.
    pub snapshot_id: i64,
    /// The snapshot's sequence number.
    pub sequence_number: i64,
    /// The partition spec: a name for Avro and an id for each partition column.
    pub partition: Vec<(String, i32)>,
    /// Further metadata of the Avro file.
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
    let files = AddedFiles::of(adds, schema)?;
    for row in 0..adds.num_rows() {
        writer.add(&files, row)?;
    }
    Ok((writer.container.finish()?, writer.counts))
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
                let entry = FormerEntry::read(&mut cursor, fields, file, self.options.deletes)?;
                if entry.status == DELETED {
                    continue;
                }
                self.push_former(&entry, gone.contains(entry.data_location))?;
            }
        }
        Ok(())
    }

    fn push_former(&mut self, entry: &FormerEntry<'_>, is_gone: bool) -> Result<()> {
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

    fn add(&mut self, files: &AddedFiles<'_>, row: usize) -> Result<()> {
        let place = files.location(row);
        let statistics = files.statistics(row)?;
        let records = statistics.num_records.filter(|count| *count >= 0);
        let records = records.ok_or_else(|| {
            Error::protocol("a file's statistics do not say how many rows it has")
                .at(place)
                .expected("numRecords")
        })?;
        let (rows, size) = match (files.vector(row), self.options.deletes) {
            (Some(vector), true) => (vector.cardinality, vector_size(vector)),
            (None, true) => {
                return Err(Error::new(Kind::InvalidArgument, "a file without deletion vector").at(place));
            }
            (_, false) => (records, files.size(row)),
        };
        self.counts.added_files_count += 1;
        self.counts.added_rows_count += rows;
        self.counts.added_bytes += size;
        // Row commit versions are sequence numbers in Iceberg: a file that was copied from another table
        // keeps its own.
        let version = files.version(row).filter(|_| self.options.version >= 3);
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
            files.write(out, row, &statistics, rows, options)
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
