//! Sessions of the library over the loopback interface: every kind of content to every kind of destination.

use faircast::alc::{AlcReceive, AlcSend, Pacing};
use faircast::error::{ConfigError, StorageError, SystemError};
use faircast::pgm::{PgmReceive, PgmSend};
use faircast::{
    Content, Destination, Error, Event, Input, LayerInput, Memory, MemoryFile, Rate, ReceiveReport, Receiver,
    ReceiverPlace, SendReport, Sender, Session, SourcePlace,
};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);

/// Returns a group that no other test and no other run of this test uses, at a port outside the system's range of ephemeral
/// ports.
fn group(number: u8) -> SocketAddr {
    let pid = std::process::id();
    SocketAddr::from((
        [239, 255, 130 + number, 1 + (pid % 250) as u8],
        10_000 + (pid % 1_000 * 20) as u16 + u16::from(number),
    ))
}

fn source(sender: Sender, number: u8) -> Sender {
    sender
        .group(group(number))
        .interface("lo")
        .ttl(0)
        .expect_receivers(1)
        .join_timeout(LONG)
        .max(Rate::from_mbps(400.0))
}

fn listener(receiver: Receiver, number: u8) -> Session<ReceiveReport> {
    receiver.group(group(number)).interface("lo").join_timeout(LONG).start().expect("it joins")
}

fn content(bytes: u32) -> Vec<u8> {
    (0..bytes).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Sends content to one waiting receiver. Returns both reports.
fn carry(sender: Sender, receiver: Receiver, number: u8) -> (SendReport, Result<ReceiveReport, Error>) {
    let receiver = listener(receiver, number);
    let report = source(sender, number).run(|_| ()).expect("it sends");
    (report, receiver.join())
}

/// Sends content to one waiting receiver that cannot accept the content. The source waits at most ten seconds for receivers to
/// join. Returns the source's report and the receiver's error.
fn carry_in_vain(sender: Sender, receiver: Receiver, number: u8) -> (SendReport, Error) {
    let receiver = listener(receiver, number);
    let sender = source(sender, number).join_timeout(Duration::from_secs(10));
    let report = sender.run(|_| ()).expect("it sends");
    (report, receiver.join().expect_err("it cannot take that"))
}

/// A writer whose bytes can be read through a clone.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics").write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn files_from_memory_arrive_in_memory_with_their_names() {
    let files = vec![
        MemoryFile::new("model/weights", content(1_500_000)),
        MemoryFile::new("model/empty", Vec::new()),
        MemoryFile::new("notes", content(10)),
    ];
    let memory = Memory::new(1_500_010);
    let (sent, received) =
        carry(Sender::new(Content::Memory(files.clone())), Receiver::into_memory(memory.clone()), 1);
    assert!(sent.ok && sent.verified == 1, "{sent:?}");
    let received = received.expect("it receives");
    assert_eq!((received.files, received.bytes), (3, 1_500_010));
    let mut got = memory.take();
    got.sort_by(|a, b| a.name.cmp(&b.name));
    let mut files = files;
    files.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(got == files, "{got:?}");
    assert!(memory.take().is_empty(), "they were taken");
}

#[test]
fn content_beyond_the_memory_limit_is_refused_and_reported() {
    let memory = Memory::new(999_999);
    let (sent, error) =
        carry_in_vain(Sender::bytes("big", content(1_000_000)), Receiver::into_memory(memory.clone()), 2);
    assert!(!sent.ok && sent.incomplete.len() == 1, "{sent:?}");
    assert!(
        matches!(error, Error::Config(ConfigError::OverMemory { bytes: 1_000_000, limit: 999_999 })),
        "{error}"
    );
    assert!(memory.take().is_empty());
}

#[test]
fn content_of_unknown_length_reaches_a_writer_and_memory() {
    let out = Shared::default();
    let read = || io::Cursor::new(content(700_000)).take(700_000);
    let (sent, received) = carry(Sender::reader("stream", read()), Receiver::into_writer(out.clone()), 3);
    assert!(sent.ok && received.expect("it receives").ok);
    assert!(*out.0.lock().expect("nobody panics") == content(700_000));

    let memory = Memory::new(700_000);
    let (sent, received) = carry(Sender::reader("stream", read()), Receiver::into_memory(memory.clone()), 4);
    assert!(sent.ok && received.expect("it receives").ok);
    assert!(memory.take() == [MemoryFile::new("stream", content(700_000))]);

    let memory = Memory::new(699_999);
    let (sent, error) =
        carry_in_vain(Sender::reader("stream", read()), Receiver::into_memory(memory.clone()), 5);
    assert!(!sent.ok && error.to_string().contains("memory limit of 699999 bytes"), "{error}");
    assert!(memory.take().is_empty());
}

#[test]
fn receiver_with_a_writer_refuses_several_files() {
    let files = ["one", "two"].map(|name| MemoryFile::new(name, content(1_000)));
    let out = Shared::default();
    let files = Sender::new(Content::Memory(files.into()));
    let (sent, error) = carry_in_vain(files, Receiver::into_writer(out.clone()), 11);
    assert!(matches!(error, Error::Config(ConfigError::NotAStream { files: 2 })) && !sent.ok, "{error}");
    assert!(out.0.lock().expect("nobody panics").is_empty());
}

#[test]
fn live_stream_reaches_memory_and_file_tree_reaches_a_directory() {
    let memory = Memory::new(1 << 20);
    let live = Sender::live(io::Cursor::new(content(300_000)), Duration::from_secs(5));
    let (sent, received) = carry(live, Receiver::into_memory(memory.clone()), 6);
    assert!(sent.ok && received.expect("it receives").ok);
    assert!(memory.take() == [MemoryFile::new("stream", content(300_000))]);

    let (from, to) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    std::fs::create_dir(from.path().join("tree")).expect("room");
    std::fs::write(from.path().join("tree/leaf"), content(5_000)).expect("room");
    let (sent, received) =
        carry(Sender::paths([from.path().join("tree")]), Receiver::into_directory(to.path()), 7);
    assert!(sent.ok && received.expect("it receives").ok);
    assert!(std::fs::read(to.path().join("tree/leaf")).expect("it is there") == content(5_000));
}

#[test]
fn invalid_session_fails_when_it_is_started() {
    let fast = source(Sender::bytes("x", vec![1]), 8).min(Rate::from_mbps(9.0)).max(Rate::from_mbps(1.0));
    let error = fast.start().expect_err("its limits contradict each other");
    assert!(matches!(error, Error::Config(ConfigError::Limits(_))), "{error}");
    let error = Sender::bytes("x", vec![1]).interface("nowhere0").start().expect_err("no such interface");
    assert!(
        matches!(error, Error::System(SystemError::Net(_))) && error.to_string().contains("nowhere0"),
        "{error}"
    );
    let error = Sender::bytes("../x", vec![1]).group(group(8)).interface("lo").start();
    assert!(matches!(error, Err(Error::Storage(StorageError::Object(_)))), "{error:?}");
    let error = Sender::bytes("x", vec![1]).congestion_control("ormc").expect_err("no such scheme");
    assert!(error.to_string().contains("ormcc"), "{error}");
}

#[test]
fn session_can_be_stopped_from_another_thread_or_by_drop() {
    let waits = || {
        let receiver = Receiver::into_memory(Memory::new(1)).group(group(9)).interface("lo");
        receiver.start().expect("it joins")
    };
    let session = waits();
    let stop = session.stopper();
    std::thread::spawn(move || stop.stop());
    let report = session.join().expect("a report of the state so far");
    assert!(report.stopped && !report.ok, "{report:?}");

    let dropped = waits();
    let events = dropped.events();
    drop(dropped);
    let reported: Vec<Event> = events.into_iter().collect(); // ends with the session
    assert!(matches!(reported.first(), Some(Event::Opened { .. })), "{reported:?}");
}

#[test]
fn session_does_not_wait_for_readers_of_its_events() {
    let receiver = listener(Receiver::into_memory(Memory::new(1 << 20)), 10);
    let sender = source(Sender::bytes("x", content(1 << 20)), 10).start().expect("it starts");
    let until = Instant::now() + LONG;
    while !(sender.is_finished() && receiver.is_finished()) {
        assert!(Instant::now() < until, "it hangs");
        std::thread::sleep(Duration::from_millis(10));
    }
    let reported: Vec<Event> = sender.events().into_iter().collect();
    assert!(reported.iter().any(|event| matches!(event, Event::Left { verified: true, .. })), "{reported:?}");
    assert!(reported.iter().filter(|event| matches!(event, Event::Progress(_))).count() <= 1);
    assert!(sender.join().expect("it has sent").ok && receiver.join().expect("it has received").ok);
}

#[test]
fn waiting_session_starts_when_the_caller_requests_it() {
    let receiver = listener(Receiver::into_memory(Memory::new(1 << 20)), 15);
    let sender =
        source(Sender::bytes("x", content(1_000)), 15).expect_receivers(2).start().expect("it starts");
    let joined = sender.events().into_iter().find(|event| matches!(event, Event::Joined { .. }));
    assert!(joined.is_some(), "the session ended");
    sender.start_now();
    let report = sender.join().expect("it has sent");
    assert!((report.verified, report.missing, report.ok) == (1, 1, false), "{report:?}");
    assert!(report.until_data < LONG, "{report:?}");
    assert!(receiver.join().expect("it has received").ok);
}

#[test]
fn stopped_session_reports_its_state() {
    let receiver = listener(Receiver::into_memory(Memory::new(64 << 20)), 16);
    let sender = source(Sender::bytes("x", content(16 << 20)), 16).max(Rate::from_mbps(8.0)).start();
    let sender = sender.expect("it starts");
    let sending =
        |event: &Event| matches!(event, Event::Progress(now) if now.joining.is_none() && now.bytes > 0);
    assert!(sender.events().into_iter().any(|event| sending(&event)), "the session ended");
    sender.stop();
    let report = sender.join().expect("a report of the state so far");
    assert!(report.stopped && !report.ok && report.each.len() == 1, "{report:?}");
    let error = receiver.join().expect_err("not everything has come");
    let stated = error.to_string();
    assert!(
        stated.contains("it was stopped") && stated.contains("starts from the beginning"),
        "memory keeps nothing: {stated}"
    );
}

#[test]
fn blocked_callback_does_not_stall_the_session() {
    let receiver = listener(Receiver::into_memory(Memory::new(1 << 20)), 11);
    let mut events = 0;
    let report = source(Sender::bytes("x", content(1 << 20)), 11).run(|_| {
        events += 1;
        let until = Instant::now() + LONG;
        while !receiver.is_finished() {
            assert!(Instant::now() < until, "the session waits for its callback");
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    assert!(report.expect("it has sent").ok && receiver.join().expect("it has received").ok);
    assert!(events > 2, "{events} events");
}

#[test]
fn pgm_and_alc_deliver_the_content_through_the_same_api() {
    let (from, to) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let path = from.path().join("file");
    std::fs::write(&path, content(200_000)).expect("room");
    let lo = || Some("lo".to_owned());
    let source_at = |number| {
        let mut place = SourcePlace::default();
        place.group = group(number);
        place.interface = lo();
        place.ttl = 0;
        place
    };
    let receiver_at = |number| {
        let mut place = ReceiverPlace::default();
        place.group = group(number);
        place.interface = lo();
        place
    };

    let memory = Memory::new(200_000);
    let mut receive = PgmReceive::new(Destination::Memory(memory.clone()));
    receive.place = receiver_at(12);
    let receiver = faircast::start(receive).expect("it joins");
    let mut send = PgmSend::new(Content::Memory(vec![MemoryFile::new("file", content(200_000))]));
    send.place = source_at(12);
    send.linger = Duration::from_secs(1);
    assert!(faircast::start(send).expect("it starts").join().expect("it sends").ok);
    assert!(receiver.join().expect("it receives").ok);
    let got = memory.take();
    assert!(got.len() == 1 && *got[0].bytes == *content(200_000), "{got:?}");

    let mut receive = AlcReceive::new(to.path());
    receive.place = receiver_at(13);
    let receiver = faircast::start(receive).expect("it joins");
    let mut send = AlcSend::new(Pacing::Fixed(Rate::from_mbps(50.0)), Content::Paths(vec![path]));
    send.place = source_at(13);
    assert!(faircast::start(send).expect("it starts").join().expect("it sends").ok);
    assert!(receiver.join().expect("it receives").ok);
    assert!(std::fs::read(to.path().join("file")).expect("it is there") == content(200_000));
}

#[test]
fn layered_streams_reach_memory_as_separate_files() {
    let layer = |bytes: u32| LayerInput::Reader {
        input: Input::new(io::Cursor::new(content(bytes))),
        pacing: faircast::Pacing::Waits,
    };
    let sender = Sender::layers([layer(300_000), layer(200_000)]);
    let sender = sender.congestion_control("rlc,base=4M").expect("a scheme");
    let memory = Memory::new(1 << 20);
    let (sent, received) = carry(sender, Receiver::into_memory(memory.clone()), 14);
    assert_eq!(sent.streams.iter().map(|stream| stream.bytes).collect::<Vec<_>>(), [300_000, 200_000]);
    let received = received.expect("it receives");
    let mut got = memory.take();
    got.sort_by(|a, b| a.name.cmp(&b.name));
    assert_eq!(got[0].name, "stream.layer0");
    assert!(*got[0].bytes == *content(300_000), "{} bytes: {received:?}", got[0].bytes.len());
}

#[test]
fn session_types_can_be_moved_to_other_threads() {
    fn is_send<T: Send>() {}
    is_send::<Session<SendReport>>();
    is_send::<faircast::Events>();
    is_send::<Sender>();
    is_send::<Receiver>();
}

#[test]
fn source_gets_the_signed_receipt_of_a_receiver() {
    let key = faircast::SigningKey::from_seed([7; 32]);
    let keys = || faircast::ReceiptKeys::from_iter([key.verify_key()]);
    let receiver = Receiver::into_memory(Memory::new(100_000)).sign_receipts(key.clone());
    let (sent, received) = carry(Sender::bytes("letter", content(100_000)).receipts(keys()), receiver, 60);
    assert!(sent.ok && sent.signed == 1 && received.is_ok(), "{sent:?}");
    let receipts = sent.receipts.expect("it was signed");
    assert!(
        receipts.signed.iter().all(|one| receipts.is_signed(one) && one.known == Some(true)),
        "{receipts:?}"
    );
    let live = Sender::live(io::empty(), Duration::from_secs(1)).receipts(keys());
    assert!(
        matches!(source(live, 61).run(|_| ()), Err(Error::Config(ConfigError::LiveReceipts))),
        "nobody has all of it"
    );
}
