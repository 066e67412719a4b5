//! Figures as SVG and PDF: the same figure gives the same bytes, and nothing but the standard fonts of a viewer is needed.
//!
//! A [`Figure`] has one or more [`Panel`]s, a panel has two [`Axis`] and [`Layer`]s that are drawn in order.
//! All figures have one style: an Okabe-Ito palette that colour-blind readers can distinguish, names at the
//! ends of lines where there is room, gridlines in the background.
//!
//! | module | what it holds |
//! |---|---|
//! | [`scale`] | ticks and the numbers beside them |
//! | `text` | how wide words are |
//! | `canvas` | what is drawn |
//! | `svg` `pdf` | the same in a format |
//! | `draw` | where everything goes |

mod canvas;
mod draw;
mod pdf;
pub mod scale;
mod svg;
#[cfg(test)]
mod tests;
mod text;

use scale::Scale;

/// A figure.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figure {
    /// Subject, in one line.
    pub title: String,
    /// Notes for reading the figure; wrapped below the title.
    pub subtitle: String,
    /// Its parts, from left to right and top to bottom.
    pub panels: Vec<Panel>,
    /// Panels beside each other; 0 for as many as look good.
    pub columns: usize,
    /// Whether vertical axes have the same range in all panels.
    pub ranges: Ranges,
}

/// Whether panels can be compared by eye.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ranges {
    /// One vertical range for all panels.
    #[default]
    Shared,
    /// Each panel has the range that it needs.
    Own,
}

/// A part of a figure with its own axes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Panel {
    /// Difference from the other panels; may be empty.
    pub title: String,
    /// Horizontal.
    pub x: Axis,
    /// Vertical.
    pub y: Axis,
    /// Layers in drawing order, the first at the bottom.
    pub layers: Vec<Layer>,
}

/// An axis.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Axis {
    /// Quantity, with its unit in brackets.
    pub label: String,
    /// Where it begins; the data decide when not given.
    pub from: Option<f64>,
    /// Where it ends; the data decide when not given.
    pub to: Option<f64>,
    /// Linear or logarithmic.
    pub scale: Scale,
    /// Names at 0, 1, 2, ... in place of numbers.
    pub categories: Vec<String>,
}

impl Axis {
    /// A linear axis whose range follows from the data.
    pub fn new(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), ..Axis::default() }
    }

    /// Begins here.
    #[must_use]
    pub fn from(self, from: f64) -> Axis {
        Axis { from: Some(from), ..self }
    }

    /// Ends here.
    #[must_use]
    pub fn to(self, to: f64) -> Axis {
        Axis { to: Some(to), ..self }
    }

    /// Logarithmic.
    #[must_use]
    pub fn logarithmic(self) -> Axis {
        Axis { scale: Scale::Logarithmic, ..self }
    }

    /// Returns an axis of named places.
    #[must_use]
    pub fn named(self, categories: Vec<String>) -> Axis {
        Axis { categories, ..self }
    }
}

/// A colour that identifies a series; the same number is the same colour in every panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// One of the palette; it begins again after seven.
    Series(usize),
    /// Context, not a series.
    Grey,
}

/// How strongly a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weight {
    /// The subject of the figure.
    #[default]
    Heavy,
    /// Noise around it, or one of many.
    Light,
}

/// How points are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Join {
    /// By straight lines.
    #[default]
    Straight,
    /// Each value holds until the next.
    Steps,
}

/// A drawing of a panel.
#[derive(Debug, Clone, PartialEq)]
pub enum Layer {
    /// A line.
    Line {
        /// Its name; empty for none.
        name: String,
        /// Its colour.
        colour: Colour,
        /// Heavy or light.
        weight: Weight,
        /// Straight or in steps.
        join: Join,
        /// `(x, y)`; a `y` that is not a number is a gap.
        points: Vec<(f64, f64)>,
    },
    /// The interval around a line.
    Band {
        /// The line's colour.
        colour: Colour,
        /// `(x, from, to)`.
        points: Vec<(f64, f64, f64)>,
    },
    /// Points, with their intervals where they are known, joined by a thin line.
    Dots {
        /// Their name; empty for none.
        name: String,
        /// Their colour.
        colour: Colour,
        /// The points.
        points: Vec<Dot>,
        /// Whether they are joined.
        joined: Joined,
    },
    /// Bars from zero, side by side with those of other layers.
    Bars {
        /// Their name; empty for none.
        name: String,
        /// Their colour.
        colour: Colour,
        /// One for each category.
        bars: Vec<Dot>,
    },
    /// A value from a document, next to the measured ones.
    Published {
        /// `(x, value)`.
        points: Vec<(f64, f64)>,
    },
    /// A horizontal line for comparison.
    Level {
        /// Name of the value.
        name: String,
        /// Where it is.
        y: f64,
    },
    /// Vertical lines where something happened.
    Moments {
        /// Name of the event; empty without one.
        name: String,
        /// When.
        at: Vec<f64>,
    },
    /// A range of the horizontal axis in which something held.
    Span {
        /// Name of the state.
        name: String,
        /// From here.
        from: f64,
        /// To there.
        to: f64,
    },
}

/// Whether points of a series are joined by a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joined {
    /// They are.
    Yes,
    /// They are not.
    No,
}

/// A value and its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dot {
    /// Where, on the horizontal axis.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// From, to; `None` where it is not known.
    pub interval: Option<(f64, f64)>,
}

impl Layer {
    /// A heavy straight line.
    pub fn line(name: impl Into<String>, colour: usize, points: Vec<(f64, f64)>) -> Layer {
        let (weight, join) = (Weight::Heavy, Join::Straight);
        Layer::Line { name: name.into(), colour: Colour::Series(colour), weight, join, points }
    }

    /// A light straight line without a name, below a heavy one of the same colour.
    pub fn noise(colour: usize, points: Vec<(f64, f64)>) -> Layer {
        let (weight, join) = (Weight::Light, Join::Straight);
        Layer::Line { name: String::new(), colour: Colour::Series(colour), weight, join, points }
    }

    /// A line whose values hold until the next.
    pub fn steps(name: impl Into<String>, colour: usize, points: Vec<(f64, f64)>) -> Layer {
        let (weight, join) = (Weight::Heavy, Join::Steps);
        Layer::Line { name: name.into(), colour: Colour::Series(colour), weight, join, points }
    }

    /// Dots joined by a thin line.
    pub fn dots(name: impl Into<String>, colour: usize, points: impl IntoIterator<Item = Dot>) -> Layer {
        let points = points.into_iter().collect();
        Layer::Dots { name: name.into(), colour: Colour::Series(colour), points, joined: Joined::Yes }
    }

    /// Bars from zero.
    pub fn bars(name: impl Into<String>, colour: usize, bars: impl IntoIterator<Item = Dot>) -> Layer {
        let bars = bars.into_iter().collect();
        Layer::Bars { name: name.into(), colour: Colour::Series(colour), bars }
    }
}

impl Panel {
    /// Returns a panel of seconds from 0 on, and values from 0 on.
    pub fn over_time(title: impl Into<String>, label: impl Into<String>, layers: Vec<Layer>) -> Panel {
        let (x, y) = (Axis::new("time (s)").from(0.0), Axis::new(label).from(0.0));
        Panel { title: title.into(), x, y, layers }
    }
}

impl Figure {
    /// With panels that share their vertical range, in as many columns as look good.
    pub fn new(
        title: impl Into<String>,
        subtitle: impl Into<String>,
        panels: impl IntoIterator<Item = Panel>,
    ) -> Figure {
        let panels = panels.into_iter().collect();
        Figure { title: title.into(), subtitle: subtitle.into(), panels, columns: 0, ranges: Ranges::Shared }
    }

    /// Has this number of panels beside each other.
    #[must_use]
    pub fn in_columns(self, columns: usize) -> Figure {
        Figure { columns, ..self }
    }

    /// Gives each panel its own vertical range.
    #[must_use]
    pub fn with_own_ranges(self) -> Figure {
        Figure { ranges: Ranges::Own, ..self }
    }

    /// The figure as an SVG document.
    pub fn svg(&self) -> String {
        let (canvas, width, height) = draw::draw(self);
        svg::document(&canvas, width, height, &self.title)
    }

    /// The figure as a PDF document of one page.
    pub fn pdf(&self) -> Vec<u8> {
        let (canvas, width, height) = draw::draw(self);
        pdf::document(&canvas, width, height, &self.title)
    }
}
