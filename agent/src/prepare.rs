//! From a source tree to what an application wants: render, children apart, scope settled, projects asked, our
//! marks put on, payloads addressed by content.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pintle_core::engine::event::{Child, FoundApp};
use pintle_core::engine::record::{
    ApplyWay, CommitRecord, DesiredEntry, HookEntry, ObjectOptions, Place, RenderRecord,
};
use pintle_core::hook::{self, Role};
use pintle_core::identity::{self, Marks};
use pintle_model::application::{
    Application, CompareOptions, FieldValidation, SyncOptions, parse_compare_options, parse_sync_options,
};
use pintle_model::{
    AppKey, DesiredObject, Digest, Object, ObjectKey, Origin, Problem, Reason, Revision, names,
};
use pintle_render::{DirectoryParams, Inputs, Outcome, SourceKind, SourceTree};

use crate::apps::application_from_object;
use crate::cluster::Discovery;

/// A render, its payloads in the order of its objects, and the children found.
pub struct Prepared {
    /// What the engine works with.
    pub render: RenderRecord,
    /// JSON of each payload.
    pub payloads: Vec<Vec<u8>>,
    /// Child Applications.
    pub children: Vec<Child>,
}

/// Everything beside the tree that a render depends on.
pub struct Context<'a> {
    /// The application.
    pub spec: &'a Application,
    /// Commit.
    pub revision: Revision,
    /// Who committed what.
    pub commit: Option<CommitRecord>,
    /// Kinds of the cluster.
    pub discovery: &'a Discovery,
    /// Agent id.
    pub agent_id: &'a str,
    /// Agent namespace.
    pub agent_namespace: &'a str,
    /// What the spec of a child is validated with.
    pub children: &'a pintle_model::application::Context,
}

/// Renders an application. Whole or nothing: any error fails it, and names file and line.
pub fn prepare(tree: &SourceTree, context: &Context<'_>) -> Result<Prepared, Problem> {
    let directory = &context.spec.source.directory;
    let inputs = Inputs {
        tree,
        path: &context.spec.source.path,
        source: SourceKind::Directory(DirectoryParams {
            recurse: directory.recurse,
            include: Some(directory.include.clone()).filter(|glob| !glob.is_empty()),
            exclude: Some(directory.exclude.clone()).filter(|glob| !glob.is_empty()),
            extension_filter: directory.extension_filter,
            strict: false,
        }),
        answers: &[],
    };
    let rendered = match pintle_render::render(&inputs) {
        Ok(Outcome::Done(rendered)) => rendered,
        Ok(Outcome::Needs(needs)) => {
            return Err(render_error(format!("the render needs {needs:?}, which a directory never does")));
        }
        Err(error) => return Err(render_error(error.to_string())),
    };
    let mut builder = Builder::new(context);
    builder.warnings = rendered.problems;
    builder.scopes = scopes_of_definitions(&rendered.objects);
    for desired in rendered.objects {
        builder.add(desired)?;
    }
    builder.create_namespace();
    builder.finish()
}

fn render_error(message: String) -> Problem {
    Problem::new(Reason::RenderError, message)
}

/// An error of one object, with file, line, kind and name.
fn named_error(desired: &DesiredObject, text: &str) -> Problem {
    render_error(format!("{}: {} {}: {text}", desired.origin, desired.object.kind(), desired.object.name()))
}

struct Builder<'a> {
    context: &'a Context<'a>,
    part_of: String,
    warnings: Vec<Problem>,
    /// (group, kind) -> namespaced, of CustomResourceDefinitions in the same render.
    scopes: BTreeMap<(String, String), bool>,
    objects: BTreeMap<ObjectKey, (DesiredEntry, Vec<u8>)>,
    hooks: Vec<(HookEntry, Vec<u8>)>,
    children: Vec<Child>,
    child_keys: Vec<AppKey>,
}

impl<'a> Builder<'a> {
    fn new(context: &'a Context<'a>) -> Self {
        Self {
            context,
            part_of: identity::applyset_id(context.agent_namespace, &context.spec.key),
            warnings: Vec::new(),
            scopes: BTreeMap::new(),
            objects: BTreeMap::new(),
            hooks: Vec::new(),
            children: Vec::new(),
            child_keys: Vec::new(),
        }
    }

    fn add(&mut self, desired: DesiredObject) -> Result<(), Problem> {
        let object = &desired.object;
        if object.group() == "argoproj.io" && matches!(object.kind(), "Application" | "AppProject") {
            return self.add_child(desired);
        }
        let role = hook::role(object).map_err(|text| named_error(&desired, &text))?;
        let generated = object.name().is_empty();
        if generated && !matches!(role, Role::Hook(_)) {
            return match role {
                Role::Skip => Ok(()),
                _ => Err(named_error(&desired, "has generateName, which only hooks can use")),
            };
        }
        let key = self.settle(object);
        match role {
            Role::Skip => {}
            Role::Resource => {
                let entry = self.entry(&key, &desired)?;
                let payload = self.payload(desired.object, &key);
                self.insert(key, entry, payload);
            }
            Role::Hook(hook) => {
                let mut entry = self.entry(&key, &desired)?;
                let payload = self.payload(desired.object, &key);
                entry.manifest = Digest::of(&payload);
                self.hooks.push((HookEntry { entry, hook, generated }, payload));
            }
        }
        Ok(())
    }

    /// Applications in a render are adopted by the agent and not sent to the API server.
    fn add_child(&mut self, desired: DesiredObject) -> Result<(), Problem> {
        if desired.object.kind() == "AppProject" {
            return Err(render_error(format!(
                "{}: AppProject {} from git is not supported by this version; the project `default` always exists",
                desired.origin,
                desired.object.name()
            )));
        }
        let namespace = match desired.object.namespace() {
            "" => names::DEFAULT_APP_NAMESPACE,
            namespace => namespace,
        };
        let key = AppKey::new(namespace, desired.object.name());
        if key == self.context.spec.key {
            return Err(render_error(format!("{}: application {key} contains itself", desired.origin)));
        }
        self.child_keys.push(key.clone());
        let place = Place::Parent(self.context.spec.key.clone(), desired.origin.clone());
        self.children.push(match application_from_object(&desired.object, self.context.children) {
            Ok(spec) => {
                Child::Valid(FoundApp { spec: Arc::new(spec), raw: desired.object.to_value(), place })
            }
            Err(problem) => {
                let message = format!("{}: {}", desired.origin, problem.message);
                Child::Invalid(key, Problem::new(Reason::InvalidSpecError, message))
            }
        });
        Ok(())
    }

    /// The key, with the namespace settled by scope: discovery first, then CustomResourceDefinitions of the same
    /// render. A kind that neither knows keeps what its manifest says; its apply says that the kind is unknown.
    fn settle(&self, object: &Object) -> ObjectKey {
        let discovered =
            self.context.discovery.resolve(object.group(), object.kind()).map(|known| known.namespaced);
        let defined = self.scopes.get(&(object.group().to_owned(), object.kind().to_owned())).copied();
        let namespace = match discovered.or(defined) {
            Some(false) => "",
            _ if object.namespace().is_empty() => &*self.context.spec.destination.namespace,
            _ => object.namespace(),
        };
        let name = match object.name() {
            "" => object.text(&["metadata", "generateName"]),
            name => name,
        };
        ObjectKey::new(object.group(), object.kind(), namespace, name)
    }

    fn entry(&self, key: &ObjectKey, desired: &DesiredObject) -> Result<DesiredEntry, Problem> {
        let object = &desired.object;
        let options = match object.annotation(names::SYNC_OPTIONS) {
            None => SyncOptions::default(),
            Some(text) => {
                parse_sync_options(text).map_err(|error| named_error(desired, &error.to_string()))?
            }
        };
        let compare = match object.annotation(names::COMPARE_OPTIONS) {
            None => CompareOptions::default(),
            Some(text) => {
                parse_compare_options(text).map_err(|error| named_error(desired, &error.to_string()))?
            }
        };
        let wave = hook::wave(object).map_err(|text| named_error(desired, &text))?;
        let (only_create, ignore) = match object.annotation(names::APPLY) {
            None | Some("Always") => (false, false),
            Some("IfNotPresent") => (true, false),
            Some("Ignore") => (false, true),
            Some(other) => {
                let text = format!(
                    "annotation {}: `{other}` is not valid; valid: IfNotPresent, Ignore",
                    names::APPLY
                );
                return Err(named_error(desired, &text));
            }
        };
        let spec = self.context.spec;
        let options = options.over(&spec.sync_options);
        let ignored = spec
            .ignore_differences
            .iter()
            .filter(|rule| rule.applies_to(key))
            .flat_map(|rule| rule.json_pointers.iter().cloned())
            .collect();
        Ok(DesiredEntry {
            key: key.clone(),
            api_version: object.api_version().into(),
            manifest: Digest::of(b""),
            wave,
            options: ObjectOptions::new(&options, compare),
            way: match (options.replace, options.force) {
                (_, Some(true)) => ApplyWay::Recreate,
                (Some(true), _) => ApplyWay::Replace,
                _ => ApplyWay::Apply,
            },
            no_migration: !options.migrates_client_side_apply(),
            ignore,
            adopt: object.annotation(names::ADOPT).map_or(spec.settings.adopt, |text| text == "true"),
            lenient: options.field_validation() == FieldValidation::Ignore,
            ignore_health: object.annotation(names::IGNORE_HEALTHCHECK) == Some("true"),
            ignored,
            only_create,
            fail_on_shared: options.fails_on_shared_resource(),
            origin: desired.origin.clone(),
        })
    }

    fn payload(&self, object: Object, key: &ObjectKey) -> Vec<u8> {
        let marks =
            Marks { app: &self.context.spec.key, agent_id: self.context.agent_id, part_of: &self.part_of };
        let payload = identity::payload(object, key, &marks);
        // A JSON value always serialises.
        serde_json::to_vec(&payload.to_value()).unwrap_or_default()
    }

    /// Two objects with one key: the last in deterministic order wins, with a warning that names both places.
    fn insert(&mut self, key: ObjectKey, mut entry: DesiredEntry, payload: Vec<u8>) {
        entry.manifest = Digest::of(&payload);
        if let Some((first, _)) = self.objects.get(&key) {
            self.warnings.push(Problem::new(
                Reason::RepeatedResourceWarning,
                format!("{key} stands at {} and at {}; the last one counts", first.origin, entry.origin),
            ));
        }
        self.objects.insert(key, (entry, payload));
    }

    /// `CreateNamespace=true`: the destination namespace becomes an object of the render, never pruned.
    fn create_namespace(&mut self) {
        let spec = self.context.spec;
        let name = spec.destination.namespace.clone();
        if !spec.sync_options.creates_namespace() || name.is_empty() {
            return;
        }
        let key = ObjectKey::new("", "Namespace", "", &name);
        if self.objects.contains_key(&key) {
            return;
        }
        let metadata = spec.namespace_metadata.clone().unwrap_or_default();
        let value = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": name, "labels": metadata.labels, "annotations": metadata.annotations}});
        let Ok(object) = Object::try_from(value) else { return };
        let payload = self.payload(object, &key);
        let entry = DesiredEntry {
            key: key.clone(),
            api_version: "v1".into(),
            manifest: Digest::of(b""),
            wave: 0,
            options: ObjectOptions { keep: true, ..ObjectOptions::default() },
            way: ApplyWay::Apply,
            no_migration: false,
            ignore: false,
            adopt: spec.settings.adopt,
            lenient: false,
            ignore_health: false,
            ignored: Vec::new(),
            // Without metadata of its own it only has to be there, whoever made it; with it, it is managed.
            only_create: spec.namespace_metadata.is_none(),
            fail_on_shared: false,
            origin: Origin { file: "syncOptions CreateNamespace=true".into(), line: 0 },
        };
        self.insert(key, entry, payload);
    }

    fn finish(self) -> Result<Prepared, Problem> {
        if self.objects.len() > pintle_model::limits::RENDER_MAX_OBJECTS {
            return Err(render_error(format!(
                "the render has {} objects, more than {}",
                self.objects.len(),
                pintle_model::limits::RENDER_MAX_OBJECTS
            )));
        }
        let (objects, mut payloads): (Vec<DesiredEntry>, Vec<Vec<u8>>) = self.objects.into_values().unzip();
        let (hooks, hook_payloads): (Vec<HookEntry>, Vec<Vec<u8>>) = self.hooks.into_iter().unzip();
        payloads.extend(hook_payloads);
        let id = render_id(self.context.revision, &objects, &hooks, &self.child_keys);
        let mut children: BTreeSet<AppKey> = BTreeSet::new();
        children.extend(self.child_keys);
        Ok(Prepared {
            render: RenderRecord {
                id,
                revision: self.context.revision,
                objects,
                hooks,
                commit: self.context.commit.clone(),
                warnings: self.warnings,
                children: children.into_iter().collect(),
            },
            payloads,
            children: self.children,
        })
    }
}

/// Content address: the commit counts, since a sync of a new commit is an operation even if it changes nothing.
fn render_id(
    revision: Revision,
    objects: &[DesiredEntry],
    hooks: &[HookEntry],
    children: &[AppKey],
) -> Digest {
    let entries = serde_json::to_vec(objects).unwrap_or_default();
    let hooks = serde_json::to_vec(hooks).unwrap_or_default();
    let children = serde_json::to_vec(children).unwrap_or_default();
    Digest::of_parts([revision.as_bytes().as_slice(), &entries, &hooks, &children])
}

fn scopes_of_definitions(objects: &[DesiredObject]) -> BTreeMap<(String, String), bool> {
    objects
        .iter()
        .map(|desired| &desired.object)
        .filter(|object| {
            object.kind() == "CustomResourceDefinition" && object.group() == "apiextensions.k8s.io"
        })
        .map(|definition| {
            let group = definition.text(&["spec", "group"]).to_owned();
            let kind = definition.text(&["spec", "names", "kind"]).to_owned();
            ((group, kind), definition.text(&["spec", "scope"]) != "Cluster")
        })
        .collect()
}
