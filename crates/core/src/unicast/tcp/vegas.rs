//! TCP Vegas with ns-2's rules (`tcp-vegas.cc`; Brakmo and Peterson 1995): once per round trip it compares the expected
//! rate with the actual one and keeps between [`ALPHA`] and [`BETA`] packets queued.

use super::config::Handshake;
use super::sender::{DUPLICATES, Reaction, Sender};
use crate::time::Time;
use crate::unicast::Ack;

/// Fewer packets queued: faster.
const ALPHA: i64 = 1;
/// More packets queued: slower.
const BETA: i64 = 3;
/// More packets queued: slow start ends.
const GAMMA: i64 = 1;
/// Window after a timeout.
const RESTART_WINDOW: f64 = 2.0;

/// A packet that is out.
#[derive(Debug, Clone, Copy, Default)]
struct Out {
    sent_at: Time,
    times: u32,
}

/// What Vegas remembers beyond a window.
#[derive(Debug, Clone, Default)]
pub(super) struct Rounds {
    /// A ring by packet number.
    out: Vec<Out>,
    started_at: Option<Time>,
    measured: bool,
    /// First packet of the present round.
    round_from: u32,
    round_began: Time,
    samples: u32,
    /// Sum of the round's samples, in seconds.
    sum: f64,
    /// Lowest round trip, in seconds.
    base: f64,
    /// Smoothed round trip and deviation, in seconds.
    smoothed: f64,
    deviation: f64,
    /// Age from which on a packet counts as lost, in seconds.
    timeout: f64,
    /// Growth per acknowledgement.
    growth: f64,
    /// In slow start the window grows every other round.
    resting: bool,
    /// So many new acknowledgements are still checked for losses.
    worried: u32,
    /// Window after the latest loss.
    deflated: f64,
    changed_at: Time,
}

impl Rounds {
    /// Packet `seq` leaves now; all from `una` on may be out.
    pub(super) fn on_send(&mut self, seq: u32, una: u32, now: Time) {
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
        let old = std::mem::replace(&mut self.out, vec![Out::default(); size]);
        for seq in una..una + old.len() as u32 {
            self.out[seq as usize & (size - 1)] = old[seq as usize & (old.len() - 1)];
        }
    }

    fn at(&mut self, seq: u32) -> &mut Out {
        let mask = self.out.len() - 1;
        &mut self.out[seq as usize & mask]
    }

    /// A round trip, in seconds: the fine-grained timeout.
    fn sample(&mut self, rtt: f64) {
        self.base = self.base.min(rtt);
        let error = rtt - self.smoothed;
        self.smoothed += error / 8.0;
        self.deviation += (error.abs() - self.deviation) / 4.0;
        self.timeout = (self.smoothed + 2.0 * self.deviation) * (17.0 / 16.0);
    }

    /// The first acknowledgement.
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

    /// Whether packet `seq` has been out for too long.
    fn is_late(&mut self, seq: u32, now: Time) -> bool {
        let timeout = self.timeout;
        now.since(self.at(seq).sent_at).as_secs_f64() >= timeout
    }
}

impl Sender {
    fn rounds(&mut self) -> &mut Rounds {
        self.vegas.get_or_insert_default()
    }

    pub(super) fn on_vegas(&mut self, ack: &Ack, echo: bool, now: Time) {
        if ack.next < self.una || self.max == 0 || ack.syn {
            return;
        }
        if !self.rounds().measured {
            self.rounds().begin(now);
        }
        if ack.next > self.una {
            self.on_vegas_advance(ack, echo, now);
        } else if self.una < self.max {
            self.on_vegas_duplicate(now);
        }
    }

    fn on_vegas_advance(&mut self, ack: &Ack, echo: bool, now: Time) {
        if self.una == 1 && self.config.handshake == Handshake::Syn {
            self.cwnd = f64::from(self.config.initial_window); // ns-2's `delay_growth_`
        }
        if self.duplicates > DUPLICATES && self.cwnd > self.rounds().deflated {
            self.cwnd = self.rounds().deflated.max(1.0);
            self.ssthresh = 2.0;
        }
        let before = self.una;
        self.advance(ack, echo, now);
        if ack.next > self.rounds().round_from {
            self.end_round(now);
        }
        let out = f64::from(self.nxt - self.una + 1);
        if self.rounds().growth >= 1.0 && self.cwnd >= self.ssthresh {
            self.rounds().growth = 0.0;
        }
        // Not while the sender does not use its window.
        if self.cwnd - out <= 2.0 {
            self.cwnd += self.rounds().growth;
        }
        self.forget(before, ack.next, now);
        if self.rounds().worried > 0 {
            self.rounds().worried -= 1;
            let next = ack.next;
            if next < self.max && self.rounds().is_late(next, now) {
                self.duplicates = DUPLICATES;
                self.urgent = next;
            } else {
                self.rounds().worried = 0;
            }
        }
    }

    /// Packets `before..next` have arrived; the newest gives a sample if it was sent once.
    fn forget(&mut self, before: u32, next: u32, now: Time) {
        let rounds = self.rounds();
        let newest = *rounds.at(next - 1);
        for seq in before..next {
            *rounds.at(seq) = Out::default();
        }
        if newest.times == 1 && Some(newest.sent_at) != rounds.started_at {
            let rtt = now.since(newest.sent_at).as_secs_f64();
            rounds.sum += rtt;
            rounds.samples += 1;
            if rtt > 0.0 {
                rounds.sample(rtt);
            }
        }
    }

    /// Once per round trip: how many packets are queued?
    fn end_round(&mut self, now: Time) {
        let nxt = self.nxt;
        let out = f64::from(nxt - self.una + 1);
        let window = self.cwnd;
        let slow_start = window < self.ssthresh;
        let rounds = self.rounds();
        let samples = f64::from(rounds.samples);
        let rtt = match rounds.samples {
            0 => now.since(rounds.round_began).as_secs_f64(),
            _ => rounds.sum / samples,
        };
        rounds.sum = 0.0;
        rounds.samples = 0;
        let sent = nxt - rounds.round_from;
        rounds.round_from = nxt;
        rounds.round_began = now;
        if rtt <= 0.0 {
            return;
        }
        if rtt < rounds.base || sent <= 1 {
            rounds.base = rtt;
        }
        let queued = (out - f64::from(sent) * rounds.base / rtt + 0.5) as i64;
        if slow_start {
            rounds.resting = !rounds.resting;
            rounds.growth = f64::from(u8::from(!rounds.resting && queued <= GAMMA));
            if !rounds.resting && queued > GAMMA {
                self.ssthresh = 2.0;
                self.cwnd = (self.cwnd * 0.875).max(2.0);
            }
        } else if queued > BETA {
            rounds.growth = 0.0;
            self.cwnd = (self.cwnd - 1.0).max(2.0);
        } else {
            rounds.growth = if queued < ALPHA { 1.0 / window } else { 0.0 };
        }
    }

    fn on_vegas_duplicate(&mut self, now: Time) {
        self.duplicates += 1;
        let una = self.una;
        let late = self.rounds().is_late(una, now);
        if !late && self.duplicates != DUPLICATES {
            if self.duplicates > DUPLICATES {
                self.cwnd += 1.0;
            }
            return;
        }
        if self.una <= self.recover && self.reaction == Reaction::Timeout {
            return;
        }
        let window = self.cwnd as u32;
        self.reaction = Reaction::FastRetransmit;
        self.recover = self.max;
        let duplicates = f64::from(self.duplicates);
        let worried = (self.nxt - self.una + 1).min(2);
        let rounds = self.rounds();
        rounds.worried = worried;
        let out = *rounds.at(una);
        rounds.timeout *= if out.times > 1 { 2.0 } else { 1.125 };
        // Only if the window has not been cut since the packet left.
        if rounds.changed_at < out.sent_at {
            let left = match window {
                0..=3 => 2,
                _ if out.times > 1 => window / 2,
                _ => window - window / 4,
            };
            rounds.deflated = f64::from(left);
            rounds.changed_at = now;
            self.cwnd = f64::from(left) + duplicates;
            self.cuts += 1;
        }
        self.rtt.back_off(&self.config);
        self.rewind(now);
        self.urgent = una;
        if out.times == 1 {
            self.duplicates = DUPLICATES;
        }
    }

    pub(super) fn on_vegas_timeout(&mut self, now: Time) {
        let half = self.half();
        self.cut(half, RESTART_WINDOW);
        let rounds = self.rounds();
        rounds.deflated = 0.0;
        rounds.changed_at = now;
    }
}
