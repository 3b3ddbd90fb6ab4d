//! Declaration of all messages of one direction.

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

        #[cfg(feature = "json")]
        $(#[$meta])*
        ///
        /// Owned form, for JSON.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(clippy::large_enum_variant)] // as the borrowed form
        pub enum $owned {
            $( $(#[$variant_meta])* $variant($mirror), )*
        }

        #[cfg(feature = "json")]
        impl $owned {
            /// The borrowed form, as taken by [`encode`](crate::encode).
            pub fn to_borrowed(&self) -> $name<'_> {
                match self {
                    $( Self::$variant(message) => $name::$variant($crate::json::Owned::to_borrowed(message)), )*
                }
            }

            /// A copy of a borrowed message.
            ///
            /// # Errors
            /// An item of a list exceeds a maximum; never for a decoded message.
            pub fn from_borrowed(message: &$name<'_>) -> Result<Self, $crate::Error> {
                Ok(match message {
                    $( $name::$variant(message) => Self::$variant($crate::json::Owned::from_borrowed(message)?), )*
                })
            }
        }

        #[cfg(feature = "json")]
        impl $crate::json::MessageOwned for $owned {
            type Borrowed<$life> = $name<$life>;

            const SCHEMA: &'static [$crate::schema::MessageSchema] = $name::SCHEMA;

            fn from_json(
                kind: u16,
                object: $crate::json::Fields<'_>,
            ) -> Result<Option<Self>, $crate::json::JsonError> {
                match kind {
                    $( $kind => <$mirror as $crate::json::Owned>::from_json(object)
                        .map(|message| Some(Self::$variant(message))), )*
                    _ => Ok(None),
                }
            }
        }

        #[cfg(feature = "json")]
        impl $crate::json::ToJson for $name<'_> {
            fn put_json<M: serde::ser::SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
                match self {
                    $( Self::$variant(message) => $crate::json::PutJson::put_fields(message, map), )*
                }
            }

            fn json_name(&self) -> &'static str {
                self.name()
            }
        }
    };
}
