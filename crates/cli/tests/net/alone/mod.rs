//! Tests during which no other lab may run ([`faircast_testkit::Company::Alone`]). They are in one module, so that they run in
//! sequence and other tests pause only once.

mod agents;
mod doctor;
mod emu;
mod flooding;
mod large_group;
mod late;
mod norm;
mod pgm;
mod routers;
mod security;
mod slow;
mod tree;
mod twin;
mod udpcast;
mod unicast;
mod window;
