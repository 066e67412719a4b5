//! SMCC's receiver.

use super::config::Config;
use crate::node::Cx;
use crate::packet::{Arrival, Data, Layer, ReceiverId};
use crate::time::Time;

/// A receiver of a session.
#[derive(Debug, Clone)]
pub struct Receiver {
    me: ReceiverId,
}

impl Receiver {
    /// A receiver that has received nothing.
    pub fn new(me: ReceiverId, _config: &Config) -> Receiver {
        Receiver { me }
    }
}

impl crate::node::Receiver for Receiver {
    fn on_data(&mut self, _data: &Data, _layer: Layer, _arrival: Arrival, _cx: &mut Cx<'_>) {
        debug_assert!(self.me.get() > 0);
    }

    fn deadline(&self) -> Time {
        Time::NEVER
    }

    fn on_deadline(&mut self, _cx: &mut Cx<'_>) {}
}
