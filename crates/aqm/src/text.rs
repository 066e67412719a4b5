//! Disciplines as text: parsing, writing and building from the table in each discipline's file.

use faircast_core::spec::{self, Described, Opt, SpecError};
use faircast_core::time::{Rate, Span};

/// A discipline with a textual form: `NAME` alone, or `NAME,OPTIONS`.
pub(crate) trait Written: Sized {
    /// Name of the discipline.
    const NAME: &'static str;
    /// Syntax of the text, for error messages.
    const FORM: &'static str;
    /// Returns a description of the options.
    fn described() -> Vec<Described>;
    /// Type of the discipline.
    type Built;
    /// Reads the text after the name.
    fn read(options: &str) -> Result<Self, SpecError>;
    /// Checks that the values are valid and consistent.
    fn check(&self) -> Result<(), SpecError>;
    /// Returns all options in the form that follows the name. Parsing the text gives the same value.
    fn options(&self) -> String;
    /// Builds the discipline for a link of this rate and propagation delay.
    fn make(&self, rate: Rate, delay: Span) -> Self::Built;
}

/// A discipline whose options are in one table. It provides the parts of [`Written`] that differ between disciplines.
pub(crate) trait Tabled: Sized + Default + 'static {
    /// Name of the discipline.
    const NAME: &'static str;
    /// Syntax of the text.
    const FORM: &'static str;
    /// Options of the discipline.
    const OPTIONS: &'static [Opt<Self>];
    /// Type of the discipline.
    type Built;
    /// Checks that the values are consistent; each of them is already within its range. The error names the conflict.
    fn fits(&self) -> Result<(), String> {
        Ok(())
    }
    /// Builds the discipline for a link of this rate and propagation delay.
    fn build(&self, rate: Rate, delay: Span) -> Self::Built;
}

impl<T: Tabled> Written for T {
    const NAME: &'static str = <T as Tabled>::NAME;
    const FORM: &'static str = <T as Tabled>::FORM;
    type Built = <T as Tabled>::Built;

    fn described() -> Vec<Described> {
        T::OPTIONS.iter().map(Opt::described).collect()
    }

    fn read(options: &str) -> Result<T, SpecError> {
        let mut config = T::default();
        spec::configure(&mut config, options, <T as Tabled>::NAME, &[T::OPTIONS]).map(|()| config)
    }

    fn check(&self) -> Result<(), SpecError> {
        // Values that were set in code must be in the same ranges as values in text.
        T::read(&self.options())?;
        self.fits().map_err(|what| SpecError::Unfit { of: <T as Tabled>::NAME, what })
    }

    fn options(&self) -> String {
        spec::written(self, T::OPTIONS)
    }

    fn make(&self, rate: Rate, delay: Span) -> Self::Built {
        self.build(rate, delay)
    }
}

/// Returns an option that is a word before all other options and sets every field.
pub(crate) const fn preset<C>(name: &'static str, set: fn(&mut C), meaning: &'static str) -> Opt<C> {
    Opt::first(Opt::word(name, |_| false, set, meaning))
}

/// Declares the configuration of a discipline. The table has the meaning, type, default value and option of each field. Presets
/// precede the options. The remaining items implement [`Tabled`]. Options are written as in `configuration!` of the
/// congestion-control schemes.
macro_rules! table {
    (
        $(#[$about:meta])*
        pub struct Config {
            $($(#[$meaning:meta])* $field:ident : $type:ty = $value:expr $(=> $kind:ident $option:tt)*;)*
        }

        $(#[$default:meta])*
        impl Default;

        impl Tabled for Config as $name:literal $(with [$($preset:expr),* $(,)?])? {
            $($rest:tt)*
        }
    ) => {
        $(#[$about])*
        pub struct Config {
            $($(#[$meaning])* pub $field: $type,)*
        }

        impl Config {
            /// The values of [`Default`].
            const DEFAULT: Config = Config { $($field: $value,)* };
        }

        $(#[$default])*
        impl Default for Config {
            fn default() -> Config {
                Config::DEFAULT
            }
        }

        impl $crate::text::Tabled for Config {
            const NAME: &'static str = $name;
            const FORM: &'static str = concat!($name, "[,OPTION...]");
            const OPTIONS: &'static [faircast_core::spec::Opt<Config>] =
                &[$($($preset,)*)? $($(faircast_core::option_of!($kind $field $type, $option),)*)*];

            $($rest)*
        }
    };
}
pub(crate) use table;
