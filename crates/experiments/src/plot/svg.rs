//! Output of a drawing as SVG.

use super::canvas::{Anchor, Bold, Canvas, Element, Letters, Place, Rim, Stroke};
use std::fmt::Write as _;

/// Returns the document; `title` is for screen readers.
pub fn document(canvas: &Canvas, width: f64, height: f64, title: &str) -> String {
    let mut svg = Svg::default();
    canvas.elements.iter().for_each(|element| svg.element(element));
    let (width, height) = (number(width), number(height));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" \
         font-family=\"'Helvetica Neue', Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif\">\n\
         <title>{}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{}</svg>\n",
        escaped(title),
        svg.body
    )
}

/// A document under construction.
#[derive(Debug, Default)]
struct Svg {
    body: String,
}

fn attributes(pen: &Stroke) -> String {
    let mut text = format!(r#"stroke="{}" stroke-width="{}""#, pen.colour, number(pen.width));
    if pen.opacity < 1.0 {
        write!(text, r#" stroke-opacity="{}""#, number(pen.opacity)).expect("a string takes everything");
    }
    if !pen.dashes.is_empty() {
        write!(text, r#" stroke-dasharray="{}""#, pen.dashes).expect("a string takes everything");
    }
    text
}

/// Formats a coordinate with a precision of a tenth of a pixel, identical on all platforms.
pub fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// Formats both coordinates.
fn place((x, y): Place) -> [String; 2] {
    [x, y].map(number)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

impl Svg {
    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        self.body.write_fmt(element).expect("a string takes everything");
        self.body.push('\n');
    }

    fn element(&mut self, element: &Element) {
        match element {
            Element::Line { from, to, stroke } => self.line(*from, *to, stroke),
            Element::Path { runs, stroke } => self.path(runs, stroke),
            Element::Polygon { corners, fill, opacity } => self.polygon(corners, fill, *opacity),
            Element::Diamond { at, radius, fill } => self.diamond(*at, *radius, fill),
            Element::Dot { at, radius, fill } => self.dot(*at, *radius, fill),
            Element::Rectangle { from, to, fill, opacity } => self.rectangle(*from, *to, fill, *opacity),
            Element::Text { at, text, letters, degrees, rim: Rim::None } => {
                self.text(*at, text, letters, *degrees);
            }
            Element::Text { at, text, letters, degrees, rim: Rim::White } => {
                self.put(format_args!(
                    r##"<g stroke="#ffffff" stroke-width="3" stroke-linejoin="round" paint-order="stroke">"##
                ));
                self.text(*at, text, letters, *degrees);
                self.put(format_args!("</g>"));
            }
            Element::Clip { from, to } => self.clip(*from, *to),
            Element::End => self.put(format_args!("</svg>")),
        }
    }

    fn line(&mut self, from: Place, to: Place, stroke: &Stroke) {
        let ([x1, y1], [x2, y2]) = (place(from), place(to));
        let pen = attributes(stroke);
        self.put(format_args!(r#"<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {pen}/>"#));
    }

    fn path(&mut self, runs: &[Vec<Place>], stroke: &Stroke) {
        let mut path = String::new();
        for run in runs {
            for (number, at) in run.iter().enumerate() {
                let command = if number == 0 { 'M' } else { 'L' };
                let [x, y] = place(*at);
                write!(path, "{command}{x} {y}").expect("a string takes everything");
            }
        }
        let pen = attributes(stroke);
        self.put(format_args!(r#"<path d="{path}" fill="none" stroke-linejoin="round" {pen}/>"#));
    }

    fn polygon(&mut self, corners: &[Place], fill: &str, opacity: f64) {
        let corners: Vec<String> = corners.iter().map(|corner| place(*corner).join(",")).collect();
        let (corners, opacity) = (corners.join(" "), number(opacity));
        self.put(format_args!(r#"<polygon points="{corners}" fill="{fill}" fill-opacity="{opacity}"/>"#));
    }

    fn diamond(&mut self, (x, y): Place, radius: f64, fill: &str) {
        let [left, x, right] = [x - radius, x, x + radius].map(number);
        let [top, y, bottom] = [y - radius, y, y + radius].map(number);
        let path = format!("M{x} {top}L{right} {y}L{x} {bottom}L{left} {y}Z");
        self.put(format_args!(r##"<path d="{path}" fill="{fill}" stroke="#ffffff" stroke-width="1"/>"##));
    }

    fn dot(&mut self, at: Place, radius: f64, fill: &str) {
        let ([x, y], radius) = (place(at), number(radius));
        self.put(format_args!(r#"<circle cx="{x}" cy="{y}" r="{radius}" fill="{fill}"/>"#));
    }

    fn rectangle(&mut self, from: Place, to: Place, fill: &str, opacity: f64) {
        let [x, y] = place((from.0.min(to.0), from.1.min(to.1)));
        let [width, height] = place(((to.0 - from.0).abs(), (to.1 - from.1).abs()));
        let opacity = number(opacity);
        self.put(format_args!(
            r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}" fill-opacity="{opacity}"/>"#
        ));
    }

    fn text(&mut self, at: Place, text: &str, letters: &Letters, degrees: f64) {
        let anchor = match letters.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = if letters.bold == Bold::Yes { r#" font-weight="600""# } else { "" };
        let [x, y] = place(at);
        let turn = match degrees {
            0.0 => String::new(),
            _ => format!(r#" transform="rotate({} {x} {y})""#, number(degrees)),
        };
        let (size, colour, text) = (number(letters.size), letters.colour, escaped(text));
        self.put(format_args!(
            r#"<text x="{x}" y="{y}" font-size="{size}" fill="{colour}" text-anchor="{anchor}"{weight}{turn}>{text}</text>"#
        ));
    }

    /// The clip path has no name, because another figure on the page could use the same name.
    fn clip(&mut self, from: Place, to: Place) {
        let ([x, y], [width, height]) = (place(from), place((to.0 - from.0, to.1 - from.1)));
        self.put(format_args!(
            r#"<svg x="{x}" y="{y}" width="{width}" height="{height}" viewBox="{x} {y} {width} {height}">"#
        ));
    }
}
