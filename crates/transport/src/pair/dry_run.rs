//! Dry runs: receivers compare their disks with the list of files, nothing is written, and the source predicts the session.

use super::tree::branch;
use super::*;
use crate::config::DryRun;
use crate::dry_run::{DryRunReport, HostComparison};
use crate::event::SendReport;
use crate::relay::RouterKind;
use faircast_core::rng::Rng;
use faircast_core::schemes::{CATALOGUE, Scheme};
use faircast_wire::{GroupKey, SigningKey, VerifyKeys};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

const SIZE: usize = 2_000_000;

/// All files and directories below a directory: inode, mode, time of modification, size, content.
type Snapshot = BTreeMap<PathBuf, (u64, u32, i64, i64, u64, Vec<u8>)>;

fn snapshot(of: &Path) -> Snapshot {
    let mut all = Snapshot::new();
    let mut pending = vec![of.to_owned()];
    while let Some(path) = pending.pop() {
        let Ok(about) = fs::symlink_metadata(&path) else { continue };
        if about.is_dir() {
            pending
                .extend(fs::read_dir(&path).expect("readable").map(|entry| entry.expect("readable").path()));
        }
        let content = if about.is_file() { fs::read(&path).expect("readable") } else { Vec::new() };
        let times = (about.mtime(), about.mtime_nsec());
        all.insert(path, (about.ino(), about.mode(), times.0, times.1, about.size(), content));
    }
    all
}

fn snapshots(net: &Net) -> Vec<Snapshot> {
    net.receivers.iter().map(|node| snapshot(&node.dir)).collect()
}

/// Starts the source and the first `receivers` receivers again, and returns the report of the session.
fn again(net: &mut Net, dry_run: DryRun, receivers: usize) -> SendReport {
    net.kill_source(0);
    (0..net.receivers.len()).for_each(|receiver| net.kill_receiver(receiver));
    net.run_for(secs(3));
    net.sources[0].events.clear();
    net.sources[0].offer = net.sources[0].offer.clone().dry_run(dry_run).expect(receivers as u32);
    net.start_source(0);
    (0..receivers).for_each(|receiver| net.start_receiver(receiver));
    net.run_to_end(secs(300));
    net.sources[0].report().clone()
}

/// Runs a dry run, and checks that it changes nothing. Returns its result and the comparisons in the order of the hosts.
fn dry(net: &mut Net, receivers: usize) -> (DryRunReport, Vec<HostComparison>) {
    let before = snapshots(net);
    let report = again(net, DryRun::On, receivers);
    assert!(report.ok && report.verified == receivers as u64, "{report:?}");
    assert!(before == snapshots(net), "a directory was changed");
    assert!(net.receivers[..receivers].iter().all(|node| node.report().dry_run.is_some()));
    let result = report.dry_run.expect("it was a dry run");
    assert_eq!(result.compared, receivers as u64);
    (result, compared(net))
}

fn compared(net: &Net) -> Vec<HostComparison> {
    let compared = net.sources[0].events.iter().filter_map(|(_, event)| match event {
        Event::Compared(comparison) => Some(comparison.clone()),
        _ => None,
    });
    let mut all: Vec<_> = compared.collect();
    all.sort_by(|a, b| a.host.cmp(&b.host));
    all
}

/// Changes 1,000 bytes at each of some places of the content.
fn change(net: &Net, places: usize) {
    let path = &net.sources[0].content;
    let (mut content, mut rng) = (fs::read(path).expect("our own file"), Rng::new(places as u64, 1 << 45));
    for _ in 0..places {
        let at = rng.below(SIZE as u64 - 1_000) as usize;
        content[at..at + 1_000].iter_mut().for_each(|byte| *byte = rng.bits() as u8);
    }
    fs::write(path, content).expect("room");
    set_time(path);
}

fn set_time(path: &Path) {
    let file = fs::File::options().write(true).open(path).expect("our own file");
    file.set_modified(UNIX_EPOCH + Duration::from_secs(1_700_000_000)).expect("our own file");
}

/// One receiver has an earlier version, one has all content, and one has nothing.
#[test]
fn dry_run_changes_nothing_and_predicts_the_session() {
    for (at, entry) in CATALOGUE.iter().enumerate() {
        let is_layered = entry.name.parse::<Scheme>().is_ok_and(|scheme| scheme.layers() > 1);
        let mut net = Net::new(900 + at as u64);
        net.receivers(3, Link::millis(5).mbps(20.0).fifo(1_000_000), Link::millis(5));
        net.kill_receiver(2);
        let offer = Offer::bytes(SIZE as u64).by(entry.name).at_most_mbps(8.0).in_blocks_of(64);
        net.source(offer.expect(2).with_chunks());
        net.run_to_end(secs(300));
        net.assert_all_verified(0, 0..2);
        change(&net, 20);
        let place = net.receivers[1].dir.join("content");
        fs::copy(&net.sources[0].content, &place).expect("room");
        set_time(&place);

        let (all, hosts) = dry(&mut net, 3);
        let counts: Vec<_> =
            hosts.iter().map(|host| (host.new_files, host.changed_files, host.deleted)).collect();
        assert_eq!(counts, [(0, 1, 0), (0, 0, 0), (1, 0, 0)], "{hosts:?}");
        let size = SIZE as u64;
        assert!(hosts[0].held_bytes > size * 8 / 10 && hosts[0].held_bytes < size, "{hosts:?}");
        assert_eq!((hosts[1].held_bytes, hosts[2].held_bytes), (size, 0));
        assert!(hosts[1].needed_bytes < size / 10, "the list only: {hosts:?}");
        assert_eq!((all.bytes, all.needed_bytes), (size, hosts[2].needed_bytes), "one lacks everything");
        assert!(all.duration.is_some_and(|time| (2.0..2.5).contains(&time.as_secs_f64())), "{all:?}");

        let (two, _) = dry(&mut net, 2);
        let report = again(&mut net, DryRun::Off, 2);
        net.assert_all_verified(0, 0..2);
        let object = net.sources[0].object();
        let geometry = object.geometry();
        let symbols: u64 =
            (0..geometry.blocks().expect("a file")).map(|n| u64::from(geometry.symbols(n))).sum();
        let sent = report.repair_ratio * symbols as f64 * f64::from(geometry.symbol_size);
        println!("{}: {} predicted, {sent} sent, {}", entry.name, two.needed_bytes, hosts[0].needed_bytes);
        if is_layered {
            assert_eq!(two.needed_bytes, all.needed_bytes, "layers carry all blocks");
        } else {
            let off = (sent - two.needed_bytes as f64).abs() / sent;
            // The repairs of MTCP and RACCOOM are a ninth.
            assert!(off < 0.15, "{}: {two:?}, but {sent} bytes were sent", entry.name);
        }
    }
}

#[test]
fn relays_forward_comparisons_of_a_dry_run() {
    for (at, entry) in CATALOGUE.iter().enumerate() {
        let offer = Offer::bytes(400_000).by(entry.name).expect(4).dry_run(DryRun::On);
        let mut tree = Net::of(940 + at as u64, offer);
        let link = || Link::millis(2).mbps(20.0).fifo(100_000).losing(0.02);
        let top = tree.relay(Head::Source(0), 1, 64 << 20, link());
        let below = tree.relay(branch(top, 0), 1, 64 << 20, link());
        tree.behind(branch(top, 0), 2, link());
        tree.behind(branch(below, 0), 2, link());
        tree.start();
        tree.run_to_end(secs(300));
        assert_all_lack_everything(&tree, 4);
    }
}

#[test]
fn receiver_behind_a_relay_states_the_changes_that_it_lacks() {
    let offer = Offer::bytes(SIZE as u64).in_blocks_of(64).with_chunks().expect(1).dry_run(DryRun::On);
    let mut tree = Net::of(960, offer);
    let top = tree.relay(Head::Source(0), 1, 64 << 20, Link::millis(2).mbps(20.0).fifo(100_000));
    tree.behind(branch(top, 0), 1, Link::millis(2));
    let old = tree.receivers[0].dir.with_extension("old");
    fs::copy(&tree.sources[0].content, &old).expect("room");
    tree.receivers[0].reuse = vec![old];
    change(&tree, 20);
    tree.start();
    tree.run_to_end(secs(300));
    let (all, hosts) = (tree.sources[0].report().dry_run.expect("it was a dry run"), compared(&tree));
    assert!(hosts.len() == 1 && hosts[0].held_bytes > SIZE as u64 * 8 / 10, "{hosts:?}");
    assert!(hosts[0].needed_bytes < SIZE as u64 / 5, "{hosts:?}");
    assert_eq!(all.needed_bytes, hosts[0].needed_bytes, "its relay requests no more");
}

fn assert_all_lack_everything(net: &Net, receivers: usize) {
    let report = net.sources[0].report();
    assert!(report.ok && report.verified == receivers as u64, "{report:?}");
    let (all, hosts) = (report.dry_run.expect("it was a dry run"), compared(net));
    assert_eq!((all.compared, hosts.len()), (receivers as u64, receivers), "{hosts:?}");
    for (at, host) in hosts.iter().enumerate() {
        assert_eq!((host.host.clone(), host.new_files, host.held_bytes), (format!("host{at}"), 1, 0));
        assert_eq!(host.needed_bytes, all.needed_bytes);
    }
    assert!(snapshots(net).iter().all(|files| files.len() == 1), "a directory has content");
}

#[test]
fn routers_and_agents_forward_comparisons_of_a_dry_run() {
    for kind in RouterKind::ALL {
        let offer = Offer::bytes(1_000_000).by(kind.scheme()).expect(2).dry_run(DryRun::On);
        let mut tree = Net::of(970, offer);
        let first = tree.hop(Head::Source(0), kind, 1, Link::millis(2).mbps(50.0).fifo(100_000));
        tree.behind(branch(first, 0), 2, Link::millis(2));
        tree.start();
        tree.run_to_end(secs(300));
        assert_all_lack_everything(&tree, 2);
    }
    let mut grove = Net::of(971, Offer::bytes(1_000_000).by("mtcp").expect(2).dry_run(DryRun::On));
    let agent = grove.agent(&[], 16, Link::millis(2).mbps(8.0).fifo(60_000));
    let address = grove.agents[agent].address;
    grove.children(&[address], 2, Link::millis(2));
    grove.start();
    grove.run_to_end(secs(300));
    assert_all_lack_everything(&grove, 2);
}

#[test]
fn dry_run_of_signed_content_survives_losses() {
    let (group, key) = (GroupKey::from_bytes([7; 32]), SigningKey::from_seed([9; 32]));
    let mut net = Net::new(980);
    let path = Link::millis(5).mbps(20.0).fifo(100_000).losing(0.3);
    net.receivers_with(3, path, Link::millis(5).losing(0.3), None, Some(group.clone()));
    for receiver in 0..3 {
        net.receivers[receiver].verify = Some(VerifyKeys::from(key.verify_key()));
        net.start_receiver(receiver);
    }
    let offer = Offer::bytes(3_000_000).expect(3).with_chunks().in_blocks_of(16).dry_run(DryRun::On);
    net.source(offer.sealed(group).signed(key));
    net.run_to_end(secs(300));
    assert_all_lack_everything(&net, 3);
}

#[test]
fn receiver_of_other_content_refuses_a_dry_run() {
    let mut net = Net::new(990);
    net.receivers(1, Link::millis(2), Link::millis(2));
    fs::create_dir(net.receivers[0].dir.join("content")).expect("its place is free");
    net.source(Offer::bytes(100_000).expect(1).dry_run(DryRun::On));
    net.run_to_end(secs(60));
    let report = net.sources[0].report();
    assert!(!report.ok && report.dry_run.is_some_and(|all| all.compared == 0), "{report:?}");
    let [incomplete] = &report.incomplete[..] else { panic!("{report:?}") };
    assert!(incomplete.host == "host0" && incomplete.reason.contains("content"), "{incomplete:?}");
    assert_eq!(snapshot(&net.receivers[0].dir).len(), 2);
}
