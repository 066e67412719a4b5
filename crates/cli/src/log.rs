//! Log lines of sessions, which the variable `FAIRCAST_LOG` selects.

use crate::outlet::Outlet;
use std::env;
use std::io::Write;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

/// Targets and their levels, such as `faircast=info` or `faircast::join=info,faircast::cut=debug`.
const VARIABLE: &str = "FAIRCAST_LOG";

/// Writes the selected events to this output, a line each.
pub fn begin(out: &mut Outlet) {
    let Ok(selected) = env::var(VARIABLE) else { return };
    let targets: Targets = match selected.parse() {
        Ok(targets) => targets,
        Err(error) => {
            // An output that nobody reads changes nothing.
            let _ = writeln!(out, "warning: {VARIABLE}: {error}; nothing is logged");
            return;
        }
    };
    let to = out.clone();
    let lines = fmt::layer().with_writer(move || to.clone()).with_filter(targets);
    tracing_subscriber::registry()
        .with(lines)
        .try_init()
        .expect("a process has one session, which begins here");
}
