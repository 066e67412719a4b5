//! A host of the lab.

use crate::error::KitError;
use crate::task::{Finished, Task, enter, open_namespace};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A host of the lab: a network namespace with one interface, [`Node::INTERFACE`].
#[derive(Debug)]
pub struct Node {
    namespace: String,
    path: PathBuf,
    ipv4: Ipv4Addr,
    ipv6: Ipv6Addr,
    port: String,
}

impl Node {
    /// Name of the interface of every host.
    pub const INTERFACE: &'static str = "eth0";

    pub(crate) fn new(namespace: String, number: u16, port: String) -> Node {
        let path = Path::new("/run/netns").join(&namespace);
        let [high, low] = number.to_be_bytes();
        let ipv4 = Ipv4Addr::new(10, 77, high, low);
        Node { namespace, path, ipv4, ipv6: Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, number), port }
    }

    /// Returns the name of the namespace, for `ip -n`.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Returns the name of the bridge's port towards this host, in the namespace of the bridge.
    pub fn port(&self) -> &str {
        &self.port
    }

    /// Returns the IPv4 address of the host.
    pub fn ipv4(&self) -> Ipv4Addr {
        self.ipv4
    }

    /// Returns the IPv6 address of the host.
    pub fn ipv6(&self) -> Ipv6Addr {
        self.ipv6
    }

    /// Returns the IPv4 address of the host.
    pub fn address(&self) -> IpAddr {
        IpAddr::V4(self.ipv4)
    }

    /// Starts a program on this host. The program is killed when the [`Task`] is dropped or the calling thread ends. For the
    /// program, `/sys` shows the machine, not the namespace of this host.
    ///
    /// # Errors
    /// Fails if the program cannot be started.
    pub fn start(&self, program: &str, args: &[&str]) -> Result<Task, KitError> {
        Task::start(program, args, Some(&self.path))
    }

    /// Runs a program on this host until it ends.
    ///
    /// # Errors
    /// Fails if the program cannot be started, ends with an error, or does not end in time.
    pub fn run(&self, program: &str, args: &[&str], within: Duration) -> Result<Finished, KitError> {
        self.start(program, args)?.finish(within)?.ok()
    }

    /// Runs code on this host in a separate thread. Sockets that the code opens and returns stay in the namespace of this host.
    ///
    /// # Errors
    /// Fails if the namespace cannot be entered.
    ///
    /// # Panics
    /// Panics if the code panics.
    pub fn inside<T: Send>(&self, code: impl FnOnce() -> T + Send) -> Result<T, KitError> {
        let namespace = open_namespace(&self.path)?;
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                enter(&namespace).map_err(KitError::system(format!("enter {}", self.namespace)))?;
                Ok(code())
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
