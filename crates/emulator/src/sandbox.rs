//! Namespaces of an emulation. They have no names: the kernel removes them when the last process and descriptor is gone.
//!
//! A process that calls [`new_processes`] in a thread and then starts a keeper from this thread has all further processes of the
//! emulation in the keeper's process namespace. When the keeper ends for any reason, the kernel kills all of them. A keeper that
//! has called [`die_with_parent`] ends with the thread that started it, also if this thread's process was killed.

use crate::sys;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::path::Path;

/// A network namespace. It exists as long as this value, a process in it, or its name.
#[derive(Debug)]
pub struct Namespace(OwnedFd);

impl Namespace {
    /// Creates a namespace without a name. It has only a loopback device, which is down.
    ///
    /// # Errors
    /// Without root.
    pub fn fresh() -> io::Result<Namespace> {
        sys::apart(|| {
            sys::unshare(libc::CLONE_NEWNET)?;
            Namespace::at(Path::new("/proc/thread-self/ns/net"))
        })
    }

    /// Opens the namespace with this name, as `ip netns` does.
    ///
    /// # Errors
    /// When no namespace has this name.
    pub fn named(name: &str) -> io::Result<Namespace> {
        Namespace::at(&Path::new("/run/netns").join(name))
    }

    /// Opens the namespace that a file stands for.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn at(path: &Path) -> io::Result<Namespace> {
        sys::open(path).map(Namespace)
    }

    /// Returns the number of the descriptor: others open the namespace at `/proc/PID/fd/NUMBER`.
    pub fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Returns a second value for this namespace.
    ///
    /// # Errors
    /// When the process has too many open files.
    pub fn try_clone(&self) -> io::Result<Namespace> {
        self.0.try_clone().map(Namespace)
    }

    /// Moves the calling thread into this namespace.
    ///
    /// # Errors
    /// Without root.
    pub fn enter(&self) -> io::Result<()> {
        sys::enter(&self.0, libc::CLONE_NEWNET)
    }

    /// Runs code in this namespace, in a thread of its own. Sockets that the code returns stay in this namespace.
    ///
    /// # Errors
    /// Without root.
    pub fn inside<T: Send>(&self, code: impl FnOnce() -> T + Send) -> io::Result<T> {
        sys::apart(|| self.enter().map(|()| code()))
    }
}

/// Moves this process into a new user namespace. The process has all rights in it, and in namespaces that it creates from now on. To
/// be called before other threads exist.
///
/// # Errors
/// When the kernel does not permit this to ordinary users.
pub fn new_user() -> io::Result<()> {
    sys::unshare(libc::CLONE_NEWUSER)
}

/// Moves this process into the user namespace of another process of the same user. To be called before other threads exist.
///
/// # Errors
/// When the process does not exist, or belongs to another user.
pub fn join_user(of: u32) -> io::Result<()> {
    sys::enter(&sys::open(Path::new(&format!("/proc/{of}/ns/user")))?, libc::CLONE_NEWUSER)
}

/// Gives the next processes of the calling thread a process namespace of their own. The first of them is its keeper.
///
/// # Errors
/// Without root.
pub fn new_processes() -> io::Result<()> {
    sys::unshare(libc::CLONE_NEWPID)
}

/// Starts the next processes of the calling thread in the process namespace of this process.
///
/// # Errors
/// When the process does not exist, or without root.
pub fn join_processes(of: u32) -> io::Result<()> {
    sys::enter(&sys::open(Path::new(&format!("/proc/{of}/ns/pid")))?, libc::CLONE_NEWPID)
}

/// Has the kernel kill this process when the thread ends that started the process.
///
/// # Errors
/// Never on Linux.
pub fn die_with_parent() -> io::Result<()> {
    sys::die_with_parent()
}

/// Gives this process a tree of mounts of its own, in which `/proc` shows its process namespace and `/etc/hosts` is the file that
/// `write` writes at the given path. To be called before other threads exist.
///
/// # Errors
/// Without root, or when `write` fails.
pub fn own_mounts(write: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    const PROC: &std::ffi::CStr = c"/proc";
    sys::unshare(libc::CLONE_NEWNS)?;
    sys::mount(c"none", c"/", c"", libc::MS_REC | libc::MS_PRIVATE)?;
    // The file lies in a file system in memory that loses its own place in the tree at once, so that nothing remains of it.
    sys::mount(c"tmpfs", PROC, c"tmpfs", 0)?;
    write(Path::new("/proc/hosts"))?;
    sys::mount(c"/proc/hosts", c"/etc/hosts", c"", libc::MS_BIND)?;
    sys::detach(PROC)?;
    sys::mount(c"proc", PROC, c"proc", libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC)
}

/// Moves this process into the tree of mounts and the network namespace that another process holds. To be called before other
/// threads exist.
///
/// # Errors
/// When the process or its descriptor does not exist, or without root.
pub fn join(holder: u32, descriptor: RawFd) -> io::Result<()> {
    let network = Namespace::at(Path::new(&format!("/proc/{holder}/fd/{descriptor}")))?;
    let mounts = sys::open(Path::new(&format!("/proc/{holder}/ns/mnt")))?;
    sys::enter(&mounts, libc::CLONE_NEWNS)?;
    network.enter()
}

/// Returns the process ID and the user ID of the process at the other end of a socket of the local family. The process ID is 0 if
/// the process is outside of this process namespace.
///
/// # Errors
/// When the socket has no such end.
pub fn peer(socket: &impl AsFd) -> io::Result<(u32, u32)> {
    sys::peer(socket.as_fd())
}

/// Limits the segments of a TCP socket to this number of bytes, before the socket is connected.
///
/// # Errors
/// When the kernel refuses the number.
pub fn limit_segments(socket: &impl AsFd, bytes: u16) -> io::Result<()> {
    sys::limit_segments(socket.as_fd(), bytes)
}

/// Lets the calling thread, and the threads and programs that it starts, run before all usual programs of this machine and after
/// the emulator. For threads that mostly wait. Returns whether the kernel permits it.
pub fn precede() -> bool {
    sys::precede()
}
