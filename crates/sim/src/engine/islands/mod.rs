//! Islands: parts of a network that are simulated at the same time.
//!
//! A [`plan`](plan::Plan) names the island of each link and node; `build/division.rs` makes it. The packets that cross between
//! islands are messages ([`border`]), which are exchanged between rounds ([`rounds`]). A round is shorter than the delay between
//! islands. The order of the calendar depends only on its entries, and every node and link has its own random numbers, so an island
//! processes its entries in the same order as an engine without islands. The outcome depends neither on the division nor on the
//! number of threads.
//!
//! An island has the numbers of the whole network, but only the state of its own hosts and links (`build/deal.rs`). After the run,
//! the first island takes the state of the others ([`reunion`]).

pub mod border;
pub mod plan;
mod reunion;
pub mod rounds;
pub mod sets;
