//! The keys of scenario files.

use super::shape::{Field, Kinds, Need, Shape, Takes};
use super::units::LawOf;
use Need::{Default, Optional, Required};

const fn key(name: &'static str, takes: Takes, need: Need, about: &'static str) -> Field {
    Field { name, takes, need, about }
}

pub(crate) static SCENARIO: Shape = Shape {
    name: "a scenario",
    about: "The keys at the top of the file.",
    fields: &[
        key("title", Takes::Text, Required, "One line: what is to be seen."),
        key("about", Takes::Text, Optional, "More, for people."),
        key("source", Takes::Text, Optional, "Where it is published."),
        key("duration", Takes::Time, Required, "Simulated time."),
        key("warmup", Takes::Time, Default("0 s"), "Metrics are taken from here to the end."),
        key("seeds", Takes::Seeds, Default("1"), "How many runs with random numbers of their own, or which."),
        key(
            "start_jitter",
            Takes::Time,
            Default("1 s"),
            "Every flow starts up to this much later, drawn at random.",
        ),
        key(
            "topology",
            Takes::Kinds(&TOPOLOGIES),
            Optional,
            "A network made by rule, or written line by line.",
        ),
        key("link", Takes::Tables(&LINK), Optional, "Links to add, or of the topology to change."),
        key("flow", Takes::KindTables(&FLOWS), Required, "Who sends to whom."),
        key(
            "aggregate",
            Takes::NamesOrNone,
            Default("[]"),
            "Nodes that pass on only the first of the loss reports about a packet.",
        ),
        key("aggregate_for", Takes::Time, Default("1 s"), "So long a report passed on keeps others back."),
        key(
            "router",
            Takes::Tables(&ROUTER),
            Optional,
            "Nodes whose routers do more than pass on what comes.",
        ),
        key(
            "coordinate",
            Takes::Tables(&COORDINATE),
            Optional,
            "Flows of one host that share congestion control.",
        ),
        key("change", Takes::Tables(&CHANGE), Optional, "What happens to links over time."),
        key("window", Takes::Tables(&WINDOW), Optional, "Further windows in which metrics are taken."),
        key("fit", Takes::Tables(&FIT), Optional, "Straight lines through metrics of a run."),
        key("probe", Takes::Table(&PROBE), Optional, "What is recorded."),
        key(
            "sweep",
            Takes::Axes(&AXIS),
            Optional,
            "Which keys take which values, one run for each combination.",
        ),
        key("claim", Takes::Tables(&CLAIM), Optional, "What is expected of the metrics."),
        key(
            "chosen",
            Takes::Tables(&CHOSEN),
            Optional,
            "Values that the source leaves open, and what else they might be.",
        ),
    ],
};

pub(crate) static TOPOLOGIES: Kinds = Kinds {
    shapes: &[("star", &STAR), ("dumbbell", &DUMBBELL), ("tree", &TREE), ("chain", &CHAIN), ("text", &TEXT)],
    protocol: None,
};

const KIND: Field = key("kind", Takes::Text, Required, "Which kind.");

static STAR: Shape = Shape {
    name: "topology.kind = \"star\"",
    about: "`src1` ... to `hub`, and from `hub` to `leaf1` ...",
    fields: &[
        KIND,
        key("leaves", Takes::Whole, Required, "Nodes `leaf1` ..."),
        key("sources", Takes::Whole, Default("1"), "Nodes `src1` ..."),
        key("access", Takes::Table(&WIRE), Default("100 Mbit/s, 1 ms, unlimited"), "Links `src*->hub`."),
        key("leaf", Takes::Table(&WIRE), Default("1 Mbit/s, 20 ms, 50 kB"), "Links `hub->leaf*`."),
    ],
};

static DUMBBELL: Shape = Shape {
    name: "topology.kind = \"dumbbell\"",
    about: "`src1` ... to `left`, one bottleneck `left->right`, and from `right` to `leaf1` ...",
    fields: &[
        KIND,
        key("leaves", Takes::Whole, Required, "Nodes `leaf1` ..."),
        key("sources", Takes::Whole, Default("1"), "Nodes `src1` ..."),
        key("bottleneck", Takes::Table(&WIRE), Default("1 Mbit/s, 20 ms, 50 kB"), "Link `left->right`."),
        key("access", Takes::Table(&WIRE), Default("100 Mbit/s, 1 ms, unlimited"), "Links `src*->left`."),
        key("leaf", Takes::Table(&WIRE), Default("100 Mbit/s, 1 ms, unlimited"), "Links `right->leaf*`."),
    ],
};

static TREE: Shape = Shape {
    name: "topology.kind = \"tree\"",
    about: "`root`, routers `r1.1` ... of level 1, `r2.1` ... of level 2, and so on; the last level is `leaf1` ... \
            Children of a router are numbered in a row.",
    fields: &[
        KIND,
        key(
            "fanout",
            Takes::Wholes,
            Required,
            "Children of each node, level by level: [4, 4, 4] has 64 leaves.",
        ),
        key(
            "level",
            Takes::Levels(&WIRE),
            Default("1 Mbit/s, 20 ms, 50 kB"),
            "Links into each level; the last one goes on.",
        ),
        key(
            "sources",
            Takes::Whole,
            Default("0"),
            "Nodes `src1` ..., joined to `root`. `root` may send, too.",
        ),
        key("access", Takes::Table(&WIRE), Default("100 Mbit/s, 1 ms, unlimited"), "Links `src*->root`."),
    ],
};

static CHAIN: Shape = Shape {
    name: "topology.kind = \"chain\"",
    about: "Routers `r0` ... in a row, a bottleneck from each to the next; at router `rI` hosts `srcI.1` ... and \
            `leafI.1` ...",
    fields: &[
        KIND,
        key("bottlenecks", Takes::Whole, Required, "Links `r0->r1`, `r1->r2` ..."),
        key("leaves", Takes::Whole, Required, "Hosts `leafI.1` ... at each router."),
        key("sources", Takes::Whole, Default("1"), "Hosts `srcI.1` ... at each router."),
        key(
            "bottleneck",
            Takes::Table(&WIRE),
            Default("1 Mbit/s, 20 ms, 50 kB"),
            "The links between routers.",
        ),
        key("access", Takes::Table(&WIRE), Default("100 Mbit/s, 1 ms, unlimited"), "Links `srcI.*->rI`."),
        key("leaf", Takes::Table(&WIRE), Default("100 Mbit/s, 1 ms, unlimited"), "Links `rI->leafI.*`."),
    ],
};

static TEXT: Shape = Shape {
    name: "topology.kind = \"text\"",
    about: "A network line by line, as the emulator's plans have it: `host NAME`, `router NAME`, and behind them \
            `link NAME NAME rate=10M delay=20ms jitter=1ms queue=droptail,50 loss=bernoulli,0.01 back rate=1M`. Nothing passes through hosts; \
            links without options have no limit and no delay.",
    fields: &[KIND, key("network", Takes::Network, Required, "The lines.")],
};

const RATE: Field = key("rate", Takes::Rates, Optional, "Bit rate.");
const DELAY: Field = key("delay", Takes::Times, Optional, "Propagation delay.");
const QUEUE: Field = key("queue", Takes::Queue, Optional, "The queue before the link.");
const LOSS: Field = key("loss", Takes::Loss, Optional, "Losses on the wire.");
const JITTER: Field = key(
    "jitter",
    Takes::Time,
    Optional,
    "Each packet propagates up to so much longer, drawn at random; none overtakes.",
);

static WIRE: Shape = Shape {
    name: "wire",
    about: "Links of one kind. Links back have the same rate, delay and jitter, but ample queues and no losses, unless `back` says otherwise.",
    fields: &[
        RATE,
        DELAY,
        QUEUE,
        LOSS,
        JITTER,
        key("back", Takes::Table(&BACK), Optional, "What is different on the way back."),
    ],
};

static BACK: Shape = Shape {
    name: "back",
    about: "What is different on the way back.",
    fields: &[RATE, DELAY, QUEUE, LOSS, JITTER],
};

static LINK: Shape = Shape {
    name: "[[link]]",
    about: "Where links from `from` to `to` exist (in the topology or above), what is given here changes them. Else \
            links are added: from one node to each, from each to one, or pair by pair; nodes that are new come into \
            being, also as a row: `leaf[1-64]`.",
    fields: &[
        key("from", Takes::Names, Required, "One end."),
        key("to", Takes::Names, Required, "The other end."),
        key("rate", Takes::Rates, Default("1 Mbit/s"), "Bit rate."),
        key("delay", Takes::Times, Default("20 ms"), "Propagation delay."),
        key("queue", Takes::Queue, Default("50 kB"), "The queue before the link."),
        LOSS,
        JITTER,
        key("back", Takes::Table(&BACK), Optional, "What is different on the way back."),
    ],
};

pub(crate) static FLOWS: Kinds =
    Kinds { shapes: &[("session", &SESSION), ("udp", &UDP)], protocol: Some(&UNICAST) };

const NAME: Field = key("name", Takes::Text, Required, "What its metrics are called by.");
const START: Field = key("start", Takes::Times, Default("0 s"), "When it starts.");
const STOP: Field = key("stop", Takes::Times, Default("never"), "When its sender stops.");
const START_JITTER: Field = key(
    "start_jitter",
    Takes::Time,
    Default("the scenario's"),
    "It starts up to this much later, drawn at random.",
);
const CLOCK: Field = key(
    "clock_error",
    Takes::ClockErrors,
    Default("0 ppm"),
    "How much too fast the clock of each sender runs, which its periods and timers go by: real ones are off by some 10 ppm. Receivers' clocks are exact.",
);
const PACKET: Field = key("packet", Takes::Size, Default("1000 B"), "Size of a data packet on the link.");
const COUNT: Field = key("count", Takes::Whole, Default("1"), "How many such flows side by side.");
const FROM: Field = key("from", Takes::Names, Optional, "Senders: one for all receivers, or one for each.");
const TO: Field = key("to", Takes::Names, Optional, "Receivers.");
const ALONG: Field = key(
    "along",
    Takes::Names,
    Optional,
    "In place of `from` and `to`: a flow from end to end of each of these links.",
);
const PARTS: Field = key(
    "parts",
    Takes::Tables(&PART),
    Optional,
    "Receivers that have metrics of their own: `FLOW.PART.rate` beside `FLOW.rate`.",
);
const ON: Field = key("on", Takes::Law(LawOf::Times), Optional, "The application sends for so long,");
const OFF: Field =
    key("off", Takes::Law(LawOf::Times), Optional, "then has nothing new for so long, and so on.");

static SESSION: Shape = Shape {
    name: "flow.kind = \"session\"",
    about: "Multicast, under one of our schemes (`faircast schemes`).",
    fields: &[
        NAME,
        KIND,
        key("scheme", Takes::Scheme, Required, "The scheme and its options."),
        FROM,
        TO,
        key(
            "per",
            Takes::Words(&["group", "receiver"]),
            Default("group"),
            "One session for all receivers, or one for each.",
        ),
        ALONG,
        COUNT,
        PACKET,
        key("report", Takes::Size, Default("40 B"), "Size of a report on the link."),
        START,
        STOP,
        START_JITTER,
        CLOCK,
        key("join", Takes::Times, Default("0 s"), "When receivers join."),
        key("leave", Takes::Times, Default("never"), "When receivers leave."),
        key("present", Takes::Law(LawOf::Times), Optional, "Receivers are there for so long,"),
        key("absent", Takes::Law(LawOf::Times), Optional, "then away for so long, and so on."),
        key("steady", Takes::Names, Optional, "Receivers that stay all the time nevertheless."),
        key("packets", Takes::Whole, Optional, "The source has so many packets to send and no more."),
        ON,
        OFF,
        key(
            "delays",
            Takes::Words(&["on", "off"]),
            Default("off"),
            "Whether it is measured how long packets take to receivers. Not for sessions with a tree or of several layers.",
        ),
        key(
            "ecn",
            Takes::Words(&["on", "off"]),
            Default("off"),
            "Whether queues that mark may mark its data in place of dropping it.",
        ),
        key(
            "at_most",
            Takes::Rate,
            Optional,
            "The source sends no faster than this, as one whose host is slow.",
        ),
        key(
            "fan_out",
            Takes::Whole,
            Optional,
            "Under a scheme with agents (`mtcp`): receivers form a tree in which nobody has more children. They are divided into as many runs of their order; the first of a run is a child of the source, and has the others of the run below it, divided likewise.",
        ),
        key(
            "tree",
            Takes::Words(&["nearest"]),
            Optional,
            "Under a scheme with agents: a receiver's parent is the nearest other receiver on its way from the source.",
        ),
        key(
            "agents",
            Takes::Tables(&AGENT),
            Optional,
            "Under a scheme with agents, in place of these two: who has which children. Who is nobody's child is the source's.",
        ),
        key(
            "most_children",
            Takes::Whole,
            Default("16"),
            "More children than this no node of the session's tree may have, the source neither: the document's bound for large trees. Without a tree all receivers are the source's children, however many.",
        ),
        key(
            "join_latency",
            Takes::Time,
            Default("0 s"),
            "Time of a join, of the session or of a layer, per router that has to be asked.",
        ),
        key(
            "leave_latency",
            Takes::Time,
            Default("0 s"),
            "How long packets keep coming over a link after the last receiver behind it left the session or a layer.",
        ),
        key(
            "alive",
            Takes::Time,
            Optional,
            "Receivers also say so often that they are there, as those of a real network do (`250 ms`), and up to four probes so far apart leave before the start; otherwise the source learns round-trip times from the scheme's own reports alone.",
        ),
        key(
            "mute_after",
            Takes::Time,
            Optional,
            "A receiver that has been the representative for so long reports no more.",
        ),
        key(
            "expected",
            Takes::Tables(&EXPECTED),
            Optional,
            "Which receiver should be the representative, from when on.",
        ),
        key(
            "settle",
            Takes::Time,
            Default("20 s"),
            "So long after each change of `expected`, any representative will do.",
        ),
        PARTS,
    ],
};

static AGENT: Shape = Shape {
    name: "agents",
    about: "A receiver that has children in the session's tree.",
    fields: &[
        key("is", Takes::Names, Required, "Who it is: one receiver."),
        key("children", Takes::Names, Required, "Receivers that report to it."),
        key(
            "dies",
            Takes::Time,
            Optional,
            "When it is gone, without a word. Its children go to its own parent,",
        ),
        key("returns", Takes::Time, Optional, "until it comes back."),
    ],
};

static PART: Shape = Shape {
    name: "parts",
    about: "Some receivers of a flow.",
    fields: &[
        key("name", Takes::Text, Required, "What stands behind the flow's name in metrics."),
        key("receivers", Takes::Names, Required, "Who they are."),
    ],
};

static EXPECTED: Shape = Shape {
    name: "expected",
    about: "A line of the timetable of representatives.",
    fields: &[
        key("from", Takes::Time, Required, "From then on"),
        key("is", Takes::Names, Required, "one of these should be the representative."),
    ],
};

const TRACE: Field = key(
    "trace",
    Takes::SendTrace,
    Optional,
    "What the application sends: lines `seconds,bytes`, after the start. An entry is sent in whole packets.",
);
const TRACE_FILE: Field = key("trace_file", Takes::Text, Optional, "The same in a file beside the scenario.");

static UDP: Shape = Shape {
    name: "flow.kind = \"udp\"",
    about: "Datagrams at a constant rate while the application is on, without any control.",
    fields: &[
        NAME,
        KIND,
        FROM,
        TO,
        ALONG,
        COUNT,
        key("rate", Takes::Rate, Required, "Bit rate while on."),
        key(
            "jitter",
            Takes::Share,
            Default("0"),
            "Each gap is the regular one times a random 1 - jitter to 1 + jitter.",
        ),
        PACKET,
        START,
        STOP,
        START_JITTER,
        CLOCK,
        ON,
        OFF,
        TRACE,
        TRACE_FILE,
        PARTS,
    ],
};

static UNICAST: Shape = Shape {
    name: "flow.kind = a unicast protocol",
    about: "TCP and its kin: `tcp-reno`, `tcp-sack`, `tfrc` ... with options, as in `tcp-reno,delack`.",
    fields: &[
        NAME,
        KIND,
        FROM,
        TO,
        ALONG,
        COUNT,
        PACKET,
        key("ack", Takes::Size, Default("40 B"), "Size of an acknowledgement on the link."),
        START,
        STOP,
        START_JITTER,
        CLOCK,
        key("packets", Takes::Whole, Optional, "The application sends so many packets and no more."),
        ON,
        OFF,
        key(
            "transfer",
            Takes::Law(LawOf::Counts),
            Optional,
            "Transfers on new connections: packets of each,",
        ),
        key("pause", Takes::Law(LawOf::Times), Optional, "and the time between two."),
        key(
            "delays",
            Takes::Words(&["on", "off"]),
            Default("off"),
            "Whether it is measured how long packets take to the receiver.",
        ),
        TRACE,
        TRACE_FILE,
        PARTS,
    ],
};

static CHANGE: Shape = Shape {
    name: "[[change]]",
    about: "Something happens to links.",
    fields: &[
        key("at", Takes::Time, Required, "When."),
        key("link", Takes::Names, Required, "Which, as `from->to`."),
        key("rate", Takes::Rate, Optional, "Another bit rate."),
        key("delay", Takes::Time, Optional, "Another delay."),
        key("loss", Takes::Loss, Optional, "Other losses."),
        key(
            "state",
            Takes::Words(&["up", "down"]),
            Optional,
            "Down: all that is queued and all that comes is lost.",
        ),
        key(
            "rates",
            Takes::RateTrace,
            Optional,
            "The rate from then on, as a trace: lines `seconds,bit/s`, or Mahimahi's, whose lines are milliseconds in which a packet of 1504 bytes may leave.",
        ),
        key("rates_file", Takes::Text, Optional, "The same in a file beside the scenario."),
        key(
            "rates_bin",
            Takes::Time,
            Default("100 ms"),
            "Mahimahi's opportunities become the mean rate over so long, or until there is one.",
        ),
        key(
            "rates_repeat",
            Takes::Words(&["on", "off"]),
            Default("on"),
            "The trace begins again when it ends, at its last moment.",
        ),
    ],
};

static ROUTER: Shape = Shape {
    name: "[[router]]",
    about: "Nodes whose routers help sessions.",
    fields: &[
        key("at", Takes::NamesOrNone, Required, "Which nodes."),
        key(
            "is",
            Takes::Router,
            Required,
            "What they do: `acknowledgements` makes one acknowledgement of those of all receivers behind it (`raccoom`); `rmanp` is RMANP's active router.",
        ),
        key("restarts", Takes::Time, Optional, "When they lose all that they know."),
        key(
            "name",
            Takes::Text,
            Optional,
            "What they are called in metrics of these active routers alone: `routers.NAME.stored`.",
        ),
    ],
};

static COORDINATE: Shape = Shape {
    name: "[[coordinate]]",
    about: "TCP flows that leave one host, and datagrams that leave it, share congestion control.",
    fields: &[
        key(
            "way",
            Takes::Text,
            Required,
            "How, with its options: `cocoon`, `ensemble`, `tcp-int` or `manager` (`docs/cocoon.md`).",
        ),
        key("flows", Takes::NamesOrNone, Required, "Which flows, by their names."),
        key(
            "groups",
            Takes::Words(&["one", "flows", "hosts", "measured"]),
            Default("one"),
            "Who shares with whom: all of them, those of one name, those to one receiver, or to receivers of which measuring shows \
             that they share a bottleneck (`cocoon` and `ensemble` only, and no datagrams).",
        ),
    ],
};

static WINDOW: Shape = Shape {
    name: "[[window]]",
    about: "Rates and link metrics are taken in this window, too: `multicast.rate@NAME`.",
    fields: &[
        key("name", Takes::Text, Required, "What stands behind the @."),
        key("from", Takes::Time, Required, "Its begin."),
        key("to", Takes::Time, Required, "Its end."),
    ],
};

const FIT_SCALE: Field = key(
    "scale",
    Takes::Words(&["linear", "log"]),
    Default("linear"),
    "With `log`, the line goes through the logarithms of both: its slope is an exponent.",
);

static FIT: Shape = Shape {
    name: "[[fit]]",
    about: "A straight line through metrics of a run, by least squares. It makes the metrics `fit.NAME.slope`, \
            `fit.NAME.intercept` and `fit.NAME.r2`, the part of the variance that the line explains.",
    fields: &[
        key("name", Takes::Text, Required, "What its metrics are called by."),
        key("of", Takes::Metrics, Required, "The metrics, such as `multicast.slow.rate`."),
        key("against", Takes::Abscissas, Required, "What each of them is set against."),
        FIT_SCALE,
    ],
};

static PROBE: Shape = Shape {
    name: "[probe]",
    about: "What is recorded.",
    fields: &[
        key("bin", Takes::Time, Default("1 s"), "Length of a bin of received bits."),
        key(
            "stretch",
            Takes::Time,
            Default("1 s"),
            "Over stretches so long a rate's variation is taken (`G.cov`); a whole number of bins.",
        ),
        key(
            "sample",
            Takes::Time,
            Default("1 s, or more seldom with very many flows"),
            "How often senders are sampled.",
        ),
        key("links", Takes::Names, Optional, "Links whose queues are sampled, as `from->to`."),
        key("queue_every", Takes::Time, Default("100 ms"), "How often."),
        key(
            "receivers",
            Takes::Whole,
            Default("8"),
            "How many receivers of a group have rows of their own in `rates`.",
        ),
        key("watch", Takes::Whole, Optional, "How many receivers of a session are counted per bin."),
        key("taps", Takes::Names, Optional, "Links whose packets are captured, as `from->to`."),
        key(
            "events",
            Takes::Words(&["on", "off"]),
            Default("off"),
            "Whether what happens is written down: losses and marks on all links, cuts, joins, leaves and more.",
        ),
    ],
};

static AXIS: Shape = Shape {
    name: "an axis of [sweep]",
    about: "`\"topology.leaves\" = [1, 4, 16]` is short for an axis `leaves`.",
    fields: &[
        key(
            "set",
            Takes::Names,
            Required,
            "The keys that take the values, as paths: `topology.leaves`, `flow.NAME.count`, `link.1.loss`.",
        ),
        key("to", Takes::Values, Optional, "The values: all keys take the same."),
        key(
            "each",
            Takes::Values,
            Optional,
            "In place of `to`: a list for each point of the axis, with a value for each of the keys.",
        ),
        key("names", Takes::Labels, Optional, "What the points of the axis are called in tables and claims."),
    ],
};

static CLAIM: Shape = Shape {
    name: "[[claim]]",
    about: "A metric, the ratio of two, or the trend of one against another over the points of the sweep, and where it \
            should lie.",
    fields: &[
        key("name", Takes::Text, Required, "What is claimed."),
        key("of", Takes::Text, Required, "A metric, such as `multicast.rate`."),
        key("over", Takes::Text, Optional, "A metric to divide it by."),
        key(
            "over_at",
            Takes::Place,
            Optional,
            "Where `over` is taken: what it says in place of the claim's own point.",
        ),
        key("at", Takes::Place, Optional, "The point of the sweep; none for all points."),
        key(
            "against",
            Takes::Text,
            Optional,
            "A metric. The claim is about the line through all its points, each at this metric and `of`.",
        ),
        key(
            "fit",
            Takes::Words(&["slope", "intercept", "r2"]),
            Default("slope"),
            "Which number of that line: its slope, its value at 0, or the part of the variance that it explains.",
        ),
        FIT_SCALE,
        key("published", Takes::Number, Optional, "The value that is published."),
        key("tolerance", Takes::Share, Optional, "Relative to `published`."),
        key("low", Takes::Number, Optional, "The least."),
        key("high", Takes::Number, Optional, "The most."),
        key("note", Takes::Text, Optional, "For people."),
        key(
            "contradicts",
            Takes::Text,
            Optional,
            "How the source contradicts itself here, with the algebra. A claim that does not hold then is not called a failure.",
        ),
    ],
};

static CHOSEN: Shape = Shape {
    name: "[[chosen]]",
    about: "A value that the source leaves open. A claim that holds with one that was chosen after the published numbers had \
            been seen is said to hold with a choice of ours.",
    fields: &[
        key("what", Takes::Text, Required, "Which value."),
        key("value", Takes::Text, Required, "What is run, in words."),
        key(
            "when",
            Takes::Words(&["before", "after"]),
            Required,
            "Whether it was chosen before or after the published numbers had been seen.",
        ),
        key("why", Takes::Text, Required, "Why this one."),
        key(
            "claims",
            Takes::Labels,
            Optional,
            "The claims that it concerns, by how their names begin; none for all of them.",
        ),
        key("alternative", Takes::Tables(&ALTERNATIVE), Optional, "What else it might be; is run, too."),
    ],
};

static ALTERNATIVE: Shape = Shape {
    name: "[[chosen.alternative]]",
    about: "The same scenario with other values of some keys.",
    fields: &[
        key("name", Takes::Text, Required, "What it is called in tables."),
        key(
            "set",
            Takes::Changes,
            Required,
            "The keys and their values, as in `set = { \"flow.tcp.kind\" = \"tcp-sack\" }`. Keys of `sweep` may be among them, with lists: `\"sweep.rate.to\" = [\"1 Mbit/s\", \"2 Mbit/s\"]`.",
        ),
    ],
};

/// All shapes, in the order of the reference.
pub(crate) static ALL: &[&Shape] = &[
    &SCENARIO,
    &STAR,
    &DUMBBELL,
    &TREE,
    &CHAIN,
    &TEXT,
    &WIRE,
    &LINK,
    &ROUTER,
    &SESSION,
    &EXPECTED,
    &AGENT,
    &UDP,
    &UNICAST,
    &PART,
    &COORDINATE,
    &CHANGE,
    &WINDOW,
    &FIT,
    &PROBE,
    &AXIS,
    &CLAIM,
    &CHOSEN,
    &ALTERNATIVE,
];
