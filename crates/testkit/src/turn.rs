//! Turns of labs: one that measures has the machine to itself, others share it with a few.

use crate::error::KitError;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// The lock of all running labs: shared, or exclusive.
const LAB: &str = "/run/lock/faircast-lab";

/// The lock of a lab that waits to be alone, so that sharing labs do not delay it forever.
const GATE: &str = "/run/lock/faircast-lab-gate";

/// The greatest number of labs that share the machine.
const SHARERS: usize = 8;

/// The longest that one lab waits for others.
const PATIENCE: Duration = Duration::from_secs(900);

/// Whether other labs of this machine may run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Company {
    /// No: rates, delays and losses are measured, and another lab would take the processor.
    #[default]
    Alone,
    /// Yes: results matter, and not their times.
    Shared,
}

/// The turn of a lab. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    _held: Vec<File>,
}

#[derive(Debug, Clone, Copy)]
enum Hold {
    Shared,
    Exclusive,
}

impl Turn {
    /// Waits for the turn.
    ///
    /// # Errors
    /// When others hold the machine for too long, or its lock files cannot be made.
    pub(crate) fn take(company: Company) -> Result<Turn, KitError> {
        let end = Instant::now() + PATIENCE;
        match company {
            Company::Alone => {
                let _gate = hold(&[GATE.to_owned()], Hold::Exclusive, end)?;
                Ok(Turn { _held: vec![hold(&[LAB.to_owned()], Hold::Exclusive, end)?] })
            }
            Company::Shared => {
                let gate = hold(&[GATE.to_owned()], Hold::Shared, end)?;
                let lab = hold(&[LAB.to_owned()], Hold::Shared, end)?;
                drop(gate);
                let places: Vec<String> = (0..SHARERS).map(|place| format!("{LAB}-{place}")).collect();
                Ok(Turn { _held: vec![lab, hold(&places, Hold::Exclusive, end)?] })
            }
        }
    }
}

/// One of these files, locked.
fn hold(names: &[String], how: Hold, end: Instant) -> Result<File, KitError> {
    let open = |name: &String| File::create(name).map_err(KitError::system(format!("make {name}")));
    let mut files = names.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    loop {
        if let Some(free) = files.iter().position(|file| is_locked(file, how)) {
            return Ok(files.swap_remove(free));
        }
        if Instant::now() > end {
            return Err(KitError::Busy { lock: names[0].clone().into(), waited: PATIENCE });
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Whether the file is locked by us now.
fn is_locked(file: &File, how: Hold) -> bool {
    let operation = match how {
        Hold::Shared => libc::LOCK_SH,
        Hold::Exclusive => libc::LOCK_EX,
    };
    // SAFETY: the descriptor is open.
    unsafe { libc::flock(file.as_raw_fd(), operation | libc::LOCK_NB) == 0 }
}
