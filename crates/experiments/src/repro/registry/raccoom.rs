//! Seed 002, chapter 3: RACCOOM.

use super::{Embedded, Entry, embedded};
use crate::figures;

pub(super) static ENTRIES: &[Entry] = &[
    Entry {
        // seed 002, 3.9.1
        id: "002/fig-3.12a",
        aliases: &[],
        about: "Ten RACCOOM sessions share a bottleneck whatever their round trips",
        published: "F_r, a session's rate over the least of all, is between 1.0 and 1.15 when the longest round trip is 1 to 10 times the \
                    shortest.",
        scenario: embedded!(
            "002/fig-3.12a.toml",
            &[
                ("sweep.ratio.names", "[\"1\", \"3\"]"),
                (
                    "sweep.ratio.each",
                    "[[\"5 ms\", \"5 ms\"], [[\"5 ms\", \"35 ms\"], [\"5 ms\", \"35 ms\"]]]"
                )
            ],
            figures::figures
        ),
        calculation: None,
        open: &[],
        known: "As printed, the law of the rate oscillates between nothing and all that the access links carry. With 20 packets of \
                buffer the ten sessions want to keep twice as many as there is room for, and losses decide.",
    },
    Entry {
        // seed 002, 3.9.1
        id: "002/fig-3.12b",
        aliases: &["002/fig-3.10"],
        about: "Four RACCOOM sessions with 100 receivers each share a bottleneck",
        published: "After a transient each of the four sessions has about 0.25 of 1 Mbit/s.",
        scenario: embedded!(
            "002/fig-3.12b.toml",
            &[("router.1.at", "[\"core\", \"root\", \"r1.*\", \"r2.*\", \"r3.*\"]")],
            figures::figures
        ),
        calculation: None,
        open: &[],
        known: "",
    },
    Entry {
        // seed 002, 3.9.1
        id: "002/fig-3.13",
        aliases: &[],
        about: "RACCOOM sessions of weights 1 to 4 with different round trips",
        published: "The rate of a session over the reference's is about its weight, and hardly depends on its round trip.",
        scenario: embedded!("002/fig-3.13.toml", &[], figures::figures),
        calculation: None,
        open: &[],
        known: "",
    },
    Entry {
        // seed 002, 3.9.1
        id: "002/fig-3.14a",
        aliases: &[],
        about: "A RACCOOM session that adapts its queue beside ten TCP flows",
        published: "The session's rate over a TCP flow's is very close to 1 with round trips of 40, 60 and 80 ms.",
        scenario: embedded!("002/fig-3.14a.toml", NARROW, figures::figures),
        calculation: None,
        open: &[],
        known: "With drop-tail the phase decides much: 40 and 80 ms are whole numbers of packet times that make the flows take turns, \
                60 ms is not.",
    },
    Entry {
        // seed 002, 3.9.1
        id: "002/fig-3.14b",
        aliases: &[],
        about: "RACCOOM sessions with 5 to 100 receivers beside TCP to the farthest ones",
        published: "The rate of a session over that of the TCP flow is 0.8 to 1.5 in group 1.",
        scenario: embedded!("002/fig-3.14b.toml", NARROW, figures::figures),
        calculation: None,
        open: &[],
        known: "",
    },
    Entry {
        // seed 002, 3.9.1
        id: "002/fig-3.15a",
        aliases: &["002/table-3.1", "002/fig-3.11"],
        about: "A RACCOOM session whose receivers come and go",
        published: "The rate is 1 Mbit/s, 0.5 when receiver 2 joins, 0.3 when receiver 3 joins, 0.5 when it leaves, 1 when receiver 2 \
                    leaves.",
        scenario: embedded!("002/fig-3.15a.toml", FINE, figures::figures),
        calculation: None,
        open: &[],
        known: "",
    },
    Entry {
        // seed 002, 3.9.1
        id: "002/fig-3.15b",
        aliases: &[],
        about: "A RACCOOM session that begins on a link that is full",
        published: "About 2.8 s after the new session's beginning it, the older one and TCP have about 0.16 Mbit/s each.",
        scenario: embedded!("002/fig-3.15b.toml", &[], figures::figures),
        calculation: None,
        open: &[],
        known: "Whether TCP has its third hangs on the phase. Where it leaves exactly on time it has it with 30, 32, 34 and 36 ms of delay on \
                the link, and 83 to 94 kbit/s with 31, 33 and 35 ms (five seeds each); with random delays, on average over all \
                phases, it has 90 to 102 kbit/s, wherever they are. The two sessions share evenly in all of them, so the \
                persistent congestion that the figure is about does not appear: losses drain the queue. A third for TCP asks \
                for more than 20 packets of buffer: with 30 all three have it (133, 201 and 165 kbit/s), with 40 and more the \
                older session or TCP has more, as everywhere where no loss shows the newcomer the empty path. Tried on top, all with random \
                delays of TCP: a window of 20 packets (89 kbit/s for TCP), delayed acknowledgements (84), SACK (120), NewReno (120 on average \
                of twenty seeds, 114 to 146 with 28 to 36 ms), packets of 1000 bytes (154, and then all three hold).",
    },
    Entry {
        // seed 002, 3.9.1
        id: "002/fig-3.16a",
        aliases: &["002/fig-3.9"],
        about: "A RACCOOM session over two bottlenecks in a row",
        published: "0.1 Mbit/s beside TCP on one link and datagrams on the other, TCP 0.4; then 0.25 each; then 0.5 alone.",
        scenario: embedded!("002/fig-3.16a.toml", FINE, figures::figures),
        calculation: None,
        open: &[],
        known: "",
    },
    Entry {
        // seed 002, 3.9.1
        id: "002/fig-3.16b",
        aliases: &[],
        about: "How many acknowledgements reach a RACCOOM source with 400 receivers",
        published: "Fewer than data packets are sent, whether routers or designated receivers aggregate; the two curves are one.",
        scenario: embedded!("002/fig-3.16b.toml", &[], figures::figures),
        calculation: None,
        open: &[],
        known: "",
    },
    Entry {
        // seed 002, 3.9.2
        id: "002/fig-3.17",
        aliases: &[],
        about: "How smooth the rates of TCP, RAP, RACCOOM and CMTCP are",
        published: "TCP's rate varies most, then RAP's, then RACCOOM's; CMTCP's varies least.",
        scenario: embedded!("002/fig-3.17.toml", &[], figures::figures),
        calculation: None,
        open: &[],
        known: "RACCOOM without losses is smoother than all others; only with a buffer too small for what it wants to keep does it come near \
                them. CMTCP as its paper has it doubles its rate every two seconds without loss and takes the formula's with one, \
                so ten of them overrun the link together and then fall silent. TFRC, the formula-based protocol that ns-2 \
                had a little later, is as smooth as the figure: with it and the printed buffer of 20 packets RACCOOM's \
                variation is 0.9 of TFRC's (five seeds), with 100 packets 0.27. Tried on top: RAP with fine grain and CMTCP every 5 s, which change \
                nothing, and the law as printed, which makes RACCOOM vary more than CMTCP (1.7 to 4.4 times) and twenty times more than RAP.",
    },
    Entry {
        // seed 002, 3.9.2
        id: "002/fig-3.18",
        aliases: &[],
        about: "RAP, RACCOOM and CMTCP beside as many TCP flows",
        published: "With few flows RAP and CMTCP have 2 to 2.5 times what TCP has; with many all come near 1, RACCOOM nearest.",
        scenario: embedded!("002/fig-3.18.toml", NARROW, figures::figures),
        calculation: None,
        open: &[],
        known: "RACCOOM has 1.35 to 1.44 times what TCP has with 10 to 50 pairs: (3.10) gives it three quarters of the largest window of a \
                TCP without time-outs, and each flow here has two to three packets under way and in the queue, so that most losses cost TCP \
                a time-out. RAP, which has no time-outs either, has twice TCP's rate. CMTCP counts each lost packet where TCP meets one \
                event for several, which makes it slower, and its formula knows time-outs: 0.8 to 1.1. With one pair a packet takes \
                40 ms, and one flow finds every free place. The thesis says TCP and not which: beside NewReno with random delays RACCOOM \
                shares more evenly than CMTCP with 10 and 20 pairs (1.04 and 1.01) and not with 50 (0.975), beside SACK 0.995, 0.993 and 0.973, \
                beside Reno with a window of 20 packets 1.16, 0.96 and 0.91.",
    },
];

/// Short windows have whole bins.
const FINE: &[(&str, &str)] = &[("probe.bin", "20 ms")];
/// A short run with losses.
const NARROW: &[(&str, &str)] = &[("start_jitter", "100 ms")];
