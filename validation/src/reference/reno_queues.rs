//! TCP Reno flows with a queue discipline: ten flows, many flows with ECN, and a long run of PI.

use super::{CUTS_FOR_MARKS, Failure, Spread, TIMEOUTS_AFTER_MARKS, described_as, given, left, unknown};
use crate::case::{Case, Dumbbell, Given, Group, Net, Rule, Section, Value};
use serde::Deserialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ten {
    topology: String,
    parameters: BTreeMap<String, Json>,
    aggregates: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Many {
    topology: String,
    parameters: BTreeMap<String, String>,
    aggregates: Vec<Row>,
}

/// The output of `b_aqm.tcl`, over several random seeds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    profile: Option<String>,
    queue: String,
    n: u32,
    buf_pkts: Option<u32>,
    n_seeds: u32,
    seeds: Vec<u64>,
    utilisation: Spread,
    goodput_bps: Spread,
    loss_rate: Spread,
    mark_rate: Spread,
    queue_mean_pkts: Spread,
    queue_sd_pkts: Spread,
    queue_empty_frac: Spread,
    jain: Spread,
    timeouts: Spread,
    cwnd_cuts: Spread,
    ecn_responses: Spread,
    arrivals: Spread,
    drops: Spread,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ecn {
    Off,
    On,
}

impl Row {
    fn check(&self, place: &str) -> Result<(), Failure> {
        if self.seeds.len() != self.n_seeds as usize {
            return Err(unknown(
                place,
                format!("{} seeds are said to be {}", self.seeds.len(), self.n_seeds),
            ));
        }
        described_as(&format!("{place}, profile"), self.profile.as_deref().unwrap_or("ns235"), "ns235")
    }

    fn values(&self, ecn: Ecn) -> Vec<Given> {
        let marks = self.mark_rate.mean > 0.0 && ecn == Ecn::On;
        vec![
            given("utilisation", self.utilisation),
            given("goodput", self.goodput_bps),
            given("loss", self.loss_rate),
            given("marks", self.mark_rate),
            given("queue mean", self.queue_mean_pkts),
            given("queue sd", self.queue_sd_pkts),
            given("queue empty", self.queue_empty_frac),
            given("fairness", self.jain),
            timeouts("timeouts", self.timeouts.into(), marks),
            given("cuts", self.cwnd_cuts),
            left("cuts for marks", self.ecn_responses, CUTS_FOR_MARKS),
            given("arrivals", self.arrivals),
            given("drops", self.drops),
        ]
    }
}

/// Returns the number of timeouts. With marks it is not judged, because ns-2 counts timeouts differently then.
pub(super) fn timeouts(quantity: &str, value: Value, marks: bool) -> Given {
    if marks { left(quantity, value, TIMEOUTS_AFTER_MARKS) } else { given(quantity, value) }
}

/// Returns a dumbbell with flows of one TCP.
fn reno(flows: u32, protocol: &str, queue: &str, [mbps, near_ms, delay_ms]: [f64; 3]) -> Net {
    Net::Dumbbell(Dumbbell {
        groups: vec![Group {
            flows,
            protocol: protocol.to_owned(),
            packet_bytes: 1000,
            useful_bytes: 1000,
            access_delays_ms: vec![near_ms],
        }],
        mbps: 10.0,
        delay_ms,
        queue: queue.to_owned(),
        sample_ms: 10.0,
        access_mbps: mbps,
        access_delay_ms: near_ms,
        starts_within_s: 5.0,
        steady: None,
    })
}

const TEN: &str = "10 TCP Reno, dumbbell, access 100 Mbit/s 10 ms each side, bottleneck 10 Mbit/s 30 ms (RTT 100 ms), \
                   buffer 100 pkts, reverse path uncongested; starts uniform [0,5] s; window [50,200] s; no ECN";

/// RED's parameters in the format of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Red {
    bytes_: bool,
    queue_in_bytes_: bool,
    mean_pktsize_: u16,
    q_weight_: f64,
    linterm_: f64,
    max_p: f64,
    gentle_: bool,
    adaptive_: u8,
    wait_: bool,
    use_mark_p_: bool,
    mark_p_: f64,
    thresh_: f64,
    maxthresh_: f64,
}

impl Red {
    /// Returns the queue in the syntax of scenarios, or `None` if the syntax cannot express it.
    fn queue(&self, buffer: u32) -> Option<String> {
        let plain = !self.bytes_ && !self.queue_in_bytes_ && self.adaptive_ == 0;
        if !plain || (self.linterm_ * self.max_p - 1.0).abs() > 1e-9 {
            return None;
        }
        Some(format!(
            "red,limit={buffer},min={},max={},w={},p={},mean={},mark={},{},{}",
            self.thresh_,
            self.maxthresh_,
            self.q_weight_,
            self.max_p,
            self.mean_pktsize_,
            if self.use_mark_p_ { self.mark_p_ } else { 1.0 },
            if self.gentle_ { "gentle" } else { "abrupt" },
            if self.wait_ { "wait" } else { "nowait" },
        ))
    }
}

/// A queue with fixed parameters: its name in the file, its parameters, and its name in scenarios.
type Fixed = (&'static str, &'static str, &'static str);

const PI: Fixed = (
    "PI",
    r#"{"a_":1.822e-05,"b_":1.816e-05,"w_":170,"qref_":50,"mean_pktsize_":1000,"bytes_":false}"#,
    "pi,ns2,a=1.822e-5,b=1.816e-5,hz=170,target=50",
);
const AVQ: Fixed = (
    "Vq(AVQ)",
    r#"{"gamma_":0.98,"alpha2(hard-coded)":0.15,"ecnlim_(initial virtual capacity fraction)":0.8,"buflim_":1.0,"queue_in_bytes_":true,
    "mean_pktsize_":1000}"#,
    "avq,gamma=0.98,alpha=0.15,initial=0.8,buffer=1,order=ns2",
);
/// The name of the row has another target than the parameters.
const REM: Fixed = (
    "REM",
    r#"{"gamma_":0.001,"phi_":1.001,"pupdtime_":0.002,"pbo_":50,"inw_":1,"alpha(hard-coded)":0.1,"mean_pktsize_":1000}"#,
    "rem,gamma=0.001,phi=1.001,update=2ms,alpha=0.1,target=20",
);

impl Ten {
    pub fn read(&self, place: &str) -> Result<Section, Failure> {
        described_as(place, &self.topology, TEN)?;
        let cases = self.aggregates.iter().enumerate().map(|(number, row)| self.case(place, number, row));
        let parameters = serde_json::to_string(&self.parameters).unwrap_or_default();
        Ok(Section {
            name: "Ten Reno flows",
            place: place.to_owned(),
            rows: self.aggregates.len(),
            described: vec![self.topology.clone(), parameters.replace('"', "")],
            cases: cases.collect::<Result<_, _>>()?,
        })
    }

    fn red(&self, place: &str, name: &str, buffer: u32) -> Result<String, Failure> {
        let json = self.parameters.get(name).cloned().unwrap_or_default();
        let red: Red = serde_json::from_value(json)
            .map_err(|why| unknown(&format!("{place}, parameters of {name}"), why.to_string()))?;
        let fail = || unknown(&format!("{place}, parameters of {name}"), "cannot be written here".to_owned());
        red.queue(buffer).ok_or_else(fail)
    }

    fn queue(&self, place: &str, (name, text, queue): &Fixed, limit: u32) -> Result<String, Failure> {
        let wanted: Option<Json> = serde_json::from_str(text).ok();
        if self.parameters.get(*name) != wanted.as_ref() {
            return Err(unknown(&format!("{place}, parameters of {name}"), format!("{text} are wanted")));
        }
        Ok(format!("{queue},limit={limit}"))
    }

    fn case(&self, place: &str, number: usize, row: &Row) -> Result<Case, Failure> {
        let here = format!("{place}, row {number}");
        row.check(&here)?;
        let Some(buffer) = row.buf_pkts else { return Err(unknown(&here, "no buf_pkts".to_owned())) };
        let tail = format!("droptail,{buffer}");
        let built = |name: &'static str, protocol: &str, queue: String| {
            (name, reno(row.n, protocol, &queue, [100.0, 10.0, 30.0]))
        };
        let plain = "tcp-reno,preset=ns235";
        let (name, network) = match row.queue.as_str() {
            "DropTail" => built("DropTail", plain, tail),
            "RED" => built("RED 20-60", plain, self.red(place, "RED", buffer)?),
            "REDrec" => built("RED 5-15", plain, self.red(place, "REDrec", buffer)?),
            "DropTail+overhead" => {
                let found =
                    self.parameters.get("DropTail+overhead").and_then(Json::as_str).unwrap_or_default();
                let known = "Agent/TCP overhead_ 0.0008 s (random send jitter, breaks phase effects)";
                described_as(&format!("{place}, parameters"), found, known)?;
                built("DropTail, send jitter of 0.8 ms", "tcp-reno,preset=ns235,jitter=0.0008", tail)
            }
            "PI" => built("PI", plain, self.queue(place, &PI, buffer)?),
            "Vq" => built("AVQ", plain, self.queue(place, &AVQ, buffer)?),
            // The queue in ns-2 holds one packet less than its buffer.
            "REM_pbo20(default)" => built("REM, target 20", plain, self.queue(place, &REM, buffer - 1)?),
            other => return Err(unknown(&here, format!("there is no reader for the queue {other:?}"))),
        };
        Ok(Case {
            name: format!("Ten Reno flows: {name}"),
            rows: vec![number],
            runs: row.n_seeds,
            rule: Rule::Random,
            window_s: (50.0, 200.0),
            network: Ok(network),
            values: row.values(Ecn::Off),
            again: None,
            reasons: Vec::new(),
        })
    }
}

const MANY: &str = "n TCP Reno with ECN, bottleneck 10 Mbit/s 20 ms, access 10 Mbit/s 40 ms each side (RTT 200 ms), 1000 B, buffer 100, \
                    target 50; starts U[0,5] s; window [100,200] s";

/// A queue of the file: its name in rows, the name and text of its parameters, our name, and its name in scenarios.
type Known = (&'static str, &'static str, &'static str, &'static str, &'static str);

const MANY_QUEUES: &[Known] = &[
    ("DropTail", "DropTail", "-", "DropTail", "droptail,100"),
    (
        "RED_25_75",
        "RED_25_75",
        "thresh 25 maxthresh 75 w .002 max_p .1 gentle, use_mark_p_ TRUE (2.35 default: drops instead of marks when p>0.1)",
        "RED 25-75",
        "red,limit=100,min=25,max=75,w=0.002,p=0.1,gentle,mark=0.1,ecn",
    ),
    (
        "RED_25_75_markall",
        "RED_25_75_markall",
        "same, use_mark_p_ false (the behaviour before 2005)",
        "RED 25-75, always marks",
        "red,limit=100,min=25,max=75,w=0.002,p=0.1,gentle,mark=1,ecn",
    ),
    (
        "REDrec",
        "REDrec",
        "thresh 5 maxthresh 15, use_mark_p_ true",
        "RED 5-15",
        "red,limit=100,min=5,max=15,w=0.002,p=0.1,gentle,mark=0.1,ecn",
    ),
    (
        "PI_default_ab",
        "PI_default_ab",
        "a 1.822e-5 b 1.816e-5 w 170 (ns-2 default)",
        "PI, ns-2's values",
        "pi,ns2,limit=100,target=50,ecn",
    ),
    (
        "PI_tuned_a8.645e-4_b8.555e-4",
        "PI_tuned_a8.645e-4_b8.555e-4",
        "Hollot rule for C=1250 pkt/s, N-=100, R+=0.3 s",
        "PI, designed for the link",
        "pi,ns2,limit=100,target=50,a=8.645e-4,b=8.555e-4,ecn",
    ),
    (
        "AVQ_gamma0.98_alpha0.15",
        "AVQ",
        "gamma .98 alpha .15 marks",
        "AVQ",
        "avq,limit=100,gamma=0.98,alpha=0.15,order=ns2,ecn",
    ),
    (
        "REM_pbo50",
        "REM_pbo50",
        "gamma .001 phi 1.001 pbo 50 marks",
        "REM, target 50",
        // The queue in ns-2 holds one packet less than its buffer.
        "rem,limit=99,target=50,gamma=0.001,phi=1.001,marks=departure,ecn",
    ),
];

impl Many {
    pub fn read(&self, place: &str) -> Result<Section, Failure> {
        described_as(place, &self.topology, MANY)?;
        let cases = self.aggregates.iter().enumerate().map(|(number, row)| self.case(place, number, row));
        Ok(Section {
            name: "Many Reno flows with ECN",
            place: place.to_owned(),
            rows: self.aggregates.len(),
            described: vec![self.topology.clone(), super::pairs(&self.parameters)],
            cases: cases.collect::<Result<_, _>>()?,
        })
    }

    fn case(&self, place: &str, number: usize, row: &Row) -> Result<Case, Failure> {
        let here = format!("{place}, row {number}");
        row.check(&here)?;
        if row.buf_pkts.is_some() {
            return Err(unknown(&here, "a buffer of its own, where the section says 100".to_owned()));
        }
        let known = MANY_QUEUES.iter().find(|known| known.0 == row.queue);
        let Some((_, parameters, text, name, queue)) = known else {
            return Err(unknown(&here, format!("there is no reader for the queue {:?}", row.queue)));
        };
        let found = self.parameters.get(*parameters).map_or("", String::as_str);
        described_as(&format!("{place}, parameters of {parameters}"), found, text)?;
        let build = |queue: &str| reno(row.n, "tcp-reno,preset=ns235,ecn", queue, [10.0, 40.0, 20.0]);
        Ok(Case {
            name: format!("Many Reno flows with ECN: {} flows, {name}", row.n),
            rows: vec![number],
            runs: row.n_seeds,
            rule: Rule::Random,
            window_s: (100.0, 200.0),
            network: Ok(build(queue)),
            values: row.values(Ecn::On),
            again: None,
            reasons: Vec::new(),
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LongPi {
    what: String,
    rows: Vec<LongRow>,
}

/// The output of `b_aqm.tcl` for one random seed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LongRow {
    exp: String,
    queue: String,
    n: u32,
    ecn: u8,
    seed: u64,
    variant: String,
    profile: String,
    bw_bps: f64,
    buf_pkts: u32,
    qref_pkts: f64,
    t0_s: f64,
    #[serde(rename = "T_s")]
    until_s: f64,
    utilisation: f64,
    goodput_bps: f64,
    loss_rate: f64,
    mark_rate: f64,
    arrivals: f64,
    drops: f64,
    queue_mean_pkts: f64,
    queue_sd_pkts: f64,
    queue_empty_frac: f64,
    jain: f64,
    timeouts: f64,
    cwnd_cuts: f64,
    ecn_responses: f64,
}

impl LongRow {
    fn values(&self) -> Vec<Given> {
        vec![
            given("utilisation", self.utilisation),
            given("goodput", self.goodput_bps),
            given("loss", self.loss_rate),
            given("marks", self.mark_rate),
            given("arrivals", self.arrivals),
            given("drops", self.drops),
            given("queue mean", self.queue_mean_pkts),
            given("queue sd", self.queue_sd_pkts),
            given("queue empty", self.queue_empty_frac),
            given("fairness", self.jain),
            left("timeouts", self.timeouts, TIMEOUTS_AFTER_MARKS),
            given("cuts", self.cwnd_cuts),
            left("cuts for marks", self.ecn_responses, CUTS_FOR_MARKS),
        ]
    }

    /// Returns the network, which is the network of many flows with ECN.
    fn network(&self, place: &str) -> Result<Net, Failure> {
        let found = format!("{}, {}, ecn {}, {} bit/s", self.variant, self.profile, self.ecn, self.bw_bps);
        described_as(place, &found, "Reno, ns235, ecn 1, 10000000 bit/s")?;
        let queue = format!("pi,ns2,limit={},target={},ecn", self.buf_pkts, self.qref_pkts);
        Ok(reno(self.n, "tcp-reno,preset=ns235,ecn", &queue, [10.0, 40.0, 20.0]))
    }

    /// Returns a text that identifies the case of a run.
    fn same(&self) -> String {
        let (rate, buffer, target) = (self.bw_bps / 1e6, self.buf_pkts, self.qref_pkts);
        let marks = if self.ecn == 0 { "" } else { " with ECN" };
        format!(
            "{} {}{marks}, {} ({}), {rate} Mbit/s, buffer {buffer}, target {target}, {} to {} s",
            self.n, self.variant, self.queue, self.profile, self.t0_s, self.until_s
        )
    }
}

impl LongPi {
    pub fn read(&self, place: &str) -> Result<Section, Failure> {
        let mut cases: Vec<(Case, Vec<u64>)> = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let here = format!("{place}, row {number}");
            described_as(&format!("{here}, exp"), &row.exp, "aqm")?;
            described_as(&format!("{here}, queue"), &row.queue, "PI")?;
            let name = format!("PI for a long time: {}", row.same());
            let case = Case {
                name,
                rows: vec![number],
                runs: 1,
                rule: Rule::Random,
                window_s: (row.t0_s, row.until_s),
                network: Ok(row.network(&here)?),
                values: row.values(),
                again: None,
                reasons: Vec::new(),
            };
            cases.push((case, vec![row.seed]));
        }
        Ok(Section {
            name: "PI for a long time",
            place: place.to_owned(),
            rows: self.rows.len(),
            described: vec![self.what.clone()],
            cases: one_case_each(place, cases)?,
        })
    }
}

/// Merges rows that differ only in their random seed into one case with mean and deviation.
pub(super) fn one_case_each(place: &str, rows: Vec<(Case, Vec<u64>)>) -> Result<Vec<Case>, Failure> {
    let mut groups: Vec<(Vec<Case>, Vec<u64>)> = Vec::new();
    for (case, seeds) in rows {
        match groups.iter_mut().find(|(cases, _)| cases[0].name == case.name) {
            Some((cases, known)) => {
                if seeds.iter().any(|seed| known.contains(seed)) {
                    return Err(unknown(
                        &format!("{place}, row {}", case.rows[0]),
                        "a seed twice".to_owned(),
                    ));
                }
                known.extend(seeds);
                cases.push(case);
            }
            None => groups.push((vec![case], seeds)),
        }
    }
    let merge = |(mut cases, _): (Vec<Case>, Vec<u64>)| {
        let rows: Vec<usize> = cases.iter().flat_map(|case| case.rows.clone()).collect();
        let all = |at: usize| cases.iter().map(|case| case.values[at].value.mean()).collect::<Vec<_>>();
        let values: Vec<Value> = (0..cases[0].values.len()).map(|at| Value::of(&all(at))).collect();
        let runs = cases.len() as u32;
        let mut case = cases.swap_remove(0);
        case.values.iter_mut().zip(values).for_each(|(given, value)| given.value = value);
        Case { rows, runs, ..case }
    };
    Ok(groups.into_iter().map(merge).collect())
}
