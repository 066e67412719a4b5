//! Packets from the source to all receivers other than data: announcements, status messages, heartbeats.

use super::scheduler::BlockStatus;
use super::{BASE, Phase, SourceSession, header_rate};
use crate::error::{Error, SystemError, TransferError};
use crate::members::Pace;
use crate::withdrawals::Slice;
use faircast_core::node::{Cx, Source as _};
use faircast_core::packet::{Data, Payload};
use faircast_core::time::{Span, Time};
use faircast_wire::SIGNATURE_LEN;
use faircast_wire::encode::MAX_AROUND_STATUS;
use faircast_wire::{
    Announce, DataPacket, Message, Name, Signature, Spacing, Status, TransferId, WithdrawnPart,
};

/// Intervals of announcements while receivers join, and afterwards.
const ANNOUNCE_GATHERING: Span = Span::from_millis(25);
const ANNOUNCE_SENDING: Span = Span::from_millis(500);

/// Minimum and maximum interval of status messages without news.
const STATUS_MIN: Span = Span::from_millis(10);
const STATUS_MAX: Span = Span::from_millis(200);

/// Interval of status messages in sessions at one rate, in round-trip times. It is not shorter, because each message takes space
/// in queues. In layered sessions the interval is one round-trip time: a status states the packet numbers of the layers, which
/// receivers need to join a layer and to detect its losses.
const STATUS_ROUNDS: u64 = 2;

/// Maximum interval at which a source held by windows requests new windows.
const STATUS_HELD: Span = Span::from_millis(50);

/// Time for which a status waits for further news.
const NEWS: Span = Span::from_millis(2);

/// Size of a status without the entries of its lists, bytes.
const AROUND_STATUS: usize = 220;

const _: () = assert!(MAX_AROUND_STATUS <= AROUND_STATUS + 2 * SIGNATURE_LEN, "a status would be cut");

impl SourceSession {
    pub(super) fn write_announce(&mut self, now: Time, out: &mut Vec<u8>) {
        let geometry = self.scheduler.geometry();
        let spread = self.members.spread(now, self.setup.spread);
        let mut announce = Announce {
            salt: self.setup.salt,
            unix_secs: (self.setup.started + now.as_nanos()) / 1_000_000_000,
            started: self.setup.started,
            source: self.setup.local,
            parent: self.setup.local,
            transfer: TransferId(self.scheduler.transfer().0),
            stream_len: geometry.stream_len,
            manifest_len: geometry.manifest_len,
            symbol_size: geometry.symbol_size,
            packet_size: self.setup.scheme.sending().packet_size,
            symbols_per_block: geometry.symbols_per_block,
            first_block: self.scheduler.status().oldest,
            next_seq: self.next_seqs[0].0,
            scheme: self.setup.scheme.number(),
            layers: self.layers(),
            options: Name::clipped(&self.setup.scheme.options()),
            hops: 0,
            spread_ms: millis(spread),
            flags: self.announced_flags(),
            name: Name::clipped(&self.setup.name),
            signer: 0,
            to_hosts: self.setup.to_hosts,
            series: self.setup.series,
            dry_run: self.setup.dry_run,
            signature: None,
        };
        if let Some(Err(error)) = self.pages.as_ref().map(|pages| pages.sign(&mut announce)) {
            self.fail(error, now);
        }
        if let Some(above) = self.scheduler.announced() {
            // These fields are the relay's own. The other fields may be signed, so they stay as announced by the source.
            let (parent, packet_size) = (self.setup.local, announce.packet_size);
            let Announce { next_seq, spread_ms, scheme, layers, .. } = announce;
            let options = if scheme == above.scheme { above.options } else { announce.options };
            let flags = above.flags & !Announce::LAYERS_BY_PORT | announce.flags & Announce::LAYERS_BY_PORT;
            announce = Announce {
                parent,
                packet_size,
                next_seq,
                spread_ms,
                scheme,
                layers,
                options,
                flags,
                ..above
            };
        }
        self.write(&Message::Announce(announce), out, now);
        let gathering = matches!(self.phase, Phase::Gathering { .. });
        // While receivers join, the interval grows from `ANNOUNCE_GATHERING` to `ANNOUNCE_SENDING`.
        let pause = if gathering {
            ANNOUNCE_GATHERING.max(Span::from_nanos(now.as_nanos() / 16))
        } else {
            ANNOUNCE_SENDING
        };
        self.clocks.announce_at = now + pause.min(ANNOUNCE_SENDING);
    }

    /// Whether the session may be announced. A relay sends no announcements while its source is silent, because the source may
    /// have ended the session.
    pub(super) fn may_announce(&mut self, now: Time) -> bool {
        let may = self.scheduler.is_upstream_alive(now);
        if !may {
            self.clocks.announce_at = now + ANNOUNCE_SENDING;
        }
        may
    }

    fn announced_flags(&self) -> u8 {
        let live = if self.scheduler.is_live() { Announce::LIVE } else { 0 };
        let by_port = self.layers() > 1 && self.setup.spacing == Spacing::Port;
        let one_way = if self.setup.one_way.is_some() { Announce::ONE_WAY } else { 0 };
        live | one_way | if by_port { Announce::LAYERS_BY_PORT } else { 0 }
    }

    /// Writes a packet without content, with which receivers that have joined can measure the round-trip time.
    pub(super) fn write_heartbeat(&mut self, now: Time, out: &mut Vec<u8>) {
        let size = (self.header + self.setup.overhead) as u16;
        let stamp = self.source.on_departure(
            BASE,
            size,
            &mut Cx { now, rng: &mut self.rng, effects: &mut self.effects },
        );
        self.refuse_effects(now);
        let data = Data {
            seq: stamp.seq,
            sent_at: now,
            rate: header_rate(self.setup.scheme.entry().stated_rate, &stamp),
            payload: Payload::NONE,
            flags: stamp.flags,
            signal: stamp.signal,
            mark: stamp.mark,
        };
        if let Err(error) =
            self.codec.encode_data(out, &DataPacket { data, layer: BASE, symbols: 0, payload: &[] })
        {
            self.fail(Error::System(SystemError::Wire(error)), now);
        }
        self.next_seqs[0] = stamp.seq.next();
        self.counts.packets += 1;
        self.clocks.heartbeat_at = self.clocks.announce_at;
    }

    pub(super) fn write_status(&mut self, now: Time, out: &mut Vec<u8>) {
        self.consider_resume();
        let blocks = self.scheduler.status();
        let is_signed = self.pages.is_some() || blocks.end_proof.signature.is_some();
        self.receipts.note_root(blocks.root.map(|root| root.0));
        let slice = self.next_withdrawals();
        let signatures = usize::from(is_signed) + usize::from(blocks.withdrawn > 0);
        let around = AROUND_STATUS + SIGNATURE_LEN * signatures + 12 * slice.files.len();
        let room = self.setup.datagram.saturating_sub(around);
        let ids = |pace| {
            let aside = self.members.set_aside().filter(|(_, is)| *is == pace);
            aside.map(|(id, _)| id).take(room / 4 / 4).collect::<Vec<_>>()
        };
        let (lagging, dropped) = (ids(Pace::Deferred), ids(Pace::Dropped));
        let (confirmed, welcomed) = self.members.take_confirmations(room / 3);
        if matches!(self.phase, Phase::Gathering { .. }) && !welcomed.is_empty() {
            self.clocks.heartbeat_at = now; // new members measure the round-trip time with it
        }
        let upper_seqs: Vec<u64> = self.next_seqs[1..].iter().map(|seq| seq.0).collect();
        let ids_len = 4 * (lagging.len() + dropped.len() + confirmed.len()) + 6 * welcomed.len();
        let left = room.saturating_sub(ids_len + 8 * upper_seqs.len());
        let scheduled = self.scheduler.scheduled(left / 6);
        let rtt = self.rtt_max();
        let status = Status {
            next_seq: self.next_seqs[0].0,
            upper_seqs,
            complete_to: blocks.complete_to,
            blocks: blocks.blocks,
            root: blocks.root.map(|hash| hash.0),
            proof: blocks.end_proof.proof,
            root_signature: self.sign_root(blocks).or(blocks.end_proof.signature),
            withdrawn: (blocks.withdrawn > 0).then(|| WithdrawnPart {
                total: blocks.withdrawn,
                first: slice.first,
                signature: slice.signature.unwrap_or([0; 64]),
            }),
            spread_ms: millis(self.members.spread(now, self.setup.spread)),
            members: self.members.speaking() as u32,
            flags: self.status_flags(now),
            rtt_max_us: (rtt.as_nanos() / 1_000).min(u64::from(u32::MAX)) as u32,
            scheduled,
            confirmed,
            welcomed,
            lagging,
            dropped,
            withdrawals: slice.files,
        };
        self.write(&Message::Status(status), out, now);
        self.clocks.status_sent = now;
        let cost = self.source.observe().rate.span_of(out.len() as u64 * 20).min(Span::from_secs(1));
        let most = if self.windows.ask_at() <= now { STATUS_HELD } else { STATUS_MAX };
        let rounds = if self.layers() == 1 { STATUS_ROUNDS } else { 1 };
        let pause = (rtt * rounds).max(STATUS_MIN).min(most).max(cost);
        self.clocks.status_at = now + if self.members.has_confirmations() { NEWS } else { pause };
        if let Phase::Closing { left } = self.phase {
            self.clocks.status_at = now + STATUS_MIN;
            self.phase = if left == 0 { Phase::Over } else { Phase::Closing { left: left - 1 } };
        }
    }

    /// Signs the statement of the root hash, if the content is signed.
    fn sign_root(&mut self, status: BlockStatus) -> Option<Signature> {
        let pages = self.pages.as_mut()?;
        Some(pages.sign_root((status.blocks?, status.withdrawn), status.root?.0))
    }

    /// Returns the part of the list of withdrawn files to send now.
    fn next_withdrawals(&mut self) -> Slice {
        if let Some(slice) = self.scheduler.pass_withdrawals() {
            return slice;
        }
        let pages = self.pages.as_deref();
        self.withdrawals
            .follow(self.scheduler.withdrawn(), |slice| pages.map(|pages| pages.sign_withdrawals(slice)));
        self.withdrawals.next()
    }

    /// Writes a page of hashes if one is scheduled now; returns whether it was written.
    pub(super) fn write_page(&mut self, now: Time, out: &mut Vec<u8>) -> bool {
        let own = self.pages.as_mut().and_then(|pages| pages.next(&*self.scheduler, now));
        let Some(page) = own.or_else(|| self.scheduler.next_page()) else { return false };
        self.write(&Message::Hashes(page), out, now);
        let rate = self.source.observe().rate;
        if let Some(pages) = &mut self.pages {
            pages.sent(out.len(), rate, now);
        }
        true
    }

    fn status_flags(&mut self, now: Time) -> u8 {
        let stopped = if matches!(self.failure, Some(Error::Transfer(TransferError::Stopped))) {
            Status::STOPPED
        } else {
            0
        };
        let is_closing = matches!(self.phase, Phase::Closing { .. });
        let closing = if is_closing { Status::CLOSING | stopped } else { 0 };
        let held = if self.windows.ask_at() <= now { Status::HELD } else { 0 };
        let takes_receipts = self.scheduler.takes_receipts() && self.setup.one_way.is_none();
        let receipts = if takes_receipts { Status::RECEIPTS } else { 0 };
        closing | held | receipts | Status::BY_NUMBER | Status::backoff_flags(self.request_rate.level(now))
    }

    fn write(&mut self, message: &Message<'_>, out: &mut Vec<u8>, now: Time) {
        if let Err(error) = self.codec.encode(out, message, self.setup.datagram) {
            self.fail(Error::System(SystemError::Wire(error)), now);
        }
    }

    /// Schedules a status soon, because there is news for the receivers.
    pub(super) fn status_soon(&mut self, now: Time) {
        let earliest = (self.clocks.status_sent + NEWS * 2).max(now);
        self.clocks.status_at = self.clocks.status_at.min(earliest);
    }

    pub(super) fn rtt_max(&self) -> Span {
        self.source.observe().rtt_max.max(Span::from_micros(100))
    }
}

fn millis(span: Span) -> u32 {
    (span.as_nanos() / 1_000_000).min(u64::from(u32::MAX)) as u32
}
