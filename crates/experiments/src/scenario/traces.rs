//! Traces as text: transmissions of a source (`time,bytes`), and rates of a link over time (`time,rate`, or the delivery
//! opportunities of Mahimahi).
//!
//! Each line is an entry. `#` begins a comment. A first line without numbers is a heading. Times are in seconds from the start of
//! the flow or of the change, and never decrease.

use faircast_core::time::{Rate, Span};

/// Maximum number of entries of a trace.
pub const MAX_ENTRIES: usize = 1_000_000;
/// Latest time in a trace, in seconds.
const LAST: f64 = 1e6;
/// Maximum number of bytes of one entry.
const MAX_BYTES: f64 = 1e9;
/// Number of bytes that Mahimahi can send at a delivery opportunity (manual page of `mm-link`).
const OPPORTUNITY: u64 = 1504;

/// Reason why a text is not a valid trace.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TraceError {
    /// The trace has no entry.
    #[error("the trace is empty; it has lines like `{0}`")]
    Empty(&'static str),
    /// A line is not a valid entry.
    #[error("line {line} of the trace, \"{text}\": {why}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// The beginning of the line.
        text: String,
        /// The fault, and the expected form.
        why: String,
    },
    /// The trace has too many entries.
    #[error("the trace has more than {MAX_ENTRIES} entries; shorten it, or combine several entries into one")]
    TooLong,
    /// A trace is to be repeated, but has no duration.
    #[error(
        "the trace begins and ends at {0} s, so it has no duration and cannot be repeated; add a last line with the time of its end"
    )]
    NoTime(f64),
}

/// Rates of a link over time, and the duration of the trace.
#[derive(Debug, Clone, PartialEq)]
pub struct RateTrace {
    /// Times since the start of the trace, each with the rate from this time on.
    pub steps: Vec<(Span, Rate)>,
    /// Duration of the trace, after which it may be repeated.
    pub length: Span,
}

/// Transmissions of a source: the time since the start, and the number of bytes, of each.
pub type SendTrace = Vec<(Span, u64)>;

/// Returns the lines that contain entries, with their line numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let entries = text.lines().zip(1..).filter_map(|(line, number)| {
        let line = line.split('#').next().unwrap_or_default().trim();
        (!line.is_empty()).then_some((number, line))
    });
    let is_heading = |line: &str| line.starts_with(|first: char| first.is_alphabetic() || first == '"');
    entries
        .enumerate()
        .filter(move |(place, (_, line))| *place > 0 || !is_heading(line))
        .map(|(_, entry)| entry)
}

fn refuse(line: usize, text: &str, why: impl Into<String>) -> TraceError {
    TraceError::Line { line, text: text.chars().take(40).collect(), why: why.into() }
}

/// Reads two numbers separated by a comma. The first number is a time that is at least `from`.
fn pair(line: usize, text: &str, from: f64) -> Result<(f64, f64), TraceError> {
    let numbers =
        text.split_once(',').and_then(|(a, b)| Some((a.trim().parse().ok()?, b.trim().parse().ok()?)));
    let (time, value): (f64, f64) = numbers.ok_or_else(|| {
        refuse(line, text, "an entry consists of two numbers that are separated by a comma")
    })?;
    if !(0.0..=LAST).contains(&time) {
        return Err(refuse(line, text, format!("the time must be between 0 and {LAST} seconds")));
    }
    if time < from {
        return Err(refuse(
            line,
            text,
            format!("the time is earlier than {from}, the time of the line above; sort the lines by time"),
        ));
    }
    Ok((time, value))
}

/// Reads the transmissions of a source: `time,bytes`.
///
/// # Errors
/// The fault and its line.
pub fn sends(text: &str) -> Result<SendTrace, TraceError> {
    let mut all = SendTrace::new();
    let mut from = 0.0;
    for (number, line) in lines(text) {
        let (time, bytes) = pair(number, line, from)?;
        if !(1.0..=MAX_BYTES).contains(&bytes) {
            return Err(refuse(
                number,
                line,
                format!("the number of bytes must be between 1 and {MAX_BYTES}"),
            ));
        }
        from = time;
        all.push((Span::from_secs_f64(time), bytes as u64));
        if all.len() > MAX_ENTRIES {
            return Err(TraceError::TooLong);
        }
    }
    if all.is_empty() { Err(TraceError::Empty("0.25,1500")) } else { Ok(all) }
}

/// Reads the rates of a link: lines `time,rate` with rates in bit/s, or lines without a comma in Mahimahi's format. In Mahimahi's
/// format, each line is a millisecond in which one packet can be sent. The number of these opportunities is averaged over `bin`.
/// If a bin has no opportunity, the bin is extended to the next opportunity.
///
/// # Errors
/// The fault and its line.
pub fn rates(text: &str, bin: Span) -> Result<RateTrace, TraceError> {
    match lines(text).next() {
        None => Err(TraceError::Empty("0.25,2e6")),
        Some((_, first)) if first.contains(',') => steps(text),
        Some(_) => opportunities(text, bin),
    }
}

fn steps(text: &str) -> Result<RateTrace, TraceError> {
    let mut steps = Vec::new();
    let mut from = 0.0;
    for (number, line) in lines(text) {
        let (time, rate) = pair(number, line, from)?;
        if !(1.0..=1e12).contains(&rate) {
            let why = "the rate must be between 1 and 1e12 bit/s; to take the link down, add a [[change]] with `state = \"down\"`";
            return Err(refuse(number, line, why));
        }
        from = time;
        steps.push((Span::from_secs_f64(time), Rate::from_bps(rate)));
        if steps.len() > MAX_ENTRIES {
            return Err(TraceError::TooLong);
        }
    }
    Ok(RateTrace { steps, length: Span::from_secs_f64(from) })
}

fn opportunities(text: &str, bin: Span) -> Result<RateTrace, TraceError> {
    let mut steps = Vec::new();
    let (mut began, mut last, mut count, mut entries) = (Span::ZERO, 0_u64, 0_u64, 0);
    for (number, line) in lines(text) {
        let at: u64 = line.parse().map_err(|_| {
            refuse(number, line, "a delivery opportunity must be a whole number of milliseconds")
        })?;
        if at < last || at as f64 > LAST * 1e3 {
            let why = format!(
                "delivery opportunities must be in order of time: not before {last} ms (the line above), and at most {LAST} s"
            );
            return Err(refuse(number, line, why));
        }
        last = at;
        entries += 1;
        if entries > MAX_ENTRIES {
            return Err(TraceError::TooLong);
        }
        let at = Span::from_millis(at);
        if count > 0 && at >= began + bin {
            steps.push((began, Rate::of(count * OPPORTUNITY, bin)));
            (began, count) = (began + bin, 0);
        }
        count += 1;
        if at >= began + bin {
            // If no opportunity occurred for longer than a bin, the interval ends at the present opportunity.
            steps.push((began, Rate::of(count * OPPORTUNITY, at.saturating_sub(began))));
            (began, count) = (at, 0);
        }
    }
    let length = Span::from_millis(last);
    if count > 0 && length > began {
        steps.push((began, Rate::of(count * OPPORTUNITY, length.saturating_sub(began))));
    }
    if length == Span::ZERO { Err(TraceError::NoTime(0.0)) } else { Ok(RateTrace { steps, length }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_traces_may_have_headings_comments_and_spaces() {
        let read = rates("time,rate\n0, 2e6\n# slower\n1.5,1e6 # now\n3,4e6\n", Span::from_millis(100));
        let expected = [(0.0, 2e6), (1.5, 1e6), (3.0, 4e6)]
            .map(|(at, rate)| (Span::from_secs_f64(at), Rate::from_bps(rate)));
        assert_eq!(read, Ok(RateTrace { steps: expected.to_vec(), length: Span::from_secs(3) }));
    }

    #[test]
    fn rates_of_mahimahi_traces_carry_the_bytes_of_the_trace() {
        // There are 10 opportunities in the first 100 ms, none in the next 200 ms, and 5 in the remaining time until 400 ms.
        let mut text: String = (1..=10).map(|n| format!("{}\n", n * 9)).collect();
        text.push_str("310\n320\n330\n340\n400\n");
        let trace = rates(&text, Span::from_millis(100)).expect("it is well formed");
        let ends = trace.steps.iter().skip(1).map(|step| step.0).chain([trace.length]);
        let carried: f64 = trace
            .steps
            .iter()
            .zip(ends)
            .map(|((from, rate), to)| rate.bps() * to.saturating_sub(*from).as_secs_f64() / 8.0)
            .sum();
        assert!((carried / (15.0 * 1504.0) - 1.0).abs() < 1e-6, "{carried} bytes, {trace:?}");
        assert_eq!(trace.steps[0], (Span::ZERO, Rate::from_bps(10.0 * 1504.0 * 8.0 / 0.1)));
        assert!(trace.steps.iter().all(|(_, rate)| rate.bps() > 0.0), "no rate is nothing: {trace:?}");
    }

    #[test]
    fn invalid_trace_is_refused_with_its_line_and_a_fix() {
        let message = |text: &str| rates(text, Span::from_millis(100)).expect_err(text).to_string();
        assert_eq!(
            message("0,1e6\n2,1e6\n1,1e6"),
            "line 3 of the trace, \"1,1e6\": the time is earlier than 2, the time of the line above; sort the lines by time"
        );
        assert!(message("0,0").contains("state = \"down\""));
        assert!(message("5\n4").contains("in order"));
        assert!(message("# nothing").contains("empty"));
        assert!(message("0,1e6\nx,2").contains("two numbers"));
        assert!(message("0\n0").contains("begins and ends at"));
        assert!(sends("0,0").expect_err("nothing to send").to_string().contains("between 1 and"));
        assert!(sends("0,1500\n1,inf").is_err() && sends("nan,1").is_err());
    }

    #[test]
    fn send_trace_is_parsed_with_times_and_bytes() {
        let read = sends("0,1500\n0,300\n0.25,9000");
        assert_eq!(read, Ok(vec![(Span::ZERO, 1500), (Span::ZERO, 300), (Span::from_millis(250), 9000)]));
    }

    #[test]
    fn traces_have_at_most_a_million_entries() {
        let text = "1,1500\n".repeat(MAX_ENTRIES);
        assert_eq!(sends(&text).map(|trace| trace.len()), Ok(MAX_ENTRIES));
        assert_eq!(sends(&(text + "1,1500")), Err(TraceError::TooLong));
    }
}
