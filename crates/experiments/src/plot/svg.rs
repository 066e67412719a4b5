//! Elements and their attributes, as text.

use std::fmt::Write as _;

/// An SVG document under construction.
#[derive(Debug, Default)]
pub struct Svg {
    body: String,
}

/// Where text stands relative to its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// How text looks.
#[derive(Debug, Clone, Copy)]
pub struct Type<'a> {
    pub size: f64,
    pub colour: &'a str,
    pub anchor: Anchor,
    pub bold: Bold,
}

/// The weight of letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bold {
    Yes,
    No,
}

/// How a stroke looks.
#[derive(Debug, Clone, Copy)]
pub struct Stroke<'a> {
    pub colour: &'a str,
    pub width: f64,
    pub opacity: f64,
    /// Lengths of dashes and gaps; empty for none.
    pub dashes: &'a str,
}

impl<'a> Stroke<'a> {
    pub const fn solid(colour: &'a str, width: f64) -> Stroke<'a> {
        Stroke { colour, width, opacity: 1.0, dashes: "" }
    }

    fn attributes(&self) -> String {
        let mut text = format!(r#"stroke="{}" stroke-width="{}""#, self.colour, number(self.width));
        if self.opacity < 1.0 {
            write!(text, r#" stroke-opacity="{}""#, number(self.opacity)).expect("a string takes everything");
        }
        if !self.dashes.is_empty() {
            write!(text, r#" stroke-dasharray="{}""#, self.dashes).expect("a string takes everything");
        }
        text
    }
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

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: Stroke<'_>) {
        self.put(format_args!(
            r#"<line x1="{}" y1="{}" x2="{}" y2="{}" {}/>"#,
            number(from.0),
            number(from.1),
            number(to.0),
            number(to.1),
            stroke.attributes()
        ));
    }

    /// Lines through runs of points; each run is a piece of its own.
    pub fn path(&mut self, runs: &[Vec<(f64, f64)>], stroke: Stroke<'_>) {
        let mut path = String::new();
        for run in runs.iter().filter(|run| !run.is_empty()) {
            for (place, &(x, y)) in run.iter().enumerate() {
                let command = if place == 0 { 'M' } else { 'L' };
                write!(path, "{command}{} {}", number(x), number(y)).expect("a string takes everything");
            }
        }
        if !path.is_empty() {
            self.put(format_args!(
                r#"<path d="{path}" fill="none" stroke-linejoin="round" {}/>"#,
                stroke.attributes()
            ));
        }
    }

    pub fn polygon(&mut self, corners: &[(f64, f64)], fill: &str, opacity: f64) {
        let corners: Vec<String> =
            corners.iter().map(|&(x, y)| format!("{},{}", number(x), number(y))).collect();
        self.put(format_args!(
            r#"<polygon points="{}" fill="{fill}" fill-opacity="{}"/>"#,
            corners.join(" "),
            number(opacity)
        ));
    }

    /// A diamond with a rim that keeps it apart from what is behind.
    pub fn diamond(&mut self, (x, y): (f64, f64), radius: f64, fill: &str) {
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

    pub fn dot(&mut self, (x, y): (f64, f64), radius: f64, fill: &str) {
        self.put(format_args!(
            r#"<circle cx="{}" cy="{}" r="{}" fill="{fill}"/>"#,
            number(x),
            number(y),
            number(radius)
        ));
    }

    pub fn rectangle(&mut self, from: (f64, f64), to: (f64, f64), fill: &str, opacity: f64) {
        self.put(format_args!(
            r#"<rect x="{}" y="{}" width="{}" height="{}" fill="{fill}" fill-opacity="{}"/>"#,
            number(from.0.min(to.0)),
            number(from.1.min(to.1)),
            number((to.0 - from.0).abs()),
            number((to.1 - from.1).abs()),
            number(opacity)
        ));
    }

    pub fn text(&mut self, place: (f64, f64), text: &str, style: Type<'_>) {
        self.turned_text(place, text, style, 0.0);
    }

    /// Text that can be read in front of lines.
    pub fn text_on_white(&mut self, place: (f64, f64), text: &str, style: Type<'_>) {
        self.put(format_args!(
            r##"<g stroke="#ffffff" stroke-width="3" stroke-linejoin="round" paint-order="stroke">"##
        ));
        self.text(place, text, style);
        self.put(format_args!("</g>"));
    }

    pub fn turned_text(&mut self, (x, y): (f64, f64), text: &str, style: Type<'_>, degrees: f64) {
        let anchor = match style.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = if style.bold == Bold::Yes { r#" font-weight="600""# } else { "" };
        let turn = match degrees {
            0.0 => String::new(),
            _ => format!(r#" transform="rotate({} {} {})""#, number(degrees), number(x), number(y)),
        };
        self.put(format_args!(
            r#"<text x="{}" y="{}" font-size="{}" fill="{}" text-anchor="{anchor}"{weight}{turn}>{}</text>"#,
            number(x),
            number(y),
            number(style.size),
            style.colour,
            escaped(text)
        ));
    }

    /// Begin a group that is cut off at a rectangle, without a name that other figures on a page could have too.
    pub fn clip(&mut self, from: (f64, f64), to: (f64, f64)) {
        let (x, y) = (number(from.0), number(from.1));
        let (width, height) = (number(to.0 - from.0), number(to.1 - from.1));
        self.put(format_args!(
            r#"<svg x="{x}" y="{y}" width="{width}" height="{height}" viewBox="{x} {y} {width} {height}">"#
        ));
    }

    /// End a group.
    pub fn end(&mut self) {
        self.put(format_args!("</svg>"));
    }

    /// The document; `title` is read out by screen readers.
    pub fn document(self, width: f64, height: f64, title: &str) -> String {
        let (width, height) = (number(width), number(height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" \
             font-family=\"'Helvetica Neue', Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif\">\n\
             <title>{}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{}</svg>\n",
            escaped(title),
            self.body
        )
    }
}
