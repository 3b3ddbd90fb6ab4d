// The drawn display: two views of a fixed grid of characters (PROTOCOL.md section 11).

export const COLUMNS = 30;
export const ROWS = 5;
/** Contents that one view keeps under a more urgent one. */
const KEPT_MAX = 8;

/** What one view holds. Time is an argument, in milliseconds. */
export class View {
  #entries = [];
  #revision = 0;

  /** Takes a display command. */
  handle(command, nowMs) {
    if (command.revision < this.#revision) {
      return;
    }
    this.#revision = command.revision;
    if (command.action === "clear") {
      this.#entries = [];
      return;
    }
    const { priority, duration_ms: durationMs } = command;
    const counts = command.content.layout === "reference_card" && (command.countdown_ms ?? 0) > 0;
    const dueMs = counts ? nowMs + command.countdown_ms : null;
    const content = { ...command.content, bitmap: command.bitmap ?? null, dueMs };
    const untilMs = durationMs > 0 ? nowMs + durationMs : Infinity;
    const stays = (entry) =>
      command.action === "replace" ? entry.priority > priority : entry.untilMs > nowMs;
    this.#entries = this.#entries.filter(stays);
    this.#entries.push({ priority, content, untilMs });
    // Stable: the latest of equal ones is the last.
    this.#entries.sort((one, other) => one.priority - other.priority);
    this.#entries = this.#entries.slice(-KEPT_MAX);
  }

  /** What is on top, or null. */
  content(nowMs) {
    this.#entries = this.#entries.filter((entry) => entry.untilMs > nowMs);
    return this.#entries.at(-1)?.content ?? null;
  }

  /** When the next content runs out, or what is on top counts. */
  nextMs(nowMs) {
    const dueMs = this.content(nowMs)?.dueMs ?? null;
    const tickMs = dueMs === null || dueMs <= nowMs ? Infinity : dueMs - (Math.ceil((dueMs - nowMs) / 1000) - 1) * 1000;
    return Math.min(tickMs, ...this.#entries.map((entry) => entry.untilMs));
  }
}

/** The content as it is at a moment: a countdown has the time left. */
export function counted(content, nowMs) {
  if (content.dueMs === null) {
    return content;
  }
  const left = Math.max(0, Math.ceil((content.dueMs - nowMs) / 1000));
  const two = (number) => String(number).padStart(2, "0");
  const [hours, minutes, seconds] = [Math.floor(left / 3600), Math.floor(left / 60) % 60, left % 60];
  const second = hours > 0 ? `${hours}:${two(minutes)}:${two(seconds)}` : `${minutes}:${two(seconds)}`;
  return { ...content, second };
}

/**
 * The lit pixels of a content's picture as an SVG path in a grid of `widthPx` by `heightPx`, the picture in the middle and
 * cut where it does not fit; null where there is no whole picture.
 */
export function picturePath({ layout, bitmap }, widthPx, heightPx) {
  if (layout !== "bitmap" || !bitmap) {
    return null;
  }
  const { width_px: width, height_px: height } = bitmap;
  const rowBytes = Math.ceil(width / 8);
  const bytes = atob(bitmap.pixels);
  if (rowBytes * height === 0 || bytes.length < rowBytes * height) {
    return null;
  }
  const left = Math.floor((widthPx - width) / 2);
  const top = Math.floor((heightPx - height) / 2);
  const lit = (x, y) => (bytes.charCodeAt(y * rowBytes + (x >> 3)) >> (7 - (x & 7))) & 1;
  let path = "";
  for (let y = Math.max(0, -top); y < Math.min(height, heightPx - top); y += 1) {
    for (let x = Math.max(0, -left); x < Math.min(width, widthPx - left); x += 1) {
      if (lit(x, y)) {
        path += `M${x + left} ${y + top}h1v1h-1z`;
      }
    }
  }
  return path;
}

/** The lines of a content, at most ROWS of at most COLUMNS characters. */
export function layOut(content) {
  const { layout, first, second, permille } = content;
  switch (layout) {
    case "text_wall":
      return cut(wrap(first, COLUMNS));
    case "double_text":
      return cut([...wrap(first, COLUMNS), "", ...wrap(second, COLUMNS)]);
    case "dashboard":
      return cut(beside(first, second));
    case "progress": {
      const done = Math.round((Math.min(permille, 1000) / 1000) * COLUMNS);
      return cut([...wrap(first, COLUMNS), "", "█".repeat(done) + "░".repeat(COLUMNS - done)]);
    }
    default:
      // A card, and every layout of a later version.
      return cut([...wrap(first, COLUMNS), ...wrap(second, COLUMNS)]);
  }
}

function beside(left, right) {
  const half = Math.floor(COLUMNS / 2) - 1;
  const lefts = wrap(left, half);
  const rights = wrap(right, half);
  const rows = Math.max(lefts.length, rights.length);
  return Array.from({ length: rows }, (_, row) => {
    const start = (lefts[row] ?? "").padEnd(half + 2);
    return start + (rights[row] ?? "").padStart(half);
  });
}

function wrap(text, columns) {
  const lines = [];
  for (const paragraph of text.split("\n")) {
    let line = "";
    for (let word of paragraph.split(" ")) {
      while ([...word].length > columns) {
        if (line) {
          lines.push(line);
          line = "";
        }
        lines.push([...word].slice(0, columns).join(""));
        word = [...word].slice(columns).join("");
      }
      const longer = line ? `${line} ${word}` : word;
      if ([...longer].length > columns) {
        lines.push(line);
        line = word;
      } else {
        line = longer;
      }
    }
    lines.push(line);
  }
  while (lines.at(-1) === "") {
    lines.pop();
  }
  return lines;
}

function cut(lines) {
  if (lines.length <= ROWS) {
    return lines;
  }
  const kept = lines.slice(0, ROWS);
  kept[ROWS - 1] = `${[...kept[ROWS - 1]].slice(0, COLUMNS - 1).join("")}…`;
  return kept;
}

const SVG = "http://www.w3.org/2000/svg";
/** Place of the grid in the picture's own units. */
const GRID = { x: 170, y: 118, columnWidth: 16, rowHeight: 36 };
/** Height of a line above its base, in the same units. */
const ASCENT = 28;
/** Pixels of the view, one for each unit. */
export const WIDTH_PX = COLUMNS * GRID.columnWidth;
export const HEIGHT_PX = ROWS * GRID.rowHeight;

/** Draws lines into the lens, and the same as plain text for who does not see it. */
export class Lens {
  #rows;
  #mirror;
  #picture;
  #shown = null;

  constructor(group, mirror) {
    this.#mirror = mirror;
    this.#rows = Array.from({ length: ROWS }, (_, row) => {
      const text = document.createElementNS(SVG, "text");
      text.setAttribute("x", String(GRID.x));
      text.setAttribute("y", String(GRID.y + row * GRID.rowHeight));
      group.append(text);
      return text;
    });
    this.#picture = document.createElementNS(SVG, "path");
    this.#picture.setAttribute("transform", `translate(${GRID.x} ${GRID.y - ASCENT})`);
    group.append(this.#picture);
  }

  /** Draws a content: its picture where it has one, else its lines. */
  drawContent(content, nowMs) {
    const path = picturePath(content, WIDTH_PX, HEIGHT_PX);
    if (path === null) {
      // Who cannot see it is told once that something counts, not every second.
      const told = content.dueMs === null ? null : content;
      this.draw(layOut(counted(content, nowMs)), told && layOut(told).join("\n"));
      return;
    }
    this.draw([]);
    this.#shown = null;
    this.#mirror.textContent = content.first;
    this.#picture.setAttribute("d", path);
  }

  draw(lines, told = null) {
    const whole = lines.join("\n");
    if (whole === this.#shown) {
      return;
    }
    this.#shown = whole;
    if (this.#mirror.textContent !== (told ?? whole)) {
      this.#mirror.textContent = told ?? whole;
    }
    this.#picture.removeAttribute("d");
    this.#rows.forEach((text, row) => {
      const line = lines[row] ?? "";
      text.textContent = line;
      // Whatever font the machine has, a column has its width.
      if (line) {
        text.setAttribute("textLength", String([...line].length * GRID.columnWidth));
      } else {
        text.removeAttribute("textLength");
      }
    });
  }
}
