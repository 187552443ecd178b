//! The order of the result.

use std::cmp::Ordering;

use crate::error::Step;
use crate::id::{Gvk, ORDER_FIRST, ORDER_LAST, ResId};
use crate::kustfile::SortOptions;
use crate::resmap::ResMap;

/// Sorts as the options say: `fifo` leaves the order of the files, `legacy` sorts by kind.
pub(crate) fn run(map: &mut ResMap, options: &SortOptions) -> Step<()> {
    match options.order.as_str() {
        "fifo" if options.legacy.is_some() => {
            Err("sortOptions.legacySortOptions means nothing with `order: fifo`; remove it or use `legacy`"
                .to_owned())
        }
        "fifo" => Ok(()),
        "legacy" => {
            let (first, last) = options.legacy.clone().unwrap_or_else(|| {
                let own = |list: &[&str]| list.iter().map(|kind| (*kind).to_owned()).collect();
                (own(&ORDER_FIRST), own(&ORDER_LAST))
            });
            let schemas = map.schemas.clone();
            map.list.sort_by_cached_key(|resource| {
                let id = resource.id(&schemas);
                Key { rank: rank(&id.gvk.kind, &first, &last), id }
            });
            Ok(())
        }
        other => Err(format!("sortOptions.order is {other:?}, but only `legacy` and `fifo` are known")),
    }
}

fn rank(kind: &str, first: &[String], last: &[String]) -> i64 {
    // The last one counts where a kind stands twice.
    let place =
        |list: &[String]| list.iter().rposition(|known| known == kind).and_then(|at| i64::try_from(at).ok());
    match (place(last), place(first)) {
        (Some(at), _) => at + 1,
        (None, Some(at)) => at - i64::try_from(first.len()).unwrap_or(0),
        (None, None) => 0,
    }
}

#[derive(PartialEq, Eq)]
struct Key {
    rank: i64,
    id: ResId,
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        if self.id.gvk == other.id.gvk {
            return text(&self.id).cmp(&text(&other.id));
        }
        self.rank.cmp(&other.rank).then_with(|| by_kind(&self.id.gvk, &other.id.gvk))
    }
}

fn by_kind(a: &Gvk, b: &Gvk) -> Ordering {
    let order = a.sort_text().cmp(&b.sort_text());
    let namespaces =
        a.kind == "Namespace" && b.kind == "Namespace" && (a.group.is_empty() || b.group.is_empty());
    if namespaces { order.reverse() } else { order }
}

fn text(id: &ResId) -> String {
    let or = |text: &str, none: &str| if text.is_empty() { none.to_owned() } else { text.to_owned() };
    format!("{}|{}|{}", id.gvk, or(&id.namespace, "~X"), or(&id.name, "~N"))
}
