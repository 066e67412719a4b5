//! Queues as feedback loops: design of PI and RED for a link, and stability margins.
//!
//! The plant is the linearised model of `N` TCP flows and the queue of their link (Hollot, Misra, Towsley and Gong 2001). The
//! round-trip time is `R`, and the link sends `C` packets per second. The gain of the plant is `(R C)^3 / (2 N)^2` packets in the
//! queue for a probability of one. Its poles are `2 N / (R^2 C)` and `1 / R`, and its delay is `R`.

use faircast_core::time::Span;

/// Long flows over one link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flows {
    /// Number of flows ("N").
    pub count: f64,
    /// Round-trip time of the flows ("R").
    pub rtt: Span,
    /// Rate of the link ("C").
    pub packets_per_second: f64,
}

impl Flows {
    /// The pole of the windows, in rad/s.
    fn window_pole(&self) -> f64 {
        let rtt = self.rtt.as_secs_f64();
        2.0 * self.count / (rtt * rtt * self.packets_per_second)
    }

    /// Returns the static gain: the number of packets in the queue for a probability of one.
    fn gain(&self) -> f64 {
        (self.rtt.as_secs_f64() * self.packets_per_second).powi(3) / (4.0 * self.count * self.count)
    }

    /// Returns the open loop of these flows and a queue. The queue discipline maps the queue length to a probability with this
    /// gain, these zeros, poles and integrators.
    fn closed_by(&self, gain: f64, zeros: Vec<f64>, poles: Vec<f64>, integrators: u32) -> Loop {
        let rtt = self.rtt.as_secs_f64();
        let poles = [poles, vec![self.window_pole(), 1.0 / rtt]].concat();
        Loop { gain: gain * self.gain(), zeros, poles, integrators, delay: rtt }
    }
}

/// A designed PI queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Pi {
    /// Weight of the queue's present distance from the target, in each update of the probability.
    pub a: f64,
    /// Weight of the distance at the previous update.
    pub b: f64,
    /// Open loop of the flows and the queue.
    pub open: Loop,
}

/// Designs PI. `flows` has the smallest expected number of flows and their longest round-trip time. The probability is updated
/// every `period` seconds. The zero of the controller cancels the pole of the windows. The loop has gain one at the lower of the
/// two poles of the plant.
pub fn pi(flows: &Flows, period: f64) -> Pi {
    let rtt = flows.rtt.as_secs_f64();
    let zero = flows.window_pole();
    let crossover = zero.min(1.0 / rtt);
    let gain = crossover * (1.0 + (crossover * rtt).powi(2)).sqrt() / flows.gain();
    // The bilinear transform of K (1 + s / z) / s gives a and b.
    let (a, b) = (gain / zero + gain * period / 2.0, gain / zero - gain * period / 2.0);
    // K (1 + s/z) / s.
    Pi { a, b, open: flows.closed_by(gain, vec![zero], Vec::new(), 1) }
}

/// A designed RED queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Red {
    /// Weight of the queue length in its average.
    pub w: f64,
    /// The given probability at the upper threshold.
    pub max_p: f64,
    /// Open loop of the flows and the queue.
    pub open: Loop,
}

/// Designs RED with these thresholds and this maximum probability, for these flows. The average of the queue changes slowly, so
/// that the loop has gain one at a tenth of the lower pole of the plant (Hollot and others, proposition 1).
pub fn red(flows: &Flows, (min, max): (f64, f64), max_p: f64) -> Red {
    let slope = max_p / (max - min);
    let crossover = 0.1 * flows.window_pole().min(1.0 / flows.rtt.as_secs_f64());
    let excess = (slope * flows.gain()).powi(2) - 1.0;
    // If the static gain of the loop is at most one, the average need not be slow.
    let pole = if excess > 0.0 { crossover / excess.sqrt() } else { flows.packets_per_second };
    let w = 1.0 - (-pole / flows.packets_per_second).exp();
    Red { w, max_p, open: flows.closed_by(slope, Vec::new(), vec![pole], 0) }
}

/// An open loop: `gain * product(1 + s/zero) / (s^integrators * product(1 + s/pole)) * exp(-s delay)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Loop {
    /// Static gain without the integrators.
    pub gain: f64,
    /// Zeros in rad/s.
    pub zeros: Vec<f64>,
    /// Poles in rad/s.
    pub poles: Vec<f64>,
    /// Number of integrators.
    pub integrators: u32,
    /// Delay in seconds.
    pub delay: f64,
}

/// Stability margins of a loop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Margins {
    /// Distance of the phase from -180 degrees at the frequency at which the gain is one, in degrees; infinite if the gain is
    /// never one.
    pub phase_deg: f64,
    /// Distance of the gain from one at the frequency at which the phase is -180 degrees, in dB.
    pub gain_db: f64,
    /// Frequency at gain one, in rad/s.
    pub crossover: f64,
}

impl Loop {
    /// Returns the gain at this frequency, in rad/s.
    pub fn magnitude(&self, frequency: f64) -> f64 {
        let factor = |corner: &f64| (1.0 + (frequency / corner).powi(2)).sqrt();
        let up: f64 = self.zeros.iter().map(factor).product();
        let down: f64 = self.poles.iter().map(factor).product();
        self.gain * up / down / frequency.powi(self.integrators as i32)
    }

    /// Returns the phase at this frequency, in radians, without wrapping.
    pub fn phase(&self, frequency: f64) -> f64 {
        let angle = |corner: &f64| (frequency / corner).atan();
        let up: f64 = self.zeros.iter().map(angle).sum();
        let down: f64 = self.poles.iter().map(angle).sum();
        up - down - f64::from(self.integrators) * std::f64::consts::FRAC_PI_2 - frequency * self.delay
    }

    /// Returns the real and the imaginary part of the response at this frequency.
    pub fn response(&self, frequency: f64) -> (f64, f64) {
        let (size, angle) = (self.magnitude(frequency), self.phase(frequency));
        (size * angle.cos(), size * angle.sin())
    }

    /// Returns the first frequency at which `value` is below zero. The search covers 1e-5 to 1e4 radians per `delay`.
    fn first_below(&self, value: impl Fn(f64) -> f64) -> Option<f64> {
        let delay = self.delay.max(1e-9);
        let (mut low, steps) = (1e-5 / delay, 20_000);
        if value(low) < 0.0 {
            return None;
        }
        let factor = 1e9f64.powf(1.0 / f64::from(steps));
        for _ in 0..steps {
            let high = low * factor;
            if value(high) < 0.0 {
                let (mut from, mut to) = (low, high);
                for _ in 0..60 {
                    let middle = (from + to) / 2.0;
                    if value(middle) < 0.0 { to = middle } else { from = middle }
                }
                return Some(from);
            }
            low = high;
        }
        None
    }

    /// Returns the margins. With a negative margin the closed loop is unstable.
    pub fn margins(&self) -> Margins {
        let pi = std::f64::consts::PI;
        let crossover = self.first_below(|frequency| self.magnitude(frequency) - 1.0);
        let turn = self.first_below(|frequency| self.phase(frequency) + pi);
        Margins {
            phase_deg: crossover.map_or(f64::INFINITY, |at| (self.phase(at) + pi).to_degrees()),
            gain_db: turn.map_or(f64::INFINITY, |at| -20.0 * self.magnitude(at).log10()),
            crossover: crossover.unwrap_or(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn designed_pi_has_the_published_constants() {
        // Example of the PI paper. The constants of the paper, 1.822e-5 and 1.816e-5, are also the defaults of ns-2.
        let flows = Flows { count: 60.0, rtt: Span::from_millis(246), packets_per_second: 3750.0 };
        let found = pi(&flows, 1.0 / 170.0);
        assert!(
            (found.a / 1.853e-5 - 1.0).abs() < 1e-3 && (found.b / 1.847e-5 - 1.0).abs() < 1e-3,
            "{found:?}"
        );
        let chapter_6 = Flows { count: 100.0, rtt: Span::from_millis(280), packets_per_second: 1250.0 };
        let found = pi(&chapter_6, 1.0 / 170.0);
        assert!(
            (found.a / 1.081e-3 - 1.0).abs() < 1e-3 && (found.b / 1.068e-3 - 1.0).abs() < 1e-3,
            "{found:?}"
        );
    }

    #[test]
    fn designed_pi_has_the_specified_crossover_frequency() {
        let flows = Flows { count: 60.0, rtt: Span::from_millis(246), packets_per_second: 3750.0 };
        let margins = pi(&flows, 1.0 / 170.0).open.margins();
        let expected = 2.0 * 60.0 / (0.246 * 0.246 * 3750.0);
        assert!((margins.crossover / expected - 1.0).abs() < 1e-6, "{margins:?}");
        // The phase margin is 180 - 90 - atan(w R) - w R degrees.
        let by_hand = 90.0 - (expected * 0.246f64).atan().to_degrees() - (expected * 0.246).to_degrees();
        assert!((margins.phase_deg - by_hand).abs() < 1e-6 && margins.gain_db > 6.0, "{margins:?}");
    }

    #[test]
    fn designed_red_is_stable_unless_the_average_is_too_fast() {
        let flows = Flows { count: 60.0, rtt: Span::from_millis(246), packets_per_second: 3750.0 };
        let found = red(&flows, (150.0, 700.0), 0.1);
        // The paper rounds the pole of the average to 0.005 rad/s, which gives a weight of 1.33e-6.
        assert!(
            (found.open.poles[0] - 0.005_36).abs() < 1e-5 && (found.w - 1.43e-6).abs() < 1e-8,
            "{found:?}"
        );
        assert!(found.open.margins().phase_deg > 60.0, "{:?}", found.open.margins());
        let fast = Loop { poles: vec![30.0, found.open.poles[1], found.open.poles[2]], ..found.open };
        assert!(fast.margins().phase_deg < 0.0, "{:?}", fast.margins());
    }

    #[test]
    fn margins_of_a_delayed_integrator_match_the_formulas() {
        let open = Loop { gain: 1.0, zeros: Vec::new(), poles: Vec::new(), integrators: 1, delay: 1.0 };
        let margins = open.margins();
        assert!((margins.phase_deg - (90.0 - 1f64.to_degrees())).abs() < 1e-6, "{margins:?}");
        assert!((margins.gain_db - 20.0 * (std::f64::consts::FRAC_PI_2).log10()).abs() < 1e-6);
    }
}
