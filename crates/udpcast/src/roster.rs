//! The receivers of a session: the blocks that each one has, and the questions that each one has to answer.

use super::copies::{Copies, Poll};
use super::shadow::{Path, Reports, Shadow};
use super::slices::{SLICES, Slices};
use crate::codec::{MAP_BITS, Map};
use faircast_core::packet::ReceiverId;
use faircast_core::rng::Rng;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Rate, Span, Time};
use faircast_transport::event::{Condition, ReceiverState};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Maximum number of receivers that answer one question. In a large group the receivers answer in turn.
const MAX_ASKED: usize = 20;

/// A receiver.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) id: ReceiverId,
    pub(super) address: Ipv4Addr,
    pub(super) state: State,
    views: [View; SLICES],
    shadow: Shadow,
    /// Index of the first transmission whose fate is unknown.
    cursor: u64,
    /// All transmissions before this index were asked about in an answered question.
    answered_to: u64,
    /// Time of the first question since the latest answer.
    pub(super) asked_since: Option<Time>,
    /// Time of the latest question.
    asked_at: Time,
    has_answered: bool,
    /// Time since which the receiver lacks blocks and gets none.
    pub(super) stuck_since: Option<Time>,
    /// Whether it was reported that the session waits for this receiver.
    pub(super) is_named: bool,
    /// Transmissions to it and lost ones among them, and its verified bytes, at the latest report for events.
    copies: (u64, u64),
    verified_bytes: u64,
}

/// State of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Active,
    Completed,
    Gone,
}

/// The state of one slice at a receiver.
#[derive(Debug, Clone, Copy)]
struct View {
    present: Map,
    /// Whether the receiver has answered a question about the slice.
    is_known: bool,
    is_complete: bool,
    /// The fate of transmissions before this index is known.
    known_to: u64,
    /// The newest question.
    asked: Option<Poll>,
    /// The first question without an answer.
    open: Option<Poll>,
    /// Number of questions without an answer; 2 stands for an unknown number.
    open_count: u32,
}

const UNKNOWN: View = View {
    present: Map::EMPTY,
    is_known: false,
    is_complete: false,
    known_to: 0,
    asked: None,
    open: None,
    open_count: 0,
};

/// An answer of a receiver.
#[derive(Debug, Clone, Copy)]
pub(super) enum Answer {
    /// The slice is complete.
    Complete,
    /// The slice is incomplete. The map belongs to this question. The last field states whether blocks sent before the question
    /// are missing.
    Incomplete(Poll, Map, bool),
}

impl Client {
    /// Returns whether the receiver has answered any question.
    pub(super) fn has_answered(&self) -> bool {
        self.has_answered
    }

    /// Returns whether the receiver has answered a question about the slice at this position.
    pub(super) fn knows(&self, at: usize) -> bool {
        self.views.get(at).is_some_and(|view| view.is_known)
    }

    /// Returns the number of blocks that the receiver lacks, according to its newest answer.
    pub(super) fn lacks(&self, at: usize, blocks: usize) -> usize {
        self.views
            .get(at)
            .filter(|view| !view.is_complete)
            .map_or(0, |view| blocks - view.present.count(blocks))
    }

    pub(super) fn has_all_of(&self, at: usize) -> bool {
        self.views.get(at).is_some_and(|view| view.is_complete)
    }

    /// Records an answer about the slice at a position, which has this number of blocks. Returns the round-trip times of the
    /// transmissions before the question.
    pub(super) fn on_answer(&mut self, at: usize, blocks: usize, answer: Answer, now: Time) -> Option<Path> {
        let view = self.views.get_mut(at)?;
        let newest = view.asked?;
        (self.asked_since, self.has_answered) = (None, true);
        view.is_known = true;
        let departed = match answer {
            Answer::Complete => {
                // The answer has no number: it answers the first open question, or a later one.
                let first = view.open.unwrap_or(newest);
                let is_only = view.open.is_some() && view.open_count == 1;
                (view.is_complete, view.known_to) = (true, u64::MAX);
                self.stuck_since = None;
                self.answered_to = self.answered_to.max(first.end);
                is_only.then_some(first.departed)
            }
            Answer::Incomplete(poll, present, lacks) => {
                let before = view.present.count(blocks);
                view.present.0.iter_mut().zip(present.0).for_each(|(octet, more)| *octet |= more);
                let is_stuck = lacks && view.present.count(blocks) == before;
                self.stuck_since = is_stuck.then(|| self.stuck_since.unwrap_or(now));
                view.known_to = view.known_to.max(poll.end);
                let is_newest = poll.departed == newest.departed;
                (view.open, view.open_count) = if is_newest { (None, 0) } else { (Some(poll), 2) };
                self.answered_to = self.answered_to.max(poll.end);
                Some(poll.departed)
            }
        };
        Some(self.shadow.on_answer(departed, now))
    }

    /// Passes the transmissions whose fate is known to the receiver part of the scheme, in their order. `base` is the number of
    /// the first slice in transit.
    pub(super) fn resolve(
        &mut self,
        copies: &Copies,
        base: u32,
        path: Path,
        (now, rng): (Time, &mut Rng),
        reports: &mut Reports,
    ) {
        self.cursor = self.cursor.max(copies.begin());
        while self.cursor < self.answered_to
            && let Some(copy) = copies.get(self.cursor)
        {
            // Slices before the first one in transit are complete.
            let view = self.views.get(copy.slice.wrapping_sub(base) as usize);
            if view.is_some_and(|view| view.known_to <= self.cursor) {
                break;
            }
            let has_arrived =
                view.is_none_or(|view| view.is_complete || view.present.has(usize::from(copy.block)));
            self.shadow.on_copy(copy, has_arrived, path, (now, rng), reports);
            self.cursor += 1;
            self.copies = (self.copies.0 + 1, self.copies.1 + u64::from(!has_arrived));
        }
        self.shadow.finish(now, rng, reports);
    }
}

/// All receivers of a session.
#[derive(Debug, Default)]
pub(super) struct Roster {
    clients: Vec<Client>,
    numbers: BTreeMap<Ipv4Addr, usize>,
}

impl Roster {
    pub(super) fn len(&self) -> usize {
        self.clients.len()
    }

    /// Returns the number of a receiver.
    pub(super) fn number(&self, address: Ipv4Addr) -> Option<usize> {
        self.numbers.get(&address).copied()
    }

    pub(super) fn get_mut(&mut self, number: usize) -> Option<&mut Client> {
        self.clients.get_mut(number)
    }

    /// Adds a receiver and returns its number; `None` if there are too many.
    pub(super) fn add(&mut self, id: ReceiverId, address: Ipv4Addr, scheme: &Scheme) -> Option<usize> {
        let number = self.clients.len();
        if number >= MAP_BITS {
            return None;
        }
        self.clients.push(Client {
            id,
            address,
            state: State::Active,
            views: [UNKNOWN; SLICES],
            shadow: Shadow::new(scheme, id),
            cursor: 0,
            answered_to: 0,
            asked_since: None,
            asked_at: Time::ZERO,
            has_answered: false,
            stuck_since: None,
            is_named: false,
            copies: (0, 0),
            verified_bytes: 0,
        });
        self.numbers.insert(address, number);
        Some(number)
    }

    /// Returns the states of all receivers that have not left, for events once a second. `limiting` is the receiver that limits the
    /// rate, and its round-trip time.
    pub(super) fn states(
        &mut self,
        slices: &Slices,
        port: u16,
        limiting: (Option<ReceiverId>, Span),
    ) -> Vec<ReceiverState> {
        let present = self.clients.iter_mut().filter(|client| client.state != State::Gone);
        let state = |client: &mut Client| {
            let state = if client.state == State::Completed { Condition::Done } else { Condition::Receiving };
            let bytes = client.views.iter().enumerate().map(|(at, view)| match view.is_complete {
                true => slices.bytes(at).into(),
                false => slices.bytes_of(at, view.present.count(slices.blocks(at).0)),
            });
            let verified_bytes = slices.settled_bytes() + bytes.sum::<u64>();
            let more = verified_bytes.saturating_sub(client.verified_bytes);
            let (copies, lost) = std::mem::take(&mut client.copies);
            client.verified_bytes = verified_bytes;
            ReceiverState {
                verified_bytes,
                rate: Rate::from_bps(more as f64 * 8.0),
                loss: lost as f64 / copies.max(1) as f64,
                rtt: (limiting.0 == Some(client.id)).then(|| limiting.1.into()),
                ..ReceiverState::unnamed(client.id, (client.address, port).into(), state)
            }
        };
        present.map(state).collect()
    }

    /// Returns the receivers that take part, with their numbers.
    pub(super) fn active(&self) -> impl Iterator<Item = (usize, &Client)> {
        self.clients.iter().enumerate().filter(|(_, client)| client.state == State::Active)
    }

    pub(super) fn active_mut(&mut self) -> impl Iterator<Item = &mut Client> {
        self.clients.iter_mut().filter(|client| client.state == State::Active)
    }

    /// Returns the number of receivers in a state.
    pub(super) fn count(&self, state: State) -> usize {
        self.clients.iter().filter(|client| client.state == state).count()
    }

    /// Returns whether all receivers have answered a question about the slice at this position, so that the next slice may begin.
    pub(super) fn all_know(&self, at: usize) -> bool {
        self.active().all(|(_, client)| client.knows(at))
    }

    /// Returns whether all receivers have the slice at this position.
    pub(super) fn all_have(&self, at: usize) -> bool {
        self.active().all(|(_, client)| client.has_all_of(at))
    }

    /// Moves the second slice in transit to the first position.
    pub(super) fn advance(&mut self) {
        for client in &mut self.clients {
            client.views.rotate_left(1);
            client.views[SLICES - 1] = UNKNOWN;
        }
    }

    /// Returns the index of the first transmission that is still needed.
    pub(super) fn first_needed(&self, end: u64) -> u64 {
        self.active().map(|(_, client)| client.cursor).min().unwrap_or(end)
    }

    /// Selects the receivers that are to answer a question about the slice at this position. Returns the map of all other
    /// receivers; `None` if nobody has to answer. `first` is asked in any case. Next are receivers that have not answered any
    /// question about the slice, then those that were not asked for the longest time.
    pub(super) fn ask(
        &mut self,
        at: usize,
        poll: Poll,
        first: Option<ReceiverId>,
        most: Asked,
    ) -> Option<Map> {
        let mut asked: Vec<usize> = self
            .active()
            .filter(|(_, client)| !client.has_all_of(at))
            .filter(|(_, client)| most == Asked::InTurn || !client.knows(at))
            .map(|(number, _)| number)
            .collect();
        if most == Asked::InTurn && asked.len() > MAX_ASKED {
            let rank = |number: &usize| {
                let client = &self.clients[*number];
                (first != Some(client.id), client.knows(at), client.asked_at)
            };
            asked.sort_by_key(rank);
            asked.truncate(MAX_ASKED);
        }
        if asked.is_empty() {
            return None;
        }
        let mut ready = Map::FULL;
        for number in asked {
            ready.clear(number);
            let client = &mut self.clients[number];
            client.asked_since.get_or_insert(poll.departed);
            client.asked_at = poll.departed;
            let view = &mut client.views[at];
            view.asked = Some(poll);
            view.open.get_or_insert(poll);
            view.open_count = view.open_count.saturating_add(1);
        }
        Some(ready)
    }
}

/// The receivers that answer a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// A limited number of the receivers that lack blocks of the slice.
    InTurn,
    /// All receivers that have not answered any question about the slice.
    Silent,
}
