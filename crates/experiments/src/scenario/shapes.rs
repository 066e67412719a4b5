//! The keys of scenario files.

use super::shape::{Field, Kinds, Need, Shape, Takes};
use super::units::LawOf;
use Takes::*;

/// Joins the lines of a doc comment to a text.
macro_rules! text {
    ($($line:literal)+) => {
        concat!($($line),+).trim_ascii_start()
    };
}
pub(super) use text;

/// A key: its meaning, its name, its kind of value, and its need, which is `required`, `default "VALUE"`, or absent for optional
/// keys. A name alone refers to a shared key.
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

/// Keys that several tables share.
macro_rules! shared {
    ($($(#[doc = $about:literal])+ $name:ident = $key:ident: $takes:expr $(, $need:ident $($default:literal)?)?;)*) => {
        $(const $name: Field = key!($($about)+ $key $takes $(, $need $($default)?)?);)*
    };
}

/// Tables, each with its meaning, its name and its keys; and the list of all tables in the order of the reference.
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

/// The reverse direction of [`WIRE`] and [`LINK`], whose rows in the reference describe it.
static BACK: Shape = Shape {
    name: "back",
    about: "Values for the reverse direction that differ.",
    fields: &[RATE, DELAY, QUEUE, LOSS, JITTER],
};

shared! {
    /// The kind.
    KIND = kind: Text, required;
    /// Bit rate.
    RATE = rate: Rates;
    /// Propagation delay.
    DELAY = delay: Times;
    /// The queue before the link.
    QUEUE = queue: Queue;
    /// Losses on the wire.
    LOSS = loss: Loss;
    /// Maximum additional propagation delay of a packet, drawn at random; packets stay in order.
    JITTER = jitter: Time;
    /// The name in its metrics.
    NAME = name: Text, required;
    /// Time of the start.
    START = start: Times, default "0 s";
    /// Time at which the sender stops.
    STOP = stop: Times, default "never";
    /// Maximum delay of the start, drawn at random.
    START_JITTER = start_jitter: Time, default "the scenario's";
    /// Error of the clock of each sender, positive if the clock is fast. It scales the sender's periods and timers. Real
    /// clocks have errors of about 10 ppm. Receivers' clocks are exact.
    CLOCK = clock_error: ClockErrors, default "0 ppm";
    /// Size of a data packet on the link.
    PACKET = packet: Size, default "1000 B";
    /// Number of such flows.
    COUNT = count: Whole, default "1";
    /// Senders: one for all receivers, or one for each.
    FROM = from: Names;
    /// Receivers.
    TO = to: Names;
    /// In place of `from` and `to`: a flow from end to end of each of these links.
    ALONG = along: Names;
    /// Receivers that have metrics of their own: `FLOW.PART.rate` in addition to `FLOW.rate`.
    PARTS = parts: Tables(&PART);
    /// Duration of a period in which the application sends. Periods with and without new data alternate.
    ON = on: Law(LawOf::Times);
    /// Duration of a period without new data.
    OFF = off: Law(LawOf::Times);
    /// Data of the application: lines `seconds,bytes`. Times count from the start. An entry is sent in whole
    /// packets.
    TRACE = trace: SendTrace;
    /// Path of a file with these lines, relative to the scenario.
    TRACE_FILE = trace_file: Text;
    /// With `log`, the line fits the logarithms of both values, and its slope is an exponent.
    FIT_SCALE = scale: Words(&["linear", "log"]), default "linear";
}

tables! {
    /// The keys at the top of the file.
    SCENARIO = "a scenario" {
        /// The subject, in one line.
        title: Text, required;
        /// A description for readers.
        about: Text;
        /// The publication.
        source: Text;
        /// Simulated time.
        duration: Time, required;
        /// Time from which metrics are taken, to the end.
        warmup: Time, default "0 s";
        /// The number of runs, each with its own random seed, or the random seeds.
        seeds: Seeds, default "1";
        /// Maximum delay of the start of every flow, drawn at random.
        start_jitter: Time, default "1 s";
        /// A network by rule, or line by line.
        topology: Kinds(&TOPOLOGIES);
        /// Links that are added to the topology, or changed in it.
        link: Tables(&LINK);
        /// Senders and receivers.
        flow: KindTables(&FLOWS), required;
        /// Nodes that forward only the first of the loss reports about a packet.
        aggregate: NamesOrNone, default "[]";
        /// Time for which a forwarded report suppresses others.
        aggregate_for: Time, default "1 s";
        /// Nodes with active routers.
        router: Tables(&ROUTER);
        /// Flows of one host that share congestion control.
        coordinate: Tables(&COORDINATE);
        /// Changes of links over time.
        change: Tables(&CHANGE);
        /// Further windows for metrics.
        window: Tables(&WINDOW);
        /// Straight lines through metrics of a run.
        fit: Tables(&FIT);
        /// Recorded data.
        probe: Table(&PROBE);
        /// Keys and their values. Each combination is a run.
        sweep: Axes(&AXIS);
        /// Expected values of metrics.
        claim: Tables(&CLAIM);
        /// Values that the source leaves open, and their alternatives.
        chosen: Tables(&CHOSEN);
    }

    /// `src1` ... to `hub`, and from `hub` to `leaf1` ...
    STAR = "topology.kind = \"star\"" {
        KIND;
        /// Nodes `leaf1` ...
        leaves: Whole, required;
        /// Nodes `src1` ...
        sources: Whole, default "1";
        /// Links `src*->hub`.
        access: Table(&WIRE), default "100 Mbit/s, 1 ms, unlimited";
        /// Links `hub->leaf*`.
        leaf: Table(&WIRE), default "1 Mbit/s, 20 ms, 50 kB";
    }

    /// `src1` ... to `left`, one bottleneck `left->right`, and from `right` to `leaf1` ...
    DUMBBELL = "topology.kind = \"dumbbell\"" {
        KIND;
        /// Nodes `leaf1` ...
        leaves: Whole, required;
        /// Nodes `src1` ...
        sources: Whole, default "1";
        /// Link `left->right`.
        bottleneck: Table(&WIRE), default "1 Mbit/s, 20 ms, 50 kB";
        /// Links `src*->left`.
        access: Table(&WIRE), default "100 Mbit/s, 1 ms, unlimited";
        /// Links `right->leaf*`.
        leaf: Table(&WIRE), default "100 Mbit/s, 1 ms, unlimited";
    }

    /// `root`, routers `r1.1` ... of level 1, `r2.1` ... of level 2, and so on; the last level is `leaf1` ...
    /// Children of a router are numbered in a row.
    TREE = "topology.kind = \"tree\"" {
        KIND;
        /// Children of each node, level by level: [4, 4, 4] has 64 leaves.
        fanout: Wholes, required;
        /// Links into each level; the last one applies to all further levels.
        level: Levels(&WIRE), default "1 Mbit/s, 20 ms, 50 kB";
        /// Nodes `src1` ..., joined to `root`. `root` may also send.
        sources: Whole, default "0";
        /// Links `src*->root`.
        access: Table(&WIRE), default "100 Mbit/s, 1 ms, unlimited";
    }

    /// Routers `r0` ... in a row, a bottleneck from each to the next; at router `rI` hosts `srcI.1` ... and `leafI.1`
    /// ...
    CHAIN = "topology.kind = \"chain\"" {
        KIND;
        /// Links `r0->r1`, `r1->r2` ...
        bottlenecks: Whole, required;
        /// Hosts `leafI.1` ... at each router.
        leaves: Whole, required;
        /// Hosts `srcI.1` ... at each router.
        sources: Whole, default "1";
        /// The links between routers.
        bottleneck: Table(&WIRE), default "1 Mbit/s, 20 ms, 50 kB";
        /// Links `srcI.*->rI`.
        access: Table(&WIRE), default "100 Mbit/s, 1 ms, unlimited";
        /// Links `rI->leafI.*`.
        leaf: Table(&WIRE), default "100 Mbit/s, 1 ms, unlimited";
    }

    /// A network line by line, as in the emulator's plans: `host NAME`, `router NAME`, then `link
    /// NAME NAME rate=10M delay=20ms jitter=1ms queue=droptail,50 loss=bernoulli,0.01 back rate=1M`. Nothing passes
    /// through hosts; links without options have no limit and no delay.
    TEXT = "topology.kind = \"text\"" {
        KIND;
        /// The lines.
        network: Network, required;
    }

    /// Links of one kind. Reverse links have the same rate, delay and jitter, but ample queues and no losses, unless
    /// `back` sets them.
    WIRE = "wire" {
        RATE; DELAY; QUEUE; LOSS; JITTER;
        /// Values for the reverse direction that differ.
        back: Table(&BACK);
    }

    /// If links from `from` to `to` exist (in the topology or above), these values change them. Otherwise links
    /// are added: from one node to each, from each to one, or pair by pair. New nodes are created, also
    /// as a row: `leaf[1-64]`.
    LINK = "[[link]]" {
        /// One end.
        from: Names, required;
        /// The other end.
        to: Names, required;
        /// Bit rate.
        rate: Rates, default "1 Mbit/s";
        /// Propagation delay.
        delay: Times, default "20 ms";
        /// The queue before the link.
        queue: Queue, default "50 kB";
        LOSS; JITTER;
        /// Values for the reverse direction that differ.
        back: Table(&BACK);
    }

    /// Nodes whose routers help sessions.
    ROUTER = "[[router]]" {
        /// The nodes.
        at: NamesOrNone, required;
        /// Their function: `acknowledgements` merges the acknowledgements of all receivers behind it into one
        /// (`raccoom`); `rmanp` is RMANP's active router.
        is: Router, required;
        /// Time at which the routers lose their state.
        restarts: Time;
        /// The name in metrics of these active routers alone: `routers.NAME.stored`.
        name: Text;
    }

    /// Multicast, under one of our schemes (`faircast schemes`).
    SESSION = "flow.kind = \"session\"" {
        NAME; KIND;
        /// The scheme and its options.
        scheme: Scheme, required;
        FROM; TO;
        /// One session for all receivers, or one for each.
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
        ON; OFF;
        /// Whether delays of packets to receivers are measured. Not for sessions with a tree or of several
        /// layers.
        delays: Words(&["on", "off"]), default "off";
        /// Whether queues may mark its data instead of dropping it.
        ecn: Words(&["on", "off"]), default "off";
        /// Maximum rate of the source, as on a slow host.
        at_most: Rate;
        /// Under a scheme with agents (`mtcp`): receivers form a tree in which no node has more children. Their
        /// sequence is divided into this number of runs. The first of a run is a child of the source, and has the
        /// others of the run below it, divided by the same rule.
        fan_out: Whole;
        /// Under a scheme with agents: a receiver's parent is the nearest other receiver on its path from the source.
        tree: Words(&["nearest"]);
        /// Under a scheme with agents, in place of `fan_out` and `tree`: the children of each agent.
        /// Receivers that are not listed are children of the source.
        agents: Tables(&AGENT);
        /// Maximum number of children of a node of the session's tree, the source included: the paper's bound
        /// for large trees. Without a tree all receivers are children of the source, without a bound.
        most_children: Whole, default "16";
        /// Delay of a join of the session or of a layer, per router that must join its group.
        join_latency: Time, default "0 s";
        /// Time for which packets cross a link after the last receiver behind it left the session or a layer.
        leave_latency: Time, default "0 s";
        /// Interval of membership messages of receivers, as on a real network (`250 ms`). Up to four probes at this
        /// interval precede the start. By default the source learns round-trip times from the scheme's own reports
        /// alone.
        alive: Time;
        /// Time as the representative after which a receiver stops reporting.
        mute_after: Time;
        /// The expected representatives and their times.
        expected: Tables(&EXPECTED);
        /// Time after each change of `expected` in which any representative counts as expected.
        settle: Time, default "20 s";
        PARTS;
    }

    /// Expected representatives from a time on.
    EXPECTED = "expected" {
        /// Time from which these representatives are expected.
        from: Time, required;
        /// Receivers, one of which should be the representative.
        is: Names, required;
    }

    /// A receiver that has children in the session's tree.
    AGENT = "agents" {
        /// The receiver.
        is: Names, required;
        /// Receivers that report to the agent.
        children: Names, required;
        /// Time at which the agent fails without a message. Its children then move to its own parent.
        dies: Time;
        /// Time at which the agent returns.
        returns: Time;
    }

    /// Datagrams at a constant rate while the application is on, without congestion control.
    UDP = "flow.kind = \"udp\"" {
        NAME; KIND; FROM; TO; ALONG; COUNT;
        /// Bit rate while on.
        rate: Rate, required;
        /// Random variation of the gaps: each is the regular gap times 1 - jitter to 1 + jitter.
        jitter: Share, default "0";
        PACKET; START; STOP; START_JITTER; CLOCK; ON; OFF; TRACE; TRACE_FILE; PARTS;
    }

    /// A unicast protocol: `tcp-reno`, `tcp-sack`, `tfrc` ... with options, as in `tcp-reno,delack`.
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
        /// Time between two transfers.
        pause: Law(LawOf::Times);
        /// Whether delays of packets to the receiver are measured.
        delays: Words(&["on", "off"]), default "off";
        TRACE; TRACE_FILE; PARTS;
    }

    /// Some receivers of a flow.
    PART = "parts" {
        /// The name after the flow's name in metrics.
        name: Text, required;
        /// The receivers.
        receivers: Names, required;
    }

    /// TCP flows that leave one host, and datagrams that leave it, share congestion control.
    COORDINATE = "[[coordinate]]" {
        /// The method, with its options: `cocoon`, `ensemble`, `tcp-int` or `manager` (`docs/cocoon.md`).
        way: Text, required;
        /// The names of the flows.
        flows: NamesOrNone, required;
        /// The flows that share: all of them, those of one name, those to one receiver, or those to receivers with a
        /// measured common bottleneck (`cocoon` and `ensemble` only, and no datagrams).
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
        /// Down: all queued and all arriving packets are lost.
        state: Words(&["up", "down"]);
        /// The rate from then on, as a trace: lines `seconds,bit/s`, or Mahimahi's, whose lines are milliseconds in
        /// which a packet of 1504 bytes may leave.
        rates: RateTrace;
        /// Path of a file with these lines, relative to the scenario.
        rates_file: Text;
        /// Interval over which Mahimahi's opportunities become a mean rate, or longer until there is one.
        rates_bin: Time, default "100 ms";
        /// Whether the trace restarts at its end.
        rates_repeat: Words(&["on", "off"]), default "on";
    }

    /// A further window for rates and link metrics: `multicast.rate@NAME`.
    WINDOW = "[[window]]" {
        /// The name after the @.
        name: Text, required;
        /// Time of its begin.
        from: Time, required;
        /// Time of its end.
        to: Time, required;
    }

    /// A straight line through metrics of a run, by least squares. It makes the metrics `fit.NAME.slope`,
    /// `fit.NAME.intercept` and `fit.NAME.r2`, the part of the variance that the line explains.
    FIT = "[[fit]]" {
        /// The name in its metrics.
        name: Text, required;
        /// The metrics, such as `multicast.slow.rate`.
        of: Metrics, required;
        /// The abscissa of each of them.
        against: Abscissas, required;
        FIT_SCALE;
    }

    /// Recorded data.
    PROBE = "[probe]" {
        /// Length of a bin of received bits.
        bin: Time, default "1 s";
        /// Length of the intervals for the variation of a rate (`G.cov`); a whole number of bins.
        stretch: Time, default "1 s";
        /// Interval between samples of senders.
        sample: Time, default "1 s, or more seldom with very many flows";
        /// Links whose queues are sampled, as `from->to`.
        links: Names;
        /// Interval between these samples.
        queue_every: Time, default "100 ms";
        /// Number of receivers of a group with rows of their own in `rates`.
        receivers: Whole, default "8";
        /// Number of receivers of a session that are counted per bin.
        watch: Whole;
        /// Links whose packets are captured, as `from->to`.
        taps: Names;
        /// Whether events are recorded: losses and marks on all links, cuts, joins, leaves and more.
        events: Words(&["on", "off"]), default "off";
    }

    /// `"topology.leaves" = [1, 4, 16]` is short for an axis `leaves`.
    AXIS = "an axis of [sweep]" {
        /// The keys that receive the values, as paths: `topology.leaves`, `flow.NAME.count`, `link.1.loss`.
        set: Names, required;
        /// The values. All keys receive the same value.
        to: Values;
        /// In place of `to`: a list for each point of the axis, with a value for each of the keys.
        each: Values;
        /// The names of the points of the axis in tables and claims.
        names: Labels;
    }

    /// A metric, the ratio of two, or the trend of one against another over the points of the sweep, and its
    /// expected range.
    CLAIM = "[[claim]]" {
        /// The statement.
        name: Text, required;
        /// A metric, such as `multicast.rate`.
        of: Text, required;
        /// A metric by which `of` is divided.
        over: Text;
        /// The point of `over`: its keys replace those of the claim's own point.
        over_at: Place;
        /// The point of the sweep. Without this key: all points.
        at: Place;
        /// A metric. The claim is about the line through all its points, each at this metric and `of`.
        against: Text;
        /// The number of that line: its slope, its value at 0, or the part of the variance that it explains.
        fit: Words(&["slope", "intercept", "r2"]), default "slope";
        FIT_SCALE;
        /// The published value.
        published: Number;
        /// Tolerance, relative to `published`.
        tolerance: Share;
        /// Minimum of the expected range.
        low: Number;
        /// Maximum of the expected range.
        high: Number;
        /// A remark for readers.
        note: Text;
        /// The contradiction in the source, with the algebra. Such a claim that does not hold is not a failure.
        contradicts: Text;
    }

    /// A value that the source leaves open. If it was chosen after the published numbers
    /// had been seen, a claim that holds with it holds "with a choice of ours".
    CHOSEN = "[[chosen]]" {
        /// The value's meaning.
        what: Text, required;
        /// The value of the runs, in words.
        value: Text, required;
        /// Whether it was chosen before or after the published numbers had been seen.
        when: Words(&["before", "after"]), required;
        /// The reason for this value.
        why: Text, required;
        /// The claims that use the value, by the beginnings of their names. Without this key: all claims.
        claims: Labels;
        /// Other possible values; they are run as well.
        alternative: Tables(&ALTERNATIVE);
    }

    /// The same scenario with other values of some keys.
    ALTERNATIVE = "[[chosen.alternative]]" {
        /// Its name in tables.
        name: Text, required;
        /// The keys and their values, as in `set = { "flow.tcp.kind" = "tcp-sack" }`. Keys of `sweep` may be among
        /// them, with lists: `"sweep.rate.to" = ["1 Mbit/s", "2 Mbit/s"]`.
        set: Changes, required;
    }
}
