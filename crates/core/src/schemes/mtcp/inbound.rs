//! Inbound side of a node of the tree: the received packets, and the acknowledgements to the parent (paper 001, 3.1).

use super::config::{Config, Repair};
use super::scoreboard::Scoreboard;
use crate::node::{Cx, Effect};
use crate::packet::{
    Data, Echo, Flags, Hole, Holes, Layer, Order, OrderContent, ReceiverId, Report, ReportContent, Seq,
    Signal,
};
use crate::time::{Span, Time};

/// The inbound state of a receiver or an agent.
#[derive(Debug, Clone)]
pub(super) struct Inbound {
    me: ReceiverId,
    repair: Repair,
    ack_every: u8,
    ack_delay: Span,
    board: Scoreboard,
    /// The first packet that this node must have. A late joiner begins with a later packet.
    begun: u64,
    /// One more than the highest packet received; 0 before the first one.
    end: u64,
    newest_at: Time,
    /// Whether the highest packet gives a delay sample that was not reported yet.
    is_sample: bool,
    /// Number of in-order packets that wait for an acknowledgement, and the deadline for this acknowledgement.
    pending: u8,
    due: Time,
    /// The parent's group to which this node belongs.
    group: u8,
    /// Number of reports sent so far for holes that did not fit in a first report. The number selects the holes of the next such
    /// report.
    turn: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArrivalKind {
    /// A packet that was missing; `urgent` if it must be acknowledged at once.
    New { urgent: bool },
    /// A packet that had arrived before.
    Duplicate,
    /// A packet too far ahead to be stored; it counts as lost.
    NoRoom,
}

/// In sessions whose delivery repairs losses: distance from the newest packet number at which a missing packet is no longer
/// awaited.
const WAITED_FOR: u64 = 256;
/// If a packet number differs from the newest one by at least this value, another stream has started, and all state is reset.
const ANEW: u64 = 1 << 15;

impl Inbound {
    pub(super) const fn new(me: ReceiverId, config: &Config) -> Inbound {
        Inbound {
            me,
            repair: config.repair,
            ack_every: config.ack_every,
            ack_delay: config.ack_delay,
            board: Scoreboard::new(0),
            begun: 0,
            end: 0,
            newest_at: Time::ZERO,
            is_sample: false,
            pending: 0,
            due: Time::NEVER,
            group: 0,
            turn: 0,
        }
    }

    /// Returns one more than the highest packet received; 0 before the first one.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// Returns the lowest missing packet.
    pub(super) const fn base(&self) -> u64 {
        self.board.base()
    }

    /// Returns the first packet that this node must have.
    pub(super) const fn begun(&self) -> u64 {
        self.begun
    }

    pub(super) const fn deadline(&self) -> Time {
        self.due
    }

    /// Handles a received packet.
    pub(super) fn take(&mut self, data: &Data, now: Time) -> ArrivalKind {
        let seq = data.seq.0.min(LAST);
        if self.end == 0 {
            // Paper gap: a late joiner does not get packets that were sent before it joined.
            (self.board, self.begun) = (Scoreboard::new(seq), seq);
        }
        if self.repair == Repair::Session && seq >= self.board.base() + WAITED_FOR {
            self.board.advance(seq + 1 - WAITED_FOR, 0);
        }
        if self.board.has(seq) {
            return ArrivalKind::Duplicate;
        }
        let before = self.board.base();
        if !self.board.set(seq) {
            if seq - before < ANEW {
                return ArrivalKind::NoRoom;
            }
            (self.board, self.begun) = (Scoreboard::new(seq), seq);
            self.board.set(seq);
        }
        let is_newest = seq >= self.end;
        let opens_hole = is_newest && self.end > 0 && seq > self.end;
        let fills_hole = !is_newest;
        let again = data.flags.has(Flags::REPAIR);
        if is_newest {
            self.end = seq + 1;
            self.newest_at = now;
            self.is_sample = !again && (data.signal == Signal::Local) == (self.group != 0);
        }
        ArrivalKind::New { urgent: opens_hole || fills_hole || again }
    }

    /// Returns whether to acknowledge a packet at once. Otherwise it is acknowledged together with the next packet.
    pub(super) fn is_due(&mut self, news: ArrivalKind, now: Time) -> bool {
        match news {
            ArrivalKind::NoRoom => false,
            ArrivalKind::New { urgent: true } | ArrivalKind::Duplicate => true,
            ArrivalKind::New { urgent: false } => {
                self.pending += 1;
                if self.due.is_never() {
                    self.due = now + self.ack_delay;
                }
                self.pending >= self.ack_every
            }
        }
    }

    /// Requests old packets again, because descendants miss packets starting at `from`, and this agent stores only packets
    /// starting at `here`.
    pub(super) fn reach_back(&mut self, from: u64, here: u64) {
        if from >= self.board.base() || self.end.saturating_sub(from) > Scoreboard::SPAN {
            return;
        }
        self.begun = self.begun.min(from);
        let before = std::mem::replace(&mut self.board, Scoreboard::new(from));
        for seq in (here.max(from)..self.end).filter(|seq| before.has(*seq)) {
            self.board.set(seq);
        }
    }

    /// Acknowledges the received packets. In a tree, a second report lists holes that do not fit in the first report.
    pub(super) fn acknowledge(&mut self, cx: &mut Cx<'_>) {
        if self.end == 0 {
            return;
        }
        let echo = self.echo(cx.now);
        self.reported();
        let mut holes = self.board.holes(self.end);
        let first = list(&mut holes, self.end);
        let older = holes.count();
        let behind = self.behind();
        self.send(ReportContent::Acknowledged { echo, behind, holes: first, newer: 0 }, cx);
        if older > 0 && self.repair == Repair::Tree {
            let skipped = self.turn % older.div_ceil(Holes::MAX) * Holes::MAX;
            self.turn += 1;
            let newer = Holes::MAX + skipped;
            let mut rest = self.board.holes(self.end).skip(newer);
            let holes = list(&mut rest, self.end);
            let echo = Echo { hold: Span::MAX, ..echo };
            if let Ok(newer) = u8::try_from(newer) {
                self.send(ReportContent::Acknowledged { echo, behind, holes, newer }, cx);
            }
        }
    }

    /// Sends a summary of this part of the tree to the parent.
    pub(super) fn summarize(&mut self, (window, transit, low): (f64, u64, u64), cx: &mut Cx<'_>) {
        if self.end == 0 {
            return;
        }
        let echo = self.echo(cx.now);
        self.reported();
        let (behind, window) = (self.behind(), window as f32);
        let transit = u16::try_from(transit).unwrap_or(u16::MAX);
        let lag = u16::try_from(self.end.saturating_sub(low)).unwrap_or(u16::MAX);
        self.send(ReportContent::Summary { echo, behind, window, transit, lag }, cx);
    }

    /// Returns whether packets below the highest received one are missing.
    pub(super) const fn has_holes(&self) -> bool {
        self.board.base() < self.end
    }

    pub(super) fn on_deadline(&mut self, cx: &mut Cx<'_>) -> bool {
        let due = self.due <= cx.now;
        if due {
            self.due = Time::NEVER;
        }
        due
    }

    /// Handles an order of the parent. Returns whether this node must now report its state.
    pub(super) fn on_order(&mut self, order: &Order, cx: &mut Cx<'_>) -> bool {
        if order.to != self.me {
            return false;
        }
        if let OrderContent::Join { group, from } = order.content {
            let from = from.0;
            if from > LAST {
                // This node begins at its present position.
            } else if self.end == 0 {
                (self.board, self.end, self.begun) = (Scoreboard::new(from), from, from);
            } else if from < self.begun {
                // This node joined in time but lost the first packets.
                self.reach_back(from, self.begun);
            } else if from <= self.board.base() + Scoreboard::SPAN {
                self.board.advance(from, 0);
                self.end = self.end.max(self.board.base());
            }
            if group != self.group {
                (self.group, self.is_sample) = (group, false);
                cx.effects.push(Effect::Attend(group));
            }
        }
        let echo = Echo { seq: Seq(self.end.saturating_sub(1)), hold: Span::ZERO };
        self.send(ReportContent::Answered { echo, number: order.number }, cx);
        true
    }

    pub(super) fn send(&self, content: ReportContent, cx: &mut Cx<'_>) {
        cx.effects.push(Effect::Report(Report { from: self.me, layer: Layer(0), content }));
    }

    pub(super) fn echo(&self, now: Time) -> Echo {
        let hold = if self.is_sample { now.since(self.newest_at) } else { Span::MAX };
        Echo { seq: Seq(self.end.saturating_sub(1)), hold }
    }

    const fn reported(&mut self) {
        (self.pending, self.due, self.is_sample) = (0, Time::NEVER, false);
    }

    /// Returns at most [`Scoreboard::SPAN`].
    const fn behind(&self) -> u16 {
        self.end.saturating_sub(self.board.base()) as u16
    }
}

/// Maximum packet number, so that numbers stay below the limit of the wire format.
const LAST: u64 = (1 << 61) - 1;

/// Takes holes from the iterator and returns them in the form of a report.
fn list(holes: &mut impl Iterator<Item = (u64, u64)>, end: u64) -> Holes {
    let mut listed = Holes::default();
    for (place, (first, count)) in listed.0.iter_mut().zip(holes) {
        *place = Hole { back: (end - 1 - first) as u16, count: count as u16 };
    }
    listed
}
