//! Search for the earliest deadline among the many agents of a host.

use super::nanos::NEVER;

/// A tree of minima. The leaves are the deadlines of the agents; every inner node contains the minimum of its two children.
#[derive(Debug)]
pub struct Tournament {
    /// Nodes of the tree: the root at index 1, the leaves at indices from `leaves` upwards.
    earliest: Vec<u64>,
    leaves: usize,
}

impl Tournament {
    pub fn new(deadlines: impl ExactSizeIterator<Item = u64>) -> Tournament {
        let leaves = deadlines.len().next_power_of_two();
        let mut earliest = vec![NEVER; 2 * leaves];
        for (leaf, deadline) in earliest[leaves..].iter_mut().zip(deadlines) {
            *leaf = deadline;
        }
        for place in (1..leaves).rev() {
            earliest[place] = earliest[2 * place].min(earliest[2 * place + 1]);
        }
        Tournament { earliest, leaves }
    }

    /// Sets the deadline of an agent.
    pub fn set(&mut self, agent: usize, deadline: u64) {
        let mut place = self.leaves + agent;
        self.earliest[place] = deadline;
        while place > 1 {
            place /= 2;
            let earlier = self.earliest[2 * place].min(self.earliest[2 * place + 1]);
            if self.earliest[place] == earlier {
                return;
            }
            self.earliest[place] = earlier;
        }
    }

    /// Returns the earliest deadline.
    pub fn next(&self) -> u64 {
        self.earliest[1]
    }

    /// Returns the first agent with the earliest deadline.
    pub fn winner(&self) -> usize {
        let mut place = 1;
        while place < self.leaves {
            place = 2 * place + usize::from(self.earliest[2 * place] > self.earliest[1]);
        }
        place - self.leaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::rng::Rng;

    #[test]
    fn winner_is_the_first_agent_with_the_earliest_deadline() {
        for count in [1, 2, 3, 17, 64] {
            let mut deadlines: Vec<u64> = (0..count).map(|n| 10 + n).collect();
            let mut tournament = Tournament::new(deadlines.iter().copied());
            let mut rng = Rng::new(1, count);
            for _ in 0..2000 {
                let (agent, deadline) = (rng.below(count) as usize, rng.below(20));
                deadlines[agent] = deadline;
                tournament.set(agent, deadline);
                let earliest = deadlines.iter().min().copied();
                assert_eq!(Some(tournament.next()), earliest);
                assert_eq!(Some(tournament.winner()), deadlines.iter().position(|d| Some(*d) == earliest));
            }
        }
    }
}
