//! Rules of figure 4.2 (paper 002, 4.3), as functions: the effect of congestion at one connection on this connection and on the
//! other connections of its group.

use faircast_core::time::Time;

/// State of a connection at the time of a call. Windows and flights are in the unit that the caller uses, bytes or packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct View {
    /// The first unacknowledged number (`SND.UNA`).
    pub una: u64,
    /// The next sequence number (`SND.NXT`): one more than the highest number sent.
    pub nxt: u64,
    /// Data in flight (`FlightSize`; RFC 5681, 2).
    pub flight: f64,
    /// Size of a segment in the unit of windows; 1 if the unit is packets.
    pub mss: f64,
    /// The congestion window.
    pub cwnd: f64,
    /// The slow-start threshold; infinite before the first loss.
    pub ssthresh: f64,
    /// Time of the latest transmission of packet `una`; [`Time::NEVER`] if no data is in flight or the time is unknown.
    pub una_sent_at: Time,
    /// Whether the connection is repairing a loss.
    pub recovery: Recovery,
    /// Whether it has data to send beyond `nxt`.
    pub has_data: bool,
}

/// Whether a connection is repairing a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recovery {
    /// It repairs no loss.
    #[default]
    None,
    /// It repairs a loss by fast recovery.
    Fast,
    /// It repairs a loss after a timeout: packet `una` has been sent again and is not acknowledged yet.
    Timeout,
}

impl View {
    /// Returns the view of a connection that counts packets. The connection has more data to send and is not repairing a loss.
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

    /// Like [`View::in_packets`], for a connection that counts bytes.
    pub fn in_bytes(una: u64, nxt: u64, mss: u32, cwnd: u64, ssthresh: u64) -> View {
        let ssthresh = if ssthresh == u64::MAX { f64::INFINITY } else { ssthresh as f64 };
        View { mss: f64::from(mss.max(1)), ..View::in_packets(una, nxt, cwnd as f64, ssthresh) }
    }

    /// Returns whether the connection is active: data is in flight or ready to be sent ("connections with data to send"; paper
    /// 002, 4.4).
    pub const fn is_active(&self) -> bool {
        self.has_data || self.flight > 0.0
    }
}

/// New values of window and threshold; `None` for a value that stays unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Windows {
    /// The congestion window.
    pub cwnd: Option<f64>,
    /// The slow-start threshold.
    pub ssthresh: Option<f64>,
}

/// Returns the window after a connection's own loss: half of the data in flight, but at least two segments (RFC 5681, equation
/// 4).
pub fn half(view: &View) -> f64 {
    (view.flight / 2.0).max(2.0 * view.mss)
}

/// Returns the windows of a connection after another connection of its group has lost a packet (figure 4.2, from "Upon being
/// notified"). `f` is the data in flight of the other connection.
///
/// The figure misprints the indices of the data in flight ("FlightSize_i >= FlightSize_i"). The text below the figure has the
/// correct indices.
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

/// Returns the windows of a connection after another connection of its group has timed out (paper 002, 4.3, "When a connection
/// incurs timeout"). `f` is the data in flight of the other connection.
///
/// Paper gap: 4.3 does not specify the threshold of connections that halve their windows. Here the threshold equals the window,
/// as after a loss.
pub fn on_timeout_elsewhere(view: &View, f: f64) -> Windows {
    let half = view.flight / 2.0;
    let windows = if view.flight >= f {
        Windows { cwnd: Some(half), ssthresh: Some(half) }
    } else {
        Windows { cwnd: None, ssthresh: Some(half) }
    };
    kept_in_bounds(view, windows)
}

/// Limits new windows: at least one segment, and at most the present window. Limits a new threshold to at least two segments.
/// During a fast recovery, a changed window equals the new threshold.
fn kept_in_bounds(view: &View, windows: Windows) -> Windows {
    let ssthresh = windows.ssthresh.map(|it| it.max(2.0 * view.mss));
    let mut cwnd = windows.cwnd.map(|it| it.max(view.mss).min(view.cwnd));
    if view.recovery == Recovery::Fast && cwnd.is_some() {
        cwnd = ssthresh.map(|it| it.min(view.cwnd));
    }
    Windows { cwnd, ssthresh }
}

/// Returns the initial windows of a new connection. `reference` is the active connection with the smallest window in the group
/// (paper 002, 4.4).
pub fn on_start(reference: &View) -> Windows {
    let (cwnd, mss) = (reference.cwnd, reference.mss);
    Windows { cwnd: Some((cwnd / 2.0).max(mss)), ssthresh: Some(cwnd.min(reference.ssthresh).max(2.0 * mss)) }
}
