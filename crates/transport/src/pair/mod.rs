//! A network in memory for tests of source and receivers together: one or more sources, and N receivers.
//!
//! Time is virtual and advances to the next event. All faults of paths are derived from a random seed. There are no sockets,
//! sleeps or clocks, so a test of minutes takes milliseconds. The same random seed gives the same datagrams at the same
//! nanoseconds.
//!
//! ```text
//! let mut net = Net::new(1).with_trunk(Link::millis(5).mbps(100.0).fifo(100_000));
//! let all = net.receivers(4, Link::millis(1).losing(0.05), Link::millis(1));
//! let source = net.source(Offer::bytes(1_000_000).expect(4));
//! net.run_to_end(Span::from_secs(60));
//! net.assert_all_verified(source, all);
//! ```

mod accounts;
mod agents;
mod agreement;
mod blackhole;
mod changed_files;
mod clocks;
mod day;
mod delta;
mod determinism;
mod dry_run;
mod failure;
mod feedback;
mod flooding;
mod forged_numbers;
mod forgery;
mod hop;
mod large_group;
mod limited;
mod regressions;
mod sent_again;
mod slow_disk;
mod tree_net;

mod forged_reports;
mod forged_tree_reports;
mod hosts;
mod joining;
mod layers;
mod lifecycle;
mod long_run;
mod lost_feedback;
mod net;
mod node;
mod noise;
mod one_way;
mod orphans;
mod outage;
mod phantoms;
mod quota;
mod receipts;
mod relay;
mod repair;
mod required;
mod routers;
mod signed;
mod sim_equivalence;
mod slow;
mod socket;
mod sparse;
mod startup;
mod streams;
mod takeover;
mod targeted;
mod trace;
#[cfg(feature = "tracing")]
mod traced;
mod tree;
mod window;
mod withholding;
mod wrong_blocks;

use crate::event::Event;
use faircast_core::time::{Span, Time};
use faircast_simnet::Link;
use net::{Head, Net, Who};
use node::Offer;
use std::ops::Range;

impl Net {
    /// Checks that these receivers have all content, and that the source reports success.
    fn assert_all_verified(&self, source: usize, receivers: Range<usize>) {
        let report = self.sources[source].report();
        assert!(report.ok, "{report:?}");
        for receiver in receivers {
            let node = &self.receivers[receiver];
            assert!(node.report().ok);
            assert!(node.has(&self.sources[source]), "{} has something else", node.host);
        }
    }

    /// Returns the time of the first event of the source for which `like` holds.
    fn reported(&self, source: usize, like: impl Fn(&Event) -> bool) -> Option<Time> {
        self.sources[source].events.iter().find(|(_, event)| like(event)).map(|(at, _)| *at)
    }
}

const fn secs(secs: u64) -> Span {
    Span::from_secs(secs)
}
