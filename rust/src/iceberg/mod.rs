//! Iceberg's manifests and manifest lists (Apache Iceberg table specification, versions 2 and 3: "Manifests", "Manifest Lists"), made of
//! add actions.
//!
//! An entry of a manifest names a data file, or a deletion vector, with its partition values and statistics. Manifests are Avro files;
//! the part of Avro that they need is in [`avro`]. Entries that are copied from one manifest to another are not decoded.

mod avro;
mod list;
mod manifest;
mod values;

pub use list::{read as read_list, write as write_list};
pub use manifest::{Counts, Options, manifest};
