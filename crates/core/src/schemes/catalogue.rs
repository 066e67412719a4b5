//! Schemes by name and options: `ormcc`, `ormcc,beta=0.7,start=linear`.

use super::{AnyReceiver, AnySource, each, gmcc, le_sbcc, mca, mca_plus, ormcc, pgmcc, rlc, smcc, tfmcc};
use crate::half::Half;
use crate::packet::{Mark, ReceiverId, Standings};
use crate::rate::start::Doubling;
use crate::rate::{Bounds, Sending, Start};
use crate::time::Span;
use std::fmt;
use std::str::FromStr;

/// A scheme and its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scheme {
    /// Seed 000, chapter 3.
    Ormcc(ormcc::Config),
    /// Seed 000, chapter 2.
    LeSbcc(le_sbcc::Config),
    /// The building-block draft draft-ietf-rmt-bb-pgmcc-03.
    Pgmcc(pgmcc::Config),
    /// Seed 000, appendix D.
    Mca(mca::Config),
    /// Seed 000, chapter 5.
    McaPlus(mca_plus::Config),
    /// RFC 4654.
    Tfmcc(tfmcc::Config),
    /// Seed 000, chapter 4.
    Gmcc(gmcc::Config),
    /// Seed 004.
    Rlc(rlc::Config),
    /// Seed 000, chapter 4: what GMCC is compared with.
    Smcc(smcc::Config),
}

/// A scheme as a user sees it.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// How it is called on a command line.
    pub name: &'static str,
    /// Its number on the wire.
    pub number: u8,
    /// One line about it.
    pub summary: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// What its source does.
    pub sender: &'static str,
    /// What its receivers do.
    pub receiver: &'static str,
    /// Its own options, beside the ones that all schemes have ([`COMMON`]).
    pub options: &'static [Opt],
    /// Where it departs from its description, and why, a sentence each.
    pub deviations: &'static [&'static str],
}

/// An option of a scheme.
#[derive(Debug, Clone, Copy)]
pub struct Opt {
    /// Its name.
    pub name: &'static str,
    /// What it means and which values it takes.
    pub meaning: &'static str,
}

/// All schemes.
pub const CATALOGUE: &[Entry] = &[
    ormcc::Config::ENTRY,
    le_sbcc::Config::ENTRY,
    pgmcc::Config::ENTRY,
    mca::Config::ENTRY,
    mca_plus::Config::ENTRY,
    tfmcc::Config::ENTRY,
    gmcc::Config::ENTRY,
    rlc::Config::ENTRY,
    smcc::Config::ENTRY,
];

/// Options of all schemes.
pub const COMMON: &[Opt] = &[
    Opt { name: "preset", meaning: "seed | transport: the values that the other options change; goes first" },
    Opt { name: "rtt", meaning: "round-trip time assumed before the first sample, in seconds" },
    Opt { name: "start", meaning: "linear | doubling" },
];

/// A scheme's configuration, as text sees it.
pub(super) trait Configure: Sized {
    /// The scheme.
    const ENTRY: Entry;
    /// As its document has it.
    fn seed() -> Self;
    /// For a real network.
    fn transport(packet_size: u16) -> Self;
    /// What all schemes have.
    fn sending(&self) -> &Sending;
    /// The same, to be changed.
    fn sending_mut(&mut self) -> &mut Sending;
    /// Give one of its own options a value; `None` when the value does not fit.
    fn set(&mut self, option: &str, value: &str) -> Option<()>;
    /// The value of one of its own options, as [`Configure::set`] takes it; empty for an option that it does not know.
    fn get(&self, option: &str) -> String;
}

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
    /// How it is described.
    pub const fn entry(&self) -> &'static Entry {
        const fn of<C: Configure>(_: &C) -> &'static Entry {
            &C::ENTRY
        }
        each!(self, Scheme, config => of(config))
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.entry().name
    }

    /// Its number on the wire.
    pub const fn number(&self) -> u8 {
        self.entry().number
    }

    /// The scheme with this number on the wire, as a real network runs it.
    pub fn from_number(number: u8) -> Option<Scheme> {
        CATALOGUE.iter().find(|entry| entry.number == number).and_then(|entry| entry.name.parse().ok())
    }

    /// The scheme for packets of this size on the link.
    #[must_use]
    pub fn with_packet_size(mut self, bytes: u16) -> Scheme {
        let sending = self.sending_mut();
        *sending = sending.with_packet_size(bytes);
        self
    }

    /// The scheme between these limits. A lower limit of zero keeps the scheme's own.
    #[must_use]
    pub fn with_bounds(mut self, bounds: Bounds) -> Scheme {
        let sending = self.sending_mut();
        let min = if bounds.min.is_usable() { bounds.min } else { sending.bounds.min };
        sending.bounds = Bounds { min, max: bounds.max };
        self
    }

    /// How it sends, whatever the scheme.
    pub fn sending(&self) -> &Sending {
        each!(self, Scheme, config => config.sending())
    }

    fn sending_mut(&mut self) -> &mut Sending {
        each!(self, Scheme, config => config.sending_mut())
    }

    /// With a send history as short as they come, for tests that make many sources.
    #[cfg(test)]
    pub(super) fn with_short_history(mut self) -> Scheme {
        self.sending_mut().history_packets = 0;
        self
    }

    /// How many layers it may use.
    pub fn layers(&self) -> u8 {
        match self {
            Scheme::Gmcc(config) => config.layers,
            Scheme::Rlc(config) => config.layers,
            Scheme::Smcc(config) => config.layers,
            _ => 1,
        }
    }

    /// Whether its receivers report to the source, which follows them.
    pub const fn has_feedback(&self) -> bool {
        !matches!(self, Scheme::Rlc(_))
    }

    /// The same with at most so many layers. A scheme of one rate stays one.
    #[must_use]
    pub fn with_layers(mut self, layers: u8) -> Scheme {
        let most = match &mut self {
            Scheme::Gmcc(config) => &mut config.layers,
            Scheme::Rlc(config) => &mut config.layers,
            Scheme::Smcc(config) => &mut config.layers,
            _ => return self,
        };
        *most = layers.min(*most).max(1);
        self
    }

    /// Its limits.
    pub fn bounds(&self) -> Bounds {
        self.sending().bounds
    }

    /// The kind of mark that its packets carry; all have the same.
    pub const fn mark(&self) -> Mark {
        match self {
            Scheme::Ormcc(_) | Scheme::Mca(_) | Scheme::McaPlus(_) => {
                Mark::Representative { id: None, mean: f32::INFINITY, deviation: 0.0, rtt_max: 0.0 }
            }
            Scheme::LeSbcc(_) => Mark::None,
            Scheme::Pgmcc(_) => Mark::Acker(None),
            Scheme::Gmcc(_) => Mark::Layered {
                id: None,
                mean: f32::INFINITY,
                error: 0.0,
                rtt: 0.0,
                above: Half(0),
                updates: 0,
                standings: Standings(0),
            },
            Scheme::Rlc(_) => Mark::Timetable { slot: 0 },
            Scheme::Tfmcc(_) | Scheme::Smcc(_) => Mark::Equation {
                suppress_above: f32::INFINITY,
                rtt_max: 0.0,
                round: 0,
                to: None,
                echo: 0,
                limiting: false,
            },
        }
    }

    /// The value of an option, as text; empty for one that it does not have.
    pub fn get(&self, option: &str) -> String {
        let sending = self.sending();
        match (option, sending.start) {
            ("rtt", _) => number(sending.initial_rtt.as_secs_f64()),
            ("start", Start::Linear) => "linear".into(),
            ("start", Start::Doubling(_)) => "doubling".into(),
            _ => each!(self, Scheme, config => config.get(option)),
        }
    }

    /// Its options that differ from the preset for real networks, as text that [`Scheme::from_str`] takes after the
    /// name: `beta=0.7,start=linear`.
    pub fn options(&self) -> String {
        let preset: Scheme = self.name().parse().expect("a name from the catalogue");
        let common = COMMON.iter().filter(|option| option.name != "preset");
        let all = common.chain(self.entry().options).map(|option| option.name);
        let changed = all.filter(|name| self.get(name) != preset.get(name));
        changed.map(|name| format!("{name}={}", self.get(name))).collect::<Vec<_>>().join(",")
    }

    /// A source.
    pub fn source(&self) -> AnySource {
        match self {
            Scheme::Ormcc(config) => AnySource::Ormcc(ormcc::Source::new(*config)),
            Scheme::LeSbcc(config) => AnySource::LeSbcc(le_sbcc::Source::new(*config)),
            Scheme::Pgmcc(config) => AnySource::Pgmcc(pgmcc::Source::new(*config)),
            Scheme::Tfmcc(config) => AnySource::Tfmcc(tfmcc::Source::new(*config)),
            Scheme::Gmcc(config) => AnySource::Gmcc(gmcc::Source::new(*config)),
            Scheme::Rlc(config) => AnySource::Rlc(rlc::Source::new(*config)),
            Scheme::Smcc(config) => AnySource::Smcc(smcc::Source::new(*config)),
            Scheme::Mca(config) => AnySource::Mca(mca::Source::new(*config)),
            Scheme::McaPlus(config) => AnySource::McaPlus(mca_plus::Source::new(*config)),
        }
    }

    /// A receiver.
    pub fn receiver(&self, me: ReceiverId) -> AnyReceiver {
        match self {
            Scheme::Ormcc(config) => AnyReceiver::Ormcc(ormcc::Receiver::new(me, config)),
            Scheme::LeSbcc(config) => AnyReceiver::LeSbcc(le_sbcc::Receiver::new(me, config)),
            Scheme::Pgmcc(config) => AnyReceiver::Pgmcc(pgmcc::Receiver::new(me, config)),
            Scheme::Tfmcc(config) => AnyReceiver::Tfmcc(tfmcc::Receiver::new(me, config)),
            Scheme::Gmcc(config) => AnyReceiver::Gmcc(gmcc::Receiver::new(me, config)),
            Scheme::Rlc(config) => AnyReceiver::Rlc(rlc::Receiver::new(me, config)),
            Scheme::Smcc(config) => AnyReceiver::Smcc(smcc::Receiver::new(me, config)),
            Scheme::Mca(config) => AnyReceiver::Mca(mca::Receiver::new(me, config)),
            Scheme::McaPlus(config) => AnyReceiver::McaPlus(mca_plus::Receiver::new(me, config)),
        }
    }
}

/// The name, then options, separated by commas.
impl FromStr for Scheme {
    type Err = SchemeError;

    fn from_str(text: &str) -> Result<Scheme, SchemeError> {
        let mut parts = text.split(',').map(str::trim);
        let name = parts.next().unwrap_or_default();
        match name {
            "ormcc" => configured(parts).map(Scheme::Ormcc),
            "le-sbcc" => configured(parts).map(Scheme::LeSbcc),
            "pgmcc" => configured(parts).map(Scheme::Pgmcc),
            "tfmcc" => configured(parts).map(Scheme::Tfmcc),
            "gmcc" => configured(parts).map(Scheme::Gmcc),
            "rlc" => configured(parts).map(Scheme::Rlc),
            "smcc" => configured(parts).map(Scheme::Smcc),
            "mca" => configured(parts).map(Scheme::Mca),
            "mca-plus" => configured(parts).map(Scheme::McaPlus),
            _ => Err(SchemeError::UnknownScheme { name: name.to_owned() }),
        }
    }
}

/// The name and every option that is not the real network's preset.
impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = self.options();
        f.write_str(self.name())?;
        if options.is_empty() { Ok(()) } else { write!(f, ",{options}") }
    }
}

fn configured<'a, C: Configure>(parts: impl Iterator<Item = &'a str>) -> Result<C, SchemeError> {
    let mut config = C::transport(DEFAULT_PACKET_SIZE);
    for part in parts.filter(|part| !part.is_empty()) {
        let (name, value) =
            part.split_once('=').ok_or_else(|| SchemeError::NoValue { option: part.to_owned() })?;
        let Some(option) = COMMON.iter().chain(C::ENTRY.options).find(|option| option.name == name) else {
            return Err(SchemeError::UnknownOption { scheme: C::ENTRY.name, option: name.to_owned() });
        };
        set(&mut config, option.name, value).ok_or_else(|| SchemeError::BadValue {
            option: option.name,
            value: value.to_owned(),
            wanted: option.meaning,
        })?;
    }
    Ok(config)
}

/// `None` when the value does not fit.
fn set<C: Configure>(config: &mut C, option: &str, value: &str) -> Option<()> {
    match (option, value) {
        ("preset", "seed") => *config = C::seed(),
        ("preset", "transport") => *config = C::transport(DEFAULT_PACKET_SIZE),
        ("rtt", _) => config.sending_mut().initial_rtt = Span::from_secs_f64(positive(value)?),
        ("start", "linear") => config.sending_mut().start = Start::Linear,
        ("start", "doubling") => config.sending_mut().start = Start::Doubling(Doubling::default()),
        ("preset" | "start", _) => return None,
        _ => config.set(option, value)?,
    }
    Some(())
}

/// A finite number above zero.
pub(super) fn positive(value: &str) -> Option<f64> {
    value.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0)
}

/// A number between these two, both included.
pub(super) fn within(value: &str, least: f64, most: f64) -> Option<f64> {
    value.parse().ok().filter(|number: &f64| (least..=most).contains(number))
}

/// A number as text, without digits that only binary fractions have.
pub(super) fn number(value: f64) -> String {
    format!("{}", (value * 1e9).round() / 1e9)
}

fn names() -> String {
    CATALOGUE.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}

fn options_of(scheme: &str) -> String {
    let own = CATALOGUE.iter().filter(|entry| entry.name == scheme).flat_map(|entry| entry.options);
    COMMON.iter().chain(own).map(|option| option.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_alone_is_the_transport_preset() {
        assert_eq!("ormcc".parse(), Ok(Scheme::Ormcc(ormcc::Config::transport(1400))));
    }

    #[test]
    fn schemes_of_layers_have_sixteen_at_most() {
        for name in ["gmcc", "rlc", "smcc"] {
            let scheme: Scheme = format!("{name},layers=16").parse().expect("sixteen can be told about");
            assert_eq!(scheme.layers(), 16, "{name}");
            format!("{name},layers=17").parse::<Scheme>().expect_err("seventeen cannot");
        }
    }

    #[test]
    fn options_change_the_preset() {
        let scheme: Scheme = "ormcc,preset=seed,beta=0.7,start=doubling".parse().expect("valid");
        let mut expected = ormcc::Config { beta: 0.7, ..ormcc::Config::seed() };
        expected.sending.start = Start::Doubling(Doubling::default());
        assert_eq!(scheme, Scheme::Ormcc(expected));
    }

    #[test]
    fn every_scheme_is_listed_under_its_own_name_and_number() {
        for entry in CATALOGUE {
            let scheme: Scheme = entry.name.parse().expect("listed");
            assert_eq!((scheme.name(), scheme.number()), (entry.name, entry.number));
            assert_eq!(Scheme::from_number(entry.number), Some(scheme));
        }
        assert_eq!(Scheme::from_number(0), None);
    }

    #[test]
    fn every_option_takes_its_own_value_and_refuses_nonsense() {
        for entry in CATALOGUE {
            for preset in ["seed", "transport"] {
                let scheme: Scheme = format!("{},preset={preset}", entry.name).parse().expect("listed");
                for option in COMMON.iter().chain(entry.options).filter(|option| option.name != "preset") {
                    let (name, value) = (option.name, scheme.get(option.name));
                    assert!(!value.is_empty(), "{}: {name}", entry.name);
                    let again = format!("{},preset={preset},{name}={value}", entry.name).parse();
                    assert_eq!(again, Ok(scheme), "{name}={value}");
                    assert!(format!("{},{name}=-1", entry.name).parse::<Scheme>().is_err(), "{name}");
                }
            }
        }
    }

    #[test]
    fn text_that_a_scheme_gives_about_itself_gives_it_back() {
        for entry in CATALOGUE {
            for preset in ["seed", "transport"] {
                let scheme: Scheme = format!("{},preset={preset}", entry.name).parse().expect("listed");
                let again: Scheme = scheme.to_string().parse().expect("its own text");
                assert_eq!(again.to_string(), scheme.to_string());
                for option in entry.options {
                    assert_eq!(again.get(option.name), scheme.get(option.name), "{}", option.name);
                }
            }
        }
        assert_eq!("ormcc,beta=0.7".parse::<Scheme>().expect("valid").to_string(), "ormcc,beta=0.7");
    }

    #[test]
    fn errors_say_what_would_be_right() {
        let message = |text: &str| text.parse::<Scheme>().expect_err("wrong on purpose").to_string();
        assert!(message("tcp").starts_with("there is no scheme \"tcp\"; choose one of: ormcc"));
        assert!(
            message("ormcc,gamma=1")
                .starts_with("scheme ormcc has no option \"gamma\"; its options are: preset, ")
        );
        assert_eq!(message("ormcc,beta"), "option \"beta\" has no value; write beta=VALUE");
        assert!(message("ormcc,start=fast").contains("it is: linear | doubling"));
    }

    #[test]
    fn layers_can_be_taken_away_and_not_added() {
        let layers = |scheme: &str, layers| {
            let scheme = scheme.parse::<Scheme>().expect("it is in the catalogue").with_layers(layers);
            (scheme.layers(), scheme.options())
        };
        assert_eq!(layers("rlc", 3), (3, "layers=3".to_owned()));
        assert_eq!(layers("gmcc,layers=2", 5).0, 2);
        assert_eq!(layers("ormcc", 5), (1, String::new()));
    }

    #[test]
    fn another_packet_size_keeps_the_lowest_packet_rate() {
        let scheme = Scheme::Ormcc(ormcc::Config::transport(1000)).with_packet_size(500);
        let sending = scheme.sending();
        assert_eq!((sending.packet_size, sending.bounds.min.bps()), (500, 500.0));
    }
}
