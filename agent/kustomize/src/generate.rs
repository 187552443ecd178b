//! ConfigMaps and Secrets from files, env files and literals.

use std::collections::BTreeMap;

use crate::error::{Error, Step};
use crate::kustfile::{GeneratorArgs, GeneratorOptions};
use crate::load::{Place, Sources};
use crate::node::{Kind, Node, Tag};
use crate::path::lookup_create;
use crate::resource::Resource;

/// Which kind to generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generated {
    ConfigMap,
    Secret,
}

/// A generator with its file and field, for messages and the history of objects.
#[derive(Debug, Clone)]
pub(crate) struct Generator {
    pub(crate) kind: Generated,
    pub(crate) args: GeneratorArgs,
    pub(crate) file: String,
    pub(crate) field: String,
    pub(crate) line: Option<u32>,
}

impl Generator {
    pub(crate) fn run(&self, sources: &Sources<'_>, place: &Place) -> Result<Resource, Error> {
        let fail = |error: Error| error.at(&self.file, &self.field, self.line);
        if self.args.name.is_empty() {
            return Err(fail(Error::new("a generated object needs a `name`")));
        }
        let pairs = self.pairs(sources, place).map_err(fail)?;
        self.build(pairs).map_err(|message| fail(Error::from(message)))
    }

    fn build(&self, pairs: BTreeMap<String, Vec<u8>>) -> Step<Resource> {
        let kind = match self.kind {
            Generated::ConfigMap => "ConfigMap",
            Generated::Secret => "Secret",
        };
        let mut node = Node::map();
        node.set("apiVersion", Node::string("v1"))?;
        node.set("kind", Node::string(kind))?;
        let mut meta = Node::map();
        meta.set("name", Node::string(&self.args.name))?;
        if !self.args.namespace.is_empty() {
            meta.set("namespace", Node::string(&self.args.namespace))?;
        }
        node.set("metadata", meta)?;
        match self.kind {
            Generated::ConfigMap => put_config_map_data(&mut node, pairs)?,
            Generated::Secret => {
                let kind = if self.args.secret_type.is_empty() { "Opaque" } else { &self.args.secret_type };
                node.set("type", Node::string(kind))?;
                put_secret_data(&mut node, pairs)?;
            }
        }
        let mut resource = Resource::new(node, &self.file, self.line.unwrap_or(0));
        let options = self.args.options.as_ref();
        if let Some(options) = options {
            if !options.labels.is_empty() {
                resource.set_labels(&options.labels)?;
            }
            if !options.annotations.is_empty() {
                resource.set_annotations(&options.annotations)?;
            }
            if options.immutable {
                resource.node.set("immutable", Node::tagged("true", Tag::Bool))?;
            }
        }
        let hash = options.is_none_or(|options| !options.disable_name_suffix_hash);
        resource.mark_generated(&self.args.behavior, hash)?;
        Ok(resource)
    }

    /// All keys with their values: env files, literals, files.
    fn pairs(&self, sources: &Sources<'_>, place: &Place) -> Result<BTreeMap<String, Vec<u8>>, Error> {
        let mut all = BTreeMap::new();
        let mut put = |key: String, value: Vec<u8>| {
            if all.contains_key(&key) {
                return Err(Error::new(format!("the key {key:?} is there twice; remove one")));
            }
            all.insert(key, value);
            Ok(())
        };
        for path in &self.args.envs {
            let bytes = sources.load(place, path)?;
            for (key, value) in
                env_file(&bytes).map_err(|message| Error::from(message).in_file(&place.file(path)))?
            {
                put(key, value)?;
            }
        }
        for literal in &self.args.literals {
            let (key, value) =
                literal.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
                    Error::new(
                        "a literal is no `key=value`; its text is not shown, for it may be secret".to_owned(),
                    )
                })?;
            put(key.to_owned(), unquoted(value).as_bytes().to_vec())?;
        }
        for file in &self.args.files {
            let (key, path) = file_source(file)?;
            put(key, sources.load(place, &path)?.to_vec())?;
        }
        Ok(all)
    }
}

/// `key=path`, or only a path whose last part is the key.
fn file_source(text: &str) -> Result<(String, String), Error> {
    match text.matches('=').count() {
        0 => {
            let base = text.trim_end_matches('/').rsplit('/').next().unwrap_or(text);
            Ok((base.to_owned(), text.to_owned()))
        }
        1 => {
            let (key, path) = text.split_once('=').unwrap_or((text, ""));
            if key.is_empty() {
                return Err(Error::new(format!("the file {text:?} has no key before `=`")));
            }
            if path.is_empty() {
                return Err(Error::new(format!("the file {text:?} has no path behind `=`")));
            }
            Ok((key.to_owned(), path.to_owned()))
        }
        _ => Err(Error::new(format!("the file {text:?} has more than one `=`; rename the key or file"))),
    }
}

/// A value without the quotes around it.
fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner;
        }
    }
    value
}

/// Lines `key=value`; comments and empty lines do not count.
fn env_file(bytes: &[u8]) -> Step<Vec<(String, Vec<u8>)>> {
    let mut all = Vec::new();
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = std::str::from_utf8(line).map_err(|_| format!("line {} is no UTF-8 text", number + 1))?;
        let text = if number == 0 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
        let text = text.trim_start();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        if !key.is_empty() {
            all.push((key.to_owned(), value.as_bytes().to_vec()));
        }
    }
    Ok(all)
}

/// Texts go to `data`, other bytes to `binaryData`.
fn put_config_map_data(node: &mut Node, pairs: BTreeMap<String, Vec<u8>>) -> Step<()> {
    for (key, value) in pairs {
        let (field, text) = match String::from_utf8(value) {
            Ok(text) => ("data", text),
            Err(error) => ("binaryData", base64(error.as_bytes())),
        };
        if let Some(data) = lookup_create(node, &[field], Kind::Map)? {
            data.set(&key, Node::string(&text))?;
        }
    }
    Ok(())
}

/// Everything goes to `data`, as base64.
pub(crate) fn put_secret_data(node: &mut Node, pairs: BTreeMap<String, Vec<u8>>) -> Step<()> {
    if let Some(data) = lookup_create(node, &["data"], Kind::Map)? {
        for (key, value) in pairs {
            data.set(&key, Node::string(&base64(&value)))?;
        }
    }
    Ok(())
}

/// Base64 in lines of 70 characters, each with its end where there is more than one.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const LINE: usize = 70;
    let mut encoded = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            encoded.push(if at <= chunk.len() {
                DIGITS[(bits >> (18 - 6 * at) & 63) as usize]
            } else {
                b'='
            });
        }
    }
    let many = encoded.len() / LINE + 1 > 1;
    let mut text = String::with_capacity(encoded.len() + encoded.len() / LINE + 1);
    for line in encoded.chunks(LINE) {
        text.extend(line.iter().map(|byte| char::from(*byte)));
        if many {
            text.push('\n');
        }
    }
    text
}

/// The options of one generator over those of all.
pub(crate) fn with_global(
    own: Option<GeneratorOptions>,
    global: Option<&GeneratorOptions>,
) -> Option<GeneratorOptions> {
    let Some(global) = global else { return own };
    let mut options = own.unwrap_or_default();
    for (name, value) in &global.labels {
        options.labels.entry(name.clone()).or_insert_with(|| value.clone());
    }
    for (name, value) in &global.annotations {
        options.annotations.entry(name.clone()).or_insert_with(|| value.clone());
    }
    options.disable_name_suffix_hash |= global.disable_name_suffix_hash;
    options.immutable |= global.immutable;
    Some(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_has_lines_of_seventy() {
        assert_eq!(base64(b"hello"), "aGVsbG8=");
        assert_eq!(base64(b""), "");
        let long = base64(&[0; 60]);
        assert_eq!(long.len(), 82);
        assert_eq!(long.find('\n'), Some(70));
        assert!(long.ends_with('\n'));
    }

    #[test]
    fn env_files_keep_what_is_behind_the_first_equals_sign() {
        let found = env_file(b"\xef\xbb\xbfa=1=2\r\n# no\n\n  b\n=x\n").unwrap();
        assert_eq!(found, [("a".to_owned(), b"1=2".to_vec()), ("b".to_owned(), Vec::new())]);
    }
}
