//! Messages to bytes. What cannot be said on the wire is refused, and the buffer is left as it was.

use crate::message::{
    Announce, DataPacket, Kind, Member, MemberState, Message, Name, Request, Status, Window,
};
use crate::parse::{
    CRC_LEN, HEADER_LEN, MAGIC, NO_BLOCKS, NO_SYMBOL, OPEN_ENDED, RATE, SEALED, SEQ_LIMIT, VERSION, checksum,
};
use crate::seal::{BOOT_LEN, NONCE_LEN, TAG_LEN};
use faircast_core::half::{self, Half};
use faircast_core::packet::{
    Cause, Data, Echo, Layer, LayerStates, Mark, Payload, ReceiverId, ReportContent, SessionId, Signal,
};

/// Bytes of the sender's id in front of what receivers send.
pub(crate) const ID_LEN: usize = 4;
/// What receivers send is kept below this, so that it fits any path that carries IPv6.
pub const FEEDBACK_LIMIT: usize = 1232;
/// A data packet's fields without the mark and the rate.
const DATA_FIXED: usize = 14;
const RATE_LEN: usize = 2;

/// Why a message cannot be encoded.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum EncodeError {
    /// Not even its fixed part fits.
    #[error("the message needs {need} bytes but the datagram may have {limit}: allow larger datagrams")]
    TooLong {
        /// Bytes it needs at least.
        need: usize,
        /// Bytes it may have.
        limit: usize,
    },
    /// A number is larger than its field.
    #[error("{field} is {value} but must be at most {max}")]
    TooLarge {
        /// Which field.
        field: &'static str,
        /// What it says.
        value: u64,
        /// Largest number that fits.
        max: u64,
    },
    /// A number that cannot be a rate, a loss fraction or a level.
    #[error("{field} is {value}, which is not a usable number")]
    NotANumber {
        /// Which field.
        field: &'static str,
        /// What it says.
        value: f32,
    },
    /// Sealing a second packet under the same number would give both away.
    #[error("packet {seq} of layer {layer} follows {newest}: a number seals one packet only", layer = layer.0)]
    NumberReused {
        /// Which layer.
        layer: Layer,
        /// The packet's number.
        seq: u64,
        /// The newest number sealed.
        newest: u64,
    },
    /// This end does not send such messages.
    #[error("this end does not send packets of kind {0:?}")]
    NotMine(Kind),
    /// A message in somebody else's name.
    #[error("the message is from {from} but this codec speaks for {me}")]
    NotMe {
        /// Whose message it is.
        from: ReceiverId,
        /// Whom the codec speaks for.
        me: ReceiverId,
    },
    /// An announcement with another salt than the keys were derived from.
    #[error("the announcement's salt is not the one that the codec was made with")]
    WrongSalt,
    /// A sealed session cannot be answered before it is known.
    #[error("session {0} has not been announced yet: wait for its announcement")]
    NotAnnounced(SessionId),
}

/// How many entries of each list went into a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fit {
    /// Of [`Status::upper_seqs`].
    pub upper_seqs: usize,
    /// Of [`Status::scheduled`].
    pub scheduled: usize,
    /// Of [`Status::confirmed`].
    pub confirmed: usize,
    /// Of [`Status::lagging`].
    pub lagging: usize,
    /// Of [`Status::dropped`].
    pub dropped: usize,
    /// Of [`Request::needs`].
    pub needs: usize,
}

/// How a packet travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Readable by all, with a CRC.
    Open,
    /// Sealed under the group's key.
    Sealed,
}

/// Bytes around a data packet's symbol when it says its rate (without the rate: two fewer). The
/// same for all packets with the same kind of mark, as segmentation offload demands; a sealed
/// packet has 16 of them behind the symbol.
pub const fn data_header_len(mark: &Mark, form: Form) -> usize {
    overhead(Kind::Data, form) + DATA_FIXED + RATE_LEN + mark_len(mark)
}

/// The most that [`data_header_len`] ever is.
pub const MOST_DATA_HEADER: usize = {
    let equation =
        Mark::Equation { suppress_above: 0.0, rtt_max: 0.0, round: 0, to: None, echo: 0, limiting: false };
    let states = LayerStates(0);
    let layered =
        Mark::Layered { id: None, mean: 0.0, error: 0.0, rtt: 0.0, above: Half(0), updates: 0, states };
    let (equation, layered) =
        (data_header_len(&equation, Form::Sealed), data_header_len(&layered, Form::Sealed));
    if layered > equation { layered } else { equation }
};

/// Bytes of the mark.
pub(crate) const fn mark_len(mark: &Mark) -> usize {
    match mark {
        Mark::None => 0,
        Mark::Representative { .. } => 10,
        Mark::Acker(_) | Mark::Timetable { .. } => 4,
        Mark::Equation { .. } => 14,
        Mark::Layered { .. } => 17,
    }
}

/// Bytes around a body: header, CRC or what the seal adds, sender.
pub(crate) const fn overhead(kind: Kind, form: Form) -> usize {
    match (form, kind) {
        (Form::Open, Kind::Data | Kind::Announce | Kind::Status) => HEADER_LEN + CRC_LEN,
        (Form::Open, _) => HEADER_LEN + CRC_LEN + ID_LEN,
        (Form::Sealed, Kind::Data | Kind::Status) => HEADER_LEN + TAG_LEN,
        (Form::Sealed, Kind::Announce) => HEADER_LEN + NONCE_LEN + TAG_LEN,
        (Form::Sealed, _) => HEADER_LEN + ID_LEN + BOOT_LEN + TAG_LEN,
    }
}

/// Append a data packet that is not sealed.
///
/// # Errors
/// When a number does not fit its field.
pub fn encode_data(
    out: &mut Vec<u8>,
    session: SessionId,
    packet: &DataPacket<'_>,
) -> Result<(), EncodeError> {
    undo_on_error(out, |out, start| {
        out.reserve(data_header_len(&packet.data.mark, Form::Open) + packet.payload.len());
        put_data_header(out, session, packet, Form::Open);
        out.extend_from_slice(&[0; CRC_LEN]);
        put_data(out, packet)?;
        patch_checksum(out, start);
        Ok(())
    })
}

/// Append a message that is not sealed, in at most `limit` bytes. Lists are cut to fit. A data
/// packet brings its own number; for it `seq` means nothing.
///
/// # Errors
/// When a number does not fit its field, or the message without its lists does not fit `limit`.
pub fn encode(
    out: &mut Vec<u8>,
    session: SessionId,
    seq: u32,
    message: &Message<'_>,
    limit: usize,
) -> Result<Fit, EncodeError> {
    undo_on_error(out, |out, start| {
        if let Message::Data(packet) = message {
            encode_data(out, session, packet)?;
            return check_len(out.len() - start, limit).map(|()| Fit::default());
        }
        put_header(out, message.kind(), 0, message.layer(), session, seq);
        out.extend_from_slice(&[0; CRC_LEN]);
        if let Some(from) = message.from() {
            put_id(out, "from", Some(from))?;
        }
        let fit = put_body(out, message, start + limit)?;
        patch_checksum(out, start);
        Ok(fit)
    })
}

/// Run `put`; when it fails, take back what it appended.
pub(crate) fn undo_on_error<T>(
    out: &mut Vec<u8>,
    put: impl FnOnce(&mut Vec<u8>, usize) -> Result<T, EncodeError>,
) -> Result<T, EncodeError> {
    let start = out.len();
    put(out, start).inspect_err(|_| out.truncate(start))
}

fn patch_checksum(out: &mut [u8], start: usize) {
    let crc = checksum(&out[start..]);
    out[start + HEADER_LEN..start + HEADER_LEN + CRC_LEN].copy_from_slice(&crc.to_be_bytes());
}

fn check_len(need: usize, limit: usize) -> Result<(), EncodeError> {
    if need > limit { Err(EncodeError::TooLong { need, limit }) } else { Ok(()) }
}

pub(crate) fn put_header(
    out: &mut Vec<u8>,
    kind: Kind,
    flags: u8,
    layer: Layer,
    session: SessionId,
    seq: u32,
) {
    out.extend_from_slice(&[MAGIC, VERSION << 4 | kind as u8, flags, layer.0]);
    out.extend_from_slice(&session.0.to_be_bytes());
    out.extend_from_slice(&seq.to_be_bytes());
}

pub(crate) fn put_data_header(out: &mut Vec<u8>, session: SessionId, packet: &DataPacket<'_>, form: Form) {
    let mark = mark_number(&packet.data.mark);
    let sealed = if form == Form::Sealed { SEALED } else { 0 };
    let rate = if says_rate(&packet.data) { RATE } else { 0 };
    put_header(out, Kind::Data, mark << 4 | rate | sealed, packet.layer, session, packet.data.seq.0 as u32);
}

/// Which kind of mark it is, in the header's flags.
pub(crate) const fn mark_number(mark: &Mark) -> u8 {
    match mark {
        Mark::None => 0,
        Mark::Representative { .. } => 1,
        Mark::Acker(_) => 2,
        Mark::Equation { .. } => 3,
        Mark::Timetable { .. } => 4,
        Mark::Layered { .. } => 5,
    }
}

/// The bits of a signal in the byte of flags. Which signal they are depends on the kind of mark.
pub(crate) const fn signal_bits(signal: Signal) -> u8 {
    match signal {
        Signal::None => 0,
        Signal::Control => 64,
        Signal::Burst | Signal::Gains => 8,
        Signal::SyncPoint => 24,
        Signal::Gives => 16,
    }
}

fn says_rate(data: &Data) -> bool {
    data.rate != 0.0
}

/// A data packet's fields and its symbol.
pub(crate) fn put_data(out: &mut Vec<u8>, packet: &DataPacket<'_>) -> Result<(), EncodeError> {
    let data = &packet.data;
    at_most("seq", data.seq.0, SEQ_LIMIT - 1)?;
    let micros = (data.sent_at.as_nanos() / 1_000) as u32; // wraps; the receiver unwraps it
    let (block, symbol) = match data.payload {
        Payload::NONE => (u32::MAX, NO_SYMBOL),
        Payload { block, symbol } => {
            at_most("block", block.into(), u64::from(u32::MAX) - 1)?;
            at_most("symbol", symbol.into(), u64::from(NO_SYMBOL))?;
            (block, symbol)
        }
    };
    out.extend_from_slice(&micros.to_be_bytes());
    out.extend_from_slice(&block.to_be_bytes());
    out.extend_from_slice(&symbol.to_be_bytes()[1..]);
    out.extend_from_slice(&packet.symbols.to_be_bytes());
    out.push(data.flags.0 | signal_bits(data.signal));
    if says_rate(data) {
        put_half(out, "rate", data.rate)?;
    }
    put_mark(out, &data.mark)?;
    out.extend_from_slice(packet.payload);
    Ok(())
}

/// The fields of a mark; [`mark_number`] says which they are.
pub(crate) fn put_mark(out: &mut Vec<u8>, mark: &Mark) -> Result<(), EncodeError> {
    match *mark {
        Mark::None => {}
        Mark::Representative { id, mean, deviation, rtt_max } => {
            put_id(out, "representative", id)?;
            put_half(out, "mean", mean)?;
            put_half(out, "deviation", deviation)?;
            put_half(out, "rtt_max", rtt_max)?;
        }
        Mark::Acker(id) => put_id(out, "acker", id)?,
        Mark::Equation { suppress_above, rtt_max, round, to, echo, limiting } => {
            put_half(out, "suppress_above", suppress_above)?;
            put_half(out, "rtt_max", rtt_max)?;
            out.extend_from_slice(&[round, u8::from(limiting)]);
            put_id(out, "to", to)?;
            out.extend_from_slice(&echo.to_be_bytes());
        }
        Mark::Timetable { slot } => out.extend_from_slice(&slot.to_be_bytes()),
        Mark::Layered { id, mean, error, rtt, above, updates, states } => {
            put_id(out, "representative", id.map(ReceiverId::from))?;
            put_half(out, "mean", mean)?;
            put_half(out, "error", error)?;
            put_half(out, "rtt", rtt)?;
            out.extend_from_slice(&above.0.to_be_bytes());
            out.push(updates);
            out.extend_from_slice(&states.0.to_be_bytes());
        }
    }
    Ok(())
}

/// The body of anything but data, so that `out` ends at `end` at the latest.
pub(crate) fn put_body(out: &mut Vec<u8>, message: &Message<'_>, end: usize) -> Result<Fit, EncodeError> {
    let body = out.len();
    let mut fit = Fit::default();
    match message {
        Message::Data(_) => return Err(EncodeError::NotMine(Kind::Data)),
        Message::Report(report) => put_content(out, &report.content)?,
        Message::Announce(announce) => put_announce(out, announce)?,
        Message::Status(status) => fit = put_status(out, status, end)?,
        Message::Request(request) => fit = put_request(out, request, end)?,
        Message::Member(member) => put_member(out, member)?,
        Message::Window(window) => put_window(out, window)?,
    }
    check_len(out.len() - body, end.saturating_sub(body))?;
    Ok(fit)
}

const fn cause_number(cause: Cause) -> u8 {
    match cause {
        Cause::Loss => 0,
        Cause::Mark => 1,
        Cause::Heartbeat => 2,
        Cause::Leaving => 3,
        Cause::Joining => 4,
        Cause::Accumulation => 5,
    }
}

pub(crate) fn put_content(out: &mut Vec<u8>, content: &ReportContent) -> Result<(), EncodeError> {
    match *content {
        ReportContent::Alive(echo) => {
            out.push(0);
            put_echo(out, echo)
        }
        ReportContent::Congested { echo, level, mean, cause } => {
            out.push(1);
            put_echo(out, echo)?;
            put_level(out, "level", level)?;
            put_level(out, "mean", mean)?;
            out.push(cause_number(cause));
            Ok(())
        }
        ReportContent::Lost { echo, first, count, loss } => {
            out.push(2);
            put_echo(out, echo)?;
            put_seq(out, "first", first.0)?;
            out.extend_from_slice(&count.to_be_bytes());
            put_fraction(out, "loss", loss)
        }
        ReportContent::Received { echo, rate, loss } => {
            out.push(3);
            put_echo(out, echo)?;
            put_rate(out, "rate", rate)?;
            put_fraction(out, "loss", loss)
        }
        ReportContent::Selective { echo, behind, bitmap, loss } => {
            out.push(4);
            put_echo(out, echo)?;
            out.extend_from_slice(&behind.to_be_bytes());
            out.extend_from_slice(&bitmap.to_be_bytes());
            put_fraction(out, "loss", loss)
        }
        ReportContent::Calculated { echo, rate, stamp, round, knows } => {
            out.push(6);
            put_echo(out, echo)?;
            put_rate(out, "rate", rate)?;
            out.extend_from_slice(&stamp.to_be_bytes());
            out.extend_from_slice(&[round, knows.0]);
            Ok(())
        }
        ReportContent::Averaged { echo, mean, deviation, samples, rate, cause } => {
            out.push(7);
            put_echo(out, echo)?;
            put_level(out, "mean", mean)?;
            put_level(out, "deviation", deviation)?;
            out.extend_from_slice(&samples.to_be_bytes());
            put_rate(out, "rate", rate)?;
            out.push(cause_number(cause));
            Ok(())
        }
    }
}

fn put_announce(out: &mut Vec<u8>, announce: &Announce) -> Result<(), EncodeError> {
    if let Some(len) = announce.stream_len {
        at_most("stream_len", len, OPEN_ENDED - 1)?;
    }
    out.extend_from_slice(&announce.salt);
    out.extend_from_slice(&announce.unix_secs.to_be_bytes());
    out.extend_from_slice(&announce.transfer.0);
    out.extend_from_slice(&announce.stream_len.unwrap_or(OPEN_ENDED).to_be_bytes());
    out.extend_from_slice(&announce.manifest_len.to_be_bytes());
    out.extend_from_slice(&announce.symbol_size.to_be_bytes());
    out.extend_from_slice(&announce.symbols_per_block.to_be_bytes());
    out.extend_from_slice(&announce.first_block.to_be_bytes());
    put_seq(out, "next_seq", announce.next_seq)?;
    out.extend_from_slice(&[announce.scheme, announce.layers]);
    out.extend_from_slice(&announce.spread_ms.to_be_bytes());
    out.push(announce.flags);
    put_name(out, &announce.name);
    put_name(out, &announce.options);
    Ok(())
}

fn put_status(out: &mut Vec<u8>, status: &Status, end: usize) -> Result<Fit, EncodeError> {
    if let Some(blocks) = status.blocks {
        at_most("blocks", blocks.into(), u64::from(NO_BLOCKS) - 1)?;
    }
    put_seq(out, "next_seq", status.next_seq)?;
    out.extend_from_slice(&status.complete_to.to_be_bytes());
    out.extend_from_slice(&status.blocks.unwrap_or(NO_BLOCKS).to_be_bytes());
    out.extend_from_slice(&status.spread_ms.to_be_bytes());
    out.extend_from_slice(&status.members.to_be_bytes());
    out.push(status.flags);
    out.extend_from_slice(&status.rtt_max_us.to_be_bytes());
    out.push(u8::from(status.root.is_some()));
    out.extend_from_slice(status.root.as_ref().map_or(&[], |root| root));
    let room = end.saturating_sub(out.len() + 10);
    let (layers, repairs) = (status.upper_seqs.len(), status.scheduled.len());
    let lens = [layers, repairs, status.confirmed.len(), status.lagging.len(), status.dropped.len()];
    let counts = share(room, lens, [8, 6, 4, 4, 4]);
    for count in counts {
        out.extend_from_slice(&(count as u16).to_be_bytes());
    }
    for &seq in &status.upper_seqs[..counts[0]] {
        put_seq(out, "upper_seq", seq)?;
    }
    for scheduled in &status.scheduled[..counts[1]] {
        out.extend_from_slice(&scheduled.block.to_be_bytes());
        out.extend_from_slice(&scheduled.symbols.to_be_bytes());
    }
    for &id in &status.confirmed[..counts[2]] {
        put_id(out, "confirmed", Some(id))?;
    }
    for &id in &status.lagging[..counts[3]] {
        put_id(out, "lagging", Some(id))?;
    }
    for &id in &status.dropped[..counts[4]] {
        put_id(out, "dropped", Some(id))?;
    }
    let [upper_seqs, scheduled, confirmed, lagging, dropped] = counts;
    Ok(Fit { upper_seqs, scheduled, confirmed, lagging, dropped, needs: 0 })
}

/// Share `room` bytes among lists of `lens` entries of `sizes` bytes: every list is sure of an equal
/// part, and what one does not use goes to the others, first come first served.
fn share<const N: usize>(mut room: usize, lens: [usize; N], sizes: [usize; N]) -> [usize; N] {
    let sure = room / N;
    let mut counts = [0; N];
    for list in 0..N {
        counts[list] = lens[list].min(sure / sizes[list]).min(usize::from(u16::MAX));
        room -= counts[list] * sizes[list];
    }
    for list in 0..N {
        let more =
            (lens[list] - counts[list]).min(room / sizes[list]).min(usize::from(u16::MAX) - counts[list]);
        counts[list] += more;
        room -= more * sizes[list];
    }
    counts
}

fn put_request(out: &mut Vec<u8>, request: &Request, end: usize) -> Result<Fit, EncodeError> {
    put_echo(out, request.echo)?;
    let [needs] = share(end.saturating_sub(out.len() + 2), [request.needs.len()], [8]);
    out.extend_from_slice(&(needs as u16).to_be_bytes());
    for need in &request.needs[..needs] {
        out.extend_from_slice(&need.first.to_be_bytes());
        out.extend_from_slice(&need.run.to_be_bytes());
        out.extend_from_slice(&need.symbols.to_be_bytes());
    }
    Ok(Fit { needs, ..Fit::default() })
}

fn put_member(out: &mut Vec<u8>, member: &Member) -> Result<(), EncodeError> {
    out.push(match member.state {
        MemberState::Joined => 0,
        MemberState::Receiving => 1,
        MemberState::Done => 2,
        MemberState::Failed => 3,
        MemberState::Leaving => 4,
    });
    out.push(member.reason);
    out.extend_from_slice(&member.verified_bytes.to_be_bytes());
    out.extend_from_slice(&member.blocks_missing.to_be_bytes());
    put_rate(out, "rate", member.rate)?;
    put_fraction(out, "loss", member.loss)?;
    out.extend_from_slice(&member.dropped_local.to_be_bytes());
    put_echo(out, member.echo)?;
    put_name(out, &member.host);
    Ok(())
}

fn put_window(out: &mut Vec<u8>, window: &Window) -> Result<(), EncodeError> {
    put_echo(out, window.echo)?;
    put_seq(out, "limit", window.limit.0)
}

fn put_echo(out: &mut Vec<u8>, echo: Echo) -> Result<(), EncodeError> {
    put_seq(out, "echo", echo.seq.0)?;
    out.extend_from_slice(&echo.hold.as_nanos().to_be_bytes());
    Ok(())
}

fn put_seq(out: &mut Vec<u8>, field: &'static str, seq: u64) -> Result<(), EncodeError> {
    at_most(field, seq, SEQ_LIMIT - 1)?;
    out.extend_from_slice(&seq.to_be_bytes());
    Ok(())
}

pub(crate) fn put_id(
    out: &mut Vec<u8>,
    field: &'static str,
    id: Option<ReceiverId>,
) -> Result<(), EncodeError> {
    let id = id.map_or(0, ReceiverId::get);
    at_most(field, id, u32::MAX.into())?;
    out.extend_from_slice(&(id as u32).to_be_bytes());
    Ok(())
}

fn put_half(out: &mut Vec<u8>, field: &'static str, value: f32) -> Result<(), EncodeError> {
    usable(field, value, value >= 0.0)?;
    out.extend_from_slice(&half::encode(value).to_be_bytes());
    Ok(())
}

fn put_level(out: &mut Vec<u8>, field: &'static str, value: f32) -> Result<(), EncodeError> {
    usable(field, value, !value.is_nan())?;
    out.extend_from_slice(&value.to_be_bytes());
    Ok(())
}

fn put_rate(out: &mut Vec<u8>, field: &'static str, value: f32) -> Result<(), EncodeError> {
    usable(field, value, value >= 0.0)?;
    out.extend_from_slice(&value.to_be_bytes());
    Ok(())
}

fn put_fraction(out: &mut Vec<u8>, field: &'static str, value: f32) -> Result<(), EncodeError> {
    usable(field, value, (0.0..=1.0).contains(&value))?;
    out.extend_from_slice(&value.to_be_bytes());
    Ok(())
}

fn put_name(out: &mut Vec<u8>, name: &Name) {
    out.push(name.as_str().len() as u8);
    out.extend_from_slice(name.as_str().as_bytes());
}

fn usable(field: &'static str, value: f32, is_usable: bool) -> Result<(), EncodeError> {
    if is_usable { Ok(()) } else { Err(EncodeError::NotANumber { field, value }) }
}

fn at_most(field: &'static str, value: u64, max: u64) -> Result<(), EncodeError> {
    if value <= max { Ok(()) } else { Err(EncodeError::TooLarge { field, value, max }) }
}
