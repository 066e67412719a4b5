//! A session with receivers of libnorm that competes with TCP.

use crate::kit::{must, print_line};
use crate::norm::{Stage, finish, summary};
use faircast_testkit::{Capture, Congestion, EmulatedLab, TcpFlow};
use std::time::Duration;

/// A source and a TCP sender behind one bottleneck. The link of one receiver loses random packets.
const SHARED: &str = "
    host source groups=all
    host sender
    host near groups=all
    host far groups=all
    host lossy groups=all
    host sink
    router left
    router right
    link source left
    link sender left
    link left right rate=10M delay=10ms queue=droptail,50
    link right near
    link right far
    link right lossy loss=bernoulli,0.01
    link right sink loss=bernoulli,0.01";

/// Size of the file, in bytes, and duration of the TCP flow. The flow ends before the session.
const FILE: usize = 12_000_000;
const LASTS: Duration = Duration::from_secs(20);

/// Needs a kernel: libnorm and Linux TCP.
#[test]
fn norm_session_shares_a_bottleneck_with_tcp() {
    let Some(stage) = Stage::set() else { return };
    let lab = must(EmulatedLab::start(&stage.root, SHARED));
    let image = stage.file("image", FILE);
    let capture = must(Capture::start(lab.host("source"), "udp", &stage.path("session.pcap")));
    let hosts = [("near", 2), ("far", 3), ("lossy", 4)];
    let receivers = hosts.map(|(host, node)| stage.receiver(lab.host(host), host, node, 1));
    let mut source = stage.send(lab.host("source"), &[&image], &["--expect", "3"]);
    source.reaches(0.0001, 20);
    let flow = TcpFlow::new(Congestion::Reno, LASTS);
    let tcp = must(must(flow.start(lab.host("sender"), lab.host("sink"))).finish()).goodput_bps;
    let source = source.succeeds(90);
    receivers.into_iter().for_each(finish);
    let pcap = must(capture.stop());
    must(lab.stop());

    hosts.iter().for_each(|(host, _)| stage.has(host, "image", "image", FILE));
    stage.is_clean(&pcap);
    let ratio = source.number("goodput_bps") / tcp;
    print_line(&format!("NORM beside TCP: {} beside TCP's {:.2} ({ratio:.2})", summary(&source), tcp / 1e6));
    assert_eq!(source.number("completed"), 3.0);
    assert!((0.5..=2.0).contains(&ratio), "{ratio}: {source:?}");
}
