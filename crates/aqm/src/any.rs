//! One type for all disciplines.

use crate::discipline::Discipline;
use crate::drop_tail::DropTail;
use crate::qdisc::Qdisc;

/// Any discipline, as the variant that a link uses. A discipline from another crate is boxed.
#[derive(Debug)]
pub enum AnyDiscipline {
    /// Drop-tail. Links have a fast path for this discipline.
    DropTail(DropTail),
    /// Decides at arrival.
    AtArrival(Box<dyn Discipline>),
    /// Holds packets.
    Holds(Box<dyn Qdisc>),
}

impl From<DropTail> for AnyDiscipline {
    fn from(drop_tail: DropTail) -> AnyDiscipline {
        AnyDiscipline::DropTail(drop_tail)
    }
}

impl From<Box<dyn Discipline>> for AnyDiscipline {
    fn from(discipline: Box<dyn Discipline>) -> AnyDiscipline {
        AnyDiscipline::AtArrival(discipline)
    }
}

impl From<Box<dyn Qdisc>> for AnyDiscipline {
    fn from(qdisc: Box<dyn Qdisc>) -> AnyDiscipline {
        AnyDiscipline::Holds(qdisc)
    }
}
