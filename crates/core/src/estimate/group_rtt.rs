//! The largest round-trip time of a group, from recent samples of its members.
//!
//! This round-trip time determines the duration of slow-start rounds, the spread of feedback and the timeouts of silent
//! receivers. A single late answer shows that a host was delayed, not that the path is longer. So each member counts with the
//! median of its latest three samples.

use crate::packet::ReceiverId;
use crate::time::{Span, Time};

/// The largest round-trip time of a group.
#[derive(Debug, Clone)]
pub struct GroupRtt {
    /// Value before the first sample.
    assumed: Span,
    estimate: Estimate,
}

#[derive(Debug, Clone)]
enum Estimate {
    /// The largest sample so far (paper 000, 3.1.4).
    Largest(Span),
    /// The largest of the members' recent medians.
    Recent(Box<Recent>),
}

/// The known members with the largest round-trip times.
#[derive(Debug, Clone)]
struct Recent {
    /// Duration without a sample after which a member is removed.
    memory: Span,
    members: Vec<MemberRtt>,
    /// Current largest round-trip time of all members.
    largest: Span,
}

#[derive(Debug, Clone, Copy)]
struct MemberRtt {
    id: ReceiverId,
    /// Latest samples, the newest last.
    samples: [Span; SAMPLES],
    /// Number of valid samples, which are at the end of `samples`.
    count: usize,
    received_at: Time,
}

/// Maximum number of samples per member; only the latest samples count.
const SAMPLES: usize = 3;
/// Maximum number of stored members: those with the largest round-trip times.
const MAX_MEMBERS: usize = 16;

impl GroupRtt {
    /// Creates an estimate that is `assumed` until the first sample. Without `memory`, the largest sample of all time counts, as
    /// in the paper. With `memory`, only members with a sample within this duration count, each with the median of its samples.
    pub fn new(assumed: Span, memory: Option<Span>) -> GroupRtt {
        let estimate = match memory {
            None => Estimate::Largest(Span::ZERO),
            Some(memory) => {
                let members = Vec::with_capacity(MAX_MEMBERS);
                Estimate::Recent(Box::new(Recent { memory, members, largest: Span::ZERO }))
            }
        };
        GroupRtt { assumed, estimate }
    }

    /// Adds a sample of this member.
    pub fn add(&mut self, from: ReceiverId, sample: Span, now: Time) {
        match &mut self.estimate {
            Estimate::Largest(largest) => *largest = sample.max(*largest),
            Estimate::Recent(recent) => recent.add(from, sample, now),
        }
    }

    /// Removes a member that has left the group.
    pub fn forget(&mut self, id: ReceiverId) {
        if let Estimate::Recent(recent) = &mut self.estimate {
            recent.members.retain(|member| member.id != id);
            if !recent.members.is_empty() {
                recent.largest = recent.measure();
            }
        }
    }

    /// Returns the largest round-trip time; the assumed one before the first sample.
    pub fn get(&self) -> Span {
        if self.is_known() { self.largest() } else { self.assumed }
    }

    /// Returns whether there was a sample.
    pub fn is_known(&self) -> bool {
        self.largest() > Span::ZERO
    }

    fn largest(&self) -> Span {
        match &self.estimate {
            Estimate::Largest(largest) => *largest,
            Estimate::Recent(recent) => recent.largest,
        }
    }
}

impl Recent {
    fn add(&mut self, from: ReceiverId, sample: Span, now: Time) {
        let memory = self.memory;
        match self.members.iter_mut().find(|member| member.id == from) {
            Some(member) => member.add(sample, now),
            None => {
                self.members.retain(|member| now.since(member.received_at) <= memory);
                self.insert(MemberRtt::new(from, sample, now));
            }
        }
        self.members.retain(|member| now.since(member.received_at) <= memory);
        self.largest = self.measure();
    }

    /// Adds a member. A full table drops the member with the smallest round-trip time, provided that the new member's one is
    /// larger.
    fn insert(&mut self, newcomer: MemberRtt) {
        if self.members.len() < MAX_MEMBERS {
            self.members.push(newcomer);
        } else if let Some(nearest) = self.members.iter_mut().min_by_key(|member| member.typical())
            && nearest.typical() < newcomer.typical()
        {
            *nearest = newcomer;
        }
    }

    /// Returns the largest round-trip time among members with several samples. If no member has several samples, returns the
    /// median over all members.
    fn measure(&self) -> Span {
        let confirmed = self.members.iter().filter(|member| member.count > 1).map(MemberRtt::typical).max();
        confirmed.unwrap_or_else(|| {
            let mut single = [Span::ZERO; MAX_MEMBERS];
            let count = self.members.len();
            for (place, member) in single.iter_mut().zip(&self.members) {
                *place = member.typical();
            }
            single[..count].sort_unstable();
            if count == 0 { self.largest } else { single[(count - 1) / 2] }
        })
    }
}

impl MemberRtt {
    fn new(id: ReceiverId, sample: Span, now: Time) -> MemberRtt {
        MemberRtt { id, samples: [sample; SAMPLES], count: 1, received_at: now }
    }

    fn add(&mut self, sample: Span, now: Time) {
        self.samples.rotate_left(1);
        self.samples[SAMPLES - 1] = sample;
        self.count = (self.count + 1).min(SAMPLES);
        self.received_at = now;
    }

    /// Returns the median of the samples; of two samples the lower one.
    fn typical(&self) -> Span {
        let mut known = self.samples;
        let known = &mut known[SAMPLES - self.count..];
        known.sort_unstable();
        known[(known.len() - 1) / 2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASSUMED: Span = Span::from_millis(100);

    fn member(number: u64) -> ReceiverId {
        ReceiverId::new(number).expect("tests number from one")
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// Creates a group from pairs of a member and its sample in milliseconds. The samples are 10 ms apart.
    fn group(samples: &[(u64, u64)]) -> GroupRtt {
        let mut group = GroupRtt::new(ASSUMED, Some(Span::from_secs(5)));
        for (turn, &(from, millis)) in (1..).zip(samples) {
            group.add(member(from), Span::from_millis(millis), at(10 * turn));
        }
        group
    }

    #[test]
    fn assumed_rtt_is_used_before_the_first_sample() {
        assert_eq!(GroupRtt::new(ASSUMED, None).get(), ASSUMED);
        assert_eq!(group(&[]).get(), ASSUMED);
        assert!(!group(&[]).is_known() && group(&[(1, 20)]).is_known());
    }

    #[test]
    fn single_long_rtt_sample_is_ignored() {
        assert_eq!(group(&[(1, 20), (1, 21), (1, 2000)]).get(), Span::from_millis(21));
        assert_eq!(group(&[(1, 20), (2, 2000), (1, 22), (3, 25)]).get(), Span::from_millis(20));
        assert_eq!(group(&[(1, 2000), (1, 22)]).get(), Span::from_millis(22));
    }

    #[test]
    fn first_samples_of_several_members_give_their_median() {
        assert_eq!(group(&[(1, 20), (2, 2000), (3, 25)]).get(), Span::from_millis(25));
    }

    #[test]
    fn rtt_of_the_farthest_member_counts_after_its_second_sample() {
        assert_eq!(group(&[(1, 20), (2, 200), (1, 20), (2, 190)]).get(), Span::from_millis(190));
    }

    #[test]
    fn longer_rtt_of_a_member_counts_after_two_samples() {
        assert_eq!(group(&[(1, 20), (1, 20), (1, 80)]).get(), Span::from_millis(20));
        assert_eq!(group(&[(1, 20), (1, 20), (1, 80), (1, 81)]).get(), Span::from_millis(80));
    }

    #[test]
    fn silent_member_expires_but_the_last_member_is_never_removed() {
        let mut group = group(&[(1, 20), (2, 200), (1, 20), (2, 190)]);
        group.add(member(1), Span::from_millis(20), at(6000));
        assert_eq!(group.get(), Span::from_millis(20));
        group.forget(member(1));
        assert_eq!(group.get(), Span::from_millis(20), "the last one stands in");
    }

    #[test]
    fn only_the_farthest_members_of_a_large_group_are_stored() {
        let mut samples: Vec<_> = (1..=100).flat_map(|id| [(id, 10), (id, 10)]).collect();
        samples.extend([(500, 300), (501, 2000), (500, 310)]);
        assert_eq!(group(&samples).get(), Span::from_millis(300));
    }

    #[test]
    fn maximum_sample_never_expires_without_a_memory() {
        let mut group = GroupRtt::new(ASSUMED, None);
        for (millis, now) in [(20, 1), (500, 2), (20, 90_000)] {
            group.add(member(1), Span::from_millis(millis), at(now));
        }
        assert_eq!(group.get(), Span::from_millis(500));
    }

    #[test]
    fn rtt_follows_decreasing_samples_one_sample_later() {
        let mut group = group(&[]);
        for turn in 1..100 {
            group.add(member(1), Span::from_millis(1000 - turn), at(turn));
            let before = if turn > 2 { turn - 1 } else { turn };
            assert_eq!(group.get(), Span::from_millis(1000 - before), "the last but one is the median");
        }
    }
}
