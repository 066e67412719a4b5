//! Arbitrary messages for property tests, derived from the declarations of packet fields.

use crate::bodies::{Body, DataFields};
use crate::codec::{Codec, Counter, Rounded};
use crate::marks;
use crate::message::{
    Announce, Attach, Hashes, Invite, Member, Message, Order, Refusal, Request, Status, Token, Tree,
    Verified, Window,
};
use crate::parse::LAYERS;
use crate::receipt::Receipt;
use crate::reports;
use faircast_core::packet::{Data, Flags, Layer, Mark, Payload, ReceiverId, Report, ReportContent, Seq};
use faircast_core::time::Time;
use proptest::prelude::*;

/// Generates any mark that can be written.
pub fn any_mark() -> BoxedStrategy<Mark> {
    marks::any()
}

/// Generates any content of a report that can be written.
pub fn any_content() -> BoxedStrategy<ReportContent> {
    reports::any()
}

/// Generates any data packet that can be written, without its symbol: the part for the core, and the block's number of symbols.
pub fn any_data() -> BoxedStrategy<(Data, u16)> {
    let marked = any_mark().prop_flat_map(|mark| (Just(mark), marks::any_signal(&mark)));
    let fields = (DataFields::any(), 0..u64::MAX / 1_000, any::<bool>());
    (marked, Counter::any(), Rounded::any(), fields)
        .prop_map(|((mark, signal), seq, rate, (fields, micros, empty))| {
            let DataFields { block, symbol, symbols, flags, .. } = fields;
            let some = Payload { block: block.min(u32::MAX - 1), symbol };
            let data = Data {
                seq: Seq(seq),
                sent_at: Time::from_nanos(micros * 1_000),
                rate,
                payload: if empty { Payload::NONE } else { some },
                flags: Flags(flags & Flags::ALL.0),
                signal,
                mark,
            };
            (data, symbols)
        })
        .boxed()
}

/// Generates any message except data.
pub fn any_message() -> BoxedStrategy<Message<'static>> {
    let report = (ReceiverId::any(), 0..LAYERS as u8, any_content())
        .prop_map(|(from, layer, content)| Message::Report(Report { from, layer: Layer(layer), content }));
    prop_oneof![
        report,
        Announce::any().prop_map(Message::Announce),
        Status::any().prop_map(Message::Status),
        Request::any().prop_map(Message::Request),
        Member::any().prop_map(Message::Member),
        Window::any().prop_map(Message::Window),
        Hashes::any().prop_map(Message::Hashes),
        Refusal::any().prop_map(Message::Refusal),
        Attach::any().prop_map(Message::Attach),
        Token::any().prop_map(Message::Token),
        Invite::any().prop_map(Message::Invite),
        Tree::any().prop_map(Message::Tree),
        Verified::any().prop_map(Message::Verified),
        Order::any().prop_map(Message::Order),
        Receipt::any().prop_map(Message::Receipt),
    ]
    .boxed()
}
