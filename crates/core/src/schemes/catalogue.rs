//! The catalogue: schemes by name and options, such as `ormcc` or `ormcc,beta=0.7,start=linear`.

use super::{CATALOGUE, Scheme};
use crate::node::{RelaySpec, RouterSpec};
use crate::packet::{Flags, Mark};
use crate::rate::start::Doubling;
use crate::rate::{Bounds, Losses, Sending, Start};
use crate::spec::{self, Described, Field, NumberRange, Opt, SpecError};
use crate::time::Span;
use std::fmt;
use std::str::FromStr;

/// The description of a scheme for users.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Name on a command line.
    pub name: &'static str,
    /// Number in packets.
    pub number: u8,
    /// Summary of one line.
    pub summary: &'static str,
    /// Publication that describes the scheme.
    pub source: &'static str,
    /// Function of the source.
    pub sender: &'static str,
    /// Function of the receivers.
    pub receiver: &'static str,
    /// Whether receivers send feedback.
    pub feedback: Feedback,
    /// The packets that state the rate at which they are sent.
    pub stated_rate: StatedRate,
    /// The wire formats in which the scheme can serve receivers. Some formats are those of other programs.
    pub wires: &'static [Wire],
    /// Whether the scheme sends in layers, and if so, which rates the layers may have.
    pub layers: LayerRates,
    /// Deviations of the scheme from its publication, one sentence each; a sentence contains the reason.
    pub deviations: &'static [&'static str],
}

/// Whether receivers send feedback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feedback {
    /// Receivers report to the source, which adapts its rate to the reports.
    Reports,
    /// The source receives no feedback.
    None,
}

/// The packets that state the rate at which they are sent ([`crate::packet::Data::rate`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatedRate {
    /// Packets of the start-up. Receivers compare the stated rate with the arrival rate.
    StartUp,
    /// All packets, because receivers need the rate.
    Always,
}

impl StatedRate {
    /// Returns the rate that a packet with these flags states, in bit/s, if it is sent at `rate`; zero if the packet states no
    /// rate.
    pub const fn stated(self, flags: Flags, rate: f32) -> f32 {
        if matches!(self, StatedRate::Always) || flags.has(Flags::STARTING) { rate } else { 0.0 }
    }
}

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// The wire format of faircast.
    Native,
    /// PGM (RFC 3208), for receivers that support only PGM.
    Pgm,
    /// ALC (RFC 5775), whose receivers send no feedback.
    Alc,
}

/// The possible rates of a scheme's layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerRates {
    /// One rate for all receivers.
    One,
    /// Each layer has a maximum rate.
    Bounded,
    /// Each layer has a rate of its own, which the paths of its receivers can carry.
    Adaptive,
}

/// Returns the options that all schemes have.
pub(super) const fn common_of<C: Configure>() -> [Opt<C>; 3] {
    [
        Opt::other(
            "preset",
            "published | transport",
            |_| String::new(),
            set_preset,
            "base values that the other options change; must be the first option",
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
            "growth of the rate before the first congestion event",
        ),
    ]
}

/// Returns the option that selects the losses which count, for schemes that have it.
const fn losses_of<C: Configure>() -> Option<Opt<C>> {
    if !C::TOLERATES_LOSSES {
        return None;
    }
    Some(Opt::other(
        "loss",
        "congestion | tolerant",
        |config: &C| match config.sending().losses {
            Losses::All => "congestion".into(),
            Losses::Queued => "tolerant".into(),
        },
        |config, losses| {
            config.sending_mut().losses = match losses {
                "congestion" => Losses::All,
                "tolerant" => Losses::Queued,
                _ => return None,
            };
            Some(())
        },
        "whether every loss is congestion, or only a loss near which packets are queued",
    ))
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

/// The configuration of a scheme, as set by text options.
pub(super) trait Configure: Sized + 'static {
    /// The description of the scheme.
    const ENTRY: Entry;
    /// The options of this scheme alone.
    const OPTIONS: &'static [Opt<Self>];
    /// The options shared with related schemes.
    const MORE: &'static [Opt<Self>] = &[];
    /// The kind of mark in all packets of the scheme.
    const MARK: Mark = Mark::None;
    /// Whether the scheme has the option `loss`: it has one rate, and only its receivers detect losses.
    const TOLERATES_LOSSES: bool = matches!(Self::ENTRY.layers, LayerRates::One);
    /// Returns the configuration of the paper.
    fn published() -> Self;
    /// Returns the configuration for a real network.
    fn transport(packet_size: u16) -> Self;
    /// Returns the settings that all schemes have.
    fn sending(&self) -> &Sending;
    /// Returns a mutable reference to the settings that all schemes have.
    fn sending_mut(&mut self) -> &mut Sending;
    /// Returns the maximum number of layers.
    fn layers(&self) -> u8 {
        1
    }
    /// Sets the maximum number of layers. A scheme without layers ignores this number.
    fn set_layers(&mut self, _layers: u8) {}
    /// Returns the variant for receivers that report only missing packets.
    #[must_use]
    fn without_answers(self) -> Self {
        self
    }
    /// Returns the factory of the tree's agents, if the scheme has agents: receivers that act for their descendants.
    fn agents(&self) -> Option<&dyn RelaySpec> {
        None
    }
    /// Returns the factory of agents for a session whose delivery repairs losses independently of the scheme: a repair gets a new
    /// packet number.
    fn agents_beside_delivery(&self) -> Option<Box<dyn RelaySpec>> {
        None
    }
    /// Returns the factory of routers that help the scheme and work with any delivery.
    fn routers(&self) -> Option<Box<dyn RouterSpec>> {
        None
    }
}

/// Packet size in bytes that a scheme has until a transport sets another size.
const DEFAULT_PACKET_SIZE: u16 = 1400;

/// Returns the configuration for a real network, before the packet size is known.
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
                let read = $crate::rate::PolicyChoice::read(text)?;
                Some(read.map(|policy| config.policy = policy))
            },
            "rule of the rate's growth and reduction",
        )
    };
}
pub(super) use policy;

/// An option for a field that contains a distribution of report delays: the option sets the steepness.
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
            Opt::number("high", NumberRange::POSITIVE, field!(measuring.high), "accumulation, in packets, that counts as congestion"),
            Opt::number("low", NumberRange::POSITIVE, field!(measuring.low), "accumulation, in packets, at which congestion ends"),
            Opt::seconds("floor", NumberRange::PART, field!(measuring.floor), "minimum accumulation that counts as congestion, as the time in which the source sends this amount"),
            Opt::number("noise", NumberRange::of(0.0, 100.0), field!(measuring.noise), "addition to floor, as a multiple of the mean difference between consecutive delays"),
            Opt::whole("confirm", 1, 100, field!(measuring.confirm as u8), "number of consecutive control packets that must show congestion"),
            Opt::seconds("persist", NumberRange::PART, field!(measuring.persist), "minimum time for which control packets must show congestion"),
            Opt::choice(
                "carry",
                choice!(measuring.carry: "rest" => Carry::Rest, "all" => Carry::All),
                "whether the accumulation that remains after congestion includes the control packet",
            ),
            Opt::seconds("resync", NumberRange::POSITIVE, field!(measuring.resync), "time after which a moment without congestion becomes the synchronisation point"),
            Opt::or("never", Opt::whole(
                "reroute",
                1,
                10_000,
                $crate::spec::Field {
                    get: |config| config.measuring.reroute.map(u64::from),
                    set: |config, count| config.measuring.reroute = count.map(|count| count as u16),
                },
                "number of consecutive control packets with a constant accumulation after which the route counts as longer",
            )),
        ]
    }};
}
pub(super) use measuring;

impl Scheme {
    /// Returns the scheme's description.
    pub const fn entry(&self) -> &'static Entry {
        const fn of<C: Configure>(_: &C) -> &'static Entry {
            &C::ENTRY
        }
        each!(self, Scheme, config => of(config))
    }

    /// Returns the scheme's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Scheme::Own(config) => config.own.name(),
            _ => self.entry().name,
        }
    }

    /// Returns the scheme's number in packets.
    pub const fn number(&self) -> u8 {
        self.entry().number
    }

    /// Returns the scheme with this number, configured for a real network.
    pub fn from_number(number: u8) -> Option<Scheme> {
        CATALOGUE.iter().find(|entry| entry.number == number).and_then(|entry| Scheme::named(entry.name))
    }

    /// Returns whether the scheme can serve receivers in this wire format.
    pub fn works_over(&self, wire: Wire) -> bool {
        self.entry().wires.contains(&wire)
    }

    /// Returns the scheme for packets of this size on the link.
    #[must_use]
    pub fn with_packet_size(mut self, bytes: u16) -> Scheme {
        let sending = self.sending_mut();
        *sending = sending.with_packet_size(bytes);
        self
    }

    /// Returns the scheme with these limits of the rate. A minimum of zero leaves the scheme's minimum unchanged.
    #[must_use]
    pub fn with_bounds(mut self, bounds: Bounds) -> Scheme {
        let sending = self.sending_mut();
        let min = if bounds.min.is_usable() { bounds.min } else { sending.bounds.min };
        sending.bounds = Bounds { min, max: bounds.max };
        self
    }

    /// Returns the variant of the scheme for receivers that report only missing packets.
    #[must_use]
    pub fn without_answers(mut self) -> Scheme {
        each!(&mut self, Scheme, config => *config = config.without_answers());
        self
    }

    /// Returns the factory of the tree's agents; `None` for a scheme without agents, in which all receivers report to the source.
    pub fn agents(&self) -> Option<&dyn RelaySpec> {
        each!(self, Scheme, config => config.agents())
    }

    /// Returns the factory of agents for a session whose delivery repairs losses independently of the scheme. The agents forward
    /// packets to their children under the original packet numbers. A packet that is lost on the way to an agent never arrives
    /// there under its original number. `None` for schemes without agents, and for schemes whose parents repair all losses in a
    /// tree ([`Scheme::agents`]).
    pub fn agents_beside_delivery(&self) -> Option<Box<dyn RelaySpec>> {
        each!(self, Scheme, config => config.agents_beside_delivery())
    }

    /// Returns the factory of routers that help the scheme on real networks and work with any delivery; `None` for schemes that
    /// need no routers.
    pub fn routers(&self) -> Option<Box<dyn RouterSpec>> {
        each!(self, Scheme, config => config.routers())
    }

    /// Returns the settings of the send controller, which all schemes have.
    pub fn sending(&self) -> &Sending {
        each!(self, Scheme, config => config.sending())
    }

    fn sending_mut(&mut self) -> &mut Sending {
        each!(self, Scheme, config => config.sending_mut())
    }

    /// Returns the scheme with a minimal send history, for tests with many sources.
    #[cfg(test)]
    pub(super) fn with_short_history(mut self) -> Scheme {
        self.sending_mut().history_packets = 0;
        self
    }

    /// Returns the maximum number of layers.
    pub fn layers(&self) -> u8 {
        each!(self, Scheme, config => config.layers())
    }

    /// Returns whether receivers report to the source, which adapts its rate to the reports.
    pub const fn has_feedback(&self) -> bool {
        matches!(self.entry().feedback, Feedback::Reports)
    }

    /// Limits the number of layers. A scheme without layers is unchanged.
    #[must_use]
    pub fn with_layers(mut self, layers: u8) -> Scheme {
        let layers = layers.min(self.layers()).max(1);
        each!(&mut self, Scheme, config => config.set_layers(layers));
        self
    }

    /// Returns the limits of the rate.
    pub fn bounds(&self) -> Bounds {
        self.sending().bounds
    }

    /// Returns the kind of mark in all packets of the scheme.
    pub const fn mark(&self) -> Mark {
        const fn of<C: Configure>(_: &C) -> Mark {
            C::MARK
        }
        each!(self, Scheme, config => of(config))
    }

    /// Returns the value of an option as text; empty if the scheme does not have the option.
    pub fn get(&self, option: &str) -> String {
        fn of<C: Configure>(config: &C, name: &str) -> String {
            let (common, losses) = (common_of::<C>(), losses_of::<C>());
            let mut all = common.iter().chain(C::OPTIONS).chain(C::MORE).chain(&losses);
            all.find(|option| option.name == name).map_or(String::new(), |option| option.get(config))
        }
        each!(self, Scheme, config => of(config, option))
    }

    /// Returns the scheme's options without the common ones.
    pub fn own_options(&self) -> Vec<Described> {
        fn of<C: Configure>(_: &C) -> Vec<Described> {
            C::OPTIONS.iter().chain(C::MORE).chain(&losses_of::<C>()).map(Opt::described).collect()
        }
        each!(self, Scheme, config => of(config))
    }

    /// Returns the options of every scheme.
    pub fn common_options(&self) -> Vec<Described> {
        fn of<C: Configure>(_: &C) -> Vec<Described> {
            common_of::<C>().iter().map(Opt::described).collect()
        }
        each!(self, Scheme, config => of(config))
    }

    /// Returns a short text that [`Scheme::from_str`] accepts after the name: the options whose values differ from the preset for
    /// real networks, `beta=0.7,start=linear`, or `preset=published` and the options that differ from this preset.
    pub fn options(&self) -> String {
        if let Scheme::Own(config) = self {
            return config.own.options().to_owned();
        }
        fn changed<C: Configure>(config: &C, preset: &C) -> Vec<String> {
            let (common, losses) = (common_of::<C>(), losses_of::<C>());
            let all = common.iter().chain(C::OPTIONS).chain(C::MORE).chain(&losses);
            let values = all.map(|option| (option.name, option.get(config), option.get(preset)));
            let changed = values.filter(|(_, value, default)| value != default);
            changed.map(|(name, value, _)| format!("{name}={value}")).collect()
        }
        fn from_transport<C: Configure>(config: &C) -> Vec<String> {
            changed(config, &transport())
        }
        fn from_published<C: Configure>(config: &C) -> Vec<String> {
            changed(config, &C::published())
        }
        let options = each!(self, Scheme, config => from_transport(config)).join(",");
        let mut published = vec!["preset=published".to_owned()];
        published.extend(each!(self, Scheme, config => from_published(config)));
        let published = published.join(",");
        if published.len() < options.len() && self.is_read_from(&published) { published } else { options }
    }

    /// Returns whether these options after the name give this scheme, apart from the size of packets and the limits of the rate.
    fn is_read_from(&self, options: &str) -> bool {
        format!("{},{options}", self.name()).parse::<Scheme>().is_ok_and(|mut scheme| {
            let own = self.sending();
            let sending = scheme.sending_mut();
            (sending.packet_size, sending.bounds) = (own.packet_size, own.bounds);
            scheme == *self
        })
    }
}

/// Parses the name, then options, separated by commas.
impl FromStr for Scheme {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Scheme, SpecError> {
        fn of<C: Configure>(config: &mut C, options: &str) -> Result<(), SpecError> {
            let name = format!("scheme {}", C::ENTRY.name);
            let losses = losses_of();
            spec::configure(config, options, &name, &[&common_of(), C::OPTIONS, C::MORE, losses.as_slice()])
        }
        if let Some(own) = Scheme::own(text) {
            return own;
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

/// Writes the name and the options.
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
    fn scheme_name_alone_selects_the_transport_preset() {
        assert_eq!("ormcc".parse(), Ok(Scheme::Ormcc(ormcc::Config::transport(1400))));
    }

    #[test]
    fn layered_schemes_have_at_most_sixteen_layers() {
        for name in ["gmcc", "rlc", "smcc"] {
            let scheme: Scheme = format!("{name},layers=16").parse().expect("sixteen can be told about");
            assert_eq!(scheme.layers(), 16, "{name}");
            format!("{name},layers=17").parse::<Scheme>().expect_err("seventeen cannot");
        }
    }

    #[test]
    fn options_override_the_preset() {
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
    fn every_option_accepts_its_own_value_and_refuses_nonsense() {
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
    fn every_scheme_is_parsed_from_its_own_text() {
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
        let text = |scheme: &str| scheme.parse::<Scheme>().expect("valid").to_string();
        assert_eq!(text("ormcc,beta=0.7"), "ormcc,beta=0.7");
        // Figure 2.20 of paper 000. An announcement has room for 63 bytes of options.
        let published = "le-sbcc,preset=published,rtt=0.2,rate0=200000,backoff=0.1";
        assert_eq!(
            (text(published).as_str(), text(published).parse()),
            (published, published.parse::<Scheme>())
        );
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
        assert!(message("ormcc,start=fast").contains("it must be linear | doubling"));
    }

    #[test]
    fn layer_limit_can_remove_layers_but_not_add_them() {
        let layers = |scheme: &str, layers| {
            let scheme = scheme.parse::<Scheme>().expect("it is in the catalogue").with_layers(layers);
            (scheme.layers(), scheme.options())
        };
        assert_eq!(layers("rlc", 3), (3, "layers=3".to_owned()));
        assert_eq!(layers("gmcc,layers=2", 5).0, 2);
        assert_eq!(layers("ormcc", 5), (1, String::new()));
    }

    #[test]
    fn packet_size_change_preserves_the_minimum_packet_rate() {
        let scheme = Scheme::Ormcc(ormcc::Config::transport(1000)).with_packet_size(500);
        let sending = scheme.sending();
        assert_eq!((sending.packet_size, sending.bounds.min.bps()), (500, 500.0));
    }
}
