//! A session with udpcast's receivers and ours that competes with TCP.

use crate::kit::{Running, must, noise, print_line};
use crate::udpcast::{finish, is_installed};
use faircast_testkit::{Congestion, EmulatedLab, TcpFlow, require_root};
use std::time::Duration;

/// A source and a TCP sender behind one bottleneck. Each link behind the bottleneck loses random packets.
const SHARED: &str = "
    host source
    host sender
    host stock1 groups=all
    host stock2 groups=all
    host ours groups=all
    host sink
    router left
    router right
    link source left
    link sender left
    link left right rate=10M delay=10ms queue=droptail,50
    link right stock1 loss=bernoulli,0.01
    link right stock2 loss=bernoulli,0.01
    link right ours loss=bernoulli,0.01
    link right sink loss=bernoulli,0.01";

/// Duration of the TCP flow.
const LASTS: Duration = Duration::from_secs(16);

/// Needs a kernel: udpcast and Linux TCP.
#[test]
fn udpcast_session_shares_a_lossy_bottleneck_with_tcp() {
    let Some(root) = require_root().filter(|_| is_installed()) else { return };
    let lab = must(EmulatedLab::start(&root, SHARED));
    let directory = must(tempfile::Builder::new().prefix("faircast-net-").tempdir());
    let path = |name: &str| directory.path().join(name).to_str().expect("the names are plain").to_owned();
    let content = noise("image", 8_000_000);
    must(std::fs::write(path("image"), &content));
    let rendezvous = ["--ttl", "8", "--mcast-rdv-address", "239.255.70.8"];
    let stock = ["stock1", "stock2"].map(|host| {
        let out = path(host);
        let args = [&rendezvous[..], &["--nokbd", "--interface", "eth0", "--file", &out]].concat();
        must(lab.host(host).start("udp-receiver", &args))
    });
    let common = ["--wire", "udpcast", "--json", "--rendezvous", "239.255.70.8"];
    let (file, out) = (path("image"), path("ours"));
    let ours = Running::start(lab.host("ours"), &[&["recv", "--out", &out], &common[..]].concat());
    let args = [&["send", &file, "--no-key", "--ttl", "8", "--expect", "3"], &common[..]].concat();
    let mut source = Running::start(lab.host("source"), &args);
    source.reaches(0.0001, 20);
    let flow = TcpFlow::new(Congestion::Reno, LASTS);
    let tcp = must(must(flow.start(lab.host("sender"), lab.host("sink"))).finish()).goodput_bps;
    let source = source.succeeds(60);
    stock.into_iter().for_each(finish);
    ours.succeeds(20);
    must(lab.stop());

    let received = must(must(std::fs::read_dir(path("ours"))).next().expect("one file")).path();
    for file in [path("stock1").into(), path("stock2").into(), received] {
        let hash = |bytes: &[u8]| blake3::hash(bytes);
        assert_eq!(hash(&must(std::fs::read(&file))), hash(&content), "{}", file.display());
    }
    let multicast = source.number("goodput_bps");
    let ratio = multicast / tcp;
    print_line(&format!(
        "udpcast beside TCP: {:.2} Mbit/s in {:.1} s beside TCP's {:.2} ({ratio:.2}); {} repairs, {} polls, {} answers, {} cuts",
        multicast / 1e6,
        source.number("seconds"),
        tcp / 1e6,
        source.number("repairs"),
        source.number("polls"),
        source.number("answers"),
        source.number("cuts"),
    ));
    assert_eq!(source.number("completed"), 3.0);
    assert!((0.5..=2.0).contains(&ratio), "{ratio}: {source:?}");
}
