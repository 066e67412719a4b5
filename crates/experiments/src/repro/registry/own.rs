//! Comparisons that are not in the documents.

use super::{Embedded, Entry, embedded};
use crate::repro::views;

pub(super) static ENTRIES: &[Entry] = &[Entry {
    // seed 000, 2.2.1
    id: "faircast/drop-to-zero",
    aliases: &[],
    about: "What a session loses by having many receivers, scheme by scheme",
    published: "Nothing: this is ours. Seed 000, 2.2.1, says what the drop-to-zero problem is: answering to \
                more reports than those of the worst receiver.",
    scenario: embedded!(
        "compare/drop-to-zero.toml",
        &[("sweep.receivers.to", "[1, 10, 30]"), ("sweep.receivers.names", "[1, 1000, 10000]")],
        views::drop_to_zero
    ),
    calculation: None,
    open: &[],
    known: "MCA's explicit reports (the default) are rates measured over few packets: among hundreds of \
            receivers some measurement is always very low, and the source goes down to it. With binary reports \
            (mode=bin) the session to 1000 receivers gets 0.4 times what one to a single receiver gets. TFMCC \
            follows the lowest of all calculated rates, and these differ from receiver to receiver by chance.",
}];
