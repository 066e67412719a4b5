#![no_main]

#[path = "../norm.rs"]
mod norm;

libfuzzer_sys::fuzz_target!(|input: &[u8]| norm::norm(input));
