//! The byte plane of deltaic. Each module names the section of PROTOCOL.md (delta-io/delta) that it serves.
//!
//! - [`error`]: the one error type
//! - [`store`]: where bytes live
//! - [`schema`]: "Schema Serialization Format", "Column Mapping": Delta types and names <-> Arrow
//! - [`predicate`]: the predicate tree; read on rows and on statistics ("Per-file Statistics")
//! - [`z85`], [`deletion_vector`]: "Deletion Vectors", "Deletion Vector Format"
//! - [`pages`]: what the pages of any Parquet file claim, and no more of them than that
//! - [`data_file`]: "Data Files", "Per-file Statistics"
//! - [`log`]: "Delta Log Entries", "Checkpoints", "Action Reconciliation"
//! - [`iceberg`]: manifests of the Iceberg table specification, for readers that know no Delta
//! - [`expressions`]: kernels of Spark's SQL functions; no format
//! - [`matching`]: equality joins of few rows; no format
//! - [`zorder`]: range ids and curves for clustering; no format
//! - `fuzzing`: entry points of the fuzz targets, compiled for them alone
//! - [`guard`]: panics of dependencies as errors
//! - [`interrupt`]: the user's wish to stop, handed down into long loops
//! - [`python`]: the binding, the only code that knows Python

pub mod data_file;
pub mod deletion_vector;
pub mod error;
pub mod expressions;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod guard;
pub mod iceberg;
pub mod interrupt;
pub mod log;
pub mod matching;
pub mod pages;
pub mod parallel;
pub mod predicate;
#[cfg(feature = "python")]
mod python;
pub mod schema;
pub mod store;
pub mod z85;
pub mod zorder;

#[cfg(feature = "python")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
