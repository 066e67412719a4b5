//! The same network in two worlds: in the simulator, and between the transport's sessions without sockets. The scheme must behave
//! identically in both worlds, to the last bit. Each packet offered to a link must have the same time, content and loss.
//!
//! The transport does more than the simulator. These settings prevent the additional functions from disturbing the scheme ([`Setting::EQUAL`]):
//! - Announcements, status messages and requests bypass the links, with the same delay, but without using their capacity.
//! - Every receiver has joined when the source starts. Later membership messages are lost: a scheme takes round-trip samples from them,
//!   but the simulator has no such messages. The guard against silence is off.
//! - Packets are never reordered, and the receivers are configured for a network without reordering. The schemes at both ends
//!   draw from the simulator's random streams.
//! - The fields of packets in the simulator are rounded as in datagrams ([`Rounding`]); for example, marks have 16 bits.
//! - The receivers' clocks are ahead by a multiple of the time buckets in which throughput is measured.
//! - Rates are low, because above a packet per millisecond the transport sends several packets at a time. All reports count as equally
//!   long.
//! - Slow start is tested separately, because its packets are longer by two bytes, which state the rate. It is tested with one receiver,
//!   because only the transport reports the number of receivers to the scheme.

#[path = "../../../core/tests/toy/router.rs"]
mod toy;

use super::hop::{Hop, Out};
use super::net::OVERHEAD;
use crate::config::{Destination, ReplayPolicy, SlowReceiverPolicy};
use crate::endpoint::Endpoint;
use crate::object::ObjectStream;
use crate::receiver;
use crate::source::{self, block_source::BlockSource, scheduler::of_blocks};
use crate::step_driver::{give, take_all};
use faircast_aqm::{Ecn, Limit, Link, LinkSpec, LossSpec, OfferResult, QueueSpec};
use faircast_core::bounds::Guard;
use faircast_core::packet::{
    Body, Cause, Data, Echo, Flags, Layer, Mark, Packet, Payload, ReceiverId, Report, ReportContent, Seq,
    SessionId,
};
use faircast_core::rate::{Bounds, Start, start::Doubling};
use faircast_core::rng::Rng;
use faircast_core::schemes::{Scheme, ormcc::Config};
use faircast_core::time::{Rate, Span, Time};
use faircast_sim::{
    FlowId, LinkId, Network, Options, PacketTransform, ReceiverSpec, SessionSpec, Tapped, TappedPacket,
};
use faircast_wire::{
    Form, Kind, Message, Newest, Quantised, ReceiverCodec, SourceCodec, Spacing, data_header_len, encode,
    parse, peek,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs::File;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// Session ID: the number that the simulator gives to its first session.
const SESSION: SessionId = SessionId(1);

/// Size of a symbol, bytes.
const SYMBOL: u16 = 952;

/// Time zero of the session, in seconds since 1970.
const UNIX_SECS: u64 = 1_800_000_000;

/// Time between the receivers' start and the source's start.
const EARLIER: Span = Span::from_secs(1);

/// A source, a router, and receivers, each with a link to the router.
struct Star {
    seed: u64,
    scheme: Scheme,
    /// Size of a data packet on the simulator's links, bytes. In the transport, packets have their real size.
    packet_size: u16,
    /// Link between source and router, in both directions.
    trunk: LinkSpec,
    /// Links from the router to each receiver, and back.
    leaves: Vec<(LinkSpec, LinkSpec)>,
    /// Functions of the router in addition to forwarding.
    router: Option<toy::ToyRouter>,
    until: Time,
}

/// Settings in which the sessions differ from the simulator.
#[derive(Debug, Clone, Copy)]
struct Setting {
    received: AcceptedFeedback,
    /// Number of later packets that must arrive before a packet counts as lost.
    reordering: u8,
    /// Time by which the receivers' clocks are ahead of the source's clock.
    ahead: Span,
}

/// Messages of members that the source receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AcceptedFeedback {
    /// Only the reports of the schemes.
    Reports,
    /// Reports and requests.
    Requests,
    /// Reports, requests and membership messages.
    Everything,
}

impl Setting {
    /// The simulator's setting. The largest time bucket of the throughput measurement has 2^40 ns.
    const EQUAL: Setting =
        Setting { received: AcceptedFeedback::Requests, reordering: 1, ahead: Span::from_nanos(1 << 40) };

    /// The setting of real networks.
    const REAL: Setting = Setting {
        received: AcceptedFeedback::Everything,
        reordering: receiver::REORDERING,
        ahead: Span::from_nanos(1_234_567_891_234),
    };
}

/// The record of a run.
struct Trace {
    /// All packets offered to any link.
    packets: Vec<Tapped>,
    /// Rate after each departure, bit/s.
    rates: Vec<(Time, Seq, f32)>,
    cuts: u64,
}

impl Trace {
    /// Returns a digest (FNV-1a) of the time, link, size, number and loss of each packet.
    fn digest(&self) -> u64 {
        let mut digest = 0xcbf2_9ce4_8422_2325_u64;
        for tapped in &self.packets {
            let number = match tapped.what {
                TappedPacket::Session(Packet { body: Body::Data(data), .. }) => data.seq.0,
                _ => u64::MAX,
            };
            let is_lost = u64::from(tapped.lost.is_some());
            for value in
                [tapped.at.as_nanos(), u64::from(tapped.link.0), u64::from(tapped.size), number, is_lost]
            {
                digest = (digest ^ value).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
        digest
    }

    fn lost(&self) -> usize {
        self.packets.iter().filter(|packet| packet.lost.is_some()).count()
    }

    /// Returns the number of reports that reached the router.
    fn reports(&self) -> usize {
        self.packets.iter().filter(|packet| packet.link == LinkId(1)).count()
    }

    /// Returns the number of different representatives.
    fn representatives(&self) -> usize {
        let followed = self.packets.iter().filter_map(|packet| match packet.what {
            TappedPacket::Session(Packet {
                body: Body::Data(Data { mark: Mark::Representative { id, .. }, .. }),
                ..
            }) => id,
            _ => None,
        });
        followed.collect::<BTreeSet<_>>().len()
    }
}

fn link(mbps: f64, millis: u64, queue: QueueSpec) -> LinkSpec {
    LinkSpec::new(Rate::from_mbps(mbps), Span::from_millis(millis), queue)
}

fn wide(mbps: f64, millis: u64) -> LinkSpec {
    link(mbps, millis, QueueSpec::UNLIMITED)
}

/// Returns a link with a drop-tail queue of this number of packets.
fn narrow(mbps: f64, millis: u64, packets: u32) -> LinkSpec {
    link(mbps, millis, QueueSpec::DropTail(Limit::Packets(packets)))
}

/// Returns the size of a data packet on the link, bytes.
fn packet_size() -> u16 {
    let mark = Mark::Representative { id: None, mean: 0.0, deviation: 0.0, rtt_max: 0.0 };
    let without_rate = data_header_len(&mark, Form::Open) - 2;
    SYMBOL + (without_rate + OVERHEAD) as u16
}

/// Returns the size of a congestion report on the link, bytes.
fn report_size() -> u16 {
    let echo = Echo { seq: Seq(0), hold: Span::ZERO };
    let content = ReportContent::Congested { echo, level: 1.0, mean: 1.0, cause: Cause::Loss };
    let report = Report { from: receiver_id(0), layer: Layer(0), content };
    let mut bytes = Vec::new();
    encode(&mut bytes, SESSION, 0, &Message::Report(report), 1000).expect("a report fits");
    (bytes.len() + OVERHEAD) as u16
}

/// Returns the ID that the simulator gives to a member.
fn receiver_id(index: usize) -> ReceiverId {
    ReceiverId::new(index as u64 + 1).expect("one more than something")
}

impl Star {
    /// Returns a star with three different bottlenecks, and round-trip times of 24 to 64 ms.
    fn of_three(scheme: Scheme, secs: u64) -> Star {
        Star {
            seed: 7,
            scheme: scheme.with_packet_size(packet_size()),
            packet_size: packet_size(),
            trunk: wide(10.0, 2),
            leaves: vec![
                (narrow(1.0, 10, 10), wide(1.0, 10)),
                (narrow(0.8, 20, 20), wide(1.0, 20)),
                (narrow(0.9, 30, 15), wide(1.0, 30)),
            ],
            router: None,
            until: Time::ZERO + Span::from_secs(secs),
        }
    }

    /// Returns a star with two to seven receivers behind random bottlenecks.
    fn at_random(seed: u64) -> Star {
        let mut rng = Rng::new(seed, 1);
        let scheme = if rng.chance(0.5) { as_the_seed() } else { as_shipped(Start::Linear) };
        // The maximum rate is low, so packets are sent one at a time.
        let bounds = Bounds { min: Rate::ZERO, max: Rate::from_mbps(7.0) };
        let leaf = |_| {
            let (mbps, micros) = (0.2 + rng.unit() * 3.0, 500 + rng.below(50_000));
            let delay = Span::from_micros(micros);
            let loss = rng.chance(0.3).then_some(LossSpec::Bernoulli(0.02));
            let queue = ["droptail,8", "droptail,30", "red"][rng.below(3) as usize];
            let queue = queue.parse().expect("a queue");
            (
                LinkSpec { loss, ..LinkSpec::new(Rate::from_mbps(mbps), delay, queue) },
                LinkSpec { delay, loss, ..wide(0.5, 0) },
            )
        };
        let leaves = (0..2 + seed % 6).map(leaf).collect();
        let trunk = LinkSpec { delay: Span::from_micros(1 + rng.below(9_000)), ..wide(10.0, 0) };
        let until = Time::ZERO + Span::from_secs(25);
        Star {
            seed,
            scheme: scheme.with_packet_size(packet_size()).with_bounds(bounds),
            packet_size: packet_size(),
            trunk,
            leaves,
            router: None,
            until,
        }
    }

    fn network(&self) -> Network {
        let mut net = Network::new(self.seed);
        let (source, router) = (net.node(), net.node());
        let mut links = Vec::from(<[LinkId; 2]>::from(net.duplex(source, router, self.trunk, self.trunk)));
        let mut members = Vec::new();
        for (down, up) in &self.leaves {
            let node = net.node();
            links.extend(<[LinkId; 2]>::from(net.duplex(router, node, *down, *up)));
            members.push(ReceiverSpec { node, join: Time::ZERO, leave: Time::NEVER, mute_after: None });
        }
        links.into_iter().for_each(|link| net.tap(link));
        if let Some(spec) = self.router {
            net.router(router, Arc::new(spec));
        }
        net.session(SessionSpec {
            scheme: self.scheme,
            packet_size: self.packet_size,
            report_size: report_size(),
            source,
            members,
            start: Time::ZERO,
            stop: Time::NEVER,
            join_latency: Span::ZERO,
            leave_latency: Span::ZERO,
            alive: None,
        });
        net
    }

    fn simulated(&self) -> Trace {
        let rates = Arc::new(Mutex::new(Vec::new()));
        let options = Options { until: self.until, ..Options::default() };
        let codec = Box::new(Rounding { rates: Arc::clone(&rates) });
        let outcome = self.network().run_through(&options, codec).expect("a sound network");
        let rates = std::mem::take(&mut *rates.lock().expect("nobody panicked"));
        Trace { packets: outcome.taps, rates, cuts: outcome.flows[0].cuts.len() as u64 }
    }

    fn transported(&self, setting: Setting) -> Trace {
        let mut world = World::new(self, setting);
        world.join();
        world.run(self.until);
        let cuts = world.source.observe().cuts;
        world.packets.sort_by_key(|tapped| (tapped.at, tapped.link));
        Trace { packets: world.packets, rates: world.rates, cuts }
    }
}

/// Rounds the fields of simulated packets as their encoding in a datagram does.
struct Rounding {
    rates: Arc<Mutex<Vec<(Time, Seq, f32)>>>,
}

impl PacketTransform for Rounding {
    fn pass(&mut self, packet: &Packet) -> Packet {
        let body = match packet.body {
            Body::Data(data) => {
                let departure = (data.sent_at, data.seq, data.rate);
                self.rates.lock().expect("nobody panicked").push(departure);
                Body::Data(data.quantised())
            }
            Body::Report(report) => Body::Report(report.quantised()),
            order @ Body::Order(_) => order,
        };
        Packet { body, ..*packet }
    }
}

/// Parses a datagram; returns the packet for the scheme.
fn read(bytes: &[u8], size: u16) -> Packet {
    let (header, message) = parse(bytes, &Newest::default()).expect("it was just written");
    let (layer, body) = match message {
        Message::Data(packet) => {
            let flags = Flags(packet.data.flags.0 & !Flags::REPAIR.0);
            (packet.layer, Body::Data(Data { payload: Payload::NONE, flags, ..packet.data }))
        }
        Message::Report(report) => (report.layer, Body::Report(report)),
        other => panic!("no scheme sends {other:?}"),
    };
    Packet { session: header.session, layer, size, body }
}

/// The transport's sessions and the links between them.
struct World {
    now: Time,
    links: Vec<Link>,
    /// Delays of messages that bypass the links, in each direction.
    beside: Vec<(Span, Span)>,
    source: source::SourceSession,
    receivers: Vec<receiver::ReceiverSession>,
    hop: Option<Hop>,
    setting: Setting,
    calendar: BTreeMap<(Time, u64), What>,
    booked: u64,
    packets: Vec<Tapped>,
    rates: Vec<(Time, Seq, f32)>,
    _dir: TempDir,
}

/// A datagram that arrives.
enum What {
    DataAtRouter(Vec<u8>),
    ReportAtRouter(usize, Vec<u8>),
    AtReceiver(usize, Vec<u8>),
    AtSource(usize, Vec<u8>),
}

/// The endpoint to wake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Hop,
    Receiver(usize),
    Source,
}

fn source_address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 5777))
}

fn receiver_address(index: usize) -> SocketAddr {
    SocketAddr::from(([10, 1, 0, 1 + index as u8], 5778))
}

impl World {
    fn new(star: &Star, setting: Setting) -> World {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let net = star.network();
        let specs = [star.trunk; 2].into_iter().chain(star.leaves.iter().flat_map(|(down, up)| [*down, *up]));
        let links = specs.enumerate().map(|(at, spec)| Link::new(&spec, net.link_rng(LinkId(at as u32))));
        let beside =
            star.leaves.iter().map(|(down, up)| (star.trunk.delay + down.delay, star.trunk.delay + up.delay));
        let receivers = 0..star.leaves.len();
        World {
            now: Time::ZERO,
            links: links.collect(),
            beside: beside.collect(),
            source: source(star, &net, &dir),
            receivers: receivers.map(|index| receiver(index, setting, &net, &dir)).collect(),
            hop: star.router.map(|spec| Hop::new(&spec, Rng::new(star.seed, 1))),
            setting,
            calendar: BTreeMap::new(),
            booked: 0,
            packets: Vec::new(),
            rates: Vec::new(),
            _dir: dir,
        }
    }

    /// Returns the value of the receivers' clocks.
    fn local(&self, now: Time) -> Time {
        now + self.setting.ahead
    }

    /// Lets all receivers join before time zero of the source: receivers get the announcement, and their answers reach the
    /// source.
    fn join(&mut self) {
        let mut announcement = Vec::new();
        self.source
            .poll_transmit(Time::ZERO, &mut announcement)
            .expect("a session begins with an announcement");
        let begin = self.local(Time::ZERO);
        for (index, receiver) in self.receivers.iter_mut().enumerate() {
            let mut now = begin - EARLIER;
            give(receiver, &mut announcement.clone(), source_address(), now);
            let mut joined = false;
            while !joined {
                now = receiver.poll_timeout(now);
                assert!(now < begin, "it joins in time");
                receiver.handle_timeout(now);
                for (mut bytes, _) in take_all(receiver, Time::ZERO) {
                    give(&mut self.source, &mut bytes, receiver_address(index), Time::ZERO);
                    joined = true;
                }
            }
        }
    }

    fn run(&mut self, until: Time) {
        loop {
            let (wake, who) = self.next_wake();
            let event = self.calendar.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
            let next = event.min(wake);
            if next > until {
                return;
            }
            self.now = self.now.max(next);
            match (event <= wake).then(|| self.calendar.pop_first()).flatten() {
                Some((_, what)) => self.happen(what),
                None => match who {
                    Who::Source => self.drive_source(),
                    Who::Receiver(index) => self.drive_receiver(index),
                    Who::Hop => {
                        let out = self.hop.as_mut().map(|hop| hop.on_time(self.now));
                        self.leave_hop(out.unwrap_or_default());
                    }
                },
            }
        }
    }

    fn next_wake(&self) -> (Time, Who) {
        let receivers = self.receivers.iter().enumerate().map(|(index, receiver)| {
            let here = self.local(self.now);
            let at = Time::ZERO + receiver.poll_timeout(here).since(self.local(Time::ZERO));
            (at, Who::Receiver(index))
        });
        let source = (self.source.poll_timeout(self.now), Who::Source);
        let hop = (self.hop.as_ref().map_or(Time::NEVER, Hop::deadline), Who::Hop);
        receivers.chain([source, hop]).min().expect("there is a source")
    }

    fn happen(&mut self, what: What) {
        match what {
            What::DataAtRouter(bytes) => {
                for index in 0..self.receivers.len() {
                    let packet = || read(&bytes, (bytes.len() + OVERHEAD) as u16);
                    let out = match &mut self.hop {
                        None => vec![Out::Data(index, bytes.clone())],
                        Some(hop) => hop.on_data(index, &bytes, packet(), self.now),
                    };
                    self.leave_hop(out);
                }
            }
            What::ReportAtRouter(index, bytes) => {
                let out = match &mut self.hop {
                    None => vec![Out::Report(index, bytes)],
                    Some(hop) => hop.on_report(index, &bytes, read(&bytes, report_size()), self.now),
                };
                self.leave_hop(out);
            }
            What::AtReceiver(index, mut bytes) => {
                let here = self.local(self.now);
                give(&mut self.receivers[index], &mut bytes, source_address(), here);
                self.drive_receiver(index);
            }
            What::AtSource(index, mut bytes) => {
                give(&mut self.source, &mut bytes, receiver_address(index), self.now);
                self.drive_source();
            }
        }
    }

    /// Forwards the packets that the router between source and receivers sends.
    fn leave_hop(&mut self, out: Vec<Out>) {
        for out in out {
            match out {
                Out::Data(index, bytes) => {
                    if let Some(at) = self.offer(2 + 2 * index, &bytes) {
                        self.book(at, What::AtReceiver(index, bytes));
                    }
                }
                Out::Report(index, bytes) => {
                    if let Some(at) = self.offer(1, &bytes) {
                        self.book(at, What::AtSource(index, bytes));
                    }
                }
            }
        }
    }

    fn drive_source(&mut self) {
        let mut out = Vec::new();
        loop {
            self.source.handle_timeout(self.now);
            let transmit = self.source.poll_transmit(self.now, &mut out);
            for bytes in transmit.iter().flat_map(|transmit| out.chunks(transmit.segment)) {
                self.leave_source(bytes);
            }
            while self.source.poll_event().is_some() {}
            assert!(!self.source.is_finished(), "the content is longer than the run");
            if self.source.poll_timeout(self.now) > self.now {
                return;
            }
        }
    }

    fn leave_source(&mut self, bytes: &[u8]) {
        if peek(bytes).expect("the source writes headers").kind == Kind::Data {
            let rate = self.source.observe().rate.bps() as f32;
            if let Body::Data(data) = read(bytes, 0).body {
                self.rates.push((self.now, data.seq, rate));
            }
            if let Some(at) = self.offer(0, bytes) {
                self.book(at, What::DataAtRouter(bytes.to_vec()));
            }
            return;
        }
        for index in 0..self.receivers.len() {
            let at = self.now + self.beside[index].0;
            self.book(at, What::AtReceiver(index, bytes.to_vec()));
        }
    }

    fn drive_receiver(&mut self, index: usize) {
        let here = self.local(self.now);
        let receiver = &mut self.receivers[index];
        receiver.handle_timeout(here);
        let sent = take_all(receiver, here);
        while receiver.poll_event().is_some() {}
        assert!(!receiver.is_finished(), "the content is longer than the run");
        for (bytes, _) in sent {
            match peek(&bytes).expect("the receiver writes headers").kind {
                Kind::Report => {
                    if let Some(at) = self.offer(3 + 2 * index, &bytes) {
                        self.book(at, What::ReportAtRouter(index, bytes));
                    }
                }
                Kind::Member if self.setting.received < AcceptedFeedback::Everything => {}
                Kind::Request if self.setting.received < AcceptedFeedback::Requests => {}
                _ => self.book(self.now + self.beside[index].1, What::AtSource(index, bytes)),
            }
        }
    }

    /// Offers a datagram to a link now; returns its arrival time, or `None` if it is lost.
    fn offer(&mut self, link: usize, bytes: &[u8]) -> Option<Time> {
        let is_up = link % 2 == 1;
        let size = if is_up { report_size() } else { (bytes.len() + OVERHEAD) as u16 };
        let (arrives, lost) = match self.links[link].offer(self.now, size, 0, false) {
            OfferResult::Arrives { at, .. } => (Some(at), None),
            OfferResult::Queued(_) => unreachable!("the links here decide at arrival"),
            OfferResult::Lost(cause) => (None, Some(cause)),
        };
        let (link, what) = (LinkId(link as u32), TappedPacket::Session(read(bytes, size)));
        self.packets.push(Tapped { at: self.now, link, flow: FlowId(0), size, what, ecn: Ecn::NotEct, lost });
        arrives
    }

    fn book(&mut self, at: Time, what: What) {
        self.booked += 1;
        self.calendar.insert((at, self.booked), what);
    }
}

fn source(star: &Star, net: &Network, dir: &TempDir) -> source::SourceSession {
    let content = dir.path().join("content");
    File::create(&content).and_then(|file| file.set_len(20_000_000)).expect("a sparse file is made");
    let object = ObjectStream::open(&[content], SYMBOL, 64).expect("the content can be read");
    let salt = [1; 16];
    let setup = source::Setup {
        codec: SourceCodec::new(SESSION, None, salt),
        salt,
        scheme: star.scheme,
        groups: super::node::groups(1),
        spacing: Spacing::Address,
        scheduler: of_blocks(BlockSource::files(object), star.scheme.layers()),
        sign: None,
        receipts: None,
        rng: net.source_rng(0),
        name: "source".to_owned(),
        datagram: usize::from(packet_size()) - OVERHEAD,
        overhead: OVERHEAD,
        slow: SlowReceiverPolicy::Follow,
        one_way: None,
        min: None,
        max: None,
        day_limits: None,
        expect: Some(star.leaves.len() as u32),
        to_hosts: faircast_wire::Name::EMPTY,
        series: None,
        dry_run: None,
        required: Vec::new(),
        ttl: 1,
        join_timeout: Duration::from_secs(3600), // longer than every run, so that no silent receiver is given up
        not_before: Time::ZERO,
        start: crate::config::StartNow::default(),
        idle_timeout: Duration::from_secs(3600),
        spread: Span::from_millis(10),
        local: source_address(),
        receiver_events: crate::config::ReceiverEvents::Off,
        started: UNIX_SECS * 1_000_000_000,
    };
    source::SourceSession::new(setup, Time::ZERO)
}

fn receiver(index: usize, setting: Setting, net: &Network, dir: &TempDir) -> receiver::ReceiverSession {
    let id = receiver_id(index);
    let codec = ReceiverCodec::new(&[], id, 1);
    let out = dir.path().join(format!("out{index}"));
    std::fs::create_dir(&out).expect("a directory is made");
    let unix_secs = UNIX_SECS - setting.ahead.as_nanos() / 1_000_000_000;
    let group = SocketAddr::from(([239, 255, 70, 1], 5777));
    let setup = receiver::Setup {
        scheme_rng: net.member_rng(0, index as u32),
        reordering: setting.reordering,
        host: format!("host{index}"),
        replay_policy: if setting.received == AcceptedFeedback::Everything {
            ReplayPolicy::Answer
        } else {
            ReplayPolicy::Clock
        },
        ..receiver::Setup::plain(codec, id, 2, Destination::Directory(out), (group, unix_secs))
    };
    receiver::ReceiverSession::new(setup, Time::ZERO + setting.ahead - EARLIER)
}

/// Returns the published configuration of the scheme, but with the transport's report frequency and report delay: receivers that
/// learn the scheme from an announcement use these two values.
fn as_the_seed() -> Scheme {
    let transport = Config::transport(1000);
    Scheme::Ormcc(Config {
        reports_per_rtt: transport.reports_per_rtt,
        spread_packets: transport.spread_packets,
        ..Config::published()
    })
}

/// Returns the configuration of `faircast send`, except for the start.
fn as_shipped(start: Start) -> Scheme {
    // The guard against a silent group is off, because membership messages are lost here. The simulator treats a group with
    // members as alive at all times.
    let mut config = Config::transport(1000);
    (config.sending.start, config.sending.silent_group_guard) = (start, Guard::Off);
    Scheme::Ormcc(config)
}

#[track_caller]
fn assert_same<T: PartialEq + Debug>(what: &str, simulated: &[T], transported: &[T]) {
    if let Some(at) = simulated.iter().zip(transported).position(|(a, b)| a != b) {
        let (a, b) = (&simulated[at], &transported[at]);
        panic!("{what} {at} of {}: simulated {a:?}, transported {b:?}", simulated.len());
    }
    assert_eq!(simulated.len(), transported.len(), "number of {what}s");
}

/// Checks that both worlds give the same result.
#[track_caller]
fn assert_twins(star: &Star, setting: Setting) -> Trace {
    let (simulated, transported) = (star.simulated(), star.transported(setting));
    assert_same("departure", &simulated.rates, &transported.rates);
    assert_same("packet", &simulated.packets, &transported.packets);
    assert_eq!(simulated.cuts, transported.cuts);
    simulated
}

/// Checks that both worlds give the same result, that this result equals the recorded one, and that enough events have occurred.
#[track_caller]
fn assert_busy_twins(star: &Star, setting: Setting, recorded: u64) {
    let simulated = assert_twins(star, setting);
    let digest = simulated.digest();
    assert_eq!(digest, recorded, "{digest:#x}: if a change of behaviour is meant, record it here");
    let (lost, reports) = (simulated.lost(), simulated.reports());
    let cuts = simulated.cuts;
    println!("{} packets on links, {lost} lost, {reports} reports, {cuts} cuts", simulated.packets.len());
    assert!(lost > 100 && reports > 30 && cuts > 20 && simulated.representatives() > 1);
}

#[test]
fn published_scheme_is_identical_in_simulator_and_transport() {
    assert_busy_twins(&Star::of_three(as_the_seed(), 60), Setting::EQUAL, 0x0664_b115_b5bc_5a0e);
}

#[test]
fn link_losses_are_identical_in_simulator_and_transport() {
    let mut star = Star::of_three(as_the_seed(), 60);
    star.leaves[0].0.loss = Some(LossSpec::Bernoulli(0.01));
    star.leaves[1].0.loss =
        Some(LossSpec::GilbertElliott { to_bad: 0.002, to_good: 0.2, good: 0.0, bad: 0.5 });
    star.leaves[2].0.queue = "red".parse().expect("a queue");
    assert_busy_twins(&star, Setting::EQUAL, 0x6029_e70f_573f_5e88);
}

/// The router delays and marks the packets of every second receiver, and merges reports.
#[test]
fn router_is_identical_in_simulator_and_transport() {
    let router = toy::ToyRouter { delay: Span::from_micros(7_300), spacing: Span::from_micros(41_700) };
    let star = Star { router: Some(router), ..Star::of_three(as_the_seed(), 60) };
    let simulated = assert_twins(&star, Setting::EQUAL);
    let (digest, lost, reports) = (simulated.digest(), simulated.lost(), simulated.reports());
    println!("{lost} lost, {reports} reports, {} cuts", simulated.cuts);
    assert_eq!(
        digest, 0x0c2b_e179_1007_e368,
        "{digest:#x}: if a change of behaviour is meant, record it here"
    );
    assert!(lost > 100 && reports > 30 && simulated.cuts > 10);
}

/// Only reports are accepted: the guard against a silent group would treat requests as signs of life, but the simulator has no
/// requests.
#[test]
fn shipped_scheme_matches_the_simulator_with_reports_only() {
    let scheme = as_shipped(Start::Linear);
    let setting = Setting { received: AcceptedFeedback::Reports, ..Setting::EQUAL };
    assert_busy_twins(&Star::of_three(scheme, 90), setting, 0x5259_f560_3a85_be74);
}

/// Only reports are accepted, for the same reason as in the test above.
#[test]
fn random_star_networks_match_in_simulator_and_transport() {
    let (mut lost, mut reports) = (0, 0);
    for seed in 0..24 {
        let trace = assert_twins(
            &Star::at_random(seed),
            Setting { received: AcceptedFeedback::Reports, ..Setting::EQUAL },
        );
        lost += trace.lost();
        reports += trace.reports();
    }
    assert!(lost > 1000 && reports > 1000, "{lost} lost, {reports} reports");
}

#[test]
fn slow_start_is_identical_in_simulator_and_transport() {
    let scheme = as_shipped(Start::Doubling(Doubling::default())).with_packet_size(packet_size());
    let bounds = Bounds { min: Rate::ZERO, max: Rate::from_mbps(7.0) };
    let star = Star {
        scheme: scheme.with_bounds(bounds),
        packet_size: packet_size() + 2,
        leaves: vec![(narrow(4.0, 30, 20), wide(1.0, 30))],
        ..Star::of_three(scheme, 10)
    };
    let (simulated, transported) = (star.simulated(), star.transported(Setting::EQUAL));
    let over = simulated.packets.iter().position(|packet| match packet.what {
        TappedPacket::Session(Packet { body: Body::Data(data), .. }) => !data.flags.has(Flags::STARTING),
        _ => false,
    });
    let over = over.expect("start-up ends");
    println!("start-up lasts {over} packets on links, until {}", simulated.packets[over].at.as_secs_f64());
    assert_same("packet", &simulated.packets[..over], &transported.packets[..over]);
    assert!(over > 200 && simulated.packets[..over].iter().any(|packet| packet.link == LinkId(1)));
}

/// The scheme as shipped, without equalized settings: single packets differ, but the number of packets is similar.
#[test]
fn packet_counts_of_full_transport_and_simulator_are_close() {
    let (mut simulated, mut transported) = (Sums::default(), Sums::default());
    for seed in 0..8 {
        let star = Star { seed, ..Star::of_three(Scheme::Ormcc(Config::transport(1000)), 60) };
        simulated.add(&star.simulated());
        transported.add(&star.transported(Setting::REAL));
    }
    println!("simulated {simulated:?}, transported {transported:?}");
    let ratio = transported.sent as f64 / simulated.sent as f64;
    assert!((0.97..1.03).contains(&ratio), "{ratio}");
}

/// Sums of counts over several runs.
#[derive(Debug, Default)]
struct Sums {
    sent: usize,
    lost: usize,
    reports: usize,
    cuts: u64,
}

impl Sums {
    fn add(&mut self, trace: &Trace) {
        self.sent += trace.rates.len();
        self.lost += trace.lost();
        self.reports += trace.reports();
        self.cuts += trace.cuts;
    }
}
