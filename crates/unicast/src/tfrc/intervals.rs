//! The mean of the latest eight loss intervals (RFC 5348, 5.4 and 5.5).

/// Weights of the closed intervals, newest first.
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// Minimum discount factor.
const MIN_DISCOUNT: f64 = 0.5;

/// Closed loss intervals in packets, newest first, with their discount factors.
#[derive(Debug, Clone, Default)]
pub(super) struct Intervals {
    lengths: [f32; 8],
    discounts: [f32; 8],
    count: usize,
    /// Additional discount factor of all closed intervals, while the open interval is long.
    discount: f64,
}

impl Intervals {
    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Closes an interval of this many packets.
    pub(super) fn close(&mut self, packets: f64) {
        self.lengths.rotate_right(1);
        self.discounts.rotate_right(1);
        if self.count > 0 {
            let discount = self.discount as f32;
            self.discounts.iter_mut().skip(1).for_each(|d| *d *= discount);
        }
        self.lengths[0] = packets as f32;
        self.discounts[0] = 1.0;
        self.discount = 1.0;
        self.count = (self.count + 1).min(8);
    }

    /// Returns the loss event rate while the open interval has `open` packets; 0 before the first loss.
    pub(super) fn loss(&mut self, open: f64) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let closed = self.mean(None, 1.0);
        if open > 2.0 * closed {
            self.discount = (2.0 * closed / open).max(MIN_DISCOUNT);
        }
        1.0 / self.mean(Some(open), self.discount).max(closed).max(1.0)
    }

    /// Returns the weighted mean of the intervals in packets. The open interval, if given, counts as the newest interval.
    fn mean(&self, open: Option<f64>, discount: f64) -> f64 {
        let shift = usize::from(open.is_some());
        let (mut sum, mut weights) = (open.unwrap_or(0.0), shift as f64);
        for (i, weight) in WEIGHTS.iter().skip(shift).enumerate().take(self.count) {
            let weight = weight * discount * f64::from(self.discounts[i]);
            sum += weight * f64::from(self.lengths[i]);
            weights += weight;
        }
        sum / weights
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_of_equal_loss_intervals_is_their_length() {
        let mut intervals = Intervals::default();
        assert_eq!(intervals.loss(50.0), 0.0);
        (0..12).for_each(|_| intervals.close(100.0));
        assert!((intervals.loss(10.0) - 0.01).abs() < 1e-9);
        assert!((intervals.loss(150.0) - 6.0 / 650.0).abs() < 1e-9, "the open one counts where it helps");
    }

    #[test]
    fn long_open_interval_discounts_closed_intervals() {
        let mut intervals = Intervals::default();
        (0..8).for_each(|_| intervals.close(100.0));
        // The weight of the open interval is 1. The sum of the weights of the seven newest closed intervals is 5; the discount
        // halves it (RFC 5348, 5.5).
        let mean = (800.0 + 0.5 * 500.0) / (1.0 + 0.5 * 5.0);
        assert!((intervals.loss(800.0) * mean - 1.0).abs() < 1e-6);
        // The older intervals keep their discount after the open interval is closed.
        intervals.close(800.0);
        let mean = (800.0 + 0.5 * 400.0 + 0.5 * 100.0) / (1.0 + 0.5 * 3.0 + 0.5 * (0.8 + 0.6 + 0.4 + 0.2));
        assert!((intervals.loss(1.0) * mean - 1.0).abs() < 1e-6);
    }
}
