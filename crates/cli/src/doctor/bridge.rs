//! Multicast on the bridges of this host.

use super::{Check, Verdict};
use std::fs;
use std::path::{Path, PathBuf};

/// Checks that a bridge with multicast snooping has a querier. `interface` is the bridge or one of its ports.
pub fn snooping(interface: &str) -> Option<Check> {
    judged(Path::new("/sys/class/net"), interface)
}

fn judged(class: &Path, interface: &str) -> Option<Check> {
    let own = class.join(interface);
    let bridge: PathBuf = match own.join("bridge").is_dir() {
        true => own,
        false => fs::canonicalize(own.join("master")).ok().filter(|master| master.join("bridge").is_dir())?,
    };
    let name = bridge.file_name()?.to_string_lossy().into_owned();
    let number = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let option = |option: &str| number(bridge.join("bridge").join(option)).unwrap_or(0);
    if option("multicast_snooping") == 0 {
        return Some(Check::new("bridge", Verdict::Ok, format!("{name} does not snoop")));
    }
    if option("multicast_querier") != 0 {
        return Some(Check::new("bridge", Verdict::Ok, format!("{name} snoops and queries members")));
    }
    // Without a querier, a bridge forwards multicast to every port that has `multicast_flood` set.
    let ports = fs::read_dir(bridge.join("brif")).into_iter().flatten().flatten();
    let held_back = ports.filter(|port| number(port.path().join("multicast_flood")) == Some(0)).count();
    let (verdict, found) = match held_back {
        0 => (
            Verdict::Warn,
            "it floods all multicast as long as no host sends queries, and drops multicast when memberships expire".to_owned(),
        ),
        ports => (Verdict::Fail, format!("it does not forward multicast through {ports} of its ports")),
    };
    let found = format!("{name} snoops IGMP and has no querier: {found}");
    let advice = format!(
        "ip link set {name} type bridge mcast_querier 1\nor ip link set {name} type bridge mcast_snooping 0"
    );
    Some(Check::new("bridge", verdict, found).advise(advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bridge(snooping: u8, querier: u8, flood: u8) -> Option<(Verdict, String)> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (class, at) = (directory.path(), directory.path().join("br0"));
        for made in ["bridge", "brif/p1", "brif/p2"] {
            fs::create_dir_all(at.join(made)).expect("made");
        }
        let write = |name: &str, value: u8| fs::write(at.join(name), format!("{value}\n")).expect("written");
        write("bridge/multicast_snooping", snooping);
        write("bridge/multicast_querier", querier);
        write("brif/p1/multicast_flood", 1);
        write("brif/p2/multicast_flood", flood);
        fs::create_dir(class.join("eth0")).expect("made");
        std::os::unix::fs::symlink("../br0", class.join("eth0/master")).expect("linked");
        let found = judged(class, "br0").map(|check| (check.verdict, check.found));
        assert_eq!(judged(class, "eth0").map(|check| (check.verdict, check.found)), found, "by its port");
        assert_eq!(judged(class, "lo"), None);
        found
    }

    #[test]
    fn bridge_with_snooping_but_without_a_querier_is_reported() {
        let verdict = |snooping, querier, flood| bridge(snooping, querier, flood).expect("it is a bridge").0;
        assert_eq!(verdict(0, 0, 1), Verdict::Ok);
        assert_eq!(verdict(1, 1, 1), Verdict::Ok);
        assert_eq!(verdict(1, 0, 1), Verdict::Warn);
        assert_eq!(verdict(1, 0, 0), Verdict::Fail);
    }
}
