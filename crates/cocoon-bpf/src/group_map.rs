//! Groups by what is measured: reads what the programs count of each destination host, lets [`grouping`](crate::grouping) judge, and writes
//! who belongs to which group into the map that the programs read.

use crate::grouping::HostGroups;
use crate::{CocoonError, Loaded, Place};
use faircast_core::time::Time;
use faircast_unicast::cocoon::grouping::Config;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Results of measuring.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Summary {
    /// Groups merged.
    pub merges: u64,
    /// Hosts split off.
    pub splits: u64,
    /// Pairs of series that were compared.
    pub tests: u64,
    /// Steps that these took, of which there is one in forty acknowledgements at most.
    pub steps: u64,
    /// Acknowledgements that the programs counted.
    pub acknowledgements: u64,
    /// Most hosts at a time.
    pub hosts: usize,
    /// Groups at the end.
    pub groups: usize,
}

/// Group connections by what is measured until `stop` is set; then they go back to their prefixes' groups.
///
/// # Errors
/// When nothing is loaded under `place`, or a map cannot be read or written.
pub fn run(place: &Place, stop: &AtomicBool) -> Result<Summary, CocoonError> {
    let loaded = Loaded::find(place)?;
    let config = Config::default();
    let mut fates = HostGroups::new(config);
    // Assignments that an interrupted process left.
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

/// Look at the counters once in each bin. Returns the most hosts that were there at a time.
fn watch(loaded: &Loaded, fates: &mut HostGroups, bin: Duration, stop: &AtomicBool) -> Result<usize, CocoonError> {
    let (begin, mut most, mut next) = (Instant::now(), 0, bin);
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(next.saturating_sub(begin.elapsed()));
        // Counts that a busy machine missed are in the next counters.
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
