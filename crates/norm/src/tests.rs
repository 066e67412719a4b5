//! A source and receivers in simulated time.

use super::NormSendReport;
use super::codec::{
    self, Command, Fec, Feedback, FeedbackKind, Form, Item, Message, Packet, PayloadId, Requests,
    SenderMessage, request_flags,
};
use super::files::Files;
use super::model::{Asks, Model};
use super::nodes::MAX_NODES;
use super::source::{NormSource, Setup};
use faircast_core::rate::Bounds;
use faircast_core::rng::Rng;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Rate, Span, Time};
use faircast_driver::format::Reporting;
use faircast_simnet::{Link, Pipe};
use faircast_transport::config::ReceiverEvents;
use faircast_transport::endpoint::Endpoint;
use faircast_transport::error::Error;
use faircast_transport::event::{Event, ReceiverState};
use faircast_transport::step_driver::{give, take_all};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

const GROUP: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(239, 255, 0, 1)), 6003);
pub(super) const SOURCE: u32 = 0x0a00_0001;
const DELAY: Span = Span::from_millis(10);
const SEGMENT: usize = 1_000;

/// Parts of a run.
struct Plan {
    files: Vec<(&'static str, usize)>,
    receivers: Vec<Asks>,
    /// Loss probability of packets in both directions.
    loss: f64,
    /// The rate of the link to the receivers.
    link: Rate,
    expect: Option<u32>,
    fec: Fec,
    /// Number of receivers, the last ones, that answer only probes.
    mute: usize,
    /// Whether a host sends forged NACKs.
    is_attacked: bool,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            files: vec![("image", 700_500), ("empty", 0), ("tree/deep/note", 17)],
            receivers: vec![Asks::Parity, Asks::Erasures, Asks::Ranges, Asks::Blocks],
            loss: 0.02,
            link: Rate::from_mbps(8.0),
            expect: None,
            fec: Fec::default(),
            mute: 0,
            is_attacked: false,
        }
    }
}

struct Outcome {
    sent: Result<NormSendReport, Error>,
    receivers: Vec<Model>,
    ended: Time,
    /// Largest number of different files among the packets of 100 ms.
    files_at_once: usize,
    /// States of receivers, each second.
    states: Vec<ReceiverState>,
}

/// A packet in transit: receiver (`None`: the source), sender, bytes.
type InTransit = (Option<usize>, SocketAddr, Vec<u8>);

fn content(name: &str, len: usize) -> Vec<u8> {
    let mut rng = Rng::new(name.len() as u64 + len as u64, 0);
    (0..len).map(|_| rng.below(256) as u8).collect()
}

pub(super) fn setup(directory: &Path, files: &[(&str, usize)], expect: Option<u32>, fec: Fec) -> Setup {
    for (name, len) in files {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().expect("it has a parent")).expect("the directory is ours");
        std::fs::write(path, content(name, *len)).expect("the directory is ours");
    }
    let tops: BTreeSet<&str> =
        files.iter().map(|(name, _)| name.split('/').next().expect("a part")).collect();
    let paths: Vec<_> = tops.into_iter().map(|top| directory.join(top)).collect();
    let (files, warnings) = Files::look(&paths, fec, SEGMENT).expect("they can be read");
    assert_eq!(warnings, Vec::<String>::new());
    let scheme: Scheme = "tfmcc".parse().expect("it is in the catalogue");
    let scheme = scheme.with_packet_size((SEGMENT + fec.data_header_len() + 28) as u16);
    Setup {
        group: GROUP,
        node: SOURCE,
        instance: 7,
        overhead: 28,
        bounds: Bounds { max: Rate::from_mbps(100.0), ..scheme.bounds() },
        scheme,
        rng: Rng::new(1, 0),
        files,
        expect,
        join_timeout: Span::from_secs(5),
        unix_secs: 1_800_000_000,
        receiver_events: ReceiverEvents::EverySecond,
    }
}

/// Returns the address of a receiver.
fn address(receiver: usize) -> SocketAddr {
    (Ipv4Addr::new(10, 0, 1, receiver as u8 + 1), GROUP.port()).into()
}

fn run(plan: &Plan) -> Outcome {
    let directory = tempfile::tempdir().expect("there is a place for temporary files");
    let mut source = NormSource::new(setup(directory.path(), &plan.files, plan.expect, plan.fec), Time::ZERO);
    let mut receivers: Vec<Model> =
        plan.receivers.iter().enumerate().map(|(n, asks)| Model::new(n as u32 + 2, *asks)).collect();
    let (mut rng, mut pipe) = (Rng::new(3, 0), Pipe::new(Link::after(DELAY).at(plan.link).fifo(60_000)));
    // Packets in transit, by time of arrival and number.
    let mut calendar: BTreeMap<(Time, u64), InTransit> = BTreeMap::new();
    let (mut now, mut number) = (Time::ZERO, 0);
    let mut recent: Vec<(Time, u16)> = Vec::new();
    let (mut files_at_once, mut states) = (0, Vec::new());
    let mut forged_at = if plan.is_attacked { Time::ZERO + Span::from_secs(2) } else { Time::NEVER };
    loop {
        source.handle_timeout(now);
        while let Some(event) = source.poll_event() {
            if let Event::Receivers { receivers } = event {
                states.extend(receivers);
            }
        }
        for (bytes, to) in take_all(&mut source, now) {
            assert_eq!(to, GROUP);
            if let Ok(Packet { message: Message::Sender(_, SenderMessage::Data { object, .. }), .. }) =
                codec::parse(&bytes)
            {
                recent.retain(|(at, _)| now.since(*at) < Span::from_millis(100));
                recent.push((now, object.id));
                files_at_once =
                    files_at_once.max(recent.iter().map(|(_, id)| id).collect::<BTreeSet<_>>().len());
            }
            let Some(at) = pipe.pass(bytes.len() as u64 + 28, now) else { continue };
            for receiver in (0..receivers.len()).filter(|_| rng.unit() >= plan.loss).collect::<Vec<_>>() {
                number += 1;
                calendar.insert((at, number), (Some(receiver), GROUP, bytes.clone()));
            }
        }
        if source.is_finished() {
            break;
        }
        assert!(now < Time::ZERO + Span::from_secs(3_000), "it does not end");
        let first = calendar.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
        let nack = receivers.iter().map(Model::deadline).min().unwrap_or(Time::NEVER);
        let wake = source.poll_timeout(now).max(now + Span::from_nanos(1));
        now = first.min(nack).min(wake).min(forged_at);
        if now >= forged_at {
            forged_at = now + Span::from_millis(5);
            let (mut bytes, from) = (forged_nack(900), (Ipv4Addr::new(10, 0, 9, 9), 1).into());
            give(&mut source, &mut bytes, from, now);
        }
        let mut answers = Vec::new();
        while let Some(entry) = calendar.first_entry().filter(|entry| entry.key().0 <= now) {
            let (to, from, mut bytes) = entry.remove();
            match to {
                None => give(&mut source, &mut bytes, from, now),
                Some(receiver) => answers.push((receiver, receivers[receiver].on_packet(&bytes, now))),
            }
        }
        answers.extend(receivers.iter_mut().map(|receiver| receiver.on_time(now)).enumerate());
        for (receiver, bytes) in answers.into_iter().filter_map(|(receiver, bytes)| Some((receiver, bytes?)))
        {
            let is_mute = receiver + plan.mute >= receivers.len() && !is_answer_to_probe(&bytes);
            if !is_mute && rng.unit() >= plan.loss {
                number += 1;
                calendar.insert((now + DELAY, number), (None, address(receiver), bytes));
            }
        }
    }
    Outcome { sent: source.report(), receivers, ended: now, files_at_once, states }
}

fn is_answer_to_probe(bytes: &[u8]) -> bool {
    let Ok(Packet { message: Message::Feedback(feedback), .. }) = codec::parse(bytes) else { return false };
    matches!(feedback.kind, FeedbackKind::Ack { answer: codec::Answer::Cc, .. })
}

/// Returns a NACK of a node that requests the first object again and again.
pub(super) fn forged_nack(node: u32) -> Vec<u8> {
    let (mut requests, mut bytes) = (Vec::new(), Vec::new());
    let item = Item::new(Fec::default(), 0, PayloadId { block: 0, symbol: 0 });
    codec::push_request(&mut requests, Form::Items, request_flags::OBJECT, &[item]);
    let requests = Requests::parse(&requests).expect("it was written just now");
    let kind = FeedbackKind::Nack(requests);
    let feedback = Feedback { server: SOURCE, instance: 7, response: (0, 0), cc: None, kind };
    codec::encode(&mut bytes, &Packet { sequence: 0, source: node, message: Message::Feedback(feedback) });
    bytes
}

fn is_complete(plan: &Plan, receiver: &Model) {
    let expected: BTreeMap<String, Vec<u8>> =
        plan.files.iter().map(|(name, len)| ((*name).to_owned(), content(name, *len))).collect();
    let got = receiver.files();
    assert_eq!(got.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "node {}", receiver.id);
    assert!(got == expected, "node {} has other bytes", receiver.id);
}

fn all_are_complete(plan: &Plan) -> (NormSendReport, Outcome) {
    let outcome = run(plan);
    let sent = outcome.sent.as_ref().expect("the source ends well").clone();
    assert!(sent.ok && sent.completed == plan.receivers.len() as u64, "{sent:?}");
    outcome.receivers.iter().for_each(|receiver| is_complete(plan, receiver));
    (sent, outcome)
}

#[test]
fn every_form_of_request_is_answered_by_the_missing_symbols() {
    for fec in Fec::ALL {
        let (sent, _) = all_are_complete(&Plan { fec, ..Plan::default() });
        assert!(sent.repairs > 20 && sent.naks > 10 && sent.parity > 5, "{fec:?}: {sent:?}");
        assert!(sent.files == 3 && sent.bytes == 700_517, "{fec:?}: {sent:?}");
    }
    for asks in [Asks::Parity, Asks::Erasures, Asks::Ranges] {
        let plan = Plan { receivers: vec![asks; 3], ..Plan::default() };
        let (sent, _) = all_are_complete(&plan);
        assert!(sent.repairs < 150, "{asks:?}: {sent:?}");
        assert_eq!(sent.parity > 0, asks != Asks::Ranges, "{asks:?}: {sent:?}");
    }
}

#[test]
fn session_without_losses_sends_nothing_twice() {
    let plan = Plan { loss: 0.0, link: Rate::from_mbps(1_000.0), ..Plan::default() };
    let (sent, _) = all_are_complete(&plan);
    assert_eq!((sent.repairs, sent.naks, sent.refused), (0, 0, 0), "{sent:?}");
    assert_eq!(sent.packets, 701 + 1 + 3);
}

#[test]
fn rate_follows_the_receivers_behind_a_slow_link() {
    let plan = Plan {
        files: vec![("image", 8_000_000)],
        receivers: vec![Asks::Parity; 3],
        loss: 0.0,
        link: Rate::from_mbps(4.0),
        ..Plan::default()
    };
    let (sent, _) = all_are_complete(&plan);
    let share = sent.goodput.bps() / 4e6;
    assert!((0.4..1.0).contains(&share) && sent.cuts > 3, "{share}: {sent:?}");
    // A lossy path to one receiver halves the rate of all at least.
    let lossy = Plan { loss: 0.05, ..plan };
    let (sent, outcome) = all_are_complete(&lossy);
    assert!(sent.goodput.bps() / 4e6 < share * 0.8, "{share}: {sent:?}");
    let hosts: BTreeSet<_> = outcome.states.iter().map(|one| one.host.clone()).collect();
    assert_eq!(hosts, (0..3).map(|n| address(n).ip().to_string()).collect());
    let limiting = outcome.states.iter().filter(|one| one.rtt.is_some() && one.loss > 0.0);
    let seconds = outcome.ended.as_secs_f64();
    assert!(limiting.count() as f64 > seconds / 2.0, "one receiver limits the rate in most seconds");
    assert!(outcome.states.iter().all(|one| one.rate.bps() < 4.4e6), "no rate exceeds that of the source");
}

#[test]
fn receiver_without_acknowledgement_is_named_and_stops_nothing() {
    let plan = Plan { mute: 1, loss: 0.0, ..Plan::default() };
    let outcome = run(&plan);
    let sent = outcome.sent.expect("the source ends well");
    let [left] = sent.incomplete.as_slice() else { panic!("{sent:?}") };
    assert_eq!((left.host.as_str(), sent.completed, sent.ok), ("10.0.1.4", 3, false));
    assert!(left.reason.contains("not acknowledged"), "{left:?}");
    assert!(outcome.ended < Time::ZERO + Span::from_secs(30), "{:?}", outcome.ended);
}

#[test]
fn missing_receivers_are_counted_and_an_empty_group_is_an_error() {
    let plan = Plan { expect: Some(6), loss: 0.0, ..Plan::default() };
    let sent = run(&plan).sent.expect("the source ends well");
    assert_eq!((sent.absent, sent.completed, sent.ok), (2, 4, false));
    assert!(sent.until_data.as_secs_f64() >= 5.0, "{sent:?}");
    let nobody = Plan { receivers: Vec::new(), ..Plan::default() };
    let error = run(&nobody).sent.expect_err("nobody answers").to_string();
    assert!(error.contains("within 5 s") && error.contains("239.255.0.1:6003"), "{error}");
}

#[test]
fn forged_nacks_neither_stop_the_content_nor_last_forever() {
    let plan = Plan { is_attacked: true, loss: 0.0, link: Rate::from_mbps(1_000.0), ..Plan::default() };
    let outcome = run(&plan);
    let sent = outcome.sent.expect("the source ends well");
    outcome.receivers.iter().for_each(|receiver| is_complete(&plan, receiver));
    assert_eq!(sent.completed, 4, "{sent:?}");
    assert!(sent.repairs <= 10_000 + 8 * 702, "{sent:?}");
}

#[test]
fn number_of_files_in_transit_is_bounded() {
    let names: Vec<&'static str> = (0..700).map(|n| &*Box::leak(format!("d/{n}").into_boxed_str())).collect();
    let files = names.iter().map(|name| (*name, 100)).collect();
    let (_, outcome) = all_are_complete(&Plan { files, ..Plan::default() });
    assert!(outcome.files_at_once <= 128 + 20, "{}", outcome.files_at_once);
}

#[test]
fn number_of_nodes_is_bounded_and_nodes_keep_their_addresses() {
    let directory = tempfile::tempdir().expect("there is a place for temporary files");
    let mut source = NormSource::new(setup(directory.path(), &[("a", 5)], None, Fec::default()), Time::ZERO);
    let from = |host: u8| SocketAddr::from((Ipv4Addr::new(10, 0, 9, host), 1));
    for node in 1..=MAX_NODES as u32 + 10 {
        give(&mut source, &mut forged_nack(node), from(1), Time::ZERO);
    }
    give(&mut source, &mut forged_nack(1), from(2), Time::ZERO);
    for node in [0, u32::MAX] {
        give(&mut source, &mut forged_nack(node), from(1), Time::ZERO);
    }
    let report = source.report().expect("it has not failed");
    assert_eq!((report.receivers, report.refused), (MAX_NODES as u64, 13));
}

#[test]
fn end_of_the_session_is_announced() {
    let directory = tempfile::tempdir().expect("there is a place for temporary files");
    let mut source = NormSource::new(setup(directory.path(), &[("a", 5)], None, Fec::default()), Time::ZERO);
    source.stop(Time::ZERO);
    let (mut now, mut ends) = (Time::ZERO, 0);
    while !source.is_finished() {
        source.handle_timeout(now);
        for (bytes, _) in take_all(&mut source, now) {
            let packet = codec::parse(&bytes).expect("it is a message");
            ends += usize::from(matches!(
                packet.message,
                Message::Sender(_, SenderMessage::Command(Command::Eot))
            ));
        }
        now += Span::from_millis(50);
    }
    assert_eq!(ends, 3);
}
