//! A relay that parses and encodes datagrams. It receives one source, and sends the source's packets to its children at its own
//! rate.
//!
//! The test calls the relay as a driver does. After each call, the test performs the relay's actions, and reads the relay's next
//! departure and deadline. Packets that do not concern the congestion control (announcements, status messages, requests,
//! membership messages) are forwarded.

use super::net::{Net, OVERHEAD};
use super::node::Offer;
use super::secs;
use faircast_core::delivery::gaps::Gaps;
use faircast_core::node::{Cx, Departure, Effect, Effects, Relay, RelaySpec, SourceControl, Stamp, To};
use faircast_core::packet::{
    Body, Data, Echo, Layer, Payload, ReceiverId, Report, ReportContent, Seq, SessionId,
};
use faircast_core::rng::Rng;
use faircast_core::schemes::{CATALOGUE, Scheme, StatedRate};
use faircast_core::time::{Span, Time};
use faircast_simnet::Link;
use faircast_wire::{
    DataPacket, Member, MemberState, Message, Name, Newest, Words, encode, encode_data, parse,
};
use std::collections::VecDeque;

#[path = "../../../core/tests/toy/relay.rs"]
mod toy;

const BASE: Layer = Layer(0);

/// ID of the relay as a receiver of the source; no receiver of these tests has this ID.
const ME: u64 = 0xffff_fffe;

/// A host that is a member at its source, and a source for its children. Packets stay in order. So downstream packet numbers
/// equal upstream packet numbers until a packet is lost.
pub(super) struct RelayHost {
    relay: Box<dyn Relay + Send>,
    stated_rate: StatedRate,
    rng: Rng,
    effects: Effects,
    gaps: Gaps,
    newest: Newest,
    session: SessionId,
    /// Whether the relay has joined the session of the source.
    joined: bool,
    /// Number of the first packet with content.
    first: Option<u64>,
    /// Packets that were not forwarded yet.
    waiting: VecDeque<Vec<u8>>,
    pub(super) counts: RelayCounts,
}

/// Counts of a relay.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RelayCounts {
    pub(super) relayed: u64,
    pub(super) reports_received: u64,
    pub(super) reports_sent: u64,
    pub(super) max_waiting: usize,
}

/// A packet sent by the relay.
pub(super) enum Out {
    Down(Vec<u8>),
    /// A message of a child.
    Up(Vec<u8>),
    /// A message of the relay.
    Own(Vec<u8>),
}

impl RelayHost {
    pub(super) fn new(spec: &dyn RelaySpec, scheme: Scheme, children: usize, rng: Rng) -> RelayHost {
        let mut relay = spec.relay(ReceiverId::new(ME).expect("it is not zero"));
        relay.control(SourceControl::Members(children), Time::ZERO);
        RelayHost {
            relay,
            stated_rate: scheme.entry().stated_rate,
            rng,
            effects: Effects::new(),
            gaps: Gaps::new(1),
            newest: Newest::default(),
            session: SessionId(0),
            joined: false,
            first: None,
            waiting: VecDeque::new(),
            counts: RelayCounts::default(),
        }
    }

    /// Returns the relay's deadline.
    pub(super) fn next_timeout(&self) -> Time {
        match self.relay.departure(BASE) {
            Departure::At(at) if !self.waiting.is_empty() => at.min(self.relay.deadline()),
            _ => self.relay.deadline(),
        }
    }

    /// Processes a datagram from the source.
    pub(super) fn on_datagram(&mut self, bytes: &[u8], now: Time) -> Vec<Out> {
        let (header, message) = parse(bytes, &self.newest).expect("the source wrote it");
        self.session = header.session;
        let Message::Data(packet) = message else {
            let mut out = vec![Out::Down(bytes.to_vec())];
            if let (Message::Announce(_), false) = (message, std::mem::replace(&mut self.joined, true)) {
                out.push(Out::Own(joining(self.session)));
            }
            return out;
        };
        assert_eq!(packet.layer, BASE, "sessions at one rate are relayed");
        self.newest.learn(&packet.data);
        if packet.data.payload == Payload::NONE {
            return vec![Out::Down(bytes.to_vec())];
        }
        let first = *self.first.get_or_insert(packet.data.seq.0);
        let mut arrival = self.gaps.on_arrival(packet.data.seq);
        if packet.data.seq.0 == first {
            arrival.lost = 0;
        }
        arrival.size = (bytes.len() + OVERHEAD) as u16;
        self.waiting.push_back(bytes.to_vec());
        self.counts.max_waiting = self.counts.max_waiting.max(self.waiting.len());
        let mut cx = Cx { now, rng: &mut self.rng, effects: &mut self.effects };
        self.relay.on_data(&packet.data, BASE, arrival, &mut cx);
        self.go_on(now)
    }

    /// Processes a datagram from a child.
    pub(super) fn on_answer(&mut self, bytes: &[u8], now: Time) -> Vec<Out> {
        let (_, message) = parse(bytes, &self.newest).expect("a receiver wrote it");
        let mut out = Vec::new();
        let mut report = match message {
            Message::Report(report) => report,
            message => {
                out.push(Out::Up(bytes.to_vec()));
                // As at a source, the scheme gets membership messages and windows as signs of life.
                let (from, echo) = match message {
                    Message::Member(member) => (member.from, member.echo),
                    Message::Window(window) => (window.from, window.echo),
                    _ => return out,
                };
                if self.first.is_none_or(|first| echo.seq.0 < first || echo.seq > self.newest.seq) {
                    return out;
                }
                Report { from, layer: BASE, content: ReportContent::Alive { echo } }
            }
        };
        self.counts.reports_received += 1;
        let echo = report.content.echo_mut();
        echo.seq = Seq(echo.seq.0.saturating_sub(self.first.unwrap_or(0)));
        self.relay.on_report(&report, &mut Cx { now, rng: &mut self.rng, effects: &mut self.effects });
        out.extend(self.go_on(now));
        out
    }

    pub(super) fn on_time(&mut self, now: Time) -> Vec<Out> {
        if self.relay.deadline() <= now {
            self.relay.on_deadline(&mut Cx { now, rng: &mut self.rng, effects: &mut self.effects });
        }
        self.go_on(now)
    }

    /// Performs the relay's actions, and sends the permitted packets.
    fn go_on(&mut self, now: Time) -> Vec<Out> {
        let mut out = Vec::new();
        self.carry_out(&mut out);
        while matches!(self.relay.departure(BASE), Departure::At(at) if at <= now)
            && let Some(bytes) = self.waiting.pop_front()
        {
            let size = (bytes.len() + OVERHEAD) as u16;
            let mut cx = Cx { now, rng: &mut self.rng, effects: &mut self.effects };
            let stamp = self.relay.on_departure(BASE, size, &mut cx);
            out.push(Out::Down(self.stamped(&bytes, stamp, now)));
            self.counts.relayed += 1;
            self.carry_out(&mut out);
        }
        out
    }

    fn carry_out(&mut self, out: &mut Vec<Out>) {
        for effect in self.effects.drain() {
            let report = match effect {
                Effect::Report(report) => report,
                Effect::Send { to: To::Parent, packet } => match packet.body {
                    Body::Report(report) => report,
                    other => panic!("a parent hears reports, and not {other:?}"),
                },
                other => panic!("nobody can {other:?}"),
            };
            self.counts.reports_sent += 1;
            out.push(Out::Own(upwards(self.session, self.counts.reports_sent, report)));
        }
    }

    /// Returns the packet as the relay sends it, with unchanged content.
    fn stamped(&self, bytes: &[u8], stamp: Stamp, now: Time) -> Vec<u8> {
        let (header, message) = parse(bytes, &self.newest).expect("the source wrote it");
        let Message::Data(was) = message else { panic!("data waits") };
        let rate = self.stated_rate.stated(stamp.flags, (stamp.rate.bps() as f32).max(1.0));
        let data = Data {
            seq: Seq(stamp.seq.0 + self.first.unwrap_or(0)),
            sent_at: now,
            rate,
            flags: stamp.flags.with(was.data.flags),
            mark: stamp.mark,
            ..was.data
        };
        let mut out = Vec::new();
        encode_data(&mut out, header.session, &DataPacket { data, ..was }).expect("it fitted before");
        out
    }
}

/// Returns the relay's membership message.
fn joining(session: SessionId) -> Vec<u8> {
    let from = ReceiverId::new(ME).expect("it is not zero");
    let member = Member {
        from,
        nonce: 1,
        state: MemberState::Relaying,
        reason: 0,
        receivers: 1,
        done: 0,
        verified_bytes: 0,
        resumed_bytes: 0,
        blocks_missing: 0,
        rate: 0.0,
        loss: 0.0,
        dropped_local: 0,
        unwritten_bytes: 0,
        activity: faircast_wire::Activity::Network,
        percent: 0,
        echo: Echo { seq: Seq((1 << 62) - 1), hold: Span::ZERO },
        host: Name::clipped("relay"),
        why: Words::default(),
    };
    let mut bytes = Vec::new();
    encode(&mut bytes, session, 0, &Message::Member(member), 1000).expect("it fits");
    bytes
}

/// Encodes a report of the relay to the source.
fn upwards(session: SessionId, seq: u64, mut report: Report) -> Vec<u8> {
    report.from = ReceiverId::new(ME).expect("it is not zero");
    let mut bytes = Vec::new();
    encode(&mut bytes, session, seq as u32, &Message::Report(report), 1000).expect("a report fits");
    bytes
}

/// Returns the schemes at one rate.
fn schemes() -> impl Iterator<Item = (&'static str, Scheme)> {
    let all = CATALOGUE.iter().map(|entry| (entry.name, entry.name.parse::<Scheme>().expect("its own name")));
    all.filter(|(_, scheme)| scheme.layers() <= 1)
}

#[test]
fn relay_sends_a_session_at_its_own_rate() {
    for (name, scheme) in schemes() {
        // The upstream link is fast, and the downstream link is slow and lossy.
        let mut net = Net::new(11).with_trunk(Link::millis(5).mbps(50.0).fifo(100_000));
        let below = Link::millis(10).mbps(4.0).fifo(60_000).losing(0.0005);
        let all = net.receivers(2, below, Link::millis(10));
        let source = net.source(Offer::bytes(3_000_000).by(name).expect(2).at_most_mbps(1.5));
        net.put_in_front(0, RelayHost::new(&toy::ToyRelay(scheme), scheme, all.len(), Rng::new(3, 3)));
        net.run_to_end(secs(600));
        net.assert_all_verified(source, all);
        let counts = net.relay_counts(0);
        println!("{name}: {counts:?}, {:.1} s", net.sources[source].report().duration.as_secs_f64());
        assert!(counts.relayed > 2_000, "{name}: {counts:?}");
        assert!(counts.reports_received > 0, "{name}: the children speak to the relay: {counts:?}");
        assert!(counts.reports_sent > 0, "{name}: and it speaks to the source: {counts:?}");
    }
}

#[test]
fn relay_does_not_forward_reports_of_children_to_the_source() {
    let scheme: Scheme = "ormcc".parse().expect("a scheme");
    let mut net = Net::new(12).with_trunk(Link::millis(5).mbps(50.0).fifo(100_000));
    net.trace.record = true;
    let all = net.receivers(3, Link::millis(10).mbps(4.0).fifo(60_000).losing(0.01), Link::millis(10));
    let source = net.source(Offer::bytes(1_000_000).by("ormcc").expect(3).at_most_mbps(3.0));
    net.put_in_front(0, RelayHost::new(&toy::ToyRelay(scheme), scheme, all.len(), Rng::new(3, 3)));
    net.run_to_end(secs(300));
    net.assert_all_verified(source, all);
    let from: Vec<u64> = net
        .trace
        .up
        .iter()
        .filter_map(|(_, _, bytes)| match parse(bytes, &Newest::default()) {
            Ok((_, Message::Report(report))) => Some(report.from.get()),
            _ => None,
        })
        .collect();
    assert!(!from.is_empty() && from.iter().all(|from| *from == ME), "{from:?}");
}
