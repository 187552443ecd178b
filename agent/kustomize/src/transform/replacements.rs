//! Replacements: a value from one object into fields of others.

use crate::encode;
use crate::error::Step;
use crate::id::ResId;
use crate::kustfile::{FieldOptions, Replacement, Source, Target};
use crate::node::{Kind, Node};
use crate::path::{self, Match};
use crate::read;
use crate::resmap::ResMap;
use crate::resource::Resource;
use crate::selector::{Labels, Matcher, Selector};
use crate::write;

/// Runs replacements in order.
pub(crate) fn run(map: &mut ResMap, replacements: &[Replacement]) -> Step<()> {
    for (at, replacement) in replacements.iter().enumerate() {
        one(map, replacement).map_err(|error| format!("replacements[{at}]: {error}"))?;
    }
    map.drop_gone();
    Ok(())
}

fn one(map: &mut ResMap, replacement: &Replacement) -> Step<()> {
    let Some(targets) = &replacement.targets else {
        return Err("there are no `targets`; add at least one".to_owned());
    };
    let value = match (&replacement.source_value, &replacement.source) {
        (Some(_), Some(_)) => {
            return Err("`source` and `sourceValue` exclude each other; keep one".to_owned());
        }
        (None, None) => return Err("there is no `source`; add one, or a `sourceValue`".to_owned()),
        (Some(text), None) => Node::text(text),
        (None, Some(source)) => source_value(map, source)?,
    };
    for target in targets {
        set_target(map, &value, target)?;
    }
    Ok(())
}

/// All ids that an object has and had. Scopes do not count here.
fn ids(resource: &Resource) -> Vec<ResId> {
    let current = ResId {
        gvk: resource.gvk(),
        name: resource.name().to_owned(),
        namespace: resource.namespace().to_owned(),
        cluster: false,
    };
    let mut all = vec![current];
    all.extend(resource.previous_ids());
    all
}

fn source_value(map: &ResMap, source: &Source) -> Step<Node> {
    let mut found = None;
    for resource in &map.list {
        if ids(resource).iter().any(|id| id.is_selected_by(&source.id)) {
            if found.is_some() {
                return Err(format!(
                    "the source {} is more than one object; add kind, name or namespace",
                    source.id
                ));
            }
            found = Some(resource);
        }
    }
    let resource = found.ok_or_else(|| format!("the source {} is no object of this build", source.id))?;
    let field_path = if source.field_path.is_empty() { "metadata.name" } else { &source.field_path };
    let value = path::lookup(&resource.node, &path::split_dots(field_path))
        .map_err(|error| format!("the field {field_path:?} of the source: {error}"))?
        .filter(|value| !value.is_nil_or_empty())
        .ok_or_else(|| format!("the source {} has no field {field_path:?}, or nothing in it", source.id))?;
    let Some(options) = source.options.as_ref().filter(|options| !options.delimiter.is_empty()) else {
        return Ok(value.clone());
    };
    let Node::Scalar(scalar) = value else {
        return Err(format!(
            "the field {field_path:?} of the source is no single value, so that no delimiter splits it"
        ));
    };
    let mut parts = scalar.text.split(options.delimiter.as_str());
    let part = usize::try_from(options.index).ok().and_then(|index| parts.nth(index)).ok_or_else(|| {
        format!(
            "the field {field_path:?} of the source has no part {}: split at {:?} it has {}",
            options.index,
            options.delimiter,
            scalar.text.split(options.delimiter.as_str()).count()
        )
    })?;
    let mut part_of = scalar.clone();
    part_of.text = part.into();
    Ok(Node::Scalar(part_of))
}

fn set_target(map: &mut ResMap, value: &Node, target: &Target) -> Step<()> {
    let Some(select) = &target.select else {
        return Err("a target has no `select`; add one".to_owned());
    };
    let default = ["metadata.name".to_owned()];
    let field_paths = if target.field_paths.is_empty() { &default[..] } else { &target.field_paths };
    let wanted = Picker::new(select)?;
    let rejected = target.reject.iter().map(Picker::new).collect::<Step<Vec<_>>>()?;
    for resource in &mut map.list {
        if !wanted.fits_texts(resource) {
            continue;
        }
        if rejected.iter().any(|reject| reject.has_texts && reject.fits_texts(resource)) {
            continue;
        }
        let ids = ids(resource);
        if rejected.iter().any(|reject| reject.has_id && ids.iter().any(|id| reject.fits_id(id))) {
            continue;
        }
        if !ids.iter().any(|id| wanted.fits_id(id)) {
            continue;
        }
        for field_path in field_paths {
            set_field(&mut resource.node, value, field_path, target.options.as_ref())
                .map_err(|error| format!("{} of {}: {error}", field_path, ids[0]))?;
        }
    }
    Ok(())
}

struct Picker {
    matcher: Matcher,
    labels: Labels,
    annotations: Labels,
    has_texts: bool,
    has_id: bool,
}

impl Picker {
    fn new(selector: &Selector) -> Step<Self> {
        Ok(Self {
            matcher: Matcher::new(selector)?,
            labels: Labels::parse(&selector.labels)?,
            annotations: Labels::parse(&selector.annotations)?,
            has_texts: !selector.labels.is_empty() || !selector.annotations.is_empty(),
            has_id: selector.id != ResId::default(),
        })
    }

    fn fits_texts(&self, resource: &Resource) -> bool {
        self.annotations.fits(&resource.annotations()) && self.labels.fits(&resource.labels())
    }

    fn fits_id(&self, id: &ResId) -> bool {
        self.matcher.fits_gvk(&id.gvk)
            && self.matcher.fits_name(&id.name)
            && self.matcher.fits_namespace(&id.namespace)
    }
}

fn set_field(node: &mut Node, value: &Node, field_path: &str, options: Option<&FieldOptions>) -> Step<()> {
    let create = options.filter(|options| options.create).map(|_| value.kind());
    let parts = path::split_dots(field_path);
    if set_in_text(node, value, &parts, create, options).is_some() {
        return Ok(());
    }
    let found = path::matches(node, &parts, create)?;
    if found.is_empty() {
        return Err(
            "there is no such field; correct the path, or let it be made with `options: {create: true}`"
                .to_owned(),
        );
    }
    for place in found {
        match place {
            Match::Here(place) => {
                if let Some(target) = path::at_mut(node, &place) {
                    set_value(target, value, options)?;
                }
            }
            Match::Inside(mut lost) => set_value(&mut lost, value, options)?,
        }
    }
    Ok(())
}

fn set_value(target: &mut Node, value: &Node, options: Option<&FieldOptions>) -> Step<()> {
    let mut value = value.clone();
    if let Some(options) = options.filter(|options| !options.delimiter.is_empty()) {
        let Node::Scalar(old) = &*target else {
            return Err("the field is no single value, so that no delimiter splits it".to_owned());
        };
        let mut parts: Vec<&str> = old.text.split(options.delimiter.as_str()).collect();
        let new = if value.is_null() { "" } else { value.value() };
        match usize::try_from(options.index) {
            Err(_) => parts.insert(0, new),
            Ok(index) if index >= parts.len() => parts.push(new),
            Ok(index) => parts[index] = new,
        }
        let joined = parts.join(&options.delimiter);
        if let Node::Scalar(scalar) = &mut value {
            scalar.text = joined.into();
        }
    }
    match target {
        // Only the text changes: tag and style stay, as in the reference.
        Node::Scalar(scalar) => scalar.text = value.value().into(),
        _ => *target = value,
    }
    Ok(())
}

/// Sets a value inside of a text that is JSON or YAML itself. `None` when the path leads into no such text.
fn set_in_text(
    node: &mut Node,
    value: &Node,
    parts: &[String],
    create: Option<Kind>,
    options: Option<&FieldOptions>,
) -> Option<()> {
    for end in 1..parts.len() {
        let Ok(Some(field)) = path::lookup_mut(node, &parts[..end]) else { continue };
        let Node::Scalar(scalar) = field else { continue };
        let Some(mut inner) = read::text(&scalar.text) else { continue };
        let found = path::matches(&mut inner, &parts[end..], create).ok()?;
        if found.is_empty() {
            return None;
        }
        for place in found {
            match place {
                Match::Here(place) => set_value(path::at_mut(&mut inner, &place)?, value, options).ok()?,
                Match::Inside(mut lost) => set_value(&mut lost, value, options).ok()?,
            }
        }
        scalar.text = serialize(&inner, &scalar.text).ok()?.into();
        return Some(());
    }
    None
}

fn serialize(inner: &Node, before: &str) -> Step<String> {
    if !before.trim_start().starts_with(['{', '[']) {
        return Ok(encode::to_string(inner).trim().to_owned());
    }
    let json = write::to_json(inner)?;
    let pretty = before.contains('\n') && before.contains("  ");
    Ok(if pretty { write::go_json_indented(&json) } else { write::go_json(&json) })
}
