//! The documentation and the dissector agree with the code.

mod common;

use faircast_wire::fields;

#[test]
fn wire_format_documentation_is_current() {
    common::agree("../../docs/wire.md", fields::markdown());
}
