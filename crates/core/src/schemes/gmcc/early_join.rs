//! Joining layers before the statistics of losses exist: the evidence of a layer's start-up and its silence.
//!
//! Paper 000 compares losses, so a receiver waits until a representative has had `N` of them, again in every layer. Fast layers lose a
//! packet each few seconds or minutes. Three things are known much sooner:
//!
//! - A layer that starts doubles its rate until a receiver cannot follow. A receiver that got the fastest round without a loss has been
//!   shown a path for that rate, and the layer goes on at less.
//! - The representative has lost again and again, and nothing was lost here meanwhile.
//! - Packets state the rate of the layer above, so that a receiver need not try a layer that cannot fit.

use crate::packet::{Data, Flags};
use crate::time::{Span, Time};

/// The evidence of one layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct JoinEvidence {
    /// The fastest round of the layer's start-up that came whole, in bit/s.
    peak: f32,
    /// When the layer's start-up was over, or the layer was joined, if that was later.
    settled_at: Time,
    starting: bool,
    /// Whether something was lost since.
    spoiled: bool,
}

/// How a layer looks to the receiver now.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObservedLayer {
    /// The rate that the newest packet states, in bit/s.
    pub(super) rate: Option<f32>,
    pub(super) rtt: Span,
    /// Updates of the representative since the latest loss here.
    pub(super) quiet: u8,
    /// The size of the newest packet, in bits.
    pub(super) packet_bits: u32,
}

/// A layer must have become slower than its fastest round by this much before others are taken for what limits it.
const HEADROOM: f32 = 1.25;
/// Without a start-up: the number of updates of the representative without a loss here.
const QUIET: u8 = 3;
/// Round-trip times without a loss after the start-up, in which the queues that it has filled overflow or not.
const DRAIN: u64 = 2;
/// The same in a layer that was running when it was joined.
const TRIAL: u64 = 4;
/// The least round-trip time that is assumed: with shorter ones these numbers prove nothing.
const SHORTEST: Span = Span::from_millis(25);

impl JoinEvidence {
    pub(super) const fn new(now: Time) -> JoinEvidence {
        JoinEvidence { peak: 0.0, settled_at: now, starting: false, spoiled: false }
    }

    /// A packet of the layer has come, and this was the rate of a round that it ended, if it ended one without losses.
    pub(super) fn note(&mut self, data: &Data, whole_round: Option<f32>, now: Time) {
        if data.flags.has(Flags::STARTING) {
            self.starting = true;
            self.peak = whole_round.map_or(self.peak, |rate| self.peak.max(rate));
        } else if self.starting {
            (self.starting, self.settled_at) = (false, now);
        }
    }

    /// Something was lost: perhaps by chance, perhaps because another flow began.
    pub(super) fn on_loss(&mut self) {
        self.spoiled = true;
    }

    /// Returns whether a receiver whose highest layer is this one, and looks so, should join the next, which is sent at `above` bit/s. It
    /// takes all joined layers at `total` bit/s, and last lost something in any of them at `lost_at`.
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
        // The growth of a TCP flow in that time.
        let rounds = clean.as_secs_f64() / rtt.as_secs_f64();
        let grown = rounds * f64::from(layer.packet_bits) / rtt.as_secs_f64();
        (shown || quiet) && above <= total + grown
    }
}
