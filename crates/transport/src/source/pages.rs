//! Signed content at the source: schedule of the pages of hashes (docs/design/security.md).
//!
//! A page contains the hashes of consecutive blocks. It is sent at about the same time as its blocks, and again on request.
//! Blocks are grouped into *cells* of as many blocks as fit a page, and a page does not cross the edge of a cell. A receiver that
//! requests the hash of one block therefore gets the hashes of neighboring blocks too.

use super::scheduler::Scheduler;
use crate::error::Error;
use crate::withdrawals::Slice;
use faircast_core::time::{Rate, Span, Time};
use faircast_wire::encode::max_hashes;
use faircast_wire::{Announce, Hashes, Signature, Signed, SigningKey};
use std::collections::{BTreeMap, BTreeSet};

/// Interval of checks for new hashes.
const LOOK_EVERY: Span = Span::from_millis(10);

/// Duration for which new hashes wait for the other hashes of their cell. Hashes of live streams do not wait.
const GATHER: Span = Span::from_millis(100);

/// Minimum interval between two pages of a cell, because several receivers may request the same cell.
const ONCE_IN: Span = Span::from_millis(50);

/// Repeated pages take at most the rate divided by this number.
const PART: u64 = 20;

/// The pages of one session.
pub(super) struct Pages {
    key: SigningKey,
    about: Signed,
    /// Number of blocks per cell.
    cell: u32,
    /// Number of the first hash that has not been sent yet.
    pushed_to: u32,
    waiting_since: Option<Time>,
    look_at: Time,
    /// Requested cells.
    asked: BTreeSet<u32>,
    /// Number of withdrawn files at the time of signing.
    withdrawn: usize,
    /// Earliest time of the next repeated page.
    repeat_at: Time,
    /// Signed pages by cell.
    signed: BTreeMap<u32, Page>,
    root: Option<((u32, u32), [u8; 32], Signature)>,
}

/// The latest page of a cell.
#[derive(Clone, Copy)]
struct Page {
    first: u32,
    count: u32,
    signature: Signature,
    sent_at: Time,
}

impl Pages {
    /// Creates the pages of the session that `about` describes, for datagrams of `datagram` bytes.
    pub(super) fn new(key: SigningKey, about: Signed, datagram: usize) -> Pages {
        Pages {
            key,
            about,
            cell: max_hashes(datagram).max(1) as u32,
            pushed_to: 0,
            waiting_since: None,
            look_at: Time::ZERO,
            asked: BTreeSet::new(),
            withdrawn: 0,
            repeat_at: Time::ZERO,
            signed: BTreeMap::new(),
            root: None,
        }
    }

    /// Schedules all pages that were sent again. Used without feedback, where receivers cannot request pages.
    pub(super) fn repeat_all(&mut self) {
        if self.asked.is_empty() {
            self.asked.extend(0..self.pushed_to.div_ceil(self.cell));
        }
    }

    /// Signs an announcement of this session.
    pub(super) fn sign(&self, announce: &mut Announce) -> Result<(), Error> {
        Ok(announce.sign(self.about.session, &self.key)?)
    }

    /// Returns a signature that covers a root hash, the number of blocks and the number of withdrawn files.
    pub(super) fn sign_root(&mut self, of: (u32, u32), root: [u8; 32]) -> Signature {
        match self.root {
            Some((signed, known, signature)) if (signed, known) == (of, root) => signature,
            _ => {
                let signature = self.key.sign_root(&self.about, of.0, of.1, &root);
                self.root = Some((of, root, signature));
                signature
            }
        }
    }

    /// Returns the signature of a part of the list of withdrawn files.
    pub(super) fn sign_withdrawals(&self, slice: &Slice) -> Signature {
        self.key.sign_withdrawals(&self.about, slice.first, &slice.files)
    }

    /// Returns the time of the next call of [`Pages::next`].
    pub(super) fn deadline(&self) -> Time {
        let repeat_at = if self.asked.is_empty() { Time::NEVER } else { self.repeat_at };
        self.look_at.min(repeat_at)
    }

    /// Handles a request for the hashes of `run` blocks, starting at block `first`.
    pub(super) fn request(&mut self, first: u32, run: u32, scheduler: &dyn Scheduler, now: Time) {
        let last = first.saturating_add(run.saturating_sub(1));
        for cell in first / self.cell..=last / self.cell {
            let blocks = cell.saturating_mul(self.cell).max(first)..=last;
            // Blocks without a known hash are ignored: a receiver that has requested a page too early repeats its request.
            let mut of_cell = blocks.take(self.cell as usize);
            let is_known = of_cell.any(|block| block / self.cell == cell && scheduler.hash(block).is_some());
            let just_sent = self.signed.get(&cell).is_some_and(|page| now.since(page.sent_at) < ONCE_IN);
            if is_known && !just_sent {
                self.asked.insert(cell);
            }
        }
    }

    /// Returns the page to send now, if any.
    pub(super) fn next(&mut self, scheduler: &dyn Scheduler, now: Time) -> Option<Hashes> {
        // Withdrawn files change the hashes of their blocks, so all signatures are obsolete.
        let withdrawn = scheduler.withdrawn().len();
        if std::mem::replace(&mut self.withdrawn, withdrawn) != withdrawn {
            self.signed.clear();
        }
        if self.look_at <= now {
            if let Some(page) = self.fresh(scheduler, now) {
                return Some(page);
            }
            self.look_at = now + LOOK_EVERY;
        }
        while self.repeat_at <= now {
            let cell = self.asked.pop_first()?;
            let blocks = cell * self.cell..cell.saturating_add(1).saturating_mul(self.cell);
            let void = |block: &u32| scheduler.layout().is_some_and(|layout| layout.is_void(*block));
            let known = |block: &u32| scheduler.hash(*block).is_some() && !void(block);
            let Some(first) = blocks.clone().find(known) else { continue };
            let count = (first..blocks.end).take_while(known).count() as u32;
            return Some(self.page(first, count, scheduler, now));
        }
        None
    }

    /// Records that a page of `len` bytes was written while the session sends at `rate`.
    pub(super) fn sent(&mut self, len: usize, rate: Rate, now: Time) {
        self.repeat_at = now + rate.span_of(len as u64 * PART).min(Span::from_secs(1));
    }

    /// Returns a page of unsent hashes, if they fill a cell or have waited long enough.
    fn fresh(&mut self, scheduler: &dyn Scheduler, now: Time) -> Option<Hashes> {
        let oldest = scheduler.status().oldest;
        if oldest > self.pushed_to {
            self.pushed_to = oldest;
            self.signed = self.signed.split_off(&(oldest / self.cell));
        }
        // Nobody needs the hashes of blocks in holes.
        let void = |block: &u32| scheduler.layout().is_some_and(|layout| layout.is_void(*block));
        while void(&self.pushed_to) {
            self.pushed_to += 1;
        }
        let first = self.pushed_to;
        let room = self.cell - first % self.cell;
        let is_next = |block: &u32| scheduler.hash(*block).is_some() && !void(block);
        let count = (first..first.saturating_add(room)).take_while(is_next).count() as u32;
        let room = if void(&(first + count)) { count } else { room };
        if count == 0 {
            self.waiting_since = None;
            return None;
        }
        let since = *self.waiting_since.get_or_insert(now);
        if count < room && !scheduler.is_live() && !scheduler.is_drained() && now.since(since) < GATHER {
            return None;
        }
        self.pushed_to += count;
        self.waiting_since = None;
        Some(self.page(first, count, scheduler, now))
    }

    fn page(&mut self, first: u32, count: u32, scheduler: &dyn Scheduler, now: Time) -> Hashes {
        let hashes: Vec<[u8; 32]> =
            (first..first + count).filter_map(|block| scheduler.hash(block)).map(|hash| hash.0).collect();
        let stored =
            self.signed.get(&(first / self.cell)).filter(|page| (page.first, page.count) == (first, count));
        let signature = match stored {
            Some(page) => page.signature,
            None => self.key.sign_page(&self.about, first, &hashes),
        };
        self.signed.insert(first / self.cell, Page { first, count, signature, sent_at: now });
        Hashes { first_block: first, signature, hashes }
    }
}
