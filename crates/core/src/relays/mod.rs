//! Relays: what every one must keep to. There is no scheme with relays yet.

mod conformance;
