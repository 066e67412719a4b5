//! Suspends the kernel's multicast forwarding for the sessions that an active router forwards. Forwarding resumes when the router
//! ends for any reason.
//!
//! If a routing daemon (`smcrouted`, `pimd`) has configured the kernel to forward groups, receivers would receive a session
//! twice. A table of nftables drops the packets that the kernel would forward. The table belongs to a process (`flags owner`), so
//! that the kernel removes the table when this process ends, even if the process is killed.

use faircast::Forwarding;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Files that list the interfaces between which the kernel forwards multicast: one interface per line, below a header.
const FORWARDING: [&str; 2] = ["/proc/net/ip_mr_vif", "/proc/net/ip6_mr_vif"];

/// Time limit for the table to appear.
const MADE_WITHIN: Duration = Duration::from_secs(2);

/// Uses nftables to suspend the kernel's multicast forwarding.
#[derive(Debug, Default)]
pub(super) struct Nftables {
    /// Number of tables created so far. The next table's name contains this number.
    made: AtomicU64,
}

/// Suspends the kernel's forwarding of one session through some interfaces, until this value is dropped or this process ends.
#[derive(Debug)]
struct Guard(Child);

/// Reason why the kernel's forwarding could not be suspended.
#[derive(Debug, thiserror::Error)]
enum GuardError {
    /// nftables is not installed.
    #[error(
        "the kernel of this host forwards multicast as well, so receivers may receive the session twice; install nftables to suspend this forwarding: {0} \
         (Debian: apt install nftables)"
    )]
    NoNft(std::io::Error),
    /// nftables failed.
    #[error(
        "the kernel of this host forwards multicast as well, so receivers may receive the session twice; nft could not suspend this forwarding: nft needs \
         Linux 5.12 or newer, and the right to change the network (CAP_NET_ADMIN)"
    )]
    Refused,
}

impl Forwarding for Nftables {
    fn stop(
        &self,
        source: SocketAddr,
        group: SocketAddr,
        interfaces: &[String],
    ) -> Result<Option<Box<dyn Send>>, String> {
        let forwards = |file: &&str| fs::read_to_string(file).is_ok_and(|text| text.lines().count() > 1);
        if !FORWARDING.iter().any(forwards) {
            return Ok(None);
        }
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        match Guard::new(source, group, interfaces, number) {
            Ok(guard) => Ok(Some(Box::new(guard))),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Guard {
    /// Suspends forwarding of packets from `source` to `group`. `exits` contains the names of the outgoing interfaces.
    ///
    /// # Errors
    /// When nftables is missing or fails.
    fn new(
        source: SocketAddr,
        group: SocketAddr,
        exits: &[String],
        number: u64,
    ) -> Result<Guard, GuardError> {
        let table = format!("faircast_{}_{number}", std::process::id());
        let mut nft = Command::new("nft")
            .arg("-i")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(GuardError::NoNft)?;
        let written = nft.stdin.as_mut().map(|stdin| {
            stdin.write_all(rules(&table, source, group, exits).as_bytes()).and_then(|()| stdin.flush())
        });
        // From here on, dropping the guard ends `nft`.
        let guard = Guard(nft);
        if !matches!(written, Some(Ok(()))) {
            return Err(GuardError::Refused);
        }
        let until = Instant::now() + MADE_WITHIN;
        while !is_there(&table) {
            if Instant::now() >= until {
                return Err(GuardError::Refused);
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(guard)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // `nft` ends when its standard input is closed. The following wait for this end prevents a zombie process.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn is_there(table: &str) -> bool {
    let list = Command::new("nft")
        .args(["list", "chain", "inet", table, "forward"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .output();
    list.is_ok_and(|out| out.status.success() && String::from_utf8_lossy(&out.stdout).contains("drop"))
}

/// Returns the commands for nft.
fn rules(table: &str, source: SocketAddr, group: SocketAddr, exits: &[String]) -> String {
    let family = if group.is_ipv4() { "ip" } else { "ip6" };
    let mut text = format!(
        "add table inet {table} {{ flags owner; }}\n\
         add chain inet {table} forward {{ type filter hook forward priority 0; policy accept; }}\n"
    );
    for exit in exits {
        // nft cannot quote a name that contains quotation marks. An interface with such a name gets no rule.
        if exit.chars().all(|c| c.is_ascii_graphic() && c != '"') {
            let _ = writeln!(
                text,
                "add rule inet {table} forward {family} saddr {} {family} daddr {} udp sport {} udp dport {} oifname \"{exit}\" drop",
                source.ip(),
                group.ip(),
                source.port(),
                group.port()
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nftables_rule_blocks_only_one_session_at_the_branches() {
        let (source, group) = ("10.1.0.1:4000", "239.255.70.1:5777");
        let exits = ["eth1".to_owned(), "a\" drop".to_owned()];
        let text = rules("t", source.parse().expect("an address"), group.parse().expect("a group"), &exits);
        assert_eq!(text.matches("add rule").count(), 1, "{text}");
        let rule =
            "ip saddr 10.1.0.1 ip daddr 239.255.70.1 udp sport 4000 udp dport 5777 oifname \"eth1\" drop";
        assert!(text.contains(rule) && text.contains("flags owner"), "{text}");
        let (source, group) = ("[fd77::1]:4000", "[ff15::1]:5777");
        let text =
            rules("t", source.parse().expect("an address"), group.parse().expect("a group"), &exits[..1]);
        assert!(text.contains("ip6 saddr fd77::1 ip6 daddr ff15::1"), "{text}");
    }
}
