use std::sync::Arc;

use super::*;

fn tree(files: &[(&str, &str)]) -> SourceTree {
    files.iter().map(|(path, text)| ((*path).to_owned(), Entry::File(Arc::from(text.as_bytes())))).collect()
}

fn done(tree: &SourceTree, path: &str, parameters: DirectoryParams) -> Result<Rendered, RenderError> {
    match render(&Inputs { tree, path, source: SourceKind::Directory(parameters), answers: &[] })? {
        Outcome::Done(rendered) => Ok(rendered),
        Outcome::Needs(needs) => Err(RenderError(format!("{needs:?}"))),
    }
}

fn plain() -> DirectoryParams {
    DirectoryParams { extension_filter: true, ..DirectoryParams::default() }
}

fn names(rendered: &Rendered) -> Vec<String> {
    rendered.objects.iter().map(|found| format!("{} {}", found.object.name(), found.origin)).collect()
}

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\n";

fn map(name: &str) -> String {
    MAP.replace("NAME", name)
}

#[test]
fn only_files_of_the_folder_itself_count_unless_recurse() {
    let files = tree(&[
        ("a/x.yaml", &map("x")),
        ("a/b/y.YML", &map("why")),
        ("a/z.txt", "no"),
        ("c.yaml", &map("c")),
    ]);
    assert_eq!(names(&done(&files, "a", plain()).unwrap()), ["x a/x.yaml:1"]);
    let recurse = DirectoryParams { recurse: true, ..plain() };
    assert_eq!(names(&done(&files, "a", recurse).unwrap()), ["why a/b/y.YML:1", "x a/x.yaml:1"]);
}

#[test]
fn exclude_is_asked_before_include_and_a_star_crosses_folders() {
    let files = tree(&[("a.yaml", &map("a")), ("b/c.yaml", &map("c")), ("b/d.yaml", &map("d"))]);
    let parameters = DirectoryParams {
        recurse: true,
        include: Some("{*.yaml,x}".to_owned()),
        exclude: Some("b/d*".to_owned()),
        ..plain()
    };
    assert_eq!(names(&done(&files, ".", parameters).unwrap()), ["a a.yaml:1", "c b/c.yaml:1"]);
}

#[test]
fn lists_are_flattened_and_empty_documents_skipped() {
    let text = format!(
        "# only a comment\n---\n{}---\nnull\n---\napiVersion: v1\nkind: List\nitems:\n- {{apiVersion: v1, kind: Secret, metadata: {{name: s}}}}\n---\napiVersion: v1\nkind: ConfigMapList\nitems: []\n",
        map("a")
    );
    let rendered = done(&tree(&[("a.yaml", &text)]), "", plain()).unwrap();
    assert_eq!(names(&rendered), ["a a.yaml:3", "s a.yaml:12"]);
}

#[test]
fn a_render_is_whole_or_nothing_and_names_file_and_line() {
    let cases = [
        ("a: [", "a.yaml:"),
        ("apiVersion: v1\nkind: ConfigMap\n", "has no metadata.name"),
        ("kind: ConfigMap\nmetadata: {name: x}\n", "has no apiVersion"),
        ("apiVersion: v1\nitems: []\n", "a list of objects needs kind: List"),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n  labels:\n    on: yes\n    a: yes\n",
            "a.yaml:7",
        ),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n  annotations: {wave: 5}\n", "the number 5"),
        ("apiVersion: v1\nkind: Job\nmetadata:\n  generateName: ''\n", "has no metadata.name"),
        ("a: {{ .Values.x }}\nb: [", "Helm template"),
    ];
    for (text, wanted) in cases {
        let files = tree(&[("0.yaml", &map("good")), ("a.yaml", text)]);
        let error = done(&files, "", plain()).unwrap_err().to_string();
        assert!(error.contains(wanted), "{text:?}: {error}");
        assert!(error.contains("a.yaml"), "{error}");
    }
}

#[test]
fn what_is_not_built_yet_is_refused_by_name() {
    for (file, wanted) in
        [("Chart.yaml", "Helm chart"), ("kustomization.yml", "kustomization"), ("x.jsonnet", "Jsonnet")]
    {
        let files = tree(&[("a.yaml", &map("a")), (file, "")]);
        let error = done(&files, "", plain()).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn links_inside_are_followed_and_outside_refused() {
    let mut files = vec![
        ("a/x.yaml".to_owned(), Entry::Symlink("../shared/x.yaml".to_owned())),
        ("shared/x.yaml".to_owned(), Entry::File(Arc::from(map("x").as_bytes()))),
    ];
    let inside: SourceTree = files.iter().cloned().collect();
    assert_eq!(names(&done(&inside, "a", plain()).unwrap()), ["x a/x.yaml:1"]);
    files[0].1 = Entry::Symlink("../../etc/passwd".to_owned());
    let outside: SourceTree = files.into_iter().collect();
    let error = done(&outside, "a", plain()).unwrap_err().to_string();
    assert!(error.contains("leads out of the repository"), "{error}");
}

#[test]
fn a_file_with_the_skip_mark_is_left_out() {
    let text = format!("# +argocd:skip-file-rendering\n{}", map("x"));
    assert!(done(&tree(&[("a.yaml", &text)]), "", plain()).unwrap().objects.is_empty());
}

#[test]
fn duplicate_keys_are_a_warning_and_in_strict_mode_an_error() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: b, a: c}\n";
    let rendered = done(&tree(&[("a.yaml", text)]), "", plain()).unwrap();
    assert!(rendered.problems[0].message.contains("a.yaml:4"), "{:?}", rendered.problems);
    assert_eq!(rendered.objects[0].object.text(&["data", "a"]), "c");
    let strict = DirectoryParams { strict: true, ..plain() };
    assert!(done(&tree(&[("a.yaml", text)]), "", strict).is_err());
}
