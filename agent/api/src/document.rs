//! `apiVersion` and `kind` around every output.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// An output of CLI and API: its JSON carries [`Self::API_VERSION`] and [`Self::KIND`].
///
/// The struct itself has neither field, so that nobody can fill them wrongly.
pub trait Document: Serialize + DeserializeOwned {
    /// `apiVersion` on the wire.
    const API_VERSION: &'static str = crate::PINTLE_V1;
    /// `kind` on the wire.
    const KIND: &'static str;

    /// The JSON with `apiVersion` and `kind`.
    fn to_document(&self) -> Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Value::Object(map) = &mut value {
            map.insert("apiVersion".to_owned(), Value::from(Self::API_VERSION));
            map.insert("kind".to_owned(), Value::from(Self::KIND));
        }
        value
    }

    /// Reads what [`Self::to_document`] wrote.
    ///
    /// # Errors
    /// Another `apiVersion` or `kind`, or fields that do not fit.
    fn from_document(value: Value) -> Result<Self, WrongDocument> {
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if api_version != Self::API_VERSION || kind != Self::KIND {
            return Err(WrongDocument::Other {
                wanted: format!("{} {}", Self::API_VERSION, Self::KIND),
                found: format!("{api_version} {kind}"),
            });
        }
        serde_json::from_value(value)
            .map_err(|error| WrongDocument::Fields { kind: Self::KIND, detail: error.to_string() })
    }
}

/// Why a JSON value is not the expected document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrongDocument {
    /// It is a document of another type or version.
    #[error("expected {wanted}, found {found}")]
    Other {
        /// `apiVersion kind` that was expected.
        wanted: String,
        /// `apiVersion kind` that was there.
        found: String,
    },
    /// A field is missing or has another type.
    #[error("a {kind} with unexpected fields: {detail}")]
    Fields {
        /// The kind.
        kind: &'static str,
        /// What serde says.
        detail: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Doctor, History, Verdict, doctor::Check};
    use serde_json::json;

    #[test]
    fn a_document_round_trips_with_api_version_and_kind() {
        let doctor = Doctor {
            checks: vec![Check {
                name: "git".to_owned(),
                ok: Verdict::Warn,
                detail: "slow".to_owned(),
                hint: "check the link".to_owned(),
            }],
        };
        let value = doctor.to_document();
        assert_eq!(value["apiVersion"], "pintle.dev/v1");
        assert_eq!(value["kind"], "Doctor");
        assert_eq!(Doctor::from_document(value).unwrap(), doctor);
    }

    #[test]
    fn a_document_of_another_kind_or_version_is_refused() {
        let value = Doctor { checks: vec![] }.to_document();
        assert_eq!(
            History::from_document(value).unwrap_err().to_string(),
            "expected pintle.dev/v1 History, found pintle.dev/v1 Doctor"
        );
        let newer = json!({"apiVersion": "pintle.dev/v2", "kind": "Doctor", "checks": []});
        assert!(matches!(Doctor::from_document(newer), Err(WrongDocument::Other { .. })));
    }

    #[test]
    fn a_missing_field_is_named() {
        let value = json!({"apiVersion": "pintle.dev/v1", "kind": "Doctor"});
        assert!(Doctor::from_document(value).unwrap_err().to_string().contains("checks"));
    }
}
