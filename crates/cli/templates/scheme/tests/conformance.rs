//! The properties that every scheme must have.

use faircast_core::schemes::conformance;

#[test]
fn scheme_fulfils_its_contract() {
    my_name::register();
    for text in ["own:my-name", "own:my-name,keep=0.9"] {
        conformance::check(&text.parse().expect("registered"));
    }
}
