//! The members whose hosts are working on files.

use super::Members;
use crate::event::Busy;
use faircast_wire::Activity;

impl Members {
    /// Returns incomplete members that still send while their hosts are working on files, at most [`Busy::NAMED`].
    pub fn busy(&self) -> Vec<Busy> {
        let busy = self.known.values().filter(|member| {
            member.activity.0 != Activity::Network && member.is_waited_for() && !member.is_mute()
        });
        busy.take(Busy::NAMED).map(|member| Busy::new(&member.host, member.activity)).collect()
    }
}
