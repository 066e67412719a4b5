//! Results of a network that is not simulated: the tables and metrics of the simulator, as far as samples contain them.

use super::measure::{self, Measured};
use super::{Identity, MetricRow, Results, Totals, rows_of_runs};
use crate::scenario::{RealFlows, Scenario};
use crate::table::{Column, Table};
use faircast_core::time::{Span, Time};
use faircast_sim::{FlowOutcome, LinkOutcome, LinkSample, MemberOutcome, Outcome};
use std::collections::BTreeSet;

/// State of a network at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Time since the beginning of the run.
    pub at: Time,
    /// States of the links, in the order of the topology.
    pub links: Vec<LinkSample>,
    /// Bytes that have reached each receiver of each flow of [`RealFlows`].
    pub received: Vec<u64>,
}

/// Tables whose rows samples determine.
const TABLES: [&str; 5] = ["rates", "averages", "queues", "transfers", "bottlenecks"];
/// Metrics of flows that samples determine.
const OF_FLOWS: [&str; 13] = [
    "rate",
    "rate.sd",
    "rate.min",
    "rate.max",
    "cov",
    "jain",
    "completion",
    "transfers",
    "transfer_time",
    "transfer_time.p50",
    "transfer_time.p95",
    "transfer_jain",
    "makespan",
];

/// Returns the results of a run of the flows in `real`. Samples are at [`Scenario::recording_interval`], in the order of time; a
/// time of the scenario between two samples is at the latter one. `transfers` has the complete transfers of the first flows:
/// begin, end and number of packets of each.
///
/// # Panics
/// If a sample does not contain all links of the topology and all receivers.
pub fn of_recording(
    scenario: &Scenario,
    (point, seed): (usize, u64),
    real: &RealFlows,
    recorded: &[Recorded],
    transfers: &[Vec<(Time, Time, u32)>],
) -> Results {
    let plan = scenario.plan(point);
    let layout = scenario.layout(point, seed);
    let at =
        |time: Time| recorded.get(recorded.partition_point(|sample| sample.at < time)).or(recorded.last());
    let bins = (plan.duration.as_nanos() / plan.probe.bin.as_nanos()) as usize;
    let bins = |received: usize| -> Vec<u64> {
        let until =
            |bin: usize| at(Time::ZERO + plan.probe.bin * bin as u64).map_or(0, |it| it.received[received]);
        (0..bins).map(|bin| until(bin + 1) - until(bin)).collect()
    };
    let members = layout.flows.iter().map(|flow| vec![MemberOutcome::default(); flow.receivers.len()]);
    let flows = members.map(|members| FlowOutcome { members, ..FlowOutcome::default() });
    let mut outcome = Outcome { flows: flows.collect(), ..Outcome::default() };
    let mut receivers = 0..;
    for flow in &real.flows {
        let of = &mut outcome.flows[flow.number];
        for (member, received) in of.members.iter_mut().zip(receivers.by_ref()) {
            member.bins = bins(received);
            of.received_bins.resize(member.bins.len(), 0);
            of.received_bins.iter_mut().zip(&member.bins).for_each(|(sum, bytes)| *sum += bytes);
        }
    }
    for (flow, transfers) in real.flows.iter().zip(transfers) {
        outcome.flows[flow.number].transfers.clone_from(transfers);
    }
    let mut every = Times::new(plan.probe.queue_every);
    let probed: Vec<&Recorded> = recorded.iter().filter(|sample| every.has(sample.at)).collect();
    for link in 0..layout.links.len() {
        let until = |time: Time| {
            let LinkSample { counts, departed_bytes, .. } = at(time)?.links[link];
            Some(LinkOutcome { counts, departed_bytes, ..LinkOutcome::default() })
        };
        let moments = plan.moments().into_iter();
        outcome.link_moments.extend(moments.map(|moment| until(moment).unwrap_or_default().tally()));
        let samples = probed.iter().map(|sample| sample.links[link]).collect();
        outcome.links.push(LinkOutcome { samples, ..until(Time::NEVER).unwrap_or_default() });
    }
    let measured = known(measure::measure(plan, &layout, &outcome), scenario, real);
    let row = |(name, value): &(String, f64)| MetricRow { point, seed, name: name.clone(), value: *value };
    let (axes, points) = (scenario.axes().to_vec(), scenario.points().to_vec());
    let metrics = measured.metrics.iter().map(row).collect();
    let tables = rows_of_runs(&axes, &points, &[((point, seed), measured.tables)]);
    let identity = Identity { scenario: scenario.text().to_owned(), seeds: vec![seed], shard: None };
    let (captures, totals, codec, jobs) = (Vec::new(), Totals::default(), None, vec![(point, seed)]);
    Results { axes, points, jobs, tables, metrics, captures, totals, codec, identity }
}

/// Multiples of an interval.
struct Times {
    every: Span,
    next: Time,
}

impl Times {
    const fn new(every: Span) -> Times {
        Times { every, next: Time::ZERO }
    }

    /// Returns whether a multiple is at this time, or between it and the time before.
    fn has(&mut self, at: Time) -> bool {
        let has = self.next <= at;
        while self.next <= at {
            self.next += self.every;
        }
        has
    }
}

/// Leaves out what samples do not contain.
fn known(measured: Measured, scenario: &Scenario, real: &RealFlows) -> Measured {
    let groups: BTreeSet<&str> = real.flows.iter().map(|flow| flow.group.as_str()).collect();
    let is_known = |name: &str| {
        let base = name.split('@').next().unwrap_or_default();
        let of = |group: &&str| base.strip_prefix(*group).is_some_and(|rest| rest.starts_with('.'));
        match base.split_once('.') {
            None => base == "jain" && groups.len() == scenario.groups().count(),
            Some(("link" | "links", _)) => !base.ends_with(".reordered"),
            Some(_) => {
                let is_rate =
                    OF_FLOWS.iter().any(|it| base.strip_suffix(it).is_some_and(|owner| owner.ends_with('.')));
                is_rate && groups.iter().any(of)
            }
        }
    };
    let metrics: Vec<(String, f64)> =
        measured.metrics.into_iter().filter(|(name, _)| is_known(name)).collect();
    let mut tables: Vec<Table> = measured.tables;
    tables.retain(|table| TABLES.contains(&table.name.as_str()));
    for Table { columns, .. } in &mut tables {
        let Some((_, Column::Text(flows))) = columns.iter().find(|(name, _)| name == "flow") else {
            continue;
        };
        let kept: Vec<bool> = flows.iter().map(|flow| groups.contains(flow.as_str())).collect();
        for (_, column) in columns {
            match column {
                Column::Whole(values) => retain(values, &kept),
                Column::Number(values) => retain(values, &kept),
                Column::Text(values) => retain(values, &kept),
            }
        }
    }
    tables.insert(0, measure::metric_table(&metrics));
    Measured { tables, metrics }
}

fn retain<T>(values: &mut Vec<T>, kept: &[bool]) {
    let mut kept = kept.iter();
    values.retain(|_| kept.next() == Some(&true));
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_aqm::LinkCounts;

    /// A datagram flow at 1 Mbit/s to `leaf2`, whose link drops every other packet from 2 s on, and a flow without a program.
    #[test]
    fn recording_has_the_tables_and_metrics_of_the_simulator() {
        let text = "title = \"t\"\nduration = \"4 s\"\nwarmup = \"2 s\"\nstart_jitter = \"0 s\"\n\
            [topology]\nkind = \"star\"\nleaves = 2\n[probe]\nlinks = \"*->leaf2\"\nqueue_every = \"500 ms\"\n\
            [[flow]]\nname = \"other\"\nkind = \"tfrc\"\nfrom = \"src1\"\nto = \"leaf1\"\n\
            [[flow]]\nname = \"udp\"\nkind = \"udp\"\nrate = \"1 Mbit/s\"\nfrom = \"src1\"\nto = \"leaf2\"\n";
        let scenario = Scenario::parse(text, "test.toml").unwrap_or_else(|_| panic!("a sound scenario"));
        let real = scenario.real_flows(0, 7);
        let links = scenario.layout(0, 7).links.len();
        let recorded = |half: u64| {
            let at = Time::from_secs_f64(half as f64 / 2.0);
            let late = half.saturating_sub(4);
            let counts =
                LinkCounts { offered: half * 50, overflow: late * 25, marked: late, ..LinkCounts::default() };
            let (waiting, departed_bytes) = (u32::from(half > 6), half * 62_500);
            let link = LinkSample { at, waiting, waiting_bytes: 1_000, departed_bytes, counts };
            Recorded { at, links: vec![link; links], received: vec![half.min(6) * 62_500] }
        };
        let recorded: Vec<Recorded> = (0..=8).map(recorded).collect();
        let results = of_recording(
            &scenario,
            (0, 7),
            &real,
            &recorded,
            &[vec![(Time::ZERO, Time::from_secs_f64(0.5), 9)]],
        );
        let value = |name: &str| results.metric(0, name);
        assert_eq!(value("udp.rate"), [5e5], "the last second has no packets");
        assert_eq!(
            (value("udp.transfer_time"), results.table("transfers").map(Table::rows)),
            (vec![0.5], Some(1))
        );
        let link = |metric: &str| value(&format!("link.hub->leaf2.{metric}"));
        assert_eq!(
            [link("drops"), link("marks"), link("queue.max")],
            [[100.0], [4.0], [1.0]],
            "{:?}",
            results.metric_names()
        );
        assert_eq!(link("queue"), [0.4], "two of the five samples");
        let unknown = ["udp.goodput", "udp.sent", "other.rate", "jain", "link.hub->leaf2.reordered"];
        assert!(unknown.iter().all(|name| value(name).is_empty()), "{:?}", results.metric_names());
        let rates = results.table("rates").expect("it is a table");
        assert_eq!(
            (rates.texts("receiver"), rates.wholes("seed")[0]),
            (&["all", "all", "all", "all", "leaf2", "leaf2", "leaf2", "leaf2"].map(str::to_owned)[..], 7)
        );
        assert_eq!(&rates.numbers("rate")[4..], [1e6, 1e6, 1e6, 0.0]);
        assert_eq!(results.table("queues").map(Table::rows), Some(9));
        // The simulator has the same columns.
        let simulated = crate::run::run(&scenario, &crate::run::RunOptions::default(), &crate::run::Silent)
            .expect("it runs");
        for table in &results.tables {
            let names =
                |table: &Table| table.columns.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
            if table.name != "transfers" {
                assert_eq!(Some(names(table)), simulated.table(&table.name).map(names));
            }
        }
        let differs = |name: &&str| {
            simulated.metric(0, name).is_empty() && !name.contains("transfer") && !name.contains("makespan")
        };
        assert_eq!(results.metric_names().into_iter().find(differs), None);
    }
}
