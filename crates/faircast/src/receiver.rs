//! A receiver, as a program builds it.

use crate::session::{self, Session};
use crate::{
    Destination, Durability, Error, Event, KeyRing, Layer, Memory, Names, Output, OverwritePolicy, OwnersBy,
    Preserve, ReceiveConfig, ReceiveReport, ReplayPolicy, SessionFilter, SigningKey, Stop, VerifyKeys,
};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Receives one session from the group. Other settings have the values of [`ReceiveConfig::new`].
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
#[must_use = "nothing is received before `start` or `run`"]
pub struct Receiver {
    config: ReceiveConfig,
}

impl Receiver {
    /// Receive into this.
    pub fn new(destination: Destination) -> Receiver {
        ReceiveConfig::new(destination).into()
    }

    /// Receive files and trees into this directory, under the names that the source sends. A receiver that was stopped or
    /// killed goes on where it was when it is started again with the same directory.
    pub fn into_directory(directory: impl Into<PathBuf>) -> Receiver {
        Receiver::new(Destination::Directory(directory.into()))
    }

    /// Write one file, or a stream, to this, in order and each block only when it is verified.
    pub fn into_writer(writer: impl std::io::Write + Send + 'static) -> Receiver {
        Receiver::new(Destination::Writer(Output::new(writer)))
    }

    /// Receive files into this memory; keep a clone of it to take them out.
    pub fn into_memory(memory: Memory) -> Receiver {
        Receiver::new(Destination::Memory(memory))
    }

    /// Where a single layer of a live stream goes instead: a file, or a named pipe. Can be said for each layer.
    pub fn layer_to(mut self, layer: Layer, path: impl Into<PathBuf>) -> Receiver {
        self.config.layers_to.push((layer, path.into()));
        self
    }

    /// The group's address and port; of a session in layers, the base layer's.
    pub fn group(mut self, group: SocketAddr) -> Receiver {
        self.config.group = group;
        self
    }

    /// Be served by this host by unicast, in place of the group: a relay, or a source that serves hosts. Said several times,
    /// the next takes over when one is silent. In place of a host [`FIND_GROUP`](crate::config::FIND_GROUP): the nearest relay.
    pub fn parent(mut self, parent: SocketAddr) -> Receiver {
        self.config.parents.push(parent);
        self
    }

    /// Wait here until a source invites this host ([`Unicast::invite`](crate::Unicast::invite)).
    pub fn listen(mut self, at: SocketAddr) -> Receiver {
        self.config.listen = Some(at);
        self
    }

    /// The interface, by name or address. Otherwise the routes of this host say which.
    pub fn interface(mut self, interface: impl Into<String>) -> Receiver {
        self.config.interface = Some(interface.into());
        self
    }

    /// Accept packets from this host only, by a source-specific join.
    pub fn source(mut self, source: IpAddr) -> Receiver {
        self.config.source = Some(source);
        self
    }

    /// Open what is sealed under this key, or under any of several ([`KeyRing`]). Without one only unsealed sessions are
    /// accepted.
    pub fn key(mut self, key: impl Into<KeyRing>) -> Receiver {
        self.config.key = Some(key.into());
        self
    }

    /// Send the source a receipt that is signed with this key, when everything is verified and in its place.
    pub fn sign_receipts(mut self, key: SigningKey) -> Receiver {
        self.config.sign_receipts = Some(key);
        self
    }

    /// Accept only content that was signed with the private half of one of these keys. Otherwise signatures are ignored.
    pub fn verify(mut self, keys: impl Into<VerifyKeys>) -> Receiver {
        self.config.verify = Some(keys.into());
        self
    }

    /// Why a session is believed to go on now, and is not somebody's recording. Otherwise its source has to answer.
    pub fn replay_policy(mut self, policy: ReplayPolicy) -> Receiver {
        self.config.replay_policy = policy;
        self
    }

    /// Gives up when no session is announced for this long. Otherwise it waits without limit.
    pub fn join_timeout(mut self, timeout: Duration) -> Receiver {
        self.config.join_timeout = Some(timeout);
        self
    }

    /// How long the source may be silent, none of its data arrive, and the network be gone.
    pub fn idle_timeout(mut self, timeout: Duration) -> Receiver {
        self.config.idle_timeout = timeout;
        self
    }

    /// Whether files are flushed to the disk before they get their names.
    pub fn durability(mut self, durability: Durability) -> Receiver {
        self.config.durability = durability;
        self
    }

    /// Give files this too, where their source says it and this user may; owners are known by name or by number.
    pub fn preserve(mut self, preserve: Preserve, owners_by: OwnersBy) -> Receiver {
        self.config.preserve = preserve;
        self.config.owners_by = owners_by;
        self
    }

    /// Sets the treatment of names with terminal control characters, in output directories. Otherwise they are escaped.
    pub fn names(mut self, names: Names) -> Receiver {
        self.config.names = names;
        self
    }

    /// How much of what earlier sessions have left unfinished in an output directory stays when a session begins. Otherwise all
    /// does, until [`object::let_go`](crate::object::let_go).
    pub fn keep_partial(mut self, keep: crate::object::KeepPartial) -> Receiver {
        self.config.keep_partial = keep;
        self
    }

    /// Whether a session may replace content of a later session or of another source; otherwise it is refused.
    pub fn overwrite(mut self, policy: OverwritePolicy) -> Receiver {
        self.config.overwrite = policy;
        self
    }

    /// Which sessions are followed: all of them otherwise. Receivers with clones of it follow no session twice, one after another.
    pub fn accept(mut self, filter: SessionFilter) -> Receiver {
        self.config.accept = filter;
        self
    }

    /// This host's name in the source's messages. Otherwise what the system calls it.
    pub fn host(mut self, name: impl Into<String>) -> Receiver {
        self.config.host = name.into();
        self
    }

    /// Receive buffer asked of the system for each socket, in bytes.
    pub fn receive_buffer(mut self, bytes: usize) -> Receiver {
        self.config.buffer = bytes;
        self
    }

    /// Where nameless temporary files are made when the destination is no directory; `/tmp` otherwise.
    pub fn temporary(mut self, directory: impl Into<PathBuf>) -> Receiver {
        self.config.temporary = directory.into();
        self
    }

    /// Start in a thread of its own.
    ///
    /// # Errors
    /// When the session cannot begin: its configuration makes no sense, or no socket opens.
    pub fn start(self) -> Result<Session<ReceiveReport>, Error> {
        session::start(self.complete())
    }

    /// Receive in this thread, until the session has ended.
    ///
    /// # Errors
    /// As [`Receiver::start`], or when not everything has arrived and been verified.
    pub fn run(self, on_event: impl FnMut(Event)) -> Result<ReceiveReport, Error> {
        self.run_until(&Stop::new()?, on_event)
    }

    /// As [`Receiver::run`], until `stop` is set: the report then has the state at that moment (`stopped`).
    ///
    /// # Errors
    /// As [`Receiver::run`].
    pub fn run_until(self, stop: &Stop, on_event: impl FnMut(Event)) -> Result<ReceiveReport, Error> {
        session::run(self.complete(), stop, on_event)
    }

    /// Receive in the calling task of tokio's runtime, until the session has ended. The future does what a thread would: it
    /// reads and writes files as it goes, and shares its processor with other tasks after every turn. Dropping it ends
    /// the session without a message to the others; [`Receiver::run_async_until`] notifies them.
    ///
    /// # Errors
    /// As [`Receiver::run`].
    ///
    /// # Panics
    /// When it is polled outside of a runtime of tokio with input and output enabled.
    #[cfg(feature = "tokio")]
    pub async fn run_async(self, on_event: impl FnMut(Event) + Send) -> Result<ReceiveReport, Error> {
        self.run_async_until(&Stop::new()?, on_event).await
    }

    /// As [`Receiver::run_async`], until `stop` is set: the report then has the state at that moment (`stopped`).
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

    /// With a name for this host.
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
