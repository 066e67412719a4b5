//! Conformance tests of relays. Schemes with agents create their relays themselves ([`crate::schemes::Scheme::agents`]).

mod conformance;
