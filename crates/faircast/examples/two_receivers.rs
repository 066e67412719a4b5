//! Sends a buffer to two receivers, all in one process, over the loopback interface: `cargo run --example two_receivers`.

use faircast::{Event, Memory, Receiver, Sender};
use std::net::SocketAddr;
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let group: SocketAddr = std::env::args().nth(1).as_deref().unwrap_or("239.255.70.12:47012").parse()?;
    let content: Vec<u8> =
        (0..2_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();

    let memories = [Memory::new(4 << 20), Memory::new(4 << 20)];
    let mut receivers = Vec::new();
    for (name, memory) in ["left", "right"].into_iter().zip(&memories) {
        let receiver = Receiver::into_memory(memory.clone()).group(group).interface("lo").host(name);
        receivers.push(receiver.join_timeout(Duration::from_secs(30)).start()?);
    }

    let sender = Sender::bytes("numbers", content.clone()).group(group).interface("lo").ttl(0);
    let sender = sender.expect_receivers(2).join_timeout(Duration::from_secs(30)).start()?;
    for event in sender.events() {
        match event {
            Event::Joined { host, address, .. } => println!("{host} has joined from {address}"),
            Event::Left { host, verified, .. } => println!("{host} has everything: {verified}"),
            event => println!("{event:?}"),
        }
    }
    let report = sender.join()?;
    println!("sent to {} receivers at {:.1} Mbit/s", report.verified, report.goodput.bps() / 1e6);

    for (receiver, memory) in receivers.into_iter().zip(&memories) {
        receiver.join()?;
        for file in memory.take() {
            println!("{}: {} bytes, the same: {}", file.name, file.bytes.len(), *file.bytes == *content);
        }
    }
    Ok(())
}
