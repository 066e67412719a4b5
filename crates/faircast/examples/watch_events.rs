//! Receives into a directory and prints the events: `cargo run --example watch_events -- DIRECTORY [GROUP] [INTERFACE]`.

use faircast::{Event, Receiver};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("say which directory")?;
    let mut receiver = Receiver::into_directory(directory).join_timeout(Duration::from_secs(30));
    if let Some(group) = arguments.next() {
        receiver = receiver.group(group.parse()?);
    }
    if let Some(interface) = arguments.next() {
        receiver = receiver.interface(interface);
    }
    let session = receiver.start()?;
    let events = session.events();
    for event in events.clone() {
        match event {
            Event::Opened { interface, .. } => println!("listening on {interface}"),
            Event::Joined { host, .. } => println!("found {host}"),
            Event::Content { files, bytes, .. } => println!("{files} files, {} bytes", bytes.unwrap_or(0)),
            Event::Warning { message, .. } => println!("careful: {message}"),
            Event::Progress(now) => println!("{} bytes at {:.1} Mbit/s", now.bytes, now.rate.bps() / 1e6),
            other => println!("{other:?}"),
        }
    }
    // A session does not wait for the reader of its events.
    println!("{} events were dropped", events.dropped());
    let report = session.join()?;
    println!("verified {} bytes", report.bytes);
    Ok(())
}
