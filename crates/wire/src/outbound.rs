//! Outbound packets of a source or relay: numbering and sealing.

use crate::bodies::Fit;
use crate::codec::at_most;
use crate::encode::{put_body, put_header, put_sender, sealed_by, undo_on_error};
use crate::error::EncodeError;
use crate::key::KeyId;
use crate::message::{DataPacket, Kind, Message};
use crate::parse::LAYERS;
use crate::replay::ReplayWindow;
use crate::seal::{Cipher, PacketKeys, Secret, TAG_LEN, nonce};
use crate::shells::{Symbols, seal_data};
use faircast_core::packet::{Layer, ReceiverId, SessionId};

/// Next packet numbers of each layer and message kind.
#[derive(Debug)]
pub(crate) struct Numbers {
    announced: u64,
    statuses: u64,
    pages: u64,
    orders: u64,
    /// Per layer: lower bound of the number of the next sealed data packet.
    next: [u64; LAYERS],
    /// At a relay that forwards packets with unchanged numbers: the window of sealed packets of the base layer.
    passed: Option<Box<ForwardedWindow>>,
}

/// Window of forwarded packets. Older packets are not forwarded.
type ForwardedWindow = ReplayWindow<33>;

/// Keys with which a source or relay seals packets.
pub(crate) struct Sealer<'a> {
    pub(crate) session: SessionId,
    /// Id and boot number of a relay; `None` for the source.
    pub(crate) relay: Option<(ReceiverId, u64)>,
    pub(crate) key_id: KeyId,
    pub(crate) secret: &'a Secret,
    pub(crate) announcer: &'a Cipher,
    pub(crate) packets: &'a mut PacketKeys,
}

impl Numbers {
    pub(crate) const fn new() -> Numbers {
        Numbers { announced: 0, statuses: 0, pages: 0, orders: 0, next: [0; LAYERS], passed: None }
    }

    /// Creates numbers after `sent` messages of each kind.
    pub(crate) fn after(sent: u64) -> Numbers {
        Numbers { announced: sent, statuses: sent, pages: sent, orders: sent, ..Numbers::new() }
    }

    /// Permits base-layer numbers in the order in which a relay receives them. Each number is sealed once, and must be among the
    /// latest 2048.
    pub(crate) fn pass_on(&mut self) {
        self.passed = Some(Box::new(ForwardedWindow::new()));
    }

    /// Returns the number of the next message of this kind; `None` for a kind that has no number here.
    pub(crate) const fn next(&mut self, kind: Kind) -> Option<u64> {
        let count = match kind {
            Kind::Announce => &mut self.announced,
            Kind::Status => &mut self.statuses,
            Kind::Hashes => &mut self.pages,
            Kind::Order => &mut self.orders,
            _ => return None,
        };
        let seq = *count;
        *count += 1;
        Some(seq)
    }

    /// Appends a sealed data packet. The packet number must be above all earlier numbers of the layer. After a call of
    /// [`Numbers::pass_on`], an unused number is sufficient in the base layer.
    pub(crate) fn seal_data(
        &mut self,
        out: &mut Vec<u8>,
        packet: &DataPacket<'_>,
        with: Sealer<'_>,
        symbols: Symbols<'_>,
    ) -> Result<(), EncodeError> {
        let (layer, seq) = (packet.layer, packet.data.seq.0);
        at_most("layer", layer.0.into(), LAYERS as u64 - 1)?;
        let next = &mut self.next[usize::from(layer.0)];
        let mut passed = self.passed.as_mut().filter(|_| layer == Layer(0));
        let is_unused = match &passed {
            Some(passed) => passed.is_new(seq),
            None => seq >= *next,
        };
        if !is_unused {
            return Err(EncodeError::NumberReused { layer, seq, newest: next.saturating_sub(1) });
        }
        undo_on_error(out, |out, _| {
            seal_data(out, with.session, with.relay, packet, with.packets.of(seq), symbols)?;
            *next = (*next).max(seq + 1);
            if let Some(passed) = &mut passed {
                passed.mark(seq);
            }
            Ok(())
        })
    }
}

impl Sealer<'_> {
    /// Appends a message with this number in at most `limit` bytes. Lists are cut to fit.
    pub(crate) fn seal_message(
        self,
        out: &mut Vec<u8>,
        seq: u64,
        message: &Message<'_>,
        limit: usize,
    ) -> Result<Fit, EncodeError> {
        let kind = message.kind();
        undo_on_error(out, |out, start| {
            put_header(out, (kind, sealed_by(self.relay)), (0, Layer(0)), self.session, seq as u32)?;
            put_sender(out, self.relay)?;
            let (cipher, nonce) = if kind == Kind::Announce {
                let nonce = self.secret.announce_nonce(self.relay, seq);
                out.extend_from_slice(&self.key_id.0.to_be_bytes());
                out.extend_from_slice(&nonce);
                (self.announcer, nonce)
            } else {
                (self.packets.of(seq), nonce(kind, Layer(0), seq))
            };
            let clear = out.len() - start;
            let fit = put_body(out, message, (start + limit).saturating_sub(TAG_LEN))?;
            cipher.seal(out, start, clear, nonce);
            Ok(fit)
        })
    }
}
