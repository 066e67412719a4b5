//! Parameters of an active router, with the paper's symbols and values.

use crate::field;
use crate::spec::{self, NumberRange, Opt, SpecError};
use crate::time::Span;
use std::str::FromStr;

/// The configuration of active routers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// Packets of a session that it keeps, at most.
    pub cache: u16,
    /// Packets that wait at an exit with a limit, at most ("new_queue").
    pub queue: u16,
    /// Part of the rate of a lost packet that it asks for where it sees the loss itself, "Da".
    pub absolute: f64,
    /// Part of the rate that a congestion indication asks for which it sends on, "Dr".
    pub relative: f64,
    /// Part of the least rate that limits grow by with each packet acknowledged, "In".
    pub increase: f64,
    /// The number of requests for less than the least rate, within `exclude_within`, after which a receiver is excluded; never when 0.
    pub exclude: u8,
    /// In this time.
    pub exclude_within: Span,
    /// Requests for a packet that it makes upstream until it gives up; receivers that still want it send further requests.
    pub requests: u8,
    /// The duration of silence after which a receiver holds no other back.
    pub silence: Span,
    /// The duration after its first packet in which an exit acknowledges nothing: other receivers behind it may have less than the first
    /// one to report.
    pub settle: Span,
    /// The duration of silence after which a session is forgotten.
    pub forget: Span,
}

impl Default for Config {
    /// The paper (paper 003, 3).
    fn default() -> Config {
        Config {
            cache: 100,
            queue: 10,
            absolute: 0.8,
            relative: 0.99,
            increase: 0.05,
            // Paper gap: how it is found that a receiver cannot have the least rate.
            exclude: 5,
            exclude_within: Span::from_secs(10),
            requests: 3,
            silence: Span::from_secs(3),
            // Paper gap: how a router that comes to a session learns who is behind its exits.
            settle: Span::from_secs(1),
            forget: Span::from_secs(60),
        }
    }
}

impl Config {
    /// Its parameters as text.
    pub const OPTIONS: &'static [Opt<Config>] = &[
        Opt::whole("cache", 2, 10_000, field!(cache as u16), "packets of a session that are kept, at most"),
        Opt::whole(
            "queue",
            1,
            10_000,
            field!(queue as u16),
            "packets that wait at an exit with a limit, at most",
        ),
        Opt::number(
            "da",
            NumberRange::of(0.01, 1.0),
            field!(absolute),
            "part of the rate of a lost packet that is asked for",
        ),
        Opt::number(
            "dr",
            NumberRange::of(0.01, 1.0),
            field!(relative),
            "part of an indicated rate that is sent on",
        ),
        Opt::number(
            "in",
            NumberRange::of(0.0, 100.0),
            field!(increase),
            "part of the least rate that limits grow by with each packet acknowledged",
        ),
        Opt::whole(
            "exclude",
            0,
            100,
            field!(exclude as u8),
            "requests for less than the least rate until a receiver is excluded; 0: never",
        ),
        Opt::seconds("exclude-within", NumberRange::POSITIVE, field!(exclude_within), "in this time"),
        Opt::whole(
            "requests",
            1,
            100,
            field!(requests as u8),
            "requests for a packet upstream until it is given up",
        ),
        Opt::seconds(
            "silence",
            NumberRange::POSITIVE,
            field!(silence),
            "time of silence after which a receiver no longer holds others back",
        ),
        Opt::seconds(
            "settle",
            NumberRange::up_to(60.0),
            field!(settle),
            "time for which a new exit acknowledges nothing",
        ),
        Opt::seconds(
            "forget",
            NumberRange::POSITIVE,
            field!(forget),
            "time of silence after which a session is forgotten",
        ),
    ];
}

/// Options, separated by commas: `da=0.9,queue=20`; all others have the paper's values.
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
