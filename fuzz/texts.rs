//! The fuzz targets for text input of users. Tests of `faircast-experiments` replay the corpus through the same functions.

use faircast_aqm::{LossSpec, QueueSpec};
use faircast_core::schemes::Scheme;
use faircast_core::time::{Rate, Span, Time};
use faircast_emulator::{EmulationPlan, Net};
use faircast_experiments::scenario;
use faircast_unicast::Protocol;
use std::fmt::{Debug, Display};
use std::str::FromStr;

/// Parses a text. An accepted text encodes and parses to the same value.
fn same<T: FromStr<Err: Debug> + Display + PartialEq + Debug>(text: &str) -> Option<T> {
    let read = text.parse::<T>().ok()?;
    assert_eq!(read.to_string().parse::<T>().expect("what was written is read"), read, "{text}");
    Some(read)
}

/// Parses specifications with options: schemes (`--cc`), unicast protocols, queues and losses. Accepted specifications of schemes
/// and queues can be built.
pub fn specs(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(scheme) = text.parse::<Scheme>() {
        // The text contains only the parameters for receivers. It omits the sending rules of a preset.
        let written = scheme.to_string();
        assert_eq!(written.parse::<Scheme>().expect("what was written is read").to_string(), written);
        let _ = (scheme.source(), scheme.mark(), scheme.layers());
    }
    let _ = text.parse::<Protocol>();
    let _ = same::<LossSpec>(text);
    if let Some(queue) = same::<QueueSpec>(text) {
        let _ = queue.build(Rate::from_mbps(1.0), Span::from_millis(10));
    }
}

/// Parses a scenario file. It has points to run, or errors with positions in the file.
pub fn scenario(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match scenario::Scenario::parse_within(text, "fuzz.toml", 20_000_000) {
        Ok(scenario) => assert!(!scenario.points().is_empty()),
        Err(mistakes) => {
            for mistake in mistakes.iter() {
                let _ = mistakes.position(mistake);
            }
            assert!(!mistakes.to_string().is_empty());
        }
    }
}

/// Parses a plan of the emulator. An accepted plan carries packets of its hosts within its memory.
pub fn plan(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(mut plan) = EmulationPlan::parse(text) else { return };
    plan.memory = 20_000_000;
    let Ok(mut net) = Net::new(&plan) else { return };
    let addresses: Vec<[u8; 4]> = plan.hosts().map(|(_, host)| host.address.octets()).collect();
    let mut now = Time::ZERO;
    for (number, to) in addresses.iter().copied().chain([[239, 1, 2, 3]]).take(16).enumerate() {
        let mut packet = vec![0; 200];
        packet[..4].copy_from_slice(&[0x45, 0, 0, 200]);
        packet[12..16].copy_from_slice(&addresses[0]);
        packet[16..20].copy_from_slice(&to);
        let _ = net.enter(now, number % addresses.len(), &packet);
        now += Span::from_millis(1);
        while net.due(now).is_some() {}
    }
    // Runs until all packets have arrived, or for a large number of events.
    for _ in 0..10_000 {
        if net.next().is_never() {
            break;
        }
        now = now.max(net.next());
        while net.due(now).is_some() {}
    }
}
