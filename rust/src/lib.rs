//! The Rust crate: it reads and writes the log, data files and deletion vectors. It makes no decisions about
//! commands. Each module names the section of PROTOCOL.md (delta-io/delta) that it implements.
//!
//! - [`error`]: the error type of all modules
//! - [`store`]: where a table's files are: local, in the cloud, in memory
//! - [`schema`]: "Schema Serialization Format", "Column Mapping": conversion between Delta's and Arrow's
//!   types and names
//! - [`predicate`]: the predicate tree, evaluated on rows and on statistics ("Per-file Statistics")
//! - [`z85`], [`deletion_vector`]: "Deletion Vectors", "Deletion Vector Format"
//! - [`pages`]: reads the pages of Parquet files, and limits what a page may decompress to
//! - [`data_file`]: "Data Files", "Per-file Statistics"
//! - [`log`]: "Delta Log Entries", "Checkpoints", "Action Reconciliation"
//! - [`iceberg`]: manifests of the Iceberg table specification, for readers that do not support Delta
//! - [`expressions`]: kernels of Spark's SQL functions
//! - [`matching`]: equality joins of few rows
//! - [`zorder`]: range ids and space-filling curves for clustering
//! - `fuzzing`: entry points of the fuzz targets, compiled for fuzzing and tests only
//! - [`guard`]: turns panics of dependencies into errors
//! - [`interrupt`]: stops long loops when the user presses Ctrl-C
//! - [`python`]: the Python binding, the only module that uses Python

pub mod data_file;
pub mod deletion_vector;
pub mod error;
pub mod expressions;
#[cfg(any(fuzzing, test))]
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
