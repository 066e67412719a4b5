//! Emulate the network of a plan until standard input ends, then tell what it was like.
//!
//! ```text
//! faircast-emu PLAN
//! ```
//!
//! The plan is a file as `faircast_emulator::plan` describes it; the namespaces that it names must exist. It says `ready`
//! on standard output once packets are carried. Needs root.

use faircast_emulator::{EmulationPlan, Emulator};
use std::error::Error;
use std::io::{Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn run(path: &str) -> Result<(), Box<dyn Error>> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {path}: {e}"))?;
    let mut emulator = Emulator::new(&EmulationPlan::parse(&text)?)?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    std::thread::spawn(move || {
        // Whatever is said counts as nothing; the end is what matters, and an error is one too.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        stopped.store(true, Ordering::Relaxed);
    });
    let mut out = std::io::stdout();
    writeln!(out, "ready")?;
    out.flush()?;
    emulator.run(&stop)?;
    writeln!(out, "{}", emulator.report())?;
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [path] = arguments.as_slice() else {
        eprintln!("faircast-emu: needs one argument, the file of a plan");
        return ExitCode::from(2);
    };
    match run(path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("faircast-emu: {error}");
            ExitCode::from(3)
        }
    }
}
