//! Model providers: pure render and parse, one thin HTTP shell, the offline intent engine.
