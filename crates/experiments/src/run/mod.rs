//! Runs a scenario: every point of its sweep with every seed, on all processors.
//!
//! The assignment of runs to threads does not change the results: each run is a function of its point and seed, and the results
//! are sorted by point and seed. If there are fewer runs than threads, several threads share a run ([`Islands`]).

pub mod forecast;
pub mod precision;
pub mod stored_results;
pub mod traced;
pub mod watched;

use crate::results::measure::{self, Measured};
use crate::results::rows_of_runs;
use crate::results::transform::{Differences, RoundTrip};
use crate::results::{Identity, MetricRow, Results, Shard, Totals, capture};
use crate::scenario::Scenario;
use faircast_core::time::Time;
use faircast_sim::{Helper, Islands, Mode, Options, Outcome, SimError, Watch};
use faircast_topology::memory::{self, TooLarge};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use stored_results::StoredResults;

/// Options of the runs.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Number of threads; `None` means the number of processors.
    pub threads: Option<NonZeroUsize>,
    /// The shard of the runs; `None` for all runs.
    pub shard: Option<Shard>,
    /// Method by which the simulator executes events. The method does not change the results.
    pub mode: Mode,
    /// Whether the packets of sessions are encoded and decoded in the wire format.
    pub codec: Codec,
    /// Store of earlier runs, which are reused; new runs are added.
    pub kept: Option<StoredResults>,
    /// Memory limit for all runs together in bytes, compared with an estimate; `None` for
    /// [`DEFAULT`](faircast_topology::memory::DEFAULT).
    pub memory: Option<u64>,
}

/// Whether the packets of sessions are encoded and decoded in the wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Codec {
    /// Packets are not encoded.
    #[default]
    Skip,
    /// Every packet is encoded and decoded, and changes are counted.
    RoundTrip,
}

/// Progress of the runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Status {
    /// Number of completed runs.
    pub done: usize,
    /// Number of all runs.
    pub runs: usize,
    /// Seconds simulated so far, in all runs together.
    pub simulated: f64,
    /// Simulated duration of all runs together, in seconds.
    pub to_simulate: f64,
    /// Simulated duration of the runs whose results were already stored, in seconds. These runs take no time.
    pub stored: f64,
    /// Time since the start.
    pub elapsed: Duration,
}

impl Status {
    /// Returns an estimate of the remaining duration; `None` until it can be estimated.
    pub fn remaining(&self) -> Option<Duration> {
        let share = (self.simulated - self.stored) / (self.to_simulate - self.stored);
        let known = share > 0.0 && self.elapsed > Duration::from_millis(200);
        known.then(|| self.elapsed.mul_f64(((1.0 - share) / share).clamp(0.0, 1e6)))
    }
}

/// Receives the progress of runs: after each step of a run from the run's thread, and several times per second from the thread that
/// called [`run`]. Calls do not overlap, and the progress never falls.
pub trait Progress: Sync {
    /// Receives the present status.
    fn update(&self, status: &Status);
    /// Executes the runs of one thread: calls `runs` once. An implementation may hold a resource of the thread meanwhile.
    fn in_thread(&self, runs: &mut dyn FnMut()) {
        runs();
    }
    /// Returns whether several threads may share a run. Threads that wait for a resource of another one must not.
    fn shares_runs(&self) -> bool {
        true
    }
    /// Returns whether the runs should stop as soon as possible.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// A receiver of progress that ignores it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn update(&self, _status: &Status) {}
}

/// Reason why a run failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RunError {
    /// The simulator cannot run the network.
    #[error("{place}seed {seed}: {source}")]
    Network {
        /// The point of the sweep; empty without a sweep.
        place: String,
        /// The seed.
        seed: u64,
        /// The simulator's error.
        source: SimError,
    },
    /// The shard contains no run.
    #[error("shard {0} contains no run, because there are only {1} runs; use at most {1} shards")]
    EmptyShard(Shard, usize),
    /// The results of a run cannot be stored.
    #[error("cannot store the results: {0}; free some space or name another directory")]
    Keep(String),
    /// The runs together would exceed the memory limit.
    #[error("{refused}; use fewer threads (--threads), simulate fewer receivers, or raise the limit: --max-memory {}", .refused.enough())]
    Memory {
        /// The excess over the limit, and its causes.
        refused: TooLarge,
    },
    /// The scenario has no metric of this name.
    #[error("no metric `{name}` at every point; there are {known}")]
    NoMetric {
        /// The given name.
        name: String,
        /// The metrics of the scenario.
        known: String,
    },
    /// The caller requested the runs to stop.
    #[error("stopped before all runs were complete")]
    Cancelled,
}

/// Results of one job.
struct Done {
    measured: Measured,
    totals: Totals,
    capture: Option<capture::Capture>,
    codec: Option<Differences>,
}

struct Work<'a> {
    scenario: &'a Scenario,
    options: &'a RunOptions,
    progress: &'a dyn Progress,
    jobs: &'a [(usize, u64)],
    islands: Islands,
    next: AtomicUsize,
    stop: AtomicBool,
    state: Mutex<State>,
    /// Notified when a thread has ended.
    ended: Condvar,
    /// Held during calls of `progress`.
    telling: Mutex<()>,
    began: Instant,
    to_simulate: f64,
}

struct State {
    results: Vec<Option<Result<Done, RunError>>>,
    /// Simulated seconds of each job so far.
    simulated: Vec<f64>,
    /// Simulated seconds of the jobs that were already stored.
    stored: f64,
    done: usize,
    /// Number of threads that run jobs.
    threads: usize,
}

/// Number of progress reports in a run.
const STEPS: u64 = 50;

/// Interval of progress reports of the thread that called [`run`].
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// Runs all points with all seeds, or only the shard that the options select.
///
/// # Errors
/// If the simulator refuses a network, the shard contains no run, the memory limit would be exceeded, or `progress` requested the
/// runs to stop.
pub fn run(scenario: &Scenario, options: &RunOptions, progress: &dyn Progress) -> Result<Results, RunError> {
    let done = complete(scenario, options, progress, BTreeMap::new())?;
    Ok(assemble(scenario, options, done))
}

/// Completed runs by point and seed.
type Completed = BTreeMap<(usize, u64), Done>;

/// Makes all runs that are not in `known`. Returns the known and the new runs.
fn complete(
    scenario: &Scenario,
    options: &RunOptions,
    progress: &dyn Progress,
    known: Completed,
) -> Result<Completed, RunError> {
    let Admitted { mut jobs, threads, islands, .. } = admit(scenario, options)?;
    jobs.retain(|job| !known.contains_key(job));
    let results = std::iter::repeat_with(|| None).take(jobs.len()).collect();
    #[expect(clippy::disallowed_methods, reason = "tells how long it will take; no result knows it")]
    let began = Instant::now();
    let work = Work {
        scenario,
        options,
        progress,
        jobs: &jobs,
        islands: if progress.shares_runs() { islands } else { Islands::One },
        next: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        state: Mutex::new(State { results, simulated: vec![0.0; jobs.len()], stored: 0.0, done: 0, threads }),
        ended: Condvar::new(),
        telling: Mutex::new(()),
        began,
        to_simulate: jobs.iter().map(|(point, _)| scenario.duration(*point)).sum(),
    };
    #[expect(clippy::disallowed_methods, reason = "runs share nothing, and their results are put in order")]
    std::thread::scope(|scope| {
        (0..threads).for_each(|_| {
            scope.spawn(|| {
                let _ended = Ended(&work);
                let share = |helper: Helper| drop(scope.spawn(|| helper.help()));
                progress.in_thread(&mut || work.take_jobs(&share));
            });
        });
        work.report();
    });
    let state = work.state.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut results: Vec<_> =
        state.results.into_iter().map(|result| result.unwrap_or(Err(RunError::Cancelled))).collect();
    // An error cancels the remaining runs, so it is reported before their cancellation. A refused network comes first.
    let network = |result: &Result<Done, RunError>| matches!(result, Err(RunError::Network { .. }));
    let other = |result: &Result<Done, RunError>| !matches!(result, Ok(_) | Err(RunError::Cancelled));
    if let Some(place) = results.iter().position(network).or_else(|| results.iter().position(other)) {
        results.swap(0, place);
    }
    let mut all = known;
    for (job, result) in jobs.iter().zip(results) {
        all.insert(*job, result?);
    }
    Ok(all)
}

/// Runs that the memory limit permits.
pub struct Admitted {
    /// Points and seeds, in the order of results.
    pub jobs: Vec<(usize, u64)>,
    /// Number of simultaneous runs.
    pub threads: usize,
    /// Division of each run, if there are more threads than runs.
    pub islands: Islands,
    /// Maximum memory for simultaneous runs, in bytes.
    pub working: u64,
    /// Maximum memory for all results, in bytes.
    pub results: u64,
}

/// Checks whether the runs that the options select are permitted, before any network is built.
///
/// # Errors
/// If the shard contains no run, or the runs would exceed the memory limit.
pub fn admit(scenario: &Scenario, options: &RunOptions) -> Result<Admitted, RunError> {
    let jobs = jobs(scenario, options.shard)?;
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let all = options.threads.map_or(processors, NonZeroUsize::get);
    let threads = all.clamp(1, jobs.len());
    let estimate = scenario.estimate_of_runs(&jobs, threads);
    let limit = options.memory.unwrap_or(memory::DEFAULT);
    estimate.within(limit).map_err(|refused| RunError::Memory { refused })?;
    let results = scenario.estimate_of_results(&jobs);
    let working = estimate.total().saturating_sub(results);
    // An island has as much memory as a whole run.
    let parts = all / threads;
    let divided = working.saturating_mul(parts as u64);
    if parts < 2 || options.codec == Codec::RoundTrip || divided.saturating_add(results) > limit {
        return Ok(Admitted { jobs, threads, islands: Islands::One, working, results });
    }
    Ok(Admitted { jobs, threads, islands: Islands::IfFaster(parts), working: divided, results })
}

/// Returns all runs of a scenario, or the runs of one shard: points and seeds, in the order of results.
///
/// # Errors
/// If the shard contains no run.
fn jobs(scenario: &Scenario, shard: Option<Shard>) -> Result<Vec<(usize, u64)>, RunError> {
    let points = 0..scenario.points().len();
    let all: Vec<(usize, u64)> =
        points.flat_map(|point| scenario.seeds().iter().map(move |seed| (point, *seed))).collect();
    let Some(shard) = shard else { return Ok(all) };
    let mine = all.iter().copied().enumerate().filter(|(number, _)| number % shard.of == shard.index - 1);
    let mine: Vec<_> = mine.map(|(_, job)| job).collect();
    if mine.is_empty() { Err(RunError::EmptyShard(shard, all.len())) } else { Ok(mine) }
}

/// Records the end of a thread when it is dropped, even by a panic.
struct Ended<'a, 'b>(&'a Work<'b>);

impl Drop for Ended<'_, '_> {
    fn drop(&mut self) {
        self.0.lock().threads -= 1;
        self.0.ended.notify_all();
    }
}

impl Work<'_> {
    /// Reports the progress until all threads have ended, and once afterwards. A caller that must look for signals can do so in these
    /// reports.
    fn report(&self) {
        loop {
            let is_running = |state: &mut State| state.threads > 0;
            let waited = self.ended.wait_timeout_while(self.lock(), REPORT_EVERY, is_running);
            let (state, timeout) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
            drop(state);
            let telling = self.telling.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            self.pass_on(&telling);
            if !timeout.timed_out() {
                return;
            }
        }
    }

    fn take_jobs(&self, share: &dyn Fn(Helper)) {
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(&(point, seed)) = self.jobs.get(number) else { return };
            let result = self.job(number, (point, seed), share);
            if result.is_err() {
                self.stop.store(true, Ordering::Relaxed);
            }
            let mut state = self.lock();
            state.results[number] = Some(result);
            state.done += 1;
            drop(state);
            self.tell(number, self.scenario.duration(point));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn tell(&self, number: usize, simulated: f64) {
        self.lock().simulated[number] = simulated;
        // A call of another thread is in progress: the status is passed on later. Waiting here could block that thread, which may
        // need a resource of this one.
        if let Ok(telling) = self.telling.try_lock() {
            self.pass_on(&telling);
        }
    }

    /// Passes the present status to the receiver of progress.
    fn pass_on(&self, _telling: &MutexGuard<'_, ()>) {
        let state = self.lock();
        let status = Status {
            done: state.done,
            runs: self.jobs.len(),
            simulated: state.simulated.iter().sum(),
            to_simulate: self.to_simulate,
            stored: state.stored,
            elapsed: self.began.elapsed(),
        };
        drop(state);
        self.progress.update(&status);
        if self.progress.is_cancelled() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn job(
        &self,
        number: usize,
        (point, seed): (usize, u64),
        share: &dyn Fn(Helper),
    ) -> Result<Done, RunError> {
        let plan = self.scenario.plan(point);
        // Stored results do not contain the counts of the codec, so a run with the codec does not use stored results.
        let kept = self.options.kept.as_ref().filter(|_| self.options.codec == Codec::Skip);
        let fingerprint = self.scenario.fingerprint(point);
        if let Some(done) = kept.and_then(|kept| kept.get(fingerprint, (point, seed))) {
            self.lock().stored += self.scenario.duration(point);
            return Ok(done);
        }
        let layout = self.scenario.layout(point, seed);
        let network = layout.network(plan, seed);
        let options = Options {
            until: plan.duration,
            mode: self.options.mode,
            bin: plan.probe.bin,
            sample: measure::sample(plan, &layout),
            watch: Watch::First(plan.watched()),
            islands: self.islands,
            events: plan.probe.events,
        };
        let refused = |source| {
            let at = &self.scenario.points()[point];
            let place = if at.values.is_empty() { String::new() } else { format!("{at}, ") };
            RunError::Network { place, seed, source }
        };
        let (outcome, codec) = match self.options.codec {
            Codec::RoundTrip => {
                let (passage, counts) = RoundTrip::new();
                let outcome = network.run_through(&options, Box::new(passage)).map_err(refused)?;
                (outcome, Some(counts.get()))
            }
            Codec::Skip => {
                let mut engine = network.engine(&options).map_err(refused)?;
                engine.helpers().into_iter().for_each(share);
                for step in 1..STEPS {
                    if self.stop.load(Ordering::Relaxed) {
                        return Err(RunError::Cancelled);
                    }
                    let moment = Time::from_nanos(plan.duration.as_nanos() / STEPS * step);
                    engine.run_until(moment);
                    self.tell(number, moment.as_secs_f64());
                }
                engine.run();
                if self.progress.is_cancelled() {
                    return Err(RunError::Cancelled); // the cause may have changed the run
                }
                (engine.finish(&network).map_err(refused)?, None)
            }
        };
        drop(network);
        let capture =
            (!layout.taps.is_empty()).then(|| capture::capture(plan, &layout, &outcome, (point, seed)));
        let measured = measure::measure(plan, &layout, &outcome);
        let done = Done { measured, totals: totals(&outcome), capture, codec };
        if let Some(kept) = kept {
            kept.put(fingerprint, seed, &done).map_err(|error| RunError::Keep(error.to_string()))?;
        }
        Ok(done)
    }
}

fn totals(outcome: &Outcome) -> Totals {
    let Outcome { traversals, arrivals, events, digest, .. } = *outcome;
    Totals { traversals, arrivals, events, digest }
}

/// Puts the results together, in the order of points and of the scenario's seeds.
fn assemble(scenario: &Scenario, options: &RunOptions, mut all: Completed) -> Results {
    let (axes, points) = (scenario.axes().to_vec(), scenario.points().to_vec());
    let order = points.iter().flat_map(|point| scenario.seeds().iter().map(|seed| (point.index, *seed)));
    let (jobs, done): (Vec<_>, Vec<_>) = order.filter_map(|job| Some((job, all.remove(&job)?))).unzip();
    let mut totals = Totals::default();
    let mut codec: Option<Differences> = None;
    let (mut metrics, mut captures, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    for (&(point, seed), run) in jobs.iter().zip(done) {
        totals.traversals += run.totals.traversals;
        totals.arrivals += run.totals.arrivals;
        totals.events += run.totals.events;
        totals.digest = totals.digest.rotate_left(5) ^ run.totals.digest;
        if let Some(found) = run.codec {
            codec.get_or_insert_default().add(&found);
        }
        let row =
            |(name, value): &(String, f64)| MetricRow { point, seed, name: name.clone(), value: *value };
        metrics.extend(run.measured.metrics.iter().map(row));
        captures.extend(run.capture);
        runs.push(((point, seed), run.measured.tables));
    }
    let tables = rows_of_runs(&axes, &points, &runs);
    let identity = Identity {
        scenario: scenario.text().to_owned(),
        seeds: scenario.seeds().to_vec(),
        shard: options.shard,
    };
    Results { axes, points, jobs, tables, metrics, captures, totals, codec, identity }
}
