//! State of the loaded programs and of their groups, as text and JSON.

use crate::layout::{Group, GroupKey, Which};
use crate::{CocoonError, Loaded, Place};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt;

/// Departures from the paper that are necessary because of the limits of kernel programs.
// Paper gap: cuts reach other members at their next acknowledgement, not at once: a program may not write another socket.
// Paper gap: when a member times out, others do not retransmit their first unacknowledged packet: no program may retransmit.
// Paper gap: members keep their own retransmission timers: the group's round trip is measured but cannot set them.
// Paper gap: a group without an active member gives a new connection the kernel's initial window (RFC 6928), not one packet.
// Paper gap: a connection to a host that is new begins in its prefix's group; which measured group it belongs to is known after 50 ms.
// Paper gap: only the first 128 members of a group serve as reference and count in the mean window.
pub const DEPARTURES: [(&str, &str); 6] = [
    (
        "cuts",
        "reach the other members at their next acknowledgement, and are forgotten after two round trips",
    ),
    ("timeouts", "other members do not retransmit their first unacknowledged packet, because no program may retransmit"),
    ("timers", "members keep their own retransmission timers; the group's round-trip time is only displayed"),
    ("first connection", "begins with the kernel's initial window (RFC 6928) instead of one packet"),
    (
        "groups",
        "are prefixes in one network namespace; `faircast-cocoon group` merges and splits them according to its measurements, 50 ms later",
    ),
    ("large groups", "only the first 128 members are references for new connections and count in the mean window"),
];

/// State of the loaded programs at one moment.
#[derive(Debug, Serialize)]
pub struct Status {
    /// Name of the congestion control.
    pub name: String,
    /// Prefix length by which IPv4 destinations are grouped, bits.
    pub prefix4: u32,
    /// Prefix length by which IPv6 destinations are grouped, bits.
    pub prefix6: u32,
    /// Whether members are cut when another member has a loss.
    pub coordinate: bool,
    /// Whether a new connection takes its starting window from a reference member.
    pub share_start: bool,
    /// Whether the windows of all members of a group together are limited after a cut.
    pub group_limit: bool,
    /// Whether a member halves its own window when it loses a packet that it sent before the latest cut.
    pub cut_below: bool,
    /// Minimum starting window of a new connection with a reference member, packets.
    pub min_start: u32,
    /// Number of started connections.
    pub connections_begun: u64,
    /// Number of ended connections.
    pub connections_ended: u64,
    /// Number of connections that found the table of groups full and run as uncoordinated NewReno.
    pub ungrouped: u64,
    /// Number of idle groups removed to make room.
    pub groups_evicted: u64,
    /// Number of hook calls that found a congestion window of zero and raised it to 1. Please report any value other than 0.
    pub zero_windows: u64,
    /// The groups, in the order of their prefixes.
    pub groups: Vec<GroupStatus>,
    /// Departures from the paper.
    pub departures: BTreeMap<&'static str, &'static str>,
}

/// State of one group.
#[derive(Debug, Serialize)]
pub struct GroupStatus {
    /// Destination prefix, as `10.0.0.0/24`, or the number of a measured group, as `measured 7`.
    pub prefix: String,
    /// Hosts of a measured group.
    pub hosts: Vec<String>,
    /// Name of the network namespace, or its inode number if it has no name.
    pub netns: String,
    /// Number of members: started minus ended connections. Under overload the number may become wrong.
    pub members: u32,
    /// Number of members with a slot that have data in flight or to send.
    pub active: usize,
    /// Smoothed round-trip time, ms; `null` before the first sample.
    pub rtt_ms: Option<f64>,
    /// Variation of the round-trip time, ms.
    pub rttvar_ms: Option<f64>,
    /// Windows of the members with a slot, packets, in ascending order.
    pub windows: Vec<u32>,
    /// Mean of the windows, packets.
    pub mean_window: Option<f64>,
    /// Number of bytes acknowledged to all members.
    pub acked_bytes: u64,
    /// Number of losses without timeout that cut the group.
    pub losses: u64,
    /// Number of timeouts that cut the group.
    pub timeouts: u64,
    /// Number of losses and timeouts of packets sent before the latest cut. They cut no member.
    pub ignored: u64,
    /// Number of coordinated cuts that other members applied.
    pub coordinated_cuts: u64,
    /// Number of coordinated cuts that came too late to be applied.
    pub expired_cuts: u64,
    /// Number of connections that took their starting window from a reference member.
    pub shared_starts: u64,
    /// Number of connections that started without a reference member.
    pub alone_starts: u64,
    /// Number of acknowledgements at which the limit of the group reduced a window.
    pub limited: u64,
}

impl Status {
    /// Reads the status.
    ///
    /// # Errors
    /// Fails if no congestion control is loaded, or if another version of this program loaded it.
    pub fn read(place: &Place) -> Result<Self, CocoonError> {
        let loaded = Loaded::find(place)?;
        let (settings, totals) = (*loaded.settings(), loaded.totals()?);
        let names = namespaces();
        let (groups, assigned) = (loaded.groups(), loaded.assigned());
        Ok(Self {
            name: place.name().to_owned(),
            prefix4: settings.prefix4,
            prefix6: settings.prefix6,
            coordinate: settings.coordinate,
            share_start: settings.share_start,
            group_limit: settings.group_limit,
            cut_below: settings.cut_below,
            min_start: settings.min_start,
            connections_begun: totals.begun,
            connections_ended: totals.ended,
            ungrouped: totals.ungrouped,
            groups_evicted: totals.evicted,
            zero_windows: totals.zero,
            groups: groups
                .iter()
                .map(|(key, group)| GroupStatus::of(key, group, &names, &assigned))
                .collect(),
            departures: DEPARTURES.into(),
        })
    }
}

impl GroupStatus {
    fn of(
        key: &GroupKey,
        group: &Group,
        names: &BTreeMap<u32, String>,
        assigned: &[(GroupKey, u32)],
    ) -> Self {
        let measured = group.srtt_us != 0;
        let mut windows: Vec<u32> = group.slots.iter().map(|slot| slot.cwnd).collect();
        windows.sort_unstable();
        Self {
            prefix: key.which.to_string(),
            hosts: assigned
                .iter()
                .filter(|(atom, number)| atom.netns == key.netns && Which::Measured(*number) == key.which)
                .filter_map(|(atom, _)| match atom.which {
                    Which::Prefix(address, _) => Some(address.to_string()),
                    Which::Measured(_) => None,
                })
                .collect(),
            netns: names.get(&key.netns).cloned().unwrap_or_else(|| key.netns.to_string()),
            members: group.members,
            active: group.slots.iter().filter(|slot| slot.active).count(),
            rtt_ms: measured.then(|| f64::from(group.srtt_us) / 1000.0),
            rttvar_ms: measured.then(|| f64::from(group.rttvar_us) / 1000.0),
            mean_window: group.mean_cwnd(),
            windows,
            acked_bytes: group.acked,
            losses: group.losses,
            timeouts: group.timeouts,
            ignored: group.ignored,
            coordinated_cuts: group.applied,
            expired_cuts: group.expired,
            shared_starts: group.shared,
            alone_starts: group.alone,
            limited: group.limited,
        }
    }
}

/// Returns the names of network namespaces by inode number, from the directory of `ip netns`.
fn namespaces() -> BTreeMap<u32, String> {
    let mut names = BTreeMap::new();
    for entry in std::fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        if let Some(inode) =
            std::fs::metadata(entry.path()).ok().and_then(|found| found.ino().try_into().ok())
        {
            names.insert(inode, entry.file_name().to_string_lossy().into_owned());
        }
    }
    names
}

/// Returns the status as text for users.
#[must_use]
pub fn text(status: &Status) -> String {
    let mut out = String::new();
    let switch = |on| if on { "on" } else { "off" };
    let _ = writeln!(
        out,
        "{}: loaded; groups by /{} and /{}; coordinated cuts {}, shared start {} (at least {} packets), \
         limit of a group {}, cuts for losses from before the latest cut {}",
        status.name,
        status.prefix4,
        status.prefix6,
        switch(status.coordinate),
        switch(status.share_start),
        status.min_start,
        switch(status.group_limit),
        switch(status.cut_below),
    );
    let _ = writeln!(
        out,
        "connections: {} started, {} ended, {} without group; {} windows of zero raised to one packet",
        status.connections_begun, status.connections_ended, status.ungrouped, status.zero_windows,
    );
    for group in &status.groups {
        let rtt = match (group.rtt_ms, group.rttvar_ms) {
            (Some(rtt), Some(var)) => format!("{rtt:.1} ms +- {var:.1}"),
            _ => "no round-trip time yet".into(),
        };
        let windows = match (group.windows.first(), group.mean_window, group.windows.last()) {
            (Some(least), Some(mean), Some(most)) => {
                format!("windows {least}..{most}, mean {mean:.1} packets")
            }
            _ => "no windows".into(),
        };
        let _ = writeln!(
            out,
            "{} in namespace {}: {} members, {} active; {rtt}; {windows}",
            group.prefix, group.netns, group.members, group.active,
        );
        if !group.hosts.is_empty() {
            let _ = writeln!(out, "  hosts: {}", group.hosts.join(", "));
        }
        let _ = writeln!(
            out,
            "  cuts: {} by losses, {} by timeouts; {} losses or timeouts ignored; {} cuts applied by other members, {} expired; starts: {} shared, {} alone; {} windows reduced by the limit of the group",
            group.losses,
            group.timeouts,
            group.ignored,
            group.coordinated_cuts,
            group.expired_cuts,
            group.shared_starts,
            group.alone_starts,
            group.limited,
        );
    }
    let _ = writeln!(out, "departures from paper 002, chapter 4:");
    for (what, how) in &status.departures {
        let _ = writeln!(out, "  {what}: {how}");
    }
    out
}
