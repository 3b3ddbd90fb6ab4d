//! Message declarations: one declaration gives the struct, its wire form, its table of fields and its owned form.
//!
//! A field is `name: type`, with `type` one of `u8 u16 u32 u64 i16 i32 bool`, an open enumeration or set of
//! [`crate::values`], `text[max]`, `bytes[max]`, `array[n]`, `record[Type]`, `option[Type]` (of a record) or
//! `list[Type, max]`. A field that a later version appends to a message has `= default`: bodies of older firmware end
//! before it, and it then takes that default.

/// One field of a message, for tables and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name, the same in Rust, in JSON and in PROTOCOL.md.
    pub name: &'static str,
    /// Wire type as declared, such as `u32`, `text` or `record Capabilities`.
    pub wire: &'static str,
    /// Maximum in bytes (text, bytes) or items (list); 0 for other types.
    pub max: usize,
    /// True if older firmware does not send it.
    pub appended: bool,
}

/// One message, for tables and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageSchema {
    /// Kind in the envelope.
    pub kind: u16,
    /// Name in the JSON form.
    pub name: &'static str,
    /// Fields in wire order, after the stamp.
    pub fields: &'static [Field],
}

#[macro_use]
mod fields;
#[macro_use]
mod message;
#[macro_use]
mod values;
#[macro_use]
mod direction;

/// One enumeration or set, for tables and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueSchema {
    /// Name of the type.
    pub name: &'static str,
    /// Wire type of the number or mask.
    pub wire: &'static str,
    /// Numbers (bits, for a set) and names of this version.
    pub names: &'static [(u32, &'static str)],
}

macro_rules! value_table {
    ($($name:ident: $wire:ident),* $(,)?) => {
        &[$( ValueSchema { name: stringify!($name), wire: stringify!($wire), names: crate::$name::NAMES } ),*]
    };
}

/// Every enumeration.
pub const ENUMERATIONS: &[ValueSchema] = value_table! {
    Codec: u8,
    DisplayKind: u8,
    ButtonId: u8,
    ButtonAction: u8,
    Gesture: u8,
    Posture: u8,
    LinkKind: u8,
    PlayState: u8,
    MicEnd: u8,
    Choice: u8,
    ListeningState: u8,
    DisplayAction: u8,
    View: u8,
    Layout: u8,
    ToolState: u8,
    Sound: u8,
    PairingMethod: u8,
    ChannelBinding: u8,
    WarningCode: u16,
    UpdateAnswer: u8,
    UpdateOutcome: u8,
    UpdateFailure: u8,
    RejectCode: u16,
    GoodbyeReason: u16,
};

/// Every set.
pub const SETS: &[ValueSchema] = value_table! {
    Codecs: u16,
    Buttons: u32,
    Sensors: u32,
    ToolFlags: u16,
};

/// Every nested record.
pub const RECORDS: &[(&str, &[Field])] = &[
    ("Capabilities", crate::up::Capabilities::FIELDS),
    ("Screen", crate::up::Screen::FIELDS),
    ("Resume", crate::up::Resume::FIELDS),
    ("ToolOffer", crate::up::ToolOffer::FIELDS),
    ("AudioFormat", crate::down::AudioFormat::FIELDS),
    ("Resumed", crate::down::Resumed::FIELDS),
    ("Continued", crate::down::Continued::FIELDS),
    ("Content", crate::down::Content::FIELDS),
    ("Bitmap", crate::down::Bitmap::FIELDS),
    ("Manifest", crate::firmware::Manifest::FIELDS),
];

#[cfg(test)]
mod tests;
