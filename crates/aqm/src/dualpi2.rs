//! DualPI2 (RFC 9332; Linux, `sch_dualpi2`): two queues and a PI controller. Packets of L4S senders, ECT(1), use the low-latency
//! queue; other packets use the classic queue. The controller's probability is squared for the classic queue. L4S flows and
//! classic flows then get similar rates.
//!
//! ```text
//!   ECT(1), CE ---- low latency ---- marked when they waited 1 ms, or with probability k p ----+
//!                                                                                              +-- by turns, 9 to 1
//!   all others ---- classic -------- marked or dropped with probability p^2 -------------------+
//! ```
//!
//! At a probability above `p = 1 / k`, marks carry no further information. Packets of both queues are then dropped with
//! probability p^2.

use crate::discipline::{Decision, DropCause, Ecn, Offer};
use crate::qdisc::{Dropped, PacketQueue, Qdisc, Queued, Sent, Ticket};
use crate::text::table;
use crate::ticks::Ticks;
use faircast_core::rng::Rng;
use faircast_core::spec::NumberRange;
use faircast_core::time::{Rate, Span, Time};

table! {
    /// Parameters.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Config {
        /// Buffer of both queues, in packets that wait.
        limit: u32 = 10_000
            => whole["limit", 1, u32::MAX as u64, "buffer of both queues, in waiting packets"];
        /// Target delay of the classic queue.
        target: Span = Span::from_millis(15)
            => seconds["target", NumberRange::up_to(1.0), "target time in the classic queue"];
        /// Interval between updates of the probability.
        update: Span = Span::from_millis(16)
            => seconds["update", NumberRange::up_to(1.0), "time between two updates of the probability"];
        /// Increase of the probability at each update, per second by which the delay exceeds the target.
        alpha: f64 = 0.16
            => number["alpha", NumberRange::up_to(1e3), "gain for the delay above the target, per second"];
        /// Increase of the probability at each update, per second by which the delay has grown since the previous update.
        beta: f64 = 3.2
            => number["beta", NumberRange::of(0.0, 1e3), "gain for the growth of the delay, per second"];
        /// Delay above which low-latency packets are always marked.
        step: Span = Span::from_millis(1)
            => seconds["step", NumberRange::up_to(1.0),
                "time in the low-latency queue from which on all packets are marked"];
        /// Minimum number of low-latency packets behind a packet that `step` marks (RFC 9332, appendix A.1, `Th_len`; Linux,
        /// `min_qlen_step`). Without this minimum, a single packet would be marked if it waits longer than `step` for the end of
        /// a transmission.
        step_from: u32 = 1
            => whole["step_from", 0, 1_000_000,
                "minimum number of low-latency packets behind a packet that `step` marks"];
        /// Coupling factor: low-latency packets are marked with probability `k p`, classic packets with `p^2`.
        coupling: f64 = 2.0
            => number["coupling", NumberRange::of(1.0, 100.0),
                "factor k: low-latency packets are marked with probability k p, others with p squared"];
        /// Share of the transmitted bytes that the classic queue gets while both queues have packets.
        classic: f64 = 0.1
            => number["classic", NumberRange::PART,
                "fraction of turns of the classic queue while both queues have packets"];
        /// Queue length in bytes below which the probability has no effect: two packets of maximum size.
        min_bytes: u32 = 3000
            => whole["least", 0, 1_000_000,
                "length of the queue in bytes, below which no packet is dropped early"];
    }

    /// Values of Linux, for round-trip times of up to 100 ms. Only `step_from` differs: it has the value of RFC 9332 (Linux: 0).
    impl Default;

    impl Tabled for Config as "dualpi2" {
        type Built = Box<dyn Qdisc>;

        fn build(&self, _rate: Rate, _delay: Span) -> Box<dyn Qdisc> {
            Box::new(DualPi2::new(*self))
        }
    }
}

/// The discipline's state.
#[derive(Debug)]
pub struct DualPi2 {
    config: Config,
    low: PacketQueue,
    classic: PacketQueue,
    p: f64,
    /// Queueing delay at the latest update of the probability, in seconds.
    last: f64,
    /// Byte credit of the classic queue. While the credit is above zero, the classic queue sends.
    credit: f64,
    ticks: Ticks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Low,
    Classic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Goes,
    Marked,
    Dropped,
}

impl DualPi2 {
    /// Creates empty queues.
    pub fn new(config: Config) -> DualPi2 {
        DualPi2 {
            config,
            low: PacketQueue::default(),
            classic: PacketQueue::default(),
            p: 0.0,
            last: 0.0,
            credit: 0.0,
            ticks: Ticks::every(config.update),
        }
    }

    /// Returns the controller's probability, before the square or the coupling factor is applied.
    pub const fn probability(&self) -> f64 {
        self.p
    }

    /// Removes the next packet of the queue whose turn it is.
    fn take(&mut self) -> Option<(Kind, Queued)> {
        let share = self.config.classic;
        let (low, classic) = (self.low.backlog().0 > 0, self.classic.backlog().0 > 0);
        if !(low && classic) {
            self.credit = if low || classic { self.credit } else { 0.0 };
            let kind = if low { Kind::Low } else { Kind::Classic };
            let packet = if low { self.low.pop() } else { self.classic.pop() };
            return packet.map(|packet| (kind, packet));
        }
        if self.credit <= 0.0 {
            let packet = self.low.pop()?;
            self.credit += share * f64::from(packet.size);
            return Some((Kind::Low, packet));
        }
        let packet = self.classic.pop()?;
        self.credit -= (1.0 - share) * f64::from(packet.size);
        Some((Kind::Classic, packet))
    }

    fn judge(&self, kind: Kind, packet: &Queued, now: Time, rng: &mut Rng) -> Verdict {
        let marks = self.config.coupling * self.p;
        let overload = marks > 1.0;
        let bytes = self.backlog().1 + u64::from(packet.size);
        let is_short = bytes < u64::from(self.config.min_bytes);
        let mut squared = || rng.chance(self.p) && rng.chance(self.p);
        let verdict = match kind {
            _ if is_short => Verdict::Goes,
            Kind::Low if overload => {
                if squared() {
                    Verdict::Dropped
                } else {
                    Verdict::Marked
                }
            }
            Kind::Low => {
                if rng.chance(marks) {
                    Verdict::Marked
                } else {
                    Verdict::Goes
                }
            }
            Kind::Classic if !squared() => Verdict::Goes,
            Kind::Classic if overload || packet.ecn == Ecn::NotEct => Verdict::Dropped,
            Kind::Classic => Verdict::Marked,
        };
        let others = self.low.backlog().0;
        let late = kind == Kind::Low
            && now.since(packet.since) > self.config.step
            && others >= self.config.step_from;
        if late && verdict == Verdict::Goes { Verdict::Marked } else { verdict }
    }
}

impl Qdisc for DualPi2 {
    fn enqueue(
        &mut self,
        offer: &Offer,
        ticket: Ticket,
        _rng: &mut Rng,
        _dropped: &mut Vec<Dropped>,
    ) -> Decision {
        if self.backlog().0 >= self.config.limit {
            return Decision::Drop(DropCause::Overflow);
        }
        let queue = if offer.ecn.is_l4s() { &mut self.low } else { &mut self.classic };
        queue.push(Queued::new(offer, ticket));
        Decision::Accept
    }

    fn dequeue(&mut self, now: Time, rng: &mut Rng, dropped: &mut Vec<Dropped>) -> Option<Sent> {
        loop {
            let (kind, packet) = self.take()?;
            match self.judge(kind, &packet, now, rng) {
                Verdict::Dropped => dropped.push(Dropped { ticket: packet.ticket, cause: DropCause::Early }),
                verdict => return Some(Sent { ticket: packet.ticket, marked: verdict == Verdict::Marked }),
            }
        }
    }

    fn backlog(&self) -> (u32, u64) {
        let (low, classic) = (self.low.backlog(), self.classic.backlog());
        (low.0 + classic.0, low.1 + classic.1)
    }

    fn flush(&mut self, lost: &mut Vec<Ticket>) {
        self.low.flush(lost);
        self.classic.flush(lost);
    }

    fn timer(&self) -> Time {
        self.ticks.next()
    }

    fn on_timer(&mut self, now: Time) {
        self.ticks.advance();
        let heads = [self.low.front(), self.classic.front()];
        let waited = heads.into_iter().flatten().map(|packet| now.since(packet.since)).max();
        let delay = waited.unwrap_or_default().as_secs_f64();
        let Config { alpha, beta, target, .. } = self.config;
        let step = alpha * (delay - target.as_secs_f64()) + beta * (delay - self.last);
        self.p = (self.p + step).clamp(0.0, 1.0);
        self.last = delay;
    }

    fn on_silence(&mut self, until: Time) {
        if self.p == 0.0 && self.last == 0.0 {
            self.ticks.skip_to(until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench;

    fn millis(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    struct Bench {
        queue: DualPi2,
        tickets: u32,
        rng: Rng,
        dropped: Vec<Dropped>,
    }

    impl Bench {
        fn new(config: Config) -> Bench {
            Bench { queue: DualPi2::new(config), tickets: 0, rng: Rng::new(1, 1), dropped: Vec::new() }
        }

        fn arrive(&mut self, packets: u32, ecn: Ecn, now: Time) {
            for _ in 0..packets {
                let offer = Offer { ecn, now, ..bench::busy(0) };
                self.queue.enqueue(&offer, Ticket(self.tickets), &mut self.rng, &mut self.dropped);
                self.tickets += 1;
            }
        }

        fn leaves(&mut self, now: Time) -> Option<Sent> {
            self.queue.dequeue(now, &mut self.rng, &mut self.dropped)
        }
    }

    #[test]
    fn classic_queue_sends_a_tenth_of_the_packets_under_full_load() {
        let mut bench = Bench::new(Config::default());
        bench.arrive(400, Ecn::Ect1, Time::ZERO);
        bench.arrive(400, Ecn::Ect0, Time::ZERO);
        let classic =
            (0..300).filter(|_| bench.leaves(Time::ZERO).expect("they wait").ticket.0 >= 400).count();
        assert_eq!(classic, 30);
    }

    #[test]
    fn low_latency_packets_are_marked_above_a_millisecond_of_delay() {
        let mut bench = Bench::new(Config::default());
        bench.arrive(3, Ecn::Ect1, Time::ZERO);
        assert!(!bench.leaves(millis(1)).expect("it waits").marked);
        assert!(bench.leaves(millis(2)).expect("it waits").marked);
        bench.arrive(1, Ecn::Ect0, Time::ZERO);
        assert!(!bench.leaves(millis(50)).expect("it waits").marked);
    }

    #[test]
    fn late_packet_without_successor_is_marked_if_step_from_is_zero() {
        for (step_from, marked) in [(1, [true, false]), (0, [true, true])] {
            let mut bench = Bench::new(Config { step_from, ..Config::default() });
            bench.arrive(2, Ecn::Ect1, Time::ZERO);
            let both = [3, 4].map(|at| bench.leaves(millis(at)).expect("it waits").marked);
            assert_eq!(both, marked, "{step_from}");
        }
    }

    #[test]
    fn probability_matches_hand_computed_values() {
        let mut bench = Bench::new(Config::default());
        bench.arrive(1, Ecn::NotEct, Time::ZERO);
        bench.queue.on_timer(millis(16)); // 0.16 (0.016 - 0.015) + 3.2 * 0.016
        assert!((bench.queue.probability() - 0.051_36).abs() < 1e-12);
        bench.queue.on_timer(millis(32));
        assert!((bench.queue.probability() - 0.051_36 - 0.16 * 0.017 - 3.2 * 0.016).abs() < 1e-12);
    }

    /// Returns the share of packets that are marked, and the share of packets that are dropped, at this probability.
    fn shares(ecn: Ecn, p: f64) -> (f64, f64) {
        let mut bench = Bench::new(Config { limit: 100_000, ..Config::default() });
        bench.arrive(40_000, ecn, Time::ZERO);
        bench.queue.p = p;
        let marked = std::iter::from_fn(|| bench.leaves(Time::ZERO)).filter(|sent| sent.marked).count();
        (marked as f64 / 40_000.0, bench.dropped.len() as f64 / 40_000.0)
    }

    #[test]
    fn low_latency_probability_is_k_p_and_classic_is_p_squared() {
        let near = |found: (f64, f64), marks: f64, drops: f64| {
            assert!((found.0 - marks).abs() < 0.01 && (found.1 - drops).abs() < 0.01, "{found:?}");
        };
        near(shares(Ecn::Ect1, 0.2), 0.4, 0.0);
        near(shares(Ecn::Ect0, 0.2), 0.04, 0.0);
        near(shares(Ecn::NotEct, 0.2), 0.0, 0.04);
        // At overload, a share p^2 of the packets in each queue is dropped, and the remaining low-latency packets are marked.
        near(shares(Ecn::Ect1, 0.6), 0.64, 0.36);
        near(shares(Ecn::Ect0, 0.6), 0.0, 0.36);
    }
}
