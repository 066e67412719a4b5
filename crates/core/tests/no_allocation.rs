//! Nothing is allocated per packet: a counting allocator watches a million departures and receptions.

use faircast_core::node::{Cx, Departure, Effect, Effects, Receiver as _, Source as _};
use faircast_core::packet::{Arrival, Data, Layer, Payload, ReceiverId, Report};
use faircast_core::rng::Rng;
use faircast_core::schemes::{AnyReceiver, AnySource, CATALOGUE, Scheme};
use faircast_core::time::{Span, Time};

const SIZE: u16 = 1400;
const ROUND_TRIP: Span = Span::from_millis(1);

struct Session {
    source: AnySource,
    receiver: AnyReceiver,
    rng: Rng,
    effects: Effects,
    now: Time,
    reports: u64,
    waiting: Vec<Report>,
}

impl Session {
    /// Packets leave when they may; one in a thousand is lost; reports arrive with the next packet, or when the source
    /// can do nothing without them.
    fn run(&mut self, packets: u64) {
        let mut lost = 0;
        for _ in 0..packets {
            let may_leave = self.wait_for_departure();
            self.now = self.now.max(may_leave);
            self.deliver();
            let cx = &mut Cx { now: self.now, rng: &mut self.rng, effects: &mut self.effects };
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
            self.collect();
        }
    }

    /// The next departure; until a closed window opens, time passes and reports arrive.
    fn wait_for_departure(&mut self) -> Time {
        loop {
            if let Departure::At(departure) = self.source.departure(Layer(0)) {
                return departure;
            }
            if self.waiting.is_empty() {
                self.now = self.now.max(self.source.deadline().min(self.receiver.deadline()));
            }
            let cx = &mut Cx { now: self.now, rng: &mut self.rng, effects: &mut self.effects };
            self.receiver.on_deadline(cx);
            self.collect();
            self.now += ROUND_TRIP;
            self.deliver();
        }
    }

    fn collect(&mut self) {
        for effect in self.effects.drain() {
            if let Effect::Report(report) = effect {
                self.waiting.push(report);
            }
        }
    }

    fn deliver(&mut self) {
        let cx = &mut Cx { now: self.now, rng: &mut self.rng, effects: &mut self.effects };
        for report in self.waiting.drain(..) {
            self.reports += 1;
            self.source.on_report(&report, cx);
        }
        self.source.on_deadline(cx);
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
            waiting: Vec::with_capacity(1024),
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
