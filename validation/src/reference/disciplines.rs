//! Queue disciplines of ns-2 with flows of many round-trip times, and the common network of all sections of queues.json.

use super::reno_queues::timeouts;
use super::single_flow::Variant;
use super::{CUTS_FOR_MARKS, Failure, Spread, described_as, given, left, unknown};
use crate::case::{Case, Dumbbell, Given, Group, Net, Rule, Section};
use serde::Deserialize;
use std::collections::BTreeMap;

const TOPOLOGY: &str = "n sources -100 Mbit/s, ACC[i mod 20]- r0 -bw, 10.13 ms, the queue- r1 -100 Mbit/s, 1.07 ms- n sinks; way back the \
                        same, never drops; round-trip times 29.7-179 ms, none a multiple of the packet time";
const TCP: &str = "1000 B data, 40 B acknowledgements on the wire, no delayed acknowledgements, initial window 2, limited transmit, \
                   minimum timeout 0.2 s, tick 0.01 s, window_ 100000; SYN exchanged";
/// Delay of the bottleneck in the topology, ms.
pub(super) const BOTTLENECK_MS: f64 = 10.13;
pub(super) const SINKS_MS: f64 = 1.07;
/// Index of the delay that a single flow has.
const ALONE: usize = 9;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    topology: String,
    #[serde(rename = "ACC_ms")]
    access_ms: Vec<f64>,
    cmd: String,
    tcp: String,
    parameters: BTreeMap<String, String>,
    aggregates: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    queue: String,
    n: u32,
    variant: Variant,
    ecn: u8,
    bw_bps: f64,
    buf_pkts: u32,
    t0_s: f64,
    #[serde(rename = "T_s")]
    until_s: f64,
    qref_pkts: Option<f64>,
    a: Option<f64>,
    b: Option<f64>,
    w_hz: Option<f64>,
    n_seeds: u32,
    queue_mean_pkts: Spread,
    queue_sd_pkts: Spread,
    queue_p95_pkts: Spread,
    queue_max_pkts: Spread,
    queue_empty_frac: Spread,
    loss_rate: Spread,
    mark_rate: Spread,
    utilisation: Spread,
    goodput_bps: Spread,
    jain: Spread,
    timeouts_per_flow: Spread,
    cuts_per_flow: Spread,
    ecn_responses_per_flow: Spread,
    #[serde(rename = "share_1000B")]
    share_of_large: Option<Spread>,
}

/// Packet sizes of the flows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sizes {
    /// All flows send packets of 1000 bytes.
    One,
    /// Flows alternate between packets of 1000 and 500 bytes.
    Two,
}

/// A queue of the file: its name, its parameters as described in the file, its name in scenarios for a row, and the packet sizes
/// of its flows.
type Known = (&'static str, &'static str, fn(&Row) -> String, Sizes);

const QUEUES: &[Known] = &[
    (
        "DropTail",
        "limit buf_pkts means at most buf_pkts-1 waiting",
        |row| format!("droptail,{}", row.buf_pkts),
        Sizes::One,
    ),
    (
        "RED515hard",
        "min 5 max 15 w 0.002 max_p 0.1, not gentle, wait, packets, marks at any p (use_mark_p_ false)",
        |row| row.limited("red,min=5,max=15,w=0.002,p=0.1,abrupt,mark=1", 0),
        Sizes::One,
    ),
    (
        "RED515",
        "the same, gentle, use_mark_p_ true mark_p_ 0.1: drops ECN packets once p > 0.1",
        |row| row.limited("red,min=5,max=15,w=0.002,p=0.1,gentle,mark=0.1", 0),
        Sizes::One,
    ),
    (
        "RED2060",
        "min 20 max 60 w 0.002 max_p 0.1, gentle, packets, use_mark_p_ false",
        |row| row.limited("red,min=20,max=60,w=0.002,p=0.1,gentle,mark=1", 0),
        Sizes::One,
    ),
    (
        "ARED",
        "ns-2.35 automatic configuration (thresh_ 0 maxthresh_ 0 q_weight_ -1, target delay 5 ms), gentle, adaptive, packets, \
         use_mark_p_ true mark_p_ 0.1",
        |row| row.limited("red,auto,adaptive,mark=0.1", 0),
        Sizes::One,
    ),
    (
        "REDbytes",
        "bytes_ and queue_in_bytes_ true, mean_pktsize_ 500, min 20 max 60 (x 500 B), gentle, limit buf x 500 B; even flows send 1000 \
         B, odd flows 500 B packets; share_1000B = share of goodput of the even flows; queue in packets",
        |row| row.limited("red,bytes,mean=500,min=20,max=60,w=0.002,p=0.1,gentle,mark=1", 0),
        Sizes::Two,
    ),
    (
        "PIdef",
        "a 1.822e-5 b 1.816e-5 170 Hz, target qref_pkts: ns-2 defaults",
        |row| row.limited(&format!("pi,ns2{}", row.controller()), 0),
        Sizes::One,
    ),
    (
        "PIdesign",
        "a, b by the design rule for n flows, R = 0.25 s, C of the link, 170 Hz: z=2n/(R^2 C), w=min(z,1/R), K=w*|1+jwR|*4n^2/(RC)^3, \
         a=K/z+K/340, b=K/z-K/340",
        |row| row.limited(&format!("pi,ns2{}", row.controller()), 0),
        Sizes::One,
    ),
    (
        "REM",
        "gamma 0.001 phi 1.001 update 2 ms target 20 (pbo_): ns-2 defaults; marks at dequeue, drops at enqueue",
        // The queue in ns-2 holds one packet less than its buffer.
        |row| row.limited("rem,gamma=0.001,phi=1.001,update=2ms,target=20,marks=departure", 1),
        Sizes::One,
    ),
    (
        "Vq",
        "AVQ: gamma 0.98, ecnlim 0.8, buflim 1.0, bytes, alpha 0.15 fixed",
        |row| row.limited("avq,gamma=0.98,initial=0.8,buffer=1,alpha=0.15,order=ns2", 0),
        Sizes::One,
    ),
];

/// Returns the dumbbell of queues.json. With n groups, each group has every n-th delay.
pub(super) fn dumbbell(
    groups: Vec<Group>,
    access_ms: &[f64],
    mbps: f64,
    access_mbps: f64,
    queue: String,
) -> Dumbbell {
    let flows: u32 = groups.iter().map(|group| group.flows).sum();
    let delays: &[f64] = if flows == 1 { &access_ms[ALONE..=ALONE] } else { access_ms };
    let step = groups.len();
    let groups = groups.into_iter().enumerate().map(|(first, group)| Group {
        access_delays_ms: delays.iter().skip(first).step_by(step).copied().collect(),
        ..group
    });
    Dumbbell {
        groups: groups.collect(),
        mbps,
        delay_ms: BOTTLENECK_MS,
        queue,
        sample_ms: 5.0,
        access_mbps,
        access_delay_ms: SINKS_MS,
        starts_within_s: 5.0,
        steady: None,
    }
}

impl Table {
    pub fn read(&self, place: &str) -> Result<Section, Failure> {
        described_as(place, &self.topology, TOPOLOGY)?;
        described_as(&format!("{place}, tcp"), &self.tcp, TCP)?;
        let known = |name: &str| QUEUES.iter().any(|known| known.0 == name);
        super::with_delays_and_queues(place, &self.access_ms, self.parameters.keys(), known)?;
        let cases = self.aggregates.iter().enumerate().map(|(number, row)| self.case(place, number, row));
        Ok(Section {
            name: "Queues in ns-2",
            place: place.to_owned(),
            rows: self.aggregates.len(),
            described: vec![
                self.topology.clone(),
                self.tcp.clone(),
                super::pairs(&self.parameters),
                format!("Made by `{}`", self.cmd),
            ],
            cases: cases.collect::<Result<_, _>>()?,
        })
    }

    fn case(&self, place: &str, number: usize, row: &Row) -> Result<Case, Failure> {
        let here = format!("{place}, row {number}");
        let known = QUEUES.iter().find(|known| known.0 == row.queue);
        let Some((queue, text, written, sizes)) = known else {
            return Err(unknown(&here, format!("there is no reader for the queue {:?}", row.queue)));
        };
        let found = self.parameters.get(*queue).map_or("", String::as_str);
        described_as(&format!("{place}, parameters of {queue}"), found, text)?;
        let controlled = [row.qref_pkts, row.a, row.b, row.w_hz].iter().any(Option::is_some);
        if controlled != queue.starts_with("PI") || row.share_of_large.is_some() != (*sizes == Sizes::Two) {
            return Err(unknown(&here, "a value that this queue does not have, or lacks".to_owned()));
        }
        let ecn = if row.ecn == 0 { "" } else { ",ecn" };
        let protocol = format!("{},preset=ns235{ecn}", row.variant.protocol());
        let group = |flows: u32, bytes: u16| Group {
            flows,
            protocol: protocol.clone(),
            packet_bytes: bytes,
            useful_bytes: bytes,
            access_delays_ms: Vec::new(),
        };
        let groups = match sizes {
            Sizes::One => vec![group(row.n, 1000)],
            Sizes::Two => vec![group(row.n.div_ceil(2), 1000), group(row.n / 2, 500)],
        };
        let net = dumbbell(groups, &self.access_ms, row.bw_bps / 1e6, 100.0, written(row));
        let marks = if row.ecn == 0 { "" } else { ", ECN" };
        let late = if row.t0_s > 100.0 { format!(", from {} s", row.t0_s) } else { String::new() };
        Ok(Case {
            name: format!("Queues in ns-2: {} {}{marks}, {queue}{late}", row.n, row.variant.name()),
            rows: vec![number],
            runs: row.n_seeds,
            rule: Rule::Random,
            window_s: (row.t0_s, row.until_s),
            network: Ok(Net::Dumbbell(net)),
            values: row.values(),
            again: None,
            reasons: Vec::new(),
        })
    }
}

impl Row {
    /// Returns the queue with the buffer of this row, reduced by `less` packets, and with marks if the row has ECN.
    fn limited(&self, queue: &str, less: u32) -> String {
        let ecn = if self.ecn == 0 { "" } else { ",ecn" };
        format!("{queue},limit={}{ecn}", self.buf_pkts - less)
    }

    /// Returns the row's parameters of PI.
    fn controller(&self) -> String {
        let options = [("target", self.qref_pkts), ("a", self.a), ("b", self.b), ("hz", self.w_hz)];
        options.iter().filter_map(|(name, value)| value.map(|value| format!(",{name}={value}"))).collect()
    }

    fn values(&self) -> Vec<Given> {
        let marks = self.ecn != 0 && self.mark_rate.mean > 0.0;
        let mut values = vec![
            given("queue mean", self.queue_mean_pkts),
            given("queue sd", self.queue_sd_pkts),
            given("queue p95", self.queue_p95_pkts),
            given("queue max", self.queue_max_pkts),
            given("queue empty", self.queue_empty_frac),
            given("loss", self.loss_rate),
            given("marks", self.mark_rate),
            given("utilisation", self.utilisation),
            given("goodput", self.goodput_bps),
            given("fairness", self.jain),
            timeouts("timeouts per flow", self.timeouts_per_flow.into(), marks),
            given("cuts per flow", self.cuts_per_flow),
            left("cuts for marks per flow", self.ecn_responses_per_flow, CUTS_FOR_MARKS),
        ];
        values.extend(self.share_of_large.map(|share| given("first share", share)));
        values
    }
}
