//! Schemes by name and options: `ormcc`, `ormcc,beta=0.7,start=linear`.

use super::ormcc::{AcrossSwitch, Config, Start, SwitchOn};
use super::{AnyReceiver, AnySource, ormcc};
use crate::packet::ReceiverId;
use crate::rate::Bounds;
use crate::rate::start::Doubling;
use crate::suppress::TruncatedExponential;
use crate::time::{Rate, Span};
use std::str::FromStr;

/// A scheme and its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scheme {
    /// Seed 000, chapter 3.
    Ormcc(Config),
}

/// A scheme as a user sees it.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// How it is called on a command line.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// Its options: name and meaning.
    pub options: &'static [(&'static str, &'static str)],
}

/// All schemes.
pub const CATALOGUE: &[Entry] = &[Entry {
    name: "ormcc",
    summary: "one rate; follows the receiver with the lowest throughput at congestion (AIMD)",
    source: "seed 000, chapter 3",
    options: ORMCC_OPTIONS,
}];

const ORMCC_OPTIONS: &[(&str, &str)] = &[
    ("preset", "seed | transport: the values that the other options change; goes first"),
    ("beta", "part of the throughput at congestion that is kept after a cut, 0.5 to 1"),
    ("alpha", "gain of means at source and receivers, 0 to 1"),
    ("rtt", "round-trip time assumed before the first sample, in seconds"),
    ("window", "over how many seconds throughput at congestion is measured"),
    ("spread", "steepness of the law of report delays, above 0"),
    ("start", "linear | doubling"),
    ("switch-on", "sample | average: what is compared before the representative changes"),
    ("across-switch", "restart | continue: the representative's statistics at a change"),
];

/// Why a scheme could not be chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemeError {
    /// No scheme has this name.
    #[error("there is no scheme {name:?}; choose one of: {known}", known = names())]
    UnknownScheme {
        /// What was asked for.
        name: String,
    },
    /// The scheme has no such option.
    #[error("scheme {scheme} has no option {option:?}; its options are: {known}", known = options_of(scheme))]
    UnknownOption {
        /// The scheme.
        scheme: &'static str,
        /// What was asked for.
        option: String,
    },
    /// An option stands without a value.
    #[error("option {option:?} has no value; write {option}=VALUE")]
    NoValue {
        /// The option.
        option: String,
    },
    /// An option has a value that it cannot take.
    #[error("option {option} cannot be {value:?}; it is: {wanted}")]
    BadValue {
        /// The option.
        option: &'static str,
        /// What was given.
        value: String,
        /// What it takes.
        wanted: &'static str,
    },
}

/// Packet size before a transport says its own.
const DEFAULT_PACKET_SIZE: u16 = 1400;

impl Scheme {
    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Scheme::Ormcc(_) => "ormcc",
        }
    }

    /// Its number on the wire.
    pub const fn number(&self) -> u8 {
        match self {
            Scheme::Ormcc(_) => 1,
        }
    }

    /// The scheme with this number on the wire, as a real network's receiver runs it.
    pub fn from_number(number: u8) -> Option<Scheme> {
        match number {
            1 => Some(Scheme::Ormcc(Config::transport(DEFAULT_PACKET_SIZE))),
            _ => None,
        }
    }

    /// The scheme for packets of this size on the link.
    #[must_use]
    pub fn with_packet_size(mut self, bytes: u16) -> Scheme {
        match &mut self {
            Scheme::Ormcc(config) => {
                let span = config.bounds.min.span_of(u64::from(config.packet_size));
                config.bounds.min = Rate::of(u64::from(bytes), span);
                config.packet_size = bytes;
            }
        }
        self
    }

    /// The scheme between these limits. A lower limit of zero keeps the scheme's own.
    #[must_use]
    pub fn with_bounds(mut self, bounds: Bounds) -> Scheme {
        match &mut self {
            Scheme::Ormcc(config) => {
                let min = if bounds.min.is_usable() { bounds.min } else { config.bounds.min };
                config.bounds = Bounds { min, max: bounds.max };
            }
        }
        self
    }

    /// Its limits.
    pub const fn bounds(&self) -> Bounds {
        match self {
            Scheme::Ormcc(config) => config.bounds,
        }
    }

    /// A source.
    pub fn source(&self) -> AnySource {
        match self {
            Scheme::Ormcc(config) => AnySource::Ormcc(ormcc::Source::new(*config)),
        }
    }

    /// A receiver.
    pub fn receiver(&self, me: ReceiverId) -> AnyReceiver {
        match self {
            Scheme::Ormcc(config) => AnyReceiver::Ormcc(ormcc::Receiver::new(me, config)),
        }
    }
}

/// The name, then options, separated by commas.
impl FromStr for Scheme {
    type Err = SchemeError;

    fn from_str(text: &str) -> Result<Scheme, SchemeError> {
        let mut parts = text.split(',').map(str::trim);
        match parts.next() {
            Some("ormcc") => parse_ormcc(parts).map(Scheme::Ormcc),
            other => Err(SchemeError::UnknownScheme { name: other.unwrap_or_default().to_owned() }),
        }
    }
}

fn parse_ormcc<'a>(parts: impl Iterator<Item = &'a str>) -> Result<Config, SchemeError> {
    let mut config = Config::transport(DEFAULT_PACKET_SIZE);
    for part in parts.filter(|part| !part.is_empty()) {
        let (option, value) =
            part.split_once('=').ok_or_else(|| SchemeError::NoValue { option: part.to_owned() })?;
        let Some(&(name, wanted)) = ORMCC_OPTIONS.iter().find(|(name, _)| *name == option) else {
            return Err(SchemeError::UnknownOption { scheme: "ormcc", option: option.to_owned() });
        };
        set_ormcc(&mut config, name, value).ok_or_else(|| SchemeError::BadValue {
            option: name,
            value: value.to_owned(),
            wanted,
        })?;
    }
    Ok(config)
}

/// `None` when the value does not fit.
fn set_ormcc(config: &mut Config, name: &str, value: &str) -> Option<()> {
    let positive = || value.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    match (name, value) {
        ("preset", "seed") => *config = Config::seed(),
        ("preset", "transport") => *config = Config::transport(DEFAULT_PACKET_SIZE),
        ("beta", _) => config.beta = positive().filter(|beta| (0.5..=1.0).contains(beta))?,
        ("alpha", _) => {
            config.alpha_source = positive().filter(|alpha| *alpha <= 1.0)?;
            config.alpha_receiver = config.alpha_source;
        }
        ("rtt", _) => config.initial_rtt = Span::from_secs_f64(positive()?),
        ("window", _) => config.trac_window = Span::from_secs_f64(positive()?),
        ("spread", _) => {
            config.delay_law = TruncatedExponential::new(positive().filter(|l| *l <= 50.0)? as f32)
        }
        ("start", "linear") => config.start = Start::Linear,
        ("start", "doubling") => config.start = Start::Doubling(Doubling::default()),
        ("switch-on", "sample") => config.switch_on = SwitchOn::Sample,
        ("switch-on", "average") => config.switch_on = SwitchOn::Average,
        ("across-switch", "restart") => config.across_switch = AcrossSwitch::Restart,
        ("across-switch", "continue") => config.across_switch = AcrossSwitch::Continue,
        _ => return None,
    }
    Some(())
}

fn names() -> String {
    CATALOGUE.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}

fn options_of(scheme: &str) -> String {
    let options = CATALOGUE.iter().filter(|entry| entry.name == scheme).flat_map(|entry| entry.options);
    options.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_alone_is_the_transport_preset() {
        assert_eq!("ormcc".parse(), Ok(Scheme::Ormcc(Config::transport(1400))));
    }

    #[test]
    fn options_change_the_preset() {
        let Ok(Scheme::Ormcc(config)) = "ormcc,preset=seed,beta=0.7,start=doubling".parse() else {
            panic!("valid")
        };
        let expected = Config { beta: 0.7, start: Start::Doubling(Doubling::default()), ..Config::seed() };
        assert_eq!(config, expected);
    }

    #[test]
    fn every_listed_option_has_a_value_that_is_taken_and_one_that_is_not() {
        let good = ["seed", "0.6", "0.1", "0.05", "2", "8", "linear", "average", "continue"];
        for (&(option, _), good) in ORMCC_OPTIONS.iter().zip(good) {
            assert!(format!("ormcc,{option}={good}").parse::<Scheme>().is_ok(), "{option}");
            assert!(format!("ormcc,{option}=-1").parse::<Scheme>().is_err(), "{option}");
        }
        assert_eq!(good.len(), ORMCC_OPTIONS.len());
    }

    #[test]
    fn errors_say_what_would_be_right() {
        let message = |text: &str| text.parse::<Scheme>().expect_err("wrong on purpose").to_string();
        assert_eq!(message("tcp"), "there is no scheme \"tcp\"; choose one of: ormcc");
        assert!(
            message("ormcc,gamma=1")
                .starts_with("scheme ormcc has no option \"gamma\"; its options are: preset, ")
        );
        assert_eq!(message("ormcc,beta"), "option \"beta\" has no value; write beta=VALUE");
        assert!(message("ormcc,start=fast").contains("it is: linear | doubling"));
    }

    #[test]
    fn another_packet_size_keeps_the_lowest_packet_rate() {
        let Scheme::Ormcc(config) = Scheme::Ormcc(Config::transport(1000)).with_packet_size(500);
        assert_eq!((config.packet_size, config.bounds.min), (500, Rate::from_bps(500.0)));
    }
}
