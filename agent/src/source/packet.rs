//! pkt-lines (gitprotocol-common): four hex digits of length, then data.

/// One packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Packet {
    /// `0000`.
    Flush,
    /// `0001`.
    Delimiter,
    /// `0002`.
    End,
    /// Data, without its length.
    Data(Vec<u8>),
}

/// What is not a packet.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the server sent what is not git's protocol: {0}")]
pub(super) struct NotGit(pub(super) String);

/// Cuts packets out of a stream, however it arrives.
#[derive(Debug, Default)]
pub(super) struct Reader {
    buffer: Vec<u8>,
    start: usize,
}

impl Reader {
    /// Adds what arrived.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 && self.start == self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole packet; `None` when more has to arrive.
    pub(super) fn next(&mut self) -> Result<Option<Packet>, NotGit> {
        let rest = &self.buffer[self.start..];
        let Some(head) = rest.get(..4) else { return Ok(None) };
        let length = std::str::from_utf8(head).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
        let Some(length) = length else {
            return Err(NotGit(format!("{:?}", String::from_utf8_lossy(&rest[..rest.len().min(60)]))));
        };
        let packet = match length {
            0 => Packet::Flush,
            1 => Packet::Delimiter,
            2 => Packet::End,
            3 => return Err(NotGit("a packet of length 3".to_owned())),
            _ => match rest.get(4..length) {
                Some(data) => Packet::Data(data.to_vec()),
                None => return Ok(None),
            },
        };
        self.start += length.max(4);
        // Keep the buffer small: what was read goes once it is the larger part.
        if self.start > 64 * 1024 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        Ok(Some(packet))
    }
}

/// A data packet.
pub(super) fn line(text: &str) -> Vec<u8> {
    format!("{:04x}{text}\n", text.len() + 5).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_cut_however_the_stream_arrives() {
        let mut stream = line("hello");
        stream.extend(b"0001");
        stream.extend(line("world"));
        stream.extend(b"0000");
        for size in 1..stream.len() {
            let mut reader = Reader::default();
            let mut found = Vec::new();
            for part in stream.chunks(size) {
                reader.push(part);
                while let Some(packet) = reader.next().unwrap() {
                    found.push(packet);
                }
            }
            let wanted = [
                Packet::Data(b"hello\n".to_vec()),
                Packet::Delimiter,
                Packet::Data(b"world\n".to_vec()),
                Packet::Flush,
            ];
            assert_eq!(found, wanted, "in parts of {size}");
        }
    }

    #[test]
    fn what_is_not_git_is_refused_and_never_panics() {
        for text in ["<html>", "zzzz", "0003", "00é0"] {
            let mut reader = Reader::default();
            reader.push(text.as_bytes());
            assert!(reader.next().is_err(), "{text}");
        }
    }
}
