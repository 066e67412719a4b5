//! PGM as one of faircast's formats: its options, the features that it does not support, and its reports as text.

use crate::{
    Framing, Messages, PgmOptions, PgmReceive, PgmReceiveReport, PgmSend, PgmSendReport, WindowLimits,
};
use faircast_core::time::Span;
use faircast_driver::format::{
    Declaration, Ends, Feature, Format, FormatOption, Given, Outcome, ReceiverRequest, Refused,
    SourceRequest, Values,
};
use faircast_transport::config::Content;
use faircast_transport::units;

/// PGM over UDP (RFC 3208).
#[derive(Debug, Clone, Copy)]
pub struct Pgm;

const ANSWERS: &str = "PGM receivers request lost packets";
const SILENT: &str = "PGM has no membership messages";
const PORT: Values = Values::Checked(|text| match text.parse::<u16>() {
    Ok(1..) => Ok(()),
    _ => Err(format!("`{text}` is not a port; write a number from 1 to 65535")),
});

impl Format for Pgm {
    const DECLARATION: Declaration = Declaration {
        name: "pgm",
        title: "PGM",
        summary: "PGM over UDP (RFC 3208), compatible with OpenPGM and epgm:// of ZeroMQ",
        options: &[
            FormatOption {
                name: "framing",
                value: "FRAMING",
                meaning: "Over PGM: framing of the content [default: none]",
                values: Values::Words(&[
                    ("zmq", "ZeroMQ messages"),
                    ("none", "No framing: each packet contains a part of the content"),
                ]),
                ends: Ends::Both,
            },
            FormatOption {
                name: "message",
                value: "lines|BYTES",
                meaning: "Over PGM: unit of a message, a line (`lines`) or a number of bytes [default: a packet; with zmq: lines]",
                values: Values::Checked(|text| messages(text).map(|_| ())),
                ends: Ends::Both,
            },
            FormatOption {
                name: "nak-port",
                value: "PORT",
                meaning: "Over PGM: UDP port of the source for NAKs [default: the port of the group]",
                values: PORT,
                ends: Ends::Both,
            },
            FormatOption {
                name: "data-port",
                value: "PORT",
                meaning: "Over PGM: PGM port of the session [default: the UDP port of the group]",
                values: PORT,
                ends: Ends::Both,
            },
        ],
        refuses: &[
            (Feature::Name, "PGM carries no names"),
            (Feature::Metadata, "PGM carries no files"),
            (Feature::Links, "PGM carries no links"),
            (Feature::Delta, "PGM carries no files"),
            (Feature::DryRun, "PGM carries no files"),
            (Feature::Reuse, "PGM carries no files"),
            (Feature::Layers, "PGM has no layers"),
            (Feature::Latency, "PGM has no blocks: each packet leaves as soon as its content arrives"),
            (Feature::Encryption, "PGM has no encryption"),
            (Feature::Signatures, "PGM has no signatures"),
            (Feature::Receipts, "PGM has no receipts"),
            (Feature::SlowPolicy, "PGM receivers do not report their progress"),
            (Feature::Expected, SILENT),
            (Feature::ReceiverList, SILENT),
            (Feature::ReceiverNames, SILENT),
            (Feature::StartTime, SILENT),
            (Feature::ReceiverReport, "PGM receivers do not report their progress"),
            (
                Feature::Port,
                "receivers send NAKs to the port that nak-port sets at the source and at the receivers",
            ),
            (Feature::DayLimits, "its maximum rate is fixed; set it with max"),
            (Feature::Unicast, "PGM is multicast"),
            (Feature::OneWay, ANSWERS),
            (Feature::FixedRate, ANSWERS),
            (Feature::Repetition, ANSWERS),
            (Feature::SourceNames, "PGM sources do not send their names"),
            (Feature::KeepPartial, "PGM cannot resume a transfer"),
            (Feature::Sync, "PGM never confirms that a transfer is complete"),
            (Feature::Replacement, "PGM sessions do not state the name of their source"),
        ],
    };
    type Source = PgmSend;
    type Receiver = PgmReceive;

    /// Creates a source. For a live stream, packets stay in the window for the duration of the history.
    fn source(asked: SourceRequest) -> Result<PgmSend, Refused> {
        let plain = PgmSend::new(asked.content);
        let mut window = WindowLimits::default();
        if let Content::Live { history, .. } = &plain.content {
            window.age = Span::from_secs_f64(history.as_secs_f64());
        }
        Ok(PgmSend {
            place: asked.place,
            scheme: asked.scheme.unwrap_or(plain.scheme),
            min: asked.min,
            max: asked.max,
            linger: asked.linger,
            options: options(&asked.options),
            window,
            ..plain
        })
    }

    fn receiver(asked: ReceiverRequest) -> Result<PgmReceive, Refused> {
        let ReceiverRequest { place, destination, most, options: given, .. } = asked;
        Ok(PgmReceive { place, destination, most, options: options(&given) })
    }
}

/// Returns the options, which have already been checked.
fn options(given: &Given) -> PgmOptions {
    let port = |name| given.get(name).and_then(|text| text.parse().ok());
    PgmOptions {
        framing: if given.get("framing") == Some("zmq") { Framing::Zmq } else { Framing::None },
        messages: given.get("message").and_then(|text| messages(text).ok()),
        nak_port: port("nak-port"),
        data_port: port("data-port"),
    }
}

fn messages(text: &str) -> Result<Messages, String> {
    match text.parse() {
        _ if text == "lines" => Ok(Messages::Lines),
        Ok(size) if size > 0 => Ok(Messages::Sized(size)),
        _ => Err(format!("`{text}` is not a unit of a message; write `lines`, or a number of bytes")),
    }
}

impl Outcome for PgmSendReport {
    fn summary(&self) -> Vec<String> {
        vec![format!(
            "sent {} in {}: {}, {} sent again for {}; PGM receivers do not report when they are complete",
            units::bytes(self.bytes),
            units::seconds(self.duration.as_secs_f64()),
            units::rate(self.goodput.bps()),
            units::count(self.repairs, "packet"),
            units::count(self.receivers, "host"),
        )]
    }

    fn shortfall(&self) -> Option<String> {
        (!self.ok).then(|| {
            let packets = units::count(self.too_late, "packet");
            format!("{packets} were requested after they had left the window; some receivers are incomplete")
        })
    }
}

impl Outcome for PgmReceiveReport {
    fn summary(&self) -> Vec<String> {
        vec![format!(
            "received {} ({}, {}) in {}: {}, {} missing at first",
            units::bytes(self.bytes),
            units::count(self.messages, "message"),
            units::count(self.packets, "packet"),
            units::seconds(self.duration.as_secs_f64()),
            units::rate(self.goodput.bps()),
            self.missed,
        )]
    }

    fn shortfall(&self) -> Option<String> {
        (!self.ok).then(|| {
            let packets = units::count(self.unrecoverable, "packet");
            let messages = units::count(self.broken, "message");
            format!(
                "{packets} could not be repaired, {messages} are incomplete; let the source use a longer window"
            )
        })
    }

    fn dropped_local(&self) -> u64 {
        self.dropped_local
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_driver::format::SourcePlace;
    use faircast_transport::config::LATENCY;
    use faircast_transport::ends::Input;
    use std::time::Duration;

    fn asked(content: Content, options: Vec<(&'static str, &str)>) -> SourceRequest {
        let mut request = SourceRequest::new(SourcePlace::default(), content);
        request.options =
            Given::new(options.into_iter().map(|(name, value)| (name, value.to_owned())).collect());
        request
    }

    #[test]
    fn pgm_options_are_parsed_from_text() {
        let source = |options| Pgm::source(asked(Content::Paths(Vec::new()), options)).expect("fine").options;
        assert_eq!(source(vec![]), PgmOptions::default());
        assert_eq!(
            source(vec![("framing", "zmq")]),
            PgmOptions { framing: Framing::Zmq, ..PgmOptions::default() }
        );
        assert_eq!(
            source(vec![("nak-port", "3055"), ("data-port", "7500"), ("message", "900")]),
            PgmOptions {
                messages: Some(Messages::Sized(900)),
                nak_port: Some(3055),
                data_port: Some(7500),
                ..PgmOptions::default()
            }
        );
    }

    #[test]
    fn message_option_accepts_lines_or_a_size_above_zero() {
        assert_eq!(messages("lines"), Ok(Messages::Lines));
        assert_eq!(messages("1000"), Ok(Messages::Sized(1000)));
        assert!(messages("0").is_err() && messages("line").is_err());
        let Values::Checked(port) = PORT else { panic!("it is checked") };
        assert!(port("7500").is_ok() && port("0").is_err() && port("65536").is_err());
    }

    #[test]
    fn window_of_a_live_stream_covers_its_history() {
        let history = Duration::from_secs(5);
        let content = Content::Live { input: Input::new(std::io::empty()), history, latency: LATENCY };
        let source = Pgm::source(asked(content, vec![])).expect("fine");
        assert_eq!(source.window.age.as_secs_f64(), 5.0);
    }
}
