//! The format of the packets, and the options that foreign formats declare.

use crate::failure::Usage;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use faircast::Format;
use faircast::format::{Ends, FormatOption, Given, Values};
use std::marker::PhantomData;

const HEADING: &str = "Packet format";

/// The endpoint of a session that a command runs: source or receiver.
pub trait End {
    /// Whether an option that is declared for `ends` applies to this endpoint.
    fn has(ends: Ends) -> bool;
}

/// The source.
#[derive(Debug, Clone)]
pub struct AtSource;

/// The receiver.
#[derive(Debug, Clone)]
pub struct AtReceiver;

impl End for AtSource {
    fn has(_: Ends) -> bool {
        true
    }
}

impl End for AtReceiver {
    fn has(ends: Ends) -> bool {
        ends == Ends::Both
    }
}

/// The packet format, and the given options of formats.
#[derive(Debug, Clone)]
pub struct FormatArgs<E> {
    /// The packet format; `None` means faircast's own format.
    pub wire: Option<Format>,
    given: Vec<(Format, &'static str, String)>,
    end: PhantomData<E>,
}

impl<E> FormatArgs<E> {
    /// Returns the options of the selected format.
    ///
    /// # Errors
    /// [`Usage::NeedsFormat`] for an option of another format.
    pub fn options(&self) -> Result<Given, Usage> {
        match self.given.iter().find(|(format, ..)| Some(*format) != self.wire) {
            Some((format, option, _)) => {
                Err(Usage::NeedsFormat { option: (*option).to_owned(), format: *format })
            }
            None => {
                Ok(Given::new(self.given.iter().map(|(_, name, value)| (*name, value.clone())).collect()))
            }
        }
    }
}

/// Returns all options of this endpoint, with their formats.
fn declared<E: End>() -> impl Iterator<Item = (Format, &'static FormatOption)> {
    let options = |format: Format| format.declaration().options.iter().map(move |option| (format, option));
    Format::ALL.iter().copied().flat_map(options).filter(|(_, option)| E::has(option.ends))
}

impl<E: End> Args for FormatArgs<E> {
    fn augment_args(command: Command) -> Command {
        let own = PossibleValue::new("native").help("faircast's own format");
        let others = Format::ALL.iter().map(|format| {
            let declared = format.declaration();
            PossibleValue::new(declared.name).help(declared.summary)
        });
        let wire = Arg::new("wire")
            .long("wire")
            .value_name("FORMAT")
            .help_heading(HEADING)
            .help("Packet format")
            .default_value("native")
            .value_parser(PossibleValuesParser::new(std::iter::once(own).chain(others)));
        declared::<E>().fold(command.arg(wire), |command, (_, option)| command.arg(argument(option)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn argument(option: &'static FormatOption) -> Arg {
    let argument = Arg::new(option.name)
        .long(option.name)
        .value_name(option.value)
        .help_heading(HEADING)
        .help(option.meaning);
    match option.values {
        Values::Words(words) => {
            let values = words.iter().map(|(word, meaning)| PossibleValue::new(*word).help(*meaning));
            argument.value_parser(PossibleValuesParser::new(values))
        }
        Values::Checked(check) => {
            argument.value_parser(move |text: &str| check(text).map(|()| text.to_owned()))
        }
    }
}

impl<E: End> FromArgMatches for FormatArgs<E> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<FormatArgs<E>, clap::Error> {
        let wire = matches.get_one::<String>("wire");
        let wire = Format::ALL
            .iter()
            .copied()
            .find(|format| wire.is_some_and(|name| name == format.declaration().name));
        let value = |(format, option): (Format, &'static FormatOption)| {
            let value = matches.get_one::<String>(option.name)?;
            Some((format, option.name, value.clone()))
        };
        Ok(FormatArgs { wire, given: declared::<E>().filter_map(value).collect(), end: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = FormatArgs::from_arg_matches(matches)?;
        Ok(())
    }
}
