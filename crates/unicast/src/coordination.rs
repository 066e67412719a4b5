//! Methods of sharing congestion control among the connections of one host, by name and options: `cocoon,covers=cut`, `tcp-int`,
//! `manager`.

use super::cocoon::{self, Again, BelowWatermark, Compared, Covers, Cuts, Start, TimerOf};
use super::{Entry, macroflow};
use faircast_core::choice;
use faircast_core::spec::{self, Described, Opt, SpecError};
use std::str::FromStr;

/// The method by which the connections of a host share congestion control.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Coordination {
    /// Each connection has its own window. Connections share round-trip times, and adapt their windows when a connection opens
    /// and when one of them detects congestion ([`cocoon`]).
    Windows(cocoon::Config),
    /// All connections share one window ([`macroflow`]).
    Macroflow(macroflow::Config),
}

/// All methods.
pub const CATALOGUE: &[Entry] = &[
    Entry {
        name: "cocoon",
        summary: "separate windows; a connection with congestion notifies the others of its group",
        source: "paper 002, 4",
    },
    Entry {
        name: "ensemble",
        summary: "separate windows; a new connection gets an even share of all windows, and the round-trip time",
        source: "RFC 9040",
    },
    Entry {
        name: "tcp-int",
        summary: "one window for all connections to a host, which send in turn",
        source: "Balakrishnan and others 1998",
    },
    Entry {
        name: "manager",
        summary: "one window for all connections to a host, with spaced packets (Congestion Manager)",
        source: "RFC 3124",
    },
];

const WINDOWS: &[Opt<cocoon::Config>] = &[
    Opt::choice(
        "covers",
        choice!(covers: "all" => Covers::AllMembers, "cut" => Covers::CutMembers),
        "connections whose watermarks a notification moves: all, or those whose windows it cuts",
    ),
    Opt::choice(
        "compared",
        choice!(compared: "before" => Compared::Before, "after" => Compared::After),
        "packets in flight of the losing connection with which those of others are compared: before its cut, or after",
    ),
    Opt::choice(
        "below",
        choice!(below: "repair" => BelowWatermark::RepairOnly, "cut" => BelowWatermark::CutsAlone),
        "effect of a loss below the watermark: a repair alone, or also a cut of the connection's own window",
    ),
    Opt::choice(
        "again",
        choice!(again: "all" => Again::All, "once" => Again::NotTimedOut, "none" => Again::Nobody),
        "connections that repeat their first packet after another's timeout: all with an older packet, only those that have not timed out, or none",
    ),
    Opt::choice(
        "timer",
        choice!(timer: "group" => TimerOf::Group, "own" => TimerOf::Member),
        "connections whose round-trip times set the retransmission timers",
    ),
    Opt::choice(
        "cuts",
        choice!(cuts: "others" => Cuts::Others, "alone" => Cuts::Alone),
        "whether congestion at one connection notifies the others",
    ),
    Opt::choice(
        "start",
        choice!(start: "reference" => Start::Reference, "even" => Start::EvenShare, "alone" => Start::Alone),
        "initial window of a new connection: half of the smallest window, an even share of all, or its own",
    ),
];

const MACROFLOW: &[Opt<macroflow::Config>] = &[Opt::choice(
    "fast-start",
    choice!(fast_start: "off" => macroflow::FastStart::Off, "on" => macroflow::FastStart::On),
    "whether the window after a pause is the former one, minus a half in slow start or a packet otherwise",
)];

impl Coordination {
    /// Returns the method's name, as in [`CATALOGUE`].
    pub const fn name(&self) -> &'static str {
        match self {
            Coordination::Windows(cocoon::Config { start: Start::EvenShare, .. }) => "ensemble",
            Coordination::Windows(_) => "cocoon",
            Coordination::Macroflow(macroflow::Config { law: macroflow::Law::Integrated, .. }) => "tcp-int",
            Coordination::Macroflow(_) => "manager",
        }
    }

    /// Returns the options of this method.
    pub fn options(&self) -> Vec<Described> {
        match self {
            Coordination::Windows(_) => WINDOWS.iter().map(Opt::described).collect(),
            Coordination::Macroflow(_) => MACROFLOW.iter().map(Opt::described).collect(),
        }
    }
}

/// Parses the name of a method, followed by its options, all separated by commas.
impl FromStr for Coordination {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Coordination, SpecError> {
        let (name, options) = spec::split(text);
        let mut it = match name {
            "cocoon" => Coordination::Windows(cocoon::Config::published()),
            "ensemble" => Coordination::Windows(cocoon::Config::rfc9040()),
            "tcp-int" => Coordination::Macroflow(macroflow::Config::integrated()),
            "manager" => Coordination::Macroflow(macroflow::Config::manager()),
            _ => {
                return Err(SpecError::UnknownName {
                    kind: "coordination",
                    name: name.to_owned(),
                    known: CATALOGUE.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
                });
            }
        };
        let of = format!("coordination {name}");
        match &mut it {
            Coordination::Windows(config) => spec::configure(config, options, &of, &[WINDOWS])?,
            Coordination::Macroflow(config) => spec::configure(config, options, &of, &[MACROFLOW])?,
        }
        Ok(it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_coordination_is_found_by_its_name() {
        for entry in CATALOGUE {
            assert_eq!(entry.name.parse::<Coordination>().expect(entry.name).name(), entry.name);
        }
        let message = "cocoons".parse::<Coordination>().expect_err("there is none").to_string();
        assert!(message.contains("cocoon, ensemble, tcp-int, manager"), "{message}");
    }

    #[test]
    fn options_of_cocoon_are_parsed_into_its_configuration() {
        let it: Coordination = "cocoon,covers=cut,again=once,start=alone".parse().expect("these are options");
        let expected = cocoon::Config {
            covers: Covers::CutMembers,
            again: Again::NotTimedOut,
            start: Start::Alone,
            ..cocoon::Config::published()
        };
        assert_eq!(it, Coordination::Windows(expected));
    }
}
