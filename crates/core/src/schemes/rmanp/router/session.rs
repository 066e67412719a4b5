//! State of a session at an active router: sequence control, congestion indications and acknowledgements (paper 003, 2).

use super::config::{Config, Limit};
use super::exit::{Exit, Outcome};
use super::store::Store;
use crate::node::{Cx, Effect, Port, RouterObservation, To, Verdict};
use crate::packet::{
    Body, Cause, Data, Echo, Flags, Layer, Mark, Packet, ReceiverId, Report, ReportContent, Seq, SessionId,
    ShortId,
};
use crate::routers::start_up::Answers;
use crate::schemes::rmanp::{Exclusion, Fusion, Overdue, RETRY, Requests, acknowledged, newest_of};
use crate::time::{Rate, Span, Time};
use smallvec::SmallVec;

/// State of a session that passes the router.
#[derive(Debug)]
pub(super) struct Session {
    id: SessionId,
    /// One more than the number of the newest arrived packet; `None` before the first packet.
    expected: Option<u64>,
    /// The newest packet, if a reported gap precedes it.
    gap_at: Option<u64>,
    store: Store,
    /// Missing packets that are requested from upstream.
    lacking: Requests,
    /// The latest arrived packet, if this router has requested it.
    requested: Option<u64>,
    /// Exits, sorted by port.
    exits: Vec<Exit>,
    /// Ports of the exits. A search needs less memory here than in `exits`.
    ports: SmallVec<[Port; 16]>,
    /// Common progress of the receivers behind each port.
    acks: Fusion<Port>,
    /// Number below which all receivers have all packets. `acked_at` is the time of the latest acknowledgement sent upstream.
    acked: u64,
    acked_at: Time,
    /// Deadline of a pending acknowledgement.
    ack_at: Time,
    /// Lowest rate indicated upstream; acknowledgements have raised it since then.
    indicated: Option<Rate>,
    /// Whether a later packet has shown that the source reduced its rate to about the indicated rate.
    has_come_down: bool,
    /// The receiver behind this router in whose name the router reports.
    speaker: Option<ReceiverId>,
    least: Rate,
    /// Interval of feedback that the upstream node expects from each receiver.
    every: Span,
    report_size: u16,
    start_up: Answers,
    pub received_at: Time,
    look_at: Time,
    /// Number of exits with waiting packets.
    busy: usize,
}

/// Interval of the check for silent children.
const LOOK: Span = Span::from_secs(1);
/// Maximum number of children per exit; beyond it, the child with the longest silence is removed.
const MAX_CHILDREN: usize = 4096;
/// Maximum number of exits with state.
const MAX_EXITS: usize = 4096;
/// Maximum number of ranges that one call requests.
const RANGES: usize = 2;
/// Fraction of `RETRY` during which a packet is not repeated again through the same exit.
const PART_OF_RETRY: f64 = 0.5;
/// Number of acknowledgements that the router sends within the silence timeout if there is no progress.
const SIGNS_OF_LIFE: u64 = 3;
/// Duration for which packets name an excluded receiver, in case some of them are lost.
const EXCLUDED_FOR: Span = Span::from_secs(10);
const REPORT_SIZE: u16 = 40;
const MAX_TURN: f64 = 60.0;
/// Minimum time between acknowledgements if feedback is limited.
const MIN_TURN: Span = Span::from_millis(10);
/// Delay of feedback that no packet or report triggers.
const SOON: Span = Span::from_millis(1);

impl Session {
    pub(super) fn new(id: SessionId, config: &Config, now: Time) -> Session {
        Session {
            id,
            expected: None,
            gap_at: None,
            store: Store::new(config.cache.into()),
            lacking: Requests::default(),
            requested: None,
            exits: Vec::new(),
            ports: SmallVec::new(),
            acks: Fusion::new(),
            acked: 0,
            acked_at: now,
            ack_at: Time::NEVER,
            indicated: None,
            has_come_down: false,
            speaker: None,
            least: Rate::ZERO,
            every: Span::ZERO,
            report_size: REPORT_SIZE,
            start_up: Answers::default(),
            received_at: now,
            look_at: now + LOOK,
            busy: 0,
        }
    }

    pub(super) const fn stored(&self) -> usize {
        self.store.len()
    }

    pub(super) fn entries(&self) -> usize {
        1 + self.stored() + self.lacking.len() + self.exits.iter().map(Exit::entries).sum::<usize>()
    }

    pub(super) fn deadline(&self) -> Time {
        let own = self.look_at.min(self.ack_at).min(self.lacking.due());
        if self.busy == 0 {
            return own;
        }
        self.exits.iter().map(Exit::due).min().unwrap_or(Time::NEVER).min(own)
    }

    /// Returns whether this packet waits at an exit and is still stored.
    pub(super) fn holds(&self, port: Port, seq: u64) -> bool {
        let waits = self.place(port).is_ok_and(|place| self.exits[place].holds(seq));
        waits && self.store.get(seq).is_some()
    }

    fn place(&self, port: Port) -> Result<usize, usize> {
        self.ports.binary_search(&port)
    }

    /// Calls `act` for an exit and updates the number of busy exits.
    fn at_exit<T>(&mut self, place: usize, act: impl FnOnce(&mut Exit, &mut Store) -> T) -> T {
        let exit = &mut self.exits[place];
        self.busy -= usize::from(!exit.due().is_never());
        let result = act(exit, &mut self.store);
        self.busy += usize::from(!self.exits[place].due().is_never());
        result
    }

    /// Records the arrival of a report.
    pub(super) fn receives(&mut self, report: &Report, size: u16, now: Time) {
        (self.report_size, self.received_at) = (size, now);
        if !matches!(report.content, ReportContent::Congested { cause: Cause::Leaving, .. }) {
            self.speaker.get_or_insert(report.from);
        }
    }

    // Data packets.

    /// Processes a packet before it is sent through an exit.
    pub(super) fn on_data(
        &mut self,
        port: Port,
        packet: &mut Packet,
        config: &Config,
        seen: &mut RouterObservation,
        cx: &mut Cx<'_>,
    ) -> Verdict {
        let Body::Data(data) = packet.body else { return Verdict::Pass };
        let (seq, now) = (data.seq.0, cx.now);
        self.received_at = now;
        self.see_exclusion(packet, now);
        if self.expected.is_none_or(|expected| seq >= expected) {
            self.on_new(seq, packet, config, seen, cx);
        } else {
            self.on_old(seq, packet, config, seen, cx);
        }
        let is_requested = self.requested == Some(seq);
        let place = match self.place(port) {
            Ok(place) => place,
            Err(_) if self.exits.len() >= MAX_EXITS => return Verdict::Pass,
            Err(place) => {
                self.exits.insert(place, Exit::new(port, seq, now));
                self.ports.insert(place, port);
                // The exit acknowledges no packets until all receivers behind it have had time to report.
                self.acks.set(port, 0, now);
                place
            }
        };
        let gap = self.gap_at == Some(seq);
        let outcome = self.at_exit(place, |exit, _| {
            exit.data_at = now;
            if seq >= exit.next {
                exit.on_new(packet, gap, config, now)
            } else {
                Outcome::Settled(exit.on_late(packet, is_requested, now))
            }
        });
        match outcome {
            Outcome::Settled(verdict) => verdict,
            Outcome::Overflow => {
                seen.overflows += 1;
                self.indicate(data.rate, Cause::Accumulation, seq, config, seen, cx);
                Verdict::Drop
            }
        }
    }

    /// Processes the ID of an excluded receiver. If this router reports in its name, upstream excludes all receivers behind this
    /// router: the link to this router cannot carry the least rate (paper 003, 2).
    fn see_exclusion(&mut self, packet: &Packet, now: Time) {
        let Body::Data(Data { mark: Mark::Floor { excluded: Some(id), .. }, .. }) = packet.body else {
            return;
        };
        if id == ShortId::ALL || self.speaker == Some(id.into()) {
            for exit in &mut self.exits {
                exit.excluded = Some((ShortId::ALL, now + EXCLUDED_FOR));
            }
        }
    }

    /// Processes the first copy of a packet that is newer than all earlier ones.
    fn on_new(
        &mut self,
        seq: u64,
        packet: &Packet,
        config: &Config,
        seen: &mut RouterObservation,
        cx: &mut Cx<'_>,
    ) {
        let Body::Data(data) = packet.body else { return };
        let expected = self.expected.replace(seq.saturating_add(1)).unwrap_or(seq);
        if let Mark::Floor { least, every, .. } = data.mark {
            self.least = Rate::from_bps(if least.is_finite() { f64::from(least.max(0.0)) } else { 0.0 });
            let every = if every.is_finite() { f64::from(every).clamp(0.0, MAX_TURN) } else { 0.0 };
            self.every = Span::from_secs_f64(every);
        }
        self.see_rate(f64::from(data.rate), config);
        let gap = seq > expected;
        self.gap_at = gap.then_some(seq);
        self.store.put(seq, *packet, cx.now);
        if gap {
            self.lacking.note(expected..seq, true, config.cache.into());
            self.lacking.declare(u32::MAX, cx.now);
            if !data.flags.has(Flags::GAP_SEEN) {
                self.indicate(data.rate, Cause::Loss, seq, config, seen, cx);
            }
            self.ask(config, cx);
        }
    }

    /// Processes a copy of a packet that is not newer than all earlier ones.
    fn on_old(
        &mut self,
        seq: u64,
        packet: &Packet,
        config: &Config,
        seen: &mut RouterObservation,
        cx: &mut Cx<'_>,
    ) {
        let Body::Data(data) = packet.body else { return };
        if self.lacking.fill(seq, cx.now) {
            self.requested = Some(seq);
        } else if self.requested != Some(seq) || !data.flags.has(Flags::REPAIR) {
            self.requested = None;
        }
        if self.store.get(seq).is_none() {
            self.store.put(seq, *packet, cx.now);
        }
        if data.flags.has(Flags::REPAIR) && seq < self.acked && self.acked_at < cx.now {
            // The upstream node has not received the acknowledgement of this packet.
            self.ack_at = Time::ZERO;
            self.acknowledge(config, seen, cx);
        }
    }

    /// Forgets the indicated rate when the source's rate, after a reduction towards the indicated rate, has grown back to its
    /// former value.
    // Paper gap: the indicated rate ages only with acknowledgements (2.4). If the source grows faster than a router assumes, the
    // router would filter all further indications.
    fn see_rate(&mut self, sent: f64, config: &Config) {
        let Some(reported) = self.indicated.map(Rate::bps) else { return };
        let before = reported / config.absolute;
        if sent < f64::midpoint(reported, before) {
            self.has_come_down = true;
        } else if self.has_come_down && sent >= before {
            self.indicated = None;
        }
    }

    /// Sends an indication of congestion that this router itself has detected.
    fn indicate(
        &mut self,
        sent_rate: f32,
        cause: Cause,
        seq: u64,
        config: &Config,
        seen: &mut RouterObservation,
        cx: &mut Cx<'_>,
    ) {
        let rate = Rate::from_bps(f64::from(sent_rate) * config.absolute);
        if !sent_rate.is_finite() || sent_rate <= 0.0 {
            return;
        }
        // Upstream counts the indications below the least rate, so all of them are sent.
        let is_counted = cause == Cause::Loss && rate.bps() < self.least.bps();
        if !self.is_news(rate, seen) && !is_counted {
            return;
        }
        let echo = Echo { seq: Seq(seq), hold: Span::MAX };
        let (level, mean) = (rate.bps() as f32, sent_rate);
        self.send_up(ReportContent::Congested { echo, level, mean, cause }, cx);
    }

    /// Returns whether `rate` is below the rate that was last indicated upstream. Only an indication of a lower rate is forwarded
    /// (paper 003, 2.3).
    fn is_news(&mut self, rate: Rate, seen: &mut RouterObservation) -> bool {
        let is_news =
            self.speaker.is_some() && self.indicated.is_none_or(|reported| rate.bps() < reported.bps());
        if is_news {
            (self.indicated, self.has_come_down) = (Some(rate), false);
            seen.indications += 1;
        } else {
            seen.filtered += 1;
        }
        is_news
    }

    fn send_up(&self, content: ReportContent, cx: &mut Cx<'_>) {
        let Some(from) = self.speaker else { return };
        let body = Body::Report(Report { from, layer: Layer(0), content });
        let packet = Packet { session: self.id, layer: Layer(0), size: self.report_size, body };
        cx.effects.push(Effect::Send { to: To::Parent, packet });
    }

    /// Sends pending requests upstream.
    fn ask(&mut self, config: &Config, cx: &mut Cx<'_>) {
        if self.speaker.is_none() {
            return;
        }
        let mut due = [None; RANGES];
        let mut count = 0;
        let requests = config.requests;
        self.lacking.take_due(cx.now, RANGES, requests, Overdue::GiveUp, |range| {
            due[count] = Some((range.start, range.end));
            count += 1;
        });
        let echo = Echo { seq: Seq(self.expected.unwrap_or(0).saturating_sub(1)), hold: Span::MAX };
        for (start, end) in due.into_iter().flatten() {
            let count = (end - start).min(u16::MAX.into()) as u16;
            self.send_up(ReportContent::Lost { echo, first: Seq(start), count, loss: 0.0 }, cx);
        }
    }

    // Reports.

    /// Handles an acknowledgement from behind an exit.
    pub(super) fn on_ack(
        &mut self,
        entry: Port,
        report: &Report,
        config: &Config,
        seen: &mut RouterObservation,
        cx: &mut Cx<'_>,
    ) -> Verdict {
        let (Ok(place), Some(acked)) = (self.place(entry), newest_of(&report.content)) else {
            return Verdict::Pass;
        };
        if self.expected.is_none_or(|expected| acked > expected) {
            return Verdict::Pass; // acknowledges packets that this router has not received
        }
        let now = cx.now;
        let exit = &mut self.exits[place];
        if exit.has_excluded(report.from, now) {
            seen.merged += 1;
            return Verdict::Drop;
        }
        let before = exit.children.least();
        if !exit.children.knows(report.from) && exit.children.len() >= MAX_CHILDREN {
            exit.children.forget_oldest();
        }
        exit.children.on_ack(report.from, acked, now);
        exit.is_pruned = false;
        let least = exit.children.least().unwrap_or(acked);
        if let Some(before) = before.filter(|before| least > *before) {
            if let Some(slot) = self.store.get(least - 1).filter(|slot| slot.repaired.is_none()) {
                exit.on_sample(now.since(slot.came_at));
            }
            exit.grow(self.least * (config.increase * (least - before) as f64));
        }
        let is_relaxed = exit.relax(now);
        let least = if now.since(exit.since) < config.settle { 0 } else { least };
        self.acks.set(entry, least, now);
        if is_relaxed {
            self.end_episode();
        }
        self.on_progress(config);
        self.acknowledge(config, seen, cx);
        // The upstream node receives the merged acknowledgements of this router instead.
        Verdict::Drop
    }

    /// Forgets the indicated rate if no exit has a limit, because the next indication then belongs to another congestion event.
    fn end_episode(&mut self) {
        if !self.exits.iter().any(Exit::is_limited) {
            self.indicated = None;
        }
    }

    /// Updates the common progress and drops packets that all receivers have.
    fn on_progress(&mut self, config: &Config) {
        let Some(least) = self.acks.least().filter(|least| *least > self.acked) else { return };
        if let Some(reported) = &mut self.indicated
            && self.acked > 0
        {
            // The indicated rate is old, so it is raised by the acknowledgements received since the indication (paper 003, 2.4).
            *reported = *reported + self.least * (config.increase * (least - self.acked) as f64);
        }
        self.acked = least;
        self.ack_at = Time::ZERO;
        self.store.forget_below(least);
    }

    /// Sends one acknowledgement for all receivers, if there is progress or the upstream node needs a sign of life.
    fn acknowledge(&mut self, config: &Config, seen: &mut RouterObservation, cx: &mut Cx<'_>) {
        let now = cx.now;
        let is_news = self.ack_at == Time::ZERO;
        let is_silent = now.since(self.acked_at) >= config.silence / SIGNS_OF_LIFE;
        if self.acked == 0 || !(is_news || is_silent) {
            seen.merged += 1;
            return;
        }
        let receivers = self.exits.iter().map(|exit| exit.children.len()).sum::<usize>().max(1);
        // The router may send as many acknowledgements as all receivers behind it would send together.
        let turn = match self.every {
            Span::ZERO => Span::ZERO,
            every => (every / receivers as u64).max(MIN_TURN),
        };
        let at = self.acked_at + turn;
        if is_news && now < at {
            self.ack_at = at;
            seen.merged += 1;
            return;
        }
        (self.ack_at, self.acked_at) = (Time::NEVER, now);
        self.send_up(acknowledged(self.acked, Span::ZERO), cx);
    }

    /// Handles a request from behind an exit.
    pub(super) fn on_request(
        &mut self,
        entry: Port,
        first: Seq,
        count: u16,
        config: &Config,
        seen: &mut RouterObservation,
        cx: &mut Cx<'_>,
    ) -> Verdict {
        let (Ok(place), Some(expected)) = (self.place(entry), self.expected) else { return Verdict::Pass };
        let now = cx.now;
        let end = first.0.saturating_add(count.into()).min(expected);
        let begin = first.0.max(end.saturating_sub(config.cache.into()));
        let lately = RETRY.scaled(PART_OF_RETRY);
        for seq in begin..end {
            let Some(slot) = self.store.get(seq) else {
                self.exits[place].wants(seq);
                self.lacking.ask(seq, config.cache.into(), now);
                continue;
            };
            let was = slot.repaired.filter(|(port, _)| *port == entry);
            if was.is_none_or(|(_, at)| now.since(at) >= lately) {
                seen.repairs += u64::from(self.at_exit(place, |exit, _| exit.repeat(seq)));
            }
        }
        self.at_exit(place, |exit, store| exit.pump(store, cx));
        self.ask(config, cx);
        seen.merged += 1;
        Verdict::Drop
    }

    /// Processes the leave of a receiver.
    pub(super) fn on_leave(
        &mut self,
        entry: Port,
        report: &Report,
        config: &Config,
        seen: &mut RouterObservation,
        cx: &mut Cx<'_>,
    ) -> Verdict {
        if let Ok(place) = self.place(entry) {
            self.lose(place, report.from, cx.now);
            self.on_progress(config);
            if self.ack_at == Time::ZERO {
                self.acknowledge(config, seen, cx);
            }
        }
        Verdict::Pass
    }

    /// Processes the unannounced departure of a neighbour. The progress of the remaining receivers is sent after `SOON`.
    pub(super) fn on_gone(&mut self, port: Port, who: ReceiverId, config: &Config, now: Time) {
        if let Ok(place) = self.place(port) {
            self.lose(place, who, now);
            self.on_progress(config);
            if self.ack_at == Time::ZERO {
                self.ack_at = now + SOON;
            }
        }
    }

    /// Processes a report of another kind. Answers to a start-up round pass only if they are useful upstream.
    pub(super) fn on_other(&mut self, report: &Report, seen: &mut RouterObservation) -> Verdict {
        if self.start_up.lets_through(&report.content).unwrap_or(true) {
            return Verdict::Pass;
        }
        seen.merged += 1;
        Verdict::Drop
    }

    /// Removes a receiver behind an exit.
    fn lose(&mut self, place: usize, who: ReceiverId, now: Time) {
        let exit = &mut self.exits[place];
        exit.children.leave(who);
        match exit.children.least() {
            Some(least) => self.acks.set(exit.port, least, now),
            None => {
                exit.is_pruned = true;
                self.acks.leave(exit.port);
            }
        }
        if self.speaker == Some(who) {
            self.speaker = self.exits.iter().find_map(|exit| exit.children.any());
        }
    }

    /// Processes a congestion indication from behind an exit (paper 003, 2.3).
    pub(super) fn on_indication(
        &mut self,
        entry: Port,
        packet: &mut Packet,
        level: f32,
        config: &Config,
        seen: &mut RouterObservation,
        cx: &mut Cx<'_>,
    ) -> Verdict {
        let Ok(place) = self.place(entry) else { return Verdict::Pass };
        let Body::Report(report) = &mut packet.body else { return Verdict::Pass };
        if !level.is_finite() || level < 0.0 {
            seen.merged += 1;
            return Verdict::Drop;
        }
        if self.exits[place].has_excluded(report.from, cx.now) {
            seen.merged += 1;
            return Verdict::Drop;
        }
        let rate = Rate::from_bps(f64::from(level));
        let exit = &mut self.exits[place];
        let rule = Exclusion {
            count: config.exclude,
            within: config.exclude_within,
            least: self.least.bps() / (f64::from(exit.size) * 8.0),
        };
        let acked = exit.children.acked(report.from).unwrap_or(0);
        // Only a loss on the link to the next node counts, not a loss behind another router. If this router itself misses
        // packets, it cannot locate the loss.
        let is_loss = matches!(report.content, ReportContent::Congested { cause: Cause::Loss, .. });
        if config.exclude > 0
            && is_loss
            && self.lacking.len() == 0
            && rate.bps() < self.least.bps()
            && exit.low.on_low(report.from, acked, rule, cx.now)
        {
            seen.exclusions += 1;
            self.exits[place].excluded = ShortId::of(report.from).map(|id| (id, cx.now + EXCLUDED_FOR));
            let who = report.from;
            self.lose_excluded(place, who, config, seen, cx);
            return Verdict::Drop;
        }
        let limit = Rate::from_bps(rate.bps().max(self.least.bps()));
        let limited = match config.limit {
            Limit::All => 0..self.exits.len(),
            Limit::One => place..place + 1,
        };
        for place in limited {
            self.at_exit(place, |exit, _| exit.restrict(limit, cx.now));
        }
        let further = rate * config.relative;
        if !self.is_news(further, seen) {
            seen.merged += 1;
            return Verdict::Drop;
        }
        if let ReportContent::Congested { level, cause, .. } = &mut report.content {
            // Upstream nodes must treat the losses as packets that wait at this router, not as losses on the path to this router.
            (*level, *cause) = (further.bps() as f32, Cause::Accumulation);
        }
        report.from = self.speaker.unwrap_or(report.from);
        Verdict::Pass
    }

    /// Removes an excluded receiver. The next packets name it, and the exit is pruned after the receiver has left.
    fn lose_excluded(
        &mut self,
        place: usize,
        who: ReceiverId,
        config: &Config,
        seen: &mut RouterObservation,
        cx: &mut Cx<'_>,
    ) {
        self.lose(place, who, cx.now);
        self.exits[place].is_pruned = false;
        self.on_progress(config);
        if self.ack_at == Time::ZERO {
            self.acknowledge(config, seen, cx);
        }
    }

    // Deadlines.

    /// Processes expired deadlines. Returns whether the session has ended.
    pub(super) fn on_deadline(
        &mut self,
        config: &Config,
        seen: &mut RouterObservation,
        cx: &mut Cx<'_>,
    ) -> bool {
        let now = cx.now;
        for place in 0..self.exits.len() {
            if self.exits[place].due() <= now {
                self.at_exit(place, |exit, store| exit.pump(store, cx));
                if self.exits[place].relax(now) {
                    self.end_episode();
                }
            }
        }
        if self.lacking.due() <= now {
            self.ask(config, cx);
            if self.speaker.is_none() {
                self.lacking = Requests::default();
            }
        }
        if self.ack_at <= now {
            self.ack_at = Time::ZERO;
            self.acknowledge(config, seen, cx);
            if self.ack_at <= now {
                self.ack_at = Time::NEVER;
            }
        }
        if self.look_at <= now {
            self.look_around(config, seen, cx);
        }
        now.since(self.received_at) >= config.forget
    }

    /// Repeats packets with late acknowledgements, and removes silent children, while stored packets wait for acknowledgements.
    fn look_around(&mut self, config: &Config, seen: &mut RouterObservation, cx: &mut Cx<'_>) {
        let now = cx.now;
        if self.stored() == 0 {
            self.look_at = (self.received_at + config.forget).max(now + LOOK);
            return;
        }
        self.look_at = now + LOOK;
        for place in 0..self.exits.len() {
            self.at_exit(place, |exit, store| exit.repeat_late(store, cx));
        }
        let gone = if now > Time::ZERO + config.forget { now - config.forget } else { Time::ZERO };
        let mut any = false;
        for exit in &mut self.exits {
            let silent = exit.departures.silent_since(config.silence, now);
            if exit.children.expire(silent) {
                any = true;
                exit.children.least().into_iter().for_each(|least| self.acks.set(exit.port, least, now));
            }
            let is_unused = exit.children.is_empty() && exit.since < silent;
            if (is_unused || exit.data_at < gone) && self.acks.knows(exit.port) {
                any = true;
                self.acks.leave(exit.port);
            }
        }
        self.exits.retain(|exit| exit.data_at >= gone);
        self.ports.clear();
        self.ports.extend(self.exits.iter().map(|exit| exit.port));
        self.busy = self.exits.iter().filter(|exit| !exit.due().is_never()).count();
        if any {
            let is_there = |who| self.exits.iter().any(|exit| exit.children.knows(who));
            if self.speaker.is_some_and(|who| !is_there(who)) {
                self.speaker = self.exits.iter().find_map(|exit| exit.children.any());
            }
            self.on_progress(config);
            if self.ack_at == Time::ZERO {
                self.acknowledge(config, seen, cx);
            }
        }
    }
}
