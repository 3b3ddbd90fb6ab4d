//! Mini-apps: their life, their sockets, what they hear and draw.
