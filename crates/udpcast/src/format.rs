//! udpcast as one of faircast's formats: its options, the features that it does not support, and its reports as text.

use crate::{UdpcastReceive, UdpcastReceiveReport, UdpcastSend, UdpcastSendReport, standard_group};
use faircast_driver::format::{
    Declaration, Ends, Feature, Format, FormatOption, Given, Outcome, ReceiverRequest, Refused,
    SourceRequest, Values,
};
use faircast_transport::config::default_group;
use faircast_transport::event::IncompleteReceiver;
use faircast_transport::units;
use std::net::{Ipv4Addr, SocketAddr};

/// udpcast.
#[derive(Debug, Clone, Copy)]
pub struct Udpcast;

const ANSWERS: &str = "udpcast receivers request lost packets";
const ONE_FILE: &str = "udpcast carries the bytes of one file";

impl Format for Udpcast {
    const DECLARATION: Declaration = Declaration {
        name: "udpcast",
        title: "udpcast",
        summary: "udpcast, compatible with udp-sender and udp-receiver",
        options: &[FormatOption {
            name: "rendezvous",
            value: "ADDRESS",
            meaning: "Over udpcast: IPv4 address at which senders and receivers find one another, in addition to the broadcast address [default: 224.0.0.1]",
            values: Values::Checked(|text| address(text).map(|_| ())),
            ends: Ends::Both,
        }],
        refuses: &[
            (Feature::Name, "udpcast carries no names"),
            (Feature::Stream, "udpcast fills large slices; send a pipe with `-` as the path"),
            (Feature::Metadata, ONE_FILE),
            (Feature::Links, ONE_FILE),
            (Feature::Delta, "udpcast sends the whole content"),
            (Feature::DryRun, "udpcast receivers do not compare files"),
            (Feature::Reuse, "udpcast sends the whole content"),
            (Feature::Layers, "udpcast has no layers"),
            (Feature::Encryption, "udpcast has no encryption"),
            (Feature::Signatures, "udpcast has no signatures"),
            (Feature::Receipts, "udpcast has no receipts"),
            (
                Feature::SlowPolicy,
                "all udpcast receivers need a slice before the slice after the next one is sent",
            ),
            (Feature::ReceiverList, "udpcast receivers do not send their names"),
            (Feature::ReceiverNames, "udpcast receivers do not send their names"),
            (Feature::StartTime, "receivers wait only for a while; run the command at that time"),
            (Feature::DayLimits, "its maximum rate is fixed; set it with max"),
            (Feature::ReceiverReport, "udpcast receivers do not verify the content"),
            (Feature::Port, "udpcast receivers send to the port after the port of the group"),
            (Feature::Unicast, "udpcast data is sent to a group"),
            (Feature::OneWay, ANSWERS),
            (Feature::FixedRate, ANSWERS),
            (Feature::Repetition, ANSWERS),
            (Feature::SourceNames, "udpcast senders do not send their names"),
            (Feature::KeepPartial, "udpcast cannot resume a transfer"),
            (Feature::Sync, "udpcast never confirms that content is on the disk"),
            (Feature::Replacement, "udpcast sessions do not state the name of their sender"),
        ],
    };
    type Source = UdpcastSend;
    type Receiver = UdpcastReceive;

    fn source(asked: SourceRequest) -> Result<UdpcastSend, Refused> {
        let plain = UdpcastSend::new(asked.content);
        let mut place = asked.place;
        place.group = group(place.group);
        Ok(UdpcastSend {
            place,
            rendezvous: rendezvous(&asked.options),
            scheme: asked.scheme.unwrap_or(plain.scheme),
            min: asked.min,
            max: asked.max,
            expect: asked.expect,
            join_timeout: Some(asked.linger),
            max_wait: Some(asked.linger),
            ..plain
        })
    }

    fn receiver(asked: ReceiverRequest) -> Result<UdpcastReceive, Refused> {
        let ReceiverRequest { mut place, destination, most, options, .. } = asked;
        place.group = group(place.group);
        Ok(UdpcastReceive { place, rendezvous: rendezvous(&options), destination, most })
    }
}

/// Returns the requested group. The default port of faircast's default group becomes udpcast's default port.
fn group(asked: SocketAddr) -> SocketAddr {
    if asked == default_group() { standard_group() } else { asked }
}

fn address(text: &str) -> Result<Ipv4Addr, String> {
    text.parse().map_err(|_| format!("`{text}` is not an IPv4 address"))
}

/// Returns the rendezvous address, which has already been checked.
fn rendezvous(given: &Given) -> Option<Ipv4Addr> {
    given.get("rendezvous").and_then(|text| address(text).ok())
}

impl Outcome for UdpcastSendReport {
    fn summary(&self) -> Vec<String> {
        vec![format!(
            "sent {} in {}: {}, {} sent again; receivers with all blocks: {} of {} (udpcast does not verify content)",
            units::bytes(self.bytes),
            units::seconds(self.duration.as_secs_f64()),
            units::rate(self.goodput.bps()),
            units::count(self.repairs, "packet"),
            self.completed,
            self.receivers,
        )]
    }

    fn shortfall(&self) -> Option<String> {
        let dropped = |dropped: &IncompleteReceiver| format!("{} ({})", dropped.host, dropped.reason);
        (!self.ok).then(|| {
            let absent = (self.absent > 0)
                .then(|| format!("{} not joined", units::count(self.absent, "expected receiver")));
            let reasons: Vec<String> = self.incomplete.iter().map(dropped).chain(absent).collect();
            match reasons.is_empty() {
                true => "the session was stopped before its end".to_owned(),
                false => format!("incomplete: {}", reasons.join(", ")),
            }
        })
    }
}

impl Outcome for UdpcastReceiveReport {
    fn summary(&self) -> Vec<String> {
        vec![format!(
            "received {} ({}) in {}: {} (udpcast does not verify content)",
            units::bytes(self.bytes),
            units::count(self.packets, "packet"),
            units::seconds(self.duration.as_secs_f64()),
            units::rate(self.goodput.bps()),
        )]
    }

    fn shortfall(&self) -> Option<String> {
        (!self.ok).then(|| "the session was stopped before its end".to_owned())
    }

    fn dropped_local(&self) -> u64 {
        self.dropped_local
    }
}
