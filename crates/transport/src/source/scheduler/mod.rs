//! Schedulers of symbols: they choose the next symbol of each layer, depending on the receivers' requests.
//!
//! | scheduler | for | repairs |
//! |---|---|---|
//! | [`OnRequest`] | files, pipes and live streams at one rate | on request; with each block of a live stream if requests take too long |
//! | [`Fountain`] | files in layers | an endless sequence of new symbols, no requests |
//! | [`InRounds`] | sessions without feedback | some repairs with each block, and new symbols in each round, no requests |
//! | [`Streams`](streams::Streams) | a live stream on each layer | some repairs with each block, no requests |

mod fountain;
mod in_rounds;
mod on_request;
pub(crate) mod streams;

pub(super) use fountain::Fountain;
use in_rounds::InRounds;
use on_request::OnRequest;

use super::block_source::{BlockSource, Leisure};
use crate::config::OneWay;
use crate::event::StreamSent;
use crate::object::{Counts, Geometry, Hash, Layout, LeftOut, ObjectError, TransferId};
use crate::withdrawals::Slice;
use faircast_core::packet::{Flags, Layer, Payload, Seq};
use faircast_core::time::{Rate, Span, Time};
use faircast_wire::{Announce, Hashes, Receipt, Scheduled, Signature, SymbolMap, Withdrawn};

/// Ratio of the repair symbols that are sent in advance to the receivers' loss.
const SPARE: f64 = 1.5;

/// Returns the ratio of repair symbols to source symbols for this loss of a receiver.
fn repairs_for(loss: f64) -> f64 {
    if loss.is_finite() { loss * SPARE } else { 0.0 }
}

/// A symbol to send.
pub(crate) struct Chosen<'a> {
    /// Block number, and symbol number in the block.
    pub(crate) place: Payload,
    /// Number of source symbols of the block.
    pub(crate) symbols: u16,
    pub(crate) payload: &'a [u8],
    pub(crate) flags: Flags,
}

/// Result of polling the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looked {
    Nothing,
    /// The end of the content or the root hash has become known: receivers must be notified at once.
    AtTheEnd,
}

/// State of the blocks, as sent to receivers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockStatus {
    /// Number of the oldest available block.
    pub(crate) oldest: u32,
    /// Number of the first block with source symbols that have not been sent yet.
    pub(crate) complete_to: u32,
    /// Number of blocks, once known.
    pub(crate) blocks: Option<u32>,
    /// Root hash, once all blocks are hashed.
    pub(crate) root: Option<Hash>,
    /// Number of withdrawn files that the root hash covers.
    pub(crate) withdrawn: u32,
    /// At a relay: the source's proof of the number of blocks and the root hash.
    pub(crate) end_proof: EndProof,
}

/// Proof of the number of blocks and the root hash.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EndProof {
    /// Proof that a member of the group, and not a relay, stated the number of blocks and the root hash.
    pub(crate) proof: Option<[u8; 16]>,
    /// Signature of the source, if the content is signed.
    pub(crate) signature: Option<Signature>,
}

/// Amounts of content and of sent data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Amounts {
    /// Known bytes of content, without the manifest.
    pub(crate) content_bytes: u64,
    /// Bytes of content that have been sent at least once.
    pub(crate) sent_bytes: u64,
    /// Source symbols of the content.
    pub(crate) content_symbols: u64,
    /// Sent symbols on all layers, with repetitions and repairs.
    pub(crate) sent_symbols: u64,
}

/// Returns the scheduler that delivers these blocks without feedback.
pub(crate) fn in_rounds(source: BlockSource, one_way: &OneWay) -> Box<dyn Scheduler> {
    Box::new(InRounds::new(source, one_way))
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
    /// Newest packet number that the requester has seen.
    pub(crate) seen: Seq,
    /// Symbols of the block that are already at the requester, as far as the request lists them.
    pub(crate) held: Option<&'a SymbolMap>,
    /// Whether the block failed verification at the requester.
    pub(crate) wrong: bool,
}

/// Chooses the symbols that a source sends.
pub(crate) trait Scheduler: Send {
    /// Returns the geometry of the content, as announced.
    fn geometry(&self) -> Geometry;

    fn transfer(&self) -> TransferId;

    /// Whether late joiners start at the current position of the stream.
    fn is_live(&self) -> bool;

    fn entries(&self) -> Counts;

    /// Returns new warnings for the user.
    fn take_warnings(&mut self) -> Vec<String>;

    /// Returns the inputs that should have been sent but cannot be read.
    fn unsent(&self) -> &[LeftOut] {
        &[]
    }

    /// Returns the files withdrawn during the session, in the order of their withdrawal.
    fn withdrawn(&self) -> &[Withdrawn] {
        &[]
    }

    /// Returns the positions of files and holes; `None` at a relay and for live streams.
    fn layout(&self) -> Option<&Layout> {
        None
    }

    /// Returns the part of the list of withdrawn files for the next status, if this is a relay; otherwise `None`.
    fn pass_withdrawals(&mut self) -> Option<Slice> {
        None
    }

    /// Whether the transmission can start, because content is available.
    fn may_start(&self) -> bool {
        true
    }

    /// Returns whether the upstream session of a relay is over; `None` at the source.
    fn source_is_finished(&self) -> Option<bool> {
        None
    }

    /// Whether the announced session may still be active. At a relay: whether the upstream source is alive or has ended its
    /// session regularly.
    fn is_upstream_alive(&self, _now: Time) -> bool {
        true
    }

    /// Returns the source's announcement, which a relay repeats; `None` at the source.
    fn announced(&self) -> Option<Announce> {
        None
    }

    /// Whether receivers may send receipts. In a live stream they may not, because receivers have different parts of the stream,
    /// so that no common hash covers them. A relay accepts receipts if its parent does.
    fn takes_receipts(&self) -> bool {
        !self.is_live()
    }

    /// Stores a receipt for a relay's parent. Returns whether the receipt is stored now; `None` at the source.
    fn pass_receipt(&mut self, _receipt: &Receipt) -> Option<bool> {
        None
    }

    /// Returns the page of hashes to send now, if this is a relay of signed content; otherwise `None`.
    fn next_page(&mut self) -> Option<Hashes> {
        None
    }

    /// Handles a request for the pages of hashes of `run` blocks, if this is a relay of signed content.
    fn request_pages(&mut self, _first: u32, _run: u32, _by: &Requester<'_>) {}

    /// Starts the transmission: receivers have joined.
    fn start(&mut self, _now: Time) {}

    /// Restricts the transmission to requests, because all receivers have almost all content from an earlier session.
    fn resume(&mut self) {}

    /// Records that a receiver has joined.
    fn welcome(&mut self) {}

    /// Reads input, and drops old input. `rate` returns the sending rate of a layer.
    ///
    /// # Errors
    /// If an input cannot be read.
    fn look(
        &mut self,
        now: Time,
        leisure: Leisure,
        rate: &dyn Fn(Layer) -> Rate,
    ) -> Result<Looked, ObjectError>;

    /// Returns the interval at which inputs must be polled while packets are sent; `None` if they need no polling.
    fn look_every(&self) -> Option<Span> {
        None
    }

    /// Whether [`Scheduler::look`] has work to do when there is leisure.
    fn has_work(&self) -> bool {
        false
    }

    /// Whether there is a symbol to send on this layer.
    fn has(&self, layer: Layer) -> bool;

    /// Whether no layer has a symbol to send.
    fn is_idle(&self) -> bool;

    /// Returns the next symbol on `layer`. The caller must call [`Scheduler::sent`] afterwards.
    ///
    /// # Errors
    /// If the block of the symbol cannot be read.
    fn next(&mut self, layer: Layer) -> Result<Option<Chosen<'_>>, ObjectError>;

    /// Records that the chosen symbol was sent as packet `seq` of its layer.
    fn sent(&mut self, _seq: Seq) {}

    /// Prepares the next symbols of `layer`, after some packets have been sent.
    fn prepare(&mut self, _layer: Layer) {}

    /// Sets the packet rate of all layers together, packets per second.
    fn set_rate(&mut self, _packets: f64) {}

    /// Records the loss rate of the receiver with the highest loss, 0 to 1, and the largest round-trip time.
    fn on_reported_loss(&mut self, _loss: f64, _rtt: Span) {}

    /// Handles a request for symbols of a block; returns whether symbols will be sent for it.
    fn request(&mut self, _block: u32, _symbols: u16, _by: &Requester<'_>) -> bool {
        false
    }

    /// Returns the number of source symbols of a block, which is the maximum sent for one request; 0 if there is no such block.
    fn symbols_of(&self, _block: u32) -> u16 {
        0
    }

    /// Discards all requests.
    fn clear_requests(&mut self) {}

    /// Returns up to `most` scheduled repairs.
    fn scheduled(&self, _most: usize) -> Vec<Scheduled> {
        Vec::new()
    }

    /// Returns the hash of a block's data, once known.
    fn hash(&self, _block: u32) -> Option<Hash> {
        None
    }

    /// Whether all available content was sent, and receivers should be notified at once.
    fn is_drained(&self) -> bool {
        false
    }

    fn status(&self) -> BlockStatus;

    fn amounts(&self) -> Amounts;

    /// Returns the number of completed rounds of a session without feedback.
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
