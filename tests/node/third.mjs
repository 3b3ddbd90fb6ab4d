// A mini-app on 3.x of the published SDK (`MiniAppServer`), as an author would write one: transcripts, drawing, storage,
// speech, a sound of its own, a photo, a tool. It runs on Bun, as 3.x wants it.
// Says on standard output what happens to it, one JSON array a line.
//
// bun third.mjs SDK_FOLDER PORT API_KEY GATEWAY_URL SOUND_FILE

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, port, apiKey, gateway, sound] = process.argv.slice(2);
const { MiniAppServer } = await import(pathToFileURL(`${folder}/node_modules/@mentra/sdk/dist/index.js`));

const tell = (...what) => process.stdout.write(JSON.stringify(what) + "\n");

class Third extends MiniAppServer {
  // A function given to `onToolCall` is never called by the alphas of 3.x; the class's own method is.
  onToolCall(call) {
    if (typeof call === "function") return super.onToolCall(call);
    tell("tool", call.toolId, call.toolParameters, call.userId, Boolean(call.activeSession));
    return Promise.resolve(`It is ${call.toolParameters.what}.`);
  }
}

const app = new Third({ packageName: "com.example.third", apiKey, port: Number(port), cloudApiUrl: gateway });

app.onSession(async (session) => {
  // 3.x begins as soon as its socket is open: what the gateway says of itself comes right behind.
  if (!session.capabilities) await new Promise((known) => session.onConnected(known));
  tell("session", session.sessionId, session.userId, session.capabilities?.modelName ?? null);
  tell("permissions", session.permissions.has("microphone"), session.permissions.has("camera"));
  session.onDisconnected((info) => tell("disconnected", info.code ?? null, Boolean(info.permanent)));
  session.onReconnected(() => tell("reconnected"));
  session.onError((error) => tell("error", String(error.message ?? error)));
  session.transcription.on((data) => tell(data.isFinal ? "heard" : "hearing", data.text));
  session.device.onButtonPress((data) => tell("button", data.buttonId, data.pressType));
  session.display.showText("Third is ready");
  await session.storage.set("opened", "yes");
  await session.storage.flush();
  tell("stored", await session.storage.get("opened"));
  const said = session.speaker.speak("Three comes after two.", { stopOtherAudio: true });
  await said.then(() => tell("spoken", true)).catch((error) => tell("spoken", false, String(error)));
  const stream = await session.speaker.createStream();
  tell("streaming");
  const mp3 = readFileSync(sound);
  for (let at = 0; at < mp3.length; at += 2_000) stream.write(new Uint8Array(mp3.subarray(at, at + 2_000)));
  await stream.end();
  const photo = session.camera.takePhoto();
  await photo.then((taken) => tell("photo", taken.url.slice(0, 15))).catch((error) => tell("photo", null, String(error)));
});

app.onStop((session, reason) => tell("stop", session?.userId ?? null, reason));

Bun.serve({ port: Number(port), hostname: "127.0.0.1", fetch: (request) => app.fetch(request) });
await app.start();
tell("serving");
