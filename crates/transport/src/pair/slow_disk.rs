//! Receivers with slow disks: opening, writing and renaming take a long time.

use super::required::of;
use super::streams::LiveInput;
use super::tree::branch;
use super::*;
use crate::config::{Repeat, ReplayPolicy};
use crate::endpoint::{Endpoint as _, HostEvent};
use crate::worker::{Job, Load, Worker};
use faircast_core::schemes::{CATALOGUE, Scheme};
use faircast_wire::{Message, Newest, SigningKey, VerifyKey, VerifyKeys, parse};
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A host with delays: for opening a transfer, for each job on several blocks, for the job on all files, and for decoding a block.
#[derive(Default)]
pub(super) struct SlowDisk {
    opening: Span,
    blocks: Span,
    files: Span,
    decoding: Span,
    closing: Span,
    jobs: Arc<Mutex<VecDeque<(Span, Job)>>>,
    done_at: Option<Time>,
    /// Number of jobs that were delayed.
    late: u32,
}

impl SlowDisk {
    fn new(files: Span) -> SlowDisk {
        SlowDisk { files, ..SlowDisk::default() }
    }

    pub(super) fn worker(&self) -> Worker {
        let (jobs, opening, blocks, files) = (Arc::clone(&self.jobs), self.opening, self.blocks, self.files);
        let (decoding, closing) = (self.decoding, self.closing);
        Worker::new(move |load, job| {
            let takes = match load {
                Load::Decoding => decoding,
                Load::Opening => opening,
                Load::Blocks => blocks,
                Load::Files => files,
                Load::Closing => closing,
            };
            match takes {
                Span::ZERO => job(),
                _ => jobs.lock().unwrap_or_else(PoisonError::into_inner).push_back((takes, job)),
            }
        })
    }

    /// Runs the next job if its delay has passed.
    pub(super) fn work(&mut self, now: Time) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((takes, _)) = jobs.front() else { return };
        if now < *self.done_at.get_or_insert(now + *takes) {
            return;
        }
        self.done_at = None;
        if let Some((_, job)) = jobs.pop_front() {
            drop(jobs);
            self.late += 1;
            job();
        }
    }
}

/// Delay of each write on a stalling disk.
const STALL: Span = Span::from_secs(2);

#[test]
fn slow_directory_delays_the_start_by_at_most_half_a_second() {
    for scheme in CATALOGUE.iter().map(|entry| entry.name) {
        let run = |stall: Span| {
            let mut net = beside_a_disk_that_stalls(Span::ZERO, 2.0, 0.0);
            net.receivers[1].disk.opening = stall;
            net.start_receiver(1);
            // Without losses, receivers request no symbols until they know which blocks they lack.
            let offer = Offer::bytes(1_000_000).by(scheme).at_most_mbps(1.5).in_blocks_of(64);
            net.source(offer.expect(2));
            net.run_to_end(secs(100));
            net.assert_all_verified(0, 0..2);
            assert_eq!(net.receivers[1].disk.late, u32::from(stall > Span::ZERO), "{scheme}");
            // The receiver and its source state the content that waits for the disk. Blocks in layers may be decoded later.
            let own = net.receivers[1].events.iter().filter_map(|(_, event)| match event {
                Event::Progress(now) => now.queues.as_ref().map(|queues| queues.unwritten_bytes),
                _ => None,
            });
            let stated = net.sources[0].events.iter().filter_map(|(_, event)| match event {
                Event::Receivers { receivers } => receivers.iter().map(|one| one.unwritten_bytes).max(),
                _ => None,
            });
            let queued = [own.max(), stated.max()].map(|most| most.unwrap_or_default() > 0);
            let is_known = stall == Span::ZERO || one_rate().any(|one| one == scheme);
            assert!(!is_known || queued == [stall > Span::ZERO; 2], "{scheme}: {queued:?}");
            let took = net.sources[0].report().duration.as_secs_f64();
            let started = net.sources[0].report().until_data.as_secs_f64();
            (started, took, net.trace.up.len())
        };
        let ((started, took, sent), (late, slow, sent_late)) = (run(Span::ZERO), run(STALL));
        assert!(late < started + 0.6, "{scheme}: {started:.2} and {late:.2} s");
        assert!(slow < took * 1.05 + 0.1, "{scheme}: {took:.2} and {slow:.2} s");
        assert!(sent_late as f64 <= sent as f64 * 1.1 + 10.0, "{scheme}: {sent} and {sent_late} datagrams");
    }
}

#[test]
fn source_waits_for_members_that_are_still_opening_files() {
    for scheme in CATALOGUE.iter().map(|entry| entry.name) {
        let mut net = beside_a_disk_that_stalls(Span::ZERO, 2.0, 0.0);
        net.receivers[1].disk.opening = Span::from_millis(300);
        net.start_receiver(1);
        net.source(Offer::bytes(500_000).by(scheme).at_most_mbps(1.5).in_blocks_of(64));
        net.run_to_end(secs(100));
        net.assert_all_verified(0, 0..2);
        let report = net.sources[0].report();
        assert_eq!((report.refused, report.verified), (0, 2), "{scheme}: {report:?}");
    }
}

/// The source learns before or after the start which blocks the receivers have, and then sends only the missing blocks.
#[test]
fn resumed_session_sends_only_missing_blocks_despite_slow_opens() {
    for (scheme, opening) in one_rate().flat_map(|scheme| [200, 800].map(|millis| (scheme, millis))) {
        let mut net = Net::new(32).with_trunk(Link::millis(5).mbps(20.0).fifo(100_000));
        net.receivers(2, Link::millis(2), Link::millis(2));
        let offer = Offer::bytes(6_000_000).by(scheme).in_blocks_of(64).expect(2);
        net.source(offer);
        net.run_until(secs(60), |net| net.receivers.iter().all(|node| node.verified_bytes() > 3_000_000));
        (0..2).for_each(|receiver| net.kill_receiver(receiver));
        net.kill_source(0);
        net.run_for(secs(1));
        net.receivers.iter_mut().for_each(|node| node.disk.opening = Span::from_millis(opening));
        net.start_source(0);
        (0..2).for_each(|receiver| net.start_receiver(receiver));
        net.run_to_end(secs(60));
        net.assert_all_verified(0, 0..2);
        let report = net.sources[0].report();
        // The source starts half a second after the receivers, so it sends stored blocks for at most 0.4 s.
        let twice = if opening > 500 { 20e6 / 8.0 * 0.4 } else { 0.0 };
        let most = 3_500_000.0 + twice;
        assert!(report.repair_ratio * 6e6 < most + 100_000.0, "{scheme}, {opening} ms: {report:?}");
        assert!((report.moved_bytes as f64) < most, "{scheme}, {opening} ms: {report:?}");
    }
}

/// Half a second after it was started, a receiver behind a relay states that it lacks everything, as it does not know better.
#[test]
fn relay_corrects_its_statement_about_slowly_opened_files() {
    for scheme in one_rate() {
        let mut tree = Net::of(33, Offer::bytes(6_000_000).by(scheme).in_blocks_of(64).expect(2));
        let relay = tree.relay(Head::Source(0), 1, 64 << 20, Link::millis(5).mbps(20.0).fifo(100_000));
        tree.behind(branch(relay, 0), 2, Link::millis(2).mbps(20.0).fifo(100_000));
        tree.start();
        tree.run_until(secs(60), |net| net.receivers.iter().all(|node| node.verified_bytes() > 3_000_000));
        (0..2).for_each(|receiver| tree.kill_receiver(receiver));
        tree.kill_relay(relay);
        tree.kill_source(0);
        tree.run_for(secs(1));
        tree.receivers.iter_mut().for_each(|node| node.disk.opening = Span::from_millis(800));
        tree.start();
        tree.run_to_end(secs(60));
        tree.assert_everybody_has_all();
        let sent = tree.sources[0].report().repair_ratio * 6e6;
        println!("{scheme}: {sent}");
        assert!(sent < 3_500_000.0 + 20e6 / 8.0 * 0.4, "{scheme}: {sent} bytes were sent");
    }
}

#[test]
fn slowly_opened_transfer_resumes_with_its_verified_blocks() {
    let mut net = Net::new(29).with_trunk(Link::millis(5).mbps(20.0).fifo(100_000));
    net.receivers(1, Link::millis(2).losing(0.01), Link::millis(2));
    net.source(Offer::bytes(3_000_000).in_blocks_of(64).expect(1));
    net.run_until(secs(60), |net| net.receivers[0].verified_bytes() > 1_000_000);
    net.kill_receiver(0);
    net.kill_source(0);
    net.run_for(secs(1));
    net.receivers[0].disk.opening = STALL;
    net.start_source(0);
    net.start_receiver(0);
    net.run_to_end(secs(60));
    net.assert_all_verified(0, 0..1);
    let report = net.receivers[0].report();
    assert!(report.resumed_bytes >= 1_000_000 && report.refetched_bytes == 0, "{report:?}");
}

#[test]
fn session_ends_with_an_error_if_its_journal_cannot_be_opened() {
    let mut net = Net::new(31).with_trunk(Link::millis(5).mbps(20.0).fifo(100_000));
    net.receivers(1, Link::millis(2), Link::millis(2));
    std::fs::write(net.receivers[0].dir.join(".faircast"), "in the way").expect("a file is written");
    net.receivers[0].disk.opening = Span::from_millis(50);
    net.start_receiver(0);
    net.source(Offer::bytes(3_000_000).expect(1));
    for _ in 0..300 {
        net.run_for(Span::from_millis(10));
        if let Some(session) = &mut net.receivers[0].session {
            session.handle_host_event(HostEvent::Drained, net.now);
        }
    }
    let ended = net.receivers[0].ended.as_ref();
    assert!(ended.is_some_and(Result::is_err), "{ended:?}");
}

/// Checks that the receivers send the same datagrams with and without a stalling disk at one receiver, until one second before
/// completion. Only the stated number of bytes that wait for the disk differs. The argument of `run` is the disk's delay.
fn assert_a_stall_changes_no_datagram(what: &str, run: impl Fn(Span) -> Net) {
    let (fast, slow) = (run(Span::ZERO), run(STALL));
    let complete = fast.receivers[0].ended_at.min(fast.receivers[1].ended_at);
    let before = |net: &Net| {
        let up = net.trace.up.iter().take_while(|(at, ..)| *at + secs(1) < complete);
        up.map(|(at, source, bytes)| (*at, *source, bytes.len(), without_the_disk(bytes))).collect::<Vec<_>>()
    };
    let late = slow.receivers[1].disk.late;
    assert!(late >= 3, "{what}: {late} writes were late");
    let (fast, slow) = (before(&fast), before(&slow));
    assert!(fast.len() > 20, "{what}: {} datagrams", fast.len());
    let same = fast.iter().zip(&slow).take_while(|(a, b)| a == b).count();
    assert_eq!(same, fast.len().max(slow.len()), "{what}: {:?}", fast.get(same).map(|(at, ..)| at));
}

/// Returns a datagram in words, without the number of bytes that wait for the disk.
fn without_the_disk(bytes: &[u8]) -> String {
    let (header, mut message) = parse(bytes, &Newest::default()).expect("a receiver has sent it");
    if let Message::Member(member) = &mut message {
        member.unwritten_bytes = 0;
    }
    format!("{header:?} {message:?}")
}

/// Builds two receivers behind a trunk of `mbps` Mbit/s. The disk of the second receiver has the delay `stall`.
fn beside_a_disk_that_stalls(stall: Span, mbps: f64, losses: f64) -> Net {
    let mut net = Net::new(23).with_trunk(Link::millis(5).mbps(mbps).fifo(50_000));
    net.receivers(2, Link::millis(2).losing(losses), Link::millis(2));
    net.receivers[1].disk.blocks = stall;
    net.start_receiver(1);
    net.trace.record = true;
    net
}

#[test]
fn stalled_disk_delays_no_datagram_of_its_receiver() {
    for scheme in CATALOGUE.iter().map(|entry| entry.name) {
        assert_a_stall_changes_no_datagram(scheme, |stall| {
            let mut net = beside_a_disk_that_stalls(stall, 2.0, 0.01);
            net.source(Offer::bytes(1_500_000).by(scheme).expect(2));
            net.run_to_end(secs(100));
            net.assert_all_verified(0, 0..2);
            net
        });
    }
}

#[test]
fn stalled_disk_delays_no_datagram_of_a_live_stream() {
    for scheme in one_rate() {
        assert_a_stall_changes_no_datagram(scheme, |stall| {
            let mut net = beside_a_disk_that_stalls(stall, 2.0, 0.01);
            net.source(Offer::live(secs(60), 0).by(scheme).in_blocks_of(16).expect(2));
            let mut all = Vec::new();
            for block in 0..80 {
                all.extend(net.feed(0, block));
                net.run_for(Span::from_millis(125));
            }
            net.end_feed(0);
            net.run_to_end(secs(100));
            for receiver in 0..2 {
                assert!(net.receivers[receiver].report().ok, "{scheme}");
                assert!(
                    file_of(&net, receiver, "") == all,
                    "{scheme}: receiver {receiver} has something else"
                );
            }
            net
        });
    }
}

#[test]
fn stalled_disk_delays_no_datagram_of_layered_streams() {
    for scheme in ["rlc,base=250000,layers=2", "gmcc,layers=2", "smcc,layers=2"] {
        assert_a_stall_changes_no_datagram(scheme, |stall| {
            let mut net = beside_a_disk_that_stalls(stall, 5.0, 0.0);
            let inputs = [LiveInput::live(0.2, 300_000), LiveInput::live(0.2, 300_000)];
            net.source(Offer::streams(&inputs, secs(5)).by(scheme).expect(2));
            net.run_to_end(secs(100));
            let [fast, slow] = [0, 1].map(|receiver| file_of(&net, receiver, ".layer0"));
            assert!(fast.len() > 200_000 && fast == slow, "{scheme}: {} and {}", fast.len(), slow.len());
            net
        });
    }
}

/// Blocks with spilled symbols complete late. So the contents of messages differ, but the times and kinds of messages are the
/// same.
#[test]
fn stalled_disk_delays_no_datagram_with_spilled_symbols() {
    for scheme in ["rlc,base=250000", "gmcc", "smcc"] {
        let run = |stall: Span, memory: usize| {
            let mut net = beside_a_disk_that_stalls(stall, 2.0, 0.01);
            net.receivers[1].memory = memory;
            net.start_receiver(1);
            net.source(Offer::bytes(1_500_000).by(scheme).in_blocks_of(64).expect(2));
            net.run_to_end(secs(200));
            net.assert_all_verified(0, 0..2);
            net
        };
        let little = 400_000;
        let (fast, slow, ample) = (run(Span::ZERO, little), run(STALL, little), run(STALL, 1 << 28));
        let late = |net: &Net| net.receivers[1].disk.late;
        assert!(late(&slow) > late(&ample) + 3, "{scheme}: {} and {}", late(&slow), late(&ample));
        let complete = fast.receivers[0].ended_at.min(fast.receivers[1].ended_at);
        let before = |net: &Net| {
            let up = net.trace.up.iter().take_while(|(at, ..)| *at + secs(1) < complete);
            let kind = |bytes: &[u8]| faircast_wire::peek(bytes).expect("a packet").kind;
            up.map(|(at, who, bytes)| (*at, *who, kind(bytes))).collect::<Vec<_>>()
        };
        let (fast, slow) = (before(&fast), before(&slow));
        assert!(fast.len() > 20, "{scheme}: {} datagrams", fast.len());
        let same = fast.iter().zip(&slow).take_while(|(a, b)| a == b).count();
        assert_eq!(same, fast.len().max(slow.len()), "{scheme}: {:?}", fast.get(same));
    }
}

/// Returns the names of the schemes with one rate.
pub(super) fn one_rate() -> impl Iterator<Item = &'static str> {
    let is_layered = |scheme: &str| scheme.parse::<Scheme>().is_ok_and(|scheme| scheme.layers() > 1);
    CATALOGUE.iter().map(|entry| entry.name).filter(move |scheme| !is_layered(scheme))
}

/// Returns the stream that a receiver has written to the file whose name ends with `end`.
pub(super) fn file_of(net: &Net, receiver: usize, end: &str) -> Vec<u8> {
    let files = std::fs::read_dir(&net.receivers[receiver].dir).expect("it has a directory");
    let mut files = files.filter_map(|entry| Some(entry.ok()?.path()));
    let is_stream = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("stream-") && name.ends_with(end)
    };
    files.find(is_stream).map_or_else(Vec::new, |path| std::fs::read(path).expect("it can be read"))
}

/// Delay of the disk. It exceeds every idle timeout.
const LONG: Span = Span::from_secs(70);

/// Builds a session with this scheme, and two receivers of a file. The second receiver has a slow disk.
fn net(scheme: &'static str) -> Net {
    net_with(Offer::bytes(300_000).by(scheme), None, LONG)
}

/// Does the same with this offer, which receivers accept only if it is signed with `key`, and with this delay.
fn net_with(offer: Offer, key: Option<VerifyKey>, delay: Span) -> Net {
    let mut net = Net::new(17).with_trunk(Link::millis(5).mbps(50.0).fifo(100_000));
    net.receivers(2, Link::millis(2), Link::millis(2));
    net.receivers[1].disk = SlowDisk::new(delay);
    for receiver in 0..2 {
        net.receivers[receiver].verify = key.map(VerifyKeys::from);
        net.start_receiver(receiver);
    }
    net.source(offer.expect(2));
    net
}

/// Runs until the slow receiver is processing its files.
fn until_it_works(net: &mut Net) {
    net.run_until(secs(60), |net| net.receivers[1].disk.done_at.is_some());
    assert!(net.receivers[1].disk.done_at.is_some(), "everything has come");
}

#[test]
fn source_waits_for_a_receiver_with_slow_renames() {
    for scheme in CATALOGUE.iter().map(|entry| entry.name) {
        let mut net = net(scheme);
        net.run_to_end(secs(200));
        net.assert_all_verified(0, 0..2);
        let report = net.sources[0].report();
        assert_eq!((report.verified, report.ok), (2, true), "{scheme}: {report:?}");
        let took = net.receivers[1].ended_at.since(net.receivers[0].ended_at);
        assert!(took > secs(50), "{scheme}: {took:?}");
        let busy = |events: &[(Time, Event)]| {
            let works =
                |(_, event): &&(Time, Event)| matches!(event, Event::Progress(now) if now.busy.len() == 1);
            events.iter().filter(works).count()
        };
        let (there, here) = (busy(&net.sources[0].events), busy(&net.receivers[1].events));
        assert!(there >= 60 && here >= 60, "{scheme}: {there} seconds at the source, {here} there");
        let silent = |(_, event): &(Time, Event)| format!("{event:?}").contains("silent");
        assert!(!net.sources[0].events.iter().any(silent), "{scheme}");
    }
}

#[test]
fn receiver_completes_its_renames_after_the_source_has_ended() {
    for is_killed in [true, false] {
        let mut net = net("ormcc");
        until_it_works(&mut net);
        if is_killed {
            net.kill_source(0);
        } else {
            let now = net.now;
            net.sources[0].session.as_mut().expect("it runs").stop(now);
        }
        net.run_for(LONG + secs(60));
        assert!(net.receivers[1].has(&net.sources[0]), "killed: {is_killed}");
        assert!(net.receivers[1].report().ok, "killed: {is_killed}");
    }
}

#[test]
fn receiver_completes_its_renames_if_its_source_restarts() {
    let key = SigningKey::from_seed([5; 32]);
    for (scheme, is_stopped) in CATALOGUE.iter().map(|entry| (entry.name, false)).chain([("ormcc", true)]) {
        let offer = Offer::bytes(300_000).by(scheme);
        let unsigned = net_with(offer.clone(), None, secs(9));
        for mut net in [unsigned, net_with(offer.signed(key.clone()), Some(key.verify_key()), secs(9))] {
            until_it_works(&mut net);
            net.kill_source(0);
            net.start_source(0);
            net.start_receiver(0);
            let follows = |(_, event): &(Time, Event)| {
                format!("{event:?}").contains("continuing with the verified part")
            };
            net.run_until(secs(30), |net| net.receivers[1].events.iter().any(follows));
            assert!(net.receivers[1].events.iter().any(follows), "{scheme}: {:?}", net.receivers[1].events);
            if is_stopped {
                let now = net.now;
                net.sources[0].session.as_mut().expect("it runs").stop(now);
            }
            net.run_for(secs(30));
            assert!(net.receivers[1].report().ok && net.receivers[1].has(&net.sources[0]), "{scheme}");
            if !is_stopped {
                net.assert_all_verified(0, 0..2);
                assert_eq!(net.sources[0].report().verified, 2, "{scheme}");
            }
        }
    }
}

#[test]
fn receiver_stopped_during_renames_completes_after_a_restart() {
    let mut net = net("ormcc");
    until_it_works(&mut net);
    let now = net.now;
    net.receivers[1].session.as_mut().expect("it runs").stop(now);
    net.run_for(LONG + secs(1));
    assert!(net.receivers[1].report().stopped);
    assert!(!net.receivers[1].has(&net.sources[0]), "nothing has its name");
    net.receivers[1].disk = SlowDisk::default();
    net.start_source(0);
    (0..2).for_each(|receiver| net.start_receiver(receiver));
    net.run_to_end(secs(60));
    net.assert_all_verified(0, 0..2);
    assert!(net.receivers[1].report().moved_bytes == 0, "nothing travels again");
}

#[test]
fn source_waits_for_a_receiver_with_slow_verification() {
    for scheme in CATALOGUE.iter().map(|entry| entry.name) {
        // One job verifies at most 8 MiB.
        let (bytes, stored, jobs) = match one_rate().any(|one| one == scheme) {
            true => (24_000_000, 17_000_000, 3),
            false => (3_000_000, 1_000_000, 1),
        };
        let mut net = Net::new(19).with_trunk(Link::millis(5).mbps(20.0).fifo(100_000));
        net.receivers(1, Link::millis(2), Link::millis(2));
        net.source(Offer::bytes(bytes).by(scheme).expect(1));
        net.run_until(secs(60), |net| net.receivers[0].verified_bytes() > stored);
        net.kill_receiver(0);
        net.kill_source(0);
        net.run_for(secs(1));
        let began = net.now;
        let job = secs(25);
        net.receivers[0].disk = SlowDisk { blocks: job, ..SlowDisk::new(LONG) };
        net.start_source(0);
        net.start_receiver(0);
        net.run_to_end(secs(400));
        net.assert_all_verified(0, 0..1);
        let took = net.receivers[0].ended_at.since(began);
        assert!(took > LONG + job * jobs, "{scheme}: {took:?} with {jobs} jobs");
        let report = net.receivers[0].report();
        assert!(report.refetched_bytes == 0, "{scheme}: {report:?}");
        let source = net.sources[0].report();
        assert_eq!(of(&net, 0, "host0").resumed_bytes, report.resumed_bytes, "{scheme}");
        assert!(source.moved_bytes.abs_diff(report.moved_bytes) < 1_000, "{scheme}: {report:?} {source:?}");
    }
}

/// Each block is sent once, before and after the verification of the stored blocks ends.
#[test]
fn one_way_receiver_stores_blocks_despite_slow_verification() {
    for verifies in [secs(2), LONG] {
        let mut net = Net::new(37);
        net.receivers(1, Link::millis(5), Link::millis(5));
        net.receivers[0].replay_policy = ReplayPolicy::Clock;
        net.start_receiver(0);
        net.source(Offer::bytes(3_000_000).one_way_at_mbps(8.0, Repeat::Rounds(1)));
        net.run_until(secs(20), |net| net.receivers[0].verified_bytes() > 1_000_000);
        net.kill_receiver(0);
        net.run_to_end(secs(20));
        net.receivers[0].disk = SlowDisk { blocks: verifies, ..SlowDisk::default() };
        net.start_receiver(0);
        net.start_source(0);
        net.run_to_end(secs(300));
        net.assert_all_verified(0, 0..1);
        let report = net.receivers[0].report();
        assert!(report.resumed_bytes > 1_000_000 && report.refetched_bytes == 0, "{report:?}");
    }
}

/// A receiver starts again in the middle of a session. While it verifies its stored blocks, it stores more blocks than its memory
/// has room for.
#[test]
fn restarted_receiver_stores_blocks_while_it_verifies_others() {
    for scheme in one_rate() {
        let mut net = Net::new(43).with_trunk(Link::millis(5).mbps(20.0).fifo(100_000));
        net.receivers(2, Link::millis(2), Link::millis(2));
        net.receivers.iter_mut().for_each(|node| node.memory = 16_000_000);
        net.source(Offer::bytes(20_000_000).by(scheme).in_blocks_of(64).expect(2));
        net.run_until(secs(60), |net| net.receivers[0].verified_bytes() > 9_000_000);
        net.kill_receiver(0);
        net.receivers[0].disk = SlowDisk { blocks: Span::from_millis(400), ..SlowDisk::new(secs(4)) };
        net.start_receiver(0);
        net.run_to_end(secs(200));
        net.assert_all_verified(0, 0..2);
        let report = net.receivers[0].report();
        assert!(report.resumed_bytes > 9_000_000 && report.refetched_bytes == 0, "{scheme}: {report:?}");
        assert_eq!(of(&net, 0, "host0").resumed_bytes, report.resumed_bytes, "{scheme}");
        let sent = net.sources[0].report().repair_ratio;
        assert!(sent < 1.15, "{scheme}: {sent} of the content was sent");
    }
}

/// Sends 3 MB without feedback in 5 s, in one generation, to a receiver with this memory and this slow host.
fn sent_once(scheme: &'static str, memory: usize, disk: SlowDisk) -> Net {
    let mut net = Net::new(41);
    net.receivers(1, Link::millis(5).losing(0.05), Link::millis(5));
    net.receivers[0].replay_policy = ReplayPolicy::Clock;
    (net.receivers[0].memory, net.receivers[0].disk) = (memory, disk);
    net.start_receiver(0);
    let offer = Offer::bytes(3_000_000).by(scheme).in_blocks_of(64);
    net.source(
        offer.one_way_at_mbps(8.0, Repeat::Rounds(1)).against_outages_of(Duration::from_secs(1), 0.25),
    );
    net
}

/// Nearly all blocks have enough symbols at about the same time. Decoding takes twice as long as the session.
#[test]
fn receiver_reads_on_while_blocks_wait_for_decoding() {
    for scheme in one_rate() {
        for memory in [1 << 28, 400_000] {
            let decoding = Span::from_millis(300);
            let mut net = sent_once(scheme, memory, SlowDisk { decoding, ..SlowDisk::default() });
            net.run_to_end(secs(60));
            net.assert_all_verified(0, 0..1);
            let receiver = &net.receivers[0];
            assert!(receiver.ended_at > Time::ZERO + secs(10), "{scheme}: it decodes slowly");
            assert_eq!((receiver.unaccepted, receiver.disk.late > 30), (0, true), "{scheme}, {memory}");
        }
    }
}

#[test]
fn waiting_blocks_are_decoded_after_the_idle_timeout() {
    let decoding = secs(3);
    let mut net = sent_once("tfmcc", 1 << 28, SlowDisk { decoding, ..SlowDisk::default() });
    net.run_for(Span::from_millis(5_000)); // all symbols and the root hash have been sent
    net.kill_source(0);
    net.run_to_end(secs(200));
    assert!(net.receivers[0].has(&net.sources[0]), "{:?}", net.receivers[0].ended);
    assert!(net.receivers[0].ended_at > Time::ZERO + secs(70));
}

#[test]
fn disk_too_slow_for_symbols_is_reported() {
    let mut net = sent_once("tfmcc", 100_000, SlowDisk { blocks: STALL, ..SlowDisk::default() });
    net.run_to_end(secs(200));
    let is_report = |(_, event): &&(Time, Event)| matches!(event, Event::Warning { message, .. } if message.contains("faster than the disk"));
    let receiver = &net.receivers[0];
    assert_eq!(receiver.events.iter().filter(is_report).count(), 1);
    assert!(receiver.unaccepted > 0, "it holds no more in memory");
}

/// Returns the number of open files in this directory that have no name.
fn open_without_name(directory: &Path) -> usize {
    let open = fs::read_dir("/proc/self/fd")
        .expect("Linux")
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    open.filter(|link| link.starts_with(directory) && link.to_string_lossy().ends_with(" (deleted)")).count()
}

#[test]
fn temporary_file_is_closed_after_the_report() {
    let disk = || SlowDisk { closing: LONG, ..SlowDisk::default() };
    let one_way = one_rate().map(|scheme| (scheme, sent_once(scheme, 400_000, disk())));
    let layered = ["rlc,base=250000", "gmcc", "smcc"].map(|scheme| {
        let mut net = Net::new(23);
        net.receivers(1, Link::millis(5).mbps(2.0).fifo(50_000), Link::millis(5));
        (net.receivers[0].memory, net.receivers[0].disk) = (400_000, disk());
        net.start_receiver(0);
        net.source(Offer::bytes(1_500_000).by(scheme).in_blocks_of(64).expect(1));
        (scheme, net)
    });
    for (scheme, mut net) in one_way.chain(layered) {
        net.run_to_end(secs(200));
        net.assert_all_verified(0, 0..1);
        let node = &net.receivers[0];
        assert_eq!(open_without_name(&node.dir), 1, "{scheme}: the report is there");
        let closes = node.disk.jobs.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        closes.expect("a job closes the file").1();
        assert_eq!(open_without_name(&node.dir), 0, "{scheme}");
    }
}
