//! The fast Fourier transform.

/// A complex number.
pub(super) type Complex = (f64, f64);

/// Replaces each `values[j]` by the sum over `k` of `values[k] exp(-2 pi i j k / n)`. The number of values must be a power of
/// two.
pub(super) fn transform(values: &mut [Complex]) {
    let count = values.len();
    debug_assert!(count.is_power_of_two(), "the transform halves");
    let bits = count.trailing_zeros();
    for place in 0..count {
        let other = if bits == 0 { place } else { place.reverse_bits() >> (usize::BITS - bits) };
        if place < other {
            values.swap(place, other);
        }
    }
    let roots: Vec<Complex> = (0..count / 2)
        .map(|k| (-2.0 * std::f64::consts::PI * k as f64 / count as f64).sin_cos())
        .map(|(sin, cos)| (cos, sin))
        .collect();
    let mut half = 1;
    while half < count {
        let stride = count / (2 * half);
        for start in (0..count).step_by(2 * half) {
            for k in 0..half {
                let (cos, sin) = roots[k * stride];
                let (re, im) = values[start + k + half];
                let turned = (re * cos - im * sin, re * sin + im * cos);
                let low = values[start + k];
                values[start + k] = (low.0 + turned.0, low.1 + turned.1);
                values[start + k + half] = (low.0 - turned.0, low.1 - turned.1);
            }
        }
        half *= 2;
    }
}

/// Returns the periodogram `|sum x_t exp(-i l t)|^2 / (2 pi n)` of a series, whose mean is subtracted first. The frequencies are
/// `2 pi j / n`, for `j` from 1 to below `n / 2`. The length of the series must be a power of two.
pub(super) fn periodogram(series: &[f64]) -> Vec<f64> {
    let count = series.len() as f64;
    let mean = series.iter().sum::<f64>() / count;
    let mut values: Vec<Complex> = series.iter().map(|value| (value - mean, 0.0)).collect();
    transform(&mut values);
    let unit = 1.0 / (2.0 * std::f64::consts::PI * count);
    values[1..series.len() / 2].iter().map(|(re, im)| (re * re + im * im) * unit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::rng::Rng;

    #[test]
    fn fast_transform_equals_the_fourier_sum() {
        let mut rng = Rng::new(1, 1);
        let series: Vec<Complex> = (0..32).map(|_| (rng.unit(), rng.unit())).collect();
        let mut fast = series.clone();
        transform(&mut fast);
        for (j, (re, im)) in fast.iter().enumerate() {
            let (mut sum_re, mut sum_im) = (0.0, 0.0);
            for (k, (a, b)) in series.iter().enumerate() {
                let (sin, cos) = (-2.0 * std::f64::consts::PI * (j * k) as f64 / 32.0).sin_cos();
                sum_re += a * cos - b * sin;
                sum_im += a * sin + b * cos;
            }
            assert!((re - sum_re).abs() < 1e-12 && (im - sum_im).abs() < 1e-12);
        }
    }
}
