//! Thousands of receivers in one process, each with a separate socket, as futures in one thread: `cargo run --example
//! many_receivers -- 1000 239.255.70.13:47013 lo`. Each receives the same live stream, from `faircast stream` or
//! [`Sender::live`](faircast::Sender::live), and verifies it. At the end, one line of JSON states the outcomes and the received
//! content. Each receiver needs a few file descriptors: see `ulimit -n`. `bench/crowd/run` starts several of these processes.

mod common;

use common::{Sum, Summing};
use faircast::{KeyRing, Receiver};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let count: usize = args.next().as_deref().unwrap_or("1000").parse()?;
    let group: SocketAddr = args.next().as_deref().unwrap_or("239.255.70.13:47013").parse()?;
    let interface = args.next().unwrap_or_else(|| "lo".to_owned());
    let key: Option<KeyRing> =
        args.next().map(std::fs::read_to_string).transpose()?.map(|text| text.parse()).transpose()?;

    let host = std::process::id();
    let mut receivers = Vec::new();
    for number in 0..count {
        let sum = Arc::new(Mutex::new(Sum::default()));
        let mut receiver = Receiver::into_writer(Summing(sum.clone())).group(group).interface(&interface);
        receiver = receiver.host(format!("{host}-{number}")).join_timeout(Duration::from_secs(120));
        if let Some(key) = &key {
            receiver = receiver.key(key.clone());
        }
        let task = tokio::spawn(async move { receiver.run_async(|_| ()).await.map(drop) });
        receivers.push((sum, task));
    }

    let (mut complete, mut errors, mut sums) = (0, BTreeMap::new(), BTreeMap::new());
    for (sum, task) in receivers {
        match task.await? {
            Ok(()) => complete += 1,
            Err(error) => *errors.entry(error.to_string()).or_insert(0) += 1,
        }
        let sum = *sum.lock().map_err(|_| "a receiver panicked")?;
        *sums.entry(sum).or_insert(0) += 1;
    }
    let sums: Vec<String> = sums
        .iter()
        .map(|(Sum { bytes, fnv }, count)| {
            format!(r#"{{"bytes":{bytes},"fnv":"{fnv:016x}","receivers":{count}}}"#)
        })
        .collect();
    for (error, count) in &errors {
        eprintln!("{count} receivers: {error}");
    }
    println!(r#"{{"receivers":{count},"complete":{complete},"got":[{}]}}"#, sums.join(","));
    Ok(())
}
