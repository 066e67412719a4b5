//! How fast a receiver of layers goes on average: RLC's chain of levels (paper 004, 3).

/// Returns the constant K of the mean rate K s / (tau sqrt(P W p)). Between levels a receiver goes up at
/// synchronisation points and down at losses; each level has twice the rate of the one below. `points` is P W
/// times the loss event rate: the packets of the base layer between its synchronisation points, times the
/// probability that one is a loss event.
///
/// The chain has no end in either direction here; a real one ends at the base layer.
pub fn rlc_constant(points: f64) -> f64 {
    // A level is left upwards at a rate of 1 / (P W 2^i) and downwards at p 2^i, in units of 1 / tau.
    let log_ratio = |level: i32| -(points.ln() + (f64::from(level) * 2.0 + 1.0) * 2f64.ln());
    // The likeliest level: below it the chain climbs, above it falls.
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

/// Levels so far from the likeliest one are never reached.
const FAR: i32 = 40;

#[cfg(test)]
mod tests {
    use super::*;

    /// Analysis A8.
    #[test]
    fn the_constant_is_the_fourth_root_of_two_at_any_loss_rate() {
        for points in [1e-7, 3.3e-4, 0.01, 0.02, 0.5] {
            let constant = rlc_constant(points);
            assert!((constant / 2f64.powf(0.25) - 1.0).abs() < 0.005, "{constant} at {points}");
        }
    }
}
