//! Memberships of hosts in groups, from their reports (IGMPv3: RFC 3376; IGMPv2: RFC 2236; MLDv2: RFC 3810; MLDv1: RFC 2710).
//!
//! The kernel of a host reports every join and leave at once, and every report reaches the emulator. Therefore nobody asks for
//! memberships again, and they have no timers.

use crate::ip;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Maximum number of groups of a host, and of sources that a host lists for a group. Further ones are ignored.
const MAX_GROUPS: usize = 1_000;
const MAX_SOURCES: usize = 1_000;

/// A protocol of reports. Reports of the newer versions differ only in the length of addresses.
#[derive(Debug)]
struct Protocol {
    /// Protocol number in IP.
    number: u8,
    /// Kinds of messages: the query, report and leave of the older version, and the report of the newer one.
    query: u8,
    report: u8,
    leave: u8,
    report_of_records: u8,
    /// Place of the group in messages of the older version.
    group: usize,
    /// Length of an address.
    address: usize,
}

const IGMP: Protocol = Protocol {
    number: 2,
    query: 0x11,
    report: 0x16,
    leave: 0x17,
    report_of_records: 0x22,
    group: 4,
    address: 4,
};
const MLD: Protocol = Protocol {
    number: 58,
    query: 130,
    report: 131,
    leave: 132,
    report_of_records: 143,
    group: 8,
    address: 16,
};

/// A message about memberships.
#[derive(Debug)]
pub(crate) struct Message<'a> {
    protocol: &'static Protocol,
    bytes: &'a [u8],
}

impl<'a> Message<'a> {
    /// Returns the message in a packet. All messages of IGMP are for the local network only.
    pub(crate) fn of(packet: &'a [u8]) -> Option<Message<'a>> {
        let parts = ip::parts(packet)?;
        let bytes = packet.get(parts.payload?..)?;
        let is_6 = parts.addresses.len() == 32;
        let protocol = Some(if is_6 { &MLD } else { &IGMP }).filter(|of| of.number == parts.protocol)?;
        let Protocol { query, report, leave, report_of_records, .. } = *protocol;
        let kinds = [query, report, leave, report_of_records];
        // Other messages of ICMPv6 have other purposes.
        let is_meant = !is_6 || bytes.first().is_some_and(|kind| kinds.contains(kind));
        is_meant.then_some(Message { protocol, bytes })
    }

    /// Returns the records of a report. The result is empty if the message is not a report.
    fn records(&self) -> Vec<Record> {
        let Message { protocol, bytes } = self;
        let of_group = |kind| {
            let group = bytes.get(protocol.group..protocol.group + protocol.address)?;
            Some(Record { kind, group: ip::address(group)?, sources: Vec::new() })
        };
        let records = match bytes.first() {
            Some(kind) if *kind == protocol.report => of_group(Kind::Exclude).into_iter().collect(),
            Some(kind) if *kind == protocol.leave => of_group(Kind::Include).into_iter().collect(),
            Some(kind) if *kind == protocol.report_of_records => {
                listed(bytes, protocol.address).unwrap_or_default()
            }
            _ => Vec::new(),
        };
        // Packets to local groups are not forwarded.
        let is_meant = |record: &Record| record.group.is_multicast() && !ip::is_local(record.group);
        records.into_iter().filter(is_meant).collect()
    }
}

/// A record of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Record {
    kind: Kind,
    group: IpAddr,
    sources: Vec<IpAddr>,
}

/// Kind of a record (RFC 3376, 4.2.12; RFC 3810, 5.2.12).
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
    sources: BTreeSet<IpAddr>,
}

/// Memberships of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Memberships(BTreeMap<IpAddr, Filter>);

impl Memberships {
    /// Returns whether the host receives packets of this source to this group.
    pub(crate) fn receives(&self, source: IpAddr, group: IpAddr) -> bool {
        self.0.get(&group).is_some_and(|filter| filter.excludes != filter.sources.contains(&source))
    }

    /// Returns whether the host receives packets of any source to this group.
    pub(crate) fn has(&self, group: IpAddr) -> bool {
        self.0.contains_key(&group)
    }

    /// Applies a message. Returns the groups whose members may have changed.
    pub(crate) fn apply(&mut self, message: &Message<'_>) -> Vec<IpAddr> {
        let records = message.records();
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

/// Parses the records of a report, with addresses of this length; `None` if the report is incomplete. Records of unknown kinds are
/// left out.
fn listed(message: &[u8], address: usize) -> Option<Vec<Record>> {
    let count = u16::from_be_bytes([*message.get(6)?, *message.get(7)?]);
    let mut rest = message.get(8..)?;
    let mut records = Vec::new();
    for _ in 0..count {
        let (head, after) = rest.split_first_chunk::<4>()?;
        let (group, after) = after.split_at_checked(address)?;
        let listed = usize::from(u16::from_be_bytes([head[2], head[3]])) * address;
        let sources = after.get(..listed)?.chunks_exact(address).filter_map(ip::address).collect();
        rest = after.get(listed + usize::from(head[1]) * 4..)?;
        let kind = match head[0] {
            1 | 3 => Kind::Include,
            2 | 4 => Kind::Exclude,
            5 => Kind::Allow,
            6 => Kind::Block,
            _ => continue,
        };
        records.push(Record { kind, group: ip::address(group)?, sources });
    }
    Some(records)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::ip::tests::{extend, udp};

    /// A group and two sources, of each version.
    const ENDS: [[&str; 3]; 2] = [["239.1.2.3", "10.9.0.1", "10.9.0.2"], ["ff3e::1:2", "fd09::1", "fd09::2"]];

    fn ends() -> [[IpAddr; 3]; 2] {
        ENDS.map(|ends| ends.map(|end| end.parse().expect("an address")))
    }

    fn octets(address: IpAddr) -> Vec<u8> {
        match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        }
    }

    /// Returns a packet with a message and the option "router alert", as kernels send it.
    fn packet(is_6: bool, message: &[u8]) -> Vec<u8> {
        let length = message.len() as u16;
        if is_6 {
            let mut packet = udp([0; 16], MLD_ROUTERS, 0, 40 + length);
            packet[40..].copy_from_slice(message);
            return extend(&packet, 0, &[MLD.number, 0, 5, 2, 0, 0, 1, 0]);
        }
        let mut packet = udp([10, 9, 0, 1], [224, 0, 0, 22], 0, 24 + length);
        (packet[0], packet[9]) = (0x46, IGMP.number);
        packet[20..24].copy_from_slice(&[0x94, 4, 0, 0]);
        packet[24..].copy_from_slice(message);
        packet
    }

    const MLD_ROUTERS: [u8; 16] = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x16];

    /// Returns a packet with a report of one record.
    pub(crate) fn report(kind: u8, group: IpAddr, sources: &[IpAddr]) -> Vec<u8> {
        let version = if group.is_ipv6() { MLD } else { IGMP };
        let mut message =
            vec![version.report_of_records, 0, 0, 0, 0, 0, 0, 1, kind, 0, 0, sources.len() as u8];
        message.extend(octets(group));
        sources.iter().for_each(|source| message.extend(octets(*source)));
        packet(group.is_ipv6(), &message)
    }

    fn apply(host: &mut Memberships, packet: &[u8]) -> Vec<IpAddr> {
        host.apply(&Message::of(packet).unwrap_or_else(|| panic!("no message: {packet:?}")))
    }

    /// Applies records one after another in both versions. Returns whether packets of the first and the second source are received
    /// after each. Sources have the numbers 1 and 2.
    fn after(records: &[(u8, &[usize])]) -> Vec<(bool, bool)> {
        let of = |[group, a, b]: [IpAddr; 3]| {
            let mut host = Memberships::default();
            let state = |(kind, sources): &(u8, &[usize])| {
                let sources: Vec<_> = sources.iter().map(|number| [a, b][number - 1]).collect();
                assert_eq!(apply(&mut host, &report(*kind, group, &sources)), [group]);
                (host.receives(a, group), host.receives(b, group))
            };
            records.iter().map(state).collect::<Vec<_>>()
        };
        let [one, other] = ends().map(of);
        assert_eq!(one, other, "both versions have the same rules");
        one
    }

    #[test]
    fn records_select_the_sources_of_a_group() {
        let all = (true, true);
        let none = (false, false);
        assert_eq!(after(&[(4, &[]), (3, &[])]), [all, none], "a join and a leave of all sources");
        assert_eq!(after(&[(2, &[]), (1, &[])]), [all, none], "the same as present state");
        assert_eq!(after(&[(5, &[1]), (5, &[2]), (6, &[1])]), [(true, false), all, (false, true)]);
        assert_eq!(after(&[(4, &[1]), (6, &[2]), (5, &[1, 2])]), [(false, true), none, all]);
    }

    #[test]
    fn messages_of_older_versions_join_and_leave() {
        for [group, source, _] in ends() {
            let version = if group.is_ipv6() { MLD } else { IGMP };
            let message = |kind: u8| {
                let head = [&[kind][..], &[0; 7]].concat();
                packet(group.is_ipv6(), &[&head[..version.group], &octets(group)].concat())
            };
            let mut host = Memberships::default();
            assert_eq!(apply(&mut host, &message(version.report)), [group]);
            assert!(host.receives(source, group));
            assert!(apply(&mut host, &message(version.query)).is_empty());
            assert_eq!(apply(&mut host, &message(version.leave)), [group]);
            assert_eq!(host, Memberships::default(), "nothing remains of a left group");
        }
    }

    #[test]
    fn incomplete_reports_and_other_messages_change_nothing() {
        for [group, a, b] in ends() {
            let whole = report(4, group, &[a, b]);
            let headers = whole.len() - 12 - 3 * octets(group).len();
            for length in headers + 1..whole.len() {
                let cut = packet(group.is_ipv6(), &whole[headers..length]);
                assert!(apply(&mut Memberships::default(), &cut).is_empty(), "{length}");
                assert!(Message::of(&whole[..length]).is_none(), "it is shorter than it states");
            }
            for other in [report(9, group, &[]), report(4, a, &[])] {
                assert!(apply(&mut Memberships::default(), &other).is_empty(), "{other:?}");
            }
        }
        for local in ["224.0.0.251", "ff02::fb"] {
            let report = report(4, local.parse().expect("an address"), &[]);
            assert!(apply(&mut Memberships::default(), &report).is_empty(), "{local}");
        }
        let echo = packet(true, &[128, 0, 0, 0, 0, 0, 0, 0]);
        assert!(Message::of(&echo).is_none() && Message::of(&udp([0; 16], [1; 16], 0, 60)).is_none());
    }

    #[test]
    fn reports_of_any_bytes_are_bounded() {
        for [group, a, b] in ends() {
            let whole = report(4, group, &[a, b]);
            for place in 0..whole.len() {
                for value in [0, 1, 0x7f, 0xff] {
                    let mut damaged = whole.clone();
                    damaged[place] = value;
                    let records = Message::of(&damaged).map_or(Vec::new(), |message| message.records());
                    let sources: usize = records.iter().map(|record| record.sources.len()).sum();
                    assert!(records.len() <= 1 && sources <= 2, "{place} {value}: {records:?}");
                }
            }
        }
    }

    #[test]
    fn groups_and_sources_of_a_host_are_bounded() {
        for [group, source, _] in ends() {
            let other = |address: IpAddr, number: u32| {
                let mut bytes = octets(address);
                let (_, last) = bytes.split_last_chunk_mut::<4>().expect("an address");
                *last = (u32::from_be_bytes(*last) + number).to_be_bytes();
                ip::address(&bytes).expect("an address")
            };
            let mut host = Memberships::default();
            for number in 0..2_000 {
                apply(&mut host, &report(4, other(group, number), &[]));
                apply(&mut host, &report(6, group, &[other(source, number)]));
            }
            assert_eq!((host.0.len(), host.0[&group].sources.len()), (MAX_GROUPS, MAX_SOURCES));
        }
    }
}
