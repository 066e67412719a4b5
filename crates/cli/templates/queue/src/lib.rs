//! The queue discipline `own:my-name`: random early drop by the present length of the queue.

use faircast_aqm::spec::{QUEUES, QueueFactory};
use faircast_aqm::{AnyDiscipline, Decision, Discipline, DropCause, Offer};
use faircast_core::field;
use faircast_core::own::OwnFactory;
use faircast_core::rng::Rng;
use faircast_core::spec::{self, NumberRange, Opt};
use faircast_core::time::{Rate, Span};

/// Registers the discipline. Call it before scenarios are read.
pub fn register() {
    QUEUES.register("my-name", Box::new(Factory)).expect("the name is valid");
}

/// Options of the discipline.
#[derive(Debug, Clone, Copy)]
struct Config {
    /// Maximum number of waiting packets.
    limit: u32,
    /// Probability of a drop just below the limit.
    most: f64,
    /// Whether ECN-capable packets are marked instead of dropped.
    ecn: bool,
}

const OPTIONS: &[Opt<Config>] = &[
    Opt::whole("limit", 2, 1_000_000, field!(limit as u32), "maximum number of waiting packets"),
    Opt::number("most", NumberRange::PART, field!(most), "probability of a drop just below the limit"),
    Opt::word("ecn", |config| config.ecn, |config| config.ecn = true, "marks packets instead of dropping them"),
];

impl Config {
    fn read(options: &str) -> Result<Config, String> {
        let mut config = Config { limit: 100, most: 0.1, ecn: false };
        spec::configure(&mut config, options, "queue my-name", &[OPTIONS]).map_err(|error| error.to_string())?;
        Ok(config)
    }
}

#[derive(Debug)]
struct Factory;

impl OwnFactory for Factory {
    // Change the version when the code changes, or else stored runs of the old code are used again.
    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn check(&self, options: &str) -> Result<(), String> {
        Config::read(options).map(drop)
    }
}

impl QueueFactory for Factory {
    fn queue(&self, options: &str, _rate: Rate, _delay: Span) -> AnyDiscipline {
        let discipline = EarlyDrop { config: Config::read(options).expect("checked") };
        AnyDiscipline::AtArrival(Box::new(discipline))
    }
}

#[derive(Debug)]
struct EarlyDrop {
    config: Config,
}

impl Discipline for EarlyDrop {
    fn on_arrival(&mut self, offer: &Offer, rng: &mut Rng) -> Decision {
        let Config { limit, most, ecn } = self.config;
        if offer.waiting >= limit {
            return Decision::Drop(DropCause::Overflow);
        }
        let half = f64::from(limit) / 2.0;
        let above = (f64::from(offer.waiting) - half) / half;
        if above > 0.0 && rng.chance(above * most) { offer.warned(ecn) } else { Decision::Accept }
    }
}
