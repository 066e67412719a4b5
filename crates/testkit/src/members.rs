//! Joins and leaves of multicast groups, as the router of a lab receives them: IGMP (RFC 3376) and MLD (RFC 3810).

use crate::error::KitError;
use crate::task::{enter, open_namespace};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::fs::File;
use std::mem::{size_of, size_of_val};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A receiver's change of membership in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// The receiver became a member.
    Joined,
    /// The receiver stopped being a member.
    Left,
}

/// A receiver's join or leave of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Time since the start of the watch.
    pub at: Duration,
    /// The receiver, counted from 0.
    pub receiver: usize,
    /// The group.
    pub group: IpAddr,
    /// The kind of change: join or leave.
    pub what: Membership,
}

/// Records the membership reports that a lab's receivers send to the router, except for reports of link-local groups. The
/// recording thread ends when this value is dropped.
#[derive(Debug)]
pub struct MemberWatch {
    stop: Arc<AtomicBool>,
    received: Arc<Mutex<Vec<Change>>>,
    thread: Option<JoinHandle<Result<(), KitError>>>,
}

impl MemberWatch {
    /// Starts to record the membership reports that arrive at `ports`: the ports of the receivers, in the order of the receivers.
    /// Returns after the recording has begun, so that no later report is missed.
    pub(crate) fn start(bridge: &str, ports: Vec<String>) -> Result<MemberWatch, KitError> {
        let namespace = open_namespace(&Path::new("/run/netns").join(bridge))?;
        let (stop, received) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (stopped, into) = (Arc::clone(&stop), Arc::clone(&received));
        let (first, begun) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let ready = enter(&namespace).and_then(|()| tap());
            let ready = ready.map_err(KitError::system("listen for IGMP at the bridge"));
            let begin = Instant::now();
            let tap = ready?;
            // The send fails only if the `MemberWatch` was dropped.
            let _ = first.send(());
            let mut members = Members::default();
            while !stopped.load(Ordering::Relaxed) {
                let mut frame = [0; 9000];
                let Some((length, port)) = receive(&tap, &mut frame)? else { continue };
                let Some(receiver) = ports.iter().position(|name| *name == port) else { continue };
                for record in records(&frame[..length]).into_iter().filter(|record| is_routed(record.group)) {
                    if let Some(what) = members.on_record(receiver, &record) {
                        let change = Change { at: begin.elapsed(), receiver, group: record.group, what };
                        into.lock().unwrap_or_else(PoisonError::into_inner).push(change);
                    }
                }
            }
            Ok(())
        });
        let watch = MemberWatch { stop, received, thread: Some(thread) };
        match begun.recv() {
            Ok(()) => Ok(watch),
            // The thread has closed the channel because it could not receive frames. `stop` returns the reason.
            Err(_) => watch.stop().map(|_| unreachable!("a watch that began has sent its first word")),
        }
    }

    /// Returns the changes since the start of the recording. An earlier membership counts as a join when the receiver next
    /// reports it.
    pub fn changes(&self) -> Vec<Change> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the number of times that a receiver has joined or left a group.
    pub fn count(&self, receiver: usize, what: Membership) -> usize {
        self.changes().iter().filter(|change| change.receiver == receiver && change.what == what).count()
    }

    /// Stops the watch and returns the changes.
    ///
    /// # Errors
    /// Fails if the watch could not receive.
    pub fn stop(mut self) -> Result<Vec<Change>, KitError> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("it is taken only here and on drop");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(self.changes())
    }
}

impl Drop for MemberWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The error is ignored because the watch is dropped.
            let _ = thread.join();
        }
    }
}

/// Returns whether routers forward a group. Link-local groups are not forwarded, for example those of IPv6 neighbour discovery
/// (RFC 5771, 4; RFC 4291, 2.7).
pub(crate) fn is_routed(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group.octets()[..3] != [224, 0, 0],
        IpAddr::V6(group) => group.octets()[1] & 0x0f > 2,
    }
}

/// A record of a report about one group (RFC 3376, 4.2.12).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Record {
    group: IpAddr,
    record_type: RecordType,
    sources: Vec<IpAddr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordType {
    /// The receiver requests only these sources.
    Include,
    /// The receiver requests all sources except these.
    Exclude,
    /// The receiver also requests these sources.
    Allow,
    /// The receiver stops requesting these sources.
    Block,
}

/// Memberships by receiver and group. The value is the set of requested sources, or `None` if the receiver requests all sources
/// except for excluded ones.
#[derive(Debug, Default)]
struct Members(BTreeMap<(usize, IpAddr), Option<BTreeSet<IpAddr>>>);

impl Members {
    /// Processes a record of a report. Most records change no membership, because hosts send each report twice and repeat it
    /// after each query.
    fn on_record(&mut self, receiver: usize, record: &Record) -> Option<Membership> {
        let key = (receiver, record.group);
        let before = self.0.remove(&key);
        let was = before.is_some();
        let named = record.sources.iter().copied();
        let after = match (record.record_type, before) {
            (RecordType::Exclude, _) | (RecordType::Allow, Some(None)) => Some(None),
            (RecordType::Include, _) => Some(Some(named.collect::<BTreeSet<_>>())),
            (RecordType::Allow, before) => {
                Some(Some(before.flatten().unwrap_or_default().into_iter().chain(named).collect()))
            }
            // The receiver excludes one more source and is still a member.
            (RecordType::Block, Some(None)) => Some(None),
            (RecordType::Block, before) => {
                let mut sources = before.flatten().unwrap_or_default();
                sources.retain(|source| !record.sources.contains(source));
                Some(Some(sources))
            }
        };
        let after = after.filter(|sources| sources.as_ref().is_none_or(|sources| !sources.is_empty()));
        let is = after.is_some();
        if let Some(sources) = after {
            self.0.insert(key, sources);
        }
        match (was, is) {
            (false, true) => Some(Membership::Joined),
            (true, false) => Some(Membership::Left),
            _ => None,
        }
    }
}

const ETHERNET: usize = 14;
const IPV6: usize = 40;

/// Returns the records of a frame. The list is empty if the frame is truncated or not a report.
fn records(frame: &[u8]) -> Vec<Record> {
    match frame.get(12..ETHERNET) {
        Some([0x08, 0x00]) => {
            let header = usize::from(frame.get(ETHERNET).unwrap_or(&0) & 15) * 4;
            report::<4>(frame.get(ETHERNET + header..).unwrap_or_default(), [0x22, 0x12, 0x16, 0x17], 4)
        }
        Some([0x86, 0xdd]) => {
            let options = usize::from(*frame.get(ETHERNET + IPV6 + 1).unwrap_or(&0)) * 8 + 8;
            let body = frame.get(ETHERNET + IPV6 + options..).unwrap_or_default();
            report::<16>(body, [143, 131, 131, 132], 8)
        }
        _ => Vec::new(),
    }
}

/// Returns the records of a report with addresses of `N` bytes. `types` has the message types of the newest report, two older
/// reports and an older leave. `group` is the offset of the group in older messages.
fn report<const N: usize>(body: &[u8], types: [u8; 4], group: usize) -> Vec<Record> {
    let [newest, oldest, older, leave] = types;
    let record_type = match body.first() {
        Some(kind) if *kind == newest => return newest_report::<N>(body).unwrap_or_default(),
        Some(kind) if [oldest, older].contains(kind) => RecordType::Exclude,
        Some(kind) if *kind == leave => RecordType::Include,
        _ => return Vec::new(),
    };
    let group = body.get(group..).and_then(address::<N>);
    group.map(|group| Record { group, record_type, sources: Vec::new() }).into_iter().collect()
}

/// Returns the records of a report of IGMPv3 or MLDv2. These formats differ only in the length of addresses.
fn newest_report<const N: usize>(body: &[u8]) -> Option<Vec<Record>> {
    let count = u16::from_be_bytes(body.get(6..8)?.try_into().ok()?);
    let mut at = 8;
    let mut all = Vec::new();
    for _ in 0..count {
        let &[kind, extra, high, low] = body.get(at..at + 4)? else { return None };
        let sources = usize::from(u16::from_be_bytes([high, low]));
        let nth = |n: usize| body.get(at + 4 + n * N..).and_then(address::<N>);
        let record_type = match kind {
            1 | 3 => RecordType::Include,
            2 | 4 => RecordType::Exclude,
            5 => RecordType::Allow,
            6 => RecordType::Block,
            _ => return None,
        };
        let named = (1..=sources).map(nth).collect::<Option<Vec<_>>>()?;
        all.push(Record { group: nth(0)?, record_type, sources: named });
        at += 4 + (sources + 1) * N + usize::from(extra) * 4;
    }
    Some(all)
}

fn address<const N: usize>(bytes: &[u8]) -> Option<IpAddr> {
    let bytes = bytes.get(..N)?;
    match N {
        4 => <[u8; 4]>::try_from(bytes).ok().map(|four| Ipv4Addr::from(four).into()),
        _ => <[u8; 16]>::try_from(bytes).ok().map(|sixteen| Ipv6Addr::from(sixteen).into()),
    }
}

/// A socket filter that accepts IGMP over IPv4, and IPv6 packets that begin with hop-by-hop options, as MLD packets do. The
/// kernel drops all other packets, most of which are data packets.
const WANTED: [libc::sock_filter; 9] = {
    const fn step(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
        libc::sock_filter { code, jt, jf, k }
    }
    [
        step(0x28, 0, 0, 12),
        step(0x15, 0, 2, 0x0800),
        step(0x30, 0, 0, 23),
        step(0x15, 3, 4, 2),
        step(0x15, 0, 3, 0x86dd),
        step(0x30, 0, 0, 20),
        step(0x15, 0, 1, 0),
        step(0x06, 0, 0, 0xffff),
        step(0x06, 0, 0, 0),
    ]
};

/// Opens a socket that receives the frames on all interfaces of the calling thread's namespace, as far as [`WANTED`] accepts
/// them.
fn tap() -> std::io::Result<File> {
    // All protocols, in network byte order. With this value, the kernel passes the frames at a port of a bridge to the socket
    // before the bridge processes them.
    let all = u16::try_from(libc::ETH_P_ALL).expect("it is 3").to_be();
    // SAFETY: the call returns a new descriptor or -1.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, i32::from(all)) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and has no other owner.
    let tap = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    let mut steps = WANTED;
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    set(&tap, libc::SO_ATTACH_FILTER, &program)?;
    set(&tap, libc::SO_RCVTIMEO, &libc::timeval { tv_sec: 0, tv_usec: 20_000 })?;
    Ok(tap)
}

fn set<T>(tap: &File, option: libc::c_int, value: &T) -> std::io::Result<()> {
    let length = libc::socklen_t::try_from(size_of::<T>()).expect("options are small");
    // SAFETY: the value outlives the call, and `length` is its size. The kernel copies the socket filter.
    let done = unsafe {
        libc::setsockopt(tap.as_raw_fd(), libc::SOL_SOCKET, option, std::ptr::from_ref(value).cast(), length)
    };
    if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Returns the length of the next received frame and the name of its interface. Returns `None` after the receive timeout.
fn receive(tap: &File, frame: &mut [u8]) -> Result<Option<(usize, String)>, KitError> {
    // SAFETY: all zeros is a valid address.
    let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut length = libc::socklen_t::try_from(size_of_val(&from)).expect("addresses are small");
    // SAFETY: the buffer and the address outlive the call, and their lengths are correct.
    let got = unsafe {
        libc::recvfrom(
            tap.as_raw_fd(),
            frame.as_mut_ptr().cast(),
            frame.len(),
            0,
            std::ptr::from_mut(&mut from).cast(),
            &mut length,
        )
    };
    let Ok(got) = usize::try_from(got) else {
        let error = std::io::Error::last_os_error();
        return match error.kind() {
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted => Ok(None),
            // An interface was removed.
            _ if error.raw_os_error() == Some(libc::ENETDOWN) => Ok(None),
            _ => Err(KitError::system("listen for IGMP at the bridge")(error)),
        };
    };
    if from.sll_pkttype == libc::PACKET_OUTGOING {
        return Ok(None);
    }
    let mut name = [0; libc::IF_NAMESIZE];
    let index = u32::try_from(from.sll_ifindex).unwrap_or(0);
    // SAFETY: the buffer has the maximum length of an interface name.
    let known = !unsafe { libc::if_indextoname(index, name.as_mut_ptr()) }.is_null();
    // SAFETY: the buffer was all zeros before the call, so it contains a terminated name.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
    Ok(known.then_some((got, name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 70, 1);
    const SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));

    /// Returns an Ethernet frame with this IGMP message in IPv4 with the router-alert option.
    fn igmp(message: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([0x08, 0x00, 0x46]);
        frame.extend([0; 23]);
        frame.extend(message);
        frame
    }

    fn v3(kind: u8, sources: &[[u8; 4]]) -> Vec<u8> {
        let mut message = vec![0x22, 0, 0, 0, 0, 0, 0, 1, kind, 0, 0, sources.len() as u8];
        message.extend(GROUP.octets());
        message.extend(sources.concat());
        igmp(&message)
    }

    /// Returns the membership changes that the router derives from these frames of one host.
    fn received(frames: &[Vec<u8>]) -> Vec<Membership> {
        let mut members = Members::default();
        frames.iter().flat_map(|frame| records(frame)).filter_map(|r| members.on_record(0, &r)).collect()
    }

    #[test]
    fn repeated_membership_report_counts_as_one_join() {
        assert_eq!(received(&[v3(4, &[]), v3(4, &[]), v3(2, &[])]), [Membership::Joined]);
    }

    #[test]
    fn change_to_an_empty_source_list_counts_as_a_leave() {
        let frames = [v3(4, &[]), v3(3, &[]), v3(3, &[])];
        assert_eq!(received(&frames), [Membership::Joined, Membership::Left]);
    }

    #[test]
    fn source_specific_reports_count_as_a_join_and_a_leave() {
        let frames = [v3(5, &[[10, 77, 0, 1]]), v3(1, &[[10, 77, 0, 1]]), v3(6, &[[10, 77, 0, 1]])];
        assert_eq!(received(&frames), [Membership::Joined, Membership::Left]);
        assert_eq!(records(&frames[0])[0].sources, [SOURCE]);
    }

    #[test]
    fn igmp_version_2_joins_and_leaves_are_recognised() {
        let message = |kind: u8| igmp(&[&[kind, 0, 0, 0][..], &GROUP.octets()].concat());
        assert_eq!(received(&[message(0x16), message(0x17)]), [Membership::Joined, Membership::Left]);
    }

    #[test]
    fn mld_report_yields_its_ipv6_group() {
        let group = Ipv6Addr::new(0xff15, 0, 0, 0, 0, 0, 0, 0x7101);
        let mut frame = vec![0; 12];
        frame.extend([0x86, 0xdd]);
        frame.extend([0; IPV6]);
        frame.extend([58, 0, 5, 2, 0, 0, 1, 0]);
        frame.extend([143, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0]);
        frame.extend(group.octets());
        let record = Record { group: group.into(), record_type: RecordType::Exclude, sources: Vec::new() };
        assert_eq!(records(&frame), [record]);
    }

    #[test]
    fn truncated_membership_report_has_no_records() {
        let whole = v3(5, &[[10, 77, 0, 1]]);
        for length in 0..whole.len() {
            assert_eq!(records(&whole[..length]), []);
        }
    }
}
