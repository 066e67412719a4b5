#![no_main]

#[path = "../pgm.rs"]
mod pgm;

libfuzzer_sys::fuzz_target!(|input: &[u8]| pgm::pgm(input));
