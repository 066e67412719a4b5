//! Rate policies: they determine the rate after a round trip without congestion, and after a congestion event.
//!
//! The thesis (abstract) calls rate adaptation an exchangeable part: LE-SBCC, ORMCC and MCA+ can use any of these policies.

use super::equation::{Averaging, Equation};
use super::{Aimd, Binomial, Start};
use crate::own::{Boxed, Own, OwnFactory, Registry};
use crate::spec::{Form, NumberRange, SpecError};
use crate::time::{Rate, Span};
use std::fmt;

/// Operating point of a source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Operating {
    /// Present rate.
    pub rate: Rate,
    /// Round-trip time of the followed path.
    pub rtt: Span,
    /// Round-trip time at congestion events, when the bottleneck's queue is full; at least `rtt`.
    pub full_rtt: Span,
    /// Mean deviation of the round-trip time; zero if the scheme does not measure the deviation.
    pub deviation: Span,
    /// Packet size in bytes.
    pub packet_size: u16,
}

/// A congestion event that the scheme has accepted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Congestion {
    /// Rate at which congestion occurred: in ORMCC the throughput at congestion, in other schemes the sending rate.
    pub level: Rate,
    /// Fraction of `level` that remains after the scheme's decrease, "beta".
    pub keep: f64,
}

/// Computes the rate. The scheme decides when the rate adapts, and applies limits and gates.
pub trait RatePolicy {
    /// Records a sent packet.
    fn on_departure(&mut self) {}
    /// Returns the rate after a round-trip time without congestion.
    fn on_tick(&mut self, at: Operating) -> Rate;
    /// Returns the rate after a congestion event; never above `at.rate`.
    fn on_congestion(&mut self, at: Operating, congestion: Congestion) -> Rate;
}

/// Choice of a policy, a part of a scheme's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum PolicyChoice {
    /// [`Aimd`].
    #[default]
    Aimd,
    /// [`Binomial`] with these exponents.
    Binomial(Binomial),
    /// [`Equation`] with these weights.
    Equation(Averaging),
    /// A policy of another crate.
    Own(Own<dyn PolicyFactory>),
}

/// The policies that this program has registered.
pub static POLICIES: Registry<dyn PolicyFactory> = Registry::new("policy");

/// Creates policies of another crate, named `own:NAME`, with options after a second colon.
pub trait PolicyFactory: OwnFactory {
    /// Creates the policy of a source.
    fn policy(&self, options: &str) -> Box<dyn RatePolicy + Send>;
}

/// The state of any policy.
#[derive(Debug)]
pub enum AnyPolicy {
    /// [`Aimd`].
    Aimd(Aimd),
    /// [`Binomial`].
    Binomial(Binomial),
    /// [`Equation`]; boxed, because a simulation may have thousands of sources with other policies.
    Equation(Box<Equation>),
    /// A policy of another crate.
    Own(Boxed<dyn RatePolicy + Send>),
}

impl PolicyChoice {
    /// Text forms of the choices; `tfrc` is another name of `equation`.
    pub const FORMS: &'static [Form<PolicyChoice>] = &[
        Form::word("aimd", |_| PolicyChoice::Aimd),
        Form::numbers("binomial", &[("K", NumberRange::PART), ("L", NumberRange::PART)], |exponents| {
            PolicyChoice::Binomial(Binomial { k: exponents[0], l: exponents[1] })
        }),
        Form::word("iiad", |_| PolicyChoice::Binomial(Binomial::IIAD)),
        Form::word("sqrt", |_| PolicyChoice::Binomial(Binomial::SQRT)),
        Form::word("equation", |_| PolicyChoice::Equation(Averaging::Thesis)),
        Form::word("equation:rfc5348", |_| PolicyChoice::Equation(Averaging::Rfc5348)),
        Form::word("tfrc", |_| PolicyChoice::Equation(Averaging::Thesis)),
    ];

    /// Reads a choice; returns `None` if the text has none of the forms.
    ///
    /// # Errors
    /// If the text names a policy of another crate that is not registered, or refuses its options.
    pub fn read(text: &str) -> Option<Result<PolicyChoice, SpecError>> {
        match POLICIES.read(text, ':') {
            Some(own) => Some(own.map(PolicyChoice::Own)),
            None => Form::read_any(PolicyChoice::FORMS, text).map(Ok),
        }
    }

    /// Creates the policy for a session with a low initial rate.
    pub fn policy(self) -> AnyPolicy {
        self.policy_after(Start::Linear)
    }

    /// Creates the policy for a session with this start.
    pub fn policy_after(self, start: Start) -> AnyPolicy {
        match self {
            PolicyChoice::Aimd => AnyPolicy::Aimd(Aimd),
            PolicyChoice::Binomial(binomial) => AnyPolicy::Binomial(binomial),
            PolicyChoice::Equation(averaging) => {
                AnyPolicy::Equation(Box::new(Equation::new(averaging, start)))
            }
            PolicyChoice::Own(own) => AnyPolicy::Own(Boxed(own.factory().policy(own.options()))),
        }
    }
}

impl RatePolicy for AnyPolicy {
    fn on_departure(&mut self) {
        match self {
            AnyPolicy::Aimd(policy) => policy.on_departure(),
            AnyPolicy::Binomial(policy) => policy.on_departure(),
            AnyPolicy::Equation(policy) => policy.on_departure(),
            AnyPolicy::Own(policy) => policy.on_departure(),
        }
    }

    fn on_tick(&mut self, at: Operating) -> Rate {
        match self {
            AnyPolicy::Aimd(policy) => policy.on_tick(at),
            AnyPolicy::Binomial(policy) => policy.on_tick(at),
            AnyPolicy::Equation(policy) => policy.on_tick(at),
            AnyPolicy::Own(policy) => policy.on_tick(at),
        }
    }

    fn on_congestion(&mut self, at: Operating, congestion: Congestion) -> Rate {
        match self {
            AnyPolicy::Aimd(policy) => policy.on_congestion(at, congestion),
            AnyPolicy::Binomial(policy) => policy.on_congestion(at, congestion),
            AnyPolicy::Equation(policy) => policy.on_congestion(at, congestion),
            AnyPolicy::Own(policy) => policy.on_congestion(at, congestion),
        }
    }
}

/// Writes the choice as the value of an option; [`PolicyChoice::FORMS`] parses this value.
impl fmt::Display for PolicyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            PolicyChoice::Aimd => f.write_str("aimd"),
            PolicyChoice::Binomial(Binomial { k, l }) => write!(f, "binomial:{k}:{l}"),
            PolicyChoice::Equation(Averaging::Thesis) => f.write_str("equation"),
            PolicyChoice::Equation(Averaging::Rfc5348) => f.write_str("equation:rfc5348"),
            PolicyChoice::Own(own) if own.options().is_empty() => f.write_str(own.name()),
            PolicyChoice::Own(own) => write!(f, "{}:{}", own.name(), own.options()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_parsed_from_its_own_name() {
        let read = |text| PolicyChoice::read(text).and_then(Result::ok);
        for name in ["aimd", "binomial:0.5:0.5", "binomial:1:0", "equation", "equation:rfc5348"] {
            assert_eq!(read(name).map(|choice| choice.to_string()).as_deref(), Some(name));
        }
        for (alias, name) in [("sqrt", "binomial:0.5:0.5"), ("iiad", "binomial:1:0"), ("tfrc", "equation")] {
            assert_eq!(read(alias), read(name));
        }
        for nonsense in ["", "equations", "equation:9", "binomial:2:0", "binomial:1"] {
            assert_eq!(read(nonsense), None);
        }
    }
}
