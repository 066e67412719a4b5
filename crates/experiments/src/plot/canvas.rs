//! What is drawn, in order: forms whose places are known, for a format to write down.

/// A drawing.
#[derive(Debug, Default)]
pub struct Canvas {
    pub(super) elements: Vec<Element>,
}

/// Something that is drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Element {
    Line {
        from: Place,
        to: Place,
        stroke: Pen,
    },
    /// Runs of points; each run is a piece of its own.
    Path {
        runs: Vec<Vec<Place>>,
        stroke: Pen,
    },
    Polygon {
        corners: Vec<Place>,
        fill: String,
        opacity: f64,
    },
    /// With a white rim that keeps it apart from what is behind.
    Diamond {
        at: Place,
        radius: f64,
        fill: String,
    },
    Dot {
        at: Place,
        radius: f64,
        fill: String,
    },
    Rectangle {
        from: Place,
        to: Place,
        fill: String,
        opacity: f64,
    },
    /// With a white rim where it can be read in front of lines.
    Text {
        at: Place,
        text: String,
        letters: Letters,
        degrees: f64,
        rim: Rim,
    },
    /// What follows is cut off at a rectangle,
    Clip {
        from: Place,
        to: Place,
    },
    /// until here.
    End,
}

/// Right and down, in points.
pub type Place = (f64, f64);

/// Whether text has a white rim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rim {
    White,
    None,
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

/// The same, kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Letters {
    pub size: f64,
    pub colour: String,
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

/// The same, kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Pen {
    pub colour: String,
    pub width: f64,
    pub opacity: f64,
    pub dashes: String,
}

impl<'a> Stroke<'a> {
    pub const fn solid(colour: &'a str, width: f64) -> Stroke<'a> {
        Stroke { colour, width, opacity: 1.0, dashes: "" }
    }

    fn kept(&self) -> Pen {
        let (colour, dashes) = (self.colour.to_owned(), self.dashes.to_owned());
        Pen { colour, width: self.width, opacity: self.opacity, dashes }
    }
}

impl Canvas {
    pub fn line(&mut self, from: Place, to: Place, stroke: Stroke<'_>) {
        self.elements.push(Element::Line { from, to, stroke: stroke.kept() });
    }

    /// Lines through runs of points; each run is a piece of its own.
    pub fn path(&mut self, runs: &[Vec<Place>], stroke: Stroke<'_>) {
        let runs: Vec<_> = runs.iter().filter(|run| !run.is_empty()).cloned().collect();
        if !runs.is_empty() {
            self.elements.push(Element::Path { runs, stroke: stroke.kept() });
        }
    }

    pub fn polygon(&mut self, corners: &[Place], fill: &str, opacity: f64) {
        self.elements.push(Element::Polygon { corners: corners.to_vec(), fill: fill.to_owned(), opacity });
    }

    /// A diamond with a rim that keeps it apart from what is behind.
    pub fn diamond(&mut self, at: Place, radius: f64, fill: &str) {
        self.elements.push(Element::Diamond { at, radius, fill: fill.to_owned() });
    }

    pub fn dot(&mut self, at: Place, radius: f64, fill: &str) {
        self.elements.push(Element::Dot { at, radius, fill: fill.to_owned() });
    }

    pub fn rectangle(&mut self, from: Place, to: Place, fill: &str, opacity: f64) {
        self.elements.push(Element::Rectangle { from, to, fill: fill.to_owned(), opacity });
    }

    pub fn text(&mut self, place: Place, text: &str, style: Type<'_>) {
        self.put_text(place, text, style, 0.0, Rim::None);
    }

    /// Text that can be read in front of lines.
    pub fn text_on_white(&mut self, place: Place, text: &str, style: Type<'_>) {
        self.put_text(place, text, style, 0.0, Rim::White);
    }

    pub fn turned_text(&mut self, place: Place, text: &str, style: Type<'_>, degrees: f64) {
        self.put_text(place, text, style, degrees, Rim::None);
    }

    fn put_text(&mut self, at: Place, text: &str, style: Type<'_>, degrees: f64, rim: Rim) {
        let Type { size, colour, anchor, bold } = style;
        let letters = Letters { size, colour: colour.to_owned(), anchor, bold };
        self.elements.push(Element::Text { at, text: text.to_owned(), letters, degrees, rim });
    }

    /// What follows is cut off at a rectangle.
    pub fn clip(&mut self, from: Place, to: Place) {
        self.elements.push(Element::Clip { from, to });
    }

    /// What follows is not cut off any more.
    pub fn end(&mut self) {
        self.elements.push(Element::End);
    }
}
