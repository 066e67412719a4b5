//! The declaration of a foreign wire format, and the requests that a program makes of it without knowing its name.
//!
//! A program reads its own options, compares the [`Feature`]s that they ask for with [`Declaration::refuses`], and gives the rest to
//! [`Format::source`] or [`Format::receiver`], with the format's own options as text.

use super::{ReceiverPlace, SourcePlace};
use crate::configuration::Configuration;
use faircast_core::schemes::Scheme;
use faircast_core::time::Rate;
use faircast_transport::config::{Content, Destination, KeepPartial, Repeat};
use faircast_transport::object::Names;
use faircast_wire::Spacing;
use serde::Serialize;
use std::time::Duration;

/// A foreign wire format, as its crate implements it for a type without values.
pub trait Format {
    /// The declaration of the format.
    const DECLARATION: Declaration;
    /// The configuration of its sources.
    type Source: Configuration<Report: Outcome>;
    /// The configuration of its receivers.
    type Receiver: Configuration<Report: Outcome>;

    /// A source as it is asked for.
    ///
    /// # Errors
    /// When what is asked for cannot be, or contradicts itself.
    fn source(asked: SourceRequest) -> Result<Self::Source, Refused>;

    /// A receiver as it is asked for.
    ///
    /// # Errors
    /// As for a source.
    fn receiver(asked: ReceiverRequest) -> Result<Self::Receiver, Refused>;
}

/// The declaration of a format.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// Its name in a list of formats, as in `pgm`.
    pub name: &'static str,
    /// Its name in a sentence, as in `PGM`.
    pub title: &'static str,
    /// Its description, in a line.
    pub summary: &'static str,
    /// The options that only it has. No other format has one of the same name.
    pub options: &'static [FormatOption],
    /// The features that it does not have, each with the reason.
    pub refuses: &'static [(Feature, &'static str)],
}

impl Declaration {
    /// Why it does not have a feature, if so.
    #[must_use]
    pub fn why_not(&self, feature: Feature) -> Option<&'static str> {
        self.refuses.iter().find(|(refused, _)| *refused == feature).map(|(_, why)| *why)
    }
}

/// An option of one format.
#[derive(Debug, Clone, Copy)]
pub struct FormatOption {
    /// Its name, as in `nak-port`.
    pub name: &'static str,
    /// The name of its value, as in `PORT`.
    pub value: &'static str,
    /// Its meaning, with its default.
    pub meaning: &'static str,
    /// The values that it may have.
    pub values: Values,
    /// At which end it can be given.
    pub ends: Ends,
}

/// The values that an option may have.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// One of these words, each with its meaning.
    Words(&'static [(&'static str, &'static str)]),
    /// A text that passes this check.
    Checked(fn(&str) -> Result<(), String>),
}

/// The ends of a session.
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
    /// A name for content that has none.
    Name,
    /// Content of unknown length that is read to its end, as one file.
    Pipe,
    /// A live stream.
    Stream,
    /// Streams of their own on the layers.
    Layers,
    /// Owners, attributes and special bits of files.
    Metadata,
    /// Files in place of the links that lead to them.
    Links,
    /// Encryption.
    Encryption,
    /// Signed content.
    Signatures,
    /// Signed receipts.
    Receipts,
    /// A policy for slow receivers.
    SlowPolicy,
    /// A number or a list of receivers that are waited for.
    Expected,
    /// A report on every receiver.
    ReceiverReport,
    /// A port that receivers answer to.
    Port,
    /// Hosts that are served by unicast.
    Unicast,
    /// A session without feedback.
    OneWay,
    /// A fixed rate.
    FixedRate,
    /// How often the content is sent.
    Repetition,
    /// A congestion control.
    Scheme,
    /// A least rate.
    LeastRate,
    /// A highest rate.
    HighestRate,
    /// Sources by the names that they say.
    SourceNames,
    /// Unfinished content that is kept for later sessions.
    KeepPartial,
    /// Files that are flushed to the disk.
    Sync,
    /// Files that replace those of other sources.
    Replacement,
    /// Content that is written to one stream.
    OneStream,
}

/// Why a session cannot be as it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// A feature that the format does not have, or not together with others that were asked for.
    Feature {
        /// Which.
        feature: Feature,
        /// Why not.
        why: &'static str,
    },
    /// An option of the format that does not go with the rest.
    Option {
        /// Its name.
        name: &'static str,
        /// Why not.
        why: &'static str,
    },
    /// A feature that has to be asked for.
    Missing {
        /// Which.
        feature: Feature,
        /// Why.
        why: &'static str,
    },
}

/// Values of a format's own options, as text that has passed their checks.
#[derive(Debug, Clone, Default)]
pub struct Given(Vec<(&'static str, String)>);

impl Given {
    /// These values, each with the name of its option.
    #[must_use]
    pub fn new(values: Vec<(&'static str, String)>) -> Given {
        Given(values)
    }

    /// The value of an option, where it was given.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(given, _)| *given == name).map(|(_, value)| value.as_str())
    }
}

/// The request for a source, in terms that all formats share.
#[derive(Debug)]
#[non_exhaustive]
pub struct SourceRequest {
    /// Where it sends.
    pub place: SourcePlace,
    /// The content that it sends.
    pub content: Content,
    /// The congestion control; the format's own choice when `None`.
    pub scheme: Option<Scheme>,
    /// How the groups of layers follow each other.
    pub spacing: Spacing,
    /// Never slower than this.
    pub min: Option<Rate>,
    /// Never faster than this.
    pub max: Option<Rate>,
    /// Always at this rate.
    pub rate: Option<Rate>,
    /// How often or how long.
    pub repeat: Option<Repeat>,
    /// How long receivers may be silent before the session ends.
    pub linger: Duration,
    /// The format's own options.
    pub options: Given,
}

impl SourceRequest {
    /// Send this from here, with the format's own choices and a linger of 10 s.
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
            linger: Duration::from_secs(10),
            options: Given::default(),
        }
    }
}

/// The request for a receiver, in terms that all formats share.
#[derive(Debug)]
#[non_exhaustive]
pub struct ReceiverRequest {
    /// Where it listens, and for how long.
    pub place: ReceiverPlace,
    /// Where content goes.
    pub destination: Destination,
    /// The treatment of names with characters that a terminal obeys.
    pub names: Names,
    /// How much of what earlier sessions have left unfinished stays.
    pub keep_partial: KeepPartial,
    /// A session may bring this many bytes at most.
    pub most: Option<u64>,
    /// The format's own options.
    pub options: Given,
}

impl ReceiverRequest {
    /// Receive from here into this, with names escaped.
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

/// How a session of any format ended, in words.
pub trait Outcome: Serialize + Send + 'static {
    /// The content that was sent or received, a line each.
    fn summary(&self) -> Vec<String>;

    /// The missing parts, unless the session is a success.
    fn shortfall(&self) -> Option<String>;

    /// Datagrams that this host's own socket buffers dropped.
    fn dropped_local(&self) -> u64 {
        0
    }
}
