//! Tests of the source in layered sessions.

use super::block_source::BlockSource;
use super::blocks::Blocks;
use super::scheduler::{Fountain, of_blocks};
use super::*;
use crate::endpoint::Endpoint as _;
use crate::event::Subscription;
use crate::object::{ObjectStream, verify_block};
use faircast_core::node::SourceControl;
use faircast_core::packet::{Echo, Flags, Payload, Report, ReportContent};
use faircast_core::rate::Bounds;
use faircast_fec::{Shape, decode};
use faircast_wire::{
    Announce, Kind, Member as MemberReport, MemberState, Message, Name, Newest, ReceiverCodec, Status, parse,
    peek,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use tempfile::TempDir;

const RECEIVER: ([u8; 4], u16) = ([192, 0, 2, 1], 5778);

/// Returns an object stream of random bytes, in blocks of `symbols` symbols of `size` bytes.
fn object(len: usize, size: u16, symbols: u16) -> (ObjectStream, TempDir) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut rng = Rng::new(1, len as u64);
    let bytes: Vec<u8> = (0..len).map(|_| rng.bits() as u8).collect();
    std::fs::write(dir.path().join("content"), bytes).expect("room for a small file");
    (ObjectStream::open(&[dir.path().join("content")], size, symbols).expect("a readable file"), dir)
}

/// A receiver that joins layers 0 to `level`, and loses the fraction `loss` of all packets.
struct Listener {
    level: u8,
    loss: f64,
    got: BTreeMap<u32, Vec<(u32, Vec<u8>)>>,
    done: BTreeSet<u32>,
    received: u64,
}

impl Listener {
    fn new(level: u8, loss: f64) -> Listener {
        Listener { level, loss, got: BTreeMap::new(), done: BTreeSet::new(), received: 0 }
    }

    fn receive(&mut self, block: u32, symbol: u32, shape: Shape, bytes: &[u8], rng: &mut Rng) {
        if rng.chance(self.loss) {
            return;
        }
        self.received += 1;
        if self.done.contains(&block) {
            return;
        }
        let symbols = self.got.entry(block).or_default();
        symbols.push((symbol, bytes.to_vec()));
        if symbols.len() < usize::from(shape.symbols()) {
            return;
        }
        if let Some(whole) = decode(shape, symbols.iter().map(|(symbol, bytes)| (*symbol, bytes.as_slice())))
        {
            verify_block(&whole).expect("a block that proves itself");
            self.got.remove(&block);
            self.done.insert(block);
        }
    }
}

#[test]
fn receivers_complete_content_larger_than_the_block_cache() {
    let (layers, size, symbols) = (5, 16, 128);
    let (object, _dir) = object(100_000, size, symbols);
    let mut source = BlockSource::files(object);
    source.read_on_order();
    let (count, content_symbols) = (source.ready(), source.content_symbols());
    let blocks = Blocks::with_room(size, 6);
    assert!(count > 45 && !blocks.keeps(count), "{count}");
    let mut fountain = Fountain::with_blocks(source, layers, blocks);
    fountain.set_rate(0.0);
    fountain.welcome();

    let mut listeners: Vec<_> =
        [0, 2, 4].into_iter().flat_map(|level| [0.0, 0.05].map(|loss| Listener::new(level, loss))).collect();
    let mut rng = Rng::new(3, 3);
    let slots = 1_u32 << (layers - 1);
    let mut seen = BTreeSet::new();
    for slot in 0_u32.. {
        let slot = slot % slots;
        let layer = Layer(if slot == 0 { 0 } else { layers - 1 - slot.trailing_zeros() as u8 });
        let chosen = fountain.next(layer).expect("readable").expect("a fountain does not end");
        let Payload { block, symbol } = chosen.place;
        assert!(seen.insert((block, symbol)), "{:?} twice", chosen.place);
        let shape = Shape::new(chosen.symbols, size).expect("a block's shape");
        let here = listeners.iter_mut().filter(|listener| listener.level >= layer.0);
        here.for_each(|listener| listener.receive(block, symbol, shape, chosen.payload, &mut rng));
        fountain.prepare(layer);
        listeners.retain(|listener| {
            let is_done = listener.done.len() == count as usize;
            let needed = listener.received as f64 / content_symbols as f64 * (1.0 - listener.loss);
            let most = if listener.loss > 0.0 { 1.15 } else { 1.05 };
            assert!(needed < most, "level {} with loss {}", listener.level, listener.loss);
            !is_done
        });
        if listeners.is_empty() {
            return;
        }
    }
}

/// A session in virtual time, with the packets that it has sent.
struct Run {
    session: SourceSession,
    now: Time,
    sent: Vec<(Time, Layer, Vec<u8>)>,
    answers: ReceiverCodec,
    _dir: TempDir,
}

fn receiver_id() -> ReceiverId {
    ReceiverId::new(5).expect("five is not zero")
}

fn groups() -> Vec<SocketAddr> {
    (0..8).map(|layer| SocketAddr::from(([239, 1, 2, 3], 5777 + layer))).collect()
}

impl Run {
    fn of(scheme: &str, len: usize) -> Run {
        let (object, dir) = object(len, 1_000, 64);
        let id = faircast_core::packet::SessionId(7);
        let scheme: Scheme = scheme.parse().expect("a scheme");
        let setup = Setup {
            codec: SourceCodec::new(id, None, [3; 16]),
            salt: [3; 16],
            scheme: scheme.with_packet_size(1_062),
            groups: groups(),
            spacing: Spacing::Port,
            scheduler: of_blocks(BlockSource::files(object), scheme.layers()),
            sign: None,
            receipts: None,
            rng: Rng::new(1, 0),
            name: "source".to_owned(),
            datagram: 1_472,
            overhead: 28,
            slow: SlowReceiverPolicy::Follow,
            one_way: None,
            min: None,
            max: None,
            day_limits: None,
            expect: Some(1),
            to_hosts: Name::EMPTY,
            series: None,
            dry_run: None,
            required: Vec::new(),
            join_timeout: Duration::from_secs(10),
            not_before: Time::ZERO,
            start: StartNow::default(),
            ttl: 1,
            idle_timeout: Duration::from_secs(60),
            spread: Span::from_millis(10),
            local: SocketAddr::from(([10, 0, 0, 1], 4000)),
            receiver_events: crate::config::ReceiverEvents::Off,
            started: 1_800_000_000_000_000_000,
        };
        let session = SourceSession::new(setup, Time::ZERO);
        let answers = ReceiverCodec::new(&[], receiver_id(), 1);
        Run { session, now: Time::ZERO, sent: Vec::new(), answers, _dir: dir }
    }

    fn run_for(&mut self, span: Span) {
        let (end, mut out) = (self.now + span, Vec::new());
        while self.now < end && !self.session.is_finished() {
            self.session.on_time(self.now);
            if let Some(transmit) = self.session.next(self.now, &mut out) {
                let layer =
                    groups().iter().position(|group| *group == transmit.to).expect("a group of its own");
                let datagrams = out.chunks(transmit.segment);
                self.sent.extend(datagrams.map(|bytes| (self.now, Layer(layer as u8), bytes.to_vec())));
            }
            self.now = self.session.next_timeout(self.now).max(self.now).min(end);
        }
    }

    fn receive(&mut self, message: &Message<'_>) {
        let mut bytes = Vec::new();
        self.answers.encode(&mut bytes, faircast_core::packet::SessionId(7), message).expect("it fits");
        self.session.on_datagram(&mut bytes, SocketAddr::from(RECEIVER), self.now, self.now);
    }

    fn member(&mut self, state: MemberState) {
        self.receive(&Message::Member(MemberReport {
            from: receiver_id(),
            nonce: 9,
            state,
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
            echo: Echo { seq: Seq(0), hold: Span::MAX },
            host: Name::clipped("lab-01"),
            why: faircast_wire::Words::default(),
        }));
    }

    fn messages(&self) -> impl Iterator<Item = (Layer, Message<'_>)> {
        let read = |bytes| parse(bytes, &Newest::default()).expect("whole").1;
        self.sent.iter().map(move |(_, layer, bytes)| (*layer, read(bytes)))
    }

    fn announced(&self) -> Announce {
        let announce = self.messages().find_map(|(_, message)| match message {
            Message::Announce(announce) => Some(announce),
            _ => None,
        });
        announce.expect("it is announced")
    }

    fn status(&self) -> Status {
        let statuses = self.messages().filter_map(|(_, message)| match message {
            Message::Status(status) => Some(status),
            _ => None,
        });
        statuses.last().expect("there is a status")
    }
}

#[test]
fn layers_have_separate_packet_numbers_and_repeat_no_symbol() {
    let mut run = Run::of("rlc,layers=4,base=1000000", 300_000);
    run.run_for(Span::from_millis(50));
    run.member(MemberState::Joined);
    run.run_for(Span::from_secs(4));
    let (mut next, mut seen) = ([0_u64; 4], BTreeSet::new());
    for (to, message) in run.messages() {
        let Message::Data(packet) = message else {
            assert_eq!(to, Layer(0), "whatever is not data is for all");
            continue;
        };
        assert_eq!(packet.layer, to);
        let next = &mut next[usize::from(to.0)];
        assert_eq!(packet.data.seq.0, *next);
        *next += 1;
        let payload = packet.data.payload;
        assert!(payload == Payload::NONE || seen.insert((payload.block, payload.symbol)), "{payload:?}");
        assert!(!packet.data.flags.has(Flags::REPAIR));
    }
    let [base, first, second, third] = next.map(|count| count as f64);
    for (lower, upper) in [(base, first), (first * 2.0, second), (second * 2.0, third)] {
        assert!((0.9..1.1).contains(&(upper / lower)), "{next:?}");
    }
    let announce = run.announced();
    assert_eq!((announce.layers, announce.spacing()), (4, Spacing::Port));
    let status = run.status();
    assert_eq!(status.upper_seqs.len(), 3);
    assert!(
        status.scheduled.is_empty()
            && status.upper_seqs.iter().zip(&next[1..]).all(|(stated, sent)| stated <= sent)
    );
}

#[test]
fn layers_above_the_rate_limit_send_nothing() {
    let mut run = Run::of("rlc,layers=4,base=1000000", 300_000);
    run.session
        .source
        .control(SourceControl::Limits(Bounds { min: Rate::ZERO, max: Rate::from_mbps(2.5) }), run.now);
    run.run_for(Span::from_millis(50));
    run.member(MemberState::Joined);
    run.run_for(Span::from_secs(2));
    let layers: BTreeSet<Layer> = run.sent.iter().map(|(_, layer, _)| *layer).collect();
    assert_eq!(layers, BTreeSet::from([Layer(0), Layer(1)]));
    assert_eq!(run.session.layers_on(), Some(Subscription { joined: 2, of: 4 }));
}

#[test]
fn fountain_sends_until_all_receivers_complete() {
    let mut run = Run::of("rlc,layers=2,base=2000000", 50_000);
    run.run_for(Span::from_millis(50));
    run.member(MemberState::Joined);
    run.run_for(Span::from_secs(5));
    assert!(
        run.session.scheduler.amounts().sent_symbols > 1_000,
        "{}",
        run.session.scheduler.amounts().sent_symbols
    );
    assert!(run.session.scheduler.status().root.is_some(), "every block was read");
    run.member(MemberState::Done);
    run.run_for(Span::from_secs(1));
    assert!(run.session.is_finished());
    assert!(run.session.report().expect("it went well").ok);
}

#[test]
fn packets_state_the_rate_if_the_scheme_needs_it() {
    let mut run = Run::of("gmcc", 50_000);
    run.run_for(Span::from_millis(50));
    run.member(MemberState::Joined);
    run.run_for(Span::from_secs(1));
    let mut packets = 0;
    for (_, message) in run.messages() {
        if let Message::Data(packet) = message {
            assert!(packet.data.rate > 0.0, "{packet:?}");
            packets += 1;
        }
    }
    assert!(packets > 10, "{packets}");
}

#[test]
fn requests_for_unknown_blocks_are_ignored() {
    assert_eq!(feedback::asked(3, 8_192, Some(5)), 3..5);
    assert!(feedback::asked(9, 8_192, Some(5)).is_empty());
    assert_eq!(feedback::asked(u32::MAX - 2, 8, None), u32::MAX - 2..u32::MAX);
}

#[test]
fn layered_session_ignores_requests_and_unknown_layers() {
    let mut run = Run::of("rlc,layers=2,base=1000000", 50_000);
    run.run_for(Span::from_millis(50));
    run.member(MemberState::Joined);
    let echo = Echo { seq: Seq(0), hold: Span::ZERO };
    run.receive(&Message::Report(Report {
        from: receiver_id(),
        layer: Layer(2),
        content: ReportContent::Alive { echo },
    }));
    assert_eq!(run.session.counts.refused.implausible, 1);
    let needs = vec![faircast_wire::Need { first: 0, run: 1, symbols: 9, wrong: false }];
    run.receive(&Message::Request(faircast_wire::Request {
        from: receiver_id(),
        needs,
        held: Vec::new(),
        echo,
    }));
    run.run_for(Span::from_secs(1));
    assert!(run.status().scheduled.is_empty());
    let kinds: BTreeSet<Kind> =
        run.sent.iter().filter_map(|(_, _, bytes)| Some(peek(bytes).ok()?.kind)).collect();
    assert_eq!(kinds, BTreeSet::from([Kind::Data, Kind::Announce, Kind::Status]));
}
