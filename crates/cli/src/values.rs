//! Parsers for values of options: rates, durations, groups.

use faircast::config::{FIND_GROUP, FIND_GROUP_V6, RELAY_PORT};
use faircast::object::KeepPartial;
use faircast::{Preserve, UnknownAspect};
use faircast_core::packet::Layer;
use faircast_core::time::Rate;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::time::Duration;

/// Parses the selection of metadata of files; empty text selects nothing.
pub fn preserve(text: &str) -> Result<Preserve, UnknownAspect> {
    if text.is_empty() { Ok(Preserve::nothing()) } else { text.parse() }
}

/// faircast's default port for groups.
pub const DEFAULT_PORT: u16 = 5777;

/// Minimum rate, in bit/s. A lower rate is probably a mistake in the unit.
const MIN_RATE: f64 = 1e3;
/// Maximum rate, in bit/s. A higher rate is probably a mistake in the unit.
const FASTEST: f64 = 1e12;
/// Maximum duration, in seconds: a year.
const MAX_DURATION: f64 = 365.0 * 86_400.0;

/// Reason why a value is invalid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BadValue {
    /// The text is not a rate.
    #[error("`{0}` is not a rate; write a number and a unit in bit/s, like 800k, 10M or 1.5G")]
    NotARate(String),
    /// The unit is probably bytes per second.
    #[error("`{0}` looks like bytes per second; rates are in bit/s, so 10 MB/s is 80M")]
    Bytes(String),
    /// The rate is too low.
    #[error("{0} bit/s is below the minimum rate (1 kbit/s); add the unit, as in 10M")]
    TooSlow(f64),
    /// The rate is too high.
    #[error("{0:e} bit/s is above the maximum rate (1 Tbit/s); check the unit")]
    TooFast(f64),
    /// The text is not a duration.
    #[error("`{0}` is not a time; write seconds, like 10 or 2.5, or add a unit: 500ms, 5m, 1h")]
    NotATime(String),
    /// The duration is zero.
    #[error("the time must be longer than zero")]
    NoTime,
    /// The duration is longer than a year.
    #[error("the time must be shorter than a year")]
    TooLong,
    /// The aim for a delay is too short or too long.
    #[error("the delay must be from 4ms to 10s; add the unit, as in 20ms")]
    Latency,
    /// The text is not a group.
    #[error("`{0}` is not a group; write ADDRESS:PORT, like 239.255.70.1:5777 or [ff15::7]:5777")]
    NotAGroup(String),
    /// The address is not a multicast address.
    #[error("{0} is not a multicast address; use one of 239.0.0.0 to 239.255.255.255 (or ff00::/8)")]
    NotMulticast(IpAddr),
    /// The group is reserved for routers and switches.
    #[error("{0} is reserved for routing protocols; use one of 239.0.0.0 to 239.255.255.255")]
    Reserved(IpAddr),
    /// The text is not a host's address or name.
    #[error(
        "`{0}` is neither an address nor a known host name; write ADDRESS or ADDRESS:PORT, like 192.0.2.7:5778"
    )]
    NotAHost(String),
    /// The text is neither a group nor an interface.
    #[error(
        "`{0}` is neither a group nor an interface; write IFACE, GROUP, or GROUP@IFACE, like 239.1.2.3:6000@eth0"
    )]
    NotAPlace(String),
    /// The text is not a number of bytes, or the number is invalid.
    #[error("`{0}` is not a size; write bytes from 1M to 1000T with a unit, like 64M or 1.5G")]
    NotASize(String),
    /// The port is zero.
    #[error("port 0 cannot be used; choose 1024 to 65535, or leave the port out for 5777")]
    PortZero,
    /// The time to live is zero.
    #[error("a TTL of 0 never leaves this host; use 1 for the local network, more to cross routers")]
    TtlZero,
    /// The text is not a time to live.
    #[error("`{0}` is not a TTL; use 1 to 255")]
    NotATtl(String),
    /// The text is not a percentage.
    #[error("`{0}` is not a percentage; use 0% to 100%")]
    NotAPercentage(String),
    /// The text is not a layer and a path.
    #[error("`{0}` does not name a layer and its path; write its number and a path, like 1=more.ts")]
    NotALayer(String),
    /// The number of receivers is zero.
    #[error("--expect 0 is not possible; leave it out to serve all receivers that join")]
    NobodyExpected,
    /// The text is not a number of receivers.
    #[error("`{0}` is not a number of receivers")]
    NotACount(String),
    /// The text is not a policy for slow receivers.
    #[error("`{0}` is not a policy; use follow, floor:RATE or drop:RATE")]
    NotAPolicy(String),
    /// The rate of a policy is invalid.
    #[error("the rate of `{policy}`: {source}")]
    PolicyRate {
        /// `floor` or `drop`.
        policy: &'static str,
        /// Error in the rate.
        source: Box<BadValue>,
    },
    /// The text is not an age.
    #[error("`{0}` is not an age; write seconds, or 90m, 12h, 7d")]
    NotAnAge(String),
    /// The text is not a limit of partial files.
    #[error("`{0}` is not a limit; write an age (7d), a size (40G), both (7d,40G), or `all`")]
    NotALimit(String),
    /// The name of a file or host cannot be used at receivers.
    #[error("`{0}` cannot be a name; use 1 to {1} bytes without `/` and control characters")]
    NotAName(String, usize),
}

/// Parses a rate in bit/s: `10M`, `1.5G`, `800k`, `10Mbit/s`, `250000`.
pub fn rate(text: &str) -> Result<Rate, BadValue> {
    let text = text.trim();
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let not_a_rate = || BadValue::NotARate(text.to_owned());
    let number: f64 = number.parse().map_err(|_| not_a_rate())?;
    let unit = unit.trim();
    if ["B", "B/s", "Bps"].iter().any(|bytes| unit.ends_with(bytes)) {
        return Err(BadValue::Bytes(text.to_owned()));
    }
    let prefix = ["bit/s", "bits/s", "bps", "b/s", "bit"]
        .iter()
        .find_map(|suffix| unit.strip_suffix(suffix))
        .unwrap_or(unit);
    let factor = match prefix {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" | "m" => 1e6,
        "G" | "g" => 1e9,
        "T" | "t" => 1e12,
        _ => return Err(not_a_rate()),
    };
    match number * factor {
        bps if bps < MIN_RATE => Err(BadValue::TooSlow(bps)),
        bps if bps > FASTEST => Err(BadValue::TooFast(bps)),
        bps => Ok(Rate::from_bps(bps)),
    }
}

/// Parses a duration in seconds, or with a unit: `10`, `2.5`, `500ms`, `5m`, `1h`.
pub fn span(text: &str) -> Result<Duration, BadValue> {
    let text = text.trim();
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let not_a_time = || BadValue::NotATime(text.to_owned());
    let number: f64 = number.parse().map_err(|_| not_a_time())?;
    let factor = match unit.trim() {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(not_a_time()),
    };
    match number * factor {
        secs if secs <= 0.0 => Err(BadValue::NoTime),
        secs if secs > MAX_DURATION => Err(BadValue::TooLong),
        secs => Ok(Duration::from_secs_f64(secs)),
    }
}

/// Parses the aim for the delay of a live stream.
pub fn latency(text: &str) -> Result<Duration, BadValue> {
    let latency = span(text)?;
    let range = Duration::from_millis(4)..=Duration::from_secs(10);
    if range.contains(&latency) { Ok(latency) } else { Err(BadValue::Latency) }
}

/// Parses an age in seconds, or with the unit `m`, `h` or `d`.
pub fn age(text: &str) -> Result<Duration, BadValue> {
    let (number, unit) = match text.char_indices().last() {
        Some((at, 'm')) => (&text[..at], 60.0),
        Some((at, 'h')) => (&text[..at], 3_600.0),
        Some((at, 'd')) => (&text[..at], 86_400.0),
        _ => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let seconds = number.parse::<f64>().ok().filter(|value| *value >= 0.0 && *value < 1e12 / unit);
    seconds
        .map(|value| Duration::from_secs_f64(value * unit))
        .ok_or_else(|| BadValue::NotAnAge(text.to_owned()))
}

/// Parses limits of partial files: an age, a size, an age and a size with a comma between, or `all`.
///
/// # Errors
/// [`BadValue::NotALimit`].
pub fn keep_partial(text: &str) -> Result<KeepPartial, BadValue> {
    let mut keep = KeepPartial::default();
    if text == "all" {
        return Ok(keep);
    }
    for part in text.split(',') {
        let bad = |_| BadValue::NotALimit(text.to_owned());
        // The last letter distinguishes an age (`s`, `m`, `h`, `d`) from a size. A final digit would be ambiguous.
        let twice = match part.chars().last() {
            Some('s' | 'm' | 'h' | 'd') => keep.age.replace(age(part).map_err(bad)?).is_some(),
            Some('0'..='9') | None => true,
            Some(_) => keep.bytes.replace(size(part).map_err(bad)? as u64).is_some(),
        };
        if twice {
            return Err(BadValue::NotALimit(text.to_owned()));
        }
    }
    Ok(keep)
}

/// Parses a percentage, and returns it as a fraction: 0.1 for 10 %.
///
/// # Errors
/// [`BadValue::NotAPercentage`].
pub fn percent(text: &str) -> Result<f64, BadValue> {
    let number = text.strip_suffix('%').unwrap_or(text).trim_end().parse::<f64>();
    let percent = number.ok().filter(|percent| (0.0..=100.0).contains(percent));
    percent.map(|percent| percent / 100.0).ok_or_else(|| BadValue::NotAPercentage(text.into()))
}

/// Parses a layer, and a path for its stream.
///
/// # Errors
/// [`BadValue::NotALayer`].
pub fn layer_to(text: &str) -> Result<(Layer, PathBuf), BadValue> {
    let (number, path) = text.split_once('=').unwrap_or((text, ""));
    let layer = number.parse().ok().filter(|_| !path.is_empty());
    layer.map(|layer| (Layer(layer), path.into())).ok_or_else(|| BadValue::NotALayer(text.into()))
}

/// Parses a multicast group: `239.255.70.1:5777`, `239.255.70.1`, `[ff15::7]:5777`, `ff15::7`.
pub fn group(text: &str) -> Result<SocketAddr, BadValue> {
    let group = group_or_host(text)?;
    if group.ip().is_multicast() { Ok(group) } else { Err(BadValue::NotMulticast(group.ip())) }
}

/// Parses a multicast group, or the address of a host.
///
/// # Errors
/// As [`group`].
pub fn group_or_host(text: &str) -> Result<SocketAddr, BadValue> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let group = text
        .parse::<SocketAddr>()
        .or_else(|_| bare.parse::<IpAddr>().map(|address| SocketAddr::new(address, DEFAULT_PORT)))
        .map_err(|_| BadValue::NotAGroup(text.to_owned()))?;
    let is_broadcast = matches!(group.ip(), IpAddr::V4(v4) if v4.is_broadcast());
    if group.ip().is_unspecified() || is_broadcast {
        return Err(BadValue::NotMulticast(group.ip()));
    }
    if group.port() == 0 {
        return Err(BadValue::PortZero);
    }
    if matches!(group.ip(), IpAddr::V4(v4) if is_link_control(v4)) {
        return Err(BadValue::Reserved(group.ip()));
    }
    Ok(group)
}

/// Whether the address belongs to 224.0.0.0/24, the local network control block (RFC 5771, 4).
fn is_link_control(address: Ipv4Addr) -> bool {
    matches!(address.octets(), [224, 0, 0, _])
}

/// Parses the address of a parent. `find` or `find6` means the nearest relay.
///
/// # Errors
/// As [`parent`].
pub fn parent_or_find(text: &str) -> Result<SocketAddr, BadValue> {
    let group = |group: &str| group.parse().expect("it is an address and a port");
    match text.trim() {
        "find" => Ok(group(FIND_GROUP)),
        "find6" => Ok(group(FIND_GROUP_V6)),
        other => parent(other),
    }
}

/// Parses a relay's address: `192.0.2.7`, `192.0.2.7:6000`, `[2001:db8::7]:6000`, `relay.example.org`.
///
/// # Errors
/// [`BadValue::NotAHost`], or [`BadValue::PortZero`].
pub fn parent(text: &str) -> Result<SocketAddr, BadValue> {
    match host(text, RELAY_PORT)? {
        address if address.port() == 0 => Err(BadValue::PortZero),
        address => Ok(address),
    }
}

/// Parses the address of a host that runs `doctor --serve`. The default port is 0, which means the group's port.
///
/// # Errors
/// [`BadValue::NotAHost`].
pub fn doctor(text: &str) -> Result<SocketAddr, BadValue> {
    host(text, 0)
}

fn host(text: &str, port: u16) -> Result<SocketAddr, BadValue> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let address = match (text.parse::<SocketAddr>(), bare.parse::<IpAddr>()) {
        (Ok(address), _) => address,
        (_, Ok(address)) => SocketAddr::new(address, port),
        _ => named(text, port)?,
    };
    match address {
        _ if address.ip().is_multicast() || address.ip().is_unspecified() => {
            Err(BadValue::NotAHost(text.to_owned()))
        }
        _ => Ok(address),
    }
}

/// Returns the first address of a host name.
fn named(text: &str, default: u16) -> Result<SocketAddr, BadValue> {
    let not_a_host = || BadValue::NotAHost(text.to_owned());
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| not_a_host())?),
        None => (text, default),
    };
    (host, port).to_socket_addrs().ok().and_then(|mut found| found.next()).ok_or_else(not_a_host)
}

/// Local addresses and ports at which this host serves other hosts by unicast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen(pub Vec<SocketAddr>);

/// Does the same as [`listen`], but a port without an address means all addresses of IPv4 and IPv6.
///
/// # Errors
/// As [`listen`].
pub fn listen_at(text: &str) -> Result<Listen, BadValue> {
    let at = listen(text)?;
    let is_port = text.trim().parse::<u16>().is_ok();
    let both = [at, SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), at.port())];
    Ok(Listen(if is_port { both.to_vec() } else { vec![at] }))
}

/// Parses a local address to listen at: `5778`, `192.0.2.7`, `192.0.2.7:6000`.
///
/// # Errors
/// [`BadValue::NotAHost`], or [`BadValue::PortZero`].
pub fn listen(text: &str) -> Result<SocketAddr, BadValue> {
    let address = place(text, RELAY_PORT)?;
    if address.port() == 0 { Err(BadValue::PortZero) } else { Ok(address) }
}

/// Parses the address of `doctor --serve`. The default port is 0, which means the group's port.
///
/// # Errors
/// [`BadValue::NotAHost`].
pub fn doctor_at(text: &str) -> Result<SocketAddr, BadValue> {
    place(text, 0)
}

/// Parses the address of a page. A port alone is one of the loopback address, and port 0 is any free port.
///
/// # Errors
/// [`BadValue::NotAHost`].
#[cfg(feature = "page")]
pub fn page_at(text: &str) -> Result<SocketAddr, BadValue> {
    match text.trim().parse::<u16>() {
        Ok(port) => Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)),
        Err(_) => place(text, 0),
    }
}

fn place(text: &str, default: u16) -> Result<SocketAddr, BadValue> {
    let text = text.trim();
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let address = match (text.parse::<u16>(), text.parse::<SocketAddr>(), bare.parse::<IpAddr>()) {
        (Ok(port), ..) => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port),
        (_, Ok(address), _) => address,
        (.., Ok(address)) => SocketAddr::new(address, default),
        _ => return Err(BadValue::NotAHost(text.to_owned())),
    };
    Ok(address)
}

/// A group, an interface, or a group on an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupAt {
    /// The group; `None`: the default group.
    pub group: Option<SocketAddr>,
    /// The interface, by name or address; `None`: chosen by route.
    pub interface: Option<String>,
}

/// Parses a group, an interface, or both: `eth0`, `239.1.2.3:6000@eth0`, `239.1.2.3`.
///
/// # Errors
/// The error of the group, or [`BadValue::NotAPlace`].
pub fn group_at(text: &str) -> Result<GroupAt, BadValue> {
    let text = text.trim();
    let place = |group: Option<SocketAddr>, interface: &str| GroupAt {
        group,
        interface: (!interface.is_empty()).then(|| interface.to_owned()),
    };
    match text.rsplit_once('@') {
        Some((_, "")) => Err(BadValue::NotAPlace(text.to_owned())),
        Some((before, interface)) => Ok(place(Some(group(before)?), interface)),
        None if text.is_empty() => Err(BadValue::NotAPlace(text.to_owned())),
        None => match group(text) {
            Ok(group) => Ok(place(Some(group), "")),
            // An address of an interface of this host selects this interface. Any other address is an error.
            Err(BadValue::NotAGroup(_)) => Ok(place(None, text)),
            Err(BadValue::NotMulticast(_)) if text.parse::<IpAddr>().is_ok() => Ok(place(None, text)),
            Err(error) => Err(error),
        },
    }
}

/// Parses a number of bytes: `64M`, `1.5G`, `800k`, `4096`.
///
/// # Errors
/// [`BadValue::NotASize`].
pub fn size(text: &str) -> Result<usize, BadValue> {
    let text = text.trim();
    let not_a_size = || BadValue::NotASize(text.to_owned());
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| not_a_size())?;
    let factor = match unit.trim().trim_end_matches("iB").trim_end_matches('B') {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        _ => return Err(not_a_size()),
    };
    let bytes = number * factor;
    if (1e6..=1e15).contains(&bytes) { Ok(bytes as usize) } else { Err(not_a_size()) }
}

/// Parses a time to live (hop limit), 1 to 255.
pub fn ttl(text: &str) -> Result<u8, BadValue> {
    match text.trim().parse::<u8>() {
        Ok(0) => Err(BadValue::TtlZero),
        Ok(ttl) => Ok(ttl),
        Err(_) => Err(BadValue::NotATtl(text.to_owned())),
    }
}

/// Parses a number of receivers, at least one.
pub fn receivers(text: &str) -> Result<u32, BadValue> {
    match text.trim().parse::<u32>() {
        Ok(0) => Err(BadValue::NobodyExpected),
        Ok(count) => Ok(count),
        Err(_) => Err(BadValue::NotACount(text.to_owned())),
    }
}

/// Parses a policy for slow receivers: `follow`, `floor:RATE`, `drop:RATE`.
pub fn slow(text: &str) -> Result<faircast::SlowReceiverPolicy, BadValue> {
    use faircast::SlowReceiverPolicy;
    let with_rate = |policy: &'static str, rate_text: &str| {
        rate(rate_text).map_err(|source| BadValue::PolicyRate { policy, source: Box::new(source) })
    };
    match text.trim().split_once(':') {
        None if text.trim() == "follow" => Ok(SlowReceiverPolicy::Follow),
        Some(("floor", value)) => Ok(SlowReceiverPolicy::Floor(with_rate("floor", value)?)),
        Some(("drop", value)) => Ok(SlowReceiverPolicy::Drop(with_rate("drop", value)?)),
        _ => Err(BadValue::NotAPolicy(text.to_owned())),
    }
}

/// Destination of log lines.
#[cfg(feature = "tracing")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTo {
    /// A file.
    File(PathBuf),
    /// The journal of systemd.
    Journal,
}

/// Parses the destination of log lines. A file called `journald` is `./journald`.
#[cfg(feature = "tracing")]
#[expect(clippy::unnecessary_wraps, reason = "the parser of the command line expects a result")]
pub fn log_to(text: &str) -> Result<LogTo, BadValue> {
    match text {
        "journald" => Ok(LogTo::Journal),
        path => Ok(LogTo::File(path.into())),
    }
}

/// Checks the name of a file for receivers.
pub fn file_name(text: &str) -> Result<String, BadValue> {
    name(text, 255)
}

/// Checks the name of a host for messages.
pub fn host_name(text: &str) -> Result<String, BadValue> {
    name(text, 63)
}

fn name(text: &str, longest: usize) -> Result<String, BadValue> {
    let fits = !text.is_empty() && text.len() <= longest && text != "." && text != "..";
    if !fits || text.contains(|c: char| c == '/' || c.is_control()) {
        return Err(BadValue::NotAName(text.escape_debug().to_string(), longest));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relay_side_is_parsed_as_group_or_interface_or_both() {
        let at = |group: Option<&str>, interface: Option<&str>| {
            let group = group.map(|group| group.parse().expect("a group"));
            Ok(GroupAt { group, interface: interface.map(str::to_owned) })
        };
        assert_eq!(group_at("eth0"), at(None, Some("eth0")));
        assert_eq!(group_at("10.0.0.7"), at(None, Some("10.0.0.7")));
        assert_eq!(group_at("239.1.2.3"), at(Some("239.1.2.3:5777"), None));
        assert_eq!(group_at("239.1.2.3:6000@eth0"), at(Some("239.1.2.3:6000"), Some("eth0")));
        assert_eq!(group_at("[ff15::7]:6000@eth0"), at(Some("[ff15::7]:6000"), Some("eth0")));
        assert!(matches!(group_at("10.0.0.7:5777@eth0"), Err(BadValue::NotMulticast(_))));
        for wrong in ["", "239.1.2.3@", "eth0@eth1", "224.0.0.5@eth0"] {
            assert!(group_at(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn parent_addresses_and_listen_ports_are_parsed() {
        let at = |text: &str| Ok(text.parse::<SocketAddr>().expect("an address"));
        assert_eq!(parent("192.0.2.7"), at("192.0.2.7:5778"));
        assert_eq!(parent("[2001:db8::7]"), at("[2001:db8::7]:5778"));
        assert_eq!(parent("192.0.2.7:6000"), at("192.0.2.7:6000"));
        assert_eq!(parent("localhost:6000").map(|address| address.port()), Ok(6000));
        for wrong in ["", "239.1.2.3", "0.0.0.0", "192.0.2.7:0", "no such host", "192.0.2.7:http"] {
            assert!(parent(wrong).is_err(), "{wrong}");
        }
        assert_eq!(listen("6000"), at("0.0.0.0:6000"));
        assert_eq!(listen("192.0.2.7"), at("192.0.2.7:5778"));
        assert!(["", "0", "eth0"].iter().all(|wrong| listen(wrong).is_err() && listen_at(wrong).is_err()));
        let places = |text: &str| {
            listen_at(text).expect("a place").0.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(places("6000"), ["0.0.0.0:6000", "[::]:6000"]);
        assert_eq!(places("0.0.0.0:6000"), ["0.0.0.0:6000"]);
        assert_eq!(places("[2001:db8::7]"), ["[2001:db8::7]:5778"]);
        assert_eq!(parent_or_find("find"), at(FIND_GROUP));
        assert_eq!(parent_or_find("find6"), at(FIND_GROUP_V6));
        assert_eq!(parent_or_find("192.0.2.7"), at("192.0.2.7:5778"));
    }

    #[test]
    fn sizes_are_parsed_with_units_and_bounds() {
        assert_eq!(
            (size("64M"), size("1.5G"), size("2000k")),
            (Ok(64_000_000), Ok(1_500_000_000), Ok(2_000_000))
        );
        assert!(["", "M", "64X", "-1M", "10", "9e9T"].iter().all(|wrong| size(wrong).is_err()));
    }
    use faircast::SlowReceiverPolicy;

    #[test]
    fn rate_is_parsed_with_its_units() {
        for (text, bps) in [
            ("10M", 10e6),
            ("1.5G", 1.5e9),
            ("800k", 800e3),
            ("10Mbit/s", 10e6),
            ("10 Mbit/s", 10e6),
            ("250000", 250e3),
            ("2gbps", 2e9),
        ] {
            assert_eq!(rate(text), Ok(Rate::from_bps(bps)), "{text}");
        }
    }

    #[test]
    fn invalid_rate_is_refused_with_a_reason() {
        assert_eq!(rate("fast"), Err(BadValue::NotARate("fast".into())));
        assert_eq!(rate("-5M"), Err(BadValue::NotARate("-5M".into())));
        assert_eq!(rate("1e9"), Err(BadValue::NotARate("1e9".into())));
        assert_eq!(rate("nan"), Err(BadValue::NotARate("nan".into())));
        assert_eq!(rate("10MB/s"), Err(BadValue::Bytes("10MB/s".into())));
        assert_eq!(rate("10"), Err(BadValue::TooSlow(10.0)));
        assert_eq!(rate("0"), Err(BadValue::TooSlow(0.0)));
        assert!(matches!(rate("99999T"), Err(BadValue::TooFast(_))));
    }

    #[test]
    fn duration_is_in_seconds_unless_it_has_a_unit() {
        assert_eq!(span("10"), Ok(Duration::from_secs(10)));
        assert_eq!(span("2.5s"), Ok(Duration::from_millis(2_500)));
        assert_eq!(span("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(span("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(span("0"), Err(BadValue::NoTime));
        assert_eq!(latency("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!((latency("20"), latency("1ms")), (Err(BadValue::Latency), Err(BadValue::Latency)));
        assert_eq!(span("10y"), Err(BadValue::NotATime("10y".into())));
        assert_eq!(span("99999999"), Err(BadValue::TooLong));
    }

    #[test]
    fn group_without_a_port_gets_the_default_port() {
        assert_eq!(group("239.1.2.3"), Ok("239.1.2.3:5777".parse().expect("a literal")));
        assert_eq!(group("ff15::7"), Ok("[ff15::7]:5777".parse().expect("a literal")));
        assert_eq!(group("[ff15::7]"), Ok("[ff15::7]:5777".parse().expect("a literal")));
        assert_eq!(group("[ff15::7]:99"), Ok("[ff15::7]:99".parse().expect("a literal")));
    }

    #[test]
    fn unusable_group_addresses_are_refused_with_a_reason() {
        let host = "192.0.2.7".parse().expect("a literal");
        assert_eq!(group("192.0.2.7:5777"), Err(BadValue::NotMulticast(host)));
        assert_eq!(group("239.1.2.3:0"), Err(BadValue::PortZero));
        assert_eq!(group("239.1.2.3:70000"), Err(BadValue::NotAGroup("239.1.2.3:70000".into())));
        assert!(matches!(group("224.0.0.251:5353"), Err(BadValue::Reserved(_))));
    }

    #[test]
    fn slow_receiver_policy_is_parsed_with_its_rate() {
        assert_eq!(slow("follow"), Ok(SlowReceiverPolicy::Follow));
        assert_eq!(slow("floor:50M"), Ok(SlowReceiverPolicy::Floor(Rate::from_mbps(50.0))));
        assert_eq!(slow("drop:1.5G"), Ok(SlowReceiverPolicy::Drop(Rate::from_mbps(1_500.0))));
        assert_eq!(slow("floor"), Err(BadValue::NotAPolicy("floor".into())));
        assert!(matches!(slow("drop:soon"), Err(BadValue::PolicyRate { policy: "drop", .. })));
    }

    #[test]
    fn unsafe_file_names_and_long_host_names_are_refused() {
        assert_eq!(file_name("disk.img"), Ok("disk.img".into()));
        for bad in ["", ".", "..", "a/b", "a\nb"] {
            assert!(file_name(bad).is_err(), "{bad:?}");
        }
        assert!(host_name(&"x".repeat(64)).is_err());
    }

    #[test]
    fn zero_receivers_and_zero_ttl_are_refused() {
        assert_eq!(receivers("0"), Err(BadValue::NobodyExpected));
        assert_eq!(receivers("4"), Ok(4));
        assert_eq!(ttl("0"), Err(BadValue::TtlZero));
        assert_eq!(ttl("1"), Ok(1));
        assert_eq!(ttl("256"), Err(BadValue::NotATtl("256".into())));
    }

    #[test]
    fn percentage_is_parsed_as_a_fraction() {
        assert_eq!(percent("10%"), Ok(0.1));
        assert_eq!(percent("0"), Ok(0.0));
        for bad in ["101%", "-1", "much", "nan"] {
            assert_eq!(percent(bad), Err(BadValue::NotAPercentage(bad.into())));
        }
    }

    #[test]
    fn layer_output_is_parsed_as_layer_and_path() {
        assert_eq!(layer_to("1=a=b"), Ok((Layer(1), "a=b".into())));
        for bad in ["1", "1=", "=x", "300=x"] {
            assert_eq!(layer_to(bad), Err(BadValue::NotALayer(bad.into())));
        }
    }

    #[test]
    fn limit_of_partial_transfers_is_an_age_a_size_or_both() {
        let (age, bytes) = (Some(Duration::from_secs(7 * 86_400)), Some(40_000_000_000));
        assert_eq!(keep_partial("7d"), Ok(KeepPartial::new(age, None)));
        assert_eq!(keep_partial("40G"), Ok(KeepPartial::new(None, bytes)));
        assert_eq!(keep_partial("7d,40G"), Ok(KeepPartial::new(age, bytes)));
        assert_eq!(keep_partial("40G,7d"), Ok(KeepPartial::new(age, bytes)));
        assert_eq!(keep_partial("all"), Ok(KeepPartial::default()));
        for bad in ["", "7", "7d,", "7d,8d", "40G,1T", "a lot", "-1d", "7x"] {
            assert_eq!(keep_partial(bad), Err(BadValue::NotALimit(bad.to_owned())), "{bad}");
        }
    }
}
