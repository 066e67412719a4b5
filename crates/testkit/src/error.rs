//! Errors in building or running a network.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// An error in building or running a network.
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
        /// The program and its arguments.
        command: String,
        /// Exit status of the program.
        status: String,
        /// Standard error of the program.
        stderr: String,
    },
    /// A program did not end in time and was killed.
    #[error("{command} did not end within {within:?} and was killed; it said: {stderr}")]
    TooLong {
        /// The program and its arguments.
        command: String,
        /// The time limit.
        within: Duration,
        /// Standard error of the program.
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
    /// The output of a program could not be parsed.
    #[error("cannot read the output of {program}: {why}")]
    Output {
        /// The program.
        program: &'static str,
        /// The part that is missing or wrong.
        why: String,
    },
    /// An offload could not be switched off. With merged packets, a bottleneck would not limit single packets.
    #[error("{interface} in {namespace} keeps {feature} on; ethtool cannot switch it off")]
    OffloadStays {
        /// Name of the interface.
        interface: String,
        /// Name of the namespace.
        namespace: String,
        /// Name of the feature in the output of ethtool.
        feature: String,
    },
    /// Emulation of the links failed.
    #[error(transparent)]
    Emulator(#[from] faircast_emulator::EmulatorError),
    /// Other labs used the machine for too long.
    #[error("another test has held {lock} for {waited:?}; is one hanging?")]
    Busy {
        /// The lock file.
        lock: PathBuf,
        /// Time that this lab waited.
        waited: Duration,
    },
}

impl KitError {
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> KitError {
        let what = what.into();
        move |source| KitError::System { what, source }
    }
}
