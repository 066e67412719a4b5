//! Routes: refused groups, and the reverse path to a source.

use super::{Check, Verdict};
use faircast_net::Choice;
use std::net::{IpAddr, UdpSocket};
use std::process::Command;

/// Types of routes that reject packets.
const REFUSING: [&str; 3] = ["blackhole", "unreachable", "prohibit"];

/// Returns the type and prefix of a route that rejects the group.
pub fn refusing(group: IpAddr) -> Option<String> {
    let family = if group.is_ipv4() { "-4" } else { "-6" };
    REFUSING.iter().find_map(|kind| {
        let args = [family, "route", "show", "type", kind];
        let out = Command::new("ip").args(args).output().ok().filter(|out| out.status.success())?;
        let text = String::from_utf8(out.stdout).ok()?;
        text.lines().find_map(|line| refused_by(line, kind, group))
    })
}

fn refused_by(line: &str, kind: &str, group: IpAddr) -> Option<String> {
    let prefix = line.split_whitespace().find(|word| *word != kind)?;
    let (address, length) = prefix.split_once('/').unwrap_or((prefix, "128"));
    let covers = match (address.parse().ok()?, group) {
        (IpAddr::V4(prefix), IpAddr::V4(group)) => {
            let mask = u32::MAX.checked_shl(32 - length.parse::<u32>().ok()?.min(32)).unwrap_or(0);
            u32::from(prefix) & mask == u32::from(group) & mask
        }
        (IpAddr::V6(prefix), IpAddr::V6(group)) => {
            let mask = u128::MAX.checked_shl(128 - length.parse::<u32>().ok()?.min(128)).unwrap_or(0);
            u128::from(prefix) & mask == u128::from(group) & mask
        }
        _ => false,
    };
    covers.then(|| format!("{kind} {prefix}"))
}

/// Warns if the route to the group uses an interface without multicast or without a carrier. Programs that name no interface use
/// this route.
pub fn leads_nowhere(group: IpAddr, choice: &Choice) -> Option<Check> {
    let out = Command::new("ip").args(["route", "get", &group.to_string()]).output().ok()?;
    let text = String::from_utf8(out.stdout).ok().filter(|_| out.status.success())?;
    let name = device(&text)?;
    let all = faircast_net::interfaces().ok()?;
    let leads_to = all.iter().find(|interface| interface.name == name)?;
    let why = match (leads_to.multicast || leads_to.loopback, leads_to.connected) {
        (false, _) => "carries no multicast",
        (true, false) => "is not connected",
        (true, true) => return None,
    };
    let chosen = &choice.chosen.name;
    let found =
        format!("the route to {group} uses {name}, which {why}; sessions without --iface use {chosen}");
    Some(Check::new("route", Verdict::Warn, found).advise(format!("ip route replace {group} dev {chosen}")))
}

/// Returns the name of the interface in the output of `ip route get`.
fn device(text: &str) -> Option<&str> {
    text.split_whitespace().skip_while(|word| *word != "dev").nth(1)
}

/// Checks that packets of this source pass the reverse path filter of the group's interface.
pub fn back_to(source: IpAddr, choice: &Choice, is_strict: bool) -> Check {
    let name = &choice.chosen.name;
    let any: IpAddr = if source.is_ipv4() { [0, 0, 0, 0].into() } else { [0; 16].into() };
    let local = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((source, 9))?;
        socket.local_addr()
    });
    let by_this = local.as_ref().is_ok_and(|local| choice.chosen.addrs.contains(&local.ip()));
    let mend = super::host::loosen(name);
    match (by_this, is_strict && source.is_ipv4(), local) {
        (true, ..) => Check::new("return path", Verdict::Ok, format!("{source} is behind {name}")),
        (false, true, Ok(_)) => Check::new(
            "return path",
            Verdict::Fail,
            format!("the route to {source} does not use {name}, whose strict reverse path filter drops the packets of that source"),
        )
        .advise(mend),
        (false, true, Err(error)) => Check::new(
            "return path",
            Verdict::Fail,
            format!("there is no route to {source} ({error}), and the strict reverse path filter of {name} drops its packets"),
        )
        .advise(mend),
        (false, false, Ok(_)) => {
            Check::new("return path", Verdict::Ok, format!("the route to {source} does not use {name}"))
        }
        (false, false, Err(error)) => Check::new(
            "return path",
            Verdict::Fail,
            format!("there is no route to {source} ({error}), so no answers arrive"),
        )
        .advise(format!("ip route add {source} dev {name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_routes_that_block_the_group_are_reported() {
        let group = IpAddr::from([239, 255, 70, 1]);
        let found = |line: &str| refused_by(line, "blackhole", group);
        assert_eq!(found("blackhole 224.0.0.0/4 ").as_deref(), Some("blackhole 224.0.0.0/4"));
        assert_eq!(found("224.0.0.0/4 proto static").as_deref(), Some("blackhole 224.0.0.0/4"));
        assert_eq!(found("blackhole 10.0.0.0/8"), None);
        assert_eq!(found("blackhole default"), None);
    }
}
