//! Decides whether several packets are passed to the kernel in one call; the kernel then splits them (segmentation offload).
//!
//! A kernel that forwards multicast drops bursts that are not segmented yet, but forwards single packets. This affects a source
//! in a container or virtual machine behind a multicast router on the same host. Receivers then get no packets, or only packets
//! that were sent one at a time. The source detects this from the packet numbers that receivers echo.

use faircast_core::packet::Seq;
use faircast_core::time::{Span, Time};

/// Maximum number of datagrams that the kernel accepts in one call (UDP_MAX_SEGMENTS in older kernels).
pub(super) const MAX_SEGMENTS: usize = 64;

/// Number of the latest packets for which the source records whether they were sent in a burst.
const KNOWN: u64 = 4_096;

/// Bursts count as lost when this number of echoes of burst packets was expected and none has arrived. The probability that this
/// conclusion is wrong is e^-10.
const DOUBT: f64 = 10.0;

/// Duration of a trial in which unreached receivers get single packets.
const TRIED_FOR: Span = Span::from_secs(10);

/// Burst mode, and evidence of the arrival of bursts.
#[derive(Debug)]
pub(super) struct Bursts {
    state: State,
    /// A bit for each of the latest packets: set if the packet was sent in a burst.
    together: Vec<u64>,
    /// Number of packets sent since the last new echo of a receiver: all packets, and packets in bursts.
    left: (u32, u32),
    /// Expected number of echoes of burst packets so far, while no burst packet has been echoed.
    doubt: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Bursts are sent; no packet of a burst has been echoed yet.
    Unknown,
    /// Bursts are sent; they arrive.
    Pass,
    /// Single packets are sent as a trial, because a receiver is not reached.
    Tried { since: Time },
    /// Bursts are sent again, because a trial of single packets did not reach the receiver.
    InVain,
    /// Single packets are sent, because bursts do not arrive.
    OneByOne,
}

impl Bursts {
    pub(super) fn new() -> Bursts {
        Bursts { state: State::Unknown, together: vec![0; KNOWN as usize / 64], left: (0, 0), doubt: 0.0 }
    }

    /// Creates the state for single packets: without feedback, the source cannot detect whether bursts arrive.
    pub(super) fn one_by_one() -> Bursts {
        Bursts { state: State::OneByOne, ..Bursts::new() }
    }

    /// Returns the maximum number of packets per call.
    pub(super) const fn most(&self) -> usize {
        match self.state {
            State::Unknown | State::Pass | State::InVain => MAX_SEGMENTS,
            State::Tried { .. } | State::OneByOne => 1,
        }
    }

    /// Records that `count` packets of the base layer were sent in one call, from number `first` on.
    pub(super) fn on_sent(&mut self, first: Seq, count: u32) {
        if self.state != State::Unknown {
            return;
        }
        for seq in first.0..first.0 + u64::from(count) {
            let (word, bit) = (seq % KNOWN / 64, 1 << (seq % 64));
            match count {
                1 => self.together[word as usize] &= !bit,
                _ => self.together[word as usize] |= bit,
            }
        }
        self.left.0 += count;
        self.left.1 += if count > 1 { count } else { 0 };
    }

    /// Records that a receiver echoes a new packet number `seq`; `next` is the number of the next packet. Returns whether this
    /// proves that bursts do not arrive.
    pub(super) fn on_echo(&mut self, seq: Seq, next: Seq) -> bool {
        if self.state != State::Unknown || seq.0 + KNOWN <= next.0 || self.left.0 == 0 {
            return false;
        }
        if self.together[(seq.0 % KNOWN / 64) as usize] & 1 << (seq.0 % 64) != 0 {
            self.state = State::Pass;
            return false;
        }
        let (all, together) = std::mem::take(&mut self.left);
        self.doubt += f64::from(together) / f64::from(all);
        let is_certain = self.doubt >= DOUBT;
        if is_certain {
            self.state = State::OneByOne;
        }
        is_certain
    }

    /// Handles the result of a check of the receivers. `found` states whether an unreached receiver was found; `left` is the
    /// number of receivers that are still unreached. Returns whether the result proves that bursts do not arrive.
    pub(super) fn on_unreached(&mut self, found: bool, left: usize, now: Time) -> bool {
        match self.state {
            State::Unknown | State::Pass if found => self.state = State::Tried { since: now },
            State::Tried { .. } if left == 0 => {
                self.state = State::OneByOne;
                return true;
            }
            State::Tried { since } if now.since(since) >= TRIED_FOR => self.state = State::InVain,
            _ => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends rounds of 100 packets, half of them in bursts of five. After each round, receivers echo the newest packet that
    /// `named` accepts.
    fn rounds(count: u64, named: impl Fn(u64) -> bool) -> (Bursts, Option<u64>) {
        let (mut bursts, mut next, mut found) = (Bursts::new(), 0, None);
        for round in 0..count {
            let first = next;
            for _ in 0..10 {
                bursts.on_sent(Seq(next), 5);
                (5..10).for_each(|single| bursts.on_sent(Seq(next + single), 1));
                next += 10;
            }
            let newest = (first..next).rev().find(|seq| named(*seq)).expect("some are");
            if bursts.on_echo(Seq(newest), Seq(next)) {
                found = Some(round);
            }
        }
        (bursts, found)
    }

    #[test]
    fn bursts_stop_if_only_single_packets_are_echoed() {
        let (bursts, found) = rounds(30, |seq| seq % 10 >= 5);
        assert_eq!((bursts.most(), found), (1, Some(19)), "half of the packets, twice ten names");
    }

    #[test]
    fn one_echoed_burst_packet_proves_that_bursts_arrive() {
        let (bursts, found) = rounds(100, |seq| if seq / 100 == 18 { seq == 1_894 } else { seq % 10 >= 5 });
        assert_eq!((bursts.most(), found, bursts.state), (MAX_SEGMENTS, None, State::Pass));
    }

    #[test]
    fn echoes_of_old_packets_do_not_end_bursts() {
        let mut bursts = Bursts::new();
        for first in 0..2_000 {
            bursts.on_sent(Seq(first * 5), 5);
            assert!(!bursts.on_echo(Seq(0), Seq(first * 5 + KNOWN)));
        }
        assert_eq!(bursts.most(), MAX_SEGMENTS);
    }

    #[test]
    fn single_packets_are_tried_once_per_unreached_receiver() {
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        let mut helps = Bursts::new();
        assert!(!helps.on_unreached(true, 2, at(5)) && helps.most() == 1);
        assert!(!helps.on_unreached(false, 1, at(6)));
        assert!(helps.on_unreached(false, 0, at(7)) && helps.most() == 1);
        let mut vain = Bursts::new();
        for second in 0..60 {
            assert!(!vain.on_unreached(second % 20 == 5, 1, at(second)));
            assert_eq!(vain.most() == 1, (5..15).contains(&second), "{second}");
        }
    }
}
