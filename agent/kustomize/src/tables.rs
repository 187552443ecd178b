//! Tables that were generated from the reference, with their origin in their heads.

use std::sync::OnceLock;

use crate::config::{BackReferences, Config, FieldSpec};
use crate::id::Gvk;

mod scopes;

/// Lists with merge keys, and the way to them.
pub(crate) const MERGE_KEYS: &str = include_str!("tables/merge_keys.txt");
const FIELD_SPECS: &str = include_str!("tables/field_specs.txt");

pub(crate) fn is_cluster_scoped(api_version: &str, kind: &str) -> bool {
    scopes::CLUSTER_SCOPED.contains(&(api_version, kind))
}

pub(crate) fn is_namespaced(api_version: &str, kind: &str) -> bool {
    scopes::NAMESPACED.contains(&(api_version, kind))
}

/// The fields that transformers change where no configuration says otherwise.
pub(crate) fn default_config() -> &'static Config {
    static CONFIG: OnceLock<Config> = OnceLock::new();
    CONFIG.get_or_init(|| {
        let mut config = Config::default();
        let mut section = "";
        for line in FIELD_SPECS.lines().filter(|line| !line.starts_with('#')) {
            if let Some(heading) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = heading;
                if let Some(target) = section.strip_prefix("nameReference ") {
                    config.name_reference.push(BackReferences { gvk: gvk(target), referrers: Vec::new() });
                }
                continue;
            }
            let mut parts = line.split(' ');
            let spec = FieldSpec {
                gvk: gvk(parts.next().unwrap_or_default()),
                path: parts.next().unwrap_or_default().to_owned(),
                create: parts.next() == Some("create"),
            };
            if section.starts_with("nameReference ") {
                if let Some(last) = config.name_reference.last_mut() {
                    last.referrers.push(spec);
                }
            } else if let Some(list) = config.list(section) {
                list.push(spec);
            }
        }
        config.sort();
        config
    })
}

/// `kind.version.group`
fn gvk(text: &str) -> Gvk {
    let mut parts = text.splitn(3, '.').map(str::to_owned);
    let kind = parts.next().unwrap_or_default();
    let version = parts.next().unwrap_or_default();
    Gvk { group: parts.next().unwrap_or_default(), version, kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_fields_is_read_whole() {
        let config = default_config();
        assert_eq!(config.name_reference.len(), 16);
        assert_eq!(config.images.len(), 7);
        assert_eq!(config.var_reference.len(), 72);
        assert!(config.name_reference.iter().all(|target| !target.referrers.is_empty()));
    }
}
