//! Processing of the source's messages other than data, and of the receiver's feedback.

use super::{
    JOINED, LOOK_SOONEST, Layers, Phase, ReceiverSession, Stream, Window,
    block_sink::{Admitting, BlockSink},
    echo,
    fountain::Repair,
    reachability::{Reach, continues, has_restarted},
    reassembly::Reassembly,
    role::Relaying,
    streams::Streams,
    symbol_sink::SymbolSink,
    takeover,
    trust::Trust,
};
use crate::announced::{geometry_of, packet_size_fits, scheme_of, whole_of};
use crate::backoff;
use crate::config::{Destination, FilePolicy, ReplayPolicy};
use crate::endpoint::Backlog;
use crate::error::{EndReason, Error, JoinObstacle, TransferError};
use crate::event::Event;
use crate::members::{alive_every, first_turn, stretched};
use crate::membership::{FLOODED, MOVED, NOTHING_YET, RELAYS};
use crate::object::host::quota::Quota;
use crate::object::{
    Admission, ComparedOutput, Comparing, Finished, Geometry, Granularity, Origin, TransferId, Wanted,
};
use crate::session_filter::is_one_of;
use faircast_core::delivery::request_scheduler::RequestScheduler;
use faircast_core::node::{Cx, Effect};
use faircast_core::packet::{Echo, ReceiverId, Seq, SessionId};
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use faircast_wire::encode;
use faircast_wire::{Announce, Member, MemberState, Message, Name, Need, Request, Status, Welcome, Words};
use std::net::SocketAddr;
use std::sync::Arc;

/// Assumed round-trip time until the source has stated one.
const FIRST_RTT: Span = Span::from_millis(5);

/// Longest interval at which an unconfirmed message is repeated; if the spread is longer, the spread applies.
const LATEST: Span = Span::from_secs(1);

/// Maximum delay of the first membership message. That message states the missing blocks, so it waits for the job that opens the
/// files.
const OPENING: Span = Span::from_millis(500);

/// Maximum round-trip time that requests assume. Otherwise a forged large round-trip time would delay the repairs of other
/// receivers.
const MAX_ROUND: Span = Span::from_millis(500);

/// Maximum wait for a packet before joining. A source that answers a query also sends a packet. A receiver that misses this
/// packet joins without it.
const JOIN_WITHIN: Span = Span::from_millis(10);

impl ReceiverSession {
    pub(super) fn on_announce(
        &mut self,
        session: SessionId,
        announce: Announce,
        from: SocketAddr,
        now: Time,
    ) {
        if self.setup.accept.has_ended(session) {
            return;
        }
        if self.setup.relay.is_none() && !is_one_of(&self.setup.host, announce.to_hosts.as_str()) {
            return self.object(session, from, JoinObstacle::OtherHosts, now);
        }
        if self.is_anothers(session, &announce) {
            return self.yield_to(session, &announce, now);
        }
        if let Err(why) = self.trust_in(session, &announce) {
            self.totals.refused.unauthentic += 1;
            return self.object(session, from, why, now);
        }
        if let Some(stream) = &mut self.stream {
            if stream.session == session && stream.source == from {
                if has_restarted(&stream.announced, &announce) {
                    // A recorded announcement also has a lower packet number. Only a later time in the announcement shows that
                    // the relay was restarted.
                    if announce.unix_secs > stream.announced.unix_secs && self.may_move() {
                        self.attach_elsewhere(announce, from, now);
                    }
                    return;
                }
                self.clocks.received_at = now;
                (stream.announced, stream.announced_at) = (announce, now);
                set_pace(stream, stream.rtt, millis(announce.spread_ms), self.under.repair_time(), now);
                stream.sink.on_announce(&announce);
                let skipped = if announce.flags & Announce::LIVE != 0 {
                    stream.sink.skip_before(announce.first_block)
                } else {
                    Ok(())
                };
                if let Err(error) = skipped {
                    self.fail(error, now);
                }
                return;
            }
            let is_other = stream.session != session;
            let is_wanted = match is_other {
                false => continues(stream, &announce, now),
                true => self.may_succeed(session, &announce, now),
            };
            let is_vain = !is_other && self.is_no_better(from, now);
            if !self.may_move() || !self.is_quiet(now) || !is_wanted || is_vain {
                self.totals.refused.sender += u64::from(!is_other);
                if is_other && self.phase == Phase::Receiving {
                    self.object_to_another(session, &announce, from, now);
                }
                return;
            }
        } else if self.phase != Phase::Searching {
            return;
        }
        if self.setup.relay.as_ref().is_some_and(|relay| !relay.may_follow(session, &announce)) {
            return; // another part of this relay forwards it, or this relay announces it
        }
        if !self.setup.accept.takes(&announce) {
            return self.object(session, from, JoinObstacle::NotAccepted, now);
        }
        if self.stream.is_none() && !self.setup.accept.has_place_for(from.ip()) {
            return self.object_to_another(session, &announce, from, now);
        }
        if let Some(why) = self.why_not(&announce) {
            return self.object(session, from, why, now);
        }
        match self.setup.replay_policy {
            ReplayPolicy::Answer => self.consider(session, announce, from, now),
            ReplayPolicy::Clock => self.accept(session, announce, from, now),
        }
    }

    /// Follows the first session.
    pub(super) fn follow(
        &mut self,
        session: SessionId,
        announce: Announce,
        from: SocketAddr,
        now: Time,
    ) -> Result<(), Error> {
        let (Some(scheme), Some(geometry)) = (scheme_of(&announce), geometry_of(&announce)) else {
            return Ok(());
        };
        let Ok(trust) = self.trust_in(session, &announce) else { return Ok(()) };
        self.scope = self.setup.scope(announce.name.as_str());
        let spread = millis(announce.spread_ms);
        let layers = Layers::new(self.setup.group, &announce, self.setup.reordering);
        let sink: Box<dyn SymbolSink> = if let Some(relay) = &self.setup.relay {
            let requests = RequestScheduler::new(FIRST_RTT, spread);
            relay.begin(session, &announce, geometry, requests, now)
        } else if announce.has_streams() {
            self.place_for_streams(&announce, &geometry, &layers, now)?
        } else {
            let admission = self.admission(session, &announce, trust.is_some(), now);
            self.place_for_object(&announce, geometry, &layers, (trust, admission))?
        };
        self.codec.follow(session);
        self.emit_joined(&announce, from);
        self.scope.found(&announce, now);
        let window = Window::new(announce.packet_size, place_of(self.setup.id));
        let mut stream = Stream {
            session,
            source: from,
            announced: announce,
            announced_at: now,
            reach: Reach::new(announce.next_seq),
            receiver: self.setup.control(&scheme),
            layers,
            sink,
            trust,
            newest: NOTHING_YET,
            newest_at: now,
            sent: 0,
            rtt: FIRST_RTT,
            spread,
            since: now,
            deferred: false,
            begun: false,
            place_stored: false,
            registered: false,
            searched: false,
            content_reported: false,
            title: None,
            forgery_reported: false,
            blocks: geometry.blocks(),
            root: None,
            withdrawn: 0,
            member_at: now,
            member_tries: 0,
            member_sent_at: now,
            reports_alive: false,
            members: 0,
            sent_counts: (0, 0, true),
            reported_tree: Vec::new(),
            window,
            finishing_since: None,
            works_since: None,
            look_at: now,
            closed: None,
        };
        stream.member_at = now + self.turn_to_join(spread);
        self.outbox.is_muted = stream.announced.is_one_way();
        self.stream = Some(stream);
        self.phase = Phase::Receiving;
        self.clocks.received_at = now;
        Ok(())
    }

    fn place_for_streams(
        &self,
        announce: &Announce,
        geometry: &Geometry,
        layers: &Layers,
        now: Time,
    ) -> Result<Box<dyn SymbolSink>, Error> {
        if let Destination::Device(device) = &self.setup.destination {
            return Err(device.takes_no_stream().into());
        }
        let (to, own, reordering) = (&self.setup.destination, &self.setup.layers_to, self.setup.reordering);
        let (content, of) = ((TransferId(announce.transfer.0), geometry), layers.subscription().of);
        let by = (&self.setup.worker, self.setup.memory);
        let streams = Streams::new(to, own, content, of, reordering, by, now);
        Ok(Box::new(streams.limited_to(&Quota::new(self.setup.accept.most_bytes))))
    }

    fn place_for_object(
        &self,
        announce: &Announce,
        geometry: Geometry,
        layers: &Layers,
        (trust, admission): (Option<Trust>, Admission),
    ) -> Result<Box<dyn SymbolSink>, Error> {
        let live = announce.flags & Announce::LIVE != 0;
        let first = if live { announce.first_block } else { 0 };
        let (to, transfer, memory) =
            (&self.setup.destination, TransferId(announce.transfer.0), self.setup.memory);
        let (live, at) = (live.then_some(first), (&self.setup.disk, self.setup.temporary.as_path()));
        let repair = Repair::of(announce, layers.is_layered());
        let FilePolicy { preserve, owners_by, keep_partial, existing, reuse, .. } = &self.setup.files;
        let wanted = Wanted { preserve: preserve.clone(), owners_by: *owners_by, existing: existing.clone() };
        let comparing = whole_of(announce).map(|geometry| Comparing {
            output: match to {
                Destination::Directory(out) => ComparedOutput::Directory(out.clone()),
                Destination::Device(device) => ComparedOutput::Device(Arc::clone(device)),
                Destination::Writer(_) | Destination::Memory(_) => ComparedOutput::Empty,
            },
            geometry,
            admission: Some(admission.clone()),
            wanted: wanted.clone(),
            reuse: reuse.clone(),
            granularity: if layers.is_layered() { Granularity::Blocks } else { Granularity::Symbols },
        });
        let admitting = Admitting {
            admission: Some(admission),
            wanted,
            comparing,
            keep_partial: *keep_partial,
            reuse: reuse.clone(),
            spills: repair.spills(&geometry, memory),
        };
        let by = (memory, &self.setup.worker);
        let place = BlockSink::open(to, transfer, geometry, live, admitting, by, at)?
            .limited_to(&Quota::new(self.setup.accept.most_bytes));
        let needs = RequestScheduler::new(FIRST_RTT, millis(announce.spread_ms));
        let reassembly = Reassembly::new(place, geometry, first, needs, repair, memory, trust)?;
        Ok(Box::new(reassembly.traced_in(self.scope.clone())))
    }

    /// Returns the rules for admitting the content of a session to the output directory.
    fn admission(&self, session: SessionId, announce: &Announce, is_signed: bool, now: Time) -> Admission {
        let FilePolicy { overwrite, names, .. } = self.setup.files;
        let here = self.setup.unix_secs.saturating_mul(1_000_000_000).saturating_add(now.as_nanos());
        let proven = is_signed || self.codec.key_of(session).is_some();
        Admission {
            started: announce.started,
            began: here.saturating_sub(takeover::age(announce).as_nanos()),
            now: here,
            replay_policy: self.setup.replay_policy,
            origin: Origin::new(takeover::host_of(announce), announce.name.as_str(), proven),
            overwrite,
            names,
            most: self.setup.accept.most_bytes,
        }
    }

    /// Returns the delay before joining. A receiver that has sent a query has already waited for its turn. Such a receiver only
    /// waits for a packet from which it measures the round-trip time.
    fn turn_to_join(&mut self, spread: Span) -> Span {
        match self.setup.replay_policy {
            ReplayPolicy::Answer => JOIN_WITHIN,
            ReplayPolicy::Clock => first_turn(spread, &mut self.rng),
        }
    }

    /// Continues the session with another relay, or with the source itself. The new parent's packets are a separate stream with
    /// the same content.
    pub(super) fn attach_elsewhere(&mut self, announce: Announce, from: SocketAddr, now: Time) {
        let Some((session, before)) = self.stream.as_ref().map(|stream| (stream.session, stream.source))
        else {
            return;
        };
        if !self.begin_with(session, announce, from, now) {
            return;
        }
        if before != from {
            // The former parent must not wait for this receiver. The message is sent twice, because it may be lost.
            let member = self.stranger(MemberState::Leaving, MOVED);
            for _ in 0..2 {
                self.outbox.add_to(session, Message::Member(member.clone()), before, now);
            }
        }
        let Some(stream) = &mut self.stream else { return };
        stream.sink.on_announce(&announce);
        stream.sink.arm(now, &mut self.rng);
        let is_forsaken = self.has_forsaken(before);
        let (reason, words) = match before == from {
            true => ("restarted", format!("{from} was restarted; the session continues with it")),
            false if is_forsaken => ("serves nothing", format!("the session continues with {from}")),
            false => ("silent", format!("{before} is silent; the session continues with {from}")),
        };
        self.scope.moved(from, reason, now);
        self.events.push_back(Event::warning(words));
    }

    /// Begins another packet stream with the same content. Returns whether the stream can be followed.
    pub(super) fn begin_with(
        &mut self,
        session: SessionId,
        announce: Announce,
        from: SocketAddr,
        now: Time,
    ) -> bool {
        let delay = self.turn_to_join(millis(announce.spread_ms));
        let Some(stream) = &mut self.stream else { return false };
        let is_alike = (announce.layers > 1) == (stream.announced.layers > 1)
            && announce.is_one_way() == self.outbox.is_muted;
        let scheme = scheme_of(&announce).filter(|_| is_alike && packet_size_fits(&announce));
        let Some(scheme) = scheme else { return false };
        self.codec.follow(session);
        stream.session = session;
        stream.source = from;
        (stream.announced, stream.announced_at) = (announce, now);
        stream.reach = Reach::new(announce.next_seq);
        stream.receiver = self.setup.control(&scheme);
        stream.layers.restart(self.setup.group, &stream.announced);
        stream.newest = NOTHING_YET;
        stream.newest_at = now;
        stream.window = Window::new(stream.announced.packet_size, place_of(self.setup.id));
        stream.sent = 0;
        (stream.deferred, stream.closed) = (false, None);
        stream.begun = false;
        stream.registered = false;
        stream.sink.on_other_parent();
        if let Some(relay) = &self.setup.relay {
            relay.on_other_parent();
        }
        self.service.on_other_parent();
        (stream.member_at, stream.member_tries, stream.reports_alive) = (now + delay, 0, false);
        self.clocks.received_at = now;
        true
    }

    pub(super) fn on_status(&mut self, status: &Status, now: Time) {
        let me = self.setup.id;
        self.on_receipts_status(status, now);
        let Some(stream) = &mut self.stream else { return };
        stream.set_members(status.members, now);
        if status.rtt_max_us > 0 {
            let (rtt, spread) = (Span::from_micros(u64::from(status.rtt_max_us)), millis(status.spread_ms));
            set_pace(stream, rtt, spread, self.under.repair_time(), now);
        }
        let apart = backoff::pause(status.backoff(), stream.spread);
        self.asks.follow(apart, now, &mut self.rng);
        let due = self.under.due_status(status, stream.newest, stream.newest_at, now);
        let Some(stream) = &mut self.stream else { return };
        if let Some(due) = &due {
            stream.sent = due.next_seq;
        }
        let held = status.flags & Status::HELD != 0;
        stream.window.on_status(status.next_seq, status.members, stream.rtt, held);
        stream.reach.on_next_seq(status.next_seq, now);
        stream.layers.on_status(&status.upper_seqs);
        let joined = Welcome { id: me, nonce: self.setup.nonce.wrapping_add(JOINED) };
        if status.welcomed.contains(&joined) && !std::mem::replace(&mut stream.registered, true) {
            self.scope.admitted(now);
        }
        // An agent confirms receivers itself. A source that has stated the end of the session does not wait for receivers any
        // longer.
        let (by_number, is_finished) =
            (status.flags & Status::BY_NUMBER != 0, status.flags & Status::CLOSING != 0);
        if let Some(relay) = &self.setup.relay
            && (is_finished || self.under.is_of_the_source())
        {
            relay.on_confirmed(by_number && !is_finished, &status.confirmed, now);
        }
        if status.confirmed.contains(&me) {
            stream.registered = true;
            if matches!(self.phase, Phase::Confirming { .. }) {
                self.phase = Phase::Over;
                return;
            }
        }
        if status.flags & Status::CLOSING != 0 {
            stream.closed.get_or_insert(EndReason::of(status, self.outbox.is_muted));
        }
        if self.phase == Phase::Receiving && stream.finishing_since.is_some() {
            return self.after_block(now);
        }
        if self.phase != Phase::Receiving {
            if status.flags & Status::CLOSING != 0 {
                self.phase = Phase::Over;
            }
            return;
        }
        if status.dropped.contains(&me) {
            return self.end(EndReason::TooSlow, now);
        }
        let was_deferred = std::mem::replace(&mut stream.deferred, status.lagging.contains(&me));
        if was_deferred && !stream.deferred {
            // The scheme starts again: its old measurements are obsolete, and the pause is not congestion.
            if let Some(scheme) = scheme_of(&stream.announced) {
                stream.receiver = self.setup.control(&scheme);
            }
            stream.sink.arm(now, &mut self.rng);
        }
        let withdrawn = std::mem::replace(&mut stream.withdrawn, status.withdrawn_count());
        let root = stream.root.filter(|_| withdrawn == stream.withdrawn);
        (stream.blocks, stream.root) = (status.blocks.or(stream.blocks), status.root.or(root));
        if let Err(error) = stream.sink.withdraw(&status.withdrawals, now) {
            return self.fail(error, now);
        }
        stream.look_after_storage(now);
        if let Some(due) = &due {
            stream.sink.on_status(due, now, &mut self.rng);
        }
        self.after_block(now);
        self.end_once_stored(now);
    }

    pub(super) fn end(&mut self, reason: EndReason, now: Time) {
        let is_served = self.stream.as_ref().is_some_and(|stream| stream.sink.needs_nothing());
        if is_served && self.setup.relay.is_some() {
            self.finished = Some(Finished::default());
            self.totals.finished = now;
            self.phase = Phase::Over;
            return;
        }
        self.name_unfinished();
        let (verified_bytes, resumes) = (self.stored_bytes(), self.resumes());
        self.failure = Some(Error::Transfer(TransferError::Ended { reason, verified_bytes, resumes }));
        self.totals.finished = now;
        self.phase = Phase::Over;
    }

    pub(super) fn run_timers(&mut self, now: Time) {
        let Some(stream) = &mut self.stream else { return };
        if !stream.deferred {
            if stream.receiver.deadline() <= now {
                let mut cx = Cx { now, rng: &mut self.scheme_rng, effects: &mut self.effects };
                stream.receiver.on_deadline(&mut cx);
                self.carry_out(Span::ZERO, now);
            }
            let Some(stream) = &mut self.stream else { return };
            if self.under.may_ask() && stream.sink.deadline().max(self.asks.free_at()) <= now {
                let mut echo = echo(stream, now);
                // Packets that were sent before the last status and have not arrived are lost. They are not in flight, even if no
                // later packet shows the gap.
                echo.seq = echo.seq.max(Seq(stream.sent.saturating_sub(1)));
                let wanted = stream.sink.due(now, &mut self.rng).to_vec();
                if !wanted.is_empty() {
                    self.under.on_asked(now);
                    self.service.on_asked();
                    self.asks.on_asked(now, &mut self.rng);
                }
                let to_relay = stream.announced.parent != stream.announced.source;
                let here = to_relay.then_some(&*stream.sink);
                let limit = datagram(&stream.announced, self.setup.overhead);
                let requests = requests(&wanted, here, self.setup.id, echo, limit);
                requests.into_iter().for_each(|request| self.outbox.add(stream.session, request, now));
            }
        }
        if let Some(stream) = &mut self.stream {
            stream.member_at = stream.member_at.min(stream.changes_at(self.setup.relay.as_deref()));
        }
        self.send_receipts(now);
        self.report_membership(now);
        self.advertise(now);
        self.speak_for_children(now);
    }

    /// Sends the membership message if it is due.
    pub(super) fn report_membership(&mut self, now: Time) {
        let Some(stream) = &mut self.stream else { return };
        if stream.member_at > now {
            return;
        }
        let opened_by = stream.since + OPENING;
        if !stream.registered && now < opened_by && stream.sink.is_opening() {
            stream.member_at = stream.look_at.max(now + LOOK_SOONEST).min(opened_by);
            self.outbox.joins_first = true;
            return;
        }
        let failed = self.failure.is_some();
        let state = match self.phase {
            Phase::Confirming { .. } if failed => MemberState::Failed,
            Phase::Confirming { .. } if self.receipts.waiting() > 0 => MemberState::Receiving,
            Phase::Confirming { .. } => MemberState::Done,
            _ if !stream.registered => MemberState::Joined,
            _ if stream.sink.needs_nothing() => MemberState::Done,
            _ => MemberState::Receiving,
        };
        let why = self.failure.as_ref().map(super::reason);
        let role = if self.setup.relay.is_some() { RELAYS } else { 0 };
        self.send_membership(state, why.unwrap_or(role), now);
    }

    /// Reports layers that seem to arrive although this receiver has not joined them. Called once a second.
    pub(super) fn look_for_flooding(&mut self, now: Time) {
        let Some(stream) = &mut self.stream else { return };
        if self.phase != Phase::Receiving || !stream.registered {
            return;
        }
        if now.since(stream.member_sent_at) < stream.spread {
            return; // these reports are sent in turns, too
        }
        let Some((part, is_news)) = stream.layers.flooded(now) else { return };
        if is_news {
            self.events.push_back(Event::warning(format!(
                "only the base layer is received, and {:.0} % of its packets are lost while the source sends other layers: the network carries all layers to this host, or the link is too slow even for the base layer. Switch on IGMP snooping (IPv6: MLD snooping) with a \
                 querier on the switch; until then the session runs at one rate",
                part * 100.0
            )));
        }
        self.send_state(MemberState::Receiving, FLOODED, Some(part as f32), now);
    }

    pub(super) fn send_membership(&mut self, state: MemberState, reason: u8, now: Time) {
        self.send_state(state, reason, None, now);
    }

    fn send_state(&mut self, state: MemberState, reason: u8, loss: Option<f32>, now: Time) {
        self.report_new_children(now);
        self.report_verified(now);
        let relay = self.setup.relay.as_deref();
        let waits = relay.is_some_and(Relaying::waits_for_confirmations);
        let pause = |stream: &Stream| match state {
            MemberState::Receiving if !waits => alive_every(stream.members),
            _ => {
                let first = (stream.spread + stream.rtt * 2).max(Span::from_millis(10));
                (first * (1 << stream.member_tries.min(5))).min(LATEST.max(stream.spread))
            }
        };
        let Some(stream) = &mut self.stream else { return };
        let packets = (self.totals.packets + self.totals.lost).max(1);
        let itself = (1, u32::from(state == MemberState::Done));
        let (receivers, done) = relay.map_or(itself, Relaying::receivers);
        let (activity, percent) = stream.sink.activity().unwrap_or_default();
        let member = Member {
            from: self.setup.id,
            nonce: self.setup.nonce.wrapping_add(JOINED),
            state,
            reason,
            receivers,
            done,
            verified_bytes: stream.sink.verified_bytes(),
            resumed_bytes: stream.sink.resumed_bytes().0,
            blocks_missing: stream.sink.missing(),
            rate: self.totals.rate.bps() as f32,
            loss: loss.unwrap_or(self.totals.lost as f32 / packets as f32),
            dropped_local: self.totals.backlog.dropped.min(u64::from(u32::MAX)) as u32,
            unwritten_bytes: stream.sink.unwritten_bytes(),
            activity,
            percent,
            echo: echo(stream, now),
            host: Name::clipped(&self.setup.host),
            why: match &self.failure {
                Some(error) if state == MemberState::Failed => Words::clipped(&error.in_full()),
                _ => Words::default(),
            },
        };
        self.outbox.add(stream.session, Message::Member(member), now);
        self.outbox.joins_first = false;
        stream.sent_counts = (receivers, done, stream.lacks_everything());
        stream.member_sent_at = now;
        stream.member_at = now + pause(stream);
        stream.reports_alive = state == MemberState::Receiving && !waits;
        stream.searched = !stream.knows_missing();
        stream.member_tries = if stream.reports_alive { 0 } else { stream.member_tries + 1 };
    }

    /// Performs the effects that the scheme has requested for a packet. `late` is the time for which the packet waited in the
    /// socket's buffer. This delay belongs to the host, not to the path.
    pub(super) fn carry_out(&mut self, late: Span, now: Time) {
        let Some(stream) = &mut self.stream else { return };
        let (mut written, mut attended, mut is_excluded) = (Ok(()), None, false);
        for effect in self.effects.drain() {
            match effect {
                Effect::Report(mut report) => {
                    let echo = report.content.echo_mut();
                    echo.hold = echo.hold + late;
                    self.outbox.add(stream.session, Message::Report(report), now);
                }
                Effect::Subscribe(top) => {
                    let before = stream.layers.subscription().joined;
                    if let Some(subscription) = stream.layers.subscribe(top, now) {
                        self.scope.layers(before, subscription.joined, now);
                        self.events.push_back(Event::Layers(subscription));
                        written = written.and(stream.sink.subscribe(subscription, now));
                    }
                }
                Effect::Attend(group) => attended = Some(group),
                Effect::Leave => is_excluded = true,
                Effect::Send { .. } => {
                    written = written.and(Err(Error::effect("receiver", &effect)));
                }
            }
        }
        if let Some(group) = attended {
            self.attend(group);
        }
        if is_excluded {
            self.end(EndReason::TooSlow, now);
        }
        if let Err(error) = written {
            self.fail(error, now);
        }
    }

    /// Notifies the scheme that the receiver needs no layer any longer. A scheme that reports layers to its source then reports
    /// this.
    pub(super) fn leave_layers(&mut self, now: Time) {
        let Some(stream) = &mut self.stream else { return };
        if stream.layers.is_layered() && self.phase == Phase::Receiving {
            let mut cx = Cx { now, rng: &mut self.scheme_rng, effects: &mut self.effects };
            stream.receiver.on_leave(&mut cx);
            self.carry_out(Span::ZERO, now);
        }
    }

    /// Returns the scheme of the session.
    #[cfg(test)]
    pub(crate) fn scheme(&self) -> Option<faircast_core::schemes::Scheme> {
        self.stream.as_ref().and_then(|stream| scheme_of(&stream.announced))
    }

    /// Returns the obstacle that would be reported if the search ended now.
    #[cfg(test)]
    pub(crate) const fn seen(&self) -> Option<JoinObstacle> {
        self.seen
    }

    /// Records the fill level of the base group's socket buffer, and the number of datagrams that this buffer has dropped.
    pub(super) fn on_backlog(&mut self, backlog: Backlog, now: Time) {
        self.totals.backlog = backlog;
        let Some(stream) = &mut self.stream else { return };
        // A host that is too slow for its layers should leave layers instead of slowing the group. So the scheme counts drops of
        // the host's own buffers as drops of the path.
        if !stream.layers.is_layered() {
            stream.window.on_backlog(backlog, now);
        }
    }

    /// Advertises the window to the source if an advertisement is due. A deferred receiver advertises no window.
    fn advertise(&mut self, now: Time) {
        let Some(stream) = self.stream.as_mut().filter(|stream| !stream.deferred) else { return };
        if let Some(limit) = stream.window.due(now) {
            self.send_window(limit, now);
        }
    }

    pub(super) fn send_window(&mut self, limit: Seq, now: Time) {
        self.under.own_limit = limit;
        let limit = limit.min(self.limit_below());
        let Some(stream) = &self.stream else { return };
        let window = faircast_wire::Window { from: self.setup.id, echo: echo(stream, now), limit };
        self.outbox.add(stream.session, Message::Window(window), now);
    }
}

/// Returns the position of the receiver's turn among the turns of all members, as a fraction from 0 to 1. It depends on the
/// receiver's random ID.
fn place_of(id: ReceiverId) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_894_9; // spreads consecutive IDs as well
    (id.get() as f64 * GOLDEN).fract()
}

/// Returns a random delay between zero and `spread`, uniformly distributed: all receivers must report, and no report suppresses
/// another.
pub(super) fn turn(spread: Span, rng: &mut Rng) -> Span {
    spread.scaled(rng.unit())
}

/// Returns the size of the session's largest datagram. Replies are not longer, because only datagrams up to this size are known
/// to fit the path.
pub(super) fn datagram(announce: &Announce, overhead: usize) -> usize {
    usize::from(announce.packet_size).saturating_sub(overhead)
}

/// Requests symbols, in datagrams of up to `limit` bytes. Neighbouring blocks with the same need share an entry. A relay cannot
/// create new symbols, so a request to a relay also lists the received symbols and the blocks with wrong symbols.
fn requests(
    wanted: &[(u32, u16)],
    here: Option<&dyn SymbolSink>,
    from: ReceiverId,
    echo: Echo,
    limit: usize,
) -> Vec<Message<'static>> {
    let mut needs: Vec<Need> = Vec::new();
    for &(block, symbols) in wanted {
        let wrong = here.is_some_and(|here| here.is_wrong(block, symbols));
        match needs.last_mut() {
            Some(last)
                if (last.symbols, last.wrong) == (symbols, wrong)
                    && last.first + u32::from(last.run) == block
                    && last.run < u16::MAX =>
            {
                last.run += 1;
            }
            _ => needs.push(Need { first: block, run: 1, symbols, wrong }),
        }
    }
    let most = match here {
        Some(_) => encode::max_needs_with_maps(limit),
        None => encode::max_needs(limit),
    };
    let request = |needs: &[Need]| {
        let blocks = needs.iter().filter(|need| need.run == 1 && need.symbols > 0);
        let held =
            here.map_or_else(Vec::new, |here| blocks.filter_map(|need| here.held(need.first)).collect());
        Message::Request(Request { from, needs: needs.to_vec(), held, echo })
    };
    needs.chunks(most.max(1)).map(request).collect()
}

fn set_pace(stream: &mut Stream, rtt: Span, spread: Span, repair_time: Span, now: Time) {
    if !stream.reports_alive {
        stream.member_at = stretched(stream.member_at, now, stream.spread, spread);
    }
    (stream.rtt, stream.spread) = (rtt, spread);
    let rtt = rtt.min(MAX_ROUND);
    // Requests need less spreading than membership messages, because one repair serves all receivers.
    stream.sink.set_pace(rtt + repair_time, spread.min(rtt * 2 + Span::from_millis(2)));
}

pub(super) fn millis(milliseconds: u32) -> Span {
    Span::from_millis(u64::from(milliseconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_fit_datagrams_and_list_every_missing_symbol() {
        let wanted: Vec<(u32, u16)> = (0..300).map(|at| (at * 2, 1 + at as u16 % 3)).collect();
        let from = ReceiverId::new(7).expect("it is not zero");
        for limit in [400, 416, 1_000, 1_472] {
            let mut asked = Vec::new();
            for request in requests(&wanted, None, from, NOTHING_YET, limit) {
                let mut out = Vec::new();
                encode::encode(&mut out, SessionId(1), 0, &request, usize::MAX / 2).expect("it has a form");
                assert!(out.len() <= limit, "{} of {limit}", out.len());
                let Message::Request(request) = request else { panic!("it asks") };
                asked.extend(request.needs.iter().map(|need| (need.first, need.symbols)));
            }
            assert_eq!(asked, wanted, "{limit}");
        }
    }
}
