//! BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00). BBR estimates two properties of the path: the bandwidth of
//! the bottleneck, and the round-trip time with empty queues. From these estimates, BBR computes the spacing and the number of
//! outstanding packets. BBR does not react to losses and marks as signs of congestion.
//!
//! Differences from the draft: Single packets are paced; in the draft, groups of up to 64 kB are paced. A packet that counts as
//! lost is immediately subtracted from the number of packets in the pipe. The draft's subtraction of losses from the window is
//! therefore not needed. Policers are not detected; the draft also leaves their detection to an appendix on Linux.

use super::delivery::{Delivery, Sample};
use crate::tcp::config::Config;
use crate::tcp::window::CongestionWindow;
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use std::ops::Range;

/// 2/ln 2: the lowest gain with which the rate doubles every round trip (4.3.2).
const HIGH_GAIN: f64 = 2.885;
const DRAIN_GAIN: f64 = 1.0 / HIGH_GAIN;
const WINDOW_GAIN: f64 = 2.0;
/// Gains of a cycle of bandwidth probing (4.3.4.2).
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Number of rounds after which a bandwidth sample expires (4.1.1.3, `BtlBwFilterLen`).
const BANDWIDTH_ROUNDS: u64 = 10;
/// Time after which a sample of the round-trip time expires (4.1.2.3, `RTpropFilterLen`).
const RTT_MEMORY: Span = Span::from_secs(10);
/// Duration of the phase in which few packets are outstanding, so that the queue empties, and the number of these packets
/// (4.3.5).
const PROBE_RTT_TIME: Span = Span::from_millis(200);
const FEW: f64 = 4.0;
/// The pipe counts as full when the bandwidth has not grown by a quarter in three rounds (4.3.2.2).
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Assumed round-trip time before the first sample (4.2.1), in seconds.
const FIRST_RTT: f64 = 1e-3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    StartUp,
    Drain,
    ProbeBandwidth,
    ProbeRtt,
}

/// State of the sender after an acknowledgement, in addition to the rate sample.
#[derive(Debug, Clone, Copy)]
pub(in crate::tcp) struct Seen {
    pub now: Time,
    /// Number of packets in the pipe before this acknowledgement, and after it.
    pub prior_inflight: u32,
    pub inflight: u32,
    /// Whether a loss is being repaired.
    pub recovering: bool,
    /// Whether some data that was outstanding at a timeout is still not acknowledged.
    pub after_timeout: bool,
    /// Whether the application has no data waiting. The application then limits the rate.
    pub idle: bool,
}

/// The model of the path.
#[derive(Debug, Clone)]
pub(in crate::tcp) struct Bbr {
    pub(super) state: State,
    delivery: Delivery,
    bandwidth: MaxFilter,
    /// The lowest round-trip time (`RTprop`), and the time of its sample.
    rtt: Option<Span>,
    rtt_at: Time,
    rtt_expired: bool,
    round_end: u64,
    rounds: u64,
    round_starts: bool,
    pacing_gain: f64,
    window_gain: f64,
    /// Pacing rate, in packets per second.
    pacing: f64,
    full_bandwidth: f64,
    full_rounds: u32,
    is_full: bool,
    phase: usize,
    phase_began: Time,
    probe_ends: Option<Time>,
    probe_round_done: bool,
    prior_window: f64,
    recovering: bool,
    conserving: bool,
    after_timeout: bool,
    initial_window: f64,
    packet_bits: f64,
}

impl Bbr {
    pub(super) fn new(config: &Config) -> Bbr {
        let initial_window = f64::from(config.initial_window);
        Bbr {
            state: State::StartUp,
            delivery: Delivery::default(),
            bandwidth: MaxFilter::default(),
            rtt: None,
            rtt_at: Time::ZERO,
            rtt_expired: false,
            round_end: 0,
            rounds: 0,
            round_starts: false,
            pacing_gain: HIGH_GAIN,
            window_gain: HIGH_GAIN,
            pacing: HIGH_GAIN * initial_window / FIRST_RTT,
            full_bandwidth: 0.0,
            full_rounds: 0,
            is_full: false,
            phase: 0,
            phase_began: Time::ZERO,
            probe_ends: None,
            probe_round_done: false,
            prior_window: 0.0,
            recovering: false,
            conserving: false,
            after_timeout: false,
            initial_window,
            packet_bits: f64::from(config.packet_size.max(1)) * 8.0,
        }
    }

    pub(super) fn gap(&self) -> Option<Span> {
        Some(Span::from_secs_f64(1.0 / self.pacing))
    }

    /// Records that a packet is sent.
    pub(in crate::tcp) fn on_sent(&mut self, seq: u32, una: u32, inflight: u32, again: bool, now: Time) {
        self.delivery.on_sent(seq, una, inflight, again, now);
    }

    /// Records that a packet has arrived.
    pub(in crate::tcp) fn on_arrival(&mut self, seq: u32, now: Time) {
        self.delivery.on_arrival(seq, now);
    }

    /// Returns the first packet of a range whose retransmission is also lost. The draft assumes a sender that detects such losses
    /// (RACK; RFC 8985). Without this detection, each such loss would cause a timeout, and BBR often loses retransmissions.
    pub(in crate::tcp) fn first_lost_again(&mut self, range: Range<u32>) -> Option<u32> {
        self.delivery.first_lost_again(range, self.rtt? / 4)
    }

    /// Updates the model after an acknowledgement. Arrivals must have been reported before (4.1, `BBRUpdateOnACK`).
    pub(in crate::tcp) fn on_ack(&mut self, window: &mut CongestionWindow, seen: &Seen, rng: &mut Rng) {
        let sample = self.delivery.take_sample(self.rtt, seen.now);
        if let Some(sample) = &sample {
            self.update_bandwidth(sample);
            self.check_cycle(seen);
            self.check_full(sample);
            self.check_drain(seen, rng);
            self.update_rtt(sample, seen.now);
            self.check_probe_rtt(window, seen, rng);
        } else {
            self.round_starts = false;
        }
        if seen.idle {
            self.delivery.limit(seen.inflight);
        }
        self.set_pacing(window);
        let newly = sample.map_or(0, |sample| sample.newly);
        self.set_window(window, seen, f64::from(newly));
    }

    fn update_bandwidth(&mut self, sample: &Sample) {
        self.round_starts = sample.prior_delivered >= self.round_end;
        if self.round_starts {
            self.round_end = self.delivery.delivered;
            self.rounds += 1;
        }
        if let Some(rate) = sample.rate
            && (!sample.app_limited || rate >= self.bandwidth.max())
        {
            self.bandwidth.update(self.rounds, rate);
        }
    }

    /// Returns the number of packets that fill the path (bandwidth times round-trip time), multiplied by `gain`, plus a reserve
    /// (4.2.3.2, `BBRInflight`).
    fn inflight(&self, gain: f64) -> f64 {
        match self.rtt {
            Some(rtt) => gain * self.bandwidth.max() * rtt.as_secs_f64() + 3.0 * self.quantum(),
            None => self.initial_window,
        }
    }

    /// Returns the number of packets that hardware sends in one group (4.2.2, `send_quantum`).
    fn quantum(&self) -> f64 {
        match self.pacing * self.packet_bits {
            rate if rate < 1.2e6 => 1.0,
            rate if rate < 24e6 => 2.0,
            rate => (rate * 1e-3).min(64e3 * 8.0) / self.packet_bits,
        }
    }

    fn check_cycle(&mut self, seen: &Seen) {
        if self.state != State::ProbeBandwidth {
            return;
        }
        let long = self.rtt.is_some_and(|rtt| seen.now.since(self.phase_began) > rtt);
        let prior = f64::from(seen.prior_inflight);
        let next = match CYCLE[self.phase] {
            gain if gain > 1.0 => long && (seen.recovering || prior >= self.inflight(gain)),
            gain if gain < 1.0 => long || prior <= self.inflight(1.0),
            _ => long,
        };
        if next {
            self.set_phase((self.phase + 1) % CYCLE.len(), seen.now);
        }
    }

    fn set_phase(&mut self, phase: usize, now: Time) {
        self.phase = phase;
        self.phase_began = now;
        self.pacing_gain = CYCLE[phase];
    }

    fn check_full(&mut self, sample: &Sample) {
        if self.is_full || !self.round_starts || sample.app_limited {
            return;
        }
        let bandwidth = self.bandwidth.max();
        if bandwidth >= self.full_bandwidth * FULL_GROWTH {
            self.full_bandwidth = bandwidth;
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.is_full = self.full_rounds >= FULL_ROUNDS;
    }

    fn check_drain(&mut self, seen: &Seen, rng: &mut Rng) {
        if self.state == State::StartUp && self.is_full {
            self.state = State::Drain;
            self.pacing_gain = DRAIN_GAIN;
            self.window_gain = HIGH_GAIN;
        }
        if self.state == State::Drain && f64::from(seen.inflight) <= self.inflight(1.0) {
            self.probe_bandwidth(seen.now, rng);
        }
    }

    /// Begins the cycle of bandwidth probing at a random phase, but not at the phase that drains the queue (4.3.4.3).
    fn probe_bandwidth(&mut self, now: Time, rng: &mut Rng) {
        self.state = State::ProbeBandwidth;
        self.window_gain = WINDOW_GAIN;
        let drawn = rng.below(CYCLE.len() as u64 - 1) as usize;
        self.set_phase(if drawn == 0 { 0 } else { drawn + 1 }, now);
    }

    fn update_rtt(&mut self, sample: &Sample, now: Time) {
        self.rtt_expired = self.rtt.is_some() && now > self.rtt_at + RTT_MEMORY;
        if let Some(rtt) = sample.rtt
            && (self.rtt_expired || self.rtt.is_none_or(|lowest| rtt <= lowest))
        {
            self.rtt = Some(rtt);
            self.rtt_at = now;
        }
    }

    fn check_probe_rtt(&mut self, window: &mut CongestionWindow, seen: &Seen, rng: &mut Rng) {
        if self.state != State::ProbeRtt && self.rtt_expired {
            self.state = State::ProbeRtt;
            (self.pacing_gain, self.window_gain) = (1.0, 1.0);
            self.probe_ends = None;
            self.save(window);
        }
        if self.state != State::ProbeRtt {
            return;
        }
        self.delivery.limit(seen.inflight);
        match self.probe_ends {
            None if f64::from(seen.inflight) <= FEW => {
                self.probe_ends = Some(seen.now + PROBE_RTT_TIME);
                self.probe_round_done = false;
                self.round_end = self.delivery.delivered;
            }
            None => {}
            Some(ends) => {
                self.probe_round_done |= self.round_starts;
                if self.probe_round_done && seen.now > ends {
                    self.rtt_at = seen.now;
                    window.set(window.packets().max(self.prior_window));
                    if self.is_full {
                        self.probe_bandwidth(seen.now, rng);
                    } else {
                        self.state = State::StartUp;
                        (self.pacing_gain, self.window_gain) = (HIGH_GAIN, HIGH_GAIN);
                    }
                }
            }
        }
    }

    /// Saves the window (4.2.3.4, `BBRSaveCwnd`).
    fn save(&mut self, window: &CongestionWindow) {
        let undisturbed = !self.recovering && !self.after_timeout && self.state != State::ProbeRtt;
        self.prior_window =
            if undisturbed { window.packets() } else { self.prior_window.max(window.packets()) };
    }

    fn set_pacing(&mut self, window: &CongestionWindow) {
        let bandwidth = self.bandwidth.max();
        let pacing = match self.rtt {
            Some(rtt) if bandwidth == 0.0 => HIGH_GAIN * window.packets() / rtt.as_secs_f64().max(FIRST_RTT),
            _ => self.pacing_gain * bandwidth,
        };
        if pacing > 0.0 && (self.is_full || pacing > self.pacing || self.bandwidth.is_first()) {
            self.pacing = pacing;
        }
    }

    /// Sets the window (4.2.3.6, `BBRSetCwnd`).
    fn set_window(&mut self, window: &mut CongestionWindow, seen: &Seen, newly: f64) {
        let mut cwnd = window.packets();
        let inflight = f64::from(seen.inflight);
        if seen.recovering && !self.recovering {
            cwnd = inflight + newly.max(1.0);
            self.conserving = true;
            self.round_end = self.delivery.delivered;
        } else if self.round_starts {
            self.conserving = false;
        }
        let recovered = self.recovering && !seen.recovering || self.after_timeout && !seen.after_timeout;
        (self.recovering, self.after_timeout) = (seen.recovering, self.after_timeout && seen.after_timeout);
        if recovered {
            self.conserving = false;
            cwnd = cwnd.max(self.prior_window);
        }
        let target = self.inflight(self.window_gain);
        if self.conserving {
            cwnd = cwnd.max(inflight + newly);
        } else if self.is_full {
            cwnd = (cwnd + newly).min(target);
        } else if cwnd < target || (self.delivery.delivered as f64) < self.initial_window {
            cwnd += newly;
        }
        if !self.conserving {
            cwnd = cwnd.max(FEW);
        }
        if self.state == State::ProbeRtt {
            cwnd = cwnd.min(FEW);
        }
        window.set(cwnd);
    }

    /// Saves the window before a reduction, so that it can be restored afterwards.
    pub(super) fn on_reduction(&mut self, window: &CongestionWindow) {
        self.save(window);
    }

    /// Processes an expiry of the retransmission timer.
    pub(in crate::tcp) const fn on_timeout(&mut self) {
        self.recovering = false;
        self.conserving = false;
        self.after_timeout = true;
    }
}

/// The maximum of the samples of the latest [`BANDWIDTH_ROUNDS`] rounds, computed from the three best samples (Linux,
/// `win_minmax`).
#[derive(Debug, Clone, Default)]
pub(super) struct MaxFilter {
    best: [(u64, f64); 3],
    samples: u64,
}

impl MaxFilter {
    pub(super) const fn max(&self) -> f64 {
        self.best[0].1
    }

    const fn is_first(&self) -> bool {
        self.samples == 1
    }

    pub(super) fn update(&mut self, round: u64, value: f64) {
        self.samples += 1;
        let new = (round, value);
        if value >= self.best[0].1 || round - self.best[2].0 > BANDWIDTH_ROUNDS {
            self.best = [new; 3];
            return;
        }
        if value >= self.best[1].1 {
            (self.best[1], self.best[2]) = (new, new);
        } else if value >= self.best[2].1 {
            self.best[2] = new;
        }
        let age = round - self.best[0].0;
        if age > BANDWIDTH_ROUNDS {
            self.best = [self.best[1], self.best[2], new];
            if round - self.best[0].0 > BANDWIDTH_ROUNDS {
                self.best = [self.best[1], self.best[2], new];
            }
        } else if self.best[1].0 == self.best[0].0 && age > BANDWIDTH_ROUNDS / 4 {
            (self.best[1], self.best[2]) = (new, new);
        } else if self.best[2].0 == self.best[1].0 && age > BANDWIDTH_ROUNDS / 2 {
            self.best[2] = new;
        }
    }
}
