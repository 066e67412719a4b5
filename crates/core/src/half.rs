//! 16-bit numbers in marks, for quantities that are never negative: rates, levels and times.
//!
//! ```text
//!  15        10 9                   0
//! +------------+---------------------+
//! | exponent e | fraction f          |    2^(e - 20) * (1 + f / 1024)
//! +------------+---------------------+
//! ```
//!
//! Code 0 is zero, 0xffff is infinity. The other codes represent 1.0e-6 to 1.7e13 with an error of at most 0.05 %. One format
//! covers bit/s (1 bit/s to 17 Tbit/s), seconds (from one microsecond) and levels without a unit. Numbers below this range become
//! the smallest code or zero, numbers above it infinity.

const FRACTION_BITS: u32 = 10;
const BIAS: i32 = 20;
const INFINITY: u16 = 0xffff;
/// Difference between the upper bits of an `f32` and the code of the same number: the two formats have different exponent biases.
const F32_OFFSET: u32 = ((127 - BIAS) as u32) << FRACTION_BITS;

/// Largest relative error of a number within the range of the codes.
pub const ERROR: f64 = 1.0 / 2048.0;

/// A 16-bit number as stored in a packet: half the size of an `f32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Half(pub u16);

impl Half {
    /// Returns the number.
    pub fn get(self) -> f32 {
        decode(self.0)
    }
}

impl From<f32> for Half {
    fn from(value: f32) -> Half {
        Half(encode(value))
    }
}

/// Returns the nearest code. Not-a-number and negative numbers become zero.
pub fn encode(value: f32) -> u16 {
    if value.is_nan() || value <= 0.0 {
        return 0;
    }
    // The bits of a positive `f32`, read as an integer, grow with the number. So if rounding overflows the fraction, the carry
    // increments the exponent, which is correct.
    let rounded = (value.to_bits() + (1 << (22 - FRACTION_BITS))) >> (23 - FRACTION_BITS);
    rounded.saturating_sub(F32_OFFSET).min(u32::from(INFINITY)) as u16
}

/// Returns the number of a code.
pub fn decode(code: u16) -> f32 {
    match code {
        0 => 0.0,
        INFINITY => f32::INFINITY,
        _ => f32::from_bits((u32::from(code) + F32_OFFSET) << (23 - FRACTION_BITS)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_unchanged_by_decoding_and_encoding() {
        for code in 0..=u16::MAX {
            assert_eq!(encode(decode(code)), code, "{code:#06x}");
        }
    }

    #[test]
    fn rounding_error_is_below_a_twentieth_of_a_percent() {
        let mut value = 2e-6_f32;
        while value < 1.7e13 {
            let error = (f64::from(decode(encode(value))) / f64::from(value) - 1.0).abs();
            assert!(error <= ERROR, "{value}: {error}");
            value *= 1.000_37;
        }
    }

    #[test]
    fn numbers_outside_the_range_become_zero_or_infinity() {
        assert_eq!(decode(encode(0.0)), 0.0);
        assert_eq!(decode(encode(-3.0)), 0.0);
        assert_eq!(decode(encode(f32::NAN)), 0.0);
        assert_eq!(decode(encode(1e-30)), 0.0);
        assert_eq!(decode(encode(f32::INFINITY)), f32::INFINITY);
        assert_eq!(decode(encode(f32::MAX)), f32::INFINITY);
    }

    #[test]
    fn decoded_values_increase_with_the_code() {
        assert!((1..=u16::MAX).all(|code| decode(code) > decode(code - 1)));
    }
}
