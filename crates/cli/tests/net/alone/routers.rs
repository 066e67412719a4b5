//! Active routers: the number of answers that the source receives.

use crate::kit::{Running, must, print_line};
use crate::routers::{KINDS, Stage, number};
use faircast_testkit::{Bottleneck, Company, Node, require_root};
use std::time::Duration;

/// Returns the number of datagrams that a host has received so far.
fn received(node: &Node) -> u64 {
    let snmp = must(node.run("cat", &["/proc/net/snmp"], Duration::from_secs(20))).stdout;
    let line = snmp.lines().filter(|line| line.starts_with("Udp:")).nth(1).expect("the kernel counts");
    line.split_whitespace().nth(1).and_then(|count| count.parse().ok()).expect("a number")
}

/// Needs a kernel: an active router reads packets through nftables and smcroute.
#[test]
fn two_routers_repair_and_aggregate_feedback_of_six_receivers() {
    let Some(root) = require_root() else { return };
    for kind in KINDS {
        let stage = Stage::new(&root, Company::Alone);
        // The rate of this link is a tenth of the maximum rate of the source.
        must(stage.chain.limit(4, Bottleneck::mbps(10.0)));
        let file = stage.file("image", 6_000_000);
        let hops = [stage.hop(0, kind, &[]), stage.hop(1, kind, &[])];
        let mut receivers = stage.receivers(&[]);
        let before = received(stage.chain.source());
        let source = stage.send(&file, kind, &["--no-key", "--max", "100M"]);
        receivers[4].reaches(0.6, 60);
        let seen = [stage.counts(0), stage.counts(1)];
        let printed = stage.status(0, &[]);
        let ended = source.succeeds(90);
        receivers.into_iter().for_each(|receiver| drop(receiver.succeeds(30)));
        let answers = (received(stage.chain.source()) - before) as f64 / ended.number("packets");
        print_line(&format!(
            "{kind}: {answers:.2} datagrams heard for each packet, {:.1} s; hops {} {}\n{printed}",
            ended.number("seconds"),
            seen[0],
            seen[1]
        ));
        stage.everybody_has(&file);
        hops.into_iter().for_each(Running::crashes);
        assert_eq!((ended.number("receivers"), ended.number("verified")), (6.0, 6.0), "{ended:?}");
        assert!(answers < 1.3, "{kind}: {answers}");
        for hop in &seen {
            let (received, sent) = (number(hop, "reports_received"), number(hop, "reports_sent"));
            // About one for each packet, as at the source. On a busy host some reports arrive after the router has sent theirs.
            let most = number(hop, "packets") as f64 * 1.3;
            assert!(received > sent && sent as f64 <= most, "{kind}: {hop}");
        }
        assert!(printed.contains("router: ") && printed.contains("3 receivers done"), "{printed}");
        // RMANP's routers retransmit packets that the slow link has lost, from their caches.
        let hits: u64 = seen.iter().map(|hop| number(hop, "repairs")).sum();
        assert_eq!(hits > 0, kind == "rmanp", "{kind}: {seen:?}");
        // With RMANP, the session takes two to three times as long as the slow link needs for the content, and longer on a busy
        // machine. This limit only shows that the session completes.
        let took = ended.number("seconds");
        assert!(took < 10.0 * 6_000_000.0 * 8.0 / 10e6, "{kind}: {took} s");
    }
}
