//! Quantities in few bits: round-trip times, rates, losses and group sizes (RFC 5401, RFC 5740).

use faircast_core::time::{Rate, Span};

/// Range of round-trip times, in seconds.
const RTT_MIN: f64 = 1e-6;
const RTT_MAX: f64 = 1_000.0;
/// Round-trip times up to this code are linear, larger ones are logarithmic.
const LINEAR: u8 = 31;
/// Number of codes by which a round-trip time grows by the factor e.
const STEPS: f64 = 13.0;
/// Number of mantissas of a rate: its mantissa, 1 to 10, is a multiple of a tenth of this fraction.
const MANTISSAS: f64 = 4_096.0;

/// Returns the code of a round-trip time. The decoded time is at least as long, except for rounding below 33 us.
#[must_use]
pub fn rtt_code(rtt: Span) -> u8 {
    let secs = rtt.as_secs_f64().clamp(RTT_MIN, RTT_MAX);
    if secs < RTT_MIN * 33.0 {
        return ((secs / RTT_MIN) as u8).saturating_sub(1);
    }
    (255.0 - STEPS * (RTT_MAX / secs).ln()).ceil().clamp(0.0, 255.0) as u8
}

/// Returns the round-trip time of a code.
#[must_use]
pub fn rtt_of(code: u8) -> Span {
    let secs = match code {
        0..=LINEAR => (f64::from(code) + 1.0) * RTT_MIN,
        _ => RTT_MAX / (f64::from(255 - code) / STEPS).exp(),
    };
    Span::from_secs_f64(secs)
}

/// Returns the code of a rate: 12 bits of mantissa and 4 bits of decimal exponent, in bytes per second.
#[must_use]
pub fn rate_code(rate: Rate) -> u16 {
    let bytes = rate.bps() / 8.0;
    if !(bytes.is_finite() && bytes > 0.0) {
        return if bytes > 0.0 { u16::MAX } else { 0 };
    }
    let exponent = bytes.log10().floor().clamp(0.0, 15.0);
    let mantissa = (bytes / 10f64.powf(exponent) * MANTISSAS / 10.0).round();
    match mantissa >= MANTISSAS {
        true if exponent < 15.0 => ((MANTISSAS / 10.0).round() as u16) << 4 | (exponent as u16 + 1),
        true => u16::MAX,
        false => (mantissa as u16) << 4 | exponent as u16,
    }
}

/// Returns the rate of a code.
#[must_use]
pub fn rate_of(code: u16) -> Rate {
    let mantissa = f64::from(code >> 4) * 10.0 / MANTISSAS;
    Rate::from_bps(8.0 * mantissa * 10f64.powi(i32::from(code & 15)))
}

/// Returns the fraction of lost packets of a code.
#[must_use]
pub fn loss_of(code: u16) -> f64 {
    f64::from(code) / f64::from(u16::MAX)
}

/// Returns the code of a group size: the smallest size that is not below `members`. The sizes are 10, 50, 100, 500 and so on.
#[must_use]
pub fn group_size_code(members: usize) -> u8 {
    let size = |code: u8| (if code & 8 == 0 { 1 } else { 5 }) * 10u64.pow(u32::from(code & 7) + 1);
    let codes = (0..8).flat_map(|exponent| [exponent, exponent | 8]);
    codes.into_iter().find(|code| size(*code) >= members as u64).unwrap_or(15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_times_are_rounded_up_by_at_most_a_thirteenth() {
        for secs in [33e-6, 1e-4, 0.001, 0.02, 0.5, 1.0, 10.0, 1_000.0] {
            let decoded = rtt_of(rtt_code(Span::from_secs_f64(secs))).as_secs_f64();
            assert!(decoded >= secs * 0.999_999 && decoded < secs * 1.081, "{secs}: {decoded}");
        }
        assert_eq!([1, 2, 32].map(|micros| rtt_code(Span::from_micros(micros))), [0, 1, 31]);
        // The values that libnorm sends for 0.5 s and 1 s.
        assert_eq!([500, 1_000].map(|millis| rtt_code(Span::from_millis(millis))), [157, 166]);
        for code in 0..=255 {
            assert!(rtt_code(rtt_of(code)).abs_diff(code) <= 1, "{code}");
        }
    }

    #[test]
    fn rates_have_three_digits() {
        for bps in [8.0, 80.0, 12_345.0, 1e6, 999_999.0 * 8.0, 1e9, 1e12] {
            let decoded = rate_of(rate_code(Rate::from_bps(bps))).bps();
            assert!((decoded / bps - 1.0).abs() < 2e-3, "{bps}: {decoded}");
        }
        assert_eq!(rate_code(Rate::ZERO), 0);
        assert_eq!(rate_code(Rate::UNLIMITED), u16::MAX);
        // 9.9999e5 bytes per second round to 1.0e6.
        assert_eq!(rate_code(Rate::from_bps(8.0 * 999_990.0)), 410 << 4 | 6);
    }

    #[test]
    fn group_sizes_are_the_next_step() {
        assert_eq!([0, 10, 11, 51, 100, 1_000].map(group_size_code), [0, 0, 8, 1, 1, 2]);
        assert_eq!(group_size_code(usize::MAX), 15);
    }
}
