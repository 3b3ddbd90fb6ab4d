//! Social formulas, which are all of what is said: greetings, farewells and thanks, in each language.
//!
//! In lower case and without accents, as [`push_folded`](super::accents::push_folded) writes them.

/// The formulas of one language.
pub struct Formulas {
    /// "Good morning".
    pub greetings: &'static [&'static str],
    /// "Good night".
    pub farewells: &'static [&'static str],
    /// "Thank you".
    pub thanks: &'static [&'static str],
}

/// Those of all languages.
pub static ALL: [&Formulas; 4] = [&ENGLISH, &GERMAN, &SPANISH, &FRENCH];

/// What is said in English; "hi" is German, too.
pub static ENGLISH: Formulas = Formulas {
    greetings: &[
        "hello",
        "hi",
        "hello there",
        "hi there",
        "hello again",
        "good morning",
        "good afternoon",
        "good evening",
    ],
    farewells: &["goodbye", "good bye", "bye", "bye bye", "good night", "see you later", "see you tomorrow"],
    thanks: &["thanks", "thank you", "many thanks", "thanks a lot", "thank you so much", "thank you very much"],
};

/// What is said in German, with greetings of the south.
pub static GERMAN: Formulas = Formulas {
    greetings: &["hallo", "hi", "guten morgen", "guten tag", "guten abend", "servus", "gruss gott"],
    farewells: &["tschuss", "auf wiedersehen", "gute nacht", "bis spater", "bis morgen"],
    thanks: &["danke", "vielen dank", "danke schon"],
};

/// What is said in Spanish: "buenas noches" greets and takes leave, and is answered as a greeting.
pub static SPANISH: Formulas = Formulas {
    greetings: &["hola", "buenas", "buenos dias", "buenas tardes", "buenas noches"],
    farewells: &["adios", "hasta luego", "hasta manana"],
    thanks: &["gracias", "muchas gracias"],
};

/// What is said in French; "salut" counts as a greeting, though it takes leave as well.
pub static FRENCH: Formulas = Formulas {
    greetings: &["bonjour", "bonsoir", "salut", "coucou"],
    farewells: &["au revoir", "bonne nuit", "a demain", "a plus tard"],
    thanks: &["merci", "merci beaucoup"],
};
