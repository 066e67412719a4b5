#![no_main]

#[path = "../entries.rs"]
#[allow(dead_code, reason = "every target uses a part")]
mod entries;

libfuzzer_sys::fuzz_target!(|input: &[u8]| entries::doctor(input));
