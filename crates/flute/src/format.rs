//! ALC with FLUTE as one of the formats: its options, its unsupported features, and reports as text.

use crate::{AlcReceive, AlcReceiveReport, AlcSend, AlcSendReport, Fec, Pacing};
use faircast_core::schemes::Wire;
use faircast_driver::format::{
    Declaration, Ends, Feature, Format, FormatOption, Outcome, ReceiverRequest, Refused, SourceRequest,
    Values,
};
use faircast_transport::config::{Destination, Repeat};
use faircast_transport::units;

/// ALC with FLUTE (RFC 5775, 6726).
#[derive(Debug, Clone, Copy)]
pub struct Alc;

const SILENT: &str = "ALC receivers send no feedback";

impl Format for Alc {
    const DECLARATION: Declaration = Declaration {
        name: "alc",
        title: "ALC",
        summary: "ALC and FLUTE (RFC 5775, 6726), compatible with flute-alc: files, without feedback",
        options: &[FormatOption {
            name: "fec",
            value: "CODE",
            meaning: "Over ALC: the erasure code [default: none; with rlc: raptorq]",
            values: Values::Words(&[
                ("none", "None: lost symbols are repeated in the next generation"),
                ("raptor", "Raptor (RFC 5053): like RaptorQ, for receivers that have only Raptor"),
                ("raptorq", "RaptorQ: each generation has new symbols, and any symbols of a block repair it"),
            ]),
            ends: Ends::Source,
        }],
        refuses: &[
            (Feature::Name, "files keep their names"),
            (Feature::Pipe, "FLUTE files have a known length; send a file instead of a pipe"),
            (Feature::Stream, "FLUTE files have a known length, and a live stream has none"),
            (Feature::Layers, "all its layers carry parts of the same files"),
            (Feature::Metadata, "FLUTE tables contain only names and sizes"),
            (Feature::Links, "FLUTE does not support links"),
            (Feature::Delta, "FLUTE sends whole files"),
            (Feature::DryRun, "FLUTE receivers send no feedback"),
            (Feature::Reuse, "FLUTE sends whole files"),
            (Feature::Encryption, "ALC sessions are not encrypted"),
            (Feature::Signatures, "ALC sessions are not signed"),
            (Feature::Receipts, "ALC sessions have no receipts"),
            (Feature::SlowPolicy, SILENT),
            (Feature::Expected, SILENT),
            (Feature::ReceiverList, SILENT),
            (Feature::ReceiverNames, SILENT),
            (Feature::StartTime, "receivers do not join; run the command at that time"),
            (Feature::ReceiverReport, SILENT),
            (Feature::Port, SILENT),
            (Feature::Unicast, "its sessions are multicast"),
            (Feature::OneWay, "ALC has no feedback in any case"),
            (
                Feature::LeastRate,
                "the rate does not change; set a fixed rate, or the rate of the lowest layer (`rlc,base=RATE`)",
            ),
            (
                Feature::HighestRate,
                "the rate does not change; set a fixed rate, or send in fewer layers (`rlc,layers=N`)",
            ),
            (Feature::DayLimits, "the rate does not change"),
            (Feature::SourceNames, "sources do not send their names"),
            (Feature::Sync, "files are not flushed one by one"),
            (Feature::Replacement, "sessions do not name their source"),
            (Feature::OneStream, "files come in any order and in parts; receive into a directory"),
        ],
    };
    type Source = AlcSend;
    type Receiver = AlcReceive;

    /// Creates a source with a scheme that needs no feedback, or with a fixed rate.
    fn source(asked: SourceRequest) -> Result<AlcSend, Refused> {
        let fec =
            asked.options.get("fec").and_then(|name| Fec::ALL.into_iter().find(|fec| fec.name() == name));
        let (pacing, code, rounds) = match (asked.scheme, asked.rate) {
            (Some(scheme), _) if !scheme.works_over(Wire::Alc) => {
                let why = "the source of this scheme needs feedback; choose rlc, or a fixed rate";
                return Err(Refused::Feature { feature: Feature::Scheme, why });
            }
            (Some(_), Some(_)) => {
                let why = "the scheme sets the rates (`rlc,base=RATE` sets the lowest layer's rate)";
                return Err(Refused::Feature { feature: Feature::FixedRate, why });
            }
            (Some(scheme), None) if fec == Some(Fec::NoCode) && scheme.layers() > 1 => {
                let why = "receivers of only some layers would wait indefinitely for symbols of the other layers; use raptorq or raptor";
                return Err(Refused::Option { name: "fec", why });
            }
            (Some(scheme), None) => {
                // A receiver of only the base layer gets one packet in 2^(layers - 1).
                let rounds = 2 << scheme.layers().saturating_sub(1);
                (Pacing::Layered { scheme, spacing: asked.spacing }, Fec::RaptorQ, rounds)
            }
            (None, Some(rate)) => (Pacing::Fixed(rate), Fec::NoCode, 3),
            (None, None) => {
                let why = "there is no feedback to adapt the rate; set a rate, or choose the scheme rlc to send in layers";
                return Err(Refused::Missing { feature: Feature::FixedRate, why });
            }
        };
        Ok(AlcSend {
            place: asked.place,
            pacing,
            fec: fec.unwrap_or(code),
            repeat: asked.repeat.unwrap_or(Repeat::Rounds(rounds)),
            content: asked.content,
        })
    }

    fn receiver(asked: ReceiverRequest) -> Result<AlcReceive, Refused> {
        let ReceiverRequest { place, destination, names, keep_partial, most, .. } = asked;
        match destination {
            Destination::Directory(out) => Ok(AlcReceive { place, out, names, keep_partial, most }),
            _ => {
                let why = Alc::DECLARATION.why_not(Feature::OneStream).unwrap_or_default();
                Err(Refused::Feature { feature: Feature::OneStream, why })
            }
        }
    }
}

impl Outcome for AlcSendReport {
    fn summary(&self) -> Vec<String> {
        vec![format!(
            "sent {} in {}, {} in {}: {} on {}; ALC does not report complete receivers",
            units::count(self.files, "file"),
            units::count(self.rounds, "round"),
            units::count(self.packets, "packet"),
            units::seconds(self.duration.as_secs_f64()),
            units::rate(self.rate.bps()),
            units::count(self.layers, "layer"),
        )]
    }

    fn shortfall(&self) -> Option<String> {
        (!self.ok).then(|| "stopped before all files had been sent once".to_owned())
    }
}

impl Outcome for AlcReceiveReport {
    fn summary(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "received {}, {} in {}: {}, {} repaired, {} checked by MD5",
            units::count(self.files, "file"),
            units::bytes(self.bytes),
            units::seconds(self.duration.as_secs_f64()),
            units::rate(self.goodput.bps()),
            units::count(self.repaired_blocks, "block"),
            self.verified,
        )];
        if self.layers > 1 {
            lines.push(format!(
                "joined up to {} of {} layers ({}, {})",
                self.highest_layer + 1,
                self.layers,
                units::count(self.joins, "join"),
                units::count(self.leaves, "leave"),
            ));
        }
        lines
    }

    fn shortfall(&self) -> Option<String> {
        (!self.ok).then(|| {
            let known = units::count(self.known, "file");
            format!("{} of {known} arrived; the missing files are named above", self.files)
        })
    }

    fn dropped_local(&self) -> u64 {
        self.dropped_local
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::time::Rate;
    use faircast_driver::format::{Given, ReceiverPlace, SourcePlace};
    use faircast_transport::Memory;
    use faircast_transport::config::Content;
    use std::time::Duration;

    fn source(scheme: Option<&str>, rate: Option<f64>, fec: Option<&str>) -> Result<AlcSend, Refused> {
        let mut request = SourceRequest::new(SourcePlace::default(), Content::Paths(Vec::new()));
        request.scheme = scheme.map(|scheme| scheme.parse().expect("a scheme"));
        request.rate = rate.map(Rate::from_mbps);
        request.linger = Duration::ZERO;
        request.options = Given::new(fec.map(|fec| ("fec", fec.to_owned())).into_iter().collect());
        Alc::source(request)
    }

    #[test]
    fn fixed_rate_defaults_to_three_generations_without_a_code() {
        let config = source(None, Some(2.0), None).expect("fine");
        assert_eq!(config.pacing, Pacing::Fixed(Rate::from_mbps(2.0)));
        assert_eq!((config.fec, config.repeat), (Fec::NoCode, Repeat::Rounds(3)));
        for fec in [Fec::Raptor, Fec::RaptorQ] {
            assert_eq!(source(None, Some(2.0), Some(fec.name())).expect("fine").fec, fec);
        }
    }

    #[test]
    fn layered_source_defaults_to_raptorq_and_16_generations() {
        let config = source(Some("rlc,layers=4"), None, None).expect("fine");
        assert!(matches!(config.pacing, Pacing::Layered { scheme, .. } if scheme.name() == "rlc"));
        assert_eq!((config.fec, config.repeat), (Fec::RaptorQ, Repeat::Rounds(16)));
    }

    #[test]
    fn contradictory_arguments_are_refused_with_a_reason() {
        let of = |refused: Result<AlcSend, Refused>| refused.expect_err("it cannot be");
        let is = |refused, wanted| matches!(refused, Refused::Feature { feature, .. } if feature == wanted);
        assert!(is(of(source(Some("tfmcc"), None, None)), Feature::Scheme));
        assert!(is(of(source(Some("rlc"), Some(1.0), None)), Feature::FixedRate));
        assert!(matches!(of(source(Some("rlc"), None, Some("none"))), Refused::Option { name: "fec", .. }));
        assert!(matches!(of(source(None, None, None)), Refused::Missing { feature: Feature::FixedRate, .. }));
        let into_memory = ReceiverRequest::new(ReceiverPlace::default(), Destination::Memory(Memory::new(9)));
        let refused = Alc::receiver(into_memory).expect_err("it needs a directory");
        assert!(matches!(refused, Refused::Feature { feature: Feature::OneStream, .. }));
    }
}
