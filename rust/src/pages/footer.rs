//! Checks the footer of a Parquet file before Parquet's own reader parses it. That reader calls itself for
//! each level of the schema, and allocates memory for as many fields and row groups as the footer declares: a
//! schema of 5,000 groups within each other, which takes 40 KB, would end the process.

use bytes::Bytes;
use parquet::file::reader::ChunkReader;

use super::thrift::{BINARY, BYTE, DOUBLE, I16, I32, I64, Input, LIST, STRUCT, Shape};
use crate::error::{Error, Result};

/// Maximum number of bytes of a footer.
const MOST_BYTES: u64 = 256 << 20;
/// Maximum number of groups around a column. 127 arrays within each other, the most that fit in the JSON of a
/// table's schema, are 254 groups.
const MOST_LEVELS: usize = 400;
/// Maximum number of row groups, which Parquet numbers with 16 bits.
const MOST_GROUPS: u64 = 1 << 15;

const BROKEN: &str = "bytes that are no footer";

const DECIMAL: Shape = Shape::Struct(&[Shape::Value(I32), Shape::Value(I32)]);
const UNIT: Shape = Shape::Struct(&[Shape::Empty, Shape::Empty, Shape::Empty]);
const TIME: Shape = Shape::Struct(&[Shape::Bool, UNIT]);
const INTEGER: Shape = Shape::Struct(&[Shape::Value(BYTE), Shape::Bool]);
const LOGICAL_TYPE: Shape = Shape::Struct(&[
    Shape::Empty, // string
    Shape::Empty, // map
    Shape::Empty, // list
    Shape::Empty, // enum
    DECIMAL,
    Shape::Empty, // date
    TIME,
    TIME,         // timestamp
    Shape::Empty, // reserved for intervals
    INTEGER,
    Shape::Empty,                                              // unknown
    Shape::Empty,                                              // JSON
    Shape::Empty,                                              // BSON
    Shape::Empty,                                              // UUID
    Shape::Empty,                                              // float of 16 bits
    Shape::Struct(&[Shape::Value(BYTE)]),                      // variant
    Shape::Struct(&[Shape::Value(BINARY)]),                    // geometry
    Shape::Struct(&[Shape::Value(BINARY), Shape::Value(I32)]), // geography
]);
/// The fields of `SchemaElement`: type, length, repetition, name, number of children, converted type, scale,
/// precision, id, logical type.
const ELEMENT: [Shape; 10] = [
    Shape::Value(I32),
    Shape::Value(I32),
    Shape::Value(I32),
    Shape::Value(BINARY),
    Shape::Value(I32),
    Shape::Value(I32),
    Shape::Value(I32),
    Shape::Value(I32),
    Shape::Value(I32),
    LOGICAL_TYPE,
];
/// The number of the field with the number of children.
const CHILDREN: i64 = 5;

const KEY_VALUE: Shape = Shape::Struct(&[Shape::Value(BINARY), Shape::Value(BINARY)]);
const INTS: Shape = Shape::List(&Shape::Value(I32));
const LONGS: Shape = Shape::List(&Shape::Value(I64));
const STATISTICS: Shape = Shape::Struct(&[
    Shape::Value(BINARY),
    Shape::Value(BINARY),
    Shape::Value(I64),
    Shape::Value(I64),
    Shape::Value(BINARY),
    Shape::Value(BINARY),
    Shape::Bool,
    Shape::Bool,
]);
const GEOSPATIAL: Shape = Shape::Struct(&[Shape::Struct(&[Shape::Value(DOUBLE); 8]), INTS]);
const COLUMN_METADATA: Shape = Shape::Struct(&[
    Shape::Value(I32),
    INTS,
    Shape::List(&Shape::Value(BINARY)),
    Shape::Value(I32),
    Shape::Value(I64),
    Shape::Value(I64),
    Shape::Value(I64),
    Shape::List(&KEY_VALUE),
    Shape::Value(I64),
    Shape::Value(I64),
    Shape::Value(I64),
    STATISTICS,
    Shape::List(&Shape::Struct(&[Shape::Value(I32); 3])),
    Shape::Value(I64),
    Shape::Value(I32),
    Shape::Struct(&[Shape::Value(I64), LONGS, LONGS]),
    GEOSPATIAL,
]);
const COLUMN: Shape = Shape::Struct(&[
    Shape::Value(BINARY),
    Shape::Value(I64),
    COLUMN_METADATA,
    Shape::Value(I64),
    Shape::Value(I32),
    Shape::Value(I64),
    Shape::Value(I32),
]);
const ROW_GROUP: Shape = Shape::Struct(&[
    Shape::List(&COLUMN),
    Shape::Value(I64),
    Shape::Value(I64),
    Shape::List(&Shape::Struct(&[Shape::Value(I32), Shape::Bool, Shape::Bool])),
    Shape::Value(I64),
    Shape::Value(I64),
    Shape::Value(I16),
]);
/// The fields of `FileMetaData` after the row groups, from field 5: metadata, writer, orders of columns.
const AFTER_GROUPS: [Shape; 3] =
    [Shape::List(&KEY_VALUE), Shape::Value(BINARY), Shape::List(&Shape::Struct(&[Shape::Empty; 2]))];

/// Returns the number of bytes of a file's footer.
pub fn length<R: ChunkReader>(file: &R) -> Result<u64> {
    let size = file.len();
    let trailer = if size < 12 { Bytes::new() } else { file.get_bytes(size - 8, 8)? };
    let Some(([a, b, c, d], magic)) = trailer.split_first_chunk::<4>() else {
        let error = Error::protocol("the file is too short for Parquet").found(format!("{size} bytes"));
        return Err(error.expected("a Parquet file"));
    };
    if magic != b"PAR1" {
        let error = Error::protocol("the file does not end as Parquet does");
        return Err(error
            .found(format!("\"{}\"", magic.escape_ascii()))
            .expected("a Parquet file, whose last bytes are PAR1"));
    }
    let length = u64::from(u32::from_le_bytes([*a, *b, *c, *d]));
    if length + 8 > size || length > MOST_BYTES {
        return Err(Error::protocol("the Parquet footer has an impossible length").found(length).expected(
            format!("a Parquet file, whose footer has at most {} bytes", MOST_BYTES.min(size - 8)),
        ));
    }
    Ok(length)
}

/// Returns an error for a footer that Parquet's own reader must not parse.
pub fn check(footer: &[u8]) -> Result<()> {
    walk(&mut Input { rest: footer }).map_err(|found| {
        Error::protocol("the Parquet footer cannot be read")
            .found(found)
            .expected("a footer in Parquet's format")
    })
}

fn walk(input: &mut Input) -> Result<(), String> {
    let mut number = 0;
    while let Some(kind) = input.field(&mut number).ok_or(BROKEN)? {
        match (number, kind) {
            (1, I32) | (3, I64) => input.skip(kind).ok_or(BROKEN)?,
            (2, LIST) => check_schema(input)?,
            (4, LIST) => {
                let (count, kind) = input.list().ok_or(BROKEN)?;
                if count > MOST_GROUPS {
                    return Err(format!("{count} row groups"));
                }
                (0..count).try_for_each(|_| input.known(kind, ROW_GROUP)).ok_or(BROKEN)?;
            }
            (1..=4, _) => return Err(BROKEN.to_owned()),
            _ => input.known_field(number - 4, kind, &AFTER_GROUPS).ok_or(BROKEN)?,
        }
    }
    Ok(())
}

/// Checks and skips a schema: the list of its groups and columns, each group before its fields. Example: the
/// elements `root` (two fields), `a` (one field), `b`, `c` are the columns `a.b` and `c`.
fn check_schema(input: &mut Input) -> Result<(), String> {
    let (count, kind) = input.list().ok_or(BROKEN)?;
    // For each group around the next element, its number of fields that have not ended.
    let mut open: Vec<u64> = Vec::new();
    for after in (0..count).rev() {
        let children = if kind == STRUCT { children(input) } else { None };
        let children = children.and_then(|count| u64::try_from(count).ok()).ok_or(BROKEN)?;
        if children > after {
            return Err(format!("a group of {children} fields before {after} elements of the schema"));
        }
        if children > 0 {
            open.push(children);
            if open.len() > MOST_LEVELS {
                return Err(format!("a schema of more than {MOST_LEVELS} levels"));
            }
            continue;
        }
        while let Some(fields) = open.last_mut() {
            *fields -= 1;
            if *fields > 0 {
                break;
            }
            open.pop();
        }
    }
    Ok(())
}

/// Skips an element of a schema, and returns the number of its children.
fn children(input: &mut Input) -> Option<i64> {
    let (mut number, mut children) = (0, 0);
    while let Some(kind) = input.field(&mut number)? {
        if (number, kind) == (CHILDREN, I32) {
            children = input.int()?;
        } else {
            input.known_field(number, kind, &ELEMENT)?;
        }
    }
    Some(children)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Returns the bytes of an element of a schema with the name `a`.
    fn element(children: Option<u8>) -> Vec<u8> {
        let end = children.map_or(vec![0], |count| vec![0x15, count << 1, 0]);
        [&[0x35, 0, 0x18, 1, b'a'][..], &end].concat()
    }

    fn footer(elements: &[Vec<u8>]) -> Vec<u8> {
        let count = elements.len();
        let head = [0x15, 2, 0x19, 0xfc, count as u8 & 0x7f | 0x80, (count >> 7) as u8];
        [&head[..], &elements.concat(), &[0x16, 0, 0x19, 0x0c, 0]].concat()
    }

    fn found(footer: &[u8]) -> String {
        check(footer).unwrap_err().found_expected().0.unwrap().to_owned()
    }

    #[test]
    fn a_schema_of_some_levels() {
        let elements = [element(Some(2)), element(Some(1)), element(None), element(None)];
        let footer = footer(&elements);
        check(&footer).unwrap();
        for cut in 0..footer.len() {
            assert_eq!(found(&footer[..cut]), BROKEN);
        }
    }

    #[test]
    fn a_schema_of_too_many_levels() {
        let nested = |levels: usize| footer(&[vec![element(Some(1)); levels], vec![element(None)]].concat());
        check(&nested(MOST_LEVELS)).unwrap();
        assert_eq!(found(&nested(MOST_LEVELS + 1)), "a schema of more than 400 levels");
        let mut flat = vec![element(Some(60))];
        flat.extend((0..120).map(|place| element((place % 2 == 0).then_some(1))));
        check(&footer(&flat)).unwrap();
    }

    #[test]
    fn numbers_of_fields_and_row_groups_that_cannot_be() {
        let many = footer(&[element(Some(63)), element(None)]);
        assert_eq!(found(&many), "a group of 63 fields before 1 elements of the schema");
        assert_eq!(found(&footer(&[element(Some(0x40)), element(None)])), BROKEN); // the number ends later
        let groups = [&footer(&[element(None)])[..15], &[0xfc, 0xff, 0xff, 0x7f, 0]].concat();
        assert_eq!(found(&groups), "2097151 row groups");
    }

    #[test]
    fn fields_of_another_type_than_parquets() {
        // The name as a number: Parquet's own reader would take it for the length of a text.
        let name = [0x35, 0, 0x15, 5, 0].to_vec();
        assert_eq!(found(&footer(&[element(Some(1)), name])), BROKEN);
    }
}
