//! Protocols by name and options: `tcp-reno`, `tcp-sack,preset=ns2001,delack,ecn`, `tfrc`, `rap,fine`, `cmtcp,interval=5`.

use super::tcp::{self, Handshake, Switch, Variant};
use super::{Feedback, Segment, Sender, SenderView, Sink};
use super::{cmtcp, own, rap, tfrc};
use faircast_core::node::{Cx, Departure};
use faircast_core::spec::{self, Described, NumberRange, Opt, SpecError};
use faircast_core::time::Time;
use faircast_core::{choice, field};
use std::str::FromStr;

/// A unicast protocol and its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Protocol {
    /// TCP.
    Tcp(tcp::Config),
    /// TCP-friendly rate control.
    Tfrc(tfrc::Config),
    /// Rate adaptation protocol.
    Rap(rap::Config),
    /// CMTCP: TCP's formula, recomputed at fixed times.
    Cmtcp(cmtcp::Config),
    /// A protocol of another crate.
    Own(own::Config),
}

/// A protocol of the catalogue, described for users.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Name in scenarios and on a command line.
    pub name: &'static str,
    /// One-line description.
    pub summary: &'static str,
    /// Publication that describes it.
    pub source: &'static str,
}

/// All built-in protocols.
pub const CATALOGUE: &[Entry] = &[
    Entry { name: "tcp-tahoe", summary: "TCP with slow start after every loss", source: "Jacobson 1988" },
    Entry { name: "tcp-reno", summary: "TCP with fast recovery", source: "RFC 2581" },
    Entry {
        name: "tcp-newreno",
        summary: "TCP that recovers from several losses in a window",
        source: "RFC 6582",
    },
    Entry { name: "tcp-sack", summary: "TCP with selective acknowledgements", source: "RFC 2018, 6675" },
    Entry {
        name: "tcp-vegas",
        summary: "TCP that keeps one to three packets in queues",
        source: "Brakmo and Peterson 1995",
    },
    Entry { name: "tcp-cubic", summary: "TCP whose window is a cubic function of time", source: "RFC 9438" },
    Entry {
        name: "tcp-dctcp",
        summary: "TCP that reduces its window in proportion to the share of marked packets",
        source: "RFC 8257",
    },
    Entry {
        name: "tcp-prague",
        summary: "DCTCP for the Internet: ECT(1), spaced packets, rates independent of short round-trip times",
        source: "draft-briscoe-iccrg-prague-congestion-control",
    },
    Entry {
        name: "tcp-bbr",
        summary: "TCP whose rate follows a model of the path, version 1",
        source: "draft-cardwell-iccrg-bbr-congestion-control-00",
    },
    Entry {
        name: "tfrc",
        summary: "sends at the rate that TCP's formula gives for the measured loss event rate",
        source: "RFC 5348",
    },
    Entry {
        name: "rap",
        summary: "spaces packets by a gap; adds one packet per round trip, or halves the rate",
        source: "Rejaie, Handley and Estrin 1999",
    },
    Entry {
        name: "cmtcp",
        summary: "sets the rate every few seconds: to that of TCP's formula, or to twice the former rate without losses",
        source: "Padhye, Kurose, Towsley and Koodli 1999",
    },
];

const TFRC_OPTIONS: &[Opt<tfrc::Config>] = &[
    Opt::other(
        "preset",
        "ns235 | rfc",
        |_| String::new(),
        |config, preset| {
            let values = match preset {
                "ns235" => tfrc::Config::ns235(),
                "rfc" => tfrc::Config::rfc(),
                _ => return None,
            };
            *config = tfrc::Config { packet_size: config.packet_size, ..values };
            Some(())
        },
        "base values that the other options change; must be the first option",
    ),
    Opt::alone(
        "on",
        Opt::choice(
            "ecn",
            choice!(ecn: "off" => Switch::Off, "on" => Switch::On),
            "explicit congestion notification",
        ),
    ),
];

const RAP_OPTIONS: &[Opt<rap::Config>] = &[Opt::alone(
    "on",
    Opt::choice(
        "fine",
        choice!(grain: "off" => rap::Grain::Coarse, "on" => rap::Grain::Fine),
        "whether the gap follows the newest round-trip times",
    ),
)];

const CMTCP_OPTIONS: &[Opt<cmtcp::Config>] = &[Opt::seconds(
    "interval",
    NumberRange::of(0.01, HOUR),
    field!(interval),
    "interval between two calculations of the rate",
)];

/// One hour in seconds, the maximum of all times.
const HOUR: f64 = 3600.0;

const TCP_OPTIONS: &[Opt<tcp::Config>] = &[
    Opt::other(
        "preset",
        "ns235 | ns2001 | ns2.1b7a | ns2.26 | rfc | linux | linux2.4",
        |_| String::new(),
        |config, preset| {
            let values = match preset {
                "ns235" => tcp::Config::ns235,
                "ns2001" => tcp::Config::ns2001,
                "ns2.1b7a" => tcp::Config::ns21b7a,
                "ns2.26" => tcp::Config::ns226,
                "rfc" => tcp::Config::rfc,
                "linux" => tcp::Config::linux,
                "linux2.4" => tcp::Config::linux24,
                _ => return None,
            };
            *config = tcp::Config { packet_size: config.packet_size, ..values(config.variant) };
            Some(())
        },
        "base values that the other options change; must be the first option",
    ),
    Opt::alone(
        "0.1",
        Opt::or(
            "off",
            Opt::seconds(
                "delack",
                NumberRange::up_to(HOUR),
                field!(delayed_ack?),
                "delay of an acknowledgement for a single packet; every second packet is acknowledged at once; alone: 100 ms",
            ),
        ),
    ),
    Opt::choice(
        "counting",
        choice!(counting: "acks" => tcp::Counting::Acknowledgements, "packets" => tcp::Counting::Packets),
        "unit in which acknowledgements increase the window",
    ),
    Opt::choice(
        "shrinking",
        choice!(shrinking: "at-once" => tcp::Shrinking::AtOnce, "proportional" => tcp::Shrinking::Proportional),
        "reduction of the window in a recovery by the scoreboard: at once, or proportional (RFC 6937)",
    ),
    Opt::alone(
        "on",
        Opt::choice(
            "ecn",
            choice!(ecn: "off" => Switch::Off, "on" => Switch::On),
            "explicit congestion notification",
        ),
    ),
    Opt::whole("window", 1, MAX, field!(receiver_window as u32), "window of the receiver, in packets"),
    Opt::whole(
        "initial-window",
        1,
        MAX,
        field!(initial_window as u32),
        "initial congestion window, in packets",
    ),
    Opt::seconds("min-rto", NumberRange::of(0.0, HOUR), field!(min_rto), "minimum retransmission timeout"),
    Opt::seconds(
        "initial-rto",
        NumberRange::up_to(HOUR),
        field!(initial_rto),
        "retransmission timeout before the first sample",
    ),
    Opt::seconds(
        "tick",
        NumberRange::up_to(HOUR),
        field!(tick),
        "granularity of the clock that measures round-trip times",
    ),
    Opt::seconds(
        "jitter",
        NumberRange::of(0.0, HOUR),
        field!(jitter),
        "maximum random delay before newly permitted packets are sent",
    ),
    Opt::whole(
        "max-burst",
        1,
        MAX,
        field!(max_burst as u32),
        "maximum number of packets sent per acknowledgement",
    ),
    Opt::choice(
        "syn",
        choice!(handshake: "off" => Handshake::None, "on" => Handshake::Syn),
        "whether a SYN opens the connection",
    ),
    Opt::choice(
        "limited-transmit",
        choice!(limited_transmit: "off" => Switch::Off, "on" => Switch::On),
        "whether the first two duplicate acknowledgements permit new packets",
    ),
];

const CUBIC_OPTIONS: &[Opt<tcp::Config>] = &[
    Opt::choice(
        "hystart",
        choice!(hystart: "off" => Switch::Off, "on" => Switch::On),
        "whether the first slow start ends when round-trip times increase (RFC 9406)",
    ),
    Opt::choice(
        "fast-convergence",
        choice!(fast_convergence: "off" => Switch::Off, "on" => Switch::On),
        "whether a flow with a decreasing maximum window releases capacity to other flows (RFC 9438, 4.7)",
    ),
];

const DCTCP_OPTIONS: &[Opt<tcp::Config>] = &[Opt::whole(
    "gain-shift",
    0,
    16,
    field!(gain_shift as u8),
    "binary logarithm of one over the weight of a round's share of marks (RFC 8257, 4.1, g)",
)];

/// Returns the options of this TCP variant in addition to [`TCP_OPTIONS`].
const fn of_variant(variant: Variant) -> &'static [Opt<tcp::Config>] {
    match variant {
        Variant::Cubic => CUBIC_OPTIONS,
        Variant::Dctcp | Variant::Prague => DCTCP_OPTIONS,
        _ => &[],
    }
}

/// Maximum window: windows are 32-bit numbers of packets.
const MAX: u64 = u32::MAX as u64;

impl Protocol {
    /// Returns the protocol's name, as in [`CATALOGUE`].
    pub const fn name(&self) -> &'static str {
        match self {
            Protocol::Tcp(config) => match config.variant {
                Variant::Tahoe => "tcp-tahoe",
                Variant::Reno => "tcp-reno",
                Variant::NewReno => "tcp-newreno",
                Variant::Sack => "tcp-sack",
                Variant::Vegas => "tcp-vegas",
                Variant::Cubic => "tcp-cubic",
                Variant::Dctcp => "tcp-dctcp",
                Variant::Prague => "tcp-prague",
                Variant::Bbr => "tcp-bbr",
            },
            Protocol::Tfrc(_) => "tfrc",
            Protocol::Rap(_) => "rap",
            Protocol::Cmtcp(_) => "cmtcp",
            Protocol::Own(config) => config.own.name(),
        }
    }

    /// Returns this protocol with another packet size: `bytes` on the link.
    #[must_use]
    pub const fn with_packet_size(mut self, bytes: u16) -> Protocol {
        match &mut self {
            Protocol::Tcp(config) => config.packet_size = bytes,
            Protocol::Tfrc(config) => config.packet_size = bytes,
            Protocol::Rap(config) => config.packet_size = bytes,
            Protocol::Cmtcp(config) => config.packet_size = bytes,
            Protocol::Own(config) => config.packet_size = bytes,
        }
        self
    }

    /// Creates a sender of this protocol.
    pub fn sender(&self) -> AnySender {
        match self {
            Protocol::Tcp(config) => AnySender::Tcp(tcp::Sender::new(*config)),
            Protocol::Tfrc(config) => AnySender::Tfrc(tfrc::Sender::new(*config)),
            Protocol::Rap(config) => AnySender::Rare(Box::new(RareSender::Rap(rap::Sender::new(*config)))),
            Protocol::Cmtcp(config) => {
                AnySender::Rare(Box::new(RareSender::Cmtcp(cmtcp::Sender::new(*config))))
            }
            Protocol::Own(config) => AnySender::Rare(Box::new(RareSender::Own(config.sender()))),
        }
    }

    /// Creates a receiver of this protocol.
    pub fn sink(&self) -> AnySink {
        match self {
            Protocol::Tcp(config) => AnySink::Tcp(tcp::Sink::new(config)),
            Protocol::Tfrc(config) => AnySink::Tfrc(Box::new(tfrc::Sink::new(config))),
            Protocol::Rap(_) | Protocol::Cmtcp(_) => AnySink::Rap(rap::Sink::default()),
            Protocol::Own(config) => AnySink::Own(config.sink()),
        }
    }
}

/// Parses the name of a protocol, followed by its options, all separated by commas.
impl FromStr for Protocol {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Protocol, SpecError> {
        if let Some(own) = own::PROTOCOLS.read(text, ',') {
            return own.map(|own| Protocol::Own(own::Config::new(own)));
        }
        let (name, options) = spec::split(text);
        let mut protocol = match name {
            "tcp-tahoe" => Protocol::Tcp(tcp::Config::ns235(Variant::Tahoe)),
            "tcp-reno" => Protocol::Tcp(tcp::Config::ns235(Variant::Reno)),
            "tcp-newreno" => Protocol::Tcp(tcp::Config::ns235(Variant::NewReno)),
            "tcp-sack" => Protocol::Tcp(tcp::Config::ns235(Variant::Sack)),
            "tcp-vegas" => Protocol::Tcp(tcp::Config::ns235(Variant::Vegas)),
            "tcp-cubic" => Protocol::Tcp(tcp::Config::linux(Variant::Cubic)),
            "tcp-dctcp" => Protocol::Tcp(tcp::Config::linux(Variant::Dctcp)),
            "tcp-prague" => Protocol::Tcp(tcp::Config::linux(Variant::Prague)),
            "tcp-bbr" => Protocol::Tcp(tcp::Config::linux(Variant::Bbr)),
            "tfrc" => Protocol::Tfrc(tfrc::Config::ns235()),
            "rap" => Protocol::Rap(rap::Config::ns235()),
            "cmtcp" => Protocol::Cmtcp(cmtcp::Config::chosen()),
            _ => {
                return Err(SpecError::UnknownName {
                    kind: "protocol",
                    name: name.to_owned(),
                    known: CATALOGUE.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
                });
            }
        };
        let of = format!("protocol {name}");
        match &mut protocol {
            Protocol::Tcp(config) => {
                let more = of_variant(config.variant);
                spec::configure(config, options, &of, &[TCP_OPTIONS, more])?;
            }
            Protocol::Tfrc(config) => spec::configure(config, options, &of, &[TFRC_OPTIONS])?,
            Protocol::Rap(config) => spec::configure(config, options, &of, &[RAP_OPTIONS])?,
            Protocol::Cmtcp(config) => spec::configure(config, options, &of, &[CMTCP_OPTIONS])?,
            Protocol::Own(_) => {}
        }
        Ok(protocol)
    }
}

/// Evaluates `$of` with the options and the configuration of the protocol, for every protocol.
macro_rules! each_options {
    ($self:ident, ($options:ident, $config:ident) => $of:expr) => {
        match $self {
            Protocol::Tcp($config) => {
                let $options = TCP_OPTIONS.iter().chain(of_variant($config.variant));
                $of
            }
            Protocol::Tfrc($config) => {
                let $options = TFRC_OPTIONS.iter();
                $of
            }
            Protocol::Rap($config) => {
                let $options = RAP_OPTIONS.iter();
                $of
            }
            Protocol::Cmtcp($config) => {
                let $options = CMTCP_OPTIONS.iter();
                $of
            }
            Protocol::Own($config) => {
                let $options = own::OPTIONS.iter();
                $of
            }
        }
    };
}

impl Protocol {
    /// Returns the options of this protocol.
    #[expect(unused_variables, reason = "the options of a protocol do not depend on its values")]
    pub fn options(&self) -> Vec<Described> {
        each_options!(self, (options, config) => options.map(Opt::described).collect())
    }

    /// Returns the value of an option as text; an empty text for presets and unknown options.
    pub fn get(&self, name: &str) -> String {
        each_options!(self, (options, config) => {
            let mut options = options;
            options.find(|option| option.name == name).map_or(String::new(), |option| option.get(config))
        })
    }

    /// Returns the names of the presets: the values of the option `preset`.
    pub fn presets(&self) -> Vec<String> {
        let options = self.options();
        let preset = options.iter().find(|option| option.name == "preset");
        preset.map_or(Vec::new(), |preset| preset.takes.split(" | ").map(str::to_owned).collect())
    }
}

/// Any protocol's sender.
#[derive(Debug)]
pub enum AnySender {
    /// TCP.
    Tcp(tcp::Sender),
    /// TFRC.
    Tfrc(tfrc::Sender),
    /// The sender of a less common protocol. An enum with few variants makes calls of the common senders faster.
    Rare(Box<RareSender>),
}

/// Senders of the rarer protocols.
#[derive(Debug)]
pub enum RareSender {
    /// RAP.
    Rap(rap::Sender),
    /// CMTCP.
    Cmtcp(cmtcp::Sender),
    /// The sender of a protocol of another crate.
    Own(own::Sender),
}

/// Any protocol's receiver.
#[derive(Debug)]
pub enum AnySink {
    /// TCP.
    Tcp(tcp::Sink),
    /// A receiver of TFRC. It is boxed because it is larger and less common.
    Tfrc(Box<tfrc::Sink>),
    /// RAP and CMTCP.
    Rap(rap::Sink),
    /// The receiver of a protocol of another crate.
    Own(own::Sink),
}

/// Forwards a call of the enum to the sender or receiver in it.
macro_rules! dispatch {
    ($(#[$inline:meta])? $any:ident: $($variant:ident),+) => {
        impl Sender for $any {
            fn start(&mut self, cx: &mut Cx<'_>) {
                match self { $($any::$variant(sender) => sender.start(cx),)+ }
            }

            fn supply(&mut self, packets: u32, now: Time) {
                match self { $($any::$variant(sender) => sender.supply(packets, now),)+ }
            }

            $(#[$inline])?
            fn departure(&self) -> Departure {
                match self { $($any::$variant(sender) => sender.departure(),)+ }
            }

            $(#[$inline])?
            fn on_departure(&mut self, cx: &mut Cx<'_>) -> Segment {
                match self { $($any::$variant(sender) => sender.on_departure(cx),)+ }
            }

            $(#[$inline])?
            fn on_feedback(&mut self, feedback: &Feedback, cx: &mut Cx<'_>) {
                match self { $($any::$variant(sender) => sender.on_feedback(feedback, cx),)+ }
            }

            $(#[$inline])?
            fn deadline(&self) -> Time {
                match self { $($any::$variant(sender) => sender.deadline(),)+ }
            }

            fn on_deadline(&mut self, cx: &mut Cx<'_>) {
                match self { $($any::$variant(sender) => sender.on_deadline(cx),)+ }
            }

            $(#[$inline])?
            fn cuts(&self) -> u32 {
                match self { $($any::$variant(sender) => sender.cuts(),)+ }
            }

            fn observe(&self) -> SenderView {
                match self { $($any::$variant(sender) => sender.observe(),)+ }
            }
        }
    };
}

dispatch!(#[inline] AnySender: Tcp, Tfrc, Rare);
dispatch!(RareSender: Rap, Cmtcp, Own);

macro_rules! each_sink {
    ($value:expr, $inner:ident => $call:expr) => {
        match $value {
            AnySink::Tcp($inner) => $call,
            AnySink::Tfrc($inner) => $call,
            AnySink::Rap($inner) => $call,
            AnySink::Own($inner) => $call,
        }
    };
}

impl Sink for AnySink {
    #[inline]
    fn on_segment(&mut self, segment: &Segment, marked: bool, cx: &mut Cx<'_>) -> Option<Feedback> {
        each_sink!(self, sink => sink.on_segment(segment, marked, cx))
    }

    #[inline]
    fn deadline(&self) -> Time {
        each_sink!(self, sink => sink.deadline())
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) -> Option<Feedback> {
        each_sink!(self, sink => sink.on_deadline(cx))
    }

    fn delivered(&self) -> u64 {
        each_sink!(self, sink => sink.delivered())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::time::Span;

    #[test]
    fn every_protocol_is_found_by_its_name() {
        for entry in CATALOGUE {
            let protocol: Protocol = entry.name.parse().expect("it is listed");
            assert_eq!(protocol.name(), entry.name);
        }
        assert_eq!("tcp-sack".parse(), Ok(Protocol::Tcp(tcp::Config::ns235(Variant::Sack))));
    }

    #[test]
    fn options_override_the_preset() {
        let expected = tcp::Config {
            delayed_ack: Some(Span::from_millis(100)),
            ecn: Switch::On,
            jitter: Span::from_millis(5),
            ..tcp::Config::ns2001(Variant::Sack)
        };
        let parsed = "tcp-sack, preset=ns2001,delack,ecn,jitter=0.005".parse();
        assert_eq!(parsed, Ok(Protocol::Tcp(expected)));
        assert_eq!(
            "tcp-reno,preset=ns2.1b7a".parse::<Protocol>(),
            "tcp-reno,preset=ns2001,window=20".parse(),
            "a release of ns-2 with its default window"
        );
        let linux24 =
            "tcp-sack,preset=linux,initial-window=2,tick=0.01,initial-rto=3,counting=acks,shrinking=at-once"
                .parse();
        let Ok(Protocol::Tcp(linux24)) = linux24 else { panic!("{linux24:?}") };
        let linux24 = tcp::Config { max_rto: Span::from_secs(120), ..linux24 };
        assert_eq!("tcp-sack,preset=linux2.4".parse(), Ok(Protocol::Tcp(linux24)));
        let fine = rap::Config { grain: rap::Grain::Fine, ..rap::Config::ns235() };
        assert_eq!("rap,fine".parse(), Ok(Protocol::Rap(fine)));
        assert_eq!("tfrc,preset=rfc".parse(), Ok(Protocol::Tfrc(tfrc::Config::rfc())));
    }

    #[test]
    fn every_option_accepts_exactly_its_documented_values() {
        for entry in CATALOGUE {
            let protocol: Protocol = entry.name.parse().expect("listed");
            for option in protocol.options() {
                let with = |rest: &str| format!("{},{}{rest}", entry.name, option.name).parse::<Protocol>();
                let good = ["=rfc", "=off", "=0.5", "=3", "=packets", "=at-once"];
                assert!(good.iter().any(|value| with(value).is_ok()), "{} {option:?}", entry.name);
                with("=-1").expect_err(option.name);
                assert_eq!(with("").is_ok(), option.may_stand_alone, "{} {option:?}", entry.name);
            }
        }
    }

    #[test]
    fn protocol_is_the_same_after_writing_and_parsing_its_options() {
        for entry in CATALOGUE {
            let first: Protocol = entry.name.parse().expect("listed");
            for preset in first.presets() {
                let whole: Protocol = format!("{},preset={preset}", entry.name).parse().expect("listed");
                let set = |option: &Described| format!(",{}={}", option.name, whole.get(option.name));
                let options = whole.options();
                let values: String =
                    options.iter().filter(|option| option.name != "preset").map(set).collect();
                let again = format!("{},preset={preset}{values}", entry.name).parse();
                assert_eq!(again, Ok(whole), "{values}");
            }
        }
        let sack: Protocol = "tcp-sack,preset=linux".parse().expect("listed");
        assert_eq!((sack.get("min-rto").as_str(), sack.presets().len()), ("0.2", 7));
        assert_eq!(sack.get("nosuch"), "");
    }

    #[test]
    fn errors_suggest_a_valid_value() {
        let message = |text: &str| text.parse::<Protocol>().expect_err("wrong on purpose").to_string();
        assert!(
            message("udp").starts_with("there is no protocol \"udp\"; choose one of: tcp-tahoe, tcp-reno, ")
        );
        assert_eq!(message("rap,ecn"), "protocol rap has no option \"ecn\"; its options are: fine");
        assert_eq!(message("tcp-reno,jitter"), "option \"jitter\" has no value; write jitter=VALUE");
        assert!(message("tcp-reno,window=0").contains("it must be 1 to 4294967295 (window of the receiver"));
        assert!(message("tfrc,preset=ns2001").contains("it must be ns235 | rfc ("));
    }

    #[test]
    fn sizes_of_sender_and_sink_types_are_bounded() {
        assert!(size_of::<AnySender>() <= 288, "{}", size_of::<AnySender>());
        assert!(size_of::<AnySink>() <= 64, "{}", size_of::<AnySink>());
    }
}
