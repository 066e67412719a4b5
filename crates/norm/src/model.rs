//! A receiver of NORM for tests: it stores symbols, requests missing ones, and reports as libnorm's receivers do.

use super::codec::{
    self, Answer, CcReport, Command, Fec, Feedback, FeedbackKind, Form, Fti, Item, Message, NodeId, Packet,
    PayloadId, Requests, SenderMessage, SenderState, cc_flags, quantities, request_flags,
};
use super::rs;
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};
use std::collections::{BTreeMap, VecDeque};

/// How the receiver requests missing symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    /// By the numbers of parity symbols that it lacks, as libnorm.
    Parity,
    /// By a number of erasures.
    Erasures,
    /// By the ranges of the missing source symbols.
    Ranges,
    /// By whole blocks.
    Blocks,
}

/// An object of which something has arrived.
#[derive(Debug, Default)]
pub(super) struct Got {
    pub(super) name: Option<String>,
    fec: Fec,
    fti: Option<Fti>,
    blocks: BTreeMap<u32, BTreeMap<u8, Vec<u8>>>,
}

pub(super) struct Model {
    pub(super) id: NodeId,
    asks: Asks,
    rng: Rng,
    pub(super) objects: BTreeMap<u16, Got>,
    /// The newest position of the sender.
    newest: (u16, u32),
    has_flush: bool,
    sender: Option<(NodeId, SenderState)>,
    nack_at: Option<Time>,
    held_until: Time,
    /// The newest probe: its number, its time on the wire and its arrival.
    probe: Option<(u16, (u32, u32), Time)>,
    rtt: Option<Span>,
    sequence: Option<u16>,
    /// Numbers of packets of the latest loss intervals, the present one first.
    intervals: VecDeque<u32>,
    lost_at: Time,
    received: VecDeque<(Time, usize)>,
}

impl Model {
    pub(super) fn new(id: NodeId, asks: Asks) -> Model {
        Model {
            id,
            asks,
            rng: Rng::new(id.into(), 7),
            objects: BTreeMap::new(),
            newest: (0, 0),
            has_flush: false,
            sender: None,
            nack_at: None,
            held_until: Time::ZERO,
            probe: None,
            rtt: None,
            sequence: None,
            intervals: VecDeque::from([0]),
            lost_at: Time::ZERO,
            received: VecDeque::new(),
        }
    }

    /// Returns the time of the next NACK.
    pub(super) fn deadline(&self) -> Time {
        self.nack_at.unwrap_or(Time::NEVER)
    }

    /// Handles a packet of the sender. Returns an answer.
    pub(super) fn on_packet(&mut self, bytes: &[u8], now: Time) -> Option<Vec<u8>> {
        let Ok(Packet { sequence, source, message: Message::Sender(state, message) }) = codec::parse(bytes)
        else {
            panic!("the source sends messages of a sender");
        };
        self.sender = Some((source, state));
        self.count(sequence, bytes.len(), now);
        match message {
            SenderMessage::Info { object, info } => {
                let got = self.objects.entry(object.id).or_default();
                got.name = Some(String::from_utf8(info.to_vec()).expect("names are text"));
                (got.fec, got.fti) = (object.fec, object.fti);
                self.reach((object.id, 0), now);
            }
            SenderMessage::Data { object, id, block_len, symbol } => {
                let got = self.objects.entry(object.id).or_default();
                (got.fec, got.fti) = (object.fec, object.fti);
                let len = object.fti.and_then(|fti| lens(fti).get(id.block as usize).copied());
                let stated = if got.fec == Fec::SmallBlock { len.map(u16::from) } else { Some(0) };
                assert_eq!(Some(block_len), stated, "{id:?}");
                got.blocks.entry(id.block).or_default().insert(id.symbol, symbol.to_vec());
                self.reach((object.id, id.block), now);
            }
            SenderMessage::Command(Command::Cc { sequence, sent, nodes, .. }) => {
                self.probe = Some((sequence, sent, now));
                let own = nodes.iter().find(|node| node.id == self.id);
                if let Some(own) = own {
                    self.rtt = Some(quantities::rtt_of(own.rtt));
                }
                return Some(self.feedback(FeedbackKind::Ack { answer: Answer::Cc, id: 0 }, now));
            }
            SenderMessage::Command(Command::Flush { at, nodes }) => {
                self.has_flush = true;
                self.reach((at.object, at.id.block + 1), now);
                let is_asked = nodes.iter().any(|node| node == self.id);
                if is_asked && self.missing().is_empty() {
                    let answer = Answer::Flush(at);
                    return Some(self.feedback(FeedbackKind::Ack { answer, id: 0 }, now));
                }
            }
            SenderMessage::Command(Command::Eot | Command::Squelch { .. }) => {}
        }
        None
    }

    /// Sends the NACK that is due.
    pub(super) fn on_time(&mut self, now: Time) -> Option<Vec<u8>> {
        self.nack_at.filter(|at| *at <= now)?;
        self.nack_at = None;
        let requests = self.missing();
        if requests.is_empty() {
            return None;
        }
        let grtt = self.grtt();
        self.held_until = now + grtt * 6;
        let requests = Requests::parse(&requests).expect("it wrote them").to_owned();
        Some(self.feedback(FeedbackKind::Nack(requests), now))
    }

    fn grtt(&self) -> Span {
        self.sender.map_or(Span::ZERO, |(_, state)| quantities::rtt_of(state.grtt))
    }

    /// Records the sender's position. Missing parts before it are requested after a random time.
    fn reach(&mut self, position: (u16, u32), now: Time) {
        self.newest = self.newest.max(position);
        if self.nack_at.is_none() && now >= self.held_until && !self.missing().is_empty() {
            self.nack_at = Some(now + (self.grtt() * 4).scaled(self.rng.unit()));
        }
    }

    /// Returns the requests for everything that lacks before the sender's position.
    fn missing(&self) -> Vec<u8> {
        let mut requests = Vec::new();
        let last = self.newest.0;
        for object in 0..=last {
            let got = self.objects.get(&object);
            let fec = got.map(|got| got.fec).unwrap_or_default();
            let start = Item::new(fec, object, PayloadId { block: 0, symbol: 0 });
            let Some((got, fti)) = got.and_then(|got| Some((got, got.fti?))) else {
                let end = Item { object, ..start };
                codec::push_request(&mut requests, Form::Ranges, request_flags::OBJECT, &[start, end]);
                continue;
            };
            if got.name.is_none() {
                codec::push_request(&mut requests, Form::Items, request_flags::INFO, &[start]);
            }
            for (block, len) in lens(fti).into_iter().enumerate() {
                let block = block as u32;
                if (object, block) >= self.newest && !(self.has_flush && object < last) {
                    break;
                }
                let empty = BTreeMap::new();
                let held = got.blocks.get(&block).unwrap_or(&empty);
                let missing = usize::from(len).saturating_sub(held.len()) as u8;
                if missing > 0 {
                    let at = Item { id: PayloadId { block, symbol: 0 }, block_len: len.into(), ..start };
                    self.ask(&mut requests, at, (len, missing), held);
                }
            }
        }
        requests
    }

    fn ask(&self, out: &mut Vec<u8>, at: Item, (len, missing): (u8, u8), held: &BTreeMap<u8, Vec<u8>>) {
        let item = |symbol| Item { id: PayloadId { symbol, ..at.id }, ..at };
        let lacks = |symbol: &u8| !held.contains_key(symbol);
        match self.asks {
            Asks::Parity => {
                let parity = (len..len + super::files::PARITY).filter(lacks);
                let items: Vec<Item> =
                    parity.chain((0..len).filter(lacks)).take(missing.into()).map(item).collect();
                codec::push_request(out, Form::Items, request_flags::SEGMENT, &items);
            }
            Asks::Erasures => {
                codec::push_request(out, Form::Erasures, request_flags::SEGMENT, &[item(missing)]);
            }
            Asks::Ranges => {
                let pairs: Vec<Item> = (0..len).filter(lacks).flat_map(|n| [item(n), item(n)]).collect();
                codec::push_request(out, Form::Ranges, request_flags::SEGMENT, &pairs);
            }
            Asks::Blocks => codec::push_request(out, Form::Items, request_flags::BLOCK, &[item(0)]),
        }
    }

    /// Counts a packet, and the lost packets before it.
    fn count(&mut self, sequence: u16, size: usize, now: Time) {
        self.received.push_back((now, size));
        let window = self.rtt.unwrap_or(Span::from_millis(100)).max(Span::from_millis(20));
        while self.received.front().is_some_and(|(at, _)| now.since(*at) > window) {
            self.received.pop_front();
        }
        let before = self.sequence.replace(sequence);
        let is_gap = before.is_some_and(|before| before.wrapping_add(1) != sequence);
        if is_gap && now.since(self.lost_at) > self.rtt.unwrap_or(self.grtt()) {
            self.lost_at = now;
            self.intervals.push_front(0);
            self.intervals.truncate(8);
        }
        self.intervals[0] += 1;
    }

    fn feedback(&self, kind: FeedbackKind<'_>, now: Time) -> Vec<u8> {
        let (server, state) = self.sender.expect("it has received something");
        let has_loss = self.intervals.len() > 1;
        let rtt = self.rtt.unwrap_or(self.grtt());
        let bytes: usize = self.received.iter().map(|(_, size)| size + 28).sum();
        let window = self.received.front().map_or(Span::ZERO, |(at, _)| now.since(*at));
        let closed = self.intervals.iter().skip(1);
        let mean = closed.clone().sum::<u32>() as f64 / closed.len().max(1) as f64;
        let open = self.intervals.iter().sum::<u32>() as f64 / self.intervals.len() as f64;
        let loss = 1.0 / mean.max(open).max(1.0);
        let equation =
            (2.0 * loss / 3.0).sqrt() + 12.0 * (3.0 * loss / 8.0).sqrt() * loss * (1.0 + 32.0 * loss * loss);
        let rate = match has_loss {
            true => Rate::from_bps(8.0 * 1_000.0 / (rtt.as_secs_f64() * equation)),
            false => Rate::of(bytes as u64 * 2, window.max(Span::from_millis(1))),
        };
        let flags = if has_loss { 0 } else { cc_flags::START };
        let cc = self.probe.map(|(sequence, ..)| CcReport {
            sequence,
            flags: flags | if self.rtt.is_some() { cc_flags::RTT } else { 0 },
            rtt: quantities::rtt_code(rtt),
            loss: if has_loss { (loss * 65_535.0) as u16 } else { 0 },
            rate: quantities::rate_code(rate),
        });
        let response = self.probe.map_or((0, 0), |(_, (secs, micros), at)| {
            let micros = u64::from(micros) + now.since(at).as_nanos() / 1_000;
            (secs + (micros / 1_000_000) as u32, (micros % 1_000_000) as u32)
        });
        let feedback = Feedback { server, instance: state.instance, response, cc, kind };
        let mut bytes = Vec::new();
        codec::encode(
            &mut bytes,
            &Packet { sequence: 0, source: self.id, message: Message::Feedback(feedback) },
        );
        bytes
    }

    /// Returns the names and contents of all files.
    pub(super) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let file = |got: &Got| {
            let fti = got.fti?;
            let mut content = Vec::new();
            for (block, len) in lens(fti).into_iter().enumerate() {
                let held = got.blocks.get(&(block as u32))?;
                let segment = usize::from(fti.segment);
                let padded = held.iter().take(len.into()).map(|(number, symbol)| {
                    // Parity symbols of a short block have the numbers after those of its source symbols.
                    let number = if *number < len { *number } else { number - len + fti.max_block };
                    let mut symbol = symbol.clone();
                    symbol.resize(segment, 0);
                    (number, symbol)
                });
                let known: Vec<(u8, Vec<u8>)> = padded.collect();
                if known.len() < len.into() {
                    return None;
                }
                content.extend(rs::decode(&known, len, fti.max_block, segment));
            }
            content.truncate(fti.size as usize);
            Some((got.name.clone()?, content))
        };
        self.objects.values().filter_map(file).collect()
    }
}

/// Returns the numbers of source symbols of all blocks.
fn lens(fti: Fti) -> Vec<u8> {
    let symbols = fti.size.div_ceil(fti.segment.into());
    let blocks = symbols.div_ceil(fti.max_block.into());
    (0..blocks).map(|block| (symbols / blocks + u64::from(block < symbols % blocks)) as u8).collect()
}
