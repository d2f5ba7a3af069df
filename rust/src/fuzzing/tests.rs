//! Gives the committed corpora to the entry points of the fuzz targets, so that an input that once broke a
//! property is tried by every run of the tests, without a fuzzer.

use std::fs;
use std::path::Path;

type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 13] = [
    ("checkpoint", super::checkpoint),
    ("commit", super::commit),
    ("data_file", super::data_file),
    ("file_statistics", super::file_statistics),
    ("last_checkpoint", super::last_checkpoint),
    ("manifest_list", super::manifest_list),
    ("partition_value", super::partition_value),
    ("path", super::path),
    ("predicate", super::predicate),
    ("schema_json", super::schema_json),
    ("vector", super::vector),
    ("vector_file", super::vector_file),
    ("vector_text", super::vector_text),
];

#[test]
fn every_property_holds_for_the_corpora() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    assert_eq!(fs::read_dir(root.join("targets")).unwrap().count(), TARGETS.len());
    for (name, target) in TARGETS {
        let mut inputs: Vec<_> = fs::read_dir(root.join("corpora").join(name))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert!(inputs.len() >= 5, "{name} has {} inputs", inputs.len());
        inputs.sort();
        for input in inputs {
            println!("{}", input.display()); // shown if the property is broken
            target(&fs::read(&input).unwrap());
        }
    }
}
