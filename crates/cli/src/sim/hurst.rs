//! `sim hurst`: estimates the Hurst parameter of a given series.

use super::args::SimHurst;
use super::series::{self, SeriesContent};
use crate::failure::{Failure, unwritten};
use crate::json;
use faircast_experiments::analysis::self_similar::hurst::{self, METHODS};
use serde::Serialize;
use std::io::Write;

/// An estimate as JSON.
#[derive(Serialize)]
struct Line {
    event: &'static str,
    method: String,
    hurst: f64,
    margin: Option<f64>,
}

/// Reads the series, estimates the parameter, and prints it.
///
/// # Errors
/// When the series is unusable.
pub fn run(typed: &SimHurst, out: &mut impl Write) -> Result<(), Failure> {
    let path = typed.file.display();
    let bytes = std::fs::read(&typed.file).map_err(Failure::system(format!("read {path}")))?;
    let what = match (typed.bin, series::is_capture(&bytes)) {
        (None, false) => SeriesContent::Column(typed.column.clone()),
        (bin, _) if typed.bytes => SeriesContent::Bytes(bin.unwrap_or(DEFAULT_BIN)),
        (bin, _) => SeriesContent::Packets(bin.unwrap_or(DEFAULT_BIN)),
    };
    let refused = |why: String| Failure::Check(format!("{path}: {why}"));
    let series = series::read(&bytes, &what).map_err(|why| refused(why.to_string()))?;
    let estimates = METHODS.map(|method| (method, hurst::estimate(&series, method)));
    if !typed.json {
        let mean = series.iter().sum::<f64>() / series.len() as f64;
        writeln!(out, "{path}: {} values, {mean:.4} on average\n", series.len()).map_err(unwritten)?;
    }
    for (method, estimate) in estimates {
        let estimate = estimate.map_err(|why| refused(why.to_string()))?;
        let margin = estimate.margin.map_or(String::new(), |margin| format!(" +- {margin:.3}"));
        if typed.json {
            let (method, hurst) = (method.to_string(), estimate.hurst);
            let line = Line { event: "hurst", method, hurst, margin: estimate.margin };
            json::write(out, &line).map_err(unwritten)?;
        } else {
            writeln!(out, "{:<14} H = {:.3}{margin}", method.to_string(), estimate.hurst)
                .map_err(unwritten)?;
        }
    }
    if typed.json {
        return Ok(());
    }
    let note = "\nH is 0.5 for independent values and nears 1 for long memory. Whittle assumes fractional Gaussian noise; \
                local Whittle and wavelets assume nothing about short time scales; R/S and variance-time are biased.";
    writeln!(out, "{note}").map_err(unwritten)
}

/// Default interval of a capture, in seconds.
const DEFAULT_BIN: f64 = 0.01;
