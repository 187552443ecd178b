//! Streams: encoding, kubectl's separators, JSON.

use crate::builder::Builder;
use crate::compose::{self, Rest};
use crate::error::Error;
use crate::json;
use crate::node::{Limits, Node, NodeKind, Style};
use crate::resolve::{self, Resolver};

/// One document of a stream that holds something.
#[derive(Debug, Clone)]
pub struct Document {
    /// Its content.
    pub root: Node,
    /// Line of its first content, counted from 1.
    pub line: u32,
    /// Its number among the documents that hold something, counted from 1.
    pub index: usize,
}

/// The documents of a stream, as kubectl splits it: at lines that begin with `---`, after which only white space
/// or a comment may follow. A stream whose first character is `{` may be JSON objects, one after another.
/// Documents of comments only, empty ones and `null` are left out.
///
/// # Errors
/// Syntax, encoding, control characters and limits, each with line and column.
pub fn documents(text: &[u8], limits: &Limits) -> Result<Vec<Document>, Error> {
    documents_as(text, Resolver::V2, limits)
}

/// As [`documents`]; with [`Resolver::V3`] as kustomize splits a stream: a `---` may begin a document on its line where
/// it opens the file, and `{` has no meaning of its own.
///
/// # Errors
/// As [`documents`].
pub fn documents_as(text: &[u8], resolver: Resolver, limits: &Limits) -> Result<Vec<Document>, Error> {
    let text = decode(text, limits)?;
    if resolver == Resolver::V3 {
        return yaml_stream(text, resolver, limits);
    }
    let mut json_error = None;
    if text.trim_start().starts_with('{') {
        // As kubectl: what does not read as JSON may still be a YAML flow mapping, unless two objects were read.
        match json_stream(text, limits) {
            Ok(documents) => return Ok(documents),
            Err((error, read)) if read > 1 => return Err(error),
            Err((error, read)) => json_error = Some((error, read)),
        }
    }
    yaml_stream(text, resolver, limits).map_err(|error| match json_error {
        // The file is JSON by its looks (`{"` or after a first object): the JSON error tells more.
        Some((json, read)) if read == 1 || looks_like_json(text) => json,
        _ => error,
    })
}

fn looks_like_json(text: &str) -> bool {
    text.trim_start().strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with('"'))
}

fn json_stream(text: &str, limits: &Limits) -> Result<Vec<Document>, (Error, usize)> {
    let mut builder = Builder::new(limits);
    let mut reader = json::Reader::new(text);
    let mut documents = Vec::new();
    let mut read = 0;
    while let Some(root) = reader.next_value(&mut builder).map_err(|error| (error, read))? {
        read += 1;
        push(&mut documents, root, limits).map_err(|error| (error, 2))?;
    }
    Ok(documents)
}

fn yaml_stream(text: &str, resolver: Resolver, limits: &Limits) -> Result<Vec<Document>, Error> {
    check_characters(text)?;
    let mut builder = Builder::new(limits);
    let mut documents = Vec::new();
    for (chunk, first_line) in chunks(text, resolver)? {
        // go-yaml skips a mark at the start of each document: files put together with `cat` have several.
        let chunk = chunk.strip_prefix('\u{feff}').unwrap_or(chunk);
        if let Some(root) = compose::document(chunk, first_line, Rest::Nothing, &mut builder)? {
            push(&mut documents, root, limits)?;
        }
    }
    Ok(documents)
}

/// The first document of a text, and nothing behind it: how go-yaml's Unmarshal reads values files and what `fromYaml`
/// is given. None where there is only white space and comments.
///
/// # Errors
/// As [`documents`].
pub fn document(text: &[u8], limits: &Limits) -> Result<Option<Node>, Error> {
    let text = decode(text, limits)?;
    check_characters(text)?;
    compose::document(text, 1, Rest::Unread, &mut Builder::new(limits))
}

fn push(documents: &mut Vec<Document>, root: Node, limits: &Limits) -> Result<(), Error> {
    if is_null(&root) {
        return Ok(());
    }
    if documents.len() >= limits.max_documents {
        let message = format!("more than {} documents; split the file", limits.max_documents);
        return Err(Error::syntax(root.span.line, root.span.column, message));
    }
    documents.push(Document { line: root.span.line, index: documents.len() + 1, root });
    Ok(())
}

fn is_null(node: &Node) -> bool {
    let NodeKind::Scalar(text) = &node.kind else { return false };
    match node.tag.as_deref() {
        None => node.style == Style::Plain && resolve::is_null_text(text),
        tag => tag == Some("!!null") && resolve::is_null_text(text),
    }
}

/// The parts between separators, each with the line on which it begins.
///
/// kustomize looks for `\n---...\n`: a `---` on the first line of a part belongs to the part, where it opens the
/// document.
fn chunks(text: &str, resolver: Resolver) -> Result<Vec<(&str, u32)>, Error> {
    let mut chunks = Vec::new();
    let (mut start, mut first_line, mut at) = (0, 1, 0);
    for (number, line) in (1_u32..).zip(text.split_inclusive('\n')) {
        let opens = resolver == Resolver::V3 && at == start;
        if let Some(rest) = line.strip_prefix("---")
            && !opens
        {
            let rest = rest.trim();
            if !rest.is_empty() && !rest.starts_with('#') {
                return Err(Error::syntax(
                    number,
                    4,
                    "after the separator `---` kubectl takes only a comment; put the text on the next line",
                ));
            }
            chunks.push((&text[start..at], first_line));
            start = at + line.len();
            first_line = number.saturating_add(1);
        }
        at += line.len();
    }
    chunks.push((&text[start..], first_line));
    Ok(chunks)
}

fn decode<'t>(bytes: &'t [u8], limits: &Limits) -> Result<&'t str, Error> {
    if bytes.len() > limits.max_bytes {
        let message =
            format!("{} bytes, but at most {} are read; split the file", bytes.len(), limits.max_bytes);
        return Err(Error::syntax(0, 0, message));
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(Error::syntax(1, 1, "the file is UTF-16; save it as UTF-8"));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let (line, column) = end_of(&good);
        Error::syntax(line, column, "the text is not UTF-8 here; save the file as UTF-8")
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// Line and column of the character that follows `text`.
fn end_of(text: &str) -> (u32, u32) {
    let line = text.matches('\n').count() + 1;
    let column = text.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}

/// The characters that go-yaml's reader refuses.
fn check_characters(text: &str) -> Result<(), Error> {
    let refused = |c: char| {
        matches!(c, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{84}'
            | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}')
    };
    match text.char_indices().find(|(_, c)| refused(*c)) {
        None => Ok(()),
        Some((at, c)) => {
            let (line, column) = end_of(&text[..at]);
            let message = format!(
                "the control character U+{:04X} is not allowed; write it as an escape in double quotes",
                c as u32
            );
            Err(Error::syntax(line, column, message))
        }
    }
}
