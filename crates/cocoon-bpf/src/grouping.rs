//! Groups destination hosts that share a bottleneck, from the counters of the programs in the kernel. The grouping algorithm is
//! that of the core crate (paper 002, 4.1). This module does not access the kernel; [`group_map`](crate::group_map) does.

use crate::layout::{AtomCounters, GroupKey, Which};
use faircast_core::time::{Span, Time};
use faircast_unicast::cocoon::grouping::{Config, Counters, Grouping, Observations};
use faircast_unicast::cocoon::{Config as Rules, Coordinator, GroupId, MemberId, View};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Time between the last acknowledgement of a host without connections and its removal.
const FORGET: Span = Span::from_secs(60);

/// Changes of the groups of hosts: the number of the new group, or `None` for the group of the host's prefix.
pub type Changes = Vec<(GroupKey, Option<u32>)>;

/// Hosts of all network namespaces and their groups.
#[derive(Debug, Default)]
pub struct HostGroups {
    config: Config,
    /// Coordinators by network namespace, because the same address can be a different host in each namespace.
    namespaces: BTreeMap<u32, Namespace>,
    atoms: BTreeMap<GroupKey, Atom>,
    numbers: Numbers,
}

/// Grouping of one network namespace. The kernel handles windows and cuts, so this coordinator stores only the membership of
/// groups.
#[derive(Debug)]
struct Namespace {
    coordinator: Coordinator,
    grouping: Grouping,
}

/// The last observed state of a host.
#[derive(Debug, Default)]
struct Atom {
    seen: AtomCounters,
    /// One member for each connection, unless the coordinator is full.
    members: Vec<MemberId>,
    /// Number of the host's group in the kernel; `None` for the group of the prefix.
    number: Option<u32>,
    /// Time of the last change of the counters.
    active: Time,
}

/// Numbers of groups in the kernel. No number is used twice.
#[derive(Debug, Default)]
struct Numbers {
    of: BTreeMap<(u32, GroupId), u32>,
    last: u32,
}

impl HostGroups {
    /// Returns an empty set of hosts.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, ..Self::default() }
    }

    /// Processes the present counters of all hosts. Call it once in each [`Config::bin`]. Returns the hosts whose group changes.
    /// Forgotten hosts are included with `None` as their group.
    pub fn observe(&mut self, counted: &[(GroupKey, AtomCounters)], now: Time) -> Changes {
        for (key, counters) in counted {
            if let Which::Prefix(address, _) = key.which {
                self.observe_atom(*key, address, counters, now);
            }
        }
        for it in self.namespaces.values_mut() {
            it.grouping.work(&mut it.coordinator, now);
        }
        let mut changes = self.forget(now);
        for (key, atom) in &mut self.atoms {
            let Which::Prefix(address, _) = key.which else { continue };
            let group = self.namespaces.get(&key.netns).and_then(|it| it.grouping.group_of(address));
            let number = group.map(|group| self.numbers.number((key.netns, group)));
            if number != atom.number {
                atom.number = number;
                changes.push((*key, number));
            }
        }
        let used: std::collections::BTreeSet<u32> = self.atoms.values().filter_map(|it| it.number).collect();
        self.numbers.of.retain(|_, number| used.contains(number));
        changes
    }

    /// Returns the counters of grouping over all network namespaces.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.namespaces.values().fold(Counters::default(), |sum, it| {
            let each = it.grouping.counters();
            Counters {
                merges: sum.merges + each.merges,
                splits: sum.splits + each.splits,
                tests: sum.tests + each.tests,
                credit: sum.credit + each.credit,
                spent: sum.spent + each.spent,
                acknowledgements: sum.acknowledgements + each.acknowledgements,
            }
        })
    }

    /// Returns the number of observed hosts.
    #[must_use]
    pub fn atoms(&self) -> usize {
        self.atoms.len()
    }

    /// Returns the number of groups.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.numbers.of.len()
    }

    /// Returns the changes that move every host back into the group of its prefix.
    #[must_use]
    pub fn everybody_back(&self) -> Changes {
        self.atoms.iter().filter(|(_, atom)| atom.number.is_some()).map(|(key, _)| (*key, None)).collect()
    }

    fn observe_atom(&mut self, key: GroupKey, address: IpAddr, counted: &AtomCounters, now: Time) {
        let config = self.config;
        let it = self.namespaces.entry(key.netns).or_insert_with(|| Namespace {
            coordinator: Coordinator::new(Rules::published()),
            grouping: Grouping::new(config),
        });
        let atom = self.atoms.entry(key).or_insert_with(|| Atom { active: now, ..Atom::default() });
        let before = std::mem::replace(&mut atom.seen, *counted);
        // If a host's count is smaller than before, the kernel has forgotten the host and has counted again from zero.
        let before = if counted.acks < before.acks { AtomCounters::default() } else { before };
        if counted.acks != before.acks || counted.members > 0 {
            atom.active = now;
        }
        // Members leave at the end of this function, after the acknowledgements of their ended connections were counted.
        while atom.members.len() < counted.members as usize {
            let view = View::in_packets(0, 0, 2.0, f64::INFINITY);
            match it.grouping.join(&mut it.coordinator, address, view, now) {
                Ok(joined) => atom.members.push(joined.member),
                Err(_) => break, // the connection stays in the group of its prefix
            }
        }
        if let Some(&member) = atom.members.first() {
            it.grouping.on_seen(member, &seen(&before, counted), now);
            if counted.losses != before.losses {
                it.grouping.on_loss(member, now);
            }
        }
        while atom.members.len() > counted.members as usize {
            let member = atom.members.pop().expect("there are more than none");
            it.grouping.leave(&mut it.coordinator, member);
        }
    }

    /// Forgets hosts that have been silent for [`FORGET`].
    fn forget(&mut self, now: Time) -> Changes {
        let silent = |atom: &Atom| atom.members.is_empty() && now.since(atom.active) > FORGET;
        let gone: Vec<GroupKey> =
            self.atoms.iter().filter(|(_, atom)| silent(atom)).map(|(key, _)| *key).collect();
        for key in &gone {
            self.atoms.remove(key);
        }
        gone.into_iter().map(|key| (key, None)).collect()
    }
}

impl Numbers {
    fn number(&mut self, group: (u32, GroupId)) -> u32 {
        let Self { of, last } = self;
        *of.entry(group).or_insert_with(|| {
            *last += 1;
            *last
        })
    }
}

/// Returns the changes of the counters since `before`. The shortest round-trip time is an exception: it is the minimum since the
/// start, as the grouping expects.
fn seen(before: &AtomCounters, now: &AtomCounters) -> Observations {
    Observations {
        acknowledgements: now.acks.saturating_sub(before.acks),
        newly: now.acked.saturating_sub(before.acked) as f64,
        samples: now.samples.wrapping_sub(before.samples),
        round_trips: Span::from_micros(now.rtt_us.saturating_sub(before.rtt_us)),
        shortest: Span::from_micros(u64::from(now.min_us)),
    }
}

#[cfg(test)]
mod tests;
