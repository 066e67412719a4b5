//! Test that no memory is allocated per packet. A counting allocator checks a million departures on all layers, and the arrivals
//! at the receiver.

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
    /// Number of reports and changes of subscription.
    reactions: u64,
    waiting: Vec<Report>,
    /// Highest subscribed layer.
    level: u8,
    /// For each layer, the number of packets lost since the latest arrival on this layer.
    lost: [u32; LAYERS],
}

const LAYERS: usize = 16;

impl Session {
    /// Sends packets at their departure times; one packet in a thousand is lost. Reports reach the source with the next packet,
    /// or when the source waits for them.
    fn run(&mut self, packets: u64) {
        for _ in 0..packets {
            let (layer, may_leave) = self.wait_for_departure();
            self.now = self.now.max(may_leave);
            self.deliver();
            let cx = &mut Cx { now: self.now, rng: &mut self.rng, effects: &mut self.effects };
            let stamp = self.source.on_departure(layer, SIZE, cx);
            if layer.0 > self.level {
                continue;
            }
            let lost = &mut self.lost[usize::from(layer.0)];
            if stamp.seq.0 % 1000 == 999 {
                *lost += 1;
                continue;
            }
            let data = Data {
                seq: stamp.seq,
                sent_at: self.now,
                rate: stamp.rate.bps() as f32,
                payload: Payload::NONE,
                flags: stamp.flags,
                signal: stamp.signal,
                mark: stamp.mark,
            };
            let arrival = Arrival { size: SIZE, lost: std::mem::take(lost), ..Arrival::default() };
            self.receiver.on_data(&data, layer, arrival, cx);
            self.receiver.on_deadline(cx);
            self.collect();
        }
    }

    /// Returns the layer and the time of the next departure. While the congestion window is full or no layer is on, advances the
    /// time and delivers reports.
    fn wait_for_departure(&mut self) -> (Layer, Time) {
        loop {
            let layers = (0..self.source.layers()).map(Layer);
            let due = layers.filter_map(|layer| match self.source.departure(layer) {
                Departure::At(departure) => Some((departure, layer)),
                Departure::AfterReport => None,
            });
            if let Some((departure, layer)) = due.min().filter(|due| !due.0.is_never()) {
                return (layer, departure);
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
            self.reactions += 1;
            match effect {
                Effect::Report(report) => self.waiting.push(report),
                Effect::Subscribe(Layer(level)) => {
                    self.lost[usize::from(self.level.min(level)) + 1..].fill(0);
                    self.level = level;
                }
                other => panic!("{other:?} of a receiver"),
            }
        }
    }

    fn deliver(&mut self) {
        let cx = &mut Cx { now: self.now, rng: &mut self.rng, effects: &mut self.effects };
        for report in self.waiting.drain(..) {
            self.source.on_report(&report, cx);
        }
        self.source.on_deadline(cx);
    }
}

#[test]
fn processing_of_a_million_packets_allocates_no_memory() {
    for entry in CATALOGUE {
        let scheme: Scheme = entry.name.parse().expect("the catalogue lists names that parse");
        let mut session = Session {
            source: scheme.source(),
            receiver: scheme.receiver(ReceiverId::new(1).expect("not zero")),
            rng: Rng::new(1, 1),
            effects: Effects::new(),
            now: Time::ZERO,
            reactions: 0,
            waiting: Vec::with_capacity(1024),
            level: 0,
            lost: [0; LAYERS],
        };
        let cx = &mut Cx { now: Time::ZERO, rng: &mut session.rng, effects: &mut session.effects };
        session.source.start(cx);
        session.run(10_000);
        let reactions = session.reactions;
        let allocations = allocation_counter::measure(|| session.run(1_000_000)).count_total;
        assert_eq!(allocations, 0, "{}", entry.name);
        assert!(session.reactions > reactions, "{} reacted to congestion meanwhile", entry.name);
    }
}
