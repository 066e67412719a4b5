//! `recv --serve`: a receiver that runs until it is stopped. It receives several sessions at the same time, but no session twice.
//! It continues after a failed session, for example after a stopped source, a full disk or a network outage.
//!
//! Each session has a receiver with a separate thread and separate sockets. One more receiver waits for the next session.

use crate::failure::Failure;
use crate::hook::Hook;
use crate::printer::{self, Beside, EventPrinter, Role, Turn};
use crate::session::{self, Output, Resolved};
use crate::watch::sequences::Sequences;
use crate::wording;
use faircast::error::TransferError;
use faircast::{Class, Destination, Error, Event, ReceiveConfig, ReceiveReport, Series, Stop};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Pause after a failed session. The pause doubles with each consecutive session that fails at once.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// Maximum pause.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Duration below which a failed session counts as failed at once.
const AT_ONCE: Duration = Duration::from_secs(2);

/// Interval at which requests to stop are checked.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A message of a receiver's thread.
enum ReceiverMessage {
    Event(Event),
    Ended(Result<ReceiveReport, Error>, Duration),
}

/// The receivers of this host: one receiver that waits for a session, and the active receivers.
struct Receivers {
    /// Number of each running receiver, and whether this receiver has joined a session.
    running: BTreeMap<u32, bool>,
    most: usize,
    /// Number of additional receivers that may wait when `most` are active. Such a receiver waits for a session that replaces an
    /// active one.
    spare: usize,
    /// Number of the receiver that was started last.
    last: u32,
    pause: Duration,
    not_before: Instant,
}

impl Receivers {
    fn new(most: usize, spare: usize) -> Receivers {
        let (running, not_before) = (BTreeMap::new(), Instant::now());
        Receivers { running, most, spare, last: 0, pause: FIRST_PAUSE, not_before }
    }

    /// If a new receiver should be started now, registers it and returns its number.
    fn start(&mut self, now: Instant) -> Option<u32> {
        let one_waits = self.running.values().any(|takes_part| !takes_part);
        if one_waits || self.running.len() >= self.most + self.spare || now < self.not_before {
            return None;
        }
        self.last += 1;
        self.running.insert(self.last, false);
        Some(self.last)
    }

    /// Whether another session can be joined.
    fn has_room(&self) -> bool {
        self.running.values().filter(|takes_part| **takes_part).count() < self.most
    }

    /// Returns the session, and whether other sessions run at the same time.
    fn turn(&self, session: u32) -> Turn {
        let others = self.running.iter().any(|(other, takes_part)| *other != session && *takes_part);
        Turn { session, beside: if others { Beside::Others } else { Beside::Alone } }
    }

    /// Records the end of a session that lasted for `lasted`. After a failed session, the next start is delayed. The delay grows
    /// if sessions fail at once, for instance without a network.
    fn ended(&mut self, session: u32, is_good: bool, lasted: Duration) {
        self.running.remove(&session);
        self.pause = match !is_good && lasted < AT_ONCE {
            true => (self.pause * 2).min(MAX_PAUSE),
            false => FIRST_PAUSE,
        };
        self.not_before = Instant::now() + if is_good { Duration::ZERO } else { self.pause };
    }
}

/// Receives sessions, at most `most` at the same time, until `stop` is set. A stop between two sessions is not an error.
///
/// # Errors
/// When a stop interrupts a session, when the arguments are invalid, or when the reader of the JSON has closed the output.
pub fn run<'a>(
    resolved: Resolved<ReceiveConfig>,
    most: usize,
    output: Output<'a>,
    stop: &'a Stop,
) -> Result<(), Failure> {
    let Resolved { mut config, output_options, warnings, report: _, hook } = resolved;
    let mut printer = session::printer(Role::Receiver, &output_options, output, stop)?;
    warnings.into_iter().for_each(|text| printer.event(&Event::warning(text)));
    // With `--listen`, `--parent` or the address of this host, only one receiver can run, because it occupies a port of this host.
    let is_at_host = !config.group.ip().is_multicast();
    let has_port = config.listen.is_some() || !config.parents.is_empty() || is_at_host;
    let (most, spare) = if has_port { (1, 0) } else { (most, 1) };
    config.accept.places = Some(most);
    let mut series = ReceivedSeries::of(&config.destination);
    let mut receivers = Receivers::new(most, spare);
    let (reported, news) = mpsc::channel();
    let mut end = Ok(());
    std::thread::scope(|scope| {
        loop {
            if !stop.is_set()
                && end.is_ok()
                && let Some(number) = receivers.start(Instant::now())
            {
                let (config, hook, reported) = (config.clone(), hook.clone(), reported.clone());
                scope.spawn(move || receive(number, config, hook, &reported, stop));
            }
            config.accept.one_waits(receivers.has_room());
            if receivers.running.is_empty() && (stop.is_set() || end.is_err()) {
                return;
            }
            let Ok((number, one)) = news.recv_timeout(LOOK_EVERY) else { continue };
            if let ReceiverMessage::Event(Event::Joined { .. }) = one {
                receivers.running.insert(number, true);
            }
            printer.of(receivers.turn(number));
            series.follow(number, &one).iter().for_each(|event| printer.event(event));
            match one {
                ReceiverMessage::Event(event) => printer.event(&wording::event(event)),
                ReceiverMessage::Ended(outcome, lasted) => {
                    let is_good = match &outcome {
                        Ok(report) => report.ok,
                        Err(Error::Transfer(TransferError::GaveWay { .. })) => true,
                        Err(_) => false,
                    };
                    let took_part = receivers.running.get(&number).copied().unwrap_or_default();
                    receivers.ended(number, is_good, lasted);
                    printer.forget(number);
                    let is_idle = !took_part && outcome.as_ref().is_ok_and(|report| report.stopped);
                    let ended = if is_idle { Ok(()) } else { session_ended(&mut printer, outcome) };
                    if ended.is_err() && end.is_ok() {
                        end = ended;
                        stop.stop();
                    }
                }
            }
        }
    });
    // The hooks of the last sessions have ended.
    for (number, one) in news.try_iter() {
        if let ReceiverMessage::Event(event) = one {
            printer.of(receivers.turn(number));
            printer.event(&event);
        }
    }
    end
}

/// The numbers of received sessions that belong to a series.
struct ReceivedSeries {
    /// The output directory.
    out: Option<PathBuf>,
    /// Host names of the sources of the active receivers, and the places of their sessions in a series.
    active: BTreeMap<u32, (String, Option<Series>)>,
}

impl ReceivedSeries {
    fn of(destination: &Destination) -> ReceivedSeries {
        let out = match destination {
            Destination::Directory(out) => Some(out.clone()),
            _ => None,
        };
        ReceivedSeries { out, active: BTreeMap::new() }
    }

    /// Notes what a receiver reports. After a complete session, records its number, and returns the event of missing numbers, or a
    /// warning.
    fn follow(&mut self, receiver: u32, one: &ReceiverMessage) -> Option<Event> {
        match one {
            ReceiverMessage::Event(Event::Joined { host, .. }) => {
                self.active.insert(receiver, (host.clone(), None));
                None
            }
            ReceiverMessage::Event(Event::Numbered { series, number, .. }) => {
                let place = self.active.get_mut(&receiver).map(|(_, place)| place);
                place.into_iter().for_each(|place| *place = Some(Series { id: *series, number: *number }));
                None
            }
            ReceiverMessage::Event(_) => None,
            ReceiverMessage::Ended(outcome, _) => {
                let (host, series) = self.active.remove(&receiver)?;
                let series = series.filter(|_| outcome.as_ref().is_ok_and(|report| report.ok))?;
                let out = self.out.as_ref()?;
                let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
                match Sequences::open(out).and_then(|mut all| all.receive(series, &host, now)) {
                    Ok(gap) => gap.map(|gap| Event::Missed {
                        series: series.id,
                        host,
                        first: gap.first,
                        last: gap.last,
                    }),
                    Err(error) => Some(Event::warning(format!(
                        "the numbers of received sessions cannot be recorded: {error}"
                    ))),
                }
            }
        }
    }
}

/// Runs one receiver in its thread, and the hook after a complete session. The next receiver does not wait for the hook.
fn receive(
    number: u32,
    config: ReceiveConfig,
    mut hook: Option<Hook>,
    reported: &mpsc::Sender<(u32, ReceiverMessage)>,
    stop: &Stop,
) {
    let began = Instant::now();
    let print = |one| {
        // The receiving end of the channel outlives this thread.
        reported.send((number, one)).ok();
    };
    let outcome = faircast::Receiver::from(config).run_until(stop, &mut |event| {
        hook.iter_mut().for_each(|hook| hook.note_event(&event));
        print(ReceiverMessage::Event(event));
    });
    let complete = outcome.as_ref().ok().filter(|report| report.ok);
    let hook = Hook::after(hook, complete);
    print(ReceiverMessage::Ended(outcome, began.elapsed()));
    if let Some(Err(failure)) = hook.map(|hook| hook.run()) {
        print(ReceiverMessage::Event(Event::warning(failure.to_string())));
    }
}

/// Reports the outcome of a session. Returns only errors that end the program.
fn session_ended(
    printer: &mut EventPrinter<'_>,
    outcome: Result<ReceiveReport, Error>,
) -> Result<(), Failure> {
    let is_stopped = outcome.as_ref().is_ok_and(|report| report.stopped);
    match session::conclude(printer, outcome, session::received) {
        Err(failure) if is_stopped => Err(failure),
        Err(failure) if matches!(failure, Failure::NobodyReads(_)) || failure.class() == Class::Usage => {
            Err(failure)
        }
        Err(failure) => {
            let (what, hint) = failure.what_and_hint();
            let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
            printer.say(&printer::warning(&format!("{what}{hint}; waiting for the next session")));
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn daemon_has_one_waiting_receiver_and_limits_active_receivers() {
        let (mut receivers, now) = (Receivers::new(2, 1), Instant::now());
        assert_eq!((receivers.start(now), receivers.start(now)), (Some(1), None));
        receivers.running.insert(1, true);
        assert!(receivers.has_room());
        assert_eq!(receivers.start(now), Some(2));
        receivers.running.insert(2, true);
        assert_eq!((receivers.start(now), receivers.has_room()), (Some(3), false), "one more waits");
        assert_eq!(receivers.start(now), None);
        receivers.running.insert(3, true);
        assert_eq!(receivers.start(now), None, "one gives way in a moment");
        receivers.ended(3, false, Duration::ZERO);
        assert_eq!(receivers.turn(2).beside, Beside::Others);
        receivers.ended(1, true, Duration::ZERO);
        assert_eq!(receivers.turn(2).beside, Beside::Alone);
        assert_eq!(receivers.start(Instant::now()), Some(4));
    }

    #[test]
    fn immediate_failures_are_retried_with_growing_pauses() {
        let mut receivers = Receivers::new(1, 0);
        let mut pauses = Vec::new();
        for _ in 0..10 {
            let later = receivers.not_before;
            let number = receivers.start(later).expect("nothing runs");
            receivers.ended(number, false, Duration::ZERO);
            assert_eq!(receivers.start(Instant::now()), None);
            pauses.push(receivers.pause);
        }
        assert!(pauses.is_sorted() && pauses.last() == Some(&MAX_PAUSE), "{pauses:?}");
        receivers.ended(receivers.last, false, AT_ONCE);
        assert_eq!(receivers.pause, FIRST_PAUSE);
    }
}
