//! `send`, `stream` and `recv`: converts arguments into a configuration, runs the session and reports it.

use crate::args::{self, OutputOptions};
use crate::course::Course;
use crate::device::{self, Confirmation};
use crate::failure::{Failure, Usage};
use crate::hook::Hook;
use crate::json::Line;
use crate::page::Page;
use crate::printer::{EventPrinter, Human, Keyboard, Level, Reader, Role};
use crate::report::ReportFile;
use crate::shortfall::{failure_kind, sent_shortfall};
use crate::{hosts, key, receipt, summary, system, units, wording};
use faircast::config::{
    BadLimits, DayLimits, DryRun, LATENCY, Multicast, ReceiverEvents, Unicast, check_limits,
};
use faircast::object::{Existing, Extraneous, KeepPartial};
use faircast::{
    self as transport, Class, Configuration, Content, Delta, Destination, Durability, Error, Event,
    FollowLinks, Input, LayerInput, OverwritePolicy, OwnersBy, Pacing, ReceiveConfig, ReceiveReport,
    ReceiverPlace, ReplayPolicy, SendConfig, SendReport, SessionFilter, SlowReceiverPolicy, SourcePlace,
    Stop, Unreadable,
};
use faircast_core::time::Rate;
use faircast_wire::{KeyRing, SigningKey};
use indicatif::ProgressBar;
use serde::Serialize;
use std::io::{self, IsTerminal, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Default share of repair symbols in a layered stream, relative to its source symbols.
const REPAIR: f64 = 0.1;

/// Default limits of partial files with `--serve`: an unattended host deletes abandoned partial files after a week.
const SERVED: KeepPartial = KeepPartial::new(Some(Duration::from_secs(7 * 86_400)), None);

/// A resolved configuration, and warnings about it.
#[derive(Debug)]
pub struct Resolved<Config> {
    /// Configuration of the session.
    pub config: Config,
    /// Options of the output.
    pub output_options: OutputOptions,
    /// Warnings to print before the start.
    pub warnings: Vec<String>,
    /// File for the outcome of every receiver.
    pub report: Option<ReportFile>,
    /// Command to run after a complete session.
    pub hook: Option<Hook>,
}

/// Outputs of a session.
pub struct Output<'a> {
    /// Output for programs: JSON lines.
    pub program: &'a mut dyn Write,
    /// Output for people.
    pub people: &'a mut dyn Write,
    /// The block of lines that is repainted, if standard error is a terminal.
    pub block: Option<ProgressBar>,
    /// Effect of the Enter key.
    pub keyboard: Keyboard,
}

/// Type of standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    /// A terminal.
    Terminal,
    /// A file or a pipe.
    Plain,
}

impl Screen {
    /// Returns the type of standard error.
    pub fn of_stderr() -> Screen {
        if io::stderr().is_terminal() { Screen::Terminal } else { Screen::Plain }
    }
}

impl args::Send {
    /// Resolves content, destination and options.
    ///
    /// # Errors
    /// [`Usage`] when options contradict each other or name something that does not exist.
    pub fn resolve(self) -> Result<Resolved<SendConfig>, Usage> {
        self.sending.format.options()?;
        let one_way = self.unanswered.one_way()?;
        if one_way.is_some() {
            refuse_answers(&self.sending)?;
        }
        if self.delta && self.paths == [Path::new("-")] {
            return Err(Usage::DeltaOfStdin);
        }
        let content = send_content(self.paths, self.name)?;
        let mut resolved = resolve_sending(content, self.session, self.sending, self.output_options)?;
        resolved.config.one_way = one_way;
        resolved.config.start_at = self.start_at;
        resolved.warnings.extend(one_way.map(|one_way| fixed_rate_warning(one_way.rate)));
        resolved.config.preserve = self.preserve;
        resolved.config.follow = match (self.copy_links, self.copy_unsafe_links) {
            (true, _) => FollowLinks::Always,
            (false, true) => FollowLinks::Unsafe,
            (false, false) => FollowLinks::Never,
        };
        resolved.config.extraneous = extraneous(self.delete);
        resolved.config.delta = if self.delta { Delta::On } else { Delta::Off };
        resolved.config.dry_run = if self.dry_run { DryRun::On } else { DryRun::Off };
        resolved.config.unreadable = if self.strict { Unreadable::Refuse } else { Unreadable::LeaveOut };
        Ok(resolved)
    }
}

/// Returns the treatment of files that the source does not have.
fn extraneous(delete: bool) -> Extraneous {
    if delete { Extraneous::Delete } else { Extraneous::Keep }
}

/// Returns an error if an option was given that requires feedback.
fn refuse_answers(sending: &args::Sending) -> Result<(), Usage> {
    let (silent, fixed) = ("no receiver sends feedback", "the rate is fixed; use --rate");
    let given = [
        ("--cc", sending.cc.is_some(), "the rate is fixed, without congestion control"),
        ("--min", sending.min.is_some(), fixed),
        ("--max", sending.max.is_some(), fixed),
        ("--bandwidth", sending.bandwidth.is_some(), fixed),
        ("--slow", sending.slow != SlowReceiverPolicy::Follow, silent),
        ("--expect", sending.expect.is_some(), silent),
        ("--receivers", sending.receivers.is_some(), silent),
        ("--report", sending.report.is_some(), silent),
        ("--receipts", sending.receipts.is_some(), silent),
        ("--listen", sending.listen.is_some(), "hosts that are served by unicast send feedback"),
        ("--invite", sending.invite.is_some(), "hosts that are served by unicast send feedback"),
    ];
    match given.into_iter().find(|(_, given, _)| *given) {
        Some((option, _, why)) => Err(Usage::NotOneWay { option, why }),
        None => Ok(()),
    }
}

impl args::Stream {
    /// Resolves streams, destination and options.
    ///
    /// # Errors
    /// [`Usage`] when options contradict each other.
    pub fn resolve(self) -> Result<Resolved<SendConfig>, Usage> {
        self.sending.format.options()?;
        let (history, latency) = (self.history, self.latency.unwrap_or(LATENCY));
        let content = match self.layers.is_empty() {
            true => {
                refuse_keyboard("stream")?;
                Content::Live { input: Input::new(io::stdin()), history, latency }
            }
            false => {
                let repair = self.repair.unwrap_or(REPAIR);
                Content::Layers { inputs: layer_inputs(self.layers)?, history, repair, latency }
            }
        };
        resolve_sending(content, self.session, self.sending, self.output_options)
    }
}

impl args::Recv {
    /// Resolves source, destination and options.
    ///
    /// # Errors
    /// [`Usage`] when options contradict each other or name something that cannot be used.
    pub fn resolve(self) -> Result<Resolved<ReceiveConfig>, Usage> {
        let mut warnings = Vec::new();
        self.format.options()?;
        self.check_source()?;
        let (destination, hook) = (self.destination()?, self.hook());
        warnings.extend(self.group_warning());
        let mut config = ReceiveConfig::new(destination);
        config.group = self.session.group();
        config.interface = self.session.iface;
        config.parents = self.parent;
        config.listen = self.listen;
        config.source = self.source;
        config.layers_to = self.layer_to;
        config.key = read_key(self.session.key.as_deref(), &mut warnings)?;
        config.verify = self.verify_key.as_deref().map(key::signing::read_public).transpose()?;
        config.sign_receipts = read_sign_key(self.sign_receipts.as_deref(), &mut warnings)?;
        config.replay_policy = if self.one_way { ReplayPolicy::Clock } else { ReplayPolicy::Answer };
        config.join_timeout = self.join_timeout;
        config.idle_timeout = self.timeout;
        config.durability = if self.sync { Durability::Synced } else { Durability::Fast };
        config.preserve = self.preserve;
        config.names = self.unsafe_names;
        config.keep_partial =
            self.keep_partial.unwrap_or(if self.serve { SERVED } else { KeepPartial::default() });
        config.existing = Existing::new(extraneous(self.delete), self.backup);
        config.reuse = self.reuse;
        config.owners_by = if self.numeric_owner { OwnersBy::Number } else { OwnersBy::Name };
        config.overwrite = if self.overwrite { OverwritePolicy::Accept } else { OverwritePolicy::Refuse };
        config.host = self.session.host.unwrap_or_else(faircast::host_name);
        config.temporary = std::env::temp_dir();
        config.accept = SessionFilter::new(self.accept, self.max_size.map(|most| most as u64));
        Ok(Resolved { config, output_options: self.output_options, warnings, report: None, hook })
    }
}

impl args::Recv {
    /// Returns the command to run after a complete session.
    pub(crate) fn hook(&self) -> Option<Hook> {
        let out = self.out_device.as_ref().unwrap_or(&self.out);
        let out = (!self.stdout).then_some(out.as_path());
        self.on_complete.clone().map(|command| Hook::of_receiver(command, out))
    }

    /// Checks that the source address is possible, and has the address family of the group.
    pub(crate) fn check_source(&self) -> Result<(), Usage> {
        let Some(source) = self.source else { return Ok(()) };
        // The address at which this receiver listens, or the address of its parent, determines the address family. Without these
        // addresses, the group determines it.
        let group = match (self.listen, self.parent.first()) {
            (Some(place), _) | (None, Some(&place)) => place.ip(),
            (None, None) => self.session.group().ip(),
        };
        if source.is_multicast() {
            return Err(Usage::SourceIsGroup(source));
        }
        if source.is_ipv4() != group.is_ipv4() {
            return Err(Usage::Families { source_ip: source, group });
        }
        Ok(())
    }

    /// Returns the destination of received content.
    pub(crate) fn destination(&self) -> Result<Destination, Usage> {
        if self.stdout {
            return Ok(Destination::Writer(transport::Output::new(io::stdout())));
        }
        if let Some(path) = &self.out_device {
            let confirmation = if self.yes { Confirmation::Given } else { Confirmation::Asked };
            return device::destination(path, confirmation);
        }
        check_directory(&self.out)?;
        Ok(Destination::Directory(self.out.clone()))
    }

    /// Returns a warning if the group is source-specific and `--source` is missing. Routers forward such a group only to
    /// receivers that name its source.
    pub(crate) fn group_warning(&self) -> Option<String> {
        let group = self.session.group().ip();
        let is_multicast = self.listen.is_none() && self.parent.is_empty();
        (is_multicast && self.source.is_none() && is_source_specific(group)).then(|| {
            format!(
                "{group} is a source-specific group, and routers forward it only to receivers that name the source: add --source with \
                 the sender's address"
            )
        })
    }
}

/// Returns a warning that the rate is fixed and does not adapt to competing flows.
pub(crate) fn fixed_rate_warning(rate: Rate) -> String {
    let rate = units::rate(rate.bps());
    format!("a fixed rate does not give way to other traffic: make sure that {rate} are free on every path")
}

/// Returns the sending addresses and limits of a source in a foreign format.
pub(crate) fn source_place(session: &args::SessionArgs, sending: &args::Sending) -> SourcePlace {
    let mut place = SourcePlace::default();
    place.group = session.group();
    place.interface = session.iface.clone();
    place.ttl = sending.ttl;
    place.idle_timeout = sending.timeout;
    place.datagram = sending.datagram;
    place
}

impl args::Recv {
    /// Returns the receiving addresses and limits of a receiver in a foreign format.
    pub(crate) fn receiver_place(&self) -> ReceiverPlace {
        let mut place = ReceiverPlace::default();
        place.group = self.session.group();
        place.interface = self.session.iface.clone();
        place.source = self.source;
        place.join_timeout = self.join_timeout;
        place.idle_timeout = self.timeout;
        place
    }
}

/// Whether a group is for source-specific multicast (RFC 4607: 232.0.0.0/8, ff3x::/32).
fn is_source_specific(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group.octets()[0] == 232,
        IpAddr::V6(group) => group.segments()[0] & 0xfff0 == 0xff30 && group.segments()[1] == 0,
    }
}

/// Checks that files can be created in a directory. If it does not exist, checks its nearest existing parent.
fn check_directory(out: &Path) -> Result<(), Usage> {
    let whole = std::path::absolute(out).unwrap_or_else(|_| out.to_owned());
    let there = whole.ancestors().find(|path| path.symlink_metadata().is_ok()).unwrap_or(Path::new("/"));
    if !there.is_dir() {
        return Err(Usage::OutIsFile(there.to_owned()));
    }
    rustix::fs::access(there, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).map_err(|error| {
        Usage::OutRefuses { out: out.to_owned(), there: there.to_owned(), source: error.into() }
    })
}

/// Returns the content of each layer.
fn layer_inputs(paths: Vec<PathBuf>) -> Result<Vec<LayerInput>, Usage> {
    let is_stdin = |path: &PathBuf| path == Path::new("-");
    match paths.iter().filter(|path| is_stdin(path)).count() {
        0 => {}
        1 => refuse_keyboard("stream --layer -")?,
        _ => return Err(Usage::StdinTwice),
    }
    if let Some(missing) = paths.iter().find(|path| !is_stdin(path) && !path.exists()) {
        return Err(Usage::NoSuchPath(missing.clone()));
    }
    let input = |path| if is_stdin(&path) { stdin_for_a_layer() } else { LayerInput::Path(path) };
    Ok(paths.into_iter().map(input).collect())
}

/// Returns standard input as the input of a layer. A file is read at the rate of the layer. A pipe is read as bytes arrive.
fn stdin_for_a_layer() -> LayerInput {
    let is_file = Path::new("/dev/stdin").metadata().is_ok_and(|meta| meta.file_type().is_file());
    let pacing = if is_file { Pacing::Waits } else { Pacing::Live };
    LayerInput::Reader { input: Input::new(io::stdin()), pacing }
}

pub(crate) fn send_content(paths: Vec<PathBuf>, name: Option<String>) -> Result<Content, Usage> {
    if paths == [Path::new("-")] {
        refuse_keyboard("send -")?;
        let (name, input) = (name.unwrap_or_else(|| "stdin".into()), Input::new(io::stdin()));
        return Ok(Content::Reader { name, input });
    }
    if paths.iter().any(|path| path == Path::new("-")) {
        return Err(Usage::StdinAndPaths);
    }
    if name.is_some() {
        return Err(Usage::NameWithoutStdin);
    }
    match paths
        .iter()
        .find(|path| path.symlink_metadata().is_err_and(|e| e.kind() == io::ErrorKind::NotFound))
    {
        Some(missing) => Err(Usage::NoSuchPath(missing.clone())),
        None => Ok(Content::Paths(paths)),
    }
}

pub(crate) fn refuse_keyboard(command: &'static str) -> Result<(), Usage> {
    if io::stdin().is_terminal() { Err(Usage::StdinIsTerminal(command)) } else { Ok(()) }
}

fn resolve_sending(
    content: Content,
    session: args::SessionArgs,
    sending: args::Sending,
    output_options: OutputOptions,
) -> Result<Resolved<SendConfig>, Usage> {
    check_rates(sending.min, sending.max, sending.slow)?;
    check_bandwidth(&sending)?;
    let mut warnings = Vec::new();
    let key = read_key(session.key.as_deref(), &mut warnings)?;
    if key.is_none() && !sending.no_key {
        warnings.push(
            "not sealed: every host on the network can read and forge this session; use --key, or --no-key"
                .into(),
        );
    }
    let sign = read_sign_key(sending.sign_key.as_deref(), &mut warnings)?;
    let unicast = unicast(&session, &sending)?;
    let mut config = SendConfig::new(content);
    config.group = session.group();
    config.unicast = unicast;
    config.interface = session.iface;
    config.port = sending.port;
    config.ttl = sending.ttl;
    config.scheme = sending.scheme();
    config.spacing = sending.layers_by.into();
    config.min = sending.min;
    config.max = sending.max;
    config.day_limits = sending.bandwidth;
    config.slow = sending.slow;
    config.key = key.map(|ring| ring.first().clone());
    config.sign = sign;
    config.expect = sending.expect;
    config.to_hosts = sending.to_hosts;
    config.required =
        sending.receivers.as_deref().map(hosts::read_receivers).transpose()?.unwrap_or_default();
    config.receipts = sending.receipts.as_deref().map(receipt::read_receipt_keys).transpose()?;
    config.join_timeout = sending.join_timeout;
    config.idle_timeout = sending.timeout;
    config.datagram = sending.datagram;
    config.host = session.host.unwrap_or_else(faircast::host_name);
    config.temporary = std::env::temp_dir();
    let course = || Course::new(&config.scheme, config.max);
    let report = sending.report.as_deref().map(|path| ReportFile::create(path, course())).transpose()?;
    config.receiver_events = match &report {
        Some(report) if report.shows_receivers() => ReceiverEvents::EverySecond,
        _ => output_options.receiver_events(),
    };
    let hook = sending.on_complete.map(Hook::of_source);
    Ok(Resolved { config, output_options, warnings, report, hook })
}

/// Returns the hosts to serve by unicast.
fn unicast(session: &args::SessionArgs, sending: &args::Sending) -> Result<Option<Unicast>, Usage> {
    if sending.listen.is_none() && sending.invite.is_none() {
        return Ok(None);
    }
    let invite = sending.invite.as_deref().map(hosts::read).transpose()?.unwrap_or_default();
    let listen = sending.listen.clone().map_or_else(Vec::new, |at| at.0);
    let children = if listen.is_empty() { 0 } else { usize::from(sending.max_children) };
    let is_named = session.group.is_some() || session.iface.is_some();
    let multicast = if is_named { Multicast::Also } else { Multicast::Not };
    let mut unicast = Unicast::listen(listen, children);
    unicast.invite = invite;
    unicast.multicast = multicast;
    unicast.memory = sending.memory;
    Ok(Some(unicast))
}

/// Checks that the lowest limit of the day is consistent with the other rates.
fn check_bandwidth(sending: &args::Sending) -> Result<(), Usage> {
    let Some(lowest) = sending.bandwidth.as_ref().and_then(DayLimits::lowest) else { return Ok(()) };
    let option = match check_limits(sending.min, Some(lowest), sending.slow) {
        Ok(()) => return Ok(()),
        Err(BadLimits::MinAboveMax { .. }) => "--min",
        Err(BadLimits::SlowAboveMax { .. }) => "--slow",
    };
    Err(Usage::BandwidthTooLow { option, lowest })
}

pub(crate) fn check_rates(
    min: Option<Rate>,
    max: Option<Rate>,
    slow: SlowReceiverPolicy,
) -> Result<(), Usage> {
    check_limits(min, max, slow).map_err(|bad| match bad {
        BadLimits::MinAboveMax { min, max } => Usage::MinAboveMax { min, max },
        BadLimits::SlowAboveMax { rate, max } => {
            let policy = if matches!(slow, SlowReceiverPolicy::Floor(_)) { "floor" } else { "drop" };
            Usage::SlowAboveMax { policy, rate, max }
        }
    })
}

fn read_key(path: Option<&Path>, warnings: &mut Vec<String>) -> Result<Option<KeyRing>, Usage> {
    let Some(path) = path else { return Ok(None) };
    let (key, exposure) = key::read(path)?;
    warnings.extend(exposed(path, exposure));
    Ok(Some(key))
}

fn read_sign_key(path: Option<&Path>, warnings: &mut Vec<String>) -> Result<Option<SigningKey>, Usage> {
    let Some(path) = path else { return Ok(None) };
    let (key, exposure) = key::signing::read_private(path)?;
    warnings.extend(exposed(path, exposure));
    Ok(Some(key))
}

fn exposed(path: &Path, exposure: key::Exposure) -> Option<String> {
    let path = path.display();
    (exposure == key::Exposure::Others)
        .then(|| format!("other users of this host can read the key file {path}; run `chmod 600 {path}`"))
}

/// Runs a `send` or `stream` and reports it. `drive` runs the transport.
///
/// # Errors
/// The error of a failed session, or of incomplete receivers.
pub fn send<'a>(
    resolved: Resolved<SendConfig>,
    output: Output<'a>,
    stop: &'a Stop,
    drive: impl FnOnce(SendConfig, &mut dyn FnMut(Event), &Stop) -> Result<SendReport, Error>,
) -> Result<(), Failure> {
    let mut resolved = resolved;
    let (mut file, required) = (resolved.report.take(), resolved.config.required.clone());
    let mut written = Ok(());
    let drive = |config: SendConfig, events: &mut dyn FnMut(Event), stop: &Stop| {
        let mut noted = |event| {
            file.iter_mut().for_each(|file| file.note(&event));
            events(event);
        };
        let outcome = drive(config, &mut noted, stop);
        if let Some(file) = file {
            written = file.write(&outcome, &required);
        }
        if let Err(error) = &written {
            events(Event::warning(error.to_string()));
        }
        outcome
    };
    let alone = resolved.config.unicast.as_ref().is_some_and(|hosts| hosts.multicast == Multicast::Not);
    let role = match resolved.config.one_way {
        Some(_) => Role::Unanswered,
        None if alone => Role::Unicast,
        None => Role::Source,
    };
    let reported = print(role, resolved, output, stop, drive, |report: &SendReport| Verdict {
        summary: summary::sent(report),
        failure: failure_kind(report),
        shortfall: (!report.ok).then(|| sent_shortfall(report)),
    });
    reported.and(written)
}

/// Runs a `recv` and reports it. `drive` runs the transport.
///
/// # Errors
/// The error of a failed session, or of incomplete content.
pub fn receive<'a>(
    resolved: Resolved<ReceiveConfig>,
    output: Output<'a>,
    stop: &'a Stop,
    drive: impl FnOnce(ReceiveConfig, &mut dyn FnMut(Event), &Stop) -> Result<ReceiveReport, Error>,
) -> Result<(), Failure> {
    print(Role::Receiver, resolved, output, stop, drive, received)
}

/// Returns the verdict about the report of a `recv`.
pub(crate) fn received(report: &ReceiveReport) -> Verdict {
    Verdict {
        summary: summary::received(report),
        failure: if report.stopped { Failure::Incomplete } else { Failure::WithoutFiles },
        shortfall: (!report.ok).then(|| match report.withdrawn.first() {
            Some(first) if !report.stopped => {
                let more = report.withdrawn_count - 1;
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                format!(
                    "not received, because changed or unreadable at the source: {first}{more}; all other files are complete, \
                     receive again when the source sends the missing files again"
                )
            }
            _ if report.packets == 0 => "stopped".to_owned(),
            _ => format!("stopped; {}", wording::stored(report.bytes, report.resumes)),
        }),
    }
}

/// Runs the transport of any format.
pub(crate) fn drive<C: Configuration>(
    config: C,
    events: &mut dyn FnMut(Event),
    stop: &Stop,
) -> Result<C::Report, Error> {
    faircast::run(config, stop, events)
}

/// Runs a session and reports it. `drive` runs the transport. `verdict` derives the result from the report of the transport.
///
/// # Errors
/// An error if the session failed, or if its report states an incomplete result.
pub fn print<'a, Config, Report: Serialize>(
    role: Role,
    resolved: Resolved<Config>,
    output: Output<'a>,
    stop: &'a Stop,
    drive: impl FnOnce(Config, &mut dyn FnMut(Event), &Stop) -> Result<Report, Error>,
    verdict: impl Fn(&Report) -> Verdict,
) -> Result<(), Failure> {
    let Resolved { config, output_options, warnings, report: _, mut hook } = resolved;
    let mut printer = printer(role, &output_options, output, stop)?;
    warnings.into_iter().for_each(|text| printer.event(&Event::warning(text)));
    let mut print = |event| {
        hook.iter_mut().for_each(|hook| hook.note_event(&event));
        printer.event(&wording::event(event));
    };
    let outcome = drive(config, &mut print, stop);
    let complete = outcome.as_ref().ok().filter(|report| verdict(report).shortfall.is_none());
    let hook = Hook::after(hook, complete);
    let result = conclude(&mut printer, outcome, verdict);
    result.and(hook.map_or(Ok(()), |hook| hook.run()))
}

/// Returns the printer of a session, and opens its page.
///
/// # Errors
/// When the page cannot be served at its address.
pub(crate) fn printer<'a>(
    role: Role,
    output_options: &OutputOptions,
    output: Output<'a>,
    stop: &'a Stop,
) -> Result<EventPrinter<'a>, Failure> {
    let page = Page::open(output_options.served_at(), if role == Role::Receiver { "recv" } else { "send" })?;
    let (program, human) = match (output_options.json, output.block) {
        (true, _) => (Some(output.program), Human::Nobody),
        (false, Some(block)) => (None, Human::Block(block)),
        (false, None) => (None, Human::Lines(output.people)),
    };
    let printer = EventPrinter::new(role, Level::of(output_options), program, human, stop);
    Ok(printer.with_keyboard(output.keyboard).with_page(page))
}

/// Result of a session, derived from its report.
pub struct Verdict {
    /// Summary for people.
    pub summary: Vec<String>,
    /// Description of the shortfall; `None`: the session succeeded.
    pub shortfall: Option<String>,
    /// Function that converts the shortfall into a failure.
    pub failure: fn(String) -> Failure,
}

pub(crate) fn conclude<Report: Serialize>(
    printer: &mut EventPrinter<'_>,
    outcome: Result<Report, Error>,
    verdict: impl Fn(&Report) -> Verdict,
) -> Result<(), Failure> {
    let result = match outcome {
        Ok(report) => {
            let Verdict { summary, shortfall, failure } = verdict(&report);
            let result = shortfall.map(failure).map_or(Ok(()), Err);
            if let Err(failure) = &result {
                printer.last(&Line::failure(failure));
            }
            printer.last(&Line::done(&report, system::cpu_seconds()));
            printer.clear();
            summary.iter().for_each(|line| printer.end(line));
            result
        }
        Err(error) => {
            let failure = Failure::from(error);
            printer.last(&Line::failure(&failure));
            printer.last(&Line::failed());
            printer.clear();
            Err(failure)
        }
    };
    match printer.reader() {
        Reader::Gone => Err(Failure::NobodyReads(Class::Transfer)),
        Reader::Reads => result,
    }
}

#[cfg(test)]
mod tests;
