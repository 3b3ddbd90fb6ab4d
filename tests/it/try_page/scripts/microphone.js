// A permission that is asked for while the wearer leaves, comes back and chooses another source; then the source is gone.
(async () => {
  const { click, until } = gateway;
  const media = navigator.mediaDevices;
  const open = media.getUserMedia.bind(media);
  const asked = [];
  media.getUserMedia = async (wishes) => {
    const request = { source: wishes.audio.deviceId?.ideal ?? "", track: null };
    const allowed = new Promise((allow) => (request.allow = allow));
    asked.push(request);
    gateway.look();
    await allowed;
    const stream = await open({ audio: true });
    request.track = stream.getAudioTracks()[0];
    return stream;
  };
  const contexts = [];
  globalThis.AudioContext = class extends AudioContext {
    constructor(options) {
      super(options);
      // The speaker names its rate.
      if (!options.sampleRate) {
        contexts.push(this);
        this.addEventListener("statechange", gateway.look);
      }
    }
  };
  const openContexts = () => contexts.filter(({ state }) => state !== "closed").length;
  const sound = async () => {
    const before = gateway.of("audio").length;
    await until(() => gateway.of("audio").length > before + 10);
  };

  click("talk");
  await until(() => asked.length === 1);
  click("leave");
  click("talk");
  const choice = document.getElementById("microphone");
  choice.append(new Option("Other", "other"));
  choice.value = "other";
  choice.dispatchEvent(new Event("change"));
  asked[0].allow();
  await until(() => asked.length === 2);
  asked[1].allow();
  await until(gateway.isOpen);
  await sound();
  const before = { tracks: asked.map(({ track }) => track.readyState), open: openContexts() };

  asked[1].track.stop();
  asked[1].track.dispatchEvent(new Event("ended"));
  const problem = document.getElementById("problem-text").textContent;
  await until(() => openContexts() === 0);
  click("retry-microphone");
  await until(() => asked.length === 3);
  asked[2].allow();
  await until(gateway.isOpen);
  await sound();
  const again = openContexts();

  click("leave");
  await until(() => openContexts() === 0);
  const sources = asked.map(({ source }) => source);
  return { sources, before, problem, again, after: asked.map(({ track }) => track.readyState) };
})();
