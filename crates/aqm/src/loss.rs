//! Losses on the wire, independent of the queue.

use faircast_core::field;
use faircast_core::rng::Rng;
use faircast_core::spec::{self, NumberRange, Opt, SpecError};
use std::fmt;
use std::str::FromStr;

/// Model of losses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LossSpec {
    /// Each packet is lost with this probability, independently.
    Bernoulli(f64),
    /// A chain of two states, good and bad (Gilbert 1960, Elliott 1963), with one step per packet.
    GilbertElliott {
        /// Probability of a transition from good to bad before a packet.
        to_bad: f64,
        /// Probability of a transition from bad to good before a packet.
        to_good: f64,
        /// Loss probability in the good state.
        good: f64,
        /// Loss probability in the bad state.
        bad: f64,
    },
}

/// Options of [`LossSpec::GilbertElliott`] during parsing.
#[derive(Debug, Clone, Copy)]
struct Gilbert {
    to_bad: Option<f64>,
    to_good: Option<f64>,
    good: f64,
    bad: f64,
}

const GILBERT: &[Opt<Gilbert>] = &[
    Opt::number(
        "to_bad",
        NumberRange::PART,
        field!(to_bad?),
        "probability to go from good to bad before a packet",
    ),
    Opt::number(
        "to_good",
        NumberRange::PART,
        field!(to_good?),
        "probability to go from bad to good before a packet",
    ),
    Opt::number("good", NumberRange::PART, field!(good), "loss probability in the good state"),
    Opt::number("bad", NumberRange::PART, field!(bad), "loss probability in the bad state"),
];

impl LossSpec {
    /// Returns the model if all values of the model are valid probabilities.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn checked(self) -> Result<LossSpec, SpecError> {
        self.to_string().parse::<LossSpec>().map(|_| self)
    }
}

/// Parses `bernoulli,0.01` or `gilbert,to_bad=0.01,to_good=0.3`. The defaults are `good=0` and `bad=1`.
impl FromStr for LossSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<LossSpec, SpecError> {
        match spec::split(text) {
            ("bernoulli", "") => Err(SpecError::Missing { of: "bernoulli", missing: "the loss probability" }),
            ("bernoulli", share) => {
                let known = share.parse().ok().filter(|share: &f64| (0.0..=1.0).contains(share));
                known.map(LossSpec::Bernoulli).ok_or_else(|| SpecError::BadValue {
                    option: "P",
                    value: share.to_owned(),
                    takes: NumberRange::PART.to_string(),
                    meaning: "the loss probability",
                })
            }
            ("gilbert", options) => {
                let mut chain = Gilbert { to_bad: None, to_good: None, good: 0.0, bad: 1.0 };
                spec::configure(&mut chain, options, "gilbert", &[GILBERT])?;
                let (Some(to_bad), Some(to_good)) = (chain.to_bad, chain.to_good) else {
                    return Err(SpecError::Missing { of: "gilbert", missing: "`to_bad=` and `to_good=`" });
                };
                Ok(LossSpec::GilbertElliott { to_bad, to_good, good: chain.good, bad: chain.bad })
            }
            (name, _) => {
                let known = "bernoulli,P, gilbert,to_bad=P,to_good=P[,good=P][,bad=P]".to_owned();
                Err(SpecError::UnknownName { kind: "loss model", name: name.to_owned(), known })
            }
        }
    }
}

impl fmt::Display for LossSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LossSpec::Bernoulli(p) => write!(f, "bernoulli,{p}"),
            LossSpec::GilbertElliott { to_bad, to_good, good, bad } => {
                write!(f, "gilbert,to_bad={to_bad},to_good={to_good},good={good},bad={bad}")
            }
        }
    }
}

/// A lossy wire's state.
#[derive(Debug, Clone)]
pub struct Loss {
    spec: LossSpec,
    bad: bool,
}

impl Loss {
    /// Creates the loss state of a wire. The state is good at first.
    pub const fn new(spec: LossSpec) -> Loss {
        Loss { spec, bad: false }
    }

    /// Whether the next packet is lost.
    pub fn strikes(&mut self, rng: &mut Rng) -> bool {
        match self.spec {
            LossSpec::Bernoulli(probability) => rng.chance(probability),
            LossSpec::GilbertElliott { to_bad, to_good, good, bad } => {
                let leaves = if self.bad { to_good } else { to_bad };
                self.bad ^= rng.chance(leaves);
                rng.chance(if self.bad { bad } else { good })
            }
        }
    }
}
