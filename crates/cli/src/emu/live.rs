//! Live view and record of a run, from the samples of its network.

use super::keeper::{LinkState, Sampled};
use super::lab::Lab;
use super::network::Network;
use super::outcome::{Measured, Printer};
use super::traffic::Transferred;
use crate::failure::Failure;
use faircast_aqm::LinkCounts;
use faircast_core::time::Time;
use faircast_experiments::results::{LinkSample, Recorded, Results, of_recording};
use std::io::Write;
use std::time::{Duration, Instant};

/// Interval of the view.
const INTERVAL: Duration = Duration::from_secs(1);
/// Memory of a recorded link and of a recorded receiver, in bytes.
const OF_LINK: u64 = size_of::<LinkSample>() as u64;
const OF_RECEIVER: u64 = 8;

/// Whether a run is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// All samples are kept for [`Live::results`].
    Whole,
    /// Only the rates are measured.
    Rates,
}

/// A run, followed by the samples of its network.
#[derive(Debug)]
pub struct Live<'a> {
    lab: &'a Lab,
    network: &'a Network,
    record: Record,
    recorded: Vec<Recorded>,
    transferred: Vec<Transferred>,
    next: u64,
    asked: Instant,
    warmup: f64,
    end: f64,
    /// The first sample after the warm-up, the last one that was shown, and the latest one until the end of the run.
    from: Option<Sampled>,
    shown: Option<Sampled>,
    last: Option<Sampled>,
}

impl<'a> Live<'a> {
    /// Begins the run.
    ///
    /// # Errors
    /// When the network has ended.
    pub fn begin(lab: &'a Lab, network: &'a Network, record: Record) -> Result<Live<'a>, Failure> {
        network.begin()?;
        Ok(Live {
            lab,
            network,
            record,
            recorded: Vec::new(),
            transferred: Vec::new(),
            next: 0,
            asked: Instant::now(),
            warmup: lab.scenario.warmup(0).as_secs_f64(),
            end: lab.scenario.duration(0),
            from: None,
            shown: None,
            last: None,
        })
    }

    /// Returns whether the time of the scenario is over.
    pub fn is_over(&self) -> bool {
        self.last.as_ref().is_some_and(|last| is_at(last, self.end))
    }

    /// Takes and shows the samples, if it is time. `now` is the time of the run.
    ///
    /// # Errors
    /// When the network has ended, or when the record has too many samples.
    pub fn follow<W: Write>(&mut self, now: Time, printer: &mut Printer<'_, W>) -> Result<(), Failure> {
        let is_due = self.asked.elapsed() >= INTERVAL || now.as_secs_f64() >= self.end;
        if !is_due || self.is_over() {
            return Ok(());
        }
        self.asked = Instant::now();
        for sample in self.network.samples(self.next)? {
            if sample.number != self.next {
                return Err(Failure::Check("samples of the run are lost, because this program had to wait; end other programs, or use a longer probe.queue_every".into()));
            }
            self.next += 1;
            if self.is_over() {
                break;
            }
            self.keep(&sample)?;
            if self.from.is_none() && is_at(&sample, self.warmup) {
                self.from = Some(sample.clone());
            }
            self.last = Some(sample);
        }
        let Some(last) = &self.last else { return Ok(()) };
        if let Some(shown) = &self.shown.replace(last.clone()).filter(|shown| shown.number < last.number) {
            printer.live(last.seconds, self.end, &Measured::new(self.lab, shown, last))?;
        }
        Ok(())
    }

    fn keep(&mut self, sample: &Sampled) -> Result<(), Failure> {
        if self.record == Record::Rates {
            return Ok(());
        }
        let at = Time::from_secs_f64(sample.seconds);
        let links: Vec<LinkSample> = sample.links.iter().map(|link| recorded(at, link)).collect();
        let received = self.lab.received(&sample.watched);
        let memory = OF_LINK * links.len() as u64 + OF_RECEIVER * received.len() as u64;
        if memory * (self.recorded.len() as u64 + 1) > self.lab.memory {
            return Err(Failure::Check(
                "the record needs more memory than --max-memory allows; use a longer probe.queue_every"
                    .into(),
            ));
        }
        self.recorded.push(Recorded { at, links, received });
        Ok(())
    }

    /// Records the complete transfers of each flow.
    pub fn transferred(&mut self, transferred: Vec<Transferred>) {
        self.transferred = transferred;
    }

    /// Returns the measurements from the warm-up to the end.
    pub fn measured(&self) -> Measured {
        match (&self.from, &self.last) {
            (Some(from), Some(last)) => Measured::new(self.lab, from, last),
            _ => Measured::default(),
        }
    }

    /// Returns the results of the record.
    pub fn results(&self) -> Results {
        of_recording(
            &self.lab.scenario,
            (0, self.lab.seed),
            &self.lab.real,
            &self.recorded,
            &self.transferred,
        )
    }
}

/// Returns whether a sample is at a time or later.
fn is_at(sample: &Sampled, seconds: f64) -> bool {
    sample.seconds >= seconds - 1e-9
}

fn recorded(at: Time, link: &LinkState) -> LinkSample {
    let LinkState { offered, accepted, bytes, overflow, early, marked, lost, .. } = *link;
    LinkSample {
        at,
        waiting: link.waiting,
        waiting_bytes: link.waiting_bytes,
        departed_bytes: link.departed,
        counts: LinkCounts { offered, accepted, accepted_bytes: bytes, overflow, early, marked, lost },
    }
}
