//! `--page` of `compare`, `aqm` and `repro run`: a server of the page of their results.

use super::args::Shown;
#[cfg(feature = "page")]
use super::live::Live;
use crate::failure::Failure;
use std::io::Write;
use std::sync::atomic::AtomicBool;

/// The server of a page of results; empty without `--page`.
pub struct Served {
    #[cfg(feature = "page")]
    live: Option<Live>,
}

#[cfg(feature = "page")]
impl Served {
    /// Starts the server before the runs, so that an unusable address costs no time, and prints its address.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn open(
        shown: &Shown,
        command: &'static str,
        is_json: bool,
        out: &mut impl Write,
    ) -> Result<Served, Failure> {
        let live = shown.page.map(|at| Live::of_results(at, command, is_json, out)).transpose()?;
        Ok(Served { live })
    }

    /// Shows the results, and serves them until Enter or a signal, if a person is at the keyboard.
    pub fn show(&self, html: &str, stop: &AtomicBool) {
        self.live.iter().for_each(|live| live.show_results(html.to_owned(), stop));
    }
}

#[cfg(not(feature = "page"))]
impl Served {
    /// Returns no server.
    pub fn open(_: &Shown, _: &'static str, _: bool, _: &mut impl Write) -> Result<Served, Failure> {
        Ok(Served {})
    }

    /// Shows nothing.
    pub fn show(&self, _: &str, _: &AtomicBool) {}
}
