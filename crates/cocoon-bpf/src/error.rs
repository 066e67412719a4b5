//! Errors of COCOON in Linux, with advice for the user.

use std::io;
use std::path::PathBuf;

/// Reason for a failed operation. The message begins with `cocoon:`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CocoonError {
    /// The kernel provides no description of its types (BTF).
    #[error("cocoon: no kernel BTF; needs CONFIG_DEBUG_INFO_BTF=y")]
    NoBtf,
    /// The kernel does not accept congestion controls as BPF programs.
    #[error("cocoon: this kernel has no struct_ops for TCP congestion control")]
    NoStructOps,
    /// The kernel lacks a function that the programs call.
    #[error("cocoon: this kernel has no function {0} for programs to call; needs Linux 6.1 or newer")]
    NoFunction(&'static str),
    /// The process lacks a required capability.
    #[error("cocoon: needs CAP_BPF and CAP_PERFMON")]
    NoCapability,
    /// No BPF file system is mounted at the path for the pins.
    #[error("cocoon: no BPF file system at {0}; mount one: mount -t bpf bpf {0}")]
    NoBpffs(PathBuf),
    /// A congestion control with this name is already registered.
    #[error("cocoon: congestion control {0} is already registered")]
    Registered(String),
    /// The verifier or another part of the kernel refused the programs.
    #[error("cocoon: kernel refused the program: {0}")]
    Refused(String),
    /// The name is too long or has invalid characters.
    #[error("cocoon: {0:?} cannot be a congestion control's name: 1 to 15 letters, digits, '_' or '-'")]
    BadName(String),
    /// No congestion control is loaded under this name.
    #[error("cocoon: {name} is not loaded (no {path}); load it: faircast-cocoon load")]
    NotLoaded {
        /// The requested name.
        name: String,
        /// Expected path of its pin.
        path: PathBuf,
    },
    /// Another version of this program pinned the objects.
    #[error("cocoon: {name} is loaded in another version ({what}); unload it and load it again")]
    OtherVersion {
        /// The requested name.
        name: String,
        /// The difference.
        what: String,
    },
    /// The name is still registered although its link was removed.
    #[error("cocoon: {0} is still registered after 5 s; a process holds its link (bpftool link)")]
    Held(String),
    /// A file operation failed.
    #[error("cocoon: {what} {path}: {source}")]
    Io {
        /// The failed operation.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A call of libbpf failed.
    #[error("cocoon: {what}: {source}")]
    Bpf {
        /// The failed operation.
        what: &'static str,
        /// The reason.
        source: libbpf_rs::Error,
    },
    /// A socket of the UDP gate failed.
    #[error("cocoon: {what} {address}: {source}")]
    Socket {
        /// The failed operation.
        what: &'static str,
        /// Address of the operation.
        address: std::net::SocketAddr,
        /// The reason.
        source: io::Error,
    },
}

impl CocoonError {
    /// Returns the exit code of a program that ends with this error: 69 (`EX_UNAVAILABLE`) if the machine lacks support,
    /// otherwise 1.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NoBtf
            | Self::NoStructOps
            | Self::NoFunction(_)
            | Self::NoCapability
            | Self::NoBpffs(_)
            | Self::Registered(_)
            | Self::Refused(_) => 69,
            _ => 1,
        }
    }
}
