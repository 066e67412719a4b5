//! Plots of a session of a trace: as text, as a figure, and as a page for browsers.

use crate::page::Record;
use crate::qlog::{Member, Session, progress};
use crate::units;
use faircast::event::{Condition, ReceiverState};
use faircast::{Event, Rate, ReceiverId};

/// Width and height of the plot as text, in characters.
const WIDTH: usize = 72;
const HEIGHT: usize = 6;

/// Parts of a character, from the lowest one.
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Letters of the factors that limit the rate.
const LIMITS: [(&str, char); 4] = [("congestion", 'c'), ("window", 'w'), ("application", 'a'), ("max", 'm')];

/// Returns a plot of the rate, with the cuts and the limits below it.
pub fn text(session: &Session) -> Vec<String> {
    let (from, to) = match (session.samples.first(), session.samples.last()) {
        (Some(first), Some(last)) if last.at > first.at => (first.at, last.at),
        _ => return Vec::new(),
    };
    let column = |at: f64| (((at - from) / (to - from) * WIDTH as f64) as usize).min(WIDTH - 1);
    let mut means = [(0.0, 0.0); WIDTH];
    let mut limits = [' '; WIDTH];
    let mut last = from;
    for sample in &session.samples {
        let seconds = (sample.at - last).max(1e-9);
        // A sample may be longer than a column.
        for mean in &mut means[column(last)..=column(sample.at)] {
            *mean = (mean.0 + sample.rate * seconds, mean.1 + seconds);
        }
        let letter = LIMITS.iter().find(|(name, _)| *name == sample.limited_by).map(|(_, letter)| *letter);
        letter.into_iter().for_each(|letter| limits[column(last)..=column(sample.at)].fill(letter));
        last = sample.at;
    }
    let rates: Vec<f64> = means.iter().map(|(bits, seconds)| bits / seconds.max(1e-9)).collect();
    let top = rates.iter().copied().fold(1.0, f64::max);
    let mut cuts = [' '; WIDTH];
    session
        .cuts
        .iter()
        .filter(|cut| (from..=to).contains(&cut.at))
        .for_each(|cut| cuts[column(cut.at)] = '▽');
    let mut lines: Vec<String> = (0..HEIGHT)
        .map(|row| {
            let bar = |rate: &f64| {
                let parts = rate / top * (HEIGHT * 8) as f64 - ((HEIGHT - 1 - row) * 8) as f64;
                BARS[parts.round().clamp(0.0, 8.0) as usize]
            };
            let label = if row == 0 { units::rate(top) } else { String::new() };
            format!("{label:>14} │{}", rates.iter().map(bar).collect::<String>())
        })
        .collect();
    let end = format!("{to:.1} s");
    lines.push(format!("{:>14} └{}", "0 bit/s", "─".repeat(WIDTH)));
    lines.push(format!("{:>14}  {from:<width$.1}{end}", "", width = WIDTH - end.len()));
    if !session.cuts.is_empty() {
        lines.push(format!("{:>14}  {}", "cuts", String::from_iter(cuts)));
    }
    if limits.iter().any(|letter| *letter != ' ') {
        lines.push(format!("{:>14}  {}", "limit", String::from_iter(limits)));
        lines.push(format!(
            "{:>14}  c congestion, w window of a receiver, a source, m configured maximum",
            ""
        ));
    }
    lines
}

/// Returns a figure of the rates, the cuts and the limits.
#[cfg(feature = "simulator")]
pub fn figure(session: &Session) -> faircast_experiments::plot::Figure {
    use crate::qlog::Sample;
    use faircast_experiments::plot::{Figure, Layer, Panel};
    let points = |value: &dyn Fn(&Sample) -> Option<f64>| -> Vec<(f64, f64)> {
        session.samples.iter().filter_map(|sample| Some((sample.at, value(sample)? / 1e6))).collect()
    };
    let mut layers: Vec<Layer> = periods(session)
        .into_iter()
        .filter(|(limited_by, ..)| *limited_by != "congestion")
        .map(|(limited_by, from, to)| Layer::Span { name: limited_by.to_owned(), from, to })
        .collect();
    layers.push(Layer::Moments {
        name: "cuts".to_owned(),
        at: session.cuts.iter().map(|cut| cut.at).collect(),
    });
    layers.push(Layer::steps("allowed", 1, points(&|sample| sample.allowed)));
    layers.push(Layer::steps(
        if session.sends() { "sent" } else { "received" },
        0,
        points(&|sample| Some(sample.rate)),
    ));
    let title = format!("Rate of {} ({})", session.name, session.role);
    Figure::new(
        title,
        "shaded: another limit than congestion",
        [Panel::over_time("", "rate (Mbit/s)", layers)],
    )
}

/// Returns the periods of each limit.
#[cfg(feature = "simulator")]
fn periods(session: &Session) -> Vec<(&str, f64, f64)> {
    let mut periods: Vec<(&str, f64, f64)> = Vec::new();
    let mut last = session.samples.first().map_or(0.0, |sample| sample.at);
    for sample in &session.samples {
        let from = std::mem::replace(&mut last, sample.at);
        match periods.last_mut() {
            Some(period) if period.0 == sample.limited_by => period.2 = sample.at,
            _ => periods.push((&sample.limited_by, from, sample.at)),
        }
    }
    periods.retain(|(limited_by, ..)| !limited_by.is_empty());
    periods
}

/// Returns a page for browsers with the course of the session; `None` in a build without pages.
pub fn page(session: &Session) -> Option<String> {
    let command = if session.sends() { "send" } else { "recv" };
    let mut record = Record::new(command)?;
    let course = progress(session);
    let bytes = course.last().map_or(0, |last| last.bytes);
    course.into_iter().for_each(|second| record.note(&Event::Progress(second)));
    record.note(&Event::Receivers { receivers: receivers(session) });
    let is_complete = session.verified.is_none_or(|verified| verified >= session.receivers);
    record.end(&serde_json::json!({
        "event": "done", "ok": is_complete, "bytes": bytes, "receivers": session.receivers,
        "verified": session.verified.unwrap_or_default(), "seconds": session.to - session.from,
        "goodput_bps": bytes as f64 * 8.0 / (session.to - session.from).max(1e-9),
    }));
    Some(record.page(&serde_json::Value::Null))
}

/// Returns the last states of the receivers.
fn receivers(session: &Session) -> Vec<ReceiverState> {
    let state = |(id, member): (&String, &Member)| {
        let receiver = ReceiverId::new(u64::from_str_radix(id, 16).ok()?)?;
        let (_, loss, rate) = member.last.unwrap_or_default();
        Some(ReceiverState {
            receiver,
            host: session.host(id).to_owned(),
            address: member.address?,
            state: match &member.failure {
                _ if member.is_done => Condition::Done,
                Some(_) => Condition::Failed,
                None => Condition::Receiving,
            },
            verified_bytes: member.bytes,
            rate: Rate::from_bps(rate),
            loss,
            rtt: None,
            holds: false,
            dropped_local: 0,
            unwritten_bytes: 0,
            repair_symbols: 0,
            busy: None,
            receivers: 1,
            done: u64::from(member.is_done),
            reason: member.failure.clone(),
        })
    };
    session.members.iter().filter_map(state).collect()
}
