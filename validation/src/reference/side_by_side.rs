//! Flows of TCP that compete with the same number of flows of another protocol.

use super::reno_queues::one_case_each;
use super::single_flow::{Profile, Variant};
use super::{Failure, Spread, described_as, given, unknown};
use crate::case::{Case, Dumbbell, Given, Group, Net, Rule, Section};
use serde::Deserialize;

const TOPOLOGY: &str = "n TCP + n PROTO on one bottleneck of bwper*2n; set 1: 50 kbit/s per flow, 500 B, 20 ms, access 1 Mbit/s 3 ms, buffer 20 \
                        (paper 002 Fig 3.18 setting; buffer is our choice); set 2: 500 kbit/s per flow, 1000 B, bottleneck 30 ms, access 10 Mbit/s \
                        10 ms, buffer max(13,12.5n), DropTail or RED(min .1 buf, max .5 buf, gentle)";
const RAP: &str = "useFineGrain_ 1; RAP n=50 seed 3 CRASHED with a floating point exception after ~10 min";
const CHECK: &str = "RAP as in d set 1; fine = useFineGrain_ (ns-2 default 0; d_friendliness rows used 1)";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    topology: String,
    window_s: (f64, f64),
    rap: String,
    aggregates: Vec<Row>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum Proto {
    #[serde(rename = "TFRC")]
    Tfrc,
    #[serde(rename = "RAP")]
    Rap,
    #[serde(rename = "none")]
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
enum Queue {
    DropTail,
    #[serde(rename = "RED")]
    Red,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    proto: Proto,
    queue: Queue,
    #[serde(rename = "pkt_B")]
    packet_bytes: u16,
    tcp: Variant,
    n_each: u32,
    buf_pkts: u32,
    n_seeds: u32,
    seeds: Vec<u64>,
    ratio_proto_over_tcp: Option<Spread>,
    tcp_mean_bps: Spread,
    proto_mean_bps: Option<Spread>,
    #[serde(rename = "tcp_cov_1.0s")]
    tcp_cov: Spread,
    #[serde(rename = "proto_cov_1.0s")]
    proto_cov: Option<Spread>,
    loss_rate: Spread,
    utilisation: Spread,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Check {
    what: String,
    rows: Vec<CheckRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckRow {
    exp: String,
    fine: u8,
    proto: Proto,
    n_each: u32,
    queue: Queue,
    buf_pkts: u32,
    bw_bps: f64,
    #[serde(rename = "pkt_B")]
    packet_bytes: u16,
    seed: u64,
    tcp: Variant,
    profile: Profile,
    t0_s: f64,
    #[serde(rename = "T_s")]
    until_s: f64,
    tcp_mean_bps: f64,
    #[serde(rename = "tcp_cov_1.0s")]
    tcp_cov: f64,
    proto_mean_bps: f64,
    #[serde(rename = "proto_cov_1.0s")]
    proto_cov: f64,
    ratio_proto_over_tcp: f64,
    loss_rate: f64,
    utilisation: f64,
}

/// Network of a row.
struct Pair {
    tcp: Variant,
    preset: &'static str,
    other: Proto,
    fine: bool,
    each: u32,
    queue: Queue,
    buffer: u32,
    packet_bytes: u16,
}

impl Pair {
    fn other(&self) -> Option<&'static str> {
        match (self.other, self.fine) {
            (Proto::Tfrc, _) => Some("tfrc"),
            (Proto::Rap, true) => Some("rap,fine"),
            (Proto::Rap, false) => Some("rap"),
            (Proto::None, _) => None,
        }
    }

    fn name(&self) -> String {
        let (tcp, each) = (self.tcp.name(), self.each);
        let queue = if self.queue == Queue::Red { "RED" } else { "DropTail" };
        let flows = match (self.other, self.fine) {
            (Proto::Tfrc, _) => format!("{each} {tcp}, {each} TFRC"),
            (Proto::Rap, true) => format!("{each} {tcp}, {each} RAP"),
            (Proto::Rap, false) => format!("{each} {tcp}, {each} RAP without fine grain"),
            (Proto::None, _) => format!("{} {tcp}", 2 * each),
        };
        format!("{flows}, {queue} {}, {} bytes", self.buffer, self.packet_bytes)
    }

    /// Returns the rate of the bottleneck for each flow, in bits per second.
    fn per_flow(&self) -> Option<f64> {
        match self.packet_bytes {
            500 => Some(50e3),
            1000 => Some(500e3),
            _ => None,
        }
    }

    /// Returns the network, or `None` for an unknown packet size.
    fn network(&self) -> Option<Net> {
        let per_flow = self.per_flow()?;
        let (access_mbps, access_delay_ms, delay_ms) =
            if self.packet_bytes == 500 { (1.0, 3.0, 20.0) } else { (10.0, 10.0, 30.0) };
        let group = |flows: u32, protocol: String| Group {
            flows,
            protocol,
            packet_bytes: self.packet_bytes,
            useful_bytes: self.packet_bytes,
            access_delays_ms: vec![access_delay_ms],
        };
        let tcp = format!("{},{}", self.tcp.protocol(), self.preset);
        let groups = match self.other() {
            Some(other) => vec![group(self.each, tcp), group(self.each, other.to_owned())],
            None => vec![group(2 * self.each, tcp)],
        };
        let buffer = f64::from(self.buffer);
        let queue = match self.queue {
            Queue::DropTail => format!("droptail,{}", self.buffer),
            Queue::Red => format!(
                "red,limit={},min={},max={},w=0.002,p=0.1,mean={},mark=0.1",
                self.buffer,
                0.1 * buffer,
                0.5 * buffer,
                self.packet_bytes
            ),
        };
        Some(Net::Dumbbell(Dumbbell {
            groups,
            mbps: per_flow * 2.0 * f64::from(self.each) / 1e6,
            delay_ms,
            queue,
            sample_ms: 10.0,
            access_mbps,
            access_delay_ms,
            starts_within_s: 5.0,
            steady: None,
        }))
    }

    fn case(&self, place: &str, number: usize) -> Result<Case, Failure> {
        let here = format!("{place}, row {number}");
        let size = || unknown(&here, format!("packets of {} bytes are of neither set", self.packet_bytes));
        Ok(Case {
            name: self.name(),
            rows: vec![number],
            runs: 1,
            rule: Rule::Random,
            window_s: (0.0, 0.0),
            network: Ok(self.network().ok_or_else(size)?),
            values: Vec::new(),
            again: None,
            reasons: Vec::new(),
        })
    }
}

impl Table {
    pub fn read(&self, place: &str) -> Result<Section, Failure> {
        described_as(place, &self.topology, TOPOLOGY)?;
        described_as(&format!("{place}, rap"), &self.rap, RAP)?;
        let cases = self.aggregates.iter().enumerate().map(|(number, row)| self.case(place, number, row));
        Ok(Section {
            name: "Two protocols side by side",
            place: place.to_owned(),
            rows: self.aggregates.len(),
            described: vec![self.topology.clone(), format!("RAP: {}", self.rap)],
            cases: cases.collect::<Result<_, _>>()?,
        })
    }

    fn case(&self, place: &str, number: usize, row: &Row) -> Result<Case, Failure> {
        let here = format!("{place}, row {number}");
        let two = row.proto != Proto::None;
        let has = [&row.ratio_proto_over_tcp, &row.proto_mean_bps, &row.proto_cov];
        if has.iter().any(|value| value.is_some() != two) || row.seeds.len() != row.n_seeds as usize {
            return Err(unknown(&here, "values of one protocol, or seeds, that do not fit".to_owned()));
        }
        let pair = Pair {
            tcp: row.tcp,
            preset: Profile::Now.preset(),
            other: row.proto,
            fine: true,
            each: row.n_each,
            queue: row.queue,
            buffer: row.buf_pkts,
            packet_bytes: row.packet_bytes,
        };
        let case = pair.case(place, number)?;
        Ok(Case {
            name: format!("Two protocols side by side: {}", case.name),
            runs: row.n_seeds,
            window_s: self.window_s,
            values: row.values(),
            ..case
        })
    }
}

impl Row {
    fn values(&self) -> Vec<Given> {
        let mut values = vec![
            given("first rate", self.tcp_mean_bps),
            given("first variation", self.tcp_cov),
            given("loss", self.loss_rate),
            given("utilisation", self.utilisation),
        ];
        let second = [
            ("second rate", self.proto_mean_bps),
            ("second variation", self.proto_cov),
            ("ratio", self.ratio_proto_over_tcp),
        ];
        values.extend(second.iter().filter_map(|(quantity, value)| Some(given(quantity, (*value)?))));
        values
    }
}

impl Check {
    pub fn read(&self, place: &str) -> Result<Section, Failure> {
        described_as(place, &self.what, CHECK)?;
        let rows = self.rows.iter().enumerate().map(|(number, row)| row.case(place, number));
        let rows: Vec<_> = rows.collect::<Result<_, _>>()?;
        Ok(Section {
            name: "RAP with other buffers and grain",
            place: place.to_owned(),
            rows: self.rows.len(),
            described: vec![self.what.clone()],
            cases: one_case_each(place, rows)?,
        })
    }
}

impl CheckRow {
    fn case(&self, place: &str, number: usize) -> Result<(Case, Vec<u64>), Failure> {
        let here = format!("{place}, row {number}");
        described_as(&format!("{here}, exp"), &self.exp, "chk")?;
        let pair = Pair {
            tcp: self.tcp,
            preset: self.profile.preset(),
            other: self.proto,
            fine: self.fine != 0,
            each: self.n_each,
            queue: self.queue,
            buffer: self.buf_pkts,
            packet_bytes: self.packet_bytes,
        };
        let bottleneck = pair.per_flow().map(|rate| rate * 2.0 * f64::from(self.n_each));
        if bottleneck != Some(self.bw_bps) || self.profile != Profile::Now || self.proto == Proto::None {
            return Err(unknown(&here, "not as in set 1".to_owned()));
        }
        let case = pair.case(place, number)?;
        let values = vec![
            given("first rate", self.tcp_mean_bps),
            given("first variation", self.tcp_cov),
            given("second rate", self.proto_mean_bps),
            given("second variation", self.proto_cov),
            given("ratio", self.ratio_proto_over_tcp),
            given("loss", self.loss_rate),
            given("utilisation", self.utilisation),
        ];
        let name = format!("RAP with other buffers and grain: {}", case.name);
        Ok((Case { name, window_s: (self.t0_s, self.until_s), values, ..case }, vec![self.seed]))
    }
}
