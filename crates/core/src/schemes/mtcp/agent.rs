//! A sender's agent: a receiver that aggregates the acknowledgements of its part of the tree, and repairs losses in that part
//! (paper 001, 3.1).

use super::child::Role;
use super::config::{Config, Localize, Repair};
use super::inbound::{ArrivalKind, Inbound};
use super::parent::{From, Parent, Use};
use super::receiver::congested;
use super::scoreboard::Scoreboard;
use super::store::Slot;
use crate::node::{Cx, Departure, Observation, Relay, RelaySpec, SourceControl, Stamp, Tally, Windows};
use crate::packet::{
    Arrival, Cause, Data, Flags, Layer, Mark, Order, OrderContent, ReceiverId, Report, Seq, Signal,
};
use crate::time::{Rate, Span, Time};

/// A sender's agent.
#[derive(Debug, Clone)]
pub struct Agent {
    config: Config,
    inbound: Inbound,
    parent: Parent,
    /// The latest summary sent to the parent, and the time of sending.
    reported: Reported,
    /// Number of packets refused because the store was full.
    refused: u64,
    /// Missing packets below this number are not awaited.
    given_up: u64,
}

#[derive(Debug, Clone, Copy)]
struct Reported {
    window: f64,
    transit: u64,
    low: u64,
    at: Time,
}

/// Minimum round-trip time in observations.
const SHORTEST: Span = Span::from_millis(1);

impl Agent {
    /// Creates an agent that has received nothing yet. `me` identifies the agent to its parent.
    ///
    /// In a session whose delivery repairs losses, the agent still retransmits packets to its children under their original
    /// numbers, and moves slow children. Packets that the agent itself misses never arrive under their original numbers, so no
    /// descendant waits for them.
    pub fn new(me: ReceiverId, config: &Config) -> Agent {
        let below = Config { repair: Repair::Tree, localize: Localize::Either, ..*config };
        let (below, from) = match config.repair {
            Repair::Tree => (*config, From::Parent),
            Repair::Session => (below, From::Delivery),
        };
        Agent {
            config: *config,
            inbound: Inbound::new(me, config),
            parent: Parent::new(below, Role::Agent, from),
            reported: Reported { window: f64::INFINITY, transit: 0, low: 0, at: Time::ZERO },
            refused: 0,
            given_up: 0,
        }
    }

    /// Returns the lowest packet that this node or a descendant waits for.
    fn low(&self) -> u64 {
        match self.config.repair {
            Repair::Tree => self.parent.low().min(self.inbound.base()),
            Repair::Session => self.parent.under_way().min(self.inbound.end()),
        }
    }

    /// Stops waiting, at this node and all descendants, for packets that the session's delivery repairs.
    fn give_up(&mut self, now: Time) {
        let base = self.inbound.base();
        if self.config.repair == Repair::Session && self.given_up < base {
            self.parent.give_up(self.given_up.max(base.saturating_sub(Scoreboard::SPAN))..base, now);
            self.given_up = base;
        }
    }

    /// Reports the state of this part of the tree, and the packets missing at this node.
    fn report(&mut self, cx: &mut Cx<'_>) {
        let (window, transit, low) = (self.parent.min_window(), self.parent.transit(), self.low());
        self.reported = Reported { window, transit, low, at: cx.now };
        // Missing packets are reported first: the parent needs this list if this node has fewer packets than it reported before.
        if self.inbound.has_holes() {
            self.inbound.acknowledge(cx);
        }
        self.inbound.summarize((window, transit, low), cx);
    }

    /// Returns the time of the next report, which is sent even if nothing has changed.
    fn report_at(&self) -> Time {
        let outstanding = self.low() < self.inbound.end() || self.parent.transit() != self.reported.transit;
        let outstanding = outstanding && self.inbound.end() > 0;
        if outstanding { self.reported.at + self.config.report_every } else { Time::NEVER }
    }

    /// Returns whether the state of this part of the tree must be reported to the parent now.
    fn has_news(&self, now: Time) -> bool {
        let (window, low, end) = (self.parent.min_window(), self.low(), self.inbound.end());
        if end == 0 {
            return false;
        }
        let progress = low.saturating_sub(self.reported.low);
        let changed = if window.is_finite() && self.reported.window.is_finite() {
            (window - self.reported.window).abs() > self.config.report_change * self.reported.window
        } else {
            window != self.reported.window
        };
        changed
            || progress >= u64::from(self.config.ack_every)
            || (progress > 0 && low >= end)
            || self.report_at() <= now
    }

    /// Sends the reports and packets that result from an input.
    fn settle(&mut self, cx: &mut Cx<'_>) {
        if let Some(from) = self.parent.take_wanted() {
            if self.config.repair == Repair::Session {
                // The missing packet does not arrive under its original number, so the children continue with the first packet
                // stored here.
                self.parent.skip_to(self.parent.store.first(), cx.now);
                return self.parent.pump(cx.now, cx.effects);
            }
            // Children that belonged to a stopped agent, or to this agent before its restart, may lack packets that are not
            // stored here.
            self.inbound.reach_back(from, self.parent.store.first());
            self.parent.store.reach_back(self.inbound.base());
            self.report(cx);
        } else if self.has_news(cx.now) {
            self.report(cx);
        }
        self.parent.pump(cx.now, cx.effects);
    }

    fn rate(&self) -> Rate {
        let size = u64::from(self.config.sending.packet_size);
        let round = self.parent.session_round.max(SHORTEST);
        let rate = Rate::of(size, round) * self.parent.window().size();
        self.config.sending.bounds.clamp(rate)
    }
}

impl crate::node::Receiver for Agent {
    fn on_data(&mut self, data: &Data, _: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        self.on_deadline(cx);
        if let Mark::Window { window, rtt } = data.mark
            && window.is_finite()
            && rtt.is_finite()
        {
            self.parent.session_window = f64::from(window).max(1.0);
            self.parent.session_round = Span::from_secs_f64(f64::from(rtt)).min(MAX_ROUND);
        }
        if arrival.marked {
            congested(&self.inbound, Cause::Mark, cx);
        }
        // If the store is full, the packet is dropped, and the parent of this agent detects the loss (paper 001, 3.2).
        if self.inbound.end() > 0 && data.seq.0 >= self.parent.end && !self.parent.has_room(data.seq.0) {
            self.refused += 1;
            return;
        }
        if self.inbound.end() == 0 {
            self.reported.at = cx.now;
        }
        let news = self.inbound.take(data, cx.now);
        if let ArrivalKind::New { .. } = news {
            let is_first_hand = !data.flags.has(Flags::REPAIR) && data.signal != Signal::Local;
            let sent_at = is_first_hand.then_some(data.sent_at);
            let (size, payload) = (arrival.size, data.payload);
            let slot = Slot { sent_at, here_at: cx.now, local_at: Time::NEVER, size, payload };
            self.parent.put(data.seq.0.min(self.inbound.end().saturating_sub(1)), slot);
            self.parent.wake_local(cx.now);
            self.give_up(cx.now);
        }
        if self.inbound.is_due(news, cx.now) {
            self.report(cx);
        }
        self.settle(cx);
    }

    fn on_order(&mut self, order: &Order, cx: &mut Cx<'_>) {
        let begun = self.inbound.begun();
        let is_mine = self.inbound.on_order(order, cx);
        if is_mine && order.content == OrderContent::Poll {
            self.report(cx);
        } else if is_mine {
            if self.inbound.begun() < begun {
                self.parent.store.reach_back(self.inbound.begun());
                self.parent.begin(self.inbound.begun(), cx.now);
            }
            self.parent.skip_to(self.inbound.base(), cx.now);
            self.report(cx);
        }
        self.settle(cx);
    }

    fn deadline(&self) -> Time {
        self.inbound.deadline().min(self.parent.deadline()).min(self.report_at())
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        if cx.now < self.deadline() {
            return;
        }
        if self.inbound.on_deadline(cx) {
            self.report(cx);
        }
        self.parent.on_deadline(cx.now);
        self.settle(cx);
    }

    fn on_leave(&mut self, cx: &mut Cx<'_>) {
        if self.inbound.end() > 0 {
            congested(&self.inbound, Cause::Leaving, cx);
        }
    }
}

/// Maximum duration of a round.
const MAX_ROUND: Span = Span::from_secs(60);

impl Relay for Agent {
    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        if self.parent.on_report(report, Use::Full, cx.now) {
            self.settle(cx);
        }
    }

    /// An agent sends no new packets. It forwards the packets of the source under their numbers.
    fn departure(&self, _: Layer) -> Departure {
        Departure::AfterReport
    }

    fn on_departure(&mut self, _: Layer, _: u16, _: &mut Cx<'_>) -> Stamp {
        let mark = self.parent.mark();
        Stamp { seq: Seq(0), rate: self.rate(), flags: Flags::default(), signal: Signal::None, mark }
    }

    fn control(&mut self, control: SourceControl, now: Time) {
        match control {
            SourceControl::Forget(receiver) => self.parent.forget(receiver, now),
            SourceControl::Members(children) => self.parent.expect(children),
            SourceControl::StartAgain => self.parent.start_again(now),
            SourceControl::Limits(bounds) => self.config.sending.bounds = bounds,
            SourceControl::SignOfLife => {}
        }
    }

    fn observe(&self) -> Observation {
        let round = self.parent.session_round.max(SHORTEST);
        Observation {
            rate: self.rate(),
            rtt: round,
            limiting: self.parent.limiting(),
            level: None,
            rtt_max: round,
            cuts: self.parent.window().cuts,
            tally: Tally {
                indications: self.parent.losses,
                events: self.parent.window().cuts,
                followed: self.parent.window().cuts,
            },
            starting: self.parent.window().is_in_slow_start(),
        }
    }

    fn windows(&self) -> Option<Windows> {
        Some(self.parent.windows())
    }

    fn is_missed_by(&self, child: ReceiverId, seq: Seq) -> bool {
        self.parent.place(child).is_ok_and(|place| !self.parent.children[place].board.has(seq.0))
    }
}

impl RelaySpec for Config {
    fn relay(&self, me: ReceiverId) -> Box<dyn Relay + Send> {
        Box::new(Agent::new(me, self))
    }
}

#[cfg(test)]
impl Agent {
    pub(super) fn parent(&self) -> &Parent {
        &self.parent
    }

    /// Moves a child into the local group.
    pub(super) fn move_child(&mut self, id: ReceiverId, now: Time) {
        let place = self.parent.place(id).expect("it is a child");
        self.parent.move_away(&[place], now);
    }

    pub(super) const fn refused(&self) -> u64 {
        self.refused
    }
}
