//! Compares the link, which computes arrival times in advance, with a queue that processes packets one by one. Also tests the
//! loss models.

use faircast_aqm::{
    AnyDiscipline, Decision, Dequeued, Discipline, Limit, Link, LinkSpec, Loss, LossCause, LossSpec, Offer,
    OfferResult, QueueSpec, red,
};
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Returns the rate at which the transmission of a byte takes this number of nanoseconds. No transmission time is then rounded.
fn rate(nanos_per_byte: u64) -> Rate {
    Rate::from_bps(8e9 / nanos_per_byte as f64)
}

fn link(spec: LinkSpec) -> Link {
    Link::new(&spec, Rng::new(1, 1))
}

fn drop_tail(packets: u32) -> LinkSpec {
    let queue = QueueSpec::DropTail(Limit::Packets(packets));
    LinkSpec::new(rate(1000), Span::from_millis(10), queue)
}

/// An event on a link.
#[derive(Debug, Clone)]
enum Happens {
    Packet(u16),
    Rate(u64),
    Delay(Span),
    Down,
    Up,
}

/// A transmitter and its waiting packets, processed event by event.
struct Twin {
    nanos_per_byte: u64,
    delay: Span,
    jitter: Span,
    queue: TwinQueue,
    rng: Rng,
    loss: Option<Loss>,
    up: bool,
    sending: Option<(TwinPacket, Time, Time)>,
    waiting: VecDeque<TwinPacket>,
    idle_since: Time,
    last_arrival: Time,
    departed_bytes: u64,
    /// Arrival times of the packets that have been transmitted.
    arrivals: BTreeMap<usize, Time>,
}

enum TwinQueue {
    DropTail(Limit),
    Discipline(Box<dyn Discipline>),
}

#[derive(Debug, Clone, Copy)]
struct TwinPacket {
    id: usize,
    size: u16,
    delay: Span,
    lost: bool,
}

impl Twin {
    fn new(spec: &LinkSpec, nanos_per_byte: u64) -> Twin {
        Twin {
            nanos_per_byte,
            delay: spec.delay,
            jitter: spec.jitter,
            queue: match spec.queue {
                QueueSpec::DropTail(limit) => TwinQueue::DropTail(limit),
                red => match red.build(spec.rate, spec.delay) {
                    AnyDiscipline::AtArrival(discipline) => TwinQueue::Discipline(discipline),
                    other => panic!("{other:?} does not decide at arrival"),
                },
            },
            rng: Rng::new(1, 1),
            loss: spec.loss.map(Loss::new),
            up: true,
            sending: None,
            waiting: VecDeque::new(),
            idle_since: Time::ZERO,
            last_arrival: Time::ZERO,
            departed_bytes: 0,
            arrivals: BTreeMap::new(),
        }
    }

    fn waiting(&self) -> (u32, u64) {
        (self.waiting.len() as u32, self.waiting.iter().map(|p| u64::from(p.size)).sum())
    }

    fn send_next(&mut self, now: Time) {
        self.sending = self.waiting.pop_front().map(|packet| {
            (packet, now, now + Span::from_nanos(u64::from(packet.size) * self.nanos_per_byte))
        });
        self.idle_since = now;
    }

    /// Ends all transmissions that are due until `now`.
    fn advance(&mut self, now: Time) {
        while let Some((packet, _, ends)) = self.sending.filter(|(_, _, ends)| *ends <= now) {
            self.departed_bytes += u64::from(packet.size);
            self.last_arrival = (self.last_arrival + Span::from_nanos(1)).max(ends + packet.delay);
            if !packet.lost {
                self.arrivals.insert(packet.id, self.last_arrival);
            }
            self.send_next(ends);
        }
    }

    fn offer_at(&self, now: Time, size: u16, ecn_capable: bool) -> Offer {
        let (waiting, waiting_bytes) = self.waiting();
        let in_transmission = self.sending.map_or(0, |(packet, _, _)| packet.size);
        let idle_since = self.sending.is_none().then_some(self.idle_since);
        Offer {
            now,
            size,
            flow: 0,
            ecn: ecn_capable.into(),
            waiting,
            waiting_bytes,
            in_transmission,
            idle_since,
        }
    }

    fn decide(&mut self, now: Time, size: u16, ecn_capable: bool) -> Decision {
        let offer = self.offer_at(now, size, ecn_capable);
        let held = offer.waiting + u32::from(self.sending.is_some());
        let held_bytes = offer.waiting_bytes + u64::from(offer.in_transmission);
        let full = match &mut self.queue {
            TwinQueue::DropTail(Limit::Packets(limit)) => held >= *limit,
            TwinQueue::DropTail(Limit::Bytes(limit)) => held_bytes + u64::from(size) > u64::from(*limit),
            TwinQueue::Discipline(discipline) => {
                while discipline.timer() <= now {
                    let offer = Offer { now: discipline.timer(), ..offer };
                    discipline.on_timer(&offer);
                }
                return discipline.on_arrival(&offer, &mut self.rng);
            }
        };
        if full { Decision::Drop(faircast_aqm::DropCause::Overflow) } else { Decision::Accept }
    }

    fn offer(&mut self, now: Time, id: usize, size: u16, ecn_capable: bool) -> Outcome {
        if !self.up {
            return Outcome::Lost(LossCause::Down);
        }
        let decision = self.decide(now, size, ecn_capable);
        if let Decision::Drop(cause) = decision {
            return Outcome::Lost(LossCause::Queue(cause));
        }
        let jitter = match self.jitter.as_nanos() {
            0 => 0,
            end => self.rng.below(end),
        };
        let delay = self.delay + Span::from_nanos(jitter);
        let lost = self.loss.as_mut().is_some_and(|loss| loss.strikes(&mut self.rng));
        self.waiting.push_back(TwinPacket { id, size, delay, lost });
        if self.sending.is_none() {
            self.send_next(now);
        }
        if lost {
            Outcome::Lost(LossCause::Wire)
        } else {
            Outcome::Sent { marked: decision == Decision::Mark }
        }
    }

    fn set_rate(&mut self, now: Time, nanos_per_byte: u64) {
        self.nanos_per_byte = nanos_per_byte;
        if let TwinQueue::Discipline(discipline) = &mut self.queue {
            discipline.set_rate(rate(nanos_per_byte));
        }
        if let Some((packet, begins, ends)) = &mut self.sending
            && *begins == now
        {
            *ends = now + Span::from_nanos(u64::from(packet.size) * nanos_per_byte);
        }
    }

    fn set_down(&mut self, now: Time) {
        self.up = false;
        self.waiting.clear();
        if self.sending.take().is_some() {
            self.idle_since = now;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Sent { marked: bool },
    Lost(LossCause),
}

/// A link, and the arrival times that the driver of the link has stored.
struct Driven {
    link: Link,
    arrivals: BTreeMap<usize, Time>,
}

impl Driven {
    fn offer(&mut self, now: Time, id: usize, size: u16, ecn_capable: bool) -> Outcome {
        match self.link.offer(now, size, 0, ecn_capable) {
            OfferResult::Arrives { at, marked } => {
                self.arrivals.insert(id, at);
                Outcome::Sent { marked }
            }
            OfferResult::Queued(_) => panic!("it decides at arrival"),
            OfferResult::Lost(cause) => Outcome::Lost(cause),
        }
    }

    fn happens(&mut self, now: Time, what: &Happens) {
        match *what {
            Happens::Packet(_) => {}
            Happens::Rate(nanos_per_byte) => {
                let shift = self.link.set_rate(now, rate(nanos_per_byte));
                // Both lists are in order of time. A packet that was lost on the wire has no stored arrival time, so its shift is
                // skipped.
                let mut moves = shift.moves.iter().peekable();
                for at in self.arrivals.values_mut() {
                    while moves.next_if(|(from, _)| from < at).is_some() {}
                    if let Some((_, to)) = moves.next_if(|(from, _)| from == at) {
                        *at = *to;
                    }
                }
            }
            Happens::Delay(delay) => self.link.set_delay(now, delay),
            Happens::Down => {
                let kept = self.link.set_down(now).kept_until;
                self.arrivals.retain(|_, at| *at <= kept);
            }
            Happens::Up => self.link.set_up(),
        }
    }
}

/// Runs the link and its twin, and compares them at every event and between events.
fn compare(spec: LinkSpec, nanos_per_byte: u64, events: &[(u64, Happens)]) -> Result<(), TestCaseError> {
    let mut twin = Twin::new(&spec, nanos_per_byte);
    let mut driven = Driven { link: link(spec), arrivals: BTreeMap::new() };
    let mut now = Time::ZERO;
    for (id, (gap, what)) in events.iter().enumerate() {
        for _ in 0..2 {
            now += Span::from_nanos(gap / 2);
            twin.advance(now);
            prop_assert_eq!(driven.link.waiting(now), twin.waiting(), "waiting at {:?}, before {}", now, id);
            prop_assert_eq!(driven.link.departed_bytes(now), twin.departed_bytes, "departed at {:?}", now);
        }
        match *what {
            Happens::Packet(size) => {
                let ecn_capable = id % 2 == 0;
                let ours = driven.offer(now, id, size, ecn_capable);
                prop_assert_eq!(ours, twin.offer(now, id, size, ecn_capable), "fate of {}", id);
            }
            Happens::Rate(nanos_per_byte) => twin.set_rate(now, nanos_per_byte),
            Happens::Delay(delay) => twin.delay = delay,
            Happens::Down => twin.set_down(now),
            Happens::Up => twin.up = true,
        }
        driven.happens(now, what);
    }
    twin.advance(Time::NEVER);
    prop_assert_eq!(&driven.arrivals, &twin.arrivals);
    prop_assert!(driven.arrivals.values().is_sorted(), "a packet overtook another");
    Ok(())
}

fn queues() -> impl Strategy<Value = QueueSpec> {
    let red = red::Config { limit: 20, min_th: 2.0, max_th: 6.0, w_q: 0.2, ..red::Config::auto() };
    prop_oneof![
        (1..30u32).prop_map(|packets| QueueSpec::DropTail(Limit::Packets(packets))),
        (1_000..30_000u32).prop_map(|bytes| QueueSpec::DropTail(Limit::Bytes(bytes))),
        (any::<[bool; 5]>()).prop_map(move |[ecn, wait, bytes, gentle, adaptive]| {
            QueueSpec::Red(red::Config { ecn, wait, bytes, gentle, adaptive, ..red })
        }),
    ]
}

fn losses() -> impl Strategy<Value = Option<LossSpec>> {
    prop_oneof![
        3 => Just(None),
        1 => Just(Some(LossSpec::Bernoulli(0.3))),
        1 => Just(Some(LossSpec::GilbertElliott { to_bad: 0.1, to_good: 0.3, good: 0.0, bad: 0.9 })),
    ]
}

fn specs() -> impl Strategy<Value = (LinkSpec, u64)> {
    let jitters = prop_oneof![3 => Just(Span::ZERO), 1 => (1..5_000_000u64).prop_map(Span::from_nanos)];
    (queues(), losses(), jitters, 1..2_000u64, 0..20u64).prop_map(
        |(queue, loss, jitter, nanos_per_byte, millis)| {
            let delay = Span::from_millis(millis);
            let spec = LinkSpec { loss, jitter, ..LinkSpec::new(rate(nanos_per_byte), delay, queue) };
            (spec, nanos_per_byte)
        },
    )
}

fn packets(sizes: impl Strategy<Value = u16> + Clone) -> impl Strategy<Value = Vec<(u64, Happens)>> {
    let gaps = prop_oneof![4 => 0..500_000u64, 4 => Just(0), 1 => 0..1_000_000_000u64];
    prop::collection::vec((gaps, sizes.prop_map(Happens::Packet)), 1..300)
}

fn changes(change: impl Strategy<Value = Happens>) -> impl Strategy<Value = Vec<(u64, Happens)>> {
    let what = prop_oneof![
        10 => (40..1500u16).prop_map(Happens::Packet),
        10 => Just(Happens::Packet(1000)),
        1 => (1..5_000u64).prop_map(Happens::Rate),
        1 => change,
    ];
    prop::collection::vec((prop_oneof![0..500_000u64, Just(0), 0..20_000_000u64], what), 1..300)
}

fn delays() -> impl Strategy<Value = Happens> {
    (0..50u64).prop_map(|millis| Happens::Delay(Span::from_millis(millis)))
}

fn failures() -> impl Strategy<Value = Happens> {
    prop_oneof![1 => Just(Happens::Down), 2 => Just(Happens::Up)]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn packets_of_one_size_arrive_as_in_a_packet_by_packet_queue((spec, nanos) in specs(), events in packets(Just(1000))) {
        compare(spec, nanos, &events)?;
    }

    #[test]
    fn packets_of_any_size_arrive_as_in_a_packet_by_packet_queue((spec, nanos) in specs(), events in packets(1..3000u16)) {
        compare(spec, nanos, &events)?;
    }

    #[test]
    fn changing_links_behave_like_a_packet_by_packet_queue((spec, nanos) in specs(), events in changes(delays())) {
        compare(spec, nanos, &events)?;
    }

    #[test]
    fn failing_links_behave_like_a_packet_by_packet_queue((spec, nanos) in specs(), events in changes(failures())) {
        compare(spec, nanos, &events)?;
    }

    #[test]
    fn counted_and_individually_stored_packets_give_equal_results(
        (spec, _) in specs(),
        events in packets(prop_oneof![9 => Just(1000), 1 => 40..1500u16]),
    ) {
        let (mut short, mut long) = (link(spec), link(spec));
        long.set_delay(Time::ZERO, spec.delay); // from now on packets are kept one by one
        let mut now = Time::ZERO;
        for (gap, what) in events {
            now += Span::from_nanos(gap);
            let Happens::Packet(size) = what else { continue };
            prop_assert_eq!(short.offer(now, size, 0, true), long.offer(now, size, 0, true));
            prop_assert_eq!(short.waiting(now), long.waiting(now));
        }
        prop_assert_eq!(short.counts(), long.counts());
    }

    #[test]
    fn links_that_share_a_specification_behave_alike(
        (spec, _) in specs(),
        events in packets(prop_oneof![9 => Just(1000), 1 => 40..1500u16]),
    ) {
        let (mut alone, mut sharing) = (link(spec), Link::sharing(&Arc::new(spec), Rng::new(1, 1)));
        let mut now = Time::ZERO;
        for (gap, what) in events {
            now += Span::from_nanos(gap);
            let Happens::Packet(size) = what else { continue };
            prop_assert_eq!(alone.offer(now, size, 0, true), sharing.offer(now, size, 0, true));
            let state = |it: &Link| (it.waiting(now), it.departed_bytes(now), it.counts(), it.rank(), it.rate());
            prop_assert_eq!(state(&alone), state(&sharing));
        }
    }

    #[test]
    fn transmission_times_are_exact_within_two_nanoseconds(bps in 1e3..1e11f64, size in 1..=u16::MAX) {
        let spec = LinkSpec { rate: Rate::from_bps(bps), delay: Span::ZERO, ..drop_tail(1) };
        let exact = f64::from(size) * 8e9 / bps;
        let OfferResult::Arrives { at, .. } = link(spec).offer(Time::ZERO, size, 0, false) else {
            return Err(TestCaseError::fail("an empty buffer takes a packet"));
        };
        let error = (at.as_nanos() as f64 - exact).abs();
        prop_assert!(error < 2.0 + exact * 1e-6, "{} instead of {}", at.as_nanos(), exact);
    }
}

#[test]
fn link_of_unlimited_rate_only_delays_packets() {
    let mut link = link(LinkSpec { rate: Rate::UNLIMITED, ..drop_tail(1) });
    for millis in [0, 0, 0, 5] {
        let now = Time::ZERO + Span::from_millis(millis);
        let at = now + Span::from_millis(10);
        assert_eq!(link.offer(now, 1000, 0, false), OfferResult::Arrives { at, marked: false });
    }
}

#[test]
fn rate_of_zero_nearly_stops_the_queue() {
    let mut link = link(drop_tail(10));
    link.set_rate(Time::ZERO, Rate::ZERO);
    let OfferResult::Arrives { at, .. } = link.offer(Time::ZERO, 1000, 0, false) else {
        panic!("the buffer was empty")
    };
    assert!(at > Time::from_secs_f64(100.0));
    // The first packet is already in transmission at the old rate. The change affects only the second packet.
    link.offer(Time::ZERO, 1000, 0, false);
    let moves = link.set_rate(Time::from_secs_f64(1.0), rate(1000)).moves;
    assert_eq!(moves.len(), 1);
}

#[test]
fn recovered_link_does_not_wait_for_lost_packets() {
    let mut link = link(drop_tail(100));
    for _ in 0..100 {
        link.offer(Time::ZERO, 1000, 0, false); // a millisecond each
    }
    let now = Time::ZERO + Span::from_micros(2_500);
    let kept = link.set_down(now).kept_until;
    assert_eq!(kept, Time::ZERO + Span::from_millis(12));
    assert_eq!((link.departed_bytes(now), link.counts().lost), (2_000, 98));
    link.set_up();
    let at = now + Span::from_millis(11);
    assert_eq!(link.offer(now, 1000, 0, false), OfferResult::Arrives { at, marked: false });
}

/// Returns the arrival times of packets that are sent every `gap` over a link with a jitter of up to 2 ms.
fn jittered(queue: QueueSpec, gap: Span) -> Vec<Time> {
    let spec = LinkSpec { jitter: Span::from_millis(2), queue, ..drop_tail(100) };
    let mut link = link(spec);
    let mut arrivals = Vec::new();
    for number in 0..2_000 {
        let now = Time::ZERO + gap * number;
        let fate = link.offer(now, 100, number as u32, false);
        let queued = std::iter::from_fn(|| link.dequeue(now)).map(|news| match news {
            Dequeued::Arrives { at, .. } => at,
            lost @ Dequeued::Lost { .. } => panic!("{lost:?}"),
        });
        arrivals.extend(queued);
        if let OfferResult::Arrives { at, .. } = fate {
            arrivals.push(at);
        }
    }
    arrivals
}

#[test]
fn jitter_is_uniform_and_does_not_reorder_packets() {
    let fair = QueueSpec::Drr(faircast_aqm::drr::Config::default());
    for queue in [drop_tail(100).queue, fair] {
        let gap = Span::from_millis(5);
        let arrivals = jittered(queue, gap);
        assert_eq!(arrivals.len(), 2_000);
        let usual = Span::from_micros(10_100); // a tenth of a millisecond at the transmitter
        let more = arrivals.iter().zip(0..).map(|(at, number)| at.since(Time::ZERO + gap * number + usual));
        let more: Vec<f64> = more.map(|more| more.as_nanos() as f64 / 2e6).collect();
        assert!(more.iter().all(|more| (0.0..1.0).contains(more)), "up to what was said");
        near(more.iter().sum::<f64>() / more.len() as f64, 0.5);
        // With a gap of half a millisecond, packets would often overtake each other if the link permitted it.
        assert!(jittered(queue, Span::from_micros(500)).is_sorted());
    }
}

/// Returns the share of lost packets, and the mean length of a run of losses.
fn strikes(spec: LossSpec, packets: usize) -> (f64, f64) {
    let (mut loss, mut rng) = (Loss::new(spec), Rng::new(3, 3));
    let (mut losses, mut runs, mut before) = (0, 0, false);
    for _ in 0..packets {
        let lost = loss.strikes(&mut rng);
        losses += usize::from(lost);
        runs += usize::from(lost && !before);
        before = lost;
    }
    (losses as f64 / packets as f64, losses as f64 / runs as f64)
}

fn near(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() < 0.03, "{value} is not {expected}");
}

#[test]
fn independent_losses_have_the_given_rate_and_no_bursts() {
    let (rate, run) = strikes(LossSpec::Bernoulli(0.05), 1_000_000);
    near(rate, 0.05);
    near(run, 1.0 / 0.95);
}

#[test]
fn gilbert_elliott_losses_have_the_expected_rate_and_run_length() {
    let spec = LossSpec::GilbertElliott { to_bad: 0.01, to_good: 0.25, good: 0.0, bad: 1.0 };
    let (rate, run) = strikes(spec, 2_000_000);
    near(rate, 0.01 / 0.26); // the share of the bad state
    near(run, 4.0); // 1 / to_good
}

#[test]
fn each_gilbert_elliott_state_has_its_own_loss_rate() {
    let spec = LossSpec::GilbertElliott { to_bad: 0.1, to_good: 0.1, good: 0.02, bad: 0.5 };
    near(strikes(spec, 1_000_000).0, 0.26);
}

#[test]
fn loss_probabilities_of_zero_and_one_are_exact() {
    assert_eq!(strikes(LossSpec::Bernoulli(1.0), 1_000).0, 1.0);
    assert_eq!(strikes(LossSpec::Bernoulli(0.0), 1_000).0, 0.0);
}

#[test]
fn bursts_rank_last_on_long_links_and_first_on_short_links() {
    // The transmission of a packet of 1000 bytes takes 1 ms.
    let ranks = |delay| {
        let mut link = link(LinkSpec { delay, ..drop_tail(9) });
        [10, 10, 12, 20].map(|millis| {
            link.offer(Time::from_secs_f64(f64::from(millis) / 1e3), 1000, 0, false);
            link.rank()
        })
    };
    assert_eq!(ranks(Span::from_millis(10)), [0, 1, 2, 0]);
    assert_eq!(ranks(Span::from_micros(10)), [255, 254, 253, 255]);
}

#[test]
fn queue_can_hold_more_than_four_gigabytes() {
    let mut link = link(drop_tail(u32::MAX));
    (0..80_000).for_each(|_| {
        let fate = link.offer(Time::ZERO, 60_000, 0, false);
        assert!(matches!(fate, OfferResult::Arrives { .. }));
    });
    assert_eq!(link.waiting(Time::ZERO), (79_999, 79_999 * 60_000));
    assert_eq!(link.departed_bytes(Time::ZERO), 0);
    let other_size = link.offer(Time::ZERO, 1000, 0, false);
    assert!(matches!(other_size, OfferResult::Arrives { .. }));
    assert_eq!(link.waiting(Time::ZERO), (80_000, 79_999 * 60_000 + 1000), "written down one by one");
}
