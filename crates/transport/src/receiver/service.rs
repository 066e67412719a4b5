//! Detection of a parent that answers but serves no data.
//!
//! A source, relay or agent may announce a session and claim to have all content, but withhold the requested symbols. It may also
//! send symbols of blocks that do not verify. Once a second, the receiver checks its own progress. After a fraction of the idle
//! timeout without progress, it leaves such a parent, if it receives another parent. At the end of the idle timeout it ends the
//! session; verified blocks remain stored.
//!
//! A second counts only while symbols are requested and packets of the parent arrive. A parent that sends data for other
//! receivers is excused, unless blocks do not verify. A relay may itself wait for its parent for the whole idle timeout. So its
//! children wait longer, in proportion to their distance from the source. A parent that states that it has no content yet is left
//! later, if another parent is received. Such a parent never ends the session, because its source may be paused.

use super::reachability::{LEFT_AFTER, MOVED_AFTER};
use super::{Phase, ReceiverSession};
use crate::error::{Error, TransferError};
use crate::event::Event;
use faircast_core::time::{Span, Time};
use faircast_wire::Announce;
use std::net::SocketAddr;
use std::time::Duration;

/// Time after the latest data for which a parent is excused, although this receiver cannot use the data.
const EXCUSED: Span = Span::from_secs(5);

/// The progress of a receiver.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reached {
    /// Number of stored blocks.
    pub(crate) blocks: u64,
    /// Number of received symbols of incomplete blocks.
    pub(crate) symbols: u64,
    /// Number of complete blocks that did not verify.
    pub(crate) wrong: u64,
}

/// The record of a parent's service.
#[derive(Debug, Default)]
pub(super) struct Service {
    /// Whether symbols were requested since the latest progress.
    asked: bool,
    /// Progress when the number of stored blocks last changed, except for `symbols`: the largest number of symbols held at any
    /// time since then. A receiver that collects the same block again and again, because the block does not verify, never exceeds
    /// that number.
    best: Reached,
    /// Maximum number of symbols under the present parent.
    most_here: u64,
    /// Arrival time of the latest data.
    data_at: Time,
    /// Seconds without progress and without excuse since the latest progress; `vain_here`: the seconds under the present parent.
    vain: u64,
    vain_here: u64,
    /// Seconds without progress under the present parent.
    idle_here: u64,
    /// The parents that were left since the latest progress.
    forsaken: Vec<SocketAddr>,
}

impl Service {
    pub(super) const fn on_asked(&mut self) {
        self.asked = true;
    }

    pub(super) const fn on_data(&mut self, now: Time) {
        self.data_at = now;
    }

    /// Records that another parent serves this receiver from now on.
    pub(super) const fn on_other_parent(&mut self) {
        (self.best.wrong, self.most_here) = (0, 0);
        (self.vain_here, self.idle_here) = (0, 0);
    }

    /// Restarts the measurement, because no data is expected now or progress was made.
    pub(super) fn rest(&mut self) {
        let Service { best, data_at, .. } = *self;
        *self = Service { best, most_here: best.symbols, data_at, ..Service::default() };
    }

    /// Evaluates the progress of the last second.
    fn look(&mut self, reached: Reached, is_heard: bool, now: Time) {
        if reached.blocks != self.best.blocks {
            self.best = reached;
            self.rest();
        } else if reached.symbols > self.best.symbols {
            self.best.symbols = reached.symbols;
            self.rest();
        } else if reached.symbols > self.most_here {
            self.most_here = reached.symbols;
            (self.vain_here, self.idle_here) = (0, 0);
        } else if is_heard {
            self.idle_here += 1;
            let is_excused = reached.wrong == self.best.wrong && now.since(self.data_at) < EXCUSED;
            let is_vain = self.asked && !is_excused;
            self.vain += u64::from(is_vain);
            self.vain_here += u64::from(is_vain);
        }
    }

    /// Whether to leave the parent, because there was no progress for too long.
    fn is_vain(&self, idle_timeout: Span) -> bool {
        Span::from_secs(self.vain_here) >= idle_timeout.scaled(LEFT_AFTER)
            || Span::from_secs(self.idle_here) >= idle_timeout
    }
}

impl ReceiverSession {
    /// Whether the parent serves no data, so that another parent is searched for.
    pub(super) fn is_unserved(&self) -> bool {
        self.sends_to().is_some_and(|parent| self.has_forsaken(parent))
    }

    /// Whether this parent was left because it served no data.
    pub(super) fn has_forsaken(&self, parent: SocketAddr) -> bool {
        self.service.forsaken.contains(&parent)
    }

    /// Whether this parent cannot replace the present parent, which serves no data but is still received. Any parent can replace
    /// a silent one.
    pub(super) fn is_no_better(&self, parent: SocketAddr, now: Time) -> bool {
        let is_heard = now.since(self.clocks.received_at) < MOVED_AFTER;
        is_heard && self.is_unserved() && self.has_forsaken(parent)
    }

    /// Leaves a parent that serves no data. At the end of the idle timeout, ends the session. Call it once a second.
    pub(super) fn look_at_service(&mut self, now: Time) {
        let Some(stream) = &self.stream else { return };
        let idle_timeout = self.setup.idle_timeout;
        let is_live = stream.announced.flags & Announce::LIVE != 0 && !self.service.asked;
        if self.phase != Phase::Receiving || stream.deferred || self.needs_no_packets() || is_live {
            return self.service.rest();
        }
        let is_heard = now.since(self.clocks.received_at) < MOVED_AFTER;
        self.service.look(stream.sink.reached(), is_heard, now);
        let hops = 1 + u64::from(stream.announced.hops);
        let vain = Span::from_secs(self.service.vain);
        if vain >= idle_timeout * hops {
            let error = Error::Transfer(TransferError::NothingServed {
                source_address: self.sends_to().unwrap_or(stream.source),
                lasted: Duration::from_nanos(vain.as_nanos()),
                verified_bytes: stream.sink.verified_bytes(),
                resumes: self.resumes(),
            });
            return self.fail(error, now);
        }
        if self.service.is_vain(idle_timeout) {
            self.forsake(now);
        }
    }

    /// Leaves the parent and searches for another one.
    pub(super) fn forsake(&mut self, now: Time) {
        let Some(parent) = self.sends_to().filter(|parent| !self.has_forsaken(*parent)) else { return };
        self.service.forsaken.push(parent);
        let forsaken = &mut self.service.forsaken;
        if self.under.is_of_the_source()
            && let Some(attaching) = &mut self.attaching
        {
            forsaken.extend(attaching.forsake(now));
        }
        if self.service.asked {
            let message =
                format!("{parent} answers but sends none of the requested data; looking for another parent");
            self.events.push_back(Event::warning(message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE_TIMEOUT: Span = Span::from_secs(20);

    fn at(second: u64) -> Time {
        Time::ZERO + Span::from_secs(100 + second)
    }

    /// Returns the number of seconds after which a receiver with this progress leaves its parent.
    fn left_after(asks: bool, reached: impl Fn(u64) -> (Reached, bool)) -> Option<u64> {
        let mut service = Service::default();
        (0..200).find(|second| {
            let (reached, data) = reached(*second);
            if asks {
                service.on_asked();
            }
            if data {
                service.on_data(at(*second));
            }
            service.look(reached, true, at(*second));
            service.is_vain(IDLE_TIMEOUT)
        })
    }

    #[test]
    fn receiver_leaves_only_parents_that_withhold_or_falsify_data() {
        let with = |blocks, symbols, wrong| Reached { blocks, symbols, wrong };
        assert_eq!(left_after(true, |_| (with(3, 7, 0), false)), Some(5), "it withholds");
        assert_eq!(left_after(false, |_| (with(3, 7, 0), false)), Some(20), "it was not asked");
        assert_eq!(left_after(true, |second| (with(3, second / 4, 0), false)), None, "it is slow");
        assert_eq!(left_after(true, |second| (with(second / 4, 0, 0), false)), None, "it is slow");
        assert_eq!(left_after(true, |_| (with(3, 7, 0), true)), Some(20), "it serves others");
        let wrong = |second| (with(0, second % 9, second / 9), true);
        assert_eq!(left_after(true, wrong), Some(13), "each block is wrong");
    }
}
