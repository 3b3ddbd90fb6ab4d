//! Model files: catalogue, fetching by package name, verification, conversion.
