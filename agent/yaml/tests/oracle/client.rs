//! The reference behind its line protocol (tests/oracle of the repository).

use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Sends all requests at once and gives the answers in their order; an error is none.
pub(crate) fn ask(requests: Vec<String>) -> Vec<Option<Value>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle/build.sh");
    let built = Command::new("bash").arg(&script).stderr(Stdio::inherit()).output().unwrap();
    assert!(built.status.success(), "{} failed", script.display());
    let binary = String::from_utf8(built.stdout).unwrap();
    let mut child = Command::new(binary.trim()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take().unwrap();
    let count = requests.len();
    let writer = std::thread::spawn(move || {
        let mut stdin = BufWriter::new(stdin);
        for request in requests {
            writeln!(stdin, "{request}").unwrap();
        }
    });
    let answers: Vec<Option<Value>> = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(|line| {
            let mut answer: Value = serde_json::from_str(&line.unwrap()).unwrap();
            answer.get_mut("ok").map(Value::take)
        })
        .collect();
    writer.join().unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(answers.len(), count);
    answers
}

/// The text of a JSON string that YAML reads as well: its reader takes no control characters.
pub(crate) fn json(value: &Value) -> String {
    let mut text = String::new();
    for c in value.to_string().chars() {
        match u32::from(c) {
            code @ (0x7f..=0x9f | 0x2028 | 0x2029 | 0xfeff | 0xfffe | 0xffff) => {
                text.push_str(&format!("\\u{code:04x}"));
            }
            _ => text.push(c),
        }
    }
    text
}
