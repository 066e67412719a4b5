//! Probabilistic inter-layer bandwidth shifting, "PIBS" (paper 000, 4.1.4.3).
//!
//! Occasionally, for the time between two cuts of a layer, this layer is sent a tenth faster. The next higher layer is sent
//! slower by the same amount. If the shift causes no harm to a receiver that has joined only the lower of these layers, both
//! layers share the receiver's bottleneck. The receiver may then join the upper layer at no cost to other receivers.

use super::config::Config;
use super::layer::LayerControl;
use crate::packet::{Layer, Signal};
use crate::rng::Rng;
use crate::time::Time;

/// The layer that gains bandwidth, if any. Only one layer gains at a time.
#[derive(Debug, Clone)]
pub(super) struct Shift {
    gaining: Option<Layer>,
    /// Probability "rho" of a shift, and shifted fraction "delta" of a layer's rate.
    probability: f64,
    part: f64,
}

impl Shift {
    pub(super) fn new(config: &Config) -> Shift {
        Shift { gaining: None, probability: config.shift_probability, part: config.shift }
    }

    /// Handles the end of a rate control period of `layer` and the start of another one.
    pub(super) fn on_cut(&mut self, layer: Layer, layers: &[LayerControl], rng: &mut Rng) {
        if self.gaining == Some(layer) {
            self.gaining = None;
        }
        if self.gaining.is_none() && may_shift(layer, layers) && rng.chance(self.probability) {
            self.gaining = Some(layer);
        }
    }

    /// Ends the shift if one of the two layers was switched off or restarted.
    pub(super) fn check(&mut self, layers: &[LayerControl]) {
        self.gaining = self.gaining.filter(|layer| may_shift(*layer, layers));
    }

    /// Updates the shifted bandwidth, which is proportional to the present rates.
    // Paper gap: 4.1.4.3 lets the rate of the giving layer fall to zero, which receivers could not distinguish from a layer that
    // is off. Here the layer keeps the minimum rate.
    pub(super) fn apply(&self, layers: &mut [LayerControl], now: Time) {
        let mut from_below = 0.0;
        for layer in 0..layers.len() {
            let gain = match self.gaining {
                Some(Layer(gaining)) if usize::from(gaining) == layer => {
                    let above = layers[layer + 1].lambda().bps();
                    (self.part * layers[layer].lambda().bps()).min(above)
                }
                _ => 0.0,
            };
            layers[layer].set_shift(gain - from_below, now);
            from_below = gain;
        }
    }

    /// Returns the signal that packets of `layer` carry about shifting.
    pub(super) fn signal(&self, layer: Layer) -> Signal {
        match self.gaining {
            Some(gaining) if gaining == layer => Signal::Gains,
            Some(gaining) if gaining.0 + 1 == layer.0 => Signal::Gives,
            _ => Signal::None,
        }
    }

    #[cfg(test)]
    pub(super) fn gaining(&self) -> Option<Layer> {
        self.gaining
    }
}

/// Returns whether bandwidth can be shifted to `layer`: there is a next higher layer, and both layers have finished start-up.
fn may_shift(layer: Layer, layers: &[LayerControl]) -> bool {
    let at = |index: usize| layers.get(index).is_some_and(LayerControl::is_steady);
    at(usize::from(layer.0)) && at(usize::from(layer.0) + 1)
}
