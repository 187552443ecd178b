//! The kustomization file: what it may hold, and how old fields become new ones.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::config::FieldSpec;
use crate::error::Error;
use crate::fields::{Fields, wrong};
use crate::id::{Gvk, ResId, split_api_version};
use crate::read;
use crate::selector::Selector;

/// A kustomization or component.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kustomization {
    pub(crate) kind: String,
    pub(crate) openapi: BTreeMap<String, String>,
    pub(crate) name_prefix: String,
    pub(crate) name_suffix: String,
    pub(crate) namespace: String,
    pub(crate) common_labels: BTreeMap<String, String>,
    pub(crate) labels: Vec<Label>,
    pub(crate) common_annotations: BTreeMap<String, String>,
    pub(crate) patches_strategic_merge: Vec<String>,
    pub(crate) patches_json: Vec<Patch>,
    pub(crate) patches: Vec<Patch>,
    pub(crate) images: Vec<Image>,
    pub(crate) replacements: Vec<ReplacementField>,
    pub(crate) replicas: Vec<Replica>,
    pub(crate) vars: Vec<Var>,
    pub(crate) sort_options: Option<SortOptions>,
    pub(crate) resources: Vec<String>,
    pub(crate) components: Vec<String>,
    pub(crate) crds: Vec<String>,
    pub(crate) config_maps: Vec<GeneratorArgs>,
    pub(crate) secrets: Vec<GeneratorArgs>,
    pub(crate) has_helm: bool,
    pub(crate) generator_options: Option<GeneratorOptions>,
    pub(crate) configurations: Vec<String>,
    pub(crate) generators: Vec<String>,
    pub(crate) transformers: Vec<String>,
    pub(crate) validators: Vec<String>,
    pub(crate) build_metadata: Vec<String>,
}

/// An entry of `labels`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Label {
    pub(crate) pairs: BTreeMap<String, String>,
    pub(crate) selectors: bool,
    pub(crate) templates: bool,
    pub(crate) volume_claim_templates: bool,
    pub(crate) fields: Vec<FieldSpec>,
}

/// An entry of `patches` or `patchesJson6902`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Patch {
    pub(crate) path: String,
    pub(crate) patch: String,
    pub(crate) target: Option<Selector>,
    pub(crate) allow_name_change: bool,
    pub(crate) allow_kind_change: bool,
}

/// An entry of `images`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Image {
    pub(crate) name: String,
    pub(crate) new_name: String,
    pub(crate) tag_suffix: String,
    pub(crate) new_tag: String,
    pub(crate) digest: String,
}

/// An entry of `replicas`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Replica {
    pub(crate) name: String,
    pub(crate) count: i64,
}

/// An entry of `replacements`: inline, or the path of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ReplacementField {
    pub(crate) path: String,
    pub(crate) inline: Replacement,
}

/// One source and its targets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Replacement {
    pub(crate) source: Option<Source>,
    pub(crate) source_value: Option<String>,
    /// None where there is no such field.
    pub(crate) targets: Option<Vec<Target>>,
}

/// Where the value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Source {
    pub(crate) id: ResId,
    pub(crate) field_path: String,
    pub(crate) options: Option<FieldOptions>,
}

/// Where the value goes to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Target {
    pub(crate) select: Option<Selector>,
    pub(crate) reject: Vec<Selector>,
    pub(crate) field_paths: Vec<String>,
    pub(crate) options: Option<FieldOptions>,
}

/// Which part of a field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FieldOptions {
    pub(crate) delimiter: String,
    pub(crate) index: i64,
    pub(crate) create: bool,
}

/// An entry of `vars`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Var {
    pub(crate) name: String,
    pub(crate) object: ResId,
    pub(crate) field_path: String,
}

/// `sortOptions`
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SortOptions {
    pub(crate) order: String,
    pub(crate) legacy: Option<(Vec<String>, Vec<String>)>,
}

/// An entry of `configMapGenerator` or `secretGenerator`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct GeneratorArgs {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) behavior: String,
    pub(crate) literals: Vec<String>,
    pub(crate) files: Vec<String>,
    pub(crate) envs: Vec<String>,
    /// Type of a Secret.
    pub(crate) secret_type: String,
    pub(crate) options: Option<GeneratorOptions>,
}

/// `generatorOptions`
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct GeneratorOptions {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) disable_name_suffix_hash: bool,
    pub(crate) immutable: bool,
}

const FIELDS: [&str; 34] = [
    "apiVersion",
    "kind",
    "metadata",
    "openapi",
    "namePrefix",
    "nameSuffix",
    "namespace",
    "commonLabels",
    "labels",
    "commonAnnotations",
    "patchesStrategicMerge",
    "patchesJson6902",
    "patches",
    "images",
    "imageTags",
    "replacements",
    "replicas",
    "vars",
    "sortOptions",
    "resources",
    "components",
    "crds",
    "bases",
    "configMapGenerator",
    "secretGenerator",
    "helmGlobals",
    "helmCharts",
    "helmChartInflationGenerator",
    "generatorOptions",
    "configurations",
    "generators",
    "transformers",
    "validators",
    "buildMetadata",
];

/// Old fields, and what to use now.
const DEPRECATED: [(&str, &str); 6] = [
    ("bases", "resources"),
    ("commonLabels", "labels"),
    ("imageTags", "images"),
    ("patchesJson6902", "patches"),
    ("patchesStrategicMerge", "patches"),
    ("vars", "replacements"),
];

/// Reads a kustomization file. Warnings name deprecated fields.
pub(crate) fn parse(bytes: &[u8], file: &str, warnings: &mut Vec<String>) -> Result<Kustomization, Error> {
    let (value, root) = read::config(bytes).map_err(|error| error.in_file(file))?;
    let place = |mut error: Error| {
        if error.file.is_empty() {
            error.line = error.line.or_else(|| read::line_of(root.as_ref(), &error.field));
            file.clone_into(&mut error.file);
        }
        error
    };
    let fields = Fields::new(&value, "", &FIELDS, false).map_err(place)?;
    for (old, new) in DEPRECATED {
        if fields.get(old).is_some() {
            warnings.push(format!("{file}: {old} is deprecated; use {new}"));
        }
    }
    let kustomization = from_fields(&fields).map_err(place)?;
    if is_empty(&fields) {
        return Err(Error {
            file: file.to_owned(),
            ..Error::new("the kustomization is empty; give it `resources`")
        });
    }
    Ok(kustomization)
}

/// Nothing but a type, or only fields with nothing in them.
fn is_empty(fields: &Fields<'_>) -> bool {
    FIELDS.iter().filter(|name| !matches!(**name, "apiVersion" | "kind")).all(|name| match fields.get(name) {
        None => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => {
            items.is_empty() && matches!(*name, "bases" | "imageTags" | "helmChartInflationGenerator")
        }
        Some(_) => false,
    })
}

fn from_fields(fields: &Fields<'_>) -> Result<Kustomization, Error> {
    let kind = fields.text("kind")?;
    let api_version = fields.text("apiVersion")?;
    let kind = if kind.is_empty() { "Kustomization".to_owned() } else { kind };
    let wanted = match kind.as_str() {
        "Kustomization" => "kustomize.config.k8s.io/v1beta1",
        "Component" => "kustomize.config.k8s.io/v1alpha1",
        _ => {
            let error = Error::new(format!("{kind:?}, but only Kustomization and Component are known"));
            return Err(Error { field: "kind".to_owned(), ..error });
        }
    };
    if !api_version.is_empty() && api_version != wanted {
        let error = Error::new(format!("{api_version:?}, but a {kind} has {wanted:?}"));
        return Err(Error { field: "apiVersion".to_owned(), ..error });
    }
    if let Some(metadata) = fields.get("metadata") {
        let metadata =
            Fields::new(metadata, "metadata", &["name", "namespace", "labels", "annotations"], false)?;
        metadata.text("name")?;
        metadata.text("namespace")?;
        metadata.text_map("labels")?;
        metadata.text_map("annotations")?;
    }
    let mut resources = fields.texts("resources")?;
    resources.extend(fields.texts("bases")?);
    let mut images = each(fields, "images", image)?;
    images.extend(each(fields, "imageTags", image)?);
    Ok(Kustomization {
        kind,
        openapi: fields.text_map("openapi")?,
        name_prefix: fields.text("namePrefix")?,
        name_suffix: fields.text("nameSuffix")?,
        namespace: fields.text("namespace")?,
        common_labels: fields.text_map("commonLabels")?,
        labels: each(fields, "labels", label)?,
        common_annotations: fields.text_map("commonAnnotations")?,
        patches_strategic_merge: fields.texts("patchesStrategicMerge")?,
        patches_json: each(fields, "patchesJson6902", patch)?,
        patches: each(fields, "patches", patch)?,
        images,
        replacements: each(fields, "replacements", replacement_field)?,
        replicas: each(fields, "replicas", replica)?,
        vars: each(fields, "vars", var)?,
        sort_options: fields
            .get("sortOptions")
            .map(|value| sort_options(value, "sortOptions", false))
            .transpose()?,
        resources,
        components: fields.texts("components")?,
        crds: fields.texts("crds")?,
        config_maps: each(fields, "configMapGenerator", |value, path, lenient| {
            generator_args(value, path, lenient, &CONFIG_MAP_FIELDS)
        })?,
        secrets: each(fields, "secretGenerator", |value, path, lenient| {
            generator_args(value, path, lenient, &SECRET_FIELDS)
        })?,
        has_helm: ["helmCharts", "helmChartInflationGenerator"].iter().any(|name| match fields.get(name) {
            Some(Value::Array(charts)) => !charts.is_empty(),
            other => other.is_some(),
        }),
        generator_options: fields
            .get("generatorOptions")
            .map(|value| generator_options(value, "generatorOptions", false))
            .transpose()?,
        configurations: fields.texts("configurations")?,
        generators: fields.texts("generators")?,
        transformers: fields.texts("transformers")?,
        validators: fields.texts("validators")?,
        build_metadata: fields.texts("buildMetadata")?,
    })
}

/// Reads the elements of a list.
pub(crate) fn each<T>(
    fields: &Fields<'_>,
    name: &str,
    read: impl Fn(&Value, &str, bool) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    fields.list(name)?.into_iter().map(|(value, path)| read(value, &path, false)).collect()
}

fn label(value: &Value, path: &str, lenient: bool) -> Result<Label, Error> {
    let known = ["pairs", "includeSelectors", "includeTemplates", "includeVolumeClaimTemplates", "fields"];
    let fields = Fields::new(value, path, &known, lenient)?;
    Ok(Label {
        pairs: fields.text_map("pairs")?,
        selectors: fields.flag("includeSelectors")?,
        templates: fields.flag("includeTemplates")?,
        volume_claim_templates: fields.flag("includeVolumeClaimTemplates")?,
        fields: each(&fields, "fields", field_spec)?,
    })
}

/// A field of a kind.
pub(crate) fn field_spec(value: &Value, path: &str, lenient: bool) -> Result<FieldSpec, Error> {
    let fields = Fields::new(value, path, &["group", "version", "kind", "path", "create"], lenient)?;
    Ok(FieldSpec { gvk: gvk(&fields)?, path: fields.text("path")?, create: fields.flag("create")? })
}

fn gvk(fields: &Fields<'_>) -> Result<Gvk, Error> {
    Ok(Gvk { group: fields.text("group")?, version: fields.text("version")?, kind: fields.text("kind")? })
}

fn id(fields: &Fields<'_>) -> Result<ResId, Error> {
    Ok(ResId {
        gvk: gvk(fields)?,
        name: fields.text("name")?,
        namespace: fields.text("namespace")?,
        cluster: false,
    })
}

const SELECTOR_FIELDS: [&str; 7] =
    ["group", "version", "kind", "name", "namespace", "annotationSelector", "labelSelector"];

/// A target of a patch or replacement.
pub(crate) fn selector(value: &Value, path: &str, lenient: bool) -> Result<Selector, Error> {
    let fields = Fields::new(value, path, &SELECTOR_FIELDS, lenient)?;
    Ok(Selector {
        id: id(&fields)?,
        annotations: fields.text("annotationSelector")?,
        labels: fields.text("labelSelector")?,
    })
}

/// An entry of `patches`.
pub(crate) fn patch(value: &Value, path: &str, lenient: bool) -> Result<Patch, Error> {
    let fields = Fields::new(value, path, &["path", "patch", "target", "options"], lenient)?;
    let none = Value::Null;
    let options = fields.get("options").unwrap_or(&none);
    let options = match options {
        // Older kustomizations have a mapping of texts here.
        Value::Object(_) | Value::Null => {
            Fields::new(options, &fields.path("options"), &["allowNameChange", "allowKindChange"], lenient)?
        }
        other => return Err(wrong(&fields.path("options"), "a mapping", other)),
    };
    Ok(Patch {
        path: fields.text("path")?,
        patch: fields.text("patch")?,
        target: fields
            .get("target")
            .map(|value| selector(value, &fields.path("target"), lenient))
            .transpose()?,
        allow_name_change: options.flag("allowNameChange")?,
        allow_kind_change: options.flag("allowKindChange")?,
    })
}

/// An entry of `images`.
pub(crate) fn image(value: &Value, path: &str, lenient: bool) -> Result<Image, Error> {
    let fields = Fields::new(value, path, &["name", "newName", "tagSuffix", "newTag", "digest"], lenient)?;
    Ok(Image {
        name: fields.text("name")?,
        new_name: fields.text("newName")?,
        tag_suffix: fields.text("tagSuffix")?,
        new_tag: fields.text("newTag")?,
        digest: fields.text("digest")?,
    })
}

/// An entry of `replicas`.
pub(crate) fn replica(value: &Value, path: &str, lenient: bool) -> Result<Replica, Error> {
    let fields = Fields::new(value, path, &["name", "count"], lenient)?;
    Ok(Replica { name: fields.text("name")?, count: fields.number("count")? })
}

/// An entry of `replacements`.
pub(crate) fn replacement_field(value: &Value, path: &str, lenient: bool) -> Result<ReplacementField, Error> {
    let fields = Fields::new(value, path, &["source", "targets", "sourceValue", "path"], lenient)?;
    let mut inline = replacement_of(&fields, lenient)?;
    // An empty list is left out on the way from the kustomization to the transformer.
    if inline.targets.as_ref().is_some_and(Vec::is_empty) {
        inline.targets = None;
    }
    Ok(ReplacementField { path: fields.text("path")?, inline })
}

/// A replacement in a file.
pub(crate) fn replacement(value: &Value, path: &str) -> Result<Replacement, Error> {
    replacement_of(&Fields::new(value, path, &["source", "targets", "sourceValue"], true)?, true)
}

fn replacement_of(fields: &Fields<'_>, lenient: bool) -> Result<Replacement, Error> {
    let source = fields.get("source").map(|value| {
        let known = ["group", "version", "kind", "name", "namespace", "fieldPath", "options"];
        let path = fields.path("source");
        let fields = Fields::new(value, &path, &known, lenient)?;
        Ok::<_, Error>(Source {
            id: id(&fields)?,
            field_path: fields.text("fieldPath")?,
            options: field_options(&fields, lenient)?,
        })
    });
    let targets = match fields.get("targets") {
        None => None,
        Some(_) => Some(
            fields
                .list("targets")?
                .into_iter()
                .map(|(value, path)| target(value, &path, lenient))
                .collect::<Result<Vec<_>, _>>()?,
        ),
    };
    Ok(Replacement {
        source: source.transpose()?,
        source_value: fields.optional_text("sourceValue")?,
        targets,
    })
}

fn target(value: &Value, path: &str, lenient: bool) -> Result<Target, Error> {
    let fields = Fields::new(value, path, &["select", "reject", "fieldPaths", "options"], lenient)?;
    Ok(Target {
        select: fields
            .get("select")
            .map(|value| selector(value, &fields.path("select"), lenient))
            .transpose()?,
        reject: fields
            .list("reject")?
            .into_iter()
            .map(|(value, path)| selector(value, &path, lenient))
            .collect::<Result<_, _>>()?,
        field_paths: fields.texts("fieldPaths")?,
        options: field_options(&fields, lenient)?,
    })
}

fn field_options(fields: &Fields<'_>, lenient: bool) -> Result<Option<FieldOptions>, Error> {
    let Some(value) = fields.get("options") else { return Ok(None) };
    let fields =
        Fields::new(value, &fields.path("options"), &["delimiter", "index", "encoding", "create"], lenient)?;
    fields.text("encoding")?;
    Ok(Some(FieldOptions {
        delimiter: fields.text("delimiter")?,
        index: fields.number("index")?,
        create: fields.flag("create")?,
    }))
}

fn var(value: &Value, path: &str, lenient: bool) -> Result<Var, Error> {
    let fields = Fields::new(value, path, &["name", "objref", "fieldref"], lenient)?;
    let none = Value::Null;
    let known = ["apiVersion", "group", "version", "kind", "name", "namespace"];
    let object = Fields::new(fields.get("objref").unwrap_or(&none), &fields.path("objref"), &known, lenient)?;
    let mut target = id(&object)?;
    let api_version = object.text("apiVersion")?;
    if !api_version.is_empty() && api_version.matches('/').count() <= 1 {
        let (group, version) = split_api_version(&api_version);
        if api_version.contains('/') {
            group.clone_into(&mut target.gvk.group);
        }
        version.clone_into(&mut target.gvk.version);
    }
    let field = Fields::new(
        fields.get("fieldref").unwrap_or(&none),
        &fields.path("fieldref"),
        &["fieldPath"],
        lenient,
    )?;
    let mut field_path = field.text("fieldPath")?;
    if field_path.is_empty() {
        "metadata.name".clone_into(&mut field_path);
    }
    Ok(Var { name: fields.text("name")?, object: target, field_path })
}

/// How to sort.
pub(crate) fn sort_options(value: &Value, path: &str, lenient: bool) -> Result<SortOptions, Error> {
    let fields = Fields::new(value, path, &["order", "legacySortOptions"], lenient)?;
    let legacy = fields.get("legacySortOptions").map(|value| {
        let fields =
            Fields::new(value, &fields.path("legacySortOptions"), &["orderFirst", "orderLast"], lenient)?;
        Ok::<_, Error>((fields.texts("orderFirst")?, fields.texts("orderLast")?))
    });
    Ok(SortOptions { order: fields.text("order")?, legacy: legacy.transpose()? })
}

pub(crate) const CONFIG_MAP_FIELDS: [&str; 8] =
    ["namespace", "name", "behavior", "literals", "files", "envs", "env", "options"];
pub(crate) const SECRET_FIELDS: [&str; 9] =
    ["namespace", "name", "behavior", "literals", "files", "envs", "env", "options", "type"];

/// What to generate.
pub(crate) fn generator_args(
    value: &Value,
    path: &str,
    lenient: bool,
    known: &[&'static str],
) -> Result<GeneratorArgs, Error> {
    let fields = Fields::new(value, path, known, lenient)?;
    let mut envs = fields.texts("envs")?;
    let env = fields.text("env")?;
    // In plugin files the reference forgets the old, single field.
    if !env.is_empty() && !lenient {
        envs.push(env);
    }
    Ok(GeneratorArgs {
        name: fields.text("name")?,
        namespace: fields.text("namespace")?,
        behavior: fields.text("behavior")?,
        literals: fields.texts("literals")?,
        files: fields.texts("files")?,
        envs,
        secret_type: fields.text("type")?,
        options: fields
            .get("options")
            .map(|value| generator_options(value, &fields.path("options"), lenient))
            .transpose()?,
    })
}

fn generator_options(value: &Value, path: &str, lenient: bool) -> Result<GeneratorOptions, Error> {
    let fields =
        Fields::new(value, path, &["labels", "annotations", "disableNameSuffixHash", "immutable"], lenient)?;
    Ok(GeneratorOptions {
        labels: fields.text_map("labels")?,
        annotations: fields.text_map("annotations")?,
        disable_name_suffix_hash: fields.flag("disableNameSuffixHash")?,
        immutable: fields.flag("immutable")?,
    })
}
