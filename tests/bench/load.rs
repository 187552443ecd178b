//! The load: a quarter each of ServiceAccount, ConfigMap, Service and Deployment with 0 replicas; and the bare loop,
//! the fastest way to bring it into a cluster.

use std::time::Instant;

use futures::StreamExt as _;
use http::{Method, Request};
use kube::client::Body;
use serde_json::{Value, json};

use crate::support::git::Repo;

/// Objects of one group: one file in git holds one.
fn group(index: usize) -> [Value; 4] {
    let name = format!("app-{index:04}");
    let labels = json!({"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "bench"});
    let metadata = json!({"name": name, "labels": labels});
    let selector = json!({"app.kubernetes.io/name": name});
    [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {
            "value": "git", "log.level": "info", "url": format!("https://{name}.example/api"),
            "settings.yaml": "cache: {size: 64, ttl: 30s}\nfeatures:\n- search\n- basket\n- login\n",
        }}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {
            "selector": selector, "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
        }}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {
            "replicas": 0,
            "selector": {"matchLabels": selector},
            "template": {"metadata": {"labels": labels}, "spec": {
                "serviceAccountName": name,
                "containers": [{
                    "name": "main",
                    "image": format!("registry.example/{name}:1.0"),
                    "ports": [{"name": "http", "containerPort": 8080}],
                    "env": [{"name": "LOG_LEVEL", "value": "info"}],
                    "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}},
                    "readinessProbe": {"httpGet": {"path": "/healthz", "port": "http"}},
                }],
            }},
        }}),
    ]
}

/// Writes `count` objects below `folder` of a repository.
pub fn write(repo: &Repo, folder: &str, count: usize) {
    for index in 0..count / 4 {
        repo.write(&format!("{folder}/app-{index:04}.yaml"), &file(index, "info"));
    }
}

/// One file: YAML holds JSON. It must not begin as JSON does: kubectl would take all of it for JSON.
pub fn file(index: usize, level: &str) -> String {
    let mut objects = group(index);
    objects[1]["data"]["log.level"] = level.into();
    format!("---\n{}\n", objects.map(|object| object.to_string()).join("\n---\n"))
}

/// The same server-side applies with nothing around them. Returns seconds.
pub async fn bare_loop(client: &kube::Client, namespace: &str, count: usize, at_once: usize) -> f64 {
    let requests: Vec<(String, Vec<u8>)> =
        (0..count / 4).flat_map(group).map(|object| prepared(object, namespace)).collect();
    let began = Instant::now();
    futures::stream::iter(requests)
        .map(|(path, body)| apply(client.clone(), path, body))
        .buffer_unordered(at_once)
        .collect::<Vec<()>>()
        .await;
    began.elapsed().as_secs_f64()
}

/// Path and body of an apply, with marks as long as those of the agent.
pub fn prepared(mut object: Value, namespace: &str) -> (String, Vec<u8>) {
    let (kind, name) = (object["kind"].clone(), object["metadata"]["name"].clone());
    let (kind, name) = (kind.as_str().unwrap_or_default(), name.as_str().unwrap_or_default());
    object["metadata"]["namespace"] = namespace.into();
    object["metadata"]["labels"]["bench.example/agent"] = "bench-agent".into();
    object["metadata"]["labels"]["bench.example/part-of"] =
        "applyset-bench-bench-bench-bench-bench-bench-v1".into();
    object["metadata"]["annotations"]["bench.example/tracking-id"] =
        format!("argocd/bench:apps/{kind}:{namespace}/{name}").into();
    let base = if kind == "Deployment" { "/apis/apps/v1" } else { "/api/v1" };
    let path = format!(
        "{base}/namespaces/{namespace}/{}s/{name}?fieldManager=bench&force=true&fieldValidation=Strict",
        kind.to_lowercase()
    );
    (path, object.to_string().into_bytes())
}

/// One ConfigMap of the load.
pub fn config_map(index: usize) -> Value {
    group(index)[1].clone()
}

/// One server-side apply.
pub async fn apply(client: kube::Client, path: String, body: Vec<u8>) {
    send(&client, Method::PATCH, &path, "application/apply-patch+yaml", body).await;
}

/// One request that must succeed.
pub async fn send(client: &kube::Client, method: Method, path: &str, kind: &str, body: Vec<u8>) -> Value {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(http::header::CONTENT_TYPE, kind)
        .header(http::header::ACCEPT, "application/json")
        .body(Body::from(body))
        .expect("a request");
    let answer = client.send(request).await.expect("an answer");
    let status = answer.status();
    let bytes = answer.into_body().collect_bytes().await.expect("a body");
    let value: Value = serde_json::from_slice(&bytes).expect("JSON");
    assert!(status.is_success(), "{path}: {value}");
    value
}

/// Waits until the controllers have done what a load makes them do, so that it does not burden the next run.
pub async fn settled(client: &kube::Client, namespace: &str, count: usize) {
    let slices = format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices");
    let deployments = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
    let deadline = Instant::now() + std::time::Duration::from_mins(10);
    loop {
        let found = send(client, Method::GET, &deployments, "", Vec::new()).await;
        let items = found["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let seen = items.iter().filter(|item| item["status"]["observedGeneration"].is_u64()).count();
        let sliced = send(client, Method::GET, &slices, "", Vec::new()).await;
        let sliced = sliced["items"].as_array().map_or(0, Vec::len);
        if seen >= count / 4 && sliced >= count / 4 {
            return;
        }
        assert!(Instant::now() < deadline, "the controllers are busy: {seen} and {sliced} of {}", count / 4);
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
}
