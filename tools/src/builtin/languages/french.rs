//! French sentences.

use super::Table;

pub(super) const TABLE: Table = &[
    (
        "clock.time",
        &[
            "quelle heure est-il",
            "(quelle heure|il est quelle heure) [est-il|il est|est-ce qu'il est] [maintenant]",
            "(donne|donne-moi|dis|dis-moi|me dire|me donner|montre|montre-moi|indique-moi) l'heure [actuelle|exacte|qu'il est]",
            "(dis|dis-moi|me dire|sais-tu|tu sais) quelle heure il est",
            "(tu as|as-tu|t'as|vous avez) l'heure",
            "c'est quoi l'heure",
            "l'heure [actuelle]",
        ],
    ),
    (
        "clock.date",
        &[
            "quel jour sommes-nous",
            "quel jour (sommes-nous|on est|est-on|est-ce|nous sommes|c'est) [aujourd'hui]",
            "(on est|nous sommes|c'est) quel jour [aujourd'hui]",
            "(on est|nous sommes) le combien [aujourd'hui]",
            "quelle date (sommes-nous|on est|est-on|est-ce) [aujourd'hui]",
            "quelle est la date [d'aujourd'hui|du jour|actuelle|aujourd'hui]",
            "(dis|dis-moi|donne|donne-moi|me dire|me donner) la date [d'aujourd'hui|du jour]",
            "(dis|dis-moi|me dire) quel jour (on est|nous sommes|c'est|sommes-nous) [aujourd'hui]",
            "aujourd'hui (on est|c'est) quel jour",
            "la date (d'aujourd'hui|du jour)",
            "c'est quoi la date [d'aujourd'hui|du jour]",
        ],
    ),
    (
        "timer.set",
        &[
            "mets un minuteur de {seconds:duration}",
            "(mets|met|mets-moi|mettre|lance|lancer|démarre|démarrer|règle|régler|programme|crée|active|fais) [un|le|un autre] [nouveau] (minuteur|timer) [de|d'|pour|sur|à] {seconds:duration}",
            "(donne-moi|je veux|je voudrais|il me faut|j'ai besoin d') [un|le|un autre] (minuteur|timer) [de|d'|pour|sur|à] {seconds:duration}",
            "[un|nouveau|un nouveau] (minuteur|timer) [de|d'|pour|sur|à] {seconds:duration}",
            "(mets|met|mets-moi|mettre|lance|démarre|règle|programme|crée|je veux|je voudrais) [un|le] (minuteur|timer) [de|d'|sur] {seconds:duration} (pour|appelé|nommé) [le|la|les|mon|ma|mes] {name:name}",
            "(mets|met|mets-moi|mettre|lance|démarre|règle|programme|crée|je veux|je voudrais) [un|le] (minuteur|timer) [pour|appelé|nommé] [le|la|les|mon|ma|mes] {name:name} (de|d'|sur) {seconds:duration}",
            "(minuteur|timer) [pour|des|de] [le|la|les] {name:name} (de|d') {seconds:duration}",
            "[fais|lance|démarre] [un] compte à rebours [de|d'|pour] {seconds:duration}",
            "(compte|chronomètre) {seconds:duration}",
        ],
    ),
    (
        "timer.cancel",
        &[
            "arrête le minuteur",
            "(arrête|arrêter|annule|annuler|supprime|supprimer|stoppe|stopper|stop|efface|coupe|éteins) {all=true} (tous les|tous mes|les|mes) (minuteurs|timers)",
            "(arrête|arrêter|annule|annuler|supprime|supprimer|stoppe|stopper|stop|efface|coupe|éteins) (le|mon|ce) [dernier] (minuteur|timer)",
            "(arrête|arrêter|annule|annuler|supprime|supprimer|stoppe|stopper|stop|efface|coupe|éteins) (le|mon) (minuteur|timer) (de|du|des|d'|pour|appelé) [le|la|les] {name:name}",
            "(arrête|arrêter|annule|annuler|supprime|supprimer|stoppe|stopper|stop|efface|coupe|éteins) (le|mon) (minuteur|timer) (de|d'|pour) {seconds:duration}",
        ],
    ),
    (
        "timer.list",
        &[
            "combien de temps reste-t-il",
            "combien de temps (reste-t-il|il reste|est-ce qu'il reste|me reste-t-il) [sur|au|pour] [le|mon] [minuteur|timer]",
            "il [me] reste combien de temps [sur|au|pour] [le|mon] [minuteur|timer]",
            "il [me] reste combien [sur|au] [le|mon] (minuteur|timer)",
            "(quand|à quelle heure) (sonne|finit|se termine) (le|mon) minuteur",
            "(quels|quel) (minuteurs|minuteur) (sont|est|ai-je|j'ai|il y a|y a-t-il) [en cours|actifs|lancés]",
            "(quels sont|montre|montre-moi|affiche|lis|lis-moi|donne-moi|dis-moi) [tous] (mes|les) minuteurs [en cours]",
            "(est-ce qu'il y a|il y a|y a-t-il|est-ce que j'ai) (un|des) (minuteur|minuteurs) [en cours]",
            "mes minuteurs",
        ],
    ),
    (
        "reminder.set",
        &[
            "rappelle-moi dans {in_seconds:duration} de {text}",
            "(rappelle-moi|me rappeler) dans {in_seconds:duration} [de|d'|que|qu'] {text}",
            "(rappelle-moi|me rappeler) [de|d'|que|qu'] {text} dans {in_seconds:duration}",
            "dans {in_seconds:duration} rappelle-moi [de|d'|que|qu'] {text}",
            "(mets|crée|ajoute|programme|fais) [moi] un [nouveau] rappel [pour] dans {in_seconds:duration} (pour|de|d') {text}",
            "(mets|crée|ajoute|programme|fais) [moi] un [nouveau] rappel (pour|de|d') {text} dans {in_seconds:duration}",
            "rappelle-moi {at:when} [de|d'|que|qu'] {text}",
            "(rappelle-moi|me rappeler) {at:when} [de|d'|que|qu'] {text}",
            "(rappelle-moi|me rappeler) [de|d'|que|qu'] {text} {at:when}",
            "{at:when} rappelle-moi [de|d'|que|qu'] {text}",
            "(mets|crée|ajoute|programme|fais) [moi] un [nouveau] rappel [pour] {at:when} (pour|de|d') {text}",
            "(mets|crée|ajoute|programme|fais) [moi] un [nouveau] rappel (pour|de|d') {text} {at:when}",
        ],
    ),
    (
        "reminder.list",
        &[
            "quels sont mes rappels",
            "(quels sont|montre|montre-moi|affiche|lis|lis-moi|donne-moi|dis-moi) [tous] (mes|les) rappels",
            "quels rappels (ai-je|j'ai|est-ce que j'ai|sont prévus)",
            "(est-ce que j'ai|j'ai|ai-je) [des|un] (rappel|rappels) [prévus|aujourd'hui]",
            "quel est mon prochain rappel",
            "mes rappels",
        ],
    ),
    (
        "reminder.cancel",
        &[
            "annule le rappel de {text:name}",
            "(annule|annuler|supprime|supprimer|efface|enlève|oublie) {all=true} (tous les|tous mes|les|mes) rappels",
            "(annule|annuler|supprime|supprimer|efface|enlève|oublie) (le|mon|ce) [dernier|prochain] rappel",
            "(annule|annuler|supprime|supprimer|efface|enlève|oublie) (le|mon) rappel (de|du|des|d'|pour|sur) [le|la|les|l'] {text:name}",
            "ne me rappelle [plus|pas] [de|d'|le|la|les|l'] {text:name}",
        ],
    ),
    (
        "note.add",
        &[
            "prends note de {text}",
            "(note|notes|noter) [que|qu'|ça|ceci] {text}",
            "(prends|prendre|fais|crée|ajoute|écris|enregistre|garde) [moi] [une|en] [nouvelle|autre] note [que|qu'|de|d'|pour|disant] {text}",
            "[nouvelle] note {text}",
            "(ajoute|mets|écris) {text} (à|dans) mes notes",
        ],
    ),
    (
        "note.list",
        &[
            "lis mes notes",
            "(lis|lis-moi|lire|montre|montre-moi|affiche|ouvre|donne-moi|quelles sont) [toutes] (mes|les) notes",
            "quelles notes (ai-je|j'ai|est-ce que j'ai|il y a)",
            "(est-ce que j'ai|j'ai|ai-je) des notes",
            "(qu'est-ce que j'ai|qu'ai-je) noté",
            "qu'est-ce qu'il y a dans mes notes",
            "mes notes",
        ],
    ),
    (
        "note.search",
        &[
            "cherche {query:name} dans mes notes",
            "(cherche|chercher|recherche|trouve|trouver) [le|la|les|l'|du|des] {query:name} dans (mes|les) notes",
            "(cherche|chercher|recherche|regarde) dans (mes|les) notes [le|la|les|l'] {query:name}",
            "(cherche|trouve|lis|lis-moi|montre|montre-moi) (la|ma|les|mes) (note|notes) (sur|de|du|avec|à propos de|concernant) [le|la|les|l'] {query:name}",
            "(qu'est-ce que j'ai|qu'ai-je) noté sur [le|la|les|l'] {query:name}",
            "que disent mes notes sur [le|la|les|l'] {query:name}",
        ],
    ),
    (
        "note.delete",
        &[
            "supprime la note sur {query:name}",
            "(supprime|supprimer|efface|effacer|enlève) (la|ma|les|mes) (note|notes) (sur|de|du|avec|à propos de|concernant) [le|la|les|l'] {query:name}",
            "(supprime|supprimer|efface|effacer|enlève) {query:name} de (mes|les) notes",
            "(supprime|supprimer|efface|effacer) (la|ma) {query=last} dernière note",
        ],
    ),
    ("note.clear", &["supprime toutes mes notes", "(supprime|supprimer|efface|effacer) toutes (les|mes) notes"]),
    (
        "device.status",
        &[
            "combien de batterie reste-t-il",
            "combien de batterie (reste-t-il|il reste|il me reste|me reste-t-il|j'ai|ai-je|est-ce qu'il reste) [encore]",
            "il [me] reste combien de batterie",
            "(quel|quelle) est (le niveau|l'état|le pourcentage|la charge) de [la|ma] batterie",
            "(la|ma) batterie est à combien",
            "à combien est (la|ma) batterie",
            "comment va la batterie",
            "(donne-moi|montre-moi|dis-moi|affiche) (le niveau de la|l'état de la|la) batterie",
            "(niveau|état) de [la] batterie",
            "est-ce que la batterie est (faible|vide|pleine|chargée)",
            "la batterie est-elle (faible|vide|pleine|chargée)",
        ],
    ),
    (
        "help.show",
        &[
            "qu'est-ce que je peux dire",
            "[à l'] aide",
            "aide-moi",
            "j'ai besoin d'aide",
            "(qu'est-ce que je peux|que puis-je|je peux) [te] (dire|demander|faire) [quoi]",
            "(que sais-tu|qu'est-ce que tu sais|tu sais|que peux-tu|qu'est-ce que tu peux|tu peux) faire [quoi]",
            "(montre|montre-moi|affiche|donne-moi|dis-moi) (l'aide|les commandes|ce que tu sais faire|ce que je peux dire)",
            "quelles (commandes|sont les commandes) [y a-t-il|il y a|comprends-tu|connais-tu]",
            "quelles sont les commandes",
            "comment (ça marche|ça fonctionne|tu marches|fonctionnent ces lunettes)",
        ],
    ),
    (
        "calculator.evaluate",
        &[
            "combien font {expression:expression}",
            "(combien font|combien fait|ça fait combien|combien ça fait|c'est combien|quel est|que font|que fait) {expression:expression}",
            "(calcule|calculer|calcule-moi) {expression:expression}",
            "{expression:expression}",
            "{expression:expression} (ça fait combien|fait combien|font combien|égale|égale combien)",
        ],
    ),
    (
        "memory.create",
        &[
            "retiens que {text}",
            "(retiens|retenir|souviens-toi|mémorise|rappelle-toi) (que|qu') {text}",
            "n'oublie pas (que|qu') {text}",
            "sache (que|qu') {text}",
        ],
    ),
    (
        "memory.search",
        &[
            "que sais-tu sur {query:name}",
            "(que sais-tu|qu'est-ce que tu sais|tu sais quoi) (sur|de|du|à propos de) [le|la|les|l'|mon|ma|mes] {query:name}",
            "(que t'ai-je|qu'est-ce que je t'ai) dit (sur|de|du|à propos de) [le|la|les|l'|mon|ma|mes] {query:name}",
            "(te souviens-tu|tu te souviens) (de|du|d') [quelque chose sur] [le|la|les|l'|mon|ma|mes] {query:name}",
        ],
    ),
    (
        "memory.list",
        &["que sais-tu sur moi", "(que sais-tu|qu'est-ce que tu sais|de quoi te souviens-tu) (sur|de|à propos de) moi"],
    ),
    (
        "conversation.new",
        &[
            "commence une nouvelle conversation",
            "(commence|démarre|ouvre|lance) une nouvelle (conversation|discussion)",
            "nouvelle (conversation|discussion)",
        ],
    ),
    (
        "app.start",
        &[
            "ouvre l'application {app:name}",
            "(ouvre|ouvrir|lance|lancer|démarre) [l'|mon] (appli|app|application) {app:name}",
            "(ouvre|ouvrir|lance|lancer|démarre) [l'|la|le|mon|ma] {app:app}",
        ],
    ),
    (
        "app.stop",
        &[
            "ferme l'application {app:name}",
            "(ferme|fermer|arrête|quitte|stoppe) [l'|mon] (appli|app|application) {app:name}",
            "(ferme|fermer|arrête|quitte|stoppe) [l'|la|le|mon|ma] {app:app}",
        ],
    ),
    (
        "app.list",
        &[
            "quelles applications ai-je",
            "quelles (applis|apps|applications) (ai-je|j'ai|il y a|sont installées|sont lancées)",
            "(montre|montre-moi|affiche|donne-moi) [toutes] (mes|les) (applis|apps|applications)",
        ],
    ),
];
