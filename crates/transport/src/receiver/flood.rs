//! Detection of layers that arrive although this receiver has not joined them, because a switch floods multicast.
//!
//! Consider a receiver that has left all enhancement layers and still loses packets of the base layer while the source sends
//! enhancement layers. Its link either carries these layers or is too slow for the base layer alone. The receiver cannot
//! distinguish the two cases. Interface counters do not help, because an adapter drops packets of groups that were not joined
//! without counting them. So the receiver reports its observation, and the source, which can slow the enhancement layers,
//! determines the cause.

use faircast_core::packet::{Arrival, Signal};
use faircast_core::time::{Span, Time};

/// Time for which packets of a layer may still arrive after the layer was left. Before routers stop forwarding the layer, they
/// send two queries, a second apart (RFC 2236, 8.8; RFC 3376, 8.8).
const PRUNED: Span = Span::from_secs(3);
/// Minimum time and minimum number of packets of a window in which losses are judged. If packets are rare, a window takes up to
/// `MAX_WINDOW`.
const WINDOW: Span = Span::from_secs(2);
const MIN_PACKETS: u64 = 20;
const MAX_WINDOW: Span = Span::from_secs(10);
/// Minimum number of packets of a window, even after `MAX_WINDOW`.
const NEVER_FEWER: u64 = 5;
/// Minimum fraction of lost packets in a bad window, if the rates of the layers are fixed.
const MUCH: f64 = 0.05;
/// Minimum fraction of lost packets in a bad window, if the base layer follows the slowest receiver. This receiver loses some
/// packets of every layer whose rate it limits.
const MUCH_FOR_FOLLOWED: f64 = 0.1;
/// Number of consecutive bad windows before a report, because competing TCP flows cause single bad windows. A higher loss needs
/// fewer windows.
const WINDOWS: u8 = 4;
const MAX_LOSS: f64 = 0.12;
const MAX_LOSS_OF_FOLLOWED: f64 = 0.25;
const WINDOWS_OF_MAX_LOSS: u8 = 1;
/// Minimum fraction of lost packets in one window after the first report, if the rates of the layers are fixed. It is small,
/// because a few lost packets of bursts are enough to keep the receiver from joining layers.
const AGAIN: f64 = 0.02;
/// Minimum rate of the enhancement layers, as a fraction of the base layer's rate.
const ACTIVE: f64 = 0.25;

/// Duration without packets after which a path counts as interrupted.
const INTERRUPTED: Span = Span::from_secs(1);
const REVEALED: u8 = 8;

/// Observations of a receiver that has joined only the base layer.
#[derive(Debug)]
pub(super) struct FloodWatch {
    /// Time at which the last enhancement layer was left; `None` while an enhancement layer is joined.
    alone_since: Option<Time>,
    window_from: Time,
    came: u64,
    lost: u64,
    /// Number of packets that the source has sent on enhancement layers: at the start of the window, and according to its newest
    /// status.
    upper: Option<(u64, u64)>,
    reported: bool,
    /// Number of consecutive bad windows.
    bad: u8,
    /// Arrival time of the newest packet; `unreported`: number of packets after an interruption for which losses are still
    /// ignored.
    newest_at: Time,
    unreported: u8,
    base: Base,
}

/// The rule for the rate of the base layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// A fixed rate.
    Fixed,
    /// The rate follows the slowest receiver.
    Followed,
}

impl FloodWatch {
    pub(super) const fn new(base: Base, now: Time) -> FloodWatch {
        let (alone_since, window_from) = (Some(now), now);
        FloodWatch {
            alone_since,
            window_from,
            came: 0,
            lost: 0,
            upper: None,
            reported: false,
            bad: 0,
            newest_at: now,
            unreported: 0,
            base,
        }
    }

    /// Handles a change of the highest joined layer.
    pub(super) fn on_subscription(&mut self, top: u8, now: Time) {
        self.alone_since = (top == 0).then_some(now);
        self.bad = 0;
        self.begin(now);
    }

    /// Handles a packet of the base layer. Bursts probe whether a path has room for twice the rate. Losses of bursts count only
    /// after losses outside bursts were reported.
    pub(super) fn on_packet(&mut self, arrival: Arrival, signal: Signal, arrived: Time) {
        if signal.is_burst() && self.base == Base::Fixed && !self.reported {
            (self.newest_at, self.unreported) = (arrived, REVEALED);
            return;
        }
        if arrived.since(std::mem::replace(&mut self.newest_at, arrived)) >= INTERRUPTED {
            // A silent path was interrupted, not flooded. The losses of the interruption become visible some packets later.
            self.begin(arrived);
            (self.bad, self.unreported) = (0, REVEALED);
        }
        self.came += u64::from(!arrival.late);
        if self.unreported > 0 {
            self.unreported -= 1;
        } else {
            self.lost += u64::from(arrival.lost);
        }
    }

    /// Records the packet numbers of the enhancement layers.
    pub(super) fn on_status(&mut self, upper_seqs: &[u64]) {
        let sum = upper_seqs.iter().fold(0u64, |sum, seq| sum.saturating_add(*seq));
        let first = self.upper.map_or(sum, |(first, _)| first);
        self.upper = Some((first, sum));
    }

    /// Returns the lost fraction of the base layer's packets, if the fraction is too large while enhancement layers are sent. The
    /// fraction is evaluated once per window.
    pub(super) fn look(&mut self, now: Time) -> Option<f64> {
        let alone = self.alone_since.is_some_and(|since| now.since(since) >= PRUNED);
        if !alone {
            self.begin(now);
            return None;
        }
        let (seen, passed) = (self.came + self.lost, now.since(self.window_from));
        let long_enough = (passed >= WINDOW && seen >= MIN_PACKETS) || passed >= MAX_WINDOW;
        if !long_enough {
            return None;
        }
        let part = self.lost as f64 / seen.max(1) as f64;
        let upper = self.upper.map_or(0, |(first, newest)| newest.saturating_sub(first));
        let active = upper as f64 >= ACTIVE * seen as f64;
        self.begin(now);
        let (much, most) = match self.base {
            Base::Fixed if self.reported => (AGAIN, AGAIN),
            Base::Fixed => (MUCH, MAX_LOSS),
            Base::Followed => (MUCH_FOR_FOLLOWED, MAX_LOSS_OF_FOLLOWED),
        };
        let windows = if part >= most { WINDOWS_OF_MAX_LOSS } else { WINDOWS };
        let bad = seen >= NEVER_FEWER && part >= much && active;
        self.bad = if bad { self.bad.saturating_add(1) } else { 0 };
        (self.bad >= windows).then_some(part)
    }

    /// Whether the user has not been informed yet; returns `true` once.
    pub(super) fn is_news(&mut self) -> bool {
        !std::mem::replace(&mut self.reported, true)
    }

    fn begin(&mut self, now: Time) {
        (self.window_from, self.came, self.lost) = (now, 0, 0);
        self.upper = self.upper.map(|(_, newest)| (newest, newest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// One second of 100 packets, of which one in `one_in` is lost, with `upper` packets on enhancement layers.
    fn second(watch: &mut FloodWatch, number: u64, one_in: u64, upper: u64) -> Option<f64> {
        for packet in 0..100 {
            let lost = u32::from(packet % one_in == 0);
            if lost == 0 {
                watch.on_packet(Arrival::default(), Signal::None, at(number * 1000 + packet * 10));
            } else {
                watch.lost += 1;
            }
        }
        watch.on_status(&[number * upper, 7]);
        watch.look(at((number + 1) * 1000))
    }

    #[test]
    fn losses_indicate_flooding_if_only_the_base_layer_is_joined() {
        let mut watch = FloodWatch::new(Base::Fixed, at(0));
        watch.on_status(&[0, 7]);
        let seen: Vec<bool> = (0..16).map(|number| second(&mut watch, number, 10, 50).is_some()).collect();
        assert!(seen.iter().any(|noticed| *noticed), "{seen:?}");
        assert!(!seen[..8].contains(&true), "routers are given time to stop what was left: {seen:?}");
        assert!(watch.is_news() && !watch.is_news());
    }

    #[test]
    fn flooding_requires_losses_and_sent_layers_that_are_not_joined() {
        let mut watch = FloodWatch::new(Base::Fixed, at(0));
        assert!((0..16).all(|number| second(&mut watch, number, 101, 50).is_none_or(|part| part < 0.05)));
        let mut watch = FloodWatch::new(Base::Fixed, at(0));
        assert!((0..16).all(|number| second(&mut watch, number, 10, 0).is_none()));
        let mut watch = FloodWatch::new(Base::Fixed, at(0));
        watch.on_subscription(1, at(0));
        assert!((0..16).all(|number| second(&mut watch, number, 10, 50).is_none()));
    }

    #[test]
    fn only_heavy_losses_of_adaptive_base_layers_indicate_flooding() {
        let mut watch = FloodWatch::new(Base::Followed, at(0));
        assert!((0..12).all(|number| second(&mut watch, number, 15, 50).is_none()));
        let seen = (12..24).filter(|&number| second(&mut watch, number, 4, 50).is_some()).count();
        assert!(seen >= 3, "{seen}");
    }

    #[test]
    fn lost_bursts_do_not_indicate_flooding() {
        let mut watch = FloodWatch::new(Base::Fixed, at(0));
        for number in 0..16 {
            for packet in 0..8 {
                let arrival = Arrival { lost: 1, ..Arrival::default() };
                watch.on_packet(arrival, Signal::Burst, at(number * 1000 + packet));
            }
            assert_eq!(second(&mut watch, number, 1000, 50), None);
        }
    }

    #[test]
    fn losses_of_an_interruption_do_not_indicate_flooding() {
        let mut watch = FloodWatch::new(Base::Fixed, at(0));
        for number in 0..8 {
            assert_eq!(second(&mut watch, number, 1000, 50), None);
        }
        for number in 12..20 {
            let arrival = Arrival { lost: u32::from(number == 12) * 400, ..Arrival::default() };
            watch.on_packet(arrival, Signal::None, at(number * 1000));
            assert_eq!(second(&mut watch, number, 1000, 50), None);
        }
    }

    #[test]
    fn losses_just_after_leaving_a_layer_do_not_indicate_flooding() {
        let mut watch = FloodWatch::new(Base::Fixed, at(0));
        watch.on_status(&[0, 7]);
        watch.on_subscription(1, at(0));
        watch.on_subscription(0, at(4_500));
        let seen: Vec<u64> = (4..20).filter(|&number| second(&mut watch, number, 10, 50).is_some()).collect();
        assert!(seen.first().is_some_and(|first| *first >= 8), "{seen:?}");
    }
}
