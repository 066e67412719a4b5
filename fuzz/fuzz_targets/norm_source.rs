#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| faircast_norm::fuzzing::source(input));
