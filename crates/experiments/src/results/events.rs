//! The events of a run, one row each.

use super::Rows;
use super::measure::Run;
use super::rows::Field::{Number, Text, Whole};
use crate::table::Table;
use faircast_aqm::{DropCause, LossCause};
use faircast_sim::{Event, FlowId, Happening, LinkId};
use std::collections::BTreeMap;

/// An event with the fields of the table.
struct Reported<'a> {
    event: &'a str,
    flow: FlowId,
    member: Option<u32>,
    link: Option<LinkId>,
    value: f64,
    cause: &'a str,
}

impl Run<'_> {
    /// Returns the events that `probe.events` recorded.
    pub(super) fn events(&self) -> Table {
        let mut rows = Rows::new("events");
        if self.outcome.log.is_empty() {
            return rows.0;
        }
        let copies: BTreeMap<usize, (usize, u64)> = (0..self.plan.flows.len())
            .flat_map(|group| self.group(group).map(move |(copy, flow, _)| (flow, (group, copy))))
            .collect();
        for event in &self.outcome.log {
            let reported = reported(event);
            let flow = reported.flow.0 as usize;
            let (group, copy) = copies[&flow];
            let receiver =
                reported.member.map(|member| self.receiver(flow, member as usize)).unwrap_or_default();
            let link = reported.link.map(|link| self.layout.link_name(link.0)).unwrap_or_default();
            rows.push(&[
                ("time", Number(event.at.as_secs_f64())),
                ("event", Text(reported.event)),
                ("flow", Text(self.name(group))),
                ("copy", Whole(copy)),
                ("receiver", Text(&receiver)),
                ("link", Text(&link)),
                ("value", Number(reported.value)),
                ("cause", Text(reported.cause)),
            ]);
        }
        rows.0
    }
}

fn reported(event: &Event) -> Reported<'static> {
    let plain = |event, flow| Reported { event, flow, member: None, link: None, value: f64::NAN, cause: "" };
    match event.what {
        Happening::Joined { flow, member } => Reported { member: Some(member), ..plain("join", flow) },
        Happening::Left { flow, member } => Reported { member: Some(member), ..plain("leave", flow) },
        Happening::Started { flow } => plain("start", flow),
        Happening::StartUpEnded { flow, rate } => {
            Reported { value: rate.bps(), ..plain("start_up_end", flow) }
        }
        Happening::Cut { flow, rate, .. } => Reported { value: rate.bps(), ..plain("cut", flow) },
        Happening::Follows { flow, member } => Reported { member, ..plain("follow", flow) },
        Happening::Subscribed { flow, member, layer } => {
            Reported { member: Some(member), value: f64::from(layer) + 1.0, ..plain("subscribe", flow) }
        }
        Happening::Transferred { flow, packets, .. } => {
            Reported { value: packets.into(), ..plain("transfer", flow) }
        }
        Happening::Stopped { flow } => plain("stop", flow),
        Happening::Marked { link, flow } => Reported { link: Some(link), ..plain("mark", flow) },
        Happening::Lost { link, flow, cause } => {
            Reported { link: Some(link), cause: reason(cause), ..plain("loss", flow) }
        }
    }
}

pub(crate) fn reason(cause: LossCause) -> &'static str {
    match cause {
        LossCause::Queue(DropCause::Overflow) => "overflow",
        LossCause::Queue(DropCause::Early) => "early",
        LossCause::Wire => "wire",
        LossCause::Down => "down",
    }
}
