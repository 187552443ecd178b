//! Builds nodes from events, whoever reads them, and keeps the limits.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::Error;
use crate::node::{Limits, Node, NodeKind, Span, Style};
use crate::resolve::Resolver;
use crate::value::is_merge;

/// What a finished node costs when an alias repeats it.
#[derive(Clone, Copy, Default)]
struct Cost {
    nodes: usize,
    bytes: usize,
    height: usize,
    /// What go-yaml counts: nodes and aliases.
    steps: usize,
}

struct Frame {
    span: Span,
    tag: Option<Arc<str>>,
    anchor: Option<Arc<str>>,
    cost: Cost,
    content: Content,
}

enum Content {
    Sequence(Vec<Node>),
    Mapping(Vec<(Node, Node)>, Option<Node>),
}

#[derive(Clone)]
enum Anchored {
    /// The value is not complete yet; its depth tells it from others of the same name.
    Open(usize),
    Done(Node, Cost),
}

/// Takes the events of one stream.
pub(crate) struct Builder<'l> {
    limits: &'l Limits,
    stack: Vec<Frame>,
    /// A name belongs to the value that began with it last, complete or not.
    anchors: HashMap<Arc<str>, Anchored>,
    root: Option<Node>,
    total: Cost,
    steps: usize,
    alias_steps: usize,
}

impl<'l> Builder<'l> {
    pub(crate) fn new(limits: &'l Limits) -> Self {
        Self {
            limits,
            stack: Vec::new(),
            anchors: HashMap::new(),
            root: None,
            total: Cost::default(),
            steps: 1,
            alias_steps: 0,
        }
    }

    pub(crate) fn limits(&self) -> &'l Limits {
        self.limits
    }

    /// The document that the events since the last call made. Anchors end with their document.
    pub(crate) fn take(&mut self) -> Option<Node> {
        self.anchors.clear();
        self.stack.clear();
        self.steps = 1;
        self.alias_steps = 0;
        self.root.take()
    }

    pub(crate) fn scalar(
        &mut self,
        span: Span,
        text: &str,
        style: Style,
        tag: Option<Arc<str>>,
        anchor: Option<&str>,
    ) -> Result<(), Error> {
        let cost = Cost { nodes: 1, bytes: text.len(), height: 0, steps: 1 };
        self.charge(span, cost)?;
        let node = Node { span, kind: NodeKind::Scalar(text.into()), tag, style };
        self.add(node, cost, anchor.map(Arc::from), false)
    }

    pub(crate) fn begin_sequence(
        &mut self,
        span: Span,
        tag: Option<Arc<str>>,
        anchor: Option<&str>,
    ) -> Result<(), Error> {
        self.begin(span, tag, anchor, Content::Sequence(Vec::new()))
    }

    pub(crate) fn begin_mapping(
        &mut self,
        span: Span,
        tag: Option<Arc<str>>,
        anchor: Option<&str>,
    ) -> Result<(), Error> {
        self.begin(span, tag, anchor, Content::Mapping(Vec::new(), None))
    }

    fn begin(
        &mut self,
        span: Span,
        tag: Option<Arc<str>>,
        anchor: Option<&str>,
        content: Content,
    ) -> Result<(), Error> {
        let cost = Cost { nodes: 1, bytes: 0, height: 0, steps: 1 };
        self.charge(span, Cost { height: 1, ..cost })?;
        let anchor: Option<Arc<str>> = anchor.map(Arc::from);
        if let Some(name) = &anchor {
            self.anchors.insert(name.clone(), Anchored::Open(self.stack.len()));
        }
        self.stack.push(Frame { span, tag, anchor, cost, content });
        Ok(())
    }

    /// Ends the innermost sequence or mapping.
    pub(crate) fn end(&mut self) -> Result<(), Error> {
        let Some(frame) = self.stack.pop() else { return Ok(()) };
        let kind = match frame.content {
            Content::Sequence(items) => NodeKind::Sequence(items.into()),
            Content::Mapping(entries, _) => NodeKind::Mapping(entries.into()),
        };
        let cost = Cost { height: frame.cost.height + 1, ..frame.cost };
        let node = Node { span: frame.span, kind, tag: frame.tag, style: Style::Collection };
        self.add(node, cost, frame.anchor, false)
    }

    /// Repeats an anchored node.
    pub(crate) fn alias(&mut self, span: Span, name: &str) -> Result<(), Error> {
        let refuse = |message: &str| Err(Error::syntax(span.line, span.column, message));
        let (node, cost) = match self.anchors.get(name) {
            Some(Anchored::Done(node, cost)) => (node.clone(), *cost),
            Some(Anchored::Open(_)) => {
                return refuse(
                    "this alias stands inside the value that it names; a value cannot contain itself",
                );
            }
            None => {
                return refuse(
                    "an alias (`*name`) without an anchor (`&name`) before it in the same document; a text that \
                     begins with `*` needs quotes",
                );
            }
        };
        self.charge(span, Cost { steps: cost.steps + 1, ..cost })?;
        self.alias_steps = self.alias_steps.saturating_add(cost.steps);
        if is_excessive(self.steps, self.alias_steps) {
            return refuse("aliases make up nearly all of this document; kubectl refuses it too");
        }
        self.add(node, Cost { steps: cost.steps + 1, ..cost }, None, true)
    }

    fn add(
        &mut self,
        mut node: Node,
        cost: Cost,
        anchor: Option<Arc<str>>,
        alias: bool,
    ) -> Result<(), Error> {
        let depth = self.stack.len();
        if let Some(name) = anchor {
            // An inner value of the same name has taken it from a collection that ends only now.
            let lost = matches!(node.kind, NodeKind::Sequence(_) | NodeKind::Mapping(_))
                && !matches!(self.anchors.get(&name), Some(Anchored::Open(at)) if *at == depth);
            if !lost {
                self.anchors.insert(name, Anchored::Done(node.clone(), cost));
            }
        }
        let Some(frame) = self.stack.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        frame.cost.nodes += cost.nodes;
        frame.cost.bytes += cost.bytes;
        frame.cost.steps += cost.steps;
        frame.cost.height = frame.cost.height.max(cost.height);
        match &mut frame.content {
            Content::Sequence(items) => items.push(node),
            Content::Mapping(entries, key) => match key.take() {
                None => {
                    // To Go only a `<<` that stands in its place merges.
                    if alias && is_merge(&node, Resolver::V2) {
                        node.style = Style::DoubleQuoted;
                        node.tag = None;
                    }
                    *key = Some(node);
                }
                Some(key) => {
                    // Go takes `*one` and `[*one, *two]` behind `<<`, but no alias of a list.
                    if alias && is_merge(&key, Resolver::V2) && !matches!(node.kind, NodeKind::Mapping(_)) {
                        return Err(Error::syntax(
                            key.span.line,
                            key.span.column,
                            "`<<` takes an alias of a mapping, or a list of them",
                        ));
                    }
                    entries.push((key, node));
                }
            },
        }
        Ok(())
    }

    fn charge(&mut self, span: Span, cost: Cost) -> Result<(), Error> {
        let refuse = |message| Err(Error::syntax(span.line, span.column, message));
        if self.stack.len() + cost.height > self.limits.max_depth {
            return refuse(format!("more than {} levels of nesting", self.limits.max_depth));
        }
        self.total.nodes = self.total.nodes.saturating_add(cost.nodes);
        if self.total.nodes > self.limits.max_nodes {
            return refuse(format!(
                "more than {} values when aliases are expanded; split the file",
                self.limits.max_nodes
            ));
        }
        self.total.bytes = self.total.bytes.saturating_add(cost.bytes);
        if self.total.bytes > self.limits.max_bytes {
            return refuse(format!(
                "more than {} bytes of text when aliases are expanded; split the file",
                self.limits.max_bytes
            ));
        }
        self.steps = self.steps.saturating_add(cost.steps);
        Ok(())
    }
}

/// go-yaml's measure against documents that are small on disk and large in memory: 99 % of a document may come from
/// aliases up to 400,000 steps, and ever less up to 4,000,000.
fn is_excessive(steps: usize, alias_steps: usize) -> bool {
    const LOW: f64 = 400_000.0;
    const HIGH: f64 = 4_000_000.0;
    if alias_steps <= 100 || steps <= 1000 {
        return false;
    }
    let part = ((steps as f64 - LOW) / (HIGH - LOW)).clamp(0.0, 1.0);
    alias_steps as f64 / steps as f64 > 0.99 - 0.89 * part
}
