//! `spec.source` and `spec.sources`.

use super::refuse;
use crate::application::raw::{RawDirectory, RawJsonnet, RawSource};
use crate::application::{Directory, Source, SpecError};

/// The one source of an application: `source`, or `sources` with one element. `None` with an error in
/// `errors`, but for `hydrated`: there the error is already said.
pub(super) fn one(
    source: Option<RawSource>,
    mut sources: Vec<RawSource>,
    hydrated: bool,
    errors: &mut Vec<SpecError>,
) -> Option<Source> {
    if source.is_some() && !sources.is_empty() {
        errors.push(SpecError::new("spec", "source and sources are both given; give one of them"));
        return None;
    }
    if sources.len() > 1 {
        let count = sources.len();
        errors.push(SpecError::new(
            "spec.sources",
            format!("spec.sources with {count} elements is not supported by this version; one is"),
        ));
        return None;
    }
    let (raw, field) = match (source, sources.pop()) {
        (Some(source), _) => (source, "spec.source"),
        (None, Some(source)) => (source, "spec.sources[0]"),
        (None, None) => {
            if !hydrated {
                errors.push(SpecError::new("spec.source", "is missing"));
            }
            return None;
        }
    };
    Some(check(raw, field, errors))
}

fn check(raw: RawSource, field: &str, errors: &mut Vec<SpecError>) -> Source {
    let RawSource {
        repo_url,
        path,
        target_revision,
        helm,
        kustomize,
        directory,
        plugin,
        chart,
        reference,
        name,
        tag_prefix,
    } = raw;
    let filled = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    refuse(helm.is_some(), &format!("{field}.helm"), errors);
    refuse(kustomize.is_some(), &format!("{field}.kustomize"), errors);
    refuse(plugin.is_some(), &format!("{field}.plugin"), errors);
    refuse(filled(&chart), &format!("{field}.chart"), errors);
    refuse(filled(&reference), &format!("{field}.ref"), errors);
    refuse(filled(&tag_prefix), &format!("{field}.tagPrefix"), errors);
    let mut report =
        |name: &str, message: String| errors.push(SpecError::new(format!("{field}.{name}"), message));

    let repo_url = repo_url.unwrap_or_default();
    if let Err(message) = check_url(&repo_url) {
        report("repoURL", message);
    }
    let target_revision =
        target_revision.filter(|text| !text.is_empty()).unwrap_or_else(|| "HEAD".to_owned());
    if let Err(message) = check_revision(&target_revision) {
        report("targetRevision", message);
    }
    // A chart, a ref and a helm repository need no path; those are refused above, with a better message.
    let path = match path.filter(|path| !path.is_empty()) {
        Some(path) => normal_path(&path).unwrap_or_else(|message| {
            report("path", message);
            ".".to_owned()
        }),
        None => {
            if !filled(&chart) && !filled(&reference) {
                report("path", "is missing (`.` is the root of the repository)".to_owned());
            }
            ".".to_owned()
        }
    };
    let directory = check_directory(directory.unwrap_or_default(), field, errors);
    Source { repo_url, target_revision, path, directory, name: name.filter(|name| !name.is_empty()) }
}

/// Only what the git client can fetch; a message never repeats a password.
fn check_url(url: &str) -> Result<(), String> {
    if url.is_empty() {
        return Err("is missing".to_owned());
    }
    let rest = match url.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => rest,
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("http") => {
            return Err(
                "is http://: what is pulled in clear text can be changed on its way; use https://".to_owned()
            );
        }
        Some((scheme, _)) => {
            return Err(format!("{scheme}:// repositories are not supported by this version; use https://"));
        }
        None => return Err("is not a URL; write it like https://git.example/team/repo.git".to_owned()),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if user.contains(':') {
        return Err(
            "holds a password; take it out and set passwordFile for this URL under repositories in the configuration"
                .to_owned(),
        );
    }
    if host.is_empty() || host.starts_with(':') || url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("is not a URL; write it like https://git.example/team/repo.git".to_owned());
    }
    Ok(())
}

/// What git allows in the name of a ref; a semver range is none and is refused by name.
fn check_revision(revision: &str) -> Result<(), String> {
    let range = revision.starts_with(['>', '<', '=', '^', '~', '!'])
        || revision.contains('*')
        || revision.contains("||")
        || is_x_range(revision);
    if range {
        return Err(format!(
            "`{revision}` is a range of versions, which is not supported by this version; name a branch, tag or commit"
        ));
    }
    let wrong = revision.chars().any(|c| c.is_whitespace() || c.is_control() || "~^:?[\\".contains(c))
        || revision.contains("..")
        || revision.contains("@{")
        || revision.starts_with(['-', '/'])
        || revision.ends_with(['/', '.'])
        || revision.strip_suffix(".lock").is_some();
    if wrong {
        return Err(format!("`{revision}` cannot be a branch, tag or commit"));
    }
    Ok(())
}

/// `1.x`, `v1.2.X`: numbers and at least one x.
fn is_x_range(text: &str) -> bool {
    let text = text.strip_prefix('v').unwrap_or(text);
    let is_x = |part: &str| part == "x" || part == "X";
    let mut parts = text.split('.');
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.next().is_some_and(number)
        && text.split('.').all(|part| number(part) || is_x(part))
        && text.split('.').any(is_x)
}

/// The folder without `.` parts and doubled or trailing slashes; `.` for the root.
fn normal_path(path: &str) -> Result<String, String> {
    if path.starts_with('/') {
        return Err(format!("`{path}` is absolute; it must be relative to the root of the repository"));
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err(format!("`{path}` has `..`; it must stay inside the repository"));
    }
    Ok(if parts.is_empty() { ".".to_owned() } else { parts.join("/") })
}

fn check_directory(raw: RawDirectory, field: &str, errors: &mut Vec<SpecError>) -> Directory {
    let RawDirectory { recurse, include, exclude, disable_extension_filter, jsonnet } = raw;
    // Argo CD's own tools write `jsonnet: {}` into every directory source: it asks for nothing.
    let RawJsonnet { ext_vars, tlas, libs } = jsonnet.unwrap_or_default();
    let field = format!("{field}.directory.jsonnet");
    refuse(ext_vars.is_some_and(|list| !list.is_empty()), &format!("{field}.extVars"), errors);
    refuse(tlas.is_some_and(|list| !list.is_empty()), &format!("{field}.tlas"), errors);
    refuse(libs.is_some_and(|list| !list.is_empty()), &format!("{field}.libs"), errors);
    Directory {
        recurse: recurse.unwrap_or(false),
        include: include.unwrap_or_default(),
        exclude: exclude.unwrap_or_default(),
        extension_filter: !disable_extension_filter.unwrap_or(false),
    }
}
