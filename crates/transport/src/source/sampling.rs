//! Samples of the rate for traces, ten times a second while packets are sent.

use super::{Phase, SourceSession};
use crate::event::Limit;
use crate::trace::{Beginning, Ending, RateSample};
use crate::units::mean_rate;
use faircast_core::node::Source as _;
use faircast_core::packet::ReceiverId;
use faircast_core::time::{Span, Time};

/// Minimum duration between two samples.
const EVERY: Span = Span::from_millis(100);

/// Numbers of the session at the last sample.
#[derive(Debug, Default)]
pub(super) struct Sampled {
    at: Time,
    wire_bytes: u64,
    packets: u64,
    repairs: u64,
    held: Span,
    /// Limit of the rate that was traced last.
    limit: Option<(Limit, Option<ReceiverId>)>,
}

impl SourceSession {
    /// Traces the rate since the last sample, if enough time has passed. A sample causes no wakeup, so that a traced session behaves
    /// like any other.
    pub(super) fn sample(&mut self, now: Time) {
        let span = now.since(self.sampled.at);
        if span < EVERY || self.phase != Phase::Sending {
            return;
        }
        let (held, by) = self.windows.held(now);
        let (counts, last, seen) = (&self.counts, &self.sampled, self.source.observe());
        let bytes = counts.wire_bytes - last.wire_bytes;
        let held_now = held.saturating_sub(last.held);
        self.scope.sampled(
            &RateSample {
                rate: mean_rate(bytes, span),
                limit: self.limit(bytes, (held_now, by), span),
                held: held_now,
                packets: counts.packets - last.packets,
                repairs: counts.repairs - last.repairs,
                layers: self.layers_on().map(|layers| layers.joined),
                seen,
            },
            now,
        );
        let Sampled { limit, .. } = self.sampled;
        let (wire_bytes, packets, repairs) = (counts.wire_bytes, counts.packets, counts.repairs);
        self.sampled = Sampled { at: now, wire_bytes, packets, repairs, held, limit };
    }

    /// Traces the limit of the rate of the latest second, if it has changed.
    pub(super) fn trace_limit(&mut self, limit: Option<(Limit, Option<ReceiverId>)>, bytes: u64, now: Time) {
        let seen = self.source.observe();
        let limit = limit.map(|(limit, holder)| match limit {
            Limit::Congestion => (limit, seen.limiting),
            _ => (limit, holder),
        });
        if std::mem::replace(&mut self.sampled.limit, limit) == limit {
            return;
        }
        let Some((limit, receiver)) = limit else { return };
        let host = receiver.and_then(|id| self.members.get(id)).map(|member| member.host.as_str());
        self.scope.limited(limit, receiver, host, mean_rate(bytes, Span::from_secs(1)), seen.rate, now);
    }

    /// Traces that the session starts to send.
    pub(super) fn trace_begin(&mut self, now: Time) {
        self.sampled = Sampled { at: now, wire_bytes: self.counts.wire_bytes, ..Sampled::default() };
        let session = Beginning {
            scheme: &self.setup.scheme.to_string(),
            receivers: self.members.receivers(),
            layers: self.source.layers(),
            packet_bytes: self.packet_bytes(),
            max: self.setup.max,
        };
        self.scope.began(&session, now);
    }

    /// Traces that the session ends.
    pub(super) fn trace_end(&self, now: Time) {
        let session = Ending {
            receivers: self.members.receivers(),
            verified: self.members.verified(),
            sending: self.sending(now),
            packets: self.counts.packets,
            repair_ratio: self.repair_ratio(),
            cuts: self.source.observe().cuts,
            failure: self.failure.as_ref(),
        };
        self.scope.ended(&session, now);
    }
}
