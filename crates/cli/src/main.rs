//! The faircast command.
fn main() {}
