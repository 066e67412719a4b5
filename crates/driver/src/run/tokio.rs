//! The driver's loop as a future: an endpoint's turn is the same as in the driver, and tokio performs the waits.
//!
//! Tokio's reactor watches sockets edge-triggered. The readiness of the sockets is therefore cleared before a turn, and a turn
//! reads until a socket is empty. Deadlines use a timer descriptor: tokio's own timers have a resolution of milliseconds, and a
//! source sends many packets per millisecond.

use super::{Attached, Clock, Round, Sockets, Watcher, round};
use crate::stop::Stop;
use faircast_net::{NetError, Want};
use faircast_transport::endpoint::Endpoint;
use faircast_transport::error::Error;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll};
use std::time::Instant;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Runs one endpoint until it has ended.
///
/// # Errors
/// Errors of the endpoint's sockets, or of the system's wait.
pub(crate) async fn run_one(
    endpoint: &mut (dyn Endpoint + Send),
    sockets: &mut (dyn Sockets + Send),
    clock: &Clock,
    events: &mut (dyn FnMut(faircast_transport::Event) + Send),
    stop: &Stop,
) -> Result<(), Error> {
    let failed = |source| NetError::System { doing: "waiting for sockets", source };
    let mut attached = [Attached::new(endpoint, sockets)];
    let mut reactor = Reactor::new().map_err(failed)?;
    let mut out = Vec::with_capacity(1 << 17);
    loop {
        let next = round(&mut attached, clock, (&mut out, &mut reactor), &mut |_, event| events(event), stop);
        match next {
            Round::Again => tokio::task::yield_now().await,
            Round::Wait(until) => reactor.wait(until).await.map_err(failed)?,
            Round::Over => break,
        }
    }
    let [one] = attached;
    one.outcome()
}

/// Watched sockets, registered with tokio's reactor while they are needed.
struct Reactor {
    timer: AsyncFd<OwnedFd>,
    registered: Vec<Registered>,
    failed: Option<io::Error>,
}

/// A duplicate descriptor of a socket, for one kind of readiness.
struct Registered {
    /// Inode number of the socket, because descriptor numbers are reused.
    socket: u64,
    want: Want,
    fd: AsyncFd<OwnedFd>,
    /// Whether the next wait includes the socket.
    watched: bool,
}

impl Reactor {
    fn new() -> io::Result<Reactor> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let timer = attach(timer, Interest::READABLE)?;
        Ok(Reactor { timer, registered: Vec::new(), failed: None })
    }

    fn register(&mut self, on: BorrowedFd<'_>, want: Want) -> io::Result<()> {
        let socket = rustix::fs::fstat(on)?.st_ino;
        let same = |one: &&mut Registered| one.socket == socket && one.want == want;
        if let Some(known) = self.registered.iter_mut().find(same) {
            known.watched = true;
            return Ok(());
        }
        let interest = if want == Want::Writable { Interest::WRITABLE } else { Interest::READABLE };
        let fd = attach(on.try_clone_to_owned()?, interest)?;
        self.registered.push(Registered { socket, want, fd, watched: true });
        Ok(())
    }

    /// Waits until a socket is ready, or until this time.
    async fn wait(&mut self, until: Instant) -> io::Result<()> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if self.registered.iter().any(|one| one.watched) {
            self.registered.retain(|one| one.watched);
        }
        self.set_timer(until)?;
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut ready = self.timer.poll_read_ready(cx)?.map(|mut guard| guard.clear_ready()).is_ready();
        for one in self.registered.iter().filter(|one| one.watched) {
            let poll = match one.want {
                Want::Writable => one.fd.poll_write_ready(cx)?,
                Want::Readable | Want::Either => one.fd.poll_read_ready(cx)?,
            };
            ready |= poll.map(|mut guard| guard.clear_ready()).is_ready();
        }
        if ready { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Sets the timer. This also clears an earlier expiration.
    fn set_timer(&self, until: Instant) -> io::Result<()> {
        // A value of zero would disarm the timer.
        let left = until.saturating_duration_since(Instant::now()).max(std::time::Duration::from_nanos(1));
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        let spec = Itimerspec { it_interval: none, it_value: value };
        rustix::time::timerfd_settime(self.timer.get_ref().as_fd(), TimerfdTimerFlags::empty(), &spec)?;
        Ok(())
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe for types that change their descriptor, which this one cannot"
)]
fn attach(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, interest)
}

impl Watcher for Reactor {
    fn clear(&mut self) {
        self.registered.iter_mut().for_each(|one| one.watched = false);
    }

    fn watch(&mut self, on: BorrowedFd<'_>, want: Want) {
        let wants: &[Want] = match want {
            Want::Either => &[Want::Readable, Want::Writable],
            Want::Readable => &[Want::Readable],
            Want::Writable => &[Want::Writable],
        };
        for want in wants {
            if let Err(error) = self.register(on, *want) {
                self.failed.get_or_insert(error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::{UnixDatagram, UnixStream};
    use std::time::Duration;
    use tokio::runtime::{Builder, Runtime};

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(20);

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_io().build().expect("the system gives a runtime")
    }

    fn pair() -> (UnixDatagram, UnixDatagram) {
        let (one, other) = UnixDatagram::pair().expect("a pair of sockets");
        one.set_nonblocking(true).expect("it can be");
        (one, other)
    }

    /// Waits for this socket, at most for `most`; returns the duration of the wait.
    async fn waited(reactor: &mut Reactor, socket: &impl AsFd, want: Want, most: Duration) -> Duration {
        let began = Instant::now();
        reactor.clear();
        reactor.watch(socket.as_fd(), want);
        reactor.wait(began + most).await.expect("the system waits");
        began.elapsed()
    }

    #[test]
    fn repeated_waits_end_at_their_deadline() {
        runtime().block_on(async {
            let (mut reactor, (quiet, _other)) = (Reactor::new().expect("in a runtime"), pair());
            for _ in 0..3 {
                assert!(waited(&mut reactor, &quiet, Want::Readable, SHORT).await >= SHORT);
            }
            assert!(waited(&mut reactor, &quiet, Want::Readable, Duration::ZERO).await < LONG);
        });
    }

    #[test]
    fn each_wait_ends_when_a_datagram_arrives() {
        runtime().block_on(async {
            let (mut reactor, (socket, other)) = (Reactor::new().expect("in a runtime"), pair());
            for _ in 0..3 {
                other.send(b"x").expect("there is room");
                assert!(waited(&mut reactor, &socket, Want::Readable, LONG).await < LONG);
                socket.recv(&mut [0; 8]).expect("it is there");
            }
            assert!(waited(&mut reactor, &socket, Want::Readable, SHORT).await >= SHORT, "all was read");
        });
    }

    #[test]
    fn reused_descriptor_is_registered_as_a_new_socket() {
        runtime().block_on(async {
            let mut reactor = Reactor::new().expect("in a runtime");
            let (first, other) = pair();
            let number = std::os::fd::AsRawFd::as_raw_fd(&first);
            waited(&mut reactor, &first, Want::Readable, Duration::ZERO).await;
            drop((first, other));
            // The system assigns the lowest free descriptor number first.
            let (socket, other) = loop {
                let (one, other) = pair();
                if std::os::fd::AsRawFd::as_raw_fd(&one) >= number {
                    break (one, other);
                }
                std::mem::forget((one, other));
            };
            other.send(b"x").expect("there is room");
            assert!(waited(&mut reactor, &socket, Want::Readable, LONG).await < LONG);
            assert_eq!(reactor.registered.len(), 1, "the closed one is forgotten");
        });
    }

    #[test]
    fn writability_is_awaited_only_if_requested() {
        runtime().block_on(async {
            let mut reactor = Reactor::new().expect("in a runtime");
            let (mut socket, mut other) = UnixStream::pair().expect("a pair of sockets");
            socket.set_nonblocking(true).expect("it can be");
            let mut fill = || while socket.write(&[0; 1000]).is_ok() {};
            fill();
            let socket = &socket;
            waited(&mut reactor, socket, Want::Either, SHORT).await;
            assert!(waited(&mut reactor, socket, Want::Either, SHORT).await >= SHORT, "it is full");
            other.set_nonblocking(true).expect("it can be");
            while other.read(&mut [0; 1000]).is_ok() {}
            assert!(waited(&mut reactor, socket, Want::Either, LONG).await < LONG);
            assert!(waited(&mut reactor, socket, Want::Readable, SHORT).await >= SHORT);
            assert_eq!(reactor.registered.len(), 1);
        });
    }
}
