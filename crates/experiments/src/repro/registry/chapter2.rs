//! Seed 000, chapter 2: LE-SBCC.

use super::{Embedded, Entry, embedded};
use crate::report::figures;
use crate::repro::{computed, views};

pub(super) static ENTRIES: &[Entry] = &[
    Entry {
        // seed 000, 2.2.1.1
        id: "000/fig-2.6",
        aliases: &["000/fig-2.5"],
        about: "LE-SBCC to four receivers behind bottlenecks shared with unicast sessions",
        published: "Rates of the multicast session and some of the unicast ones over 450 s: close to each \
                    other, on average close to the fair share of 1 Mbit/s. The session sent 167762 packets \
                    and got 949 loss indications, which the filters made 32 loss events and 12 rate \
                    reductions; all sessions have about 12.",
        scenario: embedded!("000/fig-2.6.toml", &[], figures::figures),
        calculation: None,
        open: &[],
        known: "The delays are not in the document. Its counts do not fit each other: 167762 packets of 560 \
                bytes in 450 s are 1.67 Mbit/s, not 1. Losses come in shorter bursts here, 7 packets for \
                each event; with which delays and first rates the published ones came is not known.",
    },
    Entry {
        // seed 000, 2.2.1.2
        id: "000/fig-2.7",
        aliases: &[],
        about: "LE-SBCC without parts of its filters",
        published: "Rates with (a) LI2LE and MaxLPRF, (b) MaxLPRF, (c) LI2LE removed. The multicast session \
                    stays below all unicast sessions in each case.",
        scenario: embedded!("000/fig-2.7.toml", &[], figures::figures),
        calculation: None,
        open: &[],
        known: "",
    },
    Entry {
        // seed 000, 2.2.1.3
        id: "000/fig-2.10",
        aliases: &["000/fig-2.8", "000/fig-2.9"],
        about: "Loss indications per loss event, computed",
        published: "The ratio of the probabilities of loss indications and loss events from a Markov chain \
                    of the window. Losses one by one: below 1.25, largest at losses of 30 to 40 %, about 1.2 \
                    at 10 %. Losses in bursts: about 9 to 90 where few packets are lost.",
        scenario: None,
        calculation: Some(computed::fig_2_10),
        open: &[],
        known: "",
    },
    Entry {
        // seed 000, 2.2.1.4
        id: "000/fig-2.12",
        aliases: &["000/fig-2.11"],
        about: "LE-SBCC with up to 10,000 receivers, one of which loses most",
        published: "Loss events passed by the filters of 6000 packets, with 99 % intervals: 500 to 520 when \
                    the worst receiver loses 10 %, about 1000 when it loses 20 %, the same for all numbers \
                    of receivers.",
        scenario: embedded!(
            "000/fig-2.12.toml",
            &[("sweep.receivers.to", "[1, 2, 31]"), ("flow.multicast.packets", "500")],
            views::fig_2_12
        ),
        calculation: None,
        open: &[],
        known: "With one receiver the counts are those of the Markov chain (487 and 946); with 100 others they are 10 and \
                16 % lower. A loss is noticed when the next packet arrives; at two to four packets in a round trip that takes \
                as long as the round trip, so the source takes 0.1 s for 0.14 to 0.66 s. With echo=revealing, which times the \
                packet that revealed the loss, the curves are flat, as published, but lower: about 415 and 710 (two seeds).",
    },
    Entry {
        // seed 000, 2.2.2
        id: "000/fig-2.13",
        aliases: &[],
        about: "LE-SBCC beside one TCP flow, and beside TCP only",
        published: "Rates over time: the session and TCP oscillate about the same mean, that of the TCP \
                    equation at the rate of loss events, with the same variance. (c), on real machines, is \
                    not repeated here.",
        scenario: embedded!("000/fig-2.13.toml", &[], views::rates_by_setting),
        calculation: None,
        open: &[],
        known: "After a reduction the rate does not grow for one and a half round trips, and then by a \
                packet per mean round trip and twice its deviation: less than TCP. The source is silent for \
                half of its mean round trip and twice the deviation after a reduction. A packet lost just \
                before is missed only when the silence is over, so its round-trip sample contains the \
                silence; the first samples make the mean twice too long, and then samples below half of it, \
                which are the right ones, are thrown away.",
    },
    Entry {
        // seed 000, 2.2.2.1
        id: "000/fig-2.15",
        aliases: &["000/fig-2.14"],
        about: "LE-SBCC beside TCP with drop-tail and RED queues",
        published: "Rates (2.14) and round trips (2.15) over time. With RED both are marginally lower, and \
                    the round trip converges much faster. No drop to zero.",
        scenario: embedded!("000/fig-2.15.toml", &[], views::rates_and_round_trips),
        calculation: None,
        open: &[],
        known: "RED's parameters are not in the document. The source is silent for half of its mean round \
                trip and twice the deviation after a reduction. A packet lost just before is missed only \
                when the silence is over, so its round-trip sample contains the silence; the first samples \
                make the mean twice too long, and then samples below half of it, which are the right ones, \
                are thrown away. Without the silence (silence=off) the session gets 0.97 times what TCP gets \
                with RED and 0.59 times with drop-tail, and sees a round trip of 0.32 s with RED and 0.40 s \
                with drop-tail.",
    },
    Entry {
        // seed 000, 2.2.2.2
        id: "000/fig-2.16",
        aliases: &[],
        about: "LE-SBCC with bottlenecks of different buffers",
        published: "Rate and round trip over time: the session works well; it answers to receiver 1, which \
                    loses most, while its round trip is a mean over all receivers and too long.",
        scenario: embedded!("000/fig-2.16.toml", &[], views::rates_and_round_trips),
        calculation: None,
        open: &[],
        known: "The source is silent for half of its mean round trip and twice the deviation after a \
                reduction. A packet lost just before is missed only when the silence is over, so its \
                round-trip sample contains the silence; the first samples make the mean twice too long, and \
                then samples below half of it, which are the right ones, are thrown away. As in figure 2.13, \
                the session is slower than TCP even so.",
    },
    Entry {
        // seed 000, 2.2.3
        id: "000/fig-2.18",
        aliases: &["000/fig-2.17"],
        about: "LE-SBCC below routers that aggregate loss reports",
        published: "Loss events passed of 6000 packets over the number of receivers, for three shares (x, y) \
                    of receivers at the two routers. Without aggregation just under 240. Partial \
                    aggregation: about the same in (a), close to complete aggregation in (b) and (c). \
                    Complete aggregation: fewer events, so a higher rate, and never a drop to zero.",
        scenario: embedded!("000/fig-2.18.toml", &[("flow.multicast.packets", "500")], views::fig_2_18),
        calculation: None,
        open: &[],
        known: "The shares (x, y), the numbers of receivers and the delays are not in the document. The \
                order of the curves is the published one, and partial aggregation is close to none in (a) \
                and close to complete in (b) and (c), but not as close as the ranges, which are ours, ask \
                for. All counts are lower than published, as in figure 2.12.",
    },
    Entry {
        // seed 000, 2.3.2
        id: "000/fig-2.19",
        aliases: &[],
        about: "LE-SBCC with an equation in place of AIMD",
        published: "(a) Rates of the session and two TCP flows over time: much smoother than with AIMD. (b) \
                    Over-time averages: still fair to TCP.",
        scenario: embedded!("000/fig-2.19.toml", &[], views::rates_by_setting),
        calculation: None,
        open: &[],
        known: "Why the rate is not smoother is not known. A second is two to three round trips here, so the \
                variation in stretches of a second holds slow changes, too.",
    },
];
