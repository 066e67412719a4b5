//! Metrics in the text format of OpenMetrics or the older one of Prometheus, from the same model as the page.
//!
//! Counters are sums over all sessions of the command: they do not fall when a session ends. Gauges are about running sessions.

use super::model::{OfSide, Sample, Side};
use crate::system;
use faircast::event::Condition;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU64;

/// Maximum number of receivers with a label of their own. The others have one label together.
pub(super) const MAX_NAMED: usize = 1_000;

/// Label of the receivers without a label of their own.
const OTHERS: &str = "others";

/// Media types: that of OpenMetrics, and that of the older format, which programs without an Accept header expect.
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
pub const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

type Labels = Vec<(&'static str, String)>;
type Numbers = Family<Labels, Gauge<f64, AtomicU64>>;

/// A metric by side: name, meaning, unit, value.
type BySide<T> = (&'static str, &'static str, Option<Unit>, fn(&OfSide) -> T);

/// Returns the text of all metrics in the older format. There, the type of a counter is stated with the suffix of its samples.
pub fn plain(sample: &Sample) -> String {
    let text = text(sample);
    let type_of = |line: &str| line.strip_prefix("# TYPE ")?.strip_suffix(" counter").map(str::to_owned);
    let counters: BTreeSet<String> = text.lines().filter_map(type_of).collect();
    let lines = text.lines().filter(|line| !line.starts_with("# UNIT") && *line != "# EOF");
    lines.fold(String::new(), |mut plain, line| {
        let mut words = line.splitn(4, ' ').map(str::to_owned).collect::<Vec<_>>();
        if line.starts_with('#') && counters.contains(&words[2]) {
            words[2].push_str("_total");
        }
        plain.push_str(&words.join(" "));
        plain.push('\n');
        plain
    })
}

/// Returns the text of all metrics in the format of OpenMetrics.
pub fn text(sample: &Sample) -> String {
    let mut registry = Registry::with_prefix("faircast");
    let build = Numbers::default();
    let about = [("version", env!("CARGO_PKG_VERSION")), ("command", sample.command)];
    build.get_or_create(&about.map(|(name, value)| (name, value.to_owned())).to_vec()).set(1.0);
    registry.register("build_info", "The command that reports", build);
    by_side(&mut registry, &sample.sides);
    receivers(&mut registry, sample);
    let ended = Family::<Labels, Counter>::default();
    for (outcome, count) in [("complete", sample.complete), ("incomplete", sample.incomplete)] {
        ended.get_or_create(&vec![("outcome", outcome.to_owned())]).inc_by(count);
    }
    registry.register("sessions_ended", "Sessions that have ended", ended);
    if let Some(seconds) = system::cpu_seconds() {
        let used = Counter::<f64, AtomicU64>::default();
        used.inc_by(seconds);
        registry.register_with_unit("cpu", "Processor time of the command", Unit::Seconds, used);
    }
    let mut text = String::new();
    encode(&mut text, &registry).expect("a text takes everything");
    text
}

fn by_side(registry: &mut Registry, sides: &BTreeMap<Side, OfSide>) {
    let speed = || Some(Unit::Other("bytes_per_second".to_owned()));
    let gauges: [BySide<f64>; 7] = [
        ("sessions", "Running sessions", None, |side| side.sessions as f64),
        ("rate", "Rate of the last second, with headers", speed(), |side| side.rate),
        ("allowed_rate", "Rate that congestion control allows", speed(), |side| side.allowed),
        ("loss", "Largest loss of the last second", Some(Unit::Other("ratio".to_owned())), |side| side.loss),
        ("round_trip", "Largest round-trip time", Some(Unit::Seconds), |side| side.round_trip),
        ("disk_queue", "Received content that waits for the disk", Some(Unit::Bytes), |side| {
            side.disk_queue as f64
        }),
        ("socket_queue", "Kernel memory of datagrams that wait in sockets", Some(Unit::Bytes), |side| {
            side.socket_queue as f64
        }),
    ];
    for (name, help, unit, value) in gauges {
        let family = Numbers::default();
        for (side, numbers) in sides {
            family.get_or_create(&vec![("side", side.name().to_owned())]).set(value(numbers));
        }
        register(registry, name, help, unit, family);
    }
    let others = Numbers::default();
    for (side, other) in sides.iter().filter_map(|(side, numbers)| Some((side, numbers.other?))) {
        others.get_or_create(&vec![("side", side.name().to_owned())]).set(other);
    }
    let help = "Largest traffic of other programs and sessions, such as TCP, on the interface of a session: sent by a source's host, received by a receiver's";
    registry.register_with_unit("other_traffic", help, Unit::Other("bytes_per_second".to_owned()), others);
    let counters: [BySide<u64>; 6] = [
        ("content", "Content that sessions have transferred", Some(Unit::Bytes), |side| {
            side.totals.moved_bytes
        }),
        ("packets", "Data packets sent or received", None, |side| side.totals.counts.packets),
        ("packets_lost", "Data packets that did not arrive", None, |side| side.totals.counts.lost),
        ("repairs", "Repair packets sent, or blocks repaired", None, |side| side.totals.counts.repairs),
        ("datagrams_dropped", "Datagrams that socket buffers of receivers dropped", None, |side| {
            side.totals.counts.dropped_local
        }),
        ("rate_cuts", "Rate cuts by congestion control", None, |side| side.totals.counts.cuts),
    ];
    for (name, help, unit, value) in counters {
        let family = Family::<Labels, Counter>::default();
        for (side, numbers) in sides {
            family.get_or_create(&vec![("side", side.name().to_owned())]).inc_by(value(numbers));
        }
        register(registry, name, help, unit, family);
    }
    let refused = Family::<Labels, Counter>::default();
    for (side, OfSide { totals, .. }) in sides {
        let by_reason = totals.counts.refused_by;
        let other = ("other", totals.counts.refused.saturating_sub(by_reason.total()));
        for (reason, count) in by_reason.by_reason().into_iter().chain([other]) {
            let labels = vec![("side", side.name().to_owned()), ("reason", reason.to_owned())];
            refused.get_or_create(&labels).inc_by(count);
        }
    }
    registry.register("packets_refused", "Refused packets by reason", refused);
}

/// The receivers of running sessions: their number by condition, and numbers of each.
fn receivers(registry: &mut Registry, sample: &Sample) {
    let (members, rate, loss) = (Numbers::default(), Numbers::default(), Numbers::default());
    let (verified, round_trip, queue) = (Numbers::default(), Numbers::default(), Numbers::default());
    let mut named = BTreeSet::new();
    for condition in CONDITIONS {
        members.get_or_create(&vec![("state", condition_name(condition).to_owned())]).set(0.0);
    }
    for one in &sample.receivers {
        let state = vec![("state", condition_name(one.state).to_owned())];
        members.get_or_create(&state).inc_by(one.receivers as f64);
        if named.len() < MAX_NAMED {
            named.insert(one.host.as_str());
        }
        if one.state == Condition::Failed {
            continue; // it has left, and a restarted receiver may have its name
        }
        let name = named.get(one.host.as_str()).copied().unwrap_or(OTHERS);
        let labels = vec![("receiver", name.to_owned())];
        rate.get_or_create(&labels).inc_by(one.rate.bps() / 8.0);
        verified.get_or_create(&labels).inc_by(one.verified_bytes as f64);
        queue.get_or_create(&labels).inc_by(one.unwritten_bytes as f64);
        let largest = |family: &Numbers, value: f64| {
            let gauge = family.get_or_create(&labels);
            gauge.set(gauge.get().max(value));
        };
        largest(&loss, one.loss);
        one.rtt.iter().for_each(|rtt| largest(&round_trip, rtt.as_secs_f64()));
    }
    let speed = Unit::Other("bytes_per_second".to_owned());
    registry.register("receivers", "Receivers of running sessions by condition", members);
    registry.register_with_unit("receiver_rate", "Rate at which a receiver receives", speed, rate);
    registry.register_with_unit(
        "receiver_loss",
        "Loss in the last report of a receiver",
        Unit::Other("ratio".to_owned()),
        loss,
    );
    registry.register_with_unit(
        "receiver_verified",
        "Content that a receiver has verified",
        Unit::Bytes,
        verified,
    );
    let help = "Received content that waits for the disk of a receiver";
    registry.register_with_unit("receiver_disk_queue", help, Unit::Bytes, queue);
    let help = "Round-trip time to the receiver that limits the rate";
    registry.register_with_unit("receiver_round_trip", help, Unit::Seconds, round_trip);
}

fn register(
    registry: &mut Registry,
    name: &str,
    help: &str,
    unit: Option<Unit>,
    metric: impl prometheus_client::registry::Metric,
) {
    match unit {
        Some(unit) => registry.register_with_unit(name, help, unit, metric),
        None => registry.register(name, help, metric),
    }
}

const CONDITIONS: [Condition; 7] = [
    Condition::Receiving,
    Condition::Deferred,
    Condition::Dropped,
    Condition::Silent,
    Condition::Unreached,
    Condition::Failed,
    Condition::Done,
];

/// Returns the name of a condition, as in JSON.
const fn condition_name(condition: Condition) -> &'static str {
    match condition {
        Condition::Receiving => "receiving",
        Condition::Deferred => "deferred",
        Condition::Dropped => "dropped",
        Condition::Silent => "silent",
        Condition::Unreached => "unreached",
        Condition::Failed => "failed",
        Condition::Done => "done",
        _ => "other",
    }
}
