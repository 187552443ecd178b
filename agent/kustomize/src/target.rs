//! The build: a kustomization accumulates objects from its resources, generators and components, then its transformers
//! change them. Hashes, references, vars and the order come once, at the end of the whole build.

use std::cell::RefCell;
use std::rc::Rc;

use crate::config::{Config, FieldSpec, merge_specs};
use crate::error::Error;
use crate::generate::{Generated, Generator, with_global};
use crate::kustfile::{self, Kustomization};
use crate::load::{Place, Sources};
use crate::metadata::{self, Origin};
use crate::patch::{PatchPlan, strategic::StrategicPlan};
use crate::plugins::{self, PluginGenerator};
use crate::remote;
use crate::resmap::{self, ResMap};
use crate::resource::{LOCAL_CONFIG, Resource};
use crate::schema::Schemas;
use crate::transform::{self, Transformer, entries::EntriesPlan, hash, namespace::Namespace};
use crate::vars::Vars;
use crate::{Answer, Built, BuiltObject, Files, KUSTOMIZATION_FILE_NAMES, NO_HELM, Options, Outcome};
use crate::{configurations, refer, write};

/// Objects of one build.
const MAX_OBJECTS: usize = 100_000;
const VALIDATED_BY: &str = "validated-by";
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

struct Build<'a> {
    sources: Sources<'a>,
    schemas: Rc<Schemas>,
    warnings: RefCell<Vec<String>>,
}

/// A kustomization in its folder.
struct Target {
    kustomization: Kustomization,
    place: Place,
    /// Path of the kustomization file, for messages.
    file: String,
    file_name: &'static str,
    /// Where it came from, if anybody wants to know.
    origin: Option<Origin>,
}

/// What kustomizations add to.
struct Accumulator {
    map: ResMap,
    config: Config,
    has_defaults: bool,
    vars: Vars,
}

/// Builds the kustomization in a folder.
pub(crate) fn build(
    files: &dyn Files,
    path: &str,
    options: &Options,
    answers: &[Answer<'_>],
) -> Result<Outcome, Error> {
    let build = Build {
        sources: Sources::new(files, answers, options.load_restrictions),
        schemas: Rc::default(),
        warnings: RefCell::default(),
    };
    match build.run(path, options) {
        // What is missing may be the reason of the error.
        _ if build.sources.is_waiting() => Ok(Outcome::Needs(build.sources.needs())),
        Ok(built) => Ok(Outcome::Done(built)),
        Err(error) => Err(error),
    }
}

impl Build<'_> {
    fn run(&self, path: &str, options: &Options) -> Result<Built, Error> {
        let place = Place::root(path)?;
        if !self.sources.is_dir(&place) {
            return Err(Error::new(format!("there is no folder {path:?}")));
        }
        let mut target = self.load(place)?;
        let exists = |component: &str| {
            remote::repository(component).is_some() || self.sources.leads_to_dir(&target.place, component)
        };
        options
            .overrides
            .apply(&mut target.kustomization, exists)
            .map_err(|error| error.in_file(&target.file))?;
        if !target.kustomization.build_metadata.is_empty() {
            target.origin = Some(Origin::default());
        }
        self.set_schema(&target)?;
        let metadata = target.kustomization.build_metadata.clone();
        let mut all = self.accumulate(&mut target, self.empty())?;
        if self.sources.is_waiting() {
            return Err(Error::default());
        }
        let file = target.file.clone();
        let done = self.finish(&mut all, &target.kustomization, &metadata, options);
        done.map_err(|error| error.in_file(&file))
    }

    /// What is done once, for the whole build.
    fn finish(
        &self,
        all: &mut Accumulator,
        root: &Kustomization,
        metadata: &[String],
        options: &Options,
    ) -> Result<Built, Error> {
        let map = &mut all.map;
        hash::add(map)?;
        refer::fix(map, &all.config.name_reference)?;
        for unused in all.vars.resolve(map, &all.config.var_reference)? {
            self.warnings
                .borrow_mut()
                .push(format!("the var {unused:?} stands in no field that vars are replaced in"));
        }
        for resource in &map.list {
            resmap::check_metadata(&resource.node)?;
        }
        map.list.retain(|resource| matches!(resource.annotation(LOCAL_CONFIG), None | Some("false")));
        if let Some(sort) = &root.sort_options {
            transform::sort(map, sort)?;
        }
        let wants = |option: &str| metadata.iter().any(|wanted| wanted == option);
        if options.managed_by_label || wants("managedByLabel") {
            let entries = [(MANAGED_BY.to_owned(), format!("kustomize-{}", options.version))].into();
            EntriesPlan { entries, specs: vec![own_labels()] }.run(map)?;
        }
        for resource in &mut map.list {
            resource.remove_build_annotations()?;
        }
        if !wants("originAnnotations") {
            metadata::remove(map, metadata::ORIGIN)?;
        }
        if !wants("transformerAnnotations") {
            metadata::remove(map, metadata::TRANSFORMATIONS)?;
        }
        let mut objects = Vec::with_capacity(map.list.len());
        for resource in &map.list {
            let history = &resource.history;
            let value = write::to_json(&resource.node).map_err(|message| Error {
                file: history.file.clone(),
                line: (history.line != 0).then_some(history.line),
                ..Error::from(message)
            })?;
            objects.push(BuiltObject {
                value,
                file: history.file.clone(),
                line: history.line,
                touched_by: history.touched_by.clone(),
            });
        }
        Ok(Built { objects, warnings: self.warnings.take() })
    }

    fn empty(&self) -> Accumulator {
        Accumulator {
            map: ResMap::new(&self.schemas),
            config: Config::default(),
            has_defaults: false,
            vars: Vars::default(),
        }
    }

    /// Reads the kustomization of a folder.
    fn load(&self, place: Place) -> Result<Target, Error> {
        let found: Vec<&'static str> =
            KUSTOMIZATION_FILE_NAMES.into_iter().filter(|name| self.sources.has_file(&place, name)).collect();
        let file_name = match found[..] {
            [one] => one,
            [] => {
                return Err(Error::new(format!(
                    "there is no kustomization in {:?}: one of {} is wanted",
                    if place.path.is_empty() { "." } else { &place.path },
                    KUSTOMIZATION_FILE_NAMES.join(", ")
                )));
            }
            _ => {
                return Err(Error::new(format!(
                    "there are {} in {:?}; a kustomization has exactly one file",
                    found.join(" and "),
                    place.path
                )));
            }
        };
        let file = place.file(file_name);
        let bytes = self.sources.load(&place, file_name)?;
        let kustomization = kustfile::parse(&bytes, &file, &mut self.warnings.borrow_mut())?;
        Ok(Target { kustomization, place, file, file_name, origin: None })
    }

    fn set_schema(&self, target: &Target) -> Result<(), Error> {
        let openapi = &target.kustomization.openapi;
        let schema = openapi.get("path").map(|path| self.sources.load(&target.place, path)).transpose();
        schema
            .and_then(|schema| {
                self.schemas.set(openapi.get("version").map(String::as_str), schema.as_deref())
            })
            .map_err(|error| error.at(&target.file, "openapi", None))
    }

    fn accumulate(&self, target: &mut Target, mut all: Accumulator) -> Result<Accumulator, Error> {
        let file = target.file.clone();
        let at = |field: &'static str| {
            let file = file.clone();
            move |error: Error| error.at(&file, field, None)
        };
        let resources = target.kustomization.resources.clone();
        self.accumulate_resources(target, &mut all, &resources, "resources")?;
        self.add_config(target, &mut all)?;
        self.run_generators(target, &mut all)?;
        for (number, path) in target.kustomization.components.clone().iter().enumerate() {
            let result = self.sources.enter(&target.place, path);
            let field = format!("components[{number}]");
            match result {
                Ok(place) => all = self.accumulate_folder(target, all, place, path, true, &field)?,
                Err(_) if self.sources.is_waiting() => {}
                Err(error) => return Err(error.at(&file, &field, None)),
            }
        }
        if self.sources.is_waiting() {
            return Ok(all);
        }
        self.run_transformers(target, &mut all)?;
        self.run_validators(target, &mut all)?;
        all.vars.merge(&mut all.map, &target.kustomization.vars).map_err(Error::from).map_err(at("vars"))?;
        Ok(all)
    }

    fn add_config(&self, target: &Target, all: &mut Accumulator) -> Result<(), Error> {
        let kustomization = &target.kustomization;
        if all.has_defaults && kustomization.configurations.is_empty() && kustomization.crds.is_empty() {
            return Ok(());
        }
        let config = configurations::load(&self.sources, &target.place, &kustomization.configurations)
            .map_err(|error| error.at(&target.file, "configurations", None))?;
        merge_config(all, config).map_err(|error| error.at(&target.file, "configurations", None))?;
        let crds = configurations::load_crds(&self.sources, &target.place, &kustomization.crds)
            .map_err(|error| error.at(&target.file, "crds", None))?;
        all.config.merge(crds).map_err(|message| Error::from(message).at(&target.file, "crds", None))?;
        all.has_defaults = true;
        Ok(())
    }

    /// Files and bases.
    fn accumulate_resources(
        &self,
        target: &mut Target,
        all: &mut Accumulator,
        paths: &[String],
        list: &str,
    ) -> Result<(), Error> {
        for (number, path) in paths.iter().enumerate() {
            let field = format!("{list}[{number}]");
            let at = |error: Error| error.at(&target.file, &field, None);
            let is_base = if remote::is_http(path) {
                !remote::is_file(path)
            } else {
                path.is_empty()
                    || remote::repository(path).is_some()
                    || self.sources.leads_to_dir(&target.place, path)
            };
            if is_base {
                match self.sources.enter(&target.place, path) {
                    Ok(place) => {
                        let base =
                            self.accumulate_folder(target, self.empty(), place, path, false, &field)?;
                        merge_accumulator(all, base).map_err(|error| error.at(&target.file, &field, None))?;
                    }
                    Err(_) if self.sources.is_waiting() => {}
                    Err(error) => return Err(at(error)),
                }
                continue;
            }
            let bytes = match self.sources.load(&target.place, path) {
                Ok(bytes) => bytes,
                Err(_) if self.sources.is_waiting() => continue,
                Err(error) => return Err(at(error)),
            };
            let shown = if remote::is_http(path) {
                path.clone()
            } else {
                crate::load::clean(&target.place.path, path).unwrap_or_else(|| path.clone())
            };
            let mut resources = resmap::from_bytes(&bytes, &shown)?;
            if let Some(origin) = &target.origin {
                let text = origin.append(path).text();
                for resource in &mut resources {
                    let mut annotations = resource.annotations();
                    annotations.insert(metadata::ORIGIN.to_owned(), text.clone());
                    resource.set_annotations(&annotations)?;
                }
            }
            all.map.append(resources).map_err(|message| at(Error::from(message)))?;
            if all.map.list.len() > MAX_OBJECTS {
                return Err(at(Error::new(format!(
                    "more than {MAX_OBJECTS} objects in one build; split it"
                ))));
            }
        }
        Ok(())
    }

    /// A base, which adds to nothing, or a component, which adds to what is there.
    fn accumulate_folder(
        &self,
        parent: &Target,
        all: Accumulator,
        place: Place,
        path: &str,
        component: bool,
        field: &str,
    ) -> Result<Accumulator, Error> {
        let at = |error: Error| error.at(&parent.file, field, None);
        let mut target = self.load(place).map_err(at)?;
        target.kustomization.build_metadata.clone_from(&parent.kustomization.build_metadata);
        target.origin = parent.origin.as_ref().map(|origin| origin.append(path));
        self.set_schema(&target)?;
        match (component, target.kustomization.kind.as_str()) {
            (true, "Component") => {}
            (true, _) => {
                return Err(at(Error::new(format!(
                    "{path:?} is no component; list it in `resources`, or give it `kind: Component`"
                ))));
            }
            (false, "Component") => {
                return Err(at(Error::new(format!("{path:?} is a component; list it in `components`"))));
            }
            (false, _) => {}
        }
        self.accumulate(&mut target, all)
    }

    fn run_generators(&self, target: &mut Target, all: &mut Accumulator) -> Result<(), Error> {
        let kustomization = &target.kustomization;
        if kustomization.has_helm {
            return Err(Error::new(NO_HELM).at(&target.file, "helmCharts", None));
        }
        let global = kustomization.generator_options.as_ref();
        let mut generators = Vec::new();
        let lists = [
            (Generated::ConfigMap, &kustomization.config_maps, "configMapGenerator"),
            (Generated::Secret, &kustomization.secrets, "secretGenerator"),
        ];
        for (kind, list, field) in lists {
            for (number, args) in list.iter().enumerate() {
                let mut args = args.clone();
                args.options = with_global(args.options, global);
                let generator = Generator {
                    kind,
                    args,
                    file: target.file.clone(),
                    field: format!("{field}[{number}]"),
                    line: None,
                };
                let name =
                    if kind == Generated::ConfigMap { "ConfigMapGenerator" } else { "SecretGenerator" };
                let origin = target.origin.as_ref().map(|origin| origin.of_builtin(target.file_name, name));
                generators.push((PluginGenerator::Builtin(generator), origin));
            }
        }
        let entries = kustomization.generators.clone();
        for plugin in self.plugin_objects(target, &entries, "generators")? {
            let generator = plugins::generator(&self.sources, &target.place, &plugin)?;
            generators.push((generator, Origin::of_plugin(&plugin)));
        }
        for (generator, origin) in generators {
            let (resource, field) = match generator {
                PluginGenerator::Builtin(generator) => {
                    (generator.run(&self.sources, &target.place)?, generator.field.clone())
                }
                PluginGenerator::Object(resource) => (resource, "generators".to_owned()),
            };
            let mut made = vec![resource];
            if let Some(origin) = &origin {
                metadata::set_origin(&mut made, origin)?;
            }
            all.map.absorb(made).map_err(|message| Error::from(message).at(&target.file, &field, None))?;
        }
        Ok(())
    }

    /// The objects that configure plugins: inline, in files, or built from folders.
    fn plugin_objects(
        &self,
        target: &mut Target,
        entries: &[String],
        list: &str,
    ) -> Result<Vec<Resource>, Error> {
        let mut all = self.empty();
        let mut paths = Vec::new();
        for entry in entries {
            let Ok(mut inline) = resmap::from_bytes(entry.as_bytes(), &target.file) else {
                paths.push(entry.clone());
                continue;
            };
            for resource in &mut inline {
                resource.history.line = 0;
                if let Some(origin) = &target.origin {
                    let mut annotations = resource.annotations();
                    annotations.insert(metadata::ORIGIN.to_owned(), origin.append(target.file_name).text());
                    resource.set_annotations(&annotations)?;
                }
            }
            all.map.append(inline).map_err(|message| Error::from(message).at(&target.file, list, None))?;
        }
        self.accumulate_resources(target, &mut all, &paths, list)?;
        Ok(all.map.list)
    }

    fn run_transformers(&self, target: &mut Target, all: &mut Accumulator) -> Result<(), Error> {
        let mut transformers = Vec::new();
        for (transformer, kind) in self.transformers(target, &all.config)? {
            let origin = target.origin.as_ref().map(|origin| origin.of_builtin(target.file_name, kind));
            transformers.push((transformer, origin));
        }
        let entries = target.kustomization.transformers.clone();
        for plugin in self.plugin_objects(target, &entries, "transformers")? {
            let transformer = plugins::transformer(&self.sources, &target.place, &plugin)?;
            transformers.push((transformer, Origin::of_plugin(&plugin)));
        }
        for (transformer, origin) in transformers {
            transformer.run(&mut all.map).map_err(|error| error.in_file(&target.file))?;
            if let Some(origin) = origin {
                metadata::add_transformation(&mut all.map, &origin)?;
            }
            all.map.drop_gone();
        }
        Ok(())
    }

    /// The transformers of the kustomization's own fields, in the order of the reference.
    fn transformers(
        &self,
        target: &Target,
        config: &Config,
    ) -> Result<Vec<(Transformer, &'static str)>, Error> {
        let (kustomization, place, file) = (&target.kustomization, &target.place, &target.file);
        let mut all = Vec::new();
        if !kustomization.patches_strategic_merge.is_empty() {
            let plan =
                StrategicPlan::new(&self.sources, place, &kustomization.patches_strategic_merge, "", file)?;
            all.push((Transformer::StrategicMerge(plan), "PatchStrategicMergeTransformer"));
        }
        for (number, patch) in kustomization.patches.iter().enumerate() {
            let plan = PatchPlan::new(&self.sources, place, patch, file, &format!("patches[{number}]"))?;
            all.push((Transformer::Patch(plan), "PatchTransformer"));
        }
        if !kustomization.namespace.is_empty() {
            let namespace = Namespace {
                namespace: kustomization.namespace.clone(),
                specs: config.namespace.clone(),
                ..Namespace::default()
            };
            all.push((Transformer::Namespace(namespace), "NamespaceTransformer"));
        }
        if !kustomization.name_prefix.is_empty() {
            let (text, specs) = (kustomization.name_prefix.clone(), config.name_prefix.clone());
            all.push((Transformer::Prefix { text, specs }, "PrefixTransformer"));
        }
        if !kustomization.name_suffix.is_empty() {
            let (text, specs) = (kustomization.name_suffix.clone(), config.name_suffix.clone());
            all.push((Transformer::Suffix { text, specs }, "SuffixTransformer"));
        }
        for plan in labels(kustomization, config).map_err(|error| error.at(file, "labels", None))? {
            all.push((Transformer::Entries(plan), "LabelTransformer"));
        }
        if !kustomization.common_annotations.is_empty() {
            let entries = kustomization.common_annotations.clone();
            let plan = EntriesPlan { entries, specs: config.common_annotations.clone() };
            all.push((Transformer::Entries(plan), "AnnotationsTransformer"));
        }
        for (number, patch) in kustomization.patches_json.iter().enumerate() {
            let field = format!("patchesJson6902[{number}]");
            let transformer = plugins::json_patch(&self.sources, place, patch, file, &field)?;
            all.push((transformer, "PatchJson6902Transformer"));
        }
        for replica in &kustomization.replicas {
            let specs = config.replicas.clone();
            all.push((Transformer::Replica { replica: replica.clone(), specs }, "ReplicaCountTransformer"));
        }
        for image in &kustomization.images {
            let specs = config.images.clone();
            all.push((Transformer::Image { image: image.clone(), specs }, "ImageTagTransformer"));
        }
        if !kustomization.replacements.is_empty() {
            let list = plugins::replacements(&self.sources, place, &kustomization.replacements)
                .map_err(|error| error.at(file, "replacements", None))?;
            all.push((Transformer::Replacements(list), "ReplacementTransformer"));
        }
        Ok(all)
    }

    /// Validators are transformers that may change nothing but one label.
    fn run_validators(&self, target: &mut Target, all: &mut Accumulator) -> Result<(), Error> {
        let entries = target.kustomization.validators.clone();
        let mut validators = Vec::new();
        for plugin in self.plugin_objects(target, &entries, "validators")? {
            let label = format!("{} {:?}", plugin.kind(), plugin.name());
            validators.push((plugins::transformer(&self.sources, &target.place, &plugin)?, label));
        }
        for (validator, label) in validators {
            let before = all.map.clone();
            validator.run(&mut all.map).map_err(|error| error.in_file(&target.file))?;
            let mut after = all.map.clone();
            for resource in &mut after.list {
                let mut labels = resource.labels();
                if labels.remove(VALIDATED_BY).is_some() {
                    resource.set_labels(&labels)?;
                }
            }
            let nodes =
                |map: &ResMap| map.list.iter().map(|resource| resource.node.clone()).collect::<Vec<_>>();
            if nodes(&before) != nodes(&after) {
                let message =
                    format!("the validator {label} changes objects; a validator may only refuse them");
                return Err(Error::new(message).at(&target.file, "validators", None));
            }
        }
        Ok(())
    }
}

fn own_labels() -> FieldSpec {
    FieldSpec { path: "metadata/labels".to_owned(), create: true, ..FieldSpec::default() }
}

/// `labels`, then `commonLabels`.
fn labels(kustomization: &Kustomization, config: &Config) -> Result<Vec<EntriesPlan>, Error> {
    if kustomization.labels.is_empty() && kustomization.common_labels.is_empty() {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for label in &kustomization.labels {
        let mut specs = label.fields.clone();
        merge_specs(&mut specs, config.labels.clone())?;
        if label.selectors {
            merge_specs(&mut specs, config.common_labels.clone())?;
        } else {
            if label.templates {
                merge_specs(&mut specs, config.template_labels.clone())?;
            }
            if label.volume_claim_templates {
                merge_specs(&mut specs, config.volume_claim_template_labels.clone())?;
            }
            merge_specs(&mut specs, vec![own_labels()])?;
        }
        all.push(EntriesPlan { entries: label.pairs.clone(), specs });
    }
    let entries = kustomization.common_labels.clone();
    all.push(EntriesPlan { entries, specs: config.common_labels.clone() });
    Ok(all)
}

fn merge_config(all: &mut Accumulator, config: Config) -> Result<(), Error> {
    if all.has_defaults {
        return Ok(all.config.merge(config)?);
    }
    all.config = config;
    Ok(())
}

fn merge_accumulator(all: &mut Accumulator, base: Accumulator) -> Result<(), Error> {
    all.map.append(base.map.list)?;
    if base.has_defaults {
        if !all.has_defaults {
            all.config = base.config;
        } else if all.config != base.config {
            all.config.merge(base.config)?;
        }
        all.has_defaults = true;
    }
    Ok(all.vars.take(base.vars)?)
}
