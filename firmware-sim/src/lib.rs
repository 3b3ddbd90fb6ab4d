//! Glasses without glass: a simulator that shares no logic with the gateway.
