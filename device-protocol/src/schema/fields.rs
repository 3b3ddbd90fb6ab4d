//! Each field type in Rust, on the wire, in tables and in JSON.

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
        $value.put($writer, $max)?
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
        $crate::List::get($reader, $max)?
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

#[cfg(feature = "json")]
macro_rules! field_owned_type {
    (text [$max:expr]) => { alloc::string::String };
    (bytes [$max:expr]) => { alloc::vec::Vec<u8> };
    (array [$count:expr]) => { [u8; $count] };
    (record [$type:ty]) => { $type };
    (record [$type:ty, $owned:ident]) => { $owned };
    (option [$type:ty]) => { Option<$type> };
    (option [$type:ty, $owned:ident]) => { Option<$owned> };
    (list [$type:ty, $owned:ident, $max:expr]) => { $crate::json::ListOwned<$owned> };
    ($type:ident) => { $type };
}

#[cfg(feature = "json")]
macro_rules! field_to_borrowed {
    ($value:expr, text [$max:expr]) => {
        &$value
    };
    ($value:expr, bytes [$max:expr]) => {
        &$value
    };
    ($value:expr, array [$count:expr]) => {
        $value
    };
    ($value:expr, record [$($rest:tt)*]) => {
        $crate::json::Owned::to_borrowed(&$value)
    };
    ($value:expr, option [$($rest:tt)*]) => {
        $value.as_ref().map($crate::json::Owned::to_borrowed)
    };
    ($value:expr, list [$($rest:tt)*]) => {
        $value.to_borrowed()
    };
    ($value:expr, $type:ident) => {
        $value
    };
}

#[cfg(feature = "json")]
macro_rules! field_from_borrowed {
    ($value:expr, text [$max:expr]) => {
        $value.into()
    };
    ($value:expr, bytes [$max:expr]) => {
        $value.into()
    };
    ($value:expr, array [$count:expr]) => {
        $value
    };
    ($value:expr, record [$($rest:tt)*]) => {
        $crate::json::Owned::from_borrowed(&$value)?
    };
    ($value:expr, option [$($rest:tt)*]) => {
        $value.as_ref().map($crate::json::Owned::from_borrowed).transpose()?
    };
    ($value:expr, list [$type:ty, $owned:ident, $max:expr]) => {
        $crate::json::ListOwned::<$owned>::from_borrowed(&$value)?
    };
    ($value:expr, $type:ident) => {
        $value
    };
}

#[cfg(feature = "json")]
macro_rules! field_to_json {
    ($value:expr, text [$max:expr]) => {
        &$value
    };
    ($value:expr, bytes [$max:expr]) => {
        &$crate::json::Base64($value)
    };
    ($value:expr, array [$count:expr]) => {
        &$crate::json::Base64(&$value)
    };
    ($value:expr, record [$($rest:tt)*]) => {
        &$crate::json::Object(&$value)
    };
    ($value:expr, option [$($rest:tt)*]) => {
        &$value.as_ref().map($crate::json::Object)
    };
    ($value:expr, list [$($rest:tt)*]) => {
        &$crate::json::Array($value)
    };
    ($value:expr, $type:ident) => {
        &$value
    };
}

#[cfg(feature = "json")]
macro_rules! field_from_json {
    ($place:expr, text [$max:expr]) => {
        $place.text($max)?
    };
    ($place:expr, bytes [$max:expr]) => {
        $place.bytes($max)?
    };
    ($place:expr, array [$count:expr]) => {
        $place.array()?
    };
    ($place:expr, record [$($rest:tt)*]) => {
        $place.record()?
    };
    ($place:expr, option [$($rest:tt)*]) => {
        $place.option()?
    };
    ($place:expr, list [$type:ty, $owned:ident, $max:expr]) => {
        $place.list($max)?
    };
    ($place:expr, $type:ident) => {
        $crate::json::FromJson::from_json($place)?
    };
}

#[cfg(feature = "json")]
#[allow(unused_macros)] // version 1 has no appended field yet; the tests have
macro_rules! field_default_owned {
    ($default:expr, text [$max:expr]) => {
        $default.into()
    };
    ($default:expr, bytes [$max:expr]) => {
        $default.into()
    };
    ($default:expr, $kind:ident $([$($arg:tt)*])?) => {
        $default
    };
}
