//! Sources and receivers in virtual time, without sockets.

use super::files::Found;
use super::source::Pace;
use super::*;
use crate::codec::{
    Extensions, FDT_TOI, Fdt, FdtHeader, File, Layering, Oti, Packet, Params, PayloadId, Rlc, encode, parse,
};
use faircast_core::packet::Layer;
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use faircast_driver::format::Reporting;
use faircast_transport::endpoint::Endpoint;
use faircast_transport::error::Error;
use faircast_transport::step_driver::give;
use std::fs;
use std::net::Ipv4Addr;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

const UNIX_SECS: u64 = 1_790_000_000;
const FROM: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 40_000);

fn groups() -> Vec<SocketAddr> {
    (1..=4).map(|n| SocketAddr::from(([239, 1, 1, n], 5777))).collect()
}

fn noise(len: usize) -> Vec<u8> {
    let mut rng = Rng::new(5, len as u64);
    (0..len).map(|_| rng.bits() as u8).collect()
}

/// Creates a tree with an empty file, a short file and a file of many blocks.
fn tree(len: usize) -> TempDir {
    let directory = TempDir::new().expect("a temporary directory");
    let top = directory.path().join("tree");
    fs::create_dir_all(top.join("deep er")).expect("writable");
    fs::write(top.join("empty"), []).expect("writable");
    fs::write(top.join("deep er/short"), b"a few bytes").expect("writable");
    fs::write(top.join("large.bin"), noise(len)).expect("writable");
    directory
}

fn source(directory: &Path, fec: Fec, pacing: Pacing, repeat: Repeat) -> source::AlcSource {
    source_in_symbols_of(1_024, directory, fec, pacing, repeat)
}

fn source_in_symbols_of(
    symbol_size: u16,
    directory: &Path,
    fec: Fec,
    pacing: Pacing,
    repeat: Repeat,
) -> source::AlcSource {
    let found = Found::look(&[directory.join("tree")], fec, symbol_size).expect("it can be sent");
    let (pace, layering) = match pacing {
        Pacing::Fixed(rate) => (Pace::Fixed { rate, next: Time::ZERO }, None),
        Pacing::Layered { scheme, spacing } => (
            Pace::Timetable(Box::new(scheme.with_packet_size(1_080).source())),
            Some(Layering { scheme: scheme.to_string(), packet_size: 1_080, spacing }),
        ),
    };
    let (room, rng) = (1_000, Rng::new(7, 0));
    let setup = source::Setup {
        tsi: 9,
        groups: groups(),
        found,
        pace,
        layering,
        repeat,
        room,
        overhead: 28,
        unix_secs: UNIX_SECS,
        rng,
    };
    source::AlcSource::new(setup, Time::ZERO)
}

fn receiver(out: &Path) -> receiver::AlcReceiver {
    receiver_of(out, Names::Escape, None)
}

fn receiver_that_names(out: &Path, names: Names) -> receiver::AlcReceiver {
    receiver_of(out, names, None)
}

/// Creates a receiver that takes at most `most` bytes.
fn receiver_of(out: &Path, names: Names, most: Option<u64>) -> receiver::AlcReceiver {
    let setup = receiver::Setup {
        group: groups()[0],
        only: None,
        out: out.to_path_buf(),
        names,
        most,
        join_timeout: Some(Span::from_secs(5)),
        idle_timeout: Span::from_secs(5),
        overhead: 28,
        unix_secs: UNIX_SECS,
        random: 3,
    };
    receiver::AlcReceiver::new(setup, Time::ZERO).expect("the directory can be made")
}

/// Returns the next packet that is sent now, and its layer.
fn next(source: &mut source::AlcSource, now: Time) -> Option<(Layer, Vec<u8>)> {
    let mut out = Vec::new();
    source.handle_timeout(now);
    let to = source.poll_transmit(now, &mut out)?.to;
    let layer = groups().iter().position(|group| *group == to).expect("a group of its own");
    Some((Layer(layer as u8), out))
}

/// Runs a source until the source or the receiver has ended; `passes` decides which packets arrive.
fn run(
    source: &mut source::AlcSource,
    receiver: &mut receiver::AlcReceiver,
    mut passes: impl FnMut(Layer, &[u8], Time) -> bool,
) {
    let mut now = Time::ZERO;
    while !source.is_finished() && !receiver.is_finished() {
        while let Some((layer, mut bytes)) = next(source, now) {
            if layer.0 as usize <= receiver.groups().len() && passes(layer, &bytes, now) {
                give(receiver, &mut bytes, FROM, now);
            }
        }
        receiver.handle_timeout(now);
        now = source.poll_timeout(now).min(receiver.poll_timeout(now)).max(now + Span::from_nanos(1));
    }
}

fn same(directory: &Path, out: &Path) -> bool {
    ["tree/empty", "tree/deep er/short", "tree/large.bin"].iter().all(|file| {
        let (sent, got) = (fs::read(directory.join(file)), fs::read(out.join(file)));
        sent.is_ok_and(|sent| got.is_ok_and(|got| got == sent))
    })
}

fn fixed() -> Pacing {
    Pacing::Fixed(Rate::from_mbps(10.0))
}

#[test]
fn tree_arrives_in_one_generation_without_losses() {
    for fec in [Fec::NoCode, Fec::Raptor, Fec::RaptorQ] {
        let (sent, out) = (tree(1_500_000), TempDir::new().expect("a temporary directory"));
        let mut source = source(sent.path(), fec, fixed(), Repeat::Rounds(1));
        let mut receiver = receiver(out.path());
        run(&mut source, &mut receiver, |_, _, _| true);
        assert!(same(sent.path(), out.path()));
        let report = receiver.report().expect("all has come");
        assert_eq!((report.ok, report.files, report.verified, report.known), (true, 3, 3, 3));
        assert_eq!(report.bytes, 1_500_011);
        let names: Vec<_> = fs::read_dir(out.path()).expect("readable").collect();
        assert_eq!(names.len(), 1, "nothing else is left: {names:?}");
    }
}

#[test]
fn receiver_with_a_code_completes_within_two_generations() {
    for fec in [Fec::Raptor, Fec::RaptorQ] {
        let (sent, out) = (tree(1_500_000), TempDir::new().expect("a temporary directory"));
        let mut source = source(sent.path(), fec, fixed(), Repeat::Rounds(3));
        let (mut receiver, mut rng) = (receiver(out.path()), Rng::new(1, 1));
        run(&mut source, &mut receiver, |_, _, _| !rng.chance(0.3));
        assert!(same(sent.path(), out.path()));
        let report = receiver.report().expect("all has come");
        let rounds = source.report().expect("files can be read").rounds;
        assert!(rounds < 2 && report.repaired_blocks > 3, "{fec:?}: {rounds} rounds, {report:?}");
        // At this loss rate, a receiver needs 1.43 rounds. A round consists of eight passes, so few of the received symbols are
        // superfluous.
        assert!(report.symbol_ratio < 1.2, "{fec:?}: {report:?}");
    }
}

#[test]
fn carousel_without_a_code_repeats_lost_symbols() {
    let (sent, out) = (tree(300_000), TempDir::new().expect("a temporary directory"));
    let mut source = source(sent.path(), Fec::NoCode, fixed(), Repeat::Rounds(20));
    let (mut receiver, mut rng) = (receiver(out.path()), Rng::new(1, 1));
    run(&mut source, &mut receiver, |_, _, _| !rng.chance(0.3));
    assert!(same(sent.path(), out.path()));
    assert!(source.report().expect("files can be read").rounds >= 2);
}

#[test]
fn source_of_a_changed_file_ends_with_an_error() {
    let (sent, out) = (tree(300_000), TempDir::new().expect("a temporary directory"));
    let mut source = source(sent.path(), Fec::NoCode, fixed(), Repeat::Forever);
    let file = fs::File::options().write(true).open(sent.path().join("tree/large.bin")).expect("ours");
    file.set_modified(std::time::UNIX_EPOCH).expect("ours");
    run(&mut source, &mut receiver(out.path()), |_, _, _| false);
    let error = source.report().expect_err("the file has another time").to_string();
    assert!(error.contains("tree/large.bin"), "{error}");
}

#[test]
fn late_joiner_completes_with_the_next_generation() {
    let (sent, out) = (tree(1_500_000), TempDir::new().expect("a temporary directory"));
    let mut source = source(sent.path(), Fec::NoCode, fixed(), Repeat::Forever);
    let mut receiver = receiver(out.path());
    run(&mut source, &mut receiver, |_, _, now| now > Time::from_secs_f64(0.7));
    assert!(same(sent.path(), out.path()) && receiver.report().is_ok_and(|report| report.ok));
}

/// Runs a session of one round in which a fraction `loss` of all packets is lost; returns the receiver's result.
fn session(sent: &Path, out: &Path, fec: Fec, loss: f64, seed: u64) -> Result<AlcReceiveReport, Error> {
    let mut source = source(sent, fec, fixed(), Repeat::Rounds(1));
    let (mut receiver, mut rng) = (receiver(out), Rng::new(seed, 1));
    run(&mut source, &mut receiver, |_, _, _| !rng.chance(loss));
    receiver.report()
}

#[test]
fn file_is_completed_by_later_sessions() {
    for fec in [Fec::NoCode, Fec::Raptor, Fec::RaptorQ] {
        let (sent, out) = (tree(1_500_000), TempDir::new().expect("a temporary directory"));
        let first = session(sent.path(), out.path(), fec, 0.05, 1);
        assert!(
            matches!(&first, Err(Error::Format(error)) if matches!(error.downcast_ref(), Some(AlcError::Ended { known: 3, stored: 1, .. }))),
            "{fec:?}: {first:?}"
        );
        assert!(!out.path().join("tree/large.bin").exists());
        let complete = (2..10).find_map(|seed| session(sent.path(), out.path(), fec, 0.05, seed).ok());
        let report = complete.expect("each session brings a part of what is missing");
        assert!(report.ok && same(sent.path(), out.path()), "{fec:?}: {report:?}");
        assert!(!out.path().join(".faircast").exists(), "{fec:?}: nothing else is left");
    }
}

#[test]
fn partial_file_with_changed_bytes_is_received_again() {
    let (sent, out) = (tree(300_000), TempDir::new().expect("a temporary directory"));
    session(sent.path(), out.path(), Fec::NoCode, 0.05, 1).expect_err("something is missing");
    let parts = out.path().join(".faircast");
    for part in fs::read_dir(&parts).expect("it is kept").map(|part| part.expect("listed").path()) {
        if part.to_string_lossy().ends_with("-0") {
            fs::write(part, vec![1; 300_000]).expect("ours");
        }
    }
    let mut source = source(sent.path(), Fec::NoCode, fixed(), Repeat::Rounds(3));
    let mut receiver = receiver(out.path());
    run(&mut source, &mut receiver, |_, _, _| true);
    assert!(same(sent.path(), out.path()));
    assert_eq!(receiver.report().expect("it is told in the report").files, 3);
}

#[test]
fn partial_file_that_is_a_hard_link_is_not_overwritten() {
    let (sent, out) = (tree(300_000), TempDir::new().expect("a temporary directory"));
    session(sent.path(), out.path(), Fec::NoCode, 0.05, 1).expect_err("something is missing");
    let (parts, other) = (out.path().join(".faircast"), out.path().join("other"));
    fs::write(&other, vec![1; 300_000]).expect("ours");
    for part in fs::read_dir(&parts).expect("it is kept").map(|part| part.expect("listed").path()) {
        if part.to_string_lossy().ends_with("-0") {
            fs::remove_file(&part).expect("ours");
            fs::hard_link(&other, part).expect("one filesystem");
        }
    }
    session(sent.path(), out.path(), Fec::NoCode, 0.0, 2).expect("all of it has come");
    assert!(same(sent.path(), out.path()) && fs::read(&other).is_ok_and(|bytes| bytes == vec![1; 300_000]));
}

#[test]
fn incomplete_file_without_md5_is_not_stored() {
    let out = TempDir::new().expect("a temporary directory");
    let mut receiver = receiver(out.path());
    let mut forger = Forger { next_instance: 0 };
    forger.announce_of(&mut receiver, 6, [(1, "file".to_owned())].into_iter());
    Forger::content(&mut receiver, 1);
    receiver.handle_timeout(Time::ZERO + Span::from_secs(6));
    let ended = receiver.report();
    assert!(
        matches!(&ended, Err(Error::Format(error)) if matches!(error.downcast_ref(), Some(AlcError::Ended { known: 1, stored: 0, .. }))),
        "{ended:?}"
    );
    assert!(!out.path().join(".faircast").exists());
}

/// Blocks have 1,471 symbols, as with 530 MB in packets of Ethernet.
#[test]
fn file_of_many_symbols_arrives_with_raptorq() {
    let (sent, out) = (tree(3_000_000), TempDir::new().expect("a temporary directory"));
    let mut source = source_in_symbols_of(8, sent.path(), Fec::RaptorQ, fixed(), Repeat::Rounds(2));
    let (mut receiver, mut rng) = (receiver(out.path()), Rng::new(1, 1));
    run(&mut source, &mut receiver, |_, _, _| !rng.chance(0.05));
    assert!(same(sent.path(), out.path()));
    let report = receiver.report().expect("all has come");
    assert!(report.repaired_blocks > 250, "{report:?}");
}

#[test]
fn blocks_of_a_600_megabyte_file_are_accepted_by_receivers() {
    let (sent, out) = (TempDir::new().expect("a directory"), TempDir::new().expect("a directory"));
    let file = fs::File::create(sent.path().join("tree")).expect("writable");
    file.set_len(600_000_000).expect("a sparse file has any length");
    let mut source = source(sent.path(), Fec::RaptorQ, fixed(), Repeat::Rounds(1));
    let (mut receiver, mut now, mut taken) = (receiver(out.path()), Time::ZERO, 0);
    while taken < 5_000 {
        while let Some((_, mut bytes)) = next(&mut source, now) {
            taken += u32::from(parse(&bytes).is_ok_and(|packet| packet.toi == Some(1)));
            give(&mut receiver, &mut bytes, FROM, now);
        }
        now = source.poll_timeout(now);
    }
    receiver.handle_timeout(now + Span::from_secs(2));
    let progress = std::iter::from_fn(|| receiver.poll_event()).filter_map(|event| match event {
        faircast_transport::event::Event::Progress(progress) => Some((progress.bytes, progress.total_bytes)),
        _ => None,
    });
    let two_blocks = 2 * 600_000_000_u64.div_ceil(1_024).div_ceil(255) * 1_024;
    assert_eq!(progress.last(), Some((two_blocks, Some(600_000_000))));
}

#[test]
fn file_damaged_in_transit_is_not_published() {
    let (sent, out) = (tree(200_000), TempDir::new().expect("a temporary directory"));
    let mut source = source(sent.path(), Fec::NoCode, fixed(), Repeat::Rounds(1));
    let mut receiver = receiver(out.path());
    let (mut now, mut changed) = (Time::ZERO, 0);
    while !source.is_finished() {
        while let Some((_, mut packet)) = next(&mut source, now) {
            let is_large = parse(&packet).is_ok_and(|packet| packet.toi == Some(3));
            if is_large && changed == 0 {
                *packet.last_mut().expect("it has bytes") ^= 1;
                changed += 1;
            }
            give(&mut receiver, &mut packet, FROM, now);
        }
        now = source.poll_timeout(now);
    }
    assert_eq!(changed, 1);
    let report = receiver.report().expect("it is told in the report");
    assert_eq!((report.ok, report.files, report.skipped.len()), (false, 2, 1));
    assert!(!out.path().join("tree/large.bin").exists());
}

/// A hostile source with arbitrary tables and packet sizes.
struct Forger {
    next_instance: u32,
}

const TABLE_SYMBOL: u16 = 1_400;

impl Forger {
    fn packet(toi: u128, (symbol, bytes): (u32, &[u8]), table: Option<(FdtHeader, Oti)>) -> Vec<u8> {
        Forger::packet_of(toi, PayloadId { symbol, ..PayloadId::default() }, bytes, table)
    }

    fn packet_of(toi: u128, place: PayloadId, bytes: &[u8], table: Option<(FdtHeader, Oti)>) -> Vec<u8> {
        let (fdt, oti) = table.unzip();
        let packet = Packet {
            cci: &[0; 4],
            tsi: Some(1),
            toi: Some(toi),
            fec: Fec::NoCode,
            psi: 0,
            closing: Default::default(),
            extensions: Extensions { fdt, oti, ..Extensions::default() },
            payload_id: Some(place),
            symbols: bytes,
        };
        let mut out = Vec::new();
        encode(&mut out, &packet).expect("it can be written");
        out
    }

    /// Announces files of three bytes with these identifiers and names.
    fn announce(&mut self, to: &mut receiver::AlcReceiver, files: impl Iterator<Item = (u128, String)>) {
        self.announce_of(to, 3, files);
    }

    /// Announces files of `bytes` bytes in symbols of three bytes.
    fn announce_of(
        &mut self,
        to: &mut receiver::AlcReceiver,
        bytes: u64,
        files: impl Iterator<Item = (u128, String)>,
    ) {
        let oti = Oti { transfer_length: bytes, symbol_size: 3, params: Params::NoCode { max_block: 8 } };
        self.announce_coded(to, files.map(|(toi, location)| (toi, location, oti)));
    }

    /// Announces files with this division and coding.
    fn announce_coded(
        &mut self,
        to: &mut receiver::AlcReceiver,
        files: impl Iterator<Item = (u128, String, Oti)>,
    ) {
        let files = files.map(|(toi, location, oti)| File {
            location,
            toi,
            transfer_length: Some(oti.transfer_length),
            oti: Some(oti),
            ..File::default()
        });
        let expires = UNIX_SECS + crate::codec::NTP_UNIX_SECS + 60;
        let table = Fdt { expires, complete: false, files: files.collect(), ..Fdt::default() }.encode();
        let header = FdtHeader { version: 2, instance: self.next_instance };
        self.next_instance += 1;
        let params = Params::NoCode { max_block: u16::MAX.into() };
        let oti = Oti { transfer_length: table.len() as u64, symbol_size: TABLE_SYMBOL, params };
        for part in (0..).zip(table.as_bytes().chunks(TABLE_SYMBOL.into())) {
            give(to, &mut Forger::packet(FDT_TOI, part, Some((header, oti))), FROM, Time::ZERO);
        }
    }

    fn content(to: &mut receiver::AlcReceiver, toi: u128) {
        give(to, &mut Forger::packet(toi, (0, b"abc"), None), FROM, Time::ZERO);
    }
}

#[test]
fn files_with_names_outside_the_directory_are_skipped() {
    let directory = TempDir::new().expect("a temporary directory");
    let out = directory.path().join("out");
    fs::create_dir_all(&out).expect("writable");
    std::os::unix::fs::symlink(directory.path(), out.join("link")).expect("writable");
    let mut receiver = receiver(&out);
    let names = ["../evil", "a/../../evil", "%2e%2e/evil", "link/evil", "good"];
    Forger { next_instance: 0 }.announce(&mut receiver, (1..).zip(names.map(str::to_owned)));
    (1..=5).for_each(|toi| Forger::content(&mut receiver, toi));
    assert_eq!(
        receiver.report().map(|report| (report.ok, report.files, report.skipped.len())).ok(),
        Some((false, 1, 4))
    );
    assert!(out.join("good").exists() && !directory.path().join("evil").exists());
}

#[test]
fn files_with_unsupported_blocks_are_skipped_with_a_reason() {
    let out = TempDir::new().expect("a temporary directory");
    let mut receiver = receiver(out.path());
    let raptor = |bytes, blocks, sub_blocks| Oti {
        transfer_length: bytes,
        symbol_size: 5,
        params: Params::Raptor { blocks, sub_blocks, alignment: 5 },
    };
    let raptorq = Params::RaptorQ { blocks: 1, sub_blocks: 3, alignment: 4 };
    let files = [
        (raptor(7 * 5, 2, 1), "blocks of 3 symbols"), // blocks of four and three symbols
        (raptor(8_193 * 5, 1, 1), "blocks of 8193 symbols"),
        (raptor(100, 1, 2), "2 sub-blocks"),
        (Oti { transfer_length: 800, symbol_size: 8, params: raptorq }, "3 sub-blocks"),
        (raptor(8 * 5, 2, 1), ""),
    ];
    let named = (1..).zip(files).map(|(toi, (oti, _))| (toi, format!("file{toi}"), oti));
    Forger { next_instance: 0 }.announce_coded(&mut receiver, named);
    let skipped = receiver.report().expect("they are named in the report").skipped;
    assert_eq!(skipped.len(), files.len() - 1, "{skipped:?}");
    for (line, (_, reason)) in skipped.iter().zip(files) {
        assert!(line.contains(reason), "{line}");
    }
}

#[test]
fn control_characters_in_names_follow_the_name_policy() {
    for (names, file) in
        [(Names::Escape, Some("a\\x1b[2J")), (Names::Keep, Some("a\u{1b}[2J")), (Names::Refuse, None)]
    {
        let out = TempDir::new().expect("a temporary directory");
        let mut receiver = receiver_that_names(out.path(), names);
        Forger { next_instance: 0 }.announce(&mut receiver, [(1, "a%1b[2J".to_owned())].into_iter());
        Forger::content(&mut receiver, 1);
        let report = receiver.report().expect("it is told in the report");
        let there = fs::read_dir(out.path()).expect("listed").flatten().map(|entry| entry.file_name());
        let there: Vec<_> = there.filter(|name| name != ".faircast").collect();
        assert_eq!(there, Vec::from_iter(file.map(std::ffi::OsString::from)), "{names}");
        assert_eq!((report.ok, report.skipped.len()), (file.is_some(), usize::from(file.is_none())));
    }
}

#[test]
fn endless_tables_use_bounded_memory_and_cause_few_warnings() {
    let out = TempDir::new().expect("a temporary directory");
    let mut receiver = receiver(out.path());
    let (mut forger, per_table) = (Forger { next_instance: 0 }, 20_000);
    for table in 0..12 {
        let first = 1 + table * per_table;
        forger.announce(&mut receiver, (first..first + per_table).map(|toi| (toi, format!("../{toi}"))));
    }
    assert!(receiver.stored() <= 200_000, "{}", receiver.stored());
    let warnings = std::iter::from_fn(|| receiver.poll_event())
        .filter(|event| matches!(event, faircast_transport::event::Event::Warning { .. }))
        .count();
    let report = receiver.report().expect("it is told in the report");
    assert!(!report.ok && report.skipped.len() == 1_000 && warnings == 1_000, "{warnings}");
    assert!(report.skipped_count >= 200_000, "{}", report.skipped_count);
}

fn layered(options: &str) -> Pacing {
    let scheme = format!("rlc,{options}").parse().expect("options of RLC");
    Pacing::Layered { scheme, spacing: Spacing::Address }
}

/// Creates a bottleneck of `bps` bit/s with a queue of 30 packets.
fn bottleneck(bps: f64) -> impl FnMut(Layer, &[u8], Time) -> bool {
    let mut free_at = Time::ZERO;
    move |_, bytes, now| {
        let time = Rate::from_bps(bps).span_of(bytes.len() as u64 + 28);
        let waiting = free_at.since(now);
        let passes = waiting < time.scaled(30.0);
        if passes {
            free_at = free_at.max(now) + time;
        }
        passes
    }
}

#[test]
fn receiver_joins_the_layers_that_its_bottleneck_carries() {
    let mut seconds = Vec::new();
    for (bps, highest) in [(300e3, 1), (1.2e6, 3), (1e9, 3)] {
        let (sent, out) = (tree(2_000_000), TempDir::new().expect("a temporary directory"));
        let pacing = layered("layers=4,base=128000");
        let mut source = source(sent.path(), Fec::RaptorQ, pacing, Repeat::Forever);
        let mut receiver = receiver(out.path());
        run(&mut source, &mut receiver, bottleneck(bps));
        assert!(same(sent.path(), out.path()));
        let report = receiver.report().expect("all has come");
        assert_eq!((report.ok, report.layers), (true, 4));
        assert!(report.highest_layer >= highest.min(1) && report.joins >= 1, "{bps}: {report:?}");
        seconds.push(report.duration.as_secs_f64());
    }
    // The last two receivers have capacity for all four layers, the first receiver only for the lowest two layers.
    assert!(seconds[0] > 2.0 * seconds[1], "{seconds:?}");
}

#[test]
fn layered_source_sends_no_symbol_twice() {
    for fec in [Fec::Raptor, Fec::RaptorQ] {
        let (sent, repeat) = (tree(2_000_000), Repeat::For(Duration::from_secs(20)));
        let mut source = source(sent.path(), fec, layered("layers=4,base=512000"), repeat);
        let (mut now, mut seen, mut layers) = (Time::ZERO, std::collections::HashSet::new(), [0; 4]);
        while !source.is_finished() {
            while let Some((layer, out)) = next(&mut source, now) {
                let packet = parse(&out).expect("whole");
                let rlc = Rlc::from_bytes(packet.cci).expect("RLC's");
                assert_eq!(rlc.layer, layer);
                layers[usize::from(layer.0)] += 1;
                // This is the large file; the other files are short and repeated often.
                if packet.toi == Some(3) {
                    assert!(seen.insert(packet.payload_id), "{packet:?}");
                }
            }
            now = source.poll_timeout(now);
        }
        assert!(layers[3] > 2 * layers[1] && layers[1] > 100, "{fec:?}: {layers:?}");
    }
}

#[test]
fn files_over_the_quota_are_skipped_and_reported() {
    let (sent, out) = (tree(200_000), TempDir::new().expect("a temporary directory"));
    let mut source = source(sent.path(), Fec::NoCode, fixed(), Repeat::Rounds(1));
    let mut receiver = receiver_of(out.path(), Names::Escape, Some(100_000));
    run(&mut source, &mut receiver, |_, _, _| true);
    let report = receiver.report().expect("it is told in the report");
    assert_eq!((report.ok, report.files, report.known), (false, 2, 3), "{report:?}");
    assert!(
        report.skipped.iter().any(|why| why.contains("tree/large.bin") && why.contains("100000")),
        "{report:?}"
    );
    assert!(!out.path().join("tree/large.bin").exists() && out.path().join("tree/deep er/short").exists());
}

/// Files have very large lengths, and one symbol of each of their blocks arrives.
#[test]
fn incomplete_blocks_take_bounded_memory() {
    let out = TempDir::new().expect("a temporary directory");
    let mut receiver = receiver(out.path());
    let oti = |transfer_length, symbol_size, max_block| Oti {
        transfer_length,
        symbol_size,
        params: Params::NoCode { max_block },
    };
    let absurd = oti((1 << 32) - 1, 1, 1 << 16);
    let files = (1..=2).map(|toi| File {
        location: format!("file{toi}"),
        toi,
        transfer_length: Some(absurd.transfer_length),
        oti: Some(absurd),
        ..File::default()
    });
    let expires = UNIX_SECS + crate::codec::NTP_UNIX_SECS + 60;
    let table = Fdt { expires, complete: true, files: files.collect(), ..Fdt::default() }.encode();
    let header = FdtHeader { version: 2, instance: 0 };
    let head = (header, oti(table.len() as u64, TABLE_SYMBOL, u32::from(u16::MAX)));
    for part in (0..).zip(table.as_bytes().chunks(TABLE_SYMBOL.into())) {
        give(&mut receiver, &mut Forger::packet(FDT_TOI, part, Some(head)), FROM, Time::ZERO);
    }
    let mut most = 0;
    for toi in 1..=2 {
        for block in 0..40_000 {
            let mut bytes = Forger::packet_of(toi, PayloadId { block, symbol: 7 }, &[1], None);
            give(&mut receiver, &mut bytes, FROM, Time::ZERO);
            most = most.max(receiver.held());
        }
    }
    assert!((200 << 20..=256 << 20).contains(&most), "{most} bytes");
}

/// Computes the table of `docs/alc.md`.
#[test]
#[ignore = "it measures, and takes minutes"]
fn measure_generations_needed_at_each_loss_rate() {
    let (sent, symbols) = (TempDir::new().expect("a directory"), 100_000_000_u64.div_ceil(1_424));
    fs::write(sent.path().join("tree"), noise(100_000_000)).expect("writable");
    for fec in [Fec::NoCode, Fec::Raptor, Fec::RaptorQ] {
        for loss in [0.0, 0.001, 0.01, 0.05, 0.1, 0.2] {
            let mut rounds: Vec<f64> = (1..=3)
                .map(|seed| {
                    let out = TempDir::new().expect("a directory");
                    let pacing = Pacing::Fixed(Rate::from_mbps(80.0));
                    let mut source =
                        source_in_symbols_of(1_424, sent.path(), fec, pacing, Repeat::Rounds(40));
                    let (mut receiver, mut rng) = (receiver(out.path()), Rng::new(seed, 1));
                    let mut packets = 0_u64;
                    run(&mut source, &mut receiver, |_, bytes, _| {
                        packets += u64::from(parse(bytes).is_ok_and(|packet| packet.toi == Some(1)));
                        !rng.chance(loss)
                    });
                    assert!(receiver.report().is_ok_and(|report| report.ok));
                    packets as f64 / symbols as f64
                })
                .collect();
            rounds.sort_by(f64::total_cmp);
            println!("ALC, {fec:?}, loss of {:.1} %: {:.2} rounds", loss * 100.0, rounds[1]);
        }
    }
}
