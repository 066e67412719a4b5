//! Output of a drawing as PDF, on one page of the drawing's size. The font is Helvetica, which every viewer has, so the file
//! contains no font.

use super::canvas::{Anchor, Bold, Canvas, Element, Letters, Place, Rim, Stroke};
use super::text;
use pdf_writer::types::{LineJoinStyle, TextRenderingMode};
use pdf_writer::{Content, Finish, Name, Pdf, Rect, Ref, Str, TextStr};
use std::collections::BTreeMap;

const CATALOG: i32 = 1;
const PAGES: i32 = 2;
const PAGE: i32 = 3;
const REGULAR: i32 = 4;
const BOLD: i32 = 5;
const CONTENT: i32 = 6;
const INFO: i32 = 7;
/// Number of the PDF object that is the first graphics state. Each graphics state has one opacity.
const STATES: i32 = 8;

/// Distance from an end of a quarter circle to its control point, as a share of the circle's radius.
const QUARTER: f64 = 0.552_284_75;

/// Returns the document.
pub fn document(canvas: &Canvas, width: f64, height: f64, title: &str) -> Vec<u8> {
    let mut page = Page { content: Content::new(), height, states: BTreeMap::new() };
    page.fill("#ffffff");
    page.content.rect(0.0, 0.0, width as f32, height as f32).fill_nonzero();
    canvas.elements.iter().for_each(|element| page.element(element));
    let Page { content, states, .. } = page;
    let mut pdf = Pdf::new();
    pdf.catalog(Ref::new(CATALOG)).pages(Ref::new(PAGES));
    pdf.pages(Ref::new(PAGES)).kids([Ref::new(PAGE)]).count(1);
    let mut written = pdf.page(Ref::new(PAGE));
    written.media_box(Rect::new(0.0, 0.0, width as f32, height as f32));
    written.parent(Ref::new(PAGES)).contents(Ref::new(CONTENT));
    let mut resources = written.resources();
    resources.fonts().pair(Name(b"F"), Ref::new(REGULAR)).pair(Name(b"B"), Ref::new(BOLD));
    let mut named = resources.ext_g_states();
    for number in states.values() {
        named.pair(Name(state_name(*number).as_bytes()), Ref::new(STATES + number));
    }
    named.finish();
    resources.finish();
    written.finish();
    for (id, name) in [(REGULAR, &b"Helvetica"[..]), (BOLD, &b"Helvetica-Bold"[..])] {
        pdf.type1_font(Ref::new(id)).base_font(Name(name)).encoding_predefined(Name(b"WinAnsiEncoding"));
    }
    for (percent, number) in &states {
        let opacity = f32::from(*percent) / 100.0;
        pdf.ext_graphics(Ref::new(STATES + number)).stroking_alpha(opacity).non_stroking_alpha(opacity);
    }
    pdf.document_info(Ref::new(INFO)).title(TextStr(title)).producer(TextStr("faircast"));
    pdf.stream(Ref::new(CONTENT), &content.finish());
    pdf.finish()
}

fn state_name(number: i32) -> String {
    format!("G{number}")
}

struct Page {
    content: Content,
    height: f64,
    /// Number of the PDF object of the graphics state, for each opacity in percent.
    states: BTreeMap<u8, i32>,
}

impl Page {
    /// Converts a position of the drawing to PDF, whose vertical coordinates start at the bottom.
    fn at(&self, (x, y): Place) -> (f32, f32) {
        (x as f32, (self.height - y) as f32)
    }

    fn fill(&mut self, colour: &str) {
        let [r, g, b] = rgb(colour);
        self.content.set_fill_rgb(r, g, b);
    }

    /// Draws with this opacity.
    fn with_opacity(&mut self, opacity: f64, draw: impl FnOnce(&mut Page)) {
        let percent = (opacity * 100.0).round().clamp(0.0, 100.0) as u8;
        if percent == 100 {
            return draw(self);
        }
        let next = self.states.len() as i32;
        let number = *self.states.entry(percent).or_insert(next);
        self.content.save_state().set_parameters(Name(state_name(number).as_bytes()));
        draw(self);
        self.content.restore_state();
    }

    fn element(&mut self, element: &Element) {
        match element {
            Element::Line { from, to, stroke } => self.path(&[vec![*from, *to]], stroke),
            Element::Path { runs, stroke } => self.path(runs, stroke),
            Element::Polygon { corners, fill, opacity } => self.polygon(corners, fill, *opacity),
            Element::Diamond { at: (x, y), radius, fill } => {
                let corners = [(*x, y - radius), (x + radius, *y), (*x, y + radius), (x - radius, *y)];
                self.trace(&corners);
                self.fill(fill);
                self.content.set_stroke_rgb(1.0, 1.0, 1.0).set_line_width(1.0);
                self.content.close_fill_nonzero_and_stroke();
            }
            Element::Dot { at, radius, fill } => self.dot(*at, *radius, fill),
            Element::Rectangle { from, to, fill, opacity } => {
                let corners = [*from, (to.0, from.1), *to, (from.0, to.1)];
                self.polygon(&corners, fill, *opacity);
            }
            Element::Text { at, text, letters, degrees, rim } => {
                self.text(*at, text, letters, *degrees, *rim)
            }
            Element::Clip { from, to } => {
                self.content.save_state();
                self.trace(&[*from, (to.0, from.1), *to, (from.0, to.1)]);
                self.content.close_path().clip_nonzero().end_path();
            }
            Element::End => {
                self.content.restore_state();
            }
        }
    }

    /// Adds a path through these points, neither closed nor painted.
    fn trace(&mut self, points: &[Place]) {
        for (n, point) in points.iter().enumerate() {
            let (x, y) = self.at(*point);
            if n == 0 {
                self.content.move_to(x, y)
            } else {
                self.content.line_to(x, y)
            };
        }
    }

    fn path(&mut self, runs: &[Vec<Place>], stroke: &Stroke) {
        let [r, g, b] = rgb(stroke.colour);
        let dashes = stroke.dashes.split([' ', ',']).filter_map(|length| length.parse::<f32>().ok());
        let dashes: Vec<f32> = dashes.collect();
        self.with_opacity(stroke.opacity, |page| {
            page.content.set_stroke_rgb(r, g, b).set_line_width(stroke.width as f32);
            page.content.set_line_join(LineJoinStyle::RoundJoin).set_dash_pattern(dashes, 0.0);
            runs.iter().for_each(|run| page.trace(run));
            page.content.stroke();
        });
    }

    fn polygon(&mut self, corners: &[Place], fill: &str, opacity: f64) {
        self.with_opacity(opacity, |page| {
            page.fill(fill);
            page.trace(corners);
            page.content.close_path().fill_nonzero();
        });
    }

    fn dot(&mut self, (x, y): Place, radius: f64, fill: &str) {
        self.fill(fill);
        let bend = radius * QUARTER;
        let right = self.at((x + radius, y));
        self.content.move_to(right.0, right.1);
        let quarters = [
            [(x + radius, y + bend), (x + bend, y + radius), (x, y + radius)],
            [(x - bend, y + radius), (x - radius, y + bend), (x - radius, y)],
            [(x - radius, y - bend), (x - bend, y - radius), (x, y - radius)],
            [(x + bend, y - radius), (x + radius, y - bend), (x + radius, y)],
        ];
        for quarter in quarters {
            let [a, b, c] = quarter.map(|place| self.at(place));
            self.content.cubic_to(a.0, a.1, b.0, b.1, c.0, c.1);
        }
        self.content.close_path().fill_nonzero();
    }

    fn text(&mut self, at: Place, text: &str, letters: &Letters, degrees: f64, rim: Rim) {
        let is_bold = letters.bold == Bold::Yes;
        let width = text::helvetica(text, letters.size) * if is_bold { text::BOLD_HELVETICA } else { 1.0 };
        let before = match letters.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => width / 2.0,
            Anchor::End => width,
        };
        // PDF's vertical axis points upwards, so the direction of the rotation is reversed.
        let (sin, cos) = (-degrees).to_radians().sin_cos();
        let (x, y) = self.at(at);
        let (x, y) = (x - (before * cos) as f32, y - (before * sin) as f32);
        let font = Name(if is_bold { b"B" } else { b"F" });
        let bytes: Vec<u8> = text.chars().map(win_ansi).collect();
        self.fill(letters.colour);
        let modes = match rim {
            Rim::White => &[TextRenderingMode::Stroke, TextRenderingMode::Fill][..],
            Rim::None => &[TextRenderingMode::Fill],
        };
        for mode in modes {
            self.content.set_stroke_rgb(1.0, 1.0, 1.0).set_line_width(3.0);
            self.content.set_dash_pattern([], 0.0).set_line_join(LineJoinStyle::RoundJoin);
            self.content.begin_text().set_font(font, letters.size as f32).set_text_rendering_mode(*mode);
            self.content.set_text_matrix([cos as f32, sin as f32, -sin as f32, cos as f32, x, y]);
            self.content.show(Str(&bytes)).end_text();
        }
    }
}

/// Converts a colour of a figure, `#rrggbb`, to three shares. Any other text gives black.
fn rgb(colour: &str) -> [f32; 3] {
    let hex = colour.strip_prefix('#').and_then(|hex| u32::from_str_radix(hex, 16).ok()).unwrap_or(0);
    [16, 8, 0].map(|shift| ((hex >> shift) & 0xff) as f32 / 255.0)
}

/// Converts a character to the encoding that PDF calls WinAnsi (Windows-1252). A character outside of this encoding becomes a
/// similar character or a question mark.
fn win_ansi(c: char) -> u8 {
    match c {
        ' '..='~' | '\u{a0}'..='\u{ff}' => c as u8,
        '\u{202f}' | '\u{2009}' => b' ',
        '\u{2212}' | '\u{2010}' | '\u{2011}' => b'-',
        '\u{3bc}' => 0xb5,
        '\u{2013}' => 0x96,
        '\u{2014}' => 0x97,
        '\u{2018}' => 0x91,
        '\u{2019}' => 0x92,
        '\u{201c}' => 0x93,
        '\u{201d}' => 0x94,
        '\u{2022}' => 0x95,
        '\u{2026}' => 0x85,
        '\u{20ac}' => 0x80,
        _ => b'?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_characters_become_question_marks() {
        let signs: Vec<u8> = "a\u{b5}\u{2212}\u{d7}\u{202f}\u{2026}\u{4e00}".chars().map(win_ansi).collect();
        assert_eq!(signs, [b'a', 0xb5, b'-', 0xd7, b' ', 0x85, b'?']);
        assert_eq!(rgb("#ff8000"), [1.0, 128.0 / 255.0, 0.0]);
    }
}
