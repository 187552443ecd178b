//! The list of objects of a build, and what may be in it.

use std::collections::HashSet;
use std::rc::Rc;

use crate::error::{Error, Step};
use crate::id::ResId;
use crate::node::Node;
use crate::read;
use crate::resource::{self, Behavior, Resource};
use crate::schema::Schemas;
use crate::selector::{Labels, Matcher, Selector};
use crate::write;

/// Objects in order.
#[derive(Debug, Clone)]
pub(crate) struct ResMap {
    pub(crate) list: Vec<Resource>,
    pub(crate) schemas: Rc<Schemas>,
}

impl ResMap {
    pub(crate) fn new(schemas: &Rc<Schemas>) -> Self {
        Self { list: Vec::new(), schemas: schemas.clone() }
    }

    /// Adds objects.
    ///
    /// # Errors
    /// One is there already.
    pub(crate) fn append(&mut self, more: Vec<Resource>) -> Step<()> {
        let mut known: HashSet<_> =
            self.list.iter().map(|resource| resource.id(&self.schemas).key()).collect();
        for resource in more {
            let id = resource.id(&self.schemas);
            if !known.insert(id.key()) {
                let first = self.list.iter().find(|other| other.id(&self.schemas).same(&id));
                let (a, b) = (first.map(origin).unwrap_or_default(), origin(&resource));
                return Err(format!(
                    "{id} is there twice: first from {a}, now from {b}; rename or remove one, or make one a patch"
                ));
            }
            self.list.push(resource);
        }
        Ok(())
    }

    /// Adds generated objects: each is new, replaces one or merges into one, as its behaviour says.
    pub(crate) fn absorb(&mut self, more: Vec<Resource>) -> Step<()> {
        for resource in more {
            self.absorb_one(resource)?;
        }
        Ok(())
    }

    fn absorb_one(&mut self, mut new: Resource) -> Step<()> {
        let id = new.id(&self.schemas);
        let behavior = new.behavior();
        let at = match self.by_any_id(|known| known.same(&id))[..] {
            [] if matches!(behavior, Behavior::Merge | Behavior::Replace) => {
                return Err(format!(
                    "{id} does not exist, so that there is nothing to merge with or to replace; use `behavior: create`"
                ));
            }
            [] => return self.append(vec![new]),
            [at] => at,
            _ => return Err(format!("{id} could merge with more than one object; name its namespace")),
        };
        let old = &self.list[at];
        match behavior {
            Behavior::Replace => new.take_metadata_from(old)?,
            Behavior::Merge => {
                let origin = old.annotation(crate::metadata::ORIGIN).map(str::to_owned);
                let secret = new.api_version() == "v1" && new.kind() == "Secret";
                let data = if secret { with_string_data(&old.node)? } else { old.node.clone() };
                new.take_metadata_from(old)?;
                merge_texts(&mut new.node, &data, "data")?;
                merge_texts(&mut new.node, &old.node, "binaryData")?;
                if let Some(origin) = origin {
                    new.set_annotation(crate::metadata::ORIGIN, &origin)?;
                }
            }
            Behavior::Create | Behavior::Unspecified => {
                return Err(format!(
                    "{id} exists already; use `behavior: merge` or `replace`, or another name"
                ));
            }
        }
        let id = new.id(&self.schemas);
        if self.list.iter().filter(|other| other.id(&self.schemas).same(&id)).count() > 1 {
            return Err(format!("{id} is there more than once"));
        }
        new.history.touched_by.clone_from(&old.history.touched_by);
        self.list[at] = new;
        Ok(())
    }

    /// Positions of objects one of whose ids, past or present, fits.
    pub(crate) fn by_any_id(&self, fits: impl Fn(&ResId) -> bool) -> Vec<usize> {
        self.positions(|resource| {
            !resource.is_gone()
                && (resource.previous_ids().iter().any(&fits) || fits(&resource.id(&self.schemas)))
        })
    }

    fn positions(&self, fits: impl Fn(&Resource) -> bool) -> Vec<usize> {
        self.list.iter().enumerate().filter(|(_, resource)| fits(resource)).map(|(at, _)| at).collect()
    }

    /// The only object with that id, past or present.
    pub(crate) fn target(&self, id: &ResId) -> Step<usize> {
        match self.by_any_id(|known| known.same(id))[..] {
            [at] => Ok(at),
            [] => {
                let named: Vec<String> = self
                    .list
                    .iter()
                    .filter(|resource| resource.kind() == id.gvk.kind || resource.name() == id.name)
                    .take(3)
                    .map(|resource| resource.id(&self.schemas).to_string())
                    .collect();
                let hint =
                    if named.is_empty() { String::new() } else { format!("; there is {}", named.join(", ")) };
                Err(format!(
                    "no object matches {id}: apiVersion, kind, name and namespace of a patch must be those of its target{hint}"
                ))
            }
            _ => Err(format!("more than one object matches {id}; name the namespace, or use `target`")),
        }
    }

    /// Positions of the objects that a selector selects.
    pub(crate) fn select(&self, selector: &Selector) -> Step<Vec<usize>> {
        let matcher = Matcher::new(selector)?;
        let labels = Labels::parse(&selector.labels)?;
        let annotations = Labels::parse(&selector.annotations)?;
        Ok(self.positions(|resource| {
            let current = resource.id(&self.schemas);
            let original = resource.original_id(&self.schemas);
            (matcher.fits_namespace(original.effective_namespace())
                || matcher.fits_namespace(current.effective_namespace()))
                && (matcher.fits_name(&original.name) || matcher.fits_name(&current.name))
                && matcher.fits_gvk(&current.gvk)
                && labels.fits(&resource.labels())
                && annotations.fits(&resource.annotations())
        }))
    }

    pub(crate) fn drop_gone(&mut self) {
        self.list.retain(|resource| !resource.is_gone());
    }
}

fn origin(resource: &Resource) -> String {
    match resource.history.line {
        0 => resource.history.file.clone(),
        line => format!("{}:{line}", resource.history.file),
    }
}

/// The objects of a file: documents that hold something, lists opened.
pub(crate) fn from_bytes(bytes: &[u8], file: &str) -> Result<Vec<Resource>, Error> {
    let mut waiting: std::collections::VecDeque<(Node, u32)> = checked(
        read::documents(bytes)
            .map_err(|error| error.in_file(file))?
            .into_iter()
            .map(|read| (read.node, read.line)),
        file,
    )?
    .into();
    let mut all = Vec::new();
    while let Some((node, line)) = waiting.pop_front() {
        let kind = resource::kind(&node);
        if !kind.ends_with("List") || node.get("items").is_none() {
            all.push(Resource::new(node, file, line));
            continue;
        }
        let at = |message: String| Error { file: file.to_owned(), line: Some(line), ..Error::from(message) };
        match write::to_json(node.get("items").unwrap_or(&Node::null())).map_err(at)? {
            serde_json::Value::Null => {}
            serde_json::Value::Array(items) => {
                let nodes = items.iter().map(|item| (write::from_json(item), line));
                waiting.extend(checked(nodes, file)?);
            }
            _ => return Err(at(format!("`items` of a {kind} must be a list"))),
        }
    }
    Ok(all)
}

/// Leaves out what is empty.
///
/// # Errors
/// An object without kind or name.
fn checked(nodes: impl Iterator<Item = (Node, u32)>, file: &str) -> Result<Vec<(Node, u32)>, Error> {
    let mut all = Vec::new();
    for (node, line) in nodes {
        if node.is_nil_or_empty() {
            continue;
        }
        check_metadata(&node).map_err(|message| Error {
            file: file.to_owned(),
            line: Some(line),
            ..Error::from(message)
        })?;
        all.push((node, line));
    }
    Ok(all)
}

/// Kind and name are there, or it is a list.
pub(crate) fn check_metadata(node: &Node) -> Step<()> {
    let field = |name: &str| node.get(name).filter(|value| !value.is_nil_or_empty()).map_or("", Node::value);
    let kind = field("kind");
    if kind.is_empty() {
        return Err("this is no object of Kubernetes: `kind` is missing".to_owned());
    }
    if kind.ends_with("List") {
        return Ok(());
    }
    let named = node.get("metadata").and_then(|meta| meta.get("name")).filter(|name| !name.is_nil_or_empty());
    if named.map_or("", Node::value).is_empty() {
        return Err(format!("this {kind} has no `metadata.name`"));
    }
    Ok(())
}

/// What the data of a Secret is when its `stringData` is put into it.
fn with_string_data(secret: &Node) -> Step<Node> {
    let mut node = secret.clone();
    if let Some(strings) = secret.get("stringData").filter(|strings| !strings.is_null()) {
        for (name, value) in strings.entries() {
            if !matches!(value, Node::Scalar(_)) {
                return Err(format!("stringData.{name} must be a text"));
            }
        }
        let values = strings.entries().iter().map(|(name, value)| {
            let text = if value.is_null() { "" } else { value.value() };
            (name.to_string(), text.as_bytes().to_vec())
        });
        crate::generate::put_secret_data(&mut node, values.collect())?;
    }
    node.remove("stringData");
    Ok(node)
}

/// Adds the entries that the new object lacks.
fn merge_texts(new: &mut Node, old: &Node, field: &str) -> Step<()> {
    let texts = |node: &Node| {
        let entries = node.get(field).map(Node::entries).unwrap_or_default();
        entries
            .iter()
            .map(|(name, value)| {
                let text = if value.is_null() { "" } else { value.value() };
                (name.to_string(), text.to_owned())
            })
            .collect::<std::collections::BTreeMap<String, String>>()
    };
    let mut all = texts(old);
    all.extend(texts(new));
    new.remove(field);
    if !all.is_empty() {
        new.set(field, write::texts(&all))?;
    }
    Ok(())
}
