//! Errors of commands, and their messages.

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

/// An invalid request, detected before any data is sent or written.
#[derive(Debug, thiserror::Error)]
pub enum Usage {
    /// A relay already runs at this socket.
    #[error("a relay already listens at {}; query it with `faircast relay --status`, or name another socket with --control", .0.display())]
    RelayRuns(PathBuf),
    /// A relay has no branch and serves no hosts.
    #[error("the relay has no output for sessions: give --to or --listen, or use --role agent")]
    RelayToNobody,
    /// No session waits for receivers.
    #[error(
        "no `faircast send` or `stream` on this host waits for receivers; start one, or name its process"
    )]
    NoSession,
    /// The process is not a source that waits for receivers.
    #[error(
        "process {0} is not a `faircast send` or `stream` that waits for receivers; `faircast start` without a process ID finds a waiting session"
    )]
    NotASession(u32),
    /// Several sessions wait for receivers.
    #[error("several sessions wait for receivers: {0}; name one process, as in `faircast start 1234`")]
    SeveralSessions(String),
    /// An option of a repeater was given to an MTCP agent.
    #[error(
        "an agent has no branches, no cache and no rate of its own: its children receive from the source; leave out --to, --cache and --max, or use --role repeater"
    )]
    AgentHasNoBranches,
    /// An option of a repeater was given to an active router.
    #[error(
        "a router forwards between interfaces: name them with --from and --to; it has no parent, no children by unicast, no cache and no rate of its own (leave out --parent, --listen, --cache and --max, or use --role repeater)"
    )]
    RouterHasNoBranches,
    /// A relay's control socket cannot be created.
    #[error("cannot listen at {}: {source}; name another socket with --control", .path.display())]
    RelayControl {
        /// Path of the socket.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// No relay listens at the control socket.
    #[error("no relay answers at {}: {source}; check that a relay runs with the same --control", .path.display())]
    NoRelay {
        /// Path of the socket.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A relay's answer has an unknown form.
    #[error(
        "the answer of the relay cannot be read: {reason}; the relay may have another version, so try `--json`"
    )]
    RelayAnswer {
        /// Error in the text.
        reason: String,
    },
    /// A setting of a configuration file is wrong.
    #[error("{}, line {line}: {reason}", .path.display())]
    Setting {
        /// Path of the file.
        path: PathBuf,
        /// Line number.
        line: usize,
        /// The error, with advice.
        reason: String,
    },
    /// A configuration file cannot be read.
    #[error("cannot read the configuration file {}: {source}; correct it, or name another file with --config", .path.display())]
    ConfigUnreadable {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Other users can change a configuration file.
    #[error(
        "the configuration file {} is refused, because other users can change {}; let only root or this user own it and write to it, or use `--config /dev/null`",
        .path.display(), .what.display()
    )]
    ConfigExposed {
        /// Path of the file.
        path: PathBuf,
        /// The file, or the directory that contains it.
        what: PathBuf,
    },
    /// A directory of public keys cannot be read.
    #[error("cannot read the keys in {}: {source}", .path.display())]
    KeysUnreadable {
        /// Path of the directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A directory of public keys has too many files.
    #[error("{} has more than {most} files; name the directory of the public keys", .path.display())]
    TooManyKeyFiles {
        /// Path of the directory.
        path: PathBuf,
        /// Maximum number of files.
        most: usize,
    },
    /// A directory has no public keys.
    #[error("there is no public key in {}; `faircast keygen --sign FILE` makes FILE.pub", .0.display())]
    NoKeys(PathBuf),
    /// A file of the log or of the trace cannot be opened.
    #[error("cannot write {what} {}: {source}; name another file", .path.display())]
    #[cfg(feature = "tracing")]
    Unwritable {
        /// The log or the trace.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The journal of systemd cannot be reached.
    #[error("cannot reach the journal: {0}; without systemd, write to a file: --log FILE")]
    #[cfg(feature = "tracing")]
    NoJournal(io::Error),
    /// A file is not a trace.
    #[error("{} is not a trace: {reason}; `faircast send --trace FILE` writes one", .path.display())]
    NotATrace {
        /// Path of the file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A trace has no session, or not the requested one.
    #[error(
        "the trace {} {}", .path.display(),
        if .known.is_empty() { "has no sessions".to_owned() } else { format!("has no such session; it has: {known}") }
    )]
    NoTracedSession {
        /// Path of the file.
        path: PathBuf,
        /// Names of the sessions.
        known: String,
    },
    /// A plot of several sessions was requested.
    #[error("a plot shows one session, and the trace has {0}; name one with --session")]
    SeveralTracedSessions(usize),
    /// The form of a plot is unknown.
    #[error("cannot write a plot to {}: use a name that ends in .html, .svg or .pdf", .0.display())]
    PlotForm(PathBuf),
    /// The build has no pages.
    #[error("this build writes no pages; use .svg or .pdf")]
    NoPages,
    /// A report cannot be read.
    #[error("cannot read the report {}: {source}", .path.display())]
    ReportUnreadable {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file is not a report.
    #[error("{} is not a report in JSON: {reason}; `faircast send --report FILE.json` writes one", .path.display())]
    NotAReport {
        /// Path of the file.
        path: PathBuf,
        /// Error in the text.
        reason: String,
    },
    /// The report has no receipts.
    #[error("{} has no receipts: no receiver has signed one, see `faircast recv --sign-receipts`", .0.display())]
    NoReceipts(PathBuf),
    /// A list of hosts cannot be read.
    #[error("cannot read the list of hosts {}: {source}", .path.display())]
    HostsUnreadable {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A line in a file of hosts does not name a host.
    #[error("{}, line {line}: {reason}", .path.display())]
    HostLine {
        /// Path of the file.
        path: PathBuf,
        /// Line number.
        line: usize,
        /// Error in the value.
        reason: crate::values::BadValue,
    },
    /// A list contains a host twice.
    #[error("{}, line {line}: {name} is {address}, which is on line {before} already; leave one out", .path.display())]
    HostTwice {
        /// Path of the file.
        path: PathBuf,
        /// Line number.
        line: usize,
        /// Line number of the first occurrence.
        before: usize,
        /// Name in the list.
        name: String,
        /// Address of the host.
        address: std::net::SocketAddr,
    },
    /// A list contains a receiver twice.
    #[error("{}, line {line}: {name} is on line {before} already; leave one out", .path.display())]
    ReceiverTwice {
        /// Path of the file.
        path: PathBuf,
        /// Line number.
        line: usize,
        /// Line number of the first occurrence.
        before: usize,
        /// Name in the list.
        name: String,
    },
    /// A report cannot be written.
    #[error("cannot write the report {}: {source}; name a file in an existing directory where this user may write", .path.display())]
    Report {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A list has too many hosts.
    #[error("{} has more than {most} hosts; put relays between them and the source", .path.display())]
    TooManyHosts {
        /// Path of the file.
        path: PathBuf,
        /// Maximum number of hosts.
        most: usize,
    },
    /// A list has no hosts.
    #[error("{} names no host; write one host per line, like 192.0.2.7 or host.example.org:5778", .0.display())]
    NoHosts(PathBuf),
    /// Standard input and paths were both given.
    #[error("`-` (standard input) cannot be sent together with paths; send them one after the other")]
    StdinAndPaths,
    /// Chunks of standard input were wanted.
    #[error(
        "`send - --delta` needs all content before the session, but standard input is read only once; write it to a file and send the file, or leave out --delta"
    )]
    DeltaOfStdin,
    /// Standard input was given for two layers.
    #[error("`--layer -` is given twice, but there is one standard input; use named pipes for the others")]
    StdinTwice,
    /// `--name` was given without standard input.
    #[error("`--name` applies to standard input, but paths are sent; leave out --name, or send `-`")]
    NameWithoutStdin,
    /// Standard input is a terminal.
    #[error("standard input is a terminal; pipe data into the command, as in `tar c DIR | faircast {0}`")]
    StdinIsTerminal(&'static str),
    /// A path does not exist.
    #[error("{} does not exist; check the path", .0.display())]
    NoSuchPath(PathBuf),
    /// The minimum rate is above the maximum rate.
    #[error("`--min` ({min}) is above `--max` ({max}); swap them, or leave one out")]
    MinAboveMax {
        /// The given minimum rate.
        min: faircast_core::time::Rate,
        /// The given maximum rate.
        max: faircast_core::time::Rate,
    },
    /// The rate of `--slow` is above the maximum rate.
    #[error(
        "the rate of `--slow {policy}` ({rate}) is above `--max` ({max}), so every receiver would be slow; lower the rate of `--slow`"
    )]
    SlowAboveMax {
        /// Policy of `--slow`: `floor` or `drop`.
        policy: &'static str,
        /// The given rate of `--slow`.
        rate: faircast_core::time::Rate,
        /// The given maximum rate.
        max: faircast_core::time::Rate,
    },
    /// A limit of `--bandwidth` is below another rate.
    #[error(
        "the lowest limit of `--bandwidth` ({lowest}) is below the rate of `{option}`; lower the rate of `{option}`, or raise that limit"
    )]
    BandwidthTooLow {
        /// The option with the other rate.
        option: &'static str,
        /// The lowest limit.
        lowest: faircast_core::time::Rate,
    },
    /// A key file cannot be read.
    #[error("cannot read the key file {}: {source}; make one with `faircast keygen {}` and copy it to every host", .path.display(), .path.display())]
    KeyUnreadable {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A key file does not contain a valid key.
    #[error("{} is not a key file: {reason}", .path.display())]
    KeyMalformed {
        /// Path of the file.
        path: PathBuf,
        /// Error in the key.
        reason: KeyError,
    },
    /// A key file is not text, or is much too long.
    #[error("{} is not a key file; make one with `faircast keygen`", .0.display())]
    KeyNotText(PathBuf),
    /// A pair of keys cannot be written to standard output.
    #[error(
        "a signing key and its public key are two files, which standard output cannot hold; name the file of the signing key, as in `faircast keygen --sign lab.sign`"
    )]
    SignStdout,
    /// The output directory is a file.
    #[error("{} is a file; `--out` takes a directory", .0.display())]
    OutIsFile(PathBuf),
    /// The block device cannot be overwritten.
    #[error("{0}")]
    Device(faircast::ObjectError),
    /// Nobody was asked whether the block device may be overwritten.
    #[error("all data on {0} would be lost; add --yes to overwrite it without a question")]
    DeviceUnconfirmed(String),
    /// The user does not want the block device to be overwritten.
    #[error("{} is left unchanged", .0.display())]
    DeviceRefused(PathBuf),
    /// No files can be created in the output directory.
    #[error("nothing can be written into {}: {}: {source}; name another directory with --out, or let this user write there", .out.display(), .there.display())]
    OutRefuses {
        /// The given output directory.
        out: PathBuf,
        /// The output directory, or its nearest existing parent.
        there: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// No command has this name.
    #[error("there is no command `{name}`; the manual has pages for {known}")]
    NoSuchCommand {
        /// The given name of a command.
        name: String,
        /// Names of all commands.
        known: String,
    },
    /// Source and group have different address families.
    #[error(
        "the source {source_ip} and the group {group} are of different families; use two IPv4 or two IPv6 addresses"
    )]
    Families {
        /// The given source address.
        source_ip: std::net::IpAddr,
        /// The given group address.
        group: std::net::IpAddr,
    },
    /// The source address is a multicast address.
    #[error("the source {0} is a multicast address; give the address of the sending host")]
    SourceIsGroup(std::net::IpAddr),
    /// The key file already exists.
    #[error("{} exists; choose another name, or overwrite it with --force (hosts with the old key can then join no session)", .0.display())]
    KeyExists(PathBuf),
    /// An option belongs to another format.
    #[error(
        "`--{option}` applies only with `--wire {}`; add `--wire`, or leave out the option",
        .format.declaration().name
    )]
    NeedsFormat {
        /// Name of the option.
        option: String,
        /// The format that has the option.
        format: Format,
    },
    /// The format lacks a feature.
    #[error("`{option}` cannot be used with `--wire {}`: {why}; leave it out", .format.declaration().name)]
    NotOver {
        /// The given option.
        option: String,
        /// The selected format.
        format: Format,
        /// The reason.
        why: &'static str,
    },
    /// The command, called as a program of udpcast, lacks an option of that program.
    #[error("`--{option}` is not supported: {why}")]
    NotAsStandIn {
        /// The given option.
        option: &'static str,
        /// The reason, and an alternative.
        why: &'static str,
    },
    /// The command, called as `udp-sender`, has no condition for the start of the transfer.
    #[error("no option states when the transfer starts; give --min-receivers, --max-wait or --autostart")]
    NoStart,
    /// The format requires an option.
    #[error("`{option}` is missing with `--wire {}`: {why}", .format.declaration().name)]
    MissingOver {
        /// The missing option.
        option: String,
        /// The selected format.
        format: Format,
        /// The reason.
        why: &'static str,
    },
    /// Another process watches the directory.
    #[error("another `faircast send --watch` watches {0}; stop it first, so that numbers are not used twice")]
    AlreadyWatched(PathBuf),
    /// The session of the first file would never end.
    #[error(
        "with `--watch`, `--repeat forever` would send only the first file; give a number of generations or a duration"
    )]
    EndlessWatch,
    /// Files cannot be moved into the directory.
    #[error(
        "{0} cannot take sent files: it is the watched directory, or on another file system; choose a directory beside the watched one"
    )]
    SentToElsewhere(PathBuf),
    /// An option requires a session without feedback.
    #[error(
        "`{0}` applies only with `--one-way` and in formats without feedback; add `--one-way`, or leave out `{0}`"
    )]
    NeedsOneWay(&'static str),
    /// A session without feedback needs a rate.
    #[error(
        "with `--one-way`, no feedback controls the rate; add `--rate RATE` with a rate that is free on every path"
    )]
    OneWayRate,
    /// An option requires feedback.
    #[error("`{option}` cannot be used with `--one-way`: {why}; leave it out")]
    NotOneWay {
        /// The given option.
        option: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// A simulation cannot be run.
    #[cfg(feature = "simulator")]
    #[error(transparent)]
    Simulation(#[from] crate::sim_usage::SimUsage),
    /// No scheme has this name.
    #[error("there is no scheme `{name}`; choose one of {known}")]
    NoSuchScheme {
        /// The given name of a scheme.
        name: String,
        /// Names of all schemes.
        known: String,
    },
}

/// Error of a command.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The request is invalid.
    #[error(transparent)]
    Usage(#[from] Usage),
    /// The error of a session.
    #[error(transparent)]
    Session(#[from] faircast::Error),
    /// A socket or interface failed.
    #[error(transparent)]
    Net(#[from] NetError),
    /// A key is invalid.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The session ended, but some receivers are incomplete.
    #[error("{0}")]
    Incomplete(String),
    /// The session ended. All receivers are complete, except for those that `--slow drop` has excluded.
    #[error("{0}")]
    LeftOut(String),
    /// The session ended. All receivers are complete, except for files that could not be read and files that changed while they
    /// were sent.
    #[error("{0}")]
    WithoutFiles(String),
    /// A check failed. Its report was already printed in full.
    #[error("{0}")]
    Check(String),
    /// An operation on a file or process failed.
    #[error("cannot {what}: {source}")]
    System {
        /// Operation that failed.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// The reader of the output has closed it.
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
    /// Returns a function for `map_err`. `what` describes the failed operation.
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

    /// Whether no message is needed, because the reader of the output has closed it.
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

    /// Returns the message, followed by the message of each cause that it does not contain already.
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

    /// Splits the message at its first semicolon into a description of the failure and advice.
    pub fn what_and_hint(&self) -> (String, Option<String>) {
        let message = self.with_causes();
        match message.split_once("; ") {
            Some((what, hint)) => (what.to_owned(), Some(hint.to_owned())),
            None => (message, None),
        }
    }
}

/// Returns the failure of a write to the output. The failure is quiet if the reader has closed the output.
pub fn unwritten(error: io::Error) -> Failure {
    Failure::System { what: "write the output".into(), source: error }
}

/// Returns the exit code of a session that failed with `error`.
pub fn number_of_session(error: &faircast::Error) -> u8 {
    number_of(error.class())
}

/// Exit code when all receivers are complete, except for those that `--slow drop` has excluded.
pub const LEFT_OUT: u8 = 4;

/// Exit code when all receivers are complete, except for files that could not be read and files that changed while they were
/// sent.
pub const WITHOUT_FILES: u8 = 5;

/// Returns the name of a failure in JSON.
pub fn class_name(failure: &Failure) -> &'static str {
    match (failure, failure.class()) {
        (Failure::LeftOut(_), _) => "left_out",
        (Failure::WithoutFiles(_), _) => "without_files",
        (_, Class::Transfer) => "transfer",
        (_, Class::Usage) => "usage",
        (_, Class::System) => "system",
    }
}

/// Returns the exit code of a class.
const fn number_of(class: Class) -> u8 {
    match class {
        Class::Transfer => 1,
        Class::Usage => 2,
        Class::System => 3,
    }
}

/// Returns the exit code of a failure.
pub fn number(failure: &Failure) -> u8 {
    match failure {
        Failure::LeftOut(_) => LEFT_OUT,
        Failure::WithoutFiles(_) => WITHOUT_FILES,
        other => number_of(other.class()),
    }
}

/// Prints the description of the failure and the advice on standard error. Returns the exit code.
pub fn conclude(outcome: Result<(), Failure>) -> ExitCode {
    let Err(failure) = outcome else { return ExitCode::SUCCESS };
    if failure.is_quiet() {
        let stopped_early = matches!(failure, Failure::Session(_) | Failure::NobodyReads(Class::Transfer));
        return if stopped_early { ExitCode::from(number_of(Class::Transfer)) } else { ExitCode::SUCCESS };
    }
    let (what, hint) = failure.what_and_hint();
    let mut people = Outlet::stderr(outlet::dropped);
    // A failed write to standard error cannot be reported.
    let _ = writeln!(people, "{} {}", painted("error:", "1;31"), safe::text(&what));
    if let Some(hint) = hint {
        let _ = writeln!(people, "\n{} {}", painted("hint:", "1"), safe::text(&hint));
    }
    let _ = people.finish();
    ExitCode::from(number(&failure))
}

/// Returns `text` in a colour, if standard error is a terminal and `NO_COLOR` is not set.
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
    fn closed_output_is_a_failure_without_a_message() {
        let gone = io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(unwritten(gone).is_quiet());
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert!(!unwritten(full).is_quiet());
    }

    #[test]
    fn usage_errors_and_transfer_errors_have_different_classes() {
        assert_eq!(Failure::from(Usage::StdinAndPaths).class(), Class::Usage);
        assert_eq!(Failure::Incomplete(String::new()).class(), Class::Transfer);
        assert_eq!(
            Failure::from(faircast::Error::Transfer(faircast::error::TransferError::Stopped)).class(),
            Class::Transfer
        );
    }

    #[test]
    fn dropped_receivers_and_skipped_files_have_distinct_exit_codes() {
        assert_eq!(number(&Failure::LeftOut(String::new())), 4);
        assert_eq!(number(&Failure::WithoutFiles(String::new())), 5);
        assert_eq!(number(&Failure::Incomplete(String::new())), 1);
        assert_eq!(number(&Failure::from(Usage::StdinAndPaths)), 2);
    }
}
