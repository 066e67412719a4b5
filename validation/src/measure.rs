//! What is measured of a run.

use crate::networks::Ready;
use faircast_core::time::Time;
use faircast_core::unicast::SenderView;
use faircast_sim::{FlowCounts, FlowId, FlowOutcome, LinkOutcome, LinkSample, Outcome, SourceSample};
use std::collections::BTreeMap;

/// Bits of a packet as goodput counts them.
const BITS: f64 = 8000.0;

/// Values by quantity.
pub type Values = BTreeMap<&'static str, f64>;

/// Mean and standard deviation.
fn moments(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for value in values {
        count += 1.0;
        sum += value;
        squares += value * value;
    }
    if count == 0.0 {
        return (f64::NAN, f64::NAN);
    }
    let mean = sum / count;
    (mean, (squares / count - mean * mean).max(0.0).sqrt())
}

/// Everything that can be said of this run.
pub fn measure(ready: &Ready, outcome: &Outcome) -> Values {
    let mut values = Values::new();
    if let [link] = ready.bottlenecks[..] {
        queue(ready, &outcome.links[link.0 as usize], &mut values);
    }
    links(ready, outcome, &mut values);
    senders(ready, outcome, &mut values);
    if let ([flows], [_]) = (&ready.groups[..], &ready.bottlenecks[..])
        && let [alone] = flows[..]
    {
        window(ready, flow(outcome, alone), &mut values);
    }
    rates(ready, outcome, &mut values);
    match ready.session {
        Some(session) => multicast(ready, flow(outcome, session), &mut values),
        None => values.extend([("multicast rate", 0.0), ("multicast loss", 0.0)]),
    }
    // The variation of a group that gets nothing, the fairness of nothing: no numbers, and no quantities of this run.
    values.retain(|_, value| value.is_finite());
    values
}

fn flow(outcome: &Outcome, id: FlowId) -> &FlowOutcome {
    &outcome.flows[id.0 as usize]
}

fn secs(ready: &Ready) -> f64 {
    ready.window.1.since(ready.window.0).as_secs_f64()
}

/// The probe's samples at both ends of the window.
fn ends(ready: &Ready, link: &LinkOutcome) -> (LinkSample, LinkSample) {
    let at = |moment: Time| {
        let place = link.samples.partition_point(|sample| sample.at < moment);
        link.samples[place.min(link.samples.len() - 1)]
    };
    (at(ready.window.0), at(ready.window.1))
}

fn queue(ready: &Ready, link: &LinkOutcome, values: &mut Values) {
    let inside = || link.samples.iter().filter(|s| (ready.window.0..=ready.window.1).contains(&s.at));
    let (mean, deviation) = moments(inside().map(|sample| f64::from(sample.waiting)));
    values.insert("queue mean", mean);
    values.insert("queue sd", deviation);
    let (empty, _) = moments(inside().map(|sample| f64::from(u8::from(sample.waiting == 0))));
    values.insert("queue empty", empty);
}

/// Means over the bottlenecks.
fn links(ready: &Ready, outcome: &Outcome, values: &mut Values) {
    let outcomes = || ready.bottlenecks.iter().map(|link| &outcome.links[link.0 as usize]);
    let drops = |sample: &LinkSample| sample.counts.overflow + sample.counts.early;
    let mut put = |name, of: &dyn Fn(&LinkOutcome) -> f64| {
        values.insert(name, moments(outcomes().map(of)).0);
    };
    let change = |link: &LinkOutcome, of: &dyn Fn(&LinkSample) -> u64| {
        let (first, last) = ends(ready, link);
        (of(&last) - of(&first)) as f64
    };
    let capacity = ready.rate.bps() * secs(ready);
    let offered = |sample: &LinkSample| sample.counts.offered;
    put("utilisation", &|link| change(link, &|s| s.departed_bytes) * 8.0 / capacity);
    put("arrivals", &|link| change(link, &offered));
    put("drops", &|link| change(link, &drops));
    put("all drops", &|link| (link.counts.overflow + link.counts.early) as f64);
    put("loss", &|link| change(link, &drops) / change(link, &offered));
    put("marks", &|link| change(link, &|s| s.counts.marked) / change(link, &offered));
}

fn view(flow: &FlowOutcome, moment: Time) -> SenderView {
    let found = flow.samples.iter().find_map(|sample| match sample {
        SourceSample::Unicast { at, view } if *at >= moment => Some(*view),
        _ => None,
    });
    found.unwrap_or_default()
}

fn senders(ready: &Ready, outcome: &Outcome, values: &mut Values) {
    let (mut goodputs, mut cuts, mut timeouts, mut counts) = (Vec::new(), 0, 0, [0; 3]);
    let within = |moments: &[Time]| {
        moments.iter().filter(|moment| (ready.window.0..=ready.window.1).contains(moment)).count()
    };
    for id in ready.groups.iter().flatten() {
        let flow = flow(outcome, *id);
        let (first, last) = (view(flow, ready.window.0), view(flow, ready.window.1));
        goodputs.push((last.acked - first.acked) as f64 * BITS / secs(ready));
        cuts += within(&flow.cuts);
        timeouts += within(&flow.timeouts);
        let counted = counted(flow);
        let news = [counted.sent, counted.again, counted.lost];
        counts.iter_mut().zip(news).for_each(|(sum, count)| *sum += count);
    }
    let [sent, again, lost] = counts.map(|count| count as f64);
    values.extend([("flows sent", sent), ("flows sent again", again), ("flows lost", lost)]);
    values.insert("flows loss", lost / sent);
    let sum: f64 = goodputs.iter().sum();
    let squares: f64 = goodputs.iter().map(|rate| rate * rate).sum();
    let flows = goodputs.len() as f64;
    values.insert("goodput", sum);
    values.insert("fairness", sum * sum / (flows * squares));
    values.insert("TCP goodput", sum / flows);
    let per = if ready.bottlenecks.len() > 1 { flows } else { 1.0 };
    values.insert("cuts", cuts as f64 / per);
    values.insert("timeouts", timeouts as f64 / per);
}

/// What a flow counted in the window: from its only moment to the end.
fn counted(flow: &FlowOutcome) -> FlowCounts {
    let before = flow.counts.first().copied().unwrap_or_default();
    flow.counts.last().copied().unwrap_or_default().since(&before)
}

fn window(ready: &Ready, flow: &FlowOutcome, values: &mut Values) {
    let last = view(flow, ready.window.1);
    values.insert("acked", last.acked as f64);
    values.insert("sent", last.sent as f64);
    values.insert("sent again", last.again as f64);
    values.insert("all cuts", last.cuts as f64);
    values.insert("all timeouts", last.timeouts as f64);
    let windows = || {
        flow.samples.iter().filter_map(|sample| match sample {
            SourceSample::Unicast { at, view } if *at >= ready.window.0 => Some(view.window),
            _ => None,
        })
    };
    values.insert("window mean", moments(windows()).0);
    values.insert("window min", windows().fold(f64::INFINITY, f64::min));
    values.insert("window max", windows().fold(0.0, f64::max));
}

/// Bits per second that arrive, group by group, and how they vary.
fn rates(ready: &Ready, outcome: &Outcome, values: &mut Values) {
    let bin = ready.options.bin.as_secs_f64();
    let at = |moment: Time| (moment.as_secs_f64() / bin).round() as usize;
    let inside = at(ready.window.0)..at(ready.window.1);
    let names = [("first rate", "first variation"), ("second rate", "second variation")];
    let mut means = Vec::new();
    for (group, names) in ready.groups.iter().zip(names) {
        let each: Vec<_> = group
            .iter()
            .map(|id| {
                let bins = &flow(outcome, *id).received_bins[inside.clone()];
                moments(bins.iter().map(|bytes| *bytes as f64 * 8.0 / bin))
            })
            .collect();
        let mean = moments(each.iter().map(|(mean, _)| *mean)).0;
        let varied = each.iter().filter(|(mean, _)| *mean > 0.0);
        values.insert(names.0, mean);
        values.insert(names.1, moments(varied.map(|(mean, deviation)| deviation / mean)).0);
        means.push(mean);
    }
    if let [first, second] = means[..] {
        values.insert("ratio", second / first);
    }
}

fn multicast(ready: &Ready, flow: &FlowOutcome, values: &mut Values) {
    let bin = ready.options.bin.as_secs_f64();
    let at = |moment: Time| (moment.as_secs_f64() / bin).round() as usize;
    let inside = at(ready.window.0)..at(ready.window.1);
    let sent: u64 = flow.sent_bins[inside.clone()].iter().sum();
    let received =
        || flow.members.iter().map(|member| member.bins[inside.clone()].iter().sum::<u64>() as f64);
    values.insert("multicast rate", moments(received().map(|bytes| bytes * 8.0 / secs(ready))).0);
    values.insert("multicast loss", moments(received().map(|bytes| 1.0 - bytes / sent as f64)).0);
}
