//! Disciplines as text, and how they are made of it: what each discipline's file says of itself.

use faircast_core::spec::{Described, SpecError};
use faircast_core::time::{Rate, Span};

/// A discipline as text: `NAME` alone, or `NAME,OPTIONS`.
pub(crate) trait Written: Sized {
    /// Its name.
    const NAME: &'static str;
    /// How it is written, for those who wrote something else.
    const FORM: &'static str;
    /// Its options, for people.
    fn described() -> Vec<Described>;
    /// The discipline itself.
    type Made;
    /// From what stands behind the name.
    fn read(options: &str) -> Result<Self, SpecError>;
    /// Whether the values fit one another and make sense.
    fn check(&self) -> Result<(), SpecError>;
    /// What stands behind the name, in full: it reads back as the same.
    fn options(&self) -> String;
    /// Make it, for a link of this rate and propagation delay.
    fn make(&self, rate: Rate, delay: Span) -> Self::Made;
}
