//! The program sends files to receivers of libnorm, the reference implementation of NORM.

use crate::kit::{Ended, Running, must, noise, print_line};
use faircast_testkit::{Capture, EmulatedLab, Node, Root, Task, require_root, run, warnings};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

const GROUP: &str = "239.255.70.30:6003";

/// Two receivers, and one behind a link that loses packets in both directions.
const LOSSY: &str = "
    host source groups=all
    host near groups=all
    host far groups=all
    host lossy groups=all
    router r
    link source r rate=30M delay=2ms queue=droptail,60
    link r near
    link r far delay=20ms
    link r lossy delay=3ms loss=bernoulli,0.01";

/// A directory, and the receiver program on libnorm.
pub struct Stage {
    pub root: Root,
    directory: TempDir,
    receiver: String,
}

impl Stage {
    /// Returns the stage. If a requirement is missing, prints the reason and returns `None`.
    pub fn set() -> Option<Stage> {
        let root = require_root()?;
        let directory = must(tempfile::Builder::new().prefix("faircast-norm-").tempdir());
        let receiver = text(&directory.path().join("norm_receive"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/interop/norm_receive.cpp");
        let args = ["-O1", &text(&source), "-o", &receiver, "-lnorm"];
        let made = run("c++", &args, Duration::from_secs(60));
        match made.and_then(|_| run("tshark", &["-v"], Duration::from_secs(20))) {
            Ok(_) => Some(Stage { root, directory, receiver }),
            Err(error) => {
                assert!(std::env::var("CI").as_deref() != Ok("true"), "needs libnorm: {error}");
                print_line(&format!("skipped: NORM with libnorm's receivers: {error}"));
                None
            }
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file to send.
    pub fn file(&self, name: &str, bytes: usize) -> String {
        let path = self.path(name);
        must(std::fs::create_dir_all(path.parent().expect("it is in the directory")));
        must(std::fs::write(&path, noise(name, bytes)));
        text(&path)
    }

    /// Starts a receiver of libnorm for this number of files.
    pub fn receiver(&self, host: &Node, name: &str, node: u32, files: usize) -> Task {
        let out = self.path(name);
        must(std::fs::create_dir(&out));
        let (group, port) = GROUP.split_once(':').expect("it has a port");
        let (node, files) = (node.to_string(), files.to_string());
        let mut task = must(host.start(&self.receiver, &[&text(&out), group, port, "eth0", &node, &files]));
        must(task.wait_for("ready", Duration::from_secs(20)));
        task
    }

    /// Starts the source.
    pub fn send(&self, host: &Node, paths: &[&str], more: &[&str]) -> Running {
        let common = ["--wire", "norm", "--json", "--no-key", "--ttl", "8", "--group", GROUP];
        Running::start(host, &[&["send"], paths, &common, more].concat())
    }

    /// Checks the file with this content at a receiver.
    pub fn has(&self, receiver: &str, file: &str, content: &str, bytes: usize) {
        let got = must(std::fs::read(self.path(receiver).join(file)));
        let same = blake3::hash(&got) == blake3::hash(&noise(content, bytes));
        assert!(same, "{receiver} has {} bytes of {file} instead of {bytes}, or others", got.len());
    }

    /// Checks that tshark's NORM dissector reports no malformed packet, and finds messages of all kinds of the source.
    pub fn is_clean(&self, pcap: &Path) {
        self.has_messages(pcap, &["norm.flavor == 1", "norm.flavor == 2", "norm.flavor == 4"]);
        self.has_messages(pcap, &["norm.type == 1", "norm.type == 2"]);
    }

    /// Checks that tshark's NORM dissector reports no malformed packet, and finds messages for each of these filters.
    fn has_messages(&self, pcap: &Path, filters: &[&str]) {
        let decode = format!("udp.port=={},norm", GROUP.split_once(':').expect("it has a port").1);
        assert_eq!(must(warnings(pcap, &["-d", &decode])), Vec::<String>::new());
        for kind in filters {
            let args = ["-n", "-r", &text(pcap), "-d", &decode, "-c", "1000000", "-Y", kind];
            let shown = must(run("tshark", &args, Duration::from_secs(120)));
            assert!(!shown.stdout.is_empty(), "no message with {kind}");
        }
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("the source tree and temporary directories have plain names").to_owned()
}

/// Waits until a receiver has all files, and stops it.
pub fn finish(mut task: Task) {
    must(task.wait_for("received", Duration::from_secs(20)));
    task.kill();
}

/// Describes a source's result in one line.
pub fn summary(source: &Ended) -> String {
    let number = |field: &str| source.number(field);
    format!(
        "{:.2} Mbit/s in {:.1} s, {} packets, {} repairs, {} of them parity, {} NACKs, {} probes, {} answers, {} cuts",
        number("goodput_bps") / 1e6,
        number("seconds"),
        number("packets"),
        number("repairs"),
        number("parity"),
        number("naks"),
        number("probes"),
        number("answers"),
        number("cuts"),
    )
}

/// Needs a kernel: libnorm uses kernel sockets and timers.
#[test]
fn libnorm_receivers_get_files_and_trees_despite_losses() {
    let Some(stage) = Stage::set() else { return };
    let lab = must(EmulatedLab::start(&stage.root, LOSSY));
    let image = stage.file("image", 6_000_001);
    let tree: Vec<(String, usize)> =
        (0..40).map(|n| (format!("tree/part{}/file-{n}", n % 3), 100 * n)).collect();
    tree.iter().for_each(|(name, bytes)| drop(stage.file(name, *bytes)));
    let capture = must(Capture::start(lab.host("source"), "udp", &stage.path("session.pcap")));
    let hosts = [("near", 2), ("far", 3), ("lossy", 4)];
    let receivers = hosts.map(|(host, node)| stage.receiver(lab.host(host), host, node, 1 + tree.len()));
    let directory = text(&stage.path("tree"));
    let source = stage.send(lab.host("source"), &[&image, &directory], &["--expect", "3"]).succeeds(120);
    receivers.into_iter().for_each(finish);
    let pcap = must(capture.stop());
    must(lab.stop());

    print_line(&format!("NORM to libnorm: {}", summary(&source)));
    for (host, _) in hosts {
        stage.has(host, "image", "image", 6_000_001);
        tree.iter().for_each(|(name, bytes)| stage.has(host, name, name, *bytes));
    }
    stage.is_clean(&pcap);
    assert_eq!((source.number("completed"), source.number("files")), (3.0, 41.0));
    assert!(source.number("repairs") > 10.0 && source.number("parity") > 0.0, "{source:?}");
}

/// Needs a kernel: libnorm uses kernel sockets and timers.
#[test]
fn libnorm_receivers_get_files_with_fec_encoding_129() {
    let Some(stage) = Stage::set() else { return };
    let lab = must(EmulatedLab::start(&stage.root, LOSSY));
    let files = [("image", 2_000_001), ("short", 7), ("empty", 0)];
    let paths = files.map(|(name, bytes)| stage.file(name, bytes));
    let capture = must(Capture::start(lab.host("source"), "udp", &stage.path("session.pcap")));
    let hosts = [("near", 2), ("lossy", 3)];
    let receivers = hosts.map(|(host, node)| stage.receiver(lab.host(host), host, node, files.len()));
    let args = ["--expect", "2", "--norm-fec", "129"];
    let paths = paths.each_ref().map(String::as_str);
    let source = stage.send(lab.host("source"), &paths, &args).succeeds(60);
    receivers.into_iter().for_each(finish);
    let pcap = must(capture.stop());
    must(lab.stop());
    for ((host, _), (name, bytes)) in hosts.iter().flat_map(|host| files.map(|file| (host, file))) {
        stage.has(host, name, name, bytes);
    }
    stage.has_messages(&pcap, &["norm.fec_encoding_id == 129 && norm.type == 2", "norm.flavor == 1"]);
    assert_eq!(source.number("completed"), 2.0);
    assert!(source.number("repairs") > 5.0 && source.number("parity") > 0.0, "{source:?}");
}

/// Needs a kernel: libnorm uses kernel sockets and timers.
#[test]
fn killed_libnorm_receiver_is_named_and_the_others_finish() {
    let Some(stage) = Stage::set() else { return };
    let lab = must(EmulatedLab::start(&stage.root, LOSSY));
    let image = stage.file("image", 3_000_000);
    let near = stage.receiver(lab.host("near"), "near", 2, 1);
    let mut lossy = stage.receiver(lab.host("lossy"), "lossy", 3, 1);
    let mut source = stage.send(lab.host("source"), &[&image], &["--expect", "2", "--max", "8M"]);
    source.reaches(0.2, 30);
    lossy.kill();
    let ended = source.ends(60);
    finish(near);
    let address = lab.host("lossy").ipv4().to_string();
    must(lab.stop());
    stage.has("near", "image", "image", 3_000_000);
    assert_ne!(ended.code, 0, "{ended:?}");
    assert_eq!((ended.number("completed"), ended.number("receivers")), (1.0, 2.0));
    assert!(ended.all("left").any(|left| left["host"] == address.as_str()), "{ended:?}");
}
