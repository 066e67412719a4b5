//! Links and what is wrong with them.

use crate::plan::{LinkPlan, Weather};
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};

/// A link one way: a queue, a transmitter and a delay.
#[derive(Debug)]
pub struct Pipe {
    plan: LinkPlan,
    free_at: Time,
    /// It carries only so much of its rate.
    pub slowed: f64,
    /// Nothing passes until then.
    pub cut_until: Time,
    /// Larger packets do not pass until then.
    pub hole: (usize, Time),
}

impl Pipe {
    /// A sound link.
    pub fn new(plan: LinkPlan) -> Pipe {
        Pipe { plan, free_at: Time::ZERO, slowed: 1.0, cut_until: Time::ZERO, hole: (0, Time::ZERO) }
    }

    /// All is well with it.
    pub fn heal(&mut self) {
        *self = Pipe { free_at: self.free_at, ..Pipe::new(self.plan) };
    }

    /// When a packet of so many bytes that comes now is at the other end, if it passes.
    pub fn pass(&mut self, size: u64, now: Time) -> Option<Time> {
        if now < self.cut_until || (now < self.hole.1 && size as usize > self.hole.0) {
            return None;
        }
        let rate = Rate::from_bps(self.plan.rate.bps() * self.slowed);
        let begin = self.free_at.max(now);
        if rate.bytes_in(begin.since(now)).saturating_add(size) > self.plan.queue {
            return None;
        }
        self.free_at = begin + rate.span_of(size);
        Some(self.free_at + self.plan.delay)
    }
}

/// The copies of a packet that arrive, by how much later than they would.
pub type Copies = [Option<Span>; 3];

impl Weather {
    /// What becomes of a packet.
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

/// Where the checksum of an unsealed packet is, behind its header.
const CHECKSUM: std::ops::Range<usize> = 12..16;

/// Change the end of an unsealed packet of data, which is its symbol, and make its checksum right.
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
