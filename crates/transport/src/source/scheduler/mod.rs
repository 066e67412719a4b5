//! Schedulers of symbols: the next symbol of each layer, and the effect of the receivers' answers on it.
//!
//! | scheduler | for | repairs |
//! |---|---|---|
//! | [`OnRequest`] | files, pipes and live streams at one rate | what receivers ask for |
//! | [`Fountain`] | files in layers, and without feedback | ever new symbols, nobody asks |
//! | [`Streams`](streams::Streams) | a live stream on each layer | some with each block, nobody asks |

mod fountain;
mod on_request;
pub(crate) mod streams;

pub(super) use fountain::Fountain;
use on_request::OnRequest;

use super::block_source::{BlockSource, Leisure};
use crate::config::Repeat;
use crate::event::StreamSent;
use crate::object::{Counts, Geometry, Hash, LeftOut, ObjectError, TransferId};
use crate::withdrawals::Slice;
use faircast_core::packet::{Flags, Layer, Payload, Seq};
use faircast_core::time::{Rate, Span, Time};
use faircast_wire::{Announce, Hashes, Receipt, Scheduled, Signature, SymbolMap, Withdrawn};

/// A symbol that leaves.
pub(crate) struct Chosen<'a> {
    /// Its block, and its number in it.
    pub(crate) place: Payload,
    /// Source symbols of its block.
    pub(crate) symbols: u16,
    pub(crate) payload: &'a [u8],
    pub(crate) flags: Flags,
}

/// Result of polling the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looked {
    Nothing,
    /// Receivers must be notified at once of the end of the content, or of the root.
    AtTheEnd,
}

/// State of the blocks, as sent to receivers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockStatus {
    /// Older blocks are no longer available.
    pub(crate) oldest: u32,
    /// All source symbols of the blocks before this one have been sent once.
    pub(crate) complete_to: u32,
    /// How many blocks there are, once that is known.
    pub(crate) blocks: Option<u32>,
    /// The root of their hashes, once all are hashed.
    pub(crate) root: Option<Hash>,
    /// How many files are withdrawn: the root covers them.
    pub(crate) withdrawn: u32,
    /// At a relay: the source's statements about the blocks.
    pub(crate) said: EndProof,
}

/// Proof that a source stated the number of blocks, and their root.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EndProof {
    /// Proof by a member of the group.
    pub(crate) proof: Option<[u8; 16]>,
    /// That this source did, where the content is signed.
    pub(crate) signature: Option<Signature>,
}

/// How much was sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Amounts {
    /// Bytes of content that are known, without the manifest.
    pub(crate) content_bytes: u64,
    /// Those among them that have left once.
    pub(crate) sent_bytes: u64,
    /// Source symbols of the content.
    pub(crate) content_symbols: u64,
    /// All symbols that have left, on all layers.
    pub(crate) sent_symbols: u64,
}

/// How these blocks are delivered without feedback.
pub(crate) fn in_rounds(source: BlockSource, repeat: Repeat) -> Box<dyn Scheduler> {
    Box::new(Fountain::in_rounds(source, repeat))
}

/// Returns the scheduler that delivers these blocks on `layers` layers.
pub(crate) fn of_blocks(source: BlockSource, layers: u8) -> Box<dyn Scheduler> {
    match layers {
        0 | 1 => Box::new(OnRequest::new(source)),
        _ => Box::new(Fountain::new(source, layers)),
    }
}

/// The sender of a request for symbols.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Requester<'a> {
    /// It has seen the stream up to this packet,
    pub(crate) seen: Seq,
    /// and has this part of the block, as far as it has reported.
    pub(crate) held: Option<&'a SymbolMap>,
    /// Whether the symbols sent from here did not verify.
    pub(crate) wrong: bool,
}

/// Chooses the symbols that a source sends.
pub(crate) trait Scheduler: Send {
    /// How the content is cut, as it is announced.
    fn geometry(&self) -> Geometry;

    fn transfer(&self) -> TransferId;

    /// Whether late joiners start with the present.
    fn is_live(&self) -> bool;

    fn entries(&self) -> Counts;

    /// Returns new warnings for the user.
    fn take_warnings(&mut self) -> Vec<String>;

    /// Returns inputs that should be sent and cannot be read.
    fn unsent(&self) -> &[LeftOut] {
        &[]
    }

    /// Files that were withdrawn while they were sent, in the order of their withdrawal.
    fn withdrawn(&self) -> &[Withdrawn] {
        &[]
    }

    /// At a relay: the slice of that list that the next status carries.
    fn pass_withdrawals(&mut self) -> Option<Slice> {
        None
    }

    /// Whether there is something to start with.
    fn may_start(&self) -> bool {
        true
    }

    /// At a relay: whether the upstream session is over.
    fn source_is_finished(&self) -> Option<bool> {
        None
    }

    /// Whether the announced session goes on, as far as known; at a relay: whether its source is alive, or has ended in good order.
    fn is_upstream_alive(&self, _now: Time) -> bool {
        true
    }

    /// At a relay: the source's announcement, which it repeats.
    fn announced(&self) -> Option<Announce> {
        None
    }

    /// Whether receivers may send receipts: not of live streams, of which each has another part, so that no hash names it; at a
    /// relay, when its parent takes them.
    fn takes_receipts(&self) -> bool {
        !self.is_live()
    }

    /// At a relay: stores a receipt for the parent; returns whether it is stored now.
    fn pass_receipt(&mut self, _receipt: &Receipt) -> Option<bool> {
        None
    }

    /// At a relay of signed content: the page of hashes that leaves now.
    fn next_page(&mut self) -> Option<Hashes> {
        None
    }

    /// At a relay of signed content: handles a request for the pages of `run` blocks.
    fn request_pages(&mut self, _first: u32, _run: u32, _by: &Requester<'_>) {}

    /// Receivers are there.
    fn start(&mut self, _now: Time) {}

    /// Sends on request only: all receivers have nearly everything from an earlier session.
    fn resume(&mut self) {}

    /// A receiver has come.
    fn welcome(&mut self) {}

    /// Reads input, and leaves out old input. `rate` is the sending rate of each layer.
    ///
    /// # Errors
    /// When an input cannot be read.
    fn look(
        &mut self,
        now: Time,
        leisure: Leisure,
        rate: &dyn Fn(Layer) -> Rate,
    ) -> Result<Looked, ObjectError>;

    /// Returns the polling interval of inputs while packets leave; `None`: any time will do.
    fn look_every(&self) -> Option<Span> {
        None
    }

    /// Whether [`Scheduler::look`] has work to do when there is leisure.
    fn has_work(&self) -> bool {
        false
    }

    /// Whether something is there to leave on this layer.
    fn has(&self, layer: Layer) -> bool;

    /// Whether nothing is there to leave on any.
    fn is_idle(&self) -> bool;

    /// Returns the next symbol on `layer`. [`Scheduler::sent`] must follow.
    ///
    /// # Errors
    /// When its block cannot be read.
    fn next(&mut self, layer: Layer) -> Result<Option<Chosen<'_>>, ObjectError>;

    /// Records that the chosen symbol has left as packet `seq` of its layer.
    fn sent(&mut self, _seq: Seq) {}

    /// Prepares the next symbols of `layer`, after some packets have left.
    fn prepare(&mut self, _layer: Layer) {}

    /// Sets the packet rate of all layers together, packets per second.
    fn set_rate(&mut self, _packets: f64) {}

    /// Sets the loss of the worst receiver, 0 to 1.
    fn on_reported_loss(&mut self, _loss: f64) {}

    /// A receiver lacks symbols of a block; whether anything is sent for it.
    fn request(&mut self, _block: u32, _symbols: u16, _by: &Requester<'_>) -> bool {
        false
    }

    /// Source symbols of a block: more of it is not sent for one request. 0 of a block that is not there.
    fn symbols_of(&self, _block: u32) -> u16 {
        0
    }

    /// Forgets all requests.
    fn clear_requests(&mut self) {}

    /// Returns up to `most` repairs under way.
    fn scheduled(&self, _most: usize) -> Vec<Scheduled> {
        Vec::new()
    }

    /// The hash of a block's data, once it is known.
    fn hash(&self, _block: u32) -> Option<Hash> {
        None
    }

    /// Whether all available content was sent, and receivers should be notified at once.
    fn is_drained(&self) -> bool {
        false
    }

    fn status(&self) -> BlockStatus;

    fn amounts(&self) -> Amounts;

    /// Without feedback: times that all of the content was sent.
    fn rounds(&self) -> u64 {
        0
    }

    /// Returns statistics of each layer's stream.
    fn streams(&self) -> Vec<StreamSent> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests;
