//! Invariants that every protocol must keep under random calls and on random networks.

use super::tcp::{Reduced, Reduction, RttEstimate};
use super::{
    Ack, AnySender, AnySink, Feedback, Protocol, RapAck, RateReport, Segment, SegmentFlags, Sender, Sink,
};
use faircast_core::node::{Cx, Departure, Effects};
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use proptest::collection::vec;
use proptest::prelude::*;

const PROTOCOLS: &[&str] = &[
    "tcp-tahoe",
    "tcp-reno",
    "tcp-reno,preset=ns2001,ecn",
    "tcp-reno,jitter=0.02,delack",
    "tcp-reno,preset=ns2.1b7a",
    "tcp-newreno,window=7,ecn",
    "tcp-newreno,preset=rfc,delack",
    "tcp-sack,ecn",
    "tcp-sack,preset=rfc,delack,jitter=0.01",
    "tcp-sack,preset=linux2.4",
    "tcp-sack,max-burst=1,window=3",
    "tcp-vegas",
    "tcp-vegas,preset=ns2001,delack,window=9",
    "tcp-cubic",
    "tcp-cubic,preset=ns235,hystart=off,ecn,jitter=0.01",
    "tcp-dctcp",
    "tcp-prague,delack=off",
    "tcp-bbr",
    "tcp-bbr,preset=ns235,window=50",
    "tfrc",
    "tfrc,preset=rfc,ecn",
    "rap",
    "rap,fine",
    "cmtcp",
    "cmtcp,interval=0.3",
];

/// Maximum number of packets sent at one moment. Even a long slow start stays below this number.
const BURST: usize = 4096;

#[derive(Debug, Clone)]
enum Op {
    Wait(u32),
    /// The n-th packet in transit arrives, arrives marked, arrives twice, or is lost.
    Arrive(u8, u8),
    /// The n-th packet of feedback in transit arrives, or is lost.
    Hear(u8, u8),
    /// Feedback that was never sent.
    Invent(u32, u32, u8),
    Supply(u16),
    /// A coordinator changes the window, or sets the estimate of the round-trip time.
    Coordinate(u8, u16, u16),
    CallEarly,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (0..400_000_000_u32).prop_map(Op::Wait),
        8 => (0..3_u8, 0..12_u8).prop_map(|(nth, fate)| Op::Arrive(nth, fate)),
        8 => (0..3_u8, 0..10_u8).prop_map(|(nth, fate)| Op::Hear(nth, fate)),
        1 => (any::<u32>(), any::<u32>(), any::<u8>()).prop_map(|(a, b, kind)| Op::Invent(a, b, kind)),
        1 => (0..400_u16).prop_map(Op::Supply),
        1 => (0..4_u8, any::<u16>(), any::<u16>()).prop_map(|(what, a, b)| Op::Coordinate(what, a, b)),
        2 => Just(Op::CallEarly),
    ]
}

/// Both endpoints and the packets in transit.
struct World {
    now: Time,
    sender: AnySender,
    sink: AnySink,
    supply: u32,
    window: u32,
    /// Highest packet sent, plus 1.
    sent_to: u32,
    forward: Vec<Segment>,
    back: Vec<Feedback>,
    rng: Rng,
    effects: Effects,
}

macro_rules! cx {
    ($world:expr) => {
        Cx { now: $world.now, rng: &mut $world.rng, effects: &mut $world.effects }
    };
}

impl World {
    fn new(name: &str) -> World {
        let protocol: Protocol = name.parse().expect("a protocol of the catalogue");
        let window = if let Protocol::Tcp(config) = protocol { config.receiver_window } else { u32::MAX };
        World {
            now: Time::from_secs_f64(1.0),
            sender: protocol.sender(),
            sink: protocol.sink(),
            supply: 0,
            window,
            sent_to: 0,
            forward: Vec::new(),
            back: Vec::new(),
            rng: Rng::new(5, 5),
            effects: Effects::default(),
        }
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Wait(nanos) => self.wait(Span::from_nanos(u64::from(nanos))),
            Op::Arrive(nth, fate) => {
                if let Some(index) = usize::from(nth).checked_rem(self.forward.len()) {
                    let segment = self.forward.remove(index);
                    match fate {
                        0 => {}
                        1 => (0..2).for_each(|_| self.arrive(&segment, false)),
                        _ => self.arrive(&segment, fate == 2 && segment.flags.has(SegmentFlags::ECT)),
                    }
                }
            }
            Op::Hear(nth, fate) => {
                if let Some(index) = usize::from(nth).checked_rem(self.back.len()) {
                    let feedback = self.back.remove(index);
                    if fate > 0 {
                        self.sender.on_feedback(&feedback, &mut cx!(self));
                    }
                }
            }
            Op::Invent(a, b, kind) => {
                self.sender.on_feedback(&invented(a, b, kind, self.now), &mut cx!(self))
            }
            Op::Supply(more) => {
                self.supply += u32::from(more);
                self.sender.supply(self.supply, self.now);
            }
            Op::Coordinate(what, a, b) => self.coordinate(what, a, b),
            Op::CallEarly => self.call_early(),
        }
        self.send_all();
    }

    /// Advances the clock by `span` and makes all calls that are due in this time.
    fn wait(&mut self, span: Span) {
        let end = self.now + span;
        for _ in 0..10_000 {
            let departure = match self.sender.departure() {
                Departure::At(time) => time,
                Departure::AfterReport => Time::NEVER,
            };
            let next = departure.min(self.sender.deadline()).min(self.sink.deadline());
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            self.sender.on_deadline(&mut cx!(self));
            let feedback = self.sink.on_deadline(&mut cx!(self));
            self.back.extend(feedback);
            self.send_all();
        }
        self.now = end;
    }

    fn arrive(&mut self, segment: &Segment, marked: bool) {
        let before = self.sink.delivered();
        let feedback = self.sink.on_segment(segment, marked, &mut cx!(self));
        self.back.extend(feedback);
        assert!(self.sink.delivered() >= before);
    }

    fn coordinate(&mut self, what: u8, a: u16, b: u16) {
        let AnySender::Tcp(sender) = &mut self.sender else { return };
        let (window, threshold) = (f64::from(a) / 256.0, f64::from(b) / 256.0);
        let (flight, before) = (sender.flight_size(), sender.window().packets());
        let cx = &mut cx!(self);
        let reduced = match what {
            0 => return sender.set_window(window, threshold, cx),
            1 => {
                let mean = Span::from_nanos(u64::from(a) * 100_000);
                return sender
                    .set_round_trip(RttEstimate { mean, deviation: Span::from_nanos(u64::from(b)) });
            }
            2 => sender.reduce(Reduction::Half, cx),
            _ => sender.reduce(Reduction::To { window, threshold }, cx),
        };
        match reduced {
            Reduced::Done => assert!(flight > 0 && sender.recovery_point() >= flight),
            Reduced::Already => assert_eq!(sender.window().packets(), before),
        }
        assert_eq!(sender.reduce(Reduction::Half, cx), Reduced::Already);
    }

    fn call_early(&mut self) {
        if self.sender.deadline() > self.now {
            let before = format!("{:?}", self.sender);
            self.sender.on_deadline(&mut cx!(self));
            assert_eq!(before, format!("{:?}", self.sender));
        }
        if self.sink.deadline() > self.now {
            let before = format!("{:?}", self.sink);
            assert_eq!(self.sink.on_deadline(&mut cx!(self)), None);
            assert_eq!(before, format!("{:?}", self.sink));
        }
        let before = format!("{:?}", self.sender);
        self.sender.start(&mut cx!(self));
        assert_eq!(before, format!("{:?}", self.sender), "a second start");
    }

    fn send_all(&mut self) {
        for count in 0.. {
            if !matches!(self.sender.departure(), Departure::At(time) if time <= self.now) {
                break;
            }
            assert!(count < BURST, "no end of packets at one moment");
            let acked = self.sender.observe().acked;
            let segment = self.sender.on_departure(&mut cx!(self));
            if !segment.flags.has(SegmentFlags::SYN) {
                assert!(segment.seq < self.supply, "{} of {}", segment.seq, self.supply);
                assert!(segment.seq <= self.sent_to, "a packet was left out");
                assert_eq!(segment.flags.has(SegmentFlags::AGAIN), segment.seq < self.sent_to);
                assert!(u64::from(segment.seq) < acked.saturating_add(u64::from(self.window)));
                self.sent_to = self.sent_to.max(segment.seq + 1);
            }
            self.forward.push(segment);
        }
        let view = self.sender.observe();
        assert!(view.acked <= u64::from(self.sent_to) && view.again <= view.sent);
        assert!(view.window.is_finite() && view.window >= 0.0 && view.rate.bps().is_finite(), "{view:?}");
    }

    /// Delivers all packets from now on. This can take long: after several losses in a window, Reno needs one timeout for each
    /// lost packet. If a coordinator has set a round-trip time of seconds, each timeout takes a minute.
    fn drain(&mut self) {
        for _ in 0..20_000 {
            if self.sender.observe().acked == u64::from(self.supply) {
                break;
            }
            let arriving = std::mem::take(&mut self.forward);
            arriving.iter().for_each(|segment| self.arrive(segment, false));
            for feedback in std::mem::take(&mut self.back) {
                self.sender.on_feedback(&feedback, &mut cx!(self));
                self.send_all();
            }
            self.wait(Span::from_millis(50));
        }
    }
}

fn invented(a: u32, b: u32, kind: u8, now: Time) -> Feedback {
    let echo = now - Span::from_nanos(u64::from(a));
    let small = |number: u32| number % 64;
    match kind % 4 {
        // An acknowledgement of data that was not sent, or an acknowledgement with invalid blocks.
        0 => {
            let blocks = [(a, b), (small(a), small(b)), (b, a)];
            Feedback::Ack(Ack { next: a, echo, blocks, ece: kind > 128, syn: kind > 192 })
        }
        1 => Feedback::Ack(Ack { next: 0, echo, blocks: [(0, 0); 3], ece: true, syn: kind > 128 }),
        2 => {
            let hold = Span::from_nanos(u64::from(b % 1_000_000));
            let (received, loss) = (a as f32, (b as f32 / u32::MAX as f32).min(1.0));
            Feedback::Rate(RateReport { echo, hold, received, loss })
        }
        _ => {
            let (last_received, last_missing, previous_received) = (small(a), small(b), small(a ^ b));
            Feedback::Rap(RapAck { seq: small(b), echo, last_received, last_missing, previous_received })
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, ..ProptestConfig::default() })]

    #[test]
    fn sender_contract_holds_for_any_sequence_of_operations(ops in vec(op(), 0..250)) {
        for name in PROTOCOLS {
            let mut world = World::new(name);
            world.sender.start(&mut cx!(world));
            ops.iter().for_each(|op| world.apply(op));
        }
    }

    #[test]
    fn tcp_delivers_all_packets_once_losses_have_ended(ops in vec(op(), 0..150)) {
        for name in PROTOCOLS.iter().filter(|name| name.starts_with("tcp")) {
            let mut world = World::new(name);
            world.sender.start(&mut cx!(world));
            ops.iter().filter(|op| !matches!(op, Op::Invent(..))).for_each(|op| world.apply(op));
            world.drain();
            prop_assert_eq!(world.sink.delivered(), u64::from(world.supply), "{}", name);
            prop_assert_eq!(world.sender.observe().acked, u64::from(world.supply), "{}", name);
        }
    }
}

#[test]
fn sender_sends_no_packet_before_its_start_or_without_data() {
    for name in PROTOCOLS {
        let mut world = World::new(name);
        world.sender.supply(10, world.now);
        assert_eq!(world.sender.departure(), Departure::AfterReport, "{name}");
        let mut world = World::new(name);
        world.sender.start(&mut cx!(world));
        assert_eq!(world.sender.departure(), Departure::AfterReport, "{name}");
    }
}
