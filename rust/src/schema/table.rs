//! A table's schema: logical names, physical names and field ids, partition columns.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef};
use serde_json::Value;

use super::types::{FIELD_ID, Field, PHYSICAL_NAME, Type, UNMAPPED, find};
use super::{arrow_types, json};
use crate::error::{Error, Kind, Result};

/// The mode of column mapping (`delta.columnMapping.mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnMapping {
    /// Names in files are the logical ones.
    None,
    /// Columns of a file are found by physical name.
    Name,
    /// Columns of a file are found by field id.
    Id,
}

/// A field found by its path.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// Logical names from the top level down, in the case of the schema.
    pub path: Vec<String>,
    /// Physical names from the top level down.
    pub physical: Vec<String>,
    /// The field's Delta type.
    pub delta_type: Type,
    /// The field's Arrow type.
    pub data_type: DataType,
    /// True for a partition column.
    pub partition: bool,
    /// True if it, or a struct above it, may be null.
    pub nullable: bool,
    /// True if its type was float before it was widened.
    pub was_float: bool,
}

/// A Delta schema, prepared to find its columns in files. Immutable; share it in an [`Arc`].
#[derive(Debug, Clone)]
pub struct TableSchema {
    fields: Vec<Field>,
    partition: Vec<usize>,
    hidden: usize,
    mapping: ColumnMapping,
    json: String,
    arrow: SchemaRef,
}

impl TableSchema {
    /// Parses a schema. `schema`: the metadata action's schemaString; `column_mapping`: "none", "name" or
    /// "id".
    pub fn parse(schema: &str, partition_columns: &[String], column_mapping: &str) -> Result<Self> {
        let mapping = match column_mapping.to_ascii_lowercase().as_str() {
            "none" | "" => ColumnMapping::None,
            "name" => ColumnMapping::Name,
            "id" => ColumnMapping::Id,
            other => {
                return Err(Error::protocol("unknown delta.columnMapping.mode")
                    .found(other)
                    .expected("none, name or id"));
            }
        };
        let fields = json::parse_struct(schema)?;
        if mapping != ColumnMapping::None {
            MappingCheck { mapping, ids: HashSet::new(), place: Vec::new() }.check(&fields)?;
        }
        let position = |name: &String| match find(&fields, name) {
            Some((index, field)) if matches!(field.data_type, Type::Primitive(_)) => Ok(index),
            Some(_) => Err(not_a_partition("a partition column is nested", name)
                .expected("a column of a primitive type")),
            None => Err(not_a_partition("a partition column is not in the schema", name)
                .expected("a column of the schema")),
        };
        let partition = partition_columns.iter().map(position).collect::<Result<Vec<_>>>()?;
        if let Some(twice) = (1..partition.len()).find(|at| partition[..*at].contains(&partition[*at])) {
            return Err(not_a_partition("a partition column is named twice", &partition_columns[twice])
                .expected("each once"));
        }
        let arrow = Arc::new(arrow_types::schema_of(&fields, false));
        Ok(Self { fields, partition, hidden: 0, mapping, json: schema.to_owned(), arrow })
    }
    /// Returns the schema with hidden columns at its end: whole numbers that data files may have, but the
    /// table does not show. They have no statistics. `ids`: Parquet field ids of these columns in written
    /// files; empty, or one for each.
    pub fn with_hidden(&self, names: &[String], ids: &[i32]) -> Result<Self> {
        let mut whole = self.clone();
        for (at, name) in names.iter().enumerate() {
            if whole.fields.iter().any(|field| &field.name == name || whole.physical_name(field) == name) {
                return Err(Error::protocol("a hidden column has the name of another one").found(name));
            }
            whole.fields.push(Field::hidden(name, ids.get(at).copied()));
        }
        whole.hidden += names.len();
        whole.arrow = Arc::new(arrow_types::schema_of(&whole.fields, false));
        Ok(whole)
    }
    /// True if the column at this position is hidden.
    pub fn is_hidden(&self, index: usize) -> bool {
        index + self.hidden >= self.fields.len()
    }
    /// Returns the schemaString from which the schema was parsed.
    pub fn json(&self) -> &str {
        &self.json
    }
    /// Returns all columns, including partition columns, in the table's order.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }
    /// Returns the mode of column mapping, by which columns are found in files.
    pub fn mapping(&self) -> ColumnMapping {
        self.mapping
    }
    /// Returns the partition columns, in the order of the metadata action.
    pub fn partition_fields(&self) -> impl ExactSizeIterator<Item = &Field> {
        self.partition.iter().map(|&index| &self.fields[index])
    }
    /// True if the column at this position is a partition column.
    pub fn is_partition(&self, index: usize) -> bool {
        self.partition.contains(&index)
    }
    /// Returns the Arrow schema of all columns, without metadata.
    pub fn arrow(&self) -> &SchemaRef {
        &self.arrow
    }
    /// Returns the Arrow schema with Delta metadata as text, of these columns (dotted paths are fields of
    /// structs), or of all.
    pub fn to_arrow(&self, columns: Option<&[String]>) -> Result<Schema> {
        match columns {
            None => Ok(arrow_types::schema_of(&self.fields, true)),
            Some(columns) => Ok(arrow_types::schema_of(&self.select(columns)?, true)),
        }
    }
    /// Returns the name of a field in files, statistics and partition values.
    pub fn physical_name<'a>(&self, field: &'a Field) -> &'a str {
        if self.mapping == ColumnMapping::None { &field.name } else { field.physical_name() }
    }
    /// Returns the column with this name, in any case.
    pub fn column(&self, name: &str) -> Result<(usize, &Field)> {
        find(&self.fields, name).ok_or_else(|| self.unknown(name))
    }
    /// Returns the field at a path given as text: a column's name, or names joined by dots. A name that
    /// contains a dot is in backticks.
    pub fn leaf(&self, path: &str) -> Result<Leaf> {
        if find(&self.fields, path).is_some() {
            return self.leaf_at(&[path.to_owned()]);
        }
        self.leaf_at(&split_path(path))
    }
    /// Returns the field at a path given as a list of names.
    pub fn leaf_at<S: AsRef<str>>(&self, path: &[S]) -> Result<Leaf> {
        let unknown = || self.unknown(&path.iter().map(AsRef::as_ref).collect::<Vec<_>>().join("."));
        let (first, rest) = path.split_first().ok_or_else(unknown)?;
        let (index, mut field) = find(&self.fields, first.as_ref()).ok_or_else(unknown)?;
        let mut leaf = Leaf {
            path: vec![field.name.clone()],
            physical: vec![self.physical_name(field).to_owned()],
            delta_type: field.data_type.clone(),
            data_type: DataType::Null,
            partition: self.is_partition(index),
            nullable: field.nullable,
            was_float: false,
        };
        for name in rest {
            let Type::Struct(fields) = &field.data_type else { return Err(unknown()) };
            (_, field) = find(fields, name.as_ref()).ok_or_else(unknown)?;
            leaf.path.push(field.name.clone());
            leaf.physical.push(self.physical_name(field).to_owned());
            leaf.nullable |= field.nullable;
        }
        leaf.delta_type = field.data_type.clone();
        leaf.data_type = field.data_type.to_arrow(false);
        leaf.was_float = field.was_float();
        Ok(leaf)
    }
    /// Returns the fields for these paths: whole columns, or structs with only the named fields. Several
    /// fields of one column are joined, at the position of the first.
    pub fn select(&self, columns: &[String]) -> Result<Vec<Field>> {
        let paths = columns.iter().map(|column| Ok(self.leaf(column)?.path)).collect::<Result<Vec<_>>>()?;
        self.select_at(&paths)
    }
    /// Returns the fields for paths given as lists of names, like `select`.
    pub fn select_at(&self, paths: &[Vec<String>]) -> Result<Vec<Field>> {
        let mut chosen: Vec<Field> = Vec::with_capacity(paths.len());
        for path in paths {
            let leaf = self.leaf_at(path)?;
            let (_, field) = self.column(&leaf.path[0])?;
            let branch = prune(field, &leaf.path[1..]);
            match chosen.iter_mut().find(|other| other.name == branch.name) {
                Some(other) => merge(other, branch, field),
                None => chosen.push(branch),
            }
        }
        Ok(chosen)
    }
    fn unknown(&self, name: &str) -> Error {
        let names: Vec<&str> = self.fields.iter().map(|field| field.name.as_str()).collect();
        Error::new(Kind::InvalidArgument, format!("no column \"{name}\""))
            .expected(format!("one of {}", names.join(", ")))
    }
}

/// Splits a path at its dots: "a.`b.c`.d" becomes ["a", "b.c", "d"].
pub fn split_path(path: &str) -> Vec<String> {
    let (mut names, mut name, mut quoted) = (Vec::new(), String::new(), false);
    let mut letters = path.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '`' if quoted && letters.peek() == Some(&'`') => {
                letters.next();
                name.push('`');
            }
            '`' if quoted || name.is_empty() => quoted = !quoted,
            '.' if !quoted => names.push(std::mem::take(&mut name)),
            other => name.push(other),
        }
    }
    names.push(name);
    names
}

/// Returns the field with only the nested field at `path`.
fn prune(field: &Field, path: &[String]) -> Field {
    let (Some(first), Type::Struct(fields)) = (path.first(), &field.data_type) else { return field.clone() };
    let branch = find(fields, first).map(|(_, child)| prune(child, &path[1..]));
    Field { data_type: Type::Struct(branch.into_iter().collect()), ..field.clone() }
}

/// Adds the nested fields of `more` to `target`, in the order of `whole`.
fn merge(target: &mut Field, more: Field, whole: &Field) {
    let (Type::Struct(have), Type::Struct(new), Type::Struct(all)) =
        (&mut target.data_type, more.data_type, &whole.data_type)
    else {
        return;
    };
    for child in new {
        let complete = all.iter().find(|field| field.name == child.name);
        match (have.iter_mut().find(|field| field.name == child.name), complete) {
            (Some(other), Some(complete)) => merge(other, child, complete),
            _ => have.push(child),
        }
    }
    have.sort_by_key(|field| all.iter().position(|other| other.name == field.name));
}

fn not_a_partition(message: &str, name: &str) -> Error {
    Error::protocol(message).at("partitionColumns").found(name)
}

/// Checks column mapping: every field has a physical name, unique in its struct, and in mode id a unique id.
struct MappingCheck<'a> {
    mapping: ColumnMapping,
    ids: HashSet<i32>,
    place: Vec<&'a str>,
}

impl<'a> MappingCheck<'a> {
    fn check(&mut self, fields: &'a [Field]) -> Result<()> {
        let mut physical = HashSet::new();
        for field in fields {
            if field.metadata.contains_key(UNMAPPED) {
                continue;
            }
            self.place.push(&field.name);
            match field.metadata.get(PHYSICAL_NAME) {
                Some(Value::String(name)) if physical.insert(name.as_str()) => {}
                Some(Value::String(name)) => {
                    return Err(
                        self.wrong(format!("two fields of the physical name '{name}'"), "a name of its own")
                    );
                }
                Some(other) => return Err(self.wrong(other.to_string(), "a physical name that is text")),
                None => return Err(self.wrong("no physical name".to_owned(), PHYSICAL_NAME)),
            }
            if self.mapping == ColumnMapping::Id {
                match field.id() {
                    Some(id) if self.ids.insert(id) => {}
                    Some(id) => {
                        return Err(self.wrong(format!("two fields of the id {id}"), "an id of its own"));
                    }
                    None => return Err(self.wrong("no id that is a whole number".to_owned(), FIELD_ID)),
                }
            }
            self.check_nested(&field.data_type)?;
            self.place.pop();
        }
        Ok(())
    }

    fn check_nested(&mut self, data_type: &'a Type) -> Result<()> {
        match data_type {
            Type::Primitive(_) | Type::Variant | Type::Shape(_) => Ok(()),
            Type::Struct(fields) => self.check(fields),
            Type::Array(element, _) => self.side("element", element),
            Type::Map(key, value, _) => {
                self.side("key", key)?;
                self.side("value", value)
            }
        }
    }

    fn side(&mut self, name: &'static str, data_type: &'a Type) -> Result<()> {
        self.place.push(name);
        self.check_nested(data_type)?;
        self.place.pop();
        Ok(())
    }

    fn wrong(&self, found: String, expected: &str) -> Error {
        Error::protocol("column mapping is on and a field is not mapped")
            .at(self.place.join("."))
            .found(found)
            .expected(expected)
    }
}
