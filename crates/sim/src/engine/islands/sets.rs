//! Disjoint sets of numbers.

/// Disjoint sets of the numbers from zero (union-find).
#[derive(Debug, Clone)]
pub struct Sets {
    parents: Vec<u32>,
}

impl Sets {
    /// Returns sets of one number each.
    pub fn new(numbers: usize) -> Sets {
        Sets { parents: (0..numbers as u32).collect() }
    }

    /// Returns the number that stands for the set of `it`.
    pub fn of(&mut self, mut it: u32) -> u32 {
        while self.parents[it as usize] != it {
            let above = self.parents[self.parents[it as usize] as usize];
            self.parents[it as usize] = above;
            it = above;
        }
        it
    }

    /// Unites the sets of two numbers. The lower one of the numbers that stand for the sets stands for the union.
    pub fn unite(&mut self, a: u32, b: u32) {
        let (a, b) = (self.of(a), self.of(b));
        self.parents[a.max(b) as usize] = a.min(b);
    }
}
