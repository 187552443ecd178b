//! Objects: apply, get, list, delete, patch, events.

use http::Method;
use pintle_model::{Object, ObjectKey, Reason, limits, names};
use serde_json::{Value, json};

use super::{ApiFailure, ApiResource, Cluster, EventRecord, failure};

/// How the server treats unknown and duplicate fields of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValidation {
    /// They are errors.
    Strict,
    /// They are warnings.
    Warn,
    /// They are dropped silently (`Validate=false`).
    Ignore,
}

/// Field manager of objects that a person puts back: it is not git that wants them so.
const RESTORE_MANAGER: &str = "pintle-restore";

/// Options of a server-side apply. Always with force: git wins.
#[derive(Debug, Clone, Copy)]
pub struct ApplyOptions {
    /// Only answer what would be.
    pub dry_run: bool,
    /// Field validation.
    pub field_validation: FieldValidation,
}

/// Answer to an apply.
#[derive(Debug, Clone)]
pub struct Applied {
    /// The object as the server has it now.
    pub object: Object,
    /// HTTP 201: it did not exist.
    pub created: bool,
    /// The server's warnings.
    pub warnings: Vec<String>,
}

/// Answer to a delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deleted {
    /// It is gone already; otherwise finalizers keep it for a while.
    pub gone: bool,
}

impl Cluster {
    /// Server-side apply as our field manager, with force.
    pub async fn apply(
        &self,
        resource: &ApiResource,
        object: &Object,
        options: &ApplyOptions,
    ) -> Result<Applied, ApiFailure> {
        let validation = match options.field_validation {
            FieldValidation::Strict => "Strict",
            FieldValidation::Warn => "Warn",
            FieldValidation::Ignore => "Ignore",
        };
        let dry_run = if options.dry_run { "&dryRun=All" } else { "" };
        let path = format!(
            "{}?fieldManager={}&force=true&fieldValidation={validation}{dry_run}",
            path(resource, object.namespace(), Some(object.name())),
            names::FIELD_MANAGER
        );
        let body = serde_json::to_vec(object.fields()).unwrap_or_default();
        let answer =
            self.call(Method::PATCH, &path, Some(("application/apply-patch+yaml", body)), "").await?;
        let warnings = answer
            .headers
            .get_all(http::header::WARNING)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .map(warning_text)
            .collect();
        Ok(Applied { object: parse(&answer.body, &path)?, created: answer.status == 201, warnings })
    }

    /// Makes an object that is not there.
    pub async fn create(&self, resource: &ApiResource, object: &Object) -> Result<Object, ApiFailure> {
        let path = format!("{}?fieldManager={RESTORE_MANAGER}", path(resource, object.namespace(), None));
        let body = serde_json::to_vec(object.fields()).unwrap_or_default();
        let answer = self.call(Method::POST, &path, Some(("application/json", body)), "").await?;
        parse(&answer.body, &path)
    }

    /// Replaces an object that is there: everything that the payload does not say goes.
    pub async fn replace(&self, resource: &ApiResource, object: &Object) -> Result<Object, ApiFailure> {
        let path = format!(
            "{}?fieldManager={}",
            path(resource, object.namespace(), Some(object.name())),
            names::FIELD_MANAGER
        );
        let body = serde_json::to_vec(object.fields()).unwrap_or_default();
        let answer = self.call(Method::PUT, &path, Some(("application/json", body)), "").await?;
        parse(&answer.body, &path)
    }

    /// One object; `None` when it does not exist.
    pub async fn get(&self, resource: &ApiResource, key: &ObjectKey) -> Result<Option<Object>, ApiFailure> {
        let path = path(resource, &key.namespace, Some(&key.name));
        match self.call(Method::GET, &path, None, "").await {
            Ok(answer) => parse(&answer.body, &path).map(Some),
            // 404 of the object names it in its details; 404 of the path means that the kind is unknown here.
            Err(failure) if failure.code == 404 => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// All objects of a kind, in pages; `metadata_only` leaves out everything but metadata.
    pub async fn list(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        selector: Option<&str>,
        metadata_only: bool,
    ) -> Result<Vec<Object>, ApiFailure> {
        let mut objects = Vec::new();
        let mut next = String::new();
        loop {
            let page = self.page(resource, namespace, selector, metadata_only, &next).await?;
            objects.extend(page.objects);
            if page.next.is_empty() {
                return Ok(objects);
            }
            next = page.next;
        }
    }

    pub(super) async fn page(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        selector: Option<&str>,
        metadata_only: bool,
        next: &str,
    ) -> Result<Page, ApiFailure> {
        let mut path = format!(
            "{}?limit={}",
            path(resource, namespace.unwrap_or_default(), None),
            limits::LIST_PAGE_SIZE
        );
        if let Some(selector) = selector {
            path.push_str(&format!("&labelSelector={}", encode(selector)));
        }
        if !next.is_empty() {
            path.push_str(&format!("&continue={}", encode(next)));
        }
        let accept = if metadata_only {
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
        } else {
            ""
        };
        let mut list = self.json(&path, accept).await?;
        let items = match list["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        };
        let text = |name: &str| list["metadata"][name].as_str().unwrap_or_default().to_owned();
        Ok(Page {
            objects: items.into_iter().filter_map(|item| with_kind(item, resource)).collect(),
            next: text("continue"),
            version: text("resourceVersion"),
        })
    }

    /// Deletes one object if it still has this UID. An object that is gone counts as deleted.
    pub async fn delete(
        &self,
        resource: &ApiResource,
        key: &ObjectKey,
        uid: &str,
        propagation: &str,
    ) -> Result<Deleted, ApiFailure> {
        let path = path(resource, &key.namespace, Some(&key.name));
        let body = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation,
            "preconditions": {"uid": uid}});
        let body = serde_json::to_vec(&body).unwrap_or_default();
        match self.call(Method::DELETE, &path, Some(("application/json", body)), "").await {
            Ok(answer) => {
                let value: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
                // The object itself is answered while finalizers keep it, a Status when it is gone.
                Ok(Deleted { gone: value["kind"] == "Status" })
            }
            Err(failure) if failure.code == 404 => Ok(Deleted { gone: true }),
            Err(failure) => Err(failure),
        }
    }

    /// One JSON patch (RFC 6902).
    pub async fn json_patch(
        &self,
        resource: &ApiResource,
        key: &ObjectKey,
        operations: &[Value],
    ) -> Result<Object, ApiFailure> {
        let path = format!(
            "{}?fieldManager={}",
            path(resource, &key.namespace, Some(&key.name)),
            names::FIELD_MANAGER
        );
        let body = serde_json::to_vec(operations).unwrap_or_default();
        let answer = self.call(Method::PATCH, &path, Some(("application/json-patch+json", body)), "").await?;
        parse(&answer.body, &path)
    }

    /// Creates a namespace if it is not there.
    pub async fn ensure_namespace(&self, name: &str) -> Result<(), ApiFailure> {
        let path = format!("/api/v1/namespaces/{name}");
        match self.call(Method::GET, &path, None, "").await {
            Ok(_) => return Ok(()),
            Err(failure) if failure.code == 404 => {}
            Err(failure) => return Err(failure),
        }
        let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let body = serde_json::to_vec(&body).unwrap_or_default();
        match self.call(Method::POST, "/api/v1/namespaces", Some(("application/json", body)), "").await {
            Ok(_) => Ok(()),
            // Somebody was faster.
            Err(failure) if failure.code == 409 => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// A ConfigMap of the agent; `None` when it does not exist.
    pub async fn read_configmap(&self, namespace: &str, name: &str) -> Result<Option<Object>, ApiFailure> {
        self.get(&configmaps(), &ObjectKey::new("", "ConfigMap", namespace, name)).await
    }

    /// Applies a ConfigMap of the agent.
    pub async fn apply_configmap(&self, object: &Object) -> Result<Object, ApiFailure> {
        let options = ApplyOptions { dry_run: false, field_validation: FieldValidation::Strict };
        Ok(self.apply(&configmaps(), object, &options).await?.object)
    }

    /// May our user do this (SelfSubjectAccessReview)?
    pub async fn may(
        &self,
        group: &str,
        resource: &str,
        verb: &str,
        namespace: &str,
    ) -> Result<bool, ApiFailure> {
        let body = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {
            "resourceAttributes": {"group": group, "resource": resource, "verb": verb, "namespace": namespace}}});
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let answer = self.call(Method::POST, path, Some(("application/json", body)), "").await?;
        let value: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        Ok(value["status"]["allowed"] == true)
    }

    /// Writes an event on an object.
    pub async fn create_event(&self, record: &EventRecord) -> Result<(), ApiFailure> {
        // Events of cluster-scoped objects go to `default`, as kubectl looks for them there.
        let namespace = if record.key.namespace.is_empty() { "default" } else { &*record.key.namespace };
        let now = jiff::Timestamp::now();
        let body = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": format!("{}.", record.key.name), "namespace": namespace},
            "involvedObject": {
                "apiVersion": record.api_version,
                "kind": &*record.key.kind,
                "namespace": &*record.key.namespace,
                "name": &*record.key.name,
                "uid": record.uid,
                "resourceVersion": record.resource_version,
            },
            "type": record.kind,
            "reason": record.reason,
            "message": cut(&record.message, 1_024),
            "action": record.action,
            "source": {"component": "pintle"},
            "reportingComponent": "pintle.dev/agent",
            "reportingInstance": "pintle",
            "firstTimestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "lastTimestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
            "count": 1,
        });
        let path = format!("/api/v1/namespaces/{namespace}/events");
        let body = serde_json::to_vec(&body).unwrap_or_default();
        self.call(Method::POST, &path, Some(("application/json", body)), "").await.map(|_| ())
    }
}

/// One page of a list.
pub(super) struct Page {
    pub(super) objects: Vec<Object>,
    pub(super) next: String,
    pub(super) version: String,
}

fn configmaps() -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        plural: "configmaps".to_owned(),
        namespaced: true,
    }
}

/// Path of a kind, a namespace's kind, or one object.
pub(super) fn path(resource: &ApiResource, namespace: &str, name: Option<&str>) -> String {
    let mut path = if resource.group.is_empty() {
        format!("/api/{}", resource.version)
    } else {
        format!("/apis/{}/{}", resource.group, resource.version)
    };
    if resource.namespaced && !namespace.is_empty() {
        path.push_str(&format!("/namespaces/{}", encode(namespace)));
    }
    path.push_str(&format!("/{}", resource.plural));
    if let Some(name) = name {
        path.push_str(&format!("/{}", encode(name)));
    }
    path
}

/// Items of a list carry no kind of their own, and metadata-only items carry another.
pub(super) fn with_kind(mut item: Value, resource: &ApiResource) -> Option<Object> {
    if let Value::Object(map) = &mut item {
        map.insert("apiVersion".to_owned(), resource.api_version().into());
        map.insert("kind".to_owned(), resource.kind.clone().into());
    }
    Object::try_from(item).ok()
}

fn parse(body: &[u8], path: &str) -> Result<Object, ApiFailure> {
    serde_json::from_slice(body).map_err(|error| {
        failure::plain(Reason::ServerError, format!("the answer to {path} is not an object: {error}"))
    })
}

/// `299 - "text"` (RFC 7234) as its text.
fn warning_text(header: &str) -> String {
    header.split_once('"').map_or(header, |(_, text)| text.trim_end_matches('"')).to_owned()
}

/// Percent-encodes what is not safe in a path or query.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

fn cut(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}
