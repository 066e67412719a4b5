//! A tree that is sent again to receivers that have an earlier version.

use super::changed_files::{plant, tree};
use super::*;
use crate::config::{Existing, Extraneous};
use crate::event::SendReport;
use faircast_core::schemes::CATALOGUE;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;

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
        // Only the block with the manifest is sent.
        assert!(same.moved_bytes < 50_000 && first.moved_bytes > 1_000_000, "{}: {same:?}", entry.name);
        assert!(same_time < first_time / 2.0, "{}: {same_time} s after {first_time} s", entry.name);

        let content = net.sources[0].content.clone();
        fs::write(content.join("z"), vec![7; 30_000]).expect("room");
        fs::write(content.join("c/07"), vec![7; 1000]).expect("room");
        let unchanged = net.receivers[0].dir.join("content/m.log");
        let inode = || fs::metadata(&unchanged).expect("it was received").ino();
        let before = inode();
        let changed = again(&mut net);
        assert_eq!(inode(), before, "{}: an unchanged file stays", entry.name);
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
fn file_that_changes_at_a_receiver_meanwhile_is_sent_again() {
    for entry in CATALOGUE {
        let mut net = Net::new(64);
        net.receivers(2, Link::millis(5).mbps(20.0).fifo(100_000), Link::millis(5));
        net.source(Offer::bytes(1).by(entry.name).at_most_mbps(4.0).expect(2).in_blocks_of(32));
        tree(&mut net, 0, 64);
        net.run_to_end(secs(300));

        let content = net.sources[0].content.clone();
        fs::write(content.join("m.log"), vec![7; 600_000]).expect("room");
        let of_receivers = [0, 1].map(|receiver: usize| net.receivers[receiver].dir.join("content/b"));
        let inodes = || of_receivers.clone().map(|file| fs::metadata(file).expect("it was received").ino());
        let before = inodes();
        net.kill_source(0);
        (0..2).for_each(|receiver| net.kill_receiver(receiver));
        net.run_for(secs(3));
        net.start_source(0);
        (0..2).for_each(|receiver| net.start_receiver(receiver));
        net.run_for(Span::from_millis(700));
        // A program writes into a file that the receiver has verified, and sets its old time.
        let file = fs::File::options().write(true).open(&of_receivers[0]).expect("it was received");
        let time = file.metadata().and_then(|about| about.modified()).expect("it has a time");
        (&file).write_all(&[8; 1000]).and_then(|()| file.set_modified(time)).expect("room");
        net.run_to_end(secs(300));
        let [changed, unchanged] = [0, 1].map(|receiver: usize| net.receivers[receiver].report().clone());
        assert!(changed.ok && unchanged.ok, "{}: {changed:?} {unchanged:?}", entry.name);
        assert!(changed.refetched_bytes >= 150_000, "{}: {changed:?}", entry.name);
        assert_eq!(unchanged.refetched_bytes, 0, "{}", entry.name);
        for file in of_receivers.iter() {
            assert!(fs::read(file).expect("it is there") == fs::read(content.join("b")).expect("ours"));
        }
        let now = inodes();
        assert_eq!((now[0] == before[0], now[1]), (false, before[1]), "{}", entry.name);
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
