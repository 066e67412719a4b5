//! The system calls that nothing safe covers: TUN devices in namespaces, waiting with nanoseconds, a place in the queue
//! of the processor. The only unsafe code of this crate.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// A TUN device without packet information; it is gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Tun(File);

impl Tun {
    /// Make one in a network namespace, or in the thread's own.
    pub(crate) fn open(namespace: Option<&Path>, name: &str) -> io::Result<Tun> {
        let Some(namespace) = namespace else { return Tun::open_here(name) };
        let namespace: OwnedFd = File::open(namespace)?.into();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                enter(&namespace)?;
                Tun::open_here(name)
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn open_here(name: &str) -> io::Result<Tun> {
        let mut options = File::options();
        let file = options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        // SAFETY: all bytes zero are a valid ifreq: an empty name, and integers.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if name.is_empty() || name.len() >= libc::IFNAMSIZ {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "interface names have 1 to 15 bytes"));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the descriptor is open, and the kernel reads and writes one ifreq, which is what it gets.
        match unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) } {
            0 => Ok(Tun(file)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Returns the next packet that the host's kernel has sent; `None` without a packet now.
    pub(crate) fn read<'a>(&self, buffer: &'a mut [u8]) -> io::Result<Option<&'a [u8]>> {
        match (&self.0).read(buffer) {
            Ok(length) => Ok(Some(&buffer[..length])),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Give a packet to the host's kernel.
    pub(crate) fn write(&self, packet: &[u8]) -> io::Result<()> {
        (&self.0).write(packet).map(drop)
    }
}

/// Move the calling thread into a network namespace.
fn enter(namespace: &OwnedFd) -> io::Result<()> {
    // SAFETY: the descriptor is open; a thread may change its own network namespace at any time.
    match unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Which devices have something to read.
#[derive(Debug)]
pub(crate) struct Watch(Vec<libc::pollfd>);

impl Watch {
    pub(crate) fn new(tuns: &[Tun]) -> Watch {
        let watch = |tun: &Tun| libc::pollfd { fd: tun.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        Watch(tuns.iter().map(watch).collect())
    }

    /// Wait for any of them, but no longer than this; how many are ready.
    pub(crate) fn wait(&mut self, most: Duration) -> io::Result<usize> {
        let most =
            libc::timespec { tv_sec: most.as_secs() as libc::time_t, tv_nsec: most.subsec_nanos().into() };
        // SAFETY: the array has the stated length and the time is a valid one; no signal mask is given.
        let ready = unsafe {
            libc::ppoll(self.0.as_mut_ptr(), self.0.len() as libc::nfds_t, &most, std::ptr::null())
        };
        match usize::try_from(ready) {
            Ok(ready) => Ok(ready),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
                error => Err(error),
            },
        }
    }

    /// Whether this one was ready when the wait ended.
    pub(crate) fn is_ready(&self, tun: usize) -> bool {
        self.0[tun].revents != 0
    }
}

/// Let timers of this thread come on time, and let it run before all ordinary programs, if that is allowed. Whether it
/// is.
pub(crate) fn hurry() -> bool {
    const MODEST: libc::c_int = 10;
    let priority = libc::sched_param { sched_priority: MODEST };
    // SAFETY: both calls change only how the calling thread is scheduled; the parameter is a valid one.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong);
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &priority) == 0
    }
}
