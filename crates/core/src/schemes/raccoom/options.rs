//! RACCOOM's parameters as text.

use super::config::{Aim, Answers, Config};
use super::law::Law;
use crate::node::{RelaySpec, RouterSpec};
use crate::packet::Mark;
use crate::rate::Sending;
use crate::routers::acknowledgements;
use crate::schemes::catalogue::{Configure, Entry, Feedback, LayerRates, SaysRate, Wire, spread};
use crate::spec::{Opt, Within};
use crate::{choice, field};

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "raccoom",
        number: 11,
        summary: "one rate; keeps a few packets in the queues of the path with the largest round-trip time, halves at losses",
        source: "seed 002, chapter 3",
        sender: "follows the receiver that is the last to have a packet, as TCP Vegas would; one cut for all losses of a window",
        receiver: "acknowledges each packet; routers or designated receivers make one acknowledgement of all",
        feedback: Feedback::Reports,
        says_rate: SaysRate::StartUp,
        wires: &[Wire::Native],
        layers: LayerRates::One,
        deviations: &[
            "The rate follows the distance to the wanted queue; in (3.1) an empty queue would leave it as it is.",
            "What is queued comes from the measured rate; with (3.2) each acknowledgement multiplies the rate by k1.",
            "k1 is 0.5 per round trip; with the printed 4 the loop has no phase margin.",
            "Of several receivers with the least acknowledgement the one that was passed on before stays.",
            "An acknowledgement that tells nothing new but a loss gives no round-trip sample.",
            "The shortest round-trip times of former targets are remembered.",
            "The acknowledgement time-out, which the thesis names and does not define, is TCP's; on real networks the guard against silence lowers the rate in its place.",
            "The wanted queue of (3.10) stays between 1 packet and 64, or twice what is expected under way.",
            "An ECN mark counts as a loss.",
            "On real networks few receivers acknowledge: the target each packet, others now and then and at losses that no cut has answered.",
            "On real networks the source slows down for a moment when it has not seen an empty path for long.",
            "A rate that is not used does not grow, nor, on real networks, does one that nobody seems to receive.",
        ],
    };

    const OPTIONS: &'static [Opt<Config>] = &[
        Opt::choice(
            "law",
            choice!(law: "steady" => Law::Steady, "printed" => Law::Printed, "seconds" => Law::Seconds),
            "how the rate follows what is queued; the thesis prints one that oscillates",
        ),
        Opt::or(
            "own",
            Opt::number(
                "k1",
                Within::of(0.0, 100.0),
                field!(k1?),
                "gain of the distance to the wanted queue; own: the law's",
            ),
        ),
        Opt::number("k2", Within::of(0.0, 100.0), field!(k2), "gain of its integral"),
        Opt::or(
            "own",
            Opt::number(
                "delta",
                Within::of(0.0, 1000.0),
                field!(delta?),
                "half of the zone around the wanted queue in which the accumulated rate rests, in packets; own: the law's",
            ),
        ),
        Opt::choice(
            "aim",
            choice!(aim: "weighted" => Aim::Weighted, "friendly" => Aim::Friendly),
            "the wanted queue is for a share by weight, or for that of a TCP flow",
        ),
        Opt::number(
            "weight",
            Within::of(0.01, 1000.0),
            field!(weight),
            "share, in units of a session of weight 1",
        ),
        Opt::number(
            "queue",
            Within::of(0.1, 10_000.0),
            field!(queue),
            "wanted queue of a session of weight 1, in packets, and the first one of a friendly session",
        ),
        Opt::or(
            "rtt",
            Opt::rate(
                "first",
                Within::POSITIVE,
                field!(first_rate?),
                "rate of the first packets of a linear start; rtt: a packet per assumed round-trip time",
            ),
        ),
        Opt::whole(
            "table",
            0,
            255,
            field!(table as u8),
            "former targets whose shortest round-trip time is remembered",
        ),
        Opt::or(
            "off",
            Opt::seconds(
                "probe",
                Within::POSITIVE,
                field!(probe?),
                "time without a sight of the empty path until the source slows down for a look",
            ),
        ),
        Opt::number(
            "probe-part",
            Within::of(0.01, 1.0),
            field!(probe_part),
            "part of the rate during such a look",
        ),
        Opt::seconds(
            "rto-min",
            Within::up_to(60.0),
            field!(shortest_rto),
            "shortest acknowledgement time-out",
        ),
        Opt::seconds(
            "rto-first",
            Within::up_to(60.0),
            field!(first_rto),
            "time-out before the first round-trip sample",
        ),
        Opt::seconds("rto-max", Within::up_to(3600.0), field!(longest_rto), "longest time-out"),
        Opt::choice(
            "answers",
            choice!(answers: "all" => Answers::All, "few" => Answers::Few),
            "who acknowledges: all receivers each packet, or the target each and others now and then",
        ),
        Opt::whole(
            "ack-every",
            1,
            16,
            field!(ack_every as u8),
            "packets per acknowledgement of the target, where few answer",
        ),
        Opt::number(
            "others",
            Within::of(0.1, 1e6),
            field!(others),
            "acknowledgements per second of all others together, where few answer",
        ),
        Opt::number(
            "hysteresis",
            Within::of(1.0, 10.0),
            field!(hysteresis),
            "the target changes for a round trip that is longer by this factor, where few answer",
        ),
        Opt::number(
            "spread",
            Within::up_to(50.0),
            spread!(delay_law),
            "steepness of the law of reports of losses, where few answer",
        ),
    ];

    const MARK: Mark = Mark::TARGET;

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

    fn agents(&self) -> Option<&dyn RelaySpec> {
        Some(self)
    }

    fn routers(&self) -> Option<Box<dyn RouterSpec>> {
        Some(Box::new(acknowledgements::Config))
    }
}
