//! A simulated world for the transport: whole sessions, with their sources, relays and receivers, under faults.
//!
//! A seed determines the hosts, the content and its congestion control, and the faults with their times. After some time all
//! faults end, and every process has to finish. The code under test is the transport's sessions, driven through
//! [`Endpoint`](faircast_transport::Endpoint) in virtual time. The disks of the hosts are real files with fault injection.
//!
//! | module | contents |
//! |---|---|
//! | `plan` | the properties that a seed determines |
//! | `world` | hosts, links, scheduled events, and the checks |
//! | `process` | start and end of processes |
//! | `trouble` | faults with a start time |
//! | `host`, `link`, `disk` | a process with its clock and socket; a path; a disk |
//! | `kind` | kinds of worlds: all kinds of relays, live streams, unicast |
//! | `layout` | hosts and sites of a plan, and parents |
//! | `live` | live streams, and their output |
//! | `content` | the sent content, and the permitted content of an output directory |

mod clock;
mod content;
mod disk;
mod host;
mod kind;
mod layout;
mod live;
mod log;
mod packet_damage;
mod plan;
mod process;
mod relay;
mod trouble;
mod world;

use faircast_core::time::Time;
pub use kind::Kind;
pub use plan::{Plan, Trouble};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
pub use world::Finding;
use world::World;

/// A deliberate fault, which the checks of the world have to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// Disks and readers get wrong bytes.
    Spoilt,
    /// Requests of receivers are lost permanently.
    Deaf,
}

/// Options of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The parent directory of the worlds' directories. A file system in memory is fastest.
    pub directory: PathBuf,
    /// The deliberate fault; `None`: no deliberate fault.
    pub mistake: Option<Mutation>,
    /// Whether events are printed as they happen.
    pub verbose: bool,
    /// The kind of the world; `None`: the seed selects it.
    pub kind: Option<Kind>,
}

impl Default for Options {
    fn default() -> Options {
        let memory = PathBuf::from("/dev/shm");
        let directory = if memory.is_dir() { memory } else { std::env::temp_dir() };
        Options { directory, mistake: None, verbose: false, kind: None }
    }
}

/// The result of a seed.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The seed of the world.
    pub seed: u64,
    /// A description of the plan.
    pub plan: String,
    /// A digest of all datagrams with their times, and of all operations on disks.
    pub trace: String,
    /// Duration of the world, in virtual time.
    pub lasted: Time,
    /// Duration of the world after the end of all faults, in seconds.
    pub calm: f64,
    /// Number of sent datagrams.
    pub datagrams: u64,
    /// The violated promise; `None`: the checks found no fault.
    pub finding: Option<Finding>,
    /// The last log lines.
    pub log: Vec<String>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}", self.seed, self.plan)?;
        self.log.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        match &self.finding {
            None => write!(f, "seed {}: {} datagrams, nothing found", self.seed, self.datagrams),
            Some(found) => write!(f, "seed {}: not so: {}\n  {}", self.seed, found.promise, found.seen),
        }
    }
}

/// Runs the world of `seed`.
///
/// # Errors
/// When the files of the world cannot be written.
pub fn run(seed: u64, options: &Options) -> std::io::Result<Outcome> {
    let mut world = World::new(seed, options)?;
    let plan = world.plan.to_string();
    let ended = catch_unwind(AssertUnwindSafe(|| world.run()));
    let finding = match ended {
        Ok(ended) => ended.err(),
        Err(panic) => {
            let words = panic.downcast_ref::<String>().cloned();
            let words = words.or_else(|| panic.downcast_ref::<&str>().map(|words| (*words).to_owned()));
            Some(Finding { promise: "nothing panics", seen: words.unwrap_or_default() })
        }
    };
    let mut trace = blake3::Hasher::new();
    trace.update(world.log.fingerprint().as_bytes());
    trace.update(world.disks.fingerprint().as_bytes());
    let here = world.directory().display().to_string();
    let log = world.log.lines.iter().map(|line| line.replace(&here, "")).collect();
    let outcome = Outcome {
        seed,
        plan,
        trace: trace.finalize().to_hex().to_string(),
        lasted: world.now,
        calm: world.now.since(world.plan.calm).as_secs_f64(),
        datagrams: world.datagrams,
        finding,
        log,
    };
    drop(world);
    Ok(outcome)
}
