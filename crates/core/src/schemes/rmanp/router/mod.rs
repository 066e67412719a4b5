//! RMANP's active router (paper 003, 2): sequence control, rate limits at exits, a cache for local repairs, filtering of
//! congestion indications, and merging of acknowledgements.
//!
//! The router recognises a session by the mark of its data packets ([`Mark::Floor`]). It forwards packets and reports of other
//! sessions unchanged and stores no state for them. The router identifies its neighbours by ports. A port leads to receivers if
//! data is sent through it.
//!
//! **Stored packets.** The router stores up to [`Config::cache`] packets of each session, until all receivers behind its exits
//! have acknowledged them. A packet that the router sends by [`Effect::Send`] has already passed the router or was held there.
//! The packet is one of the newest [`Config::cache`] packets. A driver that stores this number of datagrams per session has all
//! datagrams that the router needs ([`Router::keeps`]).
//!
//! | module | content |
//! |---|---|
//! | `config` | the parameters, also as text |
//! | `session` | state of a session: sequence control, indications, acknowledgements |
//! | `exit` | an exit: its limit, waiting packets, requests |
//! | `store` | the stored packets |

mod config;
mod exit;
mod session;
mod store;
#[cfg(test)]
mod tests;

pub use config::{Config, Limit};

use crate::node::{Cx, Port, Router, RouterControl, RouterObservation, RouterSpec, Verdict};
use crate::packet::{Body, Cause, Layer, Mark, Packet, ReportContent, Seq, SessionId};
use crate::time::{Span, Time};
use session::Session;
use smallvec::SmallVec;

#[cfg(doc)]
use crate::node::Effect;

/// Maximum number of sessions; beyond it, the session with the longest silence is removed.
const MAX_SESSIONS: usize = 256;

/// An active router.
#[derive(Debug)]
pub struct ActiveRouter {
    config: Config,
    /// Sessions, sorted by ID.
    sessions: SmallVec<[(SessionId, Session); 1]>,
    deadline: Time,
    totals: Totals,
}

/// Counters over all sessions of the router.
#[derive(Debug, Clone, Copy, Default)]
struct Totals {
    seen: RouterObservation,
    /// Number of packets in all stores.
    stored: usize,
    /// Time of the latest change of `stored`.
    stored_at: Time,
}

impl Totals {
    /// Changes the number of stored packets from `before` to `after`.
    fn store(&mut self, before: usize, after: usize, now: Time) {
        let passed = now.since(self.stored_at).as_nanos();
        self.seen.stored_for =
            self.seen.stored_for + Span::from_nanos(passed.saturating_mul(self.stored as u64));
        self.stored_at = now.max(self.stored_at);
        self.stored = (self.stored + after).saturating_sub(before);
        self.seen.stored_most = self.seen.stored_most.max(self.stored);
    }
}

impl RouterSpec for Config {
    fn router(&self) -> Box<dyn Router + Send> {
        Box::new(ActiveRouter {
            config: *self,
            sessions: SmallVec::new(),
            deadline: Time::NEVER,
            totals: Totals::default(),
        })
    }
}

impl ActiveRouter {
    fn place(&self, id: SessionId) -> Result<usize, usize> {
        self.sessions.binary_search_by_key(&id, |(id, _)| *id)
    }

    /// Returns the index of a session, which is created if necessary.
    fn place_or_new(&mut self, id: SessionId, now: Time) -> usize {
        if let Ok(place) = self.place(id) {
            return place;
        }
        if self.sessions.len() >= MAX_SESSIONS
            && let Some(silent) = self.sessions.iter().min_by_key(|(_, it)| it.received_at).map(|(id, _)| *id)
        {
            self.forget(silent, now);
        }
        let place = self.place(id).unwrap_or_else(|place| place);
        self.sessions.insert(place, (id, Session::new(id, &self.config, now)));
        place
    }

    fn forget(&mut self, id: SessionId, now: Time) {
        if let Ok(place) = self.place(id) {
            let (_, it) = self.sessions.remove(place);
            self.totals.store(it.stored(), 0, now);
            self.look();
        }
    }

    fn look(&mut self) {
        self.deadline = self.sessions.iter().map(|(_, it)| it.deadline()).min().unwrap_or(Time::NEVER);
    }

    /// Calls `act` for a session and updates the counters and the deadline.
    fn with<T>(
        &mut self,
        place: usize,
        now: Time,
        act: impl FnOnce(&mut Session, &Config, &mut RouterObservation) -> T,
    ) -> T {
        let (_, it) = &mut self.sessions[place];
        let before = it.stored();
        let result = act(it, &self.config, &mut self.totals.seen);
        let after = it.stored();
        if before != after {
            self.totals.store(before, after, now);
        }
        self.look();
        result
    }
}

impl Router for ActiveRouter {
    fn on_data(&mut self, exit: Port, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let Body::Data(data) = &packet.body else { return Verdict::Pass };
        if packet.layer != Layer(0) || !matches!(data.mark, Mark::Floor { .. }) {
            return Verdict::Pass;
        }
        let place = self.place_or_new(packet.session, cx.now);
        self.with(place, cx.now, |it, config, seen| it.on_data(exit, packet, config, seen, cx))
    }

    fn on_report(&mut self, entry: Port, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let Body::Report(report) = packet.body else { return Verdict::Pass };
        let Ok(place) = self.place(packet.session) else { return Verdict::Pass };
        let size = packet.size;
        self.with(place, cx.now, |it, config, seen| {
            it.receives(&report, size, cx.now);
            match report.content {
                ReportContent::Selective { .. } => it.on_ack(entry, &report, config, seen, cx),
                ReportContent::Lost { first, count, .. } => {
                    it.on_request(entry, first, count, config, seen, cx)
                }
                ReportContent::Congested { cause: Cause::Leaving, .. } => {
                    it.on_leave(entry, &report, config, seen, cx)
                }
                ReportContent::Congested {
                    level,
                    cause: Cause::Loss | Cause::Accumulation | Cause::Mark,
                    ..
                } => it.on_indication(entry, packet, level, config, seen, cx),
                _ => it.on_other(&report, seen),
            }
        })
    }

    fn deadline(&self) -> Time {
        self.deadline
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        if cx.now < self.deadline {
            return;
        }
        let mut place = 0;
        while place < self.sessions.len() {
            if self.sessions[place].1.deadline() <= cx.now {
                let is_over = self.with(place, cx.now, |it, config, seen| it.on_deadline(config, seen, cx));
                if is_over {
                    let id = self.sessions[place].0;
                    self.forget(id, cx.now);
                    continue;
                }
            }
            place += 1;
        }
        self.look();
    }

    fn control(&mut self, control: RouterControl, now: Time) {
        match control {
            RouterControl::Forget(session) => self.forget(session, now),
            // Every port is treated as shared: receiver IDs distinguish the neighbours at a port.
            RouterControl::Shared(_) => {}
            RouterControl::Left { session, port, neighbour } => {
                if let Ok(place) = self.place(session) {
                    self.with(place, now, |it, config, _| it.on_gone(port, neighbour, config, now));
                }
            }
        }
    }

    fn observe(&self) -> RouterObservation {
        let entries = self.sessions.iter().map(|(_, it)| it.entries()).sum();
        RouterObservation {
            held: self.totals.stored,
            stored: self.totals.stored,
            entries,
            ..self.totals.seen
        }
    }

    fn keeps(&self) -> u16 {
        self.config.cache
    }

    fn holds(&self, session: SessionId, exit: Port, seq: Seq) -> bool {
        self.place(session).is_ok_and(|place| self.sessions[place].1.holds(exit, seq.0))
    }
}
