//! Figures as SVG and PDF. Equal figures give equal bytes. A viewer needs only its standard fonts.
//!
//! A [`Figure`] has one or more [`Panel`]s. A panel has two [`Axis`] and [`Layer`]s, which are drawn in order. All figures have
//! the same style: an Okabe-Ito palette that colour-blind readers can distinguish, names at the ends of lines if there is room,
//! and gridlines in the background.
//!
//! | module | contents |
//! |---|---|
//! | [`scale`] | ticks and their labels |
//! | `text` | widths of words |
//! | `canvas` | drawing operations |
//! | `svg` `pdf` | output formats |
//! | `draw` | layout |

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
    /// Notes that help to read the figure; wrapped below the title.
    pub subtitle: String,
    /// The panels, from left to right and top to bottom.
    pub panels: Vec<Panel>,
    /// Number of panels in a row; 0: chosen automatically.
    pub columns: usize,
    /// Whether vertical axes have the same range in all panels.
    pub ranges: Ranges,
}

/// Vertical ranges of the panels of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ranges {
    /// One vertical range for all panels.
    #[default]
    Shared,
    /// Each panel has its own range.
    Own,
}

/// A part of a figure with its own axes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Panel {
    /// Title that distinguishes the panel from the other panels; may be empty.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Layers in drawing order, the first at the bottom.
    pub layers: Vec<Layer>,
}

/// An axis.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Axis {
    /// Quantity, with its unit in brackets.
    pub label: String,
    /// Beginning of the range; `None`: determined by the data.
    pub from: Option<f64>,
    /// End of the range; `None`: determined by the data.
    pub to: Option<f64>,
    /// Linear or logarithmic.
    pub scale: Scale,
    /// Names that replace the numbers at the positions 0, 1, 2, ...; empty for an axis with numbers.
    pub categories: Vec<String>,
}

impl Axis {
    /// Returns a linear axis whose range is determined by the data.
    pub fn new(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), ..Axis::default() }
    }

    /// Sets the beginning of the range.
    #[must_use]
    pub fn from(self, from: f64) -> Axis {
        Axis { from: Some(from), ..self }
    }

    /// Sets the end of the range.
    #[must_use]
    pub fn to(self, to: f64) -> Axis {
        Axis { to: Some(to), ..self }
    }

    /// Makes the axis logarithmic.
    #[must_use]
    pub fn logarithmic(self) -> Axis {
        Axis { scale: Scale::Logarithmic, ..self }
    }

    /// Writes names at the positions 0, 1, 2, ... of the axis.
    #[must_use]
    pub fn named(self, categories: Vec<String>) -> Axis {
        Axis { categories, ..self }
    }
}

/// A colour that identifies a series. A series number has the same colour in every panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// A colour of the palette; the palette repeats after seven colours.
    Series(usize),
    /// Grey, for context that is not a series.
    Grey,
}

/// Visual weight of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weight {
    /// Heavy, for the subject of the figure.
    #[default]
    Heavy,
    /// Light: for noise around a heavy line, or for one line among many.
    Light,
}

/// Type of the connection between points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Join {
    /// Straight lines.
    #[default]
    Straight,
    /// Steps: each value holds until the next point.
    Steps,
}

/// A graphical element of a panel.
#[derive(Debug, Clone, PartialEq)]
pub enum Layer {
    /// A line.
    Line {
        /// Name of the line; empty without a name.
        name: String,
        /// Colour of the line.
        colour: Colour,
        /// Visual weight.
        weight: Weight,
        /// Type of the connection between points.
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
    /// Points with their intervals, optionally joined by a thin line.
    Dots {
        /// Name of the series; empty without a name.
        name: String,
        /// Colour of the series.
        colour: Colour,
        /// The points.
        points: Vec<Dot>,
        /// Whether the points are joined by a line.
        joined: Joined,
    },
    /// Bars that begin at zero, placed next to the bars of other layers.
    Bars {
        /// Name of the series; empty without a name.
        name: String,
        /// Colour of the series.
        colour: Colour,
        /// The bars, one for each category.
        bars: Vec<Dot>,
    },
    /// Published values, drawn next to the measured values.
    Published {
        /// `(x, value)`.
        points: Vec<(f64, f64)>,
    },
    /// A horizontal line for comparison.
    Level {
        /// Name of the value.
        name: String,
        /// Position on the vertical axis.
        y: f64,
    },
    /// Vertical lines at the times of events.
    Moments {
        /// Name of the events; empty without a name.
        name: String,
        /// Positions on the horizontal axis.
        at: Vec<f64>,
    },
    /// A range of the horizontal axis for which a state lasts.
    Span {
        /// Name of the state.
        name: String,
        /// Beginning of the range.
        from: f64,
        /// End of the range.
        to: f64,
    },
}

/// Whether points of a series are joined by a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joined {
    /// The points are joined.
    Yes,
    /// The points are not joined.
    No,
}

/// A value and its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dot {
    /// Position on the horizontal axis.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// Beginning and end of the interval; `None` for an unknown interval.
    pub interval: Option<(f64, f64)>,
}

impl Layer {
    /// Returns a heavy line with straight connections.
    pub fn line(name: impl Into<String>, colour: usize, points: Vec<(f64, f64)>) -> Layer {
        let (weight, join) = (Weight::Heavy, Join::Straight);
        Layer::Line { name: name.into(), colour: Colour::Series(colour), weight, join, points }
    }

    /// Returns a light line with straight connections and without a name. It is the background of a heavy line of the same
    /// colour.
    pub fn noise(colour: usize, points: Vec<(f64, f64)>) -> Layer {
        let (weight, join) = (Weight::Light, Join::Straight);
        Layer::Line { name: String::new(), colour: Colour::Series(colour), weight, join, points }
    }

    /// Returns a line of steps: each value holds until the next point.
    pub fn steps(name: impl Into<String>, colour: usize, points: Vec<(f64, f64)>) -> Layer {
        let (weight, join) = (Weight::Heavy, Join::Steps);
        Layer::Line { name: name.into(), colour: Colour::Series(colour), weight, join, points }
    }

    /// Returns dots joined by a thin line.
    pub fn dots(name: impl Into<String>, colour: usize, points: impl IntoIterator<Item = Dot>) -> Layer {
        let points = points.into_iter().collect();
        Layer::Dots { name: name.into(), colour: Colour::Series(colour), points, joined: Joined::Yes }
    }

    /// Returns bars from zero.
    pub fn bars(name: impl Into<String>, colour: usize, bars: impl IntoIterator<Item = Dot>) -> Layer {
        let bars = bars.into_iter().collect();
        Layer::Bars { name: name.into(), colour: Colour::Series(colour), bars }
    }
}

impl Panel {
    /// Returns a panel whose axes both begin at 0; the horizontal axis is in seconds.
    pub fn over_time(title: impl Into<String>, label: impl Into<String>, layers: Vec<Layer>) -> Panel {
        let (x, y) = (Axis::new("time (s)").from(0.0), Axis::new(label).from(0.0));
        Panel { title: title.into(), x, y, layers }
    }
}

impl Figure {
    /// Returns a figure whose panels share their vertical range. The number of columns is chosen automatically.
    pub fn new(
        title: impl Into<String>,
        subtitle: impl Into<String>,
        panels: impl IntoIterator<Item = Panel>,
    ) -> Figure {
        let panels = panels.into_iter().collect();
        Figure { title: title.into(), subtitle: subtitle.into(), panels, columns: 0, ranges: Ranges::Shared }
    }

    /// Sets the number of panels in a row.
    #[must_use]
    pub fn in_columns(self, columns: usize) -> Figure {
        Figure { columns, ..self }
    }

    /// Gives each panel its own vertical range.
    #[must_use]
    pub fn with_own_ranges(self) -> Figure {
        Figure { ranges: Ranges::Own, ..self }
    }

    /// Returns the figure as an SVG document.
    pub fn svg(&self) -> String {
        let (canvas, width, height) = draw::draw(self);
        svg::document(&canvas, width, height, &self.title)
    }

    /// Returns the figure as a PDF document of one page.
    pub fn pdf(&self) -> Vec<u8> {
        let (canvas, width, height) = draw::draw(self);
        pdf::document(&canvas, width, height, &self.title)
    }
}
