//! What a receiver misses, and when it asks for it (RFC 3208, 6.3).
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

/// Moments are whole multiples of this, so that what is due at nearly the same time is asked for together, and a source that has everything
/// missed (65,536 packets) wakes nobody for each of them.
const TICK: u64 = 1_000_000;

/// How long to wait for what (RFC 3208, 6.3; the values are within what stock receivers use).
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Longest wait before a NAK ("NAK_BO_IVL").
    pub(super) back_off: Span,
    /// For a confirmation ("NAK_RPT_IVL").
    pub(super) confirmation: Span,
    /// For the packet, once confirmed ("NAK_RDATA_IVL").
    pub(super) data: Span,
    /// How often a NAK may stay unconfirmed ("NAK_NCF_RETRIES").
    pub(super) most_unconfirmed: u16,
    /// How often a confirmed packet may stay away ("NAK_DATA_RETRIES").
    pub(super) most_unanswered: u16,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            back_off: Span::from_millis(50),
            confirmation: Span::from_millis(200),
            data: Span::from_millis(400),
            most_unconfirmed: 50,
            most_unanswered: 50,
        }
    }
}

/// Missing packets. What one of them costs does not grow with how many there are.
#[derive(Debug, Default)]
pub(super) struct Missing {
    all: BTreeMap<u64, Entry>,
    /// When each is to go on.
    due: BTreeSet<(Time, u64)>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    state: State,
    until: Time,
    unconfirmed: u16,
    unanswered: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    BackOff,
    WaitNcf,
    WaitData,
}

/// What became of a packet whose time was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Ask for it now.
    Ask(u64),
    /// There is no hope.
    GiveUp(u64),
}

impl Missing {
    /// When something is due.
    pub(super) fn deadline(&self) -> Time {
        self.due.first().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// A gap was seen: `sqn` is newer than all that are missing.
    pub(super) fn add(&mut self, sqn: u64, patience: &Patience, rng: &mut Rng, now: Time) {
        debug_assert!(self.all.last_key_value().is_none_or(|(last, _)| *last < sqn));
        let until = tick(now + random(patience.back_off, rng));
        self.all.insert(sqn, Entry { state: State::BackOff, until, unconfirmed: 0, unanswered: 0 });
        self.due.insert((until, sqn));
    }

    /// It is there, or was given up. Whether it had been missing.
    pub(super) fn remove(&mut self, sqn: u64) -> bool {
        let Some(entry) = self.all.remove(&sqn) else { return false };
        self.due.remove(&(entry.until, sqn));
        true
    }

    /// The source has heard of it, from here or elsewhere: no NAK for now.
    pub(super) fn confirm(&mut self, sqn: u64, patience: &Patience, now: Time) {
        let Some(entry) = self.all.get_mut(&sqn) else { return };
        self.due.remove(&(entry.until, sqn));
        (entry.state, entry.until) = (State::WaitData, tick(now + patience.data));
        self.due.insert((entry.until, sqn));
    }

    /// Those before `trail` cannot be repaired any more; they are taken out.
    pub(super) fn expire(&mut self, trail: u64, mut gone: impl FnMut(u64)) {
        while let Some(first) = self.all.first_entry().filter(|first| *first.key() < trail) {
            let (sqn, entry) = first.remove_entry();
            self.due.remove(&(entry.until, sqn));
            gone(sqn);
        }
    }

    /// Go on with those whose time is over, in order. What is given up is taken out.
    pub(super) fn on_time(
        &mut self,
        patience: &Patience,
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
        for sqn in over {
            let Some(entry) = self.all.get_mut(&sqn) else { continue };
            let mut stays = true;
            while stays && entry.until <= now {
                stays = entry.step(sqn, patience, rng, now, &mut due);
            }
            if stays {
                self.due.insert((entry.until, sqn));
            } else {
                self.all.remove(&sqn);
            }
        }
    }
}

impl Entry {
    /// The time in this state is over. Whether there is still hope.
    fn step(
        &mut self,
        sqn: u64,
        patience: &Patience,
        rng: &mut Rng,
        now: Time,
        due: &mut impl FnMut(Due),
    ) -> bool {
        let spent = match self.state {
            State::BackOff => {
                due(Due::Ask(sqn));
                (self.state, self.until) = (State::WaitNcf, tick(now + patience.confirmation));
                return true;
            }
            State::WaitNcf => {
                self.unconfirmed += 1;
                self.unconfirmed > patience.most_unconfirmed
            }
            State::WaitData => {
                self.unanswered += 1;
                self.unanswered > patience.most_unanswered
            }
        };
        if spent {
            due(Due::GiveUp(sqn));
            return false;
        }
        // Never at once again, whatever is drawn.
        let wait = random(patience.back_off, rng).max(Span::from_micros(1));
        (self.state, self.until) = (State::BackOff, tick(now + wait));
        true
    }
}

/// The moment at which this is over.
fn tick(at: Time) -> Time {
    Time::from_nanos(at.as_nanos().div_ceil(TICK).saturating_mul(TICK))
}

/// A wait between nothing and `longest`.
fn random(longest: Span, rng: &mut Rng) -> Span {
    longest.scaled(rng.unit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience {
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
            sqns.for_each(|sqn| stage.missing.add(sqn, &PATIENCE, &mut stage.rng, Time::ZERO));
            stage
        }

        fn until(&mut self, millis: u64) -> Vec<Due> {
            let end = Time::ZERO + Span::from_millis(millis);
            let mut all = Vec::new();
            while self.missing.deadline() <= end {
                self.now = self.missing.deadline();
                self.missing.on_time(&PATIENCE, &mut self.rng, self.now, |due| all.push(due));
            }
            self.now = end;
            all
        }
    }

    #[test]
    fn a_missing_packet_is_asked_for_within_the_back_off() {
        let mut stage = Stage::missing(3..6);
        let asked = stage.until(50);
        assert_eq!(asked.len(), 3);
        assert!((3..6).all(|sqn| asked.contains(&Due::Ask(sqn))));
        assert_eq!(stage.until(199), []);
    }

    #[test]
    fn an_unconfirmed_nak_is_repeated_and_then_given_up() {
        let mut stage = Stage::missing(7..8);
        let all = stage.until(5_000);
        assert_eq!(all, [Due::Ask(7), Due::Ask(7), Due::Ask(7), Due::GiveUp(7)]);
        assert!(stage.missing.all.is_empty() && stage.missing.deadline().is_never());
    }

    #[test]
    fn a_confirmation_silences_until_the_data_is_overdue() {
        let mut stage = Stage::missing(7..8);
        stage.missing.confirm(7, &PATIENCE, stage.now);
        assert_eq!(stage.until(399), []);
        assert_eq!(stage.until(460), [Due::Ask(7)]);
        stage.missing.confirm(7, &PATIENCE, stage.now);
        assert_eq!(stage.until(1_000), [Due::GiveUp(7)]);
    }

    /// One forged SPM makes so many packets missing.
    #[test]
    fn sixty_thousand_missing_packets_wake_nobody_more_often_than_a_thousand_times_a_second() {
        let mut stage = Stage::missing(0..65_536);
        let (end, mut wakes, mut asked) = (Time::ZERO + Span::from_secs(1), 0, 0);
        while stage.missing.deadline() <= end {
            let now = stage.missing.deadline();
            stage.missing.on_time(&PATIENCE, &mut stage.rng, now, |due| {
                asked += usize::from(matches!(due, Due::Ask(_)));
            });
            wakes += 1;
        }
        assert!(wakes <= 1_001, "{wakes}");
        assert!(asked >= 3 * 65_536, "{asked}");
        assert_eq!(stage.missing.all.len(), stage.missing.due.len());
    }

    #[test]
    fn what_has_come_is_not_asked_for() {
        let mut stage = Stage::missing(7..9);
        assert!(stage.missing.remove(7) && !stage.missing.remove(7));
        assert_eq!(stage.until(50), [Due::Ask(8)]);
    }

    #[test]
    fn what_the_source_has_forgotten_is_gone() {
        let mut stage = Stage::missing(7..12);
        let mut gone = Vec::new();
        stage.missing.expire(10, |sqn| gone.push(sqn));
        assert_eq!(gone, [7, 8, 9]);
        assert!(!stage.missing.remove(9) && stage.missing.remove(10));
    }
}
