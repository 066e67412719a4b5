//! Tests of RACCOOM's source and receivers without a network, and of RACCOOM's behaviour at bottlenecks.

use super::*;
use crate::node::{Effect, Receiver as _, Relay as _, Source as _, SourceControl};
use crate::packet::{Arrival, Echo, Layer, Mark, ReceiverId, Report, ReportContent, Seq, ShortId};
use crate::rng::Rng;
use crate::schemes::Scheme;
use crate::schemes::bench::{Bench, Ear, Path, Star, data, receiver_id};
use crate::time::{Rate, Span, Time};

const RTT: Span = Span::from_millis(100);

fn at(secs: f64) -> Time {
    Time::from_secs_f64(secs)
}

fn short(number: u64) -> Option<ShortId> {
    ShortId::of(receiver_id(number))
}

/// The thesis with the stable law.
fn steady() -> Config {
    Config { law: Law::Steady, table: 64, ..Config::published() }
}

type Sender = Bench<Source>;

impl Sender {
    fn new(config: Config) -> Sender {
        Bench::by_hand(Source::new(config), 500)
    }

    /// Sends this number of packets.
    fn send(&mut self, packets: usize) {
        let before = self.sent.len();
        while self.sent.len() < before + packets {
            self.run_for(Span::from_millis(1));
        }
    }

    fn deliver(&mut self, of: u64, newest: u64, lost: u64) {
        self.receive_held(of, newest, lost, Span::ZERO);
    }

    /// Packets are numbered from 1, as in reports.
    fn receive_held(&mut self, of: u64, newest: u64, lost: u64, hold: Span) {
        let echo = Echo { seq: Seq(newest - 1), hold };
        let content = ReportContent::Newest { echo, past_lost: Seq(lost), of: short(of) };
        self.report(of, content);
    }

    /// Acknowledges every packet `rtt` after it was sent, until `end`.
    fn echo_until(&mut self, of: u64, rtt: Span, end: Time) {
        let mut next = self.sent.iter().filter(|sent| sent.at + rtt <= self.now).count();
        while self.now < end {
            match self.sent.get(next).map(|sent| sent.at + rtt) {
                Some(due) if due <= self.now => {
                    next += 1;
                    self.deliver(of, next as u64, 0);
                }
                due => self.run_until(due.unwrap_or(end).min(end).min(self.now + Span::from_millis(1))),
            }
        }
    }
}

#[test]
fn source_starts_at_5000_bytes_per_second() {
    let sender = Sender::new(Config::published());
    assert_eq!(sender.rate(), 40_000.0);
}

#[test]
fn rate_grows_by_a_packet_per_rtt_squared_on_an_empty_path() {
    let mut sender = Sender::new(steady());
    sender.echo_until(1, RTT, at(5.0));
    let (before, _, _) = sender.source.inside();
    sender.echo_until(1, RTT, at(15.0));
    let (after, _, _) = sender.source.inside();
    // 500 bytes per 100 ms, a hundred times.
    let per_round_trip = (after.bps() - before.bps()) / 100.0 / 40_000.0;
    assert!((per_round_trip - 1.0).abs() < 0.05, "{per_round_trip}");
}

#[test]
fn rate_of_the_printed_law_is_below_200_kbit_after_20_s() {
    let mut sender = Sender::new(Config::published());
    sender.echo_until(1, RTT, at(20.0));
    assert!(sender.rate() < 200_000.0, "the law that stands has 40 times as much by then: {}", sender.rate());
}

/// Two cases of independent losses: of the same packet, and of different packets of a window.
#[test]
fn losses_within_a_window_cause_one_cut_for_all_receivers() {
    let mut sender = Sender::new(Config { first_rate: Some(Rate::from_mbps(4.0)), ..steady() });
    sender.send(60);
    let before = sender.rate();
    for of in 1..=50 {
        sender.deliver(of, 30, 29);
    }
    assert_eq!(sender.cuts(), 1);
    for of in 1..=50 {
        sender.deliver(of, 31 + of % 20, 31 + of % 20);
    }
    assert_eq!(sender.cuts(), 1);
    assert!(sender.rate() <= before / 2.0 * 1.2, "{before} to {}", sender.rate());
    let (_, last_cut, _) = sender.source.inside();
    assert_eq!(last_cut, 60, "what had left at the cut");
    sender.send(20);
    sender.deliver(7, 70, 61);
    assert_eq!(sender.cuts(), 2, "the next packet's loss is one more");
}

#[test]
fn a_reported_loss_of_an_unsent_packet_is_ignored() {
    let mut sender = Sender::new(steady());
    sender.send(10);
    sender.deliver(1, 5, 11);
    assert_eq!(sender.cuts(), 0);
}

#[test]
fn source_uses_the_shortest_rtt_of_each_target() {
    let mut sender = Sender::new(steady());
    for (of, millis) in [(1, 54), (2, 64), (3, 94), (2, 64), (1, 54)] {
        sender.call(|source, cx| source.control(SourceControl::Forget(receiver_id(9)), cx.now));
        let rtt = Span::from_millis(millis);
        // The other receivers are silent, so they are removed after some time.
        let end = sender.now + Span::from_secs(5);
        sender.echo_until(of, rtt, end);
        let (target, shortest) = (sender.source.observe().limiting, sender.source.shortest());
        assert_eq!(target, Some(receiver_id(of)));
        assert!(
            shortest.is_some_and(|shortest| shortest >= rtt && shortest < rtt + Span::from_millis(2)),
            "{shortest:?}"
        );
    }
}

#[test]
fn rate_halves_at_growing_intervals_without_acknowledgements() {
    let mut sender = Sender::new(steady());
    sender.echo_until(1, RTT, at(20.0));
    assert_eq!(sender.cuts(), 0);
    let mut cuts = Vec::new();
    while sender.now < at(40.0) {
        let before = sender.cuts();
        sender.run_until(sender.now + Span::from_millis(5));
        if sender.cuts() > before {
            cuts.push(sender.now.as_secs_f64());
        }
    }
    let gaps: Vec<f64> = cuts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(cuts[0] < 20.4 && gaps.len() >= 4, "{cuts:?}");
    assert!(gaps.windows(2).all(|pair| pair[1] > 1.5 * pair[0]), "{gaps:?}");
    sender.deliver(1, sender.sent.len() as u64, 0);
    let before = sender.cuts();
    sender.run_until(sender.now + Span::from_millis(150));
    assert_eq!(sender.cuts(), before, "the next acknowledgement ends it");
}

#[test]
fn acknowledgement_without_receiver_id_never_changes_the_target() {
    let mut sender = Sender::new(steady());
    sender.echo_until(1, RTT, at(2.0));
    let newest = sender.sent.len() as u64;
    let echo = Echo { seq: Seq(newest - 1), hold: Span::MAX };
    let content = ReportContent::Newest { echo, past_lost: Seq(newest - 2), of: None };
    sender.report(1, content);
    assert_eq!(sender.source.observe().limiting, Some(receiver_id(1)));
    assert_eq!(sender.cuts(), 1, "its loss counts");
}

/// A receiver driven by the test.
type Listener = Ear<Receiver>;

impl Listener {
    fn new(me: u64, config: &Config) -> Listener {
        let mut listener = Ear::by_hand(Receiver::new(receiver_id(me), config), Time::ZERO);
        listener.rng = Rng::new(3, me);
        listener
    }

    fn deliver(&mut self, seq: u64, mark: Mark) -> Vec<(u64, u64)> {
        self.now += Span::from_millis(5);
        let late = seq < self.seq;
        let lost = seq.saturating_sub(self.seq) as u32;
        self.seq = self.seq.max(seq + 1);
        newest(self.receive(
            &data(seq, self.now, mark),
            Arrival { size: 500, lost, excused: 0, marked: false, late },
        ))
    }

    fn reported_until(&mut self, end: Time) -> Vec<(u64, u64)> {
        newest(self.wait_until(end))
    }
}

/// For each acknowledgement, returns the newest packet, and the number of the highest lost packet plus one.
fn newest(reports: Vec<ReportContent>) -> Vec<(u64, u64)> {
    let seen = reports.into_iter().filter_map(|content| match content {
        ReportContent::Newest { echo, past_lost, .. } => Some((echo.seq.0, past_lost.0)),
        _ => None,
    });
    seen.collect()
}

#[test]
fn each_acknowledgement_states_the_highest_lost_packet() {
    let mut listener = Listener::new(1, &Config::published());
    let received = |listener: &mut Listener, seq| listener.deliver(seq, Mark::TARGET);
    assert_eq!(received(&mut listener, 0), [(0, 0)]);
    assert_eq!(received(&mut listener, 1), [(1, 0)]);
    assert_eq!(received(&mut listener, 5), [(5, 5)], "2, 3 and 4 are lost: the packet behind 4");
    assert_eq!(received(&mut listener, 6), [(6, 5)]);
    assert_eq!(received(&mut listener, 3), [], "a late one is not the newest");
    assert_eq!(received(&mut listener, 8), [(8, 8)]);
    assert_eq!(received(&mut listener, 300), [(300, 300)], "however many are missing");
}

fn few(id: u64, since_cut: u16) -> Mark {
    Mark::Target { id: short(id), since_cut, rtt_max: 0.05, every: 1.0 }
}

#[test]
fn only_the_target_acknowledges_all_packets_under_suppression() {
    let config = Config { ack_every: 1, ..Config::transport(500) };
    let (mut target, mut other) = (Listener::new(1, &config), Listener::new(2, &config));
    let (mut of_target, mut of_other) = (0, 0);
    for seq in 0..2000 {
        let until = target.now + Span::from_millis(5);
        of_other += other.reported_until(until - Span::from_millis(5)).len();
        of_target += target.deliver(seq, few(1, u16::MAX)).len();
        of_other += other.deliver(seq, few(1, u16::MAX)).len();
    }
    assert_eq!(of_target, 2000);
    assert!((6..16).contains(&of_other), "about once a second of ten: {of_other}");
}

#[test]
fn loss_already_answered_by_a_cut_is_not_reported() {
    let config = Config::transport(500);
    let reports_cut = |cut_passes: bool| {
        let mut listener = Listener::new(2, &config);
        (0..10).for_each(|seq| _ = listener.deliver(seq, few(1, u16::MAX)));
        listener.deliver(12, few(1, u16::MAX));
        // The next packet states whether a cut has answered all losses of earlier packets.
        listener.deliver(13, few(1, if cut_passes { 0 } else { u16::MAX }));
        let reported = listener.reported_until(listener.now + Span::from_millis(100));
        reported.iter().any(|(_, lost)| *lost == 12)
    };
    assert!(reports_cut(false) && !reports_cut(true));
}

/// The aggregates of a designated receiver.
#[test]
fn a_designated_receiver_forwards_the_minimum_of_its_subtree() {
    let config = Config::published();
    let mut agent = Ear::by_hand(designated::Designated::new(receiver_id(9), &config), at(1.0));
    let child = |of: u64, newest: u64, lost: u64| {
        let echo = Echo { seq: Seq(newest), hold: Span::ZERO };
        let content = ReportContent::Newest { echo, past_lost: Seq(lost), of: short(of) };
        Report { from: receiver_id(of), layer: Layer(0), content }
    };
    let passed = |effects: Vec<Effect>| -> Vec<(u64, u64, u64, Option<ShortId>)> {
        let all = effects.into_iter().map(|effect| match effect {
            Effect::Report(Report {
                from, content: ReportContent::Newest { echo, past_lost, of }, ..
            }) => (from.get(), echo.seq.0, past_lost.0, of),
            other => panic!("{other:?}"),
        });
        all.collect()
    };
    let mut alone = Vec::new();
    for seq in 0..6 {
        agent.now += Span::from_millis(10);
        let (data, arrival) =
            (data(seq, agent.now, Mark::TARGET), Arrival { size: 500, ..Arrival::default() });
        alone = passed(agent.call(|agent, cx| agent.on_data(&data, Layer(0), arrival, cx)));
    }
    assert_eq!(alone.last(), Some(&(9, 5, 0, short(9))), "alone it speaks for itself");
    let mut reports = |report| passed(agent.call(|agent, cx| agent.on_report(&report, cx)));
    assert_eq!(reports(child(1, 3, 0)), [(9, 3, 0, short(1))]);
    assert_eq!(reports(child(2, 5, 4)), [(9, 3, 4, short(1))], "a loss is news");
    assert_eq!(reports(child(2, 5, 4)), [], "once");
}

fn paths(count: usize, path: Path) -> Vec<Path> {
    vec![path; count]
}

fn scheme(options: &str) -> Scheme {
    format!("raccoom,preset=published,law=steady,{options}").parse().expect("valid")
}

/// The queue is between alpha and beta, and the link is used.
#[test]
fn single_session_fills_the_link_and_holds_the_wanted_queue() {
    let path = Path { rate: Rate::from_mbps(0.5), rtt: Span::from_millis(60), buffer: 50_000 };
    let mut star = Star::new(&scheme("table=64"), 500, &paths(1, path), 1);
    star.run_until(at(60.0));
    let before = star.leaves[0].bytes;
    star.run_until(at(120.0));
    let used = (star.leaves[0].bytes - before) as f64 * 8.0 / 60.0 / 0.5e6;
    let rtt = star.source.observe().rtt.as_secs_f64();
    let queued = (rtt - 0.06) * 0.5e6 / 4000.0;
    assert!(used > 0.98, "{used}");
    assert!((2.0..=6.0).contains(&queued), "{queued} packets");
    assert_eq!(star.source.observe().cuts, 0);
}

#[test]
fn the_slowest_receiver_of_a_star_sets_the_rate() {
    let path = |mbps| Path { rate: Rate::from_mbps(mbps), rtt: Span::from_millis(60), buffer: 20_000 };
    for options in ["table=64", "answers=few"] {
        let paths = [path(2.0), path(0.3), path(1.0), path(0.6)];
        let mut star = Star::new(&scheme(options), 500, &paths, 1);
        star.source.control(SourceControl::Members(4), at(0.0));
        star.run_until(at(60.0));
        let before = star.leaves[1].bytes;
        star.run_until(at(120.0));
        let used = (star.leaves[1].bytes - before) as f64 * 8.0 / 60.0 / 0.3e6;
        assert!((0.85..1.01).contains(&used), "{options}: {used}");
        assert_eq!(star.source.observe().limiting, Some(receiver_id(2)), "{options}");
    }
}

#[test]
fn suppression_limits_the_reports_of_a_large_group() {
    let path = Path { rate: Rate::from_mbps(2.0), rtt: Span::from_millis(40), buffer: 60_000 };
    let reports = |count: usize| {
        let mut star = Star::new(&"raccoom".parse().expect("a scheme"), 1400, &paths(count, path), 1);
        star.source.control(SourceControl::Members(count), at(0.0));
        star.run_until(at(30.0));
        star.leaves.iter().map(|leaf| leaf.reports).sum::<u32>() - 120 * count as u32
    };
    let (few, many) = (reports(2), reports(200));
    assert!(many < few + 30 * 80, "{few} and {many}, beside signs of life");
}

#[test]
fn packets_without_a_mark_are_acknowledged() {
    let mut listener = Listener::new(1, &Config::transport(1400));
    assert_eq!(listener.deliver(0, Mark::None).len(), 1);
    assert_eq!(ReceiverId::from(short(1).expect("small")), receiver_id(1));
}
