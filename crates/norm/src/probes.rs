//! The probes of a session: their numbers, and the clock of their times on the wire.

use faircast_core::packet::Seq;
use faircast_core::time::Time;
use std::collections::VecDeque;

/// Number of probes whose times of sending are stored.
const STORED: usize = 256;

/// A sent probe.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probe {
    sequence: u16,
    /// Packet number of the scheme; `None` for a probe without data packets before it.
    pub(super) seq: Option<Seq>,
    /// Whether data was sent all the time for which a receiver measures its received rate.
    pub(super) is_settled: bool,
    /// Time of sending, in whole microseconds as on the wire.
    pub(super) sent_at: Time,
    /// Feedback round of the scheme.
    pub(super) round: u8,
}

/// The latest probes.
#[derive(Debug)]
pub(super) struct Probes {
    /// Start of session time, in seconds since 1970.
    unix_secs: u64,
    sequence: u16,
    sent: VecDeque<Probe>,
}

impl Probes {
    pub(super) fn new(unix_secs: u64) -> Probes {
        Probes { unix_secs, sequence: 0, sent: VecDeque::with_capacity(STORED) }
    }

    /// Returns the number of the next probe.
    pub(super) fn next_sequence(&mut self) -> u16 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }

    /// Records that the newest probe was sent.
    pub(super) fn record(&mut self, (seq, round): (Option<Seq>, u8), is_settled: bool, now: Time) {
        if self.sent.len() == STORED {
            self.sent.pop_front();
        }
        let sent_at = Time::from_nanos(now.as_nanos() / 1_000 * 1_000);
        self.sent.push_back(Probe { sequence: self.sequence, seq, is_settled, sent_at, round });
    }

    /// Returns the wire's form of a time: seconds and microseconds.
    pub(super) fn wire_time(&self, now: Time) -> (u32, u32) {
        let (secs, nanos) = (now.as_nanos() / 1_000_000_000, now.as_nanos() % 1_000_000_000);
        ((self.unix_secs + secs) as u32, (nanos / 1_000) as u32)
    }

    /// Returns the probe that an answer names, and the time that the answer repeats: the sending time of the probe plus the time
    /// for which the receiver held it. `None` for an unknown probe, or an impossible time.
    pub(super) fn answered(
        &self,
        sequence: u16,
        (secs, micros): (u32, u32),
        now: Time,
    ) -> Option<(Probe, Time)> {
        let probe = *self.sent.iter().rev().find(|probe| probe.sequence == sequence)?;
        let secs = u64::from(secs.wrapping_sub(self.unix_secs as u32));
        let answered = Time::from_nanos(secs * 1_000_000_000 + u64::from(micros) * 1_000);
        (probe.sent_at <= answered && answered <= now).then_some((probe, answered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::time::Span;

    #[test]
    fn only_possible_times_of_known_probes_are_answers() {
        let mut probes = Probes::new(u64::from(u32::MAX) - 1); // the seconds wrap during the session
        let sent_at = Time::ZERO + Span::from_nanos(3_000_001_999);
        let sequence = probes.next_sequence();
        probes.record((Some(Seq(9)), 4), true, sent_at);
        let now = sent_at + Span::from_millis(5);
        let (secs, micros) = probes.wire_time(sent_at);
        assert_eq!((secs, micros), (1, 1));
        let (probe, answered) =
            probes.answered(sequence, (secs, micros + 2_000), now).expect("it is possible");
        assert_eq!((probe.seq, probe.round), (Some(Seq(9)), 4));
        assert_eq!(now.since(answered).as_nanos(), 3_000_999);
        for (sequence, time) in [(2, (1, 1)), (1, (1, 0)), (1, (1, 9_000)), (1, (0, 0)), (1, (9, 0))] {
            assert!(probes.answered(sequence, time, now).is_none(), "{sequence} {time:?}");
        }
        (0..300).for_each(|_| {
            probes.next_sequence();
            probes.record((None, 4), false, now);
        });
        assert!(probes.answered(sequence, (1, 1), now).is_none());
    }
}
