//! Layout of figures.

use super::canvas::{self, Anchor, Bold, Canvas, Letters, Stroke};
use super::scale::{self, Scale};
use super::text::{BOLD, width, wrapped};
use super::{Axis, Colour, Dot, Figure, Join, Joined, Layer, Panel, Ranges, Weight};

/// Okabe and Ito's palette. Yellow is left out, because it is too light on white; black is last.
const PALETTE: [canvas::Colour; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#222222"];
const INK: canvas::Colour = "#222222";
const SOFT: canvas::Colour = "#5f6368";
const GRID: canvas::Colour = "#e4e6e8";
const GREY: canvas::Colour = "#9aa0a6";

const TITLE: f64 = 17.0;
const TEXT: f64 = 12.5;
const SMALL: f64 = 11.5;
const EDGE: f64 = 16.0;
/// Distance from the left edge of a panel to the panel's vertical axis.
const LEFT: f64 = 70.0;
/// Height below the horizontal axis, for ticks and label.
const BELOW: f64 = 44.0;
/// Minimum vertical distance between the names of two lines.
const NAME_GAP: f64 = 15.0;

/// A rectangle of the page, and the ranges of values that the rectangle shows.
struct Frame<'a> {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x: Span<'a>,
    y: Span<'a>,
}

/// Range of an axis.
struct Span<'a> {
    axis: &'a Axis,
    from: f64,
    to: f64,
}

impl Span<'_> {
    /// Returns the relative position of a value in the range: 0 at the beginning, 1 at the end.
    fn place(&self, value: f64) -> f64 {
        match self.axis.scale {
            Scale::Linear => (value - self.from) / (self.to - self.from),
            Scale::Logarithmic => (value / self.from).ln() / (self.to / self.from).ln(),
        }
    }
}

impl Frame<'_> {
    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.across(x), self.up(y))
    }

    fn across(&self, x: f64) -> f64 {
        self.left + self.x.place(x) * (self.right - self.left)
    }

    fn up(&self, y: f64) -> f64 {
        self.bottom - self.y.place(y) * (self.bottom - self.top)
    }
}

/// Sizes of the parts of a figure.
struct Layout {
    columns: usize,
    page: f64,
    cell: f64,
    plot_height: f64,
    /// Width to the right of the axes, for the names of lines.
    right: f64,
    names: Names,
}

/// Position of the names of series.
#[derive(PartialEq)]
enum Names {
    AtLines,
    OnTop,
}

/// Draws a figure. Returns the drawing, and the width and height of the drawing.
pub fn draw(figure: &Figure) -> (Canvas, f64, f64) {
    let layout = Layout::of(figure);
    let mut canvas = Canvas::default();
    let mut y = heading(&mut canvas, figure, &layout);
    if layout.names == Names::OnTop {
        y = legend(&mut canvas, figure, layout.page, y);
    }
    let shared = shared_range(figure);
    for (row, panels) in figure.panels.chunks(layout.columns).enumerate() {
        let titled = panels.iter().any(|panel| !panel.title.is_empty());
        let top = y + if titled { 24.0 } else { 8.0 };
        for (column, panel) in panels.iter().enumerate() {
            let left = EDGE + column as f64 * layout.cell + LEFT;
            let x = x_span(panel);
            let y = y_span(panel, shared);
            let right = EDGE + (column + 1) as f64 * layout.cell - layout.right;
            let frame = Frame { left, right, top, bottom: top + layout.plot_height, x, y };
            let first = column == 0 || figure.ranges == Ranges::Own;
            let last_row = row + 1 == figure.panels.len().div_ceil(layout.columns);
            self::panel(&mut canvas, panel, &frame, &layout, (first, last_row));
        }
        y = top + layout.plot_height + BELOW + extra_below(panels, &layout);
    }
    (canvas, layout.page, y + 6.0)
}

impl Layout {
    fn of(figure: &Figure) -> Layout {
        let count = figure.panels.len().max(1);
        let good = match count {
            1 => 1,
            2 | 4 => 2,
            _ => 3,
        };
        let columns = if figure.columns == 0 { good } else { figure.columns.min(count) };
        let names =
            if count == 1 && can_name_at_lines(&figure.panels[0]) { Names::AtLines } else { Names::OnTop };
        let right = match names {
            Names::AtLines => {
                let names = labels_of(&figure.panels[0]);
                let widest = names.map(|name| width(name, TEXT * BOLD)).fold(0.0, f64::max);
                if widest > 0.0 { widest + 20.0 } else { 24.0 }
            }
            Names::OnTop => 24.0,
        };
        let (page, plot_height): (f64, f64) = match columns {
            1 => (800.0, if count == 1 { 320.0 } else { 170.0 }),
            2 => (960.0, 230.0),
            _ => (1080.0, 190.0),
        };
        Layout { columns, page, cell: (page - 2.0 * EDGE) / columns as f64, plot_height, right, names }
    }
}

/// Returns whether names can be drawn at the ends of lines: all names belong to lines, and there is enough room.
fn can_name_at_lines(panel: &Panel) -> bool {
    let lines = panel.layers.iter().all(|layer| {
        !matches!(layer, Layer::Bars { .. } | Layer::Published { .. })
            && !matches!(layer, Layer::Moments { name, .. } if !name.is_empty())
            && !matches!(layer, Layer::Dots { joined: Joined::No, name, .. } if !name.is_empty())
    });
    lines && names_of(panel).count() <= 8
}

/// Returns the labels that may be drawn to the right of the axes.
fn labels_of(panel: &Panel) -> impl Iterator<Item = &str> {
    panel.layers.iter().filter_map(|layer| match layer {
        Layer::Level { name, .. } | Layer::Line { name, .. } | Layer::Dots { name, .. } => {
            Some(name.as_str())
        }
        _ => None,
    })
}

fn names_of(panel: &Panel) -> impl Iterator<Item = (&str, Colour)> {
    panel.layers.iter().filter_map(|layer| match layer {
        Layer::Line { name, colour, .. }
        | Layer::Dots { name, colour, .. }
        | Layer::Bars { name, colour, .. } => (!name.is_empty()).then_some((name.as_str(), *colour)),
        _ => None,
    })
}

fn heading(canvas: &mut Canvas, figure: &Figure, layout: &Layout) -> f64 {
    let mut y = 12.0;
    let style = |size, colour, bold| Letters { size, colour, anchor: Anchor::Start, bold };
    for line in wrapped(&figure.title, TITLE * BOLD, layout.page - 2.0 * EDGE) {
        y += TITLE + 3.0;
        canvas.text((EDGE, y), &line, style(TITLE, INK, Bold::Yes));
    }
    y += 4.0;
    for line in wrapped(&figure.subtitle, TEXT, layout.page - 2.0 * EDGE) {
        y += TEXT + 3.5;
        canvas.text((EDGE, y), &line, style(TEXT, SOFT, Bold::No));
    }
    y + 10.0
}

/// Symbol beside a name in the legend.
#[derive(PartialEq)]
enum Swatch {
    Line(Colour),
    Dot(Colour),
    Box(Colour),
    Diamond,
    Dash,
}

fn swatches(figure: &Figure) -> Vec<(String, Swatch)> {
    let mut all: Vec<(String, Swatch)> = Vec::new();
    for layer in figure.panels.iter().flat_map(|panel| &panel.layers) {
        let (name, swatch) = match layer {
            Layer::Line { name, colour, .. } => (name.clone(), Swatch::Line(*colour)),
            Layer::Dots { name, colour, .. } => (name.clone(), Swatch::Dot(*colour)),
            Layer::Bars { name, colour, .. } => (name.clone(), Swatch::Box(*colour)),
            Layer::Published { .. } => ("published".into(), Swatch::Diamond),
            Layer::Moments { name, .. } => (name.clone(), Swatch::Dash),
            Layer::Band { .. } | Layer::Level { .. } | Layer::Span { .. } => continue,
        };
        if !name.is_empty() && !all.iter().any(|(known, _)| *known == name) {
            all.push((name, swatch));
        }
    }
    all
}

fn legend(canvas: &mut Canvas, figure: &Figure, page: f64, top: f64) -> f64 {
    let (mut x, mut y) = (EDGE, top + 8.0);
    let all = swatches(figure);
    if all.len() < 2 && !all.iter().any(|(_, swatch)| *swatch == Swatch::Diamond) {
        // A single series needs no legend, because the title and the label of the axis describe it.
        if all.iter().all(|(_, swatch)| matches!(swatch, Swatch::Box(_))) {
            return top;
        }
    }
    for (name, swatch) in all {
        let wide = 30.0 + width(&name, TEXT) + 14.0;
        if x + wide > page - EDGE && x > EDGE {
            (x, y) = (EDGE, y + 18.0);
        }
        match swatch {
            Swatch::Line(colour) => canvas.line((x, y), (x + 22.0, y), Stroke::solid(paint(colour), 2.5)),
            Swatch::Dot(colour) => {
                canvas.line((x, y), (x + 22.0, y), Stroke::solid(paint(colour), 1.2));
                canvas.dot((x + 11.0, y), 3.5, paint(colour));
            }
            Swatch::Box(colour) => {
                canvas.rectangle((x + 6.0, y - 6.0), (x + 20.0, y + 6.0), paint(colour), 1.0)
            }
            Swatch::Diamond => canvas.diamond((x + 12.0, y), 6.0, INK),
            Swatch::Dash => canvas.line((x + 11.0, y - 8.0), (x + 11.0, y + 8.0), moment()),
        }
        let style = Letters { size: TEXT, colour: INK, anchor: Anchor::Start, bold: Bold::No };
        canvas.text((x + 28.0, y + 4.5), &name, style);
        x += wide;
    }
    y + 14.0
}

fn paint(colour: Colour) -> canvas::Colour {
    match colour {
        Colour::Series(number) => PALETTE[number % PALETTE.len()],
        Colour::Grey => GREY,
    }
}

fn moment() -> Stroke {
    Stroke { colour: SOFT, width: 1.0, opacity: 0.7, dashes: "3 3" }
}

// Ranges of axes.

fn dot_ends(dots: &[Dot]) -> impl Iterator<Item = f64> {
    dots.iter().flat_map(|dot| {
        let (from, to) = dot.interval.unwrap_or((dot.y, dot.y));
        [dot.y, from, to]
    })
}

fn heights(layer: &Layer) -> Vec<f64> {
    match layer {
        Layer::Line { points, .. } | Layer::Published { points } => points.iter().map(|p| p.1).collect(),
        Layer::Dots { points: dots, .. } | Layer::Bars { bars: dots, .. } => dot_ends(dots).collect(),
        Layer::Level { y, .. } => vec![*y],
        // Bands, moments and spans do not count: the band of a few runs can be so wide that it would compress all other layers.
        Layer::Band { .. } | Layer::Moments { .. } | Layer::Span { .. } => Vec::new(),
    }
}

fn places(layer: &Layer) -> Vec<f64> {
    match layer {
        Layer::Line { points, .. } | Layer::Published { points } => points.iter().map(|p| p.0).collect(),
        Layer::Band { points, .. } => points.iter().map(|p| p.0).collect(),
        Layer::Dots { points: dots, .. } | Layer::Bars { bars: dots, .. } => {
            dots.iter().map(|d| d.x).collect()
        }
        Layer::Level { .. } | Layer::Moments { .. } | Layer::Span { .. } => Vec::new(),
    }
}

/// Returns the lowest and the highest finite value; (0, 1) if all values are infinite or NaN.
fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low > high { (0.0, 1.0) } else { (low, high) }
}

fn x_span(panel: &Panel) -> Span<'_> {
    let axis = &panel.x;
    if !axis.categories.is_empty() {
        return Span { axis, from: -0.5, to: axis.categories.len() as f64 - 0.5 };
    }
    let (low, high) = extent(panel.layers.iter().flat_map(places));
    let (mut from, mut to) = (axis.from.unwrap_or(low), axis.to.unwrap_or(high));
    if to <= from {
        (from, to) = match axis.scale {
            Scale::Linear => (from - 0.5, from + 0.5),
            Scale::Logarithmic => (from / 2.0, from * 2.0),
        };
    }
    Span { axis, from, to }
}

/// Returns the range of the values of all panels, if the panels share a range.
fn shared_range(figure: &Figure) -> Option<(f64, f64)> {
    let wanted = figure.ranges == Ranges::Shared && figure.panels.len() > 1;
    wanted.then(|| extent(figure.panels.iter().flat_map(|panel| &panel.layers).flat_map(heights)))
}

fn y_span(panel: &Panel, shared: Option<(f64, f64)>) -> Span<'_> {
    let axis = &panel.y;
    let (low, high) = shared.unwrap_or_else(|| extent(panel.layers.iter().flat_map(heights)));
    if axis.scale == Scale::Logarithmic {
        let from = axis.from.unwrap_or(low / 1.3);
        return Span { axis, from, to: axis.to.unwrap_or(high * 1.3).max(from * 2.0) };
    }
    let low = axis.from.unwrap_or(low.min(0.0));
    let head_room = if axis.to.is_some() { 0.0 } else { 0.03 * (high - low) };
    let high = axis.to.unwrap_or(high + head_room);
    let high = if high > low { high } else { low + 1.0 };
    let (from, to) = scale::rounded(low, high, 5);
    Span { axis, from: axis.from.unwrap_or(from), to: axis.to.unwrap_or(to) }
}

// Draws a panel.

fn panel(
    canvas: &mut Canvas,
    panel: &Panel,
    frame: &Frame<'_>,
    layout: &Layout,
    (first, last_row): (bool, bool),
) {
    let title = Letters { size: TEXT + 0.5, colour: INK, anchor: Anchor::Start, bold: Bold::Yes };
    canvas.text((frame.left, frame.top - 9.0), &panel.title, title);
    spans(canvas, panel, frame);
    y_axis(canvas, frame, first);
    x_axis(canvas, frame, last_row || !frame.x.axis.categories.is_empty());
    // The clip is wider than the frame by half a line's width, so that lines at the edge are drawn completely.
    canvas.clip((frame.left - 1.5, frame.top - 1.5), (frame.right + 1.5, frame.bottom + 1.5));
    let slots = panel.layers.iter().filter(|layer| matches!(layer, Layer::Bars { .. })).count();
    let mut slot = 0;
    for layer in &panel.layers {
        self::layer(canvas, layer, frame, (slot, slots));
        slot += usize::from(matches!(layer, Layer::Bars { .. }));
    }
    canvas.end();
    bar_values(canvas, panel, frame, slots);
    published(canvas, panel, frame, slots);
    match layout.names {
        Names::AtLines => names_at_lines(canvas, panel, frame),
        Names::OnTop => level_names(canvas, panel, frame),
    }
    canvas.line((frame.left, frame.bottom), (frame.right, frame.bottom), Stroke::solid(INK, 1.0));
}

fn y_axis(canvas: &mut Canvas, frame: &Frame<'_>, named: bool) {
    let (from, to) = (frame.y.from, frame.y.to);
    let wanted = ((frame.bottom - frame.top) / 42.0) as usize;
    let (ticks, step) = match frame.y.axis.scale {
        Scale::Linear => {
            let ticks = scale::linear_ticks(from, to, wanted);
            let step = if ticks.len() > 1 { ticks[1] - ticks[0] } else { to - from };
            (ticks, step)
        }
        Scale::Logarithmic => (scale::logarithmic_ticks(from, to), 0.0),
    };
    let style = Letters { size: SMALL, colour: SOFT, anchor: Anchor::End, bold: Bold::No };
    for tick in ticks {
        let y = frame.up(tick);
        canvas.line((frame.left, y), (frame.right, y), Stroke::solid(GRID, 1.0));
        canvas.text((frame.left - 7.0, y + 4.0), &tick_text(frame.y.axis, tick, step), style);
    }
    if named {
        let style = Letters { anchor: Anchor::Middle, size: TEXT, colour: INK, ..style };
        let middle = (frame.left - LEFT + 12.0, 0.5 * (frame.top + frame.bottom));
        canvas.turned_text(middle, &frame.y.axis.label, style, -90.0);
    }
}

fn tick_text(axis: &Axis, tick: f64, step: f64) -> String {
    match axis.scale {
        Scale::Linear => scale::tick_label(tick, step),
        Scale::Logarithmic => scale::short(tick).trim_end_matches(".00").trim_end_matches(".0").to_owned(),
    }
}

fn x_axis(canvas: &mut Canvas, frame: &Frame<'_>, named: bool) {
    let style = Letters { size: SMALL, colour: SOFT, anchor: Anchor::Middle, bold: Bold::No };
    let axis = frame.x.axis;
    let mut depth = 1;
    if axis.categories.is_empty() {
        let wanted = ((frame.right - frame.left) / 80.0) as usize;
        let ticks = match axis.scale {
            Scale::Linear => scale::linear_ticks(frame.x.from, frame.x.to, wanted),
            Scale::Logarithmic => scale::logarithmic_ticks(frame.x.from, frame.x.to),
        };
        let step = if ticks.len() > 1 { ticks[1] - ticks[0] } else { 1.0 };
        for tick in ticks {
            let x = frame.across(tick);
            canvas.line((x, frame.bottom), (x, frame.bottom + 4.0), Stroke::solid(INK, 1.0));
            canvas.text((x, frame.bottom + 17.0), &tick_text(axis, tick, step), style);
        }
    } else {
        let style = Letters { colour: INK, ..style };
        for (number, name) in axis.categories.iter().enumerate() {
            let lines = category_lines(name, frame.right - frame.left, axis.categories.len());
            depth = depth.max(lines.len());
            for (row, line) in lines.iter().enumerate() {
                let y = frame.bottom + 17.0 + 14.0 * row as f64;
                canvas.text((frame.across(number as f64), y), line, style);
            }
        }
    }
    if named {
        let style = Letters { size: TEXT, colour: INK, ..style };
        let y = frame.bottom + 22.0 + 14.0 * depth as f64;
        canvas.text((0.5 * (frame.left + frame.right), y), &axis.label, style);
    }
}

fn category_lines(name: &str, plot_width: f64, count: usize) -> Vec<String> {
    wrapped(name, SMALL, plot_width / count as f64 - 6.0)
}

/// Returns the additional height below the panels that the longest category name needs.
fn extra_below(panels: &[Panel], layout: &Layout) -> f64 {
    let plot_width = layout.cell - LEFT - layout.right;
    let lines = panels.iter().flat_map(|panel| {
        let count = panel.x.categories.len();
        panel.x.categories.iter().map(move |name| category_lines(name, plot_width, count).len())
    });
    14.0 * lines.max().unwrap_or(1).saturating_sub(1) as f64
}

fn spans(canvas: &mut Canvas, panel: &Panel, frame: &Frame<'_>) {
    let mut shaded = false;
    for layer in &panel.layers {
        if let Layer::Span { name, from, to } = layer {
            let (left, right) = (frame.across(*from), frame.across(*to));
            shaded = !shaded; // every second one, so that neighbours differ
            if shaded {
                canvas.rectangle((left, frame.top), (right, frame.bottom), "#f1f2f4", 1.0);
            }
            let style = Letters { size: SMALL, colour: SOFT, anchor: Anchor::Middle, bold: Bold::No };
            canvas.text((0.5 * (left + right), frame.top + 14.0), name, style);
        }
    }
}

// Drawing of layers.

fn layer(canvas: &mut Canvas, layer: &Layer, frame: &Frame<'_>, slot: (usize, usize)) {
    match layer {
        Layer::Line { colour, weight, join, points, .. } => {
            let stroke = match weight {
                Weight::Heavy => Stroke::solid(paint(*colour), 2.2),
                Weight::Light => Stroke { opacity: 0.4, ..Stroke::solid(paint(*colour), 1.0) },
            };
            canvas.path(&runs(points, *join, frame), stroke);
        }
        Layer::Band { colour, points } => band(canvas, points, frame, paint(*colour)),
        Layer::Dots { colour, points, joined, .. } => dots(canvas, points, *joined, frame, paint(*colour)),
        Layer::Bars { colour, bars, .. } => self::bars(canvas, bars, frame, paint(*colour), slot),
        Layer::Level { y, .. } => {
            let y = frame.up(*y);
            let stroke = Stroke { dashes: "6 4", ..Stroke::solid(SOFT, 1.2) };
            canvas.line((frame.left, y), (frame.right, y), stroke);
        }
        Layer::Moments { at, .. } => {
            for &at in at {
                let x = frame.across(at);
                canvas.line((x, frame.top), (x, frame.bottom), moment());
            }
        }
        Layer::Published { .. } | Layer::Span { .. } => {}
    }
}

/// Returns the positions of points as sequences, with a new sequence after each missing value.
fn runs(points: &[(f64, f64)], join: Join, frame: &Frame<'_>) -> Vec<Vec<(f64, f64)>> {
    points
        .split(|point| !point.1.is_finite())
        .map(|run| {
            let mut places: Vec<(f64, f64)> = Vec::with_capacity(run.len());
            for &(x, y) in run {
                let (x, y) = frame.at(x, y);
                if let (Join::Steps, Some(&(_, before))) = (join, places.last()) {
                    places.push((x, before));
                }
                places.push((x, y));
            }
            if let (Join::Steps, Some(&(_, last))) = (join, places.last()) {
                places.push((frame.right, last));
            }
            places
        })
        .collect()
}

fn band(canvas: &mut Canvas, points: &[(f64, f64, f64)], frame: &Frame<'_>, fill: canvas::Colour) {
    let points: Vec<_> = points.iter().filter(|p| p.1.is_finite() && p.2.is_finite()).collect();
    let lower = points.iter().map(|p| frame.at(p.0, p.1));
    let upper = points.iter().rev().map(|p| frame.at(p.0, p.2));
    let corners: Vec<(f64, f64)> = lower.chain(upper).collect();
    if corners.len() > 3 {
        canvas.polygon(&corners, fill, 0.18);
    }
}

fn whisker(canvas: &mut Canvas, x: f64, (from, to): (f64, f64), colour: canvas::Colour) {
    canvas.line((x, from), (x, to), Stroke::solid(colour, 1.4));
    for y in [from, to] {
        canvas.line((x - 3.5, y), (x + 3.5, y), Stroke::solid(colour, 1.4));
    }
}

fn dots(canvas: &mut Canvas, points: &[Dot], joined: Joined, frame: &Frame<'_>, colour: canvas::Colour) {
    if joined == Joined::Yes {
        let line: Vec<(f64, f64)> = points.iter().map(|dot| (dot.x, dot.y)).collect();
        canvas.path(&runs(&line, Join::Straight, frame), Stroke::solid(colour, 1.4));
    }
    for dot in points.iter().filter(|dot| dot.y.is_finite()) {
        if let Some((from, to)) = dot.interval {
            whisker(canvas, frame.across(dot.x), (frame.up(from), frame.up(to)), colour);
        }
        canvas.dot(frame.at(dot.x, dot.y), 3.6, colour);
    }
}

/// Returns the centre and half the width of a bar in category `x`. The bar is number `slot` of `slots` in the category.
fn bar_place(frame: &Frame<'_>, x: f64, (slot, slots): (usize, usize)) -> (f64, f64) {
    let category = frame.across(x + 0.5) - frame.across(x - 0.5);
    let wide = (category * 0.72 / slots as f64).min(64.0);
    (frame.across(x) + (slot as f64 - 0.5 * (slots as f64 - 1.0)) * wide, 0.5 * wide - 1.5)
}

fn bars(canvas: &mut Canvas, bars: &[Dot], frame: &Frame<'_>, colour: canvas::Colour, slot: (usize, usize)) {
    let zero = frame.up(frame.y.from.max(0.0));
    for bar in bars.iter().filter(|bar| bar.y.is_finite()) {
        let (middle, half) = bar_place(frame, bar.x, slot);
        canvas.rectangle((middle - half, frame.up(bar.y)), (middle + half, zero), colour, 1.0);
        if let Some((from, to)) = bar.interval {
            whisker(canvas, middle, (frame.up(from), frame.up(to)), INK);
        }
    }
}

/// Draws published values as diamonds. If the panel has bars, the diamonds are moved to the side, so that they do not cover the
/// bars.
fn published(canvas: &mut Canvas, panel: &Panel, frame: &Frame<'_>, slots: usize) {
    for layer in &panel.layers {
        let Layer::Published { points } = layer else { continue };
        for &(x, y) in points.iter().filter(|(_, y)| y.is_finite()) {
            let aside = match slots {
                0 => 0.0,
                _ => {
                    let (middle, half) = bar_place(frame, x, (slots - 1, slots));
                    middle + half + 9.0 - frame.across(x)
                }
            };
            canvas.diamond((frame.across(x) + aside, frame.up(y)), 6.0, INK);
        }
    }
}

/// Writes numbers above bars, if there is room.
fn bar_values(canvas: &mut Canvas, panel: &Panel, frame: &Frame<'_>, slots: usize) {
    let style = Letters { size: SMALL, colour: INK, anchor: Anchor::Middle, bold: Bold::No };
    let mut slot = 0;
    for layer in &panel.layers {
        let Layer::Bars { bars, .. } = layer else { continue };
        for bar in bars.iter().filter(|bar| bar.y.is_finite()) {
            let (middle, half) = bar_place(frame, bar.x, (slot, slots));
            let top = bar.interval.map_or(bar.y, |(_, to)| to.max(bar.y));
            let text = scale::short(bar.y);
            if width(&text, SMALL) <= 2.0 * half + 12.0 {
                canvas.text((middle, frame.up(top) - 6.0), &text, style);
            }
        }
        slot += 1;
    }
}

// Drawing of names.

fn level_names(canvas: &mut Canvas, panel: &Panel, frame: &Frame<'_>) {
    let style = Letters { size: SMALL, colour: SOFT, anchor: Anchor::End, bold: Bold::No };
    for layer in &panel.layers {
        if let Layer::Level { name, y } = layer {
            canvas.text_on_white((frame.right - 4.0, frame.up(*y) - 5.0), name, style);
        }
    }
}

/// Writes each name at the end of its line. Names of lines that end close to each other are moved apart.
fn names_at_lines(canvas: &mut Canvas, panel: &Panel, frame: &Frame<'_>) {
    let mut names: Vec<(f64, &str, canvas::Colour)> =
        panel.layers.iter().filter_map(|layer| end_of(layer, frame)).collect();
    names.sort_by(|a, b| a.0.total_cmp(&b.0));
    let wanted: Vec<f64> = names.iter().map(|name| name.0).collect();
    let places = spread(&wanted, frame.top + 4.0, frame.bottom - 4.0);
    for ((wanted, name, colour), place) in names.into_iter().zip(places) {
        if (place - wanted).abs() > 3.0 {
            let stroke = Stroke::solid(colour, 0.8);
            canvas.line((frame.right + 1.0, wanted), (frame.right + 8.0, place), stroke);
        }
        let bold = if colour == SOFT { Bold::No } else { Bold::Yes };
        let style = Letters { size: TEXT, colour, anchor: Anchor::Start, bold };
        canvas.text((frame.right + 10.0, place + 4.3), name, style);
    }
}

/// Returns the vertical position of a line's end, and the line's name and colour.
fn end_of<'a>(layer: &'a Layer, frame: &Frame<'_>) -> Option<(f64, &'a str, canvas::Colour)> {
    let (name, colour, end) = match layer {
        Layer::Line { name, colour, points, .. } => {
            (name, paint(*colour), points.iter().rev().find(|p| p.1.is_finite())?.1)
        }
        Layer::Dots { name, colour, points, .. } => {
            (name, paint(*colour), points.iter().rev().find(|d| d.y.is_finite())?.y)
        }
        Layer::Level { name, y } => (name, SOFT, *y),
        _ => return None,
    };
    let place = frame.up(end).clamp(frame.top, frame.bottom);
    (!name.is_empty()).then_some((place, name.as_str(), colour))
}

/// Returns positions close to the positions `wanted`, which are in ascending order. The results are at least [`NAME_GAP`] apart
/// and between `top` and `bottom`.
pub fn spread(wanted: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut places = wanted.to_vec();
    for _ in 0..200 {
        for next in 1..places.len() {
            let overlap = NAME_GAP - (places[next] - places[next - 1]);
            if overlap > 1e-6 {
                places[next - 1] -= 0.5 * overlap;
                places[next] += 0.5 * overlap;
            }
        }
        if let Some(first) = places.first_mut() {
            *first = first.max(top);
        }
        if let Some(last) = places.last_mut() {
            *last = last.min(bottom);
        }
    }
    places
}
