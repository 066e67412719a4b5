//! A source and receivers in simulated time, connected by links with delay and loss.

use super::content_writer::ContentWriter;
use super::feed::{Feed, Input, ReadResult};
use super::missing::Timeouts;
use super::receiver::{self, Setup as ReceiverSetup};
use super::source::{self, Setup as SourceSetup};
use super::{Framing, Messages, PgmReceiveReport, PgmSendReport, WindowLimits};
use crate::codec::{Gsi, Tsi};
use faircast_core::rate::Bounds;
use faircast_core::rng::Rng;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Rate, Span, Time};
use faircast_driver::format::Reporting;
use faircast_simnet::{Copies, Happens, Hosts, Link, Site, Ties};
use faircast_transport::config::ReceiverEvents;
use faircast_transport::endpoint::Endpoint;
use faircast_transport::error::Error;
use faircast_transport::event::{Condition, Event, ReceiverState};
use faircast_transport::step_driver::{give, take_all};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::{Arc, Mutex};

const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 1, 2, 3), 5555);
const DELAY: Span = Span::from_millis(10);

struct Bytes(Vec<u8>);

impl Input for Bytes {
    fn read(&mut self, most: usize, into: &mut Vec<u8>) -> io::Result<ReadResult> {
        let len = most.min(self.0.len());
        into.extend(self.0.drain(..len));
        Ok(if len == 0 { ReadResult::End } else { ReadResult::Bytes })
    }
}

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

/// Parts of a run.
#[derive(Clone)]
struct Plan {
    scheme: &'static str,
    framing: Framing,
    messages: Option<Messages>,
    content: Vec<u8>,
    receivers: u8,
    /// Loss probability of packets in both directions.
    loss: f64,
    first: u32,
    window: WindowLimits,
    /// Time after the first data packet in which the source receives no packets.
    deaf: Span,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            scheme: "ormcc",
            framing: Framing::None,
            messages: None,
            content: content(400_000),
            receivers: 3,
            loss: 0.02,
            first: 0,
            window: WindowLimits::default(),
            deaf: Span::ZERO,
        }
    }
}

/// Returns lines of many lengths.
fn content(len: usize) -> Vec<u8> {
    let mut rng = Rng::new(7, 0);
    let mut bytes: Vec<u8> =
        (0..len).map(|_| if rng.chance(0.01) { b'\n' } else { rng.below(256) as u8 }).collect();
    bytes.push(b'\n');
    bytes
}

struct Outcome {
    sent: PgmSendReport,
    /// States of receivers, each second.
    states: Vec<ReceiverState>,
    received: Vec<(Result<PgmReceiveReport, Error>, Vec<u8>)>,
}

/// A network of hosts: the source is host 0, and the receivers are the following hosts.
struct Network {
    plan: Plan,
    source: source::PgmSource,
    receivers: Vec<(receiver::PgmReceiver, Written, Ipv4Addr)>,
    links: faircast_simnet::Network<usize, (), (), ()>,
    loss: Loss,
    started: Option<Time>,
    states: Vec<ReceiverState>,
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

impl Network {
    fn new(plan: Plan) -> Network {
        let scheme: Scheme = plan.scheme.parse().expect("a scheme of the catalogue");
        let bytes = Bytes(plan.content.clone());
        let feed = Feed::new(Box::new(bytes), plan.framing, plan.messages, 1_000);
        let setup = SourceSetup {
            tsi: Tsi { gsi: Gsi([1, 2, 3, 4, 5, 6]), port: 77 },
            data_port: GROUP.port(),
            local: SOURCE,
            group: *GROUP.ip(),
            to: GROUP.into(),
            source: scheme.source(),
            scheme_number: scheme.number(),
            bounds: Bounds { max: Rate::from_mbps(20.0), ..scheme.bounds() },
            rng: Rng::new(1, 0),
            feed,
            room: 1_000,
            window: plan.window,
            linger: Span::from_secs(3),
            first: plan.first,
            total: None,
            receiver_events: ReceiverEvents::EverySecond,
        };
        let source = source::PgmSource::new(setup, Time::ZERO);
        let receivers: Vec<_> = (0..plan.receivers).map(|n| receiver(&plan, n)).collect();
        let mut links = faircast_simnet::Network::new(28, Ties::Booked);
        let link = Link::after(DELAY).losing(plan.loss);
        links.site(Site { members: (1..=receivers.len()).collect(), ..Site::new(vec![()], link, link) });
        Network {
            plan,
            source,
            receivers,
            links,
            loss: Loss(Rng::new(3, 0)),
            started: None,
            states: Vec::new(),
        }
    }

    fn run(mut self) -> Outcome {
        (0..=self.receivers.len()).for_each(|host| self.drive(host));
        while !self.source.is_finished() || self.receivers.iter().any(|(session, ..)| !session.is_finished())
        {
            let next = self.links.next(Time::ZERO + Span::from_secs(600));
            match next.expect("it comes to an end") {
                Happens::Arrives { host, from, mut bytes, .. } => {
                    self.arrive(host, from, &mut bytes);
                    self.drive(host);
                }
                Happens::Wakes(host) => self.drive(host),
                Happens::Other(()) => {}
            }
        }
        let received = self.receivers.into_iter();
        Outcome {
            sent: self.source.report().expect("the source ends well"),
            states: self.states,
            received: received
                .map(|(session, written, _)| {
                    (session.report(), std::mem::take(&mut *written.0.lock().expect("nobody panics")))
                })
                .collect(),
        }
    }

    fn arrive(&mut self, host: usize, from: SocketAddr, bytes: &mut [u8]) {
        let now = self.links.now;
        match host.checked_sub(1) {
            None => {
                let deaf = self.started.is_some_and(|started| now < started + self.plan.deaf);
                if !deaf {
                    give(&mut self.source, bytes, from, now);
                }
            }
            Some(receiver) => give(&mut self.receivers[receiver].0, bytes, from, now),
        }
    }

    /// Runs all due actions of a host.
    fn drive(&mut self, host: usize) {
        let now = self.links.now;
        let (session, from): (&mut dyn Endpoint, SocketAddr) = match host.checked_sub(1) {
            None => (&mut self.source, (SOURCE, 5555).into()),
            Some(receiver) => {
                let (session, _, address) = &mut self.receivers[receiver];
                (session, (*address, 40_000).into())
            }
        };
        session.handle_timeout(now);
        while let Some(event) = session.poll_event() {
            if let Event::Receivers { receivers } = event {
                self.states.extend(receivers);
            }
        }
        for (bytes, to) in take_all(session, now) {
            if host == 0 {
                assert_eq!(to, SocketAddr::from(GROUP));
                if bytes[4] == 4 {
                    self.started.get_or_insert(now);
                }
                self.links.multicast(&mut self.loss, (now, &()), (from, to, true), &bytes);
            } else {
                assert_eq!(to, SocketAddr::from((SOURCE, GROUP.port())));
                self.links.unicast(&mut self.loss, (host, (0, ())), from, &bytes, |(), host| host == 0);
            }
        }
        let wake = if session.is_finished() { Time::NEVER } else { session.poll_timeout(now) };
        let wake = if wake.is_never() { wake } else { wake.max(now + Span::from_nanos(1)) };
        self.links.wake(host, wake);
    }
}

fn receiver(plan: &Plan, n: u8) -> (receiver::PgmReceiver, Written, Ipv4Addr) {
    let (framing, messages) = (plan.framing, plan.messages);
    let address = Ipv4Addr::new(10, 0, 1, n + 1);
    let setup = ReceiverSetup {
        group: GROUP,
        local: address,
        data_port: GROUP.port(),
        nak_port: GROUP.port(),
        only: None,
        join_timeout: Some(Span::from_secs(10)),
        idle_timeout: Span::from_secs(30),
        timeouts: Timeouts::default(),
        most_held: super::receiver::MAX_HELD,
        rng: Rng::new(2, n.into()),
    };
    let written = Written::default();
    let to = written.clone();
    let open = Box::new(move |_| Ok(ContentWriter::new(Box::new(to.clone()), framing, messages)));
    (receiver::PgmReceiver::new(setup, open, Time::ZERO), written, address)
}

fn run(plan: Plan) -> Outcome {
    Network::new(plan).run()
}

fn everybody_has_everything(plan: Plan) -> Outcome {
    let content = plan.content.clone();
    let outcome = run(plan);
    assert!(outcome.sent.ok, "{:?}", outcome.sent);
    assert_eq!(outcome.sent.bytes, content.len() as u64);
    for (report, written) in &outcome.received {
        let report = report.as_ref().expect("a receiver ends well");
        assert!(report.ok && report.unrecoverable == 0, "{report:?}");
        assert!(*written == content, "{} bytes of {}: {report:?}", written.len(), content.len());
    }
    outcome
}

#[test]
fn units_arrive_in_order_despite_losses() {
    let outcome = everybody_has_everything(Plan::default());
    assert!(outcome.sent.repairs > 10 && outcome.sent.naks > 10, "{:?}", outcome.sent);
    assert_eq!(outcome.sent.refused, 0);
    assert_eq!(outcome.sent.receivers, 3);
}

/// Returns the last state of each receiver.
fn last_states(outcome: &Outcome) -> BTreeMap<&str, &ReceiverState> {
    outcome.states.iter().map(|one| (one.host.as_str(), one)).collect()
}

#[test]
fn events_state_requests_and_loss_of_each_receiver() {
    for scheme in ["ormcc", "pgmcc", "le-sbcc", "tfmcc"] {
        let outcome =
            everybody_has_everything(Plan { scheme, content: content(2_000_000), ..Plan::default() });
        let last = last_states(&outcome);
        assert_eq!(
            last.keys().copied().collect::<Vec<_>>(),
            ["10.0.1.1", "10.0.1.2", "10.0.1.3"],
            "{scheme}"
        );
        let requested: u64 = last.values().map(|one| one.repair_symbols).sum();
        assert!(
            requested > 10 && requested <= outcome.sent.requested,
            "{scheme}: {requested} {:?}",
            outcome.sent
        );
        assert!(
            last.values().all(|one| one.state == Condition::Receiving && one.repair_symbols > 0),
            "{last:?}"
        );
        let limiting =
            outcome.states.iter().filter(|one| one.rtt.is_some_and(|rtt| rtt >= (DELAY * 2).into()));
        assert!(limiting.count() > 0, "{scheme}: {last:?}");
        let losses: Vec<f64> = outcome.states.iter().map(|one| one.loss).filter(|loss| *loss > 0.0).collect();
        assert!(!losses.is_empty() && losses.iter().all(|loss| *loss < 0.3), "{scheme}: {losses:?}");
    }
}

#[test]
fn receiver_without_losses_sends_no_nak() {
    let outcome = everybody_has_everything(Plan { loss: 0.0, ..Plan::default() });
    assert_eq!((outcome.sent.naks, outcome.sent.repairs), (0, 0));
}

#[test]
fn messages_arrive_in_order_despite_losses() {
    for messages in [None, Some(Messages::Lines), Some(Messages::Sized(300)), Some(Messages::Sized(3_000))] {
        everybody_has_everything(Plan { framing: Framing::Zmq, messages, ..Plan::default() });
    }
}

#[test]
fn units_larger_than_a_packet_arrive_whole() {
    let outcome =
        everybody_has_everything(Plan { messages: Some(Messages::Sized(10_000)), ..Plan::default() });
    assert_eq!(outcome.sent.messages, 41);
    assert!(outcome.sent.packets > 410);
    everybody_has_everything(Plan { messages: Some(Messages::Lines), ..Plan::default() });
}

#[test]
fn all_data_arrives_when_packet_numbers_wrap() {
    everybody_has_everything(Plan { first: u32::MAX - 100, ..Plan::default() });
}

#[test]
fn receiver_reports_packets_that_could_not_be_repaired() {
    let window = WindowLimits { age: Span::from_millis(500), ..WindowLimits::default() };
    let outcome = run(Plan { window, deaf: Span::from_secs(2), loss: 0.05, ..Plan::default() });
    let lost: u64 =
        outcome.received.iter().map(|(report, _)| report.as_ref().expect("an end").unrecoverable).sum();
    assert!(lost > 0);
    assert!(outcome.received.iter().any(|(report, _)| !report.as_ref().expect("an end").ok));
}

#[test]
fn runs_with_the_same_random_seed_send_the_same_packets() {
    let (one, other) = (run(Plan::default()), run(Plan::default()));
    assert_eq!(one.sent, other.sent);
}

#[test]
fn session_that_sends_an_empty_file_ends() {
    let outcome = run(Plan { content: Vec::new(), loss: 0.0, ..Plan::default() });
    assert_eq!(outcome.sent.packets, 0);
    assert!(outcome.received.iter().all(|(report, written)| report.is_ok() && written.is_empty()));
}
