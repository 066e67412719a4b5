//! Senders of feedback: all receivers and relays from which a source or relay has received packets, each with its key and replay
//! window.

use crate::codec::Codec;
use crate::encode::ID_LEN;
use crate::message::Message;
use crate::parse::{Fixed, HEADER_LEN, Newest, parse, read_body};
use crate::reader::Reader;
use crate::replay::ReplayWindow;
use crate::seal::{BOOT_LEN, KeyOwner, OpenError, PacketKeys, Secret, TAG_LEN, nonce};
use faircast_core::packet::{ReceiverId, Seq};
use std::collections::BTreeMap;
use std::mem;
use std::net::{IpAddr, SocketAddr};

/// Identity of a sender: for a receiver that seals, the boot number of its run; for a receiver that does not seal, its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SenderProcess {
    Sealing(ReceiverId, u64),
    Open(ReceiverId, IpAddr, u16),
}

/// State of one sender.
#[derive(Debug)]
struct Sender {
    keys: Option<PacketKeys>,
    seen: ReplayWindow<3>,
}

/// The known senders, in two generations. When the young generation is full, the old one is removed and the young one becomes
/// old. So the latest [`Senders::GENERATION`] senders are always known, and memory is bounded. Only packets that open add a
/// sender.
///
/// A removed sender starts again without a replay window. Until its next packet arrives, its old packets could be admitted a
/// second time.
#[derive(Debug, Default)]
pub(crate) struct Senders {
    young: BTreeMap<SenderProcess, Box<Sender>>,
    old: BTreeMap<SenderProcess, Box<Sender>>,
}

impl Senders {
    /// Number of senders in a generation.
    const GENERATION: usize = 16_384;

    /// Opens a sealed packet of feedback and returns its unwrapped number.
    pub(crate) fn open_sealed<'a>(
        &mut self,
        secret: &Secret,
        fixed: &Fixed,
        bytes: &'a mut [u8],
    ) -> Result<(u64, Message<'a>), OpenError> {
        let clear = HEADER_LEN + ID_LEN + BOOT_LEN;
        let mut reader = Reader { bytes, at: HEADER_LEN };
        let (from, boot) = (ReceiverId::read(&mut reader, "from")?, u64::read(&mut reader, "boot")?);
        let make = || Some(PacketKeys::new(secret, KeyOwner::Member(from, boot)));
        self.once(SenderProcess::Sealing(from, boot), fixed, make, |sender, seq| {
            let keys = sender.keys.as_mut().ok_or(OpenError::Forged)?;
            keys.of(seq).open(bytes, clear, nonce(fixed.header.kind, fixed.header.layer, seq))?;
            let bytes = &bytes[..bytes.len() - TAG_LEN];
            Ok(read_body(fixed, Some(from), Reader { bytes, at: clear }, &Newest::default())?)
        })
    }

    /// Reads an unsealed packet of feedback and returns its unwrapped number.
    pub(crate) fn open_plain<'a>(
        &mut self,
        fixed: &Fixed,
        bytes: &'a [u8],
        address: SocketAddr,
    ) -> Result<(u64, Message<'a>), OpenError> {
        let message = parse(bytes, &Newest::default())?.1;
        let from = message.from().ok_or(OpenError::NotForMe(fixed.header.kind))?;
        let who = SenderProcess::Open(from, address.ip().to_canonical(), address.port());
        self.once(who, fixed, || None, |_, _| Ok(message))
    }

    /// Opens a packet that was not admitted before, and marks it as admitted.
    fn once<T>(
        &mut self,
        who: SenderProcess,
        fixed: &Fixed,
        keys: impl FnOnce() -> Option<PacketKeys>,
        open: impl FnOnce(&mut Sender, u64) -> Result<T, OpenError>,
    ) -> Result<(u64, T), OpenError> {
        let known = self.young.remove(&who).or_else(|| self.old.remove(&who));
        let was_known = known.is_some();
        let mut sender =
            known.unwrap_or_else(|| Box::new(Sender { keys: keys(), seen: ReplayWindow::new() }));
        let seq = Seq::unwrap(Seq(sender.seen.newest()), fixed.header.seq).0;
        let opened = match sender.seen.is_new(seq) {
            true => open(&mut sender, seq),
            false => Err(OpenError::Replayed(seq)),
        };
        if opened.is_ok() {
            sender.seen.mark(seq);
        }
        if was_known || opened.is_ok() {
            self.keep(who, sender);
        }
        opened.map(|opened| (seq, opened))
    }

    fn keep(&mut self, who: SenderProcess, sender: Box<Sender>) {
        if self.young.len() >= Senders::GENERATION {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(who, sender);
    }
}
