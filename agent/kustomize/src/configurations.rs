//! Files that say which fields the transformers change: `configurations` and `crds`.

use serde_json::Value;

use crate::config::{BackReferences, Config, FieldSpec, LISTS, merge_specs};
use crate::error::Error;
use crate::fields::Fields;
use crate::id::Gvk;
use crate::kustfile::{each, field_spec};
use crate::load::{Place, Sources};
use crate::{read, tables};

/// The default fields with those of configuration files.
pub(crate) fn load(sources: &Sources<'_>, place: &Place, paths: &[String]) -> Result<Config, Error> {
    let mut config = tables::default_config().clone();
    let mut more = Config::default();
    for path in paths {
        let bytes = sources.load(place, path)?;
        let file = place.file(path);
        let parsed = parse(&bytes).map_err(|error| error.in_file(&file))?;
        more.merge(parsed).map_err(|message| Error::from(message).in_file(&file))?;
    }
    config.merge(more).map_err(|message| Error::from(format!("configurations: {message}")))?;
    Ok(config)
}

fn parse(bytes: &[u8]) -> Result<Config, Error> {
    let (value, root) = read::config_strict(bytes)?;
    from_value(&value).map_err(|mut error| {
        error.line = error.line.or_else(|| read::line_of(root.as_ref(), &error.field));
        error
    })
}

fn from_value(value: &Value) -> Result<Config, Error> {
    let mut known: Vec<&'static str> = LISTS.to_vec();
    known.push("nameReference");
    let fields = Fields::new(value, "", &known, false)?;
    let mut config = Config::default();
    for name in LISTS {
        let specs = each(&fields, name, field_spec)?;
        if let Some(list) = config.list(name) {
            *list = specs;
        }
    }
    config.name_reference = each(&fields, "nameReference", |value, path, lenient| {
        let fields = Fields::new(value, path, &["group", "version", "kind", "fieldSpecs"], lenient)?;
        Ok(BackReferences {
            gvk: Gvk {
                group: fields.text("group")?,
                version: fields.text("version")?,
                kind: fields.text("kind")?,
            },
            referrers: each(&fields, "fieldSpecs", field_spec)?,
        })
    })?;
    config.sort();
    Ok(config)
}

/// The fields that OpenAPI definitions of custom kinds mark.
pub(crate) fn load_crds(sources: &Sources<'_>, place: &Place, paths: &[String]) -> Result<Config, Error> {
    let mut all = Config::default();
    for path in paths {
        let bytes = sources.load(place, path)?;
        let file = place.file(path);
        let (value, _) = read::config(&bytes).map_err(|error| error.in_file(&file))?;
        let Value::Object(types) = &value else {
            return Err(Error::new("a mapping of OpenAPI definitions is wanted here").in_file(&file));
        };
        for (name, definition) in types {
            let properties = &schema_of(definition)["properties"];
            if ["kind", "apiVersion", "metadata"].iter().all(|field| properties.get(field).is_some()) {
                let kind = name.rsplit('.').next().unwrap_or(name).to_owned();
                let gvk = Gvk { kind, ..Gvk::default() };
                let mut config = Config::default();
                let mut way = Way { types: &value, gvk: &gvk, path: Vec::new() };
                way.collect(name, &mut config).map_err(|message| Error::from(message).in_file(&file))?;
                all.merge(config).map_err(|message| Error::from(message).in_file(&file))?;
            }
        }
    }
    Ok(all)
}

fn schema_of(definition: &Value) -> &Value {
    let found = definition
        .as_object()
        .and_then(|map| map.iter().find(|(name, _)| name.eq_ignore_ascii_case("schema")));
    found.map_or(&Value::Null, |(_, schema)| schema)
}

struct Way<'v> {
    types: &'v Value,
    gvk: &'v Gvk,
    path: Vec<String>,
}

impl Way<'_> {
    fn collect(&mut self, name: &str, config: &mut Config) -> Result<(), String> {
        if self.path.len() > 50 {
            return Err(format!(
                "the definitions refer to each other in a circle at {}",
                self.path.join(".")
            ));
        }
        let Some(definition) = self.types.get(name) else { return Ok(()) };
        let properties = schema_of(definition)["properties"].as_object();
        for (field, property) in properties.into_iter().flatten() {
            let text = |name: &str| property[name].as_str();
            self.path.push(field.clone());
            if text("x-kubernetes-annotation").is_some() {
                merge_specs(&mut config.common_annotations, vec![self.spec(None)])?;
            }
            if text("x-kubernetes-label-selector").is_some() {
                merge_specs(&mut config.common_labels, vec![self.spec(None)])?;
            }
            if text("x-kubernetes-identity").is_some() {
                merge_specs(&mut config.name_prefix, vec![self.spec(None)])?;
            }
            let version = text("x-kubernetes-object-ref-api-version");
            if let (Some(version), Some(kind)) = (version, text("x-kubernetes-object-ref-kind")) {
                let key = text("x-kubernetes-object-ref-name-key").unwrap_or("name");
                config.merge_references(BackReferences {
                    gvk: Gvk { group: String::new(), version: version.to_owned(), kind: kind.to_owned() },
                    referrers: vec![self.spec(Some(key))],
                })?;
            }
            if let Some(reference) = text("$ref") {
                self.collect(reference, config)?;
            }
            self.path.pop();
        }
        Ok(())
    }

    fn spec(&self, last: Option<&str>) -> FieldSpec {
        let parts: Vec<&str> = self.path.iter().map(String::as_str).chain(last).collect();
        FieldSpec { gvk: self.gvk.clone(), path: parts.join("/"), create: false }
    }
}
