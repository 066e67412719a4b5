//! The program exchanges data with independent implementations of PGM: ZeroMQ's epgm:// and plain OpenPGM.

use crate::kit::{Running, must, print_line};
use faircast_testkit::{Capture, EmulatedLab, Root, Task, require_root, run, warnings};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const GROUP: &str = "239.255.70.20";

/// Two hosts and a link with losses.
const LOSSY: &str = "
    host source
    host near groups=all
    host far groups=all
    router r
    link source r delay=2ms
    link r near delay=3ms loss=bernoulli,0.01
    link r far delay=20ms loss=bernoulli,0.01";

/// A directory, and the programs of `crates/testkit/interop` that the tests need in addition to faircast.
pub struct Stage {
    pub root: Root,
    directory: TempDir,
    receiver: PathBuf,
}

fn interop(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/interop").join(name);
    path.to_str().expect("the source tree has a plain name").to_owned()
}

/// Debian's Python, which has the required packages. Another Python may come first in `PATH`.
const PYTHON: &str = "/usr/bin/python3";

impl Stage {
    /// Returns the stage. If a requirement is missing, prints the reason and returns `None`.
    pub fn set() -> Option<Stage> {
        let root = require_root()?;
        let directory = must(tempfile::Builder::new().prefix("faircast-pgm-").tempdir());
        let receiver = directory.path().join("pgm_receive");
        let limit = Duration::from_secs(60);
        let program = receiver.to_str().expect("temporary directories have plain names");
        let made = run("pkg-config", &["--cflags", "--libs", "openpgm-5.3"], limit).and_then(|flags| {
            let source = interop("pgm_receive.c");
            let mut args = vec!["-O1", source.as_str(), "-o", program];
            args.extend(flags.stdout.split_whitespace());
            run("cc", &args, limit)
        });
        let has_pgm = ["-c", "import sys, zmq; sys.exit(0 if zmq.has('pgm') else 'this ZeroMQ has no PGM')"];
        let checked =
            made.and_then(|_| run(PYTHON, &has_pgm, limit)).and_then(|_| run("tshark", &["-v"], limit));
        match checked {
            Ok(_) => Some(Stage { root, directory, receiver }),
            Err(error) => {
                assert!(std::env::var("CI").as_deref() != Ok("true"), "needs OpenPGM and ZeroMQ: {error}");
                print_line(&format!("skipped: PGM with other programs: {error}"));
                None
            }
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("temporary directories have plain names").to_owned()
    }

    /// Writes a file of random lines of text. Returns the bytes, and the number of lines.
    pub fn lines(&self, name: &str, len: usize) -> (Vec<u8>, usize) {
        let noise = crate::kit::noise(name, len / 2 + 1);
        let mut text = Vec::with_capacity(len + 100);
        let mut lines = 0;
        for (at, byte) in noise.iter().enumerate() {
            text.extend_from_slice(format!("{byte:02x}").as_bytes());
            // The lines have 40 to 2000 bytes. Some lines need ZeroMQ's long form, and some need several packets.
            if at % 1_000 == usize::from(noise[at / 1_000]) + 20 || at % 1_000 == 999 || at + 1 == noise.len()
            {
                text.push(b'\n');
                lines += 1;
            }
        }
        must(std::fs::write(self.path(name), &text));
        (text, lines)
    }

    /// Starts a ZeroMQ subscriber on a host.
    pub fn subscriber(&self, lab: &EmulatedLab, host: &str, port: u16, lines: usize) -> Task {
        let node = lab.host(host);
        let endpoint = format!("epgm://{};{GROUP}:{port}", node.ipv4());
        let args = [&interop("zmq_subscribe.py"), &endpoint, &self.text(host), &lines.to_string()];
        let mut task = must(node.start(PYTHON, &args.map(String::as_str)));
        must(task.wait_for("ready", Duration::from_secs(20)));
        task
    }

    /// Starts a plain OpenPGM receiver on a host. It skips the first `skip` bytes of each unit.
    pub fn plain(&self, lab: &EmulatedLab, host: &str, port: u16, bytes: usize, skip: usize) -> Task {
        let node = lab.host(host);
        let (address, out) = (node.ipv4().to_string(), self.text(host));
        let args = [address, GROUP.into(), port.to_string(), out, bytes.to_string(), skip.to_string()];
        let program = self.receiver.to_str().expect("temporary directories have plain names");
        let mut task = must(node.start(program, &args.each_ref().map(String::as_str)));
        must(task.wait_for("ready", Duration::from_secs(20)));
        task
    }

    pub fn send(&self, lab: &EmulatedLab, file: &str, port: u16, more: &[&str]) -> Running {
        let (file, group) = (self.text(file), format!("{GROUP}:{port}"));
        let mut args = vec![
            "send",
            &file,
            "--wire",
            "pgm",
            "--json",
            "--no-key",
            "--group",
            &group,
            "--join-timeout",
            "3",
        ];
        args.extend(more);
        Running::start(lab.host("source"), &args)
    }

    /// Checks the content at a receiver.
    pub fn has(&self, host: &str, expected: &[u8]) {
        let got = must(std::fs::read(self.path(host)));
        let same = blake3::hash(&got) == blake3::hash(expected);
        assert!(same, "{host} has {} bytes instead of {}, or others", got.len(), expected.len());
    }

    /// Checks that tshark's PGM dissector reports no error in the capture, and finds a packet of each of these types.
    pub fn is_clean(&self, pcap: &Path, port: u16, types: &[&str]) {
        let decode = format!("udp.port=={port},pgm");
        assert_eq!(must(warnings(pcap, &["-d", &decode])), Vec::<String>::new());
        let path = pcap.to_str().expect("temporary directories have plain names");
        let shown = |filter: &str| {
            let args = ["-n", "-r", path, "-d", &decode, "-Y", filter];
            must(run("tshark", &args, Duration::from_secs(120))).stdout
        };
        // The dissector of tshark 4 reports this field twice. The first value is the first octet of the checksum, by mistake. The
        // second value is 1 if the checksum is correct.
        let wrong = format!("udp.port == {port} && !icmp && !(pgm.hdr.cksum.status == 1)");
        assert_eq!(shown(&wrong), "");
        for kind in types {
            assert!(!shown(&format!("pgm.hdr.type == {kind}")).is_empty(), "no packet of type {kind}");
        }
    }
}

/// Waits until a receiver has ended, and checks that it has received its content.
pub fn finish(task: Task, within: u64) {
    let done = must(task.finish(Duration::from_secs(within)).and_then(|done| done.ok()));
    assert!(done.stdout.contains("received"), "{}", done.stdout);
}

/// Needs a kernel: OpenPGM uses kernel sockets and timers.
#[test]
fn openpgm_receives_units_and_fragments_despite_losses() {
    let Some(stage) = Stage::set() else { return };
    let lab = must(EmulatedLab::shared(&stage.root, LOSSY));
    let (content, lines) = stage.lines("file", 1_000_000);
    for (port, messages, units) in [(5_772, "lines", lines), (5_773, "5000", content.len().div_ceil(5_000))] {
        let capture = must(Capture::start(lab.host("source"), "udp", &stage.path("units.pcap")));
        let receivers = ["near", "far"].map(|host| stage.plain(&lab, host, port, content.len(), 0));
        let more =
            ["--cc", "le-sbcc", "--framing", "none", "--message", messages, "--min", "1M", "--max", "8M"];
        let source = stage.send(&lab, "file", port, &more).succeeds(60);
        let ended = receivers.map(|task| task.finish(Duration::from_secs(40)).and_then(|done| done.ok()));
        let pcap = must(capture.stop());
        for done in ended {
            let done = done.unwrap_or_else(|why| {
                let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pgm.pcap");
                must(std::fs::copy(&pcap, &kept));
                panic!("{why}\nsource: {source:?}\npackets at the source: {}", kept.display())
            });
            assert!(done.stdout.contains("received"), "{}", done.stdout);
        }
        stage.is_clean(&pcap, port, &["0", "4", "5", "8", "10"]);
        ["near", "far"].iter().for_each(|host| stage.has(host, &content));
        assert_eq!(source.number("messages"), units as f64);
    }
}

/// Needs a kernel: ZeroMQ uses kernel sockets and timers.
#[test]
fn messages_of_a_zeromq_publisher_arrive_in_order() {
    let Some(stage) = Stage::set() else { return };
    let lab = must(EmulatedLab::shared(&stage.root, LOSSY));
    let port = 5_774;
    let (content, lines) = stage.lines("file", 1_000_000);
    let (group, out) = (format!("{GROUP}:{port}"), stage.text("out"));
    let capture = must(Capture::start(lab.host("far"), "udp", &stage.path("received.pcap")));
    let args = ["recv", "--wire", "pgm", "--framing", "zmq", "--json", "--group", &group, "--out", &out];
    let receivers = ["near", "far"].map(|host| {
        let own = stage.text(&format!("out-{host}"));
        let args: Vec<&str> = args.iter().map(|arg| if **arg == out { own.as_str() } else { arg }).collect();
        let mut running = Running::start(lab.host(host), &args);
        running.prints("\"opened\"", 20);
        running
    });
    let node = lab.host("source");
    let endpoint = format!("epgm://{};{GROUP}:{port}", node.ipv4());
    let mut publisher =
        must(node.start(PYTHON, &[&interop("zmq_publish.py"), &endpoint, &stage.text("file"), "3000"]));
    must(publisher.wait_for("sent", Duration::from_secs(30)));
    let got = |host: &str| -> Option<Vec<u8>> {
        let file = std::fs::read_dir(stage.path(&format!("out-{host}"))).ok()?.next()?.ok()?;
        std::fs::read(file.path()).ok()
    };
    let end = Instant::now() + Duration::from_secs(40);
    let has_all = |host: &&str| got(host).is_some_and(|bytes| bytes.len() >= content.len());
    while !["near", "far"].iter().all(has_all) {
        assert!(Instant::now() < end, "the receivers have {:?}", got("near").map(|bytes| bytes.len()));
        std::thread::sleep(Duration::from_millis(50));
    }
    publisher.interrupt();
    let mut missed = 0.0;
    for (receiver, host) in receivers.into_iter().zip(["near", "far"]) {
        let ended = receiver.succeeds(30);
        assert_eq!(
            (ended.number("messages"), ended.number("unrecoverable")),
            (lines as f64, 0.0),
            "{ended:?}"
        );
        missed += ended.number("missed");
        assert!(got(host).is_some_and(|bytes| bytes == content), "{host} has other bytes");
    }
    assert!(missed > 5.0, "nothing was lost, so nothing is shown");
    stage.is_clean(&must(capture.stop()), port, &["0", "4", "5", "8", "10"]);
}

/// Needs a kernel: packets are captured and dissected.
#[test]
fn two_faircast_endpoints_use_pgm_with_ormcc_and_pgmcc() {
    let Some(stage) = Stage::set() else { return };
    let lab = must(EmulatedLab::shared(&stage.root, LOSSY));
    let (content, _) = stage.lines("file", 2_000_000);
    for (scheme, port) in [("ormcc", 5_775), ("pgmcc", 5_776)] {
        let capture = must(Capture::start(lab.host("far"), "udp", &stage.path("two.pcap")));
        let group = format!("{GROUP}:{port}");
        let receivers = ["near", "far"].map(|host| {
            let out = stage.text(&format!("{scheme}-{host}"));
            let args = ["recv", "--wire", "pgm", "--json", "--group", &group, "--out", &out];
            let mut running = Running::start(lab.host(host), &args);
            running.prints("\"opened\"", 20);
            running
        });
        let source =
            stage.send(&lab, "file", port, &["--cc", scheme, "--max", "10M", "--metrics"]).succeeds(60);
        let listed = source.all("receivers").filter_map(|event| event["receivers"].as_array()).flatten();
        let hosts: BTreeSet<&str> = listed.filter_map(|one| one["host"].as_str()).collect();
        assert_eq!(hosts.len(), 2, "{hosts:?}");
        for (receiver, host) in receivers.into_iter().zip(["near", "far"]) {
            receiver.succeeds(20);
            let file = must(
                must(std::fs::read_dir(stage.path(&format!("{scheme}-{host}")))).next().expect("one file"),
            );
            assert!(must(std::fs::read(file.path())) == content, "{host} has other bytes");
        }
        // These values show that the source has received reports: without reports, the rate would have stayed at its initial
        // value.
        assert!(source.number("goodput_bps") > 5e5 && source.number("cuts") > 0.0, "{source:?}");
        stage.is_clean(&must(capture.stop()), port, &["0", "4", "5", "8", "10", "13"]);
    }
}
