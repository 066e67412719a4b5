//! The keys of scenario files.

use super::shape::{Field, Kinds, Need, Shape, Takes};
use super::units::LawOf;
use Takes::*;

/// A text that is written as a comment.
macro_rules! text {
    ($($line:literal)+) => {
        concat!($($line),+).trim_ascii_start()
    };
}
pub(super) use text;

/// A key: its meaning, its name, what it takes, and its need, which is `required`, `default "VALUE"`, or nothing where it is optional.
/// A name alone is that of a shared key.
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

/// Keys that several tables have.
macro_rules! shared {
    ($($(#[doc = $about:literal])+ $name:ident = $key:ident: $takes:expr $(, $need:ident $($default:literal)?)?;)*) => {
        $(const $name: Field = key!($($about)+ $key $takes $(, $need $($default)?)?);)*
    };
}

/// Tables, each with its meaning, its name and its keys; and the list of all in the order of the reference.
macro_rules! tables {
    ($($(#[doc = $about:literal])+ $table:ident = $name:literal {
        $($(#[doc = $meaning:literal])* $key:ident $(: $takes:expr $(, $need:ident $($default:literal)?)?)?;)*
    })*) => {
        $(pub(super) static $table: Shape = Shape {
            name: $name,
            about: text!($($about)+),
            fields: &[$(key!($($meaning)* $key $($takes $(, $need $($default)?)?)?)),*],
        };)*

        /// All of them, in the order of the reference.
        pub(super) static ALL: &[&Shape] = &[$(&$table),*];
    };
}

pub(super) static TOPOLOGIES: Kinds = Kinds {
    shapes: &[("star", &STAR), ("dumbbell", &DUMBBELL), ("tree", &TREE), ("chain", &CHAIN), ("text", &TEXT)],
    protocol: None,
};

pub(super) static FLOWS: Kinds =
    Kinds { shapes: &[("session", &SESSION), ("udp", &UDP)], protocol: Some(&UNICAST) };

/// The way back of [`WIRE`] and [`LINK`], whose rows in the reference describe it.
static BACK: Shape = Shape {
    name: "back",
    about: "What is different on the way back.",
    fields: &[RATE, DELAY, QUEUE, LOSS, JITTER],
};

shared! {
    /// Which kind.
    KIND = kind: Text, required;
    /// Bit rate.
    RATE = rate: Rates;
    /// Propagation delay.
    DELAY = delay: Times;
    /// The queue before the link.
    QUEUE = queue: Queue;
    /// Losses on the wire.
    LOSS = loss: Loss;
    /// Each packet propagates up to so much longer, drawn at random; none overtakes.
    JITTER = jitter: Time;
    /// What its metrics are called by.
    NAME = name: Text, required;
    /// When it starts.
    START = start: Times, default "0 s";
    /// When its sender stops.
    STOP = stop: Times, default "never";
    /// It starts up to this much later, drawn at random.
    START_JITTER = start_jitter: Time, default "the scenario's";
    /// How much too fast the clock of each sender runs, which its periods and timers go by: real ones are off by some
    /// 10 ppm. Receivers' clocks are exact.
    CLOCK = clock_error: ClockErrors, default "0 ppm";
    /// Size of a data packet on the link.
    PACKET = packet: Size, default "1000 B";
    /// How many such flows side by side.
    COUNT = count: Whole, default "1";
    /// Senders: one for all receivers, or one for each.
    FROM = from: Names;
    /// Receivers.
    TO = to: Names;
    /// In place of `from` and `to`: a flow from end to end of each of these links.
    ALONG = along: Names;
    /// Receivers that have metrics of their own: `FLOW.PART.rate` beside `FLOW.rate`.
    PARTS = parts: Tables(&PART);
    /// The application sends for so long,
    ON = on: Law(LawOf::Times);
    /// then has nothing new for so long, and so on.
    OFF = off: Law(LawOf::Times);
    /// What the application sends: lines `seconds,bytes`, after the start. An entry is sent in whole packets.
    TRACE = trace: SendTrace;
    /// The same in a file beside the scenario.
    TRACE_FILE = trace_file: Text;
    /// With `log`, the line goes through the logarithms of both: its slope is an exponent.
    FIT_SCALE = scale: Words(&["linear", "log"]), default "linear";
}

tables! {
    /// The keys at the top of the file.
    SCENARIO = "a scenario" {
        /// One line: what is to be seen.
        title: Text, required;
        /// More, for people.
        about: Text;
        /// Where it is published.
        source: Text;
        /// Simulated time.
        duration: Time, required;
        /// Metrics are taken from here to the end.
        warmup: Time, default "0 s";
        /// How many runs with random numbers of their own, or which.
        seeds: Seeds, default "1";
        /// Every flow starts up to this much later, drawn at random.
        start_jitter: Time, default "1 s";
        /// A network made by rule, or written line by line.
        topology: Kinds(&TOPOLOGIES);
        /// Links to add, or of the topology to change.
        link: Tables(&LINK);
        /// Who sends to whom.
        flow: KindTables(&FLOWS), required;
        /// Nodes that pass on only the first of the loss reports about a packet.
        aggregate: NamesOrNone, default "[]";
        /// So long a report passed on keeps others back.
        aggregate_for: Time, default "1 s";
        /// Nodes whose routers do more than pass on what comes.
        router: Tables(&ROUTER);
        /// Flows of one host that share congestion control.
        coordinate: Tables(&COORDINATE);
        /// What happens to links over time.
        change: Tables(&CHANGE);
        /// Further windows in which metrics are taken.
        window: Tables(&WINDOW);
        /// Straight lines through metrics of a run.
        fit: Tables(&FIT);
        /// What is recorded.
        probe: Table(&PROBE);
        /// Which keys take which values, one run for each combination.
        sweep: Axes(&AXIS);
        /// What is expected of the metrics.
        claim: Tables(&CLAIM);
        /// Values that the source leaves open, and what else they might be.
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
        /// Links into each level; the last one goes on.
        level: Levels(&WIRE), default "1 Mbit/s, 20 ms, 50 kB";
        /// Nodes `src1` ..., joined to `root`. `root` may send, too.
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

    /// A network line by line, as the emulator's plans have it: `host NAME`, `router NAME`, and behind them `link
    /// NAME NAME rate=10M delay=20ms jitter=1ms queue=droptail,50 loss=bernoulli,0.01 back rate=1M`. Nothing passes
    /// through hosts; links without options have no limit and no delay.
    TEXT = "topology.kind = \"text\"" {
        KIND;
        /// The lines.
        network: Network, required;
    }

    /// Links of one kind. Links back have the same rate, delay and jitter, but ample queues and no losses, unless
    /// `back` says otherwise.
    WIRE = "wire" {
        RATE; DELAY; QUEUE; LOSS; JITTER;
        /// What is different on the way back.
        back: Table(&BACK);
    }

    /// Where links from `from` to `to` exist (in the topology or above), what is given here changes them. Else links
    /// are added: from one node to each, from each to one, or pair by pair; nodes that are new come into being, also
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
        /// What is different on the way back.
        back: Table(&BACK);
    }

    /// Nodes whose routers help sessions.
    ROUTER = "[[router]]" {
        /// Which nodes.
        at: NamesOrNone, required;
        /// What they do: `acknowledgements` makes one acknowledgement of those of all receivers behind it
        /// (`raccoom`); `rmanp` is RMANP's active router.
        is: Router, required;
        /// When they lose all that they know.
        restarts: Time;
        /// What they are called in metrics of these active routers alone: `routers.NAME.stored`.
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
        /// When receivers join.
        join: Times, default "0 s";
        /// When receivers leave.
        leave: Times, default "never";
        /// Receivers are there for so long,
        present: Law(LawOf::Times);
        /// then away for so long, and so on.
        absent: Law(LawOf::Times);
        /// Receivers that stay all the time nevertheless.
        steady: Names;
        /// The source has so many packets to send and no more.
        packets: Whole;
        ON; OFF;
        /// Whether it is measured how long packets take to receivers. Not for sessions with a tree or of several
        /// layers.
        delays: Words(&["on", "off"]), default "off";
        /// Whether queues that mark may mark its data in place of dropping it.
        ecn: Words(&["on", "off"]), default "off";
        /// The source sends no faster than this, as one whose host is slow.
        at_most: Rate;
        /// Under a scheme with agents (`mtcp`): receivers form a tree in which nobody has more children. They are
        /// divided into as many runs of their order; the first of a run is a child of the source, and has the others
        /// of the run below it, divided likewise.
        fan_out: Whole;
        /// Under a scheme with agents: a receiver's parent is the nearest other receiver on its way from the source.
        tree: Words(&["nearest"]);
        /// Under a scheme with agents, in place of these two: who has which children. Who is nobody's child is the
        /// source's.
        agents: Tables(&AGENT);
        /// More children than this no node of the session's tree may have, the source neither: the paper's bound
        /// for large trees. Without a tree all receivers are the source's children, however many.
        most_children: Whole, default "16";
        /// Time of a join, of the session or of a layer, per router that has to be asked.
        join_latency: Time, default "0 s";
        /// How long packets keep coming over a link after the last receiver behind it left the session or a layer.
        leave_latency: Time, default "0 s";
        /// Receivers also say so often that they are there, as those of a real network do (`250 ms`), and up to four
        /// probes so far apart leave before the start; otherwise the source learns round-trip times from the scheme's
        /// own reports alone.
        alive: Time;
        /// A receiver that has been the representative for so long reports no more.
        mute_after: Time;
        /// Which receiver should be the representative, from when on.
        expected: Tables(&EXPECTED);
        /// So long after each change of `expected`, any representative will do.
        settle: Time, default "20 s";
        PARTS;
    }

    /// A line of the timetable of representatives.
    EXPECTED = "expected" {
        /// From then on
        from: Time, required;
        /// one of these should be the representative.
        is: Names, required;
    }

    /// A receiver that has children in the session's tree.
    AGENT = "agents" {
        /// Who it is: one receiver.
        is: Names, required;
        /// Receivers that report to it.
        children: Names, required;
        /// When it is gone, without a word. Its children go to its own parent,
        dies: Time;
        /// until it comes back.
        returns: Time;
    }

    /// Datagrams at a constant rate while the application is on, without any control.
    UDP = "flow.kind = \"udp\"" {
        NAME; KIND; FROM; TO; ALONG; COUNT;
        /// Bit rate while on.
        rate: Rate, required;
        /// Each gap is the regular one times a random 1 - jitter to 1 + jitter.
        jitter: Share, default "0";
        PACKET; START; STOP; START_JITTER; CLOCK; ON; OFF; TRACE; TRACE_FILE; PARTS;
    }

    /// TCP and its kin: `tcp-reno`, `tcp-sack`, `tfrc` ... with options, as in `tcp-reno,delack`.
    UNICAST = "flow.kind = a unicast protocol" {
        NAME; KIND; FROM; TO; ALONG; COUNT; PACKET;
        /// Size of an acknowledgement on the link.
        ack: Size, default "40 B";
        START; STOP; START_JITTER; CLOCK;
        /// The application sends so many packets and no more.
        packets: Whole;
        ON; OFF;
        /// Transfers on new connections: packets of each,
        transfer: Law(LawOf::Counts);
        /// and the time between two.
        pause: Law(LawOf::Times);
        /// Whether it is measured how long packets take to the receiver.
        delays: Words(&["on", "off"]), default "off";
        TRACE; TRACE_FILE; PARTS;
    }

    /// Some receivers of a flow.
    PART = "parts" {
        /// What stands behind the flow's name in metrics.
        name: Text, required;
        /// Who they are.
        receivers: Names, required;
    }

    /// TCP flows that leave one host, and datagrams that leave it, share congestion control.
    COORDINATE = "[[coordinate]]" {
        /// How, with its options: `cocoon`, `ensemble`, `tcp-int` or `manager` (`docs/cocoon.md`).
        way: Text, required;
        /// Which flows, by their names.
        flows: NamesOrNone, required;
        /// Who shares with whom: all of them, those of one name, those to one receiver, or to receivers of which
        /// measuring shows that they share a bottleneck (`cocoon` and `ensemble` only, and no datagrams).
        groups: Words(&["one", "flows", "hosts", "measured"]), default "one";
    }

    /// Something happens to links.
    CHANGE = "[[change]]" {
        /// When.
        at: Time, required;
        /// Which, as `from->to`.
        link: Names, required;
        /// Another bit rate.
        rate: Rate;
        /// Another delay.
        delay: Time;
        /// Other losses.
        loss: Loss;
        /// Down: all that is queued and all that comes is lost.
        state: Words(&["up", "down"]);
        /// The rate from then on, as a trace: lines `seconds,bit/s`, or Mahimahi's, whose lines are milliseconds in
        /// which a packet of 1504 bytes may leave.
        rates: RateTrace;
        /// The same in a file beside the scenario.
        rates_file: Text;
        /// Mahimahi's opportunities become the mean rate over so long, or until there is one.
        rates_bin: Time, default "100 ms";
        /// The trace begins again when it ends, at its last moment.
        rates_repeat: Words(&["on", "off"]), default "on";
    }

    /// Rates and link metrics are taken in this window, too: `multicast.rate@NAME`.
    WINDOW = "[[window]]" {
        /// What stands behind the @.
        name: Text, required;
        /// Its begin.
        from: Time, required;
        /// Its end.
        to: Time, required;
    }

    /// A straight line through metrics of a run, by least squares. It makes the metrics `fit.NAME.slope`,
    /// `fit.NAME.intercept` and `fit.NAME.r2`, the part of the variance that the line explains.
    FIT = "[[fit]]" {
        /// What its metrics are called by.
        name: Text, required;
        /// The metrics, such as `multicast.slow.rate`.
        of: Metrics, required;
        /// What each of them is set against.
        against: Abscissas, required;
        FIT_SCALE;
    }

    /// What is recorded.
    PROBE = "[probe]" {
        /// Length of a bin of received bits.
        bin: Time, default "1 s";
        /// Over stretches so long a rate's variation is taken (`G.cov`); a whole number of bins.
        stretch: Time, default "1 s";
        /// How often senders are sampled.
        sample: Time, default "1 s, or more seldom with very many flows";
        /// Links whose queues are sampled, as `from->to`.
        links: Names;
        /// How often.
        queue_every: Time, default "100 ms";
        /// How many receivers of a group have rows of their own in `rates`.
        receivers: Whole, default "8";
        /// How many receivers of a session are counted per bin.
        watch: Whole;
        /// Links whose packets are captured, as `from->to`.
        taps: Names;
        /// Whether what happens is written down: losses and marks on all links, cuts, joins, leaves and more.
        events: Words(&["on", "off"]), default "off";
    }

    /// `"topology.leaves" = [1, 4, 16]` is short for an axis `leaves`.
    AXIS = "an axis of [sweep]" {
        /// The keys that take the values, as paths: `topology.leaves`, `flow.NAME.count`, `link.1.loss`.
        set: Names, required;
        /// The values: all keys take the same.
        to: Values;
        /// In place of `to`: a list for each point of the axis, with a value for each of the keys.
        each: Values;
        /// What the points of the axis are called in tables and claims.
        names: Labels;
    }

    /// A metric, the ratio of two, or the trend of one against another over the points of the sweep, and where it
    /// should lie.
    CLAIM = "[[claim]]" {
        /// What is claimed.
        name: Text, required;
        /// A metric, such as `multicast.rate`.
        of: Text, required;
        /// A metric to divide it by.
        over: Text;
        /// Where `over` is taken: what it says in place of the claim's own point.
        over_at: Place;
        /// The point of the sweep; none for all points.
        at: Place;
        /// A metric. The claim is about the line through all its points, each at this metric and `of`.
        against: Text;
        /// Which number of that line: its slope, its value at 0, or the part of the variance that it explains.
        fit: Words(&["slope", "intercept", "r2"]), default "slope";
        FIT_SCALE;
        /// The value that is published.
        published: Number;
        /// Relative to `published`.
        tolerance: Share;
        /// The least.
        low: Number;
        /// The most.
        high: Number;
        /// For people.
        note: Text;
        /// How the source contradicts itself here, with the algebra. A claim that does not hold then is not called a
        /// failure.
        contradicts: Text;
    }

    /// A value that the source leaves open. A claim that holds with one that was chosen after the published numbers
    /// had been seen is said to hold with a choice of ours.
    CHOSEN = "[[chosen]]" {
        /// Which value.
        what: Text, required;
        /// What is run, in words.
        value: Text, required;
        /// Whether it was chosen before or after the published numbers had been seen.
        when: Words(&["before", "after"]), required;
        /// Why this one.
        why: Text, required;
        /// The claims that it concerns, by how their names begin; none for all of them.
        claims: Labels;
        /// What else it might be; is run, too.
        alternative: Tables(&ALTERNATIVE);
    }

    /// The same scenario with other values of some keys.
    ALTERNATIVE = "[[chosen.alternative]]" {
        /// What it is called in tables.
        name: Text, required;
        /// The keys and their values, as in `set = { "flow.tcp.kind" = "tcp-sack" }`. Keys of `sweep` may be among
        /// them, with lists: `"sweep.rate.to" = ["1 Mbit/s", "2 Mbit/s"]`.
        set: Changes, required;
    }
}
