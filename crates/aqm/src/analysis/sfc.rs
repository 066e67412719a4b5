//! SFC's model of TCP, its equilibrium and its stable gains (paper 002, chapter 6).
//!
//! The model describes one round trip with a window of `w` packets. In this round trip, acknowledgements arrive for the `w'`
//! packets that were sent in the previous round trip. An acknowledgement covers `b` packets. Each of the `w'` packets was lost
//! with probability `p`.
//!
//! Paper gap: the coefficient of the small term in (6.2) is twice the value that follows from (6.1). [`Model`] has both readings
//! (paper 002, 6.2).
//!
//! Paper gap: (6.17) and (6.18) each lack a factor. [`Link::printed_k1`] has the printed form (paper 002, 6.4).

use super::control::Loop;
use faircast_core::time::Span;

/// Formula for the expected change of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// (6.2) as printed.
    Paper,
    /// (6.2) as it follows from (6.1).
    Corrected,
    /// (6.1) itself.
    Exact,
}

/// Flows over one link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Number of flows ("N").
    pub flows: f64,
    /// Round-trip time of the flows, with the queue at its target ("tau").
    pub rtt: Span,
    /// Rate of the link ("C").
    pub packets_per_second: f64,
    /// Packets per acknowledgement ("b").
    pub per_ack: f64,
}

/// Equilibrium of the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Equilibrium {
    /// The window in packets.
    pub window: f64,
    /// Probability of a drop or mark. A probability above one means that no equilibrium exists.
    pub loss: f64,
}

/// Gains of the control law for the queue and for the arrival rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gains {
    /// Gain per packet of queue.
    pub k1: f64,
    /// Gain per packet of each flow's window, the unit of the paper's stability region.
    pub k2: f64,
}

/// Returns the expected change of the window in a round trip, by (6.1) or (6.2). The window is `w` packets, and the loss
/// probability is `p`. Acknowledgements for `acked` packets arrive, each for `b` packets.
pub fn drift(model: Model, w: f64, acked: f64, p: f64, b: f64) -> f64 {
    match model {
        Model::Exact => {
            let q = 1.0 - p;
            let none = q.powf(acked);
            let part = (1.0 - none * acked * p - none - p + p * none) / (2.0 * b * w * p);
            -part - w / 2.0 * (1.0 - none) + acked / (b * w)
        }
        Model::Paper | Model::Corrected => {
            let share = if model == Model::Paper { 2.0 } else { 4.0 };
            -acked * (acked - 1.0) / (share * b * w) * p - w * acked / 2.0 * p + acked / (b * w)
        }
    }
}

impl Link {
    /// Returns the window of each flow with which all flows together fill the link ("alpha").
    pub fn window(&self) -> f64 {
        self.rtt.as_secs_f64() * self.packets_per_second / self.flows
    }

    /// Returns the equilibrium: (6.11), or the corresponding equation of another model (paper 002, 6.3).
    pub fn equilibrium(&self, model: Model) -> Equilibrium {
        let (w, b) = (self.window(), self.per_ack);
        let loss = match model {
            Model::Paper => 2.0 / (b * w * w + w - 1.0),
            Model::Corrected => 4.0 / (2.0 * b * w * w + w - 1.0),
            Model::Exact => {
                let (mut low, mut high) = (1e-12, 1.0);
                for _ in 0..200 {
                    let middle = (low + high) / 2.0;
                    if drift(model, w, w, middle, b) > 0.0 { low = middle } else { high = middle }
                }
                low
            }
        };
        Equilibrium { window: w, loss }
    }

    /// Returns the largest number of flows for which an equilibrium exists.
    pub fn max_flows(&self, model: Model) -> f64 {
        let b = self.per_ack;
        let min_window = match model {
            // With the largest number of flows, the equilibrium has a loss probability of one. The paper's model then gives b w^2
            // + w - 1 = 2, the other models 2 b w^2 + w - 1 = 4.
            Model::Paper => (-1.0 + (1.0 + 12.0 * b).sqrt()) / (2.0 * b),
            Model::Corrected | Model::Exact => (-1.0 + (1.0 + 40.0 * b).sqrt()) / (4.0 * b),
        };
        self.rtt.as_secs_f64() * self.packets_per_second / min_window
    }

    /// Linearises the model (6.13). Returns the rate in 1/s at which a deviation of the window decays. Also returns the gain from
    /// a probability to the window.
    fn linear(&self, model: Model) -> (f64, f64) {
        let Equilibrium { window: w, loss: p } = self.equilibrium(model);
        let (b, rtt) = (self.per_ack, self.rtt.as_secs_f64());
        let back = match model {
            Model::Paper => p * (1.0 + 2.0 * b * w) / (2.0 * b * rtt),
            Model::Corrected | Model::Exact => p * (1.0 + 4.0 * b * w) / (4.0 * b * rtt),
        };
        (back, 1.0 / (b * rtt * p))
    }

    /// Returns the open loop with these gains.
    pub fn open(&self, model: Model, gains: Gains) -> Loop {
        let ((back, push), rtt) = (self.linear(model), self.rtt.as_secs_f64());
        let integral = gains.k1 * self.flows / rtt;
        let (gain, zeros, integrators) = match integral > 0.0 {
            true => {
                let zeros = if gains.k2 > 0.0 { vec![integral / gains.k2] } else { Vec::new() };
                (push * integral / back, zeros, 1)
            }
            false => (push * gains.k2 / back, Vec::new(), 0),
        };
        Loop { gain, zeros, poles: vec![back], integrators, delay: rtt }
    }

    /// Converts the k2 of the algorithm to a gain per packet of window. The algorithm multiplies k2 by `R / C`. The arrival rate
    /// R is one window of each flow per round-trip time.
    pub fn per_window(&self, k2: f64) -> f64 {
        k2 / self.window()
    }

    /// Returns the largest k2 with which the loop is stable for some k1.
    pub fn max_k2(&self, model: Model) -> f64 {
        let ((back, push), rtt) = (self.linear(model), self.rtt.as_secs_f64());
        // Search the solution of tan(theta) = -theta / (c tau) between pi/2 and pi.
        let pi = std::f64::consts::PI;
        let (mut low, mut high) = (pi / 2.0, pi);
        for _ in 0..100 {
            let theta = (low + high) / 2.0;
            if theta.sin() + theta / (back * rtt) * theta.cos() > 0.0 { low = theta } else { high = theta }
        }
        (low * low + (back * rtt).powi(2)).sqrt() / (push * rtt)
    }

    /// Returns the largest k1 with which the loop is stable for this k2.
    pub fn max_k1(&self, model: Model, k2: f64) -> f64 {
        let ((back, push), rtt) = (self.linear(model), self.rtt.as_secs_f64());
        let (scale, x) = (back / push, back * rtt);
        let on_edge = |z: f64| k2 / scale + z.cos() - z * z.sin() / x;
        let k1 = |z: f64| scale * z / self.flows * (z.sin() + z / x * z.cos());
        odd_roots(on_edge).map(k1).fold(f64::INFINITY, f64::min)
    }

    /// Returns the largest stable k1 by (6.17) and (6.18) as printed.
    pub fn printed_k1(&self, k2: f64) -> f64 {
        let (alpha, b) = (self.window(), self.per_ack);
        let d = b * alpha * alpha + alpha - 1.0;
        let on_edge = |z: f64| k2 + (2.0 * alpha * b + 1.0) * z.cos() / (d * d) - b * z * z.sin() / d;
        let k1 = |z: f64| {
            let sum = z.sin() + b * d / (1.0 + 2.0 * alpha * b) * z.cos();
            2.0 * (2.0 * alpha * b + 1.0) / (self.flows * d * d) * z * sum
        };
        odd_roots(on_edge).map(k1).fold(f64::INFINITY, f64::min)
    }
}

/// Returns the positive roots, up to 40 pi, at which a function falls from positive to negative values.
fn odd_roots(value: impl Fn(f64) -> f64) -> impl Iterator<Item = f64> {
    let step = 1e-3;
    let last = (40.0 * std::f64::consts::PI / step) as u32;
    let root = move |k: u32| {
        let (mut from, mut to) = (step * f64::from(k), step * f64::from(k + 1));
        if value(from) <= 0.0 || value(to) > 0.0 {
            return None;
        }
        for _ in 0..60 {
            let middle = (from + to) / 2.0;
            if value(middle) > 0.0 { from = middle } else { to = middle }
        }
        Some(from)
    };
    (0..last).filter_map(root)
}

/// Fluid model of a link under SFC, for packets that are marked instead of dropped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fluid {
    /// The link and its flows. The round-trip time is that of an empty queue.
    pub link: Link,
    /// Probability of a drop or mark when the queue is at its target and packets arrive at the link's rate.
    pub bias: f64,
    /// Gain per packet of queue.
    pub k1: f64,
    /// Increase of the probability if packets arrive at twice the link's rate.
    pub k2: f64,
    /// Target of the queue, in packets.
    pub target: f64,
    /// Size of the buffer, in packets.
    pub buffer: f64,
}

impl Fluid {
    /// Simulates the model for `seconds` seconds. Returns the mean queue in the second half of this time, in packets.
    pub fn mean_queue(&self, model: Model, seconds: f64) -> f64 {
        const STEP: f64 = 1e-3;
        let Link { flows, rtt, packets_per_second: capacity, per_ack } = self.link;
        let steps = (seconds / STEP) as usize;
        let mut past = Vec::with_capacity(steps);
        let (mut w, mut queue, mut sum) = (1.0f64, 0.0f64, 0.0);
        for step in 0..steps {
            let delay = rtt.as_secs_f64() + queue / capacity;
            let arrivals = flows * w / delay;
            let law = self.bias + self.k1 * (queue - self.target) + self.k2 * (arrivals / capacity - 1.0);
            let overflow = if queue >= self.buffer { (1.0 - capacity / arrivals).max(0.0) } else { 0.0 };
            let p = law.clamp(0.0, 1.0);
            past.push((w, 1.0 - (1.0 - p) * (1.0 - overflow)));
            let back = step.saturating_sub((delay / STEP) as usize);
            let (acked, loss) = past[back];
            w = (w + STEP / delay * drift(model, w, acked, loss, per_ack)).max(1.0);
            queue = (queue + STEP * (arrivals - capacity)).clamp(0.0, self.buffer);
            if 2 * step >= steps {
                sum += queue;
            }
        }
        sum / (steps - steps / 2) as f64
    }
}

#[cfg(test)]
mod tests;
