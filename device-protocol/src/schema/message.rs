//! Declaration of a message or a nested record.

/// Declares a message or a nested record; see the module.
macro_rules! message {
    // With borrowed fields: the owned form has its own name.
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

        #[cfg(feature = "json")]
        $(#[$meta])*
        ///
        /// Owned form, for JSON.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $owned {
            $( $(#[$field_meta])* pub $field: field_owned_type!($kind $([$($arg)*])?), )*
        }

        #[cfg(feature = "json")]
        impl<$life> $crate::json::PutJson for $name<$life> {
            message!(@put_json $( $field: $kind $([$($arg)*])? $(= $default)?, )*);
        }

        message!(@json $owned, $name, [$name<$life>] $life; $( $field: $kind $([$($arg)*])? $(= $default)?, )*);
    };
    // Without borrowed fields: the type is its own owned form.
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

        #[cfg(feature = "json")]
        impl $crate::json::PutJson for $name {
            message!(@put_json $( $field: $kind $([$($arg)*])? $(= $default)?, )*);
        }

        message!(@json $name, $name, [$name] 'a; $( $field: $kind $([$($arg)*])? $(= $default)?, )*);
    };
    (@wire $life:lifetime; $( $field:ident : $kind:ident $([$($arg:tt)*])? $(= $default:expr)?, )*) => {
        fn put(&self, writer: &mut $crate::codec::Writer<'_>) -> Result<(), $crate::Error> {
            let mut fields = message!(@sent self, $( $field $(= $default)?, )*);
            $(
                if fields.next().is_some() {
                    writer.enter(stringify!($field));
                    field_put!(writer, self.$field, $kind $([$($arg)*])?);
                }
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
        /// The fields in wire order.
        pub const FIELDS: &'static [$crate::schema::Field] = &[
            $( field_schema!($field, message!(@appended $(= $default)?), $kind $([$($arg)*])?), )*
        ];
    };
    (
        @json $owned:ident, $name:ident, [$borrowed:ty] $life:lifetime;
        $( $field:ident : $kind:ident $([$($arg:tt)*])? $(= $default:expr)?, )*
    ) => {
        #[cfg(feature = "json")]
        impl $crate::json::Owned for $owned {
            type Borrowed<$life> = $borrowed;

            fn to_borrowed(&self) -> Self::Borrowed<'_> {
                $name { $( $field: field_to_borrowed!(self.$field, $kind $([$($arg)*])?), )* }
            }

            fn from_borrowed(borrowed: &Self::Borrowed<'_>) -> Result<Self, $crate::Error> {
                Ok(Self { $( $field: field_from_borrowed!(borrowed.$field, $kind $([$($arg)*])?), )* })
            }

            fn from_json(object: $crate::json::Fields<'_>) -> Result<Self, $crate::json::JsonError> {
                Ok(Self {
                    $( $field: message!(@from_json object, $field, $kind $([$($arg)*])? $(= $default)?), )*
                })
            }
        }
    };
    (@put_json $( $field:ident : $kind:ident $([$($arg:tt)*])? $(= $default:expr)?, )*) => {
        fn put_fields<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
            let mut fields = message!(@sent self, $( $field $(= $default)?, )*);
            $(
                if fields.next().is_some() {
                    map.serialize_entry(stringify!($field), field_to_json!(self.$field, $kind $([$($arg)*])?))?;
                }
            )*
            Ok(())
        }
    };
    (@from_json $object:ident, $field:ident, $kind:ident $([$($arg:tt)*])?) => {
        field_from_json!($object.field(stringify!($field)), $kind $([$($arg)*])?)
    };
    (@from_json $object:ident, $field:ident, $kind:ident $([$($arg:tt)*])? = $default:expr) => {
        if $object.has(stringify!($field)) {
            field_from_json!($object.field(stringify!($field)), $kind $([$($arg)*])?)
        } else {
            field_default_owned!($default, $kind $([$($arg)*])?)
        }
    };
    // One flag per sent field: trailing appended fields with their default value are omitted, as an older sender does.
    (@sent $self:ident, $( $field:ident $(= $default:expr)?, )*) => {{
        let says: &[bool] = &[$( message!(@says $self.$field $(= $default)?), )*];
        0..says.iter().rposition(|says| *says).map_or(0, |last| last + 1)
    }};
    (@says $self:ident . $field:ident) => { true };
    (@says $self:ident . $field:ident = $default:expr) => { $self.$field != $default };
    (@appended) => { false };
    (@appended = $default:expr) => { true };
}
