//! Converts any Arrow data to a table's logical columns: matched by name in any case, in the table's order,
//! cast if no value changes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, MapArray, RecordBatch, RecordBatchOptions,
    StructArray, new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::kernels::cmp::not_distinct;
use arrow::compute::{CastOptions, cast, cast_with_options, is_null, nullif};
use arrow::datatypes::{DataType, Field as ArrowField, Fields, Schema, SchemaRef, TimeUnit};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::cast::micros;
use crate::error::{Error, Kind, Result};
use crate::schema::from_arrow::type_from_arrow;
use crate::schema::{Field, TableSchema, Type};

/// The treatment of a value that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CastPolicy {
    /// The value is an error.
    Strict,
    /// The value becomes null.
    Try,
}

/// A conversion of an array to another type.
#[derive(Debug)]
enum Step {
    Same,
    Null,
    /// Converts an array of nulls to the type of nulls. The array's own type may be any other, as engines
    /// need a type for each column; it must hold only nulls.
    OnlyNulls,
    /// Casts to a type that has an equal value for each value of the array's type.
    Plain,
    Micros,
    /// Casts each value, and checks that it does not change.
    Checked,
    /// Casts to this type (the plain form of an encoding, such as the values of a dictionary), and then
    /// applies the next step.
    Unpack(DataType, Box<Step>),
    Struct(Vec<Option<(usize, Step)>>),
    List(Box<Step>),
    Map(Box<Step>, Box<Step>),
}

/// The conversion of one schema to a table's columns. Top-level columns of the result are nullable; the
/// writer checks for nulls.
#[derive(Debug)]
pub struct Conform {
    output: SchemaRef,
    steps: Vec<Option<(usize, Step)>>,
    casting: CastPolicy,
    done: u64,
}

impl Conform {
    /// Prepares the conversion of a stream of batches: finds columns and casts once, by the schema `input`.
    pub fn new(schema: &TableSchema, input: &Schema, casting: CastPolicy) -> Result<Self> {
        let fields: Vec<ArrowField> =
            schema.fields().iter().map(|field| field.to_arrow(false).with_nullable(true)).collect();
        let steps = steps_of(schema.fields(), input.fields(), "")?;
        Ok(Self { output: Arc::new(Schema::new(fields)), steps, casting, done: 0 })
    }
    /// Returns the result's schema.
    pub fn schema(&self) -> &SchemaRef {
        &self.output
    }
    /// Converts the next batch.
    pub fn apply(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let context = Context { casting: self.casting, first: self.done };
        let column = |(step, field): (&Option<(usize, Step)>, &Arc<ArrowField>)| match step {
            None => Ok(new_null_array(field.data_type(), batch.num_rows())),
            Some((index, step)) => context.apply(step, batch.column(*index), field.data_type(), field.name()),
        };
        let columns = self.steps.iter().zip(self.output.fields()).map(column).collect::<Result<Vec<_>>>()?;
        self.done += batch.num_rows() as u64;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.output), columns, &options)?)
    }
}

fn mismatch(message: String, place: &str) -> Error {
    Error::new(Kind::SchemaMismatch, message).at(format!("column {place}"))
}

fn join(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

fn steps_of(fields: &[Field], found: &Fields, place: &str) -> Result<Vec<Option<(usize, Step)>>> {
    let wanted: HashSet<String> = fields.iter().map(|field| field.name.to_lowercase()).collect();
    let mut places = HashMap::with_capacity(found.len());
    for (index, field) in found.iter().enumerate() {
        let name = field.name().to_lowercase();
        let shown = || join(place, field.name());
        if places.insert(name.clone(), index).is_some() {
            return Err(mismatch(
                "the data has the column twice (names are compared without case)".to_owned(),
                &shown(),
            ));
        }
        if !wanted.contains(&name) {
            let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
            return Err(mismatch("the table has no such column".to_owned(), &shown())
                .expected(format!("one of {}", names.join(", "))));
        }
    }
    let step = |field: &Field| match places.get(&field.name.to_lowercase()) {
        None => Ok(None),
        Some(&index) => {
            Ok(Some((index, step_of(&field.data_type, found[index].data_type(), &join(place, &field.name))?)))
        }
    };
    fields.iter().map(step).collect()
}

fn step_of(wanted: &Type, found: &DataType, place: &str) -> Result<Step> {
    let target = wanted.to_arrow(false);
    if *found == target {
        return Ok(Step::Same);
    }
    let unpacked = match found {
        DataType::Null => return Ok(Step::Null),
        DataType::Dictionary(_, values) => Some(values.as_ref().clone()),
        DataType::RunEndEncoded(_, values) => Some(values.data_type().clone()),
        DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => Some(DataType::List(Arc::clone(item))),
        _ => None,
    };
    if let Some(plain) = unpacked {
        let rest = step_of(wanted, &plain, place)?;
        return Ok(Step::Unpack(plain, Box::new(rest)));
    }
    match (wanted, found) {
        (Type::Struct(fields), DataType::Struct(children)) => {
            Ok(Step::Struct(steps_of(fields, children, place)?))
        }
        (Type::Variant, DataType::Struct(children)) if children.len() == 2 => {
            Ok(Step::Struct(steps_of(&Type::variant_fields(), children, place)?))
        }
        (Type::Array(element, _), DataType::List(item)) => {
            Ok(Step::List(Box::new(step_of(element, item.data_type(), &join(place, "element"))?)))
        }
        (Type::Map(key, value, _), DataType::Map(entries, _)) => match entries.data_type() {
            DataType::Struct(parts) if parts.len() == 2 => {
                let keys = step_of(key, parts[0].data_type(), &join(place, "key"))?;
                Ok(Step::Map(
                    Box::new(keys),
                    Box::new(step_of(value, parts[1].data_type(), &join(place, "value"))?),
                ))
            }
            _ => Err(wrong_type(&target, found, place)),
        },
        (Type::Primitive(_), _) if target == DataType::Null => Ok(Step::OnlyNulls),
        (Type::Primitive(_) | Type::Shape(_), _) => {
            primitive_step(&target, found).ok_or_else(|| wrong_type(&target, found, place))
        }
        _ => Err(wrong_type(&target, found, place)),
    }
}

fn wrong_type(target: &DataType, found: &DataType, place: &str) -> Error {
    mismatch("the data has a type that the column cannot take".to_owned(), place)
        .found(type_name(found))
        .expected(type_name(target))
}

/// Returns Delta's name of a type, such as `decimal(10,2)`; Arrow's name of a nested type, and of one that
/// Delta does not have.
fn type_name(data_type: &DataType) -> String {
    match type_from_arrow(data_type, "") {
        Ok(Type::Primitive(primitive)) => primitive.name(),
        _ => data_type.to_string(),
    }
}

fn primitive_step(target: &DataType, found: &DataType) -> Option<Step> {
    use DataType::{
        Binary, BinaryView, Date32, Date64, Decimal32, Decimal64, Decimal128, Decimal256, FixedSizeBinary,
        Float16, Float32, Float64, LargeBinary, LargeUtf8, Timestamp, Utf8, Utf8View,
    };
    let numeric = |data_type: &DataType| {
        data_type.is_integer()
            || matches!(
                data_type,
                Float16 | Float32 | Float64 | Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..)
            )
    };
    match (found, target) {
        (Timestamp(_, _), Timestamp(TimeUnit::Microsecond, _)) => Some(Step::Micros),
        (LargeUtf8 | Utf8View, Utf8)
        | (LargeBinary | BinaryView | FixedSizeBinary(_), Binary)
        | (Utf8 | LargeUtf8 | Utf8View, Binary) => Some(Step::Plain),
        (Date64, Date32) => Some(Step::Plain),
        (Date32, Timestamp(TimeUnit::Microsecond, _)) => Some(Step::Plain),
        (Date64, Timestamp(TimeUnit::Microsecond, _)) => Some(Step::Unpack(Date32, Box::new(Step::Plain))),
        (found, target) if numeric(found) && numeric(target) => {
            Some(if lossless(found, target) { Step::Plain } else { Step::Checked })
        }
        _ => None,
    }
}

/// True if each value of the type `found` has an equal value in the type `target`.
fn lossless(found: &DataType, target: &DataType) -> bool {
    use DataType::{Float16, Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32};
    matches!(
        (found, target),
        (Int8, Int16 | Int32 | Int64 | Float32 | Float64)
            | (Int16, Int32 | Int64 | Float32 | Float64)
            | (Int32, Int64 | Float64)
            | (UInt8, Int16 | Int32 | Int64 | Float32 | Float64)
            | (UInt16, Int32 | Int64 | Float32 | Float64)
            | (UInt32, Int64 | Float64)
            | (Float16, Float32 | Float64)
            | (Float32, Float64)
    )
}

/// The properties of a stream on which a conversion depends.
struct Context {
    casting: CastPolicy,
    first: u64,
}

impl Context {
    fn apply(&self, step: &Step, array: &ArrayRef, target: &DataType, place: &str) -> Result<ArrayRef> {
        match step {
            Step::Same => Ok(Arc::clone(array)),
            Step::Null => Ok(new_null_array(target, array.len())),
            Step::OnlyNulls => self.only_nulls(array, place),
            Step::Plain => Ok(cast(array, target)?),
            Step::Micros => self.timestamps(array, target, place),
            Step::Checked => self.checked(array, target, place),
            Step::Unpack(plain, rest) => self.apply(rest, &cast(array, plain)?, target, place),
            Step::Struct(steps) => self.structs(steps, array, target, place),
            Step::List(step) => self.lists(step, array, target, place),
            Step::Map(keys, values) => self.maps(keys, values, array, target, place),
        }
    }

    fn timestamps(&self, array: &ArrayRef, target: &DataType, place: &str) -> Result<ArrayRef> {
        micros(array, target)
            .map_err(|error| mismatch(error.message().to_owned(), place).expected(type_name(target)))
    }

    fn only_nulls(&self, array: &ArrayRef, place: &str) -> Result<ArrayRef> {
        let nulls = is_null(array)?;
        match (0..array.len()).find(|&at| !nulls.value(at)) {
            Some(at) if self.casting == CastPolicy::Strict => Err(mismatch(
                format!("row {}: a value in a column without a type", self.first + at as u64),
                place,
            )
            .found(format!("{} ({})", shown(array, at), type_name(array.data_type())))
            .expected("nothing but nulls, as the column has no type (void)")),
            _ => Ok(new_null_array(&DataType::Null, array.len())),
        }
    }

    /// Casts values. A value does not fit if casting it there and back changes it.
    fn checked(&self, array: &ArrayRef, target: &DataType, place: &str) -> Result<ArrayRef> {
        let options = CastOptions { safe: true, format_options: FormatOptions::default() };
        let found = cast_with_options(array, target, &options)?;
        let back = cast_with_options(&found, array.data_type(), &options)?;
        let fits = not_distinct(
            &super::super::predicate::statistics::normalise(array),
            &super::super::predicate::statistics::normalise(&back),
        )?;
        if fits.false_count() == 0 {
            return Ok(found);
        }
        match self.casting {
            CastPolicy::Try => Ok(nullif(&found, &arrow::compute::not(&fits)?)?),
            CastPolicy::Strict => {
                let at = (0..fits.len()).find(|&at| !fits.value(at)).unwrap_or_default();
                let shown = shown(array, at);
                Err(mismatch(
                    format!("row {}: the value cannot be converted without loss", self.first + at as u64),
                    place,
                )
                .found(format!("{shown} ({})", type_name(array.data_type())))
                .expected(type_name(target)))
            }
        }
    }

    fn structs(
        &self,
        steps: &[Option<(usize, Step)>],
        array: &ArrayRef,
        target: &DataType,
        place: &str,
    ) -> Result<ArrayRef> {
        let (DataType::Struct(fields), found) = (target, array.as_struct()) else {
            return Err(wrong_type(target, array.data_type(), place));
        };
        let child = |(step, field): (&Option<(usize, Step)>, &Arc<ArrowField>)| {
            let inner = join(place, field.name());
            let child = match step {
                None => new_null_array(field.data_type(), found.len()),
                Some((index, step)) => self.apply(step, found.column(*index), field.data_type(), &inner)?,
            };
            self.refuse_nulls(&child, found.nulls(), field, &inner, |at| at)?;
            Ok(child)
        };
        let children = steps.iter().zip(fields).map(child).collect::<Result<Vec<_>>>()?;
        if fields.is_empty() {
            return Ok(Arc::new(StructArray::new_empty_fields(found.len(), found.nulls().cloned())));
        }
        Ok(Arc::new(StructArray::try_new(fields.clone(), children, found.nulls().cloned())?))
    }

    fn lists(&self, step: &Step, array: &ArrayRef, target: &DataType, place: &str) -> Result<ArrayRef> {
        let (DataType::List(field), found) = (target, array.as_list::<i32>()) else {
            return Err(wrong_type(target, array.data_type(), place));
        };
        let inner = join(place, field.name());
        let values = self.apply(step, found.values(), field.data_type(), &inner)?;
        self.refuse_nulls(&values, None, field, &inner, |at| row_of(found.value_offsets(), at))?;
        Ok(Arc::new(ListArray::try_new(
            Arc::clone(field),
            found.offsets().clone(),
            values,
            found.nulls().cloned(),
        )?))
    }

    fn maps(
        &self,
        keys: &Step,
        values: &Step,
        array: &ArrayRef,
        target: &DataType,
        place: &str,
    ) -> Result<ArrayRef> {
        let (DataType::Map(field, _), found) = (target, array.as_map()) else {
            return Err(wrong_type(target, array.data_type(), place));
        };
        let DataType::Struct(parts) = field.data_type() else {
            return Err(wrong_type(target, array.data_type(), place));
        };
        let mut children = Vec::with_capacity(2);
        for (step, child, part) in [(keys, found.keys(), &parts[0]), (values, found.values(), &parts[1])] {
            let inner = join(place, part.name());
            let child = self.apply(step, child, part.data_type(), &inner)?;
            self.refuse_nulls(&child, None, part, &inner, |at| row_of(found.value_offsets(), at))?;
            children.push(child);
        }
        let entries = StructArray::try_new(parts.clone(), children, None)?;
        Ok(Arc::new(MapArray::try_new(
            Arc::clone(field),
            found.offsets().clone(),
            entries,
            found.nulls().cloned(),
            false,
        )?))
    }

    /// Returns an error for a null in a child that must not be null, below a parent that is not null.
    fn refuse_nulls(
        &self,
        child: &ArrayRef,
        parent: Option<&NullBuffer>,
        field: &ArrowField,
        place: &str,
        row: impl Fn(usize) -> usize,
    ) -> Result<()> {
        if field.is_nullable() || child.logical_null_count() == 0 {
            return Ok(());
        }
        match first_null(child, parent)? {
            None => Ok(()),
            Some(at) => Err(null_in(place, self.first + row(at) as u64)),
        }
    }
}

/// Returns the error for a null that is not allowed.
pub fn null_in(place: &str, row: u64) -> Error {
    Error::new(
        Kind::ConstraintViolation,
        format!("column {place} is NOT NULL and row {row} of the data has a null there"),
    )
}

/// Returns the position of the first null below a parent that is not null.
pub fn first_null(array: &ArrayRef, parent: Option<&NullBuffer>) -> Result<Option<usize>> {
    let nulls: BooleanArray = is_null(array)?;
    Ok((0..array.len()).find(|&at| nulls.value(at) && parent.is_none_or(|parent| parent.is_valid(at))))
}

/// Returns the index of the list with the element at `at`.
fn row_of(offsets: &[i32], at: usize) -> usize {
    offsets.partition_point(|&offset| offset as usize <= at).saturating_sub(1)
}

fn shown(array: &ArrayRef, at: usize) -> String {
    let options = FormatOptions::default();
    ArrayFormatter::try_new(array, &options)
        .map(|formatter| formatter.value(at).to_string())
        .unwrap_or_default()
}
