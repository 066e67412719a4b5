//! Parameters of LE-SBCC, with the seed's symbols and values.

use crate::rate::{PolicyChoice, Sending};
use crate::suppress::TruncatedExponential;
use crate::time::{Rate, Span};

/// Everything that can be chosen. [`Config::published`] reproduces the thesis, [`Config::transport`] is for real networks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// How packets are sent, whatever the scheme.
    pub sending: Sending,
    /// The first rate; `None` for [`Sending::initial_rate`].
    pub initial_rate: Option<Rate>,
    /// What moves the rate.
    pub policy: PolicyChoice,
    /// The part of the rate that a reduction keeps: one half in the thesis.
    pub beta: f64,
    /// The first filter: one loss event of many indications of one receiver within a round trip.
    pub li2le: Part,
    /// When the first filter takes an indication for another loss event.
    pub events: Events,
    /// The second filter: as many loss events as one receiver has.
    pub filter: Selection,
    /// The third filter, "ATF": at most one reduction per epoch.
    pub atf: Part,
    /// Whether nothing is sent for half a round trip after a reduction.
    pub silence: Silence,
    /// Whether round-trip samples below half the mean are thrown away.
    pub prune: Part,
    /// Whether the mean round-trip time is updated as appendix A prints it.
    pub rtt_literal: Part,
    /// The part of the loss-event counts that is left after 100 round trips.
    pub decay: f64,
    /// Receivers wait for a random time up to this before they report a loss; zero to report at once.
    pub backoff: Span,
    // Seed gap: 2.1.2 leaves it to the transport protocol that reports do not become a flood. `Config::transport` has
    // receivers send one in 5 ms at most; what is lost meanwhile is in the next one.
    /// Receivers send two reports of losses no closer to each other than this.
    pub spacing: Span,
    /// Which packet reports name for the round-trip time.
    pub echoes: Echoes,
    /// The law of the delay of answers in a start-up by doubling.
    pub delay_law: TruncatedExponential,
}

/// Whether a part of the scheme is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// It is not: for experiments that show what it does.
    Off,
    /// It is.
    On,
}

/// When an indication of a receiver is another loss event.
// Seed gap: 2.1.1 and appendix A print a filter that stays shut for SRTT + 2 sigma after a loss event; the text of 2.1.1 and
// the Markov chain of 2.2.1.3 have "a binary number", one when there are losses in a round trip, round trip by round trip.
// Where losses are independent, slots have more events; where they come in bursts, a burst that crosses the end of a slot is
// two. So it is the filter that is printed, unless asked for otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Events {
    /// When it comes more than `SRTT + 2 sigma` after the one that was the latest (appendix A).
    Window,
    /// When it is the receiver's first in a slot: slots of a mean round-trip time follow each other, for all receivers alike.
    Slots,
}

/// Which loss events of all receivers' pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// Each with the share that the worst receiver has in all of them: on average as many as that one's.
    MaxLprf,
    /// Each with the share that its own receiver has in all of them (Bhattacharyya et al.; seed 000, 2.1.1).
    Lprf,
    /// All of them.
    All,
}

/// Whether nothing is sent for a while after a reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// Yes, as a part of the third filter, unless the rate comes from an equation.
    // Seed gap: 2.3.1 does not say what becomes of the silence when the rate comes from the equation. Here there is none,
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
    /// The first lost one, as if it had been answered at once: what the source makes of any protocol's negative
    /// acknowledgement.
    Lost,
    // Seed gap: 2.1.1 times the lost packet, which includes the wait for the packet that reveals the loss and the random
    // delay of the report. `Config::transport` names the revealing packet and how long the report was held.
    /// The one that revealed the loss, with the time that the report was held.
    Revealing,
}

impl Config {
    /// The thesis: packets of 1000 bytes, AIMD from a packet per round trip, every loss reported at once.
    pub fn published() -> Config {
        Config {
            sending: Sending::published(),
            initial_rate: None,
            policy: PolicyChoice::Aimd,
            beta: 0.5,
            li2le: Part::On,
            events: Events::Window,
            filter: Selection::MaxLprf,
            atf: Part::On,
            silence: Silence::Suited,
            prune: Part::On,
            rtt_literal: Part::Off,
            decay: 0.9,
            backoff: Span::ZERO,
            spacing: Span::ZERO,
            echoes: Echoes::Lost,
            delay_law: TruncatedExponential::default(),
        }
    }

    /// A sender on a real network: doubling start, all guards, beta 0.75, at most 200 loss reports a second from each
    /// receiver.
    ///
    /// With the thesis's half, a paced source gets a third to a half of what simulated TCP (SACK) does at a drop-tail queue:
    /// its packets are spread evenly, so it meets a full queue more often than TCP's bursts do, and of several bottlenecks
    /// the worst one counts at any moment. With 0.75 it gets 0.8 to 1.2 of TCP's rate on paths from 10 to 100 Mbit/s, 4 to
    /// 80 ms and 1 to 16 bottlenecks.
    // Seed gap: 2.1.1 halves the rate. Halving shares evenly with sources of the same kind, but not with TCP.
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
