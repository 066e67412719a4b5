//! The keys of scenario files.

use super::shape::{Field, Kinds, Need, Shape, Takes};
use super::units::LawOf;
use Takes::*;

/// Joins the lines of a doc comment into one text.
macro_rules! text {
    ($($line:literal)+) => {
        concat!($($line),+).trim_ascii_start()
    };
}
pub(super) use text;

/// Builds a key from a meaning, a name, a kind of value, and a need. `required` and `default "VALUE"` are written after the kind
/// of value; optional keys have neither. A name alone refers to a shared key.
macro_rules! key {
    ($shared:ident) => {
        $shared
    };
    ($($about:literal)+ $key:ident $takes:expr) => {
        Field { name: stringify!($key), takes: $takes, need: Need::Optional, about: text!($($about)+) }
    };
    ($($about:literal)+ $key:ident $takes:expr, required) => {
        Field { name: stringify!($key), takes: $takes, need: Need::Required, about: text!($($about)+) }
    };
    ($($about:literal)+ $key:ident $takes:expr, default $default:literal) => {
        Field { name: stringify!($key), takes: $takes, need: Need::Default($default), about: text!($($about)+) }
    };
}

/// Declares keys that several tables share.
macro_rules! shared {
    ($($(#[doc = $about:literal])+ $name:ident = $key:ident: $takes:expr $(, $need:ident $($default:literal)?)?;)*) => {
        $(const $name: Field = key!($($about)+ $key $takes $(, $need $($default)?)?);)*
    };
}

/// Declares tables, each with its meaning, its name and its keys, and the list of all tables in the order of the reference.
macro_rules! tables {
    ($($(#[doc = $about:literal])+ $table:ident = $name:literal {
        $($(#[doc = $meaning:literal])* $key:ident $(: $takes:expr $(, $need:ident $($default:literal)?)?)?;)*
    })*) => {
        $(pub(super) static $table: Shape = Shape {
            name: $name,
            about: text!($($about)+),
            fields: &[$(key!($($meaning)* $key $($takes $(, $need $($default)?)?)?)),*],
        };)*

        /// All tables, in the order of the reference.
        pub(super) static ALL: &[&Shape] = &[$(&$table),*];
    };
}

pub(super) static TOPOLOGIES: Kinds = Kinds {
    shapes: &[("star", &STAR), ("dumbbell", &DUMBBELL), ("tree", &TREE), ("chain", &CHAIN), ("text", &TEXT)],
    protocol: None,
};

pub(super) static FLOWS: Kinds =
    Kinds { shapes: &[("session", &SESSION), ("udp", &UDP)], protocol: Some(&UNICAST) };

/// The reverse direction of [`WIRE`] and [`LINK`]. The reference describes its keys in the rows of these tables.
static BACK: Shape = Shape {
    name: "back",
    about: "Values for the reverse direction that differ.",
    fields: &[RATE, DELAY, QUEUE, LOSS, JITTER],
};

shared! {
    /// Kind, which determines the other keys.
    KIND = kind: Text, required;
    /// Bit rate.
    RATE = rate: Rates;
    /// Propagation delay.
    DELAY = delay: Times;
    /// The queue before the link.
    QUEUE = queue: Queue;
    /// Random losses on the wire.
    LOSS = loss: Loss;
    /// Maximum additional propagation delay of a packet, drawn at random; packets stay in order.
    JITTER = jitter: Time;
    /// Name, which is a part of the names of metrics.
    NAME = name: Text, required;
    /// Time of the start.
    START = start: Times, default "0 s";
    /// Time at which the sender stops.
    STOP = stop: Times, default "never";
    /// Maximum random delay of the start.
    START_JITTER = start_jitter: Time, default "the scenario's";
    /// Error of the clock of each sender, positive if the clock is fast. The error scales the sender's periods and timers. Real
    /// clocks have errors of about 10 ppm. Receivers' clocks are exact.
    CLOCK = clock_error: ClockErrors, default "0 ppm";
    /// Size of a data packet on the link.
    PACKET = packet: Size, default "1000 B";
    /// Number of such flows.
    COUNT = count: Whole, default "1";
    /// Senders: one sender for all receivers, or one for each receiver.
    FROM = from: Names;
    /// Receivers.
    TO = to: Names;
    /// Links, in place of `from` and `to`. Each link has a flow from one end of the link to the other.
    ALONG = along: Names;
    /// Receivers that have metrics of their own: `FLOW.PART.rate` in addition to `FLOW.rate`.
    PARTS = parts: Tables(&PART);
    /// Duration of a period in which the application has new data. Periods with and without new data alternate.
    ON = on: Law(LawOf::Times);
    /// Duration of a period in which the application has no new data.
    OFF = off: Law(LawOf::Times);
    /// Data that the application sends: lines of the form `seconds,bytes`. Times count from the start of the flow. The bytes of a
    /// line are sent in whole packets.
    TRACE = trace: SendTrace;
    /// Path of a file with such lines, relative to the scenario.
    TRACE_FILE = trace_file: Text;
    /// With `log`, the line is fitted to the logarithms of both values, and the slope of the line is an exponent.
    FIT_SCALE = scale: Words(&["linear", "log"]), default "linear";
}

tables! {
    /// The keys at the top level of the file.
    SCENARIO = "a scenario" {
        /// The subject, in one line.
        title: Text, required;
        /// A description for readers.
        about: Text;
        /// The publication to which the scenario belongs.
        source: Text;
        /// Simulated time.
        duration: Time, required;
        /// Time at which the measurement of metrics begins. The measurement lasts until the end of the run.
        warmup: Time, default "0 s";
        /// The number of runs, each with a different random seed, or a list of random seeds.
        seeds: Seeds, default "1";
        /// Maximum random delay of the start of every flow.
        start_jitter: Time, default "1 s";
        /// The network: one of several standard forms, or a description line by line.
        topology: Kinds(&TOPOLOGIES);
        /// Links that are added to the topology, or whose values are changed.
        link: Tables(&LINK);
        /// Senders and receivers.
        flow: KindTables(&FLOWS), required;
        /// Nodes that aggregate loss reports: they forward only the first report about a packet.
        aggregate: NamesOrNone, default "[]";
        /// Time for which a node of `aggregate` drops further reports about the same packet.
        aggregate_for: Time, default "1 s";
        /// Nodes with active routers.
        router: Tables(&ROUTER);
        /// Flows from one host that share congestion control.
        coordinate: Tables(&COORDINATE);
        /// Changes of links over time.
        change: Tables(&CHANGE);
        /// Further windows for metrics.
        window: Tables(&WINDOW);
        /// Straight lines through metrics of a run.
        fit: Tables(&FIT);
        /// Data that is recorded.
        probe: Table(&PROBE);
        /// Keys with several values. The scenario runs with each combination of values.
        sweep: Axes(&AXIS);
        /// Expected values of metrics.
        claim: Tables(&CLAIM);
        /// Values that the source leaves open and that were chosen for the scenario, with alternatives.
        chosen: Tables(&CHOSEN);
    }

    /// Links from `src1` ... to `hub`, and from `hub` to `leaf1` ...
    STAR = "topology.kind = \"star\"" {
        KIND;
        /// Number of nodes `leaf1` ...
        leaves: Whole, required;
        /// Number of nodes `src1` ...
        sources: Whole, default "1";
        /// Links `src*->hub`.
        access: Table(&WIRE), default "100 Mbit/s, 1 ms, unlimited";
        /// Links `hub->leaf*`.
        leaf: Table(&WIRE), default "1 Mbit/s, 20 ms, 50 kB";
    }

    /// Links from `src1` ... to `left`, a bottleneck `left->right`, and links from `right` to `leaf1` ...
    DUMBBELL = "topology.kind = \"dumbbell\"" {
        KIND;
        /// Number of nodes `leaf1` ...
        leaves: Whole, required;
        /// Number of nodes `src1` ...
        sources: Whole, default "1";
        /// Link `left->right`.
        bottleneck: Table(&WIRE), default "1 Mbit/s, 20 ms, 50 kB";
        /// Links `src*->left`.
        access: Table(&WIRE), default "100 Mbit/s, 1 ms, unlimited";
        /// Links `right->leaf*`.
        leaf: Table(&WIRE), default "100 Mbit/s, 1 ms, unlimited";
    }

    /// Node `root`, routers `r1.1` ... of level 1, `r2.1` ... of level 2, and so on. The nodes of the last level are `leaf1` ...
    /// The nodes of a level are numbered consecutively; children of a router have consecutive numbers.
    TREE = "topology.kind = \"tree\"" {
        KIND;
        /// Number of children of each node, level by level: [4, 4, 4] gives 64 leaves.
        fanout: Wholes, required;
        /// Links to the nodes of each level. The last entry applies to all further levels.
        level: Levels(&WIRE), default "1 Mbit/s, 20 ms, 50 kB";
        /// Number of nodes `src1` ..., which are connected to `root`. `root` can also be a sender.
        sources: Whole, default "0";
        /// Links `src*->root`.
        access: Table(&WIRE), default "100 Mbit/s, 1 ms, unlimited";
    }

    /// Routers `r0` ... in a row, with a bottleneck between neighbours. Router `rI` has the hosts `srcI.1` ... and `leafI.1` ...
    CHAIN = "topology.kind = \"chain\"" {
        KIND;
        /// Number of links `r0->r1`, `r1->r2` ...
        bottlenecks: Whole, required;
        /// Number of hosts `leafI.1` ... at each router.
        leaves: Whole, required;
        /// Number of hosts `srcI.1` ... at each router.
        sources: Whole, default "1";
        /// The links between routers.
        bottleneck: Table(&WIRE), default "1 Mbit/s, 20 ms, 50 kB";
        /// Links `srcI.*->rI`.
        access: Table(&WIRE), default "100 Mbit/s, 1 ms, unlimited";
        /// Links `rI->leafI.*`.
        leaf: Table(&WIRE), default "100 Mbit/s, 1 ms, unlimited";
    }

    /// A network line by line, as in the emulator's plans: `host NAME`, `router NAME`, then `link NAME NAME rate=10M delay=20ms
    /// jitter=1ms queue=droptail,50 loss=bernoulli,0.01 back rate=1M`. Hosts forward no packets. A link without options has no
    /// rate limit and no delay.
    TEXT = "topology.kind = \"text\"" {
        KIND;
        /// The lines.
        network: Network, required;
    }

    /// Properties of links. Reverse links have the same rate, delay and jitter, but large queues and no losses, unless `back`
    /// changes this.
    WIRE = "wire" {
        RATE; DELAY; QUEUE; LOSS; JITTER;
        /// Values of the reverse direction, where they differ.
        back: Table(&BACK);
    }

    /// If links from `from` to `to` already exist (in the topology or in an earlier `[[link]]`), the values of these links are
    /// changed. Otherwise links are added: from one node to each, from each to one, or pair by pair. Nodes that do not exist are
    /// created, also a whole row such as `leaf[1-64]`.
    LINK = "[[link]]" {
        /// Nodes at one end.
        from: Names, required;
        /// Nodes at the other end.
        to: Names, required;
        /// Bit rate.
        rate: Rates, default "1 Mbit/s";
        /// Propagation delay.
        delay: Times, default "20 ms";
        /// The queue before the link.
        queue: Queue, default "50 kB";
        LOSS; JITTER;
        /// Values of the reverse direction, where they differ.
        back: Table(&BACK);
    }

    /// Routers that help the congestion control of sessions.
    ROUTER = "[[router]]" {
        /// The nodes.
        at: NamesOrNone, required;
        /// Function of the routers: `acknowledgements` merges the acknowledgements of all receivers downstream of the router into
        /// one (`raccoom`); `rmanp` is RMANP's active router.
        is: Router, required;
        /// Time at which the routers lose their state.
        restarts: Time;
        /// Name for separate metrics of these active routers: `routers.NAME.stored`.
        name: Text;
    }

    /// A multicast session with a scheme of the catalogue (`faircast schemes`).
    SESSION = "flow.kind = \"session\"" {
        NAME; KIND;
        /// The scheme and its options.
        scheme: Scheme, required;
        FROM; TO;
        /// `group`: one session for all receivers; `receiver`: one session for each receiver.
        per: Words(&["group", "receiver"]), default "group";
        ALONG; COUNT; PACKET;
        /// Size of a report on the link.
        report: Size, default "40 B";
        START; STOP; START_JITTER; CLOCK;
        /// Times at which receivers join.
        join: Times, default "0 s";
        /// Times at which receivers leave.
        leave: Times, default "never";
        /// Duration of a receiver's presence. Presence and absence alternate.
        present: Law(LawOf::Times);
        /// Duration of a receiver's absence.
        absent: Law(LawOf::Times);
        /// Receivers that are always present.
        steady: Names;
        /// Number of packets that the source sends.
        packets: Whole;
        /// Number of packets that a receiver needs to be complete: any of them, as with an erasure code. The session continues
        /// after that; `G.completion` is the time until all receivers are complete.
        content: Whole;
        ON; OFF;
        /// Whether the delays of packets to the receivers are measured. Not for sessions with a tree or of several layers.
        delays: Words(&["on", "off"]), default "off";
        /// Whether queues may mark the session's data packets instead of dropping them.
        ecn: Words(&["on", "off"]), default "off";
        /// Maximum rate at which the source can send, as on a slow host.
        at_most: Rate;
        /// For schemes with agents (`mtcp`): maximum number of children of a node. The sequence of receivers is divided into this
        /// number of runs. The first receiver of a run is a child of the source. The rest of the run is its subtree, divided in
        /// the same way.
        fan_out: Whole;
        /// For schemes with agents: the parent of a receiver is the nearest other receiver on its path from the source.
        tree: Words(&["nearest"]);
        /// For schemes with agents, in place of `fan_out` and `tree`: the children of each agent. Receivers that are not listed
        /// are children of the source.
        agents: Tables(&AGENT);
        /// Maximum number of children of a node of the session's tree, including the source. The default is the paper's bound for
        /// large trees. Without a tree, all receivers are children of the source, and their number is not limited.
        most_children: Whole, default "16";
        /// Delay with which a join of the session or of a layer takes effect, for each router that must join the group.
        join_latency: Time, default "0 s";
        /// Time for which packets still cross a link after the last receiver downstream has left the session or a layer.
        leave_latency: Time, default "0 s";
        /// Interval of the receivers' membership messages, as on a real network (`250 ms`). Up to four probes at this interval
        /// precede the start. Without this key, the source learns round-trip times only from the reports of the scheme.
        alive: Time;
        /// Total time as the representative after which a receiver sends no more reports.
        mute_after: Time;
        /// The expected representatives, each with the time from which they are expected.
        expected: Tables(&EXPECTED);
        /// Time after each change of `expected` in which any representative counts as expected.
        settle: Time, default "20 s";
        PARTS;
    }

    /// Representatives that are expected from a given time on.
    EXPECTED = "expected" {
        /// Time from which these representatives are expected.
        from: Time, required;
        /// Receivers, one of which should be the representative.
        is: Names, required;
    }

    /// An agent: a receiver that has children in the session's tree.
    AGENT = "agents" {
        /// The receiver.
        is: Names, required;
        /// Receivers that report to the agent.
        children: Names, required;
        /// Time at which the agent fails without a message. Its children then move to the parent of the agent.
        dies: Time;
        /// Time at which the agent returns.
        returns: Time;
    }

    /// Datagrams without congestion control, at a constant rate while the application has data.
    UDP = "flow.kind = \"udp\"" {
        NAME; KIND; FROM; TO; ALONG; COUNT;
        /// Bit rate while the application has data.
        rate: Rate, required;
        /// Random variation of the gaps between datagrams: each gap is the regular gap times a factor from 1 - jitter to 1 +
        /// jitter.
        jitter: Share, default "0";
        PACKET; START; STOP; START_JITTER; CLOCK; ON; OFF; TRACE; TRACE_FILE; PARTS;
    }

    /// A flow with a unicast protocol: `tcp-reno`, `tcp-sack`, `tfrc` ... with options, as in `tcp-reno,delack`.
    UNICAST = "flow.kind = a unicast protocol" {
        NAME; KIND; FROM; TO; ALONG; COUNT; PACKET;
        /// Size of an acknowledgement on the link.
        ack: Size, default "40 B";
        START; STOP; START_JITTER; CLOCK;
        /// Number of packets that the application sends.
        packets: Whole;
        ON; OFF;
        /// Number of packets of a transfer. Each transfer uses a new connection.
        transfer: Law(LawOf::Counts);
        /// Time between the end of a transfer and the start of the next transfer.
        pause: Law(LawOf::Times);
        /// Whether delays of packets to the receiver are measured.
        delays: Words(&["on", "off"]), default "off";
        TRACE; TRACE_FILE; PARTS;
    }

    /// A part of a flow: some of its receivers, which have metrics of their own.
    PART = "parts" {
        /// Name of the part, which follows the flow's name in metrics.
        name: Text, required;
        /// The receivers.
        receivers: Names, required;
    }

    /// TCP and datagram flows from one host that share congestion control.
    COORDINATE = "[[coordinate]]" {
        /// The method, with its options: `cocoon`, `ensemble`, `tcp-int` or `manager` (`docs/cocoon.md`).
        way: Text, required;
        /// The names of the flows.
        flows: NamesOrNone, required;
        /// Flows that share congestion control with each other: all (`one`), flows of the same name (`flows`), flows to the same
        /// receiver (`hosts`), or flows to receivers with a measured common bottleneck (`measured`; only with `cocoon` and
        /// `ensemble`, and without datagrams).
        groups: Words(&["one", "flows", "hosts", "measured"]), default "one";
    }

    /// A change of links.
    CHANGE = "[[change]]" {
        /// The time.
        at: Time, required;
        /// The links, as `from->to`.
        link: Names, required;
        /// The new bit rate.
        rate: Rate;
        /// The new delay.
        delay: Time;
        /// The new losses.
        loss: Loss;
        /// With `down`, all packets that wait or arrive are lost.
        state: Words(&["up", "down"]);
        /// The rates from this time on, as a trace: lines of the form `seconds,bit/s`, or Mahimahi's format, in which each line
        /// is a millisecond in which a packet of 1504 bytes can be sent.
        rates: RateTrace;
        /// Path of a file with such lines, relative to the scenario.
        rates_file: Text;
        /// Interval over which Mahimahi's delivery opportunities are averaged to a rate. An interval without an opportunity is
        /// extended.
        rates_bin: Time, default "100 ms";
        /// Whether the trace is repeated after its end.
        rates_repeat: Words(&["on", "off"]), default "on";
    }

    /// A further window for rates and metrics of links: `multicast.rate@NAME`.
    WINDOW = "[[window]]" {
        /// The name after the @.
        name: Text, required;
        /// Time at which the window begins.
        from: Time, required;
        /// Time at which the window ends.
        to: Time, required;
    }

    /// A straight line through metrics of a run, fitted by least squares. The line adds the metrics `fit.NAME.slope`,
    /// `fit.NAME.intercept` and `fit.NAME.r2`, the share of the variance that the line explains.
    FIT = "[[fit]]" {
        /// Name, which is a part of the names of metrics.
        name: Text, required;
        /// The metrics, such as `multicast.slow.rate`.
        of: Metrics, required;
        /// The abscissa of each metric of `of`.
        against: Abscissas, required;
        FIT_SCALE;
    }

    /// Data that is recorded.
    PROBE = "[probe]" {
        /// Length of a bin of received bits.
        bin: Time, default "1 s";
        /// Length of the intervals over which the variation of a rate (`G.cov`) is computed; a whole number of bins.
        stretch: Time, default "1 s";
        /// Interval between samples of senders.
        sample: Time, default "1 s, or more seldom with very many flows";
        /// Links whose queues are sampled, as `from->to`.
        links: Names;
        /// Interval between samples of queues.
        queue_every: Time, default "100 ms";
        /// Number of receivers of each group that have rows of their own in `rates`.
        receivers: Whole, default "8";
        /// Number of receivers of a session whose received bits are counted per bin.
        watch: Whole;
        /// Links whose packets are captured, as `from->to`.
        taps: Names;
        /// Whether events are recorded: losses and marks on all links, cuts, joins, leaves and more.
        events: Words(&["on", "off"]), default "off";
    }

    /// `"topology.leaves" = [1, 4, 16]` is a short form for an axis named `leaves`.
    AXIS = "an axis of [sweep]" {
        /// The keys that receive the values, as paths: `topology.leaves`, `flow.NAME.count`, `link.1.loss`.
        set: Names, required;
        /// The values. At each point, all keys receive the same value.
        to: Values;
        /// In place of `to`: a list of values for each point of the axis, with one value for each key.
        each: Values;
        /// The names of the points of the axis in tables and claims.
        names: Labels;
    }

    /// The expected range of a metric, of the ratio of two metrics, or of the trend of one metric against another over the points
    /// of the sweep.
    CLAIM = "[[claim]]" {
        /// The statement, in words.
        name: Text, required;
        /// A metric, such as `multicast.rate`.
        of: Text, required;
        /// A metric by which `of` is divided.
        over: Text;
        /// The point at which the metric `over` is taken: these values replace the values of the claim's own point.
        over_at: Place;
        /// The points of the claim: all points with these values. Without this key, the claim is about all points.
        at: Place;
        /// A metric that is the abscissa of a line, with `of` as the ordinate. The claim is about the line through all points of
        /// the claim.
        against: Text;
        /// The property of the line that the claim is about: the line's slope, its value at 0, or the share of the variance that
        /// it explains.
        fit: Words(&["slope", "intercept", "r2"]), default "slope";
        FIT_SCALE;
        /// The published value.
        published: Number;
        /// Permitted deviation, relative to `published`.
        tolerance: Share;
        /// Minimum of the expected range.
        low: Number;
        /// Maximum of the expected range.
        high: Number;
        /// Whether the source states these limits, or they are a reading of it.
        limits: Words(&["published", "ours"]), default "ours";
        /// The statement of the source, if several claims test it. `repro` counts these claims as one, with the worst verdict of
        /// all their points.
        statement: Text;
        /// A remark for readers.
        note: Text;
        /// The contradiction in the source, with the algebra. If a claim with this key does not hold, it does not count as a
        /// failure.
        contradicts: Text;
    }

    /// A value that the source leaves open, or a departure from it. If it was chosen after the published numbers had been seen,
    /// or departs from the source, a claim that does not hold with all its alternatives holds "with a choice of ours".
    CHOSEN = "[[chosen]]" {
        /// Meaning of the value.
        what: Text, required;
        /// The value that the runs use, in words.
        value: Text, required;
        /// Whether it was chosen before or after the published numbers had been seen, or departs from the source's value.
        when: Words(&["before", "after", "departs"]), required;
        /// The reason for this value.
        why: Text, required;
        /// The claims that depend on the value, given by the beginnings of the claims' names. Without this key, all claims depend
        /// on the value.
        claims: Labels;
        /// Other possible values, which are also run.
        alternative: Tables(&ALTERNATIVE);
    }

    /// The same scenario with other values of some keys.
    ALTERNATIVE = "[[chosen.alternative]]" {
        /// Name of the alternative in tables.
        name: Text, required;
        /// The keys to change and their values, as in `set = { "flow.tcp.kind" = "tcp-sack" }`. Keys of `sweep` are permitted,
        /// with lists as values: `"sweep.rate.to" = ["1 Mbit/s", "2 Mbit/s"]`.
        set: Changes, required;
    }
}
