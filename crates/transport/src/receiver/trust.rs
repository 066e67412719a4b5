//! Trust in a session whose content must be signed.

use crate::error::JoinObstacle;
use faircast_core::packet::SessionId;
use faircast_wire::{Announce, Hashes, Signed, Status, VerifyKey, VerifyKeys};

/// The key that signed the announcement of one session, and the latest signed statement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trust {
    key: VerifyKey,
    about: Signed,
    /// The signed number of blocks, the signed number of withdrawn files, and the signed root hash.
    reported: Option<(u32, u32, [u8; 32])>,
}

impl Trust {
    /// Returns the trust if one of these keys has signed this announcement.
    ///
    /// # Errors
    /// The obstacle, if the announcement is not signed with one of the keys.
    pub(super) fn in_announcement(
        keys: &VerifyKeys,
        session: SessionId,
        announce: &Announce,
    ) -> Result<Trust, JoinObstacle> {
        if announce.signature.is_none() {
            return Err(JoinObstacle::Unsigned);
        }
        let mut named = keys.iter().filter(|key| key.fingerprint() == announce.signer).peekable();
        if named.peek().is_none() {
            return Err(JoinObstacle::OtherSigner);
        }
        let key =
            named.find(|key| announce.is_signed_by(session, key)).ok_or(JoinObstacle::WrongSignature)?;
        let about =
            Signed { session, salt: announce.salt, transfer: announce.transfer, started: announce.started };
        Ok(Trust { key: *key, about, reported: None })
    }

    /// Returns trust in this key for one session.
    #[cfg(test)]
    pub(super) fn of_key(key: VerifyKey, about: Signed) -> Trust {
        Trust { key, about, reported: None }
    }

    /// Whether the source has signed this page.
    pub(super) fn signed_page(&self, page: &Hashes) -> bool {
        self.key.verifies_page(&self.about, page.first_block, &page.hashes, &page.signature)
    }

    /// Removes the fields of a status that require the source's signature and lack a valid one.
    pub(super) fn filter(&mut self, status: &mut Status) {
        let end = match (status.blocks, status.root, status.root_signature) {
            (Some(blocks), Some(root), Some(signature)) => {
                Some((blocks, status.withdrawn_count(), root, signature))
            }
            _ => None,
        };
        // The list of withdrawn files only grows, so a signature that covers fewer withdrawn files is older.
        if let Some((blocks, withdrawn, root, signature)) = end
            && self.reported.is_none_or(|(_, before, _)| before < withdrawn)
            && self.key.verifies_root(&self.about, (blocks, withdrawn), &root, &signature)
        {
            self.reported = Some((blocks, withdrawn, root));
        }
        status.blocks = self.reported.map(|(blocks, ..)| blocks);
        status.root = self.reported.map(|(.., root)| root);
        let files = &status.withdrawals;
        let is_signed = status.withdrawn.is_some_and(|part| {
            !files.is_empty()
                && self.key.verifies_withdrawals(&self.about, part.first, files, &part.signature)
        });
        if !is_signed {
            status.withdrawals.clear();
        }
        let total = self.reported.map_or(0, |(_, withdrawn, _)| withdrawn);
        status.withdrawn.iter_mut().for_each(|part| part.total = total);
    }
}
