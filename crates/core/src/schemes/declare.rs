//! A macro that declares a scheme's configuration once: the fields, their published values, and the options that set the fields.

/// Declares the configuration of a scheme. The declaration of a field states its meaning, the paper's symbol, the type, the
/// published value, and the options that set the field.
///
/// ```text
/// configuration! {
///     /// Everything that can be chosen.
///     pub struct Config {
///         /// Decrease factor, "beta".
///         beta: f64 = 0.75 => number["beta", NumberRange::of(0.5, 1.0), "part of the rate that is kept after a cut"];
///     }
///
///     /// The paper's values.
///     pub fn published;
///
///     impl Configure for Config {
///         sending: sending;
///         const ENTRY: Entry = ENTRY;
///     }
/// }
/// ```
///
/// The macro generates the structure, `Config::published`, and the implementation of `Configure` with the table of options in the
/// order of the fields. `sending:` is the path to the field with the settings that all schemes have.
///
/// | option | value |
/// |---|---|
/// | `number["name", RANGE, "meaning"]` | a number without a unit |
/// | `seconds[..]` `rate[..]` | a time, a rate |
/// | `number["name" or "word", RANGE, "meaning"]` | a number, or the word for `None`; `seconds` and `rate` have the same form |
/// | `whole["name", MIN, MAX, "meaning"]` | a whole number of a smaller integer type; `"name" or "word"` as above |
/// | `choice["name", { "word" => Variant, .. }, "meaning"]` | a variant of the field's type |
/// | `word["name", "meaning"]` `not[..]` | no value: the field is true, or false |
/// | `spread["name", "meaning"]` | the steepness of a distribution of report delays |
/// | `option[EXPRESSION]` | the value of this [`Opt`](crate::spec::Opt) |
macro_rules! configuration {
    (
        $(#[$doc:meta])*
        pub struct Config {
            $($(#[$about:meta])* $field:ident : $type:ty = $value:expr $(=> $kind:ident $option:tt)*;)*
        }

        $(#[$published:meta])*
        pub fn published;

        impl Configure for Config {
            sending: $($sending:ident).+;
            $($rest:tt)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct Config {
            $($(#[$about])* pub $field: $type,)*
        }

        impl Config {
            $(#[$published])*
            pub fn published() -> Config {
                Config { $($field: $value,)* }
            }
        }

        impl $crate::schemes::catalogue::Configure for Config {
            const OPTIONS: &'static [$crate::spec::Opt<Config>] =
                &[$($($crate::option_of!($kind $field $type, $option),)*)*];

            fn published() -> Config {
                Config::published()
            }

            fn transport(packet_size: u16) -> Config {
                Config::transport(packet_size)
            }

            fn sending(&self) -> &$crate::rate::Sending {
                &self.$($sending).+
            }

            fn sending_mut(&mut self) -> &mut $crate::rate::Sending {
                &mut self.$($sending).+
            }

            $($rest)*
        }
    };
}
pub(super) use configuration;

/// An option of a field, for the configurations of schemes and queue disciplines.
#[doc(hidden)]
#[macro_export]
macro_rules! option_of {
    (number $field:ident $type:ty, [$name:literal or $word:literal, $range:expr, $meaning:literal]) => {
        $crate::spec::Opt::or($word, $crate::spec::Opt::number($name, $range, $crate::field!($field?), $meaning))
    };
    (seconds $field:ident $type:ty, [$name:literal or $word:literal, $range:expr, $meaning:literal]) => {
        $crate::spec::Opt::or($word, $crate::spec::Opt::seconds($name, $range, $crate::field!($field?), $meaning))
    };
    (rate $field:ident $type:ty, [$name:literal or $word:literal, $range:expr, $meaning:literal]) => {
        $crate::spec::Opt::or($word, $crate::spec::Opt::rate($name, $range, $crate::field!($field?), $meaning))
    };
    (whole $field:ident $type:ty, [$name:literal or $word:literal, $least:expr, $most:expr, $meaning:literal]) => {
        $crate::spec::Opt::or($word, $crate::spec::Opt::whole(
            $name,
            $least,
            $most,
            $crate::spec::Field {
                get: |config| config.$field.map(u64::from),
                set: |config, number| config.$field = number.map(|number| number as _),
            },
            $meaning,
        ))
    };
    (number $field:ident $type:ty, [$name:literal, $range:expr, $meaning:literal]) => {
        $crate::spec::Opt::number($name, $range, $crate::field!($field), $meaning)
    };
    (seconds $field:ident $type:ty, [$name:literal, $range:expr, $meaning:literal]) => {
        $crate::spec::Opt::seconds($name, $range, $crate::field!($field), $meaning)
    };
    (rate $field:ident $type:ty, [$name:literal, $range:expr, $meaning:literal]) => {
        $crate::spec::Opt::rate($name, $range, $crate::field!($field), $meaning)
    };
    (whole $field:ident $type:ty, [$name:literal, $least:expr, $most:expr, $meaning:literal]) => {
        $crate::spec::Opt::whole($name, $least, $most, $crate::field!($field as $type), $meaning)
    };
    (choice $field:ident $type:ty, [$name:literal, { $($word:literal => $variant:ident),+ }, $meaning:literal]) => {
        $crate::spec::Opt::choice($name, $crate::choice!($field: $($word => <$type>::$variant),+), $meaning)
    };
    (word $field:ident $type:ty, [$name:literal, $meaning:literal]) => {
        $crate::spec::Opt::word($name, |config| config.$field, |config| config.$field = true, $meaning)
    };
    (not $field:ident $type:ty, [$name:literal, $meaning:literal]) => {
        $crate::spec::Opt::word($name, |config| !config.$field, |config| config.$field = false, $meaning)
    };
    (spread $field:ident $type:ty, [$name:literal, $meaning:literal]) => {
        $crate::spec::Opt::number(
            $name,
            $crate::spec::NumberRange::up_to(50.0),
            $crate::schemes::catalogue::spread!($field),
            $meaning,
        )
    };
    (option $field:ident $type:ty, [$option:expr]) => {
        $option
    };
}
