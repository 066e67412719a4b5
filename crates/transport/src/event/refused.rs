//! Rejected packets of a session by reason.

use faircast_wire::OpenError;
use serde::{Deserialize, Serialize};

/// Rejected packets of a session by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RefusedPackets {
    /// Number of damaged packets, of packets of another version, and of datagrams that are no packets.
    pub malformed: u64,
    /// Number of packets without the required seal or signature, or with one of another key.
    pub unauthentic: u64,
    /// Number of packets that were received before, or sent at another time or from another address than they state.
    pub replayed: u64,
    /// Number of packets of other sessions.
    pub session: u64,
    /// Number of packets from hosts that may not send them.
    pub sender: u64,
    /// Number of packets with impossible packet numbers, and of requests beyond the limit of repairs.
    pub implausible: u64,
    /// Number of packets of a kind that this side does not expect.
    pub unexpected: u64,
}

impl RefusedPackets {
    /// Returns each reason with its number of packets.
    pub const fn by_reason(&self) -> [(&'static str, u64); 7] {
        let RefusedPackets { malformed, unauthentic, replayed, session, sender, implausible, unexpected } =
            *self;
        [
            ("malformed", malformed),
            ("unauthentic", unauthentic),
            ("replayed", replayed),
            ("session", session),
            ("sender", sender),
            ("implausible", implausible),
            ("unexpected", unexpected),
        ]
    }

    /// Returns the number of all rejected packets.
    pub fn total(&self) -> u64 {
        self.by_reason().iter().map(|(_, count)| count).sum()
    }

    /// Adds the packets since an earlier state of a session. A number that has fallen adds nothing.
    pub fn add_since(&mut self, now: &RefusedPackets, earlier: &RefusedPackets) {
        let RefusedPackets { malformed, unauthentic, replayed, session, sender, implausible, unexpected } =
            self;
        let counters = [malformed, unauthentic, replayed, session, sender, implausible, unexpected];
        let numbers = now.by_reason().into_iter().zip(earlier.by_reason());
        for (counter, ((_, now), (_, earlier))) in counters.into_iter().zip(numbers) {
            *counter += now.saturating_sub(earlier);
        }
    }

    /// Counts a packet that was not opened.
    pub(crate) const fn count(&mut self, error: &OpenError) {
        let counter = match error {
            OpenError::Parse(_) => &mut self.malformed,
            OpenError::Unsealed(_)
            | OpenError::NeedsKey(_)
            | OpenError::OtherKey { .. }
            | OpenError::Forged => &mut self.unauthentic,
            OpenError::Replayed(_) | OpenError::Elsewhere { .. } | OpenError::Stale { .. } => {
                &mut self.replayed
            }
            OpenError::OtherSession(_) | OpenError::NotAnnounced(_) | OpenError::TwoSources(_) => {
                &mut self.session
            }
            OpenError::NotForMe(_) => &mut self.unexpected,
        };
        *counter += 1;
    }
}
