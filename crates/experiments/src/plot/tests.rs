use super::scale::{linear_ticks, logarithmic_ticks, rounded, short, tick_label};
use super::*;

fn wave(n: usize, amplitude: f64) -> Vec<(f64, f64)> {
    (0..n).map(|t| (t as f64, 300.0 + amplitude * (t as f64 / 7.0).sin())).collect()
}

fn figure() -> Figure {
    let layers = vec![
        Layer::noise(0, wave(100, 80.0)),
        Layer::line("multicast", 0, wave(100, 10.0)),
        Layer::Band { colour: Colour::Series(1), points: vec![(0.0, 250.0, 290.0), (99.0, 260.0, 300.0)] },
        Layer::line("TCP & co", 1, vec![(0.0, 270.0), (50.0, f64::NAN), (99.0, 280.0)]),
        Layer::Level { name: "fair share".into(), y: 333.0 },
        Layer::Moments { name: String::new(), at: vec![20.0, 60.0] },
    ];
    let panel = Panel { x: Axis::new("time (s)"), y: Axis::new("rate (kbit/s)"), layers, ..Panel::default() };
    Figure::new("Rates over time", "one run", [panel])
}

#[test]
fn equal_figures_give_equal_bytes() {
    assert_eq!(figure().svg(), figure().svg());
    let mut other = figure();
    other.title.push('!');
    assert_ne!(figure().svg(), other.svg());
}

#[test]
fn svg_is_well_formed_and_contains_all_texts_of_the_figure() {
    let svg = figure().svg();
    for text in
        ["Rates over time", "one run", "time (s)", "rate (kbit/s)", "multicast", "TCP &amp; co", "fair share"]
    {
        assert!(svg.contains(&format!(">{text}<")), "{text} is missing");
    }
    let opened = svg.matches("<svg").count() + svg.matches("<text").count();
    let closed = svg.matches("</svg>").count() + svg.matches("</text>").count();
    assert_eq!(opened, closed);
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

#[test]
fn line_has_a_gap_where_a_value_is_missing() {
    let svg = figure().svg();
    let path = svg.lines().find(|line| line.contains("#d55e00") && line.contains("<path")).expect("its line");
    assert_eq!(path.matches('M').count(), 2, "{path}");
}

#[test]
fn bar_panel_shows_the_names_and_values_of_all_series() {
    let bars = |name: &str, colour, y| Layer::Bars {
        name: name.into(),
        colour: Colour::Series(colour),
        bars: vec![Dot { x: 0.0, y, interval: Some((y - 1.0, y + 1.0)) }],
    };
    let panel = Panel {
        x: Axis::new("scheme").named(vec!["ORMCC".into()]),
        y: Axis::new("throughput (kbit/s)"),
        layers: vec![
            bars("measured", 0, 40.0),
            bars("other", 1, 20.0),
            Layer::Published { points: vec![(0.0, 41.0)] },
        ],
        ..Panel::default()
    };
    let svg = Figure::new("Bars", "", [panel]).svg();
    for text in ["measured", "other", "published", "ORMCC", "40.0", "20.0"] {
        assert!(svg.contains(&format!(">{text}<")), "{text} is missing:\n{svg}");
    }
}

#[test]
fn panels_share_a_range_by_default() {
    let panel = |top: f64| Panel {
        layers: vec![Layer::line("a", 0, vec![(0.0, 0.0), (1.0, top)])],
        ..Panel::default()
    };
    let mut both = Figure { panels: vec![panel(1.0), panel(100.0)], ..Figure::default() };
    let shared = both.svg();
    both.ranges = Ranges::Own;
    let own = both.svg();
    assert_eq!(shared.matches(">100<").count(), 2, "{shared}");
    assert_eq!(own.matches(">100<").count(), 1, "{own}");
}

#[test]
fn figure_without_points_is_valid() {
    let panel = Panel { layers: vec![Layer::line("none", 0, Vec::new())], ..Panel::default() };
    let svg = Figure::new("Empty", "", [panel]).svg();
    assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN"), "{svg}");
}

#[test]
fn ticks_are_round_numbers_within_the_range() {
    assert_eq!(linear_ticks(0.0, 1000.0, 5), [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
    assert_eq!(linear_ticks(-1.0, 1.0, 4), [-1.0, -0.5, 0.0, 0.5, 1.0]);
    assert_eq!(logarithmic_ticks(10.0, 10_000.0), [10.0, 100.0, 1000.0, 10_000.0]);
    assert_eq!(logarithmic_ticks(1.0, 10.0), [1.0, 2.0, 5.0, 10.0]);
    assert_eq!(rounded(0.0, 417.0, 5), (0.0, 500.0));
}

#[test]
fn tick_labels_have_only_the_necessary_digits() {
    assert_eq!(tick_label(0.5, 0.5), "0.5");
    assert_eq!(tick_label(0.25, 0.25), "0.25");
    assert_eq!(tick_label(20_000.0, 5_000.0), "20\u{202f}000");
    assert_eq!(tick_label(-3.0, 1.0), "\u{2212}3");
    assert_eq!(
        (short(415.44), short(0.8123), short(34_601.0), short(0.0)),
        ("415".into(), "0.812".into(), "34\u{202f}601".into(), "0".into())
    );
}

#[test]
fn overlapping_labels_are_moved_apart_inside_the_range() {
    let places = draw::spread(&[100.0, 101.0, 102.0, 200.0], 0.0, 202.0);
    assert!(places.windows(2).all(|pair| pair[1] - pair[0] > 14.9), "{places:?}");
    assert!(places.iter().all(|&place| (0.0..=202.0).contains(&place)), "{places:?}");
    assert_eq!(places[3], 200.0);
}

#[test]
fn pdf_has_the_texts_of_the_svg_and_embeds_no_fonts() {
    let pdf = figure().pdf();
    let text = String::from_utf8_lossy(&pdf);
    for printed in ["Rates over time", "time (s)", "TCP & co", "fair share"] {
        assert!(text.contains(printed), "{printed} is missing");
    }
    assert!(text.contains("/Helvetica") && !text.contains("/FontFile") && text.trim_end().ends_with("%%EOF"));
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    // A clip applies from the point at which the graphics state is saved until the state is restored.
    let words = |word: &str| text.lines().filter(|line| *line == word).count();
    assert_eq!(words("q"), words("Q"));
    assert_eq!(pdf, figure().pdf());
}
