//! The end of a transfer: the root hash is compared, and the files get their names.

use super::super::storage::Storage;
use super::to::{ContentSink, Published};
use super::{BlockSink, Ending, Polled};
use crate::announced::LIVE_ROOT;
use crate::config::Durability;
use crate::error::{Error, TransferError};
use crate::object::host::disk::Disk;
use crate::object::memory::Gathering;
use crate::object::{AnyStore, Comparing, Counts, FileWork, Finished, Hash, ObjectError, WorkStage};
use crate::worker::Load;
use std::sync::mpsc::{TryRecvError, channel};

impl BlockSink {
    /// Finishes a transfer of `blocks` blocks: compares the root hash and gives the files their names. A long renaming runs in a
    /// job; call this until the job has ended.
    pub(in super::super) fn finish(
        &mut self,
        blocks: u32,
        root: [u8; 32],
        durability: Durability,
    ) -> Result<Ending, Error> {
        if let ContentSink::Files(_) | ContentSink::Opening { .. } | ContentSink::Preparing { .. } = &self.to
        {
            let end = self.short_end.unwrap_or(u64::from(blocks) * self.geometry.capacity());
            match self.settle()? {
                Polled::GivenUp => return Ok(Ending::Anew),
                _ if self.is_storing() => return Ok(Ending::UnderWay),
                _ => {}
            }
            // The length of the object stream (from the journal or from the last block) is checked together with the root hash.
            let ContentSink::Files(storage) = &mut self.to else { return Ok(Ending::UnderWay) };
            let known = match storage.ledger().geometry().stream_len {
                Some(_) => Ok(()),
                None => storage.set_stream_len(end),
            };
            match self.settled(known)? {
                Polled::GivenUp => return Ok(Ending::Anew),
                _ if self.is_storing() => return Ok(Ending::UnderWay),
                _ => {}
            }
            let ContentSink::Files(storage) = &mut self.to else { return Ok(Ending::UnderWay) };
            let checked = storage.ledger().check(&Hash(root));
            if self.settled(checked)? == Polled::GivenUp {
                return Ok(Ending::Anew);
            }
            if !matches!(self.to, ContentSink::Files(_)) {
                return Ok(Ending::UnderWay);
            }
        }
        if let ContentSink::Stream { waiting: Some(waiting), .. } = &self.to
            && waiting.bytes() > 0
        {
            return Ok(Ending::UnderWay);
        }
        if let ContentSink::Publishing { blocks, bytes, outcome, .. } = &self.to {
            let outcome = match outcome.try_recv() {
                Err(TryRecvError::Empty) => return Ok(Ending::UnderWay),
                Err(TryRecvError::Disconnected) => panic!("the work on files says how it ended"),
                Ok(outcome) => outcome,
            };
            let (error, store) = match outcome {
                Ok(finished) => {
                    self.to = ContentSink::Finished { blocks: *blocks, bytes: *bytes };
                    return Ok(Ending::Done(finished));
                }
                Err((error, Some(store))) => (error, store),
                Err((error, None)) => return Err(error.into()),
            };
            self.to = ContentSink::Files(Storage::new(*store, self.worker.clone()));
            return match self.settled(Err(error))? {
                Polled::GivenUp => Ok(Ending::Anew),
                _ => Ok(Ending::UnderWay),
            };
        }
        let (held, verified) = (self.blocks(), self.verified_bytes());
        self.content = self.entries().map(|entries| (entries, self.title()));
        let stream_len = self.short_end.unwrap_or(u64::from(blocks) * self.geometry.capacity());
        let done =
            match std::mem::replace(&mut self.to, ContentSink::Finished { blocks: held, bytes: verified }) {
                ContentSink::Opening { .. }
                | ContentSink::Preparing { .. }
                | ContentSink::Publishing { .. }
                | ContentSink::Finished { .. } => Finished::default(),
                ContentSink::Stream { sink, hashes, head, lost, gathered, .. } => {
                    let bytes = sink.written().saturating_sub(head.into());
                    sink.finish()?;
                    if let Some(mut hashes) = hashes.filter(|_| lost == 0 && root != LIVE_ROOT) {
                        if self.geometry.stream_len.is_none() {
                            hashes.set_stream_len(stream_len);
                        }
                        if hashes.root() != Some(Hash(root)) {
                            return Err(Error::Transfer(TransferError::RootMismatch));
                        }
                    }
                    if let Some(comparing) = self.comparing.take() {
                        return self.compare_output(*comparing, (held, verified), (blocks, root, durability));
                    }
                    let mut files = 1;
                    if let Some(gathered) = gathered {
                        files = gathered.split(self.geometry.manifest_len).map_err(ObjectError::from)?;
                    }
                    let warnings = match lost {
                        0 => Vec::new(),
                        lost => vec![format!(
                            "{lost} blocks of the stream arrived too late and are missing from the output"
                        )],
                    };
                    Finished { entries: Counts::of_files(files), bytes, warnings, ..Finished::default() }
                }
                ContentSink::Files(mut storage) => {
                    storage.files().into_iter().for_each(|files| self.warnings.append(files.warnings()));
                    let store = storage.into_store().expect("no job has the files of an idle storage");
                    let (sender, outcome) = channel();
                    let work = FileWork::default();
                    work.begin(WorkStage::Completing, 1);
                    let ours = work.clone();
                    self.to = ContentSink::Publishing { blocks: held, bytes: verified, work, outcome };
                    let job = Box::new(move || {
                        // Sending fails if the session has ended.
                        sender.send(published(store, &Hash(root), durability, &ours)).ok();
                    });
                    self.worker.run(Load::Files, job);
                    return self.finish(blocks, root, durability);
                }
            };
        Ok(Ending::Done(done))
    }

    /// In a dry run: has a job compare the output with the complete list of files.
    fn compare_output(
        &mut self,
        (comparing, list, disk): (Comparing, Gathering, Disk),
        (held, verified): (u32, u64),
        (blocks, root, durability): (u32, [u8; 32], Durability),
    ) -> Result<Ending, Error> {
        let (sender, outcome) = channel();
        let work = FileWork::default();
        work.begin(WorkStage::Verifying, 1);
        let ours = work.clone();
        self.to = ContentSink::Publishing { blocks: held, bytes: verified, work, outcome };
        let job = Box::new(move || {
            let compared = comparing.compare(&disk, &list.take_bytes(), &ours);
            let finished = compared.map(|mut compared| Finished {
                warnings: std::mem::take(&mut compared.warnings),
                compared: Some(Box::new(compared)),
                ..Finished::default()
            });
            sender.send(finished.map_err(|error| (error, None))).ok(); // fails if the session has ended
        });
        self.worker.run(Load::Files, job);
        self.finish(blocks, root, durability)
    }
}

/// Gives the files their names.
fn published(mut store: AnyStore, root: &Hash, durability: Durability, work: &FileWork) -> Published {
    let mut finished = match store.finish_as(root, durability, work) {
        Ok(finished) => finished,
        Err(error) => return Err((error, Some(Box::new(store)))),
    };
    finished.warnings.extend(finished.skipped.iter().map(|link| {
        format!(
            "the link {} -> {} leads out of the output directory and was not created",
            link.path, link.target
        )
    }));
    Ok(finished)
}
