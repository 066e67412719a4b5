//! Joins of layers before loss statistics exist. The evidence is a layer's start-up and the absence of losses.
//!
//! Paper 000 compares losses, so in every layer a receiver waits until the representative has had `N` losses. A fast layer loses
//! only one packet in seconds or minutes. Three facts are available much sooner:
//!
//! - A starting layer doubles its rate until a receiver cannot follow. If a receiver got the fastest round without a loss,
//!   its path can carry that rate, and the layer continues at a lower rate.
//! - The representative has lost packets repeatedly, and this receiver lost none meanwhile.
//! - Packets state the rate of the layer above, so a receiver need not try a layer that cannot fit.

use crate::packet::{Data, Flags};
use crate::time::{Span, Time};

/// The evidence of one layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct JoinEvidence {
    /// Rate of the fastest start-up round that arrived without loss, in bit/s.
    peak: f32,
    /// End of the layer's start-up, or the time of the join if that was later.
    settled_at: Time,
    starting: bool,
    /// Whether a packet was lost since then.
    spoiled: bool,
}

/// The present state of a layer, as the receiver observes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObservedLayer {
    /// The rate stated by the newest packet, in bit/s.
    pub(super) rate: Option<f32>,
    pub(super) rtt: Span,
    /// Number of updates of the representative since this receiver's latest loss.
    pub(super) quiet: u8,
    /// The size of the newest packet, in bits.
    pub(super) packet_bits: u32,
}

/// Ratio of a layer's fastest round to its present rate above which other receivers, not this one, are assumed to limit the
/// layer.
const HEADROOM: f32 = 1.25;
/// Without an observed start-up: the required number of updates of the representative without a loss at this receiver.
const QUIET: u8 = 3;
/// Required round-trip times without a loss after the start-up. Queues that the start-up has filled overflow in this time, if at
/// all.
const DRAIN: u64 = 2;
/// Required round-trip times without a loss in a layer that was already running at the join.
const TRIAL: u64 = 4;
/// Minimum assumed round-trip time. With shorter times, the counts above prove nothing.
const SHORTEST: Span = Span::from_millis(25);

impl JoinEvidence {
    pub(super) const fn new(now: Time) -> JoinEvidence {
        JoinEvidence { peak: 0.0, settled_at: now, starting: false, spoiled: false }
    }

    /// Records a received packet of the layer. `whole_round` is the rate of the round that it ended, if that round had no losses.
    pub(super) fn note(&mut self, data: &Data, whole_round: Option<f32>, now: Time) {
        if data.flags.has(Flags::STARTING) {
            self.starting = true;
            self.peak = whole_round.map_or(self.peak, |rate| self.peak.max(rate));
        } else if self.starting {
            (self.starting, self.settled_at) = (false, now);
        }
    }

    /// Records a loss. It may be due to chance or to a new competing flow.
    pub(super) fn on_loss(&mut self) {
        self.spoiled = true;
    }

    /// Returns whether a receiver should join the next layer, which is sent at `above` bit/s. This layer is its highest one, in
    /// the given state. The receiver takes all joined layers at `total` bit/s, and its latest loss in any of them was at
    /// `lost_at`.
    pub(super) fn has_room(
        &self,
        layer: ObservedLayer,
        lost_at: Time,
        total: f64,
        above: f64,
        now: Time,
    ) -> bool {
        let Some(rate) = layer.rate.filter(|_| !self.starting) else { return false };
        let rtt = layer.rtt.max(SHORTEST);
        let clean = now.since(self.settled_at.max(lost_at));
        let shown = self.peak >= HEADROOM * rate && clean >= rtt * DRAIN;
        let shown = shown && (!self.spoiled || layer.quiet >= 1 || clean >= rtt * TRIAL);
        let quiet = layer.quiet >= QUIET && clean >= rtt * TRIAL;
        // The growth of a TCP flow in this time.
        let rounds = clean.as_secs_f64() / rtt.as_secs_f64();
        let grown = rounds * f64::from(layer.packet_bits) / rtt.as_secs_f64();
        (shown || quiet) && above <= total + grown
    }
}
