//! CMTCP, a protocol that computes its rate by TCP's formula at fixed intervals (Padhye, Kurose, Towsley and Koodli, "A model
//! based TCP-friendly rate control protocol", NOSSDAV 1999). It is also called TFRCP; paper 002, 3.8, uses the name CMTCP.
//!
//! The receiver acknowledges each packet. Every `M` seconds the sender computes the loss rate since the previous computation.
//! With this loss rate, the round-trip time and TCP's timeout, it sets its rate by TCP's formula. If no packet was lost, it
//! doubles its rate instead.
//!
//! The thesis (paper 002) used code from ns-2's website. The parameter values of this code are not known, so `M` is an option.

use super::{Feedback, RapAck, Segment, SegmentFlags, SenderView};
use faircast_core::node::{Cx, Departure};
use faircast_core::rate::formula::Path;
use faircast_core::time::{Rate, Span, Time};
use std::collections::VecDeque;

pub use super::rap::Sink;

/// Parameters of a CMTCP flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// Bytes of a packet on the link.
    pub packet_size: u16,
    /// Time between two computations of the rate, "M".
    pub interval: Span,
}

impl Config {
    /// Returns the values that we chose: the rate is computed every 2 s. The authors of the protocol tried 2 to 5 s.
    pub const fn chosen() -> Config {
        Config { packet_size: 1000, interval: Span::from_secs(2) }
    }
}

/// Assumed round-trip time before the first acknowledgement, in seconds. The initial rate is one packet per assumed round trip.
const FIRST: f64 = 1.0;
/// Gains for the means of the round-trip time and of its deviation (RFC 6298).
const MEAN_GAIN: f64 = 0.125;
const DEVIATION_GAIN: f64 = 0.25;
/// Minimum timeout, in seconds.
const MIN_TIMEOUT: f64 = 0.2;
/// Minimum round-trip time, in seconds. Without a minimum, rates could be infinite.
const SHORTEST: f64 = 1e-6;
/// Number of later packets that must arrive before a missing packet counts as lost.
const REORDERING: u32 = 3;
/// Longest time between packets, in seconds.
const MAX_GAP: f64 = 64.0;
/// Maximum rate, in packets per second.
const FASTEST: f64 = 1e7;

/// A CMTCP sender.
#[derive(Debug, Clone)]
pub struct Sender {
    config: Config,
    open: bool,
    received: bool,
    supply: u32,
    next: u32,
    /// Packets from `oldest` on: time of sending, and `true` until the packet is known to have arrived or counts as lost.
    out: VecDeque<(Time, bool)>,
    oldest: u32,
    /// Rate in packets per second.
    rate: f64,
    /// Round-trip time in seconds.
    rtt: f64,
    deviation: f64,
    next_at: Time,
    compute_at: Time,
    /// Packets that arrived since the latest computation.
    arrived: u32,
    lost: u32,
    acked: u64,
    cuts: u32,
    silences: u32,
}

impl Sender {
    /// Creates a flow that has not started.
    pub fn new(config: Config) -> Sender {
        Sender {
            config,
            open: false,
            received: false,
            supply: 0,
            next: 0,
            out: VecDeque::new(),
            oldest: 0,
            rate: 1.0 / FIRST,
            rtt: FIRST,
            deviation: 0.0,
            next_at: Time::NEVER,
            compute_at: Time::NEVER,
            arrived: 0,
            lost: 0,
            acked: 0,
            cuts: 0,
            silences: 0,
        }
    }

    fn timeout(&self) -> Span {
        Span::from_secs_f64((self.rtt + 4.0 * self.deviation).max(MIN_TIMEOUT))
    }

    fn sample(&mut self, secs: f64, now: Time) {
        if self.received {
            self.deviation += DEVIATION_GAIN * ((secs - self.rtt).abs() - self.deviation);
            self.rtt += MEAN_GAIN * (secs - self.rtt);
            return;
        }
        self.received = true;
        (self.rtt, self.deviation) = (secs, secs / 2.0);
        // The first sample sets the rate to one packet per round trip.
        self.rate = 1.0 / secs;
        self.next_at = self.next_at.min(now + Span::from_secs_f64(secs));
    }

    fn forget_done(&mut self) {
        while self.out.front().is_some_and(|(_, waits)| !waits) {
            self.out.pop_front();
            self.oldest += 1;
        }
    }

    fn on_ack(&mut self, ack: &RapAck, now: Time) {
        if ack.seq >= self.next || ack.last_received > self.next {
            return;
        }
        let place = ack.seq.checked_sub(self.oldest).and_then(|index| self.out.get_mut(index as usize));
        if let Some((sent, waits)) = place.filter(|(_, waits)| *waits) {
            *waits = false;
            let secs = now.since(*sent).as_secs_f64();
            self.acked += 1;
            self.arrived += 1;
            self.sample(secs.max(SHORTEST), now);
        }
        let newest = ack.last_received;
        for (seq, (_, waits)) in (self.oldest + 1..=newest).zip(&mut self.out) {
            if *waits && newest - seq >= REORDERING {
                *waits = false;
                // The present acknowledgement also shows whether packet `seq` has arrived, in case the acknowledgement of `seq`
                // was lost.
                if seq > ack.last_missing || seq == ack.previous_received {
                    self.arrived += 1;
                } else {
                    self.lost += 1;
                }
            }
        }
        self.forget_done();
    }

    /// Computes the next rate, once every `M`.
    fn compute(&mut self, now: Time) {
        let timeout = self.timeout();
        for (_, waits) in self.out.iter_mut().take_while(|(sent, _)| *sent + timeout <= now) {
            self.lost += u32::from(std::mem::replace(waits, false));
        }
        self.forget_done();
        let before = self.rate;
        let known = self.arrived + self.lost;
        if self.lost > 0 {
            let loss = f64::from(self.lost) / f64::from(known);
            let rtt = Span::from_secs_f64(self.rtt);
            let path = Path { timeout, ..Path::new(self.config.packet_size, rtt) };
            self.rate = 1.0 / path.secs_per_packet(loss).max(1.0 / FASTEST);
            self.silences += u32::from(self.arrived == 0);
        } else if self.arrived > 0 && self.next < self.supply {
            self.rate = (2.0 * self.rate).min(FASTEST);
        }
        self.rate = self.rate.max(1.0 / MAX_GAP);
        self.cuts += u32::from(self.rate < before);
        if self.rate != before && self.next_at > now && !self.next_at.is_never() {
            // The remaining time before the next packet changes in proportion to the time between packets.
            let left = self.next_at.since(now).as_secs_f64() * before / self.rate;
            self.next_at = now + Span::from_secs_f64(left);
        }
        (self.arrived, self.lost) = (0, 0);
        self.compute_at = now + self.config.interval;
    }
}

impl super::Sender for Sender {
    fn start(&mut self, cx: &mut Cx<'_>) {
        if !self.open {
            self.open = true;
            self.next_at = cx.now;
            self.compute_at = cx.now + self.config.interval;
        }
    }

    fn supply(&mut self, packets: u32, now: Time) {
        if self.next >= self.supply {
            self.next_at = self.next_at.max(now); // no credit for idle time
        }
        self.supply = packets.max(self.next);
    }

    fn departure(&self) -> Departure {
        if self.open && self.next < self.supply {
            Departure::At(self.next_at)
        } else {
            Departure::AfterReport
        }
    }

    fn on_departure(&mut self, cx: &mut Cx<'_>) -> Segment {
        let seq = self.next;
        self.next += 1;
        self.out.push_back((cx.now, true));
        self.next_at = cx.now + Span::from_secs_f64(1.0 / self.rate);
        Segment { seq, flags: SegmentFlags::default(), sent_at: cx.now, rtt: Span::ZERO }
    }

    fn on_feedback(&mut self, feedback: &Feedback, cx: &mut Cx<'_>) {
        if let Feedback::Rap(ack) = feedback {
            self.on_ack(ack, cx.now);
        }
    }

    fn deadline(&self) -> Time {
        self.compute_at
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        if cx.now >= self.compute_at {
            self.compute(cx.now);
        }
    }

    #[inline]
    fn cuts(&self) -> u32 {
        self.cuts
    }

    fn observe(&self) -> SenderView {
        SenderView {
            rtt: Span::from_secs_f64(self.rtt),
            rate: Rate::from_bps(8.0 * f64::from(self.config.packet_size) * self.rate),
            sent: u64::from(self.next),
            acked: self.acked,
            cuts: u64::from(self.cuts),
            timeouts: u64::from(self.silences),
            ..SenderView::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipe::{Fate, Pipe};
    use crate::{Protocol, Sender as _};

    fn pipe(mbps: f64, millis: u64) -> Pipe {
        let protocol: Protocol = "cmtcp".parse().expect("a protocol of the catalogue");
        Pipe::new(protocol, Rate::from_mbps(mbps), Span::from_millis(millis))
    }

    #[test]
    fn rate_doubles_every_interval_without_loss() {
        let mut pipe = pipe(1000.0, 50);
        pipe.run_until(Time::from_secs_f64(3.0));
        let before = pipe.sender.observe().rate.bps();
        pipe.run_until(Time::from_secs_f64(9.0));
        let ratio = pipe.sender.observe().rate.bps() / before;
        assert!((ratio - 8.0).abs() < 1e-6, "{ratio}");
    }

    #[test]
    fn rate_with_random_losses_matches_the_tcp_formula() {
        let mut pipe = pipe(100.0, 50);
        pipe.lose_at_random(0.01);
        pipe.run_until(Time::from_secs_f64(200.0));
        let warm = pipe.sender.observe().sent;
        pipe.run_until(Time::from_secs_f64(2000.0));
        let rate = (pipe.sender.observe().sent - warm) as f64 / 1800.0 * 8000.0;
        let rtt = pipe.sender.observe().rtt;
        let path = Path { timeout: Span::from_secs_f64(0.2), ..Path::new(1000, rtt) };
        // The protocol measures each loss rate over only a few hundred packets, and the formula is not linear in the loss rate.
        let ratio = rate / path.tcp_rate(0.01).bps();
        assert!((0.8..1.5).contains(&ratio), "{ratio}");
    }

    #[test]
    fn rate_falls_to_nearly_zero_when_feedback_stops() {
        let mut pipe = pipe(1000.0, 50);
        pipe.run_until(Time::from_secs_f64(9.0));
        pipe.judge = Box::new(|_, _, _| Fate::Dropped);
        pipe.run_until(Time::from_secs_f64(20.0));
        let view = pipe.sender.observe();
        assert!(view.rate.bps() < 8000.0 && view.timeouts >= 1, "{view:?}");
    }
}
