//! Converts between the types and names of Delta and those of Arrow: PROTOCOL.md, "Schema Serialization
//! Format" and "Column Mapping".
//!
//! - [`types`]: Delta's types
//! - [`json`]: conversion between types and JSON
//! - [`arrow_types`]: the Arrow type of each Delta type
//! - [`from_arrow`]: the Delta type of an Arrow type
//! - [`partition_values`]: conversion between values and text
//! - [`table`]: a table's schema: logical and physical names, field ids, partition columns

pub mod arrow_types;
pub mod from_arrow;
pub mod json;
pub mod partition_values;
pub mod table;
pub mod types;

pub use table::{ColumnMapping, Leaf, TableSchema};
pub use types::{Field, Primitive, Shape, Type};

#[cfg(test)]
mod tests;
