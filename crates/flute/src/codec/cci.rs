//! Congestion control information of RLC, in each packet.

use faircast_core::packet::{Layer, Signal};

/// RLC's congestion control information: 64 bits, so C is 1.
///
/// ```text
///  0               1               2               3
///  0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7
/// +-------------+-+---------------+-------------------------------+
/// |1 0 1 0 1 0 1|S|     layer     |     sequence number mod 2^16  |
/// +-------+-+---+-+---------------+-------------------------------+
/// |   1   |B| 0 |              slot number mod 2^24               |
/// +-------+-+-----+-----------------------------------------------+
/// S: synchronisation point   B: the packet is part of a burst   the first nibble of the second word is a version
/// ```
///
/// The first word has the layout of the RLC implementations in MCLv3 and MAD-ALCLIB, which have only this word (C = 0) and no
/// bursts. The second word states whether the packet belongs to a burst, and the slot of the source's timetable in which the
/// packet was sent. From these slots a receiver derives the slots of lost packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rlc {
    /// The layer that the packet belongs to.
    pub layer: Layer,
    /// Position of the packet in the layer's stream, modulo 2^16.
    pub seq: u16,
    /// Whether the packet is part of a burst, or the last packet before a synchronisation point; other signals are not encoded.
    pub signal: Signal,
    /// Slot of the timetable, modulo 2^24.
    pub slot: u32,
}

/// Value of the first seven bits.
const TAG: u8 = 0x55;
const VERSION: u8 = 1;
const SYNC: u8 = 0x01;
const BURST: u8 = 0x08;

impl Rlc {
    /// Length in bytes.
    pub const LEN: usize = 8;
    /// Modulus of slot numbers.
    pub const SLOTS: u32 = 1 << 24;

    /// Returns the encoded bytes.
    pub const fn to_bytes(self) -> [u8; Rlc::LEN] {
        let sync = if matches!(self.signal, Signal::SyncPoint) { SYNC } else { 0 };
        let burst = if self.signal.is_burst() { BURST } else { 0 };
        let [s0, s1] = self.seq.to_be_bytes();
        let [_, t0, t1, t2] = self.slot.to_be_bytes();
        [TAG << 1 | sync, self.layer.0, s0, s1, VERSION << 4 | burst, t0, t1, t2]
    }

    /// Parses congestion control information; `None` if it is not RLC's.
    pub fn from_bytes(cci: &[u8]) -> Option<Rlc> {
        let &[tag, layer, s0, s1, version, t0, t1, t2] = cci else { return None };
        if tag >> 1 != TAG || version >> 4 != VERSION {
            return None;
        }
        // A synchronisation point without a preceding burst, as in implementations without bursts, has no meaning for a receiver.
        let signal = match (version & BURST != 0, tag & SYNC != 0) {
            (true, true) => Signal::SyncPoint,
            (true, false) => Signal::Burst,
            (false, _) => Signal::None,
        };
        Some(Rlc {
            layer: Layer(layer),
            seq: u16::from_be_bytes([s0, s1]),
            signal,
            slot: u32::from_be_bytes([0, t0, t1, t2]),
        })
    }
}
