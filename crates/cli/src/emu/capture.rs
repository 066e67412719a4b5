//! Captures of links in a file, written by a thread of its own.

use faircast_core::time::{Span, Time};
use faircast_emulator::Tapped;
use faircast_experiments::results::pcapng::{LinkKind, PcapNg};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

/// Size of a part that goes to the thread, and maximum number of parts that wait for it.
const PART: usize = 1 << 17;
const MAX_PARTS: usize = 512;

/// Links to capture.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CaptureOrder {
    pub file: PathBuf,
    /// Numbers and names of the links.
    pub links: Vec<(u32, String)>,
    /// Maximum number of bytes of a packet.
    pub most: u32,
}

/// A capture that is being written.
#[derive(Debug, Clone)]
pub struct Capture(Arc<Mutex<Written>>);

#[derive(Debug)]
struct Written {
    file: PcapNg,
    /// Numbers of the interfaces, by number of the link.
    interfaces: BTreeMap<u32, u32>,
    /// Time of the clock at the beginning of the emulation.
    begin: Span,
    parts: SyncSender<Part>,
    /// Number of packets since the last part, and number of packets that are missing.
    packets: u64,
    missing: u64,
}

enum Part {
    Bytes(Vec<u8>),
    /// Request for the first error.
    Flush(Sender<Option<String>>),
}

impl Capture {
    /// Begins a capture.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(order: &CaptureOrder) -> io::Result<Capture> {
        let output = File::create(&order.file)?;
        let (parts, received) = mpsc::sync_channel(MAX_PARTS);
        let mut file = PcapNg::new(LinkKind::Ip, order.most);
        order.links.iter().for_each(|(_, name)| file.interface(name));
        let interfaces = (0..).zip(&order.links).map(|(number, (link, _))| (*link, number)).collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let begin = Span::from_nanos(now.as_nanos() as u64);
        thread::spawn(move || write(output, &received));
        let written = Written { file, interfaces, begin, parts, packets: 0, missing: 0 };
        Ok(Capture(Arc::new(Mutex::new(written))))
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a packet.
    pub fn add(&self, tapped: &Tapped<'_>) {
        let mut it = self.written();
        let Some(interface) = it.interfaces.get(&tapped.link).copied() else { return };
        let at = Time::from_nanos(tapped.at.as_nanos()) + it.begin;
        it.file.packet(interface, at, tapped.bytes, tapped.lost);
        it.packets += 1;
        if it.file.size() >= PART {
            it.pass_on();
        }
    }

    /// Writes all packets. Returns the reason for which the capture is incomplete.
    pub fn flush(&self) -> Option<String> {
        let ((done, flushed), missing) = (mpsc::channel(), {
            let mut it = self.written();
            it.pass_on();
            it.missing
        });
        let parts = self.written().parts.clone();
        let asked = parts.send(Part::Flush(done)).is_ok();
        let error = if asked { flushed.recv().ok().flatten() } else { None };
        error
            .or_else(|| (missing > 0).then(|| format!("{missing} packets are missing, because the disk is too slow; use --snaplen, or fewer links in probe.taps")))
    }
}

impl Written {
    fn pass_on(&mut self) {
        let packets = std::mem::take(&mut self.packets);
        if let Err(TrySendError::Full(_)) = self.parts.try_send(Part::Bytes(self.file.take())) {
            self.missing += packets;
        }
    }
}

/// Writes parts until the capture ends.
fn write(mut file: File, parts: &Receiver<Part>) {
    let mut error = None;
    for part in parts {
        match part {
            Part::Bytes(bytes) if error.is_none() => {
                error = file.write_all(&bytes).err().map(|error| error.to_string());
            }
            Part::Bytes(_) => {}
            // A capture that is gone needs no answer.
            Part::Flush(done) => _ = done.send(error.clone()),
        }
    }
}
