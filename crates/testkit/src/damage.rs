//! Fault injection on a link: loss, duplication, reordering and corruption of UDP datagrams, driven by random numbers.
//!
//! Other frames pass unchanged and in order: ARP, neighbour discovery, IGMP, MLD, TCP, broadcasts, fragments.

use faircast_core::rng::Rng;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Probabilities of each kind of damage. The default is no damage.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Damage {
    /// Fraction, 0 to 1, of datagrams that are lost.
    pub loss: f64,
    /// Fraction, 0 to 1, of datagrams that are delivered twice.
    pub duplicate: f64,
    /// Fraction, 0 to 1, of datagrams that are held back until 1 to [`Damage::REACH`] other datagrams have overtaken them.
    pub reorder: f64,
    /// Fraction, 0 to 1, of datagrams in which 1 to 3 bits of the payload are inverted. The UDP checksum is corrected, so that
    /// the kernel delivers the datagram to the program.
    pub corrupt: f64,
}

impl Damage {
    /// Maximum number of other datagrams that overtake a held datagram.
    pub const REACH: u64 = 8;

    /// Returns damage by loss only. `part` is the fraction of lost datagrams, 0 to 1.
    pub fn loss(part: f64) -> Damage {
        Damage { loss: part, ..Damage::default() }
    }
}

/// Maximum time for which a datagram is held back.
const PATIENCE: Duration = Duration::from_millis(20);

/// Random seed of all links.
const SEED: u64 = 0xfa17;

/// Counts of datagrams by kind of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Number of all datagrams.
    pub seen: u64,
    /// Number of lost datagrams.
    pub lost: u64,
    /// Number of datagrams that were delivered twice.
    pub duplicated: u64,
    /// Number of datagrams that were held back.
    pub reordered: u64,
    /// Number of datagrams with inverted bits.
    pub corrupted: u64,
}

/// Damages the datagrams in Ethernet frames.
#[derive(Debug)]
pub(crate) struct Injector {
    damage: Damage,
    rng: Rng,
    held: Vec<DelayedFrame>,
    tally: Tally,
}

#[derive(Debug)]
struct DelayedFrame {
    frame: Vec<u8>,
    /// Number of datagrams that still have to overtake this frame.
    others: u64,
    since: Instant,
}

impl Injector {
    /// Returns an injector. Injectors with different values of `stream` cause different random faults.
    pub(crate) fn new(damage: Damage, stream: u64) -> Injector {
        Injector { damage, rng: Rng::new(SEED, stream), held: Vec::new(), tally: Tally::default() }
    }

    /// Changes the damage.
    pub(crate) fn set(&mut self, damage: Damage) {
        self.damage = damage;
    }

    /// Returns the counts of datagrams so far.
    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// Damages one frame and passes the resulting frames to `each`: none, one or two copies of the frame, and held frames that
    /// enough other frames have overtaken.
    pub(crate) fn pass(&mut self, frame: &mut [u8], now: Instant, each: &mut impl FnMut(&[u8])) {
        let Some(datagram) = datagram(frame) else { return each(frame) };
        self.tally.seen += 1;
        if self.rng.chance(self.damage.loss) {
            self.tally.lost += 1;
            return;
        }
        if self.rng.chance(self.damage.corrupt) {
            self.corrupt(&mut frame[datagram]);
        }
        if self.rng.chance(self.damage.reorder) {
            self.tally.reordered += 1;
            let others = 1 + self.rng.below(Damage::REACH);
            self.held.push(DelayedFrame { frame: frame.to_vec(), others, since: now });
            return;
        }
        if self.rng.chance(self.damage.duplicate) {
            self.tally.duplicated += 1;
            each(frame);
        }
        each(frame);
        self.held.iter_mut().for_each(|held| held.others -= 1);
        self.let_go(|held| held.others == 0, each);
    }

    /// Passes to `each` the frames that were held back for the maximum time.
    pub(crate) fn release(&mut self, now: Instant, each: &mut impl FnMut(&[u8])) {
        self.let_go(|held| now.saturating_duration_since(held.since) >= PATIENCE, each);
    }

    fn let_go(&mut self, due: impl Fn(&DelayedFrame) -> bool, each: &mut impl FnMut(&[u8])) {
        for held in self.held.extract_if(.., |held| due(held)) {
            each(&held.frame);
        }
    }

    fn corrupt(&mut self, datagram: &mut [u8]) {
        let bits = (datagram.len() - UDP_HEADER) as u64 * 8;
        for _ in 0..(1 + self.rng.below(3)).min(bits) {
            let bit = self.rng.below(bits);
            flip(datagram, UDP_HEADER + (bit / 8) as usize, 1 << (bit % 8));
        }
        self.tally.corrupted += 1;
    }
}

const ETHERNET_HEADER: usize = 14;
const IPV6_HEADER: usize = 40;
const UDP_HEADER: usize = 8;
const UDP: u8 = 17;

/// Returns the position of a complete UDP datagram in a frame, including the UDP header. Returns `None` for a broadcast.
fn datagram(frame: &[u8]) -> Option<Range<usize>> {
    let (ethernet, packet) = frame.split_at_checked(ETHERNET_HEADER)?;
    if ethernet[..6] == [0xff; 6] {
        return None;
    }
    let word = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
    let (header, protocol) = match [ethernet[12], ethernet[13]] {
        [0x08, 0x00] if word(6)? & 0x3fff == 0 => (usize::from(packet[0] & 0x0f) * 4, packet.get(9)?),
        [0x86, 0xdd] => (IPV6_HEADER, packet.get(6)?),
        _ => return None,
    };
    let length = usize::from(word(header + 4)?);
    let whole = ETHERNET_HEADER + header..ETHERNET_HEADER + header + length;
    (*protocol == UDP && length >= UDP_HEADER && whole.end <= frame.len()).then_some(whole)
}

/// Inverts bits of one byte of a datagram. Corrects the checksum (RFC 1624, 3) if the datagram has one.
fn flip(datagram: &mut [u8], at: usize, bits: u8) {
    let word = |byte: u8| u32::from(byte) << if at.is_multiple_of(2) { 8 } else { 0 };
    let before = word(datagram[at]);
    datagram[at] ^= bits;
    let checksum = u16::from_be_bytes([datagram[6], datagram[7]]);
    if checksum == 0 {
        return;
    }
    let sum = u32::from(!checksum) + (0xffff - before) + word(datagram[at]);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    // A checksum of zero means that the datagram has no checksum (RFC 768).
    let checksum = match !(sum as u16) {
        0 => 0xffff,
        checksum => checksum,
    };
    datagram[6..8].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Damage = Damage { loss: 0.1, duplicate: 0.1, reorder: 0.1, corrupt: 0.1 };

    /// Returns the Internet checksum over the pseudo-header and the datagram of an IPv4 frame. The result is zero if the checksum
    /// field is correct.
    fn checksum(frame: &[u8]) -> u16 {
        let (addresses, datagram) = (&frame[26..34], &frame[34..]);
        let padded = [addresses, &[0, UDP], &(datagram.len() as u16).to_be_bytes(), datagram, &[0]].concat();
        let words = padded.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
        let mut sum: u32 = words.sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    /// Returns a frame with a datagram to a group and a correct checksum.
    fn frame(payload: &[u8]) -> Vec<u8> {
        let length = (UDP_HEADER + payload.len()) as u16;
        let mut frame = vec![0x01, 0x00, 0x5e, 0x01, 0x02, 0x03, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
        frame.extend([0x45, 0, 0, 0, 0, 0, 0x40, 0, 1, UDP, 0, 0]);
        frame[16..18].copy_from_slice(&(20 + length).to_be_bytes());
        frame.extend([10, 77, 0, 1, 239, 1, 2, 3]);
        frame.extend([0x12, 0x34, 0x56, 0x78, 0, 0, 0, 0]);
        frame[38..40].copy_from_slice(&length.to_be_bytes());
        frame.extend(payload);
        let right = checksum(&frame);
        frame[40..42].copy_from_slice(&right.to_be_bytes());
        frame
    }

    /// Passes 10,000 numbered frames through an injector and returns the resulting frames.
    fn frames(damage: Damage, stream: u64) -> (Vec<Vec<u8>>, Tally) {
        let mut injector = Injector::new(damage, stream);
        let mut out = Vec::new();
        let mut each = |frame: &[u8]| out.push(frame.to_vec());
        let now = Instant::now();
        for n in 0..10_000u32 {
            injector.pass(&mut frame(&n.to_be_bytes()), now, &mut each);
        }
        injector.release(now + PATIENCE, &mut each);
        (out, injector.tally())
    }

    fn numbers(damage: Damage) -> (Vec<u32>, Tally) {
        let (frames, tally) = frames(damage, 1);
        let number = |frame: Vec<u8>| u32::from_be_bytes(frame[42..].try_into().expect("four bytes"));
        (frames.into_iter().map(number).collect(), tally)
    }

    #[test]
    fn packets_without_damage_pass_in_order() {
        assert!(numbers(Damage::default()).0.into_iter().eq(0..10_000));
    }

    #[test]
    fn loss_rate_matches_the_plan() {
        let (out, tally) = numbers(Damage::loss(0.1));
        assert_eq!(out.len() as u64 + tally.lost, 10_000);
        assert!((900..1100).contains(&tally.lost), "{}", tally.lost);
    }

    #[test]
    fn duplicates_are_added_to_the_original_packets() {
        let (out, tally) = numbers(Damage { duplicate: 0.1, ..Damage::default() });
        assert_eq!(out.len() as u64, 10_000 + tally.duplicated);
        assert!((900..1100).contains(&tally.duplicated));
    }

    #[test]
    fn reordering_loses_no_packets_and_has_a_bounded_distance() {
        let (mut out, tally) = numbers(Damage { reorder: 0.1, ..Damage::default() });
        let overtaken = |n: u32| {
            let place = out.iter().position(|m| *m == n).expect("nothing is lost");
            out[..place].iter().filter(|m| **m > n).count() as u64
        };
        assert!((0..2000).all(|n| overtaken(n) <= 2 * Damage::REACH));
        assert!((0..2000).any(|n| overtaken(n) > 0) && tally.reordered > 900);
        out.sort_unstable();
        assert!(out.into_iter().eq(0..10_000));
    }

    #[test]
    fn count_of_corrupted_datagrams_matches_the_changed_payloads() {
        let (out, tally) = numbers(Damage { corrupt: 0.1, ..Damage::default() });
        let changed = (0..).zip(&out).filter(|(n, m)| *n != **m).count() as u64;
        // Inverting the same bit twice does not change the datagram.
        assert!(changed <= tally.corrupted && changed > tally.corrupted * 9 / 10);
        assert!((900..1100).contains(&tally.corrupted), "{}", tally.corrupted);
    }

    #[test]
    fn corrupted_datagram_has_a_valid_checksum() {
        let damage = Damage { corrupt: 1.0, ..Damage::default() };
        assert!(frames(damage, 1).0.iter().all(|frame| checksum(frame) == 0));
        let mut injector = Injector::new(damage, 1);
        for length in 0..300 {
            let mut whole = frame(&vec![0xff; length]);
            injector
                .pass(&mut whole, Instant::now(), &mut |frame| assert_eq!(checksum(frame), 0, "{length}"));
        }
    }

    #[test]
    fn corrupted_datagram_without_a_checksum_gets_no_checksum() {
        let mut injector = Injector::new(Damage { corrupt: 1.0, ..Damage::default() }, 1);
        let mut whole = frame(&[0; 100]);
        whole[40..42].fill(0);
        injector.pass(&mut whole, Instant::now(), &mut |frame| assert_eq!(frame[40..42], [0, 0]));
    }

    #[test]
    fn equal_random_streams_give_equal_damage() {
        assert_eq!(frames(ALL, 1), frames(ALL, 1));
        assert_ne!(frames(ALL, 1), frames(ALL, 2));
    }

    /// Returns an IPv6 frame with this next header and a UDP datagram after it.
    fn ipv6(next: u8) -> Vec<u8> {
        let mut frame = vec![0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1, 0x86, 0xdd];
        frame.extend([0x60, 0, 0, 0, 0, 12, next, 1]);
        frame.extend([0; 32]);
        frame.extend([0x12, 0x34, 0x56, 0x78, 0, 12, 1, 1, 1, 2, 3, 4]);
        frame
    }

    fn passes(frame: &[u8]) -> bool {
        let (mut injector, mut passed) = (Injector::new(Damage::loss(1.0), 1), false);
        injector.pass(&mut frame.to_vec(), Instant::now(), &mut |out| passed = out == frame);
        passed
    }

    #[test]
    fn only_udp_datagrams_of_both_families_are_damaged() {
        let whole = frame(&[7; 100]);
        assert!(!passes(&whole) && !passes(&ipv6(UDP)));
        let changed = |at: usize, byte: u8| {
            let mut frame = whole.clone();
            frame[at] = byte;
            frame
        };
        let broadcast = [&[0xff; 6], &whole[6..]].concat();
        let (igmp, tcp, arp) = (changed(23, 2), changed(23, 6), changed(13, 0x06));
        let (first, last) = (changed(20, 0x20), changed(21, 9));
        let neighbours = ipv6(58);
        for frame in [broadcast, igmp, tcp, arp, first, last, neighbours] {
            assert!(passes(&frame), "{frame:x?}");
        }
    }

    #[test]
    fn truncated_frames_pass_unchanged() {
        for whole in [frame(&[7; 20]), ipv6(UDP)] {
            assert!((0..whole.len()).all(|length| passes(&whole[..length])));
        }
    }
}
