//! Receivers for programs.

use crate::object::BlockDevice;
use crate::session::{self, Session};
use crate::{
    Destination, Durability, Error, Event, KeyRing, Layer, Memory, Names, Output, OverwritePolicy, OwnersBy,
    Preserve, ReceiveConfig, ReceiveReport, ReplayPolicy, SessionFilter, SigningKey, Stop, VerifyKeys,
};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Receives one session from the group. Settings that the caller does not change have the values of [`ReceiveConfig::new`].
///
/// ```no_run
/// use faircast::{Memory, Receiver};
///
/// let memory = Memory::new(64 << 20);
/// let report = Receiver::into_memory(memory.clone()).run(|event| println!("{event:?}"))?;
/// println!("{} bytes at {}", report.bytes, report.goodput);
/// for file in memory.take() {
///     println!("{}: {} bytes", file.name, file.bytes.len());
/// }
/// # Ok::<(), faircast::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a receiver does not run before `start` or `run`"]
pub struct Receiver {
    config: ReceiveConfig,
}

impl Receiver {
    /// Creates a receiver that receives into `destination`.
    pub fn new(destination: Destination) -> Receiver {
        ReceiveConfig::new(destination).into()
    }

    /// Creates a receiver that receives files and trees into this directory, under the names that the source sends. After a stop
    /// or kill, a receiver with the same directory resumes the transfer.
    pub fn into_directory(directory: impl Into<PathBuf>) -> Receiver {
        Receiver::new(Destination::Directory(directory.into()))
    }

    /// Creates a receiver that writes one file, or a stream, to `writer`, in order. A block is written only after its
    /// verification.
    pub fn into_writer(writer: impl std::io::Write + Send + 'static) -> Receiver {
        Receiver::new(Destination::Writer(Output::new(writer)))
    }

    /// Creates a receiver that receives files into `memory`. A clone of `memory` gives access to them.
    pub fn into_memory(memory: Memory) -> Receiver {
        Receiver::new(Destination::Memory(memory))
    }

    /// Creates a receiver that writes the only file of a session onto a block device.
    pub fn into_device(device: BlockDevice) -> Receiver {
        Receiver::new(Destination::Device(Arc::new(device)))
    }

    /// Sets a separate destination for one layer of a live stream: a file or a named pipe. Can be called for each layer.
    pub fn layer_to(mut self, layer: Layer, path: impl Into<PathBuf>) -> Receiver {
        self.config.layers_to.push((layer, path.into()));
        self
    }

    /// Sets the address and port of the group. In a layered session, these are the address and port of the base layer.
    pub fn group(mut self, group: SocketAddr) -> Receiver {
        self.config.group = group;
        self
    }

    /// Receives by unicast from this parent in place of the group. A parent is a relay, or a source that serves hosts. Further
    /// calls add parents: when a parent is silent, the next parent replaces it. [`FIND_GROUP`](crate::config::FIND_GROUP) in
    /// place of a host finds the nearest relay.
    pub fn parent(mut self, parent: SocketAddr) -> Receiver {
        self.config.parents.push(parent);
        self
    }

    /// Waits at this address until a source invites this host ([`Unicast::invite`](crate::Unicast::invite)).
    pub fn listen(mut self, at: SocketAddr) -> Receiver {
        self.config.listen = Some(at);
        self
    }

    /// Sets the interface, by name or address. By default the routes of this host select it.
    pub fn interface(mut self, interface: impl Into<String>) -> Receiver {
        self.config.interface = Some(interface.into());
        self
    }

    /// Accepts packets from this host only, by a source-specific join.
    pub fn source(mut self, source: IpAddr) -> Receiver {
        self.config.source = Some(source);
        self
    }

    /// Sets the group key or several group keys ([`KeyRing`]). Without a key, only unsealed sessions are accepted.
    pub fn key(mut self, key: impl Into<KeyRing>) -> Receiver {
        self.config.key = Some(key.into());
        self
    }

    /// When the transfer is verified and stored, sends the source a receipt that is signed with this key.
    pub fn sign_receipts(mut self, key: SigningKey) -> Receiver {
        self.config.sign_receipts = Some(key);
        self
    }

    /// Accepts only content that was signed with the private key of one of these public keys. By default signatures are ignored.
    pub fn verify(mut self, keys: impl Into<VerifyKeys>) -> Receiver {
        self.config.verify = Some(keys.into());
        self
    }

    /// Sets the required proof that a session is live and not a recording. By default the source has to return a random number
    /// that this receiver has sent.
    pub fn replay_policy(mut self, policy: ReplayPolicy) -> Receiver {
        self.config.replay_policy = policy;
        self
    }

    /// Sets the time to wait for the announcement of a session. By default the receiver waits indefinitely.
    pub fn join_timeout(mut self, timeout: Duration) -> Receiver {
        self.config.join_timeout = Some(timeout);
        self
    }

    /// Sets the maximum duration of a silence of the source, of a period without data, and of a network outage.
    pub fn idle_timeout(mut self, timeout: Duration) -> Receiver {
        self.config.idle_timeout = timeout;
        self
    }

    /// Sets whether files are flushed to the disk before they get their names.
    pub fn durability(mut self, durability: Durability) -> Receiver {
        self.config.durability = durability;
        self
    }

    /// Applies these metadata to files, in addition to the default metadata, if the source sends them and the user of this
    /// process may set them. `owners_by` selects owners by name or by number.
    pub fn preserve(mut self, preserve: Preserve, owners_by: OwnersBy) -> Receiver {
        self.config.preserve = preserve;
        self.config.owners_by = owners_by;
        self
    }

    /// Sets the treatment of names with terminal control characters, in output directories. By default these characters are
    /// escaped.
    pub fn names(mut self, names: Names) -> Receiver {
        self.config.names = names;
        self
    }

    /// Limits the partial files of earlier sessions that remain in an output directory when a session begins. By default all
    /// partial files remain until [`object::let_go`](crate::object::let_go) removes them.
    pub fn keep_partial(mut self, keep: crate::object::KeepPartial) -> Receiver {
        self.config.keep_partial = keep;
        self
    }

    /// Sets the treatment of existing files in an output directory. By default a source's files replace files with the same names,
    /// and other files stay.
    pub fn existing(mut self, existing: crate::object::Existing) -> Receiver {
        self.config.existing = existing;
        self
    }

    /// Reuses content of these files, block devices and directories, in addition to the output directory.
    pub fn reuse(mut self, paths: impl IntoIterator<Item = std::path::PathBuf>) -> Receiver {
        self.config.reuse.extend(paths);
        self
    }

    /// Sets whether a session may replace content of a later session or of another source. By default such a session is refused.
    pub fn overwrite(mut self, policy: OverwritePolicy) -> Receiver {
        self.config.overwrite = policy;
        self
    }

    /// Selects the sessions to receive. By default all sessions are received. If several receivers have clones of one filter,
    /// each session is received by only one of these receivers.
    pub fn accept(mut self, filter: SessionFilter) -> Receiver {
        self.config.accept = filter;
        self
    }

    /// Sets the name of this host that the source's messages contain. The default is the system's host name.
    pub fn host(mut self, name: impl Into<String>) -> Receiver {
        self.config.host = name.into();
        self
    }

    /// Sets the receive buffer that is requested from the system for each socket, in bytes.
    pub fn receive_buffer(mut self, bytes: usize) -> Receiver {
        self.config.buffer = bytes;
        self
    }

    /// Sets the directory of unnamed temporary files, which are needed when the destination is not a directory. The default is
    /// `/tmp`.
    pub fn temporary(mut self, directory: impl Into<PathBuf>) -> Receiver {
        self.config.temporary = directory.into();
        self
    }

    /// Starts the session in a separate thread.
    ///
    /// # Errors
    /// When the session cannot begin: its configuration is invalid, or no socket can be opened.
    pub fn start(self) -> Result<Session<ReceiveReport>, Error> {
        session::start(self.complete())
    }

    /// Receives in this thread until the session has ended.
    ///
    /// # Errors
    /// The errors of [`Receiver::start`], and an error when the content is incomplete or not verified.
    pub fn run(self, on_event: impl FnMut(Event)) -> Result<ReceiveReport, Error> {
        self.run_until(&Stop::new()?, on_event)
    }

    /// Does the same as [`Receiver::run`], but also ends when `stop` is set. The report then contains the state at that moment
    /// and is marked `stopped`.
    ///
    /// # Errors
    /// As [`Receiver::run`].
    pub fn run_until(self, stop: &Stop, on_event: impl FnMut(Event)) -> Result<ReceiveReport, Error> {
        session::run(self.complete(), stop, on_event)
    }

    /// Receives in the calling task of tokio's runtime until the session has ended. The future does the work of a thread: it
    /// reads and writes files while it is polled, and yields to other tasks after every turn. Dropping the future ends the
    /// session without a message to its peers; [`Receiver::run_async_until`] notifies the peers.
    ///
    /// # Errors
    /// As [`Receiver::run`].
    ///
    /// # Panics
    /// When the future is polled outside of a tokio runtime, or in a tokio runtime without enabled I/O.
    #[cfg(feature = "tokio")]
    pub async fn run_async(self, on_event: impl FnMut(Event) + Send) -> Result<ReceiveReport, Error> {
        self.run_async_until(&Stop::new()?, on_event).await
    }

    /// Does the same as [`Receiver::run_async`], but also ends when `stop` is set. The report then contains the state at that
    /// moment and is marked `stopped`.
    ///
    /// # Errors
    /// As [`Receiver::run`].
    ///
    /// # Panics
    /// As [`Receiver::run_async`].
    #[cfg(feature = "tokio")]
    pub async fn run_async_until(
        self,
        stop: &Stop,
        mut on_event: impl FnMut(Event) + Send,
    ) -> Result<ReceiveReport, Error> {
        faircast_driver::receive_async(self.complete(), &mut on_event, stop).await
    }

    /// Returns the configuration with a host name.
    pub(crate) fn complete(mut self) -> ReceiveConfig {
        if self.config.host.is_empty() {
            self.config.host = crate::host_name();
        }
        self.config
    }
}

impl From<ReceiveConfig> for Receiver {
    fn from(config: ReceiveConfig) -> Receiver {
        Receiver { config }
    }
}
