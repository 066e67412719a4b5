//! Effect of congestion at one connection on it and on the others of its group: figure 4.2 (paper 002, 4.3), as
//! functions.

use faircast_core::time::Time;

/// A connection's numbers at a call. Windows and flights are in the caller's unit, bytes or packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct View {
    /// The first number that is not acknowledged (`SND.UNA`).
    pub una: u64,
    /// The next new number (`SND.NXT`): one more than the highest that was sent.
    pub nxt: u64,
    /// Data that is out (`FlightSize`; RFC 5681, 2).
    pub flight: f64,
    /// A segment: 1 where windows are in packets.
    pub mss: f64,
    /// The congestion window.
    pub cwnd: f64,
    /// The slow-start threshold; infinite before the first loss.
    pub ssthresh: f64,
    /// When the packet at `una` left, the last time; [`Time::NEVER`] when nothing is out or it is not known.
    pub una_sent_at: Time,
    /// Whether it repairs a loss.
    pub recovery: Recovery,
    /// Whether it has something to send beyond `nxt`.
    pub has_data: bool,
}

/// Whether a connection repairs a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recovery {
    /// It does not.
    #[default]
    None,
    /// By fast recovery.
    Fast,
    /// After a timeout; the packet at `una` has been sent again and is not acknowledged.
    Timeout,
}

impl View {
    /// A connection that counts packets, has some of them out and more to send, and repairs nothing.
    pub fn in_packets(una: u64, nxt: u64, cwnd: f64, ssthresh: f64) -> View {
        View {
            una,
            nxt,
            flight: nxt.saturating_sub(una) as f64,
            mss: 1.0,
            cwnd,
            ssthresh,
            una_sent_at: Time::NEVER,
            recovery: Recovery::None,
            has_data: true,
        }
    }

    /// One that counts bytes.
    pub fn in_bytes(una: u64, nxt: u64, mss: u32, cwnd: u64, ssthresh: u64) -> View {
        let ssthresh = if ssthresh == u64::MAX { f64::INFINITY } else { ssthresh as f64 };
        View { mss: f64::from(mss.max(1)), ..View::in_packets(una, nxt, cwnd as f64, ssthresh) }
    }

    /// Whether it sends: something is out, or it has data ("connections with data to send"; paper 002, 4.4).
    pub const fn is_active(&self) -> bool {
        self.has_data || self.flight > 0.0
    }
}

/// Windows that a rule sets; `None` for those that it does not change.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Windows {
    /// The congestion window.
    pub cwnd: Option<f64>,
    /// The slow-start threshold.
    pub ssthresh: Option<f64>,
}

/// Returns the window after a connection's own loss: half of the data that is out, two segments at least (RFC
/// 5681, equation 4).
pub fn half(view: &View) -> f64 {
    (view.flight / 2.0).max(2.0 * view.mss)
}

/// Another connection of the group has lost a packet with `f` out (figure 4.2, from "Upon being notified").
///
/// The figure misprints the indices of the flights ("FlightSize_i >= FlightSize_i"); the text below it has them.
pub fn on_loss_elsewhere(view: &View, f: f64) -> Windows {
    let out = view.flight;
    let windows = if out >= f {
        let cwnd = (out / 2.0).max(f);
        Windows { cwnd: Some(cwnd), ssthresh: Some(cwnd) }
    } else if out >= f / 2.0 {
        Windows { cwnd: Some(out), ssthresh: Some(f / 2.0) }
    } else {
        Windows { cwnd: None, ssthresh: Some((f / 2.0).min(view.ssthresh)) }
    };
    kept_in_bounds(view, windows)
}

/// Another connection of the group has timed out with `f` out (paper 002, 4.3, "When a connection incurs timeout").
///
/// Paper gap: 4.3 says nothing of the threshold of those that halve their windows. Here it is the window, as after a loss.
pub fn on_timeout_elsewhere(view: &View, f: f64) -> Windows {
    let half = view.flight / 2.0;
    let windows = if view.flight >= f {
        Windows { cwnd: Some(half), ssthresh: Some(half) }
    } else {
        Windows { cwnd: None, ssthresh: Some(half) }
    };
    kept_in_bounds(view, windows)
}

/// A window has one segment at least and never grows by a verdict, a threshold two segments. In a recovery the window follows the
/// threshold, for it is the recovery's.
fn kept_in_bounds(view: &View, windows: Windows) -> Windows {
    let ssthresh = windows.ssthresh.map(|it| it.max(2.0 * view.mss));
    let mut cwnd = windows.cwnd.map(|it| it.max(view.mss).min(view.cwnd));
    if view.recovery == Recovery::Fast && cwnd.is_some() {
        cwnd = ssthresh.map(|it| it.min(view.cwnd));
    }
    Windows { cwnd, ssthresh }
}

/// Returns the initial windows of a new connection, given the active connection of the group that has the smallest
/// window (paper 002, 4.4).
pub fn on_start(reference: &View) -> Windows {
    let (cwnd, mss) = (reference.cwnd, reference.mss);
    Windows { cwnd: Some((cwnd / 2.0).max(mss)), ssthresh: Some(cwnd.min(reference.ssthresh).max(2.0 * mss)) }
}
