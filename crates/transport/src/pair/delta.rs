//! Changed content for receivers that have earlier versions: only changed chunks are sent.

use super::node::SourceNode;
use super::tree::{branch, schemes};
use super::*;
use crate::config::DryRun;
use crate::event::SendReport;
use crate::relay::RouterKind;
use faircast_core::rng::Rng;
use faircast_core::schemes::{CATALOGUE, Scheme};
use std::collections::BTreeSet;
use std::fs;

const SIZE: usize = 2_000_000;

fn is_layered(scheme: &str) -> bool {
    scheme.parse::<Scheme>().is_ok_and(|scheme| scheme.layers() > 1)
}

/// Runs a first session with two receivers. Further receivers are not running yet.
fn first(scheme: &'static str, further: usize) -> Net {
    let mut net = Net::new(81);
    net.receivers(2 + further, Link::millis(5).mbps(20.0).fifo(100_000).losing(0.002), Link::millis(5));
    (2..2 + further).for_each(|receiver| net.kill_receiver(receiver));
    net.source(
        Offer::bytes(SIZE as u64).by(scheme).at_most_mbps(8.0).in_blocks_of(64).expect(2).with_chunks(),
    );
    net.run_to_end(secs(300));
    net.assert_all_verified(0, 0..2);
    net
}

/// Sends the present content of the source to all receivers.
fn again(net: &mut Net) -> SendReport {
    net.kill_source(0);
    (0..net.receivers.len()).for_each(|receiver| net.kill_receiver(receiver));
    net.run_for(secs(3));
    net.sources[0].offer = net.sources[0].offer.clone().expect(net.receivers.len() as u32);
    net.start_source(0);
    (0..net.receivers.len()).for_each(|receiver| net.start_receiver(receiver));
    net.run_to_end(secs(300));
    net.assert_all_verified(0, 0..net.receivers.len());
    net.sources[0].report().clone()
}

/// Changes `len` bytes at each of `places` places.
fn scatter(content: &mut [u8], places: usize, len: usize, seed: u64) {
    let mut rng = Rng::new(seed, 1 << 44);
    for _ in 0..places {
        let at = rng.below((content.len() - len) as u64) as usize;
        content[at..at + len].iter_mut().for_each(|byte| *byte = rng.bits() as u8);
    }
}

fn chunks(source: &SourceNode) -> Vec<(u64, u32)> {
    source.object().chunks().collect()
}

/// Returns the largest number of bytes that a receiver with the chunks `old` may need. A run of missing chunks costs up to two
/// symbols that the receiver has in part. A block costs one symbol with its trailer, and each fiftieth symbol is lost. The blocks of
/// the manifest are sent whole.
fn bound(source: &SourceNode, old: &[(u64, u32)]) -> u64 {
    let (known, object) = (old.iter().copied().collect::<BTreeSet<_>>(), source.object());
    let missing: Vec<_> = object.chunks().filter(|chunk| !known.contains(chunk)).collect();
    let changed: u64 = missing.iter().map(|(_, len)| u64::from(*len)).sum();
    let blocks = u64::from(object.geometry().blocks().expect("a file"));
    let symbols = 2 * missing.len() as u64 + blocks;
    let geometry = object.geometry();
    let bytes = changed + u64::from(geometry.manifest_blocks()) * geometry.capacity();
    bytes + bytes / 50 + symbols * u64::from(source.symbol_size())
}

#[test]
fn only_changed_chunks_of_a_file_are_sent() {
    for scheme in CATALOGUE.iter().map(|entry| entry.name) {
        let mut net = first(scheme, 0);
        let (old, path) = (chunks(&net.sources[0]), net.sources[0].content.clone());
        let mut content = fs::read(&path).expect("our own file");
        scatter(&mut content, 20, 1_000, 1);
        fs::write(&path, &content).expect("room");
        let most = bound(&net.sources[0], &old);
        let scattered = again(&mut net);
        if is_layered(scheme) {
            continue; // receivers of layers use only whole blocks that they have
        }
        assert!(scattered.moved_bytes < most && most < SIZE as u64 / 5, "{scheme}: {most} {scattered:?}");

        let old = chunks(&net.sources[0]);
        fs::write(&path, [&b"inserted"[..], &content].concat()).expect("room");
        let most = bound(&net.sources[0], &old);
        let inserted = again(&mut net);
        assert!(inserted.moved_bytes < most && most < SIZE as u64 / 10, "{scheme}: {most} {inserted:?}");
    }
}

#[test]
fn receivers_with_different_versions_need_the_union_of_changes() {
    for scheme in CATALOGUE.iter().map(|entry| entry.name).filter(|scheme| !is_layered(scheme)) {
        let mut net = first(scheme, 0);
        let old = chunks(&net.sources[0]);
        let path = net.sources[0].content.clone();
        let mut content = fs::read(&path).expect("our own file");
        scatter(&mut content, 10, 1_000, 2);
        fs::write(&path, &content).expect("room");
        // One receiver has the former version, the other one a version with other changes.
        let mut other = content.clone();
        scatter(&mut other, 10, 1_000, 3);
        let place = net.receivers[1].dir.join("content");
        fs::write(&place, &other).expect("room");
        let place = fs::File::options().write(true).open(place).expect("it is there");
        place.set_modified(std::time::UNIX_EPOCH).expect("its time is set");
        let mut net_of_other = first(scheme, 0);
        fs::write(&net_of_other.sources[0].content, &other).expect("room");
        let others = chunks(&net_of_other.sources[0]);
        net_of_other.kill_source(0);
        let most = bound(&net.sources[0], &old) + bound(&net.sources[0], &others);
        let report = again(&mut net);
        assert!(report.moved_bytes < most && most < SIZE as u64 / 3, "{scheme}: {most} {report:?}");
    }
}

#[test]
fn receiver_without_an_earlier_version_gets_the_whole_file() {
    for scheme in CATALOGUE.iter().map(|entry| entry.name) {
        let mut net = first(scheme, 1);
        let path = net.sources[0].content.clone();
        let mut content = fs::read(&path).expect("our own file");
        scatter(&mut content, 20, 1_000, 4);
        fs::write(&path, &content).expect("room");
        let report = again(&mut net);
        assert_eq!(report.verified, 3, "{scheme}");
        assert!(net.receivers[2].report().moved_bytes >= SIZE as u64, "{scheme}");
    }
}

#[test]
fn killed_receiver_reuses_its_earlier_version_after_a_restart() {
    for scheme in CATALOGUE.iter().map(|entry| entry.name).filter(|scheme| !is_layered(scheme)) {
        let mut net = first(scheme, 0);
        let (old, path) = (chunks(&net.sources[0]), net.sources[0].content.clone());
        let mut content = fs::read(&path).expect("our own file");
        scatter(&mut content, 40, 1_000, 6);
        fs::write(&path, &content).expect("room");
        let most = bound(&net.sources[0], &old);
        net.kill_source(0);
        (0..2).for_each(|receiver| net.kill_receiver(receiver));
        net.run_for(secs(3));
        net.start_source(0);
        (0..2).for_each(|receiver| net.start_receiver(receiver));
        net.run_for(Span::from_millis(150));
        net.kill_receiver(0);
        net.run_for(secs(1));
        net.start_receiver(0);
        net.run_to_end(secs(300));
        net.assert_all_verified(0, 0..2);
        let report = net.sources[0].report();
        assert!(report.moved_bytes < 2 * most && most < SIZE as u64 / 3, "{scheme}: {most} {report:?}");
    }
}

#[test]
fn content_of_other_directories_is_reused() {
    for scheme in CATALOGUE.iter().map(|entry| entry.name).filter(|scheme| !is_layered(scheme)) {
        let mut net = first(scheme, 0);
        let (old, path) = (chunks(&net.sources[0]), net.sources[0].content.clone());
        for receiver in &mut net.receivers {
            let elsewhere = receiver.dir.with_extension("old");
            fs::rename(&receiver.dir, &elsewhere).expect("its place is free");
            fs::rename(elsewhere.join("content"), elsewhere.join("another name")).expect("it is there");
            receiver.reuse = vec![elsewhere];
        }
        let mut content = fs::read(&path).expect("our own file");
        scatter(&mut content, 20, 1_000, 5);
        fs::write(&path, &content).expect("room");
        let most = bound(&net.sources[0], &old);
        let report = again(&mut net);
        assert!(report.moved_bytes < most, "{scheme}: {most} {report:?}");
        let resumed = net.receivers[0].report().resumed_bytes;
        assert!(resumed > SIZE as u64 * 4 / 5, "{scheme}: {resumed}");
    }
}

/// Stops all hosts, and starts them again except the late ones.
fn start_again(tree: &mut Net, offer: Offer) {
    tree.kill_source(0);
    (0..tree.relays.len()).for_each(|relay| tree.kill_relay(relay));
    (0..tree.receivers.len()).for_each(|receiver| tree.kill_receiver(receiver));
    tree.run_for(secs(3));
    tree.sources[0].offer = offer;
    tree.start();
}

/// Runs to the end. Returns the number of bytes in the symbols that the source has sent.
fn sent_bytes(tree: &mut Net) -> f64 {
    tree.run_to_end(secs(300));
    let (geometry, report) = (tree.sources[0].object().geometry(), tree.sources[0].report());
    let symbols: u64 = (0..geometry.blocks().expect("a file")).map(|n| u64::from(geometry.symbols(n))).sum();
    report.repair_ratio * symbols as f64 * f64::from(geometry.symbol_size)
}

/// Changes the content, and returns the number of bytes of all symbols that a receiver lacks.
fn change(tree: &mut Net, offer: Offer, seed: u64) -> f64 {
    let path = tree.sources[0].content.clone();
    let mut content = fs::read(&path).expect("our own file");
    scatter(&mut content, 20, 1_000, seed);
    fs::write(&path, &content).expect("room");
    start_again(tree, offer.dry_run(DryRun::On));
    tree.run_to_end(secs(300));
    tree.sources[0].report().dry_run.expect("it was a dry run").needed_bytes as f64
}

fn lossless() -> Link {
    Link::millis(3).mbps(20.0).fifo(1_000_000)
}

/// Checks that a source sends only what its receivers lack. The tree is running its first session.
fn assert_source_sends_the_union(tree: &mut Net, name: &str, offer: &Offer) {
    let size = SIZE as f64;
    sent_bytes(tree);
    start_again(tree, offer.clone());
    let same = sent_bytes(tree);
    assert!(same < size / 15.0, "{name}: {same} bytes of the same content");
    let union = change(tree, offer.clone(), 7);
    start_again(tree, offer.clone());
    let sent = sent_bytes(tree);
    println!("{name}: {same} bytes of the same content; of changed content {sent}, predicted {union}");
    assert!(sent < 1.1 * union && union < size / 5.0, "{name}: {sent} bytes were sent, {union} were missing");
}

#[test]
fn source_sends_the_union_of_what_subtrees_lack() {
    for scheme in schemes() {
        let all = Offer::bytes(SIZE as u64).by(scheme).at_most_mbps(8.0).in_blocks_of(64).with_chunks();
        let mut tree = Net::of(82, all.clone().expect(5));
        let top = tree.relay(Head::Source(0), 2, 64 << 20, lossless());
        let lower = tree.relay(branch(top, 1), 1, 64 << 20, lossless());
        tree.behind(Head::Source(0), 1, lossless());
        tree.behind(branch(top, 0), 2, lossless());
        tree.behind(branch(lower, 0), 3, lossless());
        tree.late.push(Who::Receiver(5));
        tree.start();
        assert_source_sends_the_union(&mut tree, scheme, &all.clone().expect(5));
        tree.assert_all_verified(0, 0..5);

        // A receiver without content joins late, and another one becomes silent. Both are two relays away.
        let union = change(&mut tree, all.clone().expect(5), 8);
        start_again(&mut tree, all.clone().expect(6).wait_secs(20));
        tree.run_for(Span::from_millis(500));
        tree.sources[0].offer.start.start();
        tree.run_for(Span::from_millis(50));
        tree.kill_receiver(4);
        tree.start_receiver(5);
        let sent = sent_bytes(&mut tree);
        assert!(sent > SIZE as f64 && sent < 1.1 * (union + SIZE as f64), "{scheme}: {sent}, {union}");
        assert!([0, 1, 2, 3, 5].iter().all(|at| tree.receivers[*at].has(&tree.sources[0])), "{scheme}");

        // The content reaches a receiver that has none from the start once, in the first pass.
        tree.late.clear();
        fs::remove_dir_all(&tree.receivers[5].dir).expect("our own directory");
        start_again(&mut tree, all.expect(6));
        let sent = sent_bytes(&mut tree);
        tree.assert_everybody_has_all();
        assert!(sent > SIZE as f64 && sent < 1.1 * SIZE as f64, "{scheme}: {sent}");
    }
}

#[test]
fn routers_and_agents_state_what_their_receivers_lack() {
    for kind in RouterKind::ALL {
        let offer = Offer::bytes(SIZE as u64).by(kind.scheme()).at_most_mbps(8.0).in_blocks_of(64);
        let offer = offer.with_chunks().expect(3);
        let mut tree = Net::of(83, offer.clone());
        let first = tree.hop(Head::Source(0), kind, 2, lossless());
        let second = tree.hop(branch(first, 1), kind, 1, lossless());
        tree.behind(branch(first, 0), 1, lossless());
        tree.behind(branch(second, 0), 2, lossless());
        tree.start();
        assert_source_sends_the_union(&mut tree, kind.scheme(), &offer);
        tree.assert_everybody_has_all();
    }
    let offer = Offer::bytes(SIZE as u64).by("mtcp").at_most_mbps(8.0).in_blocks_of(64).with_chunks();
    let mut grove = Net::of(84, offer.clone().expect(3));
    let agent = grove.agent(&[], 16, lossless());
    let address = grove.agents[agent].address;
    grove.children(&[address], 3, lossless());
    grove.start();
    assert_source_sends_the_union(&mut grove, "agent", &offer.expect(3));
    grove.assert_have_all(0..3);
}
