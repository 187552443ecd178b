//! `pintle render DIR`: the agent's own renderer on a directory of this machine.

use pintle_model::{Problem, Reason};
use pintle_render::{DirectoryParams, Inputs, Outcome, SourceKind};
use serde_json::{Value, json};

use super::super::args::RenderArgs;
use super::super::exit::{Exit, Failure};
use super::super::screen::{Format, Screen, yaml};
use crate::disk;

/// Prints the objects as a YAML stream, or as one `List` in JSON, as kubectl does. Values of Secrets stand in it
/// as they stand in the files: the output is made to be applied.
pub(in super::super) fn render(screen: &mut Screen<'_>, args: &RenderArgs) -> Result<Exit, Failure> {
    screen.allow(&[])?;
    let tree = disk::read(&args.dir)?;
    let parameters = DirectoryParams {
        recurse: args.recurse,
        include: args.include.clone(),
        exclude: args.exclude.clone(),
        extension_filter: true,
        strict: false,
    };
    let inputs = Inputs { tree: &tree, path: "", source: SourceKind::Directory(parameters), answers: &[] };
    let failed =
        |message: String| Problem::new(Reason::RenderError, format!("{}: {message}", args.dir.display()));
    let rendered = match pintle_render::render(&inputs).map_err(|error| failed(error.to_string()))? {
        Outcome::Done(rendered) => rendered,
        // A directory source needs nothing; what others need only a cluster can answer.
        Outcome::Needs(needs) => {
            return Err(failed(format!("needs what only the agent can fetch: {needs:?}")).into());
        }
    };
    for warning in &rendered.problems {
        screen.note(&format!("warning: {warning}"));
    }
    let objects: Vec<Value> = rendered.objects.iter().map(|desired| desired.object.to_value()).collect();
    if screen.format() == Format::Json {
        screen.value(&json!({"apiVersion": "v1", "kind": "List", "items": objects}))?;
    } else {
        screen.text(&objects.iter().map(yaml).collect::<Vec<_>>().join("---\n"))?;
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(format: Format, dir: &std::path::Path, recurse: bool) -> (Result<Exit, Failure>, String, String) {
        let (mut out, mut err) = (vec![], vec![]);
        let mut screen = Screen::new(&mut out, &mut err, format, (false, false));
        let args =
            RenderArgs { dir: dir.to_owned(), recurse, include: None, exclude: Some("skip*".to_owned()) };
        let ended = render(&mut screen, &args);
        (ended, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    fn config_map(name: &str) -> String {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n")
    }

    #[test]
    fn a_directory_is_printed_as_a_stream_or_a_list() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("deep")).unwrap();
        for (file, name) in [("a.yaml", "a"), ("skip.yaml", "skipped"), ("deep/b.yaml", "b")] {
            std::fs::write(dir.path().join(file), config_map(name)).unwrap();
        }
        let (ended, out, err) = run(Format::Table, dir.path(), true);
        assert_eq!(ended.unwrap(), Exit::Done);
        assert_eq!(out, format!("{}---\n{}", config_map("a"), config_map("b")));
        assert_eq!(err, "");
        let (_, out, _) = run(Format::Json, dir.path(), false);
        let list: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(list["kind"], "List");
        assert_eq!(list["items"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn broken_yaml_is_named_with_file_and_line() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("bad.yaml"), "apiVersion: v1\nkind: [\n").unwrap();
        let (ended, out, _) = run(Format::Table, dir.path(), false);
        let Err(Failure::Problem(problem)) = ended else { panic!("broken YAML must not render") };
        assert_eq!((problem.reason, out.as_str()), (Reason::RenderError, ""));
        assert!(problem.message.contains("bad.yaml:"), "{problem}");
    }
}
