//! Basic setups for tests, simulated worlds and fuzzing.

use super::{INCOMPLETE, REORDERING, ReplayPolicy, Setup};
use crate::config::{self, Destination, Durability};
use crate::object::host::disk::Disk;
use crate::session_filter::SessionFilter;
use crate::worker::Worker;
use faircast_core::packet::ReceiverId;
use faircast_core::rng::Rng;
use faircast_core::time::Span;
use faircast_wire::ReceiverCodec;
use faircast_wire::encode::IPV4_HEADERS;
use std::net::SocketAddr;

impl Setup {
    /// Returns the setup of a receiver with only source and destination configured, on an IPv4 path. `unix_secs` is the start of
    /// the receiver, in seconds since 1970. All random numbers of the receiver are derived from `seed`.
    pub(crate) fn plain(
        codec: ReceiverCodec,
        id: ReceiverId,
        seed: u64,
        destination: Destination,
        (group, unix_secs): (SocketAddr, u64),
    ) -> Setup {
        Setup {
            codec,
            accept: SessionFilter::default(),
            id,
            nonce: 7,
            seed,
            scheme_rng: Rng::new(seed, 0),
            reordering: REORDERING,
            host: "receiver".to_owned(),
            destination,
            layers_to: Vec::new(),
            durability: Durability::Fast,
            temporary: std::env::temp_dir(),
            files: Default::default(),
            verify: None,
            sign_receipts: None,
            only: None,
            overhead: IPV4_HEADERS,
            join_timeout: None,
            idle_timeout: Span::from_nanos(config::IDLE_TIMEOUT.as_nanos() as u64),
            group,
            replay_policy: ReplayPolicy::Answer,
            unix_secs,
            memory: INCOMPLETE,
            parents: Vec::new(),
            invited: false,
            worker: Worker::at_once(),
            disk: Disk::default(),
            relay: None,
        }
    }
}
