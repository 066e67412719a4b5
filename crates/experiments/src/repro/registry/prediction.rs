//! Paper 002, figures 5.3, 5.4 and 5.7: the accuracy with which PAQM predicts the traffic of a bottleneck, and the drops that
//! follow from a prediction. A simulated run records the arrivals at the bottleneck's queue. A second instance of PAQM receives
//! these arrivals interval by interval, and its predictions are recorded.

use super::{Calculated, Declared};
use crate::analysis::self_similar::fgn;
use crate::analysis::self_similar::hurst::{self, Method};
use crate::plot::{Axis, Dot, Figure, Joined, Layer, Panel};
use crate::repro::Tolerance;
use faircast_aqm::paqm::{Config, Paqm};
use faircast_aqm::{Discipline as _, Ecn, LinkSpec, Offer, QueueSpec};
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};
use faircast_sim::{
    ApplicationData, Law, LinkSample, Network, NodeId, Options, UnicastProtocol, UnicastSpec, Watch,
};
use faircast_unicast::Protocol;

/// Source of the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// On times and off times with a Pareto distribution of shape 1.5 and means of half a second.
    OnOff,
    /// Paper gap: the paper's "real network traffic traces" are not named. Instead, each TCP flow writes fractional Gaussian
    /// noise with H = 0.65, one value every 0.1 s. Together the flows write as much as the link can carry.
    Trace,
}

/// Maximum number of runs for numbers of connections without a printed value.
const FEW_RUNS: usize = 2;
const SECONDS: f64 = 40.0;
/// Time in seconds before which intervals are ignored.
const WARM_UP: f64 = 10.0;
const INTERVAL: Span = Span::from_millis(20);

fn link(mbps: f64, delay: Span, queue: QueueSpec) -> LinkSpec {
    LinkSpec::new(Rate::from_mbps(mbps), delay, queue)
}

/// Runs `connections` TCP flows over a bottleneck of 20 Mbit/s. Returns a sample of the bottleneck for each interval.
fn samples(config: Config, source: Source, connections: u32, seed: u64) -> Vec<LinkSample> {
    let mut net = Network::new(seed);
    let mut rng = Rng::new(seed, 5);
    let (left, right) = (net.node(), net.node());
    let way = Span::from_millis(20);
    let (bottleneck, _) = net.duplex(
        left,
        right,
        link(20.0, way, QueueSpec::Paqm(config)),
        link(20.0, way, QueueSpec::UNLIMITED),
    );
    net.probe_link(bottleneck, INTERVAL);
    for _ in 0..connections {
        let access = Span::from_secs_f64(0.005 + 0.035 * rng.unit());
        let mut host = |router: NodeId, delay| {
            let host = net.node();
            net.duplex(
                host,
                router,
                link(100.0, delay, QueueSpec::UNLIMITED),
                link(100.0, delay, QueueSpec::UNLIMITED),
            );
            host
        };
        let (from, to) = (host(left, access), host(right, Span::from_millis(1)));
        let supply = match source {
            Source::OnOff => {
                let law = Law::Pareto { mean: 0.5, shape: 1.5 };
                ApplicationData::OnOff { on: law, off: law }
            }
            Source::Trace => {
                // Mean number of packets that a flow writes in a tenth of a second. The standard deviation equals this mean.
                let mean = 250.0 / f64::from(connections);
                let load = fgn::load(0.65, (mean, mean), 512, &mut rng);
                let mut sum = 0.0;
                let entry = |(place, packets): (usize, f64)| {
                    sum += packets;
                    (Span::from_millis(100) * place as u64, sum as u32)
                };
                ApplicationData::Trace(net.trace(load.into_iter().enumerate().map(entry).collect()))
            }
        };
        let protocol: Protocol = "tcp-reno,preset=ns2001".parse().expect("a protocol of the catalogue");
        net.unicast(UnicastSpec {
            protocol: UnicastProtocol::Controlled(protocol),
            packet_size: 1000,
            ack_size: 40,
            from,
            to,
            start: Time::from_secs_f64(5.0 * rng.unit()),
            stop: Time::NEVER,
            supply,
        });
    }
    let until = Time::from_secs_f64(SECONDS);
    let options =
        Options { until, bin: Span::MAX, sample: Span::MAX, watch: Watch::First(0), ..Options::default() };
    let mut outcome = net.run(&options).expect("the network is well formed");
    std::mem::take(&mut outcome.links[bottleneck.0 as usize].samples)
}

/// The arrivals in an interval, their prediction, the discipline's drops, and the discipline's drop probability.
#[derive(Debug, Clone, Copy)]
struct IntervalRecord {
    at: f64,
    came: f64,
    predicted: f64,
    dropped: f64,
    probability: f64,
    /// Packets that waited when the drop probability was computed.
    waiting: f64,
}

fn watched(config: Config, samples: &[LinkSample]) -> Vec<IntervalRecord> {
    let mut paqm = Paqm::new(config, Rate::from_mbps(20.0));
    let mut rng = Rng::new(1, 1);
    let mut all = Vec::new();
    let mut waiting = 0;
    for pair in samples.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        let came = after.counts.offered - before.counts.offered;
        let dropped = after.counts.early - before.counts.early;
        all.push(IntervalRecord {
            at: after.at.as_secs_f64(),
            came: came as f64,
            predicted: paqm.predicted().0,
            dropped: dropped as f64,
            probability: paqm.probability(),
            waiting: f64::from(waiting),
        });
        let offer = |waiting| Offer {
            now: after.at,
            size: 1000,
            flow: 0,
            ecn: Ecn::NotEct,
            waiting,
            waiting_bytes: u64::from(waiting) * 1000,
            in_transmission: 1000,
            idle_since: None,
        };
        (0..came).for_each(|_| _ = paqm.on_arrival(&offer(0), &mut rng));
        paqm.on_timer(&offer(after.waiting));
        waiting = after.waiting;
    }
    all.retain(|seen| seen.at > WARM_UP);
    all
}

fn error(seen: &[IntervalRecord]) -> f64 {
    hurst::estimation_error(seen.iter().map(|seen| (seen.predicted, seen.came)))
}

fn exponent(seen: &[IntervalRecord]) -> f64 {
    let series: Vec<f64> = seen.iter().map(|seen| seen.came).collect();
    hurst::estimate(&series, Method::Wavelet).map_or(f64::NAN, |estimate| estimate.hurst)
}

fn runs(source: Source, connections: u32, seeds: &[u64]) -> Vec<Vec<IntervalRecord>> {
    let config = Config::default();
    let count = if connections == 60 { seeds.len() } else { FEW_RUNS };
    let run = |seed: &u64| watched(config, &samples(config, source, connections, *seed));
    seeds.iter().take(count).map(run).collect()
}

/// Claims about figures 5.3 and 5.4.
pub(super) const FIG_5_3: &[Declared] = &[
    Declared::new(
        "on-off, 60 connections: mean error over mean traffic",
        Some(0.08),
        Tolerance::Relative(0.25),
    ),
    Declared::new(
        "on-off, 60 connections: H by wavelets",
        Some(0.75),
        Tolerance::Between(Some(0.65), Some(0.85)),
    ),
    Declared::new(
        "on-off, 20 connections: mean error over mean traffic",
        None,
        Tolerance::Between(None, Some(0.2)),
    ),
];

/// Paper 002, figures 5.3 and 5.4.
pub(super) fn fig_5_3(seeds: &[u64]) -> Calculated {
    let counts = [4, 10, 20, 60, 100];
    let sources = [(Source::OnOff, "on-off"), (Source::Trace, "traces")];
    let all = sources.map(|(source, _)| counts.map(|count| runs(source, count, seeds)));
    let of = |source: usize, count: usize, value: fn(&[IntervalRecord]) -> f64| -> Vec<f64> {
        all[source][count].iter().map(|seen| value(seen)).collect()
    };
    let values = vec![of(0, 3, error), of(0, 3, exponent), of(0, 2, error)];
    let first = |source: usize| {
        let seen: Vec<&IntervalRecord> = all[source][3][0].iter().take(250).collect();
        let line =
            |value: fn(&IntervalRecord) -> f64| seen.iter().map(|seen| (seen.at, value(seen))).collect();
        vec![
            Layer::line("arrived", 0, line(|seen| seen.came)),
            Layer::line("predicted", 1, line(|seen| seen.predicted)),
        ]
    };
    let time = |title: &str, source| Panel {
        title: title.into(),
        x: Axis::new("time (s)"),
        y: Axis::new("packets in 20 ms").from(0.0),
        layers: first(source),
    };
    let over_counts = |title: &str, label: &str, value: fn(&[IntervalRecord]) -> f64| Panel {
        title: title.into(),
        x: Axis::new("connections").from(0.0),
        y: Axis::new(label).from(0.0),
        layers: sources
            .iter()
            .enumerate()
            .map(|(source, (_, name))| {
                Layer::dots(
                    *name,
                    source,
                    (0..counts.len()).map(|count| Dot {
                        x: f64::from(counts[count]),
                        y: crate::stats::mean(&of(source, count, value)),
                        interval: None,
                    }),
                )
            })
            .collect(),
    };
    let panels = vec![
        time("on-off, 60 connections", 0),
        time("traces, 60 connections", 1),
        over_counts("prediction error", "mean error over mean traffic", error),
        over_counts("Hurst parameter", "H by wavelets", exponent),
    ];
    let figure = Figure::new(
        "Arrivals at a bottleneck, and PAQM's prediction",
        "20 Mbit/s, intervals of 20 ms; five seconds of one run, and means over runs.",
        panels,
    )
    .in_columns(2)
    .with_own_ranges();
    Calculated { values, figures: vec![("prediction", figure)] }
}

const SURFACE: &str = "the probabilities of a run lie on the surface";
/// Claims about figure 5.7.
pub(super) const FIG_5_7: &[Declared] = &[
    Declared::new("dropped packets over the drops by the surface", Some(1.0), Tolerance::Relative(0.05))
        .of(SURFACE),
    Declared::new(
        "dropped packets over the drops by the surface, probability of 0.02 to 0.2",
        Some(1.0),
        Tolerance::Relative(0.1),
    )
    .of(SURFACE),
    Declared::new(
        "share of the intervals below C + Q_opt with a probability of zero",
        None,
        Tolerance::Between(Some(0.9), None),
    )
    .of(SURFACE),
];

/// Paper 002, figure 5.7, with the settings of figure 5.6: the capacity per interval is half of the buffer, and the target is 0.6
/// of the buffer.
pub(super) fn fig_5_7(seeds: &[u64]) -> Calculated {
    let config = Config { target: 60.0, ..Config::default() };
    let all: Vec<Vec<IntervalRecord>> =
        seeds.iter().map(|seed| watched(config, &samples(config, Source::OnOff, 60, *seed))).collect();
    let share = |low: f64, high: f64| -> Vec<f64> {
        let of_run = |seen: &Vec<IntervalRecord>| {
            let within = seen.iter().filter(|seen| (low..=high).contains(&seen.probability));
            let (dropped, expected) = within.fold((0.0, 0.0), |(dropped, expected), seen| {
                (dropped + seen.dropped, expected + seen.probability * seen.came)
            });
            dropped / expected
        };
        all.iter().map(of_run).collect()
    };
    let concave = |seen: &Vec<IntervalRecord>| {
        let none = seen
            .iter()
            .filter(|seen| seen.waiting + seen.predicted <= 110.0 && seen.probability == 0.0)
            .count();
        let below = seen.iter().filter(|seen| seen.waiting + seen.predicted <= 110.0).count();
        none as f64 / below as f64
    };
    let values = vec![share(0.0, 1.0), share(0.02, 0.2), all.iter().map(concave).collect()];
    let points = |low: f64, high: f64| {
        let within = move |seen: &&IntervalRecord| (low..high).contains(&seen.predicted);
        let dots = all[0].iter().filter(within).map(|seen| Dot {
            x: seen.waiting,
            y: seen.probability,
            interval: None,
        });
        dots.take(600).collect()
    };
    let ranges = [(30.0, 45.0), (45.0, 55.0), (55.0, 70.0)];
    let layers = ranges.iter().enumerate().map(|(colour, &(low, high))| Layer::Dots {
        name: format!("{low} to {high} predicted"),
        colour: crate::plot::Colour::Series(colour),
        points: points(low, high),
        joined: Joined::No,
    });
    let panel = Panel {
        title: String::new(),
        x: Axis::new("queue (packets)").from(0.0),
        y: Axis::new("probability").from(0.0),
        layers: layers.collect(),
    };
    let figure = Figure::new(
        "Drop probability of PAQM in a run",
        "60 on-off connections; buffer of 100 packets, capacity of 50 packets per interval, optimum of 60 packets.",
        vec![panel],
    )
    .with_own_ranges();
    Calculated { values, figures: vec![("scatter", figure)] }
}
