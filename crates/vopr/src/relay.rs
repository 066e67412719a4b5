//! The endpoints of one session at a relay, and the jobs of a receiver.

use faircast_transport::endpoint::Endpoint;
use faircast_transport::relay::{RelayConfig, RelayHandle};
use faircast_transport::session::Host;
use faircast_transport::tree::{BranchPlace, RelaySession};
use faircast_transport::worker::{Job, Worker};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Queue of a receiver's jobs, which the world runs in virtual time.
#[derive(Clone, Default)]
pub struct Jobs(Arc<Mutex<VecDeque<Job>>>);

impl Jobs {
    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Runs the first job of the queue.
    pub fn run_next(&self) {
        let job = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        if let Some(job) = job {
            job();
        }
    }

    /// Returns a worker that appends jobs to this queue.
    pub fn worker(&self) -> Worker {
        let jobs = Arc::clone(&self.0);
        Worker::new(move |_, job| jobs.lock().unwrap_or_else(PoisonError::into_inner).push_back(job))
    }
}

/// The endpoints of a relay for one session: the upstream endpoint first, then the branches.
pub struct Relay {
    /// The upstream endpoint, and the branches.
    pub endpoints: Vec<Box<dyn Endpoint>>,
    /// The endpoints that serve hosts by unicast, in the order of the hosts' requests.
    pub children: Vec<ServedChild>,
    handle: RelayHandle,
    session: RelaySession,
}

/// A host that is served by unicast.
pub struct ServedChild {
    /// Address and port of the host.
    pub address: SocketAddr,
    /// The endpoint that serves the host.
    pub endpoint: Box<dyn Endpoint>,
}

impl Relay {
    /// Creates the endpoints for one session. Each branch sends from an address of `branches` to the group of the first source,
    /// and has two random numbers of `seeds`.
    pub fn new(
        config: &RelayConfig,
        handle: &RelayHandle,
        branches: &[SocketAddr],
        host: &Host,
        seeds: &[[u64; 2]],
    ) -> Relay {
        let session = RelaySession::new(config, handle, branches.len(), host.random, None);
        let source = &config.sources[0];
        let above = session.above(source, host.unix_nanos / 1_000_000_000, host.now);
        let mut endpoints: Vec<Box<dyn Endpoint>> = vec![Box::new(above)];
        for (place, (&local, &random)) in branches.iter().zip(seeds).enumerate() {
            let at = BranchPlace { place, to: source.group, local, ttl: 1, max: None, random };
            endpoints.push(session.branch(at));
        }
        Relay { endpoints, children: Vec::new(), handle: handle.clone(), session }
    }

    /// Creates endpoints for the hosts that have requested to be served since the last call.
    pub fn grow(&mut self) {
        for host in self.session.new_hosts() {
            let endpoint = self.session.serve(&host, host.local, || self.handle.draw());
            self.children.push(ServedChild { address: host.address, endpoint });
        }
    }

    /// Whether the upstream endpoint receives packets of the group in addition to packets of a parent.
    pub fn receives_group(&self) -> bool {
        self.endpoints[0].receives_group()
    }

    /// Whether all endpoints have ended. In this case the session is released, so that it may be found again.
    pub fn is_finished(&self) -> bool {
        let children = self.children.iter().map(|child| &child.endpoint);
        let over = self.endpoints.iter().chain(children).all(|endpoint| endpoint.is_finished());
        if over {
            self.session.release();
        }
        over
    }
}
