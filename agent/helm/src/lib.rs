//! Helm charts. So far: telling a chart from a plain folder, and reading what it says of itself.

use serde::Deserialize;

/// `Chart.yaml`, as far as it names the chart.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChartMetadata {
    /// `v1` or `v2`.
    pub api_version: String,
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// `application` (also when missing) or `library`.
    #[serde(default, rename = "type")]
    pub kind: String,
}

/// File that makes a folder a chart.
pub const CHART_FILE: &str = "Chart.yaml";

/// Is one of these names (files directly in the folder) a chart's?
pub fn is_chart<'a>(names: impl IntoIterator<Item = &'a str>) -> bool {
    names.into_iter().any(|name| name == CHART_FILE)
}

/// Reads `Chart.yaml`.
pub fn metadata(node: &pintle_yaml::Node) -> Result<ChartMetadata, pintle_yaml::Error> {
    pintle_yaml::from_node(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_is_known_by_its_file() {
        assert!(is_chart(["values.yaml", "Chart.yaml"]));
        assert!(!is_chart(["chart.yaml"]));
    }

    #[test]
    fn a_version_that_looks_like_a_number_stays_a_text() {
        let limits =
            pintle_yaml::Limits { max_bytes: 1_000, max_documents: 1, max_depth: 10, max_nodes: 100 };
        let text = b"apiVersion: v2\nname: shop\nversion: 1.10\nappVersion: x\n";
        let documents = pintle_yaml::documents(text, &limits).unwrap();
        assert_eq!(metadata(&documents[0].root).unwrap().version, "1.1");
    }
}
