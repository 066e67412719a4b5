//! Measurements of a run.

use crate::networks::Ready;
use faircast_core::time::Time;
use faircast_sim::{FlowCounts, FlowId, FlowOutcome, LinkOutcome, LinkSample, Outcome, SourceSample};
use std::collections::BTreeMap;

/// Values by quantity; `None` for an undefined value, such as a ratio to zero.
pub type Values = BTreeMap<String, Option<f64>>;

/// Returns the mean and standard deviation; NaN if there are no values.
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

/// Collects values by quantity.
#[derive(Default)]
struct Found(Values);

impl Found {
    fn put(&mut self, quantity: &str, value: f64) {
        self.0.insert(quantity.to_owned(), value.is_finite().then_some(value));
    }

    /// Adds the mean, standard deviation, minimum and maximum of values.
    fn put_all(&mut self, quantity: &str, values: &[f64]) {
        let (mean, deviation) = moments(values.iter().copied());
        self.put(quantity, mean);
        self.put(&format!("{quantity} sd"), deviation);
        self.put(&format!("{quantity} min"), values.iter().copied().fold(f64::INFINITY, f64::min));
        self.put(&format!("{quantity} max"), values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    }
}

/// Returns all values that can be measured in this run.
pub fn measure(ready: &Ready, outcome: &Outcome) -> Values {
    let mut found = Found::default();
    if let [link] = ready.bottlenecks[..] {
        queue(ready, &outcome.links[link.0 as usize], &mut found);
    }
    links(ready, outcome, &mut found);
    senders(ready, outcome, &mut found);
    if let ([flows], [_]) = (&ready.groups[..], &ready.bottlenecks[..])
        && let [alone] = flows.flows[..]
    {
        window(ready, flow(outcome, alone), &mut found);
    }
    rates(ready, outcome, &mut found);
    multicast(ready, outcome, &mut found);
    if let Some((id, useful)) = ready.steady {
        let got = counted(flow(outcome, id)).received as f64;
        found.put("steady goodput", got * useful * 8.0 / secs(ready));
    }
    found.0
}

fn flow(outcome: &Outcome, id: FlowId) -> &FlowOutcome {
    &outcome.flows[id.0 as usize]
}

fn secs(ready: &Ready) -> f64 {
    ready.window.1.since(ready.window.0).as_secs_f64()
}

/// Returns the samples of the probe at the start and end of the window.
fn ends(ready: &Ready, link: &LinkOutcome) -> (LinkSample, LinkSample) {
    let at = |moment: Time| {
        let place = link.samples.partition_point(|sample| sample.at < moment);
        link.samples[place.min(link.samples.len() - 1)]
    };
    (at(ready.window.0), at(ready.window.1))
}

fn queue(ready: &Ready, link: &LinkOutcome, found: &mut Found) {
    let inside = link.samples.iter().filter(|s| (ready.window.0..=ready.window.1).contains(&s.at));
    let mut waiting: Vec<f64> = inside.map(|sample| f64::from(sample.waiting)).collect();
    let (mean, deviation) = moments(waiting.iter().copied());
    found.put("queue mean", mean);
    found.put("queue sd", deviation);
    found.put("queue empty", moments(waiting.iter().map(|packets| f64::from(u8::from(*packets == 0.0)))).0);
    waiting.sort_by(f64::total_cmp);
    // The 95th percentile: the smallest value that 95 % of the samples do not exceed.
    let place = (0.95 * waiting.len() as f64).ceil() as usize;
    found.put("queue p95", waiting.get(place.saturating_sub(1)).copied().unwrap_or(f64::NAN));
    found.put("queue max", waiting.last().copied().unwrap_or(f64::NAN));
}

/// Adds the counts of the bottlenecks.
fn links(ready: &Ready, outcome: &Outcome, found: &mut Found) {
    let outcomes = || ready.bottlenecks.iter().map(|link| &outcome.links[link.0 as usize]);
    let drops = |sample: &LinkSample| sample.counts.overflow + sample.counts.early;
    let mut put = |name, of: &dyn Fn(&LinkOutcome) -> f64| {
        found.put_all(name, &outcomes().map(of).collect::<Vec<_>>());
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

/// Returns the number of moments in the measurement window.
fn within(ready: &Ready, moments: &[Time]) -> f64 {
    moments.iter().filter(|moment| (ready.window.0..=ready.window.1).contains(moment)).count() as f64
}

/// Adds the counts of the flows in the window, as sums over the flows. Goodput is the data delivered in order.
fn senders(ready: &Ready, outcome: &Outcome, found: &mut Found) {
    let (mut goodputs, mut cuts, mut timeouts) = (Vec::new(), Vec::new(), Vec::new());
    let (mut counts, mut shares) = ([0.0; 3], Vec::new());
    for group in &ready.groups {
        let mut sum = 0.0;
        for id in &group.flows {
            let flow = flow(outcome, *id);
            let counted = counted(flow);
            let goodput = counted.delivered as f64 * group.useful * 8.0 / secs(ready);
            goodputs.push(goodput);
            sum += goodput;
            cuts.push(within(ready, &flow.cuts));
            timeouts.push(within(ready, &flow.timeouts));
            let news = [counted.sent, counted.again, counted.lost];
            counts.iter_mut().zip(news).for_each(|(sum, count)| *sum += count as f64);
        }
        shares.push(sum);
    }
    let [sent, again, lost] = counts;
    found.put("flows sent", sent);
    found.put("flows sent again", again);
    found.put("flows lost", lost);
    found.put("flows loss", lost / sent);
    let sum: f64 = goodputs.iter().sum();
    let squares: f64 = goodputs.iter().map(|rate| rate * rate).sum();
    found.put("goodput", sum);
    found.put("first share", shares.first().copied().unwrap_or(0.0) / sum);
    found.put("fairness", sum * sum / (goodputs.len() as f64 * squares));
    found.put_all("TCP goodput", &goodputs);
    found.put("cuts", cuts.iter().sum());
    found.put("timeouts", timeouts.iter().sum());
    found.put_all("cuts per flow", &cuts);
    found.put_all("timeouts per flow", &timeouts);
}

/// Returns the counts of a flow from the start of the window to the end of the run.
fn counted(flow: &FlowOutcome) -> FlowCounts {
    since_window(&flow.counts)
}

fn since_window(counts: &[FlowCounts]) -> FlowCounts {
    let before = counts.first().copied().unwrap_or_default();
    counts.last().copied().unwrap_or_default().since(&before)
}

/// Adds the counts of a single flow over the whole run, and its congestion window.
fn window(ready: &Ready, flow: &FlowOutcome, found: &mut Found) {
    let all = flow.counts.last().copied().unwrap_or_default();
    let delivered = all.delivered as f64;
    found.put("acked", delivered);
    found.put("all goodput", delivered * ready.groups[0].useful * 8.0 / ready.window.1.as_secs_f64());
    found.put("all sent", all.sent as f64);
    found.put("all sent again", all.again as f64);
    found.put("all cuts", flow.cuts.len() as f64);
    found.put("all timeouts", flow.timeouts.len() as f64);
    let windows = || {
        flow.samples.iter().filter_map(|sample| match sample {
            SourceSample::Unicast { at, view } if *at >= ready.window.0 => Some(view.window),
            _ => None,
        })
    };
    found.put("window mean", moments(windows()).0);
    found.put("window min", windows().fold(f64::INFINITY, f64::min));
    found.put("window max", windows().fold(0.0, f64::max));
}

/// Adds the received rate of each group, in bits per second, and its variation.
fn rates(ready: &Ready, outcome: &Outcome, found: &mut Found) {
    let bin = ready.options.bin.as_secs_f64();
    let at = |moment: Time| (moment.as_secs_f64() / bin).round() as usize;
    let inside = at(ready.window.0)..at(ready.window.1);
    let names = [("first rate", "first variation"), ("second rate", "second variation")];
    let mut means = Vec::new();
    for (group, names) in ready.groups.iter().zip(names) {
        let each: Vec<_> = group
            .flows
            .iter()
            .map(|id| {
                let bins = &flow(outcome, *id).received_bins[inside.clone()];
                moments(bins.iter().map(|bytes| *bytes as f64 * 8.0 / bin))
            })
            .collect();
        let mean = moments(each.iter().map(|(mean, _)| *mean)).0;
        let varied = each.iter().filter(|(mean, _)| *mean > 0.0);
        found.put(names.0, mean);
        found.put(names.1, moments(varied.map(|(mean, deviation)| deviation / mean)).0);
        means.push(mean);
    }
    if let [first, second] = means[..] {
        found.put("ratio", second / first);
    }
}

/// Adds the counts of members of the multicast session, if the network has one.
fn multicast(ready: &Ready, outcome: &Outcome, found: &mut Found) {
    let members: Vec<FlowCounts> = match ready.session {
        Some(id) => flow(outcome, id).members.iter().map(|member| since_window(&member.counts)).collect(),
        None => vec![FlowCounts::default()],
    };
    let rate = |counts: &FlowCounts| counts.received as f64 * ready.session_bits / secs(ready);
    let loss = |counts: &FlowCounts| counts.lost as f64 / (counts.received + counts.lost).max(1) as f64;
    found.put_all("multicast rate", &members.iter().map(rate).collect::<Vec<_>>());
    found.put_all("multicast loss", &members.iter().map(loss).collect::<Vec<_>>());
}
