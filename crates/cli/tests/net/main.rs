//! End-to-end tests of the program between the hosts of a lab.

mod accounts;
mod advice;
mod agents;
mod alc;
mod alone;
mod attacks;
mod basic;
mod capture;
mod changed_files;
mod damage;
mod day;
mod delta;
mod devices;
mod doctor;
mod emulated;
mod failures;
mod filters;
mod kit;
mod late;
mod layered_streams;
mod layers;
mod memberships;
mod metadata;
mod one_way;
mod outages;
mod overwrite;
mod pages;
mod pgm;
mod receipts;
mod relay;
mod resume;
mod routers;
#[path = "../schema/mod.rs"]
#[expect(dead_code, reason = "the page is made by the unit tests")]
mod schema;
mod schemes;
mod security;
mod serve;
mod sessions;
mod signed;
mod stalled;
mod streams;
mod terminal;
mod tree;
mod udpcast;
mod unicast;
