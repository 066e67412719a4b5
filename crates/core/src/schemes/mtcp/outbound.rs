//! Packets of a node to its children: orders, queries, and repairs (paper 001, 3.1).

use super::child::Group;
use super::config::Repair;
use super::parent::Parent;
use crate::node::{Effect, Effects, To};
use crate::packet::{
    Body, Data, Echo, Flags, Layer, Mark, Order, OrderContent, Packet, ReceiverId, Seq, SessionId, Signal,
};
use crate::time::Time;

/// Bytes of an order on the link.
const ORDER_SIZE: u16 = 40;
/// Number of initial queries at the shorter interval.
const FIRST_QUESTIONS: u32 = 4;

impl Parent {
    /// Sends the packets that are allowed now, a few per call.
    pub(super) fn pump(&mut self, now: Time, effects: &mut Effects) {
        if self.config.repair == Repair::Session {
            return;
        }
        self.pumped_at = now;
        self.tell(now, effects);
        self.ask(now, effects);
        for group in Group::BOTH {
            self.repair(group, now, effects);
        }
        self.forward(now, effects);
    }

    /// Returns the mark of packets that are sent to all children.
    pub(super) fn mark(&self) -> Mark {
        Mark::Window { window: self.session_window as f32, rtt: self.session_round.as_secs_f64() as f32 }
    }

    fn send(&self, to: To, layer: u8, size: u16, body: Body, effects: &mut Effects) {
        // The driver sets the session ID.
        let packet = Packet { session: SessionId(0), layer: Layer(layer), size, body };
        effects.push(Effect::Send { to, packet });
    }

    pub(super) fn send_data(
        &self,
        to: To,
        group: Group,
        seq: u64,
        flags: Flags,
        now: Time,
        effects: &mut Effects,
    ) {
        let Some(slot) = self.store.get(seq) else { return };
        let signal = if group == Group::Local { Signal::Local } else { Signal::None };
        let (size, payload, mark) = (slot.size, slot.payload, self.mark());
        let data = Data { seq: Seq(seq), sent_at: now, rate: 0.0, payload, flags, signal, mark };
        self.send(to, group.number(), size, Body::Data(data), effects);
    }

    /// Sends an order; returns its number.
    fn order(&mut self, to: ReceiverId, content: OrderContent, effects: &mut Effects) -> u32 {
        self.orders = self.orders.wrapping_add(1);
        let order = Order { to, number: self.orders, content };
        self.send(To::Child(to), 0, ORDER_SIZE, Body::Order(order), effects);
        self.orders
    }

    /// Orders a child to join its group, and repeats the order until the child confirms it.
    fn tell(&mut self, now: Time, effects: &mut Effects) {
        let Some(place) = self.children.first(|it| it.tell_at <= now) else { return };
        let child = &self.children[place];
        let (id, group, from) =
            (child.id, child.group.number(), Seq(child.begins.unwrap_or(child.board.base())));
        let again = child.round_trip.timeout(&self.config);
        let number = self.order(id, OrderContent::Join { group, from }, effects);
        let mut child = self.children.edit(place);
        (child.tell_at, child.reported) = (now + again, Some((number, now)));
    }

    /// Queries a child's round-trip time, or an agent's summary. An agent does not repeat a summary after which no packets are
    /// outstanding. If such a summary is lost, the window remains closed. Only a query opens the window again, as a probe opens
    /// TCP's window (RFC 9293, 3.8.6.1).
    fn ask(&mut self, now: Time, effects: &mut Effects) {
        let Some(place) = self.children.first(|it| it.ask_at <= now) else { return };
        let child = &self.children[place];
        let known = child.round_trip.samples() >= FIRST_QUESTIONS;
        let id = child.id;
        let next = now + if known { self.config.poll_every } else { self.config.poll_first };
        let number = self.order(id, OrderContent::Poll, effects);
        let overdue_at = self.overdue_at(place, now);
        let mut child = self.children.edit(place);
        (child.ask_at, child.asked, child.overdue_at) = (next, Some((number, now)), overdue_at);
    }

    /// Returns the time at which a child's next report is overdue: one report interval and one timeout after `now`, the time of
    /// the latest report or query.
    pub(super) fn overdue_at(&self, place: usize, now: Time) -> Time {
        let child = &self.children[place];
        if !child.has_outstanding_below() {
            return Time::NEVER;
        }
        now + self.config.report_every + child.round_trip.timeout(&self.config)
    }

    /// Handles a child's answer to an order.
    pub(super) fn answered(&mut self, from: ReceiverId, echo: Echo, number: u32, now: Time) {
        let Ok(place) = self.place(from) else { return };
        let mut child = self.children.edit(place);
        child.receive(self.end, now);
        if child.reported.is_some_and(|(reported, _)| reported == number) {
            (child.reported, child.is_there, child.tell_at, child.begins) = (None, true, Time::NEVER, None);
            drop(child);
            self.wake_local(now);
            child = self.children.edit(place);
        }
        if let Some((asked, at)) = child.asked
            && asked == number
            && echo.hold <= now.since(at)
        {
            child.asked = None;
            child.on_round_trip(now.since(at).saturating_sub(echo.hold), now);
        }
    }

    /// Repeats a packet that children miss, when the retransmission window allows it.
    fn repair(&mut self, group: Group, now: Time, effects: &mut Effects) {
        let round = self.round_trip(group);
        let it = &self.groups[group as usize];
        let Some(seq) = it.repairs.next(now) else { return };
        let first = self.of(group).find(|child| child.wants(seq)).map(|child| child.id);
        let wanting = self.of(group).filter(|child| child.wants(seq)).take(2).count();
        let is_called = self.called(group) == Some(seq);
        let to = match first {
            Some(id) if wanting == 1 && !is_called => Some(To::Child(id)),
            None if !is_called => None,
            _ => Some(To::Group),
        };
        let Some(to) = to.filter(|_| self.store.get(seq).is_some()) else {
            return self.groups[group as usize].repairs.give_up(seq);
        };
        self.send_data(to, group, seq, Flags::REPAIR, now, effects);
        self.groups[group as usize].repairs.on_sent(seq, round, now);
    }
}
