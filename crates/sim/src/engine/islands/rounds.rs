//! Rounds of islands.
//!
//! In a round, every island processes its entries up to a common horizon, and exchanges packets with the others afterwards. The
//! horizon is the earliest entry of all islands plus the lookahead, so no packet of this round arrives before the horizon. Any
//! number of threads take part: each takes the next island that nobody has taken in this round, first the one it had before.

use super::border::Crossing;
use crate::engine::Island;
use crate::engine::nanos::NEVER;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The islands of a run, which several threads share.
pub struct Rounds {
    islands: Vec<Mutex<Island>>,
    /// Packets for island `a` from island `b`, at `a * islands + b`: those of even rounds, and those of odd rounds. An island thus
    /// gets no packets of the present round, whichever thread is faster.
    mail: [Vec<Mutex<Vec<Crossing>>>; 2],
    lookahead: u64,
    round: Mutex<Round>,
    /// Number of changes of the round that threads wait for.
    changes: AtomicU32,
    changed: Condvar,
}

#[derive(Debug)]
struct Round {
    phase: Phase,
    task: Task,
    number: usize,
    /// Last time to process.
    until: u64,
    horizon: u64,
    /// By island: whether a thread has taken it.
    taken: Vec<bool>,
    /// Number of islands that are not complete.
    left: usize,
    /// Earliest entry after the round.
    earliest: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The islands wait for the next step of the run.
    Idle,
    Running,
    /// The run is over, or a thread has panicked.
    Over,
}

/// Task of an island in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    /// Process the entries of the calendar.
    Entries,
    /// Process what has no entries in the calendar yet; see [`Island::catch_up_all`].
    Rest,
}

/// Number of looks at a change before a thread sleeps.
const LOOKS: u32 = 1_000;

impl Rounds {
    pub fn new(islands: Vec<Island>, lookahead: u64) -> Rounds {
        let count = islands.len();
        let taken = vec![true; count];
        let phase = Phase::Idle;
        Rounds {
            islands: islands.into_iter().map(Mutex::new).collect(),
            mail: [(); 2].map(|()| (0..count * count).map(|_| Mutex::default()).collect()),
            lookahead,
            round: Mutex::new(Round {
                phase,
                task: Task::Entries,
                number: 0,
                until: 0,
                horizon: 0,
                taken,
                left: 0,
                earliest: NEVER,
            }),
            changes: AtomicU32::new(0),
            changed: Condvar::new(),
        }
    }

    /// Returns the number of islands.
    pub const fn count(&self) -> usize {
        self.islands.len()
    }

    /// Returns all islands. Called between steps of the run only, as it waits for threads that process an island.
    pub fn all(&self) -> Vec<MutexGuard<'_, Island>> {
        self.islands.iter().map(lock).collect()
    }

    /// Calls `visit` with each island.
    pub fn each(&self, mut visit: impl FnMut(&mut Island)) {
        self.islands.iter().for_each(|island| visit(&mut lock(island)));
    }

    /// Processes all entries up to `until`.
    pub fn run_to(&self, until: u64) {
        if let [island] = &self.islands[..] {
            return lock(island).run_to(until);
        }
        let mut earliest = NEVER;
        for (number, island) in self.islands.iter().enumerate() {
            let island = &mut lock(island);
            (0..2).for_each(|round| self.fetch(number, island, round));
            earliest = earliest.min(island.calendar.next_time().unwrap_or(NEVER));
        }
        self.step(Task::Entries, until, earliest);
    }

    /// Processes everything up to `until` that has no entries in the calendar yet.
    pub fn catch_up(&self, until: u64) {
        match &self.islands[..] {
            [island] => lock(island).catch_up_all(until),
            _ => self.step(Task::Rest, until, until),
        }
    }

    /// Takes part in the rounds of a step of the run.
    fn step(&self, task: Task, until: u64, earliest: u64) {
        let mut round = lock(&self.round);
        assert!(round.phase == Phase::Idle, "a helper of this run has panicked");
        (round.task, round.until) = (task, until);
        self.begin(&mut round, earliest);
        drop(round);
        let end = self.take_part(0);
        assert!(end == Phase::Idle, "a helper of this run has panicked");
    }

    /// Takes part in all rounds until the run is over.
    pub fn help(&self, favourite: usize) {
        let mut seen = self.changes.load(Ordering::Acquire);
        while self.take_part(favourite) != Phase::Over {
            self.wait(&mut seen);
        }
    }

    /// Ends the run.
    pub fn end(&self) {
        lock(&self.round).phase = Phase::Over;
        self.announce();
    }

    /// Begins a round, or ends the step if the earliest entry is later.
    fn begin(&self, round: &mut Round, earliest: u64) {
        if earliest > round.until {
            round.phase = Phase::Idle;
        } else {
            round.phase = Phase::Running;
            round.number += 1;
            round.horizon = earliest.saturating_add(self.lookahead);
            round.taken.fill(false);
            (round.left, round.earliest) = (round.taken.len(), NEVER);
        }
        self.announce();
    }

    fn announce(&self) {
        self.changes.fetch_add(1, Ordering::Release);
        self.changed.notify_all();
    }

    /// Takes part in rounds until the step ends.
    fn take_part(&self, mut favourite: usize) -> Phase {
        let mut seen = self.changes.load(Ordering::Acquire);
        loop {
            let mut round = lock(&self.round);
            if round.phase != Phase::Running {
                return round.phase;
            }
            let free = |number: &usize| !round.taken[*number];
            let Some(number) = Some(favourite).filter(free).or_else(|| (0..self.count()).find(free)) else {
                drop(round);
                self.wait(&mut seen);
                continue;
            };
            favourite = number;
            round.taken[number] = true;
            let (task, this, until, horizon) = (round.task, round.number, round.until, round.horizon);
            drop(round);
            let mut turn = Turn { rounds: self, is_complete: false };
            let earliest = match task {
                Task::Entries => self.turn(number, this, until, horizon),
                Task::Rest => self.turn_of_rest(number, this, until),
            };
            turn.is_complete = true;
            let mut round = lock(&self.round);
            seen = self.changes.load(Ordering::Acquire);
            round.earliest = round.earliest.min(earliest);
            round.left -= 1;
            if round.left == 0 && round.phase == Phase::Running {
                let earliest = round.earliest;
                self.begin(&mut round, earliest);
            }
        }
    }

    /// Waits until the round has changed since `seen`.
    fn wait(&self, seen: &mut u32) {
        let is_new = || self.changes.load(Ordering::Acquire) != *seen;
        if !(0..LOOKS).any(|_| {
            std::hint::spin_loop();
            is_new()
        }) {
            let slept = self.changed.wait_while(lock(&self.round), |_| !is_new());
            drop(slept.unwrap_or_else(PoisonError::into_inner));
        }
        *seen = self.changes.load(Ordering::Acquire);
    }

    /// Processes a round of one island. Returns the earliest of its next entry and the packets that it has sent to others.
    fn turn(&self, number: usize, round: usize, until: u64, horizon: u64) -> u64 {
        let island = &mut lock(&self.islands[number]);
        self.fetch(number, island, round + 1);
        island.border.horizon = horizon;
        island.run_to(until.min(horizon - 1));
        let earliest = self.post(number, island, round);
        earliest.min(island.calendar.next_time().unwrap_or(NEVER))
    }

    /// Processes a round of one island that ends the step.
    fn turn_of_rest(&self, number: usize, round: usize, until: u64) -> u64 {
        let island = &mut lock(&self.islands[number]);
        self.fetch(number, island, round + 1);
        island.catch_up_all(until);
        self.post(number, island, round);
        NEVER
    }

    /// Gives the packets of an island to the others. Returns the earliest arrival.
    fn post(&self, number: usize, island: &mut Island, round: usize) -> u64 {
        let earliest = std::mem::replace(&mut island.border.earliest, NEVER);
        for (to, packets) in
            island.border.out.iter_mut().enumerate().filter(|(_, packets)| !packets.is_empty())
        {
            let mail = &mut lock(&self.mail[round % 2][to * self.count() + number]);
            if mail.is_empty() { std::mem::swap(&mut **mail, packets) } else { mail.append(packets) }
        }
        earliest
    }

    /// Gives an island the packets that other islands sent in rounds like this one, even or odd.
    fn fetch(&self, number: usize, island: &mut Island, round: usize) {
        for mail in &self.mail[round % 2][number * self.count()..(number + 1) * self.count()] {
            lock(mail).drain(..).for_each(|packet| island.import(packet));
        }
    }
}

/// A turn of an island. If it is dropped before it is complete, its thread has panicked, and the run is over.
struct Turn<'a> {
    rounds: &'a Rounds,
    is_complete: bool,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.is_complete {
            self.rounds.end();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
