//! Transfers: sources and receivers that run in threads of their own.

use faircast::{
    Class, Content, Destination, Error, Events, GroupKey, KeyRing, Memory, MemoryFile, OverwritePolicy, Rate,
    ReceiveReport, Receiver, Scheme, SendReport, Sender, SigningKey, Stop, VerifyKeys,
};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

pyo3::create_exception!(
    faircast,
    TransferError,
    PyRuntimeError,
    "A transfer that failed.\n\nAttributes\n----------\nkind : str\n    `\"transfer\"`: the transfer did not succeed; `\"usage\"`: an option is not valid; `\"system\"`: the network or the system failed."
);

/// Returns the exception for an error of a session.
fn failed(py: Python<'_>, error: &Error) -> PyErr {
    let kind = match error.class() {
        Class::Usage => "usage",
        Class::System => "system",
        _ => "transfer",
    };
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    let exception = TransferError::new_err(text);
    match exception.value(py).setattr("kind", kind) {
        Ok(()) => exception,
        Err(other) => other,
    }
}

/// Reads an option that is given as text.
fn parsed<T: FromStr<Err: std::fmt::Display>>(name: &str, text: Option<String>) -> PyResult<Option<T>> {
    let wrong = |error: T::Err| PyValueError::new_err(format!("{name}: {error}"));
    text.map(|text| text.trim().parse().map_err(wrong)).transpose()
}

fn seconds(name: &str, value: Option<f64>) -> PyResult<Option<Duration>> {
    let Some(value) = value else { return Ok(None) };
    let wrong = |_| PyValueError::new_err(format!("{name} is a duration in seconds, not {value}"));
    Duration::try_from_secs_f64(value).map(Some).map_err(wrong)
}

/// Reads a rate in bit/s.
fn rate(name: &str, value: Option<f64>) -> PyResult<Option<Rate>> {
    match value {
        Some(rate) if !(rate.is_finite() && rate > 0.0) => {
            Err(PyValueError::new_err(format!("{name} is a positive rate in bit/s, not {rate}")))
        }
        rate => Ok(rate.map(Rate::from_bps)),
    }
}

/// Reads the address and port of a group.
fn group_of(text: Option<String>) -> PyResult<Option<SocketAddr>> {
    let Some(text) = text else { return Ok(None) };
    let Ok(group) = text.trim().parse::<SocketAddr>() else {
        let message = format!("group is an address and a port, as in 239.255.77.1:5777, not {text:?}");
        return Err(PyValueError::new_err(message));
    };
    if !group.ip().is_multicast() {
        return Err(PyValueError::new_err(format!("group: {} is not a multicast address", group.ip())));
    }
    Ok(Some(group))
}

/// A running session.
#[pyclass(frozen, module = "faircast._native")]
pub struct Session {
    running: Mutex<Option<Running>>,
    events: Events,
    stop: Stop,
    memory: Option<Memory>,
}

enum Running {
    Source(faircast::Session<SendReport>),
    Receiver(faircast::Session<ReceiveReport>),
}

impl Session {
    fn running(&self) -> std::sync::MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Session {
    /// Waits for the next event, for at most this number of seconds. Returns its JSON, or None.
    fn next_event(&self, py: Python<'_>, within: f64) -> PyResult<Option<String>> {
        let within = seconds("within", Some(within))?.unwrap_or_default();
        let event = py.detach(|| self.events.next_within(within));
        event.map(|event| to_json(&event)).transpose()
    }

    /// Whether the session has ended.
    fn is_finished(&self) -> bool {
        match &*self.running() {
            None => true,
            Some(Running::Source(session)) => session.is_finished(),
            Some(Running::Receiver(session)) => session.is_finished(),
        }
    }

    /// Ends the session early.
    fn stop(&self) {
        self.stop.stop();
    }

    /// Starts a waiting source with the receivers that have joined.
    fn start_now(&self) {
        if let Some(Running::Source(session)) = &*self.running() {
            session.start_now();
        }
    }

    /// Waits for the end of the session, and returns the JSON of its report. Call it once.
    fn join(&self, py: Python<'_>) -> PyResult<String> {
        let Some(running) = self.running().take() else {
            return Err(PyRuntimeError::new_err("the session was joined before"));
        };
        let report = py.detach(|| match running {
            Running::Source(session) => session.join().map(|report| to_json(&report)),
            Running::Receiver(session) => session.join().map(|report| to_json(&report)),
        });
        report.map_err(|error| failed(py, &error))?
    }

    /// Returns the files that were received into memory: their names and bytes.
    fn take_files<'py>(&self, py: Python<'py>) -> Vec<(String, Bound<'py, PyBytes>)> {
        let files = self.memory.as_ref().map(Memory::take).unwrap_or_default();
        files.into_iter().map(|file| (file.name, PyBytes::new(py, &file.bytes))).collect()
    }
}

fn to_json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// Starts a source of files on the disk (`paths`) or in memory (`files`).
#[pyfunction]
#[pyo3(signature = (paths, files, *, group = None, interface = None, port = None, ttl = None, scheme = None, min_rate = None, max_rate = None,
    key = None, sign_key = None, expect = 0, join_timeout = None, idle_timeout = None, host = None))]
#[expect(clippy::too_many_arguments, reason = "they are the keyword arguments of the Python class")]
pub fn send(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    files: Vec<(String, Vec<u8>)>,
    group: Option<String>,
    interface: Option<String>,
    port: Option<u16>,
    ttl: Option<u8>,
    scheme: Option<String>,
    min_rate: Option<f64>,
    max_rate: Option<f64>,
    key: Option<String>,
    sign_key: Option<String>,
    expect: u32,
    join_timeout: Option<f64>,
    idle_timeout: Option<f64>,
    host: Option<String>,
) -> PyResult<Session> {
    let content = match files.is_empty() {
        true => Content::Paths(paths),
        false => {
            Content::Memory(files.into_iter().map(|(name, bytes)| MemoryFile::new(name, bytes)).collect())
        }
    };
    let mut sender = Sender::new(content).expect_receivers(expect);
    if let Some(group) = group_of(group)? {
        sender = sender.group(group);
    }
    if let Some(interface) = interface {
        sender = sender.interface(interface);
    }
    if let Some(port) = port {
        sender = sender.port(port);
    }
    if let Some(ttl) = ttl {
        sender = sender.ttl(ttl);
    }
    if let Some(scheme) = parsed::<Scheme>("scheme", scheme)? {
        sender = sender.scheme(scheme);
    }
    if let Some(rate) = rate("min_rate", min_rate)? {
        sender = sender.min(rate);
    }
    if let Some(rate) = rate("max_rate", max_rate)? {
        sender = sender.max(rate);
    }
    if let Some(key) = parsed::<GroupKey>("key", key)? {
        sender = sender.key(key);
    }
    if let Some(key) = parsed::<SigningKey>("sign_key", sign_key)? {
        sender = sender.sign(key);
    }
    if let Some(timeout) = seconds("join_timeout", join_timeout)? {
        sender = sender.join_timeout(timeout);
    }
    if let Some(timeout) = seconds("idle_timeout", idle_timeout)? {
        sender = sender.idle_timeout(timeout);
    }
    if let Some(host) = host {
        sender = sender.host(host);
    }
    let session = py.detach(|| sender.start()).map_err(|error| failed(py, &error))?;
    let (events, stop) = (session.events(), session.stopper());
    Ok(Session { running: Mutex::new(Some(Running::Source(session))), events, stop, memory: None })
}

/// Starts a receiver into a directory, or into at most `memory` bytes of memory.
#[pyfunction]
#[pyo3(signature = (directory, memory, *, group = None, interface = None, parent = None, source = None, key = None, verify_key = None,
    join_timeout = None, idle_timeout = None, host = None, overwrite = false))]
#[expect(clippy::too_many_arguments, reason = "they are the keyword arguments of the Python class")]
pub fn receive(
    py: Python<'_>,
    directory: Option<PathBuf>,
    memory: u64,
    group: Option<String>,
    interface: Option<String>,
    parent: Option<String>,
    source: Option<String>,
    key: Option<String>,
    verify_key: Option<String>,
    join_timeout: Option<f64>,
    idle_timeout: Option<f64>,
    host: Option<String>,
    overwrite: bool,
) -> PyResult<Session> {
    let memory = directory.is_none().then(|| Memory::new(memory));
    let destination = match (directory, &memory) {
        (Some(directory), _) => Destination::Directory(directory),
        (None, memory) => Destination::Memory(memory.clone().expect("without a directory there is memory")),
    };
    let mut receiver = Receiver::new(destination);
    if let Some(group) = group_of(group)? {
        receiver = receiver.group(group);
    }
    if let Some(interface) = interface {
        receiver = receiver.interface(interface);
    }
    if let Some(parent) = parsed::<SocketAddr>("parent", parent)? {
        receiver = receiver.parent(parent);
    }
    if let Some(source) = parsed("source", source)? {
        receiver = receiver.source(source);
    }
    if let Some(key) = parsed::<KeyRing>("key", key)? {
        receiver = receiver.key(key);
    }
    if let Some(keys) = parsed::<VerifyKeys>("verify_key", verify_key)? {
        receiver = receiver.verify(keys);
    }
    if let Some(timeout) = seconds("join_timeout", join_timeout)? {
        receiver = receiver.join_timeout(timeout);
    }
    if let Some(timeout) = seconds("idle_timeout", idle_timeout)? {
        receiver = receiver.idle_timeout(timeout);
    }
    if let Some(host) = host {
        receiver = receiver.host(host);
    }
    if overwrite {
        receiver = receiver.overwrite(OverwritePolicy::Accept);
    }
    let session = py.detach(|| receiver.start()).map_err(|error| failed(py, &error))?;
    let (events, stop) = (session.events(), session.stopper());
    Ok(Session { running: Mutex::new(Some(Running::Receiver(session))), events, stop, memory })
}

/// Creates a group key, or a signing key and its verification key, as the lines of key files.
#[pyfunction]
pub fn generate_key(signing: bool) -> PyResult<(String, Option<String>)> {
    let failed = |error: faircast::KeyError| PyRuntimeError::new_err(error.to_string());
    if !signing {
        return Ok((GroupKey::generate().map_err(failed)?.to_line().to_string(), None));
    }
    let key = SigningKey::generate().map_err(failed)?;
    Ok((key.to_line().to_string(), Some(key.verify_key().to_line())))
}
