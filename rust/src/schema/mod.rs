//! PROTOCOL.md, "Schema Serialization Format" and "Column Mapping": Delta types and names <-> Arrow.
//!
//! - [`types`]: Delta's types as values
//! - [`json`]: their JSON
//! - [`arrow_types`]: the Arrow type of each
//! - [`from_arrow`]: the Delta type of an Arrow type
//! - [`partition_values`]: text <-> values
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
