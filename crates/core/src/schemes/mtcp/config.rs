//! Parameters of MTCP. The paper prints few numbers; the values that it leaves open are marked as open.

use crate::field;
use crate::node::RelaySpec;
use crate::packet::Mark;
use crate::rate::Sending;
use crate::rate::pacer::CatchUp;
use crate::schemes::catalogue::{Entry, Feedback, LayerRates, StatedRate, Wire};
use crate::schemes::declare::configuration;
use crate::spec::{NumberRange, Opt};
use crate::time::Span;

configuration! {
    /// All settings of MTCP. [`Config::published`] is for trees, as in the paper; [`Config::transport`] is for sessions whose
    /// delivery repairs losses.
    pub struct Config {
        /// Settings of packet sending that all schemes share.
        sending: Sending = published_sending();
        /// The quantity that the sender compares with the smallest window.
        mode: Mode = Mode::Transit
            => choice["mode", { "twnd99" => Transit, "tr98" => Own },
                "packets in flight that the source compares with the smallest window: to any node, or to its own children alone"];
        /// The node that repairs losses.
        repair: Repair = Repair::Tree
            => choice["repair", { "tree" => Tree, "session" => Session },
                "repair of lost packets: by parents in the tree, or by the session itself"];
        /// Number of queued packets below which a window grows in avoidance (Vegas' "alpha"). The paper prints no thresholds.
        /// With the thresholds of ns-2's Vegas (1 and 3 packets), a session gets less than a tenth of the rate of a TCP flow that
        /// fills a FIFO of 50 packets.
        alpha: f64 = 6.0
            => number["alpha", NumberRange::of(0.0, 1e6), "queue, in packets, below which a window grows"];
        /// Number of queued packets above which a window shrinks (Vegas' "beta").
        beta: f64 = 12.0
            => number["beta", NumberRange::of(0.0, 1e6), "queue, in packets, above which a window shrinks"];
        /// Number of queued packets that ends slow start (Vegas' "gamma").
        gamma: f64 = 6.0
            => number["gamma", NumberRange::of(0.0, 1e6), "queue, in packets, that ends slow start"];
        /// Ratio of a window after a loss to the window before it. Open in the paper, which modifies Vegas. Vegas itself uses
        /// three quarters, and TCP uses one half.
        decrease: f64 = 0.75
            => number["dec", NumberRange::of(0.1, 0.99), "fraction of a window that remains after a loss"];
        /// Number of later packets after whose arrival a missing packet counts as lost. Open in the paper; the value is TCP's.
        duplicates: u8 = 3
            => whole["dup", 1, 16, "number of later packets after which a packet counts as lost"];
        /// Whether a single loss leaves the window unchanged. The paper of 1999 has such a loss filter, but the filter's rule is
        /// not known. The paper of 1998 has no loss filter.
        loss_filter: LossFilter = LossFilter::Off
            => choice["loss-filter", { "off" => Off, "on" => On },
                "on: only a second loss in the same or the next round reduces the window"];
        /// The times at which a node may judge its queues. Open in the paper, which suggests that each node judges its queues
        /// once per round of its own children.
        rounds: Rounds = Rounds::Tree
            => choice["rounds", { "tree" => Tree, "own" => Own },
                "round after which a node evaluates its queue: that of the whole tree, or of its own children"];
        /// Number of packets by which a node's window may exceed twice the session's window. Open in the paper.
        headroom: f64 = 16.0
            => number["headroom", NumberRange::of(0.0, 1e6),
                "a node's window is at most twice the session's window plus this number of packets"];
        /// Number of new packets per acknowledgement (as with TCP's delayed acknowledgements).
        ack_every: u8 = 2 => whole["ack-every", 1, 16, "new packets per acknowledgement"];
        /// Maximum delay of an acknowledgement that waits for a further packet. Open in the paper.
        ack_delay: Span = Span::from_millis(100)
            => seconds["ack-delay", NumberRange::up_to(10.0), "maximum delay of an acknowledgement"];
        /// Maximum interval between an agent's reports while packets to the agent or its descendants are outstanding. Open; this
        /// value reproduces the 200 to 250 ms of figure 3.
        report_every: Span = Span::from_millis(250)
            => seconds["report-every", NumberRange::up_to(60.0),
                "maximum time between two reports of an agent while its subtree has unacknowledged packets"];
        /// Relative change of the smallest window in an agent's part of the tree after which the agent reports at once. Open.
        report_change: f64 = 0.2
            => number["report-change", NumberRange::up_to(10.0),
                "relative change of the smallest window in its subtree after which an agent reports at once"];
        /// A packet is late after the mean delay plus this number of mean deviations (four, as in TCP).
        deviations: f64 = 4.0
            => number["deviations", NumberRange::up_to(100.0),
                "number of mean deviations above the mean delay after which a packet is late"];
        /// Minimum slack that is added to the mean delay before a packet is late. Open in the paper; the value is that of later
        /// TCPs.
        min_slack: Span = Span::from_millis(200)
            => seconds["slack", NumberRange::up_to(60.0),
                "minimum time above the mean delay after which a packet is late"];
        /// Timeout of a packet before a delay has been measured.
        first_timeout: Span = Span::from_secs(3)
            => seconds["first-timeout", NumberRange::up_to(60.0),
                "time after which a packet is late before the first delay sample"];
        /// Maximum slack after doublings by consecutive timeouts; `None` for 64 times the slack, as in TCP. Open in the paper.
        max_slack: Option<Span> = None
            => seconds["longest-slack" or "off", NumberRange::up_to(1e4),
                "consecutive timeouts double the slack up to this value; off: up to 64 times"];
        /// The rounds of slow start in which the window grows. Vegas uses every second round, and the paper has no other rule.
        slow_start: SlowStart = SlowStart::EverySecond
            => choice["slow-start", { "every-second" => EverySecond, "every" => Every },
                "rounds of slow start in which the window grows"];
        /// Duration for which the minimum relative delay is stored. Open. Without this limit, clock drift would make the minimum
        /// wrong.
        delay_memory: Span = Span::from_secs(300)
            => seconds["delay-memory", NumberRange::of(1.0, 1e6),
                "time for which the minimum delay is remembered"];
        /// Interval between an agent's first four queries of a new child's round-trip time.
        poll_first: Span = Span::from_secs(1)
            => seconds["poll-first", NumberRange::up_to(1e4),
                "interval of an agent's first four queries of a child's round-trip time"];
        /// The interval between further queries.
        poll_every: Span = Span::from_secs(5)
            => seconds["poll", NumberRange::up_to(1e4),
                "interval of an agent's further queries of a child's round-trip time"];
        /// Maximum number of packets that a node stores. Open: the paper only states that buffers are bounded. A local group is slower
        /// than the session until the store is full: with 32,768 packets of 1000 bytes and a deficit of 2 Mbit/s for 131 s.
        store: u32 = 32_768
            => whole["store", 16, 1_000_000, "maximum number of packets that a node caches for its children"];
        /// Threshold, in packets, below which the retransmission window grows by one per acknowledged repair. Open.
        repair_threshold: f64 = 16.0
            => number["repair-threshold", NumberRange::of(1.0, 512.0),
                "retransmission window, in packets, up to which each repair adds a packet to it"];
        /// Duration of silence after which a child is given up, if packets are sent to it. The duration is at least three
        /// timeouts of the child. Open.
        silence: Span = Span::from_secs(30)
            => seconds["silence", NumberRange::up_to(1e5),
                "silence, while packets are sent, after which a child is given up; at least three of its timeouts"];
        /// Maximum sending rate, in windows per round; two packets are sent at a time. `None` for no pacing, as in the paper.
        pacing: Option<f64> = None
            => number["pacing" or "off", NumberRange::of(1.0, 10.0),
                "maximum number of windows sent per round"];
        /// The criterion of a child's persistent congestion, if it is detected at all.
        localize: Localize = Localize::Either
            => choice["localize", { "off" => Off, "slow-starts" => SlowStarts, "delay" => Delay,
                "either" => Either },
                "signs of a child's persistent congestion, which moves the child into its parent's local group"];
        /// The parameters of congestion localization.
        local: Local = Local::published()
            => option[Opt::whole("local-starts", 1, 8, field!(local.slow_starts as u8),
                "number of slow starts caused by a child after which the child is moved")]
            => option[Opt::seconds("local-within", NumberRange::up_to(1e4), field!(local.within),
                "time within which the slow starts of `local-starts` are counted")]
            => option[Opt::seconds("local-high", NumberRange::up_to(10.0), field!(local.high),
                "queueing delay that counts as high")]
            => option[Opt::number("local-part", NumberRange::of(0.0, 10.0), field!(local.high_part),
                "high queueing delay as a fraction of the child's round-trip time; the larger of this and `local-high` applies")]
            => option[Opt::seconds("local-hold", NumberRange::up_to(1e4), field!(local.hold),
                "duration of high delay after which a child is moved")]
            => option[Opt::number("local-low", NumberRange::PART, field!(local.low_part),
                "fraction of the high delay below which a delay counts as low")]
            => option[Opt::seconds("local-recover", NumberRange::up_to(1e4), field!(local.recover),
                "duration of low delay after which a moved child returns")]
            => option[Opt::seconds("local-check", NumberRange::of(0.01, 60.0), field!(local.check),
                "interval of a node's checks")]
            => option[Opt::seconds("local-again", NumberRange::up_to(1e5), field!(local.again),
                "minimum time after its return before a child is moved again")];
    }

    /// The paper's values. For values that the paper leaves open, see the fields.
    pub fn published;

    impl Configure for Config {
        sending: sending;
        const ENTRY: Entry = ENTRY;
        // Parents detect losses by acknowledgements.
        const TOLERATES_LOSSES: bool = false;
        const MARK: Mark = Mark::Window { window: 1.0, rtt: 0.0 };

        fn agents(&self) -> Option<&dyn RelaySpec> {
            (self.repair == Repair::Tree).then_some(self)
        }

        fn agents_beside_delivery(&self) -> Option<Box<dyn RelaySpec>> {
            (self.repair == Repair::Session).then(|| Box::new(*self) as Box<dyn RelaySpec>)
        }
    }
}

/// Parameters of congestion localization (paper 001, 3.2). The paper describes localization without numbers, so all values are
/// open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Local {
    /// Number of slow starts after which the child that caused them counts as persistently congested.
    pub slow_starts: u8,
    /// Duration in which these slow starts must occur.
    pub within: Span,
    /// Minimum queueing delay of a child that counts as high.
    pub high: Span,
    /// Minimum queueing delay that counts as high, as a fraction of the round-trip time to the child. The larger of both
    /// thresholds applies.
    pub high_part: f64,
    /// Duration for which the delay must be high.
    pub hold: Span,
    /// Maximum queueing delay that counts as low, as a fraction of the threshold of high delay.
    pub low_part: f64,
    /// Duration of low delay without backlog after which a moved child returns to the session's group.
    pub recover: Span,
    /// Interval between checks of the children for persistent congestion.
    pub check: Span,
    /// Duration for which a returned child is not moved again.
    pub again: Span,
}

impl Local {
    const fn published() -> Local {
        Local {
            slow_starts: 3,
            within: Span::from_secs(30),
            high: Span::from_millis(100),
            high_part: 0.5,
            hold: Span::from_secs(5),
            low_part: 0.25,
            recover: Span::from_secs(10),
            check: Span::from_millis(500),
            again: Span::from_secs(30),
        }
    }
}

/// The packets that the sender compares with the smallest window of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The maximum number of packets in flight to any node of the tree (the transit window of the paper of 1999).
    Transit,
    /// The packets that the sender's own children have not acknowledged (as in the paper). If these children are near, the sender
    /// sends faster than distant nodes can receive.
    Own,
}

/// The node that repairs losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    /// The parent in the tree repeats lost packets under their old numbers, as in the paper.
    Tree,
    /// The session's delivery repairs losses under new packet numbers. No node waits for a lost packet.
    Session,
}

/// Whether a single lost packet closes the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossFilter {
    /// A single loss closes the window.
    Off,
    /// A loss closes the window only when a second packet is lost in the same round or the next one.
    On,
}

/// The rounds of slow start in which the window grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlowStart {
    /// Every second round. In the other rounds, queues are measured with a constant window (Vegas).
    EverySecond,
    /// Every round (RFC 5681, 3.1).
    Every,
}

/// The times at which a node may judge its queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounds {
    /// At most once per round of the whole tree. Otherwise a near child would cause many window changes before the first change
    /// has an effect.
    Tree,
    /// Once the node's children have acknowledged all packets in flight.
    Own,
}

/// The criterion of a child's persistent congestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Localize {
    /// No detection.
    Off,
    /// Slow starts that the child causes.
    SlowStarts,
    /// The child's queueing delay.
    Delay,
    /// Either slow starts or delay.
    Either,
}

impl Config {
    /// Returns `slack` multiplied by `times`, at most the maximum slack.
    pub(super) fn doubled(&self, slack: Span, times: u32) -> Span {
        let long = slack * u64::from(times);
        self.max_slack.map_or(long, |longest| long.min(longest.max(slack)))
    }

    /// Returns the settings for a real network. The session's delivery repairs losses, and only agents below the source move
    /// children. Packets are paced, and the first timeout is 1 s as in RFC 6298, 2.1. After an interruption the first packet is
    /// sent within a second, and the window grows in every round of slow start. A receiver that is silent for a second does not
    /// delay other receivers.
    pub fn transport(packet_size: u16) -> Config {
        Config {
            sending: Sending::transport(packet_size),
            repair: Repair::Session,
            pacing: Some(2.0),
            localize: Localize::Off,
            first_timeout: Span::from_secs(1),
            max_slack: Some(Span::from_secs(1)),
            slow_start: SlowStart::Every,
            silence: Span::from_secs(1),
            store: 512,
            ..Config::published()
        }
    }
}

/// Returns the sending settings of the paper's simulations.
fn published_sending() -> Sending {
    Sending { catch_up: CatchUp { packets: 2, span: Span::ZERO }, ..Sending::published() }
}

/// The scheme's entry in the catalogue.
const ENTRY: Entry = Entry {
    name: "mtcp",
    number: 10,
    summary: "one rate; every node in a tree of receivers has a window, and the source follows the smallest one",
    source: "paper 001, 3 (TR-98-01); the transit window of the paper of 1999",
    sender: "sends as much as the smallest window of the tree permits, less the packets in flight to any node",
    receiver: "acknowledges every second packet to its parent and lists the missing ones; agents repair losses and report the smallest window below them",
    feedback: Feedback::Reports,
    stated_rate: StatedRate::StartUp,
    wires: &[Wire::Native],
    layers: LayerRates::One,
    deviations: &[
        "The queue is the rate times the delay above the minimum; Vegas' own formula divides by a round-trip time, which an agent does not have.",
        "Packets known to be lost do not count as in flight in transit windows.",
        "An acknowledgement names the packet that it answers, and the parent knows the packet's time; the paper copies the time into the packet.",
        "Summaries are sent when two more packets are acknowledged below, when the window changed by a fifth, and every 250 ms.",
        "On real networks at most two windows are sent per round; the paper sends at once what the window permits.",
        "Before a timeout counts, a parent queries the child, like the probes of RFC 8985; it also queries an agent whose summary is overdue.",
        "A lost packet does not stop the window: the round continues with packets that are sent for the first time.",
        "The first packet is repeated until all expected children have answered.",
        "The paper describes congestion localization without numbers: all values of its options are our choice.",
        "An agent's acknowledgement and its summary are two packets; the paper puts the summary into the acknowledgement.",
        "A slow start is charged to the child that misses the most packets; to no child if the node misses the packet as well.",
        "The delay of a packet up to a node does not count as a delay of its children.",
        "A node's window is at most twice the session's window plus 16 packets.",
        "A moved child returns when its delay is low and it has nearly caught up; the paper requires only the low delay.",
        "On real networks the session itself repairs losses, under new packet numbers. Agents repair for their children and move slow ones; no child waits for a packet that its agent lacks.",
        "Only the first of consecutive timeouts sets the threshold of slow start (RFC 5681, 3.1).",
        "An ECN mark counts as a loss.",
    ],
};
