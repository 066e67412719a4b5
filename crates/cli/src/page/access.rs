//! Access to a page: the token in its address, and the names under which browsers may reach it.

use rustix::rand::{GetRandomFlags, getrandom};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// Content of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serves {
    /// The page, with the metrics at `metrics`.
    Page,
    /// The metrics alone.
    Metrics,
}

impl Serves {
    /// Returns the name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Serves::Page => "the page",
            Serves::Metrics => "the metrics",
        }
    }
}

/// A rejected request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The method is neither GET nor HEAD.
    Method,
    /// The name of the host may be one of an attacker (DNS rebinding).
    Host,
    /// The token is missing or wrong, or nothing has this path.
    Path,
}

/// The rules of a server.
#[derive(Debug)]
pub struct Access {
    serves: Serves,
    at: SocketAddr,
    /// Hexadecimal token, the first part of every path; `None` at a loopback address.
    token: Option<String>,
}

impl Access {
    /// Returns the rules of a server at this address. A page on another address than loopback requires a random token.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn new(serves: Serves, at: SocketAddr) -> io::Result<Access> {
        let is_open = serves == Serves::Metrics || at.ip().is_loopback();
        let token = if is_open { None } else { Some(random_token()?) };
        Ok(Access { serves, at, token })
    }

    /// Returns the content of the server.
    pub const fn serves(&self) -> Serves {
        self.serves
    }

    /// Returns the address of the page.
    pub fn url(&self) -> String {
        let token = self.token.as_ref().map_or_else(String::new, |token| format!("{token}/"));
        let at = match self.at.ip().is_unspecified() {
            true => format!("{}:{}", faircast::host_name(), self.at.port()),
            false => self.at.to_string(),
        };
        let path = if self.serves == Serves::Metrics { "metrics" } else { "" };
        format!("http://{at}/{token}{path}")
    }

    /// Returns the path of a request without the token.
    ///
    /// # Errors
    /// [`Refusal`] if the request is not allowed.
    pub fn check<'a>(&self, method: &str, host: Option<&str>, path: &'a str) -> Result<&'a str, Refusal> {
        if !matches!(method, "GET" | "HEAD") {
            return Err(Refusal::Method);
        }
        let path = path.strip_prefix('/').ok_or(Refusal::Path)?;
        if self.serves == Serves::Metrics {
            // Prometheus reaches hosts under names that this host does not know.
            return if path == "metrics" { Ok(path) } else { Err(Refusal::Path) };
        }
        if !host.is_some_and(is_known_host) {
            return Err(Refusal::Host);
        }
        let Some(token) = &self.token else { return Ok(path) };
        let (given, path) = path.split_once('/').ok_or(Refusal::Path)?;
        // The comparison of hashes takes the same time for every token.
        if blake3::hash(given.as_bytes()) == blake3::hash(token.as_bytes()) {
            Ok(path)
        } else {
            Err(Refusal::Path)
        }
    }
}

/// Whether a name cannot be one whose address an attacker changes: an address, or a name of this host.
fn is_known_host(host: &str) -> bool {
    if host.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok() {
        return true;
    }
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    bare.is_some_and(|bare| bare.parse::<IpAddr>().is_ok())
        || name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || name.eq_ignore_ascii_case(&faircast::host_name())
}

/// Returns 128 random bits, hexadecimal.
///
/// # Errors
/// When the system has no random numbers.
pub fn random_token() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    let filled = getrandom(&mut bytes, GetRandomFlags::empty())?;
    if filled < bytes.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
