//! The receive window: the number of further packets that this host's buffers can take. This module also decides when to
//! advertise it to the source.
//!
//! As in TCP (RFC 9293, 3.8.6), the right edge of the window does not depend on the present fill level of the buffer. It is the
//! newest packet taken out of the socket, plus the capacity of the socket's buffer. A receiver that cannot keep up advertises
//! less: the number of packets that it takes out in [`DELAY`]. Otherwise packets that wait in its socket would delay its reports.
//!
//! In a large group, receivers that cannot keep up advertise in turns, at most two thousand times a second in total. Each
//! advertises the number of packets that it takes out in two of its turns. If turns are too rare to be useful, no receiver
//! advertises, and the congestion control reacts to the drops of the buffers.

use crate::endpoint::Backlog;
use faircast_core::packet::Seq;
use faircast_core::time::{Span, Time};

/// Maximum number of members for which every member advertises while data is sent.
pub(crate) const EVERYBODY: u32 = 24;

/// Fraction of the buffer that is advertised. The kernel releases memory lazily: up to a quarter of the buffer may still be
/// charged for packets that have been read (`udp_rmem_release`). The rest is for packets without a number, and for bursts of
/// packets that need more memory than the average.
const ADVERTISED: f64 = 5.0 / 8.0;

/// Fraction of the buffer that the kernel may still charge for packets that have been read.
const LAZY: f64 = 1.0 / 4.0;

/// Interval of advertisements of a receiver that keeps up.
const REGULARLY: Span = Span::from_millis(25);

/// A new advertisement is sent when the window divided by this number has been used since the latest advertisement.
const PART: u64 = 4;

/// A change smaller than the window divided by this number is advertised only after [`CALM`].
const LITTLE: u64 = 64;

/// Waiting time in the buffer: if every packet taken out during a [`LOOK`] has waited longer, the receiver cannot keep up.
const WAITED: Span = Span::from_millis(10);

/// Period over which the receiver measures whether it keeps up, and the rate at which it takes packets out.
const LOOK: Span = Span::from_millis(20);

/// Target delay in the buffer of a slow receiver. It is long enough for the processes of a busy host to take turns.
const DELAY: Span = Span::from_millis(100);

/// After its own buffer has dropped packets, a receiver advertises no more packets than the buffer holds, for this time.
const WARY: Span = Span::from_secs(5);

/// Minimum window, in packets.
const MIN_WINDOW: f64 = 16.0;

/// Growth factor of the window in each [`LOOK`] while the receiver keeps up, until the window is the whole buffer.
const GROWTH: f64 = 1.25;

/// Fraction of the window that delayed packets must fill before a receiver in a large group advertises. Otherwise, in a stream of
/// a few packets a second, all receivers on briefly busy hosts would advertise, although their buffers would never fill.
const FILLS: f64 = 1.0 / 64.0;

/// Minimum fill level of the buffer, as a fraction of its capacity, at which its packets are counted.
const COUNTED: f64 = 1.0 / 16.0;

/// Interval per member at which a receiver in a small group advertises while it limits the source; `OFTEN_MIN`: minimum of the
/// whole interval.
const OFTEN: Span = Span::from_micros(500);
const OFTEN_MIN: Span = Span::from_millis(2);

/// Minimum interval of any two advertisements.
const MIN_INTERVAL: Span = Span::from_micros(500);

/// In a large group: minimum interval of advertisements of a receiver that cannot keep up, and (`CROWD_TURN`) the time of each
/// member's turn.
const CROWD_MIN: Span = Span::from_millis(20);
const CROWD_TURN: Span = Span::from_micros(500);

/// Maximum interval of a member's turns. If the interval would be longer, no windows are advertised: the source obeys a window
/// only for this time after the latest advertisement.
const CROWD_MAX: Span = Span::from_secs(1);

/// In a large group: time for which a receiver that was slow continues to advertise. In a small group: delay of the advertisement
/// of small changes.
const CALM: Span = Span::from_secs(1);

/// First interval at which an advertisement is repeated if no data arrives, because the advertisement may be lost. The interval
/// grows, and there are [`REPEATS`] repetitions.
const REPEAT: Span = Span::from_millis(10);
const REPEATS: u32 = 6;

/// Number of advertisements that lift a limit.
const LIFTS: u32 = 3;

/// Minimum kernel memory of a buffered datagram, in bytes.
const MIN_COST: f64 = 2304.0;

/// The window of one receiver, for the base layer.
#[derive(Debug)]
pub(super) struct Window {
    buffer: Backlog,
    /// Kernel memory per packet, in bytes: a safe estimate until it is measured.
    cost: f64,
    /// The bounds of `cost`, in bytes.
    costs: (f64, f64),
    probe: Option<Probe>,
    /// The newest packet that was taken out of the socket or is known to be lost.
    passed: Option<Seq>,
    reported: Option<Advertisement>,
    /// Whether the source waits, so that an advertisement is due as soon as possible.
    asked: bool,
    members: u32,
    look: BufferStats,
    /// The advertised window in packets, if it is smaller than the buffer.
    size: f64,
    /// Last time at which the receiver could not keep up.
    slow_at: Option<Time>,
    /// Last time at which the buffer overflowed.
    dropped_at: Option<Time>,
    /// Minimum round-trip time that the source has reported.
    rtt: Span,
    /// In a large group: whether the source may have a limit of this receiver; `lifted`: the number of advertisements that have
    /// lifted the limit.
    limits: bool,
    lifted: u32,
    /// In a large group: time since which the receiver has not kept up; `place`: the fraction of the members' turns that precedes
    /// this receiver's turn.
    slow_from: Time,
    place: f64,
}

/// The latest advertisement.
#[derive(Debug, Clone, Copy)]
struct Advertisement {
    at: Time,
    passed: Seq,
    /// Number of packets since the previous advertisement.
    step: u64,
    /// Number of repetitions since the latest new data.
    times: u32,
}

/// Measurements since [`BufferStats::from`].
#[derive(Debug, Default)]
struct BufferStats {
    from: Option<(Time, Seq)>,
    /// Shortest time for which a packet has waited in the buffer.
    waited: Option<Span>,
    /// Number of packets taken out per second, averaged over the latest measurements.
    rate: f64,
}

/// Counts the packets that were in the buffer at one moment, to measure the memory of each.
#[derive(Debug)]
struct Probe {
    at: Time,
    used: u64,
    count: u64,
    /// The latest run of packets that arrived together (coalesced). Some of these packets may not have been in the buffer at the
    /// moment of the measurement.
    run: (Time, u64),
}

impl Window {
    /// Returns a window for datagrams of `size` bytes on the wire. `place` is the fraction of all turns that precedes this
    /// receiver's turn.
    pub(super) fn new(size: u16, place: f64) -> Window {
        let size = usize::from(size);
        // A buffered datagram takes its size, rounded up to a power of two, plus the kernel's own record. If a driver takes a
        // page for each datagram, this estimate is too low by less than a factor of two. The advertised packets then still fit
        // the whole buffer.
        let usual = (size.next_power_of_two() + 256) as f64;
        let cost = usual.max(MIN_COST) * 1.25;
        Window {
            buffer: Backlog::default(),
            cost,
            costs: (size as f64, cost * 4.0),
            probe: None,
            passed: None,
            reported: None,
            asked: false,
            members: 0,
            look: BufferStats::default(),
            size: f64::INFINITY,
            slow_at: None,
            dropped_at: None,
            rtt: Span::from_millis(100),
            limits: false,
            lifted: LIFTS,
            slow_from: Time::ZERO,
            place,
        }
    }

    /// Records that packet `seq` of the base layer was taken out of the socket; it had arrived at `arrived`.
    pub(super) fn on_packet(&mut self, seq: Seq, arrived: Time, now: Time) {
        self.passed = self.passed.max(Some(seq));
        let waited = now.since(arrived);
        self.look.waited = Some(self.look.waited.map_or(waited, |least| least.min(waited)));
        self.look(now);
        let Some(probe) = &mut self.probe else { return };
        if arrived <= probe.at {
            probe.count += 1;
            probe.run = if probe.run.0 == arrived { (arrived, probe.run.1 + 1) } else { (arrived, 1) };
        } else {
            self.finish_probe();
        }
    }

    /// Handles a status. All packets that the source sent before the status have arrived or are lost.
    pub(super) fn on_status(&mut self, next_seq: u64, members: u32, rtt: Span, held: bool) {
        self.rtt = self.rtt.min(rtt);
        if self.passed.is_some() {
            self.passed = self.passed.max(next_seq.checked_sub(1).map(Seq));
        }
        self.members = members;
        self.asked |= held && (self.is_small_group() || self.limits || self.lifted < LIFTS);
    }

    /// Discards the packet numbers from `next` on, which were forged.
    pub(super) fn go_back(&mut self, next: u64) {
        self.passed = self.passed.min(next.checked_sub(1).map(Seq));
        self.look.from = None;
    }

    /// Records the present fill level of the socket's buffer.
    pub(super) fn on_backlog(&mut self, backlog: Backlog, now: Time) {
        if backlog.dropped > self.buffer.dropped {
            self.dropped_at = Some(now);
        }
        self.buffer = backlog;
        if self.probe.is_none() && self.filled() >= COUNTED {
            self.probe = Some(Probe { at: now, used: backlog.used, count: 0, run: (now, 0) });
        }
    }

    /// Measures whether this host keeps up, and adapts the window at the end of each [`LOOK`].
    fn look(&mut self, now: Time) {
        let Some(passed) = self.passed else { return };
        let Some((from, first)) = self.look.from else {
            self.look.from = Some((now, passed));
            return;
        };
        let span = now.since(from);
        if span < LOOK {
            return;
        }
        let rate = (passed.0 - first.0) as f64 / span.as_secs_f64();
        self.look.rate = if self.look.rate > 0.0 { (self.look.rate + rate) / 2.0 } else { rate };
        let waited = self.look.waited.take().filter(|least| *least > WAITED);
        let fills = |waited: Span| rate * waited.as_secs_f64() >= self.whole() * FILLS;
        let slow = waited.is_some_and(|waited| self.is_small_group() || fills(waited));
        if slow {
            if self.slow_at.is_none_or(|at| now.since(at) >= CALM) {
                self.slow_from = now;
            }
            self.slow_at = Some(now);
            let delay = if self.is_small_group() { DELAY } else { DELAY.max(self.turns() * 2) };
            self.size = (self.look.rate * delay.as_secs_f64()).max(MIN_WINDOW);
        } else if self.buffer.capacity > 0 {
            let looks = (span.as_secs_f64() / LOOK.as_secs_f64()).min(100.0);
            self.size = self.size.min(self.whole()) * GROWTH.powf(looks);
        }
        self.look.from = Some((now, passed));
        self.dropped_at = self.dropped_at.filter(|at| now.since(*at) < WARY);
    }

    fn finish_probe(&mut self) {
        let Some(probe) = self.probe.take() else { return };
        let count = probe.count - probe.run.1;
        if count < 8 || probe.count < 4 * probe.run.1 {
            return;
        }
        // Part of the used memory may belong to packets that have already been read.
        let lazy = self.buffer.capacity as f64 * LAZY;
        let (least, most) = ((probe.used as f64 - lazy) / count as f64, probe.used as f64 / count as f64);
        if least > self.cost {
            self.cost = least;
        } else if most < self.cost {
            self.cost -= (self.cost - most) / 8.0;
        }
        self.cost = self.cost.clamp(self.costs.0, self.costs.1);
    }

    fn filled(&self) -> f64 {
        match self.buffer.capacity {
            0 => 0.0,
            capacity => self.buffer.used as f64 / capacity as f64,
        }
    }

    /// Returns the number of packets that certainly fit the empty buffer.
    fn whole(&self) -> f64 {
        self.buffer.capacity as f64 * ADVERTISED / self.cost
    }

    /// Returns the number of packets to advertise. On a long and fast path, more packets are in flight than the buffer can hold.
    /// So a receiver that keeps up allows the source to double its rate in each round trip.
    fn room(&self) -> u64 {
        let whole = self.whole();
        let far = match self.dropped_at {
            None => self.look.rate * self.rtt.as_secs_f64() * 2.0,
            Some(_) => 0.0,
        };
        (if self.size < whole { self.size } else { whole.max(far) } as u64).max(1)
    }

    /// Whether this host could not keep up during the last measurement.
    fn is_slow(&self) -> bool {
        self.slow_at.is_some_and(|at| self.look.from.is_none_or(|(from, _)| at >= from))
    }

    /// Returns the limit to advertise if an advertisement is due: packets below the limit fit.
    pub(super) fn due(&mut self, now: Time) -> Option<Seq> {
        if self.deadline() > now {
            return None;
        }
        let passed = self.passed?;
        let is_new = self.reported.is_none_or(|reported| reported.passed < passed) || self.asked;
        let times = self.reported.filter(|_| !is_new).map_or(0, |reported| reported.times + 1);
        let step = self.reported.map_or(u64::MAX, |reported| match is_new {
            true => passed.0.saturating_sub(reported.passed.0),
            false => reported.step,
        });
        self.reported = Some(Advertisement { at: now, passed, step, times });
        self.asked = false;
        if self.is_small_group() || self.slow_at.is_some_and(|at| now.since(at) < CALM) {
            (self.limits, self.lifted) = (true, 0);
            return Some(Seq(passed.0 + 1 + self.room()));
        }
        // The receiver is not slow any longer. It advertises an unlimited window once, and again while the source waits.
        self.limits = false;
        self.lifted += 1;
        Some(faircast_wire::Window::UNLIMITED)
    }

    /// Whether the source may have received a limit of this receiver.
    pub(super) fn may_limit(&self) -> bool {
        self.reported.is_some() && (self.is_small_group() || self.limits)
    }

    /// Returns the time in which each member of a large group has one turn.
    fn turns(&self) -> Span {
        (CROWD_TURN * u64::from(self.members)).max(CROWD_MIN)
    }

    /// Returns the time of the next advertisement.
    pub(super) fn deadline(&self) -> Time {
        let Some(passed) = self.passed.filter(|_| self.buffer.capacity > 0) else { return Time::NEVER };
        let small = self.is_small_group();
        let turns = self.turns();
        if !small && turns > CROWD_MAX {
            return Time::NEVER;
        }
        // Many members on one host become slow at the same moment, so each waits for its turn.
        let first = self.slow_from + turns.scaled(self.place);
        let Some(reported) = self.reported else {
            return match self.slow_at {
                _ if small => Time::ZERO,
                Some(_) => first,
                None => Time::NEVER,
            };
        };
        if !small && !self.limits && !self.asked && self.slow_at.is_none_or(|at| at <= reported.at) {
            return Time::NEVER;
        }
        let new = passed.0.saturating_sub(reported.passed.0);
        let pause = match (small, self.is_slow() || self.asked) {
            _ if new == 0 && !self.asked => {
                // Without this repetition, the source might wait indefinitely after a lost advertisement.
                let matters = reported.step >= self.room() / PART || self.is_slow();
                let waits = reported.times < REPEATS && matters;
                let pause = (REPEAT * (1 << reported.times)).max(if small { Span::ZERO } else { turns });
                return if waits { reported.at + pause } else { Time::NEVER };
            }
            (false, _) => return (reported.at + turns).max(first),
            _ if new >= self.room() / PART => MIN_INTERVAL,
            (true, true) => OFTEN_MIN.max(OFTEN * u64::from(self.members)),
            (true, false) if new < self.room() / LITTLE => CALM,
            (true, false) => REGULARLY,
        };
        reported.at + pause
    }

    /// Whether the group is small; false until the first status states the number of members.
    fn is_small_group(&self) -> bool {
        (1..=EVERYBODY).contains(&self.members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: u64 = 16 << 20;

    fn at(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    fn backlog(used: u64) -> Backlog {
        Backlog { used, capacity: CAPACITY, dropped: 0 }
    }

    /// Returns the window of one of `members` members, with an empty buffer.
    fn window(members: u32) -> Window {
        let mut window = Window::new(1500, 0.0);
        window.on_status(0, members, Span::from_millis(1), false);
        window.on_backlog(backlog(0), at(0));
        window
    }

    #[test]
    fn window_edge_is_the_last_processed_packet_plus_the_buffer() {
        let mut window = window(1);
        assert_eq!(window.due(at(0)), None, "nothing has come yet");
        window.on_packet(Seq(9), at(1), at(1));
        let room = window.room();
        assert_eq!(window.due(at(1)), Some(Seq(10 + room)));
        assert!(room * 2304 < CAPACITY && room * 2304 > CAPACITY / 4, "{room}");
        window.on_backlog(backlog(CAPACITY / 2), at(26_000));
        window.on_packet(Seq(90), at(2), at(26_000));
        assert_eq!(
            window.due(at(26_000)),
            Some(Seq(91 + room)),
            "what waits in the socket does not count twice"
        );
    }

    /// The first packets may arrive before the driver states the size of the buffer.
    #[test]
    fn window_is_the_whole_buffer_if_the_buffer_size_is_stated_late() {
        let mut late = Window::new(1500, 0.0);
        late.on_status(0, 1, Span::from_millis(1), false);
        for seq in 0..30 {
            late.on_packet(Seq(seq), at(seq * 1_000), at(seq * 1_000));
        }
        assert_eq!(late.due(at(30_000)), None, "the size is unknown");
        late.on_backlog(backlog(0), at(30_000));
        assert_eq!(late.room(), window(1).room());
        assert_eq!(late.due(at(30_000)), Some(Seq(30 + late.room())));
    }

    #[test]
    fn receiver_advertises_more_often_as_its_window_is_used_up() {
        let mut window = window(4);
        window.on_packet(Seq(0), at(0), at(0));
        assert!(window.due(at(0)).is_some());
        window.on_packet(Seq(1), at(10), at(10));
        assert_eq!(window.deadline(), at(1_000_000), "hardly anything");
        window.on_packet(Seq(1 + window.room() / LITTLE), at(10), at(10));
        assert_eq!(window.deadline(), at(25_000));
        window.on_packet(Seq(1 + window.room() / PART), at(11), at(11));
        assert_eq!(window.deadline(), at(500), "a quarter is used up");
        assert!(window.due(at(500)).is_some());
        let first = 2 + window.room() / PART;
        (0..80).for_each(|n| window.on_packet(Seq(first + n), at(1_000 * n), at(1_000 * n + 25_000)));
        assert!(window.due(at(104_500)).is_some(), "what it has taken out meanwhile");
        window.on_packet(Seq(first + 80), at(80_000), at(104_600));
        assert_eq!(window.deadline(), at(104_500) + OFTEN_MIN);
    }

    #[test]
    fn slow_receiver_advertises_smaller_windows_until_it_recovers() {
        let mut window = window(1);
        let whole = window.room();
        // Each packet waits for 50 ms; one packet is taken out per millisecond.
        (0..200).for_each(|n| window.on_packet(Seq(n), at(n * 1_000), at(n * 1_000 + 50_000)));
        assert!((90..110).contains(&window.room()), "{}", window.room());
        (200..800).for_each(|n| window.on_packet(Seq(n), at(n * 1_000), at(n * 1_000)));
        assert_eq!(window.room(), whole);
    }

    #[test]
    fn window_on_a_long_path_grows_until_a_local_drop() {
        let mut window = Window::new(1500, 0.0);
        window.on_status(0, 1, Span::from_millis(100), false);
        let small = Backlog { used: 0, capacity: 425_984, dropped: 0 };
        window.on_backlog(small, at(0));
        let whole = window.room();
        (0..2_000).for_each(|n| window.on_packet(Seq(n), at(n * 100), at(n * 100)));
        assert!(window.room() > whole * 10, "{whole} {}", window.room());
        window.on_backlog(Backlog { dropped: 1, ..small }, at(200_000));
        assert_eq!(window.room(), whole);
    }

    #[test]
    fn advertisement_is_repeated_if_no_data_follows() {
        let mut window = window(4);
        window.on_packet(Seq(0), at(0), at(0));
        let mut advertised = 0;
        while window.deadline() < Time::NEVER {
            let now = window.deadline();
            advertised += usize::from(window.due(now).is_some());
            assert!(advertised < 20 && now < at(1_000_000), "{advertised} until {now}");
        }
        assert_eq!(advertised, 1 + REPEATS as usize);
        window.on_status(1, 4, Span::from_millis(1), true);
        assert!(window.due(at(2_000_000)).is_some(), "the source asks");
    }

    #[test]
    fn status_reopens_the_window_after_the_last_packets_were_lost() {
        let mut window = window(4);
        window.on_packet(Seq(0), at(0), at(0));
        window.due(at(0));
        window.on_status(5_000, 4, Span::from_millis(1), true);
        assert_eq!(window.due(at(10_000)), Some(Seq(5_000 + window.room())));
    }

    #[test]
    fn member_of_a_large_group_advertises_only_if_its_buffer_fills() {
        let mut window = window(40);
        window.on_packet(Seq(0), at(0), at(0));
        assert_eq!(window.deadline(), Time::NEVER);
        // The host is busy, but packets hardly fill its buffer.
        (1..20).for_each(|n| window.on_packet(Seq(n), at(n * 100_000), at(n * 100_000 + 30_000)));
        assert_eq!(window.deadline(), Time::NEVER);
        let begin = 2_000_000;
        (20..1_020).for_each(|n| window.on_packet(Seq(n), at(begin + n * 100), at(begin + n * 100 + 30_000)));
        let begin = begin + 132_000;
        assert!(window.due(at(begin)).is_some_and(|limit| limit < Seq(1 << 30)));
        for step in 1..40 {
            let now = at(begin + step * 50_000);
            window.on_packet(Seq(1_020 + step), now, now);
            if window.due(now) == Some(faircast_wire::Window::UNLIMITED) {
                window.on_packet(Seq(1_021 + step), now, now + Span::from_micros(1));
                assert_eq!(window.deadline(), Time::NEVER, "it says so once");
                return;
            }
        }
        panic!("the limit is never lifted");
    }

    #[test]
    fn memory_per_packet_is_estimated_from_the_buffer_occupancy() {
        let mut window = window(1);
        let first = window.room();
        for round in 1..60 {
            let now = at(round * 10_000);
            window.on_backlog(backlog(2_000 * 2304), now);
            (0..2_001).for_each(|n| {
                let arrived = at(round * 10_000 - 2_001 + n);
                window.on_packet(Seq(round * 3_000 + n), arrived, arrived);
            });
            let later = now + Span::from_micros(1);
            window.on_packet(Seq(round * 3_000 + 2_500), later, later);
        }
        assert!(window.room() > first && (window.cost - 2304.0).abs() < 30.0, "{}", window.cost);
        for round in 60..80 {
            let now = at(round * 10_000);
            window.on_backlog(backlog(2_000 * 8192), now);
            (0..2_001).for_each(|n| {
                let arrived = at(round * 10_000 - 2_001 + n);
                window.on_packet(Seq(round * 3_000 + n), arrived, arrived);
            });
            let later = now + Span::from_micros(1);
            window.on_packet(Seq(round * 3_000 + 2_500), later, later);
        }
        assert!(
            window.cost > 5_000.0,
            "memory that is in use for certain raises it at once: {}",
            window.cost
        );
    }
}
