//! A source, as a program builds it.

use crate::session::{self, Session};
use crate::{
    Content, Error, Event, FollowLinks, GroupKey, Input, LayerInput, MemoryFile, OneWay, Preserve, Rate,
    ReceiptKeys, RequiredHost, SendConfig, SendReport, SigningKey, SlowReceiverPolicy, Spacing, Stop,
    Unicast, Unreadable,
};
use faircast_core::schemes::Scheme;
use faircast_core::spec::SpecError;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Sends content to everybody who receives the group. Other settings have the values of [`SendConfig::new`].
///
/// ```no_run
/// use faircast::{Rate, Sender};
/// use std::time::Duration;
///
/// let report = Sender::paths(["disk.img"])
///     .group("239.255.70.1:5777".parse().expect("a group"))
///     .expect_receivers(30)
///     .join_timeout(Duration::from_secs(300))
///     .max(Rate::from_mbps(800.0))
///     .run(|event| println!("{event:?}"))?;
/// assert!(report.ok, "incomplete: {:?}", report.incomplete);
/// # Ok::<(), faircast::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing is sent before `start` or `run`"]
pub struct Sender {
    config: SendConfig,
}

impl Sender {
    /// Send this.
    pub fn new(content: Content) -> Sender {
        SendConfig::new(content).into()
    }

    /// Send these files and directory trees.
    pub fn paths<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Sender {
        Sender::new(Content::Paths(paths.into_iter().map(|path| path.as_ref().to_path_buf()).collect()))
    }

    /// Send these bytes as a file of this name.
    pub fn bytes(name: impl Into<String>, bytes: impl Into<std::sync::Arc<[u8]>>) -> Sender {
        Sender::new(Content::Memory(vec![MemoryFile::new(name, bytes)]))
    }

    /// Send what `reader` delivers until it ends as a file of this name; every receiver gets all of it.
    pub fn reader(name: impl Into<String>, reader: impl std::io::Read + Send + 'static) -> Sender {
        Sender::new(Content::Reader { name: name.into(), input: Input::new(reader) })
    }

    /// Send what `reader` delivers live: who joins late starts at the present, and nothing older than `history` is repaired.
    pub fn live(reader: impl std::io::Read + Send + 'static, history: Duration) -> Sender {
        Sender::new(Content::Live { input: Input::new(reader), history })
    }

    /// Send a live stream of its own on each layer of a layered scheme, the base layer's first: every receiver gets the base
    /// and as many of the others as its path carries. Repairs of a tenth are sent with the data, for nobody asks for any;
    /// what a layer cannot send within 5 s is dropped. [`Content::Layers`] has other values.
    pub fn layers(inputs: impl IntoIterator<Item = LayerInput>) -> Sender {
        let inputs = inputs.into_iter().collect();
        Sender::new(Content::Layers { inputs, history: Duration::from_secs(5), repair: 0.1 })
    }

    /// Say this of files too, beyond names, permission bits, times and hard links; receivers that want it give it to them.
    pub fn preserve(mut self, preserve: Preserve) -> Sender {
        self.config.preserve = preserve;
        self
    }

    /// Sets the treatment of files that cannot be read; without this the others are sent, and [`SendReport::unsent`] names them.
    pub fn unreadable(mut self, unreadable: Unreadable) -> Sender {
        self.config.unreadable = unreadable;
        self
    }

    /// Which symbolic links are sent as the files that they lead to; without this none.
    pub fn follow_links(mut self, follow: FollowLinks) -> Sender {
        self.config.follow = follow;
        self
    }

    /// The group's address and port; of a session in layers, the base layer's.
    pub fn group(mut self, group: SocketAddr) -> Sender {
        self.config.group = group;
        self
    }

    /// Serve hosts by unicast, each at a rate of its own: those that ask, or that are invited. Without multicast the group and
    /// the interface mean nothing.
    pub fn unicast(mut self, unicast: Unicast) -> Sender {
        self.config.unicast = Some(unicast);
        self
    }

    /// The interface, by name or address. Otherwise the routes of this host say which.
    pub fn interface(mut self, interface: impl Into<String>) -> Sender {
        self.config.interface = Some(interface.into());
        self
    }

    /// The UDP port of this host that receivers answer to, and no other. Otherwise the group's, or one that the system chooses while
    /// another program has that.
    pub fn port(mut self, port: u16) -> Sender {
        self.config.port = Some(port);
        self
    }

    /// How many routers packets may cross, and one more: 1 stays on the local network, 0 on this host.
    pub fn ttl(mut self, ttl: u8) -> Sender {
        self.config.ttl = ttl;
        self
    }

    /// The congestion control.
    pub fn scheme(mut self, scheme: Scheme) -> Sender {
        self.config.scheme = scheme;
        self
    }

    /// The congestion control by its name, with options as in `ormcc,beta=0.7`.
    ///
    /// # Errors
    /// When there is no such scheme or option.
    pub fn congestion_control(self, written: &str) -> Result<Sender, SpecError> {
        Ok(self.scheme(written.parse()?))
    }

    /// Where the groups of the layers are, when the scheme has several.
    pub fn layers_by(mut self, spacing: Spacing) -> Sender {
        self.config.spacing = spacing;
        self
    }

    /// Never send slower than this; of a layered scheme, its base layer.
    pub fn min(mut self, rate: Rate) -> Sender {
        self.config.min = Some(rate);
        self
    }

    /// Never send faster than this, all layers together.
    pub fn max(mut self, rate: Rate) -> Sender {
        self.config.max = Some(rate);
        self
    }

    /// Limits the cost of one slow receiver to the others.
    pub fn slow(mut self, slow: SlowReceiverPolicy) -> Sender {
        self.config.slow = slow;
        self
    }

    /// Sends without feedback, at a fixed rate and in rounds, where nothing can come back. Settings about receivers' answers have
    /// no effect then.
    pub fn one_way(mut self, one_way: OneWay) -> Sender {
        self.config.one_way = Some(one_way);
        self
    }

    /// Seal everything under this key: who has it can read, send and answer.
    pub fn key(mut self, key: GroupKey) -> Sender {
        self.config.key = Some(key);
        self
    }

    /// Sign the content: receivers that have the public key take nothing else. Not for streams in layers.
    pub fn sign(mut self, key: SigningKey) -> Sender {
        self.config.sign = Some(key);
        self
    }

    /// Each receiver has to sign a receipt with one of these keys ([`SendReport::receipts`](crate::SendReport::receipts)); otherwise
    /// receipts are recorded. Not for streams in layers.
    pub fn receipts(mut self, keys: ReceiptKeys) -> Sender {
        self.config.receipts = Some(keys);
        self
    }

    /// Starts when this many receivers have joined, and ends when they are done.
    pub fn expect_receivers(mut self, receivers: u32) -> Sender {
        self.config.expect = Some(receivers);
        self
    }

    /// These must have everything: the session starts when they have joined, and its report names those that have not come.
    pub fn require(mut self, hosts: impl IntoIterator<Item = RequiredHost>) -> Sender {
        self.config.required = hosts.into_iter().collect();
        self
    }

    /// How long to wait for receivers to join.
    pub fn join_timeout(mut self, timeout: Duration) -> Sender {
        self.config.join_timeout = timeout;
        self
    }

    /// How long receivers may be silent, or not be reached by data, and the network be gone.
    pub fn idle_timeout(mut self, timeout: Duration) -> Sender {
        self.config.idle_timeout = timeout;
        self
    }

    /// The largest UDP datagram, in bytes. Otherwise what the interface carries, 1500 with headers at most.
    pub fn datagram(mut self, bytes: u16) -> Sender {
        self.config.datagram = Some(bytes);
        self
    }

    /// This host's name in messages. Otherwise what the system calls it.
    pub fn host(mut self, name: impl Into<String>) -> Sender {
        self.config.host = name.into();
        self
    }

    /// Where nameless temporary files are made; `/tmp` otherwise.
    pub fn temporary(mut self, directory: impl Into<PathBuf>) -> Sender {
        self.config.temporary = directory.into();
        self
    }

    /// Start in a thread of its own.
    ///
    /// # Errors
    /// When the session cannot begin: its configuration makes no sense, its content cannot be read, no socket opens.
    pub fn start(self) -> Result<Session<SendReport>, Error> {
        session::start(self.complete())
    }

    /// Send in this thread, until the session has ended.
    ///
    /// # Errors
    /// As [`Sender::start`], or when the session fails. That receivers are incomplete is in the report.
    pub fn run(self, on_event: impl FnMut(Event)) -> Result<SendReport, Error> {
        self.run_until(&Stop::new()?, on_event)
    }

    /// As [`Sender::run`], until `stop` is set: the report then has the state at that moment (`stopped`).
    ///
    /// # Errors
    /// As [`Sender::run`].
    pub fn run_until(self, stop: &Stop, on_event: impl FnMut(Event)) -> Result<SendReport, Error> {
        session::run(self.complete(), stop, on_event)
    }

    /// Send in the calling task of tokio's runtime, until the session has ended. The future does what a thread would: it
    /// reads and writes files as it goes, and shares its processor with other tasks after every turn. Dropping it ends
    /// the session without a message to the others; [`Sender::run_async_until`] notifies them.
    ///
    /// # Errors
    /// As [`Sender::run`].
    ///
    /// # Panics
    /// When it is polled outside of a runtime of tokio with input and output enabled.
    #[cfg(feature = "tokio")]
    pub async fn run_async(self, on_event: impl FnMut(Event) + Send) -> Result<SendReport, Error> {
        self.run_async_until(&Stop::new()?, on_event).await
    }

    /// As [`Sender::run_async`], until `stop` is set: the report then has the state at that moment (`stopped`).
    ///
    /// # Errors
    /// As [`Sender::run`].
    ///
    /// # Panics
    /// As [`Sender::run_async`].
    #[cfg(feature = "tokio")]
    pub async fn run_async_until(
        self,
        stop: &Stop,
        mut on_event: impl FnMut(Event) + Send,
    ) -> Result<SendReport, Error> {
        faircast_driver::send_async(self.complete(), &mut on_event, stop).await
    }

    /// With a name for this host.
    pub(crate) fn complete(mut self) -> SendConfig {
        if self.config.host.is_empty() {
            self.config.host = crate::host_name();
        }
        self.config
    }
}

impl From<SendConfig> for Sender {
    fn from(config: SendConfig) -> Sender {
        Sender { config }
    }
}
