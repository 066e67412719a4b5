//! Errors of building or driving a network.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// An error of building or driving a network.
#[derive(Debug, thiserror::Error)]
pub enum KitError {
    /// A program could not be started.
    #[error("cannot start {program}: {source}; is it installed?")]
    Start {
        /// The program.
        program: String,
        /// The reason.
        source: io::Error,
    },
    /// A program failed.
    #[error("{command} failed ({status}): {stderr}")]
    Failed {
        /// Program and arguments.
        command: String,
        /// Its exit status.
        status: String,
        /// Its error output.
        stderr: String,
    },
    /// A program did not end in time and was killed.
    #[error("{command} did not end within {within:?} and was killed; it said: {stderr}")]
    TooLong {
        /// Program and arguments.
        command: String,
        /// The limit.
        within: Duration,
        /// Its error output.
        stderr: String,
    },
    /// A file or system call failed.
    #[error("{what}: {source}")]
    System {
        /// The attempted operation.
        what: String,
        /// The reason.
        source: io::Error,
    },
    /// A program's output was not understood.
    #[error("cannot read the output of {program}: {why}")]
    Output {
        /// The program.
        program: &'static str,
        /// The missing part.
        why: String,
    },
    /// An offload could not be switched off, so a bottleneck would not be honest.
    #[error("{interface} in {namespace} keeps {feature} on; ethtool cannot switch it off")]
    OffloadStays {
        /// Interface.
        interface: String,
        /// Namespace.
        namespace: String,
        /// Feature, as ethtool names it.
        feature: String,
    },
    /// Links could not be emulated.
    #[error(transparent)]
    Emulator(#[from] faircast_emulator::EmulatorError),
    /// Another lab was in use for too long.
    #[error("another test has held {lock} for {waited:?}; is one hanging?")]
    Busy {
        /// The lock file.
        lock: PathBuf,
        /// The time that this one waited.
        waited: Duration,
    },
}

impl KitError {
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> KitError {
        let what = what.into();
        move |source| KitError::System { what, source }
    }
}
