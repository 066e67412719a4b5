//! Receive windows between real hosts: a receiver that accepts data slowly, or pauses briefly, loses no data.

use crate::kit::{FAIRCAST, Running, Stage, must, noise, print_line};
use faircast_testkit::{Lab, require_root, run};
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Rates of the reader of standard output, in bytes per second, and the number of bytes at each rate.
const PLAN: [(f64, usize); 3] = [(10e6, 15_000_000), (30e6, 30_000_000), (10e6, 15_000_000)];

/// Maximum length of a read, in bytes.
const BITE: usize = 65_536;

/// Reads all of a child's standard output at the rates of `PLAN`. Returns the bytes, and the duration at each rate.
fn read_slowly(child: &mut Child) -> (Vec<u8>, Vec<f64>) {
    let mut pipe = child.stdout.take().expect("it is piped");
    let (mut all, mut took) = (Vec::new(), Vec::new());
    let mut bite = vec![0; BITE];
    for (rate, bytes) in PLAN {
        let (mut began, end) = (None, all.len() + bytes);
        while all.len() < end {
            let room = BITE.min(end - all.len());
            let read = pipe.read(&mut bite[..room]).expect("a pipe can be read");
            if read == 0 {
                break;
            }
            all.extend_from_slice(&bite[..read]);
            began.get_or_insert_with(Instant::now);
            std::thread::sleep(Duration::from_secs_f64(read as f64 / rate));
        }
        took.push(began.map_or(0.0, |began: Instant| began.elapsed().as_secs_f64()));
    }
    pipe.read_to_end(&mut all).expect("a pipe can be read");
    (all, took)
}

/// Needs a kernel: a pipe that is read slowly.
#[test]
fn slow_reader_of_a_pipe_limits_the_rate_without_packet_loss() {
    let Some(root) = require_root() else { return };
    let stage = Stage::new(&root, Lab::plan().receivers(3));
    let bytes: usize = PLAN.iter().map(|(_, bytes)| bytes).sum();
    let file = stage.file("image", bytes);
    let others = [stage.recv(1, "r1", &[]), stage.recv(2, "r2", &[])];
    let log = must(std::fs::File::create(stage.path("log")));
    let args = ["recv", "--stdout", "--host", "slow", "--group", &stage.group];
    let spawned = must(stage.lab.receiver(0).inside(|| {
        Command::new(FAIRCAST).args(args).stdout(Stdio::piped()).stderr(Stdio::from(log)).spawn()
    }));
    let mut slow = must(spawned);
    let source = stage.send(&[&file], &["--expect", "3", "--join-timeout", "20"]);
    let (got, took) = read_slowly(&mut slow);
    let source = source.succeeds(60);
    assert!(must(slow.wait()).success(), "{}", must(std::fs::read_to_string(stage.path("log"))));
    assert!(got == noise("image", bytes), "all of it, in order");
    let rates: Vec<f64> =
        PLAN.iter().zip(&took).map(|((_, bytes), took)| *bytes as f64 / took / 1e6).collect();
    print_line(&format!("read at most at 10, 30 and 10 MB/s; came at {rates:.1?} MB/s"));
    assert!(rates.iter().zip(PLAN).all(|(got, (most, _))| *got > 0.4e-6 * most), "{rates:?}: {source:?}");
    let limited = source.all("progress").filter(|line| line["limited_by"] == "window").count();
    assert!(limited > 0, "it says what limits it: {source:?}");
    let named = source.all("progress").any(|line| line["window_of"] == "slow");
    assert!(named, "and who: {source:?}");
    for other in others {
        let other = other.succeeds(10);
        assert_eq!((other.number("lost"), other.number("dropped_local")), (0.0, 0.0), "{other:?}");
    }
    let log = must(std::fs::read_to_string(stage.path("log")));
    assert!(log.lines().last().is_some_and(|line| line.contains("loss 0 %")), "{log}");
}

/// Needs a kernel: a pipe whose reader pauses.
#[test]
fn source_waits_for_a_pausing_pipe_reader_without_a_timeout() {
    let Some(root) = require_root() else { return };
    let stage = Stage::new(&root, Lab::plan().receivers(2));
    let file = stage.file("image", 20_000_000);
    let other = stage.recv(1, "r1", &[]);
    let (got, log) = (stage.text("got"), stage.text("log"));
    let group = &stage.group;
    let line = format!(
        "{FAIRCAST} recv --stdout --host slow --group {group} 2> {log} | (head -c 1000000; sleep 3; cat) > {got}"
    );
    let slow = Running::shell(stage.lab.receiver(0), &line);
    let source = stage.send(&[&file], &["--expect", "2", "--join-timeout", "20"]).succeeds(60);
    assert_eq!(slow.ends(20).code, 0);
    assert!(must(std::fs::read(stage.path("got"))) == noise("image", 20_000_000), "all of it, in order");
    // The source waits for this receiver, which sends feedback even while the reader of its output pauses. The source would wait
    // only a second for a silent receiver.
    assert!(source.number("seconds") > 2.0, "it has waited: {source:?}");
    let log = must(std::fs::read_to_string(stage.path("log")));
    assert!(log.lines().last().is_some_and(|line| line.contains("loss 0 %")), "{log}");
    let other = other.succeeds(10);
    assert_eq!((other.number("lost"), other.number("dropped_local")), (0.0, 0.0), "{other:?}");
}

/// Needs a kernel: a stopped process and its socket buffer.
#[test]
fn short_pause_of_a_receiver_with_a_small_buffer_causes_no_loss() {
    let Some(root) = require_root() else { return };
    let stage = Stage::new(&root, Lab::plan().receivers(2));
    let file = stage.file("image", 60_000_000);
    // Without CAP_NET_ADMIN, the system grants the default maximum buffer of 208 KiB.
    let (out, group) = (stage.text("r0"), &stage.group);
    let line = format!(
        "exec setpriv --bounding-set=-net_admin {FAIRCAST} recv --json --group {group} --host r0 --out {out}"
    );
    let mut stopped = Running::shell(stage.lab.receiver(0), &line);
    stopped.prints("\"opened\"", 20);
    let other = stage.recv(1, "r1", &[]);
    let mut source = stage.send(&[&file], &["--expect", "2", "--join-timeout", "20", "--max", "200M"]);
    source.prints("\"progress\"", 20);
    let signal = |name| must(run("kill", &[name, &stopped.task.pid().to_string()], Duration::from_secs(5)));
    for _ in 0..3 {
        signal("-STOP");
        std::thread::sleep(Duration::from_millis(300));
        signal("-CONT");
        std::thread::sleep(Duration::from_millis(100));
    }
    stopped.prints("\"done\"", 60);
    let source = source.succeeds(60);
    for receiver in [stopped, other] {
        let ended = receiver.succeeds(10);
        assert_eq!(
            (ended.number("lost"), ended.number("dropped_local")),
            (0.0, 0.0),
            "{ended:?}: {source:?}"
        );
    }
    print_line(&format!("60 MB with three pauses of 0.3 s: {:.1} s", source.number("seconds")));
}
