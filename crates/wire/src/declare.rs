//! Declarations of packet fields. Each field is declared once: its name, its encoding ([`crate::codec::Codec`]) and its meaning.
//! The macros derive the writer, the reader, the table in `docs/wire.md` and in the dissector, lengths, the quantised value, and
//! arbitrary values for tests.
//!
//! ```text
//! group!       fields in a row, where a struct is a field of something larger
//! choice!      an enum: its variants by number, each with its fields
//! body!        a message: fields, then lists, which are cut to what a datagram holds
//! written_as!  a field that is written as another type
//! ```
//!
//! A declaration that does not name all fields of its type does not compile.

/// Name of a field: the name after `as` if there is one, otherwise the name in the struct.
macro_rules! name_of {
    ($name:ident) => {
        stringify!($name)
    };
    ($name:ident $wire_name:literal) => {
        $wire_name
    };
}

/// The table of fields.
macro_rules! table_of {
    ($($name:ident $(as $wire_name:literal)?: $codec:ty, $meaning:literal;)*) => {
        &[$($crate::field::Field {
            name: name_of!($name $($wire_name)?),
            shape: <$codec as $crate::codec::Codec>::SHAPE,
            meaning: $meaning,
        }),*]
    };
}

/// Nests patterns, or strategies, in pairs: `((((), a), b), c)`. Tuples of proptest have at most twelve entries.
#[cfg(feature = "testing")]
macro_rules! in_pairs {
    ($done:tt;) => { $done };
    ($done:tt; $next:ident $($rest:ident)*) => { in_pairs!(($done, $next); $($rest)*) };
}

/// Arbitrary values of these fields, combined by an expression.
#[cfg(feature = "testing")]
macro_rules! any_of {
    ($made:expr; $($name:ident: $strategy:expr;)*) => {{
        use proptest::prelude::*;
        let all = Just(());
        $(let all = (all, $strategy);)*
        all.prop_map(|in_pairs!((); $($name)*)| $made).boxed()
    }};
}

/// A struct whose fields are written in order.
macro_rules! group {
    ($of:ident { $($name:ident $(as $wire_name:literal)?: $codec:ty, $meaning:literal;)* }) => {
        impl $crate::codec::Codec for $of {
            type Value = $of;
            const SHAPE: $crate::field::Shape =
                $crate::field::Shape::Group(table_of!($($name $(as $wire_name)?: $codec, $meaning;)*));

            #[inline]
            fn put(out: &mut Vec<u8>, _: &'static str, $of { $($name),* }: &$of) -> Result<(), $crate::error::EncodeError> {
                $(<$codec as $crate::codec::Codec>::put(out, name_of!($name $($wire_name)?), $name)?;)*
                Ok(())
            }

            #[inline]
            fn read(r: &mut $crate::reader::Reader<'_>, _: &'static str) -> Result<$of, $crate::error::ParseError> {
                Ok($of { $($name: <$codec as $crate::codec::Codec>::read(r, name_of!($name $($wire_name)?))?),* })
            }

            fn quantised($of { $($name),* }: &$of) -> $of {
                $of { $($name: <$codec as $crate::codec::Codec>::quantised($name)),* }
            }

            #[cfg(feature = "testing")]
            fn any() -> proptest::strategy::BoxedStrategy<$of> {
                any_of!($of { $($name),* }; $($name: <$codec as $crate::codec::Codec>::any();)*)
            }
        }
    };
}

/// An enum whose number selects the variant and the variant's fields. Makes the module's `LAYOUTS`, `number`, `len`, `put`,
/// `read_into` and `any`, and implements [`crate::Quantised`].
macro_rules! choice {
    (
        $of:ident, unknown numbers are $unknown:expr;
        $($number:literal $label:literal $purpose:literal $([$($bit:literal $bit_name:literal),*])? =>
            $variant:ident { $($name:ident $(as $wire_name:literal)?: $codec:ty, $meaning:literal;)* })*
    ) => {
        /// The variants, by number.
        pub const LAYOUTS: &[$crate::field::Layout] = &[$($crate::field::Layout {
            name: $label,
            number: $number,
            purpose: $purpose,
            fields: table_of!($($name $(as $wire_name)?: $codec, $meaning;)*),
            bits: &[$($(($bit, $bit_name)),*)?],
        }),*];

        /// The number that selects the variant.
        pub(crate) const fn number(value: &$of) -> u8 {
            match value { $($of::$variant { .. } => $number),* }
        }

        /// Length of the fields, in bytes.
        pub(crate) const fn len(value: &$of) -> usize {
            match value {
                $($of::$variant { .. } => const {
                    $crate::field::len_of(table_of!($($name $(as $wire_name)?: $codec, $meaning;)*))
                }),*
            }
        }

        /// Appends the fields.
        #[inline]
        pub(crate) fn put(out: &mut Vec<u8>, value: &$of) -> Result<(), $crate::error::EncodeError> {
            match value {
                $($of::$variant { $($name),* } => {
                    $(<$codec as $crate::codec::Codec>::put(out, name_of!($name $($wire_name)?), $name)?;)*
                })*
            }
            Ok(())
        }

        /// Reads the variant with this number into `value`.
        #[inline]
        pub(crate) fn read_into(
            number: u8,
            r: &mut $crate::reader::Reader<'_>,
            value: &mut $of,
        ) -> Result<(), $crate::error::ParseError> {
            match number {
                $($number => *value = $of::$variant {
                    $($name: <$codec as $crate::codec::Codec>::read(r, name_of!($name $($wire_name)?))?),*
                },)*
                unknown => return Err($unknown(unknown)),
            }
            Ok(())
        }

        impl $crate::codec::Quantised for $of {
            fn quantised(&self) -> $of {
                match self {
                    $($of::$variant { $($name),* } => $of::$variant {
                        $($name: <$codec as $crate::codec::Codec>::quantised($name)),*
                    }),*
                }
            }
        }

        /// Generates any value.
        #[cfg(feature = "testing")]
        pub(crate) fn any() -> proptest::strategy::BoxedStrategy<$of> {
            use proptest::prelude::*;
            proptest::strategy::Union::new([
                $(any_of!($of::$variant { $($name),* }; $($name: <$codec as $crate::codec::Codec>::any();)*)),*
            ]).boxed()
        }
    };
}

/// A message. `before` lists the struct's fields that precede the body in the packet.
macro_rules! body {
    (
        $of:ident = $number:literal $label:literal $purpose:literal;
        $(before { $($before:ident: $before_codec:ty),* })?
        fields { $($name:ident $(as $wire_name:literal)?: $codec:ty, $meaning:literal;)* }
        $(lists { $($list:ident: [$list_codec:ty $(as $entry:ident $entry_meaning:literal)?], $list_meaning:literal;)+ })?
    ) => {
        impl $crate::bodies::Body for $of {
            const LAYOUT: $crate::field::Layout = $crate::field::Layout {
                name: $label,
                number: $number,
                purpose: $purpose,
                fields: &[
                    $($crate::field::Field {
                        name: name_of!($name $($wire_name)?),
                        shape: <$codec as $crate::codec::Codec>::SHAPE,
                        meaning: $meaning,
                    },)*
                    $($($crate::field::Field {
                        name: concat!(stringify!($list), "_count"),
                        shape: $crate::field::Shape::Count,
                        meaning: concat!("entries of ", stringify!($list)),
                    },)+
                    $($crate::field::Field {
                        name: stringify!($list),
                        shape: $crate::field::Shape::List(entry_of!($list_codec $(as $entry $entry_meaning)?)),
                        meaning: $list_meaning,
                    },)+)?
                ],
                bits: &[],
            };
            type Before = ($($($before_codec,)*)?);

            fn put(&self, out: &mut Vec<u8>, end: usize) -> Result<$crate::bodies::Fit, $crate::error::EncodeError> {
                $(<$codec as $crate::codec::Codec>::put(out, name_of!($name $($wire_name)?), &self.$name)?;)*
                let fit = $crate::bodies::Fit::default();
                $(
                    let lens = [$(self.$list.len()),+];
                    let sizes = [$(const { $crate::field::len_of(entry_of!($list_codec $(as $entry $entry_meaning)?)) }),+];
                    let room = end.saturating_sub(out.len() + 2 * lens.len());
                    let counts = $crate::bodies::share(room, lens, sizes);
                    for count in counts {
                        out.extend_from_slice(&(count as u16).to_be_bytes());
                    }
                    let [$($list),+] = counts;
                    $(for entry in &self.$list[..$list] {
                        <$list_codec as $crate::codec::Codec>::put(out, stringify!($list), entry)?;
                    })+
                    let fit = $crate::bodies::Fit { $($list,)+ ..fit };
                )?
                let _ = end; // without lists nothing is cut
                Ok(fit)
            }

            fn read(r: &mut $crate::reader::Reader<'_>, before: Self::Before) -> Result<$of, $crate::error::ParseError> {
                let ($($($before,)*)?) = before;
                $(let $name = <$codec as $crate::codec::Codec>::read(r, name_of!($name $($wire_name)?))?;)*
                $(
                    $(let $list = <u16 as $crate::codec::Codec>::read(r, concat!(stringify!($list), "_count"))?;)+
                    $(let $list = $crate::codec::take_list::<$list_codec>(r, stringify!($list), $list, const {
                        $crate::field::len_of(entry_of!($list_codec $(as $entry $entry_meaning)?))
                    })?;)+
                )?
                Ok($of { $($($before,)*)? $($name,)* $($($list,)+)? })
            }

            #[cfg(feature = "testing")]
            fn any() -> proptest::strategy::BoxedStrategy<$of> {
                any_of!(
                    $of { $($($before,)*)? $($name,)* $($($list,)+)? };
                    $($($before: <$before_codec as $crate::codec::Codec>::any();)*)?
                    $($name: <$codec as $crate::codec::Codec>::any();)*
                    $($($list: proptest::collection::vec(<$list_codec as $crate::codec::Codec>::any(), 0..20);)+)?
                )
            }
        }

        impl $crate::codec::Quantised for $of {
            fn quantised(&self) -> $of {
                $of {
                    $($($before: self.$before,)*)?
                    $($name: <$codec as $crate::codec::Codec>::quantised(&self.$name),)*
                    $($($list: self.$list.iter().map(<$list_codec as $crate::codec::Codec>::quantised).collect(),)+)?
                }
            }
        }
    };
}

/// Table of the fields of a list entry: a single field, or the fields of a group.
macro_rules! entry_of {
    ($codec:ty as $entry:ident $meaning:literal) => {
        table_of!($entry: $codec, $meaning;)
    };
    ($codec:ty) => {
        $crate::field::fields_of(<$codec as $crate::codec::Codec>::SHAPE)
    };
}

/// Types with the encoding of another type.
macro_rules! written_as {
    ($($codec:ident: $value:ty as $as:ty, $shape:expr, |$into:ident| $write:expr, |$from:ident| $read:expr;)*) => {$(
        impl $crate::codec::Codec for $codec {
            type Value = $value;
            const SHAPE: $crate::field::Shape = $shape;

            #[inline]
            fn put(out: &mut Vec<u8>, field: &'static str, $into: &$value) -> Result<(), $crate::error::EncodeError> {
                <$as as $crate::codec::Codec>::put(out, field, &$write)
            }

            #[inline]
            fn read(r: &mut $crate::reader::Reader<'_>, field: &'static str) -> Result<$value, $crate::error::ParseError> {
                let $from = <$as as $crate::codec::Codec>::read(r, field)?;
                Ok($read)
            }

            #[cfg(feature = "testing")]
            fn any() -> proptest::strategy::BoxedStrategy<$value> {
                use proptest::strategy::Strategy;
                <$as as $crate::codec::Codec>::any().prop_map(|$from| $read).boxed()
            }
        }
    )*};
}
