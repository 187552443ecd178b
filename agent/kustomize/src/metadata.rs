//! `buildMetadata`: annotations that tell where an object came from and what changed it.

use std::fmt::Write as _;

use crate::encode;
use crate::error::Step;
use crate::load::clean;
use crate::node::Node;
use crate::read;
use crate::remote;
use crate::resmap::ResMap;
use crate::resource::Resource;

pub(crate) const ORIGIN: &str = "config.kubernetes.io/origin";
pub(crate) const TRANSFORMATIONS: &str = "alpha.config.kubernetes.io/transformations";

/// Where something came from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Origin {
    path: String,
    repo: String,
    reference: String,
    configured_in: String,
    /// apiVersion, kind, name, namespace of a generator or transformer.
    configured_by: [String; 4],
}

impl Origin {
    /// The origin of something that this one names by a path.
    pub(crate) fn append(&self, path: &str) -> Self {
        let mut origin = self.clone();
        let mut path = path.to_owned();
        if let Some(remote) = remote::repository(&path) {
            origin.repo = remote.url;
            origin.reference = remote.reference;
            origin.path = String::new();
            path = remote.subpath;
        }
        origin.path = join(&origin.path, &path);
        origin
    }

    /// The origin of what a built-in generator or transformer of a kustomization does.
    pub(crate) fn of_builtin(&self, file: &str, kind: &str) -> Self {
        Self {
            repo: self.repo.clone(),
            reference: self.reference.clone(),
            configured_in: join(&self.path, file),
            configured_by: ["builtin".to_owned(), kind.to_owned(), String::new(), String::new()],
            ..Self::default()
        }
    }

    /// The origin of what a plugin does.
    pub(crate) fn of_plugin(plugin: &Resource) -> Option<Self> {
        let own = Self::read(plugin)?;
        let by = [plugin.api_version(), plugin.kind(), plugin.name(), plugin.namespace()];
        Some(Self {
            path: String::new(),
            repo: own.repo,
            reference: own.reference,
            configured_in: own.path,
            configured_by: by.map(str::to_owned),
        })
    }

    fn read(resource: &Resource) -> Option<Self> {
        let node = read::text(resource.annotation(ORIGIN)?)?;
        let text = |name: &str| node.get(name).map_or("", Node::value).to_owned();
        let by = node.get("configuredBy");
        let by_text = |name: &str| by.and_then(|by| by.get(name)).map_or("", Node::value).to_owned();
        Some(Self {
            path: text("path"),
            repo: text("repo"),
            reference: text("ref"),
            configured_in: text("configuredIn"),
            configured_by: ["apiVersion", "kind", "name", "namespace"].map(by_text),
        })
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut put = |name: &str, value: &str| {
            if !value.is_empty() {
                let value = encode::to_string(&Node::string(value));
                lines.push(format!("{name}: {}", value.trim_end_matches('\n')));
            }
        };
        put("path", &self.path);
        put("repo", &self.repo);
        put("ref", &self.reference);
        put("configuredIn", &self.configured_in);
        if self.configured_by.iter().any(|part| !part.is_empty()) {
            lines.push("configuredBy:".to_owned());
            let mut put = |name: &str, value: &str| {
                if !value.is_empty() {
                    let value = encode::to_string(&Node::string(value));
                    lines.push(format!("  {name}: {}", value.trim_end_matches('\n')));
                }
            };
            for (name, value) in ["apiVersion", "kind", "name", "namespace"].iter().zip(&self.configured_by) {
                put(name, value);
            }
        }
        lines
    }

    /// As the annotation has it.
    pub(crate) fn text(&self) -> String {
        let mut text = self.lines().join("\n");
        if text.is_empty() {
            text.push_str("{}");
        }
        text.push('\n');
        text
    }
}

fn join(folder: &str, path: &str) -> String {
    // Above the start of the build the dots stay: there is no name for it.
    let joined = if folder.is_empty() { path.to_owned() } else { format!("{folder}/{path}") };
    clean("", &joined).unwrap_or_else(|| collapse(&joined))
}

fn collapse(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Sets the origin of objects that have none.
pub(crate) fn set_origin(resources: &mut [Resource], origin: &Origin) -> Step<()> {
    for resource in resources.iter_mut().filter(|resource| resource.annotation(ORIGIN).is_none()) {
        put(resource, ORIGIN, &origin.text())?;
    }
    Ok(())
}

/// Records a transformation of all objects; those without an origin were made by it.
pub(crate) fn add_transformation(map: &mut ResMap, origin: &Origin) -> Step<()> {
    for resource in &mut map.list {
        if resource.annotation(ORIGIN).is_none() {
            put(resource, ORIGIN, &origin.text())?;
            continue;
        }
        let known = resource.annotation(TRANSFORMATIONS).unwrap_or_default().to_owned();
        let mut text = if known.trim() == "[]" { String::new() } else { known };
        let lines = origin.lines();
        let mut lines = lines.iter();
        let _ = writeln!(text, "- {}", lines.next().map_or("{}", String::as_str));
        for line in lines {
            let _ = writeln!(text, "  {line}");
        }
        put(resource, TRANSFORMATIONS, &text)?;
    }
    Ok(())
}

fn put(resource: &mut Resource, name: &str, text: &str) -> Step<()> {
    let mut annotations = resource.annotations();
    annotations.insert(name.to_owned(), text.to_owned());
    resource.set_annotations(&annotations)
}

/// Removes an annotation of these from all objects; all their annotations are strings afterwards.
pub(crate) fn remove(map: &mut ResMap, name: &str) -> Step<()> {
    for resource in &mut map.list {
        let mut annotations = resource.annotations();
        annotations.remove(name);
        resource.set_annotations(&annotations)?;
    }
    Ok(())
}
