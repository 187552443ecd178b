//! Protocol v2 (gitprotocol-v2): `ls-refs` and `fetch`, one stateless request each.

use std::path::Path;
use std::time::Duration;

use pintle_model::{Problem, Reason, Revision};
use tokio::io::AsyncWriteExt as _;

use super::Resolved;
use super::client::Remote;
use super::packet::{NotGit, Packet, Reader, line};

/// A ref as the server names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ref {
    pub(super) name: String,
    pub(super) id: Revision,
    /// The commit behind an annotated tag.
    pub(super) peeled: Option<Revision>,
}

/// An answer to ls-refs is small; more is not one.
const MAX_REFS_BYTES: usize = 16 * 1024 * 1024;

/// Asks for the refs that a target may mean, in one request.
pub(super) async fn ls_refs(remote: &Remote, target: &str) -> Result<Vec<Ref>, Problem> {
    let mut body = Vec::new();
    body.extend(line("command=ls-refs"));
    body.extend(line(concat!("agent=pintle/", env!("CARGO_PKG_VERSION"))));
    body.extend(line("object-format=sha1"));
    body.extend(b"0001");
    body.extend(line("peel"));
    body.extend(line("symrefs"));
    for prefix in prefixes(target) {
        body.extend(line(&format!("ref-prefix {prefix}")));
    }
    body.extend(b"0000");
    let mut response = remote.post(body).await?;
    let mut reader = Reader::default();
    let mut refs = Vec::new();
    let mut total = 0;
    while let Some(chunk) = response.chunk().await.map_err(|error| remote.failed(&error))? {
        total += chunk.len();
        if total > MAX_REFS_BYTES {
            return Err(not_git(remote, &NotGit("more refs than can be".to_owned())));
        }
        reader.push(&chunk);
        while let Some(packet) = reader.next().map_err(|error| not_git(remote, &error))? {
            match packet {
                Packet::Flush => return Ok(refs),
                Packet::Data(data) => refs.extend(read_ref(&data)),
                Packet::Delimiter | Packet::End => {}
            }
        }
    }
    Err(Problem::new(Reason::GitUnreachable, format!("{}: the answer broke off", remote.url)))
}

fn not_git(remote: &Remote, error: &NotGit) -> Problem {
    Problem::new(Reason::GitUnreachable, format!("{}: {error}", remote.url))
}

fn prefixes(target: &str) -> Vec<String> {
    match target {
        "" | "HEAD" => vec!["HEAD".to_owned()],
        full if full.starts_with("refs/") => vec![full.to_owned()],
        name => vec![format!("refs/heads/{name}"), format!("refs/tags/{name}")],
    }
}

/// `<id> <name> [symref-target:<name>] [peeled:<id>]`.
fn read_ref(data: &[u8]) -> Option<Ref> {
    let text = std::str::from_utf8(data).ok()?.trim_end();
    let mut parts = text.split(' ');
    let id = parts.next()?.parse().ok()?;
    let name = parts.next()?.to_owned();
    let peeled = parts.find_map(|part| part.strip_prefix("peeled:")?.parse().ok());
    Some(Ref { name, id, peeled })
}

/// The ref that a target means: exactly that name, a tag before a branch as in git.
pub(super) fn pick(refs: &[Ref], target: &str) -> Option<Resolved> {
    let candidates = match target {
        "" | "HEAD" => vec!["HEAD".to_owned()],
        full if full.starts_with("refs/") => vec![full.to_owned()],
        name => vec![format!("refs/tags/{name}"), format!("refs/heads/{name}")],
    };
    candidates.iter().find_map(|name| {
        let found = refs.iter().find(|found| found.name == *name)?;
        Some(Resolved { revision: found.peeled.unwrap_or(found.id), name: Some(name.clone()) })
    })
}

/// Fetches exactly one commit at depth 1 into `file` as a pack. Returns the commits at which history is cut.
pub(super) async fn fetch(
    remote: &Remote,
    revision: Revision,
    file: &Path,
    stall: Duration,
) -> Result<Vec<Revision>, Problem> {
    let mut body = Vec::new();
    body.extend(line("command=fetch"));
    body.extend(line(concat!("agent=pintle/", env!("CARGO_PKG_VERSION"))));
    body.extend(line("object-format=sha1"));
    body.extend(b"0001");
    body.extend(line("ofs-delta"));
    body.extend(line("no-progress"));
    body.extend(line("deepen 1"));
    body.extend(line(&format!("want {revision}")));
    body.extend(line("done"));
    body.extend(b"0000");
    let mut response = remote.post(body).await?;
    let disk = |error: std::io::Error| {
        Problem::new(Reason::SourceError, format!("cannot write {}: {error}", file.display()))
    };
    let mut pack = tokio::fs::File::create(file).await.map_err(disk)?;
    let mut reader = Reader::default();
    let mut answer = FetchAnswer::default();
    loop {
        let chunk = tokio::time::timeout(stall, response.chunk()).await.map_err(|_| {
            let text = format!("{} sent nothing for {} s", remote.url, stall.as_secs_f64());
            Problem::new(Reason::FetchTimeout, text)
        })?;
        let Some(chunk) = chunk.map_err(|error| remote.failed(&error))? else {
            return Err(Problem::new(Reason::GitUnreachable, format!("{}: the pack broke off", remote.url)));
        };
        reader.push(&chunk);
        while let Some(packet) = reader.next().map_err(|error| not_git(remote, &error))? {
            match answer.take(packet, remote)? {
                Taken::Nothing => {}
                Taken::Pack(bytes) => pack.write_all(&bytes).await.map_err(disk)?,
                Taken::End => {
                    pack.sync_all().await.map_err(disk)?;
                    return Ok(answer.shallow);
                }
            }
        }
    }
}

/// Where in the answer we are.
#[derive(Debug, Default, PartialEq, Eq)]
enum Section {
    #[default]
    Before,
    Shallow,
    Pack,
    Other,
}

#[derive(Debug, Default)]
struct FetchAnswer {
    section: Section,
    shallow: Vec<Revision>,
}

enum Taken {
    Nothing,
    Pack(Vec<u8>),
    End,
}

impl FetchAnswer {
    fn take(&mut self, packet: Packet, remote: &Remote) -> Result<Taken, Problem> {
        let data = match packet {
            Packet::Flush if self.section == Section::Pack => return Ok(Taken::End),
            Packet::Flush | Packet::End | Packet::Delimiter => {
                self.section = Section::Before;
                return Ok(Taken::Nothing);
            }
            Packet::Data(data) => data,
        };
        match self.section {
            Section::Before => {
                let text = String::from_utf8_lossy(&data).trim_end().to_owned();
                self.section = match text.as_str() {
                    "shallow-info" => Section::Shallow,
                    "packfile" => Section::Pack,
                    _ if text.starts_with("ERR ") => return Err(refused(remote, &text[4..])),
                    _ => Section::Other,
                };
                Ok(Taken::Nothing)
            }
            Section::Shallow => {
                let text = String::from_utf8_lossy(&data);
                let id = text.trim_end().strip_prefix("shallow ").and_then(|id| id.parse::<Revision>().ok());
                self.shallow.extend(id);
                Ok(Taken::Nothing)
            }
            Section::Pack => match data.split_first() {
                Some((1, bytes)) => Ok(Taken::Pack(bytes.to_vec())),
                Some((3, text)) => Err(refused(remote, &String::from_utf8_lossy(text))),
                _ => Ok(Taken::Nothing),
            },
            Section::Other => Ok(Taken::Nothing),
        }
    }
}

/// The server's own words: that it does not have the commit is by far the most frequent.
fn refused(remote: &Remote, text: &str) -> Problem {
    Problem::new(Reason::RevisionNotFound, format!("{} refuses: {}", remote.url, text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    #[test]
    fn an_annotated_tag_is_peeled_and_beats_a_branch_of_its_name() {
        let refs: Vec<Ref> = [
            format!("{ONE} refs/heads/v1\n"),
            format!("{ONE} refs/tags/v1 peeled:{TWO}\n"),
            format!("{ONE} refs/heads/v1-other\n"),
        ]
        .iter()
        .filter_map(|text| read_ref(text.as_bytes()))
        .collect();
        assert_eq!(pick(&refs, "v1").unwrap().revision.to_string(), TWO);
        assert_eq!(pick(&refs, "refs/heads/v1").unwrap().revision.to_string(), ONE);
        assert_eq!(pick(&refs, "v"), None);
    }

    #[test]
    fn head_is_resolved_by_name() {
        let refs: Vec<Ref> =
            read_ref(format!("{ONE} HEAD symref-target:refs/heads/main\n").as_bytes()).into_iter().collect();
        assert_eq!(pick(&refs, "HEAD").unwrap().revision.to_string(), ONE);
        assert_eq!(pick(&refs, "").unwrap().revision.to_string(), ONE);
    }
}
