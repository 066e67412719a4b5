//! `recv --serve`: a receiver that stays. It takes part in one session after another, in none twice, and outlives whatever
//! becomes of each: a source that is stopped, a full disk, a network that is gone.

use crate::failure::Failure;
use crate::session::{self, Output, Resolved};
use crate::tell::{self, Role};
use crate::wording;
use faircast::{Class, Error, Event, ReceiveConfig};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// After what failed at once it is tried again after this, and later each time,
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A session that failed sooner than this failed at once.
const AT_ONCE: Duration = Duration::from_secs(2);

/// It is looked this often whether the user wants an end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Receive one session after another until `stop` is set, which is a good end.
///
/// # Errors
/// When what was typed makes no sense, or nobody reads the JSON any more.
pub fn run<'a>(
    resolved: Resolved<ReceiveConfig>,
    output: Output<'a>,
    stop: &'a AtomicBool,
) -> Result<(), Failure> {
    let Resolved { config, telling, warnings, report: _ } = resolved;
    let mut teller = session::teller(Role::Receiver, telling, output, stop);
    warnings.into_iter().for_each(|text| teller.event(&Event::warning(text)));
    let mut pause = FIRST_PAUSE;
    loop {
        let began = Instant::now();
        let outcome = faircast::Receiver::from(config.clone())
            .run_until(stop, &mut |event| teller.event(&wording::event(event)));
        if stop.load(Ordering::Relaxed) && matches!(outcome, Err(Error::Stopped)) {
            return Ok(());
        }
        match session::conclude(&mut teller, outcome, session::received) {
            Ok(()) => {
                pause = FIRST_PAUSE;
                continue;
            }
            Err(failure @ Failure::NobodyReads(_)) => return Err(failure),
            Err(failure) if failure.class() == Class::Usage => return Err(failure),
            Err(failure) => {
                let (what, hint) = failure.what_and_hint();
                let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
                teller.say(&tell::warning(&format!("{what}{hint}; waiting for the next session")));
            }
        }
        // A network that is gone, say, would fail again and again.
        pause = if began.elapsed() < AT_ONCE { (pause * 2).min(LONGEST_PAUSE) } else { FIRST_PAUSE };
        let until = Instant::now() + pause;
        while Instant::now() < until && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK_EVERY);
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
}
