//! TypeScript without its types. They become spaces, so that every position stays as it is.

use std::sync::{Arc, Mutex, PoisonError};

use swc_common::{
    BytePos, GLOBALS, Globals, SourceMap,
    errors::{DiagnosticBuilder, Emitter, Handler},
    sync::Lrc,
};
use swc_ecma_parser::TsSyntax;
use swc_ts_fast_strip::{Mode, Options, operate};

use crate::{
    failure::{PROGRAM, failure},
    protocol::{Failure, FailureKind},
};

/// What the parser says, and where.
type Complaint = (String, Option<BytePos>);

/// The first complaint of the parser.
#[derive(Clone, Default)]
struct First(Arc<Mutex<Option<Complaint>>>);

impl Emitter for First {
    fn emit(&mut self, diagnostic: &mut DiagnosticBuilder<'_>) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if first.is_none() {
            let span = diagnostic.span.primary_span();
            *first = Some((diagnostic.message(), span.map(|span| span.lo)));
        }
    }
}

/// JavaScript of a program in TypeScript or JavaScript.
pub fn strip(source: &str) -> Result<String, Failure> {
    let map: Lrc<SourceMap> = Lrc::default();
    let first = First::default();
    let handler = Handler::with_emitter(false, false, Box::new(first.clone()));
    let options = Options {
        module: Some(true),
        filename: Some(PROGRAM.to_owned()),
        parser: TsSyntax::default(),
        mode: Mode::StripOnly,
        transform: None,
        deprecated_ts_module_as_error: Some(true),
        source_map: false,
    };
    let stripped = GLOBALS.set(&Globals::new(), || operate(&map, &handler, source.to_owned(), options));
    let error = match stripped {
        Ok(output) => return Ok(output.code),
        Err(error) => error,
    };
    let complaint = first.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some((message, at)) = complaint else {
        return Err(failure(FailureKind::Error, &format!("SyntaxError: {}", error.message)));
    };
    let mut failure = failure(FailureKind::Error, &format!("SyntaxError: {message}"));
    if let Some(place) = at.and_then(|at| map.try_lookup_char_pos(at).ok()) {
        failure.line = u32::try_from(place.line).ok();
        failure.column = u32::try_from(place.col.0 + 1).ok();
    }
    Err(failure)
}

/// Strips a small program, so that what the parser needs once is there before the first program arrives.
pub fn warm_up() -> bool {
    strip("interface A { b?: string }\nexport default async (a: A) => `${a.b as string}`;").is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_become_spaces() {
        let source = "interface A { b: number }\nconst a: A = { b: 1 } satisfies A;\nexport default a.b as number;\n";
        let stripped = strip(source).unwrap();
        assert_eq!(stripped.len(), source.len());
        let places = |text: &str| text.lines().map(|line| line.find("a.b")).collect::<Vec<_>>();
        assert_eq!(places(&stripped), places(source));
        assert!(!stripped.contains("interface") && !stripped.contains("satisfies"));
    }

    #[test]
    fn mistakes_have_their_place() {
        let error = strip("const a = 1;\nconst b = ;\n").unwrap_err();
        assert_eq!((error.line, error.column), (Some(2), Some(11)), "{error:?}");
        assert!(error.message.starts_with("SyntaxError: "), "{error:?}");
        let error = strip("enum A { B }\n").unwrap_err();
        assert!(error.message.contains("enum"), "{error:?}");
        assert_eq!(error.line, Some(1));
    }

    #[test]
    fn it_warms_up() {
        assert!(warm_up());
    }
}
