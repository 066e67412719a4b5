//! Errors of COCOON in Linux, with advice for the user.

use std::io;
use std::path::PathBuf;

/// Reason for a failed operation. The message begins with `cocoon:`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CocoonError {
    /// The kernel provides no description of its types (BTF).
    #[error("cocoon: this kernel has no BTF; use a kernel with CONFIG_DEBUG_INFO_BTF=y")]
    NoBtf,
    /// The kernel does not accept congestion controls as BPF programs.
    #[error("cocoon: this kernel supports no TCP congestion control in BPF (struct_ops); use one with CONFIG_BPF_JIT")]
    NoStructOps,
    /// The kernel lacks a function that the programs call.
    #[error("cocoon: BPF programs cannot call {0} in this kernel; use Linux 6.1 or newer")]
    NoFunction(&'static str),
    /// The process lacks a required capability.
    #[error("cocoon: missing CAP_BPF or CAP_PERFMON; run it as root or with both capabilities")]
    NoCapability,
    /// No BPF file system is mounted at the path for the pins.
    #[error("cocoon: no BPF file system at {0}; mount one: mount -t bpf bpf {0}")]
    NoBpffs(PathBuf),
    /// A congestion control with this name is already registered.
    #[error("cocoon: congestion control {0} is already registered; unload it, or use another --name")]
    Registered(String),
    /// The verifier or another part of the kernel has rejected the programs.
    #[error("cocoon: the kernel refused the programs: {0}")]
    Refused(String),
    /// The name is too long or has invalid characters.
    #[error("cocoon: {0:?} is not a valid congestion control name; use 1 to 15 letters, digits, '_' or '-'")]
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
    #[error("cocoon: another version of {name} is loaded ({what}); unload it and load it again")]
    OtherVersion {
        /// The requested name.
        name: String,
        /// The difference.
        what: String,
    },
    /// The name is still registered although its link was removed.
    #[error("cocoon: {0} is still registered after 5 s; find the process that holds its link with `bpftool link`, and stop it")]
    Held(String),
    /// A file operation failed.
    #[error("cocoon: cannot {what} {path}: {source}")]
    Io {
        /// The failed operation.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A call of libbpf failed.
    #[error("cocoon: cannot {what}: {source}")]
    Bpf {
        /// The failed operation.
        what: &'static str,
        /// The reason.
        source: libbpf_rs::Error,
    },
    /// A socket of the UDP gate failed.
    #[error("cocoon: cannot {what} {address}: {source}")]
    Socket {
        /// The failed operation.
        what: &'static str,
        /// Address of the socket.
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
