//! Checks whether the source's data arrives as well as its announcements, and whether the source has moved to another address.
//!
//! Some paths drop large packets, because of a small MTU that is not reported or because of a firewall. On these paths,
//! announcements and status messages arrive, and data does not. A status states the number of sent packets, so a receiver can
//! detect that data is missing.

use super::{Error, Event, Phase, ReceiverSession, Stream};
use crate::error::TransferError;
use crate::event::{LOOK_AT_PATH, Setting};
use crate::membership::REASON_NO_DATA;
use faircast_core::time::{Span, Time};
use faircast_wire::Announce;
use std::net::SocketAddr;
use std::time::Duration;

/// Duration without data after which a receiver reports that no data arrives.
const TOLD_AFTER: Span = Span::from_secs(3);

/// Minimum number of missing packets for this report.
const ENOUGH: u64 = 4;

/// Silence after which a source may have moved to another address.
pub(super) const MOVED_AFTER: Span = Span::from_secs(2);

/// Fraction of the idle timeout after which a silent source is reported. `SOONEST` is the minimum of this duration, so that the
/// loss of several announcements causes no report.
const SILENT_AFTER: f64 = 1.0 / 12.0;
const SOONEST: Span = Span::from_secs(5);

/// Fraction of the idle timeout after which a receiver leaves a parent that serves nothing or whose data does not arrive.
pub(super) const LEFT_AFTER: f64 = 1.0 / 4.0;

/// Maximum difference between the time in an announcement from another address and the time expected from earlier announcements,
/// in seconds. An announcement with a larger difference is a recording.
const CLOCKS_AGREE: u64 = 5;

/// Comparison of received packets with sent packets.
#[derive(Debug)]
pub(super) struct Reach {
    /// The number after the newest received packet of the base layer.
    expected: u64,
    missing: Option<Missing>,
}

/// A period in which sent packets have not arrived.
#[derive(Debug)]
struct Missing {
    since: Time,
    /// The source's next packet number at the start of this period; `now`: the present next packet number.
    at_first: u64,
    now: u64,
    reported: bool,
}

impl Reach {
    /// Returns the initial state for a source whose next packet has this number.
    pub(super) fn new(next_seq: u64) -> Reach {
        Reach { expected: next_seq, missing: None }
    }

    /// Records a received packet; `seq` is its number on the base layer, if it has one. Returns whether missing data had been
    /// reported.
    pub(super) fn on_data(&mut self, seq: Option<u64>) -> bool {
        if let Some(seq) = seq {
            self.expected = self.expected.max(seq.saturating_add(1));
        }
        self.missing.take().is_some_and(|missing| missing.reported)
    }

    /// Records the number of the source's next packet on the base layer.
    pub(super) fn on_next_seq(&mut self, next: u64, now: Time) {
        if next < self.expected.saturating_add(ENOUGH) {
            return;
        }
        let fresh = Missing { since: now, at_first: next, now: next, reported: false };
        let missing = self.missing.get_or_insert(fresh);
        missing.now = missing.now.max(next);
    }

    /// Discards forged packet numbers: `next` is the source's next packet number.
    pub(super) fn go_back(&mut self, next: u64) {
        self.expected = self.expected.min(next);
    }

    /// Returns the time without received packets and the number of missing packets. Returns `None` if this time is shorter than
    /// [`TOLD_AFTER`], or if the source has sent no packets during this time.
    fn loss(&self, now: Time) -> Option<(Span, u64)> {
        let missing = self.missing.as_ref()?;
        let lasted = now.since(missing.since);
        let goes_on = missing.now > missing.at_first;
        (goes_on && lasted >= TOLD_AFTER).then(|| (lasted, missing.now - self.expected))
    }

    /// Whether missing data has to be reported; returns `true` once.
    fn take_news(&mut self) -> bool {
        self.missing.as_mut().is_some_and(|missing| !std::mem::replace(&mut missing.reported, true))
    }
}

impl ReceiverSession {
    /// Returns the duration of the source's silence; `None` while no source is followed.
    pub(super) fn source_silence(&self, now: Time) -> Option<Span> {
        match self.phase {
            Phase::Receiving | Phase::Confirming { .. } => Some(now.since(self.clocks.received_at)),
            Phase::Searching | Phase::Over => None,
        }
    }

    /// Reports that the source has become silent, or that its data arrives again.
    pub(super) fn report_silence(&mut self, silent: Span) {
        let idle_timeout = self.setup.idle_timeout;
        let is_silent =
            silent >= idle_timeout.scaled(SILENT_AFTER).max(SOONEST.min(idle_timeout.scaled(0.5)));
        let waits = self.stream.is_some() && !matches!(self.phase, Phase::Searching | Phase::Over);
        if !waits || is_silent == self.clocks.silence_reported {
            return;
        }
        self.clocks.silence_reported = is_silent;
        self.events.push_back(match is_silent {
            true => {
                let message =
                    format!("the source has been silent for {silent}; waiting up to {idle_timeout} for it");
                Event::warning_of(Setting::Timeout, message)
            }
            false => Event::warning("data of the source arrives again"),
        });
    }

    /// Records received data; `seq` is its number on the base layer, if it has one.
    pub(super) fn data_comes(&mut self, seq: Option<u64>) {
        if self.stream.as_mut().is_some_and(|stream| stream.reach.on_data(seq)) {
            self.events.push_back(Event::warning("data arrives again".to_owned()));
        }
    }

    /// Reports that no data arrives. After the idle timeout, ends the session with an error.
    pub(super) fn look_for_data(&mut self, now: Time) {
        let resumes = self.resumes();
        let Some(stream) = &mut self.stream else { return };
        let Some((lasted, packets)) = stream.reach.loss(now) else { return };
        let bytes = usize::from(stream.announced.packet_size);
        let error = Error::Transfer(TransferError::NothingArrives {
            packets,
            bytes,
            lasted: Duration::from_nanos(lasted.as_nanos()),
            verified_bytes: stream.sink.verified_bytes(),
            resumes,
        });
        if stream.reach.take_news() {
            let message = format!(
                "announcements arrive but no data: all of the last {packets} packets (up to {bytes} bytes each) were lost; {LOOK_AT_PATH}"
            );
            self.events.push_back(Event::warning_of(Setting::Datagram, message));
        }
        if lasted >= self.setup.idle_timeout {
            self.fail(error, now);
        } else if lasted >= self.setup.idle_timeout.scaled(LEFT_AFTER) {
            self.forsake(now);
        }
    }

    /// Continues the followed session from another address of its source.
    pub(super) fn go_on_from(&mut self, announce: Announce, from: SocketAddr, now: Time) {
        let Some(stream) = &mut self.stream else { return };
        let before = std::mem::replace(&mut stream.source, from);
        (stream.announced, stream.announced_at) = (announce, now);
        stream.member_at = stream.member_at.min(now);
        self.clocks.received_at = now;
        self.events.push_back(Event::warning(format!(
            "the source has moved from {before} to {from}; the session continues"
        )));
    }
}

/// Whether an announcement continues this stream: the constant fields are equal, and the time and packet number in the
/// announcement have advanced plausibly.
pub(super) fn continues(stream: &Stream, announce: &Announce, now: Time) -> bool {
    let known = &stream.announced;
    let elapsed = now.since(stream.announced_at).as_nanos() / 1_000_000_000;
    let same = (announce.transfer, announce.salt, announce.stream_len, announce.manifest_len)
        == (known.transfer, known.salt, known.stream_len, known.manifest_len)
        && (announce.symbol_size, announce.symbols_per_block, announce.scheme, announce.layers)
            == (known.symbol_size, known.symbols_per_block, known.scheme, known.layers);
    // The packet numbers of a relay differ from those of its source.
    let goes_on = is_relayed(announce) || is_relayed(known) || announce.next_seq >= known.next_seq;
    same && goes_on && announce.unix_secs.abs_diff(known.unix_secs.saturating_add(elapsed)) <= CLOCKS_AGREE
}

/// Whether the announcement comes from a relay.
pub(super) fn is_relayed(announce: &Announce) -> bool {
    announce.parent != announce.source
}

/// Whether the relay at this address was restarted: the new process counts its packets from the beginning. A restarted source, in
/// contrast, announces another session.
pub(super) fn has_restarted(known: &Announce, announce: &Announce) -> bool {
    is_relayed(known) && is_relayed(announce) && announce.next_seq < known.next_seq
}

/// Returns the reason code that a receiver sends to the source with this error.
pub(super) const fn reason(error: &Error) -> Option<u8> {
    match error {
        Error::Transfer(TransferError::NothingArrives { .. }) => Some(REASON_NO_DATA),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn missing_data_is_reported_once_after_a_few_seconds() {
        let mut reach = Reach::new(10);
        for second in 0..6 {
            reach.on_next_seq(10 + second * 20, at(second));
        }
        assert_eq!(reach.loss(at(3)), None);
        assert_eq!(reach.loss(at(5)), Some((Span::from_secs(4), 100)));
        assert!(reach.take_news() && !reach.take_news(), "it is told once");
        assert!(reach.on_data(Some(110)), "and told when it is over");
        assert_eq!(reach.loss(at(60)), None);
    }

    #[test]
    fn no_data_is_reported_missing_if_the_source_sends_no_packets() {
        let mut reach = Reach::new(0);
        reach.on_data(Some(90));
        // The last packets are lost, and no packets follow them.
        (0..60).for_each(|second| reach.on_next_seq(100, at(second)));
        assert_eq!(reach.loss(at(60)), None);
        // Packets in flight do not count as missing.
        let mut reach = Reach::new(0);
        (0..60).for_each(|second| {
            reach.on_next_seq(second * 10 + ENOUGH - 1, at(second));
            reach.on_data(Some(second * 10));
        });
        assert_eq!(reach.loss(at(60)), None);
    }
}
