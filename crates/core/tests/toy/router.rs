//! A router for tests that does everything that routers may do. It holds data for some ports, and sets a flag in the data before
//! it sends it later. It forwards one report per interval; of the other reports it later sends the latest. It removes the state
//! of sessions that have ended.

use faircast_core::node::{
    Cx, Effect, Port, Router, RouterControl, RouterObservation, RouterSpec, To, Verdict,
};
use faircast_core::packet::{Body, Flags, Packet, SessionId};
use faircast_core::time::{Span, Time};
use std::collections::{BTreeMap, VecDeque};

#[derive(Debug, Clone, Copy)]
pub struct ToyRouter {
    /// Delay of packets through ports with an odd number.
    pub delay: Span,
    /// Minimum time between forwarded reports of a session.
    pub spacing: Span,
}

#[derive(Debug)]
struct Toy {
    spec: ToyRouter,
    waiting: VecDeque<(Time, Port, Packet)>,
    /// For each session: the earliest time of the next forwarded report, and the latest report that was held until this time.
    sessions: BTreeMap<SessionId, (Time, Option<Packet>)>,
    merged: u64,
}

const MAX: usize = 10_000;

impl RouterSpec for ToyRouter {
    fn router(&self) -> Box<dyn Router + Send> {
        Box::new(Toy { spec: *self, waiting: VecDeque::new(), sessions: BTreeMap::new(), merged: 0 })
    }
}

impl Router for Toy {
    fn on_data(&mut self, exit: Port, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        if exit.0.is_multiple_of(2) {
            return Verdict::Pass;
        }
        if self.waiting.len() == MAX {
            return Verdict::Drop;
        }
        if let Body::Data(data) = &mut packet.body {
            data.flags = data.flags.with(Flags::GAP_SEEN);
        }
        self.waiting.push_back((cx.now + self.spec.delay, exit, *packet));
        Verdict::Hold
    }

    fn on_report(&mut self, _entry: Port, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let (next, kept) = self.sessions.entry(packet.session).or_insert((Time::ZERO, None));
        if cx.now >= *next {
            (*next, *kept) = (cx.now + self.spec.spacing, None);
            return Verdict::Pass;
        }
        self.merged += u64::from(kept.is_some());
        *kept = Some(*packet);
        Verdict::Hold
    }

    fn deadline(&self) -> Time {
        let data = self.waiting.front().map(|(at, ..)| *at);
        let reports = self.sessions.values().filter_map(|(at, kept)| kept.map(|_| *at)).min();
        data.into_iter().chain(reports).min().unwrap_or(Time::NEVER)
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        while let Some(&(at, port, packet)) = self.waiting.front()
            && at <= cx.now
        {
            self.waiting.pop_front();
            cx.effects.push(Effect::Send { to: To::Exit(port), packet });
        }
        for (next, kept) in self.sessions.values_mut() {
            if *next <= cx.now
                && let Some(packet) = kept.take()
            {
                *next = cx.now + self.spec.spacing;
                cx.effects.push(Effect::Send { to: To::Parent, packet });
            }
        }
    }

    fn control(&mut self, control: RouterControl, _now: Time) {
        let RouterControl::Forget(session) = control else { return };
        self.waiting.retain(|(_, _, packet)| packet.session != session);
        self.sessions.remove(&session);
    }

    fn observe(&self) -> RouterObservation {
        let reports = self.sessions.values().filter(|(_, kept)| kept.is_some()).count();
        let entries = self.waiting.len() + self.sessions.len();
        RouterObservation {
            merged: self.merged,
            held: self.waiting.len() + reports,
            entries,
            ..RouterObservation::default()
        }
    }
}
