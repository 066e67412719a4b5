//! Sessions with content that is older than the receiver's content.

use crate::kit::{Stage, must};
use crate::security;
use faircast_testkit::{Lab, Node, require_root};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

/// Opens a socket of this host in the group.
pub fn ear(node: &Node, group: &str) -> UdpSocket {
    let SocketAddr::V4(group) = must(group.parse()) else { panic!("the lab has IPv4") };
    must(node.inside(|| {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, group.port())).expect("the port is free there");
        socket.join_multicast_v4(group.ip(), &node.ipv4()).expect("it has the address");
        socket.set_read_timeout(Some(Duration::from_secs(2))).expect("not zero");
        // The large socket buffer holds the packets while a busy machine delays the recording thread.
        set_socket_recv_buffer_size_force(&socket, 16 << 20).expect("root may");
        socket
    }))
}

/// Needs a kernel: a socket takes the address and port of a source that has ended.
#[test]
fn replayed_session_does_not_overwrite_new_content() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    let key = security::key(&stage, "lab.key");
    // The lengths differ, because the ID of a transfer derives from names, lengths and times, and the times of both files may be
    // equal.
    let [first, second] = [("first", 300_000), ("second", 310_000)].map(|(name, len)| {
        must(std::fs::create_dir(stage.path(name)));
        stage.file(&format!("{name}/image"), len)
    });
    // Without feedback, a receiver accepts a recording as long as its time is within the clock limit.
    let flags = ["--key", key.as_str(), "--one-way"];
    let ear = ear(stage.lab.receiver(1), &stage.group);
    let receiver = stage.recv(0, "r0", &flags);
    let source = stage.send(&[&first], &["--key", &key, "--expect", "1"]);
    let mut recorded = Vec::new();
    let mut bytes = vec![0; 2048];
    while let Ok((len, from)) = ear.recv_from(&mut bytes) {
        recorded.push((bytes[..len].to_vec(), from));
    }
    source.succeeds(20);
    receiver.succeeds(20);
    let receiver = stage.recv(0, "r0", &flags);
    stage.send(&[&second], &["--key", &key, "--expect", "1"]).succeeds(20);
    receiver.succeeds(20);
    assert!(stage.has("r0", &second));
    let from = recorded.first().expect("there was a session").1;
    let mouth = must(stage.lab.sender().inside(|| UdpSocket::bind(from).expect("the source has ended")));
    let to: SocketAddr = must(stage.group.parse());
    let replay = || {
        for (bytes, _) in &recorded {
            must(mouth.send_to(bytes, to));
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let receiver = stage.recv(0, "r0", &[&flags[..], &["--join-timeout", "5"]].concat());
    replay();
    let refused = receiver.ends(20);
    refused.failed(1, "--overwrite");
    assert!(refused.message().contains("was started at"), "{refused:?}");
    assert!(stage.has("r0", &second), "nothing was touched");
    let willing = stage.recv(
        0,
        "r0",
        &[&flags[..], &["--overwrite", "--join-timeout", "5", "--timeout", "3"]].concat(),
    );
    replay();
    willing.ends(20);
    assert!(stage.has("r0", &first), "who wants it gets it");
}

/// Needs a kernel: the command with directories of two hosts.
#[test]
fn receivers_delete_extraneous_files_only_if_they_permit_it() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    must(std::fs::create_dir(stage.path("tree")));
    for (name, len) in [("kept", 200_000), ("gone", 100_000), ("changed", 50_000)] {
        stage.file(&format!("tree/{name}"), len);
    }
    let (tree, backup) = (stage.text("tree"), stage.text("backup"));
    let session = |deleted: [f64; 2]| {
        let mirror = stage.recv(0, "r0", &["--delete", "--backup", &backup]);
        let other = stage.recv(1, "r1", &[]);
        stage.send(&[&tree], &["--delete", "--expect", "2"]).succeeds(30);
        for (receiver, deleted) in [mirror, other].into_iter().zip(deleted) {
            assert_eq!(receiver.succeeds(30).number("deleted"), deleted);
        }
    };
    session([0.0, 0.0]);
    let inode = || must(std::fs::metadata(stage.path("r0/tree/kept"))).ino();
    let kept = inode();
    must(std::fs::remove_file(stage.path("tree/gone")));
    stage.file("tree/changed", 60_000);
    session([1.0, 0.0]);
    assert_eq!(inode(), kept, "the unchanged file stays in place");
    let names = |directory: &str| {
        let mut names: Vec<_> = must(std::fs::read_dir(stage.path(directory)))
            .map(|entry| must(entry).file_name().into_string().expect("our own name"))
            .collect();
        names.sort();
        names
    };
    assert_eq!(names("r0/tree"), ["changed", "kept"]);
    assert_eq!(names("r1/tree"), ["changed", "gone", "kept"]);
    assert_eq!(names("backup/tree"), ["changed", "gone"]);
    for host in ["r0", "r1"] {
        for name in ["changed", "kept"] {
            let received = must(std::fs::read(stage.path(&format!("{host}/tree/{name}"))));
            assert!(received == must(std::fs::read(stage.path(&format!("tree/{name}")))), "{host} {name}");
        }
    }
}
