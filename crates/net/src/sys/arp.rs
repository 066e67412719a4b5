//! Packet sockets for ARP (RFC 826): raw frames of one protocol on one interface.

use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, Socket, Type};
use std::io;
use std::mem;

/// The protocol number of ARP, in network byte order.
const ETH_P_ARP: u16 = (libc::ETH_P_ARP as u16).to_be();

/// Returns the link-layer broadcast address on this interface.
fn broadcast(index: u32) -> SockAddr {
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: `sockaddr_ll` is plain data, and no larger than the storage.
    let link = unsafe { storage.view_as::<libc::sockaddr_ll>() };
    link.sll_family = libc::AF_PACKET as u16;
    link.sll_protocol = ETH_P_ARP;
    link.sll_ifindex = index as libc::c_int;
    link.sll_halen = 6;
    link.sll_addr[..6].fill(0xff);
    // SAFETY: the storage holds an initialised `sockaddr_ll`.
    unsafe { SockAddr::new(storage, mem::size_of::<libc::sockaddr_ll>() as libc::socklen_t) }
}

/// Opens a non-blocking socket that receives ARP on this interface. Returns the socket and the hardware address of the interface.
pub(crate) fn open_arp(index: u32) -> io::Result<(Socket, [u8; 6])> {
    let protocol = Protocol::from(libc::c_int::from(ETH_P_ARP));
    let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(protocol))?;
    socket.set_nonblocking(true)?;
    socket.bind(&broadcast(index))?;
    let own = socket.local_addr()?;
    // SAFETY: the kernel has written a `sockaddr_ll`, because the socket is a packet socket.
    let link = unsafe { &*own.as_ptr().cast::<libc::sockaddr_ll>() };
    if link.sll_halen != 6 || link.sll_hatype != libc::ARPHRD_ETHER {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let mut hardware = [0; 6];
    hardware.copy_from_slice(&link.sll_addr[..6]);
    Ok((socket, hardware))
}

/// Broadcasts this ARP packet on the interface.
pub(crate) fn send_arp(socket: &Socket, index: u32, packet: &[u8]) -> io::Result<()> {
    socket.send_to(packet, &broadcast(index)).map(drop)
}
