//! The endpoints of one session at a relay, and the jobs of a receiver.

use faircast_transport::endpoint::Endpoint;
use faircast_transport::relay::{RelayConfig, RelayHandle};
use faircast_transport::session::Host;
use faircast_transport::tree::{BranchPlace, RelaySession};
use faircast_transport::worker::{Job, Worker};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Jobs of a receiver, which the world runs when their time has come.
#[derive(Clone, Default)]
pub struct Jobs(Arc<Mutex<VecDeque<Job>>>);

impl Jobs {
    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Runs the job that has waited longest.
    pub fn run_next(&self) {
        let job = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        if let Some(job) = job {
            job();
        }
    }

    /// Returns a worker that puts jobs here.
    pub fn worker(&self) -> Worker {
        let jobs = Arc::clone(&self.0);
        Worker::new(move |_, job| jobs.lock().unwrap_or_else(PoisonError::into_inner).push_back(job))
    }
}

/// The endpoints of a relay for one session, or the next that it finds: the upstream one first, then the branches.
pub struct Relay {
    /// The endpoints.
    pub endpoints: Vec<Box<dyn Endpoint>>,
    /// The endpoints for hosts that have asked to be served, in order of their requests.
    pub children: Vec<ServedChild>,
    handle: RelayHandle,
    session: RelaySession,
}

/// A host that is served by unicast.
pub struct ServedChild {
    /// Its address and port.
    pub address: SocketAddr,
    /// The endpoint that serves it.
    pub endpoint: Box<dyn Endpoint>,
}

impl Relay {
    /// Builds branches that send from these addresses to the group of the first source, each with two random numbers.
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

    /// Serves the hosts that have asked since the last call.
    pub fn grow(&mut self) {
        for host in self.session.new_hosts() {
            let endpoint = self.session.serve(&host, host.local, || self.handle.draw());
            self.children.push(ServedChild { address: host.address, endpoint });
        }
    }

    /// Whether the upstream endpoint listens to the group, although it has a parent.
    pub fn receives_group(&self) -> bool {
        self.endpoints[0].receives_group()
    }

    /// Whether all of it is over; the session may be found again then.
    pub fn is_finished(&self) -> bool {
        let children = self.children.iter().map(|child| &child.endpoint);
        let over = self.endpoints.iter().chain(children).all(|endpoint| endpoint.is_finished());
        if over {
            self.session.release();
        }
        over
    }
}
