//! The built-ins register themselves from another crate's binary too: nothing is dropped by the
//! linker.

use tools::registry::Registry;

#[test]
fn all_built_ins_are_linked_in() {
    let registry = Registry::with_built_ins().expect("valid definitions");
    let snapshot = registry.snapshot("user", Some("device"));
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
            "conversation.new",
            "conversation.search",
            "device.status",
            "help.show",
            "memory.create",
            "memory.delete",
            "memory.get",
            "memory.list",
            "memory.restore",
            "memory.search",
            "memory.update",
            "note.add",
            "note.clear",
            "note.delete",
            "note.list",
            "note.search",
            "personality.get",
            "photo.delete",
            "prompt.add",
            "prompt.delete",
            "prompt.list",
            "reminder.cancel",
            "reminder.list",
            "reminder.set",
            "skill.list",
            "skill.read",
            "timer.cancel",
            "timer.extend",
            "timer.list",
            "timer.set",
        ]
    );
}
