//! Counter-based random streams: each pair `(seed, node)` has a stream that does not depend on other streams.
//!
//! The generator is part of this crate, because a library may change the numbers that it generates. The same seed must produce
//! the same bytes for years (`docs/design/architecture.md`).

/// A stream of random numbers with 16 bytes of state (SplitMix64 on a hashed key). Any number of independent streams can be
/// created from one seed.
#[derive(Debug, Clone)]
pub struct Rng {
    state: u64,
    gamma: u64,
}

impl Rng {
    /// Creates the stream of `node` under `seed`.
    pub fn new(seed: u64, node: u64) -> Rng {
        let key = mix(seed ^ mix(node.wrapping_add(GOLDEN)));
        Rng { state: key, gamma: mix(key ^ GOLDEN) | 1 }
    }

    /// Returns the next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(self.gamma);
        mix(self.state)
    }

    /// Returns a uniform number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns a uniform integer in `0..end`; 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// Returns true with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Returns an exponentially distributed number with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_and_node_give_the_same_stream() {
        let (mut a, mut b) = (Rng::new(1, 2), Rng::new(1, 2));
        assert!((0..100).all(|_| a.bits() == b.bits()));
    }

    #[test]
    fn adjacent_nodes_have_different_random_streams() {
        let (mut a, mut b) = (Rng::new(1, 2), Rng::new(1, 3));
        assert!((0..100).all(|_| a.bits() != b.bits()));
    }

    #[test]
    fn uniform_values_have_a_mean_of_one_half() {
        let mut rng = Rng::new(7, 7);
        let mean = (0..100_000).map(|_| rng.unit()).sum::<f64>() / 100_000.0;
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
    }
}
