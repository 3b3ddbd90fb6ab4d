//! Speech synthesis: Hibari, with its text front end.
