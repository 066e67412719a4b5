//! A drawing as SVG.

use super::canvas::{Anchor, Bold, Canvas, Element, Letters, Pen, Place, Rim};
use std::fmt::Write as _;

/// The document; `title` is read out by screen readers.
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

fn attributes(pen: &Pen) -> String {
    let mut text = format!(r#"stroke="{}" stroke-width="{}""#, pen.colour, number(pen.width));
    if pen.opacity < 1.0 {
        write!(text, r#" stroke-opacity="{}""#, number(pen.opacity)).expect("a string takes everything");
    }
    if !pen.dashes.is_empty() {
        write!(text, r#" stroke-dasharray="{}""#, pen.dashes).expect("a string takes everything");
    }
    text
}

/// A coordinate: a tenth of a pixel is enough, and the same everywhere.
pub fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
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

    fn line(&mut self, from: Place, to: Place, stroke: &Pen) {
        self.put(format_args!(
            r#"<line x1="{}" y1="{}" x2="{}" y2="{}" {}/>"#,
            number(from.0),
            number(from.1),
            number(to.0),
            number(to.1),
            attributes(stroke)
        ));
    }

    fn path(&mut self, runs: &[Vec<Place>], stroke: &Pen) {
        let mut path = String::new();
        for run in runs {
            for (place, &(x, y)) in run.iter().enumerate() {
                let command = if place == 0 { 'M' } else { 'L' };
                write!(path, "{command}{} {}", number(x), number(y)).expect("a string takes everything");
            }
        }
        self.put(format_args!(
            r#"<path d="{path}" fill="none" stroke-linejoin="round" {}/>"#,
            attributes(stroke)
        ));
    }

    fn polygon(&mut self, corners: &[Place], fill: &str, opacity: f64) {
        let corners: Vec<String> =
            corners.iter().map(|&(x, y)| format!("{},{}", number(x), number(y))).collect();
        self.put(format_args!(
            r#"<polygon points="{}" fill="{fill}" fill-opacity="{}"/>"#,
            corners.join(" "),
            number(opacity)
        ));
    }

    fn diamond(&mut self, (x, y): Place, radius: f64, fill: &str) {
        self.put(format_args!(
            r##"<path d="M{} {}L{} {}L{} {}L{} {}Z" fill="{fill}" stroke="#ffffff" stroke-width="1"/>"##,
            number(x),
            number(y - radius),
            number(x + radius),
            number(y),
            number(x),
            number(y + radius),
            number(x - radius),
            number(y)
        ));
    }

    fn dot(&mut self, (x, y): Place, radius: f64, fill: &str) {
        self.put(format_args!(
            r#"<circle cx="{}" cy="{}" r="{}" fill="{fill}"/>"#,
            number(x),
            number(y),
            number(radius)
        ));
    }

    fn rectangle(&mut self, from: Place, to: Place, fill: &str, opacity: f64) {
        self.put(format_args!(
            r#"<rect x="{}" y="{}" width="{}" height="{}" fill="{fill}" fill-opacity="{}"/>"#,
            number(from.0.min(to.0)),
            number(from.1.min(to.1)),
            number((to.0 - from.0).abs()),
            number((to.1 - from.1).abs()),
            number(opacity)
        ));
    }

    fn text(&mut self, (x, y): Place, text: &str, letters: &Letters, degrees: f64) {
        let anchor = match letters.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = if letters.bold == Bold::Yes { r#" font-weight="600""# } else { "" };
        let turn = match degrees {
            0.0 => String::new(),
            _ => format!(r#" transform="rotate({} {} {})""#, number(degrees), number(x), number(y)),
        };
        self.put(format_args!(
            r#"<text x="{}" y="{}" font-size="{}" fill="{}" text-anchor="{anchor}"{weight}{turn}>{}</text>"#,
            number(x),
            number(y),
            number(letters.size),
            letters.colour,
            escaped(text)
        ));
    }

    /// Without a name that other figures on a page could have too.
    fn clip(&mut self, from: Place, to: Place) {
        let (x, y) = (number(from.0), number(from.1));
        let (width, height) = (number(to.0 - from.0), number(to.1 - from.1));
        self.put(format_args!(
            r#"<svg x="{x}" y="{y}" width="{width}" height="{height}" viewBox="{x} {y} {width} {height}">"#
        ));
    }
}
