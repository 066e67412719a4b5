//! A thread that starts processes. The kernel kills processes that follow their parent when this thread ends.

use std::io;
use std::process::{Child, Command};
use std::sync::mpsc::{self, Sender};
use std::thread;

/// A command to start, with the place for the result.
type Order = (Command, Sender<io::Result<Child>>);

/// A thread that starts processes. It ends when this value is dropped.
#[derive(Debug)]
pub struct Nursery(Sender<Order>);

impl Nursery {
    /// Starts the thread, which first runs `prepare`.
    ///
    /// # Errors
    /// The error of `prepare`.
    pub fn new(prepare: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<Nursery> {
        let (orders, wanted) = mpsc::channel::<Order>();
        let (prepared, result) = mpsc::channel();
        thread::spawn(move || {
            // If nobody waits for a result any more, the nursery was dropped.
            let _ = prepared.send(prepare());
            for (mut command, reply) in wanted {
                let _ = reply.send(command.spawn());
            }
        });
        result.recv().unwrap_or_else(|_| Err(ended()))?;
        Ok(Nursery(orders))
    }

    /// Starts a process.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn spawn(&self, command: Command) -> io::Result<Child> {
        let (reply, result) = mpsc::channel();
        self.0.send((command, reply)).map_err(|_| ended())?;
        result.recv().unwrap_or_else(|_| Err(ended()))
    }
}

fn ended() -> io::Error {
    io::Error::other("the thread that starts processes has ended")
}
