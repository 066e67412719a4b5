//! Queues and losses as text, for command lines and scenario files.
//!
//! | text | meaning |
//! |---|---|
//! | `droptail,50` | a drop-tail buffer of 50 packets |
//! | `droptail,50kB` | of 50,000 bytes; `B`, `kB` and `MB` are powers of 1000 |
//! | `droptail,unlimited` | one that never drops |
//! | `red` or `red,auto` | RED with thresholds and weight from the link, [`Config::auto`](red::Config::auto) |
//! | `red,floyd` | [`Config::red_parameters`](red::Config::red_parameters) |
//! | `red,buffer=60` | [`Config::experiments_e2e`](red::Config::experiments_e2e) |
//! | `bernoulli,0.01` | each packet is lost with probability 0.01 |
//! | `gilbert,to_bad=0.01,to_good=0.3` | Gilbert-Elliott; `good=0` and `bad=1` are the loss probabilities |
//!
//! After `red` and the preset come options in any order: `limit=N min=N max=N w=X p=X mean=BYTES mark=P` with a value, and
//! `gentle abrupt wait nowait packets bytes ecn adaptive` without. [`red::Config`] says what they mean.

use crate::discipline::{Limit, QueueSpec};
use crate::loss::LossSpec;
use crate::red;
use std::fmt;
use std::str::FromStr;

/// Why a queue or loss was not understood, or makes no sense.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum QueueSpecError {
    /// No such discipline.
    #[error("`{0}` is no queue; there are `droptail,SIZE` and `red[,OPTION...]`")]
    UnknownQueue(String),
    /// No such loss model.
    #[error(
        "`{0}` is no loss model; there are `bernoulli,P` and `gilbert,to_bad=P,to_good=P[,good=P][,bad=P]`"
    )]
    UnknownLoss(String),
    /// No such option.
    #[error("`{what}` has no option `{option}`; it has {known}")]
    UnknownOption {
        /// The discipline or model.
        what: &'static str,
        /// What was written.
        option: String,
        /// What may be.
        known: &'static str,
    },
    /// Something is missing.
    #[error("`{what}` needs {missing}")]
    Missing {
        /// The discipline or model.
        what: &'static str,
        /// What is missing.
        missing: &'static str,
    },
    /// A value is of the wrong kind or out of range.
    #[error("{name} is `{value}`, but must be {expected}")]
    Value {
        /// Its name.
        name: &'static str,
        /// What it is.
        value: String,
        /// What it must be.
        expected: &'static str,
    },
}

const PROBABILITY: &str = "a probability, 0 to 1";
const NUMBER: &str = "a number above 0";
const COUNT: &str = "a whole number above 0";
const SIZE: &str = "a number of packets (`50`) or bytes (`50kB`), or `unlimited`";

impl QueueSpec {
    /// This, if it makes sense.
    ///
    /// # Errors
    /// The first value that does not.
    pub fn checked(self) -> Result<QueueSpec, QueueSpecError> {
        match &self {
            QueueSpec::DropTail(Limit::Packets(0) | Limit::Bytes(0)) => {
                Err(wrong("the buffer's size", 0, "above 0, or nothing would pass"))
            }
            QueueSpec::DropTail(_) => Ok(self),
            QueueSpec::Red(config) => check_red(config).map(|()| self),
        }
    }
}

impl LossSpec {
    /// This, if all are probabilities.
    ///
    /// # Errors
    /// The first that is none.
    pub fn checked(self) -> Result<LossSpec, QueueSpecError> {
        let all = match self {
            LossSpec::Bernoulli(p) => [("the loss probability", p); 4],
            LossSpec::GilbertElliott { to_bad, to_good, good, bad } => {
                [("to_bad", to_bad), ("to_good", to_good), ("good", good), ("bad", bad)]
            }
        };
        all.into_iter().try_for_each(|(name, p)| is_probability(name, p)).map(|()| self)
    }
}

fn check_red(config: &red::Config) -> Result<(), QueueSpecError> {
    let &red::Config { limit, min_th, max_th, w_q, max_p, mean_packet_size, mark_p, .. } = config;
    if limit == 0 {
        return Err(wrong("limit", limit, COUNT));
    }
    if mean_packet_size == 0 {
        return Err(wrong("mean", mean_packet_size, COUNT));
    }
    for (name, threshold) in [("min", min_th), ("max", max_th)] {
        if !(threshold.is_finite() && threshold >= 0.0) {
            return Err(wrong(name, threshold, "a number of packets, or 0 to let the link choose"));
        }
    }
    if max_th > 0.0 && max_th <= min_th {
        return Err(wrong("max", max_th, "above min"));
    }
    if min_th == 0.0 && max_th > 0.0 {
        return Err(wrong("min", min_th, "given where max is"));
    }
    if !(0.0..1.0).contains(&w_q) {
        return Err(wrong("w", w_q, "below 1, or 0 to let the link choose"));
    }
    if !(max_p > 0.0 && max_p <= 1.0) {
        return Err(wrong("p", max_p, "a probability above 0"));
    }
    is_probability("mark", mark_p)
}

fn is_probability(name: &'static str, value: f64) -> Result<(), QueueSpecError> {
    if (0.0..=1.0).contains(&value) { Ok(()) } else { Err(wrong(name, value, PROBABILITY)) }
}

fn wrong(name: &'static str, value: impl fmt::Display, expected: &'static str) -> QueueSpecError {
    QueueSpecError::Value { name, value: value.to_string(), expected }
}

fn parse<T: FromStr>(name: &'static str, value: &str, expected: &'static str) -> Result<T, QueueSpecError> {
    value.parse().map_err(|_| wrong(name, value, expected))
}

impl FromStr for Limit {
    type Err = QueueSpecError;

    fn from_str(text: &str) -> Result<Limit, QueueSpecError> {
        let refuse = || wrong("the buffer's size", text, SIZE);
        if text == "unlimited" {
            return Ok(Limit::Packets(u32::MAX));
        }
        let unit = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(unit);
        let factor = match unit {
            "" => return number.parse().map(Limit::Packets).map_err(|_| refuse()),
            "B" => 1.0,
            "kB" => 1e3,
            "MB" => 1e6,
            _ => return Err(refuse()),
        };
        let bytes = number.parse::<f64>().map_err(|_| refuse())? * factor;
        let whole = (bytes.fract() == 0.0 && bytes <= f64::from(u32::MAX)).then_some(bytes as u32);
        whole.map(Limit::Bytes).ok_or_else(refuse)
    }
}

impl FromStr for QueueSpec {
    type Err = QueueSpecError;

    fn from_str(text: &str) -> Result<QueueSpec, QueueSpecError> {
        let (kind, rest) = text.split_once(',').unwrap_or((text, ""));
        match kind {
            "droptail" if rest.is_empty() => {
                Err(QueueSpecError::Missing { what: "droptail", missing: "the buffer's size" })
            }
            "droptail" => Ok(QueueSpec::DropTail(rest.parse()?)),
            "red" => Ok(QueueSpec::Red(parse_red(rest)?)),
            _ => return Err(QueueSpecError::UnknownQueue(kind.into())),
        }
        .and_then(QueueSpec::checked)
    }
}

fn parse_red(rest: &str) -> Result<red::Config, QueueSpecError> {
    let mut config = red::Config::auto();
    for (at, option) in rest.split(',').filter(|option| !option.is_empty()).enumerate() {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        match (name, value) {
            ("auto", "") if at == 0 => {}
            ("floyd", "") if at == 0 => config = red::Config::red_parameters(),
            ("buffer", _) if at == 0 => config = red::Config::experiments_e2e(parse("buffer", value, COUNT)?),
            ("limit", _) => config.limit = parse("limit", value, COUNT)?,
            ("min", _) => config.min_th = parse("min", value, NUMBER)?,
            ("max", _) => config.max_th = parse("max", value, NUMBER)?,
            ("w", _) => config.w_q = parse("w", value, NUMBER)?,
            ("p", _) => config.max_p = parse("p", value, PROBABILITY)?,
            ("mean", _) => config.mean_packet_size = parse("mean", value, COUNT)?,
            ("mark", _) => config.mark_p = parse("mark", value, PROBABILITY)?,
            ("gentle", "") => config.gentle = true,
            ("abrupt", "") => config.gentle = false,
            ("wait", "") => config.wait = true,
            ("nowait", "") => config.wait = false,
            ("packets", "") => config.bytes = false,
            ("bytes", "") => config.bytes = true,
            ("ecn", "") => config.ecn = true,
            ("adaptive", "") => config.adaptive = true,
            _ => {
                let known = "first `auto`, `floyd` or `buffer=N`; then `limit=` `min=` `max=` `w=` `p=` `mean=` `mark=` \
                             `gentle` `abrupt` `wait` `nowait` `packets` `bytes` `ecn` `adaptive`";
                return Err(QueueSpecError::UnknownOption { what: "red", option: option.into(), known });
            }
        }
    }
    Ok(config)
}

impl FromStr for LossSpec {
    type Err = QueueSpecError;

    fn from_str(text: &str) -> Result<LossSpec, QueueSpecError> {
        let (kind, rest) = text.split_once(',').unwrap_or((text, ""));
        match kind {
            "bernoulli" if rest.is_empty() => {
                Err(QueueSpecError::Missing { what: "bernoulli", missing: "the loss probability" })
            }
            "bernoulli" => Ok(LossSpec::Bernoulli(parse("the loss probability", rest, PROBABILITY)?)),
            "gilbert" => parse_gilbert(rest),
            _ => Err(QueueSpecError::UnknownLoss(kind.into())),
        }
        .and_then(LossSpec::checked)
    }
}

fn parse_gilbert(rest: &str) -> Result<LossSpec, QueueSpecError> {
    let (mut to_bad, mut to_good, mut good, mut bad) = (None, None, 0.0, 1.0);
    for option in rest.split(',').filter(|option| !option.is_empty()) {
        match option.split_once('=').unwrap_or((option, "")) {
            ("to_bad", value) => to_bad = Some(parse("to_bad", value, PROBABILITY)?),
            ("to_good", value) => to_good = Some(parse("to_good", value, PROBABILITY)?),
            ("good", value) => good = parse("good", value, PROBABILITY)?,
            ("bad", value) => bad = parse("bad", value, PROBABILITY)?,
            _ => {
                let known = "`to_bad=` `to_good=` `good=` `bad=`";
                return Err(QueueSpecError::UnknownOption { what: "gilbert", option: option.into(), known });
            }
        }
    }
    match (to_bad, to_good) {
        (Some(to_bad), Some(to_good)) => Ok(LossSpec::GilbertElliott { to_bad, to_good, good, bad }),
        _ => Err(QueueSpecError::Missing { what: "gilbert", missing: "`to_bad=` and `to_good=`" }),
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Packets(u32::MAX) => f.write_str("unlimited"),
            Limit::Packets(packets) => write!(f, "{packets}"),
            Limit::Bytes(bytes) => write!(f, "{bytes}B"),
        }
    }
}

/// In full, so that it reads back as the same.
impl fmt::Display for QueueSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = match self {
            QueueSpec::DropTail(limit) => return write!(f, "droptail,{limit}"),
            QueueSpec::Red(config) => config,
        };
        let red::Config { limit, min_th, max_th, w_q, max_p, mean_packet_size, mark_p, .. } = config;
        write!(
            f,
            "red,limit={limit},min={min_th},max={max_th},w={w_q},p={max_p},mean={mean_packet_size},mark={mark_p}"
        )?;
        let words = [
            if config.gentle { "gentle" } else { "abrupt" },
            if config.wait { "wait" } else { "nowait" },
            if config.bytes { "bytes" } else { "packets" },
        ];
        let more = [(config.ecn, "ecn"), (config.adaptive, "adaptive")];
        let more = more.into_iter().filter_map(|(on, word)| on.then_some(word));
        words.into_iter().chain(more).try_for_each(|word| write!(f, ",{word}"))
    }
}

impl fmt::Display for LossSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LossSpec::Bernoulli(p) => write!(f, "bernoulli,{p}"),
            LossSpec::GilbertElliott { to_bad, to_good, good, bad } => {
                write!(f, "gilbert,to_bad={to_bad},to_good={to_good},good={good},bad={bad}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(text: &str) -> QueueSpec {
        text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    fn refusal(text: &str) -> String {
        text.parse::<QueueSpec>().map_or_else(|e| e.to_string(), |spec| panic!("{text} is {spec:?}"))
    }

    #[test]
    fn buffers_are_of_packets_or_bytes() {
        assert_eq!(queue("droptail,50"), QueueSpec::DropTail(Limit::Packets(50)));
        assert_eq!(queue("droptail,50kB"), QueueSpec::DropTail(Limit::Bytes(50_000)));
        assert_eq!(queue("droptail,1.5MB"), QueueSpec::DropTail(Limit::Bytes(1_500_000)));
        assert_eq!(queue("droptail,700B"), QueueSpec::DropTail(Limit::Bytes(700)));
        assert_eq!(queue("droptail,unlimited"), QueueSpec::UNLIMITED);
    }

    #[test]
    fn red_takes_a_preset_and_options() {
        assert_eq!(queue("red"), QueueSpec::Red(red::Config::auto()));
        assert_eq!(queue("red,auto"), queue("red"));
        assert_eq!(queue("red,floyd"), QueueSpec::Red(red::Config::red_parameters()));
        let wanted =
            red::Config { ecn: true, mark_p: 0.1, adaptive: true, ..red::Config::experiments_e2e(60) };
        assert_eq!(queue("red,buffer=60,ecn,mark=0.1,adaptive"), QueueSpec::Red(wanted));
        let wanted =
            red::Config { limit: 100, min_th: 20.0, max_th: 60.0, w_q: 0.002, ..red::Config::auto() };
        assert_eq!(queue("red,limit=100,min=20,max=60,w=0.002,p=0.1,gentle"), QueueSpec::Red(wanted));
        let wanted = red::Config {
            gentle: false,
            wait: false,
            bytes: true,
            mean_packet_size: 500,
            ..red::Config::auto()
        };
        assert_eq!(queue("red,abrupt,nowait,bytes,mean=500"), QueueSpec::Red(wanted));
    }

    #[test]
    fn what_is_written_reads_back() {
        for text in [
            "droptail,7",
            "droptail,7kB",
            "droptail,unlimited",
            "red",
            "red,floyd,ecn",
            "red,buffer=9,bytes,abrupt",
        ] {
            assert_eq!(queue(&queue(text).to_string()), queue(text));
        }
        for text in ["bernoulli,0.25", "gilbert,to_bad=0.1,to_good=0.5,good=0.01"] {
            let loss: LossSpec = text.parse().expect("the text is right");
            assert_eq!(loss.to_string().parse(), Ok(loss));
        }
    }

    #[test]
    fn nonsense_is_refused_with_what_would_do() {
        assert_eq!(refusal("codel"), "`codel` is no queue; there are `droptail,SIZE` and `red[,OPTION...]`");
        assert_eq!(refusal("droptail"), "`droptail` needs the buffer's size");
        assert!(refusal("droptail,50 kb").contains("`50kB`"), "{}", refusal("droptail,50 kb"));
        assert!(refusal("droptail,0").contains("above 0"));
        assert!(refusal("droptail,0.5B").contains("must be"));
        assert!(refusal("red,ecn,floyd").contains("no option `floyd`; it has first"));
        assert!(refusal("red,ecn=1").contains("no option `ecn=1`"));
        assert_eq!(refusal("red,p=2"), "p is `2`, but must be a probability above 0");
        assert_eq!(refusal("red,min=9,max=8"), "max is `8`, but must be above min");
        assert_eq!(refusal("red,max=8"), "min is `0`, but must be given where max is");
        assert_eq!(refusal("red,w=x"), "w is `x`, but must be a number above 0");
        for text in
            ["red,w=1", "red,w=NaN", "red,min=inf", "red,min=-1", "red,limit=0", "red,mean=0", "red,mark=1.5"]
        {
            assert!(refusal(text).contains("but must be"), "{text}");
        }
    }

    #[test]
    fn losses_are_probabilities() {
        assert_eq!("bernoulli,0.01".parse(), Ok(LossSpec::Bernoulli(0.01)));
        let wanted = LossSpec::GilbertElliott { to_bad: 0.01, to_good: 0.3, good: 0.0, bad: 1.0 };
        assert_eq!("gilbert,to_bad=0.01,to_good=0.3".parse(), Ok(wanted));
        for text in
            ["bernoulli", "bernoulli,2", "bernoulli,NaN", "gilbert,to_bad=0.1", "gilbert,x=1", "burst,1"]
        {
            assert!(text.parse::<LossSpec>().is_err(), "{text}");
        }
    }
}
