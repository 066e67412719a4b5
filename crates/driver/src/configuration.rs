//! Configuration of sessions in any wire format.

use crate::stop::Stop;
use faircast_transport::config::{ReceiveConfig, SendConfig, StartNow};
use faircast_transport::error::Error;
use faircast_transport::event::{Event, ReceiveReport, SendReport};

/// The configuration of a source or a receiver, with a method to run its session.
pub trait Configuration: Send + 'static {
    /// Report of a finished session.
    type Report: Send + 'static;

    /// Whether this event shows that the session has begun. After such an event, the program reports no error in the
    /// configuration.
    fn is_begun(event: &Event) -> bool;

    /// Returns a handle that starts the session while it waits for receivers.
    fn start_now(&self) -> StartNow {
        StartNow::default()
    }

    /// Runs the session in this thread until it ends, or until `stop` is set.
    ///
    /// # Errors
    /// If the session cannot begin, or fails.
    fn run(self, events: &mut dyn FnMut(Event), stop: &Stop) -> Result<Self::Report, Error>;
}

impl Configuration for SendConfig {
    type Report = SendReport;

    fn is_begun(event: &Event) -> bool {
        matches!(event, Event::Content { .. })
    }

    fn start_now(&self) -> StartNow {
        self.start.clone()
    }

    fn run(self, events: &mut dyn FnMut(Event), stop: &Stop) -> Result<SendReport, Error> {
        crate::send(self, events, stop)
    }
}

impl Configuration for ReceiveConfig {
    type Report = ReceiveReport;

    fn is_begun(event: &Event) -> bool {
        matches!(event, Event::Opened { .. })
    }

    fn run(self, events: &mut dyn FnMut(Event), stop: &Stop) -> Result<ReceiveReport, Error> {
        crate::receive(self, events, stop)
    }
}
