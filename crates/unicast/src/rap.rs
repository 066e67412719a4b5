//! RAP, the rate adaptation protocol (Rejaie, Handley and Estrin 1999), with ns-2's values (`rap.cc`).
//!
//! The sender spaces packets by a fixed time, the gap. After each round trip without loss, the rate grows by one packet per round
//! trip. A loss doubles the gap. Losses of packets that were outstanding at the latest cut cause no further cut.

use super::{Feedback, RapAck, Segment, SegmentFlags, SenderView};
use faircast_core::node::{Cx, Departure};
use faircast_core::time::{Rate, Span, Time};
use std::collections::VecDeque;

/// Whether the gap follows the newest round-trip times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    /// The gap does not depend on the latest round-trip times.
    Coarse,
    /// The gap is multiplied by a ratio: a fast mean of the round-trip times divided by a slow mean.
    Fine,
}

/// Parameters of a RAP flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// Bytes of a packet on the link.
    pub packet_size: u16,
    /// Fine-grain adaptation.
    pub grain: Grain,
}

impl Config {
    /// Returns the defaults of ns-2.35.
    pub const fn ns235() -> Config {
        Config { packet_size: 512, grain: Grain::Coarse }
    }
}

/// Initial values of gap, round-trip time and timeout before the first acknowledgement, in seconds.
const FIRST: f64 = 2.0;
/// Gain for the means of the round-trip time and of its deviation.
const GAIN: f64 = 0.5;
/// Gains of the fast and the slow mean.
const FAST_GAIN: f64 = 0.9;
const SLOW_GAIN: f64 = 0.01;
/// Fraction of the allowed packets that must have been sent before the rate may rise.
const MIN_USE: f64 = 0.5;
/// Minimum round-trip time, in seconds. Without a minimum, rates could be infinite.
const SHORTEST: f64 = 1e-6;
/// Number of later packets that must arrive before a missing packet counts as lost.
const REORDERING: u32 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Out,
    /// Outstanding at the latest cut.
    Excused,
    /// Arrived or counted as lost.
    Done,
}

/// A RAP sender.
#[derive(Debug, Clone)]
pub struct Sender {
    config: Config,
    open: bool,
    latest: bool,
    supply: u32,
    next: u32,
    /// Packets that may be outstanding, from `oldest` on.
    out: VecDeque<(Time, State)>,
    oldest: u32,
    /// Gap, round-trip time, deviation, timeout, fast mean and slow mean of the round-trip time, all in seconds.
    gap: f64,
    rtt: f64,
    deviation: f64,
    timeout: Span,
    fast: f64,
    slow: f64,
    next_at: Time,
    /// Time at which the rate may rise again.
    rise_at: Time,
    /// Packets sent since the latest opportunity to rise.
    used: u32,
    acked: u64,
    cuts: u32,
    timeouts: u32,
}

impl Sender {
    /// Creates a flow that has not started.
    pub fn new(config: Config) -> Sender {
        Sender {
            config,
            open: false,
            latest: false,
            supply: 0,
            next: 0,
            out: VecDeque::new(),
            oldest: 0,
            gap: FIRST,
            rtt: FIRST,
            deviation: 0.0,
            timeout: Span::from_secs_f64(FIRST),
            fast: FIRST,
            slow: FIRST,
            next_at: Time::NEVER,
            rise_at: Time::NEVER,
            used: 0,
            acked: 0,
            cuts: 0,
            timeouts: 0,
        }
    }

    /// Returns whether the timeout of the oldest packet expires before the next packet may be sent. The rate is then cut and no
    /// packet is sent.
    fn next_tick_cuts(&self) -> bool {
        self.out.front().is_some_and(|(sent, _)| *sent + self.timeout <= self.next_at)
    }

    fn sample(&mut self, secs: f64) {
        if !self.latest {
            self.rtt = secs;
            self.fast = secs;
            self.slow = secs;
        }
        let error = secs - self.rtt;
        self.rtt += GAIN * error;
        self.deviation += GAIN * (error.abs() - self.deviation);
        self.timeout = Span::from_secs_f64(1.2 * self.rtt + 4.0 * self.deviation);
        self.fast += FAST_GAIN * (secs - self.fast);
        self.slow += SLOW_GAIN * (secs - self.slow);
    }

    fn book_next(&mut self, now: Time) {
        let ratio = if self.config.grain == Grain::Fine { self.fast / self.slow } else { 1.0 };
        self.next_at = now + Span::from_secs_f64(self.gap * ratio);
    }

    /// Increases the rate by one packet per round trip, if the sender has made use of its rate.
    fn rise(&mut self, now: Time) {
        if f64::from(self.used) * self.gap / self.rtt >= MIN_USE {
            self.gap *= self.rtt / (self.gap + self.rtt);
        }
        self.used = 0;
        self.rise_at = now + Span::from_secs_f64(self.rtt);
    }

    fn cut(&mut self, now: Time) {
        self.gap *= 2.0;
        self.cuts += 1;
        self.out
            .iter_mut()
            .filter(|(_, state)| *state == State::Out)
            .for_each(|(_, state)| *state = State::Excused);
        self.rise_at = now + Span::from_secs_f64(self.rtt);
    }

    fn forget_done(&mut self) {
        while self.out.front().is_some_and(|(_, state)| *state == State::Done) {
            self.out.pop_front();
            self.oldest += 1;
        }
    }

    /// Records the arrivals that the last three fields of an acknowledgement report. Returns whether the acknowledgement reveals
    /// a new loss.
    fn is_loss(&mut self, ack: &RapAck) -> bool {
        let mut lost = false;
        for (seq, (_, state)) in (self.oldest + 1..=ack.last_received).zip(&mut self.out) {
            if seq > ack.last_missing || seq == ack.previous_received {
                *state = State::Done;
            } else if ack.last_received - seq >= REORDERING {
                lost |= *state == State::Out;
                *state = State::Done;
            }
        }
        lost
    }

    fn on_ack(&mut self, ack: &RapAck, now: Time) {
        if ack.seq >= self.next || ack.last_received > self.next {
            return;
        }
        let place = ack.seq.checked_sub(self.oldest).and_then(|index| self.out.get_mut(index as usize));
        if let Some((sent, state)) = place.filter(|(_, state)| *state != State::Done) {
            *state = State::Done;
            let secs = now.since(*sent).as_secs_f64();
            self.acked += 1;
            self.sample(secs.max(SHORTEST));
        }
        if !self.latest {
            self.latest = true;
            self.gap = self.rtt;
        }
        if self.is_loss(ack) {
            self.cut(now);
        }
        self.forget_done();
    }

    /// Marks packets whose timeout has expired as lost, and cuts the rate for a new loss.
    fn on_late(&mut self, now: Time) {
        let mut lost = false;
        let timeout = self.timeout;
        for (sent, state) in self.out.iter_mut().take_while(|(sent, _)| *sent + timeout <= now) {
            let _ = sent;
            lost |= *state == State::Out;
            *state = State::Done;
        }
        self.forget_done();
        if lost {
            self.timeouts += 1;
            self.cut(now);
            self.book_next(now);
        }
    }
}

impl super::Sender for Sender {
    fn start(&mut self, cx: &mut Cx<'_>) {
        if !self.open {
            self.open = true;
            self.next_at = cx.now;
            self.rise_at = cx.now + Span::from_secs_f64(self.rtt);
        }
    }

    fn supply(&mut self, packets: u32, now: Time) {
        if self.next >= self.supply {
            self.next_at = self.next_at.max(now); // no credit for idle time
        }
        self.supply = packets.max(self.next);
    }

    fn departure(&self) -> Departure {
        if self.open && self.next < self.supply && !self.next_tick_cuts() {
            Departure::At(self.next_at)
        } else {
            Departure::AfterReport
        }
    }

    fn on_departure(&mut self, cx: &mut Cx<'_>) -> Segment {
        let seq = self.next;
        self.next += 1;
        self.used += 1;
        self.out.push_back((cx.now, State::Out));
        self.book_next(cx.now);
        Segment { seq, flags: SegmentFlags::default(), sent_at: cx.now, rtt: Span::ZERO }
    }

    fn on_feedback(&mut self, feedback: &Feedback, cx: &mut Cx<'_>) {
        if let Feedback::Rap(ack) = feedback {
            self.on_ack(ack, cx.now);
        }
    }

    fn deadline(&self) -> Time {
        if self.next_tick_cuts() { self.rise_at.min(self.next_at) } else { self.rise_at }
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        if cx.now >= self.rise_at {
            self.rise(cx.now);
        }
        if self.next_tick_cuts() && cx.now >= self.next_at {
            self.on_late(cx.now);
        }
    }

    #[inline]
    fn cuts(&self) -> u32 {
        self.cuts
    }

    fn observe(&self) -> SenderView {
        SenderView {
            rtt: Span::from_secs_f64(self.rtt),
            rate: Rate::of(u64::from(self.config.packet_size), Span::from_secs_f64(self.gap)),
            sent: u64::from(self.next),
            acked: self.acked,
            cuts: u64::from(self.cuts),
            timeouts: u64::from(self.timeouts),
            ..SenderView::default()
        }
    }
}

/// A RAP receiver. Its first three fields count packets from 1; 0 means no packet.
#[derive(Debug, Clone, Default)]
pub struct Sink {
    last_received: u32,
    last_missing: u32,
    previous_received: u32,
    received: u64,
}

impl Sink {
    /// Records the arrival of packet `seq`. The newest gap is described by two fields: the packets after `previous_received` up
    /// to `last_missing` are missing.
    fn note(&mut self, seq: u32) {
        if seq > self.last_received + 1 {
            self.previous_received = self.last_received;
            self.last_missing = seq - 1;
            self.last_received = seq;
        } else if seq == self.last_received + 1 {
            self.last_received = seq;
        } else if seq == self.last_missing {
            if self.previous_received + 1 == seq {
                self.previous_received = 0;
                self.last_missing = 0;
            } else {
                self.last_missing -= 1;
            }
        } else if self.previous_received < seq && seq < self.last_missing {
            self.previous_received = seq;
        }
    }
}

impl super::Sink for Sink {
    fn on_segment(&mut self, segment: &Segment, _marked: bool, _cx: &mut Cx<'_>) -> Option<Feedback> {
        self.received += 1;
        self.note(segment.seq + 1);
        Some(Feedback::Rap(RapAck {
            seq: segment.seq,
            echo: segment.sent_at,
            last_received: self.last_received,
            last_missing: self.last_missing,
            previous_received: self.previous_received,
        }))
    }

    fn deadline(&self) -> Time {
        Time::NEVER
    }

    fn on_deadline(&mut self, _cx: &mut Cx<'_>) -> Option<Feedback> {
        None
    }

    fn delivered(&self) -> u64 {
        self.received
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipe::{Fate, Pipe};
    use crate::{Protocol, Sender as _, Sink as _};

    fn pipe(name: &str, mbps: f64, millis: u64) -> Pipe {
        let protocol: Protocol = name.parse().expect("a protocol of the catalogue");
        Pipe::new(protocol, Rate::from_mbps(mbps), Span::from_millis(millis))
    }

    /// Returns the allowed packets per round trip.
    fn window(pipe: &Pipe) -> f64 {
        let view = pipe.sender.observe();
        view.rate.bps() / 8000.0 * view.rtt.as_secs_f64()
    }

    #[test]
    fn rate_grows_by_a_packet_per_round_trip_without_loss() {
        for name in ["rap", "rap,fine"] {
            let mut pipe = pipe(name, 1000.0, 50);
            pipe.run_until(Time::from_secs_f64(10.0));
            let before = window(&pipe);
            pipe.run_until(Time::from_secs_f64(30.0));
            let per_round_trip = (window(&pipe) - before) / (20.0 / pipe.sender.observe().rtt.as_secs_f64());
            assert!((0.98..1.02).contains(&per_round_trip), "{name}: {per_round_trip}");
            assert_eq!(pipe.sender.observe().cuts, 0);
        }
    }

    #[test]
    fn several_losses_in_one_round_trip_halve_the_rate_once() {
        let mut pipe = pipe("rap", 1000.0, 50);
        pipe.lose_once(&[1000, 1001, 1003, 1010]);
        let (mut peak, mut low) = (0.0_f64, f64::MAX);
        pipe.run_sampled(Time::from_secs_f64(10.0), Span::from_millis(5), |pipe| {
            let now = window(pipe);
            if pipe.sender.observe().cuts == 0 {
                peak = now;
            } else {
                low = low.min(now);
            }
        });
        assert_eq!((pipe.sender.observe().cuts, pipe.sender.observe().timeouts), (1, 0));
        assert!((low / peak - 0.5).abs() < 0.01, "from {peak} to {low}");
    }

    #[test]
    fn rate_falls_when_feedback_stops() {
        let mut pipe = pipe("rap", 1000.0, 50);
        pipe.run_until(Time::from_secs_f64(10.0));
        let before = window(&pipe);
        pipe.judge = Box::new(|_, _, _| Fate::Dropped);
        pipe.run_until(Time::from_secs_f64(14.0));
        // The rate stays above zero, because it rises each round trip between two cuts.
        assert!(window(&pipe) < before / 20.0, "{before} {}", window(&pipe));
        assert!(pipe.sender.observe().timeouts >= 7);
    }

    #[test]
    fn one_flow_behaves_as_in_ns_2_35() {
        // Link of 1 Mbit/s with a delay of 20 ms and room for 49 waiting packets: in 196 s, ns-2.35 sent 24,005 packets and
        // dropped 2,023.
        let mut bottleneck = pipe("rap", 1.0, 20);
        bottleneck.waiting_limit = 49;
        bottleneck.run_until(Time::from_secs_f64(196.0));
        assert!(bottleneck.sink.delivered().abs_diff(24_005) < 120, "{}", bottleneck.sink.delivered());
        assert!(bottleneck.drops.abs_diff(2_023) < 60, "{}", bottleneck.drops);
        // Link of 100 Mbit/s with a delay of 50 ms and a loss of 1 of 200 packets: in 1999 s, ns-2.35 sent 381,075 packets.
        let mut lossy = pipe("rap", 100.0, 50);
        lossy.lose_at_random(0.005);
        lossy.run_until(Time::from_secs_f64(1999.0));
        let ratio = lossy.sender.observe().sent as f64 / 381_075.0;
        assert!((0.97..1.03).contains(&ratio), "{ratio}");
    }
}
