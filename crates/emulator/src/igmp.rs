//! Memberships of hosts in groups, from their reports (IGMPv3: RFC 3376; IGMPv2: RFC 2236).
//!
//! The kernel of a host reports every join and leave at once, and every report reaches the emulator. Therefore nobody asks for
//! memberships again, and they have no timers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Protocol number of IGMP.
pub(crate) const PROTOCOL: u8 = 2;
/// Maximum number of groups of a host, and of sources that a host lists for a group. Further ones are ignored.
const MAX_GROUPS: usize = 1_000;
const MAX_SOURCES: usize = 1_000;

const V2_REPORT: u8 = 0x16;
const V2_LEAVE: u8 = 0x17;
const V3_REPORT: u8 = 0x22;

/// A record of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Record {
    kind: Kind,
    group: Ipv4Addr,
    sources: Vec<Ipv4Addr>,
}

/// Kind of a record (RFC 3376, 4.2.12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The host receives only from the sources.
    Include,
    /// The host receives from all but the sources.
    Exclude,
    /// The host also receives from the sources.
    Allow,
    /// The host does not receive from the sources.
    Block,
}

/// The sources from which a host receives a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Filter {
    /// Whether the host receives from all sources except for the listed ones.
    excludes: bool,
    sources: BTreeSet<Ipv4Addr>,
}

/// Memberships of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Memberships(BTreeMap<Ipv4Addr, Filter>);

impl Memberships {
    /// Returns whether the host receives packets of this source to this group.
    pub(crate) fn receives(&self, source: Ipv4Addr, group: Ipv4Addr) -> bool {
        self.0.get(&group).is_some_and(|filter| filter.excludes != filter.sources.contains(&source))
    }

    /// Returns whether the host receives packets of any source to this group.
    pub(crate) fn has(&self, group: Ipv4Addr) -> bool {
        self.0.contains_key(&group)
    }

    /// Applies an IGMP message. Returns the groups whose members may have changed.
    pub(crate) fn apply(&mut self, message: &[u8]) -> Vec<Ipv4Addr> {
        let records = parse(message);
        records.iter().for_each(|record| self.record(record));
        records.into_iter().map(|record| record.group).collect()
    }

    fn record(&mut self, record: &Record) {
        if self.0.len() >= MAX_GROUPS && !self.0.contains_key(&record.group) {
            return;
        }
        let filter = self.0.entry(record.group).or_default();
        let listed = record.sources.iter().copied();
        match record.kind {
            Kind::Include | Kind::Exclude => {
                filter.excludes = record.kind == Kind::Exclude;
                filter.sources = listed.take(MAX_SOURCES).collect();
            }
            Kind::Allow | Kind::Block => {
                let adds = (record.kind == Kind::Allow) != filter.excludes;
                for source in listed {
                    if !adds {
                        filter.sources.remove(&source);
                    } else if filter.sources.len() < MAX_SOURCES {
                        filter.sources.insert(source);
                    }
                }
            }
        }
        if !filter.excludes && filter.sources.is_empty() {
            self.0.remove(&record.group);
        }
    }
}

/// Parses a message. The result is empty if the message is not a report.
fn parse(message: &[u8]) -> Vec<Record> {
    let group = |at: usize| message.get(at..at + 4).and_then(address).filter(Ipv4Addr::is_multicast);
    let of_v2 = |kind| group(4).map(|group| Record { kind, group, sources: Vec::new() });
    match message.first() {
        Some(&V2_REPORT) => of_v2(Kind::Exclude).into_iter().collect(),
        Some(&V2_LEAVE) => of_v2(Kind::Include).into_iter().collect(),
        Some(&V3_REPORT) => records(message).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// Parses the records of a report; `None` if the report is incomplete. Records of unknown kinds are left out.
fn records(message: &[u8]) -> Option<Vec<Record>> {
    let count = u16::from_be_bytes([*message.get(6)?, *message.get(7)?]);
    let mut rest = message.get(8..)?;
    let mut records = Vec::new();
    for _ in 0..count {
        let (head, after) = rest.split_first_chunk::<8>()?;
        let listed = usize::from(u16::from_be_bytes([head[2], head[3]])) * 4;
        let sources = after.get(..listed)?.chunks_exact(4).filter_map(address).collect();
        rest = after.get(listed + usize::from(head[1]) * 4..)?;
        let kind = match head[0] {
            1 | 3 => Kind::Include,
            2 | 4 => Kind::Exclude,
            5 => Kind::Allow,
            6 => Kind::Block,
            _ => continue,
        };
        let group = address(&head[4..])?;
        if group.is_multicast() {
            records.push(Record { kind, group, sources });
        }
    }
    Some(records)
}

fn address(bytes: &[u8]) -> Option<Ipv4Addr> {
    Some(Ipv4Addr::from(*bytes.first_chunk::<4>()?))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
    const A: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);

    /// Returns a report with one record.
    pub(crate) fn report(kind: u8, group: Ipv4Addr, sources: &[Ipv4Addr]) -> Vec<u8> {
        let mut message = vec![V3_REPORT, 0, 0, 0, 0, 0, 0, 1, kind, 0, 0, sources.len() as u8];
        message.extend(group.octets());
        sources.iter().for_each(|source| message.extend(source.octets()));
        message
    }

    /// Applies records one after another. Returns whether packets of A and B are received after each.
    fn after(records: &[(u8, &[Ipv4Addr])]) -> Vec<(bool, bool)> {
        let mut host = Memberships::default();
        let apply = |(kind, sources): &(u8, &[Ipv4Addr])| {
            assert_eq!(host.apply(&report(*kind, GROUP, sources)), [GROUP]);
            (host.receives(A, GROUP), host.receives(B, GROUP))
        };
        records.iter().map(apply).collect()
    }

    #[test]
    fn records_select_the_sources_of_a_group() {
        let all = (true, true);
        let none = (false, false);
        assert_eq!(after(&[(4, &[]), (3, &[])]), [all, none], "a join and a leave of all sources");
        assert_eq!(after(&[(2, &[]), (1, &[])]), [all, none], "the same as present state");
        assert_eq!(after(&[(5, &[A]), (5, &[B]), (6, &[A])]), [(true, false), all, (false, true)]);
        assert_eq!(after(&[(4, &[A]), (6, &[B]), (5, &[A, B])]), [(false, true), none, all]);
    }

    #[test]
    fn messages_of_version_2_join_and_leave() {
        let message = |kind| [&[kind, 0, 0, 0][..], &GROUP.octets()].concat();
        let mut host = Memberships::default();
        assert_eq!(host.apply(&message(V2_REPORT)), [GROUP]);
        assert!(host.receives(A, GROUP));
        assert_eq!(host.apply(&message(V2_LEAVE)), [GROUP]);
        assert_eq!(host, Memberships::default(), "nothing remains of a left group");
    }

    #[test]
    fn incomplete_reports_and_other_messages_change_nothing() {
        let whole = report(4, GROUP, &[A, B]);
        for length in 0..whole.len() {
            assert_eq!(Memberships::default().apply(&whole[..length]), [] as [Ipv4Addr; 0], "{length}");
        }
        for other in [report(9, GROUP, &[]), report(4, A, &[]), vec![0x11; 12]] {
            assert_eq!(Memberships::default().apply(&other), [] as [Ipv4Addr; 0]);
        }
    }

    #[test]
    fn groups_and_sources_of_a_host_are_bounded() {
        let mut host = Memberships::default();
        for number in 0..2_000_u32 {
            host.apply(&report(4, Ipv4Addr::from_bits(GROUP.to_bits() + number), &[]));
            host.apply(&report(6, GROUP, &[Ipv4Addr::from_bits(A.to_bits() + number)]));
        }
        assert_eq!((host.0.len(), host.0[&GROUP].sources.len()), (MAX_GROUPS, MAX_SOURCES));
    }
}
