//! Files that change during the transfer are withdrawn, and all other files arrive.

use super::node::{ReceiverNode, SourceNode};
use super::tree::{branch, schemes};
use super::*;
use crate::config::{Repeat, ReplayPolicy};
use crate::relay::RouterKind;
use faircast_core::rng::Rng;
use faircast_core::schemes::{CATALOGUE, Scheme};
use faircast_wire::{GroupKey, SigningKey, VerifyKeys};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// File contents at the start of the session, by file name.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// A file that the source begins to send after more than a second.
const LATE: &str = "m.log";

fn path() -> Link {
    Link::millis(5).mbps(20.0).fifo(100_000)
}

/// Replaces the content of a source with a tree of files, and restarts the source.
pub(super) fn tree(net: &mut Net, source: usize, seed: u64) -> Files {
    net.kill_source(source);
    let files = plant(&net.sources[source].content, seed);
    net.start_source(source);
    files
}

/// Replaces the content of a source with files of many sizes. One of these files has a second name (a hard link).
pub(super) fn plant(content: &Path, seed: u64) -> Files {
    fs::remove_file(content).expect("our own file");
    fs::create_dir(content).expect("its place is free");
    let mut rng = Rng::new(seed, 1 << 41);
    let small = (0..30).map(|n| (format!("c/{n:02}"), 500 + n * 150));
    let sizes = [("a", 60_000), ("b", 150_000), (LATE, 500_000), ("n", 3_000), ("o", 200_000), ("z", 20_000)];
    let sizes = sizes.map(|(name, size)| (name.to_owned(), size)).into_iter().chain(small);
    fs::create_dir(content.join("c")).expect("a directory is made");
    let mut files: Files =
        sizes.map(|(name, size)| (name, (0..size).map(|_| rng.bits() as u8).collect())).collect();
    for (name, bytes) in &files {
        fs::write(content.join(name), bytes).expect("room for the content");
    }
    fs::hard_link(content.join(LATE), content.join("y")).expect("one filesystem");
    files.insert("y".to_owned(), files[LATE].clone());
    files
}

fn is_layered(scheme: &str) -> bool {
    scheme.parse::<Scheme>().is_ok_and(|scheme| scheme.layers() > 1)
}

fn append(path: &Path) {
    let mut file = File::options().append(true).open(path).expect("our own file");
    file.write_all(b"one line more\n").expect("room");
}

/// Checks that all receivers have exactly the files that were not withdrawn, with their original content. Also checks that both
/// endpoints name the withdrawn files. Returns these names.
fn assert_rest_arrived(
    source: &SourceNode,
    receivers: &[ReceiverNode],
    files: &Files,
    changed: &[&str],
) -> BTreeSet<String> {
    let sent = source.report();
    let mut all = BTreeSet::new();
    for node in receivers {
        let report = node.report();
        let withdrawn: BTreeSet<&str> = report
            .withdrawn
            .iter()
            .map(|name| name.strip_prefix("content/").expect("it lies there"))
            .collect();
        assert_eq!((report.ok, report.withdrawn_count), (withdrawn.is_empty(), withdrawn.len() as u64));
        assert!(withdrawn.iter().all(|name| changed.contains(name)), "{withdrawn:?}");
        assert_eq!(report.files, (files.len() - withdrawn.len()) as u64);
        assert_eq!(sent.bytes, report.bytes, "both ends count the same content");
        assert!(sent.moved_bytes <= sent.bytes, "{sent:?}");
        for (name, bytes) in files {
            let got = fs::read(node.dir.join("content").join(name)).ok();
            let wanted = Some(bytes).filter(|_| !withdrawn.contains(name.as_str()));
            assert!(got.as_ref() == wanted, "{name} at {}: {:?}", node.host, got.map(|got| got.len()));
        }
        all.extend(withdrawn.into_iter().map(str::to_owned));
    }
    let named = |name: &String| {
        sent.unsent.iter().any(|one| one.path.ends_with(name) && one.reason.contains("changed"))
    };
    // The source reports a file with several names by its first name only.
    assert!(all.iter().filter(|name| *name != "y").all(named), "{all:?} {:?}", sent.unsent);
    assert_eq!((sent.ok, sent.incomplete.len()), (sent.unsent.is_empty(), 0), "{sent:?}");
    all
}

fn offer(scheme: &'static str) -> Offer {
    Offer::bytes(1).by(scheme).at_most_mbps(4.0).expect(2).in_blocks_of(32)
}

#[test]
fn changed_file_is_withdrawn_and_the_rest_arrives() {
    for entry in CATALOGUE {
        for changes in [&[LATE][..], &["a", "c/03", LATE, "n"][..]] {
            let mut net = Net::new(21);
            net.receivers(1, path(), Link::millis(5));
            net.receivers(1, path().losing(0.03), Link::millis(5));
            let source = net.source(offer(entry.name));
            let files = tree(&mut net, source, 21);
            // A layered session soon sends symbols of all blocks, so here the files change immediately.
            net.run_for(Span::from_millis(if is_layered(entry.name) { 0 } else { 700 }));
            let content = net.sources[source].content.clone();
            changes.iter().for_each(|name| append(&content.join(name)));
            net.run_to_end(secs(200));
            let changed = [changes, &["y"]].concat();
            let withdrawn = assert_rest_arrived(&net.sources[source], &net.receivers, &files, &changed);
            assert!(withdrawn.contains(LATE) && withdrawn.contains("y"), "{}: {withdrawn:?}", entry.name);
        }
    }
}

#[test]
fn vanished_file_is_withdrawn_from_sealed_and_signed_sessions() {
    let (key, sign) = (GroupKey::from_bytes([7; 32]), SigningKey::from_seed([8; 32]));
    for is_signed in [false, true] {
        for scheme in ["ormcc", "rlc"] {
            let mut net = Net::new(22);
            let all = net.receivers_with(2, path().losing(0.02), Link::millis(5), None, Some(key.clone()));
            let sealed = offer(scheme).sealed(key.clone());
            let source = net.source(if is_signed { sealed.signed(sign.clone()) } else { sealed });
            if is_signed {
                for receiver in all.clone() {
                    net.receivers[receiver].verify = Some(VerifyKeys::from(sign.verify_key()));
                    net.start_receiver(receiver);
                }
            }
            let files = tree(&mut net, source, 22);
            net.run_for(Span::from_millis(if is_layered(scheme) { 0 } else { 600 }));
            let content = net.sources[source].content.clone();
            fs::remove_file(content.join("o")).expect("our own file");
            append(&content.join("b"));
            net.run_to_end(secs(200));
            let withdrawn = assert_rest_arrived(&net.sources[source], &net.receivers, &files, &["b", "o"]);
            assert!(withdrawn.contains("o"), "{scheme}: {withdrawn:?}");
            let forged = all.map(|receiver| net.receivers[receiver].report().forged_blocks).sum::<u64>();
            assert_eq!(forged, 0, "{scheme}: nothing was forged");
        }
    }
}

#[test]
fn late_joiner_gets_the_remaining_files_after_a_withdrawal() {
    for entry in CATALOGUE {
        let mut net = Net::new(23);
        net.receivers(2, path().losing(0.01), Link::millis(5));
        net.kill_receiver(1);
        let source = net.source(offer(entry.name).at_most_mbps(1.5).wait_secs(20));
        let files = tree(&mut net, source, 23);
        net.sources[source].offer.start.start();
        net.run_for(Span::from_millis(700));
        let content = net.sources[source].content.clone();
        ["a", "c/10", LATE].iter().for_each(|name| append(&content.join(name)));
        net.run_for(Span::from_millis(200));
        net.start_receiver(1);
        net.run_to_end(secs(300));
        assert_rest_arrived(&net.sources[source], &net.receivers, &files, &["a", "c/10", LATE, "y"]);
    }
}

#[test]
fn next_session_delivers_withdrawn_files() {
    let mut net = Net::new(24);
    let all = net.receivers(2, path().losing(0.01), Link::millis(5));
    let source = net.source(offer("ormcc"));
    let mut files = tree(&mut net, source, 24);
    net.run_for(Span::from_millis(700));
    let content = net.sources[source].content.clone();
    append(&content.join(LATE));
    net.run_for(Span::from_millis(500));
    // Restart the source during the session: receivers resume with the blocks that they have.
    net.kill_source(source);
    for name in [LATE, "y"] {
        files.insert(name.to_owned(), fs::read(content.join(LATE)).expect("our own file"));
    }
    net.start_source(source);
    net.run_to_end(secs(60));
    let withdrawn = assert_rest_arrived(&net.sources[source], &net.receivers, &files, &[]);
    assert!(withdrawn.is_empty());
    assert!(all.map(|receiver| net.receivers[receiver].report().resumed_bytes).all(|bytes| bytes > 100_000));
}

#[test]
fn one_way_session_continues_without_changed_files() {
    let mut net = Net::new(25);
    let all = net.receivers(2, path().losing(0.02), Link::millis(5));
    for receiver in all.clone() {
        net.receivers[receiver].replay_policy = ReplayPolicy::Clock;
        net.start_receiver(receiver);
    }
    let source = net.source(Offer::bytes(1).in_blocks_of(32).one_way_at_mbps(4.0, Repeat::Rounds(4)));
    let files = tree(&mut net, source, 25);
    net.run_for(Span::from_millis(2_000));
    let content = net.sources[source].content.clone();
    [LATE, "c/20"].iter().for_each(|name| append(&content.join(name)));
    net.run_to_end(secs(60));
    let withdrawn = assert_rest_arrived(&net.sources[source], &net.receivers, &files, &[LATE, "y", "c/20"]);
    assert!(withdrawn.contains(LATE));
}

/// Files change in random ways at random times. The sessions end, and no receiver gets wrong content.
#[test]
fn unchanged_files_arrive_despite_random_changes() {
    for seed in 0..40 {
        let mut rng = Rng::new(seed, 1 << 42);
        let mut net = Net::new(seed);
        net.receivers(1, path().losing(0.05 * rng.unit()), Link::millis(5));
        net.receivers(1, path(), Link::millis(5).losing(0.1 * rng.unit()));
        let scheme = CATALOGUE[rng.below(CATALOGUE.len() as u64) as usize].name;
        let source = net.source(offer(scheme));
        let files = tree(&mut net, source, seed);
        let (content, mut changed) = (net.sources[source].content.clone(), vec!["y"]);
        for _ in 0..1 + rng.below(6) {
            net.run_for(Span::from_millis(rng.below(900)));
            let name = files.keys().nth(rng.below(files.len() as u64) as usize).expect("there is one");
            let place = content.join(name);
            match rng.below(3) {
                0 => drop(fs::remove_file(place)),
                1 if place.exists() => append(&place),
                2 if place.exists() => fs::write(&place, b"short").expect("room"),
                _ => {}
            }
            // Both names refer to the same file.
            changed.extend(if name == "y" { LATE } else { name.as_str() }.split_terminator('\n'));
        }
        net.run_to_end(secs(300));
        assert_rest_arrived(&net.sources[source], &net.receivers, &files, &changed);
    }
}

#[test]
fn withdrawals_reach_receivers_behind_relays_with_every_scheme() {
    for name in schemes() {
        let mut tree = Net::of(26, Offer::bytes(1).by(name).expect(4).at_most_mbps(4.0).in_blocks_of(32));
        let link = || Link::millis(3).mbps(20.0).fifo(100_000).losing(0.01);
        let upper = tree.relay(Head::Source(0), 1, 64 << 20, link());
        let lower = tree.relay(branch(upper, 0), 1, 300_000, link());
        tree.behind(Head::Source(0), 1, link());
        tree.behind(branch(upper, 0), 1, link());
        tree.behind(branch(lower, 0), 2, link());
        let content = tree.sources[0].content.clone();
        let files = plant(&content, 26);
        tree.start();
        let soon = Time::ZERO + Span::from_millis(1_200);
        tree.run_until(secs(60), |tree| tree.now >= soon);
        ["a", "c/07", LATE].iter().for_each(|name| append(&content.join(name)));
        tree.run_to_end(secs(300));
        let changed = ["a", "c/07", LATE, "y"];
        let withdrawn = assert_rest_arrived(&tree.sources[0], &tree.receivers, &files, &changed);
        assert!(withdrawn.contains(LATE), "{name}: {withdrawn:?}");
    }
}

#[test]
fn withdrawals_reach_receivers_behind_routers() {
    for (name, kind) in [("raccoom", RouterKind::Raccoom), ("rmanp", RouterKind::Rmanp)] {
        let mut tree = Net::of(27, Offer::bytes(1).by(name).expect(3).at_most_mbps(4.0).in_blocks_of(32));
        let link = || Link::millis(3).mbps(20.0).fifo(100_000).losing(0.01);
        let hop = tree.hop(Head::Source(0), kind, 2, link());
        tree.behind(branch(hop, 0), 2, link());
        tree.behind(branch(hop, 1), 1, link());
        let content = tree.sources[0].content.clone();
        let files = plant(&content, 27);
        tree.start();
        let soon = Time::ZERO + Span::from_millis(1_200);
        tree.run_until(secs(60), |tree| tree.now >= soon);
        ["b", LATE].iter().for_each(|name| append(&content.join(name)));
        tree.run_to_end(secs(300));
        let withdrawn = assert_rest_arrived(&tree.sources[0], &tree.receivers, &files, &["b", LATE, "y"]);
        assert!(withdrawn.contains(LATE), "{name}: {withdrawn:?}");
    }
}

#[test]
fn withdrawals_reach_receivers_behind_agents() {
    let key = GroupKey::from_bytes([7; 32]);
    for key in [None, Some(key)] {
        let offer = Offer::bytes(1).by("mtcp").expect(4).at_most_mbps(4.0).in_blocks_of(32);
        let mut grove = Net::of(28, key.into_iter().fold(offer, Offer::sealed));
        let agent = grove.agent(&[], 16, path());
        let agent = grove.agents[agent].address;
        grove.children(&[agent], 3, path().losing(0.02));
        grove.children(&[], 1, path());
        let content = grove.sources[0].content.clone();
        let files = plant(&content, 28);
        grove.start();
        grove.run_for(Span::from_millis(1_500));
        ["b", "c/11", LATE].iter().for_each(|name| append(&content.join(name)));
        grove.run_to_end(secs(300));
        let changed = ["b", "c/11", LATE, "y"];
        let withdrawn = assert_rest_arrived(&grove.sources[0], &grove.receivers, &files, &changed);
        assert!(withdrawn.contains(LATE), "{withdrawn:?}");
    }
}
