//! From the last block to the end: the root is compared, files get their names, and the source is notified.

use super::block_sink::Ending;
use super::delivery::Progressed;
use super::feedback::turn;
use super::{CONFIRM_PATIENCE, Finished, Phase, ReceiverSession};
use crate::event::Event;
use faircast_core::time::{Span, Time};

/// While files get their names it is looked whether they have them: soon at first, then this often.
const LOOK_SOONEST: Span = Span::from_millis(1);
const LOOK_LATEST: Span = Span::from_millis(20);

impl ReceiverSession {
    /// Look whether work on files beside the session has ended.
    pub(super) fn look_after_files(&mut self, now: Time) {
        let Some(stream) = self.stream.as_mut().filter(|stream| stream.look_at <= now) else { return };
        let polled = stream.delivery.poll(now, &mut self.rng);
        if stream.delivery.activity().is_none() {
            (stream.works_since, stream.look_at) = (None, Time::NEVER);
        } else {
            let since = *stream.works_since.get_or_insert(now);
            stream.look_at = now + LOOK_SOONEST.max(now.since(since) / 8).min(LOOK_LATEST);
        }
        let is_finishing = stream.finishing_since.is_some();
        match polled {
            Ok(Progressed::No) if !is_finishing => {}
            Ok(_) => self.after_block(now),
            Err(error) => self.fail(error, now),
        }
    }

    /// Whether everything is here and files get their names.
    pub(super) fn is_finishing(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.finishing_since.is_some())
    }

    /// A block is in its place: perhaps it was the last.
    pub(super) fn after_block(&mut self, now: Time) {
        let Some(stream) = &mut self.stream else { return };
        if !stream.content_told
            && let Some(entries) = stream.delivery.entries()
        {
            stream.content_told = true;
            self.events.push_back(Event::Content {
                transfer: stream.announced.transfer.to_string(),
                files: entries.files,
                links: entries.links,
                directories: entries.directories,
                bytes: stream.delivery.content_bytes(),
                resumed_bytes: stream.delivery.resumed_bytes().0,
            });
        }
        if !stream.delivery.is_complete() {
            return;
        }
        let Some(root) = stream.root else { return };
        let symbols = stream.delivery.symbols();
        self.totals.symbols = symbols.received;
        self.totals.symbols_needed = symbols.needed;
        self.totals.repaired = symbols.decoded;
        let blocks = stream.blocks.unwrap_or(0);
        match stream.delivery.finish(blocks, root, self.setup.durability, now) {
            // Not what the source has: collect it again. The root may be what was wrong.
            Ok(Ending::Anew) => {
                stream.root = None;
                stream.delivery.arm(now, &mut self.rng);
            }
            Ok(Ending::UnderWay) => {
                stream.finishing_since.get_or_insert(now);
                stream.look_at = stream.look_at.min(now + LOOK_SOONEST);
            }
            Ok(Ending::Done(done)) => {
                stream.finishing_since = None;
                self.totals.finished = now;
                self.finished =
                    Some(Finished { entries: done.entries, bytes: done.bytes, warnings: done.warnings });
                self.leave_layers(now);
                if self.outbox.is_muted {
                    self.phase = Phase::Over;
                    return;
                }
                let Some(stream) = &mut self.stream else { return };
                // Receivers are often done at the same moment: each waits for its turn.
                (stream.member_at, stream.member_tries) = (now + turn(stream.spread, &mut self.rng), 0);
                stream.says_alive = false;
                let patience = (stream.spread * 2 + CONFIRM_PATIENCE).max(self.setup.patience);
                self.phase = Phase::Confirming { until: now + patience };
                if stream.window.may_limit() {
                    self.tell_window(faircast_wire::Window::UNLIMITED, now); // it wants no more
                }
                if self.stream.as_ref().is_some_and(|stream| stream.closed) {
                    self.phase = Phase::Over; // nobody waits for its word
                    return;
                }
                self.sign_receipt(root, now);
            }
            Err(error) => self.fail(error, now),
        }
    }
}
