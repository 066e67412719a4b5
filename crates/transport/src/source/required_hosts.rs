//! Required hosts, by name or address, that have not joined yet.

use super::refusals::Refusals;
use crate::config::RequiredHost;
use std::net::IpAddr;

/// Maximum number of hosts named in a line.
const NAMED: usize = 8;

/// Absent required hosts.
#[derive(Debug, Default)]
pub(super) struct RequiredHosts {
    absent: Vec<RequiredHost>,
}

impl RequiredHosts {
    pub(super) fn new(required: Vec<RequiredHost>) -> RequiredHosts {
        RequiredHosts { absent: required }
    }

    /// Removes a receiver that has joined.
    pub(super) fn on_joined(&mut self, host: &str, address: IpAddr) {
        self.absent.retain(|required| !required.is(host, address));
    }

    /// Returns the absent hosts.
    pub(super) fn absent(&self) -> &[RequiredHost] {
        &self.absent
    }

    /// Returns the names of some absent hosts, with the reason of each refusal; `None` when all hosts have joined.
    pub(super) fn named(&self, refusals: &Refusals) -> Option<String> {
        let name = |required: &RequiredHost| match refusals.of(required) {
            Some(refused) => format!("{required} ({})", refused.reason),
            None => required.to_string(),
        };
        let names: Vec<String> = self.absent.iter().take(NAMED).map(name).collect();
        let more = self.absent.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!names.is_empty()).then(|| format!("{}{more}", names.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absent_hosts_are_listed_and_at_most_eight_are_named() {
        let mut roll = RequiredHosts::new(
            (0..20).map(|number| RequiredHost::new(&format!("lab-{number:02}"))).collect(),
        );
        let address = IpAddr::from([192, 0, 2, 1]);
        for number in 0..11 {
            roll.on_joined(&format!("LAB-{number:02}.example.org"), address);
        }
        assert_eq!(roll.absent().len(), 9);
        let named = roll.named(&Refusals::default()).expect("nine are absent");
        assert!(named.starts_with("lab-11, lab-12") && named.ends_with("lab-18 and 1 more"), "{named}");
        (0..20).for_each(|number| roll.on_joined(&format!("lab-{number:02}"), address));
        assert_eq!(roll.named(&Refusals::default()), None);
    }
}
