//! The syntax of Kubernetes names and label values, so that a bad one is refused where it is written and not
//! by the API server an hour later.

/// A DNS label (RFC 1123): what a Namespace may be called.
pub fn is_dns_label(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 63
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// A DNS subdomain (RFC 1123): what most objects may be called.
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253
        && text.split('.').all(|part| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
                && !part.starts_with('-')
                && !part.ends_with('-')
        })
}

/// A label's value: at most 63 letters, digits, `-`, `_`, `.`, with a letter or digit at both ends; or empty.
pub fn is_label_value(text: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    text.len() <= 63
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && edge(text.as_bytes().first())
        && edge(text.as_bytes().last())
}

/// A label's or annotation's key: `name` or `prefix/name`.
pub fn is_qualified_name(text: &str) -> bool {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    !name.is_empty() && is_label_value(name) && prefix.is_none_or(is_dns_subdomain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_api_servers_rules() {
        assert!(
            is_dns_label("kube-system") && !is_dns_label("a.b") && !is_dns_label("-a") && !is_dns_label("A")
        );
        assert!(!is_dns_label("") && !is_dns_label(&"a".repeat(64)));
        assert!(is_dns_subdomain("a.b-c") && !is_dns_subdomain("a..b") && !is_dns_subdomain(""));
        assert!(
            is_label_value("") && is_label_value("A_b.c") && !is_label_value("-a") && !is_label_value("a/b")
        );
        assert!(
            is_qualified_name("pintle.dev/agent") && is_qualified_name("app") && !is_qualified_name("a/b/c")
        );
        assert!(!is_qualified_name("x/") && !is_qualified_name("X.y/z"));
    }
}
