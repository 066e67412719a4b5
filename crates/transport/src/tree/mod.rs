//! Nodes inside the tree of one session: agents of MTCP, and active routers of RACCOOM and RMANP. A [`RelaySession`] is the part
//! of a relay in one session, in any role.
//!
//! A node does not terminate its session. It is a member of its parent, and reports in place of its children. The relay's
//! upstream session calls the node as `RelayMode`, and the downstream endpoints share the node.
//!
//! ```text
//!   parent <-- receiver's session with UpstreamMode --> RelayMode (Agent, Hop) <-- AgentChild, HopExit <-- those below
//! ```

mod agent;
mod hop;
mod session;

pub(crate) use agent::{Agent, AgentChild};
pub(crate) use hop::{ExitSetup, Hop, HopExit};
pub use session::{BranchPlace, RelaySession, ServedHost};

use crate::relay::RelayMode;
use std::sync::{Arc, Mutex, PoisonError};

/// A node shared by its upstream session and its downstream endpoints. All of them run in one thread, one after the other.
#[derive(Debug)]
pub(crate) struct Node<T>(Arc<Mutex<T>>);

impl<T> Clone for Node<T> {
    fn clone(&self) -> Node<T> {
        Node(self.0.clone())
    }
}

impl<T: RelayMode + 'static> Node<T> {
    pub(crate) fn new(node: T) -> Node<T> {
        Node(Arc::new(Mutex::new(node)))
    }

    /// Returns the node in its role for the upstream session.
    pub(crate) fn mode(&self) -> Arc<Mutex<dyn RelayMode>> {
        self.0.clone()
    }

    /// Calls `act` with the locked node.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
