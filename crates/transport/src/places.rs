//! Assignment of a limited number of places, such as those for the children of a relay or for the sessions of a permanent
//! receiver.
//!
//! Any host that can reach a port can request a place. So a newcomer may replace a holder that has given no proof, if the
//! newcomer's host holds fewer places than the holder's host. No host without the key can occupy all places.

use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Time for a holder to prove itself. After this time, a newcomer can replace the holder if the newcomer's host holds fewer
/// places than the holder's host. Before this time, the newcomer's host must hold at least two places fewer.
const TIME_TO_PROVE: Duration = Duration::from_secs(1);

/// Divisor of the number of all places. The quotient is the number of places that a single host without the key cannot occupy.
const FOR_OTHERS: usize = 4;

/// An occupied place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OccupiedPlace {
    pub(crate) host: IpAddr,
    pub(crate) since: Instant,
    pub(crate) standing: Standing,
}

/// The proof that the holder of a place has given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Standing {
    /// The holder has proved only its address.
    Unproved,
    /// The holder takes part in the session, which is possible without a key.
    #[default]
    TakesPart,
    /// The holder has the key.
    HasKey,
}

/// The place that a newcomer can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vacancy {
    /// A free place.
    Free,
    /// The place of the holder at this index: the newcomer replaces this holder.
    Of(usize),
    /// No place: the newcomer is refused.
    None,
}

/// Returns the place that a newcomer from this host can take; `held` lists the occupied places, and `most` is the number of all
/// places.
pub(crate) fn room_for(newcomer: IpAddr, held: &[OccupiedPlace], most: usize, now: Instant) -> Vacancy {
    let of = |host: IpAddr| {
        let same = held.iter().filter(|one| one.host.to_canonical() == host.to_canonical());
        same.filter(|one| one.standing != Standing::HasKey).count()
    };
    let own = of(newcomer);
    if own >= most - most / FOR_OTHERS {
        return Vacancy::None;
    }
    if held.len() < most {
        return Vacancy::Free;
    }
    let unproved = held.iter().enumerate().filter(|(_, one)| one.standing == Standing::Unproved);
    let counted = unproved.map(|(place, one)| (place, one, of(one.host)));
    let gives_way = counted.filter(|(_, one, others)| {
        *others > own + 1 || *others > own && now.duration_since(one.since) >= TIME_TO_PROVE
    });
    let first = gives_way.min_by_key(|(_, one, others)| (usize::MAX - others, one.since));
    first.map_or(Vacancy::None, |(place, ..)| Vacancy::Of(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn held(now: Instant, hosts: &[u8], standing: Standing) -> Vec<OccupiedPlace> {
        hosts.iter().map(|last| OccupiedPlace { host: host(*last), since: now, standing }).collect()
    }

    #[test]
    fn host_with_many_unproven_places_loses_one_to_another_host() {
        let now = Instant::now();
        let all = held(now, &[1, 2, 2, 2], Standing::Unproved);
        assert_eq!(room_for(host(3), &all, 4, now), Vacancy::Of(1));
        assert_eq!(room_for(host(2), &all, 4, now), Vacancy::None, "no more for itself");
        assert_eq!(room_for(host(1), &all, 4, now), Vacancy::Of(1));
    }

    #[test]
    fn host_without_the_key_cannot_hold_the_last_quarter_of_places() {
        let now = Instant::now();
        for (most, own) in [(16, 12), (4, 3), (2, 2), (1, 1)] {
            for standing in [Standing::Unproved, Standing::TakesPart] {
                let all = held(now, &vec![1; own], standing);
                assert_eq!(room_for(host(1), &all, most, now), Vacancy::None, "{most} {standing:?}");
                assert_eq!(room_for(host(1), &all[1..], most, now), Vacancy::Free, "{most} {standing:?}");
            }
            let all = held(now, &vec![1; own], Standing::HasKey);
            assert_eq!(room_for(host(1), &all, most + 1, now), Vacancy::Free, "{most}");
        }
    }

    #[test]
    fn holder_with_a_proof_is_not_replaced() {
        let now = Instant::now();
        let later = now + TIME_TO_PROVE * 100;
        for standing in [Standing::TakesPart, Standing::HasKey] {
            let mut all = held(now, &[1; 16], standing);
            assert_eq!(room_for(host(2), &all, 16, later), Vacancy::None);
            all[7].standing = Standing::Unproved;
            assert_eq!(room_for(host(2), &all, 16, later), Vacancy::Of(7));
        }
    }

    #[test]
    fn unproven_holder_is_replaced_after_a_timeout() {
        let now = Instant::now();
        let all = held(now, &[1, 2, 3], Standing::Unproved);
        assert_eq!(room_for(host(4), &all, 3, now), Vacancy::None);
        assert_eq!(room_for(host(4), &all, 3, now + TIME_TO_PROVE), Vacancy::Of(0));
    }

    #[test]
    fn ipv4_mapped_ipv6_address_counts_as_the_same_host() {
        let now = Instant::now();
        let mapped = IpAddr::V6(std::net::Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped());
        let all = held(now, &[1, 1], Standing::Unproved);
        assert_eq!(room_for(mapped, &all, 2, now), Vacancy::None);
    }
}
