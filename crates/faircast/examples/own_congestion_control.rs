//! A new congestion control on the traits that faircast's schemes implement: the rate grows by one packet per round-trip time,
//! and a loss at any receiver halves the rate. The example runs the scheme over a simulated bottleneck of 4 Mbit/s, without
//! session, socket or clock.

use faircast::Rate;
use faircast::core::node::{
    Cx, Departure, Effect, Effects, Observation, Source, SourceControl, Stamp, Tally,
};
use faircast::core::packet::{Echo, Flags, Layer, Mark, ReceiverId, Report, ReportContent, Seq, Signal};
use faircast::core::rng::Rng;
use faircast::core::time::{Span, Time};
use std::collections::VecDeque;

const RTT: Span = Span::from_millis(40);
const PACKET: u16 = 1000;

/// The scheme: the state and rules of a source.
struct Halving {
    rate: Rate,
    next: Seq,
    departs: Time,
    grows: Time,
    cut: Time,
    cuts: u64,
}

impl Source for Halving {
    fn start(&mut self, cx: &mut Cx<'_>) {
        (self.departs, self.grows) = (cx.now, cx.now + RTT);
    }

    fn departure(&self, layer: Layer) -> Departure {
        Departure::At(if layer == Layer(0) { self.departs } else { Time::NEVER })
    }

    fn on_departure(&mut self, _layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp {
        let seq = self.next;
        self.next = Seq(seq.0 + 1);
        self.departs = cx.now + self.rate.span_of(size.into());
        Stamp { seq, rate: self.rate, flags: Flags::default(), signal: Signal::None, mark: Mark::None }
    }

    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        let is_loss = matches!(report.content, ReportContent::Lost { .. });
        if is_loss && cx.now >= self.cut + RTT {
            (self.rate, self.cut, self.cuts) = (self.rate * 0.5, cx.now, self.cuts + 1);
        }
    }

    fn deadline(&self) -> Time {
        self.grows
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        if cx.now >= self.grows {
            self.grows = cx.now + RTT;
            self.rate = self.rate + Rate::of(PACKET.into(), RTT);
        }
    }

    fn control(&mut self, control: SourceControl, _now: Time) {
        if let SourceControl::Limits(bounds) = control {
            self.rate = self.rate.max(bounds.min).min(bounds.max);
        }
    }

    fn observe(&self) -> Observation {
        let (rate, cuts) = (self.rate, self.cuts);
        let (limiting, level, tally, starting) = (None, None, Tally::default(), false);
        Observation { rate, rtt: RTT, limiting, level, rtt_max: RTT, cuts, tally, starting }
    }
}

/// Simulates a link with a queue of 20 packets. A packet that does not fit is lost, and the source gets the report of the loss
/// half a round-trip time later.
fn main() {
    let (mut rng, mut effects, link) = (Rng::new(1, 0), Effects::default(), Rate::from_mbps(4.0));
    let (rate, zero) = (Rate::from_bps(400e3), Time::ZERO);
    let mut source = Halving { rate, next: Seq(0), departs: zero, grows: zero, cut: zero, cuts: 0 };
    let (mut free_at, mut losses, mut delivered) = (zero, VecDeque::<(Time, Report)>::new(), 0_u64);
    source.start(&mut Cx { now: zero, rng: &mut rng, effects: &mut effects });
    let (end, mut printed_at) = (zero + Span::from_secs(20), zero);
    // Each turn of the driver's loop processes the earliest event: a departure, a report or a deadline.
    while let Departure::At(departs) = source.departure(Layer(0)) {
        let reported = losses.front().map_or(Time::NEVER, |(at, _)| *at);
        let now = departs.min(reported).min(source.deadline());
        if now >= end {
            break;
        }
        let cx = &mut Cx { now, rng: &mut rng, effects: &mut effects };
        if reported == now {
            let (_, report) = losses.pop_front().expect("it is due");
            source.on_report(&report, cx);
        } else if source.deadline() == now {
            source.on_deadline(cx);
        } else {
            let stamp = source.on_departure(Layer(0), PACKET, cx);
            let queued = link.bytes_in(free_at.since(now)) / u64::from(PACKET);
            if queued < 20 {
                free_at = free_at.max(now) + link.span_of(PACKET.into());
                delivered += u64::from(PACKET);
            } else {
                losses.push_back((now + RTT / 2, loss_of(stamp.seq)));
            }
        }
        // A driver has to perform every effect that a role requests, or fail. This scheme requests no effect.
        assert_eq!(effects.drain().next(), None::<Effect>);
        if now.since(printed_at) >= Span::from_secs(5) {
            printed_at = now;
            println!("{:.0} s: allowed {}", now.as_secs_f64(), source.observe().rate);
        }
    }
    let average = Rate::of(delivered, end.since(zero));
    println!("{average} of {link} on average, {} cuts", source.cuts);
    assert!(average > link * 0.7 && average <= link && source.cuts > 3, "it fills the link and backs off");
}

/// Returns a receiver's report of a lost packet.
fn loss_of(first: Seq) -> Report {
    let from = ReceiverId::new(1).expect("one is not zero");
    let echo = Echo { seq: first, hold: Span::MAX };
    let content = ReportContent::Lost { echo, first, count: 1, loss: 0.0 };
    Report { from, layer: Layer(0), content }
}
