//! Tests of calculations, and of what is none.

use gateway_core::vocab::ErrorCode;
use serde_json::json;

use super::{Fixture, shown};

#[tokio::test]
async fn sums() {
    let fixture = Fixture::usual();
    for (expression, say) in [
        ("12 times 7", "That's 84."),
        ("2 times 3 times 4", "That's 24."),
        ("Twelve times seven", "That's 84."),
        ("Two plus two?", "That's 4."),
        ("100 divided by 8", "That's 12.5."),
        ("20 percent of 80", "That's 16."),
        ("fifteen percent of sixty", "That's 9."),
        ("the square root of 16 plus 9", "That's 13."),
        ("5 squared", "That's 25."),
        ("2 to the power of 10", "That's 1024."),
        ("7 minus 10", "That's -3."),
        ("(3 + 4) × 2", "That's 14."),
        ("6 x 7", "That's 42."),
        ("10 / 4", "That's 2.5."),
        ("1 / 3", "That's about 0.3333."),
        ("5 factorial", "That's 120."),
        ("5 miles to km", "That's about 8.0467 km."),
        ("150 pounds to kilograms", "That's about 68.0389 kilograms."),
        ("0.1234 + 0.1", "That's 0.2234."),
        ("15 plus 15 percent", "That's 17.25."),
        ("80 - 10%", "That's 72."),
        ("80 minus ten percent", "That's 72."),
        ("80-10%", "That's 72."),
        ("100 / -5%", "That's -2000."),
        ("100 / 5%", "That's 2000."),
        ("(80 - 20%) + 5", "That's 69."),
        ("80 - 20% + 5", "That's 69."),
        ("100 - (50 - 20%)", "That's 60."),
        ("100 plus 20 percent minus 5", "That's 115."),
        ("80 + 10% + 15%", "That's 101.2."),
        ("50 / (20% of 10)", "That's 25."),
        ("1000 + 5% * 1000", "That's 1050."),
        ("100 - 10% * 2", "That's 99.8."),
        ("10 + 50% / 2", "That's 10.25."),
        ("100 - 20% of 50", "That's 90."),
        ("√16 + 9", "That's 13."),
        ("2^(3+1)", "That's 16."),
        ("2e-1%", "That's 0.2%."),
        ("(20 + 60) - 10%", "That's 72."),
        ("80 kg - 10%", "That's 72 kg."),
        ("2 * 40 + 5%", "That's 84."),
        ("15% + 15%", "That's 30%."),
        ("15% - 5%", "That's 10%."),
        ("5 km in miles", "That's about 3.1069 miles."),
        ("2 GB to MB", "That's 2000 MB."),
        ("100 degrees Fahrenheit to Celsius", "That's about 37.7778 °C."),
        ("two hundred and fifty plus one", "That's 251."),
        ("0.1 + 0.2", "That's 0.3."),
    ] {
        let said = fixture.say("calculator.evaluate", json!({"expression": expression})).await;
        assert_eq!(said, say, "{expression}");
    }
    let result = fixture.run("calculator.evaluate", json!({"expression": "12 times 7"})).await;
    assert_eq!(shown(&result), ("12 times 7", "= 84"));
    let exact = fixture.run("calculator.evaluate", json!({"expression": "5 miles to km"})).await;
    assert_eq!(shown(&exact), ("5 miles to km", "= 8.04672 km"), "it is said in short only");
    assert_eq!(result.content, "84");
}

#[tokio::test]
async fn sums_that_cannot_be() {
    let fixture = Fixture::usual();
    let cannot = "I can't calculate that.";
    for (expression, say) in [
        ("1 / 0", "Nothing can be divided by zero."),
        ("5 divided by zero", "Nothing can be divided by zero."),
        ("the meaning of life", cannot),
        ("2 +", cannot),
        ("?", cannot),
        ("5 dollars to euros", cannot),
        ("roll d6", cannot),
        ("d6", cannot),
        (r"(\x. x x) (\x. x x)", cannot),
        ("f = x: f x; f 1", cannot),
        ("@noapprox pi", cannot),
        ("'a' + \"b\"", cannot),
        (&"(".repeat(150), cannot),
        ("1000!", "The result is too long to say."),
        ("  ", "What should I calculate?"),
        (&"1+".repeat(200), "That is too long for me."),
    ] {
        let (code, said) = fixture.fail("calculator.evaluate", json!({"expression": expression})).await;
        assert_eq!(said, say, "{expression}");
        assert!(matches!(code, ErrorCode::InvalidArguments | ErrorCode::ExecutionError));
    }
    // These are stopped by the budget or refused; the test is that they end at all.
    for expression in ["9^9^9^9", "99999999!", "2^99999999", "10^10^10", "(((9!)!)!)!", "1e999999999", "3^(10^7) mod 7"]
    {
        let (code, said) = fixture.fail("calculator.evaluate", json!({"expression": expression})).await;
        assert!(matches!(code, ErrorCode::InvalidArguments | ErrorCode::ExecutionError), "{expression}: {said}");
    }
}
