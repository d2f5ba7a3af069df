//! Columns of geographic types in data files: binary columns with Parquet's logical types GEOMETRY and
//! GEOGRAPHY.

use std::sync::Arc;

use parquet::basic::{EdgeInterpolationAlgorithm as Edges, LogicalType, Type as Physical};
use parquet::schema::types::{SchemaDescriptor, Type as Node, TypePtr};

use crate::error::Result;
use crate::schema::{Primitive, Shape, Type};

/// Returns the schema of a data file with logical types on its geographic columns. `types`: the types of its
/// columns, in order.
pub fn marked<'a>(
    schema: SchemaDescriptor,
    types: impl Iterator<Item = &'a Type>,
) -> Result<SchemaDescriptor> {
    let mut leaves = Vec::new();
    types.for_each(|each| collect(each, &mut leaves));
    if leaves.iter().all(Option::is_none) {
        return Ok(schema);
    }
    Ok(SchemaDescriptor::new(rebuilt(&schema.root_schema_ptr(), &mut leaves.into_iter())?))
}

/// Appends the geographic type of each leaf of a type to `leaves`, in the order of Parquet's leaves; `None`
/// for any other leaf.
fn collect<'a>(data_type: &'a Type, leaves: &mut Vec<Option<&'a Shape>>) {
    match data_type {
        Type::Primitive(Primitive::Void) => {} // has no leaf
        Type::Primitive(_) => leaves.push(None),
        Type::Variant => leaves.extend([None, None]),
        Type::Shape(shape) => leaves.push(Some(shape)),
        Type::Struct(fields) => fields.iter().for_each(|field| collect(&field.data_type, leaves)),
        Type::Array(element, _) => collect(element, leaves),
        Type::Map(key, value, _) => {
            collect(key, leaves);
            collect(value, leaves);
        }
    }
}

fn rebuilt<'a>(node: &TypePtr, leaves: &mut impl Iterator<Item = Option<&'a Shape>>) -> Result<TypePtr> {
    let info = node.get_basic_info();
    let id = info.has_id().then(|| info.id());
    if !node.is_group() {
        let Some(shape) = leaves.next().flatten() else { return Ok(Arc::clone(node)) };
        let leaf = Node::primitive_type_builder(node.name(), Physical::BYTE_ARRAY)
            .with_repetition(info.repetition())
            .with_id(id);
        return Ok(Arc::new(leaf.with_logical_type(Some(logical_type(shape))).build()?));
    }
    let fields = node.get_fields().iter().map(|field| rebuilt(field, leaves)).collect::<Result<Vec<_>>>()?;
    let group = Node::group_type_builder(node.name()).with_fields(fields).with_id(id);
    let group =
        group.with_logical_type(info.logical_type_ref().cloned()).with_converted_type(info.converted_type());
    Ok(Arc::new(
        if info.has_repetition() { group.with_repetition(info.repetition()) } else { group }.build()?,
    ))
}

fn logical_type(shape: &Shape) -> LogicalType {
    let crs = Some(shape.crs.clone());
    match shape.edges.as_deref() {
        None => LogicalType::geometry(crs),
        Some(edges) => LogicalType::geography(
            crs,
            Some(match edges {
                "vincenty" => Edges::VINCENTY,
                "thomas" => Edges::THOMAS,
                "andoyer" => Edges::ANDOYER,
                "karney" => Edges::KARNEY,
                _ => Edges::SPHERICAL,
            }),
        ),
    }
}
