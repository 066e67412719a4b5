//! Seed 000, chapter 4: GMCC, in layers.

use super::{Embedded, Entry, embedded};
use crate::report::figures;

pub(super) static ENTRIES: &[Entry] = &[
    Entry {
        // seed 000, 4.2.1
        id: "000/fig-4.5",
        aliases: &["000/fig-4.4"],
        about: "GMCC uses two layers for two bottlenecks, and no more",
        published: "Rates of the flows over 100 s. The second receiver joins a second layer at 15.8 s with 5 Mbit/s \
                    and at 22.4 s with 10 Mbit/s, and stays; the first one has the base layer alone. With 10 Mbit/s \
                    the second one gets more than 3 Mbit/s.",
        scenario: embedded!("000/fig-4.5.toml", &[], figures::figures),
        calculation: None,
        open: &[],
        known: "Links' rates and delays are not in the document but for 5 and 10 Mbit/s. Some runs never join; why has not \
                been found. Whether TCP's packets are as large as the session's changes the result.",
    },
    Entry {
        // seed 000, 4.2.2
        id: "000/fig-4.7",
        aliases: &["000/fig-4.6"],
        about: "A receiver joins a layer while five TCP flows pause, and leaves it when they go on",
        published: "Rates of the two receivers. Five of six TCP flows on the second link pause from 100 to 200 s: its \
                    receiver joins at 135.412 s and leaves at 205.178 s. The first one stays in one layer.",
        scenario: embedded!("000/fig-4.7.toml", &[], figures::figures),
        calculation: None,
        open: &[],
        known: "The links' rates are not in the document. The mean of reciprocals (cor=mean, the letter) is dominated by two \
                losses in a row; with the harmonic mean and wide links the figure is as published.",
    },
    Entry {
        // seed 000, 4.2.3
        id: "000/fig-4.9",
        aliases: &["000/fig-4.8"],
        about: "Bandwidth shifted between layers shows that a bottleneck is the session's own",
        published: "Rates of three receivers over one bottleneck; the second enters at 100 s and joins at 170.146 s, \
                    sometimes earlier by another rule. Feedback: 4424 packets of the third, 5448 of the first, 2 of \
                    the second one.",
        scenario: embedded!(
            "000/fig-4.9.toml",
            &[("flow.gmcc.join", "[\"0 s\", \"10 s\", \"0 s\"]")],
            figures::figures
        ),
        calculation: None,
        open: &[],
        known: "Without shifts the second receiver joins as well, at the representative's losses; the document saw that in \
                some runs. Where it becomes a representative for a while it reports as one.",
    },
    Entry {
        // seed 000, 4.2.4
        id: "000/fig-4.11",
        aliases: &["000/fig-4.10", "000/table-4.2"],
        about: "Receivers behind six bottlenecks, with two TCP flows on each",
        published: "Averages over 600 s: the more bandwidth, the more a receiver gets, and more than TCP beside it. \
                    Layers joined: 4, 12, 11, 10, 9, 7; left: 4, 11, 8, 6, 4, 2.",
        scenario: embedded!("000/fig-4.11.toml", &[], figures::figures),
        calculation: None,
        open: &[],
        known: "Receivers 3 to 6 leave more often than published, and have fewer layers at the end. With TCP's packets as \
                large as the session's, phase effects put receivers 2, 4 and 6 below 1, 3 and 5.",
    },
    Entry {
        // seed 000, 4.2.4
        id: "000/fig-4.13",
        aliases: &["000/fig-4.12", "000/table-4.3"],
        about: "1200 receivers behind bottlenecks of six sizes, 2000 s",
        published: "Average throughput grows linearly with the bottleneck. Layers joined by 200 receivers each: 1913, \
                    2757, 2986, 2988, 2896, 2947; left: 0, 246, 155, 35, 0, 0.",
        scenario: embedded!("000/fig-4.13.toml", TWELVE_LEAVES, figures::figures),
        calculation: None,
        open: &[],
        known: "The document says ten groups and shows six. The tree's shape and delays are not in it. Its numbers of joins \
                need more than the eight layers that there are here at most.",
    },
];

/// Two receivers of each group instead of 200.
const TWELVE_LEAVES: &[(&str, &str)] = &[
    ("topology.fanout", "[1, 2, 6]"),
    ("link.1.to", "leaf[1-2]"),
    ("link.2.to", "leaf[3-4]"),
    ("link.3.to", "leaf[5-6]"),
    ("link.4.to", "leaf[7-8]"),
    ("link.5.to", "leaf[9-10]"),
    (
        "flow.gmcc.parts",
        "[{ name = \"group1\", receivers = \"leaf[1-2]\" }, { name = \"group2\", receivers = \"leaf[3-4]\" }, \
         { name = \"group3\", receivers = \"leaf[5-6]\" }, { name = \"group4\", receivers = \"leaf[7-8]\" }, \
         { name = \"group5\", receivers = \"leaf[9-10]\" }, { name = \"group6\", receivers = \"leaf[11-12]\" }]",
    ),
];
