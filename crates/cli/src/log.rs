//! Log lines of sessions. The environment variable `FAIRCAST_LOG` selects them.

use crate::outlet::Outlet;
use std::env;
use std::io::Write;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

/// Environment variable that selects log targets and their levels, such as `faircast=info` or
/// `faircast::join=info,faircast::cut=debug`.
const VARIABLE: &str = "FAIRCAST_LOG";

/// Starts to write the selected log events to `out`, one per line.
pub fn begin(out: &mut Outlet) {
    let Ok(selected) = env::var(VARIABLE) else { return };
    let targets: Targets = match selected.parse() {
        Ok(targets) => targets,
        Err(error) => {
            // A failure to write standard error is ignored.
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
