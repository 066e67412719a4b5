//! Ticks and their labels.

/// Mapping of values to an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Equal differences have equal distances.
    #[default]
    Linear,
    /// Equal ratios of values have equal distances; the range must be positive.
    Logarithmic,
}

/// Returns about `wanted` round numbers between `from` and `to`. `from` and `to` are included if they are round numbers.
pub fn linear_ticks(from: f64, to: f64, wanted: usize) -> Vec<f64> {
    let step = step(from, to, wanted);
    let (first, last) = ((from / step - 1e-9).ceil() as i64, (to / step + 1e-9).floor() as i64);
    (first..=last).map(|number| number as f64 * step).collect()
}

/// Returns powers of ten between `from` and `to`. If there are only a few, also returns two and five times the powers of ten.
pub fn logarithmic_ticks(from: f64, to: f64) -> Vec<f64> {
    let (first, last) = (from.log10().floor() as i32, to.log10().ceil() as i32);
    let factors: &[f64] = if last - first <= 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let inside = |value: &f64| *value >= from * (1.0 - 1e-9) && *value <= to * (1.0 + 1e-9);
    (first..=last)
        .flat_map(|power| factors.iter().map(move |factor| factor * 10.0_f64.powi(power)))
        .filter(inside)
        .collect()
}

/// Returns the range from `from` to `to`, extended to whole steps. The axis then begins and ends at ticks.
pub fn rounded(from: f64, to: f64, wanted: usize) -> (f64, f64) {
    let step = step(from, to, wanted);
    ((from / step + 1e-9).floor() * step, (to / step - 1e-9).ceil() * step)
}

/// Returns a step of 1, 2, 2.5 or 5 times a power of ten that gives about `wanted` ticks.
fn step(from: f64, to: f64, wanted: usize) -> f64 {
    let raw = ((to - from) / wanted.max(1) as f64).max(f64::MIN_POSITIVE);
    let power = 10.0_f64.powf(raw.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|factor| factor * power >= raw * 0.999);
    factor.unwrap_or(10.0) * power
}

/// Returns the label of a tick. The label has the number of decimals that `step` needs, and spaces between groups of three
/// digits.
pub fn tick_label(value: f64, step: f64) -> String {
    if value.abs() < step * 1e-6 {
        return "0".into();
    }
    let decimals = (0..8).find(|&decimals| {
        let scaled = step * 10.0_f64.powi(decimals);
        (scaled - scaled.round()).abs() < 1e-6 * scaled
    });
    grouped(&format!("{value:.*}", decimals.unwrap_or(8) as usize))
}

/// Returns the number with three significant digits, and with spaces between groups of three digits.
pub fn short(value: f64) -> String {
    if !value.is_finite() {
        return "-".into();
    }
    if value == 0.0 {
        return "0".into();
    }
    let decimals = (2 - value.abs().log10().floor() as i32).clamp(0, 6);
    let text = format!("{value:.*}", decimals as usize);
    grouped(&text)
}

/// Inserts narrow spaces between groups of three digits, for numbers of at least five digits.
fn grouped(text: &str) -> String {
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |rest| ("\u{2212}", rest));
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let mut out = String::from(sign);
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && whole.len() > 4 && (whole.len() - place) % 3 == 0 {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}
