//! What people type to pair a device, as it is compared.

/// Digits of a pairing code.
const CODE_DIGITS: usize = 6;
/// Hexadecimal digits of a fingerprint.
const FINGERPRINT_DIGITS: usize = 32;

/// A pairing code, however it is grouped: its six digits.
///
/// # Errors
/// It has more or fewer digits.
pub(crate) fn code(typed: &str) -> Result<String, String> {
    let code: String = typed.chars().filter(char::is_ascii_digit).take(CODE_DIGITS + 1).collect();
    if code.len() == CODE_DIGITS {
        Ok(code)
    } else {
        Err("a pairing code has six digits, as the glasses show it; this costs no try".to_owned())
    }
}

/// A device's fingerprint, however it is grouped: its 32 hexadecimal digits, in lower case.
///
/// # Errors
/// It has more or fewer digits, or something else in between.
pub(crate) fn fingerprint(typed: &str) -> Result<String, String> {
    let fingerprint = typed.replace(['-', ':', ' '], "").to_ascii_lowercase();
    if fingerprint.len() == FINGERPRINT_DIGITS && fingerprint.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(fingerprint)
    } else {
        Err("a fingerprint has 32 hexadecimal digits; the glasses' log or box shows it".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_may_be_grouped_but_has_six_digits() {
        for typed in ["123456", "123 456", "12-34-56\n", " 1 2 3 4 5 6"] {
            assert_eq!(code(typed).as_deref(), Ok("123456"), "{typed}");
        }
        for typed in ["", "12345", "1234567", "१२३४५६", "twelve"] {
            assert!(code(typed).is_err(), "{typed}");
        }
    }

    #[test]
    fn a_fingerprint_may_be_grouped_and_in_capitals() {
        let (groups, plain) = ("AB:cd-EF 01".repeat(4), "abcdef01".repeat(4));
        assert_eq!(fingerprint(&groups), Ok(plain.clone()));
        for typed in
            ["", &plain[1..], &format!("{plain}0"), &plain.replacen('a', "\u{212a}", 1), &plain.replace('a', "g")]
        {
            assert!(fingerprint(typed).is_err(), "{typed}");
        }
    }
}
