//! Tests of the thresholds with the noise of real hosts: a source that wakes late and catches up, a bottleneck, a receiver that
//! wakes late, and clocks of different speed.

use super::*;
use crate::packet::{Arrival, Cause, Data, Flags, Mark, Payload, Seq, Signal};
use crate::rate::Pacer;
use crate::rate::pacer::CatchUp;
use crate::rng::Rng;

const SIZE: u16 = 1400;
const RTT: Span = Span::from_millis(20);
/// Maximum time by which the source's driver sends a packet before its departure time.
const BURST: Span = Span::from_millis(1);
/// Fraction of wake-ups that are late by milliseconds.
const RARELY: f64 = 1.0 / 200.0;

/// Direction of the clock difference.
#[derive(Debug, Clone, Copy)]
enum Drift {
    ReceiverFast,
    ReceiverSlow,
}

struct Hosts {
    rng: Rng,
    pacer: Pacer,
    control: ControlClock,
    detector: Detector,
    rate: Rate,
    bottleneck: Rate,
    busy_until: Time,
    now: Time,
    seq: u64,
    drift: Drift,
    /// Time at which the receiver's process runs again.
    asleep_until: Time,
    newest_arrival: Time,
    max_waiting: u64,
}

impl Hosts {
    fn new(measuring: Measuring, mbps: f64, bottleneck: f64, drift: Drift, seed: u64) -> Hosts {
        let rate = Rate::from_mbps(mbps);
        Hosts {
            rng: Rng::new(seed, 0),
            pacer: Pacer::new(rate, CatchUp::default()),
            control: ControlClock::new(measuring.interval),
            detector: Detector::new(measuring),
            rate,
            bottleneck: Rate::from_mbps(bottleneck),
            busy_until: Time::ZERO,
            now: Time::ZERO,
            seq: 0,
            drift,
            asleep_until: Time::ZERO,
            newest_arrival: Time::ZERO,
            max_waiting: 0,
        }
    }

    /// Returns a random delay: a tenth of a millisecond on average, rarely up to `longest`.
    fn lateness(&mut self, longest: Span) -> Span {
        let usual = Span::from_secs_f64(self.rng.exponential(1e-4));
        if self.rng.chance(RARELY) { usual + longest.scaled(self.rng.unit()) } else { usual }
    }

    /// Wakes the source, which sends the packets that are due. Returns the number of these packets that show congestion.
    fn wake(&mut self) -> u32 {
        let late = self.lateness(Span::from_millis(10));
        self.now = self.now.max(self.pacer.departure()) + late;
        let mut shown = 0;
        while self.pacer.departure() <= self.now + BURST {
            let gap = self.rate.span_of(SIZE.into());
            let signal = self.control.on_departure(gap, RTT, self.now);
            self.pacer.book(self.now, SIZE, RTT);
            shown += self.carry(signal);
        }
        shown
    }

    /// Sends a packet through the bottleneck to the receiver. Returns 1 if the packet shows congestion, else 0.
    fn carry(&mut self, signal: Signal) -> u32 {
        let waiting = self.bottleneck.bytes_in(self.busy_until.since(self.now));
        self.max_waiting = self.max_waiting.max(waiting);
        self.busy_until = self.busy_until.max(self.now) + self.bottleneck.span_of(SIZE.into());
        let data = Data {
            seq: Seq(self.seq),
            sent_at: self.now,
            rate: self.rate.bps() as f32,
            payload: Payload::NONE,
            flags: Flags::default(),
            signal,
            mark: Mark::None,
        };
        self.seq += 1;
        let there = self.busy_until + RTT / 2;
        if there > self.asleep_until {
            self.asleep_until = there + self.lateness(Span::from_millis(5));
        }
        let arrived = self.asleep_until.max(self.newest_arrival);
        self.newest_arrival = arrived;
        let drift = Span::from_nanos(arrived.as_nanos() / 20_000); // 50 millionths
        let seen = match self.drift {
            Drift::ReceiverFast => arrived + drift,
            Drift::ReceiverSlow => arrived - drift,
        };
        let arrival = Arrival { size: SIZE, ..Arrival::default() };
        let instance = self.detector.on_data(&data, arrival, seen);
        u32::from(instance.is_some_and(|instance| instance.cause == Cause::Accumulation))
    }

    fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
        self.pacer.set_rate(rate, self.now);
    }
}

/// Returns the number of packets that show congestion within a minute, on a path whose capacity exceeds the sending rate by a
/// quarter.
fn shown_in_a_minute(measuring: Measuring, mbps: f64, drift: Drift, seed: u64) -> u32 {
    let mut hosts = Hosts::new(measuring, mbps, mbps * 1.25, drift, seed);
    let mut shown = 0;
    while hosts.now < Time::from_secs_f64(60.0) {
        shown += hosts.wake();
    }
    shown
}

#[test]
fn timing_noise_of_hosts_is_not_reported_as_congestion() {
    for mbps in [1.0, 10.0, 100.0] {
        for drift in [Drift::ReceiverFast, Drift::ReceiverSlow] {
            for seed in 1..=3 {
                let shown = shown_in_a_minute(Measuring::transport(), mbps, drift, seed);
                assert_eq!(shown, 0, "{mbps} Mbit/s, {drift:?}, seed {seed}");
            }
        }
    }
}

#[test]
fn host_noise_exceeds_the_published_threshold_60_times_a_minute() {
    let shown = shown_in_a_minute(Measuring::published(), 10.0, Drift::ReceiverFast, 1);
    assert!(shown > 60, "{shown}");
}

/// The rate grows by a packet per round trip, as in the schemes, until it exceeds the capacity of the path.
#[test]
fn queue_is_detected_before_it_holds_25_kilobytes() {
    for drift in [Drift::ReceiverFast, Drift::ReceiverSlow] {
        for seed in 1..=10 {
            let mut hosts = Hosts::new(Measuring::transport(), 8.0, 10.0, drift, seed);
            let mut grow_at = Time::ZERO + RTT * 50;
            while hosts.wake() == 0 {
                if hosts.now >= grow_at {
                    grow_at += RTT;
                    hosts.set_rate(hosts.rate + Rate::of(SIZE.into(), RTT));
                }
            }
            assert!(hosts.rate.bps() > 9.5e6, "{}", hosts.rate);
            assert!(hosts.max_waiting < 25_000, "{} bytes, seed {seed}", hosts.max_waiting);
        }
    }
}
