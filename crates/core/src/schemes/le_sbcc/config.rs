//! Parameters of LE-SBCC, with the paper's symbols and values.

use crate::bounds::Guard;
use crate::rate::{PolicyChoice, Sending, Start};
use crate::schemes::catalogue::{Entry, Feedback, LayerRates, StatedRate, Wire, policy};
use crate::schemes::declare::configuration;
use crate::spec::NumberRange;
use crate::suppress::TruncatedExponential;
use crate::time::{Rate, Span};

configuration! {
    /// All settings of LE-SBCC. [`Config::published`] reproduces the thesis, [`Config::transport`] is for real networks.
    pub struct Config {
        /// Settings of packet sending that all schemes share.
        sending: Sending = Sending::published();
        /// The rate policy.
        policy: PolicyChoice = PolicyChoice::Aimd => option[policy!()];
        /// Ratio of the rate after a reduction to the rate before: one half in the thesis.
        beta: f64 = 0.5
            => number["beta", NumberRange::of(0.1, 1.0),
                "fraction of the rate that remains after a reduction"];
        /// Initial rate; `None` for [`Sending::initial_rate`].
        initial_rate: Option<Rate> = None
            => rate["rate0" or "auto", NumberRange::POSITIVE,
                "initial rate; auto: a packet per round-trip time"];
        /// The first filter: combines the indications of one receiver within a round trip into one loss event.
        li2le: Part = Part::On
            => choice["li2le", { "on" => On, "off" => Off },
                "whether a receiver's reports of one round trip count as one loss event"];
        /// The rule by which the first filter decides that an indication is a new loss event.
        events: Events = Events::Window
            => choice["events", { "window" => Window, "slots" => Slots },
                "earliest start of a new loss event: SRTT + 2 sigma after the previous loss event (window), or the next slot of one round-trip time (slots)"];
        /// The second filter: of the loss events of all receivers, passes about as many as the worst receiver has.
        filter: Selection = Selection::MaxLprf
            => choice["filter", { "max-lprf" => MaxLprf, "lprf" => Lprf, "even" => Even, "none" => All },
                "probability that a loss event passes: the worst receiver's share of all events, the share of its own receiver, one over the number of receivers, or 1"];
        /// The third filter, "ATF": at most one reduction per epoch.
        atf: Part = Part::On
            => choice["atf", { "on" => On, "off" => Off },
                "whether the rate is reduced at most once in 1.5 round-trip times"];
        /// Whether nothing is sent for half a round trip after a reduction.
        silence: Silence = Silence::Suited
            => choice["silence", { "auto" => Suited, "on" => On, "off" => Off },
                "silence of half a round trip after a reduction; auto: on with ATF, unless the policy is an equation"];
        /// Whether round-trip samples below half the mean are discarded.
        prune: Part = Part::On
            => choice["prune", { "on" => On, "off" => Off },
                "whether round-trip samples below half the mean are discarded"];
        /// Whether the mean round-trip time is updated exactly as printed in appendix A.
        rtt_literal: Part = Part::Off
            => choice["rtt-literal", { "on" => On, "off" => Off },
                "whether a new round-trip sample has the printed weight of 7/8"];
        /// Factor by which loss-event counts decay every 100 round trips.
        decay: f64 = 0.9
            => number["decay", NumberRange::of(0.01, 1.0),
                "fraction of the counts of loss events that remains after 100 round trips"];
        /// Maximum random delay of a loss report; zero to report at once.
        backoff: Span = Span::ZERO
            => seconds["backoff", NumberRange::of(0.0, MAX_WAIT), "maximum random delay of a loss report"];
        // Paper gap: 2.1.2 leaves the limitation of reports to the transport protocol. With `Config::transport`, receivers send
        // at most one report per 5 ms; losses in the meantime are in the next report.
        /// Minimum interval between two loss reports of a receiver.
        spacing: Span = Span::ZERO
            => seconds["spacing", NumberRange::of(0.0, MAX_WAIT),
                "minimum time between two loss reports of a receiver"];
        /// The packet whose number a report contains, for samples of the round-trip time.
        echoes: Echoes = Echoes::Lost
            => choice["echo", { "lost" => Lost, "revealing" => Revealing },
                "packet that a report names for round-trip samples: the lost one, or the one that revealed the loss"];
        /// Distribution of the delay of answers in a start-up by doubling.
        delay_law: TruncatedExponential = TruncatedExponential::default();
    }

    /// The values of the thesis: packets of 1000 bytes, AIMD that starts at a packet per round trip, and a report of every loss
    /// at once.
    pub fn published;

    impl Configure for Config {
        sending: sending;
        const ENTRY: Entry = ENTRY;
        // Disables two messages that receivers of other programs do not send: answers to a start-up, and signs of life.
        fn without_answers(mut self) -> Config {
            self.sending.start = Start::Linear;
            self.sending.silent_group_guard = Guard::Off;
            self
        }
    }
}

/// Whether a part of the scheme is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Inactive, for experiments that show its effect.
    Off,
    /// Active.
    On,
}

/// The rule that decides whether an indication of a receiver is a new loss event.
// Paper gap: 2.1.1 and appendix A print a filter that is closed for SRTT + 2 sigma after a loss event. The text of 2.1.1 and the
// Markov chain of 2.2.1.3 have "a binary number" for each round trip, which is one when there are losses. Independent losses make
// more events in slots. A burst of losses across the end of a slot is two events. The printed filter is the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Events {
    /// The indication arrives more than `SRTT + 2 sigma` after the receiver's latest loss event (appendix A).
    Window,
    /// The indication is the receiver's first one in a slot. A slot lasts a mean round-trip time; slots follow each other without
    /// gaps and are the same for all receivers.
    Slots,
}

/// The rule that selects the loss events that pass the second filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// Passes each event with a probability equal to the worst receiver's share of all events. On average, the number of passed
    /// events equals the number of the worst receiver's events.
    MaxLprf,
    /// Passes each event with a probability equal to the share of its receiver (Bhattacharyya et al.; paper 000, 1.6.2.5
    /// and 2.1.1).
    Lprf,
    /// Passes each event with the probability 1/N for N receivers that report (Wang and Schwartz; paper 000, 1.6.2.6).
    Even,
    /// Passes all events.
    All,
}

/// Whether the source sends nothing for some time after a reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// The source is silent if the third filter is on, unless an equation determines the rate.
    // Paper gap: 2.3.1 does not define the silence for a rate computed by the equation. Here there is no silence, because the
    // purpose of the equation is a smooth rate.
    Suited,
    /// On.
    On,
    /// Off.
    Off,
}

/// The packet whose number a report contains, for samples of the round-trip time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Echoes {
    /// The first lost packet, with a hold time of zero. A source interprets negative acknowledgements of other protocols in this
    /// way.
    Lost,
    // Paper gap: 2.1.1 times the lost packet, which includes the wait for the packet that reveals the loss and the random delay
    // of the report. `Config::transport` names the revealing packet and the delay of the report.
    /// The packet that revealed the loss, with the time for which the report was delayed.
    Revealing,
}

impl Config {
    /// Returns the settings for a real network: doubling start, all guards, beta 0.75, at most 200 loss reports per second from
    /// each receiver.
    ///
    /// With the thesis's factor of one half, a paced source gets a third to a half of the rate of simulated TCP at a drop-tail
    /// queue. The source spreads its packets evenly, so they meet a full queue more often than the bursts of TCP. With several
    /// bottlenecks, the one that is worst at the moment counts. With a factor of 0.75 the source gets 0.8 to 1.2 times the rate
    /// of TCP. These ratios were measured on paths with 10 to 100 Mbit/s, 4 to 80 ms and 1 to 16 bottlenecks.
    // Paper gap: 2.1.1 halves the rate. Halving shares evenly with other LE-SBCC sources, but not with TCP.
    pub fn transport(packet_size: u16) -> Config {
        Config {
            sending: Sending::transport(packet_size),
            beta: 0.75,
            spacing: Span::from_millis(5),
            echoes: Echoes::Revealing,
            ..Config::published()
        }
    }

    /// Returns whether the source sends nothing for some time after a reduction.
    pub fn is_silent_after_reductions(&self) -> bool {
        match self.silence {
            Silence::Suited => self.atf == Part::On && !matches!(self.policy, PolicyChoice::Equation(_)),
            Silence::On => true,
            Silence::Off => false,
        }
    }
}

/// The scheme's entry in the catalogue.
const ENTRY: Entry = Entry {
    name: "le-sbcc",
    number: 2,
    summary: "one rate; receivers only report losses, and the source filters the reports down to as many as the worst receiver sends",
    source: "paper 000, chapter 2",
    sender: "filters the loss reports of all receivers down to one receiver's share, and halves the rate at most once in 1.5 round-trip times",
    receiver: "reports losses, as the receivers of any reliable protocol do",
    feedback: Feedback::Reports,
    stated_rate: StatedRate::StartUp,
    wires: &[Wire::Native, Wire::Pgm],
    layers: LayerRates::One,
    deviations: &[
        "A new sample has a weight of 1/8 in the mean round-trip time; appendix A prints 7/8.",
        "After sixteen consecutive round-trip samples below half the mean, further ones are accepted; otherwise a shorter path would never be recognised.",
        "With the equation there is no silence, and the first loss interval is chosen so that it halves the rate.",
        "On real networks a reduction keeps 0.75 of the rate instead of half, because packets are spaced more evenly than TCP's.",
        "On real networks reports name the packet that revealed the loss, and state the delay at the receiver.",
        "On real networks a receiver sends at most one loss report per 5 ms.",
        "On real networks other feedback also gives round-trip samples: from any receiver before the first loss, then from the worst one.",
        "The rate grows by a packet per round-trip time as measured at congestion, although other feedback measures the present, shorter round-trip time.",
        "On real networks the session starts by doubling its rate in each round, instead of starting with a packet per round-trip time.",
        "The rate does not grow while the source does not use it, or while no receiver seems to receive.",
    ],
};

/// Maximum delay of a report, in seconds.
const MAX_WAIT: f64 = 10.0;
