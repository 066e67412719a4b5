//! Grouping of destinations that share a bottleneck: atoms, and the merging and splitting of groups (paper 002, 4.1).
//!
//! Paper gap: 4.1 groups destinations that are "observed" to share links. The chapter does not contain the procedure (parameters
//! M, N and c, and an overhead of at most 2.5 %). The following rules are ours under the same names.
//!
//! An atom is a destination host. It starts in a group of its own, or in the group in which the cache recorded its neighbours.
//! Each atom and each group has a ring of `M` bins. A bin records by how much the packets' round-trip times exceed the shortest
//! one, and whether a packet was lost. A test compares two rings. The result is "one fate" (a shared bottleneck) if the shortest
//! round-trip times differ at most by the fraction `c`. If there was congestion, the delays must also rise and fall together from
//! bin to bin, or the losses must coincide. After `N` consecutive tests with the same result, two groups are merged, or an atom
//! is split off.
//!
//! A caller that processes every acknowledgement calls [`Grouping::on_ack`]. A caller that reads counters from time to time (for
//! example the counters of a kernel) calls [`Grouping::on_seen`]. Both functions have the same effect.
//!
//! Each acknowledgement earns [`Config::overhead`] of a step, and a test costs one step for each bin that it reads. Grouping
//! therefore takes at most this fraction of the work that acknowledgements take.

use super::coordinator::Coordinator;
use super::messages::{CapacityError, GroupId, Joined, MemberId};
use super::rules::View;
use faircast_core::time::{Span, Time};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Number of bins of a ring ("M").
pub const BINS: usize = 64;

/// Parameters of grouping.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// Length of a bin.
    pub bin: Span,
    /// Number of consecutive tests that must agree ("N").
    pub agreeing: u8,
    /// Maximum difference between the shortest round-trip times of two rings with one fate, as a fraction of the longer of the
    /// two ("c").
    pub alike: f64,
    /// Minimum correlation between the delays of two rings with one fate. When an atom is compared with its own group, the
    /// minimum is lower by 0.2.
    pub correlation: f64,
    /// Queueing delay that counts as congestion.
    pub congested: Span,
    /// Number of steps that each acknowledgement earns.
    pub overhead: f64,
    /// Time for which the group and the round-trip time of a subnet are remembered.
    pub remembered: Span,
    /// Minimum time after which an atom can be merged again, if it was split off because merging had halved its rate.
    pub left_alone: Span,
    /// Maximum number of atoms. To make room for a new atom, an atom without connections is removed.
    pub max_atoms: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            bin: Span::from_millis(50),
            agreeing: 3,
            alike: 0.10,
            correlation: 0.5,
            congested: Span::from_millis(5),
            overhead: 0.025,
            remembered: Span::from_secs(600),
            left_alone: Span::from_secs(60),
            max_atoms: 4096,
        }
    }
}

/// Counters of grouping.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Counters {
    /// Number of merged groups.
    pub merges: u64,
    /// Number of atoms split off.
    pub splits: u64,
    /// Number of tests.
    pub tests: u64,
    /// Steps earned and not spent.
    pub credit: f64,
    /// Steps spent.
    pub spent: u64,
    /// Number of acknowledgements.
    pub acknowledgements: u64,
}

/// Observations of one member since the caller's previous report, as counters.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Observations {
    /// Number of acknowledgements.
    pub acknowledgements: u64,
    /// Amount of data newly acknowledged by these acknowledgements, in the unit of windows.
    pub newly: f64,
    /// Number of round-trip samples.
    pub samples: u32,
    /// Sum of the samples.
    pub round_trips: Span,
    /// Shortest sample.
    pub shortest: Span,
}

/// A bin of a ring.
#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    /// Number of the bin, counted from the start of time, plus 1; 0 for an unused bin.
    number: u64,
    samples: u32,
    /// Sum of the round-trip times minus the shortest one, over all samples of the bin, in seconds.
    delay: f64,
    lost: bool,
}

/// The latest bins.
#[derive(Debug, Clone)]
struct Ring(Box<[Bin; BINS]>);

impl Ring {
    fn new() -> Ring {
        Ring(Box::new([Bin::default(); BINS]))
    }

    fn at(&mut self, number: u64) -> &mut Bin {
        let bin = &mut self.0[number as usize % BINS];
        if bin.number != number + 1 {
            *bin = Bin { number: number + 1, ..Bin::default() };
        }
        bin
    }

    fn get(&self, number: u64) -> Option<&Bin> {
        let bin = &self.0[number as usize % BINS];
        (bin.number == number.wrapping_add(1)).then_some(bin)
    }

    fn is_congested(&self, from: u64, least: f64) -> bool {
        let mut recent = self.0.iter().filter(|bin| bin.number > from);
        recent.any(|bin| bin.lost || bin.samples > 0 && bin.delay / f64::from(bin.samples) >= least)
    }
}

#[derive(Debug, Clone)]
struct Atom {
    group: GroupId,
    connections: u32,
    /// Shortest round-trip time, in seconds; infinite before the first sample.
    shortest: f64,
    ring: Ring,
    /// Number of consecutive tests in which the atom and its group had different fates.
    strange: u8,
    /// Rate before the latest merge (acknowledged amount per connection and second), and the time of this merge.
    before: f64,
    since: Time,
    acknowledged: f64,
    counted_from: Time,
    /// Time before which the atom is not merged.
    alone_until: Time,
}

#[derive(Debug, Clone)]
struct Shared {
    /// Sum of the atoms' shortest round-trip times in seconds, and number of atoms in the sum.
    shortest: f64,
    atoms: u32,
    ring: Ring,
    /// Time of the latest loss of a member.
    lost_at: Time,
}

impl Shared {
    fn shortest(&self) -> f64 {
        if self.atoms == 0 { f64::INFINITY } else { self.shortest / f64::from(self.atoms) }
    }
}

/// Result of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TestResult {
    One,
    Different,
    /// Too few samples.
    Unknown,
}

/// Returns the network prefix of a destination: `short` bits for IPv4, `long` bits for IPv6.
fn prefix(of: IpAddr, short: u8, long: u8) -> u128 {
    match of {
        IpAddr::V4(it) => u128::from(u32::from(it) >> (32 - short)),
        IpAddr::V6(it) => (1 << 127) | (u128::from(it) >> (128 - long)),
    }
}

/// Returns the network prefix of 16 bits (IPv4) or 48 bits (IPv6).
fn region(of: IpAddr) -> u128 {
    prefix(of, 16, 48)
}

/// Returns the network prefix of 24 bits (IPv4) or 64 bits (IPv6).
fn subnet(of: IpAddr) -> u128 {
    prefix(of, 24, 64)
}

/// Finds destinations that share a bottleneck, and moves their connections to one group of a [`Coordinator`].
#[derive(Debug, Clone)]
pub struct Grouping {
    config: Config,
    atoms: BTreeMap<IpAddr, Atom>,
    groups: BTreeMap<GroupId, Shared>,
    members: BTreeMap<MemberId, IpAddr>,
    /// For each subnet: the group of its hosts, the shortest round-trip time of one host, and the time at which both were
    /// recorded.
    cache: BTreeMap<u128, (GroupId, f64, Time)>,
    /// For each pair of groups that tests have found to have one fate: the number of consecutive periods with this result, and
    /// the latest of these periods.
    agreeing: BTreeMap<(GroupId, GroupId), (u8, u64)>,
    counters: Counters,
    /// The atom that is tested next.
    cursor: Option<IpAddr>,
    tested: u64,
}

impl Grouping {
    /// Creates a grouping without atoms.
    pub const fn new(config: Config) -> Grouping {
        Grouping {
            config,
            atoms: BTreeMap::new(),
            groups: BTreeMap::new(),
            members: BTreeMap::new(),
            cache: BTreeMap::new(),
            agreeing: BTreeMap::new(),
            counters: Counters { merges: 0, splits: 0, tests: 0, credit: 0.0, spent: 0, acknowledgements: 0 },
            cursor: None,
            tested: 0,
        }
    }

    /// Returns the counters.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns the number of groups.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Returns the group of a destination.
    pub fn group_of(&self, destination: IpAddr) -> Option<GroupId> {
        self.atoms.get(&destination).map(|atom| atom.group)
    }

    fn number(&self, now: Time) -> u64 {
        now.as_nanos() / self.config.bin.as_nanos().max(1)
    }

    /// Adds a connection to this destination. The connection joins the group of the destination's atom.
    ///
    /// # Errors
    /// When the maximum number of connections or of destinations is reached.
    pub fn join(
        &mut self,
        coordinator: &mut Coordinator,
        destination: IpAddr,
        view: View,
        now: Time,
    ) -> Result<Joined, CapacityError> {
        if !self.atoms.contains_key(&destination) {
            self.new_atom(coordinator, destination, now)?;
        }
        let atom = self.atoms.get_mut(&destination).expect("it was there, or was made");
        let joined = coordinator.join(atom.group, view)?;
        atom.connections += 1;
        self.members.insert(joined.member, destination);
        Ok(joined)
    }

    fn new_atom(
        &mut self,
        coordinator: &mut Coordinator,
        at: IpAddr,
        now: Time,
    ) -> Result<(), CapacityError> {
        if self.atoms.len() >= self.config.max_atoms {
            let idle = self.atoms.iter().find(|(_, atom)| atom.connections == 0).map(|(at, _)| *at);
            self.forget(coordinator, idle.ok_or(CapacityError::Groups(self.atoms.len()))?);
        }
        let cached = self.cache.get(&subnet(at)).filter(|(group, shortest, seen)| {
            let fresh = now.since(*seen) <= self.config.remembered;
            fresh && self.groups.get(group).is_some_and(|it| self.are_alike(*shortest, it.shortest()))
        });
        let group = match cached {
            Some((group, ..)) => *group,
            None => self.new_group(coordinator)?,
        };
        let atom = Atom {
            group,
            connections: 0,
            shortest: f64::INFINITY,
            ring: Ring::new(),
            strange: 0,
            before: 0.0,
            since: Time::NEVER,
            acknowledged: 0.0,
            counted_from: now,
            alone_until: Time::ZERO,
        };
        self.atoms.insert(at, atom);
        Ok(())
    }

    fn new_group(&mut self, coordinator: &mut Coordinator) -> Result<GroupId, CapacityError> {
        let group = coordinator.open_group()?;
        self.groups.insert(group, Shared { shortest: 0.0, atoms: 0, ring: Ring::new(), lost_at: Time::ZERO });
        Ok(group)
    }

    fn forget(&mut self, coordinator: &mut Coordinator, at: IpAddr) {
        let Some(atom) = self.atoms.remove(&at) else { return };
        self.count_out(atom.group, atom.shortest);
        self.close_if_empty(coordinator, atom.group);
    }

    fn count_out(&mut self, group: GroupId, shortest: f64) {
        if let Some(it) = self.groups.get_mut(&group)
            && shortest.is_finite()
        {
            (it.shortest, it.atoms) = (it.shortest - shortest, it.atoms - 1);
        }
    }

    fn close_if_empty(&mut self, coordinator: &mut Coordinator, group: GroupId) {
        if !self.atoms.values().any(|atom| atom.group == group) {
            self.groups.remove(&group);
            coordinator.close_group(group);
            self.agreeing.retain(|(a, b), _| *a != group && *b != group);
        }
    }

    /// Removes a connection that closes. The atom of its destination stays until a new destination needs the room.
    pub fn leave(&mut self, coordinator: &mut Coordinator, member: MemberId) {
        coordinator.leave(member);
        if let Some(at) = self.members.remove(&member)
            && let Some(atom) = self.atoms.get_mut(&at)
        {
            atom.connections = atom.connections.saturating_sub(1);
        }
    }

    /// Reports that an acknowledgement has newly acknowledged the amount `newly` for a member, with a sample `rtt` if there is
    /// one.
    pub fn on_ack(&mut self, member: MemberId, rtt: Option<Span>, newly: f64, now: Time) {
        let one = rtt.unwrap_or(Span::ZERO);
        let samples = u32::from(rtt.is_some());
        self.on_seen(
            member,
            &Observations { acknowledgements: 1, newly, samples, round_trips: one, shortest: one },
            now,
        );
    }

    /// Reports several acknowledgements of a member at once. All of them count in the bin of the time `now`.
    pub fn on_seen(&mut self, member: MemberId, seen: &Observations, now: Time) {
        let number = self.number(now);
        let Some(at) = self.members.get(&member) else { return };
        let Some(atom) = self.atoms.get_mut(at) else { return };
        self.counters.acknowledgements += seen.acknowledgements;
        // Limits the unspent steps to the cost of 16 tests.
        let earned = self.config.overhead * seen.acknowledgements as f64;
        self.counters.credit = (self.counters.credit + earned).min(16.0 * BINS as f64);
        atom.acknowledged += seen.newly.clamp(0.0, 1e12);
        if seen.samples == 0 {
            return;
        }
        let Some(group) = self.groups.get_mut(&atom.group) else { return };
        let shortest = seen.shortest.as_secs_f64();
        if shortest < atom.shortest {
            if atom.shortest.is_finite() {
                group.shortest -= atom.shortest;
            } else {
                group.atoms += 1;
            }
            group.shortest += shortest;
            atom.shortest = shortest;
        }
        let delay = (seen.round_trips.as_secs_f64() - f64::from(seen.samples) * atom.shortest).max(0.0);
        for ring in [&mut atom.ring, &mut group.ring] {
            let bin = ring.at(number);
            bin.samples = bin.samples.saturating_add(seen.samples);
            bin.delay += delay;
        }
        self.cache.insert(subnet(*at), (atom.group, atom.shortest, now));
        if self.cache.len() > self.config.max_atoms {
            self.cache.pop_first();
        }
    }

    /// Reports a loss of a member.
    pub fn on_loss(&mut self, member: MemberId, now: Time) {
        let number = self.number(now);
        let Some(atom) = self.members.get(&member).and_then(|at| self.atoms.get_mut(at)) else { return };
        atom.ring.at(number).lost = true;
        if let Some(group) = self.groups.get_mut(&atom.group) {
            group.ring.at(number).lost = true;
            group.lost_at = now;
        }
    }

    fn are_alike(&self, a: f64, b: f64) -> bool {
        (a - b).abs() <= self.config.alike * a.max(b)
    }

    /// Tests whether two rings have one fate. `own` means that the samples of the first ring are also in the second ring.
    fn fate(
        &mut self,
        (a, a_shortest): (&Ring, f64),
        (b, b_shortest): (&Ring, f64),
        own: bool,
        now: Time,
    ) -> TestResult {
        self.counters.tests += 1;
        self.counters.spent += BINS as u64;
        self.counters.credit -= BINS as f64;
        let latest = self.number(now);
        let first = (latest + 1).saturating_sub(BINS as u64);
        let (mut n, mut sum_a, mut sum_b, mut aa, mut bb, mut ab) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
        let (mut common, mut before) = (0_usize, None);
        let (mut lost_a, mut lost_b, mut both, mut covered, mut bins) = (0_u32, 0_u32, 0_u32, 0_u32, 0_u32);
        for number in first..=latest {
            let (Some(x), Some(y)) = (a.get(number), b.get(number)) else { continue };
            let near = [number.wrapping_sub(1), number, number + 1];
            lost_a += u32::from(x.lost);
            lost_b += u32::from(y.lost);
            let lost_near = near.iter().any(|at| b.get(*at).is_some_and(|bin| bin.lost));
            covered += u32::from(lost_near);
            both += u32::from(x.lost && lost_near);
            bins += 1;
            // The samples of the atom are subtracted from the samples of its group: comparing an atom with itself gives no
            // information.
            let (samples, delay) = if own {
                (y.samples - x.samples.min(y.samples), y.delay - x.delay)
            } else {
                (y.samples, y.delay)
            };
            if x.samples == 0 || samples == 0 {
                continue;
            }
            let (x, y) = (x.delay / f64::from(x.samples), delay / f64::from(samples));
            common += 1;
            if let Some((earlier, x_then, y_then)) = before.replace((number, x, y))
                && earlier + 1 == number
            {
                let (x, y) = (x - x_then, y - y_then);
                (n, sum_a, sum_b) = (n + 1.0, sum_a + x, sum_b + y);
                (aa, bb, ab) = (aa + x * x, bb + y * y, ab + x * y);
            }
        }
        if common < BINS / 2 || n == 0.0 {
            return TestResult::Unknown;
        }
        if !self.are_alike(a_shortest, b_shortest) {
            return TestResult::Different;
        }
        let least = self.config.congested.as_secs_f64();
        if !a.is_congested(first, least) && !b.is_congested(first, least) {
            return TestResult::One;
        }
        let covariance = ab - sum_a * sum_b / n;
        let deviation = ((aa - sum_a * sum_a / n) * (bb - sum_b * sum_b / n)).max(0.0).sqrt();
        let correlation = if deviation > 0.0 { covariance / deviation } else { 0.0 };
        let enough = self.config.correlation - if own { 0.2 } else { 0.0 };
        // The number of coinciding losses must be at least twice the number expected by chance.
        let by_chance = f64::from(lost_a) * f64::from(covered) / f64::from(bins.max(1));
        let enough_losses = both >= 4 && f64::from(both) >= 0.5 * f64::from(lost_a.min(lost_b));
        let together = !own && enough_losses && f64::from(both) >= 2.0 * by_chance;
        if correlation >= enough || together { TestResult::One } else { TestResult::Different }
    }

    /// Runs the tests of this period, as many as the earned steps allow, and merges or splits groups by the results. Call it at
    /// most a few times a second.
    pub fn work(&mut self, coordinator: &mut Coordinator, now: Time) {
        let period = self.number(now) / (BINS as u64 / 4);
        if period == self.tested && self.cursor.is_none() {
            return;
        }
        let mut next = self.cursor.take();
        self.tested = period;
        loop {
            // Cost of the two tests of one atom: against its own group, and against another group.
            if self.counters.credit < 2.0 * BINS as f64 {
                self.cursor = next;
                return;
            }
            let found = match next {
                None => self.atoms.keys().next(),
                Some(after) => self
                    .atoms
                    .range((std::ops::Bound::Excluded(after), std::ops::Bound::Unbounded))
                    .next()
                    .map(|it| it.0),
            };
            let Some(&at) = found else { return };
            next = Some(at);
            self.test(coordinator, at, now);
        }
    }

    fn test(&mut self, coordinator: &mut Coordinator, at: IpAddr, now: Time) {
        let atom = self.atoms[&at].clone();
        let Some(group) = self.groups.get(&atom.group).cloned() else { return };
        if group.atoms > 1 {
            if atom.has_lost_by_merging(group.lost_at, now) {
                return self.split(coordinator, at, now, self.config.left_alone);
            }
            let fate = self.fate((&atom.ring, atom.shortest), (&group.ring, group.shortest()), true, now);
            let it = self.atoms.get_mut(&at).expect("it is tested");
            it.strange = if fate == TestResult::Different { it.strange + 1 } else { 0 };
            if it.strange >= self.config.agreeing {
                return self.split(coordinator, at, now, Span::ZERO);
            }
        }
        if now < atom.alone_until || !atom.shortest.is_finite() {
            return;
        }
        let near = |other: &IpAddr| region(*other) == region(at);
        let candidates = self.atoms.iter().filter(|(other, it)| near(other) && it.group != atom.group);
        // Selects the group with the nearest round-trip time.
        let distance = |it: &Atom| {
            self.groups.get(&it.group).map_or(f64::INFINITY, |it| (it.shortest() - atom.shortest).abs())
        };
        let Some(other) =
            candidates.min_by(|a, b| distance(a.1).total_cmp(&distance(b.1))).map(|it| it.1.group)
        else {
            return;
        };
        let Some(candidate) = self.groups.get(&other).cloned() else { return };
        let pair = (atom.group.min(other), atom.group.max(other));
        match self.fate((&group.ring, group.shortest()), (&candidate.ring, candidate.shortest()), false, now)
        {
            TestResult::One => {
                let period = self.tested;
                let (times, latest) = self.agreeing.entry(pair).or_insert((0, u64::MAX));
                // Every atom of both groups runs this test, so the pair may count at most once per period.
                if *latest != period {
                    (*times, *latest) = (*times + 1, period);
                }
            }
            TestResult::Different => drop(self.agreeing.remove(&pair)),
            TestResult::Unknown => {}
        }
        if self.agreeing.get(&pair).is_some_and(|(times, _)| *times >= self.config.agreeing) {
            self.merge(coordinator, pair, now);
        }
    }

    fn merge(&mut self, coordinator: &mut Coordinator, (into, from): (GroupId, GroupId), now: Time) {
        self.agreeing.retain(|(a, b), _| *a != from && *b != from && (*a, *b) != (into, from));
        if coordinator.merge(into, from).is_err() {
            return;
        }
        let Some(lost) = self.groups.remove(&from) else { return };
        for atom in self.atoms.values_mut().filter(|atom| atom.group == from || atom.group == into) {
            atom.group = into;
            atom.strange = 0;
            atom.watch_from(now);
        }
        let Some(it) = self.groups.get_mut(&into) else { return };
        (it.shortest, it.atoms) = (it.shortest + lost.shortest, it.atoms + lost.atoms);
        it.lost_at = it.lost_at.max(lost.lost_at);
        for bin in lost.ring.0.iter().filter(|bin| bin.number > 0) {
            let mine = it.ring.at(bin.number - 1);
            mine.samples += bin.samples;
            mine.delay += bin.delay;
            mine.lost |= bin.lost;
        }
        self.counters.merges += 1;
    }

    fn split(&mut self, coordinator: &mut Coordinator, at: IpAddr, now: Time, alone: Span) {
        let Ok(group) = self.new_group(coordinator) else { return };
        let atom = self.atoms.get_mut(&at).expect("it is split off");
        let from = std::mem::replace(&mut atom.group, group);
        (atom.strange, atom.since, atom.alone_until) = (0, Time::NEVER, now + alone);
        let (shortest, ring) = (atom.shortest, atom.ring.clone());
        self.count_out(from, shortest);
        if let Some(it) = self.groups.get_mut(&from) {
            for bin in ring.0.iter().filter(|bin| bin.number > 0) {
                if let Some(theirs) = it.ring.0.iter_mut().find(|theirs| theirs.number == bin.number) {
                    theirs.samples = theirs.samples.saturating_sub(bin.samples);
                    theirs.delay = (theirs.delay - bin.delay).max(0.0);
                }
            }
        }
        if let Some(it) = self.groups.get_mut(&group) {
            *it = Shared { shortest, atoms: u32::from(shortest.is_finite()), ring, lost_at: Time::ZERO };
        }
        for (member, _) in self.members.iter().filter(|(_, to)| **to == at) {
            // A new group has room for these members, because they all were in one group before.
            _ = coordinator.move_member(*member, group);
        }
        self.close_if_empty(coordinator, from);
        self.counters.splits += 1;
    }
}

impl Atom {
    /// Returns the acknowledged amount per connection and second since `counted_from`.
    fn rate(&self, now: Time) -> f64 {
        let secs = now.since(self.counted_from).as_secs_f64();
        if secs <= 0.0 { 0.0 } else { self.acknowledged / secs / f64::from(self.connections.max(1)) }
    }

    /// Returns whether merging has reduced the atom's rate to less than half. The result is `false` in the first ten seconds
    /// after the merge, and if no member of the group has lost a packet since the merge.
    fn has_lost_by_merging(&self, lost_at: Time, now: Time) -> bool {
        let watched = !self.since.is_never() && now.since(self.since) >= Span::from_secs(10);
        watched && lost_at >= self.since && self.connections > 0 && self.rate(now) < self.before / 2.0
    }

    /// Records the rate before a merge, for comparison with the rate after the merge.
    fn watch_from(&mut self, now: Time) {
        self.before = self.rate(now);
        (self.since, self.counted_from, self.acknowledged) = (now, now, 0.0);
    }
}
