//! Which destination hosts share a fate, by the counters that the programs keep of each: the core's grouping (paper 002, 4.1) beside
//! the kernel. Nothing here touches the kernel; [`group_map`](crate::group_map) reads and writes it.

use crate::layout::{AtomCounters, GroupKey, Which};
use faircast_core::time::{Span, Time};
use faircast_unicast::cocoon::grouping::{Config, Counters, Grouping, Observations};
use faircast_unicast::cocoon::{Config as Rules, Coordinator, GroupId, MemberId, View};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A host without connections is forgotten this long after its last acknowledgement.
const FORGET: Span = Span::from_secs(60);

/// Changes of groups: the number of the new group, or `None` for that of the prefix.
pub type Changes = Vec<(GroupKey, Option<u32>)>;

/// Hosts of all network namespaces, and the groups that they form.
#[derive(Debug, Default)]
pub struct HostGroups {
    config: Config,
    /// By network namespace: addresses mean different hosts in each.
    namespaces: BTreeMap<u32, Namespace>,
    atoms: BTreeMap<GroupKey, Atom>,
    numbers: Numbers,
}

/// Windows and cuts are the kernel's, so this coordinator only holds who is in which group.
#[derive(Debug)]
struct Namespace {
    coordinator: Coordinator,
    grouping: Grouping,
}

/// A host, as it was seen last.
#[derive(Debug, Default)]
struct Atom {
    seen: AtomCounters,
    /// One for each connection, as far as there is room.
    members: Vec<MemberId>,
    /// The number of its group in the kernel.
    number: Option<u32>,
    /// When something was last counted.
    active: Time,
}

/// Numbers of groups in the kernel; none is given twice.
#[derive(Debug, Default)]
struct Numbers {
    of: BTreeMap<(u32, GroupId), u32>,
    last: u32,
}

impl HostGroups {
    /// Without hosts.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, ..Self::default() }
    }

    /// Takes the present counters of all hosts. Call it once in each of [`Config::bin`].
    /// Returns the hosts that change their group; hosts that are forgotten are among them, with `None`.
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

    /// Returns the counts of grouping in all network namespaces.
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

    /// Hosts that are followed.
    #[must_use]
    pub fn atoms(&self) -> usize {
        self.atoms.len()
    }

    /// Groups that they form.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.numbers.of.len()
    }

    /// Everybody who was put into a group goes back to that of the prefix.
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
        // It was forgotten in the kernel and is new there.
        let before = if counted.acks < before.acks { AtomCounters::default() } else { before };
        if counted.acks != before.acks || counted.members > 0 {
            atom.active = now;
        }
        // Connections that ended may have had packets acknowledged before: they leave after that is counted.
        while atom.members.len() < counted.members as usize {
            let view = View::in_packets(0, 0, 2.0, f64::INFINITY);
            match it.grouping.join(&mut it.coordinator, address, view, now) {
                Ok(joined) => atom.members.push(joined.member),
                Err(_) => break, // it stays in its prefix's group
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

    /// Hosts that are silent for long.
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

/// Returns the changes since `before`. The shortest round trip is that of all time, as grouping stores it.
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
