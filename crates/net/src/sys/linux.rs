//! Linux: many datagrams per call, with all metadata of the kernel.
//!
//! Addresses and control messages that the kernel writes are parsed as bytes, in safe code.

use super::{Control, MAX_CALL, parse_address, set_option};
use crate::buffers::Backlog;
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};
use std::io;
use std::mem::{self, MaybeUninit};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::time::Duration;

/// Space for the kernel's metadata of one datagram: receive time (32), destination (40), ECN (24)
/// and segment size (24) are 120 bytes.
const CONTROL: usize = 256;
/// The largest address: `sockaddr_in6`.
const NAME: usize = 28;
/// Kernel metadata of one received datagram, before it is parsed.
#[repr(C, align(8))]
#[derive(Debug, Clone)]
pub(crate) struct Head {
    control: [u8; CONTROL],
    name: [u8; NAME],
    control_len: usize,
    name_len: usize,
    /// Bytes received.
    pub(crate) len: usize,
    /// `MSG_TRUNC`, `MSG_CTRUNC`.
    flags: libc::c_int,
}

impl Head {
    pub(crate) const EMPTY: Head =
        Head { control: [0; CONTROL], name: [0; NAME], control_len: 0, name_len: 0, len: 0, flags: 0 };

    /// Whether the datagram was longer than its buffer.
    pub(crate) fn truncated(&self) -> bool {
        self.flags & libc::MSG_TRUNC != 0
    }

    /// Whether the control data exceeded its buffer.
    pub(crate) fn control_truncated(&self) -> bool {
        self.flags & libc::MSG_CTRUNC != 0
    }

    pub(crate) fn from(&self) -> Option<SocketAddr> {
        parse_address(self.name.get(..self.name_len)?)
    }

    pub(crate) fn control(&self) -> Control {
        parse_control(&self.control[..self.control_len.min(CONTROL)])
    }
}

/// Length of a control message's header: its length, level and type.
const CONTROL_HEADER: usize = size_of::<usize>() + 2 * size_of::<libc::c_int>();

/// Parses a sequence of control messages (`cmsg(3)`): each has a length (header included), a level, a type and data, padded to
/// the size of a word. Unknown and truncated messages are skipped.
fn parse_control(mut bytes: &[u8]) -> Control {
    let mut control = Control::default();
    while let Some((len, level, kind)) = parse_control_header(bytes) {
        let Some(data) = bytes.get(CONTROL_HEADER..len) else { break };
        note(&mut control, level, kind, data);
        bytes = bytes.get(len.next_multiple_of(size_of::<usize>())..).unwrap_or(&[]);
    }
    control
}

fn parse_control_header(bytes: &[u8]) -> Option<(usize, libc::c_int, libc::c_int)> {
    const LEVEL: usize = size_of::<usize>();
    const KIND: usize = LEVEL + size_of::<libc::c_int>();
    let len = usize::from_ne_bytes(*bytes.first_chunk()?);
    let level = libc::c_int::from_ne_bytes(*bytes.get(LEVEL..)?.first_chunk()?);
    let kind = libc::c_int::from_ne_bytes(*bytes.get(KIND..)?.first_chunk()?);
    Some((len, level, kind))
}

fn note(control: &mut Control, level: libc::c_int, kind: libc::c_int, data: &[u8]) {
    match (level, kind) {
        (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
            // The data is one octet for IPv4, an int for IPv6.
            let int = data.first_chunk().map(|b| libc::c_int::from_ne_bytes(*b) as u8);
            control.tos = int.or(data.first().copied());
        }
        (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
            // The fields are interface, local address and destination address, 4 bytes each.
            let to: Option<&[u8; 4]> = data.get(8..).and_then(|d| d.first_chunk());
            control.to = to.map(|ip| Ipv4Addr::from(*ip).into());
        }
        (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
            let to: Option<&[u8; 16]> = data.first_chunk();
            control.to = to.map(|ip| Ipv6Addr::from(*ip).into());
        }
        (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => control.received_unix_ns = parse_timespec(data),
        (libc::SOL_UDP, libc::UDP_GRO) => {
            let size = data.first_chunk().map(|b| libc::c_int::from_ne_bytes(*b));
            control.segment = size.and_then(|s| usize::try_from(s).ok()).filter(|s| *s > 0);
        }
        _ => {}
    }
}

fn parse_timespec(data: &[u8]) -> Option<u64> {
    const WORD: usize = size_of::<libc::c_long>();
    let seconds = libc::c_long::from_ne_bytes(*data.first_chunk()?);
    let nanos = libc::c_long::from_ne_bytes(*data.get(WORD..)?.first_chunk()?);
    u64::try_from(seconds).ok()?.checked_mul(1_000_000_000)?.checked_add(u64::try_from(nanos).ok()?)
}

/// The address family of a socket, which determines the names of its options.
#[derive(Debug, Clone, Copy)]
enum Family {
    V4,
    V6,
}

impl Family {
    fn of(address: IpAddr) -> Family {
        if address.is_ipv4() { Family::V4 } else { Family::V6 }
    }
}

fn set(fd: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    set_option(fd, level, name, &value)
}

/// Requests receive time, destination and ECN of every datagram.
pub(crate) fn ask_for_metadata(fd: BorrowedFd<'_>, like: IpAddr) -> io::Result<()> {
    set(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
    match Family::of(like) {
        Family::V4 => {
            set(fd, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?;
            set(fd, libc::IPPROTO_IP, libc::IP_RECVTOS, 1)
        }
        Family::V6 => {
            set(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
            set(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)
        }
    }
}

/// Disables fragmentation: a datagram that does not fit is an error. ICMP messages about the path MTU are ignored.
pub(crate) fn never_fragment(fd: BorrowedFd<'_>, like: IpAddr) -> io::Result<()> {
    match Family::of(like) {
        Family::V4 => set(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE),
        Family::V6 => {
            set(fd, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)?;
            set(fd, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, 1)
        }
    }
}

/// Enables coalescing of received datagrams (GRO). Coalescing affects only the processor time, and old kernels do not support it.
pub(crate) fn coalesce(fd: BorrowedFd<'_>) -> io::Result<()> {
    set(fd, libc::SOL_UDP, libc::UDP_GRO, 1)
}

/// Restricts a socket to its own groups. By default it receives the packets of every group that any program on the host has
/// joined.
pub(crate) fn only_own_groups(fd: BorrowedFd<'_>, like: IpAddr) -> io::Result<()> {
    let socket = SockRef::from(&fd);
    match Family::of(like) {
        Family::V4 => socket.set_multicast_all_v4(false),
        Family::V6 => socket.set_multicast_all_v6(false),
    }
}

/// Sets the receive buffer beyond the system's limit; needs privileges.
pub(crate) fn force_receive_buffer(fd: BorrowedFd<'_>, bytes: libc::c_int) -> io::Result<()> {
    set(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes)
}

/// Sets the send buffer beyond the system's limit; needs privileges.
pub(crate) fn force_send_buffer(fd: BorrowedFd<'_>, bytes: libc::c_int) -> io::Result<()> {
    set(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, bytes)
}

/// Returns the usable size of a receive buffer. The kernel doubles the requested size for its own overhead, and reports the
/// result.
pub(crate) fn usable(reported: usize) -> usize {
    reported / 2
}

/// Returns the fill level of the receive buffer.
pub(crate) fn backlog(fd: BorrowedFd<'_>) -> io::Result<Backlog> {
    const WORDS: usize = libc::SK_MEMINFO_DROPS as usize + 1;
    let words = words::<WORDS>(fd, libc::SOL_SOCKET, libc::SO_MEMINFO)?;
    let word = |name: libc::c_int| words[name as usize];
    Ok(Backlog {
        used_bytes: word(libc::SK_MEMINFO_RMEM_ALLOC) as usize,
        capacity_bytes: word(libc::SK_MEMINFO_RCVBUF) as usize,
        drops: word(libc::SK_MEMINFO_DROPS),
    })
}

/// Reads a socket option of up to `N` 32-bit words. Words that the kernel does not supply are 0.
fn words<const N: usize>(fd: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int) -> io::Result<[u32; N]> {
    let mut value = [0u32; N];
    let mut len = size_of_val(&value) as libc::socklen_t;
    // SAFETY: `value` is valid for writes of `len` bytes, which is its size; the kernel writes no more.
    let done =
        unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut len) };
    if done == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

/// A control message that requests segmentation by the kernel: length, level, type and
/// a 16-bit size, padded to a word.
#[repr(C, align(8))]
struct SegmentControl([u8; SegmentControl::SPACE]);

impl SegmentControl {
    const LEN: usize = CONTROL_HEADER + size_of::<u16>();
    const SPACE: usize = Self::LEN.next_multiple_of(size_of::<usize>());

    fn new(segment: u16) -> SegmentControl {
        let mut bytes = [0; Self::SPACE];
        let (level, kind) = (libc::SOL_UDP.to_ne_bytes(), libc::UDP_SEGMENT.to_ne_bytes());
        let fields =
            Self::LEN.to_ne_bytes().into_iter().chain(level).chain(kind).chain(segment.to_ne_bytes());
        bytes.iter_mut().zip(fields).for_each(|(byte, field)| *byte = field);
        SegmentControl(bytes)
    }
}

/// Sends one datagram, or several datagrams of size `segment` in one call. Does not block.
pub(crate) fn send(
    fd: BorrowedFd<'_>,
    to: &SockAddr,
    bytes: &[u8],
    segment: Option<u16>,
) -> io::Result<usize> {
    let mut control = segment.map(SegmentControl::new);
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut message = message(&mut part);
    message.msg_name = to.as_ptr().cast_mut().cast();
    message.msg_namelen = to.len();
    if let Some(control) = &mut control {
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = SegmentControl::SPACE as _;
    }
    // SAFETY: `message` points to `to`, `part`, `bytes` and `control`, which outlive the call, with
    // their true lengths; the kernel only reads them.
    let sent = unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const message, FLAGS) };
    if sent >= 0 { Ok(sent as usize) } else { Err(io::Error::last_os_error()) }
}

const FLAGS: libc::c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;

/// Sends up to [`MAX_CALL`] datagrams of `segment` bytes each (the last one may be shorter) and returns
/// the number sent. Does not block.
pub(crate) fn send_each(
    fd: BorrowedFd<'_>,
    to: &SockAddr,
    bytes: &[u8],
    segment: usize,
) -> io::Result<usize> {
    let mut parts = [const { libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 } }; MAX_CALL];
    let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; MAX_CALL];
    let mut count = 0;
    for (chunk, (part, slot)) in bytes.chunks(segment).zip(parts.iter_mut().zip(&mut messages)) {
        *part = libc::iovec { iov_base: chunk.as_ptr().cast_mut().cast(), iov_len: chunk.len() };
        let mut header = message(part);
        header.msg_name = to.as_ptr().cast_mut().cast();
        header.msg_namelen = to.len();
        slot.write(libc::mmsghdr { msg_hdr: header, msg_len: 0 });
        count += 1;
    }
    // SAFETY: the first `count` messages are written above; they point to `to`, `parts` and `bytes`,
    // which outlive the call, with their true lengths. The kernel writes only each `msg_len`.
    let sent = unsafe {
        libc::sendmmsg(fd.as_raw_fd(), messages.as_mut_ptr().cast(), count as libc::c_uint, FLAGS as _)
    };
    if sent >= 0 { Ok(sent as usize) } else { Err(io::Error::last_os_error()) }
}

/// Receives up to `heads.len()` datagrams (at most [`MAX_CALL`]), each into its own `slot` bytes of `bytes`, and returns their
/// number. Does not block.
pub(crate) fn receive_each(
    fd: BorrowedFd<'_>,
    bytes: &mut [u8],
    slot: usize,
    heads: &mut [Head],
) -> io::Result<usize> {
    let mut parts = [const { libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 } }; MAX_CALL];
    let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; MAX_CALL];
    let mut count = 0;
    let into = bytes.chunks_exact_mut(slot).zip(heads.iter_mut());
    for ((chunk, head), (part, slot)) in into.zip(parts.iter_mut().zip(&mut messages)) {
        *part = libc::iovec { iov_base: chunk.as_mut_ptr().cast(), iov_len: chunk.len() };
        let mut header = message(part);
        header.msg_name = head.name.as_mut_ptr().cast();
        header.msg_namelen = NAME as libc::socklen_t;
        header.msg_control = head.control.as_mut_ptr().cast();
        header.msg_controllen = CONTROL as _;
        slot.write(libc::mmsghdr { msg_hdr: header, msg_len: 0 });
        count += 1;
    }
    // SAFETY: the first `count` messages are written above; each points to its own part of `bytes`,
    // `heads` and `parts`, all exclusively borrowed during the call, with their true lengths. No time
    // limit is given.
    let received = unsafe {
        libc::recvmmsg(
            fd.as_raw_fd(),
            messages.as_mut_ptr().cast(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT as _,
            ptr::null_mut(),
        )
    };
    if received < 0 {
        return Err(io::Error::last_os_error());
    }
    for (head, message) in heads.iter_mut().zip(&messages).take(received as usize) {
        // SAFETY: `received` is at most `count`, and the first `count` messages are written.
        let message = unsafe { message.assume_init_ref() };
        head.len = message.msg_len as usize;
        head.name_len = message.msg_hdr.msg_namelen as usize;
        head.control_len = message.msg_hdr.msg_controllen as _;
        head.flags = message.msg_hdr.msg_flags;
    }
    Ok(received as usize)
}

/// Returns the header of a message with one part, without address and control data.
fn message(part: &mut libc::iovec) -> libc::msghdr {
    // SAFETY: all-zero bytes are a valid `msghdr`: null pointers with zero lengths.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = part;
    message.msg_iovlen = 1;
    message
}

/// Waits until a descriptor is ready or `timeout` has passed; `None` waits without a limit. Returns the number of ready
/// descriptors.
pub(crate) fn poll(watched: &mut [libc::pollfd], timeout: Option<Duration>) -> io::Result<usize> {
    let timeout = timeout.map(|t| libc::timespec {
        tv_sec: t.as_secs().min(i32::MAX as u64) as _,
        tv_nsec: t.subsec_nanos() as _,
    });
    let limit = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `watched` is valid for reads and writes of its length, `limit` is null or points to
    // `timeout`, which outlives the call; the signal mask is null, which means unchanged.
    let ready =
        unsafe { libc::ppoll(watched.as_mut_ptr(), watched.len() as libc::nfds_t, limit, ptr::null()) };
    if ready >= 0 { Ok(ready as usize) } else { Err(io::Error::last_os_error()) }
}

/// Opens a socket that becomes readable when interfaces or their addresses change (rtnetlink(7)).
pub(crate) fn listen_for_changes() -> io::Result<Socket> {
    let kind = Type::RAW.nonblocking().cloexec();
    let socket =
        Socket::new(Domain::from(libc::AF_NETLINK), kind, Some(Protocol::from(libc::NETLINK_ROUTE)))?;
    // SAFETY: all-zero bytes are a valid `sockaddr_nl`, a plain C structure of integers.
    let mut name: libc::sockaddr_nl = unsafe { mem::zeroed() };
    name.nl_family = libc::AF_NETLINK as libc::sa_family_t;
    name.nl_groups = (libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR) as u32;
    let len = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
    // SAFETY: `name` is valid for reads of `len` bytes, its size, during the call.
    let done = unsafe { libc::bind(socket.as_raw_fd(), (&raw const name).cast(), len) };
    if done == 0 { Ok(socket) } else { Err(io::Error::last_os_error()) }
}

/// Sets the timer slack of the calling thread to 1 ns. The default is 50 microseconds.
pub(crate) fn sharpen_timers() -> io::Result<()> {
    const ONE_NANOSECOND: libc::c_ulong = 1;
    // SAFETY: this request takes one number and touches no memory.
    let done = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, ONE_NANOSECOND) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the IPv6 addresses that the kernel does not use because another host has them. Each address is returned with its
/// interface.
pub(crate) fn refused_addresses() -> Vec<(Ipv6Addr, String)> {
    let table = std::fs::read_to_string("/proc/thread-self/net/if_inet6").unwrap_or_default();
    table.lines().filter_map(refused_address).collect()
}

/// Parses a line of the table: address, index, prefix length, scope, flags and name. The numbers are hexadecimal.
fn refused_address(line: &str) -> Option<(Ipv6Addr, String)> {
    const DAD_FAILED: u32 = 0x08;
    let words: Vec<&str> = line.split_whitespace().collect();
    let [address, _, _, _, flags, name] = words.as_slice() else { return None };
    let address = u128::from_str_radix(address, 16).ok()?;
    let is_refused = u32::from_str_radix(flags, 16).ok()? & DAD_FAILED != 0;
    is_refused.then(|| (Ipv6Addr::from(address), (*name).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control_message(level: libc::c_int, kind: libc::c_int, data: &[u8]) -> Vec<u8> {
        let mut bytes = (CONTROL_HEADER + data.len()).to_ne_bytes().to_vec();
        bytes.extend(level.to_ne_bytes().into_iter().chain(kind.to_ne_bytes()).chain(data.iter().copied()));
        bytes.resize(bytes.len().next_multiple_of(size_of::<usize>()), 0);
        bytes
    }

    fn everything() -> Vec<u8> {
        let time = [7 as libc::c_long, 9].map(libc::c_long::to_ne_bytes).concat();
        [
            control_message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &time),
            control_message(libc::IPPROTO_IP, libc::IP_PKTINFO, &[2, 0, 0, 0, 10, 0, 0, 1, 239, 1, 2, 3]),
            control_message(libc::IPPROTO_IP, libc::IP_TOS, &[3]),
            control_message(libc::SOL_UDP, libc::UDP_GRO, &1472i32.to_ne_bytes()),
        ]
        .concat()
    }

    #[test]
    fn all_control_messages_are_read() {
        let expected = Control {
            tos: Some(3),
            received_unix_ns: Some(7_000_000_009),
            to: Some(IpAddr::from([239, 1, 2, 3])),
            segment: Some(1472),
        };
        assert_eq!(parse_control(&everything()), expected);
    }

    #[test]
    fn truncated_control_data_neither_panics_nor_invents_values() {
        let (bytes, whole) = (everything(), parse_control(&everything()));
        for have in 0..bytes.len() {
            let part = parse_control(&bytes[..have]);
            assert!(part.tos.is_none() || part.tos == whole.tos);
            assert!(part.received_unix_ns.is_none() || part.received_unix_ns == whole.received_unix_ns);
            assert!(part.segment.is_none() || part.segment == whole.segment);
        }
    }

    #[test]
    fn control_message_with_an_invalid_length_ends_parsing() {
        for len in [0, 1, CONTROL_HEADER - 1, 1 << 40, usize::MAX] {
            let mut bytes = everything();
            bytes[..size_of::<usize>()].copy_from_slice(&len.to_ne_bytes());
            assert_eq!(parse_control(&bytes), Control::default());
        }
    }
}
