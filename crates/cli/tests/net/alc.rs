//! Files over ALC and FLUTE: with flute-alc, an independent implementation, and in layers of real multicast groups.

use crate::kit::{Running, Stage, must, noise, print_line};
use faircast_testkit::{
    Bottleneck, Capture, Damage, Forwarding, Lab, LabPlan, Node, Offloads, Root, Task, require_root, run,
    warnings,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Returns the path of a Python that has flute-alc, which `scripts/needs` installs. If no such Python exists, prints the reason
/// and returns `None`.
fn python() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("flute-alc/bin/python");
    let checked = run(path.to_str()?, &["-c", "import flute"], Duration::from_secs(60))
        .and_then(|_| run("tshark", &["-v"], Duration::from_secs(60)));
    match checked {
        Ok(_) => Some(path),
        Err(error) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "needs flute-alc and tshark: {error}");
            print_line(&format!("skipped: ALC with other programs (scripts/needs test): {error}"));
            None
        }
    }
}

fn interop(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/interop").join(name);
    path.to_str().expect("the source tree has a plain name").to_owned()
}

/// Starts one of the programs of `crates/testkit/interop`.
fn flute(node: &Node, python: &Path, program: &str, stage: &Stage, args: &[&str]) -> Task {
    let (group, port) = stage.group.rsplit_once(':').expect("a group has a port");
    let (program, interface) = (interop(program), node.ipv4().to_string());
    let mut all = vec![program.as_str(), &interface, group, port];
    all.extend(args);
    must(node.start(python.to_str().expect("it has a plain name"), &all))
}

/// Starts a faircast receiver on a host. It writes into a directory of this name.
fn receiver(stage: &Stage, node: &Node, name: &str, more: &[&str]) -> Running {
    let mut args = vec!["--wire", "alc"];
    args.extend(more);
    stage.recv_on(node, name, &args)
}

/// Checks that tshark reports no error in any packet of the session, and that each of these filters matches a packet.
fn is_clean(pcap: &Path, stage: &Stage, filters: &[&str]) {
    let (_, port) = stage.group.rsplit_once(':').expect("a group has a port");
    let decode = format!("udp.port=={port},alc");
    assert_eq!(must(warnings(pcap, &["-d", &decode])), Vec::<String>::new());
    let path = pcap.to_str().expect("temporary directories have plain names");
    let shown = |filter: &str| {
        must(run("tshark", &["-n", "-r", path, "-d", &decode, "-Y", filter], Duration::from_secs(120))).stdout
    };
    assert_eq!(shown("_ws.malformed"), "");
    for filter in filters {
        assert!(!shown(filter).is_empty(), "no packet is {filter}");
    }
}

fn plan(receivers: u16) -> LabPlan {
    Lab::plan().receivers(receivers).offloads(Offloads::Off)
}

fn stage(root: &Root, receivers: u16) -> Stage {
    Stage::shared(root, plan(receivers))
}

/// Needs a kernel: flute-alc reads from a socket.
#[test]
fn flute_alc_fetches_files_from_a_faircast_source() {
    let (Some(root), Some(python)) = (require_root(), python()) else { return };
    let stage = stage(&root, 2);
    let (large, small) = (stage.file("large.bin", 900_000), stage.file("small.bin", 700));
    let capture = must(Capture::start(stage.lab.receiver(1), "udp", &stage.path("flute.pcap")));
    let other = stage.text("flute");
    let mut fetching = flute(
        stage.lab.receiver(0),
        &python,
        "flute_receive.py",
        &stage,
        &[&other, "large.bin=900000", "small.bin=700"],
    );
    must(fetching.wait_for("ready", Duration::from_secs(20)));
    let ours = receiver(&stage, stage.lab.receiver(1), "ours", &[]);
    let source =
        stage.send(&[&large, &small], &["--wire", "alc", "--rate", "8M", "--repeat", "2"]).succeeds(30);
    let done = must(fetching.finish(Duration::from_secs(10)).and_then(|done| done.ok()));
    assert!(done.stdout.contains("received 2"), "{}", done.stdout);
    assert_eq!((source.number("rounds"), source.number("files")), (2.0, 2.0));
    let ours = ours.succeeds(10);
    assert_eq!((ours.number("verified"), ours.number("bytes")), (2.0, 900_700.0));
    for (file, host) in [(&large, "flute"), (&small, "flute"), (&large, "ours"), (&small, "ours")] {
        assert!(stage.has(host, file), "{host} has not {file}");
    }
    // Two generations of 900 kB at 8 Mbit/s take at least this time. An upper bound would depend on the machine.
    assert!(source.number("seconds") > 1.7, "{source:?}");
    let filters = [
        "rmt-lct.flute_version == 2",
        "rmt-lct.toi == 1 && rmt-fec.encoding_id == 0",
        "rmt-lct.flags.close_session == 1",
    ];
    is_clean(&must(capture.stop()), &stage, &filters);
}

/// Needs a kernel: flute-alc writes to a socket.
#[test]
fn faircast_receiver_fetches_files_from_a_flute_alc_source() {
    let (Some(root), Some(python)) = (require_root(), python()) else { return };
    for code in ["none", "rs28"] {
        let stage = stage(&root, 1);
        let (large, small) = (stage.file("large.bin", 500_000), stage.file("small.bin", 3_000));
        let ours = receiver(&stage, stage.lab.receiver(0), "ours", &["--timeout", "2"]);
        let args = [code, "8e6", &large, &small];
        let sending = flute(stage.lab.sender(), &python, "flute_send.py", &stage, &args);
        let done = must(sending.finish(Duration::from_secs(30)).and_then(|done| done.ok()));
        assert!(done.stdout.contains("sent"), "{}", done.stdout);
        let ours = ours.succeeds(10);
        assert_eq!((ours.number("files"), ours.number("bytes")), (2.0, 503_000.0), "{code}");
        assert!(stage.has("ours", &large) && stage.has("ours", &small), "{code}");
    }
}

/// Needs a kernel: flute-alc reads from a socket.
#[test]
fn flute_alc_decodes_raptor_and_raptorq_despite_losses() {
    let (Some(root), Some(python)) = (require_root(), python()) else { return };
    for (code, id) in [("raptor", 1), ("raptorq", 6)] {
        let stage = Stage::shared(&root, plan(2).damage([0, 1], Damage::loss(0.1)));
        let files =
            [stage.file("large.bin", 900_000), stage.file("small.bin", 700), stage.file("tiny.bin", 3)];
        let capture = must(Capture::start(stage.lab.sender(), "udp", &stage.path("coded.pcap")));
        let sizes = ["large.bin=900000", "small.bin=700", "tiny.bin=3"];
        let other = stage.text("flute");
        let args = [&[other.as_str()], &sizes[..]].concat();
        let mut fetching = flute(stage.lab.receiver(0), &python, "flute_receive.py", &stage, &args);
        must(fetching.wait_for("ready", Duration::from_secs(20)));
        let ours = receiver(&stage, stage.lab.receiver(1), "ours", &[]);
        let args = ["--wire", "alc", "--rate", "8M", "--fec", code, "--repeat", "forever"];
        let mut source = stage.send(&files.each_ref().map(String::as_str), &args);
        let done = must(fetching.finish(Duration::from_secs(30)).and_then(|done| done.ok()));
        assert!(done.stdout.contains("received 3"), "{code}: {}", done.stdout);
        let ours = ours.succeeds(30);
        source.task.interrupt();
        source.succeeds(10);
        assert!(ours.number("repaired_blocks") >= 2.0 && ours.number("verified") == 3.0, "{code}: {ours:?}");
        for (file, host) in files.iter().flat_map(|file| [(file, "flute"), (file, "ours")]) {
            assert!(stage.has(host, file), "{code}: {host} has not {file}");
        }
        // The largest file has three blocks of 211 source symbols. Symbols with higher numbers are repair symbols.
        let filter = format!("rmt-fec.encoding_id == {id} && rmt-fec.esi > 210");
        is_clean(&must(capture.stop()), &stage, &[&filter]);
    }
}

/// Needs a kernel: packets are captured and dissected.
#[test]
fn file_tree_arrives_over_alc_with_raptorq_despite_losses() {
    let Some(root) = require_root() else { return };
    let plan = plan(2).damage([0], Damage::loss(0.1)).damage([1], Damage::loss(0.3));
    let stage = Stage::shared(&root, plan);
    let tree = stage.path("tree");
    must(std::fs::create_dir_all(tree.join("below")));
    must(std::fs::write(tree.join("below/large file.bin"), noise("large", 1_500_000)));
    must(std::fs::write(tree.join("empty"), []));
    let capture = must(Capture::start(stage.lab.sender(), "udp", &stage.path("tree.pcap")));
    let receivers = [0, 1].map(|at| receiver(&stage, stage.lab.receiver(at), &format!("r{at}"), &[]));
    let args = ["--wire", "alc", "--rate", "10M", "--fec", "raptorq", "--repeat", "3"];
    let source = stage.send(&[&stage.text("tree")], &args);
    for (at, receiver) in receivers.into_iter().enumerate() {
        let ended = receiver.succeeds(30);
        assert!(ended.number("repaired_blocks") >= 2.0 && ended.number("symbol_ratio") < 1.3, "{ended:?}");
        let got = must(std::fs::read(stage.path(&format!("r{at}/tree/below/large file.bin"))));
        assert!(got == noise("large", 1_500_000));
        assert_eq!(must(std::fs::metadata(stage.path(&format!("r{at}/tree/empty")))).len(), 0);
    }
    source.succeeds(30);
    is_clean(&must(capture.stop()), &stage, &["rmt-fec.encoding_id == 6"]);
}

/// Needs a kernel: a bridge forwards each group to its members, through token buckets.
#[test]
fn alc_receivers_get_layers_at_the_rates_of_their_bottlenecks() {
    let Some(root) = require_root() else { return };
    let plan = Lab::plan()
        .receivers(2)
        .offloads(Offloads::Off)
        .forwarding(Forwarding::ToMembers)
        .bottleneck(0, Bottleneck::mbps(1.5))
        .bottleneck(1, Bottleneck::mbps(12.0));
    let stage = Stage::shared(&root, plan);
    let file = stage.file("large.bin", 4_000_000);
    let capture = must(Capture::start(stage.lab.sender(), "udp", &stage.path("layers.pcap")));
    let receivers = [0, 1].map(|at| receiver(&stage, stage.lab.receiver(at), &format!("r{at}"), &[]));
    let args = ["--wire", "alc", "--cc", "rlc,layers=5", "--repeat", "forever"];
    let source = stage.send(&[&file], &args);
    let [slow, fast] = receivers.map(|receiver| receiver.succeeds(100));
    let mut source = source;
    source.task.interrupt();
    let source = source.succeeds(10);
    assert!(stage.has("r0", &file) && stage.has("r1", &file));
    let seconds = [&slow, &fast].map(|ended| ended.number("seconds"));
    let layers = [&slow, &fast].map(|ended| ended.number("highest_layer"));
    print_line(&format!(
        "ALC in layers: 4 MB in {:.1} s behind 1.5 Mbit/s (layer {}, {} joins, {} leaves) and in {:.1} s behind 12 Mbit/s \
         (layer {}, {} joins, {} leaves)",
        seconds[0],
        layers[0],
        slow.number("joins"),
        slow.number("leaves"),
        seconds[1],
        layers[1],
        fast.number("joins"),
        fast.number("leaves"),
    ));
    assert!(seconds[0] > 2.0 * seconds[1], "{seconds:?}");
    assert!(layers[1] > layers[0] && layers[1] >= 3.0, "{layers:?}");
    assert_eq!(source.number("layers"), 5.0);
    is_clean(&must(capture.stop()), &stage, &["rmt-lct.toi == 1", "ip.dst == 239.255.70.12"]);
}
