//! A session with an MTCP agent that shares bottlenecks with TCP flows.

use crate::agents::{agent, child};
use crate::kit::{Running, Stage, must, print_line};
use faircast_testkit::{Bottleneck, Congestion, Lab, Offloads, TcpFlow, require_root};
use serde_json::Value;
use std::ops::Range;
use std::time::Duration;

/// Returns the rate at which data arrived at this child in these seconds of the session, in bit/s.
fn arrived(child: &Running, seconds: Range<f64>) -> f64 {
    let printed = child.task.stdout();
    let lines = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let progress = lines.filter(|line| line["event"] == "progress");
    let within = progress.filter(|line| line["seconds"].as_f64().is_some_and(|at| seconds.contains(&at)));
    let rates: Vec<f64> = within.filter_map(|line| line["rate_bps"].as_f64()).collect();
    assert!(!rates.is_empty(), "no progress from {seconds:?}: {printed}");
    rates.iter().sum::<f64>() / rates.len() as f64
}

/// Needs a kernel: the kernel's TCP, and token buckets.
#[test]
fn session_with_an_agent_gets_its_fair_share_against_kernel_tcp() {
    const LASTS: usize = 32;
    let Some(root) = require_root() else { return };
    let exits = [1, 2, 3];
    let plan = Lab::plan().receivers(4).offloads(Offloads::Off);
    let plan = exits.iter().fold(plan, |plan, at| plan.bottleneck(*at as u16, Bottleneck::mbps(4.0)));
    let stage = Stage::new(&root, plan);
    let file = stage.file("image", 40_000_000);
    let agent = agent(&stage, 0);
    let children = exits.map(|at| child(&stage, at, &[0], &[]));
    let flows = exits.map(|at| {
        let flow = TcpFlow::new(Congestion::Reno, Duration::from_secs(LASTS as u64));
        must(flow.start(stage.lab.sender(), stage.lab.receiver(at)))
    });
    let source = stage.send(&[&file], &["--expect", "3", "--cc", "mtcp", "--max", "20M"]);
    let flows = flows.map(|flow| must(flow.finish()));
    let windows = [12..20, 20..28];
    let shares = windows.map(|window| {
        let seconds = window.start as f64..window.end as f64;
        let of = |(child, flow): (&Running, &faircast_testkit::TcpResult)| {
            let tcp = flow.seconds_bps[window.clone()].iter().sum::<f64>() / window.len() as f64;
            arrived(child, seconds.clone()) / tcp
        };
        children.iter().zip(&flows).map(of).collect::<Vec<f64>>()
    });
    print_line(&format!("of TCP's rate at each exit from 12 s and from 20 s: {shares:.2?}"));
    [source, agent].into_iter().chain(children).for_each(Running::crashes);
    // A session gets less than 0.1 of the rate of a Reno flow if its window keeps only one to three packets in the shared queue.
    assert!(shares.iter().flatten().all(|share| (0.15..=2.0).contains(share)), "{shares:?}");
}
