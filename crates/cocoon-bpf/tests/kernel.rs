//! Tests of the programs in the running kernel. They need root and a kernel with BTF and struct_ops; otherwise they are skipped
//! with a message.

use faircast_cocoon_bpf::layout::{Group, SLOTS};
use faircast_cocoon_bpf::{
    CocoonError, GroupKey, Loaded, Place, Settings, Which, load, preflight, status, trace, unload,
};
use faircast_testkit::{EmulatedLab, require_root};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use rustix::net::sockopt::{set_tcp_congestion, tcp_congestion};
use rustix::net::{AddressFamily, SocketType};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const BPFFS: &str = "/sys/fs/bpf";

/// Returns a place that only this test uses. Returns `None` if the test is skipped, after the reason was printed.
fn place(test: &str) -> Option<Place> {
    require_root()?;
    if let Err(CocoonError::NoBpffs(_)) = preflight(Path::new(BPFFS)) {
        // Mounts the BPF file system of the machine, as systemd would do.
        let _ = Command::new("mount").args(["-t", "bpf", "bpf", BPFFS]).status();
    }
    if let Err(reason) = preflight(Path::new(BPFFS)) {
        let _ = writeln!(std::io::stderr(), "skipped: {test}: {reason}");
        return None;
    }
    let name = format!("fc{test}{}", std::process::id() % 100_000);
    let place = Place::new(&name, Path::new(BPFFS)).expect("a short name");
    let _ = unload(&place);
    Some(place)
}

/// Unloads the programs at the end of the test, also after a panic.
struct Registered(Place);

impl Registered {
    fn new(place: &Place, settings: &Settings) -> Self {
        load(place, settings).expect("the kernel takes the programs");
        Self(place.clone())
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let _ = unload(&self.0);
    }
}

/// Returns a connection over the loopback whose sending end uses the congestion control.
fn connection(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let address = listener.local_addr().expect("it listens");
    let receiving = TcpStream::connect(address).expect("the loopback connects");
    let (sending, _) = listener.accept().expect("it has connected");
    receiving.set_read_timeout(Some(Duration::from_secs(20))).expect("a valid time");
    (sending, receiving)
}

fn listener(place: &Place) -> TcpListener {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback has ports");
    set_tcp_congestion(&listener, place.name()).expect("it is registered");
    listener
}

fn transfer((sending, receiving): &mut (TcpStream, TcpStream), bytes: usize) {
    let data = vec![5; bytes];
    std::thread::scope(|scope| {
        scope.spawn(|| sending.write_all(&data).expect("the connection is alive"));
        let mut got = vec![0; bytes];
        receiving.read_exact(&mut got).expect("the connection is alive");
    });
}

/// Waits up to ten seconds until a condition holds.
fn eventually(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < end, "not within ten seconds: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the kernel's ID of the pinned table of groups.
fn table(place: &Place) -> u32 {
    let pinned = MapHandle::from_pinned_path(place.directory().join("groups")).expect("it is pinned");
    pinned.info().expect("the kernel describes it").info.id
}

/// Returns the number of these tables that still exist in the kernel. A table exists as long as a program uses it.
fn held(tables: &[u32]) -> usize {
    libbpf_rs::query::MapInfoIter::default().filter(|map| tables.contains(&map.id)).count()
}

/// Returns the number of warnings in the kernel's log, and the kernel's taint state.
fn complaints() -> (usize, String) {
    let printed = Command::new("dmesg").output().expect("util-linux is there");
    let text = String::from_utf8_lossy(&printed.stdout).into_owned();
    let count = text.lines().filter(|line| line.contains("WARNING:") || line.contains("BUG:")).count();
    (count, std::fs::read_to_string("/proc/sys/kernel/tainted").unwrap_or_default())
}

/// Lock that runs the tests one after another, because they share the log of the kernel.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn turn() -> std::sync::MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[test]
fn connections_survive_three_unloads_and_programs_are_freed() {
    let Some(place) = place("cyc") else { return };
    let _turn = turn();
    let before = complaints();
    let (mut kept, mut tables) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let registered = Registered::new(&place, &Settings::default());
        tables.push(table(&place));
        let listener = listener(&place);
        let mut connections: Vec<_> = (0..20).map(|_| connection(&listener)).collect();
        for each in &mut connections {
            transfer(each, 100_000);
        }
        let shown = status::Status::read(&place).expect("it is loaded");
        assert_eq!((shown.connections_begun, shown.groups.len()), (20, 1));
        assert_eq!((shown.groups[0].members, shown.zero_windows, shown.ungrouped), (20, 0, 0));
        drop(registered);

        let refused = set_tcp_congestion(&connections[0].1, place.name());
        assert_eq!(refused, Err(rustix::io::Errno::NOENT), "nobody can choose it any more");
        for each in &mut connections {
            transfer(each, 100_000);
        }
        assert_eq!(tcp_congestion(&connections[0].0).expect("it is TCP"), place.name());
        kept.push(connections.pop().expect("there are twenty"));
    }
    assert_eq!(held(&tables), 3, "the connections that are alive hold the programs");
    for each in &mut kept {
        transfer(each, 100_000);
    }
    drop(kept);
    eventually("the kernel frees the programs after the last connection", || held(&tables) == 0);
    assert_eq!(complaints(), before, "the kernel complains: dmesg");
}

/// Returns the fields of the trace by which a further connection begins, as numbers.
fn start_of(place: &Place, listener: &TcpListener) -> HashMap<String, u32> {
    let stop = AtomicBool::new(false);
    let mut traced = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| trace::record(place, &mut traced, &stop).expect("events can be read"));
        let totals = || Loaded::find(place).and_then(|it| it.totals()).expect("it is loaded");
        eventually("the trace begins", || totals().trace);
        transfer(&mut connection(listener), 10_000);
        stop.store(true, Ordering::Relaxed);
    });
    let text = String::from_utf8(traced).expect("CSV is text");
    let mut lines = text.lines();
    let names = lines.next().expect("the names").split(',');
    let start = lines.find(|line| line.contains(",start,")).expect("it began").split(',');
    let numbers = names.zip(start).filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)));
    numbers.collect()
}

#[test]
fn a_second_connection_begins_with_half_the_window_of_the_first() {
    let Some(place) = place("two") else { return };
    let _turn = turn();
    let _registered = Registered::new(&place, &Settings::default());
    let listener = listener(&place);
    let mut first = connection(&listener);
    // The receiver does not read, so more is written than can be sent, and the first connection stays active.
    first.0.set_nonblocking(true).expect("a socket can be");
    while first.0.write(&[1; 65_536]).is_ok() {}
    let window = || {
        let loaded = Loaded::find(&place).expect("it is loaded");
        let groups = loaded.groups();
        groups[0].1.slots.iter().find(|slot| slot.active).map_or(0, |slot| slot.cwnd)
    };
    eventually("the first one has data out", || window() > 0);
    let start = start_of(&place, &listener);
    let of = |name| start[name];
    assert_eq!((of("of"), of("reference")), (1, window()));
    assert_eq!(of("cwnd_after"), (of("reference") / 2).max(1));
    let shown = status::Status::read(&place).expect("it is loaded");
    assert_eq!((shown.groups[0].alone_starts, shown.groups[0].shared_starts), (1, 1));
    let text = status::text(&shown);
    assert!(text.contains("127.0.0.0/24") && text.contains("starts: 1 shared, 1 alone"), "{text}");
    assert!(status::DEPARTURES.iter().all(|(_, how)| text.contains(how)), "{text}");
}

/// A server whose eight downloads share a queue of ten packets.
const SHORT_QUEUE: &str = "
    host server
    host client
    link server client rate=10M delay=10ms queue=droptail,10";

#[test]
fn group_limit_reduces_windows_after_a_loss() {
    let Some(place) = place("lim") else { return };
    let Some(root) = require_root() else { return };
    let _turn = turn();
    let lab = EmulatedLab::shared(&root, SHORT_QUEUE).expect("the lab starts");
    let group = |group_limit: bool| {
        let _registered = Registered::new(&place, &Settings { group_limit, ..Settings::default() });
        let bound = lab.host("server").inside(|| {
            let listener = TcpListener::bind((lab.host("server").ipv4(), 0)).expect("the server has its address");
            set_tcp_congestion(&listener, place.name()).expect("it is registered");
            listener
        });
        let listener = bound.expect("the namespace exists");
        let connect = || lab.host("client").inside(|| connection(&listener)).expect("the namespace exists");
        let mut downloads: Vec<_> = (0..8).map(|_| connect()).collect();
        std::thread::scope(|scope| {
            downloads.iter_mut().for_each(|one| drop(scope.spawn(|| transfer(one, 300_000))));
        });
        let shown = status::Status::read(&place).expect("it is loaded");
        assert!(status::text(&shown).contains("windows reduced by the limit"));
        (shown.groups[0].losses + shown.groups[0].timeouts, shown.groups[0].limited)
    };
    let ((cuts, limited), (other_cuts, unlimited)) = (group(true), group(false));
    assert!(cuts > 0 && other_cuts > 0, "eight downloads fill ten packets: {cuts} and {other_cuts}");
    assert!(limited > 0, "the limit of the group has an effect");
    assert_eq!(unlimited, 0);
}

/// Sets the limit of the only group to a packet, as by a cut at this time of `CLOCK_MONOTONIC`, ns.
fn limit_group(place: &Place, cut: u64) {
    let map = MapHandle::from_pinned_path(place.directory().join("groups")).expect("it is pinned");
    let key = map.keys().next().expect("it has a group");
    let mut group = map.lookup(&key, MapFlags::ANY).expect("a map can be read").expect("the group has members");
    // The fields before the slots: total, total_ns, round_ns, senders, padding.
    let total = Group::SIZE - SLOTS * 16 - 32;
    group[total..total + 8].copy_from_slice(&256_u64.to_ne_bytes());
    group[total + 8..total + 16].copy_from_slice(&cut.to_ne_bytes());
    map.update(&key, &group, MapFlags::ANY).expect("a map can be written");
}

#[test]
fn group_limit_ends_ten_seconds_after_its_last_cut() {
    let Some(place) = place("age") else { return };
    let _turn = turn();
    let _registered = Registered::new(&place, &Settings { group_limit: true, ..Settings::default() });
    let listener = listener(&place);
    let mut first = connection(&listener);
    transfer(&mut first, 300_000);
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Duration::try_from(time).expect("time is positive").as_nanos() as u64
    };
    limit_group(&place, now());
    assert_eq!(start_of(&place, &listener)["cwnd_after"], 1, "one packet is allowed");
    limit_group(&place, now() - 11_000_000_000);
    assert!(start_of(&place, &listener)["cwnd_after"] > 1, "the limit is too old");
}

#[test]
fn live_connections_move_to_groups_assigned_by_user_space() {
    let Some(place) = place("grp") else { return };
    let _turn = turn();
    let _registered = Registered::new(&place, &Settings::default());
    let listener = listener(&place);
    let port = listener.local_addr().expect("it listens").port();
    let from = |address: [u8; 4]| {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        rustix::net::bind(&socket, &SocketAddrV4::new(address.into(), 0)).expect("all of 127/8 is local");
        let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        rustix::net::connect(&socket, &to).expect("the loopback connects");
        let receiving = TcpStream::from(socket);
        receiving.set_read_timeout(Some(Duration::from_secs(20))).expect("a valid time");
        (listener.accept().expect("it has connected").0, receiving)
    };
    let loaded = Loaded::find(&place).expect("it is loaded");
    let mut early = from([127, 1, 1, 1]);
    transfer(&mut early, 10_000);
    assert_eq!(loaded.atoms(), [], "nobody measures");
    loaded.measure(true).expect("a map can be written");
    let mut others = [from([127, 1, 1, 1]), from([127, 1, 2, 1])];
    let mut all = || {
        transfer(&mut early, 10_000);
        others.iter_mut().for_each(|each| transfer(each, 10_000));
    };
    all();

    let netns = faircast_cocoon_bpf::own_netns().expect("there is /proc");
    let atoms: Vec<GroupKey> = loaded.atoms().into_iter().map(|(atom, _)| atom).collect();
    let host = |third| GroupKey::atom(Ipv4Addr::new(127, 1, third, 1).into(), netns);
    assert_eq!(atoms, [host(1), host(2)]);
    let counted = |at: usize| loaded.atoms()[at].1;
    assert_eq!((counted(0).members, counted(1).members), (2, 1));
    assert!(
        counted(0).acked >= 20_000 && counted(0).samples > 0 && counted(0).min_us > 0,
        "{:?}",
        counted(0)
    );

    let members = || -> Vec<(String, u32, usize)> {
        let groups = status::Status::read(&place).expect("it is loaded").groups;
        groups.into_iter().map(|it| (it.prefix, it.members, it.windows.len())).collect()
    };
    let expected = |all: &[(&str, u32)]| -> Vec<(String, u32, usize)> {
        all.iter().map(|(name, count)| ((*name).to_string(), *count, *count as usize)).collect()
    };
    assert_eq!(members(), expected(&[("127.1.1.0/24", 2), ("127.1.2.0/24", 1)]));
    loaded.assign(&[(host(1), Some(7)), (host(2), Some(7))]).expect("a map can be written");
    all();
    let merged = [("127.1.1.0/24", 0), ("127.1.2.0/24", 0), ("measured 7", 3)];
    assert_eq!(members(), expected(&merged));
    let key = loaded.key_of(Ipv4Addr::new(127, 1, 2, 1).into(), netns).expect("a map can be read");
    assert_eq!(key.which, Which::Measured(7));
    let shown = status::Status::read(&place).expect("it is loaded");
    assert_eq!(shown.groups[2].hosts, ["127.1.1.1", "127.1.2.1"]);

    loaded.assign(&[(host(1), None), (host(2), Some(8))]).expect("a map can be written");
    all();
    let split = [("127.1.1.0/24", 2), ("127.1.2.0/24", 0), ("measured 7", 0), ("measured 8", 1)];
    assert_eq!(members(), expected(&split));
    drop((early, others));
    eventually("all have ended", || members().iter().all(|(_, count, _)| *count == 0));
    assert!((0..2).all(|at| counted(at).members == 0));
    let shown = status::Status::read(&place).expect("it is loaded");
    assert_eq!((shown.connections_begun, shown.connections_ended, shown.zero_windows), (3, 3, 0));
    loaded.measure(false).expect("a map can be written");
    assert_eq!(loaded.atoms(), []);
}

#[test]
fn clients_of_an_ipv6_socket_are_grouped_by_address() {
    let Some(place) = place("six") else { return };
    let _turn = turn();
    let _registered = Registered::new(&place, &Settings::default());
    let listener = TcpListener::bind("[::]:0").expect("the loopback has IPv6");
    set_tcp_congestion(&listener, place.name()).expect("it is registered");
    let port = listener.local_addr().expect("it listens").port();
    let mut both = Vec::new();
    for address in ["127.0.0.1", "::1"] {
        let receiving = TcpStream::connect((address, port)).expect("the loopback connects");
        receiving.set_read_timeout(Some(Duration::from_secs(20))).expect("a valid time");
        let (sending, _) = listener.accept().expect("it has connected");
        both.push((sending, receiving));
        transfer(both.last_mut().expect("just pushed"), 10_000);
    }
    let shown = status::Status::read(&place).expect("it is loaded");
    let prefixes: Vec<&str> = shown.groups.iter().map(|group| group.prefix.as_str()).collect();
    assert_eq!(prefixes, ["127.0.0.0/24", "::/64"]);
    assert!(shown.groups.iter().all(|group| group.members == 1 && group.rtt_ms.is_some()));
}

#[test]
fn connection_runs_ungrouped_when_the_group_table_is_full() {
    const TABLE: u64 = 4096;
    const MORE: u64 = 50;
    let Some(place) = place("ful") else { return };
    let _turn = turn();
    let _registered = Registered::new(&place, &Settings { prefix4: 32, ..Settings::default() });
    let listener = listener(&place);
    let port = listener.local_addr().expect("it listens").port();
    let begin = Instant::now();
    for number in 0..TABLE + MORE {
        // Each client has a separate address and therefore a separate group.
        let [.., high, low] = number.to_be_bytes();
        let from = SocketAddrV4::new(Ipv4Addr::new(127, 1, high, low), 0);
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        rustix::net::bind(&socket, &from).expect("all of 127/8 is local");
        let to = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        rustix::net::connect(&socket, &to).expect("the loopback connects");
        let (sending, _) = listener.accept().expect("it has connected");
        if number >= TABLE {
            transfer(&mut (sending, TcpStream::from(socket)), 10_000);
        }
    }
    if begin.elapsed() > Duration::from_secs(9) {
        return; // on a slow machine, idle groups have already made room
    }
    let shown = status::Status::read(&place).expect("it is loaded");
    assert_eq!((shown.groups.len() as u64, shown.ungrouped), (TABLE, MORE));
    assert_eq!(shown.connections_begun, TABLE + MORE);
}

#[test]
fn load_refuses_a_registered_name_and_unload_an_unknown_name() {
    let Some(place) = place("dup") else { return };
    let _turn = turn();
    let registered = Registered::new(&place, &Settings::default());
    let again = load(&place, &Settings::default()).expect_err("it is registered");
    let expected = format!(
        "cocoon: congestion control {} is already registered; unload it, or use another --name",
        place.name()
    );
    assert_eq!((again.to_string(), again.exit_code()), (expected, 69));
    let reno = Place::new("reno", Path::new(BPFFS)).expect("a name");
    assert!(matches!(load(&reno, &Settings::default()), Err(CocoonError::Registered(_))));
    drop(registered);
    let gone = unload(&place).expect_err("it is not loaded");
    assert!(gone.to_string().contains("is not loaded"), "{gone}");
    assert!(!place.directory().exists(), "no pin stays");
}

#[test]
fn missing_bpf_file_system_is_reported_with_a_mount_command() {
    if place("fs").is_none() {
        return;
    }
    let elsewhere = Place::new("fcnofs", Path::new("/proc")).expect("a name");
    let error = load(&elsewhere, &Settings::default()).expect_err("nothing can be pinned in /proc");
    assert_eq!(error.to_string(), "cocoon: no BPF file system at /proc; mount one: mount -t bpf bpf /proc");
}
