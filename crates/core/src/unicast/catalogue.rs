//! Protocols by name and options: `tcp-reno`, `tcp-sack,preset=ns2001,delack,ecn`, `tfrc`, `rap,fine`.

use super::tcp::{self, Handshake, Switch, Variant};
use super::{Feedback, Segment, Sender, SenderView, Sink};
use super::{rap, tfrc};
use crate::node::{Cx, Departure};
use crate::time::{Span, Time};
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
}

/// A protocol as a user sees it.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// How it is called in scenarios and on a command line.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// Its options: name and meaning. Those whose meaning starts with "flag" stand without a value.
    pub options: &'static [(&'static str, &'static str)],
}

/// All protocols.
pub const CATALOGUE: &[Entry] = &[
    Entry {
        name: "tcp-tahoe",
        summary: "TCP with slow start after every loss",
        source: "Jacobson 1988",
        options: TCP_OPTIONS,
    },
    Entry { name: "tcp-reno", summary: "TCP with fast recovery", source: "RFC 2581", options: TCP_OPTIONS },
    Entry {
        name: "tcp-newreno",
        summary: "TCP that recovers from several losses in a window",
        source: "RFC 6582",
        options: TCP_OPTIONS,
    },
    Entry {
        name: "tcp-sack",
        summary: "TCP with selective acknowledgements",
        source: "RFC 2018, 6675",
        options: TCP_OPTIONS,
    },
    Entry {
        name: "tcp-vegas",
        summary: "TCP that keeps one to three packets queued",
        source: "Brakmo and Peterson 1995",
        options: TCP_OPTIONS,
    },
    Entry {
        name: "tfrc",
        summary: "sends as fast as TCP's formula allows at the measured loss event rate",
        source: "RFC 5348",
        options: TFRC_OPTIONS,
    },
    Entry {
        name: "rap",
        summary: "spaces packets by a gap: one packet per round trip more, or half",
        source: "Rejaie, Handley and Estrin 1999",
        options: RAP_OPTIONS,
    },
];

const TFRC_OPTIONS: &[(&str, &str)] = &[
    ("preset", "ns235 | rfc: the values that the other options change; goes first"),
    ("ecn", "flag: explicit congestion notification"),
];

const RAP_OPTIONS: &[(&str, &str)] = &[("fine", "flag: the gap follows the newest round trips")];

const TCP_OPTIONS: &[(&str, &str)] = &[
    ("preset", "ns235 | ns2001 | rfc | linux: the values that the other options change; goes first"),
    ("delack", "flag: acknowledge every second packet or after 100 ms; or a time in seconds"),
    ("counting", "acks | packets: what an acknowledgement counts for when the window grows"),
    ("ecn", "flag: explicit congestion notification"),
    ("window", "the receiver's window in packets, 1 or more"),
    ("initial-window", "congestion window at the start in packets, 1 or more"),
    ("min-rto", "lowest retransmission timeout in seconds"),
    ("initial-rto", "retransmission timeout before the first sample, in seconds, above 0"),
    ("tick", "granularity of the clock that measures round trips, in seconds, above 0"),
    ("jitter", "a window that opens is used after a random time up to this, in seconds"),
    ("max-burst", "packets sent at most on one acknowledgement, 1 or more"),
    ("syn", "off | on: open the connection with a SYN"),
    ("limited-transmit", "off | on: new packets on the first two duplicate acknowledgements"),
];

/// Why a protocol could not be chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// No protocol has this name.
    #[error("there is no protocol {name:?}; choose one of: {known}", known = names())]
    UnknownProtocol {
        /// What was asked for.
        name: String,
    },
    /// The protocol has no such option.
    #[error("protocol {protocol} has no option {option:?}; its options are: {known}", known = options_of(protocol))]
    UnknownOption {
        /// The protocol.
        protocol: &'static str,
        /// What was asked for.
        option: String,
    },
    /// An option stands without a value.
    #[error("option {option:?} has no value; write {option}=VALUE")]
    NoValue {
        /// The option.
        option: &'static str,
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

impl Protocol {
    /// Its name, as in [`CATALOGUE`].
    pub const fn name(&self) -> &'static str {
        match self {
            Protocol::Tcp(config) => match config.variant {
                Variant::Tahoe => "tcp-tahoe",
                Variant::Reno => "tcp-reno",
                Variant::NewReno => "tcp-newreno",
                Variant::Sack => "tcp-sack",
                Variant::Vegas => "tcp-vegas",
            },
            Protocol::Tfrc(_) => "tfrc",
            Protocol::Rap(_) => "rap",
        }
    }

    /// The protocol for packets of this size on the link.
    #[must_use]
    pub const fn with_packet_size(mut self, bytes: u16) -> Protocol {
        match &mut self {
            Protocol::Tcp(config) => config.packet_size = bytes,
            Protocol::Tfrc(config) => config.packet_size = bytes,
            Protocol::Rap(config) => config.packet_size = bytes,
        }
        self
    }

    /// A sending end.
    pub fn sender(&self) -> AnySender {
        match self {
            Protocol::Tcp(config) => AnySender::Tcp(tcp::Sender::new(*config)),
            Protocol::Tfrc(config) => AnySender::Tfrc(tfrc::Sender::new(*config)),
            Protocol::Rap(config) => AnySender::Rap(rap::Sender::new(*config)),
        }
    }

    /// A receiving end.
    pub fn sink(&self) -> AnySink {
        match self {
            Protocol::Tcp(config) => AnySink::Tcp(tcp::Sink::new(config)),
            Protocol::Tfrc(config) => AnySink::Tfrc(Box::new(tfrc::Sink::new(config))),
            Protocol::Rap(_) => AnySink::Rap(rap::Sink::default()),
        }
    }
}

/// The name, then options, separated by commas.
impl FromStr for Protocol {
    type Err = ProtocolError;

    fn from_str(text: &str) -> Result<Protocol, ProtocolError> {
        let mut parts = text.split(',').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let mut protocol = match name {
            "tcp-tahoe" => Protocol::Tcp(tcp::Config::ns235(Variant::Tahoe)),
            "tcp-reno" => Protocol::Tcp(tcp::Config::ns235(Variant::Reno)),
            "tcp-newreno" => Protocol::Tcp(tcp::Config::ns235(Variant::NewReno)),
            "tcp-sack" => Protocol::Tcp(tcp::Config::ns235(Variant::Sack)),
            "tcp-vegas" => Protocol::Tcp(tcp::Config::ns235(Variant::Vegas)),
            "tfrc" => Protocol::Tfrc(tfrc::Config::ns235()),
            "rap" => Protocol::Rap(rap::Config::ns235()),
            _ => return Err(ProtocolError::UnknownProtocol { name: name.to_owned() }),
        };
        for part in parts.filter(|part| !part.is_empty()) {
            let (option, value) = part.split_once('=').map_or((part, None), |(o, v)| (o, Some(v)));
            let known = CATALOGUE.iter().filter(|entry| entry.name == name).flat_map(|entry| entry.options);
            let Some(&(option, wanted)) = known.clone().find(|(name, _)| *name == option) else {
                let (protocol, option) = (protocol.name(), option.to_owned());
                return Err(ProtocolError::UnknownOption { protocol, option });
            };
            if value.is_none() && !wanted.starts_with("flag") {
                return Err(ProtocolError::NoValue { option });
            }
            protocol.set(option, value).ok_or_else(|| ProtocolError::BadValue {
                option,
                value: value.unwrap_or_default().to_owned(),
                wanted,
            })?;
        }
        Ok(protocol)
    }
}

impl Protocol {
    /// `None` when the value does not fit.
    fn set(&mut self, option: &str, value: Option<&str>) -> Option<()> {
        match self {
            Protocol::Tcp(config) => set_tcp(config, option, value),
            Protocol::Tfrc(config) => set_tfrc(config, option, value),
            Protocol::Rap(config) => {
                // Its only option is a flag.
                config.grain = if flag(value)? == Switch::On { rap::Grain::Fine } else { rap::Grain::Coarse };
                Some(())
            }
        }
    }
}

fn set_tfrc(config: &mut tfrc::Config, option: &str, value: Option<&str>) -> Option<()> {
    match (option, value) {
        ("preset", Some("ns235")) => {
            *config = tfrc::Config { packet_size: config.packet_size, ..tfrc::Config::ns235() }
        }
        ("preset", Some("rfc")) => {
            *config = tfrc::Config { packet_size: config.packet_size, ..tfrc::Config::rfc() }
        }
        ("ecn", _) => config.ecn = flag(value)?,
        _ => return None,
    }
    Some(())
}

/// On without a value.
fn flag(value: Option<&str>) -> Option<Switch> {
    value.map_or(Some(Switch::On), switch)
}

fn set_tcp(config: &mut tcp::Config, option: &str, value: Option<&str>) -> Option<()> {
    let text = value.unwrap_or_default();
    let count = || text.parse().ok().filter(|number: &u32| *number > 0);
    match (option, value) {
        ("preset", _) => {
            let preset = match text {
                "ns235" => tcp::Config::ns235,
                "ns2001" => tcp::Config::ns2001,
                "rfc" => tcp::Config::rfc,
                "linux" => tcp::Config::linux,
                _ => return None,
            };
            *config = tcp::Config { packet_size: config.packet_size, ..preset(config.variant) };
        }
        ("delack", None) => config.delayed_ack = Some(tcp::DELAYED_ACK),
        ("delack", Some(_)) => config.delayed_ack = Some(positive_span(text)?),
        ("counting", _) => {
            config.counting = match text {
                "acks" => tcp::Counting::Acknowledgements,
                "packets" => tcp::Counting::Packets,
                _ => return None,
            }
        }
        ("ecn", _) => config.ecn = flag(value)?,
        ("window", _) => config.receiver_window = count()?,
        ("initial-window", _) => config.initial_window = count()?,
        ("min-rto", _) => config.min_rto = span(text)?,
        ("initial-rto", _) => config.initial_rto = positive_span(text)?,
        ("tick", _) => config.tick = positive_span(text)?,
        ("jitter", _) => config.jitter = span(text)?,
        ("max-burst", _) => config.max_burst = count()?,
        ("limited-transmit", _) => config.limited_transmit = switch(text)?,
        ("syn", _) => {
            config.handshake = match switch(text)? {
                Switch::Off => Handshake::None,
                Switch::On => Handshake::Syn,
            }
        }
        _ => return None,
    }
    Some(())
}

/// At least zero and at most an hour.
fn span(text: &str) -> Option<Span> {
    let secs = text.parse().ok().filter(|secs: &f64| (0.0..=3600.0).contains(secs))?;
    Some(Span::from_secs_f64(secs))
}

fn positive_span(text: &str) -> Option<Span> {
    span(text).filter(|span| *span > Span::ZERO)
}

fn switch(text: &str) -> Option<Switch> {
    match text {
        "off" => Some(Switch::Off),
        "on" => Some(Switch::On),
        _ => None,
    }
}

fn names() -> String {
    CATALOGUE.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}

fn options_of(protocol: &str) -> String {
    let options = CATALOGUE.iter().filter(|entry| entry.name == protocol).flat_map(|entry| entry.options);
    options.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Any protocol's sender.
#[derive(Debug, Clone)]
pub enum AnySender {
    /// TCP.
    Tcp(tcp::Sender),
    /// TFRC.
    Tfrc(tfrc::Sender),
    /// RAP.
    Rap(rap::Sender),
}

/// Any protocol's receiver.
#[derive(Debug, Clone)]
pub enum AnySink {
    /// TCP.
    Tcp(tcp::Sink),
    /// TFRC; larger than the others and rarer.
    Tfrc(Box<tfrc::Sink>),
    /// RAP.
    Rap(rap::Sink),
}

macro_rules! each {
    ($any:ident, $value:expr, $inner:ident => $call:expr) => {
        match $value {
            $any::Tcp($inner) => $call,
            $any::Tfrc($inner) => $call,
            $any::Rap($inner) => $call,
        }
    };
}

impl Sender for AnySender {
    fn start(&mut self, cx: &mut Cx<'_>) {
        each!(AnySender, self, sender => sender.start(cx))
    }

    fn supply(&mut self, packets: u32, now: Time) {
        each!(AnySender, self, sender => sender.supply(packets, now))
    }

    #[inline]
    fn departure(&self) -> Departure {
        each!(AnySender, self, sender => sender.departure())
    }

    #[inline]
    fn on_departure(&mut self, cx: &mut Cx<'_>) -> Segment {
        each!(AnySender, self, sender => sender.on_departure(cx))
    }

    #[inline]
    fn on_feedback(&mut self, feedback: &Feedback, cx: &mut Cx<'_>) {
        each!(AnySender, self, sender => sender.on_feedback(feedback, cx))
    }

    #[inline]
    fn deadline(&self) -> Time {
        each!(AnySender, self, sender => sender.deadline())
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        each!(AnySender, self, sender => sender.on_deadline(cx))
    }

    fn observe(&self) -> SenderView {
        each!(AnySender, self, sender => sender.observe())
    }
}

impl Sink for AnySink {
    #[inline]
    fn on_segment(&mut self, segment: &Segment, marked: bool, cx: &mut Cx<'_>) -> Option<Feedback> {
        each!(AnySink, self, sink => sink.on_segment(segment, marked, cx))
    }

    #[inline]
    fn deadline(&self) -> Time {
        each!(AnySink, self, sink => sink.deadline())
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) -> Option<Feedback> {
        each!(AnySink, self, sink => sink.on_deadline(cx))
    }

    fn delivered(&self) -> u64 {
        each!(AnySink, self, sink => sink.delivered())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_stands_for_its_protocol() {
        for entry in CATALOGUE {
            let protocol: Protocol = entry.name.parse().expect("it is listed");
            assert_eq!(protocol.name(), entry.name);
        }
        assert_eq!("tcp-sack".parse(), Ok(Protocol::Tcp(tcp::Config::ns235(Variant::Sack))));
    }

    #[test]
    fn options_change_the_preset() {
        let expected = tcp::Config {
            delayed_ack: Some(Span::from_millis(100)),
            ecn: Switch::On,
            jitter: Span::from_millis(5),
            ..tcp::Config::ns2001(Variant::Sack)
        };
        let parsed = "tcp-sack, preset=ns2001,delack,ecn,jitter=0.005".parse();
        assert_eq!(parsed, Ok(Protocol::Tcp(expected)));
        let fine = rap::Config { grain: rap::Grain::Fine, ..rap::Config::ns235() };
        assert_eq!("rap,fine".parse(), Ok(Protocol::Rap(fine)));
        assert_eq!("tfrc,preset=rfc".parse(), Ok(Protocol::Tfrc(tfrc::Config::rfc())));
    }

    #[test]
    fn every_listed_option_has_a_value_that_is_taken_and_one_that_is_not() {
        for entry in CATALOGUE {
            for &(option, meaning) in entry.options {
                let good = ["rfc", "off", "0.5", "3", "packets"];
                let taken =
                    |value: &&str| format!("{},{option}={value}", entry.name).parse::<Protocol>().is_ok();
                let flag = format!("{},{option}", entry.name).parse::<Protocol>().is_ok();
                assert!(good.iter().any(taken) || flag, "{} {option}", entry.name);
                if !entry.name.starts_with("rap") {
                    assert!(!taken(&"-1"), "{} {option}", entry.name);
                }
                assert_eq!(flag, meaning.starts_with("flag"), "{} {option}", entry.name);
            }
        }
    }

    #[test]
    fn errors_say_what_would_be_right() {
        let message = |text: &str| text.parse::<Protocol>().expect_err("wrong on purpose").to_string();
        assert!(
            message("udp").starts_with("there is no protocol \"udp\"; choose one of: tcp-tahoe, tcp-reno, ")
        );
        assert_eq!(message("rap,ecn"), "protocol rap has no option \"ecn\"; its options are: fine");
        assert_eq!(message("tcp-reno,jitter"), "option \"jitter\" has no value; write jitter=VALUE");
        assert!(message("tcp-reno,window=0").ends_with("it is: the receiver's window in packets, 1 or more"));
        assert!(message("tfrc,preset=ns2001").contains("it is: ns235 | rfc"));
    }

    #[test]
    fn both_ends_stay_small() {
        assert!(size_of::<AnySender>() <= 272, "{}", size_of::<AnySender>());
        assert!(size_of::<AnySink>() <= 64, "{}", size_of::<AnySink>());
    }
}
