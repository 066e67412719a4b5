//! Specifications: a name and its options as text, `ormcc,beta=0.7,start=linear`.
//!
//! One parser reads schemes, unicast protocols, queues and losses from command lines, scenario files and announcements. The
//! options of a configuration are a table of [`Opt`]. Each entry has a range, a unit and the field that it sets. Help texts are
//! made from the same table.

use crate::time::{Rate, Span};
use std::fmt;

/// An option of a configuration `C`.
pub struct Opt<C: 'static> {
    /// Name of the option.
    pub name: &'static str,
    /// Short meaning; [`Opt::takes`] lists the values.
    pub meaning: &'static str,
    value: Value<C>,
    /// Word that may replace a number.
    word: Option<&'static str>,
    /// Value of the option if only its name is given.
    alone: Option<&'static str>,
    /// Whether the option changes all other options, so that no other option may precede it.
    first: bool,
}

/// Description of an option for users, without its configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// Name of the option.
    pub name: &'static str,
    /// Permitted values: `0.5 to 1`, `on | off`.
    pub takes: String,
    /// Meaning of the option.
    pub meaning: &'static str,
    /// Whether the name may be given without a value.
    pub may_stand_alone: bool,
}

/// Type, range and field of an option's value.
enum Value<C: 'static> {
    Number(NumberRange, Field<C, f64>),
    Seconds(NumberRange, Field<C, Span>),
    BitsPerSecond(NumberRange, Field<C, Rate>),
    Whole(u64, u64, Field<C, u64>),
    Choice(&'static [&'static str], Field<C, usize>),
    Word(fn(&C) -> bool, fn(&mut C)),
    Formed {
        takes: fn() -> String,
        get: fn(&C) -> String,
        set: fn(&mut C, &str) -> Option<Result<(), SpecError>>,
    },
    Other {
        takes: &'static str,
        get: fn(&C) -> String,
        set: fn(&mut C, &str) -> Option<()>,
    },
}

/// A form of a value: a word, and numbers after colons, as in `binomial:0.5:1`. A value with several forms has a list of them.
pub struct Form<T: 'static> {
    word: &'static str,
    /// Names and ranges of the numbers.
    numbers: &'static [(&'static str, NumberRange)],
    make: fn(&[f64]) -> T,
}

impl<T> Form<T> {
    /// Creates a form that is a word without numbers.
    pub const fn word(word: &'static str, make: fn(&[f64]) -> T) -> Form<T> {
        Form { word, numbers: &[], make }
    }

    /// Creates a form of a word and these numbers. `make` gets one value per number.
    pub const fn numbers(
        word: &'static str,
        numbers: &'static [(&'static str, NumberRange)],
        make: fn(&[f64]) -> T,
    ) -> Form<T> {
        Form { word, numbers, make }
    }

    fn read(&self, text: &str) -> Option<T> {
        let rest = text.strip_prefix(self.word)?;
        let mut parts = rest.split(':');
        if !parts.next()?.is_empty() {
            return None;
        }
        let read = self.numbers.iter().map(|(_, range)| parts.next().and_then(|part| range.parse(part)));
        let values = read.collect::<Option<Vec<f64>>>()?;
        parts.next().is_none().then(|| (self.make)(&values))
    }

    /// Returns the value of `text`; `None` if `text` has none of these forms.
    pub fn read_any(forms: &[Form<T>], text: &str) -> Option<T> {
        forms.iter().find_map(|form| form.read(text))
    }

    /// Returns the forms as text for users: `aimd | binomial:K:L, K 0 to 1, L 0 to 1`.
    pub fn list(forms: &[Form<T>]) -> String {
        let form = |form: &Form<T>| {
            let names = form.numbers.iter().map(|(name, _)| *name);
            std::iter::once(form.word).chain(names).collect::<Vec<_>>().join(":")
        };
        let ranges =
            forms.iter().flat_map(|form| form.numbers).map(|(name, range)| format!(", {name} {range}"));
        let words: Vec<String> = forms.iter().map(form).collect();
        words.join(" | ") + &ranges.collect::<String>()
    }
}

/// Access to a field of a configuration, created by [`field!`](crate::field) or [`choice!`](crate::choice). If a word replaces
/// the number ([`Opt::or`]), the field's value is `None`.
pub struct Field<C: 'static, T: 'static> {
    /// Returns the value of the field.
    pub get: fn(&C) -> Option<T>,
    /// Sets the value of the field.
    pub set: fn(&mut C, Option<T>),
}

impl<C: 'static, T: 'static> Clone for Field<C, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: 'static, T: 'static> Copy for Field<C, T> {}

/// Creates access to the field that an option sets: `field!(beta)`, `field!(sending.min_rtt)`. Write `field!(layers as u8)` for
/// an integer that is stored in fewer bits, and `field!(deaf?)` for a field that may have no value.
#[macro_export]
macro_rules! field {
    ($($field:ident).+) => {
        $crate::spec::Field {
            get: |config| Some(config.$($field).+),
            set: |config, value| {
                if let Some(value) = value {
                    config.$($field).+ = value;
                }
            },
        }
    };
    ($($field:ident).+ as $type:ty) => {
        $crate::spec::Field {
            get: |config| Some(config.$($field).+ as u64),
            set: |config, value| {
                if let Some(value) = value {
                    config.$($field).+ = value as $type;
                }
            },
        }
    };
    ($($field:ident).+ ?) => {
        $crate::spec::Field {
            get: |config| config.$($field).+,
            set: |config, value| config.$($field).+ = value,
        }
    };
}

/// Creates access to a field with a few permitted values, each with a word: `choice!(taf: "smoothed" => TafSample::Smoothed,
/// ...)`.
#[macro_export]
macro_rules! choice {
    ($($field:ident).+ : $($word:literal => $value:expr),+ $(,)?) => {
        (
            &[$($word),+],
            $crate::spec::Field {
                get: |config| [$($value),+].iter().position(|value| *value == config.$($field).+),
                set: |config, place| {
                    if let Some(place) = place {
                        config.$($field).+ = [$($value),+][place];
                    }
                },
            },
        )
    };
}

/// A range of numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NumberRange {
    least: f64,
    most: f64,
    /// Whether `least` itself is not permitted.
    open: bool,
}

impl NumberRange {
    /// Numbers above zero.
    pub const POSITIVE: NumberRange = NumberRange { least: 0.0, most: f64::INFINITY, open: true };
    /// Numbers from zero to one, both included.
    pub const PART: NumberRange = NumberRange { least: 0.0, most: 1.0, open: false };

    /// Creates a range from `least` to `most`, both included.
    pub const fn of(least: f64, most: f64) -> NumberRange {
        NumberRange { least, most, open: false }
    }

    /// Creates a range of numbers above zero and at most `most`.
    pub const fn up_to(most: f64) -> NumberRange {
        NumberRange { least: 0.0, most, open: true }
    }

    /// Parses a finite number in this range.
    fn parse(self, text: &str) -> Option<f64> {
        let number: f64 = text.parse().ok().filter(|number: &f64| number.is_finite())?;
        let number = plain(number);
        let enough = if self.open { number > self.least } else { number >= self.least };
        (enough && number <= self.most).then_some(number)
    }
}

impl fmt::Display for NumberRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.open, self.most == f64::INFINITY) {
            (true, true) => write!(f, "above {}", self.least),
            (true, false) => write!(f, "above {} and at most {}", self.least, self.most),
            (false, true) => write!(f, "{} or more", self.least),
            (false, false) => write!(f, "{} to {}", self.least, self.most),
        }
    }
}

impl<C: 'static> Opt<C> {
    const fn new(name: &'static str, value: Value<C>, meaning: &'static str) -> Opt<C> {
        Opt { name, meaning, value, word: None, alone: None, first: false }
    }

    /// Creates an option that is a number without a unit.
    pub const fn number(
        name: &'static str,
        range: NumberRange,
        field: Field<C, f64>,
        meaning: &'static str,
    ) -> Opt<C> {
        Opt::new(name, Value::Number(range, field), meaning)
    }

    /// Creates an option that is a time in seconds; the units `ms` and `us` are accepted.
    pub const fn seconds(
        name: &'static str,
        range: NumberRange,
        field: Field<C, Span>,
        meaning: &'static str,
    ) -> Opt<C> {
        Opt::new(name, Value::Seconds(range, field), meaning)
    }

    /// Creates an option that is a rate in bit/s; the suffixes `k`, `M` and `G` are accepted.
    pub const fn rate(
        name: &'static str,
        range: NumberRange,
        field: Field<C, Rate>,
        meaning: &'static str,
    ) -> Opt<C> {
        Opt::new(name, Value::BitsPerSecond(range, field), meaning)
    }

    /// Creates an option that is an integer from `least` to `most`, both included.
    pub const fn whole(
        name: &'static str,
        least: u64,
        most: u64,
        field: Field<C, u64>,
        meaning: &'static str,
    ) -> Opt<C> {
        Opt::new(name, Value::Whole(least, most, field), meaning)
    }

    /// Creates an option that is one of a few words, from [`choice!`](crate::choice).
    pub const fn choice(
        name: &'static str,
        (words, field): (&'static [&'static str], Field<C, usize>),
        meaning: &'static str,
    ) -> Opt<C> {
        Opt::new(name, Value::Choice(words, field), meaning)
    }

    /// Creates an option of another type: `takes` lists the permitted values, `get` returns the value as text, and `set` returns
    /// `None` for an invalid text.
    pub const fn other(
        name: &'static str,
        takes: &'static str,
        get: fn(&C) -> String,
        set: fn(&mut C, &str) -> Option<()>,
        meaning: &'static str,
    ) -> Opt<C> {
        Opt::new(name, Value::Other { takes, get, set }, meaning)
    }

    /// Creates an option with several forms ([`Form`]). `takes` lists the permitted values; `get` returns the value as text; `set`
    /// returns `None` for a text without a form, or the reason why a text is refused.
    pub const fn formed(
        name: &'static str,
        takes: fn() -> String,
        get: fn(&C) -> String,
        set: fn(&mut C, &str) -> Option<Result<(), SpecError>>,
        meaning: &'static str,
    ) -> Opt<C> {
        Opt::new(name, Value::Formed { takes, get, set }, meaning)
    }

    /// Returns the option with a word that may replace the number.
    pub const fn or(word: &'static str, mut option: Opt<C>) -> Opt<C> {
        option.word = Some(word);
        option
    }

    /// Returns the option with a value that applies if only the name is given.
    pub const fn alone(value: &'static str, mut option: Opt<C>) -> Opt<C> {
        option.alone = Some(value);
        option
    }

    /// Returns the option with the rule that no other option may precede it, because it is a preset that changes all options.
    pub const fn first(mut option: Opt<C>) -> Opt<C> {
        option.first = true;
        option
    }

    /// Creates an option that is a single word without a value, such as `abrupt`.
    pub const fn word(
        name: &'static str,
        is: fn(&C) -> bool,
        set: fn(&mut C),
        meaning: &'static str,
    ) -> Opt<C> {
        Opt::new(name, Value::Word(is, set), meaning)
    }

    /// Sets the option in `config`.
    ///
    /// # Errors
    /// If the text is not a permitted value; the error states the permitted ones.
    pub fn set(&self, config: &mut C, text: &str) -> Result<(), SpecError> {
        let outcome = match &self.value {
            Value::Formed { set, .. } => set(config, text),
            _ => self.read(config, text).map(Ok),
        };
        outcome.unwrap_or_else(|| {
            let (option, value, takes, meaning) = (self.name, text.to_owned(), self.takes(), self.meaning);
            Err(SpecError::BadValue { option, value, takes, meaning })
        })
    }

    fn read(&self, config: &mut C, text: &str) -> Option<()> {
        let or_word = |number: Option<f64>| match self.word {
            Some(word) if word == text => Some(None),
            _ => number.map(Some),
        };
        match &self.value {
            Value::Number(range, field) => (field.set)(config, or_word(range.parse(text))?),
            Value::Seconds(range, field) => {
                let seconds = or_word(scaled(text, &SECONDS).and_then(|text| range.parse(&text)))?;
                (field.set)(config, seconds.map(Span::from_secs_f64));
            }
            Value::BitsPerSecond(range, field) => {
                let bps = scaled(text, &BITS_PER_SECOND).and_then(|text| range.parse(&text));
                let bps = or_word(bps.filter(|bps| *bps <= MAX_RATE))?;
                (field.set)(config, bps.map(Rate::from_bps));
            }
            Value::Whole(..) if self.word == Some(text) => self.clear(config),
            Value::Whole(least, most, field) => {
                let number = text.parse().ok().filter(|number| (least..=most).contains(&number))?;
                (field.set)(config, Some(number));
            }
            Value::Choice(words, field) => {
                (field.set)(config, Some(words.iter().position(|word| *word == text)?));
            }
            Value::Word(_, set) => text.is_empty().then(|| set(config))?,
            Value::Other { set, .. } => set(config, text)?,
            Value::Formed { .. } => return None, // `set` reads it
        }
        Some(())
    }

    /// Sets a whole number to `None`, because a word replaces the number.
    fn clear(&self, config: &mut C) {
        if let Value::Whole(_, _, field) = &self.value {
            (field.set)(config, None);
        }
    }

    /// Returns the option's value in `config` in the form that [`Opt::set`] accepts.
    pub fn get(&self, config: &C) -> String {
        let value = match &self.value {
            Value::Number(_, field) => (field.get)(config).map(number),
            Value::Seconds(_, field) => (field.get)(config).map(|span| number(span.as_secs_f64())),
            Value::BitsPerSecond(_, field) => (field.get)(config).map(|rate| number(rate.bps())),
            Value::Whole(_, _, field) => (field.get)(config).map(|number| number.to_string()),
            Value::Choice(words, field) => (field.get)(config).map(|place| words[place].to_owned()),
            Value::Word(..) => Some(String::new()),
            Value::Formed { get, .. } | Value::Other { get, .. } => Some(get(config)),
        };
        value.unwrap_or_else(|| self.word.unwrap_or_default().to_owned())
    }

    /// Returns the permitted values as text: `0.5 to 1`, `on | off`, `off | 0.001 to 1 s`.
    pub fn takes(&self) -> String {
        let takes = match &self.value {
            Value::Number(range, _) => range.to_string(),
            Value::Seconds(range, _) => format!("{range} s"),
            Value::BitsPerSecond(range, _) => format!("{range} bit/s, at most {MAX_RATE:e}"),
            Value::Whole(least, most, _) => format!("{least} to {most}"),
            Value::Choice(words, _) => words.join(" | "),
            Value::Word(..) => "a word without a value".to_owned(),
            Value::Formed { takes, .. } => takes(),
            Value::Other { takes, .. } => (*takes).to_owned(),
        };
        self.word.map_or(takes.clone(), |word| format!("{word} | {takes}"))
    }

    /// Returns the description of the option for users.
    pub fn described(&self) -> Described {
        let may_stand_alone = self.alone.is_some() || matches!(self.value, Value::Word(..));
        let (name, meaning) = (self.name, self.meaning);
        Described { name, takes: self.takes(), meaning, may_stand_alone }
    }
}

/// Maximum rate of an option in bits per second. No link is faster.
pub const MAX_RATE: f64 = 1e15;

/// Units after a number, and their factors.
type Units = [(&'static str, f64)];

const SECONDS: [(&str, f64); 3] = [("ms", 1e-3), ("us", 1e-6), ("s", 1.0)];
const BITS_PER_SECOND: [(&str, f64); 3] = [("k", 1e3), ("M", 1e6), ("G", 1e9)];

/// Returns a number as text without its unit, scaled by the factor of the unit.
fn scaled(text: &str, units: &Units) -> Option<String> {
    let Some((text, factor)) =
        units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?.trim_end(), factor)))
    else {
        return Some(text.to_owned());
    };
    let number: f64 = text.parse().ok()?;
    Some((number * factor).to_string())
}

/// Returns a number as text, without digits that are artefacts of binary fractions. If the number was parsed from text, parsing
/// the result yields the same number.
pub fn number(value: f64) -> String {
    format!("{}", plain(value))
}

/// Returns `value` rounded to nine decimals if the difference is only a rounding error; otherwise `value` itself.
fn plain(value: f64) -> f64 {
    let short = (value * 1e9).round() / 1e9;
    let is_near = (short - value).abs() <= value.abs() * 1e-12;
    // Larger numbers cannot represent multiples of 1e-9 exactly.
    if is_near && value.abs() < 1e6 { short } else { value }
}

/// Reason why a text is not a valid specification.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The name is unknown.
    #[error("there is no {kind} {name:?}; choose one of: {known}")]
    UnknownName {
        /// Kind of the name: a scheme, a queue.
        kind: &'static str,
        /// The given name.
        name: String,
        /// The known names.
        known: String,
    },
    /// The option is unknown.
    #[error("{of} has no option {option:?}; its options are: {known}")]
    UnknownOption {
        /// The configured object: `scheme ormcc`.
        of: String,
        /// Name of the given option.
        option: String,
        /// Names of the known options.
        known: String,
    },
    /// An option that changes all other options is not the first option.
    #[error("option {option:?} changes all other options, so it must be the first option")]
    NotFirst {
        /// Name of the option.
        option: &'static str,
    },
    /// A required value is missing.
    #[error("{of} needs {missing}")]
    Missing {
        /// The configured object.
        of: &'static str,
        /// The missing value.
        missing: &'static str,
    },
    /// Values contradict each other.
    #[error("{of}: {what}")]
    Unfit {
        /// The configured object.
        of: &'static str,
        /// The contradiction, and a combination that would be valid.
        what: String,
    },
    /// An option has no value.
    #[error("option {option:?} has no value; write {option}=VALUE")]
    NoValue {
        /// Name of the option.
        option: String,
    },
    /// An option has a value that is not permitted.
    #[error("option {option} cannot be {value:?}; it must be {takes} ({meaning})")]
    BadValue {
        /// Name of the option.
        option: &'static str,
        /// The given value.
        value: String,
        /// The permitted values.
        takes: String,
        /// Meaning of the option.
        meaning: &'static str,
    },
}

/// Returns all options of `config` as text for [`configure`]. An option that is a word without a value appears only if it
/// applies; presets are omitted.
pub fn written<C: 'static>(config: &C, table: &[Opt<C>]) -> String {
    let options = table.iter().filter(|option| !option.first).filter_map(|option| match option.value {
        Value::Word(is, _) => is(config).then(|| option.name.to_owned()),
        _ => Some(format!("{}={}", option.name, option.get(config))),
    });
    options.collect::<Vec<_>>().join(",")
}

/// Splits a specification into its name and its options.
pub fn split(text: &str) -> (&str, &str) {
    let (name, rest) = text.split_once(',').unwrap_or((text, ""));
    (name.trim(), rest)
}

/// Sets the options of `config` from `text`, the part of a specification after the name. The tables are searched in order. `of`
/// describes the configured object in errors, as in `scheme ormcc`.
///
/// # Errors
/// Returns an error for an unknown option or an invalid value; the error states the valid options or values.
pub fn configure<C: 'static>(
    config: &mut C,
    text: &str,
    of: &str,
    tables: &[&[Opt<C>]],
) -> Result<(), SpecError> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    for (place, part) in parts.enumerate() {
        let (name, value) = part.split_once('=').map_or((part, None), |(name, value)| (name, Some(value)));
        let mut all = tables.iter().copied().flatten();
        let Some(option) = all.find(|option| option.name == name) else {
            let known: Vec<&str> = tables.iter().copied().flatten().map(|option| option.name).collect();
            let (of, option, known) = (of.to_owned(), name.to_owned(), known.join(", "));
            return Err(SpecError::UnknownOption { of, option, known });
        };
        if option.first && place > 0 {
            return Err(SpecError::NotFirst { option: option.name });
        }
        let alone = option.alone.or(matches!(option.value, Value::Word(..)).then_some(""));
        let value = value.or(alone).ok_or_else(|| SpecError::NoValue { option: name.to_owned() })?;
        option.set(config, value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Shape {
        Round,
        Square,
    }

    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Config {
        part: f64,
        layers: u8,
        shape: Shape,
        wait: Option<Span>,
        rate: Rate,
        deep: Deep,
    }

    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Deep {
        span: Span,
    }

    const PRESET: Config = Config {
        part: 0.5,
        layers: 8,
        shape: Shape::Round,
        wait: None,
        rate: Rate::ZERO,
        deep: Deep { span: Span::from_millis(5) },
    };

    const OPTIONS: &[Opt<Config>] = &[
        Opt::number("part", NumberRange::PART, field!(part), "how much"),
        Opt::whole("layers", 1, 16, field!(layers as u8), "how many"),
        Opt::alone(
            "square",
            Opt::choice("shape", choice!(shape: "round" => Shape::Round, "square" => Shape::Square), "which"),
        ),
        Opt::or("off", Opt::seconds("wait", NumberRange::of(0.0, 60.0), field!(wait?), "how long")),
        Opt::rate("rate", NumberRange::POSITIVE, field!(rate), "how fast"),
        Opt::seconds("span", NumberRange::up_to(1.0), field!(deep.span), "how far"),
    ];

    fn read(text: &str) -> Result<Config, SpecError> {
        let mut config = PRESET;
        configure(&mut config, text, "toy", &[OPTIONS]).map(|()| config)
    }

    #[test]
    fn number_is_unchanged_after_writing_and_reading() {
        let typed = [
            "2e20",
            "65",
            "0.1",
            "1e-12",
            "0.1234567891234",
            "0.30000000000000004",
            "123456.789012345",
            "999999.9999999999",
        ];
        for text in typed {
            let read = NumberRange::of(0.0, f64::INFINITY).parse(text).expect("a number");
            let written = number(read);
            assert_eq!(NumberRange::of(0.0, f64::INFINITY).parse(&written), Some(read), "{text}: {written}");
        }
        assert_eq!(number(0.1 + 0.2), "0.3");
    }

    #[test]
    fn options_are_parsed_into_fields_and_written_as_text() {
        let read = read("part=0.25, layers=3,shape,wait=250ms,rate=1.5M,span=20us").expect("it fits");
        let expected = Config {
            part: 0.25,
            layers: 3,
            shape: Shape::Square,
            wait: Some(Span::from_millis(250)),
            rate: Rate::from_bps(1.5e6),
            deep: Deep { span: Span::from_micros(20) },
        };
        assert_eq!(read, expected);
        let text = |config: &Config| OPTIONS.iter().map(|option| option.get(config)).collect::<Vec<_>>();
        assert_eq!(text(&read), ["0.25", "3", "square", "0.25", "1500000", "0.00002"]);
        assert_eq!(text(&PRESET), ["0.5", "8", "round", "off", "0", "0.005"]);
        let mut again = PRESET;
        for option in OPTIONS.iter().filter(|option| option.name != "rate") {
            option.set(&mut again, &option.get(&read)).expect("its own value fits");
        }
        assert_eq!(again, Config { rate: Rate::ZERO, ..read });
    }

    #[test]
    fn error_for_a_value_out_of_range_states_the_range() {
        let refused = |text| read(text).expect_err(text).to_string();
        assert_eq!(refused("part=2"), "option part cannot be \"2\"; it must be 0 to 1 (how much)");
        assert_eq!(
            refused("parts=1"),
            "toy has no option \"parts\"; its options are: part, layers, shape, wait, rate, span"
        );
        assert_eq!(refused("layers"), "option \"layers\" has no value; write layers=VALUE");
        assert_eq!(refused("wait=61"), "option wait cannot be \"61\"; it must be off | 0 to 60 s (how long)");
        for text in [
            "part=NaN",
            "part=-0.1",
            "layers=0",
            "layers=2.5",
            "shape=oval",
            "wait=on",
            "rate=0",
            "span=0",
            "span=2s",
        ] {
            assert!(refused(text).contains("cannot be"), "{text}");
        }
    }

    #[test]
    fn ranges_are_stated_in_words() {
        let reported = |range: NumberRange| range.to_string();
        assert_eq!(reported(NumberRange::POSITIVE), "above 0");
        assert_eq!(reported(NumberRange::up_to(1.0)), "above 0 and at most 1");
        assert_eq!(reported(NumberRange::of(0.0, f64::INFINITY)), "0 or more");
    }

    #[test]
    fn value_with_several_forms_is_parsed_by_word_and_numbers() {
        const FORMS: &[Form<f64>] = &[
            Form::word("none", |_| 0.0),
            Form::numbers("sum", &[("A", NumberRange::PART), ("B", NumberRange::POSITIVE)], |of| {
                of[0] + of[1]
            }),
            Form::word("sum:small", |_| 0.1),
        ];
        for (text, value) in [("none", 0.0), ("sum:0.5:2", 2.5), ("sum:small", 0.1)] {
            assert_eq!(Form::read_any(FORMS, text), Some(value), "{text}");
        }
        for text in ["", "nonesuch", "none:1", "sum", "sum:1", "sum:2:2", "sum:1:0", "sum:1:1:1", "sum:1:inf"]
        {
            assert_eq!(Form::read_any(FORMS, text), None, "{text}");
        }
        assert_eq!(Form::list(FORMS), "none | sum:A:B | sum:small, A 0 to 1, B above 0");
    }
}
