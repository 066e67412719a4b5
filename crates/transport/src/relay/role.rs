//! The relay in its role as the receiver of its upstream session.

use super::mode::{SharedMode, UpstreamMode};
use super::{RelayMode, SessionHandle, UpstreamReassembler};
use crate::error::JoinObstacle;
use crate::event::RelayBelow;
use crate::object::Geometry;
use crate::receiver::Relaying;
use crate::receiver::symbol_sink::SymbolSink;
use faircast_core::delivery::request_scheduler::RequestScheduler;
use faircast_core::node::{Cx, Effect, Receiver};
use faircast_core::packet::{Arrival, Data, Layer, Order, ReceiverId, Seq, SessionId};
use faircast_core::schemes::Scheme;
use faircast_core::time::Time;
use faircast_wire::{Announce, DataPacket, Receipt, TreeNode, Window};

impl Relaying for SessionHandle {
    fn may_follow(&self, session: SessionId, announce: &Announce) -> bool {
        let is_ours = self.lock().announce.is_some_and(|(ours, _)| ours == session);
        let goes_round = self.process.is_own(announce.parent) || announce.hops >= super::MAX_HOPS;
        let is_wanted = is_ours || !self.process.is_taken(session);
        !goes_round && is_wanted && self.process.is_wanted(session)
    }

    fn claim(&self, session: SessionId) -> bool {
        self.process.take(session, self)
    }

    fn is_anothers(&self, session: SessionId) -> bool {
        let is_ours = self.lock().announce.is_some_and(|(ours, _)| ours == session);
        !is_ours && self.process.is_taken(session)
    }

    fn why_not(&self, scheme: Option<&Scheme>) -> Option<JoinObstacle> {
        self.with_mode(|mode| mode.why_not(scheme)).flatten()
    }

    fn note_upstream_alive(&self) {
        self.process.note_upstream_alive();
    }

    fn begin(
        &self,
        session: SessionId,
        announce: &Announce,
        geometry: Geometry,
        requests: RequestScheduler,
        now: Time,
    ) -> Box<dyn SymbolSink> {
        match self.with_mode(|mode| mode.begin(session, announce, now)) {
            Some(_) => Box::new(UpstreamMode::new(self.clone(), session, *announce, geometry)),
            None => Box::new(UpstreamReassembler::new(self.clone(), session, *announce, geometry, requests)),
        }
    }

    fn control(&self) -> Option<Box<dyn Receiver + Send>> {
        self.mode.clone().map(|mode| Box::new(mode) as Box<dyn Receiver + Send>)
    }

    fn wants_raw(&self) -> (bool, bool) {
        self.with_mode(|mode| mode.wants_raw()).unwrap_or_default()
    }

    fn on_raw(&self, seq: Option<Seq>, raw: &[u8]) {
        self.with_mode(|mode| match seq {
            Some(seq) => mode.keep(seq, raw),
            None => mode.pass_on(raw),
        });
    }

    fn on_packet(&self, packet: &DataPacket<'_>, size: u16, now: Time) {
        self.with_mode(|mode| mode.on_packet(packet, size, now));
    }

    fn tick(&self, is_rooted: bool, now: Time) -> bool {
        let tick = |mode: &mut dyn RelayMode| {
            mode.note_rooted(is_rooted);
            mode.tick(now);
            mode.limit_due(now).is_some()
        };
        self.with_mode(tick).unwrap_or(false)
    }

    fn tick_at(&self) -> Time {
        self.with_mode(|mode| mode.limit_at().min(mode.tick_at())).unwrap_or(Time::NEVER)
    }

    fn limit(&self) -> Seq {
        self.with_mode(|mode| mode.limit()).unwrap_or(Window::UNLIMITED)
    }

    fn receivers(&self) -> (u32, u32) {
        let mode = self.with_mode(|mode| mode.tally());
        let passing = self.lock();
        let (outstanding, done) = passing.confirmations.outstanding(mode.unwrap_or_else(|| passing.tally()));
        let reported = |count: u64| count.min(u64::from(u32::MAX)) as u32;
        (reported(outstanding), reported(done.saturating_sub(passing.receipts_waiting())))
    }

    fn tree(&self) -> Vec<TreeNode> {
        let nodes = |relays: &mut dyn Iterator<Item = &RelayBelow>| {
            relays.take(RelayBelow::MAX_RELAYS).map(RelayBelow::node).collect()
        };
        match self.with_mode(|mode| mode.relays()) {
            Some(relays) => nodes(&mut relays.iter()),
            None => nodes(&mut self.lock().branches.iter().flat_map(|branch| &branch.relays)),
        }
    }

    fn verified(&self, most: usize) -> Vec<ReceiverId> {
        self.lock().confirmations.due(most)
    }

    fn has_unsent(&self) -> bool {
        self.lock().confirmations.has_unsent()
    }

    fn waits_for_confirmations(&self) -> bool {
        self.lock().confirmations.waits()
    }

    fn on_confirmed(&self, confirms: bool, ids: &[ReceiverId], now: Time) {
        let known = self.lock().confirmations.on_confirmed(confirms, ids);
        if known.is_empty() {
            return;
        }
        if self.with_mode(|mode| mode.on_known(&known, now)).is_none() {
            self.lock().on_known(&known);
        }
    }

    fn on_other_parent(&self) {
        self.lock().confirmations.confirms = None;
    }

    fn has_receipts(&self) -> bool {
        self.lock().receipts.has_queued()
    }

    fn take_receipts(&self) -> Vec<Receipt> {
        self.lock().receipts.take_queued()
    }

    fn note_receipts_taken(&self, taken: bool) {
        self.lock().receipts.taken = taken;
    }

    fn note_receipts_waiting(&self, waiting: usize) {
        self.lock().receipts.waiting = waiting;
    }
}

/// Reports the answers of children, for a relay within the session.
impl Receiver for SharedMode {
    fn on_data(&mut self, data: &Data, layer: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        self.with(|mode| {
            mode.on_data(data, layer, arrival, cx.now);
            report(mode, cx);
        });
    }

    fn on_order(&mut self, order: &Order, cx: &mut Cx<'_>) {
        self.with(|mode| {
            mode.on_order(order, cx.now);
            report(mode, cx);
        });
    }

    fn deadline(&self) -> Time {
        self.with(|mode| mode.deadline())
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        self.with(|mode| {
            mode.on_deadline(cx.now);
            report(mode, cx);
        });
    }

    fn on_leave(&mut self, _: &mut Cx<'_>) {}
}

/// Passes all pending reports to the session.
fn report(mode: &mut dyn RelayMode, cx: &mut Cx<'_>) {
    while let Some(report) = mode.take_report() {
        cx.effects.push(Effect::Report(report));
    }
}
