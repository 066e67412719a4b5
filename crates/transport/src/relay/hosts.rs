//! Invited hosts and their state.

use super::RelayHandle;
use crate::config::InvitedHost;
use crate::event::{HostOutcome, HostReport};
use crate::members::Tally;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Pause after the first invitation of a host. Each further pause is twice as long as the previous one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Maximum pause between two invitations of a host.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// Duration for which an attached host is not invited again, because it is about to join.
const ASKED: Duration = Duration::from_secs(10);

/// Invited hosts by the number of their invitation.
#[derive(Debug, Default)]
pub(super) struct Hosts(BTreeMap<u64, Host>);

/// An invited host.
#[derive(Debug)]
struct Host {
    /// Position of the host in the list of invited hosts.
    place: usize,
    invited: InvitedHost,
    next_at: Instant,
    pause: Duration,
    asked_at: Option<Instant>,
    /// Whether the host answers now.
    answers: bool,
    done: bool,
}

impl Hosts {
    /// Invites these hosts, each under a secret number.
    pub(super) fn new(hosts: &[InvitedHost], numbers: impl Iterator<Item = u64>, now: Instant) -> Hosts {
        let host = |(place, invited): (usize, &InvitedHost)| Host {
            place,
            invited: invited.clone(),
            next_at: now,
            pause: FIRST_PAUSE,
            asked_at: None,
            answers: false,
            done: false,
        };
        let hosts = hosts.iter().enumerate().map(host);
        Hosts(numbers.filter(|number| *number != 0).zip(hosts).collect())
    }

    /// Whether there is an invitation with this number.
    pub(super) fn knows(&self, number: u64) -> bool {
        self.0.contains_key(&number)
    }

    /// Records that the host with this invitation number attaches.
    pub(super) fn asks(&mut self, number: u64, now: Instant) {
        if let Some(host) = self.0.get_mut(&number) {
            (host.asked_at, host.pause) = (Some(now), FIRST_PAUSE);
        }
    }

    /// Records the state of an invited host.
    pub(super) fn note(&mut self, number: u64, below: Tally) {
        if let Some(host) = self.0.get_mut(&number) {
            host.done |= below.done > 0;
            host.answers = below.answering > 0;
        }
    }

    /// Returns the hosts of one address family to invite now.
    pub(super) fn due(&mut self, is_v4: bool, now: Instant) -> Vec<(u64, SocketAddr)> {
        let mut due = Vec::new();
        for (number, host) in &mut self.0 {
            let asks = host.asked_at.is_some_and(|at| now.duration_since(at) < ASKED);
            if host.done
                || host.answers
                || asks
                || now < host.next_at
                || host.invited.address.is_ipv4() != is_v4
            {
                continue;
            }
            due.push((*number, host.invited.address));
            (host.next_at, host.pause) = (now + host.pause, (host.pause * 2).min(MAX_PAUSE));
        }
        due
    }

    /// Returns the outcomes of the invited hosts, in the order of their list.
    pub(super) fn report(&self) -> Vec<HostReport> {
        let mut hosts: Vec<&Host> = self.0.values().collect();
        hosts.sort_by_key(|host| host.place);
        let report = |host: &Host| HostReport {
            host: host.invited.name.clone(),
            address: host.invited.address,
            outcome: match (host.done, host.asked_at) {
                (true, _) => HostOutcome::Done,
                (false, Some(_)) => HostOutcome::Incomplete,
                (false, None) => HostOutcome::Unanswered,
            },
        };
        hosts.into_iter().map(report).collect()
    }
}

impl RelayHandle {
    /// Returns the outcomes of the invited hosts.
    pub fn hosts(&self) -> Vec<HostReport> {
        self.lock().hosts.report()
    }

    /// Invites these hosts.
    pub fn invite(&self, hosts: &[InvitedHost]) {
        let numbers = std::iter::from_fn(|| Some(self.draw()[0]));
        self.lock().hosts = Hosts::new(hosts, numbers, self.now());
    }

    /// Returns the hosts of one address family to invite now.
    pub(super) fn to_invite(&self, is_v4: bool) -> Vec<(u64, SocketAddr)> {
        self.lock().hosts.due(is_v4, self.now())
    }

    /// Records the state of the host with this invitation number.
    pub(super) fn note(&self, number: u64, below: Tally) {
        self.lock().hosts.note(number, below);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_invited_until_it_joins_and_again_after_it_leaves() {
        let now = Instant::now();
        let at = |millis: u64| now + Duration::from_millis(millis);
        let host = |last: u8| InvitedHost {
            name: format!("host{last}"),
            address: SocketAddr::from(([10, 0, 0, last], 5778)),
        };
        let mut hosts = Hosts::new(&[host(1), host(2)], [7, 0, 5].into_iter(), now);
        let mut invited = BTreeMap::new();
        for millis in (0..60_000).step_by(100) {
            hosts
                .due(true, at(millis))
                .into_iter()
                .for_each(|(number, _)| *invited.entry(number).or_insert(0) += 1);
            if millis == 1_000 {
                hosts.asks(7, at(millis));
                hosts.note(7, Tally { receivers: 1, answering: 1, unfinished: 1, ..Tally::default() });
            }
        }
        assert_eq!(invited[&7], 3, "at 0, 0.3 and 0.8 s, then it has come");
        assert!((14..=17).contains(&invited[&5]), "pauses grow to 5 s: {invited:?}");
        hosts.note(7, Tally { receivers: 1, unfinished: 1, ..Tally::default() });
        assert_eq!(hosts.due(true, at(60_000)).iter().filter(|(number, _)| *number == 7).count(), 1);
        hosts.asks(7, at(60_100));
        assert!(hosts.due(true, at(65_000)).iter().all(|(number, _)| *number != 7), "it is about to join");
        let outcomes = |hosts: &Hosts| hosts.report().iter().map(|host| host.outcome).collect::<Vec<_>>();
        assert_eq!(outcomes(&hosts), [HostOutcome::Incomplete, HostOutcome::Unanswered]);
        hosts.note(7, Tally { receivers: 1, done: 1, ..Tally::default() });
        hosts.note(7, Tally::default());
        assert!(hosts.due(true, at(90_000)).iter().all(|(number, _)| *number != 7), "it has everything");
        assert_eq!(outcomes(&hosts), [HostOutcome::Done, HostOutcome::Unanswered]);
    }
}
