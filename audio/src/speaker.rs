//! Back half: clauses in, paced packets out.
