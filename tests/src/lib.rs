//! The whole house: simulated world, end-to-end, foreign clients, tidy.
