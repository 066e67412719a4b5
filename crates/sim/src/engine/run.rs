//! The engine: a run of a network, divided into islands or not.

use super::build::Builder;
use super::check::{SimError, check};
use super::copies::Copies;
use super::islands::plan::Plan;
use super::islands::rounds::Rounds;
use super::time_of;
use crate::events::Event;
use crate::network::{Network, Options, PacketTransform};
use crate::outcome::Outcome;
use crate::snapshot::{Snapshot, SnapshotError};
use faircast_core::time::Time;
use std::sync::Arc;

/// A network during a run.
///
/// With [`Options::islands`], the engine divides the network into islands. The thread that runs the engine simulates all islands
/// itself, together with the threads that execute [`Helper::help`].
pub struct Engine {
    rounds: Arc<Rounds>,
    plan: Plan,
    copies: Copies,
    until: u64,
    /// Time up to which [`Engine::run_until`] was called.
    reached: u64,
}

/// Work for another thread: takes part in the run of an [`Engine`].
pub struct Helper {
    rounds: Arc<Rounds>,
    favourite: usize,
}

impl Helper {
    /// Simulates islands of the engine, whenever the engine runs, until the engine is finished or dropped.
    pub fn help(self) {
        self.rounds.help(self.favourite);
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.rounds.end();
    }
}

impl Engine {
    pub(super) fn build(
        network: &Network,
        options: &Options,
        passage: Option<Box<dyn PacketTransform>>,
    ) -> Result<Engine, SimError> {
        check(network)?;
        // All packets pass the transformation, in the order of the calendar.
        let copied = if passage.is_some() { None } else { Copies::of(network) };
        if let Some((copies, copied)) = copied
            && let Ok(builder) = Builder::new(&copied, options)
        {
            return Engine::of(builder, options, None, copies);
        }
        Engine::of(Builder::new(network, options)?, options, passage, Copies::default())
    }

    fn of(
        builder: Builder<'_>,
        options: &Options,
        passage: Option<Box<dyn PacketTransform>>,
        copies: Copies,
    ) -> Result<Engine, SimError> {
        let plan = if passage.is_some() { Plan::whole() } else { builder.divide(options.islands) };
        let islands = builder.islands(&plan, passage)?;
        let rounds = Arc::new(Rounds::new(islands, plan.lookahead));
        Ok(Engine { rounds, plan, copies, until: options.until.as_nanos(), reached: 0 })
    }

    /// Returns work for one thread for each island but the first. A thread that executes [`Helper::help`] makes the run faster; the
    /// outcome does not depend on the number of such threads.
    pub fn helpers(&self) -> Vec<Helper> {
        let helper = |favourite| Helper { rounds: Arc::clone(&self.rounds), favourite };
        (1..self.rounds.count()).map(helper).collect()
    }

    /// Returns the number of islands.
    pub fn islands(&self) -> usize {
        self.rounds.count()
    }

    /// Runs to the end.
    pub fn run(&mut self) {
        self.run_until(time_of(self.until));
        loop {
            let before = self.arrivals();
            self.rounds.catch_up(self.until);
            self.run_until(time_of(self.until));
            if self.arrivals() == before {
                return;
            }
        }
    }

    /// Runs to `moment`, but not beyond the end. The outcome does not depend on the steps.
    pub fn run_until(&mut self, moment: Time) {
        let until = moment.as_nanos().min(self.until);
        self.reached = self.reached.max(until);
        self.rounds.run_to(until);
    }

    /// Returns the number of packets carried over links so far; each link counts separately.
    pub fn traversals(&self) -> u64 {
        let mut sum = 0;
        self.rounds.each(|island| sum += island.traversals);
        sum
    }

    /// Returns the number of packets that have arrived at senders and receivers so far.
    pub fn arrivals(&self) -> u64 {
        let mut sum = 0;
        self.rounds.each(|island| sum += island.arrivals);
        sum
    }

    /// Returns the state of the run at `at`, a multiple of [`Options::bin`](crate::Options::bin) and
    /// [`Options::sample`](crate::Options::sample). A snapshot affects neither the outcome nor later snapshots.
    ///
    /// # Errors
    /// When the run has not reached `at`, or `at` is not a multiple of both the bin length and the sampling period.
    pub fn snapshot(&mut self, at: Time) -> Result<Snapshot, SnapshotError> {
        if at.as_nanos() > self.reached {
            return Err(SnapshotError::NotReached { at, reached: time_of(self.reached) });
        }
        self.rounds.catch_up(self.reached);
        let parts = self.rounds.all().into_iter().map(|mut island| island.snapshot(at));
        let whole = parts.reduce(|whole, part| Ok(whole?.with(part?)));
        whole.expect("a plan has at least one island")
    }

    /// Returns the events since the last call in order of time. Empty unless [`Options::events`](crate::Options::events) requests
    /// events.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.rounds.catch_up(self.reached);
        let reached = time_of(self.reached);
        let mut events = Vec::new();
        self.rounds.each(|island| events.append(&mut island.take_events(reached)));
        events.sort_by_key(Event::order);
        events
    }

    /// Returns the outcome of the run.
    ///
    /// # Errors
    /// When a role requested an action that the simulator cannot carry out for this role.
    pub fn finish(mut self, network: &Network) -> Result<Outcome, SimError> {
        let log = self.take_events();
        let mut islands = self.rounds.all();
        let (first, others) = islands.split_first_mut().expect("a plan has at least one island");
        for (number, other) in (1..).zip(others) {
            first.reunite(other, &self.plan, number);
        }
        let mut outcome = Outcome { log, ..first.finish(network)? };
        self.copies.fold(&mut outcome);
        Ok(outcome)
    }
}
