//! Relays: the promises of every one. Schemes with agents make theirs themselves ([`crate::schemes::Scheme::agents`]).

mod conformance;
