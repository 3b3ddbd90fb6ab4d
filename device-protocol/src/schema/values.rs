//! Declarations of extensible enumerations and sets.

/// Declares an enumeration that later versions may extend: an unknown number is kept as `Other`.
macro_rules! open_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident: $number:ident {
            $( $(#[$variant_meta:meta])* $variant:ident = $value:literal => $text:literal ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $( $(#[$variant_meta])* $variant, )*
            /// A number that this version does not know.
            Other($number),
        }

        impl $name {
            /// Numbers and names of this version.
            pub const NAMES: &'static [(u32, &'static str)] = &[$( ($value, $text) ),*];

            /// The value of a number on the wire.
            pub const fn from_number(number: $number) -> Self {
                match number {
                    $( $value => Self::$variant, )*
                    other => Self::Other(other),
                }
            }

            /// The number on the wire.
            pub const fn number(self) -> $number {
                match self {
                    $( Self::$variant => $value, )*
                    Self::Other(other) => other,
                }
            }

            /// The name in the JSON form; `None` for numbers that this version does not know.
            pub const fn name(self) -> Option<&'static str> {
                match Self::from_number(self.number()) {
                    $( Self::$variant => Some($text), )*
                    Self::Other(_) => None,
                }
            }

            /// The value of a name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $( $text => Some(Self::$variant), )*
                    _ => None,
                }
            }
        }

        impl<'a> $crate::codec::Wire<'a> for $name {
            fn put(&self, writer: &mut $crate::codec::Writer<'_>) -> Result<(), $crate::Error> {
                writer.write_value(self.number())
            }
            fn get(reader: &mut $crate::codec::Reader<'a>) -> Result<Self, $crate::Error> {
                reader.read().map(Self::from_number)
            }
        }

        #[cfg(feature = "json")]
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self.name() {
                    Some(name) => serializer.serialize_str(name),
                    None => serde::Serialize::serialize(&self.number(), serializer),
                }
            }
        }

        #[cfg(feature = "json")]
        impl $crate::json::FromJson for $name {
            fn from_json(place: $crate::json::Place<'_>) -> Result<Self, $crate::json::JsonError> {
                match place.as_str() {
                    // A name of a later version has no number here; it maps to the highest number.
                    Some(name) => Ok(Self::from_name(name).unwrap_or(Self::Other($number::MAX))),
                    None => place.integer("a name or a number").map(Self::from_number),
                }
            }
        }
    };
}

/// Declares a set as a bit mask: unknown bits are kept and have no meaning.
macro_rules! bit_set {
    (
        $(#[$meta:meta])*
        pub struct $name:ident: $number:ident {
            $( $(#[$bit_meta:meta])* $bit_name:ident = $bit:literal => $text:literal ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name(
            /// The bits, as on the wire.
            pub $number,
        );

        impl $name {
            $( $(#[$bit_meta])* pub const $bit_name: Self = Self(1 << $bit); )*

            /// The empty set.
            pub const EMPTY: Self = Self(0);

            /// Bits and names of this version.
            pub const NAMES: &'static [(u32, &'static str)] = &[$( ($bit, $text) ),*];

            /// The union of both sets.
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// True if every bit of `other` is set.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// True if no bit is set.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// True if the bit with this number is set.
            pub const fn has_bit(self, bit: u32) -> bool {
                bit < $number::BITS && self.0 & (1 << bit) != 0
            }
        }

        impl core::ops::BitOr for $name {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                self.with(other)
            }
        }

        impl<'a> $crate::codec::Wire<'a> for $name {
            fn put(&self, writer: &mut $crate::codec::Writer<'_>) -> Result<(), $crate::Error> {
                writer.write_value(self.0)
            }
            fn get(reader: &mut $crate::codec::Reader<'a>) -> Result<Self, $crate::Error> {
                reader.read().map(Self)
            }
        }

        #[cfg(feature = "json")]
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::json::put_bits(u32::from(self.0), Self::NAMES, serializer)
            }
        }

        #[cfg(feature = "json")]
        impl $crate::json::FromJson for $name {
            fn from_json(place: $crate::json::Place<'_>) -> Result<Self, $crate::json::JsonError> {
                place.bits(Self::NAMES, $number::BITS).map(|bits| Self(bits as $number))
            }
        }
    };
}
