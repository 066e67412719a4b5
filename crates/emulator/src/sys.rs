//! System calls without a safe wrapper: TUN devices in namespaces, waiting with nanosecond precision, real-time priority. No
//! other module of this crate has unsafe code.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// A TUN device without packet information. Dropping it removes the device.
#[derive(Debug)]
pub(crate) struct Tun(File);

impl Tun {
    /// Creates a device in a network namespace, or in the namespace of the calling thread.
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
        // SAFETY: the descriptor is open, and the kernel reads and writes one ifreq, which is the argument.
        match unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) } {
            0 => Ok(Tun(file)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Returns the next packet that the kernel of the host has sent, or `None` if no packet waits.
    pub(crate) fn read<'a>(&self, buffer: &'a mut [u8]) -> io::Result<Option<&'a [u8]>> {
        match (&self.0).read(buffer) {
            Ok(length) => Ok(Some(&buffer[..length])),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Sends a packet to the kernel of the host.
    pub(crate) fn write(&self, packet: &[u8]) -> io::Result<()> {
        (&self.0).write(packet).map(drop)
    }
}

/// Moves the calling thread into a network namespace.
fn enter(namespace: &OwnedFd) -> io::Result<()> {
    // SAFETY: the descriptor is open; a thread may change its own network namespace at any time.
    match unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Devices to wait for.
#[derive(Debug)]
pub(crate) struct Watch(Vec<libc::pollfd>);

impl Watch {
    pub(crate) fn new(tuns: &[Tun]) -> Watch {
        let watch = |tun: &Tun| libc::pollfd { fd: tun.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        Watch(tuns.iter().map(watch).collect())
    }

    /// Waits until a device can be read, for at most `most`. Returns the number of ready devices.
    pub(crate) fn wait(&mut self, most: Duration) -> io::Result<usize> {
        let most =
            libc::timespec { tv_sec: most.as_secs() as libc::time_t, tv_nsec: most.subsec_nanos().into() };
        // SAFETY: the array has the stated length, the timeout is valid, and no signal mask is given.
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

    /// Returns whether this device was ready at the end of the wait.
    pub(crate) fn is_ready(&self, tun: usize) -> bool {
        self.0[tun].revents != 0
    }
}

/// Sets the timer slack of this thread to the minimum, and requests real-time priority. Returns whether the priority was granted.
pub(crate) fn hurry() -> bool {
    const MODEST: libc::c_int = 10;
    let priority = libc::sched_param { sched_priority: MODEST };
    // SAFETY: both calls change only the scheduling of the calling thread, and the parameter is valid.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong);
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &priority) == 0
    }
}
