//! Groups and their members, and the effect of one member's congestion on the other members (paper 002, 4.2 to 4.4).

use super::config::{Again, BelowWatermark, Compared, Config, Covers, Cuts, Start, TimerOf};
use super::datagrams::{Offered, SocketId, Sockets};
use super::estimate::GroupRoundTrip;
use super::messages::{CapacityError, Counters, GroupId, Joined, MemberId, OwnReaction, Verdict};
use super::rules::{self, Recovery, View, Windows};
use crate::rtt::RttEstimate;
use faircast_core::time::{Span, Time};

/// No member.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone)]
struct Member {
    generation: u32,
    /// Index of the member's group; [`NONE`] after the member has left.
    group: u32,
    before: u32,
    after: u32,
    view: View,
    /// The watermark. A loss of a packet below this number needs no reduction, because the window was already reduced.
    covered: u64,
    /// Number of times that the timeout is doubled.
    backoff: u32,
    /// Version of the group's round-trip time that the member has read or set last.
    seen: u32,
    /// Whether no data of the member has been acknowledged since its latest timeout.
    freezes: bool,
    verdict: Option<Verdict>,
    /// Whether the member is in the linked list of members with verdicts.
    listed: bool,
    next_listed: u32,
}

#[derive(Debug, Clone)]
struct Group {
    generation: u32,
    open: bool,
    first: u32,
    members: usize,
    rtt: GroupRoundTrip,
    /// Sum of the members' windows, in units of 1/65,536. An integer sum stays exact over many changes.
    windows: i64,
    active: usize,
    /// Number of members whose timeouts keep the virtual connection from sending (4.5, rule 4).
    freezing: usize,
    sockets: Option<Box<Sockets>>,
}

/// Coordinates the connections of one host. See the [module](super) for its use.
#[derive(Debug, Clone)]
pub struct Coordinator {
    config: Config,
    groups: Vec<Group>,
    free_groups: Vec<u32>,
    members: Vec<Member>,
    free_members: Vec<u32>,
    first_listed: u32,
    last_listed: u32,
    /// Number of sockets opened so far, which is also the name of the next socket.
    sockets: u64,
    counters: Counters,
}

impl Coordinator {
    /// Creates a coordinator without groups.
    pub const fn new(config: Config) -> Coordinator {
        Coordinator {
            config,
            groups: Vec::new(),
            free_groups: Vec::new(),
            members: Vec::new(),
            free_members: Vec::new(),
            first_listed: NONE,
            last_listed: NONE,
            sockets: 0,
            counters: Counters { reactions: 0, timeouts: 0, covered: 0, cuts: 0, sent_again: 0, starts: 0 },
        }
    }

    /// Returns the parameters.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the counters.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    // Groups.

    /// Opens a group without members.
    ///
    /// # Errors
    /// When the number of groups is [`Config::max_groups`].
    pub fn open_group(&mut self) -> Result<GroupId, CapacityError> {
        let fresh = |generation| Group {
            generation,
            open: true,
            first: NONE,
            members: 0,
            rtt: GroupRoundTrip::default(),
            windows: 0,
            active: 0,
            freezing: 0,
            sockets: None,
        };
        if let Some(index) = self.free_groups.pop() {
            let group = &mut self.groups[index as usize];
            *group = fresh(group.generation);
            return Ok(GroupId { index, generation: group.generation });
        }
        if self.groups.len() >= self.config.max_groups {
            return Err(CapacityError::Groups(self.groups.len()));
        }
        self.groups.push(fresh(0));
        Ok(GroupId { index: self.groups.len() as u32 - 1, generation: 0 })
    }

    /// Closes the group. Its members and sockets continue without a group, and later calls about one of them do not affect the
    /// others.
    pub fn close_group(&mut self, group: GroupId) {
        if self.group(group).is_none() {
            return;
        }
        while self.groups[group.index as usize].first != NONE {
            self.remove(self.groups[group.index as usize].first);
        }
        let it = &mut self.groups[group.index as usize];
        (it.open, it.generation, it.sockets) = (false, it.generation.wrapping_add(1), None);
        self.free_groups.push(group.index);
    }

    /// Moves all members and sockets of group `from` to group `into`, and closes `from`. The result has the round-trip time of
    /// `into`, if `into` has one. The cost is one step per member.
    ///
    /// # Errors
    /// When one of the groups is closed, or both together have more than [`Config::max_members`] members. The groups are then
    /// unchanged.
    pub fn merge(&mut self, into: GroupId, from: GroupId) -> Result<(), CapacityError> {
        let (Some(to), Some(other)) = (self.group(into), self.group(from)) else {
            return Err(CapacityError::Closed);
        };
        if into == from {
            return Ok(());
        }
        let sum = to.members + other.members;
        if sum > self.config.max_members {
            return Err(CapacityError::Members(to.members));
        }
        if let (None, Some(estimate)) = (to.rtt.estimate(), other.rtt.estimate()) {
            self.groups[into.index as usize].rtt.set(estimate);
        }
        while self.groups[from.index as usize].first != NONE {
            let index = self.groups[from.index as usize].first;
            self.unlink(index);
            self.link(index, into.index);
        }
        if let Some(sockets) = self.groups[from.index as usize].sockets.take() {
            self.groups[into.index as usize].sockets.get_or_insert_default().take(*sockets);
        }
        self.close_group(from);
        Ok(())
    }

    /// Moves the member to another group, for example when a group is split.
    ///
    /// # Errors
    /// When group `to` is closed or full. The member then stays in its present group.
    pub fn move_member(&mut self, member: MemberId, to: GroupId) -> Result<(), CapacityError> {
        let group = self.group(to).ok_or(CapacityError::Closed)?;
        if group.members >= self.config.max_members {
            return Err(CapacityError::Members(group.members));
        }
        if let Some(index) = self.index(member)
            && self.members[index as usize].group != to.index
        {
            self.unlink(index);
            self.link(index, to.index);
        }
        Ok(())
    }

    /// Returns the group of a member; `None` after the member has left.
    pub fn group_of(&self, member: MemberId) -> Option<GroupId> {
        let index = self.members[self.index(member)? as usize].group;
        Some(GroupId { index, generation: self.groups[index as usize].generation })
    }

    /// Returns the number of members of a group.
    pub fn members_of(&self, group: GroupId) -> usize {
        self.group(group).map_or(0, |it| it.members)
    }

    // Members.

    /// Adds a connection, which is just opening, to a group. `view` contains the windows with which the connection would open
    /// without a group.
    ///
    /// # Errors
    /// When the group is closed or full. The connection then continues without a group.
    pub fn join(&mut self, group: GroupId, view: View) -> Result<Joined, CapacityError> {
        let it = self.group(group).ok_or(CapacityError::Closed)?;
        if it.members >= self.config.max_members {
            return Err(CapacityError::Members(it.members));
        }
        let mut view = sane(view);
        let start = match self.config.start {
            Start::Reference => self.reference(group.index).map(|reference| rules::on_start(&reference)),
            Start::EvenShare => self.even_share(group.index, view.mss),
            Start::Alone => None,
        };
        if let Some(Windows { cwnd: Some(cwnd), ssthresh: Some(ssthresh) }) = start {
            (view.cwnd, view.ssthresh) = (cwnd, ssthresh);
            self.counters.starts += 1;
        }
        let member = Member {
            generation: 0,
            group: NONE,
            before: NONE,
            after: NONE,
            view,
            covered: view.una,
            backoff: 0,
            seen: 0,
            freezes: false,
            verdict: None,
            listed: false,
            next_listed: NONE,
        };
        let index = match self.free_members.pop() {
            Some(index) => {
                let slot = &mut self.members[index as usize];
                *slot = Member { generation: slot.generation, ..member };
                index
            }
            None => {
                self.members.push(member);
                self.members.len() as u32 - 1
            }
        };
        self.link(index, group.index);
        self.refresh(group.index);
        Ok(Joined { member: self.name(index), start })
    }

    /// Removes a connection that closes.
    pub fn leave(&mut self, member: MemberId) {
        if let Some(index) = self.index(member) {
            self.remove(index);
        }
    }

    /// Returns the initial windows of a new active member: an equal share of the active members' windows. Members with larger
    /// windows are reduced to this share.
    fn even_share(&mut self, group: u32, mss: f64) -> Option<Windows> {
        let (mut all, mut thresholds, mut count) = (0.0, 0.0, 0);
        for index in self.walk(group) {
            let view = &self.members[index as usize].view;
            if view.is_active() {
                (all, thresholds, count) = (all + view.cwnd, thresholds + view.ssthresh, count + 1);
            }
        }
        if count == 0 {
            return None;
        }
        let share = (all / f64::from(count + 1)).max(mss);
        let mut next = self.groups[group as usize].first;
        while next != NONE {
            let index = next;
            let it = &self.members[index as usize];
            next = it.after;
            if it.view.is_active() && it.view.cwnd > share {
                self.post(index, Windows { cwnd: Some(share), ssthresh: None }, false, Time::ZERO);
            }
        }
        Some(Windows { cwnd: Some(share), ssthresh: Some(thresholds / f64::from(count)) })
    }

    /// Returns the view of the active member with the smallest window; if several windows are equal, of the member that joined
    /// first.
    fn reference(&self, group: u32) -> Option<View> {
        let mut least: Option<View> = None;
        for index in self.walk(group) {
            let view = self.members[index as usize].view;
            // The list begins with the newest member.
            if view.is_active() && least.is_none_or(|it| view.cwnd <= it.cwnd) {
                least = Some(view);
            }
        }
        least
    }

    /// Updates the view of a member after the member has sent a packet, or its state has changed for another reason. The call is
    /// cheap enough to be made for every packet.
    pub fn on_transmit(&mut self, member: MemberId, view: View) {
        if let Some(index) = self.index(member) {
            self.set_view(index, sane(view));
        }
    }

    /// Reports an acknowledgement that the member has already processed. `newly` is the newly acknowledged amount in the unit of
    /// windows; 0 for a duplicate.
    pub fn on_ack(&mut self, member: MemberId, view: View, newly: f64) {
        let Some(index) = self.index(member) else { return };
        self.set_view(index, sane(view));
        if newly > 0.0 {
            let it = &mut self.members[index as usize];
            it.backoff = 0;
            let group = it.group;
            self.unfreeze(index);
            if let Some(sockets) = &mut self.groups[group as usize].sockets {
                sockets.acknowledged(newly);
            }
            self.refresh(group);
        }
    }

    /// Reports a valid sample of the member's round-trip time. Before the call, the member itself applies Karn's rule.
    pub fn on_rtt_sample(&mut self, member: MemberId, rtt: Span) {
        if let Some(index) = self.index(member) {
            let it = &mut self.members[index as usize];
            self.groups[it.group as usize].rtt.sample(rtt);
        }
    }

    /// Sets the group's estimate to the estimate of a member that has its own estimator, which continues from the group's
    /// estimate. Such a member calls this function instead of [`Coordinator::on_rtt_sample`].
    pub fn set_round_trip(&mut self, member: MemberId, estimate: RttEstimate) {
        if let Some(index) = self.index(member) {
            let it = &mut self.members[index as usize];
            let rtt = &mut self.groups[it.group as usize].rtt;
            rtt.set(estimate);
            it.seen = rtt.version();
        }
    }

    /// Returns the group's estimate if other members have changed it since this member last read or set it. Otherwise returns
    /// `None`, also if each member computes its timer from its own round-trip times.
    pub fn news_of_round_trip(&mut self, member: MemberId) -> Option<RttEstimate> {
        let index = self.index(member)?;
        let it = &mut self.members[index as usize];
        let rtt = &self.groups[it.group as usize].rtt;
        let news = it.seen != rtt.version() && self.config.timer == TimerOf::Group;
        it.seen = rtt.version();
        news.then(|| rtt.estimate()).flatten()
    }

    /// Returns the estimate of the round-trip time of the member's group.
    pub fn round_trip(&self, member: MemberId) -> Option<RttEstimate> {
        self.groups[self.members[self.index(member)? as usize].group as usize].rtt.estimate()
    }

    /// Returns the member's retransmission timeout: the group's timeout, doubled for each consecutive timeout of the member.
    /// Returns `None` before the group has a sample of the round-trip time.
    pub fn retransmission_timeout(&self, member: MemberId) -> Option<Span> {
        let it = &self.members[self.index(member)? as usize];
        let Config { granularity, min_rto, max_rto, .. } = self.config;
        let timeout = self.groups[it.group as usize].rtt.timeout(granularity, min_rto, max_rto)?;
        let doubled = timeout.as_nanos().saturating_mul(1 << it.backoff.min(16));
        Some(Span::from_nanos(doubled).min(max_rto))
    }

    // Congestion.

    /// Reports that a member has detected the loss of its packet `lost`. `view` is the member's state before any reduction.
    pub fn on_loss(&mut self, member: MemberId, view: View, lost: u64, now: Time) -> OwnReaction {
        let view = sane(view);
        let half = rules::half(&view);
        let cut = OwnReaction::Cut { cwnd: half, ssthresh: half };
        let Some(index) = self.index(member) else { return cut };
        self.set_view(index, view);
        if lost < self.members[index as usize].covered {
            self.counters.covered += 1;
            if self.config.below == BelowWatermark::RepairOnly {
                return OwnReaction::Covered;
            }
            self.cover(index);
        } else {
            self.counters.reactions += 1;
            self.cover(index);
            if self.config.cuts == Cuts::Others {
                let f = match self.config.compared {
                    Compared::Before => view.flight,
                    Compared::After => half.min(view.flight),
                };
                self.tell_others(index, f, now);
            }
        }
        self.set_view(index, View { cwnd: half.min(view.cwnd), ssthresh: half, ..view });
        self.refresh(self.members[index as usize].group);
        cut
    }

    /// Reports that a mark was echoed to a member (RFC 3168, 6.1.2). The mark counts like a loss of the last acknowledged packet,
    /// but no packet is sent again.
    pub fn on_ecn(&mut self, member: MemberId, view: View, now: Time) -> OwnReaction {
        self.on_loss(member, view, view.una.saturating_sub(1), now)
    }

    /// Reports that a member's timer has expired for its packet `lost`, whose latest transmission was at `sent_at`. `view` is the
    /// member's state before its sender has reacted.
    pub fn on_timeout(
        &mut self,
        member: MemberId,
        view: View,
        lost: u64,
        sent_at: Time,
        now: Time,
    ) -> OwnReaction {
        let view = sane(view);
        let ssthresh = rules::half(&view);
        let cut = OwnReaction::Cut { cwnd: view.mss, ssthresh };
        let Some(index) = self.index(member) else { return cut };
        self.set_view(index, View { cwnd: view.mss, ssthresh, recovery: Recovery::Timeout, ..view });
        let it = &mut self.members[index as usize];
        it.backoff = (it.backoff + 1).min(32);
        let (covered, group) = (lost < it.covered, it.group);
        if !it.freezes {
            it.freezes = true;
            self.groups[group as usize].freezing += 1;
        }
        if covered {
            self.counters.covered += 1;
        } else {
            self.counters.timeouts += 1;
            self.cover(index);
            if self.config.cuts == Cuts::Others {
                self.tell_others_of_timeout(index, view.flight, sent_at, now);
            }
        }
        self.refresh(group);
        if covered { OwnReaction::Covered } else { cut }
    }

    /// Advances the watermark: a loss of a packet that is in flight now causes no further reduction.
    fn cover(&mut self, index: u32) {
        let it = &mut self.members[index as usize];
        it.covered = it.covered.max(it.view.nxt);
    }

    fn tell_others(&mut self, from: u32, f: f64, now: Time) {
        let group = self.members[from as usize].group;
        let mut next = self.groups[group as usize].first;
        while next != NONE {
            let index = next;
            next = self.members[index as usize].after;
            if index != from {
                let windows = rules::on_loss_elsewhere(&self.members[index as usize].view, f);
                self.give(index, windows, false, now);
            }
        }
    }

    fn tell_others_of_timeout(&mut self, from: u32, f: f64, sent_at: Time, now: Time) {
        let group = self.members[from as usize].group;
        let mut next = self.groups[group as usize].first;
        while next != NONE {
            let index = next;
            let it = &self.members[index as usize];
            next = it.after;
            if index != from {
                let waited = it.view.flight > 0.0 && it.view.una_sent_at < sent_at;
                let again = match self.config.again {
                    Again::All => waited,
                    Again::NotTimedOut => waited && it.view.recovery != Recovery::Timeout,
                    Again::Nobody => false,
                };
                let windows = rules::on_timeout_elsewhere(&it.view, f);
                self.give(index, windows, again, now);
            }
        }
    }

    /// Posts a verdict on a member because of another member's congestion, and advances the watermark according to [`Covers`].
    fn give(&mut self, index: u32, windows: Windows, send_again: bool, now: Time) {
        let cuts = windows.cwnd.is_some();
        if self.config.covers == Covers::AllMembers || cuts {
            self.cover(index);
        }
        self.counters.cuts += u64::from(cuts);
        self.counters.sent_again += u64::from(send_again);
        self.post(index, windows, send_again, now);
    }

    /// Posts a verdict on a member. If an earlier verdict has not been taken yet, merges both verdicts.
    fn post(&mut self, index: u32, windows: Windows, send_again: bool, now: Time) {
        let it = &mut self.members[index as usize];
        let view = View {
            cwnd: windows.cwnd.unwrap_or(it.view.cwnd),
            ssthresh: windows.ssthresh.unwrap_or(it.view.ssthresh),
            ..it.view
        };
        let old = it.verdict;
        let least = |a: Option<f64>, b: Option<f64>| a.map_or(b, |a| Some(b.map_or(a, |b| a.min(b))));
        it.verdict = Some(Verdict {
            cwnd: least(windows.cwnd, old.and_then(|old| old.cwnd)),
            ssthresh: windows.ssthresh.or(old.and_then(|old| old.ssthresh)),
            covered: it.covered,
            send_again: send_again || old.is_some_and(|old| old.send_again),
            at: now,
        });
        if !it.listed {
            it.listed = true;
            it.next_listed = NONE;
            match self.last_listed {
                NONE => self.first_listed = index,
                last => self.members[last as usize].next_listed = index,
            }
            self.last_listed = index;
        }
        self.set_view(index, view);
    }

    /// Returns the next member that has a verdict, with the verdict. The caller must carry out the verdict immediately.
    pub fn next_verdict(&mut self) -> Option<(MemberId, Verdict)> {
        while self.first_listed != NONE {
            let index = self.first_listed;
            let it = &mut self.members[index as usize];
            it.listed = false;
            self.first_listed = it.next_listed;
            if self.first_listed == NONE {
                self.last_listed = NONE;
            }
            if let Some(verdict) = it.verdict.take() {
                return Some((self.name(index), verdict));
            }
        }
        None
    }

    /// Takes the pending verdict for this member.
    pub fn take_verdict(&mut self, member: MemberId) -> Option<Verdict> {
        let index = self.index(member)?;
        self.members[index as usize].verdict.take()
    }

    // Sockets without congestion control (4.5).

    /// Opens a UDP socket of the group.
    ///
    /// # Errors
    /// When the group is closed, or already has [`Config::max_members`] sockets.
    pub fn open_socket(&mut self, group: GroupId) -> Result<SocketId, CapacityError> {
        let it = self.group(group).ok_or(CapacityError::Closed)?;
        let there = it.sockets.as_ref().map_or(0, |it| it.count());
        if there >= self.config.max_members {
            return Err(CapacityError::Members(there));
        }
        let socket = SocketId(self.sockets);
        self.sockets += 1;
        self.groups[group.index as usize].sockets.get_or_insert_default().open(socket);
        self.refresh(group.index);
        Ok(socket)
    }

    /// Closes the socket and drops its waiting datagrams.
    pub fn close_socket(&mut self, group: GroupId, socket: SocketId) {
        if self.group(group).is_some() {
            let it = &mut self.groups[group.index as usize];
            if let Some(sockets) = &mut it.sockets {
                sockets.close(socket);
                self.refresh(group.index);
            }
        }
    }

    /// Queues a datagram at a socket; `size` is in the unit of windows. [`Coordinator::next_datagram`] releases the datagram.
    pub fn offer(&mut self, group: GroupId, socket: SocketId, size: f64) -> Offered {
        let backlog = self.config.backlog;
        let open = self.group(group).is_some();
        let sockets = self.groups.get_mut(group.index as usize).filter(|_| open);
        match sockets.and_then(|it| it.sockets.as_mut()) {
            Some(sockets) => sockets.offer(socket, size, backlog),
            None => Offered::Dropped,
        }
    }

    /// Returns the next socket, in round-robin order, whose first datagram may be sent now. Repeat the call until it returns
    /// `None`: after every call about a member of the group, after [`Coordinator::offer`], and at the time of
    /// [`Coordinator::datagram_at`].
    pub fn next_datagram(&mut self, group: GroupId, now: Time) -> Option<SocketId> {
        self.group(group)?;
        let it = &mut self.groups[group.index as usize];
        let (alone, frozen) = (it.active == 0, it.freezing > 0);
        let rtt = it.rtt.estimate().map_or(self.config.default_rtt, |it| it.mean);
        it.sockets.as_mut()?.next(now, alone, frozen, rtt)
    }

    /// Returns the time at which the next datagram may be sent if no event occurs before; [`Time::NEVER`] if sending requires an
    /// event.
    pub fn datagram_at(&self, group: GroupId) -> Time {
        let it = self.group(group).filter(|it| it.active == 0 && it.freezing == 0);
        it.and_then(|it| it.sockets.as_ref()).map_or(Time::NEVER, |sockets| sockets.next_at())
    }

    /// Returns the window and the data in flight of the virtual connection, in the unit of windows; zeros for a group without
    /// sockets.
    pub fn virtual_connection(&self, group: GroupId) -> (f64, f64) {
        let sockets = self.group(group).and_then(|it| it.sockets.as_ref());
        sockets.map_or((0.0, 0.0), |sockets| sockets.window())
    }

    /// Sets the virtual connection's window from the windows of the members (4.5, rules 1 to 3). While all members are idle, the
    /// window stays unchanged.
    fn refresh(&mut self, group: u32) {
        let it = &mut self.groups[group as usize];
        let Some(sockets) = &mut it.sockets else { return };
        if it.members == 0 {
            sockets.default_window(self.config.default_window);
        } else if it.active > 0 {
            sockets.follow(it.windows as f64 / 65536.0 / it.members as f64);
        }
    }

    // Internal functions.

    fn group(&self, group: GroupId) -> Option<&Group> {
        self.groups.get(group.index as usize).filter(|it| it.open && it.generation == group.generation)
    }

    fn index(&self, member: MemberId) -> Option<u32> {
        let it = self.members.get(member.index as usize)?;
        (it.generation == member.generation && it.group != NONE).then_some(member.index)
    }

    fn name(&self, index: u32) -> MemberId {
        MemberId { index, generation: self.members[index as usize].generation }
    }

    fn walk(&self, group: u32) -> impl Iterator<Item = u32> + '_ {
        let some = |index: u32| (index != NONE).then_some(index);
        std::iter::successors(some(self.groups[group as usize].first), move |index| {
            some(self.members[*index as usize].after)
        })
    }

    fn set_view(&mut self, index: u32, view: View) {
        let it = &mut self.members[index as usize];
        let group = &mut self.groups[it.group as usize];
        group.windows += share(&view) - share(&it.view);
        group.active = group.active + usize::from(view.is_active()) - usize::from(it.view.is_active());
        it.view = view;
    }

    fn unfreeze(&mut self, index: u32) {
        let it = &mut self.members[index as usize];
        if std::mem::take(&mut it.freezes) {
            self.groups[it.group as usize].freezing -= 1;
        }
    }

    fn link(&mut self, index: u32, group: u32) {
        let it = &mut self.members[index as usize];
        let to = &mut self.groups[group as usize];
        (it.group, it.before, it.after) = (group, NONE, to.first);
        // If the group has an estimate of the round-trip time, the member has not read the estimate yet.
        it.seen =
            if to.rtt.estimate().is_some() { to.rtt.version().wrapping_sub(1) } else { to.rtt.version() };
        to.members += 1;
        to.windows += share(&it.view);
        to.active += usize::from(it.view.is_active());
        to.freezing += usize::from(it.freezes);
        let second = std::mem::replace(&mut to.first, index);
        if second != NONE {
            self.members[second as usize].before = index;
        }
    }

    fn unlink(&mut self, index: u32) {
        let it = &mut self.members[index as usize];
        let (before, after) = (it.before, it.after);
        let from = &mut self.groups[it.group as usize];
        from.members -= 1;
        from.windows -= share(&it.view);
        from.active -= usize::from(it.view.is_active());
        from.freezing -= usize::from(it.freezes);
        if before == NONE {
            from.first = after;
        } else {
            self.members[before as usize].after = after;
        }
        if after != NONE {
            self.members[after as usize].before = before;
        }
    }

    fn remove(&mut self, index: u32) {
        let group = self.members[index as usize].group;
        self.unlink(index);
        let it = &mut self.members[index as usize];
        it.group = NONE;
        it.generation = it.generation.wrapping_add(1);
        it.verdict = None;
        if it.listed {
            self.unlist(index);
        }
        self.free_members.push(index);
        self.refresh(group);
    }

    /// Removes the member from the linked list of members with verdicts.
    fn unlist(&mut self, index: u32) {
        let after = self.members[index as usize].next_listed;
        self.members[index as usize].listed = false;
        if self.first_listed == index {
            self.first_listed = after;
            if after == NONE {
                self.last_listed = NONE;
            }
            return;
        }
        let mut at = self.first_listed;
        while self.members[at as usize].next_listed != index {
            at = self.members[at as usize].next_listed;
        }
        self.members[at as usize].next_listed = after;
        if after == NONE {
            self.last_listed = at;
        }
    }
}

/// Returns a window in 65,536ths.
fn share(view: &View) -> i64 {
    (view.cwnd * 65536.0) as i64
}

/// Limits the numbers of a caller's view to bounds within which sums are exact.
fn sane(view: View) -> View {
    const MAX: f64 = (1_u64 << 36) as f64;
    let mss = if view.mss > 0.0 { view.mss.min(MAX) } else { 1.0 };
    View {
        nxt: view.nxt.max(view.una),
        flight: if view.flight > 0.0 { view.flight.min(MAX) } else { 0.0 },
        mss,
        cwnd: view.cwnd.max(mss).min(MAX),
        ssthresh: if view.ssthresh > 0.0 { view.ssthresh } else { 0.0 },
        ..view
    }
}
