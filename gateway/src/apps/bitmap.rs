//! Pictures of apps: BMP files in base64, converted to one bit per pixel.
//!
//! Format: BITMAPFILEHEADER and BITMAPINFOHEADER of Windows 3, uncompressed, with 1, 24 or 32 bits per pixel; the SDK
//! itself sends only 1 bit.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// Bytes of a picture in base64: the SDK refuses more.
pub(crate) const BASE64_BYTES_MAX: usize = 1_000_000;
/// Bytes of the pixels, one bit each: 640 by 200, the largest display that apps know.
pub(crate) const PIXEL_BYTES_MAX: usize = 16_000;
/// Threshold of brightness, 0 to 255, from which a pixel is lit.
const LIT_FROM: u32 = 128;

/// A picture of one bit per pixel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    /// Pixels in a row.
    pub width_px: u16,
    /// Rows.
    pub height_px: u16,
    /// Row by row from the top; each row begins a new byte, its first pixel in the highest bit; 1 is lit.
    pub pixels: Vec<u8>,
}

/// Reads a picture.
///
/// # Errors
/// What is wrong with it, as text.
pub(crate) fn read(base64: &str) -> Result<Picture, &'static str> {
    if base64.len() > BASE64_BYTES_MAX {
        return Err("the picture is larger than 1 MB");
    }
    let data = base64.split_once("base64,").map_or(base64, |(_, data)| data);
    let file = STANDARD.decode(data.trim()).map_err(|_| "the picture is not in base64")?;
    decode(&file).ok_or("the picture is no uncompressed BMP file of a size that glasses can draw")
}

fn u16_at(file: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(file.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(file: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(file.get(at..at + 4)?.try_into().ok()?))
}

fn decode(file: &[u8]) -> Option<Picture> {
    if file.get(..2)? != b"BM" {
        return None;
    }
    let begin = usize::try_from(u32_at(file, 10)?).ok()?;
    let header = usize::try_from(u32_at(file, 14)?).ok()?;
    let width = u16::try_from(u32_at(file, 18)?).ok().filter(|width| *width > 0)?;
    let signed_height = i32::from_le_bytes(file.get(22..26)?.try_into().ok()?);
    let height = u16::try_from(signed_height.unsigned_abs()).ok().filter(|height| *height > 0)?;
    let bits = u16_at(file, 28)?;
    // Uncompressed; 32 bits may also be declared with their usual masks.
    let plain = matches!((u32_at(file, 30)?, bits), (0, 1 | 24 | 32) | (3, 32));
    let row_bytes = usize::from(width).div_ceil(8);
    if !plain || header < 40 || row_bytes * usize::from(height) > PIXEL_BYTES_MAX {
        return None;
    }
    let stride = (usize::from(width) * usize::from(bits)).div_ceil(32) * 4;
    let palette = [palette(file, 14 + header, 0), palette(file, 14 + header, 1)];
    let mut pixels = vec![0; row_bytes * usize::from(height)];
    for (row, line) in pixels.chunks_mut(row_bytes).enumerate() {
        // A positive height counts from the bottom.
        let row = if signed_height > 0 { usize::from(height) - 1 - row } else { row };
        let from = begin.checked_add(row.checked_mul(stride)?)?;
        let source = file.get(from..from.checked_add(stride)?)?;
        for x in 0..usize::from(width) {
            let lit = match bits {
                1 => palette[usize::from(source.get(x / 8)? >> (7 - x % 8) & 1)]?,
                _ => {
                    let at = x * usize::from(bits) / 8;
                    is_bright(source.get(at..at + 3)?)?
                }
            };
            if lit {
                *line.get_mut(x / 8)? |= 0x80 >> (x % 8);
            }
        }
    }
    Some(Picture { width_px: width, height_px: height, pixels })
}

/// Whether a colour of the palette is lit.
fn palette(file: &[u8], at: usize, index: usize) -> Option<bool> {
    let at = at.checked_add(index * 4)?;
    is_bright(file.get(at..at.checked_add(3)?)?)
}

/// Blue, green, red; weights of ITU-R BT.601.
fn is_bright(colour: &[u8]) -> Option<bool> {
    let [blue, green, red] = colour else { return None };
    let luma = (u32::from(*red) * 299 + u32::from(*green) * 587 + u32::from(*blue) * 114) / 1_000;
    Some(luma >= LIT_FROM)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A BMP with these rows, in the order of the file.
    fn bmp(width: u32, height: i32, bits: u16, palette: &[u8], rows: &[u8]) -> String {
        let begin = 54 + palette.len() as u32;
        let mut file = b"BM".to_vec();
        file.extend((begin + rows.len() as u32).to_le_bytes());
        file.extend([0; 4]);
        file.extend(begin.to_le_bytes());
        file.extend(40_u32.to_le_bytes());
        file.extend(width.to_le_bytes());
        file.extend(height.to_le_bytes());
        file.extend(1_u16.to_le_bytes());
        file.extend(bits.to_le_bytes());
        file.extend([0; 24]);
        file.extend(palette);
        file.extend(rows);
        STANDARD.encode(file)
    }

    const BLACK_WHITE: [u8; 8] = [0, 0, 0, 0, 255, 255, 255, 0];

    #[test]
    fn one_bit_from_the_bottom_and_from_the_top() {
        // Ten pixels, two rows, each padded to four bytes.
        let rows = [0b1000_0000, 0b0100_0000, 0, 0, 0b1111_0000, 0, 0, 0];
        let picture = read(&bmp(10, 2, 1, &BLACK_WHITE, &rows)).unwrap();
        assert_eq!((picture.width_px, picture.height_px), (10, 2));
        assert_eq!(picture.pixels, [0b1111_0000, 0, 0b1000_0000, 0b0100_0000]);
        let picture = read(&bmp(10, -2, 1, &BLACK_WHITE, &rows)).unwrap();
        assert_eq!(picture.pixels, [0b1000_0000, 0b0100_0000, 0b1111_0000, 0]);
        // With the inverted palette, dark pixels are lit; padding never is.
        let turned = [255, 255, 255, 0, 0, 0, 0, 0];
        let picture = read(&bmp(10, -2, 1, &turned, &rows)).unwrap();
        assert_eq!(picture.pixels, [0b0111_1111, 0b1000_0000, 0b0000_1111, 0b1100_0000]);
    }

    #[test]
    fn colours_become_light_and_dark() {
        // Green, blue, white; padded to twelve bytes.
        let row = [0, 255, 0, 255, 0, 0, 255, 255, 255, 0, 0, 0];
        assert_eq!(read(&bmp(3, 1, 24, &[], &row)).unwrap().pixels, [0b1010_0000]);
        let url = format!("data:image/bmp;base64,{}", bmp(1, 1, 32, &[], &[255, 255, 255, 0]));
        assert_eq!(read(&url).unwrap().pixels, [0b1000_0000]);
    }

    #[test]
    fn nonsense_and_giants_are_refused() {
        let whole = bmp(10, 2, 1, &BLACK_WHITE, &[0; 8]);
        let file = STANDARD.decode(&whole).unwrap();
        for length in 0..file.len() {
            assert!(read(&STANDARD.encode(&file[..length])).is_err(), "{length}");
        }
        assert!(read("AAAA").is_err() && read("").is_err() && read("???").is_err());
        assert!(read(&bmp(0, 2, 1, &BLACK_WHITE, &[0; 8])).is_err());
        assert!(read(&bmp(65_535, 32_000, 1, &BLACK_WHITE, &[0; 8])).is_err());
        assert!(read(&bmp(10, i32::MIN, 1, &BLACK_WHITE, &[0; 8])).is_err());
        assert!(read(&bmp(10, 2, 8, &BLACK_WHITE, &[0; 32])).is_err());
        assert!(read(&"A".repeat(BASE64_BYTES_MAX + 1)).is_err());
    }
}
