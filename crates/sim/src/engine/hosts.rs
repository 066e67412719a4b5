//! Hosts. Every host is a process with its own clock and is driven by its timers and by arrivals.

use super::Island;
use super::agents::{Agent, Ends, SenderAgent, SenderKind, SessionAgent, Talks};
use super::bundles::Logged;
use super::counters::after;
use super::links::UNICAST;
use super::nanos::{NEVER, Phase, mix, time};
use super::record::member_of;
use crate::calendar::{Class, Entry};
use crate::events::{CutCause, Happening};
use crate::frame::{Body, Frame};
use crate::network::FlowId;
use crate::routes::NONE;
use faircast_aqm::Ecn;
use faircast_core::node::{Cx, Departure, Effect, Receiver as _, SourceControl};
use faircast_core::packet::{self, Arrival, Data, Layer, Packet, Payload, Report, ReportContent};
use faircast_unicast::{Feedback, Segment, SegmentFlags, Sink as _};

impl Island {
    /// Processes a calendar entry of a host.
    pub(super) fn wake(&mut self, host: u32, now: u64) {
        let it = &mut self.hosts[host as usize];
        if it.scheduled != now {
            return; // an earlier entry took its place
        }
        it.scheduled = NEVER;
        if let Some(link) = it.bundled_link() {
            self.catch_up(link);
        }
        self.run_timers(host, now);
        self.schedule_host(host);
    }

    pub(super) fn schedule_host(&mut self, host: u32) {
        let it = &mut self.hosts[host as usize];
        if it.next < it.scheduled && it.next <= self.until {
            it.scheduled = it.next;
            let timer = it.next;
            match it.feeder() {
                None => self.calendar.push(Entry::new(timer, Class::Timer, host)),
                Some(feeder) => self.schedule_feeder(feeder, host, timer),
            }
        }
    }

    /// Runs the timers of a host up to and including `now`, in order.
    pub(super) fn run_timers(&mut self, host: u32, now: u64) {
        loop {
            let it = self.hosts[host as usize];
            if it.next > now {
                return;
            }
            if it.tournament != NONE {
                let winner = self.tournaments[it.tournament as usize].winner() as u32;
                self.run_timer(it.first + winner, it.next);
                let deadline = self.slots[(it.first + winner) as usize].deadline;
                let tournament = &mut self.tournaments[it.tournament as usize];
                tournament.set(winner as usize, deadline);
                self.hosts[host as usize].next = tournament.next();
                continue;
            }
            for slot in it.first..it.first + it.count {
                if it.count == 1 || self.slots[slot as usize].deadline <= it.next {
                    self.run_timer(slot, it.next);
                }
            }
            self.find_next(host);
        }
    }

    fn run_timer(&mut self, slot: u32, now: u64) {
        let agent = self.slots[slot as usize].agent;
        match agent {
            Agent::Source(session) => self.source_timer(session, now),
            Agent::Member { session, member } => self.member_timer(session, member, now),
            Agent::Sender(number) => self.sender_timer(number, now),
            Agent::Sink(number) => self.sink_timer(number, now),
        }
        let after = &mut self.slots[slot as usize].deadline;
        debug_assert!(*after > now, "{agent:?} does not let go of its deadline");
        *after = (*after).max(now + 1);
    }

    fn find_next(&mut self, host: u32) {
        let it = &mut self.hosts[host as usize];
        let slots = &self.slots[it.first as usize..(it.first + it.count) as usize];
        it.next = slots.iter().map(|slot| slot.deadline).min().unwrap_or(NEVER);
    }

    /// Sets an agent's deadline, if an event other than the agent's timer has changed it.
    pub(super) fn set_deadline(&mut self, host: u32, slot: u32, deadline: u64) {
        let it = &mut self.hosts[host as usize];
        if it.count == 1 {
            it.next = deadline;
        } else if it.tournament != NONE {
            self.slots[slot as usize].deadline = deadline;
            let tournament = &mut self.tournaments[it.tournament as usize];
            tournament.set((slot - it.first) as usize, deadline);
            it.next = tournament.next();
        } else {
            let before = std::mem::replace(&mut self.slots[slot as usize].deadline, deadline);
            if deadline <= it.next {
                it.next = deadline;
            } else if before == it.next {
                self.find_next(host);
            }
        }
        self.schedule_host(host);
    }

    /// Delivers a report, a unicast packet or other feedback to the host of the addressee.
    pub(super) fn deliver(&mut self, now: u64, frame: &Frame) {
        self.arrivals += 1;
        match frame.body {
            Body::Report(report) => self.deliver_report(frame.flow, frame.generation, now, &report),
            Body::Segment(segment) => self.deliver_segment(now, frame, &segment),
            Body::Feedback(feedback) => self.deliver_feedback(now, frame, &feedback),
            Body::Datagram(number) => self.deliver_datagram(now, frame, number),
            Body::Data(_) => {}
            Body::Order(order) => self.deliver_order(frame.flow, now, &order),
            Body::Direct { slot, member } => {
                let packet = frame.logged(now, self.store.get(slot));
                self.deliver_in_tree(frame.flow, member, &packet);
                self.store.release(slot);
            }
        }
    }

    // Sessions.

    fn source_timer(&mut self, number: u32, now: u64) {
        let it = &mut self.sessions[number as usize];
        if it.sampler.next <= now {
            it.sampler.next = now + it.sampler.every;
            let view = it.source.observe();
            self.records.sample_session(it.flow, now, view);
            if it.layers > 1 {
                self.records.sample_layers(it.flow, &it.source);
            }
            let has_tree = it.tree.is_some();
            if has_tree {
                self.sample_windows(number, now);
            }
        }
        let it = &mut self.sessions[number as usize];
        if it.phase == Phase::Waiting && it.probe_at() <= now {
            it.probes_left -= 1;
            self.send(number, Layer(0), now);
        }
        let it = &mut self.sessions[number as usize];
        if it.phase == Phase::Waiting && it.start <= now {
            it.phase = Phase::Running;
            // A transport also informs its source of the number of members before the source starts.
            it.source.control(SourceControl::Members(it.at_start), time(now));
            it.source.start(&mut Cx { now: time(now), rng: &mut it.rng, effects: &mut self.effects });
            it.starting = it.source.observe().starting;
            self.records.note(now, Happening::Started { flow: FlowId(it.flow) });
            self.carry_out_for_source(number, now);
        }
        let it = &mut self.sessions[number as usize];
        if it.phase == Phase::Running && it.stop <= now {
            it.phase = Phase::Stopped;
            self.records.note(now, Happening::Stopped { flow: FlowId(it.flow) });
        }
        if it.phase == Phase::Running {
            if it.source.deadline().as_nanos() <= now {
                // Receivers of a transport periodically report their presence. Here the source is informed without packets.
                if it.has_members(now) {
                    it.source.control(SourceControl::SignOfLife, time(now));
                }
                self.records.expect_cut(|| CutCause {
                    before: it.source.observe().rate,
                    reason: "deadline",
                    member: None,
                });
                it.source.on_deadline(&mut Cx {
                    now: time(now),
                    rng: &mut it.rng,
                    effects: &mut self.effects,
                });
                self.carry_out_for_source(number, now);
                self.note_source(number, now);
            }
            self.depart(number, now);
        }
        let deadline = self.source_deadline(number, now);
        let slot = self.sessions[number as usize].slot;
        self.slots[slot as usize].deadline = deadline;
    }

    /// Sends the packets that the source permits at `now`.
    pub(super) fn depart(&mut self, number: u32, now: u64) {
        loop {
            let it = &mut self.sessions[number as usize];
            let (at, layer) = it.departure(now);
            if at > now {
                return;
            }
            it.left -= 1;
            self.send(number, layer, now);
        }
    }

    /// Sends the next packet of the source.
    #[inline]
    fn send(&mut self, number: u32, layer: Layer, now: u64) {
        let mut it = &mut self.sessions[number as usize];
        let cx = &mut Cx { now: time(now), rng: &mut it.rng, effects: &mut self.effects };
        let stamp = it.source.on_departure(layer, it.packet_size, cx);
        let mut data = Data {
            seq: stamp.seq,
            sent_at: it.source.reads(time(now)),
            rate: stamp.rate.bps() as f32,
            payload: Payload::NONE,
            flags: stamp.flags,
            signal: stamp.signal,
            mark: stamp.mark,
        };
        let (size, root, bundle, flow, id) = (it.packet_size, it.root, it.root_bundle, it.flow, it.id);
        let (layers, stated_rate) = (it.layers, it.stated_rate);
        let capable = it.capable;
        if it.sent_meter.is_over(now) {
            self.turn_source(number, now);
            it = &mut self.sessions[number as usize];
        }
        it.sent += 1;
        it.sent_meter.bytes += u64::from(size);
        if let Some(passage) = &mut self.passage {
            let packet = Packet { session: id, layer, size, body: packet::Body::Data(data) };
            if let packet::Body::Data(passed) = passage.pass(&packet).body {
                data = passed;
            }
        }
        data.rate = stated_rate.stated(data.flags, data.rate);
        if layers > 1 {
            self.records.sent_on(flow, layer, size);
        }
        let packet = Logged { at: now, data, size, layer, marked: false, capable };
        self.carry_out_for_source(number, now);
        self.fan_out(root, bundle, &packet, &mut None);
    }

    pub(super) fn source_deadline(&self, number: u32, now: u64) -> u64 {
        let it = &self.sessions[number as usize];
        let own = match it.phase {
            Phase::Waiting => it.start.min(it.probe_at()),
            Phase::Running => it.departure(now).0.min(it.source.deadline().as_nanos()).min(it.stop),
            Phase::Stopped => NEVER,
        };
        own.min(it.sampler.next)
    }

    fn deliver_report(&mut self, number: u32, epoch: u8, now: u64, report: &Report) {
        if self.sessions[number as usize].tree.is_some()
            && self.deliver_to_parent(number, epoch, now, report).is_some()
        {
            return;
        }
        let host = self.sessions[number as usize].host;
        self.run_timers(host, now);
        let it = &mut self.sessions[number as usize];
        self.records.feedback(it.flow);
        self.records.round_trip(it.flow, report, || it.source.round_trip(report.content.echo(), time(now)));
        if it.phase == Phase::Running {
            self.records.expect_cut(|| CutCause {
                before: it.source.observe().rate,
                reason: report.content.reason(),
                member: Some(member_of(report.from)),
            });
            it.source
                .on_report(report, &mut Cx { now: time(now), rng: &mut it.rng, effects: &mut self.effects });
            self.carry_out_for_source(number, now);
            self.note_source(number, now);
            self.depart(number, now);
        } else if it.phase == Phase::Waiting && it.alive.is_some() {
            // The report answers a probe.
            it.source
                .on_report(report, &mut Cx { now: time(now), rng: &mut it.rng, effects: &mut self.effects });
        }
        self.carry_out_for_source(number, now);
        let (deadline, slot) = (self.source_deadline(number, now), self.sessions[number as usize].slot);
        self.set_deadline(host, slot, deadline);
    }

    /// Records changes of the source's representative, and cuts of the source's rate.
    fn note_source(&mut self, number: u32, now: u64) {
        let it = &mut self.sessions[number as usize];
        let view = it.source.observe();
        if view.limiting != it.followed {
            it.followed = view.limiting;
            self.records.follows(it.flow, now, view.limiting);
        }
        if view.cuts > it.cuts {
            it.cuts = view.cuts;
            self.records.cut_session(it.flow, now, view.rate);
        }
        if it.starting && !view.starting {
            let flow = FlowId(it.flow);
            self.records.note(now, Happening::StartUpEnded { flow, rate: view.rate });
        }
        it.starting = view.starting;
        if it.tree.is_some() {
            self.trace_window(number, now);
        }
    }

    /// Delivers a session's data to a member.
    #[inline]
    pub(super) fn deliver_data(
        &mut self,
        session: u32,
        number: u32,
        now: u64,
        data: &Data,
        size: u16,
        marked: bool,
    ) {
        let host = self.sessions[session as usize].members[number as usize].host;
        if self.hosts[host as usize].next <= now {
            self.run_timers(host, now);
        }
        let mut it = &mut self.sessions[session as usize].members[number as usize];
        if now < it.join || now >= it.leave {
            return;
        }
        self.arrivals += 1;
        if it.meter.is_over(now) {
            self.turn_member(session, number, now);
            it = &mut self.sessions[session as usize].members[number as usize];
        }
        let arrival = Arrival { size, marked, ..it.gaps.on_arrival(data.seq) };
        it.count(now, data.seq.0, size);
        it.meter.bytes += u64::from(size);
        if let Some(extra) = &mut it.extra {
            extra.on_data(it.number, data, now, &mut self.effects);
        }
        if let Some(below) = it.relay() {
            self.carry_out(session, number, now);
            return self.deliver_to_relay(below, (Layer(0), data), arrival, now);
        }
        let cx = &mut Cx { now: time(now), rng: &mut it.rng, effects: &mut self.effects };
        it.receiver.on_data(data, Layer(0), arrival, cx);
        self.after_data(session, number, now);
    }

    /// Updates a member's deadline and sends its feedback after the member has received data.
    pub(super) fn after_data(&mut self, session: u32, number: u32, now: u64) {
        let it = &mut self.sessions[session as usize].members[number as usize];
        let deadline = it.deadline();
        if deadline != it.deadline {
            it.deadline = deadline;
            let (host, slot) = (it.host, it.slot);
            self.set_deadline(host, slot, deadline);
        }
        if !self.effects.as_slice().is_empty() {
            self.carry_out(session, number, now);
        }
    }

    fn member_timer(&mut self, session: u32, number: u32, now: u64) {
        if self.sessions[session as usize].tree.is_some() {
            return self.tree_timer(session, number, now);
        }
        let SessionAgent { members, scheme, layers, .. } = &mut self.sessions[session as usize];
        let layers = *layers;
        let it = &mut members[number as usize];
        let relay = it.relay();
        let cx = &mut Cx { now: time(now), rng: &mut it.rng, effects: &mut self.effects };
        it.receiver.on_deadline(cx);
        let leaves = it.leave <= now && it.leave != NEVER;
        if leaves {
            it.receiver.on_leave(cx);
            it.leave(scheme);
        }
        it.deadline = it.deadline();
        let (slot, deadline) = (it.slot, it.deadline);
        self.slots[slot as usize].deadline = deadline;
        if leaves && layers > 1 {
            self.unsubscribe(session, number, now);
        }
        self.carry_out(session, number, now);
        if leaves && let Some(below) = relay {
            self.relay_leaves(below, now);
        }
    }

    /// Carries out a member's actions.
    pub(super) fn carry_out(&mut self, session: u32, number: u32, now: u64) {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain() {
            match effect {
                Effect::Report(report) => self.send_report(session, number, now, report),
                Effect::Subscribe(layer) => self.subscribe(session, number, now, layer),
                Effect::Leave => self.exclude(session, number, now),
                Effect::Send { .. } | Effect::Attend(_) => self.refuse(
                    "a receiver",
                    "sends packets or changes groups, which relays and members of trees do",
                ),
            }
        }
        self.effects = effects;
    }

    /// Excludes a member: it leaves at once and does not return.
    #[cold]
    fn exclude(&mut self, session: u32, number: u32, now: u64) {
        let it = &mut self.sessions[session as usize].members[number as usize];
        let extra = it.extra.get_or_insert_default();
        extra.excluded = Some(now);
        extra.returns.clear();
        (it.leave, it.deadline) = (now + 1, now + 1);
        let (host, slot) = (it.host, it.slot);
        self.slots[slot as usize].deadline = now + 1;
        self.set_deadline(host, slot, now + 1);
    }

    pub(super) fn send_report(&mut self, session: u32, number: u32, now: u64, mut report: Report) {
        let it = &mut self.sessions[session as usize];
        let (size, id) = (it.report_size, it.id);
        let member = &mut it.members[number as usize];
        if member.extra.as_ref().and_then(|extra| extra.mute).is_some_and(|mute| mute.is_silent()) {
            return;
        }
        member.reports += 1;
        member.acknowledgements += u32::from(matches!(report.content, ReportContent::Selective { .. }));
        let at = member.hop;
        if let Some(passage) = &mut self.passage {
            let body = packet::Body::Report(report);
            let packet = Packet { session: id, layer: report.layer, size, body };
            if let packet::Body::Report(passed) = passage.pass(&packet).body {
                report = passed;
            }
        }
        let body = Body::Report(report);
        let frame =
            Frame { flow: session, at, size, generation: 0, ecn: Ecn::NotEct, marked: false, rank: 0, body };
        self.offer_hop(now, frame);
    }

    // Unicast flows.

    fn sender_timer(&mut self, number: u32, now: u64) {
        let it = &mut self.senders[number as usize];
        if it.rest.sampler.next <= now {
            it.rest.sampler.next = now + it.rest.sampler.every;
            match &it.kind {
                SenderKind::Controlled(sender) => {
                    self.records.sample_unicast(it.flow, now, after(&it.rest.before, sender.observe()));
                }
                SenderKind::Shared => {
                    let view = self.observe_shared(number);
                    let it = &self.senders[number as usize];
                    self.records.sample_unicast(it.flow, now, after(&it.rest.before, view));
                }
                SenderKind::Datagrams { .. } => {}
            }
        }
        let it = &mut self.senders[number as usize];
        if it.phase == Phase::Waiting && it.rest.start <= now {
            it.phase = Phase::Running;
            self.records.note(now, Happening::Started { flow: FlowId(it.flow) });
            self.open(number, now);
        }
        let it = &mut self.senders[number as usize];
        if it.phase == Phase::Running && it.rest.stop <= now {
            it.phase = Phase::Stopped;
            self.records.note(now, Happening::Stopped { flow: FlowId(it.flow) });
            self.stop_coordinated(number, now);
        }
        let it = &mut self.senders[number as usize];
        if it.phase == Phase::Running {
            if it.rest.application.next <= now {
                self.application_turns(number, now);
            }
            let it = &mut self.senders[number as usize];
            if it.membership != NONE {
                self.coordinated_timer(number, now);
            } else if let SenderKind::Controlled(sender) = &mut it.kind
                && sender.deadline().as_nanos() <= now
            {
                let before = sender.observe().timeouts;
                sender.on_deadline(&mut Cx { now: time(now), rng: &mut it.rng, effects: &mut self.effects });
                for _ in before..sender.observe().timeouts {
                    self.records.timeout(it.flow, now);
                }
                self.note_cuts(number, now);
            }
            self.pump(number, now);
        }
        let it = &self.senders[number as usize];
        if it.membership != NONE {
            self.settle_group(it.membership, now);
        }
        let wakes = self.group_timer(&self.senders[number as usize]);
        let it = &mut self.senders[number as usize];
        it.find_other();
        it.deadline = sender_deadline(it).min(wakes);
        self.slots[it.slot as usize].deadline = it.deadline;
    }

    /// Sends the packets that the sender permits at `now`.
    pub(super) fn pump(&mut self, number: u32, now: u64) {
        loop {
            let it = &mut self.senders[number as usize];
            let SenderKind::Controlled(sender) = &mut it.kind else { return self.pump_other(number, now) };
            match sender.departure() {
                Departure::At(at) if at.as_nanos() <= now => {}
                _ => return,
            }
            let cx = &mut Cx { now: time(now), rng: &mut it.rng, effects: &mut self.effects };
            let segment = sender.on_departure(cx);
            if it.membership != NONE && !segment.flags.has(SegmentFlags::SYN) {
                self.note_departure(number, segment.seq, now);
            }
            self.emit(number, Body::Segment(segment), segment.flags, now);
        }
    }

    /// Sends the packets of a datagram flow or of a macroflow.
    fn pump_other(&mut self, number: u32, now: u64) {
        loop {
            let it = &mut self.senders[number as usize];
            let SenderKind::Datagrams { gap, jitter, next, number: datagram } = &mut it.kind else {
                return self.pump_shared(number, now);
            };
            if *next > now || it.rest.application.talks == Talks::Off {
                return;
            }
            let (packets, _) = it.rest.application.transfer;
            if *datagram >= packets {
                return;
            }
            let factor = 1.0 + *jitter * (2.0 * it.rng.unit() - 1.0);
            *next += ((*gap * factor) as u64).max(1);
            *datagram += 1;
            if it.membership != NONE {
                self.offer_datagram(number);
            } else {
                let body = Body::Datagram(*datagram);
                self.emit(number, body, SegmentFlags::default(), now);
            }
        }
    }

    /// Sends a packet of a unicast flow. Inlined, because a call would cost 50 instructions to copy the body.
    #[inline(always)]
    pub(super) fn emit(&mut self, number: u32, body: Body, flags: SegmentFlags, now: u64) {
        let mut it = &mut self.senders[number as usize];
        let opens = flags.has(SegmentFlags::SYN);
        let size = if opens { it.small } else { it.size };
        if it.sent_meter.is_over(now) {
            self.turn_sender(number, now);
            it = &mut self.senders[number as usize];
        }
        it.sent += u64::from(!opens);
        it.again += u32::from(flags.has(SegmentFlags::AGAIN));
        it.sent_meter.bytes += u64::from(size);
        let ecn = if flags.has(SegmentFlags::ECT) { ecn_of(flags) } else { Ecn::NotEct };
        let generation = it.generation;
        let flow = UNICAST | number;
        let frame = Frame { flow, at: it.hop, size, generation, ecn, marked: false, rank: 0, body };
        self.offer_hop(now, frame);
    }

    fn deliver_feedback(&mut self, now: u64, frame: &Frame, feedback: &Feedback) {
        let number = frame.flow & !UNICAST;
        let host = self.senders[number as usize].host;
        if self.hosts[host as usize].next <= now {
            self.run_timers(host, now);
        }
        let it = &mut self.senders[number as usize];
        it.feedback += 1;
        it.digest = mix(it.digest, now, 1);
        if it.phase != Phase::Running || frame.generation != it.generation {
            return;
        }
        if it.membership != NONE {
            return self.coordinated_feedback(number, now, feedback);
        }
        if let SenderKind::Controlled(sender) = &mut it.kind {
            sender.on_feedback(
                feedback,
                &mut Cx { now: time(now), rng: &mut it.rng, effects: &mut self.effects },
            );
            if sender.cuts() != it.cuts {
                self.note_cuts(number, now);
            }
        }
        self.pump(number, now);
        if self.senders[number as usize].ends == Ends::Sometimes {
            self.finish_transfer(number, now);
        }
        let it = &mut self.senders[number as usize];
        let deadline = sender_deadline(it);
        if deadline != it.deadline {
            it.deadline = deadline;
            let slot = it.slot;
            self.set_deadline(host, slot, deadline);
        }
    }

    fn deliver_segment(&mut self, now: u64, frame: &Frame, segment: &Segment) {
        let number = frame.flow & !UNICAST;
        let host = self.sinks[number as usize].host;
        if self.hosts[host as usize].next <= now {
            self.run_timers(host, now);
        }
        let mut it = &mut self.sinks[number as usize];
        if frame.generation != it.generation {
            if frame.generation.wrapping_sub(it.generation) > 128 {
                return; // of a connection that is over
            }
            it.generation = frame.generation;
            it.delivered_before += it.sink.as_ref().map_or(0, |sink| sink.delivered());
            it.sink = self.senders[number as usize].rest.protocol.map(|protocol| protocol.sink());
        }
        if it.meter.is_over(now) {
            self.turn_sink(number, now);
            it = &mut self.sinks[number as usize];
        }
        it.packets += u64::from(!segment.flags.has(SegmentFlags::SYN));
        it.bytes += u64::from(frame.size);
        it.meter.bytes += u64::from(frame.size);
        it.digest = mix(it.digest, now, u64::from(segment.seq));
        if let Some(delays) = &mut it.delays
            && !segment.flags.has(SegmentFlags::SYN)
        {
            let span = self.moments.0.partition_point(|moment| *moment <= now);
            delays[span].add(time(now).since(segment.sent_at).as_secs_f64());
        }
        let Some(sink) = &mut it.sink else { return };
        let cx = &mut Cx { now: time(now), rng: &mut it.rng, effects: &mut self.effects };
        let answer = sink.on_segment(segment, frame.marked, cx);
        let deadline = sink.deadline().as_nanos();
        if deadline != it.deadline {
            it.deadline = deadline;
            let slot = it.slot;
            self.set_deadline(host, slot, deadline);
        }
        if let Some(feedback) = answer {
            self.answer(number, now, feedback);
        }
    }

    fn deliver_datagram(&mut self, now: u64, frame: &Frame, datagram: u32) {
        let number = frame.flow & !UNICAST;
        let mut it = &mut self.sinks[number as usize];
        if it.meter.is_over(now) {
            self.turn_sink(number, now);
            it = &mut self.sinks[number as usize];
        }
        it.packets += 1;
        it.bytes += u64::from(frame.size);
        it.meter.bytes += u64::from(frame.size);
        it.digest = mix(it.digest, now, u64::from(datagram));
    }

    fn sink_timer(&mut self, number: u32, now: u64) {
        let it = &mut self.sinks[number as usize];
        let Some(sink) = &mut it.sink else { return };
        let cx = &mut Cx { now: time(now), rng: &mut it.rng, effects: &mut self.effects };
        let answer = sink.on_deadline(cx);
        it.deadline = sink.deadline().as_nanos();
        self.slots[it.slot as usize].deadline = it.deadline;
        if let Some(feedback) = answer {
            self.answer(number, now, feedback);
        }
    }

    fn answer(&mut self, number: u32, now: u64, feedback: Feedback) {
        let it = &mut self.sinks[number as usize];
        it.reports += 1;
        let (at, size, generation) = (it.hop, it.small, it.generation);
        let (flow, body) = (UNICAST | number, Body::Feedback(feedback));
        let frame = Frame { flow, at, size, generation, ecn: Ecn::NotEct, marked: false, rank: 0, body };
        self.offer_hop(now, frame);
    }
}

#[cold]
fn ecn_of(flags: SegmentFlags) -> Ecn {
    if flags.has(SegmentFlags::ECT1) { Ecn::Ect1 } else { Ecn::Ect0 }
}

pub(super) fn sender_deadline(it: &SenderAgent) -> u64 {
    if it.phase != Phase::Running {
        return it.other;
    }
    let SenderKind::Controlled(sender) = &it.kind else { return other_deadline(it).min(it.other) };
    let departure = match sender.departure() {
        Departure::At(at) => at.as_nanos(),
        Departure::AfterReport => NEVER,
    };
    departure.min(sender.deadline().as_nanos()).min(it.other)
}

fn other_deadline(it: &SenderAgent) -> u64 {
    match &it.kind {
        SenderKind::Datagrams { next, number, .. } => {
            let application = &it.rest.application;
            let more = application.talks == Talks::On && *number < application.transfer.0;
            if more { *next } else { NEVER }
        }
        // The timer of a macroflow is stored in its first flow; a controlled sender has a departure time instead of a timer.
        SenderKind::Shared | SenderKind::Controlled(_) => NEVER,
    }
}
