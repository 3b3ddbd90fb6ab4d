//! Sample-rate conversion.
