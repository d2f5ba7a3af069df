//! What a version consists of ("Action Reconciliation"), and what its commits changed.
//!
//! - [`snapshot`]: one version; [`files`]: its live files; [`replay`]: finds actions that newer ones replace
//! - [`totals`]: distributions for version checksums; [`listing`]: files as users see them
//! - [`changes`]: the change data feed: the files, and rows of files, that commits inserted and deleted
//! - [`actions`]: makes tables of actions from others

pub mod actions;
pub mod changes;
pub mod files;
pub mod listing;
pub mod replay;
pub mod snapshot;
pub mod totals;
