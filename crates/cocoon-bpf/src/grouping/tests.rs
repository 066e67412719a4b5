//! Simulated hosts behind bottlenecks, with the counters of the kernel.

use super::*;
use faircast_core::rng::Rng;

/// A host: its round-trip time without queueing, in ms, and the index of its bottleneck.
struct Host {
    key: GroupKey,
    millis: f64,
    bottleneck: usize,
    counters: AtomCounters,
}

struct World {
    fates: HostGroups,
    hosts: Vec<Host>,
    queues: [f64; 2],
    rng: Rng,
    now: Time,
    /// Contents of the kernel's map.
    assigned: BTreeMap<GroupKey, u32>,
}

impl World {
    fn new(hosts: &[(&str, f64, usize)]) -> World {
        let host = |&(address, millis, bottleneck): &(&str, f64, usize)| Host {
            key: GroupKey::atom(address.parse().expect("an address"), 1),
            millis,
            bottleneck,
            counters: AtomCounters { members: 3, ..AtomCounters::default() },
        };
        World {
            fates: HostGroups::new(Config::default()),
            hosts: hosts.iter().map(host).collect(),
            queues: [0.0; 2],
            rng: Rng::new(7, 1),
            now: Time::ZERO,
            assigned: BTreeMap::new(),
        }
    }

    /// Simulates `secs` seconds in bins of 50 ms. In each bin a host acknowledges 50 packets. The delays of the queues vary
    /// randomly from 0 to `most` ms.
    fn run(&mut self, secs: u64, most: f64) {
        for _ in 0..secs * 20 {
            self.now += Span::from_millis(50);
            for queue in &mut self.queues {
                *queue = (*queue + (self.rng.unit() - 0.5) * most).clamp(0.0, most);
            }
            for host in &mut self.hosts {
                let us = ((host.millis + self.queues[host.bottleneck]) * 1e3) as u32;
                let it = &mut host.counters;
                it.acks += 50;
                it.acked += 50_000;
                it.samples += 50;
                it.rtt_us += 50 * u64::from(us);
                it.min_us = if it.min_us == 0 { us } else { it.min_us.min(us) };
                it.losses += u32::from(self.queues[host.bottleneck] > 0.95 * most && most > 10.0);
            }
            let counted: Vec<_> = self.hosts.iter().map(|host| (host.key, host.counters)).collect();
            for (key, number) in self.fates.observe(&counted, self.now) {
                match number {
                    Some(number) => self.assigned.insert(key, number),
                    None => self.assigned.remove(&key),
                };
            }
        }
    }

    /// Returns one letter for each host, which identifies its group.
    fn groups(&self) -> String {
        let mut known = Vec::new();
        let letter = |host: &Host| {
            let number = self.assigned[&host.key];
            let at = known.iter().position(|it| *it == number).unwrap_or_else(|| {
                known.push(number);
                known.len() - 1
            });
            char::from(b'a' + at as u8)
        };
        self.hosts.iter().map(letter).collect()
    }
}

#[test]
fn only_hosts_behind_the_same_queue_are_grouped() {
    let mut it = World::new(&[
        ("10.1.1.1", 48.0, 0),
        ("10.1.2.1", 49.0, 0),
        ("10.1.3.1", 56.0, 0),
        ("10.1.4.1", 48.0, 1),
    ]);
    it.run(1, 60.0);
    assert_eq!(it.groups(), "abcd", "nothing is known yet");
    it.run(60, 60.0);
    assert_eq!((it.groups().as_str(), it.fates.groups()), ("aabc", 3));
    let counters = it.fates.counters();
    assert!(counters.spent as f64 <= 0.025 * counters.acknowledgements as f64, "{counters:?}");
    // The path of the second host changes, so its group splits.
    it.hosts[1].bottleneck = 1;
    it.run(60, 60.0);
    assert_eq!(it.groups(), "abcb");
}

#[test]
fn equal_addresses_in_two_namespaces_are_two_hosts() {
    let mut it = World::new(&[("10.1.1.1", 48.0, 0), ("10.1.1.1", 48.0, 0)]);
    it.hosts[1].key.netns = 2;
    it.run(30, 60.0);
    assert_eq!((it.groups().as_str(), it.fates.counters().merges), ("ab", 0));
}

#[test]
fn a_silent_host_expires_and_rejoins_its_group() {
    let mut it = World::new(&[("10.1.1.1", 48.0, 0), ("10.1.2.1", 48.0, 0)]);
    it.run(40, 60.0);
    assert_eq!(it.groups(), "aa");
    let number = it.assigned[&it.hosts[0].key];
    let mut gone = it.hosts.pop().expect("there are two");
    gone.counters.members = 0;
    let key = gone.key;
    let left = it.fates.observe(&[(key, gone.counters)], it.now);
    assert_eq!(left, [], "it has only just been silent");
    it.run(61, 60.0);
    assert_eq!((it.fates.atoms(), it.assigned.get(&key)), (1, None));
    // The kernel forgets the host and counts from zero again.
    gone.counters = AtomCounters { members: 1, ..AtomCounters::default() };
    it.hosts.push(gone);
    it.run(1, 60.0);
    assert_eq!(it.assigned[&key], number);
}

#[test]
fn all_hosts_leave_measured_groups_when_measurement_ends() {
    let mut it = World::new(&[("10.1.1.1", 48.0, 0), ("2001:db8::1", 48.0, 0)]);
    it.run(1, 60.0);
    let back = it.fates.everybody_back();
    assert_eq!(back.len(), 2);
    assert!(back.iter().all(|(_, number)| number.is_none()));
}
