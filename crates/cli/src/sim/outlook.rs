//! Forecast before the first run: stored runs, and the cost of the other runs.

use super::stored::Stored;
use crate::failure::Failure;
use crate::units;
use faircast_experiments::edit::Edit;
use faircast_experiments::run::forecast::Forecast;
use faircast_experiments::run::{RunOptions, Silent, run};
use faircast_experiments::scenario::{Scenario, template};
use std::io::Write;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

/// Prints on standard error the number of stored runs, and the estimated cost of the other runs.
///
/// # Errors
/// When the directory of the stored runs cannot be read.
pub fn announce(
    forecast: &Forecast,
    stored: Option<&Stored>,
    scenarios: &[&Scenario],
) -> Result<(), Failure> {
    if let Some(stored) = stored {
        stored.announce(forecast, scenarios)?;
    }
    if forecast.stored < forecast.runs {
        // A failure to write standard error is ignored.
        let _ = writeln!(std::io::stderr(), "{}", text(forecast, speed()));
    }
    Ok(())
}

/// Describes a forecast. `speed` is the number of link traversals that one thread simulates per second.
fn text(forecast: &Forecast, speed: f64) -> String {
    let left = forecast.runs - forecast.stored;
    let threads = forecast.threads.min(left);
    let seconds = forecast.traversals / (speed * threads as f64);
    let at_a_time = if left > 1 { format!(", {threads} at a time") } else { String::new() };
    format!(
        "{}{at_a_time}: {:.0} simulated seconds, about {} packets over links; {}, up to {} of memory",
        units::count(left as u64, "run"),
        forecast.simulated,
        packets(forecast.traversals),
        duration(seconds),
        units::bytes(forecast.working.saturating_add(forecast.results).saturating_add(PROGRAM)),
    )
}

/// Rounds to two significant digits, the precision of an estimate.
fn rounded(number: f64) -> f64 {
    if number <= 0.0 {
        return 0.0;
    }
    let unit = 10_f64.powf(number.log10().floor() - 1.0);
    (number / unit).round() * unit
}

fn packets(number: f64) -> String {
    let number = rounded(number);
    let scales = [(1e9, " billion"), (1e6, " million"), (1.0, "")];
    let (scale, name) = scales.into_iter().find(|(scale, _)| number >= *scale).unwrap_or((1.0, ""));
    format!("{}{name}", (number / scale * 10.0).round() / 10.0)
}

/// Memory of the program itself, in bytes.
const PROGRAM: u64 = 15_000_000;

/// Formats an estimated duration for people.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 0.95 => "less than 1 s".to_owned(),
        s if s < 100.0 => format!("roughly {:.0} s", s.max(1.0)),
        s if s < 6_000.0 => format!("roughly {:.0} min", s / 60.0),
        s => format!("roughly {:.0} h", s / 3_600.0),
    }
}

/// Minimum duration of the measurement.
const MIN_TIME: Duration = Duration::from_millis(20);

/// Measures the number of link traversals of packets that one thread of this machine simulates per second. The measured scenario
/// is short.
fn speed() -> f64 {
    let text = template("dumbbell").expect("it is a template");
    let mut edit = Edit::of(text).expect("a test reads every template");
    edit.set("duration", "40 s").expect("every scenario has a duration");
    let mut scenario = Scenario::parse(&edit.text(), "dumbbell").expect("a test runs it for other times");
    scenario.set_seeds(vec![1]);
    let options = RunOptions { threads: NonZeroUsize::new(1), ..RunOptions::default() };
    let (began, mut packets) = (Instant::now(), 0);
    while began.elapsed() < MIN_TIME {
        packets += run(&scenario, &options, &Silent).expect("it can be run").totals.traversals;
    }
    packets as f64 / began.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forecast_contains_runs_time_packets_and_memory() {
        let forecast = Forecast {
            runs: 12,
            stored: 2,
            simulated: 1000.0,
            traversals: 3_456_000.0,
            working: 5_000_000,
            results: 1_000_000,
            threads: 2,
        };
        assert_eq!(
            text(&forecast, 1e6),
            "10 runs, 2 at a time: 1000 simulated seconds, about 3.5 million packets over links; \
             roughly 2 s, up to 21.0 MB of memory"
        );
        let times = [0.1, 1.4, 61.0, 149.0, 7_300.0].map(duration);
        assert_eq!(times, ["less than 1 s", "roughly 1 s", "roughly 61 s", "roughly 2 min", "roughly 2 h"]);
        assert_eq!(
            (packets(2.04e9), packets(950.0), packets(0.0)),
            ("2 billion".into(), "950".into(), "0".into())
        );
        assert!(text(&Forecast { runs: 1, ..Forecast::default() }, 1e6).starts_with("1 run: 0 simulated"));
    }

    #[test]
    fn measured_simulation_speed_is_plausible() {
        assert!(speed() > 1000.0);
    }
}
