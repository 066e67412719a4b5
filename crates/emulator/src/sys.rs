//! System calls without a safe wrapper: namespaces, mounts, TUN devices, waiting with nanosecond precision, real-time priority.
//! No other module of this crate has unsafe code.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// A TUN device. The kernel's header (`virtio_net_hdr`) precedes every packet. Hosts hand over long TCP packets unsplit, and
/// packets without checksums. Dropping it removes the device.
#[derive(Debug)]
pub(crate) struct Tun(File);

impl Tun {
    /// Creates a device in the network namespace of the calling thread.
    pub(crate) fn open(name: &str) -> io::Result<Tun> {
        let file = file(Path::new("/dev/net/tun"), true, true, libc::O_NONBLOCK)?;
        // SAFETY: all bytes zero are a valid ifreq: an empty name, and integers.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        if name.is_empty() || name.len() >= libc::IFNAMSIZ {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "interface names have 1 to 15 bytes"));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
        // SAFETY: the descriptor is open, and the kernel reads and writes one ifreq, which is the argument.
        checked(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) })?;
        let offload = libc::c_ulong::from(libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6);
        // SAFETY: the descriptor is open, and the argument is a number.
        checked(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD as _, offload) })?;
        Ok(Tun(file))
    }

    /// Returns the next packet that the kernel of the host has sent, behind the kernel's header, or `None` if no packet waits.
    pub(crate) fn read<'a>(&self, buffer: &'a mut [u8]) -> io::Result<Option<&'a mut [u8]>> {
        match (&self.0).read(buffer) {
            Ok(length) => Ok(Some(&mut buffer[..length])),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Sends a packet to the kernel of the host, with the kernel's header.
    pub(crate) fn write(&self, prefix: &[u8], packet: &[u8]) -> io::Result<()> {
        (&self.0).write_vectored(&[IoSlice::new(prefix), IoSlice::new(packet)]).map(drop)
    }
}

fn file(path: &Path, reads: bool, writes: bool, flags: libc::c_int) -> io::Result<File> {
    File::options().read(reads).write(writes).custom_flags(flags).open(path)
}

/// Opens a file for reading, such as a namespace.
pub(crate) fn open(path: &Path) -> io::Result<OwnedFd> {
    file(path, true, false, 0).map(OwnedFd::from)
}

/// The limit of the latency with which processors wake up (PM QoS). Dropping it removes the limit.
#[derive(Debug)]
pub(crate) struct LatencyLimit(File);

impl LatencyLimit {
    /// Opens the kernel's device, without a limit yet.
    pub(crate) fn open() -> io::Result<LatencyLimit> {
        file(Path::new("/dev/cpu_dma_latency"), false, true, 0).map(LatencyLimit)
    }

    /// Limits the latency to this number of microseconds.
    pub(crate) fn set(&mut self, micros: i32) -> io::Result<()> {
        self.0.write_all(&micros.to_ne_bytes())
    }
}

/// Runs code in a thread of its own, which may change its namespaces.
pub(crate) fn apart<T: Send>(code: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        scope.spawn(code).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Returns the error of the last system call, if it has failed.
fn checked(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Moves the calling thread into a namespace of this kind, such as `CLONE_NEWNET`.
pub(crate) fn enter(namespace: &OwnedFd, kind: libc::c_int) -> io::Result<()> {
    // SAFETY: the descriptor is open, and the call has no effect on memory.
    checked(unsafe { libc::setns(namespace.as_raw_fd(), kind) })
}

/// Moves the calling thread into a new namespace of this kind.
pub(crate) fn unshare(kind: libc::c_int) -> io::Result<()> {
    // SAFETY: namespaces are shared by no memory; the callers pass only kinds of namespaces.
    checked(unsafe { libc::unshare(kind) })
}

/// Has the kernel kill this process when the thread ends that started the process.
pub(crate) fn die_with_parent() -> io::Result<()> {
    // SAFETY: the call only sets a number of this process.
    checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) })
}

/// Mounts `source` at `target`.
pub(crate) fn mount(source: &CStr, target: &CStr, kind: &CStr, flags: libc::c_ulong) -> io::Result<()> {
    let data = std::ptr::null();
    // SAFETY: the texts are terminated, and these file systems need no data.
    checked(unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, data) })
}

/// Removes the mount at `target` from the tree of files.
pub(crate) fn detach(target: &CStr) -> io::Result<()> {
    // SAFETY: the text is terminated.
    checked(unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) })
}

/// Returns the process ID and the user ID of the process at the other end of a socket of the local family.
pub(crate) fn peer(socket: BorrowedFd<'_>) -> io::Result<(u32, u32)> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    let (value, of) = (std::ptr::from_mut(&mut peer).cast(), socket.as_raw_fd());
    // SAFETY: the descriptor is open, and the kernel writes at most the stated length, the size of the value.
    checked(unsafe { libc::getsockopt(of, libc::SOL_SOCKET, libc::SO_PEERCRED, value, &mut length) })?;
    Ok((peer.pid.unsigned_abs(), peer.uid))
}

/// Limits the segments of a TCP socket to this number of bytes, before the socket is connected.
pub(crate) fn limit_segments(socket: BorrowedFd<'_>, bytes: u16) -> io::Result<()> {
    let (bytes, length) = (libc::c_int::from(bytes), size_of::<libc::c_int>() as libc::socklen_t);
    let (value, level) = (std::ptr::from_ref(&bytes).cast(), libc::IPPROTO_TCP);
    // SAFETY: the descriptor is open, and the kernel reads one integer of the stated length.
    checked(unsafe { libc::setsockopt(socket.as_raw_fd(), level, libc::TCP_MAXSEG, value, length) })
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
        Watch::poll(&mut self.0, most)
    }

    /// Waits for this time, whatever the devices do.
    pub(crate) fn pause(time: Duration) -> io::Result<()> {
        Watch::poll(&mut [], time).map(drop)
    }

    fn poll(devices: &mut [libc::pollfd], most: Duration) -> io::Result<usize> {
        let most =
            libc::timespec { tv_sec: most.as_secs() as libc::time_t, tv_nsec: most.subsec_nanos().into() };
        // SAFETY: the array has the stated length, the timeout is valid, and no signal mask is given.
        let ready = unsafe {
            libc::ppoll(devices.as_mut_ptr(), devices.len() as libc::nfds_t, &most, std::ptr::null())
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

/// Sets the timer slack of this thread to the minimum, and requests real-time priority, which new threads do not
/// inherit. Returns whether the priority was granted.
pub(crate) fn hurry() -> bool {
    const MODEST: libc::c_int = 10;
    // SAFETY: the call changes only the timers of the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
    real_time(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, MODEST)
}

/// Requests the lowest real-time priority for this thread, and for the threads and processes that it starts. Returns whether the
/// priority was granted.
pub(crate) fn precede() -> bool {
    real_time(libc::SCHED_FIFO, 1)
}

fn real_time(policy: libc::c_int, priority: libc::c_int) -> bool {
    let priority = libc::sched_param { sched_priority: priority };
    // SAFETY: the call changes only the scheduling of the calling thread, and the parameter is valid.
    unsafe { libc::sched_setscheduler(0, policy, &priority) == 0 }
}
