//! Events of `tracing`: their targets, messages, fields and times, for every scheme.

use super::tree::{branch, schemes};
use super::*;
use crate::event::{Condition, Counts, RateCut, ReceiverOutcome, ReceiverState, SendReport};
use crate::relay::RouterKind;
use faircast_core::schemes::{CATALOGUE, Feedback};
use faircast_core::time::Rate;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Once;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Level, Metadata, Subscriber};

/// An event of `tracing`, as a subscriber receives it.
#[derive(Debug, Clone)]
struct Traced {
    target: &'static str,
    level: Level,
    texts: BTreeMap<&'static str, String>,
    numbers: BTreeMap<&'static str, f64>,
}

impl Traced {
    fn text(&self, field: &str) -> &str {
        self.texts.get(field).map_or("", String::as_str)
    }

    fn number(&self, field: &str) -> f64 {
        *self.numbers.get(field).unwrap_or_else(|| panic!("no number {field} in {self:?}"))
    }

    fn is(&self, target: &str, message: &str) -> bool {
        self.target.strip_prefix("faircast::") == Some(target) && self.text("message") == message
    }
}

impl Visit for Traced {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.texts.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.texts.insert(field.name(), value.to_owned());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.numbers.insert(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.numbers.insert(field.name(), value as f64);
    }
}

thread_local! {
    /// Events of this thread's test while the test collects them; otherwise `None`.
    static COLLECTED: RefCell<Option<Vec<Traced>>> = const { RefCell::new(None) };
}

/// A subscriber for all threads. A separate subscriber for each test would lose events. Another test may reach the code of an
/// event before the subscriber is set, and `tracing` then caches that the event has no subscriber.
struct Collector;

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("faircast::")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        panic!("sessions have no spans")
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        COLLECTED.with_borrow_mut(|collected| {
            let Some(collected) = collected else { return };
            let metadata = event.metadata();
            let (texts, numbers) = (BTreeMap::new(), BTreeMap::new());
            let mut traced = Traced { target: metadata.target(), level: *metadata.level(), texts, numbers };
            event.record(&mut traced);
            collected.push(traced);
        });
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Events of a network, in order.
struct Events(Vec<Traced>);

impl Events {
    /// Runs `run`, and returns its events.
    fn of(run: impl FnOnce()) -> Events {
        static SUBSCRIBED: Once = Once::new();
        SUBSCRIBED
            .call_once(|| tracing::subscriber::set_global_default(Collector).expect("there is no other"));
        COLLECTED.set(Some(Vec::new()));
        run();
        Events(COLLECTED.take().expect("they are collected"))
    }

    fn all(&self, target: &'static str, message: &'static str) -> impl Iterator<Item = &Traced> {
        self.0.iter().filter(move |event| event.is(target, message))
    }

    fn count(&self, target: &'static str, message: &'static str) -> usize {
        self.all(target, message).count()
    }

    /// Returns the receivers named in events of this kind.
    fn receivers(&self, target: &'static str, message: &'static str) -> BTreeSet<&str> {
        self.all(target, message).map(|event| event.text("receiver")).collect()
    }
}

#[test]
fn every_scheme_traces_joins_reports_cuts_repairs_and_blocks() {
    for entry in CATALOGUE {
        let name = entry.name;
        let mut net = Net::new(61);
        let (mut all, mut source) = (0..0, 0);
        let events = Events::of(|| {
            let down = Link::millis(5).mbps(4.0).fifo(20_000).losing(0.01);
            all = net.receivers(2, down, Link::millis(5));
            source = net.source(Offer::bytes(3_000_000).by(name).expect(2).at_most_mbps(30.0));
            net.run_to_end(secs(300));
        });
        net.assert_all_verified(source, all);
        let report = net.sources[source].report();

        for message in ["member joined", "session found", "receiver admitted", "member left"] {
            assert_eq!(events.receivers("join", message).len(), 2, "{name}: {message}");
        }
        assert!(events.all("join", "member left").all(|event| event.text("reason") == "done"), "{name}");

        let by_way =
            |message, way| events.all("report", message).filter(move |event| event.text("way") == way);
        assert!(by_way("state", "sent").count() >= 4 && by_way("state", "received").count() >= 4, "{name}");
        let missing = by_way("state", "sent").filter_map(|event| event.numbers.get("blocks_missing"));
        let most = missing.fold(0.0, |most: f64, missing| most.max(*missing));
        let blocks = events.count("store", "block verified") / 2;
        assert!((1.0..=blocks as f64).contains(&most), "{name}: {most} of {blocks} blocks");
        let reports = by_way("report", "received").count();
        assert_eq!(reports > 0, entry.feedback == Feedback::Reports, "{name}: {reports}");
        assert!(by_way("report", "sent").count() >= reports, "{name}");

        let blocks: BTreeSet<(&str, u64)> = events
            .all("store", "block verified")
            .map(|e| (e.text("receiver"), e.number("block") as u64))
            .collect();
        assert_eq!(blocks.len(), events.count("store", "block verified"), "{name}: each block once");
        let stored = events.all("store", "blocks stored").last().expect("blocks are stored");
        assert_eq!(stored.number("bytes_waiting"), 0.0, "{name}");
        let verified = events.all("store", "block verified").map(|event| event.number("bytes")).sum::<f64>();
        assert_eq!(verified, 2.0 * stored.number("bytes"), "{name}: of two receivers");

        let is_single_rate = schemes().any(|single| single == name);
        let (requested, sent) =
            (events.count("repair", "repair requested"), events.count("repair", "repair sent"));
        assert_eq!(
            (requested > 0, sent > 0),
            (is_single_rate, is_single_rate),
            "{name}: {requested}, {sent}"
        );

        assert_eq!(events.count("cut", "rate cut") as u64, report.cuts, "{name}");
        assert_eq!(report.cuts > 0, entry.feedback == Feedback::Reports, "{name}");
        assert!(report.cuts > 0 || events.count("cut", "layers left") > 0, "{name}: somebody slows down");

        assert_states_and_cuts_are_reported(&net, source, report.cuts);
        assert_rate_is_explained(name, &events, report, is_single_rate);
        assert_trace_has_the_report(name, &events, report);

        let end = net.now.as_secs_f64();
        for event in &events.0 {
            assert!((0.0..=end).contains(&event.number("at")), "{name}: {event:?}");
            assert!(["source", "receiver"].contains(&event.text("role")), "{name}: {event:?}");
            // A receiver asks whether a session continues before it joins the session.
            let is_asked = event.text("state") == "Asking" && event.text("way") == "sent";
            let session = if is_asked { "" } else { "source" };
            assert_eq!(event.text("session"), session, "{name}: {event:?}");
        }
        println!(
            "{name}: {} events, {reports} reports, {requested} requests, {sent} repairs, {} cuts",
            events.0.len(),
            report.cuts
        );
    }
}

/// Asserts that the events have what the twin of a session needs, as in the report.
fn assert_trace_has_the_report(name: &str, events: &Events, report: &SendReport) {
    let only = |message| events.all("session", message).next().unwrap_or_else(|| panic!("{name}: {message}"));
    let (started, ended) = (only("session started"), only("session ended"));
    let stated = [started.number("packet_bytes"), started.number("layers"), ended.number("packets")];
    assert_eq!(stated, [report.packet_bytes as f64, report.layers.into(), report.packets as f64], "{name}");
    assert_eq!(started.numbers.get("max_bps"), Some(&30e6), "{name}");
    let seconds = report.duration.as_secs_f64();
    assert_eq!(
        (ended.number("seconds"), ended.number("repair_ratio")),
        (seconds, report.repair_ratio),
        "{name}"
    );
    for one in &report.each {
        let left = events.all("join", "member left").find(|left| left.text("host") == one.host);
        let left = left.unwrap_or_else(|| panic!("{name}: {one:?}"));
        assert_eq!((left.number("receivers"), left.number("loss")), (1.0, one.loss), "{name}: {one:?}");
        // A late echo may change the times after a receiver has left.
        for (field, time) in [("rtt_ms", one.rtt), ("congested_rtt_ms", one.congested_rtt)] {
            let (traced, time) = (left.numbers.get(field), time.map(|time| time.as_secs_f64() * 1e3));
            let near = traced.zip(time).is_some_and(|(traced, time)| (0.8..1.25).contains(&(traced / time)));
            assert!(near || (traced, time) == (None, None), "{name}: {field}: {traced:?} ms, {time:?} ms");
        }
    }
}

/// Asserts that events explain the rate: its samples, its limits, the receiver that the scheme follows, and the windows.
fn assert_rate_is_explained(name: &str, events: &Events, report: &SendReport, is_single_rate: bool) {
    let only = |message| {
        let mut all = events.all("session", message);
        all.next().filter(|_| all.next().is_none()).unwrap_or_else(|| panic!("{name}: one {message}"))
    };
    let (started, ended) = (only("session started"), only("session ended"));
    assert_eq!((started.text("scheme"), started.number("receivers")), (name, 2.0), "{name}");
    assert_eq!((ended.number("verified"), ended.number("cuts")), (2.0, report.cuts as f64), "{name}");
    assert_eq!(events.receivers("session", "content complete").len(), 2, "{name}");
    assert_eq!(events.receivers("rate", "rate received").len(), 2, "{name}");

    let (mut last, mut packets, mut limits) = (started.number("at"), 0.0, BTreeSet::new());
    let (mut followed, mut last_limit) = ("", ("", ""));
    for event in &events.0 {
        if event.is("rate", "representative changed") {
            assert_eq!(event.text("receiver_before"), followed, "{name}: {event:?}");
            followed = event.text("receiver");
        } else if event.is("rate", "rate sampled") {
            assert!(event.number("at") > last + 0.099, "{name}: {event:?}");
            last = event.number("at");
            packets += event.number("packets");
            assert_eq!(event.text("limiting"), followed, "{name}: {event:?}");
            let limit = event.text("limited_by");
            assert_eq!(limit.is_empty(), !is_single_rate, "{name}: {event:?}");
            assert_eq!(limit == "window", event.texts.contains_key("window_of"), "{name}: {event:?}");
            limits.insert(limit);
        } else if event.is("rate", "limit changed") {
            let limit = (event.text("limited_by"), event.text("receiver"));
            assert!(
                limit != last_limit && (limit.0 != "congestion" || limit.1 == followed),
                "{name}: {event:?}"
            );
            last_limit = limit;
        }
    }
    assert!((0.9..=1.0).contains(&(packets / report.packets as f64)), "{name}: {packets} packets in samples");
    assert_eq!(events.count("rate", "limit changed") > 0, is_single_rate, "{name}");
    let windows = |way| events.all("window", "window").filter(move |event| event.text("way") == way).count();
    assert!(windows("sent") >= windows("received"), "{name}");
    assert_eq!(windows("received") > 0, is_single_rate, "{name}");
    println!("{name}: {limits:?}, {} windows, follows {followed:?}", windows("received"));
}

/// Asserts that the events of a source with two receivers state each receiver and each rate cut.
fn assert_states_and_cuts_are_reported(net: &Net, source: usize, cuts: u64) {
    let (mut listed, mut counted, mut states) = (0, Counts::default(), 0);
    for (_, event) in &net.sources[source].events {
        match event {
            Event::Progress(progress) => {
                let counts = *progress.counts.clone().expect("it is faircast's own format");
                assert!(counts.packets >= counted.packets && counts.repairs >= counted.repairs, "{counts:?}");
                let recent = counts.cuts - counted.cuts;
                assert_eq!(progress.cuts.len() as u64, recent.min(RateCut::LISTED as u64), "{progress:?}");
                assert!(progress.cuts.iter().all(|cut| cut.at <= progress.elapsed && cut.from > Rate::ZERO));
                (listed, counted) = (listed + progress.cuts.len(), counts);
            }
            Event::Receivers { receivers } => {
                let is_known = |one: &ReceiverState| one.host.starts_with("host") && one.receivers == 1;
                assert!(
                    (1..=2).contains(&receivers.len()) && receivers.iter().all(is_known),
                    "{receivers:?}"
                );
                let moved = |one: &ReceiverState| one.verified_bytes > 0 && one.rate > Rate::ZERO;
                states +=
                    receivers.iter().filter(|one| moved(one) && one.state == Condition::Receiving).count();
            }
            _ => {}
        }
    }
    assert!(states > 2 && counted.packets > 500 && counted.cuts <= cuts, "{states} states, {counted:?}");
    assert!(listed > 0 || counted.cuts == 0, "{counted:?}");
}

#[test]
fn traced_cut_states_the_rates_before_and_after_it() {
    let mut net = Net::new(62);
    let events = Events::of(|| {
        net.receivers(1, Link::millis(10).mbps(5.0).fifo(20_000), Link::millis(10));
        net.source(Offer::bytes(3_000_000).by("ormcc").expect(1));
        net.run_to_end(secs(300));
    });
    let cuts: Vec<_> = events.all("cut", "rate cut").collect();
    let lower = cuts.iter().filter(|cut| cut.number("rate_bps") < cut.number("rate_before_bps"));
    assert!(lower.count() > 2, "{cuts:?}");
    for cut in cuts {
        assert!(cut.number("rate_bps") <= cut.number("rate_before_bps"), "{cut:?}");
        assert_eq!((cut.text("reason"), cut.level), ("loss", Level::DEBUG), "{cut:?}");
        assert_eq!(
            cut.text("receiver"),
            events.all("join", "member joined").next().expect("one joins").text("receiver")
        );
        assert!((10.0..1e3).contains(&cut.number("rtt_ms")), "{cut:?}");
    }
}

#[test]
fn silent_member_is_traced_as_given_up() {
    let mut net = Net::new(63);
    let events = Events::of(|| {
        net.receivers(2, Link::millis(5).mbps(8.0).fifo(40_000), Link::millis(5));
        net.source(Offer::bytes(8_000_000).expect(2));
        net.run_for(secs(3));
        net.kill_receiver(0);
        net.run_to_end(secs(300));
    });
    let given_up: Vec<_> = events.all("join", "member given up").map(|event| event.text("reason")).collect();
    assert_eq!(given_up, ["silent"]);
}

#[test]
fn unsigned_blocks_are_traced_as_wrong() {
    let mut net = Net::new(4);
    let events = Events::of(|| _ = super::signed::run_with_a_forged_block(&mut net, "ormcc"));
    let wrong: Vec<_> = events.all("store", "block wrong").collect();
    assert!(!wrong.is_empty() && wrong.iter().all(|event| event.text("reason") == "not signed"), "{wrong:?}");
}

#[test]
fn failure_to_create_a_directory_is_traced() {
    let mut net = Net::new(66);
    let out = net.dir.path().join("out0");
    let events = Events::of(|| {
        net.receivers(1, Link::millis(5).mbps(8.0).fifo(40_000), Link::millis(5));
        std::fs::remove_dir_all(&out).expect("it is empty");
        std::fs::write(&out, "a file in its place").expect("it can be written");
        net.source(Offer::bytes(1_000_000).expect(1).wait_secs(2));
        net.run_to_end(secs(300));
    });
    let failed: Vec<_> = events.all("store", "store failed").collect();
    assert!(failed.len() == 1 && failed[0].text("reason").contains("out0"), "{failed:?}");
    assert_eq!(events.count("store", "block verified"), 0);
}

#[test]
fn relays_trace_their_branches_and_receivers_their_parents() {
    for name in schemes() {
        let mut tree = Net::of(64, Offer::bytes(6_000_000).by(name).expect(2).at_most_mbps(8.0));
        let link = || Link::millis(4).mbps(30.0).fifo(80_000).losing(0.001);
        let first = tree.relay(Head::Source(0), 1, 64 << 20, link());
        let second = tree.relay(Head::Source(0), 1, 64 << 20, link());
        tree.behind(branch(first, 0), 2, link());
        (0..2).for_each(|receiver| tree.attach(Who::Receiver(receiver), branch(second, 0), link()));
        let events = Events::of(|| {
            tree.start();
            tree.run_for(secs(3));
            tree.kill_relay(first);
            tree.run_to_end(secs(300));
        });
        assert!(tree.sources[0].report().ok, "{name}");
        assert_eq!(events.count("relay", "branch begun"), 2, "{name}");
        assert_eq!(events.receivers("relay", "relay attached").len(), 2, "{name}");
        let moved: Vec<_> = events.all("relay", "parent changed").collect();
        assert!((1..=2).contains(&moved.len()), "{name}: those of the first relay: {moved:?}");
        assert!(moved.iter().all(|event| event.text("reason") == "silent"), "{name}: {moved:?}");
        let at_relays = events.all("join", "member joined").filter(|event| event.text("role") == "relay");
        assert_eq!(at_relays.count(), 2 + moved.len(), "{name}");
        let verified =
            tree.sources[0].report().each.iter().filter(|one| one.outcome == ReceiverOutcome::Verified);
        assert_eq!(
            verified.map(|one| one.receivers).sum::<u64>(),
            2,
            "{name}: the receivers below relays count"
        );
        let done = events.all("join", "member left").filter(|event| event.text("reason") == "done");
        let at_source = done.filter(|event| event.text("role") == "source");
        assert_eq!(at_source.map(|event| event.number("receivers")).sum::<f64>(), 2.0, "{name}");
        let ended = events.all("session", "session ended").filter(|event| event.text("role") == "relay");
        let sent: Vec<f64> = ended.map(|event| event.number("packets") * event.number("seconds")).collect();
        assert!(!sent.is_empty() && sent.iter().all(|sent| *sent > 0.0), "{name}: {sent:?}");
    }
}

#[test]
fn members_of_an_active_router_are_traced() {
    for (kind, name) in [(RouterKind::Raccoom, "raccoom"), (RouterKind::Rmanp, "rmanp")] {
        let mut tree = Net::of(65, Offer::bytes(1_000_000).by(name).expect(2).at_most_mbps(8.0));
        let hop = tree.hop(Head::Source(0), kind, 1, Link::millis(4).mbps(30.0).fifo(80_000));
        tree.behind(branch(hop, 0), 2, Link::millis(4).mbps(30.0).fifo(80_000));
        let events = Events::of(|| {
            tree.start();
            tree.run_to_end(secs(300));
        });
        let at_hop = events.all("join", "member joined").filter(|event| event.text("role") == "relay");
        assert_eq!(at_hop.count(), 2, "{name}");
    }
}

#[test]
fn children_of_a_dead_agent_trace_their_new_parent() {
    let lan = || Link::millis(2).mbps(8.0).fifo(60_000);
    let mut grove = Net::of(67, Offer::bytes(2_000_000).by("mtcp").expect(2));
    let agent = grove.agent(&[], 16, lan());
    let address = grove.agents[agent].address;
    grove.children(&[address], 2, lan());
    let events = Events::of(|| {
        grove.start();
        grove.run_until(secs(60), |grove| grove.agents[agent].status().reports_sent > 50);
        grove.kill_agent(agent);
        grove.run_to_end(secs(300));
    });
    for reason in ["agent", "no agent"] {
        let moved = events.all("relay", "parent changed").filter(|event| event.text("reason") == reason);
        assert_eq!(moved.count(), 2, "{reason}");
    }
}
