#![no_main]

#[path = "../alc.rs"]
mod alc;

libfuzzer_sys::fuzz_target!(|input: &[u8]| alc::alc(input));
