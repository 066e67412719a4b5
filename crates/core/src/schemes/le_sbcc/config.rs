//! Parameters of LE-SBCC, with the paper's symbols and values.

use crate::bounds::Guard;
use crate::rate::{PolicyChoice, Sending, Start};
use crate::schemes::catalogue::{Entry, Feedback, LayerRates, StatedRate, Wire, policy};
use crate::schemes::declare::configuration;
use crate::spec::NumberRange;
use crate::suppress::TruncatedExponential;
use crate::time::{Rate, Span};

configuration! {
    /// Everything that can be chosen. [`Config::published`] reproduces the thesis, [`Config::transport`] is for real networks.
    pub struct Config {
        /// How packets are sent, whatever the scheme.
        sending: Sending = Sending::published();
        /// The rate policy.
        policy: PolicyChoice = PolicyChoice::Aimd => option[policy!()];
        /// The part of the rate that a reduction keeps: one half in the thesis.
        beta: f64 = 0.5 => number["beta", NumberRange::of(0.1, 1.0), "part of the rate that a reduction keeps"];
        /// The first rate; `None` for [`Sending::initial_rate`].
        initial_rate: Option<Rate> = None
            => rate["rate0" or "auto", NumberRange::POSITIVE, "first rate; auto: a packet per round-trip time"];
        /// The first filter: one loss event of many indications of one receiver within a round trip.
        li2le: Part = Part::On
            => choice["li2le", { "on" => On, "off" => Off },
                "one loss event of a receiver's reports of a round trip"];
        /// When the first filter takes an indication for another loss event.
        events: Events = Events::Window
            => choice["events", { "window" => Window, "slots" => Slots },
                "another loss event: SRTT + 2 sigma after the latest one, or in the next slot of a round-trip time"];
        /// The second filter: as many loss events as one receiver has.
        filter: Selection = Selection::MaxLprf
            => choice["filter", { "max-lprf" => MaxLprf, "lprf" => Lprf, "none" => All },
                "receivers whose loss events pass"];
        /// The third filter, "ATF": at most one reduction per epoch.
        atf: Part = Part::On
            => choice["atf", { "on" => On, "off" => Off }, "at most one reduction in 1.5 round-trip times"];
        /// Whether nothing is sent for half a round trip after a reduction.
        silence: Silence = Silence::Suited
            => choice["silence", { "auto" => Suited, "on" => On, "off" => Off },
                "half a round trip of silence after a reduction; auto: with ATF and not with an equation"];
        /// Whether round-trip samples below half the mean are thrown away.
        prune: Part = Part::On
            => choice["prune", { "on" => On, "off" => Off }, "throw away round-trip samples below half the mean"];
        /// Whether the mean round-trip time is updated as appendix A prints it.
        rtt_literal: Part = Part::Off
            => choice["rtt-literal", { "on" => On, "off" => Off }, "weigh new round-trip samples by 7/8, as printed"];
        /// The part of the loss-event counts that is left after 100 round trips.
        decay: f64 = 0.9
            => number["decay", NumberRange::of(0.01, 1.0), "part of the counts that is left after 100 round trips"];
        /// Receivers wait for a random time up to this before they report a loss; zero to report at once.
        backoff: Span = Span::ZERO
            => seconds["backoff", NumberRange::of(0.0, MAX_WAIT), "longest random delay of a loss report"];
        // Paper gap: 2.1.2 leaves it to the transport protocol that reports do not become a flood. `Config::transport` has
        // receivers send one in 5 ms at most; what is lost meanwhile is in the next one.
        /// Receivers send two reports of losses no closer to each other than this.
        spacing: Span = Span::ZERO
            => seconds["spacing", NumberRange::of(0.0, MAX_WAIT), "minimum time between two loss reports of a receiver"];
        /// Which packet reports name for the round-trip time.
        echoes: Echoes = Echoes::Lost
            => choice["echo", { "lost" => Lost, "revealing" => Revealing },
                "the packet that a report names for the round trip"];
        /// The law of the delay of answers in a start-up by doubling.
        delay_law: TruncatedExponential = TruncatedExponential::default();
    }

    /// The thesis: packets of 1000 bytes, AIMD from a packet per round trip, every loss reported at once.
    pub fn published;

    impl Configure for Config {
        sending: sending;
        const ENTRY: Entry = ENTRY;
        // Receivers of other programs give no answers to a start-up, and no sign of life.
        fn without_answers(mut self) -> Config {
            self.sending.start = Start::Linear;
            self.sending.silent_group_guard = Guard::Off;
            self
        }
    }
}

/// Whether a part of the scheme is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// It is not: for experiments that show its effect.
    Off,
    /// It is.
    On,
}

/// When an indication of a receiver is another loss event.
// Paper gap: 2.1.1 and appendix A print a filter that stays shut for SRTT + 2 sigma after a loss event; the text of 2.1.1 and
// the Markov chain of 2.2.1.3 have "a binary number", one when there are losses in a round trip, round trip by round trip.
// Where losses are independent, slots have more events; where they come in bursts, a burst that crosses the end of a slot is
// two. So it is the filter that is printed, unless asked for otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Events {
    /// When it comes more than `SRTT + 2 sigma` after the latest one (appendix A).
    Window,
    /// When it is the receiver's first in a slot: slots of a mean round-trip time follow each other, for all receivers alike.
    Slots,
}

/// Which loss events of all receivers' pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// Each with the share that the worst receiver has in all of them: on average as many as that one's.
    MaxLprf,
    /// Each with the share that its own receiver has in all of them (Bhattacharyya et al.; paper 000, 2.1.1).
    Lprf,
    /// All of them.
    All,
}

/// Whether nothing is sent for a while after a reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// Yes, as a part of the third filter, unless the rate comes from an equation.
    // Paper gap: 2.3.1 does not say what becomes of the silence when the rate comes from the equation. Here there is none,
    // for a smooth rate is what the equation is for.
    Suited,
    /// Yes.
    On,
    /// No.
    Off,
}

/// Which packet a report names for the round-trip time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Echoes {
    /// The first lost one, as if it had been answered at once: the source's reading of any protocol's negative acknowledgement.
    Lost,
    // Paper gap: 2.1.1 times the lost packet, which includes the wait for the packet that reveals the loss and the random
    // delay of the report. `Config::transport` names the revealing packet and how long the report was held.
    /// The one that revealed the loss, with the time that the report was held.
    Revealing,
}

impl Config {
    /// A sender on a real network: doubling start, all guards, beta 0.75, at most 200 loss reports a second from each
    /// receiver.
    ///
    /// With the thesis's half, a paced source gets a third to a half of the rate of simulated TCP (SACK) at a drop-tail queue. Its packets
    /// are spread evenly, so it meets a full queue more often than TCP's bursts do, and of several bottlenecks the worst one counts at any
    /// moment. With 0.75 it gets 0.8 to 1.2 of TCP's rate on paths from 10 to 100 Mbit/s, 4 to 80 ms and 1 to 16 bottlenecks.
    // Paper gap: 2.1.1 halves the rate. Halving shares evenly with sources of the same kind, but not with TCP.
    pub fn transport(packet_size: u16) -> Config {
        Config {
            sending: Sending::transport(packet_size),
            beta: 0.75,
            spacing: Span::from_millis(5),
            echoes: Echoes::Revealing,
            ..Config::published()
        }
    }

    /// Whether reductions are followed by silence.
    pub fn is_silent_after_reductions(&self) -> bool {
        match self.silence {
            Silence::Suited => self.atf == Part::On && !matches!(self.policy, PolicyChoice::Equation(_)),
            Silence::On => true,
            Silence::Off => false,
        }
    }
}

/// The scheme as a user sees it.
const ENTRY: Entry = Entry {
    name: "le-sbcc",
    number: 2,
    summary: "one rate; receivers only report losses, the source makes of all reports as many as the worst receiver's",
    source: "paper 000, chapter 2",
    sender: "filters all receivers' loss reports down to one receiver's worth and halves the rate at most once in 1.5 round-trip times",
    receiver: "reports losses, as the receivers of any reliable protocol do",
    feedback: Feedback::Reports,
    stated_rate: StatedRate::StartUp,
    wires: &[Wire::Native, Wire::Pgm],
    layers: LayerRates::One,
    deviations: &[
        "The mean round-trip time weighs a new sample by 1/8, where appendix A prints 7/8.",
        "Sixteen round-trip samples below half the mean in a row are believed, or a faster path would never be.",
        "With the equation there is no silence, and the first loss interval is one that halves the rate.",
        "On real networks a reduction keeps 0.75 of the rate instead of half: packets are paced more evenly than TCP's.",
        "On real networks reports name the packet that revealed the loss and say how long they were held.",
        "On real networks a receiver reports losses at most once in 5 ms.",
        "On real networks other answers time the round trip too: anybody's before the first loss, then the worst receiver's.",
        "The longer round trip at congestion makes the steps smaller, where other answers tell the present one.",
        "On real networks the session starts by doubling in rounds instead of a packet per round-trip time.",
        "A rate that is not used does not grow, nor does one that nobody seems to receive.",
    ],
};

/// Receivers hold no report longer than this, in seconds.
const MAX_WAIT: f64 = 10.0;
