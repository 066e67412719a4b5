//! Log lines and the trace of sessions.
//!
//! ```text
//!   session -- event --> Lines -------> queue --> standard error, a file, the journal
//!                   \--> Recorder ----> queue --> the file of the trace
//! ```
//!
//! A session formats an event and puts it into a queue with a bound. It never waits for the reader of the queue.

mod fields;
mod limiter;
mod lines;
mod recorder;

use crate::args::OutputOptions;
use crate::failure::Usage;
use crate::outlet::Outlet;
use crate::units;
use crate::values::LogTo;
use lines::{Form, Lines};
use recorder::Recorder;
use std::env;
use std::fs::File;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::SystemTime;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

/// Environment variable that selects log targets and their levels, such as `faircast=debug` or
/// `faircast::join=info,faircast::cut=debug`.
const VARIABLE: &str = "RUST_LOG";

/// Prefix of the targets of all events.
const OURS: &str = "faircast";

/// Socket of the journal of systemd.
const JOURNAL: &str = "/run/systemd/journal/socket";

/// The open files of the log and of the trace that the options of a command select.
#[derive(Debug)]
pub struct Selected {
    command: &'static str,
    lines: Option<Place<(Form, Outlet)>>,
    trace: Option<Place<Outlet>>,
}

/// An output, with its name for warnings.
#[derive(Debug)]
struct Place<T>(String, T);

impl Selected {
    /// Returns no log and no trace.
    pub const fn nothing(command: &'static str) -> Selected {
        Selected { command, lines: None, trace: None }
    }

    /// Opens the files.
    ///
    /// # Errors
    /// When a file cannot be created.
    pub fn of(command: &'static str, options: &OutputOptions) -> Result<Selected, Usage> {
        let mut selected = Selected::nothing(command);
        selected.lines = match &options.log {
            None => None,
            Some(LogTo::File(path)) => {
                let file = File::options().append(true).create(true).open(path);
                let file = file.map_err(unwritable("the log", path))?;
                let name = format!("the log {}", path.display());
                Some(Place(name, (Form::Text, Outlet::tolerant(file, missing_lines))))
            }
            Some(LogTo::Journal) => {
                let socket = journal().map_err(Usage::NoJournal)?;
                let out = Outlet::tolerant(socket, missing_messages);
                Some(Place("the journal".to_owned(), (Form::Journal, out)))
            }
        };
        if let Some(path) = &options.trace {
            let file = File::create(path).map_err(unwritable("the trace", path))?;
            let name = format!("the trace {}", path.display());
            selected.trace = Some(Place(name, Outlet::tolerant(file, recorder::dropped)));
        }
        Ok(selected)
    }

    /// Begins the log and the trace. Without `--log`, lines are written to `people` if the variable selects any.
    pub fn begin(self, people: &Outlet) -> Log {
        let mut outlets = Vec::new();
        let (targets, warning) = targets();
        let lines = match self.lines {
            Some(Place(name, (form, out))) => {
                outlets.push(Place(name, out.clone()));
                Some(Lines::new(out, form))
            }
            None => targets.is_some().then(|| Lines::new(people.clone(), Form::Text)),
        };
        let recorder = self.trace.map(|Place(name, out)| {
            outlets.push(Place(name, out.clone()));
            Recorder::new(out, self.command)
        });
        if lines.is_some() || recorder.is_some() {
            let selected = targets.unwrap_or_else(|| Targets::new().with_target(OURS, LevelFilter::INFO));
            let all = Targets::new().with_target(OURS, LevelFilter::DEBUG);
            tracing_subscriber::registry()
                .with(lines.clone().map(|lines| lines.with_filter(selected)))
                .with(recorder.map(|recorder| recorder.with_filter(all)))
                .try_init()
                .expect("a process has one session, which begins here");
        }
        Log { lines, outlets, warning }
    }
}

fn unwritable(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Usage {
    let path = path.to_owned();
    move |source| Usage::Unwritable { what, path, source }
}

/// A running log and trace.
#[derive(Debug)]
pub struct Log {
    lines: Option<Lines>,
    outlets: Vec<Place<Outlet>>,
    /// Warning about the selection of lines.
    pub warning: Option<String>,
}

impl Log {
    /// Writes the remaining lines. Returns a warning for each output that could not be written.
    pub fn finish(self) -> Vec<String> {
        self.lines.iter().for_each(Lines::finish);
        let finish = |Place(name, mut out): Place<Outlet>| {
            let error = out.finish().err()?;
            Some(format!("{name} is incomplete: {error}"))
        };
        self.outlets.into_iter().filter_map(finish).collect()
    }
}

/// Returns the targets that the variable selects; `None` without the variable. If it is wrong, returns a warning: other programs
/// may understand it.
fn targets() -> (Option<Targets>, Option<String>) {
    let Some(selected) = env::var_os(VARIABLE).filter(|selected| !selected.is_empty()) else {
        return (None, None);
    };
    match selected.to_string_lossy().parse() {
        Ok(targets) => (Some(targets), None),
        Err(error) => (None, Some(format!("{VARIABLE} is ignored: {error}; an example is faircast=debug"))),
    }
}

fn journal() -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(JOURNAL)?;
    Ok(socket)
}

fn missing(form: Form, count: u64) -> Vec<u8> {
    let message = format!("{} missing, because the log was not written in time", units::count(count, "line"));
    lines::line(form, SystemTime::now(), &lines::notice(OURS, message))
}

fn missing_lines(count: u64) -> Vec<u8> {
    missing(Form::Text, count)
}

fn missing_messages(count: u64) -> Vec<u8> {
    missing(Form::Journal, count)
}
