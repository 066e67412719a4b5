//! A connection of a macroflow: its packet numbers and what is out.

use crate::SenderView;
use faircast_core::time::Time;
use std::collections::VecDeque;

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Closed,
    SynReady,
    SynSent,
    Open,
}

/// A packet that is not acknowledged.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutstandingPacket {
    /// In the order in which the macroflow sent, from 1.
    pub(super) number: u64,
    pub(super) sent_at: Time,
    /// Acknowledgements of packets that other connections sent later.
    pub(super) later: u32,
    /// It is lost, and waits to be sent again.
    pub(super) lost: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Connection {
    pub(super) phase: Phase,
    pub(super) supply: u32,
    pub(super) una: u32,
    /// Packets `una ..` that were sent.
    pub(super) out: VecDeque<OutstandingPacket>,
    pub(super) duplicates: u32,
    /// Those of `out` that duplicates have shown to have left the network.
    pub(super) left: u32,
    /// Lost packets of `out`.
    pub(super) lost: u32,
    /// Repairs go on until this is acknowledged.
    pub(super) recover: u32,
    pub(super) syn_at: Time,
    /// Its own timer: for its SYN, and for its packets where the macroflow has none.
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

    /// Returns the packets in the network, as far as is known.
    pub(super) fn in_network(&self) -> u32 {
        self.out.len() as u32 - self.left - self.lost
    }

    /// Whether it would send something: a SYN, a lost packet, or a new one below `window`.
    pub(super) fn has_something(&self, window: u32) -> bool {
        match self.phase {
            Phase::Closed | Phase::SynSent => false,
            Phase::SynReady => true,
            Phase::Open => self.lost > 0 || (self.out.len() < window as usize && self.max() < self.supply),
        }
    }

    /// All below `next` are acknowledged; how many are newly.
    pub(super) fn acknowledge(&mut self, next: u32) -> u32 {
        let newly = next.saturating_sub(self.una).min(self.out.len() as u32);
        for _ in 0..newly {
            let it = self.out.pop_front().expect("there are as many");
            self.lost -= u32::from(it.lost);
        }
        self.una += newly;
        // All of these but the packet that filled the gap had left before.
        self.left = self.left.saturating_sub(newly.saturating_sub(1));
        self.keep_in_bounds();
        newly
    }

    /// The packet in this place of `out` is lost.
    pub(super) fn lose(&mut self, place: usize) {
        if let Some(it) = self.out.get_mut(place)
            && !it.lost
        {
            it.lost = true;
            self.lost += 1;
            self.keep_in_bounds();
        }
    }

    /// A packet has arrived: it has left the network, whichever it was.
    pub(super) fn one_left(&mut self) {
        self.left += 1;
        self.keep_in_bounds();
    }

    /// Lost packets have not left; and the first of those that are out and not lost has not left.
    fn keep_in_bounds(&mut self) {
        let first_is_out = self.out.front().is_some_and(|out| !out.lost);
        let most = (self.out.len() as u32 - self.lost).saturating_sub(u32::from(first_is_out));
        self.left = self.left.min(most);
    }

    /// All that is out is taken for lost.
    pub(super) fn go_back(&mut self) {
        (0..self.out.len()).for_each(|place| self.lose(place));
        (self.duplicates, self.left, self.recover) = (0, 0, self.max());
    }
}
