//! A tree that is sent again to receivers that have an earlier version.

use super::changed_files::{plant, tree};
use super::*;
use crate::config::{Existing, Extraneous};
use crate::event::SendReport;
use faircast_core::schemes::CATALOGUE;
use std::fs;

/// Restarts the source and both receivers, runs to the end, and returns the source's report.
fn again(net: &mut Net) -> SendReport {
    net.kill_source(0);
    (0..2).for_each(|receiver| net.kill_receiver(receiver));
    net.run_for(secs(3));
    net.start_source(0);
    (0..2).for_each(|receiver| net.start_receiver(receiver));
    net.run_to_end(secs(300));
    let content = net.sources[0].content.clone();
    for node in &net.receivers {
        assert!(node.report().ok, "{:?}", node.report());
        for entry in ["a", "b", "m.log", "c/07", "z"] {
            let sent = fs::read(content.join(entry)).expect("our own file");
            assert!(fs::read(node.dir.join("content").join(entry)).is_ok_and(|got| got == sent), "{entry}");
        }
    }
    net.sources[0].report().clone()
}

#[test]
fn only_changed_files_of_a_tree_are_sent_again() {
    for entry in CATALOGUE {
        let mut net = Net::new(61);
        net.receivers(2, Link::millis(5).mbps(20.0).fifo(100_000), Link::millis(5));
        net.source(Offer::bytes(1).by(entry.name).at_most_mbps(4.0).expect(2).in_blocks_of(32));
        tree(&mut net, 0, 61);
        net.run_to_end(secs(300));
        let first = net.sources[0].report().clone();

        let same = again(&mut net);
        let (first_time, same_time) = (first.duration.as_secs_f64(), same.duration.as_secs_f64());
        assert!(same.moved_bytes < first.moved_bytes / 50, "{}: {same:?}", entry.name);
        assert!(same_time < first_time / 2.0, "{}: {same_time} s after {first_time} s", entry.name);

        let content = net.sources[0].content.clone();
        fs::write(content.join("z"), vec![7; 30_000]).expect("room");
        fs::write(content.join("c/07"), vec![7; 1000]).expect("room");
        let changed = again(&mut net);
        // 31 kB, the other files in the same blocks, and the manifest. Blocks have at most 32 kB or so.
        assert!(changed.moved_bytes < 31_000 + 4 * 40_000, "{}: {changed:?}", entry.name);

        fs::remove_dir_all(&content).expect("our own directory");
        fs::write(&content, "").expect("room");
        plant(&content, 62);
        let all = again(&mut net);
        let time = all.duration.as_secs_f64();
        assert!(time < 1.2 * first_time + 0.5, "{}: {time} s after {first_time} s: {all:?}", entry.name);
    }
}

#[test]
fn deleted_files_of_a_tree_move_to_the_backup() {
    for entry in CATALOGUE {
        let mut net = Net::new(63);
        net.receivers(2, Link::millis(5).mbps(20.0).fifo(100_000), Link::millis(5));
        net.source(Offer::bytes(1).by(entry.name).at_most_mbps(4.0).expect(2).in_blocks_of(32).deleting());
        tree(&mut net, 0, 63);
        net.run_to_end(secs(300));

        // The first receiver permits the deletion, the second one does not.
        let backup = net.receivers[0].dir.join("backup");
        net.receivers[0].existing = Existing::new(Extraneous::Delete, Some(backup.clone()));
        let content = net.sources[0].content.clone();
        let [old, gone] = ["z", "o"].map(|name| fs::read(content.join(name)).expect("our own file"));
        fs::write(content.join("z"), vec![7; 30_000]).expect("room");
        fs::remove_file(content.join("o")).expect("our own file");
        again(&mut net);

        let in_backup = |name: &str| fs::read(backup.join("content").join(name)).ok();
        assert_eq!((in_backup("z"), in_backup("o")), (Some(old), Some(gone)), "{}", entry.name);
        assert_eq!(fs::read_dir(backup.join("content")).expect("a directory").count(), 2, "{}", entry.name);
        let deleted = |node: usize| net.receivers[node].report().deleted;
        let has_it = |node: usize| net.receivers[node].dir.join("content/o").exists();
        assert_eq!((deleted(0), deleted(1)), (1, 0), "{}", entry.name);
        assert_eq!((has_it(0), has_it(1)), (false, true), "{}", entry.name);
    }
}
