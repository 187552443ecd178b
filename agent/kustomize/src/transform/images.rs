//! Names, tags and digests of images.

use regex::Regex;

use crate::apply::apply;
use crate::config::FieldSpec;
use crate::error::Step;
use crate::kustfile::Image;
use crate::node::{Kind, Node, WrongKind};
use crate::resmap::ResMap;

/// Sets an image: in every list `containers` and `initContainers`, however deep, and in the configured fields.
pub(crate) fn set(map: &mut ResMap, image: &Image, specs: &[FieldSpec]) -> Step<()> {
    // A name that is no regular expression matches nothing.
    let Ok(pattern) = Regex::new(&format!(
        "^{}(:[a-zA-Z0-9_.{{}}-]*)?(@[a-zA-Z0-9]+([.+_-][a-zA-Z0-9]+)*:[a-zA-Z0-9_.{{}}-]*)?$",
        image.name
    )) else {
        return Ok(());
    };
    for at in 0..map.list.len() {
        let id = map.list[at].id(&map.schemas);
        let resource = &mut map.list[at];
        if resource.kind() == "CustomResourceDefinition" {
            continue;
        }
        let update = |node: &mut Node| update(node, image, &pattern);
        in_containers(&mut resource.node, &update).map_err(|error| format!("image in {id}: {error}"))?;
    }
    for at in 0..map.list.len() {
        let id = map.list[at].id(&map.schemas);
        let resource = &mut map.list[at];
        if resource.kind() == "CustomResourceDefinition" {
            continue;
        }
        for spec in specs {
            apply(&mut resource.node, spec, None, &mut |node| update(node, image, &pattern))
                .map_err(|error| format!("image in {id}: {error}"))?;
        }
    }
    map.drop_gone();
    Ok(())
}

fn in_containers(node: &mut Node, update: &dyn Fn(&mut Node) -> Step<()>) -> Step<()> {
    match node {
        Node::Scalar(_) => Ok(()),
        Node::Seq(items) => items.iter_mut().try_for_each(|item| in_containers(item, update)),
        Node::Map(entries) => {
            for (name, value) in entries {
                in_containers(value, update)?;
                let Node::Seq(items) = value else { continue };
                if !matches!(&**name, "containers" | "initContainers") {
                    continue;
                }
                for item in items {
                    if !item.is_null() && !matches!(item, Node::Map(_)) {
                        return Err(WrongKind::new(Kind::Map, item).into());
                    }
                    if let Some(image) = item.get_mut("image") {
                        update(image)?;
                    }
                }
            }
            Ok(())
        }
    }
}

fn update(node: &mut Node, image: &Image, pattern: &Regex) -> Step<()> {
    if !matches!(node, Node::Scalar(_)) {
        return Err(WrongKind::new(Kind::Scalar, node).into());
    }
    if !pattern.is_match(node.value()) {
        return Ok(());
    }
    let (name, mut tag, mut digest) = split(node.value());
    let mut name = if image.new_name.is_empty() { name } else { image.new_name.clone() };
    if !image.new_tag.is_empty() {
        tag.clone_from(&image.new_tag);
        digest.clone_from(&image.digest);
    } else if !image.digest.is_empty() {
        tag = String::new();
        digest.clone_from(&image.digest);
    } else if !image.tag_suffix.is_empty() {
        tag.push_str(&image.tag_suffix);
        digest = String::new();
    }
    if !tag.is_empty() {
        name = format!("{name}:{tag}");
    }
    if !digest.is_empty() {
        name = format!("{name}@{digest}");
    }
    Ok(node.set_scalar(Node::text(&name))?)
}

/// Name, tag and digest of a reference.
pub(crate) fn split(image: &str) -> (String, String, String) {
    // A colon before the first slash belongs to the registry's port.
    let start = image.find('/').filter(|at| *at > 0).unwrap_or(0);
    let rest = &image[start..];
    let at_sign = rest.find('@').map(|at| at + start);
    let colon = rest.find(':').map(|at| at + start);
    let part = |from: usize, to: usize| image[from..to].to_owned();
    match (colon, at_sign) {
        (None, None) => (image.to_owned(), String::new(), String::new()),
        (Some(colon), Some(at)) if colon < at => {
            (part(0, colon), part(colon + 1, at), part(at + 1, image.len()))
        }
        (_, Some(at)) => (part(0, at), String::new(), part(at + 1, image.len())),
        (Some(colon), None) => (part(0, colon), part(colon + 1, image.len()), String::new()),
    }
}
