//! A table of three files with known rows, partition values and statistics, to test predicates on.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, RecordBatch, StringArray, StructArray};
use arrow::datatypes::DataType;
use serde_json::json;

use super::COMMIT;
use crate::interrupt::Interrupt;
use crate::log::reading::commit::Commit;
use crate::schema::TableSchema;
use crate::schema::partition_values::parse_array;

const SCHEMA: &str = concat!(
    r#"{"type":"struct","fields":[
    {"name":"i","type":"integer"},{"name":"s","type":"string"},{"name":"d","type":"double"},"#,
    r#"{"name":"b","type":"boolean"},
    {"name":"t","type":"timestamp"},{"name":"n","type":"decimal(10,2)"},{"name":"a","type":"date"},
    {"name":"st","type":{"type":"struct","fields":[{"name":"x","type":"integer"}]}},"#,
    r#"{"name":"p","type":"integer"}]}"#,
);

/// Rows of three files as (name, values); null is an empty text. In each file, the partition column has one
/// value.
const ROWS: [[(&str, [&str; 3]); 9]; 3] = [
    [
        ("i", ["1", "2", "-3"]),
        ("s", ["a", "b", "ab"]),
        ("d", ["0.5", "-0.0", "1e300"]),
        ("b", ["true", "true", "true"]),
        ("t", ["2024-01-01T00:00:00.000001Z", "1969-12-31T23:59:59.999Z", "2024-06-01T00:00:00Z"]),
        ("n", ["1.50", "-1.50", "0.00"]),
        ("a", ["2024-01-01", "1500-01-01", "9999-12-31"]),
        ("x", ["1", "1", "1"]),
        ("p", ["1", "1", "1"]),
    ],
    [
        ("i", ["", "5", "7"]),
        ("s", ["", "zebra", "\u{ffff}"]),
        ("d", ["", "NaN", "2"]),
        ("b", ["", "true", "false"]),
        ("t", ["", "2030-01-01T00:00:00Z", "2030-01-01T00:00:00Z"]),
        ("n", ["", "99999999.99", "2"]),
        ("a", ["", "1970-01-01", "1970-01-02"]),
        ("x", ["", "2", "-2"]),
        ("p", ["2", "2", "2"]),
    ],
    [
        ("i", ["", "", ""]),
        ("s", ["", "", ""]),
        ("d", ["", "", ""]),
        ("b", ["", "", ""]),
        ("t", ["", "", ""]),
        ("n", ["", "", ""]),
        ("a", ["", "", ""]),
        ("x", ["", "", ""]),
        ("p", ["", "", ""]),
    ],
];

/// The value of the partition column of each file of [`ROWS`], and the file's statistics. Like those of other
/// writers, they do not include NaN, so that `d` of the second file has no upper bound.
const STATISTICS: [(Option<&str>, &str); 3] = [
    (
        Some("1"),
        concat!(
            r#"{"numRecords":3,"minValues":{"i":-3,"s":"a","d":-0.0,"t":"1969-12-31T23:59:59.999Z","#,
            r#""n":-1.50,"a":"1500-01-01","st":{"x":1}},
            "maxValues":{"i":2,"s":"b","d":1e300,"t":"2024-06-01T00:00:00.000Z","#,
            r#""n":1.50,"a":"9999-12-31","st":{"x":1}},
            "nullCount":{"i":0,"s":0,"d":0,"b":0,"t":0,"n":0,"a":0,"st":{"x":0}}}"#,
        ),
    ),
    (
        Some("2"),
        concat!(
            r#"{"numRecords":3,"minValues":{"i":5,"s":"zebra","d":2.0,"t":"2030-01-01T00:00:00.000Z","#,
            r#""n":2.00,"a":"1970-01-01","st":{"x":-2}},
            "maxValues":{"i":7,"s":"\uffff","t":"2030-01-01T00:00:00.000Z","n":99999999.99,"#,
            r#""a":"1970-01-02","st":{"x":2}},
            "nullCount":{"i":1,"s":1,"d":1,"b":1,"t":1,"n":1,"a":1,"st":{"x":1}}}"#,
        ),
    ),
    (None, r#"{"numRecords":3,"nullCount":{"i":3,"s":3,"d":3,"b":3,"t":3,"n":3,"a":3,"st":{"x":3}}}"#),
];

/// Returns the commit that adds the files, named by their numbers.
fn adds() -> String {
    let line = |(number, (partition, statistics)): (usize, &(Option<&str>, &str))| {
        let add = json!({"path": number.to_string(), "partitionValues": {"p": partition}, "size": 1,
            "modificationTime": 0, "dataChange": true, "stats": statistics});
        format!("{}\n", json!({"add": add}))
    };
    STATISTICS.iter().enumerate().map(line).collect()
}

/// A table of three files: its schema, its adds, and the rows of each file.
pub static FILES: LazyLock<(TableSchema, RecordBatch, Vec<RecordBatch>)> = LazyLock::new(|| {
    let schema = TableSchema::parse(SCHEMA, &["p".to_owned()], "none").expect("a schema");
    let commit = Commit::parse(adds().as_bytes(), COMMIT, &Interrupt::default()).expect("a commit");
    let batches = ROWS.iter().map(|columns| {
        let arrays = columns.iter().zip(schema.arrow().fields()).map(|((name, texts), field)| {
            let texts: StringArray =
                texts.iter().map(|text| Some(*text).filter(|text| !text.is_empty())).collect();
            let of = |data_type: &DataType| parse_array(&texts, data_type).expect("values");
            match field.data_type() {
                DataType::Struct(fields) => {
                    Arc::new(StructArray::new(fields.clone(), vec![of(&DataType::Int32)], None)) as ArrayRef
                }
                other => {
                    assert_eq!(*name, field.name());
                    of(other)
                }
            }
        });
        RecordBatch::try_new(Arc::clone(schema.arrow()), arrays.collect()).expect("rows of the schema")
    });
    let batches = batches.collect();
    (schema, commit.adds[0].clone(), batches)
});
