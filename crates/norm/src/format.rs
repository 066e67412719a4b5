//! NORM as one of faircast's formats: its unsupported features, and its reports as text.

use crate::codec::Fec;
use crate::{NormReceive, NormReceiveReport, NormSend, NormSendReport};
use faircast_core::schemes::Scheme;
use faircast_driver::format::{
    Declaration, Ends, Feature, Format, FormatOption, Outcome, ReceiverRequest, Refused, SourceRequest,
    Values,
};
use faircast_transport::event::IncompleteReceiver;
use faircast_transport::units;

/// NORM (RFC 5740).
#[derive(Debug, Clone, Copy)]
pub struct Norm;

/// Name of the scheme whose reports NORM receivers send.
pub(crate) const SCHEME: &str = "tfmcc";

const ANSWERS: &str = "NORM receivers request lost packets";
const NO_RECEIVER: &str = "faircast has only a source of NORM; receive with a program of libnorm";

/// Returns the scheme whose reports NORM receivers send.
pub(crate) fn default_scheme() -> Scheme {
    SCHEME.parse().expect("it is in the catalogue")
}

impl Format for Norm {
    const DECLARATION: Declaration = Declaration {
        name: "norm",
        title: "NORM",
        summary: "NORM (RFC 5740), compatible with libnorm: files, from sources only",
        options: &[FormatOption {
            name: "norm-fec",
            value: "ID",
            meaning: "Over NORM: the FEC Encoding ID of the Reed-Solomon code [default: 5]",
            values: Values::Words(&[
                ("5", "Reed-Solomon over GF(2^8) (RFC 5510), libnorm's default"),
                ("129", "Small block codes (RFC 5445), instance 0"),
            ]),
            ends: Ends::Source,
        }],
        refuses: &[
            (Feature::Reception, NO_RECEIVER),
            (Feature::Name, "files keep their names"),
            (Feature::Pipe, "NORM files have a known length; send a file instead of a pipe"),
            (Feature::Stream, "NORM files have a known length, and a live stream has none"),
            (Feature::Metadata, "NORM carries only names and sizes"),
            (Feature::Links, "NORM does not support links"),
            (Feature::DryRun, "NORM receivers do not compare files"),
            (Feature::Layers, "NORM has no layers"),
            (Feature::Encryption, "NORM sessions are not encrypted"),
            (Feature::Signatures, "NORM sessions are not signed"),
            (Feature::Receipts, "NORM has no receipts"),
            (Feature::SlowPolicy, "TFMCC follows the slowest receiver"),
            (Feature::ReceiverList, "NORM receivers do not send their names"),
            (Feature::ReceiverNames, "NORM receivers do not send their names"),
            (Feature::StartTime, "receivers are waited for only for a while; run the command at that time"),
            (Feature::DayLimits, "its maximum rate is fixed; set it with max"),
            (Feature::ReceiverReport, "NORM receivers do not verify the content"),
            (Feature::Port, "NORM receivers send to the port of the group"),
            (Feature::Unicast, "its sessions are multicast"),
            (Feature::OneWay, ANSWERS),
            (Feature::FixedRate, ANSWERS),
            (Feature::Repetition, ANSWERS),
            (Feature::SourceNames, NO_RECEIVER),
            (Feature::KeepPartial, NO_RECEIVER),
            (Feature::Sync, NO_RECEIVER),
            (Feature::Replacement, NO_RECEIVER),
            (Feature::OneStream, NO_RECEIVER),
        ],
    };
    type Source = NormSend;
    type Receiver = NormReceive;

    fn source(asked: SourceRequest) -> Result<NormSend, Refused> {
        let scheme = asked.scheme.unwrap_or_else(default_scheme);
        if scheme.name() != SCHEME {
            let why = "its receivers send only the reports of TFMCC; choose tfmcc";
            return Err(Refused::Feature { feature: Feature::Scheme, why });
        }
        let fec = asked.options.get("norm-fec");
        Ok(NormSend {
            fec: Fec::ALL.into_iter().find(|of| fec == Some(&of.id().to_string())).unwrap_or_default(),
            place: asked.place,
            scheme,
            min: asked.min,
            max: asked.max,
            expect: asked.expect,
            join_timeout: asked.linger,
            content: asked.content,
        })
    }

    fn receiver(_asked: ReceiverRequest) -> Result<NormReceive, Refused> {
        Err(Refused::Feature { feature: Feature::Reception, why: NO_RECEIVER })
    }
}

impl Outcome for NormSendReport {
    fn summary(&self) -> Vec<String> {
        vec![format!(
            "sent {}, {} in {}: {}, {} repaired; receivers with all files: {} of {} (NORM does not verify content)",
            units::count(self.files, "file"),
            units::bytes(self.bytes),
            units::seconds(self.duration.as_secs_f64()),
            units::rate(self.goodput.bps()),
            units::count(self.repairs, "packet"),
            self.completed,
            self.receivers,
        )]
    }

    fn shortfall(&self) -> Option<String> {
        let of = |left: &IncompleteReceiver| format!("{} ({})", left.host, left.reason);
        (!self.ok).then(|| {
            let absent = (self.absent > 0)
                .then(|| format!("{} without feedback", units::count(self.absent, "expected receiver")));
            let reasons: Vec<String> = self.incomplete.iter().map(of).chain(absent).collect();
            match reasons.is_empty() {
                true => "the session was stopped before its end".to_owned(),
                false => format!("incomplete: {}", reasons.join(", ")),
            }
        })
    }
}

impl Outcome for NormReceiveReport {
    fn summary(&self) -> Vec<String> {
        match *self {}
    }

    fn shortfall(&self) -> Option<String> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_driver::format::{ReceiverPlace, SourcePlace};
    use faircast_transport::config::{Content, Destination};

    #[test]
    fn other_schemes_and_receivers_are_refused_with_a_reason() {
        let source = |scheme: &str| {
            let mut request = SourceRequest::new(SourcePlace::default(), Content::Paths(Vec::new()));
            request.scheme = Some(scheme.parse().expect("a scheme"));
            Norm::source(request)
        };
        let is = |refused, wanted| matches!(refused, Refused::Feature { feature, .. } if feature == wanted);
        assert!(is(source("ormcc").expect_err("it is refused"), Feature::Scheme));
        assert_eq!(source("tfmcc").expect("fine").scheme.name(), "tfmcc");
        let destination = Destination::Directory("out".into());
        let request = ReceiverRequest::new(ReceiverPlace::default(), destination);
        assert!(is(Norm::receiver(request).expect_err("it is refused"), Feature::Reception));
    }
}
