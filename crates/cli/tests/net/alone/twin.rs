//! Twins of real sessions: scenarios made from their reports and traces, which take as long and have the same rate.

use crate::kit::{FAIRCAST, Running, must, noise, print_line};
use faircast_testkit::{Congestion, EmulatedLab, TcpFlow, require_root};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A source with a fast receiver, a slow one, one behind a lossy path, one whose reports are lost as well, and one that shares its
/// bottleneck with TCP.
const PATHS: &str = "
    host source
    host sender
    host near groups=all
    host slow groups=all
    host lossy groups=all
    host deaf groups=all
    host shared groups=all
    host sink
    router r
    router s
    link source r rate=200M delay=5ms queue=droptail,1000
    link sender r rate=200M delay=5ms queue=droptail,1000
    link r near delay=5ms
    link r slow rate=5M delay=10ms queue=droptail,40
    link r lossy loss=bernoulli,0.1 back loss=none
    link r deaf loss=bernoulli,0.1
    link r s rate=10M delay=10ms queue=droptail,50
    link s shared
    link s sink";

/// Accepted difference between a session and its twin, as a part of the session's number.
const ACCEPTED: f64 = 0.15;

/// A lab, and the directory of its files.
struct Place<'a> {
    lab: &'a EmulatedLab,
    directory: &'a Path,
}

impl Place<'_> {
    fn path(&self, name: &str) -> String {
        self.directory.join(name).to_str().expect("the names are plain").to_owned()
    }

    /// Sends 6 MB from the source to some hosts. Returns the name of report and trace, and the time of the session in seconds.
    fn session(&self, hosts: &[&str], more: &[&str]) -> (String, f64) {
        let name = hosts.join("-");
        let (file, report, trace) =
            (self.path("file"), self.path(&format!("{name}.json")), self.path(&format!("{name}.sqlog")));
        must(std::fs::write(&file, noise(&name, 6_000_000)));
        let (group, expect) = ("239.255.70.14:5777", hosts.len().to_string());
        let start = |host: &&str| {
            let out = self.path(&format!("{name}-{host}"));
            let args = ["recv", "--json", "--group", group, "--host", host, "--out", &out];
            let mut running = Running::start(self.lab.host(host), &args);
            must(running.task.wait_for("\"opened\"", Duration::from_secs(20)));
            running
        };
        let receivers: Vec<Running> = hosts.iter().map(start).collect();
        let options = [
            "--json", "--no-key", "--group", group, "--expect", &expect, "--report", &report, "--trace",
            &trace,
        ];
        let args = [&["send", &file], &options[..], more].concat();
        let source = Running::start(self.lab.host("source"), &args).succeeds(60);
        receivers.into_iter().for_each(|receiver| drop(receiver.succeeds(10)));
        (name, source.number("seconds"))
    }

    /// Makes the twin of a session from a file with these options, and runs it. Returns the events.
    fn twin(&self, option: &str, file: &str, more: &[&str]) -> Vec<Value> {
        let (file, twin, results) = (self.path(file), self.path("twin.toml"), self.path("results"));
        let new = ["sim", "new", option, &file, "--out", &twin, "--force"];
        let run = ["sim", "run", &twin, "--json", "--out", &results];
        let done = [&new[..], more].concat();
        let done = [done.as_slice(), &run].map(|args| must(Command::new(FAIRCAST).args(args).output()));
        let lines = String::from_utf8_lossy(&done[1].stdout).into_owned();
        assert!(lines.contains("\"done\""), "{done:?}");
        lines.lines().map(|line| must(serde_json::from_str(line))).collect()
    }

    /// Checks that the claims of the twins of a session hold, by files of these types: their time and rate are near.
    fn compare(&self, name: &str, types: &[&str]) {
        for kind in types {
            let option = if *kind == "json" { "--from-report" } else { "--from-trace" };
            let file = format!("{name}.{kind}");
            let claims = self.twin(option, &file, &[]).into_iter().filter(|event| event["event"] == "claim");
            let claims: Vec<Value> = claims.collect();
            assert_eq!(claims.len(), 2, "{claims:?}");
            for claim in &claims {
                let what = format!("{option}: {}", claim["name"]);
                near(
                    &what,
                    number(claim, "measured"),
                    number(claim, "published"),
                    &self.path(&format!("{name}.json")),
                );
            }
        }
    }
}

fn number(event: &Value, field: &str) -> f64 {
    event[field].as_f64().unwrap_or_else(|| panic!("no number {field} in {event}"))
}

/// Checks that the number of a twin is near the real one.
fn near(what: &str, twin: f64, real: f64, report: &str) {
    let difference = twin / real - 1.0;
    print_line(&format!("twin: {what}: {real:.4e}, {:+.1} %", difference * 100.0));
    let report = || std::fs::read_to_string(report).unwrap_or_default();
    assert!(difference.abs() < ACCEPTED, "{what}: {twin} instead of {real}: {}", report());
}

/// Needs a kernel: sockets, a token bucket and Linux TCP shape the sessions.
#[test]
fn twins_have_the_time_and_the_rate_of_real_sessions() {
    let Some(root) = require_root() else { return };
    let lab = must(EmulatedLab::start(&root, PATHS));
    // In memory: a twin knows the network, and no disk that stalls because other programs write to it.
    let directory = must(tempfile::Builder::new().prefix("faircast-net-").tempdir_in("/dev/shm"));
    let place = Place { lab: &lab, directory: directory.path() };

    let (with_slow, _) = place.session(&["near", "slow"], &["--max", "10M"]);
    place.compare(&with_slow, &["json", "sqlog"]);
    let (_, took) = place.session(&["near"], &["--max", "10M"]);
    let without = place.twin("--from-report", &format!("{with_slow}.json"), &["--without", "slow"]);
    let completion = without.iter().find(|event| event["name"] == "session.completion");
    near(
        "without the slow host",
        number(completion.expect("a metric"), "mean"),
        took,
        &place.path("near-slow.json"),
    );

    let (lossy, _) = place.session(&["near", "lossy"], &[]);
    place.compare(&lossy, &["json"]);
    let (deaf, _) = place.session(&["near", "deaf"], &[]);
    place.compare(&deaf, &["json"]);

    let tcp = TcpFlow::new(Congestion::Cubic, Duration::from_secs(12));
    let tcp = must(tcp.start(lab.host("sender"), lab.host("sink")));
    let (beside_tcp, _) = place.session(&["near", "shared"], &[]);
    must(tcp.finish());
    place.compare(&beside_tcp, &["json", "sqlog"]);
    must(lab.stop());
}
