//! Plan of a seed: hosts, content, and the faults with their times.

use crate::kind::Kind;
use faircast_core::rng::Rng;
use faircast_core::schemes::{CATALOGUE, Scheme};
use faircast_core::time::{Rate, Span, Time};
use faircast_simnet::Link;
use faircast_transport::relay::RouterKind;
use std::fmt;

/// Maximum duration of all faults. After that everything heals.
const MAX_TROUBLE: Span = Span::from_secs(20);

/// A kind of fault. Each seed has a random subset of the kinds, so that no kind hides the findings of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// Packets are lost at random, in both directions.
    Loss,
    /// Packets arrive twice.
    Duplicates,
    /// Packets have wrong bits.
    Corruption,
    /// Unsealed packets have wrong content and a correct checksum, as from a broken host on the path.
    Meddling,
    /// Packets overtake each other.
    Reordering,
    /// Packets arrive again up to 20 s later.
    Ghosts,
    /// A site or a host is unreachable for some time, in one or both directions.
    Partitions,
    /// Large packets are lost for some time.
    BlackHoles,
    /// A link is slow for some time.
    SlowLinks,
    /// A host pauses for seconds.
    Pauses,
    /// A process is killed and restarted.
    Kills,
    /// A receiver is killed during its disk operations.
    Crashes,
    /// A host loses power, and its disk loses a part of the unflushed writes.
    PowerLoss,
    /// A disk is full for some time.
    FullDisk,
    /// A disk fails occasionally.
    BrokenDisk,
    /// A disk is slow for some time.
    SlowDisk,
    /// A host gets another address.
    Moves,
    /// Clocks of hosts are wrong, and jump.
    Clocks,
    /// Receivers join late.
    Latecomers,
    /// Socket buffers are small.
    SmallBuffers,
    /// A process is stopped gracefully and restarted.
    Stops,
    /// The source is restarted with new content of the same name.
    NewContent,
    /// A file of the source is changed, truncated, extended or replaced while it is sent.
    SourceFile,
    /// The source's disk fails occasionally, or is slow.
    SourceDisk,
}

impl Trouble {
    /// Kinds with a separate random stream, so that the other kinds of a seed do not depend on them.
    const LATER: [Trouble; 2] = [Trouble::SourceFile, Trouble::SourceDisk];

    /// The kinds without `LATER`.
    pub const ALL: [Trouble; 22] = [
        Trouble::Loss,
        Trouble::Duplicates,
        Trouble::Corruption,
        Trouble::Meddling,
        Trouble::Reordering,
        Trouble::Ghosts,
        Trouble::Partitions,
        Trouble::BlackHoles,
        Trouble::SlowLinks,
        Trouble::Pauses,
        Trouble::Kills,
        Trouble::Crashes,
        Trouble::PowerLoss,
        Trouble::FullDisk,
        Trouble::BrokenDisk,
        Trouble::SlowDisk,
        Trouble::Moves,
        Trouble::Clocks,
        Trouble::Latecomers,
        Trouble::SmallBuffers,
        Trouble::Stops,
        Trouble::NewContent,
    ];

    /// Whether this kind occurs in episodes.
    const fn is_episode(self) -> bool {
        matches!(
            self,
            Trouble::Partitions
                | Trouble::BlackHoles
                | Trouble::SlowLinks
                | Trouble::Pauses
                | Trouble::Kills
                | Trouble::Crashes
                | Trouble::PowerLoss
                | Trouble::FullDisk
                | Trouble::BrokenDisk
                | Trouble::SlowDisk
                | Trouble::Moves
                | Trouble::Clocks
                | Trouble::Stops
                | Trouble::NewContent
                | Trouble::SourceFile
                | Trouble::SourceDisk
        )
    }
}

/// A fault with a start time.
#[derive(Debug, Clone, Copy)]
pub struct Episode {
    /// Start time.
    pub at: Time,
    /// Kind of the fault.
    pub trouble: Trouble,
    /// Duration of the fault, or the time until a killed process is restarted.
    pub lasts: Span,
    /// Random seed for the details: the affected host, and the severity.
    pub dice: u64,
}

/// Plan of a site: hosts behind one link.
#[derive(Debug, Clone)]
pub struct SitePlan {
    /// Number of the relay that serves the site; `None`: the source serves it.
    pub relay: Option<usize>,
    /// Link of the site.
    pub link: Link,
    /// Number of receivers in the site.
    pub receivers: usize,
    /// Number of relays in the site.
    pub relays: usize,
    /// Whether the hosts are served by unicast.
    pub unicast: bool,
}

/// Probabilities of packet faults while faults are active.
#[derive(Debug, Clone, Copy, Default)]
pub struct PacketDamage {
    /// Probability of a loss.
    pub loss: f64,
    /// Probability of a second copy.
    pub duplicates: f64,
    /// Probability of wrong bits.
    pub corruption: f64,
    /// Probability of wrong content with a correct checksum.
    pub meddling: f64,
    /// Probability of a delay of up to `late`.
    pub reordering: f64,
    /// Maximum delay of reordered packets and second copies.
    pub late: Span,
    /// Probability that a copy of the datagram arrives up to 20 s later.
    pub ghosts: f64,
}

/// The plan of a seed.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Kind of the world.
    pub kind: Kind,
    /// Congestion control: its name and options.
    pub scheme: String,
    /// Size of datagrams, in bytes, and of blocks, in symbols.
    pub cut: (usize, u16),
    /// Whether packets are sealed.
    pub sealed: bool,
    /// Whether the content is signed.
    pub signed: bool,
    /// Names and lengths of the files, in bytes.
    pub files: Vec<(String, usize)>,
    /// The sites. Relays are numbered in the order of the sites.
    pub sites: Vec<SitePlan>,
    /// Whether receivers flush before they rename files.
    pub synced: bool,
    /// Whether the source is configured with the number of receivers.
    pub expects: bool,
    /// Maximum rate of the source.
    pub max: Option<Rate>,
    /// The idle timeout of sessions, in seconds.
    pub idle_timeout: u64,
    /// Packet faults until `calm`.
    pub packet_damage: PacketDamage,
    /// The kinds of faults of this seed.
    pub troubles: Vec<Trouble>,
    /// The episodes, in order of start time.
    pub episodes: Vec<Episode>,
    /// Time at which all faults end.
    pub calm: Time,
    /// For each relay: its router, if it is an active router.
    pub routers: Vec<Option<RouterKind>>,
    /// Whether the source invites the hosts that it serves by unicast.
    pub invites: bool,
    /// The number of live streams.
    pub lanes: usize,
    /// Maximum age of a live stream's blocks.
    pub history: Span,
    /// Aim for the delay of a live stream.
    pub latency: Span,
    /// Whether readers of a live stream's output are slow.
    pub slow_readers: bool,
}

impl Plan {
    /// Returns the plan of this seed, with the kind that the seed selects.
    pub fn new(seed: u64) -> Plan {
        Plan::of(seed, Kind::of(seed))
    }

    /// Returns the plan of this seed, with the given kind.
    pub fn of(seed: u64, kind: Kind) -> Plan {
        let mut rng = Rng::new(seed, 1);
        let entry = &CATALOGUE[rng.below(CATALOGUE.len() as u64) as usize];
        let plain: Scheme = entry.name.parse().expect("it is in the catalogue");
        let layered = plain.layers() > 1;
        let scheme = match layered {
            true => format!("{},layers={}", entry.name, 2 + rng.below(3)),
            false => entry.name.to_owned(),
        };
        let mut troubles = some_troubles(&mut rng);
        let meddles = troubles.contains(&Trouble::Meddling);
        let calm = Time::ZERO + MAX_TROUBLE.scaled(0.1 + 0.9 * rng.unit());
        let mut all = episodes(&troubles, calm, &mut rng);
        let packet_damage = packet_damage(&troubles, &mut rng);
        let mut later = Rng::new(seed, 3);
        let more: Vec<Trouble> = Trouble::LATER.into_iter().filter(|_| later.chance(0.15)).collect();
        all.extend(episodes(&more, calm, &mut later));
        all.sort_by_key(|episode| (episode.at, episode.dice));
        let mut plan = Plan {
            kind,
            cut: (400 + 8 * rng.below(135) as usize, 4 << rng.below(4)),
            sealed: rng.chance(0.5) && !meddles,
            signed: rng.chance(0.25),
            files: files(&mut rng),
            sites: sites(layered, &mut rng),
            synced: rng.chance(0.5),
            expects: rng.chance(0.5),
            max: rng.chance(0.5).then(|| Rate::from_mbps(1.0 + 9.0 * rng.unit())),
            idle_timeout: 10 + rng.below(50),
            packet_damage,
            scheme,
            troubles: Vec::new(),
            episodes: all,
            calm,
            routers: Vec::new(),
            invites: false,
            lanes: 1,
            history: Span::ZERO,
            latency: Span::from_millis(200),
            slow_readers: false,
        };
        troubles.extend(more);
        plan.troubles = troubles;
        kind.shape(&mut plan, seed);
        plan
    }

    /// Whether this seed has this kind of fault.
    pub fn has(&self, trouble: Trouble) -> bool {
        self.troubles.contains(&trouble)
    }

    /// Returns the maximum number of relays in series between the source and a receiver.
    pub fn depth(&self) -> u64 {
        // Number of relays in series up to each relay. Relays upstream have lower numbers.
        let mut depths: Vec<u64> = Vec::new();
        for site in &self.sites {
            let above = site.relay.map_or(0, |relay| depths[relay]);
            depths.extend((0..site.relays).map(|_| above + 1));
        }
        depths.into_iter().max().unwrap_or(0)
    }

    /// Returns the number of relays.
    pub fn relays(&self) -> usize {
        self.sites.iter().map(|site| site.relays).sum()
    }

    /// Returns the number of receivers.
    pub fn receivers(&self) -> usize {
        self.sites.iter().map(|site| site.receivers).sum()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: usize = self.files.iter().map(|(_, len)| len).sum();
        let (datagram, symbols) = self.cut;
        let how = match (self.sealed, self.signed) {
            (true, true) => "sealed and signed",
            (true, false) => "sealed",
            (false, true) => "signed",
            (false, false) => "open",
        };
        write!(
            f,
            "{:?} by {}, {how}, {} files of {bytes} bytes, datagrams of {datagram}, blocks of {symbols}; {} receivers at {} sites, \
             {} relays; idle timeout {} s; until {:.1} s: {:?}",
            self.kind,
            self.scheme,
            self.files.len(),
            self.receivers(),
            self.sites.len(),
            self.relays(),
            self.idle_timeout,
            self.calm.as_secs_f64(),
            self.troubles
        )
    }
}

/// Draws kinds of faults: none, a few or many of them (swarm testing).
fn some_troubles(rng: &mut Rng) -> Vec<Trouble> {
    let part = match rng.below(20) {
        0 => 0.0,
        1..=4 => 0.1,
        5..=14 => 0.3,
        _ => 0.6,
    };
    Trouble::ALL.into_iter().filter(|_| rng.chance(part)).collect()
}

fn episodes(troubles: &[Trouble], calm: Time, rng: &mut Rng) -> Vec<Episode> {
    let mut all = Vec::new();
    let span = calm.since(Time::ZERO);
    for &trouble in troubles.iter().filter(|trouble| trouble.is_episode()) {
        let most = if matches!(trouble, Trouble::NewContent | Trouble::Stops) { 1 } else { 4 };
        for _ in 0..1 + rng.below(most) {
            // A small transfer ends within seconds. Half of the faults therefore occur early.
            let early = if rng.chance(0.5) { 0.2 } else { 1.0 };
            let at = Time::ZERO + span.scaled(rng.unit() * early);
            let lasts = Span::from_secs_f64(rng.exponential(1.5).clamp(0.01, 8.0));
            all.push(Episode { at, trouble, lasts, dice: rng.bits() });
        }
    }
    all.sort_by_key(|episode| (episode.at, episode.dice));
    all
}

fn packet_damage(troubles: &[Trouble], rng: &mut Rng) -> PacketDamage {
    let mut part = |trouble, most: f64| {
        let much = most * rng.unit() * rng.unit();
        if troubles.contains(&trouble) { much } else { 0.0 }
    };
    PacketDamage {
        loss: part(Trouble::Loss, 0.5),
        duplicates: part(Trouble::Duplicates, 0.3),
        corruption: part(Trouble::Corruption, 0.3),
        meddling: part(Trouble::Meddling, 0.1),
        reordering: part(Trouble::Reordering, 0.3),
        late: Span::from_millis(1 + rng.below(60)),
        ghosts: if troubles.contains(&Trouble::Ghosts) { 0.02 } else { 0.0 },
    }
}

fn files(rng: &mut Rng) -> Vec<(String, usize)> {
    let count = if rng.chance(0.6) { 1 } else { 1 + rng.below(5) as usize };
    let name = |at: usize, deep: bool| if deep { format!("tree/below/{at}") } else { format!("content{at}") };
    (0..count)
        .map(|at| {
            // 0 to about 46 kB; small files are more frequent.
            let len = (2f64.powf(rng.unit() * 15.5) - 1.0) as usize;
            (name(at, rng.chance(0.4)), len)
        })
        .collect()
}

pub(crate) fn random_link(rng: &mut Rng) -> Link {
    let rate = Rate::from_mbps(2f64.powf(1.0 + rng.unit() * 5.0));
    let delay = Span::from_secs_f64(0.0002 + 0.08 * rng.unit() * rng.unit());
    Link::after(delay).at(rate).fifo(10_000 + rng.below(100_000))
}

pub(crate) fn sites(layered: bool, rng: &mut Rng) -> Vec<SitePlan> {
    let (count, mut sites, mut relays) = (1 + rng.below(3) as usize, Vec::<SitePlan>::new(), 0);
    for at in 0..count {
        let link = random_link(rng);
        // Sessions in layers cannot be relayed.
        let relay = (!layered && relays > 0 && rng.chance(0.6)).then(|| rng.below(relays) as usize);
        let leads_on = !layered && at + 1 < count && rng.chance(0.5);
        let receivers = if leads_on { rng.below(3) } else { 1 + rng.below(3) } as usize;
        sites.push(SitePlan { relay, link, receivers, relays: usize::from(leads_on), unicast: false });
        relays += u64::from(leads_on);
    }
    if sites.iter().all(|site| site.receivers == 0) {
        sites[0].receivers = 1;
    }
    sites
}
