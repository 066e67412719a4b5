//! Many links with one TCP flow each, and multicast to all receivers.

use super::single_flow::Profile;
use super::{Failure, Spread, described_as, given, unknown};
use crate::case::{Case, Given, Net, Rule, Section, Star};
use serde::Deserialize;

const TOPOLOGY: &str = "64 sources -10 Mbit/s 5 ms- router -1 Mbit/s 5 ms, DropTail 50 pkts- 64 receivers; one TCP Reno each (start U[0,1] s); \
                        multicast CBR 300 kbit/s of 1000 B (start .5 s) from a 65th source (10 Mbit/s 5 ms) to all; window [50,200] s; cbr_bps 0 = \
                        control without CBR; e_jittered_cbr = CBR random_ 1";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    topology: String,
    note: String,
    aggregates: Vec<Row>,
}

/// The mean, deviation, minimum and maximum over the links are separate fields for each of seven quantities.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    exp: String,
    cbr_bps: f64,
    profile: Profile,
    #[serde(rename = "N")]
    leaves: u32,
    mproto: String,
    n_seeds: u32,
    seeds: Vec<u64>,
    tcp_goodput_bps_mean: Spread,
    tcp_goodput_bps_sd: Spread,
    tcp_goodput_bps_min: Spread,
    tcp_goodput_bps_max: Spread,
    mcast_rx_bps_mean: Spread,
    mcast_rx_bps_sd: Spread,
    mcast_rx_bps_min: Spread,
    mcast_rx_bps_max: Spread,
    mcast_loss_mean: Spread,
    mcast_loss_sd: Spread,
    mcast_loss_min: Spread,
    mcast_loss_max: Spread,
    link_loss_mean: Spread,
    link_loss_sd: Spread,
    link_loss_min: Spread,
    link_loss_max: Spread,
    utilisation_mean: Spread,
    utilisation_sd: Spread,
    utilisation_min: Spread,
    utilisation_max: Spread,
    cwnd_cuts_mean: Spread,
    cwnd_cuts_sd: Spread,
    cwnd_cuts_min: Spread,
    cwnd_cuts_max: Spread,
    timeouts_mean: Spread,
    timeouts_sd: Spread,
    timeouts_min: Spread,
    timeouts_max: Spread,
}

impl Row {
    fn values(&self) -> Vec<Given> {
        vec![
            given("TCP goodput", self.tcp_goodput_bps_mean),
            given("TCP goodput sd", self.tcp_goodput_bps_sd),
            given("TCP goodput min", self.tcp_goodput_bps_min),
            given("TCP goodput max", self.tcp_goodput_bps_max),
            given("multicast rate", self.mcast_rx_bps_mean),
            given("multicast rate sd", self.mcast_rx_bps_sd),
            given("multicast rate min", self.mcast_rx_bps_min),
            given("multicast rate max", self.mcast_rx_bps_max),
            given("multicast loss", self.mcast_loss_mean),
            given("multicast loss sd", self.mcast_loss_sd),
            given("multicast loss min", self.mcast_loss_min),
            given("multicast loss max", self.mcast_loss_max),
            given("loss", self.link_loss_mean),
            given("loss sd", self.link_loss_sd),
            given("loss min", self.link_loss_min),
            given("loss max", self.link_loss_max),
            given("utilisation", self.utilisation_mean),
            given("utilisation sd", self.utilisation_sd),
            given("utilisation min", self.utilisation_min),
            given("utilisation max", self.utilisation_max),
            given("cuts per flow", self.cwnd_cuts_mean),
            given("cuts per flow sd", self.cwnd_cuts_sd),
            given("cuts per flow min", self.cwnd_cuts_min),
            given("cuts per flow max", self.cwnd_cuts_max),
            given("timeouts per flow", self.timeouts_mean),
            given("timeouts per flow sd", self.timeouts_sd),
            given("timeouts per flow min", self.timeouts_min),
            given("timeouts per flow max", self.timeouts_max),
        ]
    }

    fn case(&self, place: &str, number: usize) -> Result<Case, Failure> {
        let here = format!("{place}, row {number}");
        described_as(&format!("{here}, exp"), &self.exp, "e")?;
        described_as(&format!("{here}, mproto"), &self.mproto, "CtrMcast")?;
        if self.seeds.len() != self.n_seeds as usize {
            return Err(unknown(&here, "as many seeds as n_seeds says are wanted".to_owned()));
        }
        let multicast_kbps = self.cbr_bps / 1e3;
        let what = match self.cbr_bps {
            0.0 => "without multicast".to_owned(),
            _ => format!("multicast of {multicast_kbps} kbit/s"),
        };
        Ok(Case {
            name: format!("Star with multicast: {what}{}", self.profile.suffix()),
            rows: vec![number],
            runs: self.n_seeds,
            rule: Rule::Random,
            window_s: (50.0, 200.0),
            network: Ok(Net::Star(Star {
                leaves: self.leaves,
                protocol: format!("tcp-reno,{}", self.profile.preset()),
                packet_bytes: 1000,
                mbps: 1.0,
                delay_ms: 5.0,
                queue: "droptail,50".to_owned(),
                access_mbps: 10.0,
                access_delay_ms: 5.0,
                starts_within_s: 1.0,
                multicast_kbps,
            })),
            values: self.values(),
            again: None,
            reasons: Vec::new(),
        })
    }
}

impl Table {
    pub fn read(&self, place: &str) -> Result<Section, Failure> {
        described_as(place, &self.topology, TOPOLOGY)?;
        let cases = self.aggregates.iter().enumerate().map(|(number, row)| row.case(place, number));
        Ok(Section {
            name: "Star with multicast",
            place: place.to_owned(),
            rows: self.aggregates.len(),
            described: vec![self.topology.clone(), self.note.clone()],
            cases: cases.collect::<Result<_, _>>()?,
        })
    }
}
