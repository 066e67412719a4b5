//! The list of foreign wire formats.

use crate::{Configuration, Error, Event, Stop};
use faircast_core::rate::Losses;
use faircast_driver::format::{
    Declaration, Feature, Format as _, Outcome, ReceiverRequest, Refused, SourceRequest,
};
use serde::Serialize;

/// Reason for refusing the option `loss=tolerant` of schemes.
const UNTOLD: &str = "its receivers take every loss for congestion; leave out loss=tolerant";

/// Takes one line per format: the name of its variant, the module of this crate that exports the format, the crate that
/// implements it, and the type in that crate that declares it.
macro_rules! formats {
    ($($(#[doc = $doc:literal])* $variant:ident: $module:ident = $krate:ident::$format:ident;)*) => {
        $($(#[doc = $doc])* pub use $krate::public as $module;)*

        /// A foreign wire format.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Format {
            $($(#[doc = $doc])* $variant,)*
        }

        /// The configuration of a source in a foreign format.
        #[derive(Debug)]
        #[non_exhaustive]
        pub enum FormatSource {
            $($(#[doc = $doc])* $variant(<$krate::$format as faircast_driver::format::Format>::Source),)*
        }

        /// The configuration of a receiver in a foreign format.
        #[derive(Debug)]
        #[non_exhaustive]
        pub enum FormatReceiver {
            $($(#[doc = $doc])* $variant(<$krate::$format as faircast_driver::format::Format>::Receiver),)*
        }

        /// The result of a source in a foreign format.
        #[derive(Debug, Serialize)]
        #[serde(untagged)]
        #[non_exhaustive]
        pub enum FormatSourceReport {
            $($(#[doc = $doc])* $variant(Report<<$krate::$format as faircast_driver::format::Format>::Source>),)*
        }

        /// The result of a receiver in a foreign format.
        #[derive(Debug, Serialize)]
        #[serde(untagged)]
        #[non_exhaustive]
        pub enum FormatReceiverReport {
            $($(#[doc = $doc])* $variant(Report<<$krate::$format as faircast_driver::format::Format>::Receiver>),)*
        }

        impl Format {
            /// All foreign formats.
            pub const ALL: &'static [Format] = &[$(Format::$variant),*];

            /// Returns the description of the format.
            #[must_use]
            pub const fn declaration(self) -> &'static Declaration {
                match self {
                    $(Format::$variant => &<$krate::$format>::DECLARATION,)*
                }
            }

            /// Returns the configuration of the requested source.
            ///
            /// # Errors
            /// When the request is impossible or contradicts itself.
            pub fn source(self, asked: SourceRequest) -> Result<FormatSource, Refused> {
                if asked.scheme.is_some_and(|scheme| scheme.sending().losses == Losses::Queued) {
                    return Err(Refused::Feature { feature: Feature::Scheme, why: UNTOLD });
                }
                match self {
                    $(Format::$variant => <$krate::$format>::source(asked).map(FormatSource::$variant),)*
                }
            }

            /// Returns the configuration of the requested receiver.
            ///
            /// # Errors
            /// When the request is impossible or contradicts itself.
            pub fn receiver(self, asked: ReceiverRequest) -> Result<FormatReceiver, Refused> {
                match self {
                    $(Format::$variant => <$krate::$format>::receiver(asked).map(FormatReceiver::$variant),)*
                }
            }
        }

        session!(FormatSource, FormatSourceReport, Content, $($variant)*);
        session!(FormatReceiver, FormatReceiverReport, Opened, $($variant)*);
    };
}

/// The report of a configuration.
type Report<C> = <C as Configuration>::Report;

/// Implements the methods that all sources, or all receivers, have in common. Each method calls the same method of the variant's
/// value.
macro_rules! session {
    ($config:ident, $report:ident, $begun:ident, $($variant:ident)*) => {
        impl Configuration for $config {
            type Report = $report;

            fn is_begun(event: &Event) -> bool {
                matches!(event, Event::$begun { .. })
            }

            fn run(self, events: &mut dyn FnMut(Event), stop: &Stop) -> Result<$report, Error> {
                match self {
                    $($config::$variant(config) => config.run(events, stop).map($report::$variant),)*
                }
            }
        }

        impl Outcome for $report {
            fn summary(&self) -> Vec<String> {
                match self {
                    $($report::$variant(report) => report.summary(),)*
                }
            }

            fn shortfall(&self) -> Option<String> {
                match self {
                    $($report::$variant(report) => report.shortfall(),)*
                }
            }

            fn dropped_local(&self) -> u64 {
                match self {
                    $($report::$variant(report) => report.dropped_local(),)*
                }
            }
        }
    };
}

formats! {
    /// PGM (RFC 3208), for programs that use OpenPGM or ZeroMQ's epgm.
    Pgm: pgm = faircast_pgm::Pgm;
    /// ALC with FLUTE (RFC 5775, 6726).
    Alc: alc = faircast_flute::Alc;
    /// udpcast, for `udp-sender` and `udp-receiver`.
    Udpcast: udpcast = faircast_udpcast::Udpcast;
    /// NORM (RFC 5740), for receivers of libnorm.
    Norm: norm = faircast_norm::Norm;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Content;
    use faircast_driver::format::SourcePlace;

    #[test]
    fn loss_tolerance_is_refused_in_every_foreign_format() {
        for format in Format::ALL {
            let content = Content::Paths(vec!["file".into()]);
            let mut asked = SourceRequest::new(SourcePlace::default(), content);
            asked.scheme = "tfmcc,loss=tolerant".parse().ok();
            assert!(asked.scheme.is_some());
            let refused = format.source(asked).expect_err("its receivers do not observe delays");
            assert_eq!(refused, Refused::Feature { feature: Feature::Scheme, why: UNTOLD }, "{format:?}");
        }
    }
    use std::collections::BTreeSet;

    #[test]
    fn format_and_option_names_are_unique() {
        let declared: Vec<_> = Format::ALL.iter().map(|format| format.declaration()).collect();
        let mut names: Vec<&str> = declared.iter().map(|declared| declared.name).collect();
        names.extend(declared.iter().flat_map(|declared| declared.options.iter().map(|option| option.name)));
        assert!(names.len() > 2, "{names:?}");
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    }
}
