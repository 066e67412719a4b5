//! Faults on purpose: loss, duplicates, reordering and corruption of received datagrams, from a seed.
//!
//! For tests and demonstrations on networks that are too good. It costs nothing when off.

use crate::batch::{Batch, Meta};
use faircast_core::field;
use faircast_core::rng::Rng;
use faircast_core::spec::{self, Opt, SpecError, Within};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Which faults, how often, and from which seed. The default is none.
///
/// Written as `loss=0.01,dup=0.001,reorder=0.01,corrupt=0.001,seed=7`; all parts may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Faults {
    /// Part of the datagrams lost, 0 to 1.
    pub loss: f64,
    /// Part delivered twice, 0 to 1.
    pub duplicate: f64,
    /// Part held back until 1 to [`Faults::REACH`] others have overtaken it, 0 to 1.
    pub reorder: f64,
    /// Part with 1 to 3 bits turned over, 0 to 1.
    pub corrupt: f64,
    /// The same seed gives the same faults for the same datagrams.
    pub seed: u64,
}

impl Faults {
    /// At most so many datagrams overtake one that is held back.
    pub const REACH: u64 = 8;
}

/// A datagram is held back no longer than this, even if none overtakes it.
const PATIENCE: Duration = Duration::from_millis(20);

/// What [`Faults`] can be told.
const OPTIONS: &[Opt<Faults>] = &[
    Opt::number("loss", Within::PART, field!(loss), "part of the datagrams lost"),
    Opt::number("dup", Within::PART, field!(duplicate), "part delivered twice"),
    Opt::number("reorder", Within::PART, field!(reorder), "part overtaken by others"),
    Opt::number("corrupt", Within::PART, field!(corrupt), "part with bits turned over"),
    Opt::whole("seed", 0, u64::MAX, field!(seed), "the same seed gives the same faults"),
];

impl FromStr for Faults {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Faults, SpecError> {
        let mut faults = Faults::default();
        spec::configure(&mut faults, text, "fault injection", &[OPTIONS]).map(|()| faults)
    }
}

/// How many datagrams met with which fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// All that came.
    pub seen: u64,
    /// Lost.
    pub lost: u64,
    /// Delivered twice.
    pub duplicated: u64,
    /// Held back.
    pub reordered: u64,
    /// With bits turned over.
    pub corrupted: u64,
}

/// Does to datagrams what [`Faults`] say.
#[derive(Debug)]
pub struct Injector {
    faults: Faults,
    rng: Rng,
    held: Vec<Held>,
    tally: Tally,
}

#[derive(Debug)]
struct Held {
    bytes: Vec<u8>,
    meta: Meta,
    /// How many others still have to overtake it.
    others: u64,
    since: Instant,
}

impl Injector {
    /// An injector; give each socket its own `stream` so that they do not fail alike.
    pub fn new(faults: Faults, stream: u64) -> Injector {
        let rng = Rng::new(faults.seed, stream);
        Injector { faults, rng, held: Vec::new(), tally: Tally::default() }
    }

    /// The datagrams of a batch that were not taken yet go through it to `each`. Call it also when nothing was received, so
    /// that datagrams held back come in time.
    pub fn pass_all(&mut self, batch: &mut Batch, each: &mut impl FnMut(&mut [u8], Meta)) {
        self.release(Instant::now(), each);
        while let Some((bytes, meta)) = batch.take() {
            self.pass(bytes, meta, each);
        }
    }

    /// What was done so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// One datagram comes in; what comes out (nothing, it, it twice, others that it overtook) is
    /// given to `each`.
    pub fn pass(&mut self, bytes: &mut [u8], meta: Meta, each: &mut impl FnMut(&mut [u8], Meta)) {
        self.tally.seen += 1;
        if self.rng.chance(self.faults.loss) {
            self.tally.lost += 1;
            return;
        }
        if self.rng.chance(self.faults.corrupt) {
            self.corrupt(bytes);
        }
        if self.rng.chance(self.faults.reorder) {
            self.tally.reordered += 1;
            let others = 1 + self.rng.below(Faults::REACH);
            self.held.push(Held { bytes: bytes.to_vec(), meta, others, since: meta.received_at });
            return;
        }
        if self.rng.chance(self.faults.duplicate) {
            self.tally.duplicated += 1;
            each(&mut bytes.to_vec(), meta);
        }
        each(bytes, meta);
        self.held.iter_mut().for_each(|held| held.others -= 1);
        self.let_go(|held| held.others == 0, each);
    }

    /// Give out what was held back too long without being overtaken.
    pub fn release(&mut self, now: Instant, each: &mut impl FnMut(&mut [u8], Meta)) {
        self.let_go(|held| now.saturating_duration_since(held.since) >= PATIENCE, each);
    }

    fn let_go(&mut self, due: impl Fn(&Held) -> bool, each: &mut impl FnMut(&mut [u8], Meta)) {
        if self.held.is_empty() {
            return;
        }
        for mut held in self.held.extract_if(.., |held| due(held)) {
            each(&mut held.bytes, held.meta);
        }
    }

    fn corrupt(&mut self, bytes: &mut [u8]) {
        let bits = bytes.len() as u64 * 8;
        for _ in 0..(1 + self.rng.below(3)).min(bits) {
            let bit = self.rng.below(bits);
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
        self.tally.corrupted += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ecn::Ecn;

    fn meta() -> Meta {
        Meta {
            from: ([192, 0, 2, 1], 7).into(),
            to: [239, 1, 2, 3].into(),
            ecn: Ecn::NotEct,
            received_at: Instant::now(),
            received_at_unix_ns: 0,
            segment: 0,
        }
    }

    /// 10,000 numbered datagrams of four bytes through `spec`.
    fn numbers(spec: &str) -> (Vec<u32>, Tally) {
        let mut injector = Injector::new(spec.parse().expect("a valid specification"), 1);
        let mut out = Vec::new();
        let mut each =
            |bytes: &mut [u8], _| out.push(u32::from_be_bytes((&*bytes).try_into().expect("four")));
        for n in 0..10_000u32 {
            injector.pass(&mut n.to_be_bytes(), meta(), &mut each);
        }
        injector.release(Instant::now() + PATIENCE, &mut each);
        (out, injector.tally())
    }

    #[test]
    fn without_faults_everything_passes_in_order() {
        assert!(numbers("").0.into_iter().eq(0..10_000));
    }

    #[test]
    fn losses_come_as_often_as_asked() {
        let (out, tally) = numbers("loss=0.1,seed=7");
        assert_eq!(out.len() as u64 + tally.lost, 10_000);
        assert!((900..1100).contains(&tally.lost), "{}", tally.lost);
    }

    #[test]
    fn duplicates_are_additional() {
        let (out, tally) = numbers("dup=0.1,seed=7");
        assert_eq!(out.len() as u64, 10_000 + tally.duplicated);
        assert!((900..1100).contains(&tally.duplicated));
    }

    #[test]
    fn reordering_loses_nothing_and_reaches_no_further_than_promised() {
        let (mut out, tally) = numbers("reorder=0.1,seed=7");
        let overtaken = |n: u32| {
            let place = out.iter().position(|m| *m == n).expect("nothing is lost");
            out[..place].iter().filter(|m| **m > n).count() as u64
        };
        assert!((0..2000).all(|n| overtaken(n) <= 2 * Faults::REACH));
        assert!((0..2000).any(|n| overtaken(n) > 0) && tally.reordered > 900);
        out.sort_unstable();
        assert!(out.into_iter().eq(0..10_000));
    }

    #[test]
    fn corruption_changes_the_bytes_of_as_many_as_it_says() {
        let (out, tally) = numbers("corrupt=0.1,seed=7");
        let changed = (0..).zip(&out).filter(|(n, m)| *n != **m).count() as u64;
        // Two of three turned bits may be the same one twice.
        assert!(changed <= tally.corrupted && changed > tally.corrupted * 9 / 10);
    }

    #[test]
    fn the_same_seed_gives_the_same_faults() {
        let spec = "loss=0.1,dup=0.1,reorder=0.1,corrupt=0.1,seed=";
        assert_eq!(numbers(&format!("{spec}1")), numbers(&format!("{spec}1")));
        assert_ne!(numbers(&format!("{spec}1")), numbers(&format!("{spec}2")));
    }

    #[test]
    fn a_specification_says_what_is_wrong_with_it() {
        let error = |text: &str| text.parse::<Faults>().expect_err("not valid").to_string();
        assert!(error("loss").contains("loss=VALUE"));
        assert!(error("lost=0.1").contains("lost"));
        assert!(error("loss=1.5").contains("0 to 1"));
        assert!(error("loss=NaN").contains("0 to 1"));
    }
}
