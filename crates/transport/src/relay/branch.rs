//! One branch of a relay as an endpoint. Its source session starts when the relay has received an announcement.

use super::downstream_scheduler::DownstreamScheduler;
use super::{End, SessionHandle};
use crate::announced::{geometry_of, scheme_of};
use crate::config::{ReceiverEvents, SlowReceiverPolicy, StartNow};
use crate::endpoint::{Datagram, Endpoint, HostEvent, Transmit};
use crate::event::Event;
use crate::members::Tally;
use crate::source::{Setup, SourceSession};
use crate::trace::{RELAY, Scope};
use faircast_core::packet::{Layer, ReceiverId};
use faircast_core::rng::Rng;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Rate, Span, Time};
use faircast_wire::{
    Announce, Attach, HopKey, Kind, Message, Newest, SourceCodec, layers::group_of, parse, peek,
};
use std::net::SocketAddr;
use std::time::Duration;

/// Join timeout of branches: a branch waits for receivers while the source exists.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);

/// Parameters of a new branch.
#[derive(Debug, Clone)]
pub(crate) struct BranchSetup {
    /// Receiver ID that the relay states in packets of the branch. The next field is a random number for this branch and session.
    pub(crate) me: ReceiverId,
    pub(crate) boot: u64,
    /// Key of relays. Without it only unsealed sessions are relayed.
    pub(crate) key: Option<HopKey>,
    /// Destination of packets: a group, or one host.
    pub(crate) to: SocketAddr,
    /// Local address, from which packets are sent and to which feedback is sent.
    pub(crate) local: SocketAddr,
    /// Size of the IP and UDP headers of each datagram, bytes.
    pub(crate) overhead: usize,
    pub(crate) max: Option<Rate>,
    pub(crate) ttl: u8,
    /// Duration of silence after which a receiver is given up.
    pub(crate) idle_timeout: Duration,
    /// Minimum time over which feedback is spread.
    pub(crate) spread: Span,
    pub(crate) seed: u64,
    /// Whether the branch reports the state of each of its receivers.
    pub(crate) receiver_events: ReceiverEvents,
    /// Whether the branch serves one host. Such a branch ends if its host does not join in time.
    pub(crate) to_host: bool,
}

/// Congestion control of branches of a layered session. Its packets are at most as long as packets of other schemes.
const BELOW_LAYERS: &str = "le-sbcc";

/// Interval of checks of the downstream relays.
const RELAYS_EVERY: Span = Span::from_millis(500);

/// Interval at which the missing blocks of all receivers are counted.
const MISSING_EVERY: Span = Span::from_millis(25);

/// Join timeout of an attached host. A host that does not join in this time is assumed to look for another session.
const JOIN_WITHIN: Span = Span::from_secs(10);

/// A branch of a relayed session.
pub(crate) struct Branch {
    shared: SessionHandle,
    place: usize,
    setup: BranchSetup,
    session: Option<SourceSession>,
    local: SocketAddr,
    began: Time,
    /// Time of the next check of the downstream relays.
    relays_at: Time,
    /// Time of the next count of the missing blocks.
    missing_at: Time,
    /// ID and address of a child that attaches again. The branch must answer, because the child's datagrams reach the branch's
    /// socket, not the relay's port.
    asked: Option<(ReceiverId, SocketAddr)>,
    /// Whether no receiver has joined within `JOIN_WITHIN`.
    is_vain: bool,
}

impl Branch {
    /// Creates branch number `place` of the session that `shared` relays.
    pub(crate) fn new(shared: SessionHandle, place: usize, setup: BranchSetup) -> Branch {
        let local = setup.local;
        Branch {
            shared,
            place,
            setup,
            session: None,
            local,
            began: Time::ZERO,
            relays_at: Time::ZERO,
            missing_at: Time::ZERO,
            asked: None,
            is_vain: false,
        }
    }

    /// Whether the branch serves this host.
    #[cfg(test)]
    pub(super) fn serves(&self, host: SocketAddr) -> bool {
        self.setup.to == host
    }

    /// Starts the downstream session if the relay has received an announcement.
    fn begin(&mut self, now: Time) {
        if self.session.is_some() {
            return;
        }
        let Some((session, announce)) = self.shared.lock().announce else { return };
        let (Some(scheme), Some(geometry)) = (scheme_below(&announce), geometry_of(&announce)) else {
            return;
        };
        let BranchSetup { me, boot, overhead, max, ttl, idle_timeout, spread, seed, .. } = self.setup;
        let to = self.setup.to;
        let group = |layer| match to.ip().is_multicast() {
            true => group_of(to, Layer(layer), announce.spacing()),
            false => Some(to),
        };
        let setup = Setup {
            codec: SourceCodec::of_relay(session, self.setup.key.as_ref(), announce.salt, me, boot),
            salt: announce.salt,
            groups: (0..scheme.layers().max(1)).map_while(group).collect(),
            scheme,
            spacing: announce.spacing(),
            scheduler: Box::new(DownstreamScheduler::new(
                self.shared.clone(),
                self.place,
                &announce,
                geometry,
            )),
            sign: None,
            receipts: None,
            rng: Rng::new(seed, boot),
            name: announce.name.as_str().to_owned(),
            datagram: usize::from(announce.packet_size) - overhead.min(usize::from(announce.packet_size)),
            overhead,
            slow: SlowReceiverPolicy::Follow,
            one_way: None,
            min: None,
            max,
            day_limits: None,
            expect: None,
            to_hosts: faircast_wire::Name::EMPTY,
            series: None,
            dry_run: None,
            required: Vec::new(),
            join_timeout: FOR_EVER,
            not_before: Time::ZERO,
            start: StartNow::default(),
            ttl,
            idle_timeout,
            spread,
            local: self.local,
            receiver_events: self.setup.receiver_events,
            started: announce.started,
        };
        Scope::new(&setup.name, RELAY).serves(to, now);
        let mut session = SourceSession::new(setup, now);
        session.report_ids();
        self.session = Some(session);
        self.began = now;
    }

    /// Reports the number of the branch's receivers to the upstream side.
    fn emit_progress(&mut self, now: Time) {
        let Some(session) = &mut self.session else { return };
        let mut passing = self.shared.lock();
        session.exchange_completions(|fresh| passing.on_done(self.place, fresh, now), now);
        let (mut tally, rate) = (session.tally(), session.rate());
        // A downstream relay without receivers does not delay the session: that relay waits for receivers itself.
        if session.is_gathering() && tally.receivers == 0 {
            tally.unfinished = 0;
        }
        let state = &mut passing.branches[self.place];
        if state.is_replaced {
            return;
        }
        let recount = now >= self.missing_at;
        if recount {
            self.missing_at = now + MISSING_EVERY;
        }
        state.missing = session.most_missing(recount);
        let shown = |tally: Tally| (tally.receivers, tally.done, tally.unfinished, tally.answering);
        let changed = shown(std::mem::replace(&mut state.tally, tally)) != shown(tally);
        (state.rate, state.to) = (rate, Some(self.setup.to));
        let invitation = state.invitation;
        drop(passing);
        if changed {
            // The list of relays is reported together with the number of receivers.
            self.relays_at = Time::ZERO;
        }
        if changed && invitation != 0 {
            self.shared.process.note(invitation, tally);
        }
    }

    /// Schedules an answer to a served host that attaches again. The answer shows that the relay is alive. If another process
    /// attaches from the host's address and the earlier process is silent, ends this branch. The other process then gets a new
    /// branch.
    fn on_attach(&mut self, attach: &Attach, from: SocketAddr) {
        let mut passing = self.shared.lock();
        let place = self.place;
        let state = &passing.branches[place];
        let is_other = state.child.is_some_and(|child| child != attach.from);
        if !is_other {
            self.asked = Some((attach.from, from));
        } else if state.tally.answering == 0 && state.tally.done == 0 {
            passing.end_branch(place);
        }
    }

    /// Reports the downstream relays to the upstream side, at intervals.
    fn report_relays(&mut self, now: Time) {
        let Some(session) = self.session.as_ref().filter(|_| now >= self.relays_at) else { return };
        self.relays_at = now + RELAYS_EVERY;
        let relays = session.relays();
        if self.setup.to_host && session.tally().answering > 0 {
            self.shared.process.note_served(self.setup.to);
        }
        let state = &mut self.shared.lock().branches[self.place];
        if !state.is_replaced {
            state.relays = relays;
        }
    }
}

/// Returns the congestion control of branches: that of the session, or a scheme with one rate if the session is layered.
fn scheme_below(announce: &Announce) -> Option<Scheme> {
    if announce.layers <= 1 {
        return scheme_of(announce);
    }
    let scheme: Scheme = BELOW_LAYERS.parse().ok()?;
    Some(scheme.with_packet_size(announce.packet_size))
}

impl Drop for Branch {
    fn drop(&mut self) {
        if self.setup.to_host {
            self.shared.vacate(self.place);
        }
    }
}

impl Endpoint for Branch {
    fn handle_datagram(&mut self, datagram: Datagram<'_>, now: Time) {
        if self.setup.to_host && peek(datagram.bytes).is_ok_and(|header| header.kind == Kind::Attach) {
            if let Ok((_, Message::Attach(attach))) = parse(datagram.bytes, &Newest::default()) {
                self.on_attach(&attach, datagram.from);
            }
            return;
        }
        if let Some(session) = &mut self.session {
            session.handle_datagram(datagram, now);
            self.emit_progress(now);
            self.report_relays(now);
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.begin(now);
        if let Some(session) = &mut self.session {
            session.handle_timeout(now);
            let nobody = self.setup.to_host && session.tally().receivers == 0;
            self.is_vain |= nobody && session.is_gathering() && now.since(self.began) >= JOIN_WITHIN;
            self.emit_progress(now);
            self.report_relays(now);
        }
    }

    fn handle_host_event(&mut self, notice: HostEvent<'_>, now: Time) {
        if let HostEvent::NetworkChanged { local } = notice {
            self.local = local.unwrap_or(self.local);
            self.shared.announces_from(self.local);
        }
        if let Some(session) = &mut self.session {
            session.handle_host_event(notice, now);
        }
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        if let Some((id, to)) = self.asked.take() {
            out.clear();
            if self.shared.process.put_token(id, to, out) {
                return Some(Transmit { segment: out.len(), to, hops: None });
            }
        }
        self.session.as_mut().and_then(|session| session.poll_transmit(now, out))
    }

    fn poll_timeout(&self, now: Time) -> Time {
        match &self.session {
            // Wake up at once if the upstream side must fetch new symbols, or if an attached host waits for an answer.
            _ if self.shared.wants_more() || self.asked.is_some() => now,
            Some(session) => session.poll_timeout(now),
            None if self.shared.lock().announce.is_some() => now,
            None => Time::NEVER,
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.session.as_mut().and_then(SourceSession::poll_event)
    }

    fn stop(&mut self, now: Time) {
        match &mut self.session {
            Some(session) => session.stop(now),
            None => self.shared.end(false),
        }
    }

    fn is_finished(&self) -> bool {
        let passing = self.shared.lock();
        match (&self.session, passing.end) {
            _ if self.is_vain || passing.branches[self.place].is_replaced => true,
            (_, End::Lost) | (None, End::Over) => true,
            (None, End::No) => false,
            (Some(session), _) => session.is_finished(),
        }
    }
}
