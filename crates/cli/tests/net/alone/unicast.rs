//! A source without multicast, and the duration of the transfer to each host.

use crate::kit::{Stage, must, print_line};
use crate::unicast::{list, source, v4, waiting, without_multicast};
use faircast_testkit::{Bottleneck, Lab, Offloads, require_root};

/// Needs a kernel: a token bucket at one host.
#[test]
fn slow_unicast_host_does_not_slow_other_hosts() {
    let Some(root) = require_root() else { return };
    let stage = Stage::new(&root, Lab::plan().receivers(2).offloads(Offloads::Off));
    without_multicast(&stage.lab);
    must(stage.lab.limit(0, Bottleneck::mbps(8.0)));
    must(stage.lab.limit(1, Bottleneck::mbps(80.0)));
    let file = stage.file("image", 8_000_000);
    let hosts = list(&stage, &[v4(&stage, 0), v4(&stage, 1)]);
    let [slow, fast] = [waiting(&stage, 0, &[]), waiting(&stage, 1, &[])];
    // The memory for the content is much smaller than the content. The source therefore follows the fast host, and the slow host
    // requests the data that it misses.
    let sends = source(&stage, &[&file, "--invite", &hosts, "--memory", "2M"]);
    let (fast, slow) = (fast.succeeds(30), slow.succeeds(60));
    sends.succeeds(20);
    let (fast, slow) = (fast.number("seconds"), slow.number("seconds"));
    print_line(&format!(
        "8 MB by unicast at the same time: {fast:.1} s at 80 Mbit/s, {slow:.1} s at 8 Mbit/s"
    ));
    assert!(slow > 8.0 && fast < slow / 3.0, "{fast} and {slow}");
}
