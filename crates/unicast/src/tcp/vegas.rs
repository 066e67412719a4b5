//! TCP Vegas with ns-2's rules (`tcp-vegas.cc`; Brakmo and Peterson 1995). Once per round trip, Vegas computes the number of its
//! queued packets from the expected and the actual rate. It adapts the window so that [`ALPHA`] to [`BETA`] packets are queued.

use super::config::Handshake;
use super::tcb::{ControlBlock, DUPLICATES, Reaction};
use super::window::CongestionWindow;
use crate::Ack;
use faircast_core::time::Time;

/// Number of queued packets below which the window grows.
const ALPHA: i64 = 1;
/// Number of queued packets above which the window shrinks.
const BETA: i64 = 3;
/// Number of queued packets above which slow start ends.
const GAMMA: i64 = 1;
/// Window after a timeout.
const RESTART_WINDOW: f64 = 2.0;

/// A sent packet that may be outstanding.
#[derive(Debug, Clone, Copy, Default)]
struct OutstandingPacket {
    sent_at: Time,
    times: u32,
}

/// State of Vegas in addition to the window.
#[derive(Debug, Clone, Default)]
pub(super) struct Vegas {
    /// A ring by packet number.
    out: Vec<OutstandingPacket>,
    started_at: Option<Time>,
    measured: bool,
    /// First packet of the present round.
    round_from: u32,
    round_began: Time,
    samples: u32,
    /// Sum of the round's samples, in seconds.
    sum: f64,
    /// Lowest round-trip time, in seconds.
    base: f64,
    /// Smoothed round-trip time and its deviation, in seconds.
    smoothed: f64,
    deviation: f64,
    /// Age above which an outstanding packet counts as lost, in seconds since its transmission.
    timeout: f64,
    /// Growth of the window per acknowledgement, in packets.
    growth: f64,
    /// Whether the window stays unchanged in this round of slow start. In slow start, the window grows only in every other round.
    resting: bool,
    /// Number of further acknowledgements of new data at which the first outstanding packet is checked for a loss.
    worried: u32,
    /// Window after the latest loss.
    deflated: f64,
    changed_at: Time,
}

impl Vegas {
    /// Records that packet `seq` is sent now. `una` is the first packet that may be outstanding.
    pub(super) fn on_sent(&mut self, seq: u32, una: u32, now: Time) {
        self.started_at.get_or_insert(now);
        let span = (seq.max(una) - una.min(seq)) as usize + 1;
        if span > self.out.len() {
            self.widen(span.next_power_of_two().max(16), una);
        }
        let out = self.at(seq);
        out.sent_at = now;
        out.times += 1;
    }

    fn widen(&mut self, size: usize, una: u32) {
        let old = std::mem::replace(&mut self.out, vec![OutstandingPacket::default(); size]);
        for seq in una..una + old.len() as u32 {
            self.out[seq as usize & (size - 1)] = old[seq as usize & (old.len() - 1)];
        }
    }

    fn at(&mut self, seq: u32) -> &mut OutstandingPacket {
        let mask = self.out.len() - 1;
        &mut self.out[seq as usize & mask]
    }

    /// Adds a sample of the round-trip time, in seconds, and updates the fine-grained timeout.
    fn sample(&mut self, rtt: f64) {
        self.base = self.base.min(rtt);
        let error = rtt - self.smoothed;
        self.smoothed += error / 8.0;
        self.deviation += (error.abs() - self.deviation) / 4.0;
        self.timeout = (self.smoothed + 2.0 * self.deviation) * (17.0 / 16.0);
    }

    /// Processes the first acknowledgement.
    fn begin(&mut self, now: Time) {
        let rtt = now.since(self.started_at.unwrap_or(now)).as_secs_f64();
        self.measured = true;
        self.round_began = self.started_at.unwrap_or(now);
        self.changed_at = self.round_began;
        self.base = rtt;
        self.smoothed = rtt;
        self.deviation = rtt / 4.0;
        self.timeout = 1.5 * rtt;
    }

    /// Returns whether packet `seq` has been outstanding for at least the fine-grained timeout.
    fn is_late(&mut self, seq: u32, now: Time) -> bool {
        let timeout = self.timeout;
        now.since(self.at(seq).sent_at).as_secs_f64() >= timeout
    }

    /// Processes an acknowledgement, which may be old.
    pub(super) fn on_ack(&mut self, tcb: &mut ControlBlock, ack: &Ack, echo: bool, now: Time) {
        if ack.next < tcb.una || tcb.max == 0 || ack.syn {
            return;
        }
        if !self.measured {
            self.begin(now);
        }
        if ack.next > tcb.una {
            self.on_advance(tcb, ack, echo, now);
        } else if tcb.una < tcb.max {
            self.on_duplicate(tcb, now);
        }
    }

    fn on_advance(&mut self, tcb: &mut ControlBlock, ack: &Ack, echo: bool, now: Time) {
        if tcb.una == 1 && tcb.config.handshake == Handshake::Syn {
            tcb.window.set(f64::from(tcb.initial_window)); // ns-2's `delay_growth_`
        }
        if tcb.duplicates > DUPLICATES && tcb.window.packets() > self.deflated {
            tcb.window.set(self.deflated.max(1.0));
            tcb.window.set_threshold(2.0);
        }
        let before = tcb.una;
        tcb.advance(ack, echo, now);
        if ack.next > self.round_from {
            self.end_round(&mut tcb.window, tcb.una, tcb.nxt, now);
        }
        self.grow(&mut tcb.window, tcb.nxt - tcb.una + 1);
        self.forget(before, ack.next, now);
        if self.worried > 0 {
            self.worried -= 1;
            let next = ack.next;
            if next < tcb.max && self.is_late(next, now) {
                tcb.duplicates = DUPLICATES;
                tcb.urgent = next;
            } else {
                self.worried = 0;
            }
        }
    }

    /// Grows the window at an acknowledgement, by the amount computed at the end of the latest round. `out` is the number of
    /// outstanding packets.
    fn grow(&mut self, window: &mut CongestionWindow, out: u32) {
        if self.growth >= 1.0 && !window.is_in_slow_start() {
            self.growth = 0.0;
        }
        // The window grows only while the sender makes full use of it.
        if window.packets() - f64::from(out) <= 2.0 {
            window.set(window.packets() + self.growth);
        }
    }

    /// Removes packets `before..next`, which have arrived. If the newest of these packets was sent once, it gives a sample of the
    /// round-trip time.
    fn forget(&mut self, before: u32, next: u32, now: Time) {
        let newest = *self.at(next - 1);
        for seq in before..next {
            *self.at(seq) = OutstandingPacket::default();
        }
        if newest.times == 1 && Some(newest.sent_at) != self.started_at {
            let rtt = now.since(newest.sent_at).as_secs_f64();
            self.sum += rtt;
            self.samples += 1;
            if rtt > 0.0 {
                self.sample(rtt);
            }
        }
    }

    /// Ends a round and adapts the window to the number of queued packets.
    fn end_round(&mut self, window: &mut CongestionWindow, una: u32, nxt: u32, now: Time) {
        let out = f64::from(nxt - una + 1);
        let samples = f64::from(self.samples);
        let rtt = match self.samples {
            0 => now.since(self.round_began).as_secs_f64(),
            _ => self.sum / samples,
        };
        self.sum = 0.0;
        self.samples = 0;
        let sent = nxt - self.round_from;
        self.round_from = nxt;
        self.round_began = now;
        if rtt <= 0.0 {
            return;
        }
        if rtt < self.base || sent <= 1 {
            self.base = rtt;
        }
        let queued = (out - f64::from(sent) * self.base / rtt + 0.5) as i64;
        if window.is_in_slow_start() {
            self.resting = !self.resting;
            self.growth = f64::from(u8::from(!self.resting && queued <= GAMMA));
            if !self.resting && queued > GAMMA {
                window.set_threshold(2.0);
                window.set((window.packets() * 0.875).max(2.0));
            }
        } else if queued > BETA {
            self.growth = 0.0;
            window.set((window.packets() - 1.0).max(2.0));
        } else {
            self.growth = if queued < ALPHA { 1.0 / window.packets() } else { 0.0 };
        }
    }

    fn on_duplicate(&mut self, tcb: &mut ControlBlock, now: Time) {
        tcb.duplicates += 1;
        let late = self.is_late(tcb.una, now);
        if !late && tcb.duplicates != DUPLICATES {
            if tcb.duplicates > DUPLICATES {
                tcb.window.set(tcb.window.packets() + 1.0);
            }
            return;
        }
        if tcb.una <= tcb.recover && tcb.reaction == Reaction::Timeout {
            return;
        }
        tcb.reaction = Reaction::FastRetransmit;
        tcb.recover = tcb.max;
        self.worried = (tcb.nxt - tcb.una + 1).min(2);
        let out = *self.at(tcb.una);
        self.timeout *= if out.times > 1 { 2.0 } else { 1.125 };
        // The window is cut only if it was not already cut after the lost packet was sent.
        if self.changed_at < out.sent_at {
            let window = tcb.window.packets() as u32;
            let left = match window {
                0..=3 => 2,
                _ if out.times > 1 => window / 2,
                _ => window - window / 4,
            };
            self.deflated = f64::from(left);
            self.changed_at = now;
            tcb.window.reduce_window(f64::from(left) + f64::from(tcb.duplicates));
        }
        tcb.timer.rtt.back_off(&tcb.config);
        tcb.timer.rewind(now);
        tcb.urgent = tcb.una;
        if out.times == 1 {
            tcb.duplicates = DUPLICATES;
        }
    }

    /// Records a reduction of the window because of congestion at another connection.
    pub(super) const fn on_reduction(&mut self, window: &CongestionWindow, now: Time) {
        self.deflated = window.packets();
        self.changed_at = now;
    }

    /// Processes an expiry of the retransmission timer.
    pub(super) fn on_timeout(&mut self, tcb: &mut ControlBlock, now: Time) {
        let half = tcb.half();
        tcb.reduce(half, RESTART_WINDOW);
        self.deflated = 0.0;
        self.changed_at = now;
    }
}
