//! Errors, with advice.

use std::io;
use std::path::PathBuf;

/// Why something could not be done. Its text begins with `cocoon:`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CocoonError {
    /// The kernel has no description of its types.
    #[error("cocoon: no kernel BTF; needs CONFIG_DEBUG_INFO_BTF=y")]
    NoBtf,
    /// The kernel does not take congestion controls as programs.
    #[error("cocoon: this kernel has no struct_ops for TCP congestion control")]
    NoStructOps,
    /// The kernel has no function that the programs call.
    #[error("cocoon: this kernel has no function {0} for programs to call; needs Linux 6.1 or newer")]
    NoFunction(&'static str),
    /// The process lacks capabilities.
    #[error("cocoon: needs CAP_BPF and CAP_PERFMON")]
    NoCapability,
    /// There is nowhere to pin.
    #[error("cocoon: no BPF file system at {0}; mount one: mount -t bpf bpf {0}")]
    NoBpffs(PathBuf),
    /// The name is taken.
    #[error("cocoon: congestion control {0} is already registered")]
    Registered(String),
    /// The verifier, or the kernel for another reason, refused.
    #[error("cocoon: kernel refused the program: {0}")]
    Refused(String),
    /// The name does not fit.
    #[error("cocoon: {0:?} cannot be a congestion control's name: 1 to 15 letters, digits, '_' or '-'")]
    BadName(String),
    /// Nothing is loaded under this name.
    #[error("cocoon: {name} is not loaded (no {path}); load it: faircast-cocoon load")]
    NotLoaded {
        /// The name asked for.
        name: String,
        /// Where its pin would be.
        path: PathBuf,
    },
    /// The pinned objects were made by another version.
    #[error("cocoon: {name} is loaded in another version ({what}); unload it and load it again")]
    OtherVersion {
        /// The name asked for.
        name: String,
        /// The difference.
        what: String,
    },
    /// The name stayed registered although its link is gone.
    #[error("cocoon: {0} is still registered after 5 s; a process holds its link (bpftool link)")]
    Held(String),
    /// A file could not be used.
    #[error("cocoon: {what} {path}: {source}")]
    Io {
        /// Operation that failed.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The library for BPF failed.
    #[error("cocoon: {what}: {source}")]
    Bpf {
        /// Operation that failed.
        what: &'static str,
        /// Why it failed.
        source: libbpf_rs::Error,
    },
    /// A socket of the UDP gate failed.
    #[error("cocoon: {what} {address}: {source}")]
    Socket {
        /// Operation that failed.
        what: &'static str,
        /// With which address.
        address: std::net::SocketAddr,
        /// Why it failed.
        source: io::Error,
    },
}

impl CocoonError {
    /// The exit code of a program that ends by this: 69 (`EX_UNAVAILABLE`) if the machine cannot do it, otherwise 1.
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
