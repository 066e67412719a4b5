//! The congestion window: how much may be out, and where slow start ends.

/// A congestion window and its slow-start threshold, in packets.
///
/// A sender moves its own by its law ([`Variant`](super::Variant)); whoever coordinates several senders moves it by
/// [`Sender::set_window`](super::Sender::set_window) and [`Sender::reduce`](super::Sender::reduce).
#[derive(Debug, Clone)]
pub struct CongestionWindow {
    cwnd: f64,
    ssthresh: f64,
    /// Packets that duplicate acknowledgements add to the window (RFC 5681, 3.2, steps 3 and 4).
    inflation: u32,
    reductions: u32,
}

impl CongestionWindow {
    pub(super) const fn new(cwnd: f64, ssthresh: f64) -> CongestionWindow {
        CongestionWindow { cwnd, ssthresh, inflation: 0, reductions: 0 }
    }

    /// The window (`cwnd`), without what duplicate acknowledgements add.
    #[inline]
    pub const fn packets(&self) -> f64 {
        self.cwnd
    }

    /// The slow-start threshold (`ssthresh`).
    #[inline]
    pub const fn threshold(&self) -> f64 {
        self.ssthresh
    }

    /// Packets that duplicate acknowledgements add in a fast recovery.
    #[inline]
    pub const fn inflation(&self) -> u32 {
        self.inflation
    }

    /// How often it was reduced because of congestion.
    pub const fn reductions(&self) -> u32 {
        self.reductions
    }

    /// Whether it grows by a packet for every one that is acknowledged.
    #[inline]
    pub const fn is_in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Whole packets that may be out; `most` is the receiver's window.
    #[inline]
    pub(super) fn allowed(&self, most: u32) -> u32 {
        (self.cwnd as u32).saturating_add(self.inflation).min(most)
    }

    /// Another window, no reduction.
    #[inline]
    pub(super) const fn set(&mut self, cwnd: f64) {
        self.cwnd = cwnd;
    }

    #[inline]
    pub(super) const fn set_threshold(&mut self, ssthresh: f64) {
        self.ssthresh = ssthresh;
    }

    #[inline]
    pub(super) const fn set_inflation(&mut self, packets: u32) {
        self.inflation = packets;
    }

    /// It is reduced because of congestion: the threshold to at least two packets, the window to at least one.
    pub(super) fn reduce(&mut self, threshold: f64, window: f64) {
        self.ssthresh = threshold.floor().max(2.0);
        self.cwnd = window.max(1.0);
        self.reductions += 1;
    }

    /// A reduction that leaves the threshold (Vegas).
    pub(super) const fn reduce_window(&mut self, window: f64) {
        self.cwnd = window;
        self.reductions += 1;
    }
}
