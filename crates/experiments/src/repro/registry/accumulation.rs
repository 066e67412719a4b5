//! Seed 000, chapter 5 and appendix D: schemes that avoid congestion, MCA+ and MCA.

use super::{Embedded, Entry, embedded};
use crate::report::figures;
use crate::repro::views;

pub(super) static ENTRIES: &[Entry] = &[
    Entry {
        // seed 000, 5.3.1
        id: "000/fig-5.8",
        aliases: &["000/fig-5.7"],
        about: "MCA+ at one bottleneck with 10, 20 and 30 sessions",
        published: "Rates, queue and utilisation over 500 s with buffers of 200 and 50 packets. Rates adapt \
                    to the number of sessions (1, 0.5, 0.33, 0.5, 1 Mbit/s are fair), utilisation is high, \
                    the queue short.",
        scenario: embedded!("000/fig-5.8.toml", &[("flow.first.count", "10")], figures::figures),
        calculation: None,
        open: &[],
        known: "Ten sessions that begin within a second meet a bottleneck that is full; with 200 packets \
                of buffer a few of their packets are dropped then. The document says that nothing is lost \
                with this buffer.",
    },
    Entry {
        // seed 000, 5.3.2
        id: "000/fig-5.10",
        aliases: &["000/fig-5.9"],
        about: "MCA+ over one, two and four bottlenecks",
        published: "Average rates: sessions over one bottleneck get about 2.5 times those over two, these \
                    almost twice those over four. Queues are short and utilisation is high.",
        scenario: embedded!("000/fig-5.10.toml", &[("topology.leaves", "4")], figures::figures),
        calculation: None,
        open: &[],
        known: "",
    },
    Entry {
        // seed 000, 5.3.3
        id: "000/fig-5.12",
        aliases: &["000/fig-5.11"],
        about: "MCA+ to 64 receivers beside unicast sessions",
        published: "Averages of the multicast and the unicast sessions are almost the same. Congestion \
                    indications with the short buffer: 5444 of the session, 4978 of one receiver without \
                    suppression, 5057 of a unicast session; with the long one 5605, 5135 and 5147.",
        scenario: embedded!(
            "000/fig-5.12.toml",
            &[("topology.leaves", "8"), ("flow.unicast.from", "src[1-8]")],
            figures::figures
        ),
        calculation: None,
        open: &[],
        known: "How often receivers report follows from how often control packets come, which the document does not \
                say. Why the session gets less with the short buffer is not known.",
    },
    Entry {
        // seed 000, 5.3.4
        id: "000/fig-5.14",
        aliases: &["000/fig-5.13", "000/table-5.1"],
        about: "MCA+ follows the most congested of four links",
        published: "Rate of the session over 1400 s with buffers of 200 and 8 packets: it follows the most \
                    congested link (table 5.1: links 1, 2, 3, 4, 3, 2, 1), with some changes to and fro from \
                    400 to 1000 s.",
        scenario: embedded!("000/fig-5.14.toml", &[], views::fig_5_14),
        calculation: None,
        open: &[],
        known: "The links' rates and delays are not in the document.",
    },
    Entry {
        // seed 000, 5.3.5
        id: "000/fig-5.15",
        aliases: &[],
        about: "MCA+ in a network whose bottlenecks and receivers come and go",
        published: "Ten runs: 232 kbit/s on average (standard deviation 10), 3009 feedback packets at the \
                    source (777).",
        scenario: embedded!("000/fig-5.15.toml", &[], figures::figures),
        calculation: None,
        open: &[],
        known: "The tree's shape, the Pareto shape and the duration are not in the document.",
    },
    Entry {
        // seed 000, D.4.1
        id: "000/fig-D.4",
        aliases: &["000/fig-D.2", "000/fig-D.3", "000/table-D.1"],
        about: "Three MCA sessions to two receivers, binary and explicit reports",
        published: "Rates and queues over time; both kinds of reports follow the number of sessions. Average \
                    queue 5745.93 bytes and utilisation 83.0 % with binary, 20359.8 bytes and 98.1 % with \
                    explicit reports.",
        scenario: embedded!("000/fig-D.4.toml", &[], figures::figures),
        calculation: None,
        open: &[],
        known: "The links' rates and delays and the time between control packets are not in the document.",
    },
    Entry {
        // seed 000, D.4.2
        id: "000/fig-D.6",
        aliases: &["000/fig-D.5"],
        about: "An MCA session over two bottlenecks and one over each",
        published: "Average rates over time: the session over both gets more than a third of a bottleneck \
                    (proportional fairness) and less than a half (max-min fairness).",
        scenario: embedded!("000/fig-D.6.toml", &[], figures::figures),
        calculation: None,
        open: &[],
        known: "The links' rates and delays are not in the document. Probably because the session over both \
                bottlenecks piles up packets at both, and has the longer round trip.",
    },
    Entry {
        // seed 000, D.4.3
        id: "000/fig-D.8",
        aliases: &["000/fig-D.7"],
        about: "An MCA session to 16 receivers beside unicast sessions",
        published: "Average rates over time: the multicast session and the unicast ones behind 0.9 Mbit/s \
                    get between 0.4 and 0.45 Mbit/s.",
        scenario: embedded!("000/fig-D.8.toml", &[], figures::figures),
        calculation: None,
        open: &[],
        known: "The delays and the time between control packets are not in the document. Probably the source \
                follows the lowest of 16 noisy measurements.",
    },
];
