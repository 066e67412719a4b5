#![no_main]

#[path = "../texts.rs"]
#[allow(dead_code, reason = "every target uses a part")]
mod texts;

libfuzzer_sys::fuzz_target!(|input: &[u8]| texts::scenario(input));
