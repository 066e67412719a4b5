//! Several endpoints in one loop, on the loopback interface.

use super::*;
use crate::session as drive;
use faircast_core::time::Rate;
use faircast_transport::config::{Content, Destination, ReceiveConfig, SendConfig};
use std::fs;
use std::path::{Path, PathBuf};

const LONG: Duration = Duration::from_secs(60);

fn group(last: u8) -> SocketAddr {
    SocketAddr::from(([239, 255, 79, last], 47_300 + u16::from(last)))
}

fn lo() -> Option<String> {
    Some("lo".to_owned())
}

fn native(content: Content, out: &Path) -> (SendConfig, ReceiveConfig) {
    let mut send = SendConfig::new(content);
    send.group = group(1);
    send.interface = lo();
    send.ttl = 0;
    send.max = Some(Rate::from_mbps(200.0));
    send.expect = Some(1);
    send.join_timeout = LONG;
    send.idle_timeout = LONG;
    send.host = "source".to_owned();
    send.temporary = std::env::temp_dir();
    let mut receive = ReceiveConfig::new(Destination::Directory(out.to_owned()));
    receive.group = group(1);
    receive.interface = lo();
    receive.join_timeout = Some(LONG);
    receive.idle_timeout = LONG;
    receive.host = "receiver".to_owned();
    receive.buffer = 4 << 20;
    receive.temporary = std::env::temp_dir();
    (send, receive)
}

#[test]
fn several_sources_and_receivers_share_one_thread() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let content: Vec<u8> = (0..600_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let file = dir.path().join("file");
    fs::write(&file, &content).expect("room for it");
    let outs: Vec<PathBuf> = ["one", "two", "three"].map(|name| dir.path().join(name)).into();
    outs.iter().for_each(|out| fs::create_dir(out).expect("a directory is made"));

    let (clock, stop) = (Clock::start(), Stop::new().expect("descriptors are left"));
    let mut reported = Vec::new();
    let mut early = |_: Event| ();
    let (mut receivers, mut sources) = (Vec::new(), Vec::new());
    for (out, number) in outs.iter().zip([1, 2, 3]) {
        let (mut send, mut receive) = native(Content::Paths(vec![file.clone()]), out);
        (send.group, receive.group) = (group(number), group(number));
        // The third session has a socket for each layer.
        if number == 3 {
            send.scheme = "rlc,layers=3,base=2000000".parse().expect("RLC and its options");
        }
        receivers.push(drive::open_receiver(receive, &clock, &mut early).expect("it joins"));
        sources.push(drive::open_source(send, &clock, &mut early).expect("a socket opens"));
    }
    let mut attached = Vec::new();
    attached.extend(receivers.iter_mut().map(|(session, groups)| Attached::new(session.endpoint(), groups)));
    attached.extend(sources.iter_mut().map(|(session, uplink)| Attached::new(session.endpoint(), uplink)));
    run(&mut attached, &clock, &mut |place, event| reported.push((place, event)), &stop)
        .expect("the system waits");
    attached.into_iter().for_each(|one| one.outcome().expect("its sockets work"));

    for (source, _) in sources {
        assert!(source.report().expect("it ends well").ok);
    }
    for (receiver, _) in receivers {
        assert!(receiver.report().expect("it ends well").ok);
    }
    for out in &outs {
        let name = fs::read_dir(out).expect("readable").next().expect("a file is there").expect("readable");
        assert!(fs::read(name.path()).expect("readable") == content, "{}", out.display());
    }
    let joined = reported.iter().any(|(place, event)| *place == 3 && matches!(event, Event::Joined { .. }));
    assert!(joined, "events carry the place of their endpoint: {reported:?}");
}

#[test]
fn stop_request_before_the_start_ends_the_source() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("file");
    fs::write(&file, [7; 100]).expect("room for it");
    let (mut config, _) = native(Content::Paths(vec![file]), dir.path());
    config.group = group(4);
    let (clock, stop) = (Clock::start(), Stop::new().expect("descriptors are left"));
    stop.stop();
    let (mut session, mut uplink) = drive::open_source(config, &clock, &mut |_| ()).expect("a socket opens");
    run_one(session.endpoint(), &mut uplink, &clock, &mut |_| (), &stop).expect("its sockets work");
    assert!(session.report().is_ok_and(|report| report.stopped && !report.ok));
}

#[test]
fn loop_ends_when_its_last_endpoint_ends() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("file");
    fs::write(&file, [7; 100]).expect("room for it");
    let (mut config, mut silent) = native(Content::Paths(vec![file]), dir.path());
    (config.group, silent.group) = (group(5), group(5));
    silent.join_timeout = Some(Duration::ZERO);
    let clock = Clock::start();
    let (mut session, mut groups) = drive::open_receiver(silent, &clock, &mut |_| ()).expect("it joins");
    let (mut source, mut uplink) = drive::open_source(config, &clock, &mut |_| ()).expect("a socket opens");
    let (mut out, mut waiter) = (Vec::new(), Waiter::new());
    let mut go = |attached: &mut [Attached<'_>], is_stopped: bool| {
        let stop = Stop::new().expect("descriptors are left");
        if is_stopped {
            stop.stop();
        }
        round(attached, &clock, (&mut out, &mut waiter), &mut |_, _| (), &stop)
    };
    let mut both =
        [Attached::new(session.endpoint(), &mut groups), Attached::new(source.endpoint(), &mut uplink)];
    // The receiver gives up at once. The source sends an announcement and then waits for receivers to join.
    while matches!(both[0].state, State::Runs) {
        go(&mut both, false);
    }
    while go(&mut both, false) == Round::Again {}
    assert!(matches!(go(&mut both, false), Round::Wait(_)), "the source still runs");
    let last = loop {
        let round = go(&mut both, true);
        if matches!(both[1].state, State::Ended(_)) {
            break round;
        }
    };
    assert_eq!(last, Round::Over);
}

/// Counts the watched descriptors of a round.
struct Watched(usize);

impl Watcher for Watched {
    fn clear(&mut self) {
        self.0 = 0;
    }

    fn watch(&mut self, _: BorrowedFd<'_>, _: Want) {
        self.0 += 1;
    }
}

#[test]
fn loop_watches_a_stop_request_only_until_it_is_set() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (_, mut config) = native(Content::Paths(Vec::new()), dir.path());
    config.group = group(6);
    let (clock, stop) = (Clock::start(), Stop::new().expect("descriptors are left"));
    let (mut session, mut groups) = drive::open_receiver(config, &clock, &mut |_| ()).expect("it joins");
    let mut attached = [Attached::new(session.endpoint(), &mut groups)];
    let (mut out, mut watched) = (Vec::new(), Watched(0));
    let mut go =
        |watched: &mut Watched| round(&mut attached, &clock, (&mut out, watched), &mut |_, _| (), &stop);
    while go(&mut watched) == Round::Again {}
    assert_eq!(watched.0, 2, "the socket and the request");
    stop.stop();
    go(&mut watched);
    assert_eq!(watched.0, 0, "the receiver has ended, and the request wakes nobody again and again");
}
