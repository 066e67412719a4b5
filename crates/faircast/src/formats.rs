//! The foreign wire formats: one list.

use crate::{Configuration, Error, Event, Stop};
use faircast_driver::format::{Declaration, Format as _, Outcome, ReceiverRequest, Refused, SourceRequest};
use serde::Serialize;

/// A line for each format: its variant, the module of this crate that has it, its crate, and the type that declares it there.
macro_rules! formats {
    ($($(#[doc = $doc:literal])* $variant:ident: $module:ident = $krate:ident::$format:ident;)*) => {
        $($(#[doc = $doc])* pub use $krate::public as $module;)*

        /// A foreign wire format.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Format {
            $($(#[doc = $doc])* $variant,)*
        }

        /// The configuration of a source in one of them.
        #[derive(Debug)]
        #[non_exhaustive]
        pub enum FormatSource {
            $($(#[doc = $doc])* $variant(<$krate::$format as faircast_driver::format::Format>::Source),)*
        }

        /// The configuration of a receiver in one of them.
        #[derive(Debug)]
        #[non_exhaustive]
        pub enum FormatReceiver {
            $($(#[doc = $doc])* $variant(<$krate::$format as faircast_driver::format::Format>::Receiver),)*
        }

        /// How a source in one of them ended.
        #[derive(Debug, Serialize)]
        #[serde(untagged)]
        #[non_exhaustive]
        pub enum FormatSourceReport {
            $($(#[doc = $doc])* $variant(Report<<$krate::$format as faircast_driver::format::Format>::Source>),)*
        }

        /// How a receiver in one of them ended.
        #[derive(Debug, Serialize)]
        #[serde(untagged)]
        #[non_exhaustive]
        pub enum FormatReceiverReport {
            $($(#[doc = $doc])* $variant(Report<<$krate::$format as faircast_driver::format::Format>::Receiver>),)*
        }

        impl Format {
            /// All of them.
            pub const ALL: &'static [Format] = &[$(Format::$variant),*];

            /// Description of the format.
            #[must_use]
            pub const fn declaration(self) -> &'static Declaration {
                match self {
                    $(Format::$variant => &<$krate::$format>::DECLARATION,)*
                }
            }

            /// A source as it is asked for.
            ///
            /// # Errors
            /// When what is asked for cannot be, or contradicts itself.
            pub fn source(self, asked: SourceRequest) -> Result<FormatSource, Refused> {
                match self {
                    $(Format::$variant => <$krate::$format>::source(asked).map(FormatSource::$variant),)*
                }
            }

            /// A receiver as it is asked for.
            ///
            /// # Errors
            /// As for a source.
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

/// The common methods of one kind of ends: run, and report.
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
    /// PGM (RFC 3208), for programs that speak OpenPGM or ZeroMQ's epgm.
    Pgm: pgm = faircast_pgm::Pgm;
    /// ALC with FLUTE (RFC 5775, 6726).
    Alc: alc = faircast_flute::Alc;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_of_formats_and_of_their_options_are_each_used_once() {
        let declared: Vec<_> = Format::ALL.iter().map(|format| format.declaration()).collect();
        let mut names: Vec<&str> = declared.iter().map(|declared| declared.name).collect();
        names.extend(declared.iter().flat_map(|declared| declared.options.iter().map(|option| option.name)));
        assert!(names.len() > 2, "{names:?}");
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    }
}
