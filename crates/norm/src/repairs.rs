//! Requests for repairs: collected for a while, then answered in the order of the content (RFC 5740, 5.4).

use super::codec::{Form, PayloadId, Request, Requests, request_flags};
use super::files::{Object, PARITY};
use faircast_core::time::{Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Maximum number of blocks and of names with pending repairs, and maximum number of blocks that one NACK adds. Receivers repeat
/// requests beyond these limits.
pub(super) const MAX_PENDING: usize = 16_384;
const MAX_PER_NACK: usize = 4_096;

/// A block: number of its object, and its number.
type BlockKey = (usize, u32);

/// Positions before and after all symbols of an object.
const START: PayloadId = PayloadId { block: 0, symbol: 0 };
const END: PayloadId = PayloadId { block: u32::MAX, symbol: u8::MAX };

/// A packet that repairs something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repair {
    /// The name of an object.
    Info(usize),
    /// A symbol.
    Symbol(usize, PayloadId),
}

/// The pending repairs.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    blocks: BTreeMap<BlockKey, Need>,
    infos: BTreeSet<usize>,
    /// Time from which repairs are sent: requests of other receivers for the same blocks arrive before.
    begin_at: Option<Time>,
    repaired: BTreeMap<BlockKey, Repaired>,
}

/// The requested symbols of a block.
#[derive(Debug, Clone, Copy, Default)]
struct Need {
    /// Bit `n`: symbol `n` is requested.
    symbols: [u128; 2],
    /// Number of requested symbols of any number.
    erasures: u8,
}

impl Need {
    /// Returns the symbols of a range.
    fn of(symbols: RangeInclusive<u8>) -> Need {
        let mut need = Need::default();
        symbols.for_each(|symbol| need.symbols[usize::from(symbol >> 7)] |= 1 << (symbol & 127));
        need
    }

    fn join(&mut self, other: Need) {
        self.symbols[0] |= other.symbols[0];
        self.symbols[1] |= other.symbols[1];
        self.erasures = self.erasures.max(other.erasures);
    }

    fn take(&mut self) -> Option<u8> {
        let half = self.symbols.iter().position(|half| *half != 0)?;
        let bit = self.symbols[half].trailing_zeros();
        self.symbols[half] &= self.symbols[half] - 1;
        Some((half as u32 * 128 + bit) as u8)
    }

    fn is_empty(&self) -> bool {
        self.symbols == [0; 2] && self.erasures == 0
    }
}

/// The latest repair of a block.
#[derive(Debug, Clone, Copy)]
struct Repaired {
    at: Time,
    /// Number of the parity symbol that the next count of erasures gets.
    parity: u8,
}

impl Repairs {
    /// Adds the requests of a NACK. `object_of` returns the index of an object that has been sent, by its number. `sent` is the first
    /// block that has not been sent completely. Requests for a block that was repaired less than `holdoff` ago are ignored: they
    /// precede the arrival of the repair.
    pub(super) fn add(
        &mut self,
        requests: Requests<'_>,
        object_of: impl Fn(u16) -> Option<usize>,
        objects: &[Object],
        sent: BlockKey,
        (now, holdoff): (Time, Span),
    ) {
        let mut left = MAX_PER_NACK;
        for request in requests.iter() {
            for (first, last) in request.ranges() {
                let (Some(from), Some(to)) = (object_of(first.object), object_of(last.object)) else {
                    continue;
                };
                for (object, described) in objects.iter().enumerate().take(to + 1).skip(from) {
                    if left == 0 {
                        return;
                    }
                    left -= 1;
                    let is_info = request.flags & (request_flags::INFO | request_flags::OBJECT) != 0;
                    if is_info && self.infos.len() < MAX_PENDING {
                        self.infos.insert(object);
                    }
                    let from = if object > from { START } else { first.id };
                    let to = if object < to { END } else { last.id };
                    for (block, wanted) in wanted(&request, described, from, to) {
                        let key = (object, block);
                        if left == 0 || key >= sent {
                            break;
                        }
                        left -= 1;
                        if !wanted.is_empty() && self.may_add(key, now, holdoff) {
                            self.blocks.entry(key).or_default().join(wanted);
                        }
                    }
                }
            }
        }
    }

    fn may_add(&self, key: BlockKey, now: Time, holdoff: Span) -> bool {
        let is_new = self.repaired.get(&key).is_none_or(|repaired| now.since(repaired.at) >= holdoff);
        is_new && (self.blocks.len() < MAX_PENDING || self.blocks.contains_key(&key))
    }

    /// Returns whether no repairs are pending.
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.infos.is_empty()
    }

    /// Schedules the repairs that have been added, if none were pending before.
    pub(super) fn schedule(&mut self, at: Time) {
        if !self.is_empty() {
            self.begin_at.get_or_insert(at);
        }
    }

    /// Returns the time from which repairs are sent; `None` without pending repairs.
    pub(super) fn begin_at(&self) -> Option<Time> {
        self.begin_at
    }

    /// Returns the next repair, if repairs are sent now.
    pub(super) fn peek(&self, objects: &[Object], now: Time) -> Option<Repair> {
        self.begin_at.filter(|at| *at <= now)?;
        let block = self.blocks.first_key_value();
        if let Some(&object) = self.infos.first()
            && block.is_none_or(|((other, _), _)| object <= *other)
        {
            return Some(Repair::Info(object));
        }
        let (&(object, block), &(mut need)) = block?;
        let parity = || {
            let used = self.repaired.get(&(object, block)).map_or(0, |repaired| repaired.parity);
            objects[object].block_len(block) + used % PARITY
        };
        let symbol = need.take().unwrap_or_else(parity);
        Some(Repair::Symbol(object, PayloadId { block, symbol }))
    }

    /// Removes the repair that [`Repairs::peek`] has returned, because it is sent.
    pub(super) fn sent(&mut self, repair: Repair, now: Time) {
        match repair {
            Repair::Info(object) => {
                self.infos.remove(&object);
            }
            Repair::Symbol(object, PayloadId { block, .. }) => {
                let key = (object, block);
                if self.repaired.len() >= MAX_PENDING && !self.repaired.contains_key(&key) {
                    self.repaired.pop_first();
                }
                let repaired = self.repaired.entry(key).or_insert(Repaired { at: now, parity: 0 });
                repaired.at = now;
                if let Some(need) = self.blocks.get_mut(&key) {
                    if need.take().is_none() {
                        need.erasures = need.erasures.saturating_sub(1);
                        repaired.parity = (repaired.parity + 1) % PARITY;
                    }
                    if need.is_empty() {
                        self.blocks.remove(&key);
                    }
                }
            }
        }
        if self.is_empty() {
            self.begin_at = None;
        }
    }
}

/// Returns the blocks of an object that a request names from one position to another, and the requested symbols of each block.
fn wanted<'a>(
    request: &Request<'_>,
    object: &'a Object,
    from: PayloadId,
    to: PayloadId,
) -> impl Iterator<Item = (u32, Need)> + use<'a> {
    let (form, flags) = (request.form, request.flags);
    let is_whole = flags & request_flags::OBJECT != 0;
    let are_blocks = is_whole || flags & request_flags::BLOCK != 0;
    let (from, to) = if is_whole { (START, END) } else { (from, to) };
    let end = match are_blocks || flags & request_flags::SEGMENT != 0 {
        true => object.block_count().min(to.block.saturating_add(1)),
        false => 0,
    };
    (from.block..end).map(move |block| {
        let all = object.block_len(block) + PARITY;
        let need = match form {
            _ if are_blocks || from.block != to.block => Need::of(0..=object.block_len(block) - 1),
            Form::Erasures => Need { erasures: from.symbol.min(PARITY), ..Need::default() },
            Form::Items | Form::Ranges => Need::of(from.symbol..=to.symbol.min(all - 1)),
        };
        (block, need)
    })
}

#[cfg(test)]
mod tests {
    use super::super::codec::{Fec, Item, push_request};
    use super::super::files::{Files, MAX_BLOCK};
    use super::*;

    const SEGMENT: usize = 8;
    const HOLDOFF: Span = Span::from_millis(10);

    /// Returns a file of this number of full blocks, without content on the disk.
    fn file(blocks: u64) -> (Files, tempfile::TempDir) {
        let directory = tempfile::tempdir().expect("there is a place for temporary files");
        let path = directory.path().join("f");
        let file = std::fs::File::create(&path).expect("the directory is ours");
        file.set_len(blocks * u64::from(MAX_BLOCK) * SEGMENT as u64).expect("the disk has holes");
        (Files::look(&[path], Fec::default(), SEGMENT).expect("it can be read").0, directory)
    }

    fn ask(repairs: &mut Repairs, files: &Files, form: Form, flags: u8, ids: &[(u32, u8)], now: Time) {
        let (mut bytes, end) = (Vec::new(), (1, 0));
        let at = |&(block, symbol)| Item::new(Fec::default(), 0, PayloadId { block, symbol });
        let items: Vec<Item> = ids.iter().map(at).collect();
        push_request(&mut bytes, form, flags, &items);
        let requests = Requests::parse(&bytes).expect("it is a request");
        let object_of = |id| (id == 0).then_some(0);
        repairs.add(requests, object_of, &files.objects, end, (now, HOLDOFF));
        repairs.schedule(now);
    }

    /// Takes all repairs, as pairs of block and symbol. A name has no block.
    fn all(repairs: &mut Repairs, files: &Files, now: Time) -> Vec<Option<(u32, u8)>> {
        std::iter::from_fn(|| {
            let repair = repairs.peek(&files.objects, now)?;
            repairs.sent(repair, now);
            Some(match repair {
                Repair::Info(_) => None,
                Repair::Symbol(_, PayloadId { block, symbol }) => Some((block, symbol)),
            })
        })
        .collect()
    }

    #[test]
    fn requests_of_receivers_are_joined_and_sorted() {
        let (files, _directory) = file(4);
        let (mut repairs, now) = (Repairs::default(), Time::ZERO + Span::from_secs(1));
        let segment = request_flags::SEGMENT;
        ask(&mut repairs, &files, Form::Items, segment, &[(2, 5), (1, 64), (1, 3)], now);
        ask(&mut repairs, &files, Form::Ranges, segment, &[(1, 3), (1, 4)], now);
        ask(&mut repairs, &files, Form::Erasures, segment, &[(3, 2)], now);
        ask(&mut repairs, &files, Form::Erasures, segment, &[(3, 1)], now);
        ask(&mut repairs, &files, Form::Items, request_flags::INFO, &[(0, 0)], now);
        let expected =
            [None, Some((1, 3)), Some((1, 4)), Some((1, 64)), Some((2, 5)), Some((3, 64)), Some((3, 65))];
        assert_eq!(all(&mut repairs, &files, now), expected);
        // Requests that crossed the repair in transit are ignored; later erasures get other parity.
        ask(&mut repairs, &files, Form::Erasures, segment, &[(3, 2)], now + Span::from_millis(9));
        assert!(repairs.is_empty());
        let later = now + HOLDOFF;
        ask(&mut repairs, &files, Form::Erasures, segment, &[(3, 1)], later);
        assert_eq!(all(&mut repairs, &files, later), [Some((3, 66))]);
    }

    #[test]
    fn numbers_beyond_the_object_request_nothing() {
        let (files, _directory) = file(2);
        let (mut repairs, now) = (Repairs::default(), Time::ZERO);
        for ids in [&[(2, 0)][..], &[(0xff_ffff, 255)], &[(0, 96)], &[(1, 255)]] {
            ask(&mut repairs, &files, Form::Items, request_flags::SEGMENT, ids, now);
        }
        ask(&mut repairs, &files, Form::Ranges, request_flags::BLOCK, &[(1, 0), (0, 0)], now);
        ask(&mut repairs, &files, Form::Items, 0, &[(0, 0)], now);
        assert!(repairs.is_empty(), "{repairs:?}");
        ask(&mut repairs, &files, Form::Ranges, request_flags::SEGMENT, &[(0, 90), (0xff_ffff, 255)], now);
        assert_eq!(all(&mut repairs, &files, now).len(), 2 * usize::from(MAX_BLOCK));
    }

    #[test]
    fn ranges_of_requests_are_bounded() {
        let (files, _directory) = file(20_000);
        let mut repairs = Repairs::default();
        for first in (0..20_000).step_by(1_000) {
            let range = [(first, 0), (0xff_ffff, 0)];
            ask(&mut repairs, &files, Form::Ranges, request_flags::BLOCK, &range, Time::ZERO);
            assert!(repairs.blocks.len() <= MAX_PENDING);
        }
        assert_eq!(repairs.blocks.len(), MAX_PENDING);
        let mut one = Repairs::default();
        ask(&mut one, &files, Form::Items, request_flags::OBJECT, &[(0, 0)], Time::ZERO);
        assert_eq!(one.blocks.len() + 1, MAX_PER_NACK);
    }
}
