//! Front half: packets in, voice facts and utterances out.
