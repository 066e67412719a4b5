//! Measurement of a receiver's congestion in a layer: the throughput attenuation factor and its two parts (paper 000, 4.1.1).

use super::conditions::Estimate;
use super::config::{Config, CorMean, MAX_SAMPLES, TafSample};
use crate::packet::Signal;
use crate::time::{Span, Time};

/// A ring buffer of the latest samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ring {
    values: [f32; MAX_SAMPLES],
    next: u8,
    count: u8,
    limit: u8,
}

impl Ring {
    /// Creates a ring for `limit` samples, 2 to [`MAX_SAMPLES`].
    pub(super) const fn new(limit: u8) -> Ring {
        Ring { values: [0.0; MAX_SAMPLES], next: 0, count: 0, limit }
    }

    pub(super) const fn len(&self) -> u8 {
        self.count
    }

    pub(super) const fn is_full(&self) -> bool {
        self.count == self.limit
    }

    pub(super) fn clear(&mut self) {
        *self = Ring::new(self.limit);
    }

    pub(super) fn push(&mut self, value: f64) {
        self.values[usize::from(self.next)] = value as f32;
        self.next = (self.next + 1) % self.limit;
        self.count = (self.count + 1).min(self.limit);
    }

    /// Returns the newest `most` samples, in no particular order.
    fn newest(&self, most: u8) -> impl Iterator<Item = f64> + Clone {
        let (count, next, limit) = (self.count.min(most), self.next, self.limit);
        (1..=count).map(move |back| f64::from(self.values[usize::from((next + limit - back) % limit)]))
    }

    /// Returns the mean; `None` without a sample.
    pub(super) fn mean(&self) -> Option<f64> {
        self.mean_with(0.0, 0)
    }

    /// Returns the mean of `copies` samples of `value` and the newest stored samples, at most N samples together.
    fn mean_with(&self, value: f64, copies: u8) -> Option<f64> {
        let kept = self.newest(self.limit - copies.min(self.limit));
        let count = kept.clone().count() + usize::from(copies);
        (count > 0).then(|| (kept.sum::<f64>() + value * f64::from(copies)) / count as f64)
    }

    /// Returns the mean and the sample standard deviation (with divisor n - 1). Both are zero without samples; the deviation of a
    /// single sample is zero.
    pub(super) fn moments(&self) -> (f64, f64) {
        moments(self.newest(self.limit))
    }

    /// Returns the mean and standard error.
    pub(super) fn estimate(&self) -> Estimate {
        estimate(self.newest(self.limit))
    }

    /// Returns the estimate with `copies` additional samples of `value`, which replace the oldest samples.
    fn estimate_with(&self, value: f64, copies: u8) -> Estimate {
        let copies = copies.min(self.limit);
        let kept = self.newest(self.limit - copies);
        estimate(kept.chain(std::iter::repeat_n(value, usize::from(copies))))
    }
}

fn moments(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.clone().count();
    if count == 0 {
        return (0.0, 0.0);
    }
    let mean = values.clone().sum::<f64>() / count as f64;
    if count == 1 {
        return (mean, 0.0);
    }
    let squares = values.map(|value| (value - mean).powi(2)).sum::<f64>();
    (mean, (squares / (count - 1) as f64).sqrt())
}

fn estimate(values: impl Iterator<Item = f64> + Clone) -> Estimate {
    let count = values.clone().count().max(1) as f64;
    let (mean, deviation) = moments(values);
    Estimate { mean, error: deviation / count.sqrt() }
}

/// A receiver's statistics of its own congestion in one layer.
#[derive(Debug, Clone)]
pub(super) struct Taf {
    sample: TafSample,
    cor_mean: CorMean,
    /// Individual throughput attenuation factors.
    itaf: Ring,
    /// Rates of congestion occurrence in 1/s, or with [`CorMean::Harmonic`] the intervals in s.
    occurrence: Ring,
    /// Attenuation factors, in 1/s.
    factors: Ring,
    /// Individual factors measured while no bandwidth was shifted, "theta".
    pub(super) steady: Ring,
    /// Individual factors measured while bandwidth was shifted to the layer, "theta'".
    pub(super) shifted: Ring,
    /// Time of the latest congestion epoch; before the first epoch, the time of the join.
    latest: Time,
    epochs: Epochs,
}

/// Number of congestion epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Epochs {
    None,
    Some,
}

/// The samples that a congestion epoch has added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct AddedSamples {
    /// Whether a sample of the attenuation factor was added.
    pub(super) factor: bool,
    /// Whether a sample of an individual factor under shifted bandwidth was added.
    pub(super) shifted: bool,
}

/// Minimum interval between epochs; a shorter interval is replaced by this value.
const SHORTEST: Span = Span::from_micros(1);

impl Taf {
    /// Creates the statistics of a layer that is joined now.
    pub(super) fn new(config: &Rules, now: Time) -> Taf {
        let ring = Ring::new(config.samples);
        Taf {
            sample: config.taf,
            cor_mean: config.cor,
            itaf: ring,
            occurrence: ring,
            factors: ring,
            steady: ring,
            shifted: ring,
            latest: now,
            epochs: Epochs::None,
        }
    }

    /// Sets the time of the join to `now`, the arrival time of the layer's first packet.
    pub(super) fn joined(&mut self, now: Time) {
        self.latest = now;
    }

    /// Records a congestion epoch. `itaf` is the individual factor of the epoch; `None` if it could not be measured. `signal` is
    /// the signal of the packet on which the factor was measured.
    // Paper gap: 4.1.4.3 distinguishes periods with and without shifting. A layer that gives bandwidth to the lower layer is in
    // neither.
    pub(super) fn on_epoch(&mut self, itaf: Option<f64>, signal: Signal, now: Time) -> AddedSamples {
        let mut added = AddedSamples::default();
        if let Some(itaf) = itaf {
            self.itaf.push(itaf);
            if signal == Signal::Gains {
                self.shifted.push(itaf);
                added.shifted = true;
            } else if signal != Signal::Gives {
                self.steady.push(itaf);
            }
        }
        let again = std::mem::replace(&mut self.epochs, Epochs::Some) == Epochs::Some;
        let interval = now.since(std::mem::replace(&mut self.latest, now)).max(SHORTEST).as_secs_f64();
        if !again {
            return added;
        }
        self.occurrence.push(self.stored(interval));
        let sample = match self.sample {
            TafSample::Smoothed => self.itaf.mean().zip(self.rate_of(self.occurrence.mean())),
            TafSample::Product => itaf.zip(Some(1.0 / interval)),
        };
        if let Some((itaf, cor)) = sample {
            self.factors.push(itaf * cor);
            added.factor = true;
        }
        added
    }

    /// Returns an interval in its stored form.
    fn stored(&self, interval: f64) -> f64 {
        match self.cor_mean {
            CorMean::Mean => 1.0 / interval,
            CorMean::Harmonic => interval,
        }
    }

    /// Returns the rate of occurrence for a mean of stored intervals.
    fn rate_of(&self, mean: Option<f64>) -> Option<f64> {
        match self.cor_mean {
            CorMean::Mean => mean,
            CorMean::Harmonic => mean.map(|interval| 1.0 / interval.max(SHORTEST.as_secs_f64())),
        }
    }

    /// Returns the number of samples of the attenuation factor, at most N.
    pub(super) const fn len(&self) -> u8 {
        self.factors.len()
    }

    /// Returns whether there are N samples.
    pub(super) const fn is_settled(&self) -> bool {
        self.factors.is_full()
    }

    /// Returns the mean and standard error, "Theta" and "Theta^sigma / sqrt(n)".
    pub(super) fn estimate(&self) -> Estimate {
        self.factors.estimate()
    }

    /// Returns the mean and standard deviation.
    pub(super) fn moments(&self) -> (f64, f64) {
        self.factors.moments()
    }

    /// Returns whether there was a congestion epoch.
    pub(super) fn has_lost(&self) -> bool {
        self.epochs == Epochs::Some
    }

    /// Returns the mean and standard deviation that belong to [`Taf::estimate_now`].
    pub(super) fn moments_now(&self, now: Time) -> (f64, f64) {
        let Estimate { mean, error } = self.estimate_now(now);
        (mean, error * f64::from(self.factors.len().max(1)).sqrt())
    }

    /// Returns the estimate, corrected for the silence since the latest epoch. For each sample that was expected during the
    /// silence, a loss at `now` is assumed.
    pub(super) fn estimate_now(&self, now: Time) -> Estimate {
        let silence = now.since(self.latest).max(SHORTEST).as_secs_f64();
        let Some(rate) = self.rate_of(self.occurrence.mean()) else { return self.estimate() };
        let missed = (silence * rate).min(f64::from(self.factors.limit)) as u8;
        if missed < 2 {
            return self.estimate();
        }
        let cor = self.rate_of(self.occurrence.mean_with(self.stored(silence), missed)).unwrap_or(0.0);
        let itaf = self.itaf.mean().unwrap_or(0.0);
        self.factors.estimate_with(itaf * cor, missed)
    }

    /// Returns the estimate as if a packet were lost now, `copies` times (paper 000, 4.1.4.2). The assumed samples are not
    /// stored.
    // Paper gap: 4.1.4.2 prints 1 / (t1 - t2), which is negative because t2 is later.
    pub(super) fn assumed(&self, copies: u8, now: Time) -> Estimate {
        let interval = now.since(self.latest).max(SHORTEST).as_secs_f64();
        let cor = self.rate_of(self.occurrence.mean_with(self.stored(interval), copies)).unwrap_or(0.0);
        let itaf = self.itaf.mean().unwrap_or(0.0);
        self.factors.estimate_with(itaf * cor, copies)
    }

    /// Returns the time of the latest congestion epoch; before the first one, the time of the join.
    pub(super) const fn latest(&self) -> Time {
        self.latest
    }

    /// Deletes the measurements about shifting, which are invalid after a change of the joined layers.
    pub(super) fn forget_shifts(&mut self) {
        self.steady.clear();
        self.shifted.clear();
    }
}

/// The part of the configuration that a receiver needs for every layer that it joins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) samples: u8,
    pub(super) comparisons: u8,
    pub(super) taf: TafSample,
    pub(super) cor: CorMean,
}

impl Rules {
    pub(super) fn new(config: &Config) -> Rules {
        Rules {
            samples: config.samples.clamp(2, MAX_SAMPLES as u8),
            comparisons: config.comparisons.max(1),
            taf: config.taf,
            cor: config.cor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: f64) -> Time {
        Time::from_secs_f64(secs)
    }

    fn taf(change: impl FnOnce(&mut Config)) -> Taf {
        let mut config = Config::published();
        change(&mut config);
        Taf::new(&Rules::new(&config), Time::ZERO)
    }

    fn none() -> Signal {
        Signal::None
    }

    #[test]
    fn ring_stores_the_newest_values_and_uses_sample_deviation() {
        let mut ring = Ring::new(3);
        [9.0, 1.0, 2.0, 6.0].into_iter().for_each(|value| ring.push(value));
        let (mean, deviation) = ring.moments();
        assert_eq!((ring.len(), mean), (3, 3.0));
        assert!((deviation - 7f64.sqrt()).abs() < 1e-12);
        assert_eq!(ring.mean_with(0.0, 1), Some(8.0 / 3.0), "2, 6 and 0");
    }

    /// Epochs at 1, 3 and 3.5 s.
    #[test]
    fn attenuation_factors_are_products_of_means() {
        let mut taf = taf(|_| {});
        assert_eq!(taf.on_epoch(Some(0.2), none(), at(1.0)), AddedSamples::default(), "no interval yet");
        assert!(taf.on_epoch(Some(0.4), none(), at(3.0)).factor);
        assert!((taf.moments().0 - 0.3 * 0.5).abs() < 1e-6);
        taf.on_epoch(Some(0.6), none(), at(3.5));
        let second = 0.4 * (0.5 + 2.0) / 2.0;
        assert!((taf.moments().0 - (0.15 + second) / 2.0).abs() < 1e-6);
        assert_eq!(taf.len(), 2);
    }

    /// The paper's first definition: a sample is the product of two single samples.
    #[test]
    fn attenuation_factors_may_be_products_of_single_samples() {
        let mut taf = taf(|config| config.taf = TafSample::Product);
        taf.on_epoch(Some(0.2), none(), at(1.0));
        taf.on_epoch(Some(0.4), none(), at(3.0));
        taf.on_epoch(Some(0.6), none(), at(3.5));
        assert!((taf.moments().0 - (0.2 + 1.2) / 2.0).abs() < 1e-6);
    }

    #[test]
    fn one_short_interval_hardly_changes_the_harmonic_mean() {
        let mut taf = taf(|config| config.cor = CorMean::Harmonic);
        for time in [1.0, 3.0, 3.0, 5.0] {
            taf.on_epoch(Some(0.5), none(), at(time));
        }
        let newest = taf.factors.newest(1).next().expect("three factors");
        assert!((newest - 0.5 * 3.0 / 4.0).abs() < 1e-6, "{newest}");
    }

    #[test]
    fn individual_factors_during_rate_shifts_are_stored_separately() {
        let mut taf = taf(|_| {});
        for (signal, itaf) in [(none(), 0.1), (Signal::Gains, 0.2), (Signal::Gives, 0.3)] {
            taf.on_epoch(Some(itaf), signal, at(itaf));
        }
        assert_eq!((taf.steady.len(), taf.shifted.len(), taf.itaf.len()), (1, 1, 3));
        assert!((taf.shifted.moments().0 - 0.2).abs() < 1e-6);
    }

    #[test]
    fn assumed_loss_does_not_change_the_stored_statistics() {
        let mut taf = taf(|_| {});
        for second in 1..=40 {
            taf.on_epoch(Some(0.3), none(), at(f64::from(second)));
        }
        let before = (taf.estimate(), taf.len(), taf.latest);
        let assumed = taf.assumed(1, at(50.0));
        assert!(assumed.mean < before.0.mean, "ten seconds without a loss");
        assert_eq!((taf.estimate(), taf.len(), taf.latest), before);
    }

    #[test]
    fn assumed_loss_has_no_effect_on_a_receiver_without_samples() {
        assert_eq!(taf(|_| {}).assumed(1, at(5.0)), Estimate::default());
    }

    #[test]
    fn many_assumed_losses_outweigh_old_samples_but_one_does_not() {
        let mut taf = taf(|_| {});
        for second in 1..=40 {
            taf.on_epoch(Some(0.3), none(), at(f64::from(second)));
        }
        assert!(taf.assumed(1, at(1000.0)).mean > 0.28);
        assert!(taf.assumed(30, at(1000.0)).mean < 0.001);
    }
}
