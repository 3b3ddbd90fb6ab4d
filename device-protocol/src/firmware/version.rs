//! Versions of firmware, which can be compared.

use core::fmt;

/// `MAJOR.MINOR.PATCH`, three numbers without leading zeros: the later one is greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// First number.
    pub major: u16,
    /// Second number.
    pub minor: u16,
    /// Third number.
    pub patch: u16,
}

impl Version {
    /// Reads a version; `None`: it has another form, and the device cannot be updated.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('.').map(number);
        let (major, minor, patch) = (numbers.next()??, numbers.next()??, numbers.next()??);
        numbers.next().is_none().then_some(Self { major, minor, patch })
    }
}

fn number(text: &str) -> Option<u16> {
    let is_canonical = text == "0" || !text.starts_with('0');
    (is_canonical && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_by_their_numbers() {
        let version = |text| Version::parse(text).unwrap();
        assert!(version("1.10.0") > version("1.9.65535") && version("2.0.0") > version("1.99.99"));
        assert_eq!(version("0.0.1"), Version { major: 0, minor: 0, patch: 1 });
        for text in [
            "",
            "1",
            "1.2",
            "1.2.3.4",
            "1.2.",
            ".1.2",
            "01.2.3",
            "1.2.65536",
            "1.2.+3",
            "1.2.3 ",
            "v1.2.3",
            "1.2.3-rc1",
        ] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }
}
