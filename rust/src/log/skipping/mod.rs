//! Selects the files that may hold a matching row, by partition values and "Per-file Statistics".
//!
//! - [`selection`]: applies a predicate to files; [`path_order`]: the order of those that are left
//! - [`statistics`]: typed columns of the JSON, for the columns of a predicate; [`typed_statistics`]: those
//!   of checkpoints

mod path_order;
pub mod selection;
pub mod statistics;
pub mod typed_statistics;
