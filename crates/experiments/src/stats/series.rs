//! The warm-up of a series, and trends in it.

use super::intervals::normal_share;
use super::mean;

/// Number of values that are averaged into one batch.
const BATCH: usize = 5;

/// Minimum number of batches.
const MIN_BATCHES: usize = 10;

/// Returns the number of values at the beginning of a series that belong to the warm-up, by MSER-5 (K. P. White, M. J. Cobb and
/// S. C. Spratt, A Comparison of Five Steady-State Truncation Heuristics for Simulation, 2000). It is the number whose removal
/// minimises the standard error of the mean of the remaining batches of 5 values. Returns `None` for a series of fewer than 50
/// values, and for a series whose minimum lies in the second half: such a series has no stationary part, or is too short.
pub fn mser5(values: &[f64]) -> Option<usize> {
    let batches = batch_means(values, BATCH);
    if batches.len() < MIN_BATCHES {
        return None;
    }
    // Sums over the remaining batches, from the end.
    let (mut sum, mut squares) = (0.0, 0.0);
    let centre = mean(&batches); // for accuracy
    let mut best = (f64::INFINITY, 0);
    for removed in (0..batches.len()).rev() {
        let value = batches[removed] - centre;
        sum += value;
        squares += value * value;
        let left = (batches.len() - removed) as f64;
        if left < BATCH as f64 {
            continue; // the error of a few batches is not reliable
        }
        let error = (squares - sum * sum / left).max(0.0) / (left * left);
        if error <= best.0 {
            best = (error, removed);
        }
    }
    (best.1 <= batches.len() / 2).then_some(best.1 * BATCH)
}

/// Returns the probability that a series without trend has a trend at least as strong as this one, by the test of Mann and
/// Kendall on the means of 20 batches. A probability below 0.01 is a warning that the series is not stationary. Returns `None`
/// for fewer than 20 values.
pub fn trend(values: &[f64]) -> Option<f64> {
    const BATCHES: usize = 20;
    let batches = batch_means(values, values.len() / BATCHES);
    let batches = batches.get(batches.len().checked_sub(BATCHES)?..)?;
    let mut score = 0i64;
    for (place, earlier) in batches.iter().enumerate() {
        for later in &batches[place + 1..] {
            score += i64::from(later > earlier) - i64::from(later < earlier);
        }
    }
    let n = BATCHES as f64;
    let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let z = (score.abs() - 1).max(0) as f64 / deviation;
    Some((2.0 * normal_share(-z)).min(1.0))
}

/// Returns the means of consecutive batches of `size` values. Values after the last whole batch are left out.
fn batch_means(values: &[f64], size: usize) -> Vec<f64> {
    values.chunks_exact(size.max(1)).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::rng::Rng;

    fn noise(len: usize) -> Vec<f64> {
        let mut rng = Rng::new(7, 0);
        (0..len).map(|_| rng.unit()).collect()
    }

    #[test]
    fn mser5_removes_the_warmup_and_little_more() {
        let mut values = noise(1000);
        values
            .iter_mut()
            .take(200)
            .enumerate()
            .for_each(|(place, value)| *value += 5.0 - place as f64 / 40.0);
        let removed = mser5(&values).expect("the rest is stationary");
        assert!((150..=260).contains(&removed), "{removed}");
        assert!(mser5(&noise(1000)).expect("stationary") < 200);
    }

    #[test]
    fn mser5_refuses_short_and_growing_series() {
        assert_eq!(mser5(&noise(49)), None);
        let growing: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!(mser5(&growing), None);
    }

    #[test]
    fn trend_is_found_in_growing_series_only() {
        let growing: Vec<f64> =
            noise(400).iter().enumerate().map(|(place, value)| value + place as f64 / 400.0).collect();
        assert!(trend(&growing).expect("long enough") < 0.001);
        assert!(trend(&noise(400)).expect("long enough") > 0.01);
        assert_eq!(trend(&noise(19)), None);
    }
}
