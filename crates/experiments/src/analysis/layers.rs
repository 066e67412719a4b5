//! Mean rate of a receiver of a session of several layers: RLC's Markov chain of levels (paper 004, 3).

/// Returns the constant K of the mean rate K s / (tau sqrt(P W p)). A receiver moves up a level at a synchronisation point and
/// down a level at a loss. Each level has twice the rate of the level below. `points` is P W p: the number of base layer packets
/// between two synchronisation points, times the probability that a packet starts a loss event.
///
/// The chain in this code is unlimited in both directions; a real chain ends at the base layer.
pub fn rlc_constant(points: f64) -> f64 {
    // The receiver leaves level i upwards at a rate of 1 / (P W 2^i) and downwards at a rate of p 2^i, in units of 1 / tau.
    let log_ratio = |level: i32| -(points.ln() + (f64::from(level) * 2.0 + 1.0) * 2f64.ln());
    // The most likely level. A receiver tends to move up below this level, and down above this level.
    let middle = (-(points.ln() / 2f64.ln() + 1.0) / 2.0).round() as i32;
    let (mut sum, mut rate) = (0.0, 0.0);
    let mut add = |level: i32, weight: f64| {
        sum += weight;
        rate += weight * 2f64.powi(level);
    };
    add(middle, 1.0);
    let (mut up, mut down) = (0.0, 0.0);
    for step in 0..FAR {
        up += log_ratio(middle + step);
        add(middle + step + 1, up.exp());
        down -= log_ratio(middle - step - 1);
        add(middle - step - 1, down.exp());
    }
    rate / sum * points.sqrt()
}

/// Number of levels that are evaluated above the most likely level, and also below; other levels are negligible.
const FAR: i32 = 40;

#[cfg(test)]
mod tests {
    use super::*;

    /// Analysis A8.
    #[test]
    fn rlc_constant_is_the_fourth_root_of_two_at_any_loss_rate() {
        for points in [1e-7, 3.3e-4, 0.01, 0.02, 0.5] {
            let constant = rlc_constant(points);
            assert!((constant / 2f64.powf(0.25) - 1.0).abs() < 0.005, "{constant} at {points}");
        }
    }
}
