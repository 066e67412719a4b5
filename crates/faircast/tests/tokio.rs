//! Sessions as futures on tokio's runtime.

use faircast::error::StartError;
use faircast::{Error, Event, Memory, MemoryFile, Rate, ReceiveReport, Receiver, SendReport, Sender, Stop};
use futures_core::Stream;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

const LONG: Duration = Duration::from_secs(60);

/// Returns a group that no other test and no other run of this test uses.
fn group(number: u8) -> SocketAddr {
    let pid = std::process::id();
    SocketAddr::from((
        [239, 255, 160 + number, 1 + (pid % 250) as u8],
        10_000 + (pid % 1_000 * 20) as u16 + u16::from(number),
    ))
}

fn content(bytes: u32) -> Vec<u8> {
    (0..bytes).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn sender(bytes: Vec<u8>, scheme: &str, number: u8) -> Sender {
    let sender =
        Sender::bytes("numbers", bytes).group(group(number)).interface("lo").ttl(0).join_timeout(LONG);
    let sender = sender.expect_receivers(2).max(Rate::from_mbps(400.0));
    sender.congestion_control(scheme).expect("a scheme")
}

fn receiver(memory: &Memory, number: u8) -> Receiver {
    Receiver::into_memory(memory.clone()).group(group(number)).interface("lo").join_timeout(LONG)
}

fn runtimes() -> [Runtime; 2] {
    let one = Builder::new_current_thread().enable_all().build().expect("the system gives a runtime");
    let many = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    [one, many.expect("the system gives a runtime")]
}

fn send<F: Future<Output = Result<SendReport, Error>> + Send>(future: F) -> F {
    future
}

fn receive<F: Future<Output = Result<ReceiveReport, Error>> + Send>(future: F) -> F {
    future
}

/// Sends a file to two receivers, all in tasks of one runtime.
fn carries(runtime: &Runtime, scheme: &str, number: u8) {
    let bytes = content(3_000_000);
    let memories = [Memory::new(3_000_000), Memory::new(3_000_000)];
    let receivers: Vec<_> = memories
        .iter()
        .map(|memory| runtime.spawn(receive(receiver(memory, number).run_async(|_| ()))))
        .collect();
    let source = runtime.spawn(send(sender(bytes.clone(), scheme, number).run_async(|_| ())));
    runtime.block_on(async {
        let report = tokio::time::timeout(LONG, source).await.expect("in time").expect("no panic");
        assert!(report.as_ref().is_ok_and(|report| report.ok && report.verified == 2), "{report:?}");
        for receiver in receivers {
            assert!(receiver.await.expect("no panic").expect("it receives").ok);
        }
    });
    for memory in memories {
        assert!(memory.take() == [MemoryFile::new("numbers", bytes.clone())]);
    }
}

#[test]
fn file_reaches_two_receivers_on_both_tokio_runtimes() {
    for (runtime, number) in runtimes().iter().zip([1, 2]) {
        carries(runtime, "ormcc", number);
    }
}

#[test]
fn layered_session_reaches_two_receivers_on_both_tokio_runtimes() {
    for (runtime, number) in runtimes().iter().zip([3, 4]) {
        carries(runtime, "rlc,layers=4,base=4M", number);
    }
}

#[test]
fn session_future_can_be_stopped_by_another_task() {
    let [runtime, _] = runtimes();
    let stop = Stop::new().expect("descriptors are left");
    let stopper = stop.clone();
    let memory = Memory::new(1);
    let ended = runtime.block_on(async {
        let session = receiver(&memory, 5).run_async_until(&stop, |_| ());
        let later = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            stopper.stop();
        };
        let (ended, ()) = tokio::join!(session, later);
        ended
    });
    assert!(ended.as_ref().is_ok_and(|report| report.stopped && !report.ok), "{ended:?}");
}

#[test]
fn waiting_session_does_not_block_other_tasks() {
    let [runtime, _] = runtimes();
    let memory = Memory::new(1);
    let ticks = runtime.block_on(async {
        let session = receiver(&memory, 6).join_timeout(Duration::from_millis(300)).run_async(|_| ());
        let mut ticks = 0;
        let ticking = async {
            loop {
                tokio::time::sleep(Duration::from_millis(5)).await;
                ticks += 1;
            }
        };
        tokio::select! {
            ended = session => assert!(matches!(ended, Err(Error::Start(StartError::NoSession { .. }))), "{ended:?}"),
            () = ticking => unreachable!("it ticks for ever"),
        }
        ticks
    });
    assert!(ticks >= 10, "only {ticks} times in 300 ms");
}

/// Both endpoints run in separate threads. One task awaits their events and their ends.
#[test]
fn task_awaits_session_threads_and_their_events() {
    for (runtime, number) in runtimes().iter().zip([7, 8]) {
        let (bytes, memory) = (content(200_000), Memory::new(200_000));
        let receiver = receiver(&memory, number).start().expect("it starts");
        let sender = sender(bytes.clone(), "ormcc", number).expect_receivers(1).start().expect("it starts");
        let mut events = std::pin::pin!(sender.events());
        runtime.block_on(async {
            let mut joined = 0;
            while let Some(event) = poll_fn(|cx| events.as_mut().poll_next(cx)).await {
                joined += u32::from(matches!(event, Event::Joined { .. }));
            }
            let sent = tokio::time::timeout(LONG, sender).await.expect("in time").expect("it sends");
            assert!(sent.ok && joined == 1, "{joined} {sent:?}");
            assert!(receiver.await.expect("it receives").ok);
        });
        assert!(memory.take() == [MemoryFile::new("numbers", bytes)]);
    }
}

#[test]
fn awaited_session_thread_ends_when_stopped() {
    let [runtime, _] = runtimes();
    let session = receiver(&Memory::new(1), 9).start().expect("it starts");
    let stopper = session.stopper();
    let ended = runtime.block_on(async {
        let stop = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            stopper.stop();
        };
        tokio::join!(tokio::time::timeout(LONG, session), stop).0.expect("in time")
    });
    assert!(ended.as_ref().is_ok_and(|report| report.stopped && !report.ok), "{ended:?}");
}
