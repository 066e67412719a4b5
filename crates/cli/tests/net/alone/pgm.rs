//! A session over PGM to ZeroMQ and OpenPGM that competes with TCP.
//!
//! `FAIRCAST_INTEROP_MB=50` sets the content to 50 megabytes. By default the tests send less.

use crate::kit::{Ended, must, print_line};
use crate::pgm::{Stage, finish};
use faircast::pgm::codec::put_message;
use faircast_testkit::{Capture, Congestion, EmulatedLab, TcpFlow};
use std::time::Duration;

/// Two sources behind one bottleneck. The bottleneck also loses random packets in both directions.
const SHARED: &str = "
    host source
    host sender
    host zmq1 groups=all
    host zmq2 groups=all
    host plain1 groups=all
    host plain2 groups=all
    host sink
    router left
    router right
    link source left
    link sender left
    link left right rate=5M delay=10ms queue=droptail,50 loss=bernoulli,0.01 jitter=1ms
    link right zmq1
    link right zmq2 delay=10ms
    link right plain1
    link right plain2 delay=10ms
    link right sink";

/// Returns the mean rate of a source, headers included. `from` and `to` are times of the session, in seconds.
fn mean_rate(source: &Ended, from: f64, to: f64) -> f64 {
    let rates: Vec<f64> = source
        .all("progress")
        .filter(|line| line["seconds"].as_f64().is_some_and(|at| at > from && at <= to))
        .filter_map(|line| line["rate_bps"].as_f64())
        .collect();
    rates.iter().sum::<f64>() / rates.len().max(1) as f64
}

fn megabytes() -> f64 {
    let asked = std::env::var("FAIRCAST_INTEROP_MB").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(6.0)
}

/// Needs a kernel: ZeroMQ, OpenPGM and Linux TCP.
#[test]
fn zeromq_and_openpgm_get_every_message_with_competing_tcp() {
    let Some(stage) = Stage::set() else { return };
    let lab = must(EmulatedLab::start(&stage.root, SHARED));
    let (port, size) = (5_771, (megabytes() * 1e6) as usize);
    let (content, lines) = stage.lines("file", size);
    let mut stream = Vec::new();
    content
        .split_inclusive(|byte| *byte == b'\n')
        .for_each(|line| put_message(&mut stream, &line[..line.len() - 1]));
    let capture = must(Capture::start(lab.host("source"), "udp", &stage.path("session.pcap")));
    let subscribers = ["zmq1", "zmq2"].map(|host| stage.subscriber(&lab, host, port, lines));
    let receivers = ["plain1", "plain2"].map(|host| stage.plain(&lab, host, port, stream.len(), 2));
    let lasts = (size as u64 / 250_000).clamp(20, 150);
    let source = stage.send(&lab, "file", port, &["--cc", "le-sbcc", "--framing", "zmq"]);
    let flow = TcpFlow::new(Congestion::Reno, Duration::from_secs(lasts));
    let flow = must(flow.start(lab.host("sender"), lab.host("sink")));
    let tcp = must(flow.finish());
    let patience = (megabytes() * 20.0) as u64 + 30;
    let source = source.succeeds(patience);
    subscribers.into_iter().chain(receivers).for_each(|task| finish(task, 40));
    let pcap = must(capture.stop());
    must(lab.stop());

    ["zmq1", "zmq2"].iter().for_each(|host| stage.has(host, &content));
    ["plain1", "plain2"].iter().for_each(|host| stage.has(host, &stream));
    stage.is_clean(&pcap, port, &["0", "4", "5", "8", "10"]);
    let number = |field: &str| source.number(field);
    // The first seconds are excluded: the rate grows additively from zero, without slow start.
    let multicast = mean_rate(&source, 10.0, lasts as f64);
    let seconds = &tcp.seconds_bps[9..];
    let tcp = seconds.iter().sum::<f64>() / seconds.len() as f64;
    let ratio = tcp / multicast;
    print_line(&format!(
        "PGM beside TCP: {:.1} MB in {:.0} s, {:.2} Mbit/s beside TCP's {:.2} ({ratio:.2}); {} NAKs of {} hosts, \
         {} repairs; {} indications, {} events, {} followed, {} cuts, {:.2} to {:.2} Mbit/s",
        megabytes(),
        number("seconds"),
        multicast / 1e6,
        tcp / 1e6,
        number("naks"),
        number("receivers"),
        number("repairs"),
        number("indications"),
        number("events"),
        number("followed"),
        number("cuts"),
        number("min_bps") / 1e6,
        number("max_bps") / 1e6,
    ));
    assert_eq!((number("bytes"), number("messages")), (content.len() as f64, lines as f64));
    assert!(number("receivers") >= 2.0 && number("repairs") > 10.0, "{source:?}");
    let cascade = ["indications", "events", "followed", "cuts"].map(number);
    assert!(cascade.is_sorted_by(|more, fewer| more >= fewer) && cascade[3] > 2.0, "{cascade:?}");
    assert!(number("min_bps") < 0.8 * number("max_bps"), "the rate did not move: {source:?}");
    assert!((0.25..=4.0).contains(&ratio), "TCP has {ratio} times as much: {source:?}");
}
