//! Built-in generators and transformers that are configured by files of their own: `generators`, `transformers` and
//! `validators`.

use serde_json::Value;

use crate::config::FieldSpec;
use crate::error::Error;
use crate::fields::Fields;
use crate::generate::{Generated, Generator};
use crate::kustfile::{self, CONFIG_MAP_FIELDS, Patch, SECRET_FIELDS};
use crate::load::{Place, Sources};
use crate::node::Node;
use crate::patch::{Content, PatchPlan, json, strategic::StrategicPlan};
use crate::read;
use crate::resource::Resource;
use crate::transform::Transformer;
use crate::transform::entries::EntriesPlan;
use crate::transform::namespace::{Namespace, Subjects};
use crate::transform::value_add::{ValueAdd, ValueTarget};
use crate::write;

/// What a generator file makes.
pub(crate) enum PluginGenerator {
    Builtin(Generator),
    /// `IAMPolicyGenerator`: one service account.
    Object(Resource),
}

/// Reads the configuration of a plugin.
struct Plugin<'a> {
    sources: &'a Sources<'a>,
    place: &'a Place,
    resource: &'a Resource,
    value: Value,
}

fn fail(resource: &Resource, message: String) -> Error {
    let history = &resource.history;
    Error {
        file: history.file.clone(),
        line: (history.line != 0).then_some(history.line),
        ..Error::from(message)
    }
}

fn open<'a>(sources: &'a Sources<'a>, place: &'a Place, resource: &'a Resource) -> Result<Plugin<'a>, Error> {
    if resource.api_version() != "builtin" {
        let kind = resource.kind();
        let how = ["config.kubernetes.io/function", "config.k8s.io/function"]
            .iter()
            .find_map(|name| resource.annotation(name))
            .map_or("a plugin", |text| {
                if text.contains("exec") {
                    "an exec function"
                } else if text.contains("starlark") {
                    "a starlark function"
                } else {
                    "a container function"
                }
            });
        return Err(fail(
            resource,
            format!(
                "{kind} {:?} is {how}: only the built-in generators and transformers (apiVersion: builtin) run here; nothing is \
                 executed on the node. Run it beforehand and commit its result",
                resource.name()
            ),
        ));
    }
    let value = write::to_json(&resource.node).map_err(|message| fail(resource, message))?;
    Ok(Plugin { sources, place, resource, value })
}

/// The generator that an object configures.
pub(crate) fn generator<'a>(
    sources: &'a Sources<'a>,
    place: &'a Place,
    resource: &'a Resource,
) -> Result<PluginGenerator, Error> {
    let plugin = open(sources, place, resource)?;
    let run = || match resource.kind() {
        "ConfigMapGenerator" => plugin.generator(Generated::ConfigMap, &CONFIG_MAP_FIELDS),
        "SecretGenerator" => plugin.generator(Generated::Secret, &SECRET_FIELDS),
        "IAMPolicyGenerator" => plugin.iam_policy(),
        "HelmChartInflationGenerator" => Err(Error::new(crate::NO_HELM)),
        other => Err(Error::new(format!("{other:?} is no built-in generator"))),
    };
    run().map_err(|error| located(resource, error))
}

/// The transformer that an object configures.
pub(crate) fn transformer<'a>(
    sources: &'a Sources<'a>,
    place: &'a Place,
    resource: &'a Resource,
) -> Result<Transformer, Error> {
    let plugin = open(sources, place, resource)?;
    plugin.transformer().map_err(|error| located(resource, error))
}

fn located(resource: &Resource, error: Error) -> Error {
    if error.file.is_empty() {
        Error { field: error.field.clone(), ..fail(resource, error.message) }
    } else {
        error
    }
}

impl Plugin<'_> {
    fn fields(&self, known: &[&'static str]) -> Result<Fields<'_>, Error> {
        Fields::new(&self.value, "", known, true)
    }

    fn specs(&self, fields: &Fields<'_>) -> Result<Vec<FieldSpec>, Error> {
        fields
            .list("fieldSpecs")?
            .into_iter()
            .map(|(value, path)| kustfile::field_spec(value, &path, true))
            .collect()
    }

    fn label(&self) -> String {
        format!("{} {:?}", self.resource.kind(), self.resource.name())
    }

    fn generator(&self, kind: Generated, known: &[&'static str]) -> Result<PluginGenerator, Error> {
        let mut args = kustfile::generator_args(&self.value, "", true, known)?;
        if args.name.is_empty() {
            self.resource.name().clone_into(&mut args.name);
        }
        if args.namespace.is_empty() {
            self.resource.namespace().clone_into(&mut args.namespace);
        }
        let history = &self.resource.history;
        Ok(PluginGenerator::Builtin(Generator {
            kind,
            args,
            file: history.file.clone(),
            field: self.label(),
            line: (history.line != 0).then_some(history.line),
        }))
    }

    fn iam_policy(&self) -> Result<PluginGenerator, Error> {
        let fields = self.fields(&["cloud", "kubernetesService", "serviceAccount"])?;
        let cloud = fields.text("cloud")?;
        if cloud != "gke" {
            return Err(Error::new(format!("the cloud {cloud:?} is not supported; there is only \"gke\"")));
        }
        let none = Value::Null;
        let part = |name: &str, known: &[&'static str]| {
            Fields::new(fields.get(name).unwrap_or(&none), name, known, true)
        };
        let service = part("kubernetesService", &["name", "namespace"])?;
        let account = part("serviceAccount", &["name", "projectId"])?;
        let mail =
            format!("{}@{}.iam.gserviceaccount.com", account.text("name")?, account.text("projectId")?);
        let mut node = Node::map();
        node.set("apiVersion", Node::string("v1")).map_err(String::from)?;
        node.set("kind", Node::string("ServiceAccount")).map_err(String::from)?;
        let mut resource = Resource::new(node, &self.resource.history.file, self.resource.history.line);
        resource.set_annotation("iam.gke.io/gcp-service-account", &mail)?;
        resource.set_name(&service.text("name")?)?;
        resource.set_namespace(&service.text("namespace")?)?;
        Ok(PluginGenerator::Object(resource))
    }

    fn transformer(&self) -> Result<Transformer, Error> {
        Ok(match self.resource.kind() {
            "AnnotationsTransformer" => self.entries("annotations")?,
            "LabelTransformer" => self.entries("labels")?,
            "NamespaceTransformer" => self.namespace()?,
            "PrefixTransformer" => self.prefix()?,
            "SuffixTransformer" => self.suffix()?,
            "PrefixSuffixTransformer" => Transformer::Several(vec![self.prefix()?, self.suffix()?]),
            "HashTransformer" => Transformer::Hash,
            "ImageTagTransformer" => {
                let fields = self.fields(&["imageTag", "fieldSpecs"])?;
                let image =
                    kustfile::image(fields.get("imageTag").unwrap_or(&Value::Null), "imageTag", true)?;
                Transformer::Image { image, specs: self.specs(&fields)? }
            }
            "ReplicaCountTransformer" => {
                let fields = self.fields(&["replica", "fieldSpecs"])?;
                let replica =
                    kustfile::replica(fields.get("replica").unwrap_or(&Value::Null), "replica", true)?;
                Transformer::Replica { replica, specs: self.specs(&fields)? }
            }
            "PatchTransformer" => {
                let patch = kustfile::patch(&self.without_metadata(), "", true)?;
                Transformer::Patch(self.patch(&patch)?)
            }
            "PatchJson6902Transformer" => self.json_patch()?,
            "PatchStrategicMergeTransformer" => {
                let fields = self.fields(&["paths", "patches"])?;
                let (paths, text) = (fields.texts("paths")?, fields.text("patches")?);
                if paths.is_empty() && text.is_empty() {
                    return Err(Error::new("one of `paths` and `patches` is needed"));
                }
                let file = &self.resource.history.file;
                Transformer::StrategicMerge(StrategicPlan::new(
                    self.sources,
                    self.place,
                    &paths,
                    &text,
                    file,
                )?)
            }
            "ReplacementTransformer" => {
                let fields = self.fields(&["replacements"])?;
                let list = fields
                    .list("replacements")?
                    .into_iter()
                    .map(|(value, path)| kustfile::replacement_field(value, &path, true))
                    .collect::<Result<Vec<_>, _>>()?;
                Transformer::Replacements(replacements(self.sources, self.place, &list)?)
            }
            "ValueAddTransformer" => self.value_add()?,
            "ConfigMapGenerator"
            | "SecretGenerator"
            | "IAMPolicyGenerator"
            | "HelmChartInflationGenerator" => {
                return Err(Error::new(format!("{} is a generator; list it in `generators`", self.label())));
            }
            other => return Err(Error::new(format!("{other:?} is no built-in transformer"))),
        })
    }

    fn without_metadata(&self) -> Value {
        let mut value = self.value.clone();
        if let Some(map) = value.as_object_mut() {
            map.retain(|name, _| !matches!(name.as_str(), "apiVersion" | "kind" | "metadata"));
        }
        value
    }

    fn patch(&self, patch: &Patch) -> Result<PatchPlan, Error> {
        PatchPlan::new(self.sources, self.place, patch, &self.resource.history.file, &self.label())
    }

    fn entries(&self, name: &'static str) -> Result<Transformer, Error> {
        let fields = self.fields(&[name, "fieldSpecs"])?;
        Ok(Transformer::Entries(EntriesPlan { entries: fields.text_map(name)?, specs: self.specs(&fields)? }))
    }

    fn prefix(&self) -> Result<Transformer, Error> {
        let fields = self.fields(&["prefix", "fieldSpecs"])?;
        Ok(Transformer::Prefix { text: fields.text("prefix")?, specs: self.wanted_specs(&fields)? })
    }

    fn suffix(&self) -> Result<Transformer, Error> {
        let fields = self.fields(&["suffix", "fieldSpecs"])?;
        Ok(Transformer::Suffix { text: fields.text("suffix")?, specs: self.wanted_specs(&fields)? })
    }

    fn wanted_specs(&self, fields: &Fields<'_>) -> Result<Vec<FieldSpec>, Error> {
        if fields.get("fieldSpecs").is_none() {
            return Err(Error::new("`fieldSpecs` is missing; the usual one is `- path: metadata/name`"));
        }
        self.specs(fields)
    }

    fn namespace(&self) -> Result<Transformer, Error> {
        let fields = self.fields(&["fieldSpecs", "unsetOnly", "setRoleBindingSubjects"])?;
        let subjects = match fields.text("setRoleBindingSubjects")?.as_str() {
            "" | "defaultOnly" => Subjects::Default,
            "allServiceAccounts" => Subjects::ServiceAccounts,
            "none" => Subjects::None,
            other => {
                return Err(Error::new(format!(
                    "setRoleBindingSubjects is {other:?}, but only defaultOnly, allServiceAccounts and none are known"
                )));
            }
        };
        Ok(Transformer::Namespace(Namespace {
            namespace: self.resource.namespace().to_owned(),
            specs: self.specs(&fields)?,
            unset_only: fields.flag("unsetOnly")?,
            subjects,
        }))
    }

    fn json_patch(&self) -> Result<Transformer, Error> {
        let fields = self.fields(&["target", "path", "jsonOp"])?;
        let target =
            fields.get("target").map(|value| kustfile::selector(value, "target", true)).transpose()?;
        let patch =
            Patch { path: fields.text("path")?, patch: fields.text("jsonOp")?, target, ..Patch::default() };
        json_patch(self.sources, self.place, &patch, &self.resource.history.file, &self.label())
    }

    fn value_add(&self) -> Result<Transformer, Error> {
        let fields = self.fields(&["value", "targets", "targetFilePath"])?;
        let mut value = fields.text("value")?.trim().to_owned();
        if value.is_empty() {
            self.place.path.rsplit('/').next().unwrap_or_default().clone_into(&mut value);
        }
        let mut targets = value_targets(&fields)?;
        let path = fields.text("targetFilePath")?;
        if !path.is_empty() {
            let bytes = self.sources.load(self.place, &path)?;
            let file = self.place.file(&path);
            let (more, _) = read::config(&bytes).map_err(|error| error.in_file(&file))?;
            let more = Fields::new(&more, "", &["targets"], true).and_then(|fields| value_targets(&fields));
            targets.extend(more.map_err(|error| error.in_file(&file))?);
        }
        if targets.is_empty() {
            return Err(Error::new("there are no `targets`; add at least one"));
        }
        Ok(Transformer::ValueAdd(ValueAdd { value, targets }))
    }
}

fn value_targets(fields: &Fields<'_>) -> Result<Vec<ValueTarget>, Error> {
    let read = |(value, path): (&Value, String)| {
        let fields = Fields::new(value, &path, &["selector", "fieldPath", "filePathPosition"], true)?;
        let position = fields.number("filePathPosition")?;
        let target = ValueTarget {
            selector: fields
                .get("selector")
                .map(|value| kustfile::selector(value, &fields.path("selector"), true))
                .transpose()?,
            field_path: fields.text("fieldPath")?,
            position: usize::try_from(position).map_err(|_| {
                Error::new(format!("{}: a position cannot be negative", fields.path("filePathPosition")))
            })?,
        };
        if target.field_path.is_empty() {
            return Err(Error::new(format!("{}: `fieldPath` is missing", path)));
        }
        Ok(target)
    };
    fields.list("targets")?.into_iter().map(read).collect()
}

/// An entry of `patchesJson6902`.
pub(crate) fn json_patch(
    sources: &Sources<'_>,
    place: &Place,
    patch: &Patch,
    file: &str,
    field: &str,
) -> Result<Transformer, Error> {
    let fail = |message: &str| Error::new(message).at(file, field, None);
    let Some(target) = patch.target.as_ref().filter(|target| !target.id.name.is_empty()) else {
        return Err(fail("a JSON patch needs a `target` with a `name`"));
    };
    let text = match (patch.patch.is_empty(), patch.path.is_empty()) {
        (true, true) => return Err(fail("a JSON patch needs one of `path` and `patch`")),
        (false, false) => return Err(fail("`path` and `patch` exclude each other; keep one")),
        (false, true) => patch.patch.as_bytes().into(),
        (true, false) => sources.load(place, &patch.path).map_err(|error| error.at(file, field, None))?,
    };
    let operations = json::parse(&text).map_err(|message| fail(&message))?;
    if operations.is_empty() {
        return Err(fail("there are no operations in the patch; remove the entry"));
    }
    Ok(Transformer::Patch(PatchPlan {
        patches: Content::JsonKeepingId(operations),
        target: Some(target.clone()),
        file: file.to_owned(),
        field: field.to_owned(),
        path: if patch.path.is_empty() { String::new() } else { place.file(&patch.path) },
    }))
}

/// Replacements, with those of files in the places of their paths.
pub(crate) fn replacements(
    sources: &Sources<'_>,
    place: &Place,
    list: &[kustfile::ReplacementField],
) -> Result<Vec<kustfile::Replacement>, Error> {
    let mut all = Vec::new();
    for entry in list {
        if entry.path.is_empty() {
            all.push(entry.inline.clone());
            continue;
        }
        if entry.inline.source.is_some() || entry.inline.targets.is_some() {
            return Err(Error::new(
                "a replacement with a `path` has its source and targets in that file; remove them here",
            ));
        }
        let bytes = sources.load(place, &entry.path)?;
        let file = place.file(&entry.path);
        let (value, root) = read::config(&bytes).map_err(|error| error.in_file(&file))?;
        let found = match &value {
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(at, item)| kustfile::replacement(item, &format!("[{at}]")))
                .collect::<Result<Vec<_>, _>>(),
            Value::Object(_) => kustfile::replacement(&value, "").map(|one| vec![one]),
            _ => Err(Error::new("a replacement or a list of them is wanted here")),
        };
        all.extend(found.map_err(|error| {
            let line = read::line_of(root.as_ref(), &error.field);
            Error { line, file: file.clone(), ..error }
        })?);
    }
    Ok(all)
}
