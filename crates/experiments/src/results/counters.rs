//! Counts of flows in a window: packets sent, lost and delivered, cuts and timeouts. The simulator stores the counts when a
//! window begins or ends, so they do not depend on bins or samples.

use super::Rows;
use super::measure::{FlowMember, Metrics, Run};
use super::rows::Field::{Number, Text, Whole};
use crate::scenario::plan::FlowKind;
pub(super) use crate::scenario::plan::TimeWindow;
use crate::stats;
use crate::table::Table;
use faircast_core::time::Time;
use faircast_sim::{DelayCounts, FlowCounts, FlowOutcome};

/// Delivered bits per second. A packet that arrives several times counts once.
#[derive(Debug, Clone, Copy)]
struct Goodput {
    /// Mean goodput over the whole window.
    in_window: f64,
    /// Mean goodput over the part of the window in which the flow and the receiver were present.
    present: f64,
}

impl<'a> Run<'a> {
    /// Returns the counts of a flow or receiver in a window.
    fn counted(&self, counts: &[FlowCounts], window: &TimeWindow) -> FlowCounts {
        let until = |moment| self.until(counts, counts.last().copied().unwrap_or_default(), moment);
        until(window.to).since(&until(window.from))
    }

    /// Returns the count at `end`, when a window begins or ends. `at_moments` has the counts at all such moments within the run;
    /// `whole` is the count at the end of the run.
    pub(super) fn until<T: Copy + Default>(&self, at_moments: &[T], whole: T, end: Time) -> T {
        match self.plan.moments().binary_search(&end) {
            Ok(place) => at_moments.get(place).copied().unwrap_or_default(),
            Err(0) if end == Time::ZERO => T::default(),
            Err(_) => whole,
        }
    }

    /// Returns the number of `moments` within a window. A moment at the end of the window belongs to the next window, except at
    /// the end of the run.
    fn within(&self, moments: &[Time], window: &TimeWindow) -> u64 {
        let before = |moment: Time| {
            if moment >= self.plan.duration {
                moments.len()
            } else {
                moments.partition_point(|at| *at < moment)
            }
        };
        (before(window.to) - before(window.from)) as u64
    }

    /// Adds the counts of a group in a window, as means over its flows.
    pub(super) fn count_metrics(&self, group: usize, window: &TimeWindow, out: &mut Metrics) {
        let name = self.name(group);
        let flows: Vec<&FlowOutcome> = self.group(group).map(|(_, _, flow)| flow).collect();
        if flows.is_empty() {
            return;
        }
        let mut all = [0; 6];
        for flow in &flows {
            let counts = self.counted(&flow.counts, window);
            let (cuts, timeouts) = (self.within(&flow.cuts, window), self.within(&flow.timeouts, window));
            let of_flow = [counts.sent, counts.again, counts.lost, counts.received, cuts, timeouts];
            all.iter_mut().zip(of_flow).for_each(|(sum, count)| *sum += count);
        }
        let [sent, again, lost, received, cuts, timeouts] = all.map(|sum| sum as f64);
        let mut add = |metric: &str, sum: f64| out.add(name, metric, sum / flows.len() as f64);
        add("sent", sent);
        add("lost", lost);
        add("cuts", cuts);
        match self.plan.flows[group].kind {
            FlowKind::Session(_) => out.add(name, "loss", lost / (received + lost)),
            FlowKind::Unicast { .. } => {
                add("again", again);
                add("timeouts", timeouts);
                out.add(name, "loss", lost / sent);
            }
            FlowKind::Datagrams { .. } => out.add(name, "loss", lost / sent),
        }
        let goodputs: Vec<Goodput> =
            self.group(group).map(|(_, index, flow)| self.flow_goodput(index, flow, window)).collect();
        let receivers: Vec<f64> = flows.iter().map(|flow| flow.members.len() as f64).collect();
        let mean = |of: fn(&Goodput) -> f64| {
            let sum: f64 = goodputs.iter().zip(&receivers).map(|(goodput, count)| of(goodput) * count).sum();
            sum / receivers.iter().sum::<f64>()
        };
        out.add(name, "goodput", mean(|goodput| goodput.in_window));
        out.add(name, "goodput.present", mean(|goodput| goodput.present));
    }

    /// Adds the loss and the goodput of some receivers in a window. Receivers beyond `probe.watch` are left out, because they
    /// have no individual counts.
    pub(super) fn part_counts(
        &self,
        name: &str,
        receivers: &[FlowMember<'a>],
        window: &TimeWindow,
        out: &mut Metrics,
    ) {
        let counted: Vec<&FlowMember<'a>> =
            receivers.iter().filter(|who| !who.member.counts.is_empty()).collect();
        let mut sum = FlowCounts::default();
        let (mut in_window, mut present) = (Vec::new(), Vec::new());
        for who in counted {
            let counts = self.counted(&who.member.counts, window);
            sum.received += counts.received;
            sum.lost += counts.lost;
            let goodput = self.goodput(counts.delivered, &[*who], window);
            in_window.push(goodput.in_window);
            present.push(goodput.present);
        }
        out.add(name, "loss", sum.lost as f64 / (sum.received + sum.lost) as f64);
        out.add(name, "goodput", stats::mean(&in_window));
        out.add(name, "goodput.present", stats::mean(&present));
    }

    /// Returns the goodput of a flow: the mean of its receivers' goodput.
    fn flow_goodput(&self, index: usize, flow: &'a FlowOutcome, window: &TimeWindow) -> Goodput {
        let receivers: Vec<FlowMember<'a>> = flow
            .members
            .iter()
            .enumerate()
            .map(|(at, member)| FlowMember { copy: 0, flow: index, at, member })
            .collect();
        if receivers.iter().all(|who| !who.member.counts.is_empty()) {
            let each: Vec<Goodput> = receivers
                .iter()
                .map(|who| self.goodput(self.counted(&who.member.counts, window).delivered, &[*who], window))
                .collect();
            let mean = |of: fn(&Goodput) -> f64| stats::mean(&each.iter().map(of).collect::<Vec<_>>());
            return Goodput { in_window: mean(|it| it.in_window), present: mean(|it| it.present) };
        }
        // Very large sessions have only one total count for all receivers at each moment.
        self.goodput(self.counted(&flow.counts, window).delivered, &receivers, window)
    }

    /// Returns the mean goodput of receivers of one flow. `delivered` is the sum of the numbers of packets that these receivers
    /// received.
    fn goodput(&self, delivered: u64, receivers: &[FlowMember<'a>], window: &TimeWindow) -> Goodput {
        let Some(first) = receivers.first() else { return Goodput { in_window: 0.0, present: 0.0 } };
        let packet = self.plan.flows[self.layout.flows[first.flow].group].packet;
        let bits = delivered as f64 * 8.0 * f64::from(packet);
        let over = |seconds: f64| if seconds > 0.0 { bits / seconds } else { 0.0 };
        let seconds = window.to.since(window.from).as_secs_f64();
        Goodput {
            in_window: over(seconds * receivers.len() as f64),
            present: over(receivers.iter().map(|who| self.seconds_there(who, window)).sum()),
        }
    }

    /// Returns the time in a window for which both a receiver and its flow are present, in seconds.
    fn seconds_there(&self, who: &FlowMember<'_>, window: &TimeWindow) -> f64 {
        let flow = &self.layout.flows[who.flow];
        let (begin, end) = (flow.start.max(window.from), flow.stop.min(window.to));
        self.stays(who).map(|(join, leave)| end.min(leave).since(begin.max(join)).as_secs_f64()).sum()
    }

    /// Returns the counts of every flow in every window.
    pub(super) fn flows(&self) -> Table {
        let mut rows = Rows::new("flows");
        for window in &self.plan.windows {
            let all =
                (0..self.plan.flows.len()).flat_map(|group| self.group(group).map(move |it| (group, it)));
            let all: Vec<_> = all
                .map(|(group, (copy, index, flow))| {
                    (group, copy, flow, self.flow_goodput(index, flow, window))
                })
                .collect();
            let sum: f64 = all.iter().map(|(.., goodput)| goodput.in_window).sum();
            for (group, copy, flow, goodput) in all {
                let counts = self.counted(&flow.counts, window);
                // A session's delays are left out, because they are counted over the whole run, not per window.
                let spans: &[DelayCounts] = match self.plan.flows[group].kind {
                    FlowKind::Unicast { .. } => &flow.members[0].delays,
                    _ => &[],
                };
                let delays = self.delays_in(spans, window);
                let quantile = |share| Number(delays.quantile(share).unwrap_or(f64::NAN));
                rows.push(&[
                    ("flow", Text(self.name(group))),
                    ("copy", Whole(copy)),
                    ("window", Text(&window.name)),
                    ("sent", Whole(counts.sent)),
                    ("again", Whole(counts.again)),
                    ("lost", Whole(counts.lost)),
                    ("received", Whole(counts.received)),
                    ("delivered", Whole(counts.delivered)),
                    ("cuts", Whole(self.within(&flow.cuts, window))),
                    ("timeouts", Whole(self.within(&flow.timeouts, window))),
                    ("goodput", Number(goodput.in_window)),
                    ("goodput_present", Number(goodput.present)),
                    ("share", Number(goodput.in_window / sum)),
                    ("delay", Number(delays.mean().unwrap_or(f64::NAN))),
                    ("delay_p50", quantile(0.5)),
                    ("delay_p95", quantile(0.95)),
                    ("delay_p99", quantile(0.99)),
                ]);
            }
        }
        rows.0
    }
}
