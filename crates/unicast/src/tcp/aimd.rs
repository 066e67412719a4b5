//! The window rules of Tahoe, Reno, NewReno and SACK: slow start, then additive increase and multiplicative decrease (RFC 5681,
//! 3.1).

use super::config::{Config, Counting, Halving};
use super::window::CongestionWindow;

/// Rules for the growth of a window at acknowledgements and for its reduction after a loss.
#[derive(Debug, Clone, Copy)]
pub(super) struct Aimd {
    counting: Counting,
    halving: Halving,
    /// The receiver's window, in packets.
    most: u32,
}

impl Aimd {
    #[inline]
    pub(super) const fn of(config: &Config) -> Aimd {
        Aimd { counting: config.counting, halving: config.halving, most: config.receiver_window }
    }

    /// Grows the window at an acknowledgement of `newly` new packets.
    #[inline]
    pub(super) fn grow(self, window: &mut CongestionWindow, newly: u32) {
        let mut counts = 1.0;
        if self.counting == Counting::Packets {
            counts = f64::from(newly);
            let slow_start = (window.threshold() - window.packets()).clamp(0.0, counts);
            window.set(window.packets() + slow_start);
            counts -= slow_start;
        } else if window.is_in_slow_start() {
            window.set(window.packets() + 1.0);
            return;
        }
        window.set(window.packets() + counts / window.packets());
    }

    /// Returns the window after a loss; `flight` is the number of outstanding packets.
    pub(super) fn half(self, window: &CongestionWindow, flight: u32) -> f64 {
        match self.halving {
            Halving::Window | Halving::LeastTwo => {
                (window.packets() + f64::from(window.inflation())).min(f64::from(self.most)) / 2.0
            }
            Halving::WholeWindow => f64::from(window.allowed(self.most) / 2),
            Halving::Flight => (f64::from(flight) / 2.0).max(2.0),
        }
    }

    /// Returns the window after an echoed mark. Since no packet is lost, the window is halved instead of the packets in flight
    /// (RFC 3168, 6.1.2).
    pub(super) fn half_at_mark(self, window: &CongestionWindow, flight: u32) -> f64 {
        match self.halving {
            Halving::Flight => window.packets() / 2.0,
            Halving::Window | Halving::WholeWindow => self.half(window, flight),
            Halving::LeastTwo => self.half(window, flight).max(2.0),
        }
    }
}
