//! Layout of a plan: hosts, sites, and parents.

use crate::host::{Host, Role};
use crate::kind::Kind;
use crate::plan::{Plan, Trouble};
use faircast_core::rng::Rng;
use faircast_simnet::Site;

/// A site with one head, which is an endpoint of a host.
type Segment = Site<usize, (usize, usize)>;

/// The branch number of a site whose hosts are served by unicast.
pub(crate) const UNICAST: usize = usize::MAX;

/// Assigns the unicast parents of hosts.
fn attach(seed: u64, plan: &Plan, hosts: &mut [Host], sites: &[Segment]) {
    let mut rng = Rng::new(seed, 6);
    match plan.kind {
        Kind::Agents => {
            let agents: Vec<usize> =
                (0..hosts.len()).filter(|host| hosts[*host].role == Role::Relay).collect();
            for host in 1..hosts.len() {
                let site = sites.iter().find(|site| site.members.contains(&host));
                let near =
                    agents.iter().filter(|agent| site.is_some_and(|site| site.members.contains(agent)));
                let far = agents[rng.below(agents.len() as u64) as usize];
                let (is_agent, goes_far) = (hosts[host].role == Role::Relay, rng.chance(0.3));
                // Only agents with a lower number can be parents of an agent.
                let mut parents: Vec<usize> = near.copied().filter(|_| !is_agent).collect();
                parents.extend((goes_far && (!is_agent || far < host)).then_some(far));
                parents.dedup();
                hosts[host].parents = parents.into_iter().map(|parent| hosts[parent].asked_at()).collect();
            }
        }
        Kind::Unicast => {
            for site in sites.iter().filter(|site| site.heads[0].1 == UNICAST) {
                for &member in &site.members {
                    let address = hosts[member].address;
                    if plan.invites && hosts[member].role == Role::Receiver {
                        hosts[member].invited = true;
                        hosts[site.heads[0].0].invites.push(address);
                    } else {
                        hosts[member].parents = vec![hosts[site.heads[0].0].asked_at()];
                    }
                }
            }
        }
        _ => {}
    }
}

/// Returns the hosts of a plan, the source first, then relays, then receivers. Appends the sites to `sites`.
pub(crate) fn layout(seed: u64, plan: &Plan, rng: &mut Rng, sites: &mut Vec<Segment>) -> Vec<Host> {
    let relays: usize = plan.sites.iter().map(|site| site.relays).sum();
    let mut hosts = vec![Host::new(Role::Source, 0, "source".to_owned(), seed)];
    hosts.extend((0..relays).map(|at| Host::new(Role::Relay, 1 + at, format!("relay{at}"), seed)));
    let (mut next_relay, mut branches) = (1, vec![0; relays]);
    for site in &plan.sites {
        let head = match site.relay {
            None => (0, 0),
            Some(relay) if site.unicast => (1 + relay, UNICAST),
            Some(relay) => {
                branches[relay] += 1;
                (1 + relay, branches[relay])
            }
        };
        let mut members: Vec<usize> = (0..site.relays).map(|at| next_relay + at).collect();
        next_relay += site.relays;
        for _ in 0..site.receivers {
            let index = hosts.len();
            members.push(index);
            hosts.push(Host::new(Role::Receiver, index, format!("host{index}"), seed));
        }
        sites.push(Segment { members, ..Site::new(vec![head], site.link, site.link) });
    }
    attach(seed, plan, &mut hosts, sites);
    for host in &mut hosts {
        if plan.has(Trouble::Clocks) {
            host.clock.fast = rng.below(401) as i64 - 200;
            host.clock.ahead = rng.below(2 * 86_400) as i64 - 86_400;
        }
        if plan.has(Trouble::SmallBuffers) {
            host.buffer = 20_000 + rng.below(200_000);
        }
    }
    hosts
}
