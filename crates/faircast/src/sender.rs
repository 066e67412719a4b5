//! Sources for programs.

use crate::config::{DayLimits, DryRun, LATENCY, ReceiverEvents};
use crate::object::Extraneous;
use crate::session::{self, Session};
use crate::{
    Content, Delta, Error, Event, FollowLinks, GroupKey, Input, LayerInput, MemoryFile, OneWay, Preserve,
    Rate, ReceiptKeys, RequiredHost, SendConfig, SendReport, Series, SigningKey, SlowReceiverPolicy, Spacing,
    Stop, Unicast, Unreadable,
};
use faircast_core::schemes::Scheme;
use faircast_core::spec::SpecError;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Sends content to all receivers of the group. Settings that the caller does not change have the values of [`SendConfig::new`].
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
#[must_use = "a sender does not run before `start` or `run`"]
pub struct Sender {
    config: SendConfig,
}

impl Sender {
    /// Creates a source of `content`.
    pub fn new(content: Content) -> Sender {
        SendConfig::new(content).into()
    }

    /// Creates a source that sends these files and directory trees.
    pub fn paths<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Sender {
        Sender::new(Content::Paths(paths.into_iter().map(|path| path.as_ref().to_path_buf()).collect()))
    }

    /// Creates a source that sends these bytes as a file of this name.
    pub fn bytes(name: impl Into<String>, bytes: impl Into<std::sync::Arc<[u8]>>) -> Sender {
        Sender::new(Content::Memory(vec![MemoryFile::new(name, bytes)]))
    }

    /// Creates a source that sends all bytes of `reader` until its end, as a file of this name. Every receiver gets all bytes.
    pub fn reader(name: impl Into<String>, reader: impl std::io::Read + Send + 'static) -> Sender {
        Sender::new(Content::Reader { name: name.into(), input: Input::new(reader) })
    }

    /// Creates a source that sends the bytes of `reader` as a live stream. A late joiner starts at the current position, and
    /// blocks older than `history` are not repaired.
    pub fn live(reader: impl std::io::Read + Send + 'static, history: Duration) -> Sender {
        Sender::new(Content::Live { input: Input::new(reader), history, latency: LATENCY })
    }

    /// Creates a source that sends one live stream for each layer of a layered scheme, beginning with the base layer. Every
    /// receiver gets the base layer and as many enhancement layers as its path carries. Receivers request no repairs: 10 % repair
    /// symbols are sent with the data. Data that a layer cannot send within 5 s is dropped. [`Content::Layers`] accepts other
    /// values.
    pub fn layers(inputs: impl IntoIterator<Item = LayerInput>) -> Sender {
        let inputs = inputs.into_iter().collect();
        let history = Duration::from_secs(5);
        Sender::new(Content::Layers { inputs, history, repair: 0.1, latency: LATENCY })
    }

    /// Sets the aim for the delay of live streams from the input to the receivers' outputs, without delays of the path. The default
    /// is 200 ms. A shorter delay needs more packets. Other content ignores it.
    pub fn latency(mut self, aim: Duration) -> Sender {
        if let Content::Live { latency, .. } | Content::Layers { latency, .. } = &mut self.config.content {
            *latency = aim;
        }
        self
    }

    /// Sends these metadata of files in addition to names, permission bits, times and hard links. A receiver applies only the
    /// metadata that its own settings include.
    pub fn preserve(mut self, preserve: Preserve) -> Sender {
        self.config.preserve = preserve;
        self
    }

    /// Sets the treatment of unreadable files. By default all readable files are sent, and [`SendReport::unsent`] lists the
    /// unreadable files.
    pub fn unreadable(mut self, unreadable: Unreadable) -> Sender {
        self.config.unreadable = unreadable;
        self
    }

    /// Selects the symbolic links whose targets are sent instead of the links. By default no targets are sent.
    pub fn follow_links(mut self, follow: FollowLinks) -> Sender {
        self.config.follow = follow;
        self
    }

    /// Sets the treatment of files that receivers have in the sent directories and this host does not. Files are deleted only at
    /// receivers that select this, too, and only if no file of this host was left out.
    pub fn extraneous(mut self, extraneous: Extraneous) -> Sender {
        self.config.extraneous = extraneous;
        self
    }

    /// Lists the chunks of files, so that receivers reuse unchanged parts of earlier versions. By default whole files are sent. All
    /// files are read before the session.
    pub fn delta(mut self, delta: Delta) -> Sender {
        self.config.delta = delta;
        self
    }

    /// Sends only the list of files. Receivers compare their disks with it, change nothing, and state what a session would send to
    /// them ([`Event::Compared`](crate::Event), [`SendReport::dry_run`]). By default all content is sent.
    pub fn dry_run(mut self, dry_run: DryRun) -> Sender {
        self.config.dry_run = dry_run;
        self
    }

    /// Sets the address and port of the group. In a layered session, these are the address and port of the base layer.
    pub fn group(mut self, group: SocketAddr) -> Sender {
        self.config.group = group;
        self
    }

    /// Serves hosts by unicast, each host at a separate rate. A host requests this service, or this source invites the host. If
    /// `unicast` excludes multicast, the group and the interface have no effect.
    pub fn unicast(mut self, unicast: Unicast) -> Sender {
        self.config.unicast = Some(unicast);
        self
    }

    /// Sets the interface, by name or address. By default the routes of this host select it.
    pub fn interface(mut self, interface: impl Into<String>) -> Sender {
        self.config.interface = Some(interface.into());
        self
    }

    /// Sets the UDP port of this host for the feedback of receivers. The default is the group's port. If another program uses
    /// that port, the system chooses a port.
    pub fn port(mut self, port: u16) -> Sender {
        self.config.port = Some(port);
        self
    }

    /// Sets the time to live of multicast packets. Packets with the value 1 stay on the local network, and packets with the value
    /// 0 on this host.
    pub fn ttl(mut self, ttl: u8) -> Sender {
        self.config.ttl = ttl;
        self
    }

    /// Sets the congestion control.
    pub fn scheme(mut self, scheme: Scheme) -> Sender {
        self.config.scheme = scheme;
        self
    }

    /// Sets the congestion control by its name, with options as in `ormcc,beta=0.7`.
    ///
    /// # Errors
    /// When the scheme or option does not exist.
    pub fn congestion_control(self, written: &str) -> Result<Sender, SpecError> {
        Ok(self.scheme(written.parse()?))
    }

    /// Numbers the session in a series of sessions of this source. Receivers learn the number ([`Event::Numbered`](crate::Event)),
    /// and so which sessions they have missed.
    pub fn series(mut self, series: Series) -> Sender {
        self.config.series = Some(series);
        self
    }

    /// Sets the spacing of the groups of a layered scheme.
    pub fn layers_by(mut self, spacing: Spacing) -> Sender {
        self.config.spacing = spacing;
        self
    }

    /// Sets the minimum rate. In a layered scheme, this is the minimum rate of the base layer.
    pub fn min(mut self, rate: Rate) -> Sender {
        self.config.min = Some(rate);
        self
    }

    /// Sets the maximum rate of all layers together.
    pub fn max(mut self, rate: Rate) -> Sender {
        self.config.max = Some(rate);
        self
    }

    /// Limits the rate by the local time of day. A lower maximum rate applies, too.
    pub fn day_limits(mut self, limits: DayLimits) -> Sender {
        self.config.day_limits = Some(limits);
        self
    }

    /// Limits the delay that slow receivers cause for other receivers.
    pub fn slow(mut self, slow: SlowReceiverPolicy) -> Sender {
        self.config.slow = slow;
        self
    }

    /// Sends repeatedly at a fixed rate, for networks without a feedback path. Settings that concern feedback then have no
    /// effect.
    pub fn one_way(mut self, one_way: OneWay) -> Sender {
        self.config.one_way = Some(one_way);
        self
    }

    /// Encrypts all packets with this key. Every holder of the key can read the content, send content and send feedback.
    pub fn key(mut self, key: GroupKey) -> Sender {
        self.config.key = Some(key);
        self
    }

    /// Signs the content: receivers that have the public key accept no other content. Not available for layered streams.
    pub fn sign(mut self, key: SigningKey) -> Sender {
        self.config.sign = Some(key);
        self
    }

    /// Requires each receiver to sign a receipt with one of these keys ([`SendReport::receipts`](crate::SendReport::receipts)).
    /// By default receipts are recorded but not required. Not available for layered streams.
    pub fn receipts(mut self, keys: ReceiptKeys) -> Sender {
        self.config.receipts = Some(keys);
        self
    }

    /// Starts when this number of receivers have joined, and ends when this number of receivers are complete.
    pub fn expect_receivers(mut self, receivers: u32) -> Sender {
        self.config.expect = Some(receivers);
        self
    }

    /// Requires that these hosts receive all content: the session starts when all of them have joined, and its report lists
    /// absent hosts.
    pub fn require(mut self, hosts: impl IntoIterator<Item = RequiredHost>) -> Sender {
        self.config.required = hosts.into_iter().collect();
        self
    }

    /// Sends to the receivers whose host names match one of these patterns, in which `*` stands for any characters. Other receivers store
    /// nothing. All patterns together have at most 63 bytes, with a comma between two of them.
    pub fn to_hosts<S: Into<String>>(mut self, patterns: impl IntoIterator<Item = S>) -> Sender {
        self.config.to_hosts = patterns.into_iter().map(Into::into).collect();
        self
    }

    /// Reports the state of each receiver once a second ([`Event::Receivers`](crate::Event::Receivers)).
    pub fn receiver_events(mut self, events: ReceiverEvents) -> Sender {
        self.config.receiver_events = events;
        self
    }

    /// Sets the time to wait for receivers to join.
    pub fn join_timeout(mut self, timeout: Duration) -> Sender {
        self.config.join_timeout = timeout;
        self
    }

    /// Sets the time at which the session starts to send. Receivers can join until then.
    pub fn start_at(mut self, time: SystemTime) -> Sender {
        self.config.start_at = Some(time);
        self
    }

    /// Sets the maximum duration of a silence of a receiver, of a period without data at a receiver, and of a network outage.
    pub fn idle_timeout(mut self, timeout: Duration) -> Sender {
        self.config.idle_timeout = timeout;
        self
    }

    /// Sets the size of the largest UDP datagram, in bytes. The default is the maximum of the interface, but at most 1500 bytes
    /// with headers.
    pub fn datagram(mut self, bytes: u16) -> Sender {
        self.config.datagram = Some(bytes);
        self
    }

    /// Sets this host's name in messages. The default is the system's host name.
    pub fn host(mut self, name: impl Into<String>) -> Sender {
        self.config.host = name.into();
        self
    }

    /// Sets the directory of unnamed temporary files. The default is `/tmp`.
    pub fn temporary(mut self, directory: impl Into<PathBuf>) -> Sender {
        self.config.temporary = directory.into();
        self
    }

    /// Starts the session in a separate thread.
    ///
    /// # Errors
    /// When the session cannot begin: its configuration is invalid, its content cannot be read, or no socket can be opened.
    pub fn start(self) -> Result<Session<SendReport>, Error> {
        session::start(self.complete())
    }

    /// Sends in this thread until the session has ended.
    ///
    /// # Errors
    /// The errors of [`Sender::start`], and an error when the session fails. Incomplete receivers are not an error: the report
    /// lists them.
    pub fn run(self, on_event: impl FnMut(Event)) -> Result<SendReport, Error> {
        self.run_until(&Stop::new()?, on_event)
    }

    /// Does the same as [`Sender::run`], but also ends when `stop` is set. The report then contains the state at that moment and
    /// is marked `stopped`.
    ///
    /// # Errors
    /// As [`Sender::run`].
    pub fn run_until(self, stop: &Stop, on_event: impl FnMut(Event)) -> Result<SendReport, Error> {
        session::run(self.complete(), stop, on_event)
    }

    /// Sends in the calling task of tokio's runtime until the session has ended. The future does the work of a thread: it reads
    /// and writes files while it is polled, and yields to other tasks after every turn. Dropping the future ends the session
    /// without a message to its peers; [`Sender::run_async_until`] notifies the peers.
    ///
    /// # Errors
    /// As [`Sender::run`].
    ///
    /// # Panics
    /// When the future is polled outside of a tokio runtime, or in a tokio runtime without enabled I/O.
    #[cfg(feature = "tokio")]
    pub async fn run_async(self, on_event: impl FnMut(Event) + Send) -> Result<SendReport, Error> {
        self.run_async_until(&Stop::new()?, on_event).await
    }

    /// Does the same as [`Sender::run_async`], but also ends when `stop` is set. The report then contains the state at that
    /// moment and is marked `stopped`.
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

    /// Returns the configuration with a host name.
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
