//! Disciplines as text: parsing, writing and building from the table in each discipline's file.

use faircast_core::spec::{self, Described, Opt, SpecError};
use faircast_core::time::{Rate, Span};

/// A discipline as text: `NAME` alone, or `NAME,OPTIONS`.
pub(crate) trait Written: Sized {
    /// Its name.
    const NAME: &'static str;
    /// Its syntax, for error messages.
    const FORM: &'static str;
    /// Returns a description of its options.
    fn described() -> Vec<Described>;
    /// Type of the discipline.
    type Built;
    /// Reads the text after the name.
    fn read(options: &str) -> Result<Self, SpecError>;
    /// Checks that the values are valid and fit one another.
    fn check(&self) -> Result<(), SpecError>;
    /// Returns the options after the name, complete: the text reads back as the same value.
    fn options(&self) -> String;
    /// Builds the discipline for a link of this rate and propagation delay.
    fn make(&self, rate: Rate, delay: Span) -> Self::Built;
}

/// A discipline whose options are one table: the specific parts of [`Written`].
pub(crate) trait Tabled: Sized + Default + 'static {
    /// Its name.
    const NAME: &'static str;
    /// Its syntax.
    const FORM: &'static str;
    /// Its options.
    const OPTIONS: &'static [Opt<Self>];
    /// Type of the discipline.
    type Built;
    /// Checks values that are in their ranges against one another. The error names the conflict.
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
        // Configurations made in code have the same ranges.
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

/// A word before all options that sets every field.
pub(crate) const fn preset<C>(name: &'static str, set: fn(&mut C), meaning: &'static str) -> Opt<C> {
    Opt::first(Opt::word(name, |_| false, set, meaning))
}

/// Declares the configuration of a discipline: for each field its meaning, type, default and options, in the order of the table;
/// presets, which precede the options; and the rest of its [`Tabled`]. Options are written as in `configuration!` of the
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
