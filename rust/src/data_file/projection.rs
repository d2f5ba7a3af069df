//! Converts physical columns of a file to logical columns of the table: found by name or field id, cast, and
//! filled in if missing.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field as ArrowField, Fields, Schema, TimeUnit};
use parquet::basic::Type as PhysicalType;
use parquet::schema::types::SchemaDescriptor;
use parquet_variant_compute::{VariantArray, unshred_variant};

use super::cast::{Cast, cast_for};
use crate::error::{Error, Result};
use crate::expressions::check_value;
use crate::schema::{ColumnMapping, Field, Type};

/// Key under which arrow-rs keeps a Parquet field id.
const PARQUET_FIELD_ID: &str = "PARQUET:field_id";

/// Finds the table's columns in a data file: by physical name, or by field id.
#[derive(Debug, Clone, Copy)]
pub struct Finder {
    mapping: ColumnMapping,
    by_id: bool,
}

/// The conversion of a decoded array to the table's type.
#[derive(Debug)]
pub enum Adaptation {
    /// No conversion: the array has the type already.
    Same,
    /// A cast that loses nothing.
    Cast(Cast),
    /// The conversion of each field: its position in the decoded struct and its own conversion, or `None` if
    /// the file does not have the field.
    Struct(Fields, Vec<Option<(usize, Adaptation)>>),
    /// The field that the list's child gets, and the child's conversion.
    List(Arc<ArrowField>, Box<Adaptation>),
    /// The field that the map's entries get, and the conversions of keys and of values.
    Map(Arc<ArrowField>, Box<Adaptation>, Box<Adaptation>),
    /// The conversion of a shredded variant, whose values are in typed columns: they are joined to the plain
    /// encoding (parquet-format, VariantShredding.md).
    Unshred,
}

impl Finder {
    /// Makes a finder for a file with this Arrow schema. A file without field ids is read by name, also in
    /// mode id.
    pub fn new(mapping: ColumnMapping, schema: &Schema) -> Self {
        let by_id = mapping == ColumnMapping::Id
            && schema.fields().iter().any(|field| field.metadata().contains_key(PARQUET_FIELD_ID));
        Self { mapping, by_id }
    }

    /// Returns the position of a logical field in the file.
    pub fn find(&self, field: &Field, fields: &Fields) -> Option<usize> {
        // A field without an id does not belong to the schema.
        if self.by_id
            && let Some(id) = field.id()
        {
            let id = id.to_string();
            return fields.iter().position(|other| other.metadata().get(PARQUET_FIELD_ID) == Some(&id));
        }
        let name = if self.mapping == ColumnMapping::None { &field.name } else { field.physical_name() };
        let exact = fields.iter().position(|other| other.name() == name);
        exact.or_else(|| {
            let lower = name.to_lowercase();
            fields.iter().position(|other| other.name().to_lowercase() == lower)
        })
    }

    /// Marks in `wanted` (one per leaf of the file, from `first` on) the leaves needed for `data_type`.
    pub fn mark(&self, data_type: &Type, found: &DataType, first: usize, wanted: &mut [bool]) {
        match (data_type, found) {
            (Type::Struct(fields), DataType::Struct(children)) => {
                let mut any = false;
                for field in fields {
                    if let Some(index) = self.find(field, children) {
                        let at = first
                            + children[..index].iter().map(|child| leaves(child.data_type())).sum::<usize>();
                        self.mark(&field.data_type, children[index].data_type(), at, wanted);
                        any = true;
                    }
                }
                // If the file has none of its fields, one leaf is still read to find out which structs are
                // null.
                if let (false, Some(flag)) = (any, wanted.get_mut(first)) {
                    *flag = true;
                }
            }
            (Type::Array(element, _), DataType::List(child)) => {
                self.mark(element, child.data_type(), first, wanted)
            }
            (Type::Map(key, value, _), DataType::Map(entries, _)) => {
                if let DataType::Struct(parts) = entries.data_type()
                    && let [keys, values] = &parts[..]
                {
                    // All leaves of a map's keys are needed.
                    wanted
                        .iter_mut()
                        .skip(first)
                        .take(leaves(keys.data_type()))
                        .for_each(|flag| *flag = true);
                    self.mark(key, keys.data_type(), first, wanted);
                    self.mark(value, values.data_type(), first + leaves(keys.data_type()), wanted);
                }
            }
            _ => wanted.iter_mut().skip(first).take(leaves(found)).for_each(|flag| *flag = true),
        }
    }

    /// Returns how to convert an array of type `found` to `target`. `place`: the column, for errors.
    pub fn adapt(
        &self,
        data_type: &Type,
        target: &DataType,
        found: &DataType,
        place: &str,
    ) -> Result<Adaptation> {
        let within = |data_type: &Type, target: &ArrowField, child: &ArrowField, name: &str| {
            self.adapt(data_type, target.data_type(), child.data_type(), &format!("{place}.{name}"))
        };
        match (data_type, target, found) {
            (Type::Primitive(_) | Type::Shape(_), _, _) if target == found => Ok(Adaptation::Same),
            (Type::Primitive(_) | Type::Shape(_), _, _) => match cast_for(found, target) {
                Some(cast) => Ok(Adaptation::Cast(cast)),
                None => Err(mismatch(place, target, found)),
            },
            (Type::Struct(fields), DataType::Struct(targets), DataType::Struct(children)) => {
                let child = |(field, target): (&Field, &Arc<ArrowField>)| match self.find(field, children) {
                    None => Ok(None),
                    Some(index) => {
                        Ok(Some((index, within(&field.data_type, target, &children[index], &field.name)?)))
                    }
                };
                let parts = fields.iter().zip(targets).map(child).collect::<Result<Vec<_>>>()?;
                Ok(Adaptation::Struct(targets.clone(), parts))
            }
            (Type::Variant, DataType::Struct(_), DataType::Struct(children)) => {
                if children.iter().any(|child| child.name() == "typed_value") {
                    return Ok(Adaptation::Unshred);
                }
                let parts = Type::variant_fields();
                if let Some(part) = parts.iter().find(|part| self.find(part, children).is_none()) {
                    return Err(mismatch(place, target, found).expected(&part.name));
                }
                self.adapt(&Type::Struct(parts), target, found, place)
            }
            (Type::Array(element, _), DataType::List(target), DataType::List(child)) => {
                let inner = within(element, target, child, "element")?;
                Ok(Adaptation::List(Arc::clone(target), Box::new(inner)))
            }
            (Type::Map(key, value, _), DataType::Map(target, _), DataType::Map(entries, _)) => {
                match (target.data_type(), entries.data_type()) {
                    (DataType::Struct(targets), DataType::Struct(parts)) if parts.len() == 2 => {
                        let keys = within(key, &targets[0], &parts[0], "key")?;
                        let values = within(value, &targets[1], &parts[1], "value")?;
                        Ok(Adaptation::Map(Arc::clone(target), Box::new(keys), Box::new(values)))
                    }
                    _ => Err(mismatch(place, target.data_type(), entries.data_type())),
                }
            }
            _ => Err(mismatch(place, target, found)),
        }
    }
}

fn mismatch(place: &str, target: &DataType, found: &DataType) -> Error {
    Error::protocol(format!("column {place} of the file has another type than the table's"))
        .found(found)
        .expected(target)
}

/// Returns the number of Parquet leaves of an Arrow type.
pub fn leaves(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(fields) => fields.iter().map(|field| leaves(field.data_type())).sum(),
        DataType::List(child) | DataType::Map(child, _) => leaves(child.data_type()),
        _ => 1,
    }
}

impl Adaptation {
    /// Applies the conversion; `target` is the table's type.
    pub fn apply(&self, array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
        match self {
            Self::Same => Ok(Arc::clone(array)),
            Self::Cast(cast) => cast.apply(array, target),
            Self::Struct(fields, parts) => {
                let found = array.as_struct();
                let child = |(part, field): (&Option<(usize, Adaptation)>, &Arc<ArrowField>)| match part {
                    Some((index, adapt)) => adapt.apply(found.column(*index), field.data_type()),
                    None => Ok(new_null_array(field.data_type(), found.len())),
                };
                let children = parts.iter().zip(fields).map(child).collect::<Result<Vec<_>>>()?;
                if fields.is_empty() {
                    return Ok(Arc::new(StructArray::new_empty_fields(found.len(), found.nulls().cloned())));
                }
                Ok(Arc::new(StructArray::try_new(fields.clone(), children, found.nulls().cloned())?))
            }
            Self::List(field, inner) => {
                let found = array.as_list::<i32>();
                let values = inner.apply(found.values(), field.data_type())?;
                Ok(Arc::new(ListArray::try_new(
                    Arc::clone(field),
                    found.offsets().clone(),
                    values,
                    found.nulls().cloned(),
                )?))
            }
            Self::Map(field, keys, values) => {
                let (found, DataType::Struct(targets)) = (array.as_map(), field.data_type()) else {
                    return Err(Error::protocol("a map's entries are no struct").found(field.data_type()));
                };
                let keys = keys.apply(found.keys(), targets[0].data_type())?;
                let values = values.apply(found.values(), targets[1].data_type())?;
                let entries = StructArray::try_new(targets.clone(), vec![keys, values], None)?;
                Ok(Arc::new(MapArray::try_new(
                    Arc::clone(field),
                    found.offsets().clone(),
                    entries,
                    found.nulls().cloned(),
                    false,
                )?))
            }
            Self::Unshred => unshredded(array, target),
        }
    }
}

fn unshredded(array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    check_values(array)?;
    let variant = VariantArray::try_new(array).and_then(|variant| unshred_variant(&variant));
    let variant = variant.map_err(malformed)?;
    let DataType::Struct(fields) = target else {
        return Err(Error::protocol("a variant is a struct of metadata and value").found(target));
    };
    let found = variant.inner();
    let part = |field: &Arc<ArrowField>| match found.column_by_name(field.name()) {
        Some(column) => Ok(cast(column, field.data_type())?),
        None => Err(Error::protocol("a variant without a part").expected(field.name())),
    };
    let parts = fields.iter().map(part).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(StructArray::try_new(fields.clone(), parts, found.nulls().cloned())?))
}

fn malformed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::protocol("a shredded variant that cannot be put together").caused_by(error)
}

/// Checks the bytes in all columns `value` of a shredded variant, such as `value` and
/// `typed_value.price.value`.
fn check_values(shredded: &ArrayRef) -> Result<()> {
    if let Some(list) = shredded.as_list_opt::<i32>() {
        return check_values(list.values());
    }
    let Some(group) = shredded.as_struct_opt() else { return Ok(()) };
    for (field, column) in group.fields().iter().zip(group.columns()) {
        match column.as_binary_opt::<i32>() {
            Some(values) if field.name() == "value" => {
                values.iter().flatten().try_for_each(check_value).map_err(malformed)?
            }
            _ => check_values(column)?,
        }
    }
    Ok(())
}

/// Returns the schema with INT96 columns in microseconds, as arrow-rs uses nanoseconds, which end in the year
/// 2262. `None` if the file has no such column.
pub fn int96_as_micros(schema: &Schema, descriptor: &SchemaDescriptor) -> Option<Schema> {
    if !descriptor.columns().iter().any(|column| column.physical_type() == PhysicalType::INT96) {
        return None;
    }
    let mut leaf = 0;
    let fields: Vec<ArrowField> =
        schema.fields().iter().map(|field| micros(field, descriptor, &mut leaf)).collect();
    Some(Schema::new_with_metadata(fields, HashMap::new()))
}

fn micros(field: &ArrowField, descriptor: &SchemaDescriptor, leaf: &mut usize) -> ArrowField {
    let data_type = match field.data_type() {
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| micros(field, descriptor, leaf)).collect())
        }
        DataType::List(child) => DataType::List(Arc::new(micros(child, descriptor, leaf))),
        DataType::Map(entries, sorted) => DataType::Map(Arc::new(micros(entries, descriptor, leaf)), *sorted),
        other => {
            let int96 = *leaf < descriptor.num_columns()
                && descriptor.column(*leaf).physical_type() == PhysicalType::INT96;
            *leaf += 1;
            if int96 { DataType::Timestamp(TimeUnit::Microsecond, None) } else { other.clone() }
        }
    };
    field.clone().with_data_type(data_type)
}
