//! Approximate widths of words. The font of the viewer is unknown, so the widths of a wide font are used.

/// Widths of the printable ASCII characters in Helvetica, in thousandths of the font size; the first is the space.
const WIDTHS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556,
    556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278,
    500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469,
    556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500,
    278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];
/// Maximum width of other sans-serif fonts relative to Helvetica.
const WIDER: f64 = 1.14;

/// Width of bold letters relative to regular ones.
pub const BOLD: f64 = 1.12;

/// Width of bold letters relative to regular letters in Helvetica.
pub const BOLD_HELVETICA: f64 = 1.06;

/// Returns the estimated width of `text` at this font size.
pub fn width(text: &str, size: f64) -> f64 {
    helvetica(text, size) * WIDER
}

/// Returns the width of `text` in Helvetica.
pub fn helvetica(text: &str, size: f64) -> f64 {
    let thousandths: u32 = text.chars().map(|c| u32::from(width_of(c))).sum();
    f64::from(thousandths) / 1000.0 * size
}

fn width_of(c: char) -> u16 {
    match (c as usize).checked_sub(32) {
        _ if c == '\u{202f}' => 200,
        Some(place) if place < WIDTHS.len() => WIDTHS[place],
        _ => 600,
    }
}

/// Splits `text` into lines of at most `widest`.
pub fn wrapped(text: &str, size: f64, widest: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(" ", size) + width(word, size) <= widest => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
