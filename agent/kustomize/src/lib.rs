//! Kustomize. So far: telling a kustomization from a plain folder.

/// Names that a kustomization file may have; exactly one of them in a folder.
pub const KUSTOMIZATION_FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// More than one kustomization file in a folder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("found {} in one folder; a kustomization has exactly one file", .0.join(" and "))]
pub struct Ambiguous(pub Vec<String>);

/// The kustomization file among these names (files directly in the folder), if there is one.
pub fn find<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Option<&'a str>, Ambiguous> {
    let found: Vec<&str> = names.into_iter().filter(|name| KUSTOMIZATION_FILE_NAMES.contains(name)).collect();
    match found[..] {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => Err(Ambiguous(found.into_iter().map(str::to_owned).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_kustomization_files_are_an_error() {
        assert_eq!(find(["a.yaml"]), Ok(None));
        assert_eq!(find(["a.yaml", "Kustomization"]), Ok(Some("Kustomization")));
        let error = find(["kustomization.yaml", "kustomization.yml"]).unwrap_err();
        assert!(error.to_string().contains("kustomization.yaml and kustomization.yml"));
    }
}
