//! A connection of a macroflow: its packet numbers and outstanding packets.

use crate::SenderView;
use faircast_core::time::Time;
use std::collections::VecDeque;

/// State of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Closed,
    SynReady,
    SynSent,
    Open,
}

/// A packet that was sent and is not acknowledged yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutstandingPacket {
    /// Position in the order in which all packets of the macroflow were sent, from 1.
    pub(super) number: u64,
    pub(super) sent_at: Time,
    /// Number of acknowledgements that other connections got for packets sent after this packet.
    pub(super) later: u32,
    /// Whether the packet counts as lost and waits for its retransmission.
    pub(super) lost: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Connection {
    pub(super) phase: Phase,
    pub(super) supply: u32,
    pub(super) una: u32,
    /// The sent packets from `una` on.
    pub(super) out: VecDeque<OutstandingPacket>,
    pub(super) duplicates: u32,
    /// Number of packets in `out` that have arrived, estimated from duplicate acknowledgements.
    pub(super) left: u32,
    /// Number of lost packets of `out`.
    pub(super) lost: u32,
    /// Packet number whose acknowledgement ends the repairs.
    pub(super) recover: u32,
    pub(super) syn_at: Time,
    /// Time at which the connection's own timer expires. The timer covers the SYN; for the Congestion Manager, it also covers
    /// other packets.
    pub(super) expires: Time,
    pub(super) counts: SenderView,
}

impl Connection {
    pub(super) fn new() -> Connection {
        Connection {
            phase: Phase::Closed,
            supply: 0,
            una: 0,
            out: VecDeque::new(),
            duplicates: 0,
            left: 0,
            lost: 0,
            recover: 0,
            syn_at: Time::ZERO,
            expires: Time::NEVER,
            counts: SenderView::default(),
        }
    }

    pub(super) fn max(&self) -> u32 {
        self.una + self.out.len() as u32
    }

    /// Returns the estimated number of the connection's packets in the network.
    pub(super) fn in_network(&self) -> u32 {
        self.out.len() as u32 - self.left - self.lost
    }

    /// Returns whether the connection has a packet to send: a SYN, a lost packet, or a new packet if fewer than `window` packets
    /// are outstanding.
    pub(super) fn has_something(&self, window: u32) -> bool {
        match self.phase {
            Phase::Closed | Phase::SynSent => false,
            Phase::SynReady => true,
            Phase::Open => self.lost > 0 || (self.out.len() < window as usize && self.max() < self.supply),
        }
    }

    /// Records that all packets below `next` are acknowledged; returns the number of newly acknowledged packets.
    pub(super) fn acknowledge(&mut self, next: u32) -> u32 {
        let newly = next.saturating_sub(self.una).min(self.out.len() as u32);
        for _ in 0..newly {
            let it = self.out.pop_front().expect("there are as many");
            self.lost -= u32::from(it.lost);
        }
        self.una += newly;
        // Duplicates had already counted all these packets in `left`, except the packet that filled the gap.
        self.left = self.left.saturating_sub(newly.saturating_sub(1));
        self.keep_in_bounds();
        newly
    }

    /// Marks the packet at this index of `out` as lost.
    pub(super) fn lose(&mut self, place: usize) {
        if let Some(it) = self.out.get_mut(place)
            && !it.lost
        {
            it.lost = true;
            self.lost += 1;
            self.keep_in_bounds();
        }
    }

    /// Counts one more packet as arrived. A duplicate acknowledgement does not identify the packet.
    pub(super) fn one_left(&mut self) {
        self.left += 1;
        self.keep_in_bounds();
    }

    /// Limits `left` to the packets in `out` that are not lost, without the first packet: the receiver still misses the first
    /// packet.
    fn keep_in_bounds(&mut self) {
        let first_is_out = self.out.front().is_some_and(|out| !out.lost);
        let most = (self.out.len() as u32 - self.lost).saturating_sub(u32::from(first_is_out));
        self.left = self.left.min(most);
    }

    /// Marks all outstanding packets as lost.
    pub(super) fn go_back(&mut self) {
        (0..self.out.len()).for_each(|place| self.lose(place));
        (self.duplicates, self.left, self.recover) = (0, 0, self.max());
    }
}
