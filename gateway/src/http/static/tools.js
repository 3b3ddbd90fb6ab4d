// The device tools of the drawn glasses: they really act on the drawn display and on the sound.

/** How far one `up` or `down` goes, in percent. */
const STEP_PERCENT = 20;
/** Answers that are kept, to give a call that comes twice the same one. */
const ANSWERS_MAX = 64;

const LEVEL_SCHEMA = {
  type: "object",
  properties: {
    level: {
      type: "integer",
      minimum: 0,
      maximum: 100,
      description: "Percent.",
      examples: [50],
    },
    change: {
      type: "string",
      enum: ["up", "down"],
      description: "Instead of a level: a step up or down.",
    },
  },
  additionalProperties: false,
};

const BRIGHTNESS_PHRASES = [
  "[please] (set|change|turn|put) [the|my] [display|screen] brightness [up|down] (to|at) {level:number} [percent] [please]",
  "[set] [the] [display|screen] brightness {level:number} [percent] [please]",
  "(dim|lower|raise) [the|my] (display|screen) to {level:number} [percent]",
  "{level=100} (full|maximum|max) [display|screen] brightness [please]",
  "(make|turn) {change=up} [the|my] (display|screen) [a] [bit|little] brighter",
  "(make|turn) {change=down} [the|my] (display|screen) [a] [bit|little] (darker|dimmer)",
  "(turn up|increase|raise) {change=up} [the|my] [display|screen] brightness [please]",
  "(turn down|decrease|reduce|lower|dim) {change=down} [the|my] [display|screen] brightness [please]",
  "(dim|darken) {change=down} [the|my] (display|screen) [please]",
  "turn [the|my] [display|screen] brightness {change} [please]",
  "[the] [display|screen] brightness {change} [please]",
  "{change=up} brighter [please]",
  "{change=down} (darker|dimmer) [please]",
  "(the|my) (display|screen) is {change=down} too bright",
  "(the|my) (display|screen) is {change=up} too (dark|dim)",
];

const VOLUME_PHRASES = [
  "[please] (set|change|turn|put) [the|my] [speaker] volume [up|down] (to|at) {level:number} [percent] [please]",
  "[set] [the] volume {level:number} [percent] [please]",
  "{level=100} (full|maximum|max) volume [please]",
  "turn [the|my] (volume|sound) {change} [a bit] [please]",
  "(turn up|increase|raise) {change=up} [the|my] (volume|sound) [a bit|a little] [please]",
  "(turn down|decrease|reduce|lower) {change=down} [the|my] (volume|sound) [a bit|a little] [please]",
  "turn it {change} [a bit] [please]",
  "[the] volume {change} [please]",
  "(speak|talk|make it) {change=up} [a] [bit|little] louder",
  "(speak|talk|make it) {change=down} [a] [bit|little] (quieter|softer|more quietly)",
  "{change=up} louder [please]",
  "{change=down} (quieter|softer) [please]",
  "you are {change=down} too loud",
  "you are {change=up} too quiet",
];

function offer(name, what, phrases, reply) {
  return {
    name,
    description: `Sets ${what}: a level in percent, or a change up or down.`,
    schema: JSON.stringify(LEVEL_SCHEMA),
    phrases: JSON.stringify({ en: phrases }),
    reply_template: reply,
    flags: [],
  };
}

/** What `tool_list` carries. */
export const OFFERS = [
  offer(
    "display.brightness",
    "the brightness of the display",
    BRIGHTNESS_PHRASES,
    "Brightness is {level} percent.",
  ),
  offer("audio.volume", "the volume of the speaker", VOLUME_PHRASES, "Volume is {level} percent."),
];

const TITLES = { "display.brightness": "Brightness", "audio.volume": "Volume" };

/** The levels, and who is told when one changes: `apply(name, percent)`. */
export class Tools {
  #levels = { "display.brightness": 80, "audio.volume": 80 };
  #answers = new Map();
  #apply;

  constructor(apply) {
    this.#apply = apply;
    for (const [name, level] of Object.entries(this.#levels)) {
      apply(name, level);
    }
  }

  /** A level in percent. */
  level(name) {
    return this.#levels[name];
  }

  /** Sets a level by hand. */
  set(name, percent) {
    this.#levels[name] = percent;
    this.#apply(name, percent);
  }

  /** A new session counts its calls anew. */
  forgetCalls() {
    this.#answers.clear();
  }

  /** Runs a `tool_call`; answers the fields of its `tool_result`. */
  call({ call, name, arguments: text }) {
    const known = this.#answers.get(call);
    if (known) {
      return known;
    }
    const answer = { call, ...this.#run(name, text) };
    this.#answers.set(call, answer);
    if (this.#answers.size > ANSWERS_MAX) {
      this.#answers.delete(this.#answers.keys().next().value);
    }
    return answer;
  }

  #run(name, text) {
    if (!Object.hasOwn(this.#levels, name)) {
      return failed("unknown_tool", `these glasses have no tool '${name}'`);
    }
    const wanted = wantedLevel(text, this.#levels[name]);
    if (wanted === null) {
      return failed("invalid_arguments", "give either 'level' from 0 to 100 or 'change'");
    }
    this.#levels[name] = wanted;
    this.#apply(name, wanted);
    const content = `${TITLES[name]} is ${wanted} percent.`;
    return { ok: true, content, data: JSON.stringify({ level: wanted }), error: "" };
  }
}

function failed(error, content) {
  return { ok: false, content, data: "", error };
}

function wantedLevel(text, current) {
  let wanted;
  try {
    wanted = JSON.parse(text);
  } catch {
    return null;
  }
  const { level, change } = wanted ?? {};
  if (change === undefined && Number.isInteger(level) && level >= 0 && level <= 100) {
    return level;
  }
  if (level === undefined && change === "up") {
    return Math.min(100, current + STEP_PERCENT);
  }
  if (level === undefined && change === "down") {
    return Math.max(0, current - STEP_PERCENT);
  }
  return null;
}
