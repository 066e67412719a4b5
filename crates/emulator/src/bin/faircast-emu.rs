//! Emulates the network of a plan until standard input ends, then prints a report.
//!
//! ```text
//! faircast-emu [--max-memory SIZE] PLAN
//! ```
//!
//! The plan is a file in the format of `faircast_emulator::plan`. The namespaces that the plan names must exist. The program
//! prints `ready` on standard output when it begins to carry packets. `--max-memory` (default 8G) limits its memory: the program
//! refuses a plan whose network needs more, and drops packets for which no memory is left. Needs root.

use faircast_emulator::{EmulationPlan, Emulator, memory};
use std::error::Error;
use std::io::{Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn run(path: &str, memory: u64) -> Result<(), Box<dyn Error>> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {path}: {e}"))?;
    let mut plan = EmulationPlan::parse(&text)?;
    plan.memory = memory;
    let mut emulator = Emulator::new(&plan)?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    std::thread::spawn(move || {
        // The input is ignored. The emulation stops at the end of the input or at an error.
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
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (path, memory) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [path] if !path.starts_with("--") => (path, Ok(memory::DEFAULT)),
        ["--max-memory", size, path] | [path, "--max-memory", size] => (path, memory::bytes(size)),
        _ => {
            eprintln!("faircast-emu: needs one argument, the file of a plan, and takes --max-memory SIZE");
            return ExitCode::from(2);
        }
    };
    let memory = match memory {
        Ok(memory) => memory,
        Err(wrong) => {
            eprintln!("faircast-emu: --max-memory: {wrong}");
            return ExitCode::from(2);
        }
    };
    match run(path, memory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("faircast-emu: {error}");
            ExitCode::from(3)
        }
    }
}
