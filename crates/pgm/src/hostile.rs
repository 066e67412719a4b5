//! Packets that any host on the network can send to a PGM receiver or source without having a key.

use super::content_writer::ContentWriter;
use super::feed::Feed;
use super::fuzzing::Content;
use super::missing::Timeouts;
use super::receiver::{PgmReceiver, Setup};
use super::source::{self, PgmSource};
use super::{Framing, PgmReceiveReport, WindowLimits};
use crate::codec::{self, Body, Data, Gsi, Nak, NakList, Options, Packet, SEQUENCES_PER_NAK, Spm, Tsi};
use faircast_core::rate::Bounds;
use faircast_core::rng::Rng;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Rate, Span, Time};
use faircast_driver::format::Reporting;
use faircast_transport::config::ReceiverEvents;
use faircast_transport::endpoint::Endpoint;
use faircast_transport::event::{Condition, Event, ReceiverState};
use faircast_transport::step_driver::{give, take_all};
use std::net::{Ipv4Addr, SocketAddrV4};

const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 1, 2, 3), 5555);

/// A distance larger than a receiver's storage.
const FAR: u32 = 1 << 29;

struct Bench {
    receiver: PgmReceiver,
    now: Time,
    spms: u32,
}

impl Bench {
    fn new() -> Bench {
        let setup = Setup {
            group: GROUP,
            local: Ipv4Addr::new(10, 0, 1, 1),
            data_port: GROUP.port(),
            nak_port: GROUP.port(),
            only: None,
            join_timeout: Some(Span::from_secs(10)),
            idle_timeout: Span::from_secs(30),
            timeouts: Timeouts { most_unconfirmed: 1, ..Timeouts::default() },
            most_held: super::receiver::MAX_HELD,
            rng: Rng::new(2, 1),
        };
        let open = Box::new(|_| Ok(ContentWriter::new(Box::new(std::io::sink()), Framing::None, None)));
        Bench { receiver: PgmReceiver::new(setup, open, Time::ZERO), now: Time::ZERO, spms: 0 }
    }

    fn receive(&mut self, body: Body, options: Options<'_>, payload: &[u8]) {
        let packet = Packet {
            gsi: Gsi([1; 6]),
            source_port: 7,
            destination_port: GROUP.port(),
            body,
            options,
            payload,
        };
        let mut bytes = Vec::new();
        codec::encode(&mut bytes, &packet).expect("it can be said");
        give(&mut self.receiver, &mut bytes, (SOURCE, GROUP.port()).into(), self.now);
        self.wait(Span::from_millis(1));
    }

    fn data(&mut self, sqn: u32) {
        self.receive(Body::Odata(Data { sqn, trail: 0 }), Options::default(), b"0123456789");
    }

    fn spm(&mut self, lead: u32, fin: bool) {
        self.spms += 1;
        let spm = Spm { sqn: self.spms, trail: 0, lead, path: SOURCE.into() };
        self.receive(Body::Spm(spm), Options { fin, ..Options::default() }, &[]);
    }

    fn wait(&mut self, span: Span) {
        let until = self.now + span;
        while !self.receiver.is_finished() {
            take_all(&mut self.receiver, self.now);
            let next = self.receiver.poll_timeout(self.now).max(self.now + Span::from_micros(10));
            if next > until {
                break;
            }
            self.now = next;
            self.receiver.handle_timeout(self.now);
        }
        self.now = until;
    }

    /// Runs until the receiver gives up on its source, which is silent. Returns the report of the receiver.
    fn report(mut self) -> PgmReceiveReport {
        self.wait(Span::from_secs(120));
        self.receiver.report().expect("it has ended by its source's word")
    }
}

#[test]
fn packets_skipped_by_a_jump_of_the_packet_number_are_lost() {
    for kind in 0..3 {
        let mut bench = Bench::new();
        (0..10).for_each(|sqn| bench.data(sqn));
        match kind {
            0 => bench.spm(FAR, false),
            1 => bench.data(FAR),
            _ => {
                // A packet number in an NCF is ignored if it exceeds the newest known number by at least the number of packets
                // that can be stored.
                let nak = Nak { sqn: FAR, source: SOURCE.into(), group: (*GROUP.ip()).into() };
                bench.receive(Body::Ncf(nak), Options::default(), &[]);
                bench.spm(FAR, false);
            }
        }
        // The packet number jumps again before the receiver has given up the packets skipped by the first jump.
        bench.data(2 * FAR);
        bench.data(2 * FAR + 1);
        bench.spm(2 * FAR + 1, true);
        let report = bench.report();
        let came = if kind == 1 { 13 } else { 12 };
        let all = u64::from(2 * FAR) + 2;
        assert_eq!(report.unrecoverable, all - came, "{kind}: {report:?}");
        assert!(!report.ok && report.bytes >= 100, "{report:?}");
    }
}

/// Returns two counts for the ten seconds after an SPM with this `lead`: packets that the receiver requests, repetitions
/// included, and wake-ups of the receiver.
fn work_after(lead: u32) -> (usize, usize) {
    let mut bench = Bench::new();
    (0..10).for_each(|sqn| bench.data(sqn));
    bench.spm(lead, false);
    let (until, mut asked, mut wakes) = (bench.now + Span::from_secs(10), 0, 0);
    while bench.now < until {
        for (bytes, _) in take_all(&mut bench.receiver, bench.now) {
            if let Ok(Packet { body: Body::Nak(_), options, .. }) = codec::parse(&bytes) {
                asked += 1 + options.nak_list.iter().count();
            }
        }
        bench.now = bench.receiver.poll_timeout(bench.now).max(bench.now + Span::from_micros(10));
        bench.receiver.handle_timeout(bench.now);
        wakes += 1;
    }
    (asked, wakes)
}

#[test]
fn one_spm_causes_a_bounded_number_of_naks() {
    for lead in [10_000, FAR] {
        let (asked, wakes) = work_after(lead);
        assert!(asked <= 3 * 512 && wakes <= 2_600, "SPM of {lead}: {asked} numbers, {wakes} wakes in 10 s");
    }
}

#[test]
fn later_packet_cancels_a_forged_end_of_the_session() {
    let mut bench = Bench::new();
    (0..5).for_each(|sqn| bench.data(sqn));
    bench.spm(4, true);
    bench.wait(Span::from_millis(200));
    bench.data(5);
    bench.wait(Span::from_secs(5));
    assert!(!bench.receiver.is_finished(), "more has come than what was said to be all");
    bench.data(6);
    bench.spm(6, true);
    bench.wait(Span::from_millis(900));
    assert!(!bench.receiver.is_finished());
    let report = bench.report();
    assert!(report.ok && report.bytes == 70, "{report:?}");
}

/// A source, and hosts that repeatedly request all packets of its window.
struct Asked {
    source: PgmSource,
    now: Time,
    /// Counts of sent packets: new packets, repairs, confirmations.
    new: u64,
    again: u64,
    confirmed: u64,
    /// The latest states of the hosts.
    states: Vec<ReceiverState>,
}

impl Asked {
    fn new(scheme: &str, packets: usize) -> Asked {
        let scheme: Scheme = scheme.parse().expect("a scheme of the catalogue");
        let setup = source::Setup {
            tsi: Tsi { gsi: Gsi([1; 6]), port: 77 },
            data_port: GROUP.port(),
            local: SOURCE,
            group: *GROUP.ip(),
            to: GROUP.into(),
            source: scheme.source(),
            scheme_number: scheme.number(),
            bounds: Bounds { max: Rate::from_mbps(4.0), ..scheme.bounds() },
            rng: Rng::new(1, 0),
            feed: Feed::new(Box::new(Content(packets * 1_000)), Framing::None, None, 1_000),
            room: 1_000,
            window: WindowLimits::default(),
            linger: Span::from_secs(3),
            first: 0,
            total: None,
            receiver_events: ReceiverEvents::EverySecond,
        };
        let source = PgmSource::new(setup, Time::ZERO);
        Asked { source, now: Time::ZERO, new: 0, again: 0, confirmed: 0, states: Vec::new() }
    }

    /// Requests the newest `most` packets. Each NAK is from another host.
    fn ask(&mut self, most: u64) {
        let numbers: Vec<[u8; 4]> =
            (0..self.new).rev().take(most as usize).map(|sqn| (sqn as u32).to_be_bytes()).collect();
        for (part, number) in numbers.chunks(SEQUENCES_PER_NAK).zip(0..) {
            let nak =
                Nak { sqn: u32::from_be_bytes(part[0]), source: SOURCE.into(), group: (*GROUP.ip()).into() };
            let packet = Packet {
                gsi: Gsi([1; 6]),
                source_port: GROUP.port(),
                destination_port: 77,
                body: Body::Nak(nak),
                options: Options { nak_list: NakList(&part[1..]), ..Options::default() },
                payload: &[],
            };
            let mut bytes = Vec::new();
            codec::encode(&mut bytes, &packet).expect("it can be said");
            give(
                &mut self.source,
                &mut bytes,
                (Ipv4Addr::new(10, 1, number, 1), GROUP.port()).into(),
                self.now,
            );
        }
    }

    /// Runs the source for a millisecond.
    fn pass(&mut self) {
        self.now += Span::from_millis(1);
        self.source.handle_timeout(self.now);
        while let Some(event) = self.source.poll_event() {
            if let Event::Receivers { receivers } = event {
                self.states = receivers;
            }
        }
        for (bytes, _) in take_all(&mut self.source, self.now) {
            match codec::parse(&bytes).expect("it is a packet").body {
                Body::Odata(_) => self.new += 1,
                Body::Rdata(_) => self.again += 1,
                Body::Ncf(_) => self.confirmed += 1,
                _ => {}
            }
        }
    }
}

#[test]
fn repeated_naks_leave_a_quarter_of_the_packets_to_new_data() {
    for scheme in ["ormcc", "pgmcc", "le-sbcc", "tfmcc"] {
        let mut asked = Asked::new(scheme, 1_000_000);
        for _ in 0..30_000 {
            asked.ask(10_000);
            asked.pass();
        }
        let Asked { new, again, confirmed, .. } = asked;
        println!("{scheme}: {new} new packets, {again} again, {confirmed} confirmations in 30 s");
        assert!(new > 0 && again <= 3 * (new + 1), "{scheme}: {new} new, {again} again");
        assert!(confirmed <= 1_000 * 31, "{scheme}: {confirmed} confirmations");
        assert!((new + again) * 8_000 <= 4_200_000 * 30, "{scheme}: faster than it may be");
    }
}

#[test]
fn source_ends_despite_endless_naks() {
    let mut asked = Asked::new("ormcc", 20);
    for _ in 0..120_000 {
        asked.ask(20);
        asked.pass();
        if asked.source.is_finished() {
            break;
        }
    }
    let Asked { new, again, now, states, .. } = asked;
    println!("{new} packets, {again} again, over at {now:?}");
    // Packets older than a minute are not stored.
    assert!(asked.source.is_finished() && now < Time::ZERO + Span::from_secs(70), "at {now:?}");
    let sent = asked.source.report().expect("it ends");
    let [host] = states.as_slice() else { panic!("one host: {states:?}") };
    let reason = host.reason.as_deref().unwrap_or_default();
    let late: u64 = reason.split_once(' ').expect("a number").0.parse().expect("a number");
    assert!(host.state == Condition::Failed && late > 0 && late <= sent.too_late, "{host:?} {sent:?}");
}
