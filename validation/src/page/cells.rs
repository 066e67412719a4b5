//! Numbers in tables.

use crate::compare::{Line, Ours, Verdict};

/// Names of the columns of [`cells`].
pub const HEADER: &str = "| quantity | ours | reference | ns-2 again | difference | allowed | |";

/// Formats a number with three or four significant digits.
pub fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if value == value.trunc() && size < 1e9 => format!("{value:.0}"),
        _ if size >= 1000.0 => format!("{value:.0}"),
        _ if size >= 100.0 => format!("{value:.1}"),
        _ if size >= 10.0 => format!("{value:.2}"),
        _ if size >= 0.1 => format!("{value:.3}"),
        _ => format!("{value:.5}"),
    }
}

/// Formats a difference as a percentage of the value `of`.
pub fn relative(value: f64, of: f64) -> String {
    if of == 0.0 { number(value) } else { format!("{:.1} %", 100.0 * value / of.abs()) }
}

/// Formats a mean and a standard deviation.
pub fn spread(mean: f64, deviation: f64) -> String {
    match deviation {
        0.0 => number(mean),
        _ => format!("{} ± {}", number(mean), number(deviation)),
    }
}

/// Formats our value and the number of runs without a value.
pub fn ours(it: &Ours) -> String {
    match (it.mean, it.without) {
        (None, 0) => "not measured".to_owned(),
        (None, _) => "none".to_owned(),
        (Some(mean), 0) => spread(mean, it.deviation),
        (Some(mean), without) => format!("{}, none in {without} runs", spread(mean, it.deviation)),
    }
}

/// Returns one row of a table: quantity, our value, reference, ns-2 with other seeds, difference, tolerance, verdict.
pub fn cells(line: &Line) -> [String; 7] {
    let of = line.deciding().mean();
    let verdict = match line.verdict() {
        Verdict::Inside if line.is_near_reference() => "inside",
        Verdict::Inside => "inside, ns-2 again",
        Verdict::Explained => "explained",
        Verdict::Outside => "OUTSIDE",
        Verdict::Beside => "no verdict",
    };
    let none = || "–".to_owned();
    [
        line.quantity.clone(),
        ours(&line.ours),
        spread(line.theirs.mean(), line.theirs.deviation()),
        line.again.map_or_else(none, |value| spread(value.mean(), value.deviation())),
        line.ours.mean.map_or_else(none, |mean| relative(mean - of, of)),
        line.allowed().map_or_else(none, |allowed| relative(allowed, of)),
        verdict.to_owned(),
    ]
}
