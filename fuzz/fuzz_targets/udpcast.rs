#![no_main]

#[path = "../udpcast.rs"]
mod udpcast;

libfuzzer_sys::fuzz_target!(|input: &[u8]| udpcast::udpcast(input));
