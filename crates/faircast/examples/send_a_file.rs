//! Sends a file to all receivers of the group: `cargo run --example send_a_file -- PATH [GROUP] [INTERFACE]`.

use faircast::error::StartError;
use faircast::{Error, Sender};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("say which file")?;
    let mut sender = Sender::paths([path]).expect_receivers(1).join_timeout(Duration::from_secs(30));
    if let Some(group) = arguments.next() {
        sender = sender.group(group.parse()?);
    }
    if let Some(interface) = arguments.next() {
        sender = sender.interface(interface);
    }
    match sender.run(|_| ()) {
        Ok(report) if report.ok => {
            println!("sent {} bytes to {} receivers", report.bytes, report.verified);
            Ok(())
        }
        Ok(report) => Err(format!("incomplete: {:?}", report.incomplete).into()),
        Err(Error::Start(StartError::NoReceiver { group, .. })) => {
            Err(format!("nobody receives {group}").into())
        }
        Err(error) => Err(error.into()),
    }
}
