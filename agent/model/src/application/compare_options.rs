//! Compare options: the texts of the annotation `argocd.argoproj.io/compare-options`, typed.

use super::SpecError;
use crate::names::COMPARE_OPTIONS;

/// Typed compare options of one object.
///
/// `ServerSideDiff` and `IncludeMutationWebhook` are accepted with the values that Argo CD knows: our comparison
/// always starts from what the API server answered to our own apply, so that both have one result
/// (docs/differences.md).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompareOptions {
    /// `IgnoreExtraneous`: once git no longer has the object, it does not make the application OutOfSync.
    pub ignore_extraneous: bool,
}

const VALID: &str =
    "IgnoreExtraneous, ServerSideDiff=true, ServerSideDiff=false, IncludeMutationWebhook=true";

/// Reads the comma list of an object's annotation. Blanks around the parts and empty parts are allowed.
pub fn parse_compare_options(text: &str) -> Result<CompareOptions, SpecError> {
    let mut options = CompareOptions::default();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match part {
            "IgnoreExtraneous" => options.ignore_extraneous = true,
            "ServerSideDiff=true" | "ServerSideDiff=false" | "IncludeMutationWebhook=true" => {}
            other => {
                return Err(SpecError::new(
                    format!("metadata.annotations[{COMPARE_OPTIONS}]"),
                    format!("`{other}` is not a compare option; valid: {VALID}"),
                ));
            }
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_compare_option_is_named_with_the_valid_ones() {
        assert!(parse_compare_options("IgnoreExtraneous, ServerSideDiff=true").unwrap().ignore_extraneous);
        assert!(!parse_compare_options("").unwrap().ignore_extraneous);
        let error = parse_compare_options("IgnoreExtranous").unwrap_err().to_string();
        assert!(error.contains("IgnoreExtranous") && error.contains("valid: IgnoreExtraneous"), "{error}");
    }
}
