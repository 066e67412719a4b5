//! Active routers between real hosts: two routers in series forward one session's packets and aggregate the feedback. In one
//! test, a router is killed.

use crate::kit::{FAIRCAST, Running, must, noise, print_line};
use faircast_testkit::{Chain, Company, Root, Task, require_root, run};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;
use tempfile::TempDir;

const GROUP: &str = "239.255.70.31";

/// Two active routers, three receivers behind each, and a directory.
pub struct Stage {
    pub chain: Chain,
    group: String,
    directory: TempDir,
}

impl Stage {
    pub fn new(root: &Root, company: Company) -> Stage {
        static PORT: AtomicU16 = AtomicU16::new(21_000);
        let chain = must(Chain::build(root, &[3, 3], company));
        let directory = must(tempfile::Builder::new().prefix("faircast-net-").tempdir());
        Stage { chain, group: format!("{GROUP}:{}", PORT.fetch_add(1, Ordering::Relaxed)), directory }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("the names are plain").to_owned()
    }

    pub fn file(&self, name: &str, len: usize) -> String {
        must(std::fs::write(self.path(name), noise(name, len)));
        self.text(name)
    }

    /// Starts an active router of this kind.
    pub fn hop(&self, at: usize, kind: &str, more: &[&str]) -> Running {
        let (from, to) = (format!("{}@above", self.group), format!("{}@below", self.group));
        let (role, control) = (format!("router-{kind}"), self.text(&format!("hop{at}.sock")));
        let host = format!("hop{at}");
        let place = ["relay", "--json", "--role", &role, "--from", &from, "--to", &to, "--host", &host];
        let args = [&place[..], &["--control", &control, "--ttl", "8"], more].concat();
        let mut hop = Running::start(self.chain.hop(at), &args);
        hop.prints("\"opened\"", 20);
        hop
    }

    pub fn receivers(&self, more: &[&str]) -> Vec<Running> {
        let one = |at: usize| {
            let (host, out) = (format!("r{at}"), self.text(&format!("r{at}")));
            let place = ["recv", "--json", "--group", &self.group, "--host", &host, "--out", &out];
            let mut receiver = Running::start(self.chain.receiver(at), &[&place[..], more].concat());
            receiver.prints("\"opened\"", 20);
            receiver
        };
        (0..self.chain.receivers()).map(one).collect()
    }

    pub fn send(&self, file: &str, scheme: &str, more: &[&str]) -> Running {
        let place = ["send", "--json", file, "--group", &self.group, "--expect", "6", "--join-timeout", "30"];
        let args = [&place[..], &["--host", "source", "--ttl", "8", "--cc", scheme], more].concat();
        Running::start(self.chain.source(), &args)
    }

    /// Returns a router's status of the session that it forwards.
    pub fn status(&self, at: usize, more: &[&str]) -> String {
        Running::relay_status(self.chain.hop(at), &self.text(&format!("hop{at}.sock")), more)
    }

    pub fn counts(&self, at: usize) -> Value {
        let all: Value = must(serde_json::from_str(&self.status(at, &["--json"])));
        all["sessions"][0]["hop"].clone()
    }

    /// Starts forwarding of the group by the kernel, at both routers.
    pub fn forwarded(&self) -> [Task; 2] {
        [0, 1].map(|at| must(self.chain.forward(at, must(GROUP.parse()))))
    }

    pub fn everybody_has(&self, file: &str) {
        let content = must(std::fs::read(file));
        let name = PathBuf::from(file).file_name().expect("it has a name").to_owned();
        for at in 0..self.chain.receivers() {
            let got = must(std::fs::read(self.path(&format!("r{at}")).join(&name)));
            assert!(got == content, "r{at} has other bytes");
        }
    }
}

pub fn number(of: &Value, field: &str) -> u64 {
    of[field].as_u64().unwrap_or(0)
}

/// The schemes that have routers.
pub const KINDS: [&str; 2] = ["raccoom", "rmanp"];

/// Needs a kernel: a process is killed while nftables queues packets to it.
#[test]
fn kernel_forwards_the_session_after_its_router_is_killed() {
    let Some(root) = require_root() else { return };
    for kind in KINDS {
        let stage = Stage::new(&root, Company::Shared);
        let file = stage.file("image", 8_000_000);
        let daemons = stage.forwarded();
        let [first, second] = [stage.hop(0, kind, &[]), stage.hop(1, kind, &[])];
        let mut receivers = stage.receivers(&[]);
        let source = stage.send(&file, kind, &["--no-key", "--max", "16M"]);
        receivers[0].reaches(0.3, 60);
        // The kernel also forwards the session until a router suspends this forwarding. At first, the second router or a receiver
        // may therefore follow packets that the kernel forwards. It changes to the packets of the upstream router after two
        // seconds without packets that the kernel has forwarded.
        let on_the_way = |seen: &[Value; 2]| seen.iter().all(|hop| number(hop, "passed") > 100);
        let mut seen = [stage.counts(0), stage.counts(1)];
        let at_once = on_the_way(&seen);
        for _ in 0..40 {
            if on_the_way(&seen) {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
            seen = [stage.counts(0), stage.counts(1)];
        }
        assert!(on_the_way(&seen), "{kind}: both are on the way: {seen:?}");
        let printed: String = receivers[3..].iter().chain([&second]).map(|one| one.task.stdout()).collect();
        assert!(
            at_once || printed.contains("is silent; the session continues with"),
            "{kind}: late for another reason: {seen:?}\n{printed}"
        );
        first.crashes();
        let ended = source.succeeds(120);
        let ends: Vec<_> = receivers.into_iter().map(|receiver| receiver.succeeds(60)).collect();
        stage.everybody_has(&file);
        let packets = ends[0].number("packets") / ended.number("packets");
        print_line(&format!(
            "{kind}: the first hop killed at 30 %: {:.1} s, {packets:.2} of the packets heard by the first receiver; {:?}",
            ended.number("seconds"),
            ended.done()
        ));
        assert!(packets < 1.1, "{kind}: the kernel forwarded what the hop did as well: {packets}");
        second.crashes();
        drop(daemons);
    }
}

/// Needs a kernel: active routers read packets through nftables and smcroute.
#[test]
fn routers_of_two_schemes_forward_sealed_sessions() {
    let Some(root) = require_root() else { return };
    let stage = Stage::new(&root, Company::Shared);
    let [group_key, hop_key] = ["lab.key", "relay.key"].map(|name| stage.text(name));
    must(run(FAIRCAST, &["keygen", &group_key], Duration::from_secs(10)));
    must(run(FAIRCAST, &["keygen", "--relay", &group_key, &hop_key], Duration::from_secs(10)));
    let daemons = stage.forwarded();
    let mut hops = [0, 1].map(|at| stage.hop(at, KINDS[at], &["--key", &hop_key]));
    for scheme in [KINDS[0], KINDS[1], "ormcc"] {
        let file = stage.file(scheme, 2_000_000);
        let receivers = stage.receivers(&["--key", &group_key]);
        let source = stage.send(&file, scheme, &["--key", &group_key, "--max", "16M"]);
        source.succeeds(60);
        receivers.into_iter().for_each(|receiver| drop(receiver.succeeds(30)));
        stage.everybody_has(&file);
    }
    // Each router has forwarded only the session of its own scheme.
    for (hop, kind) in hops.iter_mut().zip(KINDS) {
        let printed = hop.task.stdout();
        let joined = printed.lines().filter(|line| line.contains("\"event\":\"joined\"")).count();
        assert_eq!(joined, 1, "{kind}: {printed}");
        assert!(printed.contains("the forwarding of its packets is left to the kernel"), "{kind}: {printed}");
    }
    hops.into_iter().for_each(Running::crashes);
    drop(daemons);
}
