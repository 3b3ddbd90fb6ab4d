//! What a program's author is told about an exception: its words, and where in the program it happened.

use rquickjs::{Ctx, Exception, FromJs as _, Value};

use crate::protocol::{Failure, FailureKind, MEMORY_BYTES_MAX, MESSAGE_BYTES_MAX, beginning};

/// Name of the program in positions.
pub const PROGRAM: &str = "program.ts";

/// A failure without a position.
pub fn failure(kind: FailureKind, message: &str) -> Failure {
    Failure { message: beginning(message, MESSAGE_BYTES_MAX).to_owned(), line: None, column: None, kind }
}

/// The sandbox itself failed.
pub fn internal(error: impl std::fmt::Display) -> Failure {
    failure(FailureKind::Internal, &format!("the sandbox failed: {error}"))
}

/// What was thrown. Reading it may run the program's code, within its time.
pub fn thrown<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Failure {
    let Some(exception) = value.as_object().cloned().and_then(Exception::from_object) else {
        // An engine without memory for an error throws null.
        if value.is_null() {
            return out_of_memory();
        }
        let text = words(ctx, value).unwrap_or_else(|| "something that is no text".to_owned());
        return failure(FailureKind::Error, &format!("the program threw {text}"));
    };
    let object = exception.as_object();
    let get = |name: &str| match object.get::<_, Value<'js>>(name) {
        Ok(value) => Some(value),
        Err(_) => {
            ctx.catch();
            None
        }
    };
    let field = |name: &str| get(name).and_then(|value| words(ctx, value));
    let name = field("name").unwrap_or_else(|| "Error".to_owned());
    let message = field("message").unwrap_or_default();
    if name == "InternalError" && message == "out of memory" {
        return out_of_memory();
    }
    let code = get("code").filter(Value::is_string).and_then(|code| words(ctx, code));
    let mut text = format!("{name}: {message}");
    if let Some(code) = code {
        text.push_str(&format!(" ({code})"));
    }
    let mut failure = failure(FailureKind::Error, &text);
    if let Some((line, column)) = field("stack").as_deref().and_then(position) {
        (failure.line, failure.column) = (Some(line), Some(column));
    }
    failure
}

fn out_of_memory() -> Failure {
    let mib = MEMORY_BYTES_MAX / (1024 * 1024);
    failure(
        FailureKind::OutOfMemory,
        &format!("the program ran out of memory: {mib} MiB are the maximum, work on less at a time"),
    )
}

/// A value as text, if it is primitive.
fn words<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Option<String> {
    if value.is_object() || value.is_undefined() {
        return None;
    }
    let text = rquickjs::Coerced::<String>::from_js(ctx, value);
    if text.is_err() {
        ctx.catch();
    }
    text.ok().map(|text| text.0)
}

/// The first place of a stack that is in the program itself.
fn position(stack: &str) -> Option<(u32, u32)> {
    let (_, rest) = stack.split_once(PROGRAM)?;
    let mut numbers = rest.strip_prefix(':')?.split(|letter: char| !letter.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::position;

    #[test]
    fn the_first_place_in_the_program_counts() {
        let stack = "    at call (bridge:1:2)\n    at f (program.ts:3:14)\n    at <anonymous> (program.ts:9:1)\n";
        assert_eq!(position(stack), Some((3, 14)));
        assert_eq!(position("    at program.ts:7:1\n"), Some((7, 1)));
        assert_eq!(position("    at call (bridge:1:2)\n"), None);
        assert_eq!(position("program.ts"), None);
        assert_eq!(position("program.ts:99999999999999999999:1"), None);
    }
}
