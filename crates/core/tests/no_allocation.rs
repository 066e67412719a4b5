//! Nothing is allocated per packet: a counting allocator watches a million departures and receptions.

use faircast_core::node::{Cx, Departure, Effect, Effects, Receiver as _, Source as _};
use faircast_core::packet::{Arrival, Data, Layer, Payload, ReceiverId, Report};
use faircast_core::rng::Rng;
use faircast_core::schemes::{AnyReceiver, AnySource, CATALOGUE, Scheme};
use faircast_core::time::Time;

const SIZE: u16 = 1400;

struct Session {
    source: AnySource,
    receiver: AnyReceiver,
    rng: Rng,
    effects: Effects,
    now: Time,
    reports: u64,
}

impl Session {
    /// Packets leave when they may; one in a thousand is lost; reports arrive with the next packet.
    fn run(&mut self, packets: u64) {
        let mut lost = 0;
        let mut report: Option<Report> = None;
        for _ in 0..packets {
            let Departure::At(departure) = self.source.departure(Layer(0)) else {
                panic!("a rate has no window")
            };
            self.now = departure.max(self.now);
            let cx = &mut Cx { now: self.now, rng: &mut self.rng, effects: &mut self.effects };
            if let Some(report) = report.take() {
                self.reports += 1;
                self.source.on_report(&report, cx);
            }
            self.source.on_deadline(cx);
            let stamp = self.source.on_departure(Layer(0), SIZE, cx);
            if stamp.seq.0 % 1000 == 999 {
                lost += 1;
                continue;
            }
            let data = Data {
                seq: stamp.seq,
                sent_at: self.now,
                rate: stamp.rate.bps() as f32,
                payload: Payload::NONE,
                flags: stamp.flags,
                mark: stamp.mark,
            };
            let arrival = Arrival { size: SIZE, lost: std::mem::take(&mut lost), ..Arrival::default() };
            self.receiver.on_data(&data, Layer(0), arrival, cx);
            self.receiver.on_deadline(cx);
            for effect in self.effects.drain() {
                if let Effect::Report(sent) = effect {
                    report = Some(sent);
                }
            }
        }
    }
}

#[test]
fn a_million_packets_allocate_nothing() {
    for entry in CATALOGUE {
        let scheme: Scheme = entry.name.parse().expect("the catalogue lists names that parse");
        let mut session = Session {
            source: scheme.source(),
            receiver: scheme.receiver(ReceiverId::new(1).expect("not zero")),
            rng: Rng::new(1, 1),
            effects: Effects::new(),
            now: Time::ZERO,
            reports: 0,
        };
        let cx = &mut Cx { now: Time::ZERO, rng: &mut session.rng, effects: &mut session.effects };
        session.source.start(cx);
        session.run(10_000);
        let reports = session.reports;
        let allocations = allocation_counter::measure(|| session.run(1_000_000)).count_total;
        assert_eq!(allocations, 0, "{}", entry.name);
        assert!(session.reports > reports, "{} reported congestion meanwhile", entry.name);
    }
}
