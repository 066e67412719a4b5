//! Tests that have the machine to themselves ([`faircast_testkit::Company::Alone`]), in one module: they follow one another, and the
//! others stop once for all of them.

mod agents;
mod doctor;
mod flooding;
mod large_group;
mod late;
mod pgm;
mod routers;
mod security;
mod slow;
mod tree;
mod unicast;
mod window;
