//! Rates in 12 bits and times in 8 (RFC 4654, 2.2.1): the codings that the RFC suggests for its headers.
//!
//! ```text
//!   rate  |eeeee|mmmmmmm|  (1 + m / 128) * 2^e bytes per second
//!   time  |eeee|mmmm|      (1 + m / 16) * 2^e milliseconds
//! ```
//!
//! Zero codes the smallest value. The native wire format carries whole floats instead; these are for headers that have no
//! room for them.

use crate::time::{Rate, Span};

const RATE_MANTISSA: u32 = 7;
const RATE_EXPONENT: u32 = 5;
const TIME_MANTISSA: u32 = 4;
const TIME_EXPONENT: u32 = 4;

/// A rate in 12 bits, rounded; between 8 bit/s and 68 Gbit/s.
pub fn encode_rate(rate: Rate) -> u16 {
    encode(rate.bps() / 8.0, RATE_EXPONENT, RATE_MANTISSA)
}

/// The rate that 12 bits stand for; higher bits are ignored.
pub fn decode_rate(code: u16) -> Rate {
    Rate::from_bps(8.0 * decode(code & 0xfff, RATE_MANTISSA))
}

/// A time in 8 bits, rounded; between 1 ms and 64 s.
pub fn encode_time(span: Span) -> u8 {
    // 4 + 4 bits fit.
    encode(span.as_secs_f64() * 1e3, TIME_EXPONENT, TIME_MANTISSA) as u8
}

/// The time that 8 bits stand for.
pub fn decode_time(code: u8) -> Span {
    Span::from_secs_f64(decode(u16::from(code), TIME_MANTISSA) / 1e3)
}

/// The nearest code; the smallest or largest one for values beyond.
fn encode(value: f64, exponent_bits: u32, mantissa_bits: u32) -> u16 {
    let steps = f64::from(1u32 << mantissa_bits);
    let largest = (1u32 << (exponent_bits + mantissa_bits)) - 1;
    if value.is_nan() || value <= 1.0 {
        return 0;
    }
    let exponent = value.log2().floor();
    let fraction = value / exponent.exp2() - 1.0;
    // A fraction that rounds to one carries into the exponent, as it should.
    let code = exponent * steps + (fraction * steps).round();
    code.min(f64::from(largest)) as u16
}

fn decode(code: u16, mantissa_bits: u32) -> f64 {
    let steps = f64::from(1u32 << mantissa_bits);
    let mantissa = f64::from(code & ((1 << mantissa_bits) - 1));
    (1.0 + mantissa / steps) * f64::from(code >> mantissa_bits).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T-TF-13.
    #[test]
    fn rates_are_coded_within_one_percent_and_times_within_six() {
        let mut worst = (0f64, 0f64);
        for step in 0..20_000 {
            let bps = 8.0 * 1.001f64.powi(step);
            worst.0 = worst.0.max((decode_rate(encode_rate(Rate::from_bps(bps))).bps() / bps - 1.0).abs());
            let secs = 0.001 * 1.0005f64.powi(step);
            let span = Span::from_secs_f64(secs);
            worst.1 = worst.1.max((decode_time(encode_time(span)).as_secs_f64() / secs - 1.0).abs());
            if bps > 60e9 || secs > 60.0 {
                break;
            }
        }
        assert!(worst.0 < 0.01 && worst.1 < 0.06, "{worst:?}");
    }

    #[test]
    fn every_code_gives_itself_back() {
        assert!((0..1 << 12).all(|code| encode_rate(decode_rate(code)) == code));
        assert!((0..=u8::MAX).all(|code| encode_time(decode_time(code)) == code));
    }

    #[test]
    fn what_is_beyond_the_codes_is_the_nearest_code() {
        for (bps, code) in [(0.0, 0), (-1.0, 0), (f64::NAN, 0), (1e15, 0xfff), (f64::INFINITY, 0xfff)] {
            assert_eq!(encode_rate(Rate::from_bps(bps)), code, "{bps}");
        }
        assert_eq!((encode_time(Span::ZERO), encode_time(Span::MAX)), (0, 0xff));
    }
}
