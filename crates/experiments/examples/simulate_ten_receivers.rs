//! Ten receivers and a TCP flow behind one bottleneck, simulated packet by packet with the congestion control that runs in
//! real sessions: `cargo run -p faircast-experiments --example simulate_ten_receivers`.

use faircast_experiments::run::{RunOptions, Silent, run};
use faircast_experiments::scenario::Scenario;

const SCENARIO: &str = r#"
title = "Multicast beside TCP behind one bottleneck"
duration = "20 s"

[topology]
kind = "dumbbell"
sources = 2
leaves = 11
bottleneck = { rate = "4 Mbit/s", delay = "20 ms", queue = "40 packets" }

[[flow]]
name = "multicast"
kind = "session"
scheme = "ormcc"
from = "src1"
to = "leaf[1-10]"

[[flow]]
name = "tcp"
kind = "tcp-newreno"
from = "src2"
to = "leaf11"

[probe]
receivers = 1
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scenario = Scenario::parse(SCENARIO, "ten.toml").map_err(|mistakes| format!("{mistakes:?}"))?;
    let results = run(&scenario, &RunOptions::default(), &Silent)?;
    for metric in ["multicast.rate", "multicast.loss", "multicast.reports", "tcp.rate"] {
        let values = results.metric(0, metric);
        println!("{metric}: {:.4}", values.first().ok_or("it is measured")?);
    }
    println!("{} packets have arrived at receivers", results.totals.arrivals);
    Ok(())
}
