//! The declaration of a foreign wire format, and the requests with which a program creates endpoints of any format.
//!
//! A program parses its own options and compares the required [`Feature`]s with [`Declaration::refuses`]. It then passes the
//! request to [`Format::source`] or [`Format::receiver`], with the format's own options as text.

use super::{ReceiverPlace, SourcePlace};
use crate::configuration::Configuration;
use faircast_core::schemes::Scheme;
use faircast_core::time::Rate;
use faircast_transport::config::{Content, Destination, KeepPartial, Repeat};
use faircast_transport::object::Names;
use faircast_wire::Spacing;
use serde::Serialize;
use std::time::Duration;

/// A foreign wire format. The crate of the format implements it for an empty type.
pub trait Format {
    /// The declaration of the format.
    const DECLARATION: Declaration;
    /// Configuration of the format's sources.
    type Source: Configuration<Report: Outcome>;
    /// Configuration of the format's receivers.
    type Receiver: Configuration<Report: Outcome>;

    /// Creates the configuration of a source from a request.
    ///
    /// # Errors
    /// If the request cannot be met, or contradicts itself.
    fn source(asked: SourceRequest) -> Result<Self::Source, Refused>;

    /// Creates the configuration of a receiver from a request.
    ///
    /// # Errors
    /// If the request cannot be met, or contradicts itself.
    fn receiver(asked: ReceiverRequest) -> Result<Self::Receiver, Refused>;
}

/// The declaration of a format.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// Name of the format in a list, as in `pgm`.
    pub name: &'static str,
    /// Name of the format in a sentence, as in `PGM`.
    pub title: &'static str,
    /// Description of the format in one line.
    pub summary: &'static str,
    /// Options of this format only. No other format has an option of the same name.
    pub options: &'static [FormatOption],
    /// Features that the format lacks, each with the reason.
    pub refuses: &'static [(Feature, &'static str)],
}

impl Declaration {
    /// Returns the reason why the format lacks a feature, if it does.
    #[must_use]
    pub fn why_not(&self, feature: Feature) -> Option<&'static str> {
        self.refuses.iter().find(|(refused, _)| *refused == feature).map(|(_, why)| *why)
    }
}

/// An option of one format.
#[derive(Debug, Clone, Copy)]
pub struct FormatOption {
    /// Name of the option, as in `nak-port`.
    pub name: &'static str,
    /// Name of the option's value, as in `PORT`.
    pub value: &'static str,
    /// Meaning of the option, with its default.
    pub meaning: &'static str,
    /// Possible values of the option.
    pub values: Values,
    /// The endpoints that accept the option.
    pub ends: Ends,
}

/// The possible values of an option.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// One of these words, each with its meaning.
    Words(&'static [(&'static str, &'static str)]),
    /// A text that passes this check.
    Checked(fn(&str) -> Result<(), String>),
}

/// The endpoints of a session that accept an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// The source alone.
    Source,
    /// Source and receivers.
    Both,
}

/// A feature of sessions in faircast's own format that other formats may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Receiving.
    Reception,
    /// A name given to content that has none.
    Name,
    /// Sending standard input to its end as one file.
    Pipe,
    /// A live stream.
    Stream,
    /// A separate stream on each layer.
    Layers,
    /// An aim for the delay of a live stream.
    Latency,
    /// Owners, attributes and special bits of files.
    Metadata,
    /// Sending the targets of symbolic links instead of the links.
    Links,
    /// Sending only the changed parts of files.
    Delta,
    /// Sending only the list of files.
    DryRun,
    /// Reusing content of other files.
    Reuse,
    /// Encryption.
    Encryption,
    /// Signed content.
    Signatures,
    /// Signed receipts.
    Receipts,
    /// A policy for slow receivers.
    SlowPolicy,
    /// Waiting for a number of receivers.
    Expected,
    /// Waiting for a list of receivers.
    ReceiverList,
    /// Selecting receivers by their host names.
    ReceiverNames,
    /// Sending from a time of the clock on.
    StartTime,
    /// A report on every receiver.
    ReceiverReport,
    /// A port to which receivers send their feedback.
    Port,
    /// Hosts served by unicast.
    Unicast,
    /// A session without feedback.
    OneWay,
    /// A fixed rate.
    FixedRate,
    /// A number of repetitions of the content.
    Repetition,
    /// A congestion control.
    Scheme,
    /// A minimum rate.
    LeastRate,
    /// A maximum rate.
    HighestRate,
    /// A maximum rate that depends on the time of day.
    DayLimits,
    /// Selecting sources by the names that the sources state.
    SourceNames,
    /// Incomplete content that is stored for later sessions.
    KeepPartial,
    /// Flushing files to the disk.
    Sync,
    /// Replacing files that came from other sources.
    Replacement,
    /// Writing the content to one stream.
    OneStream,
}

/// Reason for refusing a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The format lacks a feature, or lacks it in combination with other requested features.
    Feature {
        /// The missing feature.
        feature: Feature,
        /// Reason in words.
        why: &'static str,
    },
    /// An option of the format conflicts with the rest of the request.
    Option {
        /// Name of the option.
        name: &'static str,
        /// Reason in words.
        why: &'static str,
    },
    /// The format requires a feature that was not requested.
    Missing {
        /// The required feature.
        feature: Feature,
        /// Reason in words.
        why: &'static str,
    },
}

/// Values of a format's own options, as text that has passed the checks of the options.
#[derive(Debug, Clone, Default)]
pub struct Given(Vec<(&'static str, String)>);

impl Given {
    /// Creates values from pairs of option name and text.
    #[must_use]
    pub fn new(values: Vec<(&'static str, String)>) -> Given {
        Given(values)
    }

    /// Returns the value of an option, if it was given.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(given, _)| *given == name).map(|(_, value)| value.as_str())
    }
}

/// The request for a source, in terms common to all formats.
#[derive(Debug)]
#[non_exhaustive]
pub struct SourceRequest {
    /// Destination of packets, and socket options.
    pub place: SourcePlace,
    /// Content to send.
    pub content: Content,
    /// Congestion control; `None` for the format's default.
    pub scheme: Option<Scheme>,
    /// Numbering of the groups of layers.
    pub spacing: Spacing,
    /// Minimum rate.
    pub min: Option<Rate>,
    /// Maximum rate.
    pub max: Option<Rate>,
    /// Fixed rate.
    pub rate: Option<Rate>,
    /// Number of repetitions, or their total duration.
    pub repeat: Option<Repeat>,
    /// Number of receivers to wait for before the session starts.
    pub expect: Option<u32>,
    /// Duration for which all receivers must be silent before the session ends. In formats whose receivers join: maximum time to
    /// wait for receivers.
    pub linger: Duration,
    /// Values of the format's own options.
    pub options: Given,
}

impl SourceRequest {
    /// Creates a request to send this content from `place`, with the format's defaults and a linger of 10 s.
    #[must_use]
    pub fn new(place: SourcePlace, content: Content) -> SourceRequest {
        SourceRequest {
            place,
            content,
            scheme: None,
            spacing: Spacing::Address,
            min: None,
            max: None,
            rate: None,
            repeat: None,
            expect: None,
            linger: Duration::from_secs(10),
            options: Given::default(),
        }
    }
}

/// The request for a receiver, in terms common to all formats.
#[derive(Debug)]
#[non_exhaustive]
pub struct ReceiverRequest {
    /// Group, interface and timeouts.
    pub place: ReceiverPlace,
    /// Destination of the content.
    pub destination: Destination,
    /// Treatment of control characters of terminals in file names.
    pub names: Names,
    /// Limits for incomplete content; content beyond them is removed.
    pub keep_partial: KeepPartial,
    /// Maximum size of a session's content, bytes.
    pub most: Option<u64>,
    /// Values of the format's own options.
    pub options: Given,
}

impl ReceiverRequest {
    /// Creates a request to receive from `place` into `destination`, with escaped file names.
    #[must_use]
    pub fn new(place: ReceiverPlace, destination: Destination) -> ReceiverRequest {
        ReceiverRequest {
            place,
            destination,
            names: Names::Escape,
            keep_partial: KeepPartial::default(),
            most: None,
            options: Given::default(),
        }
    }
}

/// The report of a session of any format, in words.
pub trait Outcome: Serialize + Send + 'static {
    /// Returns the sent or received content, one line per item.
    fn summary(&self) -> Vec<String>;

    /// Returns a description of missing parts; `None` if the session was successful.
    fn shortfall(&self) -> Option<String>;

    /// Returns the number of datagrams dropped by this host's socket buffers.
    fn dropped_local(&self) -> u64 {
        0
    }
}
