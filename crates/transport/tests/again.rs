//! Consecutive sessions in one process do not leak memory.

#![allow(clippy::disallowed_methods, reason = "a test reads files")]

use faircast_core::time::{Span, Time};
use faircast_transport::object::Disk;
use faircast_transport::session::{Host, Receiver, Source};
use faircast_transport::step_driver::{give, take_all};
use faircast_transport::worker::Worker;
use faircast_transport::{Content, Destination, ReceiveConfig, SendConfig};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// Growth of memory, in kB, that is attributed to the allocator and not to a leak.
const SLACK: u64 = 2_048;

/// One out of `LOST` datagrams is lost.
const LOST: usize = 7;

/// Returns the resident memory of this process in kB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has this line");
    line.trim().trim_end_matches(" kB").parse().expect("a number of kB")
}

fn host(last: u8, number: u64) -> Host {
    Host {
        random: [number << 8 | u64::from(last), number, 2, 3],
        local: SocketAddr::from(([10, 0, 0, last], 5777)),
        datagram: 400,
        symbols: 8,
        unix_nanos: 1_790_000_000_000_000_000,
        now: Time::ZERO,
        disk: Disk::default(),
        worker: Worker::at_once(),
    }
}

/// Runs one session that transfers a file of 20 kB. All of the file arrives, although datagrams are lost.
fn session(number: u64, file: &Path, out: &Path) {
    let mut send = SendConfig::new(Content::Paths(vec![file.to_owned()]));
    send.expect = Some(1);
    send.join_timeout = Duration::from_secs(60);
    let group = send.group;
    let receive = ReceiveConfig::new(Destination::Directory(out.to_owned()));
    let (here, there) = (host(1, number), host(2, number));
    let mut source = Source::new(send, &here, &mut |_| ()).expect("the file can be read");
    let mut receiver = Receiver::new(receive, &there);
    let (mut now, mut count) = (Time::ZERO, 0);
    while !(source.endpoint().is_finished() && receiver.endpoint().is_finished()) {
        assert!(now < Time::from_nanos(120_000_000_000), "the session ends");
        let sent = take_all(source.endpoint(), now);
        let answers = take_all(receiver.endpoint(), now);
        for (mut bytes, to) in sent {
            count += 1;
            if count % LOST != 0 && to == group {
                give(receiver.endpoint(), &mut bytes, here.local, now);
            }
        }
        for (mut bytes, _) in answers {
            give(source.endpoint(), &mut bytes, there.local, now);
        }
        for endpoint in [source.endpoint(), receiver.endpoint()] {
            while endpoint.poll_event().is_some() {}
        }
        let next = source.endpoint().poll_timeout(now).min(receiver.endpoint().poll_timeout(now));
        now = next.max(now + Span::from_millis(1));
        source.endpoint().handle_timeout(now);
        receiver.endpoint().handle_timeout(now);
    }
    assert!(source.report().expect("it ends well").ok);
    assert!(receiver.report().expect("it ends well").ok);
    std::fs::remove_dir_all(out).expect("our own directory");
}

#[test]
fn thousand_successive_sessions_leak_no_memory() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let (file, out) = (scratch.path().join("file"), scratch.path().join("out"));
    std::fs::write(&file, (0..20_000u32).map(|at| (at >> 3) as u8).collect::<Vec<_>>())
        .expect("there is room");
    let mut number = 0;
    let mut run = |count: usize| {
        for _ in 0..count {
            number += 1;
            session(number, &file, &out);
        }
    };
    run(200);
    let before = resident();
    run(800);
    let after = resident();
    println!("{before} kB after 200 sessions, {after} kB after 1,000");
    assert!(after < before + SLACK, "{before} kB after 200 sessions, {after} kB after 1,000");
}
