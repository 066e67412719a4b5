//! The end of a transfer: the root hash is compared, files get their names, and the source is notified.

use super::block_sink::Ending;
use super::feedback::turn;
use super::symbol_sink::Progressed;
use super::{CONFIRM_TIMEOUT, LOOK_SOONEST, Phase, ReceiverSession, Stream};
use crate::config::Destination;
use crate::dry_run::HostComparison;
use crate::error::{Error, TransferError};
use crate::event::{Event, MAX_UNSENT, ReceiveReport, TransferName};
use crate::object::Finished;
use crate::units::mean_rate;
use faircast_core::time::{Span, Time};
use faircast_wire::{Activity, Announce};

/// Longest time between two checks for results of jobs.
const LOOK_LATEST: Span = Span::from_millis(20);

impl Stream {
    /// Schedules an early check for results of jobs while blocks are being written to the disk.
    pub(super) fn look_after_storage(&mut self, now: Time) {
        if self.sink.is_storing() {
            self.look_at = self.look_at.min(now + LOOK_SOONEST);
        }
    }

    /// Whether the sink knows which blocks of earlier sessions it has.
    pub(super) fn knows_missing(&self) -> bool {
        let is_verifying = self.sink.activity().is_some_and(|(activity, _)| activity == Activity::Verifying);
        !is_verifying && !self.sink.is_opening()
    }
}

impl ReceiverSession {
    /// Checks whether jobs on files have ended.
    pub(super) fn look_after_files(&mut self, now: Time) {
        let Some(stream) = self.stream.as_mut().filter(|stream| stream.look_at <= now) else { return };
        let polled = stream.sink.poll(now, &mut self.rng);
        if stream.sink.is_storing() && !matches!(polled, Ok(Progressed::No)) {
            stream.works_since = None; // the next result may follow as quickly
        }
        if stream.sink.activity().is_none() && !stream.sink.is_storing() {
            (stream.works_since, stream.look_at) = (None, Time::NEVER);
        } else {
            let since = *stream.works_since.get_or_insert(now);
            stream.look_at = now + LOOK_SOONEST.max(now.since(since) / 8).min(LOOK_LATEST);
        }
        if stream.searched && stream.knows_missing() {
            stream.searched = false;
            if stream.registered && stream.sink.resumed_bytes().0 > 0 {
                stream.member_at = stream.member_at.min(now + turn(stream.spread, &mut self.rng));
            }
        }
        let is_finishing = stream.finishing_since.is_some();
        match polled {
            Ok(Progressed::No) if is_finishing => self.after_block(now),
            polled => self.progressed(polled, now),
        }
        self.end_once_stored(now);
    }

    /// Whether jobs use the files. Their results may complete the content.
    fn uses_files(&self) -> bool {
        let uses = |stream: &Stream| {
            let sink = &stream.sink;
            let works = sink.activity().is_some() && !sink.needs_manifest();
            stream.finishing_since.is_some() || sink.is_storing() || works
        };
        self.stream.as_ref().is_some_and(uses)
    }

    /// Whether blocks are being decoded or written. They may complete the content of a source that is silent.
    pub(super) fn is_storing(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.sink.is_storing())
    }

    /// Ends a session that its source has closed, unless the content is complete or results of jobs may complete it.
    pub(super) fn end_once_stored(&mut self, now: Time) {
        let closed = self.stream.as_ref().and_then(|stream| stream.closed);
        if let (Phase::Receiving, Some(reason), false) = (self.phase, closed, self.uses_files()) {
            self.end(reason, now);
        }
    }

    /// Warns of the files that lack content at the end of a session without feedback. The source cannot report them.
    pub(super) fn name_unfinished(&mut self) {
        let Some(stream) = self.stream.as_ref().filter(|stream| stream.announced.is_one_way()) else {
            return;
        };
        let unfinished = stream.sink.unfinished();
        for (name, bytes) in unfinished.iter().take(MAX_UNSENT) {
            self.events.push_back(Event::warning(format!("{name} lacks {bytes} bytes")));
        }
        if let Some(more) = unfinished.len().checked_sub(MAX_UNSENT).filter(|more| *more > 0) {
            self.events.push_back(Event::warning(format!("{more} more files lack content")));
        }
    }

    /// Takes the results of the worker at once, before the scheduled check.
    pub(super) fn look_after_storage(&mut self, now: Time) {
        // A failed session ignores further results.
        let stream = self.stream.as_mut().filter(|stream| stream.sink.is_storing());
        if let Some(stream) = stream.filter(|_| self.phase == Phase::Receiving) {
            stream.look_at = now;
            self.look_after_files(now);
        }
    }

    /// Handles progress of the sink.
    #[inline]
    pub(super) fn progressed(&mut self, progressed: Result<Progressed, Error>, now: Time) {
        match progressed {
            Ok(Progressed::No) => return,
            Ok(Progressed::Block) => {
                self.trace_stored(now);
                self.after_block(now);
            }
            Ok(Progressed::Anew) => {
                let Some(stream) = &mut self.stream else { return };
                (stream.root, stream.finishing_since) = (None, None); // the root may have been wrong
            }
            Err(error) => return self.fail(error, now),
        }
        if let Some(stream) = &mut self.stream {
            stream.look_after_storage(now);
        }
    }

    /// Traces the bytes that are verified and stored. A relay verifies no blocks.
    fn trace_stored(&self, now: Time) {
        if let Some(stream) = self.stream.as_ref().filter(|_| self.setup.relay.is_none()) {
            let (stored, verified) = (stream.sink.stored_bytes(), stream.sink.verified_bytes());
            self.scope.stored(stored, verified, now);
        }
    }

    /// Whether the source sends no more packets of use: all blocks are stored, or the source has ended the session.
    pub(super) fn needs_no_packets(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.finishing_since.is_some() || stream.closed.is_some())
    }

    /// Reports the content, once its manifest is known.
    fn report_content(&mut self) {
        let Some(stream) = &mut self.stream else { return };
        if !stream.content_reported
            && stream.knows_missing()
            && let Some(entries) = stream.sink.entries()
        {
            stream.content_reported = true;
            stream.title = stream.sink.title();
            self.events.push_back(Event::Content {
                transfer: TransferName::Own(stream.announced.transfer),
                files: entries.files,
                links: entries.links,
                directories: entries.directories,
                bytes: stream.sink.content_bytes(),
                resumed_bytes: stream.sink.resumed_bytes().0,
            });
        }
    }

    /// Continues after a block was stored, and finishes the transfer after the last block.
    pub(super) fn after_block(&mut self, now: Time) {
        self.report_content();
        let Some(stream) = &mut self.stream else { return };
        if !stream.sink.is_complete() {
            return;
        }
        let Some(root) = stream.root else { return };
        // The root hash depends on the withdrawn files, so all withdrawn files must be known.
        let knows_withdrawn = |known: usize| known == stream.withdrawn as usize;
        if stream.finishing_since.is_none() && !stream.sink.withdrawn().is_none_or(knows_withdrawn) {
            return;
        }
        let symbols = stream.sink.symbols();
        self.totals.symbols = symbols.received;
        self.totals.symbols_needed = symbols.needed;
        self.totals.repaired = symbols.decoded;
        let blocks = stream.blocks.unwrap_or(0);
        match stream.sink.finish(blocks, root, self.setup.durability, now) {
            // The stored blocks contradict the source, so blocks are received again. The root hash is discarded too, because the
            // root hash may be wrong instead of the blocks.
            Ok(Ending::Anew) => {
                (stream.root, stream.finishing_since) = (None, None);
                stream.sink.arm(now, &mut self.rng);
            }
            Ok(Ending::UnderWay) => {
                stream.finishing_since.get_or_insert(now);
                stream.look_at = stream.look_at.min(now + LOOK_SOONEST);
            }
            Ok(Ending::Done(done)) => {
                stream.finishing_since = None;
                self.report_content(); // short content may be read and published in one call
                self.totals.finished = now;
                self.scope.complete(done.bytes, now);
                self.finished = Some(done);
                self.leave_layers(now);
                if self.outbox.is_muted {
                    self.phase = Phase::Over;
                    return;
                }
                let Some(stream) = &mut self.stream else { return };
                // Receivers often complete at the same moment, so each waits for its turn.
                (stream.member_at, stream.member_tries) = (now + turn(stream.spread, &mut self.rng), 0);
                stream.reports_alive = false;
                self.objections.hasten(stream.member_at);
                let idle_timeout = (stream.spread * 2 + CONFIRM_TIMEOUT).max(self.setup.idle_timeout);
                self.phase = Phase::Confirming { until: now + idle_timeout };
                if stream.window.may_limit() {
                    self.send_window(faircast_wire::Window::UNLIMITED, now); // the receiver needs no more packets
                }
                if self.stream.as_ref().is_some_and(|stream| stream.closed.is_some()) {
                    self.objections.hasten(now);
                    self.refuse_sessions(now);
                    self.phase = Phase::Over; // the source does not wait for its report
                    return;
                }
                self.send_receipt(root, now);
            }
            Err(error) => self.fail(error, now),
        }
    }

    /// Whether a restarted receiver continues from the progress of this one.
    pub(super) fn resumes(&self) -> bool {
        let is_live = self.stream.as_ref().is_some_and(|stream| stream.announced.flags & Announce::LIVE != 0);
        !matches!(self.setup.destination, Destination::Writer(_) | Destination::Memory(_))
            && !is_live
            && self.stored_bytes() > 0
    }

    /// Returns the result of the session.
    pub(crate) fn report(mut self) -> Result<ReceiveReport, Error> {
        let resumes = self.resumes();
        if let Some(stream) = &mut self.stream {
            stream.sink.close();
        }
        if let Some(stream) = self.stream.as_ref().filter(|_| !self.is_lost()) {
            self.setup.accept.end(stream.session);
        }
        let stopped = match self.failure.take() {
            None => false,
            Some(Error::Transfer(TransferError::Stopped)) => true,
            Some(error) => return Err(error),
        };
        let dry_run = self
            .comparison()
            .map(|comparison| HostComparison::new(self.setup.id, &self.setup.host, &comparison));
        let so_far = Finished { bytes: self.stored_bytes(), ..Finished::default() };
        let finished = if stopped { so_far } else { self.finished.take().unwrap_or_default() };
        let from = self.totals.first_packet.unwrap_or(self.totals.finished);
        let receiving = self.totals.finished.since(from);
        let (resumed_bytes, refetched_bytes) =
            self.stream.as_ref().map_or((0, 0), |stream| stream.sink.resumed_bytes());
        let moved_bytes = finished.bytes.saturating_sub(resumed_bytes);
        Ok(ReceiveReport {
            ok: !stopped && finished.withdrawn.is_empty(),
            stopped,
            resumes: stopped && resumes,
            files: finished.entries.files,
            links: finished.entries.links,
            directories: finished.entries.directories,
            deleted: finished.deleted,
            bytes: finished.bytes,
            duration: receiving.into(),
            goodput: mean_rate(moved_bytes, receiving),
            moved_bytes,
            resumed_bytes,
            refetched_bytes,
            packets: self.totals.packets,
            lost: self.totals.lost,
            symbol_ratio: self.totals.symbols as f64 / self.totals.symbols_needed.max(1) as f64,
            repaired_blocks: self.totals.repaired,
            refused: self.totals.refused.total(),
            refused_by: self.totals.refused,
            forged_blocks: self.stream.as_ref().map_or(0, |stream| stream.sink.forged()),
            dropped_local: self.totals.backlog.dropped,
            warnings: finished.warnings,
            withdrawn_count: finished.withdrawn.len() as u64,
            withdrawn: finished.withdrawn.into_iter().take(MAX_UNSENT).collect(),
            dry_run,
            layers: self.stream.as_ref().and_then(|stream| stream.layers.report()),
            streams: self.stream.as_ref().map_or_else(Vec::new, |stream| stream.sink.streams()),
        })
    }
}
