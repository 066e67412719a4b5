//! Drawing operations with absolute positions, in drawing order. An output format writes them one by one.

/// A drawing.
#[derive(Debug, Default)]
pub struct Canvas {
    pub(super) elements: Vec<Element>,
}

/// A drawing operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Element {
    Line {
        from: Place,
        to: Place,
        stroke: Stroke,
    },
    /// Lines through several sequences of points, with a gap between two sequences.
    Path {
        runs: Vec<Vec<Place>>,
        stroke: Stroke,
    },
    Polygon {
        corners: Vec<Place>,
        fill: Colour,
        opacity: f64,
    },
    /// A diamond, with a white rim between the diamond and the background.
    Diamond {
        at: Place,
        radius: f64,
        fill: Colour,
    },
    Dot {
        at: Place,
        radius: f64,
        fill: Colour,
    },
    Rectangle {
        from: Place,
        to: Place,
        fill: Colour,
        opacity: f64,
    },
    /// Text. An optional white rim makes the text legible in front of lines.
    Text {
        at: Place,
        text: String,
        letters: Letters,
        degrees: f64,
        rim: Rim,
    },
    /// Clips the following operations to a rectangle, until the next `End`.
    Clip {
        from: Place,
        to: Place,
    },
    /// Ends the clipping.
    End,
}

/// Horizontal and vertical position in points, measured from the top left corner.
pub type Place = (f64, f64);

/// Whether text has a white rim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rim {
    White,
    None,
}

/// Alignment of a text relative to its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// Colour in the form `#rrggbb`.
pub type Colour = &'static str;

/// Style of a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Letters {
    pub size: f64,
    pub colour: Colour,
    pub anchor: Anchor,
    pub bold: Bold,
}

/// The weight of letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bold {
    Yes,
    No,
}

/// Style of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stroke {
    pub colour: Colour,
    pub width: f64,
    pub opacity: f64,
    /// Lengths of dashes and gaps; empty for a solid line.
    pub dashes: &'static str,
}

impl Stroke {
    pub const fn solid(colour: Colour, width: f64) -> Stroke {
        Stroke { colour, width, opacity: 1.0, dashes: "" }
    }
}

impl Canvas {
    pub fn line(&mut self, from: Place, to: Place, stroke: Stroke) {
        self.elements.push(Element::Line { from, to, stroke });
    }

    /// Draws lines through several sequences of points, with a gap between two sequences.
    pub fn path(&mut self, runs: &[Vec<Place>], stroke: Stroke) {
        let runs: Vec<_> = runs.iter().filter(|run| !run.is_empty()).cloned().collect();
        if !runs.is_empty() {
            self.elements.push(Element::Path { runs, stroke });
        }
    }

    pub fn polygon(&mut self, corners: &[Place], fill: Colour, opacity: f64) {
        self.elements.push(Element::Polygon { corners: corners.to_vec(), fill, opacity });
    }

    /// Draws a diamond with a white rim.
    pub fn diamond(&mut self, at: Place, radius: f64, fill: Colour) {
        self.elements.push(Element::Diamond { at, radius, fill });
    }

    pub fn dot(&mut self, at: Place, radius: f64, fill: Colour) {
        self.elements.push(Element::Dot { at, radius, fill });
    }

    pub fn rectangle(&mut self, from: Place, to: Place, fill: Colour, opacity: f64) {
        self.elements.push(Element::Rectangle { from, to, fill, opacity });
    }

    pub fn text(&mut self, place: Place, text: &str, letters: Letters) {
        self.put_text(place, text, letters, 0.0, Rim::None);
    }

    /// Draws text with a white rim, which makes the text legible in front of lines.
    pub fn text_on_white(&mut self, place: Place, text: &str, letters: Letters) {
        self.put_text(place, text, letters, 0.0, Rim::White);
    }

    pub fn turned_text(&mut self, place: Place, text: &str, letters: Letters, degrees: f64) {
        self.put_text(place, text, letters, degrees, Rim::None);
    }

    fn put_text(&mut self, at: Place, text: &str, letters: Letters, degrees: f64, rim: Rim) {
        self.elements.push(Element::Text { at, text: text.to_owned(), letters, degrees, rim });
    }

    /// Clips the following operations to a rectangle.
    pub fn clip(&mut self, from: Place, to: Place) {
        self.elements.push(Element::Clip { from, to });
    }

    /// Ends the clipping.
    pub fn end(&mut self) {
        self.elements.push(Element::End);
    }
}
