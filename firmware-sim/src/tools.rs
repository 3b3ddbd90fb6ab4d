//! The tools that the glasses offer: brightness, volume, camera.

use device_protocol::{ToolFlags, up::ToolOffer};
use serde_json::{Map, Value, json};

/// Number of tools.
pub const COUNT: u16 = 3;

/// Step of `up` and `down` in percent.
const STEP_PERCENT: u8 = 20;

const LEVEL_SCHEMA: &str = r#"{"type":"object","properties":{"level":{"type":"integer","minimum":0,"maximum":100,"description":"Percent.","examples":[50]},"change":{"type":"string","enum":["up","down"],"description":"Instead of a level: a step up or down."}},"additionalProperties":false}"#;

const PHOTO_SCHEMA: &str = r#"{"type":"object","properties":{"keep":{"type":"boolean","description":"False where the picture is only to be looked at, such as to answer what the wearer sees. True, the default, where the wearer wants to have the photo."}},"additionalProperties":false}"#;

const BRIGHTNESS_PHRASES: &str = r#"{"en":["[please] (set|change|turn|put) [the|my] [display|screen] brightness [up|down] (to|at) {level:number} [percent] [please]","[set] [the] [display|screen] brightness {level:number} [percent] [please]","(dim|lower|raise) [the|my] (display|screen) to {level:number} [percent]","{level=100} (full|maximum|max) [display|screen] brightness [please]","(make|turn) {change=up} [the|my] (display|screen) [a] [bit|little] brighter","(make|turn) {change=down} [the|my] (display|screen) [a] [bit|little] (darker|dimmer)","(turn up|increase|raise) {change=up} [the|my] [display|screen] brightness [please]","(turn down|decrease|reduce|lower|dim) {change=down} [the|my] [display|screen] brightness [please]","(dim|darken) {change=down} [the|my] (display|screen) [please]","turn [the|my] [display|screen] brightness {change} [please]","[the] [display|screen] brightness {change} [please]","{change=up} brighter [please]","{change=down} (darker|dimmer) [please]","(the|my) (display|screen) is {change=down} too bright","(the|my) (display|screen) is {change=up} too (dark|dim)"],"de":["(stell|stelle|setz|setze|dreh|mach|regle) [die] helligkeit [des displays|vom display] (auf|zu) {level:number} [prozent]","[die] helligkeit [auf] {level:number} [prozent]","{level=100} (volle|maximale) helligkeit","(mach|stell|dreh|stelle) {change=up} [das|den] (display|bildschirm) [etwas|ein bisschen] heller","(mach|stell|dreh|stelle) {change=down} [das|den] (display|bildschirm) [etwas|ein bisschen] (dunkler|schwächer)","[etwas|ein bisschen] {change=up} heller","[etwas|ein bisschen] {change=down} dunkler","(erhöhe|erhöh) {change=up} [die] helligkeit","(verringere|reduziere|senke) {change=down} [die] helligkeit","(das|der) (display|bildschirm) ist {change=down} zu hell","(das|der) (display|bildschirm) ist {change=up} zu (dunkel|schwach)"],"es":["(pon|ajusta|cambia|sube|baja) [el] brillo [de la pantalla] (a|al|en) {level:number} [por ciento]","brillo [a|al] {level:number} [por ciento]","{level=100} brillo máximo","(sube|aumenta) {change=up} [un poco] [el] brillo [de la pantalla] [un poco]","(baja|reduce|disminuye) {change=down} [un poco] [el] brillo [de la pantalla] [un poco]","más {change=up} (brillo|brillante)","menos {change=down} (brillo|brillante)","la pantalla (brilla|es|está) {change=down} (demasiado|muy) [brillante|clara]","la pantalla (es|está) {change=up} (demasiado|muy) oscura"],"fr":["(mets|règle|monte|baisse) [la] luminosité [de l'écran] (à|sur) {level:number} [pour cent]","luminosité [à] {level:number} [pour cent]","{level=100} luminosité (maximale|maximum)","(augmente|monte) {change=up} [un peu] [la] luminosité [de l'écran] [un peu]","(diminue|baisse|réduis) {change=down} [un peu] [la] luminosité [de l'écran] [un peu]","plus {change=up} (lumineux|clair)","{change=down} (plus sombre|moins lumineux)","l'écran est {change=down} trop (lumineux|clair)","l'écran est {change=up} trop sombre"]}"#;

const VOLUME_PHRASES: &str = r#"{"en":["[please] (set|change|turn|put) [the|my] [speaker] volume [up|down] (to|at) {level:number} [percent] [please]","[set] [the] volume {level:number} [percent] [please]","{level=100} (full|maximum|max) volume [please]","turn [the|my] (volume|sound) {change} [a bit] [please]","(turn up|increase|raise) {change=up} [the|my] (volume|sound) [a bit|a little] [please]","(turn down|decrease|reduce|lower) {change=down} [the|my] (volume|sound) [a bit|a little] [please]","turn it {change} [a bit] [please]","[the] volume {change} [please]","(speak|talk|make it) {change=up} [a] [bit|little] louder","(speak|talk|make it) {change=down} [a] [bit|little] (quieter|softer|more quietly)","{change=up} louder [please]","{change=down} (quieter|softer) [please]","you are {change=down} too loud","you are {change=up} too quiet"],"de":["(stell|stelle|setz|setze|dreh|mach|regle) [die] lautstärke (auf|zu) {level:number} [prozent]","[die] lautstärke [auf] {level:number} [prozent]","{level=100} volle lautstärke","(mach|dreh|stell|sprich|rede) {change=up} [es|den ton] [etwas|ein bisschen] (lauter|auf)","(mach|dreh|stell|sprich|rede) {change=down} [es|den ton] [etwas|ein bisschen] leiser","[etwas|ein bisschen] {change=up} lauter","[etwas|ein bisschen] {change=down} leiser","(erhöhe|erhöh) {change=up} [die] lautstärke","(verringere|reduziere|senke) {change=down} [die] lautstärke","du bist {change=down} zu laut","du bist {change=up} zu leise"],"es":["(pon|ajusta|cambia|sube|baja) [el] volumen (a|al|en) {level:number} [por ciento]","volumen [a|al] {level:number} [por ciento]","{level=100} volumen máximo","(sube|aumenta) {change=up} [un poco] [el] (volumen|sonido) [un poco]","(baja|reduce) {change=down} [un poco] [el] (volumen|sonido) [un poco]","[habla] más {change=up} (alto|fuerte)","[habla] más {change=down} (bajo|suave)","hablas {change=down} (demasiado|muy) alto","hablas {change=up} (demasiado|muy) bajo"],"fr":["(mets|règle|monte|baisse) [le] (volume|son) (à|sur) {level:number} [pour cent]","volume [à] {level:number} [pour cent]","{level=100} volume (maximal|maximum)","(monte|augmente) {change=up} [un peu] [le] (volume|son) [un peu]","(baisse|diminue) {change=down} [un peu] [le] (volume|son) [un peu]","[parle] plus {change=up} fort","[parle] moins {change=down} fort","tu parles {change=down} trop fort","tu ne parles {change=up} pas assez fort"]}"#;

const PHOTO_PHRASES: &str = r#"{"en":["[please] (take|snap|shoot|capture|make) (a|an|another|one) (photo|picture|photograph|snapshot) [of (this|that|it)] [now] [please]","take (photo|picture)","(photo|picture|snapshot) please"],"de":["(mach|mache|schieß|schieße|nimm) [ein|noch ein] [neues] (foto|bild) [davon|auf]","(foto|bild) (machen|aufnehmen)"],"es":["(haz|saca|toma|hazme) (una|otra) (foto|fotografía) [de esto|de eso]","(sacar|hacer) [una] foto"],"fr":["(prends|fais|prendre) (une|encore une) (photo|image) [de ça|de ceci]","prends ça en photo"]}"#;

/// Declarations for the gateway, made anew for each session.
pub fn offers() -> [ToolOffer<'static>; COUNT as usize] {
    [
        ToolOffer {
            name: "display.brightness",
            description: "Sets the brightness of the display: a level in percent, or a change up or down.",
            schema: LEVEL_SCHEMA,
            phrases: BRIGHTNESS_PHRASES,
            reply_template: "Brightness is {level} percent.",
            flags: ToolFlags::EMPTY,
        },
        ToolOffer {
            name: "audio.volume",
            description: "Sets the volume of the speaker: a level in percent, or a change up or down.",
            schema: LEVEL_SCHEMA,
            phrases: VOLUME_PHRASES,
            reply_template: "Volume is {level} percent.",
            flags: ToolFlags::EMPTY,
        },
        ToolOffer {
            name: "camera.photo",
            description: "Takes a photo of what the wearer sees, and lets you see it.",
            schema: PHOTO_SCHEMA,
            phrases: PHOTO_PHRASES,
            reply_template: "Photo taken.",
            flags: ToolFlags::SLOW,
        },
    ]
}

/// Of these phrases, as JSON by language, those for a BCP 47 tag; the English ones if there are none.
pub fn phrases_in(all: &str, tag: &str) -> String {
    let by_language: Map<String, Value> = serde_json::from_str(all).unwrap_or_default();
    let own = tag.split('-').next().unwrap_or_default();
    let language = if by_language.contains_key(own) { own } else { "en" };
    json!({ language: by_language.get(language) }).to_string()
}

/// Result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Result or error in words.
    pub content: String,
    /// Result as JSON; empty: none.
    pub data: String,
    /// Error code; empty after success.
    pub error: &'static str,
    /// A photo to send before the answer.
    pub photo: Option<u32>,
}

impl Answer {
    fn done(content: String, data: &Value) -> Self {
        Self { content, data: data.to_string(), error: "", photo: None }
    }

    fn refused(error: &'static str, content: impl Into<String>) -> Self {
        Self { content: content.into(), data: String::new(), error, photo: None }
    }
}

/// The state that the tools act on.
#[derive(Clone, Debug)]
pub struct Controls {
    /// Brightness of the display in percent.
    pub brightness: u8,
    /// Volume of the speaker in percent.
    pub volume: u8,
    photos: u32,
}

impl Default for Controls {
    fn default() -> Self {
        Self { brightness: 60, volume: 80, photos: 0 }
    }
}

impl Controls {
    /// Runs a tool.
    pub fn call(&mut self, name: &str, arguments: &str) -> Answer {
        let arguments: Value = match serde_json::from_str(arguments) {
            Ok(Value::Object(arguments)) => Value::Object(arguments),
            _ => return Answer::refused("invalid_arguments", "the arguments are no JSON object"),
        };
        match name {
            "display.brightness" => set_level(&mut self.brightness, "Brightness", &arguments),
            "audio.volume" => set_level(&mut self.volume, "Volume", &arguments),
            "camera.photo" => {
                self.photos += 1;
                let data = json!({ "photo": self.photos });
                Answer { photo: Some(self.photos), ..Answer::done("A photo was taken.".to_owned(), &data) }
            }
            _ => Answer::refused("unknown_tool", format!("these glasses have no tool '{name}'")),
        }
    }
}

fn set_level(level: &mut u8, what: &str, arguments: &Value) -> Answer {
    let wanted = match (arguments.get("level"), arguments.get("change").and_then(Value::as_str)) {
        (Some(wanted), None) => match wanted.as_u64() {
            Some(wanted @ 0..=100) => wanted as u8,
            _ => return Answer::refused("invalid_arguments", "'level' must be 0 to 100"),
        },
        (None, Some("up")) => level.saturating_add(STEP_PERCENT).min(100),
        (None, Some("down")) => level.saturating_sub(STEP_PERCENT),
        _ => {
            return Answer::refused("invalid_arguments", "give either 'level' or 'change' as up or down");
        }
    };
    *level = wanted;
    Answer::done(format!("{what} is {wanted} percent."), &json!({ "level": wanted }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_offered_in_the_language_of_the_wearer() {
        for offer in offers() {
            let all: Value = serde_json::from_str(offer.phrases).unwrap();
            for (tag, language) in [("en-US", "en"), ("de", "de"), ("fr-CA", "fr"), ("xx", "en"), ("", "en")] {
                let own: Value = serde_json::from_str(&phrases_in(offer.phrases, tag)).unwrap();
                assert_eq!(own, json!({ language: all[language] }), "{tag}");
            }
        }
    }

    #[test]
    fn what_is_offered_is_json() {
        for offer in offers() {
            let schema: Value = serde_json::from_str(offer.schema).unwrap();
            assert_eq!(schema["type"], "object", "{}", offer.name);
            let phrases: Value = serde_json::from_str(offer.phrases).unwrap();
            assert!(phrases["en"].as_array().unwrap().len() >= 3, "{}", offer.name);
            assert!(offer.phrases.len() <= device_protocol::limits::PHRASES_BYTES_MAX);
        }
    }

    #[test]
    fn levels_and_steps() {
        let mut controls = Controls::default();
        assert_eq!(controls.call("display.brightness", r#"{"level":40}"#).data, r#"{"level":40}"#);
        assert_eq!(controls.call("display.brightness", r#"{"change":"down"}"#).data, r#"{"level":20}"#);
        assert_eq!(controls.call("audio.volume", r#"{"change":"up"}"#).content, "Volume is 100 percent.");
        assert_eq!((controls.brightness, controls.volume), (20, 100));
    }

    #[test]
    fn nonsense_changes_nothing() {
        let mut controls = Controls::default();
        for arguments in ["", "[]", "{}", r#"{"level":101}"#, r#"{"level":"x"}"#, r#"{"level":1,"change":"up"}"#] {
            assert_eq!(controls.call("audio.volume", arguments).error, "invalid_arguments", "{arguments}");
        }
        assert_eq!(controls.call("self.destruct", "{}").error, "unknown_tool");
        assert_eq!(controls.volume, Controls::default().volume);
    }

    #[test]
    fn each_photo_has_its_number() {
        let mut controls = Controls::default();
        controls.call("camera.photo", "{}");
        let answer = controls.call("camera.photo", "{}");
        assert_eq!((answer.photo, answer.data.as_str()), (Some(2), r#"{"photo":2}"#));
    }
}
