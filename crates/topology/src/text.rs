//! The text form of a network. Each line has one item; comments begin with `#`:
//!
//! ```text
//! host left
//! router r
//! host right
//! link left r
//! link r right rate=10M delay=20ms jitter=1ms queue=droptail,50 loss=bernoulli,0.01 back rate=1M delay=20ms
//! oneway left right delay=1s
//! ```
//!
//! Nodes precede their links. A `link` is bidirectional: its options apply to both directions, and options after `back` change
//! the direction from the second node to the first. Without options a link has no rate limit, no delay and an unlimited queue
//! ([`FREE`]). Rates and times are written as in all specifications (`500k`, `10M`, `20ms`, `0.02`), queues and losses as
//! [`QueueSpec`] and [`LossSpec`]. `loss=none` removes losses. A [`Dialect`] defines additional words.

use crate::topology::{FREE, LinkId, NodeId, Topology};
use faircast_aqm::{LinkSpec, LossSpec, QueueSpec};
use faircast_core::field;
use faircast_core::spec::{self, Field, NumberRange, Opt, SpecError};
use faircast_core::time::Rate;
use std::fmt;
use std::str::SplitWhitespace;

/// Error in a text.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("line {number}, `{line}`: {what}")]
pub struct TextError {
    /// Line number, counted from 1.
    pub number: usize,
    /// The line as written, without comments.
    pub line: String,
    /// Error in the line.
    pub what: LineError,
}

/// Error in a line.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LineError {
    /// The first word of the line is unknown.
    #[error("it must begin with one of {0}")]
    UnknownWord(&'static str),
    /// A part of the line is missing.
    #[error("needs {0}")]
    Missing(&'static str),
    /// The option is unknown in this place.
    #[error("`{0}` is not known here; expected: {1}")]
    UnknownOption(String, &'static str),
    /// The value does not have the expected form.
    #[error("`{value}` is not {expected}")]
    Value {
        /// The value as written.
        value: String,
        /// The expected form.
        expected: &'static str,
    },
    /// The name is already in use.
    #[error("`{0}` exists already")]
    Twice(String),
    /// The link names a node that does not exist.
    #[error("there is no node `{0}`; hosts and routers must precede their links")]
    NoNode(String),
    /// Invalid option of a link.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

/// Additional words of a text form.
pub trait Dialect {
    /// The words with which a line may begin, for error messages.
    const LINES: &'static str = "`host`, `router`, `link`, `oneway`";

    /// Reads a line whose first word is not one of the network's. The method takes the words that it needs from `_words`; if
    /// words remain, the line is refused.
    ///
    /// # Errors
    /// When the first word is unknown, or the remaining words are invalid.
    fn line(&mut self, _first: &str, _words: &mut Words<'_>) -> Result<(), LineError> {
        Err(LineError::UnknownWord(Self::LINES))
    }

    /// Reads the words after the name of a host. `_node` is this host, the node added last. The method takes the words that it
    /// needs from `_words`; if words remain, the line is refused.
    ///
    /// # Errors
    /// When the words are invalid.
    fn host(&mut self, _node: NodeId, _words: &mut Words<'_>) -> Result<(), LineError> {
        Ok(())
    }
}

/// The form without additional words.
impl Dialect for () {}

/// The words of a line.
#[derive(Debug, Clone)]
pub struct Words<'a>(SplitWhitespace<'a>);

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.0.next()
    }
}

impl Words<'_> {
    /// Parses the next word.
    ///
    /// # Errors
    /// When the value is missing, or does not have the `expected` form.
    pub fn value<T: std::str::FromStr>(&mut self, expected: &'static str) -> Result<T, LineError> {
        let value = self.next().ok_or(LineError::Missing(expected))?;
        value.parse().map_err(|_| LineError::Value { value: value.into(), expected })
    }
}

/// Options for rate, delay and jitter. Queue and loss are not in this table: they have options themselves, so each of them has
/// another parser.
const LINK_OPTIONS: &[Opt<LinkSpec>] = &[
    Opt::or(
        "unlimited",
        Opt::rate(
            "rate",
            NumberRange::POSITIVE,
            Field {
                get: |link| Some(link.rate).filter(|rate| *rate != Rate::UNLIMITED),
                set: |link, rate| link.rate = rate.unwrap_or(Rate::UNLIMITED),
            },
            "bit rate of the link",
        ),
    ),
    Opt::seconds("delay", NumberRange::of(0.0, 1e6), field!(delay), "propagation delay"),
    Opt::seconds(
        "jitter",
        NumberRange::of(0.0, 1e6),
        field!(jitter),
        "maximum additional propagation delay, drawn at random",
    ),
];

fn set_option(link: &mut LinkSpec, option: &str) -> Result<(), LineError> {
    let name = option.split_once('=').map_or("", |(name, _)| name);
    let value = option.split_once('=').map_or("", |(_, value)| value);
    match name {
        "queue" => link.queue = value.parse::<QueueSpec>()?,
        "loss" if value == "none" => link.loss = None,
        "loss" => link.loss = Some(value.parse::<LossSpec>()?),
        _ if LINK_OPTIONS.iter().any(|known| known.name == name) => {
            spec::configure(link, option, "a link", &[LINK_OPTIONS])?;
        }
        _ => {
            let known = "`rate=` `delay=` `jitter=` `queue=` `loss=` and `back`";
            return Err(LineError::UnknownOption(option.into(), known));
        }
    }
    Ok(())
}

impl Topology {
    /// Parses a network.
    ///
    /// # Errors
    /// The first invalid line.
    pub fn parse(text: &str) -> Result<Topology, TextError> {
        Topology::parse_with(text, &mut ())
    }

    /// Parses a network with additional words.
    ///
    /// # Errors
    /// The first invalid line.
    pub fn parse_with<D: Dialect>(text: &str, dialect: &mut D) -> Result<Topology, TextError> {
        let mut topology = Topology::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            let mut words = Words(line.split_whitespace());
            let Some(first) = words.next() else { continue };
            read_line(&mut topology, first, &mut words, dialect).map_err(|what| TextError {
                number: at + 1,
                line: line.to_owned(),
                what,
            })?;
        }
        Ok(topology)
    }
}

fn read_line<D: Dialect>(
    topology: &mut Topology,
    first: &str,
    words: &mut Words<'_>,
    dialect: &mut D,
) -> Result<(), LineError> {
    match first {
        "host" => {
            let name = new_name(topology, words)?;
            let node = topology.host();
            topology.rename(node, name);
            dialect.host(node, words)?;
        }
        "router" => {
            let name = new_name(topology, words)?;
            let node = topology.router();
            topology.rename(node, name);
        }
        "link" | "oneway" => {
            let (from, to) = (known(topology, words)?, known(topology, words)?);
            let there = topology.link(from, to, FREE);
            let back = (first == "link").then(|| topology.link(to, from, FREE));
            read_options(topology, there, back, words)?;
        }
        _ => dialect.line(first, words)?,
    }
    match words.next() {
        None => Ok(()),
        Some(more) => Err(LineError::UnknownOption(more.into(), "no more words")),
    }
}

fn read_options(
    topology: &mut Topology,
    there: LinkId,
    back: Option<LinkId>,
    words: &mut Words<'_>,
) -> Result<(), LineError> {
    let mut first = Some(there);
    for option in words {
        if option == "back" && back.is_some() {
            first = None;
            continue;
        }
        for link in [first, back].into_iter().flatten() {
            set_option(topology.spec_mut(link).expect("it was added above"), option)?;
        }
    }
    Ok(())
}

fn new_name<'a>(topology: &Topology, words: &mut Words<'a>) -> Result<&'a str, LineError> {
    let name = words.next().ok_or(LineError::Missing("a name"))?;
    if topology.find(name).is_some() { Err(LineError::Twice(name.into())) } else { Ok(name) }
}

fn known(topology: &Topology, words: &mut Words<'_>) -> Result<NodeId, LineError> {
    let name = words.next().ok_or(LineError::Missing("two names"))?;
    topology.find(name).ok_or_else(|| LineError::NoNode(name.into()))
}

/// The options in which the first link differs from the second link. When written, a space precedes each option.
struct Options<'a>(&'a LinkSpec, &'a LinkSpec);

impl fmt::Display for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options(link, usual) = self;
        for option in LINK_OPTIONS {
            let value = option.get(link);
            if value != option.get(usual) {
                write!(f, " {}={value}", option.name)?;
            }
        }
        if link.queue != usual.queue {
            write!(f, " queue={}", link.queue)?;
        }
        match link.loss {
            loss if loss == usual.loss => Ok(()),
            Some(loss) => write!(f, " loss={loss}"),
            None => write!(f, " loss=none"),
        }
    }
}

/// Writes the text that [`Topology::parse`] reads, provided that no name contains spaces or `#`.
impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for node in (0..self.nodes()).map(NodeId) {
            let kind = if self.is_host(node) { "host" } else { "router" };
            writeln!(f, "{kind} {}", self.name(node))?;
        }
        let mut edges = self.edges().iter().peekable();
        while let Some(edge) = edges.next() {
            let (from, to) = (self.name(edge.from), self.name(edge.to));
            let there = Options(&edge.spec, &FREE);
            match edges.next_if(|back| back.from == edge.to && back.to == edge.from) {
                None => writeln!(f, "oneway {from} {to}{there}")?,
                Some(back) if back.spec == edge.spec => writeln!(f, "link {from} {to}{there}")?,
                Some(back) => {
                    let back = Options(&back.spec, &edge.spec);
                    writeln!(f, "link {from} {to}{there} back{back}")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_aqm::Limit;
    use faircast_core::time::Span;
    use proptest::prelude::*;

    #[test]
    fn parsed_network_equals_the_built_network() {
        let text = "
            host left   # a remark
            router r
            host right
            link left r
            link r right rate=10M delay=20ms queue=droptail,50 back rate=500k loss=bernoulli,0.25
            oneway right left delay=0.5";
        let mut it = Topology::new();
        let (left, r, right) = (it.host(), it.router(), it.host());
        it.rename(left, "left");
        it.rename(r, "r");
        it.rename(right, "right");
        it.duplex(left, r, FREE, FREE);
        let queue = QueueSpec::DropTail(Limit::Packets(50));
        let there = LinkSpec::new(Rate::from_mbps(10.0), Span::from_millis(20), queue);
        let back = LinkSpec { rate: Rate::from_bps(5e5), loss: Some(LossSpec::Bernoulli(0.25)), ..there };
        it.duplex(r, right, there, back);
        it.link(right, left, LinkSpec { delay: Span::from_millis(500), ..FREE });
        assert_eq!(Topology::parse(text), Ok(it.clone()));
        let written = "host left\nrouter r\nhost right\nlink left r\n\
            link r right rate=10000000 delay=0.02 queue=droptail,50 back rate=500000 loss=bernoulli,0.25\n\
            oneway right left delay=0.5\n";
        assert_eq!(it.to_string(), written);
    }

    #[test]
    fn invalid_lines_are_reported_with_a_reason() {
        for (line, reason) in [
            ("hots a", "line 2, `hots a`: it must begin with one of"),
            ("host", "needs a name"),
            ("host a", "`a` exists already"),
            ("host b netns=x", "`netns=x` is not known here; expected: no more words"),
            ("link a", "needs two names"),
            ("link a c", "there is no node `c`"),
            (
                "link a a rate=10X",
                "option rate cannot be \"10X\"; it must be unlimited | above 0 bit/s, at most 1e15",
            ),
            (
                "link a a rate=1e308",
                "option rate cannot be \"1e308\"; it must be unlimited | above 0 bit/s, at most 1e15",
            ),
            ("link a a rate=0", "option rate cannot be \"0\""),
            ("link a a rate=-1M", "option rate cannot be"),
            ("link a a rate", "`rate` is not known here"),
            ("link a a delay=-5", "option delay cannot be"),
            ("link a a queue=green", "there is no queue \"green\""),
            ("link a a weight=3", "`weight=3` is not known here; expected: `rate=`"),
            ("oneway a a back", "`back` is not known here"),
            ("router r r", "`r` is not known here; expected: no more words"),
        ] {
            let refused = Topology::parse(&format!("host a\n{line}")).expect_err(line).to_string();
            assert!(refused.contains(reason), "{line}: {refused}");
        }
    }

    fn specs() -> impl Strategy<Value = LinkSpec> {
        let queue = prop_oneof![
            Just(QueueSpec::UNLIMITED),
            (1..1000_u32).prop_map(|n| QueueSpec::DropTail(Limit::Packets(n))),
            (1..100_000_u32).prop_map(|n| QueueSpec::DropTail(Limit::Bytes(n))),
            Just("red".parse().expect("a queue")),
        ];
        let loss = prop_oneof![
            Just(None),
            (0..1000_u32).prop_map(|n| Some(LossSpec::Bernoulli(f64::from(n) / 1e3)))
        ];
        let rate =
            prop_oneof![Just(Rate::UNLIMITED), (1..u32::MAX).prop_map(|bps| Rate::from_bps(f64::from(bps)))];
        let span = || (0..10_000_000_000_u64).prop_map(Span::from_nanos);
        (rate, span(), span(), queue, loss).prop_map(|(rate, delay, jitter, queue, loss)| LinkSpec {
            loss,
            jitter,
            ..LinkSpec::new(rate, delay, queue)
        })
    }

    proptest! {
        #[test]
        fn network_is_unchanged_after_writing_and_reading(
            kinds in prop::collection::vec(any::<bool>(), 1..8),
            links in prop::collection::vec((0..8_u32, 0..8_u32, specs(), specs(), 0..3_u8), 0..12),
        ) {
            let mut it = Topology::new();
            for host in &kinds {
                let node = if *host { it.host() } else { it.router() };
                it.rename(node, &format!("n{}", node.0));
            }
            let node = |number: u32| NodeId(number % kinds.len() as u32);
            for (a, b, there, back, ways) in links {
                match ways {
                    0 => _ = it.link(node(a), node(b), there),
                    1 => _ = it.duplex(node(a), node(b), there, there),
                    _ => _ = it.duplex(node(a), node(b), there, back),
                }
            }
            prop_assert_eq!(Topology::parse(&it.to_string()), Ok(it));
        }

        #[test]
        fn parser_of_networks_panics_at_no_text(text in "(host|router|link|oneway|[a-c]|rate=|back|\n| |#|\\PC)*") {
            let _ = Topology::parse(&text);
        }
    }
}
