//! Tests of the state of the glasses.

use gateway_core::vocab::ErrorCode;
use serde_json::json;

use super::{Fixture, shown};

#[tokio::test]
async fn the_glasses_status() {
    let fixture = Fixture::usual();
    let result = fixture.run("device.status", json!({})).await;
    let say = "The battery is at 80 percent. Connected over Wi-Fi. Firmware 1.2.3.";
    assert_eq!(result.say.as_deref(), Some(say));
    assert_eq!(shown(&result), ("Glasses", "Battery 80%\nWi-Fi\nFirmware 1.2.3"));
    for (battery, charging, begin) in [
        (Some(5), Some(true), "The battery is at 5 percent and charging."),
        (Some(200), None, "The battery is at 100 percent."),
        (None, Some(true), "The battery is charging."),
        (None, None, "The glasses don't tell their battery."),
    ] {
        if let Some(status) = fixture.world.status.lock().unwrap().as_mut() {
            status.battery_percent = battery;
            status.charging = charging;
        }
        let say = fixture.say("device.status", json!({})).await;
        assert!(say.starts_with(begin), "{say}");
    }
    if let Some(status) = fixture.world.status.lock().unwrap().as_mut() {
        status.muted = true;
        status.elsewhere = true;
    }
    let result = fixture.run("device.status", json!({})).await;
    let say = "There are no glasses here, but yours called kitchen are connected. The glasses don't tell their battery. \
               Connected over Wi-Fi. Firmware 1.2.3. Their microphone is off.";
    assert_eq!(result.say.as_deref(), Some(say));
    assert_eq!(shown(&result), ("Glasses", "Wi-Fi\nFirmware 1.2.3\nMicrophone off"));
    *fixture.world.status.lock().unwrap() = None;
    let failed = fixture.fail("device.status", json!({})).await;
    assert_eq!(failed, (ErrorCode::AppNotAvailable, "The glasses are not connected.".into()));
}
