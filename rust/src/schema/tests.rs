#![allow(clippy::unwrap_used)]
use arrow::datatypes::DataType;

use super::types::Type;
use super::{TableSchema, json, table::split_path};
use crate::error::Kind;

fn schema(fields: &str) -> String {
    format!("{{\"type\":\"struct\",\"fields\":[{fields}]}}")
}

fn field(name: &str, data_type: &str) -> String {
    format!("{{\"name\":\"{name}\",\"type\":{data_type},\"nullable\":true,\"metadata\":{{}}}}")
}

#[test]
fn json_round_trips() {
    let nested = concat!(
        r#"{"type":"map","keyType":"string","#,
        r#""valueType":{"type":"array","elementType":"decimal(38,10)","containsNull":false},"#,
        r#""valueContainsNull":true}"#,
    );
    let text = schema(&[field("a", "\"long\""), field("b", nested)].join(","));
    let parsed = json::parse_struct(&text).unwrap();
    assert_eq!(parsed, json::parse_struct(&json::struct_json(&parsed).to_string()).unwrap());
}

#[test]
fn numbers_in_metadata_keep_their_digits() {
    for number in ["122.41629403378658", "31.245270191439438", "121.48791951161945", "5e-324"] {
        let text = format!(r#"{{"name":"a","type":"long","nullable":true,"metadata":{{"k":{number}}}}}"#);
        let parsed = json::parse_struct(&schema(&text)).unwrap();
        assert_eq!(json::struct_json(&parsed)["fields"][0]["metadata"]["k"].to_string(), number);
    }
}

#[test]
fn types_that_cannot_be_read_are_named() {
    for name in [
        "interval year",
        "geometry(4326)",
        "geometry(a:b c)",
        "geography(OGC:CRS84)",
        "geography(OGC:CRS84, straight)",
    ] {
        let error =
            TableSchema::parse(&schema(&field("v", &format!("\"{name}\""))), &[], "none").unwrap_err();
        assert_eq!(error.kind(), Kind::UnsupportedFeature);
        assert!(error.to_string().contains(name) && error.location() == Some("v"), "{error}");
    }
}

#[test]
fn types_of_shapes_keep_their_names() {
    for name in ["geometry(OGC:CRS84)", "geometry(srid:4326)", "geography(EPSG:4326, karney)"] {
        let parsed = json::parse_struct(&schema(&field("v", &format!("\"{name}\"")))).unwrap();
        assert_eq!(parsed[0].data_type.to_json(), name);
        assert_eq!(parsed[0].data_type.to_arrow(false), arrow::datatypes::DataType::Binary);
    }
}

#[test]
fn decimals_out_of_range_are_refused() {
    for name in ["decimal(39,0)", "decimal(0,0)", "decimal(3,4)", "decimal(-1,0)"] {
        assert_eq!(
            TableSchema::parse(&schema(&field("d", &format!("\"{name}\""))), &[], "none").unwrap_err().kind(),
            Kind::Protocol
        );
    }
}

#[test]
fn paths_are_found_without_case_and_with_dots_in_names() {
    let inner = schema(&[field("x.y", "\"integer\""), field("z", "\"string\"")].join(","));
    let text = schema(&[field("A", &inner), field("b.c", "\"long\"")].join(","));
    let table = TableSchema::parse(&text, &[], "none").unwrap();
    assert_eq!(table.leaf("a.Z").unwrap().path, ["A", "z"]);
    assert_eq!(table.leaf("a.`x.y`").unwrap().data_type, DataType::Int32);
    assert_eq!(table.leaf("B.C").unwrap().path, ["b.c"]);
    assert_eq!(table.leaf("a.q").unwrap_err().kind(), Kind::InvalidArgument);
    let both = table.select(&["a.z".into(), "b.c".into(), "a.`x.y`".into()]).unwrap();
    assert_eq!(both.len(), 2);
    assert_eq!(both[0].data_type, table.fields()[0].data_type);
}

#[test]
fn backticks_quote_dots() {
    assert_eq!(split_path("a.`b``.c`.d"), ["a", "b`.c", "d"]);
}

#[test]
fn names_that_differ_in_case_only_are_refused() {
    let text = schema(&[field("a", "\"long\""), field("A", "\"long\"")].join(","));
    assert_eq!(TableSchema::parse(&text, &[], "none").unwrap_err().kind(), Kind::Protocol);
}

#[test]
fn column_mapping_needs_physical_names() {
    let error = TableSchema::parse(&schema(&field("a", "\"long\"")), &[], "name").unwrap_err();
    assert_eq!((error.kind(), error.location()), (Kind::Protocol, Some("a")));
}

#[test]
fn fields_of_a_user_defined_type_are_not_mapped() {
    let text = concat!(
        r#"{"name":"v","type":{"type":"udt","class":"org.example.VectorUDT","sqlType":{"type":"array","#,
        r#""elementType":{"type":"struct","fields":[{"name":"x","type":"byte","nullable":false}]},"#,
        r#""containsNull":true}},"nullable":true,"#,
        r#""metadata":{"delta.columnMapping.id":1,"delta.columnMapping.physicalName":"col-1"}}"#,
    );
    for mode in ["none", "name", "id"] {
        let table = TableSchema::parse(&schema(text), &[], mode).unwrap();
        let Type::Array(element, true) = &table.fields()[0].data_type else { panic!("no array") };
        let Type::Struct(inside) = &**element else { panic!("no struct") };
        assert_eq!(table.physical_name(&inside[0]), "x", "{mode}");
    }
}

#[test]
fn hidden_columns_come_last_and_have_names_of_their_own() {
    let table = TableSchema::parse(
        &schema(&[field("a", "\"long\""), field("p", "\"long\"")].join(",")),
        &["p".into()],
        "none",
    )
    .unwrap();
    assert!((0..2).all(|index| !table.is_hidden(index)));
    let whole = table.with_hidden(&["id".into(), "version".into()], &[]).unwrap();
    assert_eq!(
        whole.fields().iter().map(|field| field.name.as_str()).collect::<Vec<_>>(),
        ["a", "p", "id", "version"]
    );
    assert_eq!((0..4).map(|index| whole.is_hidden(index)).collect::<Vec<_>>(), [false, false, true, true]);
    assert_eq!(whole.arrow().field(3).data_type(), &DataType::Int64);
    assert!(whole.is_partition(1) && whole.json() == table.json());
    assert_eq!(table.with_hidden(&["a".into()], &[]).unwrap_err().kind(), Kind::Protocol);
}

#[test]
fn a_column_beside_the_tables_own_is_not_mapped() {
    let mapped = concat!(
        r#"{"name":"a","type":"long","nullable":true,"#,
        r#""metadata":{"delta.columnMapping.id":1,"delta.columnMapping.physicalName":"x"}}"#,
    );
    let beside = r#"{"name":"b","type":"string","nullable":true,"metadata":{"__deltaic_unmapped":true}}"#;
    let table = TableSchema::parse(&schema(&[mapped, beside].join(",")), &[], "id").unwrap();
    assert_eq!(table.fields().iter().map(|field| table.physical_name(field)).collect::<Vec<_>>(), ["x", "b"]);
    let plain = field("b", "\"string\"");
    assert_eq!(
        TableSchema::parse(&schema(&[mapped, &plain].join(",")), &[], "name").unwrap_err().kind(),
        Kind::Protocol
    );
}
