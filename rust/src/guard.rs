//! Catches panics of dependencies on malformed bytes, returns them as errors, and does not print them.
//!
//! A panic that is not caught here is a bug of deltaic and is printed as usual. The binding must not let a
//! panic reach Python.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, Location};
use std::sync::Once;

use crate::error::{Error, Result};

thread_local! {
    /// Depth of nested catches of this thread.
    static CATCHING: Cell<usize> = const { Cell::new(0) };
    /// Place of the last panic within a catch.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `work`. A panic becomes an error with the message `what`; the panic's text is its `found`.
pub fn guarded<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    caught(work).unwrap_or_else(|found| {
        Err(Error::protocol(what).found(found).expected("input that can be processed"))
    })
}

/// Runs `work`. A panic becomes an error: the panic's text, and its place in the code.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    install();
    let within = NestingGuard::enter();
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    drop(within);
    done.map_err(|panic| {
        let place = PLACE.with(RefCell::take);
        place.map_or_else(|| text(panic.as_ref()), |place| format!("{} at {place}", text(panic.as_ref())))
    })
}

struct NestingGuard;

impl NestingGuard {
    fn enter() -> Self {
        CATCHING.with(|count| count.set(count.get() + 1));
        Self
    }
}

impl Drop for NestingGuard {
    fn drop(&mut self) {
        CATCHING.with(|count| count.set(count.get() - 1));
    }
}

/// Installs a panic hook that prints nothing within a catch, and calls the former hook otherwise.
fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // Thread locals may be dropped at the end of a thread; there is no catch then.
            if CATCHING.try_with(Cell::get).unwrap_or(0) == 0 {
                before(info);
            } else {
                let _ = PLACE.try_with(|place| place.replace(info.location().map(shown)));
            }
        }));
    });
}

/// Returns a place in the code as crate, file and line, without folders of the build machine.
fn shown(place: &Location<'_>) -> String {
    let file = place.file().replace('\\', "/");
    let file = match file.rsplit_once("/registry/src/") {
        Some((_, in_registry)) => in_registry.split_once('/').map_or(in_registry, |(_, path)| path),
        None => file.rsplit_once("/library/").map_or(file.as_str(), |(_, path)| path),
    };
    format!("{file}:{}", place.line())
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a fault without a message").to_owned()
}

#[cfg(test)]
#[allow(clippy::panic, clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_with_its_text_and_place() {
        let error =
            guarded("it cannot be read", || -> Result<()> { panic!("the length is {}", 5) }).unwrap_err();
        let (found, _) = error.found_expected();
        assert_eq!(error.message(), "it cannot be read");
        assert!(found.unwrap().starts_with("the length is 5 at rust/src/guard.rs:"), "{found:?}");
    }

    #[test]
    fn answers_and_errors_pass() {
        assert_eq!(guarded("x", || Ok(5)).unwrap(), 5);
        assert_eq!(
            guarded("x", || -> Result<()> { Err(Error::protocol("mine")) }).unwrap_err().message(),
            "mine"
        );
    }

    #[test]
    fn catches_within_catches() {
        let outer = caught(|| {
            let inner = caught(|| -> () { panic!("inner") });
            assert!(inner.unwrap_err().starts_with("inner at"));
            assert_eq!(CATCHING.with(Cell::get), 1);
            panic!("outer")
        });
        assert!(outer.map(|(): ()| ()).unwrap_err().starts_with("outer at"));
        assert_eq!(CATCHING.with(Cell::get), 0);
    }
}
