//! How messages are declared: one declaration gives the struct, its wire form, its table of fields and its owned mirror.
//!
//! A field is `name: type`, with `type` one of `u8 u16 u32 u64 i16 i32 bool`, an open enumeration or set of
//! [`crate::values`], `text[max]`, `bytes[max]`, `array[n]`, `record[Type]`, `option[Type]` (of a record) or
//! `list[Type, max]`. A field that a later version appends to a message ends with `= default`: bodies of older firmware end
//! before it and give that default.

/// One field of a message, for tables and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name, the same in Rust, in JSON and in PROTOCOL.md.
    pub name: &'static str,
    /// Wire type as declared, such as `u32`, `text` or `record Capabilities`.
    pub wire: &'static str,
    /// Maximum in bytes (text, bytes), in items (list); 0 where the type says it all.
    pub max: usize,
    /// True where older firmware does not send it.
    pub appended: bool,
}

/// One message, for tables and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageSchema {
    /// Kind in the envelope.
    pub kind: u16,
    /// Name in the JSON form.
    pub name: &'static str,
    /// Fields in the order of the wire, behind the stamp.
    pub fields: &'static [Field],
}

macro_rules! field_type {
    ($life:lifetime, text [$max:expr]) => { &$life str };
    ($life:lifetime, bytes [$max:expr]) => { &$life [u8] };
    ($life:lifetime, array [$count:expr]) => { [u8; $count] };
    ($life:lifetime, record [$type:ty $(, $owned:ident)?]) => { $type };
    ($life:lifetime, option [$type:ty $(, $owned:ident)?]) => { Option<$type> };
    ($life:lifetime, list [$type:ty, $owned:ident, $max:expr]) => { $crate::List<$life, $type> };
    ($life:lifetime, $type:ident) => { $type };
}

macro_rules! field_put {
    ($writer:ident, $value:expr, text [$max:expr]) => {
        $writer.text($value, $max)?
    };
    ($writer:ident, $value:expr, bytes [$max:expr]) => {
        $writer.bytes($value, $max)?
    };
    ($writer:ident, $value:expr, array [$count:expr]) => {
        $writer.write_value($value)?
    };
    ($writer:ident, $value:expr, record [$($rest:tt)*]) => {
        $writer.record(&$value)?
    };
    ($writer:ident, $value:expr, option [$($rest:tt)*]) => {
        $writer.option(&$value)?
    };
    ($writer:ident, $value:expr, list [$type:ty, $owned:ident, $max:expr]) => {
        $writer.list(&$value, $max)?
    };
    ($writer:ident, $value:expr, $type:ident) => {
        $crate::codec::Wire::put(&$value, $writer)?
    };
}

macro_rules! field_get {
    ($reader:ident, text [$max:expr]) => {
        $reader.text($max)?
    };
    ($reader:ident, bytes [$max:expr]) => {
        $reader.bytes($max)?
    };
    ($reader:ident, array [$count:expr]) => {
        $reader.read()?
    };
    ($reader:ident, record [$($rest:tt)*]) => {
        $reader.record()?
    };
    ($reader:ident, option [$($rest:tt)*]) => {
        $reader.option()?
    };
    ($reader:ident, list [$type:ty, $owned:ident, $max:expr]) => {
        $reader.list($max)?
    };
    ($reader:ident, $type:ident) => {
        $crate::codec::Wire::get($reader)?
    };
}

macro_rules! field_schema {
    ($name:ident, $appended:expr, text [$max:expr]) => { field_schema!(@ $name, "text", $max, $appended) };
    ($name:ident, $appended:expr, bytes [$max:expr]) => { field_schema!(@ $name, "bytes", $max, $appended) };
    ($name:ident, $appended:expr, array [$count:expr]) => { field_schema!(@ $name, "array", $count, $appended) };
    ($name:ident, $appended:expr, record [$type:ident $($rest:tt)*]) => {
        field_schema!(@ $name, concat!("record ", stringify!($type)), 0, $appended)
    };
    ($name:ident, $appended:expr, option [$type:ident $($rest:tt)*]) => {
        field_schema!(@ $name, concat!("option ", stringify!($type)), 0, $appended)
    };
    ($name:ident, $appended:expr, list [$type:ident < $life:lifetime >, $owned:ident, $max:expr]) => {
        field_schema!(@ $name, concat!("list ", stringify!($type)), $max, $appended)
    };
    ($name:ident, $appended:expr, $type:ident) => { field_schema!(@ $name, stringify!($type), 0, $appended) };
    (@ $name:ident, $wire:expr, $max:expr, $appended:expr) => {
        $crate::schema::Field { name: stringify!($name), wire: $wire, max: $max, appended: $appended }
    };
}

/// Declares a message or a nested record; see the module.
macro_rules! message {
    // With borrowed fields: the owned mirror has its own name.
    (
        $(#[$meta:meta])*
        pub struct $name:ident<$life:lifetime>, owned $owned:ident {
            $( $(#[$field_meta:meta])* $field:ident : $kind:ident $([$($arg:tt)*])? $(= $default:expr)? ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name<$life> {
            $( $(#[$field_meta])* pub $field: field_type!($life, $kind $([$($arg)*])?), )*
        }

        impl<$life> $crate::codec::Wire<$life> for $name<$life> {
            message!(@wire $life; $( $field: $kind $([$($arg)*])? $(= $default)?, )*);
        }

        impl<$life> $name<$life> {
            message!(@schema $( $field: $kind $([$($arg)*])? $(= $default)?, )*);
        }
    };
    // Without borrowed fields: its own mirror.
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $( $(#[$field_meta:meta])* $field:ident : $kind:ident $([$($arg:tt)*])? $(= $default:expr)? ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $( $(#[$field_meta])* pub $field: field_type!('static, $kind $([$($arg)*])?), )*
        }

        impl<'a> $crate::codec::Wire<'a> for $name {
            message!(@wire 'a; $( $field: $kind $([$($arg)*])? $(= $default)?, )*);
        }

        impl $name {
            message!(@schema $( $field: $kind $([$($arg)*])? $(= $default)?, )*);
        }
    };
    (@wire $life:lifetime; $( $field:ident : $kind:ident $([$($arg:tt)*])? $(= $default:expr)?, )*) => {
        fn put(&self, writer: &mut $crate::codec::Writer<'_>) -> Result<(), $crate::Error> {
            $(
                writer.enter(stringify!($field));
                field_put!(writer, self.$field, $kind $([$($arg)*])?);
            )*
            Ok(())
        }

        fn get(reader: &mut $crate::codec::Reader<$life>) -> Result<Self, $crate::Error> {
            $(
                reader.enter(stringify!($field));
                let $field = message!(@get reader, $kind $([$($arg)*])? $(= $default)?);
            )*
            Ok(Self { $( $field, )* })
        }
    };
    (@get $reader:ident, $kind:ident $([$($arg:tt)*])?) => {
        field_get!($reader, $kind $([$($arg)*])?)
    };
    (@get $reader:ident, $kind:ident $([$($arg:tt)*])? = $default:expr) => {
        if $reader.is_empty() { $default } else { field_get!($reader, $kind $([$($arg)*])?) }
    };
    (@schema $( $field:ident : $kind:ident $([$($arg:tt)*])? $(= $default:expr)?, )*) => {
        /// The fields in the order of the wire.
        pub const FIELDS: &'static [$crate::schema::Field] = &[
            $( field_schema!($field, message!(@appended $(= $default)?), $kind $([$($arg)*])?), )*
        ];
    };
    (@appended) => { false };
    (@appended = $default:expr) => { true };
}

/// Declares an enumeration that later versions may extend: an unknown number survives as `Other`.
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
            pub const NAMES: &'static [($number, &'static str)] = &[$( ($value, $text) ),*];

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

            /// The name in the JSON form; none for numbers that this version does not know.
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
    };
}

/// Declares a set as a bit mask: unknown bits are kept and mean nothing.
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

            /// Both sets together.
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// True where every bit of `other` is set.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// True without any bit.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// True where the bit of this number is set.
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
    };
}

/// Declares all messages of one direction: kind, name and type.
macro_rules! direction {
    (
        $(#[$meta:meta])*
        pub enum $name:ident<$life:lifetime>, owned $owned:ident, down $down:literal {
            $( $(#[$variant_meta:meta])* $kind:literal $text:literal $variant:ident($type:ty, $mirror:ident) ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        // Messages are borrowed and short-lived: boxing the long ones would need an allocator.
        #[allow(clippy::large_enum_variant)]
        pub enum $name<$life> {
            $( $(#[$variant_meta])* $variant($type), )*
        }

        $(
            impl<$life> From<$type> for $name<$life> {
                fn from(message: $type) -> Self {
                    Self::$variant(message)
                }
            }
        )*

        impl<$life> $name<$life> {
            /// Every message of this direction.
            pub const SCHEMA: &'static [$crate::schema::MessageSchema] = &[
                $( $crate::schema::MessageSchema { kind: $kind, name: $text, fields: <$type>::FIELDS }, )*
            ];

            /// The name of a kind in the JSON form.
            pub const fn kind_name(kind: u16) -> Option<&'static str> {
                match kind {
                    $( $kind => Some($text), )*
                    _ => None,
                }
            }

            /// The name in the JSON form.
            pub const fn name(&self) -> &'static str {
                match self {
                    $( Self::$variant(_) => $text, )*
                }
            }
        }

        impl<$life> $crate::frame::Message<$life> for $name<$life> {
            const DOWN: bool = $down;

            fn kind(&self) -> u16 {
                match self {
                    $( Self::$variant(_) => $kind, )*
                }
            }

            fn put_fields(&self, writer: &mut $crate::codec::Writer<'_>) -> Result<(), $crate::Error> {
                match self {
                    $( Self::$variant(message) => $crate::codec::Wire::put(message, writer), )*
                }
            }

            fn get_fields(
                kind: u16,
                reader: &mut $crate::codec::Reader<$life>,
            ) -> Result<Option<Self>, $crate::Error> {
                match kind {
                    $( $kind => $crate::codec::Wire::get(reader).map(|message| Some(Self::$variant(message))), )*
                    _ => Ok(None),
                }
            }
        }
    };
}
