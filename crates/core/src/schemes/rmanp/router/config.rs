//! Parameters of an active router, with the paper's symbols and values.

use crate::spec::{self, NumberRange, Opt, SpecError};
use crate::time::Span;
use crate::{choice, field};
use std::str::FromStr;

/// Configuration of active routers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// Maximum number of stored packets per session.
    pub cache: u16,
    /// Maximum number of packets that wait at a limited exit, "new_queue".
    pub queue: u16,
    /// Requested rate after a loss that the router itself detects, as a fraction of the sending rate, "Da".
    pub absolute: f64,
    /// Rate of a forwarded congestion indication, as a fraction of the received rate, "Dr".
    pub relative: f64,
    /// Exits that an indication limits.
    pub limit: Limit,
    /// Growth of limits per acknowledged packet, as a fraction of the least rate, "In".
    pub increase: f64,
    /// Number of requests for less than the least rate, over `exclude_within`, after which a receiver is excluded if it has
    /// acknowledged less than this rate; 0 for no
    /// exclusion.
    pub exclude: u8,
    /// Time within which requests for less than the least rate are counted.
    pub exclude_within: Span,
    /// Number of requests that the router sends upstream for a packet before it gives up. Receivers that still need the packet
    /// send further requests.
    pub requests: u8,
    /// Duration of silence after which the router stops waiting for a receiver.
    pub silence: Span,
    /// Duration, from an exit's first packet on, during which the exit acknowledges no packets. The first receiver that reports
    /// may have more packets than other receivers behind the exit.
    pub settle: Span,
    /// Duration of silence after which a session is removed.
    pub forget: Span,
}

/// Exits that a congestion indication limits (paper 003, 2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// All exits. "Each AR controls the rate at its output interfaces setting it to the value contained in the CI with the lowest
    /// value received."
    All,
    /// The exit behind which the congestion is. Receivers behind other exits have no further delay.
    One,
}

impl Default for Config {
    /// Returns the values of the paper (paper 003, 3).
    fn default() -> Config {
        Config {
            cache: 100,
            queue: 10,
            absolute: 0.8,
            relative: 0.99,
            limit: Limit::All,
            increase: 0.05,
            // Paper gap: the paper does not define how to detect that a receiver cannot have the least rate.
            exclude: 5,
            exclude_within: Span::from_secs(30),
            requests: 3,
            silence: Span::from_secs(3),
            // Paper gap: the paper does not define how a router that starts during a session detects the receivers behind its
            // exits.
            settle: Span::from_secs(1),
            forget: Span::from_secs(60),
        }
    }
}

impl Config {
    /// Text form of the parameters.
    pub const OPTIONS: &'static [Opt<Config>] = &[
        Opt::whole("cache", 2, 10_000, field!(cache as u16), "maximum number of cached packets per session"),
        Opt::whole(
            "queue",
            1,
            10_000,
            field!(queue as u16),
            "maximum number of packets that wait at an output with a limit",
        ),
        Opt::number(
            "da",
            NumberRange::of(0.01, 1.0),
            field!(absolute),
            "requested rate, as a fraction of the lost packet's rate",
        ),
        Opt::number(
            "dr",
            NumberRange::of(0.01, 1.0),
            field!(relative),
            "forwarded rate, as a fraction of an indicated rate",
        ),
        Opt::choice(
            "limit",
            choice!(limit: "all" => Limit::All, "one" => Limit::One),
            "outputs that an indication limits: all, as in the paper, or the one towards the congestion",
        ),
        Opt::number(
            "in",
            NumberRange::of(0.0, 100.0),
            field!(increase),
            "growth of limits per acknowledged packet, as a fraction of the minimum rate",
        ),
        Opt::whole(
            "exclude",
            0,
            100,
            field!(exclude as u8),
            "number of requests for less than the minimum rate after which a receiver is excluded; 0: never",
        ),
        Opt::seconds(
            "exclude-within",
            NumberRange::POSITIVE,
            field!(exclude_within),
            "time over which the requests of `exclude` are counted, and in which the receiver acknowledges less than the minimum rate",
        ),
        Opt::whole(
            "requests",
            1,
            100,
            field!(requests as u8),
            "number of upstream requests for a packet after which the router gives it up",
        ),
        Opt::seconds(
            "silence",
            NumberRange::POSITIVE,
            field!(silence),
            "silence after which the router stops waiting for a receiver",
        ),
        Opt::seconds(
            "settle",
            NumberRange::up_to(60.0),
            field!(settle),
            "time for which a new output acknowledges nothing",
        ),
        Opt::seconds(
            "forget",
            NumberRange::POSITIVE,
            field!(forget),
            "silence after which a session is deleted",
        ),
    ];
}

/// Parses options separated by commas, such as `da=0.9,queue=20`. Options that are not given have the paper's values.
impl FromStr for Config {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Config, SpecError> {
        let mut config = Config::default();
        spec::configure(&mut config, text, "router rmanp", &[Config::OPTIONS])?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_replace_published_values_and_errors_suggest_a_fix() {
        assert_eq!("".parse(), Ok(Config::default()));
        assert_eq!("da=0.9,cache=50".parse(), Ok(Config { absolute: 0.9, cache: 50, ..Config::default() }));
        let error = "gain=1".parse::<Config>().expect_err("there is none").to_string();
        assert!(
            error.starts_with("router rmanp has no option \"gain\"; its options are: cache, queue"),
            "{error}"
        );
    }
}
