//! A source and receivers in simulated time, connected by links with delay and loss.

use super::feed::Feed;
use super::receiver::{self, UdpcastReceiver};
use super::rendezvous::Gathering;
use super::source::{self, UdpcastSource};
use super::{SCHEMES, UdpcastReceiveReport, UdpcastSendReport};
use crate::codec::{self, Message};
use faircast_core::rate::Bounds;
use faircast_core::rng::Rng;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Rate, Span, Time};
use faircast_driver::format::{Feeder, Reporting};
use faircast_simnet::{Copies, Happens, Hosts, Link, Site, Ties};
use faircast_transport::config::ReceiverEvents;
use faircast_transport::endpoint::Endpoint;
use faircast_transport::error::Error;
use faircast_transport::event::Event;
use faircast_transport::step_driver::{give, take_all};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::{Arc, Mutex};

const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const BROADCAST: Ipv4Addr = Ipv4Addr::new(10, 0, 255, 255);
const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(234, 0, 0, 1), 9000);
const DELAY: Span = Span::from_millis(5);
const BLOCK: u16 = 1_000;

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The fault of one receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// It receives and sends nothing after the first data packets.
    Dead,
    /// Its answers to questions are lost from the beginning.
    Silent,
    /// It begins to search after the start of the transfer.
    Late,
    /// It gets no data packets, but all questions.
    Starved,
}

/// Parts of a run.
#[derive(Clone)]
struct Plan {
    scheme: &'static str,
    content: Vec<u8>,
    receivers: u8,
    /// Loss probability of packets in both directions.
    loss: f64,
    /// The fault of the last receiver.
    fault: Fault,
    expect: Option<u32>,
    max: Rate,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            scheme: "ormcc",
            content: content(3_000_500),
            receivers: 3,
            loss: 0.02,
            fault: Fault::None,
            expect: None,
            max: Rate::from_mbps(20.0),
        }
    }
}

fn content(len: usize) -> Vec<u8> {
    let mut rng = Rng::new(7, 0);
    (0..len).map(|_| rng.below(256) as u8).collect()
}

struct Outcome {
    sent: Result<UdpcastSendReport, Error>,
    received: Vec<(Result<UdpcastReceiveReport, Error>, Vec<u8>)>,
    events: Vec<Event>,
    ended: Time,
}

struct Node {
    session: UdpcastReceiver,
    written: Written,
    address: Ipv4Addr,
    fault: Fault,
}

/// A network of hosts: the source is host 0, and the receivers are the following hosts.
struct Network {
    source: UdpcastSource,
    receivers: Vec<Node>,
    links: faircast_simnet::Network<usize, (), (), ()>,
    loss: Loss,
    started: Option<Time>,
    events: Vec<Event>,
    rules: Rules,
}

/// One random stream for all losses.
struct Loss(Rng);

impl Hosts<usize, ()> for Loss {
    fn ears(&self, host: usize, _: SocketAddr, into: &mut Vec<(usize, ())>) {
        into.push((host, ()));
    }

    fn damage(&mut self, _: usize, link: &Link, bytes: &mut [u8]) -> Copies {
        link.damage(bytes, &mut self.0)
    }
}

/// Checks the rules whose violation ends stock receivers.
#[derive(Default)]
struct Rules {
    /// Sizes of the slices, by number.
    sizes: Vec<u32>,
    /// Pairs of receiver and complete slice, and of receiver and slice of which it has something.
    complete: BTreeSet<(SocketAddr, u32)>,
    known: BTreeSet<(SocketAddr, u32)>,
    gone: BTreeSet<SocketAddr>,
}

impl Rules {
    fn on_sent(&mut self, bytes: &[u8], hosts: &[SocketAddr]) {
        let (slice, size) = match codec::parse(bytes).expect("it is a message") {
            Message::Data(block) => (block.slice, block.slice_bytes),
            Message::ReqAck(question) => (question.slice, question.slice_bytes),
            _ => return,
        };
        let at = slice as usize;
        assert!(at <= self.sizes.len(), "slice {slice} follows a gap");
        if at == self.sizes.len() {
            self.sizes.push(size);
            for host in hosts.iter().filter(|host| !self.gone.contains(*host)) {
                let is_one_back = slice < 1 || size == 0 || self.known.contains(&(*host, slice - 1));
                assert!(is_one_back, "{host} has nothing of the slice before {slice}");
                let is_two_back = slice < 2 || self.complete.contains(&(*host, slice - 2));
                assert!(is_two_back, "{host} lacks blocks of the slice two before {slice}");
            }
        }
        assert_eq!(self.sizes[at], size, "the size of slice {slice} changes");
    }

    fn on_answer(&mut self, bytes: &[u8], from: SocketAddr) {
        match codec::parse(bytes).expect("it is a message") {
            Message::Ok { slice } => {
                self.complete.insert((from, slice));
                self.known.insert((from, slice));
            }
            Message::Retransmit { slice, .. } => {
                self.known.insert((from, slice));
            }
            _ => {}
        }
    }
}

impl Network {
    fn new(plan: &Plan) -> Network {
        let scheme: Scheme = plan.scheme.parse().expect("a scheme of the catalogue");
        let (feeder, pipe) = Feeder::pipe();
        feeder.put(&plan.content);
        feeder.end();
        let setup = source::Setup {
            group: GROUP,
            rendezvous: vec![BROADCAST],
            bounds: Bounds { max: plan.max, ..scheme.bounds() },
            scheme: scheme.with_packet_size(BLOCK + 44),
            rng: Rng::new(1, 0),
            feed: Feed::new(pipe, BLOCK.into()),
            block_size: BLOCK,
            gathering: Gathering {
                expect: plan.expect,
                first: Some(Span::from_secs(10)),
                min: Span::ZERO,
                max: Some(Span::from_secs(10)),
            },
            idle_timeout: Span::from_secs(5),
            total: None,
            receiver_events: ReceiverEvents::EverySecond,
        };
        let source = UdpcastSource::new(setup, Time::ZERO);
        let fault = |n| if n + 1 == plan.receivers { plan.fault } else { Fault::None };
        let receivers: Vec<_> = (0..plan.receivers).map(|n| node(n, fault(n))).collect();
        let mut links = faircast_simnet::Network::new(28, Ties::Booked);
        let link = Link::after(DELAY).losing(plan.loss);
        links.site(Site { members: (1..=receivers.len()).collect(), ..Site::new(vec![()], link, link) });
        Network {
            source,
            receivers,
            links,
            loss: Loss(Rng::new(3, 0)),
            started: None,
            events: Vec::new(),
            rules: Rules::default(),
        }
    }

    fn run(mut self) -> Outcome {
        (0..=self.receivers.len()).for_each(|host| self.drive(host));
        let end = Time::ZERO + Span::from_secs(600);
        let runs = |node: &Node| !node.session.is_finished() && node.fault != Fault::Dead;
        while !self.source.is_finished() || self.receivers.iter().any(runs) {
            match self.links.next(end).expect("it comes to an end") {
                Happens::Arrives { host, from, mut bytes, .. } => {
                    self.arrive(host, from, &mut bytes);
                    self.drive(host);
                }
                Happens::Wakes(host) => self.drive(host),
                Happens::Other(()) => {}
            }
        }
        self.events.extend(std::iter::from_fn(|| self.source.poll_event()));
        let received = self.receivers.into_iter().map(|node| {
            (node.session.report(), std::mem::take(&mut *node.written.0.lock().expect("nobody panics")))
        });
        Outcome {
            received: received.collect(),
            sent: self.source.report(),
            events: self.events,
            ended: self.links.now,
        }
    }

    /// Whether the fault of a receiver is effective.
    fn is_off(&self, node: &Node) -> bool {
        let now = self.links.now;
        match node.fault {
            Fault::Dead => self.started.is_some_and(|started| now > started + Span::from_millis(300)),
            Fault::Late => self.started.is_none(),
            Fault::None | Fault::Silent | Fault::Starved => false,
        }
    }

    fn arrive(&mut self, host: usize, from: SocketAddr, bytes: &mut [u8]) {
        let now = self.links.now;
        let Some(receiver) = host.checked_sub(1) else {
            self.rules.on_answer(bytes, from);
            return give(&mut self.source, bytes, from, now);
        };
        let node = &self.receivers[receiver];
        let is_data = matches!(codec::parse(bytes), Ok(Message::Data(_)));
        if self.is_off(node) || node.fault == Fault::Starved && is_data {
            return;
        }
        give(&mut self.receivers[receiver].session, bytes, from, now);
    }

    /// Runs all due actions of a host.
    fn drive(&mut self, host: usize) {
        let now = self.links.now;
        match host.checked_sub(1) {
            None => self.drive_source(now),
            Some(receiver) => self.drive_receiver(receiver, now),
        }
    }

    fn drive_source(&mut self, now: Time) {
        let from = (SOURCE, 9001).into();
        self.source.handle_timeout(now);
        let hosts: Vec<SocketAddr> = self.receivers.iter().map(|node| (node.address, 9000).into()).collect();
        while let Some(event) = self.source.poll_event() {
            if let Event::Left { host, .. } = &event {
                self.rules.gone.extend(hosts.iter().filter(|address| address.ip().to_string() == *host));
            }
            self.events.push(event);
        }
        let joined: Vec<SocketAddr> = self
            .receivers
            .iter()
            .filter(|node| node.fault != Fault::Late)
            .map(|node| (node.address, 9000).into())
            .collect();
        for (bytes, to) in take_all(&mut self.source, now) {
            if to.ip() == SocketAddr::from(GROUP).ip() || to.ip() == BROADCAST {
                self.rules.on_sent(&bytes, &joined);
                if let Ok(Message::Data(_)) = codec::parse(&bytes) {
                    self.started.get_or_insert(now);
                }
                self.links.multicast(&mut self.loss, (now, &()), (from, to, true), &bytes);
            } else {
                let host = hosts.iter().position(|host| *host == to).expect("a receiver") + 1;
                self.links.unicast(&mut self.loss, (0, (host, ())), from, &bytes, |(), it| it == host);
            }
        }
        self.wake(0, self.source.is_finished(), self.source.poll_timeout(now));
    }

    fn drive_receiver(&mut self, receiver: usize, now: Time) {
        if self.is_off(&self.receivers[receiver]) {
            self.links.wake(receiver + 1, now + Span::from_millis(100));
            return;
        }
        let node = &mut self.receivers[receiver];
        let from = (node.address, 9000).into();
        node.session.handle_timeout(now);
        while node.session.poll_event().is_some() {}
        for (bytes, to) in take_all(&mut node.session, now) {
            let is_answer =
                matches!(codec::parse(&bytes), Ok(Message::Ok { .. } | Message::Retransmit { .. }));
            assert_eq!(to.port(), 9001);
            if node.fault != Fault::Silent || !is_answer {
                let host = receiver + 1;
                self.links.unicast(&mut self.loss, (host, (0, ())), from, &bytes, |(), host| host == 0);
            }
        }
        let (is_finished, wake) = (node.session.is_finished(), node.session.poll_timeout(now));
        self.wake(receiver + 1, is_finished, wake);
    }

    fn wake(&mut self, host: usize, is_finished: bool, at: Time) {
        let at = if is_finished { Time::NEVER } else { at };
        let at = if at.is_never() { at } else { at.max(self.links.now + Span::from_nanos(1)) };
        self.links.wake(host, at);
    }
}

fn node(n: u8, fault: Fault) -> Node {
    let setup = receiver::Setup {
        port: 9000,
        rendezvous: vec![SOURCE],
        group: GROUP.into(),
        only: None,
        join_timeout: Some(Span::from_secs(60)),
        idle_timeout: Span::from_secs(30),
        buffer: 0,
    };
    let written = Written::default();
    let to = written.clone();
    let open = Box::new(move |_| Ok(Box::new(to.clone()) as Box<dyn Write + Send>));
    let address = Ipv4Addr::new(10, 0, 1, n + 1);
    Node { session: UdpcastReceiver::new(setup, open, Time::ZERO), written, address, fault }
}

fn run(plan: &Plan) -> Outcome {
    Network::new(plan).run()
}

fn is_complete(plan: &Plan, received: &(Result<UdpcastReceiveReport, Error>, Vec<u8>)) {
    let (report, written) = received;
    let report = report.as_ref().expect("a receiver ends well");
    assert!(report.ok && report.bytes == plan.content.len() as u64, "{report:?}");
    assert!(*written == plan.content, "{} bytes: {report:?}", written.len());
}

fn all_are_complete(plan: &Plan) -> UdpcastSendReport {
    let outcome = run(plan);
    let sent = outcome.sent.expect("the source ends well");
    assert!(sent.ok && sent.completed == u64::from(plan.receivers), "{sent:?}");
    outcome.received.iter().for_each(|received| is_complete(plan, received));
    states_follow_the_receivers(plan, &outcome.events, sent.duration.as_secs_f64());
    sent
}

/// Checks the states of receivers in the events of a session that took this number of seconds.
fn states_follow_the_receivers(plan: &Plan, events: &[Event], seconds: f64) {
    let (mut verified, mut losses) = (BTreeMap::<&str, u64>::new(), Vec::new());
    for event in events {
        let Event::Receivers { receivers } = event else { continue };
        for one in receivers {
            let before = verified.insert(&one.host, one.verified_bytes);
            let may_be = before.unwrap_or(0)..=plan.content.len() as u64;
            assert!(may_be.contains(&one.verified_bytes), "{one:?} after {before:?}");
            losses.push(one.loss);
        }
    }
    if seconds > 3.0 {
        assert_eq!(verified.len(), usize::from(plan.receivers));
        assert!(verified.values().all(|bytes| *bytes > 0), "{verified:?}");
        let loss = losses.iter().sum::<f64>() / losses.len() as f64;
        assert!(loss >= plan.loss / 3.0 && loss <= 3.0 * plan.loss + 0.02, "{loss}");
    }
}

/// Checks that the last receiver was dropped for this reason, and that the others are complete.
fn all_but_the_last_are_complete(plan: &Plan, reason: &str) -> Outcome {
    let outcome = run(plan);
    let sent = outcome.sent.as_ref().expect("the source ends well");
    assert_eq!(sent.completed, u64::from(plan.receivers) - 1, "{sent:?}");
    let [dropped] = sent.incomplete.as_slice() else { panic!("{sent:?}") };
    assert_eq!(dropped.host, format!("10.0.1.{}", plan.receivers));
    assert!(!sent.ok && dropped.reason.contains(reason), "{sent:?}");
    outcome
        .received
        .split_last()
        .expect("receivers")
        .1
        .iter()
        .for_each(|received| is_complete(plan, received));
    let left =
        |event: &Event| matches!(event, Event::Left { host, verified: false, .. } if *host == dropped.host);
    assert!(outcome.events.iter().any(left), "the host is not named");
    outcome
}

#[test]
fn all_receivers_complete_despite_losses_with_every_scheme() {
    for scheme in SCHEMES {
        for loss in [0.0, 0.02, 0.1] {
            let sent = all_are_complete(&Plan { scheme, loss, ..Plan::default() });
            println!(
                "{scheme} {loss}: {:.2} Mbit/s, {} repairs, {} polls, {} answers, {} indications, {} cuts",
                sent.goodput.bps() / 1e6,
                sent.repairs,
                sent.polls,
                sent.answers,
                sent.indications,
                sent.cuts
            );
            // TFMCC counts the end of its start-up as a cut.
            assert!(if loss > 0.0 { sent.cuts > 1 } else { sent.cuts <= 1 }, "{scheme}: {sent:?}");
            assert_eq!(sent.repairs > 0, loss > 0.0, "{scheme}: {sent:?}");
            assert_eq!(sent.refused, 0);
        }
    }
}

#[test]
fn rate_reaches_the_maximum_without_losses() {
    for scheme in SCHEMES {
        let content = content(20_000_000);
        let sent = all_are_complete(&Plan { scheme, loss: 0.0, content, ..Plan::default() });
        println!("{scheme}: {:.2} Mbit/s", sent.goodput.bps() / 1e6);
        assert!(sent.max_rate.bps() > 15e6, "{scheme}: {sent:?}");
    }
}

#[test]
fn content_of_any_length_arrives() {
    for len in [0, 1, 999, 1_000, 1_001, 1_024_000, 1_024_001, 2_048_000] {
        all_are_complete(&Plan { content: content(len), receivers: 2, ..Plan::default() });
    }
}

#[test]
fn dead_receiver_is_dropped_and_the_others_complete() {
    for scheme in SCHEMES {
        let plan = Plan { scheme, fault: Fault::Dead, ..Plan::default() };
        let outcome = all_but_the_last_are_complete(&plan, "has not answered for 5 s");
        assert!(outcome.ended < Time::ZERO + Span::from_secs(60), "{:?}", outcome.ended);
    }
}

#[test]
fn receiver_for_which_all_others_wait_is_named() {
    let outcome =
        all_but_the_last_are_complete(&Plan { fault: Fault::Dead, ..Plan::default() }, "not answered");
    let is_named =
        |event: &Event| matches!(event, Event::Warning { message, .. } if message.contains("10.0.1.3"));
    assert!(outcome.events.iter().any(is_named), "{:?}", outcome.events);
}

#[test]
fn receiver_that_answers_no_question_is_dropped_before_data() {
    let plan = Plan { fault: Fault::Silent, ..Plan::default() };
    let outcome = all_but_the_last_are_complete(&plan, "does not answer packets to the group");
    assert!(outcome.sent.expect("it ends").until_data.as_secs_f64() > 5.0);
}

#[test]
fn receiver_that_gets_no_data_is_dropped() {
    let plan = Plan { fault: Fault::Starved, ..Plan::default() };
    all_but_the_last_are_complete(&plan, "the blocks that it lacks do not arrive");
}

#[test]
fn late_receiver_is_refused() {
    let plan = Plan { fault: Fault::Late, ..Plan::default() };
    let outcome = run(&plan);
    let sent = outcome.sent.expect("the source ends well");
    assert!(sent.ok && sent.completed == 2 && sent.receivers == 2, "{sent:?}");
    let (last, others) = outcome.received.split_last().expect("receivers");
    others.iter().for_each(|received| is_complete(&plan, received));
    let error = last.0.as_ref().expect_err("it is refused");
    assert!(error.to_string().contains("has refused this receiver"), "{error}");
}

#[test]
fn source_waits_for_the_expected_number_of_receivers() {
    let sent = |expect| {
        let plan = Plan { expect, loss: 0.0, ..Plan::default() };
        run(&plan).sent.expect("the source ends well")
    };
    for expect in [Some(3), None] {
        let sent = sent(expect);
        assert!(sent.ok && sent.until_data.as_secs_f64() < 4.0, "{sent:?}");
    }
    let late = sent(Some(4));
    assert!((10.0..13.0).contains(&late.until_data.as_secs_f64()), "{late:?}");
    assert!(!late.ok && late.absent == 1 && late.completed == 3, "{late:?}");
}

#[test]
fn source_without_receivers_ends_with_an_error() {
    let outcome = run(&Plan { receivers: 0, ..Plan::default() });
    let error = outcome.sent.expect_err("nobody has joined");
    assert!(error.to_string().contains("no udpcast receiver has joined within 10 s"), "{error}");
}

#[test]
fn receivers_of_a_large_group_answer_in_turn() {
    let plan = Plan { receivers: 100, content: content(1_500_000), loss: 0.005, ..Plan::default() };
    let sent = all_are_complete(&plan);
    let answers = sent.answers as f64 / sent.duration.as_secs_f64();
    println!("{} polls, {} answers in {:?}", sent.polls, sent.answers, sent.duration);
    assert!(answers < 5_000.0, "{sent:?}");
}

#[test]
fn runs_with_the_same_random_seed_are_equal() {
    let run = || run(&Plan::default()).sent.expect("the source ends well");
    assert_eq!(run(), run());
}
