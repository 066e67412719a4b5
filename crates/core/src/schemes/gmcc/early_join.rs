//! Joins of layers before loss statistics exist. The evidence is a layer's start-up and the absence of losses.
//!
//! Paper 000 compares losses, so in every layer a receiver waits until the representative has had `N` losses. A fast layer loses
//! only one packet in seconds or minutes. Three facts are available much sooner:
//!
//! - A starting layer doubles its rate until a receiver loses packets. If a receiver gets all packets of the fastest round, the
//!   receiver's path can carry the rate of that round. The layer continues at a lower rate.
//! - If the representative has lost packets repeatedly and this receiver has lost none in that time, this receiver's path can
//!   carry more.
//! - Packets state the rate of the layer above, so a receiver need not try a layer that exceeds its available bandwidth.

use crate::packet::{Data, Flags};
use crate::time::{Span, Time};

/// The evidence of one layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct JoinEvidence {
    /// Rate of the fastest start-up round that arrived without loss, in bit/s.
    peak: f32,
    /// End of the layer's start-up, or the time of this receiver's join if the join was later.
    settled_at: Time,
    starting: bool,
    /// Whether a packet was lost since the layer was joined.
    spoiled: bool,
}

/// The present state of a layer, as the receiver observes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObservedLayer {
    /// The rate stated by the newest packet, in bit/s.
    pub(super) rate: Option<f32>,
    pub(super) rtt: Span,
    /// Number of updates of the representative's statistics since the latest loss at this receiver.
    pub(super) quiet: u8,
    /// The size of the newest packet, in bits.
    pub(super) packet_bits: u32,
}

/// Ratio of the rate of a layer's fastest round to the layer's present rate. Above this ratio, other receivers are assumed to
/// limit the layer, not this receiver.
const HEADROOM: f32 = 1.25;
/// If the receiver did not observe the layer's start-up: required number of updates of the representative's statistics without a
/// loss at the receiver.
const QUIET: u8 = 3;
/// Required number of round-trip times without a loss after the start-up. Queues that the start-up has filled overflow within
/// this time.
const DRAIN: u64 = 2;
/// Required number of round-trip times without a loss in a layer that was already running at the join.
const TRIAL: u64 = 4;
/// Minimum assumed round-trip time. With a shorter one, the required times without a loss would be too short as evidence.
const SHORTEST: Span = Span::from_millis(25);

impl JoinEvidence {
    pub(super) const fn new(now: Time) -> JoinEvidence {
        JoinEvidence { peak: 0.0, settled_at: now, starting: false, spoiled: false }
    }

    /// Records a received packet of the layer. If this packet ended a round without losses, `whole_round` is the rate of that
    /// round.
    pub(super) fn note(&mut self, data: &Data, whole_round: Option<f32>, now: Time) {
        if data.flags.has(Flags::STARTING) {
            self.starting = true;
            self.peak = whole_round.map_or(self.peak, |rate| self.peak.max(rate));
        } else if self.starting {
            (self.starting, self.settled_at) = (false, now);
        }
    }

    /// Records a loss, which may be due to chance or to a new competing flow.
    pub(super) fn on_loss(&mut self) {
        self.spoiled = true;
    }

    /// Returns whether a receiver should join the next layer, which is sent at `above` bit/s. `layer` is the state of the
    /// receiver's highest joined layer, to which this evidence belongs. `total` is the rate of all joined layers in bit/s.
    /// `lost_at` is the time of the latest loss in any joined layer.
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
        // The amount by which the rate of a TCP flow would grow in the time without losses.
        let rounds = clean.as_secs_f64() / rtt.as_secs_f64();
        let grown = rounds * f64::from(layer.packet_bits) / rtt.as_secs_f64();
        (shown || quiet) && above <= total + grown
    }
}
