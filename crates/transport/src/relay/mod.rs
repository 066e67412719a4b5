//! Relays: receivers of a session upstream, and sources of the same session downstream.
//!
//! ```text
//!   source or relay --> UpstreamReassembler --> RelayState (cache) --> DownstreamScheduler in a source's session --> children
//!                                                              \--> DownstreamScheduler ... --> children of another branch
//! ```
//!
//! A relay receives a session once, and sends it on each branch. The session's scheme determines a separate rate for each branch.
//! To the source, the relay and its children are one receiver. The relay repairs its children's losses from its cache, and
//! requests missing symbols upstream. Symbols of sealed sessions stay encrypted, because a relay has only the hop key.

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
use cache::{Added, Cache, Reason};
use faircast_core::packet::{Flags, ReceiverId, Seq, SessionId};
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

/// Duration without packets from the source after which a relay stops announcing its session, so that receivers can look for the
/// source elsewhere.
const UNFED: Span = Span::from_secs(2);

/// Duration for which a relay without children waits for a first child. Only after this time does the relay report that it needs
/// nothing.
const LINGER: Span = Span::from_secs(2);

/// Maximum number of hashes in a page that fits a datagram.
const MAX_PAGE_HASHES: u32 = 2_048;

/// Maximum number of relays between a source and a receiver. A packet that has passed more relays circulates in a loop.
pub const MAX_HOPS: u8 = RelayBelow::MAX_DEPTH;

/// Handle of a session at a relay, shared by the upstream and downstream endpoints.
#[derive(Debug, Clone)]
pub(crate) struct SessionHandle {
    passing: Arc<Mutex<RelayState>>,
    /// The relay process.
    process: RelayHandle,
    /// The relay's role within the session; `None` for a repeater.
    mode: Option<SharedMode>,
}

/// State of a relayed session.
#[derive(Debug)]
pub(crate) struct RelayState {
    /// The session ID, and the latest announcement from upstream.
    announce: Option<(SessionId, Announce)>,
    cache: Cache,
    /// Number of the first block that the source has not completely sent.
    passed: u32,
    blocks: Option<u32>,
    root: Option<Hash>,
    /// Number of files that the source has withdrawn. The next field lists these files.
    withdrawn: u32,
    withdrawals: Slices,
    end_proof: EndProof,
    /// Symbols to fetch from upstream.
    fetches: Fetches,
    /// Blocks that failed verification downstream and are fetched again. When the first new symbol of a block arrives, the old
    /// symbols of the block are removed from the cache.
    wrong: BTreeSet<u32>,
    /// The branch for which blocks were last fetched.
    turn: usize,
    /// Pages of hashes, by their first block.
    pages: BTreeMap<u32, Hashes>,
    /// Blocks whose page is to be fetched. The value states whether the stored page failed verification downstream.
    wanted_pages: BTreeMap<u32, bool>,
    branches: Vec<BranchState>,
    /// Children with current or earlier branches, by address. A different ID at the same address means a different process.
    served: BTreeMap<SocketAddr, ReceiverId>,
    /// Completed downstream receivers and the state of their report to the parent.
    confirmations: confirmations::Confirmations,
    /// The registry's count of attach packets when it was last checked.
    asked: u64,
    /// Warnings for the user.
    warnings: Vec<String>,
    /// Maximum number of bytes that are received but not yet sent on any branch. Beyond this number, the source must wait.
    max_ahead: Option<u64>,
    end: End,
    /// Arrival time of the last packet of the session from upstream.
    last_received_at: Time,
    /// Counters of an agent.
    agent_status: Option<AgentStatus>,
    /// Counters of an active router.
    hop_status: Option<HopStatus>,
    receipts: receipts::Keeping,
}

/// State of the upstream session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The session continues.
    No,
    /// The session has ended, and downstream receivers are notified of the end.
    Over,
    /// The session is lost, but downstream receivers may find it elsewhere.
    Lost,
}

/// State of a branch.
#[derive(Debug, Default)]
struct BranchState {
    schedule: Schedule,
    /// Requests for symbols that are neither cached nor being fetched.
    queue: Queue,
    /// Pages that wait to be sent.
    pages: BTreeSet<u32>,
    tally: Tally,
    /// Largest number of blocks that a receiver of the branch lacks; `None` without receivers.
    missing: Option<u32>,
    /// Receivers that the source has confirmed, but that `tally` does not count as known yet.
    known: Vec<ReceiverId>,
    to: Option<SocketAddr>,
    /// Rate that the scheme allows.
    rate: Rate,
    /// Number of the invitation, for an invited host.
    invitation: u64,
    /// ID of the served process.
    child: Option<ReceiverId>,
    /// Whether the branch must end, for example because the host has attached again.
    is_replaced: bool,
    /// Whether the endpoint has ended without serving a receiver, so that another child may take its place.
    is_vacant: bool,
    /// The downstream relays.
    relays: Vec<RelayBelow>,
}

impl SessionHandle {
    /// Creates a session without content, with `branches` branches and about `memory` bytes for symbols. Further symbols are
    /// stored in `room`.
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
            end_proof: EndProof::default(),
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

    /// Creates the handle of an agent or active router within the session, with `exits` exits.
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

    /// Sets the maximum number of bytes that are received but not yet sent on any branch. Further bytes would not fit in the
    /// cache, so the source must wait. The source has no other receiver than this relay.
    pub(crate) fn hold_above(&self, bytes: u64) {
        self.lock().max_ahead = Some(bytes);
    }

    /// Locks the state. Both sides run in one thread, one after the other.
    fn lock(&self) -> MutexGuard<'_, RelayState> {
        self.passing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the session; `lost` states that it may continue elsewhere.
    pub(crate) fn end(&self, lost: bool) {
        let mut passing = self.lock();
        if passing.end == End::No {
            passing.end = if lost { End::Lost } else { End::Over };
        }
    }

    /// Records that a packet of the session has arrived from upstream, or waits in the socket.
    pub(crate) fn note_received(&self, now: Time) {
        self.lock().last_received_at = now;
    }

    /// Returns the tally of all downstream receivers.
    #[cfg(test)]
    pub(crate) fn tally(&self) -> Tally {
        self.lock().tally()
    }

    /// Records that this process announces the session from this address.
    pub(crate) fn announces_from(&self, place: SocketAddr) {
        self.process.add_own(place);
    }

    /// Releases the session after all its endpoints have ended.
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

    /// Corrupts all cached symbols.
    #[cfg(test)]
    pub(crate) fn spoil(&self) {
        self.lock().cache.spoil();
    }

    /// Whether there are new symbols or pages to fetch. Nothing is fetched after the end of the upstream session.
    fn wants_more(&self) -> bool {
        let passing = self.lock();
        passing.end == End::No && passing.fetches.has_more
    }
}

impl BranchState {
    /// Whether the branch's host has attached but not joined. Such a host may be a relay that searches for another session.
    const fn serves_no_receiver(&self) -> bool {
        self.child.is_some() && self.tally.receivers == 0 && self.schedule.sent == 0
    }
}

impl RelayState {
    fn tally(&self) -> Tally {
        self.branches.iter().map(|branch| branch.tally).sum()
    }

    /// Passes confirmations of the source to the branches that have reported unconfirmed receivers.
    fn on_known(&mut self, ids: &[ReceiverId]) {
        let waiting = self.branches.iter_mut().filter(|branch| branch.tally.done > branch.tally.known);
        waiting.for_each(|branch| branch.known.extend(ids));
    }

    /// Records the newly completed receivers `fresh` of a branch. Returns the receivers of the branch that the source has
    /// confirmed. The caller must update the tally of the branch before it releases this state. The flag states whether all receivers are confirmed at once, because no source can confirm them.
    fn on_done(&mut self, branch: usize, fresh: &[ReceiverId], now: Time) -> (Vec<ReceiverId>, bool) {
        let known = fresh.iter().filter(|id| self.confirmations.add(**id)).copied();
        let known: Vec<ReceiverId> = self.branches[branch].known.drain(..).chain(known).collect();
        (known, self.answers_at_once(now))
    }

    /// Whether this relay confirms completed receivers at once, because no parent can confirm them.
    fn answers_at_once(&self, now: Time) -> bool {
        self.confirmations.confirms == Some(false) || self.end != End::No || !self.is_upstream_alive(now)
    }

    /// Whether the source must wait until the fastest branch with receivers has sent more.
    fn is_ahead(&self) -> bool {
        let (Some(most), Some((_, announce))) = (self.max_ahead, self.announce) else { return false };
        let received = self.branches.iter().filter(|branch| branch.tally.answering > 0);
        let Some(sent) = received.map(|branch| branch.schedule.complete_to()).max() else { return false };
        let block = u64::from(announce.symbols_per_block) * u64::from(announce.symbol_size);
        u64::from(self.passed.saturating_sub(sent)) * block > most
    }

    /// Whether packets from upstream have arrived recently, or the session has ended.
    fn is_upstream_alive(&self, now: Time) -> bool {
        self.end != End::No || now.since(self.last_received_at) < UNFED
    }

    /// Adds a symbol from upstream; returns the effect.
    fn on_symbol(&mut self, packet: &DataPacket<'_>) -> Added {
        let place = packet.data.payload;
        if self.wrong.remove(&place.block) {
            self.cache.lose(place.block);
            self.branches.iter_mut().for_each(|branch| branch.schedule.on_replaced(place.block));
        }
        let why = match self.fetches.wants(place.block) {
            true => Reason::Wanted,
            false if packet.data.flags.has(Flags::REPAIR) => Reason::Repair,
            false => Reason::Front,
        };
        let added = self.cache.add(place.block, packet.symbols, place.symbol, packet.payload, why);
        if added == Added::Useless {
            // Even if the cache does not need the symbol, it counts as an answer to a request: the parent does not know which
            // symbols are cached. A child that needs other symbols repeats its request.
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
            self.warnings.push(format!(
                "cannot write the cache file: {error}; symbols that do not fit in memory are dropped"
            ));
        }
        for block in moved.gone {
            self.branches.iter_mut().for_each(|branch| branch.schedule.on_gone(block));
        }
        if why == Reason::Wanted {
            self.fetch_queued();
        }
        added
    }

    fn on_status(&mut self, status: &Status) {
        let is_layered = self.announce.is_some_and(|(_, announce)| announce.layers > 1);
        if status.complete_to > self.passed.saturating_add(1) && !is_layered {
            // The first pass has ended within the block that it had reached.
            let reached = self.passed;
            self.cache.fetch_on_request(reached);
            self.branches.iter_mut().for_each(|branch| branch.schedule.on_skipped(reached));
        }
        self.passed = self.passed.max(status.complete_to);
        self.blocks = status.blocks.or(self.blocks);
        for Withdrawn { first_block, last_block, .. } in self.withdrawals.learn(status) {
            // New symbols of the block will have other content than the cached symbols.
            let last = (*last_block).min(self.blocks.unwrap_or(u32::MAX));
            self.cache.blocks_in(*first_block..=last).iter().for_each(|block| self.lose(*block));
        }
        if self.withdrawn != status.withdrawn_count() {
            // The known root hash is outdated: it was computed for another number of withdrawn files.
            (self.withdrawn, self.root, self.end_proof) =
                (status.withdrawn_count(), None, EndProof::default());
        }
        if let Some(root) = status.root {
            self.root = Some(Hash(root));
            self.end_proof.proof = status.proof.or(self.end_proof.proof);
            self.end_proof.signature = status.root_signature.or(self.end_proof.signature);
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

    /// Stores a received page, and schedules it for all branches.
    fn on_page(&mut self, page: &Hashes) {
        let blocks = page.first_block..page.first_block.saturating_add(page.hashes.len() as u32);
        self.wanted_pages.retain(|block, _| !blocks.contains(block));
        // Remove overlapping pages: the relay cannot verify pages, and a forged page must not block later ones.
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

    /// Handles a request for pages on a branch. A page that failed verification at a receiver of the branch is fetched again, and
    /// then sent on all branches.
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

    /// Whether the source has already sent this block.
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
        // Symbols that are being fetched are newer than the symbols that failed verification.
        let is_wrong = by.wrong && (is_coming || !self.fetches.wants(block));
        if is_wrong && self.end != End::No {
            return false; // no other symbols can arrive; the receiver is to be notified of the end
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

    /// Fetches all symbols of a block again, because its cached symbols failed verification downstream of this branch. Until the
    /// first new symbol arrives, other branches are served from the cache.
    fn fetch_again(&mut self, branch: usize, block: u32, symbols: u16) -> bool {
        let all = self.cache.get(block).map_or(symbols, |stored| stored.symbols.max(symbols));
        let sends = self.branches[branch].schedule.await_at_least(block, symbols);
        if self.branches[branch].schedule.awaited(block) > 0 {
            self.fetches.want(block, all);
            self.wrong.insert(block);
        }
        sends
    }

    /// Schedules cached symbols of a block on a branch, and fetches missing symbols from the parent. Returns whether this has
    /// scheduled additional symbols.
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

    /// Whether another block may be fetched for this branch.
    fn may_fetch(&self, branch: usize) -> bool {
        let waiting = self.branches[branch].schedule.waiting();
        self.fetches.has_room(self.cache.room(), waiting)
    }

    /// Fetches blocks that branches have queued, one branch after another.
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
                    // The receiver is assumed to have seen all sent packets. So only symbols that wait to be sent count as
                    // expected.
                    self.serve(turn, (block, symbols), Seq(u64::MAX), None);
                }
                None => {}
            }
        }
    }

    fn pick(&mut self, branch: usize) -> Option<Pick> {
        self.branches[branch].schedule.pick(&self.cache)
    }

    /// Evicts a block that cannot be read, or has changed.
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

    /// Collects the requests to send upstream, by block. Requests are for symbols that complete a block, for symbols that
    /// children need, and for pages.
    fn needs(&self, into: &mut Vec<(u32, u16)>) {
        into.extend(self.cache.incomplete().filter(|(block, _)| *block < self.passed));
        into.extend(self.fetches.iter());
        into.extend(self.wanted_pages.keys().map(|block| (*block, 0)));
        into.sort_unstable_by(|a, b| (a.0, b.1).cmp(&(b.0, a.1)));
        into.dedup_by_key(|(block, _)| *block);
    }

    /// Whether the symbols received for a block, or its page, failed verification downstream.
    fn is_wrong(&self, block: u32, symbols: u16) -> bool {
        match symbols {
            0 => self.wanted_pages.get(&block).is_some_and(|wrong| *wrong),
            _ => self.wrong.contains(&block),
        }
    }

    /// Returns the number of blocks that downstream receivers lack, for the report to the parent; `most` is the largest number of
    /// one receiver. If all members of the source lack few blocks, the source sends only what is requested. A relay that joined
    /// the session at `since` and still waits for its first child lacks all blocks.
    fn missing(&self, most: Option<u32>, since: Time, now: Time) -> u32 {
        let Some(blocks) = self.blocks else { return u32::MAX };
        most.map_or(if now.since(since) < LINGER { blocks } else { 0 }, |most| most.min(blocks))
    }

    /// Whether the source has sent all content and no downstream receiver needs data. `since` is the time at which the relay
    /// joined the session.
    fn needs_nothing(&self, below: Tally, since: Time, now: Time) -> bool {
        let nobody = below.receivers == 0 && now.since(since) < LINGER;
        let all_passed = self.blocks.is_some_and(|blocks| self.passed >= blocks);
        let waits = self.confirmations.waits() || self.receipts_waiting() > 0;
        // Until a branch has counted its confirmed receivers as known, the tally and the reported IDs contain the same receivers.
        let counts_twice = self.branches.iter().any(|branch| !branch.known.is_empty());
        all_passed && below.unfinished == 0 && !waits && !counts_twice && !nobody
    }
}

#[cfg(test)]
mod tests;
