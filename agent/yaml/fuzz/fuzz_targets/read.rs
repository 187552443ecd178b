//! `cargo fuzz run read` in agent/yaml: no text may panic, and what was read and written reads back equal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pintle_yaml::{Limits, Resolver, document, documents_as, to_json, to_json_as, to_string};

const LIMITS: Limits = Limits { max_bytes: 1_000_000, max_documents: 100, max_depth: 200, max_nodes: 100_000 };

fuzz_target!(|bytes: &[u8]| {
    for resolver in [Resolver::V2, Resolver::V3] {
        for found in documents_as(bytes, resolver, &LIMITS).unwrap_or_default() {
            let _ = to_json_as(&found.root, resolver, &mut Vec::new(), true);
        }
    }
    let Ok(Some(root)) = document(bytes, &LIMITS) else { return };
    let Ok(value) = to_json(&root, &mut Vec::new(), false) else { return };
    let text = to_string(&value);
    if let Ok(Some(again)) = document(text.as_bytes(), &LIMITS) {
        assert_eq!(to_json(&again, &mut Vec::new(), false).ok(), Some(value), "{text}");
    }
});
