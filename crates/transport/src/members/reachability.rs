//! Reliable members: members that have shown that they receive the source, still send, and are reached by data.
//!
//! A datagram that joins a session proves nothing, because it can be forged with any ID and any address. A member proves that it
//! receives the source when its echo names a packet that was sent after its first datagram. Until then the member is served, but
//! the session does not depend on it. The member has no turn for feedback, its silence is not reported, and the congestion
//! control ignores it.

use super::{MemberRecord, Members, Pace, REPLACED_AFTER, turns};
use faircast_core::packet::{ReceiverId, Seq};
use faircast_core::time::{Span, Time};

/// A receiver counts as unreached after it has lost this number of consecutive packets.
const UNREACHED_PACKETS: u64 = 4;

/// Time after which an unreached receiver is reported, if the source has meanwhile sent [`UNREACHED_PACKETS`] / 2 further packets
/// and all of them were lost.
const UNREACHED_SURE: Span = Span::from_secs(2);

/// Maximum number of recorded hosts that have asked to join.
const MAX_ASKED: usize = 20_000;

/// A member loses its turn after it has been silent for this number of turns, and for at least [`RECENT`].
const TURNS: u64 = 2;
const RECENT: Span = Span::from_secs(2);

/// Whether a receiver is reachable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mute {
    /// The receiver sends, and data reaches it as far as the source knows.
    No,
    /// The receiver has been silent for some time.
    Silent,
    /// The receiver sends, but no packet has reached it for some time.
    Unreached {
        /// Time at which this was detected.
        since: Time,
        /// Number of the next packet at that time.
        next: Seq,
        /// Whether further packets were also lost.
        sure: bool,
        /// Whether this state was reported.
        reported: bool,
    },
    /// The receiver sends and lacks symbols, but requests none.
    Stuck,
}

/// Members to report, because they have become silent or unreached.
#[derive(Debug, Default)]
pub struct Muted {
    /// Receivers that have become silent.
    pub silent: Vec<ReceiverId>,
    /// Receivers that answer but are not reached by data.
    pub unreached: Vec<ReceiverId>,
}

impl Members {
    /// Returns the number of receivers that were reported as unreached and are still unreached.
    pub fn unreached(&self) -> usize {
        let unreached =
            |member: &&MemberRecord| matches!(member.mute, Mute::Unreached { reported: true, .. });
        self.known.values().filter(unreached).filter(|member| member.is_waited_for()).count()
    }

    /// Handles a member's echo of the newest packet that it has received. `next` is the number of the next packet. Packets before
    /// `long_gone` were sent several seconds ago, and packets before `recent` a short time ago. Returns whether the session may
    /// depend on this member from now on.
    pub fn on_echo(
        &mut self,
        from: ReceiverId,
        echo: Option<Seq>,
        next: Seq,
        long_gone: Seq,
        recent: Seq,
        now: Time,
    ) -> bool {
        let counted = self.known.get(&from).is_some_and(MemberRecord::counts);
        self.on_answer(from, echo, next, now);
        let Some(member) = self.known.get_mut(&from) else { return false };
        self.tally.discount(member);
        if echo > member.echo {
            (member.echo, member.echo_at) = (echo, now);
            if matches!(member.mute, Mute::Unreached { .. }) {
                member.mute = Mute::No;
                member.pace = if member.pace == Pace::Gone { Pace::Together } else { member.pace };
            }
        }
        let has = member.echo.map_or(member.first, Seq::next).max(member.first);
        match &mut member.mute {
            Mute::Unreached { since, next, sure, .. } => {
                let lasted = now.since(*since) >= UNREACHED_SURE;
                *sure |= lasted && recent.0 >= next.0 + UNREACHED_PACKETS / 2;
            }
            mute @ (Mute::No | Mute::Silent) if has.0 + UNREACHED_PACKETS <= long_gone.0 => {
                *mute = Mute::Unreached { since: now, next, sure: false, reported: false };
            }
            _ => {}
        }
        self.tally.count(member);
        !counted && member.counts()
    }

    /// Records a join request; `next` is the number of the next packet.
    pub fn on_asking(&mut self, from: ReceiverId, next: Seq) {
        if self.asked.len() >= MAX_ASKED {
            self.asked.clear(); // their echoes will prove it later
        }
        self.asked.entry(from).or_insert(next);
    }

    /// Handles a member's echo as a possible proof that the member receives the source; `next` is the number of the next packet.
    pub fn on_answer(&mut self, from: ReceiverId, echo: Option<Seq>, next: Seq, now: Time) {
        let Some(member) = self.known.get_mut(&from) else { return };
        if member.joined_at == now && member.echo.is_none() {
            member.first = self.asked.remove(&from).unwrap_or(next);
        }
        if !member.receives && echo.is_some_and(|echo| echo >= member.first) {
            self.tally.update(member, |member| member.receives = true);
            self.speaking += 1;
        }
    }

    /// Marks a member that lacks symbols and requests none.
    pub fn set_stuck(&mut self, id: ReceiverId) {
        self.set_mute(id, Mute::Stuck);
    }

    /// Records that a receiver has sent a request for this number of symbols.
    pub fn on_asked(&mut self, from: ReceiverId, symbols: u64) {
        let Some(member) = self.known.get_mut(&from) else { return };
        member.asked_symbols += symbols;
        if member.mute == Mute::Stuck && member.pace == Pace::Gone {
            self.set_mute(from, Mute::No);
            self.set_pace(from, Pace::Together);
        }
    }

    fn set_mute(&mut self, id: ReceiverId, mute: Mute) {
        if let Some(member) = self.known.get_mut(&id) {
            self.tally.update(member, |member| member.mute = mute);
        }
    }

    /// Whether this member has shown that it receives the source; `None` for an unknown member.
    pub fn receives(&self, id: ReceiverId) -> Option<bool> {
        self.known.get(&id).map(|member| member.receives)
    }

    /// Returns the number of members that take turns: they have shown that they receive the source, and still send.
    pub const fn speaking(&self) -> usize {
        self.speaking
    }

    /// Counts the members that take turns. Called once a second.
    pub fn count_speaking(&mut self, now: Time) {
        let recent = (turns::alive_every(self.speaking as u32) * TURNS).max(RECENT);
        let speaks = |member: &&MemberRecord| member.receives && now.since(member.last_received_at) <= recent;
        self.speaking = self.known.values().filter(speaks).count();
    }

    /// Returns the members that have been silent for `silent_after`, and the unreached members, unless they were reported before.
    pub fn mute(&mut self, now: Time, silent_after: Span) -> Muted {
        let mut muted = Muted::default();
        for (id, member) in &mut self.known {
            if !member.is_waited_for() {
                continue;
            }
            self.tally.discount(member);
            match &mut member.mute {
                Mute::Unreached { sure: true, reported, .. } if !*reported => {
                    *reported = true;
                    muted.unreached.push(*id);
                }
                mute @ Mute::No if now.since(member.last_received_at) > silent_after => {
                    *mute = Mute::Silent;
                    muted.silent.push(*id);
                }
                _ => {}
            }
            self.tally.count(member);
        }
        muted
    }

    /// Marks members as gone if they have been silent or unreached for `idle_timeout`, or earlier if they were restarted. Returns
    /// the IDs of these members. Each live member sends once in `spread`.
    pub fn expire(&mut self, now: Time, idle_timeout: Span, spread: Span) -> Vec<ReceiverId> {
        let silent = |member: &MemberRecord, span: Span| {
            let unreached = matches!(member.mute, Mute::Unreached { since, reported: true, .. }
                if now.since(since) > idle_timeout);
            member.is_waited_for() && (unreached || now.since(member.last_received_at) > span)
        };
        let soonest = REPLACED_AFTER.max(spread * 2).min(idle_timeout);
        self.replace_silent_relays(now, soonest);
        if !self.known.values().any(|member| silent(member, soonest)) {
            return Vec::new();
        }
        let replaced = self.replaced();
        let mut gone = Vec::new();
        for (id, member) in &mut self.known {
            if silent(member, if replaced.contains(id) { soonest } else { idle_timeout }) {
                self.tally.update(member, |member| {
                    member.pace = Pace::Gone;
                    member.is_replaced |= replaced.contains(id);
                });
                let reason = match member.mute {
                    Mute::Unreached { .. } => "no data reaches it",
                    _ if replaced.contains(id) => "started again",
                    _ => "silent",
                };
                self.scope.given_up(*id, &member.host, reason, now);
                gone.push(*id);
            }
        }
        gone
    }
}
