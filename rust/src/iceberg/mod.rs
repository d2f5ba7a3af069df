//! Makes Iceberg's manifests and manifest lists from add actions (Apache Iceberg table specification,
//! versions 2 and 3: "Manifests", "Manifest Lists").
//!
//! An entry of a manifest names a data file, or a deletion vector, with its partition values and statistics.
//! Manifests are Avro files, read and written by [`avro`]. Entries that are copied from one manifest to
//! another are not decoded.

mod avro;
mod entry;
mod list;
mod manifest;
mod values;

pub use list::{read as read_list, write as write_list};
pub use manifest::{Counts, Options, manifest};
