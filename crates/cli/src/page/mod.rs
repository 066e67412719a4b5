//! The live page of a session for browsers, and the metrics of a session for Prometheus.
//!
//! ```text
//!   session -- events --> model, which has bounds --> thread of the server --> browsers, Prometheus
//! ```
//!
//! A session stores its events in the [`model`]. It never waits for the server: the lock is held while values are copied, and all
//! texts are written outside of it. While nobody looks, the server sleeps.

mod access;
mod document;
mod metrics;
mod model;
mod record;
mod server;
#[cfg(test)]
pub mod tests;
mod traffic;

use crate::failure::Failure;
use access::Access;
pub use access::Serves;
use faircast::Event;
pub use model::Model;
pub use model::Of;
use model::Update;
pub use record::Record;
use serde::Serialize;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use tokio::sync::watch;
use traffic::Meters;

/// Servers of a running command. They end when this value is dropped.
#[derive(Debug)]
pub struct Page {
    shared: Arc<Shared>,
    meters: Mutex<Meters>,
    thread: Option<JoinHandle<()>>,
    urls: Vec<(Serves, String)>,
}

/// State that the session and the server share.
#[derive(Debug)]
struct Shared {
    model: Mutex<Model>,
    /// A page of results in place of that of sessions.
    results: Mutex<Option<String>>,
    /// Version of the model. The server waits for its changes.
    changed: watch::Sender<u64>,
    ended: watch::Sender<bool>,
}

impl Shared {
    fn new(command: &'static str, run: &str) -> Shared {
        Shared {
            model: Mutex::new(Model::new(command, run)),
            results: Mutex::default(),
            changed: watch::Sender::new(0),
            ended: watch::Sender::new(false),
        }
    }

    /// Locks the model. A poisoned lock is safe: a thread that panics leaves a model that is less recent.
    fn lock(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the page of results. A poisoned lock is safe: the page is replaced as a whole.
    fn results(&self) -> MutexGuard<'_, Option<String>> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the changes since a version. The lock is free when this returns.
    fn update_since(&self, version: u64) -> Update {
        self.lock().update_since(version)
    }

    fn change(&self, change: impl FnOnce(&mut Model)) {
        let mut model = self.lock();
        change(&mut model);
        let version = model.version();
        drop(model);
        self.changed.send_replace(version);
    }
}

impl Page {
    /// Starts servers of the page and of the metrics at these addresses; returns `None` without an address. `command` is the name
    /// of the command.
    ///
    /// # Errors
    /// When an address cannot be used.
    pub fn open(
        (page, metrics): (Option<SocketAddr>, Option<SocketAddr>),
        command: &'static str,
    ) -> Result<Option<Page>, Failure> {
        let wanted = [(Serves::Page, page), (Serves::Metrics, metrics)];
        let mut places = Vec::new();
        for (serves, at) in wanted.into_iter().filter_map(|(serves, at)| Some((serves, at?))) {
            places.push(
                listen(serves, at).map_err(Failure::system(format!("open {} at {at}", serves.name())))?,
            );
        }
        if places.is_empty() {
            return Ok(None);
        }
        let urls = places.iter().map(|(_, access)| (access.serves(), access.url())).collect();
        let run = access::random_token().map_err(Failure::system("get random numbers"))?;
        let shared = Arc::new(Shared::new(command, &run));
        let theirs = Arc::clone(&shared);
        let runtime = server::runtime().map_err(Failure::system("start the server of the page"))?;
        let thread = thread::Builder::new()
            .name("page".to_owned())
            .spawn(move || runtime.block_on(server::run(places, theirs)))
            .map_err(Failure::system("start the server of the page"))?;
        Ok(Some(Page { shared, meters: Mutex::default(), thread: Some(thread), urls }))
    }

    /// Starts the server of a simulation's page.
    ///
    /// # Errors
    /// When the address cannot be used.
    #[cfg(feature = "simulator")]
    pub fn of_simulation(at: SocketAddr) -> Result<Page, Failure> {
        Page::open((Some(at), None), "sim run").map(|page| page.expect("a page is wanted"))
    }

    /// Starts the server of a command whose results are one page.
    ///
    /// # Errors
    /// When the address cannot be used.
    #[cfg(feature = "simulator")]
    pub fn of_results(at: SocketAddr, command: &'static str) -> Result<Page, Failure> {
        let page = Page::open((Some(at), None), command)?.expect("a page is wanted");
        page.publish(document::awaited(command));
        Ok(page)
    }

    /// Replaces the page of results.
    #[cfg(feature = "simulator")]
    pub fn publish(&self, html: String) {
        *self.shared.results() = Some(html);
    }

    /// Changes the state of a simulation.
    #[cfg(feature = "simulator")]
    pub fn change(&self, change: impl FnOnce(&mut Model)) {
        self.shared.change(change);
    }

    /// Returns the page with the present state, as one file.
    #[cfg(feature = "simulator")]
    pub fn file(&self) -> String {
        record::saved(&self.shared.update_since(0), None)
    }

    /// Returns the content and the address of each server.
    pub fn urls(&self) -> &[(Serves, String)] {
        &self.urls
    }

    /// Stores an event of a session.
    pub fn note(&self, of: Of, event: &Event) {
        let traffic = self.meters().note(of, event);
        self.shared.change(|model| {
            model.note(of, event);
            traffic.into_iter().for_each(|traffic| model.note_traffic(of, traffic));
        });
    }

    /// Locks the meters. Poisoned meters are safe: at most, counts are older.
    fn meters(&self) -> MutexGuard<'_, Meters> {
        self.meters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the last lines of a session: its error, and its report.
    pub fn end(&self, of: Of, line: &impl Serialize) {
        let line = serde_json::to_value(line).expect("numbers and texts are JSON");
        self.meters().forget(of);
        self.shared.change(|model| model.end(of, line));
    }
}

impl Drop for Page {
    /// Ends the servers when all browsers have the last numbers, or after a moment.
    fn drop(&mut self) {
        self.shared.change(Model::close);
        self.shared.ended.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A server that has panicked has printed why.
            let _ = thread.join();
        }
    }
}

fn listen(serves: Serves, at: SocketAddr) -> std::io::Result<(TcpListener, Access)> {
    let listener = TcpListener::bind(at)?;
    listener.set_nonblocking(true)?;
    let access = Access::new(serves, listener.local_addr()?)?;
    Ok((listener, access))
}
