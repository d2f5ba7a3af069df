//! `Interrupt`, which long loops ask whether the user wants them to stop, as by Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Kind, Result};

/// A flag that one thread raises and all others check. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Asks all holders of clones to stop.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
    /// An error of [`Kind::Interrupted`] once raised. Cheap: call it per batch, row group or file.
    pub fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) {
            Err(Error::new(Kind::Interrupted, "stopped by the user"))
        } else {
            Ok(())
        }
    }
}
