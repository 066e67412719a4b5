//! The congestion window, which limits the number of outstanding packets, and the threshold at which slow start ends.

/// A congestion window and its slow-start threshold, in packets.
///
/// A sender changes its own window by the rules of its [`Variant`](super::Variant). A coordinator of several senders changes a
/// window by [`Sender::set_window`](super::Sender::set_window) and [`Sender::reduce`](super::Sender::reduce).
#[derive(Debug, Clone)]
pub struct CongestionWindow {
    cwnd: f64,
    ssthresh: f64,
    /// Number of packets that are added to the window because of duplicate acknowledgements (RFC 5681, 3.2, steps 3 and 4).
    inflation: u32,
    reductions: u32,
}

impl CongestionWindow {
    pub(super) const fn new(cwnd: f64, ssthresh: f64) -> CongestionWindow {
        CongestionWindow { cwnd, ssthresh, inflation: 0, reductions: 0 }
    }

    /// Returns the window (`cwnd`) without [`CongestionWindow::inflation`].
    #[inline]
    pub const fn packets(&self) -> f64 {
        self.cwnd
    }

    /// Returns the slow-start threshold (`ssthresh`).
    #[inline]
    pub const fn threshold(&self) -> f64 {
        self.ssthresh
    }

    /// Returns the number of packets that are added to the window because of duplicate acknowledgements.
    #[inline]
    pub const fn inflation(&self) -> u32 {
        self.inflation
    }

    /// Returns the number of reductions because of congestion.
    pub const fn reductions(&self) -> u32 {
        self.reductions
    }

    /// Returns whether the sender is in slow start, in which the window grows by one packet for every acknowledged packet.
    #[inline]
    pub const fn is_in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Returns the number of whole packets that may be outstanding; `most` is the receiver's window.
    #[inline]
    pub(super) fn allowed(&self, most: u32) -> u32 {
        (self.cwnd as u32).saturating_add(self.inflation).min(most)
    }

    /// Changes the window without counting a reduction.
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

    /// Reduces the window because of congestion, to at least one packet, and the threshold to at least two packets.
    pub(super) fn reduce(&mut self, threshold: f64, window: f64) {
        self.ssthresh = threshold.floor().max(2.0);
        self.cwnd = window.max(1.0);
        self.reductions += 1;
    }

    /// Reduces the window without changing the threshold (Vegas).
    pub(super) const fn reduce_window(&mut self, window: f64) {
        self.cwnd = window;
        self.reductions += 1;
    }
}
