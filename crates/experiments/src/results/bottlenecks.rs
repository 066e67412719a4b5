//! Bottlenecks of a window: links that were almost fully utilised, and links whose queue dropped or marked packets.
//!
//! The counters of every link are stored when a window begins or ends, so the results do not depend on probes or samples. Links
//! with unlimited rate are never bottlenecks.

use super::counters::TimeWindow;
use super::measure::{Metrics, Run};
use super::rows::Field::{Number, Text, Whole};
use super::{Results, Rows};
use crate::table::{BOTTLENECKS, Table};
use faircast_sim::LinkTally;
use std::collections::BTreeMap;

/// Minimum utilisation with which a link is a bottleneck although its queue drops and marks no packets.
const NEARLY_ALL: f64 = 0.95;

/// The load of a link in a window.
#[derive(Debug, Clone, Copy)]
struct Load {
    link: u32,
    tally: LinkTally,
    /// Share of the capacity that was used.
    utilisation: f64,
}

impl Load {
    const fn is_bottleneck(&self) -> bool {
        let LinkTally { overflow, early, marked, .. } = self.tally;
        self.utilisation >= NEARLY_ALL || overflow + early + marked > 0
    }
}

impl Run<'_> {
    /// Returns the counts of a link in a window.
    fn tally(&self, link: u32, window: &TimeWindow) -> LinkTally {
        let count = self.plan.moments().len();
        let moments = self.outcome.link_moments.get(link as usize * count..).unwrap_or_default();
        let whole = self.outcome.links[link as usize].tally();
        let until = |moment| self.until(moments, whole, moment);
        until(window.to).since(&until(window.from))
    }

    /// Returns the bottlenecks of a window, and all other links with a limited rate that carried packets.
    fn loads(&self, window: &TimeWindow) -> (Vec<Load>, Vec<Load>) {
        let load = |link: u32| {
            let tally = self.tally(link, window);
            let capacity = self.capacity(link, window.from, window.to);
            let is_limited = capacity.is_finite() && capacity > 0.0;
            let utilisation = tally.departed_bytes as f64 * 8.0 / capacity;
            (is_limited && tally.offered > 0).then_some(Load { link, tally, utilisation })
        };
        (0..self.outcome.links.len() as u32).filter_map(load).partition(Load::is_bottleneck)
    }

    /// Adds the number of bottlenecks, and the maximum utilisation of the links that are not bottlenecks.
    pub(super) fn bottleneck_metrics(&self, window: &TimeWindow, out: &mut Metrics) {
        let (bottlenecks, others) = self.loads(window);
        out.add("links", "bottlenecks", bottlenecks.len() as f64);
        out.add("links", "others", others.len() as f64);
        let largest = others.iter().map(|load| load.utilisation).fold(0.0, f64::max);
        out.add("links", "others.utilisation", largest);
    }

    /// Returns the bottlenecks of every window, by decreasing utilisation.
    pub(super) fn bottlenecks(&self) -> Table {
        let mut rows = Rows::new("bottlenecks");
        for window in &self.plan.windows {
            let (mut bottlenecks, _) = self.loads(window);
            bottlenecks.sort_by(|a, b| b.utilisation.total_cmp(&a.utilisation));
            for Load { link, tally, utilisation } in bottlenecks.into_iter().take(BOTTLENECKS) {
                rows.push(&[
                    ("link", Text(&self.layout.link_name(link))),
                    ("window", Text(&window.name)),
                    ("utilisation", Number(utilisation)),
                    ("offered", Whole(tally.offered)),
                    ("dropped_full", Whole(tally.overflow)),
                    ("dropped_early", Whole(tally.early)),
                    ("marked", Whole(tally.marked)),
                ]);
            }
        }
        rows.0
    }
}

/// A link that was a bottleneck in some runs. The numbers are means over these runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Bottleneck {
    /// Name of the link, such as `left->right`.
    pub link: String,
    /// Number of runs in which the link was a bottleneck.
    pub runs: usize,
    /// Share of the link's capacity that was used.
    pub utilisation: f64,
    /// Share of the offered packets that a full buffer dropped.
    pub dropped_full: f64,
    /// Share of the offered packets that the queue discipline dropped.
    pub dropped_early: f64,
    /// Share of the offered packets that the queue discipline marked.
    pub marked: f64,
}

impl Results {
    /// Returns the bottlenecks at a point from `warmup` to the end, by decreasing utilisation.
    pub fn bottlenecks(&self, point: usize) -> Vec<Bottleneck> {
        self.table("bottlenecks").map_or_else(Vec::new, |table| of(table, point as u64))
    }
}

/// Returns the bottlenecks of a point in the table of all runs.
pub(super) fn of(table: &Table, point: u64) -> Vec<Bottleneck> {
    let (links, windows) = (table.texts("link"), table.texts("window"));
    let (points, offered, utilisation) =
        (table.wholes("point"), table.wholes("offered"), table.numbers("utilisation"));
    let counts = ["dropped_full", "dropped_early", "marked"].map(|name| table.wholes(name));
    let mut sums: BTreeMap<&str, (usize, f64, [f64; 3])> = BTreeMap::new();
    for row in (0..table.rows()).filter(|&row| points[row] == point && windows[row].is_empty()) {
        let (runs, sum, shares) = sums.entry(&links[row]).or_default();
        *runs += 1;
        *sum += utilisation[row];
        let of_row = counts.map(|counts| counts[row] as f64 / offered[row] as f64);
        shares.iter_mut().zip(of_row).for_each(|(sum, share)| *sum += share);
    }
    let mean = |(link, (runs, sum, shares)): (&str, (usize, f64, [f64; 3]))| {
        let [dropped_full, dropped_early, marked] = shares.map(|sum| sum / runs as f64);
        let utilisation = sum / runs as f64;
        Bottleneck { link: link.to_owned(), runs, utilisation, dropped_full, dropped_early, marked }
    };
    let mut all: Vec<Bottleneck> = sums.into_iter().map(mean).collect();
    all.sort_by(|a, b| b.utilisation.total_cmp(&a.utilisation));
    all
}
