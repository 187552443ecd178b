//! The directory source: which files count, in which order.

use globset::{GlobBuilder, GlobMatcher};
use pintle_model::{Problem, limits};

use crate::manifest;
use crate::tree::SourceTree;
use crate::{DirectoryParams, RenderError, Rendered};

/// Argo CD's mark that takes a file out of rendering.
const SKIP_MARK: &[u8] = b"+argocd:skip-file-rendering";

pub(crate) fn render(
    tree: &SourceTree,
    path: &str,
    parameters: &DirectoryParams,
) -> Result<Rendered, RenderError> {
    let path = path.trim_matches('/');
    let path = if path == "." { "" } else { path };
    if !tree.exists(path) {
        return Err(RenderError(format!("path {path:?} does not exist in the source")));
    }
    let include = parameters.include.as_deref().map(|glob| matcher("include", glob)).transpose()?;
    let exclude = parameters.exclude.as_deref().map(|glob| matcher("exclude", glob)).transpose()?;
    let mut rendered = Rendered::default();
    let mut bytes = 0;
    for file in tree.walk(path).map_err(|error| RenderError(error.to_string()))? {
        let below = file.strip_prefix(path).unwrap_or(&file).trim_start_matches('/');
        let below = if below.is_empty() { file.rsplit('/').next().unwrap_or(&file) } else { below };
        if !parameters.recurse && below.contains('/') {
            continue;
        }
        if exclude.as_ref().is_some_and(|glob| glob.is_match(below)) {
            continue;
        }
        if include.as_ref().is_some_and(|glob| !glob.is_match(below)) {
            continue;
        }
        if !counts(&file, parameters.extension_filter)? {
            continue;
        }
        let content = tree.read(&file).map_err(|error| RenderError(error.to_string()))?;
        let Some(content) = content else { continue };
        if has_skip_mark(&content) {
            continue;
        }
        bytes += content.len();
        if bytes > limits::DIRECTORY_MAX_BYTES {
            return Err(RenderError(format!(
                "the manifests below {path:?} have more than {} bytes together; split the application",
                limits::DIRECTORY_MAX_BYTES
            )));
        }
        manifest::read(&file, &content, parameters.strict, &mut rendered)?;
    }
    Ok(rendered)
}

/// gobwas globs without separators, as Argo CD uses them: `*` matches `/` too, `{a,b}` is a choice.
fn matcher(field: &str, glob: &str) -> Result<GlobMatcher, RenderError> {
    GlobBuilder::new(glob)
        .literal_separator(false)
        .backslash_escape(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| RenderError(format!("directory.{field} {glob:?} is no glob: {}", error.kind())))
}

fn counts(file: &str, filter: bool) -> Result<bool, RenderError> {
    let lower = file.to_lowercase();
    if lower.ends_with(".jsonnet") {
        return Err(RenderError(format!(
            "{file}: Jsonnet is not supported by this version; leave it out with directory.exclude"
        )));
    }
    Ok(!filter || [".yaml", ".yml", ".json"].iter().any(|ending| lower.ends_with(ending)))
}

fn has_skip_mark(content: &[u8]) -> bool {
    content
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.trim_ascii_start().strip_prefix(b"#"))
        .any(|comment| comment.trim_ascii() == SKIP_MARK)
}

/// A warning with its place.
pub(crate) fn warning(file: &str, line: u32, message: &str) -> Problem {
    Problem::new(pintle_model::Reason::RenderError, format!("{file}:{line}: {message}"))
}
