//! Start-up by doubling: a rate-based slow start in rounds.
//!
//! ```text
//!   rate 2r                          ┌─────────── round k+1 ...
//!                                    │
//!   rate r   ├── round k ──┤ flag    │
//!            source        └──────┐  ┌──── "I received r" (slow receivers first)
//!            receivers            └──┘
//! ```
//!
//! In a small group every member answers a round before the next round begins: the queue on the path of a slow receiver may delay
//! this receiver's answer. In a large group the source waits for a fixed number of answers, but no longer than the answer of a
//! slow receiver may take.
//!
//! A round lasts a round-trip time, or three quarters of it, at most 150 ms, if every receiver answers at once (at least 2.5 ms). A flagged packet
//! ends the round. Receivers answer with the rate at which the round's packets arrived. The source continues with twice the
//! arrival rate, or with twice its own sending rate if that is lower. The lowest of several answers to a round counts, even if it
//! arrives late.
//!
//! Any loss and any congestion report end the start-up. So do two consecutive rounds that arrive at about the same rate, if this
//! rate is less than three quarters of the sending rate. Without an answer the rate never grows, and the end of the round is
//! flagged again. After TCP's timeout (RFC 6298, 2.4, with Linux's shorter minimum) the rate is halved and another round begins.
//! Before the first answer the path is unknown, so the source sends at a quarter of the rate while it waits for the first answer.
//!
//! After the first of two such slow rounds, the next round is sent at 1.5 instead of 2 times the received rate. This factor is
//! large enough to distinguish a full bottleneck from a coincidence, and fills the queue less.

// Paper gap: paper 000, 3.1.5 has only the additive increase, which takes minutes to fill a fast path. Start-up by doubling is
// our addition; `Start::Linear` is the paper.

use crate::bounds::Bounds;
use crate::packet::{Flags, ReceiverId, Seq};
use crate::time::{Rate, Span, Time};

/// Parameters of the doubling start-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Doubling {
    /// Number of packets in the first round.
    pub initial_packets: u32,
    /// Minimum duration of a round.
    pub min_round: Span,
    /// A round is slow if its arrival rate is below this fraction of its sending rate.
    pub slow_below: f64,
    /// Rate of the next round after a slow round, as a multiple of the received rate.
    pub after_slow: f64,
    /// Rate after start-up, as a fraction of the received rate.
    pub settle: f64,
}

impl Default for Doubling {
    fn default() -> Doubling {
        let min_round = Span::from_micros(2_500);
        Doubling { initial_packets: 10, min_round, slow_below: 0.75, after_slow: 1.5, settle: 0.9 }
    }
}

impl Doubling {
    /// Returns the rate of the first round.
    pub fn initial_rate(&self, rtt: Span, packet_size: u16) -> Rate {
        let bytes = u64::from(self.initial_packets) * u64::from(packet_size);
        Rate::of(bytes, rtt.max(self.min_round))
    }
}

/// Effect of an event on the rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress {
    /// The rate does not change.
    Stay,
    /// Start-up continues at this rate.
    Continue(Rate),
    /// Start-up has ended; the source continues at this rate.
    Over(Rate),
}

/// State of a source during start-up.
#[derive(Debug, Clone, Copy)]
pub struct StartUp {
    config: Doubling,
    packet_size: u16,
    round: StartUpRound,
    before: Option<Ended>,
    slow_rounds: u8,
    unused_rounds: u8,
    /// Number of rounds without an answer since the latest answer.
    missed: u32,
    answers: u32,
    /// Number of answers that complete a round.
    wanted: usize,
    /// Whether the source waits for the whole group.
    everybody: bool,
    /// Number of rounds that only a part of the receivers has answered.
    partial_rounds: u8,
    /// Rate at which start-up ends.
    ceiling: Rate,
}

#[derive(Debug, Clone, Copy)]
struct StartUpRound {
    /// Sending time of the round's first packet.
    first_at: Option<Time>,
    /// Number of packets sent in this round, including the first packet; `bytes` does not include the first packet.
    packets: u32,
    bytes: u64,
    ended: Option<Ended>,
    answers: Answers,
    /// Deadline for the answers.
    overdue_at: Time,
    /// Time at which the round's end is flagged again.
    flag_again_at: Time,
    floor: Rate,
}

/// Receivers that have answered a round.
#[derive(Debug, Clone, Copy)]
struct Answers {
    from: [Option<ReceiverId>; MAX_ANSWERS],
    count: usize,
    slowest: Rate,
}

impl Answers {
    const NONE: Answers = Answers { from: [None; MAX_ANSWERS], count: 0, slowest: Rate::UNLIMITED };

    fn add(&mut self, from: ReceiverId, received: Rate) {
        self.slowest = self.slowest.min(received);
        if self.count < MAX_ANSWERS && !self.from[..self.count].contains(&Some(from)) {
            self.from[self.count] = Some(from);
            self.count += 1;
        }
    }
}

/// A round whose end has been flagged.
#[derive(Debug, Clone, Copy)]
struct Ended {
    /// First packet that flagged the end.
    flag: Seq,
    /// Actual sending rate.
    sent: Rate,
    /// Lowest received rate of all answers so far.
    received: Rate,
    slow: bool,
}

/// Minimum number of packets of a round.
const FEWEST: u32 = 5;
/// Maximum duration of a round that every receiver answers at once, if it has enough packets. On long paths the rate then doubles
/// nearly once per round-trip time, as TCP's does in slow start.
const LONGEST: Span = Span::from_millis(150);
/// Fraction of the initial rate: halving without answers stops at this rate.
const FLOOR: f64 = 0.125;
/// Fraction of the permitted rate at which packets are sent while the path is unknown.
const WAITING_PACE: f64 = 0.25;
/// Number of consecutive rounds in which the application uses less than 60 % of the rate; then start-up ends.
const UNUSED_ROUNDS: u8 = 8;
/// Minimum timeout for answers. It applies even if all receivers are near, because a host may be delayed.
const PATIENCE: Span = Span::from_millis(200);
/// Number of answers for which the source waits in a large group.
const MAX_ANSWERS: usize = 24;
/// Number of rounds with too few answers; then the source stops waiting for the receivers that did not answer.
const PARTIAL_ROUNDS: u8 = 3;

impl StartUp {
    /// Creates a start-up before its first packet.
    pub fn new(config: Doubling, packet_size: u16, rtt: Span) -> StartUp {
        let floor = config.initial_rate(rtt, packet_size) * FLOOR;
        let round = StartUpRound::new(floor);
        StartUp {
            config,
            packet_size,
            round,
            before: None,
            slow_rounds: 0,
            unused_rounds: 0,
            missed: 0,
            answers: 0,
            wanted: 1,
            everybody: false,
            partial_rounds: 0,
            ceiling: Rate::UNLIMITED,
        }
    }

    /// Sets the rate at which start-up ends, for a return to a threshold (RFC 5681, 3.1).
    #[must_use]
    pub const fn up_to(mut self, ceiling: Rate) -> StartUp {
        self.ceiling = ceiling;
        self.answers = 1; // the path is known
        self
    }

    /// Records that packet `seq` is sent now at `rate`, and returns its flags.
    pub fn on_departure(&mut self, seq: Seq, size: u16, rate: Rate, now: Time, rtt: Span) -> Flags {
        let long = self.round_of(rtt);
        let round = &mut self.round;
        let first_at = *round.first_at.get_or_insert(now);
        if now > first_at || round.packets > 0 {
            round.bytes += u64::from(size);
        }
        round.packets += 1;
        let passed = now.since(first_at);
        let complete = round.packets >= FEWEST && passed >= long;
        if !complete || now < round.flag_again_at {
            return Flags::STARTING;
        }
        if round.ended.is_none() {
            let sent = Rate::of(round.bytes, passed).min(rate);
            round.ended = Some(Ended { flag: seq, sent, received: Rate::ZERO, slow: false });
            round.overdue_at = now + answered_within(rtt).max(PATIENCE);
        }
        round.flag_again_at = now + answered_within(rtt);
        let end = Flags::STARTING.with(Flags::ROUND_END);
        if self.everybody { end.with(Flags::EVERYBODY) } else { end }
    }

    /// Returns the duration of a round. It is shorter if every receiver answers at once: with longer rounds, a TCP flow that
    /// starts at the same time would fill a long path first (`docs/design/congestion-control.md`).
    fn round_of(&self, rtt: Span) -> Span {
        let round = if self.everybody { (rtt * 3 / 4).min(LONGEST) } else { rtt };
        round.max(self.config.min_round)
    }

    /// Processes the answer of a receiver: the received rate and the loss fraction of the round that packet `seq` ended.
    pub fn on_received(
        &mut self,
        from: ReceiverId,
        seq: Seq,
        received: Rate,
        loss: f32,
        rate: Rate,
        limits: &Bounds,
    ) -> Progress {
        if !received.is_usable() {
            return Progress::Stay;
        }
        match (self.round.ended, self.before) {
            (Some(ended), _) if seq >= ended.flag => {
                self.round.answers.add(from, received);
                if loss > 0.0 {
                    return self.over(received, rate);
                }
                if self.round.answers.count < self.wanted {
                    return Progress::Stay;
                }
                self.next_round(ended, self.round.answers.slowest, loss, rate, limits)
            }
            (_, Some(before)) if seq >= before.flag => self.correct(before, received, loss, rate),
            _ => Progress::Stay,
        }
    }

    /// Sets the number of members that answer; 0 if unknown.
    pub fn set_group(&mut self, members: usize) {
        self.wanted = members.clamp(1, MAX_ANSWERS);
        self.everybody = (1..=MAX_ANSWERS).contains(&members);
    }

    /// Processes a sample of the round-trip time. Before the first answer, the sample sets the rate of the first round, unless
    /// the end of the round is already flagged.
    pub fn on_rtt(&mut self, rtt: Span) -> Progress {
        let initial = self.config.initial_rate(rtt, self.packet_size);
        let floor = initial * FLOOR;
        let another = (floor.bps() - self.round.floor.bps()).abs() > 0.1 * floor.bps();
        let begins = self.round.ended.is_none() && another;
        if self.answers > 0 || !(begins || self.missed > 0) {
            return Progress::Stay;
        }
        (self.round, self.missed) = (StartUpRound::new(floor), 0);
        Progress::Continue(initial)
    }

    /// Returns the fraction of the permitted rate at which packets are sent now.
    pub const fn pace(&self) -> f64 {
        let waits_for_first = self.answers == 0 && self.round.ended.is_some();
        if waits_for_first { WAITING_PACE } else { 1.0 }
    }

    /// Returns the time of the next call of [`StartUp::on_deadline`].
    pub const fn deadline(&self) -> Time {
        self.round.overdue_at
    }

    /// Begins another round after the deadline for answers. If no receiver has answered, the rate is halved. If some receivers
    /// have answered, the rate does not grow.
    pub fn on_deadline(&mut self, rate: Rate, limits: &Bounds) -> Progress {
        let Answers { count, slowest, .. } = self.round.answers;
        if let Some(ended) = self.round.ended.filter(|_| count > 0) {
            self.partial_rounds = self.partial_rounds.saturating_add(1);
            if self.partial_rounds >= PARTIAL_ROUNDS {
                self.wanted = count; // gives up the silent receivers
            }
            return match self.next_round(ended, slowest, 0.0, rate, limits) {
                Progress::Continue(next) => Progress::Continue(next.min(rate)),
                other => other,
            };
        }
        self.before = self.round.ended.or(self.before);
        self.missed = self.missed.saturating_add(1);
        self.resume();
        Progress::Continue((rate * 0.5).max(self.round.floor).min(rate))
    }

    /// Restarts the round, because the application was idle.
    pub fn resume(&mut self) {
        self.round = StartUpRound::new(self.round.floor);
    }

    fn next_round(
        &mut self,
        ended: Ended,
        received: Rate,
        loss: f32,
        rate: Rate,
        limits: &Bounds,
    ) -> Progress {
        let slow = self.is_slow(received, ended.sent);
        let steady = self.before.is_none_or(|before| !before.slow || is_near(received, before.received));
        self.slow_rounds = match (slow, steady) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => self.slow_rounds + 1,
        };
        let unused = !slow && ended.sent.bps() < 0.6 * rate.bps();
        self.unused_rounds = if unused { self.unused_rounds + 1 } else { 0 };
        if loss > 0.0 || self.slow_rounds >= 2 {
            return self.over(received, rate);
        }
        let factor = if slow { self.config.after_slow } else { 2.0 };
        let next = (ended.sent * 2.0).min(received * factor);
        // A delayed host has sent less than the permitted rate. This is not evidence against the permitted rate.
        let next = if slow { next } else { next.max(rate) };
        let at_most = next.min(self.ceiling);
        if self.unused_rounds >= UNUSED_ROUNDS
            || (!slow && (limits.is_at_max(next) || at_most.bps() < next.bps()))
        {
            return Progress::Over(at_most);
        }
        self.before = Some(Ended { slow, received, ..ended });
        self.round = StartUpRound::new(self.round.floor);
        (self.answers, self.missed) = (self.answers.saturating_add(1), 0);
        Progress::Continue(next)
    }

    /// Processes a late answer to the previous round, which arrives after the answer of a faster receiver. The late answer can
    /// only lower the rate.
    fn correct(&mut self, before: Ended, received: Rate, loss: f32, rate: Rate) -> Progress {
        if loss > 0.0 {
            return self.over(received, rate);
        }
        if !self.is_slow(received, before.sent) {
            return Progress::Stay;
        }
        if !before.slow {
            self.before = Some(Ended { slow: true, received, ..before });
            self.slow_rounds += 1;
        }
        if self.slow_rounds >= 2 {
            return self.over(received, rate);
        }
        let lowered = received * self.config.after_slow;
        if lowered.bps() >= rate.bps() {
            return Progress::Stay;
        }
        self.round = StartUpRound::new(self.round.floor);
        Progress::Continue(lowered)
    }

    fn over(&self, received: Rate, rate: Rate) -> Progress {
        Progress::Over((received * self.config.settle).min(rate))
    }

    fn is_slow(&self, received: Rate, sent: Rate) -> bool {
        received.bps() < sent.bps() * self.config.slow_below
    }
}

impl StartUpRound {
    const fn new(floor: Rate) -> StartUpRound {
        StartUpRound {
            first_at: None,
            packets: 0,
            bytes: 0,
            ended: None,
            answers: Answers::NONE,
            overdue_at: Time::NEVER,
            flag_again_at: Time::ZERO,
            floor,
        }
    }
}

/// Returns the maximum time until an answer arrives: a round trip, the longest delay of an answer at a receiver (two largest
/// round trips), and some margin.
fn answered_within(rtt: Span) -> Span {
    rtt.scaled(3.5) + Span::from_millis(10)
}

/// Returns whether two rates differ only by chance.
fn is_near(one: Rate, other: Rate) -> bool {
    one.bps() < 1.4 * other.bps() && other.bps() < 1.4 * one.bps()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ReceiverId = ReceiverId::new(1).expect("not zero");
    const TWO: ReceiverId = ReceiverId::new(2).expect("not zero");
    const RTT: Span = Span::from_millis(20);
    const LIMITS: Bounds = Bounds { min: Rate::ZERO, max: Rate::from_mbps(1000.0) };

    /// Sends one round at `rate` from `now` on. Returns the number and sending time of its last packet.
    fn round(start: &mut StartUp, rate: Rate, mut now: Time, mut seq: Seq) -> (Seq, Time) {
        while !start.on_departure(seq, 1000, rate, now, RTT).has(Flags::ROUND_END) {
            now += rate.span_of(1000);
            seq = seq.next();
        }
        (seq, now)
    }

    fn mbps(rate: f64) -> Rate {
        Rate::from_mbps(rate)
    }

    fn starting() -> StartUp {
        StartUp::new(Doubling::default(), 1000, RTT)
    }

    #[test]
    fn round_of_a_small_group_is_short_on_a_long_path() {
        let last = |members: usize| {
            let rtt = Span::from_millis(600);
            let mut start = StartUp::new(Doubling::default(), 1000, rtt);
            start.set_group(members);
            (0..).find(|n| start.on_departure(Seq(*n), 1000, mbps(0.8), at(*n), rtt).has(Flags::ROUND_END))
        };
        assert_eq!((last(4), last(100)), (Some(15), Some(60)), "packets are 10 ms apart");
    }

    fn at(packet: u64) -> Time {
        Time::ZERO + Span::from_millis(10) * packet
    }

    #[test]
    fn rate_doubles_after_a_fully_received_round() {
        let mut start = starting();
        let (end, _) = round(&mut start, mbps(4.0), Time::ZERO, Seq(0));
        assert_eq!(
            start.on_received(ONE, end, mbps(4.0), 0.0, mbps(4.0), &LIMITS),
            Progress::Continue(mbps(8.0))
        );
        assert_eq!(
            start.on_received(ONE, end, mbps(4.0), 0.0, mbps(8.0), &LIMITS),
            Progress::Stay,
            "once a round"
        );
    }

    #[test]
    fn slow_start_ends_after_two_slow_rounds() {
        let mut start = starting();
        let (end, at) = round(&mut start, mbps(8.0), Time::ZERO, Seq(0));
        assert_eq!(
            start.on_received(ONE, end, mbps(5.0), 0.0, mbps(8.0), &LIMITS),
            Progress::Continue(mbps(7.5))
        );
        let (end, _) = round(&mut start, mbps(7.5), at, end.next());
        assert_eq!(
            start.on_received(ONE, end, mbps(5.0), 0.0, mbps(7.5), &LIMITS),
            Progress::Over(mbps(4.5))
        );
    }

    #[test]
    fn later_report_of_a_slower_receiver_lowers_the_rate_again() {
        let mut start = starting();
        let (end, _) = round(&mut start, mbps(8.0), Time::ZERO, Seq(0));
        assert_eq!(
            start.on_received(ONE, end, mbps(8.0), 0.0, mbps(8.0), &LIMITS),
            Progress::Continue(mbps(16.0))
        );
        assert_eq!(
            start.on_received(ONE, end, mbps(2.0), 0.0, mbps(16.0), &LIMITS),
            Progress::Continue(mbps(3.0))
        );
    }

    #[test]
    fn loss_ends_slow_start() {
        let mut start = starting();
        let (end, _) = round(&mut start, mbps(8.0), Time::ZERO, Seq(0));
        assert_eq!(
            start.on_received(ONE, end, mbps(8.0), 0.01, mbps(8.0), &LIMITS),
            Progress::Over(mbps(8.0) * 0.9)
        );
    }

    #[test]
    fn rate_is_halved_in_each_round_without_reports() {
        let mut start = starting();
        let (mut rate, mut seq, mut at) = (mbps(4.0), Seq(0), Time::ZERO);
        for _ in 0..10 {
            (seq, at) = round(&mut start, rate, at, seq.next());
            assert_eq!(start.deadline(), at + PATIENCE);
            let Progress::Continue(lower) = start.on_deadline(rate, &LIMITS) else {
                panic!("start-up goes on")
            };
            (rate, at) = (lower, at + PATIENCE);
        }
        assert_eq!(rate, mbps(0.5), "an eighth of ten packets per round trip");
    }

    #[test]
    fn end_of_a_round_is_flagged_again_if_no_report_arrives() {
        let mut start = starting();
        let (end, at) = round(&mut start, mbps(4.0), Time::ZERO, Seq(0));
        let (again, later) = round(&mut start, mbps(4.0), at + Span::from_millis(1), end.next());
        assert!(later >= at + answered_within(RTT) && later < at + PATIENCE);
        assert_eq!(
            start.on_received(ONE, again, mbps(4.0), 0.0, mbps(4.0), &LIMITS),
            Progress::Continue(mbps(8.0))
        );
    }

    #[test]
    fn round_lasts_until_all_members_of_a_small_group_report() {
        let mut start = starting();
        start.set_group(2);
        let (end, _) = round(&mut start, mbps(4.0), Time::ZERO, Seq(0));
        for _ in 0..2 {
            assert_eq!(start.on_received(ONE, end, mbps(4.0), 0.0, mbps(4.0), &LIMITS), Progress::Stay);
        }
        assert_eq!(
            start.on_received(TWO, end, mbps(1.0), 0.0, mbps(4.0), &LIMITS),
            Progress::Continue(mbps(1.5))
        );
    }

    #[test]
    fn rate_is_constant_until_silent_members_are_given_up() {
        let mut start = starting();
        start.set_group(2);
        let (mut seq, mut at) = (Seq(0), Time::ZERO);
        for _ in 0..3 {
            (seq, at) = round(&mut start, mbps(4.0), at, seq.next());
            start.on_received(ONE, seq, mbps(4.0), 0.0, mbps(4.0), &LIMITS);
            assert_eq!(start.on_deadline(mbps(4.0), &LIMITS), Progress::Continue(mbps(4.0)));
        }
        (seq, _) = round(&mut start, mbps(4.0), at, seq.next());
        assert_eq!(
            start.on_received(ONE, seq, mbps(4.0), 0.0, mbps(4.0), &LIMITS),
            Progress::Continue(mbps(8.0))
        );
    }

    #[test]
    fn delay_of_the_source_host_does_not_lower_the_slow_start_rate() {
        let mut start = starting();
        start.on_departure(Seq(0), 1000, mbps(4.0), Time::ZERO, RTT);
        let (end, _) = round(&mut start, mbps(4.0), Time::ZERO + Span::from_millis(60), Seq(1));
        assert_eq!(
            start.on_received(ONE, end, mbps(1.0), 0.0, mbps(4.0), &LIMITS),
            Progress::Continue(mbps(4.0))
        );
    }

    #[test]
    fn source_sends_slower_while_it_awaits_the_first_report() {
        let mut start = starting();
        assert_eq!(start.pace(), 1.0);
        let (end, at) = round(&mut start, mbps(4.0), Time::ZERO, Seq(0));
        assert_eq!(start.pace(), 0.25);
        start.on_received(ONE, end, mbps(4.0), 0.0, mbps(4.0), &LIMITS);
        round(&mut start, mbps(8.0), at, end.next());
        assert_eq!(start.pace(), 1.0);
    }

    #[test]
    fn rtt_samples_set_the_rate_until_the_first_report() {
        let mut start = StartUp::new(Doubling::default(), 1000, Span::from_millis(100));
        assert_eq!(start.on_rtt(RTT), Progress::Continue(mbps(4.0)));
        assert_eq!(start.on_rtt(Span::from_millis(1)), Progress::Continue(mbps(32.0)), "2.5 ms at least");
        let (end, _) = round(&mut start, mbps(4.0), Time::ZERO, Seq(0));
        start.on_received(ONE, end, mbps(4.0), 0.0, mbps(4.0), &LIMITS);
        assert_eq!(start.on_rtt(RTT), Progress::Stay);
    }
}
