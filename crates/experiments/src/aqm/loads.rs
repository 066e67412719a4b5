//! Loads on one bottleneck. A load of RFC 7928 states its section of the RFC. Values that the RFC leaves open are chosen in this
//! file.

use faircast_core::rng::Rng;
use faircast_core::time::Time;
use std::fmt::Write as _;

/// A load: a scenario in which the queue is a parameter.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Name in tables and files.
    pub name: &'static str,
    /// Description, in one sentence.
    pub about: &'static str,
    /// Origin of the load, such as a section of RFC 7928.
    pub source: &'static str,
    /// Propagation delays of the access links, as a value in the scenario's syntax.
    access: &'static str,
    /// Number of senders, and of receivers.
    hosts: u32,
    /// Whether queues may mark packets.
    pub marks: bool,
    /// Writes the flows and the link changes of the scenario into a text.
    flows: fn(&mut Text),
    /// Groups whose flows should get equal rates.
    pub equals: &'static [&'static str],
    /// Whether figures show the queue over time.
    pub over_time: bool,
}

/// A set of loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// The loads of RFC 7928.
    Rfc7928,
    /// Three representative loads.
    Three,
    /// Multicast sessions that compete with TCP.
    Multicast,
}

impl Set {
    /// Returns the loads of the set.
    pub const fn loads(self) -> &'static [Load] {
        match self {
            Set::Rfc7928 => RFC_7928,
            Set::Three => THREE,
            Set::Multicast => MULTICAST,
        }
    }
}

/// The text of a scenario under construction.
#[derive(Debug)]
pub struct Text {
    text: String,
    /// Duration of the run, in seconds.
    seconds: f64,
    /// Options that make TCP use ECN; empty if queues may not mark.
    ecn: &'static str,
}

impl Text {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.text, "{line}").expect("a string takes everything");
    }

    /// Adds a group of flows from sources to leaves. `hosts` has the numbers in the hosts' names.
    fn flow(&mut self, name: &str, kind: &str, hosts: &str, rest: &str) {
        self.flow_between(name, kind, ["src", "leaf"], hosts, rest);
    }

    /// Adds a group of flows between hosts. `from` and `to` are the prefixes of the hosts' names, and `hosts` has the numbers
    /// after the prefixes.
    fn flow_between(&mut self, name: &str, kind: &str, [from, to]: [&str; 2], hosts: &str, rest: &str) {
        self.line(format_args!(
            "[[flow]]\nname = \"{name}\"\nkind = \"{kind}\"\nfrom = \"{from}{hosts}\"\nto = \"{to}{hosts}\"\n\
             start_jitter = \"1 s\"\n{rest}\n"
        ));
    }

    /// Adds web transfers. `pause` is the mean pause between two transfers.
    fn web(&mut self, hosts: &str, pause: &str) {
        let rest = format!("transfer = \"pareto 12 shape 1.2\"\npause = \"exponential {pause}\"");
        self.flow("web", "tcp-sack,preset=linux", hosts, &rest);
    }

    /// Adds endless TCP flows with Linux parameters.
    fn tcp(&mut self, name: &str, hosts: &str) {
        let kind = format!("tcp-sack,preset=linux{}", self.ecn);
        self.flow(name, &kind, hosts, "");
    }

    fn share(&self, of_run: f64) -> String {
        format!("\"{} s\"", (self.seconds * of_run * 1e3).round() / 1e3)
    }
}

impl Load {
    /// Returns the scenario of this load, with a sweep over these queues. A run lasts `seconds` seconds, of which the first fifth
    /// is warm-up.
    pub fn scenario(&self, queues: &[(String, String)], seconds: f64) -> String {
        let ecn = if self.marks { ",ecn" } else { "" };
        let mut text = Text { text: String::new(), seconds, ecn };
        let Load { name, about, source, hosts, access, .. } = self;
        let warmup = seconds / 5.0;
        text.line(format_args!("title = \"{name}\"\nabout = \"{about}\"\nsource = \"{source}\""));
        text.line(format_args!("duration = \"{seconds} s\"\nwarmup = \"{warmup} s\"\n"));
        text.line(format_args!("[topology]\nkind = \"dumbbell\"\nsources = {hosts}\nleaves = {hosts}"));
        let first = queues.first().map_or("droptail,100", |(_, queue)| queue);
        text.line(format_args!(
            "bottleneck = {{ rate = \"10 Mbit/s\", delay = \"20 ms\", queue = \"{first}\" }}"
        ));
        text.line(format_args!(
            "access = {{ rate = \"1 Gbit/s\", delay = {access}, queue = \"unlimited\" }}"
        ));
        text.line(format_args!(
            "leaf = {{ rate = \"1 Gbit/s\", delay = \"5 ms\", queue = \"unlimited\" }}\n"
        ));
        text.line(format_args!("[probe]\nlinks = \"left->right\"\nqueue_every = \"10 ms\"\n"));
        let quoted = |part: fn(&(String, String)) -> &String| {
            queues.iter().map(|queue| format!("{:?}", part(queue))).collect::<Vec<_>>().join(", ")
        };
        text.line(format_args!(
            "[sweep]\nqueue = {{ set = \"topology.bottleneck.queue\", to = [{}], names = [{}] }}\n",
            quoted(|(_, queue)| queue),
            quoted(|(name, _)| name)
        ));
        (self.flows)(&mut text);
        text.text
    }
}

/// Delay of an access link. With the delays of the bottleneck and the leaf link, the round-trip time is 100 ms.
const ACCESS: &str = "\"25 ms\"";

const fn load(
    name: &'static str,
    source: &'static str,
    about: &'static str,
    hosts: u32,
    flows: fn(&mut Text),
) -> Load {
    Load { name, about, source, access: ACCESS, hosts, marks: false, flows, equals: &[], over_time: false }
}

impl Load {
    const fn with_marks(self) -> Load {
        Load { marks: true, ..self }
    }

    const fn equal(self, groups: &'static [&'static str]) -> Load {
        Load { equals: groups, ..self }
    }

    const fn over_time(self) -> Load {
        Load { over_time: true, ..self }
    }

    const fn access(self, access: &'static str) -> Load {
        Load { access, ..self }
    }
}

const RFC_7928: &[Load] = &[
    load("friendly", "RFC 7928, 5.1", "Five long TCPs and short transfers", 10, |text| {
        text.tcp("tcp", "[1-5]");
        let kind = "tcp-sack,preset=linux";
        text.flow("short", kind, "[6-10]", "transfer = \"pareto 30\"\npause = \"exponential 1 s\"");
    })
    .equal(&["tcp"]),
    load(
        "initial-windows",
        "RFC 7928, 5.1",
        "Transfers with an initial window of 3 packets, and others with 10",
        12,
        |text| {
            text.tcp("tcp", "[1-4]");
            let rest = "transfer = \"pareto 30\"\npause = \"exponential 0.5 s\"";
            text.flow("three", "tcp-sack,preset=linux,initial-window=3", "[5-8]", rest);
            text.flow("ten", "tcp-sack,preset=linux", "[9-12]", rest);
        },
    )
    .equal(&["three", "ten"]),
    load(
        "aggressive",
        "RFC 7928, 5.2",
        "Three CUBIC flows without HyStart and three Reno flows",
        6,
        |text| {
            text.tcp("tcp", "[1-3]");
            text.flow("cubic", "tcp-cubic,hystart=off", "[4-6]", "");
        },
    )
    .equal(&["tcp", "cubic"]),
    load("aggressive-bbr", "RFC 7928, 5.2", "Three BBR flows and three Reno flows", 6, |text| {
        text.tcp("tcp", "[1-3]");
        text.flow("bbr", "tcp-bbr", "[4-6]", "");
    })
    .equal(&["tcp", "bbr"]),
    load(
        "unresponsive",
        "RFC 7928, 5.3",
        "Five long TCPs and datagrams at half of the link's rate",
        6,
        |text| {
            text.tcp("tcp", "[1-5]");
            text.flow("udp", "udp", "6", "rate = \"5 Mbit/s\"\njitter = 0.5");
        },
    )
    .equal(&["tcp"]),
    load(
        "less-than-best-effort",
        "RFC 7928, 5.4",
        "Three long TCPs and three Vegas flows, which represent LEDBAT: both reduce their rate when a queue grows",
        6,
        |text| {
            text.tcp("tcp", "[1-3]");
            text.flow("vegas", "tcp-vegas", "[4-6]", "");
        },
    )
    .equal(&["tcp", "vegas"]),
    load(
        "round-trips",
        "RFC 7928, 6",
        "TCPs with a round-trip time of 100 ms, and others with 60 ms to 500 ms",
        8,
        |text| {
            text.tcp("same", "[1-4]");
            text.tcp("other", "[5-8]");
        },
    )
    .access("[\"25 ms\", \"25 ms\", \"25 ms\", \"25 ms\", \"5 ms\", \"50 ms\", \"100 ms\", \"225 ms\"]")
    .equal(&["same", "other"]),
    load(
        "bursts-web",
        "RFC 7928, 7",
        "Web transfers with an initial window of ten packets, a long TCP and a telephone call",
        22,
        |text| {
            text.tcp("tcp", "1");
            text.web("[2-21]", "1 s");
            text.flow("call", "udp", "22", "rate = \"87 kbit/s\"\npacket = \"218 B\"");
        },
    )
    .over_time(),
    load(
        "bursts-video",
        "RFC 7928, 7",
        "Video frames of varying size, 25 per second, a steady stream and a long TCP",
        3,
        |text| {
            text.tcp("tcp", "1");
            let frames = video(text.seconds);
            text.flow("video", "udp", "2", &format!("rate = \"100 Mbit/s\"\ntrace = \"\"\"\n{frames}\"\"\""));
            text.flow("steady", "udp", "3", "rate = \"1 Mbit/s\"");
        },
    )
    .over_time(),
    load(
        "mild",
        "RFC 7928, 8",
        "Long TCPs; their number is chosen for a loss of 0.1 % with a drop-tail buffer of one round trip",
        4,
        |text| {
            text.tcp("tcp", "[1-4]");
        },
    )
    .equal(&["tcp"]),
    load("medium", "RFC 7928, 8", "The same for 0.5 %", 10, |text| text.tcp("tcp", "[1-10]")).equal(&["tcp"]),
    load("heavy", "RFC 7928, 8", "The same for 1 %", 15, |text| text.tcp("tcp", "[1-15]")).equal(&["tcp"]),
    load("varying-flows", "RFC 7928, 8", "4 flows, then 15, then 4 again", 15, |text| {
        text.tcp("tcp", "[1-4]");
        let kind = format!("tcp-sack,preset=linux{}", text.ecn);
        let rest = format!("start = {}\nstop = {}", text.share(0.4), text.share(0.7));
        text.flow("more", &kind, "[5-15]", &rest);
    })
    .equal(&["tcp"])
    .over_time(),
    load("varying-capacity", "RFC 7928, 8", "The link's rate falls from 10 to 2 Mbit/s and returns", 5, |text| {
        text.tcp("tcp", "[1-5]");
        let (at, back) = (text.share(0.4), text.share(0.7));
        text.line(format_args!("[[change]]\nat = {at}\nlink = \"left->right\"\nrate = \"2 Mbit/s\"\n"));
        text.line(format_args!("[[change]]\nat = {back}\nlink = \"left->right\"\nrate = \"10 Mbit/s\"\n"));
    })
    .equal(&["tcp"])
    .over_time(),
    load(
        "capacity-trace",
        "RFC 7928, 8",
        "The link's rate follows a trace between 2 and 20 Mbit/s, a random walk like that of a radio link",
        5,
        |text| {
            text.tcp("tcp", "[1-5]");
            let rates = radio(text.seconds);
            text.line(format_args!(
                "[[change]]\nat = 0\nlink = \"left->right\"\nrates = \"\"\"\n{rates}\"\"\"\n"
            ));
        },
    )
    .equal(&["tcp"])
    .over_time(),
    load("mix", "RFC 7928, 9", "Long TCPs, web transfers, a call and a video call", 17, |text| {
        text.tcp("tcp", "[1-5]");
        text.web("[6-15]", "1 s");
        text.flow("call", "udp", "16", "rate = \"87 kbit/s\"\npacket = \"218 B\"");
        text.flow("video", "udp", "17", "rate = \"1.5 Mbit/s\"\njitter = 0.5");
    })
    .equal(&["tcp"]),
    load("two-way", "RFC 7928, 9", "Five long TCPs in each direction", 10, |text| {
        text.tcp("tcp", "[1-5]");
        text.flow_between("back", "tcp-sack,preset=linux", ["leaf", "src"], "[6-10]", "");
    })
    .equal(&["tcp"]),
    load("kinds", "RFC 7928, 5", "Two flows each of Reno, CUBIC, BBR and Vegas", 8, |text| {
        text.tcp("reno", "[1-2]");
        text.flow("cubic", "tcp-cubic", "[3-4]", "");
        text.flow("bbr", "tcp-bbr", "[5-6]", "");
        text.flow("vegas", "tcp-vegas", "[7-8]", "");
    })
    .equal(&["reno", "cubic", "bbr", "vegas"]),
    load("ecn", "RFC 7928, 4", "Ten long TCPs that allow marks", 10, |text| text.tcp("tcp", "[1-10]"))
        .with_marks()
        .equal(&["tcp"]),
    load("ecn-mixed", "RFC 7928, 4", "Five long TCPs that allow marks, and five that do not", 10, |text| {
        text.tcp("ecn", "[1-5]");
        text.flow("plain", "tcp-sack,preset=linux", "[6-10]", "");
    })
    .with_marks()
    .equal(&["ecn", "plain"]),
    load("l4s", "RFC 9332", "Three Prague flows and three CUBIC flows that allow marks", 6, |text| {
        text.flow("prague", "tcp-prague", "[1-3]", "");
        text.flow("cubic", "tcp-cubic,ecn", "[4-6]", "");
    })
    .with_marks()
    .equal(&["prague", "cubic"]),
];

const THREE: &[Load] = &[
    load("long", "ours", "60 long TCPs at 10 Mbit/s with round-trip times of 40 to 240 ms", 60, |text| {
        text.tcp("tcp", "[1-60]")
    })
    .access("\"5 ms .. 95 ms\"")
    .equal(&["tcp"]),
    load("web", "ours", "Ten long TCPs and 40 hosts with web transfers", 50, |text| {
        text.tcp("tcp", "[1-10]");
        text.web("[11-50]", "2 s");
    })
    .access("\"5 ms .. 45 ms\"")
    .equal(&["tcp"]),
    load(
        "unyielding",
        "ours",
        "20 long TCPs that allow marks, and datagrams at a quarter of the link's rate that do not",
        21,
        |text| {
            text.tcp("tcp", "[1-20]");
            text.flow("udp", "udp", "21", "rate = \"2.5 Mbit/s\"\njitter = 0.5");
        },
    )
    .access("\"5 ms .. 45 ms\"")
    .with_marks()
    .equal(&["tcp"]),
];

/// A session of a scheme with three receivers behind the bottleneck, competing with five TCP flows.
macro_rules! beside_tcp {
    ($name:literal) => {
        load(concat!($name, " beside TCP"), "ours", concat!("A session of ", $name, " with three receivers, and five long TCPs"), 8, |text| {
            text.tcp("tcp", "[1-5]");
            text.line(format_args!(
                "[[flow]]\nname = \"session\"\nkind = \"session\"\nscheme = \"{}\"\nfrom = \"src6\"\nto = \"leaf[6-8]\"\n",
                $name
            ));
        })
        .equal(&["tcp", "session"])
    };
}

const MULTICAST: &[Load] = &[beside_tcp!("ormcc"), beside_tcp!("le-sbcc"), beside_tcp!("gmcc")];

/// Returns the trace of a video of 2 Mbit/s on average. Every twelfth frame is larger. The size of each frame is drawn from half
/// to one and a half of its mean.
fn video(seconds: f64) -> String {
    let mut rng = Rng::new(7928, 1);
    let mut text = String::new();
    for frame in 0..(seconds * 25.0) as u32 {
        let mean = if frame % 12 == 0 { 40_000.0 } else { 7_300.0 };
        let bytes = mean * (0.5 + rng.unit());
        writeln!(text, "{:.2},{bytes:.0}", f64::from(frame) * 0.04).expect("a string takes everything");
    }
    text
}

/// Returns a trace with a link rate every 200 ms. The logarithm of the rate is a random walk; the rate stays between 2 and 20
/// Mbit/s.
fn radio(seconds: f64) -> String {
    let mut rng = Rng::new(7928, 2);
    let (low, high) = (2e6_f64.ln(), 20e6_f64.ln());
    let mut at = 8e6_f64.ln();
    let mut text = String::new();
    for step in 0..(seconds * 5.0) as u32 {
        at = (at + 0.5 * (rng.unit() - 0.5)).clamp(low, high);
        let time = Time::from_nanos(u64::from(step) * 200_000_000).as_secs_f64();
        writeln!(text, "{time:.1},{:.0}", at.exp()).expect("a string takes everything");
    }
    text
}
