//! `Interrupt`, a flag that long loops check, so that they end when the user wants to stop, as by Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Kind, Result};

/// A flag that one thread raises and all others check. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Sets the flag, so that all loops that check it stop.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
    /// Returns an error of [`Kind::Interrupted`] if the flag is set. A call is cheap: call it once per batch,
    /// row group or file.
    pub fn check(&self) -> Result<()> {
        if self.0.load(Ordering::Relaxed) {
            Err(Error::new(Kind::Interrupted, "stopped by the user"))
        } else {
            Ok(())
        }
    }
}
