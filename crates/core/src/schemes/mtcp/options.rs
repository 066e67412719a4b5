//! MTCP's parameters as text.

use super::config::{Config, Localize, LossFilter, Mode, Repair, Rounds, SlowStart};
use crate::node::RelaySpec;
use crate::packet::Mark;
use crate::rate::Sending;
use crate::schemes::catalogue::{Configure, Entry, Feedback, LayerRates, SaysRate, Wire};
use crate::spec::{Opt, Within};
use crate::{choice, field};

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "mtcp",
        number: 10,
        summary: "one rate; windows at every node of a tree of receivers, the source follows the smallest one",
        source: "seed 001, 3 (TR-98-01); the transit window of the paper of 1999",
        sender: "sends as much as the smallest window of the tree allows, less what is under way to any of its nodes",
        receiver: "acknowledges every second packet to its parent, with what is missing; agents repair and report the smallest window below them",
        feedback: Feedback::Reports,
        says_rate: SaysRate::StartUp,
        wires: &[Wire::Native],
        layers: LayerRates::One,
        deviations: &[
            "Queues are counted as rate times delay above the least one; Vegas' own formula divides by a round-trip time, which an agent does not know.",
            "Packets that are known to be lost are not under way: transit windows do not count them.",
            "An acknowledgement names the packet it answers; the parent knows when that was sent. The seed copies the time into it.",
            "Summaries are told when two packets more are acknowledged below, when the window changed by a fifth, and every 250 ms.",
            "On real networks packets leave at most twice as fast as a window per round; the seed sends at once what the window allows.",
            "Before a timeout counts, a parent asks the child, as RFC 8985 probes; an agent whose summary is overdue is asked as well.",
            "A lost packet does not hold up the window: the round goes on with the packets that are sent for the first time.",
            "The first packet is sent again until all expected children have spoken.",
            "The seed describes congestion localization without numbers: all of its options are open there.",
            "A moved child comes back when its delay is low and it is not far behind; the seed asks for the delay alone.",
            "On real networks the session's delivery repairs losses, under new numbers; agents repair for their children and move slow ones, and what an agent lacks itself nobody below waits for.",
            "Of time-outs in a row the first one alone sets the threshold of slow start (RFC 5681, 3.1).",
            "An ECN mark counts as a loss.",
        ],
    };

    const OPTIONS: &'static [Opt<Config>] = &[
        Opt::choice(
            "mode",
            choice!(mode: "twnd99" => Mode::Transit, "tr98" => Mode::Own),
            "what the source compares with the smallest window: packets under way to any node, or to its own children alone",
        ),
        Opt::choice(
            "repair",
            choice!(repair: "tree" => Repair::Tree, "session" => Repair::Session),
            "who sends lost packets again: parents in the tree, or the session's own delivery",
        ),
        Opt::number(
            "alpha",
            Within::of(0.0, 1e6),
            field!(alpha),
            "queued packets below which a window grows",
        ),
        Opt::number("beta", Within::of(0.0, 1e6), field!(beta), "queued packets above which it shrinks"),
        Opt::number("gamma", Within::of(0.0, 1e6), field!(gamma), "queued packets that end slow start"),
        Opt::number(
            "dec",
            Within::of(0.1, 0.99),
            field!(decrease),
            "part of a window that is kept at a loss",
        ),
        Opt::whole("dup", 1, 16, field!(duplicates as u8), "later packets that make one lost"),
        Opt::choice(
            "loss-filter",
            choice!(loss_filter: "off" => LossFilter::Off, "on" => LossFilter::On),
            "on: a single lost packet closes no window, a second one in the same or the next round does",
        ),
        Opt::choice(
            "rounds",
            choice!(rounds: "tree" => Rounds::Tree, "own" => Rounds::Own),
            "nodes judge their queues once per round of the whole tree, or of their own children",
        ),
        Opt::number(
            "headroom",
            Within::of(0.0, 1e6),
            field!(headroom),
            "an agent's window is at most twice the session's and so many packets",
        ),
        Opt::whole("ack-every", 1, 16, field!(ack_every as u8), "new packets per acknowledgement"),
        Opt::seconds(
            "ack-delay",
            Within::up_to(10.0),
            field!(ack_delay),
            "longest wait of an acknowledgement",
        ),
        Opt::seconds(
            "report-every",
            Within::up_to(60.0),
            field!(report_every),
            "an agent reports at least so often while packets are outstanding below it",
        ),
        Opt::number(
            "report-change",
            Within::up_to(10.0),
            field!(report_change),
            "it reports at once when the smallest window below it changed by this part",
        ),
        Opt::number(
            "deviations",
            Within::up_to(100.0),
            field!(deviations),
            "mean deviations of the delay after which a packet is late",
        ),
        Opt::seconds(
            "slack",
            Within::up_to(60.0),
            field!(shortest_slack),
            "a packet is late after this more than its delay at least",
        ),
        Opt::seconds(
            "first-timeout",
            Within::up_to(60.0),
            field!(first_timeout),
            "the same before there is a delay",
        ),
        Opt::or(
            "off",
            Opt::seconds(
                "longest-slack",
                Within::up_to(1e4),
                field!(longest_slack?),
                "time-outs in a row double the slack up to this; off: up to 64 times",
            ),
        ),
        Opt::choice(
            "slow-start",
            choice!(slow_start: "every-second" => SlowStart::EverySecond, "every" => SlowStart::Every),
            "which rounds of slow start grow",
        ),
        Opt::seconds(
            "delay-memory",
            Within::of(1.0, 1e6),
            field!(delay_memory),
            "for so long the least delay is remembered",
        ),
        Opt::seconds(
            "poll-first",
            Within::up_to(1e4),
            field!(poll_first),
            "between the first four questions for a round-trip time",
        ),
        Opt::seconds("poll", Within::up_to(1e4), field!(poll_every), "between further ones"),
        Opt::whole(
            "store",
            16,
            1_000_000,
            field!(store as u32),
            "packets that a node keeps for its children",
        ),
        Opt::number(
            "repair-threshold",
            Within::of(1.0, 512.0),
            field!(repair_threshold),
            "retransmission window up to which it grows by one per repair, in packets",
        ),
        Opt::seconds(
            "silence",
            Within::up_to(1e5),
            field!(silence),
            "a child that is silent for so long while packets leave is given up, after three of its own time-outs at least",
        ),
        Opt::or(
            "off",
            Opt::number(
                "pacing",
                Within::of(1.0, 10.0),
                field!(pacing?),
                "how many windows leave per round at most",
            ),
        ),
        Opt::choice(
            "localize",
            choice!(localize: "off" => Localize::Off, "slow-starts" => Localize::SlowStarts, "delay" => Localize::Delay, "either" => Localize::Either),
            "by what persistent congestion of a child is detected, which is then moved into its parent's local group",
        ),
        Opt::whole(
            "local-starts",
            1,
            8,
            field!(local.slow_starts as u8),
            "slow starts that a child causes until it is moved",
        ),
        Opt::seconds("local-within", Within::up_to(1e4), field!(local.within), "within this time"),
        Opt::seconds("local-high", Within::up_to(10.0), field!(local.high), "a queueing delay that is high"),
        Opt::number(
            "local-part",
            Within::of(0.0, 10.0),
            field!(local.high_part),
            "or this part of the child's round-trip time, where that is longer",
        ),
        Opt::seconds(
            "local-hold",
            Within::up_to(1e4),
            field!(local.hold),
            "a child with a high delay for so long is moved",
        ),
        Opt::number(
            "local-low",
            Within::PART,
            field!(local.low_part),
            "below this part of the high delay it is low",
        ),
        Opt::seconds(
            "local-recover",
            Within::up_to(1e4),
            field!(local.recover),
            "a moved child with a low delay for so long comes back",
        ),
        Opt::seconds("local-check", Within::of(0.01, 60.0), field!(local.check), "how often a node looks"),
        Opt::seconds(
            "local-again",
            Within::up_to(1e5),
            field!(local.again),
            "who came back stays for so long",
        ),
    ];

    const MARK: Mark = Mark::Window { window: 1.0, rtt: 0.0 };

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
        (self.repair == Repair::Tree).then_some(self)
    }

    fn agents_beside_delivery(&self) -> Option<Box<dyn RelaySpec>> {
        (self.repair == Repair::Session).then(|| Box::new(*self) as Box<dyn RelaySpec>)
    }
}
