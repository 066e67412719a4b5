//! The kernel's own multicast forwarding beside a hop: while the hop passes a session on, the kernel does not, and when the hop is gone, for
//! whatever reason, it does again.
//!
//! Where a routing daemon (`smcrouted`, `pimd`) has set the kernel up to forward groups, receivers would hear a session twice. A table of
//! nftables drops the copies that the kernel would make. It belongs to a process (`flags owner`), so it goes when that ends, killed or
//! not: what is left is what was there before.

use faircast::Forwarding;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Interfaces between which the kernel forwards multicast, if it does: one line for each, below a head.
const FORWARDING: [&str; 2] = ["/proc/net/ip_mr_vif", "/proc/net/ip6_mr_vif"];

/// The table is there within this.
const MADE_WITHIN: Duration = Duration::from_secs(2);

/// Stops the kernel's forwarding by nftables.
#[derive(Debug, Default)]
pub(super) struct Nftables {
    /// Tables that were made: each has a number of its own.
    made: AtomicU64,
}

/// Keeps the kernel from forwarding one session by some interfaces, until it is dropped or this process ends.
#[derive(Debug)]
struct Guard(Child);

/// Why the kernel could not be kept from it.
#[derive(Debug, thiserror::Error)]
enum GuardError {
    /// There is no nftables.
    #[error(
        "the kernel of this host forwards multicast as well, so receivers may receive the session twice; to stop that nft is needed: {0} \
         (Debian: apt install nftables)"
    )]
    NoNft(std::io::Error),
    /// It did not do it.
    #[error(
        "the kernel of this host forwards multicast as well, so receivers may receive the session twice; nft could not stop that: it needs \
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
    /// Keep the kernel from forwarding what comes from `source` to `group` by these interfaces.
    ///
    /// # Errors
    /// When there is no nftables, or it refuses.
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
        // From now on it is ended when this is dropped.
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
        // It ends when nobody can write to it any more; that it is waited for leaves no trace of it.
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

/// The commands for nft.
fn rules(table: &str, source: SocketAddr, group: SocketAddr, exits: &[String]) -> String {
    let family = if group.is_ipv4() { "ip" } else { "ip6" };
    let mut text = format!(
        "add table inet {table} {{ flags owner; }}\n\
         add chain inet {table} forward {{ type filter hook forward priority 0; policy accept; }}\n"
    );
    for exit in exits {
        // A name of an interface has no quotation marks where nft would take one; what has is left alone.
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
    fn rules_stop_only_one_session_at_the_branches() {
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
