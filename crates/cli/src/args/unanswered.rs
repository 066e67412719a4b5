//! Options of sources without feedback: with `--one-way`, and in formats without feedback.

use crate::failure::Usage;
use crate::values;
use clap::Args;
use faircast::{OneWay, Repeat};
use faircast_core::time::Rate;
use std::time::Duration;

/// Options of sources without feedback.
#[derive(Debug, Clone, Copy, Args)]
pub struct Unanswered {
    /// Send without feedback, for one-way links (diode, satellite): at a fixed --rate, --repeat times, to `recv --one-way`.
    /// The session does not give way to competing flows
    #[arg(help_heading = "Sending without feedback", long)]
    pub one_way: bool,
    /// With --one-way or a format without feedback: the fixed rate, in bit/s, headers included
    #[arg(help_heading = "Sending without feedback", long, value_name = "RATE", value_parser = values::rate)]
    pub rate: Option<Rate>,
    /// With --one-way or a format without feedback: number of generations (`3`), duration (`10m`), or no end (`forever`)
    /// [default: 3; with --cc rlc, two generations for receivers of the base layer]
    #[arg(help_heading = "Sending without feedback", long, value_name = "N|TIME|forever", value_parser = repeat)]
    pub repeat: Option<Repeat>,
    /// With --one-way: length of the outages of the path that a session survives, in seconds; `0` sends blocks one after the other
    /// [default: 3]
    #[arg(help_heading = "Sending without feedback", long, value_name = "SECONDS", value_parser = burst, requires = "one_way")]
    pub burst: Option<Duration>,
    /// With --one-way: repair data that is sent with each generation, in percent [default: 12.5%]
    #[arg(help_heading = "Sending without feedback", long, value_name = "PERCENT", value_parser = values::percent, requires = "one_way")]
    pub overhead: Option<f64>,
}

fn burst(text: &str) -> Result<Duration, values::BadValue> {
    if text == "0" { Ok(Duration::ZERO) } else { values::span(text) }
}

fn repeat(text: &str) -> Result<Repeat, String> {
    match text.parse() {
        _ if text == "forever" => return Ok(Repeat::Forever),
        Ok(0) => {}
        Ok(rounds) => return Ok(Repeat::Rounds(rounds)),
        Err(_) if text.ends_with(|last: char| last.is_ascii_alphabetic()) => {
            return values::span(text).map(Repeat::For).map_err(|error| error.to_string());
        }
        Err(_) => {}
    }
    Err(format!(
        "`{text}` is neither a number of generations nor a duration; write `3`, `90s`, `10m` or `forever`"
    ))
}

impl Unanswered {
    /// Returns the settings of a source without feedback over the native format, or `None` without `--one-way`.
    ///
    /// # Errors
    /// [`Usage`] when an option is missing, or has no effect.
    pub fn one_way(&self) -> Result<Option<OneWay>, Usage> {
        let given = [("--rate", self.rate.is_some()), ("--repeat", self.repeat.is_some())];
        match (self.one_way, self.rate, given.iter().find(|(_, given)| *given)) {
            (false, _, Some((option, _))) => Err(Usage::NeedsOneWay(option)),
            (false, ..) => Ok(None),
            (true, None, _) => Err(Usage::OneWayRate),
            (true, Some(rate), _) => {
                let mut one_way = OneWay::new(rate, self.repeat.unwrap_or(Repeat::Rounds(3)));
                one_way.burst = self.burst.unwrap_or(one_way.burst);
                one_way.overhead = self.overhead.unwrap_or(one_way.overhead);
                Ok(Some(one_way))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeat_option_is_a_count_a_duration_or_forever() {
        assert_eq!(repeat("3"), Ok(Repeat::Rounds(3)));
        assert_eq!(repeat("90s"), Ok(Repeat::For(Duration::from_secs(90))));
        assert_eq!(repeat("forever"), Ok(Repeat::Forever));
        assert_eq!(
            (burst("0").ok(), burst("2.5").ok()),
            (Some(Duration::ZERO), Some(Duration::from_millis(2_500)))
        );
        assert!(repeat("0").is_err() && repeat("often").is_err() && repeat("-1").is_err());
    }
}
