//! Kinds of worlds: the topology between source and receivers, and files or a live stream.
//!
//! A separate random stream selects the kind. The world of a seed whose kind is `Files` is therefore the same as before other
//! kinds existed.

use crate::plan::{Plan, SitePlan, Trouble, random_link, sites};
use faircast_core::rng::Rng;
use faircast_core::schemes::{CATALOGUE, Entry, Scheme};
use faircast_core::time::Span;
use faircast_simnet::Link;
use faircast_transport::relay::RouterKind;

/// The kind of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Files by multicast. Relays are repeaters.
    Files,
    /// Files. Some or all relays are active routers.
    Hops,
    /// Files by MTCP. Relays are agents within the session.
    Agents,
    /// A live stream.
    Live,
    /// A live stream on each of several layers.
    Layers,
    /// Files. The source serves hosts by unicast.
    Unicast,
}

impl Kind {
    /// All kinds, each with its number of seeds per hundred.
    pub const ALL: [(Kind, u64); 6] = [
        (Kind::Hops, 12),
        (Kind::Agents, 12),
        (Kind::Live, 14),
        (Kind::Layers, 8),
        (Kind::Unicast, 14),
        (Kind::Files, 40),
    ];

    /// Returns the kind that this seed selects.
    pub fn of(seed: u64) -> Kind {
        let mut drawn = Rng::new(seed, 4).below(100);
        for (kind, part) in Kind::ALL {
            if drawn < part {
                return kind;
            }
            drawn -= part;
        }
        Kind::Files
    }

    /// Whether the content arrives over time.
    pub const fn is_live(self) -> bool {
        matches!(self, Kind::Live | Kind::Layers)
    }

    /// Changes `plan` into a plan of this kind.
    pub(crate) fn shape(self, plan: &mut Plan, seed: u64) {
        let mut rng = Rng::new(seed, 5);
        plan.kind = self;
        match self {
            Kind::Files => {}
            Kind::Hops => {
                let router = RouterKind::ALL[rng.below(2) as usize];
                router.scheme().clone_into(&mut plan.scheme);
                plan.sites = with_relays(&mut rng);
                let relays = plan.relays();
                let mixed = rng.chance(0.3);
                let one = |_| if mixed && rng.chance(0.5) { None } else { Some(router) };
                plan.routers = (0..relays).map(one).collect();
            }
            Kind::Agents => {
                "mtcp".clone_into(&mut plan.scheme);
                plan.sites = around_agents(&mut rng);
            }
            Kind::Live => {
                if layers(&plan.scheme) > 1 {
                    some_scheme(|layers| layers <= 1, &mut rng).name.clone_into(&mut plan.scheme);
                    plan.sites = sites(false, &mut rng);
                }
                stream(plan, &mut rng);
            }
            Kind::Layers => {
                let entry = some_scheme(|layers| layers > 1, &mut rng);
                plan.lanes = 2 + rng.below(2) as usize;
                plan.scheme = format!("{},layers={}", entry.name, plan.lanes);
                plan.sites = sites(true, &mut rng);
                plan.signed = false; // streams in layers are not signed
                stream(plan, &mut rng);
            }
            Kind::Unicast => {
                if layers(&plan.scheme) > 1 {
                    some_scheme(|layers| layers <= 1, &mut rng).name.clone_into(&mut plan.scheme);
                }
                plan.invites = rng.chance(0.5);
                plan.sites = by_unicast(plan.invites, &mut rng);
            }
        }
    }
}

/// Returns the number of layers of a scheme.
fn layers(scheme: &str) -> u8 {
    scheme.parse::<Scheme>().map_or(1, |scheme| scheme.layers())
}

fn some_scheme(suits: impl Fn(u8) -> bool, rng: &mut Rng) -> &'static Entry {
    let all: Vec<&Entry> = CATALOGUE.iter().filter(|entry| suits(layers(entry.name))).collect();
    all[rng.below(all.len() as u64) as usize]
}

/// Returns random sites, at least one of them with a relay.
fn with_relays(rng: &mut Rng) -> Vec<SitePlan> {
    loop {
        let sites = sites(false, rng);
        if sites.iter().any(|site| site.relays > 0) {
            return sites;
        }
    }
}

/// Returns random sites that all receive from the source. Some of them have an agent.
fn around_agents(rng: &mut Rng) -> Vec<SitePlan> {
    let count = 1 + rng.below(3);
    let site = |at: u64| SitePlan {
        relay: None,
        link: random_link(rng),
        receivers: 1 + rng.below(3) as usize,
        relays: usize::from(at == 0 || rng.chance(0.5)),
        unicast: false,
    };
    (0..count).map(site).collect()
}

/// Returns a site with the source's relay, and sites that this relay serves by unicast. One of these may have a relay that serves
/// a further site by multicast.
fn by_unicast(invites: bool, rng: &mut Rng) -> Vec<SitePlan> {
    let within = Link::after(Span::from_micros(20)).mbps(1_000.0).fifo(4 << 20);
    let mut all = vec![SitePlan { relay: None, link: within, receivers: 0, relays: 1, unicast: false }];
    let leads_on = rng.chance(0.3);
    for at in 0..1 + rng.below(3) {
        let relays = usize::from(leads_on && at == 0);
        // Relays cannot be invited.
        let receivers = (1 + rng.below(3)) as usize - usize::from(relays > 0 && !invites);
        all.push(SitePlan { relay: Some(0), link: random_link(rng), receivers, relays, unicast: true });
    }
    if leads_on {
        let receivers = 1 + rng.below(3) as usize;
        all.push(SitePlan { relay: Some(1), link: random_link(rng), receivers, relays: 0, unicast: false });
    }
    all
}

/// Prepares the plan for live streams: removes the faults of files, and sets age limit and slow readers.
fn stream(plan: &mut Plan, rng: &mut Rng) {
    let is_of_files = |trouble: &Trouble| {
        matches!(trouble, Trouble::NewContent | Trouble::SourceFile | Trouble::SourceDisk)
    };
    plan.troubles.retain(|trouble| !is_of_files(trouble));
    plan.episodes.retain(|episode| !is_of_files(&episode.trouble));
    plan.history = Span::from_secs_f64(0.5 + 9.5 * rng.unit() * rng.unit());
    plan.slow_readers = rng.chance(0.3);
    plan.latency = Span::from_secs_f64(0.01 * 100f64.powf(rng.unit()));
}
