//! Seed 003: RMANP.

use super::{Embedded, Entry, embedded};
use crate::figures;

pub(super) static ENTRIES: &[Entry] = &[
    Entry {
        // seed 003, 4
        id: "003/fig-3",
        aliases: &["003/fig-2"],
        about: "The rate of an RMANP session beside a background that grows and shrinks",
        published: "3.787 KB/s while 4.0 KB/s are left (94.7 %), and 6.467 KB/s while 8.0 KB/s are (80.8 %).",
        scenario: embedded!("003/fig-3.toml", &[], figures::figures),
        calculation: None,
        open: &[],
        known: "",
    },
    Entry {
        // seed 003, 4
        id: "003/table-1",
        aliases: &["003/fig-4"],
        about: "How long packets of an RMANP session take",
        published: "Means of 3.40, 843 and 845 ms at R4, R8 and R12, where 3.36, 777 and 778 are the least, and up to 3.42, 3339 and 3352 ms.",
        scenario: embedded!("003/table-1.toml", &[], figures::figures),
        calculation: None,
        open: &[],
        known: "",
    },
    Entry {
        // seed 003, 4
        id: "003/table-2",
        aliases: &[],
        about: "What the cut of an RMANP session costs and gains",
        published: "From Da 0.6 to 0.9 the delay at R12 grows from 823 to 941 ms, the throughput from 4978 to 5872 B/s, what is stored from 8.76 to 12.17 packets.",
        scenario: embedded!("003/table-2.toml", &[], figures::figures),
        calculation: None,
        open: &[],
        known: "With Da 0.9 the delay and what is stored are below what is published (0.84 s and 8.5 packets), as both are, less, with the other values: \
                congestion is over sooner here. The queue before the WAN decides the delay: with 5 packets in place of 3 the means are 0.82 s (Da 0.6) and 0.88 s \
                (Da 0.9) and all delays hold, with 10 0.85 and 1.03 s, with 20 1.01 and 1.35 s, where 12.1 packets are stored as published. A background of packets of \
                1057 bytes (0.842 s, 8.55 packets), of packets at random distances (0.829 s, 6.9), the first WAN link 100 ms shorter and the last as much longer (0.829 s, \
                8.3) and kilobytes of 1024 bytes (0.841 s, 7.9) change little.",
    },
    Entry {
        // seed 003, 4
        id: "003/sec-4-storage",
        aliases: &[],
        about: "What active routers store for an RMANP session",
        published: "4.97 to 9.79 packets on average, 10 to 28 at most, over the seven routers.",
        scenario: embedded!("003/sec-4-storage.toml", &[], figures::figures),
        calculation: None,
        open: &[],
        known: "A router next to its receivers has its packets acknowledged at once and stores nothing: 0.006 packets at N4, whose receivers are a LAN away, \
                and at most 3. The published range fits the routers before receivers behind the WAN (N0, N1, N3: 5.7 to 7.7), but for the least of the peaks, which is 16 \
                at N3 and not 10. Background packets of 500 bytes (8.5 at the fullest) and queues of 20 packets (12.1) store more everywhere else and nothing at N4; nor do \
                other delays of the WAN links.",
    },
    Entry {
        // seed 003, 4
        id: "003/sec-4-tcp",
        aliases: &[],
        about: "RMANP beside TCP",
        published: "A session has 0.41 to 1.55 times what a TCP flow has, with different lines, numbers of flows and Da.",
        scenario: embedded!("003/sec-4-tcp.toml", NARROW, figures::figures),
        calculation: None,
        open: &[],
        known: "The session's rate grows in proportion to itself, TCP's by a packet per round trip: with one TCP flow on a line the session has two and a half to four times as much with Da 0.9, \
                with five half of it. Tried: TCP between N0 and N3 alone, with a fourth of the round trip (0.08 to 0.44), ample windows with every packet acknowledged \
                (0.39 to 5.8), queues of 50 packets (0.20 to 3.5).",
    },
];

/// A short run with something to see.
const NARROW: &[(&str, &str)] = &[];
