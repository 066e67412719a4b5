//! Seed 001: MTCP, a tree of receivers.

use super::{Embedded, Entry, Open, embedded};
use crate::figures::{self, Named};
use crate::results::Results;
use crate::scenario::Scenario;

/// The figures that every run has, without the one of representatives: which part of a tree is slowest changes all the time.
fn figures_of_trees(scenario: &Scenario, results: &Results) -> Vec<Named> {
    figures::figures(scenario, results).into_iter().filter(|(name, _)| *name != "representatives").collect()
}

pub(super) static ENTRIES: &[Entry] = &[
    Entry {
        // seed 001, 4.1
        id: "001/fig-2",
        aliases: &[],
        about: "MTCP to one to sixteen receivers on a local network",
        published: "Throughput and load of the processor against the number of receivers: throughput falls, but not \
                    significantly, and the load falls with it, for the sender waits longer for acknowledgements.",
        scenario: embedded!("001/fig-2.toml", &[("sweep.receivers.to", "[1, 16]")], figures_of_trees),
        calculation: None,
        open: &[Open {
            name: "the load of the sender's processor falls with the number of receivers",
            published: None,
            needs: "a sender's work for an acknowledgement, which is not measured yet",
        }],
        known: "",
    },
    Entry {
        // seed 001, 4.1
        id: "001/fig-3",
        aliases: &[],
        about: "How fast MTCP's source follows the window of an agent far below",
        published: "Windows over five seconds on a chain of four sites. The window that the source sends by closely follows \
                    that of the second agent, which is above the bottleneck; after a slow start there it drops within \
                    200 to 250 ms. The source's own window is the largest.",
        scenario: embedded!("001/fig-3.toml", &[], figures_of_trees),
        calculation: None,
        open: &[],
        known: "A summary leaves Georgia Tech at once, and the way to NCSU takes 20 ms: that is the whole lag, a \
                tenth of the published one. What took 200 ms there is not known; hosts of that time woke processes \
                every 10 ms, and delayed acknowledgements wait up to 200. The source's own window is not larger than \
                Emory's, but the same (0.997, 0.991 to 1.00, five seeds): no link above Georgia Tech is congested, so both \
                are held by one limit, twice the session's window and 16 packets. Tried, five seeds each: no such limit \
                0.996, limits without the 16 packets 0.998, rounds of each node's own 0.97, no thresholds of Vegas 0.96, \
                the rule of 1998 0.87. With bursts that begin at Emory and fill its link, too, it is 1.28 (1.06 to 1.51), \
                with 1 Mbit/s from Emory to Georgia Tech 1.36: each window falls with what is congested below, and the \
                document's path was so at more than one place.",
    },
    Entry {
        // seed 001, 4.2
        id: "001/fig-5",
        aliases: &["001/fig-6"],
        about: "MTCP beside TCP from Emory to Georgia Tech",
        published: "Rates over 300 s, means of 5 s (figure 5) and 1 s (figure 6): MTCP and TCP have about the same, 280 KB/s.",
        scenario: embedded!("001/fig-5.toml", &[], figures_of_trees),
        calculation: None,
        open: &[],
        known: "Five seeds each. With the thresholds of ns-2's Vegas MTCP has 0.09 of TCP with an ample window that leaves up \
                to 2 ms late, 0.25 where TCP leaves exactly on time, 0.42 beside a window of 20 packets; with 2 and 4 \
                packets 0.11. Without thresholds it has 1.03 of an ample TCP, 1.08 of one with 24 packets, 1.20 and 1.35 with \
                22 and 20, which is all that such a TCP can use; exactly on time an ample TCP is locked out (4.4), and \
                behind RED from 10 to 30 packets it is 0.93. So the document's implementation did not keep short queues \
                beside TCP.",
    },
    Entry {
        // seed 001, 4.2
        id: "001/fig-7",
        aliases: &["001/fig-8"],
        about: "MTCP beside TCP at four sites",
        published: "Rates over 300 s, means of 5 s (figure 7) and 1 s (figure 8): MTCP matches the TCP on the slowest link, \
                    from Emory to NCSU, about 70 KB/s.",
        scenario: embedded!("001/fig-7.toml", &[], figures_of_trees),
        calculation: None,
        open: &[],
        known: "Hangs on what the other links carry, five seeds each. With ample TCPs every link of the tree loses, MTCP \
                meets the sum over the longest round trip of all, and has 0.22 of the TCP on the slowest link without \
                thresholds, 0.03 with ns-2's, 0.40 without thresholds and with the loss filter. That the document has \
                both at 70 KB/s says that its other links did not lose. With windows of 20, 22 and 24 packets it is 1.13, \
                0.99 and 1.02.",
    },
    Entry {
        // seed 001, 4.2
        id: "001/fig-9",
        aliases: &["001/fig-10"],
        about: "MTCP beside TCP at five sites",
        published: "Rates over 300 s, means of 5 s (figure 9) and 1 s (figure 10): MTCP has no more than the TCP on the \
                    slowest link, from Georgia Tech to Texas, about 60 KB/s.",
        scenario: embedded!("001/fig-9.toml", &[], figures_of_trees),
        calculation: None,
        open: &[],
        known: "As for figure 7: 0.12 with ample TCPs without thresholds, 0.34 with the loss filter, too, 0.03 with ns-2's; \
                1.31, 1.18 and 1.06 with windows of 20, 22 and 24 packets, five seeds each.",
    },
    Entry {
        // seed 001, 4.2
        id: "001/fig-11",
        aliases: &[],
        about: "MTCP while three TCP flows come and go",
        published: "Rates over time, in KB/s. Alone MTCP has 400; beside TCP1 300 and 300; beside two TCP1 180, MTCP and TCP2 \
                    240; with a third MTCP and TCP2 fall slightly; when TCP1 ends MTCP matches TCP2; when TCP2 ends MTCP \
                    has 330 and TCP3 260; then 400 again.",
        scenario: embedded!("001/fig-11.toml", &[], figures_of_trees),
        calculation: None,
        open: &[],
        known: "Beside one TCP the published rates are 300 and 300 of 660 KB/s, beside two 180, 240 and 240: a TCP \
                that is limited by its window leaves MTCP at its 400 beside one, and one that is not takes more than \
                its share beside two. Beside three MTCP falls to half, not slightly: four flows of 20 packets fill the \
                buffer of 60. Tried, five seeds each: accepted of twelve, MTCP beside one in KB/s, and beside three over \
                two. Windows of 20 packets 10, 400, 0.46; of 22 9, 400, 0.49; of 24 8, 400, 0.56; an ample window 7, 257, \
                0.74, with delayed acknowledgements 9, 340, 0.84; a buffer of 30 packets 8, 290, 0.70, of 120 6, 400, 0.72; \
                RED from 10 to 30 packets 11, 291, 0.77 (then TCP3 has 368 in place of 260 at the end); no cut for a \
                single loss 11, 400, 0.60; cuts to three quarters 10, 400, 0.65; ns-2's thresholds 6, 128, 0.69. TCP1 \
                has less than TCP2 in the document, although both take the same way; here they have the same.",
    },
    Entry {
        // seed 001, 3.2
        id: "001/sec-3.2",
        aliases: &[],
        about: "MTCP moves one slow leaf of two hundred out of the way",
        published: "Nothing: localization is described and was not implemented. Who is not congested should not notice.",
        scenario: embedded!("001/sec-3.2.toml", &[], figures_of_trees),
        calculation: None,
        open: &[],
        known: "Agents hear 10 Mbit/s and use 2 of them, which is what keeps F at 0.96.",
    },
    Entry {
        // seed 001, 5
        id: "001/sec-5",
        aliases: &[],
        about: "MTCP to ten thousand receivers",
        published: "Nothing: simulations of large trees are announced.",
        scenario: embedded!(
            "001/sec-5.toml",
            &[
                (
                    "sweep.receivers.each",
                    r#"[[[4], "root->leaf1", "root->leaf1", ["leaf*"]], [[4, 4], "r1.1->leaf1", "r1.1->leaf1", ["r1.*", "leaf*"]], [[4, 4, 2], "r2.1->leaf1", "r2.1->leaf1", ["r1.*", "r2.*", "leaf*"]]]"#
                ),
                ("change.2.at", "3 s"),
            ],
            figures_of_trees
        ),
        calculation: None,
        open: &[],
        known: "",
    },
];
