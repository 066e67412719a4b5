//! Byte counters of interfaces over time.

use crate::error::KitError;
use crate::node::Node;
use crate::task::{enter, open_namespace};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Counters of an interface at one moment. Bytes include link-layer headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Time since the start of sampling.
    pub at: Duration,
    /// Number of received bytes.
    pub rx_bytes: u64,
    /// Number of received packets.
    pub rx_packets: u64,
    /// Number of sent bytes.
    pub tx_bytes: u64,
    /// Number of sent packets.
    pub tx_packets: u64,
}

/// A thread that samples the interface of a host until it is stopped.
#[derive(Debug)]
pub struct Sampler {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<Sample>, KitError>>,
}

impl Sampler {
    /// Starts to sample [`Node::INTERFACE`] of a host at the interval `every`. Returns after the first sample.
    ///
    /// # Errors
    /// Fails if the namespace cannot be opened.
    pub fn start(node: &Node, every: Duration) -> Result<Sampler, KitError> {
        let namespace = open_namespace(node.path())?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (first, begun) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let mut first = Some(first);
            enter(&namespace).map_err(KitError::system("enter a namespace to sample it"))?;
            let begin = Instant::now();
            let mut samples = Vec::new();
            for tick in 1.. {
                samples.push(read(begin.elapsed())?);
                drop(first.take());
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                std::thread::sleep((every * tick).saturating_sub(begin.elapsed()));
            }
            Ok(samples)
        });
        // The thread sends no message. This call returns when the thread drops its end of the channel, after the first sample or
        // on an error.
        let _ = begun.recv();
        Ok(Sampler { stop, thread })
    }

    /// Stops and returns the samples. The last sample is taken after this call.
    ///
    /// # Errors
    /// Fails if the counters could not be read.
    pub fn stop(self) -> Result<Vec<Sample>, KitError> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn read(at: Duration) -> Result<Sample, KitError> {
    // `/proc/self` would show the interfaces in the namespace of the first thread of the process.
    let path = "/proc/thread-self/net/dev";
    let table = fs::read_to_string(path).map_err(KitError::system(path))?;
    let row = table.lines().find_map(|line| line.trim().strip_prefix(Node::INTERFACE)?.strip_prefix(':'));
    let missing = || KitError::Output { program: path, why: format!("no row for {}", Node::INTERFACE) };
    let fields: Vec<u64> =
        row.ok_or_else(missing)?.split_whitespace().filter_map(|f| f.parse().ok()).collect();
    match fields[..] {
        [rx_bytes, rx_packets, _, _, _, _, _, _, tx_bytes, tx_packets, ..] => {
            Ok(Sample { at, rx_bytes, rx_packets, tx_bytes, tx_packets })
        }
        _ => Err(missing()),
    }
}

/// Writes samples as CSV: `seconds,rx_bytes,rx_packets,tx_bytes,tx_packets`.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn write_csv(samples: &[Sample], path: &Path) -> Result<(), KitError> {
    let write = || -> std::io::Result<()> {
        let mut file = std::io::BufWriter::new(fs::File::create(path)?);
        writeln!(file, "seconds,rx_bytes,rx_packets,tx_bytes,tx_packets")?;
        for s in samples {
            let seconds = s.at.as_secs_f64();
            writeln!(file, "{seconds:.4},{},{},{},{}", s.rx_bytes, s.rx_packets, s.tx_bytes, s.tx_packets)?;
        }
        file.flush()
    };
    write().map_err(KitError::system(format!("write {}", path.display())))
}
