//! Sessions without feedback, from a host that receives nothing.

use crate::kit::{Ended, Running, Stage, must};
use faircast_testkit::{Damage, Lab, LabPlan, Root, require_root};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

/// Drops all packets to the source.
const DIODE: &str = "nft add table ip diode && nft 'add chain ip diode input { type filter hook input priority 0; policy drop; }' && \
     nft 'add rule ip diode input iif lo accept'";

/// Builds a lab whose source receives no packets.
fn stage(root: &Root, plan: LabPlan) -> Stage {
    let stage = Stage::shared(root, plan);
    let rule = Running::shell(stage.lab.sender(), DIODE).ends(10);
    assert_eq!(rule.code, 0, "{rule:?}");
    stage
}

fn keys(stage: &Stage) -> (String, String) {
    let (key, sign) = (stage.text("lab.key"), stage.text("lab.sign"));
    for args in [&["keygen", key.as_str()][..], &["keygen", "--sign", sign.as_str()][..]] {
        let made = Running::start(stage.lab.sender(), args).ends(10);
        assert_eq!(made.code, 0, "{made:?}");
    }
    (key, sign)
}

/// Checks that the source has sent this number of generations. It must report no receivers, because their outcomes are unknown.
fn is_honest(sent: &Ended, rounds: f64) {
    assert_eq!((sent.number("rounds"), sent.number("receivers")), (rounds, 0.0), "{sent:?}");
}

/// Needs a kernel: a host that receives nothing.
#[test]
fn receivers_behind_a_diode_complete_a_signed_session() {
    let Some(root) = require_root() else { return };
    let plan = Lab::plan().receivers(3).damage([0], Damage::loss(0.01)).damage([1], Damage::loss(0.05));
    let stage = stage(&root, plan);
    let (key, sign) = keys(&stage);
    let file = stage.file("image", 4_000_000);
    let public = format!("{sign}.pub");
    let sealed = ["--one-way", "--key", &key, "--verify-key", &public];
    let receivers = [0, 1].map(|at| stage.recv(at, &format!("r{at}"), &sealed));
    let mut source = stage
        .send(&[&file], &["--one-way", "--rate", "20M", "--repeat", "4", "--key", &key, "--sign-key", &sign]);
    source.prints("\"progress\"", 20);
    source.reaches(0.5, 20);
    let late = stage.recv(2, "r2", &sealed);
    for receiver in receivers.into_iter().chain([late]) {
        receiver.succeeds(30);
    }
    is_honest(&source.succeeds(30), 4.0);
    assert!(["r0", "r1", "r2"].iter().all(|host| stage.has(host, &file)));
}

/// Needs a kernel: a host that receives nothing, and a path that fails for seconds.
#[test]
fn outage_behind_a_diode_costs_no_further_generation() {
    let Some(root) = require_root() else { return };
    let loss = Damage::loss(0.02);
    let stage = stage(&root, Lab::plan().damage([0], loss));
    let (file, small) = (stage.file("image", 20_000_000), stage.file("small", 40_000));
    let fails_for_a_second = || {
        stage.lab.damage(stage.lab.receiver(0), Damage::loss(1.0));
        std::thread::sleep(Duration::from_secs(1));
        stage.lab.damage(stage.lab.receiver(0), loss);
    };
    let receiver = stage.recv(0, "r0", &["--one-way"]);
    let once = ["--one-way", "--rate", "20M", "--repeat", "1", "--burst", "1", "--overhead", "30%"];
    let mut source = stage.send(&[&file], &once);
    source.reaches(0.4, 30);
    fails_for_a_second();
    is_honest(&source.succeeds(40), 1.0);
    receiver.succeeds(40);
    let receiver = stage.recv(0, "r1", &["--one-way"]);
    let mut source = stage.send(&[&small], &["--one-way", "--rate", "20M", "--burst", "2"]);
    source.prints("\"opened\"", 20);
    fails_for_a_second();
    is_honest(&source.succeeds(40), 3.0);
    receiver.succeeds(40);
    assert!(stage.has("r0", &file) && stage.has("r1", &small));
}

/// Needs a kernel: a host that receives nothing, and processes that end and resume.
#[test]
fn incomplete_receiver_resumes_with_a_later_session() {
    let Some(root) = require_root() else { return };
    let stage = stage(&root, Lab::plan().damage([0], Damage::loss(0.11)));
    let file = stage.file("image", 6_000_000);
    let once = ["--one-way", "--rate", "30M", "--repeat", "1", "--burst", "0"];
    // With a loss of 11 %, one generation completes about half of the blocks. With a loss of 2 %, it completes all blocks.
    let mut sessions = 0;
    let complete = loop {
        sessions += 1;
        let receiver = stage.recv(0, "r0", &["--one-way"]);
        is_honest(&stage.send(&[&file], &once).succeeds(30), 1.0);
        let ended = receiver.ends(30);
        if ended.code == 0 {
            break ended;
        }
        assert!(ended.message().contains("ended its repetitions"), "{ended:?}");
        let names_file = |warning: &serde_json::Value| warning.to_string().contains("image lacks ");
        assert!(ended.all("warning").any(names_file), "{ended:?}");
        assert!(sessions < 4, "{ended:?}");
        stage.lab.damage(stage.lab.receiver(0), Damage::loss(0.02));
    };
    assert!(sessions > 1 && complete.number("resumed_bytes") > 0.0, "{sessions} sessions: {complete:?}");
    assert!(stage.has("r0", &file));
}

/// Needs a kernel: a host that receives nothing.
#[test]
fn error_of_a_source_without_answers_names_option_one_way() {
    let Some(root) = require_root() else { return };
    let stage = stage(&root, Lab::plan());
    let file = stage.file("image", 1_000);
    let receiver = stage.recv(0, "r0", &["--one-way", "--join-timeout", "20"]);
    let sent = stage.send(&[&file], &["--join-timeout", "2"]).ends(20);
    assert_eq!(sent.code, 1, "{sent:?}");
    assert!(sent.message().contains("`send --one-way`"), "{sent:?}");
    assert_eq!(receiver.ends(40).code, 1, "it got nothing");
    let needs = stage.recv(0, "r1", &["--join-timeout", "3"]);
    let source = stage.send(&[&file], &["--one-way", "--rate", "1M", "--repeat", "10s"]);
    let refused = needs.ends(20);
    assert!(refused.code == 1 && refused.message().contains("use --one-way"), "{refused:?}");
    source.succeeds(30);
    assert!(!stage.path("r1").join("image").exists(), "it follows nothing");
}

/// Needs a kernel: neighbours that cannot be resolved through a diode.
#[test]
fn session_to_one_host_needs_a_static_neighbour_entry() {
    let Some(root) = require_root() else { return };
    let stage = stage(&root, Lab::plan().damage([0], Damage::loss(0.02)));
    let (file, at) = (stage.file("image", 2_000_000), stage.lab.receiver(0).ipv4().to_string());
    let stage = stage.with_group(&at);
    let no_arp = "nft add table arp diode && nft 'add chain arp diode input { type filter hook input priority 0; policy drop; }'";
    assert_eq!(Running::shell(stage.lab.sender(), no_arp).ends(10).code, 0);
    let send = || stage.send(&[&file], &["--one-way", "--rate", "20M", "--burst", "2"]);
    let short = stage.file("short", 20_000);
    let short = stage.send(&[&short], &["--one-way", "--rate", "20M", "--repeat", "1", "--burst", "0"]);
    for unresolved in [short.ends(40), send().ends(40)] {
        assert!(unresolved.code == 3 && unresolved.message().contains("ip neigh replace"), "{unresolved:?}");
    }
    stage.send(&[&file], &[]).ends(20).failed(2, "not a multicast address");
    stage.recv(0, "r0", &[]).ends(20).failed(2, "not a multicast address");
    let mac = "ip -o link show dev eth0 | sed 's/.*ether \\([0-9a-f:]*\\).*/\\1/'";
    let mac = Running::shell(stage.lab.receiver(0), mac).ends(10).stdout;
    let entry = format!("ip neigh replace {at} lladdr {} dev eth0 nud permanent", mac.trim());
    assert_eq!(Running::shell(stage.lab.sender(), &entry).ends(10).code, 0);
    let receiver = stage.recv(0, "r0", &["--one-way"]);
    is_honest(&send().succeeds(40), 3.0);
    receiver.succeeds(40);
    assert!(stage.has("r0", &file));
}

/// Needs a kernel: a host that receives nothing, and events of a directory.
#[test]
fn lost_session_of_a_watched_directory_is_named_by_its_number() {
    let Some(root) = require_root() else { return };
    let loss = Damage::loss(0.01);
    let stage = stage(&root, Lab::plan().damage([0], loss));
    let (key, sign) = keys(&stage);
    let (inbox, sent, public) = (stage.text("inbox"), stage.text("sent"), format!("{sign}.pub"));
    must(std::fs::create_dir(&inbox));
    let mut receiver = stage.recv(0, "r0", &["--one-way", "--serve", "--key", &key, "--verify-key", &public]);
    let watch = ["--watch", &inbox, "--sent-to", &sent, "--one-way", "--rate", "20M", "--repeat", "2"];
    let signed = ["--burst", "0.5", "--key", &key, "--sign-key", &sign];
    let mut source = stage.send(&[], &[&watch[..], &signed].concat());
    let path = |number: u32| format!("{sent}/file{number}");
    for number in 1..=5 {
        if number == 3 {
            stage.lab.damage(stage.lab.receiver(0), Damage::loss(1.0));
        }
        let made = stage.file(&format!("made{number}"), 200_000 + number as usize);
        must(std::fs::rename(made, format!("{inbox}/file{number}")));
        source.prints(&format!("\"number\":{number},\"name\":\"file{number}\""), 20);
        let end = Instant::now() + Duration::from_secs(120);
        while !Path::new(&path(number)).exists() {
            assert!(Instant::now() < end, "file {number} was not sent");
            std::thread::sleep(Duration::from_millis(20));
        }
        stage.lab.damage(stage.lab.receiver(0), loss);
    }
    receiver.prints("\"event\":\"missed\"", 20);
    let record = stage.path("r0").join(".faircast/sequences.json");
    let record = || serde_json::from_slice::<Value>(&std::fs::read(&record).unwrap_or_default());
    let end = Instant::now() + Duration::from_secs(60);
    while !record().is_ok_and(|record| record["sources"][0]["last"] == 5) {
        assert!(Instant::now() < end, "{:?}", record());
        std::thread::sleep(Duration::from_millis(20));
    }
    let (one, is) = (&must(record())["sources"][0], |number: u32| stage.has("r0", &path(number)));
    assert_eq!(
        (&one["first"], &one["received"], one["missing"].as_array().map(Vec::len)),
        (&1.into(), &4.into(), Some(1))
    );
    assert_eq!((&one["missing"][0]["first"], &one["missing"][0]["last"]), (&3.into(), &3.into()));
    assert_eq!([1, 2, 3, 4, 5].map(is), [true, true, false, true, true]);
    source.task.interrupt();
    receiver.task.interrupt();
    assert_eq!(source.ends(20).code, 0);
    let received = receiver.ends(20);
    let missed = received.all("missed").next().expect("the receiver names it");
    assert_eq!(
        (&missed["first"], &missed["last"], &missed["host"]),
        (&3.into(), &3.into(), &"source".into())
    );
}
