//! Groups by measurement. This module reads the counters of each destination host from the kernel and passes them to
//! [`grouping`](crate::grouping). It writes the resulting groups into the map that the programs read.

use crate::grouping::HostGroups;
use crate::{CocoonError, Loaded, Place};
use faircast_core::time::Time;
use faircast_unicast::cocoon::grouping::Config;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Results of grouping by measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Summary {
    /// Number of merges of groups.
    pub merges: u64,
    /// Number of hosts split off from a group.
    pub splits: u64,
    /// Number of compared pairs of series.
    pub tests: u64,
    /// Number of steps in comparisons of series. There is at most one step per forty acknowledgements.
    pub steps: u64,
    /// Number of acknowledgements that the programs counted.
    pub acknowledgements: u64,
    /// Maximum number of simultaneous hosts.
    pub hosts: usize,
    /// Number of groups at the end.
    pub groups: usize,
}

/// Groups connections by measurement until `stop` is set. Then the connections return to the groups of their prefixes.
///
/// # Errors
/// Fails if no congestion control is loaded at `place`, or a map cannot be read or written.
pub fn run(place: &Place, stop: &AtomicBool) -> Result<Summary, CocoonError> {
    let loaded = Loaded::find(place)?;
    let config = Config::default();
    let mut fates = HostGroups::new(config);
    // Resets assignments that an interrupted process has left in the map.
    let left: Vec<_> = loaded.assigned().into_iter().map(|(atom, _)| (atom, None)).collect();
    loaded.assign(&left)?;
    loaded.measure(true)?;
    let watched = watch(&loaded, &mut fates, Duration::from_nanos(config.bin.as_nanos()), stop);
    let ended = loaded.measure(false).and_then(|()| loaded.assign(&fates.everybody_back()));
    let hosts = watched?;
    ended?;
    let counters = fates.counters();
    Ok(Summary {
        merges: counters.merges,
        splits: counters.splits,
        tests: counters.tests,
        steps: counters.spent,
        acknowledgements: counters.acknowledgements,
        hosts,
        groups: fates.groups(),
    })
}

/// Reads the counters once in each bin. Returns the maximum number of simultaneous hosts.
fn watch(loaded: &Loaded, fates: &mut HostGroups, bin: Duration, stop: &AtomicBool) -> Result<usize, CocoonError> {
    let (begin, mut most, mut next) = (Instant::now(), 0, bin);
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(next.saturating_sub(begin.elapsed()));
        // The counters are cumulative, so a late reading loses no counts.
        next = begin.elapsed() + bin;
        let now = Time::from_nanos(begin.elapsed().as_nanos() as u64);
        let changes = fates.observe(&loaded.atoms(), now);
        for (atom, _) in changes.iter().filter(|(_, number)| number.is_none()) {
            loaded.forget(atom)?;
        }
        loaded.assign(&changes)?;
        most = most.max(fates.atoms());
    }
    Ok(most)
}
