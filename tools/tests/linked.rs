//! The built-ins register themselves from another crate's binary too: nothing is dropped by the
//! linker.

use tools::registry::Registry;

#[test]
fn all_built_ins_are_linked_in() {
    let registry = Registry::with_built_ins().expect("valid definitions");
    let snapshot = registry.snapshot("user", "device");
    let names: Vec<_> = snapshot.specs.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "app.list",
            "app.start",
            "app.stop",
            "calculator.evaluate",
            "clock.date",
            "clock.time",
            "device.status",
            "help.show",
            "note.add",
            "note.delete",
            "note.list",
            "note.search",
            "reminder.cancel",
            "reminder.list",
            "reminder.set",
            "timer.cancel",
            "timer.list",
            "timer.set",
        ]
    );
}
