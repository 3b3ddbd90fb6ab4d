//! `fs`: the files of the user's workspace.

use serde::Deserialize;
use serde_json::{Value, json};

use super::values::{content, error, read, to_base64, unknown};
use crate::{
    code::HostError,
    workspace::{FileAnswer, FileEntry, FileError, FilePath, FileRequest, Workspace},
};

/// Bytes of a file that one call returns.
const READ_BYTES_MAX: usize = 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Path {
    path: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    path: String,
    #[serde(default)]
    offset: usize,
    length: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    path: String,
    text: Option<String>,
    bytes: Option<String>,
}

/// Carries out a function of `fs`.
pub(super) async fn call(
    workspace: &dyn Workspace,
    user: &str,
    name: &str,
    arguments: Value,
) -> Result<Value, HostError> {
    let function = format!("fs.{name}");
    let request = match name {
        "readFile" | "readBytes" => {
            let part: Part = read(&function, arguments)?;
            let FileAnswer::Content(content) = run(workspace, user, FileRequest::Read(parse(&part.path)?)).await?
            else {
                return Err(error("failed", "the workspace did not return the file's content"));
            };
            let content = part.of(&content)?;
            return if name == "readBytes" { Ok(to_base64(content).into()) } else { text(content, &part.path) };
        }
        "writeFile" | "appendFile" => {
            let Content { path, text, bytes } = read(&function, arguments)?;
            let (path, content) = (parse(&path)?, content(text, bytes)?);
            if name == "writeFile" { FileRequest::Write(path, content) } else { FileRequest::Append(path, content) }
        }
        "list" => FileRequest::List(path(&function, arguments)?),
        "stat" => FileRequest::Stat(path(&function, arguments)?),
        "remove" => FileRequest::Remove(path(&function, arguments)?),
        "mkdir" => FileRequest::MakeFolder(path(&function, arguments)?),
        _ => return Err(unknown(&function)),
    };
    Ok(match run(workspace, user, request).await? {
        FileAnswer::Entries(entries) => entries.into_iter().map(entry).collect(),
        FileAnswer::Entry(found) => entry(found),
        FileAnswer::Done | FileAnswer::Content(_) => Value::Null,
    })
}

impl Part {
    /// The bytes that are asked for.
    fn of<'a>(&self, content: &'a [u8]) -> Result<&'a [u8], HostError> {
        let rest = content.get(self.offset..).unwrap_or_default();
        let wanted = self.length.unwrap_or(rest.len()).min(rest.len());
        if wanted > READ_BYTES_MAX {
            let message = format!(
                "'{}' has {} bytes, a call returns at most {READ_BYTES_MAX}: read it in parts, with offset and length",
                self.path,
                content.len()
            );
            return Err(error("too_large", message));
        }
        Ok(rest.get(..wanted).unwrap_or(rest))
    }
}

/// Bytes as text. A part may end within a character, which is then left out.
fn text(content: &[u8], path: &str) -> Result<Value, HostError> {
    let text = match std::str::from_utf8(content) {
        Ok(text) => Some(text),
        Err(why) if why.error_len().is_none() => {
            std::str::from_utf8(content.get(..why.valid_up_to()).unwrap_or_default()).ok()
        }
        Err(_) => None,
    };
    let message = || format!("'{path}' is no text in UTF-8 at this place: use fs.readBytes");
    text.map(Value::from).ok_or_else(|| error("not_text", message()))
}

async fn run(workspace: &dyn Workspace, user: &str, request: FileRequest) -> Result<FileAnswer, HostError> {
    workspace.run(user, request).await.map_err(failed)
}

fn path(function: &str, arguments: Value) -> Result<FilePath, HostError> {
    let Path { path } = read(function, arguments)?;
    parse(&path)
}

fn parse(path: &str) -> Result<FilePath, HostError> {
    FilePath::parse(path).map_err(failed)
}

fn failed(failure: FileError) -> HostError {
    let code = match failure {
        FileError::Path(_) => "invalid_arguments",
        FileError::NotFound(_) => "not_found",
        FileError::Kind(_) => "wrong_kind",
        FileError::Full(_) => "full",
        FileError::Unavailable(_) => "unavailable",
        FileError::Failed(_) => "failed",
    };
    HostError { retryable: matches!(failure, FileError::Unavailable(_)), ..error(code, failure.to_string()) }
}

fn entry(entry: FileEntry) -> Value {
    let FileEntry { name, is_folder, bytes, modified_wall_ms } = entry;
    json!({"name": name, "isFolder": is_folder, "bytes": bytes, "modified": modified_wall_ms})
}
