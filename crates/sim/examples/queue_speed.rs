//! Measures packets per second of processor time for each queue. `queue_speed [SECONDS [QUEUE ..]]` runs 60 TCP flows between two
//! hosts over a link of 100 Mbit/s with the queue. The flows use SACK and allow marks. Acknowledgements return over the reverse
//! link. Prints a Markdown table.
//!
//! All packets that links carried are counted: data through the queue, and acknowledgements through the drop-tail queue of the
//! reverse link. The column "queue" counts the data only. The processor time per packet includes the work of TCP. It is the time
//! of this thread (Linux), so other processes do not affect the result.

#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use faircast_aqm::{LinkSpec, QueueSpec};
use faircast_core::time::{Rate, Span, Time};
use faircast_sim::{ApplicationData, Network, Options, UnicastProtocol, UnicastSpec};
use faircast_unicast::Protocol;
use std::time::Instant;

const FLOWS: u32 = 60;

fn network(queue: QueueSpec) -> Network {
    let mut net = Network::new(1);
    let (from, to) = (net.node(), net.node());
    let link = |queue| LinkSpec::new(Rate::from_mbps(100.0), Span::from_millis(20), queue);
    net.duplex(from, to, link(queue), link(QueueSpec::UNLIMITED));
    let protocol: Protocol = "tcp-sack,preset=rfc,ecn".parse().expect("a protocol of the catalogue");
    for flow in 0..FLOWS {
        net.unicast(UnicastSpec {
            protocol: UnicastProtocol::Controlled(protocol),
            packet_size: 1000,
            ack_size: 40,
            from,
            to,
            start: Time::from_nanos(u64::from(flow) * 16_666_667),
            stop: Time::NEVER,
            supply: ApplicationData::Endless,
        });
    }
    net
}

/// Returns the processor time of this thread in nanoseconds, if the system reports it.
fn processor() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds: f64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(100.0);
    let mut queues: Vec<String> = arguments.collect();
    if queues.is_empty() {
        let name = |form: &str| form.split([',', '[']).next().unwrap_or_default().to_owned();
        queues = QueueSpec::known().into_iter().map(|(form, _)| name(form)).collect();
        queues[0] = "droptail,100".into();
    }
    println!(
        "| queue | packets through it | all packets | used % | M packets/s | M/s through the queue |\n|---|---|---|---|---|---|"
    );
    for text in queues {
        let queue = text.parse().unwrap_or_else(|error| panic!("{error}"));
        let options = Options { until: Time::from_secs_f64(seconds), ..Options::default() };
        let (before, clock) = (processor(), Instant::now());
        let outcome = network(queue).run(&options).expect("it is well formed");
        let nanos = match (before, processor()) {
            (Some(before), Some(after)) => (after - before) as f64,
            _ => clock.elapsed().as_nanos() as f64,
        };
        let counts = outcome.links[0].counts;
        let used = counts.accepted_bytes as f64 * 8.0 / (seconds * 1e8);
        let per_second = |packets: u64| packets as f64 * 1e3 / nanos;
        println!(
            "| {text} | {} | {} | {:.1} | {:.1} | {:.1} |",
            counts.offered,
            outcome.traversals,
            100.0 * used,
            per_second(outcome.traversals),
            per_second(counts.offered)
        );
    }
}
