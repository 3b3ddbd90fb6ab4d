// Which microphone and which loudspeaker, chosen by the wearer and kept by the browser.

const element = (id) => document.getElementById(id);
const KINDS = { microphone: "audioinput", loudspeaker: "audiooutput" };
/** Whether this browser lets a page choose where it sounds. */
const CHOOSES_LOUDSPEAKER = "setSinkId" in (globalThis.AudioContext?.prototype ?? {});

export class SoundChoice {
  /** `changed(which)` is told what was chosen anew: "microphone" or "loudspeaker". */
  constructor(changed) {
    element("loudspeaker-field").hidden = !CHOOSES_LOUDSPEAKER;
    for (const which of Object.keys(KINDS)) {
      element(which).onchange = ({ target }) => {
        keep(which, target.value);
        changed(which);
      };
    }
    navigator.mediaDevices?.addEventListener("devicechange", () => this.refresh());
  }

  get microphone() {
    return kept("microphone");
  }

  get loudspeaker() {
    return CHOOSES_LOUDSPEAKER ? kept("loudspeaker") : "";
  }

  /** Reads which there are. Their names are known once the microphone was allowed. */
  async refresh() {
    const devices = (await navigator.mediaDevices?.enumerateDevices?.()) ?? [];
    for (const [which, kind] of Object.entries(KINDS)) {
      const known = devices.filter(({ kind: own, deviceId }) => own === kind && deviceId && deviceId !== "default");
      const options = known.map(({ deviceId, label }, at) => new Option(label || `${which} ${at + 1}`, deviceId));
      const select = element(which);
      select.replaceChildren(new Option("The system's", ""), ...options);
      select.value = known.some(({ deviceId }) => deviceId === kept(which)) ? kept(which) : "";
    }
  }
}

function kept(which) {
  try {
    return localStorage.getItem(`lorgnette-${which}`) ?? "";
  } catch {
    return "";
  }
}

function keep(which, id) {
  try {
    localStorage.setItem(`lorgnette-${which}`, id);
  } catch {
    // Then it holds until the page is loaded anew.
  }
}
