//! What anybody on the network can send to a receiver of PGM, which knows no keys.

use super::delivery::Delivery;
use super::missing::Patience;
use super::receiver::{PgmReceiver, Setup};
use super::{Framing, PgmReceiveReport};
use crate::endpoint::Endpoint;
use crate::endpoint::testing::{give, take_all};
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use faircast_wire::pgm::{self, Body, Data, Gsi, Nak, Options, Packet, Spm};
use std::net::{Ipv4Addr, SocketAddrV4};

const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const GROUP: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 1, 2, 3), 5555);

/// More than a receiver keeps.
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
            wait: Some(Span::from_secs(10)),
            silence: Span::from_secs(30),
            patience: Patience { most_unconfirmed: 1, ..Patience::default() },
            rng: Rng::new(2, 1),
        };
        let open = Box::new(|_| Ok(Delivery::new(Box::new(std::io::sink()), Framing::None, None)));
        Bench { receiver: PgmReceiver::new(setup, open, Time::ZERO), now: Time::ZERO, spms: 0 }
    }

    fn hear(&mut self, body: Body, options: Options<'_>, payload: &[u8]) {
        let packet = Packet {
            gsi: Gsi([1; 6]),
            source_port: 7,
            destination_port: GROUP.port(),
            body,
            options,
            payload,
        };
        let mut bytes = Vec::new();
        pgm::encode(&mut bytes, &packet).expect("it can be said");
        give(&mut self.receiver, &mut bytes, (SOURCE, GROUP.port()).into(), self.now);
        self.wait(Span::from_millis(1));
    }

    fn data(&mut self, sqn: u32) {
        self.hear(Body::Odata(Data { sqn, trail: 0 }), Options::default(), b"0123456789");
    }

    fn spm(&mut self, lead: u32, fin: bool) {
        self.spms += 1;
        let spm = Spm { sqn: self.spms, trail: 0, lead, path: SOURCE.into() };
        self.hear(Body::Spm(spm), Options { fin, ..Options::default() }, &[]);
    }

    fn wait(&mut self, span: Span) {
        let until = self.now + span;
        while !self.receiver.is_over() {
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

    /// The source falls silent until the receiver gives up.
    fn report(mut self) -> PgmReceiveReport {
        self.wait(Span::from_secs(120));
        self.receiver.report().expect("it has ended by its source's word")
    }
}

#[test]
fn numbers_that_leap_take_no_more_room_than_what_is_kept_and_all_that_lies_between_is_told_as_lost() {
    for kind in 0..3 {
        let mut bench = Bench::new();
        (0..10).for_each(|sqn| bench.data(sqn));
        match kind {
            0 => bench.spm(FAR, false),
            1 => bench.data(FAR),
            _ => {
                // What is confirmed to others can be no further ahead than what is kept.
                let nak = Nak { sqn: FAR, source: SOURCE.into(), group: (*GROUP.ip()).into() };
                bench.hear(Body::Ncf(nak), Options::default(), &[]);
                bench.spm(FAR, false);
            }
        }
        // And again, before what lies between has been given up.
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

#[test]
fn an_end_that_somebody_else_said_is_outrun_by_the_next_packet() {
    let mut bench = Bench::new();
    (0..5).for_each(|sqn| bench.data(sqn));
    bench.spm(4, true);
    bench.wait(Span::from_millis(200));
    bench.data(5);
    bench.wait(Span::from_secs(5));
    assert!(!bench.receiver.is_over(), "more has come than what was said to be all");
    bench.data(6);
    bench.spm(6, true);
    bench.wait(Span::from_millis(900));
    assert!(!bench.receiver.is_over());
    let report = bench.report();
    assert!(report.ok && report.bytes == 70, "{report:?}");
}
