//! Record of the network's datagrams, for assertions.

use faircast_core::time::{Span, Time};
use faircast_wire::peek;
use std::collections::BTreeMap;

/// Counts over time, in bins of ten milliseconds.
#[derive(Debug, Default, Clone)]
pub(super) struct Bins(Vec<u64>);

pub(super) const BIN: Span = Span::from_millis(10);

impl Bins {
    pub(super) fn add(&mut self, now: Time, amount: u64) {
        let at = (now.as_nanos() / BIN.as_nanos()) as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] += amount;
    }

    pub(super) fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the sum over `from..to`.
    pub(super) fn between(&self, from: Time, to: Time) -> u64 {
        let at = |time: Time| ((time.as_nanos() / BIN.as_nanos()) as usize).min(self.0.len());
        self.0[at(from)..at(to)].iter().sum()
    }

    /// Returns the largest sum over any interval of `span`.
    pub(super) fn max_within(&self, span: Span) -> u64 {
        let width = (span.as_nanos() / BIN.as_nanos()).max(1) as usize;
        self.0.windows(width.min(self.0.len().max(1))).map(|window| window.iter().sum()).max().unwrap_or(0)
    }

    /// Returns the end of the first interval of `span` whose sum is at least `amount`.
    pub(super) fn first_with(&self, span: Span, amount: u64) -> Option<Time> {
        let width = (span.as_nanos() / BIN.as_nanos()).max(1) as usize;
        let at = self.0.windows(width).position(|window| window.iter().sum::<u64>() >= amount)?;
        Some(Time::ZERO + BIN * (at + width) as u64)
    }
}

/// Record of the datagrams sent and received.
#[derive(Default)]
pub(super) struct Trace {
    /// Whether the record is off, for runs of months.
    pub(super) off: bool,
    pub(super) digest: Option<blake3::Hasher>,
    /// Bytes sent by each source. The next field counts the datagrams received by each source.
    pub(super) sent: Vec<Bins>,
    pub(super) received: Vec<Bins>,
    /// Whether datagrams are stored: `down` holds the datagrams to receivers, `up` the datagrams to sources.
    pub(super) record: bool,
    pub(super) down: Vec<(Time, usize, Vec<u8>)>,
    pub(super) up: Vec<(Time, usize, Vec<u8>)>,
    /// Number of datagrams to sources, for each kind; `None` if they are not counted.
    pub(super) kinds: Option<BTreeMap<String, Bins>>,
}

fn of(bins: &mut Vec<Bins>, index: usize) -> &mut Bins {
    if bins.len() <= index {
        bins.resize(index + 1, Bins::default());
    }
    &mut bins[index]
}

impl Trace {
    pub(super) fn on_sent(&mut self, now: Time, source: usize, bytes: &[u8], size: u64) {
        if self.off {
            return;
        }
        of(&mut self.sent, source).add(now, size);
        self.digest(b"sent", now, source, bytes);
    }

    pub(super) fn on_down(&mut self, now: Time, receiver: usize, bytes: &[u8]) {
        self.digest(b"down", now, receiver, bytes);
        if self.record {
            self.down.push((now, receiver, bytes.to_vec()));
        }
    }

    pub(super) fn on_up(&mut self, now: Time, source: usize, bytes: &[u8]) {
        if self.off {
            return;
        }
        of(&mut self.received, source).add(now, 1);
        if let (Some(kinds), Ok(header)) = (&mut self.kinds, peek(bytes)) {
            kinds.entry(format!("{:?}", header.kind)).or_default().add(now, 1);
        }
        self.digest(b"up", now, source, bytes);
        if self.record {
            self.up.push((now, source, bytes.to_vec()));
        }
    }

    fn digest(&mut self, what: &[u8], now: Time, node: usize, bytes: &[u8]) {
        if let Some(digest) = &mut self.digest {
            digest.update(what);
            digest.update(&now.as_nanos().to_le_bytes());
            digest.update(&(node as u64).to_le_bytes());
            digest.update(bytes);
        }
    }

    /// Returns a single digest of the record.
    pub(super) fn fingerprint(&self) -> String {
        let digest = self.digest.as_ref().expect("the net was built with `traced`");
        digest.finalize().to_hex()[..16].to_owned()
    }
}
