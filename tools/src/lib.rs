//! What a model may call: definitions, registry, executor, built-ins.
