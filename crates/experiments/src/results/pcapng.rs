//! Captures in the format pcapng (draft-ietf-opsawg-pcapng), little-endian, with times in nanoseconds.

use faircast_aqm::{DropCause, LossCause};
use faircast_core::time::Time;

/// First header of the captured packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkKind {
    /// Ethernet.
    Ethernet,
    /// IPv4 or IPv6.
    Ip,
}

/// A capture in memory, or a part of it.
#[derive(Debug)]
pub struct PcapNg {
    bytes: Vec<u8>,
    kind: LinkKind,
    most: u32,
}

impl PcapNg {
    /// Begins a capture that keeps at most this number of bytes of each packet.
    pub fn new(kind: LinkKind, most: u32) -> PcapNg {
        let mut file = PcapNg { bytes: Vec::new(), kind, most };
        let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &u64::MAX.to_le_bytes()];
        file.block(0x0a0d_0d0a, &section.concat());
        file
    }

    /// Adds an interface, which is a link. Interfaces are numbered from 0.
    pub fn interface(&mut self, name: &str) {
        let kind: u8 = match self.kind {
            LinkKind::Ethernet => 1,
            LinkKind::Ip => 101,
        };
        let limit = if self.most == u32::MAX { 0 } else { self.most };
        let mut body = [&[kind, 0, 0, 0][..], &limit.to_le_bytes()].concat();
        option(&mut body, 2, name.as_bytes());
        option(&mut body, 9, &[9]);
        option(&mut body, 0, &[]);
        self.block(1, &body);
    }

    /// Adds a packet. A packet that was lost on its link gets a comment with the reason.
    pub fn packet(&mut self, interface: u32, at: Time, packet: &[u8], lost: Option<LossCause>) {
        let nanos = at.as_nanos();
        let kept = &packet[..packet.len().min(self.most as usize)];
        let head = [interface, (nanos >> 32) as u32, nanos as u32, kept.len() as u32, packet.len() as u32];
        let mut body = head.map(u32::to_le_bytes).concat();
        padded(&mut body, kept);
        if let Some(lost) = lost {
            option(&mut body, 1, reason(lost).as_bytes());
            option(&mut body, 0, &[]);
        }
        self.block(6, &body);
    }

    /// Returns the number of bytes since the last [`PcapNg::take`].
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the bytes since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    fn block(&mut self, kind: u32, body: &[u8]) {
        let length = (12 + body.len() as u32).to_le_bytes();
        self.bytes.extend_from_slice(&kind.to_le_bytes());
        self.bytes.extend_from_slice(&length);
        self.bytes.extend_from_slice(body);
        self.bytes.extend_from_slice(&length);
    }
}

fn reason(lost: LossCause) -> &'static str {
    match lost {
        LossCause::Queue(DropCause::Overflow) => "dropped: the buffer was full",
        LossCause::Queue(DropCause::Early) => "dropped: early warning of the queue",
        LossCause::Wire => "lost on the wire",
        LossCause::Down => "lost: the link was down",
    }
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(&(value.len() as u16).to_le_bytes());
    padded(out, value);
}

fn padded(out: &mut Vec<u8>, value: &[u8]) {
    out.extend_from_slice(value);
    out.extend(std::iter::repeat_n(0, value.len().wrapping_neg() % 4));
}
