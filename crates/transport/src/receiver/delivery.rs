//! What a session brings: an object, or a live stream on each layer.

use super::block_sink::Done;
use super::reassembly::{Progressed, Reassembly};
use super::streams::{Ended, Streams};
use crate::config::Durability;
use crate::error::Error;
use crate::event::{Event, StreamReceived, Subscription};
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use faircast_wire::{DataPacket, Status};

/// The data path of a receiver.
pub(super) enum Delivery {
    /// Blocks that belong together, asked for or not.
    Object(Box<Reassembly>),
    /// Streams that nobody asks for.
    Streams(Box<Streams>),
}

impl Delivery {
    pub(super) fn on_symbol(
        &mut self,
        packet: &DataPacket<'_>,
        now: Time,
        rng: &mut Rng,
    ) -> Result<Progressed, Error> {
        match self {
            Delivery::Object(reassembly) => reassembly.on_symbol(packet, now, rng),
            Delivery::Streams(streams) => streams.on_symbol(packet).map(|()| Progressed::No),
        }
    }

    /// The source says how far it is.
    pub(super) fn on_status(&mut self, status: &Status, now: Time, rng: &mut Rng) {
        match self {
            Delivery::Object(reassembly) => {
                reassembly.on_complete_to(status.complete_to, status.blocks, now, rng);
                reassembly.on_scheduled(&status.scheduled, now);
            }
            Delivery::Streams(streams) => streams.ended = streams.ended.or(status.blocks.map(|_| Ended)),
        }
    }

    /// Something may be missing.
    pub(super) fn arm(&mut self, now: Time, rng: &mut Rng) {
        if let Delivery::Object(reassembly) = self {
            reassembly.arm(now, rng);
        }
    }

    /// The source keeps no blocks before this one.
    pub(super) fn skip_before(&mut self, oldest: u32) -> Result<(), Error> {
        match self {
            Delivery::Object(reassembly) => reassembly.skip_before(oldest),
            Delivery::Streams(_) => Ok(()), // nothing is waited for
        }
    }

    /// The same content comes in a new session.
    pub(super) fn restart(&mut self, now: Time) -> Result<(), Error> {
        match self {
            Delivery::Object(reassembly) => {
                reassembly.restart();
                Ok(())
            }
            Delivery::Streams(streams) => streams.restart(now),
        }
    }

    /// Layers were joined or left.
    pub(super) fn subscribe(&mut self, subscription: Subscription, now: Time) -> Result<(), Error> {
        match self {
            Delivery::Object(_) => Ok(()),
            Delivery::Streams(streams) => streams.subscribe(subscription, now),
        }
    }

    /// What is to be told.
    pub(super) fn take_events(&mut self) -> Vec<Event> {
        match self {
            Delivery::Object(_) => Vec::new(),
            Delivery::Streams(streams) => std::mem::take(&mut streams.events),
        }
    }

    /// How many files there are, once that is known.
    pub(super) fn files(&mut self) -> Option<u64> {
        match self {
            Delivery::Object(reassembly) => reassembly.place().files(),
            Delivery::Streams(_) => None,
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        match self {
            Delivery::Object(reassembly) => reassembly.is_complete(),
            Delivery::Streams(streams) => streams.is_complete(),
        }
    }

    /// Everything is here.
    pub(super) fn finish(
        &mut self,
        blocks: u32,
        root: [u8; 32],
        durability: Durability,
        now: Time,
    ) -> Result<Done, Error> {
        match self {
            Delivery::Object(reassembly) => reassembly.place().finish(blocks, root, durability),
            Delivery::Streams(streams) => {
                streams.finish(now)?;
                let (files, bytes) = (streams.files(), streams.bytes());
                Ok(Done { files, bytes, warnings: streams.warnings() })
            }
        }
    }

    /// When something is asked for next.
    pub(super) fn deadline(&self) -> Time {
        match self {
            Delivery::Object(reassembly) => reassembly.requests.deadline(),
            Delivery::Streams(_) => Time::NEVER,
        }
    }

    /// What to ask for now, as (block, symbols), when it is time.
    pub(super) fn due(&mut self, now: Time, rng: &mut Rng) -> &[(u32, u16)] {
        match self {
            Delivery::Object(reassembly) => reassembly.due(now, rng),
            Delivery::Streams(_) => &[],
        }
    }

    pub(super) fn set_pace(&mut self, rtt: Span, spread: Span) {
        if let Delivery::Object(reassembly) = self {
            reassembly.requests.set_pace(rtt, spread);
        }
    }

    /// Whether what has come is to be written before more is taken.
    pub(super) fn waits_for_output(&self) -> bool {
        match self {
            Delivery::Object(reassembly) => reassembly.waits_for_output(),
            Delivery::Streams(_) => false,
        }
    }

    /// Blocks that are not there yet, and may come.
    pub(super) fn missing(&self) -> u32 {
        match self {
            Delivery::Object(reassembly) => reassembly.missing(),
            Delivery::Streams(streams) if streams.is_complete() => 0,
            Delivery::Streams(_) => u32::MAX,
        }
    }

    pub(super) fn gathered_bytes(&self) -> u64 {
        match self {
            Delivery::Object(reassembly) => reassembly.gathered_bytes(),
            Delivery::Streams(_) => self.verified_bytes(),
        }
    }

    pub(super) fn verified_bytes(&self) -> u64 {
        match self {
            Delivery::Object(reassembly) => reassembly.verified_bytes(),
            Delivery::Streams(streams) => streams.bytes(),
        }
    }

    pub(super) fn content_bytes(&self) -> Option<u64> {
        match self {
            Delivery::Object(reassembly) => reassembly.content_bytes(),
            Delivery::Streams(_) => None,
        }
    }

    /// Verified in an earlier run, and that part of it which had to come again.
    pub(super) fn resumed_bytes(&self) -> (u64, u64) {
        match self {
            Delivery::Object(reassembly) => (reassembly.resumed_bytes(), reassembly.refetched_bytes()),
            Delivery::Streams(_) => (0, 0),
        }
    }

    /// Symbols received and needed, and blocks that took decoding.
    pub(super) fn symbols(&self) -> (u64, u64, u64) {
        match self {
            Delivery::Object(reassembly) => {
                (reassembly.symbols, reassembly.symbols_needed, reassembly.decoded())
            }
            Delivery::Streams(streams) => (streams.symbols, streams.symbols_needed, streams.decoded()),
        }
    }

    /// What has come of each layer's stream.
    pub(super) fn streams(&self) -> Vec<StreamReceived> {
        match self {
            Delivery::Object(_) => Vec::new(),
            Delivery::Streams(streams) => streams.report(),
        }
    }
}
