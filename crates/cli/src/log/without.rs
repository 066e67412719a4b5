//! Stands for the log and the trace in a build without the feature `tracing`: nothing is written.

use crate::args::OutputOptions;
use crate::failure::Usage;
use crate::outlet::Outlet;

/// A selection of nothing.
#[derive(Debug)]
pub struct Selected;

impl Selected {
    /// Returns the selection.
    pub const fn nothing(_: &'static str) -> Selected {
        Selected
    }

    /// Returns the selection.
    #[expect(clippy::unnecessary_wraps, reason = "the other build opens files")]
    pub const fn of(_: &'static str, _: &OutputOptions) -> Result<Selected, Usage> {
        Ok(Selected)
    }

    /// Begins nothing.
    pub fn begin(self, _: &Outlet) -> Log {
        Log { warning: None }
    }
}

/// A log that does not exist.
#[derive(Debug)]
pub struct Log {
    /// No warning.
    pub warning: Option<String>,
}

impl Log {
    /// Returns no warnings.
    pub fn finish(self) -> Vec<String> {
        Vec::new()
    }
}
