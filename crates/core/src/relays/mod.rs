//! Relays: what every one must keep to. Schemes with agents make theirs themselves ([`crate::schemes::Scheme::agents`]).

mod conformance;
