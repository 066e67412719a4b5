//! What the programs and user space share: the other half of `bpf/layout.h`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Members of a group that are seen one by one (`SLOTS` in `layout.h`).
pub const SLOTS: usize = 128;

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// Which connections are one group: destination prefix and network namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKey {
    /// The prefix, with zeros behind it.
    pub prefix: IpAddr,
    /// Its length in bits.
    pub bits: u8,
    /// Inode number of the network namespace.
    pub netns: u32,
}

impl GroupKey {
    /// Bytes of the key in the map.
    pub const SIZE: usize = 24;

    /// The group of a destination. An IPv4 address mapped into IPv6 counts as IPv4.
    #[must_use]
    pub fn of(destination: IpAddr, netns: u32, settings: &Settings) -> Self {
        match destination.to_canonical() {
            IpAddr::V4(address) => {
                let bits = settings.prefix4.min(32);
                let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
                let prefix = Ipv4Addr::from(u32::from(address) & mask).into();
                Self { prefix, bits: bits as u8, netns }
            }
            IpAddr::V6(address) => {
                let bits = settings.prefix6.min(128);
                let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
                let prefix = Ipv6Addr::from(u128::from(address) & mask).into();
                Self { prefix, bits: bits as u8, netns }
            }
        }
    }

    /// As it stands in the map.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let family = match self.prefix {
            IpAddr::V4(address) => {
                bytes[..4].copy_from_slice(&address.octets());
                AF_INET
            }
            IpAddr::V6(address) => {
                bytes[..16].copy_from_slice(&address.octets());
                AF_INET6
            }
        };
        bytes[16..20].copy_from_slice(&self.netns.to_ne_bytes());
        bytes[20] = self.bits;
        bytes[21] = family;
        bytes
    }

    /// From the map; `None` if it has another size or family.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::SIZE] = bytes.try_into().ok()?;
        let address: [u8; 16] = bytes[..16].try_into().ok()?;
        let prefix = match bytes[21] {
            AF_INET => Ipv4Addr::new(address[0], address[1], address[2], address[3]).into(),
            AF_INET6 => Ipv6Addr::from(address).into(),
            _ => return None,
        };
        let netns = u32::from_ne_bytes(bytes[16..20].try_into().ok()?);
        Some(Self { prefix, bits: bytes[20], netns })
    }
}

/// What the programs are loaded with (`struct settings`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Bits of an IPv4 destination that make a group.
    pub prefix4: u32,
    /// Bits of an IPv6 destination that make a group.
    pub prefix6: u32,
    /// Whether members are cut when another one loses (seed 002, 4.3).
    pub coordinate: bool,
    /// Whether a new connection begins beside a reference (seed 002, 4.4).
    pub share_start: bool,
    /// Whether the first window of a connection leaves over half a round trip.
    pub pace_start: bool,
    /// Whether a loss below the watermark halves its own window, as any TCP's does, and tells nobody.
    pub cut_below: bool,
    /// Packets that a new connection begins with at least, beside a reference.
    pub least_start: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            prefix4: 24,
            prefix6: 64,
            coordinate: true,
            share_start: true,
            pace_start: false,
            cut_below: false,
            least_start: 1,
        }
    }
}

impl Settings {
    /// Bytes of `struct settings`.
    pub const SIZE: usize = 28;

    /// As it stands in the object's read-only data.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let words = [
            self.prefix4,
            self.prefix6,
            u32::from(self.coordinate),
            u32::from(self.share_start),
            u32::from(self.pace_start),
            u32::from(self.cut_below),
            self.least_start,
        ];
        let mut bytes = [0; Self::SIZE];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// From the object's read-only data; `None` if it is too short.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut read = Fields(bytes);
        Some(Self {
            prefix4: read.u32()?,
            prefix6: read.u32()?,
            coordinate: read.u32()? != 0,
            share_start: read.u32()? != 0,
            pace_start: read.u32()? != 0,
            cut_below: read.u32()? != 0,
            least_start: read.u32()?,
        })
    }
}

/// A member of a group that has a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Number of the connection, never 0.
    pub id: u32,
    /// Congestion window, packets.
    pub cwnd: u32,
    /// Slow start threshold, packets; `0x7fffffff` is none yet.
    pub ssthresh: u32,
    /// It has data outstanding or to send.
    pub active: bool,
}

/// One group, as it stood when it was read (`struct group`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Members by what began and ended.
    pub members: u32,
    /// When it was made, ns of `CLOCK_MONOTONIC`.
    pub born: u64,
    /// When a member last began, cut or ended, ns of `CLOCK_MONOTONIC`.
    pub last: u64,
    /// Cuts published.
    pub cut_gen: u32,
    /// Smoothed round trip of all members, microseconds; 0: no sample yet.
    pub srtt_us: u32,
    /// Variation of the round trip, microseconds.
    pub rttvar_us: u32,
    /// Members that wait for an acknowledgement after a timeout.
    pub frozen: u32,
    /// Bytes acknowledged to all members.
    pub acked: u64,
    /// Losses without timeout that cut the group.
    pub losses: u64,
    /// Timeouts that cut the group.
    pub timeouts: u64,
    /// Losses and timeouts below the watermark, which cut nobody.
    pub ignored: u64,
    /// Coordinated cuts that members applied.
    pub applied: u64,
    /// Coordinated cuts that came too late to be applied.
    pub expired: u64,
    /// Connections that began from a reference.
    pub shared: u64,
    /// Connections that began without one.
    pub alone: u64,
    /// Members with a slot.
    pub slots: Vec<Slot>,
}

impl Group {
    /// Bytes of `struct group`.
    pub const SIZE: usize = 120 + SLOTS * 16;

    /// From the map; `None` if it has another size.
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
            slots: Vec::new(),
        };
        for _ in 0..SLOTS {
            let (id, cwnd, ssthresh) = (read.u32()?, read.u32()?, read.u32()?);
            let active = read.u32()? != 0;
            if id != 0 {
                group.slots.push(Slot { id, cwnd, ssthresh, active });
            }
        }
        Some(group)
    }

    /// Mean window of the members with a slot, packets.
    #[must_use]
    pub fn mean_cwnd(&self) -> Option<f64> {
        let sum: f64 = self.slots.iter().map(|slot| f64::from(slot.cwnd)).sum();
        (!self.slots.is_empty()).then(|| sum / self.slots.len() as f64)
    }
}

/// What the programs count over all groups (`struct totals`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Whether events go to the ring.
    pub trace: bool,
    /// Connections that began.
    pub begun: u64,
    /// Connections that ended.
    pub ended: u64,
    /// Connections without a group, as the table was full.
    pub ungrouped: u64,
    /// Idle groups removed to make room.
    pub evicted: u64,
    /// Hooks that found a window of zero.
    pub zero: u64,
    /// Events that the ring had no room for.
    pub lost_events: u64,
}

impl Totals {
    /// Bytes of `struct totals`.
    pub const SIZE: usize = 56;

    /// From the map; `None` if it is too short.
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

/// What a member decided (`enum event_kind`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Its first data left with this window.
    Start,
    /// It lost and cut itself and the group.
    Loss,
    /// It timed out and cut itself and the group.
    Timeout,
    /// It lost below its watermark: nobody was cut.
    Ignored,
    /// It applied another's cut.
    Applied,
    /// It ended.
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

    /// Its name in traces.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// One decision (`struct event`). Windows and flights are in packets, sequence numbers in bytes.
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
    /// Bytes of `struct event`.
    pub const SIZE: usize = 80;

    /// First line of a trace.
    pub const COLUMNS: &'static str = "ns,group,id,kind,state,of,flight,reference,reference_ssthresh,cwnd_before,\
        ssthresh_before,cwnd_after,ssthresh_after,una,nxt,watermark_before,watermark_after,generation";

    /// From the ring; `None` if it is too short or of no known kind.
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

    /// A line of a trace.
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

/// Reads fields in the machine's byte order, one after another.
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
    fn a_destination_falls_into_its_prefix_and_survives_the_map() {
        let settings = Settings::default();
        let key = GroupKey::of("10.1.2.3".parse().unwrap(), 7, &settings);
        assert_eq!((key.prefix, key.bits), ("10.1.2.0".parse().unwrap(), 24));
        assert_eq!(GroupKey::of("::ffff:10.1.2.9".parse().unwrap(), 7, &settings), key);
        assert_eq!(GroupKey::from_bytes(&key.to_bytes()), Some(key));
        let six = GroupKey::of("2001:db8:1:2:3::4".parse().unwrap(), 7, &settings);
        assert_eq!((six.prefix, six.bits), ("2001:db8:1:2::".parse().unwrap(), 64));
        assert_eq!(GroupKey::from_bytes(&six.to_bytes()), Some(six));
    }

    #[test]
    fn the_widest_and_the_longest_prefix_do_not_overflow() {
        for (bits4, bits6) in [(0, 0), (32, 128)] {
            let settings = Settings { prefix4: bits4, prefix6: bits6, ..Settings::default() };
            let four = GroupKey::of("10.1.2.3".parse().unwrap(), 0, &settings);
            let six = GroupKey::of("2001:db8::1".parse().unwrap(), 0, &settings);
            assert_eq!((u32::from(four.bits), u32::from(six.bits)), (bits4, bits6));
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
        for length in 0..Totals::SIZE {
            assert_eq!(Totals::from_bytes(&vec![0; length]), None);
        }
    }
}
