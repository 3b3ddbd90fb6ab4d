//! Tests of device offers.
