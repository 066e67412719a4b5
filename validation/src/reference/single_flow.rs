//! One TCP flow alone on a link.

use super::{Failure, described_as, given};
use crate::case::{Case, Line, Net, Rule, Section};
use serde::Deserialize;

const TOPOLOGY: &str = "n0 -- 1 Mbit/s, 20 ms, DropTail buf_pkts -- n1, FTP from t=0, T=200 s; deterministic";
/// Start of the measurement in fields whose names contain `_20_T`, seconds.
const FROM_S: f64 = 20.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    topology: String,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    exp: String,
    variant: Variant,
    delack: u8,
    profile: Profile,
    #[serde(rename = "T_s")]
    until_s: f64,
    buf_pkts: u32,
    acked_pkts_total: f64,
    goodput_bps_total: f64,
    #[serde(rename = "goodput_bps_20_T")]
    goodput_bps: f64,
    drops_total: f64,
    #[serde(rename = "drops_20_T")]
    drops: f64,
    data_pkts_sent: f64,
    rexmit_pkts: f64,
    timeouts: f64,
    cwnd_cuts: f64,
    #[serde(rename = "cwnd_mean_20_T")]
    cwnd_mean: f64,
    #[serde(rename = "cwnd_min_20_T")]
    cwnd_min: f64,
    #[serde(rename = "cwnd_max_20_T")]
    cwnd_max: f64,
    #[serde(rename = "queue_mean_20_T")]
    queue_mean: f64,
    #[serde(rename = "queue_sd_20_T")]
    queue_sd: f64,
}

/// A TCP variant of ns-2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Variant {
    Tahoe,
    Reno,
    Newreno,
    Sack1,
    Vegas,
}

impl Variant {
    /// Returns the name of the protocol in scenarios.
    pub const fn protocol(self) -> &'static str {
        match self {
            Variant::Tahoe => "tcp-tahoe",
            Variant::Reno => "tcp-reno",
            Variant::Newreno => "tcp-newreno",
            Variant::Sack1 => "tcp-sack",
            Variant::Vegas => "tcp-vegas",
        }
    }

    /// Returns the usual name of the variant.
    pub const fn name(self) -> &'static str {
        match self {
            Variant::Tahoe => "Tahoe",
            Variant::Reno => "Reno",
            Variant::Newreno => "NewReno",
            Variant::Sack1 => "SACK",
            Variant::Vegas => "Vegas",
        }
    }
}

/// A set of ns-2's defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Profile {
    #[serde(rename = "ns235")]
    Now,
    #[serde(rename = "hdr")]
    Headers,
    #[serde(rename = "2001")]
    Then,
}

impl Profile {
    pub const fn preset(self) -> &'static str {
        match self {
            Profile::Now | Profile::Headers => "preset=ns235",
            Profile::Then => "preset=ns2001",
        }
    }

    pub const fn suffix(self) -> &'static str {
        match self {
            Profile::Now => "",
            Profile::Headers => ", 1040 bytes",
            Profile::Then => ", values of 2001",
        }
    }
}

impl Table {
    pub fn read(&self, place: &str) -> Result<Section, Failure> {
        described_as(place, &self.topology, TOPOLOGY)?;
        let name = "One flow";
        let cases = self.rows.iter().enumerate().map(|(number, row)| row.case(place, name, number));
        Ok(Section {
            name,
            place: place.to_owned(),
            rows: self.rows.len(),
            described: vec![self.topology.clone()],
            cases: cases.collect::<Result<_, _>>()?,
        })
    }
}

impl Row {
    fn case(&self, place: &str, section: &str, number: usize) -> Result<Case, Failure> {
        described_as(&format!("{place}, row {number}, exp"), &self.exp, "a")?;
        let (variant, profile) = (self.variant, self.profile);
        let delack = if self.delack == 0 { "" } else { ",delack" };
        // Agent/TCP/Vegas ignores useHeaders_.
        let headers = profile == Profile::Headers && variant != Variant::Vegas;
        let network = Net::Line(Line {
            protocol: format!("{},{}{delack}", variant.protocol(), profile.preset()),
            packet_bytes: if headers { 1040 } else { 1000 },
            mbps: 1.0,
            delay_ms: 20.0,
            queue: format!("droptail,{}", self.buf_pkts),
        });
        let mut name = format!("{section}: {}{}", variant.name(), profile.suffix());
        if self.delack != 0 {
            name.push_str(", delayed ACKs");
        }
        if self.buf_pkts != 50 {
            name.push_str(&format!(", buffer of {}", self.buf_pkts));
        }
        Ok(Case {
            name,
            rows: vec![number],
            runs: 1,
            rule: Rule::Deterministic,
            window_s: (FROM_S, self.until_s),
            network: Ok(network),
            values: vec![
                given("acked", self.acked_pkts_total),
                given("all goodput", self.goodput_bps_total),
                given("goodput", self.goodput_bps),
                given("all drops", self.drops_total),
                given("drops", self.drops),
                given("all sent", self.data_pkts_sent),
                given("all sent again", self.rexmit_pkts),
                given("all timeouts", self.timeouts),
                given("all cuts", self.cwnd_cuts),
                given("window mean", self.cwnd_mean),
                given("window min", self.cwnd_min),
                given("window max", self.cwnd_max),
                given("queue mean", self.queue_mean),
                given("queue sd", self.queue_sd),
            ],
            again: None,
            reasons: Vec::new(),
        })
    }
}
