//! The simulated camera: a small drawing as PNG, written without compression.
//!
//! PNG: RFC 2083; its checksum: annex 15. Zlib with stored blocks: RFC 1950 and RFC 1951 section 3.2.4.

/// Media type of [`take`].
pub const MIME: &str = "image/png";

/// Width and height in pixels.
const SIDE: u32 = 96;

/// Longest stored block of deflate in bytes.
const BLOCK_BYTES: usize = 65_535;

/// A photo; each number gives a different one.
pub fn take(number: u32) -> Vec<u8> {
    let mut rows = Vec::new();
    for y in 0..SIDE {
        // Each row begins with the number of its filter: none.
        rows.push(0);
        for x in 0..SIDE {
            let (dx, dy) = (i64::from(x) - 48, i64::from(y) - 40);
            let sun = dx * dx + dy * dy < 400;
            let shade = (u64::from(y) * 2 + u64::from(number) * 40) as u8;
            let pixel = match (sun, y > 64) {
                (true, _) => [255, 220, 80],
                (false, true) => [40, 120_u8.wrapping_add(shade / 8), 60],
                (false, false) => [90, 140, 180_u8.saturating_add(shade / 4)],
            };
            rows.extend(pixel);
        }
    }
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = [SIDE.to_be_bytes(), SIDE.to_be_bytes()].concat();
    // Eight bits per channel, red green blue, and the only defined methods.
    header.extend([8, 2, 0, 0, 0]);
    chunk(&mut png, b"IHDR", &header);
    chunk(&mut png, b"IDAT", &stored(&rows));
    chunk(&mut png, b"IEND", &[]);
    png
}

fn chunk(png: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    png.extend((data.len() as u32).to_be_bytes());
    let checked = [kind.as_slice(), data].concat();
    png.extend(&checked);
    png.extend(crc32(&checked).to_be_bytes());
}

fn stored(data: &[u8]) -> Vec<u8> {
    let mut out = vec![0x78, 0x01];
    let blocks = data.chunks(BLOCK_BYTES);
    let last = blocks.len().saturating_sub(1);
    for (n, block) in blocks.enumerate() {
        let length = block.len() as u16;
        out.push(u8::from(n == last));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(block);
    }
    let (mut a, mut b) = (1u32, 0u32);
    for byte in data {
        a = (a + u32::from(*byte)) % 65_521;
        b = (b + a) % 65_521;
    }
    out.extend(((b << 16) | a).to_be_bytes());
    out
}

fn crc32(data: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in data {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_of_the_standard() {
        // The check value of CRC-32/ISO-HDLC; also the four bytes that end every PNG file.
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert!(take(0).ends_with(&[b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82]));
    }

    #[test]
    fn photos_differ() {
        assert_ne!(take(1), take(2));
    }
}
