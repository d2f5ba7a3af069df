//! Lists live files as users see them, with decoded paths and typed partition values and statistics
//! (`DeltaTable.files()`).

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Int64Array, ListArray, RecordBatch, StringArray, StructArray, TimestampMillisecondArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Fields, Schema};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::deletion_vector::columns;
use crate::deletion_vector::descriptor::{self, Descriptor};
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::log::schema::{long, map, map_values, nested, text, vectors};
use crate::log::skipping::statistics::{Statistics, StatisticsColumn, num_records, parse_as_written};
use crate::parallel::on_threads;
use crate::schema::partition_values::parse_array;
use crate::schema::{Leaf, TableSchema, Type};
use crate::store::Store;
use crate::store::path::{Place, locate_encoded};

/// The characters that are encoded in the path of a URL.
const NOT_IN_URLS: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The options of a listing of a table's files.
#[derive(Debug, Clone)]
pub struct Listing {
    schema: Arc<TableSchema>,
    leaves: Vec<Leaf>,
    root: String,
}

impl Listing {
    /// Prepares a listing. `columns`: the columns whose statistics are listed; a struct stands for all its
    /// fields. `None`: all columns that may have statistics.
    pub fn new(schema: Arc<TableSchema>, columns: Option<&[String]>, root: &str) -> Result<Self> {
        let names: Vec<Vec<String>> = match columns {
            Some(columns) => columns
                .iter()
                .map(|column| schema.leaf(column).map(|leaf| leaf.path))
                .collect::<Result<_>>()?,
            None => schema.fields().iter().map(|field| vec![field.name.clone()]).collect(),
        };
        let mut leaves = Vec::new();
        for name in names {
            collect_leaves(&schema, name, &mut leaves)?;
        }
        Ok(Self { schema, leaves, root: root.to_owned() })
    }

    /// Returns the rows of `add` actions. With a store, they include `deleted_rows`, read from the vectors.
    pub fn of(
        &self,
        adds: &[RecordBatch],
        vectors_in: Option<&dyn Store>,
        interrupt: &Interrupt,
    ) -> Result<Vec<RecordBatch>> {
        on_threads(adds, interrupt, &|batch| self.rows(batch, vectors_in))
    }

    fn rows(&self, adds: &RecordBatch, vectors_in: Option<&dyn Store>) -> Result<RecordBatch> {
        let stats = text(adds, "stats")?;
        let wanted: Vec<StatisticsColumn<'_>> = self
            .leaves
            .iter()
            .map(|leaf| StatisticsColumn {
                path: &leaf.physical,
                data_type: &leaf.data_type,
                was_float: false,
            })
            .collect();
        let statistics = parse_as_written(stats, &wanted)?;
        let (paths, locations) = self.places(text(adds, "path")?)?;
        let modified: TimestampMillisecondArray = long(adds, "modificationTime")?.iter().collect();
        let mut columns: Vec<(&str, ArrayRef)> = vec![
            ("path", Arc::new(paths)),
            ("location", Arc::new(locations)),
            ("size", Arc::new(long(adds, "size")?.clone())),
            ("modification_time", Arc::new(modified.with_timezone("UTC"))),
            ("partition_values", self.partition_values(adds)?),
            ("num_records", Arc::new(statistics.num_records.clone())),
        ];
        columns.extend(self.statistics(&statistics, adds.num_rows())?);
        columns.push(("deletion_vector", descriptors(vectors(adds)?)?));
        columns.push(("tags", Arc::new(map(adds, "tags")?.clone())));
        if let Some(store) = vectors_in {
            columns.push(("deleted_rows", deleted_rows(adds, store)?));
        }
        let fields: Vec<Field> =
            columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
    }

    fn places(&self, paths: &StringArray) -> Result<(StringArray, StringArray)> {
        let (mut shown, mut locations) = (Vec::with_capacity(paths.len()), Vec::with_capacity(paths.len()));
        for path in paths.iter().flatten() {
            match locate_encoded(&self.root, path)? {
                Place::Inside(path) => {
                    let root = self.root.trim_end_matches('/');
                    let is_url = root.contains("://");
                    locations.push(if is_url {
                        format!("{root}/{}", utf8_percent_encode(&path, NOT_IN_URLS))
                    } else {
                        format!("{root}/{path}")
                    });
                    shown.push(path);
                }
                Place::Outside(location) => {
                    locations.push(location.clone());
                    shown.push(location);
                }
            }
        }
        Ok((StringArray::from(shown), StringArray::from(locations)))
    }

    fn partition_values(&self, adds: &RecordBatch) -> Result<ArrayRef> {
        let maps = map(adds, "partitionValues")?;
        let mut columns = Vec::new();
        for field in self.schema.partition_fields() {
            let values = parse_array(
                &map_values(maps, self.schema.physical_name(field)),
                &field.data_type.to_arrow(false),
            )
            .map_err(|error| error.at(format!("partition value of {}", field.name)))?;
            columns.push((vec![field.name.clone()], values));
        }
        as_struct(&columns, adds.num_rows())
    }

    fn statistics(&self, statistics: &Statistics, rows: usize) -> Result<[(&'static str, ArrayRef); 3]> {
        let (mut nulls, mut min, mut max) = (Vec::new(), Vec::new(), Vec::new());
        for (leaf, known) in self.leaves.iter().zip(&statistics.columns) {
            nulls.push((leaf.path.clone(), Arc::new(known.null_count.clone()) as ArrayRef));
            if !matches!(leaf.data_type, DataType::Binary | DataType::Boolean) {
                min.push((leaf.path.clone(), known.min.clone()));
                max.push((leaf.path.clone(), known.max.clone()));
            }
        }
        Ok([
            ("null_count", as_struct(&nulls, rows)?),
            ("min_values", as_struct(&min, rows)?),
            ("max_values", as_struct(&max, rows)?),
        ])
    }
}

fn collect_leaves(schema: &TableSchema, path: Vec<String>, leaves: &mut Vec<Leaf>) -> Result<()> {
    let leaf = schema.leaf_at(&path)?;
    match &leaf.delta_type {
        _ if leaf.partition => {}
        Type::Struct(fields) => {
            for field in fields {
                collect_leaves(
                    schema,
                    [path.as_slice(), std::slice::from_ref(&field.name)].concat(),
                    leaves,
                )?;
            }
        }
        Type::Primitive(_) => leaves.push(leaf),
        Type::Array(..) | Type::Map(..) | Type::Variant | Type::Shape(_) => {}
    }
    Ok(())
}

fn as_struct(columns: &[(Vec<String>, ArrayRef)], rows: usize) -> Result<ArrayRef> {
    let columns: Vec<_> = columns.iter().map(|(path, array)| (path.as_slice(), Arc::clone(array))).collect();
    Ok(Arc::new(nested(&columns, rows)?))
}

/// Returns the descriptors with their fields in snake_case.
fn descriptors(vectors: &StructArray) -> Result<ArrayRef> {
    const NAMES: [&str; 5] = ["storage_type", "path_or_inline_dv", "offset", "size_in_bytes", "cardinality"];
    let fields = NAMES
        .iter()
        .zip(vectors.fields())
        .map(|(name, field)| Field::new(*name, field.data_type().clone(), true))
        .collect::<Vec<_>>();
    Ok(Arc::new(StructArray::try_new_with_length(
        Fields::from(fields),
        vectors.columns().to_vec(),
        vectors.nulls().cloned(),
        vectors.len(),
    )?))
}

/// Returns the row indexes that each file's vector deletes, ascending; none for a file without a vector.
fn deleted_rows(adds: &RecordBatch, store: &dyn Store) -> Result<ArrayRef> {
    let physical = num_records(text(adds, "stats")?);
    let wanted = |(descriptor, num_records): (Option<Descriptor>, Option<i64>)| {
        Some(descriptor::VectorRequest {
            descriptor: descriptor?,
            num_records: num_records.map(|count| count as u64),
        })
    };
    let wanted: Vec<_> = columns::read(vectors(adds)?)?.into_iter().zip(&physical).map(wanted).collect();
    let (mut rows, mut lengths) = (Vec::new(), Vec::with_capacity(wanted.len()));
    for vector in descriptor::read_all(store, &wanted)? {
        let before = rows.len();
        if let Some(vector) = vector {
            rows.extend(vector.to_rows()?.into_iter().map(|row| row as i64));
        }
        lengths.push(rows.len() - before);
    }
    let field = Arc::new(Field::new("element", DataType::Int64, false));
    Ok(Arc::new(ListArray::try_new(
        field,
        OffsetBuffer::from_lengths(lengths),
        Arc::new(Int64Array::from(rows)),
        None,
    )?))
}
