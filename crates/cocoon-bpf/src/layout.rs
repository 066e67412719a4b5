//! Data shared by the programs and user space. `bpf/layout.h` has the same definitions in C.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Number of slots of a group. Only members with a slot have individually stored state (`SLOTS` in `layout.h`).
pub const SLOTS: usize = 128;

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// Common property of the connections of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Which {
    /// A destination prefix: its address with trailing zeros, and its length in bits.
    Prefix(IpAddr, u8),
    /// Number of a measured group.
    Measured(u32),
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(address, bits) => write!(f, "{address}/{bits}"),
            Self::Measured(number) => write!(f, "measured {number}"),
        }
    }
}

/// Key of a group: the common property of its connections, and their network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKey {
    /// Common property of the connections.
    pub which: Which,
    /// Inode number of the network namespace.
    pub netns: u32,
}

impl GroupKey {
    /// Size of the key in the map, bytes.
    pub const SIZE: usize = 24;

    /// Returns the key of the group of a destination's prefix. An IPv4-mapped IPv6 address counts as IPv4.
    #[must_use]
    pub fn of(destination: IpAddr, netns: u32, settings: &Settings) -> Self {
        let which = match destination.to_canonical() {
            IpAddr::V4(address) => {
                let bits = settings.prefix4.min(32);
                let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
                Which::Prefix(Ipv4Addr::from(u32::from(address) & mask).into(), bits as u8)
            }
            IpAddr::V6(address) => {
                let bits = settings.prefix6.min(128);
                let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
                Which::Prefix(Ipv6Addr::from(u128::from(address) & mask).into(), bits as u8)
            }
        };
        Self { which, netns }
    }

    /// Returns the key of a single destination host, an atom (paper 002, 4.1).
    #[must_use]
    pub fn atom(destination: IpAddr, netns: u32) -> Self {
        Self::of(destination, netns, &Settings { prefix4: 32, prefix6: 128, ..Settings::default() })
    }

    /// Returns the bytes of the map key.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        match self.which {
            Which::Prefix(IpAddr::V4(address), bits) => {
                bytes[..4].copy_from_slice(&address.octets());
                (bytes[20], bytes[21]) = (bits, AF_INET);
            }
            Which::Prefix(IpAddr::V6(address), bits) => {
                bytes[..16].copy_from_slice(&address.octets());
                (bytes[20], bytes[21]) = (bits, AF_INET6);
            }
            Which::Measured(number) => bytes[..4].copy_from_slice(&number.to_ne_bytes()),
        }
        bytes[16..20].copy_from_slice(&self.netns.to_ne_bytes());
        bytes
    }

    /// Parses the bytes of a map key; `None` if they have another size or family.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::SIZE] = bytes.try_into().ok()?;
        let address: [u8; 16] = bytes[..16].try_into().ok()?;
        let four: [u8; 4] = bytes[..4].try_into().ok()?;
        let which = match bytes[21] {
            AF_INET => Which::Prefix(Ipv4Addr::from(four).into(), bytes[20]),
            AF_INET6 => Which::Prefix(Ipv6Addr::from(address).into(), bytes[20]),
            0 => Which::Measured(u32::from_ne_bytes(four)),
            _ => return None,
        };
        let netns = u32::from_ne_bytes(bytes[16..20].try_into().ok()?);
        Some(Self { which, netns })
    }
}

/// The kernel's counters of an atom since the start of the measurement (`struct atom`). Sums only increase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AtomCounters {
    /// Number of acknowledgements.
    pub acks: u64,
    /// Number of acknowledged bytes.
    pub acked: u64,
    /// Sum of the round-trip time samples, microseconds.
    pub rtt_us: u64,
    /// Time of the last acknowledgement, ns of `CLOCK_MONOTONIC`.
    pub last: u64,
    /// Number of round-trip time samples.
    pub samples: u32,
    /// Shortest round-trip time sample, microseconds; 0 before the first sample.
    pub min_us: u32,
    /// Number of fast retransmits, ECN echoes and timeouts.
    pub losses: u32,
    /// Number of connections to the atom.
    pub members: u32,
}

impl AtomCounters {
    /// Size of `struct atom`, bytes.
    pub const SIZE: usize = 48;

    /// Parses the bytes of a map entry; `None` if they are too short.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut read = Fields(bytes);
        Some(Self {
            acks: read.u64()?,
            acked: read.u64()?,
            rtt_us: read.u64()?,
            last: read.u64()?,
            samples: read.u32()?,
            min_us: read.u32()?,
            losses: read.u32()?,
            members: read.u32()?,
        })
    }
}

/// Settings that user space changes while the programs run (`struct control`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Control {
    /// Number of the measurement in progress; 0 while atoms are not counted.
    pub measure: u32,
    /// Number of changes so far to the membership of measured groups.
    pub epoch: u32,
}

impl Control {
    /// Size of `struct control`, bytes.
    pub const SIZE: usize = 8;

    /// Returns the bytes of the map entry.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..4].copy_from_slice(&self.measure.to_ne_bytes());
        bytes[4..].copy_from_slice(&self.epoch.to_ne_bytes());
        bytes
    }

    /// Parses the bytes of a map entry; `None` if they are too short.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut read = Fields(bytes);
        Some(Self { measure: read.u32()?, epoch: read.u32()? })
    }
}

/// Settings with which the programs are loaded (`struct settings`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Prefix length by which IPv4 destinations are grouped, bits.
    pub prefix4: u32,
    /// Prefix length by which IPv6 destinations are grouped, bits.
    pub prefix6: u32,
    /// Whether members are cut when another member has a loss (paper 002, 4.3).
    pub coordinate: bool,
    /// Whether a new connection takes its starting window from a reference member (paper 002, 4.4).
    pub share_start: bool,
    /// Whether the windows of all members of a group together are limited after a cut.
    pub group_limit: bool,
    /// Whether a member halves its own window, as any TCP does, when it loses a packet that it sent before the latest cut. The
    /// windows of other members are not cut.
    pub cut_below: bool,
    /// Minimum starting window of a new connection with a reference member, packets.
    pub min_start: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            prefix4: 24,
            prefix6: 64,
            coordinate: true,
            share_start: true,
            group_limit: false,
            cut_below: false,
            min_start: 1,
        }
    }
}

impl Settings {
    /// Size of `struct settings`, bytes.
    pub const SIZE: usize = 28;

    /// Returns the bytes for the read-only data of the object.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let words = [
            self.prefix4,
            self.prefix6,
            u32::from(self.coordinate),
            u32::from(self.share_start),
            u32::from(self.group_limit),
            u32::from(self.cut_below),
            self.min_start,
        ];
        let mut bytes = [0; Self::SIZE];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// Parses the read-only data of the object; `None` if it is too short.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut read = Fields(bytes);
        Some(Self {
            prefix4: read.u32()?,
            prefix6: read.u32()?,
            coordinate: read.u32()? != 0,
            share_start: read.u32()? != 0,
            group_limit: read.u32()? != 0,
            cut_below: read.u32()? != 0,
            min_start: read.u32()?,
        })
    }
}

/// State of a member that has a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Number of the connection, never 0.
    pub id: u32,
    /// Congestion window, packets.
    pub cwnd: u32,
    /// Slow start threshold, packets; `0x7fffffff` before the first cut.
    pub ssthresh: u32,
    /// Whether the connection has data in flight or to send.
    pub active: bool,
}

/// State of one group at the time of reading (`struct group`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Number of members: started minus ended connections.
    pub members: u32,
    /// Time of creation, ns of `CLOCK_MONOTONIC`.
    pub born: u64,
    /// Time at which a member last started, was cut or ended, ns of `CLOCK_MONOTONIC`.
    pub last: u64,
    /// Number of published cuts.
    pub cut_gen: u32,
    /// Smoothed round-trip time of all members, microseconds; 0 before the first sample.
    pub srtt_us: u32,
    /// Variation of the round-trip time, microseconds.
    pub rttvar_us: u32,
    /// Number of members that wait for an acknowledgement after a timeout.
    pub frozen: u32,
    /// Number of bytes acknowledged to all members.
    pub acked: u64,
    /// Number of losses without timeout that cut the group.
    pub losses: u64,
    /// Number of timeouts that cut the group.
    pub timeouts: u64,
    /// Number of losses and timeouts of packets sent before the latest cut. They cut no member.
    pub ignored: u64,
    /// Number of coordinated cuts that members applied.
    pub applied: u64,
    /// Number of coordinated cuts that came too late to be applied.
    pub expired: u64,
    /// Number of connections that took their starting window from a reference member.
    pub shared: u64,
    /// Number of connections that started without a reference member.
    pub alone: u64,
    /// Number of acknowledgements at which the limit of all windows reduced a window.
    pub limited: u64,
    /// State of the members that have a slot.
    pub slots: Vec<Slot>,
}

impl Group {
    /// Size of `struct group`, bytes.
    pub const SIZE: usize = 160 + SLOTS * 16;

    /// Parses the bytes of a map entry; `None` if they have another size.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != Self::SIZE {
            return None;
        }
        let mut read = Fields(bytes);
        let _lock = read.u32()?;
        let members = read.u32()?;
        let (born, last, _cut_ns) = (read.u64()?, read.u64()?, read.u64()?);
        let (cut_gen, _cut_f, _cut_kind) = (read.u32()?, read.u32()?, read.u32()?);
        let (srtt_us, rttvar_us, frozen) = (read.u32()? >> 3, read.u32()? >> 2, read.u32()?);
        let mut group = Self {
            members,
            born,
            last,
            cut_gen,
            srtt_us,
            rttvar_us,
            frozen,
            acked: read.u64()?,
            losses: read.u64()?,
            timeouts: read.u64()?,
            ignored: read.u64()?,
            applied: read.u64()?,
            expired: read.u64()?,
            shared: read.u64()?,
            alone: read.u64()?,
            limited: read.u64()?,
            slots: Vec::new(),
        };
        let _limit = (read.u64()?, read.u64()?, read.u64()?, read.u64()?);
        for _ in 0..SLOTS {
            let (id, cwnd, ssthresh) = (read.u32()?, read.u32()?, read.u32()?);
            let active = read.u32()? != 0;
            if id != 0 {
                group.slots.push(Slot { id, cwnd, ssthresh, active });
            }
        }
        Some(group)
    }

    /// Returns the mean window of the members with a slot, packets.
    #[must_use]
    pub fn mean_cwnd(&self) -> Option<f64> {
        let sum: f64 = self.slots.iter().map(|slot| f64::from(slot.cwnd)).sum();
        (!self.slots.is_empty()).then(|| sum / self.slots.len() as f64)
    }
}

/// Counters of the programs over all groups (`struct totals`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Whether events are written to the ring.
    pub trace: bool,
    /// Number of started connections.
    pub begun: u64,
    /// Number of ended connections.
    pub ended: u64,
    /// Number of connections without a group because the table of groups was full.
    pub ungrouped: u64,
    /// Number of idle groups removed to make room.
    pub evicted: u64,
    /// Number of hook calls that found a congestion window of zero.
    pub zero: u64,
    /// Number of events lost because the ring was full.
    pub lost_events: u64,
}

impl Totals {
    /// Size of `struct totals`, bytes.
    pub const SIZE: usize = 56;

    /// Parses the bytes of a map entry; `None` if they are too short.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut read = Fields(bytes);
        let (trace, _ids) = (read.u32()? != 0, read.u32()?);
        Some(Self {
            trace,
            begun: read.u64()?,
            ended: read.u64()?,
            ungrouped: read.u64()?,
            evicted: read.u64()?,
            zero: read.u64()?,
            lost_events: read.u64()?,
        })
    }
}

/// Decision of a member (`enum event_kind`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// The member sends its first data with this window.
    Start,
    /// The member detected a loss and cut itself and the group.
    Loss,
    /// The member timed out and cut itself and the group.
    Timeout,
    /// The member detected the loss of a packet sent before its latest cut. No member was cut.
    Ignored,
    /// The member applied the cut of another member.
    Applied,
    /// The connection of the member ended.
    Release,
}

impl EventKind {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Start, "start"),
        (Self::Loss, "loss"),
        (Self::Timeout, "timeout"),
        (Self::Ignored, "ignored"),
        (Self::Applied, "applied"),
        (Self::Release, "release"),
    ];

    /// Returns the name of the decision in traces.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// One decision of a member (`struct event`). Windows and flights are in packets, sequence numbers in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the columns are described by COLUMNS' documentation in docs/cocoon-linux.md"
)]
pub struct Event {
    pub ns: u64,
    pub group: u64,
    pub id: u32,
    pub kind: EventKind,
    pub state: u32,
    pub of: u32,
    pub flight: u32,
    pub reference: u32,
    pub reference_ssthresh: u32,
    pub cwnd_before: u32,
    pub ssthresh_before: u32,
    pub cwnd_after: u32,
    pub ssthresh_after: u32,
    pub una: u32,
    pub nxt: u32,
    pub watermark_before: u32,
    pub watermark_after: u32,
    pub generation: u32,
}

impl Event {
    /// Size of `struct event`, bytes.
    pub const SIZE: usize = 80;

    /// Header line of a trace.
    pub const COLUMNS: &'static str = "ns,group,id,kind,state,of,flight,reference,reference_ssthresh,cwnd_before,\
        ssthresh_before,cwnd_after,ssthresh_after,una,nxt,watermark_before,watermark_after,generation";

    /// Parses an entry of the ring; `None` if it is too short or has an unknown kind.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut read = Fields(bytes);
        let (ns, group, id) = (read.u64()?, read.u64()?, read.u32()?);
        let (kind, _) = *EventKind::ALL.get(read.u32()? as usize)?;
        Some(Self {
            ns,
            group,
            id,
            kind,
            state: read.u32()?,
            of: read.u32()?,
            flight: read.u32()?,
            reference: read.u32()?,
            reference_ssthresh: read.u32()?,
            cwnd_before: read.u32()?,
            ssthresh_before: read.u32()?,
            cwnd_after: read.u32()?,
            ssthresh_after: read.u32()?,
            una: read.u32()?,
            nxt: read.u32()?,
            watermark_before: read.u32()?,
            watermark_after: read.u32()?,
            generation: read.u32()?,
        })
    }

    /// Returns the event as a line of a trace.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let words = [
            self.state,
            self.of,
            self.flight,
            self.reference,
            self.reference_ssthresh,
            self.cwnd_before,
            self.ssthresh_before,
            self.cwnd_after,
            self.ssthresh_after,
            self.una,
            self.nxt,
            self.watermark_before,
            self.watermark_after,
            self.generation,
        ];
        let words: Vec<String> = words.iter().map(u32::to_string).collect();
        format!("{},{},{},{},{}", self.ns, self.group, self.id, self.kind.name(), words.join(","))
    }
}

/// Reads consecutive fields in the byte order of the machine.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u32(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_ne_bytes(*word))
    }

    fn u64(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_of_a_destination_has_its_prefix_and_survives_encoding() {
        let settings = Settings::default();
        let key = GroupKey::of("10.1.2.3".parse().unwrap(), 7, &settings);
        assert_eq!(key.which, Which::Prefix("10.1.2.0".parse().unwrap(), 24));
        assert_eq!(GroupKey::of("::ffff:10.1.2.9".parse().unwrap(), 7, &settings), key);
        assert_eq!(GroupKey::from_bytes(&key.to_bytes()), Some(key));
        let six = GroupKey::of("2001:db8:1:2:3::4".parse().unwrap(), 7, &settings);
        assert_eq!(six.which.to_string(), "2001:db8:1:2::/64");
        assert_eq!(GroupKey::from_bytes(&six.to_bytes()), Some(six));
        let measured = GroupKey { which: Which::Measured(70_000), netns: 7 };
        assert_eq!(GroupKey::from_bytes(&measured.to_bytes()), Some(measured));
        let atom = GroupKey::atom("10.1.2.3".parse().unwrap(), 7);
        assert_eq!((atom.which.to_string().as_str(), atom.netns), ("10.1.2.3/32", 7));
    }

    #[test]
    fn shortest_and_longest_prefixes_do_not_overflow() {
        for (bits4, bits6) in [(0, 0), (32, 128)] {
            let settings = Settings { prefix4: bits4, prefix6: bits6, ..Settings::default() };
            let four = GroupKey::of("10.1.2.3".parse().unwrap(), 0, &settings);
            let six = GroupKey::of("2001:db8::1".parse().unwrap(), 0, &settings);
            assert_eq!(
                four.which,
                Which::Prefix(["0.0.0.0", "10.1.2.3"][usize::from(bits4 > 0)].parse().unwrap(), bits4 as u8)
            );
            assert_eq!(
                six.which,
                Which::Prefix(["::", "2001:db8::1"][usize::from(bits6 > 0)].parse().unwrap(), bits6 as u8)
            );
        }
    }

    #[test]
    fn truncated_values_are_refused() {
        for length in 0..Group::SIZE {
            assert_eq!(Group::from_bytes(&vec![0; length]), None);
        }
        for length in 0..Event::SIZE {
            assert_eq!(Event::from_bytes(&vec![0; length]), None, "{length}");
        }
        for length in 0..AtomCounters::SIZE {
            assert_eq!(AtomCounters::from_bytes(&vec![0; length]), None);
        }
        assert_eq!(Control::from_bytes(&[0; Control::SIZE - 1]), None);
        for length in 0..Totals::SIZE {
            assert_eq!(Totals::from_bytes(&vec![0; length]), None);
        }
    }
}
