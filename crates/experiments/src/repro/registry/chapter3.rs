//! Seed 000, chapter 3: ORMCC, beside PGMCC and TFMCC.

use super::{Embedded, Entry, Restated, embedded};
use crate::figures;
use crate::repro::views;

/// The lines of table 3.3, each with the figure or table that it names.
pub(super) static SUMMARY: &[Restated] = &[
    Restated {
        name: "fairness to TCP, no drop to zero: better than PGMCC and TFMCC",
        entry: "000/fig-3.4",
        claims: &["PGMCC deviates more", "TFMCC deviates more"],
    },
    Restated {
        name: "fairness over several bottlenecks: comparable",
        entry: "000/fig-3.10",
        claims: &["the long session gets a third of the bottleneck"],
    },
    Restated {
        name: "tracking of the slowest receiver: better",
        entry: "000/fig-3.12",
        claims: &[
            "share of the time with the representative of table 3.1",
            "PGMCC: changes of the representative, over ORMCC's",
            "TFMCC: changes of the representative, over ORMCC's",
        ],
    },
    Restated {
        name: "suppression of feedback: better",
        entry: "000/table-3.2",
        claims: &["feedback, TFMCC over ORMCC", "feedback, PGMCC (NAKs) over TFMCC"],
    },
    Restated {
        name: "heterogeneous network: better",
        entry: "000/table-3.2",
        claims: &["throughput, TFMCC over ORMCC", "throughput, PGMCC over TFMCC"],
    },
];

/// Sixteen leaves in place of 64 for quick runs.
const SMALL_STAR: &[(&str, &str)] = &[
    ("topology.leaves", "16"),
    ("topology.sources", "65"),
    ("flow.single.from", "src[1-16]"),
    ("flow.tcp.from", "src[1-16]"),
];

pub(super) static ENTRIES: &[Entry] = &[
    Entry {
        // seed 000, 3.3.1
        id: "000/fig-3.4",
        aliases: &["000/fig-3.3", "000/fig-1.3"],
        about: "One multicast session beside TCP and unicast sessions: 64 bottlenecks",
        published: "Over-time average rates of the three flows to one receiver. (a) ORMCC: the multicast \
                    flow, the single-receiver flow and TCP are close to each other. (b) PGMCC and (c) TFMCC: \
                    the multicast flow deviates more from the unicast flows.",
        scenario: embedded!("000/fig-3.4.toml", SMALL_STAR, views::fig_3_4),
        calculation: None,
        open: &[],
        known: "The links are not in the document, and with drop-tail and packets of one size the phase decides: over the \
                delays of the sources' links the multicast session gets from 0.8 to 1.6 times what TCP gets. Averaged \
                over phases it gets about 1.05 of a TCP flow and 0.79 of a unicast session.",
    },
    Entry {
        // seed 000, 3.3.1
        id: "000/fig-3.6",
        aliases: &["000/fig-3.5", "000/fig-1.4"],
        about: "10,000 receivers, each behind a bottleneck of its own: no drop to zero",
        published: "Average throughput of the multicast session to 10,000 receivers and of four of the \
                    unicast flows. The multicast session is slightly below the unicast flows and does not \
                    fall over time.",
        scenario: embedded!(
            "000/fig-3.6.toml",
            &[("topology.fanout", "[10, 20]")],
            views::averages_and_rates
        ),
        calculation: None,
        open: &[],
        known: "",
    },
    Entry {
        // seed 000, 3.3.1
        id: "000/fig-3.7",
        aliases: &[],
        about: "ORMCC, PGMCC and TFMCC together, 10, 100 and 500 receivers",
        published: "Over-time average throughput of one multicast session of each scheme, with unicast PGMCC \
                    flows beside them. ORMCC gets about as much as the unicast flows for every number of \
                    receivers; PGMCC slightly less, the same for all; TFMCC less and less with more \
                    receivers.",
        scenario: embedded!(
            "000/fig-3.7.toml",
            &[("sweep.receivers.to", "[[2, 2], [2, 5], [4, 5]]")],
            figures::figures
        ),
        calculation: None,
        open: &[],
        known: "The figure depends on the phase of the last hop, as its table shows. TFMCC falls from 10 to 100 receivers \
                and no further to 500. With the timer of the first TFMCC (timer=2001) it does, but that sends other \
                numbers of reports than section 3.3.5 and table 3.2 print.",
    },
    Entry {
        // seed 000, 3.3.2
        id: "000/fig-3.8",
        aliases: &[],
        about: "Reports get lost: 0 to 10 % of them",
        published: "Over-time average throughput with 500 receivers and growing loss of reports. The curves \
                    do not differ.",
        scenario: embedded!("000/fig-3.8.toml", &[("topology.fanout", "[4, 10]")], views::averages_and_sweep),
        calculation: None,
        open: &[],
        known: "",
    },
    Entry {
        // seed 000, 3.3.3
        id: "000/fig-3.10",
        aliases: &["000/fig-3.9"],
        about: "A session over two bottlenecks, one over each: proportional fairness",
        published: "Rates of the long and the two short sessions over time, for (a) ORMCC, (b) PGMCC and (c) \
                    TFMCC. The long one gets about a third of the bottleneck, 0.33 Mbit/s, with all three \
                    schemes.",
        scenario: embedded!("000/fig-3.10.toml", &[], views::fig_3_10),
        calculation: None,
        open: &[],
        known: "",
    },
    Entry {
        // seed 000, 3.3.4
        id: "000/fig-3.12",
        aliases: &["000/fig-3.11", "000/table-3.1"],
        about: "The representative follows the most congested of three links",
        published: "Rate of the session over 1000 s, with vertical lines where the representative changes, \
                    for drop-tail and RED queues. The rate follows the most congested link (table 3.1: links \
                    1, 2, 3, 2, 1); with RED the change sometimes comes a little later. (c) to (f): PGMCC \
                    and TFMCC follow, too, sometimes with more changes of the representative.",
        scenario: embedded!("000/fig-3.12.toml", &[], views::fig_3_12),
        calculation: None,
        open: &[],
        known: "",
    },
    Entry {
        // seed 000, 3.3.4
        id: "000/fig-3.13",
        aliases: &[],
        about: "Every representative falls silent after 20 s",
        published: "Average throughput with 500 receivers when a receiver stops reporting for good after 20 \
                    s as the representative. The pattern is that of figure 3.6.",
        scenario: embedded!(
            "000/fig-3.13.toml",
            &[("topology.fanout", "[4, 10]")],
            views::averages_and_sweep
        ),
        calculation: None,
        open: &[],
        known: "",
    },
    Entry {
        // seed 000, 3.3.5
        id: "000/sec-3.3.5",
        aliases: &[],
        about: "How many reports are sent and suppressed in the star of figure 3.4",
        published: "Means of ten runs: 816 reports sent (standard deviation 14.8), 34601 suppressed (422.0), \
                    so 553 per receiver without suppression, and 97.7 % suppressed. PGMCC: 74830 packets of \
                    feedback; TFMCC: 5344.",
        scenario: embedded!("000/sec-3.3.5.toml", SMALL_STAR, views::sec_3_3_5),
        calculation: None,
        open: &[],
        known: "",
    },
    Entry {
        // seed 000, 3.3.6
        id: "000/table-3.2",
        aliases: &["000/fig-3.14"],
        about: "A heterogeneous network whose bottlenecks come and go",
        published: "Average throughput and number of feedback packets, means of ten runs. ORMCC 415.4 kbit/s \
                    and 866.9; PGMCC 126.6 kbit/s and 5009.6 (NAKs only); TFMCC 226.7 kbit/s and 3312.9.",
        scenario: embedded!("000/table-3.2.toml", &[], views::table_3_2),
        calculation: None,
        open: &[],
        known: "",
    },
    Entry {
        // seed 000, 3.3
        id: "000/table-3.3",
        aliases: &[],
        about: "Summary: ORMCC against PGMCC and TFMCC",
        published: "A table of words. Fairness to TCP and no drop to zero: better than PGMCC and TFMCC. \
                    Several bottlenecks: comparable. Tracking of the slowest receiver, suppression of \
                    feedback, and the heterogeneous network: better.",
        scenario: None,
        calculation: None,
        open: &[],
        known: "",
    },
    Entry {
        // seed 000, 3.3.7
        id: "000/fig-3.16",
        aliases: &["000/fig-3.15"],
        about: "Three decrease factors beside TCP, 36 receivers",
        published: "Mean rates of the multicast session, the unicast sessions and TCP with their intervals, \
                    on real machines, for beta 0.5, 0.65 and 0.75. TCP is ahead with 0.5, ORMCC with 0.75, \
                    both are equal with 0.65; the multicast session is close to the unicast ones with all \
                    three.",
        scenario: embedded!("000/fig-3.16.toml", &[], views::fig_3_16),
        calculation: None,
        open: &[],
        known: "The published runs used a user's program whose packets left in bursts; here they are paced exactly. With \
                real programs and Linux' TCP over emulated links (bench/RESULTS.md) single sessions get 1.05 times \
                what TCP gets with 0.65 and 1.38 times with 0.75.",
    },
];
