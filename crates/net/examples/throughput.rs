//! Measures the throughput of the sockets, on one host or between two hosts.
//!
//! ```text
//! throughput both IFACE [SECONDS [SEGMENT [COUNT]]]   send and receive in one process, two threads
//! throughput send IFACE ...                           only send
//! throughput recv IFACE ...                           only receive
//! throughput wake                                     how late a wait ends
//! ```
//! Each call sends `COUNT` datagrams of `SEGMENT` bytes. If `COUNT` is negative, the datagrams are segmented in user space
//! instead of in the kernel.

use faircast_net::*;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(Clone)]
struct Plan {
    choice: Choice,
    group: SocketAddr,
    time: Duration,
    segment: usize,
    count: usize,
    in_kernel: Where,
}

#[derive(Clone, Copy, PartialEq)]
enum Where {
    Kernel,
    Here,
}

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |n: usize| args.get(n).map(String::as_str);
    let mode = arg(0).ok_or("say both, send, recv or wake")?;
    if mode == "wake" {
        return wake();
    }
    let group: SocketAddr = "239.255.77.99:47999".parse()?;
    let count: i64 = arg(4).unwrap_or("44").parse()?;
    let plan = Plan {
        choice: choose(group.ip(), arg(1))?,
        group,
        time: Duration::from_secs_f64(arg(2).unwrap_or("3").parse()?),
        segment: arg(3).unwrap_or("1472").parse()?,
        count: count.unsigned_abs() as usize,
        in_kernel: if count < 0 { Where::Here } else { Where::Kernel },
    };
    match mode {
        "send" => send(&plan),
        "recv" => receive(&plan),
        "both" => {
            let other = plan.clone();
            let receiver = std::thread::spawn(move || receive(&other));
            std::thread::sleep(Duration::from_millis(100));
            send(&plan)?;
            receiver.join().expect("the receiver returns its failures")
        }
        _ => Err("say both, send, recv or wake".into()),
    }
}

fn send(plan: &Plan) -> Result<(), Failure> {
    let socket = SourceSocket::open(plan.group, &plan.choice, &SourceOptions::default())?;
    if plan.in_kernel == Where::Here {
        socket.stop_segments_in_kernel();
    }
    let bytes = vec![7; plan.segment * plan.count];
    let (mut waiter, mut sent, mut blocked) = (Waiter::new(), 0u64, 0u64);
    let (start, cpu) = (Instant::now(), cpu_seconds()?);
    while start.elapsed() < plan.time {
        match socket.send_batch(&bytes, plan.segment)? {
            SendOutcome::Sent => sent += bytes.len() as u64,
            SendOutcome::Blocked { sent: some } => {
                sent += (some * plan.segment) as u64;
                blocked += 1;
                let soon = Instant::now() + Duration::from_millis(1);
                waiter.wait(&[Watch::new(&socket, Want::Writable)], Some(soon))?;
            }
        }
    }
    let (time, cpu) = (start.elapsed().as_secs_f64(), cpu_seconds()? - cpu);
    let kernel = if socket.segments_in_kernel() { "in the kernel" } else { "here" };
    println!("sent     {} (cut {kernel}, blocked {blocked} times)", speed(sent, time, cpu));
    Ok(())
}

fn receive(plan: &Plan) -> Result<(), Failure> {
    let options = GroupOptions { receive_buffer: 8 << 20 };
    let socket = GroupSocket::open(plan.group, Membership::AnySource, &plan.choice, &options)?;
    let (mut batch, mut waiter) = (Batch::new(16), Waiter::new());
    waiter.wait(&[Watch::new(&socket, Want::Readable)], Some(Instant::now() + Duration::from_secs(10)))?;
    let (start, cpu) = (Instant::now(), cpu_seconds()?);
    let (mut bytes, mut datagrams, mut slots, mut calls) = (0u64, 0u64, 0u64, 0u64);
    let mut last = start;
    while last.elapsed() < Duration::from_millis(300) {
        if socket.receive(&mut batch)? == 0 {
            let soon = Instant::now() + Duration::from_millis(100);
            waiter.wait(&[Watch::new(&socket, Want::Readable)], Some(soon))?;
            continue;
        }
        calls += 1;
        for (part, meta) in batch.segments() {
            bytes += part.len() as u64;
            datagrams += 1;
            slots += u64::from(meta.segment == 0);
        }
        last = Instant::now();
    }
    let (time, cpu) = ((last - start).as_secs_f64(), cpu_seconds()? - cpu);
    println!(
        "received {} ({datagrams} datagrams, {:.1} coalesced, {:.1} a call, {} drops)",
        speed(bytes, time, cpu),
        datagrams as f64 / slots.max(1) as f64,
        datagrams as f64 / calls.max(1) as f64,
        socket.backlog()?.drops
    );
    Ok(())
}

/// Measures the difference between actual and requested duration, for waits of 100 microseconds and of 1 millisecond.
fn wake() -> Result<(), Failure> {
    let mut waiter = Waiter::new();
    for span in [20, 100, 1000].map(Duration::from_micros) {
        let mut late = Vec::new();
        for _ in 0..3000 {
            let until = Instant::now() + span;
            waiter.wait(&[], Some(until))?;
            late.push(until.elapsed().as_nanos() as f64 / 1e3);
        }
        late.sort_by(f64::total_cmp);
        let at = |share: f64| late[(late.len() as f64 * share) as usize];
        println!(
            "{span:?}: late by {:.1} us (median), {:.1} (99 %), {:.1} (most)",
            at(0.5),
            at(0.99),
            at(0.9999)
        );
    }
    Ok(())
}

fn speed(bytes: u64, time: f64, cpu: f64) -> String {
    let (rate, cost) = (bytes as f64 / time / 1e9, cpu * 1e9 / bytes.max(1) as f64);
    format!("{rate:.2} GB/s, {cost:.3} ns of processor a byte ({:.0} % of one)", 100.0 * cpu / time)
}

/// Returns the processor time that this thread has used, in seconds, including time in the kernel.
fn cpu_seconds() -> Result<f64, Failure> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos: f64 = text.split_whitespace().next().ok_or("no processor time is told")?.parse()?;
    Ok(nanos / 1e9)
}
