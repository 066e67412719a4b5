//! The progress report of a receiver, once a second.

use super::ReceiverSession;
use crate::event::{Busy, Counts, Event, Progress, Queues};
use faircast_core::time::{Rate, Time};

impl ReceiverSession {
    pub(super) fn emit_progress(&mut self, now: Time) {
        let Some(stream) = &self.stream else { return };
        let bytes = self.totals.bytes - self.totals.bytes_last;
        let lost = self.totals.lost - self.totals.lost_last;
        let packets = self.totals.packets - self.totals.packets_last;
        (self.totals.bytes_last, self.totals.lost_last, self.totals.packets_last) =
            (self.totals.bytes, self.totals.lost, self.totals.packets);
        self.totals.rate = Rate::from_bps(bytes as f64 * 8.0);
        let progress = Progress {
            elapsed: now.since(stream.since).into(),
            bytes: stream.sink.gathered_bytes(),
            moved_bytes: stream.sink.gathered_bytes().saturating_sub(stream.sink.resumed_bytes().0),
            total_bytes: stream.sink.content_bytes(),
            rate: self.totals.rate,
            allowed: None,
            rtt: Some(stream.rtt.into()),
            loss: lost as f64 / (lost + packets).max(1) as f64,
            representative: None,
            receivers: 0,
            verified: 0,
            joining: None,
            layers: stream.layers.is_layered().then(|| stream.layers.subscription()),
            limited_by: None,
            window_of: None,
            relays: Vec::new(),
            busy: stream.sink.activity().map(|now| Busy::new(&self.setup.host, now)).into_iter().collect(),
            cuts: Vec::new(),
            queues: Some(Queues {
                unwritten_bytes: stream.sink.unwritten_bytes(),
                socket_bytes: self.totals.backlog.used,
                socket_size_bytes: self.totals.backlog.capacity,
            }),
            counts: Some(Box::new(Counts {
                packets: self.totals.packets,
                lost: self.totals.lost,
                repairs: self.totals.repaired,
                refused: self.totals.refused.total(),
                refused_by: self.totals.refused,
                dropped_local: self.totals.backlog.dropped,
                cuts: 0,
            })),
        };
        self.scope.received_now(&progress, now);
        self.events.push_back(Event::Progress(progress));
    }
}
