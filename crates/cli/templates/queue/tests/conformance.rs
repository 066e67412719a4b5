//! The properties that every queue discipline must have.

use faircast_aqm::conformance;

#[test]
fn discipline_has_the_properties_of_all_disciplines() {
    my_name::register();
    for text in ["own:my-name,limit=20", "own:my-name,limit=20,ecn"] {
        conformance::check(text.parse().expect("registered"), 20);
    }
}
