//! What a handler's result becomes, without a process; the rest is in tests/it/capabilities.

use ::std::collections::BTreeSet;

use serde_json::json;

use super::*;

#[test]
fn errors_of_a_file_have_their_place() {
    let error = |line, column| ProgramError { message: "no".to_owned(), line, column };
    assert_eq!(placed(&error(Some(3), Some(7)), Ended::Failed), "line 3, column 7: no");
    assert_eq!(placed(&error(Some(3), None), Ended::Failed), "line 3: no");
    assert!(placed(&error(None, None), Ended::TimedOut).starts_with("it did not end (no)"));
}

#[tokio::test]
async fn a_file_that_is_too_large_is_refused_before_a_process_is_started() {
    let sandbox = Sandbox::new(::std::path::Path::new("/nowhere"));
    let long = "x".repeat(super::super::TYPESCRIPT_BYTES_MAX + 1);
    let error = read(&sandbox, &long, Language::TypeScript).await.map(|_| BTreeSet::<u8>::new()).unwrap_err();
    assert!(error.contains("262144 are the maximum"), "{error}");
    assert!(read(&sandbox, "x", Language::JavaScript).await.is_err());
    let outcome = Nothing.call("@lorgnette/std", "fs.list", json!({})).await.unwrap_err();
    assert!(outcome.message.contains("handlers only"), "{outcome:?}");
}
