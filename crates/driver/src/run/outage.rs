//! Temporary outages of the network: interfaces that go down, lose their address or are created again, vanished routes, packet
//! filters.
//!
//! None of these faults ends a session before its idle timeout. Datagrams that cannot be sent count as lost on the path. Sending
//! is tried again after a pause. Sockets and memberships are created again if the interface has another index or address
//! (`docs/design/sessions.md`).

use faircast_net::{Changes, Choice, InterfaceChange, NetError, choose_again};
use faircast_transport::error::{Error, SystemError};
use faircast_transport::event::{Event, Setting};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Interval of attempts while nothing can be sent.
const TRY_EVERY: Duration = Duration::from_millis(50);

/// Interval of checks for changes of the interfaces.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Interval at which the interfaces are read during an outage, even without a change.
const LOOK_ANYWAY: Duration = Duration::from_secs(1);

/// Minimum duration of a reported outage.
const TOLD_AFTER: Duration = Duration::from_millis(300);

/// A session's view of its host's network.
pub(crate) struct Outage {
    group: IpAddr,
    wanted: Option<String>,
    idle_timeout: Duration,
    moves: Moves,
    changes: Changes,
    look_at: Instant,
    looked_anyway: Instant,
    /// Whether a datagram was ever sent. Before the first datagram, a failure to send is permanent.
    worked: bool,
    /// Whether the session continues after an outage of any duration.
    endless: bool,
    broken: Option<Broken>,
}

/// Whether a session can continue from another address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moves {
    /// The session can continue from any address.
    Anywhere,
    /// The session is bound to its address, and waits until the host has this address again.
    Nowhere,
}

struct Broken {
    since: Instant,
    why: NetError,
    /// Whether the interface has a fault; `false` if only sending, or opening a socket, failed.
    interface: bool,
    try_at: Instant,
    reported: bool,
}

/// Result of a check of the interfaces.
#[derive(Debug)]
pub(crate) enum InterfaceCheck {
    /// No change.
    Same,
    /// The network has changed or is back, and the sockets are still valid.
    Changed,
    /// Sockets must be opened on this interface.
    Other(Box<Choice>),
}

impl Outage {
    pub(crate) fn new(group: IpAddr, wanted: Option<String>, idle_timeout: Duration, moves: Moves) -> Outage {
        let (changes, now) = (Changes::listen(), Instant::now());
        let (look_at, looked_anyway) = (now, now);
        Outage {
            group,
            wanted,
            idle_timeout,
            moves,
            changes,
            look_at,
            looked_anyway,
            worked: false,
            endless: false,
            broken: None,
        }
    }

    /// Creates the state of a listener, which may wait for days before it sends a datagram. An outage does not end the session,
    /// unless [`Outage::ends_by_timeout`] is set.
    pub(crate) fn of_listener(group: IpAddr, wanted: Option<String>, idle_timeout: Duration) -> Outage {
        Outage { worked: true, endless: true, ..Outage::new(group, wanted, idle_timeout, Moves::Anywhere) }
    }

    /// Sets whether an outage as long as the idle timeout ends the session.
    pub(crate) fn ends_by_timeout(&mut self, ends: bool) {
        self.endless = !ends;
    }

    /// Records a failure of sending or opening.
    ///
    /// # Errors
    /// If the failure is permanent, occurred before the first datagram was sent, or has lasted too long.
    pub(crate) fn failed(&mut self, why: NetError, events: &mut dyn FnMut(Event)) -> Result<(), Error> {
        if !why.may_pass() || !self.worked {
            return Err(why.into());
        }
        let now = Instant::now();
        let fresh = Broken { since: now, why, interface: false, try_at: now, reported: false };
        let broken = self.broken.get_or_insert(fresh);
        broken.try_at = now + TRY_EVERY;
        self.wait(now, events)
    }

    /// Records a sent datagram.
    pub(crate) fn works(&mut self, events: &mut dyn FnMut(Event)) {
        self.worked = true;
        self.end(events);
    }

    /// Whether there is an outage now.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Returns whether the session can continue from another address.
    pub(crate) fn moves(&self) -> Moves {
        self.moves
    }

    /// Whether no datagrams may be sent now.
    pub(crate) fn holds(&self) -> bool {
        self.broken.as_ref().is_some_and(|broken| Instant::now() < broken.try_at)
    }

    /// Returns the time of the next attempt to send, or `moment` if that is earlier.
    pub(crate) fn until(&self, moment: Instant) -> Instant {
        match &self.broken {
            Some(broken) if broken.try_at > Instant::now() => moment.min(broken.try_at),
            _ => moment,
        }
    }

    /// Checks the interfaces at intervals, and after a change. `before` is the interface of the sockets; `is_open` states whether
    /// they are open.
    ///
    /// # Errors
    /// If the network has been down for too long.
    pub(crate) fn look(
        &mut self,
        before: &Choice,
        is_open: bool,
        events: &mut dyn FnMut(Event),
    ) -> Result<InterfaceCheck, Error> {
        let now = Instant::now();
        if now < self.look_at {
            return Ok(InterfaceCheck::Same);
        }
        self.look_at = now + LOOK_EVERY;
        let news = self.changes.news(before.chosen.index);
        let anyway = self.broken.is_some() && now.duration_since(self.looked_anyway) >= LOOK_ANYWAY;
        if news == InterfaceChange::Nothing && !anyway {
            self.wait(now, events)?;
            return Ok(InterfaceCheck::Same);
        }
        self.looked_anyway = now;
        match self.choose(before) {
            Err(why) => {
                let broken = Broken { since: now, why, interface: true, try_at: now, reported: false };
                let stored = self.broken.take();
                // The fault of the interface replaces a failed send as the reason of the outage.
                let (since, reported) = stored.map_or((now, false), |stored| (stored.since, stored.reported));
                self.broken = Some(Broken { since, reported, try_at: now + TRY_EVERY, ..broken });
                self.wait(now, events)?;
                Ok(InterfaceCheck::Same)
            }
            Ok(choice) if is_open && same_place(&choice, before) => {
                let is_back = self.broken.as_ref().is_some_and(|broken| broken.interface);
                if is_back {
                    self.end(events);
                } else {
                    self.wait(now, events)?;
                }
                Ok(if is_back || news == InterfaceChange::Here {
                    InterfaceCheck::Changed
                } else {
                    InterfaceCheck::Same
                })
            }
            Ok(choice) => Ok(InterfaceCheck::Other(Box::new(choice))),
        }
    }

    /// Records that sockets were opened on the interface returned by [`Outage::look`].
    pub(crate) fn moved(&mut self, from: &Choice, to: &Choice, events: &mut dyn FnMut(Event)) {
        if same_place(from, to) {
            return self.end(events);
        }
        let name = &to.chosen.name;
        let lasted = self.broken.take().map_or(0.0, |broken| broken.since.elapsed().as_secs_f64());
        events(Event::warning(match from.local == to.local {
            true => format!("{name} exists again after {lasted:.1} s; the session continues"),
            false => format!(
                "the session continues with the address {} of {name} (before: {})",
                to.local, from.local
            ),
        }));
    }

    /// Returns the outage of the network as an error, if the outage was reported and has not ended.
    pub(crate) fn take_error(&mut self) -> Option<Error> {
        self.broken.take().filter(|broken| broken.reported).map(|broken| {
            Error::System(SystemError::Outage { lasted: broken.since.elapsed(), why: broken.why })
        })
    }

    fn choose(&self, before: &Choice) -> Result<Choice, NetError> {
        let choice = choose_again(self.group, self.wanted.as_deref(), before)?;
        match self.moves {
            Moves::Nowhere if choice.local != before.local => {
                let name = choice.chosen.name;
                Err(NetError::AddressGone { address: before.local, name })
            }
            _ => Ok(choice),
        }
    }

    /// Reports an outage after `TOLD_AFTER`, and ends the session after the idle timeout.
    fn wait(&mut self, now: Instant, events: &mut dyn FnMut(Event)) -> Result<(), Error> {
        let Some(broken) = &mut self.broken else { return Ok(()) };
        let lasted = now.duration_since(broken.since);
        if lasted >= TOLD_AFTER && !broken.reported {
            broken.reported = true;
            let rest = self.idle_timeout.saturating_sub(lasted).as_secs_f64();
            events(match self.endless {
                true => Event::warning(format!("{}; waiting for the network", broken.why)),
                false => {
                    let message =
                        format!("{}; the session waits up to {rest:.0} s for the network", broken.why);
                    Event::warning_of(Setting::Timeout, message)
                }
            });
        }
        if lasted < self.idle_timeout || self.endless {
            return Ok(());
        }
        let error =
            self.broken.take().map(|broken| Error::System(SystemError::Outage { lasted, why: broken.why }));
        error.map_or(Ok(()), Err)
    }

    fn end(&mut self, events: &mut dyn FnMut(Event)) {
        if let Some(broken) = self.broken.take().filter(|broken| broken.reported) {
            let lasted = broken.since.elapsed().as_secs_f64();
            events(Event::warning(format!("the network is back after {lasted:.1} s; the session continues")));
        }
    }
}

fn same_place(one: &Choice, other: &Choice) -> bool {
    (one.chosen.index, one.local) == (other.chosen.index, other.local)
}

/// Returns the result of a session; if the outage `gone` prevented it, returns the outage as the error.
pub(crate) fn explained<T>(report: Result<T, Error>, gone: Option<Error>) -> Result<T, Error> {
    match (report, gone) {
        (Err(error), Some(gone)) if error.may_be_the_network() => Err(gone),
        (report, _) => report,
    }
}

/// Returns the result of receiving; temporary network errors count as zero datagrams.
pub(crate) fn received(outcome: Result<usize, NetError>) -> Result<usize, Error> {
    match outcome {
        Err(error) if error.may_pass() => Ok(0),
        outcome => Ok(outcome?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_transport::error::Class;
    use std::net::SocketAddr;

    const GROUP: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(239, 255, 70, 1));

    fn outage(idle_timeout: Duration) -> Outage {
        Outage::new(GROUP, None, idle_timeout, Moves::Anywhere)
    }

    fn denied() -> NetError {
        NetError::Denied { to: SocketAddr::new(GROUP, 5777) }
    }

    #[test]
    fn errors_before_the_first_datagram_and_permanent_errors_fail() {
        let mut outage = outage(Duration::from_secs(60));
        assert!(outage.failed(denied(), &mut |_| ()).is_err(), "nothing has left yet");
        outage.works(&mut |_| ());
        assert!(outage.failed(denied(), &mut |_| ()).is_ok() && outage.holds());
        let error = outage.failed(NetError::TooLarge { size: 9000, mtu: 1472 }, &mut |_| ());
        assert!(
            matches!(error, Err(Error::System(SystemError::Net(NetError::TooLarge { .. })))),
            "{error:?}"
        );
    }

    #[test]
    fn outage_is_reported_once_and_ends_at_a_send_or_timeout() {
        let (mut outage, mut reported) = (outage(Duration::from_millis(700)), Vec::new());
        let mut emit = |event| reported.push(event);
        outage.works(&mut emit);
        let ended = loop {
            if let Err(error) = outage.failed(denied(), &mut emit) {
                break error;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        assert_eq!(ended.class(), Class::System);
        assert!(ended.to_string().contains("packet filter"), "{ended}");
        assert!(!outage.holds());
        outage.works(&mut emit);
        assert!(
            matches!(&reported[..], [Event::Warning { concerns: Some(Setting::Timeout), .. }]),
            "{reported:?}"
        );
        let mut listener = Outage::of_listener(GROUP, None, Duration::ZERO);
        assert!(listener.failed(denied(), &mut |_| ()).is_ok(), "it waits for a session as long as it takes");
        listener.ends_by_timeout(true);
        assert!(listener.failed(denied(), &mut |_| ()).is_err());
    }
}
