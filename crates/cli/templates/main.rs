//! Simulates a scenario, prints the metrics, and writes all tables into a directory: `cargo run --release -- scenario.toml results`.

use faircast_experiments::results;
use faircast_experiments::run::{RunOptions, Silent, run};
use faircast_experiments::scenario::{DiagnosticStyle, Scenario};
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let file = arguments.next().unwrap_or_else(|| "scenario.toml".into());
    let directory = arguments.next().unwrap_or_else(|| "results".into());
    match simulate(&file, Path::new(&directory)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn simulate(file: &str, directory: &Path) -> Result<(), String> {
    my_name::register();
    let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let scenario = Scenario::parse(&text, file).map_err(|faults| faults.render(DiagnosticStyle::Plain))?;
    let results = run(&scenario, &RunOptions::default(), &Silent).map_err(|error| error.to_string())?;
    for name in results.metric_names() {
        let values = results.metric(0, name);
        println!("{name} {}", values.iter().sum::<f64>() / values.len() as f64);
    }
    results::write(&results, directory).map_err(|error| error.to_string())?;
    println!("tables: {}", directory.display());
    Ok(())
}
