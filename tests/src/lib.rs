//! The whole system: simulated world, end-to-end, foreign clients, tidy.
