//! Why a command did not succeed, and how that is said.

use crate::outlet::{self, Outlet};
use crate::safe;
use crate::wording;
use faircast::{Class, Format};
use faircast_net::NetError;
use faircast_wire::KeyError;
use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// The request makes no sense: found before anything is sent or written.
#[derive(Debug, thiserror::Error)]
pub enum Usage {
    /// A relay runs already.
    #[error("a relay listens at {} already; ask it with `faircast relay --status`, or name another place with --control", .0.display())]
    RelayRuns(PathBuf),
    /// A relay has nobody to pass sessions on to.
    #[error("no output for sessions: give --to or --listen, or be an agent (--role agent)")]
    RelayToNobody,
    /// No session waits.
    #[error(
        "no `faircast send` or `stream` on this host waits for receivers; start one, or name its process"
    )]
    NoSession,
    /// This process is not such a sender.
    #[error(
        "process {0} is not a `faircast send` or `stream` that waits for receivers; `faircast start` alone finds the one that runs"
    )]
    NotASession(u32),
    /// Several sessions wait.
    #[error("several sessions run: {0}; name the process of one, as in `faircast start 1234`")]
    SeveralSessions(String),
    /// An agent sends nothing of its own.
    #[error(
        "an agent has no branches, no cache and no rate of its own: its children receive from the source; leave out --to, --cache and --max, or use --role repeater"
    )]
    AgentHasNoBranches,
    /// A router is on the way and has nothing of its own.
    #[error(
        "a router forwards between interfaces: name them with --from and --to; it has no parent, no children by unicast, no cache and no rate of its own (leave out --parent, --listen, --cache and --max, or use --role repeater)"
    )]
    RouterHasNoBranches,
    /// A relay's control socket cannot be made.
    #[error("cannot listen at {}: {source}; name another place with --control", .path.display())]
    RelayControl {
        /// The socket.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// No relay listens.
    #[error("no relay answers at {}: {source}; is one running, with the same --control?", .path.display())]
    NoRelay {
        /// The socket.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A relay says what this version does not know.
    #[error("the relay's answer cannot be read: {reason}; it may be of another version, see `--json`")]
    RelayAnswer {
        /// Error in it.
        reason: String,
    },
    /// A directory of public keys that cannot be read.
    #[error("cannot read the keys in {}: {source}", .path.display())]
    KeysUnreadable {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It has more files than are read.
    #[error("{} has more than {most} files; name the directory of the public keys", .path.display())]
    TooManyKeyFiles {
        /// The directory.
        path: PathBuf,
        /// The most.
        most: usize,
    },
    /// It has no keys.
    #[error("there is no public key in {}; `faircast keygen --sign FILE` makes FILE.pub", .0.display())]
    NoKeys(PathBuf),
    /// A report that cannot be read.
    #[error("cannot read the report {}: {source}", .path.display())]
    ReportUnreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is something else.
    #[error("{} is not a report in JSON: {reason}; `faircast send --report FILE.json` writes one", .path.display())]
    NotAReport {
        /// The file.
        path: PathBuf,
        /// Error in it.
        reason: String,
    },
    /// A report of a session without receipts.
    #[error("{} has no receipts: no receiver has signed one, see `faircast recv --sign-receipts`", .0.display())]
    NoReceipts(PathBuf),
    /// A list of hosts that cannot be read.
    #[error("cannot read the list of hosts {}: {source}", .path.display())]
    HostsUnreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line that is no host.
    #[error("{}, line {line}: {reason}", .path.display())]
    HostLine {
        /// The file.
        path: PathBuf,
        /// Which line.
        line: usize,
        /// Error in the value.
        reason: crate::values::BadValue,
    },
    /// A host that is there twice.
    #[error("{}, line {line}: {name} is {address}, which is on line {before} already; leave one out", .path.display())]
    HostTwice {
        /// The file.
        path: PathBuf,
        /// Which line.
        line: usize,
        /// The line before.
        before: usize,
        /// As given.
        name: String,
        /// The address.
        address: std::net::SocketAddr,
    },
    /// A receiver that is there twice.
    #[error("{}, line {line}: {name} is on line {before} already; leave one out", .path.display())]
    ReceiverTwice {
        /// The file.
        path: PathBuf,
        /// Which line.
        line: usize,
        /// The line before.
        before: usize,
        /// As given.
        name: String,
    },
    /// A report that cannot be written.
    #[error("cannot write the report {}: {source}; name a file in a directory that is there and may be written", .path.display())]
    Report {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A list that is too long.
    #[error("{} has more than {most} hosts; put relays between them and the source", .path.display())]
    TooManyHosts {
        /// The file.
        path: PathBuf,
        /// How many there may be.
        most: usize,
    },
    /// A list without hosts.
    #[error("{} names no host; write one a line, like 192.0.2.7 or host.example.org:5778", .0.display())]
    NoHosts(PathBuf),
    /// Standard input and paths at once.
    #[error("`-` (standard input) cannot be sent together with paths; send them one after the other")]
    StdinAndPaths,
    /// Standard input on two layers.
    #[error("`--layer -` is given twice, but there is one standard input; use named pipes for the others")]
    StdinTwice,
    /// A name for something that has one.
    #[error("`--name` names standard input, but paths are sent; leave it out or send `-`")]
    NameWithoutStdin,
    /// Standard input is a keyboard.
    #[error("standard input is a terminal; pipe something in, as in `tar c DIR | faircast {0}`")]
    StdinIsTerminal(&'static str),
    /// A path that is not there.
    #[error("there is nothing at {}; check the path", .0.display())]
    NoSuchPath(PathBuf),
    /// The slowest rate is above the fastest.
    #[error("`--min` ({min}) is above `--max` ({max}); swap them, or leave one out")]
    MinAboveMax {
        /// As given.
        min: faircast_core::time::Rate,
        /// As given.
        max: faircast_core::time::Rate,
    },
    /// The rate of `--slow` is above the fastest.
    #[error(
        "the rate of `--slow {policy}` ({rate}) is above `--max` ({max}), so every receiver would be slow; lower it"
    )]
    SlowAboveMax {
        /// `floor` or `drop`.
        policy: &'static str,
        /// As given.
        rate: faircast_core::time::Rate,
        /// As given.
        max: faircast_core::time::Rate,
    },
    /// The key file cannot be read.
    #[error("cannot read the key file {}: {source}; make one with `faircast keygen {}` and copy it to every host", .path.display(), .path.display())]
    KeyUnreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The key file does not hold a key.
    #[error("{} is not a key file: {reason}", .path.display())]
    KeyMalformed {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: KeyError,
    },
    /// The key file is no text, or far too long.
    #[error("{} is not a key file; make one with `faircast keygen`", .0.display())]
    KeyNotText(PathBuf),
    /// A pair of keys on standard output.
    #[error(
        "a signing key and its public half are two files; name the first, as in `faircast keygen --sign lab.sign`"
    )]
    SignStdout,
    /// The output directory cannot be one.
    #[error("{} is a file; `--out` takes a directory", .0.display())]
    OutIsFile(PathBuf),
    /// The output directory takes no files.
    #[error("nothing can be written into {}: {}: {source}; name another directory with --out, or let this user write there", .out.display(), .there.display())]
    OutRefuses {
        /// As given.
        out: PathBuf,
        /// It, or the nearest directory above that is there.
        there: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// No command has this name.
    #[error("there is no command `{name}`; the manual has pages for {known}")]
    NoSuchCommand {
        /// As given.
        name: String,
        /// Those that exist.
        known: String,
    },
    /// A source of the other family.
    #[error(
        "the source {source_ip} and the group {group} are of different families; use two IPv4 or two IPv6 addresses"
    )]
    Families {
        /// As given.
        source_ip: std::net::IpAddr,
        /// As given.
        group: std::net::IpAddr,
    },
    /// A source that is a group.
    #[error("the source {0} is a multicast address; give the address of the sending host")]
    SourceIsGroup(std::net::IpAddr),
    /// A file that is already there.
    #[error("{} exists; choose another name, or overwrite it with --force (hosts that have the old key will be left out)", .0.display())]
    KeyExists(PathBuf),
    /// An option of one format with another one.
    #[error(
        "`--{option}` means something over {} only; add `--wire {}`, or leave it out",
        .format.declaration().title, .format.declaration().name
    )]
    NeedsFormat {
        /// Its name.
        option: String,
        /// The format that has it.
        format: Format,
    },
    /// The format lacks a feature.
    #[error("`{option}` cannot be used with `--wire {}`: {why}; leave it out", .format.declaration().name)]
    NotOver {
        /// As given.
        option: String,
        /// The format.
        format: Format,
        /// Why not.
        why: &'static str,
    },
    /// The format requires an option.
    #[error("`{option}` is missing with `--wire {}`: {why}", .format.declaration().name)]
    MissingOver {
        /// As it would be given.
        option: String,
        /// The format.
        format: Format,
        /// Why.
        why: &'static str,
    },
    /// An option of a session without feedback with another one.
    #[error(
        "`{0}` means something with `--one-way` and in formats without feedback only; add `--one-way`, or leave it out"
    )]
    NeedsOneWay(&'static str),
    /// No rate without feedback.
    #[error(
        "`--one-way` has no feedback that controls the rate; add `--rate RATE` with a rate that is free on every path"
    )]
    OneWayRate,
    /// An option that needs feedback without it.
    #[error("`{option}` cannot be used with `--one-way`: {why}; leave it out")]
    NotOneWay {
        /// As given.
        option: &'static str,
        /// Why not.
        why: &'static str,
    },
    /// A simulation that cannot be run.
    #[cfg(feature = "simulator")]
    #[error(transparent)]
    Simulation(#[from] crate::sim_usage::SimUsage),
    /// No such scheme.
    #[error("there is no scheme `{name}`; choose one of {known}")]
    NoSuchScheme {
        /// As given.
        name: String,
        /// Those that exist.
        known: String,
    },
}

/// Why a command did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The request makes no sense.
    #[error(transparent)]
    Usage(#[from] Usage),
    /// A session failed.
    #[error(transparent)]
    Session(#[from] faircast::Error),
    /// Sockets and interfaces.
    #[error(transparent)]
    Net(#[from] NetError),
    /// Keys.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The session ended, but not everybody has everything.
    #[error("{0}")]
    Incomplete(String),
    /// The session ended, and all have everything but those that were left out as too slow, as was asked for.
    #[error("{0}")]
    LeftOut(String),
    /// The session ended, and all have everything but files that could not be read or changed while they were sent.
    #[error("{0}")]
    WithoutFiles(String),
    /// A check failed, and has been reported in full.
    #[error("{0}")]
    Check(String),
    /// A file or process of ours.
    #[error("cannot {what}: {source}")]
    System {
        /// Operation that failed.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// Nobody reads our output any more.
    #[error("the reader of the output has closed it")]
    NobodyReads(Class),
}

#[cfg(feature = "simulator")]
impl From<crate::sim_usage::SimUsage> for Failure {
    fn from(usage: crate::sim_usage::SimUsage) -> Failure {
        Usage::from(usage).into()
    }
}

impl Failure {
    /// For `map_err`: what was tried when a system call failed.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Failure {
        |source| Failure::System { what: what.into(), source }
    }

    /// Returns the class of the failure.
    pub fn class(&self) -> Class {
        match self {
            Failure::Usage(_) => Class::Usage,
            Failure::Net(error) => error.exit_class().into(),
            Failure::Session(error) => error.class(),
            Failure::Key(_) | Failure::System { .. } => Class::System,
            Failure::Incomplete(_) | Failure::LeftOut(_) | Failure::WithoutFiles(_) | Failure::Check(_) => {
                Class::Transfer
            }
            Failure::NobodyReads(class) => *class,
        }
    }

    /// Whether a reader went away, which is not worth a word.
    pub fn is_quiet(&self) -> bool {
        let mut cause: Option<&(dyn Error + 'static)> = Some(self);
        while let Some(error) = cause {
            let closed = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
            if error.downcast_ref::<io::Error>().is_some_and(closed) {
                return true;
            }
            cause = error.source();
        }
        matches!(self, Failure::NobodyReads(_))
    }

    /// The message, and the messages of its causes that it does not hold already.
    fn with_causes(&self) -> String {
        let mut message = match self {
            Failure::Session(error) => wording::error(error),
            failure => failure.to_string(),
        };
        let mut cause = self.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
            cause = error.source();
        }
        message
    }

    /// Returns the failure, and advice: messages join the two with a semicolon.
    pub fn what_and_hint(&self) -> (String, Option<String>) {
        let message = self.with_causes();
        match message.split_once("; ") {
            Some((what, hint)) => (what.to_owned(), Some(hint.to_owned())),
            None => (message, None),
        }
    }
}

/// Output that could not be written: quiet when the reader went away.
pub fn unwritten(error: io::Error) -> Failure {
    Failure::System { what: "write the output".into(), source: error }
}

/// The number of the exit code of a session that failed with this.
pub fn number_of_session(error: &faircast::Error) -> u8 {
    number_of(error.class())
}

/// The exit code when all have everything but those that `--slow drop` has left out.
pub const LEFT_OUT: u8 = 4;

/// The exit code when all have everything but files that could not be read or changed while they were sent.
pub const WITHOUT_FILES: u8 = 5;

/// The name of a class in JSON.
pub fn class_name(failure: &Failure) -> &'static str {
    match (failure, failure.class()) {
        (Failure::LeftOut(_), _) => "left_out",
        (Failure::WithoutFiles(_), _) => "without_files",
        (_, Class::Transfer) => "transfer",
        (_, Class::Usage) => "usage",
        (_, Class::System) => "system",
    }
}

/// The exit code of a class.
const fn number_of(class: Class) -> u8 {
    match class {
        Class::Transfer => 1,
        Class::Usage => 2,
        Class::System => 3,
    }
}

/// The number of the exit code of a failure.
pub fn number(failure: &Failure) -> u8 {
    match failure {
        Failure::LeftOut(_) => LEFT_OUT,
        Failure::WithoutFiles(_) => WITHOUT_FILES,
        other => number_of(other.class()),
    }
}

/// Say on standard error what happened and what to do, and give the exit code.
pub fn conclude(outcome: Result<(), Failure>) -> ExitCode {
    let Err(failure) = outcome else { return ExitCode::SUCCESS };
    if failure.is_quiet() {
        let stopped_early = matches!(failure, Failure::Session(_) | Failure::NobodyReads(Class::Transfer));
        return if stopped_early { ExitCode::from(number_of(Class::Transfer)) } else { ExitCode::SUCCESS };
    }
    let (what, hint) = failure.what_and_hint();
    let mut people = Outlet::stderr(outlet::dropped);
    // Nothing is left to do when standard error cannot be written.
    let _ = writeln!(people, "{} {}", painted("error:", "1;31"), safe::text(&what));
    if let Some(hint) = hint {
        let _ = writeln!(people, "\n{} {}", painted("hint:", "1"), safe::text(&hint));
    }
    let _ = people.finish();
    ExitCode::from(number(&failure))
}

/// `text` in a colour, on a terminal whose user has not said no to colours.
pub fn painted(text: &str, colour: &str) -> String {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if refused || !io::stderr().is_terminal() {
        text.to_owned()
    } else {
        format!("\x1b[{colour}m{text}\x1b[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_is_split_into_a_statement_and_a_hint() {
        let failure = Failure::from(Usage::StdinAndPaths);
        let (what, hint) = failure.what_and_hint();
        assert_eq!(what, "`-` (standard input) cannot be sent together with paths");
        assert_eq!(hint.as_deref(), Some("send them one after the other"));
    }

    #[test]
    fn closed_reader_causes_no_message() {
        let gone = io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(unwritten(gone).is_quiet());
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert!(!unwritten(full).is_quiet());
    }

    #[test]
    fn failure_class_separates_usage_from_transfer_errors() {
        assert_eq!(Failure::from(Usage::StdinAndPaths).class(), Class::Usage);
        assert_eq!(Failure::Incomplete(String::new()).class(), Class::Transfer);
        assert_eq!(
            Failure::from(faircast::Error::Transfer(faircast::error::TransferError::Stopped)).class(),
            Class::Transfer
        );
    }

    #[test]
    fn dropped_receivers_and_skipped_files_have_own_exit_codes() {
        assert_eq!(number(&Failure::LeftOut(String::new())), 4);
        assert_eq!(number(&Failure::WithoutFiles(String::new())), 5);
        assert_eq!(number(&Failure::Incomplete(String::new())), 1);
        assert_eq!(number(&Failure::from(Usage::StdinAndPaths)), 2);
    }
}
