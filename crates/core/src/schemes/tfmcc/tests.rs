//! Behaviour of TFMCC's source and receivers, together and separately.

use super::{Config, Receiver, Source};
use crate::node::{Receiver as _, Source as _, SourceControl};
use crate::packet::{Arrival, Data, Echo, Knows, Layer, Mark, ReportContent};
use crate::rate::Start;
use crate::schemes::Scheme;
use crate::schemes::bench::{self, Bench, Path, Star, data, receiver_id};
use crate::time::{Rate, Span, Time};

const SIZE: u16 = 1000;
const ALL: Knows = Knows(0b11);
const NOTHING: Knows = Knows(0);

fn millis(millis: u64) -> Span {
    Span::from_millis(millis)
}

fn at(secs: f64) -> Time {
    Time::from_secs_f64(secs)
}

type Sender = Bench<Source>;

/// The fields of a packet's header.
struct Header {
    suppress_above: f32,
    to: Option<u64>,
    echo: u32,
    limiting: bool,
}

impl Sender {
    /// Creates a source that has sent one packet at 1 s.
    fn new(config: Config) -> Sender {
        let mut sender = Bench::by_hand_at(Source::new(config), SIZE, at(1.0));
        sender.send();
        sender
    }

    fn steady() -> Sender {
        let mut config = Config::published();
        config.sending.start = Start::Linear;
        Sender::new(config)
    }

    /// Creates a source whose largest round-trip time does not fall.
    fn steady_at_one_distance() -> Sender {
        let mut config = Config { rtt_max_kept: 1.0, ..Config::published() };
        config.sending.start = Start::Linear;
        Sender::new(config)
    }

    /// Sends a packet now, regardless of the schedule.
    fn send(&mut self) -> Header {
        let stamp = self.depart(Layer(0));
        let Mark::Equation { suppress_above, to, echo, limiting, .. } = stamp.mark else {
            panic!("{stamp:?}")
        };
        Header { suppress_above, to: to.map(|id| id.get()), echo, limiting }
    }

    /// Delivers a report that answers the newest packet, with this round-trip time.
    fn calculated(&mut self, from: u64, kbps: f64, rtt: Span, knows: Knows) {
        let (sent_at, stamp) = (self.now, self.depart(Layer(0)));
        self.now = sent_at + rtt;
        let round = self.source.round_state().0;
        let echo = Echo { seq: stamp.seq, hold: Span::ZERO };
        let rate = (kbps * 1e3) as f32;
        let content = ReportContent::Calculated { echo, rate, stamp: 77, round, knows };
        self.report(from, content);
    }

    fn kbps(&self) -> f64 {
        self.source.allowed().bps() / 1e3
    }

    /// Creates a source with a largest round-trip time of 500 ms, which receiver 1 limits to `kbps` kbit/s.
    fn limited_to(kbps: f64) -> Sender {
        Sender::steady().limited(kbps)
    }

    fn limited(mut self, kbps: f64) -> Sender {
        let sender = &mut self;
        sender.source.force(Rate::from_bps(4e6), sender.now);
        sender.calculated(1, kbps, millis(100), ALL);
        assert_eq!((sender.limiting(), sender.kbps()), (Some(1), kbps));
        self
    }
}

#[test]
fn first_receiver_to_report_limits_the_rate() {
    let mut sender = Sender::steady();
    sender.run_for(millis(500));
    sender.calculated(4, 900.0, millis(100), ALL);
    assert_eq!(sender.limiting(), Some(4));
    // The rate rises from 16 kbit/s by at most a packet per half a second.
    assert!((16.0..=32.0).contains(&sender.kbps()), "{}", sender.kbps());
    sender.calculated(4, 10.0, millis(100), ALL);
    assert_eq!(sender.kbps(), 10.0, "down at once");
}

#[test]
fn only_a_slower_receiver_replaces_the_limiting_receiver() {
    let mut sender = Sender::limited_to(1000.0);
    sender.calculated(2, 1100.0, millis(100), ALL);
    assert_eq!((sender.limiting(), sender.kbps()), (Some(1), 1000.0));
    sender.calculated(2, 700.0, millis(100), ALL);
    assert_eq!((sender.limiting(), sender.kbps()), (Some(2), 700.0));
}

#[test]
fn rate_is_held_for_some_rounds_after_limiting_receiver_leaves() {
    let mut sender = Sender::limited_to(1000.0);
    sender.calculated(1, 1000.0, millis(100), ALL.with(Knows::LEAVING));
    sender.calculated(2, 3000.0, millis(100), ALL);
    assert_eq!(sender.limiting(), Some(2));
    for _ in 0..25 {
        sender.calculated(2, 3000.0, millis(100), ALL);
        assert_eq!(sender.kbps(), 1000.0, "six times half a second");
    }
    for _ in 0..20 {
        sender.calculated(2, 3000.0, millis(100), ALL);
    }
    assert!(sender.kbps() > 1010.0, "{}", sender.kbps());
}

#[test]
fn departing_receiver_never_limits_the_rate() {
    let mut sender = Sender::limited_to(1000.0);
    sender.calculated(2, 100.0, millis(100), ALL.with(Knows::LEAVING));
    assert_eq!((sender.limiting(), sender.kbps()), (Some(1), 1000.0));
}

#[test]
fn the_rate_rises_by_a_packet_per_maximum_rtt() {
    for reports_per_second in [4, 20, 100] {
        let mut sender = Sender::limited_to(1000.0);
        let gap = Span::from_secs(1) / reports_per_second;
        let rtt_max = sender.source.observe().rtt_max.as_secs_f64();
        assert_eq!(rtt_max, 0.5);
        for _ in 0..reports_per_second {
            sender.calculated(1, 9000.0, gap, ALL);
        }
        // The rate rises by 16 kbit/s in each half second.
        let raised = sender.kbps() - 1000.0;
        assert!((raised - 32.0).abs() < 4.0, "{raised} with {reports_per_second}");
    }
}

#[test]
fn only_reports_of_other_receivers_lower_the_suppression_rate() {
    let mut sender = Sender::limited_to(1000.0);
    let after_first = sender.source.round_state().1;
    assert_eq!(after_first, 900_000.0, "when it reported it did not limit yet");
    sender.calculated(1, 500.0, millis(100), ALL);
    assert_eq!(sender.source.round_state().1, after_first);
    sender.calculated(2, 800.0, millis(100), ALL);
    assert_eq!(sender.source.round_state().1, 720_000.0);
    sender.calculated(3, 750.0, millis(100), ALL);
    assert_eq!(sender.source.round_state().1, 720_000.0, "not lower than what is suppressed");
    assert_eq!(sender.send().suppress_above, 720_000.0);
}

/// A receiver without a measured round-trip time calculates with the largest one. The source corrects this error in the rate that
/// it follows. It does not correct the rate for suppression, because other receivers without a measurement have the same error.
#[test]
fn suppression_uses_reported_rates_and_control_corrected_rates() {
    let mut sender = Sender::limited_to(1000.0);
    sender.calculated(2, 300.0, millis(100), Knows::LOSS);
    assert_eq!(sender.source.round_state().1, 270_000.0);
    assert_eq!((sender.limiting(), sender.kbps()), (Some(1), 1000.0), "300 times 500 / 100 ms");
    sender.calculated(2, 100.0, millis(100), Knows::LOSS);
    assert_eq!((sender.limiting(), sender.kbps().round()), (Some(2), 500.0));
}

#[test]
fn stamp_of_the_new_limiting_receiver_is_echoed_first() {
    let mut sender = Sender::limited_to(1000.0);
    let came = sender.now;
    sender.now += millis(3);
    let header = sender.send();
    assert_eq!((header.to, header.limiting, header.echo), (Some(1), true, 77 + 3000));
    sender.calculated(2, 2000.0, millis(100), ALL);
    let header = sender.send();
    assert_eq!((header.to, header.limiting), (Some(2), false));
    sender.now = came + millis(450);
    let header = sender.send();
    assert_eq!((header.to, header.limiting, header.echo), (Some(1), true, 77 + 450_000));
}

#[test]
fn a_silent_limiting_receiver_halves_the_rate_and_is_given_up() {
    let mut sender = Sender::steady_at_one_distance().limited(1000.0);
    for _ in 0..100 {
        sender.calculated(1, 1000.0, millis(100), ALL);
    }
    let rtt_max = sender.source.observe().rtt_max;
    let received = sender.now;
    let mut seen = Vec::new();
    while sender.limiting().is_some() {
        sender.run_for(millis(10));
        let silent = sender.now.since(received).as_secs_f64() / rtt_max.as_secs_f64();
        if seen.last().is_none_or(|(_, rate)| *rate != sender.kbps()) {
            seen.push((silent, sender.kbps()));
        }
    }
    let silent = sender.now.since(received).as_secs_f64() / rtt_max.as_secs_f64();
    let rates: Vec<f64> = seen.iter().map(|(_, rate)| *rate).collect();
    assert_eq!(rates, [1000.0, 500.0, 250.0], "{seen:?}");
    assert!((4.0..6.0).contains(&seen[1].0) && (8.0..10.1).contains(&seen[2].0), "{seen:?}");
    assert!((9.5..12.0).contains(&silent), "{silent}");
}

#[test]
fn rate_falls_to_the_minimum_without_reports() {
    let mut sender = Sender::steady();
    sender.source.force(Rate::from_bps(4e6), sender.now);
    sender.run_for(Span::from_secs(11));
    assert!((0.9e3..2.1e3).contains(&sender.kbps()), "twice halved in 11 s: {}", sender.kbps());
    sender.run_for(Span::from_secs(400));
    assert_eq!(sender.kbps(), 1.0, "a packet per 8 s");
}

#[test]
fn maximum_rtt_falls_by_a_tenth_per_round_to_the_largest_sample() {
    let mut sender = Sender::limited_to(1000.0);
    let mut before = sender.source.observe().rtt_max;
    assert_eq!(before, millis(500));
    let mut round = sender.source.round_state().0;
    for _ in 0..2000 {
        sender.calculated(1, 1000.0, millis(60), ALL);
        sender.run_for(millis(1));
        let after = sender.source.observe().rtt_max;
        if sender.source.round_state().0 != round {
            round = round.wrapping_add(1);
            assert!(after == before.scaled(0.9) || after == millis(60), "{before} to {after}");
        } else {
            assert_eq!(after, before);
        }
        before = after;
    }
    assert_eq!(before, millis(60));
    sender.calculated(2, 2000.0, millis(90), ALL);
    assert_eq!(sender.source.observe().rtt_max, millis(90), "a longer one counts at once");
    // At 8 kbit/s a packet takes one second.
    sender.calculated(1, 8.0, millis(60), ALL);
    for _ in 0..40 {
        sender.calculated(1, 8.0, millis(60), ALL);
        sender.run_for(millis(200));
    }
    assert!(sender.source.observe().rtt_max >= Span::from_secs(1));
}

/// A round ends after a report of a receiver that is not the limiting one, or after twice the normal duration of a round.
#[test]
fn feedback_round_without_reports_is_twice_as_long() {
    for (answered, rounds) in [(true, 4), (false, 2)] {
        let mut sender = Sender::steady_at_one_distance();
        let begun = sender.now;
        while sender.now.since(begun) < Span::from_secs(13) {
            if answered {
                sender.calculated(1, 900.0, millis(100), ALL);
                sender.calculated(2, 950.0, millis(100), ALL);
            }
            let now = sender.now;
            sender.source.control(SourceControl::SignOfLife, now);
            sender.run_for(millis(50));
        }
        assert_eq!(sender.source.round_state().0, rounds);
    }
}

#[test]
fn feedback_round_numbers_wrap() {
    let mut config = Config::published();
    config.sending.initial_rtt = millis(10);
    let mut sender = Sender::new(config);
    sender.source.force(Rate::from_bps(4e6), sender.now);
    let mut seen = [false; 256];
    for _ in 0..300 {
        sender.calculated(1, 4000.0, millis(10), ALL);
        sender.calculated(2, 5000.0, millis(10), ALL);
        sender.run_for(millis(60));
        seen[usize::from(sender.source.round_state().0)] = true;
    }
    assert!(seen.iter().filter(|seen| **seen).count() > 250);
}

#[test]
fn excluded_receiver_no_longer_limits_the_rate() {
    let mut sender = Sender::limited_to(1000.0);
    let now = sender.now;
    sender.source.control(SourceControl::Forget(receiver_id(1)), now);
    assert_eq!(sender.limiting(), None);
    sender.calculated(2, 2000.0, millis(100), ALL);
    assert_eq!((sender.limiting(), sender.kbps()), (Some(2), 1000.0));
}

#[test]
fn slow_start_ends_with_the_first_loss_of_any_receiver() {
    let mut sender = Sender::new(Config::published());
    sender.run_for(millis(500));
    sender.calculated(1, 32.0, millis(100), NOTHING);
    assert!(sender.source.observe().starting);
    sender.run_for(millis(500));
    assert!((24.0..=32.0).contains(&sender.kbps()), "{}", sender.kbps());
    sender.calculated(2, 500.0, millis(100), ALL);
    assert!(!sender.source.observe().starting);
    assert_eq!(sender.limiting(), Some(1), "it is still the slower one");
}

#[test]
fn rate_doubles_up_to_its_old_value_after_a_long_pause() {
    let mut sender = Sender::limited_to(1000.0);
    // Deadlines expire although no packet is sent.
    let end = sender.now + Span::from_secs(8);
    while sender.source.deadline() <= end {
        sender.now = sender.source.deadline().max(sender.now);
        sender.call(|source, cx| source.on_deadline(cx));
    }
    sender.now = end;
    sender.send();
    let begun = sender.kbps();
    assert!(begun < 20.0, "{begun}");
    let mut rates = vec![begun];
    for _ in 0..12 {
        for _ in 0..5 {
            sender.calculated(1, 1000.0, millis(100), ALL);
        }
        rates.push(sender.kbps());
    }
    assert!(rates.windows(2).all(|pair| pair[1] <= pair[0] * 2.6), "{rates:?}");
    assert!((300.0..=600.0).contains(&rates[7]), "{rates:?}");
    let last = rates[rates.len() - 1];
    assert!((500.0..700.0).contains(&last), "half of the rate before, then a packet at a time: {rates:?}");
}

type Ear = bench::Ear<Receiver>;

const PLAIN: Arrival = Arrival { size: SIZE, lost: 0, excused: 0, marked: false, late: false };

fn header(round: u8, suppress_above: f32) -> Mark {
    Mark::Equation { suppress_above, rtt_max: 0.1, round, to: None, echo: 0, limiting: false }
}

fn echo(to: u64, echo: u32, limiting: bool) -> Mark {
    let to = Some(receiver_id(to));
    Mark::Equation { suppress_above: f32::INFINITY, rtt_max: 0.1, round: 0, to, echo, limiting }
}

impl Ear {
    fn new() -> Ear {
        Ear::by_hand(Receiver::new(receiver_id(2), &Config::published()), at(10.0))
    }

    fn deliver(&mut self, now: Time, seq: u64, mark: Mark, arrival: Arrival) -> Vec<ReportContent> {
        self.now = now;
        // The source's clock is 1000 s ahead; packets take 30 ms.
        let sent_at = now + Span::from_secs(1000) - millis(30);
        self.receive(&Data { rate: 1e6, ..data(seq, sent_at, mark) }, arrival)
    }

    /// Delivers a packet every 8 ms (1 Mbit/s) without loss, from packet number `from` on. Returns the reports.
    fn stream(&mut self, from: u64, packets: u64, mark: Mark) -> Vec<ReportContent> {
        let mut all = Vec::new();
        for seq in from..from + packets {
            let now = at(10.0) + millis(8 * seq);
            all.extend(self.wait_until(now));
            all.extend(self.deliver(now, seq, mark, PLAIN));
        }
        all
    }
}

fn rate_of(content: &ReportContent) -> (f64, Knows) {
    match *content {
        ReportContent::Calculated { rate, knows, .. } => (f64::from(rate), knows),
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn report_states_twice_the_received_rate_before_any_loss() {
    let mut ear = Ear::new();
    let reports = ear.stream(0, 200, header(0, f32::INFINITY));
    assert_eq!(reports.len(), 1);
    let (rate, knows) = rate_of(&reports[0]);
    assert!((1.9e6..2.1e6).contains(&rate), "{rate}");
    assert_eq!(knows, NOTHING);
    assert_eq!(ear.stream(200, 200, header(1, f32::INFINITY)).len(), 1, "another round");
}

#[test]
fn report_of_a_rate_above_the_suppression_rate_is_not_sent() {
    for (suppress_above, expected) in [(1e6, 0), (3e6, 1)] {
        let mut ear = Ear::new();
        let mut reports = ear.stream(0, 10, header(0, f32::INFINITY));
        reports.extend(ear.stream(10, 190, header(0, suppress_above)));
        assert_eq!(reports.len(), expected, "{suppress_above}");
        assert_eq!(ear.receiver.suppressed(), 1 - expected as u32);
    }
}

#[test]
fn the_receiver_with_the_longest_rtt_always_reports() {
    let mut ear = Ear::new();
    ear.stream(0, 10, header(0, 1.0));
    // The measured round-trip time is 150 ms; the header states 100 ms.
    let now = at(10.0) + millis(80);
    let stamp = ((now - millis(150)).as_nanos() / 1000) as u32;
    ear.deliver(now, 10, echo(2, stamp, false), PLAIN);
    assert_eq!(ear.receiver.rtt(), millis(150));
    let reports = ear.stream(11, 100, header(1, 1.0));
    assert_eq!(reports.len(), 1);
    assert!(rate_of(&reports[0]).1.has(Knows::RTT));
}

#[test]
fn the_limiting_receiver_reports_once_per_rtt() {
    let mut ear = Ear::new();
    ear.stream(0, 10, header(0, f32::INFINITY));
    let now = at(10.0) + millis(80);
    let stamp = ((now - millis(50)).as_nanos() / 1000) as u32;
    let first = ear.deliver(now, 10, echo(2, stamp, true), PLAIN);
    assert_eq!(first.len(), 1, "at once");
    let reports = ear.stream(11, 125, header(0, 1.0));
    assert!((18..=21).contains(&reports.len()), "{} in a second", reports.len());
    ear.deliver(at(10.0) + millis(8 * 136), 136, echo(9, 0, true), PLAIN);
    assert!(!ear.receiver.is_limiting());
    assert_eq!(ear.stream(137, 50, header(0, 1.0)), []);
}

#[test]
fn first_loss_interval_is_calculated_from_the_received_rate() {
    let mut ear = Ear::new();
    ear.stream(0, 100, header(0, f32::INFINITY));
    let lossy = Arrival { lost: 1, ..PLAIN };
    ear.deliver(at(10.0) + millis(808), 101, header(0, f32::INFINITY), lossy);
    // 1 Mbit/s over an assumed 100 ms gives 104 packets. The received rate is accurate to one packet in 12.
    let interval = 1.0 / ear.receiver.loss();
    assert!((85.0..125.0).contains(&interval), "{interval}");
    // With half the round-trip time, the interval has a quarter of the packets.
    let now = at(10.0) + millis(816);
    let stamp = ((now - millis(50)).as_nanos() / 1000) as u32;
    ear.deliver(now, 102, echo(2, stamp, false), PLAIN);
    let rescaled = 1.0 / ear.receiver.loss();
    assert!((rescaled * 4.0 / interval - 1.0).abs() < 0.01, "{interval} and {rescaled}");
}

#[test]
fn congestion_mark_counts_as_a_loss_event() {
    let mut ear = Ear::new();
    ear.stream(0, 100, header(0, f32::INFINITY));
    ear.deliver(at(10.8), 100, header(0, f32::INFINITY), Arrival { marked: true, ..PLAIN });
    assert!(ear.receiver.loss() > 0.0);
}

#[test]
fn lost_packet_that_arrives_late_is_no_longer_a_loss() {
    let mut ear = Ear::new();
    ear.stream(0, 100, header(0, f32::INFINITY));
    ear.deliver(at(10.808), 101, header(0, f32::INFINITY), Arrival { lost: 1, ..PLAIN });
    assert!(ear.receiver.loss() > 0.0);
    ear.deliver(at(10.81), 100, header(0, f32::INFINITY), Arrival { late: true, ..PLAIN });
    assert_eq!(ear.receiver.loss(), 0.0);
}

#[test]
fn a_pause_of_ten_maximum_rtts_clears_the_loss_history() {
    for (pause, forgotten) in [(900, false), (1100, true)] {
        let mut ear = Ear::new();
        ear.stream(0, 100, header(0, f32::INFINITY));
        ear.deliver(at(10.808), 101, header(0, f32::INFINITY), Arrival { lost: 1, ..PLAIN });
        ear.deliver(at(10.808) + millis(pause), 102, header(0, f32::INFINITY), PLAIN);
        assert_eq!(ear.receiver.loss() == 0.0, forgotten, "{pause} ms");
    }
}

#[test]
fn only_the_limiting_receiver_reports_that_it_leaves() {
    for (limiting, reports) in [(true, 1), (false, 0)] {
        let mut ear = Ear::new();
        ear.stream(0, 10, header(0, f32::INFINITY));
        let now = at(10.08);
        let stamp = ((now - millis(50)).as_nanos() / 1000) as u32;
        ear.deliver(now, 10, echo(2, stamp, limiting), PLAIN);
        let contents = ear.leave();
        assert_eq!(contents.len(), reports);
        assert!(contents.iter().all(|content| rate_of(content).1.has(Knows::LEAVING)));
        assert_eq!(ear.receiver.deadline(), Time::NEVER);
    }
}

fn bottleneck(mbps: f64, rtt: u64, packets: u64) -> Path {
    Path { rate: Rate::from_mbps(mbps), rtt: millis(rtt), buffer: packets * u64::from(SIZE) }
}

#[test]
fn slow_start_peaks_below_about_twice_the_bottleneck_rate() {
    for (mbps, rtt) in [(1.0, 100u32), (10.0, 30), (50.0, 10)] {
        let packets = (mbps * 1e6 * f64::from(rtt) / 1e3 / 8e3) as u64;
        let path = bottleneck(mbps, rtt.into(), packets.max(10));
        let mut config = Config::published();
        config.sending.initial_rtt = millis(200);
        let mut star = Star::new(&Scheme::Tfmcc(config), SIZE, &[path], 1);
        star.run_until(at(30.0));
        let peak = star.peak(500).bps() / 1e6;
        println!("{mbps} Mbit/s: at most {peak:.2}");
        assert!((0.9 * mbps..=2.05 * mbps).contains(&peak), "{peak} of {mbps}");
        assert!(!star.source.observe().starting);
    }
}

#[test]
fn group_of_sixty_four_receivers_sends_few_reports() {
    let paths = [bottleneck(1.0, 60, 20); 64];
    let mut star = Star::new(&Scheme::Tfmcc(Config::transport(SIZE)), SIZE, &paths, 3);
    star.run_until(at(60.0));
    let reports: Vec<u32> = star.leaves.iter().map(|leaf| leaf.reports.saturating_sub(240)).collect();
    let most = reports.iter().max().copied().unwrap_or(0);
    let all: u32 = reports.iter().sum();
    println!("{all} reports, {most} of one receiver");
    // The limiting receiver reports each round trip, about 10 times a second. The other receivers send 5 to 10 reports per round
    // of six round trips.
    assert!(all < 60 * 30, "{all}");
}

#[test]
fn pause_of_the_source_does_not_lower_the_reported_rate() {
    let mut ear = Ear::new();
    ear.stream(0, 100, header(0, f32::INFINITY));
    let now = at(10.8);
    let stamp = ((now - millis(50)).as_nanos() / 1000) as u32;
    ear.deliver(now, 100, echo(2, stamp, true), PLAIN);
    assert!(ear.receiver.is_limiting());
    // During the pause only reports that acknowledge a packet are sent, and none of them states a lower rate.
    let mut reports = ear.wait_until(at(12.0));
    assert!(reports.len() <= 1, "{reports:?}");
    reports.extend(ear.deliver(at(12.0), 101, echo(2, stamp, true), PLAIN));
    for report in &reports {
        assert!(rate_of(report).0 > 1.8e6, "{report:?}");
    }
}
