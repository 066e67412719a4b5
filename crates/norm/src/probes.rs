//! The probes of a session: their numbers, the clock of their times on the wire, and the reports in their answers.

use super::codec::{CcReport, cc_flags, quantities};
use faircast_core::packet::{Echo, Knows, ReportContent, Seq};
use faircast_core::rate::formula::Path;
use faircast_core::time::{Span, Time};
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

impl Probe {
    /// Returns the report of a receiver for the scheme; `None` for a probe without data packets before it. `answered` is the time
    /// from [`Probes::answered`], followed by the round-trip time and the packet size.
    pub(super) fn report(
        &self,
        cc: &CcReport,
        answered: Time,
        (rtt, packet_size): (Span, u16),
    ) -> Option<ReportContent> {
        let has = |flag: u8| cc.flags & flag != 0;
        let mut rate = quantities::rate_of(cc.rate);
        // A receiver reports at most twice its received rate. After a pause this is no statement about the path.
        if !has(cc_flags::START) && !self.is_settled && cc.loss > 0 {
            rate = rate.max(Path::new(packet_size, rtt).tcp_rate(quantities::loss_of(cc.loss)));
        }
        let known = [
            (has(cc_flags::RTT), Knows::RTT),
            (!has(cc_flags::START), Knows::LOSS),
            (has(cc_flags::LEAVE), Knows::LEAVING),
        ];
        let knows = known.iter().filter(|(is_known, _)| *is_known);
        Some(ReportContent::Calculated {
            echo: Echo { seq: self.seq?, hold: answered.since(self.sent_at) },
            rate: rate.bps() as f32,
            stamp: 0,
            round: self.round,
            knows: knows.fold(Knows::default(), |all, (_, one)| all.with(*one)),
        })
    }
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
    #[test]
    fn reported_rate_after_a_pause_is_at_least_that_of_the_losses() {
        let mut probe =
            Probe { sequence: 1, seq: Some(Seq(3)), is_settled: true, sent_at: Time::ZERO, round: 5 };
        // 1,000 bytes per second, and a loss event rate of one percent.
        let cc = CcReport { sequence: 1, flags: cc_flags::RTT, rtt: 100, loss: 655, rate: 410 << 4 | 3 };
        let rate = |probe: &Probe, cc: &CcReport| {
            let Some(ReportContent::Calculated { rate, knows, .. }) =
                probe.report(cc, Time::ZERO, (Span::from_millis(100), 1_000))
            else {
                panic!("there was data");
            };
            (rate, knows)
        };
        let known = Knows::RTT.with(Knows::LOSS);
        assert!((rate(&probe, &cc).0 - 8_000.0).abs() < 20.0 && rate(&probe, &cc).1 == known);
        probe.is_settled = false;
        assert!(rate(&probe, &cc).0 > 500_000.0);
        // A received rate from the start phase stays.
        let start = CcReport { flags: cc_flags::RTT | cc_flags::START, ..cc };
        assert!((rate(&probe, &start).0 - 8_000.0).abs() < 20.0 && rate(&probe, &start).1 == Knows::RTT);
        probe.seq = None;
        assert_eq!(probe.report(&cc, Time::ZERO, (Span::from_millis(100), 1_000)), None);
    }
}
