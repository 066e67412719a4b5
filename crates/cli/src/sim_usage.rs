//! Requests to the simulator that make no sense.

use std::io;
use std::path::PathBuf;

/// The request makes no sense: found before anything is run.
#[derive(Debug, thiserror::Error)]
pub enum SimUsage {
    /// A scenario that cannot be read.
    #[error("cannot read the scenario {}: {source}; `faircast sim new dumbbell > FILE` makes one", .path.display())]
    ScenarioUnreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A scenario with mistakes, which have been reported in full.
    #[error("{} cannot be run: {}", .path.display(), crate::units::count(*.mistakes as u64, "mistake"))]
    ScenarioWrong {
        /// The file.
        path: PathBuf,
        /// How many.
        mistakes: usize,
    },
    /// A change of a scenario that cannot be made.
    #[error("{0}")]
    Setting(#[from] faircast_experiments::edit::EditError),
    /// A template that is not there.
    #[error("there is no template `{name}`; choose one of {known}")]
    NoSuchTemplate {
        /// As given.
        name: String,
        /// Those that exist.
        known: String,
    },
    /// A file that is already there.
    #[error("{} exists; choose another name, or overwrite it with --force", .0.display())]
    ScenarioExists(PathBuf),
    /// A curve that a scenario does not have.
    #[error("{0}; write FLOW or FLOW:RECEIVER")]
    NoCurve(faircast_experiments::figures::curves::UnknownCurve),
    /// Packets are wanted, but no link is tapped.
    #[error(
        "the scenario taps no link; add `[probe]` with `taps = \"FROM->TO\"` to choose whose packets are captured"
    )]
    NoTaps,
    /// A scenario without the flow that is to be replaced.
    #[error("the scenario has no {what}; its flows are: {known}")]
    NoSuchFlow {
        /// Name that was looked for.
        what: String,
        /// Those that exist.
        known: String,
    },
    /// No such reproduction.
    #[error(transparent)]
    NoSuchReproduction(#[from] faircast_experiments::repro::NoSuchEntry),
}
