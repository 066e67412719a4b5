//! Numbers with units: `1.5 Mbit/s`, `50 ms`, `50 kB`, `5 %`. Times, rates and buffers require a unit. A packet size without a
//! unit is in bytes.

use super::plan::RouterKind;
use super::syntax::{Node, Value};
use super::traces::{self, RateTrace, SendTrace};
use faircast_aqm::{Limit, LossSpec, QueueSpec};
use faircast_core::spec::MAX_RATE;
use faircast_core::time::Span;
use faircast_sim::{Law, Topology};
use faircast_topology::Edge;

/// The expected form of a value.
pub(crate) type Wanted = &'static str;

pub(crate) const TIME: Wanted = "a time with its unit, such as \"50 ms\", \"1.5 s\" or \"2 min\"";
pub(crate) const RATE: Wanted =
    "a rate with its unit, such as \"1.5 Mbit/s\", of at most \"1000 Tbit/s\", or \"unlimited\"";
pub(crate) const SIZE: Wanted = "a packet size such as \"1000 B\", or a number of bytes, from 1 to 65535";
pub(crate) const QUEUE: Wanted = "a drop-tail buffer such as \"50 kB\", \"20 packets\" or \"unlimited\", or a discipline \
    (docs/queues.md) such as \"red,buffer=60,ecn\", \"codel\" or \"drr,limit=60\"";
pub(crate) const LOSS: Wanted =
    "a share such as 0.05 or \"5 %\", or bursts such as \"gilbert,to_bad=0.01,to_good=0.3\"";
pub(crate) const ROUTER: Wanted = "`acknowledgements`, or `rmanp` and its options, such as \"rmanp,da=0.9\"";
pub(crate) const NETWORK: Wanted =
    "lines such as \"host a\", \"router r\" and \"link a r rate=10M delay=20ms\"";
pub(crate) const SHARE: Wanted = "a share such as 0.05 or \"5 %\", from 0 to 1";
pub(crate) const CLOCK_ERRORS: Wanted = "an error such as \"10 ppm\" or \"-20 ppm\", of a tenth at most, a list of errors (used in turn), or \"-50 ppm .. 50 ppm\" (drawn at random)";
pub(crate) const WHOLE: Wanted = "a whole number, 0 or more";
pub(crate) const LAW: Wanted = "a law and a mean, such as \"exponential 1 s\", \"pareto 60 s\", \"pareto 20 shape 1.2\", \"constant 3 s\" or \"uniform 5 s\"";

const TIMES: &[(&str, f64)] =
    &[("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("ns", 1e-9), ("min", 60.0), ("h", 3600.0)];
const RATES: &[(&str, f64)] = &[
    ("bit/s", 1.0),
    ("kbit/s", 1e3),
    ("Mbit/s", 1e6),
    ("Gbit/s", 1e9),
    ("Tbit/s", 1e12),
    ("bps", 1.0),
    ("kbps", 1e3),
    ("Mbps", 1e6),
    ("Gbps", 1e9),
    ("b/s", 1.0),
    ("kb/s", 1e3),
    ("Mb/s", 1e6),
    ("Gb/s", 1e9),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
];
const SIZES: &[(&str, f64)] =
    &[("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("KiB", 1024.0), ("MiB", 1048576.0)];
const PLAIN: &[(&str, f64)] = &[];

/// Parses a number in the same way as `signed`, but rejects negative numbers.
fn quantity(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    signed(text, units).filter(|value| *value >= 0.0)
}

/// Parses a number with one of these units. A number without a unit is in base units.
fn signed(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|(at, c)| {
            !(c.is_ascii_digit() || *c == '.' || *c == '_' || (*at == 0 && matches!(c, '-' | '+')))
        })
        .map_or(text.len(), |(at, _)| at);
    // An exponent, as in `1e6 bit/s`.
    let end = match text[end..].strip_prefix(['e', 'E']) {
        Some(rest) => {
            let digits = rest.strip_prefix(['-', '+']).unwrap_or(rest);
            let count = digits.bytes().take_while(u8::is_ascii_digit).count();
            if count > 0 { text.len() - digits.len() + count } else { end }
        }
        None => end,
    };
    let number: f64 = text[..end].replace('_', "").parse().ok()?;
    let unit = text[end..].trim();
    let factor =
        if unit.is_empty() { 1.0 } else { units.iter().find(|(name, _)| *name == unit).map(|(_, f)| *f)? };
    // Division by an integer is exact, while multiplication by the inverse of the integer is not.
    let value = if factor < 1.0 { number / (1.0 / factor).round() } else { number * factor };
    value.is_finite().then_some(value)
}

/// Returns a nonzero number without a unit, from a number or a text.
pub(crate) fn bare(node: &Node) -> Option<f64> {
    let number = match &node.value {
        Value::Text(text) => text.trim().parse().ok()?,
        _ => node.number()?,
    };
    (number != 0.0).then_some(number)
}

fn number(node: &Node, units: &[(&str, f64)]) -> Option<f64> {
    match &node.value {
        Value::Text(text) => quantity(text, units),
        Value::Number(number) => (number.is_finite() && *number >= 0.0).then_some(*number),
        _ => None,
    }
}

/// Reads a time in seconds.
pub(crate) fn time(node: &Node) -> Option<f64> {
    if bare(node).is_some() { None } else { number(node, TIMES) }
}

/// Reads a rate in bits per second.
pub(crate) fn rate(node: &Node) -> Option<f64> {
    match node.text().map(str::trim) {
        Some("unlimited") => Some(f64::INFINITY),
        _ if bare(node).is_some() => None,
        _ => number(node, RATES).filter(|rate| *rate > 0.0 && *rate <= MAX_RATE),
    }
}

/// Reads a size in bytes.
pub(crate) fn size(node: &Node) -> Option<f64> {
    number(node, SIZES)
}

/// Reads a share from 0 to 1.
pub(crate) fn share(node: &Node) -> Option<f64> {
    number(node, &[("%", 0.01)]).filter(|share| *share <= 1.0)
}

/// Reads a relative clock error. A positive error means that the clock is fast.
pub(crate) fn clock_error(node: &Node) -> Option<f64> {
    let error = match &node.value {
        Value::Text(text) => signed(text, &[("ppm", 1e-6), ("%", 0.01)]),
        _ => node.number(),
    };
    error.filter(|error| error.abs() <= 0.1)
}

/// Reads a whole number: 0, 1, 2, ...
pub(crate) fn whole(node: &Node) -> Option<u64> {
    let whole = node.number().filter(|number| number.fract() == 0.0 && (0.0..=9e15).contains(number))?;
    Some(whole as u64)
}

/// Reads the limit of a buffer.
pub(crate) fn limit(node: &Node) -> Option<Limit> {
    let in_range = |value: f64| (value <= f64::from(u32::MAX)).then_some(value.round() as u32);
    match node.text().map(str::trim) {
        Some("unlimited") => Some(Limit::Packets(u32::MAX)),
        Some(text) if text.contains("packet") => {
            let packets = quantity(text, &[("packets", 1.0), ("packet", 1.0)])?;
            in_range(packets).filter(|_| packets.fract() == 0.0).map(Limit::Packets)
        }
        _ if bare(node).is_some() => None,
        _ => in_range(size(node)?).map(Limit::Bytes),
    }
}

/// Reads the specification of a queue. If the parser of specifications was called, the error contains its message.
pub(crate) fn queue(node: &Node) -> Result<QueueSpec, Option<String>> {
    let spec = match (limit(node), node.text()) {
        (Some(limit), _) => QueueSpec::DropTail(limit),
        (None, Some(text)) if text.starts_with(char::is_alphabetic) => {
            text.parse().map_err(|error: faircast_core::spec::SpecError| Some(error.to_string()))?
        }
        _ => return Err(None),
    };
    spec.checked().map_err(|error| Some(error.to_string()))
}

/// Reads a loss model; a probability of zero means `None`. If the parser of loss models was called, the error contains its
/// message.
pub(crate) fn loss(node: &Node) -> Result<Option<LossSpec>, Option<String>> {
    match (share(node), node.text()) {
        (Some(share), _) => Ok((share > 0.0).then_some(LossSpec::Bernoulli(share))),
        (None, Some(text)) if text.starts_with(char::is_alphabetic) => {
            text.parse().map(Some).map_err(|error: faircast_core::spec::SpecError| Some(error.to_string()))
        }
        _ => Err(None),
    }
}

/// Reads the function of a router. The error contains the message of the parser of router functions.
pub(crate) fn router(node: &Node) -> Result<RouterKind, Option<String>> {
    let text = node.text().ok_or(None)?;
    match text.split_once(',').unwrap_or((text, "")) {
        ("acknowledgements", "") => Ok(RouterKind::Acknowledgements),
        ("rmanp", options) => options
            .parse()
            .map(RouterKind::Active)
            .map_err(|error: faircast_core::spec::SpecError| Some(error.to_string())),
        _ => Err(None),
    }
}

/// Reads a network in which all links have both directions.
pub(crate) fn network(node: &Node) -> Result<Topology, Option<String>> {
    let text = node.text().ok_or(None)?;
    let network = Topology::parse(text).map_err(|error| Some(error.to_string()))?;
    let (pairs, rest) = network.edges().as_chunks::<2>();
    let both_ways = |[there, back]: &[Edge; 2]| there.from == back.to && there.to == back.from;
    if rest.is_empty() && pairs.iter().all(both_ways) {
        Ok(network)
    } else {
        Err(Some("a link has only one direction; in scenarios each link needs a reverse link".to_owned()))
    }
}

/// Reads the transmissions of a source.
pub(crate) fn sends(node: &Node) -> Result<SendTrace, Option<String>> {
    traces::sends(node.text().ok_or(None)?).map_err(|error| Some(error.to_string()))
}

/// Reads the rates of a link over time; Mahimahi's opportunities are averaged over 100 ms.
pub(crate) fn rates(node: &Node) -> Result<RateTrace, Option<String>> {
    rates_over(node, Span::from_millis(100))
}

/// Reads the rates of a link over time; Mahimahi's opportunities are averaged over `bin`.
pub(crate) fn rates_over(node: &Node, bin: Span) -> Result<RateTrace, Option<String>> {
    traces::rates(node.text().ok_or(None)?, bin).map_err(|error| Some(error.to_string()))
}

/// The quantity that a distribution describes. The quantity determines the unit of the distribution's mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LawOf {
    Times,
    Counts,
}

/// Shape of a Pareto distribution if none is specified (default of ns-2).
const PARETO_SHAPE: f64 = 1.5;

/// Reads the distribution of a random duration or count.
pub(crate) fn law(node: &Node, of: LawOf) -> Option<Law> {
    let units = match of {
        LawOf::Times => TIMES,
        LawOf::Counts => PLAIN,
    };
    if of == LawOf::Times && bare(node).is_some() {
        return None;
    }
    let Value::Text(text) = &node.value else {
        return number(node, units).map(|mean| Law::Constant { mean });
    };
    let (name, rest) = match text.trim().split_once(' ') {
        Some((name, rest)) if name.chars().all(char::is_alphabetic) => (name, rest),
        _ => ("constant", text.as_str()),
    };
    let (mean, shape) = match rest.split_once("shape") {
        Some((mean, shape)) => (mean, Some(quantity(shape, PLAIN)?)),
        None => (rest, None),
    };
    let has_unit = mean.trim().parse::<f64>().is_err();
    let mean = quantity(mean, units).filter(|mean| *mean == 0.0 || has_unit == (of == LawOf::Times))?;
    match (name, shape) {
        ("constant", None) => Some(Law::Constant { mean }),
        ("exponential", None) => Some(Law::Exponential { mean }),
        ("uniform", None) => Some(Law::Uniform { mean }),
        ("pareto", shape) => {
            let shape = shape.unwrap_or(PARETO_SHAPE);
            (shape > 1.0).then_some(Law::Pareto { mean, shape })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Node {
        Node { span: 0..0, value: Value::Text(text.into()) }
    }

    #[test]
    fn units_scale_to_base_units() {
        assert_eq!(time(&text("50 ms")), Some(0.05));
        assert_eq!(time(&text("2min")), Some(120.0));
        assert_eq!(rate(&text("1.5 Mbit/s")), Some(1.5e6));
        assert_eq!(rate(&text("1e6 bit/s")), Some(1e6));
        assert_eq!(rate(&text("unlimited")), Some(f64::INFINITY));
        assert_eq!(
            (rate(&text("10M")), rate(&text("500k"))),
            (Some(1e7), Some(5e5)),
            "as in networks' lines"
        );
        assert_eq!(size(&text("50 kB")), Some(50_000.0));
        assert_eq!(share(&text("5 %")), Some(0.05));
    }

    #[test]
    fn numbers_without_a_required_unit_are_refused() {
        let number = |value: f64| Node { span: 0..0, value: Value::Number(value) };
        for value in [number(40.0), text("40")] {
            assert_eq!((time(&value), rate(&value), limit(&value)), (None, None, None));
            assert_eq!(law(&value, LawOf::Times), None);
            assert_eq!(law(&value, LawOf::Counts), Some(Law::Constant { mean: 40.0 }));
            assert_eq!(size(&value), Some(40.0));
        }
        assert_eq!((time(&number(0.0)), time(&text("0"))), (Some(0.0), Some(0.0)));
        assert_eq!(law(&text("pareto 20"), LawOf::Times), None);
    }

    #[test]
    fn rates_above_1000_tbit_per_s_are_refused() {
        assert_eq!(rate(&text("1000 Tbit/s")), Some(1e15));
        assert_eq!((rate(&text("1001 Tbit/s")), rate(&text("1e308 bit/s"))), (None, None));
    }

    #[test]
    fn buffers_count_bytes_or_packets() {
        assert_eq!(limit(&text("50 kB")), Some(Limit::Bytes(50_000)));
        assert_eq!(limit(&text("20 packets")), Some(Limit::Packets(20)));
        assert_eq!(limit(&text("1.5 packets")), None);
        assert_eq!(limit(&text("20 pigeons")), None);
    }

    #[test]
    fn wrong_units_and_signs_are_refused() {
        assert_eq!(time(&text("50 Mbit/s")), None);
        assert_eq!(time(&text("-1 s")), None);
        assert_eq!(rate(&text("0 bit/s")), None);
        assert_eq!(share(&text("120 %")), None);
        assert_eq!(time(&text("")), None);
        assert_eq!(time(&text("1e s")), None);
    }

    #[test]
    fn clock_errors_above_a_tenth_are_refused() {
        assert_eq!(clock_error(&text("10 ppm")), Some(1e-5));
        assert_eq!(clock_error(&text("-20 ppm")), Some(-2e-5));
        assert_eq!(clock_error(&text("1 %")), Some(0.01));
        assert_eq!(clock_error(&text("20 %")), None);
        assert_eq!(clock_error(&text("10 ms")), None);
    }

    #[test]
    fn distributions_are_read_from_words() {
        assert_eq!(law(&text("pareto 60 s"), LawOf::Times), Some(Law::Pareto { mean: 60.0, shape: 1.5 }));
        assert_eq!(
            law(&text("pareto 20 shape 1.2"), LawOf::Counts),
            Some(Law::Pareto { mean: 20.0, shape: 1.2 })
        );
        assert_eq!(law(&text("3 s"), LawOf::Times), Some(Law::Constant { mean: 3.0 }));
        assert_eq!(law(&text("pareto 3 s shape 0.9"), LawOf::Times), None);
        assert_eq!(law(&text("normal 3 s"), LawOf::Times), None);
    }
}
