//! Git's pkt-line framing: four hex digits of length, then the payload.
//!
//! Source: gitprotocol-common(5). What comes from the network is not trusted: reading never panics and never
//! allocates more than what was received.

/// Longest packet that git sends, header included.
const MAX_PACKET: usize = 65_520;

/// One packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A payload, without a trailing newline.
    Data(&'a [u8]),
    /// `0000`, end of a message.
    Flush,
    /// `0001`, end of a section (protocol v2).
    Delimiter,
    /// `0002`, end of a stateless response (protocol v2).
    ResponseEnd,
}

/// Bytes that are not pkt-lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The length is not four hex digits, is 3, or is larger than git allows.
    #[error("a packet has an invalid length")]
    Length,
    /// The input ends inside a packet.
    #[error("the answer ends in the middle of a packet")]
    Truncated,
}

/// Appends a data packet with `line` and a newline.
pub fn write_line(out: &mut Vec<u8>, line: &str) {
    let length = line.len() + 5;
    debug_assert!(length <= MAX_PACKET, "requests are a few hundred bytes");
    out.extend_from_slice(format!("{length:04x}").as_bytes());
    out.extend_from_slice(line.as_bytes());
    out.push(b'\n');
}

/// Appends `0001`.
pub fn write_delimiter(out: &mut Vec<u8>) {
    out.extend_from_slice(b"0001");
}

/// Appends `0000`.
pub fn write_flush(out: &mut Vec<u8>) {
    out.extend_from_slice(b"0000");
}

/// The packets of `input`, one after the other. After an error there is no further item.
pub fn packets(input: &[u8]) -> Packets<'_> {
    Packets { rest: input }
}

/// Iterator of [`packets`].
#[derive(Debug, Clone)]
pub struct Packets<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<Packet<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match split_packet(self.rest) {
            Ok((packet, rest)) => {
                self.rest = rest;
                Some(Ok(packet))
            }
            Err(malformed) => {
                self.rest = &[];
                Some(Err(malformed))
            }
        }
    }
}

fn split_packet(input: &[u8]) -> Result<(Packet<'_>, &[u8]), Malformed> {
    let header = input.get(..4).ok_or(Malformed::Truncated)?;
    // `from_str_radix` would accept a sign.
    if !header.iter().all(u8::is_ascii_hexdigit) {
        return Err(Malformed::Length);
    }
    let text = std::str::from_utf8(header).map_err(|_| Malformed::Length)?;
    let length = usize::from_str_radix(text, 16).map_err(|_| Malformed::Length)?;
    match length {
        0 => Ok((Packet::Flush, &input[4..])),
        1 => Ok((Packet::Delimiter, &input[4..])),
        2 => Ok((Packet::ResponseEnd, &input[4..])),
        3 => Err(Malformed::Length),
        length if length > MAX_PACKET => Err(Malformed::Length),
        length => {
            let payload = input.get(4..length).ok_or(Malformed::Truncated)?;
            Ok((Packet::Data(payload.strip_suffix(b"\n").unwrap_or(payload)), &input[length..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let mut out = Vec::new();
        write_line(&mut out, "command=ls-refs");
        write_delimiter(&mut out);
        write_line(&mut out, "peel");
        write_flush(&mut out);
        assert_eq!(out, b"0014command=ls-refs\n00010009peel\n0000");
        let read: Result<Vec<_>, _> = packets(&out).collect();
        assert_eq!(
            read.unwrap(),
            [Packet::Data(b"command=ls-refs"), Packet::Delimiter, Packet::Data(b"peel"), Packet::Flush]
        );
    }

    #[test]
    fn bad_lengths_are_errors_and_end_the_reading() {
        for input in [&b"zzzz"[..], b"0003", b"fff1x", b"+004", b"-001", b"<htm", b"\xff\xff\xff\xff"] {
            let mut packets = packets(input);
            assert_eq!(packets.next(), Some(Err(Malformed::Length)), "{input:?}");
            assert_eq!(packets.next(), None, "{input:?}");
        }
        for input in [&b"0"[..], b"001", b"0010abc", b"0000000"] {
            assert!(packets(input).any(|packet| packet == Err(Malformed::Truncated)), "{input:?}");
        }
    }

    #[test]
    fn an_empty_packet_is_data() {
        assert_eq!(packets(b"0004").next(), Some(Ok(Packet::Data(b""))));
    }

    #[test]
    fn no_input_makes_it_panic() {
        // A linear congruential generator: the same bytes at every run.
        let mut state = 0x2545_f491_u32;
        for length in 0..400 {
            let bytes: Vec<u8> = (0..length)
                .map(|index| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    // Mostly hex digits, so that lengths are often valid.
                    if index % 5 == 0 {
                        (state >> 24) as u8
                    } else {
                        b"0123456789abcdef"[(state >> 28) as usize]
                    }
                })
                .collect();
            assert!(packets(&bytes).count() <= bytes.len());
        }
    }
}
