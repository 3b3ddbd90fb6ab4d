//! What a call does, in a line for the display while it runs: "Reading the notes ...".

use super::plain;

/// Verbs with which titles of tools begin, and the same as what is being done.
const VERBS: [(&str, &str); 64] = [
    ("add", "Adding"),
    ("append", "Appending"),
    ("archive", "Archiving"),
    ("ask", "Asking"),
    ("begin", "Beginning"),
    ("book", "Booking"),
    ("bring", "Bringing"),
    ("calculate", "Calculating"),
    ("call", "Calling"),
    ("cancel", "Cancelling"),
    ("change", "Changing"),
    ("check", "Checking"),
    ("clear", "Clearing"),
    ("close", "Closing"),
    ("convert", "Converting"),
    ("copy", "Copying"),
    ("correct", "Correcting"),
    ("count", "Counting"),
    ("create", "Creating"),
    ("delete", "Deleting"),
    ("download", "Downloading"),
    ("drop", "Dropping"),
    ("edit", "Editing"),
    ("erase", "Erasing"),
    ("fetch", "Fetching"),
    ("find", "Finding"),
    ("forget", "Forgetting"),
    ("get", "Getting"),
    ("list", "Listing"),
    ("load", "Loading"),
    ("lock", "Locking"),
    ("look", "Looking"),
    ("make", "Making"),
    ("mark", "Marking"),
    ("merge", "Merging"),
    ("move", "Moving"),
    ("open", "Opening"),
    ("order", "Ordering"),
    ("pay", "Paying"),
    ("play", "Playing"),
    ("post", "Posting"),
    ("print", "Printing"),
    ("query", "Querying"),
    ("read", "Reading"),
    ("recall", "Recalling"),
    ("remember", "Remembering"),
    ("remove", "Removing"),
    ("rename", "Renaming"),
    ("reply", "Replying"),
    ("run", "Running"),
    ("save", "Saving"),
    ("say", "Saying"),
    ("search", "Searching"),
    ("send", "Sending"),
    ("set", "Setting"),
    ("show", "Showing"),
    ("start", "Starting"),
    ("stop", "Stopping"),
    ("take", "Taking"),
    ("tell", "Telling"),
    ("turn", "Turning"),
    ("unlock", "Unlocking"),
    ("update", "Updating"),
    ("write", "Writing"),
];

/// A title as what is being done: "Read the notes" becomes "Reading the notes ...", a title that begins with no known
/// verb gets the dots only.
pub fn doing(title: &str) -> String {
    let title = plain(title);
    let (first, rest) = title.split_once(' ').unwrap_or((&title, ""));
    let known = VERBS.binary_search_by(|(verb, _)| (*verb).cmp(first.to_lowercase().as_str()));
    let verb = known.ok().and_then(|at| VERBS.get(at)).map_or(first, |(_, doing)| *doing);
    match rest {
        "" => format!("{verb} ..."),
        rest => format!("{verb} {rest} ..."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_becomes_what_is_being_done() {
        assert!(VERBS.is_sorted());
        for (title, line) in [
            ("Read the notes", "Reading the notes ..."),
            ("Set a timer", "Setting a timer ..."),
            ("Write", "Writing ..."),
            ("Current weather", "Current weather ..."),
            ("DELETE Item", "Deleting Item ..."),
            ("Read\u{202e} it\nall", "Reading it all ..."),
            ("Listings of all", "Listings of all ..."),
        ] {
            assert_eq!(doing(title), line);
        }
    }
}
