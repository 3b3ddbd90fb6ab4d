//! Pictures on a character display: each character shows two by four dots (Unicode's Braille patterns).

use device_protocol::down::Bitmap;

/// Dots per character, horizontally.
pub(crate) const CELL_WIDTH_PX: u16 = 2;
/// Dots per character, vertically.
pub(crate) const CELL_HEIGHT_PX: u16 = 4;
/// The pattern without dots.
const BLANK: u32 = 0x2800;
/// Bit of each dot, row by row (Unicode, block U+2800).
const DOTS: [[u32; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

/// A picture with one bit per pixel, in rows of whole bytes, as the gateway sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    width_px: u16,
    height_px: u16,
    pixels: Vec<u8>,
}

impl Picture {
    /// `None` if there are too few bytes.
    pub(crate) fn new(bitmap: &Bitmap<'_>) -> Option<Self> {
        let Bitmap { width_px, height_px, pixels } = *bitmap;
        let bytes = Bitmap::row_bytes(width_px) * usize::from(height_px);
        (bytes > 0 && pixels.len() >= bytes).then(|| Self { width_px, height_px, pixels: pixels.to_vec() })
    }

    /// Exactly `rows` lines of `columns` characters: the picture is centred, and cut if it does not fit.
    pub(crate) fn draw(&self, columns: usize, rows: usize) -> Vec<String> {
        let (across, down) = (columns * usize::from(CELL_WIDTH_PX), rows * usize::from(CELL_HEIGHT_PX));
        let left = (across as i64 - i64::from(self.width_px)).div_euclid(2);
        let top = (down as i64 - i64::from(self.height_px)).div_euclid(2);
        let lit = |x: usize, y: usize| self.is_lit(x as i64 - left, y as i64 - top);
        let cell = |column: usize, row: usize| {
            let mut pattern = BLANK;
            for (dy, dots) in DOTS.iter().enumerate() {
                for (dx, bit) in dots.iter().enumerate() {
                    if lit(column * dots.len() + dx, row * DOTS.len() + dy) {
                        pattern |= bit;
                    }
                }
            }
            char::from_u32(pattern).unwrap_or(' ')
        };
        (0..rows).map(|row| (0..columns).map(|column| cell(column, row)).collect()).collect()
    }

    fn is_lit(&self, x: i64, y: i64) -> bool {
        let (Ok(x), Ok(y)) = (u16::try_from(x), u16::try_from(y)) else {
            return false;
        };
        let bitmap = Bitmap { width_px: self.width_px, height_px: self.height_px, pixels: &self.pixels };
        bitmap.pixel(x, y) == Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_stands_in_the_middle() {
        let arrow = Bitmap { width_px: 2, height_px: 4, pixels: &[0x80, 0x40, 0x80, 0xc0] };
        let picture = Picture::new(&arrow).expect("whole");
        assert_eq!(picture.draw(3, 1), ["\u{2800}\u{28d5}\u{2800}"]);
    }

    #[test]
    fn what_does_not_fit_is_cut_off_on_all_sides_alike() {
        let pixels = [0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
        let frame = Bitmap { width_px: 16, height_px: 12, pixels: &pixels };
        let picture = Picture::new(&frame).expect("whole");
        assert_eq!(picture.draw(2, 1), ["\u{2800}\u{2800}"]);
        assert_eq!(picture.draw(8, 3)[0], "\u{2809}".repeat(8));
    }

    #[test]
    fn what_is_not_whole_is_no_picture() {
        for (width_px, height_px, bytes) in [(9, 2, 3), (0, 4, 4), (8, 0, 4), (u16::MAX, u16::MAX, 4)] {
            let pixels = vec![0; bytes];
            assert!(Picture::new(&Bitmap { width_px, height_px, pixels: &pixels }).is_none());
        }
    }
}
