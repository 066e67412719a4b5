//! Relays: a member of a session upstream, and sources of the same session downstream.
//!
//! ```text
//!   source or relay --> UpstreamReassembler --> RelayState (cache) --> DownstreamScheduler in a source's session --> children
//!                                                              \--> DownstreamScheduler ... --> children of another branch
//! ```
//!
//! A relay receives a session once and sends it on its branches, each at its own rate by the session's scheme: to the source they are one
//! receiver. It repairs losses of its children from its cache, and requests upstream what the cache has lost. Symbols of sealed sessions
//! stay sealed: a relay has the hop key only.

mod branch;
mod cache;
mod children;
mod config;
mod confirmations;
mod downstream_scheduler;
mod fetches;
mod hosts;
mod listen;
mod mode;
mod receipts;
mod registry;
mod role;
mod schedule;
mod upstream;
mod upstream_reassembler;

pub(crate) use branch::{Branch, BranchSetup};
pub use config::{Forwarding, RelayBranch, RelayConfig, RelayEvent, RelayRole, RelaySource, RouterKind};
pub(crate) use mode::{RelayMode, needs::Needs};
pub(crate) use registry::Child;
pub use registry::{AgentStatus, BranchStatus, HopStatus, RelayHandle, RelayStatus, RelayedSession};
pub use upstream::Upstream;
use upstream_reassembler::UpstreamReassembler;

use crate::event::RelayBelow;
use crate::members::Tally;
use crate::object::Hash;
use crate::object::gather::spill::SpillFile;
use crate::source::scheduler::{EndProof, Requester};
use crate::withdrawals::Slices;
use cache::{Added, Cache};
use faircast_core::packet::{ReceiverId, Seq, SessionId};
use faircast_core::time::{Rate, Span, Time};
use faircast_wire::{Announce, DataPacket, Hashes, Status, SymbolMap, Withdrawn};
use fetches::{Fetches, Queue, Queued};
use mode::SharedMode;
use schedule::{Pick, Schedule};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of stored pages of hashes.
const MAX_PAGES: usize = 16_384;

/// Maximum number of pages fetched at a time.
const MAX_WANTED_PAGES: usize = 256;

/// A relay that has received nothing from its source for this duration stops announcing its session: the source may have moved, for
/// receivers too.
const UNFED: Span = Span::from_secs(2);

/// Duration for which a relay without children waits for one before it reports that it needs nothing.
const LINGER: Span = Span::from_secs(2);

/// No datagram holds a page of more hashes.
const MAX_PAGE_HASHES: u32 = 2_048;

/// Maximum number of relays between a source and a receiver: packets with more hops run in a loop.
pub const MAX_HOPS: u8 = RelayBelow::MAX_DEPTH;

/// One session at a relay, as both sides see it.
#[derive(Debug, Clone)]
pub(crate) struct SessionHandle {
    passing: Arc<Mutex<RelayState>>,
    /// The process that it is part of.
    process: RelayHandle,
    /// The relay's role within the session, if it does not terminate it.
    mode: Option<SharedMode>,
}

/// State of a relayed session.
#[derive(Debug)]
pub(crate) struct RelayState {
    /// The announcement upstream.
    announce: Option<(SessionId, Announce)>,
    cache: Cache,
    /// All source symbols of the blocks before this one have left the source once.
    passed: u32,
    blocks: Option<u32>,
    root: Option<Hash>,
    /// How many files the source has withdrawn, and which.
    withdrawn: u32,
    withdrawals: Slices,
    said: EndProof,
    /// Symbols to fetch from above.
    fetches: Fetches,
    /// Blocks that did not verify downstream and are fetched again: the next symbol of each replaces the cached ones.
    wrong: BTreeSet<u32>,
    /// The branch whose turn it is to have something fetched.
    turn: usize,
    /// Pages of hashes, by their first block.
    pages: BTreeMap<u32, Hashes>,
    /// Blocks whose page is to be fetched, and whether that is because the stored page did not verify downstream.
    wanted_pages: BTreeMap<u32, bool>,
    branches: Vec<BranchState>,
    /// Children that are, or were, branches, by address; the same address with another number is another process.
    served: BTreeMap<SocketAddr, ReceiverId>,
    /// Receivers downstream that have everything, as reported to the parent.
    confirmations: confirmations::Confirmations,
    /// The registry's count of attach packets at the last check.
    asked: u64,
    /// Warnings for the user.
    warnings: Vec<String>,
    /// Bytes received and not yet sent on any branch at which the source is held back.
    max_ahead: Option<u64>,
    end: End,
    /// When the last packet of the session arrived from upstream.
    last_received_at: Time,
    /// Counters of an agent.
    agent_status: Option<AgentStatus>,
    /// And a hop.
    hop_status: Option<HopStatus>,
    receipts: receipts::Keeping,
}

/// Whether the upstream session goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It does.
    No,
    /// It has ended, and receivers downstream are notified.
    Over,
    /// It is lost: receivers downstream may find it elsewhere.
    Lost,
}

/// One branch.
#[derive(Debug, Default)]
struct BranchState {
    schedule: Schedule,
    /// Symbols that are not cached and not fetched yet.
    queue: Queue,
    /// Pages that wait to leave.
    pages: BTreeSet<u32>,
    tally: Tally,
    /// Receivers that have become known to the source since the branch last called.
    known: Vec<ReceiverId>,
    to: Option<SocketAddr>,
    /// Rate that the scheme allows.
    rate: Rate,
    /// Number of the invitation, for an invited host.
    invitation: u64,
    /// The process that it serves.
    child: Option<ReceiverId>,
    /// Whether the host has attached again, and this branch has ended.
    is_replaced: bool,
    /// Whether its endpoint has ended without serving anyone: another child may take the place.
    is_vacant: bool,
    /// The relays below.
    relays: Vec<RelayBelow>,
}

impl SessionHandle {
    /// Creates a session without content, with `branches` branches and about `memory` bytes for symbols; the others go to `room`.
    pub(crate) fn new(
        process: RelayHandle,
        branches: usize,
        memory: usize,
        room: Option<SpillFile>,
    ) -> SessionHandle {
        let branches = (0..branches).map(|_| BranchState::default()).collect();
        let passing = RelayState {
            announce: None,
            cache: Cache::new(memory, room),
            passed: 0,
            blocks: None,
            root: None,
            withdrawn: 0,
            withdrawals: Slices::default(),
            said: EndProof::default(),
            fetches: Fetches::default(),
            wrong: BTreeSet::new(),
            turn: 0,
            pages: BTreeMap::new(),
            wanted_pages: BTreeMap::new(),
            branches,
            served: BTreeMap::new(),
            confirmations: confirmations::Confirmations::default(),
            asked: 0,
            warnings: Vec::new(),
            max_ahead: None,
            end: End::No,
            last_received_at: Time::ZERO,
            agent_status: None,
            hop_status: None,
            receipts: receipts::Keeping::default(),
        };
        SessionHandle { passing: Arc::new(Mutex::new(passing)), process, mode: None }
    }

    /// The same of a node inside the session, with this number of exits.
    pub(crate) fn of_mode(
        process: RelayHandle,
        node: Arc<Mutex<dyn RelayMode>>,
        exits: usize,
    ) -> SessionHandle {
        SessionHandle { mode: Some(SharedMode::new(node)), ..SessionHandle::new(process, exits, 0, None) }
    }

    /// Calls `act` with the relay's role within the session.
    pub(crate) fn with_mode<T>(&self, act: impl FnOnce(&mut dyn RelayMode) -> T) -> Option<T> {
        self.mode.as_ref().map(|mode| mode.with(act))
    }

    /// Returns the address from which the relayed session is received now.
    pub(crate) fn parent(&self) -> Option<SocketAddr> {
        let passing = self.lock();
        passing.announce.filter(|_| passing.end == End::No).map(|(_, announce)| announce.parent)
    }

    /// Limits the source, which has no other receivers, to this number of bytes received and not yet sent on any branch. More than that
    /// would not fit the cache.
    pub(crate) fn hold_above(&self, bytes: u64) {
        self.lock().max_ahead = Some(bytes);
    }

    /// Both sides run in one thread, one after the other.
    fn lock(&self) -> MutexGuard<'_, RelayState> {
        self.passing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the session; `lost`: it may go on elsewhere.
    pub(crate) fn end(&self, lost: bool) {
        let mut passing = self.lock();
        if passing.end == End::No {
            passing.end = if lost { End::Lost } else { End::Over };
        }
    }

    /// Records that a packet of the session has arrived from upstream, or waits to be read.
    pub(crate) fn note_received(&self, now: Time) {
        self.lock().last_received_at = now;
    }

    /// All receivers below.
    #[cfg(test)]
    pub(crate) fn tally(&self) -> Tally {
        self.lock().tally()
    }

    /// This process announces from here.
    pub(crate) fn announces_from(&self, place: SocketAddr) {
        self.process.add_own(place);
    }

    /// Let go of the session: everything has ended.
    pub(crate) fn release(&self) {
        let session = self.lock().announce.map(|(session, _)| session);
        session.into_iter().for_each(|session| self.process.release(session));
    }

    /// Returns the status; `None` before there is a session.
    pub(crate) fn status(&self) -> Option<RelayedSession> {
        let passing = self.lock();
        let (session, announce) = passing.announce?;
        let branch = |branch: &BranchState| BranchStatus {
            to: branch.to,
            rate: branch.rate,
            receivers: branch.tally.receivers,
            done: branch.tally.done,
            blocks_sent: branch.schedule.complete_to(),
            symbols_sent: branch.schedule.sent,
            relays: branch.relays.clone(),
        };
        Some(RelayedSession {
            session: session.to_string(),
            name: announce.name.to_string(),
            source: announce.source,
            parent: announce.parent,
            hops: announce.hops,
            blocks_passed: passing.passed,
            blocks: passing.blocks,
            cached_bytes: passing.cache.held() as u64,
            written_bytes: passing.cache.written,
            evicted_bytes: passing.cache.evicted,
            branches: passing.branches.iter().filter(|one| !one.serves_no_receiver()).map(branch).collect(),
            agent: passing.agent_status,
            hop: passing.hop_status,
        })
    }

    /// All cached symbols become wrong.
    #[cfg(test)]
    pub(crate) fn spoil(&self) {
        self.lock().cache.spoil();
    }

    /// Whether something is to be fetched that was not before. Nothing is fetched once the upstream session has ended.
    fn wants_more(&self) -> bool {
        let passing = self.lock();
        passing.end == End::No && passing.fetches.has_more
    }
}

impl BranchState {
    /// Whether the branch's host attached and does not join: for example a relay that looks for its next session and has this one already.
    const fn serves_no_receiver(&self) -> bool {
        self.child.is_some() && self.tally.receivers == 0 && self.schedule.sent == 0
    }
}

impl RelayState {
    fn tally(&self) -> Tally {
        self.branches.iter().map(|branch| branch.tally).sum()
    }

    /// Records that receivers `fresh` of a branch are done. Returns those of its receivers that the source knows, and whether they need not
    /// wait for that: they have everything even if nothing is received from the source.
    fn on_done(&mut self, branch: usize, fresh: &[ReceiverId], now: Time) -> (Vec<ReceiverId>, bool) {
        let known = fresh.iter().filter(|id| self.confirmations.add(**id)).copied();
        let known: Vec<ReceiverId> = self.branches[branch].known.drain(..).chain(known).collect();
        (known, self.answers_at_once(now))
    }

    /// Whether no parent is reachable that would confirm completed receivers.
    fn answers_at_once(&self, now: Time) -> bool {
        self.confirmations.confirms == Some(false) || self.end != End::No || !self.is_upstream_alive(now)
    }

    /// Whether enough has arrived for the fastest of the branches with receivers.
    fn is_ahead(&self) -> bool {
        let (Some(most), Some((_, announce))) = (self.max_ahead, self.announce) else { return false };
        let received = self.branches.iter().filter(|branch| branch.tally.answering > 0);
        let Some(sent) = received.map(|branch| branch.schedule.complete_to()).max() else { return false };
        let block = u64::from(announce.symbols_per_block) * u64::from(announce.symbol_size);
        u64::from(self.passed.saturating_sub(sent)) * block > most
    }

    /// Whether the upstream session goes on as far as known, or has ended in good order.
    fn is_upstream_alive(&self, now: Time) -> bool {
        self.end != End::No || now.since(self.last_received_at) < UNFED
    }

    /// Adds a symbol from upstream; returns whether it is of use.
    fn on_symbol(&mut self, packet: &DataPacket<'_>) -> Added {
        let place = packet.data.payload;
        if self.wrong.remove(&place.block) {
            self.cache.lose(place.block);
            self.branches.iter_mut().for_each(|branch| branch.schedule.on_replaced(place.block));
        }
        let wanted = self.fetches.wants(place.block);
        let added = self.cache.add(place.block, packet.symbols, place.symbol, packet.payload, wanted);
        if added == Added::Useless {
            // It may answer a request all the same: the source does not know which symbols are cached. A child that waits for others
            // repeats its request.
            self.fetches.on_symbol(place.block);
            let left = self.fetches.left(place.block);
            self.branches.iter_mut().for_each(|branch| branch.schedule.awaits_at_most(place.block, left));
            return added;
        }
        self.fetches.on_symbol(place.block);
        if let Some(stored) = self.cache.get(place.block) {
            self.branches.iter_mut().for_each(|branch| branch.schedule.on_symbol(place.block, stored));
        }
        let branches = &self.branches;
        let moved = self.cache.make_room(|block, _| {
            branches.iter().map(|branch| branch.schedule.next_use(block)).min().unwrap_or(u32::MAX)
        });
        if let Some(error) = moved.failed {
            self.warnings
                .push(format!("the cache file is full; symbols beyond the memory are dropped: {error}"));
        }
        for block in moved.gone {
            self.branches.iter_mut().for_each(|branch| branch.schedule.on_gone(block));
        }
        if wanted {
            self.fetch_queued();
        }
        added
    }

    fn on_status(&mut self, status: &Status) {
        self.passed = self.passed.max(status.complete_to);
        self.blocks = status.blocks.or(self.blocks);
        for Withdrawn { first_block, last_block, .. } in self.withdrawals.learn(status) {
            // Symbols that arrive from now on have other content than the cached ones.
            let last = (*last_block).min(self.blocks.unwrap_or(u32::MAX));
            self.cache.blocks_in(*first_block..=last).iter().for_each(|block| self.lose(*block));
        }
        if self.withdrawn != status.withdrawn_count() {
            // The root that is known covers another number of files.
            (self.withdrawn, self.root, self.said) = (status.withdrawn_count(), None, EndProof::default());
        }
        if let Some(root) = status.root {
            self.root = Some(Hash(root));
            self.said.proof = status.proof.or(self.said.proof);
            self.said.signature = status.root_signature.or(self.said.signature);
        }
        let passed = self.passed;
        self.branches.iter_mut().for_each(|branch| branch.schedule.on_passed(passed));
    }

    fn forget_before(&mut self, block: u32) {
        self.cache.forget_before(block);
        self.fetches.forget_before(block);
        self.wanted_pages = self.wanted_pages.split_off(&block);
        self.wrong = self.wrong.split_off(&block);
        for branch in &mut self.branches {
            branch.schedule.forget_before(block);
            branch.queue.forget_before(block);
        }
    }

    /// A page has come: it goes to everybody.
    fn on_page(&mut self, page: &Hashes) {
        let blocks = page.first_block..page.first_block.saturating_add(page.hashes.len() as u32);
        self.wanted_pages.retain(|block, _| !blocks.contains(block));
        // Pages that cannot be verified here must not block later ones.
        let near = self.pages.range(blocks.start.saturating_sub(MAX_PAGE_HASHES)..blocks.end);
        let overlapping = near.filter(|(first, known)| {
            **first != blocks.start && blocks.start < first.saturating_add(known.hashes.len() as u32)
        });
        let overlapping: Vec<u32> = overlapping.map(|(first, _)| *first).collect();
        overlapping.iter().for_each(|first| drop(self.pages.remove(first)));
        if self.pages.len() < MAX_PAGES || self.pages.contains_key(&page.first_block) {
            self.pages.insert(page.first_block, page.clone());
            for branch in &mut self.branches {
                branch.pages.insert(page.first_block);
            }
        }
    }

    /// Handles a request for pages on a branch. A page that did not verify there is fetched again, and is sent to all branches.
    fn request_pages(&mut self, branch: usize, first: u32, run: u32, by: &Requester<'_>) {
        for block in first..first.saturating_add(run) {
            let known = self.pages.range(..=block).next_back();
            let known = known.filter(|(first, page)| block - **first < page.hashes.len() as u32);
            if let (Some((first, _)), false) = (known, by.wrong) {
                self.branches[branch].pages.insert(*first);
            } else if self.wanted_pages.len() < MAX_WANTED_PAGES && self.is_known(block) {
                let former = self.wanted_pages.get(&block).copied();
                let wrong = by.wrong || former == Some(true);
                self.wanted_pages.insert(block, wrong);
                self.fetches.has_more |= former != Some(wrong);
            }
        }
    }

    /// Whether the source has sent this block.
    fn is_known(&self, block: u32) -> bool {
        self.blocks.is_none_or(|blocks| block < blocks) && block < self.passed.max(1)
    }

    fn next_page(&mut self, branch: usize) -> Option<Hashes> {
        let (waiting, pages) = (&mut self.branches[branch].pages, &self.pages);
        let next = std::iter::from_fn(|| waiting.pop_first()).find_map(|first| pages.get(&first));
        next.cloned()
    }

    /// Handles a request for symbols on a branch.
    fn request(&mut self, branch: usize, block: u32, symbols: u16, by: &Requester<'_>) -> bool {
        if !self.is_known(block) {
            return false;
        }
        let whole = self.announce.map_or(u16::MAX, |(_, announce)| announce.symbols_per_block);
        let symbols = symbols.min(whole);
        let Requester { seen, held, .. } = *by;
        let is_coming = self.wrong.contains(&block);
        // Symbols being fetched already are newer than those that did not verify.
        let is_wrong = by.wrong && (is_coming || !self.fetches.wants(block));
        if is_wrong && self.end != End::No {
            return false; // nothing else can come, so the receiver is to learn that the session is over
        }
        let is_fetched = if is_wrong { !is_coming } else { self.cache.get(block).is_none() };
        if is_fetched && !self.may_fetch(branch) {
            return self.branches[branch].queue.add(block, symbols, is_wrong);
        }
        match is_wrong {
            true => self.fetch_again(branch, block, symbols),
            false => self.serve(branch, (block, symbols), seen, held),
        }
    }

    /// Fetches all of a block again, because its cached symbols did not verify on this branch, which waits for other symbols. Other
    /// branches are served from the cache until the first new symbol arrives.
    fn fetch_again(&mut self, branch: usize, block: u32, symbols: u16) -> bool {
        let all = self.cache.get(block).map_or(symbols, |stored| stored.symbols.max(symbols));
        let sends = self.branches[branch].schedule.await_at_least(block, symbols);
        if self.branches[branch].schedule.awaited(block) > 0 {
            self.fetches.want(block, all);
            self.wrong.insert(block);
        }
        sends
    }

    /// Send a branch symbols of a block, or fetch them first; whether anything will be sent that would not have been.
    fn serve(
        &mut self,
        branch: usize,
        (block, symbols): (u32, u16),
        seen: Seq,
        held: Option<&SymbolMap>,
    ) -> bool {
        if !self.fetches.wants(block) {
            self.branches[branch].schedule.awaits_at_most(block, 0);
        }
        let answer = self.branches[branch].schedule.request(&self.cache, block, symbols, seen, held);
        if answer.lacks > 0 {
            self.fetches.want(block, self.branches[branch].schedule.awaited(block));
        }
        answer.sends
    }

    /// Whether more may be fetched for this branch.
    fn may_fetch(&self, branch: usize) -> bool {
        let waiting = self.branches[branch].schedule.waiting();
        self.fetches.has_room(self.cache.room(), waiting)
    }

    /// Branches whose receivers wait have blocks fetched in turn.
    fn fetch_queued(&mut self) {
        let (branches, mut idle) = (self.branches.len(), 0);
        while idle < branches {
            self.turn = (self.turn + 1) % branches;
            let turn = self.turn;
            if self.branches[turn].queue.is_empty() || !self.may_fetch(turn) {
                idle += 1;
                continue;
            }
            idle = 0;
            let branch = &mut self.branches[turn];
            match branch.queue.pop().filter(|_| branch.tally.unfinished > 0) {
                Some((block, Queued { symbols, wrong: true })) => _ = self.fetch_again(turn, block, symbols),
                Some((block, Queued { symbols, wrong: false })) => {
                    // Only symbols requested here can be on their way.
                    self.serve(turn, (block, symbols), Seq(u64::MAX), None);
                }
                None => {}
            }
        }
    }

    fn pick(&mut self, branch: usize) -> Option<Pick> {
        self.branches[branch].schedule.pick(&self.cache)
    }

    /// A block cannot be read.
    fn lose(&mut self, block: u32) {
        self.cache.lose(block);
        self.branches.iter_mut().for_each(|branch| branch.schedule.on_gone(block));
    }

    fn sent(&mut self, branch: usize, pick: Pick, seq: Seq) {
        self.branches[branch].schedule.sent(pick, seq, &self.cache);
        if !pick.first && !self.branches[branch].queue.is_empty() {
            self.fetch_queued();
        }
    }

    /// Collects the needs to request upstream, by block: symbols that whole blocks lack, and symbols for which children wait.
    fn needs(&self, into: &mut Vec<(u32, u16)>) {
        into.extend(self.cache.incomplete().filter(|(block, _)| *block < self.passed));
        into.extend(self.fetches.iter());
        into.extend(self.wanted_pages.keys().map(|block| (*block, 0)));
        into.sort_unstable_by(|a, b| (a.0, b.1).cmp(&(b.0, a.1)));
        into.dedup_by_key(|(block, _)| *block);
    }

    /// Whether the symbols received for such a need did not verify downstream.
    fn is_wrong(&self, block: u32, symbols: u16) -> bool {
        match symbols {
            0 => self.wanted_pages.get(&block).is_some_and(|wrong| *wrong),
            _ => self.wrong.contains(&block),
        }
    }

    /// Whether all content has left the source once and no receiver downstream needs anything; `since`: when the session was joined.
    fn needs_nothing(&self, below: Tally, since: Time, now: Time) -> bool {
        let nobody = below.receivers == 0 && now.since(since) < LINGER;
        let all_passed = self.blocks.is_some_and(|blocks| self.passed >= blocks);
        let waits = self.confirmations.waits() || self.receipts_waiting() > 0;
        all_passed && below.unfinished == 0 && !waits && !nobody
    }
}

#[cfg(test)]
mod tests;
