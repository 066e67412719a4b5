//! Output of a bench: a page with figures, tables as Markdown, and CSV with one row per run.

use super::bench::{Acted, Bench, Row};
use super::loads::Load;
use crate::plot::{Axis, Dot, Figure, Layer, Panel};
use crate::report::block::{self, Block};
use crate::report::text::{Align, Grid};
use crate::stats;
use std::fmt::Write as _;

/// Number of series that a reader can distinguish by colour.
const COLOURS: usize = 7;
/// Maximum number of bars in a panel that has room for the names of the bars.
const NAMES: usize = 9;

const ABOUT: &str = "Every load runs on one bottleneck of 10 Mbit/s under every queue. The delay is the time \
from a packet's arrival at the queue to the end of its transmission, which takes 0.8 ms. \"Acted\" counts \
the runs in which the queue dropped early, marked or reordered packets. If the queue only dropped packets \
when it was full (\"overflow\"), or was not the bottleneck (\"idle\"), the run does not characterize the \
queue, and has a star. Fairness is Jain's index over the flows that should get equal rates. Numbers are \
means over the runs.";

/// Name of a value that is drawn as bars, and the function that computes the value from a row.
type Named<'a> = (&'a str, &'a dyn Fn(&Row) -> f64);

impl Bench {
    fn of(&self, load: usize, queue: usize) -> Vec<&Row> {
        self.rows.iter().filter(|row| row.load == load && row.queue == queue).collect()
    }

    fn mean(&self, load: usize, queue: usize, value: impl Fn(&Row) -> f64) -> f64 {
        let values: Vec<f64> =
            self.of(load, queue).into_iter().map(value).filter(|it| it.is_finite()).collect();
        if values.is_empty() { f64::NAN } else { stats::mean(&values) }
    }

    /// Returns the number of runs in which the queue did not act, and the total number of runs.
    pub fn silent(&self) -> (usize, usize) {
        (self.rows.iter().filter(|row| row.acted != Acted::Yes).count(), self.rows.len())
    }

    /// Returns the table of one load, with a row for each queue.
    pub fn table(&self, load: usize) -> Grid {
        let all: Vec<(usize, usize)> = (0..self.queues.len()).map(|queue| (load, queue)).collect();
        self.grid("queue", &all, |(_, queue)| self.queues[queue].0.clone())
    }

    /// Returns the table of one queue, with a row for each load.
    fn table_of_queue(&self, queue: usize) -> Grid {
        let all: Vec<(usize, usize)> = (0..self.loads.len()).map(|load| (load, queue)).collect();
        self.grid("load", &all, |(load, _)| self.loads[load].name.to_owned())
    }

    fn grid(&self, first: &str, all: &[(usize, usize)], name: impl Fn((usize, usize)) -> String) -> Grid {
        let has =
            |value: fn(&Row) -> f64| all.iter().any(|&(load, queue)| self.mean(load, queue, value) > 0.0);
        let (marks, transfers) = (has(|row| row.marks), has(|row| row.transfer_time));
        let mut columns = vec![(first, Align::Left), ("acted", Align::Left)];
        columns.extend(
            ["delay ms", "95 % ms", "sd packets", "used %", "lost %"].map(|name| (name, Align::Right)),
        );
        if marks {
            columns.push(("marks /s", Align::Right));
        }
        columns.push(("fairness", Align::Right));
        if transfers {
            columns.push(("transfer s", Align::Right));
        }
        columns.push(("kbit/s of a flow", Align::Left));
        let mut grid = Grid::new(&columns);
        for &(load, queue) in all {
            let show = |digits: usize, factor: f64, value: fn(&Row) -> f64| {
                let mean = self.mean(load, queue, value) * factor;
                if mean.is_finite() { format!("{mean:.digits$}") } else { "-".into() }
            };
            let mut row = vec![name((load, queue)), self.acted(load, queue)];
            row.push(show(1, 1e3, |row| row.delay));
            row.push(show(1, 1e3, |row| row.delay_p95));
            row.push(show(1, 1.0, |row| row.deviation));
            row.push(show(1, 100.0, |row| row.utilisation));
            row.push(show(2, 100.0, |row| row.loss));
            if marks {
                row.push(show(1, 1.0 / (0.8 * self.seconds), |row| row.marks));
            }
            row.push(show(3, 1.0, |row| row.fairness));
            if transfers {
                row.push(show(2, 1.0, |row| row.transfer_time));
            }
            row.push(self.rates(load, queue));
            grid.row(row);
        }
        grid
    }

    /// Returns the number of runs in which the queue acted, and the reason why the queue did not act in the other runs.
    fn acted(&self, load: usize, queue: usize) -> String {
        let rows = self.of(load, queue);
        let yes = rows.iter().filter(|row| row.acted == Acted::Yes).count();
        if yes == rows.len() {
            return "yes".into();
        }
        let idle = rows.iter().filter(|row| row.acted == Acted::Idle).count();
        let why = if idle * 2 > rows.len() - yes { "idle" } else { "overflow" };
        if yes == 0 { format!("* {why}") } else { format!("* {yes} of {}, {why}", rows.len()) }
    }

    fn rates(&self, load: usize, queue: usize) -> String {
        let rows = self.of(load, queue);
        let Some(first) = rows.first() else { return String::new() };
        let each = first.rates.iter().enumerate().map(|(group, (name, _))| {
            let rates: Vec<f64> = rows.iter().map(|row| row.rates[group].1).collect();
            let rate = stats::mean(&rates) / 1e3;
            if rate < 10.0 { format!("{name} {rate:.1}") } else { format!("{name} {rate:.0}") }
        });
        each.collect::<Vec<_>>().join(", ")
    }

    /// Returns CSV with one row per run.
    pub fn csv(&self) -> String {
        let mut csv = String::from(
            "load,queue,seed,acted,delay,delay_p95,queue_sd,utilisation,loss,drops,drops_early,marks,reordered,fairness,transfer_time,rates\n",
        );
        for row in &self.rows {
            let acted = match row.acted {
                Acted::Yes => "yes",
                Acted::OverflowOnly => "overflow",
                Acted::Idle => "idle",
            };
            let number = |value: f64| if value.is_finite() { value.to_string() } else { String::new() };
            let numbers = [
                row.delay,
                row.delay_p95,
                row.deviation,
                row.utilisation,
                row.loss,
                row.drops,
                row.early,
                row.marks,
                row.reordered,
                row.fairness,
                row.transfer_time,
            ];
            let rates: Vec<String> =
                row.rates.iter().map(|(name, rate)| format!("{name}={rate:.0}")).collect();
            writeln!(
                csv,
                "{},\"{}\",{},{acted},{},{}",
                self.loads[row.load].name,
                self.queues[row.queue].1,
                row.seed,
                numbers.map(number).join(","),
                rates.join(" ")
            )
            .expect("a string takes everything");
        }
        csv
    }

    /// Returns the page of one queue.
    pub fn page_of(&self, queue: usize, command: &str) -> String {
        let (name, written) = &self.queues[queue];
        let title = format!("The queue {name}");
        let figures = self.figures(&[queue]);
        let mut blocks = vec![
            Block::Heading(1, title.clone()),
            Block::Text("", format!("Written `{written}`. {}", self.what())),
            Block::Text("", ABOUT.into()),
            Block::Command(command.to_owned()),
            Block::Table(self.table_of_queue(queue)),
        ];
        blocks.extend(figures.iter().map(|(name, figure)| Block::Figure(figure, format!("{name}.svg"))));
        blocks.push(Block::Heading(2, "The loads".into()));
        blocks.push(Block::List(self.loads.iter().map(described).collect()));
        block::page(&title, &blocks)
    }

    /// Returns the page of all queues, load by load.
    pub fn page(&self, command: &str) -> String {
        let title = "Comparison of queues";
        let all: Vec<usize> = (0..self.queues.len()).collect();
        let figures = self.figures(&all);
        let queues = self.queues.iter().map(|(name, written)| format!("{name}: {written}")).collect();
        let mut blocks = vec![
            Block::Heading(1, title.into()),
            Block::Text("", self.what()),
            Block::Text("", ABOUT.into()),
            Block::Command(command.to_owned()),
            Block::List(queues),
        ];
        blocks.extend(figures.iter().map(|(name, figure)| Block::Figure(figure, format!("{name}.svg"))));
        for (number, load) in self.loads.iter().enumerate() {
            blocks.push(Block::Heading(2, load.name.into()));
            blocks.push(Block::Text("", described(load)));
            blocks.push(Block::Table(self.table(number)));
        }
        block::page(title, &blocks)
    }

    /// Returns the tables of all loads as Markdown, for inclusion in other pages.
    pub fn markdown(&self) -> String {
        let tables = self.loads.iter().enumerate().map(|(number, load)| {
            format!("**{}**: {}.\n\n{}", load.name, load.about, self.table(number).markdown())
        });
        tables.collect::<Vec<_>>().join("\n")
    }

    fn what(&self) -> String {
        let (silent, all) = self.silent();
        format!(
            "{all} runs of {} s, including a warm-up of a fifth, with {}. In {silent} of these runs a queue did not act.",
            self.seconds,
            if self.seeds.len() == 1 { "1 seed".to_owned() } else { format!("{} seeds", self.seeds.len()) }
        )
    }

    /// Returns the figures of these queues.
    pub fn figures(&self, queues: &[usize]) -> Vec<(String, Figure)> {
        let mut all = vec![("delay".to_owned(), self.delays(queues)), ("use".to_owned(), self.uses(queues))];
        if !self.over_time.is_empty() {
            // A figure has a limited number of colours, and each queue needs its own colour.
            let parts = queues.chunks(COLOURS).enumerate();
            all.extend(parts.map(|(part, queues)| {
                (if part == 0 { "time".to_owned() } else { format!("time-{}", part + 1) }, self.times(queues))
            }));
        }
        all
    }

    /// Draws these values as bars. For a single queue, each panel has about a dozen loads; otherwise each panel has one load.
    fn bars(&self, queues: &[usize], layers: &[Named<'_>], label: &str) -> Vec<Panel> {
        let bar = |place: usize, (load, queue): (usize, usize), value: &dyn Fn(&Row) -> f64| Dot {
            x: place as f64,
            y: self.mean(load, queue, value),
            interval: None,
        };
        let panel = |title: String, places: &[(usize, usize)], names: Vec<String>| Panel {
            title,
            x: Axis::new("").named(names),
            y: Axis::new(label).from(0.0),
            layers: layers
                .iter()
                .enumerate()
                .map(|(colour, (name, value))| {
                    Layer::bars(
                        *name,
                        colour,
                        places.iter().enumerate().map(|(place, at)| bar(place, *at, value)),
                    )
                })
                .collect(),
        };
        if let [queue] = queues {
            let loads: Vec<usize> = (0..self.loads.len()).collect();
            let panels = loads.chunks(7).map(|loads| {
                let places: Vec<_> = loads.iter().map(|load| (*load, *queue)).collect();
                let names = loads.iter().map(|load| self.loads[*load].name.replace('-', " ")).collect();
                panel(String::new(), &places, names)
            });
            return panels.collect();
        }
        let panels = self.loads.iter().enumerate().flat_map(|(load, it)| {
            queues.chunks(NAMES).enumerate().map(move |(part, queues)| (load, it, part, queues))
        });
        let panels = panels.map(|(load, it, part, queues)| {
            let places: Vec<_> = queues.iter().map(|queue| (load, *queue)).collect();
            let names = queues.iter().map(|queue| self.queues[*queue].0.replace(',', " ")).collect();
            panel(
                if part == 0 { it.name.to_owned() } else { format!("{}, more queues", it.name) },
                &places,
                names,
            )
        });
        panels.collect()
    }

    fn delays(&self, queues: &[usize]) -> Figure {
        let layers: [Named<'_>; 2] =
            [("mean", &|row| row.delay * 1e3), ("95 % have at most", &|row| row.delay_p95 * 1e3)];
        Figure::new(
            "Delay in the queue",
            "All packets at the bottleneck, including their transmission.",
            self.bars(queues, &layers, "delay (ms)"),
        )
        .in_columns(if queues.len() == 1 || queues.len() > NAMES / 2 { 1 } else { 2 })
        .with_own_ranges()
    }

    fn uses(&self, queues: &[usize]) -> Figure {
        let layers: [Named<'_>; 3] = [
            ("used", &|row| row.utilisation * 100.0),
            ("fairness", &|row| row.fairness * 100.0),
            ("lost, tenfold", &|row| row.loss * 1000.0),
        ];
        Figure::new(
            "Utilisation, fairness and losses",
            "Utilisation, Jain's index and ten times the fraction of lost packets, in percent.",
            self.bars(queues, &layers, "percent"),
        )
        .in_columns(if queues.len() == 1 || queues.len() > NAMES / 2 { 1 } else { 2 })
    }

    fn times(&self, queues: &[usize]) -> Figure {
        let mut panels = Vec::new();
        for (load, it) in self.loads.iter().enumerate().filter(|(_, load)| load.over_time) {
            let layers = queues.iter().enumerate().filter_map(|(colour, queue)| {
                let (_, _, points) = self.over_time.iter().find(|(l, q, _)| (*l, *q) == (load, *queue))?;
                Some(Layer::line(self.queues[*queue].0.clone(), colour, smoothed(points)))
            });
            panels.push(Panel::over_time(it.name, "packets waiting", layers.collect()));
        }
        Figure::new("Queue over time", "Means over half a second, for the first seed.", panels)
            .in_columns(2)
            .with_own_ranges()
    }
}

fn described(load: &Load) -> String {
    let marks = if load.marks { "; queues that can mark do so" } else { "" };
    format!("{} ({}): {}{marks}.", load.name, load.source, load.about)
}

/// Returns means over half a second.
fn smoothed(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut out: Vec<(f64, f64)> = Vec::new();
    let mut part: Vec<f64> = Vec::new();
    let mut end = 0.5;
    for &(time, packets) in points {
        if time >= end && !part.is_empty() {
            out.push((end - 0.25, stats::mean(&part)));
            part.clear();
            end += 0.5;
        }
        part.push(packets);
    }
    out
}
