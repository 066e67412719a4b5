//! Relays: a member of a session above, and sources of the same session below.
//!
//! ```text
//!   source or relay --> Above (a receiver that keeps symbols) --> Passing --> Below (delivers) in a source's session --> children
//!                                                               (cache)  \--> Below ... --> children of another branch
//! ```
//!
//! A relay hears a session once and passes it on in branches, each at a rate of its own by the session's own scheme: to the
//! source all of them together are one receiver. What its children lack it sends again from what it has kept; what it does not
//! have any more it asks for above. Symbols of sealed sessions stay sealed: a relay holds the hop key alone.

mod above;
mod below;
mod branch;
mod cache;
mod children;
mod config;
mod confirmations;
mod fetches;
mod hosts;
mod listen;
mod receipts;
mod registry;
mod role;
mod schedule;
mod upstream;
mod within;

use above::Above;
pub(crate) use branch::{Branch, BranchSetup};
pub use config::{Forwarding, RelayBranch, RelayConfig, RelayEvent, RelayRole, RelaySource, RouterKind};
pub(crate) use registry::Child;
pub use registry::{AgentStatus, BranchStatus, HopStatus, RelayHandle, RelayStatus, RelayedSession};
pub use upstream::Upstream;
pub(crate) use within::{Within, needs::Needs};

use crate::event::RelayBelow;
use crate::members::Tally;
use crate::object::Hash;
use crate::object::gather::spill::Room;
use crate::source::scheduler::{Asker, Said};
use crate::withdrawals::Slices;
use cache::{Added, Cache};
use faircast_core::packet::{ReceiverId, Seq, SessionId};
use faircast_core::time::{Rate, Span, Time};
use faircast_wire::{Announce, DataPacket, Hashes, Held, Status, Withdrawn};
use fetches::{Fetches, Queue, Queued};
use schedule::{Pick, Schedule};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use within::Inside;

/// Pages of hashes that are kept.
const MOST_PAGES: usize = 16_384;

/// And so many of them are fetched at a time.
const MOST_WANTED_PAGES: usize = 256;

/// A relay that has not heard its source for so long announces its session to nobody new: a source that is heard no more for so long may
/// be somewhere else, for receivers too.
const UNFED: Span = Span::from_secs(2);

/// A relay with nobody below waits this long for somebody before it says that it needs nothing.
const LINGER: Span = Span::from_secs(2);

/// No datagram holds a page of more hashes.
const LONGEST_PAGE: u32 = 2_048;

/// More relays than this are not between a source and a receiver: what comes through more goes round.
pub const MOST_HOPS: u8 = RelayBelow::DEEPEST;

/// One session at a relay, as both sides see it.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    passing: Arc<Mutex<Passing>>,
    /// The process that it is part of.
    process: RelayHandle,
    /// What the relay is within the session, where it does not end it.
    inside: Option<Inside>,
}

/// A session that is passed on.
#[derive(Debug)]
pub(crate) struct Passing {
    /// What is announced above.
    announce: Option<(SessionId, Announce)>,
    cache: Cache,
    /// All source symbols of the blocks below this have left the source once.
    passed: u32,
    blocks: Option<u32>,
    root: Option<Hash>,
    /// How many files the source has withdrawn, and which.
    withdrawn: u32,
    withdrawals: Slices,
    said: Said,
    /// Symbols to fetch from above.
    fetches: Fetches,
    /// Blocks that did not verify below and are fetched again: the next symbol of each replaces what is here.
    wrong: BTreeSet<u32>,
    /// The branch whose turn it is to have something fetched.
    turn: usize,
    /// Pages of hashes, by their first block.
    pages: BTreeMap<u32, Hashes>,
    /// Blocks whose page is to be fetched, and whether it is because the page that is here did not verify below.
    wanted_pages: BTreeMap<u32, bool>,
    branches: Vec<BranchState>,
    /// Children that are, or were, branches, by address; the same address with another number is another process.
    served: BTreeMap<SocketAddr, ReceiverId>,
    /// Receivers below that have everything, as they are reported above.
    confirmations: confirmations::Confirmations,
    /// How often children had asked when they were last looked at.
    asked: u64,
    /// What people should know.
    warnings: Vec<String>,
    /// The source waits while so many bytes have come that no branch has sent.
    most_ahead: Option<u64>,
    end: End,
    /// When something of the session last came from above.
    heard_at: Time,
    /// What an agent says of itself.
    agent_status: Option<AgentStatus>,
    /// And a hop.
    hop_status: Option<HopStatus>,
    receipts: receipts::Keeping,
}

/// Whether the session above goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It does.
    No,
    /// It is over, and those below are told so.
    Over,
    /// It is lost: those below may find it again elsewhere.
    Lost,
}

/// One branch.
#[derive(Debug, Default)]
struct BranchState {
    schedule: Schedule,
    /// What is not here, and not fetched yet.
    queue: Queue,
    /// Pages that wait to leave.
    pages: BTreeSet<u32>,
    tally: Tally,
    /// Receivers that are known above since the branch was last asked.
    known: Vec<ReceiverId>,
    to: Option<SocketAddr>,
    /// What its scheme allows.
    rate: Rate,
    /// Of a host that was invited: the invitation's number.
    invitation: u64,
    /// The process that it serves.
    child: Option<ReceiverId>,
    /// The host has come again, and this branch is over.
    is_replaced: bool,
    /// Its endpoint is gone and has served nobody: another child may have the place.
    is_vacant: bool,
    /// The relays below.
    relays: Vec<RelayBelow>,
}

impl Shared {
    /// A session that nothing is known of yet, with so many branches and about `memory` bytes for symbols; the others go to
    /// `room`.
    pub(crate) fn new(process: RelayHandle, branches: usize, memory: usize, room: Option<Room>) -> Shared {
        let branches = (0..branches).map(|_| BranchState::default()).collect();
        let passing = Passing {
            announce: None,
            cache: Cache::new(memory, room),
            passed: 0,
            blocks: None,
            root: None,
            withdrawn: 0,
            withdrawals: Slices::default(),
            said: Said::default(),
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
            most_ahead: None,
            end: End::No,
            heard_at: Time::ZERO,
            agent_status: None,
            hop_status: None,
            receipts: receipts::Keeping::default(),
        };
        Shared { passing: Arc::new(Mutex::new(passing)), process, inside: None }
    }

    /// The same of a node inside the session, with this number of exits.
    pub(crate) fn of_within(process: RelayHandle, node: Arc<Mutex<dyn Within>>, exits: usize) -> Shared {
        Shared { inside: Some(Inside::new(node)), ..Shared::new(process, exits, 0, None) }
    }

    /// Do this with what the relay is within the session.
    pub(crate) fn with_inside<T>(&self, act: impl FnOnce(&mut dyn Within) -> T) -> Option<T> {
        self.inside.as_ref().map(|inside| inside.with(act))
    }

    /// From whom the session is heard that is passed on now.
    pub(crate) fn parent(&self) -> Option<SocketAddr> {
        let passing = self.lock();
        passing.announce.filter(|_| passing.end == End::No).map(|(_, announce)| announce.parent)
    }

    /// Nobody else hears the source: it is held back while so many bytes have come that no branch has sent on yet. What comes sooner
    /// would not be kept.
    pub(crate) fn hold_above(&self, bytes: u64) {
        self.lock().most_ahead = Some(bytes);
    }

    /// Both sides run in one thread, one after the other.
    fn lock(&self) -> MutexGuard<'_, Passing> {
        self.passing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session above is over; `lost`: it may go on elsewhere.
    pub(crate) fn end(&self, lost: bool) {
        let mut passing = self.lock();
        if passing.end == End::No {
            passing.end = if lost { End::Lost } else { End::Over };
        }
    }

    /// Something of the session has come from above, or waits to be read.
    pub(crate) fn note_heard(&self, now: Time) {
        self.lock().heard_at = now;
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

    /// How it is; `None` before there is a session.
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
            branches: passing.branches.iter().filter(|one| !one.serves_nobody()).map(branch).collect(),
            agent: passing.agent_status,
            hop: passing.hop_status,
        })
    }

    /// All cached symbols become wrong.
    #[cfg(test)]
    pub(crate) fn spoil(&self) {
        self.lock().cache.spoil();
    }

    /// Whether something is to be fetched from above that was not before. Nobody fetches once the session there is over.
    fn wants_more(&self) -> bool {
        let passing = self.lock();
        passing.end == End::No && passing.fetches.has_more
    }
}

impl BranchState {
    /// A host that has asked and takes no part: a relay that looks for its next session, say, and has this one already.
    const fn serves_nobody(&self) -> bool {
        self.child.is_some() && self.tally.receivers == 0 && self.schedule.sent == 0
    }
}

impl Passing {
    fn tally(&self) -> Tally {
        self.branches.iter().map(|branch| branch.tally).sum()
    }

    /// What a branch is told, whose receivers `fresh` have become done: which of its receivers the source knows, and whether they need
    /// not wait for that. When the source is not heard, they have everything all the same.
    fn on_done(&mut self, branch: usize, fresh: &[ReceiverId], now: Time) -> (Vec<ReceiverId>, bool) {
        let known = fresh.iter().filter(|id| self.confirmations.add(**id)).copied();
        let known: Vec<ReceiverId> = self.branches[branch].known.drain(..).chain(known).collect();
        (known, self.answers_at_once(now))
    }

    /// Whether nobody is heard above who would confirm who is done.
    fn answers_at_once(&self, now: Time) -> bool {
        self.confirmations.confirms == Some(false) || self.end != End::No || !self.is_fed(now)
    }

    /// Whether enough has come for the fastest of the branches that are heard.
    fn is_ahead(&self) -> bool {
        let (Some(most), Some((_, announce))) = (self.most_ahead, self.announce) else { return false };
        let heard = self.branches.iter().filter(|branch| branch.tally.answering > 0);
        let Some(sent) = heard.map(|branch| branch.schedule.complete_to()).max() else { return false };
        let block = u64::from(announce.symbols_per_block) * u64::from(announce.symbol_size);
        u64::from(self.passed.saturating_sub(sent)) * block > most
    }

    /// Whether the session above goes on as far as is known, or has ended in good order.
    fn is_fed(&self, now: Time) -> bool {
        self.end != End::No || now.since(self.heard_at) < UNFED
    }

    /// A symbol has come from above: whether it is of use.
    fn on_symbol(&mut self, packet: &DataPacket<'_>) -> Added {
        let place = packet.data.payload;
        if self.wrong.remove(&place.block) {
            self.cache.lose(place.block);
            self.branches.iter_mut().for_each(|branch| branch.schedule.on_replaced(place.block));
        }
        let wanted = self.fetches.wants(place.block);
        let added = self.cache.add(place.block, packet.symbols, place.symbol, packet.payload, wanted);
        if added == Added::Useless {
            // It may be the answer all the same: the source does not know which symbols are here. Who waits for others asks again.
            self.fetches.on_symbol(place.block);
            let left = self.fetches.left(place.block);
            self.branches.iter_mut().for_each(|branch| branch.schedule.awaits_at_most(place.block, left));
            return added;
        }
        self.fetches.on_symbol(place.block);
        if let Some(kept) = self.cache.get(place.block) {
            self.branches.iter_mut().for_each(|branch| branch.schedule.on_symbol(place.block, kept));
        }
        let branches = &self.branches;
        let moved = self.cache.make_room(|block, _| {
            branches.iter().map(|branch| branch.schedule.next_use(block)).min().unwrap_or(u32::MAX)
        });
        if let Some(error) = moved.failed {
            self.warnings.push(format!(
                "the cache's file takes no more, what memory has no room for is let go: {error}"
            ));
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
            // Symbols that come from now on have another content than those that are here.
            let last = (*last_block).min(self.blocks.unwrap_or(u32::MAX));
            self.cache.blocks_in(*first_block..=last).iter().for_each(|block| self.lose(*block));
        }
        if self.withdrawn != status.withdrawn_count() {
            // The root that is known covers another number of files.
            (self.withdrawn, self.root, self.said) = (status.withdrawn_count(), None, Said::default());
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
        // What nobody here can verify must not stand in the way of what comes later.
        let near = self.pages.range(blocks.start.saturating_sub(LONGEST_PAGE)..blocks.end);
        let overlapping = near.filter(|(first, known)| {
            **first != blocks.start && blocks.start < first.saturating_add(known.hashes.len() as u32)
        });
        let overlapping: Vec<u32> = overlapping.map(|(first, _)| *first).collect();
        overlapping.iter().for_each(|first| drop(self.pages.remove(first)));
        if self.pages.len() < MOST_PAGES || self.pages.contains_key(&page.first_block) {
            self.pages.insert(page.first_block, page.clone());
            for branch in &mut self.branches {
                branch.pages.insert(page.first_block);
            }
        }
    }

    /// Somebody on a branch asks for pages. A page that did not verify there is fetched again, and goes to everybody when it comes.
    fn request_pages(&mut self, branch: usize, first: u32, run: u32, by: &Asker<'_>) {
        for block in first..first.saturating_add(run) {
            let known = self.pages.range(..=block).next_back();
            let known = known.filter(|(first, page)| block - **first < page.hashes.len() as u32);
            if let (Some((first, _)), false) = (known, by.wrong) {
                self.branches[branch].pages.insert(*first);
            } else if self.wanted_pages.len() < MOST_WANTED_PAGES && self.is_known(block) {
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

    /// Somebody on a branch lacks symbols.
    fn request(&mut self, branch: usize, block: u32, symbols: u16, by: &Asker<'_>) -> bool {
        if !self.is_known(block) {
            return false;
        }
        let whole = self.announce.map_or(u16::MAX, |(_, announce)| announce.symbols_per_block);
        let symbols = symbols.min(whole);
        let Asker { seen, held, .. } = *by;
        let is_coming = self.wrong.contains(&block);
        // What is fetched already is newer than what did not verify.
        let is_wrong = by.wrong && (is_coming || !self.fetches.wants(block));
        if is_wrong && self.end != End::No {
            return false; // nothing else can come, so the receiver is to learn that the session is over
        }
        let is_fetched = if is_wrong { !is_coming } else { self.cache.get(block).is_none() };
        if is_fetched && !self.may_fetch(branch) {
            return self.branches[branch].queue.add(block, symbols, is_wrong);
        }
        match is_wrong {
            true => self.fetch_anew(branch, block, symbols),
            false => self.serve(branch, (block, symbols), seen, held),
        }
    }

    /// What is here of a block did not verify on this branch, which waits for other symbols: all of the block is fetched again. Others
    /// are served with what is here until the first symbol comes.
    fn fetch_anew(&mut self, branch: usize, block: u32, symbols: u16) -> bool {
        let all = self.cache.get(block).map_or(symbols, |kept| kept.symbols.max(symbols));
        let sends = self.branches[branch].schedule.await_at_least(block, symbols);
        if self.branches[branch].schedule.awaited(block) > 0 {
            self.fetches.want(block, all);
            self.wrong.insert(block);
        }
        sends
    }

    /// Send a branch symbols of a block, or fetch them first; whether anything will be sent that would not have been.
    fn serve(&mut self, branch: usize, (block, symbols): (u32, u16), seen: Seq, held: Option<&Held>) -> bool {
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
                Some((block, Queued { symbols, wrong: true })) => _ = self.fetch_anew(turn, block, symbols),
                Some((block, Queued { symbols, wrong: false })) => {
                    // Nothing of it can be on its way that was not asked for here.
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

    /// What to ask for above, by block: what whole blocks lack, and what those below wait for.
    fn needs(&self, into: &mut Vec<(u32, u16)>) {
        into.extend(self.cache.incomplete().filter(|(block, _)| *block < self.passed));
        into.extend(self.fetches.iter());
        into.extend(self.wanted_pages.keys().map(|block| (*block, 0)));
        into.sort_unstable_by(|a, b| (a.0, b.1).cmp(&(b.0, a.1)));
        into.dedup_by_key(|(block, _)| *block);
    }

    /// Whether what has come of such a need did not verify below.
    fn is_wrong(&self, block: u32, symbols: u16) -> bool {
        match symbols {
            0 => self.wanted_pages.get(&block).is_some_and(|wrong| *wrong),
            _ => self.wrong.contains(&block),
        }
    }

    /// Whether all content has left the source once, and nobody of these below needs anything, `since` when the session is followed.
    fn needs_nothing(&self, below: Tally, since: Time, now: Time) -> bool {
        let nobody = below.receivers == 0 && now.since(since) < LINGER;
        let all_passed = self.blocks.is_some_and(|blocks| self.passed >= blocks);
        let waits = self.confirmations.waits() || self.receipts_waiting() > 0;
        all_passed && below.unfinished == 0 && !waits && !nobody
    }
}

#[cfg(test)]
mod tests;
