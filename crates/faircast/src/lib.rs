//! Sends files and streams to many receivers at once by IP multicast, with a fair share for all other flows on the network.
//!
//! A [`Sender`] sends one stream of packets to any number of receivers. A congestion control finds the rate that the slowest path
//! carries in competition with TCP, or the rate of each path in a layered session. BLAKE3 verifies every block before a file gets
//! its name. Receivers that join late, lose packets or were killed get the missing parts. A [`Receiver`] receives one session.
//!
//! ```no_run
//! use faircast::{Memory, Receiver, Sender};
//! use std::time::Duration;
//!
//! // On each receiving host, or in this process:
//! let memory = Memory::new(64 << 20);
//! let receiver = Receiver::into_memory(memory.clone()).join_timeout(Duration::from_secs(60)).start()?;
//!
//! // On the sending host:
//! let sender = Sender::bytes("weights.bin", vec![7; 1 << 20]).expect_receivers(1).start()?;
//! for event in sender.events() {
//!     println!("{event:?}");
//! }
//! assert!(sender.join()?.ok);
//!
//! assert!(receiver.join()?.ok);
//! for file in memory.take() {
//!     println!("{}: {} bytes", file.name, file.bytes.len());
//! }
//! # Ok::<(), faircast::Error>(())
//! ```
//!
//! **Content**: files and trees, memory, or any [`Read`](std::io::Read), which is read to its end or sent as a live stream
//! ([`Content`]). **Destinations**: a directory, any [`Write`](std::io::Write), memory with a size limit, or a block device
//! ([`Destination`]).
//!
//! **A session runs** in the calling thread (`run`), in a separate thread (`start`, which returns a [`Session`] with [`Events`],
//! `stop` and `join`), or, with the feature `tokio`, in a task of tokio (`run_async`). A [`Session`] is also a future, and its
//! [`Events`] are a stream, for any runtime. The library prints nothing, reads no environment variable, handles no signal and has
//! no global state. A program can therefore run any number of sessions.
//!
//! **A session does not wait for the reader of its events**: the events are queued. When the queue is full, the oldest events are
//! dropped and counted ([`Event::Dropped`]). A callback that blocks does not delay the session, except in `run_async`: there the
//! callback blocks the task of the session.
//!
//! **Other formats** are started from their configurations ([`start`], [`run`]):
//!
//! ```no_run
//! use faircast::Content;
//! use faircast::pgm::PgmSend;
//!
//! let mut zeromq = PgmSend::new(Content::Paths(vec!["log".into()]));
//! zeromq.place.interface = Some("eth0".into());
//! let report = faircast::start(zeromq)?.join()?;
//! # Ok::<(), faircast::Error>(())
//! ```
//!
//! **Errors** ([`Error`]) state what failed, the object concerned and a remedy, without reference to the command line. Transient
//! faults (a cable, a switch, a silent receiver) cause warnings among the events. They end no session before the idle timeout.
//!
//! **Examples** to copy from, in the folder `examples` of this crate: `send_a_file`, `receive_into_memory`, `watch_events`,
//! `two_receivers` in one process, and `own_congestion_control`, which needs no network.
//!
//! | purpose | see |
//! |---|---|
//! | options of sessions | [`SendConfig`], [`ReceiveConfig`]; [`Sender`] and [`Receiver`] are built from them |
//! | the congestion controls | [`Scheme`], and [`core`] for the state machines of new schemes |
//! | receivers without faircast | [`pgm`] (OpenPGM, ZeroMQ) and [`alc`] (FLUTE), started by [`start`] or [`run`] |
//! | sessions in a loop of the program | [`Endpoint`]: datagrams in, datagrams out, without sockets and clock |
//! | events, reports and errors in full | [`event`], [`error`]; their JSON: [`json`] |
//! | details of a session in the program's log | the feature `tracing`: events for joins, reports, rates, cuts, windows, repairs, blocks and parents, described in `docs/tracing.md` |
//! | simulated networks | the crates `sim`, `aqm`, `unicast` (feature `sim`) and `experiments` (feature `experiments`) |
//!
//! Linux only. In networks without multicast, a source serves hosts by unicast ([`Unicast`]), or relays do ([`relay`]). Besides
//! sockets, files, time and random numbers, a session uses only the system's [`host_name`].

#![forbid(unsafe_code)]

mod events;
mod formats;
mod receiver;
mod sender;
mod session;

pub use events::{Events, Waiting};
pub use faircast_driver::Stop;
pub use formats::*;
pub use receiver::Receiver;
pub use sender::Sender;
pub use session::{Session, relay, run, start};

pub use faircast_core::packet::{Layer, ReceiverId};
pub use faircast_core::schemes::Scheme;
pub use faircast_core::spec::SpecError;
pub use faircast_core::time::Rate;
pub use faircast_driver::Configuration;
pub use faircast_driver::format::{ReceiverPlace, SourcePlace};
pub use faircast_net::NetError;
pub use faircast_transport::config::{
    BadLimits, Content, DEFAULT_GROUP, Destination, DryRun, Durability, InvitedHost, LayerInput, Multicast,
    OneWay, OverwritePolicy, Pacing, ReceiptKeys, ReceiveConfig, Repeat, ReplayPolicy, RequiredHost,
    SendConfig, SlowReceiverPolicy, Unicast,
};
pub use faircast_transport::ends::{Input, Output};
pub use faircast_transport::object::{
    Aspect, Delta, FollowLinks, LeftOut, Memory, MemoryFile, NameError, Names, ObjectError, OwnersBy,
    Preserve, UnknownAspect, UnknownNames, Unreadable,
};
pub use faircast_transport::receipts::{ReceiptReport, ReceiptsReport};
pub use faircast_transport::relay::{
    AgentStatus, BranchStatus, Forwarding, HopStatus, RelayBranch, RelayConfig, RelayEvent, RelayHandle,
    RelayRole, RelaySource, RelayStatus, RelayedSession, RouterKind,
};
pub use faircast_transport::{Class, Endpoint, Error, Event, ReceiveReport, SendReport, SessionFilter};
pub use faircast_wire::{
    GroupKey, HopKey, KeyError, KeyRing, Series, SigningKey, Spacing, TransferId, VerifyKey, VerifyKeys,
};

/// Configurations of sessions: rarely used options, and the types of all options.
pub mod config {
    pub use faircast_transport::config::{
        BadLimits, Content, DEFAULT_GROUP, DEFAULT_GROUP_V6, DEFAULT_SCHEME, DayLimits, DayPeriod,
        Destination, DryRun, Durability, FIND_GROUP, FIND_GROUP_V6, IDLE_TIMEOUT, InvitedHost, KeepPartial,
        LATENCY, LayerInput, Multicast, OneWay, Overlap, OverwritePolicy, Pacing, RECEIVE_BUFFER,
        RELAY_MEMORY, RELAY_PORT, ReceiptKeys, ReceiveConfig, ReceiverEvents, Repeat, ReplayPolicy,
        RequiredHost, SendConfig, SlowReceiverPolicy, StartNow, Unicast, UtcOffset, check_limits,
        default_group, default_group_here, default_group_v6, default_scheme, other_default,
    };
}

/// Events and reports, and their parts.
pub mod event {
    pub use faircast_transport::dry_run::{DryRunReport, HostComparison};
    pub use faircast_transport::event::{
        Advice, Busy, Condition, Counts, Event, Flow, HostOutcome, HostReport, IncompleteReceiver, Joining,
        LayersReport, Limit, MAX_UNSENT, Progress, Queues, RateCut, ReceiveReport, ReceiverOutcome,
        ReceiverReport, ReceiverState, RefusedPackets, RelayBelow, SendReport, Setting, SlowAction,
        StreamReceived, StreamSent, Subscription, TransferName, reasons,
    };
}

/// Errors, grouped by stage.
pub mod error {
    pub use faircast_transport::error::{
        Class, ConfigError, EndReason, Error, FormatError, FormatFault, JoinObstacle, StartError,
        StorageError, SystemError, TransferError, Unlayered, amount, named_refusals, seconds,
    };
}

/// Sessions that run in a loop of the program.
pub mod endpoint {
    pub use faircast_transport::endpoint::{Backlog, Datagram, Endpoint, HostEvent, Transmit};
}

/// Types that every foreign wire format uses.
pub mod format {
    pub use faircast_driver::format::{
        Declaration, Ends, Feature, Format, FormatOption, Given, Outcome, ReceiverPlace, ReceiverRequest,
        Refused, SourcePlace, SourceRequest, Values,
    };
}

/// Receipts: signed statements of receivers that they have verified the content.
pub mod receipts {
    pub use faircast_transport::receipts::{ReceiptReport, ReceiptsReport, WithoutReceipt};
}

/// Conversions of times, rates and identities to JSON.
pub mod json {
    pub use faircast_transport::json::{
        bps, optional_bps, optional_millis, optional_seconds, receiver, seconds, text, unix_seconds,
    };
}

/// Text form of numbers for people.
pub mod units {
    pub use faircast_transport::units::{bytes, count, mean_rate, percent, rate, seconds};
}

/// Incomplete transfers in output directories, and names with terminal control characters.
pub mod object {
    pub use faircast_transport::config::{Existing, Extraneous, KeepPartial};
    pub use faircast_transport::object::names::is_command;
    pub use faircast_transport::object::partial_transfers::{Unfinished, let_go, unfinished};
    pub use faircast_transport::object::{BlockDevice, DeviceFault, DeviceUse};
}

/// The state machines of congestion control, for new schemes.
pub mod core {
    pub use faircast_core::{
        bounds, delivery, estimate, node, packet, rate, rng, schemes, spec, suppress, time,
    };
}

// Each of these crates can be used directly.
#[cfg(feature = "experiments")]
pub use faircast_experiments as experiments;
#[cfg(feature = "sim")]
pub use simulation::{aqm, sim, unicast};

/// The simulator, its queues and its unicast flows.
#[cfg(feature = "sim")]
mod simulation {
    pub use faircast_aqm as aqm;
    pub use faircast_sim as sim;
    pub use faircast_unicast as unicast;
}

/// Returns the system's name of this host, cut to the maximum of 63 bytes in a packet.
#[must_use]
pub fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "localhost".into() } else { cut(name) }
}

/// Cuts a name to 63 bytes, at the boundary of a character.
fn cut(mut name: String) -> String {
    while name.len() > 63 {
        name.pop();
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_host_name_is_cut_at_a_character_boundary() {
        assert_eq!(cut("ü".repeat(40)).len(), 62);
        assert!(!host_name().is_empty());
    }
}
