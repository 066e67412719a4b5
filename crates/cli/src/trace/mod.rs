//! `trace show`: explains the rates of sessions by their traces.
//!
//! | module | contents |
//! |---|---|
//! | `explain` `draw` | sentences and plots about a session |

mod draw;
mod explain;
#[cfg(test)]
mod tests;

use crate::args::TraceShow;
use crate::failure::{Failure, Usage, unwritten};
use crate::qlog::{About, Session, Story};
use crate::safe;
use crate::units;
use std::io::Write;
use std::path::Path;

/// Form of a file for the plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Page,
    #[cfg(feature = "simulator")]
    Svg,
    #[cfg(feature = "simulator")]
    Pdf,
}

impl Form {
    /// Returns the form of a file by the suffix of its name.
    fn of(path: &Path) -> Result<Form, Usage> {
        let suffix = path.extension().unwrap_or_default().to_ascii_lowercase();
        match suffix.to_str() {
            Some("html" | "htm") => Ok(Form::Page),
            #[cfg(feature = "simulator")]
            Some("svg") => Ok(Form::Svg),
            #[cfg(feature = "simulator")]
            Some("pdf") => Ok(Form::Pdf),
            _ => Err(Usage::PlotForm(path.to_owned())),
        }
    }
}

/// Explains a trace.
///
/// # Errors
/// When the file is not a trace, has no such session, or the output cannot be written.
pub fn show(typed: &TraceShow, out: &mut impl Write) -> Result<(), Failure> {
    let form = typed.out.as_deref().map(Form::of).transpose()?;
    let at = typed.at.map(|at| at.as_secs_f64());
    let unreadable = |reason: String| Usage::NotATrace { path: typed.file.clone(), reason };
    let (about, story) = Story::read(&typed.file, at).map_err(|error| unreadable(error.to_string()))?;
    let chosen: Vec<&Session> = story
        .sessions
        .iter()
        .filter(|one| typed.session.as_ref().is_none_or(|name| *name == one.name))
        .collect();
    if chosen.is_empty() {
        let mut known: Vec<&str> = story.sessions.iter().map(|one| one.name.as_str()).collect();
        known.dedup();
        return Err(Usage::NoTracedSession { path: typed.file.clone(), known: known.join(", ") }.into());
    }
    let mut lines = heading(&about, &story);
    for session in &chosen {
        lines.push(String::new());
        lines.extend(describe(session, at));
    }
    if let (Some(path), Some(form)) = (&typed.out, form) {
        let [session] = chosen[..] else {
            return Err(Usage::SeveralTracedSessions(chosen.len()).into());
        };
        let bytes = rendered(form, session)?;
        std::fs::write(path, bytes).map_err(Failure::system(format!("write {}", path.display())))?;
        lines.push(format!("wrote {}", path.display()));
    }
    lines.iter().try_for_each(|line| writeln!(out, "{}", safe::text(line))).map_err(unwritten)
}

fn heading(about: &About, story: &Story) -> Vec<String> {
    let began = if about.began.is_empty() { String::new() } else { format!(", {}", about.began) };
    let host = if about.host.is_empty() { String::new() } else { format!(" on {}", about.host) };
    let mut lines = vec![format!("{}{host}{began}: {}", about.title, units::count(about.events, "event"))];
    if about.unreadable > 0 {
        let records = units::count(about.unreadable, "record");
        lines.push(format!("warning: {records} could not be read: {}", about.faults.join("; ")));
    }
    if story.is_full {
        lines.push("warning: the trace ended at its maximum size, before the command".to_owned());
    }
    if story.dropped > 0 {
        let records = units::count(story.dropped, "record");
        lines.push(format!("warning: {records} missing, because the file was not written in time"));
    }
    lines
}

fn describe(session: &Session, at: Option<f64>) -> Vec<String> {
    let mut title = format!("{} ({}", session.name, session.role);
    for more in [&session.scheme, &session.branch] {
        if !more.is_empty() {
            title += &format!(", {more}");
        }
    }
    title += &format!("): {:.1} s to {:.1} s", session.from, session.to);
    if session.receivers > 0 {
        title += &format!(", {}", units::count(session.receivers, "receiver"));
    }
    if let Some(verified) = session.verified {
        title += &format!(", {verified} verified");
    }
    let mut lines = vec![title];
    match at {
        Some(at) => lines.extend(explain::moment(session, at)),
        None => {
            lines.extend(draw::text(session));
            lines.extend(explain::course(session));
        }
    }
    lines
}

fn rendered(form: Form, session: &Session) -> Result<Vec<u8>, Usage> {
    match form {
        Form::Page => draw::page(session).map(String::into_bytes).ok_or(Usage::NoPages),
        #[cfg(feature = "simulator")]
        Form::Svg => Ok(draw::figure(session).svg().into_bytes()),
        #[cfg(feature = "simulator")]
        Form::Pdf => Ok(draw::figure(session).pdf()),
    }
}
