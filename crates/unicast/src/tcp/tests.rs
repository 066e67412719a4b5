//! Comparison with ns-2.35 and with the standards.

use crate::pipe::{Fate, Pipe};
use crate::tcp::{self, Config, Reduced, Reduction, Variant};
use crate::{Ack, Feedback, Protocol, Segment, SegmentFlags, Sender as _, SenderView, Sink as _};
use faircast_core::node::{Cx, Departure, Effects};
use faircast_core::rate::formula::Path;
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};

mod marks;

fn protocol(name: &str) -> Protocol {
    name.parse().expect("a protocol of the catalogue")
}

/// A run and its results in ns-2.35. The run: protocol, our random seed, maximum number of waiting packets. The results: number
/// of packets acknowledged, dropped, and dropped from 20 s on; number of window cuts, timeouts, and packets sent again; mean
/// window in packets from 20 s on.
type Row = (&'static str, u64, usize, u64, u64, u64, u64, u64, u64, f64);

/// The clock ticks every 0.1 s. The time between the start of the connection and the next tick determines whether the first
/// recovery ends with a timeout, in ns-2 and in this crate. With this seed, that time is the same as by default in ns-2.
const OTHER_PHASE: u64 = 7;

/// Results of one flow in 200 s over a link of 1 Mbit/s with a delay of 20 ms and a drop-tail queue.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("tcp-tahoe", 1, 49, 24711, 74, 17, 20, 1, 131, 41.441),
    ("tcp-reno", 1, 49, 24922, 75, 18, 21, 1, 133, 43.6036),
    ("tcp-newreno", 1, 49, 24922, 75, 18, 21, 1, 133, 43.6036),
    ("tcp-sack", 1, 49, 24919, 75, 18, 21, 1, 132, 43.5709),
    ("tcp-vegas", 1, 49, 24978, 0, 0, 0, 0, 0, 8.5),
    ("tcp-tahoe,preset=ns2001", OTHER_PHASE, 49, 24700, 74, 17, 20, 1, 129, 41.5079),
    ("tcp-reno,preset=ns2001", OTHER_PHASE, 49, 24916, 75, 18, 21, 1, 131, 43.4847),
    ("tcp-sack,preset=ns2001", OTHER_PHASE, 49, 24916, 75, 18, 21, 1, 130, 43.4843),
    ("tcp-vegas,preset=ns2001", 1, 49, 24972, 0, 0, 0, 0, 0, 7.0),
    ("tcp-reno,delack", 1, 49, 24831, 37, 9, 11, 1, 103, 43.8055),
    ("tcp-newreno,delack", 1, 49, 24907, 37, 9, 11, 1, 104, 43.7954),
    ("tcp-vegas,delack", 1, 49, 24956, 0, 0, 0, 0, 0, 8.74045),
    ("tcp-reno", 1, 9, 24928, 216, 181, 202, 1, 231, 12.6857),
    ("tcp-newreno", 1, 9, 24944, 216, 181, 202, 1, 234, 12.6857),
    ("tcp-sack", 1, 9, 24961, 216, 180, 201, 0, 216, 12.759),
];

/// Returns four results of a run: the sender's counts, number of drops, number of drops from 20 s on, and mean window from 20 s
/// on.
fn measure(name: &str, seed: u64, waiting: usize) -> (SenderView, u64, u64, f64) {
    let mut pipe = Pipe::with_seed(protocol(name), Rate::from_mbps(1.0), Span::from_millis(20), seed);
    pipe.waiting_limit = waiting;
    pipe.run_until(Time::from_secs_f64(20.0));
    let early = pipe.drops;
    let (mut sum, mut count) = (0.0, 0);
    pipe.run_sampled(Time::from_secs_f64(200.0), Span::from_millis(50), |pipe| {
        sum += pipe.sender.observe().window;
        count += 1;
    });
    (pipe.sender.observe(), pipe.drops, pipe.drops - early, sum / f64::from(count))
}

#[test]
fn one_flow_behaves_as_in_ns_2_35() {
    for &(name, seed, waiting, acked, drops, late, cuts, timeouts, again, window) in ROWS {
        let (view, our_drops, our_late, our_window) = measure(name, seed, waiting);
        // ns-2 counts the SYN among the packets.
        assert!(view.acked.abs_diff(acked) <= 4, "{name}: {} of {acked} acknowledged", view.acked);
        let ours = (our_drops, our_late, view.cuts, view.timeouts);
        assert_eq!(ours, (drops, late, cuts, timeouts), "{name}: drops, late ones, cuts, timeouts");
        assert!(view.again.abs_diff(again) <= 1, "{name}: {} of {again} sent again", view.again);
        assert!((our_window / window - 1.0).abs() < 1e-3, "{name}: {our_window} against {window}");
    }
}

/// Runs of ns-2.35 over a link of 10 Mbit/s with a delay of 50 ms; the receiver's window is 8 packets. Fields: protocol; packets
/// that are lost once; the packets sent after packet 26, in order; time in seconds at which the last of these packets was sent.
#[rustfmt::skip]
const LOSSES: &[(&str, &[u32], &[u32], f64)] = &[
    ("tcp-tahoe,window=8", &[19], &[19, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41], 1.0100),
    ("tcp-tahoe,window=8", &[19, 21], &[19, 21, 22, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39], 1.0108),
    ("tcp-tahoe,window=8", &[19, 20, 23], &[19, 20, 21, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35], 1.0124),
    ("tcp-reno,window=8", &[19], &[19, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41], 0.9099),
    ("tcp-reno,window=8", &[19, 21], &[19, 21, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40], 1.4116),
    ("tcp-reno,window=8", &[19, 20, 23], &[19, 20, 23, 24, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38], 1.4124),
    ("tcp-newreno,window=8", &[19], &[19, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41], 0.9099),
    ("tcp-newreno,window=8", &[19, 21], &[19, 21, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40], 1.0100),
    ("tcp-newreno,window=8", &[19, 20, 23], &[19, 20, 27, 23, 28, 29, 30, 23, 28, 29, 30, 31, 32, 33, 34, 35], 1.0092),
    ("tcp-sack,window=8", &[19], &[19, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41], 1.0084),
    ("tcp-sack,window=8", &[19, 21], &[19, 21, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40], 1.0084),
    ("tcp-sack,window=8", &[19, 20, 23], &[19, 20, 23, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39], 1.0092),
];

#[test]
fn losses_in_one_window_are_repaired_as_in_ns_2_35() {
    for &(name, lost, expected, last) in LOSSES {
        let mut pipe = Pipe::new(protocol(name), Rate::from_mbps(10.0), Span::from_millis(50));
        pipe.trace = Some(Vec::new());
        pipe.lose_once(lost);
        pipe.run_until(Time::from_secs_f64(2.0));
        let trace = pipe.trace.take().expect("it was asked for");
        let sent: Vec<u32> = trace.iter().map(|(_, seq)| *seq).collect();
        assert_eq!(sent[..27], (0..27).collect::<Vec<_>>(), "{name} {lost:?}");
        assert_eq!(sent[27..27 + expected.len()], *expected, "{name} {lost:?}");
        let at = trace[26 + expected.len()].0.as_secs_f64();
        assert!((at - last).abs() < 1e-3, "{name} {lost:?}: {at} against {last}");
    }
}

/// Runs of ns-2.35 over a link of 100 Mbit/s with a delay of 50 ms. Fields: protocol; probability of a random loss (with `ecn`:
/// of a random mark); number of packets sent in 2000 s, as the mean of two runs.
#[rustfmt::skip]
const RANDOM: &[(&str, f64, f64)] = &[
    ("tcp-reno", 0.05, 81_139.0), ("tcp-newreno", 0.05, 93_352.0), ("tcp-sack", 0.05, 89_254.0), ("tcp-vegas", 0.05, 112_913.0),
    ("tcp-reno", 0.1, 51_519.0), ("tcp-newreno", 0.1, 58_588.0), ("tcp-sack", 0.1, 53_692.0),
    ("tcp-reno,ecn", 0.01, 237_742.0), ("tcp-reno,ecn", 0.05, 97_817.0), ("tcp-sack,ecn", 0.2, 40_755.0),
];

#[test]
fn random_losses_and_marks_give_the_rate_of_ns_2_35() {
    for &(name, probability, theirs) in RANDOM {
        let sent = (1..3).map(|seed| {
            let mut pipe =
                Pipe::with_seed(protocol(name), Rate::from_mbps(100.0), Span::from_millis(50), seed);
            let fate = if name.ends_with("ecn") { Fate::Marked } else { Fate::Dropped };
            pipe.judge = Box::new(move |_, _, rng| if rng.chance(probability) { fate } else { Fate::Passes });
            pipe.run_until(Time::from_secs_f64(2000.0));
            pipe.sender.observe().sent as f64
        });
        let ours = sent.sum::<f64>() / 2.0;
        assert!((ours / theirs - 1.0).abs() < 0.03, "{name} at {probability}: {ours} against {theirs}");
    }
}

#[test]
fn sack_by_rfc_6675_repairs_all_losses_within_a_round_trip() {
    let mut pipe = Pipe::new(protocol("tcp-sack,preset=rfc"), Rate::from_mbps(10.0), Span::from_millis(50));
    pipe.trace = Some(Vec::new());
    pipe.lose_once(&[100, 101, 105, 106, 107]);
    pipe.run_until(Time::from_secs_f64(3.0));
    let view = pipe.sender.observe();
    assert_eq!((view.cuts, view.timeouts, view.again), (1, 0, 5));
    let trace = pipe.trace.take().expect("it was asked for");
    let again = |seq: u32| trace.iter().filter(|(_, other)| *other == seq).nth(1).map(|(at, _)| *at);
    let (first, last) = (again(100).expect("sent again"), again(107).expect("sent again"));
    assert!(last.since(first) < Span::from_millis(100), "all within a round trip");
}

/// Returns the longest silence of the sender in the second after a retransmission, and the number of packets acknowledged in ten
/// seconds. One packet is lost while hundreds of packets wait in the queue.
fn after_a_loss(name: &str) -> (Span, u64) {
    let mut pipe = Pipe::new(protocol(name), Rate::from_mbps(10.0), Span::from_millis(50));
    pipe.trace = Some(Vec::new());
    pipe.lose_once(&[500]);
    pipe.run_until(Time::from_secs_f64(10.0));
    let view = pipe.sender.observe();
    assert_eq!((view.cuts, view.timeouts, view.again), (1, 0, 1), "{name}");
    let trace = pipe.trace.take().expect("it was asked for");
    let again = trace.iter().filter(|(_, seq)| *seq == 500).nth(1).expect("it is sent again").0;
    let round = trace.iter().filter(|(at, _)| *at >= again && at.since(again) < Span::from_secs(1));
    let times: Vec<Time> = round.map(|(at, _)| *at).collect();
    let silence = times.windows(2).map(|two| two[1].since(two[0])).max().expect("some leave");
    (silence, view.acked)
}

#[test]
fn proportional_rate_reduction_never_stops_sending() {
    let (silent, at_once) = after_a_loss("tcp-sack,preset=rfc");
    let (quiet, in_proportion) = after_a_loss("tcp-sack,preset=rfc,shrinking=proportional");
    println!("at once: {silent}, {at_once}; in proportion: {quiet}, {in_proportion}");
    // The transmission of a packet takes 0.8 ms. While the window is reduced by half in proportion to arrivals, one packet is
    // sent for every two arrivals.
    assert!(silent > Span::from_millis(100) && quiet < Span::from_millis(4), "{quiet} and {silent}");
    assert!((in_proportion as f64 / at_once as f64 - 1.0).abs() < 0.01, "{in_proportion} and {at_once}");
}

#[test]
fn sack_by_rfc_6675_repairs_a_lost_last_packet_without_timeout() {
    let mut pipe = Pipe::new(protocol("tcp-sack,preset=rfc"), Rate::from_mbps(10.0), Span::from_millis(50));
    pipe.sender.supply(40, Time::ZERO);
    pipe.lose_once(&[30, 39]);
    pipe.run_until(Time::from_secs_f64(1.0));
    let view = pipe.sender.observe();
    assert_eq!((view.acked, view.timeouts, view.again), (40, 0, 2));
}

#[test]
fn reno_rate_matches_the_formula() {
    for loss in [0.005, 0.01, 0.02, 0.05] {
        let mut pipe = Pipe::new(protocol("tcp-reno"), Rate::from_mbps(1000.0), Span::from_millis(50));
        pipe.lose_at_random(loss);
        pipe.run_until(Time::from_secs_f64(4000.0));
        let measured = pipe.sender.observe().sent as f64 * 8000.0 / 4000.0;
        let wanted = Path::new(1000, Span::from_millis(100)).tcp_rate(loss).bps();
        assert!((measured / wanted - 1.0).abs() < 0.1, "loss {loss}: {measured} against {wanted}");
    }
}

#[test]
fn single_vegas_flow_queues_one_to_three_packets() {
    let mut pipe = Pipe::new(protocol("tcp-vegas"), Rate::from_mbps(1.0), Span::from_millis(20));
    pipe.run_until(Time::from_secs_f64(20.0));
    let mut seen = (usize::MAX, 0);
    pipe.run_sampled(Time::from_secs_f64(60.0), Span::from_millis(7), |pipe| {
        seen = (seen.0.min(pipe.queued()), seen.1.max(pipe.queued()));
    });
    assert!((1..=3).contains(&seen.0) && (1..=3).contains(&seen.1), "{seen:?}");
    assert_eq!(pipe.sender.observe().cuts, 0);
}

#[test]
fn mark_halves_the_window_without_retransmission() {
    for name in
        ["tcp-tahoe,ecn", "tcp-reno,ecn", "tcp-newreno,ecn", "tcp-sack,ecn", "tcp-sack,preset=rfc,ecn"]
    {
        let mut pipe = Pipe::new(protocol(name), Rate::from_mbps(10.0), Span::from_millis(50));
        pipe.judge = Box::new(|n, segment, _| {
            assert!(segment.flags.has(SegmentFlags::ECT));
            if (40..44).contains(&n) { Fate::Marked } else { Fate::Passes }
        });
        let (mut peak, mut low) = (0.0_f64, f64::MAX);
        pipe.run_sampled(Time::from_secs_f64(0.75), Span::from_millis(1), |pipe| {
            let window = pipe.sender.observe().window;
            peak = peak.max(window);
            low = if window < peak { low.min(window) } else { low };
        });
        let view = pipe.sender.observe();
        assert_eq!((view.cuts, view.again, view.timeouts), (1, 0, 0), "{name}");
        assert!((low / peak - 0.5).abs() < 0.02, "{name}: from {peak} to {low}");
    }
}

#[test]
fn receiver_echoes_a_mark_until_the_window_is_reduced() {
    let mut sink = tcp::Sink::new(&Config::ns235(Variant::Reno));
    let mut echoes = |seq: u32, marked: bool, flags: SegmentFlags| {
        let (mut rng, mut effects) = (Rng::new(1, 1), Effects::default());
        let mut cx = Cx { now: Time::ZERO, rng: &mut rng, effects: &mut effects };
        let segment = Segment { seq, flags, sent_at: Time::ZERO, rtt: Span::ZERO };
        matches!(sink.on_segment(&segment, marked, &mut cx), Some(Feedback::Ack(ack)) if ack.ece)
    };
    let (plain, cwr) = (SegmentFlags::ECT, SegmentFlags::ECT.with(SegmentFlags::CWR));
    let seen = [
        echoes(0, false, plain),
        echoes(1, true, plain),
        echoes(2, false, plain),
        echoes(3, false, cwr),
        echoes(4, true, cwr),
        echoes(5, false, plain),
    ];
    assert_eq!(seen, [false, true, true, false, true, true]);
}

#[test]
fn timeout_doubles_and_is_reset_by_an_acknowledgement() {
    let mut pipe =
        Pipe::new(protocol("tcp-reno,preset=rfc,window=1"), Rate::from_mbps(10.0), Span::from_millis(50));
    pipe.trace = Some(Vec::new());
    pipe.judge = Box::new(|n, _, _| if (10..14).contains(&n) { Fate::Dropped } else { Fate::Passes });
    pipe.run_until(Time::from_secs_f64(40.0));
    let trace = pipe.trace.take().expect("it was asked for");
    let (first, seq) = trace[10];
    let moments =
        trace.iter().filter(|(_, other)| *other == seq).map(|(at, _)| at.since(first).as_secs_f64());
    let moments: Vec<f64> = moments.collect();
    let gaps: Vec<f64> = moments.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps, [1.0, 2.0, 4.0, 8.0]);
    let view = pipe.sender.observe();
    assert_eq!((view.timeouts, view.again), (4, 4));
    // One packet is sent per round trip, except during the 15 s in which the sender waits for timeouts.
    assert!((230..250).contains(&view.acked), "{view:?}");
    assert_eq!(pipe.sender.deadline().since(pipe.now).as_nanos() / 200_000_000, 4, "1 s again");
}

/// Drops a packet, passes its retransmission, and drops the next packet. Returns the two times until a retransmission in seconds.
fn timeouts_of_two_packets(name: &str) -> Vec<f64> {
    let mut pipe = Pipe::new(protocol(name), Rate::from_mbps(10.0), Span::from_millis(50));
    pipe.trace = Some(Vec::new());
    pipe.judge = Box::new(|n, _, _| if n == 10 || n == 12 { Fate::Dropped } else { Fate::Passes });
    pipe.run_until(Time::from_secs_f64(20.0));
    let trace = pipe.trace.take().expect("it was asked for");
    let again = trace.windows(2).filter(|pair| pair[0].1 == pair[1].1);
    again.map(|pair| pair[1].0.since(pair[0].0).as_secs_f64()).collect()
}

#[test]
fn timestamp_of_a_retransmission_resets_the_timeout() {
    assert_eq!(timeouts_of_two_packets("tcp-sack,preset=rfc,window=1"), [1.0, 1.0]);
    // Without timestamps the acknowledgement of a retransmission is no sample (Karn), and the timeout stays doubled.
    let doubled = timeouts_of_two_packets("tcp-sack,min-rto=1,window=1");
    assert_eq!(doubled, [1.0, 2.0]);
}

#[test]
fn delayed_acknowledgements_halve_the_number_of_acks() {
    let count = |name: &str| {
        let mut pipe = Pipe::new(protocol(name), Rate::from_mbps(10.0), Span::from_millis(10));
        pipe.waiting_limit = 100;
        pipe.run_until(Time::from_secs_f64(20.0));
        (pipe.acks as f64 / pipe.sink.delivered() as f64, pipe.sink.delivered() > 20_000)
    };
    let (each, delayed) = (count("tcp-newreno"), count("tcp-newreno,delack"));
    assert!(each.0 > 0.99 && each.1, "{each:?}");
    assert!((0.5..0.52).contains(&delayed.0) && delayed.1, "{delayed:?}");
}

#[test]
fn ack_of_a_single_packet_is_sent_when_the_delay_ends() {
    let protocol = protocol("tcp-reno,delack=0.15,syn=off");
    let mut pipe = Pipe::new(protocol, Rate::from_mbps(10.0), Span::from_millis(10));
    pipe.sender.supply(4, Time::ZERO);
    pipe.run_until(Time::from_secs_f64(0.1));
    assert_eq!(pipe.acks, 2, "packet 0 at once, 1 and 2 together");
    pipe.run_until(Time::from_secs_f64(1.0));
    assert_eq!((pipe.acks, pipe.sender.observe().acked), (3, 4));
}

#[test]
fn first_sack_block_contains_the_newest_arrival() {
    let mut sink = tcp::Sink::new(&Config::ns235(Variant::Sack));
    let mut ack = |seq: u32| {
        let (mut rng, mut effects) = (Rng::new(1, 1), Effects::default());
        let mut cx = Cx { now: Time::ZERO, rng: &mut rng, effects: &mut effects };
        let segment = Segment { seq, flags: SegmentFlags::default(), sent_at: Time::ZERO, rtt: Span::ZERO };
        let Some(Feedback::Ack(Ack { next, blocks, .. })) = sink.on_segment(&segment, false, &mut cx) else {
            panic!("every packet is acknowledged")
        };
        (next, blocks)
    };
    assert_eq!(ack(0), (1, [(0, 0); 3]));
    assert_eq!(ack(2), (1, [(2, 3), (0, 0), (0, 0)]));
    assert_eq!(ack(4), (1, [(4, 5), (2, 3), (0, 0)]));
    assert_eq!(ack(8), (1, [(8, 9), (4, 5), (2, 3)]));
    assert_eq!(ack(3), (1, [(2, 5), (8, 9), (0, 0)]));
    assert_eq!(ack(3), (1, [(2, 5), (8, 9), (0, 0)]), "a duplicate");
    assert_eq!(ack(1), (5, [(8, 9), (0, 0), (0, 0)]));
    assert_eq!(ack(0), (5, [(8, 9), (0, 0), (0, 0)]), "an old packet");
}

#[test]
fn window_is_reset_to_the_restart_window_after_an_idle_time() {
    for (name, restart) in [("tcp-reno", 1.0), ("tcp-reno,preset=rfc", 3.0)] {
        let mut pipe = Pipe::new(protocol(name), Rate::from_mbps(10.0), Span::from_millis(50));
        pipe.sender.supply(60, Time::ZERO);
        pipe.run_until(Time::from_secs_f64(0.6));
        assert!(pipe.sender.observe().window > 8.0, "{name}");
        pipe.run_until(Time::from_secs_f64(4.0));
        let view = pipe.sender.observe();
        assert_eq!((view.acked, view.window, view.cuts, view.timeouts), (60, restart, 0, 0), "{name}");
        pipe.sender.supply(80, pipe.now);
        pipe.run_until(Time::from_secs_f64(5.0));
        assert_eq!(pipe.sender.observe().acked, 80, "{name}");
    }
}

#[test]
fn jitter_delays_each_burst_by_a_random_time() {
    let mut pipe =
        Pipe::new(protocol("tcp-reno,jitter=0.01"), Rate::from_mbps(1000.0), Span::from_millis(50));
    pipe.trace = Some(Vec::new());
    pipe.run_until(Time::from_secs_f64(5.0));
    let moments: Vec<Time> = pipe.trace.take().expect("it was asked for").iter().map(|(at, _)| *at).collect();
    // All packets of a burst are sent at the same moment, so the number of distinct moments is the number of bursts.
    let bursts = moments.windows(2).filter(|pair| pair[0] < pair[1]).count();
    assert!((50..1000).contains(&bursts), "{bursts} bursts of {} packets", moments.len());
    assert!(pipe.sender.observe().rtt >= Span::from_millis(90));
}

#[test]
fn lost_syn_is_sent_again() {
    let mut sender = tcp::Sender::new(Config::ns235(Variant::Reno));
    let (mut rng, mut effects) = (Rng::new(1, 1), Effects::default());
    let mut cx = Cx { now: Time::ZERO, rng: &mut rng, effects: &mut effects };
    sender.supply(10, cx.now);
    assert_eq!(sender.departure(), Departure::AfterReport, "not before it starts");
    sender.start(&mut cx);
    assert!(sender.on_departure(&mut cx).flags.has(SegmentFlags::SYN));
    assert_eq!((sender.departure(), sender.deadline()), (Departure::AfterReport, Time::from_secs_f64(3.0)));
    cx.now = Time::from_secs_f64(3.0);
    sender.on_deadline(&mut cx);
    assert!(sender.on_departure(&mut cx).flags.has(SegmentFlags::SYN));
    assert_eq!(sender.deadline(), Time::from_secs_f64(9.0));
    cx.now = Time::from_secs_f64(3.1);
    let ack = Ack { next: 0, echo: Time::ZERO, blocks: [(0, 0); 3], ece: false, syn: true };
    sender.on_feedback(&Feedback::Ack(ack), &mut cx);
    assert_eq!(sender.on_departure(&mut cx).seq, 0);
    assert_eq!(sender.departure(), Departure::AfterReport, "one packet after a lost SYN");
}

/// Returns by how many packets the window grows during two seconds of congestion avoidance with a round trip of 100 ms.
fn growth(options: &str) -> f64 {
    let name = format!("tcp-sack,preset=rfc,initial-window=10,delack=0.04{options}");
    let mut pipe = Pipe::new(protocol(&name), Rate::from_mbps(100.0), Span::from_millis(50));
    pipe.lose_once(&[40]);
    pipe.run_until(Time::from_secs_f64(2.0));
    let before = pipe.sender.observe();
    assert!(before.cuts == 1 && before.window > before.threshold, "{before:?}");
    pipe.run_until(Time::from_secs_f64(4.0));
    pipe.sender.observe().window - before.window
}

#[test]
fn delayed_acks_slow_window_growth_unless_packets_are_counted() {
    let (acks, packets) = (growth(""), growth(",counting=packets"));
    assert!((1.8..2.2).contains(&(packets / acks)), "{packets} against {acks}");
}

/// All variants with a fast recovery. Tahoe is excluded, because it reduces its window to one packet after every loss.
const RECOVERING: [&str; 5] =
    ["tcp-reno", "tcp-newreno", "tcp-sack", "tcp-sack,preset=rfc", "tcp-newreno,preset=rfc,ecn"];

#[test]
fn coordinator_cuts_a_window_at_most_once_per_window_of_data() {
    for name in RECOVERING.into_iter().chain(["tcp-tahoe", "tcp-vegas"]) {
        let mut pipe = Pipe::new(protocol(name), Rate::from_mbps(10.0), Span::from_millis(50));
        pipe.run_until(Time::from_secs_f64(0.75));
        let before = pipe.sender.observe();
        let half = pipe.coordinate(|sender, cx| {
            assert_eq!(sender.reduce(Reduction::Half, cx), Reduced::Done, "{name}");
            assert_eq!(sender.reduce(Reduction::Half, cx), Reduced::Already, "{name}");
            sender.window().packets()
        });
        assert!((half / before.window - 0.5).abs() < 0.1, "{name}: from {} to {half}", before.window);
        pipe.run_until(Time::from_secs_f64(1.5));
        let after = pipe.sender.observe();
        assert_eq!((after.cuts, after.again, after.timeouts), (before.cuts + 1, 0, 0), "{name}");
        let wanted = Reduction::To { window: 1e9, threshold: 4.0 };
        assert_eq!(pipe.coordinate(|sender, cx| sender.reduce(wanted, cx)), Reduced::Done, "{name}");
        let last = pipe.sender.observe();
        assert_eq!((last.window, last.threshold), (after.window, 4.0), "{name}: never larger");
    }
}

#[test]
fn loss_before_a_cut_by_the_coordinator_causes_no_second_cut() {
    for name in RECOVERING {
        let mut pipe = Pipe::new(protocol(name), Rate::from_mbps(10.0), Span::from_millis(50));
        pipe.lose_once(&[40]);
        while pipe.sender.observe().sent < 45 {
            let next = pipe.now + Span::from_millis(1);
            pipe.run_until(next);
        }
        assert_eq!(pipe.coordinate(|sender, cx| sender.reduce(Reduction::Half, cx)), Reduced::Done);
        pipe.run_until(Time::from_secs_f64(1.5));
        let view = pipe.sender.observe();
        assert_eq!((view.cuts, view.again, view.timeouts), (1, 1, 0), "{name}");
    }
}

#[test]
fn new_connection_starts_with_rtt_and_window_of_another() {
    for name in ["tcp-reno", "tcp-sack,preset=rfc", "tcp-newreno,syn=off"] {
        let mut old = Pipe::new(protocol(name), Rate::from_mbps(10.0), Span::from_millis(50));
        old.run_until(Time::from_secs_f64(1.0));
        let known = old.coordinate(|sender, _| sender.round_trip()).expect("it has samples");
        let mut new = Pipe::new(protocol(name), Rate::from_mbps(10.0), Span::from_millis(50));
        new.coordinate(|sender, cx| {
            assert_eq!(sender.round_trip(), None, "{name}");
            sender.set_round_trip(known);
            assert_eq!(sender.round_trip(), Some(known), "{name}");
            sender.set_window(12.5, 20.0, cx);
        });
        new.run_until(Time::from_secs_f64(0.1005)); // the SYN was answered, no data was
        let flight = new.coordinate(|sender, _| sender.flight_size());
        assert!((12..=13).contains(&flight), "{name}: {flight}");
        assert_eq!(new.sender.observe().threshold, 20.0, "{name}");
        new.coordinate(|sender, cx| sender.set_window(40.0, 20.0, cx));
        assert_eq!(new.coordinate(|sender, _| sender.flight_size()), 40, "{name}: at once");
        let timeout = new.sender.deadline().since(new.now);
        assert!(timeout < Span::from_secs(2), "{name}: {timeout:?}, not that of a new connection");
    }
}

#[test]
fn windows_set_by_a_coordinator_are_limited() {
    let mut pipe = Pipe::new(protocol("tcp-reno,window=30"), Rate::from_mbps(10.0), Span::from_millis(50));
    pipe.run_until(Time::from_secs_f64(1.0));
    for (window, threshold, expected) in
        [(1e9, 7.0, (30.0, 7.0)), (-3.0, -3.0, (1.0, 2.0)), (f64::NAN, f64::NAN, (1.0, 2.0))]
    {
        pipe.coordinate(|sender, cx| sender.set_window(window, threshold, cx));
        let view = pipe.sender.observe();
        assert_eq!((view.window, view.threshold), expected);
    }
}
