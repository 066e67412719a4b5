//! Turns of labs: a lab that measures runs alone, and a limited number of other labs share the machine.

use crate::error::KitError;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Lock file that every running lab holds, shared or exclusively.
const LAB: &str = "/run/lock/faircast-lab";

/// Lock file that a lab holds while it waits to run alone. Shared labs that arrive later wait for this lock, so that they do not
/// delay the waiting lab indefinitely.
const GATE: &str = "/run/lock/faircast-lab-gate";

/// Maximum number of labs that share the machine.
const SHARERS: usize = 8;

/// Maximum time that a lab waits for other labs.
const PATIENCE: Duration = Duration::from_secs(900);

/// Whether other labs on this machine may run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Company {
    /// No other lab may run: the test measures rates, delays or losses, which another lab would change.
    #[default]
    Alone,
    /// Other labs may run: the results of the test do not depend on time.
    Shared,
}

/// The turn of a lab. It ends on drop.
#[derive(Debug)]
pub struct Turn {
    _held: Vec<File>,
}

#[derive(Debug, Clone, Copy)]
enum Hold {
    Shared,
    Exclusive,
}

impl Turn {
    /// Waits until the lab may run.
    ///
    /// # Errors
    /// Fails if other labs use the machine for too long, or if the lock files cannot be created.
    pub fn take(company: Company) -> Result<Turn, KitError> {
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

/// Waits for the lock on one of these files and returns the locked file.
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

/// Tries to lock the file and returns whether it succeeded.
fn is_locked(file: &File, how: Hold) -> bool {
    let operation = match how {
        Hold::Shared => libc::LOCK_SH,
        Hold::Exclusive => libc::LOCK_EX,
    };
    // SAFETY: the descriptor is open.
    unsafe { libc::flock(file.as_raw_fd(), operation | libc::LOCK_NB) == 0 }
}
