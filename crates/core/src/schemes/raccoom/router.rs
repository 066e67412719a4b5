//! A router that aggregates the acknowledgements of all downstream receivers (paper 002, 3.2: RACCOOM).
//!
//! The router learns from forwarded data which exits lead to receivers. The thesis's routers know this from the multicast
//! forwarding cache. An exit is added when a packet is sent through it, and removed when the next packet is not sent through it.
//!
//! A source without routers would receive the acknowledgements of all receivers, so it requests acknowledgements of few
//! receivers. A router requests acknowledgements of all downstream receivers, because its aggregate needs the progress of each
//! receiver.

use crate::node::{Cx, Effect, Port, Router, RouterControl, RouterObservation, RouterSpec, To, Verdict};
use crate::packet::{Body, Layer, Mark, Packet, ReceiverId, Report, SessionId};
use crate::routers::start_up::Answers;
use crate::schemes::raccoom::{Aggregate, Aggregator};
use crate::time::Time;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// Configuration of the router, which has no parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Config;

/// State of a router.
#[derive(Debug, Default)]
pub struct Acknowledgements {
    /// Sessions, sorted by ID.
    sessions: SmallVec<[(SessionId, Session); 1]>,
    /// Ports with several neighbours behind each.
    shared: BTreeSet<Port>,
    merged: u64,
}

/// A neighbour behind a port. At a shared port the second part is the neighbour's ID.
type Child = (Port, Option<ReceiverId>);

#[derive(Debug)]
struct Session {
    children: Aggregator<Child>,
    /// Exits through which data is sent, sorted by port, each with the newest packet sent through it.
    exits: Vec<(Port, u64)>,
    /// Exits through which no data is sent any more. Feedback that still arrives through them is from departed receivers.
    former: BTreeSet<Port>,
    newest: Option<u64>,
    /// The receiver ID in all reports of this router: the lowest ID that the router has observed. So the reports about this part
    /// of the tree always have the same ID, whichever receiver is the last to receive a packet.
    speaker: Option<ReceiverId>,
    layer: Layer,
    size: u16,
    received_at: Time,
    start_up: Answers,
}

/// Maximum number of sessions. Beyond it, the session that has been silent for the longest time is removed.
const MAX_SESSIONS: usize = 1024;

impl RouterSpec for Config {
    fn router(&self) -> Box<dyn Router + Send> {
        Box::new(Acknowledgements::default())
    }
}

impl Session {
    fn new(now: Time) -> Session {
        Session {
            children: Aggregator::new(),
            exits: Vec::new(),
            former: BTreeSet::new(),
            newest: None,
            speaker: None,
            layer: Layer(0),
            size: 0,
            received_at: now,
            start_up: Answers::default(),
        }
    }

    fn report(&self, up: Aggregate) -> Option<Report> {
        Some(Report { from: self.speaker?, layer: self.layer, content: up.content() })
    }

    /// Sends an aggregate to the source at a moment when no report arrives.
    fn tell(&self, session: SessionId, up: Option<Aggregate>, cx: &mut Cx<'_>) {
        if let Some(report) = up.and_then(|up| self.report(up)).filter(|_| self.size > 0) {
            let packet = Packet { session, layer: report.layer, size: self.size, body: Body::Report(report) };
            cx.effects.push(Effect::Send { to: To::Parent, packet });
        }
    }

    /// Records that packet `seq` is sent through this exit; returns the aggregate to be forwarded, if it has changed.
    fn on_exit(&mut self, exit: Port, is_shared: bool, seq: u64, now: Time) -> Option<Aggregate> {
        let before = self.newest;
        let mut news = None;
        if before.is_none_or(|newest| seq > newest) {
            self.newest = Some(seq);
            // The packet `before` was sent through all exits that still lead to receivers.
            let is_pruned = |(_, last): &mut (Port, u64)| before.is_some_and(|before| *last < before);
            for (port, _) in self.exits.extract_if(.., is_pruned) {
                self.former.insert(port);
                news = self.children.leave_all(|(at, _)| *at == port).or(news);
            }
        }
        self.former.remove(&exit);
        match self.exits.binary_search_by_key(&exit, |(port, _)| *port) {
            Ok(place) => self.exits[place].1 = self.exits[place].1.max(seq),
            Err(place) => self.exits.insert(place, (exit, seq)),
        }
        // A neighbour behind a shared port is added at its first report.
        if !is_shared {
            self.children.join((exit, None), now);
        }
        news
    }
}

impl Acknowledgements {
    fn place(&self, id: SessionId) -> Result<usize, usize> {
        self.sessions.binary_search_by_key(&id, |(id, _)| *id)
    }

    /// Returns a session, which is created if necessary.
    fn session(&mut self, id: SessionId, now: Time) -> &mut Session {
        let place = self.place(id).unwrap_or_else(|mut place| {
            if self.sessions.len() >= MAX_SESSIONS
                && let Some((silent, _)) =
                    self.sessions.iter().enumerate().min_by_key(|(_, (_, it))| it.received_at)
            {
                self.sessions.remove(silent);
                place -= usize::from(silent < place);
            }
            self.sessions.insert(place, (id, Session::new(now)));
            place
        });
        let (_, it) = &mut self.sessions[place];
        it.received_at = now;
        it
    }
}

impl Router for Acknowledgements {
    fn on_data(&mut self, exit: Port, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let Body::Data(data) = &mut packet.body else { return Verdict::Pass };
        if packet.layer != Layer(0) {
            return Verdict::Pass;
        }
        let is_shared = self.shared.contains(&exit);
        let it = self.session(packet.session, cx.now);
        if let Mark::Target { every, .. } = &mut data.mark
            && *every > 0.0
        {
            *every = 0.0;
            it.children.thin();
        }
        let up = it.on_exit(exit, is_shared, data.seq.0, cx.now);
        it.tell(packet.session, up, cx);
        Verdict::Pass
    }

    fn on_report(&mut self, entry: Port, packet: &mut Packet, cx: &mut Cx<'_>) -> Verdict {
        let Body::Report(report) = &mut packet.body else { return Verdict::Pass };
        let Some(reported) = Aggregate::reported_by(&report.content) else {
            let it = self.session(packet.session, cx.now);
            let is_news = it.start_up.lets_through(&report.content).unwrap_or(true);
            self.merged += u64::from(!is_news);
            return if is_news { Verdict::Pass } else { Verdict::Drop };
        };
        let child = (entry, self.shared.contains(&entry).then_some(report.from));
        let it = self.session(packet.session, cx.now);
        if it.former.contains(&entry) {
            self.merged += 1;
            return Verdict::Drop;
        }
        (it.layer, it.size) = (report.layer, packet.size);
        it.speaker = Some(it.speaker.map_or(report.from, |speaker| speaker.min(report.from)));
        match it.children.on_report(child, reported, cx.now).and_then(|up| it.report(up)) {
            Some(passed) => {
                *report = passed;
                Verdict::Pass
            }
            None => {
                self.merged += 1;
                Verdict::Drop
            }
        }
    }

    fn deadline(&self) -> Time {
        self.sessions.iter().map(|(_, it)| it.children.deadline()).min().unwrap_or(Time::NEVER)
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        for (id, it) in &mut self.sessions {
            let up = it.children.on_deadline(cx.now);
            it.tell(*id, up, cx);
        }
    }

    fn control(&mut self, control: RouterControl, _now: Time) {
        match control {
            RouterControl::Forget(session) => self.sessions.retain(|(id, _)| *id != session),
            RouterControl::Shared(port) => _ = self.shared.insert(port),
            // The progress of the remaining receivers is forwarded with the next report of any of them.
            RouterControl::Left { session, port, neighbour } => {
                if let Ok(place) = self.place(session) {
                    self.sessions[place].1.children.remove((port, Some(neighbour)));
                }
            }
        }
    }

    fn observe(&self) -> RouterObservation {
        let entries = |it: &Session| it.children.len() + it.exits.len() + it.former.len();
        let entries = self.sessions.iter().map(|(_, it)| entries(it)).sum();
        RouterObservation { merged: self.merged, entries, ..RouterObservation::default() }
    }
}

#[cfg(test)]
mod tests;
