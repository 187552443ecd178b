//! How a record lies on disk: version byte, CRC-32C, random nonce, XChaCha20-Poly1305 over the (deflated) bytes, with
//! the raw key as associated data, so that records cannot be swapped.

use std::io::{Read as _, Write as _};

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use pintle_model::{Digest, Problem, Reason, limits};

use super::Table;

/// Version of the record layout.
const VERSION: u8 = 1;
/// Bytes below this are not worth deflating.
const DEFLATE_FROM: usize = 256;
/// A record never inflates to more.
const MAX_PLAIN: u64 = 256 * 1024 * 1024;
/// What sealing adds: version, checksum, nonce, tag; and a head's number of chunks.
const OVERHEAD: usize = 1 + 4 + 24 + 16 + 4;
/// Packed bytes of one value, so that the sealed value keeps the limit.
const CHUNK_BYTES: usize = limits::STORE_VALUE_MAX_BYTES - OVERHEAD;
/// Separates a key from a chunk number: greater than any byte of a key's text end, so that heads sort by key.
const CHUNK: u8 = 0;

/// Encrypts and decrypts.
pub(super) struct Codec {
    cipher: XChaCha20Poly1305,
    key: [u8; 32],
}

/// The first part of a record.
pub(super) struct Head {
    /// Further chunks.
    pub(super) chunks: u32,
    /// First bytes, still packed.
    pub(super) bytes: Vec<u8>,
}

impl Codec {
    pub(super) fn new(key: [u8; 32]) -> Self {
        Self { cipher: XChaCha20Poly1305::new(Key::from_slice(&key)), key }
    }

    /// Another key, made from this one.
    pub(super) fn derived(&self, purpose: &[u8]) -> Vec<u8> {
        Digest::of_parts([&self.key[..], purpose]).as_bytes().to_vec()
    }

    pub(super) fn seal_head(
        &self,
        table: Table,
        key: &str,
        chunks: u32,
        first: &[u8],
    ) -> Result<Vec<u8>, Problem> {
        let mut plain = chunks.to_be_bytes().to_vec();
        plain.extend_from_slice(first);
        self.seal(&head_key(table, key), &plain)
    }

    pub(super) fn open_head(&self, table: Table, key: &str, raw: &[u8]) -> Result<Head, Problem> {
        let plain = self.open(&head_key(table, key), raw)?;
        let Some((chunks, bytes)) = plain.split_first_chunk::<4>() else {
            return Err(damaged(key.as_bytes(), "it is too short"));
        };
        Ok(Head { chunks: u32::from_be_bytes(*chunks), bytes: bytes.to_vec() })
    }

    /// A record as raw keys and values: its chunks, and its head last.
    pub(super) fn seal_record(
        &self,
        table: Table,
        key: &str,
        plain: &[u8],
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>, Problem> {
        let packed = pack(plain)?;
        let (first, rest) = packed.split_at(packed.len().min(CHUNK_BYTES));
        let mut raw = Vec::new();
        for (index, chunk) in (0_u32..).zip(rest.chunks(CHUNK_BYTES)) {
            let name = chunk_key(table, key, index);
            let sealed = self.seal(&name, chunk)?;
            raw.push((name, sealed));
        }
        let head = self.seal_head(table, key, raw.len() as u32, first)?;
        raw.push((head_key(table, key), head));
        Ok(raw)
    }

    pub(super) fn seal(&self, name: &[u8], plain: &[u8]) -> Result<Vec<u8>, Problem> {
        let mut nonce = [0_u8; 24];
        getrandom::fill(&mut nonce)
            .map_err(|error| Problem::new(Reason::StoreError, format!("no random numbers: {error}")))?;
        let sealed = self
            .cipher
            .encrypt(XNonce::from_slice(&nonce), Payload { msg: plain, aad: name })
            .map_err(|_| Problem::new(Reason::Internal, "a record cannot be encrypted"))?;
        let mut raw = Vec::with_capacity(sealed.len() + 29);
        raw.push(VERSION);
        raw.extend_from_slice(&[0; 4]);
        raw.extend_from_slice(&nonce);
        raw.extend_from_slice(&sealed);
        let sum = crc32c::crc32c(&raw[5..]);
        raw[1..5].copy_from_slice(&sum.to_be_bytes());
        Ok(raw)
    }

    pub(super) fn open(&self, name: &[u8], raw: &[u8]) -> Result<Vec<u8>, Problem> {
        let Some((version, rest)) = raw.split_first() else { return Err(damaged(name, "it is empty")) };
        if *version != VERSION {
            return Err(damaged(name, "its version is unknown"));
        }
        let Some((sum, rest)) = rest.split_first_chunk::<4>() else {
            return Err(damaged(name, "it is too short"));
        };
        if crc32c::crc32c(rest) != u32::from_be_bytes(*sum) {
            return Err(damaged(name, "its checksum is wrong"));
        }
        let Some((nonce, sealed)) = rest.split_first_chunk::<24>() else {
            return Err(damaged(name, "it is too short"));
        };
        self.cipher
            .decrypt(XNonce::from_slice(nonce), Payload { msg: sealed, aad: name })
            .map_err(|_| damaged(name, "its key is another one (was the key file replaced?)"))
    }
}

fn damaged(name: &[u8], why: &str) -> Problem {
    let name = String::from_utf8_lossy(name).replace('\0', "#");
    Problem::new(Reason::StoreError, format!("the record {name:?} of the store is damaged: {why}"))
}

/// Raw key of a record's head: table prefix and key text.
pub(super) fn head_key(table: Table, key: &str) -> Vec<u8> {
    let mut raw = vec![table.prefix()];
    raw.extend_from_slice(key.as_bytes());
    raw
}

/// Raw key of a further chunk. Keys hold no zero byte.
pub(super) fn chunk_key(table: Table, key: &str, chunk: u32) -> Vec<u8> {
    let mut raw = head_key(table, key);
    raw.push(CHUNK);
    raw.extend_from_slice(&chunk.to_be_bytes());
    raw
}

/// The key text of a raw head key; `None` for a chunk's.
pub(super) fn head_of(raw: &[u8]) -> Option<String> {
    let text = raw.get(1..)?;
    if text.contains(&CHUNK) {
        return None;
    }
    String::from_utf8(text.to_vec()).ok()
}

/// Deflates where it pays. First byte: 0 plain, 1 deflated.
pub(super) fn pack(plain: &[u8]) -> Result<Vec<u8>, Problem> {
    if plain.len() >= DEFLATE_FROM {
        let mut encoder = flate2::write::DeflateEncoder::new(vec![1_u8], flate2::Compression::new(6));
        let packed = encoder.write_all(plain).and_then(|()| encoder.finish());
        let packed = packed.map_err(|error| Problem::new(Reason::Internal, format!("deflate: {error}")))?;
        if packed.len() < plain.len() {
            return Ok(packed);
        }
    }
    let mut packed = vec![0_u8];
    packed.extend_from_slice(plain);
    Ok(packed)
}

pub(super) fn unpack(packed: &[u8], key: &str) -> Result<Vec<u8>, Problem> {
    match packed.split_first() {
        Some((0, plain)) => Ok(plain.to_vec()),
        Some((1, deflated)) => {
            let mut plain = Vec::new();
            flate2::read::DeflateDecoder::new(deflated)
                .take(MAX_PLAIN)
                .read_to_end(&mut plain)
                .map_err(|error| damaged(key.as_bytes(), &error.to_string()))?;
            Ok(plain)
        }
        _ => Err(damaged(key.as_bytes(), "its packing is unknown")),
    }
}
