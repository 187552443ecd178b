//! Builds nodes from events, whoever scans them, and keeps the limits.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::Error;
use crate::node::{Limits, Node, NodeKind, Span, Style};

/// What a finished node costs when an alias repeats it.
#[derive(Clone, Copy, Default)]
struct Cost {
    nodes: usize,
    bytes: usize,
    height: usize,
}

struct Frame {
    span: Span,
    tag: Option<Arc<str>>,
    anchor: usize,
    cost: Cost,
    content: Content,
}

enum Content {
    Sequence(Vec<Node>),
    Mapping(Vec<(Node, Node)>, Option<Node>),
}

/// Takes the events of one stream. An anchor is a number; 0 means none.
pub(crate) struct Builder<'l> {
    limits: &'l Limits,
    stack: Vec<Frame>,
    anchors: HashMap<usize, (Node, Cost)>,
    root: Option<Node>,
    total: Cost,
}

impl<'l> Builder<'l> {
    pub(crate) fn new(limits: &'l Limits) -> Self {
        Self { limits, stack: Vec::new(), anchors: HashMap::new(), root: None, total: Cost::default() }
    }

    /// The document that the events since the last call made. Anchors end with their document.
    pub(crate) fn take(&mut self) -> Option<Node> {
        self.anchors.clear();
        self.stack.clear();
        self.root.take()
    }

    pub(crate) fn scalar(
        &mut self,
        span: Span,
        text: &str,
        style: Style,
        tag: Option<Arc<str>>,
        anchor: usize,
    ) -> Result<(), Error> {
        let cost = Cost { nodes: 1, bytes: text.len(), height: 0 };
        self.charge(span, cost)?;
        self.add(Node { span, kind: NodeKind::Scalar(text.into()), tag, style }, cost, anchor);
        Ok(())
    }

    pub(crate) fn begin_sequence(
        &mut self,
        span: Span,
        tag: Option<Arc<str>>,
        anchor: usize,
    ) -> Result<(), Error> {
        self.begin(span, tag, anchor, Content::Sequence(Vec::new()))
    }

    pub(crate) fn begin_mapping(
        &mut self,
        span: Span,
        tag: Option<Arc<str>>,
        anchor: usize,
    ) -> Result<(), Error> {
        self.begin(span, tag, anchor, Content::Mapping(Vec::new(), None))
    }

    fn begin(
        &mut self,
        span: Span,
        tag: Option<Arc<str>>,
        anchor: usize,
        content: Content,
    ) -> Result<(), Error> {
        let cost = Cost { nodes: 1, bytes: 0, height: 0 };
        self.charge(span, Cost { height: 1, ..cost })?;
        self.stack.push(Frame { span, tag, anchor, cost, content });
        Ok(())
    }

    /// Ends the innermost sequence or mapping.
    pub(crate) fn end(&mut self) {
        let Some(frame) = self.stack.pop() else { return };
        let kind = match frame.content {
            Content::Sequence(items) => NodeKind::Sequence(items.into()),
            Content::Mapping(entries, _) => NodeKind::Mapping(entries.into()),
        };
        let cost = Cost { height: frame.cost.height + 1, ..frame.cost };
        let node = Node { span: frame.span, kind, tag: frame.tag, style: Style::Collection };
        self.add(node, cost, frame.anchor);
    }

    /// Repeats an anchored node.
    pub(crate) fn alias(&mut self, span: Span, anchor: usize) -> Result<(), Error> {
        let Some((node, cost)) = self.anchors.get(&anchor).cloned() else {
            return Err(Error::syntax(
                span.line,
                span.column,
                "this alias stands inside the value that it names; a value cannot contain itself",
            ));
        };
        self.charge(span, cost)?;
        self.add(node, cost, 0);
        Ok(())
    }

    fn add(&mut self, node: Node, cost: Cost, anchor: usize) {
        if anchor != 0 {
            self.anchors.insert(anchor, (node.clone(), cost));
        }
        let Some(frame) = self.stack.last_mut() else {
            self.root = Some(node);
            return;
        };
        frame.cost.nodes += cost.nodes;
        frame.cost.bytes += cost.bytes;
        frame.cost.height = frame.cost.height.max(cost.height);
        match &mut frame.content {
            Content::Sequence(items) => items.push(node),
            Content::Mapping(entries, key) => match key.take() {
                None => *key = Some(node),
                Some(key) => entries.push((key, node)),
            },
        }
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
        Ok(())
    }
}
