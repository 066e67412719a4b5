//! Tests links whose queue holds packets. If a discipline can also decide at arrival, both kinds of links must give equal
//! results. Other tests are about disciplines that must hold packets.

use faircast_aqm::qdisc::PacketQueue;
use faircast_aqm::{
    AnyDiscipline, Decision, Departure, Dequeued, Discipline, DropCause, Dropped, Limit, Link, LinkSpec,
    LossCause, LossSpec, Offer, OfferResult, Qdisc, QueueSpec, Queued, Sent, Ticket, Watches, fifo, red,
};
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Returns the rate at which the transmission of a byte takes this number of nanoseconds.
fn rate(nanos_per_byte: u64) -> Rate {
    Rate::from_bps(8e9 / nanos_per_byte as f64)
}

fn millis(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

/// A link with a transmission time of 1 ms for 1000 bytes, and a propagation delay of 10 ms.
fn spec(queue: QueueSpec) -> LinkSpec {
    LinkSpec::new(rate(1000), Span::from_millis(10), queue)
}

/// A link of either kind, with the packets that the driver stores.
struct Driver {
    link: Link,
    /// Number of the packet of each ticket.
    queued: BTreeMap<Ticket, usize>,
    /// Arrival time of each packet, and whether it is marked.
    arrivals: BTreeMap<usize, (Time, bool)>,
    lost: BTreeMap<usize, LossCause>,
    /// Rank of each packet that arrives.
    ranks: BTreeMap<usize, u8>,
}

impl Driver {
    fn new(link: Link) -> Driver {
        Driver {
            link,
            queued: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            lost: BTreeMap::new(),
            ranks: BTreeMap::new(),
        }
    }

    fn of(spec: LinkSpec) -> Driver {
        Driver::new(Link::new(&spec, Rng::new(1, 1)))
    }

    /// Executes all events that are due until `now`.
    fn advance(&mut self, now: Time) {
        while let Some(news) = self.link.dequeue(now) {
            match news {
                Dequeued::Arrives { ticket, at, marked } => {
                    let id = self.queued.remove(&ticket).expect("it was queued");
                    self.arrivals.insert(id, (at, marked));
                    self.ranks.insert(id, self.link.rank());
                }
                Dequeued::Lost { ticket, cause } => {
                    let id = self.queued.remove(&ticket).expect("it was queued");
                    self.lost.insert(id, cause);
                }
            }
        }
    }

    fn offer(&mut self, now: Time, id: usize, size: u16, flow: u32, ecn_capable: bool) {
        self.advance(now);
        match self.link.offer(now, size, flow, ecn_capable) {
            OfferResult::Arrives { at, marked } => {
                self.arrivals.insert(id, (at, marked));
                self.ranks.insert(id, self.link.rank());
            }
            OfferResult::Queued(ticket) => {
                assert_eq!(self.queued.insert(ticket, id), None, "one ticket at a time")
            }
            OfferResult::Lost(cause) => {
                self.lost.insert(id, cause);
            }
        }
        self.advance(now);
    }

    fn change(&mut self, now: Time, change: &Change) {
        self.advance(now);
        match *change {
            Change::Packet(..) => {}
            Change::Rate(nanos_per_byte) => {
                let shift = self.link.set_rate(now, rate(nanos_per_byte));
                let mut moves = shift.moves.iter().peekable();
                for (at, _) in self.arrivals.values_mut() {
                    while moves.next_if(|(from, _)| from < at).is_some() {}
                    if let Some((_, to)) = moves.next_if(|(from, _)| from == at) {
                        *at = *to;
                    }
                }
            }
            Change::Delay(delay) => self.link.set_delay(now, delay),
            Change::Down => {
                let kept = self.link.set_down(now).kept_until;
                let lost: Vec<usize> =
                    self.arrivals.iter().filter(|(_, (at, _))| *at > kept).map(|(id, _)| *id).collect();
                for id in lost {
                    self.arrivals.remove(&id);
                    self.lost.insert(id, LossCause::Down);
                }
            }
            Change::Up => self.link.set_up(),
        }
        self.advance(now);
    }
}

/// An event on a link.
#[derive(Debug, Clone)]
enum Change {
    Packet(u16),
    Rate(u64),
    Delay(Span),
    Down,
    Up,
}

/// Runs both links, and compares them at every event and between events.
fn compare(one: Driver, two: Driver, events: &[(u64, Change)]) -> Result<(), TestCaseError> {
    let (mut one, mut two) = (one, two);
    prop_assert!(!one.link.queues() && two.link.queues());
    let mut now = Time::ZERO;
    for (id, (gap, what)) in events.iter().enumerate() {
        for _ in 0..2 {
            now += Span::from_nanos(gap / 2);
            two.advance(now);
            prop_assert_eq!(one.link.waiting(now), two.link.waiting(now), "waiting before {}", id);
            prop_assert_eq!(one.link.departed_bytes(now), two.link.departed_bytes(now), "before {}", id);
        }
        if let Change::Packet(size) = what {
            one.offer(now, id, *size, 0, id % 2 == 0);
            two.offer(now, id, *size, 0, id % 2 == 0);
        }
        one.change(now, what);
        two.change(now, what);
    }
    two.advance(Time::NEVER);
    prop_assert_eq!(&one.arrivals, &two.arrivals);
    prop_assert!(two.queued.is_empty());
    Ok(())
}

/// Compares losses and counters at the end of the events. The events must not include failures of the link.
fn compare_counts(one: Driver, two: Driver, events: &[(u64, Change)]) -> Result<(), TestCaseError> {
    let (mut first, mut second) = (one, two);
    let mut now = Time::ZERO;
    for (id, (gap, what)) in events.iter().enumerate() {
        now += Span::from_nanos(*gap);
        for driver in [&mut first, &mut second] {
            if let Change::Packet(size) = what {
                driver.offer(now, id, *size, 0, id % 2 == 0);
                let at_end = driver.link.next_dequeue();
                prop_assert!(at_end > now);
            }
            driver.change(now, what);
        }
    }
    second.advance(Time::NEVER);
    prop_assert_eq!(first.link.counts(), second.link.counts());
    prop_assert_eq!(&first.lost, &second.lost);
    // A rank depends on the link's delay when the rank is read, so ranks are compared only without changes of the link.
    if events.iter().all(|(_, what)| matches!(what, Change::Packet(_))) {
        prop_assert_eq!(&first.ranks, &second.ranks);
    }
    Ok(())
}

fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![(1..30u32).prop_map(Limit::Packets), (1_000..30_000u32).prop_map(Limit::Bytes)]
}

fn losses() -> impl Strategy<Value = Option<LossSpec>> {
    prop_oneof![
        2 => Just(None),
        1 => Just(Some(LossSpec::Bernoulli(0.3))),
        1 => Just(Some(LossSpec::GilbertElliott { to_bad: 0.1, to_good: 0.3, good: 0.0, bad: 0.9 })),
    ]
}

fn events(change: impl Strategy<Value = Change>) -> impl Strategy<Value = Vec<(u64, Change)>> {
    let what = prop_oneof![
        10 => (40..1500u16).prop_map(Change::Packet),
        10 => Just(Change::Packet(1000)),
        1 => (1..5_000u64).prop_map(Change::Rate),
        1 => change,
    ];
    prop::collection::vec((prop_oneof![0..500_000u64, Just(0), 0..20_000_000u64], what), 1..300)
}

fn packets() -> impl Strategy<Value = Vec<(u64, Change)>> {
    let gaps = prop_oneof![4 => 0..500_000u64, 4 => Just(0), 1 => 0..1_000_000_000u64];
    let sizes = prop_oneof![Just(1000u16), 1..3000u16];
    prop::collection::vec((gaps, sizes.prop_map(Change::Packet)), 1..300)
}

fn delays() -> impl Strategy<Value = Change> {
    (0..50u64).prop_map(|millis| Change::Delay(Span::from_millis(millis)))
}

fn failures() -> impl Strategy<Value = Change> {
    prop_oneof![1 => Just(Change::Down), 2 => Just(Change::Up)]
}

/// A discipline that decides at arrival, but holds its packets until departure.
#[derive(Debug)]
struct InTwoPhases {
    decides: Box<dyn Discipline>,
    packets: PacketQueue,
}

impl Qdisc for InTwoPhases {
    fn enqueue(
        &mut self,
        offer: &Offer,
        ticket: Ticket,
        rng: &mut Rng,
        _dropped: &mut Vec<Dropped>,
    ) -> Decision {
        let decision = self.decides.on_arrival(offer, rng);
        if !matches!(decision, Decision::Drop(_)) {
            self.packets.push(Queued::new(offer, ticket));
        }
        decision
    }

    fn dequeue(&mut self, _now: Time, _rng: &mut Rng, _dropped: &mut Vec<Dropped>) -> Option<Sent> {
        self.packets.pop().map(|packet| Sent { ticket: packet.ticket, marked: false })
    }

    fn backlog(&self) -> (u32, u64) {
        self.packets.backlog()
    }

    fn flush(&mut self, lost: &mut Vec<Ticket>) {
        self.packets.flush(lost);
    }

    fn set_rate(&mut self, rate: Rate) {
        self.decides.set_rate(rate);
    }
}

/// Returns two drop-tail links: one decides at arrival, the other holds packets.
fn drop_tails(limit: Limit, loss: Option<LossSpec>, nanos: u64, delay: u64) -> (Driver, Driver) {
    let one = LinkSpec {
        rate: rate(nanos),
        delay: Span::from_millis(delay),
        loss,
        ..spec(QueueSpec::DropTail(limit))
    };
    let two = QueueSpec::Fifo(fifo::Config { limit, drops: fifo::Drops::Tail });
    (Driver::of(one), Driver::of(LinkSpec { queue: two, ..one }))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_phase_drop_tail_equals_drop_tail(
        (limit, loss, nanos, delay) in (limits(), losses(), 1..2_000u64, 0..20u64), events in packets(),
    ) {
        let (one, two) = drop_tails(limit, loss, nanos, delay);
        compare(one, two, &events)?;
        let (one, two) = drop_tails(limit, loss, nanos, delay);
        compare_counts(one, two, &events)?;
    }

    #[test]
    fn two_phase_drop_tail_equals_drop_tail_on_changing_links(
        (limit, loss, nanos, delay) in (limits(), losses(), 1..2_000u64, 0..20u64), events in events(delays()),
    ) {
        let (one, two) = drop_tails(limit, loss, nanos, delay);
        compare(one, two, &events)?;
        let (one, two) = drop_tails(limit, loss, nanos, delay);
        compare_counts(one, two, &events)?;
    }

    #[test]
    fn two_phase_drop_tail_equals_drop_tail_on_failing_links(
        (limit, nanos, delay) in (limits(), 1..2_000u64, 0..20u64), events in events(failures()),
    ) {
        let (one, two) = drop_tails(limit, None, nanos, delay);
        compare(one, two, &events)?;
    }

    #[test]
    fn two_phase_red_equals_red(
        ([ecn, wait, bytes, gentle], nanos) in (any::<[bool; 4]>(), 1..2_000u64), events in packets(),
    ) {
        let base = red::Config { limit: 20, min_th: 2.0, max_th: 6.0, w_q: 0.2, ..red::Config::auto() };
        let queue = QueueSpec::Red(red::Config { ecn, wait, bytes, gentle, ..base });
        let one = LinkSpec { rate: rate(nanos), ..spec(queue) };
        let AnyDiscipline::AtArrival(decides) = queue.build(one.rate, one.delay) else {
            return Err(TestCaseError::fail("RED decides at arrival"));
        };
        let held: Box<dyn Qdisc> = Box::new(InTwoPhases { decides, packets: PacketQueue::default() });
        let two = Link::with_discipline(&one, held.into(), Rng::new(1, 1));
        compare(Driver::of(one), Driver::new(two), &events)?;
    }

    #[test]
    fn every_packet_arrives_or_is_lost_in_every_discipline(
        queue in prop_oneof![Just("fifo,drops=front"), Just("codel,target=1ms,interval=5ms,limit=20,ecn"),
            Just("drr,quantum=500,limit=20,queues=4")],
        nanos in 1..2_000u64, loss in losses(),
        events in events(prop_oneof![delays(), failures()]),
    ) {
        let queue: QueueSpec = queue.parse().expect("it is right");
        let mut driver = Driver::of(LinkSpec { rate: rate(nanos), loss, ..spec(queue) });
        let (mut now, mut offered) = (Time::ZERO, 0);
        for (id, (gap, what)) in events.iter().enumerate() {
            now += Span::from_nanos(*gap);
            if let Change::Packet(size) = what {
                offered += 1;
                driver.offer(now, id, *size, id as u32 % 7, id % 2 == 0);
                let (waiting, _) = driver.link.waiting(now);
                prop_assert_eq!(waiting as usize, driver.queued.len());
            }
            driver.change(now, what);
        }
        driver.advance(Time::NEVER);
        prop_assert_eq!(driver.arrivals.len() + driver.lost.len(), offered);
        prop_assert_eq!(driver.link.waiting(Time::NEVER), (0, 0));
        let counts = driver.link.counts();
        prop_assert_eq!(counts.offered as usize, offered);
        let lost_by_queue = driver.lost.values().filter(|cause| matches!(cause, LossCause::Queue(_))).count();
        prop_assert_eq!((counts.overflow + counts.early) as usize, lost_by_queue);
        prop_assert_eq!(counts.lost as usize, driver.lost.len() - lost_by_queue);
    }
}

#[test]
fn buffer_with_front_drops_retains_the_newest_packets() {
    let config = fifo::Config { limit: Limit::Packets(3), drops: fifo::Drops::Front };
    let mut driver = Driver::of(spec(QueueSpec::Fifo(config)));
    for id in 0..6 {
        driver.offer(Time::ZERO, id, 1000, 0, false);
    }
    driver.advance(Time::NEVER);
    // The transmission of the first packet begins immediately, so this packet cannot be dropped.
    let arrivals: Vec<(usize, Time)> = driver.arrivals.iter().map(|(id, (at, _))| (*id, *at)).collect();
    assert_eq!(arrivals, [(0, millis(11)), (4, millis(12)), (5, millis(13))]);
    assert!(driver.lost.values().all(|cause| *cause == LossCause::Queue(DropCause::Overflow)));
    assert_eq!(driver.link.counts().overflow, 3);
}

#[test]
fn late_driver_receives_events_with_their_scheduled_times() {
    let mut link = Link::new(&spec("fifo".parse().expect("it is right")), Rng::new(1, 1));
    for _ in 0..3 {
        assert!(matches!(link.offer(Time::ZERO, 1000, 0, false), OfferResult::Queued(_)));
        while link.dequeue(Time::ZERO).is_some() {}
    }
    assert_eq!(link.next_dequeue(), millis(1));
    let arrivals: Vec<Dequeued> = std::iter::from_fn(|| link.dequeue(millis(500))).collect();
    let at = |at: u64, ticket| Dequeued::Arrives { ticket: Ticket(ticket), at: millis(at), marked: false };
    assert_eq!(arrivals, [at(12, 0), at(13, 1)]);
    assert_eq!(link.next_dequeue(), Time::NEVER);
}

/// Counts the waiting packets of each flow, and records idle times.
#[derive(Debug, Default)]
struct Observations {
    waiting: BTreeMap<u32, u32>,
    departed: u32,
    idle: Vec<Time>,
    /// Whether the reported length of the queue ever differed from the counted length.
    disagreed: bool,
}

#[derive(Debug)]
struct Watcher(Arc<Mutex<Observations>>);

impl Discipline for Watcher {
    fn on_arrival(&mut self, offer: &Offer, _rng: &mut Rng) -> Decision {
        let mut seen = self.0.lock().expect("nobody panicked");
        let waiting: u32 = seen.waiting.values().sum();
        seen.disagreed |= waiting != offer.waiting;
        if waiting >= 5 {
            return Decision::Drop(DropCause::Overflow);
        }
        *seen.waiting.entry(offer.flow).or_default() += 1;
        Decision::Accept
    }

    fn watches(&self) -> Watches {
        Watches::Departures
    }

    fn on_departure(&mut self, departure: &Departure) {
        let mut seen = self.0.lock().expect("nobody panicked");
        *seen.waiting.get_mut(&departure.flow).expect("it came before it left") -= 1;
        seen.departed += 1;
        let waiting: u32 = seen.waiting.values().sum();
        seen.disagreed |=
            waiting != departure.waiting || u64::from(waiting) * 1000 != departure.waiting_bytes;
    }

    fn on_idle(&mut self, since: Time) {
        self.0.lock().expect("nobody panicked").idle.push(since);
    }

    fn on_flush(&mut self) {
        self.0.lock().expect("nobody panicked").waiting.clear();
    }
}

fn watched() -> (Link, Arc<Mutex<Observations>>) {
    let seen = Arc::new(Mutex::new(Observations::default()));
    let watcher: Box<dyn Discipline> = Box::new(Watcher(Arc::clone(&seen)));
    let link = Link::with_discipline(&spec(QueueSpec::UNLIMITED), watcher.into(), Rng::new(1, 1));
    (link, seen)
}

#[test]
fn discipline_observes_requested_departures_and_idle_times() {
    let (mut link, seen) = watched();
    let mut rng = Rng::new(2, 2);
    let mut now = Time::ZERO;
    for _ in 0..2_000 {
        now += Span::from_micros(rng.below(2_100));
        link.offer(now, 1000, rng.below(3) as u32, false);
    }
    link.set_down(now);
    link.set_up();
    link.offer(now + Span::from_millis(1), 1000, 0, false);
    link.offer(now + Span::from_millis(3), 1000, 0, false);
    let seen = seen.lock().expect("nobody panicked");
    assert!(!seen.disagreed && seen.departed > 1_500, "{}", seen.departed);
    assert!(seen.idle.len() > 100 && seen.idle.is_sorted_by(|a, b| a < b), "each idle time is told once");
    assert_eq!(
        seen.idle.last(),
        Some(&(now + Span::from_millis(2))),
        "the packet after the failure had gone"
    );
}

#[test]
fn rate_change_shifts_the_notifications_of_a_discipline() {
    let (mut link, seen) = watched();
    for flow in 0..3 {
        link.offer(Time::ZERO, 1000, flow, false);
    }
    link.set_rate(Time::ZERO + Span::from_micros(500), rate(100));
    // The first transmission ends at the old rate, after 1 ms; the next two take 0.1 ms each.
    link.offer(millis(2), 1000, 0, false);
    let seen = seen.lock().expect("nobody panicked");
    assert_eq!((seen.departed, seen.idle.as_slice()), (3, &[Time::ZERO + Span::from_micros(1_200)][..]));
}
