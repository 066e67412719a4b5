//! Sentences about a session of a trace.

use crate::qlog::{Cut, Sample, Session};
use crate::units;
use std::collections::BTreeMap;

/// Duration before a moment whose cuts are summarised, in seconds.
const BEFORE: f64 = 10.0;

/// Number of listed cuts and notes.
const LISTED: usize = 20;

/// Maximum number of listed receivers.
const RECEIVERS: usize = 5;

/// Names the factor that limits a rate, as the subject of a sentence.
fn limit(session: &Session, limited_by: &str, receiver: &str) -> String {
    let host = session.host(receiver);
    match limited_by {
        "congestion" if receiver.is_empty() => "congestion control".to_owned(),
        "congestion" => format!("congestion on the path to {host}"),
        "window" => {
            format!("the window of {host}: its disk, its processor or the reader of its output is too slow")
        }
        "application" => "the source: it has no more data, or its host is too slow".to_owned(),
        "max" => "the configured maximum rate".to_owned(),
        _ => "no known factor".to_owned(),
    }
}

/// Returns the receiver that the limit of a sample is about.
fn limiting(sample: &Sample) -> &str {
    match sample.limited_by.as_str() {
        "window" => &sample.window_of,
        "congestion" => &sample.limiting,
        _ => "",
    }
}

/// Describes a cut without its time.
fn cut(session: &Session, cut: &Cut) -> String {
    let by = match cut.receiver.as_str() {
        "" => String::new(),
        id => format!(", reported by {}", session.host(id)),
    };
    let trip = cut.rtt_ms.map(|rtt| format!(", round trip {rtt:.1} ms")).unwrap_or_default();
    format!(
        "from {} to {}: {}{by}{trip}",
        units::rate(cut.from),
        units::rate(cut.to),
        if cut.reason.is_empty() { "congestion" } else { &cut.reason }
    )
}

/// Explains the rate at a moment.
pub fn moment(session: &Session, at: f64) -> Vec<String> {
    // A sample describes the time before it.
    let place = session.samples.partition_point(|sample| sample.at < at);
    let sample = session.samples.get(place).or(session.samples.last());
    let mut lines = Vec::new();
    match sample {
        _ if at > session.to => lines
            .push(format!("At {at:.1} s the session was over: its last event is at {:.1} s.", session.to)),
        Some(sample) if at >= session.started => {
            lines.push(rates(sample, at));
            if session.sends() {
                lines.extend(limited(session, place.min(session.samples.len() - 1)));
                lines.extend(cuts(session, sample, at));
            }
            lines.extend(receivers(session));
            lines.extend(losses(session, at));
        }
        _ => lines.push(format!("At {at:.1} s no packets of the session had been sent.")),
    }
    let near = session.notes.iter().filter(|(when, _)| (when - at).abs() <= 1.0);
    lines.extend(near.take(LISTED).map(|(when, text)| format!("At {when:.1} s {text}.")));
    lines
}

fn rates(sample: &Sample, at: f64) -> String {
    let rate = units::rate(sample.rate);
    let layers = sample.layers.map(|layers| format!(" on {}", units::count(layers, "layer")));
    let layers = layers.unwrap_or_default();
    match (sample.allowed, sample.loss) {
        (Some(allowed), _) => {
            let start = if sample.starting { " The source was still in its start-up." } else { "" };
            let queue = sample
                .queue_bytes
                .map(|bytes| format!(" The queue at the bottleneck had {}.", units::bytes(bytes as u64)));
            let allowed = units::rate(allowed);
            let queue = queue.unwrap_or_default();
            format!("At {at:.1} s the source sent {rate}{layers}, and {allowed} were allowed.{start}{queue}")
        }
        (None, loss) => {
            let loss = units::percent(loss.unwrap_or_default());
            format!("At {at:.1} s the receiver received {rate}{layers}, with {loss} loss.")
        }
    }
}

/// Describes the limit of the rate in a sample, and since when it is the limit.
fn limited(session: &Session, place: usize) -> Option<String> {
    let sample = &session.samples[place];
    if sample.limited_by.is_empty() {
        return None;
    }
    let is_same =
        |other: &Sample| other.limited_by == sample.limited_by && limiting(other) == limiting(sample);
    let first =
        session.samples[..=place].iter().rposition(|other| !is_same(other)).map_or(0, |other| other + 1);
    let since = if first == 0 { session.samples[0].at } else { session.samples[first - 1].at };
    let what = limit(session, &sample.limited_by, limiting(sample));
    let held = match sample.held {
        0.0 => String::new(),
        held => format!(" Windows held the source for {:.0} ms of the last sample.", held * 1e3),
    };
    let trip = sample.rtt_ms.filter(|_| sample.limited_by == "congestion" && !sample.limiting.is_empty());
    let trip = trip.map(|rtt| format!(" (round trip {rtt:.1} ms)")).unwrap_or_default();
    Some(format!("The limit was {what}{trip}, since {since:.1} s.{held}"))
}

/// Describes the last cut before a moment, the cuts before it, and the next cut.
fn cuts(session: &Session, sample: &Sample, at: f64) -> Vec<String> {
    let mut lines = Vec::new();
    let before = session.cuts.iter().rposition(|cut| cut.at <= at);
    match before.map(|place| &session.cuts[place]) {
        None => lines.push("The rate had not been cut before.".to_owned()),
        Some(last) => {
            lines.push(format!(
                "The last cut was {:.2} s earlier, at {:.2} s, {}.",
                at - last.at,
                last.at,
                cut(session, last)
            ));
            let risen = sample.allowed.unwrap_or_default() - last.to;
            if risen > 0.0 && sample.at >= last.at {
                lines.push(format!("The allowed rate has risen by {} since then.", units::rate(risen)));
            }
        }
    }
    let mut by: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for one in session.cuts.iter().filter(|cut| cut.at <= at && cut.at > at - BEFORE) {
        *by.entry((session.host(&one.receiver), &one.reason)).or_default() += 1;
    }
    let all: u64 = by.values().sum();
    if all > 1 {
        let mut by: Vec<_> = by.into_iter().collect();
        by.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let each = by.iter().take(RECEIVERS).map(|((host, reason), count)| {
            let host = if host.is_empty() { "no receiver" } else { host };
            format!("{count} by {host} ({reason})")
        });
        let each = each.collect::<Vec<_>>().join(", ");
        lines.push(format!("In the {BEFORE:.0} s before there were {all} cuts: {each}."));
    }
    if let Some(next) = session.cuts.iter().find(|cut| cut.at > at) {
        lines.push(format!("The next cut came at {:.2} s, {}.", next.at, cut(session, next)));
    }
    lines
}

/// Describes the losses on links of a simulation before a moment.
fn losses(session: &Session, at: f64) -> Option<String> {
    let mut by: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for loss in session.losses.iter().filter(|loss| loss.at <= at && loss.at > at - BEFORE) {
        *by.entry((&loss.link, &loss.reason)).or_default() += loss.packets;
    }
    let mut by: Vec<_> = by.into_iter().collect();
    by.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let each = by
        .iter()
        .take(RECEIVERS)
        .map(|((link, reason), count)| format!("{link} {} ({reason})", units::count(*count, "packet")));
    let each = each.collect::<Vec<_>>().join(", ");
    (!by.is_empty()).then(|| format!("In the {BEFORE:.0} s before, links lost packets: {each}."))
}

/// Describes the last states of the receivers with the highest losses.
fn receivers(session: &Session) -> Option<String> {
    let mut states: Vec<_> =
        session.members.iter().filter_map(|(id, member)| Some((id, member.last?))).collect();
    states.sort_by(|(_, (_, a, _)), (_, (_, b, _))| b.total_cmp(a));
    let each = states.iter().take(RECEIVERS).map(|(id, (_, loss, rate))| {
        format!("{} {} loss at {}", session.host(id), units::percent(*loss), units::rate(*rate))
    });
    let each = each.collect::<Vec<_>>().join(", ");
    let more = match states.len().saturating_sub(RECEIVERS) {
        0 => String::new(),
        more => format!(", and {more} with less loss"),
    };
    (!states.is_empty()).then(|| format!("The receivers had last reported: {each}{more}."))
}

/// Describes the whole session: the factors that limited its rate, its cuts and its events.
pub fn course(session: &Session) -> Vec<String> {
    let mut lines = limits(session);
    if !session.cuts.is_empty() {
        let skipped = session.cuts.len().saturating_sub(LISTED);
        let more = if skipped > 0 { format!(" (the last {LISTED} of them)") } else { String::new() };
        lines.push(format!("{}{more}:", units::count(session.cuts.len() as u64, "rate cut")));
        let listed = session.cuts.iter().skip(skipped);
        lines.extend(listed.map(|one| format!("  {:>8.2} s  {}", one.at, cut(session, one))));
    }
    let skipped = session.notes.len().saturating_sub(LISTED);
    if !session.notes.is_empty() {
        lines.push("receivers and end:".to_owned());
    }
    lines.extend(session.notes.iter().skip(skipped).map(|(at, text)| format!("  {at:>8.2} s  {text}")));
    let count = |name: &str| session.counts.get(name).copied().unwrap_or_default();
    let counted = [
        ("report", "report"),
        ("state", "state of receivers"),
        ("window", "window"),
        ("representative_changed", "change of the representative"),
        ("repair_requested", "request for repair"),
        ("block_verified", "verified block"),
    ];
    let counted = counted.into_iter().map(|(name, noun)| (count(name), noun)).filter(|(count, _)| *count > 0);
    let counted: Vec<_> = counted.map(|(count, noun)| format!("{noun}: {count}")).collect();
    if !counted.is_empty() {
        lines.push(format!("recorded events: {}", counted.join(", ")));
    }
    lines
}

/// Returns a line for each factor that limited the rate, the one of the longest time first.
fn limits(session: &Session) -> Vec<String> {
    #[derive(Default)]
    struct Of {
        seconds: f64,
        bits: f64,
        cuts: usize,
    }
    let mut all: BTreeMap<(&str, &str), Of> = BTreeMap::new();
    let (mut last, mut whole) = (session.started, 0.0);
    let mut cuts = session.cuts.iter().map(|cut| cut.at).peekable();
    for sample in &session.samples {
        let from = std::mem::replace(&mut last, sample.at);
        let count = std::iter::from_fn(|| cuts.next_if(|at| *at <= sample.at)).count();
        if sample.limited_by.is_empty() {
            continue;
        }
        let of = all.entry((&sample.limited_by, limiting(sample))).or_default();
        let seconds = (sample.at - from).max(0.0);
        whole += seconds;
        of.seconds += seconds;
        of.bits += seconds * sample.rate;
        of.cuts += count;
    }
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by(|(_, a), (_, b)| b.seconds.total_cmp(&a.seconds));
    let line = |((limited_by, receiver), of): &((&str, &str), Of)| {
        format!(
            "  {:>5.1} s ({}) at {} on average, {}: {}",
            of.seconds,
            units::percent(of.seconds / whole.max(f64::MIN_POSITIVE)),
            units::rate(of.bits / of.seconds.max(f64::MIN_POSITIVE)),
            units::count(of.cuts as u64, "cut"),
            limit(session, limited_by, receiver)
        )
    };
    let heading = (!all.is_empty()).then(|| "limits of the rate:".to_owned());
    heading.into_iter().chain(all.iter().map(line)).collect()
}
