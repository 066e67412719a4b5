//! Receives files without touching the disk: `cargo run --example receive_into_memory -- [GROUP] [INTERFACE]`.

use faircast::{Memory, Receiver};
use std::time::Duration;

/// Maximum size of the content, in bytes. Larger content is an error, regardless of the size that the source announces.
const MAX: u64 = 64 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let memory = Memory::new(MAX);
    let mut receiver = Receiver::into_memory(memory.clone()).join_timeout(Duration::from_secs(30));
    if let Some(group) = arguments.next() {
        receiver = receiver.group(group.parse()?);
    }
    if let Some(interface) = arguments.next() {
        receiver = receiver.interface(interface);
    }
    let report = receiver.run(|_| ())?;
    println!("{} files at {:.1} Mbit/s", report.files, report.goodput.bps() / 1e6);
    for file in memory.take() {
        println!("{}: {} bytes", file.name, file.bytes.len());
    }
    Ok(())
}
