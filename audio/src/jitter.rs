//! Jitter buffer: order, gaps, late packets.
