//! LE-SBCC's parameters as text.

use super::config::{Config, Echoes, Events, Part, Selection, Silence};
use crate::rate::bounds::Guard;
use crate::rate::{Sending, Start};
use crate::schemes::catalogue::{Configure, Entry, Feedback, LayerRates, SaysRate, Wire, policy};
use crate::spec::{Opt, Within};
use crate::{choice, field};

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "le-sbcc",
        number: 2,
        summary: "one rate; receivers only report losses, the source makes of all reports as many as the worst receiver's",
        source: "seed 000, chapter 2",
        sender: "filters all receivers' loss reports down to one receiver's worth and halves the rate at most once in 1.5 round-trip times",
        receiver: "reports losses, as the receivers of any reliable protocol do",
        feedback: Feedback::Reports,
        says_rate: SaysRate::StartUp,
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

    const OPTIONS: &'static [Opt<Config>] = &[
        policy!(),
        Opt::number("beta", Within::of(0.1, 1.0), field!(beta), "part of the rate that a reduction keeps"),
        Opt::or(
            "auto",
            Opt::rate(
                "rate0",
                Within::POSITIVE,
                field!(initial_rate?),
                "first rate; auto: a packet per round-trip time",
            ),
        ),
        Opt::choice(
            "li2le",
            choice!(li2le: "on" => Part::On, "off" => Part::Off),
            "one loss event of a receiver's reports of a round trip",
        ),
        Opt::choice(
            "events",
            choice!(events: "window" => Events::Window, "slots" => Events::Slots),
            "another loss event: SRTT + 2 sigma after the latest one, or in the next slot of a round-trip time",
        ),
        Opt::choice(
            "filter",
            choice!(filter: "max-lprf" => Selection::MaxLprf, "lprf" => Selection::Lprf, "none" => Selection::All),
            "which receivers' loss events pass",
        ),
        Opt::choice(
            "atf",
            choice!(atf: "on" => Part::On, "off" => Part::Off),
            "at most one reduction in 1.5 round-trip times",
        ),
        Opt::choice(
            "silence",
            choice!(silence: "auto" => Silence::Suited, "on" => Silence::On, "off" => Silence::Off),
            "half a round trip of silence after a reduction; auto: with ATF and not with an equation",
        ),
        Opt::choice(
            "prune",
            choice!(prune: "on" => Part::On, "off" => Part::Off),
            "throw away round-trip samples below half the mean",
        ),
        Opt::choice(
            "rtt-literal",
            choice!(rtt_literal: "on" => Part::On, "off" => Part::Off),
            "weigh new round-trip samples by 7/8, as printed",
        ),
        Opt::number(
            "decay",
            Within::of(0.01, 1.0),
            field!(decay),
            "part of the counts that is left after 100 round trips",
        ),
        Opt::seconds(
            "backoff",
            Within::of(0.0, LONGEST_WAIT),
            field!(backoff),
            "longest random delay of a loss report",
        ),
        Opt::seconds(
            "spacing",
            Within::of(0.0, LONGEST_WAIT),
            field!(spacing),
            "least time between two loss reports of a receiver",
        ),
        Opt::choice(
            "echo",
            choice!(echoes: "lost" => Echoes::Lost, "revealing" => Echoes::Revealing),
            "the packet that a report names for the round trip",
        ),
    ];

    fn published() -> Config {
        Config::published()
    }

    fn transport(packet_size: u16) -> Config {
        Config::transport(packet_size)
    }

    fn sending(&self) -> &Sending {
        &self.sending
    }

    fn sending_mut(&mut self) -> &mut Sending {
        &mut self.sending
    }

    // Receivers of other programs give no answers to a start-up, and no sign of life.
    fn without_answers(mut self) -> Config {
        self.sending.start = Start::Linear;
        self.sending.silent_group_guard = Guard::Off;
        self
    }
}

/// Receivers hold no report longer than this, in seconds.
const LONGEST_WAIT: f64 = 10.0;
