//! A link with damage: the interface of a host and its port on the bridge are TAP devices. One thread copies frames between the
//! devices.

use crate::damage::{Damage, Injector, Tally};
use crate::error::KitError;
use crate::task::{enter, open_namespace};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Number of frames that a device queues for the thread. The queue is long, so that a busy processor adds no loss.
pub(crate) const QUEUE: u32 = 10_000;

/// Maximum time to wait for frames. After this time, the thread checks whether it has to stop and whether held frames have to be
/// released.
const NAP: Duration = Duration::from_millis(5);

/// Maximum number of frames in one direction before the thread reads the other direction.
const BUDGET: usize = 64;

/// Size of a frame buffer, in bytes. No frame is longer.
const MAX_FRAME: usize = 1 << 16;

/// A link between a host and its port on the bridge. Dropping it removes both devices.
#[derive(Debug)]
pub(crate) struct DamagedLink {
    injector: Arc<Mutex<Injector>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl DamagedLink {
    /// Creates both devices and starts to copy frames between them. `host` and `port` contain the namespace and the name of each
    /// device. Only frames to the host are damaged.
    ///
    /// # Errors
    /// Fails if a device cannot be created.
    pub(crate) fn start(
        host: (&Path, &str),
        port: (&Path, &str),
        injector: Injector,
    ) -> Result<DamagedLink, KitError> {
        let (host, port) = (Tap::open(host)?, Tap::open(port)?);
        let (injector, stop) = (Arc::new(Mutex::new(injector)), Arc::new(AtomicBool::new(false)));
        let (shared, stopped) = (Arc::clone(&injector), Arc::clone(&stop));
        let thread = std::thread::spawn(move || carry(&host, &port, &shared, &stopped));
        Ok(DamagedLink { injector, stop, thread: Some(thread) })
    }

    /// Changes the damage.
    pub(crate) fn set(&self, damage: Damage) {
        self.injector.lock().unwrap_or_else(PoisonError::into_inner).set(damage);
    }

    /// Returns the counts of datagrams so far.
    pub(crate) fn tally(&self) -> Tally {
        self.injector.lock().unwrap_or_else(PoisonError::into_inner).tally()
    }
}

impl Drop for DamagedLink {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Errors are ignored: the devices may already have been removed with their namespaces.
            let _ = thread.join();
        }
    }
}

fn carry(host: &Tap, port: &Tap, injector: &Mutex<Injector>, stop: &AtomicBool) -> io::Result<()> {
    let mut buffer = vec![0; MAX_FRAME];
    while !stop.load(Ordering::Relaxed) {
        wait([host, port])?;
        for _ in 0..BUDGET {
            let Some(frame) = host.read(&mut buffer)? else { break };
            port.write(frame);
        }
        let mut injector = injector.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let mut deliver = |frame: &[u8]| host.write(frame);
        injector.release(now, &mut deliver);
        for _ in 0..BUDGET {
            let Some(frame) = port.read(&mut buffer)? else { break };
            injector.pass(frame, now, &mut deliver);
        }
    }
    Ok(())
}

/// Waits until one of the devices has a frame, for at most [`NAP`].
fn wait(taps: [&Tap; 2]) -> io::Result<()> {
    let mut watched =
        taps.map(|tap| libc::pollfd { fd: tap.0.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    // SAFETY: the array has two elements with open descriptors.
    match unsafe { libc::poll(watched.as_mut_ptr(), 2, NAP.as_millis() as libc::c_int) } {
        0.. => Ok(()),
        _ => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            error => Err(error),
        },
    }
}

/// A device for Ethernet frames. Dropping it removes the device.
#[derive(Debug)]
struct Tap(File);

impl Tap {
    /// Creates a device in a namespace.
    fn open((namespace, name): (&Path, &str)) -> Result<Tap, KitError> {
        let entered = open_namespace(namespace)?;
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                enter(&entered)?;
                Tap::open_here(name)
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
        .map_err(KitError::system(format!("make the TAP device {name} in {}", namespace.display())))
    }

    fn open_here(name: &str) -> io::Result<Tap> {
        let mut options = File::options();
        let file = options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        // SAFETY: all bytes zero are a valid ifreq: an empty name, and integers.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the descriptor is open, and the kernel reads and writes one ifreq, which is the argument.
        match unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) } {
            0 => Ok(Tap(file)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Returns the next frame that the kernel has sent, or `None` if no frame waits.
    fn read<'a>(&self, buffer: &'a mut [u8]) -> io::Result<Option<&'a mut [u8]>> {
        match (&self.0).read(buffer) {
            Ok(length) => Ok(Some(&mut buffer[..length])),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Passes a frame to the kernel, as if the device had received it. If the device is down, the frame is dropped.
    fn write(&self, frame: &[u8]) {
        let _ = (&self.0).write(frame);
    }
}
