//! What a version consists of ("Action Reconciliation"), and what its commits changed.
//!
//! - [`snapshot`]: one version; [`files`]: its live files; [`replay`]: which actions newer ones take the place of
//! - [`totals`]: distributions over the live files, as version checksums have them; [`listing`]: live files as users see them
//! - [`changes`]: the change data feed; [`actions`]: tables of actions made from others

pub mod actions;
pub mod changes;
pub mod files;
pub mod listing;
pub mod replay;
pub mod snapshot;
pub mod totals;
