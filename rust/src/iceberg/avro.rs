//! Reads and writes Avro's object container files and its binary encoding of values (Apache Avro 1.11
//! specification), as far as manifests need them.
//!
//! No crate is used: entries are copied from manifest to manifest as bytes, whereas `apache-avro` decodes
//! each value, and there are only a few schemas.
//!
//! A container is `Obj\x01`, a map of metadata (the schema as JSON, the codec), a sync marker of 16 bytes,
//! then blocks: the number of values, the number of bytes, the values, the marker again. Longs are zigzag
//! varints: 0, -1, 1, -2 become 0, 1, 2, 3.

use std::collections::HashMap;
use std::io::{Read, Write};

use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde_json::Value;

use crate::error::{Error, Result};

const MAGIC: &[u8; 4] = b"Obj\x01";
/// Maximum number of bytes of all decompressed blocks of a file; more are an error.
const MOST_BYTES: u64 = 1 << 30;
/// Number of bytes of values after which a block ends.
const BLOCK_BYTES: usize = 1 << 20;
const MOST_DEPTH: usize = 32;
/// Maximum number of types in a schema, where each use of a named type counts all its types; more are an
/// error. Twenty records, each with two fields of the type of the record before, are a million types.
/// Manifests have about 60.
const MOST_TYPES: usize = 4096;

/// Appends a long.
pub fn long(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Appends the length of bytes, or of the UTF-8 of a text, and then the bytes.
pub fn bytes(out: &mut Vec<u8>, value: &[u8]) {
    long(out, value.len() as i64);
    out.extend_from_slice(value);
}

/// Appends a value of the union `["null", "long"]`.
pub fn optional_long(out: &mut Vec<u8>, value: Option<i64>) {
    match value {
        None => long(out, 0),
        Some(value) => {
            long(out, 1);
            long(out, value);
        }
    }
}

/// A container that is written, with the codec `deflate`.
pub struct Container {
    out: Vec<u8>,
    marker: [u8; 16],
    block: Vec<u8>,
    values: i64,
}

impl Container {
    /// Begins a container. `metadata`: the metadata of the file, with `avro.schema`.
    pub fn new(metadata: &[(&str, &str)]) -> Self {
        let marker = *uuid::Uuid::new_v4().as_bytes();
        let mut out = MAGIC.to_vec();
        long(&mut out, metadata.len() as i64 + 1);
        for (key, value) in metadata.iter().chain([&("avro.codec", "deflate")]) {
            bytes(&mut out, key.as_bytes());
            bytes(&mut out, value.as_bytes());
        }
        long(&mut out, 0);
        out.extend_from_slice(&marker);
        Self { out, marker, block: Vec::new(), values: 0 }
    }

    /// Adds a value: `write` appends its bytes.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        write(&mut self.block)?;
        self.values += 1;
        if self.block.len() >= BLOCK_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.values == 0 {
            return Ok(());
        }
        let failed = |error: std::io::Error| {
            Error::protocol("a block of a manifest could not be compressed").caused_by(error)
        };
        let mut encoder = DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&self.block).map_err(failed)?;
        let packed = encoder.finish().map_err(failed)?;
        long(&mut self.out, self.values);
        bytes(&mut self.out, &packed);
        self.out.extend_from_slice(&self.marker);
        self.block.clear();
        self.values = 0;
        Ok(())
    }

    /// Returns the bytes of the file.
    pub fn finish(mut self) -> Result<Vec<u8>> {
        self.flush()?;
        Ok(self.out)
    }
}

/// The layout of a value's bytes: its Avro schema without names.
#[derive(Debug, Clone, PartialEq)]
pub enum Layout {
    /// A value of no bytes
    Null,
    /// A value of one byte
    Boolean,
    /// A varint: int and long
    Long,
    /// A fixed number of bytes: float, double, fixed
    Fixed(usize),
    /// Bytes and string
    Bytes,
    /// The fields one after the other
    Record(Vec<(String, Layout)>),
    /// Blocks of values
    Array(Box<Layout>),
    /// The number of the branch, then its value
    Union(Vec<Layout>),
}

impl Layout {
    /// Parses the JSON of an Avro schema. A type that is already defined may be given by name.
    pub fn parse(schema: &str) -> Result<Self> {
        let value: Value =
            serde_json::from_str(schema).map_err(|error| malformed("the schema").caused_by(error))?;
        Self::of(&value, &mut NamedTypes::default(), 0)
    }

    fn of(schema: &Value, named: &mut NamedTypes, depth: usize) -> Result<Self> {
        if depth > MOST_DEPTH {
            return Err(
                malformed("the schema is nested too deeply").expected(format!("at most {MOST_DEPTH} levels"))
            );
        }
        let before = named.counted;
        named.count(1)?;
        let mut inner = |part: &Value| Self::of(part, named, depth + 1);
        let layout = match schema {
            Value::Array(branches) => Self::Union(branches.iter().map(inner).collect::<Result<_>>()?),
            Value::Object(object) => match object.get("type") {
                Some(Value::String(kind)) if kind == "record" => {
                    let fields = object
                        .get("fields")
                        .and_then(Value::as_array)
                        .ok_or_else(|| malformed("a record without fields"))?;
                    let one = |field: &Value| -> Result<(String, Self)> {
                        let name = field
                            .get("name")
                            .and_then(Value::as_str)
                            .ok_or_else(|| malformed("a field without name"))?;
                        Ok((
                            name.to_owned(),
                            inner(field.get("type").ok_or_else(|| malformed("a field without type"))?)?,
                        ))
                    };
                    Self::Record(fields.iter().map(one).collect::<Result<_>>()?)
                }
                Some(Value::String(kind)) if kind == "array" => Self::Array(Box::new(inner(
                    object.get("items").ok_or_else(|| malformed("an array without items"))?,
                )?)),
                Some(Value::String(kind)) if kind == "fixed" => {
                    let size = object
                        .get("size")
                        .and_then(Value::as_u64)
                        .and_then(|size| usize::try_from(size).ok());
                    Self::Fixed(size.ok_or_else(|| malformed("a fixed type without size"))?)
                }
                Some(other) => inner(other)?,
                None => return Err(malformed("a type without name")),
            },
            Value::String(name) => match name.as_str() {
                "null" => Self::Null,
                "boolean" => Self::Boolean,
                "int" | "long" => Self::Long,
                "float" => Self::Fixed(4),
                "double" => Self::Fixed(8),
                "bytes" | "string" => Self::Bytes,
                other => named.reuse(other)?,
            },
            _ => return Err(malformed("the schema")),
        };
        if let Some(name) = schema.get("name").and_then(Value::as_str) {
            named.types.insert(name.to_owned(), (layout.clone(), named.counted - before));
        }
        Ok(layout)
    }
}

/// The named types of a schema so far.
#[derive(Default)]
struct NamedTypes {
    /// The types, each with the number of types in it.
    types: HashMap<String, (Layout, usize)>,
    /// Number of types in the whole schema.
    counted: usize,
}

impl NamedTypes {
    fn count(&mut self, types: usize) -> Result<()> {
        self.counted += types;
        if self.counted > MOST_TYPES {
            let error =
                malformed("the schema has too many types, each named one counted wherever it is used");
            return Err(error
                .found(format!("{} and more", self.counted))
                .expected(format!("at most {MOST_TYPES}")));
        }
        Ok(())
    }

    /// Returns the type with this name. Its types are counted before it is copied; its name is already
    /// counted as one type.
    fn reuse(&mut self, name: &str) -> Result<Layout> {
        let (_, types) = self.types.get(name).ok_or_else(|| malformed("an unknown type").found(name))?;
        self.count(types - 1)?;
        self.types
            .get(name)
            .map(|(layout, _)| layout.clone())
            .ok_or_else(|| malformed("an unknown type").found(name))
    }
}

/// The bytes of values that are not read yet.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    /// Reads a long.
    pub fn long(&mut self) -> Result<i64> {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
            shift += 7;
            if shift > 63 {
                return Err(malformed("a number of more than 10 bytes"));
            }
        }
    }

    /// Reads `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (first, rest) =
            self.0.split_at_checked(count).ok_or_else(|| malformed("it ends within a value"))?;
        self.0 = rest;
        Ok(first)
    }

    /// Reads a length and as many bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let count = self.long()?;
        self.take(usize::try_from(count).map_err(|_| malformed("a negative length"))?)
    }

    /// Reads a text.
    pub fn text(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|error| malformed("a text").caused_by(error))
    }

    /// Skips a value.
    pub fn skip(&mut self, layout: &Layout) -> Result<()> {
        match layout {
            Layout::Null => {}
            Layout::Boolean => _ = self.take(1)?,
            Layout::Long => _ = self.long()?,
            Layout::Fixed(size) => _ = self.take(*size)?,
            Layout::Bytes => _ = self.bytes()?,
            Layout::Record(fields) => fields.iter().try_for_each(|(_, field)| self.skip(field))?,
            Layout::Union(branches) => {
                let branch = self.branch(branches)?;
                self.skip(branch)?;
            }
            Layout::Array(item) => self.blocks(|values| values.skip(item))?,
        }
        Ok(())
    }

    /// Reads the number of a union's branch, and returns the branch.
    pub fn branch<'b>(&mut self, branches: &'b [Layout]) -> Result<&'b Layout> {
        let number = self.long()?;
        usize::try_from(number)
            .ok()
            .and_then(|at| branches.get(at))
            .ok_or_else(|| malformed("no such branch of a union").found(number))
    }

    fn blocks(&mut self, mut each: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        loop {
            let count = self.long()?;
            if count == 0 {
                return Ok(());
            }
            if count < 0 {
                let size = self.long()?; // a block with its size is skipped as a whole
                self.take(usize::try_from(size).map_err(|_| malformed("a negative length"))?)?;
                continue;
            }
            for _ in 0..count {
                let before = self.0.len();
                each(self)?;
                if self.0.len() == before {
                    return Err(malformed("an array of values without bytes"));
                }
            }
        }
    }
}

/// The content of a container: the layout of its values, and its blocks with the number of values in each.
pub struct Contents {
    /// Layout of a value.
    pub layout: Layout,
    /// The decompressed blocks, each with the number of its values.
    pub blocks: Vec<(i64, Vec<u8>)>,
}

/// Reads a container. Codecs: `null` and `deflate`.
pub fn read(data: &[u8]) -> Result<Contents> {
    read_within(data, MOST_BYTES)
}

fn read_within(data: &[u8], most: u64) -> Result<Contents> {
    let mut cursor = Cursor(data);
    if cursor.take(4)? != MAGIC {
        return Err(malformed("it does not begin with Obj and 1"));
    }
    let (mut schema, mut deflated) = (None, false);
    loop {
        let mut count = cursor.long()?;
        if count == 0 {
            break;
        }
        if count < 0 {
            cursor.long()?;
            count = count.checked_neg().ok_or_else(|| malformed("a count"))?;
        }
        for _ in 0..count {
            match (cursor.text()?, cursor.bytes()?) {
                ("avro.schema", text) => {
                    schema = Some(
                        std::str::from_utf8(text)
                            .map_err(|error| malformed("the schema").caused_by(error))?,
                    )
                }
                ("avro.codec", b"deflate") => deflated = true,
                ("avro.codec", b"null") => {}
                ("avro.codec", other) => {
                    return Err(malformed("an unknown codec").found(String::from_utf8_lossy(other)));
                }
                _ => {}
            }
        }
    }
    let layout = Layout::parse(schema.ok_or_else(|| malformed("it has no schema"))?)?;
    let marker = cursor.take(16)?;
    let (mut blocks, mut left) = (Vec::new(), most);
    while !cursor.0.is_empty() {
        let count = cursor.long()?;
        let packed = cursor.bytes()?;
        if cursor.take(16)? != marker || count < 0 {
            return Err(malformed("a block does not end with the marker"));
        }
        let values = if deflated { inflated(packed, left)? } else { packed.to_vec() };
        left = left.saturating_sub(values.len() as u64);
        // A value of Iceberg has at least one byte. Without this check, an empty block could declare 2^62
        // values without bytes.
        if count as u64 > values.len() as u64 {
            let error = malformed("a block counts more values than it has bytes");
            return Err(error.found(format!("{count} values")).expected(format!("at most {}", values.len())));
        }
        blocks.push((count, values));
    }
    Ok(Contents { layout, blocks })
}

fn inflated(packed: &[u8], most: u64) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let read = DeflateDecoder::new(packed).take(most + 1).read_to_end(&mut out);
    read.map_err(|error| malformed("a block cannot be uncompressed").caused_by(error))?;
    if out.len() as u64 > most {
        return Err(malformed("its blocks are too large").expected(format!("at most {MOST_BYTES} bytes")));
    }
    Ok(out)
}

/// Makes an error about an Avro file.
pub fn malformed(what: &str) -> Error {
    Error::protocol(format!("an Avro file of the Iceberg metadata is malformed: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longs_are_zigzag_varints() {
        for (value, expected) in [
            (0, &[0_u8][..]),
            (-1, &[1]),
            (1, &[2]),
            (64, &[0x80, 1]),
            (i64::MIN, &[255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
        ] {
            let mut out = Vec::new();
            long(&mut out, value);
            assert_eq!(out, expected);
            assert_eq!(Cursor(&out).long().unwrap(), value);
        }
    }

    #[test]
    fn containers_come_back() {
        let schema = concat!(
            r#"{"type":"record","name":"r","fields":[{"name":"a","type":"long"},"#,
            r#"{"name":"b","type":["null","string"]}]}"#,
        );
        let mut container = Container::new(&[("avro.schema", schema)]);
        for number in 0..5 {
            container
                .push(|out| {
                    long(out, number);
                    long(out, 1);
                    bytes(out, b"text");
                    Ok(())
                })
                .unwrap();
        }
        let file = container.finish().unwrap();
        let contents = read(&file).unwrap();
        assert_eq!(contents.blocks.len(), 1);
        let (count, block) = &contents.blocks[0];
        let mut cursor = Cursor(block);
        for _ in 0..*count {
            cursor.skip(&contents.layout).unwrap();
        }
        assert!(cursor.0.is_empty());
        for end in 0..file.len() {
            if let Ok(contents) = read(&file[..end]) {
                assert!(contents.blocks.is_empty()); // a file may end where a block could begin
            }
        }
    }

    #[test]
    fn the_blocks_of_a_file_have_a_limit_together() {
        let mut container = Container::new(&[("avro.schema", "\"bytes\"")]);
        for _ in 0..3 {
            container
                .push(|out| {
                    bytes(out, &vec![0; BLOCK_BYTES]);
                    Ok(())
                })
                .unwrap();
        }
        let file = container.finish().unwrap();
        assert_eq!(read_within(&file, 4 * BLOCK_BYTES as u64).unwrap().blocks.len(), 3);
        let error = read_within(&file, 2 * BLOCK_BYTES as u64).err().unwrap().to_string();
        assert!(error.contains("its blocks are too large"), "{error}");
    }

    #[test]
    fn a_block_counts_no_more_values_than_it_has_bytes() {
        let of = |schema: &str, block: &[u8], count: i64| {
            let mut file = MAGIC.to_vec();
            long(&mut file, 1);
            bytes(&mut file, b"avro.schema");
            bytes(&mut file, schema.as_bytes());
            long(&mut file, 0);
            file.extend_from_slice(&[7; 16]);
            long(&mut file, count);
            bytes(&mut file, block);
            file.extend_from_slice(&[7; 16]);
            read(&file).map(|contents| contents.blocks)
        };
        let nulls = r#"{"type":"record","name":"r","fields":[{"name":"a","type":"null"}]}"#;
        assert_eq!(of("\"long\"", &[2, 4], 2).unwrap(), [(2, vec![2, 4])]);
        assert_eq!(of(nulls, &[], 0).unwrap(), [(0, vec![])]);
        let message = "a block counts more values than it has bytes; found 4611686018427387904 values; \
                       expected at most 0";
        let error = of(nulls, &[], 1 << 62).unwrap_err().to_string();
        assert!(error.ends_with(message), "{error}");
    }

    #[test]
    fn schemas_that_double_at_each_level_are_refused() {
        let doubled = |levels: usize| {
            let mut fields =
                vec![r#"{"name":"f","type":{"type":"record","name":"r0","fields":[]}}"#.to_owned()];
            for level in 1..levels {
                let of = |field: &str| format!(r#"{{"name":"{field}","type":"r{}"}}"#, level - 1);
                let record =
                    format!(r#"{{"type":"record","name":"r{level}","fields":[{},{}]}}"#, of("a"), of("b"));
                fields.push(format!(r#"{{"name":"f{level}","type":{record}}}"#));
            }
            Layout::parse(&format!(r#"{{"type":"record","name":"top","fields":[{}]}}"#, fields.join(",")))
        };
        assert!(doubled(10).is_ok());
        let error = doubled(40).unwrap_err().to_string();
        assert!(
            error.contains(
                "the schema has too many types, each named one counted wherever it is used; found 6132"
            ),
            "{error}"
        );
        assert!(error.ends_with("and more; expected at most 4096"), "{error}");
    }
}
