//! The real program between the hosts of a lab: what it promises, from end to end.

mod alc;
mod attacks;
mod basic;
mod capture;
mod crowd;
mod damage;
mod emulated;
mod failures;
mod flooding;
mod kit;
mod late;
mod layered_streams;
mod layers;
mod memberships;
mod older;
mod outages;
mod pgm;
mod relay;
mod resume;
mod schemes;
mod security;
mod sessions;
mod signed;
mod slow;
mod streams;
mod window;
