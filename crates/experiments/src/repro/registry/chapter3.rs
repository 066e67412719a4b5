//! Seed 000, chapter 3: ORMCC, beside PGMCC and TFMCC.

use super::{Embedded, Entry, embedded, open};
use crate::report::figures;
use crate::repro::views;

const ELSEWHERE: &str = "needs a judgement; the numbers are those of 000/fig-3.4, 000/fig-3.7, 000/fig-3.10, \
                         000/fig-3.12, 000/sec-3.3.5 and 000/table-3.2";

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
        known: "The links' rate and delay are not in the document. With 1 Mbit/s a full queue of 50 kB takes \
                0.4 s, most of the round trip; the ratio between Reno and a paced rate depends on it, and on \
                how often Reno falls into timeouts: with selective acknowledgements in Reno's place the \
                multicast session gets 1.13 times what TCP gets.",
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
        known: "What TFMCC gets depends on its first seconds, not on the number of receivers. A loss while \
                it sends two packets a second lowers it to 1 kbit/s; the largest round trip then counts as 8 \
                s, a packet's time; RFC 4654 lets the rate grow by a packet per largest round trip in each, \
                and lets that shrink by a tenth in six, so it takes minutes to recover. With half kept \
                instead of nine tenths (rtt-max-kept=0.5) it gets 105 to 134 kbit/s with all three groups. \
                PGMCC's window of the group grows as that of a single receiver does; what made the published \
                one smaller is not known.",
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
        known: "RED's parameters are not in the document. The round trip of the long session is 1.7 times \
                that of the short ones, and ORMCC adds a packet per round trip in each round trip, so it \
                grows at a third of their pace.",
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
        known: "With RED the session takes more than an equal share from TCP. RED's parameters are not in \
                the document.",
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
        known: "The published 553 reports per receiver, more than one a second, mean shorter round trips \
                than these links have: with 1 Mbit/s a full queue alone takes 0.4 s. The links' rate and \
                delay are not in the document. PGMCC's acknowledgements are as many as published, one for \
                each packet at a third of 1 Mbit/s for 500 s; its negative ones are fewer, since fewer \
                packets get lost here.",
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
        known: "The shape of the tree, the duration and the law of the on and off times are not in the \
                document. It is not the size of the group: a session to leaf 1 alone gets 86 kbit/s. It \
                crosses three bottlenecks with a round trip of 0.8 s, and competes on each with TCP flows \
                whose round trip is 0.25 s. How the published session got more is not known. TFMCC: as in \
                figure 3.7, the largest round trip is long and the rate grows by a packet in each.",
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
        open: &[
            open("fairness to TCP, no drop to zero: better than PGMCC and TFMCC", None, ELSEWHERE),
            open("fairness over several bottlenecks: comparable", None, ELSEWHERE),
            open("tracking of the slowest receiver: better", None, ELSEWHERE),
            open("suppression of feedback: better", None, ELSEWHERE),
            open("heterogeneous network: better", None, ELSEWHERE),
        ],
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
        known: "The published runs used a user's program whose packets left in bursts; here they are paced \
                exactly, and with selective acknowledgements TCP hardly ever times out. The published order \
                of the three values of beta is there, at another place. With real programs and Linux' TCP over \
                emulated links (bench/RESULTS.md) single sessions get 1.05 times what TCP gets with 0.65 and \
                1.38 times with 0.75: there the published claims hold.",
    },
];
