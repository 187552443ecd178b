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

fn read_v3(text: &str) -> Result<Value, Error> {
    let documents = documents_as(text.as_bytes(), Resolver::V3, &LIMITS)?;
    to_json_as(&documents[0].root, Resolver::V3, &mut Vec::new(), false)
}

fn place(text: &str) -> (u32, u32) {
    let error = documents(text.as_bytes(), &LIMITS).unwrap_err();
    (error.line, error.column)
}

#[test]
fn a_file_mode_with_a_leading_zero_is_octal() {
    // C-01, C-02.
    assert_eq!(value("0644"), json!(420));
    assert_eq!(value("0400"), json!(256));
    assert_eq!(value("0o644"), json!(420));
    assert_eq!(value("0008"), json!(8));
}

#[test]
fn a_bare_yes_in_data_is_a_boolean_whose_place_a_typed_error_names() {
    // C-03.
    let documents = documents(b"data:\n  a: x\n  b: yes\n", &LIMITS).unwrap();
    let b = documents[0].root.get("data").and_then(|data| data.get("b")).unwrap();
    assert_eq!((b.span.line, b.span.column), (3, 6));
    assert_eq!(to_json(b, &mut Vec::new(), false).unwrap(), json!(true));
}

#[test]
fn a_key_twice_is_a_warning_and_an_error_where_asked_for() {
    // C-04.
    let text = "a: 1\nb:\n  c: 1\n  c: 2\n";
    let root = &documents(text.as_bytes(), &LIMITS).unwrap()[0].root;
    let mut warnings = Vec::new();
    assert_eq!(to_json(root, &mut warnings, false).unwrap(), json!({"a": 1, "b": {"c": 2}}));
    assert_eq!(warnings.len(), 1);
    assert_eq!((warnings[0].line, warnings[0].column, warnings[0].path.as_str()), (4, 3, "b"));
    assert_eq!(to_json(root, &mut Vec::new(), true).unwrap_err().line, 4);
    let error = read_v3(text).unwrap_err();
    assert!(error.message.contains("lines 3 and 4"), "{error}");
}

#[test]
fn two_merges_in_one_mapping_follow_the_resolver() {
    // C-06.
    let text = "p: &p {a: 1}\nq: &q {a: 2, b: 3}\nx:\n  <<: *p\n  <<: *q\nl:\n- <<: *p\n";
    let found = read(text).unwrap();
    assert_eq!(found["x"], json!({"a": 2, "b": 3}));
    assert_eq!(found["l"], json!([{"a": 1}]));
    assert!(read_v3(text).is_err());
}

#[test]
fn documents_of_comments_and_null_are_left_out() {
    // C-07.
    for text in ["# c\n---\na: 1\n", "---\n---\na: 1\n", "null\n---\na: 1\n", "~\n---\n# c\n---\na: 1\n---\n"]
    {
        let found = documents(text.as_bytes(), &LIMITS).unwrap();
        assert_eq!((found.len(), found[0].index), (1, 1), "{text}");
    }
    assert!(documents(b"", &LIMITS).unwrap().is_empty());
}

#[test]
fn integers_keep_their_digits() {
    // C-15.
    assert_eq!(value("9007199254740993").to_string(), "9007199254740993");
    assert_eq!(value("1e3").to_string(), "1000");
    assert_eq!(value("1.0").to_string(), "1");
    assert_eq!(value("18446744073709551616").to_string(), "1.8446744073709552e+19");
}

#[test]
fn marks_line_ends_and_tabs_are_read_as_kubectl_reads_them() {
    // C-16.
    assert_eq!(read("\u{feff}a: 1\n").unwrap(), json!({"a": 1}));
    assert_eq!(read("a: |\r\n  b\r\n  c\r\n").unwrap(), json!({"a": "b\nc\n"}));
    assert_eq!(read("a: 1\n...\n").unwrap(), json!({"a": 1}));
    assert_eq!(read("{\n\ta: 1\n}\n").unwrap(), json!({"a": 1}));
    assert!(documents(b"---\n", &LIMITS).unwrap().is_empty());
    let error = documents(b"a:\n\tb: 1\n", &LIMITS).unwrap_err();
    assert_eq!((error.line, error.column), (2, 1));
    assert!(error.message.contains("tab"), "{error}");
}

#[test]
fn errors_of_syntax_stand_where_the_eye_looks() {
    assert_eq!(place("a: b: c\n"), (1, 5));
    assert_eq!(place("a: 1\nb: *none\n"), (2, 4));
    assert_eq!(place("a: 1\nb: \"c\n"), (2, 4));
    assert_eq!(place("a:\n  b: 1\n c: 2\n"), (3, 2));
    assert_eq!(place("a: 1\n---\nb: @c\n"), (3, 4));
    assert_eq!(place("a: [1,\n  2\nb: 3\n"), (3, 2));
    assert_eq!(place("a: 1\n...\nb: 2\n"), (3, 1));
    assert_eq!(place("%YAML 1.2\n---\na: 1\n"), (1, 1));
}

#[test]
fn every_node_knows_its_place() {
    let documents = documents("# c\n---\n\u{e9}: {b: [x, 'y']}\n".as_bytes(), &LIMITS).unwrap();
    assert_eq!(documents[0].line, 3);
    let list = documents[0].root.get("\u{e9}").and_then(|node| node.get("b")).unwrap();
    assert_eq!((list.span.line, list.span.column), (3, 8));
    let NodeKind::Sequence(items) = &list.kind else { panic!("a list") };
    assert_eq!((items[1].span.column, items[1].style), (12, Style::SingleQuoted));
}

#[test]
fn json_has_places_and_keys_that_stand_twice_too() {
    let text = "{\"a\": 1}\n{\n  \"b\": {\"c\": 1,\n    \"c\": 2}\n}\n{\"d\": \"\\ud83d\\ude00\"}\n";
    let found = documents(text.as_bytes(), &LIMITS).unwrap();
    let mut warnings = Vec::new();
    assert_eq!(to_json(&found[1].root, &mut warnings, false).unwrap(), json!({"b": {"c": 2}}));
    assert_eq!((warnings[0].line, warnings[0].column), (4, 5));
    assert_eq!((found[2].line, found[2].root.get("d").and_then(Node::text)), (6, Some("\u{1F600}")));
}

#[test]
fn kustomize_reads_words_dates_and_keys_in_its_own_way() {
    let found =
        read_v3("a: yes\nb: on\nc: True\nd: 0644\ne: 0o17\nf: 1_000\ng: 2020-01-01\n1: x\nno: y\n").unwrap();
    let wanted = json!({
        "a": "yes", "b": "on", "c": true, "d": 420, "e": 15, "f": 1000, "g": "2020-01-01T00:00:00Z", "1": "x", "no": "y"
    });
    assert_eq!(found, wanted);
    let merged = read_v3("b: &b {a: 2, c: 3}\nx: {a: 1, <<: *b}\n").unwrap();
    assert_eq!(merged["x"], json!({"a": 1, "c": 3}));
}

#[test]
fn kustomize_takes_a_document_on_the_line_of_its_first_separator() {
    let count = |text: &str| documents_as(text.as_bytes(), Resolver::V3, &LIMITS).map(|found| found.len());
    assert_eq!(count("--- {a: 1}\n---\nb: 2\n"), Ok(2));
    assert_eq!(count("a: 1\n---"), Ok(1));
    assert!(count("a: 1\n--- b: 2\n").is_err());
    assert!(count("{\"a\": 1}\n{\"b\": 2}\n").is_err());
}

#[test]
fn each_limit_is_an_error_that_names_it() {
    let refuse = |limits: Limits, text: &str| documents(text.as_bytes(), &limits).unwrap_err().message;
    assert!(refuse(Limits { max_bytes: 5, ..LIMITS }, "a: 1234\n").contains("bytes"));
    assert!(refuse(Limits { max_documents: 1, ..LIMITS }, "a: 1\n---\nb: 2\n").contains("documents"));
    assert!(refuse(Limits { max_depth: 2, ..LIMITS }, "a: {b: {c: 1}}\n").contains("levels"));
    assert!(refuse(Limits { max_nodes: 3, ..LIMITS }, "[a, b, c]\n").contains("values"));
    let twice = "a: &a [x, x, x]\nb: [*a, *a, *a]\n";
    assert!(refuse(Limits { max_nodes: 15, ..LIMITS }, twice).contains("aliases"));
}

#[test]
fn the_deepest_tree_that_is_allowed_resolves_on_a_small_stack() {
    let limits = Limits { max_depth: 1000, max_nodes: 100_000, ..LIMITS };
    for text in [format!("{}1{}", "[".repeat(1000), "]".repeat(1000)), "- ".repeat(1000)] {
        let root = document(text.as_bytes(), &limits).unwrap().unwrap();
        let value = to_json(&root, &mut Vec::new(), true).unwrap();
        assert!(to_string(&value).len() > 1000);
    }
}

#[test]
fn hostile_texts_take_no_time() {
    let limits = Limits { max_bytes: 10_000_000, max_documents: 10, max_depth: 1000, max_nodes: 1_000_000 };
    for text in [
        "[".repeat(1_000_000),
        "{a: ".repeat(500_000),
        "? ".repeat(500_000),
        "- ".repeat(500_000),
        "&a ".repeat(500_000),
        "\"\\\n".repeat(500_000),
        "a: 1\n".repeat(200_000),
        "'".repeat(999_999),
        format!("a: {}", "b\n ".repeat(500_000)),
        format!("[{}]", "a,".repeat(400_000)),
    ] {
        if let Ok(found) = documents(text.as_bytes(), &limits) {
            for document in found {
                let _ = to_json(&document.root, &mut Vec::new(), true);
            }
        }
    }
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
