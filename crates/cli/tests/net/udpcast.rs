//! The program exchanges data with udpcast's own programs, `udp-sender` and `udp-receiver`.

use crate::kit::{FAIRCAST, Running, Stage, must, noise, print_line};
use faircast_testkit::{Damage, Lab, Node, Task, require_root, run};
use std::collections::BTreeSet;
use std::time::Duration;

/// Size of a file, in bytes: six slices, and a part of a block.
const FILE: usize = 9_000_001;

/// Fraction of lost datagrams, in both directions.
const LOSS: f64 = 0.01;

/// Returns whether udpcast's programs are installed. Otherwise prints why the test is skipped.
pub fn is_installed() -> bool {
    let outcome = run("udp-receiver", &["--license"], Duration::from_secs(10));
    if let Err(error) = &outcome {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "needs udpcast: {error}");
        print_line(&format!("skipped: sessions with udpcast's programs: {error}"));
    }
    outcome.is_ok()
}

/// Builds a stage with this number of receivers, behind links with losses. If a requirement is missing, prints the reason and
/// returns `None`.
fn stage(receivers: u16) -> Option<Stage> {
    let root = require_root().filter(|_| is_installed())?;
    let loss = Damage::loss(LOSS);
    let plan = Lab::plan().receivers(receivers).damage(0..receivers, loss).damage_feedback(loss);
    Some(Stage::shared(&root, plan).with_group("239.255.70.9:9000"))
}

/// Starts udpcast's receiver on a host. It writes into a file with the name `name`.
fn udp_receiver(stage: &Stage, at: usize, name: &str) -> Task {
    let args = ["--nokbd", "--interface", "eth0", "--file", &stage.text(name)];
    let mut task = must(stage.lab.receiver(at).start("udp-receiver", &args));
    // It prints this line when its sockets are open.
    let _ = task.wait_for("UDP receiver", Duration::from_secs(10));
    task
}

/// Starts our receiver on a host.
fn recv(stage: &Stage, at: usize, name: &str) -> Running {
    stage.recv(at, name, &["--wire", "udpcast"])
}

fn send(stage: &Stage, file: &str, max: &str, more: &[&str]) -> Running {
    stage.send(&[file], &[&["--wire", "udpcast", "--expect", "3", "--max", max], more].concat())
}

/// Waits for the successful end of one of udpcast's programs.
pub fn finish(task: Task) {
    must(task.finish(Duration::from_secs(60)).and_then(|done| done.ok()));
}

/// Checks the content of a receiver: a file of udpcast's receiver, or a directory of ours with one file.
fn has(stage: &Stage, name: &str) {
    let path = stage.path(name);
    let file = match path.is_dir() {
        true => must(must(std::fs::read_dir(&path)).next().expect("one file")).path(),
        false => path,
    };
    let (got, expected) = (must(std::fs::read(file)), noise("image", FILE));
    assert!(got == expected, "{name} has {} bytes of {FILE}, or others", got.len());
}

/// Needs a kernel: udpcast uses kernel sockets and timers.
#[test]
fn udpcast_receivers_get_the_same_bytes_despite_losses() {
    let Some(stage) = stage(3) else { return };
    let file = stage.file("image", FILE);
    for scheme in ["ormcc", "le-sbcc", "pgmcc", "tfmcc"] {
        let names = [0, 1, 2].map(|at| format!("{scheme}-{at}"));
        let tasks: Vec<_> =
            names.iter().enumerate().map(|(at, name)| udp_receiver(&stage, at, name)).collect();
        let source = send(&stage, &file, "40M", &["--cc", scheme]).succeeds(60);
        tasks.into_iter().for_each(finish);
        names.iter().for_each(|name| has(&stage, name));
        assert!(source.number("repairs") > 50.0 && source.number("cuts") > 0.0, "{source:?}");
        assert_eq!(source.number("completed"), 3.0);
        print_line(&format!(
            "{scheme}: {:.1} Mbit/s, {} repairs, {} polls, {} answers, {} cuts",
            source.number("goodput_bps") / 1e6,
            source.number("repairs"),
            source.number("polls"),
            source.number("answers"),
            source.number("cuts"),
        ));
    }
}

/// Needs a kernel: udpcast uses kernel sockets and timers.
#[test]
fn udpcast_senders_serve_our_receivers_beside_theirs() {
    let Some(stage) = stage(3) else { return };
    let file = stage.file("image", FILE);
    let ours = [0, 1].map(|at| recv(&stage, at, &format!("ours-{at}")));
    let theirs = udp_receiver(&stage, 2, "theirs");
    let args =
        ["--nokbd", "--interface", "eth0", "--min-receivers", "3", "--max-bitrate", "40m", "--file", &file];
    let sender = must(stage.lab.sender().start("udp-sender", &args));
    ours.into_iter().for_each(|receiver| {
        let received = receiver.succeeds(60);
        assert_eq!(received.number("bytes"), FILE as f64);
    });
    finish(theirs);
    finish(sender);
    ["ours-0", "ours-1", "theirs"].iter().for_each(|name| has(&stage, name));
}

/// Needs a kernel: udpcast uses kernel sockets and timers.
#[test]
fn one_session_serves_receivers_of_both_programs() {
    let Some(stage) = stage(3) else { return };
    let file = stage.file("image", FILE);
    let ours = [0, 1].map(|at| recv(&stage, at, &format!("ours-{at}")));
    let theirs = udp_receiver(&stage, 2, "theirs");
    let source = send(&stage, &file, "40M", &["--metrics"]).succeeds(60);
    let listed = source.all("receivers").filter_map(|event| event["receivers"].as_array()).flatten();
    let named: BTreeSet<&str> = listed.filter_map(|one| one["host"].as_str()).collect();
    let hosts = [0, 1, 2].map(|at| stage.lab.receiver(at).ipv4().to_string());
    assert_eq!(named, hosts.iter().map(String::as_str).collect());
    ours.into_iter().for_each(|receiver| {
        receiver.succeeds(20);
    });
    finish(theirs);
    ["ours-0", "ours-1", "theirs"].iter().for_each(|name| has(&stage, name));
    assert_eq!(source.number("completed"), 3.0);
}

/// Needs a kernel: udpcast uses kernel sockets and timers.
#[test]
fn killed_udpcast_receiver_is_dropped_by_address() {
    let Some(stage) = stage(3) else { return };
    let file = stage.file("image", FILE);
    let mut tasks = [0, 1, 2].map(|at| udp_receiver(&stage, at, &format!("r{at}")));
    let mut source = send(&stage, &file, "10M", &["--timeout", "3"]);
    source.reaches(0.3, 30);
    tasks[1].kill();
    let ended = source.ends(60);
    let [first, killed, last] = tasks;
    [first, last].into_iter().for_each(finish);
    drop(killed);
    ["r0", "r2"].iter().for_each(|name| has(&stage, name));
    assert_ne!(ended.code, 0, "{ended:?}");
    assert_eq!((ended.number("completed"), ended.number("receivers")), (2.0, 3.0));
    let address = stage.lab.receiver(1).ipv4().to_string();
    assert!(ended.all("left").any(|left| left["host"] == address.as_str()), "{ended:?}");
}

/// Two partitions of a disk, one session each, as a server of FOG sends them. The second session has a short time to wait.
const FOG_SERVER: &str = "
    common='--interface eth0 --portbase 63100 --full-duplex --ttl 32 --nokbd --nopointopoint'
    udp-sender $common --min-receivers 3 --max-wait 60 --file $DIR/d1p1.img.gz;
    udp-sender $common --min-receivers 3 --max-wait 10 --file $DIR/d1p2.img.gz;";

/// A client of FOG: each partition goes through a named pipe to a device.
const FOG_CLIENT: &str = "
    set -e
    mkfifo $DIR/$NAME.pipe
    for part in d1p1 d1p2; do
        truncate -s $BYTES $DIR/$NAME-$part
        device=$(losetup --find --show $DIR/$NAME-$part)
        trap 'losetup -d $device' EXIT
        udp-receiver --nokbd --portbase 63100 --ttl 32 --mcast-rdv-address $SERVER 2>>$DIR/$NAME.log >$DIR/$NAME.pipe &
        gzip -dc <$DIR/$NAME.pipe | dd of=$device bs=64k conv=fsync iflag=fullblock 2>>$DIR/$NAME.log
        wait $!
        losetup -d $device
        trap - EXIT
    done";

/// The same with Clonezilla: content comes from a pipe, and goes to a pipe or through a command.
const CLONEZILLA_SERVER: &str = "
    set -e
    for part in d1p1 d1p2; do
        cat $DIR/$part.img.gz | udp-sender --full-duplex --min-clients 3 --max-wait 60 --interface eth0 --nokbd \\
            --mcast-all-addr 224.0.0.1 --portbase 2232 --ttl 1
    done";

const CLONEZILLA_CLIENT: &str = "
    set -e
    common='--nokbd --mcast-all-addr 224.0.0.1 --portbase 2232'
    udp-receiver $common 2>>$DIR/$NAME.log | gzip -dc >$DIR/$NAME-d1p1
    udp-receiver $common --pipe 'gzip -dc' --file $DIR/$NAME-d1p2 2>>$DIR/$NAME.log";

/// Runs scripts with our program under the names of udpcast's at the server and the first client. Checks both partitions.
fn run_scripts(server: &str, client: &str) {
    let Some(stage) = stage(3) else { return };
    let (directory, bytes) = (stage.text(""), FILE.next_multiple_of(512));
    must(std::fs::create_dir(stage.path("bin")));
    for name in ["udp-sender", "udp-receiver"] {
        must(std::os::unix::fs::symlink(FAIRCAST, stage.path(&format!("bin/{name}"))));
    }
    for part in ["d1p1", "d1p2"] {
        stage.file(part, bytes);
        let line = format!("gzip -1 -c {0} > {0}.img.gz", stage.text(part));
        must(run("sh", &["-c", &line], Duration::from_secs(20)));
    }
    let start = |node: &Node, name: &str, script: &str, is_ours: bool| {
        let path = if is_ours { format!("PATH={}:$PATH\n", stage.text("bin")) } else { String::new() };
        let server = stage.lab.sender().ipv4();
        let line = format!("{path}DIR={directory} NAME={name} SERVER={server} BYTES={bytes}\n{script}");
        must(node.start("sh", &["-c", &line]))
    };
    let names = ["ours", "stock1", "stock2"];
    let clients = [0, 1, 2].map(|at| start(stage.lab.receiver(at), names[at], client, at == 0));
    let sender = start(stage.lab.sender(), "server", server, true);
    finish(sender);
    clients.into_iter().for_each(finish);
    let log = must(std::fs::read_to_string(stage.path("ours.log")));
    assert!(log.contains("udpcast does not verify content"), "the first client is another program: {log}");
    for (name, part) in names.iter().flat_map(|name| ["d1p1", "d1p2"].map(|part| (name, part))) {
        let got = must(std::fs::read(stage.path(&format!("{name}-{part}"))));
        assert!(got == noise(part, bytes), "{name} has {} bytes of {part}, or others", got.len());
    }
}

/// Needs a kernel: udpcast's programs, loop devices and scripts.
#[test]
fn fog_restores_identical_partitions_to_loop_devices() {
    run_scripts(FOG_SERVER, FOG_CLIENT);
}

/// Needs a kernel: udpcast's programs and scripts.
#[test]
fn clonezilla_restores_identical_partitions() {
    run_scripts(CLONEZILLA_SERVER, CLONEZILLA_CLIENT);
}
