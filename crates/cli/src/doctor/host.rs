//! Checks of system settings: memberships, filters, clock and limits.

use super::{Check, Verdict};
use faircast_net::Interface;
use rustix::process::{Resource, getrlimit};
use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Number of file descriptors that a session with many open files needs.
const FILES_WANTED: u64 = 256;
/// 2025-01-01. A clock before this date was never set.
const EARLIEST: u64 = 1_735_689_600;

/// Returns the version of membership reports on the interface, with advice about switches. The address family of `group` selects
/// IGMP or MLD.
pub fn membership(group: IpAddr, interface: Option<&str>) -> Option<Check> {
    let interface = interface?;
    let (name, version) = match group {
        IpAddr::V4(_) => ("IGMP", igmp_version(&fs::read_to_string("/proc/net/igmp").ok()?, interface)?),
        IpAddr::V6(_) => ("MLD", mld_version(interface)),
    };
    let advice = format!(
        "if receivers get only the start of a session, a switch snoops {name} without a querier:\n\
         enable the querier on the switch or router, or switch snooping off"
    );
    let check = match (name, version.as_str()) {
        ("IGMP", "V3") => Check::new("membership", Verdict::Note, "IGMP V3, source filters work"),
        ("MLD", "V2") => {
            let found = "MLD V2, source filters work unless an older querier is present";
            Check::new("membership", Verdict::Note, found)
        }
        (name, version) => {
            let found = format!(
                "{name} {version} has no source filters, so the network does not apply `recv --source`"
            );
            Check::new("membership", Verdict::Warn, found)
        }
    };
    Some(check.advise(advice))
}

/// Returns the configured MLD version. The kernel does not report the version of queriers.
fn mld_version(interface: &str) -> String {
    let forced = fs::read_to_string(format!("/proc/sys/net/ipv6/conf/{interface}/force_mld_version"));
    match forced.as_deref().map(str::trim) {
        Ok("1") => "V1".to_owned(),
        _ => "V2".to_owned(),
    }
}

/// Returns the version of the IGMP querier of an interface from `/proc/net/igmp`.
fn igmp_version(table: &str, interface: &str) -> Option<String> {
    let lines = table.lines().filter(|line| !line.starts_with(char::is_whitespace));
    lines.skip(1).find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        (words.next()?.trim_end_matches(':') == interface).then(|| words.last().map(str::to_owned))?
    })
}

/// Warns about wireless networks, which send multicast slowly.
pub fn wireless(interface: &str) -> Option<Check> {
    let wireless = Path::new("/sys/class/net").join(interface).join("wireless").exists();
    wireless.then(|| {
        Check::new("wireless", Verdict::Warn, format!("{interface} is wireless")).advise(
            "access points send multicast at their lowest rate and never repeat it: expect a few Mbit/s and \
             loss,\nor enable multicast-to-unicast there; a cable is better",
        )
    })
}

/// Whether an interface has a strict reverse path filter.
pub fn is_strict(interface: &str) -> bool {
    let mode = |of: &str| {
        let text = fs::read_to_string(format!("/proc/sys/net/ipv4/conf/{of}/rp_filter")).ok()?;
        text.trim().parse::<u8>().ok()
    };
    // The kernel applies the larger value.
    mode("all").max(mode(interface)) == Some(1)
}

/// Warns about a strict reverse path filter. Such a filter drops packets of a source if the route to the source uses another
/// interface, which is likely on a host with several networks.
pub fn reverse_path(interface: &str) -> Option<Check> {
    if !is_strict(interface) {
        return None;
    }
    let all = faircast_net::interfaces().unwrap_or_default();
    let is_other = |other: &&Interface| {
        other.up && !other.loopback && other.name != interface && other.addrs.iter().any(IpAddr::is_ipv4)
    };
    let others: Vec<&str> = all.iter().filter(is_other).map(|other| other.name.as_str()).collect();
    let found = format!("{interface} has a strict reverse path filter");
    Some(match others.is_empty() {
        true => Check::new("filter", Verdict::Note, format!("{found}, and this host has no other network"))
            .advise("--source ADDRESS checks a source behind a router"),
        false => {
            let found =
                format!("{found}: it drops packets of sources that are routed by {}", others.join(", "));
            Check::new("filter", Verdict::Warn, found).advise(loosen(interface))
        }
    })
}

/// Returns a command that sets the reverse path filter of an interface to loose.
pub fn loosen(interface: &str) -> String {
    format!("sysctl -w net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.{interface}.rp_filter=2")
}

/// Checks that the clock was set. Only receivers without feedback depend on the clock.
pub fn clock() -> Check {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs()).unwrap_or(0);
    clock_at(now)
}

/// Checks a clock that shows this number of seconds since 1970.
fn clock_at(unix_secs: u64) -> Check {
    if unix_secs < EARLIEST {
        return Check::new(
            "clock",
            Verdict::Note,
            "the clock was never set; only `recv --one-way` and file times need it",
        )
        .advise("timedatectl set-ntp true\nor date -u -s TIME; --with HOST compares two clocks");
    }
    Check::new("clock", Verdict::Ok, "it is set; --with HOST compares two clocks")
}

/// Checks the limit of open files.
pub fn open_files() -> Check {
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < FILES_WANTED => {
            let found = format!("at most {limit} files may be open, but {FILES_WANTED} are needed");
            Check::new("files", Verdict::Warn, found).advise(format!("ulimit -n {FILES_WANTED}"))
        }
        Some(limit) => Check::new("files", Verdict::Ok, format!("{limit} files may be open")),
        None => Check::new("files", Verdict::Ok, "any number of files may be open"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n\
                         1\tlo        :     1      V3\n\t\t\t\t010000E0     1 0:00000000\t\t0\n\
                         4\teth0      :     1      V2\n\t\t\t\t010000E0     1 0:00000000\t\t0\n";

    #[test]
    fn unset_clock_is_reported_as_a_note() {
        assert_eq!(clock_at(0).verdict, Verdict::Note);
        assert_eq!(clock_at(EARLIEST).verdict, Verdict::Ok);
    }

    #[test]
    fn igmp_version_of_an_interface_is_found() {
        assert_eq!(igmp_version(TABLE, "lo").as_deref(), Some("V3"));
        assert_eq!(igmp_version(TABLE, "eth0").as_deref(), Some("V2"));
        assert_eq!(igmp_version(TABLE, "eth1"), None);
    }
}
