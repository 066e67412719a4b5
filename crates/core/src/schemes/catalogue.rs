//! Schemes by name and options: `ormcc`, `ormcc,beta=0.7,start=linear`.

use super::{CATALOGUE, Scheme};
use crate::node::{RelaySpec, RouterSpec};
use crate::packet::{Flags, Mark};
use crate::rate::start::Doubling;
use crate::rate::{Bounds, Sending, Start};
use crate::spec::{self, Described, Field, NumberRange, Opt, SpecError};
use crate::time::Span;
use std::fmt;
use std::str::FromStr;

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
    /// The source's part.
    pub sender: &'static str,
    /// The receivers' part.
    pub receiver: &'static str,
    /// Whether receivers send feedback.
    pub feedback: Feedback,
    /// When packets state the rate at which they are sent.
    pub stated_rate: StatedRate,
    /// The wire formats in which it can serve receivers, those of other programs with them.
    pub wires: &'static [Wire],
    /// Whether it sends in layers, and how fast they may be.
    pub layers: LayerRates,
    /// Where it departs from its description, and why, a sentence each.
    pub deviations: &'static [&'static str],
}

/// Whether receivers send feedback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feedback {
    /// They report to the source, which follows them.
    Reports,
    /// Never: the source receives no feedback.
    None,
}

/// When packets state the rate at which they are sent ([`crate::packet::Data::rate`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatedRate {
    /// In start-up alone, whose receivers compare it with what arrives.
    StartUp,
    /// Always: receivers need it.
    Always,
}

impl StatedRate {
    /// Returns the rate that a packet with these flags, sent at `rate`, states in bit/s: zero when none.
    pub const fn stated(self, flags: Flags, rate: f32) -> f32 {
        if matches!(self, StatedRate::Always) || flags.has(Flags::STARTING) { rate } else { 0.0 }
    }
}

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// faircast's own.
    Native,
    /// PGM (RFC 3208), with receivers that know PGM alone.
    Pgm,
    /// ALC (RFC 5775), whose receivers never answer.
    Alc,
}

/// How fast the layers of a scheme may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerRates {
    /// There is one rate for all receivers.
    One,
    /// Each layer has a highest rate.
    Bounded,
    /// Each layer has the rate that its receivers' paths carry.
    Adaptive,
}

/// Options of all schemes, in addition to each one's own.
pub(super) const fn common_of<C: Configure>() -> [Opt<C>; 3] {
    [
        Opt::other(
            "preset",
            "published | transport",
            |_| String::new(),
            set_preset,
            "the values that the other options change; goes first",
        ),
        Opt::seconds(
            "rtt",
            NumberRange::POSITIVE,
            initial_rtt(),
            "round-trip time assumed before the first sample",
        ),
        Opt::other(
            "start",
            "linear | doubling",
            start_of,
            set_start,
            "growth of the rate before the first congestion",
        ),
    ]
}

const fn initial_rtt<C: Configure>() -> Field<C, Span> {
    Field {
        get: |config| Some(config.sending().initial_rtt),
        set: |config, rtt| {
            if let Some(rtt) = rtt {
                config.sending_mut().initial_rtt = rtt;
            }
        },
    }
}

fn set_preset<C: Configure>(config: &mut C, preset: &str) -> Option<()> {
    *config = match preset {
        "published" => C::published(),
        "transport" => transport(),
        _ => return None,
    };
    Some(())
}

fn start_of<C: Configure>(config: &C) -> String {
    match config.sending().start {
        Start::Linear => "linear".into(),
        Start::Doubling(_) => "doubling".into(),
    }
}

fn set_start<C: Configure>(config: &mut C, start: &str) -> Option<()> {
    config.sending_mut().start = match start {
        "linear" => Start::Linear,
        "doubling" => Start::Doubling(Doubling::default()),
        _ => return None,
    };
    Some(())
}

/// A scheme's configuration, as text sees it.
pub(super) trait Configure: Sized + 'static {
    /// The scheme.
    const ENTRY: Entry;
    /// Its own options.
    const OPTIONS: &'static [Opt<Self>];
    /// Those that it shares with relatives.
    const MORE: &'static [Opt<Self>] = &[];
    /// The kind of mark that its packets carry; all have the same.
    const MARK: Mark = Mark::None;
    /// As its paper has it.
    fn published() -> Self;
    /// For a real network.
    fn transport(packet_size: u16) -> Self;
    /// Returns the settings that all schemes have.
    fn sending(&self) -> &Sending;
    /// The same, to be changed.
    fn sending_mut(&mut self) -> &mut Sending;
    /// How many layers it may use.
    fn layers(&self) -> u8 {
        1
    }
    /// Another number of them, which a scheme of one rate ignores.
    fn set_layers(&mut self, _layers: u8) {}
    /// Returns the variant that works when receivers report nothing but missing packets.
    #[must_use]
    fn without_answers(self) -> Self {
        self
    }
    /// Returns the factory of its tree's agents, where receivers act for others below them.
    fn agents(&self) -> Option<&dyn RelaySpec> {
        None
    }
    /// Returns the factory of agents in a session whose delivery repairs independently, under new numbers.
    fn agents_beside_delivery(&self) -> Option<Box<dyn RelaySpec>> {
        None
    }
    /// Returns the factory of routers that help it, independently of a session's delivery.
    fn routers(&self) -> Option<Box<dyn RouterSpec>> {
        None
    }
}

/// Packet size before a transport states its own.
const DEFAULT_PACKET_SIZE: u16 = 1400;

/// As a real network runs it, before the size of packets is known.
pub(super) fn transport<C: Configure>() -> C {
    C::transport(DEFAULT_PACKET_SIZE)
}

/// The option that chooses the rate policy, for configurations with a field `policy`.
macro_rules! policy {
    () => {
        $crate::spec::Opt::formed(
            "policy",
            || $crate::spec::Form::list($crate::rate::PolicyChoice::FORMS),
            |config| config.policy.to_string(),
            |config, text| {
                config.policy = $crate::spec::Form::read_any($crate::rate::PolicyChoice::FORMS, text)?;
                Some(())
            },
            "what moves the rate",
        )
    };
}
pub(super) use policy;

/// The steepness of a law of report delays, as an option's field.
macro_rules! spread {
    ($field:ident) => {
        $crate::spec::Field {
            get: |config| Some(f64::from(config.$field.steepness())),
            set: |config, steepness| {
                if let Some(steepness) = steepness {
                    config.$field = $crate::suppress::TruncatedExponential::new(steepness as f32);
                }
            },
        }
    };
}
pub(super) use spread;

/// Options of the measurement of accumulation, for configurations with a field `measuring`.
macro_rules! measuring {
    () => {{
        use $crate::estimate::accumulation::{Carry, Interval};
        use $crate::spec::{Opt, NumberRange};
        use $crate::{choice, field};
        [
            Opt::or("rtt", Opt::seconds(
                "cp",
                NumberRange::of(1e-6, 1e3),
                $crate::spec::Field {
                    get: |config| config.measuring.interval.time(),
                    set: |config, time| config.measuring.interval = time.map_or(Interval::OfRtt, Interval::Every),
                },
                "time between control packets; rtt: a quarter of the round-trip time",
            )),
            Opt::number("high", NumberRange::POSITIVE, field!(measuring.high), "accumulation that is congestion, in packets"),
            Opt::number("low", NumberRange::POSITIVE, field!(measuring.low), "accumulation that ends congestion, in packets"),
            Opt::seconds("floor", NumberRange::PART, field!(measuring.floor), "congestion is at least the data sent in this time"),
            Opt::number("noise", NumberRange::of(0.0, 100.0), field!(measuring.noise), "and at least that of this number of mean differences of two delays in a row"),
            Opt::whole("confirm", 1, 100, field!(measuring.confirm as u8), "control packets in a row that show congestion"),
            Opt::seconds("persist", NumberRange::PART, field!(measuring.persist), "minimum time for which they show it"),
            Opt::choice(
                "carry",
                choice!(measuring.carry: "rest" => Carry::Rest, "all" => Carry::All),
                "what is left after congestion counts with or without the control packet",
            ),
            Opt::seconds("resync", NumberRange::POSITIVE, field!(measuring.resync), "after this time a quiet moment becomes the synchronisation point"),
            Opt::or("never", Opt::whole(
                "reroute",
                1,
                10_000,
                $crate::spec::Field {
                    get: |config| config.measuring.reroute.map(u64::from),
                    set: |config, count| config.measuring.reroute = count.map(|count| count as u16),
                },
                "control packets in a row with an unchanging accumulation: the route became longer",
            )),
        ]
    }};
}
pub(super) use measuring;

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
        CATALOGUE.iter().find(|entry| entry.number == number).and_then(|entry| Scheme::named(entry.name))
    }

    /// Whether it can serve receivers in this wire format.
    pub fn works_over(&self, wire: Wire) -> bool {
        self.entry().wires.contains(&wire)
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

    /// Returns the variant of the scheme that works when receivers report nothing but missing packets.
    #[must_use]
    pub fn without_answers(mut self) -> Scheme {
        each!(&mut self, Scheme, config => *config = config.without_answers());
        self
    }

    /// Returns the factory of its tree's agents; `None` for schemes without one, whose receivers all report to the source.
    pub fn agents(&self) -> Option<&dyn RelaySpec> {
        each!(self, Scheme, config => config.agents())
    }

    /// Returns the factory of agents in a session whose delivery repairs independently: they repair for their children under the old
    /// numbers, and packets that they lack never come to them under these numbers. `None` for schemes without agents, and where parents in
    /// a tree repair everything ([`Scheme::agents`]).
    pub fn agents_beside_delivery(&self) -> Option<Box<dyn RelaySpec>> {
        each!(self, Scheme, config => config.agents_beside_delivery())
    }

    /// Returns the factory of routers that help it on real networks, independently of a session's delivery; `None` for schemes that need no
    /// routers.
    pub fn routers(&self) -> Option<Box<dyn RouterSpec>> {
        each!(self, Scheme, config => config.routers())
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
        each!(self, Scheme, config => config.layers())
    }

    /// Whether its receivers report to the source, which follows them.
    pub const fn has_feedback(&self) -> bool {
        matches!(self.entry().feedback, Feedback::Reports)
    }

    /// Limits the number of layers. A scheme of one rate stays one.
    #[must_use]
    pub fn with_layers(mut self, layers: u8) -> Scheme {
        let layers = layers.min(self.layers()).max(1);
        each!(&mut self, Scheme, config => config.set_layers(layers));
        self
    }

    /// Its limits.
    pub fn bounds(&self) -> Bounds {
        self.sending().bounds
    }

    /// The kind of mark that its packets carry; all have the same.
    pub const fn mark(&self) -> Mark {
        const fn of<C: Configure>(_: &C) -> Mark {
            C::MARK
        }
        each!(self, Scheme, config => of(config))
    }

    /// The value of an option, as text; empty for one that it does not have.
    pub fn get(&self, option: &str) -> String {
        fn of<C: Configure>(config: &C, name: &str) -> String {
            let common = common_of::<C>();
            let mut all = common.iter().chain(C::OPTIONS).chain(C::MORE);
            all.find(|option| option.name == name).map_or(String::new(), |option| option.get(config))
        }
        each!(self, Scheme, config => of(config, option))
    }

    /// Its own options, those of all schemes left out.
    pub fn own_options(&self) -> Vec<Described> {
        fn of<C: Configure>(_: &C) -> Vec<Described> {
            C::OPTIONS.iter().chain(C::MORE).map(Opt::described).collect()
        }
        each!(self, Scheme, config => of(config))
    }

    /// The options of every scheme.
    pub fn common_options(&self) -> Vec<Described> {
        fn of<C: Configure>(_: &C) -> Vec<Described> {
            common_of::<C>().iter().map(Opt::described).collect()
        }
        each!(self, Scheme, config => of(config))
    }

    /// Its options that differ from the preset for real networks, as text that [`Scheme::from_str`] takes after the
    /// name: `beta=0.7,start=linear`.
    pub fn options(&self) -> String {
        fn of<C: Configure>(config: &C) -> String {
            let (preset, common) = (transport::<C>(), common_of::<C>());
            let all = common.iter().chain(C::OPTIONS).chain(C::MORE);
            let values = all.map(|option| (option.name, option.get(config), option.get(&preset)));
            let changed = values.filter(|(_, value, default)| value != default);
            changed.map(|(name, value, _)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
        }
        each!(self, Scheme, config => of(config))
    }
}

/// The name, then options, separated by commas.
impl FromStr for Scheme {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Scheme, SpecError> {
        fn of<C: Configure>(config: &mut C, options: &str) -> Result<(), SpecError> {
            let name = format!("scheme {}", C::ENTRY.name);
            spec::configure(config, options, &name, &[&common_of(), C::OPTIONS, C::MORE])
        }
        let (name, options) = spec::split(text);
        let mut scheme = Scheme::named(name).ok_or_else(|| SpecError::UnknownName {
            kind: "scheme",
            name: name.to_owned(),
            known: CATALOGUE.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
        })?;
        each!(&mut scheme, Scheme, config => of(config, options))?;
        Ok(scheme)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemes::ormcc;

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
        let scheme: Scheme = "ormcc,preset=published,beta=0.7,start=doubling".parse().expect("valid");
        let mut expected = ormcc::Config { beta: 0.7, ..ormcc::Config::published() };
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
            for preset in ["published", "transport"] {
                let scheme: Scheme = format!("{},preset={preset}", entry.name).parse().expect("listed");
                let all = scheme.common_options().into_iter().chain(scheme.own_options());
                for option in all.filter(|option| option.name != "preset") {
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
            for preset in ["published", "transport"] {
                let scheme: Scheme = format!("{},preset={preset}", entry.name).parse().expect("listed");
                let again: Scheme = scheme.to_string().parse().expect("its own text");
                assert_eq!(again.to_string(), scheme.to_string());
                for option in scheme.own_options() {
                    assert_eq!(again.get(option.name), scheme.get(option.name), "{}", option.name);
                }
            }
        }
        assert_eq!("ormcc,beta=0.7".parse::<Scheme>().expect("valid").to_string(), "ormcc,beta=0.7");
    }

    #[test]
    fn errors_suggest_a_valid_value() {
        let message = |text: &str| text.parse::<Scheme>().expect_err("wrong on purpose").to_string();
        assert!(message("tcp").starts_with("there is no scheme \"tcp\"; choose one of: ormcc"));
        assert!(
            message("ormcc,gamma=1")
                .starts_with("scheme ormcc has no option \"gamma\"; its options are: preset, ")
        );
        assert_eq!(message("ormcc,beta"), "option \"beta\" has no value; write beta=VALUE");
        assert!(message("ormcc,start=fast").contains("it is linear | doubling"));
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
