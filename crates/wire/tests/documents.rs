//! The documentation and the dissector agree with the code.

mod common;

use faircast_wire::fields;

#[test]
fn the_format_page_is_fresh() {
    common::agree("../../docs/wire.md", fields::markdown());
}
