//! Tests of the built-ins.
