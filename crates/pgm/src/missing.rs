//! Missing packets of a receiver, and the times at which the receiver requests them (RFC 3208, 6.3).
//!
//! ```text
//!                  NAK sent              confirmed
//!   BackOff ------------------> WaitNcf ----------> WaitData ----> there
//!      ^    (or NCF heard: straight to WaitData)       |
//!      +----- no confirmation, or no data, in time ----+      after too many times: given up
//! ```

use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Deadlines are rounded up to multiples of this number of nanoseconds. Packets with nearly equal deadlines are therefore
/// requested together.
const TICK: u64 = 4_000_000;

/// Maximum number of packets that are requested at the same time. Other missing packets wait in the order of their numbers. One
/// SPM can make 65,536 packets missing; neither the receiver nor the source can process this number of requests four times a
/// second.
const MAX_ASKED: usize = 512;

/// Timeouts of the states (RFC 3208, 6.3). The default values are in the range that other PGM receivers use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeouts {
    /// Maximum waiting time before a NAK ("NAK_BO_IVL").
    pub(super) back_off: Span,
    /// Waiting time for a confirmation ("NAK_RPT_IVL").
    pub(super) confirmation: Span,
    /// Time for which a receiver waits for the packet after a confirmation ("NAK_RDATA_IVL").
    pub(super) data: Span,
    /// Number of unconfirmed NAKs for a packet above which the packet is given up ("NAK_NCF_RETRIES").
    pub(super) most_unconfirmed: u16,
    /// Number of confirmed NAKs without a repair above which the packet is given up ("NAK_DATA_RETRIES").
    pub(super) most_unanswered: u16,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            back_off: Span::from_millis(50),
            confirmation: Span::from_millis(200),
            data: Span::from_millis(400),
            most_unconfirmed: 50,
            most_unanswered: 50,
        }
    }
}

/// Missing packets. The cost per missing packet does not grow with the number of missing packets.
#[derive(Debug, Default)]
pub(super) struct Missing {
    /// Packets that are requested.
    all: BTreeMap<u64, Entry>,
    /// Deadlines of the packets in `all`.
    due: BTreeSet<(Time, u64)>,
    /// Ranges of missing packets that are not requested yet, by the first number of the range.
    waiting: BTreeMap<u64, Waiting>,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    /// End of the range.
    end: u64,
    /// Time at which the gap was detected.
    since: Time,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    state: State,
    until: Time,
    /// Time at which the packet was moved from `waiting` to `all`.
    begun: Time,
    unconfirmed: u16,
    unanswered: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    BackOff,
    WaitNcf,
    WaitData,
}

/// Result of an expired timer of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Request it now.
    Ask(u64),
    /// Give it up.
    GiveUp(u64),
}

impl Missing {
    /// Returns the earliest deadline.
    pub(super) fn deadline(&self) -> Time {
        let has_room = !self.waiting.is_empty() && self.all.len() <= MAX_ASKED / 2;
        if has_room { Time::ZERO } else { self.due.first().map_or(Time::NEVER, |(at, _)| *at) }
    }

    /// Adds a range of missing packets. Its numbers must be higher than the numbers of all other missing packets.
    pub(super) fn add(&mut self, sqns: Range<u64>, timeouts: &Timeouts, rng: &mut Rng, now: Time) {
        debug_assert!(self.all.last_key_value().is_none_or(|(last, _)| *last < sqns.start));
        if !sqns.is_empty() {
            self.waiting.insert(sqns.start, Waiting { end: sqns.end, since: now });
            self.take_up(timeouts, rng, now);
        }
    }

    /// Moves packets from `waiting` to `all` until `MAX_ASKED` packets are requested.
    fn take_up(&mut self, timeouts: &Timeouts, rng: &mut Rng, now: Time) {
        while self.all.len() < MAX_ASKED
            && let Some((first, row)) = self.waiting.pop_first()
        {
            let until = tick(now + random(timeouts.back_off, rng));
            let entry = Entry { state: State::BackOff, until, begun: now, unconfirmed: 0, unanswered: 0 };
            self.all.insert(first, entry);
            self.due.insert((until, first));
            if first + 1 < row.end {
                self.waiting.insert(first + 1, row);
            }
        }
    }

    /// Removes a packet that has arrived or was given up. Returns whether the packet was missing.
    pub(super) fn remove(&mut self, sqn: u64) -> bool {
        if let Some(entry) = self.all.remove(&sqn) {
            return self.due.remove(&(entry.until, sqn));
        }
        let Some((&first, &row)) = self.waiting.range(..=sqn).next_back().filter(|(_, row)| sqn < row.end)
        else {
            return false;
        };
        self.waiting.remove(&first);
        self.waiting.extend((first < sqn).then_some((first, Waiting { end: sqn, ..row })));
        self.waiting.extend((sqn + 1 < row.end).then_some((sqn + 1, row)));
        true
    }

    /// Records that the source has confirmed a NAK of this or another receiver for packet `sqn`. No further NAK is sent before
    /// the timeout for the packet expires.
    pub(super) fn confirm(&mut self, sqn: u64, timeouts: &Timeouts, now: Time) {
        let Some(entry) = self.all.get_mut(&sqn) else { return };
        self.due.remove(&(entry.until, sqn));
        (entry.state, entry.until) = (State::WaitData, tick(now + timeouts.data));
        self.due.insert((entry.until, sqn));
    }

    /// Removes packets before `trail`, which cannot be repaired.
    pub(super) fn expire(&mut self, trail: u64, mut gone: impl FnMut(Range<u64>)) {
        while let Some(first) = self.all.first_entry().filter(|first| *first.key() < trail) {
            let (sqn, entry) = first.remove_entry();
            self.due.remove(&(entry.until, sqn));
            gone(sqn..sqn + 1);
        }
        while let Some(first) = self.waiting.first_entry().filter(|first| *first.key() < trail) {
            let (sqn, row) = first.remove_entry();
            gone(sqn..row.end.min(trail));
            if trail < row.end {
                self.waiting.insert(trail, row);
            }
        }
    }

    /// Gives up the waiting packets that were already missing at the time `begun`. A packet that was requested since then was
    /// given up, because the source confirmed no request; requests for the waiting packets would also be in vain.
    fn give_up_waiting(&mut self, begun: Time, due: &mut impl FnMut(Due)) {
        self.waiting.retain(|first, row| {
            let stays = row.since > begun;
            if !stays {
                (*first..row.end).for_each(|sqn| due(Due::GiveUp(sqn)));
            }
            stays
        });
    }

    /// Processes the packets whose timers have expired, in the order of their numbers. Removes the packets that are given up.
    pub(super) fn on_time(
        &mut self,
        timeouts: &Timeouts,
        rng: &mut Rng,
        now: Time,
        mut due: impl FnMut(Due),
    ) {
        if self.deadline() > now {
            return;
        }
        let later = self.due.split_off(&(now + Span::from_nanos(1), 0));
        let mut over: Vec<u64> =
            std::mem::replace(&mut self.due, later).into_iter().map(|(_, sqn)| sqn).collect();
        over.sort_unstable();
        let mut unheard = None;
        for sqn in over {
            let Some(entry) = self.all.get_mut(&sqn) else { continue };
            let mut stays = true;
            while stays && entry.until <= now {
                stays = entry.step(sqn, timeouts, rng, now, &mut due);
            }
            if stays {
                self.due.insert((entry.until, sqn));
            } else {
                if entry.state == State::WaitNcf && entry.unanswered == 0 {
                    unheard = unheard.max(Some(entry.begun));
                }
                self.all.remove(&sqn);
            }
        }
        if let Some(begun) = unheard {
            self.give_up_waiting(begun, &mut due);
        }
        self.take_up(timeouts, rng, now);
    }
}

impl Entry {
    /// Processes the timeout of the present state. Returns `false` if the packet is given up.
    fn step(
        &mut self,
        sqn: u64,
        timeouts: &Timeouts,
        rng: &mut Rng,
        now: Time,
        due: &mut impl FnMut(Due),
    ) -> bool {
        let spent = match self.state {
            State::BackOff => {
                due(Due::Ask(sqn));
                (self.state, self.until) = (State::WaitNcf, tick(now + timeouts.confirmation));
                return true;
            }
            State::WaitNcf => {
                self.unconfirmed += 1;
                self.unconfirmed > timeouts.most_unconfirmed
            }
            State::WaitData => {
                self.unanswered += 1;
                self.unanswered > timeouts.most_unanswered
            }
        };
        if spent {
            due(Due::GiveUp(sqn));
            return false;
        }
        // The wait is never zero.
        let wait = random(timeouts.back_off, rng).max(Span::from_micros(1));
        (self.state, self.until) = (State::BackOff, tick(now + wait));
        true
    }
}

/// Rounds a time up to a multiple of [`TICK`].
fn tick(at: Time) -> Time {
    Time::from_nanos(at.as_nanos().div_ceil(TICK).saturating_mul(TICK))
}

/// Returns a random wait between zero and `longest`.
fn random(longest: Span, rng: &mut Rng) -> Span {
    longest.scaled(rng.unit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: Timeouts = Timeouts {
        back_off: Span::from_millis(50),
        confirmation: Span::from_millis(200),
        data: Span::from_millis(400),
        most_unconfirmed: 2,
        most_unanswered: 1,
    };

    struct Stage {
        missing: Missing,
        rng: Rng,
        now: Time,
    }

    impl Stage {
        fn missing(sqns: std::ops::Range<u64>) -> Stage {
            let mut stage = Stage { missing: Missing::default(), rng: Rng::new(1, 0), now: Time::ZERO };
            stage.missing.add(sqns, &TIMEOUTS, &mut stage.rng, Time::ZERO);
            stage
        }

        fn until(&mut self, millis: u64) -> Vec<Due> {
            let end = Time::ZERO + Span::from_millis(millis);
            let mut all = Vec::new();
            while self.missing.deadline() <= end {
                self.now = self.missing.deadline().max(self.now);
                self.missing.on_time(&TIMEOUTS, &mut self.rng, self.now, |due| all.push(due));
            }
            self.now = end;
            all
        }
    }

    #[test]
    fn nak_for_a_missing_packet_is_sent_within_the_backoff() {
        let mut stage = Stage::missing(3..6);
        let asked = stage.until(50);
        assert_eq!(asked.len(), 3);
        assert!((3..6).all(|sqn| asked.contains(&Due::Ask(sqn))));
        assert_eq!(stage.until(199), []);
    }

    #[test]
    fn packet_is_given_up_after_repeated_unconfirmed_naks() {
        let mut stage = Stage::missing(7..8);
        let all = stage.until(5_000);
        assert_eq!(all, [Due::Ask(7), Due::Ask(7), Due::Ask(7), Due::GiveUp(7)]);
        assert!(stage.missing.all.is_empty() && stage.missing.deadline().is_never());
    }

    #[test]
    fn confirmed_nak_is_repeated_only_when_the_repair_is_overdue() {
        let mut stage = Stage::missing(7..8);
        stage.missing.confirm(7, &TIMEOUTS, stage.now);
        assert_eq!(stage.until(399), []);
        assert_eq!(stage.until(460), [Due::Ask(7)]);
        stage.missing.confirm(7, &TIMEOUTS, stage.now);
        assert_eq!(stage.until(1_000), [Due::GiveUp(7)]);
    }

    /// A forged SPM can make this number of packets missing.
    #[test]
    fn naks_are_bounded_for_sixty_thousand_missing_packets() {
        let mut stage = Stage::missing(0..65_536);
        let (end, mut wakes, mut asked) = (Time::ZERO + Span::from_millis(500), 0, 0);
        while stage.missing.deadline() <= end {
            stage.now = stage.missing.deadline().max(stage.now);
            stage.missing.on_time(&TIMEOUTS, &mut stage.rng, stage.now, |due| {
                asked += usize::from(matches!(due, Due::Ask(_)));
            });
            wakes += 1;
        }
        assert!(wakes <= 126, "{wakes} wakes in half a second");
        assert!((MAX_ASKED..=3 * MAX_ASKED).contains(&asked), "{asked} numbers asked for");
        assert_eq!(stage.missing.all.len(), stage.missing.due.len());
    }

    #[test]
    fn missing_packets_are_given_up_in_5_s_if_no_nak_is_confirmed() {
        let mut stage = Stage::missing(0..65_536);
        let given_up = |all: &[Due]| all.iter().filter(|due| matches!(due, Due::GiveUp(_))).count();
        assert_eq!(given_up(&stage.until(5_000)), 65_536);
        assert!(stage.missing.deadline().is_never());
    }

    #[test]
    fn waiting_packets_are_requested_when_requested_ones_arrive() {
        let mut stage = Stage::missing(0..2_000);
        let mut asked = BTreeSet::new();
        while stage.missing.deadline() <= Time::ZERO + Span::from_secs(20) {
            stage.now = stage.missing.deadline().max(stage.now);
            let mut now_asked = Vec::new();
            stage.missing.on_time(&TIMEOUTS, &mut stage.rng, stage.now, |due| match due {
                Due::Ask(sqn) => now_asked.push(sqn),
                Due::GiveUp(sqn) => panic!("{sqn} was given up"),
            });
            assert!(now_asked.iter().all(|sqn| stage.missing.remove(*sqn)));
            asked.extend(now_asked);
        }
        assert!(asked.into_iter().eq(0..2_000), "each of them");
    }

    #[test]
    fn waiting_packets_arrive_and_expire_in_any_order() {
        let mut stage = Stage::missing(0..1_000);
        for sqn in [999, 700, 600, 0, 701] {
            assert!(stage.missing.remove(sqn) && !stage.missing.remove(sqn), "{sqn}");
        }
        let mut gone = Vec::new();
        stage.missing.expire(900, |sqns| gone.extend(sqns));
        gone.sort_unstable();
        assert!(gone.into_iter().eq((1..900).filter(|sqn| ![600, 700, 701].contains(sqn))));
        assert!(!stage.missing.remove(899) && stage.missing.remove(900));
    }

    #[test]
    fn packet_that_arrives_before_its_nak_is_not_requested() {
        let mut stage = Stage::missing(7..9);
        assert!(stage.missing.remove(7) && !stage.missing.remove(7));
        assert_eq!(stage.until(50), [Due::Ask(8)]);
    }

    #[test]
    fn missing_packets_before_the_trail_are_removed() {
        let mut stage = Stage::missing(7..12);
        let mut gone = Vec::new();
        stage.missing.expire(10, |sqns| gone.extend(sqns));
        assert_eq!(gone, [7, 8, 9]);
        assert!(!stage.missing.remove(9) && stage.missing.remove(10));
    }
}
