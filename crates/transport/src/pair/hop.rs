//! An active router for tests. Like a real driver, it parses datagrams, lets the router change permitted fields, and encodes the
//! datagrams again.

use faircast_core::node::{Cx, Effect, Effects, Port, Router, RouterSpec, To, Verdict};
use faircast_core::packet::{Body, Data, Flags, Layer, Packet, ReceiverId, Report, Seq};
use faircast_core::rng::Rng;
use faircast_core::time::Time;
use faircast_wire::{DataPacket, Message, Newest, encode, encode_data, parse, peek};
use std::collections::BTreeMap;

/// An active router in front of receivers. Port 0 leads to the source, and port 1 + n to receiver n.
pub(super) struct Hop {
    router: Box<dyn Router + Send>,
    rng: Rng,
    effects: Effects,
    /// Recent data datagrams. The router's later packets are made from these datagrams.
    stored: BTreeMap<(Layer, Seq), Vec<u8>>,
    /// Number of each receiver's newest report. The router does not forward this report, but sends a report of its own in the
    /// receiver's name under the same number.
    numbers: BTreeMap<ReceiverId, u32>,
}

/// A packet sent by the active router: data to a receiver, or a report to the source in the receiver's name.
pub(super) enum Out {
    Data(usize, Vec<u8>),
    Report(usize, Vec<u8>),
}

const MAX_STORED: usize = 4096;

impl Hop {
    pub(super) fn new(spec: &dyn RouterSpec, rng: Rng) -> Hop {
        Hop {
            router: spec.router(),
            rng,
            effects: Effects::new(),
            stored: BTreeMap::new(),
            numbers: BTreeMap::new(),
        }
    }

    pub(super) fn deadline(&self) -> Time {
        self.router.deadline()
    }

    pub(super) fn on_time(&mut self, now: Time) -> Vec<Out> {
        self.router.on_deadline(&mut Cx { now, rng: &mut self.rng, effects: &mut self.effects });
        self.drain()
    }

    /// Processes a datagram to a receiver; returns the packets to send.
    pub(super) fn on_data(&mut self, receiver: usize, bytes: &[u8], packet: Packet, now: Time) -> Vec<Out> {
        let Body::Data(data) = packet.body else { panic!("data goes to receivers: {packet:?}") };
        self.stored.insert((packet.layer, data.seq), bytes.to_vec());
        if self.stored.len() > MAX_STORED {
            self.stored.pop_first();
        }
        let mut passed = packet;
        let cx = &mut Cx { now, rng: &mut self.rng, effects: &mut self.effects };
        let verdict = self.router.on_data(Port(receiver as u16 + 1), &mut passed, cx);
        let mut out = self.drain();
        if verdict == Verdict::Pass {
            let unchanged = passed == packet;
            out.push(Out::Data(receiver, if unchanged { bytes.to_vec() } else { rewritten(bytes, &passed) }));
        }
        out
    }

    /// Processes a receiver's report to the source; returns the packets to send.
    pub(super) fn on_report(&mut self, receiver: usize, bytes: &[u8], packet: Packet, now: Time) -> Vec<Out> {
        if let Body::Report(report) = packet.body {
            self.numbers.insert(report.from, peek(bytes).expect("a receiver wrote it").seq);
        }
        let mut passed = packet;
        let cx = &mut Cx { now, rng: &mut self.rng, effects: &mut self.effects };
        let verdict = self.router.on_report(Port(receiver as u16 + 1), &mut passed, cx);
        let mut out = self.drain();
        match passed.body {
            _ if verdict != Verdict::Pass => {}
            _ if passed == packet => out.push(Out::Report(receiver, bytes.to_vec())),
            Body::Report(report) => out.push(of(&passed, &report, &self.numbers)),
            _ => panic!("a report stays one: {passed:?}"),
        }
        out
    }

    /// Returns the packets that the router sends.
    fn drain(&mut self) -> Vec<Out> {
        let out = self.effects.drain().map(|effect| match effect {
            Effect::Send { to: To::Exit(Port(port)), packet } => {
                let Body::Data(data) = packet.body else { panic!("no data: {packet:?}") };
                let bytes = self.stored.get(&(packet.layer, data.seq)).expect("it came lately");
                Out::Data(usize::from(port) - 1, rewritten(bytes, &packet))
            }
            Effect::Send { to: To::Parent, packet: packet @ Packet { body: Body::Report(report), .. } } => {
                of(&packet, &report, &self.numbers)
            }
            other => panic!("nobody can {other:?}"),
        });
        out.collect()
    }
}

fn of(packet: &Packet, report: &Report, numbers: &BTreeMap<ReceiverId, u32>) -> Out {
    let mut bytes = Vec::new();
    let seq = numbers[&report.from];
    encode(&mut bytes, packet.session, seq, &Message::Report(*report), 1000).expect("a report fits");
    Out::Report(report.from.get() as usize - 1, bytes)
}

/// Returns the datagram with the router's changes. Content and packet number of the datagram stay the same.
fn rewritten(bytes: &[u8], packet: &Packet) -> Vec<u8> {
    let Body::Data(sent) = packet.body else { panic!("no data: {packet:?}") };
    let (header, message) = parse(bytes, &Newest::default()).expect("the source wrote it");
    let Message::Data(was) = message else { panic!("the source wrote data") };
    let flags = Flags(sent.flags.0 | was.data.flags.0 & Flags::REPAIR.0);
    let data = Data { rate: sent.rate, signal: sent.signal, mark: sent.mark, flags, ..was.data };
    let mut out = Vec::new();
    encode_data(&mut out, header.session, &DataPacket { data, ..was }).expect("it fitted before");
    out
}
