//! Parameters of MTCP. The paper prints few numbers; those that it leaves open are marked.

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
    /// Everything that can be chosen. [`Config::published`] is for trees, as in the paper; [`Config::transport`] is for sessions whose
    /// delivery repairs losses by itself.
    pub struct Config {
        /// How packets are sent, whatever the scheme.
        sending: Sending = published_sending();
        /// Quantity that the sender compares with the smallest window.
        mode: Mode = Mode::Transit
            => choice["mode", { "twnd99" => Transit, "tr98" => Own },
                "packets that the source compares with the smallest window: those in flight to any node, or to its own children alone"];
        /// Node that sends lost packets again.
        repair: Repair = Repair::Tree
            => choice["repair", { "tree" => Tree, "session" => Session },
                "repairs of lost packets: by parents in the tree, or by the session's own delivery"];
        /// Queued packets below which a window grows in avoidance (Vegas' "alpha"). The paper prints no thresholds. Those of ns-2's
        /// Vegas, 1 and 3 packets, leave a session less than a tenth of the rate of a TCP that fills a FIFO of 50 packets.
        alpha: f64 = 6.0
            => number["alpha", NumberRange::of(0.0, 1e6), "queued packets below which a window grows"];
        /// Queued packets above which it shrinks ("beta").
        beta: f64 = 12.0 => number["beta", NumberRange::of(0.0, 1e6), "queued packets above which it shrinks"];
        /// Queued packets that end slow start ("gamma").
        gamma: f64 = 6.0 => number["gamma", NumberRange::of(0.0, 1e6), "queued packets that end slow start"];
        /// The part of a window that remains when a packet is lost. Open in the paper, which modifies Vegas: Vegas keeps three quarters,
        /// TCP one half.
        decrease: f64 = 0.75
            => number["dec", NumberRange::of(0.1, 0.99), "part of a window that is kept at a loss"];
        /// A packet is lost when this many later ones have arrived (TCP's, open in the paper).
        duplicates: u8 = 3 => whole["dup", 1, 16, "later packets that make one lost"];
        /// Whether a single lost packet closes the window. In the paper of 1999, whose rule is not known; 1998 has none.
        loss_filter: LossFilter = LossFilter::Off
            => choice["loss-filter", { "off" => Off, "on" => On },
                "on: a single lost packet closes no window, a second one in the same or the next round does"];
        /// When a node may judge its queues: open in the paper, where each node would do so once per its own round.
        rounds: Rounds = Rounds::Tree
            => choice["rounds", { "tree" => Tree, "own" => Own },
                "nodes judge their queues once per round of the whole tree, or of their own children"];
        /// An agent's window is at most twice the session's and this many packets more, the source's own twice that. Open in the paper.
        headroom: f64 = 16.0
            => number["headroom", NumberRange::of(0.0, 1e6),
                "an agent's window is at most twice the session's and this number of packets"];
        /// New packets that one acknowledgement answers (delayed acknowledgements, TCP's number).
        ack_every: u8 = 2 => whole["ack-every", 1, 16, "new packets per acknowledgement"];
        /// The longest that an acknowledgement waits for a further packet. Open in the paper.
        ack_delay: Span = Span::from_millis(100)
            => seconds["ack-delay", NumberRange::up_to(10.0), "longest wait of an acknowledgement"];
        /// The longest interval of an agent's reports while packets are outstanding below it. Open; gives figure 3's 200 to 250 ms.
        report_every: Span = Span::from_millis(250)
            => seconds["report-every", NumberRange::up_to(60.0),
                "maximum time between two reports of an agent while packets are outstanding below it"];
        /// An agent reports at once when the smallest window of its part of the tree changed by this part. Open.
        report_change: f64 = 0.2
            => number["report-change", NumberRange::up_to(10.0),
                "it reports at once when the smallest window below it changed by this part"];
        /// A packet is late after the mean delay and this many deviations (TCP's four).
        deviations: f64 = 4.0
            => number["deviations", NumberRange::up_to(100.0),
                "mean deviations of the delay after which a packet is late"];
        /// And at least this. Open in the paper; as in later TCPs.
        min_slack: Span = Span::from_millis(200)
            => seconds["slack", NumberRange::up_to(60.0),
                "a packet is late after this more than its delay at least"];
        /// Before there is a delay, it is late after this.
        first_timeout: Span = Span::from_secs(3)
            => seconds["first-timeout", NumberRange::up_to(60.0), "the same before there is a delay"];
        /// Time-outs in a row double that slack up to this; `None` for up to 64 times (TCP's). Open in the paper.
        max_slack: Option<Span> = None
            => seconds["longest-slack" or "off", NumberRange::up_to(1e4),
                "time-outs in a row double the slack up to this; off: up to 64 times"];
        /// Which rounds of slow start grow. Vegas' rule is every second one; the paper has no other.
        slow_start: SlowStart = SlowStart::EverySecond
            => choice["slow-start", { "every-second" => EverySecond, "every" => Every },
                "rounds of slow start that grow"];
        /// For how long the least relative delay is remembered. Open: without an end, clocks that drift would freeze it.
        delay_memory: Span = Span::from_secs(300)
            => seconds["delay-memory", NumberRange::of(1.0, 1e6), "time for which the minimum delay is remembered"];
        /// The interval at which an agent queries a new child's round-trip time, four times.
        poll_first: Span = Span::from_secs(1)
            => seconds["poll-first", NumberRange::up_to(1e4),
                "between the first four questions for a round-trip time"];
        /// And then.
        poll_every: Span = Span::from_secs(5) => seconds["poll", NumberRange::up_to(1e4), "between further ones"];
        /// Packets that a node stores at most. Open: the paper states that buffers are bounded.
        store: u32 = 512 => whole["store", 16, 1_000_000, "packets that a node keeps for its children"];
        /// Up to this the retransmission window opens by one per acknowledged repair. Open.
        repair_threshold: f64 = 16.0
            => number["repair-threshold", NumberRange::of(1.0, 512.0),
                "retransmission window up to which it grows by one per repair, in packets"];
        /// The duration of silence, while packets leave for it, after which a child is given up, but not before three of its own time-outs
        /// could have passed. Open.
        silence: Span = Span::from_secs(30)
            => seconds["silence", NumberRange::up_to(1e5),
                "time of silence, while packets leave, after which a child is given up; at least three of its own timeouts"];
        /// Packets leave no faster than this many windows per round, two at once; `None` for at once, as in the paper.
        pacing: Option<f64> = None
            => number["pacing" or "off", NumberRange::of(1.0, 10.0), "maximum number of windows sent per round"];
        /// By what persistent congestion of a child is detected, if at all.
        localize: Localize = Localize::Either
            => choice["localize", { "off" => Off, "slow-starts" => SlowStarts, "delay" => Delay, "either" => Either },
                "by what persistent congestion of a child is detected, which is then moved into its parent's local group"];
        /// The parameters of detection and moves.
        local: Local = Local::published()
            => option[Opt::whole("local-starts", 1, 8, field!(local.slow_starts as u8),
                "slow starts that a child causes until it is moved")]
            => option[Opt::seconds("local-within", NumberRange::up_to(1e4), field!(local.within),
                "within this time")]
            => option[Opt::seconds("local-high", NumberRange::up_to(10.0), field!(local.high),
                "a queueing delay that is high")]
            => option[Opt::number("local-part", NumberRange::of(0.0, 10.0), field!(local.high_part),
                "or this part of the child's round-trip time, where that is longer")]
            => option[Opt::seconds("local-hold", NumberRange::up_to(1e4), field!(local.hold),
                "time of high delay after which a child is moved")]
            => option[Opt::number("local-low", NumberRange::PART, field!(local.low_part),
                "below this part of the high delay it is low")]
            => option[Opt::seconds("local-recover", NumberRange::up_to(1e4), field!(local.recover),
                "time of low delay after which a moved child comes back")]
            => option[Opt::seconds("local-check", NumberRange::of(0.01, 60.0), field!(local.check),
                "time between two checks of a node")]
            => option[Opt::seconds("local-again", NumberRange::up_to(1e5), field!(local.again),
                "minimum stay of a child that came back")];
    }

    /// The paper, with open values as the fields state.
    pub fn published;

    impl Configure for Config {
        sending: sending;
        const ENTRY: Entry = ENTRY;
        const MARK: Mark = Mark::Window { window: 1.0, rtt: 0.0 };

        fn agents(&self) -> Option<&dyn RelaySpec> {
            (self.repair == Repair::Tree).then_some(self)
        }

        fn agents_beside_delivery(&self) -> Option<Box<dyn RelaySpec>> {
            (self.repair == Repair::Session).then(|| Box::new(*self) as Box<dyn RelaySpec>)
        }
    }
}

/// Congestion localization (paper 001, 3.2). The paper describes it and prints no number: all are open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Local {
    /// Slow starts that a child causes until it is persistently congested.
    pub slow_starts: u8,
    /// Within this time.
    pub within: Span,
    /// A child's queueing delay is high above this,
    pub high: Span,
    /// or above this part of the round-trip time to it, where that is more.
    pub high_part: f64,
    /// The duration for which that must last.
    pub hold: Span,
    /// It is low below this part of the high one.
    pub low_part: f64,
    /// The duration of low delay without backlog after which a moved child comes back.
    pub recover: Span,
    /// How often nodes look.
    pub check: Span,
    /// The duration for which a child that came back stays.
    pub again: Span,
}

impl Local {
    /// As the fields state.
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
    /// The most packets that are under way to any node of the tree (the paper of 1999: the transit window).
    Transit,
    /// The packets that its own children have not acknowledged (the paper): near children let it run ahead of far ones.
    Own,
}

/// Node that sends lost packets again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    /// Their parent in the tree, under their old numbers (the paper).
    Tree,
    /// The session's own delivery, under new numbers: a lost packet is never waited for.
    Session,
}

/// Whether a single lost packet closes the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossFilter {
    /// It does.
    Off,
    /// Only when a second one is lost in the same round or the next one.
    On,
}

/// Which rounds of slow start grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlowStart {
    /// Every second one: the queues of the rounds between are measured with a window that holds still (Vegas).
    EverySecond,
    /// All (RFC 5681, 3.1).
    Every,
}

/// When a node may judge its queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounds {
    /// At most once per round of the whole tree: a near child would else make it act many times before anything comes of it.
    Tree,
    /// Once its own children have acknowledged all packets in flight.
    Own,
}

/// By what persistent congestion of a child is detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Localize {
    /// Not at all.
    Off,
    /// By slow starts that it causes.
    SlowStarts,
    /// By its queueing delay.
    Delay,
    /// By either.
    Either,
}

impl Config {
    /// Returns the wait beyond a delay: `times` times `slack`, up to the longest slack.
    pub(super) fn doubled(&self, slack: Span, times: u32) -> Span {
        let long = slack * u64::from(times);
        self.max_slack.map_or(long, |longest| long.min(longest.max(slack)))
    }

    /// A real network: the session's delivery repairs, only agents below the source move children, and a first timeout of 1 s as in RFC
    /// 6298, 2.1. Packets are paced. After an interruption the first packet leaves within a second, and every round of slow start grows; a
    /// receiver that is silent for a second holds no other back.
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
            ..Config::published()
        }
    }
}

/// How packets are sent in the paper's simulations.
fn published_sending() -> Sending {
    Sending { catch_up: CatchUp { packets: 2, span: Span::ZERO }, ..Sending::published() }
}

/// The scheme as a user sees it.
const ENTRY: Entry = Entry {
    name: "mtcp",
    number: 10,
    summary: "one rate; windows at every node of a tree of receivers, the source follows the smallest one",
    source: "paper 001, 3 (TR-98-01); the transit window of the paper of 1999",
    sender: "sends as much as the smallest window of the tree allows, less what is under way to any of its nodes",
    receiver: "acknowledges every second packet to its parent, with what is missing; agents repair and report the smallest window below them",
    feedback: Feedback::Reports,
    stated_rate: StatedRate::StartUp,
    wires: &[Wire::Native],
    layers: LayerRates::One,
    deviations: &[
        "Queues are counted as rate times delay above the least one; Vegas' own formula divides by a round-trip time, which an agent does not know.",
        "Packets that are known to be lost are not under way: transit windows do not count them.",
        "An acknowledgement names the packet it answers; the parent knows when that was sent. The paper copies the time into it.",
        "Summaries are sent when two packets more are acknowledged below, when the window changed by a fifth, and every 250 ms.",
        "On real networks packets leave at most twice as fast as a window per round; the paper sends at once what the window allows.",
        "Before a timeout counts, a parent asks the child, as RFC 8985 probes; an agent whose summary is overdue is asked as well.",
        "A lost packet does not hold up the window: the round goes on with the packets that are sent for the first time.",
        "The first packet is sent again until all expected children have spoken.",
        "The paper describes congestion localization without numbers: all of its options are open there.",
        "A moved child comes back when its delay is low and it is not far behind; the paper asks for the delay alone.",
        "On real networks the session's delivery repairs losses, under new numbers; agents repair for their children and move slow ones, and what an agent lacks itself nobody below waits for.",
        "Of time-outs in a row the first one alone sets the threshold of slow start (RFC 5681, 3.1).",
        "An ECN mark counts as a loss.",
    ],
};
