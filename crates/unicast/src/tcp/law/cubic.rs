//! CUBIC (RFC 9438): after a reduction, the window is a cubic function of time, with a plateau at the window before the
//! reduction. The window is always at least the window that Reno would have.

use super::Received;
use super::hystart::HyStart;
use crate::Ack;
use crate::tcp::config::Switch;
use crate::tcp::window::CongestionWindow;
use faircast_core::time::Time;

/// Factor of the cubic function, in packets per second cubed (RFC 9438, 4.1.1, `C`).
pub(super) const C: f64 = 0.4;
/// Factor by which a loss multiplies the window (4.6, `beta_cubic`).
pub(super) const BETA: f64 = 0.7;
/// Additive increase, in packets per round trip, with which a reduction by [`BETA`] gives the same rate as Reno (4.3,
/// `alpha_cubic`).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// State variables of 4.1.2.
#[derive(Debug, Clone, Default)]
pub(in crate::tcp) struct Cubic {
    now: Time,
    /// Smoothed round-trip time, in seconds.
    rtt: f64,
    /// The window before the latest reduction, or a lower value if this window was lower than before the preceding reduction
    /// (4.7, `W_max`); 0 before the first reduction.
    most: f64,
    /// The window at the latest reduction (`cwnd_prior`).
    prior: f64,
    epoch: Option<Epoch>,
    hystart: Option<HyStart>,
    /// Whether fast convergence is off (4.7).
    keeps_maximum: bool,
}

/// A stage of congestion avoidance.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    /// Start of the stage (`t_epoch`).
    began: Time,
    /// Time from the start of the stage to the plateau, in seconds (`K`), and the window at the plateau.
    to_plateau: f64,
    plateau: f64,
    /// The window that Reno would have (`W_est`).
    reno: f64,
}

impl Cubic {
    pub(super) fn new(hystart: Switch, convergence: Switch) -> Cubic {
        let hystart = (hystart == Switch::On).then(HyStart::default);
        Cubic { hystart, keeps_maximum: convergence == Switch::Off, ..Cubic::default() }
    }

    pub(super) fn on_received(&mut self, ack: &Ack, received: &Received) {
        self.now = received.now;
        self.rtt = received.rtt.as_secs_f64();
        if let Some(hystart) = &mut self.hystart {
            hystart.on_received(ack, received);
        }
    }

    pub(super) fn grow(&mut self, window: &mut CongestionWindow, newly: u32) {
        let mut newly = f64::from(newly);
        if window.is_in_slow_start() {
            newly = self.slow_start(window, newly);
        }
        if newly > 0.0 {
            self.avoid_congestion(window, newly);
        }
    }

    /// Grows the window by slow start up to the threshold. Returns the part of `newly` that is left for congestion avoidance.
    fn slow_start(&mut self, window: &mut CongestionWindow, newly: f64) -> f64 {
        let mut divisor = 1.0;
        if let Some(hystart) = &mut self.hystart {
            if hystart.is_over() {
                window.set_threshold(window.packets());
                self.hystart = None; // for the first slow start alone (RFC 9406, 4.3)
                return newly;
            }
            divisor = hystart.divisor();
        }
        let used = newly.min((window.threshold() - window.packets()) * divisor);
        window.set(window.packets() + used / divisor);
        newly - used
    }

    fn avoid_congestion(&mut self, window: &mut CongestionWindow, newly: f64) {
        let cwnd = window.packets();
        let (now, most) = (self.now, self.most);
        let epoch = self.epoch.get_or_insert_with(|| {
            let plateau = most.max(cwnd);
            Epoch { began: now, to_plateau: ((plateau - cwnd) / C).cbrt(), plateau, reno: cwnd }
        });
        let age = now.since(epoch.began).as_secs_f64();
        let at = |time: f64| C * (time - epoch.to_plateau).powi(3) + epoch.plateau;
        // Figure 4 in RFC 9438; alpha becomes 1 once Reno's window has reached the window before the reduction (4.3).
        let alpha = if epoch.reno < self.prior { ALPHA } else { 1.0 };
        epoch.reno += alpha * newly / cwnd;
        if at(age) < epoch.reno {
            window.set(cwnd.max(epoch.reno));
        } else {
            let target = at(age + self.rtt).clamp(cwnd, 1.5 * cwnd);
            window.set(cwnd + (target - cwnd) / cwnd * newly);
        }
    }

    /// Ends the stage. Applies fast convergence (4.7): if the window is lower than before the preceding reduction, the plateau is
    /// lowered to make room for other flows.
    pub(super) fn on_reduction(&mut self, cwnd: f64) {
        let falls = cwnd < self.most && !self.keeps_maximum;
        self.most = if falls { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.prior = cwnd;
        self.epoch = None;
        self.hystart = None;
    }

    /// Ends the stage, because idle time must not count as time of growth (5.8). The next stage starts from the present window.
    pub(super) const fn on_idle(&mut self) {
        self.epoch = None;
    }
}
