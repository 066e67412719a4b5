//! Damage to packets while faults are active.

use crate::plan::PacketDamage;
use faircast_core::rng::Rng;
use faircast_core::time::Span;
use faircast_simnet::Copies;

impl PacketDamage {
    /// Damages a packet. Returns the delays of its copies; `None`: no copy.
    pub fn befall(&self, bytes: &mut [u8], rng: &mut Rng) -> Copies {
        if self.loss > 0.0 && rng.chance(self.loss) {
            return [None; 3];
        }
        if self.corruption > 0.0 && rng.chance(self.corruption) && !bytes.is_empty() {
            for _ in 0..1 + rng.below(3) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << rng.below(8);
            }
        }
        if self.meddling > 0.0 && rng.chance(self.meddling) {
            meddle(bytes, rng);
        }
        let late = self.reordering > 0.0 && rng.chance(self.reordering);
        let late = if late { self.late.scaled(rng.unit()) } else { Span::ZERO };
        let twice = self.duplicates > 0.0 && rng.chance(self.duplicates);
        let ghost = self.ghosts > 0.0 && rng.chance(self.ghosts);
        let far = Span::from_secs_f64(0.5 + 19.5 * rng.unit());
        [Some(late), twice.then(|| self.late.scaled(rng.unit())), ghost.then_some(far)]
    }
}

/// Position of the checksum in an unsealed packet.
const CHECKSUM: std::ops::Range<usize> = 12..16;

/// Flips a bit near the end of an unsealed data packet, within its symbol, and corrects the checksum.
fn meddle(bytes: &mut [u8], rng: &mut Rng) {
    let is_data = faircast_wire::peek(bytes)
        .is_ok_and(|header| !header.sealed && header.kind == faircast_wire::Kind::Data);
    if !is_data || bytes.len() < 300 {
        return;
    }
    let at = bytes.len() - 1 - rng.below(128) as usize;
    bytes[at] ^= 1 << rng.below(8);
    bytes[CHECKSUM].fill(0);
    let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32; // a 32-bit algorithm
    bytes[CHECKSUM].copy_from_slice(&crc.to_be_bytes());
}
