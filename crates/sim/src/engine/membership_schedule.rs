//! The membership schedule: periods in which the members of a session are present.

use super::nanos::NEVER;
use crate::network::{SessionExtras, SessionSpec};

/// Times at which members join and leave, in nanoseconds.
#[derive(Debug)]
pub enum MembershipSchedule {
    /// This number of members, all present during the whole run.
    Always(usize),
    /// The stays of each member, in order.
    Some(Vec<Vec<(u64, u64)>>),
}

impl MembershipSchedule {
    pub fn of(spec: &SessionSpec, rare: &SessionExtras) -> MembershipSchedule {
        let first = spec.members.iter().map(|member| (member.join.as_nanos(), member.leave.as_nanos()));
        if first.clone().all(|stay| stay == (0, NEVER)) {
            return MembershipSchedule::Always(spec.members.len());
        }
        let mut all: Vec<Vec<(u64, u64)>> = first.map(|stay| vec![stay]).collect();
        for (member, join, leave) in &rare.returns {
            all[*member as usize].push((join.as_nanos(), leave.as_nanos()));
        }
        MembershipSchedule::Some(all)
    }

    /// Returns the stays of one member.
    pub fn of_member(&self, member: usize) -> &[(u64, u64)] {
        match self {
            MembershipSchedule::Always(_) => &[(0, NEVER)],
            MembershipSchedule::Some(all) => &all[member],
        }
    }

    /// Returns the stays of a member after the first stay, in reverse order.
    pub fn after_the_first(&self, member: usize) -> Vec<(u64, u64)> {
        self.of_member(member)[1..].iter().rev().copied().collect()
    }

    /// Returns the periods in which at least one member is present.
    pub fn together(&self) -> Box<[(u64, u64)]> {
        match self {
            MembershipSchedule::Always(0) => Box::new([]),
            MembershipSchedule::Always(_) => Box::new([(0, NEVER)]),
            MembershipSchedule::Some(all) => merged(&all.concat(), 0, 0).into_boxed_slice(),
        }
    }

    /// Returns the number of members present at `at`.
    pub fn how_many(&self, at: u64) -> usize {
        let there = |stays: &&Vec<(u64, u64)>| stays.iter().any(|&(join, leave)| join <= at && leave > at);
        match self {
            MembershipSchedule::Always(members) => *members,
            MembershipSchedule::Some(all) => all.iter().filter(there).count(),
        }
    }
}

/// Delays the end of each span by `leave`. Delays the start by `join`, except for spans that start at 0. Merges overlapping
/// spans.
pub fn merged(spans: &[(u64, u64)], join: u64, leave: u64) -> Vec<(u64, u64)> {
    let mut spans: Vec<(u64, u64)> = spans
        .iter()
        .map(|&(from, to)| (if from == 0 { 0 } else { from.saturating_add(join) }, to.saturating_add(leave)))
        .filter(|(from, to)| from < to)
        .collect();
    spans.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (from, to) in spans {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_spans_are_merged() {
        assert_eq!(merged(&[(5, 9), (0, 2), (8, 20), (2, 3)], 0, 0), [(0, 3), (5, 20)]);
        assert_eq!(merged(&[(5, 9), (0, 2)], 1, 10), [(0, 19)]);
    }

    #[test]
    fn schedule_counts_present_members_and_merges_their_periods() {
        let stays = MembershipSchedule::Some(vec![vec![(0, 10), (20, 30)], vec![(5, 12)], vec![(40, NEVER)]]);
        assert_eq!(*stays.together(), [(0, 12), (20, 30), (40, NEVER)]);
        assert_eq!([5, 11, 12, 20, 50].map(|at| stays.how_many(at)), [2, 1, 0, 1, 1]);
        assert_eq!(stays.after_the_first(0), [(20, 30)]);
    }
}
