//! Output of a running session's events for people and programs.

use crate::args::OutputOptions;
use crate::failure::painted;
use crate::json::{self, Line};
use crate::outlet;
use crate::page::{Of, Page};
use crate::safe;
use crate::units;
use faircast::config::RELAY_PORT;
use faircast::event::{Flow, Joining, Limit, Progress, RelayBelow, SlowAction, Subscription};
use faircast::{Event, Rate, Stop};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The endpoint whose session is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A source: `send` or `stream`.
    Source,
    /// A source that serves hosts only by unicast. It sends no multicast to the network.
    Unicast,
    /// `send` and `stream` to receivers that send no feedback.
    Unanswered,
    /// A receiver: `recv`.
    Receiver,
}

impl Role {
    /// Whether the endpoint counts complete receivers.
    const fn counts(self) -> bool {
        matches!(self, Role::Source | Role::Unicast)
    }
}

/// Amount of text output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Only errors.
    Quiet,
    /// Warnings, slow receivers, progress and the end.
    Normal,
    /// Also receivers that join and leave.
    Verbose,
}

/// Effect of Enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keyboard {
    /// No effect.
    None,
    /// Enter starts a session that waits for receivers.
    Starts,
}

/// Destination of output for people.
pub enum Human<'a> {
    /// No output for people, because a program reads JSON.
    Nobody,
    /// One line per second.
    Lines(&'a mut dyn Write),
    /// A repainted block on the terminal.
    Block(ProgressBar),
}

/// Prints the events of one or several sessions.
pub struct EventPrinter<'a> {
    role: Role,
    level: Level,
    program: Option<&'a mut dyn Write>,
    human: Human<'a>,
    stop: &'a Stop,
    reader: Reader,
    keyboard: Keyboard,
    /// The session of the following events; `None` if only one session runs.
    of: Option<Turn>,
    /// The block of each session.
    blocks: BTreeMap<u32, String>,
    page: Option<Page>,
}

/// One of several sessions, whose events are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Number of the session, from 1.
    pub session: u32,
    /// Whether other sessions run. If they do, output for people contains the number of the session.
    pub beside: Beside,
}

/// Whether other sessions run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// No other session runs.
    Alone,
    /// Other sessions run.
    Others,
}

/// Whether the program that reads the JSON still reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// No error has occurred.
    Reads,
    /// The program has closed the output.
    Gone,
}

impl Level {
    /// Returns the level that the options select.
    pub fn of(output_options: &OutputOptions) -> Level {
        match (output_options.quiet, output_options.verbose) {
            (true, _) => Level::Quiet,
            (false, true) => Level::Verbose,
            (false, false) => Level::Normal,
        }
    }
}

impl<'a> EventPrinter<'a> {
    /// Creates a printer. The printer sets `stop` when the program that reads the JSON closes the output.
    pub fn new(
        role: Role,
        level: Level,
        program: Option<&'a mut dyn Write>,
        human: Human<'a>,
        stop: &'a Stop,
    ) -> EventPrinter<'a> {
        EventPrinter {
            role,
            level,
            program,
            human,
            stop,
            reader: Reader::Reads,
            keyboard: Keyboard::None,
            of: None,
            blocks: BTreeMap::new(),
            page: None,
        }
    }

    /// Also stores all events in this page, and prints its address.
    pub fn with_page(mut self, page: Option<Page>) -> EventPrinter<'a> {
        for (serves, url) in page.iter().flat_map(Page::urls) {
            self.program(&Line::page(url));
            self.say(&format!("{}: {url}", serves.name()));
        }
        self.page = page;
        self
    }

    /// Sets the effect of Enter.
    pub fn with_keyboard(self, keyboard: Keyboard) -> EventPrinter<'a> {
        EventPrinter { keyboard, ..self }
    }

    /// Attributes the following events to one of several sessions.
    pub fn of(&mut self, turn: Turn) {
        self.of = Some(turn);
    }

    /// Removes the displayed block of a session that has ended.
    pub fn forget(&mut self, session: u32) {
        self.blocks.remove(&session);
        self.paint();
    }

    /// Returns the prefix of a line, which contains the number of the session. Returns an empty text if no other session runs.
    fn mark(&self) -> String {
        match self.of {
            Some(Turn { session, beside: Beside::Others }) => format!("[{session}] "),
            _ => String::new(),
        }
    }

    /// Prints an event.
    pub fn event(&mut self, event: &Event) {
        self.program(event);
        if let Some(page) = &self.page {
            page.note(self.of_page(), event);
        }
        match event {
            Event::Progress(progress) if self.level > Level::Quiet => self.progress(progress),
            _ => {
                if let Some(sentence) = sentence(self.role, event, self.level) {
                    self.say(&sentence);
                }
            }
        }
    }

    /// Prints one of the last lines of a session for a program: its error, or its report.
    pub fn last(&mut self, line: &impl Serialize) {
        self.program(line);
        if let Some(page) = &self.page {
            page.end(self.of_page(), line);
        }
    }

    fn of_page(&self) -> Of {
        Of { session: self.of.map_or(0, |turn| turn.session.into()), branch: None }
    }

    /// Prints one line for a program.
    pub fn program(&mut self, line: &impl Serialize) {
        let Some(out) = self.program.as_mut() else { return };
        if self.reader == Reader::Gone {
            return;
        }
        let written = match self.of {
            Some(Turn { session, .. }) => json::write(&mut **out, &json::Of { line, session }),
            None => json::write(&mut **out, line),
        };
        if let Err(error) = written {
            self.reader = Reader::Gone;
            self.stop.stop();
            if error.kind() != io::ErrorKind::BrokenPipe {
                self.say(&format!("cannot write the JSON output: {error}"));
            }
        }
    }

    /// Prints a sentence for people. A failure to write standard error is ignored.
    pub fn say(&mut self, sentence: &str) {
        let sentence = format!("{}{sentence}", self.mark());
        match &mut self.human {
            Human::Nobody => {}
            Human::Lines(out) => {
                let _ = writeln!(out, "{sentence}");
            }
            Human::Block(bar) => bar.println(&sentence),
        }
    }

    /// Prints the result for people, unless only errors are requested.
    pub fn end(&mut self, sentence: &str) {
        if self.level > Level::Quiet {
            self.say(&safe::text(sentence));
        }
    }

    /// Removes the block from the terminal.
    pub fn clear(&mut self) {
        if let Human::Block(bar) = &self.human {
            bar.finish_and_clear();
        }
    }

    /// Returns whether the program still reads.
    pub fn reader(&self) -> Reader {
        self.reader
    }

    fn progress(&mut self, progress: &Progress) {
        let mark = self.mark();
        let hint = match (&progress.joining, self.keyboard) {
            (Some(_), Keyboard::Starts) => "; Enter starts now",
            _ => "",
        };
        match &mut self.human {
            Human::Nobody => {}
            Human::Lines(out) => {
                let _ = writeln!(out, "{mark}{}{hint}", progress_line(self.role, progress));
            }
            Human::Block(_) => {
                let block = format!("{mark}{}{hint}", progress_block(self.role, progress));
                self.blocks.insert(self.of.map_or(0, |turn| turn.session), block);
                self.paint();
            }
        }
    }

    /// Shows the blocks of all sessions, each below the previous block.
    fn paint(&self) {
        if let Human::Block(bar) = &self.human {
            bar.set_message(self.blocks.values().map(String::as_str).collect::<Vec<_>>().join("\n"));
        }
    }
}

/// Returns an empty block at the bottom of a terminal.
pub fn block(terminal: ProgressDrawTarget) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, terminal);
    bar.set_style(ProgressStyle::with_template("{msg}").expect("the template is valid"));
    bar
}

/// Formats a warning for people.
pub fn warning(text: &str) -> String {
    format!("{} {}", painted("warning:", "1;33"), safe::text(text))
}

/// Text of a message, before colours are added.
enum Words {
    Plain(String),
    Warning(String),
}

/// Returns the sentence for people about an event; `None` for progress and for events below the level.
pub fn sentence(role: Role, event: &Event, level: Level) -> Option<String> {
    let (least, text) = match event {
        Event::Opened { group, interface, local, alternatives } => {
            let others = match alternatives.as_slice() {
                [] => String::new(),
                others => format!(" (others: {}; choose with --iface)", others.join(", ")),
            };
            if let Some(words) = by_unicast(role, *group, *local) {
                return (level >= Level::Normal).then_some(words);
            }
            let verb = match role {
                Role::Receiver if group.ip().is_multicast() => "listening on",
                Role::Receiver => "asking",
                _ => "sending to",
            };
            (Level::Normal, Words::Plain(format!("{verb} {group} through {interface}, {local}{others}")))
        }
        Event::Warning { message, .. } => (Level::Normal, Words::Warning(message.clone())),
        Event::Dropped { count } => (Level::Normal, Words::Warning(outlet::not_read(*count))),
        Event::Content { files, links, directories, bytes, resumed_bytes, .. } => {
            let what = match bytes {
                Some(bytes) => {
                    format!("{}, {}", units::entries(*files, *links, *directories), units::bytes(*bytes))
                }
                None => "a stream".into(),
            };
            let resumed = match resumed_bytes {
                0 => String::new(),
                bytes => format!("; {} of it are stored already", units::bytes(*bytes)),
            };
            (Level::Normal, Words::Plain(format!("content: {what}{resumed}")))
        }
        Event::Joined { host, address, .. } if role == Role::Receiver => {
            (Level::Normal, Words::Plain(format!("found {host} at {address}")))
        }
        Event::Joined { host, address, .. } => {
            (Level::Verbose, Words::Plain(format!("{host} at {address} has joined")))
        }
        Event::Numbered { number, name, .. } => {
            let name = name.as_ref().map_or_else(String::new, |name| format!(": {name}"));
            (Level::Normal, Words::Plain(format!("session number {number}{name}")))
        }
        Event::Missed { host, first, last, .. } => {
            let numbers =
                if first == last { format!("number {first}") } else { format!("numbers {first} to {last}") };
            (
                Level::Normal,
                Words::Warning(format!("{numbers} of {host} were not received; send these files again")),
            )
        }
        Event::OtherSource { host, address, followed } => (
            Level::Normal,
            Words::Warning(format!(
                "{host} at {address} also sends to this group; this host receives from {followed} (--accept selects sources by name)"
            )),
        ),
        Event::Busy { host, address, source, content, done: true, .. } => {
            let what = units::session_of(source.as_deref(), content.as_deref());
            let text = format!(
                "{host} ({}) has just received {what}; start `faircast recv` there again for this session",
                address.ip()
            );
            (Level::Normal, Words::Warning(text))
        }
        Event::Busy { host, address, source, content, until, done: false } => {
            let what = units::session_of(source.as_deref(), content.as_deref());
            let until =
                until.map_or_else(String::new, |until| format!(" until about {}", units::time_of_day(until)));
            (Level::Normal, Words::Warning(format!("{host} ({}) is receiving {what}{until}", address.ip())))
        }
        Event::Left { host, verified: true, .. } => {
            (Level::Verbose, Words::Plain(format!("{host} has verified everything")))
        }
        Event::Left { host, reason, .. } => {
            let reason = reason.as_deref().unwrap_or("no reason given");
            (Level::Normal, Words::Warning(format!("{host} has left before it was complete ({reason})")))
        }
        Event::Receipt(receipt) if receipt.valid && receipt.known != Some(false) => {
            (Level::Verbose, Words::Plain(format!("{} has signed a receipt", receipt.host)))
        }
        Event::Receipt(receipt) => {
            let why = if receipt.valid { "signed by an unknown key" } else { "not valid" };
            (Level::Normal, Words::Warning(format!("the receipt of {} is {why}", receipt.host)))
        }
        Event::Compared(host) => {
            (Level::Normal, Words::Plain(format!("{}: {}", host.host, units::comparison(host))))
        }
        Event::SlowReceiver { host, rate, action, .. } => {
            let limit = units::rate(rate.bps());
            let text = match action {
                SlowAction::Follow if *rate == Rate::ZERO => {
                    format!("{host} accepts no more data; the session continues without it")
                }
                SlowAction::Follow => {
                    format!(
                        "{host} can receive only {limit}, and all other receivers wait for it; see --slow"
                    )
                }
                action => format!("{host} can receive only {limit} and is {action}"),
            };
            (Level::Normal, Words::Warning(text))
        }
        Event::Layers(Subscription { joined, of }) => {
            (Level::Verbose, Words::Plain(format!("has joined {joined} of {of} layers")))
        }
        Event::Output { layer, flow: Flow::Starts, to, .. } => {
            let to = to.as_ref().map_or_else(String::new, |to| format!(", to {to}"));
            (Level::Verbose, Words::Plain(format!("layer {layer} starts{to}")))
        }
        Event::Output { layer, flow: Flow::Stops, bytes, .. } => {
            (Level::Verbose, Words::Plain(format!("layer {layer} stops after {}", units::bytes(*bytes))))
        }
        _ => return None,
    };
    (level >= least).then(|| match text {
        Words::Plain(text) => safe::text(&text).into_owned(),
        Words::Warning(text) => warning(&text),
    })
}

/// Describes the purpose of a socket that serves no multicast session; `None` for other sockets.
fn by_unicast(role: Role, place: SocketAddr, local: IpAddr) -> Option<String> {
    match role {
        Role::Receiver if place.ip() == local => Some(format!("waiting at {place} for a source")),
        Role::Receiver if place.port() == RELAY_PORT && place.ip().is_multicast() => {
            Some(format!("looking for the nearest relay in {place} from {local}"))
        }
        Role::Unicast => Some("sending to hosts by unicast alone".to_owned()),
        _ => None,
    }
}

/// Describes a downstream relay, indented by its depth.
pub fn relay(relay: &RelayBelow) -> String {
    let indent = "  ".repeat(usize::from(relay.depth.saturating_sub(1)));
    let (host, address) = (&relay.host, relay.address);
    let (done, receivers) = (relay.done, units::count(relay.receivers, "receiver"));
    format!("{indent}{host} at {address}: {done} of {receivers} done, {}", units::rate(relay.rate.bps()))
}

/// Maximum number of relays in a block.
const MAX_RELAYS: usize = 12;

/// Describes the downstream relays, one per line.
fn relays(progress: &Progress, indent: &str) -> Vec<String> {
    let shown = progress.relays.iter().take(MAX_RELAYS);
    let mut lines: Vec<_> = shown.map(|one| format!("{indent} {}", relay(one))).collect();
    let more = progress.relays.len().saturating_sub(MAX_RELAYS);
    if more > 0 {
        lines.push(format!("{indent} and {} more", units::count(more as u64, "relay")));
    }
    lines
}

/// Returns the progress as one line.
pub fn progress_line(role: Role, progress: &Progress) -> String {
    let mut parts = vec![format!("{:.0} s", progress.elapsed.as_secs_f64())];
    if let Some(joining) = &progress.joining {
        parts.push(waiting(joining));
        return parts.join("  ");
    }
    parts.push(amount(progress));
    parts.push(units::rate(progress.rate.bps()));
    parts.extend(progress.rtt.map(|rtt| format!("rtt {:.1} ms", rtt.as_secs_f64() * 1e3)));
    parts.extend(loss(role, progress));
    parts.extend(progress.layers.map(|layers| format!("{} of {} layers", layers.joined, layers.of)));
    parts.extend(limiting(progress));
    if role == Role::Receiver {
        parts.extend(working(role, progress));
    }
    if role.counts() {
        parts.push(match progress.receivers {
            0 => "no receiver has joined".to_owned(),
            receivers => format!("{} of {receivers} done", progress.verified),
        });
        parts.extend(working(role, progress));
        if !progress.relays.is_empty() {
            parts.push(units::count(progress.relays.len() as u64, "relay"));
        }
    }
    parts.join("  ")
}

/// Returns the progress as a block of lines.
pub fn progress_block(role: Role, progress: &Progress) -> String {
    if let Some(joining) = &progress.joining {
        return format!("{} for {}", waiting(joining), units::seconds(progress.elapsed.as_secs_f64()));
    }
    let verb = if role == Role::Receiver { "receiving" } else { "sending  " };
    let indent = " ".repeat(verb.len());
    let mut lines = vec![format!("{verb} {}{}{}", bar(progress), amount(progress), left(progress))];
    let allowed =
        progress.allowed.map(|rate| format!(" of {} allowed", units::rate(rate.bps()))).unwrap_or_default();
    let rtt = progress.rtt.map(|rtt| format!(", rtt {:.1} ms", rtt.as_secs_f64() * 1e3)).unwrap_or_default();
    let rate = units::rate(progress.rate.bps());
    let layers = progress.layers.map(|layers| format!("{} of {} layers", layers.joined, layers.of));
    let at_receiver = layers.as_ref().filter(|_| role == Role::Receiver);
    let at_receiver = at_receiver.map(|layers| format!(", {layers}")).unwrap_or_default();
    let loss = loss(role, progress).map(|loss| format!(", {loss}")).unwrap_or_default();
    lines.push(format!("{indent} {rate}{allowed}{rtt}{loss}{at_receiver}"));
    if role.counts() {
        let limiting = limiting(progress).map(|words| format!("{words}; ")).unwrap_or_default();
        let layers = layers.map(|layers| format!("{layers}; ")).unwrap_or_default();
        let receivers = units::count(progress.receivers, "receiver");
        lines.push(format!("{indent} {limiting}{layers}{} of {receivers} done", progress.verified));
        lines.extend(relays(progress, &indent));
    }
    lines.extend(working(role, progress).map(|words| format!("{indent} {words}")));
    lines.join("\n")
}

/// Returns the loss if it is known. A source derives the loss from the feedback of receivers.
fn loss(role: Role, progress: &Progress) -> Option<String> {
    let is_known = !role.counts() || progress.rtt.is_some();
    is_known.then(|| format!("loss {}", units::percent(progress.loss)))
}

/// Maximum number of hosts that a line names.
const NAMED: usize = 4;

/// Describes the receivers that have joined before the start.
fn waiting(joining: &Joining) -> String {
    let Joining { joined, expected, absent, failed, seconds_to_start } = joining;
    let start = seconds_to_start.map(|secs| format!(", start in {}", units::age(Duration::from_secs(secs))));
    let start = start.unwrap_or_default();
    let Some(expected) = expected else {
        return format!("waiting: {}{start}", units::count(*joined, "receiver"));
    };
    let missing = expected.saturating_sub(*joined).max(absent.len() as u64);
    if failed.is_empty() {
        let names = named(absent.iter().cloned());
        let names = names.map_or_else(String::new, |names| format!(": {names}"));
        let expected = units::count(*expected, "receiver");
        return format!("waiting: {missing} of {expected} missing{names}{start}");
    }
    let failed = failed.iter().map(|one| format!("{} failed ({})", one.host, one.reason));
    let absent = absent.iter().map(|host| format!("{host} has not joined"));
    let names = named(failed.chain(absent)).unwrap_or_default();
    format!("waiting: {joined} of {expected} ready; {names}{start}")
}

/// Returns a few names, safe for a terminal; `None` without names.
fn named(names: impl Iterator<Item = String>) -> Option<String> {
    let names: Vec<String> = names.collect();
    let more = names.len().saturating_sub(NAMED);
    let more = if more > 0 { " and more".to_owned() } else { String::new() };
    let shown = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    (!names.is_empty()).then(|| safe::text(&format!("{shown}{more}")).into_owned())
}

/// Describes receivers that process files, with the progress of each receiver.
fn working(role: Role, progress: &Progress) -> Option<String> {
    let first = progress.busy.first()?;
    let work = format!("{}, {} %", first.activity, first.percent);
    if role == Role::Receiver {
        return Some(work);
    }
    let others = match progress.busy.len() {
        1 => String::new(),
        several => format!(" (and {} more)", several - 1),
    };
    Some(format!("{}: {work}{others}", safe::text(&first.host)))
}

/// Names the host that limits the rate, and states whether its buffers are the limit.
fn limiting(progress: &Progress) -> Option<String> {
    match (&progress.limited_by, &progress.window_of, &progress.representative) {
        (Some(Limit::Window), Some(host), _) => Some(format!("limited by the buffers of {host}")),
        (_, _, representative) => representative.as_ref().map(|host| format!("limited by {host}")),
    }
}

fn amount(progress: &Progress) -> String {
    match progress.total_bytes {
        Some(total) => {
            let percent = fraction(progress.bytes, total) * 100.0;
            let moved = match progress.bytes > progress.moved_bytes {
                true => format!(" ({} moved)", units::bytes(progress.moved_bytes)),
                false => String::new(),
            };
            format!("{percent:.0} % of {}{moved}", units::bytes(total))
        }
        None => units::bytes(progress.bytes),
    }
}

fn bar(progress: &Progress) -> String {
    const WIDTH: usize = 24;
    let Some(total) = progress.total_bytes else { return String::new() };
    let full = (fraction(progress.bytes, total) * WIDTH as f64) as usize;
    format!("{}{} ", "█".repeat(full), "░".repeat(WIDTH - full))
}

fn left(progress: &Progress) -> String {
    match progress.total_bytes {
        Some(total) if progress.rate > Rate::ZERO && total > progress.bytes => {
            let secs = (total - progress.bytes) as f64 * 8.0 / progress.rate.bps();
            format!(", {} left", units::seconds(secs))
        }
        _ => String::new(),
    }
}

fn fraction(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { (part as f64 / whole as f64).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast::event::{Busy, IncompleteReceiver};

    fn halfway() -> Progress {
        Progress {
            elapsed: Duration::from_millis(12_200),
            bytes: 2_000_000_000,
            moved_bytes: 2_000_000_000,
            total_bytes: Some(4_000_000_000),
            rate: Rate::from_bps(95e6),
            allowed: Some(Rate::from_bps(100e6)),
            rtt: Some(Duration::from_micros(1_250)),
            loss: 0.001,
            representative: Some("lab-07".into()),
            receivers: 8,
            verified: 3,
            ..Progress::default()
        }
    }

    #[test]
    fn progress_line_names_the_limiting_receiver() {
        assert_eq!(
            progress_line(Role::Source, &halfway()),
            "12 s  50 % of 4.00 GB  95.0 Mbit/s  rtt 1.2 ms  loss 0.10 %  limited by lab-07  3 of 8 done"
        );
    }

    #[test]
    fn progress_line_before_the_start_names_the_missing_hosts() {
        let joining = |joined, absent: &[&str], failed: &[(&str, &str)]| {
            let incomplete = |(host, reason): &(&str, &str)| IncompleteReceiver {
                host: (*host).to_owned(),
                reason: (*reason).to_owned(),
            };
            let joining = Joining {
                joined,
                expected: Some(30),
                absent: absent.iter().map(|name| (*name).to_owned()).collect(),
                failed: failed.iter().map(incomplete).collect(),
                seconds_to_start: (joined == 30).then_some(5_400),
            };
            Progress { joining: Some(Box::new(joining)), ..halfway() }
        };
        let line = |progress| progress_line(Role::Source, &progress);
        assert_eq!(line(joining(16, &[], &[])), "12 s  waiting: 14 of 30 receivers missing");
        assert_eq!(
            line(joining(30, &[], &[])),
            "12 s  waiting: 0 of 30 receivers missing, start in 90 minutes"
        );
        assert_eq!(
            line(joining(28, &["lab-07", "lab-12"], &[])),
            "12 s  waiting: 2 of 30 receivers missing: lab-07, lab-12"
        );
        assert_eq!(
            line(joining(28, &["pc3"], &[("pc2", "its disk is full")])),
            "12 s  waiting: 28 of 30 ready; pc2 failed (its disk is full), pc3 has not joined"
        );
        let many = progress_block(Role::Source, &joining(20, &["a", "b", "c", "d", "e"], &[]));
        assert!(many.starts_with("waiting: 10 of 30 receivers missing: a, b, c, d and more for "), "{many}");
    }

    #[test]
    fn progress_after_a_resume_states_bytes_of_this_session() {
        let resumed = Progress { moved_bytes: 10_000_000, ..halfway() };
        let line = progress_line(Role::Source, &resumed);
        assert!(line.contains("50 % of 4.00 GB (10.0 MB moved)  "), "{line}");
    }

    #[test]
    fn progress_block_fits_80_columns_and_has_the_limiting_receiver() {
        let block = progress_block(Role::Source, &halfway());
        assert!(block.contains("limited by lab-07; 3 of 8 receivers done"), "{block}");
        assert!(block.contains("2:48 left"), "{block}");
        assert!(block.lines().all(|line| line.chars().count() <= 80), "{block}");
    }

    #[test]
    fn progress_block_lists_a_bounded_number_of_relays_by_depth() {
        let relay = |depth: u8, number: usize| RelayBelow {
            depth,
            host: format!("relay-{number}"),
            address: SocketAddr::from(([192, 0, 2, 7], 40_000)),
            receivers: 3,
            done: 1,
            rate: Rate::from_bps(25e6),
        };
        let two = Progress { relays: vec![relay(1, 0), relay(2, 1)], ..halfway() };
        let block = progress_block(Role::Source, &two);
        let lines: Vec<&str> = block.lines().collect();
        assert_eq!(lines[3].trim_start(), "relay-0 at 192.0.2.7:40000: 1 of 3 receivers done, 25.0 Mbit/s");
        assert!(
            lines[4].ends_with("   relay-1 at 192.0.2.7:40000: 1 of 3 receivers done, 25.0 Mbit/s"),
            "{block}"
        );
        assert!(progress_line(Role::Source, &two).ends_with("3 of 8 done  2 relays"));
        let many = Progress { relays: (0..20).map(|number| relay(1, number)).collect(), ..halfway() };
        let block = progress_block(Role::Source, &many);
        assert_eq!(block.lines().count(), 3 + MAX_RELAYS + 1);
        assert!(block.ends_with("and 8 relays more"), "{block}");
    }

    #[test]
    fn progress_states_the_number_of_joined_layers() {
        let progress = Progress { layers: Some(Subscription { joined: 2, of: 8 }), ..halfway() };
        assert!(progress_line(Role::Receiver, &progress).contains("  2 of 8 layers"));
        let block = progress_block(Role::Receiver, &Progress { allowed: None, ..progress.clone() });
        assert!(block.contains("loss 0.10 %, 2 of 8 layers"), "{block}");
        assert!(block.lines().all(|line| line.chars().count() <= 80), "{block}");
        let block = progress_block(Role::Source, &progress);
        assert!(block.contains("2 of 8 layers; 3 of 8 receivers done"), "{block}");
        assert!(block.lines().all(|line| line.chars().count() <= 80), "{block}");
    }

    #[test]
    fn progress_states_the_activity_of_busy_receivers() {
        let busy = |host: &str| Busy { host: host.into(), activity: "renaming files", percent: 62 };
        let one = Progress { busy: vec![busy("lab-07")], ..halfway() };
        assert!(progress_line(Role::Source, &one).ends_with("3 of 8 done  lab-07: renaming files, 62 %"));
        assert!(progress_line(Role::Receiver, &one).contains("  renaming files, 62 %"));
        let two = Progress { busy: vec![busy("lab-07"), busy("lab-08")], ..halfway() };
        let block = progress_block(Role::Source, &two);
        assert!(block.ends_with("lab-07: renaming files, 62 % (and 1 more)"), "{block}");
    }

    #[test]
    fn progress_of_unknown_length_states_no_percentage() {
        let progress = Progress { total_bytes: None, ..halfway() };
        assert!(progress_line(Role::Receiver, &progress).starts_with("12 s  2.00 GB  95.0 Mbit/s"));
    }

    #[test]
    fn option_quiet_prints_nothing_and_verbose_prints_joins() {
        let joined = Event::Joined {
            receiver: None,
            host: "lab-07".into(),
            address: "192.0.2.7:4000".parse().expect("a literal"),
        };
        assert_eq!(sentence(Role::Source, &joined, Level::Normal), None);
        assert!(sentence(Role::Source, &joined, Level::Verbose).is_some());
        assert_eq!(sentence(Role::Source, &Event::warning("w"), Level::Quiet), None);
    }

    #[test]
    fn loopback_interface_is_reported_except_by_unicast_sources() {
        let opened = Event::Opened {
            group: "239.255.70.1:5777".parse().expect("a literal"),
            interface: "lo".into(),
            local: "127.0.0.1".parse().expect("a literal"),
            alternatives: Vec::new(),
        };
        let line_of = |role| sentence(role, &opened, Level::Normal).expect("this event has a line");
        assert_eq!(line_of(Role::Source), "sending to 239.255.70.1:5777 through lo, 127.0.0.1");
        assert_eq!(line_of(Role::Receiver), "listening on 239.255.70.1:5777 through lo, 127.0.0.1");
        assert_eq!(line_of(Role::Unicast), "sending to hosts by unicast alone");
    }

    #[test]
    fn session_stops_if_its_json_output_is_closed() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (stop, mut closed) = (Stop::new().expect("descriptors are left"), Closed);
        let mut printer =
            EventPrinter::new(Role::Source, Level::Normal, Some(&mut closed), Human::Nobody, &stop);
        printer.event(&Event::warning("w"));
        assert_eq!(printer.reader(), Reader::Gone);
        assert!(stop.is_set());
    }
}
