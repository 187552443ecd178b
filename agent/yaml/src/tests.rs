use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

const LIMITS: Limits = Limits { max_bytes: 100_000, max_documents: 10, max_depth: 50, max_nodes: 10_000 };

fn read(text: &str) -> Result<Value, Error> {
    let documents = documents(text.as_bytes(), &LIMITS)?;
    to_json(&documents[0].root, &mut Vec::new(), false)
}

fn value(scalar: &str) -> Value {
    read(&format!("a: {scalar}\n")).unwrap()["a"].clone()
}

#[test]
fn plain_scalars_have_the_types_of_yaml_1_1_as_kubectl_reads_them() {
    for text in ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"] {
        assert_eq!(value(text), json!(true), "{text}");
    }
    for text in ["n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"] {
        assert_eq!(value(text), json!(false), "{text}");
    }
    for text in ["yEs", "oN", "tRUE", "1:30", "2024-01-01", "2024-01-01T00:00:00Z", "0x", "1_a", "+", "."] {
        assert_eq!(value(text), json!(text), "{text}");
    }
    for text in ["~", "null", "Null", "NULL", ""] {
        assert_eq!(value(text), Value::Null, "{text}");
    }
    let numbers = [
        ("0644", json!(420)),
        ("0o644", json!(420)),
        ("0008", json!(8)),
        ("09", json!(9)),
        ("1_000", json!(1000)),
        ("0x1F", json!(31)),
        ("0b101", json!(5)),
        ("1e3", json!(1000)),
        (".5", json!(0.5)),
        ("1.", json!(1)),
        ("+12", json!(12)),
        ("-0", json!(0)),
        ("9007199254740993", json!(9_007_199_254_740_993_i64)),
        ("18446744073709551615", json!(u64::MAX)),
    ];
    for (text, wanted) in numbers {
        assert_eq!(value(text), wanted, "{text}");
    }
}

#[test]
fn quotes_and_tags_decide_before_the_resolver() {
    assert_eq!(value("\"yes\""), json!("yes"));
    assert_eq!(value("'012'"), json!("012"));
    assert_eq!(value("!!str 012"), json!("012"));
    assert_eq!(value("!!binary aGk="), json!("hi"));
    assert_eq!(value("!mine x"), json!("x"));
}

#[test]
fn keys_are_resolved_and_written_as_text() {
    let found = read("y: 1\non: 2\nno: 3\n1: x\n").unwrap();
    assert_eq!(found, json!({"true": 2, "false": 3, "1": "x"}));
}

#[test]
fn merges_are_applied_in_the_order_of_the_document() {
    let base = "b: &b {a: 2, c: 3}\n";
    assert_eq!(read(&format!("{base}x: {{a: 1, <<: *b}}\n")).unwrap()["x"], json!({"a": 2, "c": 3}));
    assert_eq!(read(&format!("{base}x: {{<<: *b, a: 1}}\n")).unwrap()["x"], json!({"a": 1, "c": 3}));
    assert_eq!(
        read("p: &p {a: 1}\nq: &q {a: 2, d: 4}\nx: {<<: [*p, *q]}\n").unwrap()["x"],
        json!({"a": 1, "d": 4})
    );
}

#[test]
fn what_json_cannot_hold_is_an_error_with_its_place() {
    let error = read("a:\n  b: .inf\n").unwrap_err();
    assert_eq!((error.line, error.path.as_str()), (2, "a.b"));
    assert!(read("? [1]\n: x\n").is_err());
}

#[test]
fn streams_are_split_as_kubectl_does() {
    let count = |text: &str| documents(text.as_bytes(), &LIMITS).map(|found| found.len());
    assert_eq!(count("# only a comment\n---\na: 1\n---\n---\nnull\n"), Ok(1));
    assert_eq!(count("\u{feff}a: 1\r\n---\r\nb: 2\r\n"), Ok(2));
    assert_eq!(count("{\"a\": 1}\n{\"b\": 2}\n"), Ok(2));
    assert!(count("a: 1\n--- b: 2\n").is_err());
}

#[test]
fn an_alias_bomb_and_deep_nesting_end_at_the_limits() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let list = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{list}]\n"));
    }
    assert!(documents(bomb.as_bytes(), &LIMITS).is_err());
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    assert!(documents(deep.as_bytes(), &LIMITS).is_err());
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Typed {
    target_revision: String,
    #[serde(default)]
    count: Option<i64>,
}

#[test]
fn typed_strings_take_numbers_and_say_so() {
    let node = &documents(b"targetRevision: 1.10\ncount: 2\n", &LIMITS).unwrap()[0].root;
    let (found, notes) = from_node_with_notes::<Typed>(node).unwrap();
    assert_eq!(found, Typed { target_revision: "1.1".into(), count: Some(2) });
    assert_eq!((notes[0].text.as_str(), notes[0].became.as_str(), notes[0].line), ("1.10", "1.1", 1));
}

#[test]
fn an_unknown_or_repeated_field_is_named_with_its_line_and_the_nearest_one() {
    let fail =
        |text: &str| from_node::<Typed>(&documents(text.as_bytes(), &LIMITS).unwrap()[0].root).unwrap_err();
    let error = fail("targetRevision: a\ntargetRevison: b\n");
    assert_eq!(error.line, 2);
    assert!(error.message.contains("targetRevision"), "{error}");
    assert!(fail("targetRevision: a\ntargetRevision: b\n").message.contains("lines 1 and 2"));
}

#[test]
fn an_error_never_shows_a_value() {
    let error = read("apiVersion: v1\nkind: Secret\ndata:\n  password: hunter2: x\n").unwrap_err();
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

fn json_value() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::prelude::*;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~\n\u{e9}\u{1F600}]{0,20}".prop_map(Value::from),
        prop_oneof![Just("yes"), Just("0644"), Just("12:30:45"), Just("2024-01-01"), Just("~"), Just("- x")]
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-z0-9./ -]{1,8}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest::proptest! {
    #[test]
    fn what_is_written_reads_back_equal(found in json_value()) {
        let text = to_string(&json!({"x": found}));
        let again = read(&text);
        proptest::prop_assert_eq!(again.as_ref().ok(), Some(&json!({"x": found})), "{}", text);
    }

    #[test]
    fn no_input_panics(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200)) {
        if let Ok(found) = documents(&bytes, &LIMITS) {
            for document in found {
                let _ = to_json(&document.root, &mut Vec::new(), true);
            }
        }
    }
}
