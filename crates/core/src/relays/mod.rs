//! Conformance tests of relays. The relays themselves are agents of a scheme, which creates them
//! ([`crate::schemes::Scheme::agents`]).

mod conformance;
