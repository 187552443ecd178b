//! The reference behind its line protocol.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// The answers to all requests, in their order.
pub fn ask(requests: &[Value]) -> Vec<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle/build.sh");
    let built = Command::new("sh").arg(&script).stderr(Stdio::inherit()).output().expect("build.sh runs");
    assert!(built.status.success(), "tests/oracle/build.sh failed");
    let binary = String::from_utf8(built.stdout).expect("a path");
    let mut oracle = Command::new(binary.trim())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the oracle starts");
    let mut stdin = oracle.stdin.take().expect("stdin");
    let lines: Vec<String> = requests.iter().map(Value::to_string).collect();
    let writer = std::thread::spawn(move || {
        for line in lines {
            stdin.write_all(line.as_bytes()).expect("the oracle reads");
            stdin.write_all(b"\n").expect("the oracle reads");
        }
    });
    let stdout = BufReader::new(oracle.stdout.take().expect("stdout"));
    let answers: Vec<Value> =
        stdout.lines().map(|line| serde_json::from_str(&line.expect("a line")).expect("an answer")).collect();
    writer.join().expect("all requests are sent");
    oracle.wait().expect("the oracle ends");
    assert_eq!(answers.len(), requests.len(), "answers of the oracle");
    answers
}
