//! The refs of a server: the `ls-refs` request of protocol v2, its answer, and the advertisement of `info/refs`.
//!
//! Source: gitprotocol-v2(5) "ls-refs", gitprotocol-http(5) "Smart Clients". Pure: bytes in, values out.

use pintle_model::Revision;

use super::pktline::{self, Malformed, Packet};

/// One ref of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteRef {
    /// Full name, or `HEAD`.
    pub name: String,
    /// What it points to.
    pub object: Revision,
    /// For an annotated tag the commit behind it, through tags of tags.
    pub peeled: Option<Revision>,
    /// For a symbolic ref (HEAD) the full name that it points to.
    pub symref_target: Option<String>,
}

impl RemoteRef {
    /// The commit that this ref stands for.
    pub fn commit(&self) -> Revision {
        self.peeled.unwrap_or(self.object)
    }
}

/// An answer that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswer {
    /// Not pkt-lines: a login page, a proxy's text, an answer cut off.
    #[error("the answer is not git's: {0}")]
    Framing(#[from] Malformed),
    /// A status or content type that git never sends here: a login page, a proxy.
    #[error("the answer is not git's (a login page, or a proxy?)")]
    NotGit,
    /// A line of another form than the protocol has.
    #[error("the answer has an unexpected line")]
    Line,
    /// The server reported an error; its text.
    #[error("the git server says: {0}")]
    Server(String),
    /// The repository's ids are not SHA-1.
    #[error("the repository uses object format {0:?}; only sha1 is supported")]
    ObjectFormat(String),
}

/// The body of an `ls-refs` request for refs that start with one of `prefixes`.
pub fn ls_refs_request(prefixes: &[String]) -> Vec<u8> {
    let mut body = Vec::with_capacity(256);
    pktline::write_line(&mut body, "command=ls-refs");
    pktline::write_line(&mut body, concat!("agent=pintle/", env!("CARGO_PKG_VERSION")));
    pktline::write_line(&mut body, "object-format=sha1");
    pktline::write_delimiter(&mut body);
    pktline::write_line(&mut body, "peel");
    pktline::write_line(&mut body, "symrefs");
    for prefix in prefixes {
        pktline::write_line(&mut body, &format!("ref-prefix {prefix}"));
    }
    pktline::write_flush(&mut body);
    body
}

/// Reads the answer to `ls-refs`.
pub fn parse_ls_refs(body: &[u8]) -> Result<Vec<RemoteRef>, BadAnswer> {
    let mut refs = Vec::new();
    for packet in pktline::packets(body) {
        match packet? {
            Packet::Data(line) => refs.extend(parse_ls_refs_line(text_line(line)?)?),
            Packet::Flush => return Ok(refs),
            Packet::Delimiter | Packet::ResponseEnd => return Err(BadAnswer::Line),
        }
    }
    // Without the flush the list may be cut off, and a ref that is missing would read as deleted.
    Err(Malformed::Truncated.into())
}

/// What `GET info/refs?service=git-upload-pack` told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advertisement {
    /// The server speaks protocol v2: ask it for refs by `ls-refs`.
    V2,
    /// Protocol v0 or v1: all refs.
    Refs(Vec<RemoteRef>),
}

/// Reads the answer to `info/refs`.
pub fn parse_advertisement(body: &[u8]) -> Result<Advertisement, BadAnswer> {
    let mut refs: Vec<RemoteRef> = Vec::new();
    let mut head_target = None;
    let mut first_ref = true;
    let mut ended = false;
    for packet in pktline::packets(body) {
        ended = packet? == Packet::Flush;
        let Packet::Data(line) = packet? else { continue };
        let line = text_line(line)?;
        if line.starts_with("# service=") || line == "version 1" {
            continue;
        }
        if line == "version 2" {
            return Ok(Advertisement::V2);
        }
        if line.starts_with("shallow ") {
            continue;
        }
        let (line, capabilities) = line.split_once('\0').unwrap_or((line, ""));
        if std::mem::take(&mut first_ref) {
            head_target = head_symref(capabilities)?;
        }
        let (object, name) = line.split_once(' ').ok_or(BadAnswer::Line)?;
        let object: Revision = object.parse().map_err(|_| BadAnswer::Line)?;
        if name == "capabilities^{}" {
            continue; // an empty repository
        }
        match name.strip_suffix("^{}") {
            Some(tag) => match refs.last_mut() {
                Some(last) if last.name == tag => last.peeled = Some(object),
                _ => return Err(BadAnswer::Line),
            },
            None => refs.push(RemoteRef { name: name.to_owned(), object, peeled: None, symref_target: None }),
        }
    }
    if !ended {
        return Err(Malformed::Truncated.into());
    }
    if let Some(head) = refs.iter_mut().find(|one| one.name == "HEAD") {
        head.symref_target = head_target;
    }
    Ok(Advertisement::Refs(refs))
}

/// `symref=HEAD:refs/heads/main` among the capabilities; refuses object formats other than SHA-1.
fn head_symref(capabilities: &str) -> Result<Option<String>, BadAnswer> {
    let mut target = None;
    for capability in capabilities.split(' ') {
        if let Some(name) = capability.strip_prefix("symref=HEAD:") {
            target = Some(name.to_owned());
        }
        check_object_format(capability)?;
    }
    Ok(target)
}

fn check_object_format(capability: &str) -> Result<(), BadAnswer> {
    match capability.strip_prefix("object-format=") {
        Some(format) if format != "sha1" => Err(BadAnswer::ObjectFormat(format.chars().take(20).collect())),
        _ => Ok(()),
    }
}

fn parse_ls_refs_line(line: &str) -> Result<Option<RemoteRef>, BadAnswer> {
    let mut words = line.split(' ');
    let object = words.next().ok_or(BadAnswer::Line)?;
    let name = words.next().ok_or(BadAnswer::Line)?.to_owned();
    if object == "unborn" {
        return Ok(None);
    }
    let object = object.parse().map_err(|_| BadAnswer::Line)?;
    let mut one = RemoteRef { name, object, peeled: None, symref_target: None };
    for attribute in words {
        if let Some(peeled) = attribute.strip_prefix("peeled:") {
            one.peeled = Some(peeled.parse().map_err(|_| BadAnswer::Line)?);
        } else if let Some(target) = attribute.strip_prefix("symref-target:") {
            one.symref_target = Some(target.to_owned());
        }
    }
    Ok(Some(one))
}

fn text_line(line: &[u8]) -> Result<&str, BadAnswer> {
    let line = std::str::from_utf8(line).map_err(|_| BadAnswer::Line)?;
    match line.strip_prefix("ERR ") {
        // A server's text ends in a condition and on a terminal: one line, bounded, no control characters.
        Some(text) => Err(BadAnswer::Server(text.chars().filter(|c| !c.is_control()).take(300).collect())),
        None => Ok(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    fn lines(lines: &[&str]) -> Vec<u8> {
        let mut out = Vec::new();
        for line in lines {
            pktline::write_line(&mut out, line);
        }
        pktline::write_flush(&mut out);
        out
    }

    #[test]
    fn peeled_tags_and_symrefs_are_read() {
        let body = lines(&[
            &format!("{A} HEAD symref-target:refs/heads/main"),
            &format!("{A} refs/heads/main"),
            &format!("{B} refs/tags/v1 peeled:{A}"),
            "unborn refs/heads/empty",
        ]);
        let refs = parse_ls_refs(&body).unwrap();
        assert_eq!(refs.len(), 3);
        assert_eq!(refs[0].symref_target.as_deref(), Some("refs/heads/main"));
        assert_eq!(refs[2].object.to_string(), B);
        assert_eq!(refs[2].commit().to_string(), A);
    }

    #[test]
    fn an_answer_cut_off_is_not_a_deleted_ref() {
        let body = lines(&[&format!("{A} refs/heads/main")]);
        assert_eq!(parse_ls_refs(&body[..body.len() - 4]), Err(Malformed::Truncated.into()));
        assert_eq!(parse_ls_refs(b""), Err(Malformed::Truncated.into()));
        assert_eq!(parse_ls_refs(b"0000"), Ok(Vec::new()));
    }

    #[test]
    fn other_texts_are_errors() {
        for body in [&b"<html>login</html>"[..], b"{}", b"Bad gateway", &lines(&["no id"]), &lines(&[A])] {
            assert!(parse_ls_refs(body).is_err());
            assert!(parse_advertisement(body).is_err());
        }
        let error = parse_ls_refs(&lines(&["ERR access\u{1b}[31m denied"])).unwrap_err();
        assert_eq!(error.to_string(), "the git server says: access[31m denied");
    }

    #[test]
    fn an_advertisement_of_version_0_is_read() {
        let mut body = lines(&["# service=git-upload-pack"]);
        body.extend(lines(&[
            &format!(
                "{A} HEAD\0multi_ack shallow symref=HEAD:refs/heads/main object-format=sha1 agent=git/2"
            ),
            &format!("{A} refs/heads/main"),
            &format!("{B} refs/tags/v1"),
            &format!("{A} refs/tags/v1^{{}}"),
        ]));
        let Advertisement::Refs(refs) = parse_advertisement(&body).unwrap() else { panic!("version 2") };
        assert_eq!(refs[0].symref_target.as_deref(), Some("refs/heads/main"));
        assert_eq!(refs[2].commit().to_string(), A);
        assert_eq!(refs.len(), 3);
        assert_eq!(parse_advertisement(&body[..body.len() - 4]), Err(Malformed::Truncated.into()));
    }

    #[test]
    fn an_advertisement_of_version_2_is_recognised() {
        let mut body = lines(&["# service=git-upload-pack"]);
        body.extend(lines(&["version 2", "agent=git/2.39", "ls-refs=unborn", "fetch=shallow"]));
        assert_eq!(parse_advertisement(&body), Ok(Advertisement::V2));
    }

    #[test]
    fn sha256_repositories_are_refused_by_name() {
        let body = lines(&[&format!("{A} HEAD\0object-format=sha256")]);
        assert_eq!(parse_advertisement(&body), Err(BadAnswer::ObjectFormat("sha256".into())));
    }

    #[test]
    fn the_request_asks_only_for_the_named_refs() {
        let body = ls_refs_request(&["refs/heads/main".to_owned()]);
        let text = String::from_utf8(body).unwrap();
        assert!(text.ends_with("0009peel\n000csymrefs\n001fref-prefix refs/heads/main\n0000"), "{text}");
    }
}
