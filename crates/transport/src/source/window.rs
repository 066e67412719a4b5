//! Receivers' windows at the source. They limit the packet numbers that the source may send, for a limited time
//! (docs/design/windows.md). A window *holds* the source while it alone delays the next packet.

use faircast_core::packet::{ReceiverId, Seq};
use faircast_core::time::{Rate, Span, Time};
use faircast_wire::Window;
use std::collections::BTreeMap;

/// Duration of silence after which a member's window does not delay the source any longer.
pub(super) const LAPSE: Span = Span::from_secs(1);

/// Duration with a closed window after which a member is treated as silent, although it sends.
pub(super) const STALL: Span = Span::from_secs(5);

/// Maximum silence of a slow receiver. A receiver that is silent for longer is considered paused.
const SPEAKS: Span = Span::from_millis(250);

/// Two periods in which the same member holds the source count as one period, if they are at most this long apart.
const AGAIN: Span = Span::from_millis(100);

/// Packet rate while a window holds the source, as a multiple of the rate at which the window opens. Packets are then spaced
/// evenly, because bursts at the scheme's rate would fill queues of the path.
const EVENLY: f64 = 1.25;

/// Averaging time of the rate at which a window opens.
const SMOOTH: Span = Span::from_millis(20);

/// Duration for which the source is held before it requests windows.
const ASK: Span = Span::from_millis(10);

/// Windows of all receivers that advertise one.
#[derive(Debug, Default)]
pub(super) struct Windows {
    known: BTreeMap<ReceiverId, Edge>,
    /// Smallest limit, and its member.
    lowest: Option<(Seq, ReceiverId)>,
    /// Time since which the smallest limit, and nothing else, has delayed a packet.
    held_since: Option<Time>,
    holding: Option<Holding>,
    /// Time of the last departure. With a minimum rate (`--min`), the spacing of packets starts from this time even if the
    /// windows are closed.
    sent_at: Time,
    /// Duration for which the source was held until `held_since`, and the last member that held the source.
    held: (Span, Option<ReceiverId>),
}

/// Right edge of a member's window.
#[derive(Debug, Clone, Copy)]
struct Edge {
    limit: Seq,
    /// Newest packet that the member had processed when it sent the advertisement. Advertisements are ordered by this number.
    echo: Seq,
    last_received_at: Time,
    /// Time of the last growth of the limit.
    moved_at: Time,
    counts: Counts,
    /// Rate at which the limit grows, packets per second; zero while unknown.
    opening: f64,
}

/// Whether a member's window holds the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counts {
    Yes,
    /// The member is given up until its limit exceeds the sent packets. Otherwise a member that sends occasionally would hold the
    /// source again and again.
    GivenUp,
}

/// A member that has held the source with short interruptions at most.
#[derive(Debug, Clone, Copy)]
struct Holding {
    by: ReceiverId,
    since: Time,
    /// The member's limit at `since`.
    from: Seq,
    until: Time,
}

/// A member whose window stayed closed for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GivenUp {
    /// The member is silent.
    Silent(ReceiverId),
    /// The member sends, but does not open its window.
    Stalled(ReceiverId),
}

impl Windows {
    /// Handles an advertisement, unless its values are impossible; returns whether they were valid. `next` is the number of the
    /// next packet.
    pub(super) fn on_window(&mut self, window: &Window, next: Seq, now: Time) -> bool {
        if window.echo.seq >= next {
            return false;
        }
        let new = Edge {
            limit: window.limit,
            echo: window.echo.seq,
            last_received_at: now,
            moved_at: now,
            counts: Counts::Yes,
            opening: 0.0,
        };
        let edge = self.known.entry(window.from).or_insert(new);
        let since = now.since(std::mem::replace(&mut edge.last_received_at, now));
        if window.echo.seq >= edge.echo {
            if window.limit > edge.limit {
                edge.moved_at = now;
            }
            edge.open(window.limit, since);
            (edge.limit, edge.echo) = (window.limit, window.echo.seq);
        }
        match edge.counts {
            Counts::GivenUp if edge.limit > next => (edge.counts, edge.moved_at) = (Counts::Yes, now),
            Counts::Yes | Counts::GivenUp => {}
        }
        self.find_lowest();
        if self.allows(next) {
            self.release(now);
        }
        true
    }

    /// Removes a member that is done, given up or deferred.
    pub(super) fn forget(&mut self, id: ReceiverId) {
        if self.known.remove(&id).is_some() {
            self.find_lowest();
        }
    }

    fn find_lowest(&mut self) {
        let count = self.known.iter().filter(|(_, edge)| edge.counts == Counts::Yes);
        self.lowest = count.map(|(id, edge)| (edge.limit, *id)).min();
    }

    /// Whether packet `seq` fits the windows of all members.
    pub(super) fn allows(&self, seq: Seq) -> bool {
        self.lowest.is_none_or(|(limit, _)| seq < limit)
    }

    /// Returns the departure time of packet `next`, which the scheme allows at `at`. The user's minimum rate `least` applies
    /// regardless of windows, with packets of `size` bytes.
    pub(super) fn departure(&self, at: Time, next: Seq, least: Option<Rate>, size: u64) -> Time {
        if self.allows(next) {
            return at.max(self.evenly());
        }
        least.map_or(Time::NEVER, |rate| at.max(self.sent_at + rate.span_of(size)))
    }

    /// Returns the earliest departure time of the next packet that keeps packets within a window evenly spaced.
    fn evenly(&self) -> Time {
        let (Some(holding), Some((_, lowest))) = (self.holding, self.lowest) else { return Time::ZERO };
        if holding.by != lowest || self.sent_at.since(holding.until) > AGAIN {
            return Time::ZERO;
        }
        let rate = self.known.get(&lowest).map_or(0.0, |edge| edge.opening) * EVENLY;
        // The spacing has a maximum. A longer pause does not result from the spacing, but from a closed window.
        let spacing = if rate > 0.0 { Span::from_secs_f64((1.0 / rate).min(0.02)) } else { Span::ZERO };
        self.sent_at + spacing
    }

    /// Records a sent packet.
    pub(super) fn on_departure(&mut self, now: Time) {
        // Packets sent in one call count as if they were spaced.
        self.sent_at = self.evenly().max(now);
        self.release(now);
    }

    fn release(&mut self, now: Time) {
        if let Some(since) = self.held_since.take() {
            self.held.0 = self.held.0 + now.since(since);
        }
    }

    /// Records that only the windows delay packet `next`. Returns a member to give up now, if there is one.
    pub(super) fn hold(&mut self, next: Seq, now: Time) -> Option<GivenUp> {
        let (limit, by) = self.lowest.filter(|(limit, _)| next >= *limit)?;
        let since = *self.held_since.get_or_insert(now);
        self.held.1 = Some(by);
        match &mut self.holding {
            Some(holding) if holding.by == by && now.since(holding.until) < AGAIN => holding.until = now,
            _ => self.holding = Some(Holding { by, since: now, from: limit, until: now }),
        }
        let edge = self.known.get_mut(&by)?;
        let (silent_at, stalled_at) = edge.ends(since);
        let given_up = match () {
            () if silent_at <= now => GivenUp::Silent(by),
            () if stalled_at <= now => GivenUp::Stalled(by),
            () => return None,
        };
        edge.counts = Counts::GivenUp;
        self.find_lowest();
        // If another window also holds the source, the present period of holding continues.
        if self.allows(next) {
            self.release(now);
        }
        self.holding = None;
        Some(given_up)
    }

    /// Returns the time of the next call of [`Windows::hold`], while the source is held.
    pub(super) fn deadline(&self) -> Time {
        let (Some(since), Some((_, by))) = (self.held_since, self.lowest) else { return Time::NEVER };
        let ends = self.known.get(&by).map(|edge| edge.ends(since));
        ends.map_or(Time::NEVER, |(silent_at, stalled_at)| silent_at.min(stalled_at))
    }

    /// Whether windows hold the source now.
    pub(super) fn is_held(&self) -> bool {
        self.held_since.is_some()
    }

    /// Returns the time from which the source requests windows, or [`Time::NEVER`] while it is not held.
    pub(super) fn ask_at(&self) -> Time {
        self.held_since.map_or(Time::NEVER, |since| since + ASK)
    }

    /// Returns the member that holds the source and still sends. Also returns the duration of the hold, and the rate at which the
    /// member's window has allowed packets of `size` bytes.
    pub(super) fn holding(&self, size: u64, now: Time) -> Option<(ReceiverId, Span, Rate)> {
        let holding = self.holding?;
        let edge = self.known.get(&holding.by)?;
        if now.since(edge.last_received_at) > SPEAKS {
            return None; // the member is not slow but silent
        }
        let limit = edge.limit;
        let span = holding.until.since(holding.since);
        Some((holding.by, span, Rate::of(limit.0.saturating_sub(holding.from.0).saturating_mul(size), span)))
    }

    /// Returns the duration for which the source was held so far, and the last member that held it.
    pub(super) fn held(&self, now: Time) -> (Span, Option<ReceiverId>) {
        let (held, by) = self.held;
        (held + self.held_since.map_or(Span::ZERO, |since| now.since(since)), by)
    }
}

impl Edge {
    /// Updates the opening rate for a new limit, `since` after the last advertisement.
    fn open(&mut self, limit: Seq, since: Span) {
        let grown = limit.0.saturating_sub(self.limit.0) as f64;
        let seconds = since.as_secs_f64();
        if seconds < 50e-6 {
            return;
        }
        let (sample, weight) = (grown / seconds, seconds / (seconds + SMOOTH.as_secs_f64()));
        let weight = if sample > self.opening { weight.max(0.25) } else { weight };
        self.opening += weight * (sample - self.opening);
    }

    /// Returns two times at which a member that has held the source since `since` is given up: as silent, and as stalled.
    fn ends(&self, since: Time) -> (Time, Time) {
        (self.last_received_at.max(since) + LAPSE, self.moved_at.max(since) + STALL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::packet::Echo;

    fn id(number: u64) -> ReceiverId {
        ReceiverId::new(number).expect("tests number from one")
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn window(from: u64, echo: u64, limit: u64) -> Window {
        Window { from: id(from), echo: Echo { seq: Seq(echo), hold: Span::ZERO }, limit: Seq(limit) }
    }

    #[test]
    fn source_obeys_the_smallest_limit_and_ignores_old_windows() {
        let mut windows = Windows::default();
        assert!(windows.allows(Seq(1 << 40)), "nobody advertises");
        assert!(windows.on_window(&window(1, 5, 100), Seq(10), at(0)));
        assert!(windows.on_window(&window(2, 5, 50), Seq(10), at(0)));
        assert!(windows.allows(Seq(49)) && !windows.allows(Seq(50)));
        assert!(windows.on_window(&window(2, 8, 120), Seq(10), at(1)));
        assert!(windows.on_window(&window(2, 6, 60), Seq(10), at(2)), "it was overtaken on its way");
        assert!(windows.allows(Seq(99)) && !windows.allows(Seq(100)));
        windows.forget(id(1));
        assert!(windows.allows(Seq(119)));
        assert!(!windows.on_window(&window(3, 10, 0), Seq(10), at(3)), "it cannot have that packet");
        assert!(windows.allows(Seq(119)));
    }

    #[test]
    fn silent_receiver_blocks_the_source_for_only_one_second() {
        let mut windows = Windows::default();
        windows.on_window(&window(1, 5, 10), Seq(10), at(0));
        windows.on_window(&window(2, 5, 40), Seq(10), at(0));
        assert_eq!(windows.hold(Seq(10), at(200)), None);
        assert_eq!(windows.deadline(), at(1_200));
        assert_eq!(windows.hold(Seq(10), at(1_200)), Some(GivenUp::Silent(id(1))));
        assert!(windows.allows(Seq(39)) && !windows.allows(Seq(40)));
        windows.on_window(&window(1, 9, 20), Seq(15), at(1_300));
        assert!(!windows.allows(Seq(20)));
    }

    #[test]
    fn many_closed_windows_block_no_longer_than_a_single_window() {
        let mut windows = Windows::default();
        (1..=1_000)
            .for_each(|member| _ = windows.on_window(&window(member, 5, 10 + member % 5), Seq(10), at(0)));
        assert_eq!(windows.hold(Seq(20), at(0)), None);
        let given_up = std::iter::from_fn(|| windows.hold(Seq(20), at(1_000))).count();
        assert!(given_up == 1_000 && windows.allows(Seq(20)), "{given_up}");
    }

    #[test]
    fn receiver_given_up_for_a_closed_window_holds_the_source_once() {
        let mut windows = Windows::default();
        let mut held = 0;
        for millis in (0..60_000).step_by(10) {
            let next = Seq(10 + millis / 10);
            if millis % 1_500 == 0 {
                windows.on_window(&window(1, 5, 6), next, at(millis));
            }
            windows.hold(next, at(millis));
            held += u64::from(!windows.allows(next));
        }
        assert!(held <= 101, "{held} hundredths of a second");
    }

    #[test]
    fn closed_window_blocks_the_source_for_five_seconds() {
        let mut windows = Windows::default();
        windows.on_window(&window(1, 5, 6), Seq(10), at(0));
        let given_up = (1..10_000).find_map(|millis| {
            windows.on_window(&window(1, 5, 6), Seq(10), at(millis));
            windows.hold(Seq(10), at(millis)).map(|given_up| (given_up, millis))
        });
        assert_eq!(given_up, Some((GivenUp::Stalled(id(1)), 5_001)));
        windows.on_window(&window(1, 5, 7), Seq(10), at(6_000));
        assert!(windows.allows(Seq(10)), "that is no room");
        windows.on_window(&window(1, 5, 20), Seq(10), at(6_001));
        assert!(windows.allows(Seq(19)) && !windows.allows(Seq(20)));
    }

    #[test]
    fn configured_minimum_rate_overrides_closed_windows() {
        let mut windows = Windows::default();
        windows.on_window(&window(1, 5, 0), Seq(10), at(0));
        windows.on_departure(at(100));
        let least = Some(Rate::from_mbps(1.0));
        assert_eq!(windows.departure(at(0), Seq(10), least, 1_250), at(110));
        assert_eq!(windows.departure(at(0), Seq(10), None, 1_250), Time::NEVER);
    }

    #[test]
    fn receiver_that_holds_the_source_is_returned_with_its_rate() {
        let mut windows = Windows::default();
        for step in 0..=50u64 {
            let next = Seq(100 + step);
            windows.on_window(&window(1, 50 + step, 100 + step), next, at(step * 10));
            assert_eq!(windows.hold(next, at(step * 10)), None);
            windows.on_departure(at(step * 10 + 5));
        }
        let (by, span, rate) = windows.holding(1_250, at(505)).expect("somebody does");
        assert_eq!((by, span), (id(1), Span::from_millis(500)));
        assert!((rate.bps() - 1e6).abs() < 1.0, "{rate}");
        assert_eq!(windows.held(at(600)).1, Some(id(1)));
    }
}
