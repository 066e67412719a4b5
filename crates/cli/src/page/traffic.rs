//! Other traffic on the interface of a session, from the byte counters of the system.

use super::model::{MAX_SESSIONS, Of, Traffic};
use faircast::Event;
use faircast::event::Progress;
use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// The counters of all interfaces, in the network namespace of this thread.
const COUNTERS: &str = "/proc/thread-self/net/dev";

/// Bytes of an Ethernet header, which interfaces count and sessions do not.
const HEADER: f64 = 14.0;

/// The interfaces of the sessions, and their last counts.
#[derive(Debug, Default)]
pub struct Meters {
    /// The interface that was opened last. Sessions of `recv --serve` use it.
    opened: String,
    each: BTreeMap<Of, Meter>,
}

#[derive(Debug, Default)]
struct Meter {
    interface: String,
    last: Option<Count>,
}

/// Counts at a time of the session.
#[derive(Debug, Clone, Copy)]
struct Count {
    at: Duration,
    received: u64,
    sent: u64,
    packets: u64,
}

impl Meters {
    /// Takes an event. Returns the traffic at a progress, if the system counts it.
    pub fn note(&mut self, of: Of, event: &Event) -> Option<Traffic> {
        match event {
            Event::Opened { interface, .. } => {
                self.opened.clone_from(interface);
                let counters = fs::read_to_string(COUNTERS).unwrap_or_default();
                *self.meter(of) = Meter::opened(interface, &counters);
                None
            }
            Event::Progress(progress) => {
                self.meter(of).measure(progress, &fs::read_to_string(COUNTERS).ok()?)
            }
            _ => None,
        }
    }

    /// Forgets a session that has ended.
    pub fn forget(&mut self, of: Of) {
        self.each.remove(&of);
    }

    fn meter(&mut self, of: Of) -> &mut Meter {
        while self.each.len() >= MAX_SESSIONS && !self.each.contains_key(&of) {
            self.each.pop_first();
        }
        let opened = || Meter { interface: self.opened.clone(), last: None };
        self.each.entry(of).or_insert_with(opened)
    }
}

impl Meter {
    /// Returns the meter of an interface at the beginning of a session.
    fn opened(interface: &str, counters: &str) -> Meter {
        let count = |(received, sent)| Count { at: Duration::ZERO, received, sent, packets: 0 };
        Meter { interface: interface.to_owned(), last: bytes_of(interface, counters).map(count) }
    }

    /// Returns the traffic since the last progress. `counters` is the table of the system.
    fn measure(&mut self, progress: &Progress, counters: &str) -> Option<Traffic> {
        let (received, sent) = bytes_of(&self.interface, counters)?;
        let is_source = progress.allowed.is_some();
        let packets = progress.counts.as_ref().map_or(0, |counts| counts.packets);
        let now = Count { at: progress.elapsed, received, sent, packets };
        // The time of a receiver begins when it has found its session, after it has opened the interface.
        let last = self.last.replace(now).filter(|last| is_source || !last.at.is_zero())?;
        let seconds = now.at.checked_sub(last.at).map_or(0.0, |span| span.as_secs_f64());
        if seconds <= 0.0 {
            return None;
        }
        let bytes =
            if is_source { sent.checked_sub(last.sent)? } else { received.checked_sub(last.received)? };
        let all_bps = bytes as f64 * 8.0 / seconds;
        let headers = now.packets.saturating_sub(last.packets) as f64 * HEADER * 8.0 / seconds;
        let other_bps = (all_bps - progress.rate.bps() - headers).max(0.0);
        Some(Traffic { interface: self.interface.clone(), all_bps, other_bps })
    }
}

/// Returns the received and the sent bytes of an interface.
fn bytes_of(interface: &str, counters: &str) -> Option<(u64, u64)> {
    let line = |line: &str| Some(line.trim().strip_prefix(interface)?.strip_prefix(':')?.to_owned());
    let line = counters.lines().find_map(line)?;
    let numbers: Vec<u64> = line.split_ascii_whitespace().map_while(|number| number.parse().ok()).collect();
    Some((*numbers.first()?, *numbers.get(8)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast::Rate;
    use faircast::event::Counts;

    fn table(received: u64, sent: u64) -> String {
        format!(
            "Inter-|   Receive                |  Transmit\n face |bytes    packets errs drop fifo frame compressed multicast|bytes\n    \
             lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  eth0:{received} 7 0 0 0 0 0 3 {sent} 9 0 0 0 0 0 0\n eth01: 5 5 0 0 0 0 0 0 5 5 0 0 0 0 0 0\n"
        )
    }

    fn progress(second: u64, is_source: bool) -> Progress {
        let rate = Rate::from_bps(8e6);
        let counts = Counts { packets: 1_000 * second, ..Counts::default() };
        Progress {
            elapsed: Duration::from_secs(second),
            rate,
            allowed: is_source.then_some(rate),
            counts: Some(Box::new(counts)),
            ..Progress::default()
        }
    }

    #[test]
    fn traffic_beside_the_session_is_counted() {
        for is_source in [true, false] {
            let count = |bytes| if is_source { table(0, bytes) } else { table(bytes, 0) };
            let mut meter = Meter::opened("eth0", &count(4_000));
            let first = meter.measure(&progress(1, is_source), &count(5_000));
            assert_eq!(first.map(|first| first.all_bps), is_source.then_some(8_000.0));
            // A session of 1 MB/s and 1,000 packets, and 0.5 MB of others.
            let traffic = meter
                .measure(&progress(2, is_source), &count(5_000 + 1_500_000 + 14_000))
                .expect("it is known");
            assert_eq!((traffic.all_bps, traffic.other_bps), (12_112_000.0, 4e6));
            let alone = meter.measure(&progress(4, is_source), &count(3_014_000)).expect("it is known");
            assert_eq!(alone.other_bps, 0.0, "counts may be late");
            assert_eq!(meter.measure(&progress(5, is_source), &count(1)), None, "the interface is new");
            assert_eq!(meter.measure(&progress(5, is_source), &count(2)), None, "no time has passed");
            assert_eq!(meter.measure(&progress(6, is_source), "eth1: 1 1"), None, "it has gone");
        }
    }

    #[test]
    fn counters_of_this_host_are_read() {
        let mut meters = Meters::default();
        let opened = Event::Opened {
            group: ([239, 255, 1, 1], 4000).into(),
            interface: "lo".to_owned(),
            local: [127, 0, 0, 1].into(),
            alternatives: Vec::new(),
        };
        assert_eq!(meters.note(Of::default(), &opened), None);
        // A session of `recv --serve` has the interface of the command.
        let of = Of { session: 1, branch: None };
        assert_eq!(meters.note(of, &Event::Progress(progress(1, true))), None, "the first count");
        let traffic = meters.note(of, &Event::Progress(progress(2, true))).expect("the system counts");
        assert!(traffic.interface == "lo" && traffic.all_bps >= 0.0, "{traffic:?}");
        for session in 0..3 * MAX_SESSIONS as u64 {
            meters.note(Of { session, branch: None }, &Event::Progress(progress(1, true)));
        }
        assert_eq!(meters.each.len(), MAX_SESSIONS);
    }
}
